//! Checks everything that jobs depend on, and says what to do about problems.
//!
//! Only [`fix`] changes anything, and only what is safe to change.

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

/// The state of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// All is well.
    Ok,
    /// It works, but a person should know of something.
    Look,
    /// It keeps jobs from running, or leaves them without a sandbox.
    Wrong,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check: one or two words.
    pub check: &'static str,
    /// Its result.
    pub health: Health,
    /// A sentence, without a full stop.
    pub detail: String,
    /// Steps to take now; empty if there are none.
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
    /// Adds a step to take now.
    fn step(mut self, step: impl Into<String>) -> Self {
        self.steps.push(step.into());
        self
    }
}

/// The results of all checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The repairs that were made before the checks, in words.
    pub fixed: Vec<String>,
    /// The findings, at least one for each check.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Whether any check found something wrong.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        self.count(Health::Wrong) > 0
    }

    /// Returns the number of findings with this result.
    #[must_use]
    pub fn count(&self, health: Health) -> usize {
        self.findings.iter().filter(|finding| finding.health == health).count()
    }
}

/// Runs all checks. With `fix`, first repairs what is safe to repair.
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
    findings.extend(agent::agent_that_counts(app));
    findings.extend(running::service(app));
    findings.extend(running::unit(app));
    findings.extend(channels::channels(app));
    findings.extend(mcp_servers::servers(app));
    findings.extend(jobs::definitions(app));
    findings.extend(jobs::without_host(app));
    findings.extend(jobs::webhooks(app));
    findings.extend(jobs::outcomes(app));
    Diagnosis { fixed, findings }
}
