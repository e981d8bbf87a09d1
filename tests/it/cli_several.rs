//! Several jobs in one command, and failed reminders that `snooze` restores.

use serde_json::json;

use crate::cli::shown;
use crate::support::bot::{TestBot, now, reminder};

const DAILY: &str = "---\ncron: \"@daily\"\n---\nGo.\n";
const FAR: &str = "---\nrun_at: \"2098-05-04T09:00:00Z\"\n---\nTea.\n";

#[test]
fn several_runs_are_ended_by_one_command() {
    let bot = TestBot::new();
    for name in ["a", "b"] {
        let job = "client: exec\nbackground: true\ncommand: sleep 1000\nallowed_tools: ['Bash(sleep *)']\nretry: 0\n";
        bot.write(&format!("reminders/{name}.md"), &reminder(now(), job, ""));
    }
    let service = bot.start();
    let runs = service.until("both run", || {
        let running: Vec<String> = ["a", "b"]
            .iter()
            .flat_map(|id| bot.runs(id))
            .filter(|run| run["outcome"] == "running")
            .map(|run| run["run"].as_str().unwrap().to_owned())
            .collect();
        (running.len() == 2).then_some(running)
    });
    let ended = bot.run(["cancel-run", &runs[0], "0badcafe", &runs[1]]);
    assert_eq!((ended.code, ended.stdout.matches("is cancelled").count()), (1, 2), "{ended:?}");
    service.stop();
}

#[test]
fn each_is_done_or_refused_by_itself() {
    let bot = TestBot::new();
    for name in ["a", "b", "c"] {
        bot.write(&format!("reminders/{name}.md"), FAR);
    }
    insta::assert_snapshot!(shown(&bot, &bot.run(["reminder", "cancel", "a", "nobody", "b"])), @"
    exit: 1
    -- stdout
    cancelled a: Tea.
    cancelled b: Tea.
    -- stderr
    error: there is no reminder `nobody`
    hint: `ollim-bot reminder list` shows them
    ");
    assert_eq!(bot.names("reminders"), ["c.md"]);
    bot.write("reminders/a.md", FAR);
    let snoozed = bot.json(["reminder", "snooze", "a", "c", "90"]);
    let ids: Vec<_> = snoozed.as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
    assert_eq!(ids, [json!("a"), json!("c")]);
    assert!(
        bot.names("reminders")
            .iter()
            .all(|name| { !bot.read(&format!("reminders/{name}")).unwrap().contains("2098-05-04") })
    );
    let both = bot.json(["reminder", "show", "a", "c"]);
    assert_eq!([&both[0]["id"], &both[1]["id"]], ["a", "c"]);
    let fired = bot.run(["fire", "a", "nobody", "c"]);
    assert_eq!((fired.code, fired.stdout.matches(" completed").count()), (1, 2), "{fired:#?}");
    assert_eq!((bot.runs("a").len(), bot.runs("c").len()), (1, 1));
}

#[test]
fn single_jobs_are_paused_and_resumed() {
    let bot = TestBot::new();
    bot.write("routines/mail.md", DAILY);
    bot.write("reminders/tea.md", FAR);
    assert_eq!(bot.ok(["pause", "mail", "tea"]), "disabled mail\ndisabled tea\n");
    for (kind, id) in [("routine", "mail"), ("reminder", "tea")] {
        assert_eq!(bot.json([kind, "show", id])["enabled"], false);
    }
    assert_eq!(bot.json(["next"]), json!([]));
    bot.ok(["resume", "mail", "tea"]);
    assert_eq!(
        (bot.read("routines/mail.md").unwrap(), bot.read("reminders/tea.md").unwrap()),
        (DAILY.into(), FAR.into())
    );
}

#[test]
fn what_has_just_fired_is_snoozed() {
    let bot = TestBot::new();
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea."));
    bot.write("reminders/job.md", &reminder(now(), "background: true\nallowed_tools: [Read]\n", "Look."));
    let service = bot.start();
    // Without an agent client, a job with tools fails.
    for id in ["tea", "job"] {
        service.until_ended(id, 1);
    }
    service.until("they are gone", || (bot.names("reminders") == ["failed"]).then_some(()));
    let back = bot.json(["reminder", "snooze", "tea", "job", "20m"]);
    for (one, id) in back.as_array().unwrap().iter().zip(["tea", "job"]) {
        assert_eq!(one["id"], id);
        let at: chrono::DateTime<chrono::Utc> = one["run_at"].as_str().unwrap().parse().unwrap();
        assert!(at > now() + chrono::TimeDelta::minutes(15), "{one}");
    }
    assert_eq!(bot.names("reminders/failed"), Vec::<String>::new());
    let never = bot.run(["reminder", "snooze", "nobody", "20m"]);
    assert!(never.code == 1 && never.stderr.contains("there is no reminder `nobody`"), "{never:?}");
    assert!(service.stop().0.success());
}

#[test]
fn a_reminder_that_several_bring_back_at_once_comes_back_once() {
    let bot = TestBot::new();
    for id in ["tea", "job"] {
        let fields = if id == "job" { "background: true\nallowed_tools: [Read]\n" } else { "" };
        bot.write(&format!("reminders/{id}.md"), &reminder(now(), fields, "Tea."));
    }
    let service = bot.start();
    for id in ["tea", "job"] {
        service.until_ended(id, 1);
    }
    service.until("they are gone", || (bot.names("reminders") == ["failed"]).then_some(()));
    service.stop();
    for id in ["tea", "job"] {
        let asked: Vec<_> = (0..6).map(|_| bot.command(["reminder", "snooze", id, "20m"]).spawn().unwrap()).collect();
        for mut one in asked {
            assert!(one.wait().unwrap().success(), "whoever comes second moves what the first brought back");
        }
        assert_eq!(bot.names("reminders").iter().filter(|name| name.starts_with(id)).count(), 1);
    }
}
