//! Stars of powerful programs stand for known options only.

use super::*;
use crate::programs::{self, Class};

/// Programs whose options are judged in another way: what they start is judged itself, or they run the script that a rule names.
const OTHERS: &[&str] = &[
    "bash",
    "builtin",
    "busybox",
    "bwrap",
    "chroot",
    "dash",
    "doas",
    "env",
    "eval",
    "exec",
    "expect",
    "flock",
    "lua",
    "luajit",
    "node",
    "nsenter",
    "parallel",
    "perl",
    "php",
    "pypy",
    "python",
    "python2",
    "python3",
    "ruby",
    "screen",
    "setarch",
    "setpriv",
    "sh",
    "source",
    "strace",
    "sudo",
    "systemd-run",
    "taskset",
    "toybox",
    "tsx",
    "unshare",
    "watch",
];

#[test]
fn every_program_that_can_run_others_has_a_list_of_its_harmless_options() {
    let powerful = [Class::Runs, Class::Unknown].into_iter().flat_map(programs::names_of);
    let open: Vec<&str> = powerful.filter(|name| programs::named(name).harmless.is_none()).collect();
    let known: Vec<&str> = OTHERS.iter().copied().filter(|name| open.contains(name)).collect();
    assert_eq!(open.iter().filter(|name| !OTHERS.contains(name)).collect::<Vec<_>>(), Vec::<&&str>::new());
    assert!(known.len() > 20, "{known:?}");
}

/// Whatever stands in front of it, and in whatever form.
#[test]
fn a_star_stands_for_no_option_that_nobody_knows() {
    let closed = [Class::Runs, Class::Unknown].into_iter().flat_map(programs::names_of);
    for name in closed.filter(|name| programs::named(name).closed) {
        let policy = allowing(&[&format!("Bash({name} --of-yesterday *)")]);
        let calls =
            ["--of-tomorrow", "--of-tomorrow=x", "-K --of-tomorrow", "-\u{e4}", "-q\u{e4}", "-n -- --of-tomorrow"];
        let calls: Vec<String> = calls.iter().map(|more| format!("{name} --of-yesterday {more}")).collect();
        denies(&policy, &calls.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn options_that_lead_elsewhere_must_be_spelled() {
    for (rule, granted, refused) in [
        (
            "gh repo clone acme/*",
            &["gh repo clone acme/x"][..],
            &[
                "gh repo clone acme/x -- -c core.sshCommand=id",
                "gh repo clone acme/x -- --template=x",
                "gh repo clone acme/x -u id",
                "gh repo clone acme/x -- -q",
            ][..],
        ),
        (
            "gh api repos/a/b/*",
            &["gh api repos/a/b/pulls --jq .x", "gh api repos/a/b/pulls --paginate -q .x"],
            &[
                "gh api repos/a/b/x -X DELETE",
                "gh api repos/a/b/x -f a=b",
                "gh api repos/a/b/x --method=POST",
                "gh api repos/a/b/x -H a:b",
            ],
        ),
        ("gh pr list *", &["gh pr list --json title -L 5 --state open", "gh pr list -R a/b"], &["gh pr list --web"]),
        ("gh pr view *", &["gh pr view 7 -c", "gh pr view 7 --comments --template x"], &["gh pr view 7 -w"]),
        (
            "go test *",
            &["go test ./...", "go test ./... -run X -v -count=1 -race"],
            &["go test ./... -exec id", "go test -toolexec=id ./...", "go test ./... -o x", "go test -overlay x ./..."],
        ),
        ("go run ./cmd *", &["go run ./cmd -x --y", "go run ./cmd a"], &[]),
        ("go run *", &["go run ./cmd --of-tomorrow"], &["go run -exec id ./cmd", "go run -- -exec id"]),
        (
            "docker compose -p app *",
            &["docker compose -p app up -d --build", "docker compose -p app ps -a"],
            &[
                "docker compose -p app -f x.yml up",
                "docker compose -p app --env-file x up",
                "docker compose -p app down -v",
                "docker compose -p app --of-tomorrow build -f x . run",
                "docker compose -p app -f x.yml run web",
                "docker compose -p app -Q up -f x.yml exec web",
            ],
        ),
        (
            "docker build -t app *",
            &["docker build -t app . --no-cache"],
            &["docker build -t app . -f x", "docker build -t app --secret id=x .", "docker build -t app --output=x ."],
        ),
        ("docker volume ls *", &["docker volume ls -q"], &["docker volume ls --cluster"]),
        ("docker exec web *", &["docker exec web ls -u x"], &[]),
        (
            "docker exec -i *",
            &["docker exec -i web ls"],
            &["docker exec -i -u root web ls", "docker exec -i --privileged web ls"],
        ),
        ("redis-cli get *", &["redis-cli get k", "redis-cli get -- -k"], &[]),
        (
            "redis-cli --raw *",
            &["redis-cli --raw get k", "redis-cli --raw lrange k 0 -1"],
            &["redis-cli --raw -h evil get k"],
        ),
        (
            "psql app *",
            &["psql app -c select␣1", "psql app --csv -c select␣1", "psql app -A -F , -t"],
            &["psql app bob", "psql app --csv bob", "psql app -c x bob", "psql app -At bob", "psql app -- bob"],
        ),
        ("psql -h db *", &["psql -h db app", "psql -h db --set a=b app"], &["psql -h db app bob"]),
        (
            "pg_restore x.dump *",
            &["pg_restore x.dump -l"],
            &["pg_restore x.dump -edprod", "pg_restore x.dump -C", "pg_restore x.dump -c"],
        ),
        (
            "pg_dumpall -h db *",
            &["pg_dumpall -h db --globals-only"],
            &["pg_dumpall -h db -th evil", "pg_dumpall -h db -l host=evil"],
        ),
        (
            "mysqladmin status *",
            &["mysqladmin status -v"],
            &["mysqladmin status -rhevil", "mysqladmin status -wh evil"],
        ),
        ("pipx install x *", &["pipx install x -q"], &["pipx install x --pip-args=x", "pipx install x --index-url x"]),
        (
            "uv tool install x *",
            &["uv tool install x -q"],
            &["uv tool install x --index-url x", "uv tool install x --with y"],
        ),
        (
            "tmux new-window -t bot *",
            &["tmux new-window -t bot -d -n x ls -a", "tmux new-window -t bot -n x"],
            &[
                "tmux new-window -t bot -n x -tprod",
                "tmux new-window -t bot -n x -c /",
                "tmux new-window -t bot -e A=b",
            ],
        ),
        ("ssh-add -l *", &["ssh-add -l"], &["ssh-add -l -s x.so", "ssh-add -l -cs x.so", "ssh-add -lD"]),
        (
            "gcc -c main.c *",
            &[
                "gcc -c main.c -DX=1 -Iinclude -isystem a -std=c11 -fPIC -fsanitize=address -Wno-error=x -lm -march=native -MMD -g3",
            ],
            &[
                "gcc -c main.c -MF x",
                "gcc -c main.c -fprofile-generate",
                "gcc -c main.c -fdump-tree-all",
                "gcc -c main.c -Wl,-z,x",
                "gcc -c main.c -Wa,x",
                "gcc -c main.c -load x",
                "gcc -c main.c --sysroot=x",
                "gcc -c main.c -dumpdir x",
            ],
        ),
        (
            "pytest tests/*",
            &["pytest tests/a.py -q -x -k name --maxfail=1"],
            &["pytest tests/a.py -p x", "pytest tests/a.py -c x"],
        ),
        ("kubectl exec web -- *", &["kubectl exec web -- ls --kubeconfig x"], &[]),
        ("kubectl exec *", &["kubectl exec web -n a -- ls --x"], &["kubectl exec -n -- web --kubeconfig=x"]),
        ("sqlite3 a.db *", &["sqlite3 a.db -json select␣1"], &["sqlite3 a.db -vfs x", "sqlite3 a.db -unsafe-testing"]),
        (
            "git clone https://h/a/*",
            &["git clone https://h/a/b --depth 1 -q"],
            &["git clone https://h/a/b --reference x", "git clone https://h/a/b --separate-git-dir=x"],
        ),
        (
            "git push origin bot/*",
            &["git push origin bot/x -u"],
            &[
                "git push origin bot/x --all",
                "git push origin bot/x --tags",
                "git push origin bot/x --follow-tags",
                "git push origin bot/x --signed",
            ],
        ),
        ("git ls-remote origin *", &["git ls-remote origin --heads"], &["git ls-remote origin --of-tomorrow"]),
        ("git submodule update *", &["git submodule update --init"], &["git submodule update --reference x"]),
    ] {
        let policy = allowing(&[&format!("Bash({rule})")]);
        grants(&policy, granted);
        denies(&policy, refused);
    }
}
