//! The next link of a chain: made by the command line's own `reminder add`, at most one in a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::Mutex;

use super::chain::ChainContext;
use crate::definition::{Definition, DefinitionId, Trigger};

/// How far away a link may be: a number that an agent got wrong is no time that anyone meant.
const FARTHEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Makes, moves and finds reminders. What one call has done the next one knows. Called on blocking threads.
pub trait Reminders: Send + Sync {
    /// `ollim-bot` with these arguments, which begin with `reminder add`.
    ///
    /// # Errors
    /// What is wrong, as the command line says it; then nothing was written.
    fn add(&self, arguments: &[String]) -> Result<Added, String>;

    /// Gives a reminder that has not fired another time. `false`: its file is no longer there.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn move_to(&self, file: &Path, at: DateTime<Utc>) -> Result<bool, String>;

    /// The link number `depth` of the chain that began with `root`, where it has not fired yet.
    fn waiting_link(&self, root: &DefinitionId, depth: u32) -> Option<Added>;
}

/// A reminder that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// Its id.
    pub id: DefinitionId,
    /// Its file, relative to the data folder.
    pub file: PathBuf,
}

/// A run's place in its chain, and the link that it has made.
pub(super) struct NextLink {
    place: Place,
    made: Mutex<Option<Added>>,
}

enum Place {
    NoChain,
    LastLink { checks: u32 },
    Open(Box<ChainContext>),
}

impl NextLink {
    pub(super) fn of(definition: &Definition) -> Self {
        let place = match (ChainContext::of(definition), &definition.trigger) {
            (Some(context), _) => Place::Open(Box::new(context)),
            (None, Trigger::Reminder { chain: Some(chain), .. }) => Place::LastLink { checks: chain.max + 1 },
            (None, _) => Place::NoChain,
        };
        Self { place, made: Mutex::new(None) }
    }

    /// Whether another link may follow.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.place, Place::Open(_))
    }

    /// Schedules the next link `delay` from `now`; a second call moves it.
    ///
    /// # Errors
    /// A sentence for the agent; then nothing has changed.
    pub(super) async fn schedule(
        &self,
        delay: Duration,
        now: DateTime<Utc>,
        reminders: &Arc<dyn Reminders>,
    ) -> Result<String, String> {
        let context = match &self.place {
            Place::Open(context) => context,
            Place::NoChain => {
                return Err(
                    "This job is not part of a chain, so there is nothing to follow up on. Nothing was scheduled."
                        .into(),
                );
            }
            Place::LastLink { checks } => {
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
        let (number, of) = (context.chain_depth + 2, context.max_chain + 1);
        let words = humantime::format_duration(Duration::from_secs(delay.as_secs()));
        let mut made = self.made.lock().await;
        if made.is_none() {
            // An earlier attempt may have made it, or a run of before a `reminder retry`.
            let (reminders, root) = (Arc::clone(reminders), context.chain_parent.clone());
            let depth = context.chain_depth + 1;
            *made = blocking(move || Ok(reminders.waiting_link(&root, depth))).await?;
        }
        if let Some(link) = &*made {
            let at = chrono::TimeDelta::from_std(delay).ok().and_then(|delay| now.checked_add_signed(delay));
            let at = at.ok_or("That is too far in the future. The next check stays when it was.")?;
            let (reminders, file) = (Arc::clone(reminders), link.file.clone());
            if !blocking(move || reminders.move_to(&file, at)).await? {
                return Err("The next check has already begun, so its time cannot be changed.".into());
            }
            return Ok(format!("Moved: check {number} of {of} is now in {words}."));
        }
        let (reminders, arguments) = (Arc::clone(reminders), context.arguments(delay));
        fail_point!(BeforeLink);
        *made = Some(blocking(move || reminders.add(&arguments)).await?);
        fail_point!(LinkMade);
        Ok(format!("Scheduled: check {number} of {of} in {words}."))
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(format!("a fault of ollim-bot itself: {error}")))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as StdMutex;

    use super::super::prompt::tests::reminder;
    use super::*;
    use crate::definition::Mode;

    #[derive(Default)]
    struct Book {
        calls: StdMutex<Vec<String>>,
        gone: bool,
        waiting: bool,
    }

    impl Reminders for Book {
        fn add(&self, arguments: &[String]) -> Result<Added, String> {
            self.calls.lock().unwrap().push(arguments.join(" "));
            Ok(Added { id: DefinitionId::new("next"), file: PathBuf::from("reminders/next.md") })
        }

        fn move_to(&self, file: &Path, at: DateTime<Utc>) -> Result<bool, String> {
            self.calls.lock().unwrap().push(format!("{} to {at}", file.display()));
            Ok(!self.gone)
        }

        fn waiting_link(&self, root: &DefinitionId, depth: u32) -> Option<Added> {
            let link = Added { id: DefinitionId::new("made"), file: PathBuf::from("reminders/made.md") };
            (self.waiting && (root.as_str(), depth) == ("oven0", 1)).then_some(link)
        }
    }

    async fn schedule(link: &NextLink, book: &Arc<Book>, minutes: u64) -> Result<String, String> {
        let (now, book): (_, Arc<dyn Reminders>) = (DateTime::UNIX_EPOCH, book.clone());
        link.schedule(Duration::from_secs(60 * minutes), now, &book).await
    }

    #[tokio::test]
    async fn one_link_in_a_run_and_a_second_call_moves_it() {
        let (link, book) = (NextLink::of(&reminder(Mode::Foreground, Some((0, 2)))), Arc::new(Book::default()));
        assert_eq!(schedule(&link, &book, 30).await.unwrap(), "Scheduled: check 2 of 3 in 30m.");
        assert_eq!(schedule(&link, &book, 90).await.unwrap(), "Moved: check 2 of 3 is now in 1h 30m.");
        let calls = book.calls.lock().unwrap().clone();
        assert_eq!(
            calls,
            [
                "reminder add --delay=30 --message=Is the oven off?\n --max-chain=2 --chain-depth=1 --chain-parent=oven0 --timeout=1m",
                "reminders/next.md to 1970-01-01 01:30:00 UTC",
            ]
        );
    }

    #[tokio::test]
    async fn a_link_that_has_begun_is_not_doubled() {
        let (link, book) =
            (NextLink::of(&reminder(Mode::Foreground, Some((0, 2)))), Arc::new(Book { gone: true, ..Book::default() }));
        schedule(&link, &book, 1).await.unwrap();
        assert!(schedule(&link, &book, 5).await.unwrap_err().contains("already begun"));
        assert_eq!(book.calls.lock().unwrap().iter().filter(|call| call.starts_with("reminder add")).count(), 1);
    }

    #[tokio::test]
    async fn a_link_that_an_earlier_run_made_is_moved() {
        for waiting in [true, false] {
            let book = Arc::new(Book { waiting, ..Book::default() });
            let link = NextLink::of(&reminder(Mode::Foreground, Some((0, 2))));
            schedule(&link, &book, 30).await.unwrap();
            let calls = book.calls.lock().unwrap().clone();
            let then =
                if waiting { "reminders/made.md to 1970-01-01 00:30:00 UTC" } else { "reminder add --delay=30 " };
            assert!(calls[0].starts_with(then), "{calls:?}");
            assert_eq!(calls.len(), 1);
        }
    }

    #[tokio::test]
    async fn outside_a_chain_and_at_its_end_nothing_is_scheduled() {
        for (chain, words) in [(None, "not part of a chain"), (Some((2, 2)), "last of 3 checks")] {
            let (link, book) = (NextLink::of(&reminder(Mode::Foreground, chain)), Arc::new(Book::default()));
            assert!(schedule(&link, &book, 30).await.unwrap_err().contains(words));
            assert_eq!(*book.calls.lock().unwrap(), Vec::<String>::new());
        }
        let (link, book) = (NextLink::of(&reminder(Mode::Foreground, Some((0, 2)))), Arc::new(Book::default()));
        assert!(schedule(&link, &book, 0).await.unwrap_err().contains("at least 1 minute"));
        assert!(schedule(&link, &book, u64::from(u32::MAX)).await.unwrap_err().contains("within a year"));
        assert_eq!(*book.calls.lock().unwrap(), Vec::<String>::new());
    }
}
