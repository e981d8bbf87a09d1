//! What the person says: each message is a turn of the main session, recorded before it begins.
//!
//! A turn is a session of its own kind in the journal, so that it has one outcome like any other occurrence, whatever becomes of
//! the process. Turns run one after the other, in the order in which they were said.

use crate::definition::{DefinitionId, Draft, When};
use crate::journal::{NewSession, Started};
use crate::refusal::Refusal;

use super::spawn::{LONGEST_PROMPT, Spawner};

/// How many messages may wait for their turn.
const MOST_WAITING: u32 = 64;

impl Spawner {
    /// Records what the person says, and has the main session answer it. `channel`: where the answer goes; `None`: the default
    /// channel.
    ///
    /// # Errors
    /// Why it was not recorded.
    pub async fn say(&self, text: &str, channel: Option<String>) -> Result<DefinitionId, Refusal> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Refusal::user("the message is empty"));
        }
        if text.len() > LONGEST_PROMPT {
            let most = LONGEST_PROMPT / 1024;
            return Err(Refusal::user(format!("the message is over {most} KiB"))
                .hint("put it into a file of work/, and name that file"));
        }
        let token = agent_sandbox::token::random().map_err(|error| Refusal::environment(error.to_string()))?;
        let id = DefinitionId::new(format!("{}{}", DefinitionId::TURN, &token[..8]));
        let mut draft = Draft::new(When::At(self.clock.now().fixed_offset()), text.to_owned());
        draft.channel = channel;
        // Who waits for an answer is told at once why there is none.
        draft.retry = Some(0);
        let definition = draft.render(Some(&id));
        let loaded = self.loaded(&id, &definition)?;
        let new = NewSession {
            id: id.clone(),
            by: None,
            caller: "the user".to_owned(),
            caller_agent: None,
            definition,
            spawn_tool_policy: None,
        };
        match self.journal.start_session(new, 0, MOST_WAITING).await? {
            Started::Recorded => {}
            Started::TooManyByRun(_) | Started::TooManyOpen(_) => {
                return Err(Refusal::user(format!("{MOST_WAITING} messages and agents are waiting already"))
                    .hint("wait for the answers, or end the turn that is going: `ollim-bot cancel-run RUN`"));
            }
        }
        self.schedule.upsert(loaded);
        Ok(id)
    }
}
