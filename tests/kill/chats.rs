//! Two chats outside of the program, by the stubs of their services: what was sent there, whatever was killed.

use serde_json::Value;

use crate::check::{Message, Occurrence};
use crate::discord::{self, Discord};
use crate::jobs::{Job, Kind, WORDS};
use crate::telegram::{self, Telegram};

/// The person's number on Telegram.
const OWNER: i64 = 7;

/// The services, and what the person has said there: a token each.
pub struct Chats {
    telegram: Telegram,
    discord: Discord,
    /// The turns that answer it, with what each is to answer.
    said: Vec<(String, String)>,
}

impl Chats {
    pub fn start() -> Self {
        Self { telegram: Telegram::start(), discord: Discord::start(), said: Vec::new() }
    }

    /// What `config.yaml` says of the channels.
    pub fn settings(&self) -> String {
        let (telegram, discord) = (self.telegram.url(), self.discord.url());
        format!(
            "  tg: {{ kind: telegram, owner: {OWNER}, api: '{telegram}' }}\n  discord: {{ kind: discord, api: '{discord}' }}\n"
        )
    }

    /// What `.env` holds for them.
    pub fn secrets() -> String {
        format!("TELEGRAM_TOKEN={}\nDISCORD_TOKEN={}\n", telegram::TOKEN, discord::TOKEN)
    }

    /// The person says something in both, which is answered with its token after a while.
    pub fn say(&mut self, world: usize) {
        for chat in ["tg", "discord"] {
            let token = format!("c{world}{chat}{}", self.said.len());
            let text = format!("kind=think token={token}.");
            let name = match chat {
                "tg" => format!("{}x{}", telegram::TOKEN.split(':').next().unwrap(), self.telegram.say(OWNER, &text)),
                _ => self.discord.say(&text),
            };
            self.said.push((format!("chat-{chat}-{name}"), token));
        }
    }

    /// How many turns that makes.
    pub fn turns(&self) -> usize {
        self.said.len()
    }

    /// All that is wrong. `lives`: how many there were; each but the last was killed.
    pub fn check(&self, jobs: &[Job], occurrences: &[Occurrence], messages: &[Message], lives: usize) -> Vec<String> {
        let text = |message: &Value| message["text"].as_str().unwrap_or_default().to_owned();
        let posted: Vec<String> = self.telegram.calls("sendMessage").iter().map(text).collect();
        let seen: Vec<String> = self.telegram.chat().iter().map(text).collect();
        let on_discord = self.discord.texts();
        let mut wrong = self.discord.problems();
        let completed = |id: &dyn Fn(&Occurrence) -> bool| occurrences.iter().any(|one| id(one) && one.is_completed());
        for job in jobs.iter().filter(|job| completed(&|one| one.has(job))) {
            let (texts, is_known) = match job.kind {
                Kind::OnTelegram => (&posted, false),
                Kind::OnDiscord => (&on_discord, true),
                _ => continue,
            };
            if let Err(why) = whole(&job.token, texts, is_known, lives) {
                wrong.push(format!("{job:?}: {why}"));
            }
        }
        for (turn, token) in &self.said {
            let mut all = occurrences.iter().filter(|one| one.id == *turn);
            let (Some(_), None) = (all.next(), all.next()) else {
                wrong.push(format!("{turn} is not there once"));
                continue;
            };
            let answer = format!("answer {token}");
            let count = |texts: &[String]| texts.iter().filter(|text| **text == answer).count();
            let (there, most) = match turn.starts_with("chat-tg-") {
                true => (count(&seen), lives),
                false => (count(&on_discord), 1),
            };
            let is_answered = messages.iter().any(|message| message.text.trim() == answer);
            if occurrences.iter().any(|one| one.id == *turn && one.is_completed()) && !is_answered {
                wrong.push(format!("{turn} is completed, and its answer is not recorded"));
            }
            if is_answered != (there > 0) || there > most {
                wrong.push(format!("{turn} has {there} answers in its chat; recorded: {is_answered}"));
            }
        }
        let buttons =
            self.discord.messages().iter().filter(|one| one["components"].to_string().contains("interrupt:")).count();
        if buttons > 0 {
            wrong.push(format!("{buttons} messages on Discord can be interrupted, and nothing goes"));
        }
        // A kill hides at most the one message that Telegram took last. A press removes its button.
        let chat = self.telegram.chat();
        let left = chat.iter().filter(|one| one["reply_markup"].to_string().contains("interrupt:")).count();
        if left >= lives {
            wrong.push(format!("{left} messages on Telegram can be interrupted after {lives} lives, and nothing goes"));
        }
        wrong
    }
}

/// Whether a long message came whole and in order. `is_known`: the service knows what it was sent before, so that no part comes twice. Otherwise
/// each kill may have the one part sent again that was sent last.
fn whole(token: &str, texts: &[String], is_known: bool, lives: usize) -> Result<(), String> {
    let (mut next, mut last, mut again) = (0, None, 0);
    let mark = format!("{token}/");
    for text in texts {
        let words = text.split_whitespace().filter_map(|word| word.strip_prefix(&mark)?.parse::<usize>().ok());
        let words: Vec<usize> = words.collect();
        let (Some(first), Some(end)) = (words.first(), words.last()) else { continue };
        if last == Some(*first) {
            again += 1;
        } else if *first != next {
            return Err(format!("a part begins with {first} behind {next}"));
        }
        (next, last) = (end + 1, Some(*first));
    }
    match () {
        () if next != WORDS => Err(format!("it ends before {next}")),
        () if again > if is_known { 0 } else { lives } => Err(format!("{again} parts came again")),
        () => Ok(()),
    }
}
