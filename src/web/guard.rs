//! The checks on every request: its host, the page that it comes from, and its session.
//!
//! A browser sends requests for any page that the person has open. Checking `Host` rejects foreign names that resolve
//! to this machine. Checking `Origin` and `Sec-Fetch-Site` rejects requests of other pages, and a form's token rejects foreign forms.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::sessions::form_token;
use super::{Web, error};
use crate::connections::KnownCaller;

/// Allows only the page's own style and script, and no frames.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Maximum size of a form, in bytes.
pub(super) const LARGEST: usize = 2 << 20;

/// Headers of every answer. The referrer policy is not `no-referrer`, since browsers would then send no origin with forms.
const HEADERS: [(header::HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Refuses requests that the person's browser would not send for this page.
pub(super) async fn request(State(web): State<Web>, request: Request, next: Next) -> Response {
    let mut answer = match refusal(&web, &request) {
        Some((status, title, why)) => error::page(status, title, why),
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

fn refusal(web: &Web, request: &Request) -> Option<(StatusCode, &'static str, &'static str)> {
    let headers = request.headers();
    let address = request.uri().to_string();
    let said = headers.values().filter_map(|value| value.to_str().ok()).chain([&*address]);
    if said.into_iter().any(|text| carries_run_token(web, text)) {
        return Some((StatusCode::FORBIDDEN, "A job may not use the page", "It reports by its own tools."));
    }
    let host = text(headers, header::HOST).unwrap_or_default();
    if !is_own_host(host, web.url.as_deref()) {
        let why = "The page answers for this machine's own name alone. `web_url` in config.yaml names another one.";
        return Some((StatusCode::MISDIRECTED_REQUEST, "This is another host's name", why));
    }
    let is_navigation = request.method() == Method::GET
        && text(headers, "sec-fetch-mode").is_some_and(|mode| mode == "navigate")
        && text(headers, "sec-fetch-dest").is_none_or(|place| place == "document");
    let site = text(headers, "sec-fetch-site").unwrap_or("same-origin");
    // Other pages may link to this one, but not to a trial of a command line.
    let is_trial = request.uri().path() == "/policy" && request.uri().query().is_some();
    let from_elsewhere = !matches!(site, "same-origin" | "none") && (!is_navigation || is_trial);
    let origin = text(headers, header::ORIGIN);
    let of_another = origin.is_some_and(|origin| !is_own_origin(origin, host, web.url.as_deref()));
    // All current browsers send one of the two headers with a form.
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let unknown = changes && origin.is_none() && text(headers, "sec-fetch-site").is_none();
    if from_elsewhere || of_another || unknown {
        return Some((
            StatusCode::FORBIDDEN,
            "Another page has asked for this",
            "Open the page itself, and try again there.",
        ));
    }
    None
}

/// Refuses requests without a session.
pub(super) async fn session(State(web): State<Web>, mut request: Request, next: Next) -> Response {
    match session_in(&web, request.headers()) {
        Some(session) => {
            if let Some(caller) = request.extensions().get::<KnownCaller>() {
                caller.note();
            }
            request.extensions_mut().insert(session);
            next.run(request).await
        }
        None => error::page(
            StatusCode::UNAUTHORIZED,
            "You are not logged in here",
            "`ollim-bot web` prints a link that logs this browser in.",
        ),
    }
}

/// Finds a valid session in a request's headers.
pub(super) fn session_in(web: &Web, headers: &HeaderMap) -> Option<SessionToken> {
    let now = web.now();
    // Another page of this machine may have set a cookie of that name too, so try them all.
    let mut all = cookies(headers, &web.cookie);
    all.find(|session| web.sessions.has(session, now)).map(|session| SessionToken(session.to_owned()))
}

/// The session that a request presents.
#[derive(Clone)]
pub(super) struct SessionToken(pub String);

impl<S: Sync> FromRequestParts<S> for SessionToken {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, StatusCode> {
        parts.extensions.get::<Self>().cloned().ok_or(StatusCode::UNAUTHORIZED)
    }
}

/// A form that belongs to the request's session.
pub(super) struct Posted(HashMap<String, String>);

impl Posted {
    /// Returns a field, or an empty string without it.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

impl FromRequest<Web> for Posted {
    type Rejection = Response;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Response> {
        let session = request.extensions().get::<SessionToken>().cloned();
        let refused = |why: &str| error::page(StatusCode::FORBIDDEN, "This form is of another session", why);
        let session = session.ok_or_else(|| refused("Log in, and try again."))?;
        let axum::Form(fields) =
            axum::Form::<HashMap<String, String>>::from_request(request, web).await.map_err(|why| {
                match why.status() {
                    StatusCode::PAYLOAD_TOO_LARGE => {
                        let why = format!("It has at most {} MB. A larger file is edited in an editor.", LARGEST >> 20);
                        error::page(StatusCode::PAYLOAD_TOO_LARGE, "The form is too large", &why)
                    }
                    status => error::page(status, "The form cannot be read", &why.to_string()),
                }
            })?;
        if fields.get("token").is_none_or(|token| *token != form_token(&session.0)) {
            return Err(refused("Open the page again, and try there."));
        }
        Ok(Self(fields))
    }
}

fn text(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(';')).filter_map(move |pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// Returns whether a text contains a run's token as a whole word.
fn carries_run_token(web: &Web, value: &str) -> bool {
    let word = |c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_';
    value.split(word).filter(|word| !word.is_empty()).any(|word| (web.is_run_token)(word))
}

/// Returns whether a host is this machine, on any port (a tunnel may use another one), or the host of `web_url`.
fn is_own_host(host: &str, url: Option<&str>) -> bool {
    let name = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
        .map_or(host, |(name, _)| name);
    let of_url = url.and_then(|url| url.split_once("://")).map(|(_, host)| host.trim_end_matches('/'));
    // An address needs no name lookup, so it cannot be a foreign name.
    let is_loopback = name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    is_loopback || matches!(name, "localhost" | "[::1]") || of_url.is_some_and(|of_url| of_url == host)
}

fn is_own_origin(origin: &str, host: &str, url: Option<&str>) -> bool {
    match url.map(|url| url.trim_end_matches('/')) {
        Some(url) if url.split_once("://").is_some_and(|(_, of_url)| of_url == host) => url == origin,
        _ => origin == format!("http://{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_hosts_are_answered() {
        let url = Some("https://bot.example.org/");
        for own in [
            "127.0.0.1:8080",
            "127.0.0.2:8080",
            "127.9.9.9",
            "localhost",
            "localhost:9",
            "[::1]:8080",
            "[::1]",
            "bot.example.org",
        ] {
            assert!(is_own_host(own, url), "{own}");
        }
        for other in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.2.evil.example:80",
            "127.1",
            "0.0.0.0:80",
            "128.0.0.1:80",
            "localhost.evil.example:80",
            "bot.example.org:81",
            "[::2]:80",
        ] {
            assert!(!is_own_host(other, url), "{other}");
        }
        assert!(!is_own_host("bot.example.org", None));
    }

    #[test]
    fn only_the_page_itself_is_its_origin() {
        assert!(is_own_origin("http://localhost:8080", "localhost:8080", None));
        assert!(is_own_origin("https://bot.example.org", "bot.example.org", Some("https://bot.example.org/")));
        for other in ["null", "http://localhost:8081", "https://localhost:8080", "http://evil.example", ""] {
            assert!(!is_own_origin(other, "localhost:8080", None), "{other}");
        }
    }
}
