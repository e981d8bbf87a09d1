//! The identity and the lease of this host where several hosts share a journal on a server.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use signal_hook::flag;
use tokio::signal::unix::SignalKind;
use tokio::task::JoinSet;

use super::lock::Lock;
use super::service::DaemonError;
use super::supervisor::Supervisor;
use super::waiting::Waiting;
use crate::app::App;
use crate::config::Config;
use crate::hexadecimal::hex;
use crate::home::Home;
use crate::journal::{Journal, JournalError, JournalLocation, NewHost, NewMessage};

/// Interval between two attempts to reach a server.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// The exit code of a process that ends since it has lost its lease.
const WITHOUT_LEASE: i32 = 2;

/// A variable that tells the program that it restarted itself, since it had lost the journal's server.
const LOST_SERVER: &str = "OLLIM_LOST_SERVER";

/// Opens the journal and joins the hosts that share it. Waits for an unreachable server, as nothing could be recorded meanwhile.
/// `waiting` tells the person of it; `None` tells nobody.
///
/// # Errors
/// Permanent errors: another host uses this one's name, or the journal is a newer version's.
pub(super) async fn open(
    app: &App,
    config: &Config,
    supervisor: Supervisor,
    waiting: Option<Waiting>,
    lock: &Arc<Lock>,
) -> Result<Journal, DaemonError> {
    let (place, clock) = (app.journal()?, &app.clock);
    if matches!(place, JournalLocation::File(_)) {
        return Ok(Journal::open(place, clock.clone())?);
    }
    let new = this_host(app.host_name()?, &app.home, config)?;
    let joins_anew = app.env.text(LOST_SERVER).is_some();
    let mut beside = JoinSet::new();
    beside.spawn(supervisor.waits("waits for the journal's database"));
    let mut said = false;
    loop {
        let (place, new, clock, lock) = (place.clone(), new.clone(), clock.clone(), lock.clone());
        let opening = tokio::task::spawn_blocking(move || {
            let mut journal = Journal::open(place, clock)?;
            if joins_anew {
                journal.after_lost_server();
            }
            journal.join(new, Box::new(move |why: &str| start_again(why, Some(&lock)))).map(|_| journal)
        });
        match opening.await.map_err(|error| DaemonError::Io { what: "open the journal", source: error.into() })? {
            Ok(journal) => {
                if let Some(text) = waiting.and_then(|waiting| waiting.over()) {
                    journal.message(NewMessage::of_service(text)).await?;
                }
                return Ok(journal);
            }
            // At a first start, a wrong password is most likely a mistake in the settings.
            Err(error @ JournalError::Denied(_)) if !joins_anew => return Err(error.into()),
            Err(error) if error.may_pass() => {
                if !said {
                    tracing::error!(%error, cause = error.cause(), "waiting for it, since nothing can be recorded without it");
                    if let Some(waiting) = waiting.clone() {
                        beside.spawn(waiting.tell(error));
                    }
                    said = true;
                }
                tokio::time::sleep(RETRY_DELAY).await;
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
        timezone: config.timezone.name().to_owned(),
        labels: config.host_labels.clone(),
        slots: config.max_concurrent_runs,
    })
}

/// Returns the identity of the data folder. A service that is restarted on the folder remains the same host.
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

/// Whether the process ends when the lease is lost.
static ENDS_WITH_LEASE: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Whether the process is about to execute itself.
static STARTS_AGAIN: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Has a signal end the process also if it loses its lease. The signal's handler does this by itself: once the lease is lost, no task
/// may be left that waits for the signal, and the program that the process executes would know nothing of it.
pub(super) fn end_by(signal: SignalKind) -> io::Result<()> {
    // In this order: a signal that arrives too late to be seen in `start_again` ends the process here.
    flag::register(signal.as_raw_value(), Arc::clone(&ENDS_WITH_LEASE))?;
    flag::register_conditional_shutdown(signal.as_raw_value(), WITHOUT_LEASE, Arc::clone(&STARTS_AGAIN)).map(drop)
}

/// Makes the process end when the lease is lost, instead of restarting itself. Called once the process is asked to end, or when it
/// serves one run, which a restart would begin again.
pub(super) fn end_with_lease() {
    ENDS_WITH_LEASE.store(true, Ordering::SeqCst);
}

/// Handles a lost lease: another host may take over everything that was running here. The process executes itself with the same command
/// line, keeps the lock of its data folder, and joins the hosts anew. Its runs end as if it had been killed, since runners end with their sockets.
///
/// After a call of [`end_with_lease`] the process ends instead.
pub(super) fn start_again(why: &str, lock: Option<&Lock>) {
    STARTS_AGAIN.store(true, Ordering::SeqCst);
    if ENDS_WITH_LEASE.load(Ordering::SeqCst) {
        tracing::error!("this host has lost its lease on the journal: {why}; what it had going ends here");
        std::process::exit(WITHOUT_LEASE);
    }
    tracing::error!(
        "this host has lost its lease on the journal: {why}; what it had going ends here, and it joins anew"
    );
    let program = std::env::current_exe().map(without_deleted_suffix);
    let stdin = || lock.map_or(Ok(Stdio::null()), Lock::as_stdin);
    fail_point!(BeforeExec);
    let failed = match program.and_then(|program| Ok((program, stdin()?))) {
        Ok((program, stdin)) => {
            Command::new(program).args(std::env::args_os().skip(1)).env(LOST_SERVER, "1").stdin(stdin).exec()
        }
        Err(error) => error,
    };
    tracing::error!(error = %failed, "it could not join anew, and ends");
    std::process::abort();
}

/// Returns the path without the suffix ` (deleted)`, which Linux adds when the binary was replaced.
fn without_deleted_suffix(program: PathBuf) -> PathBuf {
    let kept = program.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    kept.unwrap_or(program)
}
