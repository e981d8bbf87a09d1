//! A job's file in a form.

use std::path::Path;

use maud::{Markup, html};

use crate::web::context::Context;
use crate::web::parts::{self, link};

/// `seen`: the hash of the text when it was opened; `new`: the edited text; `problems`: why it was not saved.
pub(in crate::web) fn edit(
    id: &str,
    file: &Path,
    seen: &str,
    new: &str,
    problems: &[String],
    context: &Context,
) -> Markup {
    html! {
        h1 { "Edit " (id) }
        @if !problems.is_empty() {
            div .bad role="alert" {
                p { "It was not saved:" }
                ul { @for problem in problems { li { (parts::with_code(problem)) } } }
            }
        }
        form .edit data-keep="" method="post" action=(link("/jobs/", id, "/edit")) {
            (parts::token(context))
            input type="hidden" name="seen" value=(seen);
            label for="text" { code { (file.display()) } }
            // HTML ignores the first line feed of a text area.
            textarea id="text" name="new" rows=(new.lines().count().clamp(12, 40)) spellcheck="false" { "\n" (new) }
            div .buttons { button { "Check and save" } a .button href=(link("/jobs/", id, "")) { "Cancel" } }
        }
    }
}
