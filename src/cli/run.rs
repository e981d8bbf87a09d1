//! `run`: the service in the foreground. Makes the data folder where there is none.

use std::io::IsTerminal as _;
use std::sync::Arc;

use tracing_subscriber::EnvFilter;

use super::args::{Color, RunArgs};
use super::context::{Context, InForce};
use super::error::CliError;
use super::output::Output;
use super::{fork, init};
use crate::daemon::delivery;
use crate::daemon::ending::Until;
use crate::daemon::lock::LockError;
use crate::daemon::service::{self, DaemonError, Start};
use crate::daemon::settings::{ReadSettings, Settings};
use crate::daemon::verbs::Commands;
use crate::daemon::wire::Reply;
use crate::definition::DefinitionId;
use crate::journal::RunId;
use crate::run::tokens::RunAuthority;

/// What is logged: a filter in the syntax of `tracing`.
const LOG: &str = "OLLIM_LOG";
/// Our own words, and what libraries warn of.
const USUAL: &str = "warn,ollim_bot=info";

/// Runs until it is told to end.
///
/// # Errors
/// When the service cannot start, or ends by itself.
pub fn run(args: &RunArgs, color: Color, context: &Context, output: &mut Output) -> Result<(), CliError> {
    log(USUAL, color, context)?;
    let fresh = !context.home.root().exists();
    if fresh {
        init::make(&context.home, context.now(), context.zone()?)?;
        tracing::info!("made {} with samples", context.home.root().display());
    }
    let until = Until { idle: args.until_idle, after: args.duration };
    serve(until, None, context)?;
    output.exit = 0;
    Ok(())
}

/// Starts the service, and waits for its end.
pub(super) fn serve(until: Until, only: Option<DefinitionId>, context: &Context) -> Result<Option<RunId>, CliError> {
    let settings = settings(context)?;
    let in_force = InForce::new(context.clone());
    init::folders(&context.home)?;
    let zone = in_force.clone();
    let start = Start {
        home: context.home.clone(),
        env: context.env.texts(),
        settings,
        rereads: Arc::new(in_force.clone()),
        clock: context.clock.clone(),
        until,
        only,
        commands: Arc::new(ForForks(in_force)),
        show: delivery::console(move || zone.context().zone_of_records()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::environment(format!("cannot start: {error}")))?;
    let ended = runtime.block_on(service::run(start));
    // A terminal that is stopped may hold a thread that writes to it: it is not waited for.
    runtime.shutdown_background();
    ended.map_err(CliError::from)
}

fn settings(context: &Context) -> Result<Settings, CliError> {
    Ok(Settings { config: context.config()?, defaults: context.defaults()? })
}

impl ReadSettings for InForce {
    fn read(&self) -> Result<Settings, String> {
        let fresh = self.context().anew();
        let wrong = |error: CliError| {
            let hints = error.hints().iter().map(|hint| format!("\nhint: {hint}"));
            std::iter::once(error.to_string()).chain(hints).collect::<String>()
        };
        let settings = settings(&fresh).map_err(wrong)?;
        self.replace(fresh);
        Ok(settings)
    }
}

struct ForForks(InForce);

impl Commands for ForForks {
    fn execute(&self, run: Arc<RunAuthority>, argv: Vec<String>) -> Reply {
        fork::serve(run, argv, &self.0.context())
    }
}

/// Sends the log to standard error: what `OLLIM_LOG` says, else `usual`.
pub(super) fn log(usual: &str, color: Color, context: &Context) -> Result<(), CliError> {
    let filter = context.env.text(LOG).unwrap_or(usual);
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        CliError::user(format!("{LOG} is no log filter: {error}")).hint("write `debug`, or `ollim_bot=debug`")
    })?;
    let ansi = match color {
        Color::Auto => std::io::stderr().is_terminal(),
        Color::Always => true,
        Color::Never => false,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(ansi)
        .with_writer(std::io::stderr)
        .finish();
    // In a test several commands may run in one process; the first one's log counts.
    let _first = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

impl From<DaemonError> for CliError {
    fn from(error: DaemonError) -> Self {
        let failed = Self::environment(error.to_string());
        match error {
            DaemonError::Lock(LockError::Taken { pid, .. }) => {
                failed.hint(format!("`ollim-bot status` asks it how it is; `kill {pid}` ends it"))
            }
            DaemonError::Lock(LockError::Original { pid, file, .. }) => failed
                .hint(format!("end it first (`kill {pid}`): two bots on one folder would each fire every job"))
                .hint("or give this one a folder of its own, `--home DIR`, and copy routines/ and reminders/ there")
                .hint(format!("if that process is something else, remove {file}")),
            DaemonError::Lock(LockError::Lost { .. }) => failed
                .hint("state/ holds the journal: put the folder back if you have it elsewhere, then start the service again")
                .hint("without it the service starts with a new journal, which knows of no earlier run"),
            DaemonError::Fire(_) => Self::user(error.to_string()),
            _ => failed,
        }
    }
}
