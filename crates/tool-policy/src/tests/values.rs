//! A star alone behind an option, or in its value, at the end of a rule. It stands for that value only, unless the option is known to have
//! none.

use super::*;

/// Checks that a rule's star stands for a value, and for no word behind it.
fn stands_for_value(rule: &str, value: &str, others: &[&str]) {
    stands_for(rule, &rule.replace('*', value), others);
}

/// The subcommand does the same with each word behind it, and the rule may name one or none.
#[test]
fn a_star_behind_an_option_stands_for_its_value_only() {
    for (head, options, value, other) in [
        ("apt install", &["-t", "--target-release", "-o", "-a"][..], "stable", "evil"),
        ("apt-get install acme", &["-t", "-c"], "stable", "evil"),
        ("bun install", &["--cwd", "-c", "--registry"], "x", "evil"),
        ("cargo install", &["--path", "--git", "--root", "--version", "-F", "--of-tomorrow"], "x", "evil"),
        ("cargo install acme", &["--version", "--vers", "--locked --version", "--features", "--root"], "1.0", "evil"),
        ("cargo update", &["-p", "--precise"], "x", "evil"),
        ("docker compose restart", &["-t", "--timeout", "--of-tomorrow"], "5", "db"),
        ("docker compose stop", &["-t", "--timeout"], "5", "db"),
        ("docker compose up -d", &["-t", "--timeout", "--scale"], "5", "db"),
        ("docker stop", &["-t", "--time", "-s"], "5", "db"),
        ("gh gist create", &["-d", "--desc", "-f"], "text", "secret"),
        ("gh release create", &["-t", "--title", "--notes", "-n", "--target"], "x", "secret"),
        ("git cherry-pick bot/x", &["-X", "--cleanup", "-m", "--strategy", "--strategy-option"], "ours", "prod"),
        ("git merge bot/x", &["-X", "-F", "-m", "--cleanup", "--into-name", "--strategy-option"], "ours", "prod"),
        ("git pull origin main", &["-X", "--depth", "--shallow-since", "--deepen", "-j"], "5", "prod"),
        ("git push origin bot/x", &["-o", "--repo", "--push-option"], "a", "prod"),
        ("git rebase main", &["-X", "--onto", "--whitespace", "-C"], "fix", "prod"),
        ("git revert bot/x", &["-m", "-X"], "1", "prod"),
        ("git tag -f v1", &["--local-user", "-u", "-m", "-F", "--cleanup"], "a", "prod"),
        ("kubectl delete", &["-f", "-k", "-n", "-l", "--filename"], "a.yaml", "evil"),
        ("kubectl delete pod", &["-n", "-l", "--of-tomorrow"], "a", "evil"),
        ("npm install", &["--prefix", "-w", "--registry", "--omit", "-C", "--of-tomorrow"], "x", "./evil"),
        ("npm pack", &["--pack-destination"], "x", "./evil"),
        ("npm publish", &["--tag", "--otp", "--access", "--registry"], "x", "./evil"),
        ("npm uninstall", &["--prefix", "-w"], "x", "evil"),
        ("npm update", &["--prefix", "-w"], "x", "evil"),
        ("pip install", &["-r", "-e", "--target", "--of-tomorrow"], "x", "evil"),
        ("pip install acme", &["--timeout", "--python"], "5", "evil"),
        ("pipx install", &["--python", "--suffix"], "x", "evil"),
        ("pnpm install", &["--dir", "-C", "--filter", "--of-tomorrow"], "x", "./evil"),
        ("pnpm publish", &["--tag", "--otp"], "x", "./evil"),
        ("poetry add", &["--group", "--source", "-G"], "x", "evil"),
        ("systemctl kill", &["-s", "--signal", "--kill-whom"], "TERM", "sshd"),
        ("systemctl restart bot", &["-H", "--job-mode", "-n"], "5", "sshd"),
        ("systemd-run --user --unit bot", &["--on-calendar", "--nice", "--uid", "--working-directory"], "5", "evil"),
        ("tmux new-session -d -s bot", &["-c", "-e", "-F", "-f", "-t", "-x"], "out", "evil"),
        ("tmux new-window", &["-c", "-e", "-n", "-F"], "out", "evil"),
        ("tmux popup", &["-w", "-T", "-d", "-h", "-S"], "out", "evil"),
        ("tmux respawn-pane -k", &["-c", "-e", "-t"], "out", "evil"),
        ("tmux run-shell", &["-d", "-c", "-t"], "1", "evil"),
        ("tmux split-window", &["-c", "-l", "-p", "-e", "-t"], "out", "evil"),
        ("tmux confirm-before", &["-p", "-t"], "out", "evil"),
        ("uv add", &["-r", "--group", "--index", "--of-tomorrow"], "x", "evil"),
        ("uv pip install", &["-r", "--python", "-e"], "x", "evil"),
        ("yarn install", &["--cwd", "--modules-folder"], "x", "./evil"),
        ("yarn publish", &["--tag", "--new-version"], "x", "./evil"),
    ] {
        for option in options {
            stands_for_value(
                &format!("{head} {option} *"),
                value,
                &[other, &format!("{other} x"), &format!("-- {other}")],
            );
        }
    }
}

/// The value may be attached.
#[test]
fn a_star_in_an_attached_value_stands_for_that_value_only() {
    for (rule, value, other) in [
        ("apt upgrade --target-release=*", "stable", "evil"),
        ("cargo install --path=*", "x", "evil"),
        ("cargo install acme --version=*", "1.0", "evil"),
        ("docker compose restart --timeout=*", "5", "db"),
        ("git merge bot/x -X*", "ours", "prod"),
        ("git pull origin main --depth=*", "5", "prod"),
        ("kubectl delete --filename=*", "a.yaml", "evil"),
        ("npm install --prefix=*", "site", "./evil"),
        ("npm publish --tag=*", "beta", "./evil"),
        ("pip install --target=*", "lib", "evil"),
        ("pnpm install --dir=*", "site", "./evil"),
        ("systemctl kill --signal=*", "9", "sshd"),
        ("tmux new-session -d -s bot -c*", "out", "evil"),
        ("uv add --group=*", "dev", "evil"),
        ("yarn install --cwd=*", "site", "./evil"),
    ] {
        stands_for_value(rule, value, &[other, &format!("-- {other}")]);
    }
}

/// A known switch has no value, so the star behind it stands for words.
#[test]
fn a_star_behind_a_known_switch_stands_for_words() {
    for rule in [
        "apt install -y *",
        "apt remove --purge *",
        "brew install --cask *",
        "bun add -d *",
        "cargo add --dev *",
        "cargo install --force *",
        "docker compose up -d *",
        "docker compose up -d --remove-orphans *",
        "docker image rm -f *",
        "docker rm -f *",
        "docker rmi -f *",
        "docker volume rm -f *",
        "git branch -D *",
        "git branch -qD *",
        "git cherry-pick -x *",
        "git merge --no-ff *",
        "git pull --rebase *",
        "git push -fu *",
        "git push --force-with-lease *",
        "git rebase -i *",
        "git tag -d *",
        "git worktree remove --force *",
        "kubectl delete pod --now *",
        "npm install -g *",
        "npm install --ignore-scripts *",
        "npm install --legacy-peer-deps *",
        "npm uninstall -g *",
        "pip install -U *",
        "pip install --no-deps *",
        "pipx install --force *",
        "pnpm add -D *",
        "pnpm add -g *",
        "systemctl enable --now *",
        "systemctl restart --no-block *",
        "screen -S bot -X *",
        "systemd-run --user --pty *",
        "tmux new-session -d *",
        "tmux split-window -hd *",
        "uv add --dev *",
        "yarn add --dev *",
    ] {
        families(&[(rule, &[&rule.replace('*', "x"), &rule.replace('*', "x y")], &[])]);
    }
}

/// That holds for each program and each subcommand that the table has, since nobody lists the options of all.
#[test]
fn a_star_behind_an_option_that_no_table_has_stands_for_its_value_only() {
    use crate::programs::{Class, contains, named, names_of};
    let classes = [Class::Changes, Class::Fetches, Class::Runs, Class::Unknown];
    let programs = classes.into_iter().flat_map(names_of).filter(|name| named(name).subcommands);
    let mut checked = 0;
    for program in programs.chain(["tmux", "systemd-run"]) {
        let entry = named(program);
        let verbs = [entry.alike, entry.assigning, entry.commanded].into_iter().flat_map(str::split_whitespace);
        for verb in verbs.filter(|verb| *verb != "*") {
            let spelled = match verb.split_once('-') {
                Some((group, rest)) if contains(entry.groups, group) => format!("{group} {rest}"),
                _ => verb.to_owned(),
            };
            for option in ["--of-tomorrow ", "-Y ", "--of-tomorrow="] {
                let call = format!("{program} {spelled} {option}");
                families(&[(&format!("{call}*"), &[], &[&format!("{call}x evil"), &format!("{call}x -- evil")])]);
            }
            checked += 1;
        }
    }
    assert!(checked > 300, "{checked}");
}

/// Alone it is the standard input, the branch before, or a package.
#[test]
fn a_dash_alone_is_an_operand() {
    for (rule, call) in [
        ("cargo install acme-*", "cargo install acme-x"),
        ("docker rm web-*", "docker rm web-1"),
        ("gh gist create out/*", "gh gist create out/a"),
        ("gh release upload v1 dist/*", "gh release upload v1 dist/a"),
        ("git branch -D bot/*", "git branch -D bot/x"),
        ("git checkout bot/*", "git checkout bot/x"),
        ("git cherry-pick bot/*", "git cherry-pick bot/x"),
        ("git merge bot/*", "git merge bot/x"),
        ("git push origin bot/*", "git push origin bot/x"),
        ("kubectl delete pod web-*", "kubectl delete pod web-1"),
        ("kubectl set env deploy/web A=*", "kubectl set env deploy/web A=1"),
        ("npm install --prefix *", "npm install --prefix site"),
        ("npm install acme-*", "npm install acme-x"),
        ("pip install acme-*", "pip install acme-x"),
        ("systemctl restart bot-*", "systemctl restart bot-1"),
        ("tmux new -d -s bot-*", "tmux new -d -s bot-1"),
    ] {
        families(&[(rule, &[call], &[&format!("{call} -"), &format!("{call} -- -"), &format!("{call} - -q")])]);
    }
}

/// What nobody knows keeps to the names of the rule, so each program needs a list of what does not.
#[test]
fn each_program_with_subcommands_has_those_of_which_a_further_operand_may_be_anything() {
    use crate::programs::{Class, named, names_of};
    let classes = [Class::Changes, Class::Fetches, Class::Reads, Class::Runs, Class::Unknown];
    for name in classes.into_iter().flat_map(names_of) {
        let entry = named(name);
        let is_listed = entry.is_git() || !entry.unlike.is_empty();
        assert!(entry.alike.is_empty() || is_listed, "{name}");
    }
}

#[test]
fn a_known_manager_of_packages_is_known_in_each_spelling() {
    for head in [
        "cargo binstall",
        "cargo binstall --locked",
        "corepack npm install",
        "corepack pnpm add",
        "corepack pnpm@9.1 add",
        "corepack yarn add",
        "kubectl krew install",
        "npm exec pnpm@9 add",
        "npx -y pnpm@9 add",
        "npx pnpm add",
        "npx pnpm@latest add",
        "pipx run uv@0.5 add",
        "pnpm dlx npm@10 install",
        "python3 -Im pip install",
        "python3 -Impip install",
        "python3 -m pip install",
        "python3 -mpip install",
        "python3 -mpip3 install",
        "python3.11 -umpip install",
        "ssh web python3 -mpip install",
        "sudo npx pnpm@9 add",
        "sudo python3 -mpip install",
        "uv run python3 -mpip install",
        "uvx uv@0.5 add",
    ] {
        let one = format!("{head} acme-x");
        let mut refused = ["evil", "acme-y evil", "./evil", "-- evil"].map(|more| format!("{one} {more}")).to_vec();
        if !head.contains("krew") && !head.contains("binstall") {
            refused.push(format!("{head} acme-x/evil"));
        }
        let refused: Vec<&str> = refused.iter().map(String::as_str).collect();
        families(&[(&format!("{head} acme-*"), &[&one, &format!("{one} acme-y")], &refused)]);
        families(&[(&format!("{head} --of-tomorrow *"), &[], &[&format!("{head} --of-tomorrow x evil")])]);
    }
}

#[test]
fn a_subcommand_of_git_that_is_a_program_is_judged_as_the_subcommand() {
    for folder in ["", "/usr/lib/git-core/", "sudo /usr/lib/git-core/"] {
        for (rule, call, others) in [
            ("git-branch -D bot/*", "git-branch -D bot/x", &["main", "-f"][..]),
            ("git-push origin bot/*", "git-push origin bot/x", &["main", "--force", "--delete", "+main"]),
            ("git-merge bot/x -X *", "git-merge bot/x -X ours", &["main"]),
            ("git-cherry-pick bot/*", "git-cherry-pick bot/x", &["main", "--all"]),
        ] {
            let call = format!("{folder}{call}");
            let refused: Vec<String> = others.iter().map(|other| format!("{call} {other}")).collect();
            let refused: Vec<&str> = refused.iter().map(String::as_str).collect();
            families(&[(&format!("{folder}{rule}"), &[&call], &refused)]);
        }
    }
    families(&[
        ("git-cliff *", &["git-cliff --output x", "git-cliff a b"], &[]),
        ("git-log *", &["git-log -3 main"], &[]),
    ]);
}

/// A subcommand that no table has, and one that fetches or deletes.
#[test]
fn more_subcommands_keep_to_the_names_of_the_rule() {
    for (rule, call, others) in [
        ("bun of-tomorrow acme-*", "bun of-tomorrow acme-x", &["evil"][..]),
        ("cargo of-tomorrow acme-*", "cargo of-tomorrow acme-x", &["evil"]),
        ("cargo owner --add bot-*", "cargo owner --add bot-x", &["evil"]),
        ("deno of-tomorrow acme-*", "deno of-tomorrow acme-x", &["evil"]),
        ("git lfs push origin bot/*", "git lfs push origin bot/x", &["main", "--all"]),
        ("git lfs unlock data/*", "git lfs unlock data/x", &["evil", "--force", "-f"]),
        ("git of-tomorrow bot/*", "git of-tomorrow bot/x", &["main"]),
        ("git reflog delete bot/*", "git reflog delete bot/x", &["main@{0}"]),
        ("git replace -d bot/*", "git replace -d bot/x", &["main"]),
        ("git submodule sync libs/*", "git submodule sync libs/x", &["evil"]),
        ("git submodule update --init libs/*", "git submodule update --init libs/x", &["evil"]),
        ("go of-tomorrow acme/*", "go of-tomorrow acme/x", &["evil"]),
        ("kubectl of-tomorrow web-*", "kubectl of-tomorrow web-1", &["db"]),
        ("loginctl of-tomorrow bot-*", "loginctl of-tomorrow bot-1", &["root"]),
        ("terraform taint acme.*", "terraform taint acme.x", &["evil"]),
        ("terraform workspace delete bot-*", "terraform workspace delete bot-1", &["prod"]),
    ] {
        stands_for(rule, call, others);
    }
    families(&[
        ("bun main.ts out-*", &["bun main.ts out-1 x"], &[]),
        ("cargo test unit-*", &["cargo test unit-1 -- x"], &[]),
        ("deno run main.ts out-*", &["deno run main.ts out-1 x"], &[]),
        ("git add notes/*", &["git add notes/a notes/b"], &[]),
        ("git remote add up*", &["git remote add up https://h/x"], &[]),
        ("go test ./pkg/*", &["go test ./pkg/a ./pkg/b"], &[]),
        ("kubectl get pods web-*", &["kubectl get pods web-1 web-2"], &[]),
        ("kubectl rollout status deploy/web-*", &["kubectl rollout status deploy/web-1"], &[]),
        ("kubectl top pod web-*", &["kubectl top pod web-1"], &[]),
        ("terraform plan -target=acme.*", &["terraform plan -target=acme.x"], &[]),
    ]);
}

/// Checks that a rule grants a call, and none with another word behind it.
fn stands_for(rule: &str, call: &str, others: &[&str]) {
    let refused: Vec<String> = others.iter().map(|other| format!("{call} {other}")).collect();
    families(&[(rule, &[call], &refused.iter().map(String::as_str).collect::<Vec<_>>())]);
}

/// Each of these shows what is in it.
#[test]
fn a_star_in_the_name_of_a_secret_shows_no_other_one() {
    for (rule, call, others) in [
        ("docker compose logs web-*", "docker compose logs web-1", &["db"][..]),
        ("docker compose stats web-*", "docker compose stats web-1", &["db"]),
        ("docker compose top web-*", "docker compose top web-1", &["db"]),
        ("docker config inspect web-*", "docker config inspect web-1", &["db"]),
        ("docker container inspect web-*", "docker container inspect web-1", &["db", "-- db"]),
        ("docker image inspect acme/*", "docker image inspect acme/x", &["evil/x"]),
        ("docker inspect --type=container web-*", "docker inspect --type=container web-1", &["db"]),
        ("docker inspect web-*", "docker inspect web-1", &["db", "-s db", "-f x db", "-- db"]),
        ("docker manifest inspect acme/*", "docker manifest inspect acme/x", &["evil/x"]),
        ("docker network inspect web-*", "docker network inspect web-1", &["db"]),
        ("docker secret inspect web-*", "docker secret inspect web-1", &["db"]),
        ("docker service logs web-*", "docker service logs web-1", &["db"]),
        ("docker stats web-*", "docker stats web-1", &["db", "--no-stream db"]),
        ("docker volume inspect web-*", "docker volume inspect web-1", &["db"]),
        ("docker-compose logs web-*", "docker-compose logs web-1", &["db"]),
        ("podman inspect web-*", "podman inspect web-1", &["db"]),
        ("kubectl -n * get secret bot-*", "kubectl -n web get secret bot-1", &["db"]),
        ("kubectl describe secret bot-*", "kubectl describe secret bot-1", &["db"]),
        ("kubectl get secret bot-*", "kubectl get secret bot-1", &["db", "db -o yaml", "-o yaml db"]),
        ("kubectl get secret/bot-*", "kubectl get secret/bot-1", &["secret/db"]),
        ("kubectl get secrets bot-1 -o *", "kubectl get secrets bot-1 -o yaml", &["db"]),
    ] {
        stands_for(rule, call, others);
    }
    families(&[
        ("docker inspect *", &["docker inspect a b", "docker inspect -f x a b"], &[]),
        ("docker inspect web-*", &["docker inspect web-1 web-2", "docker inspect web-1 -f x"], &[]),
        ("docker compose logs web-*", &["docker compose logs web-1 --tail 5 web-2"], &[]),
        ("docker port web-*", &["docker port web-1 80"], &[]),
        ("docker top web-*", &["docker top web-1"], &[]),
        ("kubectl get secret *", &["kubectl get secret a b -o yaml"], &[]),
    ]);
}

/// No sandbox holds it.
#[test]
fn a_star_in_a_path_leads_nowhere_else_for_what_runs_outside_of_every_sandbox() {
    for rule in [
        "doas -u bot cat /var/log/bot/*",
        "doas cat /var/log/bot/*",
        "pkexec --user bot cat /var/log/bot/*",
        "pkexec /srv/scripts/*.sh",
        "pkexec cat /var/log/bot/*",
        "run0 --user=bot /srv/scripts/*.sh",
        "run0 -u bot cat /var/log/bot/*",
        "run0 cat /var/log/bot/*",
        "ssh web cat /srv/cache/*",
        "ssh web rm -r /srv/cache/*/tmp",
        "sudo /srv/scripts/*",
        "sudo /srv/scripts/*.sh",
        "sudo -u bot /srv/scripts/*.sh",
        "sudo cat /var/log/bot/*.log",
        "systemd-run --user /srv/scripts/*.sh",
    ] {
        let call = |text: &str| rule.replace('*', text);
        let refused = ["../x", "x/../../y", "../../bin/sh"].map(call);
        families(&[(rule, &[&call("x"), &call("a.b"), &call("a..b")], &refused.each_ref().map(String::as_str))]);
    }
}

/// Their options say as whom a command runs, and in which folder. Behind it the options are its own.
#[test]
fn a_star_behind_a_command_with_other_rights_stands_for_its_own_options() {
    for program in ["doas", "pkexec", "run0", "sudo"] {
        families(&[
            (
                &format!("{program} find /srv *"),
                &[&format!("{program} find /srv -name x")],
                &[&format!("{program} find /srv -delete"), &format!("{program} -u x find /srv")],
            ),
            (
                &format!("{program} systemctl restart web-*"),
                &[&format!("{program} systemctl restart web-1 -n 5")],
                &[
                    &format!("{program} systemctl restart web-1 sshd"),
                    &format!("{program} systemctl restart web-1 -H h"),
                ],
            ),
            (
                &format!("{program} * uptime"),
                &[],
                &[&format!("{program} --user=x uptime"), &format!("{program} -u x uptime")],
            ),
        ]);
    }
}

/// Behind the name they are granted, too. They say how much is printed, how a package is kept, or what is asked.
#[test]
fn a_known_option_of_a_subcommand_stands_in_front_of_the_name() {
    for (rule, options, one, other) in [
        ("apt install acme-*", &["-y", "-qy", "--no-install-recommends", "-y --no-upgrade"][..], "acme-x", "evil"),
        ("apt-get install acme-*", &["-y", "--yes", "-yq"], "acme-x", "evil"),
        ("brew install acme-*", &["--cask", "-q"], "acme-x", "evil"),
        ("cargo add acme-*", &["-q", "--offline"], "acme-x", "evil"),
        ("cargo install acme-*", &["--locked", "-q --locked"], "acme-x", "evil"),
        ("docker compose restart web-*", &["-t 5"], "web-1", "db"),
        ("docker compose up -d web-*", &["--build", "--no-deps"], "web-1", "db"),
        ("docker pull acme/*", &["-q", "--quiet"], "acme/x", "evil/x"),
        ("docker stop web-*", &["-t 5", "--time 5", "--time=5"], "web-1", "db"),
        ("git merge bot/*", &["--no-ff", "-q"], "bot/x", "main"),
        ("git pull origin bot/*", &["--rebase", "--ff-only"], "bot/x", "main"),
        ("git push origin bot/*", &["-u", "-q"], "bot/x", "main"),
        ("npm i acme-*", &["-D", "--save-dev", "-E", "-s"], "acme-x", "evil"),
        ("npm install acme-*", &["-D", "--save-dev", "-D -E", "--no-audit --no-fund"], "acme-x", "evil"),
        ("npm uninstall acme-*", &["-D"], "acme-x", "evil"),
        ("pip install acme-*", &["-q", "-U"], "acme-x", "evil"),
        ("pipx install acme-*", &["-q"], "acme-x", "evil"),
        ("pnpm add acme-*", &["-D", "-E", "--save-dev"], "acme-x", "evil"),
        ("uv add acme-*", &["--dev", "-q"], "acme-x", "evil"),
        ("yarn add acme-*", &["-D", "--dev", "--exact"], "acme-x", "evil"),
        ("apt install acme-*", &["-s", "--dry-run", "-sy"], "acme-x", "evil"),
        ("brew upgrade acme-*", &["--dry-run"], "acme-x", "evil"),
        ("cargo add acme-*", &["--dev", "--optional", "--dry-run"], "acme-x", "evil"),
        ("cargo remove acme-*", &["--dev", "--build"], "acme-x", "evil"),
        ("cargo update acme-*", &["--dry-run"], "acme-x", "evil"),
        ("docker compose build web-*", &["--no-cache", "-q", "-q --no-cache"], "web-1", "db"),
        ("docker compose pull web-*", &["--ignore-pull-failures"], "web-1", "db"),
        ("docker compose restart web-*", &["--no-deps"], "web-1", "db"),
        ("docker container inspect web-*", &["-s", "--size"], "web-1", "db"),
        ("docker inspect web-*", &["-s", "--size"], "web-1", "db"),
        ("docker stats web-*", &["--no-stream", "--no-trunc"], "web-1", "db"),
        ("kubectl delete pod web-*", &["--wait", "--ignore-not-found"], "web-1", "db"),
        ("kubectl get secret web-*", &["-o yaml", "-o=yaml", "--output json", "--no-headers"], "web-1", "db"),
        ("npm install acme-*", &["-S", "--save", "--save-prod", "--no-progress"], "acme-x", "evil"),
        ("npm uninstall acme-*", &["--save"], "acme-x", "evil"),
        ("pip install acme-*", &["--no-cache-dir", "--no-deps", "--pre", "--no-input"], "acme-x", "evil"),
        ("pip uninstall acme-*", &["-y", "--yes", "-qy"], "acme-x", "evil"),
        ("pnpm remove acme-*", &["-D"], "acme-x", "evil"),
        ("pnpm update acme-*", &["-D", "--save-dev"], "acme-x", "evil"),
        ("systemctl restart web-*", &["--no-block", "--no-ask-password", "-q --no-block"], "web-1", "db"),
    ] {
        let (head, _) = rule.rsplit_once(' ').unwrap();
        for option in options {
            let call = format!("{head} {option} {one}");
            stands_for(rule, &call, &[other, &format!("-- {other}")]);
            let others = [format!("{head} {option} {other}"), format!("{head} {option} {other} {one}")];
            families(&[(rule, &[], &others.each_ref().map(String::as_str))]);
        }
    }
    families(&[
        ("gh issue view 1*", &["gh issue view -c 12", "gh issue view --comments 12"], &["gh issue view -w 12"]),
        ("gh pr diff 1*", &["gh pr diff --name-only 12"], &["gh pr diff 2"]),
        ("gh pr view 1*", &["gh pr view --comments 12"], &["gh pr view --web 12", "gh pr view --comments 2"]),
        ("gh run view 1*", &["gh run view --log 12", "gh run view --log-failed 12"], &["gh run view -j 1 12"]),
        ("gh run watch 1*", &["gh run watch --exit-status 12"], &["gh run watch --exit-status 2"]),
        ("kubectl logs web-*", &["kubectl logs -p web-1", "kubectl logs --previous web-1"], &["kubectl logs -p db"]),
        ("npm test *", &["npm test -s"], &["npm test --require x"]),
        ("pnpm test *", &["pnpm test --watch"], &["pnpm test -r x", "pnpm test -P x", "pnpm test -S x"]),
        (
            "tmux capture-pane -t bot-*",
            &["tmux capture-pane -p -t bot-1", "tmux capture-pane -pt bot-1", "tmux capture-pane -pJ -t bot-1"],
            &["tmux capture-pane -p -t web", "tmux capture-pane -p -b x -t bot-1 web"],
        ),
        (
            "cargo add acme-*",
            &[],
            &["cargo add --git x acme-x", "cargo add --path x acme-x", "cargo add --dev x acme-x"],
        ),
        (
            "kubectl delete pod web-*",
            &[],
            &["kubectl delete pod --all web-1", "kubectl delete pod --force web-1", "kubectl delete pod --now web-1"],
        ),
        ("kubectl get pods web-*", &[], &["kubectl get pods -A web-1", "kubectl get pods --kubeconfig=x web-1"]),
        ("systemctl enable web-*", &[], &["systemctl enable --now web-1"]),
        (
            "docker compose build web-*",
            &[],
            &[
                "docker compose build --ssh default web-1",
                "docker compose build --build-arg x=y db",
                "docker compose build --push web-1",
            ],
        ),
        ("docker logs web-*", &["docker logs --tail 100 web-1", "docker logs -f -n 5 web-1"], &["docker logs -f db"]),
        ("docker compose logs web-*", &["docker compose logs -f --tail=5 web-1"], &["docker compose logs -f db"]),
        (
            "kubectl logs web-*",
            &["kubectl logs -f web-1", "kubectl logs -c app --tail 5 web-1"],
            &["kubectl logs -f db"],
        ),
        (
            "git tag v*",
            &["git tag -a v1 -m x", "git tag -am x v1", "git tag -a -m x v1", "git tag v1 -a -m x"],
            &[
                "git tag -a w1 -m x",
                "git tag -m v1 w1",
                "git tag -am v1 -f",
                "git tag -fa v1 -m x",
                "git tag -d -m x v1",
            ],
        ),
        (
            "git worktree add wt/*",
            &["git worktree add -b x wt/x"],
            &["git worktree add -b wt/x x", "git worktree add -B x wt/x", "git worktree add -f wt/x"],
        ),
        ("npm install acme-*", &[], &["npm install --prefix -D acme-x", "npm install -D --prefix x acme-x"]),
        ("apt install acme", &["apt install acme"], &["apt install -y acme"]),
        ("git push origin HEAD", &["git push origin HEAD"], &["git push -u origin HEAD"]),
        ("npm run build-*", &["npm run build-x"], &["npm run -D x build-x", "npm run x -D build-x"]),
        ("apt install -s acme-*", &["apt install -y -s acme-x"], &["apt install -y acme-x"]),
    ]);
}

/// With it the packages of every project in a workspace are changed.
#[test]
fn no_star_makes_pnpm_change_a_whole_workspace() {
    for verb in ["remove", "rm", "un", "uninstall", "up", "update", "upgrade"] {
        let call = |words: &str| format!("pnpm {verb} {words}");
        let refused = [
            "-r acme-x",
            "--recursive acme-x",
            "acme-x -r",
            "acme-x --recursive",
            "-Dr acme-x",
            "-D -r acme-x",
            "-rD acme-x",
        ];
        let refused = refused.map(call);
        let refused = refused.each_ref().map(String::as_str);
        families(&[
            (&call("acme-*"), &[&call("acme-x"), &call("-D acme-x")], &refused),
            (&call("acme-x"), &[&call("acme-x")], &refused),
            (&call("-r acme-*"), &[&call("-r acme-x")], &[&call("-r evil"), &call("acme-x")]),
            (&call("--recursive acme-*"), &[&call("--recursive acme-x")], &[&call("--recursive evil")]),
        ]);
    }
}

/// For `docker` it is a number of lines.
#[test]
fn a_letter_that_is_a_switch_for_podman_has_no_value() {
    families(&[
        (
            "podman logs web-*",
            &["podman logs web-1", "podman logs -n web-1", "podman logs --tail 5 web-1", "podman logs -f web-1"],
            &["podman logs -n db web-1", "podman logs -fn db web-1", "podman logs web-1 -n db", "podman logs web-1 db"],
        ),
        ("docker logs web-*", &["docker logs -n 5 web-1", "docker logs -fn 5 web-1"], &["docker logs -n 5 db"]),
        ("docker compose logs web-*", &["docker compose logs -n 5 web-1"], &["docker compose logs -n 5 db"]),
    ]);
}

/// It prints the text of a template, whatever file that is.
#[test]
fn a_star_stands_for_no_template_in_a_file() {
    for rule in [
        "kubectl get pods web-*",
        "kubectl get pods *",
        "kubectl get *",
        "kubectl -n dev get pods web-*",
        "kubectl get secret web-*",
        "kubectl describe pods web-*",
        "kubectl delete pod web-*",
        "kubectl get pods web-1 -o *",
        "kubectl create configmap web-* --dry-run=client",
    ] {
        let head = rule.split('*').next().unwrap().replace("web-1 -o ", "web-");
        let call = format!("{head}{}", if head.ends_with('-') { "1" } else { "x" });
        let (front, name) = call.rsplit_once(' ').unwrap();
        for kind in ["go-template-file", "jsonpath-file", "custom-columns-file", "templatefile"] {
            for option in [
                "-o KIND=/x",
                "-oKIND=/x",
                "-o=KIND=/x",
                "--output KIND=/x",
                "--output=KIND=/x",
                "-Ao KIND=/x",
                "-wo=KIND=/x",
                "-o KIND --template=/x",
                "-o KIND --template /x",
                "--template=/x -oKIND",
            ] {
                let option = option.replace("KIND", kind);
                families(&[(rule, &[], &[&format!("{call} {option}"), &format!("{front} {option} {name}")])]);
            }
        }
    }
    families(&[
        (
            "kubectl get pods web-*",
            &[
                "kubectl get pods web-1 -o yaml",
                "kubectl get -o json pods web-1",
                "kubectl get pods web-1 -o jsonpath={.x}",
                "kubectl get pods web-1 -o go-template={{.x}}",
            ],
            &[],
        ),
        (
            "kubectl get pods web-* -o go-template-file=a.tpl",
            &["kubectl get pods web-1 -o go-template-file=a.tpl"],
            &["kubectl get pods web-1 -o go-template-file=b.tpl"],
        ),
        (
            "kubectl get pods -o go-template-file=a.tpl *",
            &["kubectl get pods -o go-template-file=a.tpl web-1"],
            &[
                "kubectl get pods -o go-template-file=a.tpl web-1 --template=/x",
                "kubectl get pods -o go-template-file=a.tpl -o go-template-file=/x",
            ],
        ),
    ]);
}

/// The same names are other pods there. A denial holds for each.
#[test]
fn no_star_of_kubectl_deletes_in_another_namespace() {
    let places = ["-n prod", "-nprod", "-n=prod", "-in prod", "--namespace=prod", "--namespace prod"];
    let others = ["-A", "--all-namespaces", "--context x", "--context=x", "--kubeconfig=x", "--server=x"];
    for kubectl in ["kubectl", "sudo kubectl", "ssh web kubectl"] {
        let behind = |place: &&str| format!("{kubectl} delete pod web-1 {place}");
        let in_front = |place: &&str| format!("{kubectl} {place} delete pod web-1");
        let between = |place: &&str| format!("{kubectl} delete {place} pod web-1");
        let lines = |places: &[&str]| -> Vec<String> {
            let lines = places.iter().map(behind).chain(places.iter().map(in_front));
            lines.chain(places.iter().map(between)).collect()
        };
        let all = lines(&[&places[..], &others].concat());
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let own = format!("{kubectl} delete pod web-1");
        let last = format!("{kubectl} delete pod web-1 --wait=false");
        for rule in ["web-*", "*", "web-1 *"] {
            families(&[(&format!("{kubectl} delete pod {rule}"), &[&own, &last], &all)]);
        }
        for place in places {
            let rule = format!("{kubectl} delete pod web-* {place}");
            let more = format!("{} -n x", behind(&place));
            families(&[
                (&rule, &[&behind(&place)], &[&more, &own]),
                (&format!("{rule} *"), &[&behind(&place)], &[&more]),
            ]);
        }
        grants(&allowing(&[&format!("Bash({kubectl} delete *)")]), &[&behind(&"-n prod")]);
    }
    let policy = denying(&["Bash(kubectl delete pod web-*)"]);
    for place in ["-n prod", "-nprod", "-n=prod", "--namespace=prod", "--namespace prod"] {
        denies(
            &policy,
            &[
                &format!("kubectl delete pod web-1 {place}"),
                &format!("kubectl delete {place} pod web-1"),
                &format!("kubectl {place} delete pod web-1"),
            ],
        );
        grants(&policy, &[&format!("kubectl delete pod db {place}"), &format!("kubectl {place} get pod web-1")]);
    }
    families(&[
        ("kubectl -n prod delete pod web-*", &["kubectl delete -n prod pod web-1"], &["kubectl -n x delete pod web-1"]),
        ("kubectl get pod web-*", &["kubectl get pod web-1 -n prod", "kubectl --namespace prod get pod web-1"], &[]),
    ]);
}

/// A program behind `sudo` is judged as without it.
#[test]
fn no_star_of_docker_shows_the_tasks_of_another_service() {
    for sudo in ["", "sudo "] {
        for head in ["docker node ps", "docker service ps", "podman container logs", "podman logs"] {
            let call = |names: &str| format!("{sudo}{head} {names}");
            families(&[(
                &call("web-*"),
                &[&call("web-1"), &call("web-1 web-2")],
                &[&call("web-1 db"), &call("db web-1"), &call("web-1 web-2 db"), &call("web-1 -- db")],
            )]);
        }
    }
    families(&[
        ("docker ps *", &["docker ps -a"], &[]),
        ("docker node ps *", &["docker node ps a b"], &[]),
        ("docker service ps web-*", &["docker service ps web-1 -q"], &["docker service ps web-1 --context=x"]),
        ("cat /srv/*", &["cat /srv/x", "cat /srv/x /etc/x"], &[]),
        ("sudo cat /srv/*", &["sudo cat /srv/x", "sudo cat /srv/x /etc/x"], &[]),
    ]);
}
