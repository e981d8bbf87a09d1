//! Answers that are no page: why not, and what to do now.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, html};

use crate::refusal::{Cause, Refusal};

/// A short page of its own.
pub(super) fn page(status: StatusCode, title: &str, why: &str) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                link rel="stylesheet" href="/style.css";
            }
            body {
                main .alone {
                    h1 { (title) }
                    p { (super::parts::with_code(why)) }
                    p { a href="/" { "To the timeline" } }
                }
            }
        }
    };
    (status, Html(page.into_string())).into_response()
}

/// Why something was not done.
pub(super) fn refused(refusal: &Refusal) -> Response {
    let status = match refusal.cause {
        Cause::Caller => StatusCode::UNPROCESSABLE_ENTITY,
        Cause::Denied => StatusCode::FORBIDDEN,
        Cause::Environment => StatusCode::SERVICE_UNAVAILABLE,
    };
    let why = std::iter::once(refusal.to_string()).chain(refusal.hints.iter().cloned()).collect::<Vec<_>>().join(". ");
    page(status, "That was not done", &why)
}

/// What a page was to show is not there.
pub(super) fn missing(refusal: &Refusal) -> Response {
    match refusal.cause {
        Cause::Caller => {
            let why = std::iter::once(refusal.to_string()).chain(refusal.hints.iter().cloned());
            page(StatusCode::NOT_FOUND, "That is not there", &why.collect::<Vec<_>>().join(". "))
        }
        Cause::Denied | Cause::Environment => refused(refusal),
    }
}

/// There is no such page.
pub(super) async fn not_found() -> Response {
    page(StatusCode::NOT_FOUND, "There is no such page", "The address may be of another version of ollim-bot.")
}
