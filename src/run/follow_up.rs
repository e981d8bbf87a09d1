//! The next check of a chain. A run makes at most one; a second call moves it.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::Mutex;

use super::chain::FollowUp;
use crate::clock::whole_second;
use crate::definition::{Definition, DefinitionError, Trigger};
use crate::schedule::LiveDefinitions;

/// Maximum delay of a check. A longer one is a mistake of the agent.
const FARTHEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// A run's position in its chain, and the check that it has made.
pub(super) struct NextCheck {
    place: ChainPosition,
    made: Mutex<Option<PathBuf>>,
}

enum ChainPosition {
    NoChain,
    LastCheck { checks: u32 },
    Open(Box<FollowUp>),
}

impl NextCheck {
    pub(super) fn of(definition: &Definition) -> Self {
        let place = match (FollowUp::of(definition), &definition.trigger) {
            (Some(follow_up), _) => ChainPosition::Open(Box::new(follow_up)),
            (None, Trigger::Reminder { chain: Some(chain), .. }) => ChainPosition::LastCheck { checks: chain.max + 1 },
            (None, _) => ChainPosition::NoChain,
        };
        Self { place, made: Mutex::new(None) }
    }

    /// Returns whether another check may follow.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.place, ChainPosition::Open(_))
    }

    /// Schedules the next check `delay` after `now`. A second call moves it.
    ///
    /// # Errors
    /// A sentence for the agent. Nothing has changed then.
    pub(super) async fn schedule(
        &self,
        delay: Duration,
        now: DateTime<Utc>,
        definitions: &LiveDefinitions,
    ) -> Result<String, String> {
        let follow_up = match &self.place {
            ChainPosition::Open(follow_up) => follow_up,
            ChainPosition::NoChain => {
                return Err(
                    "This job is not part of a chain, so there is nothing to follow up on. Nothing was scheduled."
                        .into(),
                );
            }
            ChainPosition::LastCheck { checks } => {
                return Err(format!(
                    "This is the last of {checks} checks: the chain ends here. Nothing was scheduled; finish what you can now."
                ));
            }
        };
        if delay > FARTHEST {
            return Err("The next check must lie within a year from now. Nothing was scheduled.".into());
        }
        if delay.is_zero() {
            return Err(
                "The next check must lie in the future: at least 1 minute from now. Nothing was scheduled.".into()
            );
        }
        let delay = Duration::from_secs(delay.as_secs());
        let at = whole_second(now + delay);
        let (check, words) = (follow_up.place(), humantime::format_duration(delay));
        let mut made = self.made.lock().await;
        if made.is_none() {
            // An earlier attempt, or a run before a `reminder retry`, may have made the check.
            let next = follow_up.clone();
            *made = definitions.find(move |definition| next.is(definition)).await.map(|found| found.file.clone());
        }
        if let Some(file) = &*made {
            return match definitions.move_to(file, at).await {
                Ok(true) => Ok(format!("Moved: {check} is now in {words}.")),
                Ok(false) => Err("The next check has already begun, so its time cannot be changed.".into()),
                Err(error) => Err(error.to_string()),
            };
        }
        let zone = follow_up.zone().unwrap_or(definitions.zone().await);
        fail_point!(BeforeLink);
        let written = definitions.create(follow_up.at(at.with_timezone(&zone).fixed_offset())).await;
        *made = Some(written.map_err(|error| error_sentence(&error))?.definition.file);
        fail_point!(LinkMade);
        Ok(format!("Scheduled: {check} in {words}."))
    }
}

/// Returns an error with its hints, in one sentence for an agent.
fn error_sentence(error: &DefinitionError) -> String {
    let hints = match error {
        DefinitionError::Invalid { problems } => problems.iter().filter_map(|problem| problem.hint.clone()).collect(),
        _ => Vec::new(),
    };
    std::iter::once(error.to_string()).chain(hints).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::prompt::tests::reminder;
    use super::*;
    use crate::definition::Mode;
    use crate::schedule::{Inbox, live_scene};

    /// A data folder whose definitions nobody watches.
    struct Folder {
        folder: tempfile::TempDir,
        definitions: LiveDefinitions,
        _inbox: Inbox,
    }

    impl Folder {
        fn new() -> Self {
            let (folder, definitions, inbox) = live_scene();
            Self { folder, definitions, _inbox: inbox }
        }

        async fn schedule(&self, check: &NextCheck, minutes: u64) -> Result<String, String> {
            check.schedule(Duration::from_secs(60 * minutes), DateTime::UNIX_EPOCH, &self.definitions).await
        }

        /// Returns each file's name and the line with its time.
        fn files(&self) -> Vec<(String, String)> {
            let mut files: Vec<(String, String)> = fs::read_dir(self.folder.path().join("reminders"))
                .unwrap()
                .map(|entry| {
                    let entry = entry.unwrap();
                    let text = fs::read_to_string(entry.path()).unwrap();
                    let run_at = text.lines().find(|line| line.starts_with("run_at")).unwrap().to_owned();
                    (entry.file_name().into_string().unwrap(), run_at)
                })
                .collect();
            files.sort();
            files
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join("reminders").join(name)
        }
    }

    fn first() -> NextCheck {
        NextCheck::of(&reminder(Mode::Foreground, Some((0, 2))))
    }

    #[tokio::test]
    async fn one_check_in_a_run_and_a_second_call_moves_it() {
        let (folder, check) = (Folder::new(), first());
        assert_eq!(folder.schedule(&check, 30).await.unwrap(), "Scheduled: check 2 of 3 in 30m.");
        let made = folder.files();
        assert_eq!(made.len(), 1);
        assert_eq!(made[0].1, "run_at: '1970-01-01T00:30:00+00:00'");
        assert_eq!(folder.schedule(&check, 90).await.unwrap(), "Moved: check 2 of 3 is now in 1h 30m.");
        assert_eq!(folder.files(), [(made[0].0.clone(), "run_at: '1970-01-01T01:30:00+00:00'".to_owned())]);
    }

    #[tokio::test]
    async fn a_check_that_has_begun_is_not_doubled() {
        let (folder, check) = (Folder::new(), first());
        folder.schedule(&check, 1).await.unwrap();
        fs::remove_file(folder.path(&folder.files()[0].0)).unwrap();
        assert!(folder.schedule(&check, 5).await.unwrap_err().contains("already begun"));
        assert_eq!(folder.files(), []);
    }

    #[tokio::test]
    async fn a_check_that_an_earlier_run_made_is_moved_wherever_it_is() {
        let folder = Folder::new();
        folder.schedule(&first(), 30).await.unwrap();
        fs::rename(folder.path(&folder.files()[0].0), folder.path("later.md")).unwrap();
        assert_eq!(folder.schedule(&first(), 60).await.unwrap(), "Moved: check 2 of 3 is now in 1h.");
        assert_eq!(folder.files(), [("later.md".to_owned(), "run_at: '1970-01-01T01:00:00+00:00'".to_owned())]);
        fs::remove_file(folder.path("later.md")).unwrap();
        assert_eq!(folder.schedule(&first(), 5).await.unwrap(), "Scheduled: check 2 of 3 in 5m.");
    }

    #[tokio::test]
    async fn outside_a_chain_and_at_its_end_nothing_is_scheduled() {
        let folder = Folder::new();
        for (chain, words) in [(None, "not part of a chain"), (Some((2, 2)), "last of 3 checks")] {
            let check = NextCheck::of(&reminder(Mode::Foreground, chain));
            assert!(folder.schedule(&check, 30).await.unwrap_err().contains(words));
        }
        assert!(folder.schedule(&first(), 0).await.unwrap_err().contains("at least 1 minute"));
        assert!(folder.schedule(&first(), u64::from(u32::MAX)).await.unwrap_err().contains("within a year"));
        assert_eq!(folder.files(), []);
    }
}
