//! Moves occurrences from waiting to running: slots, order, and retries.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::active::{ActiveOccurrence, LastAttempt, Priority, Running, Stage};
use super::super::delays::punctuality;
use super::super::job::{AgentNeed, Approval, Job, Launcher, attempt};
use super::super::missed::late_line;
use super::Dispatcher;
use super::due::FireReply;
use super::pre_launch::Verdict;
use crate::agent::{AttemptEnd, AttemptReport, NoAgent};
use crate::definition::{Chain, Definition, DefinitionId, Kind, Mode, Remember};
use crate::journal::{Journal, JournalError, Occasion, Punctuality};

/// Maximum pause between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(900);

/// Why an attempt was not begun.
enum LaunchBlock {
    FileChanged,
    Unmet(&'static str),
    AgentMissing(NoAgent),
    Unapproved(Approval),
}

impl Dispatcher {
    /// Launches waiting occurrences in due order, while there are free slots. The main session and each of its forks
    /// have a separate slot, so that they and background runs do not wait for each other.
    pub(super) fn launch_waiting(&mut self) {
        while self.phase.is_running() {
            let Some(number) = self.next_to_launch() else { return };
            match self.verdict(number) {
                Verdict::Launch(definition, text) => self.launch(number, definition, text),
                Verdict::Close(why) => self.close_idle(number, why),
                Verdict::Missing => self.find_file(number),
            }
        }
    }

    /// Whether an occurrence may take a slot now.
    fn has_slot(&self, active: &ActiveOccurrence, definition: Option<&Arc<Definition>>) -> bool {
        let background = self.active.running_in_background() < self.max_concurrent_runs;
        // The other half is for the person's own jobs, which a single job could otherwise hold up without limit.
        let made_by_runs = self.active.running_made_by_runs() < self.max_concurrent_runs.div_ceil(2);
        match definition {
            // It takes no time.
            Some(definition) if self.launcher.is_message_only(definition) => true,
            Some(definition) if definition.mode == Mode::Foreground => !self.active.is_conversation_busy(definition),
            Some(definition) if definition.is_made_by_run() && active.priority != Priority::ByHand => {
                background && made_by_runs
            }
            _ => background,
        }
    }

    fn next_to_launch(&self) -> Option<u64> {
        let next = self.active.waiting().find(|(number, active)| {
            let id = &active.occurrence.id;
            let definition = self.definitions.definition(id);
            let waits_for_no_login = definition.is_some_and(|definition| definition.is_without_agent());
            // To ask the person takes no slot.
            let may_ask = definition.is_some_and(|one| one.approve && one.mode != Mode::Foreground)
                && !active.is_approved
                && active.priority != Priority::ByHand;
            (may_ask || self.has_slot(active, definition))
                && (self.gate.admits(active)
                    || waits_for_no_login && self.gate.paused.is_none() && active.unmet.is_none())
                && !self.is_behind(*number, id)
                // A newer occurrence may supersede this one.
                && !self.definitions.claiming.contains(id)
        });
        next.map(|(number, _)| number)
    }

    /// Returns whether an occurrence must wait for another of its definition or, if it remembers them, for earlier checks of its chain.
    pub(super) fn is_behind(&self, number: u64, id: &DefinitionId) -> bool {
        let chain = |id| self.definitions.definition(id).and_then(|definition| definition.chain());
        let remembers = |own: &&Arc<Definition>| own.remember != Remember::None;
        let Some(own) = self.definitions.definition(id).filter(remembers).and_then(|own| own.chain()) else {
            return self.active.is_behind(number, id);
        };
        let is_before = |other: &Chain| other.parent == own.parent && other.depth < own.depth;
        let mut going = self.active.iter().filter(|(_, other)| !other.is_idle());
        self.active.is_behind(number, id) || going.any(|(_, other)| chain(&other.occurrence.id).is_some_and(is_before))
    }

    fn launch(&mut self, number: u64, definition: Arc<Definition>, text: Arc<str>) {
        let now = self.clock.now();
        let check = self.pre_launch_check(number, &definition, &text);
        let only_asks = !self.active.get(number).is_some_and(|active| self.has_slot(active, Some(&definition)));
        let Some(active) = self.active.get_mut(number) else { return };
        let cancel = CancellationToken::new();
        let job = Job {
            run: active.run.clone(),
            definition: Arc::clone(&definition),
            occurrence: active.occurrence.clone(),
            occasion: active.occasion.clone(),
            attempt: active.attempt,
            late: late_line(active.occurrence.at, definition.zone, now),
            cut_off: active.last == LastAttempt::Claimed { after_interruption: true },
            by_hand: active.priority == Priority::ByHand,
            cancel: cancel.clone(),
        };
        let punctuality = match active.told_late {
            true => Punctuality::Unknown,
            false => punctuality(&definition, active.occurrence.at, active.delayed_by, now),
        };
        active.file.clone_from(&definition.file);
        active.text = Arc::clone(&text);
        self.recent.push(now, Arc::clone(&definition));
        let may_be_asked_about = active.may_be_asked_about;
        if !active.occasion.as_ref().is_some_and(Occasion::is_of_runs) {
            self.self_triggered.restart_count(&definition);
        }
        let foreground = definition.mode == Mode::Foreground && !self.launcher.is_message_only(&definition);
        let running = Running { definition, since: now, begun: Instant::now(), foreground, cancel, cause: None };
        self.active.set_stage(number, Stage::Running(running));
        let (journal, launcher, cut_off) = (self.journal.clone(), Arc::clone(&self.launcher), self.cut_off.clone());
        let answers = self.answers;
        let begun =
            begin(journal, launcher, cut_off, PendingLaunch { job, text, punctuality, may_be_asked_about, only_asks });
        let task = async move { if check.await { begun.await } else { Err(LaunchBlock::FileChanged) } };
        self.spawn(task, move |this, made| {
            match made {
                Err(LaunchBlock::FileChanged) => this.on_file_changed(number),
                Err(LaunchBlock::Unmet(why)) => this.on_unmet(number, why),
                Err(LaunchBlock::Unapproved(approval)) => this.on_unapproved(number, approval, answers),
                Err(LaunchBlock::AgentMissing(missing)) => this.on_agent_missing(number, &missing),
                Ok(made) => {
                    if let Some((report, had_side_effect)) = this.ignore_unknown_run(number, made)? {
                        this.on_ended(number, report, had_side_effect);
                    }
                }
            }
            Ok(())
        });
    }

    /// Begins retries whose time has come.
    pub(super) fn begin_due_retries(&mut self) {
        if self.phase.is_running() {
            let now = Instant::now();
            let due: Vec<_> = self.active.retries().take_while(|(at, _)| *at <= now).collect();
            due.into_iter().for_each(|(_, number)| self.begin_next_attempt(number, None));
        }
    }

    /// Has the journal record another attempt, which then waits for a slot. `firing`: the caller that asked for it.
    pub(super) fn begin_next_attempt(&mut self, number: u64, firing: Option<FireReply>) {
        let Some(active) = self.active.get(number) else { return };
        let (journal, last, occurrence) = (self.journal.clone(), active.run.clone(), active.occurrence.clone());
        self.active.expect(&occurrence);
        self.active.set_stage(number, Stage::Recording);
        let task = async move {
            fail_point!(BeforeAgain);
            let run = journal.attempt_again(&last).await;
            fail_point!(AgainRecorded);
            run
        };
        self.spawn(task, move |this, run| {
            this.active.arrived(&occurrence);
            let run = this.ignore_unknown_run(number, run)?;
            if let (Some(run), Some(active)) = (run, this.active.get_mut(number)) {
                active.last = LastAttempt::Claimed { after_interruption: active.last == LastAttempt::Interrupted };
                active.run = run;
                // The caller may have gone away.
                let _gone = firing.map(|firing| firing.send(Ok(active.run.clone())));
                active.attempt += 1;
                (active.unmet_since, active.delayed_by) = (None, None);
                active.told_late = true;
                this.active.set_stage(number, Stage::Waiting { reread: false });
                this.close_superseded(number);
            }
            Ok(())
        });
    }

    /// Makes occurrences that probe for a login try at once: it is back, or a person has resumed.
    pub(super) fn retry_login_probes(&mut self) {
        let probes = self
            .active
            .numbers(|active| active.priority != Priority::Scheduled && matches!(active.stage, Stage::RetryAt(_)));
        let now = Instant::now();
        for number in probes {
            self.active.set_stage(number, Stage::RetryAt(now));
        }
    }

    /// Returns the steady time at which the wall clock, left alone, will read `at`. Never far ahead, whatever the
    /// clock showed when `at` was recorded.
    pub(super) fn retry_instant(&self, at: DateTime<Utc>) -> Instant {
        Instant::now() + self.clock.until(at).min(MAX_BACKOFF)
    }
}

async fn record_launch(
    journal: &Journal,
    job: &Job,
    text: Arc<str>,
    punctuality: Punctuality,
) -> Result<(), JournalError> {
    let Job { run, definition, attempt, late, .. } = job;
    fail_point!(BeforeLaunch);
    let begins_chain = definition.kind() == Kind::Reminder && definition.chain().is_none_or(|chain| chain.depth == 0);
    if begins_chain && *attempt == 1 && definition.remember != Remember::None {
        // An earlier reminder with this id was a different one.
        journal.forget_runs(definition.lineage()).await?;
    }
    journal.launching(run, text, definition.lineage(), punctuality).await?;
    tracing::info!(%run, kind = %definition.kind(), id = %definition.id, attempt, late = late.is_some(), "started");
    fail_point!(Launched);
    Ok(())
}

/// An attempt that is about to be made.
struct PendingLaunch {
    job: Job,
    /// The text of the file at the launch.
    text: Arc<str>,
    punctuality: Punctuality,
    may_be_asked_about: bool,
    /// Whether it may only ask the person now, since it has no slot.
    only_asks: bool,
}

/// Makes an attempt, unless a requirement is missing. Returns its report, and whether its occurrence had a side effect.
async fn begin(
    journal: Journal,
    launcher: Arc<dyn Launcher>,
    cut_off: CancellationToken,
    beginning: PendingLaunch,
) -> Result<Result<(AttemptReport, bool), JournalError>, LaunchBlock> {
    let PendingLaunch { job, text, punctuality, may_be_asked_about, only_asks } = beginning;
    if !job.by_hand
        && let Some(why) = launcher.unmet_requirement(&job.definition).await
    {
        return Err(LaunchBlock::Unmet(why));
    }
    if let AgentNeed::Missing(missing) = launcher.agent_for(&job.definition).await {
        return Err(LaunchBlock::AgentMissing(missing));
    }
    // A job that another one made may need an approval because of its maker.
    if job.definition.approve || job.definition.created_by.is_some() || may_be_asked_about {
        fail_point!(BeforeApproval);
        match launcher.approval(&job, &text).await {
            Ok(Approval::Granted) if !only_asks => {}
            Ok(other) => return Err(LaunchBlock::Unapproved(other)),
            Err(error) => return Ok(Err(error)),
        }
        fail_point!(Approved);
    }
    let run = job.run.clone();
    let made = async {
        let (has_begun, begins) = oneshot::channel();
        let (journal_of_launch, begun) = (journal.clone(), job.clone());
        let recorded = async move {
            record_launch(&journal_of_launch, &begun, text, punctuality).await?;
            // The attempt may have been cut off meanwhile.
            let _ = has_begun.send(());
            Ok(())
        };
        // What is being recorded cannot be cut off.
        let cut_off = async {
            let _ = begins.await;
            cut_off.cancelled().await;
        };
        let report = tokio::select! {
            biased;
            report = attempt(&*launcher, job, Box::pin(recorded)) => report?,
            () = cut_off => AttemptReport::bare(AttemptEnd::Cancelled),
        };
        Ok((report, journal.effect(&run).await?.is_some()))
    };
    Ok(made.await)
}
