//! Checks the running service and its control socket.

use std::io;
use std::os::unix::net::UnixStream;

use super::{Finding, agent};
use crate::agent::NOTIFY;
use crate::app::{App, ListenerState, ServiceStatus, Starter, service, status as app_status, unit};
use crate::config::ClientChoice;
use crate::search_path;

pub(super) fn start_anew() -> &'static str {
    match unit::is_systemd_there() {
        true => "start it anew: `ollim-bot service restart`, or end it and `ollim-bot run`",
        false => "start it anew: end it and `ollim-bot run`",
    }
}

/// Checks whether the service is running, and does what it should.
pub(super) fn service(app: &App) -> Vec<Finding> {
    if !app.home.root().is_dir() {
        return Vec::new();
    }
    let status = match service::status(app) {
        Err(refusal) => {
            let finding = Finding::wrong("service", format!("it cannot be asked: {refusal}"));
            let finding = refusal.hints.iter().fold(finding, |finding, hint| finding.step(hint.clone()));
            return vec![match refusal.hints[..] {
                [] => finding.step(start_anew()),
                _ => finding,
            }];
        }
        Ok(None) => {
            let start = match app.starter() {
                Starter::Person if unit::is_systemd_there() => {
                    "start it: `ollim-bot service install`, or here: `ollim-bot run`".to_owned()
                }
                starter => starter.hint("start it"),
            };
            let stopped = match app.other_hosts_up() {
                Some(others) => format!("it does not run here; what {others} may run fires there"),
                None => "it does not run, so nothing fires".to_owned(),
            };
            let stopped = Finding::wrong("service", stopped).step(start);
            let stale = socket_is_stale(app).then(|| {
                Finding::look("socket", "state/control.sock was left by a service that is gone")
                    .step("the next service replaces it; `ollim-bot doctor --fix` removes it now")
            });
            return std::iter::once(stopped).chain(stale).collect();
        }
        Ok(Some(status)) => status,
    };
    let mut found = vec![match status.ending {
        false => Finding::ok("service", format!("running (pid {})", status.pid)),
        true => Finding::wrong("service", format!("it is ending (pid {}): nothing starts any more", status.pid))
            .step(format!("once it has ended, {}", app.starter().hint("start it again"))),
    }];
    if status.paused.is_some() {
        found.push(
            Finding::look("service", "it is paused: nothing starts by itself")
                .step("let jobs start: `ollim-bot resume`"),
        );
    }
    if let Some(ListenerState::Failed(why)) = &status.page {
        found.push(
            Finding::wrong("page", format!("not served: {why}"))
                .step("end what listens there, or set another `web` in config.yaml and start the service again"),
        );
    }
    found.extend(what_waits(&status, app));
    found
}

/// Reports jobs that wait for the agent or for its login, and a service that goes on without an agent.
fn what_waits(status: &ServiceStatus, app: &App) -> Vec<Finding> {
    // The service may have been started in another environment.
    let of_service = agent::as_service(status.pid, app).unwrap_or_else(|| app.clone());
    let mut found = Vec::new();
    if status.waiting_for_login.is_some() {
        let login = agent::known_login(&of_service).ok().flatten();
        let step = login.map_or_else(|| "log in: `ollim-bot login`".to_owned(), |login| login.remedy());
        found.push(Finding::wrong("service", "jobs wait until the client is logged in").step(step));
    }
    let waiting = app_status::status(app).map_or(0, |all| all.need_agent.len());
    if status.waiting_for_agent.is_some() || waiting > 0 {
        let missing = status.client.missing.as_deref().unwrap_or("the client is not there; see `ollim-bot status`");
        let (why, step) = missing.split_once("; ").unwrap_or((missing, "see `ollim-bot status`"));
        let jobs = match waiting {
            0 => "jobs wait for the agent".to_owned(),
            1 => "1 job waits for the agent".to_owned(),
            jobs => format!("{jobs} jobs wait for the agent"),
        };
        found.push(Finding::wrong("service", format!("{jobs}: {why}")).step(step));
        return found;
    }
    let wants_agent = of_service.config().is_ok_and(|config| config.agent_client != ClientChoice::Notify);
    if wants_agent && status.client.name == NOTIFY {
        found.push(
            Finding::look("service", format!("it delivers jobs without an agent: {}", status.client.why))
                .step(format!("mend that, then {}", start_anew())),
        );
    }
    found
}

/// Checks whether something starts the service at boot.
pub(super) fn unit(app: &App) -> Vec<Finding> {
    if !app.home.root().is_dir() {
        return Vec::new();
    }
    let Some((status, path)) = unit::known(app) else {
        return vec![if unit::is_systemd_there() {
            Finding::look("unit", "none is installed: after a restart of the machine nothing starts the service")
                .step("`ollim-bot service install`")
        } else {
            Finding::ok(
                "unit",
                "no systemd runs on this machine: what starts its services has to start `ollim-bot run`",
            )
        }];
    };
    let again = "write it anew, where all is found: `ollim-bot service install`";
    let command = app.config().map(|config| config.claude_command.clone()).ok();
    let name = &status.unit;
    let mut found = Vec::new();
    if status.active == "failed" {
        found.push(Finding::wrong("unit", format!("{name} has failed")).step("see why: `ollim-bot service logs`"));
    }
    if !status.enabled {
        found.push(Finding::look("unit", format!("{name} is not started at boot")).step("`ollim-bot service install`"));
    }
    if let (Some(path), Some(command)) = (path, command)
        && app.find_program(&command).is_ok()
        && search_path::find(&command, &std::env::split_paths(&path).collect::<Vec<_>>(), &app.places().user_home)
            .is_err()
    {
        found.push(
            Finding::wrong("unit", format!("`{command}` is found here, and not in the PATH of {name}")).step(again),
        );
    }
    if status.lingers == Some(false) {
        found.push(
            Finding::look("unit", format!("{name} ends when you log out, and starts when you log in"))
                .step("have it run from boot on: `loginctl enable-linger`"),
        );
    }
    if found.is_empty() {
        found.push(Finding::ok("unit", format!("{name} is {}, and started at boot", status.active)));
    }
    found
}

/// Whether there is a control socket without a listener.
pub(super) fn socket_is_stale(app: &App) -> bool {
    let Ok((path, _folder)) = agent_sandbox::reachable(&app.home.socket()) else { return false };
    matches!(UnixStream::connect(path), Err(error) if error.kind() == io::ErrorKind::ConnectionRefused)
}
