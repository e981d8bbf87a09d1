//! Tests with real folders and real events: the state of a store that follows them.

use super::*;
use crate::definition::{Defaults, DefinitionId, KnownAgents, Store};
use std::fs;
use std::process::Command;

struct Followed {
    dir: tempfile::TempDir,
    home: Home,
    store: Store,
    watch: Watch,
}

fn routine(id: &str, body: &str) -> String {
    format!("---\nid: {id}\ncron: 0 9 * * *\n---\n{body}\n")
}

impl Followed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().join("bot"));
        fs::create_dir_all(home.routines()).unwrap();
        fs::write(home.routines().join("a.md"), routine("a", "one")).unwrap();
        let watch = Watch::start(&home, Some(&dir.path().join(".claude/agents"))).unwrap();
        let folders = [home.agents(), dir.path().join(".claude/agents"), dir.path().join(".claude/agents/more")];
        let agents = KnownAgents::new(move |name| {
            let there = folders.iter().any(|folder| folder.join(format!("{name}.md")).exists());
            if there { Ok(None) } else { Err(("there is none".into(), "make one".into())) }
        });
        let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents };
        let store = Store::open(&home, defaults).unwrap();
        Self { dir, home, store, watch }
    }

    /// Follows changes until the definitions are `expected` (`id: body`). A timeout ends a test that would hang.
    async fn until(&mut self, expected: &[&str]) {
        loop {
            let mut now: Vec<String> = self.store.definitions().map(|d| format!("{}: {}", d.id, d.body)).collect();
            now.sort();
            if now == expected {
                return;
            }
            let changed = tokio::time::timeout(Duration::from_secs(60), self.watch.next()).await;
            match changed.unwrap_or_else(|_| panic!("still {now:?}, not {expected:?}")) {
                PossibleChange::Files(files) => self.store.refresh(&files),
                PossibleChange::Everything => self.store.reload(),
            };
        }
    }
}

/// Waits for a change; simultaneous events may be reported in parts.
async fn expect_change(watch: &mut Watch, expected: &PossibleChange) {
    let told = async { while watch.next().await != *expected {} };
    tokio::time::timeout(Duration::from_secs(60), told).await.unwrap_or_else(|_| panic!("never {expected:?}"));
}

#[tokio::test]
async fn edits_are_followed() {
    let mut bot = Followed::new();
    let a = bot.home.routines().join("a.md");
    bot.until(&["a: one"]).await;
    // Written in place.
    fs::write(&a, routine("a", "two")).unwrap();
    bot.until(&["a: two"]).await;
    // Replaced by a rename, as most editors do.
    fs::write(bot.home.routines().join(".a.md.tmp"), routine("a", "three")).unwrap();
    fs::rename(bot.home.routines().join(".a.md.tmp"), &a).unwrap();
    bot.until(&["a: three"]).await;
    fs::write(bot.home.routines().join("b.md"), routine("b", "new")).unwrap();
    bot.until(&["a: three", "b: new"]).await;
    // Broken, then repaired.
    fs::write(&a, "broken").unwrap();
    bot.until(&["b: new"]).await;
    assert_eq!(bot.store.problems().len(), 1);
    fs::write(&a, routine("a", "four")).unwrap();
    bot.until(&["a: four", "b: new"]).await;
    assert_eq!(bot.store.problems(), []);
    // Renamed and removed.
    fs::rename(&a, bot.home.routines().join("c.md")).unwrap();
    fs::remove_file(bot.home.routines().join("b.md")).unwrap();
    bot.until(&["a: four"]).await;
    assert_eq!(bot.store.get(&DefinitionId::new("a")).unwrap().file, Path::new("routines/a.md").with_file_name("c.md"));
}

#[tokio::test]
async fn skills_are_followed() {
    let mut bot = Followed::new();
    let named = "---\nid: s\ncron: 0 9 * * *\nskills: [mail]\n---\nskilled\n";
    fs::write(bot.home.routines().join("s.md"), named).unwrap();
    bot.until(&["a: one"]).await;
    // The folder, the skill's folder and its file appear one after the other.
    let mail = bot.home.skills().join("mail");
    fs::create_dir(bot.home.skills()).unwrap();
    fs::create_dir(&mail).unwrap();
    fs::write(mail.join("SKILL.md"), "---\nname: mail\n---\nRead it.\n").unwrap();
    bot.until(&["a: one", "s: skilled"]).await;
    fs::write(mail.join("SKILL.md"), "broken").unwrap();
    bot.until(&["a: one"]).await;
    fs::write(mail.join("SKILL.md"), "---\nname: mail\n---\nRead it.\n").unwrap();
    bot.until(&["a: one", "s: skilled"]).await;
    fs::rename(bot.home.skills(), bot.home.root().join("away")).unwrap();
    bot.until(&["a: one"]).await;
    fs::rename(bot.home.root().join("away"), bot.home.skills()).unwrap();
    bot.until(&["a: one", "s: skilled"]).await;
    fs::remove_file(mail.join("SKILL.md")).unwrap();
    bot.until(&["a: one"]).await;
}

#[tokio::test]
async fn agents_of_the_person_are_followed_from_before_they_are_there() {
    let mut bot = Followed::new();
    let named = "---\nid: s\ncron: 0 9 * * *\nbackground: true\nagent: scout\n---\nscouted\n";
    fs::write(bot.home.routines().join("s.md"), named).unwrap();
    bot.until(&["a: one"]).await;
    // The parent folder, the folder and its file appear one after the other.
    let (top, folder) = (bot.dir.path().join(".claude"), bot.dir.path().join(".claude/agents"));
    fs::create_dir(&top).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("scout.md"), "").unwrap();
    bot.until(&["a: one", "s: scouted"]).await;
    for gone in [folder.join("scout.md"), folder.clone(), top.clone()] {
        let away = bot.dir.path().join("away");
        fs::rename(&gone, &away).unwrap();
        bot.until(&["a: one"]).await;
        fs::rename(&away, &gone).unwrap();
        bot.until(&["a: one", "s: scouted"]).await;
    }
    // In a subfolder.
    fs::create_dir(folder.join("more")).unwrap();
    fs::rename(folder.join("scout.md"), bot.dir.path().join("scout.md")).unwrap();
    bot.until(&["a: one"]).await;
    fs::rename(bot.dir.path().join("scout.md"), folder.join("more/scout.md")).unwrap();
    bot.until(&["a: one", "s: scouted"]).await;
    fs::remove_file(folder.join("more/scout.md")).unwrap();
    bot.until(&["a: one"]).await;
    // The data folder's own agents are still followed.
    fs::create_dir(bot.home.agents()).unwrap();
    fs::write(bot.home.agents().join("scout.md"), "").unwrap();
    bot.until(&["a: one", "s: scouted"]).await;
}

#[tokio::test]
async fn agents_in_the_folder_above_the_data_folder_share_its_watch() {
    // `--home ~/.claude/..`: the folder above the agents is the data folder itself.
    let dir = tempfile::tempdir().unwrap();
    let home = Home::new(dir.path());
    fs::create_dir_all(home.routines()).unwrap();
    let folder = dir.path().join(".claude/agents");
    let mut watch = Watch::start(&home, Some(&folder)).unwrap();
    let agents = PossibleChange::Files(vec![PathBuf::from("agents")]);
    fs::create_dir_all(&folder).unwrap();
    expect_change(&mut watch, &agents).await;
    fs::create_dir(home.reminders()).unwrap();
    expect_change(&mut watch, &PossibleChange::Everything).await;
    fs::write(folder.join("scout.md"), "").unwrap();
    expect_change(&mut watch, &agents).await;
}

#[tokio::test]
async fn folders_that_come_and_go_are_followed() {
    let mut bot = Followed::new();
    bot.until(&["a: one"]).await;
    // A folder that did not exist at the start.
    fs::create_dir(bot.home.reminders()).unwrap();
    fs::write(bot.home.reminders().join("tea.md"), "---\nrun_at: 2030-01-01T00:00:00Z\n---\nTea\n").unwrap();
    bot.until(&["a: one", "tea: Tea"]).await;
    // Removed and created again.
    fs::remove_dir_all(bot.home.routines()).unwrap();
    bot.until(&["tea: Tea"]).await;
    fs::create_dir(bot.home.routines()).unwrap();
    bot.until(&["tea: Tea"]).await;
    fs::write(bot.home.routines().join("a.md"), routine("a", "again")).unwrap();
    bot.until(&["a: again", "tea: Tea"]).await;
    // Replaced by a rename.
    let new = bot.dir.path().join("new");
    fs::create_dir(&new).unwrap();
    fs::write(new.join("x.md"), routine("x", "other folder")).unwrap();
    fs::rename(bot.home.routines(), bot.home.root().join("old")).unwrap();
    fs::rename(&new, bot.home.routines()).unwrap();
    bot.until(&["tea: Tea", "x: other folder"]).await;
    fs::write(bot.home.routines().join("x.md"), routine("x", "edited")).unwrap();
    // The old folder is no longer watched.
    fs::write(bot.home.root().join("old/a.md"), routine("a", "stale")).unwrap();
    bot.until(&["tea: Tea", "x: edited"]).await;
}

#[tokio::test]
async fn a_data_folder_that_is_replaced_is_found_again() {
    let mut bot = Followed::new();
    let away = bot.dir.path().join("away");
    fs::rename(bot.home.root(), &away).unwrap();
    bot.until(&[]).await;
    fs::create_dir_all(bot.home.routines()).unwrap();
    fs::write(bot.home.routines().join("b.md"), routine("b", "new")).unwrap();
    bot.until(&["b: new"]).await;
    fs::write(bot.home.routines().join("b.md"), routine("b", "edited")).unwrap();
    bot.until(&["b: edited"]).await;
}

#[tokio::test]
async fn a_git_checkout_is_followed() {
    let mut bot = Followed::new();
    let root = bot.home.root().to_owned();
    let git = |arguments: &str| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]);
        let done = command.args(arguments.split(' ')).current_dir(&root).env("GIT_CONFIG_GLOBAL", "/dev/null").output();
        assert!(done.as_ref().is_ok_and(|done| done.status.success()), "{arguments}: {done:?}");
    };
    git("init -q");
    git("add .");
    git("commit -q -m one");
    for n in 0..300 {
        fs::write(bot.home.routines().join(format!("r{n:03}.md")), routine(&format!("r{n:03}"), "x")).unwrap();
    }
    fs::write(bot.home.routines().join("a.md"), routine("a", "two")).unwrap();
    git("add .");
    git("commit -q -m two");
    let many: Vec<String> = std::iter::once("a: two".into()).chain((0..300).map(|n| format!("r{n:03}: x"))).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    bot.until(&many).await;
    git("checkout -q HEAD~1");
    bot.until(&["a: one"]).await;
    git("checkout -q main");
    bot.until(&many).await;
}

/// While a file in a deleted folder is open, as the journal is, the kernel does not report the deletion.
#[tokio::test]
async fn a_deleted_folder_of_which_a_file_is_open_comes_back() {
    let mut bot = Followed::new();
    fs::create_dir(bot.home.reminders()).unwrap();
    bot.until(&["a: one"]).await;
    fs::create_dir(bot.home.state()).unwrap();
    let open = fs::File::create(bot.home.journal()).unwrap();
    fs::remove_dir_all(bot.home.root()).unwrap();
    bot.until(&[]).await;
    fs::create_dir_all(bot.home.routines()).unwrap();
    fs::write(bot.home.routines().join("b.md"), routine("b", "new")).unwrap();
    bot.until(&["b: new"]).await;
    drop(open);
}

#[tokio::test]
async fn lost_events_are_everything() {
    let mut bot = Followed::new();
    let lost = Event { watch: -1, what: ReadFlags::QUEUE_OVERFLOW, name: None };
    bot.watch.take(lost);
    assert_eq!(bot.watch.next().await, PossibleChange::Everything);
}

#[tokio::test]
async fn other_files_are_no_news() {
    let mut bot = Followed::new();
    for name in [".a.md.swp", "a.md~", "notes.txt"] {
        fs::write(bot.home.routines().join(name), "x").unwrap();
    }
    fs::create_dir(bot.home.state()).unwrap();
    fs::write(bot.home.config_file(), "x").unwrap();
    // Reading is not reported.
    fs::read(bot.home.routines().join("a.md")).unwrap();
    fs::write(bot.home.routines().join("z.md"), "x").unwrap();
    assert_eq!(bot.watch.next().await, PossibleChange::Files(vec!["routines/z.md".into()]));
}

#[tokio::test]
async fn without_a_data_folder_there_is_nothing_to_watch() {
    let dir = tempfile::tempdir().unwrap();
    let error = Watch::start(&Home::new(dir.path().join("nowhere")), None).unwrap_err();
    assert!(matches!(error, DefinitionError::NoHome { .. }), "{error}");
}
