//! The definitions of a data folder, and the changes that file changes cause.

use super::*;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::symlink;

use crate::definition::other_entries;

struct Folder {
    dir: tempfile::TempDir,
    home: Home,
}

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().join("bot"));
        fs::create_dir_all(home.routines()).unwrap();
        fs::create_dir_all(home.failed_reminders()).unwrap();
        Self { dir, home }
    }

    fn put(&self, file: &str, text: &str) -> PathBuf {
        let path = self.home.root().join(file);
        fs::write(&path, text).unwrap();
        path
    }

    fn gone(&self, file: &str) -> PathBuf {
        let path = self.home.root().join(file);
        fs::remove_file(&path).unwrap();
        path
    }

    fn open(&self) -> Store {
        Store::open(&self.home, defaults()).unwrap()
    }
}

fn defaults() -> Defaults {
    Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() }
}

fn routine(id: &str, body: &str) -> String {
    format!("---\nid: {id}\ncron: 0 9 * * *\n---\n{body}\n")
}

fn ids(store: &Store) -> Vec<String> {
    let mut ids: Vec<String> = store.definitions().map(|d| d.id.to_string()).collect();
    ids.sort();
    ids
}

fn shown(changes: &[Change]) -> Vec<String> {
    let shown = |change: &Change| match change {
        Change::Upsert(d) => format!("upsert {} from {}: {}", d.id, d.file.display(), d.body),
        Change::Removed(id) => format!("removed {id}"),
        Change::Problems { file, problems } => {
            let messages: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
            format!("{}: {}", file.display(), messages.join("; "))
        }
    };
    changes.iter().map(shown).collect()
}

#[test]
fn only_definition_files_count() {
    let folder = Folder::new();
    for name in
        [".tea.md.swp", ".tea.md", "tea.md~", "#tea.md#", "tea.txt", "tea.MD", ".md", "4913", "tea.md.tmp", ".#tea.md"]
    {
        folder.put(&format!("routines/{name}"), "no definition");
    }
    fs::create_dir(folder.home.routines().join("folder.md")).unwrap();
    folder.put("routines/folder.md/inner.md", "no definition");
    folder.put("reminders/failed/old.md", "no definition");
    folder.put("routines/tea.md", &routine("a", "x"));
    let store = folder.open();
    assert_eq!(ids(&store), ["a"]);
    assert_eq!(store.problems(), []);
}

#[test]
fn other_entries_of_the_folders_are_named() {
    let folder = Folder::new();
    for name in ["tea.md", "README.md", ".tea.md.swp", "tea.md~", "#tea.md#", "4913", "tea.md.BAK", "tea.md.orig"] {
        folder.put(&format!("routines/{name}"), &routine("a", "x"));
    }
    folder.put("reminders/failed/old.md", "kept");
    assert_eq!(other_entries(&folder.home), []);
    for made in ["routines/sub", "routines/folder.md", "webhooks/failed"] {
        fs::create_dir_all(folder.home.root().join(made)).unwrap();
    }
    for name in ["UP.MD", "x.markdown", "x.md.txt", "sub/in.md", "folder.md/in.md"] {
        folder.put(&format!("routines/{name}"), &routine("b", "x"));
    }
    folder.put("webhooks/failed/in.md", "no place for failed ones");
    for number in 0..25 {
        folder.put(&format!("reminders/{number:02}.txt"), "x");
    }
    let found = other_entries(&folder.home);
    assert!(found.iter().all(|problem| !problem.is_error() && problem.hint.is_some()), "{found:?}");
    let said: Vec<String> =
        found.iter().map(|problem| format!("{}: {}", problem.file.display(), problem.message)).collect();
    let of = |folder: &str| said.iter().filter(|said| said.starts_with(folder)).map(String::as_str).collect::<Vec<_>>();
    let name = "it is no definition, and never fires: its name does not end with `.md`";
    let within =
        |kind: &str| format!("it is a folder, and nothing in it fires: {kind}/ is read without the folders in it");
    let routines = within("routines");
    let expect = [
        format!("routines/UP.MD: {name}"),
        format!("routines/folder.md: {routines}"),
        format!("routines/sub: {routines}"),
        format!("routines/x.markdown: {name}"),
        format!("routines/x.md.txt: {name}"),
    ];
    assert_eq!(of("routines"), expect);
    assert_eq!(of("webhooks"), [format!("webhooks/failed: {}", within("webhooks"))]);
    let many = of("reminders");
    assert_eq!((many.len(), many[0]), (21, &*format!("reminders/00.txt: {name}")));
    assert_eq!(many[20], "reminders: 5 more of its entries are no definitions, and never fire");
}

#[test]
fn a_folder_that_is_not_there_is_empty_and_no_home_is_an_error() {
    let folder = Folder::new();
    fs::remove_dir_all(folder.home.reminders()).unwrap();
    let loaded = load(&folder.home, &defaults()).unwrap();
    assert_eq!((loaded.definitions, loaded.problems), Default::default());
    let error = load(&Home::new(folder.dir.path().join("nowhere")), &defaults()).unwrap_err();
    assert!(matches!(error, DefinitionError::NoHome { .. }), "{error}");
}

#[test]
fn a_bad_file_leaves_the_others_alone() {
    let folder = Folder::new();
    folder.put("routines/good.md", &routine("good", "x"));
    folder.put("routines/bad.md", "no frontmatter");
    fs::write(folder.home.routines().join("latin.md"), b"---\ncron: '@daily'\n---\n\xe9").unwrap();
    let loaded = load(&folder.home, &defaults()).unwrap();
    assert_eq!(loaded.definitions.keys().map(DefinitionId::as_str).collect::<Vec<_>>(), ["good"]);
    let problems: Vec<String> =
        loaded.problems.iter().map(|p| format!("{}: {}", p.file.display(), p.message)).collect();
    assert_eq!(problems, ["routines/bad.md: there is no frontmatter", "routines/latin.md: the file is not UTF-8 text"]);
}

#[test]
fn symlinks_stay_in_the_data_folder() {
    let folder = Folder::new();
    let outside = folder.dir.path().join("outside.md");
    fs::write(&outside, routine("outside", "x")).unwrap();
    folder.put("inside.md", &routine("inside", "x"));
    symlink(&outside, folder.home.routines().join("out.md")).unwrap();
    symlink("../../outside.md", folder.home.routines().join("out2.md")).unwrap();
    symlink("../inside.md", folder.home.routines().join("in.md")).unwrap();
    symlink("../nothing.md", folder.home.routines().join("dangling.md")).unwrap();
    symlink("loop.md", folder.home.routines().join("loop.md")).unwrap();
    let mut store = folder.open();
    assert_eq!(ids(&store), ["inside"]);
    let files: Vec<String> = store.problems().iter().map(|p| format!("{}: {}", p.file.display(), p.message)).collect();
    insta::assert_snapshot!(files.join("\n"), @"
    routines/dangling.md: the file is a symlink to nothing
    routines/loop.md: the file cannot be read: Too many levels of symbolic links (os error 40)
    routines/out.md: the file is a symlink that leaves the data folder, and is not followed
    routines/out2.md: the file is a symlink that leaves the data folder, and is not followed
    ");
    // The folder itself may not leave the data folder either, on a full read or on an event.
    fs::remove_dir_all(folder.home.routines()).unwrap();
    symlink(folder.dir.path(), folder.home.routines()).unwrap();
    store.refresh(&[PathBuf::from("routines/outside.md")]);
    assert_eq!(ids(&store), [""; 0]);
    assert_eq!(store.problems().len(), 1, "{:?}", store.problems());
}

/// Jobs write in `work/`.
#[test]
fn symlinks_do_not_lead_to_where_jobs_write() {
    let folder = Folder::new();
    fs::create_dir_all(folder.home.work().join("skill")).unwrap();
    fs::create_dir_all(folder.home.skills()).unwrap();
    folder.put("work/a.md", &routine("a", "x"));
    folder.put("mine.md", &routine("mine", "x"));
    folder.put("work/skill/SKILL.md", "---\nname: mail\ndescription: x\n---\nx\n");
    let routines = folder.home.routines();
    symlink("../work/a.md", routines.join("direct.md")).unwrap();
    // A job can turn each link on the way.
    symlink("../mine.md", folder.home.work().join("link.md")).unwrap();
    symlink("../work/link.md", routines.join("by-link.md")).unwrap();
    symlink("..", folder.home.work().join("up")).unwrap();
    symlink("../work/up/mine.md", routines.join("by-folder.md")).unwrap();
    symlink("../mine.md", routines.join("mine.md")).unwrap();
    symlink("../work/skill", folder.home.skills().join("mail")).unwrap();
    symlink("work/a.md", folder.home.root().join("persona.md")).unwrap();
    let skilled = "---\nid: skilled\ncron: 0 9 * * *\nbackground: true\nskills: [mail]\n---\nx\n";
    folder.put("routines/skilled.md", skilled);
    let store = folder.open();
    assert_eq!(ids(&store), ["mine"]);
    let said: Vec<String> = store.problems().iter().map(|p| format!("{}: {}", p.file.display(), p.message)).collect();
    for file in ["routines/direct.md", "routines/by-link.md", "routines/by-folder.md", "routines/skilled.md"] {
        let named =
            |problem: &&String| problem.starts_with(&format!("{file}: ")) && problem.contains("where jobs write");
        assert!(said.iter().any(|problem| named(&problem)), "{file}: {said:#?}");
    }
    assert!(persona::load_persona(&folder.home).unwrap_err().message.contains("where jobs write"));
    // The folder itself.
    fs::remove_dir_all(&routines).unwrap();
    symlink("work", &routines).unwrap();
    assert_eq!(ids(&folder.open()), [""; 0]);
}

#[test]
fn a_pipe_cannot_hold_it_up() {
    let folder = Folder::new();
    let pipe = folder.home.routines().join("pipe.md");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    symlink("/dev/zero", folder.home.routines().join("zero.md")).unwrap();
    let store = folder.open();
    assert_eq!(store.problems().len(), 2, "{:?}", store.problems());
}

#[test]
fn a_large_file_is_not_read_whole() {
    let folder = Folder::new();
    let file = fs::File::create(folder.home.routines().join("large.md")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(folder.open().problems()[0].message, "the file is over 1 MiB");
}

#[test]
fn two_files_with_one_id_are_both_problems() {
    let folder = Folder::new();
    folder.put("routines/a.md", &routine("x", "one"));
    folder.put("reminders/x.md", "---\nrun_at: 2030-01-01T00:00:00Z\n---\ntwo\n");
    folder.put("routines/c.md", &routine("c", "three"));
    let mut store = folder.open();
    assert_eq!(ids(&store), ["c"]);
    insta::assert_snapshot!(store.problems().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), @"
    error: reminder `x`: the id is also that of `routines/a.md`, so none of them fires
      --> reminders/x.md:1:1
    hint: give each file an `id` of its own, or remove one of them
    error: routine `x`: the id is also that of `reminders/x.md`, so none of them fires
      --> routines/a.md:2:1
    hint: give each file an `id` of its own, or remove one of them
    ");
    // The other definition is in force again.
    let changes = store.refresh(&[folder.gone("reminders/x.md")]);
    insta::assert_snapshot!(shown(&changes).join("\n"), @"
    upsert x from routines/a.md: one
    reminders/x.md: 
    routines/a.md:
    ");
    // And is removed again.
    let changes = store.refresh(&[folder.put("routines/b.md", &routine("x", "again"))]);
    insta::assert_snapshot!(shown(&changes).join("\n"), @"
    removed x
    routines/a.md: the id is also that of `routines/b.md`, so none of them fires
    routines/b.md: the id is also that of `routines/a.md`, so none of them fires
    ");
    let changes = store.refresh(&[folder.put("routines/b.md", "broken")]);
    insta::assert_snapshot!(shown(&changes).join("\n"), @"
    upsert x from routines/a.md: one
    routines/a.md: 
    routines/b.md: there is no frontmatter
    ");
}

#[test]
fn every_edit_is_one_change() {
    let folder = Folder::new();
    let path = folder.put("routines/a.md", &routine("x", "one"));
    let mut store = folder.open();
    assert_eq!(store.refresh(std::slice::from_ref(&path)), []);
    folder.put("routines/a.md", &routine("x", "two"));
    assert_eq!(shown(&store.refresh(std::slice::from_ref(&path))), ["upsert x from routines/a.md: two"]);
    folder.put("routines/a.md", "broken");
    assert_eq!(
        shown(&store.refresh(std::slice::from_ref(&path))),
        ["removed x", "routines/a.md: there is no frontmatter"]
    );
    folder.put("routines/a.md", &routine("y", "three"));
    assert_eq!(
        shown(&store.refresh(std::slice::from_ref(&path))),
        ["upsert y from routines/a.md: three", "routines/a.md: "]
    );
    folder.put("routines/a.md", &routine("z", "three"));
    assert_eq!(shown(&store.refresh(std::slice::from_ref(&path))), ["removed y", "upsert z from routines/a.md: three"]);
    folder.gone("routines/a.md");
    assert_eq!(shown(&store.refresh(&[path])), ["removed z"]);
    assert_eq!(ids(&store), [""; 0]);
}

#[test]
fn a_rename_is_no_duplicate_even_if_its_two_halves_come_apart() {
    let folder = Folder::new();
    let old = folder.put("routines/a.md", &routine("x", "one"));
    let mut store = folder.open();
    let new = folder.home.routines().join("b.md");
    fs::rename(&old, &new).unwrap();
    assert_eq!(shown(&store.refresh(&[new])), ["upsert x from routines/b.md: one"]);
    assert_eq!(store.refresh(&[old]), []);
}

#[test]
fn a_replaced_folder_is_followed() {
    let folder = Folder::new();
    folder.put("routines/a.md", &routine("a", "x"));
    folder.put("routines/b.md", &routine("b", "x"));
    let mut store = folder.open();
    fs::rename(folder.home.routines(), folder.home.root().join("old")).unwrap();
    assert_eq!(shown(&store.reload()), ["removed a", "removed b"]);
    fs::create_dir(folder.home.routines()).unwrap();
    folder.put("routines/b.md", &routine("b", "y"));
    assert_eq!(shown(&store.reload()), ["upsert b from routines/b.md: y"]);
    assert_eq!(store.reload(), []);
}

/// A mount that went away, or a checkout of a branch without the folder, must not look like the deletion of every job.
#[test]
fn a_folder_that_goes_away_is_a_problem_until_it_is_back() {
    let folder = Folder::new();
    folder.put("routines/a.md", &routine("a", "x"));
    folder.put("reminders/tea.md", "---\nrun_at: 2030-01-01T00:00:00Z\n---\nTea\n");
    fs::create_dir(folder.home.webhooks()).unwrap();
    fs::create_dir_all(folder.home.runs()).unwrap();
    let mut store = folder.open();
    let away = folder.dir.path().join("away");
    fs::rename(folder.home.routines(), &away).unwrap();
    let missing = "routines: the folder is missing, so none of its jobs fires";
    assert_eq!(shown(&store.refresh(&[PathBuf::from("routines/a.md")])), ["removed a", missing]);
    assert_eq!(ids(&store), ["tea"]);
    assert_eq!(store.reload(), []);
    assert_eq!(folder.open().problems(), store.problems());
    // A link to a place that is not mounted leads nowhere either.
    symlink(folder.dir.path().join("nowhere"), folder.home.routines()).unwrap();
    assert_eq!((store.reload(), store.problems().len()), (Vec::new(), 1));
    fs::remove_file(folder.home.routines()).unwrap();
    fs::rename(&away, folder.home.routines()).unwrap();
    assert_eq!(shown(&store.reload()), ["upsert a from routines/a.md: x", "routines: "]);
    assert_eq!(store.problems(), []);
}

#[test]
fn paths_of_other_files_are_ignored() {
    let folder = Folder::new();
    let mut store = folder.open();
    let others = [
        "config.yaml",
        "reminders/failed/x.md",
        "routines/.x.md",
        "routines/../config.yaml",
        "/etc/x.md",
        "agents/x.md",
    ];
    assert_eq!(store.refresh(&others.map(PathBuf::from)), []);
}

#[test]
fn many_files_are_all_read_in_their_order() {
    let folder = Folder::new();
    for n in 0..500 {
        folder.put(&format!("routines/r{n}.md"), &routine(&format!("id{n}"), &format!("body {n}")));
    }
    let store = folder.open();
    assert_eq!(store.definitions().count(), 500);
    for n in 0..500 {
        let d = store.get(&DefinitionId::new(format!("id{n}"))).unwrap();
        assert_eq!((d.file.clone(), d.body.clone()), (PathBuf::from(format!("routines/r{n}.md")), format!("body {n}")));
    }
}

#[test]
fn a_changed_comment_is_a_change_of_the_file() {
    let folder = Folder::new();
    let path = folder.put("routines/tea.md", &routine("tea", "x"));
    let mut store = folder.open();
    assert!(store.refresh(&[path]).is_empty());
    let text = routine("tea", "x").replace("---\nid", "---\n# mine\nid");
    let path = folder.put("routines/tea.md", &text);
    assert_eq!(shown(&store.refresh(&[path])), ["upsert tea from routines/tea.md: x"]);
    assert_eq!(store.text(&DefinitionId::new("tea")).map(|text| &**text), Some(text.as_str()));
}

/// Returns the expected result of [`load_kind`]: everything of one kind.
fn all_of_kind(folder: &Folder, kind: Kind) -> Loaded {
    let mut all = load(&folder.home, &defaults()).unwrap();
    all.definitions.retain(|_, definition| definition.kind() == kind);
    all.problems.retain(|problem| problem.file.starts_with(read::folder_of(kind)));
    all
}

#[test]
fn one_kind_is_read_as_if_both_were() {
    let folder = Folder::new();
    folder.put("routines/tea.md", "---\ncron: 0 9 * * *\n---\nTea\n");
    folder.put("routines/milk.md", "---\ncron: 0 9 * * *\n---\nMilk\n");
    folder.put("routines/broken.md", "---\ncron: 0 9 * *\n---\nx\n");
    folder.put("reminders/tea.md", "---\nrun_at: 2027-01-01T09:00:00Z\n---\nThe name of a routine\n");
    folder.put("reminders/b.md", "---\n\"\\x69d\": milk\nrun_at: 2027-01-01T09:00:00Z\n---\nThe id of a routine\n");
    folder.put("reminders/broken.md", "---\nrun_at: 2027-01-01T09:00:00Z\n---\nThe name of a broken one\n");
    for kind in [Kind::Routine, Kind::Reminder] {
        let loaded = load_kind(&folder.home, kind, &defaults()).unwrap();
        assert_eq!(loaded, all_of_kind(&folder, kind));
        assert_eq!(loaded.definitions.len(), usize::from(kind == Kind::Reminder), "{kind}");
    }
}

proptest! {
    #[test]
    fn one_kind_of_any_files_is_read_as_if_both_were(
        files in prop::collection::btree_map(
            ("(routines|reminders)/[ab](idc?)?\\.md", "(id: [ab](id)?\n|\"id\": a\n|'id' : b\n|\\? id\n: a\n|!!str id: a\n|\"i\\\\u0064\": a\n|)"),
            "(cron: 0 9 \\* \\* \\*\nrun_at: 2027-01-01T09:00:00Z\n|cron: 0 9\nrun_at: soon\n)",
            0..7,
        ),
    ) {
        let folder = Folder::new();
        for ((file, id), rest) in &files {
            folder.put(file, &format!("---\n{id}{rest}---\nText\n"));
        }
        for kind in [Kind::Routine, Kind::Reminder] {
            prop_assert_eq!(load_kind(&folder.home, kind, &defaults()).unwrap(), all_of_kind(&folder, kind));
        }
    }
}

#[test]
fn routines_that_follow_one_another_in_a_circle_are_not_in_force() {
    let after = |id: &str, job: &str| format!("---\nid: {id}\nafter: {job}\n---\nGo.\n");
    let folder = Folder::new();
    for (id, job) in [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("self", "self"), ("e", "mail")] {
        folder.put(&format!("routines/{id}.md"), &after(id, job));
    }
    let mut store = folder.open();
    assert_eq!(ids(&store), ["d", "e"]);
    let errors: Vec<String> = store.problems().iter().map(|p| format!("{}: {}", p.file.display(), p.message)).collect();
    assert_eq!(
        errors,
        [
            "routines/a.md: the routine follows `b`, which follows it in turn, so none of them fires",
            "routines/b.md: the routine follows `c`, which follows it in turn, so none of them fires",
            "routines/c.md: the routine follows `a`, which follows it in turn, so none of them fires",
            "routines/self.md: the routine follows itself, so it does not fire",
        ]
    );
    // One routine gets times of its own: all are in force, and their problems are gone.
    let b = folder.put("routines/b.md", &routine("b", "x"));
    let mut changes = shown(&store.refresh(&[b]));
    changes.sort();
    assert_eq!(
        changes,
        [
            "routines/a.md: ",
            "routines/b.md: ",
            "routines/c.md: ",
            "upsert a from routines/a.md: Go.",
            "upsert b from routines/b.md: x",
            "upsert c from routines/c.md: Go.",
        ]
    );
    // A second file claims an id of the circle, which breaks the circle too.
    let b = folder.put("routines/b.md", &after("b", "c"));
    assert_eq!(store.refresh(&[b]).len(), 6);
    let rival = folder.put("routines/rival.md", &routine("b", "x"));
    store.refresh(&[rival]);
    assert_eq!(ids(&store), ["a", "c", "d", "e"]);
    let rival = folder.gone("routines/rival.md");
    store.refresh(&[rival]);
    assert_eq!(
        (ids(&store), ids(&folder.open())),
        (vec!["d".to_owned(), "e".into()], vec!["d".to_owned(), "e".into()])
    );
}
