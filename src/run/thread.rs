//! `remember: thread`: a job's session continues from run to run.
//!
//! Each run resumes a copy of the last completed run's transcript, under the policy of the job's present file. A run that was not
//! completed adds nothing. Three things limit the session: the client compacts the model's context, a transcript that has grown too
//! long is not resumed, and only the last few transcripts are kept.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use super::fork_turns::not_copied;
use super::memory::Memory;
use super::runner::Runner;
use crate::agent::{RESUMED, open_transcript};
use crate::bot::main_session::copy_transcript;
use crate::definition::{Definition, Remember};
use crate::journal::{Remembered, RunId};
use crate::refusal::Refusal;

/// Maximum length of a transcript that is resumed, in bytes.
const LONGEST: u64 = 4 << 20;

/// Number of a job's transcripts that are kept.
const MAX_TRANSCRIPTS: u32 = 3;

/// The way in which a job's own session begins in a run.
#[derive(Debug)]
pub(super) enum Thread {
    /// The job has no session of its own.
    None,
    /// The session starts anew, since this is its first run.
    First,
    /// The session starts anew although there was one: the reason, and the job's last answer.
    Lost(&'static str, Memory),
    /// The session continues from this copy of a transcript.
    On(PathBuf),
}

impl Thread {
    /// Returns the sentence on why the session starts anew, for the prompt and the record.
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
    /// An error if the journal or the transcript cannot be read.
    pub(super) async fn thread(&self, definition: &Definition, run_dir: &Path) -> Result<Thread, Refusal> {
        if definition.remember != Remember::Thread {
            return Ok(Thread::None);
        }
        let Some(last) = self.last_of(definition).await?.filter(|last| !last.forgotten) else {
            return Ok(Thread::First);
        };
        // Before `remember: thread`, runs may have had the main session's history, which must not enter the job's own session.
        let fired = self.journal.conversation_of(&last.run).await?.and_then(|run| self.spawner.fired(&run));
        if fired.as_ref().is_some_and(|fired| fired.remember != Remember::Thread) {
            return Ok(Thread::First);
        }
        let transcript = last.transcript.as_ref().and_then(|transcript| self.here(&last.run, transcript));
        let lost = |why| Ok(Thread::Lost(why, Memory { of: None, found: Some(last) }));
        let (Some(_), Some(transcript)) = (fired, transcript) else {
            return lost("what was kept of its last run cannot be read any more");
        };
        let length = match open_transcript(&transcript).and_then(|file| file.metadata()) {
            Ok(facts) => facts.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return lost("the agent client's file of it is gone");
            }
            Err(_) => return lost("what lies in the place of its transcript is none"),
        };
        if length > LONGEST {
            return lost("its transcript had grown over 4 MiB");
        }
        match copy_transcript(&transcript, run_dir).map_err(not_copied)? {
            None => lost("the agent client's file of it is gone"),
            // The client would silently leave out a damaged line and everything before it.
            Some(copy) if !is_whole(length, &copy).map_err(not_copied)? => {
                // The agent reads no more than the client would show it.
                std::fs::remove_file(&copy).map_err(not_copied)?;
                lost("its transcript is damaged")
            }
            Some(copy) => Ok(Thread::On(copy)),
        }
    }

    /// Returns the present path of a run's transcript, even if the data folder has been moved.
    fn here(&self, run: &RunId, transcript: &Path) -> Option<PathBuf> {
        let mut parts = transcript.components();
        parts.find(|part| part.as_os_str() == run.as_str())?;
        Some(self.home.runs().join(run.as_str()).join(parts.as_path()))
    }

    /// Returns the beginning of a new session after the client could not resume the old one.
    ///
    /// # Errors
    /// An error if the journal cannot be read.
    pub(super) async fn unreadable_thread(&self, definition: &Definition) -> Result<Thread, Refusal> {
        let last = Memory { of: None, found: self.last_of(definition).await? };
        Ok(Thread::Lost("the agent client could not go on with it", last))
    }

    async fn last_of(&self, definition: &Definition) -> Result<Option<Remembered>, Refusal> {
        Ok(self.journal.read(|journal| journal.remembered(&definition.lineage())).await?)
    }

    /// Removes old transcripts of a job's session, whose content newer ones contain as well. Failures are logged.
    pub(super) fn drop_older(&self, definition: &Definition) {
        // The present run is not recorded as completed yet.
        let kept = MAX_TRANSCRIPTS - 1;
        let older = self.journal.reader().and_then(|journal| journal.older_transcripts(&definition.lineage(), kept));
        for (run, transcript) in older.unwrap_or_default() {
            let copy = self.home.runs().join(run.as_str()).join(RESUMED);
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

/// Returns whether each line of a transcript of this length, in bytes, is complete. The copy has no incomplete last line.
fn is_whole(length: u64, copy: &Path) -> io::Result<bool> {
    let text = std::fs::read(copy)?;
    let mut lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    Ok(length == text.len() as u64 && lines.all(|line| serde_json::from_slice::<IgnoredAny>(line).is_ok()))
}
