//! Assembles a definition from its fields, and applies the rules between fields.

use super::Reading;
use crate::definition::problem::quoted;
use crate::definition::{
    Background, Cadence, Chain, Definition, DefinitionId, Draft, Hook, JobClient, Kind, Mode, Recurrence, Severity,
    Trigger,
};

/// Maximum length of an id, in bytes: it is part of file and folder names.
const LONGEST_ID: usize = 120;

impl Reading<'_> {
    /// Returns the definition if no field is faulty. Records every fault.
    pub(super) fn definition(&mut self) -> Option<Definition> {
        // All parts are read before any of them ends this, so that a person sees every problem at once.
        let (draft, zone) = self.draft();
        let id = self.id(&draft);
        let trigger = self.trigger(&draft, id.as_ref());
        let mode = self.mode(&draft);
        if self.document.body.trim().is_empty() && draft.client != Some(JobClient::Exec) {
            let line = super::frontmatter::closing_line(self.text);
            let hint = Some("write the prompt below the closing `---`".into());
            self.problem(Severity::Error, None, "the body is empty".into(), hint, (line, 1));
        }
        self.misplaced_fields();
        if !self.faulty.is_empty() {
            return None;
        }
        let definition = draft.into_definition((id?, self.file.to_owned(), zone), trigger?, mode?);
        self.waiting_for_nothing(&definition);
        self.warn_of(&definition);
        Some(definition)
    }

    fn id(&mut self, draft: &Draft) -> Option<DefinitionId> {
        if self.is_faulty("id") {
            return None;
        }
        let id = draft.id.clone().unwrap_or_else(|| self.id.clone());
        let text = id.as_str();
        let wrong = if text.trim().is_empty() {
            Some("is empty")
        } else if text.len() > LONGEST_ID {
            Some("is longer than 120 bytes")
        } else if text.starts_with(['-', '.']) {
            Some("begins with `-` or `.`")
        } else if text.trim() != text {
            Some("begins or ends with a blank")
        } else if text.contains(['/', '\\', '\u{fffd}']) || text.chars().any(char::is_control) {
            Some("holds a character that cannot stand in a file name")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            let hint = "set `id` to letters and digits, for example `id: check-the-oven`";
            self.at_field(Severity::Error, "id", format!("the id {} {wrong}", quoted(text)), hint);
            return None;
        }
        self.id = id.clone();
        Some(id)
    }

    fn trigger(&mut self, draft: &Draft, id: Option<&DefinitionId>) -> Option<Trigger> {
        match self.kind {
            Kind::Routine => return self.routine(draft),
            Kind::Webhook => return Some(Trigger::Webhook(self.hook(draft))),
            Kind::Reminder | Kind::Session => {}
        }
        let chain = self.chain(draft, id);
        if draft.run_at.is_none() && !self.is_faulty("run_at") {
            let hint = match self.entry("cron") {
                Some(_) => "`cron` is a routine's: move the file to routines/, or write `run_at: …`",
                None => "write for example `run_at: 2026-11-22T09:00:00+01:00`",
            };
            self.at_field(Severity::Error, "run_at", "a reminder needs `run_at`".into(), hint);
        }
        let run_at = draft.run_at?;
        Some(match self.kind {
            Kind::Session => Trigger::Session { run_at, fork: None },
            _ => Trigger::Reminder { run_at, chain: chain? },
        })
    }

    /// Returns the rules for deliveries. Faulty fields prevent the definition anyway.
    fn hook(&mut self, draft: &Draft) -> Hook {
        let Draft { signature, secret_env, fields, per_minute, .. } = draft.clone();
        let hook = Hook { signature, secret_env, fields, per_minute };
        self.unfilled(&hook);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !self.id.as_str().chars().all(plain) {
            let message = format!("the id {} cannot stand in an address", quoted(self.id.as_str()));
            let hint = "a webhook's id has letters, digits, `-`, `_` and `.`: set one, for example `id: deploy`";
            self.at_field(Severity::Error, "id", message, hint);
        }
        hook
    }

    fn routine(&mut self, draft: &Draft) -> Option<Trigger> {
        let given = [
            ("cron", draft.cron.clone().map(Cadence::Cron)),
            ("every", draft.every.map(Cadence::Every)),
            ("after", draft.after.clone().map(Cadence::After)),
            ("watch", draft.watch.clone().map(Cadence::Watch)),
        ];
        let wrong = given.iter().any(|(name, _)| self.is_faulty(name));
        let mut given = given.into_iter().filter_map(|(name, cadence)| Some((name, cadence?)));
        let cadence = match (given.next(), given.next()) {
            (Some((_, cadence)), None) => cadence,
            (Some((first, _)), Some((second, _))) => {
                let hint = match (first, second) {
                    ("cron", "every") => "keep one: `cron` follows the clock, `every` counts the time that has passed",
                    _ => "keep one, and write a routine for each: they may have the same text",
                };
                self.at_field(Severity::Error, second, format!("`{first}` and `{second}` cannot both be set"), hint);
                return None;
            }
            (None, _) if wrong => return None,
            (None, _) => {
                let hint = match self.entry("run_at") {
                    Some(_) => "`run_at` is a reminder's: move the file to reminders/, or write `cron: '30 8 * * *'`",
                    None => "write for example `cron: '30 8 * * *'` (minute hour day month weekday)",
                };
                self.at_field(
                    Severity::Error,
                    "cron",
                    "a routine needs `cron`, `every`, `after` or `watch`".into(),
                    hint,
                );
                return None;
            }
        };
        let recurs = Recurrence { cadence, jitter: draft.jitter };
        self.without_times(&recurs, draft.wake);
        Some(Trigger::Routine { recurs, on_overlap: draft.on_overlap })
    }

    fn chain(&mut self, draft: &Draft, id: Option<&DefinitionId>) -> Option<Option<Chain>> {
        let (max, depth) = (draft.max_chain, draft.chain_depth);
        if ["max_chain", "chain_depth", "chain_parent"].iter().any(|name| self.is_faulty(name)) {
            return None;
        }
        if depth > max {
            let message = format!("`chain_depth` {depth} is beyond `max_chain` {max}");
            let hint = "raise `max_chain`, or remove `chain_depth`: a chain sets it by itself";
            self.at_field(Severity::Error, "chain_depth", message, hint);
            return None;
        }
        if max == 0 {
            return Some(None);
        }
        Some(Some(Chain { max, depth, parent: draft.chain_parent.as_ref().or(id)?.clone() }))
    }

    fn mode(&mut self, draft: &Draft) -> Option<Mode> {
        if let (Some(allowed), Some(disallowed)) = (self.entry("allowed_tools"), self.entry("disallowed_tools")) {
            let second = if allowed.index > disallowed.index { "allowed_tools" } else { "disallowed_tools" };
            let hint =
                "keep one: `allowed_tools` lists the only tools the job has, `disallowed_tools` takes tools away";
            self.at_field(Severity::Error, second, crate::policy::BothLists.to_string(), hint);
        }
        self.fields_of_other_clients(draft.client);
        self.delivery(draft);
        match draft.client {
            Some(JobClient::Notify) => return Some(Mode::Foreground),
            Some(JobClient::Exec) => self.command(draft),
            Some(JobClient::Claude) | None => {}
        }
        if self.kind == Kind::Webhook && !draft.background && draft.client != Some(JobClient::Exec) {
            let message =
                "a webhook runs in the background, whatever `background` says: others choose what it is given";
            self.at_field(Severity::Error, "background", message.into(), "remove `background`");
            return None;
        }
        // If `background` itself is faulty, the fields that need it cannot be judged.
        if self.is_faulty("background") {
            return None;
        }
        if !draft.background && draft.client != Some(JobClient::Exec) {
            self.restrictions_in_the_foreground();
            return Some(Mode::Foreground);
        }
        self.thread_beside_the_main_session(draft.remember, draft.isolated);
        Some(Mode::Background(Background {
            isolated: draft.isolated,
            model: draft.model.clone(),
            thinking: draft.thinking,
            agent: draft.agent.clone(),
            restrictions: draft.restrictions().ok()?,
        }))
    }
}
