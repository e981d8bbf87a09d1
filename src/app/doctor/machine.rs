//! Checks the machine: its time zone and clock, the kernel's sandbox, and ways around that.

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use chrono::TimeDelta;
use rustix::process::{Pid, Signal};

use super::Finding;
use crate::agent::sockets;
use crate::app::{App, times};
use crate::config::Origin;
use crate::run::kernel_support::kernel_support;

/// Tolerated difference between the clocks of a machine and of a program that writes beside it.
const SLACK: TimeDelta = TimeDelta::minutes(2);

/// Checks the settings, and shows the zone of times without one.
pub(super) fn zone(app: &App) -> Vec<Finding> {
    let config = match app.config() {
        Ok(config) => config,
        Err(refusal) => {
            let finding = Finding::wrong("settings", refusal.to_string());
            let finding = refusal.hints.iter().fold(finding, |finding, hint| finding.step(hint.clone()));
            let rest = "the zone, the client, the login, the channels and MCP servers were not looked at";
            return vec![finding, Finding::look("the rest", rest).step("mend the settings, then `ollim-bot doctor`")];
        }
    };
    let zone = config.timezone.name();
    let found = match (config.origin("timezone"), app.unknown_zone()) {
        (Origin::Default, None) => Finding::look("zone", format!("the machine names none, so times are in {zone}"))
            .step("name yours in config.yaml: `timezone: Europe/Vienna`"),
        (_, Some(name)) => Finding::look("zone", format!("TZ={name} is no zone, so times are in {zone}"))
            .step("set TZ to a name such as Europe/Vienna, or `timezone` in config.yaml"),
        (origin, _) => Finding::ok("zone", format!("{zone} ({origin})")),
    };
    vec![found]
}

/// Checks whether the clock has gone back to before the last record.
pub(super) fn clock(app: &App) -> Vec<Finding> {
    let now = app.now();
    let shown = times::local(now, now, app.zone_of_records());
    let last = app.read_journal().ok().and_then(|journal| journal.last_claim().ok().flatten());
    vec![match last {
        Some(last) if last > now + SLACK => {
            let last = times::local(last, now, app.zone_of_records());
            Finding::wrong("clock", format!("it shows {shown}, and something has run at {last} already"))
                .step("set it: `timedatectl set-ntp true`")
        }
        _ if is_synchronized(app) == Some(false) => {
            Finding::look("clock", format!("it shows {shown}, and nothing keeps it right"))
                .step("have it set from the network: `timedatectl set-ntp true`")
        }
        _ => Finding::ok("clock", shown),
    }]
}

/// Time in which systemd has to say whether it sets the clock.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Returns whether the clock is set from the network; `None` if systemd does not know, or does not answer.
fn is_synchronized(app: &App) -> Option<bool> {
    let mut command = Command::new("timedatectl");
    // A tool of systemd would report its own failure to the supervisor of the service, and wait until that reads it.
    command.env_clear().envs(app.env.texts()).env_remove("NOTIFY_SOCKET");
    command.args(["show", "--property=NTPSynchronized", "--value"]);
    let answer = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let process = i32::try_from(answer.id()).ok().and_then(Pid::from_raw)?;
    let (send, receive) = mpsc::channel();
    // Ends with the process. Nobody receives an answer that comes too late.
    std::thread::spawn(move || send.send(answer.wait_with_output()));
    let Ok(output) = receive.recv_timeout(ANSWERS_WITHIN) else {
        let _ = rustix::process::kill_process(process, Signal::KILL);
        return None;
    };
    match output.ok()?.stdout.trim_ascii() {
        b"yes" => Some(true),
        b"no" => Some(false),
        _ => None,
    }
}

/// Checks the sandbox of jobs by trying it.
pub(super) fn sandbox(app: &App) -> Vec<Finding> {
    let support = kernel_support();
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let detail = format!("{} (Linux {release})", support.words);
    let required = app.config().is_ok_and(|config| config.require_sandbox);
    vec![match (support.enforced, support.whole, required) {
        (true, true, _) => Finding::ok("sandbox", detail),
        (true, false, true) => Finding::wrong("sandbox", detail)
            .step("`require_sandbox` is set, so no background job starts: use Linux 6.12 or newer, or unset it"),
        (true, false, false) => Finding::look("sandbox", detail).step("Linux 6.12 or newer holds all of it"),
        (false, ..) => Finding::wrong("sandbox", detail)
            .step("jobs with Bash rules are refused: use Linux 5.13 or newer with Landlock on (`lsm=landlock,…`)")
            .step("or let them run unheld: `sandbox: none` in config.yaml"),
    }]
}

/// Reports sockets of other programs that a job could reach.
pub(super) fn sockets(app: &App) -> Vec<Finding> {
    let found = sockets::answering(|name| app.env.text(name), &app.places().user_home);
    if found.is_empty() {
        return vec![Finding::ok("sockets", "none that is known to lead around the sandbox answers")];
    }
    let of = |socket: sockets::PathSocket| {
        // The machine, or the person's login, needs these. One of them may run this service.
        let is_needed = ["systemd", "D-Bus"].iter().any(|name| socket.what.starts_with(name));
        let way_out = if is_needed {
            "run ollim-bot as a user of its own"
        } else {
            "stop that program, or run ollim-bot as another user"
        };
        Finding::look("sockets", format!("{} answers at {}", socket.what, socket.path.display()))
            .step(format!("a job that connects there acts outside of its sandbox: {way_out}"))
    };
    found.into_iter().map(of).collect()
}
