//! Options and tests in another position than in their rule, and rules that hold in one folder.

use super::*;

#[test]
fn late_options_change_no_script_and_load_no_code() {
    families(&[
        (
            "sed -i s/a/b/ *",
            &["sed -i s/a/b/ f", "sed -i s/a/b/ -s f"],
            &[
                "sed -i s/a/b/ -n f",
                "sed -i s/a/b/ --quiet f",
                "sed -i s/a/b/ --zero-terminated f",
                "sed -i s/a/b/ --zero f",
                "sed -i s/a/b/ f --sil",
                "sed -i s/a/b/ -z f",
                "sed -i s/a/b/ -E f",
            ],
        ),
        ("sed -i *", &["sed -i -n p f"], &[]),
        (
            "jq .name *",
            &["jq .name f", "jq .name -r f"],
            &["jq .name -f p", "jq .name -rf p", "jq .name --from-file p", "jq .name -L d f"],
        ),
        (
            "make release *",
            &["make release -s V=1"],
            &[
                "make release -k",
                "make release -j2",
                "make release -sj 2",
                "make release --jobs=2",
                "make release --keep-going",
                "make -j4 release",
            ],
        ),
        ("make -j4 release *", &["make -j4 release"], &["make -j4 release -k"]),
        (
            "make check *",
            &["make check -j4 -k", "make -j4 check", "make -j 4 -k check V=1", "make --silent check"],
            &["make -j deploy check", "make -f x check", "make -C x check", "make -j4 deploy"],
        ),
        ("make test-unit *", &["make test-unit -j2"], &[]),
        (
            "gcc -c main.c *",
            &["gcc -c main.c -O2 -Wall -o main.o -I include"],
            &[
                "gcc -c main.c -wrapper id",
                "gcc -c main.c -Bx",
                "gcc -c main.c -fplugin=x.so",
                "gcc -c main.c --specs=x",
                "gcc -c main.c -specs x",
                "gcc -c main.c @args",
                "gcc -c main.c -Wl,-plugin,x",
                "gcc -c main.c -Xlinker x",
            ],
        ),
        ("gcc-12 -c main.c *", &["gcc-12 -c main.c -g"], &["gcc-12 -c main.c -wrapper id"]),
        ("gcc *", &["gcc -wrapper x a.c"], &[]),
        (
            "kubectl get pods *",
            &["kubectl get pods -o wide -n x -l a=b"],
            &[
                "kubectl get pods --kubeconfig=x",
                "kubectl get pods --kubeconfig x",
                "kubectl get pods -s https://h",
                "kubectl get pods --server=x",
                "kubectl get pods --as x",
                "kubectl get pods --token=x",
            ],
        ),
        (
            "openssl x509 *",
            &["openssl x509 -in a.pem -noout -text"],
            &["openssl x509 -engine x", "openssl x509 -provider-path .", "openssl x509 --provider x"],
        ),
        (
            "ssh-keygen -l *",
            &["ssh-keygen -l -f x", "ssh-keygen -l -E md5 -f x"],
            &["ssh-keygen -l -D ./x.so", "ssh-keygen -l -vD./x.so"],
        ),
        (
            "rsync -a notes/ host:in/ *",
            &["rsync -a notes/ host:in/ -v"],
            &["rsync -a notes/ host:in/ -e id", "rsync -a notes/ host:in/ -ve id", "rsync -a notes/ host:in/ --rsh=id"],
        ),
        ("scp notes.txt *", &["scp notes.txt h:in"], &["scp notes.txt -S id h:", "scp notes.txt -oProxyCommand=id h:"]),
        (
            "perl -pi.bak -e s/a/b/ *",
            &["perl -pi.bak -e s/a/b/ f"],
            &["perl -pi.bak -e s/a/b/ -i f", "perl -pi.bak -e s/a/b/ -e p f"],
        ),
    ]);
}

/// The position of a harmless option means nothing.
#[test]
fn a_harmless_option_may_stand_in_front_of_a_rules_words() {
    families(&[
        (
            "journalctl -u ssh *",
            &["journalctl -n 5 -u ssh", "journalctl --no-pager -n5 -u ssh -f", "journalctl -qu ssh"],
            &[
                "journalctl -n 5 -u cron",
                "journalctl --file x -u ssh",
                "journalctl --grep -u ssh",
                "journalctl -n -u ssh",
            ],
        ),
        ("journalctl -u ssh", &["journalctl -u ssh"], &["journalctl -n 5 -u ssh"]),
        (
            "systemctl status *",
            &["systemctl --no-pager status x", "systemctl -n 5 status x"],
            &["systemctl -n status stop x", "systemctl -H h status x", "systemctl --no-pager stop x"],
        ),
        ("make deploy ENV=*", &["make -s deploy ENV=x"], &["make -s deploy ENV=x;id"]),
        (
            "git commit -m *",
            &["git commit -am x", "git commit -q -m x", "git commit -a -s -m x", "git -C . commit -qam x"],
            &["git commit -a", "git commit --amend -m x", "git commit -C HEAD -m x", "git commit -qF f -m x"],
        ),
        (
            "git push origin *",
            &["git push -u origin main", "git push -q origin main", "git push -qu origin main"],
            &[
                "git push -f origin main",
                "git push -uf origin main",
                "git push -u upstream main",
                "git push -o origin evil main",
                "git push -u origin +main",
            ],
        ),
        ("git checkout -b *", &["git checkout -q -b x"], &["git checkout -q x", "git checkout -q -f -b x"]),
        (
            "kubectl get *",
            &["kubectl -n web get pods", "kubectl -nweb get pods", "kubectl --namespace=web get pods"],
            &[
                "kubectl -n get delete pods",
                "kubectl -n web delete get",
                "kubectl -v get delete pods",
                "kubectl -n web get pods --kubeconfig=x",
            ],
        ),
        (
            "kubectl -n staging get *",
            &["kubectl get -n staging pods"],
            &["kubectl get pods", "kubectl -n staging -n prod get pods", "kubectl -n staging get pods -A"],
        ),
        (
            "kubectl exec web ls *",
            &["kubectl exec web ls -l"],
            &["kubectl -n x exec web rm", "kubectl -n ls exec web rm", "kubectl exec -n ls web rm"],
        ),
        (
            "sed -i *",
            &["sed -E -i s/a/b/ f", "sed -Ei s/a/b/ f", "sed -n -i p f", "sed -i -E s/a/b/ f"],
            &["sed -E s/a/b/ f", "sed -e -i f", "sed -l -i s/a/b/ f"],
        ),
        ("sed -i s/a/b/ *", &["sed -s -i s/a/b/ f"], &["sed -E -i s/a/b/ f", "sed -ni s/a/b/ f", "sed -z -i s/a/b/ f"]),
        ("sort -o *", &["sort -u -o f f", "sort -nro f f"], &["sort -k 2 -o f f", "sort -uT d -o f f"]),
        (
            "perl -pe *",
            &["perl -w -pe s/a/b/ f", "perl -wpe s/a/b/ f"],
            &["perl -w -e x", "perl -pi -e x f", "perl -w x.pl"],
        ),
        ("perl -ne print *", &["perl -w -ne print f"], &["perl -w -ne print -e x f", "perl -w -ne x"]),
    ]);
}

/// In another folder the same name is another file, whose contents would be put where the star leads.
#[test]
fn a_rule_that_names_contents_holds_in_its_folder() {
    for (rule, call) in [
        ("split notes/a *", "split notes/a x"),
        ("csplit notes/a *", "csplit notes/a 9"),
        ("sort -o * notes/a", "sort -o x notes/a"),
        ("sort -uo * notes/a", "sort -uo x notes/a"),
        ("shuf --output * notes/a", "shuf --output x notes/a"),
    ] {
        let policy = allowing(&[&format!("Bash({rule})"), "Read(notes/**)"]);
        grants(&policy, &[call]);
        let decided = start_in(&policy, call, &format!("{WORK}/notes"), &[]);
        assert!(!matches!(decided.location, Location::Outside(_)), "{rule}: {decided:?}");
    }
    for (rule, call) in [
        ("sort notes/a *", "sort notes/a x"),
        ("sort -o *", "sort -o x y"),
        ("sort -k 2 -o *", "sort -k 2 -o x y"),
        ("split *", "split x y"),
        ("split -l 100 *", "split -l 100 x"),
        ("split -n5 *", "split -n5 x"),
    ] {
        let policy = allowing(&[&format!("Bash({rule})"), "Read(notes/**)"]);
        let decided = start_in(&policy, call, &format!("{WORK}/notes"), &[]);
        assert!(matches!(decided.location, Location::Outside(_)), "{rule}: {decided:?}");
    }
}

/// They change nothing else, so that a rule without a star grants them, too.
#[test]
fn a_rule_grants_options_that_only_change_what_is_printed() {
    families(&[
        (
            "git push origin main",
            &["git push -q origin main", "git push origin main --quiet", "git -C . push -q origin main"],
            &[
                "git push -u origin main",
                "git push -v origin main",
                "git push -qf origin main",
                "git push -q origin main main:old",
                "git push --repo -q origin main",
            ],
        ),
        ("git commit -m x", &["git commit -qm x"], &["git commit -am x", "git commit -m x -q", "git commit -m -q x"]),
        (
            "python3 report.py",
            &["python3 -u report.py"],
            &[
                "python3 report.py -u",
                "python3 -u",
                "python3 -u -",
                "python3 -u x.py",
                "python3 -u -c x report.py",
                "python3 -ui report.py",
                "python3 -W report.py x.py",
            ],
        ),
        (
            "python3 report.py *",
            &["python3 -u report.py -c x", "python3 -u report.py -u"],
            &["python3 -u x.py report.py", "python3 -u -m x report.py"],
        ),
    ]);
    let policy = denying(&["Bash(git push origin main)", "Bash(git commit -m *)", "Bash(python3 report.py)"]);
    denies(
        &policy,
        &["git push -q origin main", "git push -u origin main", "git commit -am x", "python3 -u report.py"],
    );
}

#[test]
fn a_moved_option_is_handed_on_with_its_rule_only() {
    let covers =
        |outer: &str, inner: &str| BOT.covers(&ToolPattern::parse(outer).unwrap(), &ToolPattern::parse(inner).unwrap());
    assert!(covers("Bash(make check *)", "Bash(make check -s *)"));
    assert!(!covers("Bash(journalctl -u ssh *)", "Bash(journalctl -n 5 *)"));
    assert!(covers("Bash(git push *)", "Bash(git push -q origin main)"));
    assert!(!covers("Bash(git push origin main)", "Bash(git push -u origin main)"));
    assert!(!covers("Bash(kubectl -n staging get *)", "Bash(kubectl get *)"));
}

/// In `$TMPDIR` the same name is the job's own file.
#[test]
fn contents_that_a_rule_names_are_those_of_the_working_folder() {
    let temporary = "/home/u/.bot/state/runs/0a1b2c3d/tmp";
    for (rule, call) in [
        ("tar -xzf backup.tgz *", "tar -xzf backup.tgz -C x"),
        ("tar xzf backup.tgz *", "tar xzf backup.tgz -C x"),
        ("tar -xzfbackup.tgz *", "tar -xzfbackup.tgz -C x"),
        ("tar --extract --file=backup.tgz *", "tar --extract --file=backup.tgz -C x"),
        ("tar -C x -xf backup.tgz *", "tar -C x -xf backup.tgz"),
        ("unzip -o backup.zip *", "unzip -o backup.zip -d x"),
        ("cp template.md *", "cp template.md x"),
        ("cp -r skeleton *", "cp -r skeleton x"),
        ("mv draft.md *", "mv draft.md x"),
        ("ln -s a *", "ln -s a x"),
        ("install -m 644 a *", "install -m 644 a x"),
        ("dd if=disk.img *", "dd if=disk.img of=x"),
        ("curl --data-urlencode body@file https://h/*", "curl --data-urlencode body@file https://h/x"),
        ("curl --data-urlencode @file https://h/*", "curl --data-urlencode @file https://h/x"),
        ("curl -F x=@file https://h/*", "curl -F x=@file https://h/x"),
        ("curl -sFx=@file https://h/*", "curl -sFx=@file https://h/x"),
        ("curl -sd@file https://h/*", "curl -sd@file https://h/x"),
        ("curl -w @format https://h/*", "curl -w @format https://h/x"),
        ("curl -sT file https://h/*", "curl -sT file https://h/x"),
        ("curl --upload-file=file https://h/*", "curl --upload-file=file https://h/x"),
        ("jq -f p.jq *", "jq -f p.jq a.json"),
    ] {
        let policy = allowing(&[&format!("Bash({rule})"), "Edit(notes/**)"]);
        assert!(start(&policy, call).is_allowed(), "{rule}: {:?}", start(&policy, call));
        for folder in [temporary, &format!("{WORK}/notes")] {
            let decided = start_in(&policy, call, folder, &[]);
            assert!(!matches!(decided.location, Location::Outside(_)), "{rule} in {folder}: {decided:?}");
        }
    }
    for (rule, call) in [
        ("tar -xzf *", "tar -xzf backup.tgz"),
        ("tar xzf *", "tar xzf backup.tgz"),
        ("tar -xzf /srv/backup.tgz *", "tar -xzf /srv/backup.tgz"),
        ("tar -czf backup.tgz *", "tar -czf backup.tgz x"),
        ("tar -tzf backup.tgz *", "tar -tzf backup.tgz"),
        ("unzip *", "unzip a.zip"),
        ("cp *", "cp a b"),
        ("cp -r *", "cp -r a b"),
        ("rm -f old.md *", "rm -f old.md"),
    ] {
        let policy = allowing(&[&format!("Bash({rule})"), "Edit(notes/**)"]);
        assert!(start_in(&policy, call, temporary, &[]).is_allowed(), "{rule}");
    }
}

/// A refusal proposes a rule that grants the call, and no command of somebody's.
#[test]
fn a_proposal_grants_what_was_refused() {
    for (rule, call, wanted) in [
        ("curl -s https://h/*", "curl -s -o f https://h/x", "Bash(curl -s -o * https://h/*)"),
        ("curl -s https://h/*", "curl -s -L https://h/x", "Bash(curl -s -L https://h/*)"),
        ("find d -name *", "find d -name x -delete", "Bash(find d -name * -delete)"),
        ("git log *", "git log --output=x", "Bash(git log --output=* *)"),
        ("rg x *", "rg x --pre y z", "Bash(rg x --pre *)"),
        ("watch find d -name *", "watch find d -name x -delete", "Bash(watch find d -name * -delete)"),
        ("git push *", "git push --mirror -f x", "Bash(git push --mirror -f x)"),
        ("npm run test:unit *", "npm run test:unit --prefix x", "Bash(npm run test:unit --prefix x)"),
        ("make check *", "make check -C x", "Bash(make check -C x)"),
        ("apt-get update *", "apt-get update -o A=b", "Bash(apt-get update -o A=b)"),
    ] {
        let reason = start(&allowing(&[&format!("Bash({rule})")]), call).decision.reason;
        assert!(reason.contains(&format!("as in `{wanted}`")), "{call}: {reason}");
        grants(&allowing(&[wanted]), &[call]);
    }
    for (rule, call) in
        [("tmux ls *", "tmux ls -t #(id)"), ("watch ls *", "watch ls ;id"), ("perl -ne p *", "perl -ne p id|")]
    {
        let reason = start(&allowing(&[&format!("Bash({rule})")]), call).decision.reason;
        assert!(reason.contains("is a command for") && !reason.contains("as in"), "{call}: {reason}");
    }
    for text in ["#(id)", "#{id}", "`id`", "$(id)", "${id}"] {
        for (rule, call) in [
            ("git log *", format!("git --{text} log")),
            ("git log *", format!("docker run {text}")),
            ("git fetch *", format!("git fetch origin a:{text}")),
            ("git remote show *", format!("git remote show {text}/x")),
            ("make check *", format!("make check {text}")),
            ("make check *", format!("make check X={text}")),
            ("curl https://h/*", format!("curl --{text} https://h/")),
            ("find . -name *", format!("find . -name x -exec ./{text} ;")),
        ] {
            let reason = start(&allowing(&[&format!("Bash({rule})")]), &call).decision.reason;
            assert!(!reason.contains("as in") && !reason.contains("would be needed"), "{call}: {reason}");
        }
    }
    // A rule for every call of a program that runs others would give everything away.
    for call in ["tmux ls -F #(id)", "python3 -c print(\"it's\")", &format!("npm run {}", "x".repeat(200))] {
        let reason = start(&allowing(&["Bash(ls *)"]), call).decision.reason;
        assert!(reason.contains("is not granted, and no rule for this call alone can be proposed"), "{call}: {reason}");
    }
}

#[test]
fn a_subcommand_that_only_looks_stays_one() {
    families(&[
        (
            "npm audit *",
            &["npm audit", "npm audit --json", "npm audit signatures"],
            &["npm audit fix", "npm audit --json fix --dry-run", "npm audit -- fix"],
        ),
        ("npm audit fix *", &["npm audit fix --dry-run"], &[]),
        ("npm *", &["npm audit fix"], &[]),
        (
            "npm run *",
            &["npm run fix", "npm run audit", "npm run audit fix", "npm -s run audit fix", "npm run audit -- fix"],
            &[],
        ),
        ("npm -s run *", &["npm -s run audit fix"], &[]),
        (
            "npm --loglevel silent audit *",
            &["npm --loglevel silent audit --json"],
            &["npm --loglevel silent audit fix", "npm --loglevel silent audit --json fix"],
        ),
        ("npm --json audit *", &["npm --json audit --omit=dev"], &["npm --json audit fix"]),
    ]);
}

#[test]
fn tests_in_front_of_those_of_a_rule_only_leave_less() {
    families(&[
        (
            "find . -name *",
            &[
                "find . -type f -name x",
                "find . -maxdepth 2 -type f -a -name x -size +1k",
                "find . -xdev -empty -name x",
            ],
            &[
                "find . -type f",
                "find . -type f -size +1k",
                "find notes -type f -name x",
                "find . -type f -delete -name x",
                "find . -print -name x",
                "find . -type f -o -name x",
                "find . ! -type f -name x",
                "find . -not -type f -name x",
                "find . -exec rm x ; -name x",
                "find . -type -name x",
                "find . -daystart -name x",
                "find -L . -type f -name x",
                "find . -type f -name x -delete",
                "find . -type f -name x -fprint y",
            ],
        ),
        ("find . -name x", &["find . -name x"], &["find . -type f -name x"]),
        (
            "find notes -name *.tmp -delete",
            &["find notes -type f -mtime +7 -name a.tmp -delete"],
            &["find notes -type f -delete -name a.tmp -delete", "find notes -type f -o -name a.tmp -delete"],
        ),
        (
            "find . -maxdepth 1 -name * -delete",
            &["find . -type f -maxdepth 1 -name x -delete"],
            &["find . -maxdepth 5 -maxdepth 1 -name x -delete", "find . -maxdepth 5 -name x -delete"],
        ),
        // Behind an "or" they leave more, and so they do if they keep the search from being cut short.
        (
            "find . -name keep -o -name *.tmp -delete",
            &["find . -name keep -o -name a.tmp -delete"],
            &[
                "find . -false -name keep -o -name keep.tmp -delete",
                "find . -type d -name keep -o -name keep.tmp -delete",
            ],
        ),
        (
            "find notes -path notes/keep -prune -o -name *.tmp -exec rm {} ';'",
            &["find notes -path notes/keep -prune -o -name a.tmp -exec rm {} ;"],
            &[
                "find notes -false -path notes/keep -prune -o -name a.tmp -exec rm {} ;",
                "find notes -type f -path notes/keep -prune -o -name a.tmp -exec rm {} ;",
                "find notes -mindepth 2 -path notes/keep -prune -o -name a.tmp -exec rm {} ;",
            ],
        ),
        ("find . -name keep -or -name *.tmp -delete", &[], &["find . -false -name keep -or -name keep.tmp -delete"]),
        ("find . -name keep , -name *.tmp -delete", &[], &["find . -false -name keep , -name keep.tmp -delete"]),
        (
            "find . -type f ! -name keep* -delete",
            &["find . -type f ! -name keep.md -delete"],
            &["find . -false -type f ! -name keep.md -delete"],
        ),
        (
            "find . -type f -not -name keep* -delete",
            &["find . -type f -not -name keep.md -delete"],
            &["find . -false -type f -not -name keep.md -delete"],
        ),
        (
            r"find . -type f \( -name *.tmp \) -delete",
            &["find . -type f ( -name a.tmp ) -delete"],
            &["find . -false -type f ( -name a.tmp ) -delete"],
        ),
        ("find . -name *.tmp -quit", &["find . -name a.tmp -quit"], &["find . -false -name a.tmp -quit"]),
        (
            "find . -name *.tmp -delete",
            &["find . -type f -name a.tmp -delete"],
            &["find . -depth -name a.tmp -delete", "find . -d -name a.tmp -delete"],
        ),
    ]);
}

#[test]
fn npm_may_be_told_to_be_silent() {
    families(&[
        (
            "npm run build",
            &["npm --silent run build", "npm -s run build", "npm run build --silent"],
            &[
                "npm --silent run deploy",
                "npm --prefix x run build",
                "npm -s --prefix x run build",
                "npm --silent=-Cx run build",
            ],
        ),
        ("npm run *", &["npm --silent run lint"], &["npm --silent publish"]),
        ("yarn build", &["yarn build"], &["yarn build --silent"]),
    ]);
}
