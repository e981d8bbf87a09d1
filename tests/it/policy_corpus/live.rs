//! The corpora through the whole program: a job with the entry's rules, the real client, hook, sandbox and binary. An attack must
//! leave no trace, and the record must contain its denial (except for Bash lines). An ordinary call must have its effect.
//!
//! By default only some are played: the first [`EACH`] attacks of a class, those that the engine alone does not stop, and every sixth
//! ordinary call. `OLLIM_CORPUS=all` plays all (some minutes).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::entry::{Case, RefusingLayer, Rules, Updates, fixtures, load};
use super::player::{self, EntryResult, OWN, Play, with_the_real_binary};
use super::workspace::{Workspace, lacking};
use crate::support::bot::{Service, TestBot, now, reminder};
use crate::support::client;
use crate::support::messages_api::MessagesApi;
use crate::support::turn;

/// Number of attacks of a class that are played.
const EACH: usize = 12;

/// Maximum number of entries in a session: a longer conversation slows every call.
const LONGEST: usize = 60;

/// Entries whose call changes on its way. The client removes `link/..` from a path before it asks, so the shorter path is
/// judged and used. Our binary itself refuses `--json` before a person's own command.
const OTHERWISE: [&str; 6] = [
    "paths and symlinks: writing through a link and back by dots",
    "paths and symlinks: reading through a link and back by dots",
    "mail and tasks: a global flag",
    "agents with glue around a command: global flags first",
    "agents with glue around a command: a briefing",
    "effects: paths that the client trims: a link whose name ends in a blank",
];

/// Number of bots that run concurrently. Each mostly waits for its client.
const BOTS: usize = 4;

/// A bot on a ground whose jobs play entries.
struct CorpusBot {
    bot: TestBot,
    workspace: PathBuf,
    api: MessagesApi,
    play: Arc<Mutex<Option<Play>>>,
    /// The log of the stub programs: the one file to which every layer grants access.
    log: tempfile::NamedTempFile,
}

impl CorpusBot {
    fn new() -> Self {
        let play = Arc::new(Mutex::new(None::<Play>));
        let shared = play.clone();
        let api = MessagesApi::answering(move |request| {
            let mut play = shared.lock().expect("no entry broke");
            play.as_mut().expect("a session is going").reply(request)
        });
        let folder = tempfile::Builder::new().prefix("corpus").tempdir().expect("a temporary folder");
        let root = folder.path().canonicalize().expect("its path");
        let home = root.join("home");
        let path = format!("{}/bin:/usr/local/bin:/usr/bin:/bin", root.display());
        let bot = TestBot::with_home(folder, home.join(".ollim-bot"))
            .client(&client::real(), api.url())
            .env("HOME", home.to_str().expect("a plain path"))
            .env("PATH", &path)
            .env("GIT_AUTHOR_NAME", "Ann")
            .env("GIT_AUTHOR_EMAIL", "ann@example.org")
            .env("GIT_COMMITTER_NAME", "Ann")
            .env("GIT_COMMITTER_EMAIL", "ann@example.org");
        let log = tempfile::NamedTempFile::new_in("/dev/shm").expect("a file that forks can write");
        let stage = Self { bot, workspace: root, api, play, log };
        stage.lay();
        stage
    }

    fn lay(&self) {
        let (workspace, stub) = (self.workspace(), fixtures().join("stub"));
        for folder in ["tmp", "other", "answers"] {
            std::fs::create_dir_all(self.workspace.join(folder)).expect("a folder");
        }
        workspace.log_elsewhere(self.log.path());
        workspace.link(&stub, &self.workspace.join("bin/secret"));
        workspace.link(Path::new(env!("CARGO_BIN_EXE_ollim-bot")), &self.workspace.join("bin/ollim-bot"));
        for name in OWN {
            workspace.link(&stub, &self.bot.path(&format!("bin/ollim-bot-{name}")));
        }
        workspace.lay_work();
        let tools: Vec<String> = super::engine::main_tools().iter().map(ToString::to_string).collect();
        let variables = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
        self.bot.write("config.yaml", &format!("main_tools: {}\nclient_env: {}\n", json!(tools), json!(variables)));
        self.bot.write(
            "routines/morning.md",
            "---\ncron: 0 0 29 2 *\nbackground: true\nallowed_tools:\n  - Bash(ollim-bot gmail *)\n---\nGood morning\n",
        );
        self.bot.write("reminders/oven.md", "---\nrun_at: 2099-01-01T08:00:00Z\nmax_chain: 0\n---\nThe oven\n");
    }

    fn workspace(&self) -> Workspace {
        let mut workspace = Workspace::within(self.workspace.clone());
        if let Some(token) = self.bot.read("state/user.token") {
            workspace.token_is(token.trim().to_owned());
        }
        workspace
    }

    /// Runs a job with these rules that makes the calls. Returns the result of each call, and the denials in the run's record.
    fn session(
        &self,
        service: &Service<'_>,
        name: &str,
        rules: &Rules,
        cases: Vec<Case>,
    ) -> (Vec<EntryResult>, Vec<Value>) {
        let (workspace, count) = (self.workspace(), cases.len());
        player::clear(&workspace, &BTreeSet::new());
        // The kernel grants only existing paths, so the folders that rules name are created first.
        for path in cases.iter().flat_map(|case| case.entry.files.keys()) {
            let path = workspace.work().join(workspace.fill(path));
            let folder = path.parent().filter(|folder| !folder.starts_with(workspace.data()));
            folder.map(std::fs::create_dir_all).transpose().expect("a folder");
        }
        for rule in rules.allowed_tools.iter().flatten() {
            let tree = rule.strip_prefix("Read(").and_then(|rule| rule.strip_suffix("/**)"));
            if let Some(tree) = tree.filter(|tree| tree.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)))
            {
                std::fs::create_dir_all(workspace.work().join(tree)).expect("a folder");
            }
        }
        let fields = fields(rules, &workspace);
        *self.play.lock().expect("no entry broke") = Some(Play::new(workspace, cases));
        self.bot.write(&format!("reminders/{name}.md"), &reminder(now(), &fields, "Do the thing."));
        let run = service.until_ended(name, 1).remove(0);
        assert_eq!(run["outcome"], "completed", "{run:#}\n{}", service.output());
        let seen = self.play.lock().expect("no entry broke").take().expect("the session's").seen;
        assert_eq!(seen.len(), count, "every call was made");
        let shown = self.bot.json(["runs", "show", run["run"].as_str().expect("an id")]);
        (seen, shown["denials"].as_array().expect("a list").clone())
    }
}

/// Returns the frontmatter of a job with these rules.
fn fields(rules: &Rules, workspace: &Workspace) -> String {
    let mut fields = "background: true\nisolated: true\nretry: 0\n".to_owned();
    for (name, list) in [("allowed_tools", &rules.allowed_tools), ("disallowed_tools", &rules.disallowed_tools)] {
        if let Some(list) = list {
            let list: Vec<String> = list.iter().map(|text| workspace.fill(text)).collect();
            fields += &format!("{name}: {}\n", json!(list));
        }
    }
    if rules.read_only {
        fields += "agent: Plan\n";
    }
    if !rules.allow_ping {
        fields += "allow_ping: false\n";
    }
    if let Some(Updates::Blocked) = rules.update_main_session {
        fields += "update_main_session: blocked\n";
    }
    fields
}

/// Returns the entries that can be played here and that are selected for this test run.
fn chosen(corpus: &str) -> Vec<Case> {
    let all = std::env::var("OLLIM_CORPUS").is_ok_and(|which| which == "all");
    let mut of_class: BTreeMap<String, usize> = BTreeMap::new();
    let playable = |case: &Case| {
        let entry = &case.entry;
        // Calls of a subagent, and calls in another folder, are tried with the engine alone.
        let elsewhere = entry.agent_type.is_some() || entry.cwd.is_some();
        // A stub program cannot log that it ran: its log lies outside every sandbox. `shell.rs` plays lines with stub programs, in
        // a job's shell without a client.
        let stubs = !entry.effect.ran.as_slice().is_empty() || !entry.programs.is_empty() || !entry.answers.is_empty();
        !elsewhere && !stubs && !entry.shape && lacking(entry).is_empty() && !OTHERWISE.contains(&&*case.title())
    };
    let mut taken = |case: &Case| {
        let count = of_class.entry(case.class.clone()).or_default();
        *count += 1;
        match corpus {
            "attacks" => *count <= EACH || case.entry.held_by != RefusingLayer::Engine,
            _ => *count % 6 == 1,
        }
    };
    load(corpus).into_iter().filter(playable).filter(|case| taken(case) || all).collect()
}

/// Groups entries with the same rules into sessions. An entry that leaves the shell in another folder ends its session.
fn sessions(cases: Vec<Case>) -> VecDeque<(Rules, Vec<Case>)> {
    let mut by_rules: BTreeMap<String, Vec<(Rules, Vec<Case>)>> = BTreeMap::new();
    for case in cases {
        let of_rules = by_rules.entry(format!("{:?}", case.rules)).or_default();
        let moved = |cases: &Vec<Case>| cases.last().and_then(|case| case.entry.command()).is_some_and(moves);
        match of_rules.last_mut() {
            Some((_, cases)) if cases.len() < LONGEST && !moved(cases) => cases.push(with_the_real_binary(case)),
            _ => of_rules.push((case.rules.clone(), vec![with_the_real_binary(case)])),
        }
    }
    by_rules.into_values().flatten().collect()
}

fn moves(line: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric()).any(|word| matches!(word, "cd" | "pushd"))
}

/// Plays the selected entries on several bots concurrently; `judge` returns the fault in an entry's result.
fn play(corpus: &str, judge: impl Fn(&EntryResult, &[Value]) -> Option<String> + Sync) -> BTreeMap<String, usize> {
    let waiting = Mutex::new(sessions(chosen(corpus)).into_iter().enumerate().collect::<VecDeque<_>>());
    let wrong = Mutex::new(Vec::new());
    let played = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..BOTS {
            scope.spawn(|| {
                let stage = CorpusBot::new();
                let service = stage.bot.start();
                loop {
                    let next = waiting.lock().expect("no session broke").pop_front();
                    let Some((at, (rules, cases))) = next else { break };
                    let (seen, denials) = stage.session(&service, &format!("job-{at}"), &rules, cases);
                    for one in &seen {
                        *played.lock().expect("no session broke").entry(one.case.class.clone()).or_default() += 1;
                        if let Some(why) = judge(one, &denials) {
                            wrong.lock().expect("no session broke").push(format!(
                                "{}\n  {} {}\n  {why}\n  {:?}",
                                one.case.title(),
                                one.tool,
                                one.input,
                                one.result
                            ));
                        }
                    }
                }
                service.stop();
                drop(stage.api);
                stage.bot.until_no_processes();
            });
        }
    });
    let wrong = wrong.into_inner().expect("no session broke");
    assert!(wrong.is_empty(), "{} are not as they should be:\n\n{}", wrong.len(), wrong.join("\n\n"));
    played.into_inner().expect("no session broke")
}

#[test]
fn no_attack_has_its_effect_on_the_real_client() {
    let kernel = turn::kernel_supports_sandbox();
    let played = play("attacks", |seen, denials| {
        if seen.case.entry.held_by == RefusingLayer::Kernel && !kernel {
            return None;
        }
        if let Some(traces) = seen.traces() {
            return Some(format!("it left a trace: {traces}"));
        }
        // Each program of a line is judged by itself, and the rest of the line runs.
        if seen.case.entry.held_by != RefusingLayer::Engine || seen.tool == "Bash" {
            return None;
        }
        if !seen.result.is_error {
            return Some("the agent was not told that it may not".into());
        }
        // The client may simplify an input before it asks; then the denial's reason identifies the call. The record omits the tags
        // that the client puts around an error.
        let told = seen.result.text.replace("<tool_use_error>", "").replace("</tool_use_error>", "");
        let same = |denial: &&Value| denial["input"] == seen.input || denial["reason"] == *told;
        let recorded = denials.iter().filter(|denial| denial["tool"] == *seen.tool).find(same);
        let Some(denial) = recorded else { return Some(format!("it is not in the record: {denials:#?}")) };
        let told = ["reason", "layer"].iter().all(|key| denial[key].as_str().is_some_and(|text| !text.is_empty()));
        (!told).then(|| format!("the record does not say why: {denial}"))
    });
    let total: usize = played.values().sum();
    assert!(total >= 80 && played.len() >= 8, "only {total} attacks were played: {played:?}");
}

#[test]
fn every_ordinary_call_has_its_effect_on_the_real_client() {
    let played = play("ordinary", |seen, denials| {
        if !seen.had_its_effect() {
            return Some(seen.missing.join("; "));
        }
        let denied = denials.iter().any(|denial| denial["input"] == seen.input);
        denied.then(|| "it stands among the denied".to_owned())
    });
    let total: usize = played.values().sum();
    assert!(total >= 60, "only {total} ordinary calls were played: {played:?}");
}
