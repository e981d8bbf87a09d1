//! A kept process: it reads a line of JSON for each message, and writes lines of JSON with outcomes and with the person's input.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::sync::{self, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{id, last_line};
use crate::channel::{IncomingEvent, IncomingMessage, SendError};
use crate::program::{Process, shown_code};

/// Maximum length of a line that it writes, in bytes.
pub(super) const LONGEST: u64 = 64 * 1024;

/// Maximum length of the beginning of an unknown line in the log, in characters. Such a line may be what a person has written.
const MAX_LOGGED: usize = 20;

/// Maximum size of all lines that wait to be handled, in MiB. A process that writes more is ended.
const MAX_WAITING_MIB: usize = 8;

/// Maximum wait for the rest of stderr, and for the exit code, after stdout has closed.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// The outcome of a delivery.
type Outcome = Result<Option<String>, SendError>;

/// A line that the process writes.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    /// A message was delivered.
    Delivered {
        /// Number of the message.
        delivered: i64,
        /// The service's id of the message.
        #[serde(default)]
        message: Value,
    },
    /// A message was not delivered.
    Failed {
        /// Number of the message.
        failed: i64,
        /// Reason of the failure.
        #[serde(default)]
        why: String,
        /// Whether a retry may succeed.
        #[serde(default, rename = "again")]
        retryable: bool,
    },
    /// A person sent a message.
    Said {
        /// Text of the message.
        said: String,
        /// The service's id of the sender.
        by: Value,
        /// The service's id of the message.
        #[serde(default)]
        id: Value,
        /// The service's id of the message that this one replies to.
        #[serde(default)]
        reply_to: Value,
        /// Text of that message.
        #[serde(default)]
        quoted: Option<String>,
    },
    /// A person pressed a button.
    Pressed {
        /// Id of the button.
        pressed: String,
        /// The service's id of the person.
        by: Value,
    },
}

/// An event from the process that answers no message.
#[derive(Debug)]
pub(super) enum ProcessEvent {
    /// A person sent a message or pressed a button.
    Heard {
        /// The service's id of the person.
        by: String,
        /// The event.
        heard: IncomingEvent,
        /// The room that its line takes up in the queue.
        room: OwnedSemaphorePermit,
    },
    /// A line was longer than [`LONGEST`]. It was skipped.
    TooLong,
    /// A line with a message could not be read. It was skipped.
    Unreadable,
    /// The process ended, or was ended. Sent once for each process.
    Over {
        /// The last line of its stderr, or why it was ended.
        why: String,
    },
}

/// The queue of events. The reader of a process never waits for it, since the answer to a delivery may stand behind many events.
#[derive(Clone)]
pub(super) struct News {
    queue: mpsc::UnboundedSender<ProcessEvent>,
    room: Arc<Semaphore>,
}

impl News {
    /// Creates a queue, and its receiver.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<ProcessEvent>) {
        let (queue, receiver) = mpsc::unbounded_channel();
        (Self { queue, room: Arc::new(Semaphore::new(MAX_WAITING_MIB << 20)) }, receiver)
    }

    /// Appends an event whose line has this many bytes. Returns whether there was room.
    fn hear(&self, by: &Value, heard: IncomingEvent, bytes: usize) -> bool {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(bytes) else { return false };
        self.send(ProcessEvent::Heard { by: id(by).unwrap_or_default(), heard, room });
        true
    }

    fn send(&self, event: ProcessEvent) {
        // The receiver may be gone.
        let _unheard = self.queue.send(event);
    }
}

/// A running process. It ends on drop.
pub(super) struct PersistentProcess {
    stdin: sync::Mutex<pipe::Sender>,
    asked: Arc<Mutex<Asked>>,
    news: News,
    reader: JoinHandle<()>,
}

/// Messages that the process has not answered yet.
#[derive(Default)]
struct Asked {
    waiting: HashMap<i64, oneshot::Sender<Outcome>>,
    /// The reason why the process ended.
    over: Option<String>,
}

impl Drop for PersistentProcess {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl PersistentProcess {
    pub(super) fn new(process: Process, news: News) -> Self {
        let Process { stdin, stdout, stderr, runner, socket } = process;
        let asked = Arc::new(Mutex::new(Asked::default()));
        let (answers, heard) = (Arc::clone(&asked), news.clone());
        let reader = tokio::spawn(async move {
            // Dropping these ends the process.
            let (runner, _alive) = (runner, socket);
            let why = match read(stdout, stderr, &answers, &heard).await {
                Some(why) => why,
                None => end_in_words(runner).await,
            };
            record_end(&answers, &heard, why);
        });
        Self { stdin: sync::Mutex::new(stdin), asked, news, reader }
    }

    /// Whether the process has ended.
    pub(super) fn is_over(&self) -> bool {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).over.is_some()
    }

    /// Ends the process.
    pub(super) fn end(&self, why: &str) {
        self.reader.abort();
        record_end(&self.asked, &self.news, why.to_owned());
    }

    /// Sends a message and waits for its answer.
    ///
    /// # Errors
    /// Returns the reason why the process is no longer usable.
    pub(super) async fn send(&self, number: i64, line: Vec<u8>) -> Result<Outcome, String> {
        let (answer, answered) = oneshot::channel();
        {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(why) = &asked.over {
                return Err(why.clone());
            }
            asked.waiting.insert(number, answer);
        }
        self.send_line(line).await;
        match answered.await {
            Ok(outcome) => Ok(outcome),
            Err(_) => {
                let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
                Err(asked.over.clone().unwrap_or_else(|| "it ended".to_owned()))
            }
        }
    }

    /// Writes a line that needs no answer.
    pub(super) async fn send_line(&self, line: Vec<u8>) {
        // The reader notices if the process has ended.
        let _lost = self.stdin.lock().await.write_all(&line).await;
    }
}

/// Records the end of a process, and reports it. The first reason counts.
fn record_end(asked: &Mutex<Asked>, news: &News, why: String) {
    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    asked.waiting.clear();
    if asked.over.is_none() {
        asked.over = Some(why.clone());
        news.send(ProcessEvent::Over { why });
    }
}

/// What was read of a line.
enum LineRead {
    /// All of it.
    Whole,
    /// Its beginning. The rest was skipped.
    TooLong,
    /// Nothing, since the output has ended.
    End,
}

/// Reads the next line. Skips the rest of one that is too long.
async fn read_line(lines: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> io::Result<LineRead> {
    line.clear();
    if (&mut *lines).take(LONGEST).read_until(b'\n', line).await? == 0 {
        return Ok(LineRead::End);
    }
    if line.ends_with(b"\n") || u64::try_from(line.len()).is_ok_and(|bytes| bytes < LONGEST) {
        return Ok(LineRead::Whole);
    }
    loop {
        let rest = lines.fill_buf().await?;
        let end = rest.iter().position(|byte| *byte == b'\n');
        let is_over = end.is_some() || rest.is_empty();
        let skipped = end.map_or(rest.len(), |end| end + 1);
        lines.consume(skipped);
        if is_over {
            return Ok(LineRead::TooLong);
        }
    }
}

/// Returns the beginning of a line for the log.
fn beginning(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let text = crate::channel::terminal::plain(&text);
    let text = text.trim();
    match text.char_indices().nth(MAX_LOGGED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Reads the process's output to its end. Returns the reason why it ended, if it is known.
async fn read(
    stdout: impl AsyncRead + Unpin,
    stderr: impl AsyncRead + Unpin + Send + 'static,
    asked: &Mutex<Asked>,
    news: &News,
) -> Option<String> {
    let mut last_words = tokio::spawn(end_of(stderr));
    let mut lines = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        match read_line(&mut lines, &mut line).await {
            Ok(LineRead::Whole) => {}
            Ok(LineRead::TooLong) => {
                tracing::warn!("a channel wrote a line of more than {LONGEST} bytes, which was skipped");
                news.send(ProcessEvent::TooLong);
                continue;
            }
            Ok(LineRead::End) | Err(_) => break,
        }
        let mut has_room = true;
        let answer = match serde_json::from_slice(&line) {
            Ok(Line::Delivered { delivered, message }) => Some((delivered, Ok(id(&message)))),
            Ok(Line::Failed { failed, why, retryable }) => {
                let why = if why.is_empty() { "it gave no reason".to_owned() } else { why };
                Some((failed, Err(SendError { why, retryable })))
            }
            Ok(Line::Said { said, by, id: own, reply_to, quoted }) => {
                let heard = IncomingEvent::of_text(IncomingMessage {
                    id: id(&own),
                    text: said,
                    reply_to: id(&reply_to),
                    quoted,
                    files: Vec::new(),
                });
                has_room = news.hear(&by, heard, line.len());
                None
            }
            Ok(Line::Pressed { pressed, by }) => {
                has_room = news.hear(&by, IncomingEvent::Pressed { button: pressed }, line.len());
                None
            }
            Err(_) => {
                let bytes = line.len();
                tracing::warn!(begins = %beginning(&line), bytes, "a channel wrote a line that is not known");
                // Other lines are words of the program itself.
                if String::from_utf8_lossy(&line).contains("\"said\"") {
                    news.send(ProcessEvent::Unreadable);
                }
                None
            }
        };
        if let Some((number, outcome)) = answer {
            let waiting = asked.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(&number);
            // The answer is late, or the number is unknown.
            let _late = waiting.map(|waiting| waiting.send(outcome));
        }
        if !has_room {
            return Some(format!("it was ended: more than {MAX_WAITING_MIB} MiB of its lines wait to be handled"));
        }
    }
    let stderr = tokio::time::timeout(END_TIMEOUT, &mut last_words).await;
    let stderr = stderr.ok().and_then(Result::ok).unwrap_or_default();
    last_line(&stderr)
}

/// Returns the exit code of a process that said nothing about its end.
async fn end_in_words(mut runner: Child) -> String {
    match tokio::time::timeout(END_TIMEOUT, runner.wait()).await {
        Ok(Ok(status)) => format!("it ended with {}", shown_code(status.code())),
        _ => "it closed its output".to_owned(),
    }
}

async fn end_of(mut stderr: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut end = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(1..) = stderr.read(&mut chunk).await.inspect(|read| end.extend_from_slice(&chunk[..*read])) {
        let surplus = end.len().saturating_sub(4096);
        end.drain(..surplus);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads this output while nobody receives the events. Returns the outcome of message 1, and why the process ended.
    async fn unheard(output: &str) -> (Option<Outcome>, Option<String>) {
        let (answer, answered) = oneshot::channel();
        let asked = Mutex::new(Asked { waiting: HashMap::from([(1, answer)]), over: None });
        let (news, _receiver) = News::new();
        let why = read(output.as_bytes(), tokio::io::empty(), &asked, &news).await;
        drop(asked);
        (answered.await.ok(), why)
    }

    #[tokio::test]
    async fn an_answer_is_read_behind_many_events() {
        let said = "{\"said\": \"/budget\", \"by\": 7}\n";
        let (outcome, why) = unheard(&format!("{}{{\"delivered\": 1}}\n", said.repeat(5000))).await;
        assert_eq!((outcome, why), (Some(Ok(None)), None));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_skipped_to_its_end_and_told_of() {
        let said = |letters: usize| format!("{{\"said\": \"{}\", \"by\": 7}}\n", "a".repeat(letters));
        let within = said(65_536 - said(0).len());
        // The end of a line that is skipped could be read as a line.
        let hides = format!("{}{{\"delivered\": 1}}\n", "a".repeat(65_536));
        for (output, is_read) in [
            (format!("{}{{\"delivered\": 1}}\n", said(70_000)), true),
            (format!("{}{{\"delivered\": 1}}\n", said(300_000)), true),
            (hides, false),
            ("a".repeat(65_537), false),
        ] {
            let (answer, mut answered) = oneshot::channel();
            let asked = Mutex::new(Asked { waiting: HashMap::from([(1, answer)]), over: None });
            let (news, mut receiver) = News::new();
            assert_eq!(read(format!("{within}{output}").as_bytes(), tokio::io::empty(), &asked, &news).await, None);
            assert!(matches!(receiver.try_recv(), Ok(ProcessEvent::Heard { .. })), "{} bytes", within.len());
            assert!(matches!(receiver.try_recv(), Ok(ProcessEvent::TooLong)), "{} bytes", output.len());
            assert!(receiver.try_recv().is_err(), "{} bytes", output.len());
            assert_eq!(answered.try_recv().is_ok(), is_read, "{} bytes", output.len());
        }
    }

    #[tokio::test]
    async fn a_message_that_cannot_be_read_is_told_of() {
        for (output, is_told) in [
            (&b"{\"said\": \"x\xff\", \"by\": 7}\n"[..], true),
            (b"{\"said\": 7, \"by\": 7}\n", true),
            (b"connecting to the server\n", false),
            (b"{\"pressed\": null}\n", false),
        ] {
            let asked = Mutex::new(Asked { waiting: HashMap::new(), over: None });
            let (news, mut receiver) = News::new();
            assert_eq!(read(output, tokio::io::empty(), &asked, &news).await, None);
            assert_eq!(matches!(receiver.try_recv(), Ok(ProcessEvent::Unreadable)), is_told, "{output:?}");
        }
    }

    #[test]
    fn the_log_has_only_the_beginning_of_what_was_said() {
        assert_eq!(beginning(b"{\"sayd\": \"Yes, at eight\"}\n"), "{\"sayd\": \"Yes, at ei…");
        assert_eq!(beginning(b"noise\x1b\n"), "noise");
    }

    #[tokio::test]
    async fn a_process_that_writes_too_much_is_ended() {
        let said = format!("{{\"said\": \"{}\", \"by\": 7}}\n", "a".repeat(60_000));
        let (outcome, why) = unheard(&format!("{}{{\"delivered\": 1}}\n", said.repeat(150))).await;
        let expect = Some("it was ended: more than 8 MiB of its lines wait to be handled");
        assert_eq!((outcome, why.as_deref()), (None, expect));
    }
}
