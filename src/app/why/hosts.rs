//! Situations in which several hosts share the journal, and another one has the occurrence.

use super::facts::{Facts, seen};
use super::situations::Statement;
use super::{Evidence, Source};
use crate::app::words;
use crate::definition::Definition;
use crate::journal::{HostRecord, OccurrenceHistory};
use crate::schedule::{has_zone_of_host, is_named, needs_main};

/// A job that this host leaves to others, and why.
pub(super) struct JobOfOtherHost<'a> {
    /// The hosts that are up and may run it.
    able: Vec<&'a HostRecord>,
    /// The reason why it does not run here: `its \`hosts\` name laptop`.
    why: String,
    evidence: Evidence,
    /// Whether it may run here as soon as the service is running.
    is_only_off: bool,
}

impl JobOfOtherHost<'_> {
    /// Returns `laptop or server`.
    fn names(&self) -> String {
        let names: Vec<&str> = self.able.iter().map(|host| host.name.as_str()).collect();
        names.join(" or ")
    }

    /// Whether the job is this host's own as soon as its service is running, since no other host may have it.
    pub(super) fn is_only_off(&self) -> bool {
        self.is_only_off && self.able.is_empty()
    }

    /// Returns why a due occurrence is not claimed: `it is left to laptop, since …`.
    pub(super) fn held(&self) -> String {
        match self.able.is_empty() {
            false => format!("it is left to {}, since {}", self.names(), self.why),
            true => format!("no host that may run it is up ({})", self.why),
        }
    }
}

impl Facts {
    fn this_host(&self) -> Option<&HostRecord> {
        self.hosts.iter().find(|host| Some(&host.name) == self.host.as_ref())
    }

    /// Returns the host of an occurrence, if it is not this one.
    pub(super) fn other_host(&self, story: &OccurrenceHistory) -> Option<&HostRecord> {
        self.hosts.iter().find(|host| Some(&host.name) == story.host.as_ref() && Some(&host.name) != self.host.as_ref())
    }

    /// Whether the occurrence's host is not up, so that its runs are cut off.
    pub(super) fn is_host_off(&self, story: &OccurrenceHistory) -> bool {
        self.other_host(story).map_or_else(|| self.is_off(), |host| !host.alive)
    }

    /// Returns the zone of jobs without one of their own, which the hosts have in common. See [`Hosts::common_zone`](crate::journal::Hosts).
    fn common_zone(&self, named: impl Fn(&str, &[String]) -> bool) -> Option<&str> {
        let is_able = |host: &&HostRecord| host.alive && host.timezone.is_some() && named(&host.name, &host.labels);
        let able = || self.hosts.iter().filter(is_able);
        able().find(|host| host.main).or_else(|| able().next())?.timezone.as_deref()
    }

    /// Returns this host's time zone and the common one, if a job fires in another one than this host's.
    fn other_zone(&self, definition: &Definition, named: impl Fn(&str, &[String]) -> bool) -> Option<(&str, &str)> {
        let common = self.common_zone(named).filter(|_| has_zone_of_host(definition) && !needs_main(definition))?;
        let mine = self.this_host().filter(|host| host.alive)?.timezone.as_deref()?;
        (mine != common).then_some((mine, common))
    }

    /// Returns what the occurrence waits for if no host has it yet.
    pub(super) fn unassigned(&self) -> Option<String> {
        self.story.as_ref().filter(|story| story.host.is_none() && story.outcome.is_none())?;
        let left = self.left()?;
        Some(match left.able.is_empty() {
            true => format!("for a host that may run it, and none is up ({})", left.why),
            false => format!("{} takes it up", left.names()),
        })
    }

    /// Returns why this host leaves the job to others; `None` if it does not.
    pub(super) fn left(&self) -> Option<JobOfOtherHost<'_>> {
        let definition = self.definition.as_ref().filter(|_| !self.hosts.is_empty())?;
        let (needs_main, me) = (needs_main(definition), self.host.as_deref()?);
        let labels = self.this_host().map(|host| host.labels.as_slice()).unwrap_or_default();
        let named = |name: &str, labels: &[String]| {
            is_named(definition, name, |label| labels.iter().any(|known| known == label))
        };
        let main = self.hosts.iter().find(|host| host.main);
        let mut is_only_off = false;
        let (why, evidence) = if !named(me, labels) {
            let names = definition.hosts.join(" and ");
            let what = format!("{}: `hosts: [{}]`", definition.file.display(), definition.hosts.join(", "));
            (format!("its `hosts` name {names}"), seen(Source::File, what))
        } else if let Some(main) = main.filter(|main| needs_main && main.name != me) {
            let why = format!("it goes on from the main session, which {} has", main.name);
            (why, seen(Source::Journal, format!("{} is the main host", main.name)))
        } else if let Some(host) = self.this_host().filter(|host| host.alive && !host.has_correct_time()) {
            let off = words::clock(host).unwrap_or_default();
            let why = format!("the clock of {me} is {off}, and nothing fires by it");
            (why, seen(Source::Clock, format!("{me} compared its clock with the server's")))
        } else if let Some((zone, common)) = self.other_zone(definition, named) {
            let why = format!("it has no `timezone`, so it fires in {common}, and the time zone of {me} is {zone}");
            (why, seen(Source::Journal, format!("{me} joined with the time zone {zone}")))
        } else if self.is_off() {
            is_only_off = true;
            (format!("the service of {me} is not running"), seen(Source::Journal, format!("{me} is not up")))
        } else {
            return None;
        };
        let common = Some(definition).filter(|known| has_zone_of_host(known)).and_then(|_| self.common_zone(named));
        let is_able = |host: &&HostRecord| {
            host.name != me
                && host.alive
                && host.has_correct_time()
                && named(&host.name, &host.labels)
                && (!needs_main || host.main)
                && common.is_none_or(|common| needs_main || host.timezone.as_deref() == Some(common))
        };
        let able = self.hosts.iter().filter(is_able).collect();
        Some(JobOfOtherHost { able, why, evidence, is_only_off })
    }
}

/// Returns the clause `the host laptop had it: `.
pub(super) fn had_it(facts: &Facts) -> Option<Statement> {
    let story = facts.story.as_ref()?;
    let host = facts.other_host(story)?;
    let has = if story.outcome.is_some() { "had" } else { "has" };
    let since = match host.alive {
        true => format!("{} is up", host.name),
        false => format!("{} was last seen {}", host.name, facts.moment(host.lease_until)),
    };
    Statement::from(format!("the host {} {has} it: ", host.name), Source::Journal, since)
}

/// Returns the clause for an occurrence that its host left open.
pub(super) fn gone(facts: &Facts) -> Option<Statement> {
    let story = facts.story.as_ref().filter(|story| story.outcome.is_none())?;
    let host = facts.other_host(story).filter(|host| !host.alive)?;
    let at = facts.moment(host.lease_until);
    let next = "a host that is up and may run it takes it over";
    Statement::bare(format!("was left open when that host went away {at}; {next}"))
}

pub(super) fn left_to_others(facts: &Facts) -> Option<Statement> {
    let left = facts.left().filter(|left| !left.able.is_empty())?;
    let next = super::situations::next_words(facts)?;
    let sentence = format!("{next}, on {}: {}.", left.names(), left.why);
    Some(Statement { sentence, evidence: vec![left.evidence] })
}

pub(super) fn no_host(facts: &Facts) -> Option<Statement> {
    let left = facts.left().filter(|left| left.able.is_empty() && !left.is_only_off())?;
    let next = super::situations::next_words(facts)?;
    let sentence = format!("{next}, if a host that may run it is up by then: {}.", left.why);
    let gone = facts.hosts.iter().filter(|host| !host.alive);
    let gone = gone.map(|host| {
        let what = format!("{} was last seen {}", host.name, facts.moment(host.lease_until));
        Evidence { from: Source::Journal, at: Some(host.lease_until), what }
    });
    Some(Statement { sentence, evidence: std::iter::once(left.evidence).chain(gone).collect() })
}
