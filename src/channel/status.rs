//! The message that shows how a turn goes, and becomes its answer: the same for each channel whose service can change messages.
//!
//! It is posted soon after the turn has begun, and edited while it goes. Which message it is stands in the journal until the answer
//! has taken its place, or until it was [hidden](hide) since none will: then its button is gone, also where another process has
//! posted it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, interval, sleep_until};

use super::progress::{Seen, Style};
use super::{Ear, NotSent, Progress};
use crate::definition::DefinitionId;

/// So many turns that are over are remembered. What else one says is a message of its own.
const REMEMBERED: usize = 100;

/// Whoever has waited so long for an answer may have put the phone away.
const SOON: Duration = Duration::from_secs(10);

/// A turn that is to be shown.
pub(super) struct Turn {
    pub(super) id: DefinitionId,
    /// What the service calls the message that it answers.
    pub(super) answers: Option<String>,
    /// An earlier process has begun to show it, maybe by a message that the service calls so.
    before: Option<Option<String>>,
}

impl Turn {
    /// One that begins now. It is shown to its end, by a later process if need be.
    pub(super) async fn begin(id: DefinitionId, answers: Option<String>, ear: &Ear) -> Self {
        // What it answers has a mark that somebody must remove.
        ear.keep(id.as_str(), answers.clone().unwrap_or_default()).await;
        Self { id, answers, before: None }
    }

    /// Those that were shown when an earlier process ended.
    pub(super) async fn left(ear: &Ear) -> Vec<Self> {
        let mut left = Vec::new();
        for (name, answers) in ear.kept().await {
            let id = DefinitionId::new(name);
            if id.is_turn() {
                let before = Some(ear.shown(&id).await);
                left.push(Self { id, answers: Some(answers).filter(|answers| !answers.is_empty()), before });
            }
        }
        left
    }
}

/// A service that can change messages.
#[async_trait]
pub(super) trait Board: Send + Sync {
    /// How it writes what is shown.
    fn style(&self) -> &'static Style;

    /// The turns that are shown on it.
    fn statuses(&self) -> &Statuses;

    /// Shows that the bot is at work. Whether that is seen is of no consequence.
    async fn type_on(&self);

    /// Posts a message that shows a turn, with the button that ends it. Returns what the service calls it.
    async fn post(&self, turn: &Turn, text: &str) -> Result<String, NotSent>;

    /// Changes it. `turn`: whose button it keeps. Returns whether it is there.
    async fn change(&self, message: &str, turn: Option<&DefinitionId>, text: &str) -> Result<bool, NotSent>;

    /// Removes it.
    async fn remove(&self, message: &str) -> Result<(), NotSent>;
}

/// The turns that are shown now, and those that are over.
#[derive(Default)]
pub(super) struct Statuses(Mutex<Turns>);

#[derive(Default)]
struct Turns {
    shown: HashMap<DefinitionId, Arc<Shown>>,
    over: VecDeque<DefinitionId>,
}

/// How one is shown. Locked while its message is changed.
type Shown = tokio::sync::Mutex<Status>;

#[derive(Default)]
pub(super) struct Status {
    /// What the service calls the message.
    pub(super) message: Option<String>,
    /// What is left of the message where no answer takes its place; `None`: nothing.
    left: Option<String>,
    /// It is changed no more.
    is_over: bool,
    is_followed: bool,
    /// This process has shown the turn, or has had an answer of it.
    pub(super) is_known: bool,
    /// When the person said what it answers, where this process has heard it.
    began: Option<Instant>,
}

impl Status {
    /// Whether the answer comes so soon that the person still looks at what shows the turn.
    pub(super) fn is_soon(&self) -> bool {
        self.began.is_some_and(|began| began.elapsed() < SOON)
    }
}

impl Statuses {
    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to show a turn; `None`: it is over already.
    fn begin(&self, turn: &Turn) -> Option<Arc<Shown>> {
        let mut turns = self.lock();
        if turns.over.contains(&turn.id) {
            return None;
        }
        let shown = Arc::new(Shown::new(Status {
            message: turn.before.clone().flatten(),
            is_followed: true,
            is_known: turn.before.is_none(),
            began: turn.before.is_none().then(Instant::now),
            ..Status::default()
        }));
        turns.shown.insert(turn.id.clone(), Arc::clone(&shown));
        Some(shown)
    }

    /// It is followed no more.
    async fn end(&self, turn: &DefinitionId, shown: &Shown) {
        let mut status = shown.lock().await;
        status.is_followed = false;
        if status.is_over {
            self.lock().shown.remove(turn);
        }
    }

    /// How a turn is shown whose answer comes now, or none will: from here on nothing else changes its message. `recorded`: the
    /// message, as the journal has it.
    pub(super) async fn close(
        &self,
        turn: &DefinitionId,
        recorded: Option<&str>,
    ) -> tokio::sync::OwnedMutexGuard<Status> {
        let (shown, was_over) = {
            let turns = self.lock();
            (turns.shown.get(turn).cloned().unwrap_or_default(), turns.over.contains(turn))
        };
        let mut status = shown.lock_owned().await;
        status.is_over = true;
        status.is_known |= was_over;
        if !was_over && status.message.is_none() {
            status.message = recorded.map(str::to_owned);
        }
        status
    }

    /// The message is the answer now, or is hidden: what else comes of the turn is a message of its own.
    pub(super) fn closed(&self, turn: &DefinitionId, status: &mut Status) {
        status.message = None;
        let mut turns = self.lock();
        if !status.is_followed {
            turns.shown.remove(turn);
        }
        if !turns.over.contains(turn) {
            turns.over.push_back(turn.clone());
        }
        if turns.over.len() > REMEMBERED {
            turns.over.pop_front();
        }
    }
}

/// Shows a turn until it is over. `over`: what is done then, by a later process if this one cannot.
pub(super) async fn follow(
    board: &impl Board,
    ear: &Ear,
    turn: Turn,
    progress: UnboundedReceiver<Progress>,
    over: impl Future<Output = ()> + Send,
) {
    if let Some(shown) = board.statuses().begin(&turn) {
        show(board, ear, &turn, &shown, progress).await;
        board.statuses().end(&turn.id, &shown).await;
    }
    over.await;
    ear.let_go(turn.id.as_str()).await;
}

async fn show(board: &impl Board, ear: &Ear, turn: &Turn, shown: &Shown, mut progress: UnboundedReceiver<Progress>) {
    let (began, style) = (Instant::now(), board.style());
    let (mut seen, mut last) = (Seen::new(style), String::new());
    let mut typing = interval(style.typing);
    loop {
        tokio::select! {
            heard = progress.recv() => {
                let is_attempt = matches!(heard, Some(Progress::AttemptEnded { .. }));
                if !heard.is_some_and(|progress| seen.take(progress)) {
                    break;
                }
                if is_attempt {
                    shown.lock().await.left = seen.left(began.elapsed());
                }
            }
            _ = typing.tick() => board.type_on().await,
            () = sleep_until(seen.next()) => {
                let text = seen.rendered(began.elapsed());
                if text != last {
                    let mut status = shown.lock().await;
                    if status.is_over {
                        return;
                    }
                    if let Err(failure) = update(board, ear, turn, &mut status, &text).await {
                        tracing::debug!(%failure, turn = %turn.id, "how a turn goes was not shown");
                    }
                    last = text;
                }
                seen.shown();
            }
        }
    }
    shown.lock().await.left = seen.left(began.elapsed());
}

/// Shows a turn as it is now.
async fn update(board: &impl Board, ear: &Ear, turn: &Turn, status: &mut Status, text: &str) -> Result<(), NotSent> {
    match &status.message {
        Some(message) => {
            if !board.change(message, Some(&turn.id), text).await? {
                status.message = None;
            }
        }
        None => {
            let message = board.post(turn, text).await?;
            fail_point!(StatusShown);
            (status.message, status.is_known) = (Some(message.clone()), true);
            ear.shows(&turn.id, message).await;
        }
    }
    Ok(())
}

/// Takes the button from what shows a turn which is over and has no answer here. What was seen of it stays; where nothing was, the
/// message goes.
pub(super) async fn hide(board: &impl Board, turn: &DefinitionId, recorded: &str) -> Result<(), NotSent> {
    let mut status = board.statuses().close(turn, Some(recorded)).await;
    let message = status.message.clone().unwrap_or_else(|| recorded.to_owned());
    match &status.left {
        Some(left) => drop(board.change(&message, None, left).await?),
        None => board.remove(&message).await?,
    }
    board.statuses().closed(turn, &mut status);
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_was_waited_for_does_not_come_soon() {
        let (id, statuses) = (DefinitionId::new("chat-tg-1"), Statuses::default());
        let turn = |before| Turn { id: id.clone(), answers: None, before };
        let _shown = statuses.begin(&turn(None));
        assert!(statuses.close(&id, None).await.is_soon());
        advance(SOON).await;
        assert!(!statuses.close(&id, None).await.is_soon());
        // Nobody knows how long an earlier process has taken.
        let _shown = statuses.begin(&turn(Some(None)));
        assert!(!statuses.close(&id, None).await.is_soon());
    }
}
