//! Ends the main session's client when the person has been silent for a while.

use std::time::Duration;

use crate::agent::claude::IdleClient;
use crate::app::IDLE_CLIENT_WAITS;
use crate::bot::main_session::MainSession;
use crate::home::Home;
use crate::run::folder;

/// Interval between two checks.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// Ends the client whenever it has waited too long. Never returns.
pub(super) async fn end_when_idle(idle: IdleClient, main: MainSession, home: Home) {
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        if idle.waits().await.is_none_or(|waited| waited < IDLE_CLIENT_WAITS) {
            continue;
        }
        // Holding the turn keeps a new one from using the client that is ending.
        let _turn = main.turn().await;
        if idle.waits().await.is_some_and(|waited| waited >= IDLE_CLIENT_WAITS) {
            idle.end().await;
            folder::tidy(home.main_run()).await;
            tracing::info!(
                "the conversation's client was ended: nobody has said anything for {} minutes",
                IDLE_CLIENT_WAITS.as_secs() / 60
            );
        }
    }
}
