//! Logging: readable text on the terminal and, for the service, JSON files in `state/log/`, which `logs` reads.

use std::fs::DirBuilder;
use std::io::IsTerminal as _;
use std::os::unix::fs::DirBuilderExt as _;

use chrono::SecondsFormat;
use chrono_tz::Tz;
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::args::Color;
use crate::app::App;
use crate::clock::Clock;
use crate::refusal::Refusal;

/// Environment variable with the log filter, in the syntax of `tracing`.
const LOG: &str = "OLLIM_LOG";

/// The target of events that stderr shows in another form.
const FILES_ONLY: &str = "ollim_bot::files_only";

/// Writes why `run` failed to the files. Stderr shows it as every error of a command.
pub(super) fn failed(refusal: &Refusal) {
    tracing::error!(target: FILES_ONLY, "`ollim-bot run` failed: {refusal}");
}

/// Writes panics to the files as well.
fn keep_panics() {
    let show = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!(target: FILES_ONLY, "{panic}");
        show(panic);
    }));
}

/// Starts the log on stderr and, if `kept`, in files. The filter is `OLLIM_LOG`, or else `usual`.
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
        .with_timer(LocalTime(zone, app.clock.clone()))
        .with_writer(std::io::stderr)
        .with_filter(filter_fn(|metadata| metadata.target() != FILES_ONLY));
    let (files, failure) = match kept.then(|| files(app)).transpose() {
        Ok(files) => (files, None),
        Err(failure) => (None, Some(failure)),
    };
    let files = files.map(|files| {
        tracing_subscriber::fmt::layer()
            .json()
            .flatten_event(true)
            .with_target(false)
            .with_timer(Rfc3339Time(zone, app.clock.clone()))
            .with_writer(files)
    });
    let subscriber = tracing_subscriber::registry().with(filter).with(terminal).with(files);
    // In a test several commands may run in one process. The first log is kept.
    let is_first = tracing::subscriber::set_global_default(subscriber).is_ok();
    if kept && is_first {
        keep_panics();
    }
    if let Some(failure) = failure {
        tracing::warn!("`ollim-bot logs` will show nothing of what follows: {failure}");
    }
    Ok(())
}

/// Creates the appender, with one file a day. The service's maintenance removes old files.
fn files(app: &App) -> Result<RollingFileAppender, String> {
    let folder = app.home.log();
    let failed = |error: &dyn std::fmt::Display| format!("no log can be kept in {}: {error}", folder.display());
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|error| failed(&error))?;
    let files =
        RollingFileAppender::builder().rotation(Rotation::DAILY).filename_prefix("service").filename_suffix("jsonl");
    files.build(&folder).map_err(|error| failed(&error))
}

/// Formats the weekday and the time, like messages on the console.
struct LocalTime(Tz, Clock);

impl FormatTime for LocalTime {
    fn format_time(&self, out: &mut Writer<'_>) -> std::fmt::Result {
        write!(out, "{}", self.1.now().with_timezone(&self.0).format("%a %H:%M:%S"))
    }
}

/// Formats times as RFC 3339.
struct Rfc3339Time(Tz, Clock);

impl FormatTime for Rfc3339Time {
    fn format_time(&self, out: &mut Writer<'_>) -> std::fmt::Result {
        out.write_str(&self.1.now().with_timezone(&self.0).to_rfc3339_opts(SecondsFormat::Millis, false))
    }
}
