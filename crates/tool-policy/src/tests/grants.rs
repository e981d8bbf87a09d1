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

/// Whoever writes in that folder decides what later calls run.
#[test]
fn the_folder_of_a_repositorys_configuration_must_be_spelled() {
    for (head, tail) in [("git init", ""), ("git -C . init", ""), ("git init -q", " ."), ("git clone ./a", " b")] {
        let options = ["--separate-git-dir=notes/x", "--separate-git-dir notes/x", "--sep notes/x", "--separate-git=x"];
        let refused = options.map(|option| format!("{head} {option}{tail}"));
        let refused = refused.each_ref().map(String::as_str);
        for rule in ["git *", "git init *", "git clone *", "git -C * init *"] {
            families(&[(rule, &[], &refused)]);
        }
    }
    families(&[
        ("git *", &["git init", "git init -q notes/x", "git clone ./a b"], &[]),
        ("git init --separate-git-dir=repo.git *", &["git init --separate-git-dir=repo.git ."], &[]),
        ("git clone --separate-git-dir *", &["git clone --separate-git-dir x ./a"], &[]),
    ]);
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

/// `./NAME` is the file that a rule for `NAME` means, and no other spelling is.
#[test]
fn a_script_may_be_called_by_its_place() {
    for program in ["python3", "node", "ruby"] {
        let policy = allowing(&[&format!("Bash({program} report.py *)")]);
        check(&policy, &format!("{program} ./report.py a"), Verdict::Allow);
        for other in
            ["./../report.py a", ".//report.py a", "././report.py a", "./other.py a", "./-c x", "sub/report.py a"]
        {
            check(&policy, &format!("{program} {other}"), Verdict::Deny);
        }
    }
    check(&allowing(&["Bash(git report.py *)"]), "git ./report.py a", Verdict::Deny);
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
