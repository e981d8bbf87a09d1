//! `simulate` on the command line: the expected outcome of occurrences.

use chrono::TimeDelta;
use ollim_bot::agent::Tokens;
use ollim_bot::clock::Clock;
use ollim_bot::definition::{DefinitionId, Kind};
use ollim_bot::journal::{Claim, Finish, Journal, NewClaim, Occurrence, Punctuality, Purpose, RunId, RunState};

use crate::cli::shown;
use crate::support::bot::TestBot;

#[track_caller]
fn simulate(bot: &TestBot, args: &[&str]) -> String {
    let words: Vec<&str> = ["simulate"].iter().chain(args).copied().collect();
    shown(bot, &bot.run(&words))
}

fn some_jobs() -> TestBot {
    let bot = TestBot::new();
    bot.write("config.yaml", "timezone: Europe/Berlin\n");
    bot.write("routines/mail.md", "---\ncron: \"0 8 * * *\"\nbackground: true\n---\nSort the mail.\n");
    bot.write("routines/night.md", "---\ncron: \"30 2 * * *\"\nclient: notify\n---\nSleep.\n");
    bot.write("routines/off.md", "---\ncron: \"0 9 * * *\"\nenabled: false\n---\nx\n");
    bot.write("routines/then.md", "---\nafter: mail\nbackground: true\n---\nx\n");
    bot.write("routines/seen.md", "---\nwatch: in\nbackground: true\n---\nx\n");
    bot.write("reminders/tea.md", "---\nrun_at: \"2098-03-30T07:00:00Z\"\nclient: notify\n---\nTea.\n");
    bot
}

#[test]
fn what_is_coming_is_listed_with_what_becomes_of_it() {
    let bot = some_jobs();
    insta::assert_snapshot!(simulate(&bot, &["--all", "--from", "2098-03-29 00:00", "--until", "2098-03-30 23:00"]), @"
    exit: 0
    -- stdout
    Sat 29 Mar 2098 02:30 CET   night  runs
    Sat 29 Mar 2098 08:00 CET   mail   runs
    Sat 29 Mar 2098 08:00 CET   then   runs
    Sun 30 Mar 2098 03:00 CEST  night  runs  the clocks skip its time that night
    Sun 30 Mar 2098 08:00 CEST  mail   runs
    Sun 30 Mar 2098 08:00 CEST  then   runs
    Sun 30 Mar 2098 09:00 CEST  tea    runs
    -- stderr
    no completed run is known, so a run is taken to last no time, to take no tokens and to cost its cap: mail (no cap, so $0.00), night (nothing), tea (nothing), then (no cap, so $0.00)
    seen fires when something in work/in has changed, which is not foreseen
    left out, disabled or paused: off
    ");
    insta::assert_snapshot!(simulate(&bot, &["off", "--from", "2098-03-29 00:00", "--until", "2098-03-29 23:00"]), @"
    exit: 0
    -- stdout
    Sat 29 Mar 2098 09:00 CET  off  skipped  disabled: its file says `enabled: false`
    -- stderr
    no completed run is known, so a run is taken to last no time, to take no tokens and to cost its cap: off (no cap, so $0.00)
    ");
    insta::assert_snapshot!(simulate(&bot, &["mail", "--from", "2098-03-29 09:00", "--until", "2098-03-29 08:00"]), @"
    exit: 1
    -- stderr
    error: `--until` is not after `--from`
    hint: `--from 8:00 --until 'tomorrow 8:00'`
    ");
    insta::assert_snapshot!(simulate(&bot, &["then", "--from", "2098-03-29 00:00", "--until", "2098-03-29 23:00"]), @"
    exit: 0
    -- stdout
    Sat 29 Mar 2098 08:00 CET  then  runs
    -- stderr
    no completed run is known, so a run is taken to last no time, to take no tokens and to cost its cap: then (no cap, so $0.00), mail (no cap, so $0.00)
    ");
    insta::assert_snapshot!(simulate(&bot, &["seen", "--from", "2098-03-29 00:00", "--until", "2098-03-29 23:00"]), @"
    exit: 0
    -- stderr
    seen fires when something in work/in has changed, which is not foreseen
    ");
    let missing = bot.run(["simulate"]);
    assert_eq!(missing.code, 1, "{}", missing.stderr);
}

#[tokio::test]
async fn past_runs_say_how_long_and_what_it_costs() {
    let bot = some_jobs();
    let journal = Journal::open(&bot.home().join("state/journal.db"), Clock::system()).unwrap();
    for (back, cost_usd) in [(3, 0.10), (2, 0.30), (1, 0.20)] {
        let at = Clock::system().now() - TimeDelta::days(back);
        let occurrence = Occurrence { id: DefinitionId::new("mail"), kind: Kind::Routine, at };
        let claim = NewClaim {
            occurrence,
            file: "routines/mail.md".into(),
            text: "x".into(),
            purpose: Purpose::Run,
            occasion: None,
            origin: None,
            run: RunId::random(),
        };
        let Claim::Claimed(run) = journal.claim(vec![claim]).await.unwrap().remove(0) else { panic!() };
        journal.launching(&run, "x".into(), String::new(), Punctuality::Unknown).await.unwrap();
        let tokens = Some(Tokens { input: 1000, cache_read: 70_000, cache_write: 200, output: 34 });
        let end = Finish { cost_usd: Some(cost_usd), tokens, ..Finish::closed(RunState::Completed, None) };
        journal.finish(&run, end).await.unwrap();
    }
    journal.close().await;
    let config = bot.read("config.yaml").unwrap();
    bot.write("config.yaml", &format!("{config}budget: {{ tokens_day: 2000 }}\n"));
    let text = simulate(&bot, &["mail", "--from", "2098-03-29 00:00", "--until", "2098-03-29 23:00"]);
    assert!(text.contains("the median of 3 past runs") && text.contains(", $0.20, 1234 tokens"), "{text}");
    let found = bot.json(["simulate", "mail", "--from", "2098-03-29 00:00", "--until", "2098-03-29 23:00"]);
    assert_eq!(found["jobs"][0]["past_runs"], 3);
    assert_eq!(found["jobs"][0]["cost_usd"], 0.20);
    assert_eq!(found["jobs"][0]["tokens"], 1234);
    assert_eq!(found["occurrences"][0]["at"], "2098-03-29T08:00:00+01:00");
    assert_eq!(found["occurrences"][0]["fate"], "runs");
    assert_eq!(found["cut"], false);
    let without_past = bot.json(["simulate", "off", "--from", "2098-03-29 00:00", "--until", "2098-03-29 23:00"]);
    assert_eq!(without_past["jobs"][0]["tokens"], 200, "a tenth of the day");
    let refused = bot.run(["simulate", "mail", "--from", "2020-01-01", "--until", "2020-01-02"]);
    assert!(refused.code == 1 && refused.stderr.contains("lies in the past"), "{refused:?}");
}

#[test]
fn a_thousand_years_are_cut() {
    let bot = some_jobs();
    let found = bot.json(["simulate", "--all", "--from", "2098-01-01 00:00", "--until", "2999-01-01 00:00"]);
    assert_eq!((found["cut"].clone(), found["occurrences"].as_array().unwrap().len()), (true.into(), 2000));
}

#[test]
fn what_needs_more_than_its_time_says_so() {
    let bot = TestBot::new();
    bot.write("config.yaml", "timezone: UTC\n");
    let fields = "background: true\napprove: true\nrequires: [online]\ngate: \"true\"\nmax_cost_day_usd: 2\n";
    bot.write("routines/mail.md", &format!("---\ncron: \"* * * * *\"\n{fields}---\nSort the mail.\n"));
    let asked = ["mail", "--from", "2098-03-29 08:00", "--until", "2098-03-29 08:02"];
    let found = bot.json([&["simulate"], &asked[..]].concat());
    let fates: Vec<&str> =
        found["occurrences"].as_array().unwrap().iter().map(|one| one["fate"].as_str().unwrap()).collect();
    assert_eq!(fates, ["asks", "skipped", "skipped"], "{found:#}");
    assert_eq!(found["jobs"][0]["cost_usd"], 0.2, "a tenth of its day, as a run takes it: {found:#}");
    let words = "the machine is online, you approve it and its gate lets it";
    assert_eq!(found["conditions"], serde_json::json!([{ "id": "mail", "words": words }]));
    let shown = simulate(&bot, &asked);
    assert!(shown.contains("skipped unless you approve it by "), "{shown}");
    assert!(shown.contains(&format!("mail: each run begins only if {words}\n")), "{shown}");
}
