//! Approval of a run: a job with `approve` waits for the person's approval.
//!
//! The question is in the journal like those about calls. It survives a restart, since nothing of the run has begun. No run waits
//! for it: the schedule checks the answer when one is given. [`Questions::end_silent_starts`] ends what nobody has answered.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::{Questions, shown};
use crate::definition::Definition;
use crate::hexadecimal::sha256;
use crate::journal::{Button, JournalError, NOT_APPROVED, NewMessage, NewQuestion, Question, QuestionEnd, RichContent};
use crate::policy::AskTerms;
use crate::schedule::{Approval, Job};

/// Maximum length of a description or a body that the person is shown, in characters.
const SHOWN: usize = 500;

impl Questions {
    /// Ends questions about the start of a run when their deadlines pass, also while no slot is free for the run. Never returns.
    pub async fn end_silent_starts(self) {
        loop {
            let pause = match self.end_overdue_starts().await {
                Ok(None) => Duration::MAX,
                // The clock may be set meanwhile.
                Ok(Some(deadline)) => {
                    (deadline - self.clock.now()).to_std().unwrap_or_default().clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
                }
                Err(error) => {
                    tracing::warn!(%error, "whether the time of a question has passed is not known; trying again");
                    LONGEST_PAUSE
                }
            };
            // A timeout means that a deadline has passed.
            let _ = tokio::time::timeout(pause, self.open.asked_for_start.notified()).await;
        }
    }

    /// Ends those whose deadlines have passed. Returns the next deadline of the others.
    async fn end_overdue_starts(&self) -> Result<Option<DateTime<Utc>>, JournalError> {
        let _ordered = self.open.ordered.lock().await;
        let questions = self.journal.questions_after(self.journal.ended_up_to().await?).await?;
        let open = questions.into_iter().filter(|question| question.start && question.answer.is_none());
        let (overdue, others): (Vec<_>, Vec<_>) = open.partition(|question| question.deadline <= self.clock.now());
        for question in overdue {
            self.end_silent_start(question).await?;
        }
        Ok(others.into_iter().map(|question| question.deadline).min())
    }

    /// Ends a question about a start whose deadline has passed. Returns its state afterwards.
    async fn end_silent_start(&self, question: Question) -> Result<Question, JournalError> {
        let ended = self.journal.end_question(question.number, QuestionEnd::SilenceDeny, None, None).await?;
        let (question, _) = ended.unwrap_or((question, false));
        self.announce_end(&question);
        Ok(question)
    }

    /// Ends a question about a start if its deadline has passed, so that no answer counts any more. The caller holds `ordered`.
    pub(super) async fn end_if_overdue(&self, number: i64) -> Result<(), JournalError> {
        let is_overdue = |one: &Question| one.start && one.answer.is_none() && one.deadline <= self.clock.now();
        if let Some(question) = self.journal.question(number).await?.filter(is_overdue) {
            self.end_silent_start(question).await?;
        }
        Ok(())
    }

    /// Returns whether a job may begin. Asks the person, whose time zone is `zone`, once for each occurrence and each text of its file: a
    /// yes is for the file that the person was asked about. A job that the person fired by hand is approved, and so is one for which an
    /// approval is no longer needed (`is_needed`).
    ///
    /// # Errors
    /// An error if the journal fails.
    pub(in crate::run) async fn approval(
        &self,
        job: &Job,
        text: &str,
        zone: Tz,
        is_needed: bool,
    ) -> Result<Approval, JournalError> {
        let _ordered = self.open.ordered.lock().await;
        let asked = self.journal.start_question(&job.run).await?;
        if !is_needed {
            // Ends an open question. The approval by hand survives a restart, like an answer.
            let end = if job.by_hand { QuestionEnd::Once } else { QuestionEnd::Ended };
            if let Some(question) = asked.filter(|one| one.answer.is_none()) {
                let ended = self.journal.end_question(question.number, end, None, None).await?;
                self.announce_end(&ended.map_or(question, |(question, _)| question));
            }
            return Ok(Approval::Granted);
        }
        let file = sha256(text.as_bytes());
        // A dropped question has no answer.
        let question = match asked.filter(|one| one.answer != Some(QuestionEnd::Ended)) {
            Some(question) if question.tool == file || question.start_refused().is_some() => question,
            other => {
                if let Some(question) = other.filter(|one| one.answer.is_none()) {
                    let ended = self.journal.end_question(question.number, QuestionEnd::Ended, None, None).await?;
                    self.announce_end(&ended.map_or(question, |(question, _)| question));
                }
                let is_made = job.definition.is_made_by_run();
                if is_made
                    && self.journal.open_start_questions(&job.run, &job.definition).await? >= super::MAX_OPEN_OF_RUN
                {
                    return Ok(Approval::AskedLater(self.clock.now() + ANSWERED_MEANWHILE));
                }
                if let Some(why) = self.asked_too_often(&job.run, &job.definition).await? {
                    return Ok(Approval::Refused(format!("{NOT_APPROVED}{why}")));
                }
                match what_runs(&job.definition) {
                    Some(call) => self.ask_for_start(job, call, file, zone).await?,
                    None => return Ok(Approval::Refused(TOO_LONG.to_owned())),
                }
            }
        };
        let now = self.clock.now();
        let question = match question.answer {
            None if question.deadline > now => return Ok(Approval::Waits(question.deadline)),
            None => self.end_silent_start(question).await?,
            Some(_) => question,
        };
        Ok(match question.answer {
            Some(end) if end.allows() => Approval::Granted,
            _ => Approval::Refused(question.not_approved()),
        })
    }

    /// `call`: what the person is shown. `file`: the hash of the file that they are asked about.
    async fn ask_for_start(&self, job: &Job, call: String, file: String, zone: Tz) -> Result<Question, JournalError> {
        let definition = Arc::clone(&job.definition);
        let terms = definition.background().map(|background| background.restrictions.ask_terms()).unwrap_or_default();
        let new = NewQuestion {
            run: job.run.clone(),
            id: definition.id.clone(),
            // An approval is about no tool.
            tool: file,
            call,
            asked_rule: "approve".to_owned(),
            always: None,
            waits: terms.deadline,
            start: true,
        };
        let asked = self.journal.ask(new, move |question| message(&definition, &terms, question, zone)).await;
        self.open.asked_for_start.notify_one();
        asked
    }
}

/// Time after which a job that another job has made is asked about, if too many questions are open now. An answer ends it sooner.
const ANSWERED_MEANWHILE: TimeDelta = TimeDelta::minutes(1);

/// Pauses between two looks for questions whose deadlines have passed.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Why a job that another job has made is not asked about.
const TOO_LONG: &str = "not approved: another job has made it, and its text is too long to be shown";

/// Returns what the person is shown of a job. The person wrote their own files, so the description is enough of these; a command, and what
/// a job has made, is shown whole. `None` if that is too long.
fn what_runs(definition: &Definition) -> Option<String> {
    let is_made = definition.is_made_by_run();
    let short = |text: &str| {
        let cut: String = text.chars().take(SHOWN).collect();
        if cut.len() < text.len() { format!("{cut}…") } else { cut }
    };
    let (description, body) = (definition.description.trim(), definition.body.trim());
    let what = match &definition.command {
        Some(command) => command.trim().to_owned(),
        None if is_made && !description.is_empty() => format!("{description}\n\n{body}"),
        None if is_made => body.to_owned(),
        None => short(if description.is_empty() { body } else { description }),
    };
    let gate = definition.gate.as_ref().filter(|_| is_made).map(|gate| format!("\n\ngate: {gate}"));
    let what = what + &gate.unwrap_or_default();
    let is_short = !is_made || what.chars().count() <= super::LONGEST;
    is_short.then(|| what.lines().map(shown::text).collect::<Vec<_>>().join("\n"))
}

fn message(definition: &Definition, terms: &AskTerms, question: &Question, zone: Tz) -> NewMessage {
    let Question { number, call, deadline, .. } = question;
    let title = format!("May {} run? (question {number})", shown::text(&definition.title()));
    let until = deadline.with_timezone(&zone).format("%H:%M:%S");
    let waits = humantime::format_duration(terms.deadline);
    let maker = definition.created_by.as_ref().map(|maker| format!("`{}` made it. ", shown::text(maker.as_str())));
    let silence = format!("Without an answer by {until} (in {waits}) it is skipped. Nothing of it begins before.");
    let silence = maker.unwrap_or_default() + &silence;
    let call = format!("```\n{}\n```", super::folded(call, *number));
    let text = format!("{title}\n\n{call}\n\n{silence}\nAnswer: `ollim-bot questions answer {number} run|skip`");
    let button =
        |(label, answer): (&str, &str)| Button { label: label.to_owned(), action: format!("answer:{number}:{answer}") };
    let rich = RichContent {
        title,
        description: call,
        fields: vec![("Silence".into(), silence)],
        buttons: [("Run", "once"), ("Skip", "deny")].into_iter().map(button).collect(),
        ..RichContent::default()
    };
    NewMessage {
        channel: terms.channel.clone().or_else(|| definition.channel.clone()),
        rich: Some(rich),
        ..NewMessage::asked_by(&question.run, definition, text)
    }
}
