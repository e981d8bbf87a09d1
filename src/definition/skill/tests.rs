use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::definition::{Change, Defaults, Kind, Store};

fn home() -> (tempfile::TempDir, Home) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path().canonicalize().unwrap());
    (folder, home)
}

fn write(home: &Home, file: &str, text: &str) {
    let path = home.root().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn defaults() -> Defaults {
    Defaults { zone: chrono_tz::Tz::UTC, commands: ["gmail"].into(), agents: Default::default() }
}

/// Returns the problems of a background routine with these fields, where `skills/mail/SKILL.md` is `skill`.
fn check(skill: &str, fields: &str) -> String {
    let (_folder, home) = home();
    write(&home, "skills/mail/SKILL.md", skill);
    let text = format!("---\ncron: '@daily'\nbackground: true\n{fields}\n---\nx\n");
    let parsed = read::parsed(&home, Kind::Routine, Path::new("routines/r.md"), text.as_bytes(), &defaults());
    assert_eq!(parsed.definition.is_none(), parsed.problems.iter().any(Problem::is_error));
    parsed.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

const MAIL: &str = "---\nname: mail\ndescription: Sort\n  the mail\nallowed-tools: Read, Bash(ollim-bot gmail *), mcp__discord__ping_user\nlicense: x\n---\n\nRead it.\n";

#[test]
fn a_skill_is_read_in_the_clients_format() {
    let (_folder, home) = home();
    write(&home, "skills/mail/SKILL.md", MAIL);
    write(&home, "skills/b/SKILL.md", "---\nallowed-tools:\n  - Read\n---\nB.");
    let names = ["mail".to_owned(), "b".to_owned()];
    let mail = Skill {
        name: "mail".into(),
        description: "Sort the mail".into(),
        allowed_tools: vec!["Read".into(), "Bash(ollim-bot gmail *)".into(), "mcp__discord__ping_user".into()],
        body: "Read it.".into(),
    };
    let b =
        Skill { name: "b".into(), description: String::new(), allowed_tools: vec!["Read".into()], body: "B.".into() };
    assert_eq!(load_skills(&home, &names).unwrap(), [mail, b]);
    assert_eq!(words("Read Bash(git log, x y) ,, Grep"), ["Read", "Bash(git log, x y)", "Grep"]);
}

#[test]
fn a_tool_that_a_skill_uses_and_the_job_lacks_is_a_warning() {
    assert_eq!(check(MAIL, "skills: [mail]"), "");
    let all = "allowed_tools: [Read, 'Bash(ollim-bot gmail *)', mcp__discord__ping_user]";
    assert_eq!(check(MAIL, &format!("skills: [mail]\n{all}")), "");
    insta::assert_snapshot!(check(MAIL, "skills:\n  - mail\nallowed_tools: [Read, 'Bash(ollim-bot gmail unread)']"), @"
    warning: routine `r`: skill `mail` uses `Bash(ollim-bot gmail *)`, which this job lacks
      --> routines/r.md:5:5
    hint: a skill adds no tools: give the job the tool, or leave it as it is
    warning: routine `r`: skill `mail` uses `mcp__discord__ping_user`, which this job lacks
      --> routines/r.md:5:5
    hint: a skill adds no tools: give the job the tool, or leave it as it is
    ");
    let lacks = |fields: &str| check(MAIL, &format!("skills: [mail]\n{fields}")).matches("this job lacks").count();
    assert_eq!(lacks("disallowed_tools: [WebFetch]"), 0);
    assert_eq!(lacks("disallowed_tools: [Bash, Read]"), 2);
    assert_eq!(lacks("allow_ping: false"), 1);
    assert_eq!(lacks("allowed_tools: []"), 3);
    let unknown = MAIL.replace("Read,", "NoSuchTool(");
    assert!(check(&unknown, "skills: [mail]").contains("which this job lacks"));
}

#[test]
fn a_skill_that_cannot_be_used_is_an_error_where_it_is_named() {
    insta::assert_snapshot!(check(MAIL, "skills:\n  - mail\n  - mial"), @"
    error: routine `r`: skill `mial` cannot be used: there is no such skill
      --> routines/r.md:6:5
    hint: did you mean `mail`?
    ");
    insta::assert_snapshot!(check(MAIL, "skills: [gone]"), @"
    error: routine `r`: skill `gone` cannot be used: there is no such skill
      --> routines/r.md:4:10
    hint: write skills/gone/SKILL.md, or take it out of `skills`
    ");
    let wrong = |skill: &str| check(skill, "skills: [mail]");
    insta::assert_snapshot!(wrong("Read it."), @"
    error: routine `r`: skill `mail` cannot be used: it has no frontmatter with `name` and `description`
      --> routines/r.md:4:10
    hint: see skills/mail/SKILL.md:1:1
    ");
    insta::assert_snapshot!(wrong("---\nname: mail\nRead it."), @"
    error: routine `r`: skill `mail` cannot be used: its frontmatter is not closed
      --> routines/r.md:4:10
    hint: see skills/mail/SKILL.md:1:1
    ");
    insta::assert_snapshot!(wrong("---\nname: mail\nallowed-tools: {a: b}\n---\nx"), @"
    error: routine `r`: skill `mail` cannot be used: its `allowed-tools` is not a list of tools
      --> routines/r.md:4:10
    hint: see skills/mail/SKILL.md:3:1
    ");
    insta::assert_snapshot!(wrong("---\nname: mail\n---\n \n"), @"
    error: routine `r`: skill `mail` cannot be used: it says nothing below its frontmatter
      --> routines/r.md:4:10
    hint: see skills/mail/SKILL.md:3:1
    ");
    assert!(wrong("---\nname: [\n---\nx").contains("its frontmatter is not valid YAML"));
}

/// A name is never a path: nothing outside of `skills/` is read into a prompt.
#[test]
fn no_name_leads_out_of_the_folder() {
    let (_folder, home) = home();
    write(&home, "secret/SKILL.md", MAIL);
    fs::create_dir_all(home.skills()).unwrap();
    for name in ["../secret", "/etc", "..", ".", "", "a/b", "-x", ".hidden", "a b", "ä", &"x".repeat(65)] {
        assert!(load(&home, name).unwrap_err().to_string().contains("there is no such skill"), "{name}");
        let text = format!("---\ncron: '@daily'\nskills: ['{name}']\n---\nx\n");
        let parsed = parse(Kind::Routine, Path::new("routines/r.md"), text.as_bytes(), &defaults());
        assert!(parsed.problems[0].message.contains("is no name of a skill"), "{name}: {:?}", parsed.problems);
    }
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("SKILL.md"), MAIL).unwrap();
    symlink(outside.path(), home.skills().join("folder")).unwrap();
    fs::create_dir(home.skills().join("file")).unwrap();
    symlink(outside.path().join("SKILL.md"), home.skills().join("file/SKILL.md")).unwrap();
    for name in ["folder", "file"] {
        assert!(load(&home, name).unwrap_err().to_string().contains("outside of the data folder"), "{name}");
    }
    symlink(home.root().join("secret"), home.skills().join("within")).unwrap();
    assert_eq!(load(&home, "within").unwrap().body, "Read it.");
    fs::create_dir_all(home.skills().join("pipe")).unwrap();
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, home.skills().join("pipe/SKILL.md"), rustix::fs::FileType::Fifo, mode, 0)
        .unwrap();
    assert!(load(&home, "pipe").unwrap_err().to_string().contains("not a regular file"));
}

#[test]
fn a_job_is_in_force_as_soon_as_its_skill_is_there() {
    let (_folder, home) = home();
    write(&home, "routines/r.md", "---\ncron: '@daily'\nskills: [mail]\n---\nx\n");
    write(&home, "routines/other.md", "---\ncron: '@daily'\n---\nx\n");
    let mut store = Store::open(&home, defaults()).unwrap();
    assert_eq!((store.definitions().count(), store.problems().len()), (1, 1));
    write(&home, "skills/mail/SKILL.md", MAIL);
    let changes = store.refresh(&[folder()]);
    let upserted = |change: &Change| matches!(change, Change::Upsert(definition) if definition.id.as_str() == "r");
    assert!(changes.len() == 2 && changes.iter().any(upserted), "{changes:?}");
    fs::remove_file(home.skills().join("mail/SKILL.md")).unwrap();
    let changes = store.refresh(&[home.skills().join("mail/SKILL.md")]);
    assert!(changes.iter().any(|change| matches!(change, Change::Removed(id) if id.as_str() == "r")), "{changes:?}");
}
