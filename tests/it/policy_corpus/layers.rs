//! Each layer alone, on the real client: the attacks that it stops while the three others are off.
//!
//! The program has no switch for a layer, so the test disables each from outside. Visibility: every tool is shown, and those of
//! further servers. Hook: it allows every call. Behind the client's layer it is silent, since a stand-in for the client's command
//! removes it from our `initialize`. Client: the stand-in starts the client in its most permissive mode, with no rules. Shell: the
//! run's request omits the sandbox. An attack counts only if it has its effect with all four layers off. `OLLIM_CORPUS=all` tries
//! four times as many, and all attacks on a read-only agent. docs/policy.md has the figures; `OLLIM_BLESS=1` writes them there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use ollim_bot::agent::AttemptEnd;
use ollim_bot::home::Home;
use ollim_bot::policy::Verdict;
use ollim_bot::run::sandbox::{ClosedPlaces, JobSandbox, SandboxPlan};
use serde_json::json;

use super::engine;
use super::entry::{Case, RefusingLayer, fixtures, load};
use super::player::Play;
use super::workspace::Workspace;
use crate::support::client;
use crate::support::messages_api::MessagesApi;
use crate::support::turn::{self, Fixture, HookReply, Host};

/// Number of attacks of a class that are tried. More are tried on look-alike names and on a read-only agent.
const EACH: usize = 5;
const OF_NAMES: usize = 15;
const OF_READ_ONLY: usize = 12;

/// Number of sessions that run concurrently.
const AT_ONCE: usize = 4;

/// Our server's tools.
const OURS: [&str; 3] = ["ping_user", "discord_embed", "report_updates"];

/// MCP servers whose names resemble ours or a rule's, with their tools. Without the visibility layer the client has them.
const FOREIGN: [(&str, &[&str]); 5] = [
    ("Discord", &["ping_user"]),
    ("discord2", &["ping_user", "run"]),
    ("discordx", &["ping_user"]),
    ("discord_evil", &["run"]),
    ("evil", &["ping_user", "run", "discord__run", "mcp__discord__ping_user"]),
];

/// Returns the client's names of the tools of [`FOREIGN`].
fn foreign_tools() -> impl Iterator<Item = String> {
    FOREIGN.iter().flat_map(|(server, tools)| tools.iter().map(move |tool| format!("mcp__{server}__{tool}")))
}

/// Returns the client's MCP configuration with all servers of [`FOREIGN`].
fn every_server(log: &Path) -> String {
    let script = fixtures().join("mcp-server");
    let mut servers = json!({});
    for (name, tools) in FOREIGN {
        let args: Vec<&str> = [log.to_str().expect("a plain path")].iter().chain(tools).copied().collect();
        servers[name] = json!({ "type": "stdio", "command": script, "args": args });
    }
    json!({ "mcpServers": servers }).to_string()
}

/// All tools that the client can show.
const EVERY_TOOL: &[&str] = &[
    "Bash",
    "Read",
    "Edit",
    "Write",
    "NotebookEdit",
    "Glob",
    "Grep",
    "WebFetch",
    "WebSearch",
    "CronCreate",
    "CronList",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GuardLayer {
    Visibility,
    Hook,
    Client,
    Shell,
}

const LAYERS: [GuardLayer; 4] = [GuardLayer::Visibility, GuardLayer::Hook, GuardLayer::Client, GuardLayer::Shell];

/// Writes a stand-in for the client's command with some layers off. With a log, it has the servers of [`FOREIGN`].
fn stand_in(folder: &Path, wall: Option<GuardLayer>, log: Option<&Path>) -> std::path::PathBuf {
    let mode = if wall == Some(GuardLayer::Client) { "dontAsk" } else { "bypassPermissions" };
    // If the client's layer is tried, the hook is silent: under another name the client never calls it. Otherwise it allows.
    let hook = if wall == Some(GuardLayer::Client) { "1s/\"PreToolUse\":/\"PreCompact\":/" } else { "" };
    // The result of a call that nobody allowed would end the run, so the service does not hear of it.
    let results = if wall == Some(GuardLayer::Client) { "/\"type\":\"tool_result\"/d" } else { "" };
    let servers = log.map(every_server).unwrap_or_default();
    // A bash that is not ours would have the variable for the client's own git.
    client::script(
        folder,
        &format!(
            "words=() servers='{servers}'\n\
             for word; do\n\
             [ \"$word\" = dontAsk ] && word={mode}\n\
             words+=(\"$word\")\n\
             done\n\
             [ -n \"$servers\" ] && words+=(--mcp-config \"$servers\")\n\
             unset GIT_DIR\n\
             exec {} \"${{words[@]}}\" < <(exec sed -u '{hook}') > >(exec sed -u '{results}')",
            client::real().display()
        ),
    )
}

/// Returns the shell, its broker and the kernel's sandbox of a case's job.
fn sandbox(case: &Case, workspace: &Workspace, fixture: &Fixture) -> JobSandbox {
    let plan = SandboxPlan {
        home: Home::new(workspace.data()),
        user_home: workspace.home(),
        run_dir: fixture.run_dir(),
        links: fixture.run_dir(),
        granted: engine::granted(case, workspace),
        path: engine::search_path(workspace),
        shell_binary: fixture.claude.shell_binary.clone(),
        required: false,
        limits: agent_sandbox::Limits::default(),
        network: true,
        proxied: false,
        closed: ClosedPlaces::default(),
    };
    JobSandbox::make(plan, engine::policy(case, workspace).shell(None).as_ref()).expect("its folders")
}

/// Returns the part of a session's settings that depends on the case. Cases with equal keys share a session.
fn key(case: &Case, wall: Option<GuardLayer>, workspace: &Workspace) -> String {
    match wall {
        // The policy is consulted for each call.
        None | Some(GuardLayer::Hook) => String::new(),
        Some(GuardLayer::Visibility) => {
            let policy = engine::policy(case, workspace);
            [policy.visible_tools(), policy.visible_mcp(&OURS)].concat().join(",")
        }
        Some(GuardLayer::Client) => engine::policy(case, workspace).deny_rules().join(","),
        Some(GuardLayer::Shell) => format!("{:?} {}", case.rules, case.entry.name.len().is_multiple_of(2)),
    }
}

/// Plays cases with one layer on, or none, in one session. Returns the titles of the cases that had their effect.
fn session(wall: Option<GuardLayer>, cases: Vec<Case>) -> BTreeSet<String> {
    let folder = tempfile::Builder::new().prefix("walls").tempdir().expect("a temporary folder");
    let root = folder.path().canonicalize().expect("its path");
    let workspace = Workspace::laid_in(root.clone());
    let log = tempfile::NamedTempFile::new_in("/dev/shm").expect("a file that forks can write");
    workspace.log_elsewhere(log.path());
    let play: Arc<Mutex<Option<Play>>> = Arc::default();
    let shared = play.clone();
    let api = MessagesApi::answering(move |request| {
        shared.lock().expect("no entry broke").as_mut().expect("a session is going").reply(request)
    });
    let named = |case: &Case| case.entry.tool().starts_with("mcp__");
    let servers = wall != Some(GuardLayer::Visibility) && cases.iter().any(named);
    let mut fixture = Fixture::at(
        &workspace.home(),
        workspace.data(),
        &stand_in(&root, wall, servers.then_some(log.path())),
        api.url(),
    );
    let programs = [root.join("bin"), workspace.data().join("bin")];
    fixture.claude.client_environment.programs = programs.map(|path| path.display().to_string()).to_vec();
    fixture.claude.client_environment.own.insert("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
    for (name, value) in [("NAME", "Ann"), ("EMAIL", "ann@example.org")] {
        for role in ["AUTHOR", "COMMITTER"] {
            fixture.claude.client_environment.added.insert(format!("GIT_{role}_{name}"), value.into());
        }
    }
    let first = engine::policy(&cases[0], &workspace);
    let (asked, hooked) = (play.clone(), wall == Some(GuardLayer::Hook));
    let place = Workspace::within(root);
    let sandbox = (wall == Some(GuardLayer::Shell)).then(|| Arc::new(sandbox(&cases[0], &workspace, &fixture)));
    let mut host = Host::new(move |call| {
        let play = asked.lock().expect("no entry broke");
        let Some((case, true)) = play.as_ref().and_then(Play::now) else { return HookReply::Allow };
        let allowed = !hooked || engine::policy(case, &place).decide(call).verdict == Verdict::Allow;
        if allowed { HookReply::Allow } else { HookReply::Deny }
    });
    if let Some(sandbox) = sandbox.clone() {
        let policy = first.clone();
        host.judges = Some(Box::new(move |start| sandbox.judge(&policy, start).answer));
    }
    let host = Arc::new(host);
    let mut request = fixture.request(&host, "do it", &[]);
    if wall == Some(GuardLayer::Visibility) {
        request.visible_tools = first.visible_tools();
        request.mcp_tools = first.visible_mcp(&OURS);
    } else {
        request.visible_tools = EVERY_TOOL.iter().map(ToString::to_string).chain(foreign_tools()).collect();
        request.mcp_tools = OURS.map(str::to_owned).to_vec();
    }
    if wall == Some(GuardLayer::Client) {
        request.deny_rules = first.deny_rules();
    }
    if let Some(sandbox) = &sandbox {
        request.sandbox = sandbox.for_client(true);
        if let Some(domain) = &mut request.sandbox.client {
            // The stand-in executes the client.
            domain.execute.push(client::real());
        }
    }
    let count = cases.len();
    *play.lock().expect("no entry broke") = Some(Play::new(workspace, cases));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let report = runtime.block_on(fixture.run(request));
    assert_eq!(report.end, AttemptEnd::Completed, "{report:?}");
    let seen = play.lock().expect("no entry broke").take().expect("the session's").seen;
    assert_eq!(seen.len(), count, "every call was made");
    seen.iter().filter(|one| one.had_its_effect()).map(|one| one.case.title()).collect()
}

/// Plays all cases with one layer on, or none. Returns the titles of the cases that had their effect.
fn with_effect(wall: Option<GuardLayer>, cases: &[Case]) -> BTreeSet<String> {
    let workspace = Workspace::new();
    let mut groups: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for case in cases {
        groups.entry(key(case, wall, &workspace)).or_default().push(case.clone());
    }
    // A single large group would delay all others.
    let groups: Vec<Vec<Case>> =
        groups.into_values().flat_map(|group| group.chunks(24).map(<[Case]>::to_vec).collect::<Vec<_>>()).collect();
    let waiting = Mutex::new(groups);
    let found = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(group) = waiting.lock().expect("no session broke").pop() else { return };
                    let effects = session(wall, group);
                    found.lock().expect("no session broke").extend(effects);
                }
            });
        }
    });
    found.into_inner().expect("no session broke")
}

/// Selects attacks that can be tried with layers off: some of each class, spread evenly over the class.
fn chosen() -> Vec<Case> {
    let long = std::env::var("OLLIM_CORPUS").is_ok_and(|which| which == "all");
    let mut classes: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for case in load("attacks") {
        let entry = &case.entry;
        // The whole program is needed to try attacks that only our own binary stops. Of the calls that show nothing outside
        // the client, only those are tried that the client executes at once.
        let tried = if entry.shape {
            let tool = entry.tool().to_owned();
            foreign_tools().any(|foreign| foreign == tool)
                || tool.strip_prefix("mcp__discord__").is_some_and(|ours| OURS.contains(&ours))
        } else {
            // Behind the shell layer a stub program could not log that it ran.
            entry.held_by == RefusingLayer::Engine && entry.needs.is_empty() && entry.effect.ran.as_slice().is_empty()
        };
        if tried && entry.agent_type.is_none() && entry.cwd.is_none() {
            classes.entry(case.class.clone()).or_default().push(case);
        }
    }
    let some = |cases: Vec<Case>| {
        let most = match (cases[0].rules.read_only, long) {
            (true, false) => OF_READ_ONLY,
            // They show the purpose of the visibility layer.
            (false, false) if cases[0].class == "look-alike MCP names" => OF_NAMES,
            (false, false) => EACH,
            (true, true) => cases.len(),
            (false, true) => 4 * EACH,
        };
        let of = cases.len();
        let most = most.min(of);
        let mut cases: Vec<Option<Case>> = cases.into_iter().map(Some).collect();
        (0..most).filter_map(move |at| cases[at * of / most].take()).collect::<Vec<_>>()
    };
    classes.into_values().flat_map(some).collect()
}

#[test]
fn each_wall_alone_stops_what_the_table_says() {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let mut cases = chosen();
    let (chosen, off) = (cases.len(), with_effect(None, &cases));
    // The client itself changes a few lines (control characters, links to startup files).
    cases.retain(|case| off.contains(&case.title()));
    assert!(
        cases.len() * 20 >= chosen * 19,
        "{} of {chosen} attacks have their effect with all walls off",
        cases.len()
    );
    let through: BTreeMap<GuardLayer, BTreeSet<String>> =
        LAYERS.into_iter().map(|wall| (wall, with_effect(Some(wall), &cases))).collect();

    let few: Vec<String> = cases
        .iter()
        .filter(|case| case.rules.read_only)
        .map(Case::title)
        .filter(|title| through.values().filter(|through| !through.contains(title)).count() < 2)
        .collect();
    assert_eq!(few, Vec::<String>::new(), "writes of a read-only agent that fewer than two walls stop");
    let of_tool = |bash: bool| {
        let mine = cases.iter().filter(move |case| (case.entry.tool() == "Bash") == bash);
        mine.map(Case::title).collect::<BTreeSet<String>>()
    };
    let let_through =
        |wall: GuardLayer, bash: bool| through[&wall].intersection(&of_tool(bash)).cloned().collect::<Vec<_>>();
    assert_eq!(let_through(GuardLayer::Hook, false), Vec::<String>::new(), "calls that the hook alone lets through");
    assert_eq!(let_through(GuardLayer::Shell, true), Vec::<String>::new(), "lines that the shell alone lets through");

    let mut classes: Vec<&str> = cases.iter().map(|case| case.class.as_str()).collect();
    classes.dedup();
    let row = |name: &str, of: &dyn Fn(&Case) -> bool| {
        let titles: Vec<String> = cases.iter().filter(|case| of(case)).map(Case::title).collect();
        let stopped = |wall: &GuardLayer| titles.iter().filter(|title| !through[wall].contains(*title)).count();
        let figures: Vec<String> = LAYERS.iter().map(|wall| stopped(wall).to_string()).collect();
        format!("| {name} | {} | {} |\n", titles.len(), figures.join(" | "))
    };
    let mut table = "| attacks | tried | visibility | hook | client | shell |\n|---|---|---|---|---|---|\n".to_owned();
    for class in classes {
        table += &row(class, &|case| case.class == class);
    }
    table += &row("all", &|_| true);
    if std::env::var_os("OLLIM_CORPUS").is_none() {
        stands_in_the_docs(&table);
    }
}

/// Compares the table with the one in docs/policy.md, or writes it there.
fn stands_in_the_docs(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/policy.md");
    let text = std::fs::read_to_string(&path).expect("docs/policy.md");
    let (begin, end) = ("<!-- each wall alone -->\n", "<!-- end -->");
    let (head, rest) = text.split_once(begin).expect("the table's beginning");
    let (stands, tail) = rest.split_once(end).expect("the table's end");
    if std::env::var_os("OLLIM_BLESS").is_some() {
        std::fs::write(&path, format!("{head}{begin}{table}{end}{tail}")).expect("docs/policy.md");
        return;
    }
    assert_eq!(stands, table, "docs/policy.md (OLLIM_BLESS=1 writes the table that was seen)");
}
