//! The identity of a run on the control socket: a token that it presents, and that expires with the run.
//!
//! A token is random and kept in memory only. Authority is never derived from the process tree: after a double
//! fork and a new session a process looks like the person's.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::delegation::DelegationLimit;
use super::spawn::SpawnRequest;
use crate::definition::DefinitionId;
use crate::journal::{Denial, RunId};
use crate::policy::Decision;
use crate::refusal::Refusal;

/// The service's actions for a live run. Text answers are for its agent.
#[async_trait]
pub trait RunActions: Send + Sync {
    /// Returns the policy's verdict on a line of our own command: `["ollim-bot", "gmail", "unread"]`. `agent` is the calling agent.
    fn decide_command(&self, words: &[String], agent: Option<&str>) -> Decision;
    /// Schedules the chain's next check after `delay`.
    async fn follow_up(&self, delay: Duration) -> Result<String, Refusal>;
    /// Marks that the run is about to have a side effect. If this fails, the effect must not happen.
    async fn mark_effect(&self, what: &str) -> Result<(), Refusal>;
    /// Starts an agent for the run, and returns its session's id.
    async fn spawn(&self, request: SpawnRequest) -> Result<DefinitionId, Refusal>;
    /// Records a denial in the run's record.
    async fn record_denial(&self, denial: Denial);
}

/// The authority of a live run.
pub struct RunAuthority {
    /// The run.
    pub run: RunId,
    /// The title, such as `routine email-triage`.
    pub title: String,
    /// The rights that it may delegate.
    pub limit: DelegationLimit,
    /// The host that acts for it.
    pub acts: Arc<dyn RunActions>,
    /// The run's agent that calls; `None` means the run itself.
    pub agent: Option<String>,
    /// The permits for the run's concurrent calls.
    calls: Arc<Semaphore>,
}

/// Maximum number of one run's concurrent calls. More could take the person's own connections to the control socket.
const CALLS: usize = 8;

impl RunAuthority {
    /// Creates the authority of a run. `title` is one such as `routine email-triage`.
    #[must_use]
    pub fn new(run: RunId, title: String, limit: DelegationLimit, acts: Arc<dyn RunActions>) -> Self {
        Self { run, title, limit, acts, agent: None, calls: Arc::new(Semaphore::new(CALLS)) }
    }

    /// Returns the authority of an agent that the run calls.
    #[must_use]
    pub fn of_agent(&self, name: &str) -> Self {
        let Self { run, title, limit, acts, agent: _, calls } = self;
        let (run, title, limit) = (run.clone(), title.clone(), limit.clone());
        Self { run, title, limit, acts: acts.clone(), agent: Some(name.to_owned()), calls: calls.clone() }
    }

    /// Acquires a permit for one more call of this run; `None` if the maximum is reached.
    #[must_use]
    pub fn call(&self) -> Option<SemaphorePermit<'_>> {
        self.calls.try_acquire().ok()
    }
}

impl fmt::Debug for RunAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunAuthority").field("run", &self.run).field("title", &self.title).finish_non_exhaustive()
    }
}

/// The tokens of live runs. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Arc<Mutex<HashMap<String, Arc<RunAuthority>>>>);

impl Tokens {
    /// Creates a token by which a run can present itself until the grant is dropped.
    ///
    /// # Errors
    /// An error if the system provides no random numbers.
    pub fn grant(&self, authority: RunAuthority) -> io::Result<Grant> {
        Ok(self.grant_as(agent_sandbox::token::random()?, authority))
    }

    /// Grants authority to a token that the run's client already has. Such a token identifies one run after the other.
    #[must_use]
    pub fn grant_as(&self, token: String, authority: RunAuthority) -> Grant {
        let authority = Arc::new(authority);
        self.live().insert(token.clone(), authority.clone());
        Grant { token, authority, tokens: self.clone() }
    }

    /// Returns the authority of the run that presents a token.
    #[must_use]
    pub fn find(&self, token: &str) -> Option<Arc<RunAuthority>> {
        self.live().get(token).cloned()
    }

    fn live(&self) -> MutexGuard<'_, HashMap<String, Arc<RunAuthority>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tokens of a client that serves several runs: its own, and those of the agents that it may call. Between two runs they
/// identify nobody.
#[derive(Debug, Default)]
pub struct LastingTokens(Mutex<HashMap<Option<String>, String>>);

impl LastingTokens {
    /// Drops the tokens, since the client has ended. The next client gets new ones.
    pub fn renew(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the token of an agent; `None` means the client's own.
    ///
    /// # Errors
    /// An error if the system provides no random numbers.
    pub fn of(&self, agent: Option<&str>) -> io::Result<String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&agent.map(ToOwned::to_owned)) {
            Some(token) => Ok(token.clone()),
            None => Ok(known.entry(agent.map(ToOwned::to_owned)).or_insert(agent_sandbox::token::random()?).clone()),
        }
    }
}

/// A run's token. Dropping it revokes the token.
#[derive(Debug)]
pub struct Grant {
    token: String,
    authority: Arc<RunAuthority>,
    tokens: Tokens,
}

impl Grant {
    /// The token, for the fork's environment.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        let mut live = self.tokens.live();
        // The token may identify the next run by now.
        if live.get(&self.token).is_some_and(|authority| Arc::ptr_eq(authority, &self.authority)) {
            live.remove(&self.token);
        }
    }
}
