//! Whether everything that jobs depend on is as it should be, and what to do where it is not.
//!
//! Looks only; [`fix`] alone changes something, and only what cannot be wrong to change.

mod agent;
mod channels;
mod fix;
mod folder;
mod hosts;
mod jobs;
mod machine;
mod mcp_servers;
mod running;

pub(super) use agent::{agent, has_agent};
use serde::Serialize;

use super::App;

/// How one thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// As it should be.
    Ok,
    /// It works; a person should know of it.
    Look,
    /// It keeps jobs from running, or from being held.
    Wrong,
}

/// What was found of one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at: one or two words.
    pub check: &'static str,
    /// How it is.
    pub health: Health,
    /// In a sentence, without a full stop.
    pub detail: String,
    /// What to do now; empty where nothing is to be done.
    #[serde(rename = "do", skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
}

impl Finding {
    fn of(check: &'static str, health: Health, detail: impl Into<String>) -> Self {
        Self { check, health, detail: detail.into(), steps: Vec::new() }
    }
    fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self::of(check, Health::Ok, detail)
    }
    fn look(check: &'static str, detail: impl Into<String>) -> Self {
        Self::of(check, Health::Look, detail)
    }
    fn wrong(check: &'static str, detail: impl Into<String>) -> Self {
        Self::of(check, Health::Wrong, detail)
    }
    /// Adds what to do now.
    fn step(mut self, step: impl Into<String>) -> Self {
        self.steps.push(step.into());
        self
    }
}

/// All that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// What was repaired, in words, before anything was looked at.
    pub fixed: Vec<String>,
    /// One or more for each thing that was looked at.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Whether anything is wrong.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        self.count(Health::Wrong) > 0
    }

    /// How many are so.
    #[must_use]
    pub fn count(&self, health: Health) -> usize {
        self.findings.iter().filter(|finding| finding.health == health).count()
    }
}

/// Looks at everything. `fix`: what is safe to repair is repaired first.
pub(super) fn doctor(fix: bool, app: &App) -> Diagnosis {
    let (fixed, failed) = if fix { fix::fix(app) } else { (Vec::new(), Vec::new()) };
    let mut findings = failed;
    findings.extend(folder::folder(app));
    findings.extend(folder::secrets(app));
    findings.extend(folder::disk(app));
    findings.extend(folder::journal(app));
    findings.extend(machine::zone(app));
    findings.extend(machine::clock(app));
    findings.extend(machine::sandbox(app));
    findings.extend(machine::sockets(app));
    findings.extend(agent::agent(app));
    findings.extend(running::service(app));
    findings.extend(running::unit(app));
    findings.extend(channels::channels(app));
    findings.extend(mcp_servers::servers(app));
    findings.extend(jobs::definitions(app));
    findings.extend(jobs::webhooks(app));
    findings.extend(jobs::outcomes(app));
    Diagnosis { fixed, findings }
}
