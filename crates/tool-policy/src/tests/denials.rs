//! The programs that a denylist stops, under any name, and those that it leaves alone.

use super::*;

#[test]
fn a_denial_stops_a_program_by_every_name() {
    let policy = denying(&["Bash(bot cal *)", "WebFetch", "WebSearch"]);
    denies(
        &policy,
        &[
            "bot cal",
            "bot cal today",
            "/usr/local/bin/bot cal today",
            "./bot cal today",
            "bot cal␣today",
            "bot --json cal today",
            "bot --home x cal",
            "bot --home=x cal",
            "bot --color never cal today",
            "bot --color=never --json cal today",
            "bot -- cal today",
            "bot-cal today",
            "../bin/bot-cal today",
            "/x/bin/bot-cal",
        ],
    );
    grants(
        &policy,
        &[
            "bot gmail unread",
            "bot calendar today",
            "bot help",
            "bot follow_up --in 5",
            "ls -la",
            "echo bot cal today",
            "git commit -m bot␣cal␣today",
            "git push",
            "find . -name *.md -exec wc {} +",
            "sed -i s/a/b/g notes.txt",
            "python3 report.py",
            "python3 -c x",
            "curl -s https://example.com",
            "./run",
        ],
    );
}

#[test]
fn denials_see_through_paths_and_options_before_a_subcommand() {
    let policy = denying(&["Bash(git push *)", "Bash(/usr/bin/rm *)", "Bash(npm publish)", "Bash(git-gc *)"]);
    denies(
        &policy,
        &[
            "git push",
            "git push origin main",
            "/usr/bin/git push",
            "./git push",
            "/usr/lib/git-core/git-push",
            "git-push origin",
            "git -C . push",
            "git --no-pager push origin",
            "git -c a.b=c push",
            "git --git-dir x --work-tree=y push",
            "git␣push",
            "rm x",
            "/bin/rm x",
            "rm -rf x",
            "npm publish",
            "git gc",
        ],
    );
    grants(
        &policy,
        &[
            "git pull",
            "git status",
            "git -C . status",
            "git log push",
            "npm test",
            "npm publish-dry",
            "rmdir x",
            "git pushx",
        ],
    );
    let policy = denying(&["Bash(* --force)"]);
    denies(&policy, &["anything --force", "git push --force", "x a␣--force"]);
    grants(&policy, &["anything --forced", "--force"]);
}

#[test]
fn the_shell_knows_which_programs_to_ask_about() {
    let rights =
        denying(&["Bash(git push *)", "Bash(bot cal *)", "Bash(tail *)", "Bash(/opt/x *)"]).shell(None).unwrap();
    assert!(rights.everything && !rights.judge_all && !rights.read_only);
    for name in ["git", "git-push", "bot", "bot-cal", "tail", "x"] {
        assert!(rights.judged.iter().any(|judged| judged == name), "{name}: {:?}", rights.judged);
    }
    assert_eq!(rights.spelled, ["/opt/x"]);
    assert!(rights.free.contains(&"head") && !rights.free.contains(&"tail"));
    assert!(denying(&["Bash(* --force)"]).shell(None).unwrap().judge_all);
    let rights = allowing(&["Bash(sort *)", "Bash(./run.sh)", "Bash(env *)"]).shell(None).unwrap();
    assert!(!rights.everything && rights.judged.contains(&"sort".to_owned()) && rights.spelled == ["./run.sh"]);
    assert!(rights.free.contains(&"cat") && rights.free.contains(&"sh"));
    assert!(!rights.free.contains(&"sort") && !rights.free.contains(&"env"));
    assert!(allowing(&["Bash"]).shell(None).unwrap().everything);
}
