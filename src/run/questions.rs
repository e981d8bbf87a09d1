//! Questions: a call that a rule of `ask_tools` matches waits here until the person answers or the deadline passes.
//!
//! A question is in the journal and in the outbox before any call waits for it. The first answer counts, and the journal decides which
//! one was first. Nothing is polled: an answer, the deadline or the end of the run wakes the waiting call. If several hosts share a
//! journal, each host checks the questions when another one has recorded something, since any host may take the answer.

mod shown;
mod starts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use chrono_tz::Tz;
use tokio::sync::{Notify, oneshot, watch};

pub(super) use self::shown::{program, tool};
use crate::clock::Clock;
use crate::definition::{self, Defaults, Definition, Kind, RuleChange};
use crate::home::Home;
use crate::journal::{
    Answer, Button, Journal, JournalError, NewMessage, NewQuestion, Question, QuestionEnd, RichContent, RunId, Subject,
};
use crate::policy::{AskDefault, AskTerms, BOT, ToolPattern};
use crate::refusal::Refusal;

/// Maximum number of open questions, of one run and of all runs together.
const MAX_OPEN_OF_RUN: usize = 8;
const MAX_OPEN: usize = 64;

/// Maximum number of questions of one run.
const MAX_OF_RUN: u32 = 30;

/// Maximum number of questions in an hour for all that descends from one job: jobs that it, or one of these, has made, and spawned agents.
/// Every question is a message, and each of these jobs is a new run.
const MAX_OF_DESCENDANTS: usize = 16;

/// Maximum length of a call that the person is asked about, in characters as shown.
const LONGEST: usize = 16_000;

/// Length from which a call is folded in the message, and the lengths of the beginning and the end that stay, in characters.
const FOLDED: usize = 3000;
const BEGINNING: usize = 1500;
const END: usize = 500;

/// Maximum number of shown lines of a change, and of characters in each.
const MAX_LINES: usize = 10;
const LONGEST_LINE: usize = 120;

/// The open questions of all runs. Clones share them.
#[derive(Clone, Debug)]
pub struct Questions {
    home: Home,
    defaults: Defaults,
    journal: Journal,
    clock: Clock,
    open: Arc<OpenQuestions>,
}

#[derive(Debug, Default)]
struct OpenQuestions {
    /// Held from a question's commit until its call waits, so that no answer can come before.
    ordered: tokio::sync::Mutex<()>,
    waiting: Mutex<BTreeMap<i64, WaitingCall>>,
    /// Notified when a question about a start is asked.
    asked_for_start: Notify,
    /// The questions whose end was already reported here. Used only if several hosts share the journal.
    said: Mutex<BTreeSet<i64>>,
}

/// A call that waits for an answer.
#[derive(Debug)]
struct WaitingCall {
    run: RunId,
    rule: String,
    granted: ApprovedRules,
    told: oneshot::Sender<Question>,
}

/// The rules that the person has approved for the rest of a run.
type ApprovedRules = Arc<Mutex<BTreeSet<String>>>;

impl Questions {
    /// Creates an empty set of questions. See [`end_left_open`](Self::end_left_open) for those of the previous process.
    #[must_use]
    pub fn new(home: Home, defaults: Defaults, journal: Journal, clock: Clock) -> Self {
        Self { home, defaults, journal, clock, open: Arc::default() }
    }

    /// Follows answers given on other hosts, with a delay of about a second. Never returns.
    pub async fn follow(self) {
        let Some(mut news) = self.journal.news_of_hosts() else { return std::future::pending().await };
        let mut before = None;
        loop {
            news.mark_unchanged();
            if let Err(error) = self.report_ended(&mut before).await {
                tracing::warn!(%error, "whether questions were answered on another host is not known; trying again");
            }
            if news.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Reports the questions after number `before` that have ended. `None`: the first call reports only those that wait here.
    async fn report_ended(&self, before: &mut Option<i64>) -> Result<(), JournalError> {
        let _ordered = self.open.ordered.lock().await;
        let is_first = before.is_none();
        let after = match *before {
            Some(after) => after,
            None => self.journal.ended_up_to().await?,
        };
        let questions = self.journal.questions_after(after).await?;
        for question in questions.iter().filter(|question| question.answer.is_some()) {
            if is_first && !self.waiting().contains_key(&question.number) {
                lock(&self.open.said).insert(question.number);
            } else if !lock(&self.open.said).contains(&question.number) {
                self.ended_with_others(question).await?;
            }
        }
        let first_open = questions.iter().find(|question| question.answer.is_none());
        let ended = first_open.map(|open| open.number - 1).or(questions.last().map(|last| last.number));
        let ended = ended.unwrap_or(after);
        lock(&self.open.said).retain(|said| *said > ended);
        *before = Some(ended);
        Ok(())
    }

    /// Returns why a run may not ask now, if too much was asked for the descendants of one job. The caller holds `ordered` until it has
    /// asked.
    async fn asked_too_often(&self, run: &RunId, definition: &Definition) -> Result<Option<String>, JournalError> {
        if !definition.is_made_by_run() {
            return Ok(None);
        }
        let since = self.clock.now() - TimeDelta::hours(1);
        let asked = self.journal.questions_of_descendants(run, definition, since).await?;
        Ok((asked >= MAX_OF_DESCENDANTS).then(|| {
            format!("the person was asked {MAX_OF_DESCENDANTS} times within an hour for jobs and agents that one job has made")
        }))
    }

    fn announce_end(&self, question: &Question) {
        if self.journal.hosts().is_some() && !lock(&self.open.said).insert(question.number) {
            return;
        }
        self.journal.announce_ended_question(question);
    }

    /// Ends the questions of the previous process, and notifies the person. Call it once, at the start.
    ///
    /// # Errors
    /// An error if the commit fails.
    pub async fn end_left_open(&self) -> Result<usize, JournalError> {
        self.journal
            .end_questions_left_open(|question| {
                let text = format!(
                    "Question {} of {} needs no answer any more. It was denied: the service restarted.",
                    question.number, question.id
                );
                NewMessage::about(Subject::words_of(&question.id), text)
            })
            .await
    }

    /// Records the person's answer to a question. An answer for the whole run also ends other questions of the same run and rule.
    /// `channel` is where the person answers; `sentence` is the reason that the agent gets with a denial. Returns the question.
    ///
    /// # Errors
    /// An error if there is no such question, or it has been answered.
    pub async fn answer(
        &self,
        number: i64,
        answer: Answer,
        sentence: Option<String>,
        channel: &str,
    ) -> Result<Question, Refusal> {
        let _ordered = self.open.ordered.lock().await;
        self.end_if_overdue(number).await?;
        let channel = Some(channel.to_owned());
        let ended = self.journal.end_question(number, answer.into(), sentence, channel).await?;
        let question = match ended {
            None => {
                return Err(Refusal::user(format!("there is no question {number}"))
                    .hint("`ollim-bot questions` shows those there are"));
            }
            Some((question, false)) => {
                let end = question.end().unwrap_or_default();
                return Err(Refusal::user(format!("question {number} is already closed: {end}")));
            }
            Some((question, true)) => question,
        };
        self.ended_with_others(&question).await?;
        Ok(question)
    }

    /// Wakes the call of a question that has ended. An answer for the whole run also ends the run's other questions of the same rule.
    async fn ended_with_others(&self, question: &Question) -> Result<(), JournalError> {
        let others = self.same(question);
        self.wake_waiter(question);
        let Some(end @ (QuestionEnd::Run | QuestionEnd::Always)) = question.answer else { return Ok(()) };
        for other in others {
            let ended = self.journal.end_question(other, end, None, question.channel.clone()).await?;
            if let Some((other, true)) = ended {
                self.wake_waiter(&other);
            }
        }
        Ok(())
    }

    /// Returns the open questions of the same run and rule.
    fn same(&self, question: &Question) -> Vec<i64> {
        let waiting = self.waiting();
        let is_same = |number: &i64, one: &WaitingCall| {
            *number != question.number && one.run == question.run && one.rule == question.asked_rule
        };
        let same = waiting.iter().filter(|(number, one)| is_same(number, one));
        same.map(|(number, _)| *number).collect()
    }

    /// Wakes the call that waits for a question that has ended.
    fn wake_waiter(&self, question: &Question) {
        self.announce_end(question);
        let Some(waiting) = self.waiting().remove(&question.number) else { return };
        if matches!(question.answer, Some(QuestionEnd::Run | QuestionEnd::Always)) {
            lock(&waiting.granted).insert(waiting.rule);
        }
        // The call may have been dropped.
        let _ = waiting.told.send(question.clone());
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<i64, WaitingCall>> {
        lock(&self.open.waiting)
    }
}

/// The questions of one run.
#[derive(Debug)]
pub(super) struct RunQuestions {
    questions: Questions,
    run: RunId,
    definition: Arc<Definition>,
    terms: AskTerms,
    /// The run's time limit, which includes the time of waiting.
    timeout: Duration,
    /// The person's time zone.
    zone: Tz,
    /// The run's tools if its file has no allowlist.
    main_tools: Vec<ToolPattern>,
    granted: ApprovedRules,
    /// Number of questions asked so far; `None` once the run is over.
    asked: Mutex<Option<u32>>,
    /// Number of calls that are waiting now.
    waiting_for_person: watch::Sender<u32>,
    /// Whether the person has refused a call.
    refused: AtomicBool,
}

impl RunQuestions {
    pub(super) fn new(
        questions: Questions,
        run: RunId,
        definition: Arc<Definition>,
        timeout: Duration,
        main_tools: Vec<ToolPattern>,
        zone: Tz,
    ) -> Self {
        let terms = definition.background().map(|background| background.restrictions.ask_terms()).unwrap_or_default();
        Self {
            questions,
            run,
            definition,
            terms,
            timeout,
            zone,
            main_tools,
            granted: ApprovedRules::default(),
            asked: Mutex::new(Some(0)),
            waiting_for_person: watch::Sender::new(0),
            refused: AtomicBool::default(),
        }
    }

    /// Returns the number of calls that wait for the person.
    pub(super) fn waiting_for_person(&self) -> watch::Receiver<u32> {
        self.waiting_for_person.subscribe()
    }

    /// Returns whether the person has approved a rule for the rest of the run.
    pub(super) fn is_granted(&self, rule: &str) -> bool {
        lock(&self.granted).contains(rule)
    }

    /// Returns whether the person has refused a call of the run.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Asks the person about a call, and waits. `rule` is the rule that asks; `call` is the whole call as it is shown.
    ///
    /// # Errors
    /// A sentence for the agent if the call may not run.
    pub(super) async fn ask(&self, rule: &str, tool: &str, call: String) -> Result<(), String> {
        if self.is_granted(rule) {
            return Ok(());
        }
        if call.chars().count() > LONGEST {
            return Err(format!(
                "denied: the person would be asked, and this call is too long to be shown ({LONGEST} characters at most); pass \
                 what is long in a file, or in several calls"
            ));
        }
        let Some((number, told)) = self.put(rule, tool, call).await? else { return Ok(()) };
        let _parked = WaitGuard::one(&self.waiting_for_person);
        let mut open = QuestionGuard { questions: &self.questions, number: Some(number) };
        let question = match tokio::time::timeout(self.terms.deadline, told).await {
            Ok(Ok(question)) => question,
            Ok(Err(_)) => return Err("denied: the run has ended".into()),
            Err(_) => self.end_unanswered(number).await?,
        };
        open.number = None;
        let end = question.answer.unwrap_or(QuestionEnd::Ended);
        if matches!(end, QuestionEnd::Run | QuestionEnd::Always) {
            lock(&self.granted).insert(rule.to_owned());
        }
        if end == QuestionEnd::Deny {
            self.refused.store(true, Ordering::Relaxed);
        }
        match end {
            end if end.allows() => Ok(()),
            QuestionEnd::Deny => Err(match &question.sentence {
                Some(sentence) => format!("denied by the person: {sentence}"),
                None => "denied by the person; do not try it in another way".into(),
            }),
            QuestionEnd::SilenceDeny if self.terms.default == AskDefault::Allow => {
                Err("denied: silence would allow it, but no channel could deliver the question to the person in time"
                    .into())
            }
            QuestionEnd::SilenceDeny => {
                let waited = humantime::format_duration(self.terms.deadline);
                Err(format!("denied: the person was asked and did not answer within {waited}"))
            }
            end => Err(format!("denied: the question was {end}")),
        }
    }

    /// Records the question; `None` if the person has approved the rule for the whole run meanwhile.
    async fn put(
        &self,
        rule: &str,
        tool: &str,
        call: String,
    ) -> Result<Option<(i64, oneshot::Receiver<Question>)>, String> {
        let _ordered = self.questions.open.ordered.lock().await;
        if self.is_granted(rule) {
            return Ok(None);
        }
        {
            let waiting = self.questions.waiting();
            let own = waiting.values().filter(|one| one.run == self.run).count();
            if own >= MAX_OPEN_OF_RUN || waiting.len() >= MAX_OPEN {
                return Err(format!(
                    "denied: {} questions to the person are open already; wait for their answers first",
                    if own >= MAX_OPEN_OF_RUN { own } else { waiting.len() }
                ));
            }
        }
        let too_often = self.questions.asked_too_often(&self.run, &self.definition).await;
        if let Some(why) = too_often.map_err(|error| format!("denied: the person could not be asked ({error})"))? {
            return Err(format!("denied: {why}, and is not asked again now"));
        }
        match &mut *lock(&self.asked) {
            None => return Err("denied: the run has ended".into()),
            Some(asked) if *asked >= MAX_OF_RUN => {
                return Err(format!(
                    "denied: this run has asked the person {MAX_OF_RUN} times already, and may not again"
                ));
            }
            Some(asked) => *asked += 1,
        }
        let change = if self.can_be_saved_as_rule(rule) { self.change_by_always(rule).await } else { None };
        let new = NewQuestion {
            run: self.run.clone(),
            id: self.definition.id.clone(),
            tool: tool.to_owned(),
            call,
            asked_rule: rule.to_owned(),
            always: change.is_some().then(|| rule.to_owned()),
            waits: self.terms.deadline,
            start: false,
        };
        let (definition, terms) = (self.definition.clone(), self.terms.clone());
        let message = Message { definition, terms, timeout: self.timeout, zone: self.zone, change };
        let question = self.questions.journal.ask(new, move |question| message.of(question)).await;
        let question = question.map_err(|error| format!("denied: the person could not be asked ({error})"))?;
        let (told, answer) = oneshot::channel();
        let (run, rule, granted) = (self.run.clone(), rule.to_owned(), self.granted.clone());
        self.questions.waiting().insert(question.number, WaitingCall { run, rule, granted, told });
        Ok(Some((question.number, answer)))
    }

    /// Ends a question whose deadline has passed. An answer that was recorded first counts instead.
    async fn end_unanswered(&self, number: i64) -> Result<Question, String> {
        let end = match self.terms.default {
            AskDefault::Allow => QuestionEnd::SilenceAllow,
            AskDefault::Deny => QuestionEnd::SilenceDeny,
        };
        self.questions.waiting().remove(&number);
        let ended = self.questions.journal.end_question(number, end, None, None).await;
        let ended = ended.map_err(|error| format!("denied, since it could not be recorded ({error})"))?;
        let (question, _) = ended.ok_or("denied: the question is gone")?;
        self.questions.announce_end(&question);
        Ok(question)
    }

    /// Returns whether a job's file with this rule would grant the calls that the rule asks about, in later runs. A
    /// reminder's file has none. That of a made job would have more rights than its maker's.
    fn can_be_saved_as_rule(&self, rule: &str) -> bool {
        let Some(background) = self.definition.background() else { return false };
        let in_main_tools = || {
            let pattern = ToolPattern::parse(rule).ok();
            pattern.is_some_and(|pattern| self.main_tools.iter().any(|grant| BOT.covers(grant, &pattern)))
        };
        matches!(self.definition.kind(), Kind::Routine | Kind::Webhook)
            && self.definition.created_by.is_none()
            && (background.restrictions.allowed_tools().is_some() || in_main_tools())
    }

    /// Returns the lines by which the answer "always" would change the job's file. `None` if the file does not have the rule, which may be
    /// a maker's.
    async fn change_by_always(&self, rule: &str) -> Option<Vec<String>> {
        let (file, Questions { home, defaults, journal, .. }) = (&self.definition.file, &self.questions);
        // The file may have changed since the run began, for example by an earlier answer.
        let old = match definition::pushed_id(file) {
            None => definition::read_text(home, file).ok()??,
            Some(id) => journal.read(|journal| journal.pushed(std::slice::from_ref(&id))).await.ok()?.pop()?.text,
        };
        let found = definition::parse(self.definition.kind(), file, old.as_bytes(), defaults).definition?;
        let change = RuleChange::of(&found, &ToolPattern::parse(rule).ok()?)?;
        let new = definition::changed_text(file, &old, &change.fields, None).ok()?;
        Some(definition::diff(&old, &new))
    }

    /// Ends the run's open questions. It cannot ask any more.
    pub(super) async fn close(&self) {
        let _ordered = self.questions.open.ordered.lock().await;
        *lock(&self.asked) = None;
        self.questions.waiting().retain(|_, one| one.run != self.run);
        match self.questions.journal.end_questions_of(&self.run).await {
            Ok(ended) => ended.iter().for_each(|question| self.questions.announce_end(question)),
            Err(error) => {
                tracing::error!(run = %self.run, %error, "the end of its questions could not be recorded");
            }
        }
    }
}

/// A guard that ends its question when the waiting call is dropped.
struct QuestionGuard<'a> {
    questions: &'a Questions,
    number: Option<i64>,
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.questions.waiting().remove(&number);
            let questions = self.questions.clone();
            self.questions.journal.drop_question(number, move |ended| questions.announce_end(&ended));
        }
    }
}

/// A guard that counts one waiting call while it exists.
struct WaitGuard<'a>(&'a watch::Sender<u32>);

impl<'a> WaitGuard<'a> {
    fn one(waiting_for_person: &'a watch::Sender<u32>) -> Self {
        waiting_for_person.send_modify(|count| *count += 1);
        Self(waiting_for_person)
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// The inputs of the message that asks, besides the question.
struct Message {
    definition: Arc<Definition>,
    terms: AskTerms,
    timeout: Duration,
    zone: Tz,
    /// The lines by which the answer "always" would change the job's file.
    change: Option<Vec<String>>,
}

impl Message {
    fn of(&self, question: &Question) -> NewMessage {
        let Question { number, call, asked_rule, .. } = question;
        let rule = shown::text(asked_rule);
        let (who, list) = match (self.definition.id.is_turn(), self.definition.background()) {
            (true, None) => ("Your conversation with the bot".to_owned(), "`main_ask_tools` in config.yaml"),
            (false, None) => (shown::text(&self.definition.title()), "`main_ask_tools` in config.yaml"),
            (_, Some(_)) => (shown::text(&self.definition.title()), "its ask_tools"),
        };
        let title = format!("{who} asks (question {number})");
        // The call contains no backtick, so it cannot end the code block.
        let call = format!("```\n{}\n```", folded(call, *number));
        let until = question.deadline.with_timezone(&self.zone).format("%H:%M:%S");
        let waits = humantime::format_duration(self.terms.deadline);
        let default = match self.terms.default {
            AskDefault::Deny => "denied",
            AskDefault::Allow => "allowed",
        };
        let longer = if question.always.is_some() { "\"run\" and \"always\" are" } else { "\"run\" is" };
        let maker =
            self.definition.created_by.as_ref().map(|maker| format!(" `{}` made it.", shown::text(maker.as_str())));
        let maker = maker.unwrap_or_default();
        let why = format!("`{rule}` of {list} asks; {longer} for all that it matches.{maker}");
        let silence = format!(
            "Without an answer by {until} (in {waits}) it is {default}. Waiting counts against the run's timeout of {}.",
            humantime::format_duration(self.timeout)
        );
        let mut answers =
            vec![("Allow once", "once"), ("Allow in this run", "run"), ("Always", "always"), ("Deny", "deny")];
        answers.retain(|(_, answer)| *answer != "always" || question.always.is_some());
        let words: Vec<&str> =
            answers.iter().map(|(_, answer)| if *answer == "once" { "allow" } else { answer }).collect();
        let always = self.always();
        let shown = always.iter().map(|change| format!("\n\"always\" changes {change}")).collect::<String>();
        let text = format!(
            "{title}:\n\n{call}\n\n{why} {silence}{shown}\nAnswer: `ollim-bot questions answer {number} {}`",
            words.join("|")
        );
        let button = |(label, answer): (&str, &str)| Button {
            label: label.to_owned(),
            action: format!("answer:{number}:{answer}"),
        };
        let mut fields = vec![("Why".into(), why), ("Silence".into(), silence)];
        fields.extend(always.map(|change| ("Always changes".into(), change)));
        let rich = RichContent {
            title,
            description: call,
            fields,
            buttons: answers.into_iter().map(button).collect(),
            ..RichContent::default()
        };
        NewMessage {
            channel: self.terms.channel.clone().or_else(|| self.definition.channel.clone()),
            rich: Some(rich),
            ..NewMessage::asked_by(&question.run, &self.definition, text)
        }
    }
}

impl Message {
    /// Returns the file that the answer "always" changes, with the changed lines.
    fn always(&self) -> Option<String> {
        let change = self.change.as_ref()?;
        // Without backticks no line ends the code block.
        let line = |line: &String| shown::text(line).replace('`', "'").chars().take(LONGEST_LINE).collect::<String>();
        let mut lines: Vec<String> = change.iter().take(MAX_LINES).map(line).collect();
        if change.len() > MAX_LINES {
            lines.push(format!("… and {} more lines", change.len() - MAX_LINES));
        }
        Some(format!("{}:\n```\n{}\n```", self.definition.file.display(), lines.join("\n")))
    }
}

/// Returns the beginning and the end of a long call, with a note where to see the rest.
fn folded(call: &str, number: i64) -> String {
    let count = call.chars().count();
    if count <= FOLDED {
        return call.to_owned();
    }
    let beginning: String = call.chars().take(BEGINNING).collect();
    let end: String = call.chars().skip(count - END).collect();
    let left_out = count - BEGINNING - END;
    format!(
        "{beginning}\n[{left_out} characters are folded here: `ollim-bot questions` shows question {number} whole]\n{end}"
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
