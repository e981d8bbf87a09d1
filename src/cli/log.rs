//! The program's log: to the terminal as a person reads it, and of the service to `state/log/` as `logs` reads it.

use std::fs::DirBuilder;
use std::io::IsTerminal as _;
use std::os::unix::fs::DirBuilderExt as _;

use chrono::SecondsFormat;
use chrono_tz::Tz;
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;

use super::args::Color;
use crate::app::App;
use crate::clock::Clock;
use crate::refusal::Refusal;

/// What is logged: a filter in the syntax of `tracing`.
const LOG: &str = "OLLIM_LOG";

/// Sends the log to standard error, and to files where `kept` says so: what `OLLIM_LOG` says, else `usual`.
pub(super) fn start(usual: &str, color: Color, kept: bool, app: &App) -> Result<(), Refusal> {
    let filter = app.env.text(LOG).unwrap_or(usual);
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Refusal::user(format!("{LOG} is no log filter: {error}")).hint("write `debug`, or `ollim_bot=debug`")
    })?;
    let ansi = match color {
        Color::Auto => std::io::stderr().is_terminal(),
        Color::Always => true,
        Color::Never => false,
    };
    let zone = app.zone_of_records();
    let terminal = tracing_subscriber::fmt::layer()
        .with_target(false)
        .with_ansi(ansi)
        .with_timer(Local(zone, app.clock.clone()))
        .with_writer(std::io::stderr);
    let (files, failure) = match kept.then(|| files(app)).transpose() {
        Ok(files) => (files, None),
        Err(failure) => (None, Some(failure)),
    };
    let files = files.map(|files| {
        tracing_subscriber::fmt::layer()
            .json()
            .flatten_event(true)
            .with_target(false)
            .with_timer(Exact(zone, app.clock.clone()))
            .with_writer(files)
    });
    let subscriber = tracing_subscriber::registry().with(filter).with(terminal).with(files);
    // In a test several commands may run in one process; the first one's log counts.
    let _first = tracing::subscriber::set_global_default(subscriber);
    if let Some(failure) = failure {
        tracing::warn!("`ollim-bot logs` will show nothing of what follows: {failure}");
    }
    Ok(())
}

/// A file a day. Old ones are removed by the service's maintenance.
fn files(app: &App) -> Result<RollingFileAppender, String> {
    let folder = app.home.log();
    let failed = |error: &dyn std::fmt::Display| format!("no log can be kept in {}: {error}", folder.display());
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|error| failed(&error))?;
    let files =
        RollingFileAppender::builder().rotation(Rotation::DAILY).filename_prefix("service").filename_suffix("jsonl");
    files.build(&folder).map_err(|error| failed(&error))
}

/// The weekday and the time, as messages on the console have it.
struct Local(Tz, Clock);

impl FormatTime for Local {
    fn format_time(&self, out: &mut Writer<'_>) -> std::fmt::Result {
        write!(out, "{}", self.1.now().with_timezone(&self.0).format("%a %H:%M:%S"))
    }
}

/// RFC 3339.
struct Exact(Tz, Clock);

impl FormatTime for Exact {
    fn format_time(&self, out: &mut Writer<'_>) -> std::fmt::Result {
        out.write_str(&self.1.now().with_timezone(&self.0).to_rfc3339_opts(SecondsFormat::Millis, false))
    }
}
