//! Problems of webhooks, and the deliveries that they refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::TimeDelta;

use super::{App, Caller, runs};
use crate::config::secrets;
use crate::definition::{Definition, DefinitionId, Problem, Severity};
use crate::journal::RefusedDeliveries;
use crate::refusal::Refusal;

/// How far back refusals are counted.
const LATELY: TimeDelta = TimeDelta::hours(24);

/// Returns the problems of webhooks.
pub(super) fn problems(definitions: &BTreeMap<DefinitionId, Arc<Definition>>, app: &App) -> Vec<Problem> {
    let hooks: Vec<_> = definitions.values().filter(|one| one.enabled && one.hook().is_some()).collect();
    if hooks.is_empty() {
        return Vec::new();
    }
    // Problems of `.env` are reported elsewhere.
    let secrets = secrets::read(&app.home, &app.env.texts()).unwrap_or_default();
    let listens = app.config().is_ok_and(|config| config.webhooks.is_some());
    let problem = |definition: &Arc<Definition>| {
        let name = &definition.hook()?.secret_env;
        let problem = |severity, message: String, hint: &str| {
            Some(Problem::of_field(definition, "secret_env", severity, message, hint))
        };
        match secrets.get(name) {
            None => problem(
                Severity::Error,
                format!("there is no `{name}`, so this webhook takes nothing"),
                &format!("write `{name}=…` into .env: the secret that its sender has, too"),
            ),
            Some(secret) if !secrets::may_be_shared(secret) => problem(
                Severity::Error,
                format!(
                    "`{name}` is shorter than {} characters, so this webhook takes nothing",
                    secrets::SHORTEST_SHARED
                ),
                "choose a longer one: `openssl rand -hex 32` prints one",
            ),
            Some(_) if !listens => problem(
                Severity::Warning,
                "nothing is delivered: the service does not listen".to_owned(),
                "set it in config.yaml, and start the service again: `webhooks: 127.0.0.1:8787`",
            ),
            Some(_) => None,
        }
    };
    hooks.into_iter().filter_map(problem).collect()
}

/// Returns the deliveries refused in the last 24 hours, by webhook. A run gets none, since strangers may have written them.
pub(super) fn refused(app: &App) -> Result<Vec<RefusedDeliveries>, Refusal> {
    match app.caller {
        Caller::Person => Ok(runs::open(app)?.refused_deliveries(app.now() - LATELY)?),
        Caller::Run(_) => Ok(Vec::new()),
    }
}
