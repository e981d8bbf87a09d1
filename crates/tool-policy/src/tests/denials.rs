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

/// Checks denials: what each denies, and what it leaves alone.
fn denials(families: &[(&str, &[&str], &[&str])]) {
    for (rule, denied, granted) in families {
        let policy = denying(&[&format!("Bash({rule})")]);
        denies(&policy, denied);
        grants(&policy, granted);
    }
}

#[test]
fn a_denial_of_switches_of_a_container_holds_among_others() {
    denials(&[
        (
            "docker exec --privileged *",
            &[
                "docker exec -d --privileged web rm",
                "docker exec --detach --privileged web rm",
                "docker exec -itd --privileged web rm",
                "docker exec -t=true --privileged web rm",
                "docker exec --privileged=true web rm",
                "docker exec -it --privileged web rm",
                "docker exec -u root --privileged web rm",
            ],
            &["docker exec --privileged=false web rm", "docker exec web rm --privileged", "docker exec -it web rm"],
        ),
        (
            "docker exec -d *",
            &["-itd", "-dt", "--detach", "--tty=true -d", "--privileged -d", "-t -d"]
                .map(|options| format!("docker exec {options} web rm"))
                .each_ref()
                .map(String::as_str),
            &["docker exec -it web rm -d", "docker exec --detach=false web rm", "docker exec -e d web rm"],
        ),
        (
            "docker run --privileged *",
            &[
                "docker run --rm --privileged acme/x",
                "docker run --rm -it --privileged acme/x",
                "docker run -d --privileged acme/x",
                "docker run -v /x:/y --privileged acme/x",
                "docker run --privileged=true acme/x",
            ],
            &["docker run --rm acme/x --privileged", "docker run --cap-drop ALL acme/x"],
        ),
        (
            "docker exec -it *",
            &[
                "docker exec -u root -it web sh",
                "docker exec -itu root web sh",
                "docker exec -e A=b -it web sh",
                "docker exec -i -u root -t web sh",
                "docker -D exec -it web sh",
            ],
            &["docker exec -i web sh -t", "docker exec -u it web sh"],
        ),
        (
            "docker exec web-1 rm *",
            &[
                "docker exec -u root web-1 rm x",
                "docker exec --user=root web-1 rm x",
                "docker exec -w /x web-1 rm x",
                "docker exec -e A=b web-1 rm x",
                "docker exec -itu root web-1 rm x",
                "docker exec -- web-1 rm x",
                "docker -D exec web-1 rm x",
                "docker --context x exec web-1 /bin/rm x",
            ],
            &["docker exec -u web-1 db rm x", "docker exec web-1 ls rm", "docker exec -u root web-2 rm x"],
        ),
        ("docker exec web-1 git push *", &["docker exec -u x web-1 git -C x push"], &["docker exec web-1 git pull"]),
    ]);
}

#[test]
fn a_denial_of_kubectl_holds_with_further_options() {
    denials(&[
        (
            "kubectl exec web-1 *",
            &[
                "kubectl exec -n a -it web-1 -- rm",
                "kubectl exec -c db web-1 -- rm",
                "kubectl exec pod/web-1 -- rm",
                "kubectl exec --context a web-1 -- rm",
                "kubectl --context a exec web-1 -it -- rm",
            ],
            &["kubectl exec -c web-1 db -- rm", "kubectl exec pod/db -- rm web-1"],
        ),
        (
            "kubectl exec -it *",
            &[
                "kubectl exec -c x -it web -- sh",
                "kubectl exec -itn a web -- sh",
                "kubectl exec -qit web -- sh",
                "kubectl exec web -it -- sh",
                "kubectl exec web --stdin --tty -- sh",
                "kubectl exec -n a -it web -- sh",
            ],
            &["kubectl exec -n a web -- ls -it", "kubectl exec -i web -- sh -t"],
        ),
        ("kubectl exec web-1 -- rm *", &["kubectl exec web-1 -n a -- rm x"], &["kubectl exec web-1 -- ls rm"]),
        (
            "kubectl delete --namespace prod *",
            &["kubectl delete -n prod pod x", "kubectl -nprod delete pod x", "kubectl delete pod x -n=prod"],
            &["kubectl delete -n dev pod prod"],
        ),
        ("kubectl delete pod web-1", &["kubectl delete pod/web-1 --wait"], &["kubectl delete pod web-2"]),
        (
            "kubectl delete pod web-* --namespace prod",
            &["kubectl delete -n prod pod web-1 db --wait"],
            &["kubectl delete -n prod pod db web-1"],
        ),
        ("kubectl * --namespace prod *", &["kubectl -n prod get pod", "kubectl get -n prod"], &["kubectl get pod"]),
    ]);
}

#[test]
fn a_denial_of_git_holds_behind_abbreviated_options() {
    denials(&[
        (
            "git push --force *",
            &[
                "git push --quie --force",
                "git push --verbos --force",
                "git push --progr --force",
                "git push origin main --force",
                "git push -f origin",
                "git push -uf origin",
                "git -c a.b=c push origin --forc",
                "git-push -o ci.skip --force",
            ],
            &["git push --force-with-lease", "git push -u origin", "git stash push --force", "git push origin f"],
        ),
        (
            "git reset --hard *",
            &["git reset --qui --hard", "git reset x --hard", "git reset --h", "git reset --h x", "git reset x --ha"],
            &["git reset --qui x", "git reset --s x", "git reset -h"],
        ),
        ("git reset --soft *", &["git reset --s HEAD~1"], &["git reset --m HEAD~1"]),
        ("git commit --message *", &["git commit --m x", "git commit --m=x", "git commit -m x"], &["git commit --a"]),
        (
            "git commit -m *",
            &["git commit --qui -m x", "git commit --signof -m x", "git commit --qui --mess=x", "git commit -a -vmx"],
            &["git commit --qui --amend", "git commit -F m"],
        ),
        (
            "git commit --amend *",
            &["git commit --quie --amend", "git commit notes.md --amend"],
            &["git commit -m fix␣--amend"],
        ),
        ("git commit --no-verify *", &["git commit -an -m x"], &["git commit -am n"]),
        ("git checkout -- *", &["git checkout -q -- x"], &["git checkout x"]),
        ("git -C . push *", &["git --no-pager -C . push"], &["git push", "git push -C ."]),
        ("git stash", &["git stash", "git stash -u"], &["git stash list"]),
    ]);
}

/// git takes it for that one, and not for a longer one.
#[test]
fn a_whole_option_of_git_is_no_abbreviation() {
    denials(&[
        ("git config --unset-all *", &["git config --unset-a x"], &["git config --unset x"]),
        ("git config --get-all *", &["git config --get-a x"], &["git config --get x"]),
        (
            "git commit --allow-empty-message *",
            &["git commit --allow-empty-m -m x"],
            &["git commit --allow-empty -m x"],
        ),
        ("git log --decorate-refs *", &["git log --decorate-refs=x"], &["git log --decorate"]),
        ("git log --decorate-refs=*", &[], &["git log --decorate=short"]),
        ("git log --grep-reflog=*", &["git log --grep-r=x"], &["git log --grep=x"]),
        ("git log --relative-date *", &["git log --relative-d"], &["git log --relative"]),
        ("git diff --color-moved-ws=*", &["git diff --color-moved-w=no"], &["git diff --color-moved=no"]),
        ("git cat-file --batch-all-objects *", &["git cat-file --batch-a"], &["git cat-file --batch"]),
        ("git rev-list --objects-edge *", &["git rev-list --objects-e"], &["git rev-list --objects"]),
        ("git show-ref --heads *", &["git show-ref --heads"], &["git show-ref --head"]),
        ("git ls-files --exclude-standard *", &["git ls-files --exclude-s"], &["git ls-files --exclude x"]),
        ("git diff --dirstat-by-file *", &["git diff --dirstat-b"], &["git diff --dirstat"]),
    ]);
}

/// On the other machine a shell reads the words.
#[test]
fn a_denial_of_a_command_behind_ssh_holds_for_what_its_shell_reads() {
    denials(&[
        (
            "ssh web apt install *",
            &[
                "ssh web apt␣-y␣install␣'x'",
                "ssh web apt -y install $x",
                "ssh web apt -y install x;id",
                "ssh web apt install x;id",
                "ssh web id;apt␣install␣x",
                "ssh web 'apt' install x",
                "ssh web A=b apt install x",
                "ssh -t web apt install x",
                "ssh -p 22 web apt install x",
                "ssh -l bob web apt install x",
                "ssh bob@web apt install x",
                "ssh web -n apt -y install x",
            ],
            &["ssh web apt list x", "ssh db apt install x", "ssh bob@db apt install web", "ssh web echo apt install"],
        ),
        ("ssh web rm *", &["ssh web rm␣-rf␣'x'", "ssh web /bin/rm x"], &["ssh web ls rm", "ssh -l web db rm x"]),
        ("ssh bob@web rm *", &["ssh -v bob@web rm x"], &["ssh ann@web rm x"]),
        ("ssh web reboot", &["ssh -t web reboot"], &["ssh web reboot --help"]),
    ]);
}

#[test]
fn a_denial_of_a_command_behind_sudo_holds_with_options_of_both() {
    let options = [
        "-E",
        "-H",
        "-S",
        "-k",
        "-b",
        "-A",
        "-nE",
        "-n -E",
        "-u root",
        "--user=root",
        "--user root",
        "--",
        "FOO=x",
        "-n -u root FOO=x",
    ];
    for option in options {
        denials(&[
            (
                "sudo apt install *",
                &[&format!("sudo {option} apt install x"), &format!("sudo {option} apt -y install x")],
                &[&format!("sudo {option} apt list x"), &format!("sudo {option} dpkg apt install x")],
            ),
            ("sudo rm *", &[&format!("sudo {option} env A=b nice rm x")], &[&format!("sudo {option} env ls rm.txt")]),
            ("sudo reboot", &[&format!("sudo {option} reboot")], &[]),
        ]);
    }
    denials(&[
        (
            "sudo -n apt install *",
            &["sudo -n apt -y install x", "sudo --non-interactive apt install x", "sudo -En apt install x"],
            &["sudo apt install x"],
        ),
        ("sudo -u root *", &["sudo -n --user=root id", "sudo -uroot id"], &["sudo -u bob id", "sudo id -u root"]),
        (
            "sudo git push --force *",
            &["sudo git -C x push --force", "sudo -E git push origin --forc"],
            &["sudo git push"],
        ),
    ]);
}

#[test]
fn a_denial_holds_with_further_switches_of_a_program() {
    denials(&[
        ("nc -z *", &["nc -v -z web 80", "nc -zv web 80", "nc -w 3 -z web 80"], &["nc -v web 80"]),
        ("nc -zv *", &["nc -vz web 80", "nc -z -v web 80", "nc -w 3 -zv web 80"], &["nc -z web 80"]),
        ("nc -z web-1 *", &["nc -v -z web-1 80", "nc -z -w 3 web-1 80"], &["nc -z web-2 80"]),
        ("nc -z -w 3 *", &["nc -v -z -w 3 web 80", "nc -w3 -z web 80"], &["nc -z -w 4 web 80"]),
        ("nc -e *", &["nc -n -e sh", "nc -ne sh web", "nc -esh web", "nc -ze sh web"], &["nc -zw 3 web 80"]),
        ("nc -l *", &["nc -lv 80", "nc -nlvp 80", "nc -kl 80", "nc -lp 80"], &["nc -v web 80"]),
        ("nc web-1 *", &["nc -n web-1 80", "nc -4 web-1", "nc -u web-1 80", "nc -zvn web-1 80"], &["nc -n web-2 80"]),
        ("brew -q install *", &["brew -v -q install x", "brew install -q x"], &["brew install x"]),
        ("brew -v *", &["brew -q -v install x"], &["brew install x"]),
        ("brew install --cask *", &["brew install -q --cask x", "brew --cask install x"], &["brew install x"]),
        ("brew --cask install *", &["brew -q --cask install x"], &["brew list --cask"]),
        (
            "brew install *",
            &["brew -d install x", "brew --debug install x", "brew -f install x", "brew --force install x"],
            &["brew -d list", "brew search install"],
        ),
        ("brew services *", &["brew -q services restart x"], &["brew list services"]),
        (
            "make deploy *",
            &["make -j deploy", "make -j 4 deploy", "make CC=x deploy"],
            &["make -j 4 check", "make -C deploy"],
        ),
        ("make CC=x *", &["make -j CC=x", "make check CC=x"], &["make CC=y"]),
        ("rm -rf *", &["rm -r -f x", "rm -fr x", "rm x -rfv"], &["rm -r x", "rm -f x"]),
        ("mytool deploy *", &["mytool --project x deploy", "mytool -v deploy y"], &["mytool show deploy"]),
    ]);
}

#[test]
fn a_denial_of_a_package_manager_holds_in_each_project() {
    denials(&[
        (
            "npm publish *",
            &["npm -w web publish", "npm --workspaces publish", "npm --workspace=web publish", "npm publish -w web"],
            &["npm run publish", "npm -w publish test"],
        ),
        (
            "pnpm publish *",
            &["pnpm -r publish", "pnpm --filter web publish", "pnpm -C x publish"],
            &["pnpm run publish", "pnpm --filter publish test"],
        ),
        ("yarn publish *", &["yarn --cwd x publish"], &["yarn run publish"]),
        ("bun add *", &["bun --cwd x add y", "bun add -d y"], &["bun run add"]),
    ]);
}

/// Time that grew with the square of a call's length would not end within this test's.
#[test]
fn a_denial_reads_long_calls() {
    let policy = denying(&["Bash(sudo git push --force *)", "Bash(nc -e *)", "Bash(* --x)"]);
    for (program, word) in [("sudo", "-x git"), ("nc", "-v"), ("git", "--quie")] {
        let words = std::iter::once(program).chain(std::iter::repeat_n(word.split(' '), 4000).flatten());
        let argv: Vec<String> = words.map(ToOwned::to_owned).collect();
        hostile::decided(&policy, &argv);
    }
    let nested = format!("{}rm x", "sudo ".repeat(100));
    denies(&denying(&[&format!("Bash({nested})")]), &[&nested]);
    hostile::decided(&policy, &["git".to_owned(), "push".to_owned(), format!("-{}", "v".repeat(200_000))]);
    // Options that are all different.
    let each = denying(&["Bash(git push --force *)", "Bash(rm --recursive *)", "Bash(sudo rm *)"]);
    for start in ["git push", "rm", "sudo sh -c rm"] {
        let options = (0..2000).map(|at| format!("--o{at}"));
        let argv: Vec<String> = start.split(' ').map(ToOwned::to_owned).chain(options).collect();
        hostile::decided(&each, &argv);
    }
    // Letters that are all different.
    let letters: String = ('\u{4e00}'..).take(80_000).collect();
    for program in ["git", "nc", "mytool"] {
        hostile::decided(&policy, &[program.to_owned(), "push".to_owned(), format!("-{letters}")]);
    }
}

/// Letters far behind others, and behind marks of other languages, are still read.
#[test]
fn a_denial_reads_the_last_letters_of_a_long_word() {
    let (many, marks) = ("v".repeat(100), "\u{4e00}\u{4e01}".repeat(50));
    denials(&[(
        "nc -e *",
        &[&format!("nc -{many}e sh"), &format!("nc -{many}nze sh"), &format!("nc -{marks}e sh")],
        &[&format!("nc -{many} web")],
    )]);
}

/// Only a switch is turned off by `false` or 0. Of another option that is a value like each other one.
#[test]
fn a_value_turns_off_only_a_switch() {
    denials(&[
        (
            "docker exec -u *",
            &["-u0", "-u=0", "--user=0", "-itu0", "-u 0", "--user 0", "-uf"]
                .map(|options| format!("docker exec {options} web sh"))
                .each_ref()
                .map(String::as_str),
            &["docker exec -it web sh"],
        ),
        ("docker run -u *", &["docker run -u0 acme/x", "docker run --user=0 acme/x"], &["docker run acme/x"]),
        ("docker run --memory *", &["docker run --memory=0 acme/x"], &["docker run acme/x"]),
        ("docker run -p *", &["docker run -p0 acme/x"], &["docker run acme/x"]),
        ("docker stop -t *", &["docker stop -t0 web", "docker stop --time=0 web"], &["docker stop web"]),
        ("docker logs -n *", &["docker logs -n0 web", "docker logs -n=0 web"], &["docker logs web"]),
        ("docker logs -t *", &["docker logs -tf web", "docker logs -ft web"], &["docker logs -f web"]),
        (
            "kubectl scale --replicas *",
            &["kubectl scale deploy web --replicas=0", "kubectl scale --replicas=0 deploy web"],
            &["kubectl scale deploy web"],
        ),
        ("kubectl delete --grace-period *", &["kubectl delete --grace-period=0 pod web"], &["kubectl delete pod web"]),
        ("kubectl delete --cascade *", &["kubectl delete --cascade=false pod web"], &["kubectl delete pod web"]),
        (
            "docker run --privileged *",
            &["docker run --privileged=1 acme/x", "docker run --privileged=true acme/x"],
            &["docker run --privileged=0 acme/x", "docker run --privileged=F acme/x"],
        ),
        (
            "docker run -d *",
            &["docker run -d=true acme/x", "docker run -itd acme/x"],
            &["docker run -d=false acme/x", "docker run -it acme/x"],
        ),
        (
            "kubectl delete --force *",
            &["kubectl delete --force=true pod web"],
            &["kubectl delete --force=false pod web"],
        ),
    ]);
}

/// Global options of the application are known, so that their values are no subcommands.
#[test]
fn a_denial_of_the_application_reads_it_without_global_options() {
    denials(&[
        (
            "bot cal *",
            &["bot --json cal", "bot --color never cal", "bot --unknown gmail cal", "bot --json --unknown x cal"],
            &["bot --json gmail cal", "bot --json gmail --from cal", "bot --color cal gmail", "bot gmail --json cal"],
        ),
        ("bot gmail --from *", &["bot --json gmail -v --from x", "bot gmail --from=x"], &["bot --json gmail from"]),
        ("* --json *", &["bot --json cal", "bot cal --json", "bot --color never cal --json"], &["bot cal"]),
    ]);
}

/// Behind a module, options are its own.
#[test]
fn a_denial_tells_options_of_an_interpreter_from_those_of_a_module() {
    denials(&[
        (
            "python3 -c *",
            &[
                "python3 -c x",
                "python3 -I -c x",
                "python3 -Ic x",
                "python3 -W -m -c x",
                "python3 -X dev -c x",
                "python3 -u -cx",
            ],
            &[
                "python3 -m pytest -c pytest.ini",
                "python3 -m http.server -c x",
                "python3 -mpytest -c x",
                "python3 a.py -c",
            ],
        ),
        (
            "python3 -m pytest -x *",
            &["python3 -m pytest -q -x", "python3 -m pytest -x a.py", "python3 -I -m pytest -x", "python3 -mpytest -x"],
            &["python3 -m pytest -q", "python3 -x a.py"],
        ),
        (
            "python3 -m pip *",
            &["python3 -m pip list", "python3 -I -mpip list", "python3 -u -m pip"],
            &["python3 -m pytest"],
        ),
        ("* -c *", &["python3 -Ic x", "git -pc a.b=c log", "python3 -m pytest -qc x"], &["python3 -I x"]),
        ("java -jar x.jar --force *", &["java -jar x.jar -v --force"], &["java -jar x.jar -v"]),
    ]);
}

/// A letter that has a value behind one subcommand has none behind another.
#[test]
fn a_denial_reads_letters_behind_one_that_has_a_value_elsewhere() {
    denials(&[
        ("kubectl logs -f *", &["kubectl logs -pf web", "kubectl logs -fp web"], &["kubectl logs -p web"]),
        (
            "kubectl patch -p *",
            &["kubectl patch pod web -p x", "kubectl patch pod web -px"],
            &["kubectl patch pod web"],
        ),
    ]);
}

/// A denial of an option holds for each of its names, alone and in a cluster.
#[test]
fn a_denial_of_a_switch_holds_for_its_letter_and_its_long_name() {
    denials(&[
        (
            "docker rm -f *",
            &["docker rm --force web", "docker rm --force=true web", "docker rm -vf web"],
            &["docker rm -v web", "docker rm --force=false web"],
        ),
        ("docker rm --force *", &["docker rm -f web", "docker rm -vf web"], &["docker rm -v web"]),
        (
            "docker system prune -a *",
            &["docker system prune --all", "docker system prune -af"],
            &["docker system prune -f"],
        ),
        ("docker logs --follow *", &["docker logs -f web", "docker logs -tf web"], &["docker logs -t web"]),
        ("docker save -o *", &["docker save --output x web", "docker save -oval web"], &["docker save web"]),
        ("docker compose down -v *", &["docker compose down --volumes"], &["docker compose down"]),
        (
            "rm -rf *",
            &["rm -Rf x", "rm -f -R x", "rm --recursive --force x", "rm -r --force x", "rm x --force -vR"],
            &["rm -R x", "rm --force x", "rm -fv x"],
        ),
        ("rm --recursive *", &["rm -r x", "rm -R x", "rm -fR x"], &["rm -f x"]),
        ("chmod -R *", &["chmod --recursive 755 x", "chmod -vR 755 x"], &["chmod -v 755 x"]),
        ("cp --force *", &["cp -f a b", "cp -af a b"], &["cp -a a b"]),
        (
            "apt -y install *",
            &["apt --yes install x", "apt --assume-yes install x", "apt install -qy x"],
            &["apt install x"],
        ),
        ("npm install -g *", &["npm install --global x", "npm -g install x"], &["npm install x"]),
        ("cargo build --release *", &["cargo build -r", "cargo build -qr"], &["cargo build"]),
        ("gh api -X *", &["gh api --method DELETE x", "gh api --method=DELETE x"], &["gh api x"]),
        ("helm upgrade --install *", &["helm upgrade -i web x"], &["helm upgrade web x"]),
        ("kubectl apply -R *", &["kubectl apply --recursive -f x"], &["kubectl apply -f x"]),
        ("kubectl logs --follow *", &["kubectl logs -f web"], &["kubectl logs -p web"]),
    ]);
}

#[test]
fn a_denial_of_git_holds_for_a_letter_and_its_long_name() {
    denials(&[
        ("git fetch --force *", &["git fetch -f", "git fetch -qf"], &["git fetch -q"]),
        ("git pull -f *", &["git pull --force", "git pull --forc"], &["git pull -q"]),
        ("git rebase -i *", &["git rebase --interactive x", "git rebase --inter x"], &["git rebase x"]),
        ("git commit -a *", &["git commit --all -m x", "git commit -qam x"], &["git commit -m a"]),
        ("git push --set-upstream *", &["git push -u origin x", "git push -qu origin x"], &["git push origin u"]),
        ("git push --dry-run *", &["git push -n"], &["git push"]),
        ("git restore -S *", &["git restore --staged x"], &["git restore x"]),
        ("git clone --shared *", &["git clone -s x"], &["git clone x"]),
        ("git add --patch *", &["git add -p"], &["git add -v x"]),
        ("git tag -d *", &["git tag --delete v1"], &["git tag v1"]),
        ("git branch --all *", &["git branch -a", "git branch -va"], &["git branch -v"]),
    ]);
}

/// The first word of tar may be letters without a dash.
#[test]
fn a_denial_of_tar_holds_with_and_without_a_dash() {
    denials(&[
        (
            "tar -x *",
            &["tar xf a", "tar xzf a", "tar -xf a", "tar --extract -f a", "tar --get -f a", "tar fx a"],
            &["tar tf a", "tar -cf x a", "tar cf a x"],
        ),
        ("tar xf *", &["tar -xf a", "tar xvf a", "tar -x -f a", "tar xfv a", "tar -x --file=a"], &["tar tf a"]),
        ("tar --extract *", &["tar xf a", "tar -zxf a"], &["tar tf a"]),
        ("tar xf a *", &["tar xf a b", "tar -xvf a", "tar xfC a x", "tar xvf a"], &["tar xf b a"]),
    ]);
}

/// Most programs take the beginning of a long option for it.
#[test]
fn a_denial_of_a_long_option_holds_for_its_abbreviations() {
    denials(&[
        ("rm --recursive *", &["rm --recurs x", "rm --r x", "rm -f --recursiv x"], &["rm --force x", "rm --verb x"]),
        ("rm -r *", &["rm --recurs x"], &["rm --forc x"]),
        ("chmod --recursive *", &["chmod --recur 755 x"], &["chmod --verbose 755 x"]),
        ("sed --in-place *", &["sed --in-pl s/a/b/ x", "sed --in=.bak s/a/b/ x"], &["sed --quiet p x"]),
        ("sort --output *", &["sort --outp x y", "sort --o=x y"], &["sort --reverse y"]),
        ("wget --method=DELETE *", &["wget --meth=DELETE https://e.com"], &["wget --meth=GET https://e.com"]),
        ("wget --post-data *", &["wget --post-d x https://e.com"], &["wget --quiet https://e.com"]),
        ("tar --delete *", &["tar --delet -f a x", "tar -f a --del x"], &["tar --list -f a"]),
        ("tar --extract *", &["tar --extr -f a"], &["tar --exclude=x -cf a y"]),
        ("tar --exclude-from *", &["tar --exclude-f x -cf a y"], &["tar --create -f a y"]),
        ("systemctl --user stop *", &["systemctl --us stop web"], &["systemctl stop web"]),
        ("psql --command *", &["psql --comm x"], &["psql --file x"]),
        ("gpg --export-secret-keys *", &["gpg --export-s x"], &["gpg --export x"]),
        ("tar --checkpoint-action *", &["tar --checkpoint-a=exec=x -cf a y"], &["tar --checkpoint=9 -cf a y"]),
        ("grep --exclude-dir *", &["grep --exclude-d=x y"], &["grep --exclude=x y", "grep --include=x y"]),
        ("curl --user-agent *", &["curl --user-a x https://e.com"], &["curl --user x https://e.com"]),
        ("curl --insecure *", &["curl --insec https://e.com"], &["curl --include https://e.com"]),
        ("curl --data-binary *", &["curl --data-b x https://e.com"], &["curl --data x https://e.com"]),
    ]);
    // Their parsers take whole names only.
    denials(&[
        ("docker run --privileged *", &["docker run --privileged x"], &["docker run --priv x"]),
        ("npm install --global *", &["npm install --global x"], &["npm install --glob x"]),
        ("mytool --force *", &["mytool --force"], &["mytool --for x"]),
    ]);
}

/// Some subcommands have several names.
#[test]
fn a_denial_of_a_subcommand_holds_for_its_other_names() {
    denials(&[
        (
            "docker run --privileged *",
            &["docker container run --privileged x", "docker -D container run --rm --privileged x"],
            &["docker container run x --privileged", "docker container ls --privileged"],
        ),
        (
            "docker rm *",
            &["docker container rm -f web", "docker --context x container rm web"],
            &["docker image rm web"],
        ),
        ("docker rmi *", &["docker image rm x", "docker image rm -f x"], &["docker container rm x", "docker image ls"]),
        ("docker container rm -f *", &["docker rm --force web", "docker container rm -vf web"], &["docker rm web"]),
        ("docker exec web rm *", &["docker container exec -it web rm x"], &["docker container exec db rm x"]),
        ("docker container *", &["docker container rm x", "docker -D container ls"], &["docker image rm x"]),
        ("docker container exec web rm *", &["docker exec -u x web rm x"], &["docker exec web ls"]),
        ("npm install *", &["npm i x", "npm add x", "npm -g in x", "npm inst"], &["npm test", "npm run i"]),
        ("npm i *", &["npm install x", "npm add x"], &["npm test"]),
        ("npm run deploy *", &["npm run-script deploy", "npm -w x run-script deploy"], &["npm run-script test"]),
        ("npm publish *", &["npm pub"], &["npm run pub"]),
        ("helm uninstall *", &["helm delete web", "helm -n x del web", "helm un web"], &["helm list"]),
        ("cargo publish *", &["cargo +nightly publish", "cargo +nightly -q publish"], &["cargo +nightly test"]),
        ("cargo +nightly publish *", &["cargo +nightly publish -q"], &["cargo publish"]),
        ("cargo +nightly *", &["cargo +nightly test"], &["cargo test"]),
        ("cargo run *", &["cargo r", "cargo +stable run -q"], &["cargo b"]),
    ]);
}

/// What a command starts is denied with it, also in the text of a shell.
#[test]
fn a_denial_of_a_command_holds_behind_what_starts_it() {
    denials(&[
        (
            "sudo rm *",
            &[
                "sudo sudo rm x",
                "sudo -u root sudo rm x",
                "sudo doas rm x",
                "sudo chroot / rm x",
                "sudo flock l rm x",
                "sudo bash -c rm␣x",
                "sudo sh -c 'ls;␣rm␣-f␣x'",
                "sudo env -S rm␣x",
                "sudo sh -c env␣A=b␣rm␣x",
            ],
            &["sudo sudo ls", "sudo bash -c ls␣rm", "sudo ls rm", "sudo ls a␣rm␣x", "sudo echo ;rm␣x"],
        ),
        ("sudo -u root rm *", &["sudo -u root sh -c rm␣x"], &["sudo -u bob sh -c rm␣x"]),
        (
            "ssh web rm *",
            &[
                "ssh web sudo rm x",
                "ssh web env A=b rm x",
                "ssh web nohup␣rm␣x␣&",
                "ssh web bash␣-c␣'rm␣x'",
                "ssh web exec rm x",
                "ssh web command rm x",
                "ssh web time rm x",
                "ssh web {␣rm␣x;␣}",
                "ssh web !␣rm␣x",
                "ssh web if␣true;␣then␣rm␣x;␣fi",
                "ssh web >f␣rm␣x",
                "ssh web 2>␣f␣A=b␣rm␣x",
                "ssh web 2>/dev/null␣rm␣x",
            ],
            &["ssh web sudo ls x", "ssh web ls >rm", "ssh web then␣ls␣rm", "ssh db sudo rm x"],
        ),
        ("ssh web exec rm *", &["ssh web exec rm x", "ssh web exec rm -f x"], &["ssh web exec ls"]),
        (
            "docker exec web rm *",
            &["docker exec web sudo rm x", "docker exec -it web sh -c rm␣x", "docker exec web nice sudo rm x"],
            &["docker exec web sudo ls rm.txt", "docker exec db sh -c rm␣x"],
        ),
        ("env rm *", &["env A=b rm x", "env -u X A=b rm x"], &["env A=b ls rm", "env A=rm ls"]),
    ]);
    let many = format!("sudo sh -c {}", "sudo␣rm␣".repeat(4000));
    let words: Vec<String> = many.split(' ').map(|word| word.replace('␣', " ")).collect();
    hostile::decided(&denying(&["Bash(sudo rm --x *)"]), &words);
}

/// A kind has several names, and a unit may be named with its type.
#[test]
fn a_denial_of_a_kind_or_a_unit_holds_for_its_other_names() {
    denials(&[
        (
            "kubectl delete pod web-1 *",
            &[
                "kubectl delete pods web-1",
                "kubectl delete po web-1 --wait",
                "kubectl delete po/web-1",
                "kubectl delete -n a pods/web-1",
            ],
            &["kubectl delete svc web-1", "kubectl delete pods web-2", "kubectl delete svc/web-1"],
        ),
        ("kubectl delete deploy *", &["kubectl delete deployments.apps web"], &["kubectl delete pod deploy"]),
        (
            "kubectl get secrets *",
            &["kubectl get secret x", "kubectl -n a get secret/x"],
            &["kubectl get pod x", "kubectl get pod/secret"],
        ),
        ("kubectl get secret", &["kubectl get secrets"], &["kubectl get secret/x"]),
        (
            "systemctl stop nginx *",
            &["systemctl stop nginx.service", "systemctl -q stop nginx.service"],
            &["systemctl stop nginx.socket", "systemctl stop web.service"],
        ),
        ("systemctl stop nginx.service", &["systemctl stop nginx", "systemctl stop -q nginx.service"], &[]),
    ]);
}

/// Other names, cases and beginnings of what is denied.
#[test]
fn a_denial_holds_for_each_name_that_a_program_takes() {
    denials(&[
        (
            "kubectl delete pod *",
            &["kubectl delete Pod x", "kubectl delete svc/x pod/y", "kubectl delete pod.v1./x"],
            &["kubectl delete svc x"],
        ),
        (
            "kubectl get secret *",
            &[
                "kubectl get SECRETS y",
                "kubectl get configmap/x secret/y",
                "kubectl get secrets.v1. y",
                "kubectl get Secret/y",
            ],
            &["kubectl get configmap/x deploy/y", "kubectl get configmap y"],
        ),
        ("kubectl delete deployment *", &["kubectl delete deployment.v1.apps/x"], &["kubectl delete pods x"]),
        (
            "kubectl delete *",
            &["k3s kubectl delete x", "microk8s kubectl delete x", "microk8s.kubectl delete x", "oc delete x"],
            &["k3s kubectl get x", "k3s server"],
        ),
        ("npm publish *", &["npm publi", "npm publis"], &["npm prune", "npm p"]),
        ("npm install *", &["npm instal", "npm isntal x", "npm it", "npm install-test"], &["npm ci", "npm in-x"]),
        (
            "npm run deploy *",
            &["npm rum deploy", "npm urn deploy", "npm runScript deploy", "npm run-scri deploy"],
            &["npm run build", "npm r deploy"],
        ),
        ("npm uninstall *", &["npm remo x", "npm unin x"], &["npm unpublish x", "npm re x"]),
        ("docker rm *", &["docker container remove x"], &["docker image ls"]),
        (
            "docker build *",
            &["docker buildx build .", "docker buildx b .", "docker builder build ."],
            &["docker buildx ls"],
        ),
        ("docker compose down *", &["docker-compose down", "docker-compose -f x down"], &["docker-compose up"]),
        ("docker volume rm *", &["docker volume remove x"], &["docker volume ls"]),
        (
            "docker run --network host *",
            &["docker run --net host x", "docker run --net=host x"],
            &["docker run --net none x"],
        ),
        ("node -e *", &["node -pe x", "node -p x", "node --print x", "nodejs -e x"], &["node x.js"]),
        ("git remote remove *", &["git remote rm x"], &["git remote show x"]),
        ("git remote rm *", &["git remote remove x"], &[]),
        ("git add *", &["git stage x"], &["git status"]),
        ("git stash push *", &["git stash save x"], &["git stash pop"]),
        ("helm list *", &["helm ls"], &["helm status x"]),
        ("helm repo remove *", &["helm repo rm x"], &["helm repo list"]),
        ("gh pr create *", &["gh pr new"], &["gh pr list"]),
        ("gh pr checkout *", &["gh pr co 5"], &["gh pr view 5"]),
        ("cargo doc *", &["cargo d"], &["cargo t"]),
        ("cargo build *", &["cargo +nightly b"], &["cargo +nightly t"]),
        ("brew uninstall *", &["brew rm x", "brew remove x"], &["brew list"]),
        ("python3 -c *", &["python3.11 -c x", "python -c x"], &["python3.11 x.py"]),
        ("python3 -m pip *", &["python3.12 -m pip x"], &["python3 -m pytest"]),
        ("pip install *", &["pip3.11 install x", "pip3 install x"], &["pip3 list"]),
        ("make deploy *", &["gmake deploy"], &["gmake build"]),
        ("sudo python3 -c *", &["sudo python3.11 -c x"], &["sudo python3.11 x.py"]),
    ]);
}

#[test]
fn a_denied_name_may_be_one_of_several() {
    denials(&[
        (
            "systemctl stop nginx *",
            &["systemctl stop apache nginx", "systemctl stop a b nginx.service"],
            &["systemctl stop apache", "systemctl restart stop nginx"],
        ),
        (
            "systemctl stop nginx",
            &["systemctl stop nginx"],
            &["systemctl stop apache nginx", "systemctl stop nginx apache"],
        ),
        ("apt install evil *", &["apt install a evil"], &["apt install a b", "apt remove evil"]),
        ("docker rm db *", &["docker rm web db", "docker container rm web db"], &["docker rm web"]),
        ("docker compose restart db *", &["docker compose restart web db"], &["docker compose restart web"]),
        (
            "curl https://evil.com*",
            &[
                "curl https://ok.com https://evil.com",
                "curl HTTPS://evil.com",
                "curl https://EVIL.com/x",
                "curl evil.com",
            ],
            &["curl https://ok.com", "curl ok.com/evil.com"],
        ),
        (
            "git push origin main *",
            &[
                "git push origin HEAD:main",
                "git push origin main:main",
                "git push origin refs/heads/main",
                "git push origin +main",
                "git push origin heads/main",
                "git push origin dev main",
            ],
            &["git push origin dev", "git push origin main:dev", "git push main dev"],
        ),
        (
            "git push * main",
            &["git push origin HEAD:main", "git push origin +HEAD:refs/heads/main"],
            &["git push origin dev"],
        ),
        ("git push prod *", &["git push prod x"], &["git push origin prod"]),
    ]);
}

/// A search, each shell, and a redirection next to the name.
#[test]
fn a_denied_command_may_be_started_by_a_search_or_a_shell() {
    denials(&[
        (
            "docker exec db rm *",
            &[
                "docker exec db find / -exec rm {} ;",
                "docker exec db find / -execdir /bin/rm {} +",
                "docker exec db ash -c rm␣x",
                "docker exec db su -c rm␣x",
                "docker exec db su bob --command rm␣x",
                "docker exec db parallel rm ::: x",
                "docker exec -it db zsh -lc ls;rm␣x",
            ],
            &[
                "docker exec db find / -name rm -exec ls {} ;",
                "docker exec db ash -c ls␣rm",
                "docker exec db grep -c rm x",
            ],
        ),
        (
            "ssh prod rm *",
            &[
                "ssh prod find␣.␣-exec␣rm␣{}␣+",
                "ssh prod zsh␣-c␣'rm␣x'",
                "ssh prod rm</dev/null␣x",
                "ssh prod rm>f␣x",
                "ssh prod >|f␣rm␣x",
                "ssh prod {fd}>f␣rm␣x",
                "ssh prod sh␣-c␣'rm␣x'",
            ],
            &["ssh prod ls>rm", "ssh prod ls␣>␣rm", "ssh prod echo␣rm"],
        ),
        (
            "sudo apt install *",
            &[
                "sudo find . -exec apt install x ;",
                "sudo zsh -c apt␣install␣x",
                "sudo ksh -c apt␣install␣x",
                "sudo fish -c ls;apt␣install␣x",
            ],
            &["sudo find . -exec apt list ;", "sudo zsh -c apt␣list"],
        ),
        (
            "find * -exec rm *",
            &["find . -exec /bin/rm {} ;", "find . -execdir rm {} ;", "find . -ok rm {} ;"],
            &["find . -exec ls {} ;"],
        ),
        ("npx rimraf *", &["npx rimraf@5 x", "npx rimraf x"], &["npx eslint@5 x"]),
        ("npm exec rimraf *", &["npm exec rimraf@5 x"], &["npm exec eslint x"]),
        (
            "kubectl delete pod *",
            &["kubectl delete pod x"],
            &["kubectl delete -f pod.yaml", "kubectl delete -f pods.yml"],
        ),
    ]);
}
