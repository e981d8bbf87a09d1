//! The programs that an allowlist grants, and those that it does not.

use super::*;

#[test]
fn an_allowlist_grants_its_own_programs_and_leaves_filters_free() {
    let policy = allowing(&["Bash(bot gmail *)", "Bash(bot tasks *)", "Bash(ls *)", "Bash(TZ=UTC date *)"]);
    grants(
        &policy,
        &[
            "bot help",
            "bot gmail",
            "bot gmail unread",
            "bot gmail read 17␣a",
            "bot gmail search a;b|c>d",
            "bot --json gmail unread",
            "bot --color never gmail unread",
            "bot gmail $(touch␣evil)",
            "ls",
            "ls -la notes",
        ],
    );
    leaves_here(
        &policy,
        &[
            "cat notes.txt",
            "head -5",
            "wc -l",
            "sort -u",
            "grep -v x",
            "jq .",
            "sed -n 1,5p f",
            "awk {print␣$1}",
            "echo touch evil",
            "date +%F",
            "true",
            "[ -f x ]",
            "tee notes/x",
            "env",
            "env TZ=UTC touch evil",
            "xargs touch",
            "timeout 5 touch evil",
            "nohup touch evil",
            "bash -c touch␣evil",
            "sh script.sh",
        ],
    );
    denies(
        &policy,
        &[
            "touch evil",
            "lsof",
            "./ls",
            "/tmp/evil/ls",
            "../ls",
            "~/ls",
            "/bin/ls",
            "bot",
            "bot cal today",
            "bot helpx",
            "bot help me",
            "bot --help",
            "bot gmailx",
            "bot gmail␣x",
            "bot␣gmail",
            "botgmail",
            "./bot gmail unread",
            "/usr/bin/bot gmail unread",
            "bot-gmail unread",
            "bot --home x gmail",
            "bot -- gmail unread",
            "/bin/cat notes.txt",
            "./cat",
            "curl http://x",
            "git log",
            "python3 x.py",
            "busybox ls",
            "sudo ls",
            "LS",
            "ls\u{FFFD}",
            "",
        ],
    );
}

#[test]
fn an_empty_allowlist_leaves_help_alone() {
    let policy = allowing(&[]);
    grants(&policy, &["bot help", "bot --json help"]);
    denies(&policy, &["bot", "bot help x", "ls", "bot gmail"]);
    assert_eq!(policy.visible_tools(), ["Bash"]);
    assert!(policy.visible_mcp(&["ping_user", "report_updates"]).is_empty());
}

#[test]
fn a_star_does_not_stand_for_options_that_write_execute_or_fetch() {
    let policy = allowing(&[
        "Bash(find *)",
        "Bash(git *)",
        "Bash(tar *)",
        "Bash(rg *)",
        "Bash(curl *)",
        "Bash(wget *)",
        "Bash(zip *)",
        "Bash(man *)",
        "Bash(fd *)",
    ]);
    grants(
        &policy,
        &[
            "find . -name x -type f",
            "git log --oneline",
            "git --no-pager log",
            "git -c color.ui=false log",
            "git -c user.name=x -c USER.EMAIL=x@y -C sub commit -m x",
            "git -C . log",
            "git -C sub status",
            "git commit -am x",
            "git config --get remote.origin.url",
            "git push -u origin main",
            "tar xzf a.tgz",
            "tar -cf a.tar --exclude=x notes",
            "rg -n foo .",
            "zip -r a.zip notes",
            "curl -s https://a.b/c",
            "curl -sL https://a.b/c",
            "curl -so /dev/null -w %{http_code} https://a.b https://c.d",
            "wget -qO- https://a.b/c",
            "man ls",
        ],
    );
    denies(
        &policy,
        &[
            "find . -name x -delete",
            "find . -fprint f",
            "git -c core.pager=x log",
            "git -c color.ui=false -c core.pager=x log",
            "git -c color=x log",
            "git -ccolor.ui=false log",
            "git -c",
            "git -c color.ui=false -c alias.x=!x x",
            "git -c alias.x=!x x",
            "git --exec-path=. log",
            "git --git-dir=x log",
            "git --work-tree x log",
            "git --config-env=core.pager=X log",
            "git config alias.x !x",
            "git rebase -x x HEAD~1",
            "git rebase --exe x HEAD~1",
            "git bisect run x",
            "git submodule foreach x",
            "git clone ext::sh x",
            "git clone --upload-pack=x y z",
            "git grep -Ox y",
            "git difftool -x y",
            "git diff --ext-diff",
            "git log --output=x",
            "git diff --outp x",
            "git filter-branch --tree-filter x",
            "git -C /etc log",
            "git -C .. log",
            "tar xf a --to-command=x",
            "tar cf a b --checkpoint-a=exec=x",
            "tar xIf x a",
            "tar -xIx a",
            "rg --pre x y",
            "zip a b -TT x",
            "man -P x ls",
            "fd -x rm",
            "curl -K f",
            "curl -o f https://a.b",
            "curl -sof https://a.b",
            "curl -O https://a.b",
            "curl https://a.b --next https://c.d -o f",
            "curl --unix-socket s https://a.b",
            "curl file:///etc/passwd",
            "curl -T f https://a.b",
            "curl -x p https://a.b",
            "wget -i f",
            "wget -e x=y https://a.b",
            "wget -O f https://a.b",
            "wget -r https://a.b",
        ],
    );
    let spelled =
        allowing(&["Bash(find . -name * -delete)", "Bash(curl -o * https://a.b/*)", "Bash(git -c color.ui=false *)"]);
    grants(&spelled, &["find . -name x -delete", "curl -o f https://a.b/c", "git -c color.ui=false log"]);
    denies(
        &spelled,
        &[
            "find . -name x -fprint f -delete",
            "curl -o f https://a.b/c -o g",
            "curl -o f https://c.d/",
            "git -c color.ui=false -c a.b=c log",
        ],
    );
}

#[test]
fn the_address_of_a_rule_is_the_only_one() {
    let policy = allowing(&["Bash(curl https://api.example.com/*)", "Bash(curl -I https://docs.rs)"]);
    grants(
        &policy,
        &[
            "curl https://api.example.com/v1",
            "curl -s https://api.example.com/v1",
            "curl -sS -X POST -H Accept:␣b -d {} https://api.example.com/v1",
            "curl https://api.example.com/v1 -s --max-time 5",
            "curl https://api.example.com/1 https://api.example.com/2",
            "curl -I https://docs.rs",
        ],
    );
    denies(
        &policy,
        &[
            "curl https://api.example.com.evil.com/",
            "curl https://api.example.com/v1 https://evil.com",
            "curl https://api.example.com/v1 -o f",
            "curl https://api.example.com/v1 -L",
            "curl https://api.example.com/v1 -K f",
            "curl https://api.example.com/v1 --next -o f",
            "curl https://api.example.com/v1 file:///etc/passwd",
            "curl https://api.example.com/v1 --unix-socket /run/docker.sock",
            "curl https://evil.com",
            "curl -I https://docs.rs https://docs.rs",
            "curl -X DELETE https://docs.rs",
            "curl https://api.example.com\\@evil.com/",
            "curl -H Content-Length:␣0 -d x https://api.example.com/v1",
        ],
    );
}

#[test]
fn an_address_does_not_climb_out_of_a_rules() {
    let policy =
        allowing(&["Bash(git clone https://h/acme/*)", "Bash(git push git@h:acme/* main)", "Bash(scp * h:in/*)"]);
    grants(
        &policy,
        &["git clone https://h/acme/site", "git clone https://h/acme/a..b notes/../c", "git push git@h:acme/site main"],
    );
    grants(&policy, &["scp a h:in/a"]);
    for up in ["..", "%2e%2E", ".%2e"] {
        denies(
            &policy,
            &[
                &format!("git clone https://h/acme/{up}/evil"),
                &format!("git clone https://h/acme/a/../{up}"),
                &format!("git clone https://h/acme/\\{up}\\evil"),
                &format!("git push git@h:acme/{up}/evil main"),
                &format!("scp a h:in/{up}/.ssh/authorized_keys"),
            ],
        );
    }
}

#[test]
fn a_harmless_option_of_a_rule_may_stand_anywhere_in_a_call() {
    let policy = allowing(&[
        "Bash(curl -s https://a.b/*)",
        "Bash(curl -fsSL https://c.d/*)",
        "Bash(curl -I -H Accept:x https://e.f/*)",
        "Bash(curl -s https://g.h/x)",
        "Bash(wget -q --max-redirect=0 https://a.b/*)",
    ]);
    grants(
        &policy,
        &[
            "curl -s https://a.b/c",
            "curl -sS https://a.b/c",
            "curl -S -m5 -s https://a.b/c",
            "curl https://a.b/c -H Accept:␣b -sd {}",
            "curl -sSfL https://c.d/x",
            "curl -L -S -f --retry 3 -s https://c.d/x",
            "curl -HAccept:x -sI https://e.f/x",
            "curl -s https://g.h/x",
            "curl --silent https://a.b/c",
            "curl --show-error --silent --max-time 5 https://a.b/c",
            "curl --fail --silent --show-error -L https://c.d/x",
            "wget --max-redirect 0 -qO- https://a.b/c",
            "wget --quiet -nc --max-redirect=0 https://a.b/c",
        ],
    );
    denies(
        &policy,
        &[
            "curl https://a.b/c",
            "curl -S https://a.b/c",
            "curl -sL https://a.b/c",
            "curl -so f https://a.b/c",
            "curl -sS https://a.b/c https://i.j/",
            "curl -fsS https://c.d/x -o f -L",
            "curl -A -s https://a.b/c",
            "curl -I https://e.f/x",
            "curl -I -H Accept:y https://e.f/x",
            "curl -sS https://g.h/x",
            "curl -sm5 https://g.h/x",
            "wget -q https://a.b/c",
        ],
    );
    let star = allowing(&["Bash(curl -s *)", "Bash(curl -X* https://a.b/*)"]);
    grants(&star, &["curl -sSL https://a.b/c", "curl --max-time 3 -s https://i.j/k", "curl -XPUT https://a.b/c"]);
    denies(&star, &["curl -S https://i.j/k", "curl -sSo f https://i.j/k", "curl -S -XPUT https://a.b/c"]);
}

#[test]
fn exact_rules_and_relative_paths_mean_the_working_folder() {
    let policy = allowing(&[
        "Bash(python3 report.py *)",
        "Bash(./run.sh)",
        "Bash(make)",
        "Bash(node tools/x.js)",
        "Bash(git log *)",
        "Bash(rg *)",
        "Read(~/docs/**)",
    ]);
    let verdict = |line: &str, cwd: &str| start_in(&policy, line, cwd, &[]).decision;
    let notes = format!("{WORK}/notes");
    for line in ["python3 report.py a", "./run.sh", "make", "node tools/x.js"] {
        assert_eq!(verdict(line, WORK).verdict, Verdict::Allow, "{line}");
        let decision = verdict(line, &notes);
        assert_eq!(decision.verdict, Verdict::Deny, "{line}");
        assert!(decision.reason.contains("run it in `work/`"), "{}", decision.reason);
    }
    for line in ["git log -1", "rg x"] {
        for (cwd, expected) in [
            (WORK, Verdict::Allow),
            (notes.as_str(), Verdict::Allow),
            ("/home/u/docs", Verdict::Allow),
            ("/home/u/docs/a", Verdict::Allow),
            ("/", Verdict::Deny),
            ("/home/u", Verdict::Deny),
            ("/home/u/.bot/workx", Verdict::Deny),
            ("/home/u/.bot/state", Verdict::Deny),
            ("/home/u/.bot/work/.git", Verdict::Deny),
        ] {
            assert_eq!(verdict(line, cwd).verdict, expected, "{line} in {cwd}");
        }
    }
    let decision = verdict("git -C ../docs log", "/home/u/x");
    assert_eq!(decision.verdict, Verdict::Allow, "{}", decision.reason);
    assert_eq!(verdict("git -C x log", "/home/u/docs/..").verdict, Verdict::Deny);
    // Our own program does the same in every folder.
    assert_eq!(verdict("bot help", &notes).verdict, Verdict::Allow);
    let exact = allowing(&["Bash(git status)"]);
    assert_eq!(start(&exact, "git -C notes status").decision.verdict, Verdict::Deny);
    assert_eq!(start_in(&exact, "git -C .. status", &notes, &[]).decision.verdict, Verdict::Allow);
}

#[test]
fn a_rule_that_names_code_holds_in_the_working_folder() {
    let elsewhere = [&format!("{WORK}/notes"), "/home/u/docs", "/home/u/.bot/state/runs/0a1b2c3d/tmp"];
    let own = ["mytool", "python3.11", "/opt/bin/mytool", "bash", "dash", "sh"];
    for program in programs::names_of(programs::Class::Runs).chain(own) {
        for words in ["deploy *", "deploy", "tools/deploy *", "deploy* *"] {
            let policy = allowing(&[&format!("Bash({program} {words})"), "Read(~/docs/**)"]);
            let line = format!("{program} {}", words.replace('*', "").trim());
            check(&policy, &line, Verdict::Allow);
            for folder in elsewhere {
                let decided = start_in(&policy, &line, folder, &[]);
                assert!(!matches!(decided.location, Location::Outside(_)), "{program} {words} in {folder}");
            }
        }
    }
    for (rule, line, anywhere) in [
        ("python3 *", "python3 x.py", true),
        ("python3 -c *", "python3 -c x", true),
        ("python3 -u *", "python3 -u x.py", true),
        ("python3 /opt/x.py *", "python3 /opt/x.py a", true),
        ("python3 -uB /opt/x.py *", "python3 -uB /opt/x.py a", true),
        ("perl -ne *", "perl -ne x", true),
        ("make -j4 *", "make -j4 x", false),
        ("npm *", "npm test", true),
        ("python3 -m report *", "python3 -m report x", false),
        ("python3 -mreport *", "python3 -mreport x", false),
        ("python3 -m report /x *", "python3 -m report /x", false),
        ("node -r ./x.js /opt/y.js *", "node -r ./x.js /opt/y.js", false),
        ("node --require=x *", "node --require=x /opt/y.js", false),
        ("lua /opt/x.lua *", "lua /opt/x.lua", false),
        ("make -fdeploy.mk *", "make -fdeploy.mk x", false),
        ("make -j4 deploy *", "make -j4 deploy", false),
    ] {
        let policy = allowing(&[&format!("Bash({rule})"), "Read(~/docs/**)"]);
        check(&policy, line, Verdict::Allow);
        for folder in elsewhere {
            assert_eq!(start_in(&policy, line, folder, &[]).is_allowed(), anywhere, "{rule} in {folder}");
        }
    }
}

#[test]
fn a_star_behind_code_that_is_named_leads_to_no_other_code() {
    let named = allowing(&["Bash(make test *)", "Bash(npm run *)", "Bash(cargo test *)", "Bash(make out X=* *)"]);
    grants(
        &named,
        &[
            "make test -j4 -k CI=true NODE_ENV=prod V:=1",
            "make out X=a",
            "npm run build -- --prefix x",
            "cargo test -q --release -- --config x",
        ],
    );
    denies(
        &named,
        &[
            "make out X=a␣b",
            "make out X=$(id)",
            "make test -C x",
            "make test -f x",
            "make test -kfx",
            "make test --file=x",
            "make test --eval x",
            "make test SHELL=x",
            "make test X=/tmp/x",
            "make test X=notes/../../x",
            "make test X=$(shell␣id)",
            "make test X!=id",
            "make test PYTHONPATH=notes",
            "make test CI=true PATH=notes",
            "make test tool=rm",
            "make test env=prod",
            "make test LD_LIBRARY_PATH=notes LD_PRELOAD=ev.so",
            "make test BOT_RUN_TOKEN=forged",
            "make test X=a␣b",
            "make test .SHELLFLAGS=x",
            "make out X=a SHELL=x",
            "make test deploy",
            "make test -j deploy",
            "make test -j4 V=1 deploy",
            "make out X=a deploy",
            "npm run build --prefix x",
            "npm run build --script-shell=x",
            "cargo test --manifest-path x",
            "cargo test --config x",
        ],
    );
    for (rule, granted, refused) in [
        ("make test check *", "make test check -s", "make test check deploy"),
        ("make test-* *", "make test-unit -k", "make test-unit deploy"),
        ("make check*", "make checks", "make check deploy"),
        ("make -C sub check *", "make -C sub check -j 4", "make -C sub check 4"),
        ("make -C * check *", "make -C sub check V=1", "make -C sub check deploy"),
        ("make -j4 V=1 check *", "make -j4 V=1 check -s", "make -j4 V=1 check deploy"),
        ("make * check", "make a b check", "make a b check deploy"),
    ] {
        let policy = allowing(&[&format!("Bash({rule})")]);
        grants(&policy, &[granted]);
        denies(&policy, &[refused]);
    }
    let open = allowing(&["Bash(make *)", "Bash(npm *)", "Bash(cargo *)", "Bash(make -C sub *)"]);
    grants(
        &open,
        &["make -C x test", "make X=a␣b", "npm --prefix x test", "cargo --config x test", "make -C sub test"],
    );
}

#[test]
fn variables_that_turn_a_program_into_another_are_refused_by_name() {
    let policy = allowing(&["Bash(git log *)", "Bash(npm test *)"]);
    let set = |name: &str, value: &str| start_in(&policy, "git log", WORK, &[(name, value)]).decision;
    for (name, value) in [("NODE_ENV", "test"), ("TZ", "UTC"), ("LC_ALL", "C.UTF-8"), ("foo", "bar"), ("CI", "1")] {
        assert_eq!(set(name, value).verdict, Verdict::Allow, "{name}");
    }
    for (name, value) in [
        ("GIT_SSH_COMMAND", "x"),
        ("GIT_EXTERNAL_DIFF", "x"),
        ("GIT_CONFIG_COUNT", "1"),
        ("PAGER", "x"),
        ("MAKEFLAGS", "x"),
        ("LC_ALL", "zh_CN.GBK"),
        ("HOME", "/x"),
        ("PATH", "."),
        ("LD_PRELOAD", "x"),
        ("BOT_RUN_TOKEN", "x"),
        ("BASH_ENV", "x"),
        ("https_proxy", "x"),
    ] {
        let decision = set(name, value);
        assert_eq!(decision.verdict, Verdict::Deny, "{name}");
        assert!(decision.reason.contains(&format!("`{name}` cannot be set")), "{}", decision.reason);
    }
    // Programs that run code, or have more rights than their shell, may read any name: only known harmless ones are allowed.
    let policy = allowing(&[
        "Bash(make check)",
        "Bash(make check *)",
        "Bash(./report.fish)",
        "Bash(npm test)",
        "Bash(bot gmail *)",
    ]);
    for (policy, line) in ["make check", "make check -s", "./report.fish", "npm test", "bot gmail x", "bot help"]
        .map(|line| (&policy, line))
        .into_iter()
        .chain([(&denying(&["Bash(git push *)"]), "bot gmail x"), (&allowing(&["Bash"]), "bot next")])
    {
        let set = |name: &str, value: &str| start_in(policy, line, WORK, &[(name, value)]).is_allowed();
        assert!(set("NODE_ENV", "test") && set("LC_ALL", "C.UTF-8") && set("NO_COLOR", "1"), "{line}");
        for (name, value) in [
            ("fish_function_path", "/tmp/x"),
            ("fish_user_paths", "notes"),
            ("tool", "sh"),
            ("tool", "rm"),
            ("tool", "notes/foo"),
            ("npm_config_x", "y"),
            ("foo", "bar"),
            ("DEBUG", "notes/x"),
        ] {
            assert!(!set(name, value), "{line}: {name}={value}");
        }
    }
    let whole = allowing(&["Bash"]);
    let set = |name: &str| start_in(&whole, "git log", WORK, &[(name, "x")]).decision.verdict;
    assert_eq!((set("GIT_PAGER"), set("FOO")), (Verdict::Allow, Verdict::Allow));
    assert_eq!((set("PATH"), set("BOT_RUN_TOKEN"), set("LD_PRELOAD")), (Verdict::Deny, Verdict::Deny, Verdict::Deny));
}

#[test]
fn protected_places_are_named_before_a_program_fails_there() {
    let policy = allowing(&["Bash", "Edit", "Read"]);
    denies(
        &policy,
        &[
            "cp x /home/u/.bot/routines/evil.md",
            "cat ../state/user.token",
            "ls ..",
            "ls --file=../config.yaml",
            "cat /home/u/.claude.json",
            "grep -r token /home/u/.claude",
            "cp x .git/hooks/pre-commit",
            "tee sub/.claude/settings.json",
            "bot --home x next",
        ],
    );
    allows(
        &policy,
        &[
            "cat repo/.git/HEAD",
            "cat /home/u/.claudette",
            "git commit -m see␣../state/x",
            "curl https://a/../state",
            "python3 -c x",
        ],
    );
}

/// Holds for every program in the table, without a mark in its entry.
#[test]
fn what_changes_files_is_given_no_folder_with_tooling_by_its_name() {
    let policy = allowing(&["Bash"]);
    let refused = |line: &str| {
        let decision = start(&policy, line).decision;
        assert!(decision.reason.contains("`.git/` and `.claude/` are protected"), "{line}: {}", decision.reason);
    };
    for name in programs::names_of(programs::Class::Changes).filter(|name| *name != "git") {
        for word in [".git/hooks/x", ".claude/settings.json", "notes/.git", "-C.git/x", "--x=.claude/x", "a/../.git/x"]
        {
            refused(&format!("{name} {word}"));
            refused(&format!("{name} -- x {word}"));
        }
    }
    for call in ["sed -i p", "sort -o", "sort --outp", "shuf -o", "yq -i .a", "awk -i inplace 1", "tee", "tree -o"] {
        refused(&format!("{call} .git/hooks/x"));
    }
    for call in
        ["mv x", "bundle create", "restore", "checkout --", "rm", "worktree add", "clone x", "an-alias", "apply"]
    {
        refused(&format!("git {call} .git/hooks/x"));
        refused(&format!("git -C notes {call} .claude/x"));
    }
    for call in ["tar -xf --exclude .git/x", "tar xCf . --exclude .git/x", "tar -xf a -- --exclude .git/x"] {
        refused(call);
    }
    allows(
        &policy,
        &[
            "sort .git/config",
            "sed -n 1p .git/config",
            "git log -- .claude/settings.json",
            "git add .claude/settings.json",
            "git commit -m .git:␣see␣there",
            "git fetch notes/.git main",
            "git --git-dir=.git restore x",
            "tar -czf b.tgz --exclude=.git .",
            "tar -czf b.tgz --exclude .git .",
            "tar czf b.tgz --exclude ./.git .",
            "zip -qr b.zip . -x .git/* */.git/*",
            "tar -czf repo.git.tgz notes",
        ],
    );
}

#[test]
fn a_script_that_a_rule_spells_has_no_other_beside_it() {
    for (rules, granted, refused) in [
        (
            &["Bash(sed -i s/a/b/ *)"][..],
            &["sed -i s/a/b/ f", "sed -i s/a/b/ -s f g"][..],
            &["-e p f", "-ne p f", "--expr=p f", "--fil=p f", "-f p f", "-nfp f"][..],
        ),
        (&["Bash(sed -i -e s/a/b/ *)"], &["sed -i -e s/a/b/ f"], &["-e p f", "-f p f"]),
        (&["Bash(awk -f p *)"], &["awk -f p f", "awk -f p -v a=b f"], &["-f q", "-e q", "-E q", "--sou=q", "-Wfile=q"]),
        (&["Bash(yq -i .a=1 *)"], &["yq -i .a=1 f"], &["--expression x f", "--from-file x f"]),
    ] {
        let policy = allowing(rules);
        let call = granted[0].rsplit_once(' ').unwrap().0;
        let named = |line: &str| start(&policy, line).decision.rule.is_some();
        for line in granted {
            assert!(named(line), "{line}");
        }
        for more in refused {
            assert!(!named(&format!("{call} {more}")), "{call} {more}");
        }
    }
    // If the rule spells none, the star stands for each.
    grants(&allowing(&["Bash(sed -i *)"]), &["sed -i -e s/a/b/ -e p f", "sed -i -f x f", "sed -i p f"]);
    grants(&allowing(&["Bash(sed -n -e *)"]), &["sed -n -e 1p -e 2p f"]);
    grants(&allowing(&["Bash(awk -F , *)"]), &["awk -F , -f x f"]);
}

#[test]
fn a_refusal_says_what_would_be_needed_and_what_to_do_instead() {
    // The advice in the sentences is correct.
    grants(&allowing(&["Bash(python3 -c 'print 2*3')"]), &["python3 -c print␣2*3"]);
    grants(&allowing(&["Bash(git -c *)"]), &["git -c core.pager=x log"]);
    grants(&allowing(&["Bash(git --git-dir=* *)"]), &["git --git-dir=x log"]);
    let policy = allowing(&["Bash(git log *)", "Bash(sort *)", "Bash(rg *)"]);
    for (line, parts) in [
        (
            "git push origin",
            &["`git` is not granted", "`Bash(git push *)` would be needed", "grants: Bash(git log *)"][..],
        ),
        // Not `make *`, which would grant every program.
        ("make -j4", &["`make` is not granted", "`Bash(make -j4)`"]),
        ("npm run test:unit", &["the rule `Bash(npm run test:unit)` would be needed"]),
        ("ssh -o BatchMode=yes host uptime", &["the rule `Bash(ssh -o BatchMode=yes host uptime)` would be needed"]),
        ("python3 -c print␣2*3", &["the rule `Bash(python3 -c 'print 2*3')` would be needed"]),
        ("/usr/bin/rg x", &["by its path; call it `rg`"]),
        ("/bin/cat x", &["call it `cat`"]),
        ("rg --pre x y", &["`--pre` of `rg`", "`Bash(rg --pre *)`", "leave it out"]),
        ("git log --output=x", &["`--output` of `git`", "`Bash(git log --output=* *)`"]),
        ("git -C . push", &["`Bash(git push *)` would be needed"]),
        ("git -c core.pager=x log", &["`Bash(git -c *)` would be needed"]),
        ("git --git-dir=x log", &["`Bash(git --git-dir=* *)` would be needed"]),
        ("curl -s https://api.x.y/v1?q", &["`Bash(curl https://api.x.y/*)` would be needed"]),
        ("curl -H Host:a https://api.x.y/", &["`Bash(curl -H Host:* https://api.x.y/*)` would be needed"]),
    ] {
        let decision = start(&policy, line).decision;
        assert_eq!(decision.verdict, Verdict::Deny, "{line}");
        for part in parts {
            assert!(decision.reason.contains(part), "{line}: {}", decision.reason);
        }
    }
}

#[test]
fn a_refusal_is_short_and_plain_whatever_the_agent_wrote() {
    let long = "x\u{1b}[31m\r\n\u{202e}".repeat(8_000);
    let policy =
        allowing(&["Bash(git log *)", "Bash(curl https://a.b/*)", "Bash(make test *)", "Bash(rg *)", "Bash(ls *)"]);
    let of = |words: &[&str], cwd: &str, env: &[(&str, &str)]| {
        let argv: Vec<String> = words.iter().map(|word| word.replace("LONG", &long)).collect();
        let env = env.iter().map(|(name, value)| (name.replace("LONG", &long), (*value).to_owned())).collect();
        let cwd = cwd.replace("LONG", &long);
        let start = ProgramStart { argv: &argv, cwd: std::path::Path::new(&cwd), env: &env, agent_type: None };
        policy.decide_program(&start).decision
    };
    for (words, cwd, env) in [
        (&["LONG"][..], WORK, &[][..]),
        (&["/bin/LONG"], WORK, &[]),
        (&["/LONG/rg"], WORK, &[]),
        (&["git", "LONG"], WORK, &[]),
        (&["git", "-LONG", "log"], WORK, &[]),
        (&["git", "log", "--output=LONG"], WORK, &[]),
        (&["curl", "https://a.b/", "--LONG"], WORK, &[]),
        (&["curl", "https://a.b/", "-HLONG:x"], WORK, &[]),
        (&["curl", "https://a.b/LONG"], WORK, &[]),
        (&["curl", "LONG"], WORK, &[]),
        (&["make", "test", "LONG=x"], WORK, &[]),
        (&["ls"], "/LONG", &[]),
        (&["ls"], "/home/u/.bot/state/LONG", &[]),
        (&["ls"], WORK, &[("LONG", "x")]),
        (&["ls"], WORK, &[("FOO_LONG", "x")]),
        (&["ls"], WORK, &[("LD_LONG", "x")]),
        (&["ls", "../state/x\u{1b}[31m"], WORK, &[]),
    ] {
        let Decision { verdict, reason, .. } = of(words, cwd, env);
        assert_eq!(verdict, Verdict::Deny, "{words:?}: {}", reason.chars().take(300).collect::<String>());
        assert!(reason.chars().count() < 8_000, "{words:?}");
        assert!(!reason.contains(char::is_control) && !reason.contains('\u{202e}'), "{words:?}");
    }
}

/// A later word takes an option back that a rule spells, so the star of such a rule stands for operands.
#[test]
fn what_a_rule_holds_back_stays_held_back() {
    let families: &[(&[&str], &[&str], &[&str])] = &[
        (
            &["Bash(git push --dry-run *)", "Bash(git push -n *)"],
            &["git push --dry-run origin main", "git push -n -v origin", "git push --dry-run", "git -C . push -n x"],
            &["--no-dry-run origin x", "--no-dry origin x", "origin --delete main", "--mirror origin", "--repo x"],
        ),
        (&["Bash(git fetch --dry-run *)"], &["git fetch --dry-run origin"], &["--no-dry-run", "--no-dry"]),
        (&["Bash(git commit --dry-run *)"], &["git commit --dry-run -q"], &["--no-dry-run -m x", "-m x"]),
        (&["Bash(git rm -n *)", "Bash(git mv -n *)"], &["git rm -n f", "git mv -n f g"], &["--no-dry-run f", "-f f"]),
        (&["Bash(git reset --soft *)"], &["git reset --soft HEAD"], &["--hard", "--mixed x"]),
        (
            &["Bash(git restore --staged *)", "Bash(git restore -S *)"],
            &["git restore --staged f", "git restore --staged -- f"],
            &["--worktree f", "-W f"],
        ),
        (
            &["Bash(git push --force-with-lease *)", "Bash(git push --no-force *)"],
            &["git push --force-with-lease origin x"],
            &["--mirror origin", "-f x", "origin +main", "origin +main:main"],
        ),
        (&["Bash(git clean -i *)"], &["git clean -i ."], &["--no-interactive -f .", "-f"]),
        (&["Bash(git apply --stat *)", "Bash(git apply --summary *)"], &["git apply --stat p"], &["--apply p"]),
        (&["Bash(git branch -r *)", "Bash(git branch --sort=name *)"], &["git branch -r"], &["-d x", "-D x"]),
        (&["Bash(git merge --ff-only *)", "Bash(git pull --ff-only *)"], &["git merge --ff-only x"], &["--no-ff x"]),
        (&["Bash(git merge --squash *)"], &["git merge --squash x"], &["--no-squash x", "--commit x"]),
        (&["Bash(git revert -n *)"], &["git revert -n x"], &["--commit x"]),
        (
            &["Bash(make -n *)", "Bash(make --dry-run *)"],
            &["make -n test", "make -n"],
            &["SHELL=/bin/sh x", "'x!=touch e'", "MAKE='touch e;:' x", "MAKEFLAGS= x", "--no-dry-run"],
        ),
        (&["Bash(mv -b *)", "Bash(cp -b *)"], &["mv -b x y"], &["--backup=none x y"]),
        (&["Bash(unzip -n *)"], &["unzip -n x.zip"], &["-o x.zip", "--n -o x.zip"]),
        (
            &["Bash(npm publish --dry-run *)", "Bash(npm pack --dry-run *)"],
            &["npm publish --dry-run ./pk", "npm pack --dry-run --silent"],
            &["--dry-run=false", "--dry-run=0", "--no-dry-run", "--dry-run false ./pk"],
        ),
        (
            &["Bash(npm install --ignore-scripts *)", "Bash(npm test --ignore-scripts *)"],
            &["npm install --ignore-scripts lodash --no-audit --no-fund"],
            &[
                "--ignore-scripts=false ./pk",
                "./pk --ignore-scripts false",
                "--no-ignore-scripts",
                "--ignore-scripts=null",
            ],
        ),
        (
            &["Bash(npm install --offline *)", "Bash(npx --offline *)"],
            &["npm install --offline x"],
            &["--offline=false x", "--offline false x", "--prefer-online x"],
        ),
        (&["Bash(mv -n *)", "Bash(cp -n *)"], &["mv -n a b", "cp -n -v a b"], &["-f a b", "a b -f", "--force a b"]),
        (&["Bash(rm -i *)"], &["rm -i a"], &["-f a", "--force a", "-rf a"]),
        (&["Bash(patch --dry-run *)"], &["patch --dry-run f g"], &["-o x f", "--output=x f", "-R f"]),
        (
            &["Bash(node --check *)"],
            &["node --check a.js"],
            &["--no-check a.js", "--eval x", "inspect a.js", "debug a.js"],
        ),
        (&["Bash(terraform apply --dry-run *)"], &["terraform apply --dry-run x"], &["--dry-run=none x", "--really"]),
        (
            &["Bash(curl -s -X GET http://h/*)", "Bash(curl -s --request GET http://h/*)"],
            &["curl -s -X GET http://h/a", "curl -sX GET http://h/a -m 5"],
            &["-X DELETE http://h/a", "http://h/a -X PUT", "--request PUT http://h/a", "http://h/a -I"],
        ),
        (&["Bash(curl -I http://h/*)"], &["curl -I http://h/a"], &["-X DELETE http://h/a", "http://h/a -XPUT"]),
        (
            &["Bash(wget -q --max-redirect=0 --method=GET http://h/*)"],
            &["wget -q --max-redirect=0 --method=GET http://h/a"],
            &["--method=DELETE http://h/a", "http://h/a --method PUT"],
        ),
    ];
    for (rules, granted, refused) in families {
        let policy = allowing(rules);
        grants(&policy, granted);
        for rule in *rules {
            let head = rule
                .trim_start_matches("Bash(")
                .trim_end_matches(')')
                .trim_end_matches("http://h/*")
                .trim_end_matches('*')
                .trim();
            let calls: Vec<String> = refused.iter().map(|rest| format!("{head} {rest}")).collect();
            denies(&policy, &calls.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
    // The star of a word stands for no more letters, and not for the value that takes back.
    for (rule, granted, refused) in [
        ("Bash(rm -i*)", &["rm -i x"][..], &["rm -if x", "rm -i -f x"][..]),
        ("Bash(mv -n*)", &["mv -n x y"], &["mv -nf x y"]),
        (
            "Bash(npm install --ignore-scripts*)",
            &["npm install --ignore-scripts x"],
            &["npm install --ignore-scripts=false x"],
        ),
        ("Bash(kubectl delete --dry-run=*)", &[], &["kubectl delete --dry-run=none pod x"]),
    ] {
        let policy = allowing(&[rule]);
        grants(&policy, granted);
        denies(&policy, refused);
    }
    // What changes nothing may be asked in any way.
    grants(
        &allowing(&["Bash(git diff --cached *)"]),
        &["git diff --cached --stat -w", "git diff --cached --no-index a b"],
    );
}

/// Options that everybody writes beside one that holds the program back do not take it back.
#[test]
fn what_stands_beside_a_restraint_leaves_it_as_it_is() {
    for (rule, granted, refused) in [
        (
            "make --dry-run",
            &["make --dry-run -j4 all", "make --dry-run -ks --jobs=2"][..],
            &["-f x", "-jC x", "-j4 SHELL=x"][..],
        ),
        ("make -n", &["make -n check V=1"], &["check V=rm", "check V=1 CC=x"]),
        ("git rm --cached", &["git rm --cached -r -q --ignore-unmatch notes"], &["-f notes", "-r --no-cached notes"]),
        ("git push -n", &["git push -n --tags origin", "git push -n --all --follow-tags"], &["--mirror", "--prune"]),
        ("git fetch --dry-run", &["git fetch --dry-run --all -p"], &["--all --no-dry-run"]),
        ("git add -n", &["git add -n -A", "git add -n -u ."], &["-A --no-dry-run", "-f ."]),
        (
            "kubectl apply --dry-run=client",
            &["kubectl apply --dry-run=client -f app.yaml", "kubectl apply --dry-run=client -n test -f k8s -R"],
            &["-f app.yaml --dry-run=none", "-f https://h/x", "-k dir", "--force -f app.yaml"],
        ),
        ("patch --dry-run -p1", &["patch --dry-run -p1 -i x.patch"], &["-i x.patch -o y", "-R -i x.patch"]),
        ("unzip -n", &["unzip -n a.zip -d x", "unzip -n -q a.zip"], &["-do x a.zip", "a.zip -o"]),
        (
            "git restore --staged",
            &["git restore --staged --source=HEAD~1 f", "git restore --staged -s v1.0 f"],
            &["--source=HEAD -W f", "--source=--worktree f"],
        ),
        ("cp -n", &["cp -n -r a b", "cp -n -av a b"], &["-rf a b", "-rt x a", "--recursive=x -f a b"]),
        ("npm ci --ignore-scripts", &["npm ci --ignore-scripts --omit=dev"], &["--omit=--prefix=x", "--omit false"]),
        (
            "rsync -n",
            &["rsync -n -av a b", "rsync -n -rz --stats a b"],
            &["-ave x a b", "--no-n a b", "--no-dry-run a b"],
        ),
        (
            "git push --dry-run",
            &["git push --dry-run -u origin main"],
            &["-uf origin main", "-u --no-dry-run origin main"],
        ),
    ] {
        let policy = allowing(&[&format!("Bash({rule} *)")]);
        grants(&policy, granted);
        let calls: Vec<String> = refused.iter().map(|rest| format!("{rule} {rest}")).collect();
        denies(&policy, &calls.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// A choice of the rule stays as it is, by whichever name the call makes it again.
#[test]
fn a_choice_of_a_rule_is_not_made_again_by_its_other_name() {
    for (rule, granted, refused) in [
        (
            "tar -xf b.tar -C out",
            &["tar -xf b.tar -C out a", "tar -xf b.tar -C out --strip-components=1 a"][..],
            &["--directory=notes a", "--directory notes", "--dir=notes a", "--cd=notes", "-C notes"][..],
        ),
        ("tar -xf b.tar --directory=out", &["tar -xf b.tar --directory=out a"], &["-C notes a", "-Cnotes"]),
        ("git clone -b main ./up", &["git clone -b main ./up dst --depth=1"], &["dst --branch=evil", "--bra evil"]),
        ("git cherry-pick -m 1", &["git cherry-pick -m 1 -x a"], &["--mainline=2 a", "-m 2"]),
        ("git merge -s ours", &["git merge -s ours --no-edit x"], &["--strategy=recursive x"]),
        ("install -m 644", &["install -m 644 a b", "install -m 644 -D a b"], &["--mode=4755 a b", "--mo=4755 a"]),
        (
            "gh issue create -R acme/app",
            &["gh issue create -R acme/app -t x -b y"],
            &["--repo evil/x", "--repo=evil/x"],
        ),
        ("gh pr list --repo acme/app", &["gh pr list --repo acme/app -L 5"], &["-R evil/x", "-Revil/x"]),
        ("helm -n staging upgrade app", &["helm -n staging upgrade app ./c"], &["--namespace prod ./c", "-n prod"]),
        ("journalctl -u app", &["journalctl -u app -n 5"], &["--unit=ssh", "--unit ssh", "-ussh"]),
        ("psql -h db -d app", &["psql -h db -d app -A"], &["--host=evil", "--dbname=postgres", "--db=x", "-hevil"]),
        ("mysql -h db app", &["mysql -h db app -B"], &["--host=evil", "-hevil"]),
        ("pip install -i https://i", &["pip install -i https://i x"], &["--index-url=https://evil x"]),
        ("docker run --rm -u 1000", &["docker run --rm -u 1000 alpine"], &["--user 0 alpine", "--user=0 alpine"]),
        ("ansible-playbook -i staging", &["ansible-playbook -i staging s.yml"], &["--inventory=prod s.yml"]),
        ("heroku logs -a app", &["heroku logs -a app -n 5"], &["--app=prod"]),
        ("truncate -s 0", &["truncate -s 0 f"], &["--size=1G f"]),
        ("chmod 600", &["chmod 600 f", "chmod 600 -R f"], &["-=0777 f", "-,=4755 f", "-a=u f", "-7 f"]),
        ("shred f", &["shred f -n 1"], &["-u", "--remove"]),
        ("dd if=a.img of=b.img", &["dd if=a.img of=b.img bs=1M"], &["of=keep.txt", "if=secret.txt"]),
        ("journalctl -u app -n 5", &["journalctl -u app -n 5 _PID=7"], &["+ _UID=0"]),
        ("openssl x509 -in c.pem", &["openssl x509 -in c.pem -noout -text"], &["-CAserial f", "-out f"]),
        ("mkdir -m 700", &["mkdir -m 700 -p d"], &["--mode=777 d"]),
        ("gcc -o prog", &["gcc -o prog a.c"], &["--output=evil a.c"]),
        ("pytest -c ci.ini", &["pytest -c ci.ini tests"], &["--config-file=evil.ini"]),
        ("ssh web", &["ssh web uptime", "ssh web -4 -q uptime"], &["-p 22 ls", "-A ls", "-P x ls", "-O exit", "-Y ls"]),
        (
            "kubectl get",
            &["kubectl get pods", "kubectl get -f app.yaml", "kubectl get deployment.apps/web"],
            &["-k git::http://h/b.git", "-k github.com/a/b", "-kgithub.com/a/b", "--kustomize=git@h:a/b", "-k dir"],
        ),
        ("kubectl apply -k", &["kubectl apply -k overlays/test"], &["git::http://h/b", "github.com/a/b", "git@h:a/b"]),
    ] {
        let policy = allowing(&[&format!("Bash({rule} *)")]);
        grants(&policy, granted);
        let calls: Vec<String> = refused.iter().map(|rest| format!("{rule} {rest}")).collect();
        denies(&policy, &calls.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// A star before the end stands for no subcommand and no option, and behind an option for its value alone.
#[test]
fn a_star_in_the_middle_stands_for_operands() {
    let families: &[(&str, &[&str], &[&str])] = &[
        (
            "Bash(git -C * pull *)",
            &["git -C . pull", "git -C sub pull origin"],
            &[
                "git -C . push --repo pull origin x",
                "git -C . clean -fdxq . pull",
                "git -C . remote add pull http://x",
                "git -C . push pull",
            ],
        ),
        ("Bash(git push * main)", &["git push origin main"], &["git push -f origin main", "git push --repo x main"]),
        ("Bash(git push * --dry-run)", &["git push origin x --dry-run"], &["git push origin x --repo --dry-run"]),
        (
            "Bash(git * --oneline)",
            &["git log --oneline"],
            &["git push origin x --repo --oneline", "git clean -fdx -e --oneline"],
        ),
        (
            "Bash(git -C * status)",
            &["git -C . status"],
            &["git -C . diff --no-index /dev/null f --src-prefix status", "git -C . log status"],
        ),
        ("Bash(git * status)", &[], &["git push origin status", "git checkout status", "git log status"]),
        ("Bash(git * log *)", &[], &["git push origin log", "git reset log"]),
        (
            "Bash(find notes -name *.tmp -delete)",
            &["find notes -name *.tmp -delete", "find notes -name x*.tmp -delete"],
            &["find notes -name x -o ! -name y.tmp -delete"],
        ),
        (
            "Bash(find . -mtime +* -delete)",
            &["find . -mtime +9 -delete"],
            &["find . -mtime +9 -o -name secret -delete"],
        ),
        (
            "Bash(find . -type f -name * -delete)",
            &["find . -type f -name a -delete"],
            &["find . -type f -name a -o -name b -delete"],
        ),
        ("Bash(npm --prefix * test)", &["npm --prefix ui test"], &["npm --prefix ui run evil test"]),
        ("Bash(make -C * test)", &["make -C . test"], &["make -C . evil test", "make -C . -f x test"]),
        (
            "Bash(gh run view * --repo acme/site)",
            &["gh run view 1 --repo acme/site"],
            &[
                "gh run view 1 --repo evil/x --log --template --repo acme/site",
                "gh run view -R evil/x --repo acme/site",
            ],
        ),
        (
            "Bash(docker exec * ls *)",
            &["docker exec c ls", "docker exec c ls -l /x"],
            &["docker exec c rm x ls", "docker exec c sh ␣ ls y", "docker exec c sh -c x ls y", "docker exec -it c ls"],
        ),
        (
            "Bash(ssh * uptime)",
            &["ssh host uptime"],
            &["ssh host rm x; uptime", "ssh host reboot uptime", "ssh -oX uptime"],
        ),
        ("Bash(docker * ps)", &[], &["docker run ps", "docker rm ps"]),
        ("Bash(npm * --ignore-scripts)", &[], &["npm exec --ignore-scripts", "npm publish --ignore-scripts"]),
        ("Bash(npx * --offline)", &[], &["npx evil --offline"]),
        ("Bash(cargo * --offline)", &[], &["cargo publish --offline"]),
        ("Bash(deno * --check)", &[], &["deno run --check"]),
        ("Bash(node * --check)", &[], &["node evil.js --check", "node a --check"]),
        ("Bash(python3 -u * --help)", &[], &["python3 -u evil.py --help"]),
        ("Bash(lua * -v)", &[], &["lua evil.lua -v"]),
        ("Bash(npm run * --silent)", &["npm run build --silent"], &["npm run build x --silent"]),
        ("Bash(make * --dry-run)", &["make all check --dry-run"], &["make all -f x --dry-run"]),
        ("Bash(rsync -n * host:)", &["rsync -n a host:"], &["rsync -n a -e x host:"]),
        ("Bash(mytool * --check)", &["mytool a --check"], &["mytool run x --check"]),
        ("Bash(* --version)", &["cargo --version"], &["rm -rf notes --version", "cargo publish --no-verify --version"]),
    ];
    for (rule, granted, refused) in families {
        let policy = allowing(&[rule]);
        grants(&policy, granted);
        denies(&policy, refused);
    }
    // Programs that only read take their options anywhere.
    grants(&allowing(&["Bash(git log * -- src)"]), &["git log -5 --stat -- src"]);
    grants(
        &allowing(&["Bash(find * -delete)"]),
        &[
            "find notes -name *.tmp -type f -delete",
            "find . ( -name a -o -name b ) -delete",
            "find . ! -name a -delete",
        ],
    );
    let temporary = allowing(&["Bash(find * -name *.tmp -delete)"]);
    grants(&temporary, &["find . -name *.tmp -delete", "find a b -type f -name *.tmp -delete"]);
    denies(
        &temporary,
        &[
            "find . ! -name *.tmp -delete",
            "find . -not -name *.tmp -delete",
            "find . -type f ! -name *.tmp -delete",
            "find . -delete -name *.tmp -delete",
            "find . -exec rm {} + -name *.tmp -delete",
        ],
    );
}

/// What stands behind the script that a rule names is for the script.
#[test]
fn options_behind_a_script_are_its_own() {
    let policy = allowing(&[
        "Bash(python3 report.py *)",
        "Bash(python3 -m pytest *)",
        "Bash(node app.js *)",
        "Bash(perl s.pl *)",
        "Bash(python3 -W ignore *)",
    ]);
    grants(
        &policy,
        &[
            "python3 report.py -v",
            "python3 report.py -c conf.yaml -m 5 -i in.csv",
            "python3 -m pytest -v -m slow -c x",
            "node app.js -p 8080 -e prod",
            "perl s.pl -e prod -d x",
        ],
    );
    denies(
        &policy,
        &[
            "python3 -c x report.py",
            "python3 -m pytes -v",
            "python3 -i report.py",
            "node -e x app.js",
            "python3 -W ignore -c x",
        ],
    );
}

#[test]
fn a_refused_request_names_the_option_that_is_more_than_its_rule() {
    let policy = allowing(&["Bash(curl https://api.example.com/*)", "Bash(wget -q *)"]);
    for (line, part) in [
        ("curl -u a:b https://api.example.com/x", "the option `-u` of `curl` has to be spelled"),
        ("curl -u a:b https://api.example.com/x", "as in `Bash(curl -u * https://api.example.com/*)`"),
        ("curl https://api.example.com/x --cookie a=b", "the option `--cookie` of `curl` has to be spelled"),
        ("wget -q -O f https://a.b", "as in `Bash(wget -q -O *)`"),
        ("curl https://other.example.com/x", "the rule `Bash(curl https://other.example.com/*)` would be needed"),
    ] {
        let reason = start(&policy, line).decision.reason;
        assert!(reason.contains(part), "{line}: {reason}");
    }
}
