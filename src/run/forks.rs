//! Forks in which the person talks: how they are opened, how messages are assigned to them, and their three ends.
//!
//! A fork of the main session has the main session's rights. A fork that continues a job's conversation has that job's rules. It
//! cannot become the main session, since that would then contain what the job has read.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::converse::ChatMessage;
use super::spawn::Spawner;
use crate::agent::open_transcript;
use crate::bot::main_session::MainSession;
use crate::clock::Clock;
use crate::definition::{Definition, DefinitionId, Kind};
use crate::journal::{Button, ForkEnd, ForkRecord, Journal, Message, NewMessage, RichContent, RunId, Subject};
use crate::policy::UpdateMode;
use crate::refusal::Refusal;

/// Time after a run's end in which its conversation can be continued.
const RESUMABLE: TimeDelta = TimeDelta::days(7);

/// Time without a message of the person's after which a fork is idle. They are asked first; after the same time again it ends.
const IDLE: TimeDelta = TimeDelta::minutes(10);

/// The beginning of the first message of a fork.
pub const FORK_BEGINS: &str = "[a fork of the conversation begins here] ";

/// The prompt by which a fork's agent writes its report.
pub const WRITE_REPORT: &str = "[the conversation in this fork ends here] Write a report of it for the main session, in at most ten sentences: \
what it was about, what was found and decided, what is still to be done. Your answer is the report; call no tools.";

/// The parts that open and end forks.
#[derive(Clone)]
pub struct Forks {
    /// The journal.
    pub journal: Journal,
    /// The spawner that starts turns.
    pub spawner: Arc<Spawner>,
    /// The main session that is forked.
    pub main: MainSession,
    /// The clock.
    pub clock: Clock,
}

/// The result of a request to end a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndForkResult {
    /// The fork is over, or its report is being written. The text is for the person.
    Reported(String),
    /// The main session has changed since, so the person has to confirm the save. The text is the question.
    Confirm(String),
}

impl Forks {
    /// Opens a fork of the main session, or of a run's conversation. The person is sent a card with the fork's ends.
    ///
    /// # Errors
    /// An error if the fork cannot be recorded.
    pub async fn open(
        &self,
        topic: Option<String>,
        from_run: Option<RunId>,
        channel: Option<String>,
    ) -> Result<ForkRecord, Refusal> {
        let token = agent_sandbox::token::random().map_err(|error| Refusal::environment(error.to_string()))?;
        let now = self.clock.now();
        let fork = ForkRecord {
            id: DefinitionId::new(format!("{}{}", DefinitionId::FORK, &token[..8])),
            opened: now,
            topic: topic.map(|topic| topic.trim().to_owned()).filter(|topic| !topic.is_empty()),
            from_run,
            main: self.main.mark(),
            channel,
            heard: now,
            reminded: None,
            ended: None,
            how: None,
        };
        self.journal.open_fork(fork.clone()).await?;
        let reports = self.may_report(&fork).await?;
        self.journal.message(card(&fork, reports)).await?;
        Ok(fork)
    }

    /// Returns whether a report may go to the main session. The job's present file may block that, also in a fork.
    async fn may_report(&self, fork: &ForkRecord) -> Result<bool, Refusal> {
        let Some(run) = &fork.from_run else { return Ok(true) };
        let Some(fired) = self.definition_of(run).await? else { return Ok(false) };
        // A job whose rights are not known reports nothing.
        let job = self.spawner.of_conversation(fired).await.ok();
        let background = job.as_ref().and_then(|job| job.background());
        Ok(background.is_some_and(|background| background.restrictions.update_main_session != UpdateMode::Blocked))
    }

    /// Returns a run's definition as it was when the run fired.
    async fn definition_of(&self, run: &RunId) -> Result<Option<Definition>, Refusal> {
        let found = self.journal.conversation_of(run).await?;
        Ok(found.and_then(|found| self.spawner.fired(&found)))
    }

    /// Returns whether the main session itself wrote a message of ours, so that the prompts of its buttons may be sent there. A job or a
    /// fork chooses its buttons' prompts, and the person does not see them.
    ///
    /// # Errors
    /// An error if the journal cannot be read.
    pub async fn is_of_main_session(&self, message: &Message) -> Result<bool, Refusal> {
        let Some(run) = &message.run else { return Ok(false) };
        match message.id.as_ref().filter(|id| id.is_turn()) {
            Some(turn) => Ok(self.journal.session(turn).await?.is_some_and(|session| session.fork.is_none())),
            None => Ok(self.definition_of(run).await?.is_some_and(|job| job.background().is_none())),
        }
    }

    /// Returns the fork of a message; `None` means the main session. Opens a fork if `answers`, our message, is a job's.
    ///
    /// # Errors
    /// An error if the journal cannot be read or written.
    pub async fn of_message(&self, answers: Option<&Message>, channel: &str) -> Result<Option<ForkRecord>, Refusal> {
        let open = self.journal.open_forks().await?;
        let open = || open.iter().filter(|fork| fork.how.is_none());
        let Some(message) = answers else {
            return Ok(open().find(|fork| fork.channel.as_deref() == Some(channel)).cloned());
        };
        if let Some(fork) = self.fork_of(message).await? {
            return Ok(open().find(|one| one.id == fork).cloned());
        }
        let Some(run) = &message.run else { return Ok(None) };
        if let Some(fork) = open().find(|fork| fork.from_run.as_ref() == Some(run)) {
            return Ok(Some(fork.clone()));
        }
        if !self.can_resume(run).await? {
            return Ok(None);
        }
        let topic = message.id.as_ref().map(|id| format!("your answer to {id}"));
        self.open(topic, Some(run.clone()), Some(channel.to_owned())).await.map(Some)
    }

    /// Returns the fork that sent a message of ours, or whose card it is.
    async fn fork_of(&self, message: &Message) -> Result<Option<DefinitionId>, Refusal> {
        let buttons = message.rich.iter().flat_map(|rich| &rich.buttons);
        let by_button = buttons.filter_map(|button| Some(fork_action(&button.action)?.1)).next();
        if by_button.is_some() {
            return Ok(by_button);
        }
        match message.id.as_ref().filter(|id| id.is_turn()) {
            Some(turn) => Ok(self.journal.session(turn).await?.and_then(|session| session.fork)),
            None => Ok(None),
        }
    }

    /// Returns whether a job's conversation can be continued: the person's background job ended within the last week.
    async fn can_resume(&self, run: &RunId) -> Result<bool, Refusal> {
        let Some(found) = self.journal.conversation_of(run).await? else { return Ok(false) };
        let is_background = self.spawner.fired(&found).is_some_and(|job| job.background().is_some());
        // A running job counts; the fork's turn waits for its end.
        let is_recent = found.ended.is_none_or(|ended| self.clock.now() - ended < RESUMABLE);
        let is_there =
            found.ended.is_none() || found.transcript.is_some_and(|transcript| open_transcript(&transcript).is_ok());
        Ok(is_recent && is_background && found.kind != Kind::Session && is_there)
    }

    /// Returns the fork with this id, or without an id the fork that the person used last, preferably by this channel.
    ///
    /// # Errors
    /// An error if the fork is over, or none is open.
    pub async fn named(&self, id: Option<&DefinitionId>, channel: &str) -> Result<ForkRecord, Refusal> {
        let open = self.journal.open_forks().await?;
        if let Some(id) = id {
            return open.into_iter().find(|fork| fork.id == *id).ok_or_else(|| Refusal::user("this fork is over"));
        }
        let mut open: Vec<ForkRecord> = open.into_iter().filter(|fork| fork.how.is_none()).collect();
        // The sort is stable, so within both groups the fork that was used last stays first.
        open.sort_by_key(|fork| fork.channel.as_deref() != Some(channel));
        let none = || Refusal::user("there is no fork that is open").hint("`/fork TOPIC` opens one");
        open.into_iter().next().ok_or_else(none)
    }

    /// Returns whether a message of the person's waits for its answer in the fork.
    async fn is_busy(&self, fork: &ForkRecord) -> Result<bool, Refusal> {
        Ok(self.journal.open_sessions().await?.into_iter().any(|session| session.fork.as_ref() == Some(&fork.id)))
    }

    /// Ends a fork. With `anyway`, saves it even if the main session has changed since.
    ///
    /// # Errors
    /// The reason why the fork stays open.
    pub async fn end(&self, fork: &ForkRecord, how: ForkEnd, anyway: bool) -> Result<EndForkResult, Refusal> {
        if fork.how == Some(ForkEnd::Report) {
            return Err(Refusal::user("its report is being written; the fork is over then"));
        }
        if how != ForkEnd::Exit && self.is_busy(fork).await? {
            return Err(Refusal::user("an answer is going in this fork").hint("wait for it, or end it: `/interrupt`"));
        }
        match how {
            ForkEnd::Exit => {
                self.journal.end_fork(&fork.id, ForkEnd::Exit, true).await?;
                Ok(EndForkResult::Reported(end_message(ForkEnd::Exit).into()))
            }
            ForkEnd::Save => self.save(fork, anyway).await,
            ForkEnd::Report => {
                if !self.may_report(fork).await? {
                    let why = "the job's file says `update_main_session: blocked`, so the main session is told nothing";
                    return Err(Refusal::user(why).hint("end the fork with Exit"));
                }
                if self.journal.last_of_fork(&fork.id).await?.is_none() {
                    self.journal.end_fork(&fork.id, ForkEnd::Exit, true).await?;
                    return Ok(EndForkResult::Reported(
                        "The fork has ended. Nothing was said in it, so there is no report.".into(),
                    ));
                }
                self.write_report(fork).await?;
                Ok(EndForkResult::Reported("The fork ends: its report is being written for the main session.".into()))
            }
        }
    }

    async fn save(&self, fork: &ForkRecord, anyway: bool) -> Result<EndForkResult, Refusal> {
        if fork.from_run.is_some() {
            return Err(Refusal::user(
                "this fork goes on with a job's conversation, and cannot become the main session: \
                what the job has read would come with it",
            )
            .hint("end it with Report: the main session is told a summary"));
        }
        let Some(last) = self.journal.last_of_fork(&fork.id).await? else {
            return Err(Refusal::user("nothing was said in this fork yet").hint("end it with Exit"));
        };
        let gone = || Refusal::environment("the client's transcript of this fork is not there any more");
        let transcript = last.transcript.filter(|transcript| open_transcript(transcript).is_ok()).ok_or_else(gone)?;
        let expected = (!anyway).then_some(&fork.main);
        if !self.main.replace(last.session.clone(), transcript, expected).await? {
            // The person has pressed the button twice.
            if self.main.id().as_ref() == Some(&last.session) {
                return Err(Refusal::user("this fork is over"));
            }
            return Ok(EndForkResult::Confirm(
                "The main session has gone on since this fork was opened. If the fork becomes the main session, what was said \
                 there since is no part of it."
                    .into(),
            ));
        }
        self.journal.end_fork(&fork.id, ForkEnd::Save, true).await?;
        Ok(EndForkResult::Reported(end_message(ForkEnd::Save).into()))
    }

    async fn write_report(&self, fork: &ForkRecord) -> Result<(), Refusal> {
        if !self.journal.end_fork(&fork.id, ForkEnd::Report, false).await? {
            return Err(Refusal::user("this fork is over"));
        }
        let word = ChatMessage {
            text: WRITE_REPORT.into(),
            channel: fork.channel.clone(),
            fork: Some(fork.id.clone()),
            of_job: fork.from_run.clone(),
            external: None,
        };
        if let Err(refusal) = self.spawner.say(word).await {
            self.journal.keep_fork(&fork.id).await?;
            return Err(refusal);
        }
        Ok(())
    }

    /// Asks about idle forks, and ends those that stay idle.
    ///
    /// # Errors
    /// An error if the open forks cannot be read. A failure with one fork is logged.
    pub async fn end_idle(&self) -> Result<(), Refusal> {
        for fork in self.journal.open_forks().await? {
            if let Err(refusal) = self.end_if_idle(&fork).await {
                tracing::warn!(fork = %fork.id, %refusal, "a fork could not be looked after");
            }
        }
        Ok(())
    }

    async fn end_if_idle(&self, fork: &ForkRecord) -> Result<(), Refusal> {
        if self.is_busy(fork).await? {
            return Ok(());
        }
        if fork.how.is_some() {
            // The turn that was to write the report was cut off.
            return Ok(self.journal.keep_fork(&fork.id).await?);
        }
        match idleness(fork, self.clock.now()) {
            Idleness::None => {}
            Idleness::Remind => {
                self.journal.message(reminder(fork, self.may_report(fork).await?)).await?;
                self.journal.reminded_of_fork(&fork.id).await?;
            }
            Idleness::End => {
                let how = if self.may_report(fork).await? { ForkEnd::Report } else { ForkEnd::Exit };
                if let EndForkResult::Reported(told) = self.end(fork, how, false).await? {
                    let topic = fork.topic.as_deref().unwrap_or("without a topic");
                    let text = format!("Nothing was said in the fork ({topic}) for 20 minutes. {told}");
                    let (subject, channel) = (Subject::words_of(&fork.id), fork.channel.clone());
                    self.journal.message(NewMessage { channel, ..NewMessage::about(subject, text) }).await?;
                }
            }
        }
        Ok(())
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Idleness {
    None,
    Remind,
    End,
}

fn idleness(fork: &ForkRecord, now: DateTime<Utc>) -> Idleness {
    match fork.reminded {
        Some(reminded) if now - reminded >= IDLE => Idleness::End,
        None if now - fork.heard >= IDLE => Idleness::Remind,
        _ => Idleness::None,
    }
}

/// Returns the buttons of the ends that a fork can have.
fn ends(fork: &ForkRecord, reports: bool) -> Vec<Button> {
    let ends = [
        ("Save", ForkEnd::Save, fork.from_run.is_none()),
        ("Report", ForkEnd::Report, reports),
        ("Exit", ForkEnd::Exit, true),
    ];
    let button = |(label, end, _): (&str, ForkEnd, bool)| Button {
        label: label.to_owned(),
        action: format!("fork:{}:{}", end.as_str(), fork.id),
    };
    ends.into_iter().filter(|(_, _, is_possible)| *is_possible).map(button).collect()
}

/// Parses a button's action, such as `fork:save:fork-1f0c9a2b` or `fork:save-anyway:…`.
#[must_use]
pub fn fork_action(action: &str) -> Option<(ForkAction, DefinitionId)> {
    let (end, id) = action.strip_prefix("fork:")?.split_once(':')?;
    let anyway = end == "save-anyway";
    let how = if anyway { ForkEnd::Save } else { ForkEnd::of(end)? };
    Some((ForkAction { how, anyway }, DefinitionId::new(id)))
}

/// The action of a fork's button.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkAction {
    /// The end that the button chooses.
    pub how: ForkEnd,
    /// Whether to save the fork even if the main session has changed since.
    pub anyway: bool,
}

/// Returns the message for the person about a fork that has ended in this way.
#[must_use]
pub fn end_message(how: ForkEnd) -> &'static str {
    match how {
        ForkEnd::Save => "The fork has ended. It was saved: it is the main session now.",
        ForkEnd::Report => "The fork has ended. The main session is told a report of it.",
        ForkEnd::Exit => "The fork has ended. It was dropped: the main session knows nothing of it.",
    }
}

/// Returns the question whether to save a fork although the main session has changed since.
#[must_use]
pub fn confirmation(id: &DefinitionId, channel: Option<String>, question: String) -> NewMessage {
    let buttons = vec![
        Button { label: "Save all the same".into(), action: format!("fork:save-anyway:{id}") },
        Button { label: "Report instead".into(), action: format!("fork:report:{id}") },
    ];
    with_buttons("Save this fork?", question, buttons, id, channel)
}

fn card(fork: &ForkRecord, reports: bool) -> NewMessage {
    let topic = fork.topic.as_ref().map(|topic| format!(": {topic}")).unwrap_or_default();
    let save = if fork.from_run.is_none() { "Save makes it the main session, " } else { "" };
    let report = if reports { "Report hands a summary to the main session, " } else { "" };
    let text = format!("What you say here stays in the fork. {save}{report}Exit drops it.");
    with_buttons(&format!("Fork{topic}"), text, ends(fork, reports), &fork.id, fork.channel.clone())
}

fn reminder(fork: &ForkRecord, reports: bool) -> NewMessage {
    let topic = fork.topic.as_deref().unwrap_or("without a topic");
    let end = if reports { "it ends with a report" } else { "it is dropped" };
    let text = format!("Nothing was said in it for 10 minutes. Say something to go on; in 10 minutes {end}.");
    let title = format!("Is the fork still needed? ({topic})");
    with_buttons(&title, text, ends(fork, reports), &fork.id, fork.channel.clone())
}

fn with_buttons(
    title: &str,
    text: String,
    buttons: Vec<Button>,
    fork: &DefinitionId,
    channel: Option<String>,
) -> NewMessage {
    let whole = format!("{title}\n{text}");
    let rich = RichContent { title: title.to_owned(), description: text, buttons, ..RichContent::default() };
    NewMessage { channel, rich: Some(rich), ..NewMessage::about(Subject::words_of(fork), whole) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_is_asked_about_once_and_then_ends() {
        let at = |text: &str| -> DateTime<Utc> { text.parse().unwrap() };
        let mut fork = ForkRecord {
            id: DefinitionId::new("fork-1"),
            opened: at("2026-11-21T09:00:00Z"),
            topic: None,
            from_run: None,
            main: None,
            channel: None,
            heard: at("2026-11-21T09:00:00Z"),
            reminded: None,
            ended: None,
            how: None,
        };
        assert_eq!(idleness(&fork, at("2026-11-21T09:09:59Z")), Idleness::None);
        assert_eq!(idleness(&fork, at("2026-11-21T09:10:00Z")), Idleness::Remind);
        fork.reminded = Some(at("2026-11-21T09:10:00Z"));
        assert_eq!(idleness(&fork, at("2026-11-21T09:19:59Z")), Idleness::None);
        assert_eq!(idleness(&fork, at("2026-11-21T09:20:00Z")), Idleness::End);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fork_that_ends_by_itself_says_so() {
        let folder = tempfile::TempDir::new().unwrap();
        let clock = Clock::simulated("2026-11-21T09:00:00Z".parse().unwrap());
        let place = crate::journal::testing::place(&folder.path().join("journal.db"));
        let journal = Journal::open(place.clone(), clock.clone()).unwrap();
        let spawner = Spawner {
            home: crate::home::Home::new(folder.path()),
            user_home: folder.path().to_owned(),
            clock: clock.clone(),
            journal: journal.clone(),
            settings: Arc::new(std::sync::RwLock::new(crate::run::delegation::tests::settings())),
            defaults: crate::definition::Defaults {
                zone: chrono_tz::UTC,
                commands: Default::default(),
                agents: Default::default(),
            },
            definitions: crate::schedule::live_scene().1,
            schedule: crate::schedule::Schedule::channel(1).0,
            mid_turn: crate::bot::mid_turn::MidTurnMessages::default(),
            running: tokio::sync::Mutex::default(),
        };
        let main = MainSession::load(journal.clone()).await.unwrap();
        let forks = Forks { journal: journal.clone(), spawner: Arc::new(spawner), main, clock };
        let mut ended = journal.ended_forks();
        let fork = forks.open(Some("taxes".into()), None, Some("phone".into())).await.unwrap();
        for _ in 0..2 {
            tokio::time::sleep(std::time::Duration::from_secs(601)).await;
            forks.end_idle().await.unwrap();
        }
        assert_eq!(ended.recv().await.unwrap(), (fork.id.clone(), ForkEnd::Exit));
        let messages = crate::journal::JournalReader::open(place).unwrap().messages(None).unwrap();
        let told = "Nothing was said in the fork (taxes) for 20 minutes. The fork has ended. Nothing was said in it, so there is no report.";
        assert_eq!((messages[0].text.as_str(), messages[0].channel.as_deref()), (told, Some("phone")));
        let texts: Vec<String> = messages.iter().map(|message| message.text.clone()).collect();
        assert_eq!(texts.len(), 3, "{texts:?}");
        let with_buttons = journal.messages_of_fork(&fork.id).await.unwrap();
        assert_eq!(with_buttons.len(), 2, "its card, and the question whether it is still needed");
    }

    #[test]
    fn the_buttons_of_a_fork_are_read_back() {
        for (action, how, anyway) in [
            ("fork:save:fork-1", ForkEnd::Save, false),
            ("fork:save-anyway:fork-1", ForkEnd::Save, true),
            ("fork:report:fork-1", ForkEnd::Report, false),
            ("fork:exit:fork-1", ForkEnd::Exit, false),
        ] {
            assert_eq!(fork_action(action), Some((ForkAction { how, anyway }, DefinitionId::new("fork-1"))));
        }
        for action in ["fork:", "fork:save", "fork:merge:fork-1", "agent:fork:save:fork-1"] {
            assert_eq!(fork_action(action), None, "{action}");
        }
    }
}
