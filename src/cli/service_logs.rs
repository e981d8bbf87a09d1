//! `service logs`: replaces this process by `journalctl`, which pages, follows and colours by itself.

use std::os::unix::process::CommandExt as _;

use super::args::Logs;
use crate::app::{App, log_command};
use crate::refusal::Refusal;

/// Replaces this process. Returns only if that fails.
pub(super) fn exec_log_viewer(logs: &Logs, json: bool, app: &App) -> Refusal {
    let Logs { flags, follow, count, since } = logs;
    let mut words = vec!["--lines".to_owned(), count.to_string()];
    if let Some(since) = since {
        words.push(format!("--since={since}"));
    }
    if *follow {
        words.push("--follow".into());
    }
    words.extend(["--output".into(), if json { "json" } else { "short-iso" }.into()]);
    match log_command(flags.system, &words, app) {
        Ok(mut command) => Refusal::environment(format!("`journalctl` cannot be run: {}", command.exec()))
            .hint("it is a part of systemd; install it"),
        Err(refusal) => refusal.hint("without a unit too: `ollim-bot logs`"),
    }
}
