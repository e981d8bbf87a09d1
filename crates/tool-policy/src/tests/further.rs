//! What a star at the end of a rule stands for: its own word, and further ones like it. Never for the words behind the value of an option.

use super::*;

/// An earlier star may be the value of an option of the program.
#[test]
fn a_star_in_front_of_the_subcommand_does_not_open_its_end() {
    families(&[
        ("git -C * push origin bot/*", &["git -C sub push origin bot/x bot/y"], &["git -C sub push origin bot/x main"]),
        (
            "git -C * push origin HEAD:bot/*",
            &["git -C a push origin HEAD:bot/x"],
            &["git -C a push origin HEAD:bot/x HEAD:main"],
        ),
        (
            "kubectl -n * delete pod web-*",
            &["kubectl -n a delete pod web-1 web-2"],
            &["kubectl -n a delete pod web-1 db"],
        ),
        (
            "docker compose -f * up web-*",
            &["docker compose -f a up web-1 web-2", "docker compose -f a up web-1 -d"],
            &[],
        ),
        (
            "npm --prefix * install acme-*",
            &["npm --prefix a install acme-x acme-y"],
            &["npm --prefix a install acme-x evil", "npm --prefix a install acme-x ./evil"],
        ),
        (
            "ssh web git -C * push origin bot/*",
            &["ssh web git -C a push origin bot/x"],
            &["ssh web git -C a push origin bot/x main"],
        ),
        ("docker --context * rm web-*", &["docker --context a rm web-1 web-2"], &["docker --context a rm web-1 db"]),
        ("git -C * push --delete origin bot/*", &[], &["git -C sub push --delete origin bot/x main"]),
        ("git -C repos/* push origin bot/*", &[], &["git -C repos/a push origin bot/x main"]),
        ("sudo -u bot git -C * push origin bot/*", &[], &["sudo -u bot git -C a push origin bot/x main"]),
        ("git -C repos/* worktree remove wt/*", &[], &["git -C repos/a worktree remove wt/a other"]),
        ("git -c user.name=* push origin bot/*", &[], &["git -c user.name=a push origin bot/x main"]),
        ("git --work-tree=* push origin bot/*", &[], &["git --work-tree=a push origin bot/x main"]),
        ("git --git-dir=*.git push origin bot/*", &[], &["git --git-dir=a.git push origin bot/x main"]),
        ("git -C * send-pack origin bot/*", &[], &["git -C a send-pack origin bot/x main"]),
        ("kubectl --context * delete pod web-*", &[], &["kubectl --context a delete pod web-1 db"]),
        ("kubectl --context=* drain node-*", &[], &["kubectl --context=a drain node-1 db"]),
        ("docker -H * stop web-*", &[], &["docker -H a stop web-1 db"]),
        ("docker compose -f * restart web-*", &[], &["docker compose -f a restart web-1 db"]),
        ("docker compose -p * restart web-*", &[], &["docker compose -p a restart web-1 db"]),
        ("docker compose --profile * up web-*", &[], &["docker compose --profile a up web-1 db"]),
        ("systemctl --host=* restart bot-*", &[], &["systemctl --host=a restart bot-1 sshd"]),
        ("systemctl --machine=* stop bot-*", &[], &["systemctl --machine=a stop bot-1 sshd"]),
        ("npm -w * install acme-*", &[], &["npm -w a install acme-x evil"]),
        ("docker exec web git -C * push origin bot/*", &[], &["docker exec web git -C a push origin bot/x main"]),
        ("docker compose -f *.yml up web-*", &[], &["docker compose -f a.yml up web-1 db"]),
        ("docker-compose -f *.yml restart web-*", &[], &["docker-compose -f a.yml restart web-1 db"]),
        ("podman --url * rm bot-*", &[], &["podman --url a rm bot-1 db"]),
        ("pnpm --filter * add acme-*", &[], &["pnpm --filter a add acme-x evil"]),
        ("pnpm -F * add acme-*", &[], &["pnpm -F a add acme-x evil"]),
        ("npm --loglevel=* install acme-*", &[], &["npm --loglevel=a install acme-x evil"]),
        ("pip --timeout=* install acme-*", &[], &["pip --timeout=5 install acme-x evil"]),
        ("apt -o=* install acme-*", &[], &["apt -o=a install acme-x evil"]),
        ("uv --directory * add acme-*", &[], &["uv --directory a add acme-x evil"]),
        ("yarn --cwd * add acme-*", &[], &["yarn --cwd a add acme-x evil"]),
        ("cargo +* install acme-*", &[], &["cargo +n install acme-x evil"]),
        ("ssh web kubectl -n * delete pod web-*", &[], &["ssh web kubectl -n a delete pod web-1 db"]),
        ("ssh web docker compose -f * restart web-*", &[], &["ssh web docker compose -f a restart web-1 db"]),
    ]);
}

/// The rule names its branch, package or service, and its star is an option's value.
#[test]
fn a_star_in_the_value_of_an_option_stands_for_no_further_word() {
    families(&[
        (
            "kubectl delete pod web-1 -n *",
            &["kubectl delete pod web-1 -n prod"],
            &["kubectl delete pod web-1 -n prod db"],
        ),
        ("kubectl delete pod web-* --namespace=*", &["kubectl delete pod web-1 --namespace=a"], &[]),
        (
            "npm install acme-x --loglevel=*",
            &["npm install acme-x --loglevel=silent"],
            &["npm install acme-x --loglevel=silent evil"],
        ),
        (
            "git push origin bot/x --push-option=*",
            &["git push origin bot/x --push-option=a"],
            &["git push origin bot/x --push-option=a main"],
        ),
        ("git commit -m x --date=*", &["git commit -m x --date=a"], &["git commit -m x --date=a secret"]),
        (
            "truncate log --size=*",
            &["truncate log --size=0", "truncate log --size=5K"],
            &["truncate log --size=0 notes.md"],
        ),
        (
            "gh release create v1 --notes *",
            &["gh release create v1 --notes x"],
            &["gh release create v1 --notes x todo.txt"],
        ),
        ("docker rm -f *", &["docker rm -f web-2"], &[]),
        ("git push origin bot/x -q*", &["git push origin bot/x -q"], &["git push origin bot/x -q main"]),
        ("git branch -D bot/x --sort=*", &["git branch -D bot/x --sort=a"], &["git branch -D bot/x --sort=a main"]),
        ("kubectl drain node-1 -n *", &["kubectl drain node-1 -n a"], &["kubectl drain node-1 -n a node-2"]),
        ("docker stop web --time=*", &["docker stop web --time=5"], &["docker stop web --time=5 db"]),
        (
            "npm install acme-x --loglevel *",
            &[],
            &["npm install acme-x --loglevel silent evil", "npm install acme-x --loglevel silent ./evil"],
        ),
        ("git branch -D bot/x --format *", &[], &["git branch -D bot/x --format y main"]),
        ("git tag -d v1 -m *", &[], &["git tag -d v1 -m x v2"]),
        ("cargo install acme-x -j *", &[], &["cargo install acme-x -j 4 evil"]),
        ("cargo add acme-x -F *", &[], &["cargo add acme-x -F a evil"]),
        ("docker compose up web-1 --ansi *", &[], &["docker compose up web-1 --ansi never db"]),
        ("docker compose restart web-1 --progress *", &[], &["docker compose restart web-1 --progress plain db"]),
        ("kubectl delete pod web-* -n *", &[], &["kubectl delete pod web-1 -n prod db"]),
        ("git push origin bot/x -o *", &[], &["git push origin bot/x -o a main"]),
        ("kubectl delete pod web-1 --namespace=*", &[], &["kubectl delete pod web-1 --namespace=a db"]),
        ("kubectl delete pod web-1 --grace-period=*", &[], &["kubectl delete pod web-1 --grace-period=5 db"]),
        ("pip install acme-x --timeout=*", &[], &["pip install acme-x --timeout=5 evil"]),
        ("apt install acme --target-release=*", &[], &["apt install acme --target-release=a evil"]),
        ("systemctl restart bot --lines=*", &[], &["systemctl restart bot --lines=5 sshd"]),
        ("systemctl kill bot --signal=*", &[], &["systemctl kill bot --signal=9 sshd"]),
        ("gh release create v1 --notes=*", &[], &["gh release create v1 --notes=x todo.txt"]),
        ("npm install acme-x -D*", &[], &["npm install acme-x -D evil"]),
        ("git push origin bot/x --porcelain*", &[], &["git push origin bot/x --porcelain main"]),
        ("docker rm web-1 -q*", &[], &["docker rm web-1 -q db"]),
    ]);
}

#[test]
fn each_further_name_is_like_the_rules() {
    families(&[
        ("docker rm -f web-*", &["docker rm -f web-1 web-2"], &[]),
        (
            "systemctl restart -n 0 bot-*",
            &["systemctl restart -n 0 bot-1 bot-2"],
            &["systemctl restart -n0 bot-1 sshd"],
        ),
        (
            "go get github.com/acme/*",
            &["go get github.com/acme/x@v1 github.com/acme/y"],
            &["go get github.com/acme/x github.com/evil/y"],
        ),
        ("go run cmd/*", &["go run cmd/tool x"], &[]),
        ("kubectl delete pod web-*", &["kubectl delete pod web-1 --grace-period 5"], &[]),
        ("docker stop web-*", &["docker stop web-1 -t 5"], &[]),
        ("systemctl restart bot-*", &["systemctl restart bot-1 -n 5"], &[]),
        ("git commit -m *", &["git commit -m x"], &[]),
        ("git commit -m x *", &["git commit -m x secret"], &[]),
        ("docker rm web-1 *", &["docker rm web-1 web-2"], &[]),
        ("npm un acme-*", &["npm un acme-x acme-y"], &["npm un acme-x evil"]),
        ("systemctl reenable bot-*", &["systemctl reenable bot-1 bot-2"], &["systemctl reenable bot-1 sshd"]),
        (
            "go install github.com/acme/*",
            &["go install github.com/acme/x@v1"],
            &["go install github.com/acme/x@v1 github.com/evil/y@v1"],
        ),
        (
            "kubectl rollout restart deploy/web-*",
            &["kubectl rollout restart deploy/web-1 deploy/web-2"],
            &["kubectl rollout restart deploy/web-1 deploy/db"],
        ),
        ("kubectl scale deploy/web-* --replicas=*", &[], &["kubectl scale deploy/web-1 --replicas=0 deploy/db"]),
        ("go mod download github.com/acme/*", &[], &["go mod download github.com/acme/x github.com/evil/y"]),
        ("docker rm -l bot-*", &["docker rm -l bot-1 bot-2"], &["docker rm -l bot-1 db"]),
        ("docker pull -q acme/*", &["docker pull -q acme/x"], &["docker pull -q acme/x evil/y"]),
        ("tmux new -Ads bot-*", &["tmux new -Ads bot-1"], &["tmux new -Ads bot-1 evil"]),
        (
            "kubectl delete -f k8s/*",
            &["kubectl delete -f k8s/a"],
            &["kubectl delete -f k8s/a db", "kubectl delete -f k8s/a -f db"],
        ),
        ("npm r acme-*", &[], &["npm r acme-x evil"]),
        ("npm in acme-*", &[], &["npm in acme-x evil"]),
        ("npm link acme-*", &[], &["npm link acme-x evil"]),
        ("systemctl try-reload-or-restart bot-*", &[], &["systemctl try-reload-or-restart bot-1 sshd"]),
    ]);
}

/// Of an archive, and of another name, the further word is judged as the first one is.
#[test]
fn a_further_package_comes_from_nowhere_else() {
    families(&[
        (
            "npm install acme-*",
            &["npm install acme-x acme-y@1.2"],
            &["npm install acme-x acme-evil.tgz", "npm install acme-x acme-y@npm:evil"],
        ),
        ("pip install acme-*", &["pip install acme-x acme-y==1.0"], &["pip install acme-x acme-evil.whl"]),
        ("docker pull redis*", &["docker pull redis redis:7"], &["docker pull redis redis.evil.com/x"]),
    ]);
}

/// The rule of a child grants no further word either.
#[test]
fn a_child_with_a_star_in_an_option_names_nothing_more() {
    for (maker, child, call) in [
        ("kubectl delete pod web-*", "kubectl delete pod web-1 -n *", "kubectl delete pod web-1 -n prod db"),
        (
            "kubectl delete pod web-*",
            "kubectl delete pod web-1 --namespace=*",
            "kubectl delete pod web-1 --namespace=a db",
        ),
        ("npm install acme-*", "npm install acme-x --loglevel *", "npm install acme-x --loglevel silent evil"),
        ("npm install acme-*", "npm install acme-x -D*", "npm install acme-x -D evil"),
        ("git branch -D bot/*", "git branch -D bot/x --format *", "git branch -D bot/x --format y main"),
        ("git push origin bot/*", "git push origin bot/x -q*", "git push origin bot/x -q main"),
        ("git push origin bot/*", "git push origin bot/x --porcelain*", "git push origin bot/x --porcelain main"),
        ("git -C * push origin bot/*", "git -C * push origin bot/x *", "git -C a push origin bot/x main"),
        ("docker compose up web-*", "docker compose up web-1 --ansi *", "docker compose up web-1 --ansi never db"),
        ("truncate log --size=*", "truncate log --size=0 -c*", "truncate log --size=0 -c notes.md"),
        ("docker rm web-*", "docker rm web-1 -q*", "docker rm web-1 -q db"),
        ("systemctl restart bot-*", "systemctl restart bot-1 -n *", "systemctl restart bot-1 -n 5 sshd"),
        (
            "git branch -D bot/*",
            "git branch -D bot/x --format --format *",
            "git branch -D bot/x --format --format main",
        ),
        ("git branch -D bot/*", "git branch -D bot/x --format --sort main", "git branch -D bot/x --format --sort main"),
        ("npm install acme-*", "npm install acme-x --loglevel --omit *", "npm install acme-x --loglevel --omit evil"),
        ("npm install acme-*", "npm install acme-x --omit --omit evil", "npm install acme-x --omit --omit evil"),
        ("npm install acme-*", "npm install acme-x@.*", "npm install acme-x@.evil"),
        ("npm exec acme-*", "npm exec acme-x/*", "npm exec acme-x/evil"),
        ("docker volume remove bot-*", "docker volume remove bot-x *", "docker volume remove bot-x db"),
        ("systemctl restart bot-*", "systemctl restart bot-1 -p -p *", "systemctl restart bot-1 -p -p sshd"),
        ("docker run --rm -e * acme/x", "docker run --rm -e *v acme/x", "docker run --rm -e -v acme/x"),
    ] {
        let pattern = |rule: &str| ToolPattern::parse(&format!("Bash({rule})")).unwrap();
        let granted = matches!(start(&allowing(&[&format!("Bash({child})")]), call).location, Location::Outside(_));
        assert!(!granted || !BOT.covers(&pattern(maker), &pattern(child)), "{maker} covers {child}: {call}");
    }
}

/// What stands behind the name of a session or of a window is a command.
#[test]
fn a_star_in_a_name_lets_no_command_follow() {
    for (rule, call) in [
        ("screen -dmS bot-*", "screen -dmS bot-1"),
        ("screen -S *", "screen -S bot-1"),
        ("screen -d -m -t bot-*", "screen -d -m -t bot-1"),
        ("systemd-run --unit=bot-*", "systemd-run --unit=bot-1"),
        ("tmux -L bot new -d -s bot-*", "tmux -L bot new -d -s bot-1"),
        ("tmux new -d -s bot-*", "tmux new -d -s bot-1"),
        ("tmux new-session -d -s *", "tmux new-session -d -s bot-1"),
        ("tmux new-session -d -s bot-*", "tmux new-session -d -s bot-1"),
        ("tmux new-session -d -sbot-*", "tmux new-session -d -sbot-1"),
        ("tmux new-window -n bot-*", "tmux new-window -n bot-1"),
        ("tmux neww -t bot-*", "tmux neww -t bot-1"),
        ("tmux respawn-pane -t bot-*", "tmux respawn-pane -t bot-1"),
        ("tmux split-window -t bot-*", "tmux split-window -t bot-1"),
        ("tmux splitw -h -t bot-*", "tmux splitw -h -t bot-1"),
    ] {
        let refused = [
            "evil",
            "bot-2",
            "bot-1",
            "evil␣x",
            "bot-2␣;␣evil",
            "-- evil",
            "ls",
            "-n -x evil",
            "-n -n evil",
            "-t -t evil",
        ]
        .map(|more| format!("{call} {more}"));
        families(&[(rule, &[call], &refused.each_ref().map(String::as_str))]);
    }
    families(&[
        ("tmux new-session -d -s bot-*", &["tmux new-session -d -s bot-1 -n main -x 80 -y 24"], &[]),
        ("tmux send-keys -t bot-*", &["tmux send-keys -t bot-1 ls Enter"], &[]),
        ("tmux kill-session -t bot-*", &["tmux kill-session -t bot-1"], &[]),
        ("tmux new-session -d -s bot ls *", &["tmux new-session -d -s bot ls notes"], &[]),
        ("screen -dmS bot ls notes/*", &["screen -dmS bot ls notes/a notes/b"], &[]),
    ]);
}

/// Behind an option that is sure to have no value, a star stands for further words, as in any other rule.
#[test]
fn a_star_behind_a_switch_stands_for_further_words() {
    for (rule, words) in [
        ("apt install --no-install-recommends *", "x y"),
        ("cargo install --locked *", "x y"),
        ("docker compose -f x.yml restart -t 5 *", "web db"),
        ("docker compose up --build *", "web db"),
        ("docker rm -fv *", "web db"),
        ("gh release create v1 --draft *", "a.tgz b.tgz"),
        ("gh release upload v1 --clobber *", "a.tgz b.tgz"),
        ("git branch -D -q *", "main x"),
        ("git clone --depth=1 *", "./up dst"),
        ("git push -o ci.skip origin *", "main x"),
        ("git push -u origin *", "main x"),
        ("git push origin --delete *", "main x"),
        ("git push origin --tags *", "main x"),
        ("git push origin -u *", "main x"),
        ("go get -u *", "x y"),
        ("install -D *", "a b"),
        ("kubectl delete pod --force *", "web db"),
        ("kubectl delete pod --ignore-not-found *", "web db"),
        ("npm install --save-dev *", "x y"),
        ("pip install --user *", "x y"),
        ("screen -S bot -dm *", "sleep 5"),
        ("systemctl --user restart --no-block *", "x y"),
        ("systemd-run --user --scope *", "sleep 5"),
        ("tmux new-window -d *", "htop x"),
        ("truncate -s 0 *", "a b"),
    ] {
        families(&[(rule, &[&rule.replace('*', words)], &[])]);
    }
    // Nothing but options in front of it.
    families(&[
        ("git fetch --depth=*", &["git fetch --depth=1 origin"], &[]),
        ("mkdir -p --mode=*", &["mkdir -p --mode=700 a b"], &[]),
        ("tar -xf a.tar --strip-components=*", &["tar -xf a.tar --strip-components=1 b"], &[]),
    ]);
}

/// `git branch -D x --format --format main`: the second option is the value of the first one.
#[test]
fn an_option_in_the_place_of_a_value_hides_no_word_behind_it() {
    for (rule, call, options, other) in [
        ("cargo install acme-*", "cargo install acme-x", &["-j", "--jobs", "--features"][..], "evil"),
        ("docker stop web-*", "docker stop web-1", &["-t", "--time", "--filter"], "db"),
        ("gh gist create out/*", "gh gist create out/a", &["--title", "-t"], "todo.txt"),
        ("gh release create v*", "gh release create v1", &["--title", "--notes", "-t", "-n"], "todo.txt"),
        ("gh release upload v1 out/*", "gh release upload v1 out/a", &["--title", "--repo"], "todo.txt"),
        ("git branch -D bot/*", "git branch -D bot/x", &["--format", "--sort", "--contains", "--points-at"], "main"),
        ("git tag -d v*", "git tag -d v1", &["--format", "--sort", "--merged"], "w1"),
        ("gradle test *", "gradle test", &["--console", "--tests", "--warning-mode"], "deploy"),
        ("just test *", "just test", &["--color"], "deploy"),
        (
            "kubectl delete pod web-*",
            "kubectl delete pod web-1",
            &["--field-manager", "--field-selector", "-n", "-o", "-l"],
            "db",
        ),
        (
            "kubectl rollout restart deploy/web-*",
            "kubectl rollout restart deploy/web-1",
            &["--field-manager", "--field-selector", "-o"],
            "deploy/db",
        ),
        ("mvn test *", "mvn test", &["-pl", "--projects"], "deploy"),
        ("mysqladmin ping *", "mysqladmin ping", &["--connect-timeout"], "shutdown"),
        ("npm install acme-*", "npm install acme-x", &["--loglevel", "--omit", "-w"], "./evil"),
        ("npm uninstall acme-*", "npm uninstall acme-x", &["--loglevel", "--omit"], "evil"),
        ("pip install acme-*", "pip install acme-x", &["--only-binary", "--timeout", "--retries"], "evil"),
        ("pnpm add acme-*", "pnpm add acme-x", &["--loglevel"], "evil"),
        ("psql app *", "psql app", &["-F", "-c", "-R"], "evil"),
        ("systemctl restart bot-*", "systemctl restart bot-1", &["-p", "-o", "-n", "-t"], "sshd"),
        ("systemctl mask bot-*", "systemctl mask bot-1", &["-p", "-o"], "sshd"),
        ("uv add acme-*", "uv add acme-x", &["--python", "--directory", "--extra", "--group"], "evil"),
    ] {
        for first in options {
            for second in options {
                let words = format!("{call} {first} {second} {other}");
                families(&[(rule, &[], &[&words, &format!("{call} {first} {second} -- {other}")])]);
            }
            families(&[(rule, &[], &[&format!("{call} {first} -- {other}"), &format!("{call} -- {first} {other}")])]);
        }
    }
    families(&[
        ("docker stop web-*", &["docker stop web-1 -t -1 web-2"], &["docker stop web-1 -t -1 db"]),
        (
            "kubectl delete pod web-*",
            &["kubectl delete pod web-1 --dry-run -o name --grace-period -1"],
            &["kubectl delete pod web-1 --dry-run -o name --grace-period -1 -n web"],
        ),
        ("cargo install acme-*", &["cargo install acme-x --locked -j 4"], &["cargo install acme-x --locked -j 4 evil"]),
        ("npm install acme-*", &["npm install acme-x --save-dev --loglevel silent"], &[]),
        ("pip install acme-*", &["pip install acme-x --upgrade --timeout 5"], &[]),
        ("docker compose up web-*", &["docker compose up web-1 -d -t 5", "docker compose up web-1 --build -t 5"], &[]),
        (
            "uv add acme-*",
            &["uv add acme-x --group dev", "uv add acme-x --dev --extra a"],
            &["uv add acme-x --dev evil"],
        ),
        ("systemctl stop bot-*", &["systemctl stop bot-1 -- bot-2"], &["systemctl stop bot-1 -- -.mount"]),
        ("mysql -D app *", &["mysql -D app --table -e select␣1"], &[]),
        ("systemd-run --user -u *", &["systemd-run --user -u bot"], &["systemd-run --user -u bot evil"]),
        ("git branch -D bot/x -q --format *", &["git branch -D bot/x -q --format y"], &[]),
    ]);
    let refused = ["y main", "--format main", "--format y main", "-- main"].map(|more| format!("--format {more}"));
    for head in ["git branch -D bot/x", "git branch -D bot/x -q"] {
        let refused = refused.each_ref().map(|more| format!("{head} {more}"));
        families(&[(&format!("{head} --format *"), &[], &refused.each_ref().map(String::as_str))]);
    }
}

/// Another subcommand of git has a value behind it, or an option with a longer name has one.
#[test]
fn an_option_without_a_value_hides_no_branch_behind_it() {
    for (rule, call, options, other) in [
        (
            "git branch -D bot/*",
            "git branch -D bot/x",
            &["--set-upstream", "--set-up", "-q", "-v", "--track", "-m", "-F", "--message", "--date", "--pretty"][..],
            "main",
        ),
        ("git branch -f bot/*", "git branch -f bot/x", &["--set-upstream", "--pretty"], "main"),
        ("git tag -d v*", "git tag -d v1", &["--pretty", "--date", "--set-upstream-to", "-l"], "w1"),
        (
            "git push origin tag v*",
            "git push origin tag v1",
            &["-u", "-m", "-F", "--set-upstream", "--message", "--sort", "--format", "--contains"],
            "main",
        ),
        ("git push origin branch bot/*", "git push origin branch bot/x", &["-u", "--sort"], "main"),
        ("git push --tags origin tag v*", "git push --tags origin tag v1", &["-u"], "HEAD:main"),
        ("sudo git push origin tag v*", "sudo git push origin tag v1", &["-u", "-m"], "main"),
        (
            "git cherry-pick bot/*",
            "git cherry-pick bot/x",
            &["--pretty", "--format", "--date", "--author", "--grep", "--since", "--until", "--message", "-x", "-e"],
            "main",
        ),
        ("git revert bot/*", "git revert bot/x", &["--pretty", "--format", "--date", "--since", "-n"], "main"),
        ("git merge bot/*", "git merge bot/x", &["--pretty", "--stat", "--date", "--format", "--since"], "main"),
        ("git rebase origin/*", "git rebase origin/x", &["-m", "--stat", "--pretty", "--date"], "main"),
        ("git checkout bot/*", "git checkout bot/x", &["-m", "--pretty", "--date"], "notes"),
        ("git worktree remove wt/*", "git worktree remove wt/a", &["--pretty", "--date", "-m"], "other"),
        ("git remote prune up*", "git remote prune up", &["-n", "-m", "--date"], "origin"),
        ("git pull origin bot/*", "git pull origin bot/x", &["--rebase", "--stat", "-q", "--pretty"], "main"),
    ] {
        for option in options {
            families(&[(rule, &[call], &[&format!("{call} {option} {other}"), &format!("{call} {other} {option}")])]);
        }
    }
    families(&[
        ("git branch -D bot/*", &["git branch -D bot/x --sort refname"], &["git branch -D bot/x --sort refname main"]),
        ("git tag -f v*", &["git tag -f v1 -m text", "git tag -f v1 --message text"], &["git tag -f v1 -m text w1 w2"]),
        ("git merge bot/*", &["git merge bot/x -m text"], &["git merge bot/x -m text main"]),
        ("git cherry-pick bot/*", &["git cherry-pick bot/x -m 1 -x"], &["git cherry-pick bot/x -m 1 main"]),
        ("git pull origin bot/*", &["git pull origin bot/x -q"], &["git pull origin bot/x main"]),
        ("git pull *", &["git pull origin main other"], &[]),
    ]);
}

/// It also knows the options of `git rev-list`, and a name that has two dots in it is a range.
#[test]
fn a_star_of_git_cherry_pick_adds_no_commits_of_other_branches() {
    for verb in ["cherry-pick", "revert"] {
        let head = format!("git {verb} bot/x");
        let options = [
            "--all",
            "--branches",
            "--tags",
            "--remotes",
            "--glob=main",
            "--glob main",
            "--stdin",
            "--reflog",
            "--bran",
            "--exclude=bot/x --all",
            "-g",
            "--not main",
            "--merge",
            "--pretty main",
        ];
        let mut refused = options.map(|option| format!("{head} {option}")).to_vec();
        refused.extend(["..main", "...main", "/..main", "y..main"].map(|more| format!("{head}{more}")));
        let refused: Vec<&str> = refused.iter().map(String::as_str).collect();
        let granted = [head.clone(), format!("{head} --no-edit -s"), format!("{head} bot/y.z")];
        families(&[
            (&format!("git {verb} bot/*"), &granted.each_ref().map(String::as_str), &refused),
            (&format!("git {verb} bot/x *"), &[&head], &[&format!("{head} --branches"), &format!("{head} --all")]),
            (&format!("git {verb} main..bot/*"), &[&format!("git {verb} main..bot/x")], &[]),
            (&format!("git {verb} *"), &[&format!("{head}..main --all"), &format!("git {verb} -n main")], &[]),
        ]);
    }
}

/// Whatever the name of the subcommand is.
#[test]
fn each_subcommand_that_does_the_same_with_each_name_keeps_to_the_rules() {
    for (program, verbs) in [
        ("apt", &["autopurge", "autoremove", "build-dep", "purge", "satisfy", "source"][..]),
        ("apt-get", &["autoremove", "build-dep", "remove"]),
        ("apt-mark", &["auto", "hold", "manual", "unhold"]),
        ("brew", &["cleanup", "link", "pin", "services restart", "services run", "services stop", "unlink", "untap"]),
        ("bun", &["a", "add", "link", "r", "remove", "update"]),
        (
            "docker",
            &[
                "compose build",
                "compose create",
                "compose scale",
                "compose wait",
                "container update",
                "image remove",
                "image rm",
                "network remove",
                "node demote",
                "plugin disable",
                "save",
                "service rollback",
                "service scale",
                "stack remove",
                "update",
                "volume remove",
                "volume rm",
                "wait",
            ],
        ),
        ("docker-compose", &["build", "create", "restart", "scale", "wait"]),
        ("gh", &["issue edit"]),
        ("git", &["cherry-pick", "merge", "rebase", "remote prune", "revert", "submodule deinit", "worktree remove"]),
        (
            "kubectl",
            &[
                "certificate approve",
                "certificate deny",
                "edit deploy",
                "expose deploy",
                "patch deploy",
                "scale deploy",
            ],
        ),
        ("loginctl", &["kill-user", "terminate-session", "terminate-user"]),
        ("npm", &["install-test", "it", "link", "pack", "rb", "rebuild", "uninstall"]),
        ("pipx", &["inject", "pin", "uninject", "upgrade"]),
        ("pnpm", &["link", "rebuild", "unlink"]),
        ("podman", &["image untag", "umount", "untag", "volume rm"]),
        (
            "systemctl",
            &[
                "add-wants",
                "clean",
                "condstop",
                "edit",
                "freeze",
                "isolate",
                "link",
                "preset",
                "thaw",
                "unset-environment",
            ],
        ),
        ("terraform", &["state rm"]),
    ] {
        for verb in verbs {
            let head = format!("{program} {verb}");
            let one = format!("{head} acme-x");
            families(&[
                (
                    &format!("{head} acme-*"),
                    &[&one, &format!("{one} acme-y")],
                    &[&format!("{one} db"), &format!("{one} acme-y db")],
                ),
                (&format!("{head} *"), &[&one, &format!("{one} db")], &[]),
            ]);
        }
    }
    families(&[
        ("docker service scale web=*", &["docker service scale web=3"], &["docker service scale web=3 db=0"]),
        (
            "docker update --restart no web-*",
            &["docker update --restart no web-1"],
            &["docker update --restart no web-1 db"],
        ),
        ("git merge bot/*", &["git merge bot/x --no-ff -m y"], &["git merge bot/x main"]),
        (
            "git checkout bot/*",
            &["git checkout bot/x", "git checkout bot/x -q"],
            &[
                "git checkout bot/x -m .",
                "git checkout bot/x .",
                "git checkout bot/x -- notes",
                "git checkout bot/x -q notes",
            ],
        ),
        ("git checkout -b bot/*", &["git checkout -b bot/x origin/main"], &[]),
        ("git checkout HEAD notes/*", &["git checkout HEAD notes/a notes/b"], &["git checkout HEAD notes/a todo.txt"]),
        (
            "git rebase origin/*",
            &["git rebase origin/main", "git rebase origin/main -m"],
            &["git rebase origin/main main", "git rebase origin/main -m main", "git rebase origin/main --onto x main"],
        ),
    ]);
}

/// `kubectl set image deploy/web web=acme/x`: a name, and what is set there.
#[test]
fn each_further_assignment_is_like_the_rules() {
    for (head, rule, granted, refused) in [
        (
            "kubectl set image deploy/web",
            "web=acme/*",
            &["web=acme/x"][..],
            &["web=acme/x sidecar=evil.com/x", "web=acme/x deploy/db", "web=acme/x web=evil.com/x"][..],
        ),
        ("kubectl set env deploy/web", "A=*", &["A=1"], &["A=1 B=2", "A=1 deploy/db", "A=1 B-"]),
        (
            "kubectl label pod web-1",
            "tier=*",
            &["tier=a", "tier=a --overwrite"],
            &["tier=a env-", "tier=a db", "tier=a env=b"],
        ),
        ("kubectl annotate pod web-1", "note=*", &["note=a"], &["note=a other-", "note=a db"]),
        ("kubectl taint nodes node-1", "k=*", &["k=a:NoExecute"], &["k=a:NoExecute node-2", "k=a:NoExecute env2=x"]),
        (
            "systemctl set-property bot-1",
            "CPUQuota=*",
            &["CPUQuota=5%"],
            &["CPUQuota=5% MemoryMax=1", "CPUQuota=5% sshd"],
        ),
        ("systemctl set-environment", "A=*", &["A=1"], &["A=1 PATH=x"]),
        ("kubectl label pod", "web-*", &["web-1 tier=a env-", "web-1 web-2 tier=a"], &["web-1 db tier=a"]),
        ("kubectl set image", "deploy/web-*", &["deploy/web-1 web=acme/x"], &["deploy/web-1 deploy/db web=acme/x"]),
        (
            "kubectl label pod",
            "web-* tier=a -n *",
            &["web-1 tier=a -n x"],
            &["web-1 tier=a -n x db", "web-1 tier=a -n x env-"],
        ),
        ("kubectl label pod", "*", &["web-1 tier=a env-", "web-1 db tier=a"], &[]),
    ] {
        let calls = |calls: &[&str]| calls.iter().map(|call| format!("{head} {call}")).collect::<Vec<_>>();
        let (granted, refused) = (calls(granted), calls(refused));
        let granted: Vec<&str> = granted.iter().map(String::as_str).collect();
        let refused: Vec<&str> = refused.iter().map(String::as_str).collect();
        families(&[(&format!("{head} {rule}"), &granted, &refused)]);
    }
    let covers =
        |outer: &str, inner: &str| BOT.covers(&ToolPattern::parse(outer).unwrap(), &ToolPattern::parse(inner).unwrap());
    let maker = "Bash(kubectl set image deploy/web web=acme/*)";
    assert!(covers(maker, "Bash(kubectl set image deploy/web web=acme/x)"));
    assert!(!covers(maker, "Bash(kubectl set image deploy/web web=acme/x sidecar=*)"));
    assert!(!covers(maker, "Bash(kubectl set image deploy/web web=acme/x *)"));
}

/// A program may take an abbreviation, another name, or a newer subcommand.
#[test]
fn a_subcommand_that_no_table_has_keeps_to_the_rules_names() {
    for (program, verbs) in [
        ("apt", &["full-upgrade", "dist-upgrade", "dselect-upgrade", "of-tomorrow"][..]),
        ("apt-get", &["dist-upgrade", "dselect-upgrade"]),
        ("brew", &["up", "postinstall", "services kill", "of-tomorrow"]),
        (
            "docker",
            &[
                "buildx bake",
                "buildx imagetools create acme-0",
                "compose watch",
                "compose publish",
                "manifest create acme-0",
                "manifest rm",
            ],
        ),
        ("docker", &["stack up", "container prune", "of-tomorrow", "service of-tomorrow"]),
        ("docker-compose", &["watch", "publish"]),
        ("gh", &["gist new", "release new", "issue new", "codespace ssh", "codespace code", "of-tomorrow"]),
        ("npm", &["publish", "docs", "isntall", "of-tomorrow", "unpublish", "uninst", "ins", "inst", "insta", "ad"]),
        ("pnpm", &["insta", "approve-builds", "patch"]),
        ("podman", &["kube play", "farm build", "untag"]),
        ("systemctl", &["condreload", "reload-or-try-restart", "kexec", "of-tomorrow", "mount-image"]),
        ("uv", &["pip sync", "sync", "publish"]),
        ("yarn", &["workspaces of-tomorrow", "upgrade-interactive", "node", "unplug"]),
    ] {
        for verb in verbs {
            let head = format!("{program} {verb}");
            let one = format!("{head} acme-x");
            let refused = ["db", "./evil", "acme-y db", "-- db", "--verbose db", "acme-x/../db"]
                .map(|word| format!("{one} {word}"));
            families(&[
                (&format!("{head} acme-*"), &[&one], &refused.each_ref().map(String::as_str)),
                (&format!("{head} *"), &[&one, &format!("{one} db")], &[]),
            ]);
        }
    }
    for verb in ["ins", "inst", "insta", "exe", "ini", "publish", "diff", "pack", "update", "upd"] {
        let call = |package: &str| format!("npm {verb} {package}");
        let refused = ["acme-x/evil", "acme-x@.evil", "acme-x@..", "acme-x@a/b", "acme-x@npm:y"].map(call);
        families(&[(&call("acme-*"), &[&call("acme-x"), &call("acme-x@1")], &refused.each_ref().map(String::as_str))]);
    }
    families(&[
        ("docker --of-tomorrow a logs web-*", &["docker --of-tomorrow a logs web-1 web-2"], &[]),
        ("docker logs web-*", &["docker logs web-1 db"], &[]),
        ("gh repo clone acme/*", &["gh repo clone acme/x notes"], &[]),
        ("gh pr view feature-*", &["gh pr view feature-x --json title"], &[]),
        ("kubectl describe pod web-*", &["kubectl describe pod web-1 web-2"], &["kubectl describe pod web-1 db"]),
        ("kubectl get pod/web-*", &["kubectl get pod/web-1 -o wide"], &["kubectl get pod/web-1 secret/db -o yaml"]),
        ("kubectl get Secret web-*", &["kubectl get Secret web-1"], &["kubectl get Secret web-1 db"]),
        ("kubectl get secret,cm web-*", &["kubectl get secret,cm web-1"], &["kubectl get secret,cm web-1 db"]),
        ("npm run build-*", &["npm run build-x y", "npm run build-x -- y/z"], &[]),
        ("npm test unit-*", &["npm test unit-x y"], &[]),
        ("pip show acme-*", &["pip show acme-x db"], &[]),
        ("systemctl status bot-*", &["systemctl status bot-1 sshd"], &[]),
        ("uv run acme-*", &["uv run acme-x y"], &[]),
    ]);
}

/// Of a pod or a package the star is in the name, and what is run is the image's own or none.
#[test]
fn a_star_in_the_name_of_a_pod_or_a_package_lets_no_command_follow() {
    for (rule, name) in [
        ("kubectl run --image=acme/x bot-*", "bot-1"),
        ("kubectl run --image acme/x bot-*", "bot-1"),
        ("kubectl -n web run --image=acme/x bot-*", "bot-1"),
        ("kubectl run bot-1 --image=acme/*", "bot-1"),
        ("kubectl create job --image=acme/x bot-*", "bot-1"),
        ("kubectl create job --image acme/x bot-*", "bot-1"),
        ("kubectl create cronjob --image=acme/x --schedule=@daily bot-*", "bot-1"),
        ("kubectl create deployment bot-* --image=acme/*", "bot-1"),
        ("kubectl create deployment --image=acme/x bot-*", "bot-1"),
        ("kubectl create deploy --image=acme/x bot-*", "bot-1"),
        ("kubectl create cj --image=acme/x --schedule=@daily bot-*", "bot-1"),
        ("kubectl debug --image=acme/x pod/web-*", "pod/web-1"),
        ("kubectl debug pod/web-1 --image=acme/*", "pod/web-1"),
        ("npm explore acme-*", "acme-1"),
        ("npm explor acme-*", "acme-1"),
        ("npm expl acme-*", "acme-1"),
        ("pnpm explore acme-*", "acme-1"),
        ("ssh web kubectl run --image=acme/x bot-*", "bot-1"),
        ("sudo kubectl create job --image=acme/x bot-*", "bot-1"),
    ] {
        let call = rule.replace('*', "1");
        let more =
            ["-- sh -c evil", "sh -c evil", "sh", "-- sh", "-- find . -delete", "--command -- sh", "-- --", "-q -- sh"];
        let refused =
            [more.map(|more| format!("{call} {more}")), more.map(|more| format!("{call} {name} {more}"))].concat();
        let refused: Vec<&str> = refused.iter().map(String::as_str).collect();
        families(&[(rule, &[&call], &refused)]);
    }
    families(&[
        ("kubectl create configmap bot-*", &["kubectl create configmap bot-1 --dry-run=client"], &[]),
        ("kubectl create job bot --image=acme/x -- ls *", &["kubectl create job bot --image=acme/x -- ls a b"], &[]),
        ("kubectl create -f k8s/*", &["kubectl create -f k8s/a"], &[]),
        ("kubectl exec web-* -- ls notes/*", &["kubectl exec web-1 -- ls notes/a"], &[]),
        ("kubectl run bot --image=acme/x -- ls notes/*", &["kubectl run bot --image=acme/x -- ls notes/a"], &[]),
        ("kubectl run bot --image=acme/x *", &["kubectl run bot --image=acme/x -- sh"], &[]),
        ("npm explore acme-*", &[], &["npm explore acme-1>x", "npm explore acme-1[x]", "npm explore acme-1/evil"]),
        ("npm explore acme -- ls *", &["npm explore acme -- ls a b"], &[]),
    ]);
}

/// tmux takes each beginning of a subcommand's name.
#[test]
fn an_abbreviation_of_a_subcommand_of_tmux_lets_no_command_follow() {
    const FULL: [&str; 9] = [
        "display-popup",
        "if-shell",
        "new-session",
        "new-window",
        "pipe-pane",
        "respawn-pane",
        "respawn-window",
        "run-shell",
        "split-window",
    ];
    let short = FULL.iter().flat_map(|name| (1..name.len()).map(|end| &name[..end]));
    // Others have a further command, too, or set one.
    let others = [
        "bind",
        "bind-key",
        "command-prompt",
        "confirm",
        "confirm-before",
        "choose-tree",
        "displayp",
        "display-panes",
        "set",
        "set-hook",
        "set-op",
        "source",
        "wait",
    ];
    for verb in short.chain(FULL).chain(others).filter(|verb| !["a", "display"].contains(verb)) {
        let call = format!("tmux {verb} -t bot-1");
        let refused = ["evil", "evil x", "bot-1", "-- evil"].map(|more| format!("{call} {more}"));
        let refused = refused.each_ref().map(String::as_str);
        families(&[(&format!("tmux {verb} -t bot-*"), &[&call], &refused)]);
        families(&[(&format!("tmux -L bot {verb} -t bot-*"), &[], &[&format!("tmux -L bot {verb} -t bot-1 evil")])]);
        families(&[(&format!("ssh web tmux {verb} -t bot-*"), &[], &[&format!("ssh web tmux {verb} -t bot-1 evil")])]);
    }
    families(&[
        ("tmux -L bot send-keys -t bot-*", &["tmux -L bot send-keys -t bot-1 ls Enter"], &[]),
        ("tmux send -t bot-*", &["tmux send -t bot-1 ls Enter"], &[]),
        ("tmux kill-ses -t bot-*", &["tmux kill-ses -t bot-1"], &[]),
        ("tmux detach-client -s bot-*", &["tmux detach-client -s bot-1"], &["tmux detach-client -s bot-1 -E evil"]),
        (
            "tmux detach -s bot-*",
            &["tmux detach -s bot-1"],
            &["tmux detach -s bot-1 -Eevil", "tmux detach -s bot-1 -aE evil"],
        ),
        ("tmux split -h *", &["tmux split -h htop"], &[]),
    ]);
}

/// Behind the name it is granted, too.
#[test]
fn a_harmless_option_stands_in_front_of_the_rules_name_as_well() {
    for (rule, option, one, other) in [
        ("git merge bot/*", "--no-ff", "git merge bot/x", "main"),
        ("git merge bot/*", "--no-edit", "git merge bot/x", "main"),
        ("git cherry-pick bot/*", "-x", "git cherry-pick bot/x", "main"),
        ("git cherry-pick bot/*", "--signoff", "git cherry-pick bot/x", "main"),
        ("git revert bot/*", "--no-edit", "git revert bot/x", "main"),
        ("git pull origin bot/*", "--rebase", "git pull origin bot/x", "main"),
        ("git pull origin bot/*", "--ff-only", "git pull origin bot/x", "main"),
        ("pip install acme-*", "-q", "pip install acme-x", "evil"),
        ("pip install acme-*", "--upgrade", "pip install acme-x", "evil"),
        ("pip install acme-*", "-qU", "pip install acme-x", "-e ./evil"),
        ("pytest tests/*", "-x", "pytest tests/a.py", "-p evil"),
        ("pytest tests/*", "-vxq", "pytest tests/a.py", "-c evil"),
    ] {
        let front = one.rsplit_once(' ').map(|(head, name)| format!("{head} {option} {name}")).unwrap();
        let refused =
            [format!("{one} {option} {other}"), format!("{front} {other}"), format!("{front} {option} {other}")];
        families(&[(rule, &[&front, &format!("{one} {option}")], &refused.each_ref().map(String::as_str))]);
    }
    families(&[
        ("git pull origin *", &["git pull --rebase origin main", "git pull --prune origin main"], &[]),
        ("git fetch origin *", &["git fetch --prune origin main"], &["git fetch --prune-tags origin main"]),
        (
            "git pull --ff-only origin *",
            &["git pull --ff-only origin main"],
            &["git pull --rebase --ff-only origin main"],
        ),
        ("git pull --rebase origin *", &[], &["git pull --rebase --no-rebase origin main", "git pull origin main"]),
        ("git merge --no-ff bot/*", &["git merge --no-ff bot/x"], &["git merge bot/x", "git merge --no-ff --ff bot/x"]),
        ("git merge bot/*", &[], &["git merge -m --no-ff main", "git merge --no-ff -m bot/x main"]),
        ("git branch bot/*", &[], &["git branch -qD bot/x", "git branch -q -D bot/x"]),
        ("git merge main", &["git merge -q main"], &["git merge --no-ff main"]),
        (
            "pip install acme-*",
            &[],
            &["pip install -q -r acme-x", "pip install -qr acme-x", "pip install -q -t acme-x y"],
        ),
    ]);
}
