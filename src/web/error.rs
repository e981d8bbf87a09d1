//! Error answers: the reason, and what to do next. A logged-in person sees them in the frame of a normal page.

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use super::context::Context;
use super::{Web, frame, guard};
use crate::refusal::{Cause, Refusal};

/// Maximum length of axum's own answers that is read, in bytes.
const LONGEST: usize = 4096;

/// The content of an error answer, for [`framed`].
#[derive(Clone)]
struct ErrorBody {
    title: String,
    why: String,
}

/// Puts an error into the page's frame, with the sentence on top and the navigation, if the caller is logged in.
pub(super) async fn framed(State(web): State<Web>, request: Request, next: Next) -> Response {
    let (headers, method, path) =
        (request.headers().clone(), request.method().clone(), request.uri().path().to_owned());
    let answer = next.run(request).await;
    let status = answer.status();
    if !status.is_client_error() && !status.is_server_error() {
        return answer;
    }
    let answer = if is_page(&answer) { answer } else { of_axum(answer).await };
    let (Some(said), Some(session)) = (answer.extensions().get::<ErrorBody>(), guard::session_in(&web, &headers))
    else {
        return answer;
    };
    let context = Context::of(&web, &session, &headers);
    // If the attention cannot be read, the short page is sent.
    let Ok(attention) = context.ask(crate::app::App::attention).await else { return answer };
    // What a button is about is above its address, which can only be sent to. So the page does not ask for itself again.
    let above = path.rsplit_once('/').map(|(above, _)| above);
    let above = above.filter(|above| method == Method::POST && !["", "/in"].contains(above));
    let shown = html! {
        div data-still[status.is_client_error()] {
            (text(&said.title, &said.why))
            @if let Some(above) = above { p { a href=(above) { "Back" } } }
        }
    };
    let mut page = frame::page(&said.title, "", &attention, &context, &shown);
    *page.status_mut() = status;
    page.headers_mut().extend(answer.headers().get(header::ALLOW).map(|allow| (header::ALLOW, allow.clone())));
    page
}

fn is_page(answer: &Response) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/html"))
}

/// Replaces an answer that axum made itself by a page in our words.
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
    html! { (reason(title, why)) p { a href="/" { "To the timeline" } ", " a href="/jobs" { "to all jobs" } } }
}

fn reason(title: &str, why: &str) -> Markup {
    html! { h1 { (title) } p { (super::parts::with_code(why)) } }
}

/// Builds a short page without the frame. It has no links, since they would lead a person without a session nowhere.
pub(super) fn page(status: StatusCode, title: &str, why: &str) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                link rel="stylesheet" href="/style.css";
                link rel="icon" href="/icon.svg" type="image/svg+xml";
            }
            body {
                main .alone { (reason(title, why)) }
            }
        }
    };
    let mut answer = (status, Html(page.into_string())).into_response();
    answer.extensions_mut().insert(ErrorBody { title: title.to_owned(), why: why.to_owned() });
    answer
}

/// Returns the HTTP status of a refusal.
pub(super) fn status(refusal: &Refusal) -> StatusCode {
    match refusal.cause {
        Cause::Caller => StatusCode::UNPROCESSABLE_ENTITY,
        Cause::Denied => StatusCode::FORBIDDEN,
        Cause::Environment => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Returns the reason of a refusal and its hints.
pub(super) fn why(refusal: &Refusal) -> String {
    std::iter::once(refusal.to_string()).chain(refusal.hints.iter().cloned()).collect::<Vec<_>>().join(". ")
}

/// Answers with a refusal.
pub(super) fn refused(refusal: &Refusal) -> Response {
    page(status(refusal), "That was not done", &why(refusal))
}

/// Renders a refusal in the place of a page's content, when the page has already begun.
pub(super) fn instead(refusal: &Refusal) -> Markup {
    text("That cannot be shown", &why(refusal))
}

/// Answers that the content of a page does not exist.
pub(super) fn missing(refusal: &Refusal) -> Response {
    match refusal.cause {
        Cause::Caller => page(StatusCode::NOT_FOUND, "That is not there", &without_commands(refusal)),
        Cause::Denied | Cause::Environment => refused(refusal),
    }
}

/// Returns the reason of a refusal as a sentence, without hints that name commands: the navigation leads there.
fn without_commands(refusal: &Refusal) -> String {
    let hints = refusal.hints.iter().filter(|hint| !hint.contains("`ollim-bot ")).cloned();
    let sentence = |text: String| {
        let mut letters = text.chars();
        let first = letters.next().map(char::to_uppercase).into_iter().flatten();
        let end = if text.ends_with(['.', '?']) { "" } else { "." };
        format!("{}{}{end}", first.collect::<String>(), letters.as_str())
    };
    std::iter::once(refusal.to_string()).chain(hints).map(sentence).collect::<Vec<_>>().join(" ")
}

/// Answers that the page does not exist.
pub(super) async fn not_found() -> Response {
    page(StatusCode::NOT_FOUND, "There is no such page", "The address may be of another version of ollim-bot.")
}
