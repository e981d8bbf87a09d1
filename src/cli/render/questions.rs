//! Renders the questions of jobs, and the result of an answer.

use serde_json::json;

use super::View;
use crate::app::{AnswerResult, times};
use crate::channel::terminal::plain_lines;
use crate::cli::output::{FAINT, Output, STRONG, paint};
use crate::journal::Question;

/// Lists open questions in full, and recently ended ones in a line each.
pub(super) fn list(questions: &[Question], view: &View, output: &mut Output) {
    if view.json {
        output.json(&questions);
        return;
    }
    if questions.is_empty() {
        output.note("no job has asked anything");
        return;
    }
    for question in questions {
        let Question { number, id, asked_rule, call, .. } = question;
        let title = format!("{number}  {}", plain_lines(id.as_str()));
        match question.end() {
            Some(end) => {
                let first = call.lines().next().unwrap_or_default();
                let short: String = first.chars().take(80).collect();
                let cut = if short.len() < call.len() { "…" } else { "" };
                output.line(format!("{title}  {}{cut}  {}", plain_lines(&short), paint(FAINT, &end)));
            }
            None if question.start => {
                let until = times::relative(question.deadline, view.now);
                output.line(format!("{}  is to run, and asks first; the deadline is {until}", paint(STRONG, &title)));
                plain_lines(call).lines().for_each(|line| output.line(format!("  {line}")));
                output.note(paint(FAINT, &format!("`ollim-bot questions answer {number} run`, or skip")));
            }
            None => {
                let until = times::relative(question.deadline, view.now);
                output.line(format!("{}  `{asked_rule}` asks; the deadline is {until}", paint(STRONG, &title)));
                plain_lines(call).lines().for_each(|line| output.line(format!("  {line}")));
                let always = if question.always.is_some() { "always, " } else { "" };
                output
                    .note(paint(FAINT, &format!("`ollim-bot questions answer {number} allow`, or run, {always}deny")));
            }
        }
    }
}

/// Renders the result of an answer.
pub(super) fn answered(answered: &AnswerResult, view: &View, output: &mut Output) {
    if view.json {
        let AnswerResult { question, change } = answered;
        let not_changed = change.as_ref().and_then(|change| change.as_ref().err());
        let change = change.as_ref().and_then(|change| change.as_ref().ok());
        output.json(&json!({ "question": question, "change": change, "not_changed": not_changed }));
        return;
    }
    plain_lines(&answered.words()).lines().for_each(|line| output.line(line));
}
