//! Spellings of a call that do the same as the one in a rule.

use super::*;

#[test]
fn switches_of_apt_and_cargo_stand_in_front_of_the_subcommand() {
    for apt in ["apt", "apt-get", "sudo apt", "sudo apt-get", "sudo -u root apt", "doas apt"] {
        let call = |rest: &str| format!("{apt} {rest}");
        let granted = [
            "-qy install acme-x",
            "-y --no-install-recommends install acme-x acme-y",
            "-y install -q acme-x",
            "-y install acme-x",
            "--yes install acme-x",
            "install -qy acme-x",
            "install -y acme-x",
            "install acme-x -y",
        ]
        .map(call);
        let refused = [
            "-- install acme-x",
            "-c evil.conf install acme-x",
            "-o Dir::Bin::dpkg=x install acme-x",
            "-t evil install acme-x",
            "-y install acme-x evil",
            "-y install evil",
            "-y install -- acme-x evil",
            "-y remove acme-x",
            "-y install ./acme-x.deb",
            "-yo Dir::Bin::dpkg=x install acme-x",
            "-y -o Dir::Bin::dpkg=x install acme-x",
            "install -y -o x=y acme-x",
            "install -y acme-x-",
        ]
        .map(call);
        let (granted, refused) = (granted.each_ref().map(String::as_str), refused.each_ref().map(String::as_str));
        families(&[(&call("install acme-*"), &granted, &refused)]);
        families(&[(&call("install -y acme-*"), &granted[3..4], &refused)]);
        families(&[(
            &call("install acme"),
            &[&call("install acme")],
            &[&call("install -y acme"), &call("-y install acme")],
        )]);
    }
    families(&[
        ("apt -y install acme-*", &["apt install -y acme-x"], &["apt install acme-x"]),
        ("cargo install acme-*", &["cargo -q install acme-x"], &["cargo -Zx install acme-x", "cargo -q run acme-x"]),
        (
            "sudo apt install acme-*",
            &[],
            &["sudo -u root apt install -y acme-x", "sudo -s apt install -y acme-x", "sudo X=y apt install -y acme-x"],
        ),
        ("sudo cargo install acme-*", &["sudo cargo install --locked acme-x"], &["sudo cargo install --git=x acme-x"]),
    ]);
}

/// With an input it reads what the caller gives it: code, for a shell.
#[test]
fn a_command_in_a_container_may_have_a_terminal_and_no_input() {
    for (head, tail) in [
        ("docker compose exec", "web-1 ls -l"),
        ("docker container exec", "web-1 ls -l"),
        ("docker exec", "web-1 ls -l"),
        ("docker exec -u bot", "web-1 ls -l"),
        ("kubectl exec", "web-1 -- ls -l"),
        ("podman exec", "web-1 ls -l"),
    ] {
        let exec = head.trim_end_matches(" -u bot");
        let user = if head == exec { "" } else { " -u bot" };
        let input = if head.starts_with("kubectl") { "--stdin" } else { "--interactive" };
        let with = |options: &[&str]| -> Vec<String> {
            options.iter().map(|option| format!("{exec} {option}{user} {tail}")).collect()
        };
        let both =
            with(&["-it", "-ti", "-i -t", "-t -i", "--tty -i", &format!("-t {input}"), &format!("{input} --tty")]);
        let alone = with(&["-i", input]);
        let terminal = with(&["-t", "--tty", "-t -t"]);
        let refused = [
            "-T",
            "-iT",
            "-it --privileged",
            "-t --privileged",
            "-td",
            "-t -u root",
            "-t -e LD_PRELOAD=x",
            "-tu root",
            "-t -- x",
        ];
        let refused = with(&refused).into_iter().chain(both.clone()).chain(alone.clone()).collect::<Vec<_>>();
        for rule in [format!("{head} {tail}"), format!("{head} {}", tail.replace("-l", "*"))] {
            families(&[(&rule, &texts(&terminal), &texts(&refused))]);
        }
        let none = format!("{exec}{user} {tail}");
        let (one, two) = ([none.clone()], [alone.clone(), terminal, vec![none]].concat());
        for rule in &both {
            families(&[(rule, &texts(&both), &texts(&two))]);
        }
        for rule in &alone {
            families(&[(rule, &texts(&alone), &texts(&[both.as_slice(), one.as_slice()].concat()))]);
        }
    }
    let inputs = |head: &str, tail: &str| {
        ["-i", "-it", "-ti", "-t -i", "--interactive"].map(|given| format!("{head} {given} {tail}"))
    };
    for (head, tail) in [
        ("docker compose exec", "web-1 sh"),
        ("docker exec", "web-1 bash -l"),
        ("docker exec", "web-1 psql -U app shop"),
        ("docker exec", "web-1 sh"),
        ("docker exec", "web-1 tee /srv/x"),
        ("docker run", "--rm alpine"),
        ("docker run", "acme/x python3"),
        ("podman exec", "web-1 sh"),
        ("sudo docker exec", "web-1 sh"),
        ("sudo docker run", "alpine"),
    ] {
        families(&[(&format!("{head} {tail}"), &[&format!("{head} {tail}")], &texts(&inputs(head, tail)))]);
    }
    families(&[
        (
            "docker exec web-*",
            &["docker exec -t web-1 ls"],
            &["docker exec -it web-1 sh", "docker exec -t db ls", "docker exec -t --privileged web-1 ls"],
        ),
        (
            "docker exec web-* ls",
            &["docker exec -t web-1 ls"],
            &["docker exec -t web-1 rm ls", "docker exec -t web-1 id", "docker exec -i web-1 ls"],
        ),
        (
            "docker exec web-1 find . *",
            &["docker exec -t web-1 find . -name x"],
            &["docker exec -t web-1 find . -delete", "docker exec -it web-1 find . -name x"],
        ),
        (
            "sudo docker exec web-1 find . *",
            &["sudo docker exec -t web-1 find . -name x", "sudo docker exec web-1 find . -name x"],
            &["sudo docker exec -t web-1 find . -delete", "sudo docker exec -t -u root web-1 find ."],
        ),
        ("sudo docker exec web-1 ls", &["sudo docker exec -t web-1 ls"], &["sudo -t docker exec web-1 ls"]),
        ("docker exec -it web-1 ls", &["docker exec -it web-1 ls"], &["docker exec web-1 ls -it"]),
        ("docker exec -e -it web-1 ls", &["docker exec -e -it web-1 ls"], &["docker exec -e web-1 ls"]),
        ("docker run --rm acme/x", &["docker run -t --rm acme/x"], &["docker run -t --rm -v /:/x acme/x"]),
        ("docker run --rm acme/*", &["docker run -t --rm acme/x"], &["docker run -i --rm acme/x"]),
        ("docker exec * sh", &["docker exec web-1 sh"], &["docker exec -i web-1 sh"]),
        ("docker cp web:x y", &[], &["docker cp -t web:x y"]),
        ("kubectl exec web-1 -- sh", &[], &["kubectl exec -i web-1 -- sh", "kubectl exec --stdin web-1 -- sh"]),
    ]);
    let deny = denying(&["Bash(docker exec web-1 rm *)"]);
    denies(
        &deny,
        &[
            "docker exec -it web-1 rm x",
            "docker exec -i -T web-1 rm x",
            "docker exec -t web-1 rm x",
            "docker exec web-1 rm x",
        ],
    );
}

fn texts(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

#[test]
fn the_message_of_a_commit_may_be_a_long_option() {
    families(&[
        (
            "git commit -m *",
            &[
                "git -C sub commit --message=x",
                "git commit --all --message=x",
                "git commit --message x",
                "git commit --message=x␣y",
                "git commit -a --message x",
                "git commit -am x",
                "git commit -mx",
            ],
            &[
                "git commit --message",
                "git commit --message x --amend",
                "git commit --message=-n --amend",
                "git commit --amend --message=x",
                "git commit --message=x --no-verify",
                "git commit --message=x -n",
                "git commit -F --message=x",
                "git commit -nmx",
                "git commit -C --message=x HEAD",
                "git commit --messages=x",
                "git commit -- --message=x",
            ],
        ),
        ("git commit -m fix*", &["git commit --message=fix:␣a", "git commit -mfixed"], &["git commit --message=other"]),
        ("git commit -m x notes.md", &["git commit --message=x notes.md"], &["git commit --message=x todo.md"]),
        ("git tag -m *", &[], &["git tag --message=x"]),
    ]);
    denies(&denying(&["Bash(git commit -m *)"]), &["git commit --message=x", "git commit -mx"]);
}

/// `ssh` joins its words to one line.
#[test]
fn the_line_of_ssh_may_be_in_quotes() {
    families(&[
        (
            "ssh web-1 uptime",
            &["ssh web-1 uptime"],
            &["ssh web-1 uptime;id", "ssh web-1 uptime␣-p", "ssh web-1 ␣uptime"],
        ),
        (
            "ssh web-1 systemctl status *",
            &[
                "ssh web-1 systemctl␣status␣nginx",
                "ssh web-1 systemctl␣status nginx",
                "ssh web-1 systemctl status␣nginx",
            ],
            &[
                "ssh web-1 systemctl␣restart␣nginx",
                "ssh web-1 systemctl␣status␣$(id)",
                "ssh web-1 systemctl␣status␣nginx\nid",
                "ssh web-1 systemctl␣status␣nginx\tx;",
                "ssh web-1 systemctl␣status␣nginx␣|␣sh",
                "ssh web-1 systemctl␣status␣nginx;id",
                "ssh web-1 systemctl␣status␣nginx␣&&␣id",
                "ssh web-1 systemctl␣status␣`id`",
                "ssh web-1 systemctl␣status␣-H␣evil",
                "ssh web-1 systemctl␣status␣>x",
                "ssh web-1␣systemctl status nginx",
                "ssh web-2 systemctl␣status␣nginx",
            ],
        ),
        ("ssh web-1 find . *", &["ssh web-1 find␣.␣-name␣x"], &["ssh web-1 find␣.␣-delete"]),
        ("ssh web-* uptime", &["ssh web-1 uptime"], &["ssh web-1.evil.com uptime"]),
        ("ssh web-* df *", &["ssh web-1 df␣-h"], &["ssh web-1 rm␣df", "ssh web-1␣-oProxyCommand=id df"]),
        ("ssh -p 22 bot@web-1 df -h", &["ssh -p 22 bot@web-1 df␣-h"], &["ssh -p 23 bot@web-1 df␣-h"]),
        ("ssh web-1 cat /srv/*", &["ssh web-1 cat␣/srv/x"], &["ssh web-1 cat␣/srv/../x"]),
        (
            "ssh web-1 git push origin bot/*",
            &["ssh web-1 git␣push␣origin␣bot/x"],
            &["ssh web-1 git␣push␣origin␣bot/x␣main"],
        ),
    ]);
    denies(&denying(&["Bash(ssh web-1 rm *)"]), &["ssh web-1 rm␣x"]);
}

/// Whatever spelling a rule grants, a denial of another one holds for it.
#[test]
fn a_denial_reads_every_spelling_that_a_rule_grants() {
    let commits = [
        "git --no-pager commit --message=wip",
        "git -C sub commit --message wip",
        "git -C sub commit --message=wip",
        "git -C sub commit -a --message=wip",
        "git -C sub commit -mwip",
        "git commit --message=wip",
        "git commit --message=wip -q",
        "git commit -a --message wip",
        "git commit -a --message=wip",
        "git commit -a -m wip",
        "git commit -am wip",
        "git commit -amwip",
        "git commit -mwip",
        "git commit -q -mwip",
    ];
    for denial in [
        "git commit -m wip*",
        "git commit --message=wip*",
        "git commit --message wip*",
        "git commit -mwip*",
        "git commit -m *",
    ] {
        for allow in ["git commit -m *", "git commit *", "git *"] {
            let allow = format!("Bash({allow})");
            let policy = with(&[&allow], &[&format!("Bash({denial})")]);
            denies(&policy, &commits);
            grants(&allowing(&[&allow]), &["git commit -m fix"]);
        }
    }
    grants(
        &with(&["Bash(git commit -m *)"], &["Bash(git commit -m wip*)"]),
        &["git commit --message=fix", "git commit -m fix"],
    );
    let orders = ["-it", "-ti", "-i -t", "-t -i", "--tty --interactive", "-i --tty"];
    for denial in orders {
        let deny = format!("Bash(docker exec {denial} *)");
        let policy = with(
            &["Bash(docker exec *)", "Bash(sudo docker exec *)"],
            &[&deny, &format!("Bash(sudo docker exec {denial} *)")],
        );
        for call in orders {
            denies(&policy, &[&format!("docker exec {call} web-1 x"), &format!("sudo docker exec {call} web-1 x")]);
        }
        grants(&policy, &["docker exec web-1 x"]);
    }
    let policy = with(&["Bash(docker exec *)"], &["Bash(docker exec -i *)"]);
    denies(&policy, &["docker exec -i web-1 x", "docker exec --interactive web-1 x"]);
    let policy = with(&["Bash(apt *)", "Bash(sudo apt *)"], &["Bash(apt install *)", "Bash(sudo apt install *)"]);
    denies(&policy, &["apt -y install x", "apt install -y x", "sudo apt -y install x", "sudo apt install x -y"]);
    let policy = with(&["Bash(ssh web-1 *)"], &["Bash(ssh web-1 git commit -m wip*)", "Bash(ssh web-1 rm *)"]);
    denies(&policy, &["ssh web-1 rm␣x", "ssh web-1 rm x", "ssh web-1 git␣commit␣-m␣wip"]);
}

/// git takes the beginning of a long option for it.
#[test]
fn a_denial_holds_for_abbreviated_options_of_git() {
    for (denial, denied, granted) in [
        (
            "git push --force *",
            &[
                "git push --forc",
                "git push --fo origin",
                "git -C x push --forc",
                "git-push --forc origin",
                "/usr/bin/git push --forc",
            ][..],
            &["git push --force-with-lease", "git push --follow-tags", "git push origin"][..],
        ),
        ("git push --force", &["git push --forc"], &["git push --force-with-lease", "git push --forc origin"]),
        (
            "git push --force-with-lease *",
            &["git push --force-w", "git push --force-with-l origin"],
            &["git push --force", "git push --force-if-includes"],
        ),
        ("git push * --delete *", &["git push origin --del x"], &["git push origin --dry-run x"]),
        ("* --force", &["git push --forc", "sudo git push --forc"], &["npm x --forc"]),
        ("sudo git reset --hard *", &["sudo git reset --har x"], &["sudo git reset --soft x"]),
        ("git reset --hard *", &["git reset --har x", "git reset --ha"], &["git reset --soft x"]),
        (
            "git commit --amend *",
            &["git commit --am -m x", "git commit --ame"],
            &["git commit --all", "git commit -am x"],
        ),
        ("git commit --no-verify *", &["git commit --no-v -m x"], &["git commit --verbose"]),
        (
            "git commit -m *",
            &[
                "git commit --m=x",
                "git commit --mess=x",
                "git commit --mess x",
                "git commit -a --mess=x",
                "git -C x commit --me x",
            ],
            &["git commit --amend", "git commit --file=x"],
        ),
        ("git commit --message=wip*", &["git commit --mess=wip", "git commit --mess wip"], &["git commit --mess=fix"]),
        ("git log --all-match *", &["git log --all-m"], &["git log --all", "git log --author=x"]),
        ("git log --date-order *", &["git log --date-o"], &["git log --date=iso", "git log --date iso"]),
        ("git diff --stat-width=*", &["git diff --stat-w=8"], &["git diff --stat", "git diff --stat=80"]),
        ("git diff --color-words *", &["git diff --color-w"], &["git diff --color", "git diff --color=never"]),
        (
            "git fetch --recurse-submodules-default=*",
            &["git fetch --recurse-submodules-d=yes"],
            &["git fetch --recurse-submodules=yes"],
        ),
        ("git push --follow-tags *", &["git push --follow"], &["git push --force"]),
        ("git log --output=*", &["git log --outp=x"], &["git log --oneline"]),
        ("git branch --set-upstream-to=*", &["git branch --set-upstream-t=x"], &["git branch --set-upstream=x"]),
    ] {
        let policy = denying(&[&format!("Bash({denial})")]);
        denies(&policy, denied);
        grants(&policy, granted);
    }
}

#[test]
fn a_denial_holds_for_a_command_in_a_container_with_more_switches() {
    let options = [
        "--tty=true",
        "--tty=1",
        "--tty=false",
        "--interactive=true",
        "-t=true",
        "-i=T",
        "-it=true",
        "-itd",
        "-dit",
        "-d",
        "--detach",
        "--detach=true -i",
        "--privileged",
        "-it --detach --tty=true",
    ];
    for head in ["docker exec", "docker compose exec", "docker container exec", "podman exec", "sudo docker exec"] {
        let policy = denying(&[&format!("Bash({head} web-1 rm *)")]);
        for option in options {
            denies(&policy, &[&format!("{head} {option} web-1 rm x")]);
            grants(&policy, &[&format!("{head} {option} web-1 ls"), &format!("{head} {option} web-2 rm x")]);
        }
        let policy = denying(&[&format!("Bash({head} -it *)")]);
        for option in ["-itd", "-dti", "-i=true --tty", "--tty=true --interactive=true", "--interactive -td"] {
            denies(&policy, &[&format!("{head} {option} web-1 sh")]);
        }
        for option in ["-i", "-t", "-d", "--interactive --tty=false", "--tty=true"] {
            grants(&policy, &[&format!("{head} {option} web-1 sh")]);
        }
        families(&[(
            &format!("{head} web-1 ls"),
            &[&format!("{head} -t web-1 ls")],
            &[
                &format!("{head} --privileged web-1 ls"),
                &format!("{head} -d web-1 ls"),
                &format!("{head} -itd web-1 ls"),
                &format!("{head} --interactive=true web-1 ls"),
            ],
        )]);
    }
    let policy = denying(&["Bash(docker exec -d *)"]);
    denies(&policy, &["docker exec -d web-1 rm x", "docker exec -t -d web-1 rm x", "docker exec -i -d web-1 rm x"]);
    let policy = denying(&["Bash(kubectl exec web-1 *)", "Bash(docker run acme/x *)"]);
    denies(
        &policy,
        &[
            "kubectl exec --stdin=true web-1 -- rm x",
            "kubectl exec --stdin --tty=true web-1 -- rm x",
            "kubectl exec -it=true web-1 -- rm x",
            "docker run --rm acme/x sh",
            "docker run -dit acme/x",
        ],
    );
    grants(&policy, &["kubectl exec --stdin=true web-2 -- rm x", "docker run --rm acme/y"]);
}

fn with(allow: &[&str], deny: &[&str]) -> Policy {
    let agent = AgentRules {
        name: "a".into(),
        tools: None,
        disallowed: patterns(deny),
        read_only: false,
        permission_mode: PermissionMode::Default,
    };
    allowing(allow).as_agent(&agent)
}

/// Else a rule that it covers would grant more than it.
#[test]
fn a_rule_with_a_star_in_its_middle_grants_other_spellings_too() {
    families(&[
        (
            "docker exec * ls",
            &["docker exec -t web-1 ls", "docker exec web-1 ls"],
            &["docker exec -it web-1 ls", "docker exec -i web-1 ls", "docker exec -t web-1 rm ls"],
        ),
        (
            "git commit -m * notes.md",
            &["git commit --message=x notes.md", "git commit -mx notes.md"],
            &["git commit --message=x todo.md", "git commit --message=x --amend notes.md"],
        ),
        (
            "ssh * uptime -p",
            &["ssh web-1 uptime␣-p"],
            &["ssh web-1 id␣uptime␣-p", "ssh web-1␣uptime -p", "ssh web-1 id;uptime␣-p", "ssh -v␣-x web-1 uptime␣-p"],
        ),
        ("ssh web-1 cp * /srv/x", &["ssh web-1 cp␣a␣/srv/x"], &["ssh web-1 cp␣a␣b␣/srv/x", "ssh web-1 rm␣a␣/srv/x"]),
    ]);
}

/// It fails where it would ask for a password.
#[test]
fn sudo_may_be_told_to_ask_nothing() {
    for sudo in ["sudo", "doas", "ssh web sudo"] {
        let call = |rest: &str| format!("{sudo} {rest}");
        families(&[
            (
                &call("apt install acme-*"),
                &texts(
                    &[
                        "-n apt install acme-x",
                        "-n -n apt install acme-x",
                        "-n apt -y install acme-x",
                        "-n apt install -y acme-x",
                        "apt install -y acme-x",
                    ]
                    .map(call),
                ),
                &texts(
                    &[
                        "-n apt install evil",
                        "-n apt install -o x=y acme-x",
                        "-n apt remove acme-x",
                        "-n -u bob apt install acme-x",
                        "-nu bob apt install acme-x",
                        "-u bob -n apt install acme-x",
                        "-n -s apt install acme-x",
                        "-n -- apt install acme-x",
                    ]
                    .map(call),
                ),
            ),
            (&call("apt install acme"), &[&call("-n apt install acme")], &[&call("-n apt install -y acme")]),
            (&call("-n apt install acme"), &[&call("-n apt install acme")], &[&call("apt install acme")]),
        ]);
    }
    let policy = denying(&["Bash(sudo apt install *)", "Bash(sudo docker exec web-1 rm *)", "Bash(ssh web sudo rm *)"]);
    denies(
        &policy,
        &[
            "sudo -n apt install x",
            "sudo -n apt -y install x",
            "sudo --non-interactive apt install x",
            "sudo -n docker exec -itd web-1 rm x",
            "ssh web sudo -n rm x",
            "ssh web sudo␣-n␣rm␣x",
        ],
    );
    grants(&policy, &["sudo -n apt remove x", "ssh web sudo -n ls"]);
    let policy = denying(&["Bash(sudo -n docker exec web-1 rm *)"]);
    denies(&policy, &["sudo -n docker exec -it web-1 rm x", "sudo -n docker exec web-1 rm x"]);
}

/// `ssh` starts it there as `sudo` does here.
#[test]
fn a_command_behind_a_host_has_its_own_spellings() {
    families(&[
        (
            "ssh web apt install acme-*",
            &["ssh web apt -y install acme-x", "ssh web apt install -y acme-x", "ssh web apt␣install␣-y␣acme-x"],
            &[
                "ssh web apt install -y acme-x evil",
                "ssh web apt install -y acme-x;id",
                "ssh web apt install -y evil",
                "ssh web apt install -o x=y acme-x",
                "ssh web -y apt install acme-x",
                "ssh -v web apt install -y acme-x",
                "ssh web2 apt install -y acme-x",
            ],
        ),
        (
            "ssh web sudo apt install acme-*",
            &[
                "ssh web sudo apt install -y acme-x",
                "ssh web sudo␣apt␣install␣-y␣acme-x",
                "ssh web sudo apt␣-y install acme-x",
            ],
            &[
                "ssh -o ProxyCommand=id web sudo apt install -y acme-x",
                "ssh web sudo -u bob apt install -y acme-x",
                "ssh web sudo apt install -y $(id)",
                "ssh web sudo apt install -y acme-x\nid",
            ],
        ),
        (
            "ssh web docker exec web-1 ls",
            &["ssh web docker exec -t web-1 ls"],
            &["ssh web docker exec -it web-1 ls", "ssh web docker exec -t web-1 id", "ssh web docker exec -d web-1 ls"],
        ),
        (
            "ssh web docker logs web-*",
            &["ssh web docker logs -f web-1", "ssh web docker logs web-1 -f"],
            &["ssh web docker logs -f db", "ssh web docker logs -f --context=x web-1"],
        ),
    ]);
    let policy = denying(&["Bash(ssh web apt install *)", "Bash(ssh web docker exec -it *)"]);
    denies(&policy, &["ssh web apt -y install x", "ssh web apt␣-y␣install␣x", "ssh web docker exec -t -i web-1 sh"]);
    grants(&policy, &["ssh web apt -y remove x", "ssh web docker exec -t web-1 ls"]);
}

#[test]
fn harmless_options_stand_in_front() {
    families(&[
        (
            "kubectl -n a exec web-1 -- ls",
            &["kubectl -n a exec -t web-1 -- ls", "kubectl -n a exec --tty web-1 -- ls"],
            &[
                "kubectl -n a exec -it web-1 -- ls",
                "kubectl -n b exec -t web-1 -- ls",
                "kubectl exec -t web-1 -- ls",
                "kubectl -n a exec -t web-1 -- id",
                "kubectl -n a exec -t -c db web-1 -- ls",
            ],
        ),
        (
            "kubectl -n a exec -it web-1 -- ls",
            &["kubectl -n a exec -t -i web-1 -- ls", "kubectl -n a exec --stdin --tty web-1 -- ls"],
            &["kubectl -n a exec -t web-1 -- ls", "kubectl -n a exec -it web-1 -- id"],
        ),
        (
            "docker inspect web-*",
            &[
                "docker inspect --format x web-1",
                "docker inspect --format={{.State}} web-1",
                "docker inspect -f x web-1",
                "docker inspect -f db web-1",
                "docker inspect -s -f x web-1 web-2",
            ],
            &[
                "docker -H tcp://evil.com inspect -f x web-1",
                "docker inspect --type=image web-1",
                "docker inspect -f web-1 db",
                "docker inspect -f x db",
                "docker inspect -f x web-1 db",
            ],
        ),
        ("docker inspect web-1", &["docker inspect web-1"], &["docker inspect -f x web-1", "docker inspect -f web-1"]),
        ("sudo docker inspect web-*", &["sudo docker inspect -s web-1"], &["sudo docker inspect -s db"]),
        (
            "brew install acme-*",
            &["brew -q install acme-x", "brew -v install acme-x", "brew install -q acme-x"],
            &[
                "brew -f install acme-x",
                "brew -q install evil",
                "brew -q uninstall acme-x",
                "brew -q install ./acme-x.rb",
            ],
        ),
        ("pnpm update acme-*", &["pnpm update acme-x"], &["pnpm -r update acme-x"]),
        ("pnpm -r update acme-*", &["pnpm -r update acme-x"], &["pnpm -r update evil"]),
    ]);
    let policy = denying(&[
        "Bash(brew install *)",
        "Bash(docker inspect web-1)",
        "Bash(kubectl -n a exec web-1 *)",
        "Bash(nc web-1 *)",
        "Bash(sudo docker inspect web-1 *)",
    ]);
    denies(
        &policy,
        &[
            "brew -q install x",
            "docker inspect --format x web-1",
            "docker inspect -f x web-1",
            "kubectl -n a exec -it web-1 -- rm x",
            "kubectl -n a exec --tty=true web-1 -- rm x",
            "nc -w 3 web-1 80",
            "nc -zv web-1 80",
            "sudo docker inspect -s web-1",
        ],
    );
    grants(&policy, &["brew -q list", "docker inspect -f x db", "kubectl -n b exec -it web-1 -- ls", "nc -z web-2 80"]);
}
