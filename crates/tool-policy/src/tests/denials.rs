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

/// The options that a denial spells may stand anywhere in a call, between others that say nothing else.
#[test]
fn a_denial_holds_for_its_options_among_harmless_ones() {
    for (rule, denied, granted) in [
        (
            "Bash(kubectl get --namespace prod *)",
            &[
                "kubectl get --namespace prod secret x",
                "kubectl get -o yaml --namespace prod secret x",
                "kubectl get --output=yaml --namespace=prod secret x",
                "kubectl get secret x -o yaml --namespace prod",
                "kubectl --namespace prod get secret x",
                "/usr/bin/kubectl get --no-headers --namespace prod secret x",
            ][..],
            &["kubectl get --namespace dev secret prod", "kubectl get -o yaml secret x"][..],
        ),
        (
            "Bash(kubectl get --namespace *)",
            &[
                "kubectl -n a get --namespace b",
                "kubectl --namespace=a get --namespace b",
                "kubectl get pod --namespace b",
            ],
            &["kubectl get pod web"],
        ),
        (
            "Bash(kubectl delete pod web-1 --namespace prod)",
            &[
                "kubectl delete --wait pod web-1 --namespace prod",
                "kubectl delete pod --ignore-not-found web-1 --namespace prod",
                "kubectl delete --ignore-not-found --namespace prod pod web-1",
            ],
            &["kubectl delete --wait pod web-2 --namespace prod", "kubectl delete pod web-1 --namespace dev"],
        ),
        (
            "Bash(kubectl --namespace prod *)",
            &["kubectl -n a --namespace prod get", "kubectl -na --namespace prod delete pod x"],
            &["kubectl --namespace dev get"],
        ),
        (
            "Bash(docker inspect -f *)",
            &["docker inspect -s -f x web", "docker inspect -sf x web", "docker inspect web -s -f x"],
            &["docker inspect -s web"],
        ),
        (
            "Bash(docker inspect --format *)",
            &["docker inspect -s --format x web", "docker inspect web --format=x"],
            &[],
        ),
        ("Bash(docker inspect web-1 -f *)", &["docker inspect -s web-1 -f x"], &["docker inspect -s web-2 -f x"]),
    ] {
        let policy = denying(&[rule]);
        denies(&policy, denied);
        grants(&policy, granted);
    }
}
