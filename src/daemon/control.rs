//! The service's side of the control socket.
//!
//! Every request needs a token of the person or of a live run. A run may have one command line executed, but never commands the
//! service. Lines are bounded, and so is every wait except the person's. Each caller has its own task, so no caller can delay
//! another.

use std::collections::VecDeque;
use std::fs;
use std::future::Future;
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::sync::Arc;
use std::time::Duration;

use agent_sandbox::relay::RelayedListener;
use agent_sandbox::token;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{Notify, broadcast};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::wire::{HELLO_LIMIT, Hello, LINE_LIMIT, PROTOCOL, Reply, Request};
use crate::app::{Caller, ServiceCommand, ServiceReply};
use crate::bot::live::{TurnUpdate, UpdateKind};
use crate::channel::OpenChat;
use crate::home::Home;
use crate::journal::{Event, EventFilter, EventKind};
use crate::refusal::Refusal;
use crate::run::tokens::{RunAuthority, Tokens};

/// Maximum wait for a caller's lines, and for the caller to accept the answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of callers that have not presented a token. At the limit a new caller replaces the oldest one.
const MAX_UNIDENTIFIED: usize = 64;
/// Minimum time between two warnings about rejected callers.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(60);

/// The handler of requests.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Executes a command line on behalf of a run.
    async fn execute(&self, run: Arc<RunAuthority>, argv: Vec<String>) -> Reply;
    /// Executes one of the person's commands to the service.
    async fn service(&self, command: ServiceCommand) -> Result<ServiceReply, Refusal>;
    /// Records that a person chats at a terminal, until the returned value is dropped.
    fn open_chat(&self) -> OpenChat;
    /// Returns the current time.
    fn now(&self) -> DateTime<Utc>;
    /// Returns the number of the newest event.
    fn newest_event(&self) -> i64;
    /// Subscribes to what turns do from now on.
    fn live(&self) -> broadcast::Receiver<TurnUpdate>;
    /// Waits until there are events after `number`, and returns some of the oldest.
    async fn events(&self, number: i64, filter: &EventFilter) -> Result<Vec<Event>, Refusal>;
}

/// The bound, private socket and the person's token.
pub struct Control {
    home: Home,
    listener: RelayedListener,
    person: Arc<str>,
    tokens: Tokens,
    removed: Arc<Notify>,
}

impl Control {
    /// Binds the socket and writes the person's token. The caller must hold the lock of the data folder: an existing socket is then
    /// a leftover of an ended service.
    ///
    /// # Errors
    /// If the socket or the token file cannot be made.
    pub fn open(home: &Home, tokens: Tokens) -> io::Result<Self> {
        let person: Arc<str> = token::random()?.into();
        let listener = make(home, &person)?;
        Ok(Self { home: home.clone(), listener, person, tokens, removed: Arc::default() })
    }

    /// Returns what to notify when the socket or the token was removed, so that both are made again.
    #[must_use]
    pub fn removed(&self) -> Arc<Notify> {
        Arc::clone(&self.removed)
    }

    /// Makes the socket and the token again. Callers that are connected stay so.
    fn make_again(&mut self) {
        match make(&self.home, &self.person) {
            Ok(listener) => {
                self.listener = listener;
                tracing::warn!("the control socket or its token was removed from state/; both were made again");
            }
            Err(error) => tracing::warn!(%error, "the control socket was removed from state/ and cannot be made again"),
        }
    }

    /// Serves until the future is dropped.
    pub async fn serve(mut self, handler: Arc<dyn Handler>) {
        let mut strangers: VecDeque<CancellationToken> = VecDeque::new();
        let (mut turned_away, mut warned) = (0_u64, None::<Instant>);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = self.removed.notified() => {
                    self.make_again();
                    continue;
                }
            };
            let stream = match accepted {
                Ok(stream) => stream,
                Err(error) => {
                    // Most likely the process is out of descriptors. Wait until some are free.
                    tracing::warn!(%error, "cannot accept a caller on the control socket");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            strangers.retain(|stranger| !stranger.is_cancelled());
            if strangers.len() >= MAX_UNIDENTIFIED
                && let Some(oldest) = strangers.pop_front()
            {
                oldest.cancel();
                turned_away += 1;
                if warned.is_none_or(|at| at.elapsed() > BETWEEN_WARNINGS) {
                    tracing::warn!(turned_away, "callers on the control socket do not say who they are");
                    (turned_away, warned) = (0, Some(Instant::now()));
                }
            }
            let stranger = CancellationToken::new();
            strangers.push_back(stranger.clone());
            let (handler, person, tokens) = (Arc::clone(&handler), Arc::clone(&self.person), self.tokens.clone());
            tokio::spawn(async move {
                if let Err(error) = converse(stream, &person, &tokens, handler.as_ref(), stranger).await {
                    tracing::debug!(%error, "a caller on the control socket was dropped");
                }
            });
        }
    }
}

/// Binds the socket, and writes the person's token.
fn make(home: &Home, person: &str) -> io::Result<RelayedListener> {
    let socket = home.socket();
    match fs::remove_file(&socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let (path, _folder) = agent_sandbox::reachable(&socket)?;
    let listener = RelayedListener::bind(path)?;
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600))?;
    // Only the lock's holder writes here, so an existing file is a leftover of a killed service.
    let staged = home.user_token().with_extension("new");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
    io::Write::write_all(&mut file, person.as_bytes())?;
    fs::rename(&staged, home.user_token())?;
    Ok(listener)
}

/// Serves one caller. `stranger` is cancelled when the caller has identified itself or is rejected.
async fn converse(
    stream: UnixStream,
    person: &str,
    tokens: &Tokens,
    handler: &dyn Handler,
    stranger: CancellationToken,
) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let known = stranger.clone().drop_guard();
    let hello = tokio::select! {
        biased;
        hello = with_timeout(line(&mut read, HELLO_LIMIT)) => hello?,
        () = stranger.cancelled() => return Err(io::ErrorKind::ConnectionReset.into()),
    };
    drop(known);
    let caller = match hello.as_deref().map(|hello| identify(hello, person, tokens)) {
        None => Err(Refusal::user("no token was presented")),
        Some(caller) => caller,
    };
    match caller {
        Err(refusal) => send(&mut write, &Reply::Refused(refusal)).await,
        Ok(Caller::Person) => serve_person(&mut read, &mut write, handler).await,
        Ok(Caller::Run(run)) => {
            let reply = match run.call() {
                Some(_place) => match with_timeout(line(&mut read, LINE_LIMIT)).await.map(parse)? {
                    Ok(request) => answer(Caller::Run(run.clone()), request, handler).await,
                    Err(refusal) => Reply::Refused(refusal),
                },
                None => Reply::Refused(Refusal::user(
                    "too many calls of this run at a time; wait until the others have ended",
                )),
            };
            send(&mut write, &reply).await
        }
    }
}

fn identify(hello: &str, person: &str, tokens: &Tokens) -> Result<Caller, Refusal> {
    let unknown = "this token is not known: it belongs to a run that has ended, or to another data folder";
    let Ok(Hello { token, protocol }) = serde_json::from_str(hello) else { return Err(Refusal::user(unknown)) };
    let caller = if token::same(token.as_bytes(), person.as_bytes()) {
        Caller::Person
    } else {
        Caller::Run(tokens.find(&token).ok_or_else(|| Refusal::user(unknown))?)
    };
    if protocol != PROTOCOL {
        let differ = format!("the service is of another version (its protocol is {PROTOCOL}, the caller's {protocol})");
        return Err(Refusal::environment(differ).hint("restart the service, so that both are of the same version"));
    }
    Ok(caller)
}

/// Answers the person's requests until the connection ends.
async fn serve_person(
    read: &mut (impl AsyncBufRead + Unpin),
    write: &mut (impl AsyncWrite + Unpin),
    handler: &dyn Handler,
) -> io::Result<()> {
    while !read.fill_buf().await?.is_empty() {
        let reply = match parse(line(read, LINE_LIMIT).await?) {
            Ok(Request::Subscribe { after, filter }) => {
                let after = after.unwrap_or_else(|| handler.newest_event());
                let _open = filter.chat.then(|| handler.open_chat());
                return send_events(read, write, after, &filter, handler).await;
            }
            Ok(request) => answer(Caller::Person, request, handler).await,
            Err(refusal) => return send(write, &Reply::Refused(refusal)).await,
        };
        send(write, &reply).await?;
    }
    Ok(())
}

/// Sends events as fast as the caller reads them, until the caller sends something or disconnects.
async fn send_events(
    read: &mut (impl AsyncBufRead + Unpin),
    write: &mut (impl AsyncWrite + Unpin),
    mut after: i64,
    filter: &EventFilter,
    handler: &dyn Handler,
) -> io::Result<()> {
    let mut live = handler.live();
    loop {
        let events = tokio::select! {
            // The letters of a text precede the event with all of it.
            biased;
            _ = read.fill_buf() => return Ok(()),
            seen = live.recv(), if filter.chat => {
                if let Ok(TurnUpdate { turn, what: UpdateKind::Letters(text) }) = seen {
                    let kind = EventKind::Letters { text };
                    let event = Event { number: after, at: handler.now(), run: None, id: Some(turn), kind };
                    write.write_all(&encoded(&Reply::Event(Box::new(event)))?).await?;
                }
                continue;
            }
            events = handler.events(after, filter) => events,
        };
        match events {
            Ok(events) => {
                for event in events {
                    after = event.number;
                    write.write_all(&encoded(&Reply::Event(Box::new(event)))?).await?;
                }
            }
            Err(refusal) => return send(write, &Reply::Refused(refusal)).await,
        }
    }
}

fn parse(text: Option<String>) -> Result<Request, Refusal> {
    let text = text.ok_or_else(|| Refusal::user("the request is too long or was cut off"))?;
    serde_json::from_str(&text).map_err(|error| Refusal::user(format!("the request cannot be read: {error}")))
}

fn encoded(reply: &Reply) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(reply)?;
    text.push(b'\n');
    Ok(text)
}

async fn send(write: &mut (impl AsyncWrite + Unpin), reply: &Reply) -> io::Result<()> {
    with_timeout(write.write_all(&encoded(reply)?)).await
}

async fn answer(caller: Caller, request: Request, handler: &dyn Handler) -> Reply {
    match (caller, request) {
        (Caller::Run(run), Request::Execute { argv }) => handler.execute(run, argv).await,
        (Caller::Run(_), Request::Service(_) | Request::Subscribe { .. }) => {
            Reply::Refused(Refusal::denied("a run may not do this; only the person may"))
        }
        (Caller::Person, Request::Execute { .. } | Request::Subscribe { .. }) => {
            Reply::Refused(Refusal::user("the person's commands run in their own process"))
        }
        (Caller::Person, Request::Service(command)) => {
            handler.service(command).await.map_or_else(Reply::Refused, Reply::Done)
        }
    }
}

async fn with_timeout<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(TIMEOUT, work).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// Reads one line without its end. Returns `None` if the line exceeds `limit`, is cut off or is not UTF-8.
async fn line(read: &mut (impl AsyncBufRead + Unpin), limit: usize) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    loop {
        let ready = read.fill_buf().await?;
        if ready.is_empty() {
            return Ok(None);
        }
        let end = ready.iter().position(|byte| *byte == b'\n');
        let take = end.unwrap_or(ready.len());
        if bytes.len() + take > limit {
            return Ok(None);
        }
        bytes.extend_from_slice(&ready[..take]);
        let used = end.map_or(take, |end| end + 1);
        read.consume(used);
        if end.is_some() {
            return Ok(String::from_utf8(bytes).ok());
        }
    }
}

#[cfg(test)]
mod tests;
