//! Checks the agent client: its path, version and login.

use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use super::{Finding, Health};
use crate::agent::claude::login::{Login, LoginSources, find_login};
use crate::agent::claude::{self, versions};
use crate::app::{App, Environment, service};
use crate::config::{ClientChoice, secrets};

const INSTALL: &str = "install it: `npm install -g @anthropic-ai/claude-code`";

/// Checks the client and its login as the running service has them, or as this shell has them if none runs.
pub(super) fn agent_that_counts(app: &App) -> Vec<Finding> {
    let Ok(Some(status)) = service::status(app) else { return agent(app) };
    let Some(of_service) = as_service(status.pid, app) else {
        let unread = format!(
            "the environment of the service (pid {}) cannot be read, so what follows is of this shell",
            status.pid
        );
        let unread = Finding::look("client", unread).step("run `ollim-bot doctor` as the user whose service it is");
        return std::iter::once(unread).chain(agent(app)).collect();
    };
    let mut found = checked(&of_service, " of the service");
    found.extend(difference(app, &of_service));
    found
}

/// Returns a copy of the app with the environment of the service; `None` if that cannot be read.
pub(super) fn as_service(pid: u32, app: &App) -> Option<App> {
    if pid == std::process::id() {
        return Some(app.clone());
    }
    // In another namespace this is the number of another process.
    let name = |pid: &str| fs::read(format!("/proc/{pid}/comm")).ok();
    if name(&pid.to_string())? != name("self")? {
        return None;
    }
    let variables = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let variables = variables.split(|byte| *byte == 0).filter_map(|variable| {
        let at = variable.iter().position(|byte| *byte == b'=')?;
        let name = String::from_utf8(variable[..at].to_vec()).ok()?;
        Some((name, std::ffi::OsString::from_vec(variable[at + 1..].to_vec())))
    });
    Some(app.with_env(Environment::of(variables)))
}

/// Reports that this shell has another client than the service, or a login that the service lacks.
fn difference(here: &App, of_service: &App) -> Option<Finding> {
    let (Ok(config), Ok(of_services)) = (here.config(), of_service.config()) else { return None };
    if config.agent_client != of_services.agent_client {
        let (here, there) = (name_of(config.agent_client), name_of(of_services.agent_client));
        let detail =
            format!("this shell differs from the service: `agent_client` is `{here}` here and `{there}` there");
        return Some(
            Finding::look("client", detail).step("set it in config.yaml alone, and take OLLIM_AGENT_CLIENT out"),
        );
    }
    if config.agent_client == ClientChoice::Notify {
        return None;
    }
    let anew = super::running::start_anew();
    if let (Ok(client), Err(_)) =
        (here.find_program(&config.claude_command), of_service.find_program(&of_services.claude_command))
    {
        let detail = format!("this shell differs from the service: it finds {}", client.display());
        let step = format!("say where it is with `claude_command` in config.yaml, and {anew}");
        return Some(Finding::look("client", detail).step(step));
    }
    let login = known_login(here).ok().flatten()?;
    if !matches!(known_login(of_service), Ok(None)) {
        return None;
    }
    let detail = format!("this shell differs from the service: it has one from {}", login.source);
    let step = format!("put that line into .env of the data folder, `chmod 600` it, and {anew}");
    Some(Finding::look("login", detail).step(step))
}

fn name_of(choice: ClientChoice) -> &'static str {
    match choice {
        ClientChoice::Auto => "auto",
        ClientChoice::Claude => "claude",
        ClientChoice::Notify => "notify",
    }
}

/// Checks the client, its version and its login.
pub(in super::super) fn agent(app: &App) -> Vec<Finding> {
    checked(app, "")
}

/// Checks the client and its login. `whose` follows the word `environment`.
fn checked(app: &App, whose: &str) -> Vec<Finding> {
    // Invalid settings are reported elsewhere.
    let Ok(config) = app.config() else { return Vec::new() };
    if config.agent_client == ClientChoice::Notify {
        return vec![Finding::ok(
            "client",
            "`agent_client: notify`: jobs are delivered as they are written, without a model",
        )];
    }
    // Without a client, `auto` still delivers, while `claude` does nothing.
    let missing = if config.agent_client == ClientChoice::Claude { Health::Wrong } else { Health::Look };
    let path = app.env.text("PATH").unwrap_or_default();
    let command = &config.claude_command;
    let mut found = Vec::new();
    match app.find_program(command) {
        Err(error) => found.push(
            Finding::of("client", missing, error.to_string())
                .step(INSTALL)
                .step("or say where it is: `claude_command: /path/to/claude` in config.yaml"),
        ),
        Ok(command) => found.push(version(&command, path)),
    }
    found.push(login(app, missing, whose));
    found
}

fn version(command: &Path, path: &str) -> Finding {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let version = match runtime.map(|runtime| runtime.block_on(claude::version(command, path))) {
        Ok(Ok(version)) => version,
        Ok(Err(failure)) => {
            let first = failure.message.lines().next().unwrap_or_default().to_owned();
            return Finding::wrong("client", first).step(INSTALL);
        }
        Err(error) => {
            return Finding::wrong("client", format!("it cannot be asked for its version: {error}")).step("try again");
        }
    };
    let at = command.display();
    match versions::untested(&version) {
        None => {
            Finding::ok("client", format!("claude {version} at {at}; tested with {}", versions::TESTED.join(" and ")))
        }
        Some(untested) => Finding::look("client", format!("{untested} ({at})"))
            .step("runs go on; if one fails oddly, install a tested version"),
    }
}

/// Whether there is a client with a login.
pub(in super::super) fn has_agent(app: &App) -> bool {
    app.config().is_ok_and(|config| {
        config.agent_client != ClientChoice::Notify && app.find_program(&config.claude_command).is_ok()
    }) && matches!(known_login(app), Ok(Some(_)))
}

pub(super) fn known_login(app: &App) -> Result<Option<Login>, secrets::SecretsError> {
    let environment = app.env.texts();
    let variables = secrets::read(&app.home, &environment)?;
    Ok(find_login(&LoginSources::of(variables, &environment, app.env.path("HOME")), app.now()))
}

fn login(app: &App, missing: Health, whose: &str) -> Finding {
    let Ok(login) = known_login(app) else {
        return Finding::wrong("login", "it cannot be looked for, since .env cannot be used").step("mend .env first");
    };
    match login {
        Some(login) => {
            let whose = if login.source.ends_with("the environment") { whose } else { "" };
            Finding::ok("login", format!("from {}{whose}; `doctor` makes no call with it", login.source))
        }
        None => Finding::of("login", missing, "there is none, or it has ended")
            .step("log in: `ollim-bot login` while the service runs, or `/login` on a channel")
            .step("or for a year: `claude setup-token`, and CLAUDE_CODE_OAUTH_TOKEN=… in .env"),
    }
}
