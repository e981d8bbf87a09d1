//! `kind: mail` against a stub of a mail server: the mails, the protection of the connection, and the effect of a refusal.

use serde_json::Value;

use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::smtp::{Act, Smtp, TlsMode, certificate};

/// Returns a bot that sends mails to a server at this address.
fn bot(smtp: &str, more: &str) -> TestBot {
    let bot = TestBot::new();
    bot.write(
        "config.yaml",
        &format!(
            "channels:\n  post: {{ kind: mail, to: me@example.org, from: bot@example.org, smtp: '{smtp}', user: bot{more} }}\n\
             default_channel: post\n"
        ),
    );
    bot.secrets("SMTP_PASSWORD=hunter2\n");
    bot
}

fn trusting(name: &str) -> String {
    format!(", certificate: '{}'", certificate(name).display())
}

/// Waits until the delivery by mail of the message with this text is in this state. Returns the message.
#[track_caller]
fn until(service: &Service<'_>, bot: &TestBot, text: &str, state: &str) -> Value {
    service.until(&format!("{text:?} is {state}"), || {
        let inbox = bot.json(["inbox"]).as_array()?.clone();
        let message = inbox.into_iter().find(|message| message["text"].as_str().unwrap().contains(text))?;
        let delivery = message["deliveries"].as_array()?.iter().find(|one| one["channel"] == "post")?.clone();
        (delivery["state"] == state).then_some(delivery)
    })
}

/// The values of a header of a mail.
fn header<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let head = text.split("\n\n").next().unwrap();
    head.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).collect()
}

#[test]
fn a_message_is_a_mail_whatever_is_in_it() {
    let server = Smtp::start(TlsMode::Tls);
    let bot = bot(&format!("smtps://localhost:{}", server.port()), &trusting("ca.pem"));
    let body = "Tea\nBcc: evil@example.org\n.\n..\n.evil\n\nFrom me\nSubject: other";
    bot.write("reminders/tea.md", &reminder(now(), "", body));
    let service = bot.start();
    let delivery = until(&service, &bot, "Tea", "delivered");
    let mail = server.mails().remove(0);
    assert_eq!((mail.from.as_str(), mail.to.as_str(), mail.encrypted), ("bot@example.org", "me@example.org", true));
    assert_eq!(mail.login, Some(("bot".into(), "hunter2".into())));
    assert_eq!(header(&mail.text, "Subject"), ["tea: Tea"]);
    assert_eq!(header(&mail.text, "Auto-Submitted"), ["auto-generated"]);
    assert_eq!(header(&mail.text, "Bcc"), [""; 0]);
    assert_eq!(header(&mail.text, "Message-ID"), [delivery["message"].as_str().unwrap()]);
    assert_eq!(header(&mail.text, "References"), ["<tea.job.ollim-bot@example.org>"]);
    let (_, text) = mail.text.split_once("\n\n").unwrap();
    assert_eq!(text.trim_end(), body, "{}", mail.text);

    // A line of a mail has 998 characters at most. The server checks it.
    bot.write("reminders/long.md", &reminder(now(), "", &format!("Long {}", "x".repeat(3000))));
    until(&service, &bot, "Long", "delivered");
    // A mail whose answer was lost, and one that the server deferred, are sent again under the same id.
    server.acts(&[Act::Cut, Act::Text("451 4.3.0 try again later")]);
    bot.write("reminders/oven.md", &reminder(now(), "", &format!("Öfen & <heiß>.{}", " x".repeat(3000))));
    until(&service, &bot, "heiß", "delivered");
    let ids: Vec<String> =
        server.mails()[2..].iter().map(|mail| header(&mail.text, "Message-ID")[0].to_owned()).collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");

    // A message that the server refuses for good takes the next channel, with the server's words.
    server.acts(&[Act::Recipient("550 5.1.1 no such user")]);
    bot.write("reminders/cake.md", &reminder(now(), "", "Cake is ready."));
    let delivery = until(&service, &bot, "Cake", "failed");
    assert!(delivery["error"].as_str().unwrap().contains("no such user"), "{delivery:#}");
    service.until("the console has it", || service.output().contains("Cake is ready.").then_some(()));
    let shown = service.output() + &bot.ok(["config"]) + &bot.ok(["channels"]);
    assert!(!shown.contains("hunter2"), "{shown}");
    service.stop();
}

#[test]
fn nothing_is_said_to_a_server_that_is_not_the_right_one() {
    let ready = |bot: &TestBot| bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    // Each of these fails: another authority, none of the public ones, no encryption although required, a wrong password.
    let tls = Smtp::start(TlsMode::Tls);
    let starttls = Smtp::start(TlsMode::StartTls);
    let plain = Smtp::start(TlsMode::Plain);
    for (server, scheme, host, more, why) in [
        (&tls, "smtps", "localhost", trusting("other-ca.pem"), "certificate"),
        (&tls, "smtps", "localhost", String::new(), "certificate"),
        (&starttls, "smtp", "localhost", trusting("other-ca.pem"), "certificate"),
        (&plain, "smtp", "localhost", trusting("ca.pem"), "STARTTLS"),
        (&tls, "smtps", "localhost", ", certificate: /nowhere.pem".into(), "/nowhere.pem"),
    ] {
        let bot = bot(&format!("{scheme}://{host}:{}", server.port()), &more);
        ready(&bot);
        let service = bot.start();
        let error =
            service.until("it fails", || bot.json(["channels"])[0]["failing"]["error"].as_str().map(str::to_owned));
        assert!(error.contains(why), "{why}: {error}");
        until(&service, &bot, "Tea", "waiting");
        service.stop();
    }
    assert!(tls.mails().is_empty() && starttls.mails().is_empty() && plain.mails().is_empty());

    let bot = bot(&format!("smtp://127.0.0.1:{}", starttls.port()), &trusting("ca.pem"));
    ready(&bot);
    let service = bot.start();
    until(&service, &bot, "Tea", "delivered");
    assert!(starttls.mails()[0].encrypted);
    service.stop();
    for (env, why) in [("SMTP_PASSWORD=wrong\n", "authentication failed"), ("", "`SMTP_PASSWORD` is not set")] {
        bot.secrets(env);
        bot.write("reminders/cake.md", &reminder(now(), "", &format!("Cake {why}.")));
        let service = bot.start();
        let delivery = until(&service, &bot, why, "failed");
        assert!(delivery["error"].as_str().unwrap().contains(why), "{delivery:#}");
        service.stop();
    }
}

#[test]
fn a_server_on_this_machine_needs_no_encryption_and_the_settings_are_checked() {
    let server = Smtp::start(TlsMode::Plain);
    let bot = bot(&format!("smtp://127.0.0.1:{}", server.port()), "");
    bot.write("reminders/tea.md", &reminder(now(), "", "Tea is ready."));
    let service = bot.start();
    until(&service, &bot, "Tea", "delivered");
    assert!(!server.mails()[0].encrypted);
    service.stop();
    for (fields, expect) in [
        ("to: me, from: b@c, smtp: 'smtps://h'", "`channels.post.to` must be a mail address"),
        ("to: 'a@b>\\r\\nBcc: c@d', from: b@c, smtp: 'smtps://h'", "`channels.post.to` must be a mail address"),
        ("to: a@b, smtp: 'smtps://h'", "`channels.post.from` must be a mail address"),
        ("to: a@b, from: b@c", "must be the address of a mail server"),
        ("to: a@b, from: b@c, smtp: mail.example.org", "must be the address of a mail server"),
        ("to: a@b, from: b@c, smtp: 'smtp://me:secret@h'", "must be the address of a mail server"),
        ("to: a@b, from: b@c, smtp: 'smtps://h:99999'", "must be the address of a mail server"),
        ("to: a@b, from: b@c, smtp: 'smtps://h', password: x", "unknown setting `password`"),
    ] {
        bot.write("config.yaml", &format!("channels: {{ post: {{ kind: mail, {fields} }} }}\n"));
        let ran = bot.run(["config"]);
        assert!(ran.code != 0 && ran.stderr.contains(expect), "{fields}: {ran:#?}");
    }
}
