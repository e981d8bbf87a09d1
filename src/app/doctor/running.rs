//! The running service, and the socket that it is asked by.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;

use super::Finding;
use crate::app::{App, service};

/// Whether it runs, and does what it should.
pub(super) fn service(app: &App) -> Vec<Finding> {
    if !app.home.root().is_dir() {
        return Vec::new();
    }
    let status = match service::status(app) {
        Err(refusal) => {
            let finding = Finding::wrong("service", format!("it cannot be asked: {refusal}"));
            let finding = refusal.hints.iter().fold(finding, |finding, hint| finding.step(hint.clone()));
            return vec![finding.step("start it anew: `ollim-bot service restart`, or end it and `ollim-bot run`")];
        }
        Ok(None) => {
            let stopped = Finding::wrong("service", "it does not run, so nothing fires")
                .step("start it: `ollim-bot service install`, or here: `ollim-bot run`");
            let stale = socket_is_stale(app).then(|| {
                Finding::look("socket", "state/control.sock was left by a service that is gone")
                    .step("the next service replaces it; `ollim-bot doctor --fix` removes it now")
            });
            return std::iter::once(stopped).chain(stale).collect();
        }
        Ok(Some(status)) => status,
    };
    let mut found = vec![Finding::ok("service", format!("running (pid {})", status.pid))];
    if status.paused.is_some() {
        found.push(Finding::look("service", "it is paused: nothing starts").step("let jobs start: `ollim-bot resume`"));
    }
    if status.waiting_for_login.is_some() {
        found.push(
            Finding::wrong("service", "jobs wait until the client is logged in")
                .step("log in: `claude` and then `/login`; the service notices by itself"),
        );
    }
    // It may have been started in another environment than this one.
    let wants_agent = app.config().is_ok_and(|config| config.agent_client != crate::config::ClientChoice::Notify);
    if wants_agent && status.client.name == "notify" {
        found.push(
            Finding::look("service", format!("it delivers jobs without an agent: {}", status.client.why))
                .step("mend that, then start it anew: `ollim-bot service restart`"),
        );
    }
    found
}

/// Whether there is a control socket that nobody listens at.
pub(super) fn socket_is_stale(app: &App) -> bool {
    let path = app.home.socket();
    // Through the folder's descriptor: a socket's path holds 108 bytes at most.
    let Ok(folder) = File::open(app.home.state()) else { return false };
    let Some(name) = path.file_name() else { return false };
    let short = std::path::Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
    matches!(UnixStream::connect(short), Err(error) if error.kind() == io::ErrorKind::ConnectionRefused)
}
