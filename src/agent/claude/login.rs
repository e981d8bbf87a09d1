//! The sources of a client's login. Each run looks for it again, since a person may log in while the service runs.
//!
//! The order is: an API key, a long-lived token, the person's own login of the client. The last one is only read: its
//! access token expires within hours, and the client renews it ([`sign_in`](super::sign_in)).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

/// The instruction for a person how to log in.
pub const LOG_IN: &str = "log in with `ollim-bot login` or by `/login` on a channel; or run `claude setup-token` and put \
                          CLAUDE_CODE_OAUTH_TOKEN=… (or ANTHROPIC_API_KEY=…) into .env of the data folder, which the service \
                          reads when it starts";

/// A login that ends within this time is renewed first. The client itself renews one that ends in less than five minutes.
const RENEWED_BEFORE: TimeDelta = TimeDelta::minutes(4);

/// The credentials of a client. They are never shown, not even by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The place where it was found: `ANTHROPIC_API_KEY in .env`, or the path of the client's own file.
    pub source: String,
    /// The kind of the login.
    pub kind: LoginKind,
    pub(super) secret: String,
    /// Whether the client has to renew it first: it has expired or is about to, and it can be renewed.
    pub(super) is_over: bool,
    /// Whether it has expired.
    pub(super) has_ended: bool,
}

/// The two kinds of login that a client reads from a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginKind {
    /// An API key of the console.
    ApiKey,
    /// A token of a subscription.
    Token,
}

impl LoginKind {
    /// Returns the environment variable that names the descriptor to read.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::ApiKey => "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR",
            Self::Token => "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR",
        }
    }
}

impl Login {
    /// Returns whether the login comes from a variable rather than the client's own file.
    #[must_use]
    pub fn is_variable(&self) -> bool {
        !self.source.contains('/')
    }

    /// Returns the advice for a person whose login is refused.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self.is_variable() {
            true => format!(
                "change {}, or take it out and log in with `ollim-bot login`; the service reads it when it starts",
                self.source
            ),
            false => LOG_IN.to_owned(),
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("source", &self.source).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The places to look for a login.
#[derive(Clone, Default)]
pub struct LoginSources {
    /// The service's environment, merged with `.env` of the data folder. It may contain `ANTHROPIC_API_KEY` and
    /// `CLAUDE_CODE_OAUTH_TOKEN`.
    pub variables: BTreeMap<String, String>,
    /// The names of the variables that the environment itself sets.
    pub of_environment: BTreeSet<String>,
    /// The path of the person's own login of the client: `~/.claude/.credentials.json`.
    pub credentials: Option<PathBuf>,
    /// A lock held while the login is renewed. It contains the time of the last failed renewal.
    pub(super) renewing: Arc<tokio::sync::Mutex<Option<tokio::time::Instant>>>,
}

impl LoginSources {
    /// Creates sources from these variables, of which `environment` sets some, and the client's file in a person's home folder.
    #[must_use]
    pub fn of(
        variables: BTreeMap<String, String>,
        environment: &BTreeMap<String, String>,
        person: Option<&Path>,
    ) -> Self {
        Self {
            variables,
            of_environment: environment.keys().cloned().collect(),
            credentials: person.map(|person| person.join(".claude/.credentials.json")),
            ..Self::default()
        }
    }
}

impl fmt::Debug for LoginSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginSources").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

/// Returns the first login found; `None` if there is none, or only one that has expired at `now` and cannot be renewed.
#[must_use]
pub fn find_login(sources: &LoginSources, now: DateTime<Utc>) -> Option<Login> {
    let variable = |name: &str, kind| {
        let secret = sources.variables.get(name)?.trim();
        let place = if sources.of_environment.contains(name) { "the environment" } else { ".env" };
        (!secret.is_empty()).then(|| Login {
            source: format!("{name} in {place}"),
            kind,
            secret: secret.into(),
            is_over: false,
            has_ended: false,
        })
    };
    variable("ANTHROPIC_API_KEY", LoginKind::ApiKey)
        .or_else(|| variable("CLAUDE_CODE_OAUTH_TOKEN", LoginKind::Token))
        .or_else(|| from_credentials(sources.credentials.as_deref()?, now))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Credentials {
    claude_ai_oauth: Oauth,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Oauth {
    access_token: String,
    #[serde(default)]
    refresh_token: String,
    /// Milliseconds since 1970.
    expires_at: Option<i64>,
}

fn from_credentials(file: &Path, now: DateTime<Utc>) -> Option<Login> {
    let oauth = serde_json::from_slice::<Credentials>(&std::fs::read(file).ok()?).ok()?.claude_ai_oauth;
    let may_be_renewed = !oauth.refresh_token.is_empty();
    let ends_by = |at: DateTime<Utc>| oauth.expires_at.is_some_and(|ends| ends <= at.timestamp_millis());
    let (has_ended, is_over) = (ends_by(now), may_be_renewed && ends_by(now + RENEWED_BEFORE));
    let usable = !oauth.access_token.is_empty() && (may_be_renewed || !has_ended);
    let (source, secret) = (file.display().to_string(), oauth.access_token);
    usable.then_some(Login { source, kind: LoginKind::Token, secret, is_over, has_ended })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], credentials: Option<&str>, expect: Option<(LoginKind, &str)>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".credentials.json");
        if let Some(text) = credentials {
            std::fs::write(&file, text).unwrap();
        }
        let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let sources = LoginSources { variables, credentials: Some(file), ..LoginSources::default() };
        let found = find_login(&sources, DateTime::from_timestamp(1_800_000_000, 0).unwrap());
        assert!(found.iter().all(|login| !login.is_over));
        assert_eq!(found.as_ref().map(|login| (login.kind, login.secret.as_str())), expect);
    }

    #[test]
    fn a_refused_login_is_mended_where_it_is_set() {
        let variables = BTreeMap::from([("ANTHROPIC_API_KEY".to_owned(), "sk-1".to_owned())]);
        for (environment, place) in [(BTreeMap::new(), ".env"), (variables.clone(), "the environment")] {
            let sources = LoginSources::of(variables.clone(), &environment, None);
            let login = find_login(&sources, DateTime::from_timestamp(1_800_000_000, 0).unwrap()).unwrap();
            assert!(login.remedy().starts_with(&format!("change ANTHROPIC_API_KEY in {place}, or ")), "{login:?}");
        }
    }

    #[test]
    fn the_first_usable_login_is_taken() {
        let file = r#"{"claudeAiOauth":{"accessToken":"tok-file","expiresAt":1800000000001,"scopes":[]}}"#;
        let over = r#"{"claudeAiOauth":{"accessToken":"tok-file","expiresAt":1800000000000}}"#;
        let (key, token) = (("ANTHROPIC_API_KEY", "sk-1\n"), ("CLAUDE_CODE_OAUTH_TOKEN", "tok-1"));
        check(&[], None, None);
        check(&[key, token], Some(file), Some((LoginKind::ApiKey, "sk-1")));
        check(&[("ANTHROPIC_API_KEY", " "), token], Some(file), Some((LoginKind::Token, "tok-1")));
        check(&[], Some(file), Some((LoginKind::Token, "tok-file")));
        check(&[], Some(over), None);
        for broken in ["", "{}", "[]", "not json", r#"{"claudeAiOauth":{"accessToken":""}}"#] {
            check(&[], Some(broken), None);
        }
    }

    #[test]
    fn one_that_can_be_renewed_is_renewed_before_it_ends() {
        const NOW: i64 = 1_800_000_000_000;
        for (ends, is_over) in [(NOW - 86_400_000, true), (NOW + 239_000, true), (NOW + 241_000, false)] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join(".credentials.json");
            let text =
                format!(r#"{{"claudeAiOauth":{{"accessToken":"tok","refreshToken":"again","expiresAt":{ends}}}}}"#);
            std::fs::write(&file, text).unwrap();
            let sources = LoginSources { credentials: Some(file), ..LoginSources::default() };
            let found = find_login(&sources, DateTime::from_timestamp_millis(NOW).unwrap()).unwrap();
            assert_eq!(found.is_over, is_over, "{ends}");
        }
    }

    #[test]
    fn a_login_is_never_shown() {
        let login = Login {
            source: "X".into(),
            kind: LoginKind::ApiKey,
            secret: "sk-1".into(),
            is_over: false,
            has_ended: false,
        };
        let sources =
            LoginSources { variables: BTreeMap::from([("A".into(), "sk-1".into())]), ..LoginSources::default() };
        assert!(!format!("{login:?} {sources:?}").contains("sk-1"));
    }
}
