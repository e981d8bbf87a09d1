//! The agent clients that execute runs, and the control groups of their processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent_sandbox::cgroup::Delegated;

use super::opened::Opened;
use super::{DaemonError, failed};
use crate::agent::claude::IdleClient;
use crate::agent::claude::options::ClientEnvironment;
use crate::app::Sandbox;
use crate::daemon::client::{self, Chosen, Wish};
use crate::program::Surroundings;
use crate::run::client_environment;
use crate::run::kernel_support::kernel_support;

/// The means of execution, found at start and the same for all runs.
pub(super) struct Execution {
    /// Folders in which jobs' programs are searched.
    pub(super) path: Vec<PathBuf>,
    /// The binary of the sandbox's stages.
    pub(super) shell_binary: PathBuf,
    /// The person's home folder.
    pub(super) user_home: PathBuf,
    /// The source of the gates' environment.
    pub(super) client_environment: ClientEnvironment,
    /// The control groups of runs, or `None` if none is delegated to the service.
    pub(super) groups: Option<Delegated>,
    /// The status of the sandbox.
    pub(super) sandbox: Sandbox,
    /// The main session's client, while it waits between two turns.
    pub(super) idle_client: IdleClient,
    pub(super) chosen: Chosen,
}

impl Execution {
    pub(super) async fn choose(opened: &Opened) -> Result<Self, DaemonError> {
        let Opened { config, home, env, .. } = opened;
        let own_binary = std::env::current_exe().map_err(failed("find our own binary"))?;
        let groups = Delegated::take();
        let sandbox = sandbox(&groups);
        let held = groups.as_ref().is_ok_and(|groups| groups.controllers().iter().any(|name| name == "cpu"));
        if config.limits.cpus.is_some() && !held {
            tracing::warn!(
                "`limits.cpus` has no effect: no control group that limits processors is delegated to the service (systemd: `Delegate=yes`)"
            );
        }
        let groups = groups.ok();
        let idle_client = IdleClient::default();
        let path = client_environment::search_path(env, &own_binary, home);
        let shell_binary = client_environment::shell_binary(&own_binary);
        let client_environment = client_environment::client_environment(config, home, env, &own_binary);
        let wish = Wish {
            config,
            home,
            env,
            secrets: opened.secrets.clone(),
            own_binary,
            clock: opened.clock.clone(),
            groups: groups.clone(),
            idle_client: idle_client.clone(),
        };
        let chosen = client::choose(wish).await;
        let user_home = user_home(env).map_or_else(|| PathBuf::from("/"), Path::to_path_buf);
        Ok(Self { path, shell_binary, user_home, client_environment, groups, sandbox, idle_client, chosen })
    }

    /// Returns the environment for the person's programs.
    pub(super) fn surroundings(&self, opened: &Opened) -> Surroundings {
        Surroundings {
            shell_binary: self.shell_binary.clone(),
            path: self.path.clone(),
            user_home: self.user_home.clone(),
            data_folder: opened.home.root().to_owned(),
            locale: Surroundings::locale(&opened.env),
        }
    }
}

/// Returns the person's home folder, if the environment names one.
pub(super) fn user_home(env: &BTreeMap<String, String>) -> Option<&Path> {
    env.get("HOME").map(Path::new)
}

fn sandbox(groups: &Result<Delegated, String>) -> Sandbox {
    let support = kernel_support();
    let limits = match groups {
        Ok(groups) => format!("limits by control groups ({})", groups.controllers().join(", ")),
        Err(why) => format!("limits looked after twice a second: {why}"),
    };
    Sandbox { enforced: support.enforced, detail: format!("{}; {limits}", support.words) }
}
