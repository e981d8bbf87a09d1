//! A hostile job against the features that start, gate and chain jobs and keep their state: commands, gates, watched folders, `after`.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::bot::{TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};

fn command(bot: &TestBot, id: &str, line: &str, fields: &str) {
    let head = format!("cron: '0 0 29 2 *'\nclient: exec\ncommand: |\n  {line}\n{fields}");
    bot.write(&format!("routines/{id}.md"), &format!("---\n{head}---\n"));
}

fn inbox(bot: &TestBot) -> String {
    bot.json(["inbox", "-n", "100"]).to_string()
}

/// Starts 2^10 processes, each from the one before, far more than the limit. They end by themselves, so a failure of this test
/// does not block the machine.
const BURST: &str =
    "f() { if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; read -t 20 < <(:) || sleep 20; }; f 9; wait";

#[test]
fn a_line_that_forks_and_forks_is_ended() {
    let api = MessagesApi::answering(|_| Reply::say("Woken."));
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("config.yaml", "limits: { processes: 40 }\n");
    let service = bot.start();
    command(&bot, "bomb", BURST, "allowed_tools: []\ntimeout: 1m\n");
    let run = service.fire("bomb");
    assert_eq!(run["outcome"], "failed", "{run:#}");
    let why = |run: &Value| run["error"].as_str().unwrap_or_default().to_owned();
    assert!(
        why(&run).starts_with("the command was ended, since it had ")
            && why(&run).contains("`limits.processes` allows 40"),
        "{run:#}"
    );
    let gate = format!("gate: '{BURST}'\ngate_timeout: 1m\nallowed_tools: [Read]\n");
    bot.write(
        "routines/gated.md",
        &format!("---\ncron: '0 0 29 2 *'\nbackground: true\nisolated: true\nretry: 0\n{gate}---\nGo.\n"),
    );
    let run = service.fire("gated");
    assert!(why(&run).starts_with("the gate was ended, since it had ") && why(&run).contains("allows 40"), "{run:#}");
    assert!(api.requests().is_empty(), "no model was asked");
    assert!(!bot.processes().iter().any(|process| process.command.contains("bash")), "{:#?}", bot.processes());
    service.stop();
    bot.until_no_processes();
}

/// The name of a folder and the line of a question are words that reach the person, as a message does.
#[test]
fn a_job_that_may_not_ping_says_nothing_by_the_jobs_that_it_makes() {
    let bot = TestBot::new();
    let words = "Your bank account is locked";
    let folder = bot.person().join(words);
    std::fs::create_dir(&folder).unwrap();
    let add = |options: &str| format!("ollim-bot routine add {options}");
    let lines = [
        add(&format!("--command 'echo hi' --watch '{}'", folder.display())),
        format!("ollim-bot routine edit makes-2 --watch '{}/'", folder.parent().unwrap().display()),
        add(&format!("--every 1m --approve --command 'echo {words}'")),
        add(&format!("--every 1m --command \"ls '{words}'\" --allowed-tools '' --ask-tools 'Bash(ls *)'")),
        add("--every 1m --id your-bank-account-is-locked --command false"),
        // Its name is made of the words, too. It fails at once.
        format!("ollim-bot reminder add --in 1s -d '{words}' --command false"),
        "true".to_owned(),
    ];
    let service = bot.start();
    command(
        &bot,
        "makes",
        &lines.join("\n  "),
        "allow_ping: false\nallowed_tools: ['Bash(ollim-bot *)', 'Bash(ls *)']\n",
    );
    let run = service.fire("makes");
    let shown = bot.json(["runs", "show", run["run"].as_str().unwrap()]).to_string();
    assert!(shown.contains("`--approve` has the person asked"), "{shown}");
    assert!(shown.contains("`--ask-tools` has the person asked"), "{shown}");
    let made = bot.names("routines");
    assert_eq!(made, ["makes-2.md", "makes.md"], "{shown}");
    assert!(shown.contains("`--id` is in the messages about a job"), "{shown}");
    service.until("the watch is reported", || inbox(&bot).contains("routine makes-2 sees no changes").then_some(()));
    service.until("the reminder fails", || inbox(&bot).contains("reminder makes-3 failed").then_some(()));
    let inbox = inbox(&bot);
    assert!(!inbox.contains(words) && !inbox.contains("bank"), "{inbox}");
    assert_eq!(inbox.matches("sees no changes").count(), 1, "{inbox}");
    service.stop();
}

/// A job makes jobs that fail, since the service tells the person of failures.
#[test]
fn a_job_sends_no_flood_of_its_own_words_by_jobs_that_fail() {
    let bot = TestBot::new();
    let service = bot.start();
    let line =
        "for i in $(seq 12); do ollim-bot reminder add --in 1s --id made-$i --command 'echo URGENT; exit 3'; done";
    command(&bot, "floods", line, "allowed_tools: ['Bash(ollim-bot reminder *)']\n");
    let run = service.fire("floods");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    service.until("all have failed", || (bot.names("reminders/failed").len() == 12).then_some(()));
    let told = inbox(&bot);
    assert_eq!((told.matches(" failed: ").count(), told.contains("URGENT")), (5, false), "{told}");
    // The person sees the words where they look for them, and learns that there is more.
    let run = bot.runs("made-1")[0]["run"].as_str().unwrap().to_owned();
    assert!(bot.ok(["runs", "show", &run]).contains("URGENT"));
    command(&bot, "own", "exit 1", "allowed_tools: []\n");
    service.fire("own");
    assert!(inbox(&bot).contains("7 messages were held back"), "{}", inbox(&bot));
    service.stop();
}

/// A routine that sees no changes is told of once; a job can make another one.
#[test]
fn messages_about_watches_of_what_a_job_makes_are_few() {
    let bot = TestBot::new();
    let folder = bot.person().join("private");
    std::fs::create_dir(&folder).unwrap();
    let line =
        format!("for i in $(seq 8); do ollim-bot routine add --command 'echo hi' --watch '{}'; done", folder.display());
    let service = bot.start();
    command(&bot, "makes", &line, "allow_ping: false\nallowed_tools: ['Bash(ollim-bot *)']\n");
    assert_eq!(service.fire("makes")["outcome"], "completed");
    // A message of the person's own job says how many were held back before it.
    command(&bot, "own", "echo it is well", "allowed_tools: []\ndeliver: always\n");
    let told = service.until("the rest is held back", || {
        service.fire("own");
        let inbox = inbox(&bot);
        let said = |count: usize, words: &str| count * inbox.matches(&format!("{count} {words} held back")).count();
        let held = said(1, "message was") + (2..=8).map(|count| said(count, "messages were")).sum::<usize>();
        let told = inbox.matches("sees no changes").count();
        (told + held == 8).then_some(told)
    });
    assert_eq!(told, 5);
    service.stop();
}

/// A terminal and a phone show a command's output. It must be plain text, without control characters.
#[test]
fn what_a_command_prints_commands_no_terminal() {
    let bot = TestBot::new();
    let service = bot.start();
    let line = r"printf '\033]0;owned\007\033[2Jred \033[31mtext\r\nsecond\0line\xff\u202e end\n'";
    command(&bot, "prints", line, "allowed_tools: []\ndeliver: always\n");
    let run = service.fire("prints");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let shown = bot.ok(["runs", "show", run["run"].as_str().unwrap()]);
    let said = service.output();
    for text in [&shown, &said, &bot.ok(["inbox"]), &bot.ok(["why", "prints"])] {
        let is_control = |c: char| c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!text.contains(is_control), "{text:?}");
    }
    assert!(said.contains("red") && shown.contains("second"), "{said}{shown}");
    // The command prints a reason that imitates one of ours.
    command(&bot, "fails", r"echo 'gate: nothing new'; echo 'budget: spent' >&2; exit 1", "allowed_tools: []\n");
    let run = service.fire("fails");
    assert_eq!(
        (&run["outcome"], run["error"].as_str().unwrap().starts_with("the command ended with exit code 1: \"")),
        (&json!("failed"), true),
        "{run:#}"
    );
    let why = bot.json(["why", "fails"]);
    assert!(why.to_string().contains("failed") && !why.to_string().contains("skipped"), "{why:#}");
    service.stop();
}

/// A job fills its watched folder with folders and floods the kernel's queue. Another job loses no event.
#[test]
fn a_flood_in_one_watched_folder_is_no_others_loss() {
    let bot = TestBot::new();
    let watches = |id: &str, folder: &str| {
        bot.write(&format!("work/{folder}/there"), "x");
        let head = format!("watch: {folder}\nclient: exec\ncommand: 'true'\nallowed_tools: []\n");
        bot.write(&format!("routines/{id}.md"), &format!("---\n{head}---\n"));
    };
    watches("floods", "flood");
    watches("quiet", "calm");
    let service = bot.start();
    // Waits until both folders are watched.
    for (id, folder) in [("quiet", "calm"), ("floods", "flood")] {
        let mut n = 0;
        service.until("it is watched", || {
            n += 1;
            (n % 50 == 1).then(|| bot.write(&format!("work/{folder}/first"), &n.to_string()));
            bot.runs(id).iter().any(|run| !run["ended"].is_null()).then_some(())
        });
    }
    let quiet = bot.runs("quiet").len();
    for n in 0..2100 {
        std::fs::create_dir(bot.path(&format!("work/flood/d{n}"))).unwrap();
    }
    let file = bot.path("work/flood/there");
    for n in 0..8_000 {
        // The events alternate, since the kernel merges equal events in a row.
        std::fs::write(&file, "x").unwrap();
        if n % 2 == 0 {
            std::fs::rename(&file, file.with_extension("a")).unwrap();
            std::fs::rename(file.with_extension("a"), &file).unwrap();
        }
    }
    std::fs::write(bot.path("work/calm/news"), "x").unwrap();
    let occasion = service.until("the other one is told", || {
        let runs = bot.runs("quiet");
        let run = runs.iter().find(|run| run["occasion"]["files"].to_string().contains("news"))?;
        Some(run["occasion"].clone())
    });
    assert_eq!((&occasion["files"], &occasion["lost"]), (&json!(["news"]), &json!(false)), "{occasion:#}");
    assert!(bot.runs("quiet").len() <= quiet + 2, "{:#?}", bot.runs("quiet"));
    service.until("the person is told of the folders", || {
        inbox(&bot).contains("routine floods sees no changes: flood has too many folders").then_some(())
    });
    let named = |run: &Value| run["occasion"]["files"].as_array().map_or(0, Vec::len);
    assert!(bot.runs("floods").iter().all(|run| named(run) <= 50), "a prompt names 50 at most");
    service.stop();
}

/// A job creates jobs that follow each other. Each is allowed by itself; together with the job they would form an endless chain.
#[test]
fn jobs_that_a_job_makes_and_follows_come_to_an_end() {
    let bot = TestBot::new();
    let add = |id: &str, after: &str| {
        format!("ollim-bot routine add -m Go --id {id} --after {after} --background --client exec --command true")
    };
    let line = format!("{}; {}; true", add("a", "maker"), add("b", "a"));
    let tools = "allowed_tools: ['Bash(ollim-bot routine add *)']\n";
    let maker = |when: &str| {
        let head = format!("{when}\nclient: exec\ncommand: {line}\n{tools}");
        bot.write("routines/maker.md", &format!("---\n{head}---\n"));
    };
    maker("cron: '0 0 29 2 *'");
    let service = bot.start();
    // Whether they follow the run that created them depends on when their files are read. Each follows the next run once.
    service.fire("maker");
    service.until_ended("maker", 1);
    service.until("both are read", || (bot.json(["routine", "list"]).as_array()?.len() == 3).then_some(()));
    bot.ok(["fire", "maker", "--wait"]);
    let count = |id: &str| bot.runs(id).len();
    let ended = || bot.json(["runs"]).as_array().unwrap().iter().all(|run| !run["ended"].is_null());
    service.until("each follows", || (count("b") > 0 && count("b") == count("a") && ended()).then_some(()));
    assert!(count("b") <= 2, "{}", bot.ok(["runs"]));
    let before = bot.json(["runs"]).as_array().unwrap().len();
    // The person closes the cycle: all three are refused, and nothing follows a run that is fired by hand.
    maker("after: b");
    service.until("the circle is seen", || bot.run(["check"]).stdout.contains("so none of them fires").then_some(()));
    bot.run(["fire", "maker", "--wait"]);
    bot.run(["fire", "a", "--wait"]);
    let runs = bot.json(["runs"]).as_array().unwrap().len();
    assert!(runs <= before + 2, "{}", bot.ok(["runs"]));
    service.stop();
}

/// Files of jobs that follow each other in a cycle.
#[test]
fn jobs_that_follow_each_other_in_a_circle_do_not_fire() {
    let bot = TestBot::new();
    for (id, after) in [("a", "c"), ("b", "a"), ("c", "b")] {
        let head =
            format!("after: {{ job: {after}, outcome: any }}\nclient: exec\ncommand: 'true'\nallowed_tools: []\n");
        bot.write(&format!("routines/{id}.md"), &format!("---\n{head}---\n"));
    }
    let checked = bot.run(["check"]);
    let refused = format!("{}{}", checked.stdout, checked.stderr);
    assert!(refused.contains("follow") && refused.contains("error"), "{refused}");
    let service = bot.start();
    // A cycle is refused as files. No job in it fires after another.
    bot.run(["fire", "a", "--wait"]);
    bot.write("routines/d.md", "---\nafter: d\nclient: exec\ncommand: 'true'\nallowed_tools: []\n---\n");
    bot.run(["fire", "d", "--wait"]);
    let runs: usize = ["a", "b", "c", "d"].iter().map(|id| bot.runs(id).len()).sum();
    assert!(runs <= 2, "{runs}");
    service.stop();
}

/// A job that was talked into something keeps no right in the jobs that it made.
#[test]
fn what_a_job_loses_is_lost_to_the_jobs_that_it_made() {
    let bot = TestBot::new();
    let service = bot.start();
    let all = "allowed_tools: ['Bash(ollim-bot routine add *)', 'Bash(touch *)', 'Bash(mkdir *)']\n";
    let line = "ollim-bot routine add --id made --cron '@yearly' --command 'touch file'";
    command(&bot, "makes", line, all);
    assert_eq!(service.fire("makes")["outcome"], "completed");
    assert_eq!(service.fire("made")["outcome"], "completed");
    assert!(!bot.ok(["check"]).contains("made.md"));

    std::fs::remove_file(bot.path("work/file")).unwrap();
    command(&bot, "makes", line, "allowed_tools: ['Bash(ollim-bot routine add *)', 'Bash(mkdir *)']\n");
    let run = service.fire("made");
    assert_eq!((run["outcome"].as_str(), bot.names("work").len()), (Some("failed"), 0), "{run:#}");
    let error = run["error"].as_str().unwrap();
    assert!(error.contains("routine made has more rights than the job that made it"), "{run:#}");
    let why = "`Bash(touch *)` is more than routine makes";
    for command in [&["policy", "explain", "made", "--command", "touch file"][..], &["check"]] {
        let said = bot.run(command);
        assert!(format!("{}{}", said.stdout, said.stderr).contains(why), "{said:?}");
    }

    // A maker with an error lets nothing run.
    bot.write("routines/makes.md", "---\ncron: [\n---\n");
    let run = service.fire("made");
    assert_eq!((run["outcome"].as_str(), bot.names("work").len()), (Some("failed"), 0), "{run:#}");
    assert!(run["error"].as_str().unwrap().contains("the file of `makes` has an error"), "{run:#}");

    // One that is gone counts as it ran last: a reminder that a job has made comes though the job is deleted.
    std::fs::remove_file(bot.path("routines/makes.md")).unwrap();
    assert_eq!(service.fire("made")["outcome"], "completed");
    let checked = bot.ok(["check"]);
    assert!(checked.contains("`makes`, which made it, is gone"), "{checked}");
    service.stop();
}

/// A reminder is gone once it has fired. What the person took from it before does not come back then.
#[test]
fn what_a_reminder_lost_stays_lost_to_what_it_made() {
    let bot = TestBot::new();
    let service = bot.start();
    let once = |days: i64, line: &str, fields: &str| {
        let fields = format!("background: true\nclient: exec\ncommand: \"{line}\"\n{fields}");
        bot.write("reminders/once.md", &reminder(now() + TimeDelta::days(days), &fields, "x"));
        assert_eq!(service.fire("once")["outcome"], "completed");
        service.until("it is gone", || bot.read("reminders/once.md").is_none().then_some(()));
    };
    let add = "ollim-bot routine add --id made --cron '@yearly' --command 'touch file'";
    once(1000, add, "allowed_tools: ['Bash(ollim-bot routine add *)', 'Bash(touch *)']\n");
    assert_eq!(service.fire("made")["outcome"], "completed");
    std::fs::remove_file(bot.path("work/file")).unwrap();
    once(1001, "true", "allowed_tools: []\n");
    let run = service.fire("made");
    assert_eq!((run["outcome"].as_str(), bot.names("work").len()), (Some("failed"), 0), "{run:#}");
    service.stop();
}

/// A chain's checks have names of their own, and what they make is made by the first.
#[test]
fn what_a_waiting_check_lost_is_lost_to_what_its_chain_made() {
    let bot = TestBot::new();
    let service = bot.start();
    let check = |tools: &str| {
        let fields = format!(
            "background: true\nclient: exec\ncommand: 'true'\nmax_chain: 5\nchain_depth: 1\nchain_parent: first\n{tools}"
        );
        bot.write("reminders/first-2.md", &reminder(now() + TimeDelta::days(1000), &fields, "x"));
    };
    check("allowed_tools: ['Bash(touch *)']\n");
    command(&bot, "made", "touch file", "created_by: first\nallowed_tools: ['Bash(touch *)']\n");
    assert_eq!(service.fire("made")["outcome"], "completed");
    assert!(!bot.ok(["check"]).contains("is gone"), "its chain is waiting");
    std::fs::remove_file(bot.path("work/file")).unwrap();
    check("allowed_tools: []\n");
    let run = service.fire("made");
    assert_eq!((run["outcome"].as_str(), bot.names("work").len()), (Some("failed"), 0), "{run:#}");
    service.stop();
}

/// The service tells the person of what a silent job has made in its own words, and not often.
#[test]
fn a_silent_job_has_no_messages_sent_by_folders_and_switches() {
    let bot = TestBot::new();
    let service = bot.start();
    let words = "URGENT your bank account is locked";
    let line = format!(
        "mkdir -p 'out/{words}'\n  \
         ollim-bot routine add x --watch 'out/{words}' --client exec --command 'false'\n  \
         for i in $(seq 12); do ollim-bot reminder add --in 1s --command 'true' --disabled; done"
    );
    let tools = "allowed_tools: ['Bash(ollim-bot *)', 'Bash(mkdir *)', 'Read(**)', 'Edit(out/**)']\n";
    command(&bot, "silent", &line, &format!("allow_ping: false\ndeliver: never\n{tools}"));
    let run = service.fire("silent");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    service.fire("silent-2");
    service.until("the failure is told", || inbox(&bot).contains("has changed").then_some(()));
    assert!(!inbox(&bot).contains("bank"), "{}", inbox(&bot));
    let due = now() + TimeDelta::milliseconds(1500);
    service.until("their times have passed", || (now() > due).then_some(()));
    let on = "for i in $(seq 3 14); do ollim-bot reminder edit silent-$i --enabled; done";
    command(&bot, "silent", on, &format!("allow_ping: false\ndeliver: never\n{tools}"));
    service.fire("silent");
    service.until("all are put aside", || (bot.names("reminders/failed").len() == 12).then_some(()));
    let told = inbox(&bot).matches("was disabled when it fell due").count();
    assert!(told <= 5, "{told}");
    service.stop();
}
