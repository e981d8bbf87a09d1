//! Bad clients beside good ones: the bad end as recorded, within their limits; the good do not notice.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::{client, processes};

/// Says hello, and then does what the capitals in its prompt name; without any it does its job.
const CLIENT: &str = r#"read -r hello
echo '{"type":"control_response","response":{"subtype":"success","request_id":"ollim-initialize","response":{}}}'
read -r prompt
[[ $hello == *sdkMcpServers* ]] && ours='"mcp__discord__discord_embed"'
echo '{"type":"system","subtype":"init","session_id":"s-1","tools":['"$ours"']}'
forever='while true; do sleep 1000; done'
deaf="trap '' TERM INT HUP; $forever"
case $prompt in
  *HANGS*) exec sleep 1000 ;;
  *SAYS-NOTHING*) exec >/dev/null; eval "$forever" ;;
  *DEAF*) eval "$deaf" ;;
  *GRANDCHILDREN*)
    # Forked twice, in sessions and folders of their own, with nothing of their parent's environment.
    for _ in 1 2 3; do (cd / && setsid env -i /bin/bash -c "$deaf" "$OLLIM_HOME" &); done
    eval "$deaf" ;;
  *FLOODS-A-LINE*) head -c 1G /dev/zero | tr '\0' x; eval "$forever" ;;
  *FLOODS-LINES*) yes 'not a message'; eval "$forever" ;;
  *FLOODS-STDERR*) head -c 1G /dev/zero >&2; exit 3 ;;
esac
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"done","total_cost_usd":0,"session_id":"s-1"}'
"#;

const BACKGROUND: &str = "background: true\nisolated: true\nretry: 0\nallowed_tools: []\n";

fn bot(slots: &str) -> (TestBot, tempfile::TempDir) {
    let scripts = tempfile::TempDir::new().unwrap();
    let client = client::script(scripts.path(), CLIENT);
    (TestBot::with_client(&client, "http://127.0.0.1:9").env("OLLIM_MAX_CONCURRENT_RUNS", slots), scripts)
}

/// Writes a background job that falls due now. The client behaves as the job's name says.
fn job(bot: &TestBot, id: &str, fields: &str) {
    bot.write(&format!("reminders/{id}.md"), &reminder(now(), &format!("{BACKGROUND}{fields}"), &id.to_uppercase()));
}

#[track_caller]
fn until_outcome(bot: &TestBot, service: &Service<'_>, id: &str, outcome: &str) -> Value {
    service.until(&format!("{id} is {outcome}"), || bot.runs(id).into_iter().find(|run| run["outcome"] == outcome))
}

#[track_caller]
fn until_alone(bot: &TestBot, service: &Service<'_>) {
    service.until("nothing but the service is left, no zombie either", || {
        let alone = bot.processes().iter().all(|process| process.pid == service.pid());
        (alone && processes::zombies_of(service.pid()).is_empty()).then_some(())
    });
}

#[test]
fn every_bad_one_ends_within_its_limits_and_bounded_memory_and_the_good_go_on() {
    let (bot, _scripts) = bot("10");
    let service = bot.start();
    let bad = [
        ("hangs", "timed_out"),
        ("says-nothing", "timed_out"),
        ("deaf", "timed_out"),
        ("grandchildren", "timed_out"),
        ("floods-a-line", "failed"),
        ("floods-lines", "failed"),
        ("floods-stderr", "failed"),
    ];
    for (id, outcome) in bad {
        let limit = if outcome == "timed_out" { "timeout: 3s\n" } else { "timeout: 90s\n" };
        job(&bot, id, limit);
    }
    for n in 0..10 {
        job(&bot, &format!("good-{n}"), "");
        until_outcome(&bot, &service, &format!("good-{n}"), "completed");
    }
    for (id, outcome) in bad {
        until_outcome(&bot, &service, id, outcome);
    }
    until_alone(&bot, &service);
    let status = fs::read_to_string(format!("/proc/{}/status", service.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    // The service reads a line up to 64 MiB; the client offered three gigabytes.
    assert!(peak < 200 * 1024, "at most {peak} kB of memory were in use");
    service.stop();
}

#[test]
fn stuck_jobs_hold_their_own_slots_and_nothing_else() {
    let (bot, _scripts) = bot("3");
    let service = bot.start();
    for id in ["hangs", "deaf"] {
        job(&bot, id, "timeout: 1h\n");
        until_outcome(&bot, &service, id, "running");
    }
    // All other jobs share the third slot, one after the other.
    for n in 0..8 {
        job(&bot, &format!("good-{n}"), "");
    }
    for n in 0..8 {
        until_outcome(&bot, &service, &format!("good-{n}"), "completed");
    }
    for id in ["hangs", "deaf"] {
        assert_eq!(bot.runs(id)[0]["outcome"], "running");
    }

    // With every slot taken other jobs wait, and the status shows it. The main session does not wait.
    job(&bot, "grandchildren", "timeout: 1h\n");
    until_outcome(&bot, &service, "grandchildren", "running");
    job(&bot, "waits", "");
    until_outcome(&bot, &service, "waits", "claimed");
    bot.write("reminders/turn.md", &reminder(now(), "", "A turn of the main session."));
    until_outcome(&bot, &service, "turn", "completed");
    assert_eq!(bot.runs("waits")[0]["outcome"], "claimed");

    // They get a slot that becomes free.
    let run = bot.runs("deaf")[0]["run"].as_str().unwrap().to_owned();
    bot.ok(["cancel-run", &run]);
    until_outcome(&bot, &service, "deaf", "cancelled");
    until_outcome(&bot, &service, "waits", "completed");

    service.signal(Signal::TERM);
    service.signal(Signal::INT);
    let (status, said) = service.wait();
    assert!(status.success(), "{said}");
    bot.until_no_processes();
    for id in ["hangs", "grandchildren"] {
        assert_eq!(bot.runs(id)[0]["outcome"], "interrupted");
    }
}
