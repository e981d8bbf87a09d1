//! Each field of a definition, read from its entry, with the rules that bind two fields together.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use chrono_tz::Tz;

use super::Reading;
use crate::definition::cron::check_cron;
use crate::definition::problem::quoted;
use crate::definition::values::Fault;
use crate::definition::{
    Background, Chain, Definition, DefinitionId, Kind, Mode, OnMissed, OnOverlap, Severity, Thinking, Trigger,
};
use crate::policy::{BgForkConfig, JobNetwork, UpdateMode};

/// The longest identity, in bytes: it names files and folders.
const LONGEST_ID: usize = 120;

const UPDATE_MODES: [(&str, UpdateMode); 4] = [
    ("always", UpdateMode::Always),
    ("on_ping", UpdateMode::OnPing),
    ("freely", UpdateMode::Freely),
    ("blocked", UpdateMode::Blocked),
];
const NETWORKS: [(&str, JobNetwork); 2] = [("internet", JobNetwork::Internet), ("none", JobNetwork::None)];
const ON_MISSED: [(&str, OnMissed); 3] =
    [("latest", OnMissed::Latest), ("all", OnMissed::All), ("skip", OnMissed::Skip)];
const ON_OVERLAP: [(&str, OnOverlap); 3] =
    [("skip", OnOverlap::Skip), ("queue", OnOverlap::Queue), ("cancel", OnOverlap::Cancel)];

impl Reading<'_> {
    /// The definition, if nothing is wrong with any field; every fault is noted.
    pub(super) fn definition(&mut self) -> Option<Definition> {
        // Read all of them before giving up on any, so that a person sees every problem at once.
        let id = self.id();
        let description = self.read_or_empty("description", |v| v.text());
        let own_zone = self.read_or_empty("timezone", |v| v.zone());
        let enabled = self.read("enabled", |v| v.flag());
        let zone = own_zone.flatten().unwrap_or(self.defaults.zone);
        let trigger = self.trigger(zone, id.as_ref());
        let mode = self.mode();
        let skills = self.read("skills", |v| v.skills());
        let timeout = self.read("timeout", |v| v.span(Duration::from_secs(1)));
        let max_turns = self.read("max_turns", |v| v.count(1));
        let max_cost_usd = self.read("max_cost_usd", |v| v.dollars());
        let on_missed = self.read("on_missed", |v| v.one_of(&ON_MISSED));
        let retry = self.read("retry", |v| v.count(0));
        let created_by = self.read_or_empty("created_by", |v| v.text());
        if self.document.body.trim().is_empty() {
            let line = super::frontmatter::closing_line(self.text);
            let hint = Some("write the prompt below the closing `---`".into());
            self.problem(Severity::Error, None, "the body is empty".into(), hint, (line, 1));
        }
        self.misplaced_fields();
        let definition = Definition {
            id: id?,
            file: self.file.to_owned(),
            description: one_line(description?.unwrap_or_default()),
            zone,
            own_zone: own_zone?,
            enabled: enabled?.unwrap_or(true),
            trigger: trigger?,
            mode: mode?,
            skills: skills?.unwrap_or_default(),
            timeout: timeout?,
            max_turns: max_turns?,
            max_cost_usd: max_cost_usd?,
            on_missed: on_missed?.unwrap_or(self.kind.on_missed()),
            retry: retry?,
            created_by: created_by?
                .map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty())
                .map(DefinitionId::new),
            body: self.document.body.clone(),
        };
        self.warn_of(&definition);
        Some(definition)
    }

    fn id(&mut self) -> Option<DefinitionId> {
        let id = match self.read_or_empty("id", |v| v.text())? {
            Some(text) => DefinitionId::new(text),
            None => self.id.clone(),
        };
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

    fn trigger(&mut self, zone: Tz, id: Option<&DefinitionId>) -> Option<Trigger> {
        match self.kind {
            Kind::Routine => {
                let on_overlap = self.read("on_overlap", |v| v.one_of(&ON_OVERLAP));
                let cron = self.cron();
                Some(Trigger::Routine { cron: cron?, on_overlap: on_overlap?.unwrap_or_default() })
            }
            Kind::Reminder => {
                let chain = self.chain(id);
                let run_at = self.run_at(zone);
                Some(Trigger::Reminder { run_at: run_at?, chain: chain? })
            }
            Kind::Session => Some(Trigger::Session { run_at: self.run_at(zone)? }),
        }
    }

    fn cron(&mut self) -> Option<String> {
        let cron = self.read_or_empty("cron", |v| {
            let text = v.letters()?;
            let text = text.trim();
            check_cron(text).map_err(|error| Fault {
                message: format!("bad `cron` {}: {error}", quoted(text)),
                hint: Some(error.hint().into()),
                item: None,
            })?;
            Ok(text.to_owned())
        })?;
        if cron.is_none() {
            let hint = match self.entry("run_at") {
                Some(_) => "`run_at` is a reminder's: move the file to reminders/, or write `cron: '30 8 * * *'`",
                None => "write for example `cron: '30 8 * * *'` (minute hour day month weekday)",
            };
            self.at_field(Severity::Error, "cron", "a routine needs `cron`".into(), hint);
        }
        cron
    }

    fn run_at(&mut self, zone: Tz) -> Option<DateTime<FixedOffset>> {
        let run_at = self.read_or_empty("run_at", |v| v.instant(zone))?;
        if run_at.is_none() {
            let hint = match self.entry("cron") {
                Some(_) => "`cron` is a routine's: move the file to routines/, or write `run_at: …`",
                None => "write for example `run_at: 2026-11-22T09:00:00+01:00`",
            };
            self.at_field(Severity::Error, "run_at", "a reminder needs `run_at`".into(), hint);
        }
        run_at
    }

    fn chain(&mut self, id: Option<&DefinitionId>) -> Option<Option<Chain>> {
        let max = self.read("max_chain", |v| v.count(0));
        let depth = self.read("chain_depth", |v| v.count(0));
        let parent = self.read_or_empty("chain_parent", |v| v.text());
        let (max, depth, parent) = (max?.unwrap_or(0), depth?.unwrap_or(0), parent?);
        if depth > max {
            let message = format!("`chain_depth` {depth} is beyond `max_chain` {max}");
            let hint = "raise `max_chain`, or remove `chain_depth`: a chain sets it by itself";
            self.at_field(Severity::Error, "chain_depth", message, hint);
            return None;
        }
        if max == 0 {
            return Some(None);
        }
        let parent = match parent.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()) {
            Some(text) => DefinitionId::new(text),
            None => id?.clone(),
        };
        Some(Some(Chain { max, depth, parent }))
    }

    fn mode(&mut self) -> Option<Mode> {
        let background = self.read("background", |v| v.flag());
        let isolated = self.read("isolated", |v| v.flag());
        let model = self.read_or_empty("model", |v| v.model());
        let thinking = self.read_or_empty("thinking", |v| v.thinking());
        let agent = self.read("agent", |v| v.agent());
        let allowed = self.read("allowed_tools", |v| v.patterns());
        let disallowed = self.read("disallowed_tools", |v| v.patterns());
        let update = self.read("update_main_session", |v| v.one_of(&UPDATE_MODES));
        let allow_ping = self.read("allow_ping", |v| v.flag());
        let network = self.read("network", |v| v.one_of(&NETWORKS));
        self.both_lists();
        // Where `background` itself is wrong, nothing is known of what needs it.
        let background = background?.unwrap_or(false);
        if !background {
            self.restrictions_in_the_foreground();
            return Some(Mode::Foreground);
        }
        let restrictions =
            BgForkConfig::new(update?.unwrap_or_default(), allow_ping?.unwrap_or(true), allowed?, disallowed?).ok()?;
        let restrictions = restrictions.with_network(network?.unwrap_or_default());
        Some(Mode::Background(Background {
            isolated: isolated?.unwrap_or(false),
            model: model?,
            thinking: thinking?.unwrap_or(Thinking::Adaptive),
            agent: agent?,
            restrictions,
        }))
    }

    fn both_lists(&mut self) {
        let (Some(allowed), Some(disallowed)) = (self.entry("allowed_tools"), self.entry("disallowed_tools")) else {
            return;
        };
        let second = if allowed.index > disallowed.index { "allowed_tools" } else { "disallowed_tools" };
        let hint = "keep one: `allowed_tools` lists the only tools the job has, `disallowed_tools` takes tools away";
        self.at_field(Severity::Error, second, crate::policy::BothLists.to_string(), hint);
    }
}

/// A description is one line, whatever the file made of it; control characters would reach terminals.
fn one_line(text: String) -> String {
    let plain = |byte: u8| matches!(byte, b' '..=b'~');
    if text.bytes().all(plain) && !text.contains("  ") && text.trim_ascii().len() == text.len() {
        return text;
    }
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}
