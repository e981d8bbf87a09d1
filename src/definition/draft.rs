//! A definition to be written: the fields from a command line or an agent, rendered as a file's text.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use chrono_tz::Tz;

use super::fields::{FIELDS, Field, FieldValue};
use super::frontmatter::Block;
use super::values::{Fault, Value};
use super::{Background, Cadence, Chain, Definition, DefinitionId, Draft, Hook, JobClient, Kind, Mode, Trigger};
use crate::policy::{BgForkConfig, BothLists};

/// The times at which a draft fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A routine's cron expression.
    Cron(String),
    /// The time between two occurrences of a routine.
    Every(Duration),
    /// The instant of a reminder.
    At(DateTime<FixedOffset>),
}

impl Draft {
    /// Creates a foreground job with only a time and a prompt.
    #[must_use]
    pub fn new(when: When, body: impl Into<String>) -> Self {
        match when {
            When::Cron(cron) => Self { cron: Some(cron), ..Self::empty(Kind::Routine, body.into()) },
            When::Every(span) => Self { every: Some(span), ..Self::empty(Kind::Routine, body.into()) },
            When::At(at) => Self { run_at: Some(at), ..Self::empty(Kind::Reminder, body.into()) },
        }
    }

    /// Fills in what a command implies: a draft with `command` is run by `exec`, and `exec` always runs in the background.
    pub fn complete(&mut self) {
        if self.command.is_some() {
            self.client.get_or_insert(JobClient::Exec);
        }
        self.background |= self.client == Some(JobClient::Exec);
    }

    /// Sets a field by the rules for files.
    pub(crate) fn set(&mut self, field: &Field, value: &FieldValue) -> Result<(), Fault> {
        let block = Block::of_file(&value.entry(field.name));
        // A value that no file can express is refused, never dropped.
        let entries = block.entries().map_err(|error| Fault::of(field.name, &error.message))?;
        let Some(entry) = entries.first() else { return Err(Fault::of(field.name, "it has no value")) };
        (field.read)(&Value { name: field.name, node: &entry.value, block: &block, path: &[0], zone: Tz::UTC }, self)
    }

    /// Renders the file's text. Writes `id` if it is given; otherwise the file's name is the identity. Every value
    /// reads back unchanged; fields at their default are left out.
    #[must_use]
    pub fn render(&self, id: Option<&DefinitionId>) -> String {
        let parent = self.chain_parent.clone().filter(|parent| Some(parent) != id);
        let named = Self { id: id.cloned(), chain_parent: parent, ..self.clone() };
        let fields = FIELDS.iter().filter(|field| field.on.has(self.kind));
        let entries = fields.filter_map(|field| Some(field.not_default(&named)?.entry(field.name)));
        format!("---\n{}---\n{}\n", entries.collect::<String>(), self.body.trim_start_matches('\n'))
    }
}

impl Draft {
    /// Renders a text for an editor: the fields that are set, and a comment for each other field.
    #[must_use]
    pub fn template(&self) -> String {
        let fields = FIELDS.iter().filter(|field| field.on.has(self.kind));
        let fields = fields.filter(|field| field.flags.iter().any(|flag| !flag.hidden) || (field.show)(self).is_some());
        let lines = fields.map(|field| match field.not_default(self) {
            Some(value) => value.entry(field.name),
            None if field.required => format!("{}: {}\n", field.name, field.example),
            None => format!("# {}: {}   # {}\n", field.name, field.example, field.help.trim()),
        });
        format!("{TEMPLATE}{}---\n{}\n", lines.collect::<String>(), self.body)
    }
}

const TEMPLATE: &str = "---\n\
    # Write below the second `---` what is to be done. Without a text nothing is made.\n\
    # A line that begins with `#` does not count: take the `#` away from what you want.\n";

impl From<&Definition> for Draft {
    /// Returns a draft that renders to this definition.
    fn from(definition: &Definition) -> Self {
        let mut draft = Self { id: Some(definition.id.clone()), ..Self::of_members(definition) };
        match &definition.trigger {
            Trigger::Routine { recurs, on_overlap } => {
                match &recurs.cadence {
                    Cadence::Cron(cron) => draft.cron = Some(cron.clone()),
                    Cadence::Every(span) => draft.every = Some(*span),
                    Cadence::After(follows) => draft.after = Some(follows.clone()),
                    Cadence::Watch(folder) => draft.watch = Some(folder.clone()),
                }
                (draft.jitter, draft.on_overlap) = (recurs.jitter, *on_overlap);
            }
            Trigger::Webhook(hook) => {
                let Hook { signature, secret_env, fields, per_minute } = hook.clone();
                (draft.signature, draft.secret_env, draft.fields, draft.per_minute) =
                    (signature, secret_env, fields, per_minute);
            }
            Trigger::Session { run_at, .. } => draft.run_at = Some(*run_at),
            Trigger::Reminder { run_at, chain } => {
                draft.run_at = Some(*run_at);
                if let Some(Chain { max, depth, parent }) = chain {
                    (draft.max_chain, draft.chain_depth, draft.chain_parent) = (*max, *depth, Some(parent.clone()));
                }
            }
        }
        if let Mode::Background(Background { isolated, model, thinking, agent, restrictions }) = &definition.mode {
            draft.background = true;
            (draft.isolated, draft.thinking) = (*isolated, *thinking);
            (draft.model, draft.agent) = (model.clone(), agent.clone());
            draft.restrict(restrictions);
        }
        draft
    }
}

impl Draft {
    /// Sets the fields that restrict a background job.
    pub fn restrict(&mut self, restrictions: &BgForkConfig) {
        self.allowed_tools = restrictions.allowed_tools().map(Into::into);
        self.disallowed_tools = restrictions.disallowed_tools().map(Into::into);
        self.update_main_session = restrictions.update_main_session;
        self.allow_ping = restrictions.allow_ping;
        self.network = restrictions.network;
        (self.ask_tools, self.ask) = (restrictions.ask_tools.clone(), restrictions.ask.clone());
    }

    /// Returns the restrictions of a background job with these fields.
    ///
    /// # Errors
    /// [`BothLists`] when both lists are set.
    pub fn restrictions(&self) -> Result<BgForkConfig, BothLists> {
        let (allowed, disallowed) = (self.allowed_tools.clone(), self.disallowed_tools.clone());
        let restrictions = BgForkConfig::new(self.update_main_session, self.allow_ping, allowed, disallowed)?;
        Ok(restrictions.with_network(self.network).asking(self.ask_tools.clone(), self.ask.clone()))
    }
}

#[cfg(test)]
mod tests;
