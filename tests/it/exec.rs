//! `client: exec`: the effects of a command, the record and the messages about it, and its limits.

use std::path::Path;

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};

fn text(command: &str, fields: &str) -> String {
    format!(
        "---\ncron: '0 0 29 2 *'\nclient: exec\ncommand: {}\n{fields}---\n",
        serde_json::to_string(command).unwrap()
    )
}

/// Writes a routine that never falls due by itself.
fn routine(bot: &TestBot, id: &str, command: &str, fields: &str) {
    bot.write(&format!("routines/{id}.md"), &text(command, fields));
}

/// Fires a job and waits for its end. Returns the run as `runs show` shows it.
#[track_caller]
fn fire(bot: &TestBot, service: &Service<'_>, id: &str) -> Value {
    let run = service.fire(id);
    assert!(!run["ended"].is_null(), "{run:#}");
    bot.json(["runs", "show", run["run"].as_str().unwrap()])
}

fn inbox(bot: &TestBot) -> Vec<String> {
    let messages = bot.json(["inbox", "-n", "1000"]);
    messages.as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

/// Returns the recorded output of a run.
pub fn printed(run: &Value) -> String {
    let events = run["events"].as_array().unwrap().iter();
    events.filter(|event| event["event"] == "printed").map(|event| event["text"].as_str().unwrap()).collect()
}

const NONE: &str = "allowed_tools: []\n";

/// What is prepared for a command is what its run uses, and nothing of it stays where no run begins.
#[test]
fn a_command_that_falls_due_has_one_folder() {
    let bot = TestBot::new();
    let due = now() + TimeDelta::seconds(4);
    let fields = "background: true\nclient: exec\ncommand: echo done\nallowed_tools: []\n";
    bot.write("reminders/echoes.md", &reminder(due, fields, "x"));
    let service = bot.start();
    let runs = service.until_ended("echoes", 1);
    assert_eq!(runs[0]["outcome"], "completed", "{runs:#?}");
    assert_eq!(bot.names("state/runs"), [runs[0]["run"].as_str().unwrap()]);
    // It waits for the person, who is asked when it falls due. Nothing of its run begins before the answer.
    bot.write("reminders/asks.md", &reminder(now() + TimeDelta::seconds(3), &format!("{fields}approve: true\n"), "x"));
    let is_asked = || (!bot.json(["questions"]).as_array().unwrap().is_empty()).then_some(());
    service.until("the person is asked", is_asked);
    assert_eq!(bot.names("state/runs").len(), 1);
    service.stop();
}

/// What a maker may is read when the run begins, and not a moment before.
#[test]
fn a_maker_that_gets_less_at_the_last_moment_gives_less() {
    let bot = TestBot::new();
    let maker = |rules: &str| format!("---\ncron: '0 0 29 2 *'\nallowed_tools: [{rules}]\n---\nx\n");
    bot.write("routines/maker.md", &maker("Bash(cat *), Bash(ls *)"));
    bot.write("work/notes.md", "read\n");
    let service = bot.start();
    // A machine that is busy for longer than that tries again.
    let narrowed_in_time = (0..20).find_map(|round| {
        bot.write("routines/maker.md", &maker("Bash(cat *), Bash(ls *)"));
        let (id, due) = (format!("made-{round}"), now() + TimeDelta::milliseconds(1500));
        let fields =
            "background: true\nclient: exec\ncommand: cat notes.md\nallowed_tools: [Bash(cat *)]\ncreated_by: maker\n";
        bot.write(&format!("reminders/{id}.md"), &reminder(due, fields, "x"));
        while now() < due - TimeDelta::milliseconds(80) {
            std::thread::yield_now();
        }
        bot.write("routines/maker.md", &maker("Bash(ls *)"));
        let in_time = now() < due - TimeDelta::milliseconds(50);
        let runs = service.until_ended(&id, 1);
        in_time.then(|| bot.json(["runs", "show", runs[0]["run"].as_str().unwrap()]))
    });
    let run = narrowed_in_time.unwrap();
    assert_eq!((&run["outcome"], printed(&run).as_str()), (&json!("failed"), ""), "{run:#}");
    service.stop();
}

/// What was prepared for the earlier text is removed before the run begins, and not while it goes on.
#[test]
fn an_edit_at_the_last_moment_leaves_a_command_its_folder() {
    let bot = TestBot::new();
    let service = bot.start();
    let due = now() + TimeDelta::seconds(2);
    let fields = "background: true\nclient: exec\nallowed_tools: [Bash(cat *)]\n\
        command: sleep 1.5; echo kept > $TMPDIR/f && cat $TMPDIR/f\n";
    let mut edits = 0;
    while now() < due + TimeDelta::milliseconds(50) {
        edits += 1;
        bot.write("reminders/edited.md", &reminder(due, fields, &format!("edit {edits}")));
        bot.json(["next"]);
    }
    assert!(edits > 3, "{edits}");
    let runs = service.until_ended("edited", 1);
    let run = bot.json(["runs", "show", runs[0]["run"].as_str().unwrap()]);
    assert_eq!((&run["outcome"], printed(&run).as_str()), (&json!("completed"), "kept\n"), "{run:#}");
    assert_eq!(bot.names("state/runs"), [runs[0]["run"].as_str().unwrap()]);
    service.stop();
}

#[test]
fn the_exit_code_is_the_outcome_and_the_output_is_kept() {
    let bot = TestBot::new();
    let service = bot.start();
    routine(&bot, "well", "echo one; echo two >&2; echo $(( 40 + 2 ))", NONE);
    let run = fire(&bot, &service, "well");
    assert_eq!((&run["outcome"], &run["client"]), (&json!("completed"), &json!("exec")), "{run:#}");
    assert_eq!(printed(&run), "one\ntwo\n42\n", "{run:#}");
    routine(&bot, "mixed", "for n in 1 3 5 7; do echo $n; echo $((n + 1)) >&2; done", NONE);
    assert_eq!(printed(&fire(&bot, &service, "mixed")), "1\n2\n3\n4\n5\n6\n7\n8\n");
    assert!(inbox(&bot).is_empty(), "{:?}", inbox(&bot));
    for (id, command, why) in [
        (
            "code",
            "echo at first; echo broken; echo at last; exit 3",
            "the command ended with exit code 3: \"at first / ",
        ),
        ("silent", "exit 1", "the command ended with exit code 1"),
        ("missing", "no-such-program", "exit code 127: \"bash: line 1: no-such-program: command not found\""),
        ("signal", "kill -9 $$", "the command ended by signal 9"),
        ("refused", "curl -s https://example.com || true", "the command was refused a program: `curl -s"),
        ("hidden", "$(touch evil) true; true", "the command was refused a program: `touch evil`"),
    ] {
        routine(&bot, id, command, NONE);
        let run = fire(&bot, &service, id);
        assert_eq!(run["outcome"], "failed", "{run:#}");
        assert!(run["error"].as_str().unwrap().contains(why), "{run:#}");
        let told = inbox(&bot).pop().unwrap();
        assert!(told.starts_with(&format!("routine {id} failed: ")) && told.contains(why), "{told}");
    }
    assert_eq!(bot.runs("refused")[0]["denials"].as_array().unwrap().len(), 1);
    routine(&bot, "hangs", "echo begun; sleep 1000 & sleep 1000", "timeout: 1s\n");
    let run = fire(&bot, &service, "hangs");
    assert_eq!(run["outcome"], "timed_out", "{run:#}");
    assert_eq!(run["error"], "the command took longer than 1s (`timeout`) and was ended");
    assert_eq!(printed(&run), "begun\n");
    assert!(bot.read("work/evil").is_none());
    service.stop();
    bot.until_no_processes();
}

#[test]
fn of_a_long_output_the_beginning_and_the_end_are_kept() {
    let bot = TestBot::new();
    let service = bot.start();
    routine(&bot, "long", "for ((n = 0; n < 40000; n++)); do echo line $n; done", NONE);
    let kept = printed(&fire(&bot, &service, "long"));
    assert!(kept.starts_with("line 0\nline 1\n") && kept.ends_with("\nline 39998\nline 39999\n"), "{}", kept.len());
    assert!(kept.contains("bytes are left out here]\n") && kept.len() < 66 * 1024, "{}", kept.len());
    routine(&bot, "endless", "head -c 300000000 /dev/zero | tr '\\0' 'x'", NONE);
    let run = fire(&bot, &service, "endless");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    assert!(printed(&run).len() < 66 * 1024);
    // Processes that the command started do not outlive it.
    routine(&bot, "forks", "(trap '' HUP TERM; sleep 1000 > /dev/null 2>&1 &) ; echo up", "");
    assert_eq!(fire(&bot, &service, "forks")["outcome"], "completed");
    assert!(!format!("{:?}", bot.processes()).contains("sleep"), "{:#?}", bot.processes());
    // A program that had not started when the command ended produces no error.
    bot.write("work/notes/a", "");
    let fields = "client: exec\ncommand: touch made & until test -e notes/go; do :; done; echo x\n\
                  allowed_tools: [Read]\nask_tools: ['Bash(touch *)']\nask: { deadline: 10m }\n";
    bot.write("reminders/leaves.md", &reminder(now(), fields, ""));
    service.until("it is asked", || (bot.json(["questions"]) != json!([])).then_some(()));
    bot.write("work/notes/go", "");
    let run = service.until_ended("leaves", 1).remove(0);
    let run = bot.json(["runs", "show", run["run"].as_str().unwrap()]);
    assert_eq!((&run["outcome"], printed(&run).as_str()), (&json!("completed"), "x\n"), "{run:#}");
    service.stop();
    bot.until_no_processes();
}

#[test]
fn what_it_prints_can_be_followed_while_it_goes() {
    let bot = TestBot::new();
    let service = bot.start();
    bot.write("work/notes/a", "");
    let fields = "client: exec\ncommand: echo begun; until test -e notes/go; do sleep 0.1; done; echo over\n\
                  allowed_tools: ['Edit(notes/**)', 'Bash(sleep *)', Read]\ntimeout: 10m\n";
    bot.write("reminders/slow.md", &reminder(now(), fields, ""));
    let run = service.until("its first line is recorded", || {
        let run = bot.runs("slow").first()?["run"].as_str()?.to_owned();
        (printed(&bot.json(["runs", "show", &run])) == "begun\n").then_some(run)
    });
    assert!(bot.json(["runs", "show", &run])["ended"].is_null());
    bot.write("work/notes/go", "");
    service.until_ended("slow", 1);
    let shown = bot.ok(["runs", "show", &run]);
    assert!(shown.contains("printed   begun") && shown.contains("over"), "{shown}");
    service.stop();
}

#[test]
fn deliver_says_what_the_person_is_sent() {
    let bot = TestBot::new();
    let service = bot.start();
    let sent = |deliver: &str, command: &str| {
        let before = inbox(&bot).len();
        let id = format!("job{before}{}", bot.names("routines").len());
        routine(&bot, &id, command, &format!("{NONE}{deliver}\n"));
        fire(&bot, &service, &id);
        inbox(&bot).split_off(before).join("\n")
    };
    assert_eq!(sent("deliver: always", "echo two lines; echo of text"), "[bg] two lines\nof text");
    assert_eq!(sent("deliver: always", "true"), "");
    assert_eq!(sent("deliver: failure", "echo x"), "");
    assert_eq!(sent("deliver: never", "echo x"), "");
    assert_eq!(sent("deliver: digest", "echo x"), "[bg] x");
    for (deliver, told) in
        [("deliver: always", true), ("deliver: failure", true), ("deliver: never", false), ("allow_ping: false", false)]
    {
        let failed = sent(deliver, "echo the reason; exit 9");
        assert!(failed.contains("ended with exit code 9"), "{deliver}: it is told that it failed: {failed}");
        assert_eq!(failed.contains("the reason"), told, "{deliver}: {failed}");
    }
    let long = sent("deliver: always", "for ((n = 0; n < 1000; n++)); do echo line $n; done");
    assert!(long.starts_with("[bg] line 0\n") && long.len() < 4200, "{long}");
    // The command in the message shows the rest.
    let (_, named) = long.split_once("… `ollim-bot ").unwrap();
    let shown = bot.ok(named.split('`').next().unwrap().split(' '));
    assert!((0..1000).all(|n| shown.contains(&format!("line {n}\n"))), "{shown}");
    service.stop();
}

#[test]
fn it_is_tried_again_only_where_its_file_says_so() {
    let bot = TestBot::new();
    bot.write("reminders/plain.md", &reminder(now(), "client: exec\ncommand: exit 1\n", ""));
    bot.write("reminders/again.md", &reminder(now(), "client: exec\ncommand: exit 1\nretry: 1\n", ""));
    let service = bot.start();
    let plain = service.until_ended("plain", 1).remove(0);
    assert_eq!((&plain["outcome"], &plain["retry_at"]), (&json!("failed"), &Value::Null), "{plain:#}");
    let again = service.until_ended("again", 1).remove(0);
    assert_eq!(again["outcome"], "failed", "{again:#}");
    assert!(!again["retry_at"].is_null(), "{again:#}");
    service.until("it is kept", || bot.read("reminders/failed/plain.md"));
    service.stop();
}

#[test]
fn expected_files_are_expected_of_a_command_too() {
    let bot = TestBot::new();
    let service = bot.start();
    bot.write("work/notes/a", "");
    let fields = "allowed_tools: ['Edit(notes/**)']\nexpect: file notes/out\n";
    routine(&bot, "writes", "echo x > notes/out", fields);
    assert_eq!(fire(&bot, &service, "writes")["outcome"], "completed");
    routine(&bot, "idle", "true", fields);
    let run = fire(&bot, &service, "idle");
    assert!(run["error"].as_str().unwrap().starts_with("nothing was delivered: "), "{run:#}");
    service.stop();
}

#[test]
fn a_command_has_no_more_than_its_job() {
    let bot = TestBot::new();
    let service = bot.start();
    bot.write("work/secret", "xyzzy");
    bot.write("../person-secret", "xyzzy");
    let home = bot.home().display().to_string();
    for (id, command) in [
        ("reads", "cat secret; cat < secret".to_owned()),
        ("writes", "echo x > made".to_owned()),
        ("connects", "echo x > /dev/tcp/127.0.0.1/9".to_owned()),
        ("leaves", format!("echo 'timeout: 1s' >> {home}/config.yaml")),
        ("journal", format!("cat {home}/state/journal.db")),
        ("itself", format!("echo x >> {home}/routines/itself.md")),
        ("person", format!("cat {home}/../person-secret")),
        ("makes", "ollim-bot reminder add -m evil --in 1h".to_owned()),
        ("token", "cat /proc/$PPID/environ".to_owned()),
    ] {
        let file = text(&command, "allowed_tools: [Read(notes/**)]\n");
        bot.write(&format!("routines/{id}.md"), &file);
        let run = fire(&bot, &service, id);
        assert_eq!(run["outcome"], "failed", "{run:#}");
        assert!(!run.to_string().contains("xyzzy"), "{run:#}");
        assert_eq!(bot.read(&format!("routines/{id}.md")).as_deref(), Some(&*file));
    }
    assert_eq!(bot.names("work"), ["secret"]);
    assert_eq!((bot.read("config.yaml"), bot.names("reminders")), (None, vec![]));
    // Without a list the command has the main session's access: programs and work/, but neither the person's files nor ours.
    routine(&bot, "wide", "cp secret copy && touch made && cat copy", "");
    let run = fire(&bot, &service, "wide");
    assert_eq!((&run["outcome"], printed(&run).as_str()), (&json!("completed"), "xyzzy"), "{run:#}");
    for (id, command) in [
        ("wide-person", format!("cat {home}/../person-secret")),
        ("wide-journal", format!("cat {home}/state/journal.db")),
        ("wide-config", format!("touch {home}/config.yaml")),
    ] {
        routine(&bot, id, &command, "");
        let run = fire(&bot, &service, id);
        assert!(run["outcome"] == "failed" && !run.to_string().contains("xyzzy"), "{run:#}");
    }
    // The person is asked about the program. No answer is a denial.
    let asks = format!("{NONE}ask_tools: ['Bash(touch *)']\nask: {{ deadline: 1s }}\n");
    routine(&bot, "asks", "touch asked", &asks);
    let run = fire(&bot, &service, "asks");
    assert!(run["error"].as_str().unwrap().contains("refused a program: `touch asked`"), "{run:#}");
    assert!(bot.read("work/asked").is_none());
    service.stop();
}

/// The person knows of their own no: it is no failure, and nothing is sent about it.
#[test]
fn a_job_commits_as_the_author_that_the_person_names() {
    let mut bot = TestBot::new();
    for who in ["AUTHOR", "COMMITTER"] {
        bot = bot.env(&format!("GIT_{who}_NAME"), "Ada").env(&format!("GIT_{who}_EMAIL"), "ada@example.org");
    }
    let names = "GIT_AUTHOR_NAME, GIT_AUTHOR_EMAIL, GIT_COMMITTER_NAME, GIT_COMMITTER_EMAIL";
    bot.write("config.yaml", &format!("client_env: [{names}]\n"));
    let service = bot.start();
    let commit = "git init -q && git commit -q --allow-empty -m x && git log --format='%an <%ae>'";
    routine(&bot, "commits", commit, "allowed_tools: ['Bash(git *)', 'Edit(**)']\n");
    assert_eq!(printed(&fire(&bot, &service, "commits")), "Ada <ada@example.org>\n");
    service.stop();
}

/// Without an agent, the service delivers the texts of jobs. Those of a job that may send no message are no way around that.
#[test]
fn no_job_sends_more_words_by_what_it_makes() {
    let bot = TestBot::new();
    bot.write("routines/email-triage.md", "---\ncron: '@yearly'\n---\nSort.\n");
    let service = bot.start();
    let add = "ollim-bot reminder add --in 1s --background --isolated --allowed-tools '' -m";
    let quiet = "allowed_tools: ['Bash(ollim-bot *)']\nallow_ping: false\ndeliver: never\n";
    routine(&bot, "quiet", &format!("{add} 'FLOOD of words'"), quiet);
    assert_eq!(fire(&bot, &service, "quiet")["outcome"], "completed");
    let made = service.until_ended("quiet-2", 1).remove(0);
    let why = "it may send you no message (`allow_ping: false`), and without an agent its text would be one";
    assert!(made["error"].as_str().unwrap().starts_with(why), "{made:#}");
    assert!(!inbox(&bot).iter().any(|text| text.contains("FLOOD")), "{:?}", inbox(&bot));
    // Nor does it choose a name that stands in the messages about a job.
    let edit = "ollim-bot routine add --every 1h --command true --allowed-tools '' && ollim-bot routine edit names-2 --id DEAR-PERSON";
    routine(&bot, "names", edit, quiet);
    assert!(printed(&fire(&bot, &service, "names")).contains("`--id` is in the messages about a job"));

    // What a job that may send messages makes takes them from the budget.
    let loud = "allowed_tools: ['Bash(ollim-bot *)', mcp__bot__ping_user]\n";
    routine(&bot, "loud", &format!("for i in 1 2 3 4 5 6 7; do {add} \"WORDS $i\"; done"), loud);
    assert_eq!(fire(&bot, &service, "loud")["outcome"], "completed");
    for number in 1..=7 {
        assert_eq!(service.until_ended(&format!("words-{number}"), 1).remove(0)["outcome"], "completed");
    }
    let sent = inbox(&bot).into_iter().filter(|text| text.starts_with("[bg] WORDS")).count();
    assert_eq!(sent, 5, "{:?}", inbox(&bot));
    // Nor does it take the short name of the person's job, or that of the main session.
    for id in ["email", "e", "main"] {
        routine(&bot, "shadow", &format!("{add} x --id {id}"), loud);
        assert!(printed(&fire(&bot, &service, "shadow")).contains(&format!("error: `{id}`")), "{id}");
    }
    let watch =
        "for i in $(seq 17); do ollim-bot routine add --watch . --command true --allowed-tools ''; done | wc -l";
    routine(&bot, "watches", watch, loud);
    let run = fire(&bot, &service, "watches");
    assert!(printed(&run).contains("there are 16 jobs already that jobs have made and that watch a folder"), "{run:#}");
    let edit = "ollim-bot routine add x --every 24h --command true --allowed-tools '' --id w1 && ollim-bot routine edit w1 --watch .";
    routine(&bot, "edits", edit, loud);
    assert!(printed(&fire(&bot, &service, "edits")).contains("there are 16 jobs already"));
    service.stop();
}

/// The file of a chain's next check has a name, too.
#[test]
fn the_file_of_a_made_job_stands_for_no_job_of_the_person() {
    let bot = TestBot::new();
    bot.write("routines/email-triage.md", "---\ncron: '@yearly'\n---\nSort.\n");
    bot.maker("other");
    bot.write(
        "routines/email.md",
        "---\nid: cf1ddb3a\ncreated_by: other\ncron: '@yearly'\nbackground: true\n---\nSort.\n",
    );
    assert_eq!(bot.json(["routine", "show", "email"])["id"], "email-triage");
    assert_eq!(bot.json(["routine", "show", "cf1ddb3a"])["id"], "cf1ddb3a");
    bot.ok(["pause", "email"]);
    assert!(bot.read("routines/email-triage.md").unwrap().contains("enabled: false"));
    let service = bot.start();
    let chain = "background: true\ncreated_by: other\nmax_chain: 2\n";
    bot.write("reminders/mum.md", &reminder(now(), chain, "Call mum."));
    service.until_ended("mum", 1);
    let links = bot.json(["reminder", "list"]);
    let link = &links.as_array().unwrap()[0];
    assert_eq!(link["file"], format!("reminders/{}.md", link["id"].as_str().unwrap()), "{links:#}");
    service.stop();
}

#[test]
fn a_made_job_has_no_id_of_the_persons_in_other_letters() {
    let bot = TestBot::new();
    bot.write("routines/email-triage.md", "---\ncron: '@yearly'\n---\nSort.\n");
    let service = bot.start();
    for (id, is_taken) in [("email-triage", true), ("Email-Triage", true), ("EMAIL", true), ("post", false)] {
        let command = format!("ollim-bot reminder add --background --in 1h -m Look --id {id}");
        routine(&bot, "adds", &command, "allowed_tools: ['Bash(ollim-bot reminder add *)']\ndeliver: always\n");
        let said = printed(&fire(&bot, &service, "adds"));
        assert_eq!(said.contains(&format!("`{id}` is taken")), is_taken, "{id}: {said}");
        assert_eq!(bot.json(["reminder", "list"]).as_array().unwrap().len(), usize::from(!is_taken), "{id}: {said}");
    }
    service.stop();
}

#[test]
fn variables_of_any_length_do_not_fill_the_runner() {
    let bot = TestBot::new();
    let service = bot.start();
    let long = |names: &str| {
        format!("for n in {names}; do export $n=$(printf '%0100000d' 1); done; git --version || echo refused")
    };
    routine(&bot, "two", &long("CI DEBUG"), "allowed_tools: ['Bash(git *)']\n");
    routine(&bot, "three", &long("CI DEBUG NODE_ENV"), "allowed_tools: ['Bash(git *)']\n");
    assert!(!printed(&fire(&bot, &service, "two")).contains("refused"));
    let printed = printed(&fire(&bot, &service, "three"));
    assert!(printed.contains("denied, since its variables are too long; pass long values in a file"), "{printed}");
    assert!(printed.ends_with("refused\n"), "{printed}");
    service.stop();
}

#[test]
fn a_command_that_the_person_refuses_is_cancelled() {
    let bot = TestBot::new();
    bot.write("config.yaml", "timezone: UTC\nmax_concurrent_runs: 1\n");
    let fields = "client: exec\ncommand: touch asked || echo on\nallowed_tools: []\nretry: 2\n\
                  ask_tools: ['Bash(touch *)']\nask: { deadline: 10m }\n";
    bot.write("reminders/asks.md", &reminder(now(), fields, ""));
    let service = bot.start();
    let question = service.until("it is asked", || bot.json(["questions"])[0]["number"].as_i64());
    // Until the answer, it holds the only slot.
    bot.write("reminders/later.md", &reminder(now(), "client: exec\ncommand: echo on\nallowed_tools: []\n", ""));
    service.until("the other job waits", || bot.runs("later").first().map(drop));
    let status = bot.ok(["status"]);
    assert!(status.contains("1 question is open, and other jobs wait until it is answered"), "{status}");
    assert!(status.contains("waits for your answer"), "{status}");
    bot.ok(["questions", "answer", &question.to_string(), "deny"]);
    let run = service.until_ended("asks", 1).remove(0);
    service.until_ended("later", 1);
    assert_eq!(
        (&run["outcome"], run["error"].as_str().unwrap()),
        (&json!("cancelled"), "you were asked and said no to `touch asked`")
    );
    let told = bot.json(["inbox"]).to_string();
    assert!(!told.contains("failed"), "{told}");
    assert_eq!(bot.json(["status"])["failures"], json!([]), "{run:#}");
    service.stop();
}

/// A command may start our own commands under the rules that grant them.
#[test]
fn a_persons_command_calls_ollim_bot_as_its_rules_say() {
    let bot = TestBot::new();
    let service = bot.start();
    routine(
        &bot,
        "makes",
        "ollim-bot reminder add --in 1h --command 'ollim-bot reminder add --in 1h -m evil --background'",
        "allowed_tools: ['Bash(ollim-bot reminder *)']\n",
    );
    let run = fire(&bot, &service, "makes");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let made = bot.json(["reminder", "list"]).as_array().unwrap().clone();
    assert_eq!(made.len(), 1);
    let job = &made[0];
    assert_eq!((&job["created_by"], &job["client"]), (&json!("makes"), &json!("exec")), "{job:#}");
    assert_eq!(job["allowed_tools"], json!(["Bash(ollim-bot reminder *)"]));
    // A job that a command created creates no jobs itself.
    let run = fire(&bot, &service, job["id"].as_str().unwrap());
    assert_eq!(run["outcome"], "failed", "{run:#}");
    assert!(printed(&run).contains("is a command that another job made, and makes no jobs"), "{run:#}");
    service.stop();
}

/// An agent tries to get a command with more rights than its own: by a reminder, an edit, a follow-up and a spawned agent.
#[test]
fn a_run_makes_no_command_with_more_than_it_has() {
    let add = |rest: &str| Reply::bash(&format!("ollim-bot reminder add --in 1h {rest}"));
    let api = MessagesApi::script([
        add("--command 'touch evil' --allowed-tools 'Bash(touch *)'"),
        add("--command 'touch evil' --allowed-tools Bash"),
        add("--command 'echo spam' --deliver always"),
        add("--command 'echo x' --id evil"),
        add("--command 'touch evil' --deliver failure"),
        Reply::bash("ollim-bot reminder edit job-2 --deliver always"),
        Reply::bash("ollim-bot reminder edit job-2 --allowed-tools Bash"),
        Reply::bash("ollim-bot routine edit other --client exec --command 'touch evil'"),
        Reply::call(
            "mcp__discord__follow_up_chain",
            json!({ "minutes_from_now": 60, "client": "exec", "command": "touch evil" }),
        ),
        Reply::call("mcp__discord__spawn_agent", json!({ "message": "x", "client": "exec", "command": "touch evil" })),
        Reply::say("done"),
    ]);
    let bot = TestBot::with_client(&client::real(), api.url());
    let other = "---\ncron: '@yearly'\nbackground: true\nisolated: true\n---\nLook.\n";
    bot.write("routines/other.md", other);
    let fields = "background: true\nisolated: true\nallow_ping: false\nmax_turns: 30\nmax_chain: 2\nnetwork: none\nallowed_tools: \
                  ['Bash(ollim-bot reminder *)', 'Bash(ollim-bot routine *)', mcp__discord__follow_up_chain, mcp__discord__spawn_agent]\n";
    bot.write("reminders/job.md", &reminder(now(), fields, "Try."));
    let service = bot.start();
    service.until_ended("job", 1);
    let refused: Vec<bool> = api.last().results().iter().map(|result| result.is_error).collect();
    let results = format!("{:#?}", api.last().results());
    assert_eq!(refused[..8], [true, true, true, true, false, true, true, true], "{results}");
    assert_eq!(bot.read("routines/other.md").as_deref(), Some(other));
    let list = bot.json(["reminder", "list"]).as_array().unwrap().clone();
    let commands: Vec<&Value> = list.iter().filter(|job| job["client"] == "exec").collect();
    assert_eq!(commands.len(), 1, "{list:#?}");
    let made = commands[0];
    let rules = json!([
        "Bash(ollim-bot reminder *)",
        "Bash(ollim-bot routine *)",
        "mcp__discord__follow_up_chain",
        "mcp__discord__spawn_agent"
    ]);
    assert_eq!(made["allowed_tools"], rules, "{made:#}");
    assert_eq!((&made["allow_ping"], &made["network"]), (&json!(false), &json!("none")), "{made:#}");
    // The creator may send the person nothing, so none of its words reach the person.
    assert_eq!((&made["created_by"], &made["deliver"]), (&json!("job"), &json!("never")));
    let run = fire(&bot, &service, "job-2");
    assert!(run["error"].as_str().unwrap().contains("refused a program; `deliver: never` keeps its name"), "{run:#}");
    assert!(run["denials"].to_string().contains("touch evil"), "{run:#}");
    assert!(!inbox(&bot).iter().any(|told| told.contains("evil")), "{:?}", inbox(&bot));
    assert!(bot.read("work/evil").is_none());
    service.stop();
}

/// A command in a chain creates its follow-up, which has the same rights and no more.
#[test]
fn a_link_of_a_command_is_the_same_command() {
    let bot = TestBot::new();
    let fields = "client: exec\ncommand: ollim-bot follow-up-chain --in 60\nmax_chain: 2\nallowed_tools: ['Bash(ollim-bot follow-up-chain *)']\n\
                  network: none\n";
    bot.write("reminders/job.md", &reminder(now(), fields, "Look."));
    let service = bot.start();
    let run = service.until_ended("job", 1).remove(0);
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let link = bot.json(["reminder", "list"])[0].clone();
    let command = "ollim-bot follow-up-chain --in 60";
    assert_eq!((&link["client"], &link["command"]), (&json!("exec"), &json!(command)), "{link:#}");
    assert_eq!((&link["chain_depth"], &link["network"]), (&json!(1), &json!("none")), "{link:#}");
    assert_eq!(link["allowed_tools"], json!(["Bash(ollim-bot follow-up-chain *)"]));
    service.stop();
}

#[test]
fn it_runs_while_others_wait_for_a_login() {
    let api = MessagesApi::answering(|_| Reply::Error(401, "authentication_error"));
    let bot = TestBot::with_client(&client::real(), api.url());
    bot.write("reminders/work.md", &reminder(now(), "background: true\nisolated: true\n", "Work."));
    let service = bot.start();
    service.until("jobs wait for a login", || {
        (!bot.json(["status"])["daemon"]["waiting_for_login"].is_null()).then_some(())
    });
    bot.write("reminders/tidy.md", &reminder(now(), "client: exec\ncommand: echo tidy\n", ""));
    assert_eq!(service.until_ended("tidy", 1)[0]["outcome"], "completed");
    service.stop();
}

#[test]
fn one_outcome_when_the_service_is_killed_within_a_command() {
    let bot = TestBot::new();
    bot.write("work/notes/a", "");
    let fields = "client: exec\ncommand: echo >> notes/begun; sleep 1000 & sleep 1000\nallowed_tools: ['Edit(notes/**)', 'Bash(sleep *)']\n";
    bot.write("reminders/job.md", &reminder(now(), fields, ""));
    let service = bot.start();
    service.until("it runs", || bot.read("work/notes/begun"));
    service.kill();
    bot.until_no_processes();
    let service = bot.start();
    service.until("it is kept", || bot.read("reminders/failed/job.md"));
    let runs = bot.runs("job");
    let ends: Vec<&str> = runs.iter().map(|run| run["outcome"].as_str().unwrap()).collect();
    assert_eq!(ends, ["failed"], "{runs:#?}");
    assert_eq!(bot.read("work/notes/begun").as_deref(), Some("\n"), "it is not run again");
    let told = inbox(&bot);
    assert_eq!(told.iter().filter(|text| text.starts_with("reminder job failed: ")).count(), 1, "{told:?}");
    service.stop();
    bot.until_no_processes();
}

#[test]
fn check_names_what_stands_wrong_beside_a_command() {
    let bot = TestBot::new();
    let problems = |fields: &str| -> Vec<(String, String)> {
        bot.write("routines/x.md", &format!("---\ncron: '@daily'\n{fields}---\nWhat it is for.\n"));
        let checked: Value = serde_json::from_str(&bot.run(["check", "--json"]).stdout).unwrap();
        let word = |problem: &Value, key: &str| problem[key].as_str().unwrap_or_default().to_owned();
        let problems = checked["problems"].as_array().unwrap().iter();
        problems.map(|problem| (word(problem, "field"), word(problem, "message"))).collect()
    };
    assert_eq!(problems("client: exec\ncommand: echo x\nbackground: true\ntimeout: 5m\nretry: 1\n"), []);
    let fields = "client: exec\ncommand: echo x\nmodel: haiku\nisolated: true\nskills: [mail]\ngate: 'true'\nmax_turns: 3\nmax_cost_usd: 1.0\n\
                  agent: Plan\n";
    let named = problems(fields);
    let names: Vec<&str> = named.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(names, ["model", "isolated", "skills", "gate", "agent"], "{named:?}");
    assert_eq!(named[0].1, "`model` is for an agent, and `client: exec` has none");
    for (fields, field, said) in [
        ("client: exec\n", "command", "`client: exec` needs `command`"),
        ("command: echo x\n", "command", "`command` is for a command, and this job runs none"),
        (
            "client: notify\ndeliver: always\n",
            "deliver",
            "of a job that runs no command, `deliver` can be `digest` only",
        ),
        ("deliver: never\n", "deliver", "of a job that runs no command, `deliver` can be `digest` only"),
        ("client: notify\ndeliver: digest\nurgency: critical\n", "deliver", "what is critical waits for no digest"),
        (
            "background: true\ndeliver: digest\nallow_ping: false\n",
            "deliver",
            "`deliver: digest` sends you what it says",
        ),
        ("client: notify\nurgency: urgent\n", "urgency", "urgent"),
        ("client: notify\ndeliver: digest\n", "deliver", "there is no digest on `console`, which has no quiet hours"),
        ("client: exec\ncommand: echo x\nbackground: false\n", "background", "a command runs in the background"),
        ("client: exec\ncommand: echo x\nexpect: message\n", "expect", "a command can be expected to make a file only"),
        (
            "client: exec\ncommand: echo x\ndeliver: always\nallow_ping: false\n",
            "deliver",
            "`deliver: always` sends you",
        ),
        ("client: exec\ncommand: curl x\nallowed_tools: []\n", "command", "the job's tools do not cover its command"),
        ("client: exec\ncommand: echo x\ncomand: echo y\n", "comand", "unknown field `comand`, close to `command`"),
    ] {
        let found = problems(fields);
        assert!(
            matches!(&found[..], [(name, message)] if name == field && message.contains(said)),
            "{fields}: {found:?}"
        );
    }
}

/// A program is missing by its name and by its path. A file that a line reads is no program.
#[test]
fn check_names_a_program_that_is_not_installed() {
    let bot = TestBot::new();
    for (command, missing) in [
        ("no-such-program -x", Some("no-such-program")),
        ("true && no-such-program", Some("no-such-program")),
        ("/usr/bin/no-such-program -x", Some("/usr/bin/no-such-program")),
        ("echo x | /usr/bin/no-such-program", Some("/usr/bin/no-such-program")),
        ("scripts/no-such-program", Some("scripts/no-such-program")),
        ("cat < /usr/lib/no-such-file", None),
        ("echo /usr/bin/no-such-program", None),
    ] {
        routine(&bot, "x", command, "allowed_tools: [Bash]\n");
        let found = bot.run(["check", "x"]).stdout;
        let said =
            missing.map(|program| format!("its command starts `{program}`, which is not installed on this machine"));
        assert_eq!(found.contains("is not installed"), said.is_some(), "{command}: {found}");
        assert!(said.is_none_or(|said| found.contains(&said)), "{command}: {found}");
    }
}

/// The rights of a job that another one made end at those of its maker, so a maker that nobody knows lets nothing run.
#[test]
fn what_an_unknown_job_has_made_does_not_run() {
    let bot = TestBot::new();
    let fields = "allowed_tools: ['Bash(touch *)']\n";
    routine(&bot, "made", "touch file", &format!("{fields}created_by: nobody\n"));
    let why = "`nobody` made it, and neither a file nor the journal says what `nobody` may do";
    let checked = bot.run(["check", "made"]).stdout;
    assert!(checked.contains(why) && checked.contains("remove its line `created_by` if you want it"), "{checked}");
    let service = bot.start();
    let run = fire(&bot, &service, "made");
    assert!(run["outcome"] == "failed" && run["error"].as_str().unwrap().contains(why), "{run:#}");
    assert!(bot.read("work/file").is_none());
    // The person takes it over.
    routine(&bot, "made", "touch file", fields);
    let run = fire(&bot, &service, "made");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    service.stop();
}

/// What `check` finds about a job, `add` and `edit` say at once.
#[test]
fn what_is_added_comes_with_its_warnings() {
    let bot = TestBot::new();
    let job = ["routine", "add", "--background", "-m", "Look.", "--id"];
    for (id, words, said) in [
        ("over", "--cron @daily --max-cost-usd 2 --max-cost-day-usd 1", "it is above `max_cost_day_usd`"),
        ("blind", "--watch gone", "work/gone is not there"),
        ("lost", "--cron @daily --channel phone", "there is no channel `phone`"),
        ("alone", "--after nobody", "there is no job `nobody`, so this routine never fires"),
        ("unread", "--cron @daily --context-from nobody", "there is no job `nobody`"),
    ] {
        let made = bot.run(job.into_iter().chain([id]).chain(words.split(' ')));
        assert!(made.code == 0 && made.stderr.contains(said), "{made:?}");
        let checked = bot.run(["check", id]).stdout;
        assert!(checked.contains(said), "{checked}");
    }
    let edited = bot.run(["routine", "edit", "over", "--deliver", "digest"]);
    assert!(edited.code == 0 && edited.stderr.contains("there is no digest on `console`"), "{edited:?}");
}

#[test]
fn it_is_made_shown_and_tried_from_the_command_line() {
    let bot = TestBot::new();
    let made = bot.run(["routine", "add", "--cron", "@daily", "--command", "echo hello; exit 0"]);
    assert!(made.code == 0 && made.stdout.contains(", a command, without a model"), "{made:?}");
    assert_eq!(bot.names("routines"), ["echo-hello-exit-0.md"]);
    let id = "echo-hello-exit-0";
    let shown = bot.json(["routine", "show", id]);
    assert_eq!((&shown["client"], &shown["command"]), (&json!("exec"), &json!("echo hello; exit 0")), "{shown:#}");
    assert!(bot.ok(["routine", "show", id]).contains("a command, without a model"));
    let dry = bot.json(["fire", id, "--dry-run"]);
    assert_eq!((&dry["runs"], &dry["refused"]), (&json!("echo hello; exit 0"), &Value::Null), "{dry:#}");
    bot.ok(["routine", "edit", id, "--command", "touch x", "--allowed-tools", "Read"]);
    let dry = bot.ok(["fire", id, "--dry-run"]);
    assert!(
        dry.starts_with(
            "Command, run without a model\ntouch x\nthe run would fail: Bash \"touch x\": `touch` is not granted"
        ),
        "{dry}"
    );
    assert!(bot.read("work/x").is_none());
    let refused = bot.run(["routine", "edit", id, "--model", "haiku"]);
    assert!(refused.code == 1 && refused.stderr.contains("`client: exec` has none"), "{refused:?}");
    let reminder =
        bot.json(["reminder", "add", "Air the room", "--in", "1h", "--command", "echo x", "--deliver", "always"]);
    assert_eq!((&reminder["client"], &reminder["deliver"]), (&json!("exec"), &json!("always")), "{reminder:#}");
}

#[test]
fn the_example_of_the_documentation_does_what_it_says() {
    let document = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/exec.md")).unwrap();
    let (_, rest) = document.split_once("```markdown\n").unwrap();
    let bot = TestBot::new();
    bot.write("routines/notes.md", rest.split_once("```\n").unwrap().0);
    bot.write("work/notes/today", "text");
    assert_eq!(bot.json(["check"])["problems"], json!([]));
    let service = bot.start();
    let run = fire(&bot, &service, "notes");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    assert_eq!(printed(&run), "notes/\nnotes/today\n");
    assert!(bot.path("work/notes.tgz").exists());
    service.stop();
}

#[test]
fn a_program_beside_the_data_folder_opens_nothing_of_it() {
    let bot = TestBot::new();
    // Some people unpack the program into a folder and keep the data folder inside it.
    let beside = bot.home().parent().unwrap().to_owned();
    std::fs::write(beside.join("private"), "of the person").unwrap();
    let path = format!("{}:{}", beside.display(), std::env::var("PATH").unwrap());
    let bot = bot.env("PATH", &path);
    bot.secrets("TOKEN=hidden-in-env\n");
    bot.write("config.yaml", "bot_name: hidden-in-settings\n");
    let home = bot.home().display().to_string();
    let tries = format!(
        "cat {home}/config.yaml; cat {home}/.env; cat {home}/state/user.token; cat {home}/state/journal.db; cat {}; ls {home}/state",
        beside.join("private").display()
    );
    let service = bot.start();
    for (id, fields) in
        [("unlisted", ""), ("wide", "allowed_tools: [Bash]\n"), ("reads", "allowed_tools: [Bash, Read]\n")]
    {
        routine(&bot, id, &tries, fields);
        let run = fire(&bot, &service, id);
        let said = printed(&run);
        for (line, what) in said.lines().zip(0..) {
            assert!(line.contains("Permission denied"), "{id}, line {what}: {said}");
        }
        assert!(!said.is_empty(), "{run:#}");
    }
    service.stop();
}

/// Returns a bot whose `PATH` begins with a folder of the person's own, and that folder.
fn with_folder_on_path() -> (TestBot, std::path::PathBuf) {
    let bot = TestBot::new();
    let folder = bot.person().join("programs");
    std::fs::create_dir(&folder).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    (bot.env("PATH", &path), folder)
}

/// Returns what `policy explain` says of a line, and whether it is granted.
fn explained(bot: &TestBot, id: &str, line: &str) -> (bool, String) {
    let ran = bot.run(["policy", "explain", id, "--command", line]);
    (ran.code == 0, ran.stdout + &ran.stderr)
}

/// What a job writes would run with the program's rights.
#[test]
fn a_program_on_path_that_is_a_link_into_work_does_not_run() {
    let (bot, folder) = with_folder_on_path();
    bot.write("work/notes/x", "");
    client::executable(&bot.path("work/notes/foo.sh"), "#!/bin/sh\necho CODE\n");
    client::executable(&bot.person().join("bar.sh"), "#!/bin/sh\necho PROGRAM\n");
    std::os::unix::fs::symlink(bot.path("work/notes/foo.sh"), folder.join("foo")).unwrap();
    std::os::unix::fs::symlink(bot.person().join("bar.sh"), folder.join("bar")).unwrap();
    let service = bot.start();
    let grants = "allowed_tools: [\"Bash(foo *)\", \"Bash(bar *)\", \"Edit(notes/**)\"]\n";
    routine(&bot, "foo", "foo b", grants);
    let run = fire(&bot, &service, "foo");
    assert_eq!(run["outcome"], json!("failed"), "{run:#}");
    assert!(run.to_string().contains("leads to where jobs write") && !printed(&run).contains("CODE"), "{run:#}");
    let (is_granted, said) = explained(&bot, "foo", "foo b");
    assert!(!is_granted && said.contains("leads to where jobs write"), "{said}");
    let checked = bot.run(["check"]);
    assert!((checked.stdout.clone() + &checked.stderr).contains("leads to where jobs write"), "{checked:#?}");
    routine(&bot, "bar", "bar b", grants);
    let run = fire(&bot, &service, "bar");
    assert_eq!((&run["outcome"], &*printed(&run)), (&json!("completed"), "PROGRAM\n"), "{run:#}");
    assert!(explained(&bot, "bar", "bar b").0);
    service.stop();
}

#[test]
fn a_command_of_the_persons_may_be_elsewhere_on_path() {
    let (bot, folder) = with_folder_on_path();
    let script = "#!/bin/sh\necho \"ELSEWHERE $1\"; echo kept > \"$OLLIM_HOME/tools/elsewhere/file\"\n";
    client::executable(&folder.join("ollim-bot-elsewhere"), script);
    client::executable(&folder.join("ollim-bot-other"), "#!/bin/sh\necho OTHER\n");
    let service = bot.start();
    let grants = "allowed_tools: [\"Bash(ollim-bot elsewhere *)\"]\n";
    routine(&bot, "well", "ollim-bot elsewhere x", grants);
    let run = fire(&bot, &service, "well");
    assert_eq!((&run["outcome"], &*printed(&run)), (&json!("completed"), "ELSEWHERE x\n"), "{run:#}");
    assert_eq!(bot.read("tools/elsewhere/file").as_deref(), Some("kept\n"));
    assert!(explained(&bot, "well", "ollim-bot elsewhere x").0);
    for (id, line) in [("another", "ollim-bot other x"), ("by-file", "ollim-bot-elsewhere x")] {
        routine(&bot, id, line, grants);
        let run = fire(&bot, &service, id);
        assert_eq!(run["outcome"], json!("failed"), "{run:#}");
        assert!(!explained(&bot, id, line).0, "{line}");
    }
    service.stop();
}
