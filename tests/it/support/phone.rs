//! The person's phone: a bridge of the channel `command` with `keep: true`, the messages that it gets, and those that it sends.

use std::fs::OpenOptions;
use std::io::Write as _;

use serde_json::{Value, json};

use super::bot::{Service, TestBot};
use super::client::{self, executable};
use super::messages_api::MessagesApi;
use super::wait;

/// A bridge that passes the test's lines to the service and delivers every message as `m-NUMBER`.
const BRIDGE: &str = r#"#!/usr/bin/env python3
import json, os, sys, threading, time
def say():
    seen = int(open("seen").read()) if os.path.exists("seen") else 0
    while True:
        try:
            lines = open("in").read().splitlines(keepends=True)
        except FileNotFoundError:
            lines = []
        whole = [line for line in lines if line.endswith("\n")]
        for line in whole[seen:]:
            print(line, end="", flush=True)
        if len(whole) > seen:
            seen = len(whole)
            # It may be killed at any moment.
            with open("new", "w") as new: new.write(str(seen))
            os.rename("new", "seen")
        time.sleep(0.05)
threading.Thread(target=say, daemon=True).start()
for line in sys.stdin:
    message = json.loads(line)
    open("got", "a").write(line)
    if "number" in message:
        print(json.dumps({"delivered": message["number"], "message": "m-%d" % message["number"]}), flush=True)
"#;

/// A person on the phone, with the number 7.
pub struct Phone<'a> {
    pub bot: &'a TestBot,
    pub service: &'a Service<'a>,
}

/// Creates a bot whose default channel is the phone.
pub fn bot_with_phone(api: &MessagesApi) -> TestBot {
    let bot = TestBot::with_client(&client::real(), api.url());
    executable(&bot.path("bin/bridge"), BRIDGE);
    bot.write(
        "config.yaml",
        "channels:\n  phone: { kind: command, command: [bridge], keep: true, owner: 7 }\ndefault_channel: phone\n",
    );
    bot
}

impl Phone<'_> {
    /// Passes a line of the bridge to the service.
    pub fn write(&self, line: &Value) {
        let path = self.bot.path("state/channels/phone/in");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Sends a message of the owner.
    pub fn say(&self, text: &str) {
        self.write(&json!({ "said": text, "by": 7 }));
    }

    /// Returns everything that the service gave to the bridge.
    pub fn deliveries(&self) -> Vec<Value> {
        let text = self.bot.read("state/channels/phone/got").unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits for the first message or notice that contains `text`.
    #[track_caller]
    pub fn next_message(&self, text: &str) -> Value {
        let holds =
            |one: &Value| one["text"].as_str().or(one["notice"].as_str()).is_some_and(|said| said.contains(text));
        let shown = || format!("{:#?}\n{}", self.deliveries(), self.service.output());
        wait::until(&format!("the phone hears {text:?}"), || self.deliveries().into_iter().find(holds), shown)
    }

    /// Presses a button as the owner.
    #[track_caller]
    pub fn press(&self, message: &Value, label: &str) {
        let buttons = message["buttons"].as_array().unwrap();
        let button = buttons.iter().find(|button| button["label"] == label).unwrap_or_else(|| panic!("{message:#}"));
        self.write(&json!({ "pressed": button["id"], "by": 7 }));
    }
}
