//! The agent clients that execute runs, and the control groups of their processes.

use agent_sandbox::cgroup::DelegatedCgroup;
use agent_sandbox::prespawn::PrespawnSlot;

use super::opened_home::OpenedHome;
use crate::agent::claude::IdleClient;
use crate::agent::claude::options::ClientEnvironment;
use crate::app::Sandbox;
use crate::daemon::client::{self, ChosenClients, ClientSelection};
use crate::run::client_environment;
use crate::run::kernel_support::kernel_support;

/// The means of execution, found at start and the same for all runs.
pub(super) struct Execution {
    /// The source of the gates' environment.
    pub(super) client_environment: ClientEnvironment,
    /// The control groups of runs, or `None` if none is delegated to the service.
    pub(super) groups: Option<DelegatedCgroup>,
    /// The status of the sandbox.
    pub(super) sandbox: Sandbox,
    /// The main session's client, while it waits between two turns.
    pub(super) idle_client: IdleClient,
    pub(super) ready: PrespawnSlot,
    pub(super) chosen: ChosenClients,
}

impl Execution {
    pub(super) async fn choose(opened: &OpenedHome) -> Self {
        let OpenedHome { config, home, env, own_binary, .. } = opened;
        let groups = DelegatedCgroup::take();
        let sandbox = sandbox(&groups);
        let held = groups.as_ref().is_ok_and(|groups| groups.controllers().iter().any(|name| name == "cpu"));
        if config.limits.cpus.is_some() && !held {
            tracing::warn!(
                "`limits.cpus` has no effect: no control group that limits processors is delegated to the service (systemd: `Delegate=yes`)"
            );
        }
        let groups = groups.ok();
        let (idle_client, ready) = (IdleClient::default(), PrespawnSlot::default());
        let client_environment = client_environment::client_environment(config, home, env, own_binary);
        let selection = ClientSelection {
            config,
            home,
            env,
            secrets: opened.secrets.clone(),
            own_binary: own_binary.clone(),
            shell_binary: opened.program_env.shell_binary.clone(),
            clock: opened.clock.clone(),
            groups: groups.clone(),
            idle_client: idle_client.clone(),
            ready: ready.clone(),
        };
        let chosen = client::choose(selection).await;
        Self { client_environment, groups, sandbox, idle_client, ready, chosen }
    }
}

fn sandbox(groups: &Result<DelegatedCgroup, String>) -> Sandbox {
    let support = kernel_support();
    let limits = match groups {
        Ok(groups) => format!("limits by control groups ({})", groups.controllers().join(", ")),
        Err(why) => format!("limits looked after twice a second: {why}"),
    };
    Sandbox { enforced: support.enforced, detail: format!("{}; {limits}", support.words) }
}
