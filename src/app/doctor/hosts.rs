//! The hosts that share the journal, and its server.

use super::Finding;
use crate::app::{App, times, words};
use crate::journal::{HostRecord, JournalReader, Server};
use crate::refusal::Refusal;

/// A clock that is off by so much is told of.
const SKEWED_MS: i64 = 500;

/// Whether the server answers, and how the hosts are.
pub(super) fn journal(server: Result<Server, Refusal>, app: &App) -> Vec<Finding> {
    let server = match server {
        Ok(server) => server,
        Err(refusal) => {
            return vec![Finding::wrong("journal", refusal.to_string()).step("put `journal` in config.yaml right")];
        }
    };
    let read = app.read_journal().and_then(|journal| Ok((journal.hosts()?, asynchronous(&journal))));
    match read {
        Err(refusal) => vec![
            Finding::wrong("journal", format!("{server}: {refusal}"))
                .step("see that the server runs, and that this machine reaches it: `psql` with the same address")
                .step("see that the password is right: JOURNAL_PASSWORD in .env"),
        ],
        Ok((hosts, asynchronous)) => {
            let alive = hosts.iter().filter(|host| host.alive).count();
            let found = Finding::ok("journal", format!("on {server}; {alive} of {} hosts are alive", hosts.len()));
            std::iter::once(found)
                .chain(asynchronous)
                .chain(hosts.iter().filter_map(|host| one(host, &hosts, app)))
                .collect()
        }
    }
}

/// What a failover to a replica would lose.
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

/// What is wrong with a host.
fn one(host: &HostRecord, all: &[HostRecord], app: &App) -> Option<Finding> {
    let name = &host.name;
    if !host.alive {
        let since = times::relative(host.lease_until, app.now());
        return Some(match host.open {
            0 => Finding::look("hosts", format!("{name} was last seen {since}"))
                .step("start it again; it is not needed for what the others do"),
            open => Finding::wrong(
                "hosts",
                format!("{name} was last seen {since}, with {open} jobs that have no outcome yet"),
            )
            .step("start it again, or have their files in the folder of another host, which takes them over"),
        });
    }
    if let Some(off) = words::clock(host).filter(|_| host.skew_ms.abs() > SKEWED_MS) {
        let off = format!("the clock of {name} is {off}");
        let finding = match !host.has_the_time() {
            true => Finding::wrong("hosts", format!("{off}, so nothing fires there")),
            false => Finding::look("hosts", off),
        };
        return Some(finding.step("set it there: `timedatectl set-ntp true`"));
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
