//! The architecture rules: which module may name which, and where each crate may be named (ARCHITECTURE.md).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each top-level module with the modules that it may name. Dependencies point one way, to modules above it.
const MAY_NAME: &[(&str, &[&str])] = &[
    // Implements `fail_point!`, which any module may use. The same tests set the clock ahead.
    ("failpoints", &[]),
    ("clock", &["failpoints"]),
    ("connections", &[]),
    ("heartbeat", &[]),
    ("hexadecimal", &[]),
    ("home", &[]),
    ("links", &[]),
    ("refusal", &[]),
    ("owner", &["refusal"]),
    ("policy", &[]),
    ("definition", &["home", "links", "policy"]),
    ("agents", &["definition", "home", "policy"]),
    ("config", &["definition", "home", "policy"]),
    ("agent", &["clock", "definition", "policy"]),
    // From `agent` it needs only the record of a client's behaviour.
    ("journal", &["agent", "clock", "definition", "failpoints", "home", "tls"]),
    // From `agent` it needs only the kinds of an attempt's end.
    ("schedule", &["agent", "clock", "definition", "failpoints", "home", "journal"]),
    ("search_path", &[]),
    ("program", &["search_path"]),
    ("tls", &[]),
    // From `config` it needs the addresses of the person's servers.
    ("mcp", &["agent", "config", "home", "program", "tls"]),
    ("channel", &["clock", "config", "definition", "hexadecimal", "journal", "program", "search_path", "tls"]),
    ("bot", &["agent", "clock", "config", "definition", "home", "journal", "policy"]),
    (
        "run",
        &[
            "agent",
            "agents",
            "bot",
            "clock",
            "config",
            "definition",
            "heartbeat",
            "hexadecimal",
            "home",
            "journal",
            "links",
            "mcp",
            "policy",
            "refusal",
            "schedule",
        ],
    ),
    // Accepts requests of other services. A job's token has no authority here.
    (
        "webhooks",
        &["clock", "config", "connections", "definition", "hexadecimal", "home", "journal", "run", "schedule"],
    ),
    // Defines the commands and their permissions. It is the only module that interfaces call.
    (
        "app",
        &[
            "agent",
            "agents",
            "bot",
            "channel",
            "clock",
            "config",
            "definition",
            "heartbeat",
            "home",
            "journal",
            "owner",
            "policy",
            "refusal",
            "run",
            "schedule",
            "search_path",
        ],
    ),
    // Parses requests and renders outcomes as HTML. From the layers below `app` it names only the data in outcomes.
    (
        "web",
        &[
            "agent",
            "app",
            "bot",
            "channel",
            "config",
            "connections",
            "definition",
            "hexadecimal",
            "journal",
            "policy",
            "refusal",
            "run",
            "schedule",
        ],
    ),
    // Constructs every part, and serves the control socket.
    (
        "daemon",
        &[
            "agent",
            "agents",
            "app",
            "bot",
            "channel",
            "clock",
            "config",
            "definition",
            "failpoints",
            "heartbeat",
            "hexadecimal",
            "home",
            "journal",
            "mcp",
            "policy",
            "program",
            "refusal",
            "run",
            "schedule",
            "search_path",
            "web",
            "webhooks",
        ],
    ),
    // Parses and renders. From the layers below `app` it names only the data in outcomes, nothing that acts.
    (
        "cli",
        &[
            "agent",
            "agents",
            "app",
            "bot",
            "channel",
            "clock",
            "config",
            "daemon",
            "definition",
            "home",
            "journal",
            "owner",
            "policy",
            "refusal",
            "run",
            "search_path",
        ],
    ),
];

/// Names that may appear only in the listed places (a file, or all of a folder).
const CONFINED: &[(&str, &[&str])] = &[
    ("gray_matter", &["definition/frontmatter"]),
    ("serde_yaml", &["definition/frontmatter", "config"]),
    // `agent/` has a client with this name.
    ("notify::", &["definition/watch", "agent/"]),
    ("tokio_cron_scheduler", &["schedule/housekeeping.rs"]),
    ("rusqlite", &["journal/"]),
    ("tokio_postgres", &["journal/"]),
    ("tokio_postgres_rustls", &["journal/database/"]),
    (
        "agent_sandbox",
        &[
            "agent/",
            "run/",
            "config",
            "daemon/",
            "app/policy.rs",
            "app/gate.rs",
            "app/doctor/",
            "program.rs",
            "search_path.rs",
            "main.rs",
            "bin/",
            "web/login.rs",
            "web/sessions.rs",
            "web/listener.rs",
            "webhooks/listener.rs",
        ],
    ),
    ("tool_policy", &["policy/"]),
    ("reqwest", &["mcp/servers/"]),
    ("rmcp", &["mcp/"]),
    ("Utc::now", &["clock"]),
    ("Local::now", &["clock"]),
    ("clap", &["cli/"]),
    ("ureq", &["heartbeat.rs", "channel/ntfy.rs", "channel/discord/attachments.rs", "channel/telegram/api.rs"]),
    ("twilight_gateway", &["channel/discord/"]),
    ("twilight_http", &["channel/discord/"]),
    ("twilight_model", &["channel/discord/"]),
    ("rustls", &["tls.rs", "channel/ntfy/topic.rs"]),
    ("hyper", &["channel/ntfy/topic.rs", "web/listener.rs", "webhooks/"]),
    ("lettre", &["channel/mail.rs"]),
    ("ring", &["channel/ntfy/token.rs", "hexadecimal.rs", "webhooks/"]),
    ("axum", &["web/"]),
    ("maud", &["web/"]),
    ("form_urlencoded", &["webhooks/"]),
    ("regex_lite", &["definition/payload_schema.rs"]),
    ("interim", &["app/when.rs"]),
    ("println!", &["cli/output"]),
    ("std::process::exit", &["main.rs", "daemon/hosts.rs"]),
];

struct Source {
    /// The path relative to `src/`.
    path: PathBuf,
    text: String,
    /// The program's own code, without comments and tests.
    code: String,
}

impl Source {
    /// Returns the file's top-level module; `None` for `main.rs`, `lib.rs` and `bin/`, which join all modules.
    fn module(&self) -> Option<String> {
        let first = self.path.components().next().unwrap().as_os_str().to_str().unwrap();
        let name = first.strip_suffix(".rs").unwrap_or(first);
        (!["main", "lib", "bin"].contains(&name)).then(|| name.to_string())
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    assert!(files.len() > 10, "the sources were found");
    files.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let path = path.strip_prefix(&root).unwrap().to_path_buf();
        let code = if is_test(&path) { String::new() } else { code(&text) };
        Source { path, text, code }
    };
    files.into_iter().map(read).collect()
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| {
        let name = part.as_os_str().to_str().unwrap();
        name == "tests" || name == "tests.rs" || name.ends_with("_tests.rs")
    })
}

/// Removes whole-line comments and everything after the first test module, which comes last by convention.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Returns the top-level modules that the code names by `crate::…`, groups (`crate::{a, b::c}`) included.
fn named(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let word = |text: &str| -> String { text.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect() };
    for (at, _) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.insert(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut item = true;
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => item = true,
                c if item && !c.is_whitespace() => {
                    names.insert(word(&group[at..]));
                    item = false;
                }
                _ => {}
            }
        }
    }
    names
}

#[test]
fn the_reader_of_names_reads_all_forms() {
    let code = "use crate::policy::Verdict;\nfn f() { crate::clock::now() }\nuse crate::{home::Home, run::{a, b}, bot};\npub(crate) fn g() {} mycrate::x";
    let names: Vec<String> = named(code).into_iter().collect();
    assert_eq!(names, ["bot", "clock", "home", "policy", "run"]);
}

#[test]
fn modules_name_only_those_they_may() {
    let rules: BTreeMap<&str, &[&str]> = MAY_NAME.iter().copied().collect();
    let mut wrong = Vec::new();
    for source in sources() {
        let Some(module) = source.module() else { continue };
        let Some(may) = rules.get(module.as_str()) else {
            wrong.push(format!("{}: module `{module}` has no line in MAY_NAME", source.path.display()));
            continue;
        };
        for name in named(&source.code) {
            if name != module && !may.contains(&name.as_str()) && rules.contains_key(name.as_str()) {
                wrong.push(format!("{}: `{module}` must not know `{name}`", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_rules_themselves_point_one_way() {
    let rules: BTreeMap<&str, &[&str]> = MAY_NAME.iter().copied().collect();
    let mut settled: BTreeSet<&str> = BTreeSet::new();
    while settled.len() < rules.len() {
        let ready =
            |(name, may): &(&&str, &&[&str])| !settled.contains(**name) && may.iter().all(|m| settled.contains(m));
        let next: Vec<&str> = rules.iter().filter(ready).map(|(name, _)| *name).collect();
        assert!(!next.is_empty(), "a cycle, or an unknown name, among the modules that are not {settled:?}");
        settled.extend(next);
    }
}

#[test]
fn crates_are_named_only_where_they_belong() {
    let mut wrong = Vec::new();
    for source in sources() {
        let path = source.path.to_str().unwrap();
        for (what, places) in CONFINED {
            if names_word(&source.code, what) && !places.iter().any(|place| path.starts_with(place)) {
                wrong.push(format!("{path}: `{what}` belongs in {}", places.join(", ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns whether the code names `what` as a path or a macro, not as a part of a longer name or of one of our own paths.
fn names_word(code: &str, what: &str) -> bool {
    code.match_indices(what).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + what.len()..].chars().next();
        let named = what.contains("::") || what.ends_with('!') || after == Some(':');
        // `agent::notify::…` is a module of our own; `chrono::Utc::now` is the function itself.
        let own = before == Some(':') && what.starts_with(char::is_lowercase) && !what.starts_with("std::");
        named && !own && !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '"' || c == '`')
    })
}

#[test]
fn the_reader_of_crates_knows_them_from_our_own() {
    for (code, what, expect) in [
        ("use notify::Watcher;", "notify::", true),
        ("agent::notify::Notify", "notify::", false),
        ("use rmcp::model;", "rmcp", true),
        ("let rmcp_transport = 1;", "rmcp", false),
        ("chrono::Utc::now()", "Utc::now", true),
        ("println!(\"x\")", "println!", true),
        ("eprintln!(\"x\")", "println!", false),
    ] {
        assert_eq!(names_word(code, what), expect, "{code} {what}");
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent: Vec<PathBuf> = sources()
        .into_iter()
        .filter(|source| !is_test(&source.path) && !source.text.starts_with("//!"))
        .map(|source| source.path)
        .collect();
    assert!(silent.is_empty(), "these files have no `//!` head: {silent:?}");
}

#[test]
fn nothing_is_left_to_do_later() {
    let marks = ["todo!(", "unimplemented!(", "TODO", "FIXME", "XXX", "#[ignore"];
    let found: Vec<String> = sources()
        .iter()
        .flat_map(|source| {
            marks
                .iter()
                .filter(|mark| source.text.contains(**mark))
                .map(|mark| format!("{}: {mark}", source.path.display()))
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
