//! Moving the journal to a server, or back into a file.

use super::App;
use crate::journal::{Copied, CopyError, JournalPlace, copy_to};
use crate::refusal::Refusal;

/// What was copied.
#[derive(Debug)]
pub struct CopiedJournal {
    /// From where, without a password.
    pub from: String,
    /// Where to.
    pub to: String,
    /// What `journal` in config.yaml has to be from now on; `None`: the line has to go.
    pub setting: Option<String>,
    /// Each table with its rows, and an older file that stood in the place.
    pub copied: Copied,
}

/// Copies the journal in use to the server at `to`; `None`: into the data folder's file.
pub(super) fn copy(to: Option<String>, app: &App) -> Result<CopiedJournal, Refusal> {
    app.require_home()?;
    if super::service::status(app)?.is_some() {
        return Err(Refusal::user("the service runs, and writes into the journal")
            .hint("stop it first: `ollim-bot service stop`, or Ctrl-C where it runs"));
    }
    let from = app.journal()?;
    let target = match &to {
        Some(url) => app.journal_at(url)?,
        None => JournalPlace::from(&app.home.journal()),
    };
    if from.to_string() == target.to_string() {
        return Err(Refusal::user(format!("the journal is at {from} already")));
    }
    let host = match &target {
        JournalPlace::File(_) => None,
        JournalPlace::Server(_) => Some(app.host_name()?),
    };
    let copied = copy_to(&from, &target, host.as_deref(), &app.clock).map_err(refusal)?;
    Ok(CopiedJournal { from: from.to_string(), to: target.to_string(), setting: to, copied })
}

fn refusal(error: CopyError) -> Refusal {
    match error {
        CopyError::Journal(error) => error.into(),
        error @ (CopyError::Nothing(_) | CopyError::Taken(_) | CopyError::InUse(_)) => Refusal::user(error.to_string()),
        error @ CopyError::Differs { .. } => Refusal::environment(error.to_string()),
    }
}
