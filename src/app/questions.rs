//! Questions of jobs and the person's answers. The answer "always" also changes the job's file: the rule that asked
//! moves to `allowed_tools`, exactly as it was shown, or out of `ask_tools` if the file has no allowlist.

use std::path::PathBuf;

use serde::Serialize;

use super::{App, ServiceCommand, ServiceReply, runs, service, unexpected_reply};
use crate::definition::{self, Definition, DefinitionError, Draft, RuleChange, diff};
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

/// An open question, with what "always" would change.
#[derive(Clone, Debug)]
pub struct OpenQuestion {
    /// The question.
    pub question: Question,
    /// The change of the job's file by the answer "always"; `None` if that answer is refused.
    pub by_always: Option<Change>,
}

impl App {
    /// Returns the open questions of a run, or of all runs, with what "always" would change now; and the last questions
    /// that have ended.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn questions(&self, of: Option<&RunId>) -> Result<(Vec<OpenQuestion>, Vec<Question>), Refusal> {
        self.require_person()?;
        let of_run = list(self)?.into_iter().filter(|question| of.is_none_or(|run| question.run == *run));
        let (open, ended): (Vec<_>, Vec<_>) = of_run.partition(|question| question.answer.is_none());
        let with_change = |question: Question| {
            let change =
                || Edit::of(&question, self).and_then(|edit| edit.texts(self).map(|texts| edit.change(&texts)));
            let by_always = question.always.as_ref().and_then(|_| change().ok());
            OpenQuestion { question, by_always }
        };
        Ok((open.into_iter().map(with_change).collect(), ended))
    }
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
        Answer::Always => Some(Edit::of(&find(number, app)?, app)?),
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
            Some(end) if self.question.start => {
                format!(
                    "question {number} of {id} is answered: {}",
                    if end.allows() { "it may run" } else { "it is skipped" }
                )
            }
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

fn find(number: i64, app: &App) -> Result<Question, Refusal> {
    runs::open(app)?.question(number)?.ok_or_else(|| {
        Refusal::user(format!("there is no question {number}")).hint("`ollim-bot questions` shows those there are")
    })
}

/// A planned change of a job's file.
struct Edit {
    found: std::sync::Arc<Definition>,
    change: RuleChange,
}

impl Edit {
    fn of(question: &Question, app: &App) -> Result<Self, Refusal> {
        let number = question.number;
        if let Some(end) = question.end() {
            return Err(Refusal::user(format!("question {number} is already closed: {end}")));
        }
        let in_this_run = format!("`ollim-bot questions answer {number} run` allows it in this run");
        let rule = question.always.as_ref().and_then(|rule| ToolPattern::parse(rule).ok()).ok_or_else(|| {
            Refusal::user(format!("`{}` cannot be allowed always: no file could grant it", question.asked_rule))
                .hint(&in_this_run)
        })?;
        let found = app.load_with([question.id.as_str()])?.definitions.get(&question.id).cloned().ok_or_else(|| {
            Refusal::user(format!("the file of {} is gone, so nothing can be allowed always", question.id))
                .hint(&in_this_run)
        })?;
        // The answer "always" is for the job that asked, rather than for a file that has changed since.
        if !is_as_it_fired(&question.run, &Draft::from(&*found), &found, app)? {
            return Err(
                Refusal::user(format!("{} was changed since the job asked", found.file.display())).hint(&in_this_run)
            );
        }
        let change = RuleChange::of(&found, &rule).ok_or_else(|| {
            let why = format!("`ask_tools` in {} does not hold `{rule}` any more", found.file.display());
            Refusal::user(why).hint(&in_this_run)
        })?;
        Ok(Self { found, change })
    }

    /// Returns the text of the file before and after the change.
    fn texts(&self, app: &App) -> Result<(String, String), Refusal> {
        let file = &self.found.file;
        let gone = || DefinitionError::NotFound { file: file.clone() };
        let old = app.text_of(file)?.ok_or_else(gone)?;
        let new = definition::changed_text(file, &old, &self.change.fields, None)?;
        Ok((old, new))
    }

    fn change(&self, (old, new): &(String, String)) -> Change {
        Change { file: self.found.file.clone(), diff: diff(old, new) }
    }

    /// Writes the change, if the file then has the expected content.
    fn write(self, app: &App) -> Result<Change, Refusal> {
        let texts @ (old, new) = &self.texts(app)?;
        app.replace_text_of((&self.found.file, old, new), &app.defaults()?, |changed| {
            match Draft::from(changed) == self.change.expected {
                true => Ok(()),
                false => Err(DefinitionError::Refused { why: "the file was changed meanwhile".into() }),
            }
        })?;
        Ok(self.change(texts))
    }
}

/// Whether a file is the same as when one of its runs began, except for what answers change.
fn is_as_it_fired(run: &RunId, now: &Draft, found: &Definition, app: &App) -> Result<bool, Refusal> {
    let text = runs::open(app)?.run(run)?.and_then(|run| run.definition).unwrap_or_default();
    let fired = definition::parse(found.kind(), &found.file, text.as_bytes(), &app.defaults()?).definition;
    let lists_aside = |draft: Draft| Draft { ask_tools: None, ask: None, allowed_tools: None, run_at: None, ..draft };
    Ok(fired.is_some_and(|fired| lists_aside(Draft::from(&fired)) == lists_aside(now.clone())))
}
