//! A kept bridge of a `command` channel that ends, and is heard again without a message for it.

use crate::support::bot::{TestBot, now, reminder};
use crate::support::client::executable;

/// Creates a bot with this bridge, which hears the owner 7. Messages that it does not take go to the console soon.
fn bot(script: &str) -> TestBot {
    let bot = TestBot::new();
    executable(&bot.path("bin/bridge"), script);
    bot.write(
        "config.yaml",
        "channels:\n  phone: { kind: command, command: [bridge], keep: true, owner: 7 }\n\
         default_channel: phone\nfailover_after: 1s\n",
    );
    bot
}

#[test]
fn a_bridge_that_was_ended_is_heard_again_without_a_message_for_it() {
    let bot = bot(r#"#!/usr/bin/env python3
import json, os, sys
open("began", "a").write("x")
if os.path.getsize("began") > 2:
    print(json.dumps({"said": "/next", "by": 7}), flush=True)
for line in sys.stdin:
    open("got", "a").write(line)
"#);
    bot.write("reminders/tea.md", &reminder(now(), "client: notify\n", "Tea is ready."));
    let service = bot.start();
    // It never answers, so it is ended twice, and then the console takes the message.
    service.until("the console has it", || service.output().contains("Tea is ready.").then_some(()));
    let got = || bot.read("state/channels/phone/got").unwrap_or_default();
    service.until("it is heard again", || got().contains("nothing is coming").then_some(()));
    assert_eq!(got().matches("Tea is ready.").count(), 2, "nothing was sent to start it: {}", got());
    service.stop();
    bot.until_no_processes();
}

#[test]
fn a_bridge_that_does_not_start_is_told_once_and_tried_again() {
    let bot = bot(r#"#!/bin/sh
printf x >> began
[ -e works ] || { echo 'no link' >&2; exit 1; }
echo '{"said": "/next", "by": 7}'
cat >> got
"#);
    let service = bot.start();
    let told = "The channel `phone` hears nothing of what you say there: its program cannot be kept running: no link.";
    service.until("it is told", || service.output().contains(told).then_some(()));
    let shown = bot.ok(["channels"]) + &bot.ok(["status"]);
    assert_eq!(shown.matches("hears nothing").count(), 2, "{shown}");
    let began = || bot.read("state/channels/phone/began").unwrap_or_default().len();
    let before = began();
    service.until("it is tried again", || (began() > before).then_some(()));
    bot.write("state/channels/phone/works", "");
    let got = || bot.read("state/channels/phone/got").unwrap_or_default();
    service.until("it is heard", || got().contains("nothing is coming").then_some(()));
    let texts =
        || bot.json(["inbox"]).as_array().unwrap().iter().map(|one| one["text"].to_string()).collect::<Vec<_>>();
    service.until("it is told that it is heard again", || got().contains("hears you again").then_some(()));
    let texts = texts();
    assert!(texts.len() == 2 && texts.iter().any(|text| text.contains("no link")), "each is told once: {texts:?}");
    assert!(!bot.ok(["channels"]).contains("hears nothing"), "{}", bot.ok(["channels"]));
    service.stop();
    bot.until_no_processes();
}
