//! The frame of every page: the sentence on top, the navigation, and the age of the content.

use std::convert::Infallible;
use std::future::ready;

use axum::body::Body;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use futures::{StreamExt as _, stream};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::context::Context;
use super::parts::{self, link};
use crate::app::{Attention, NeedSubject, times};

/// The pages in the navigation: path and name.
const PAGES: [(&str, &str); 9] = [
    ("/", "Timeline"),
    ("/next", "Next"),
    ("/jobs", "Jobs"),
    ("/runs", "Runs"),
    ("/refusals", "Refusals"),
    ("/policy", "Policy"),
    ("/costs", "Costs"),
    ("/inbox", "Inbox"),
    ("/chat", "Chat"),
];

/// The additional page in the navigation if several hosts share the journal.
const OF_HOSTS: (&str, &str) = ("/hosts", "Hosts");

/// Maximum number of needs in the sentence on top.
pub(super) const NEEDS: usize = 5;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");
/// The script of the login link's page. It names the browser's zone, so that the first page has its times.
const ENTER: &str = "document.cookie = 'zone=' + Intl.DateTimeFormat().resolvedOptions().timeZone + \
                     '; path=/; max-age=31536000; samesite=strict';\ndocument.forms[0].requestSubmit();\n";
const ICON: &str = include_str!("icon.svg");
const GLYPHS: &str = include_str!("glyphs.svg");

/// Builds a page around a view's content. `here`: the path of its entry in the navigation.
pub(super) fn page(title: &str, here: &str, attention: &Attention, context: &Context, shown: &Markup) -> Response {
    let (above, below) = around(title, here, attention, context);
    Html(above + &shown.0 + &below).into_response()
}

/// Sends the frame of [`around`] at once, and the content as soon as it is known.
pub(super) fn page_in_two(
    (above, below): (String, String),
    shown: impl Future<Output = Markup> + Send + 'static,
) -> Response {
    let rest = stream::once(async move { shown.await.0 + &below });
    let parts = stream::once(ready(above)).chain(rest).map(Ok::<_, Infallible>);
    Html(Body::from_stream(parts)).into_response()
}

/// Returns the parts of a page above and below its content.
pub(super) fn around(title: &str, here: &str, attention: &Attention, context: &Context) -> (String, String) {
    let version = env!("CARGO_PKG_VERSION");
    let wrong = !attention.needs.is_empty();
    let several = attention.status.hosts.len() > 1;
    let page = html! {
        (DOCTYPE)
        html lang="en" data-newest=(context.newest) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { @if wrong { "(" (attention.needs.len()) ") " } (title) " – ollim-bot" }
                link rel="icon" href="/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href={ "/style.css?" (version) };
                script src={ "/page.js?" (version) } defer {}
            }
            body {
                (PreEscaped(GLYPHS))
                a .skip href="#main" { "Skip to the content" }
                header {
                    (sentence(attention))
                    p id="as-of" {
                        "As of "
                        time datetime=(context.now.to_rfc3339()) { (context.now.with_timezone(&context.zone).format("%H:%M:%S")) }
                        ", times in " (context.zone.name())
                    }
                    nav aria-label="Pages" {
                        @for (path, name) in PAGES.into_iter().chain(several.then_some(OF_HOSTS)) {
                            a href=(path) aria-current=[(path == here).then_some("page")] { (name) }
                        }
                    }
                }
                main id="main" tabindex="-1" {}
                footer {
                    p id="service" {
                        @if let Some(service) = &attention.status.service {
                            a href="/service" { "Service " (version) }
                            @if let Ok(since) = service.since.parse::<chrono::DateTime<chrono::Utc>>() {
                                ", up " (times::span(context.now - since))
                            }
                        }
                    }
                    (parts::button("/out", "Log out", &[], context))
                }
                p id="stale" role="alert" hidden {}
            }
        }
    };
    // All texts above are escaped, so only the frame itself has this tag.
    let (above, below) = page.0.split_at(page.0.find("</main>").unwrap_or(page.0.len()));
    (above.to_owned(), below.to_owned())
}

/// Renders the sentence on top: whether anything is wrong. Each need links to the page where the person can fix it.
fn sentence(attention: &Attention) -> Markup {
    let needs = &attention.needs;
    // The words for one more take the room of the need itself.
    let shown = if needs.len() == NEEDS + 1 { needs.len() } else { NEEDS };
    html! {
        p id="needs" .good[needs.is_empty()] .bad[!needs.is_empty()] {
            @if needs.is_empty() {
                (attention.all_clear()) "."
            } @else {
                strong { (attention.count_sentence(needs.len())) } ": "
                @for (index, need) in needs.iter().take(shown).enumerate() {
                    @if index > 0 { "; " }
                    a href=(place(&need.about)) { (need.words) }
                }
                @if needs.len() > shown { "; and " a href="/service#all-needs" { (needs.len() - shown) " more" } }
                "."
            }
        }
    }
}

/// Returns the path of the page where the person can fix a need.
pub(super) fn place(about: &NeedSubject) -> String {
    match about {
        NeedSubject::Service | NeedSubject::Files | NeedSubject::Channels => "/service".to_owned(),
        NeedSubject::FailedReminders => "/jobs#reminders".to_owned(),
        NeedSubject::Questions => "/questions".to_owned(),
        NeedSubject::Job(id) => link("/jobs/", id.as_str(), ""),
        NeedSubject::Costs => "/costs".to_owned(),
        NeedSubject::Hosts => "/hosts".to_owned(),
    }
}

/// Serves an embedded file, which stays the same for as long as the program does.
fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "max-age=3600")], text).into_response()
}

pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", STYLE)
}

pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", SCRIPT)
}

/// Serves the script of the login link's page.
pub(super) async fn enter() -> Response {
    file("text/javascript; charset=utf-8", ENTER)
}

pub(super) async fn icon() -> Response {
    file("image/svg+xml", ICON)
}
