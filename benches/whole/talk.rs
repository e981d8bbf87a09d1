//! Channels and conversations: the time until the person sees something, the queue, and the cost of waiting. Against stubs of Discord,
//! Telegram and the model's API on loopback.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::bare_client::{KEY, REST, Until, by_itself, client};
use super::bot::{Bot, Service, now};
use super::discord::Discord;
use super::messages_api::{MessagesApi, Reply};
use super::telegram::Telegram;
use super::terminal::Terminal;
use super::{Plan, ms, percentile, row};

const ROUNDS: usize = 10;

/// Messages that wait for a channel.
const QUEUED: usize = 1000;

pub fn measure(_plan: &Plan) {
    offline();
    memory();
    dead_channel();
    let Some(client) = client() else {
        return row("a conversation", "", "not measured: `./scripts/test` installs the client", "");
    };
    talk(&client);
    parked(&client);
}

/// Waits until `done` returns a value, with little processor time.
fn until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(done) = done() {
            return done;
        }
        assert!(start.elapsed() < Duration::from_secs(120), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Gives a bot these settings and secrets.
fn set(bot: &Bot, settings: &str, secrets: &str) {
    fs::write(bot.home.join("config.yaml"), settings).unwrap();
    let file = bot.home.join(".env");
    fs::write(&file, secrets).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

fn talking(bot: Bot, client: &Path, api: &MessagesApi) -> Bot {
    bot.env("OLLIM_AGENT_CLIENT", "claude")
        .env("OLLIM_CLAUDE", client.to_str().unwrap())
        .env("ANTHROPIC_BASE_URL", api.url())
        .env("ANTHROPIC_API_KEY", KEY)
}

/// Measures messages that no channel accepts until one does.
fn offline() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let bot = Bot::with(0);
    let channel = format!("{{ kind: telegram, owner: 1, api: 'http://127.0.0.1:{port}' }}");
    let settings = format!("channels: {{ tg: {channel} }}\ndefault_channel: tg\nfailover_after: 1h\n");
    set(&bot, &settings, &format!("TELEGRAM_TOKEN={}\n", super::telegram::TOKEN));
    let service = bot.start();
    let at = now();
    (0..QUEUED).for_each(|n| bot.reminder(&format!("queued-{n}"), at, &format!("Message {n}.")));
    let queued = until("all are recorded", || {
        let inbox = bot.json(&["inbox", "-n", "2000"]);
        let texts: Vec<String> = inbox.as_array()?.iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect();
        (texts.len() == QUEUED).then_some(texts)
    });
    let telegram = Telegram::start_at(port);
    until("the first is sent", || (!telegram.chat().is_empty()).then_some(()));
    let first = Instant::now();
    let sent = until("all are sent", || Some(telegram.calls("sendMessage")).filter(|sent| sent.len() >= QUEUED));
    let took = first.elapsed();
    std::thread::sleep(Duration::from_secs(1));
    let sent: Vec<&str> = sent.iter().map(|one| one["text"].as_str().unwrap()).collect();
    let is_right = sent == queued && telegram.calls("sendMessage").len() == QUEUED;
    let rate = (QUEUED as f64 / took.as_secs_f64()).round();
    let measured = format!("{} after the first, {rate} a second, {}", ms(took), if is_right { "so" } else { "NOT so" });
    row("1,000 messages that waited for a channel, sent in order, none twice", "", &measured, "");
    drop(service);
}

const ALL_CHANNELS: &str = "default_channel: console\nchannels:\n  discord: { kind: discord, api: '{discord}' }\n  \
    tg: { kind: telegram, owner: 1, api: '{telegram}' }\n  phone: { kind: ntfy, url: '{telegram}/topic' }\n  \
    post: { kind: mail, smtp: 'smtp://localhost:9', from: bot@example.com, to: me@example.com }\n  \
    bridge: { kind: command, command: [cat], keep: true, owner: me }\n";

fn with_all(bot: &Bot, discord: &str, telegram: &str) {
    let settings = ALL_CHANNELS.replace("{discord}", discord).replace("{telegram}", telegram);
    let tokens = format!("DISCORD_TOKEN={}\nTELEGRAM_TOKEN={}\n", super::discord::TOKEN, super::telegram::TOKEN);
    set(bot, &settings, &tokens);
}

fn memory() {
    let rest = |service: &Service| {
        std::thread::sleep(Duration::from_secs(3));
        service.memory().0
    };
    let bot = Bot::with(0);
    let without = rest(&bot.start());
    let (discord, telegram) = (Discord::start(), Telegram::start());
    with_all(&bot, &discord.url(), telegram.url());
    let service = bot.start();
    until("it is connected", || discord.is_connected().then_some(()));
    let with = rest(&service);
    row(
        "memory with a channel of every kind, beyond that without",
        "60 MiB",
        &format!("{} MiB, beyond {without} MiB", with.saturating_sub(without)),
        "",
    );
}

/// Measures from the start of the service to the message of a reminder that is already due, beside channels that work and that do not.
fn dead_channel() {
    let (discord, telegram) = (Discord::start(), Telegram::start());
    // It accepts connections but never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let once = |is_dead: bool| {
        let bot = Bot::with(0);
        match is_dead {
            true => with_all(&bot, &url, &url),
            false => with_all(&bot, &discord.url(), telegram.url()),
        }
        bot.reminder("due", now(), "It is due.");
        let start = Instant::now();
        let service = bot.start();
        service.when_said("It is due.") - start
    };
    let (mut working, mut dead): (Vec<_>, Vec<_>) = (0..ROUNDS * 2).map(|_| (once(false), once(true))).unzip();
    let (working, dead) = (percentile(&mut working, 50), percentile(&mut dead, 50));
    row(
        "a due job's message after a start, with dead channels beside its own",
        "+0 ms",
        &format!("{:+.1} ms", beyond(dead, working)),
        &format!("with channels that work: {}", ms(working)),
    );
}

fn talk(client: &Path) {
    // The stub behaves like a model: it thinks for a while, then writes.
    let api = MessagesApi::answering(|_| Reply::Letters("Done and dusted.".into(), Duration::from_millis(70)));
    let discord = Discord::start();
    let bot = talking(Bot::with(0), client, &api);
    with_all(&bot, &discord.url(), "http://127.0.0.1:9");
    let connected = || {
        let service = bot.start();
        until("it is connected", || discord.is_connected().then_some(()));
        service
    };
    let service = connected();
    let mut seen = Vec::new();
    for round in 0..ROUNDS {
        let start = Instant::now();
        let message = discord.say(&format!("Say that you are done, {round}."));
        until("the eyes", || (!discord.reactions(&message).is_empty()).then_some(()));
        seen.push(start.elapsed());
        until("the answer", || discord.reactions(&message).is_empty().then_some(()));
    }
    drop(service);
    let (half, all) = (percentile(&mut seen, 50), percentile(&mut seen, 100));
    row("from a message on Discord to 👀 on it", "100 ms", &format!("{}, at most {}", ms(half), ms(all)), "");
    let [mut bare, mut first, mut next, mut chat] = [const { Vec::new() }; 4];
    for round in 0..ROUNDS {
        until("it is gone", || (!discord.is_connected()).then_some(()));
        std::thread::sleep(REST);
        bare.push(by_itself(client, bot.person(), api.url(), &format!("alone-{round}"), Until::FirstLetter));
        let service = connected();
        std::thread::sleep(REST);
        first.push(first_letter_on(&discord));
        std::thread::sleep(REST);
        next.push(first_letter_on(&discord));
        std::thread::sleep(REST);
        chat.push(first_letter_of_chat(&bot));
        drop(service);
    }
    let bare = percentile(&mut bare, 50);
    for (what, times) in [
        ("from a message on Discord to the first letter of its answer there, beyond the bare client", &mut first),
        ("… of the next message, for which the client is still there", &mut next),
        ("… in `chat` at a terminal, for which it is, too", &mut chat),
    ] {
        let measured = format!("{:+.0} ms, on top of {}", beyond(percentile(times, 50), bare), ms(bare));
        row(what, "50 ms", &measured, "");
    }
}

/// Returns by how many milliseconds `one` took longer than `other`.
fn beyond(one: Duration, other: Duration) -> f64 {
    (one.as_secs_f64() - other.as_secs_f64()) * 1000.0
}

fn first_letter_on(discord: &Discord) -> Duration {
    let before = discord.messages().len();
    let start = Instant::now();
    let message = discord.say("Say that you are done.");
    until("the first letter", || discord.texts().get(before..)?.iter().any(|text| text.contains("D")).then_some(()));
    let took = start.elapsed();
    until("the answer", || discord.reactions(&message).is_empty().then_some(()));
    took
}

/// Talks at a terminal. With a pipe, `chat` shows a text when it is whole.
fn first_letter_of_chat(bot: &Bot) -> Duration {
    let start = Instant::now();
    let chat = Terminal::start(bot.command(&["chat", "Say that you are done."]));
    until("the first letter", || chat.shown().contains("\nD").then_some(()));
    let took = start.elapsed();
    let (status, shown) = chat.end();
    assert!(status.success(), "{shown}");
    took
}

/// A job that waits for the person's answer.
fn parked(client: &Path) {
    const SPAN: Duration = Duration::from_secs(10);
    let api = MessagesApi::answering(|request| match request.answers() {
        0 => Reply::bash("touch asked"),
        _ => Reply::say("Done."),
    });
    let bot = talking(Bot::with(0), client, &api);
    let service = bot.start();
    std::thread::sleep(Duration::from_secs(3));
    let idle = || {
        let before = service.cpu_of_threads();
        std::thread::sleep(SPAN);
        service.cpu_since(&before).as_secs_f64() / SPAN.as_secs_f64() * 100.0
    };
    let without = idle();
    let fields = "background: true\nisolated: true\nallowed_tools: [Read]\nask_tools: ['Bash(touch *)']\nask: { deadline: 1h }\n";
    bot.reminder_with("asks", now(), fields, "Touch it.");
    until("it asks", || {
        let questions: Value = bot.json(&["questions"]);
        (!questions["questions"].as_array().or(questions.as_array())?.is_empty()).then_some(())
    });
    std::thread::sleep(Duration::from_secs(3));
    let with = idle();
    row(
        "the service while a question waits for its answer, of a core",
        "as idle",
        &format!("{with:.3} %"),
        &format!("idle: {without:.3} %"),
    );
}
