//! Two corpora of calls that an agent may make: attacks, each of which must be stopped, and ordinary ones, each of which
//! must run. They are data (`tests/fixtures/policy/`), written without a look at the engine.
//!
//! They are tried twice. First with no policy in between: every attack works and every ordinary call has its purpose. An
//! attack without an effect would prove nothing. Then the engine judges them: it stops each attack that it is responsible
//! for, and allows each ordinary call.

mod attacked;
mod engine;
mod entry;
mod layers;
mod live;
mod player;
mod shell;
mod workspace;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use entry::{Case, RefusingLayer, load};
use workspace::{Workspace, lacking};

use crate::support::turn;

/// Runs `work` for every case, on as many threads as the machine has cores.
fn in_parallel(cases: &[Case], work: impl Fn(&Case) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(case);
                }
            });
        }
    });
}

/// Tries every case with all layers off and returns how many had their effect. Panics with all that did not.
fn try_all(cases: &[Case], also: impl Fn(&Case, &Workspace) -> Option<String> + Sync) -> usize {
    let shown = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    in_parallel(cases, |case| {
        // One broken entry must not hide the others, nor its own name.
        let tried = catch_unwind(AssertUnwindSafe(|| try_one(case, &also)));
        match tried.unwrap_or_else(|_| Err(format!("{}: panicked, see above", case.title()))) {
            Ok(true) => _ = shown.fetch_add(1, Ordering::Relaxed),
            Ok(false) => {}
            Err(why) => failures.lock().expect("no thread panicked here").push(why),
        }
    });
    let mut failures = failures.into_inner().expect("no thread panicked");
    failures.sort();
    assert!(failures.is_empty(), "{} without their effect:\n\n{}", failures.len(), failures.join("\n\n"));
    shown.into_inner()
}

/// `Ok(true)`: its effect was seen; `Ok(false)`: this machine cannot show it.
#[expect(clippy::print_stderr, reason = "a test says what it could not show")]
fn try_one(case: &Case, also: impl Fn(&Case, &Workspace) -> Option<String>) -> Result<bool, String> {
    let entry = &case.entry;
    let lacking = lacking(entry);
    if entry.shape {
        return Ok(false);
    }
    if !lacking.is_empty() {
        eprintln!("not shown here, for want of {}: {}", lacking.join(", "), case.title());
        return Ok(false);
    }
    let workspace = Workspace::lay(entry);
    if let Some(why) = also(case, &workspace) {
        return Err(format!("{}: {why}", case.title()));
    }
    let parts = workspace.missing(&entry.effect, "").len();
    let output = workspace.run(entry);
    let missing = workspace.missing(&entry.effect, &output);
    let all = entry.effect.parts();
    if parts != all {
        return Err(format!("{}: a part of the effect is there before the call", case.title()));
    }
    if missing.is_empty() { Ok(true) } else { Err(format!("{}: {}\n{output}", case.title(), missing.join("; "))) }
}

#[test]
fn every_attack_works_with_all_walls_off() {
    let shown = try_all(&load("attacks"), |case, workspace| {
        // An error message could print text that the line itself contains.
        let (command, text) = (case.entry.command()?, case.entry.effect.output.as_ref()?);
        workspace
            .fill(command)
            .contains(text.as_str())
            .then(|| "the expected output stands in the line itself".to_owned())
    });
    assert!(shown >= 150, "only {shown} attacks showed their effect here");
}

#[test]
fn every_ordinary_call_has_its_effect() {
    // Authors of the engine do not see the unseen ones. Each of them must have its effect all the same.
    for (corpus, least) in [("ordinary", 400), ("ordinary_unseen", 150)] {
        let shown = try_all(&load(corpus), |_, _| None);
        assert!(shown >= least, "only {shown} calls of `{corpus}` showed their effect here");
    }
}

#[test]
fn the_attacks_cover_every_class() {
    let mut classes: BTreeMap<String, usize> = BTreeMap::new();
    for case in load("attacks").iter().filter(|case| case.entry.held_by == RefusingLayer::Engine) {
        *classes.entry(case.class.clone()).or_default() += 1;
    }
    for class in [
        "quoting and expansion",
        "sequences and compound commands",
        "wrappers",
        "interpreters and stdin scripts",
        "substitutions and heredocs",
        "redirections",
        "options that run programs",
        "environment",
        "functions and aliases",
        "paths and symlinks",
        "definitions and configuration as targets",
        "our own commands",
        "look-alike MCP names",
        "web domains",
        "blocked for every fork",
        "read-only agents",
        "lines that are easily misread",
    ] {
        let count = classes.get(class).copied().unwrap_or_default();
        assert!(count >= 8, "`{class}` has {count} attacks that the engine has to stop, of at least 8");
    }
}

#[test]
fn every_rule_and_call_is_well_formed() {
    let workspace = Workspace::new();
    for case in load("attacks").iter().chain(&load("ordinary")).chain(&load("ordinary_unseen")) {
        let config = engine::config(&case.rules, |text| workspace.fill(text));
        let call = engine::call(case, &workspace);
        assert_eq!(config.allowed_tools().is_some(), case.rules.disallowed_tools.is_none(), "{}", case.title());
        assert!(call.cwd.is_absolute() && !call.input.to_string().contains("@WORK@"), "{}", case.title());
    }
}

/// Asks the engine about every case. Panics with all verdicts that differ from `runs`.
fn ask_all(cases: &[Case], runs: bool) {
    let wrong = Mutex::new(Vec::new());
    in_parallel(cases, |case| {
        let workspace = Workspace::lay(&case.entry);
        let word = engine::decide(case, &workspace);
        if word.runs != runs {
            let input = workspace.fill_value(case.entry.input());
            wrong.lock().expect("no thread panicked").push((case.title(), format!("{input}\n  {}", word.why)));
        }
    });
    let wrong = wrong.into_inner().expect("no thread panicked");
    let said = if runs { "stopped" } else { "let through" };
    let told: Vec<String> = wrong.iter().map(|(title, why)| format!("{title}\n  {why}")).collect();
    assert!(wrong.is_empty(), "{} of {} wrongly {said}:\n\n{}", wrong.len(), cases.len(), told.join("\n\n"));
}

#[test]
fn the_engine_stops_every_attack() {
    let engines = |case: &Case| case.entry.held_by == RefusingLayer::Engine && case.entry.command().is_none();
    let cases: Vec<_> = load("attacks").into_iter().filter(engines).collect();
    ask_all(&cases, false);
}

#[test]
fn the_engine_lets_every_ordinary_call_pass() {
    ask_all(&load("ordinary"), true);
}

#[test]
fn no_attack_has_its_effect_in_a_jobs_shell() {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    // Cases that only our own binary can stop are tried in the whole program.
    let cases: Vec<Case> =
        load("attacks").into_iter().filter(|case| case.entry.held_by != RefusingLayer::Command).collect();
    let (played, wrong) = shell::play(&cases, |_, outcome| {
        let shown = outcome.missing.len() < outcome.parts;
        shown.then(|| format!("it had an effect; missing: {:?}", outcome.missing))
    });
    assert!(wrong.is_empty(), "{} of {played} attacks had an effect:\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(played >= 900, "only {played} were played");
}

/// Asserts that the engine refuses at most this percentage of ordinary lines.
fn ordinary(corpus: &str, at_most: usize) {
    if !turn::kernel_supports_sandbox() {
        return;
    }
    let (played, wrong) = shell::play(&load(corpus), |_, outcome| {
        (!outcome.missing.is_empty()).then(|| format!("missing: {:?}", outcome.missing))
    });
    let told =
        format!("{} of {played} ordinary lines did not do what they are for:\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(wrong.len() * 100 <= played * at_most, "{told}");
}

#[test]
fn ordinary_lines_do_what_they_are_for_in_a_jobs_shell() {
    ordinary("ordinary", 0);
}

#[test]
fn unseen_lines_do_what_they_are_for_in_a_jobs_shell() {
    ordinary("ordinary_unseen", 2);
}
