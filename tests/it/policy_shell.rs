//! The engine's reading of a line against real bash: what it lets through runs there, in a folder of its own with
//! stub programs that note their names, and nothing may have run or been written but what the rules grant.
//!
//! Ordinary lines must be let through and have their effect; random ones are made from the pieces of shell in which
//! readers differ. `OLLIM_FUZZ_LINES` sets how many (`OLLIM_FUZZ_SEED`: from where); run long ones in a PID namespace.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ollim_bot::policy::{BgForkConfig, Places, Policy, ToolCall, ToolPattern, UpdateMode, Verdict, default_main_tools};

use crate::support::random::Random;

/// Programs that only note that they ran.
const STUBS: &[&str] = &["ga", "gb", "evil", "cat", "ls", "touch", "secret", "a", "b", "c", "x", "in", "v", "EOF"];
/// Programs that run others, for real.
const REAL: &[&str] = &["timeout", "env", "xargs", "find", "bash", "sh", "nohup", "nice"];

struct Desk {
    folder: tempfile::TempDir,
    runs: std::cell::Cell<u32>,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let desk = Self { folder, runs: std::cell::Cell::default() };
        fs::create_dir_all(desk.work().join("out")).unwrap();
        fs::create_dir(desk.bin()).unwrap();
        for name in STUBS {
            let path = desk.bin().join(name);
            fs::write(&path, format!("#!/bin/bash\necho {name} >> \"$NOTES\"\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for name in REAL {
            let found = std::env::var("PATH").unwrap();
            let real = found.split(':').map(|dir| Path::new(dir).join(name)).find(|path| path.exists());
            symlink(real.unwrap_or_else(|| panic!("{name} is installed")), desk.bin().join(name)).unwrap();
        }
        desk
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("home")
    }

    fn work(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("home/work")
    }

    fn bin(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("bin")
    }

    fn policy(&self, allow: Option<&[&str]>, deny: Option<&[&str]>) -> Policy {
        let list = |texts: &[&str]| texts.iter().map(|text| ToolPattern::parse(text).unwrap()).collect::<Vec<_>>();
        let config = BgForkConfig::new(UpdateMode::OnPing, true, allow.map(list), deny.map(list)).unwrap();
        let places = Places { root: self.root(), work: self.work(), user_home: "/nonexistent".into() };
        Policy::background("routine x", &config, &default_main_tools(), &places)
    }

    fn allows(&self, policy: &Policy, line: &str) -> Result<(), String> {
        let input = serde_json::json!({ "command": line });
        let decision = policy.decide(&ToolCall { tool: "Bash".into(), input, cwd: self.work(), agent_type: None });
        if decision.verdict == Verdict::Allow { Ok(()) } else { Err(decision.reason) }
    }

    /// Runs a line in real bash: the stubs that ran, and what is new in the working folder outside `out/`.
    fn run(&self, line: &str) -> (BTreeSet<String>, BTreeSet<String>) {
        // A file of each run's own: what stays in the background may note late.
        self.runs.set(self.runs.get() + 1);
        let notes = self.folder.path().join(format!("notes-{}", self.runs.get()));
        fs::write(&notes, "").unwrap();
        // A guard only: a line that does not end would hang the test.
        let status = Command::new("/usr/bin/env")
            .args(["timeout", "-s", "KILL", "10", "/bin/bash", "-c", line])
            .current_dir(self.work())
            .env_clear()
            .env("PATH", self.bin())
            .env("NOTES", &notes)
            .env("HOME", "/nonexistent")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_ne!(status.code(), Some(137), "{line:?} does not end");
        let ran = fs::read_to_string(&notes).unwrap().lines().map(str::to_owned).collect();
        let mut new = BTreeSet::new();
        for entry in fs::read_dir(self.work()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if name != "out" && name != "nohup.out" {
                let path = entry.path();
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
                new.insert(name);
            }
        }
        (ran, new)
    }
}

#[test]
fn ordinary_lines_are_let_through_and_have_their_effect() {
    let desk = Desk::new();
    let policy = desk.policy(Some(&["Bash(ga *)", "Bash(gb *)", "Bash(cat *)", "Edit(out/**)"]), None);
    for (line, runs) in [
        ("ga", "ga"),
        ("ga 'a b' \"c d\" e\\ f", "ga"),
        ("ga && gb", "ga gb"),
        ("ga | gb 2>&1", "ga gb"),
        ("ga; gb", "ga gb"),
        ("ga\ngb\n", "ga gb"),
        ("(ga; gb)", "ga gb"),
        ("{ ga; gb; }", "ga gb"),
        ("( ( ga ) )", "ga"),
        ("if ga; then gb; fi", "ga gb"),
        ("for f in a b 'c d'; do ga \"$f\"; done", "ga"),
        ("for f in *; do ga \"$f\"; done", "ga"),
        ("until ga; do :; done", "ga"),
        ("case x in a|x) ga;; *) gb;; esac", "ga"),
        ("x=$(ga); gb \"$x\"", "ga gb"),
        ("ga \"$(gb)\"", "ga gb"),
        ("ga `gb`", "ga gb"),
        ("ga <(gb)", "ga gb"),
        ("ga <<EOF\nx $(gb)\nEOF", "ga gb"),
        ("ga <<'EOF'\n$(evil) `evil`\nEOF\ngb", "ga gb"),
        ("ga \"$(cat <<'EOF'\nit's (a) \"text\"\nEOF\n)\"", "ga cat"),
        ("ga <<< \"x\" >/dev/null 2>&1", "ga"),
        ("ga > out/f", "ga"),
        ("ga >> \"out/g\" 2>/dev/null", "ga"),
        ("timeout 5 ga", "ga"),
        ("env TZ=UTC ga", "ga"),
        ("nice -n 1 ga", "ga"),
        ("bash -c 'ga && gb'", "ga gb"),
        ("sh -c 'ga | gb'", "ga gb"),
        ("eval 'ga; gb'", "ga gb"),
        ("ga \\\n  -x \\\n  y", "ga"),
        ("ga ';' '|' '&&' '$(evil)' \\$\\(evil\\)", "ga"),
        ("ga # evil", "ga"),
        ("ga ${x:-y} \"${x%.*}\" ${#x} $((2 * 3))", "ga"),
        ("ga $'it\\'s'", "ga"),
        ("ga {a,b} x@{1}", "ga"),
        ("[ -n \"$HOME\" ] && ga", "ga"),
        ("[[ $HOME == /* ]] && ga", "ga"),
        ("set -euo pipefail; ga", "ga"),
        ("true && ga || gb", "ga"),
        ("ga & gb", "ga gb"),
        ("echo_it() { ga; }; gb", "gb"),
        ("trap 'ga' EXIT; gb", "ga gb"),
        ("! ga", "ga"),
        ("time ga", "ga"),
        ("((n = 1)) && ga", "ga"),
        ("for ((i = 0; i < 2; i++)); do ga; done", "ga"),
        ("for((i=0;i<2;i++)); do ga; done", "ga"),
        ("n=2; while ((n--)); do ga; done", "ga"),
        ("if ((1 > 2)); then gb; else ga; fi", "ga"),
    ] {
        if let Err(reason) = desk.allows(&policy, line) {
            panic!("{line:?} is refused: {reason}");
        }
        let (ran, new) = desk.run(line);
        // A command in the background may outlive the shell; every other has run.
        if !line.contains("& gb") && !line.contains("<(gb)") {
            assert_eq!(ran, runs.split(' ').map(str::to_owned).collect(), "{line:?}");
        }
        assert!(new.is_empty(), "{line:?} wrote {new:?}");
    }
    assert!(desk.work().join("out/f").exists());
}

#[test]
fn what_an_allowlist_lets_through_runs_nothing_else() {
    let desk = Desk::new();
    let policy = desk.policy(Some(&["Bash(ga *)", "Bash(gb *)", "Edit(out/**)"]), None);
    let mut allowed = 0;
    for line in random_lines(1500) {
        if desk.allows(&policy, &line).is_ok() {
            allowed += 1;
            let (ran, new) = desk.run(&line);
            let more: Vec<_> = ran.iter().filter(|name| *name != "ga" && *name != "gb").collect();
            assert!(more.is_empty() && new.is_empty(), "{line:?} ran {more:?} and wrote {new:?}");
        }
    }
    assert!(allowed > 100, "only {allowed} lines were let through: this shows nothing");
}

#[test]
fn what_a_denylist_lets_through_never_runs_the_denied() {
    let desk = Desk::new();
    let policy = desk.policy(None, Some(&["Bash(evil *)"]));
    let mut allowed = 0;
    for line in random_lines(800) {
        if desk.allows(&policy, &line).is_ok() {
            allowed += 1;
            let (ran, _) = desk.run(&line);
            assert!(!ran.contains("evil"), "{line:?}");
        }
    }
    assert!(allowed > 100, "only {allowed} lines were let through: this shows nothing");
}

fn random_lines(count: usize) -> Vec<String> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let count = number("OLLIM_FUZZ_LINES").map_or(count, |lines| usize::try_from(lines).unwrap());
    let mut random = Lines(Random(number("OLLIM_FUZZ_SEED").unwrap_or(0x9E37_79B9_7F4A_7C15) | 1));
    (0..count).map(|_| random.line()).collect()
}

/// A small generator of shell lines.
struct Lines(Random);

impl Lines {
    fn line(&mut self) -> String {
        let depth = self.0.below(4);
        let mut line = self.script(depth);
        if self.0.below(5) < 3 {
            for _ in 0..=self.0.below(3) {
                self.mutate(&mut line);
            }
        }
        line
    }

    fn script(&mut self, depth: usize) -> String {
        let mut out = self.command(depth);
        while self.0.below(3) == 0 {
            out +=
                self.0.one(&["; ", " && ", " || ", " | ", "\n", " & ", " |& ", ";", "&&", "|", " # c\n", "; # ' \"\n"]);
            out += &self.command(depth);
        }
        out
    }

    fn command(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.simple(0);
        }
        let (inner, other) = (self.script(depth - 1), self.script(depth - 1));
        let word = self.word(depth - 1);
        match self.0.below(24) {
            20 => format!("(({inner}))"),
            21 => format!("((n = 1)); {inner}"),
            22 => format!("for ((n = 0; n < 2; n++)); do {inner}; done"),
            23 => format!("if ((n++)); then {inner}; fi"),
            0 => format!("({inner})"),
            1 => format!("{{ {inner}; }}"),
            2 => format!("if {inner}; then {other}; fi"),
            3 => format!("if {inner}; then ga; else {other}; fi"),
            4 => format!("for x in {word} b; do {inner}; done"),
            5 => format!("case {word} in a|*) {inner};; esac"),
            6 => format!("f() {{ {inner}; }}"),
            7 => format!("[[ {word} == a* ]] && {inner}"),
            8 => format!("bash -c '{}'", inner.replace('\'', "'\\''")),
            9 => format!("eval \"{}\"", inner.replace(['"', '\\', '$', '`'], "")),
            10 => format!("x={word}"),
            11 => format!("( ({inner}) )"),
            12 => format!("coproc {inner}"),
            13 => format!("ga <<E\n{word}\n$({inner})\nE\n{other}"),
            14 => format!("ga <<'E'\n{word}\n$(evil)\nE\n{other}"),
            _ => self.simple(depth),
        }
    }

    fn simple(&mut self, depth: usize) -> String {
        let mut out = self
            .0
            .one(&[
                "",
                "",
                "",
                "",
                "x=1 ",
                "TZ=UTC ",
                "! ",
                "time ",
                "timeout 5 ",
                "env A=1 ",
                "command ",
                "exec ",
                "nohup ",
            ])
            .to_owned();
        out += self.0.one(&["ga", "gb", "ga", "gb", "ga", "gb", "ga", "gb", "evil"]);
        for _ in 0..self.0.below(4) {
            out.push(' ');
            out += &self.word(depth);
        }
        out + self.0.one(&[
            "",
            "",
            "",
            " 2>&1",
            " >/dev/null",
            " > out/f",
            " > f",
            " &> out/g",
            " <<< x",
            " < /dev/null",
        ])
    }

    fn word(&mut self, depth: usize) -> String {
        if depth == 0 || self.0.below(3) == 0 {
            let plain = [
                "a",
                "-x",
                "b/c",
                "~",
                "#c",
                "a#b",
                "{}",
                "evil",
                "$x",
                "\"$x\"",
                "${x:-y}",
                "*",
                "?",
                "[a-z]",
                "'q $(evil)'",
                "\\$(evil)",
                "'`evil`'",
                "\\;",
                "\\\\",
                "\"a'b\"",
                "'a\"b'",
                "$'a\\'b'",
                "$'\\\\'",
                "{a,b}",
                "$((1+1))",
                "${#x}",
                "${x%.*}",
                "in",
                "do",
                "x=1",
                "\"\\\"\"",
                "\"\\$(evil)\"",
                "$",
                "\"$\"",
                "''",
                "\"\"",
            ];
            return self.0.one(&plain).to_owned();
        }
        let inner = self.script(depth - 1);
        let word = self.word(depth - 1);
        match self.0.below(8) {
            0 => format!("$({inner})"),
            1 => format!("\"$({inner})\""),
            2 => format!("`{}`", inner.replace(['\\', '`'], "")),
            3 => format!("${{x:-{word}}}"),
            4 => format!("\"a {} b\"", inner.replace(['"', '\\'], "")),
            5 => format!("<({inner})"),
            6 => format!("{{a,{word}}}"),
            _ => word.clone() + &word,
        }
    }

    fn mutate(&mut self, line: &mut String) {
        let pieces = [
            "$",
            "`",
            "'",
            "\"",
            "\\",
            "(",
            ")",
            "{",
            "}",
            "[",
            "]",
            "<",
            ">",
            ";",
            "&",
            "|",
            "\n",
            " ",
            "#",
            "*",
            "~",
            "!",
            "=",
            "$(",
            "${",
            "$((",
            "))",
            "<(",
            "<<",
            "<<<",
            "&&",
            "\\\n",
            "$'",
            "$\"",
            "evil",
            "ga",
            "if",
            "then",
            "fi",
            "case",
            "esac",
            "in",
            "function",
            "time",
            "[[",
            "]]",
            "EOF",
            "\nE\n",
            "eval ",
            "\t",
            "a[",
            "((",
            "((n=1))",
            "for ((;;))",
        ];
        let places: Vec<usize> = line.char_indices().map(|(at, _)| at).chain([line.len()]).collect();
        let at = places[self.0.below(places.len())];
        if self.0.below(3) > 0 {
            line.insert_str(at, self.0.one(&pieces));
        } else if at < line.len() {
            line.remove(at);
        }
    }
}
