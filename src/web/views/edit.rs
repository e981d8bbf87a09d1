//! A job's file in a form.

use std::path::Path;

use maud::{Markup, html};

use crate::channel::terminal::visible;
use crate::web::context::Context;
use crate::web::parts::{self, link};

/// Why an edit was not saved.
pub(in crate::web) struct Unsaved {
    /// The problems, each with the line that it quotes.
    pub problems: Vec<(String, Option<String>)>,
    /// The file as it is, if it was changed since it was opened.
    pub changed: Option<String>,
}

/// Renders the form. `seen`: the hash of the text when it was opened; `new`: the edited text.
pub(in crate::web) fn edit(
    (id, file): (&str, &Path),
    seen: &str,
    new: &str,
    unsaved: Option<&Unsaved>,
    context: &Context,
) -> Markup {
    let form = link("/jobs/", id, "/edit");
    html! {
        h1 { "Edit " (id) }
        @if let Some(Unsaved { problems, .. }) = unsaved {
            div .bad role="alert" {
                p { "It was not saved:" }
                ul {
                    @for (problem, line) in problems {
                        li { (parts::with_code(problem)) @if let Some(line) = line { pre { (visible(line)) } } }
                    }
                }
            }
        }
        form .edit data-keep="" method="post" action=(form) {
            (parts::token(context))
            input type="hidden" name="seen" value=(seen);
            label for="text" { code { (file.display()) } }
            // HTML ignores the first line feed of a text area.
            textarea id="text" name="new" rows=(new.lines().count().clamp(12, 40)) spellcheck="false" { "\n" (new) }
            div .buttons { button { "Check and save" } a .button href=(link("/jobs/", id, "")) { "Cancel" } }
        }
        @if let Some(now) = unsaved.and_then(|unsaved| unsaved.changed.as_ref()) {
            div .head {
                h2 { "The file as it is now" }
                a .button href=(form) { "Open it again" }
            }
            pre .file tabindex="0" role="region" aria-label="The file as it is now" { (visible(now)) }
        }
    }
}
