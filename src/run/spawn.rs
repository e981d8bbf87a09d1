//! Spawned agents: child sessions with a prompt, under their caller's restrictions and a tool policy of their own.
//!
//! A session is always recorded before it can start. A spawned agent has no more rights than its caller and starts no
//! further agents. Its tool policy is set once, at its start or later, and applies from that moment on.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::delegation::{DelegationLimit, may_all, require_few_for_agent};
use super::host::Host;
use super::runner::RunSettings;
use super::setup::{Setup, Spawned};
use crate::agents::Agents;
use crate::bot::mid_turn::MidTurnMessages;
use crate::clock::Clock;
use crate::definition::{Defaults, Definition, DefinitionId, Draft, Kind, Trigger, When, parse};
use crate::home::Home;
use crate::journal::{Journal, NewSession, RunId, SessionRecord, SessionStart, SetPolicyResult};
use crate::policy::{self, PathRoots, ToolLists, UpdateMode};
use crate::refusal::Refusal;
use crate::schedule::{LiveDefinitions, Loaded, Schedule};

/// Maximum number of agents that one run may start.
const BY_RUN: u32 = 8;
/// Maximum number of agents that are running or waiting, all together.
const LIMIT: u32 = 32;
/// Maximum length of a prompt, in bytes: the limit of a definition's file, less room for its other lines.
pub(super) const LONGEST_PROMPT: usize = 512 * 1024;

/// The main session's name among sessions.
pub const MAIN: &str = "main";

/// A request to start an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpawnRequest {
    /// The agent's task.
    pub prompt: String,
    /// The named agent that it runs as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The tools; `None` means the caller's tools, as limited by the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolLists>,
    /// Maximum wall-clock time of its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// The spawner, which starts agents and sets their policies.
pub struct Spawner {
    /// The data folder.
    pub home: Home,
    /// The person's home folder.
    pub user_home: PathBuf,
    /// The clock.
    pub clock: Clock,
    /// The journal.
    pub journal: Journal,
    /// The present settings.
    pub settings: Arc<RwLock<RunSettings>>,
    /// Defaults of definitions.
    pub defaults: Defaults,
    /// The present definitions, which limit runs.
    pub definitions: LiveDefinitions,
    /// The schedule that runs the started agents.
    pub schedule: Schedule,
    /// The receiver of the person's messages that a running turn may answer.
    pub mid_turn: MidTurnMessages,
    /// The hosts of running sessions.
    pub running: tokio::sync::Mutex<RunningSessions>,
}

/// Running sessions, each with its host.
#[derive(Default)]
pub struct RunningSessions(Mutex<HashMap<DefinitionId, Weak<Host>>>);

impl RunningSessions {
    pub(super) fn add(&self, id: &DefinitionId, host: &Arc<Host>) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, host| host.strong_count() > 0);
        running.insert(id.clone(), Arc::downgrade(host));
    }

    fn host(&self, id: &DefinitionId) -> Option<Arc<Host>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id)?.upgrade()
    }
}

impl Spawner {
    /// Starts an agent for a run (with its limit), or for the person. The agent then works by itself.
    ///
    /// # Errors
    /// A sentence on why it was not started. Nothing is recorded then.
    pub async fn spawn(
        &self,
        request: SpawnRequest,
        caller: Option<(&RunId, &DelegationLimit)>,
    ) -> Result<DefinitionId, Refusal> {
        let SpawnRequest { prompt, agent, tools, timeout } = request;
        if prompt.trim().is_empty() {
            return Err(Refusal::user("the prompt is empty: say what the agent is to do"));
        }
        if prompt.len() > LONGEST_PROMPT {
            return Err(Refusal::user(format!(
                "the prompt is over {} KiB; name a file that it reads instead",
                LONGEST_PROMPT / 1024
            )));
        }
        tools.as_ref().map_or(Ok(()), require_few_for_agent)?;
        match caller {
            Some((_, limit)) => limit.may_spawn(tools.as_ref())?,
            None => {
                let allow = tools.as_ref().and_then(|tools| tools.allow.as_deref()).unwrap_or_default();
                let main_tools = self.settings.read().unwrap_or_else(PoisonError::into_inner).main_tools.clone();
                let policy = policy::main_session(&main_tools, &[], &self.places());
                may_all(&policy, allow, "the main session")?;
            }
        }
        if let Some(name) = &agent {
            let agents = Agents::load(&self.home, Some(&self.user_home));
            agents.for_background(name).map_err(|error| Refusal::user(format!("{error} ({})", error.hint())))?;
        }
        let id = DefinitionId::new(format!(
            "{}{}",
            DefinitionId::SPAWN,
            &agent_sandbox::token::random().map_err(|error| Refusal::user(error.to_string()))?[..8]
        ));
        let mut draft = draft_of(prompt, agent, caller.map(|(_, limit)| limit), self.clock.now())?;
        draft.timeout = match caller {
            Some((_, limit)) => limit.timeout_of(timeout)?,
            None => timeout,
        };
        let text = draft.render(Some(&id));
        let loaded = self.loaded(&id, &text, None)?;
        let new = NewSession {
            id: id.clone(),
            by: caller.map(|(run, _)| run.clone()),
            caller: caller.map_or_else(|| "the user".to_owned(), |(_, limit)| limit.title().to_owned()),
            caller_agent: caller.and_then(|(_, limit)| limit.agent()).map(ToOwned::to_owned),
            definition: text,
            spawn_tool_policy: tools.filter(|tools| !tools.is_empty()).as_ref().map(as_json),
            fork: None,
        };
        match self.journal.start_session(new, BY_RUN, LIMIT).await.map_err(|error| Refusal::user(error.to_string()))? {
            SessionStart::Recorded => {}
            SessionStart::TooManyByRun(made) => {
                return Err(Refusal::user(format!("this run has started {made} agents already, which is the most")));
            }
            SessionStart::Already => return Err(Refusal::environment("two agents were given one id; try again")),
            SessionStart::TooManyOpen(open) => {
                return Err(Refusal::user(format!("{open} spawned agents are going or waiting, which is the most")));
            }
        }
        self.schedule.upsert(loaded);
        Ok(id)
    }

    /// Sets the tool policy of a child session. It applies from now on, even if the session is running.
    ///
    /// # Errors
    /// A sentence if it is the main session, has a policy already, has ended, or does not exist.
    pub async fn patch(&self, session: &str, tools: ToolLists, main_session: Option<&str>) -> Result<(), Refusal> {
        if session == MAIN || Some(session) == main_session {
            return Err(Refusal::user(
                "the main session has no tool policy of its own: only sessions of spawned agents can",
            ));
        }
        if tools.is_empty() {
            return Err(Refusal::user("a session's tool policy has `allow`, `deny` or both"));
        }
        require_few_for_agent(&tools)?;
        let id = DefinitionId::new(session);
        let running = self.running.lock().await;
        match self
            .journal
            .set_spawn_tool_policy(&id, as_json(&tools))
            .await
            .map_err(|error| Refusal::user(error.to_string()))?
        {
            SetPolicyResult::Recorded => {}
            SetPolicyResult::NotFound => return Err(Refusal::user(format!("there is no child session `{id}`"))),
            SetPolicyResult::Already => {
                return Err(Refusal::user(format!(
                    "session {id} has its tool policy already: once set it cannot be changed"
                )));
            }
            SetPolicyResult::Ended => {
                return Err(Refusal::user(format!("session {id} has ended: a tool policy would hold nothing")));
            }
        }
        if let Some(host) = running.host(&id) {
            host.narrow(&tools);
        }
        Ok(())
    }

    /// Returns the sessions that the previous process left open.
    ///
    /// # Errors
    /// An error if the journal cannot be read.
    pub async fn left_open(&self) -> Result<Vec<Loaded>, Refusal> {
        let open = self.journal.open_sessions().await.map_err(|error| Refusal::user(error.to_string()))?;
        let load = |session: SessionRecord| match self.loaded(&session.id, &session.definition, session.fork) {
            Ok(loaded) => Some(loaded),
            Err(why) => {
                tracing::error!(session = %session.id, %why, "a spawned agent cannot be started again");
                None
            }
        };
        Ok(open.into_iter().filter_map(load).collect())
    }

    /// Returns the inputs of a session's policy besides its definition.
    pub(super) async fn spawned(&self, id: &DefinitionId) -> Result<Spawned, Refusal> {
        let session = self.journal.session(id).await.map_err(|error| Refusal::user(error.to_string()))?;
        // The record contains the restrictions, so without it the session must not start.
        let session = session
            .ok_or_else(|| Refusal::user(format!("there is no record of session {id}, so it was not started")))?;
        let own = session.spawn_tool_policy.as_deref().map(serde_json::from_str).transpose();
        let own: Option<ToolLists> =
            own.map_err(|error| Refusal::user(format!("the policy of session {id} cannot be read: {error}")))?;
        let global = self.settings.read().unwrap_or_else(PoisonError::into_inner).spawned_tools.clone();
        Ok(Spawned {
            caller: session.caller,
            caller_agent: session.caller_agent,
            tools: ToolLists::merged(&global, own.as_ref()),
        })
    }

    /// Returns the setup of a definition's run. It reads the agents' files now, since they may be edited at any time.
    pub(super) fn setup(&self, definition: &Definition, spawned: Option<&Spawned>) -> Result<Setup, Refusal> {
        let agents = LazyCell::new(|| Agents::load(&self.home, Some(&self.user_home)));
        let settings = self.settings.read().unwrap_or_else(PoisonError::into_inner).clone();
        Setup::of(definition, spawned, &settings, &self.places(), agents)
            .map_err(|error| Refusal::user(error.to_string()))
    }

    pub(super) fn places(&self) -> PathRoots {
        PathRoots { root: self.home.root().to_path_buf(), work: self.home.work(), user_home: self.user_home.clone() }
    }

    pub(super) fn loaded(
        &self,
        id: &DefinitionId,
        text: &str,
        of_fork: Option<DefinitionId>,
    ) -> Result<Loaded, Refusal> {
        let file = Path::new("sessions").join(format!("{id}.md"));
        let parsed = parse(Kind::Session, &file, text.as_bytes(), &self.defaults);
        let problems = parsed.problems;
        let mut definition = parsed.definition.ok_or_else(|| {
            let error = problems.iter().find(|problem| problem.is_error());
            Refusal::user(error.map_or("", |problem| &problem.message))
        })?;
        if let Trigger::Session { fork, .. } = &mut definition.trigger {
            *fork = of_fork;
        }
        Ok(Loaded { definition: Arc::new(definition), text: text.into() })
    }
}

/// Builds a fresh background session with its caller's own restrictions.
///
/// # Errors
/// A sentence if the session would have more rights than its caller.
fn draft_of(
    prompt: String,
    agent: Option<String>,
    limit: Option<&DelegationLimit>,
    now: chrono::DateTime<chrono::Utc>,
) -> Result<Draft, Refusal> {
    let mut draft = Draft::new(When::At(now.fixed_offset()), prompt);
    draft.background = true;
    draft.isolated = true;
    draft.agent = agent;
    draft.update_main_session = UpdateMode::Freely;
    if let Some(limit) = limit {
        draft.restrict(limit.restrictions());
        if draft.update_main_session != UpdateMode::Blocked {
            draft.update_main_session = UpdateMode::Freely;
        }
        limit.limit_fields(&mut draft)?;
        limit.limit_draft(&mut draft)?;
        limit.keep_channel(&mut draft)?;
    }
    Ok(draft)
}

fn as_json(tools: &ToolLists) -> String {
    serde_json::to_string(tools).unwrap_or_else(|_| r#"{"allow":[]}"#.into())
}
