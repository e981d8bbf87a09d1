//! A definition that is still to be written: what a command line or an agent asks for, as a file's text.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use chrono_tz::Tz;

use super::frontmatter::yaml_text;
use super::values::span_text;
use super::{Background, Chain, Definition, DefinitionId, Kind, Mode, OnMissed, OnOverlap, Thinking, Trigger};
use crate::policy::{JobNetwork, ToolPattern, UpdateMode};

/// When a draft fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A routine's cron expression.
    Cron(String),
    /// A reminder's instant.
    At(DateTime<FixedOffset>),
}

/// What is asked for, not checked yet: writing it is what checks it, by the same rules as any file. Where a field is
/// `None` its line is left out, so that the default holds; so is the line of a field at its default.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// When it fires; this makes it a routine or a reminder.
    pub when: When,
    /// The prompt.
    pub body: String,
    /// `None`: eight new hex digits.
    pub id: Option<DefinitionId>,
    /// One line for lists.
    pub description: Option<String>,
    /// The zone the file names.
    pub timezone: Option<Tz>,
    /// `false`: listed, never fires.
    pub enabled: bool,
    /// In a fork instead of the main session.
    pub background: bool,
    /// In a fresh session.
    pub isolated: bool,
    /// Model alias or full name.
    pub model: Option<String>,
    /// How the model thinks.
    pub thinking: Thinking,
    /// Patterns as they are written. An empty list is a list.
    pub allowed_tools: Option<Vec<String>>,
    /// Patterns as they are written. An empty list is a list.
    pub disallowed_tools: Option<Vec<String>>,
    /// A named agent.
    pub agent: Option<String>,
    /// How it reports to the main session.
    pub update_main_session: UpdateMode,
    /// Whether it may reach the person directly.
    pub allow_ping: bool,
    /// What network its programs have.
    pub network: JobNetwork,
    /// Names of skills.
    pub skills: Vec<String>,
    /// Wall clock for the whole run.
    pub timeout: Option<Duration>,
    /// At most so many turns.
    pub max_turns: Option<u32>,
    /// At most so many US dollars.
    pub max_cost_usd: Option<f64>,
    /// What happens to missed occurrences; `None`: as its kind does.
    pub on_missed: Option<OnMissed>,
    /// What happens while the previous run is going (routines).
    pub on_overlap: OnOverlap,
    /// Extra attempts. `None` is not the same as the default number: it was not asked for.
    pub retry: Option<u32>,
    /// How many follow-ups a chain may have; 0 for a one-shot.
    pub max_chain: u32,
    /// Which link this is.
    pub chain_depth: u32,
    /// The first link's id; `None`: its own.
    pub chain_parent: Option<DefinitionId>,
    /// The job whose run makes it.
    pub created_by: Option<DefinitionId>,
}

impl Draft {
    /// A foreground job with nothing but a time and a prompt.
    #[must_use]
    pub fn new(when: When, body: impl Into<String>) -> Self {
        Self {
            when,
            body: body.into(),
            id: None,
            description: None,
            timezone: None,
            enabled: true,
            background: false,
            isolated: false,
            model: None,
            thinking: Thinking::Adaptive,
            allowed_tools: None,
            disallowed_tools: None,
            agent: None,
            update_main_session: UpdateMode::OnPing,
            allow_ping: true,
            network: JobNetwork::Internet,
            skills: Vec::new(),
            timeout: None,
            max_turns: None,
            max_cost_usd: None,
            on_missed: None,
            on_overlap: OnOverlap::Skip,
            retry: None,
            max_chain: 0,
            chain_depth: 0,
            chain_parent: None,
            created_by: None,
        }
    }

    /// Routine or reminder.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.when {
            When::Cron(_) => Kind::Routine,
            When::At(_) => Kind::Reminder,
        }
    }

    /// The file's text, with `id` as its identity. Every value is written so that it reads back as it is.
    #[must_use]
    pub fn render(&self, id: &DefinitionId) -> String {
        // Taken apart without `..`, so that a new field cannot be forgotten here.
        let Self {
            when,
            body,
            id: _,
            description,
            timezone,
            enabled,
            background,
            isolated,
            model,
            thinking,
            allowed_tools,
            disallowed_tools,
            agent,
            update_main_session,
            allow_ping,
            network,
            skills,
            timeout,
            max_turns,
            max_cost_usd,
            on_missed,
            on_overlap,
            retry,
            max_chain,
            chain_depth,
            chain_parent,
            created_by,
        } = self;
        let mut lines = Lines(String::from("---\n"));
        lines.text("id", id.as_str());
        lines.some_text("description", description.as_deref().filter(|text| !text.is_empty()));
        match when {
            When::Cron(cron) => lines.text("cron", cron),
            When::At(at) => lines.text("run_at", &at.to_rfc3339()),
        }
        lines.some_text("timezone", timezone.map(|zone| zone.name()));
        lines.unless("enabled", enabled, &true);
        lines.unless("background", background, &false);
        lines.unless("isolated", isolated, &false);
        lines.some_text("model", model.as_deref());
        match thinking {
            Thinking::Adaptive => {}
            Thinking::Disabled => lines.raw("thinking", "false"),
            Thinking::Budget(tokens) => lines.raw("thinking", &tokens.to_string()),
        }
        lines.list("allowed_tools", allowed_tools.as_deref());
        lines.list("disallowed_tools", disallowed_tools.as_deref());
        lines.some_text("agent", agent.as_deref());
        lines.word_unless("update_main_session", update_main_session, &UpdateMode::OnPing);
        lines.unless("allow_ping", allow_ping, &true);
        lines.word_unless("network", network, &JobNetwork::Internet);
        lines.list("skills", Some(skills.as_slice()).filter(|skills| !skills.is_empty()));
        lines.some_text("timeout", timeout.map(span_text).as_deref());
        lines.some_raw("max_turns", max_turns.map(|n| n.to_string()));
        lines.some_raw("max_cost_usd", max_cost_usd.map(|amount| format!("{amount:?}")));
        if let Some(on_missed) = on_missed {
            lines.word_unless("on_missed", on_missed, &self.kind().on_missed());
        }
        lines.word_unless("on_overlap", on_overlap, &OnOverlap::Skip);
        lines.some_raw("retry", retry.map(|n| n.to_string()));
        lines.unless("max_chain", max_chain, &0);
        lines.unless("chain_depth", chain_depth, &0);
        lines.some_text("chain_parent", chain_parent.as_ref().filter(|parent| *parent != id).map(DefinitionId::as_str));
        lines.some_text("created_by", created_by.as_ref().map(DefinitionId::as_str));
        format!("{}---\n{}\n", lines.0, body.trim_start_matches('\n'))
    }
}

impl From<&Definition> for Draft {
    /// The draft whose text reads as this definition.
    fn from(definition: &Definition) -> Self {
        let Definition {
            id,
            file: _,
            description,
            zone: _,
            own_zone,
            enabled,
            trigger,
            mode,
            skills,
            timeout,
            max_turns,
            max_cost_usd,
            on_missed,
            retry,
            created_by,
            body,
        } = definition;
        let mut draft = match trigger {
            Trigger::Routine { cron, on_overlap } => {
                let mut draft = Self::new(When::Cron(cron.clone()), body.clone());
                draft.on_overlap = *on_overlap;
                draft
            }
            Trigger::Session { run_at } => Self::new(When::At(*run_at), body.clone()),
            Trigger::Reminder { run_at, chain } => {
                let mut draft = Self::new(When::At(*run_at), body.clone());
                if let Some(Chain { max, depth, parent }) = chain {
                    (draft.max_chain, draft.chain_depth) = (*max, *depth);
                    draft.chain_parent = Some(parent.clone());
                }
                draft
            }
        };
        if let Mode::Background(Background { isolated, model, thinking, agent, restrictions }) = mode {
            let words = |list: &[ToolPattern]| list.iter().map(ToString::to_string).collect();
            draft.background = true;
            draft.isolated = *isolated;
            draft.model.clone_from(model);
            draft.thinking = *thinking;
            draft.agent.clone_from(agent);
            draft.allowed_tools = restrictions.allowed_tools().map(words);
            draft.disallowed_tools = restrictions.disallowed_tools().map(words);
            draft.update_main_session = restrictions.update_main_session;
            draft.allow_ping = restrictions.allow_ping;
            draft.network = restrictions.network;
        }
        draft.id = Some(id.clone());
        draft.description = Some(description.clone()).filter(|text| !text.is_empty());
        draft.timezone = *own_zone;
        draft.enabled = *enabled;
        draft.skills.clone_from(skills);
        draft.timeout = *timeout;
        draft.max_turns = *max_turns;
        draft.max_cost_usd = *max_cost_usd;
        draft.on_missed = Some(*on_missed);
        draft.retry = *retry;
        draft.created_by.clone_from(created_by);
        draft
    }
}

/// The lines of the frontmatter so far.
struct Lines(String);

impl Lines {
    fn raw(&mut self, key: &str, value: &str) {
        self.0 += &format!("{key}: {value}\n");
    }
    fn some_raw(&mut self, key: &str, value: Option<String>) {
        if let Some(value) = value {
            self.raw(key, &value);
        }
    }
    fn text(&mut self, key: &str, value: &str) {
        self.raw(key, &yaml_text(value));
    }
    fn some_text(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }
    fn unless<T: PartialEq + std::fmt::Display>(&mut self, key: &str, value: &T, default: &T) {
        if value != default {
            self.raw(key, &value.to_string());
        }
    }
    /// For the enums whose names serde knows.
    fn word_unless<T: PartialEq + serde::Serialize>(&mut self, key: &str, value: &T, default: &T) {
        if value != default
            && let Ok(serde_json::Value::String(word)) = serde_json::to_value(value)
        {
            self.raw(key, &word);
        }
    }
    fn list(&mut self, key: &str, items: Option<&[String]>) {
        match items {
            None => {}
            Some([]) => self.raw(key, "[]"),
            Some(items) => {
                self.0 += &format!("{key}:\n");
                for item in items {
                    self.0 += &format!("  - {}\n", yaml_text(item));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
