//! Operands and late options that do more than their rule says, by families.

use super::*;

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

/// A star in front of a command or a script hides neither.
#[test]
fn a_star_in_the_middle_hides_nothing_behind_it() {
    families(&[
        ("watch -n * ls *", &["watch -n 1 ls x"], &["watch -n 1 ls ;id", "watch -n 1 ls $(id)"]),
        ("watch --interval * ls *", &["watch --interval 1 ls x"], &["watch --interval 1 ls ;id"]),
        ("parallel -j * ls *", &[], &["parallel -j 2 ls {};id ::: a"]),
        ("flock * find d -name *", &["flock f find d -name x"], &["flock f find d -name x -delete"]),
        ("ssh * uptime *", &["ssh web uptime"], &["ssh web uptime ;id", "ssh web uptime $(id)"]),
        ("ssh -p * host uptime *", &["ssh -p 22 host uptime"], &["ssh -p 22 host uptime ;id"]),
        ("ssh -i key.pem * uptime *", &["ssh -i key.pem web uptime"], &["ssh -i key.pem web uptime ;id"]),
        ("ssh * find . -name *", &["ssh web find . -name x"], &["ssh web find . -name x -delete"]),
        ("ssh * git log *", &["ssh web git log -3"], &["ssh web git log --output=x"]),
        ("docker exec * find /app *", &["docker exec web find /app"], &["docker exec web find /app -delete"]),
        ("docker exec -u * web find /app *", &[], &["docker exec -u x web find /app -delete"]),
        ("docker compose exec * find . *", &[], &["docker compose exec web find . -delete"]),
        ("kubectl exec * -- find . -name *", &[], &["kubectl exec web -- find . -name x -delete"]),
        ("sudo -u * find . -name *", &["sudo -u x find . -name y"], &["sudo -u x find . -name y -delete"]),
        ("strace -o * find . *", &[], &["strace -o x find . -delete"]),
        ("uv run --extra * pytest tests *", &[], &["uv run --extra x pytest tests -p evil"]),
        ("npx --package * find . *", &[], &["npx --package x find . -delete"]),
    ]);
    families(&[
        ("sqlite3 *.db 'select 1' *", &["sqlite3 a.db select␣1 -csv"], &["sqlite3 a.db select␣1 .shell␣id"]),
        ("sqlite3 * 'select 1' *", &["sqlite3 a.db select␣1"], &["sqlite3 a.db select␣1 .shell␣id"]),
        ("sqlite3 -separator * a.db 'select 1' *", &[], &["sqlite3 -separator x a.db select␣1 .shell␣id"]),
        ("sed -i s/a/*/ *", &["sed -i s/a/b/ f"], &["sed -i s/a/b/ -n f", "sed -i s/a/b/ -f x f"]),
        ("sed -i /^*/d *", &["sed -i /^x/d f"], &["sed -i /^x/wnotes/d f"]),
        ("sed -i s/a/*/g *", &["sed -i s/a/b.c/g notes/f"], &["sed -i s/a/b/w./g f"]),
        ("sed -n 1p notes/*", &["sed -n 1p notes/a/b.txt"], &[]),
        (
            "docker run --rm -e -- --name find *",
            &[],
            &["docker run --rm -e -- --name find --privileged -v /:/h alpine"],
        ),
        ("kubectl get -n -- run web find *", &[], &["kubectl get -n -- run web find --kubeconfig=x"]),
        (
            "sqlite3 a.db 'select 1 where id = '*",
            &["sqlite3 a.db select␣1␣where␣id␣=␣5"],
            &["sqlite3 a.db select␣1␣where␣id␣=␣5--x"],
        ),
        ("sed -i -e s/a/*/ *", &["sed -i -e s/a/b/ f"], &["sed -i -e s/a/b/ -n f", "sed -i -e s/a/b/ -f x f"]),
        (
            "psql -h * -c 'select 1' *",
            &["psql -h db -c select␣1"],
            &["psql -h db -c select␣1 -f x", "psql -h db -c select␣1 -L x"],
        ),
        ("psql -U app -d * -c 'select 1' *", &[], &["psql -U app -d x -c select␣1 -f x"]),
        ("psql -c 'select '*", &["psql -c select␣1"], &["psql -c select␣1 -f x"]),
    ]);
}

/// A folder on the standard input has whatever the job writes there.
#[test]
fn a_star_in_a_tag_stands_for_no_context_on_the_input() {
    for head in ["docker build", "docker buildx build", "docker image build", "podman build"] {
        for option in ["-t acme/*", "-tacme/*", "--tag acme/*", "--tag=acme/*"] {
            let (rule, call) = (format!("{head} {option}"), format!("{head} {}", option.replace('*', "x")));
            let refused = ["-", "- .", ". -", "-q -"].map(|more| format!("{call} {more}"));
            let refused = refused.each_ref().map(String::as_str);
            families(&[
                (&rule, &[&format!("{call} ."), &format!("{call} app")], &refused),
                (&format!("{rule} ."), &[&format!("{call} .")], &refused),
            ]);
        }
    }
    families(&[
        ("docker build *", &["docker build -"], &[]),
        ("docker build -t acme/* -", &["docker build -t acme/x -"], &["docker build -t acme/x ."]),
        ("docker build -t acme/x *", &["docker build -t acme/x ."], &[]),
        ("docker build - -t acme/*", &["docker build - -t acme/x"], &["docker build - -t acme/x -"]),
    ]);
}
