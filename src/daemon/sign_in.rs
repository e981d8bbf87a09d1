//! Logs the agent in from anywhere: the person gets a link and returns a code.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::client::LoginClientFinder;
use crate::agent::claude::sign_in::SignIn;
use crate::app::LoginState;
use crate::refusal::Refusal;
use crate::schedule::Schedule;

/// Time for which a link is valid.
const VALID: Duration = Duration::from_secs(15 * 60);

/// The login that waits for its code, at most one. Clones share it.
#[derive(Clone)]
pub struct SignIns {
    to_log_in: LoginClientFinder,
    schedule: Schedule,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    /// Number of links handed out.
    links: u64,
    sign_in: Option<SignIn>,
}

impl SignIns {
    pub(super) fn new(to_log_in: LoginClientFinder, schedule: Schedule) -> Self {
        Self { to_log_in, schedule, waiting: Arc::default() }
    }

    /// Returns whether a message is the code of the pending login: `its-letters#and-more`, in one word. Models must not see it.
    pub(super) async fn awaits(&self, text: &str) -> bool {
        let part = |part: &str| {
            part.len() >= 8 && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let is_code = text.trim().split_once('#').is_some_and(|(code, state)| part(code) && part(state));
        is_code && self.waiting.lock().await.sign_in.is_some()
    }

    /// Begins a login, or completes it with its code. A new link invalidates the previous one.
    pub(super) async fn login(&self, code: Option<String>) -> Result<LoginState, Refusal> {
        match code {
            None => self.begin().await,
            Some(code) => {
                let waiting = self.waiting.lock().await.sign_in.take();
                let sign_in = waiting.ok_or_else(|| {
                    Refusal::user("no login waits for a code, or its link has expired")
                        .hint("`/login` gives a new link")
                })?;
                sign_in.finish(&code).await.map_err(|why| {
                    Refusal::user(format!("the login did not work: {why}")).hint("`/login` gives a new link")
                })?;
                tracing::info!("the person has logged the agent client in");
                self.schedule.logged_in();
                Ok(LoginState::Done)
            }
        }
    }

    async fn begin(&self) -> Result<LoginState, Refusal> {
        let claude = (self.to_log_in)().map_err(Refusal::user)?;
        if let Some(login) = claude.find_login().filter(|login| login.is_variable()) {
            return Err(Refusal::user(format!("the login comes from {}", login.source)).hint(login.remedy()));
        }
        let (sign_in, link) = SignIn::start(&claude).await.map_err(Refusal::environment)?;
        let mut waiting = self.waiting.lock().await;
        waiting.links += 1;
        waiting.sign_in = Some(sign_in);
        let (this, number) = (self.clone(), waiting.links);
        tokio::spawn(async move {
            tokio::time::sleep(VALID).await;
            let mut waiting = this.waiting.lock().await;
            // A later login has its own timeout.
            if waiting.links == number {
                waiting.sign_in = None;
            }
        });
        Ok(LoginState::Waits { link, minutes: VALID.as_secs() / 60 })
    }
}
