//! Random lines in a job's real shell: whatever a line looks like, the rules must allow the real words and folder of each start.
//!
//! Programs are stand-ins that log their calls. A reference of a few lines says which calls the rules grant; it
//! shares nothing with the policy. `OLLIM_FUZZ_LINES` sets the number of lines (default 2,000), `OLLIM_FUZZ_SEED` the seed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use ollim_bot::home::Home;
use ollim_bot::policy::{self, BgForkConfig, PathRoots, Policy, ToolPattern, UpdateMode, default_main_tools};

use crate::support::job_shell::ShellPaths;
use crate::support::random::Random;
use crate::support::{client, turn};

/// The job's rules. [`granted`] repeats them independently.
const RULES: &[&str] = &["Bash(ga *)", "Bash(gb x *)", "Bash(gc)", "Edit(out/**)"];

/// Stand-ins, granted ones and others.
const STUBS: &[&str] = &["ga", "gb", "gc", "evil", "touch", "git", "curl"];

/// Pieces of the generated lines: programs, words, and shell syntax around them.
const PIECES: &[&str] = &[
    "ga",
    "gb",
    "gc",
    "evil",
    "touch",
    "git",
    "curl",
    "x",
    "y",
    "-n",
    "'a b'",
    "\"$v\"",
    "$v",
    "${v:-evil}",
    "$(evil)",
    "$(ga x)",
    "`evil`",
    "ga x",
    "gb x y",
    "gb y",
    "gc",
    "gc z",
    "evil now",
    "| cat",
    "| sh",
    "| xargs evil",
    "| xargs -I{} {} x",
    "&& evil",
    "|| evil",
    "; evil",
    "& wait;",
    "env evil",
    "env -i evil",
    "env -S 'evil x'",
    "env -C out gb x",
    "timeout 2 evil",
    "nice evil",
    "nohup evil",
    "command evil",
    "builtin command evil",
    "exec -a ga evil",
    "exec evil",
    "eval 'evil x'",
    "bash -c 'evil x'",
    "sh -c evil",
    "v=evil;",
    "v='evil x';",
    "PATH=/bin:.;",
    "export PATH=@BIN@;",
    "@BIN@/evil",
    "@BIN@/ga x",
    "./evil",
    "hash -p @BIN@/evil ga;",
    "alias ga=evil;",
    "ga() { evil; };",
    "function gb { evil; };",
    "cd out;",
    "cd ..;",
    "cd /;",
    "cd - ;",
    "pushd out >/dev/null;",
    "for i in evil ga; do $i x; done",
    "while read l; do $l; done <<< evil",
    "case x in x) evil;; esac",
    "if ga x; then evil; fi",
    "[[ -n x ]] && evil",
    "<(evil)",
    ">(evil)",
    "> out/f",
    ">> out/f",
    "< out/f",
    "<<E\nevil\nE\n",
    "<<< evil",
    "2>&1",
    "source <(echo evil)",
    ". /dev/stdin <<< evil",
    "trap evil EXIT;",
    "trap evil DEBUG;",
    "PROMPT_COMMAND=evil;",
    "coproc evil",
    "mapfile -C evil -c 1 a <<< x;",
    "printf -v v evil;",
    "enable -n echo;",
    "shopt -s expand_aliases\n",
    "BASH_ENV=out/f sh -c :",
    "LD_PRELOAD=out/f ga",
    "IFS=a;",
    "set -- evil; \"$@\"",
    "${v}vil",
    "e\\vil",
    "'evil'",
    "\"ev\"il",
    "$'\\x65vil'",
    "{evil,x}",
    "ev?l",
    "awk 'BEGIN{system(\"evil\")}'",
    "sed -n '1e evil' <<< x",
    "find . -exec evil {} +",
    "sort --compress-program=evil -S1 out/f",
    "( ",
    " )",
    "{ ",
    "; }",
    "! ",
    "time ",
];

/// Returns whether the rules grant a call, from a stand-in's log line: `NAME<TAB>FOLDER<TAB>ARGUMENTS`.
fn granted(note: &str, work: &Path) -> bool {
    let mut parts = note.splitn(3, '\t');
    let (Some(name), Some(folder), Some(arguments)) = (parts.next(), parts.next(), parts.next()) else { return false };
    let within = Path::new(folder).starts_with(work);
    match name {
        "ga" => within,
        "gb" => within && (arguments == "x" || arguments.starts_with("x ")),
        // A rule without a star grants only the working folder itself.
        "gc" => Path::new(folder) == work && arguments.is_empty(),
        _ => false,
    }
}

struct Fixture {
    _folder: tempfile::TempDir,
    root: PathBuf,
    place: ShellPaths,
    policy: Policy,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("fuzz").tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (home, bin) = (root.join("home"), root.join("bin"));
        std::fs::create_dir_all(home.join("bot/work/out")).unwrap();
        std::fs::create_dir_all(home.join("bot/state/runs")).unwrap();
        std::fs::create_dir(&bin).unwrap();
        let notes = root.join("notes");
        std::fs::write(&notes, "").unwrap();
        for name in STUBS {
            let text = format!("#!/bin/sh\nprintf '%s\\t%s\\t%s\\n' {name} \"$PWD\" \"$*\" >> {}\n", notes.display());
            client::executable(&bin.join(name), &text);
        }
        let place = ShellPaths {
            home: Home::new(home.join("bot")),
            user_home: home.clone(),
            path: [bin, "/usr/local/bin".into(), "/usr/bin".into()].to_vec(),
            own: [("HOME".to_owned(), home.display().to_string()), ("LANG".into(), "C.UTF-8".into())].into(),
            added: [].into(),
            stubs_read: vec![root.join("bin")],
            stubs_write: vec![notes],
        };
        let patterns = RULES.iter().map(|text| ToolPattern::parse(text).unwrap()).collect();
        let config = BgForkConfig::new(UpdateMode::OnPing, true, Some(patterns), None).unwrap();
        let places = PathRoots { root: home.join("bot"), work: home.join("bot/work"), user_home: home };
        let policy = policy::background("routine t", &config, &default_main_tools(), &places);
        Self { _folder: folder, root, place, policy }
    }

    fn work(&self) -> PathBuf {
        self.root.join("home/bot/work")
    }

    /// Returns the calls that ran without a grant, and the number of programs that ran at all.
    fn play(&self, line: &str) -> (Vec<String>, usize) {
        let notes = self.root.join("notes");
        std::fs::write(&notes, "").unwrap();
        let granted_patterns: Vec<ToolPattern> = RULES.iter().map(|text| ToolPattern::parse(text).unwrap()).collect();
        self.place.run(&self.policy, &granted_patterns, line, &self.work());
        let ran = std::fs::read_to_string(&notes).unwrap();
        let wrong = ran.lines().filter(|note| !granted(note, &self.work())).map(str::to_owned).collect();
        (wrong, ran.lines().count())
    }
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn whatever_a_line_looks_like_only_what_is_granted_runs() {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let (lines, seed) = (number("OLLIM_FUZZ_LINES", 2000), number("OLLIM_FUZZ_SEED", 1));
    let (next, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                let fixture = Fixture::new();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= lines {
                        return;
                    }
                    let mut random = Random((seed * 1_000_003 + at) as u64);
                    let mut line = String::new();
                    for _ in 0..2 + random.below(6) {
                        line.push_str(random.one(PIECES));
                        line.push_str(random.one(&[" ", " ", "; ", "\n", "\n"]));
                    }
                    let line = line.replace("@BIN@", &fixture.root.join("bin").display().to_string());
                    let (wrong, count) = fixture.play(&line);
                    ran.fetch_add(count, Ordering::Relaxed);
                    assert!(wrong.is_empty(), "line {at} of seed {seed} ran what no rule grants: {wrong:?}\n{line}");
                }
            });
        }
    });
    // A line that starts no program proves nothing.
    let ran = ran.into_inner();
    assert!(ran * 10 > lines, "only {ran} programs ran");
}

/// Returns whether a job's shell is ready in `work` and waits for its line: it has entered its domain and has not become bash.
fn waits_in(work: &Path) -> bool {
    let is_it = |folder: PathBuf| {
        let text = |name: &str| std::fs::read(folder.join(name)).unwrap_or_default();
        let status = String::from_utf8_lossy(&text("status")).into_owned();
        std::fs::read_link(folder.join("cwd")).is_ok_and(|cwd| cwd == work)
            && text("cmdline").windows(7).any(|word| word == b"__stage")
            && status.contains("NoNewPrivs:\t1")
            && status.contains("State:\tS")
    };
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| is_it(entry.path()))
}

#[tokio::test]
async fn a_line_begins_once_that_is_recorded_and_never_if_it_cannot_be() {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let fixture = Fixture::new();
    let (work, made) = (fixture.work(), fixture.work().join("out/made"));
    let granted = [ToolPattern::parse("Edit(out/**)").unwrap()];
    for recorded in [Err("no room"), Ok(())] {
        let ready = async {
            while !waits_in(&work) {
                assert!(!made.exists());
                tokio::task::yield_now().await;
            }
            assert!(!made.exists());
            recorded.map_err(io::Error::other)
        };
        let ended = fixture.place.run_once(&fixture.policy, &granted, "echo x > out/made", ready).await;
        match recorded {
            Err(why) => assert_eq!(ended.unwrap_err().to_string(), why),
            Ok(()) => assert_eq!(ended.unwrap(), Some(0)),
        }
        assert_eq!(made.exists(), recorded.is_ok());
    }
}
