//! The questions of jobs.

use maud::{Markup, html};

use crate::app::{Change, OpenQuestion};
use crate::channel::terminal::plain_lines;
use crate::journal::Question;
use crate::web::context::Context;
use crate::web::parts;

/// Renders the open questions, and the last ones that have ended.
pub(in crate::web) fn questions(waiting: &[OpenQuestion], ended: &[Question], context: &Context) -> Markup {
    html! {
        h1 { "Questions" }
        @if waiting.is_empty() { p .empty { "No job asks anything." } }
        @for question in waiting { (open(question, None, context)) }
        @if !ended.is_empty() {
            h2 { "Answered" }
            ul {
                @for question in ended {
                    li {
                        (parts::job(question.id.as_str())) ": "
                        code { (question.call.lines().next().unwrap_or_default().chars().take(120).collect::<String>()) }
                        " " span .faint { (question.end().unwrap_or_default()) }
                    }
                }
            }
        }
    }
}

/// Renders an open question with its answers. `run`: the run whose page the answer returns to.
pub(in crate::web) fn open(asked: &OpenQuestion, run: Option<&str>, context: &Context) -> Markup {
    let OpenQuestion { question, by_always } = asked;
    let back = run.map(|run| format!("?run={run}")).unwrap_or_default();
    let action = format!("/questions/{}{back}", question.number);
    let answers: &[(&str, &str)] = if question.start {
        &[("run", "Run it"), ("deny", "Skip it")]
    } else if by_always.is_some() {
        &[("once", "Allow once"), ("run", "Allow in this run"), ("always", "Always"), ("deny", "Deny")]
    } else {
        &[("once", "Allow once"), ("run", "Allow in this run"), ("deny", "Deny")]
    };
    html! {
        section .question {
            h2 {
                (parts::job(question.id.as_str()))
                @if question.start { " is to run, and asks first" } @else { ": " code { (question.asked_rule) } " asks" }
            }
            pre { (plain_lines(&question.call)) }
            @if let Some(Change { file, diff }) = by_always {
                p .faint {
                    "Always allows " code { (plain_lines(&question.asked_rule)) } " from now on. It changes "
                    code { (plain_lines(&file.display().to_string())) } ":"
                }
                pre { (plain_lines(&diff.join("\n"))) }
            }
            p .faint { "Until " (context.moment(question.deadline)) ". " a href=(parts::run(question.run.as_str())) { "Its run" } }
            div .buttons {
                @for (answer, label) in answers { (parts::button(&action, label, &[("answer", answer)], context)) }
            }
        }
    }
}
