//! The questions of jobs.

use maud::{Markup, html};

use crate::channel::terminal::plain_lines;
use crate::journal::Question;
use crate::web::context::Context;
use crate::web::parts;

pub(in crate::web) fn questions(questions: &[Question], context: &Context) -> Markup {
    let (waiting, ended): (Vec<_>, Vec<_>) = questions.iter().partition(|question| question.answer.is_none());
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
pub(in crate::web) fn open(question: &Question, run: Option<&str>, context: &Context) -> Markup {
    let back = run.map(|run| format!("?run={run}")).unwrap_or_default();
    let action = format!("/questions/{}{back}", question.number);
    let answers: &[(&str, &str)] = if question.start {
        &[("run", "Run it"), ("deny", "Skip it")]
    } else if question.always.is_some() {
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
            @if let Some(rule) = &question.always {
                p .faint { "Always allows " code { (plain_lines(rule)) } " from now on: the job's file asks about it no more." }
            }
            p .faint { "Until " (context.moment(question.deadline)) ". " a href=(parts::run(question.run.as_str())) { "Its run" } }
            div .buttons {
                @for (answer, label) in answers { (parts::button(&action, label, &[("answer", answer)], context)) }
            }
        }
    }
}
