//! Checks the agent client: its path, version and login.

use std::path::Path;

use super::{Finding, Health};
use crate::agent::claude::login::{Login, LoginSources, find_login};
use crate::agent::claude::{self, versions};
use crate::app::App;
use crate::config::{ClientChoice, secrets};

const INSTALL: &str = "install it: `npm install -g @anthropic-ai/claude-code`";

/// Checks the client, its version and its login.
pub(in super::super) fn agent(app: &App) -> Vec<Finding> {
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
    found.push(login(app, missing));
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

fn login(app: &App, missing: Health) -> Finding {
    let Ok(login) = known_login(app) else {
        return Finding::wrong("login", "it cannot be looked for, since .env cannot be used").step("mend .env first");
    };
    match login {
        Some(login) => Finding::ok("login", format!("from {}; no call has tried it here", login.source)),
        None => Finding::of("login", missing, "there is none, or it has ended")
            .step("log in: `ollim-bot login` while the service runs, or `/login` on a channel")
            .step("or for a year: `claude setup-token`, and CLAUDE_CODE_OAUTH_TOKEN=… in .env"),
    }
}
