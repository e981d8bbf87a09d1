//! Questions of jobs and the person's answers. The answer "always" also changes the job's file: the rule that asked
//! moves to `allowed_tools`, exactly as it was shown, or out of `ask_tools` if the file has no allowlist.

use std::path::PathBuf;

use serde::Serialize;

use super::{App, ServiceCommand, ServiceReply, runs, service, unexpected_reply};
use crate::definition::{self, Definition, DefinitionError, Draft, FieldValue};
use crate::journal::{Answer, Question, RunId};
use crate::policy::ToolPattern;
use crate::refusal::Refusal;

/// Number of answered or expired questions to list.
const RECENT: u32 = 20;

/// The result of an answer.
#[derive(Clone, Debug)]
pub struct AnswerResult {
    /// The question after the answer.
    pub question: Question,
    /// The change of the job's file, or why it was not made; `None` if there was none to make.
    pub change: Option<Result<Change, String>>,
}

/// A change of a job's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The file, relative to the data folder.
    pub file: PathBuf,
    /// Removed lines (`-`) and added lines (`+`).
    pub diff: Vec<String>,
}

/// Returns the open questions, and the last ones that have ended.
pub(super) fn list(app: &App) -> Result<Vec<Question>, Refusal> {
    Ok(runs::open(app)?.questions(RECENT)?)
}

/// Answers a question. For "always" also changes the job's file.
pub(super) fn answer(
    number: i64,
    answer: Answer,
    sentence: Option<String>,
    channel: String,
    app: &App,
) -> Result<AnswerResult, Refusal> {
    app.require_person()?;
    if sentence.is_some() && answer != Answer::Deny {
        return Err(Refusal::user("only a no has a sentence").hint("what is allowed runs at once, and nobody reads it"));
    }
    let edit = match answer {
        Answer::Always => Some(Edit::of(number, app)?),
        _ => None,
    };
    let asked = ServiceCommand::Answer { question: number, answer, sentence, channel };
    let ServiceReply::Answered(question) = service::ask(asked, app)? else { return Err(unexpected_reply()) };
    let change = edit.map(|edit| edit.write(app).map_err(|error| error.to_string()));
    Ok(AnswerResult { question: *question, change })
}

impl AnswerResult {
    /// Returns the result in words for the person.
    #[must_use]
    pub fn words(&self) -> String {
        let Question { number, id, asked_rule, answer, .. } = &self.question;
        let said = match answer {
            Some(end) => format!("question {number} of {id} is answered: {end}"),
            None => format!("question {number} of {id} is open"),
        };
        match &self.change {
            None => said,
            Some(Ok(Change { file, diff })) => format!("{said}\n{}:\n{}", file.display(), diff.join("\n")),
            Some(Err(why)) => format!(
                "{said}, and its file was not changed, so `{asked_rule}` will be asked about again in later runs: {why}"
            ),
        }
    }
}

/// A planned change of a job's file.
struct Edit {
    found: std::sync::Arc<Definition>,
    fields: Vec<(&'static str, Option<FieldValue>)>,
    /// The content of the file after the change.
    expected: Draft,
}

impl Edit {
    fn of(number: i64, app: &App) -> Result<Self, Refusal> {
        let question = runs::open(app)?.question(number)?;
        let question = question.ok_or_else(|| {
            Refusal::user(format!("there is no question {number}")).hint("`ollim-bot questions` shows those there are")
        })?;
        if let Some(end) = question.end() {
            return Err(Refusal::user(format!("question {number} was already answered: {end}")));
        }
        let in_this_run = format!("`ollim-bot questions answer {number} run` allows it in this run");
        let rule = question.always.and_then(|rule| ToolPattern::parse(&rule).ok()).ok_or_else(|| {
            Refusal::user(format!("`{}` cannot be allowed always: no file could grant it", question.asked_rule))
                .hint(&in_this_run)
        })?;
        let found = app.load()?.definitions.get(&question.id).cloned().ok_or_else(|| {
            Refusal::user(format!("the file of {} is gone, so nothing can be allowed always", question.id))
                .hint(&in_this_run)
        })?;
        let mut expected = Draft::from(&*found);
        // The answer "always" is for the job that asked, rather than for a file that has changed since.
        if !is_as_it_fired(&question.run, &expected, &found, app)? {
            return Err(
                Refusal::user(format!("{} was changed since the job asked", found.file.display())).hint(&in_this_run)
            );
        }
        let asks = expected.ask_tools.get_or_insert_default();
        let before = asks.len();
        asks.retain(|asked| *asked != rule);
        if asks.len() == before {
            return Err(Refusal::user(format!(
                "`ask_tools` in {} does not hold `{rule}` any more",
                found.file.display()
            ))
            .hint(&in_this_run));
        }
        let texts = |patterns: &[ToolPattern]| FieldValue::Texts(patterns.iter().map(ToString::to_string).collect());
        let mut fields = vec![("ask_tools", Some(texts(asks)).filter(|_| !asks.is_empty()))];
        if asks.is_empty() {
            expected.ask_tools = None;
        }
        if let Some(allowed) = &mut expected.allowed_tools
            && !allowed.contains(&rule)
        {
            allowed.push(rule);
            fields.push(("allowed_tools", Some(texts(allowed))));
        }
        Ok(Self { found, fields, expected })
    }

    /// Writes the change, if the file then has the expected content.
    fn write(self, app: &App) -> Result<Change, Refusal> {
        let Self { found, fields, expected } = self;
        let gone = || DefinitionError::NotFound { file: found.file.clone() };
        let old = definition::read_text(&app.home, &found.file)?.ok_or_else(gone)?;
        let new = definition::changed_text(&found.file, &old, &fields, None)?;
        definition::replace_text(&app.home, &found.file, &old, &new, &app.defaults()?, |changed| {
            match Draft::from(changed) == expected {
                true => Ok(()),
                false => Err(DefinitionError::Refused { why: "the file was changed meanwhile".into() }),
            }
        })?;
        Ok(Change { file: found.file.clone(), diff: diff(&old, &new) })
    }
}

/// Whether a file is the same as when one of its runs began, except for the lists that answers change.
fn is_as_it_fired(run: &RunId, now: &Draft, found: &Definition, app: &App) -> Result<bool, Refusal> {
    let text = runs::open(app)?.run(run)?.and_then(|run| run.definition).unwrap_or_default();
    let fired = definition::parse(found.kind(), &found.file, text.as_bytes(), &app.defaults()?).definition;
    let lists_aside = |draft: Draft| Draft { ask_tools: None, allowed_tools: None, run_at: None, ..draft };
    Ok(fired.is_some_and(|fired| lists_aside(Draft::from(&fired)) == lists_aside(now.clone())))
}

/// Returns the lines of each text that are missing in the other.
fn diff(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    // Longest common subsequence: `longest[i][j]` is its length for the rest of both texts from lines `i` and `j` on.
    let mut longest = vec![vec![0u32; new.len() + 1]; old.len() + 1];
    for (i, was) in old.iter().enumerate().rev() {
        for (j, is) in new.iter().enumerate().rev() {
            longest[i][j] =
                if was == is { longest[i + 1][j + 1] + 1 } else { longest[i + 1][j].max(longest[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j < new.len() && (i == old.len() || longest[i][j + 1] > longest[i + 1][j]) {
            lines.push(format!("+{}", new[j]));
            j += 1;
        } else {
            lines.push(format!("-{}", old[i]));
            i += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::diff;

    #[test]
    fn a_diff_has_what_differs() {
        assert_eq!(diff("a\nb\nc\n", "a\nc\nd\n"), ["-b", "+d"]);
        assert_eq!(diff("a\n- x\nb\n- y\n", "a\n- x\n- y\nb\n"), ["-b", "+b"]);
        assert_eq!(diff("a", "a"), [""; 0]);
    }
}
