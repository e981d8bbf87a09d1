//! Messages of the person. Each one is a turn of the main session or of a fork, recorded before it begins.
//!
//! The journal keeps a turn as a session of its own kind, so that it has one outcome like any other occurrence, even after
//! a crash. Turns of one conversation run one after the other, in the order of
//! the messages. Conversations do not wait for each other.

use crate::bot::main_session::MAKE_SHORTER;
use crate::definition::{Definition, DefinitionId, Draft, When};
use crate::journal::{NewSession, Resumable, RunId, SessionStart};
use crate::policy::UpdateMode;
use crate::refusal::Refusal;

use super::limits::as_fired;
use super::spawn::{LONGEST_PROMPT, Spawner};

/// Maximum number of messages that wait for their turn.
const MAX_WAITING: u32 = 64;

/// A message of the person.
#[derive(Clone, Debug, Default)]
pub struct ChatMessage {
    /// The text.
    pub text: String,
    /// The channel of the answer; `None` means the default channel.
    pub channel: Option<String>,
    /// The id from the channel's service, in letters and digits. Messages with the same id are answered once.
    pub external: Option<String>,
    /// The fork of the message; `None` means the main session.
    pub fork: Option<DefinitionId>,
    /// The run whose conversation the fork continues, under that job's rules.
    pub of_job: Option<RunId>,
}

impl Spawner {
    /// Records a message, and has the main session or a fork answer it.
    ///
    /// # Errors
    /// The reason why it was not recorded.
    pub async fn say(&self, word: ChatMessage) -> Result<DefinitionId, Refusal> {
        let ChatMessage { text, channel, external, fork, of_job } = word;
        let text = checked(&text)?;
        let id = turn_id(channel.as_deref(), external.as_deref())?;
        let mut draft = Draft::new(When::At(self.clock.now().fixed_offset()), text.to_owned());
        if let Some(run) = &of_job {
            self.restrict_as_job(&mut draft, run).await?;
        }
        draft.channel = channel;
        // The person waits for the answer, so a failure is reported at once and not retried.
        draft.retry = Some(0);
        let definition = draft.render(Some(&id));
        let loaded = self.loaded(&id, &definition, fork.clone())?;
        let further = (fork.is_none() && text != MAKE_SHORTER).then(|| loaded.definition.clone());
        let new = NewSession {
            id: id.clone(),
            by: None,
            caller: "the user".to_owned(),
            caller_agent: None,
            definition,
            spawn_tool_policy: None,
            fork,
        };
        fail_point!(BeforeWord);
        let started = self.journal.start_session(new, 0, MAX_WAITING).await?;
        fail_point!(WordRecorded);
        match started {
            SessionStart::Recorded => {
                // This must happen before the message's own turn can begin.
                if let Some(further) = further {
                    self.mid_turn.say(further);
                }
                self.schedule.upsert(loaded);
            }
            // The message was recorded before and has its turn.
            SessionStart::Already => {}
            SessionStart::TooManyByRun(_) | SessionStart::TooManyOpen(_) => {
                return Err(Refusal::user(format!("{MAX_WAITING} messages and agents are waiting already"))
                    .hint("wait for the answers, or end the turn that is going: `ollim-bot cancel-run RUN`"));
            }
        }
        Ok(id)
    }
}

impl Spawner {
    /// Parses the definition as it was when the run fired.
    pub(super) fn fired(&self, run: &Resumable) -> Option<Definition> {
        as_fired(&run.id, run.kind, run.definition.as_ref()?, &self.defaults)
    }

    /// Applies a job's rules to a turn that continues its conversation. Text that the job has read must not gain the job's missing rights.
    async fn restrict_as_job(&self, draft: &mut Draft, run: &RunId) -> Result<(), Refusal> {
        let gone = || Refusal::user(format!("the conversation of run {run} is not there any more"));
        let job = self.journal.conversation_of(run).await?.ok_or_else(gone)?;
        let parsed = self.of_conversation(self.fired(&job).ok_or_else(gone)?).await?;
        let of_job = Draft::from(&parsed);
        *draft = Draft {
            background: true,
            isolated: of_job.isolated,
            model: of_job.model,
            thinking: of_job.thinking,
            agent: of_job.agent,
            max_cost_usd: of_job.max_cost_usd,
            max_turns: of_job.max_turns,
            timeout: of_job.timeout,
            ..draft.clone()
        };
        if let Some(background) = parsed.background() {
            draft.restrict(&background.restrictions);
        }
        // The person gets the answer anyway, so no report is required.
        if draft.update_main_session != UpdateMode::Blocked {
            draft.update_main_session = UpdateMode::Freely;
        }
        draft.allow_ping = false;
        Ok(())
    }
}

/// Returns a message's text without the blanks around it.
///
/// # Errors
/// It is empty, or too long.
pub fn checked(text: &str) -> Result<&str, Refusal> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Refusal::user("the message is empty"));
    }
    if text.len() > LONGEST_PROMPT {
        let most = LONGEST_PROMPT / 1024;
        return Err(Refusal::user(format!("the message is over {most} KiB"))
            .hint("put it into a file of work/, and name that file"));
    }
    Ok(text)
}

/// Returns whether a service's id of a message can tell the message from others.
#[must_use]
pub fn is_message_id(external: &str) -> bool {
    (1..=64).contains(&external.len()) && external.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns the id of the turn that answers a message. A message with an id from its service always gets the same one.
fn turn_id(channel: Option<&str>, external: Option<&str>) -> Result<DefinitionId, Refusal> {
    if let (Some(channel), Some(external)) = (channel, external.filter(|external| is_message_id(external))) {
        return Ok(DefinitionId::of_turn(channel, external));
    }
    let token = agent_sandbox::token::random().map_err(|error| Refusal::environment(error.to_string()))?;
    Ok(DefinitionId::new(format!("{}{}", DefinitionId::TURN, &token[..8])))
}
