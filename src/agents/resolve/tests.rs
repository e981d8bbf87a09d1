//! Resolution of names over folders of files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;

/// A data folder and a person's home folder.
struct Folders(tempfile::TempDir);

impl Folders {
    fn new() -> Self {
        let folders = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(folders.home().root()).unwrap();
        folders
    }
    fn root(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }
    fn home(&self) -> Home {
        Home::new(self.root().join("bot"))
    }
    fn path(&self, scope: Scope, file: &str) -> PathBuf {
        match scope {
            Scope::Project => self.home().agents().join(file),
            _ => self.root().join(".claude/agents").join(file),
        }
    }
    fn write(self, scope: Scope, file: &str, text: &str) -> Self {
        let path = self.path(scope, file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }
    fn agent(self, scope: Scope, file: &str, name: &str) -> Self {
        self.write(scope, file, &format!("---\nname: {name}\ndescription: d\n---\n{scope:?} {file}\n"))
    }
    fn load(&self) -> Agents {
        Agents::load(&self.home(), Some(&self.root()))
    }
}

/// Returns the prompt's first line, or the error without the folders' root.
fn prompt(folders: &Folders, name: &str) -> String {
    match folders.load().get(name) {
        Ok(agent) => agent.prompt.lines().next().unwrap().to_owned(),
        Err(error) => error.to_string().replace(&folders.root().display().to_string(), ""),
    }
}

use Scope::{Project, User};

#[test]
fn the_highest_source_holds() {
    let folders = Folders::new()
        .agent(Project, "a.md", "both")
        .agent(User, "b.md", "both")
        .agent(User, "c.md", "Plan")
        .agent(User, "team/deep.md", "deep");
    for (name, expected) in [
        ("both", "Project a.md"),
        ("Plan", "User c.md"),
        ("deep", "User team/deep.md"),
        ("Explore", "You search files for another agent and tell it what is where. You read; you change nothing."),
        ("nobody", "there is no agent `nobody`"),
        ("explore", "there is no agent `explore`; did you mean `Explore`?"),
        ("Exlpore", "there is no agent `Exlpore`; did you mean `Explore`?"),
    ] {
        assert_eq!(prompt(&folders, name), expected, "{name}");
    }
    let agents = folders.load();
    let place = |name: &str| {
        let agent = agents.get(name).unwrap();
        (agent.source.scope.as_str(), agent.source.scope.priority(), agent.source.path.clone())
    };
    assert_eq!(place("both"), ("project", 1, folders.path(Project, "a.md")));
    assert_eq!(place("Plan"), ("user", 2, folders.path(User, "c.md")));
    assert_eq!(place("Explore"), ("builtin", 3, "<builtin:Explore>".into()));
    assert_eq!(agents.problems(), []);
    let names: Vec<&str> = agents.usable().map(|agent| agent.name.as_str()).collect();
    assert_eq!(
        names,
        ["Bash", "both", "claude-code-guide", "deep", "Explore", "general-purpose", "Plan", "statusline-setup"],
        "each once"
    );
}

#[test]
fn a_broken_file_is_an_error_and_never_a_fall_through() {
    let broken = "---\nname: Explore\ndescription: d\ntools: [\n---\nx\n";
    for (file, text, expected) in [
        ("a.md", broken, "agent `Explore` cannot be used: agents/a.md:5:1: the frontmatter is not valid YAML"),
        ("Explore.md", "no frontmatter", "agent `Explore` cannot be used: agents/Explore.md:1:1: there is no front"),
        ("explore.md", "---\nname:\n---\nx", "agent `Explore` cannot be used: agents/explore.md:"),
        (
            "a.md",
            "---\nname: Explore\ndescription: d\ntools: []\n---\nx",
            "agent `Explore` cannot be used: agents/a.md:4:1",
        ),
        (
            "a.md",
            "---\nname: explore\ndescription: d\n---\nx",
            "agent `Explore` cannot be used: agents/a.md:1:1: the name `explore` differs",
        ),
        ("a.md", "name: Explore", "agent `Explore` cannot be used: agents/a.md:1:1: there is no frontmatter"),
    ] {
        let folders = Folders::new().write(Project, file, text).agent(User, "fine.md", "Explore");
        let said = prompt(&folders, "Explore");
        assert!(said.starts_with(expected), "{text}\n{said}");
        // Other agents stay usable.
        assert!(prompt(&folders, "Plan").starts_with("# Role"), "{text}");
    }
}

#[test]
fn two_files_of_one_name_are_both_wrong() {
    let folders = Folders::new().agent(User, "a.md", "Plan").agent(User, "b.md", "Plan");
    assert_eq!(
        prompt(&folders, "Plan"),
        "agent `Plan` cannot be used: /.claude/agents/a.md:1:1: the agent name `Plan` is also that of /.claude/agents/b.md"
    );
    assert_eq!(folders.load().problems().len(), 2);
    // An agent of a higher source replaces both.
    let folders = folders.agent(Project, "c.md", "Plan");
    assert_eq!(prompt(&folders, "Plan"), "Project c.md");
}

#[test]
fn what_cannot_be_read_hides_all_that_is_below_it() {
    type Make = fn(&Folders);
    let cases: [(&str, Make); 4] = [
        ("a symlink out of the data folder", |folders| {
            fs::write(folders.root().join("out.md"), "---\nname: Plan\n---\n").unwrap();
            symlink(folders.root().join("out.md"), folders.path(Project, "x.md")).unwrap();
        }),
        ("a symlink to nothing", |folders| symlink("/nowhere", folders.path(Project, "x.md")).unwrap()),
        ("a pipe", |folders| {
            rustix::fs::mknodat(
                rustix::fs::CWD,
                folders.path(Project, "x.md"),
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::from_raw_mode(0o600),
                0,
            )
            .unwrap();
        }),
        ("folders without end", |folders| {
            fs::create_dir_all(folders.path(Project, &"d/".repeat(12))).unwrap();
        }),
    ];
    for (what, make) in cases {
        let folders = Folders::new().agent(Project, "mine.md", "mine").agent(User, "a.md", "Bash");
        make(&folders);
        assert_eq!(prompt(&folders, "mine"), "Project mine.md", "{what}");
        for name in ["Plan", "Bash", "unheard-of"] {
            let said = prompt(&folders, name);
            assert!(said.contains("cannot be used: agents/") && said.contains("cannot be read"), "{what}: {said}");
        }
    }
    // The agents' folder itself is unreadable.
    let folders = Folders::new();
    fs::write(folders.home().agents(), "a file").unwrap();
    assert!(prompt(&folders, "Plan").contains("agents:1:1: the folder cannot be read"));
}

#[test]
fn what_editors_leave_is_no_agent() {
    let folders = Folders::new()
        .agent(User, ".Plan.md", "Plan")
        .agent(User, "#Plan.md#", "Plan")
        .agent(User, "Plan.md~", "Plan")
        .agent(User, ".git/Plan.md", "Plan")
        .agent(User, "Plan.txt", "Plan");
    assert!(prompt(&folders, "Plan").starts_with("# Role"));
    // Outside the data folder a person may use symlinks.
    fs::write(folders.root().join("dotfile.md"), "---\nname: Plan\ndescription: d\n---\nlinked\n").unwrap();
    symlink(folders.root().join("dotfile.md"), folders.path(User, "Plan.md")).unwrap();
    assert_eq!(prompt(&folders, "Plan"), "linked");
}

#[test]
fn a_background_job_has_no_agent_of_the_main_session() {
    let agents = Agents::built_in();
    assert_eq!(agents.for_background("statusline-setup"), Err(AgentError::MainSessionOnly("statusline-setup".into())));
    assert!(agents.for_background("Plan").is_ok() && agents.get("statusline-setup").is_ok());
}
