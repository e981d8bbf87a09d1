//! Moving the journal to a server, or back into a file.

use super::App;
use crate::config::{edit, secrets};
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
    /// Whether the settings say so by now.
    pub is_used: bool,
    /// Each table with its rows, and an older file that stood in the place.
    pub copied: Copied,
}

/// Copies the journal in use to the server at `to`; `None`: into the data folder's file. `uses`: it is used from then on.
pub(super) fn copy(to: Option<String>, uses: bool, app: &App) -> Result<CopiedJournal, Refusal> {
    app.require_home()?;
    if super::service::status(app)?.is_some() {
        return Err(Refusal::user("the service runs, and writes into the journal")
            .hint("stop it first: `ollim-bot service stop`, or Ctrl-C where it runs"));
    }
    if uses {
        may_be_used(app)?;
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
    let setting = to.as_deref().map(without_password);
    if uses {
        // The password first: a setting without it is a service that does not start.
        if let JournalPlace::Server(server) = &target
            && setting != to
            && let Some(password) = server.password()
        {
            secrets::keep(&app.home, super::JOURNAL_PASSWORD, &password)
                .map_err(|error| Refusal::environment(error.to_string()))?;
        }
        let file = app.home.config_file();
        edit::set(&app.home, "journal", setting.as_deref())
            .map_err(|error| Refusal::environment(format!("cannot write {}: {error}", file.display())))?;
    }
    Ok(CopiedJournal { from: from.to_string(), to: target.to_string(), setting, is_used: uses, copied })
}

/// A setting that does not come from config.yaml cannot be changed there.
fn may_be_used(app: &App) -> Result<(), Refusal> {
    match app.env.text("OLLIM_JOURNAL") {
        Some(_) => {
            Err(Refusal::user("OLLIM_JOURNAL in the environment says where the journal is, whatever config.yaml says")
                .hint("unset it, or copy without `--use`"))
        }
        None => Ok(()),
    }
}

/// The address as it may stand in config.yaml.
fn without_password(url: &str) -> String {
    let parts = || {
        let (scheme, rest) = url.split_once("://")?;
        let authority = rest.find(['/', '?']).unwrap_or(rest.len());
        let (user, host) = rest.get(..authority)?.rsplit_once('@')?;
        Some(format!("{scheme}://{}@{host}{}", user.split_once(':')?.0, rest.get(authority..)?))
    };
    parts().unwrap_or_else(|| url.to_owned())
}

fn refusal(error: CopyError) -> Refusal {
    match error {
        CopyError::Journal(error) => error.into(),
        error @ (CopyError::Nothing(_) | CopyError::Taken(_) | CopyError::InUse(_)) => Refusal::user(error.to_string()),
        error @ CopyError::Differs { .. } => Refusal::environment(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_does_not_come_into_the_settings() {
        assert_eq!(without_password("postgres://a:s%40c+r&t@h:5/b?x=y"), "postgres://a@h:5/b?x=y");
        assert_eq!(without_password("postgres://a@h/b"), "postgres://a@h/b");
        assert_eq!(without_password("postgres://a:p@/b?host=/tmp/x"), "postgres://a@/b?host=/tmp/x");
    }
}
