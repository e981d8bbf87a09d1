//! The caller's side of the control socket: blocking, for short-lived processes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use super::lock::{self, Lock};
use super::wire::{Hello, LINE_LIMIT, PROTOCOL, Reply, Request};
use crate::app::{App, Environment, Events, Service, ServiceCommand, ServiceReply, make_folders, unexpected_reply};
use crate::bot::budget::SharedBudget;
use crate::clock::Clock;
use crate::home::Home;
use crate::journal::{EventFilter, Journal, JournalLocation};
use crate::refusal::Refusal;

/// Maximum wait for an answer. Reading many definitions from a cold disk takes time.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Reasons why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nothing listens on the socket.
    #[error("the service is not running")]
    NotRunning,
    /// The person's token cannot be read.
    #[error("cannot read the person's token: {0}")]
    Token(#[source] io::Error),
    /// The process of the service is suspended.
    #[error("the service (pid {0}) is suspended: it fires nothing and answers nothing; `kill -CONT {0}` lets it go on")]
    Suspended(String),
    /// The service took the request, and did not answer in time.
    #[error("the service has not answered within {} seconds", TIMEOUT.as_secs())]
    NoAnswer,
    /// The service took the request, and ended before it answered.
    #[error("the service ended before it answered")]
    Ended,
    /// The socket failed.
    #[error("cannot talk to the service: {0}")]
    Io(#[source] io::Error),
    /// The answer cannot be parsed, most likely because the service is another version.
    #[error("the service gave an answer that cannot be read: {0}")]
    Answer(String),
}

/// The running service, as the person's processes reach it.
#[derive(Clone)]
pub struct Remote {
    /// The data folder.
    pub home: Home,
    /// The clock.
    pub clock: Clock,
    /// The environment of the person's process.
    pub env: Environment,
}

impl Service for Remote {
    fn ask(&self, command: ServiceCommand) -> Result<Option<ServiceReply>, Refusal> {
        match as_person(&self.home, &Request::Service(command.clone())) {
            Ok(Reply::Done(reply)) => Ok(Some(reply)),
            Ok(Reply::Refused(refusal)) => Err(refusal),
            Ok(_) => Err(unexpected_reply()),
            Err(CallError::NotRunning) => match (self.not_ready(), command) {
                (Some(refusal), _) => Err(refusal),
                // The only setting that can change while the service is stopped.
                (None, ServiceCommand::SetBudget { left }) => self.set_budget(left).map(Some),
                _ => Ok(None),
            },
            Err(error) => Err(error.into()),
        }
    }

    fn follow(&self, after: Option<i64>, filter: EventFilter) -> Result<Option<Events>, Refusal> {
        let mut connection = match Connection::as_person(&self.home) {
            Ok(connection) => connection,
            Err(CallError::NotRunning) => return self.not_ready().map_or(Ok(None), Err),
            Err(error) => return Err(error.into()),
        };
        connection.send(&Request::Subscribe { after, filter })?;
        // The next event may take any length of time.
        connection.stream.get_ref().set_read_timeout(None).map_err(CallError::Io)?;
        Ok(Some(Box::new(std::iter::from_fn(move || match connection.receive() {
            Ok(Some(Reply::Event(event))) => Some(Ok(*event)),
            Ok(Some(Reply::Refused(refusal))) => Some(Err(refusal)),
            Ok(Some(_)) => Some(Err(unexpected_reply())),
            Ok(None) => None,
            Err(error) => Some(Err(error.into())),
        }))))
    }
}

impl Remote {
    fn app(&self) -> App {
        App::new(self.home.clone(), self.env.clone(), Arc::new(self.clone()), Vec::new)
    }

    /// Returns the refusal of a service that holds the data folder and has no socket; `None` if none runs.
    fn not_ready(&self) -> Option<Refusal> {
        let pid = lock::holder_of(&self.home)?;
        let waits = match self.app().journal() {
            Ok(JournalLocation::Server(_)) => {
                "waits for the journal's database, or has just started; nothing fires until it is ready"
            }
            _ => "cannot be asked: it is just starting or ending, or its socket was removed from state/",
        };
        let refusal = Refusal::environment(format!("the service runs (pid {pid}), and {waits}"))
            .hint("`ollim-bot doctor` says what is wrong with the journal")
            .hint("try again in a minute: by then it has made a removed socket again");
        Some(refusal)
    }

    /// Sets the budget directly in the journal. The lock keeps a service from opening the journal meanwhile.
    fn set_budget(&self, left: u32) -> Result<ServiceReply, Refusal> {
        make_folders(&self.home)?;
        let _lock =
            Lock::take(&self.home).map_err(|error| Refusal::environment(error.to_string()).hint("try again"))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Refusal::environment(format!("cannot start: {error}")))?;
        runtime.block_on(async {
            let journal = Journal::open(self.app().journal()?, self.clock.clone())?;
            let set = SharedBudget::new(journal.clone()).set(left, self.clock.now()).await;
            journal.close().await;
            Ok(ServiceReply::BudgetSet(set?))
        })
    }
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        let refusal = Self::environment(error.to_string());
        match error {
            CallError::NoAnswer | CallError::Ended => refusal.hint(
                "it may have done what you asked, or may still do it: look at `ollim-bot status` and `ollim-bot runs`",
            ),
            _ => refusal,
        }
    }
}

/// Sends one request as the person, with the token that the service left in `state/`.
///
/// # Errors
/// [`CallError`].
pub fn as_person(home: &Home, request: &Request) -> Result<Reply, CallError> {
    Connection::as_person(home)?.ask(request)
}

/// Sends one request with a token.
///
/// # Errors
/// [`CallError`].
pub fn with_token(home: &Home, token: &str, request: &Request) -> Result<Reply, CallError> {
    Connection::open(home, token)?.ask(request)
}

/// A connection to the service.
pub struct Connection {
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Connects as the person, with the token that the service left in `state/`.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn as_person(home: &Home) -> Result<Self, CallError> {
        let token = match std::fs::read_to_string(home.user_token()) {
            Ok(token) => token,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(CallError::NotRunning),
            Err(error) => return Err(CallError::Token(error)),
        };
        let connection = Self::open(home, token.trim())?;
        match lock::suspended(home) {
            Some(pid) => Err(CallError::Suspended(pid)),
            None => Ok(connection),
        }
    }

    /// Connects with a token.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn open(home: &Home, token: &str) -> Result<Self, CallError> {
        let (path, _folder) = agent_sandbox::reachable(&home.socket()).map_err(absent)?;
        let stream = UnixStream::connect(path).map_err(absent)?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(CallError::Io)?;
        stream.set_write_timeout(Some(TIMEOUT)).map_err(CallError::Io)?;
        let mut connection = Self { stream: BufReader::new(stream) };
        // A service that refuses the token closes at once. Its answer can still be read after the failed write.
        let _refused = connection.send(&Hello { token: token.to_owned(), protocol: PROTOCOL });
        Ok(connection)
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn ask(&mut self, request: &Request) -> Result<Reply, CallError> {
        let sent = self.send(request);
        match self.receive() {
            Ok(Some(reply)) => Ok(reply),
            received => {
                sent?;
                received?;
                Err(CallError::Ended)
            }
        }
    }

    fn send(&mut self, value: &impl serde::Serialize) -> Result<(), CallError> {
        let mut line = encode(value)?;
        line.push('\n');
        self.stream.get_mut().write_all(line.as_bytes()).map_err(CallError::Io)
    }

    /// Returns the next reply, or `None` at the end of the connection.
    fn receive(&mut self) -> Result<Option<Reply>, CallError> {
        // Room for the JSON escapes of the longest line.
        let limit = u64::try_from(LINE_LIMIT).unwrap_or(u64::MAX).saturating_mul(16);
        let mut answer = String::new();
        let read = self.stream.by_ref().take(limit).read_line(&mut answer);
        if answer.is_empty() {
            return read.map(|_| None).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => CallError::NoAnswer,
                io::ErrorKind::ConnectionReset => CallError::Ended,
                _ => CallError::Io(error),
            });
        }
        serde_json::from_str(&answer).map(Some).map_err(|error| CallError::Answer(error.to_string()))
    }
}

fn encode(value: &impl serde::Serialize) -> Result<String, CallError> {
    serde_json::to_string(value).map_err(|error| CallError::Answer(error.to_string()))
}

fn absent(error: io::Error) -> CallError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => CallError::NotRunning,
        _ => CallError::Io(error),
    }
}
