//! `remember: thread`: a job's session goes on from run to run.
//!
//! Each run goes on with a copy of the last completed one's transcript, under the policy that its file says now. A run that was not
//! completed leaves nothing in it. What bounds it: the client compacts what the model reads; a transcript that has grown too long is
//! not gone on with; and only the last few are kept.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use super::fork_turns::not_copied;
use super::memory::Memory;
use super::runner::Runner;
use crate::bot::main_session::copy_transcript;
use crate::definition::{Definition, Remember};
use crate::journal::{Remembered, RunId};
use crate::refusal::Refusal;

/// A transcript that is longer is not gone on with.
const LONGEST: u64 = 4 << 20;

/// So many transcripts of a job are kept.
const KEPT: u32 = 3;

/// Where a run of a job with a session of its own begins.
#[derive(Debug)]
pub(super) enum Thread {
    /// The job has none.
    None,
    /// Anew: it is the first.
    First,
    /// Anew, though there was one: why, and what it answered last.
    Lost(&'static str, Memory),
    /// With a copy of this transcript.
    On(PathBuf),
}

impl Thread {
    /// What the agent is told, and the record: why it begins anew.
    pub(super) fn lost(&self) -> Option<String> {
        match self {
            Self::Lost(why, _) => Some(format!("This job's session begins anew, since {why}.")),
            _ => None,
        }
    }
}

impl Runner {
    /// Finds the session of a job, and copies it into the run's folder.
    ///
    /// # Errors
    /// When the journal or the transcript cannot be read.
    pub(super) async fn thread(&self, definition: &Definition, run_dir: &Path) -> Result<Thread, Refusal> {
        if definition.remember != Remember::Thread {
            return Ok(Thread::None);
        }
        let Some(last) = self.last_of(definition).await?.filter(|last| !last.forgotten) else {
            return Ok(Thread::First);
        };
        // Before its file said so, the job may have had the main session's history, which is no part of a session of its own.
        let fired = self.journal.conversation_of(&last.run).await?.and_then(|run| self.spawner.fired(&run));
        if fired.as_ref().is_some_and(|fired| fired.remember != Remember::Thread) {
            return Ok(Thread::First);
        }
        let transcript = last.transcript.as_ref().and_then(|transcript| self.here(&last.run, transcript));
        let lost = |why| Ok(Thread::Lost(why, Memory { of: None, found: Some(last) }));
        let (Some(_), Some(transcript)) = (fired, transcript) else {
            return lost("what was kept of its last run cannot be read any more");
        };
        if transcript.metadata().is_ok_and(|facts| facts.len() > LONGEST) {
            return lost("its transcript had grown over 4 MiB");
        }
        match copy_transcript(&transcript, run_dir).map_err(not_copied)? {
            None => lost("the agent client's file of it is gone"),
            // The client would leave out what it cannot read, and what came before that, in silence.
            Some(copy) if !is_whole(&transcript, &copy).map_err(not_copied)? => lost("its transcript is damaged"),
            Some(copy) => Ok(Thread::On(copy)),
        }
    }

    /// Where a run's transcript lies now, also when the data folder has been moved.
    fn here(&self, run: &RunId, transcript: &Path) -> Option<PathBuf> {
        let mut parts = transcript.components();
        parts.find(|part| part.as_os_str() == run.as_str())?;
        Some(self.home.runs().join(run.as_str()).join(parts.as_path()))
    }

    /// The client could not resume the session.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub(super) async fn unreadable_thread(&self, definition: &Definition) -> Result<Thread, Refusal> {
        let last = Memory { of: None, found: self.last_of(definition).await? };
        Ok(Thread::Lost("the agent client could not go on with it", last))
    }

    async fn last_of(&self, definition: &Definition) -> Result<Option<Remembered>, Refusal> {
        Ok(self.journal.read(|journal| journal.remembered(&definition.lineage())).await?)
    }

    /// Removes the transcripts of a job's session that newer ones hold, too. What cannot be removed is logged.
    pub(super) fn drop_older(&self, definition: &Definition) {
        // This run is not recorded as completed yet.
        let kept = KEPT - 1;
        let older = self.journal.reader().and_then(|journal| journal.older_transcripts(&definition.lineage(), kept));
        for (run, transcript) in older.unwrap_or_default() {
            let copy = self.home.runs().join(run.as_str()).join("main.jsonl");
            for file in [copy].into_iter().chain(self.here(&run, &transcript)) {
                if let Err(error) = std::fs::remove_file(&file)
                    && error.kind() != io::ErrorKind::NotFound
                {
                    tracing::warn!(%error, "the old transcript {} could not be removed", file.display());
                }
            }
        }
    }
}

/// Whether each line of a transcript is there to its end. A copy has no half line at its end.
fn is_whole(transcript: &Path, copy: &Path) -> io::Result<bool> {
    let text = std::fs::read(copy)?;
    let mut lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    Ok(transcript.metadata()?.len() == text.len() as u64
        && lines.all(|line| serde_json::from_slice::<IgnoredAny>(line).is_ok()))
}
