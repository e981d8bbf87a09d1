//! Input made to hurt the engine itself: deep nesting, explosions, sheer length. Every case runs on a thread with the
//! stack of a tokio worker; a stack overflow would abort the test run, and an explosion would never end it.

use super::*;

/// The default stack of tokio's threads.
const STACK: usize = 2 * 1024 * 1024;

fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join().unwrap();
}

fn nested(open: &str, inside: &str, close: &str, depth: usize) -> String {
    format!("{}{inside}{}", open.repeat(depth), close.repeat(depth))
}

fn shapes(depth: usize) -> Vec<String> {
    vec![
        nested("( ", "ls", " )", depth),
        nested("(", "ls", ")", depth),
        nested("{ ", "ls", "; }", depth),
        nested("$(", "ls", ")", depth),
        nested("ls $(", "ls", ")", depth),
        nested("ls \"$(", "ls", ")\"", depth),
        nested("ls ${x:-", "y", "}", depth),
        nested("ls \"${x:-", "y", "}\"", depth),
        nested("ls <(", "ls", ")", depth),
        nested("ls ", "`", "`", depth),
        nested("if ls; then ", "ls", "; fi", depth),
        nested("while ls; do ", "ls", "; done", depth),
        nested("for x in a; do ", "ls", "; done", depth),
        nested("case x in x) ", "ls", ";; esac", depth),
        nested("case x in x) ", "ls", "\nesac", depth),
        nested("f() { ", "ls", "; }", depth),
        nested("function f { ", "ls", "; }", depth),
        nested("! ", "ls", "", depth),
        nested("time ", "ls", "", depth),
        nested("coproc ", "ls", "", depth),
        nested("ls | ", "ls", "", depth),
        nested("ls && ", "ls", "", depth),
        nested("ls; ", "ls", "", depth),
        nested("ls & ", "ls", "", depth),
        nested("ls\n", "ls", "", depth),
        nested("[[ ( ", "a", " ) ]]", depth),
        format!("[[ {} ]]", nested("( ", "a", " )", depth)),
        format!("[[ {} ]]", nested("! ", "a", "", depth)),
        format!("ls $(({}))", nested("(", "1", ")", depth)),
        nested("$((", "1", "))", depth),
        nested("((", "1", "))", depth),
        format!("ls {}", nested("{a,", "b", "}", depth)),
        format!("ls {}", "{a,b}".repeat(depth)),
        format!("ls {}", "{1..9999999}".repeat(depth)),
        format!("ls {}", "[a-z]*?".repeat(depth)),
        format!("a={}", nested("(", "x", ")", depth)),
        nested("timeout 1 ", "ls", "", depth),
        nested("env A=1 ", "ls", "", depth),
        nested("eval ", "ls", "", depth),
        nested("bash -c '", "ls", "'", depth),
        nested("x=1 ", "ls", "", depth),
        nested("ls <<A ", "", "\nA\n", depth),
        nested("ls > f ", "", "", depth),
        format!("ls {}", "'a\"b'\"c'd\"".repeat(depth)),
        format!("ls {}", "\\".repeat(depth)),
        format!("ls {}", "$".repeat(depth)),
        format!("ls {}", "${".repeat(depth)),
        format!("ls {}", "$(".repeat(depth)),
        format!("ls {}", "$((".repeat(depth)),
        format!("ls {}", "\"$(".repeat(depth)),
        "(".repeat(depth),
        ")".repeat(depth),
        "( ".repeat(depth),
        "{ ".repeat(depth),
        "((".repeat(depth),
        "`".repeat(depth),
        "if ".repeat(depth),
        "case x in ".repeat(depth),
        "[[ ".repeat(depth),
        "<<".repeat(depth),
        "<<a ".repeat(depth),
        "&".repeat(depth),
        ";".repeat(depth),
        "\n".repeat(depth),
        "#".repeat(depth),
        "~".repeat(depth),
        "a=".repeat(depth),
        "a[".repeat(depth),
        "9".repeat(depth) + ">f",
        "\u{E000}0".repeat(depth),
        "é".repeat(depth),
    ]
}

#[test]
fn nesting_and_length_are_bounded_on_a_small_stack() {
    on_small_stack(|| {
        let policies =
            [allowing(&["Bash(ls *)"]), denying(&["Bash(ollim-bot cal *)", "Bash(* --force * x)"]), allowing(&["*"])];
        for depth in [2, 16, 63, 64, 65, 300, 4000] {
            for line in shapes(depth) {
                for policy in &policies {
                    let decision = bash(policy, &line);
                    assert!(!decision.reason.is_empty());
                }
            }
        }
    });
}

#[test]
fn a_line_beyond_the_bounds_is_denied() {
    on_small_stack(|| {
        let policy = allowing(&["Bash(ls *)"]);
        allows(&policy, &[&format!("ls {}", "a ".repeat(30_000))]);
        denies(
            &policy,
            &[&format!("ls {}", "a ".repeat(33_000)), &"ls;".repeat(30_000), &nested("( ", "ls", " )", 65)],
        );
        allows(&policy, &[&nested("( ", "ls", " )", 20), &nested("ls $(", "ls", ")", 20)]);
        denies(&policy, &["ls \u{E000}0", "ls \u{7f}", "ls \u{1b}[0m", &format!("ls {}", "x".repeat(1 << 20))]);
    });
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
            ("Bash", json!({ "command": long.clone() })),
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
