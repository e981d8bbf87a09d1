//! Who a run is on the control socket: a token that it presents, dead with the run.
//!
//! A token is random and held in memory only. Authority is never guessed from the process tree: after a double
//! fork and a new session the tree looks like the person's.

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

/// What the service does for a live run, besides showing it things. Answers in words are for its agent.
#[async_trait]
pub trait OnBehalf: Send + Sync {
    /// Its policy's verdict on a command line of our own, in words: `["ollim-bot", "gmail", "unread"]`. `agent`: the agent of its that
    /// calls.
    fn decide_command(&self, words: &[String], agent: Option<&str>) -> Decision;
    /// Schedules the next link of its chain, so long from now.
    async fn follow_up(&self, delay: Duration) -> Result<String, Refusal>;
    /// Marks that it is about to have an effect. Where that fails, the effect must not be had.
    async fn mark_effect(&self, what: &str) -> Result<(), Refusal>;
    /// Starts an agent for it: the session's id.
    async fn spawn(&self, request: SpawnRequest) -> Result<DefinitionId, Refusal>;
    /// Puts something that it was refused into its record.
    async fn record_denial(&self, denial: Denial);
}

/// What a live run may do.
pub struct RunAuthority {
    /// The run.
    pub run: RunId,
    /// `routine email-triage`.
    pub title: String,
    /// What it may hand on.
    pub limit: DelegationLimit,
    /// Who acts for it.
    pub acts: Arc<dyn OnBehalf>,
    /// The agent of the run's that calls; `None`: the run's own.
    pub agent: Option<String>,
    /// A permit for each call that the run may make at a time.
    calls: Arc<Semaphore>,
}

/// Calls of one run at a time; with more of them it would take the person's own places on the control socket.
const CALLS: usize = 8;

impl RunAuthority {
    /// `title`: `routine email-triage`.
    #[must_use]
    pub fn new(run: RunId, title: String, limit: DelegationLimit, acts: Arc<dyn OnBehalf>) -> Self {
        Self { run, title, limit, acts, agent: None, calls: Arc::new(Semaphore::new(CALLS)) }
    }

    /// The same for an agent that the run calls.
    #[must_use]
    pub fn of_agent(&self, name: &str) -> Self {
        let Self { run, title, limit, acts, agent: _, calls } = self;
        let (run, title, limit) = (run.clone(), title.clone(), limit.clone());
        Self { run, title, limit, acts: acts.clone(), agent: Some(name.to_owned()), calls: calls.clone() }
    }

    /// A place for one more call of this run; `None` while it has as many as it may.
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

/// The tokens of the runs that are going. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Arc<Mutex<HashMap<String, Arc<RunAuthority>>>>);

impl Tokens {
    /// Lets a run present itself until the grant is dropped.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn grant(&self, authority: RunAuthority) -> io::Result<Grant> {
        Ok(self.grant_as(agent_sandbox::token::random()?, authority))
    }

    /// The same by a token that the run's client has already: it stands for one run after the other.
    #[must_use]
    pub fn grant_as(&self, token: String, authority: RunAuthority) -> Grant {
        let authority = Arc::new(authority);
        self.live().insert(token.clone(), authority.clone());
        Grant { token, authority, tokens: self.clone() }
    }

    /// The run that a token stands for.
    #[must_use]
    pub fn find(&self, token: &str) -> Option<Arc<RunAuthority>> {
        self.live().get(token).cloned()
    }

    fn live(&self) -> MutexGuard<'_, HashMap<String, Arc<RunAuthority>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tokens of a client that stays from one run to the next: its own, and those of the agents that it may call. They stand for
/// nothing between two runs.
#[derive(Debug, Default)]
pub struct LastingTokens(Mutex<HashMap<Option<String>, String>>);

impl LastingTokens {
    /// There is no such client any more: the next one has others.
    pub fn renew(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// That of an agent; `None`: the client's own.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn of(&self, agent: Option<&str>) -> io::Result<String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&agent.map(ToOwned::to_owned)) {
            Some(token) => Ok(token.clone()),
            None => Ok(known.entry(agent.map(ToOwned::to_owned)).or_insert(agent_sandbox::token::random()?).clone()),
        }
    }
}

/// A run's token; dropped with the run, which ends what it stands for.
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
        // It may stand for the next run by now.
        if live.get(&self.token).is_some_and(|authority| Arc::ptr_eq(authority, &self.authority)) {
            live.remove(&self.token);
        }
    }
}
