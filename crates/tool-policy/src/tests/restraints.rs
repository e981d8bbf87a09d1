//! What a rule holds back or chooses by its options, and what its stars may stand for then.

use super::*;

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
            &[
                "-T list",
                "--files-from=list",
                "--files list",
                "--directory=notes a",
                "--directory notes",
                "--dir=notes a",
                "--cd=notes",
                "-C notes",
            ][..],
        ),
        ("tar -xf b.tar --directory=out", &["tar -xf b.tar --directory=out a"], &["-C notes a", "-Cnotes"]),
        ("git clone -b main ./up", &["git clone -b main ./up dst --depth=1"], &["dst --branch=evil", "--bra evil"]),
        ("git fetch --no-tags", &["git fetch --no-tags origin"], &["origin -t", "origin --tags", "-t origin"]),
        ("git fetch --no-prune", &["git fetch --no-prune origin"], &["origin -p", "--prune origin"]),
        (
            "git clone --no-recurse-submodules",
            &["git clone --no-recurse-submodules ./up dst"],
            &["./up dst --recursive", "./up --recurse-submodules"],
        ),
        ("git add --no-all", &["git add --no-all x"], &["-A", "--all"]),
        ("tar --no-same-permissions -xf b.tar", &["tar --no-same-permissions -xf b.tar a"], &["-p", "--preserve-perm"]),
        ("git pull --no-rebase", &["git pull --no-rebase origin"], &["origin -r", "--rebase origin"]),
        ("docker --context staging", &["docker --context staging ps"], &["-c prod ps"]),
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
        (
            "kubectl apply",
            &["kubectl apply -f app.yaml", "kubectl apply -Rf k8s", "kubectl apply -f=app.yaml -o=yaml"],
            &[
                "-f=http://h/a",
                "-Rf=http://h/a",
                "-wRf http://h/a",
                "-Rfhttp://h/a",
                "-fa,https://h/a",
                "-f=a,https://h/a",
                "-f \"http://h/a\"",
                "-f=\"http://h/a\"",
                "-f \nhttp://h/a",
                "--filename=a,\"http://h/a\"",
                "--filename=\"http://h/a\"",
                "--insecure_skip_tls_verify=true -f a",
                "--client_key=k -f a",
                "--certificate_authority=c -f a",
                "--tls_server_name=x -f a",
                "--as_group=x -f a",
                "--as_uid=x -f a",
                "--cache_dir=x -f a",
            ],
        ),
        (
            "kubectl -n staging get",
            &["kubectl -n staging get pods", "kubectl -n staging get pods --show-labels"],
            &["pods --all_namespaces", "pods --all-namespaces", "pods -A"],
        ),
        (
            "kubectl -n staging get --label-columns=a",
            &["kubectl -n staging get --label-columns=a pods"],
            &["pods --label_columns=b", "pods -L b"],
        ),
        ("kubectl apply -k", &["kubectl apply -k overlays/test"], &["git::http://h/b", "github.com/a/b", "git@h:a/b"]),
    ] {
        let policy = allowing(&[&format!("Bash({rule} *)")]);
        grants(&policy, granted);
        let calls: Vec<String> = refused.iter().map(|rest| format!("{rule} {rest}")).collect();
        denies(&policy, &calls.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// Nothing says of such a program which letters have a value. So a word counts in every reading.
#[test]
fn a_choice_of_a_rule_is_not_made_again_with_its_value_attached() {
    for (rule, granted, refused) in [
        (
            "tmux send-keys -t bot",
            &["tmux send-keys -t bot ls Enter", "tmux send-keys -t bot -l -- -x"][..],
            &["-tprod ls", "-t prod", "-Rtprod ls", "-Ht prod", "-t=prod"][..],
        ),
        ("tmux capture-pane -p -t bot", &["tmux capture-pane -p -t bot -J -e"], &["-tprod", "-Jtprod"]),
        ("tmux send-keys -tbot", &["tmux send-keys -tbot ls"], &["-tprod ls", "-t prod"]),
        (
            "deployer -e staging up",
            &["deployer -e staging up --wait -d", "deployer -e staging up -vv -n"],
            &["-eprod", "-veprod", "-e prod", "-ve prod", "-e=prod"],
        ),
        ("deployer -ve staging up", &["deployer -ve staging up -d"], &["-eprod", "-dqeprod"]),
        ("deployer -estaging up", &["deployer -estaging up -d"], &["-eprod", "-veprod", "-e prod", "-ve prod"]),
        ("deployer -p80 up", &["deployer -p80 up -d"], &["-p8080", "-p 8080", "-vp8080"]),
        ("deployer -v up", &["deployer -v up -quiet", "deployer -v up -version"], &[]),
        ("deployer --env staging up", &["deployer --env staging up -verbose"], &["--env=prod", "--env prod"]),
        ("just -f good", &["just -f good --list"], &["-fevil", "-qfevil", "-f evil", "--justfile-x -fevil"]),
        ("docker run -u 1000", &["docker run -u 1000 alpine -tail"], &["-itu0 alpine", "-u0 alpine"]),
        ("docker run --user 1000", &["docker run --user 1000 alpine"], &["-itu0 alpine", "-dqitu0 alpine"]),
        (
            "mvn -f a.xml",
            &["mvn -f a.xml -DskipTests=false -Dtest=A test"],
            &["-fevil.xml", "-qfevil.xml", "-Xeqfx", "-Dmaven.ext.class.path=x test"],
        ),
        ("gradle -b a.gradle -Pbuild=x", &["gradle -b a.gradle -Pbuild=x test"], &["-bevil", "-qbevil", "-Pcmd=y"]),
        ("docker exec -it web", &["docker exec -it web psql -Upostgres"], &[]),
        ("pip install -i https://i", &["pip install -i https://i x"], &["-qqqihttps://evil x"]),
        (
            "gcc -c x.c -o out.o",
            &["gcc -c x.c -o out.o -O2 -Wall -fno-common -pthread"],
            &["-otodo.txt", "-o todo.txt", "--output=todo.txt", "-o=todo.txt"],
        ),
        ("gcc -c x.c -oout.o", &["gcc -c x.c -oout.o -O2"], &["-otodo.txt", "-o todo.txt"]),
        ("go test -run X", &["go test -run X ./... -count=1 -race -v"], &["-run=Y", "-run Y"]),
        (
            "terraform apply -auto-approve",
            &["terraform apply -auto-approve -no-color"],
            &["-auto-approve=false", "-var-file=x", "-destroy"],
        ),
    ] {
        let policy = allowing(&[&format!("Bash({rule} *)")]);
        grants(&policy, granted);
        let calls: Vec<String> = refused.iter().map(|rest| format!("{rule} {rest}")).collect();
        denies(&policy, &calls.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// `-a` means all but the one that the rule names.
#[test]
fn a_rule_that_ends_one_session_of_tmux_ends_no_other() {
    for subcommand in ["kill-session", "kill-window", "kill-pane", "killw", "killp"] {
        let rule = format!("tmux {subcommand} -t bot");
        let all = ["-a", "-Ca", "-aC", "-at x"].map(|option| format!("{rule} {option}"));
        let policy = allowing(&[&format!("Bash({rule} *)")]);
        grants(&policy, &[&rule]);
        denies(&policy, &all.each_ref().map(String::as_str));
        denies(&allowing(&[&format!("Bash(tmux {subcommand} *)")]), &[&all[0]]);
        grants(&allowing(&[&format!("Bash({rule} -a *)")]), &[&all[0]]);
    }
    grants(&allowing(&["Bash(tmux list-panes *)"]), &["tmux list-panes -a", "tmux list-panes -at bot"]);
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
