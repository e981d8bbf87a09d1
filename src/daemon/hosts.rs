//! This host, where several share a journal on a server.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::service::DaemonError;
use crate::app::App;
use crate::config::Config;
use crate::hexadecimal::hex;
use crate::home::Home;
use crate::journal::{Journal, JournalPlace, NewHost};

/// How often a server is asked again that does not answer.
const AGAIN: Duration = Duration::from_secs(2);

/// Opens the journal, and joins those who share it. A server that does not answer is waited for, as nothing could be recorded meanwhile.
///
/// # Errors
/// What does not pass by itself: another host has this one's name, or the journal is a newer version's.
pub(super) async fn open(app: &App, config: &Config) -> Result<Journal, DaemonError> {
    let (place, clock) = (app.journal()?, &app.clock);
    if matches!(place, JournalPlace::File(_)) {
        return Ok(Journal::open(place, clock.clone())?);
    }
    let new = this_host(app.host_name()?, &app.home, config)?;
    let mut said = false;
    loop {
        let (place, new, clock) = (place.clone(), new.clone(), clock.clone());
        let opening = tokio::task::spawn_blocking(move || {
            let mut journal = Journal::open(place, clock)?;
            journal.join(new, Box::new(start_again)).map(|_| journal)
        });
        match opening.await.map_err(|error| DaemonError::Io { what: "open the journal", source: error.into() })? {
            Ok(journal) => return Ok(journal),
            Err(error) if error.may_pass() => {
                if !said {
                    tracing::error!(%error, cause = error.cause(), "waiting for it, since nothing can be recorded without it");
                    said = true;
                }
                tokio::time::sleep(AGAIN).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn this_host(name: String, home: &Home, config: &Config) -> Result<NewHost, DaemonError> {
    let identity = identity(home).map_err(|source| DaemonError::Io { what: "keep this host's identity", source })?;
    Ok(NewHost {
        name,
        home: identity,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        zones: chrono_tz::IANA_TZDB_VERSION.to_owned(),
        labels: config.host_labels.clone(),
        slots: config.max_concurrent_runs,
    })
}

/// What the data folder is known by: a service that is started again on it is the same host.
fn identity(home: &Home) -> io::Result<String> {
    let path = home.host_identity();
    match fs::read_to_string(&path) {
        Ok(known) if !known.trim().is_empty() => return Ok(known.trim().to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    let new = hex(&bytes);
    let mut file = fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path)?;
    writeln!(file, "{new}")?;
    file.sync_all()?;
    Ok(new)
}

/// Set where the process is to end with its lease.
static ENDS_WITH_LEASE: AtomicBool = AtomicBool::new(false);

/// From now on, when the lease is lost, the process ends instead of becoming a new one: it was told to end, or was started for one run,
/// which a new one would begin again.
pub(super) fn end_with_lease() {
    ENDS_WITH_LEASE.store(true, Ordering::SeqCst);
}

/// The lease is lost, so another host may take over whatever this one had going. The process becomes a new one of the same command line,
/// which joins anew: all that was going ends as if this one had been killed, since its runners end with their sockets.
///
/// Where [`end_with_lease`] was called it ends.
pub(super) fn start_again(why: &str) {
    if ENDS_WITH_LEASE.load(Ordering::SeqCst) {
        tracing::error!("this host has lost its lease on the journal: {why}; what it had going ends here");
        std::process::exit(2);
    }
    tracing::error!(
        "this host has lost its lease on the journal: {why}; what it had going ends here, and it joins anew"
    );
    let failed = match std::env::current_exe().map(in_its_place) {
        Ok(program) => Command::new(program).args(std::env::args_os().skip(1)).exec(),
        Err(error) => error,
    };
    tracing::error!(error = %failed, "it could not join anew, and ends");
    std::process::abort();
}

/// The program that is in the place of this one by now: where it was replaced, Linux says that it was deleted.
fn in_its_place(program: PathBuf) -> PathBuf {
    let kept = program.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    kept.unwrap_or(program)
}
