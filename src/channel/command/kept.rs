//! One process for all messages: a line of JSON for each, and lines of JSON back, also of what the person says and presses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{id, last_line};
use crate::channel::{Heard, NotSent, Said};
use crate::program::Process;

/// The longest line that it may write.
const LONGEST: u64 = 64 * 1024;

/// How long its last words are waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What became of a message.
type Outcome = Result<Option<String>, NotSent>;

/// What it writes, a line each.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    /// It has sent a message.
    Delivered {
        /// The message's number.
        delivered: i64,
        /// What the service calls it.
        #[serde(default)]
        message: Value,
    },
    /// It has not.
    Failed {
        /// The message's number.
        failed: i64,
        /// Why not.
        #[serde(default)]
        why: String,
        /// Whether the same may work later.
        #[serde(default)]
        again: bool,
    },
    /// Somebody has written.
    Said {
        /// The text.
        said: String,
        /// Who: what the service calls them.
        by: Value,
        /// What the service calls this message.
        #[serde(default)]
        id: Value,
        /// What it calls the message that this one answers.
        #[serde(default)]
        reply_to: Value,
        /// The text of that message.
        #[serde(default)]
        quoted: Option<String>,
    },
    /// Somebody has pressed a button.
    Pressed {
        /// The button's id.
        pressed: String,
        /// Who.
        by: Value,
    },
}

/// What a process tells without being asked.
#[derive(Debug)]
pub(super) enum News {
    /// Somebody has said or pressed something.
    Heard {
        /// What the service calls them.
        by: String,
        /// What.
        heard: Heard,
    },
    /// It has ended.
    Over {
        /// Why, as far as it said.
        why: String,
    },
}

/// A running process. Dropped, it ends.
pub(super) struct Kept {
    stdin: pipe::Sender,
    asked: Arc<Mutex<Asked>>,
    reader: JoinHandle<()>,
}

/// Messages that it was handed and has not answered.
#[derive(Default)]
struct Asked {
    waiting: HashMap<i64, oneshot::Sender<Outcome>>,
    /// Why it ended.
    over: Option<String>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Kept {
    pub(super) fn new(process: Process, news: mpsc::Sender<News>) -> Self {
        let Process { stdin, stdout, stderr, runner, socket } = process;
        let asked = Arc::new(Mutex::new(Asked::default()));
        let answers = Arc::clone(&asked);
        let reader = tokio::spawn(async move {
            // With them it ends.
            let _alive = (runner, socket);
            let why = read(stdout, stderr, &answers, &news).await;
            {
                let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                answers.over = Some(why.clone());
                answers.waiting.clear();
            }
            // Nobody may listen any more.
            let _unheard = news.send(News::Over { why }).await;
        });
        Self { stdin, asked, reader }
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).over.is_some()
    }

    /// Sends a message and waits for its answer.
    ///
    /// # Errors
    /// Why the process can be used no longer.
    pub(super) async fn send(&mut self, number: i64, line: Vec<u8>) -> Result<Outcome, String> {
        let (answer, answered) = oneshot::channel();
        {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(why) = &asked.over {
                return Err(why.clone());
            }
            asked.waiting.insert(number, answer);
        }
        let written = self.stdin.write_all(&line).await;
        match (written, answered.await) {
            (_, Ok(outcome)) => Ok(outcome),
            (_, Err(_)) => {
                let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
                Err(asked.over.clone().unwrap_or_else(|| "it ended".to_owned()))
            }
        }
    }

    /// Writes a line that needs no answer.
    pub(super) async fn tell(&mut self, line: Vec<u8>) {
        // Its end is told by the reader.
        let _lost = self.stdin.write_all(&line).await;
    }
}

/// Reads what it writes up to its end. Returns why it ended.
async fn read(stdout: ChildStdout, stderr: ChildStderr, asked: &Mutex<Asked>, news: &mpsc::Sender<News>) -> String {
    let mut last_words = tokio::spawn(end_of(stderr));
    let mut lines = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        match (&mut lines).take(LONGEST).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let answer = match serde_json::from_slice(&line) {
            Ok(Line::Delivered { delivered, message }) => Some((delivered, Ok(id(&message)))),
            Ok(Line::Failed { failed, why, again }) => {
                let why = if why.is_empty() { "it gave no reason".to_owned() } else { why };
                Some((failed, Err(NotSent { why, again })))
            }
            Ok(Line::Said { said, by, id: own, reply_to, quoted }) => {
                let heard = Heard::of_text(Said {
                    id: id(&own),
                    text: said,
                    reply_to: id(&reply_to),
                    quoted,
                    files: Vec::new(),
                });
                let by = id(&by).unwrap_or_default();
                let _unheard = news.send(News::Heard { by, heard }).await;
                None
            }
            Ok(Line::Pressed { pressed, by }) => {
                let by = id(&by).unwrap_or_default();
                let _unheard = news.send(News::Heard { by, heard: Heard::Pressed { button: pressed } }).await;
                None
            }
            Err(_) => {
                let line = String::from_utf8_lossy(&line);
                tracing::warn!(line = %crate::channel::terminal::plain(line.trim()), "a channel wrote a line that is not known");
                None
            }
        };
        if let Some((number, outcome)) = answer {
            let waiting = asked.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(&number);
            // An answer that came too late, or to nothing.
            let _late = waiting.map(|waiting| waiting.send(outcome));
        }
    }
    let stderr = tokio::time::timeout(LAST_WORDS, &mut last_words).await;
    let stderr = stderr.ok().and_then(Result::ok).unwrap_or_default();
    last_line(&stderr).unwrap_or_else(|| "it ended".to_owned())
}

async fn end_of(mut stderr: ChildStderr) -> Vec<u8> {
    let mut end = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(1..) = stderr.read(&mut chunk).await.inspect(|read| end.extend_from_slice(&chunk[..*read])) {
        let surplus = end.len().saturating_sub(4096);
        end.drain(..surplus);
    }
    end
}
