//! Status messages: a status message shows a turn's progress and then becomes its answer, on every service that can edit messages.
//!
//! It is posted soon after the turn begins, and edited while the turn runs. The journal keeps its id until the answer has replaced it, or
//! until it was [hidden](remove_status) because no answer comes here. Its button is then gone, even if another process posted it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::progress::{Seen, Style};
use super::{Inbound, Progress, SendError};
use crate::definition::DefinitionId;

/// Number of ended turns that are remembered. Further messages of such a turn are separate messages.
const MAX_REMEMBERED: usize = 100;

/// Time after which the person may have put the phone away.
const SOON: Duration = Duration::from_secs(10);

/// A turn with a status message.
pub(super) struct Turn {
    pub(super) id: DefinitionId,
    /// The service's id of the message that the turn answers.
    pub(super) answers: Option<String>,
    /// `Some` if an earlier process began to show the turn, with the service's id of its status message, if any.
    before: Option<Option<String>>,
}

impl Turn {
    /// Creates a turn that begins now. It is shown to its end, if need be by a later process.
    pub(super) async fn begin(id: DefinitionId, answers: Option<String>, inbound: &Inbound) -> Self {
        // The message that it answers has a mark that must be removed later.
        inbound.store(id.as_str(), answers.clone().unwrap_or_default()).await;
        Self { id, answers, before: None }
    }

    /// Returns the turns that were shown when an earlier process ended.
    pub(super) async fn left(inbound: &Inbound) -> Vec<Self> {
        let mut left = Vec::new();
        for (name, answers) in inbound.stored().await {
            let id = DefinitionId::new(name);
            if id.is_turn() {
                let before = Some(inbound.status(&id).await);
                left.push(Self { id, answers: Some(answers).filter(|answers| !answers.is_empty()), before });
            }
        }
        left
    }
}

/// A service whose messages can be edited.
#[async_trait]
pub(super) trait EditableChannel: Send + Sync {
    /// Returns the service's text style.
    fn style(&self) -> &'static Style;

    /// Returns the turns that are shown on the service.
    fn statuses(&self) -> &Statuses;

    /// Shows that the bot is typing. Failures are ignored.
    async fn show_typing(&self);

    /// Posts a status message with an interrupt button. Returns the service's id of the message.
    async fn post(&self, turn: &Turn, text: &str) -> Result<String, SendError>;

    /// Edits a message. Keeps the interrupt button of `turn`. Returns whether the message still exists.
    async fn change(&self, message: &str, turn: Option<&DefinitionId>, text: &str) -> Result<bool, SendError>;

    /// Deletes a message.
    async fn remove(&self, message: &str) -> Result<(), SendError>;
}

/// The turns that are shown now, and those that ended.
#[derive(Default)]
pub(super) struct Statuses(Mutex<Turns>);

#[derive(Default)]
struct Turns {
    shown: HashMap<DefinitionId, Arc<SharedStatus>>,
    over: VecDeque<DefinitionId>,
}

/// Status of one turn. It is locked while its message is edited.
type SharedStatus = tokio::sync::Mutex<Status>;

#[derive(Default)]
pub(super) struct Status {
    /// The service's id of the status message.
    pub(super) message: Option<String>,
    /// Final text of the message if no answer replaces it. If `None`, the message is deleted.
    left: Option<String>,
    /// Whether the message is final.
    is_over: bool,
    is_followed: bool,
    /// Whether this process has shown the turn or delivered an answer of it.
    pub(super) is_known: bool,
    /// Start of the turn, if this process received the message that it answers.
    began: Option<Instant>,
}

impl Status {
    /// Whether the answer comes so soon that the person still looks at the status message.
    pub(super) fn is_recent(&self) -> bool {
        self.began.is_some_and(|began| began.elapsed() < SOON)
    }
}

impl Statuses {
    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to show a turn. Returns `None` if the turn has ended.
    fn begin(&self, turn: &Turn) -> Option<Arc<SharedStatus>> {
        let mut turns = self.lock();
        if turns.over.contains(&turn.id) {
            return None;
        }
        let shown = Arc::new(SharedStatus::new(Status {
            message: turn.before.clone().flatten(),
            is_followed: true,
            is_known: turn.before.is_none(),
            began: turn.before.is_none().then(Instant::now),
            ..Status::default()
        }));
        turns.shown.insert(turn.id.clone(), Arc::clone(&shown));
        Some(shown)
    }

    /// Stops following a turn.
    async fn end(&self, turn: &DefinitionId, shown: &SharedStatus) {
        let mut status = shown.lock().await;
        status.is_followed = false;
        if status.is_over {
            self.lock().shown.remove(turn);
        }
    }

    /// Closes the status of a turn that is being answered or that gets no answer. Nothing else edits its message from then on. `recorded`
    /// is the message's id in the journal.
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

    /// Records that the message became the answer or was hidden. Further messages of the turn are separate.
    pub(super) fn closed(&self, turn: &DefinitionId, status: &mut Status) {
        status.message = None;
        let mut turns = self.lock();
        if !status.is_followed {
            turns.shown.remove(turn);
        }
        if !turns.over.contains(turn) {
            turns.over.push_back(turn.clone());
        }
        if turns.over.len() > MAX_REMEMBERED {
            turns.over.pop_front();
        }
    }
}

/// Shows a turn until it ends, then awaits `over`. If this process cannot, a later one does.
pub(super) async fn follow(
    board: &impl EditableChannel,
    inbound: &Inbound,
    turn: Turn,
    progress: UnboundedReceiver<Progress>,
    over: impl Future<Output = ()> + Send,
) {
    if let Some(shown) = board.statuses().begin(&turn) {
        show(board, inbound, &turn, &shown, progress).await;
        board.statuses().end(&turn.id, &shown).await;
    }
    over.await;
    inbound.discard(turn.id.as_str()).await;
}

async fn show(
    board: &impl EditableChannel,
    inbound: &Inbound,
    turn: &Turn,
    shown: &SharedStatus,
    mut progress: UnboundedReceiver<Progress>,
) {
    let (began, style) = (Instant::now(), board.style());
    let (mut seen, mut last) = (Seen::new(style), String::new());
    let mut typing = interval(style.typing);
    typing.set_missed_tick_behavior(MissedTickBehavior::Delay);
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
            _ = typing.tick(), if !seen.waits() => board.show_typing().await,
            () = until(seen.next()) => {
                let text = seen.rendered(began.elapsed());
                if text != last {
                    let mut status = shown.lock().await;
                    if status.is_over {
                        return;
                    }
                    if let Err(failure) = update(board, inbound, turn, &mut status, &text).await {
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

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Posts or edits the status message.
async fn update(
    board: &impl EditableChannel,
    inbound: &Inbound,
    turn: &Turn,
    status: &mut Status,
    text: &str,
) -> Result<(), SendError> {
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
            inbound.set_status(&turn.id, message).await;
        }
    }
    Ok(())
}

/// Removes the interrupt button from the status message of a turn that ended without an answer here. The progress in it stays. A message
/// without any is deleted.
pub(super) async fn remove_status(
    board: &impl EditableChannel,
    turn: &DefinitionId,
    recorded: &str,
) -> Result<(), SendError> {
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
        assert!(statuses.close(&id, None).await.is_recent());
        advance(SOON).await;
        assert!(!statuses.close(&id, None).await.is_recent());
        // The elapsed time of an earlier process is unknown.
        let _shown = statuses.begin(&turn(Some(None)));
        assert!(!statuses.close(&id, None).await.is_recent());
    }
}
