//! The links of chains: written by the command line's code, and known to the service before a run hears of it.
//!
//! Which link waits is asked of the definitions in memory. These follow the folders, a moment late; so what is written
//! here is read again at once. A later attempt, or the same run, never takes a link that is there for missing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use tokio::runtime::Handle;

use super::following::Following;
use crate::definition::{Definition, DefinitionId, Trigger};
use crate::run::follow_up::{Added, Reminders};

/// Makes and moves reminders, as the command line does. Called on blocking threads.
pub trait WriteReminders: Send + Sync {
    /// `ollim-bot` with these arguments, which begin with `reminder add`.
    ///
    /// # Errors
    /// What is wrong, as the command line says it.
    fn add(&self, arguments: &[String]) -> Result<Added, String>;

    /// Gives a reminder that has not fired another time. `false`: its file is no longer there.
    ///
    /// # Errors
    /// When the file cannot be written.
    fn move_to(&self, file: &Path, at: DateTime<Utc>) -> Result<bool, String>;
}

/// Links as runs make them, and as the service knows them.
pub struct Links {
    written_by: Arc<dyn WriteReminders>,
    /// Set when it is there: the schedule starts runs, and what follows the folders needs the schedule.
    following: OnceLock<Following>,
}

impl Links {
    pub(super) fn new(written_by: Arc<dyn WriteReminders>) -> Self {
        Self { written_by, following: OnceLock::new() }
    }

    /// From now on this one is asked. Whoever asked before has waited for it.
    pub(super) fn ask(&self, following: Following) {
        // The first one stays: a service follows its folders once.
        self.following.get_or_init(|| following);
    }

    fn find(&self, root: &DefinitionId, depth: u32) -> Option<Added> {
        let root = root.clone();
        let is_link = move |definition: &Definition| {
            let Trigger::Reminder { chain: Some(chain), .. } = &definition.trigger else { return false };
            chain.parent == root && chain.depth == depth
        };
        let link = Handle::current().block_on(self.following.wait().find(is_link))?;
        Some(Added { id: link.id.clone(), file: link.file.clone() })
    }

    fn reread(&self, file: PathBuf) {
        Handle::current().block_on(self.following.wait().reread_files(vec![file]));
    }

    fn reread_all(&self) {
        Handle::current().block_on(self.following.wait().reread());
    }
}

impl Reminders for Links {
    fn add(&self, arguments: &[String]) -> Result<Added, String> {
        let added = self.written_by.add(arguments);
        match &added {
            Ok(link) => self.reread(link.file.clone()),
            // A file can be in its place and its folder not made durable: then there is a link, of an unknown name.
            Err(_) => self.reread_all(),
        }
        added
    }

    fn move_to(&self, file: &Path, at: DateTime<Utc>) -> Result<bool, String> {
        let moved = self.written_by.move_to(file, at);
        self.reread(file.to_owned());
        moved
    }

    fn waiting_link(&self, root: &DefinitionId, depth: u32) -> Option<Added> {
        let known = self.find(root, depth)?;
        self.reread(known.file.clone());
        self.find(root, depth).or_else(|| {
            // A person has renamed it this moment, or it has fired.
            self.reread_all();
            self.find(root, depth)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Mutex as StdMutex;

    use async_trait::async_trait;
    use tokio::sync::Mutex;

    use super::super::files::HomeFiles;
    use super::super::problems::Problems;
    use super::*;
    use crate::agent::AttemptReport;
    use crate::clock::Clock;
    use crate::definition::{Defaults, Store};
    use crate::home::Home;
    use crate::journal::Journal;
    use crate::schedule::{Dispatcher, Job, Launcher, Schedule};

    /// Writes files at its own pleasure.
    struct Pen {
        home: Home,
        /// Writes, and says that it failed.
        complains: StdMutex<bool>,
    }

    impl Pen {
        fn write(&self, file: &Path, minute: u32) {
            let text = format!(
                "---\nrun_at: 2100-01-01T00:{minute:02}:00Z\nmax_chain: 3\nchain_depth: 1\nchain_parent: oven\n---\nOff?\n"
            );
            fs::write(self.home.root().join(file), text).unwrap();
        }
    }

    impl WriteReminders for Pen {
        fn add(&self, arguments: &[String]) -> Result<Added, String> {
            let file = PathBuf::from(format!("reminders/{}.md", arguments[0]));
            self.write(&file, 0);
            if *self.complains.lock().unwrap() {
                return Err("the folder cannot be made durable".into());
            }
            Ok(Added { id: DefinitionId::new(&arguments[0]), file })
        }

        fn move_to(&self, file: &Path, at: DateTime<Utc>) -> Result<bool, String> {
            let minute = at.format("%M").to_string().parse().unwrap();
            self.write(file, minute);
            Ok(true)
        }
    }

    struct Nobody;

    #[async_trait]
    impl Launcher for Nobody {
        async fn launch(&self, _job: Job) -> AttemptReport {
            std::future::pending().await
        }
    }

    struct Scene {
        folder: tempfile::TempDir,
        pen: Arc<Pen>,
        links: Arc<Links>,
        schedule: Schedule,
    }

    impl Scene {
        /// A service that nobody tells of changes in its folders.
        async fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let home = Home::new(folder.path());
            fs::create_dir(home.reminders()).unwrap();
            let pen = Arc::new(Pen { home: home.clone(), complains: StdMutex::new(false) });
            let links = Arc::new(Links::new(pen.clone()));
            let clock = Clock::system();
            let journal = Journal::open(&folder.path().join("journal.db"), clock.clone()).unwrap();
            let files = Arc::new(HomeFiles::new(home.clone()));
            let (schedule, dispatcher) = Dispatcher::new(&clock, journal.clone(), Arc::new(Nobody), files, 1);
            tokio::spawn(dispatcher.run());
            let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
            let store = Arc::new(Mutex::new(Store::open(&home, defaults).unwrap()));
            let problems = Problems::load(journal).await.unwrap();
            links.ask(Following::start(store, Vec::new(), schedule.clone(), problems).await);
            // Before that nothing has a place in the schedule.
            assert!(schedule.activity().wait_for(|now| now.loaded).await.is_ok());
            Self { folder, pen, links, schedule }
        }

        async fn blocking<T: Send + 'static>(&self, work: impl FnOnce(&Links) -> T + Send + 'static) -> T {
            let links = self.links.clone();
            tokio::task::spawn_blocking(move || work(&links)).await.unwrap()
        }

        async fn add(&self, name: &'static str) -> Result<Added, String> {
            self.blocking(move |links| links.add(&[name.to_owned()])).await
        }

        async fn waiting(&self, root: &'static str, depth: u32) -> Option<String> {
            let link = self.blocking(move |links| links.waiting_link(&DefinitionId::new(root), depth)).await;
            link.map(|link| link.file.display().to_string())
        }
    }

    #[tokio::test]
    async fn a_link_just_made_is_known_to_whoever_asks_and_to_the_schedule() {
        let scene = Scene::new().await;
        assert_eq!(scene.waiting("oven", 1).await, None);
        let made = scene.add("check").await.unwrap();
        assert_eq!(scene.waiting("oven", 1).await.as_deref(), Some("reminders/check.md"));
        assert_eq!((scene.waiting("oven", 2).await, scene.waiting("tea", 1).await), (None, None));
        let at = DateTime::parse_from_rfc3339("2100-01-01T00:30:00Z").unwrap().to_utc();
        assert_eq!(scene.blocking(move |links| links.move_to(&made.file, at)).await, Ok(true));
        let next = scene.schedule.snapshot(9).await.next;
        assert_eq!(next.iter().map(|(at, link)| (*at, link.id.as_str())).collect::<Vec<_>>(), [(at, "check")]);
    }

    #[tokio::test]
    async fn a_link_whose_file_is_elsewhere_or_gone_is_looked_for_in_the_folder() {
        let scene = Scene::new().await;
        scene.add("check").await.unwrap();
        let file = |name: &str| scene.folder.path().join("reminders").join(name);
        fs::rename(file("check.md"), file("later.md")).unwrap();
        assert_eq!(scene.waiting("oven", 1).await.as_deref(), Some("reminders/later.md"));
        fs::remove_file(file("later.md")).unwrap();
        assert_eq!(scene.waiting("oven", 1).await, None);
    }

    #[tokio::test]
    async fn a_link_that_was_written_although_it_is_said_not_to_be_is_known() {
        let scene = Scene::new().await;
        *scene.pen.complains.lock().unwrap() = true;
        assert!(scene.add("check").await.is_err());
        assert_eq!(scene.waiting("oven", 1).await.as_deref(), Some("reminders/check.md"));
    }
}
