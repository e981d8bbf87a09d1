//! What is seen of the person's turns while they go, for whoever shows it. Nothing of it is a record: who does not listen misses
//! it, and loses nothing, since the answer is a message of the journal's.

use tokio::sync::broadcast;

use crate::agent::Observation;
use crate::definition::DefinitionId;

/// So much is kept for a listener that is slow; it misses what is older.
const KEPT: usize = 1024;

/// Something that was seen of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The turn.
    pub turn: DefinitionId,
    /// What was seen.
    pub what: Sight,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    /// A part of what the model says. [`Observation::Said`] has the whole afterwards.
    Letters(String),
    /// Something that the client did.
    Did(Observation),
    /// A program of the call that was made last was refused, and why.
    ProgramRefused(String),
    /// An attempt is over.
    Ended {
        /// It has come to its own end.
        completed: bool,
    },
}

/// Tells of turns that go. Clones tell the same listeners.
#[derive(Clone, Debug)]
pub struct LiveTurns(broadcast::Sender<Seen>);

impl Default for LiveTurns {
    fn default() -> Self {
        Self(broadcast::Sender::new(KEPT))
    }
}

impl LiveTurns {
    /// Tells those who listen now.
    pub fn tell(&self, turn: &DefinitionId, what: Sight) {
        if turn.is_turn() {
            // Nobody may be there.
            let _missed = self.0.send(Seen { turn: turn.clone(), what });
        }
    }

    /// Listens from now on.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Seen> {
        self.0.subscribe()
    }
}
