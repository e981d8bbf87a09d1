//! Ends the main session's client when the person has been silent for a while.

use std::time::Duration;

use crate::agent::claude::IdleClient;
use crate::bot::main_session::MainSession;
use crate::daemon::settings::CurrentSettings;
use crate::home::Home;
use crate::run::folder;

/// Longest interval between two checks.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// Ends the client whenever it has waited for the setting `main_idle_timeout`. Never returns.
pub(super) async fn end_when_idle(idle: IdleClient, main: MainSession, home: Home, settings: CurrentSettings) {
    loop {
        let timeout = settings.borrow().main_idle_timeout;
        let left = idle.waits().await.map_or(timeout, |waited| timeout.saturating_sub(waited));
        if !left.is_zero() {
            tokio::time::sleep(left.min(POLL_INTERVAL)).await;
            continue;
        }
        // Holding the turn keeps a new one from using the client that is ending.
        let _turn = main.turn().await;
        if idle.waits().await.is_some_and(|waited| waited >= timeout) {
            idle.end().await;
            folder::tidy(home.main_run()).await;
            let timeout = humantime::format_duration(timeout);
            tracing::info!("the conversation's client was ended: nobody has said anything for {timeout}");
        }
    }
}
