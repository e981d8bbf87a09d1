//! The service's side of the control socket.
//!
//! What always holds: nothing is answered without a token that stands for the person or a live run; a run may
//! only have command lines executed, never command the service; lines and waiting are bounded, and every caller
//! has a task of its own, so that none can hold up another.

use std::collections::VecDeque;
use std::fs;
use std::future::Future;
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::sync::Arc;
use std::time::Duration;

use agent_sandbox::token;
use async_trait::async_trait;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::wire::{self, HELLO_LIMIT, Hello, LINE_LIMIT, Reply, Request};
use crate::app::{Caller, ServiceCommand, ServiceReply};
use crate::home::Home;
use crate::refusal::Refusal;
use crate::run::tokens::{RunAuthority, Tokens};

/// Longest wait for a caller's lines, and for it to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Callers that have not said who they are. Who does so says it at once; of others the oldest makes room for a new one.
const STRANGERS: usize = 64;
/// Between two warnings that callers were turned away.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(60);

/// What answers requests.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Executes a command line on behalf of a run.
    async fn execute(&self, run: Arc<RunAuthority>, argv: Vec<String>) -> Reply;
    /// Does what the person asks of the service.
    async fn service(&self, command: ServiceCommand) -> Result<ServiceReply, Refusal>;
}

/// The socket, bound and private, and the person's token.
pub struct Control {
    listener: UnixListener,
    person: String,
    tokens: Tokens,
}

impl Control {
    /// Binds the socket and writes the person's token. The data folder must be locked: a socket that is there is
    /// what an ended service left.
    ///
    /// # Errors
    /// When the socket or the token file cannot be made.
    pub fn open(home: &Home, tokens: Tokens) -> io::Result<Self> {
        let socket = home.socket();
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let (path, _folder) = wire::reachable(&socket)?;
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o600))?;
        let person = token::random()?;
        // Nobody else writes there: one that was killed here left what this one writes over.
        let staged = home.user_token().with_extension("new");
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
        io::Write::write_all(&mut file, person.as_bytes())?;
        fs::rename(&staged, home.user_token())?;
        Ok(Self { listener, person, tokens })
    }

    /// Serves until the future is dropped.
    pub async fn serve(self, handler: Arc<dyn Handler>) {
        let person: Arc<str> = self.person.into();
        let mut strangers: VecDeque<CancellationToken> = VecDeque::new();
        let (mut turned_away, mut warned) = (0_u64, None::<Instant>);
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors, most likely: wait for some to be given back.
                    tracing::warn!(%error, "cannot accept a caller on the control socket");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            strangers.retain(|stranger| !stranger.is_cancelled());
            if strangers.len() >= STRANGERS
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
            let (handler, person, tokens) = (Arc::clone(&handler), Arc::clone(&person), self.tokens.clone());
            tokio::spawn(async move {
                if let Err(error) = converse(stream, &person, &tokens, handler.as_ref(), stranger).await {
                    tracing::debug!(%error, "a caller on the control socket was dropped");
                }
            });
        }
    }
}

/// `stranger` is cancelled when the caller has said who it is, or is turned away.
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
        hello = patient(line(&mut read, HELLO_LIMIT)) => hello?,
        () = stranger.cancelled() => return Err(io::ErrorKind::ConnectionReset.into()),
    };
    drop(known);
    let refused = |reason: &str| Reply::Refused(Refusal::user(reason));
    let reply = match hello {
        None => refused("no token was presented"),
        Some(text) => match identify(&text, person, tokens) {
            None => refused("this token is not known: it belongs to a run that has ended, or to another data folder"),
            Some(Caller::Person) => request(&mut read, Caller::Person, handler).await?,
            Some(Caller::Run(run)) => match run.call() {
                Some(_place) => request(&mut read, Caller::Run(run.clone()), handler).await?,
                None => refused("too many calls of this run at a time; wait until the others have ended"),
            },
        },
    };
    let mut text = serde_json::to_string(&reply)?;
    text.push('\n');
    patient(write.write_all(text.as_bytes())).await
}

fn identify(hello: &str, person: &str, tokens: &Tokens) -> Option<Caller> {
    let Hello { token } = serde_json::from_str(hello).ok()?;
    if token::same(token.as_bytes(), person.as_bytes()) {
        return Some(Caller::Person);
    }
    tokens.find(&token).map(Caller::Run)
}

/// Reads the request and handler it.
async fn request(read: &mut (impl AsyncBufRead + Unpin), caller: Caller, handler: &dyn Handler) -> io::Result<Reply> {
    let refused = |reason: String| Reply::Refused(Refusal::user(reason));
    Ok(match patient(line(read, LINE_LIMIT)).await?.map(|text| serde_json::from_str(&text)) {
        None => refused("the request is too long or was cut off".into()),
        Some(Err(error)) => refused(format!("the request cannot be read: {error}")),
        Some(Ok(request)) => answer(caller, request, handler).await,
    })
}

async fn answer(caller: Caller, request: Request, handler: &dyn Handler) -> Reply {
    match (caller, request) {
        (Caller::Run(run), Request::Execute { argv }) => handler.execute(run, argv).await,
        (Caller::Run(_), Request::Service(_)) => {
            Reply::Refused(Refusal::denied("a run may not do this; only the person may"))
        }
        (Caller::Person, Request::Execute { .. }) => {
            Reply::Refused(Refusal::user("the person's commands run in their own process"))
        }
        (Caller::Person, Request::Service(command)) => {
            handler.service(command).await.map_or_else(Reply::Refused, Reply::Done)
        }
    }
}

async fn patient<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(PATIENCE, work).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// One line without its end; `None` when it is longer than `limit`, was cut off or is not UTF-8.
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
