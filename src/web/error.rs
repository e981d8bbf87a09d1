//! Answers that are no page: why not, and what to do now. Whoever is logged in reads them as a page like any other.

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use super::context::Context;
use super::{Web, frame, guard};
use crate::refusal::{Cause, Refusal};

/// So much of an answer of axum's own is read.
const LONGEST: usize = 4096;

/// What an answer says, for [`framed`].
#[derive(Clone)]
struct Said {
    title: String,
    why: String,
}

/// Puts an error in the page's frame, with the sentence on top and the way to the other pages, where somebody is logged in.
pub(super) async fn framed(State(web): State<Web>, request: Request, next: Next) -> Response {
    let headers = request.headers().clone();
    let answer = next.run(request).await;
    let status = answer.status();
    if !status.is_client_error() && !status.is_server_error() {
        return answer;
    }
    let answer = if is_page(&answer) { answer } else { of_axum(answer).await };
    let (Some(said), Some(session)) = (answer.extensions().get::<Said>(), guard::session_in(&web, &headers)) else {
        return answer;
    };
    let context = Context::of(&web, &session, &headers);
    // Where not even that can be read, the short page says what it can.
    let Ok(attention) = context.ask(crate::app::App::attention).await else { return answer };
    let mut page = frame::page(&said.title, "", &attention, &context, &text(&said.title, &said.why));
    *page.status_mut() = status;
    page.headers_mut().extend(answer.headers().get(header::ALLOW).map(|allow| (header::ALLOW, allow.clone())));
    page
}

fn is_page(answer: &Response) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/html"))
}

/// What axum has answered by itself, in our words.
async fn of_axum(answer: Response) -> Response {
    let (status, allow) = (answer.status(), answer.headers().get(header::ALLOW).cloned());
    let body = to_bytes(answer.into_body(), LONGEST).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    let fault = body.strip_prefix("Failed to deserialize query string: ").unwrap_or(&body);
    let mut page = match status {
        StatusCode::METHOD_NOT_ALLOWED => page(
            status,
            "This address is not used so",
            "Some addresses are only opened, others only sent to by a button. Go on from another page.",
        ),
        StatusCode::BAD_REQUEST => page(
            status,
            "The address cannot be read",
            &format!("A value in it is none that this page takes ({fault}). Go on from another page."),
        ),
        _ => page(status, "That cannot be answered", &body),
    };
    page.headers_mut().extend(allow.map(|allow| (header::ALLOW, allow)));
    page
}

fn text(title: &str, why: &str) -> Markup {
    html! { h1 { (title) } p { (super::parts::with_code(why)) } p { a href="/" { "To the timeline" } } }
}

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
                main .alone { (text(title, why)) }
            }
        }
    };
    let mut answer = (status, Html(page.into_string())).into_response();
    answer.extensions_mut().insert(Said { title: title.to_owned(), why: why.to_owned() });
    answer
}

/// The status of why something was not done.
pub(super) fn status(refusal: &Refusal) -> StatusCode {
    match refusal.cause {
        Cause::Caller => StatusCode::UNPROCESSABLE_ENTITY,
        Cause::Denied => StatusCode::FORBIDDEN,
        Cause::Environment => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Why it was not done, with what to do now.
pub(super) fn why(refusal: &Refusal) -> String {
    std::iter::once(refusal.to_string()).chain(refusal.hints.iter().cloned()).collect::<Vec<_>>().join(". ")
}

/// Why something was not done.
pub(super) fn refused(refusal: &Refusal) -> Response {
    page(status(refusal), "That was not done", &why(refusal))
}

/// What a page was to show is not there.
pub(super) fn missing(refusal: &Refusal) -> Response {
    match refusal.cause {
        Cause::Caller => page(StatusCode::NOT_FOUND, "That is not there", &why(refusal)),
        Cause::Denied | Cause::Environment => refused(refusal),
    }
}

/// There is no such page.
pub(super) async fn not_found() -> Response {
    page(StatusCode::NOT_FOUND, "There is no such page", "The address may be of another version of ollim-bot.")
}
