//! Input that attacks the engine itself: sheer length, and patterns that match slowly. Every case runs on a thread with
//! the stack of a tokio worker. A stack overflow would abort the test run, and an explosion would never end it.

use super::*;

/// The default stack of tokio's threads.
const STACK: usize = 2 * 1024 * 1024;

fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join().unwrap();
}

/// Decides on words whose number may not be too much.
#[track_caller]
pub(super) fn decided(policy: &Policy, argv: &[String]) -> ProgramDecision {
    let env = std::collections::BTreeMap::new();
    let start = ProgramStart { argv, cwd: std::path::Path::new(WORK), env: &env, agent_type: None };
    let decided = policy.decide_program(&start);
    assert!(!decided.decision.reason.is_empty());
    decided
}

#[test]
fn many_words_are_decided() {
    on_small_stack(|| {
        let texts: Vec<String> = (0..40)
            .map(|at| match at % 5 {
                0 => format!("Bash(* a * b{at})"),
                1 => format!("Bash(cat * x{at} *)"),
                2 => format!("Bash(git * a*a*a*b{at})"),
                3 => format!("Bash(tool{at} *)"),
                _ => format!("Bash(*a*a*a*a*b{at})"),
            })
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for policy in [allowing(&texts), denying(&texts), allowing(&["Bash(curl *)", "Bash(sort *)", "Bash(find *)"])] {
            for program in ["cat", "git", "curl", "sort", "find", "unknown", "bot"] {
                for (word, count) in [
                    ("cat", 16_000),
                    ("a", 9_999),
                    ("-C", 9_999),
                    ("-o", 9_999),
                    ("aaaaaaaaaaaaaaaaaaaa", 9_999),
                    ("a/b/c", 9_999),
                    ("--json", 9_999),
                    ("-calias.aaaaaaaaa=b", 9_999),
                ] {
                    let argv: Vec<String> = std::iter::once(program)
                        .chain(std::iter::repeat_n(word, count))
                        .map(ToOwned::to_owned)
                        .collect();
                    decided(&policy, &argv);
                }
                decided(&policy, &[program.to_owned(), "a".repeat(200_000)]);
            }
        }
    });
}

#[test]
fn words_that_are_all_different_are_decided() {
    on_small_stack(|| {
        let calls = [
            "cat",
            "git log",
            "curl",
            "sort",
            "find .",
            "tool -a",
            "rm -v",
            "tar -x",
            "docker run",
            "npm run",
            "kubectl get",
            "ssh web",
        ];
        let rules: Vec<String> = calls.iter().map(|call| format!("Bash({call} *)")).collect();
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        for policy in [allowing(&rules), denying(&rules)] {
            for call in calls {
                let numbered = |front: &str, behind: &str| (0..4000).map(|at| format!("{front}{at}{behind}")).collect();
                let words: [Vec<String>; 6] = [
                    numbered("--o", ""),
                    numbered("--o", "=x"),
                    numbered("-v", ""),
                    numbered("w", ""),
                    vec![format!("-{}", "v".repeat(120_000))],
                    vec![format!("-{}", "abcdefgh".repeat(15_000))],
                ];
                for words in words {
                    let argv: Vec<String> = call.split(' ').map(ToOwned::to_owned).chain(words).collect();
                    decided(&policy, &argv);
                }
            }
        }
    });
}

#[test]
fn words_beyond_the_bounds_are_denied() {
    let policy = allowing(&["Bash"]);
    let many = |count: usize| std::iter::repeat_n("ls".to_owned(), count).collect::<Vec<_>>();
    assert!(decided(&policy, &many(9_000)).is_allowed());
    assert!(!decided(&policy, &many(10_001)).is_allowed());
    assert!(!decided(&policy, &["ls".into(), "x".repeat(300_000)]).is_allowed());
    for words in [vec![], vec![""], vec!["ls", "a\0b"], vec!["l\0s"], vec!["ls", "\u{1}"], vec!["", "x"]] {
        let words: Vec<String> = words.into_iter().map(ToOwned::to_owned).collect();
        let decided = decided(&policy, &words);
        assert_eq!((decided.is_allowed(), decided.decision.layer), (false, Layer::System), "{words:?}");
    }
}

#[test]
fn hostile_inputs_of_other_tools_are_decided() {
    on_small_stack(|| {
        let policy =
            allowing(&["Edit(a*a*a*a*a*a*b/**)", "Bash(a*a*a*a*a*a*b)", "WebFetch(domain:docs.rs)", "Skill(a*a*a*b)"]);
        let long = "a".repeat(50_000);
        for (tool, input) in [
            ("Read", json!({ "file_path": "../".repeat(20_000) })),
            ("Read", json!({ "file_path": "a/".repeat(20_000) })),
            ("Read", json!({ "file_path": long.clone() })),
            ("WebFetch", json!({ "url": format!("https://{long}") })),
            ("Skill", json!({ "skill": long.clone() })),
            (long.as_str(), json!({})),
            ("mcp__", json!({})),
            ("Bash", json!({ "command": null })),
            ("Bash", json!("ls")),
        ] {
            assert_eq!(policy.decide(&call(tool, input)).verdict, Verdict::Deny);
        }
    });
}
