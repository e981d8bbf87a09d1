//! `ollim-bot chat`: every message of the person becomes a turn of the main session on the real client, and none is lost.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::support::bot::{CommandOutput, TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::{MessagesApi, Reply};
use crate::support::terminal::Terminal;
use crate::support::wait;

fn bot(api: &MessagesApi) -> TestBot {
    TestBot::with_client(&client::real(), api.url())
}

/// Returns the newest message to the person.
fn newest(bot: &TestBot) -> Value {
    bot.json(["inbox", "-n", "1"])[0].clone()
}

#[test]
fn what_is_said_is_answered_and_remembered() {
    let api = MessagesApi::script([
        Reply::call("Read", serde_json::json!({ "file_path": "tea.txt" })),
        Reply::say("The tea is green."),
        Reply::say("I said that it is green."),
        Reply::Error(400, "invalid_request_error"),
    ]);
    let bot = bot(&api);
    bot.write("work/tea.txt", "green");
    let service = bot.start();
    let first = bot.run(["chat", "Which tea?"]);
    assert_eq!((first.code, first.stdout.as_str()), (0, "The tea is green.\n"), "{first:#?}");
    let prompt = api.requests()[0].body["messages"].to_string();
    assert!(prompt.contains("[message]") && prompt.contains("Which tea?"), "{prompt}");
    let pipe = |text: &str| {
        let mut piped = bot.command(["chat"]);
        let mut piped = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        piped.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        piped.wait_with_output().unwrap()
    };
    let piped = pipe("What did\nyou say?\n");
    assert_eq!(String::from_utf8_lossy(&piped.stdout), "I said that it is green.\n", "{piped:#?}");
    let last = api.last().body["messages"].to_string();
    assert!(last.contains("Which tea?") && last.contains("The tea is green.") && last.contains("you say?"), "{last}");
    let message = newest(&bot);
    assert_eq!(message["deliveries"][0]["channel"], "terminal", "{message:#}");
    assert!(!service.output().contains("green"), "it was said at the terminal: {}", service.output());
    assert!(!bot.ok(["sessions", "list"]).contains("chat-"), "turns are no sessions of their own");
    // A command is not for the model.
    let asked = api.requests().len();
    let budget = bot.run(["chat", "/budget"]);
    assert_eq!((budget.code, budget.stdout), (0, bot.ok(["budget"])), "{}", budget.stderr);
    assert!(bot.json(["chat", "/budget"]).is_object());
    assert_eq!(bot.run(["chat", "/snooze"]).code, 1);
    assert!(bot.ok(["chat", "/history"]).contains("› Which tea?\nThe tea is green.\n"));
    assert!(bot.ok(["chat", "/"]).contains("/history "));
    assert_eq!(bot.ok(["chat", "/quit"]), "");
    assert!(bot.run(["chat", "/doctor"]).stdout.contains("journal"));
    let unknown = bot.run(["chat", "/foo bar"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("there is no command `foo`"), "{unknown:#?}");
    assert!(unknown.stderr.contains("`/help` lists the commands"), "{unknown:#?}");
    let long = pipe(&format!("/fork {}\n", "tea ".repeat(200_000)));
    assert!(String::from_utf8_lossy(&long.stderr).contains("the message is over 512 KiB"), "{long:?}");
    assert!(!bot.json(["inbox"]).to_string().contains("Fork: "), "no fork was opened");
    assert_eq!(api.requests().len(), asked);
    let failed = bot.run(["chat", "Again?"]);
    assert_eq!(failed.code, 1, "{failed:#?}");
    assert!(failed.stderr.contains("no answer: "), "{failed:#?}");
    service.stop();
    let silent = bot.run(["chat", "Hello?"]);
    assert!(silent.code != 0 && silent.stderr.contains("ollim-bot run"), "{silent:#?}");
}

#[test]
fn one_command_opens_a_fork_and_shows_its_answer() {
    let api = MessagesApi::script([Reply::say("Pots are round.")]);
    let bot = bot(&api);
    let service = bot.start();
    for (command, answer) in [("/fork pots", "Pots are round.\n"), ("/fork", "")] {
        let opened = bot.run(["chat", command]);
        assert_eq!((opened.code, &*opened.stdout), (0, answer), "{opened:#?}");
        assert!(opened.stderr.contains("a fork is open; what you say next belongs to it"), "{opened:#?}");
        bot.ok(["chat", "/exit"]);
    }
    service.stop();
}

#[test]
fn without_an_agent_there_is_nobody_to_talk_with() {
    let bot = TestBot::new();
    let service = bot.start();
    let ran = bot.run(["chat", "Hello?"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("there is no agent to talk with"), "{ran:#?}");
    assert_eq!(bot.run(["chat", " "]).code, 1);
    let fork = bot.run(["chat", "/fork tea"]);
    assert!(fork.code == 1 && fork.stderr.contains("there is no agent to talk with"), "{fork:#?}");
    assert_eq!(bot.json(["inbox"]), serde_json::json!([]), "no fork was opened");
    service.stop();
}

/// Returns an API that answers once the gate is open.
fn gated(answer: &str) -> (MessagesApi, Arc<AtomicBool>) {
    let open = Arc::new(AtomicBool::new(false));
    let (gate, answer) = (Arc::clone(&open), answer.to_owned());
    let api = MessagesApi::answering(move |_| {
        if !gate.load(Ordering::SeqCst) {
            wait::until("the gate opens", || gate.load(Ordering::SeqCst).then_some(()), String::new);
        }
        Reply::say(&answer)
    });
    (api, open)
}

#[test]
fn whoever_left_gets_the_answer_on_the_default_channel() {
    let (api, open) = gated("It is four.");
    let bot = bot(&api);
    let service = bot.start();
    let chat = bot.start_with(["chat", "What is two and two?"]);
    service.until("the model is asked", || (!api.requests().is_empty()).then_some(()));
    chat.kill();
    open.store(true, Ordering::SeqCst);
    service.until("the console has it", || service.output().contains("It is four.").then_some(()));
    assert_eq!(newest(&bot)["deliveries"][0]["channel"], "console");
    service.stop();
}

#[test]
fn a_kill_in_the_middle_of_a_turn_loses_nothing_that_was_said() {
    let (api, open) = gated("Still here.");
    let bot = bot(&api);
    let service = bot.start();
    let chat = bot.start_with(["chat", "Are you there?"]);
    service.until("the model is asked", || (!api.requests().is_empty()).then_some(()));
    service.kill();
    let (status, said) = chat.wait();
    assert!(!status.success() && said.contains("the service has ended"), "{said}");
    bot.until_no_processes();
    open.store(true, Ordering::SeqCst);
    let service = bot.start();
    service.until("it is answered", || service.output().contains("Still here.").then_some(()));
    let inbox = bot.json(["inbox", "-n", "100"]);
    let answers = inbox.as_array().unwrap().iter().filter(|message| message["text"] == "Still here.").count();
    assert_eq!(answers, 1, "{inbox:#}");
    service.stop();
}

/// Types lines at a real terminal, each after the expected answer to the one before. Returns all output.
fn at_terminal(bot: &TestBot, lines: &[(&[u8], &str)]) -> CommandOutput {
    let chat = bot.command(["chat"]);
    let words = format!("exec {} chat", chat.get_program().display());
    let mut terminal = Command::new("script");
    terminal.args(["-qfec", &words, "/dev/null"]).current_dir(bot.person()).env_clear();
    for (name, value) in chat.get_envs() {
        terminal.env(name, value.unwrap());
    }
    terminal.env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = terminal.spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let seen = Arc::new(std::sync::Mutex::new(String::new()));
    let kept = Arc::clone(&seen);
    let reader = std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = std::io::Read::read(&mut stdout, &mut chunk) {
            kept.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..read]));
        }
    });
    let mut matched = 0;
    for (line, expect) in lines {
        stdin.write_all(line).unwrap();
        let shown = || seen.lock().unwrap().clone();
        // Each expected text comes after the one before it.
        matched += wait::until(expect, || shown()[matched..].find(expect).map(|at| at + expect.len()), shown);
    }
    drop(stdin);
    let status = child.wait().unwrap();
    reader.join().unwrap();
    let stdout = seen.lock().unwrap().clone();
    CommandOutput { code: status.code().unwrap_or(-1), stdout, stderr: String::new() }
}

#[test]
fn a_conversation_at_a_terminal() {
    let asked = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&asked);
    let api = MessagesApi::answering(move |request| match request.last_text() {
        text if text.contains("think long") => {
            seen.store(true, Ordering::SeqCst);
            Reply::Silence
        }
        text if text.contains("Good morning") => Reply::say("Good morning to you."),
        _ => Reply::say("Yes?"),
    });
    let bot = bot(&api);
    bot.write("reminders/far.md", &reminder(now() + chrono::TimeDelta::days(9), "", "Far away."));
    let service = bot.start();
    let ran = at_terminal(
        &bot,
        &[
            (b"", "Ctrl-D leaves"),
            (b"Good morning\n", "Good morning to you."),
            (b"/next\n", "in 8d"),
            (b"/nonsense\n", "there is no command `nonsense`"),
            (b"Please think long\n", "think long"),
        ],
    );
    // Standard input is closed meanwhile: `chat` exits, and the turn continues.
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    service.until("the model is asked", || asked.load(Ordering::SeqCst).then_some(()));
    let run = bot.json(["runs"])[0].clone();
    assert!(run["id"].as_str().unwrap().starts_with("chat-") && run["outcome"] == "running", "{run:#}");
    bot.ok(["cancel-run", run["run"].as_str().unwrap()]);
    let again = at_terminal(
        &bot,
        &[
            (b"", "Good morning to you."),
            (b"/\n", "begin a new conversation"),
            (b"/help\n", "begin a new conversation"),
            (b"Please think long, again\n", "again"),
            (b"/clear\n", "/clear"),
        ],
    );
    assert_eq!(again.code, 0, "{}", again.stdout);
    service.stop();
}

#[test]
fn a_terminal_shows_an_answer_as_it_is_written_and_a_pipe_shows_it_whole() {
    let gates: [_; 3] = std::array::from_fn(|_| Arc::new(AtomicBool::new(false)));
    let answers = std::array::from_fn::<_, 3, _>(|n| Reply::Gated(format!("§{n} It is four."), gates[n].clone()));
    let api = MessagesApi::script(answers);
    let bot = bot(&api);
    let service = bot.start();
    let mut chat = Terminal::start(bot.command(["chat"]));
    chat.answer("Ctrl-D leaves", "What is two and two?");
    chat.until("§");
    assert!(!chat.shown().contains("four"), "{}", chat.shown());
    gates[0].store(true, Ordering::SeqCst);
    chat.answer("§0 It is four.\n›", "/quit");
    let (_, shown) = chat.end();
    assert_eq!(shown.matches("four").count(), 1, "{shown}");
    let once = Terminal::start(bot.command(["chat", "What is two and two?"]));
    once.until("§");
    gates[1].store(true, Ordering::SeqCst);
    let (status, shown) = once.end();
    assert!(status.success() && shown.ends_with("\n§1 It is four.\n"), "{shown}");
    // A script gets no half of an answer.
    let piped = bot.start_with(["chat", "What is two and two?"]);
    service.until("the model is asked", || (api.requests().len() == 3).then_some(()));
    assert_eq!(piped.output(), "");
    gates[2].store(true, Ordering::SeqCst);
    let (status, shown) = piped.wait();
    assert!(status.success() && shown == "§2 It is four.\n", "{shown}");
    service.stop();
}

#[test]
fn a_new_conversation_begins_at_once_while_an_answer_of_the_old_one_goes() {
    let api = MessagesApi::answering(|request| {
        if request.last_text().contains("think long") { Reply::Silence } else { Reply::say("Here I am.") }
    });
    let bot = bot(&api);
    let service = bot.start();
    let ran = at_terminal(
        &bot,
        &[
            (b"", "Ctrl-D leaves"),
            (b"Remember the rhubarb\n", "Here I am."),
            // One answer may cover what was typed before it ended.
            (b"", "›"),
            (b"Please think long\n", "(thinking"),
            (b"/clear\n", "a new conversation"),
            (b"\x03", "interrupted"),
            (b"And now?\n", "And now?"),
        ],
    );
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    service.until("it is answered", || api.last().last_text().contains("And now?").then_some(()));
    let last = api.last();
    assert!(!last.mentions("rhubarb") && !last.mentions("think long"), "{}", last.body);
    // One command ends the answer that another process waits for.
    let long = bot.start_with(["chat", "Please think long"]);
    service.until("the model is asked", || api.last().last_text().contains("think long").then_some(()));
    assert_eq!(bot.ok(["chat", "/interrupt"]), "interrupted\n");
    let (status, shown) = long.wait();
    assert!(!status.success(), "{shown}");
    service.stop();
}

#[test]
fn a_conversation_that_was_left_can_be_continued() {
    let api = MessagesApi::answering(|_| Reply::say("Here I am."));
    let bot = bot(&api);
    let service = bot.start();
    bot.ok(["chat", "Remember the rhubarb"]);
    at_terminal(&bot, &[(b"", "›"), (b"/clear\n", "a new conversation")]);
    bot.ok(["chat", "Remember the quince"]);
    assert!(!api.last().mentions("rhubarb"), "{}", api.last().body);
    let earlier = || -> Vec<String> {
        let sessions = bot.json(["sessions", "list"]).as_array().unwrap().clone();
        let earlier = sessions.iter().filter(|session| session["kind"] == "earlier");
        earlier.map(|session| session["session"].as_str().unwrap().to_owned()).collect()
    };
    let [rhubarb] = &earlier()[..] else { panic!("{:?}", earlier()) };
    assert!(bot.ok(["sessions", "list"]).contains(rhubarb), "{}", bot.ok(["sessions", "list"]));
    assert_eq!(bot.run(["sessions", "resume", "nothing"]).code, 1);
    bot.ok(["sessions", "resume", &rhubarb[..8]]);
    bot.ok(["chat", "What was it?"]);
    let last = api.last();
    assert!(last.mentions("rhubarb") && !last.mentions("quince"), "{}", last.body);
    let [quince] = &earlier()[..] else { panic!("{:?}", earlier()) };
    assert_ne!(quince, rhubarb);
    // The service is killed, and nothing of this is lost.
    service.kill();
    let service = bot.start();
    bot.ok(["sessions", "resume", quince]);
    bot.ok(["chat", "And this?"]);
    assert!(api.last().mentions("quince") && !api.last().mentions("rhubarb"), "{}", api.last().body);
    service.stop();
}

#[test]
fn ctrl_c_ends_the_answer_and_not_the_conversation() {
    let api = MessagesApi::answering(|request| {
        if request.last_text().contains("think long") { Reply::Silence } else { Reply::say("Here I am.") }
    });
    let bot = bot(&api);
    let service = bot.start();
    let ran = at_terminal(
        &bot,
        &[
            (b"", "Ctrl-D leaves"),
            (b"Please think long\n", "(thinking"),
            (b"\x03", "interrupted"),
            (b"Hello\n", "Here I am."),
            (b"/quit\n", "/quit"),
        ],
    );
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    service.until("both have ended", || {
        let runs = bot.json(["runs"]);
        let outcomes: Vec<&Value> = runs.as_array().unwrap().iter().map(|run| &run["outcome"]).collect();
        (outcomes == ["completed", "cancelled"]).then_some(())
    });
    service.stop();
}

#[test]
fn the_conversation_is_made_shorter_and_goes_on() {
    let api = MessagesApi::answering(|request| match request.last_text() {
        text if text.contains("<summary>") => Reply::say("<summary>They spoke of tea.</summary>"),
        text if text.contains("And now?") => Reply::say("Now it is short."),
        _ => Reply::say(&format!("answer {}", request.answers())),
    });
    let bot = bot(&api);
    let service = bot.start();
    let nothing = at_terminal(&bot, &[(b"", "Ctrl-D leaves"), (b"/compact\n", "no conversation to make shorter")]);
    assert_eq!(nothing.code, 0, "{}", nothing.stdout);
    for n in 0..4 {
        bot.ok(["chat", &format!("Tea {n}? {}", "word ".repeat(200))]);
    }
    let shorter = at_terminal(
        &bot,
        &[(b"", "answer 3"), (b"/compact\n", "The conversation was made shorter"), (b"And now?\n", "Now it is short.")],
    );
    assert_eq!(shorter.code, 0, "{}", shorter.stdout);
    let last = api.last().body["messages"].to_string();
    assert!(last.contains("They spoke of tea.") && !last.contains("Tea 0?") && last.contains("And now?"), "{last}");
    service.stop();
}

#[test]
fn a_question_of_the_conversation_is_shown_and_answered_where_the_person_is() {
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::bash("touch made"),
        1 => Reply::call(
            "mcp__discord__discord_embed",
            serde_json::json!({ "title": "Look", "description": "It is made." }),
        ),
        2 => Reply::bash("touch more"),
        3 => Reply::say("Made."),
        4 => Reply::bash("touch other"),
        _ => Reply::say("Done."),
    });
    let bot = bot(&api);
    bot.write("config.yaml", "main_ask_tools: ['Bash(touch *)']\nmain_tools: [Read, mcp__discord__discord_embed]\n");
    let service = bot.start();
    let ran = at_terminal(
        &bot,
        &[
            (b"", "Ctrl-D leaves"),
            (b"Make it\n", "/questions answer 1 allow"),
            (b"/questions answer 1 allow\n", "It is made."),
            (b"", "here: 1 Allow once, 2 Allow in this run, 3 Deny; or /questions answer 2 allow"),
            (b"1\n", "Made."),
        ],
    );
    let are_made = ["work/made", "work/more"].iter().all(|path| bot.path(path).exists());
    assert!(ran.stdout.contains("asks (question 1)") && are_made, "{}", ran.stdout);
    // After `chat` has ended, the default channel delivers the question.
    let chat = bot.start_with(["chat", "And the other"]);
    let delivered = || bot.json(["inbox", "-n", "1"])[0]["deliveries"][0]["channel"] == "terminal";
    service.until("it asks", || delivered().then_some(()));
    chat.until("it is shown", || chat.output().contains("asks (question 3)").then_some(()));
    assert!(!service.output().contains("asks (question 3)"), "{}", service.output());
    chat.kill();
    service.until("the console has it", || service.output().contains("asks (question 3)").then_some(()));
    bot.ok(["questions", "answer", "3", "deny"]);
    service.until("it is answered", || service.output().contains("Done.").then_some(()));
    service.stop();
}

#[test]
fn an_empty_answer_is_said_and_is_none() {
    let api = MessagesApi::script([Reply::say("")]);
    let bot = bot(&api);
    let service = bot.start();
    let ran = bot.run(["chat", "Are you there?"]);
    assert_eq!((ran.code, &*ran.stdout), (1, ""), "{ran:#?}");
    assert!(ran.stderr.contains("no answer: the model said nothing"), "{ran:#?}");
    service.stop();
}

#[test]
fn the_commands_of_channels_are_typed_too_and_a_refused_program_is_seen() {
    let api = MessagesApi::script([Reply::bash("x=touch; $x oops; ls"), Reply::say("It was not.")]);
    let bot = bot(&api);
    bot.write("config.yaml", "main_tools: [Read, 'Bash(ls *)']\n");
    bot.write("reminders/far.md", &reminder(now() + chrono::TimeDelta::days(9), "", "Far away."));
    let service = bot.start();
    let ran = at_terminal(
        &bot,
        &[
            (b"", "Ctrl-D leaves"),
            (b"/jobs\n", "far"),
            (b"/why\n", "No run has failed."),
            (b"/snooze\n", "`/snooze` needs a reminder"),
            (b"/snooze far 20m\n", "in 20m"),
            (b"/retry\n", "`/retry` needs a reminder"),
            (b"/interrupt\n", "no answer is going"),
            // These commands would read the conversation's input or take the terminal.
            (b"/init\n", "this cannot be done here"),
            (b"/reminder edit far\n", "this cannot be done here"),
            (b"/reminder add --in 5m -m -\n", "this cannot be done here"),
            (b"/inbox --follow\n", "this cannot be done here"),
            (b"Make it\n", "refused: "),
            (b"", "It was not."),
        ],
    );
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    service.stop();
}
