//! The place where a granted program runs, and its rights.

use std::path::Path;

use super::*;

#[track_caller]
fn rights(rule: &str, line: &str) -> Rights {
    match start(&allowing(&[rule]), line) {
        ProgramDecision { location: Location::Outside(rights), .. } => rights,
        other => panic!("{rule} on {line}: {other:?}"),
    }
}

#[track_caller]
fn check_rights(rule: &str, line: &str, writes: &Writes, network: bool, anything: bool) {
    let rights = rights(rule, line);
    let found = (&rights.writes, rights.network, rights.executes == Executes::Anything);
    assert_eq!(found, (writes, network, anything), "{rule} on {line}");
}

#[test]
fn rights_follow_from_the_program_and_the_rule() {
    for (rule, line) in [
        ("Bash(cat *)", "cat f"),
        ("Bash(sed *)", "sed -n p f"),
        ("Bash(awk *)", "awk 1 f"),
        ("Bash(sort *)", "sort f"),
        ("Bash(ls *)", "ls"),
        ("Bash(find *)", "find ."),
        ("Bash(/usr/bin/find *)", "/usr/bin/find ."),
        ("Bash(git log *)", "git log"),
        ("Bash(git -C * log *)", "git -C . log"),
        ("Bash(rg *)", "rg x"),
        // With the option that the rule spells it only looks, whatever stands behind that.
        ("Bash(git branch -v *)", "git branch -v -D main"),
        ("Bash(git branch --list *)", "git branch --list --no-list x"),
        ("Bash(git branch --show-current *)", "git branch --show-current --no-show-current x"),
        ("Bash(git remote -v *)", "git remote -v add x http://x"),
        ("Bash(git tag -l *)", "git tag -l -d v1"),
        ("Bash(git clean -n *)", "git clean -n x"),
        ("Bash(unzip -l *)", "unzip -l --l -o a.zip"),
        ("Bash(xz -l *)", "xz -l -z f"),
        ("Bash(bzip2 -t *)", "bzip2 -t -d f.bz2"),
        ("Bash(zstd -dc *)", "zstd -dc f.zst -o x"),
        ("Bash(tar -tf *)", "tar -tf a.tar"),
        ("Bash(tar tzf *)", "tar tzf a.tgz"),
    ] {
        check_rights(rule, line, &Writes::Nothing, false, false);
    }
    for (rule, line) in [
        ("Bash(sed -i *)", "sed -i s/a/b/ f"),
        ("Bash(sort -o *)", "sort -o f f"),
        ("Bash(tee *)", "tee f"),
        ("Bash(cp *)", "cp a b"),
        ("Bash(tar *)", "tar xzf a"),
        ("Bash(tar -xf *)", "tar -xf a"),
        ("Bash(tar -Cnotes -xf *)", "tar -Cnotes -xf a"),
        ("Bash(unzip -d/tmp/lt *)", "unzip -d/tmp/lt a"),
        ("Bash(zstd -19 *)", "zstd -19 a"),
        ("Bash(git branch -d *)", "git branch -d x"),
        ("Bash(git commit *)", "git commit -m x"),
        ("Bash(find . -delete)", "find . -delete"),
    ] {
        check_rights(rule, line, &Writes::Work, false, false);
    }
    check_rights("Bash(curl *)", "curl https://a.b", &Writes::Nothing, true, false);
    check_rights("Bash(curl -o *)", "curl -o f https://a.b", &Writes::Work, true, false);
    check_rights("Bash(wget *)", "wget https://a.b", &Writes::Work, true, false);
    check_rights("Bash(git push *)", "git push", &Writes::Work, true, false);
    check_rights("Bash(git ls-remote *)", "git ls-remote", &Writes::Nothing, true, false);
    // The rule counts, not the line.
    check_rights("Bash(git *)", "git log", &Writes::Work, true, false);
    check_rights("Bash(tar --to-command=cat *)", "tar --to-command=cat -xf a", &Writes::Work, false, true);
    for (rule, line) in [
        ("Bash(make *)", "make test"),
        ("Bash(python3 *)", "python3 x.py"),
        ("Bash(npm test)", "npm test"),
        ("Bash(mytool *)", "mytool"),
        ("Bash(./run.sh)", "./run.sh"),
        ("Bash(/opt/bin/ls *)", "/opt/bin/ls"),
        ("Bash(bash notes/x.sh)", "bash notes/x.sh"),
        ("Bash", "ls"),
        ("Bash", "git log"),
    ] {
        check_rights(rule, line, &Writes::Work, true, true);
    }
    check_rights("Bash(bot *)", "bot gmail x", &Writes::Extension("gmail".into()), true, true);
    check_rights("Bash", "bot gmail x", &Writes::Extension("gmail".into()), true, true);
    check_rights("Bash(bot *)", "bot next", &Writes::Nothing, true, false);
    check_rights("Bash(bot *)", "bot ../x", &Writes::Nothing, true, false);
    let Executes::Itself(helpers) = rights("Bash(tar *)", "tar xf a").executes else { panic!("anything") };
    assert!(helpers.contains(&"gzip"));
}

/// A shell cannot set anything that turns a program with more rights than its own into another one.
#[test]
fn what_has_more_than_its_shell_takes_no_variable_or_folder_that_could_change_it() {
    const STEERING: &[&str] = &[
        "PYTHONPATH",
        "NODE_OPTIONS",
        "PERL5OPT",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "GCONV_PATH",
        "OPENSSL_CONF",
        "HOME",
        "TMPDIR",
        "XDG_CONFIG_HOME",
        "UV_INDEX_URL",
        "DENO_DIR",
        "DOCKER_HOST",
        "npm_config_prefix",
        "https_proxy",
        "FOO",
        "fish_function_path",
        "since",
    ];
    let lists = [
        ("no list", policy(None, None)),
        ("a denylist", denying(&["Bash(git push *)", "Bash(bot cal *)"])),
        ("a bare Bash", allowing(&["Bash"])),
        ("everything", allowing(&["*"])),
        ("narrow rules", allowing(&["Bash(bot *)", "Bash(docker *)", "Bash(git log *)"])),
    ];
    for (list, policy) in lists {
        let place = |line: &str, folder: &str, env: &[(&str, &str)]| start_in(&policy, line, folder, env).location;
        let mut more = 0;
        for line in ["bot gmail unread", "bot next", "bot reminder list", "docker ps", "git log"] {
            let Location::Outside(rights) = place(line, WORK, &[]) else { panic!("{list}: {line}") };
            assert_eq!(
                place(line, WORK, &[("LC_ALL", "C"), ("TZ", "UTC"), ("NO_COLOR", "1")]),
                Location::Outside(rights.clone())
            );
            if Rights::wide().covers(&rights) {
                continue;
            }
            more += 1;
            // git runs no code that reads this variable.
            let own = |name: &str| line.starts_with("git") && name == "since";
            for name in STEERING.iter().filter(|name| !own(name)) {
                assert_eq!(place(line, WORK, &[(name, "x")]), Location::Nowhere, "{list}: {name} {line}");
            }
        }
        assert!(more >= 3, "{list}");
        let temporary = "/home/u/.bot/state/runs/r1/tmp";
        for folder in [temporary, "/home/u/.bot/work/notes", "/usr/share", "/"] {
            assert_eq!(place("bot gmail unread", folder, &[]), Location::Nowhere, "{list}: {folder}");
        }
        assert!(matches!(place("bot next", temporary, &[]), Location::Outside(_)), "{list}");
    }
    // A program without more rights than its shell accepts the shell's settings.
    assert!(matches!(
        start_in(&denying(&["Bash(git push *)"]), "git log", "/", &[("FOO", "1")]).location,
        Location::Outside(_)
    ));
}

#[test]
fn a_filter_or_wrapper_that_its_rule_does_not_cover_runs_without_power() {
    let policy = allowing(&["Bash(sed -n *)", "Bash(sort *)", "Bash(bash notes/x.sh)", "Bash(cat today)"]);
    leaves_here(
        &policy,
        &["sed -n -i p f", "sed p f", "sort -o f f", "bash -c x", "bash notes/y.sh", "cat f", "env x"],
    );
    grants(&policy, &["sed -n p f", "sort f", "bash notes/x.sh", "cat today"]);
    assert_eq!(start_in(&policy, "cat today", "/etc", &[]).location, Location::Here);
    assert_eq!(start_in(&policy, "bash notes/x.sh", "/tmp", &[]).location, Location::Here);
}

#[test]
fn of_several_owners_the_narrowest_holds() {
    let agent = |tools: &[&str], read_only| AgentRules {
        name: "a".into(),
        tools: Some(patterns(tools)),
        disallowed: Vec::new(),
        read_only,
        permission_mode: PermissionMode::Default,
    };
    let wide = policy(None, None);
    let place = |policy: &Policy, line: &str| start(policy, line).location;
    let narrow = wide.clone().as_agent(&agent(&["Bash(git log *)", "Bash(make *)"], false));
    let Location::Outside(rights) = place(&narrow, "git log") else { panic!("not outside") };
    assert_eq!((rights.writes, rights.network), (Writes::Nothing, false));
    assert_eq!((place(&narrow, "cat f"), place(&narrow, "git push")), (Location::Here, Location::Nowhere));
    let reader = wide.as_agent(&agent(&["Bash"], true));
    for line in ["git log", "ls -l", "find . -name x", "git -C . diff"] {
        let Location::Outside(rights) = place(&reader, line) else { panic!("{line}") };
        assert!(rights.writes == Writes::Nothing && !rights.network && rights.executes != Executes::Anything, "{line}");
    }
    for line in ["cat f", "bash -c x", "sed -i p f", "env git push"] {
        assert_eq!(place(&reader, line), Location::Here, "{line}");
    }
    for line in [
        "mkdir x",
        "touch x",
        "rm f",
        "cp a b",
        "git add x",
        "git commit -m x",
        "npm install",
        "find . -delete",
        "git log --output=f",
        "git -c a.b=c log",
        "git diff --ext-diff",
        "git stash",
        "rg --pre x y",
        "curl https://a.b",
        "./ls",
        "sudo ls",
        "make",
    ] {
        let decided = start(&reader, line);
        assert_eq!(decided.location, Location::Nowhere, "{line}");
        assert!(decided.decision.reason.contains("and agent a is read-only"), "{}", decided.decision.reason);
    }
    let shell = reader.shell(None).unwrap();
    assert!(shell.read_only && !shell.everything);
}

/// `/dev/fd/3` is the program's own file, whatever the judging process has open under that number.
#[test]
fn a_descriptor_is_the_programs_own() {
    use std::os::fd::AsRawFd as _;

    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let work = root.join("work");
    std::fs::create_dir_all(&work).unwrap();
    let journal = std::fs::File::create(root.join("journal.db")).unwrap();
    let open = format!("/dev/fd/{}", journal.as_raw_fd());
    let roots = PathRoots { root, work: work.clone(), user_home: "/home/u".into() };
    let rules = patterns(&["Bash(diff *)", "Bash(cp *)", "Bash(tee *)", "Bash(ls *)"]);
    let policy = background(Some(&rules), &[], &roots);
    let runs = |line: String| start_in(&policy, &line, work.to_str().unwrap(), &[]).is_allowed();
    for line in
        ["diff @ /dev/fd/62", "cp @ a", "cp /dev/stdin a", "tee /dev/stderr a", "ls /proc/self/fd", "ls /proc/self/cwd"]
    {
        assert!(runs(line.replace('@', &open)), "{line}");
    }
    for line in [
        "cp a @/b",
        "cp a /dev/fd/9/../b",
        "tee /proc/self/cwd/b",
        "tee /proc/1/root/b",
        "cp -t/proc/thread-self/cwd a",
    ] {
        assert!(!runs(line.replace('@', &open)), "{line}");
    }
}

/// git looks its folder up once more, after the verdict.
#[test]
fn a_folder_of_git_that_a_job_could_turn_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let temporary = root.join("state/runs/r1/tmp");
    let work = root.join("work");
    for folder in [temporary.join("a"), work.join("repo")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::os::unix::fs::symlink(work.join("repo"), temporary.join("link")).unwrap();
    std::os::unix::fs::symlink("repo", work.join("own")).unwrap();
    let roots = PathRoots { root: root.clone(), work: work.clone(), user_home: "/home/u".into() };
    let rules = ["Bash(git fetch *)", "Bash(git -C * pull *)", "Bash(git status)", "Bash(git log *)"];
    let policy = background(Some(&patterns(&rules)), &[], &roots);
    let verdict = |line: &str, folder: &Path| {
        let line = line.replace("TMP", &temporary.to_string_lossy()).replace("WORK", &work.to_string_lossy());
        start_in(&policy, &line, &folder.to_string_lossy(), &[]).decision.verdict
    };
    for call in ["fetch", "pull"] {
        for folder in ["repo", "own", ".", "repo/..", "WORK/repo"] {
            assert_eq!(verdict(&format!("git -C {folder} {call}"), &work), Verdict::Allow, "{folder}");
        }
        for folder in ["TMP/link", "TMP/link/.", "TMP/a/../../../../work/repo", "WORK/../state/runs/r1/tmp/link"] {
            assert_eq!(verdict(&format!("git -C {folder} {call}"), &work), Verdict::Deny, "{folder}");
        }
        assert_eq!(verdict(&format!("git -C ../../../../work {call}"), &temporary), Verdict::Deny);
    }
    assert_eq!(verdict("git -C TMP/link/.. status", &work), Verdict::Deny);
    assert_eq!(verdict("git -C repo log", &work), Verdict::Allow);
    assert_eq!(verdict("git -C TMP/link log", &work), Verdict::Allow);
}
