//! A channel that passes each message as JSON to a program of the person. It connects any service that has a command line client.
//!
//! By default a process is started for each message, and exit code 0 means delivered. With `keep: true` one process gets a line of JSON
//! for each message. No shell is involved. The program runs in a kernel sandbox. It reaches the network and the person's files, but not
//! the data folder, the agent's login or any key. It can write only to its own folder and to the folders that its settings name.

mod process;
mod restarts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

use super::incoming::STRANGER_REPLY;
use super::{Channel, Deaf, Inbound, IncomingEvent, Outgoing, Response, SendError, SentParts};
use crate::config::CommandChannel;
use crate::program::{Network, Process, Program, ProgramEnv, ReadScope};
use crate::search_path;
use process::{LONGEST, News, PersistentProcess, ProcessEvent};
use restarts::Restarts;

/// Version of the JSON format.
const VERSION: u32 = 1;

/// Maximum time for one message.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of commands and buttons that are handled at once.
const MAX_AT_ONCE: usize = 16;

/// "Try again later" (sysexits.h).
const TEMPORARY: i32 = 75;

/// The command channel.
pub struct Command {
    settings: CommandChannel,
    program: Program,
    program_env: ProgramEnv,
    kept: Mutex<Option<Arc<PersistentProcess>>>,
    /// Events from the kept process, and their receiver.
    news: (News, Mutex<mpsc::UnboundedReceiver<ProcessEvent>>),
}

impl Command {
    /// Creates the channel. No program is started before the first message. The program works in `own_folder`.
    #[must_use]
    pub fn new(settings: CommandChannel, own_folder: PathBuf, program_env: ProgramEnv) -> Self {
        let (news, receiver) = News::new();
        let program = Program {
            command: settings.command.clone(),
            own_folder,
            reads: ReadScope::Everything,
            writes: settings.writes.clone(),
            network: Network::All,
            env: BTreeMap::new(),
        };
        Self { settings, program, program_env, kept: Mutex::default(), news: (news, Mutex::new(receiver)) }
    }

    /// Checks that the program exists, without starting it.
    pub(super) fn probe(settings: &CommandChannel, path: &[PathBuf], user_home: &Path) -> Result<String, SendError> {
        let name = settings.command.first().map(String::as_str).unwrap_or_default();
        let file = search_path::find(name, path, user_home)
            .map_err(|error| SendError { why: error.to_string(), retryable: false })?;
        Ok(format!("its program is {}", file.display()))
    }

    async fn once(&self, message: &Outgoing) -> Result<Option<String>, SendError> {
        let process = Process::start(&self.program, &self.program_env).await.map_err(temporary)?;
        let ended = timeout(TIMEOUT, process.answer(line(message))).await;
        let ended = ended.map_err(|_| SendError::temporary(format!("it took longer than {} s", TIMEOUT.as_secs())))?;
        let ended = ended.map_err(temporary)?;
        let why = || last_line(&ended.stderr).unwrap_or_else(|| format!("it ended with {}", ended.shown_code()));
        match ended.code {
            Some(0) => Ok(external(&ended.stdout)),
            Some(TEMPORARY) | None => Err(SendError::temporary(why())),
            // Exit code of a shell for a command that a signal ended.
            Some(128..) => Err(SendError::temporary(why())),
            Some(_) => Err(SendError { why: why(), retryable: false }),
        }
    }

    async fn by_kept(&self, message: &Outgoing) -> Result<Option<String>, SendError> {
        let process = self.running().await.map_err(temporary)?;
        let answer = timeout(TIMEOUT, process.send(message.number, line(message))).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("it did not answer within {} s", TIMEOUT.as_secs())));
        answer.unwrap_or_else(|why| {
            process.end(&why);
            Err(SendError::temporary(why))
        })
    }

    /// Returns the kept process. Starts it if it is not running.
    async fn running(&self) -> std::io::Result<Arc<PersistentProcess>> {
        let mut kept = self.kept.lock().await;
        if let Some(process) = kept.as_ref().filter(|process| !process.is_over()) {
            return Ok(Arc::clone(process));
        }
        *kept = None;
        let started = Process::start(&self.program, &self.program_env).await?;
        Ok(Arc::clone(kept.insert(Arc::new(PersistentProcess::new(started, self.news.0.clone())))))
    }

    /// Plans the restart of the kept process. Tells the person by another channel if it cannot be started.
    async fn ended(&self, restarts: &mut Restarts, why: &str, inbound: &Inbound) {
        tracing::warn!(%why, command = ?self.settings.command, "a channel's program has ended; it is started again");
        if restarts.ended() {
            let why = format!("its program cannot be kept running: {}", super::terminal::plain(why));
            inbound.deaf(Deaf { why, delivers: false }).await;
        }
    }

    /// Shows the person the response to an input, unless the response arrives as a message.
    async fn notice(&self, by: &str, response: Response) {
        let text = match response {
            Response::Turn(_) | Response::Repeated | Response::Stranger { tell: false } => return,
            Response::Text(text) | Response::Done(text) | Response::Refused(text) | Response::Gone(text) => text,
            Response::Stranger { tell: true } => STRANGER_REPLY.to_owned(),
        };
        self.tell(&json!({ "version": VERSION, "notice": text, "to": by })).await;
    }

    /// Answers an event of the kept process.
    async fn answer(&self, event: ProcessEvent, owner: &str, inbound: &Inbound) {
        match event {
            ProcessEvent::Heard { by, heard, room: _room } => {
                let response = inbound.receive(&by, Some(owner), heard).await;
                self.notice(&by, response).await;
            }
            // It is not known who wrote the line.
            ProcessEvent::TooLong => {
                inbound.not_taken().await;
                self.notice(owner, Response::Refused(too_long())).await;
            }
            ProcessEvent::Unreadable => self.notice(owner, Response::Refused(UNREADABLE.to_owned())).await,
            ProcessEvent::Over { .. } => {}
        }
    }

    /// Writes a line that needs no answer to the kept process, if it runs.
    async fn tell(&self, line: &Value) {
        let kept = self.kept.lock().await.clone();
        if let Some(process) = kept {
            // If the program does not read this, the next message detects that.
            let _late = timeout(TIMEOUT, process.send_line(format!("{line}\n").into_bytes())).await;
        }
    }
}

#[async_trait]
impl Channel for Command {
    /// Keeps the process running and passes its events to `inbound`.
    async fn listen(&self, inbound: Inbound) {
        let mut news = self.news.1.lock().await;
        let Some(owner) = self.settings.owner.as_deref().filter(|_| self.settings.keep) else {
            // Nobody is heard.
            while news.recv().await.is_some() {}
            return;
        };
        let (mut restarts, mut asked) = (Restarts::default(), FuturesUnordered::new());
        loop {
            if restarts.is_due() {
                restarts.started();
                if let Err(error) = self.running().await {
                    self.ended(&mut restarts, &error.to_string(), &inbound).await;
                }
            }
            if restarts.has_run() && restarts.worked() {
                inbound.hears().await;
            }
            let next = tokio::select! {
                next = news.recv(), if asked.len() < MAX_AT_ONCE => next,
                Some(()) = asked.next() => continue,
                () = restarts.due() => continue,
            };
            match next {
                Some(ProcessEvent::Over { why }) => self.ended(&mut restarts, &why, &inbound).await,
                Some(event) => {
                    if restarts.worked() {
                        inbound.hears().await;
                    }
                    let is_word = matches!(event, ProcessEvent::Heard { heard: IncomingEvent::Message(_), .. });
                    let answered = self.answer(event, owner, &inbound);
                    // Messages stay in order. Commands and buttons run concurrently, so they delay no message.
                    if !is_word {
                        asked.push(answered);
                        continue;
                    }
                    let mut answered = pin!(answered);
                    loop {
                        // One of the others may be writing a line.
                        tokio::select! {
                            () = &mut answered => break,
                            Some(()) = asked.next() => {}
                        }
                    }
                }
                None => return,
            }
        }
    }

    async fn remove_buttons(&self, external: &str, _message: &Outgoing, outcome: &str) -> Result<(), SendError> {
        if self.settings.outcomes {
            self.tell(&json!({ "version": VERSION, "outcome": outcome, "of": external })).await;
        }
        Ok(())
    }

    fn takes_commands(&self) -> bool {
        self.settings.keep && self.settings.owner.is_some()
    }

    async fn send(&self, message: &Outgoing, _sent: &mut SentParts) -> Result<Option<String>, SendError> {
        if self.settings.keep { self.by_kept(message).await } else { self.once(message).await }
    }
}

/// Tells the person that a line with a message was skipped.
const UNREADABLE: &str =
    "A message of yours was not taken: the channel's program wrote it as a line that cannot be read.";

/// Tells the person that a line was skipped.
fn too_long() -> String {
    format!("Your message was not taken: a line may have {} KiB. Send it in parts.", LONGEST / 1024)
}

/// Returns the message as one line of JSON.
fn line(message: &Outgoing) -> Vec<u8> {
    let mut value = json!(message);
    value["version"] = json!(VERSION);
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

fn temporary(error: std::io::Error) -> SendError {
    SendError::temporary(error.to_string())
}

/// Returns the message's id from the first line of the output: `{"message": "17"}`.
fn external(stdout: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Answer {
        message: Value,
    }
    let first = stdout.split(|byte| *byte == b'\n').next()?;
    let Answer { message } = serde_json::from_slice(first).ok()?;
    id(&message)
}

/// Returns a service's id of a message, which is a string or a number.
fn id(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.chars().take(200).collect()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn last_line(stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(super::terminal::plain(line).trim().chars().take(300).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_may_name_the_message() {
        for (stdout, expect) in [
            ("", None),
            ("sent\n", None),
            ("{\"message\": \"a1\"}\nmore\n", Some("a1")),
            ("{\"message\": 17}", Some("17")),
            ("{\"message\": null}", None),
            ("\n{\"message\": 17}", None),
        ] {
            assert_eq!(external(stdout.as_bytes()).as_deref(), expect, "{stdout:?}");
        }
    }

    #[test]
    fn the_last_line_of_standard_error_says_why() {
        assert_eq!(last_line(b"one\n\x1b[31mtwo\n\n").as_deref(), Some("[31mtwo"));
        assert_eq!(last_line(b" \n"), None);
    }
}
