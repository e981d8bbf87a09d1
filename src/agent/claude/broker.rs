//! The broker of a client: the socket where its shell and programs identify themselves, and the judge of what they may start.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use agent_sandbox::{Answer, Judge, Start, token};
use async_trait::async_trait;

use crate::agent::{CurrentHost, Request};

/// The broker's address, and the token that a shell or program presents if it has lost its descriptors.
#[derive(Clone)]
pub(super) struct Broker {
    pub socket: PathBuf,
    pub token: String,
}

impl Broker {
    pub(super) fn of(request: &Request) -> std::io::Result<Self> {
        Ok(Self { socket: request.run_dir.join("shell.sock"), token: token::random()? })
    }

    /// Returns the environment variables by which shells and programs find the broker.
    pub(super) fn presented(&self) -> [(String, String); 2] {
        [
            (agent_sandbox::SOCKET_VARIABLE.into(), self.socket.display().to_string()),
            (agent_sandbox::TOKEN_VARIABLE.into(), self.token.clone()),
        ]
    }
}

/// The judge of a run's program starts. It asks the host, and completes the host's answer with the clean environment.
pub(super) struct RunJudge {
    pub host: Arc<CurrentHost>,
    pub clean: BTreeMap<String, String>,
    /// The token of the run on the control socket.
    pub token: String,
    /// The tokens of the agents that the run calls, by agent name.
    pub agent_tokens: BTreeMap<String, String>,
    /// The resource limit that the run exceeded, as a sentence.
    pub exceeded: Mutex<Option<String>>,
}

impl RunJudge {
    pub(super) fn taken_too_much(&self) -> Option<String> {
        self.exceeded.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[async_trait]
impl Judge for RunJudge {
    async fn judge(&self, start: Start) -> Answer {
        // An unknown agent gets no token.
        let token = match &start.caller {
            None => Some(&self.token),
            Some(agent) => self.agent_tokens.get(agent),
        };
        let presented = token.map(|token| ("OLLIM_RUN_TOKEN".to_owned(), token.clone()));
        let (host, runtime) = (self.host.clone(), tokio::runtime::Handle::current());
        // Judging runs on a blocking thread: an agent may pass arguments of any length.
        let judged = tokio::task::spawn_blocking(move || runtime.block_on(host.judge(start))).await;
        let failed = |_| Answer::Deny { code: 126, message: "denied, since the decision failed".into() };
        match judged.unwrap_or_else(failed) {
            Answer::Outside { program, env, domain, takes_umask, own_folder } => Answer::Outside {
                program,
                env: self.clean.clone().into_iter().chain(presented).chain(env).collect(),
                domain,
                takes_umask,
                own_folder,
            },
            answer => answer,
        }
    }

    async fn caller(&self, script: String) -> Result<Option<String>, String> {
        self.host.caller(script).await
    }

    fn exceeded(&self, what: String) {
        tracing::warn!("a run is ended, since {what}");
        *self.exceeded.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }
}
