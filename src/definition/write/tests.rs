//! The files on disk after each step.

use super::*;
use crate::definition::{Store, When};
use crate::policy::ToolPattern;
use chrono::TimeZone as _;
use std::os::unix::fs::symlink;

struct Folder {
    dir: tempfile::TempDir,
    home: Home,
}

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().join("bot"));
        fs::create_dir(home.root()).unwrap();
        Self { dir, home }
    }

    fn put(&self, file: &str, text: &str) -> PathBuf {
        let path = self.home.root().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        PathBuf::from(file)
    }

    fn text(&self, file: impl AsRef<Path>) -> String {
        fs::read_to_string(self.home.root().join(file)).unwrap()
    }

    fn files(&self) -> Vec<String> {
        fn walk(folder: &Path, root: &Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, root, found);
                } else {
                    found.push(path.strip_prefix(root).unwrap().display().to_string());
                }
            }
        }
        let mut found = Vec::new();
        walk(self.home.root(), self.home.root(), &mut found);
        found.sort();
        found
    }
}

fn defaults() -> Defaults {
    Defaults { zone: chrono_tz::UTC, commands: ["gmail"].into(), agents: Default::default() }
}

fn at(hour: u32) -> DateTime<FixedOffset> {
    FixedOffset::east_opt(3600).unwrap().with_ymd_and_hms(2030, 1, 1, hour, 0, 0).unwrap()
}

fn move_to_failed(home: &Home, file: &Path, reason: &str) -> Result<Option<PathBuf>, DefinitionError> {
    super::move_to_failed(home, file, reason, &defaults(), |_| true)
}

fn tea() -> Draft {
    Draft::new(When::At(at(9)), "Check the oven!\n\nIs it done?")
}

#[test]
fn a_link_becomes_a_file_of_its_own() {
    let folder = Folder::new();
    let written: Vec<WrittenFile> = (0..3).map(|_| create_link(&folder.home, &tea(), &defaults()).unwrap()).collect();
    assert_eq!(
        folder.files(),
        ["reminders/check-the-oven-2.md", "reminders/check-the-oven-3.md", "reminders/check-the-oven.md"]
    );
    for w in &written {
        let id = w.definition.id.as_str();
        assert!(id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
        assert_eq!(w.warnings, []);
    }
    let store = Store::open(&folder.home, defaults()).unwrap();
    assert_eq!(store.definitions().count(), 3);
    for w in &written {
        assert_eq!(**store.get(&w.definition.id).unwrap(), w.definition);
    }
}

/// Creates a draft where `gone` is the only id that was used before.
fn named(folder: &Folder, draft: &Draft) -> Result<WrittenFile, DefinitionError> {
    create(&folder.home, draft, |id| id.as_str() == "gone", &defaults())
}

#[test]
fn a_new_file_is_named_after_its_text_and_its_name_is_its_id() {
    let folder = Folder::new();
    let id = |draft: &Draft| named(&folder, draft).unwrap().definition.id.to_string();
    assert_eq!(id(&tea()), "check-the-oven");
    assert!(!folder.text("reminders/check-the-oven.md").contains("id:"));
    // The same text again is another job, of any kind.
    assert_eq!(id(&tea()), "check-the-oven-2");
    assert_eq!(id(&Draft::new(When::Cron("@daily".into()), "Check the oven")), "check-the-oven-3");
    // Ids that other files have or name, valid or not, failed or not.
    folder.put("routines/a.md", "---\ncron: '@daily'\nid: \"tea\" # mine\ncreated_by: milk\n---\nx\n");
    folder.put("reminders/broken.md", "---\nid: [\n---\n");
    folder.put("reminders/failed/sugar.md", "---\nrun_at: 2020-01-01T09:00:00Z\n---\nx\n");
    for taken in ["tea", "milk", "broken", "sugar", "gone"] {
        assert_eq!(id(&Draft::new(When::At(at(9)), taken)), format!("{taken}-2"));
    }
    assert_eq!(id(&Draft::new(When::At(at(9)), "買い物")), "reminder");
    let asked = |name: &str| Draft { id: Some(DefinitionId::new(name)), ..tea() };
    assert_eq!(id(&asked("oven")), "oven");
    let before = folder.files();
    for (name, words) in [("oven", "is taken"), ("tea", "is taken"), ("gone", "is taken"), ("../x", "is no name")] {
        let error = named(&folder, &asked(name)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(folder.files(), before);
    assert!(
        Store::open(&folder.home, defaults())
            .unwrap()
            .problems()
            .iter()
            .all(|problem| { problem.file.ends_with("broken.md") })
    );
}

#[test]
fn what_is_moved_keeps_its_id() {
    let folder = Folder::new();
    let text = "---\nrun_at: 2030-01-01T09:00:00Z\n---\nTea.\n";
    let mut moved = Vec::new();
    for _ in 0..2 {
        let file = folder.put("reminders/Tea.md", text);
        moved.push(move_to_failed(&folder.home, &file, "it ended").unwrap().unwrap());
        // After a crash, a second move finds the copy.
        folder.put("reminders/Tea.md", text);
        assert_eq!(move_to_failed(&folder.home, &file, "it ended").unwrap().as_ref(), moved.last());
        folder.put(&moved[0].display().to_string(), "---\nrun_at: 2030-01-01T09:00:00Z\n---\nAn earlier one.\n");
    }
    assert_eq!(moved, [Path::new("reminders/failed/Tea.md"), Path::new("reminders/failed/Tea-2.md")]);
    assert!(folder.text(&moved[1]).contains("id: Tea\n"));
    let written = restore_failed(&folder.home, &DefinitionId::new("Tea"), at(9), &defaults()).unwrap();
    assert_eq!(written.definition.id.as_str(), "Tea");
}

#[test]
fn a_draft_that_breaks_a_rule_is_not_written() {
    let folder = Folder::new();
    let mut both = tea();
    both.background = true;
    both.allowed_tools = Some(vec![ToolPattern::parse("Read").unwrap()]);
    both.disallowed_tools = Some(vec![ToolPattern::parse("Write").unwrap()]);
    let mut foreground = tea();
    foreground.allowed_tools = Some(vec![]);
    let mut malformed = tea();
    malformed.background = true;
    malformed.allowed_tools = Some(vec![ToolPattern::parse("Glob").unwrap()]);
    let mut option = tea();
    option.background = true;
    option.model = Some("--help".into());
    let mut agent = tea();
    agent.background = true;
    agent.agent = Some("../Explore".into());
    let mut turn = tea();
    turn.agent = Some("Explore".into());
    let empty = Draft::new(When::Cron("@daily".into()), " \n");
    let never = Draft::new(When::Cron("0 0 30 2 *".into()), "x");
    let drafts = [both, foreground, malformed, option, agent, turn, empty, never];
    let error = |draft: &Draft| {
        // A draft cannot hold a malformed pattern. A text can.
        let text = draft.render(Some(&DefinitionId::new("x"))).replace("Glob", "Bash(ls");
        create_text(&folder.home, draft.kind, "x", &text, &defaults()).unwrap_err().to_string()
    };
    let errors: Vec<String> = drafts.iter().map(error).collect();
    insta::assert_snapshot!(errors.join("\n"), @"
    `allowed_tools` and `disallowed_tools` cannot both be set (keep one: `allowed_tools` lists the only tools the job has, `disallowed_tools` takes tools away)
    `allowed_tools` does not hold on a foreground job (add `background: true`, or remove `allowed_tools`: the job then has the main session's tools)
    `allowed_tools`: unbalanced parentheses in tool pattern `Bash(ls` (write `Tool` or `Tool(what)`, in quotes where it holds `: ` or ` #`)
    `model` must be the name of a model, found `--help` (for example `haiku`, `sonnet` or `claude-sonnet-4-5`)
    `agent` must be the name of an agent, found `../Explore` (`ollim-bot agents list` shows those there are)
    `agent` does not hold on a foreground job (add `background: true`, or remove `agent`: the job then has the main session's tools)
    the body is empty (write the prompt below the closing `---`)
    bad `cron` `0 0 30 2 *`: no date ever matches it, so it can never fire (check the day against the month: a 30 February or a 31 April does not exist)
    ");
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn many_writers_lose_nothing() {
    let folder = Folder::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10).for_each(|_| drop(named(&folder, &tea()).unwrap())));
        }
    });
    assert_eq!(Store::open(&folder.home, defaults()).unwrap().definitions().count(), 40);
}

#[test]
fn a_field_is_set_where_it_stands() {
    let folder = Folder::new();
    let text = "---\n# mine\nid: x\nrun-at: 2030-01-01T09:00:00Z # tea\n---\nTea.\n";
    let file = folder.put("reminders/tea.md", text);
    let written = set_field(&folder.home, &file, "enabled", Some(FieldValue::Flag(false)), &defaults()).unwrap();
    assert!(!written.definition.enabled);
    assert_eq!(folder.text(&file), text.replace("tea\n---", "tea\nenabled: false\n---"));
    let snooze = FieldValue::Text(at(10).to_rfc3339());
    let written = set_fields(&folder.home, &file, &[("run_at", Some(snooze)), ("enabled", None)], &defaults()).unwrap();
    assert_eq!(written.definition.trigger.run_at(), Some(at(10).to_utc()));
    assert_eq!(folder.text(&file), text.replace("2030-01-01T09:00:00Z", "'2030-01-01T10:00:00+01:00'"));
}

#[test]
fn a_change_that_breaks_a_rule_is_not_written() {
    let folder = Folder::new();
    let text = "---\nrun_at: 2030-01-01T09:00:00Z\n---\nTea.\n";
    let file = folder.put("reminders/tea.md", text);
    let list = Some(FieldValue::Texts(vec!["Read".into()]));
    let error = set_field(&folder.home, &file, "allowed_tools", list, &defaults()).unwrap_err();
    assert!(matches!(error, DefinitionError::Invalid { .. }), "{error}");
    let flow = folder.put("reminders/flow.md", "---\n{run_at: 2030-01-01T09:00:00Z}\n---\nTea.\n");
    let error = set_field(&folder.home, &flow, "enabled", Some(FieldValue::Flag(false)), &defaults()).unwrap_err();
    assert!(matches!(error, DefinitionError::Edit { .. }), "{error}");
    let error = set_field(&folder.home, Path::new("reminders/no.md"), "enabled", None, &defaults()).unwrap_err();
    assert!(matches!(error, DefinitionError::NotFound { .. }), "{error}");
    assert_eq!(folder.text(&file), text);
}

#[test]
fn only_definitions_are_touched() {
    let folder = Folder::new();
    folder.put("config.yaml", "x");
    for path in ["config.yaml", "reminders/../config.yaml", "reminders/failed/x.md", "/etc/passwd", "reminders", ""] {
        let error = remove(&folder.home, Path::new(path)).unwrap_err();
        assert!(matches!(error, DefinitionError::NotADefinition { .. }), "{path}: {error}");
        assert!(move_to_failed(&folder.home, Path::new(path), "x").is_err());
        assert!(set_fields(&folder.home, Path::new(path), &[], &defaults()).is_err());
    }
    assert_eq!(folder.files(), ["config.yaml"]);
    assert!(!remove(&folder.home, Path::new("reminders/tea.md")).unwrap());
}

#[test]
fn a_symlinked_file_is_changed_where_it_lies() {
    let folder = Folder::new();
    folder.put("mine/tea.md", "---\nrun_at: 2030-01-01T09:00:00Z\n---\nTea.\n");
    fs::create_dir(folder.home.reminders()).unwrap();
    symlink("../mine/tea.md", folder.home.reminders().join("tea.md")).unwrap();
    set_field(&folder.home, Path::new("reminders/tea.md"), "enabled", Some(FieldValue::Flag(false)), &defaults())
        .unwrap();
    assert!(folder.home.reminders().join("tea.md").is_symlink());
    assert!(folder.text("mine/tea.md").contains("enabled: false\n"));
    // Nothing is written through a folder that leaves the data folder.
    fs::rename(folder.home.reminders(), folder.dir.path().join("outside")).unwrap();
    symlink(folder.dir.path().join("outside"), folder.home.reminders()).unwrap();
    assert!(create_link(&folder.home, &tea(), &defaults()).is_err());
    assert_eq!(fs::read_dir(folder.dir.path().join("outside")).unwrap().count(), 1);
}

#[test]
fn a_failed_reminder_goes_aside_with_its_reason_and_comes_back() {
    let folder = Folder::new();
    let text = "---\nid: x # mine\nrun_at: 2030-01-01T09:00:00Z\n---\n\nTea.\n";
    let file = folder.put("reminders/tea.md", text);
    let moved = move_to_failed(&folder.home, &file, "timed out:\n after 30m").unwrap().unwrap();
    assert_eq!(folder.files(), ["reminders/failed/tea.md"]);
    assert_eq!(folder.text(&moved), text.replace("Z\n---", "Z\nfailed_reason: 'timed out: after 30m'\n---"));
    // A repetition after a crash between the two steps makes no second copy.
    folder.put("reminders/tea.md", text);
    assert_eq!(move_to_failed(&folder.home, &file, "timed out:\n after 30m").unwrap(), Some(moved));
    assert_eq!(move_to_failed(&folder.home, &file, "timed out").unwrap(), None);
    assert_eq!(folder.files(), ["reminders/failed/tea.md"]);
    // Another reminder with the same name: both are kept.
    folder.put("reminders/tea.md", &text.replace("id: x", "id: y"));
    move_to_failed(&folder.home, &file, "no network").unwrap().unwrap();
    let failed = failed_reminders(&folder.home, &defaults()).unwrap();
    let shown: Vec<_> = failed.iter().map(|f| (f.file.to_str().unwrap(), f.reason.as_deref().unwrap())).collect();
    assert_eq!(
        shown,
        [("reminders/failed/tea-2.md", "no network"), ("reminders/failed/tea.md", "timed out: after 30m")]
    );
    let back = restore_failed(&folder.home, &DefinitionId::new("x"), at(12), &defaults()).unwrap();
    assert_eq!(back.definition.trigger.run_at(), Some(at(12).to_utc()));
    assert_eq!(folder.files(), ["reminders/failed/tea-2.md", "reminders/tea.md"]);
    assert_eq!(folder.text("reminders/tea.md"), text.replace("2030-01-01T09:00:00Z", "'2030-01-01T12:00:00+01:00'"));
    let error = restore_failed(&folder.home, &DefinitionId::new("x"), at(12), &defaults()).unwrap_err();
    assert!(matches!(error, DefinitionError::NotFound { .. }), "{error}");
}

#[test]
fn a_reminder_that_has_a_new_time_does_not_go_aside() {
    let folder = Folder::new();
    let file = folder.put("reminders/tea.md", "---\nrun_at: 2030-01-01T09:00:00Z\n---\nTea.\n");
    let at = |hour: u32| {
        move |found: &Definition| found.trigger.run_at() == Some(Utc.with_ymd_and_hms(2030, 1, 1, hour, 0, 0).unwrap())
    };
    let move_if = |hour: u32| super::move_to_failed(&folder.home, &file, "x", &defaults(), at(hour)).unwrap();
    assert_eq!(move_if(8), None);
    assert_eq!(folder.files(), ["reminders/tea.md"]);
    assert!(move_if(9).is_some());
    assert_eq!(folder.files(), ["reminders/failed/tea.md"]);
}

#[test]
fn a_broken_file_goes_aside_as_it_is() {
    let folder = Folder::new();
    let file = folder.put("reminders/tea.md", "no frontmatter");
    let moved = move_to_failed(&folder.home, &file, "x").unwrap().unwrap();
    assert_eq!(folder.text(moved), "no frontmatter");
}

#[test]
fn a_reminder_that_was_changed_while_it_ran_stays() {
    let folder = Folder::new();
    let file = create_link(&folder.home, &tea(), &defaults()).unwrap().definition.file;
    let fired = read_text(&folder.home, &file).unwrap().unwrap();
    let later = Some(FieldValue::Text(at(11).to_rfc3339()));
    set_field(&folder.home, &file, "run_at", later, &defaults()).unwrap();
    assert!(!remove_unchanged(&folder.home, &file, &fired).unwrap());
    let now = read_text(&folder.home, &file).unwrap().unwrap();
    assert!(remove_unchanged(&folder.home, &file, &now).unwrap());
    assert_eq!(read_text(&folder.home, &file).unwrap(), None);
    // A missing file counts as removed.
    assert!(remove_unchanged(&folder.home, &file, &fired).unwrap());
}

#[test]
fn a_file_is_not_gone_while_its_data_folder_is_away() {
    let folder = Folder::new();
    let file = create_link(&folder.home, &tea(), &defaults()).unwrap().definition.file;
    let fired = read_text(&folder.home, &file).unwrap().unwrap();
    let away = folder.home.root().with_extension("away");
    std::fs::rename(folder.home.root(), &away).unwrap();
    assert!(is_gone(&folder.home, &file).is_err());
    assert!(remove_unchanged(&folder.home, &file, &fired).is_err());
    assert!(move_to_failed(&folder.home, &file, "x").is_err());
    std::fs::rename(&away, folder.home.root()).unwrap();
    assert!(!is_gone(&folder.home, &file).unwrap());
    assert!(remove_unchanged(&folder.home, &file, &fired).unwrap());
    assert!(is_gone(&folder.home, &file).unwrap());
    assert_eq!(move_to_failed(&folder.home, &file, "x").unwrap(), None);
    // The same with the folder of the reminders alone.
    std::fs::create_dir_all(folder.home.runs()).unwrap();
    std::fs::rename(folder.home.reminders(), &away).unwrap();
    assert!(is_gone(&folder.home, &file).is_err());
    assert!(remove_unchanged(&folder.home, &file, &fired).is_err());
    assert!(move_to_failed(&folder.home, &file, "x").is_err());
    std::fs::rename(&away, folder.home.reminders()).unwrap();
    assert!(is_gone(&folder.home, &file).unwrap());
}

#[test]
fn a_full_or_locked_folder_is_said_plainly() {
    let folder = Folder::new();
    folder.put("reminders", "a file in the way");
    let error = create_link(&folder.home, &tea(), &defaults()).unwrap_err();
    assert!(matches!(error, DefinitionError::Io { .. }), "{error}");
    let nowhere = Home::new(folder.dir.path().join("nowhere"));
    assert!(matches!(create_link(&nowhere, &tea(), &defaults()), Err(DefinitionError::NoHome { .. })));
}
