//! `run`: runs the service in the foreground. Creates the data folder if there is none.

use std::io::{self, Write as _};
use std::sync::Arc;

use super::args::{Color, RunArgs};
use super::output::Output;
use super::render::{self, View};
use super::{by_channel, fork, log};
use crate::app::{App, make_folders, make_home};
use crate::daemon::event_stream::ShowEvent;
use crate::daemon::lock::LockError;
use crate::daemon::service::{self, DaemonError, Start};
use crate::daemon::shutdown::EndConditions;
use crate::definition::DefinitionId;
use crate::journal::RunId;
use crate::refusal::Refusal;

/// Default log filter: our own messages, and warnings of libraries.
const DEFAULT_FILTER: &str = "warn,ollim_bot=info";

/// Runs the service until it is stopped.
///
/// # Errors
/// Fails if the service cannot start, or if it ends with an error.
pub(super) fn run(args: &RunArgs, color: Color, app: &App, view: &View) -> Result<(), Refusal> {
    let made = !app.home.root().exists();
    if made {
        make_home(&app.home, app.now(), app.zone()?)?;
    }
    log::start(DEFAULT_FILTER, color, true, app)?;
    if made {
        tracing::info!("made {} with samples", app.home.root().display());
    }
    let until = EndConditions { idle: args.until_idle, after: args.duration };
    serve(until, None, app, view.json.then(|| stream(view))).map(drop).inspect_err(log::failed)
}

/// Returns a callback that writes each event to stdout as one line of JSON.
fn stream(view: &View) -> ShowEvent {
    let view = view.clone();
    Arc::new(move |event| {
        let mut output = Output::default();
        render::Events::of_all(&view).write(event, &mut output);
        let mut stdout = io::stdout().lock();
        stdout.write_all(output.stdout.as_bytes())?;
        stdout.flush()
    })
}

/// Starts the service and waits until it ends.
pub(super) fn serve(
    until: EndConditions,
    only: Option<DefinitionId>,
    app: &App,
    events: Option<ShowEvent>,
) -> Result<Option<RunId>, Refusal> {
    // Report invalid settings before anything is created.
    app.config()?;
    make_folders(&app.home)?;
    let start = Start {
        app: app.clone(),
        until,
        only,
        execute: fork::execute,
        execute_words: by_channel::execute_words,
        events,
    };
    // The ambient capability for `wake` alarms must not reach child processes. A failure means that there was none.
    let _none = rustix::thread::clear_ambient_capability_set();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_keep_alive(service::THREAD_KEEP_ALIVE)
        .build()
        .map_err(|error| Refusal::environment(format!("cannot start: {error}")))?;
    let ended = runtime.block_on(service::run(start));
    // Do not wait: a thread may block on a write to a stopped terminal.
    runtime.shutdown_background();
    ended.map_err(Refusal::from)
}

impl From<DaemonError> for Refusal {
    fn from(error: DaemonError) -> Self {
        let words = error.to_string();
        let failed = Self::environment(words.clone());
        match error {
            DaemonError::Lock(LockError::Taken { pid, .. }) => Self::user(words)
                .hint(format!("`ollim-bot status` asks it how it is; `kill {pid}` ends it")),
            DaemonError::Lock(LockError::Original { pid, file, .. }) => Self::user(words)
                .hint(format!("end it first (`kill {pid}`): two bots on one folder would each fire every job"))
                .hint("or give this one a folder of its own, `--home DIR`, and copy routines/ and reminders/ there")
                .hint(format!("if that process is something else, remove {file}")),
            DaemonError::Lock(LockError::Lost { .. }) => failed
                .hint("state/ holds the journal: put the folder back if you have it elsewhere, then start the service again")
                .hint("without it the service starts with a new journal, which knows of no earlier run"),
            DaemonError::Fire(_) => Self::user(words),
            DaemonError::Settings(refusal) => refusal,
            // With its cause.
            DaemonError::Journal(error) => error.into(),
            _ => failed,
        }
    }
}
