//! Warnings about what would keep a promised time from being met, such as a service that is not running.

use super::args::Color;
use super::output::{HINT, Output, WARN, paint};
use crate::app::times::resets_in;
use crate::app::{App, Command, Outcome, ServiceReply, ServiceStatus, UnitAct, UnitCommand};
use crate::channel::terminal::plain;
use crate::definition::DefinitionId;
use crate::journal::{RunRecord, RunState};
use crate::refusal::Refusal;

/// Whether the outcome promises that something will fire.
pub(super) fn will_fire(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Scheduled(recorded) => recorded.job.next.is_some(),
        Outcome::Upcoming(upcoming) => !upcoming.occurrences.is_empty(),
        Outcome::Status(status) => status.service.is_none(),
        _ => false,
    }
}

/// Warns that `TZ` is invalid or not the service's, if the outcome shows times in a zone that does not hold for it.
pub(super) fn warn_of_zone(outcome: &Outcome, app: &App, output: &mut Output) {
    let shows_times =
        matches!(outcome, Outcome::Scheduled(_) | Outcome::Upcoming(_) | Outcome::Status(_) | Outcome::Settings(_));
    if let Some(name) = app.unknown_zone().filter(|_| shows_times) {
        let zone = app.zone_of_records();
        output.note(format!("{}: TZ={} is no time zone, so times are in {zone}", paint(WARN, "warning"), plain(name)));
        let hint = "set TZ to a name such as Europe/Vienna, or `timezone` in config.yaml";
        output.note(format!("{}: {hint}", paint(HINT, "hint")));
    }
    if let Outcome::Status(status) = outcome
        && let Some(service) = &status.service
    {
        note_zone_of_service(service, app, output);
    }
}

/// Warns that a job that was added delivers its text for want of an agent.
pub(super) fn warn_of_text(outcome: &Outcome, app: &App, output: &mut Output) {
    if let Outcome::Scheduled(recorded) = outcome
        && app.lacks_agent(&recorded.job.definition)
    {
        let what = "there is no agent, so you get the text of this job as it is";
        output.note(format!("{}: {what}", paint(WARN, "warning")));
        output.note(format!("{}: see what is missing: `ollim-bot doctor`", paint(HINT, "hint")));
        output.note(format!("{}: or have it wait for an agent: `--client claude`", paint(HINT, "hint")));
    }
}

fn note_zone_of_service(service: &ServiceStatus, app: &App, output: &mut Output) {
    let Some(zone) = app.zone_of_service(service) else { return };
    let here = app.zone_of_records();
    let what = format!("the service runs in {zone}, where jobs fire, and these times are in {here}");
    output.note(format!("{}: {}", paint(WARN, "warning"), plain(&what)));
    output.note(format!("{}: set `timezone` in config.yaml; it holds for both", paint(HINT, "hint")));
}

/// Warns that runs shown as running were cut off, if no service is running. Runs of other hosts are excluded, since their state is unknown
/// here.
pub(super) fn warn_of_cut_off(outcome: &Outcome, app: &App, output: &mut Output) {
    let is_running = |run: &RunRecord| run.outcome == RunState::Running && run.host.is_none();
    let shows_it = match outcome {
        Outcome::Runs { runs, .. } => runs.iter().any(is_running),
        Outcome::Run(details) => is_running(&details.run),
        _ => false,
    };
    if shows_it && matches!(app.service_status(), Ok(None)) {
        let what = "the service is not running: what is shown as running was cut off when it ended";
        output.note(format!("{}: {what}", paint(WARN, "warning")));
        let start = app.starter().hint("start it");
        output.note(format!("{}: {start}; it says what becomes of that", paint(HINT, "hint")));
    }
}

/// Returns the job that will fire, if the outcome promises that of a single job.
pub(super) fn promised(outcome: &Outcome) -> Option<DefinitionId> {
    match outcome {
        Outcome::Scheduled(recorded) => Some(recorded.job.definition.id.clone()),
        _ => None,
    }
}

/// Warns that a job which was fired will wait for an agent, and why.
pub(super) fn warn_of_agent(fired: &Outcome, app: &App, output: &mut Output) {
    if let Outcome::Service(ServiceReply::Fired { id, .. }) = fired
        && let Ok(Some(service)) = app.service_status()
    {
        note_agent(id, &service, app, output);
    }
}

/// Returns whether the job will wait for an agent, and says so.
fn note_agent(id: &DefinitionId, service: &ServiceStatus, app: &App, output: &mut Output) -> bool {
    // An unreadable status is reported by the command that shows it.
    let Some(why) = app.keeps_waiting(id, service).ok().flatten() else { return false };
    output.note(format!("{}: it waits for an agent: {}", paint(WARN, "warning"), plain(&why)));
    true
}

/// Whether the promised runs may wait for a login.
pub(super) fn needs_login(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Scheduled(recorded) if recorded.job.definition.is_without_agent())
}

/// Tells the person how many runs a stopping service waits for, and how long at most, before the wait begins.
///
/// # Errors
/// Fails if the output cannot be written.
pub(super) fn show_wait(command: &Command, app: &App, color: Color, output: &mut Output) -> Result<(), Refusal> {
    let Command::Unit(UnitCommand { act: UnitAct::Stop | UnitAct::Restart | UnitAct::Uninstall, .. }) = command else {
        return Ok(());
    };
    let (Ok(Outcome::Status(status)), Ok(config)) = (app.execute(Command::Status), app.config()) else { return Ok(()) };
    let running = status.running.iter().filter(|run| run.outcome == RunState::Running).count();
    let runs = match running {
        0 => return Ok(()),
        1 => "1 run is going and has".to_owned(),
        runs => format!("{runs} runs are going and have"),
    };
    let grace = humantime::format_duration(config.shutdown_grace);
    output.note(format!("{runs} {grace} to finish (`shutdown_grace`); the service ends when that is done"));
    output.print_now(color).map(drop)
}

/// Warns about the reason why nothing fires, or not the promised job, with the command that fixes it.
pub(super) fn warn(app: &App, needs_login: bool, promised: Option<&DefinitionId>, output: &mut Output) {
    let (until, start, stopped): (String, String, String);
    let service = app.service_status();
    if let Ok(Some(service)) = &service {
        note_zone_of_service(service, app, output);
        if !service.ending && promised.is_some_and(|id| note_agent(id, service, app, output)) {
            return;
        }
    }
    let (what, hint) = match service {
        Ok(None) => {
            start = app.starter().hint("start it");
            if let Some(moved) = app.journal_moved() {
                output.note(format!("{}: {}", paint(WARN, "warning"), plain(&moved.to_string())));
                return;
            }
            stopped = match app.other_hosts_up() {
                Some(others) => format!("the service of this host is not running; what {others} may run fires there"),
                None => "the service is not running, so nothing fires".to_owned(),
            };
            (&*stopped, &*start)
        }
        Ok(Some(ServiceStatus { ending: true, .. })) => {
            start = app.starter().hint("start it again");
            ("the service is ending, so nothing fires", &*start)
        }
        Ok(Some(ServiceStatus { paused: Some(_), .. })) => {
            ("the service is paused, so nothing fires by itself", "end the pause: `ollim-bot resume`")
        }
        Ok(Some(status)) if needs_login && status.waits_for_agent() => {
            ("jobs wait for the agent client", "see why: `ollim-bot status`")
        }
        // Another line reports unreadable settings or an unreadable journal.
        Ok(Some(_)) => match app.spent_caps().unwrap_or_default().first() {
            Some(cap) if needs_login => {
                until =
                    format!("{}, so no job that costs begins; it {}", cap.is_spent_words(), resets_in(cap, app.now()));
                (&*until, "raise it for this time: `ollim-bot budget --help`")
            }
            _ => return,
        },
        Err(refusal) => {
            output.note(format!("{}: {}", paint(WARN, "warning"), plain(&refusal.to_string())));
            return;
        }
    };
    output.note(format!("{}: {what}", paint(WARN, "warning")));
    output.note(format!("{}: {}", paint(HINT, "hint"), plain(hint)));
}
