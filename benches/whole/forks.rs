//! The cost of a fork beyond its client: the same client by itself, behind ours, and behind the Python Agent SDK, in turns,
//! against a stub of the model's API on loopback.

use std::time::Duration;

use super::bare_client::{KEY, REST, Until, by_itself, client};
use super::bot::{Bot, now, time};
use super::messages_api::MessagesApi;
use super::{Plan, ms, peers, percentile, row};

const ROUNDS: usize = 15;

pub fn measure(_plan: &Plan) {
    let what = "a fork, from its time to its recorded end, beyond its bare client";
    let Some(client) = client() else {
        return row(what, "20 ms", "not measured: `./scripts/test` installs the client", "");
    };
    let api = MessagesApi::script([]);
    let bot = Bot::with(0)
        .env("OLLIM_AGENT_CLIENT", "claude")
        .env("OLLIM_CLAUDE", client.to_str().unwrap())
        .env("ANTHROPIC_BASE_URL", api.url())
        .env("ANTHROPIC_API_KEY", KEY);
    let service = bot.start();
    let (mut bare, mut ours, mut with_tools, mut sdk) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        std::thread::sleep(REST);
        let alone = by_itself(&client, bot.person(), api.url(), &format!("bare-{round}"), Until::End);
        bare.push(alone);
        ours.push(fork(&bot, &format!("fork-{round}"), "Read", alone));
        let tools = "Read, mcp__discord__ping_user, mcp__discord__report_updates";
        with_tools.push(fork(&bot, &format!("fork-with-tools-{round}"), tools, alone));
        std::thread::sleep(REST);
        sdk.extend(peers::agent_sdk(&client, api.url(), bot.person()));
    }
    drop(service);
    let of = |times: &mut Vec<Duration>| (percentile(times, 50), percentile(times, 0));
    let (bare, ours, with_tools) = (of(&mut bare), of(&mut ours), of(&mut with_tools));
    let more = |times: (Duration, Duration)| {
        let beyond = |with: Duration, without: Duration| (with.as_secs_f64() - without.as_secs_f64()) * 1000.0;
        format!("{:+.0} ms (best against best {:+.0} ms)", beyond(times.0, bare.0), beyond(times.1, bare.1))
    };
    let beside = match sdk.len() {
        ROUNDS => format!("Python Agent SDK: {}", more(of(&mut sdk))),
        _ => "Python Agent SDK: not installed".into(),
    };
    row(what, "20 ms", &format!("{}, on top of {}", more(ours), ms(bare.0)), &beside);
    let what = "the same with two tools of ours, which the client asks for, and a question before its end";
    row(what, "", &more(with_tools), "");
}

/// Measures a background job with these tools, from its time to its recorded end.
fn fork(bot: &Bot, name: &str, tools: &str, alone: Duration) -> Duration {
    let at = now() + REST;
    let fields = format!("background: true\nisolated: true\nallowed_tools: [{tools}]\n");
    bot.reminder_with(name, at, &fields, "Say that you are done.");
    // A query would take processor time from the client, so none is sent while it works.
    std::thread::sleep((at - now()).to_std().unwrap() + 2 * alone);
    let ended = loop {
        let runs = bot.json(&["runs", name]);
        if let Some(run) = runs.as_array().unwrap().iter().find(|run| !run["ended"].is_null()) {
            assert_eq!(run["outcome"], "completed", "{run:#}");
            break time(&run["ended"]).unwrap();
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    (ended - at).to_std().unwrap()
}
