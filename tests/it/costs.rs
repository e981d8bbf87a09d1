//! Caps on the cost of all runs together and of each run, and how they stop runs on the real client.
//!
//! The client computes the cost of the stub's answer from its tokens: some tenths of a cent.

use serde_json::json;

use crate::support::bot::TestBot;
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::phone::{Phone, bot_with_phone};
use crate::support::processes::clients;

fn bot(api: &MessagesApi, budget: &str) -> TestBot {
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("config.yaml", &format!("timezone: UTC\nmax_concurrent_runs: 20\n{budget}"));
    bot
}

fn routine(bot: &TestBot, id: &str, fields: &str) {
    let fields = format!("background: true\nisolated: true\nretry: 0\nallowed_tools: []\n{fields}");
    bot.write(&format!("routines/{id}.md"), &format!("---\ncron: '0 0 29 2 *'\n{fields}---\nSay it.\n"));
}

fn notifications(bot: &TestBot) -> Vec<String> {
    let inbox = bot.json(["inbox", "-n", "100"]);
    inbox.as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

/// Returns a number from the journal, to compare it with the commands' output.
fn in_the_journal(bot: &TestBot, sql: &str) -> f64 {
    let journal = rusqlite::Connection::open(bot.path("state/journal.db")).unwrap();
    journal.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn no_runs_cost_nothing() {
    let said = TestBot::new().ok(["costs", "--json"]);
    assert!(said.contains("\"cost_usd\": 0.0") && !said.contains('-'), "{said}");
}

#[test]
fn many_at_once_start_no_more_than_the_cap_covers_and_none_after_a_restart() {
    let api = MessagesApi::answering(|_| Reply::Silence);
    let bot = bot(&api, "budget: { day: 1.00 }\n");
    let due = crate::support::bot::now();
    for n in 0..50 {
        let fields = "background: true\nisolated: true\nretry: 0\nallowed_tools: []\nmax_cost_usd: 0.10\n";
        bot.write(&format!("reminders/job{n}.md"), &crate::support::bot::reminder(due, fields, "Say it."));
    }
    let service = bot.start();
    service.until("the cap is taken and the rest is skipped", || {
        let skipped = in_the_journal(&bot, "SELECT 0.0 + count(*) FROM run WHERE state = 'skipped'");
        (skipped >= 40.0).then_some(())
    });
    const TAKEN: &str = "SELECT 0.0 + count(*) FROM run WHERE reserved_usd IS NOT NULL";
    assert_eq!(in_the_journal(&bot, TAKEN), 10.0);
    assert!(in_the_journal(&bot, "SELECT sum(reserved_usd) FROM run") < 1.001);
    let spent = &bot.json(["budget"])["caps"][0];
    assert!((spent["taken"].as_f64().unwrap() - 1.0).abs() < 0.001 && spent["spent"] == 0.0, "{spent:#}");
    service.kill();
    bot.until_no_processes();
    // An interrupted run counts with its cap, since its cost is unknown.
    let service = bot.start();
    service.until("every one has its outcome", || {
        let open = in_the_journal(&bot, "SELECT 0.0 + count(*) FROM occurrence WHERE outcome IS NULL");
        (open == 0.0).then_some(())
    });
    assert_eq!(in_the_journal(&bot, TAKEN), 10.0);
    // First the rest was only taken. Then the restart made it a cost.
    for begin in [
        "Jobs are skipped, and you are not answered, until a run ends: ",
        "Jobs are skipped, and you are not answered: ",
    ] {
        let once = notifications(&bot).iter().filter(|text| text.starts_with(begin)).count();
        assert_eq!(once, 1, "{:#?}", notifications(&bot));
    }
    // `budget` and `costs` agree on them.
    let (spent, costs) = (&bot.json(["budget"])["caps"][0]["spent"], bot.json(["costs"]));
    assert!((spent.as_f64().unwrap() - 1.0).abs() < 0.001, "{spent:#}");
    let unreported = costs["unreported_usd"].as_f64().unwrap();
    assert!(costs["cost_usd"] == 0.0 && (unreported - spent.as_f64().unwrap()).abs() < 1e-9, "{costs:#}");
    service.stop();
}

#[test]
fn a_run_that_used_up_its_money_says_what_set_its_limit() {
    let api = MessagesApi::answering(|_| Reply::bash("true"));
    let bot = bot(&api, "budget: { day: 0.05 }\n");
    let fields = "background: true\nisolated: true\nretry: 0\nallowed_tools: ['Bash(true)']\n";
    bot.write("routines/mail.md", &format!("---\ncron: '0 0 29 2 *'\n{fields}---\nSay it.\n"));
    let service = bot.start();
    let run = service.fire("mail");
    let error = run["error"].as_str().unwrap();
    assert!(error.contains("the limit of $0.005 was reached; it took $0.0"), "{error}");
    assert!(error.contains("hint: the limit is a tenth of `day` of the setting `budget`"), "{error}");
    service.stop();
}

#[test]
fn the_clients_own_figure_counts_and_all_say_the_same() {
    let api = MessagesApi::script([]);
    let bot = bot(&api, "budget: { day: 5.00, month: 60.00, run: 0.50 }\n");
    let service = bot.start();
    routine(&bot, "mail", "");
    let run = service.fire("mail");
    let cost = run["cost_usd"].as_f64().unwrap();
    assert!(cost > 0.0, "{run:#}");
    service.fire("mail");
    let caps = bot.json(["budget"])["caps"].clone();
    let costs = bot.json(["costs"]);
    let journal = in_the_journal(&bot, "SELECT sum(cost_usd) FROM run");
    for spent in [&caps[0]["spent"], &caps[1]["spent"], &costs["cost_usd"]] {
        assert!((spent.as_f64().unwrap() - journal).abs() < 1e-9, "{spent} {journal} {caps:#}");
    }
    assert_eq!((&caps[0]["of"], &caps[0]["cap"], &caps[1]["of"]), (&json!("day"), &json!(5.0), &json!("month")));
    assert!(notifications(&bot).is_empty(), "{:#?}", notifications(&bot));
    service.stop();
}

#[test]
fn a_job_stops_at_its_day_and_the_person_may_raise_the_budget() {
    let api = MessagesApi::script([]);
    let bot = bot(&api, "budget: { day: 0.02 }\n");
    let service = bot.start();
    routine(&bot, "mail", "max_cost_usd: 3.00\n");
    assert_eq!(service.fire("mail")["outcome"], "completed");
    // The client's figure replaces the reservation, which was less than the run's own cap.
    assert_eq!(in_the_journal(&bot, "SELECT 0.0 + count(reserved_usd) FROM run"), 0.0);
    assert!(in_the_journal(&bot, "SELECT sum(cost_usd) FROM run") > 0.0);
    // Pretends that the run cost nearly all of it.
    let spend = |usd: f64| {
        let journal = rusqlite::Connection::open(bot.path("state/journal.db")).unwrap();
        journal.execute("UPDATE run SET cost_usd = ?1 WHERE cost_usd IS NOT NULL", [usd]).unwrap();
    };
    spend(0.02);
    let run = service.fire("mail");
    let why = run["error"].as_str().unwrap();
    assert_eq!(run["outcome"], "skipped", "{run:#}");
    assert!(why.starts_with("budget: $0.02 of $0.02 of the day's budget are spent or taken, until "), "{why}");
    service.fire("mail");
    assert_eq!(
        notifications(&bot).iter().filter(|text| text.starts_with("Jobs are skipped")).count(),
        1,
        "{:#?}",
        notifications(&bot)
    );
    // A person who waits for an answer is notified.
    let answer = bot.run(["chat", "Hello?"]);
    assert!(
        notifications(&bot).iter().any(|text| text.starts_with("I was not asked: $0.02 of $0.02")),
        "{answer:?} {:#?}",
        notifications(&bot)
    );
    spend(0.042);
    let shown = bot.ok(["budget", "--day", "0.05"]);
    assert!(shown.contains("$0.042 of $0.05 spent; today ends "), "{shown}");
    assert_eq!(service.fire("mail")["outcome"], "completed");
    assert_eq!(
        notifications(&bot).iter().filter(|text| text.contains("At 100 % jobs are skipped")).count(),
        1,
        "{:#?}",
        notifications(&bot)
    );
    assert_eq!(bot.run(["budget", "--day", "0"]).code, 1);

    bot.ok(["budget", "--day", "100"]);
    routine(&bot, "own", "max_cost_day_usd: 0.01\n");
    assert_eq!(service.fire("own")["outcome"], "completed");
    spend(0.01);
    let run = service.fire("own");
    assert!(run["error"].as_str().unwrap().contains("of this job's `max_cost_day_usd`"), "{run:#}");
    let shown = bot.ok(["budget"]);
    assert!(shown.contains("\nown: $0.01 of $0.01 spent; today ends "), "{shown}");
    assert_eq!(bot.json(["budget"])["jobs"]["own"]["cap"], 0.01);
    assert_eq!(service.fire("mail")["outcome"], "completed");
    service.stop();
}

#[test]
fn jobs_stop_at_the_month_and_go_on_when_the_person_raises_it() {
    let api = MessagesApi::script([]);
    let bot = bot(&api, "budget: { day: 9.00, month: 10.00 }\n");
    let service = bot.start();
    routine(&bot, "mail", "");
    assert_eq!(service.fire("mail")["outcome"], "completed");
    // Pretends that all of it was spent on the first of the month, so that the day is free.
    let journal = rusqlite::Connection::open(bot.path("state/journal.db")).unwrap();
    let first = "strftime('%s', 'now', 'start of month') * 1000";
    let spent = format!("UPDATE run SET cost_usd = 10.0, launched = {first}, started = {first}, ended = {first}");
    journal.execute(&spent, []).unwrap();
    let day_is_spent = bot.json(["budget"])["caps"][0]["spent"].as_f64().unwrap() > 9.0;
    let run = service.fire("mail");
    let why = run["error"].as_str().unwrap();
    // On the first itself the day stops them as well, and before.
    let period = if day_is_spent { "$9.00 of the day's" } else { "$10.00 of $10.00 of the month's" };
    assert!(run["outcome"] == "skipped" && why.contains(period), "{run:#}");
    assert!(bot.ok(["why", "mail"]).contains("budget"), "{}", bot.ok(["why", "mail"]));
    bot.ok(["budget", "--day", "30", "--month", "20"]);
    assert_eq!(service.fire("mail")["outcome"], "completed");
    assert!(bot.ok(["budget"]).contains("of $20.00"), "{}", bot.ok(["budget"]));
    service.stop();
}

/// Returns the cap in a command line.
fn cap_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<f64> {
    let mut words = words.into_iter().skip_while(|word| *word != "--max-budget-usd");
    words.nth(1).map(|dollars| dollars.parse().unwrap())
}

#[test]
fn a_dry_run_shows_the_cap_that_a_run_gets_and_what_would_hold_it() {
    let api = MessagesApi::answering(|_| Reply::Silence);
    let bot = bot(&api, "budget: { day: 0.80 }\n");
    routine(&bot, "own", "max_cost_usd: 0.70\nmax_cost_day_usd: 0.5\n");
    routine(&bot, "rest", "max_cost_usd: 0.70\n");
    routine(&bot, "small", "approve: true\n");
    for (id, outcome) in [("sum", "any"), ("alarm", "failed")] {
        let fields = format!("after: {{ job: own, outcome: {outcome} }}\nclient: notify\n");
        bot.write(&format!("routines/{id}.md"), &format!("---\n{fields}---\nIt has ended.\n"));
    }
    let dry = |id: &str| bot.json(["fire", id, "--dry-run"]);
    let shown = |id: &str| {
        let dry = dry(id);
        let words: Vec<&str> = dry["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        assert_eq!(cap_of(words.iter().copied()), dry["max_cost_usd"].as_f64(), "{dry:#}");
        dry["max_cost_usd"].as_f64()
    };
    let service = bot.start();
    // The smallest cap counts: the run's own, the job's for the day, or the rest of the common budget.
    assert_eq!([shown("own"), shown("rest"), shown("small")], [Some(0.5), Some(0.7), Some(0.08)]);
    for (id, cap) in [("own", 0.5), ("rest", 0.3)] {
        let found = shown(id).unwrap();
        assert!((found - cap).abs() < 1e-9, "{id}: {found}");
        bot.ok(["fire", id]);
        let run = service.until("its client is started", || {
            let run = bot.runs(id).pop()?["run"].as_str()?.to_owned();
            clients(bot.home()).into_iter().find(|(of, _)| *of == run)
        });
        let given = cap_of(run.1.iter().map(String::as_str)).unwrap();
        assert!((given - cap).abs() < 1e-9, "{run:?}");
        let taken = format!("SELECT reserved_usd FROM run WHERE run = '{}'", run.0);
        assert!((in_the_journal(&bot, &taken) - cap).abs() < 1e-9);
    }
    let held = dry("small")["held"].clone();
    let all =
        "it would be skipped: $0.00 of $0.80 of the day's budget are spent, $0.80 taken by runs that have not ended";
    let asks = "when it falls due it asks you first (`approve`); fired by hand it does not";
    assert_eq!((held, shown("small")), (json!([all, asks]), None));
    assert_eq!(dry("own")["followed_by"], json!(["alarm", "sum"]));
    let text = bot.ok(["fire", "own", "--dry-run"]);
    assert!(text.starts_with("Before it starts\nit would be skipped: "), "{text}");
    assert!(
        text.contains("\nAfter it\n`alarm` falls due when it has failed\n`sum` falls due when it has ended\n"),
        "{text}"
    );
    service.kill();
}

#[test]
fn tokens_of_a_day_are_for_subscriptions() {
    let api = MessagesApi::script([]);
    let bot = bot(&api, "budget: { tokens_day: 100 }\n");
    let service = bot.start();
    routine(&bot, "mail", "");
    assert_eq!(service.fire("mail")["outcome"], "completed");
    let run = service.fire("mail");
    assert!(run["error"].as_str().unwrap().contains("of 100 tokens of the day's budget"), "{run:#}");
    bot.ok(["budget", "--tokens", "1000000"]);
    assert_eq!(bot.json(["budget"])["caps"][0]["cap"], 1_000_000.0);
    assert_eq!(service.fire("mail")["outcome"], "completed");
    service.stop();
}

#[test]
fn what_a_gate_spawns_is_paid_for_by_its_job() {
    let api = MessagesApi::answering(|_| Reply::say("Looked."));
    let bot = bot(&api, "");
    let gate = "gate: \"ollim-bot spawn -m 'Look.'; echo spawned; exit 1\"\n";
    let fields = format!("{gate}max_cost_day_usd: 0.30\nallowed_tools:\n  - Bash(ollim-bot spawn *)\n");
    bot.write(
        "routines/looks.md",
        &format!("---\ncron: '0 0 29 2 *'\nbackground: true\nisolated: true\n{fields}---\nSay it.\n"),
    );
    let service = bot.start();
    let run = service.fire("looks");
    assert_eq!(run["outcome"], "skipped", "{run:#}");
    const OF_AGENTS: &str =
        "SELECT 0.0 + count(*) FROM run r JOIN occurrence o ON o.number = r.occurrence WHERE o.kind = 'session'";
    service.until("its agent has ended", || {
        (in_the_journal(&bot, &format!("{OF_AGENTS} AND r.ended IS NOT NULL")) == 1.0).then_some(())
    });
    assert_eq!(in_the_journal(&bot, &format!("{OF_AGENTS} AND r.payer = 'looks'")), 1.0);
    service.stop();
}

#[test]
fn a_run_that_is_cut_off_counts_tokens_as_well() {
    let api = MessagesApi::answering(|_| Reply::Silence);
    let bot = bot(&api, "budget: { tokens_day: 100 }\n");
    routine(&bot, "mail", "");
    let service = bot.start();
    bot.ok(["fire", "mail"]);
    service.until("it has asked", || (!api.all().is_empty()).then_some(()));
    let spent = |of: &str| bot.json(["budget"])["caps"][0][of].as_f64().unwrap();
    assert_eq!((spent("spent"), spent("taken")), (0.0, 10.0));
    service.kill();
    bot.until_no_processes();
    assert_eq!(spent("spent") + spent("taken"), 10.0);
    // The next start finds the run ended and runs it again.
    let service = bot.start();
    service.until("it is asked again", || (spent("spent") >= 10.0 && spent("taken") == 10.0).then_some(()));
    service.kill();
}

/// A button on the phone also raises the cap of tokens.
#[test]
fn spent_tokens_are_raised_by_a_button() {
    let api = MessagesApi::answering(|_| Reply::say("Hello."));
    let bot = bot_with_phone(&api);
    let settings = bot.read("config.yaml").unwrap();
    bot.write("config.yaml", &format!("{settings}timezone: UTC\nbudget: {{ tokens_day: 100 }}\n"));
    routine(&bot, "mail", "");
    let service = bot.start();
    assert_eq!(service.fire("mail")["outcome"], "completed");
    let journal = rusqlite::Connection::open(bot.path("state/journal.db")).unwrap();
    let tokens =
        r#"UPDATE run SET tokens = '{"input":120,"cache_read":0,"cache_write":0,"output":0}' WHERE tokens IS NOT NULL"#;
    journal.execute(tokens, []).unwrap();
    assert_eq!(service.fire("mail")["outcome"], "skipped");
    let phone = Phone { bot: &bot, service: &service };
    let message = phone.next_message("Jobs are skipped");
    phone.press(&message, "Raise today to 150 tokens");
    phone.next_message("Raised to 150 tokens until the day ends.");
    assert_eq!(service.fire("mail")["outcome"], "completed");
    service.stop();
    bot.until_no_processes();
}

/// A button on the phone raises the cap for the period that its message is about.
#[test]
fn a_spent_budget_is_raised_by_a_button() {
    let api = MessagesApi::answering(|_| Reply::say("Hello."));
    let bot = bot_with_phone(&api);
    let settings = bot.read("config.yaml").unwrap();
    bot.write("config.yaml", &format!("{settings}timezone: UTC\nbudget: {{ day: 0.01, run: 0.01 }}\n"));
    routine(&bot, "mail", "");
    let service = bot.start();
    assert_eq!(service.fire("mail")["outcome"], "completed");
    let journal = rusqlite::Connection::open(bot.path("state/journal.db")).unwrap();
    journal.execute("UPDATE run SET cost_usd = 0.01 WHERE cost_usd IS NOT NULL", []).unwrap();
    assert_eq!(service.fire("mail")["outcome"], "skipped");
    let phone = Phone { bot: &bot, service: &service };
    let message = phone.next_message("Jobs are skipped");
    phone.press(&message, "Raise today to $0.02");
    phone.next_message("Raised to $0.02 until the day ends.");
    assert_eq!(bot.json(["budget"])["caps"][0]["cap"], 0.02);
    assert_eq!(service.fire("mail")["outcome"], "completed");
    // Pressing it again does not lower a cap that was raised since.
    bot.ok(["budget", "--day", "5"]);
    phone.press(&message, "Raise today to $0.02");
    phone.next_message("It is raised already.");
    assert_eq!(bot.json(["budget"])["caps"][0]["cap"], 5.0);
    // A button of another day raises nothing.
    let text = "replace(rich, ':' || substr(rich, instr(rich, 'raise:day:') + 10, 10) || ':', ':2020-01-01:')";
    journal.execute(&format!("UPDATE message SET rich = {text} WHERE rich LIKE '%raise:day:%'"), []).unwrap();
    phone.press(&message, "Raise today to $0.02");
    phone.next_message("that day is over, so its budget is not raised");
    service.stop();
    bot.until_no_processes();
}
