//! Moves the journal to a server, or back to a file.

use super::App;
use crate::config::{edit, secrets};
use crate::journal::{CopyError, CopySummary, JournalLocation, Server, copy_to, mark_moved};
use crate::refusal::Refusal;

/// The result of a copy.
#[derive(Debug)]
pub struct CopiedJournal {
    /// The source, without a password.
    pub from: String,
    /// The destination.
    pub to: String,
    /// The new value of `journal` in config.yaml; `None` to remove the line.
    pub setting: Option<String>,
    /// Whether the settings have been changed.
    pub is_used: bool,
    /// The number of rows of each table, and an older file that was at the destination.
    pub copied: CopySummary,
}

/// Copies the journal in use to the server at `to`, or to the data folder's file for `None`. `uses`: changes the settings too.
pub(super) fn copy(to: Option<String>, uses: bool, app: &App) -> Result<CopiedJournal, Refusal> {
    app.require_home()?;
    if super::service::status(app)?.is_some() {
        return Err(Refusal::user("the service runs, and writes into the journal")
            .hint("stop it first: `ollim-bot service stop`, or Ctrl-C where it runs"));
    }
    let setting = to.as_deref().map(without_password).transpose()?;
    let has_password = setting != to;
    if uses {
        may_be_used(has_password, app)?;
    }
    let from = app.journal()?;
    let target = match &to {
        Some(url) => app.journal_at(url)?,
        None => JournalLocation::from(&app.home.journal()),
    };
    if from.to_string() == target.to_string() {
        return Err(Refusal::user(format!("the journal is at {from} already")));
    }
    let name = app.host_name()?;
    let host = matches!(target, JournalLocation::Server(_)).then_some(name.as_str());
    let copied = copy_to(&from, &target, host, &app.clock).map_err(refusal)?;
    if uses {
        // First of all: of several hosts that do this at once, one puts its copy into use.
        mark_moved(&from, &target, &name, &app.clock)?;
        // The password comes before the setting: with the setting alone the service would not start.
        if let JournalLocation::Server(server) = &target
            && has_password
            && let Some(password) = server.password()
        {
            secrets::keep(&app.home, super::JOURNAL_PASSWORD, &password)
                .map_err(|error| Refusal::environment(error.to_string()))?;
        }
        let file = app.home.config_file();
        edit::set(&app.home, "journal", setting.as_deref()).map_err(|error| {
            Refusal::environment(format!("cannot write {}: {error}", file.display()))
                .hint(format!("the journal has moved to {target}: set `journal` there"))
        })?;
    }
    Ok(CopiedJournal { from: from.to_string(), to: target.to_string(), setting, is_used: uses, copied })
}

/// Refuses to change a setting or password that the environment overrides.
fn may_be_used(has_password: bool, app: &App) -> Result<(), Refusal> {
    let wins = [("OLLIM_JOURNAL", true, "config.yaml"), (super::JOURNAL_PASSWORD, has_password, ".env")];
    match wins.into_iter().find(|(name, counts, _)| *counts && app.env.text(name).is_some()) {
        Some((name, _, file)) => Err(Refusal::user(format!("{name} in the environment counts, whatever {file} says"))
            .hint("unset it, or copy without `--use`")),
        None => Ok(()),
    }
}

/// Returns the address for config.yaml, without its password.
fn without_password(url: &str) -> Result<String, Refusal> {
    let hint = "write `postgres://USER:PASSWORD@HOST/NAME`";
    let (scheme, rest) = url
        .split_once("://")
        .filter(|(scheme, _)| ["postgres", "postgresql"].contains(scheme))
        .ok_or_else(|| Refusal::user("that is no address of a PostgreSQL server").hint(hint))?;
    // Clients end the password at the first `@`, too.
    let without = rest.split_once('@').and_then(|(user, host)| {
        let (user, _) = user.split_once(':')?;
        Some(format!("{scheme}://{user}@{host}"))
    });
    let without = without.unwrap_or_else(|| url.to_owned());
    match Server::at(&without, None) {
        Ok(server) if server.password().is_some() => {
            Err(Refusal::user("the address has its password in another place than before the `@`").hint(hint))
        }
        _ => Ok(without),
    }
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
        for (url, expect) in [
            ("postgres://a:s%40c+r&t@h:5/b?application_name=y", "postgres://a@h:5/b?application_name=y"),
            ("postgres://a:x/y?z@h/b", "postgres://a@h/b"),
            ("postgres://a:p#q:r@h/b", "postgres://a@h/b"),
            ("postgresql://a:p@/b?host=/tmp/x", "postgresql://a@/b?host=/tmp/x"),
            ("postgres://a@h/b", "postgres://a@h/b"),
        ] {
            assert_eq!(without_password(url).unwrap(), expect);
            assert_eq!(Server::at(url, None).unwrap().password().is_some(), url != expect, "{url}");
        }
        for url in ["postgres://a@h/b?password=x", "postgres://a:y@h/b?password=x", "host=h user=a password=x", "h/b"] {
            let refusal = without_password(url).unwrap_err();
            assert!(!refusal.to_string().contains('x'), "{refusal}");
        }
    }
}
