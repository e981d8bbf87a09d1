use std::fs;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::clock::Clock;

/// Several hosts with a folder each, and the journal.
struct World {
    folders: Vec<TempDir>,
    hosts: Vec<SharedFiles>,
    journal: Journal,
    _state: TempDir,
}

impl World {
    fn new(count: usize) -> Self {
        let state = tempfile::tempdir().unwrap();
        let journal = Journal::open(&state.path().join("journal.db"), Clock::system()).unwrap();
        let folders: Vec<_> = (0..count).map(|_| tempfile::tempdir().unwrap()).collect();
        for folder in &folders {
            for name in ["routines", "state", "agents"] {
                fs::create_dir(folder.path().join(name)).unwrap();
            }
        }
        let mut world = Self { folders, hosts: Vec::new(), journal, _state: state };
        world.hosts = (0..count).map(|host| world.started(host)).collect();
        world
    }

    /// Starts the service of a host.
    fn started(&self, host: usize) -> SharedFiles {
        let home = Home::new(self.folders[host].path());
        let folder = Folder::new(home, format!("host-{host}"));
        SharedFiles { journal: self.journal.clone(), folder: Arc::new(Mutex::new(folder)) }
    }

    fn path(&self, host: usize, file: &str) -> std::path::PathBuf {
        self.folders[host].path().join(file)
    }

    fn write(&self, host: usize, file: &str, text: &str) {
        fs::write(self.path(host, file), text).unwrap();
    }

    fn text(&self, host: usize, file: &str) -> Option<String> {
        fs::read_to_string(self.path(host, file)).ok()
    }

    async fn run_pass(&self, host: usize) {
        // A time far enough ahead that all changes count as settled.
        self.hosts[host].pass(SystemTime::now() + Duration::from_secs(60)).await.unwrap();
    }

    /// Runs passes until nothing changes any more.
    async fn run_until_stable(&self) {
        for _ in 0..4 {
            for host in 0..self.hosts.len() {
                self.run_pass(host).await;
            }
        }
    }

    fn notifications(&self) -> Vec<String> {
        let messages = self.journal.reader().unwrap().messages(Some(100)).unwrap();
        messages.into_iter().map(|message| message.text).collect()
    }
}

const TEA: &str = "routines/tea.md";

#[tokio::test]
async fn a_file_a_change_and_a_removal_come_to_all_hosts() {
    let world = World::new(3);
    world.write(0, TEA, "one");
    fs::create_dir(world.path(1, "agents/deep")).unwrap();
    world.write(1, "agents/deep/mail.md", "an agent");
    world.write(2, "routines/notes.txt", "no definition");
    world.run_until_stable().await;
    assert_eq!(world.text(2, TEA).as_deref(), Some("one"));
    assert_eq!(world.text(0, "agents/deep/mail.md").as_deref(), Some("an agent"));
    assert_eq!(world.text(0, "routines/notes.txt"), None);
    world.write(2, TEA, "two");
    world.run_until_stable().await;
    assert_eq!([0, 1].map(|host| world.text(host, TEA)), [Some("two".into()), Some("two".into())]);
    fs::remove_file(world.path(1, TEA)).unwrap();
    world.run_until_stable().await;
    assert_eq!([0, 1, 2].map(|host| world.text(host, TEA)), [None, None, None]);
    world.write(0, TEA, "two");
    world.run_until_stable().await;
    assert_eq!(world.text(2, TEA).as_deref(), Some("two"), "it was made again");
    assert!(world.notifications().is_empty());
}

#[tokio::test]
async fn of_two_changes_at_once_one_counts_and_the_other_is_kept() {
    let world = World::new(2);
    world.write(0, TEA, "one");
    world.run_until_stable().await;
    world.write(0, TEA, "of 0");
    world.write(1, TEA, "of 1");
    world.run_until_stable().await;
    assert_eq!([0, 1].map(|host| world.text(host, TEA).unwrap()), ["of 0", "of 0"]);
    assert_eq!(world.text(1, "routines/tea.md.kept-host-1").as_deref(), Some("of 1"));
    let told = world.notifications();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("the other text is kept on host-1 as routines/tea.md.kept-host-1"), "{told:?}");
    // A change wins over a removal.
    fs::remove_file(world.path(0, TEA)).unwrap();
    world.write(1, TEA, "changed");
    world.run_until_stable().await;
    assert_eq!([0, 1].map(|host| world.text(host, TEA).unwrap()), ["changed", "changed"]);
}

#[tokio::test]
async fn a_host_that_was_away_learns_what_was_removed_and_keeps_what_it_wrote() {
    let mut world = World::new(2);
    for file in ["routines/a.md", "routines/b.md", "routines/c.md"] {
        world.write(0, file, "old");
    }
    world.run_until_stable().await;
    world.write(1, "routines/b.md", "changed while away");
    for file in ["routines/a.md", "routines/b.md"] {
        fs::remove_file(world.path(0, file)).unwrap();
    }
    world.write(0, "routines/c.md", "new");
    world.run_pass(0).await;
    world.run_pass(0).await;
    world.hosts[1] = world.started(1);
    world.run_pass(1).await;
    assert_eq!(world.text(1, "routines/a.md"), None);
    assert_eq!(world.text(1, "routines/c.md").as_deref(), Some("new"));
    world.run_until_stable().await;
    assert_eq!(world.text(0, "routines/b.md").as_deref(), Some("changed while away"));
    // An older copy of the folder, which has nothing in common with the journal yet.
    fs::remove_file(world.path(1, "state/shared.json")).unwrap();
    world.write(1, "routines/a.md", "old");
    world.write(1, "routines/c.md", "old");
    world.hosts[1] = world.started(1);
    world.run_until_stable().await;
    assert_eq!([0, 1].map(|host| world.text(host, "routines/a.md")), [None, None]);
    assert_eq!([0, 1].map(|host| world.text(host, "routines/c.md").unwrap()), ["new", "new"]);
    assert_eq!(world.text(1, "routines/c.md.kept-host-1").as_deref(), Some("old"));
}

#[tokio::test]
async fn what_was_common_with_another_journal_does_not_count() {
    let world = World::new(2);
    world.journal.name_shared_files("one".into()).await.unwrap();
    for name in ["a", "b"] {
        world.write(0, &format!("routines/{name}.md"), "old");
    }
    world.run_until_stable().await;
    // The server forgets the last publication, as a replica may that takes over.
    let known = world.journal.reader().unwrap().shared_files(0, 100).unwrap();
    let over = known.iter().find(|file| file.path == "routines/b.md").unwrap().version;
    world
        .journal
        .publish_files("attic".into(), vec![Publication { path: "routines/b.md".into(), text: None, over }])
        .await
        .unwrap();
    world.journal.set_setting("shared_files", Some("another".into())).await.unwrap();
    world.write(0, "routines/a.md", "new");
    world.run_until_stable().await;
    assert_eq!([0, 1].map(|host| world.text(host, "routines/a.md").unwrap()), ["old", "old"]);
    assert_eq!(world.text(0, "routines/a.md.kept-host-0").as_deref(), Some("new"));
    assert_eq!([0, 1].map(|host| world.text(host, "routines/b.md")), [None, None]);
}

#[tokio::test]
async fn a_folder_that_is_not_there_removes_nothing_elsewhere() {
    let world = World::new(2);
    world.write(0, TEA, "one");
    world.run_until_stable().await;
    fs::rename(world.path(0, "routines"), world.path(0, "elsewhere")).unwrap();
    world.run_until_stable().await;
    assert_eq!(world.text(1, TEA).as_deref(), Some("one"));
    fs::rename(world.path(0, "elsewhere"), world.path(0, "routines")).unwrap();
    // An editor moves the file away for a moment.
    fs::rename(world.path(0, TEA), world.path(0, "routines/tea.md~")).unwrap();
    world.run_pass(0).await;
    fs::rename(world.path(0, "routines/tea.md~"), world.path(0, TEA)).unwrap();
    world.run_until_stable().await;
    assert_eq!([0, 1].map(|host| world.text(host, TEA).unwrap()), ["one", "one"]);
}

#[tokio::test]
async fn another_folder_in_its_place_removes_nothing_elsewhere() {
    type Put = fn(&World);
    let ways: [(&str, Put); 4] = [
        ("an empty one, as a mount point is, or one that a start has made", |world| {
            fs::create_dir(world.path(0, "routines")).unwrap();
        }),
        ("a link to it", |world| {
            std::os::unix::fs::symlink(world.path(0, "elsewhere"), world.path(0, "routines")).unwrap();
        }),
        ("none, until a new file comes", |_| ()),
        ("one with another file", |world| {
            fs::create_dir(world.path(0, "routines")).unwrap();
            world.write(0, "routines/own.md", "own");
        }),
    ];
    for (what, put) in ways {
        let world = World::new(2);
        for file in [TEA, "routines/mail.md"] {
            world.write(0, file, "one");
        }
        world.run_until_stable().await;
        fs::rename(world.path(0, "routines"), world.path(0, "elsewhere")).unwrap();
        put(&world);
        world.run_until_stable().await;
        world.write(1, "routines/new.md", "new");
        world.run_until_stable().await;
        for file in [TEA, "routines/mail.md", "routines/new.md"] {
            assert!(world.text(1, file).is_some(), "{what}: {file}");
        }
        // For the link, the message says that nothing can be written there.
        let told = world.notifications();
        assert_eq!(told.len(), 1, "{what}: {told:?}");
    }
}

#[tokio::test]
async fn what_is_no_text_any_more_is_not_taken_for_removed() {
    let world = World::new(2);
    world.write(0, TEA, "one");
    world.write(0, "routines/mail.md", "one");
    world.run_until_stable().await;
    fs::rename(world.path(0, TEA), world.path(0, "state/tea.md")).unwrap();
    std::os::unix::fs::symlink(world.path(0, "state/tea.md"), world.path(0, TEA)).unwrap();
    world.write(0, "routines/mail.md", &"x".repeat(LARGEST_FILE + 1));
    world.run_until_stable().await;
    assert_eq!([TEA, "routines/mail.md"].map(|file| world.text(1, file).unwrap()), ["one", "one"]);
}

#[tokio::test]
async fn what_was_cancelled_does_not_come_back_after_a_failover() {
    let mut world = World::new(2);
    world.write(0, TEA, "one");
    world.run_until_stable().await;
    // The other host is away.
    world.write(0, TEA, "two");
    world.run_pass(0).await;
    fs::remove_file(world.path(0, TEA)).unwrap();
    world.run_pass(0).await;
    world.run_pass(0).await;
    world.journal.set_setting("shared_files", Some("another".into())).await.unwrap();
    world.hosts[1] = world.started(1);
    world.run_until_stable().await;
    assert_eq!([0, 1].map(|host| world.text(host, TEA)), [None, None]);
}

#[tokio::test]
async fn a_journal_that_was_restored_from_before_is_noticed() {
    let world = World::new(2);
    for number in 0..5 {
        world.write(0, TEA, &format!("text {number}"));
        world.run_until_stable().await;
    }
    // Restore an older dump.
    let file = rusqlite::Connection::open(world._state.path().join("journal.db")).unwrap();
    file.execute("UPDATE shared_file SET version = 1, text = 'text 0'", []).unwrap();
    world.write(1, "routines/mail.md", "mail");
    world.run_until_stable().await;
    assert_eq!([0, 1].map(|host| world.text(host, TEA).unwrap()), ["text 0", "text 0"]);
    assert_eq!(world.text(0, "routines/tea.md.kept-host-0").as_deref(), Some("text 4"));
    assert_eq!(world.text(0, "routines/mail.md").as_deref(), Some("mail"));
}

#[tokio::test]
async fn an_edit_counts_more_than_what_the_same_host_published_before_it_was_killed() {
    let mut world = World::new(2);
    world.write(0, TEA, "one");
    world.run_until_stable().await;
    let kept = fs::read(world.path(0, "state/shared.json")).unwrap();
    world.write(0, TEA, "two");
    world.run_pass(0).await;
    fs::write(world.path(0, "state/shared.json"), kept).unwrap();
    world.write(0, TEA, "three");
    world.hosts[0] = world.started(0);
    world.run_until_stable().await;
    assert_eq!([0, 1].map(|host| world.text(host, TEA).unwrap()), ["three", "three"]);
    assert!(world.notifications().is_empty());
}

#[tokio::test]
async fn what_is_being_written_is_not_published_and_what_cannot_be_written_is_told_once() {
    let world = World::new(2);
    world.write(0, TEA, "ha");
    world.hosts[0].pass(SystemTime::now()).await.unwrap();
    world.run_pass(1).await;
    assert_eq!(world.text(1, TEA), None);
    world.write(0, TEA, "half and whole");
    // Nothing can be written in the linked folder.
    fs::remove_dir(world.path(1, "routines")).unwrap();
    std::os::unix::fs::symlink(world.folders[0].path(), world.path(1, "routines")).unwrap();
    world.run_until_stable().await;
    world.run_until_stable().await;
    let told = world.notifications();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("routines/tea.md is not kept equal with the other hosts"), "{told:?}");
    fs::remove_file(world.path(1, "routines")).unwrap();
    world.run_until_stable().await;
    assert_eq!(world.text(1, TEA).as_deref(), Some("half and whole"));
}

#[tokio::test]
async fn what_a_journal_says_of_other_files_is_not_written() {
    let world = World::new(2);
    let evil = ["config.yaml", "../outside.md", ".env", "routines/../config.yaml", "state/x.md", "/tmp/x.md"];
    let publication = |path: &str| Publication { path: path.to_owned(), text: Some("evil".into()), over: 0 };
    world.journal.publish_files("attic".into(), evil.map(publication).to_vec()).await.unwrap();
    world.write(0, TEA, "one");
    world.run_until_stable().await;
    assert_eq!(world.text(1, TEA).as_deref(), Some("one"));
    for path in &evil[..5] {
        assert_eq!(world.text(1, path), None, "{path}");
    }
}

/// One step of a test case.
#[derive(Clone, Debug)]
enum Act {
    Write {
        host: usize,
        file: usize,
    },
    Remove {
        host: usize,
        file: usize,
    },
    Look {
        host: usize,
    },
    Start {
        host: usize,
    },
    /// The journal's server fails over to another that has forgotten nothing.
    FailOver,
}

fn act() -> impl Strategy<Value = Act> {
    let (host, file) = (0..3usize, 0..2usize);
    prop_oneof![
        3 => (host.clone(), file.clone()).prop_map(|(host, file)| Act::Write { host, file }),
        1 => (host.clone(), file).prop_map(|(host, file)| Act::Remove { host, file }),
        4 => host.clone().prop_map(|host| Act::Look { host }),
        1 => host.prop_map(|host| Act::Start { host }),
        1 => Just(Act::FailOver),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Hosts write, remove, synchronize and restart in any order. In the end all have the same files, and no text is lost unless somebody
    /// replaced or removed it where it was.
    #[test]
    fn hosts_agree_in_the_end_and_no_text_is_lost(acts in prop::collection::vec(act(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(3);
            let name = |file: usize| format!("routines/{file}.md");
            let (mut written, mut replaced) = (BTreeSet::new(), BTreeSet::new());
            for (number, act) in acts.into_iter().enumerate() {
                match act {
                    Act::Write { host, file } => {
                        replaced.extend(world.text(host, &name(file)));
                        let text = format!("text {number}");
                        world.write(host, &name(file), &text);
                        written.insert(text);
                    }
                    Act::Remove { host, file } => {
                        replaced.extend(world.text(host, &name(file)));
                        let _none = fs::remove_file(world.path(host, &name(file)));
                    }
                    Act::Look { host } => world.run_pass(host).await,
                    Act::Start { host } => world.hosts[host] = world.started(host),
                    Act::FailOver => {
                        let history = format!("history {number}");
                        world.journal.set_setting("shared_files", Some(history)).await.unwrap();
                    }
                }
            }
            world.run_until_stable().await;
            let texts = |host: usize| [0, 1].map(|file| world.text(host, &name(file)));
            prop_assert_eq!(texts(0), texts(1));
            prop_assert_eq!(texts(1), texts(2));
            let there: BTreeSet<String> = (0..3)
                .flat_map(|host| fs::read_dir(world.path(host, "routines")).unwrap())
                .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
                .collect();
            for text in &written {
                prop_assert!(there.contains(text) || replaced.contains(text), "{text} is lost: {there:?}");
            }
            Ok(())
        })?;
    }
}
