//! Every sample that `init` installs fires on the real client.

use crate::support::bot::TestBot;
use crate::support::client;
use crate::support::messages_api::MessagesApi;

#[test]
fn each_sample_fires_on_the_real_client() {
    let api = MessagesApi::script([]);
    let bot = TestBot::with_client(&client::real(), api.url());
    std::fs::remove_dir_all(bot.home()).unwrap();
    bot.ok(["init"]);
    let check = bot.json(["check"]);
    assert_eq!(check["problems"], serde_json::json!([]), "{check:#}");

    let mut samples = bot.json(["routine", "list"]).as_array().unwrap().clone();
    samples.extend(bot.json(["reminder", "list"]).as_array().unwrap().clone());
    let of_the_repository: usize = ["routines", "reminders"]
        .iter()
        .map(|folder| std::fs::read_dir(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap().count())
        .sum();
    assert_eq!(samples.len(), of_the_repository, "all of them were installed");
    assert!(samples.len() >= 4, "both kinds, both lists");

    // A reminder falls due by itself. Afterwards its file is gone.
    let files: Vec<String> = samples.iter().map(|sample| bot.read(sample["file"].as_str().unwrap()).unwrap()).collect();
    let service = bot.start();
    for (sample, file) in samples.iter().zip(&files) {
        let id = sample["id"].as_str().unwrap();
        let body = file.rsplit("---\n").next().unwrap().trim().lines().next().unwrap().to_string();
        if sample["kind"] == "routine" {
            bot.ok(["fire", id]);
        }
        let run = service.until_ended(id, 1).remove(0);
        assert_eq!(run["outcome"], "completed", "{id}: {run:#}\n{}", service.output());
        if sample["client"] == "notify" {
            let said = bot.json(["inbox"]);
            assert!(said.to_string().contains(&body), "{id}: {said:#}");
            continue;
        }
        let asked = api.requests();
        let request = asked.iter().rev().find(|request| request.mentions(&body));
        let request = request.unwrap_or_else(|| panic!("{id}: the model was given {body:?}"));
        for list in ["allowed_tools", "disallowed_tools"] {
            for pattern in sample[list].as_array().into_iter().flatten() {
                let pattern = pattern.as_str().unwrap();
                let shown = request.tools().iter().any(|tool| tool == pattern);
                let offered = list == "allowed_tools";
                assert!(pattern.contains('(') || shown == offered, "{id}: {list} {pattern}: {:?}", request.tools());
            }
        }
    }
    service.stop();
    bot.until_no_processes();
}
