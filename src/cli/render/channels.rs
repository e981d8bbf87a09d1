//! Renders channels.

use serde_json::json;

use super::View;
use crate::app::{ChannelState, times};
use crate::channel::terminal::plain;
use crate::cli::output::{BAD, Cell, FAINT, GOOD, HINT, Output, STRONG, WARN, paint};

/// Lists the channels with their state.
pub(super) fn list(channels: &[ChannelState], view: &View, output: &mut Output) {
    if view.json {
        output.json(&json!(channels));
        return;
    }
    let header = ["CHANNEL", "KIND", "FOR", "WAITING", "STATE"];
    let mut rows = vec![header.iter().map(|name| Cell::new(name, FAINT)).collect::<Vec<_>>()];
    for channel in channels {
        let uses = match (channel.default, channel.critical) {
            (true, true) => "all, critical",
            (true, false) => "all",
            (false, true) => "critical",
            (false, false) => "",
        };
        let state = match &channel.failing {
            None if channel.is_tried() => Cell::new("works", GOOD),
            None => Cell::new("not tried yet", WARN),
            Some(failing) => {
                let since = times::relative(failing.since, view.now);
                Cell::new(format!("{} ({since}): {}", failing.state(), plain(&failing.error)), BAD)
            }
        };
        let waiting = if channel.waiting == 0 { String::new() } else { channel.waiting.to_string() };
        rows.push(vec![Cell::new(&channel.name, STRONG), channel.kind.into(), uses.into(), waiting.into(), state]);
    }
    output.facts(&rows);
    if let Some(untried) = channels.iter().find(|channel| !channel.is_tried()) {
        let name = plain(&untried.name);
        output.note(format!("{}: `ollim-bot channels test {name}` sends you a message by it", paint(HINT, "hint")));
    }
    for channel in channels {
        if channel.strangers > 0 {
            output.line(strangers(&channel.name, channel.strangers));
        }
        if channel.not_taken > 0 {
            output.line(not_taken(&channel.name, channel.not_taken));
        }
    }
}

/// Describes how many messages strangers sent by a channel.
pub(super) fn strangers(channel: &str, count: u64) -> String {
    let messages = if count == 1 { "1 message came" } else { &format!("{count} messages came") };
    format!("{channel}: {messages} from strangers; nothing was done")
}

/// Describes how many messages by a channel were too long.
fn not_taken(channel: &str, count: u64) -> String {
    let messages = if count == 1 { "1 message was" } else { &format!("{count} messages were") };
    format!("{channel}: {messages} too long and not taken; a line of its program may have 64 KiB")
}
