//! Checks the hosts that share the journal, and its server.

use std::collections::BTreeSet;

use super::Finding;
use crate::app::{App, times, words};
use crate::definition::shared;
use crate::journal::{HostRecord, JournalError, JournalReader, Server};
use crate::refusal::Refusal;

/// Minimum deviation of a clock to report, in milliseconds.
const SKEWED_MS: i64 = 500;

/// Checks that the server answers, and the state of the hosts.
pub(super) fn journal(server: Result<Server, Refusal>, app: &App) -> Vec<Finding> {
    let server = match server {
        Ok(server) => server,
        Err(refusal) => {
            return vec![Finding::wrong("journal", refusal.to_string()).step("put `journal` in config.yaml right")];
        }
    };
    let read = app.read_journal().and_then(|journal| {
        let findings = [writing(&journal), asynchronous(&journal), files(&journal, app)?];
        Ok((journal.hosts()?, findings))
    });
    match read {
        Err(refusal) => vec![
            Finding::wrong("journal", format!("{server}: {refusal}"))
                .step("see that the server runs, and that this machine reaches it: `psql` with the same address")
                .step("see that the password is right: JOURNAL_PASSWORD in .env"),
        ],
        Ok((hosts, findings)) => {
            let alive = hosts.iter().filter(|host| host.alive).count();
            let found = Finding::ok("journal", format!("on {server}; {alive} of {} hosts are alive", hosts.len()));
            std::iter::once(found)
                .chain(findings.into_iter().flatten())
                .chain(hosts.iter().filter_map(|host| one(host, &hosts, app)))
                .collect()
        }
    }
}

/// Reports why nothing can be recorded.
fn writing(journal: &JournalReader) -> Option<Finding> {
    let error = journal.try_writing().err()?;
    let step = match &error {
        JournalError::Denied(_) => "give the role its privileges back, or the password of JOURNAL_PASSWORD in .env",
        JournalError::Unable(_) => "make room on the server's disk, or let its database be written",
        _ => "see the server's log",
    };
    let detail = format!("it cannot be written, so nothing fires: {}", Refusal::from(error));
    Some(Finding::wrong("journal", detail).step(step))
}

/// Reports replicas on which a failover would lose data.
fn asynchronous(journal: &JournalReader) -> Option<Finding> {
    match journal.asynchronous_replicas() {
        Ok(0) => None,
        Ok(count) => Some(
            Finding::look("replicas", format!("{count} of the server's replicas may lag behind it"))
                .step("before one of them takes over: what was committed last may be gone then, and run again")
                .step("or have the server wait for it: `synchronous_standby_names`"),
        ),
        Err(error) => Some(Finding::look("replicas", format!("the server does not say whether it has any: {error}"))),
    }
}

/// Compares the files on this host with those of the other hosts.
fn files(journal: &JournalReader, app: &App) -> Result<Option<Finding>, Refusal> {
    if !app.config()?.share_files {
        return Ok(None);
    }
    let unreadable = |error| Refusal::environment(format!("the files cannot be read: {error}"));
    let mut here: BTreeSet<String> = shared::list(&app.home).0.into_keys().collect();
    let mut differ = Vec::new();
    let mut equal = 0;
    for file in journal.shared_files(0, i64::MAX)? {
        here.remove(&file.path);
        let text = shared::read(&app.home, &file.path).map_err(unreadable)?;
        match text == (!file.removed).then_some(file.text) {
            false => differ.push(file.path),
            true => equal += usize::from(!file.removed),
        }
    }
    differ.extend(here);
    Ok(Some(match &differ[..] {
        [] => Finding::ok("files", format!("{equal} are equal with the other hosts'")),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            Finding::look("files", format!("{first}{more}: not as on the other hosts")).step(
                "a service that runs here makes them equal within a few seconds; `ollim-bot logs` says what hinders it",
            )
        }
    }))
}

/// Returns the problem of a host.
fn one(host: &HostRecord, all: &[HostRecord], app: &App) -> Option<Finding> {
    let name = &host.name;
    if !host.alive {
        let since = times::relative(host.lease_until, app.now());
        return Some(match host.open {
            0 => Finding::look("hosts", format!("{name} was last seen {since}"))
                .step("start it again; the others run what they may run"),
            open => Finding::wrong(
                "hosts",
                format!("{name} was last seen {since}, with {open} jobs that have no outcome yet"),
            )
            .step("start it again, or let another host run them: with their files, and named where they have `hosts`"),
        });
    }
    if let Some(off) = words::clock(host).filter(|_| host.skew_ms.abs() > SKEWED_MS) {
        let off = format!("the clock of {name} is {off}");
        let finding = match !host.has_correct_time() {
            true => Finding::wrong("hosts", format!("{off}, so nothing fires there")),
            false => Finding::look("hosts", off),
        };
        return Some(finding.step("set it there: `timedatectl set-ntp true`"));
    }
    let main = all.iter().find(|other| other.main);
    if let (Some(zone), Some(main)) = (&host.timezone, main)
        && let Some(main_zone) = main.timezone.as_ref().filter(|other| *other != zone)
    {
        let detail = format!(
            "the time zone of {name} is {zone}, that of the main host {} is {main_zone}: {name} leaves jobs without `timezone` to the others",
            main.name
        );
        let step = format!("set `timezone: {main_zone}` in the config.yaml of {name}, and restart it");
        return Some(Finding::look("hosts", detail).step(step));
    }
    let newest = all.iter().filter(|other| other.alive).map(|other| &other.zones).max()?;
    if host.zones != *newest {
        let detail = format!("{name} has the time zones of {}, another host those of {newest}", host.zones);
        return Some(
            Finding::look("hosts", detail)
                .step(format!("update ollim-bot on {name}: around changes of clocks it leaves routines to the others")),
        );
    }
    None
}
