//! The state of everything, and what needs the person's attention, the most urgent first.

use std::collections::BTreeSet;

use super::{App, ListenerState, Status, status};
use crate::definition::DefinitionId;
use crate::journal::{ConsecutiveFailures, RunState};
use crate::refusal::Refusal;

/// The subject of a need: where the person looks to deal with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeedSubject {
    /// The service and its client.
    Service,
    /// Questions that jobs ask.
    Questions,
    /// One job.
    Job(DefinitionId),
    /// Reminders whose files are kept in `reminders/failed/`.
    FailedReminders,
    /// Files with errors.
    Files,
    /// Channels that do not deliver.
    Channels,
    /// Spending.
    Costs,
    /// The hosts that share the journal.
    Hosts,
}

/// Something that needs the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The need as a part of a sentence: `2 questions are open`.
    pub words: String,
    /// Its subject.
    pub about: NeedSubject,
}

/// The state of everything, and what needs the person.
#[derive(Debug)]
pub struct Attention {
    /// The state of everything.
    pub status: Status,
    /// The needs; empty if nothing needs the person.
    pub needs: Vec<Need>,
}

impl Attention {
    /// Returns `3 things need you: the agent is not logged in; …`, or the sentence of [`Self::all_clear`].
    #[must_use]
    pub fn sentence(&self) -> String {
        let words: Vec<&str> = self.needs.iter().map(|need| &*need.words).collect();
        match words.len() {
            0 => self.all_clear(),
            count => format!("{}: {}", self.count_sentence(count), words.join("; ")),
        }
    }

    /// Returns `3 things need you`.
    #[must_use]
    pub fn count_sentence(&self, count: usize) -> String {
        if count == 1 { "1 thing needs you".to_owned() } else { format!("{count} things need you") }
    }

    /// Returns the sentence for a state in which nothing needs the person.
    #[must_use]
    pub fn all_clear(&self) -> String {
        let running = match self.status.running.len() {
            0 => String::new(),
            1 => ", 1 run is active".to_owned(),
            runs => format!(", {runs} runs are active"),
        };
        format!("Nothing needs you{running}")
    }
}

/// Returns what needs the person now.
pub(super) fn attention(app: &App) -> Result<Attention, Refusal> {
    let status = status::status(app)?;
    let mut needs = needs_of(&status);
    // A question expires, so it comes before needs that stay as they are.
    if let Some(words) = status.open_questions() {
        needs.insert(0, Need::new(words, NeedSubject::Questions));
    }
    Ok(Attention { status, needs })
}

impl Need {
    fn new(words: impl Into<String>, about: NeedSubject) -> Self {
        Self { words: words.into(), about }
    }
}

/// Says that a job's last run failed, and how often in a row.
pub(super) fn failing(job: &ConsecutiveFailures) -> String {
    let times = match job.failures {
        1 => "failed".to_owned(),
        times => format!("failed {times} times in a row"),
    };
    match job.paused {
        Some(_) => format!("{} is paused, it {times}", job.id),
        None => format!("{} {times}", job.id),
    }
}

/// Says how many jobs wait for an agent now, and how many will when they fall due.
fn waiting_for_agent(status: &Status) -> String {
    let claimed = status.running.iter().filter(|run| run.outcome == RunState::Claimed).map(|run| &run.id);
    let due = claimed.chain(status.due.iter().map(|due| &due.definition.id));
    let now = due.filter(|id| status.need_agent.contains(id)).collect::<BTreeSet<_>>().len();
    let jobs = |count: usize| if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") };
    let wait = if now == 1 { "waits" } else { "wait" };
    match (now, status.need_agent.len() - now) {
        (0, later) => format!("{} will wait", jobs(later)),
        (now, 0) => format!("{} {wait}", jobs(now)),
        (now, later) => format!("{} {wait}, and {later} more will", jobs(now)),
    }
}

/// Returns the needs that the status shows: first those that stop everything, then those that stop one job.
fn needs_of(status: &Status) -> Vec<Need> {
    let mut needs = Vec::new();
    match &status.service {
        None => needs.push(Need::new("the service does not run", NeedSubject::Service)),
        Some(service) => {
            if service.ending {
                needs.push(Need::new("the service is ending", NeedSubject::Service));
            }
            if let Some(fault) = &service.journal_fault {
                needs.push(Need::new(fault, NeedSubject::Service));
            }
            if service.paused.is_some() {
                needs.push(Need::new("everything is paused", NeedSubject::Service));
            }
            if service.client.missing.is_some() && !status.need_agent.is_empty() {
                needs.push(Need::new(format!("no agent, so {}", waiting_for_agent(status)), NeedSubject::Service));
            } else if service.waiting_for_login.is_some() {
                needs.push(Need::new("the agent is not logged in, so jobs wait", NeedSubject::Service));
            }
        }
    }
    for cap in &status.spent {
        needs.push(Need::new(cap.is_spent_words(), NeedSubject::Costs));
    }
    for host in status.hosts.iter().filter(|host| !host.alive && host.open > 0) {
        let open = if host.open == 1 { "1 job".to_owned() } else { format!("{} jobs", host.open) };
        needs.push(Need::new(format!("the host {} is gone, with {open} open", host.name), NeedSubject::Hosts));
    }
    for host in status.hosts.iter().filter(|host| host.alive && !host.has_correct_time()) {
        needs.push(Need::new(format!("the clock of {} is off, so nothing fires there", host.name), NeedSubject::Hosts));
    }
    if status.settings_are_wrong {
        needs.push(Need::new("the settings have an error", NeedSubject::Files));
    }
    let listeners = status
        .service
        .iter()
        .flat_map(|service| [("webhooks are not taken", &service.webhooks), ("the page is not served", &service.page)]);
    for (what, listener) in listeners {
        if let Some(ListenerState::Failed(why)) = listener {
            needs.push(Need::new(format!("{what}: {why}"), NeedSubject::Service));
        }
    }
    for channel in &status.failing_channels {
        needs.push(Need::new(format!("{} {}", channel.name, channel.state()), NeedSubject::Channels));
    }
    needs.extend(status.failures.iter().map(|job| Need::new(failing(job), NeedSubject::Job(job.id.clone()))));
    let broken: BTreeSet<_> =
        status.problems.iter().filter(|problem| problem.is_error()).map(|problem| &problem.file).collect();
    match broken.len() {
        0 => {}
        1 => needs.extend(
            broken.first().map(|file| Need::new(format!("{} has an error", file.display()), NeedSubject::Files)),
        ),
        files => needs.push(Need::new(format!("{files} files have errors"), NeedSubject::Files)),
    }
    let failed = status.named_failed_reminders();
    needs.extend(failed.map(|which| Need::new(format!("{which} failed"), NeedSubject::FailedReminders)));
    needs
}
