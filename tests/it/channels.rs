//! `channels:` with real programs: their input, the meaning of their exit, and their access.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::client::executable;

/// Creates a bot that sends its messages to the script `bridge`.
fn bot(script: &str, settings: &str) -> TestBot {
    let bot = TestBot::new();
    executable(&bot.path("bin/bridge"), script);
    bot.write(
        "config.yaml",
        &format!(
            "channels:\n  phone: {{ kind: command, command: [bridge, --now]{settings} }}\ndefault_channel: phone\n"
        ),
    );
    bot
}

/// Returns a file that the bridge wrote into its own folder.
fn wrote(bot: &TestBot, name: &str) -> String {
    bot.read(&format!("state/channels/phone/{name}")).unwrap_or_default()
}

/// Parses lines of JSON.
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Waits until the newest message's delivery on the phone is in this state. Returns the message as `inbox --json` shows it.
#[track_caller]
fn until(service: &Service<'_>, bot: &TestBot, state: &str) -> Value {
    service.until(&format!("a message is {state}"), || {
        let message = bot.json(["inbox", "-n", "1"])[0].clone();
        let deliveries = message["deliveries"].as_array()?.clone();
        deliveries.iter().any(|one| one["channel"] == "phone" && one["state"] == state).then_some(message)
    })
}

#[test]
fn a_message_is_one_process_and_its_exit_means_delivered() {
    let bot = bot("#!/bin/sh\ncat >> got; echo \"$@\" >> args; env | sort > env; echo '{\"message\": \"m-7\"}'\n", "");
    let bot = bot.env("SECRET_OF_THE_SERVICE", "hush");
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea\u{7} is ready."));
    let service = bot.start();
    let message = until(&service, &bot, "delivered");
    assert_eq!(message["deliveries"][0]["message"], "m-7", "{message:#}");
    let got = lines(&wrote(&bot, "got"));
    let expect = json!({
        "version": 1, "number": 1, "job": "tea", "run": got[0]["run"], "at": got[0]["at"], "title": null,
        "text": "Tea is ready.", "reply_to": null, "urgency": "normal", "buttons": [
            { "id": "1:0", "label": "Done" }, { "id": "1:1", "label": "10 min" }, { "id": "1:2", "label": "1 h" },
            { "id": "1:3", "label": "Tomorrow" },
        ],
    });
    assert_eq!(got, [expect]);
    assert_eq!(wrote(&bot, "args"), "--now\n");
    let env = wrote(&bot, "env");
    assert!(!env.contains("hush") && !env.contains("OLLIM") && env.contains("HOME="), "{env}");
    assert!(!service.output().contains("Tea"), "it went to the phone: {}", service.output());
    assert!(bot.ok(["inbox"]).contains("(delivered on phone)"), "{}", bot.ok(["inbox"]));
    let tested = bot.ok(["channels", "test", "phone"]);
    assert_eq!(tested, "phone works: the test message was delivered (message m-7)\n");
    assert!(bot.ok(["channels"]).contains("works"));
    assert_eq!(bot.run(["channels", "test", "pager"]).code, 1);
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_background_reminder_can_be_snoozed_and_a_routine_cannot() {
    let bot = bot("#!/bin/sh\ncat >> got\n", "");
    let job = "background: true\nclient: exec\ncommand: echo tea\ndeliver: always\nallowed_tools: []\n";
    bot.write("reminders/tea.md", &reminder(now(), job, ""));
    bot.write("routines/mail.md", &format!("---\ncron: '0 0 29 2 *'\n{job}---\n"));
    let service = bot.start();
    until(&service, &bot, "delivered");
    service.fire("mail");
    let got = service.until("both are delivered", || {
        let got = lines(&wrote(&bot, "got"));
        (got.len() == 2).then_some(got)
    });
    assert_eq!([0, 1].map(|n| got[n]["buttons"].as_array().unwrap().len()), [4, 0], "{got:#?}");
    service.stop();
}

#[test]
fn exit_75_is_tried_again_and_another_code_goes_to_the_next_channel() {
    let script = "#!/bin/sh\ncat > /dev/null; if [ ! -e once ]; then touch once; echo later >&2; exit 75; fi; [ ! -e no ] || { echo >&2; echo 'never, ever' >&2; exit 1; }\n";
    let bot = bot(script, "");
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    let service = bot.start();
    let message = until(&service, &bot, "delivered");
    assert_eq!(message["deliveries"].as_array().unwrap().len(), 1, "{message:#}");
    assert!(wrote(&bot, "once").is_empty() && bot.path("state/channels/phone/once").exists());
    fs::write(bot.path("state/channels/phone/no"), "").unwrap();
    bot.write("reminders/cake.md", &reminder(now(), "", "Cake is ready."));
    service.until("the console has it", || service.output().contains("Cake is ready.").then_some(()));
    service.until("it is told", || {
        service.output().contains("The channel `phone` refused a message: never, ever.").then_some(())
    });
    let channels = bot.json(["channels"]);
    assert_eq!(channels[0]["failing"]["error"], "never, ever", "{channels:#}");
    let status = bot.ok(["status"]);
    assert!(status.contains("phone: refused a message"), "{status}");
    let tested = bot.run(["channels", "test", "phone"]);
    assert_eq!((tested.code, tested.stdout.as_str()), (1, "phone does not work: never, ever\n"));
    service.stop();
}

#[test]
fn a_bridge_that_is_killed_is_tried_again_and_the_status_says_by_which_signal() {
    let script = r#"#!/usr/bin/env python3
import json, os, signal, sys
for line in sys.stdin:
    if not os.path.exists("works"):
        os.kill(os.getpid(), signal.SIGKILL)
    print(json.dumps({"delivered": json.loads(line)["number"]}), flush=True)
"#;
    for settings in ["", ", keep: true"] {
        let bot = bot(script, settings);
        bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
        let service = bot.start();
        let killed = "it ended with exit code 137 (signal 9)";
        let failing = || Some(bot.json(["channels"])[0]["failing"].clone()).filter(|failing| !failing.is_null());
        assert_eq!(service.until("it fails", failing)["error"], killed, "{settings}");
        assert!(bot.ok(["status"]).contains(killed), "{}", bot.ok(["status"]));
        // The reminder's message is tried first, and this one waits behind it.
        let tested = bot.run(["channels", "test", "phone"]);
        assert_eq!((tested.code, tested.stdout), (1, format!("phone does not work: {killed}\n")));
        fs::write(bot.path("state/channels/phone/works"), "").unwrap();
        let message = until(&service, &bot, "delivered");
        assert_eq!(message["deliveries"].as_array().unwrap().len(), 1, "{message:#}");
        assert!(!bot.ok(["status"]).contains(killed), "{}", bot.ok(["status"]));
        service.stop();
        bot.until_no_processes();
    }
}

#[test]
fn a_bridge_reaches_no_keys_and_nothing_of_the_data_folder() {
    let script = r#"#!/bin/sh
cat > /dev/null
try() { if eval "$2" >/dev/null 2>&1; then echo "$1: open"; else echo "$1: closed"; fi; }
{
  try journal 'cat "$HOME"/bot/state/journal.db'
  try env 'cat "$HOME"/bot/.env'
  try work 'ls "$HOME"/bot/work'
  try key 'cat "$HOME"/.ssh/id'
  try login 'cat "$HOME"/.claude/.credentials.json'
  try write 'touch "$HOME"/evil'
  try settings 'cat "$HOME"/.bridgerc'
  try temporary 'touch "$TMPDIR"/x'
  try named 'touch "$HOME"/spool/x'
} > seen
"#;
    let bot = bot(script, ", writes: [~/spool]");
    for (path, text) in [(".ssh/id", "k"), (".claude/.credentials.json", "{}"), (".bridgerc", "x"), ("spool/a", "")] {
        let path = bot.person().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    bot.secrets("A=1\n");
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    let service = bot.start();
    until(&service, &bot, "delivered");
    let expect = "journal: closed\nenv: closed\nwork: closed\nkey: closed\nlogin: closed\nwrite: closed\n\
                  settings: open\ntemporary: open\nnamed: open\n";
    assert_eq!(wrote(&bot, "seen"), expect);
    service.stop();
}

#[test]
fn one_process_may_take_all_messages_and_is_started_again_when_it_ends() {
    let script = r#"#!/usr/bin/env python3
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    open("got", "a").write("%d %d %s\n" % (os.getpid(), message["number"], message["text"]))
    if message["text"] == "die." and not os.path.exists("died"):
        open("died", "w")
        sys.exit("no more")
    print("noise")
    print(json.dumps({"delivered": 99}), flush=True)
    if message["text"] == "refuse.":
        print(json.dumps({"failed": message["number"], "why": "it says no"}), flush=True)
    else:
        print(json.dumps({"delivered": message["number"], "message": message["number"] * 10}), flush=True)
"#;
    let bot = bot(script, ", keep: true");
    let service = bot.start();
    let say = |id: &str, text: &str| {
        bot.write(&format!("reminders/{id}.md"), &reminder(now(), "", text));
        service.until_ended(id, 1);
    };
    say("one", "one.");
    say("two", "two.");
    let message = until(&service, &bot, "delivered");
    assert_eq!(message["deliveries"][0]["message"], "20");
    say("three", "die.");
    service.until("it is sent again", || (wrote(&bot, "got").lines().count() == 4).then_some(()));
    let message = until(&service, &bot, "delivered");
    assert_eq!(message["deliveries"][0]["message"], "30");
    say("four", "refuse.");
    let message = service.until("the console takes it", || {
        let inbox = bot.json(["inbox"]).as_array()?.clone();
        inbox.into_iter().find(|message| message["text"] == "refuse." && message["delivered"].is_string())
    });
    assert_eq!(message["deliveries"][1]["error"], "it says no", "{message:#}");
    let got = wrote(&bot, "got");
    let pids: Vec<&str> = got.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert!(pids[0] == pids[1] && pids[1] == pids[2] && pids[2] != pids[3] && pids[3] == pids[4], "{got}");
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_burst_before_the_answer_loses_nothing_and_sends_nothing_twice() {
    let script = r#"#!/usr/bin/env python3
import json, os, sys
for line in sys.stdin:
    open("got", "a").write(line)
    number = json.loads(line).get("number")
    if number:
        for _ in range(150):
            print(json.dumps({"said": "/budget", "by": 7}), flush=True)
        print(json.dumps({"delivered": number}), flush=True)
"#;
    for owner in [", owner: 7", ""] {
        let bot = bot(script, &format!(", keep: true{owner}"));
        bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
        let service = bot.start();
        let answers = if owner.is_empty() { 0 } else { 150 };
        until(&service, &bot, "delivered");
        service.until("every line is answered", || (wrote(&bot, "got").lines().count() > answers).then_some(()));
        let got = lines(&wrote(&bot, "got"));
        let notices =
            got.iter().filter(|one| one["notice"].as_str().is_some_and(|notice| notice.contains("pings left")));
        assert_eq!((notices.count(), got.len()), (answers, answers + 1), "{got:#?}");
        service.stop();
    }
}

#[test]
fn a_message_that_is_too_long_is_told_of_and_counted() {
    let script = r#"#!/usr/bin/python3
import json, sys
for said in ["x" * 70000, "y" * 200000, "/budget"]:
    print(json.dumps({"said": said, "by": 7}), flush=True)
print(json.dumps({"sayd": "a letter to somebody"}), flush=True)
for line in sys.stdin:
    open("got", "a").write(line)
"#;
    let bot = bot(script, ", keep: true, owner: 7");
    let service = bot.start();
    let got = service.until("every line is answered", || {
        let got = lines(&wrote(&bot, "got"));
        (got.len() == 3).then_some(got)
    });
    let notices = |words: &str| got.iter().filter(|one| one["notice"].as_str().unwrap().contains(words)).count();
    assert_eq!((notices("not taken"), notices("pings left")), (2, 1), "{got:#?}");
    assert!(got.iter().all(|one| one["to"] == "7"), "{got:#?}");
    let channels = bot.json(["channels"]);
    assert_eq!(channels[0]["not_taken"], 2, "{channels:#}");
    assert!(bot.ok(["channels"]).contains("phone: 2 messages were too long and not taken"));
    let log =
        bot.names("state/log").iter().filter_map(|name| bot.read(&format!("state/log/{name}"))).collect::<String>();
    assert!(log.contains("a line that is not known") && !log.contains("somebody"), "{log}");
    service.stop();
}

/// A message survives the end of the service, and no job waits for a dead channel.
#[test]
fn a_dead_channel_holds_up_no_job_and_loses_nothing() {
    let bot = bot("#!/bin/sh\nif [ -e alive ]; then cat >> got; else sleep 1000; fi\n", "");
    let before = now();
    for n in 0..3 {
        bot.write(&format!("reminders/r{n}.md"), &reminder(before, "", &format!("Number {n}.")));
    }
    let service = bot.start();
    for n in 0..3 {
        service.until_ended(&format!("r{n}"), 1);
    }
    service.kill();
    bot.until_no_processes();
    fs::create_dir_all(bot.path("state/channels/phone")).unwrap();
    fs::write(bot.path("state/channels/phone/alive"), "").unwrap();
    let service = bot.start();
    service.until("all have come", || (wrote(&bot, "got").lines().count() == 3).then_some(()));
    let mut texts: Vec<String> =
        lines(&wrote(&bot, "got")).iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect();
    texts.sort();
    assert!(texts.iter().enumerate().all(|(n, text)| text.contains(&format!("Number {n}."))), "{texts:?}");
    service.stop();
}

#[test]
fn settings_of_channels_say_what_is_wrong() {
    for (config, expect) in [
        ("default_channel: phone\n", "there is no channel `phone`"),
        ("channels: { phone: { kind: pigeon } }\n", "there is no channel of the kind `pigeon`"),
        ("channels: { phone: { kind: command } }\n", "`channels.phone` needs a `command`"),
        (
            "channels: { phone: { kind: command, command: \"a b\" } }\n",
            "a list: the program, then each of its arguments",
        ),
        ("channels: { phone: { kind: command, command: [x], url: y } }\n", "unknown setting `url` of `channels.phone`"),
        ("channels: { d: { kind: discord, owner: me } }\n", "`channels.d.owner` must be the id of a user"),
        ("channels: { d: { kind: discord, api: chat.example } }\n", "`channels.d.api` must be a server's address"),
        ("channels: { d: { kind: discord, token: x } }\n", "unknown setting `token` of `channels.d`"),
        ("channels: { console: { kind: command, command: [x] } }\n", "the channel `console` is always there"),
        ("quiet_hours: { from: \"22:00\" }\n", "must have a time `from` and a time `to`"),
        ("quiet_hours: { from: \"22:00\", to: \"22:00\" }\n", "would be always, or never"),
    ] {
        let bot = TestBot::new();
        bot.write("config.yaml", config);
        let ran = bot.run(["config"]);
        assert!(ran.code != 0 && ran.stderr.contains(expect), "{config}: {ran:#?}");
        assert!(ran.stderr.contains("config.yaml:1"), "{config}: {ran:#?}");
    }
    let bot = TestBot::new();
    let asks = "background: true\nallowed_tools: []\nask_tools: [Read]\nask: { channel: phone }\n";
    bot.write("routines/mail.md", &format!("---\ncron: 0 9 * * *\nchannel: pager\n{asks}---\nMail.\n"));
    let checked = bot.run(["check"]);
    let said = checked.stdout.clone() + &checked.stderr;
    for expect in ["`pager`: its messages go to `", "`phone`: its questions go to `", "mail.md:3", "mail.md:7"] {
        assert!(said.contains(expect), "{expect}: {checked:#?}");
    }
}

/// The token and the message of a request.
type Request = (Option<String>, Value);

/// An ntfy server that records requests and gives these answers one after the other, then successes.
struct Ntfy {
    url: String,
    got: Arc<Mutex<Vec<Request>>>,
}

impl Ntfy {
    fn answering(statuses: Vec<u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let got: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (kept, mut statuses) = (Arc::clone(&got), statuses.into_iter());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut read = BufReader::new(stream.try_clone().unwrap());
                let (mut length, mut token, mut line) = (0, None, String::new());
                while read.read_line(&mut line).unwrap_or(0) > 2 {
                    let lower = line.to_lowercase();
                    if let Some(value) = lower.strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    if lower.starts_with("authorization:") {
                        token = Some(line["authorization:".len()..].trim().to_owned());
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                read.read_exact(&mut body).unwrap();
                let mut got = kept.lock().unwrap();
                got.push((token, serde_json::from_slice(&body).unwrap()));
                let status = statuses.next().unwrap_or(200);
                let text = match status {
                    200 => format!("{{\"id\":\"n{}\"}}", got.len()),
                    _ => "{\"error\":\"not \\u001b[31mnow\"}".to_owned(),
                };
                let answer =
                    format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{text}", text.len());
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { url, got }
    }

    fn got(&self) -> Vec<Request> {
        self.got.lock().unwrap().clone()
    }
}

#[test]
fn a_phone_is_reached_by_ntfy() {
    let server = Ntfy::answering(vec![503]);
    let bot = TestBot::new();
    bot.write(
        "config.yaml",
        &format!("channels: {{ phone: {{ kind: ntfy, url: {}/my-topic }} }}\ndefault_channel: phone\n", server.url),
    );
    bot.secrets("NTFY_TOKEN=tk_secret\n");
    bot.write("reminders/tea.md", &reminder(now(), "", &format!("Tea is ready. {}", "é".repeat(3000))));
    let service = bot.start();
    let message = until(&service, &bot, "delivered");
    assert_eq!(message["deliveries"][0]["message"], "n2", "the second try: {message:#}");
    let got = server.got();
    assert_eq!(got.len(), 2);
    let (token, body) = &got[1];
    assert_eq!(token.as_deref(), Some("Bearer tk_secret"));
    assert_eq!((&body["topic"], &body["title"], &body["priority"]), (&json!("my-topic"), &json!("tea"), &json!(3)));
    let text = body["message"].as_str().unwrap();
    assert!(text.starts_with("Tea is ready.") && text.len() <= 4096 && text.ends_with("(the rest: `ollim-bot inbox`)"));
    service.stop();
    let log =
        bot.names("state/log").iter().filter_map(|name| bot.read(&format!("state/log/{name}"))).collect::<String>();
    assert!(!log.contains("my-topic") && !log.contains("tk_secret"), "a topic is a password: {log}");
}

#[test]
fn what_an_ntfy_server_refuses_goes_to_the_next_channel() {
    let server = Ntfy::answering(vec![403]);
    let bot = TestBot::new();
    bot.write(
        "config.yaml",
        &format!("channels: {{ phone: {{ kind: ntfy, url: {}/my-topic }} }}\ndefault_channel: phone\n", server.url),
    );
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    let service = bot.start();
    service.until("the console has it", || service.output().contains("Tea is ready.").then_some(()));
    let failing =
        service.until("it is told", || bot.json(["channels"])[0]["failing"]["error"].as_str().map(str::to_owned));
    assert_eq!(failing, "the ntfy server answered 403: not  [31mnow");
    service.stop();
    for url in
        ["ntfy.sh/x", "https://ntfy.sh/", "https://ntfy.sh", "https:///x", "https://a@b/x", "https://ntfy.sh/a b"]
    {
        bot.write("config.yaml", &format!("channels: {{ phone: {{ kind: ntfy, url: '{url}' }} }}\n"));
        let ran = bot.run(["config"]);
        assert!(ran.code != 0 && ran.stderr.contains("must be a server's address and a topic"), "{url}: {ran:#?}");
    }
}

/// Returns the blocks of this language under a heading of docs/channels.md.
fn blocks(heading: &str, language: &str) -> Vec<String> {
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/channels.md")).unwrap();
    let section = document.split(heading).nth(1).unwrap().split("\n### ").next().unwrap();
    let opening = format!("```{language}\n");
    section.split(&opening).skip(1).map(|block| block.split("\n```").next().unwrap().to_owned() + "\n").collect()
}

#[test]
fn the_recipe_for_apprise_works_with_the_real_one() {
    let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/.cron-reference/bin");
    assert!(std::path::Path::new(programs).join("apprise").exists(), "./scripts/test installs it");
    // A service to which Apprise sends JSON.
    let server = Ntfy::answering(vec![500]);
    let bot = TestBot::new().env("PATH", &format!("{programs}:{}", std::env::var("PATH").unwrap()));
    executable(&bot.path("bin/by-apprise"), &blocks("### Recipe: 170 services by Apprise", "python")[0]);
    bot.write("config.yaml", &blocks("### Recipe: 170 services by Apprise", "yaml")[0]);
    let settings = bot.person().join(".config/apprise.yml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(settings, format!("urls:\n  - {}/hook\n", server.url.replace("http://", "json://"))).unwrap();
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea & \"cake\" --title=x."));
    let service = bot.start();
    let delivered = service.until("it is delivered", || {
        let message = bot.json(["inbox", "-n", "1"])[0].clone();
        let delivery = message["deliveries"].as_array()?.first()?.clone();
        (delivery["state"] == "delivered").then_some(delivery)
    });
    assert_eq!(delivered["channel"], "everywhere", "{delivered:#}");
    let got = server.got();
    assert_eq!(got.len(), 2, "the first try failed: {got:#?}");
    assert_eq!(got[1].1["message"], "Tea & \"cake\" --title=x.", "{got:#?}");
    service.stop();
}

#[test]
fn the_recipe_for_signal_talks_with_signal_cli() {
    // Imitates `signal-cli jsonRpc` by its manual: answers requests and reports messages.
    let stub = r#"#!/usr/bin/env python3
import json, sys
assert sys.argv[1:] == ["-a", "+491700000000", "jsonRpc"], sys.argv
tell = lambda value: print(json.dumps({"jsonrpc": "2.0", **value}), flush=True)
def receive(number, text, quote=None):
    data = {"message": text, "quote": quote and {"id": quote}}
    envelope = {"sourceNumber": number, "timestamp": 1790000000123 + len(text), "dataMessage": data}
    tell({"method": "receive", "params": {"envelope": envelope}})
receive("+491700000009", "/status")
receive("+491701234567", "/next")
tell({"method": "receive", "params": {"envelope": {"sourceNumber": "+491701234567", "receiptMessage": {}}}})
for line in sys.stdin:
    asked = json.loads(line)
    assert asked["method"] == "send", asked
    if asked["params"]["recipient"] == ["+491700000009"]:
        tell({"id": asked["id"], "result": {"timestamp": 1}})
        continue
    assert asked["params"]["recipient"] == ["+491701234567"], asked
    open("sent", "a").write(json.dumps(asked["params"]["message"]) + "\n")
    if "cake" in asked["params"]["message"]:
        tell({"id": asked["id"], "error": {"code": -1, "message": "no network"}})
        receive("+491701234567", "1", tea)
    else:
        tell({"id": asked["id"], "result": {"timestamp": 1790000000000 + len(line)}})
        if "Tea" in asked["params"]["message"]:
            tea = 1790000000000 + len(line)
"#;
    let bot = TestBot::new();
    let programs = bot.person().join("programs");
    fs::create_dir_all(&programs).unwrap();
    executable(&programs.join("signal-cli"), stub);
    let bot = bot.env("PATH", &format!("{}:{}", programs.display(), std::env::var("PATH").unwrap()));
    executable(&bot.path("bin/by-signal"), &blocks("### Recipe: Signal", "python")[0]);
    bot.write("config.yaml", &blocks("### Recipe: Signal", "yaml")[0]);
    fs::create_dir_all(bot.person().join(".local/share/signal-cli")).unwrap();
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    let service = bot.start();
    let sent = || bot.read("state/channels/signal/sent").unwrap_or_default();
    service.until("the answer to /next and the reminder are sent", || {
        (sent().contains("Tea is ready.") && sent().lines().count() >= 2).then_some(())
    });
    let delivered = service.until("it is delivered", || {
        let delivery = bot.json(["inbox", "-n", "1"])[0]["deliveries"].as_array()?.first()?.clone();
        (delivery["state"] == "delivered").then_some(delivery)
    });
    assert!(delivered["message"].as_str().unwrap().starts_with("17900000"), "{delivered:#}");
    assert_eq!(bot.json(["channels"])[0]["strangers"], 1);
    assert!(sent().contains("\\n2: 10 min"), "{}", sent());
    bot.write("reminders/cake.md", &reminder(now(), "", "A cake."));
    let error = service.until("it fails", || bot.json(["channels"])[0]["failing"]["error"].as_str().map(str::to_owned));
    assert_eq!(error, "no network");
    service.until("the number of a button presses it", || sent().contains("\"Done.\"").then_some(()));
    service.stop();
}

#[test]
fn a_job_says_how_much_its_words_matter_and_what_may_wait_for_the_digest() {
    let [from, to] = [2, 3].map(|hours| (now() + chrono::TimeDelta::hours(hours)).format("%H:%M").to_string());
    let bot = bot("#!/bin/sh\ncat >> got\n", &format!(", quiet_hours: {{ from: '{from}', to: '{to}' }}"));
    bot.write("reminders/fire.md", &reminder(now(), "client: notify\nurgency: critical\n", "Fire."));
    bot.write("reminders/news.md", &reminder(now(), "client: notify\ndeliver: digest\n", "News."));
    let fails = "---\ncron: '0 0 29 2 *'\nclient: exec\ncommand: exit 3\nallowed_tools: []\nurgency: low\ndeliver: digest\n---\n";
    bot.write("routines/fails.md", fails);
    let service = bot.start();
    service.fire("fails");
    let got = service.until("all but one are sent", || {
        let got = lines(&wrote(&bot, "got"));
        (got.len() == 2).then_some(got)
    });
    let urgency = |job: &str| got.iter().find(|one| one["job"] == job).map(|one| one["urgency"].clone());
    assert_eq!((urgency("fire"), urgency("fails")), (Some("critical".into()), Some("low".into())), "{got:#?}");
    let held = service.until("what may wait is held", || {
        let inbox = bot.json(["inbox"]);
        let news = inbox.as_array().unwrap().iter().find(|message| message["id"] == "news")?.clone();
        news["deliveries"][0]["held_until"].is_string().then_some(news)
    });
    assert_eq!(held["deliveries"][0]["state"], "waiting", "{held:#}");
    let shown = bot.ok(["runs", "show", held["run"].as_str().unwrap()]);
    let digest = shown.lines().find(|line| line.contains("its message waits for the digest at ")).unwrap();
    assert!(digest.ends_with(&format!(" {to}")), "{shown}");
    assert_eq!(bot.run(["check"]).code, 0);
    service.stop();
}

#[test]
fn check_says_which_channel_can_deliver_nothing() {
    let bot = TestBot::new();
    let channels = "channels:\n  dm: { kind: discord }\n  tg: { kind: telegram, owner: 7 }\n  new: { kind: telegram }\n  \
                    post: { kind: mail, to: me@example.org, from: b@example.org, smtp: 'smtps://m.example.org', user: me }\n  \
                    sms: { kind: command, command: [no-such-bridge] }\n  phone: { kind: ntfy, url: 'https://ntfy.example/t' }\n";
    bot.write("config.yaml", channels);
    bot.secrets("TELEGRAM_TOKEN=1:abc\n");
    let checked = bot.run(["check"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    for part in [
        "`dm` can deliver nothing: `DISCORD_TOKEN` is not set",
        "`new` can deliver nothing: the channel has no `owner`",
        "`post` can deliver nothing: `SMTP_PASSWORD` is not set",
        "`sms` can deliver nothing: ",
    ] {
        assert!(checked.stdout.contains(part) || checked.stderr.contains(part), "{part}: {checked:?}");
    }
    let said = checked.stdout + &checked.stderr;
    assert_eq!(said.matches("can deliver nothing").count(), 4, "{said}");
    assert!(said.contains("no-such-bridge") && said.contains("ollim-bot doctor"), "{said}");
}
