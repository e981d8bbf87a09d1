//! Waits for what the person sees in a Telegram chat.

use serde_json::Value;

use super::bot::Service;
use super::telegram::Telegram;
use super::wait;

/// Waits for the first message in the chat that contains `text`. It may be the status of a turn, which shows what the
/// agent's calls are given.
#[track_caller]
pub fn sees(telegram: &Telegram, service: &Service<'_>, text: &str) -> Value {
    waits_for(telegram, service, text, |_| true)
}

/// Waits for the first message in the chat that contains `text` and has a button with this label.
#[track_caller]
pub fn sees_button(telegram: &Telegram, service: &Service<'_>, text: &str, label: &str) -> Value {
    waits_for(telegram, service, text, |one| {
        let rows = one["reply_markup"]["inline_keyboard"].as_array().into_iter().flatten();
        rows.flat_map(|row| row.as_array().unwrap()).any(|button| button["text"] == label)
    })
}

#[track_caller]
fn waits_for(telegram: &Telegram, service: &Service<'_>, text: &str, also: impl Fn(&Value) -> bool) -> Value {
    let holds = |one: &Value| one["text"].as_str().is_some_and(|said| said.contains(text)) && also(one);
    let shown = || format!("{:#?}\n{}", telegram.chat(), service.output());
    wait::until(&format!("the chat shows {text:?}"), || telegram.chat().into_iter().find(holds), shown)
}
