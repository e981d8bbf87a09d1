//! Stars in the place of a word that chooses what a program does.

use super::*;

/// Returns the call in which each star of a rule is one word.
fn call(rule: &str, word: &str) -> String {
    rule.replace('*', word)
}

#[test]
fn no_star_chooses_behind_options_of_which_nobody_knows_whether_they_have_a_value() {
    for rule in [
        "apt -y * x",
        "apt-get -y * x",
        "brew -q * x",
        "bun --bun run * x",
        "bun --hot * main.ts",
        "bun run --watch * main.ts",
        "cargo +nightly * x",
        "deno run --unstable * x.ts",
        "deno run --watch * x.ts",
        "deno run -NR * x.ts",
        "deno run -c deno.json * x.ts",
        "deno run -q * x.ts",
        "deno run -r * x.ts",
        "docker --context x * web",
        "docker -D * x",
        "expect -f * x",
        "go run -race * x",
        "go run -tags x * y",
        "java -Xmx1g * Main",
        "java -jar * deploy",
        "julia -t 4 * x.jl",
        "kubectl --context x * pods",
        "npm --prefix web * test",
        "npm exec -- * x",
        "npx -p x * y",
        "npx -y * x",
        "php -f * x",
        "pip --no-color * x",
        "pipx run --spec acme * x",
        "pnpm -r * test",
        "python3 -m * x",
        "sudo -n * ls",
        "sudo -u bot * ls",
        "systemctl --user * x",
        "terraform -chdir=x * y",
        "tsx watch * x.ts",
        "uv run --no-sync * x",
        "uv run --python 3.12 * x",
        "uv run --with acme * main.py",
        "uv run -p 3.12 * x",
        "uvx --from acme * x",
        "watch -n 2 * x",
        "zsh -o errexit * x",
    ] {
        families(&[(rule, &[], &[&call(rule, "evil"), &call(rule, "run"), &call(rule, "rm")])]);
    }
}

/// `gh pr list`, `docker exec CONTAINER COMMAND`
#[test]
fn no_star_stands_for_a_second_subcommand_or_for_a_command() {
    for rule in [
        "brew services * x",
        "docker compose * web",
        "docker container * x",
        "docker exec web * x",
        "flock lock * x",
        "gh pr * 5",
        "git -C x stash * y",
        "git remote * origin",
        "git stash * x",
        "git worktree * x",
        "kubectl exec web -- * x",
        "kubectl rollout * deploy/x",
        "npm config * x",
        "ssh web * restart",
        "terraform workspace * x",
        "uv pip * x",
    ] {
        families(&[(rule, &[], &[&call(rule, "rm"), &call(rule, "delete"), &call(rule, "drop")])]);
    }
}

#[test]
fn a_star_stands_for_the_value_of_a_known_option() {
    for rule in [
        "cargo test -p * --lib",
        "docker --context * ps",
        "docker compose -f * up -d",
        "gh -R * pr list",
        "go -C * test ./...",
        "go run -tags * x",
        "gradle -p * build",
        "kubectl --context * get pods",
        "kubectl -n * get pods",
        "npm --prefix * test",
        "npm -w * test",
        "pnpm --filter * run build",
        "redis-cli -n * get key",
        "sudo -u * ls",
    ] {
        families(&[(rule, &[&call(rule, "a")], &[&call(rule, "a b"), &call(rule, "--evil")])]);
    }
}

#[test]
fn a_star_stands_for_operands_behind_what_chooses() {
    for rule in [
        "docker compose restart * web",
        "docker exec * ls",
        "flock * ls",
        "gh pr view * --json title",
        "git worktree add * main",
        "kubectl get * -o yaml",
        "kubectl rollout restart * -n x",
        "node app.js * x",
        "perl x.pl * y",
        "python3 -X dev report.py * x",
        "python3 -m pytest * x",
        "ssh * uptime",
        "ssh -p 22 * uptime",
        "systemctl --user restart * x",
        "terraform -chdir=* plan",
        "uv run main.py * x",
    ] {
        families(&[(rule, &[&call(rule, "a")], &[])]);
    }
}

/// A subcommand that does the same with each operand behind it does it with names like the rule's only.
#[test]
fn further_operands_are_like_the_rules() {
    for rule in [
        "apt install acme-*",
        "brew upgrade acme-*",
        "bun add acme-*",
        "cargo install acme-*",
        "docker compose up web-*",
        "docker container rm bot-*",
        "docker rm bot-*",
        "docker rm -f bot-*",
        "git worktree remove bot-*",
        "kubectl delete pod bot-*",
        "npm install acme-*",
        "pip install acme-*",
        "pipx install acme-*",
        "pnpm add acme-*",
        "systemctl --user restart bot-*",
        "uv pip install acme-*",
        "yarn remove acme-*",
    ] {
        let one = call(rule, "x");
        let last = one.rsplit(' ').next().unwrap();
        let others = [format!("{one} other"), format!("{one} {last} other"), format!("{one} other/{last}")];
        let others = others.each_ref().map(String::as_str);
        families(&[(rule, &[&one, &format!("{one} {last}y")], &others)]);
    }
    families(&[
        (
            "kubectl delete pod bot-*",
            &["kubectl delete pod bot-x --timeout=5s"],
            &["kubectl delete pod bot-x -i web", "kubectl delete pod bot-x -n web --timeout=5s"],
        ),
        ("kubectl delete pod bot-* -n web *", &["kubectl delete pod bot-x -n web --timeout=5s"], &[]),
        ("kubectl label pod bot-*", &["kubectl label pod bot-x app=web"], &[]),
        (
            "go run cmd/*",
            &["go run cmd/tool x", "go run cmd/a.go x", "go run cmd/a.go cmd/b.go"],
            &["go run cmd/a.go evil.go", "go run cmd/a.go cmd/b.go evil.go"],
        ),
        ("nix flake update *", &["nix flake update nixpkgs"], &["nix flake update github:a/b"]),
        ("cargo build *", &["cargo build --target wasm32-wasip1"], &["cargo build --target-dir x"]),
        ("docker exec bot-*", &["docker exec bot-x ls"], &[]),
        ("npm run build-*", &["npm run build-x y"], &[]),
    ]);
}

/// Subcommands of `docker-compose`, of `loginctl` and the like, and third words.
#[test]
fn no_star_stands_for_a_subcommand_of_any_program() {
    for rule in [
        "busctl * org.x",
        "busctl --user * org.x",
        "docker buildx imagetools * x",
        "docker trust key * x",
        "docker trust signer * x",
        "docker-compose * web",
        "docker-compose -f x.yml * web",
        "gdbus * x",
        "gh repo autolink * 5",
        "gh repo deploy-key * 5",
        "git -C x sparse-checkout * y",
        "git commit-graph * x",
        "git config * user.name",
        "kubectl create secret * x",
        "kubectl create service * x",
        "loginctl * 5",
        "pactl * sink",
        "playerctl * x",
        "podman system connection * x",
    ] {
        families(&[(rule, &[], &[&call(rule, "rm"), &call(rule, "delete"), &call(rule, "set")])]);
    }
    for rule in [
        "docker buildx imagetools inspect * x",
        "docker-compose -f * restart web",
        "docker-compose restart * web",
        "docker-compose restart *",
        "gh repo deploy-key list -R *",
        "gh repo view * --web",
        "git config get * x",
        "git config user.* x",
        "git sparse-checkout set * x",
        "kubectl config set * x",
        "kubectl get secret * -o yaml",
        "loginctl show-session * x",
        "pactl set-sink-volume * 5",
        "xdg-open *",
    ] {
        families(&[(rule, &[&call(rule, "a")], &[])]);
    }
}

/// The word behind an option that has its value attached, if it has one, is the option's only if it is a number.
#[test]
fn an_optional_value_hides_no_target_and_no_script() {
    for make in ["make", "gmake"] {
        let rules: [(&str, &[&str], &[&str]); 8] = [
            ("-O test *", &["-O test", "-O test -s V=1"], &["-O test deploy"]),
            ("-Oline test *", &["-Oline test"], &["-Oline test deploy"]),
            ("-OC test *", &["-OC test"], &["-OC test deploy"]),
            ("-j4 -O test *", &["-j4 -O test"], &["-j4 -O test deploy"]),
            ("-sO test *", &["-sO test"], &["-sO test deploy"]),
            ("-j * test", &["-j 4 test"], &["-j deploy test"]),
            ("-l * test", &["-l 2.5 test"], &["-l deploy test"]),
            ("-Onone test *", &["-Onone test"], &["-Onone test deploy", "-Onone test SHELL=x"]),
        ];
        for (rule, granted, refused) in rules {
            let calls = |calls: &[&str]| calls.iter().map(|call| format!("{make} {call}")).collect::<Vec<_>>();
            let (granted, refused) = (calls(granted), calls(refused));
            let granted: Vec<&str> = granted.iter().map(String::as_str).collect();
            let refused: Vec<&str> = refused.iter().map(String::as_str).collect();
            families(&[(&format!("{make} {rule}"), &granted, &refused)]);
        }
    }
    let covers =
        |outer: &str, inner: &str| BOT.covers(&ToolPattern::parse(outer).unwrap(), &ToolPattern::parse(inner).unwrap());
    for child in ["make test *c", "make test * -j *", "make test * -- -q", "make test -n * -s"] {
        assert!(!covers("Bash(make test *)", &format!("Bash({child})")), "{child}");
    }
    assert!(!covers("Bash(make -j * test)", "Bash(make -j *c test)"));
    assert!(covers("Bash(make test *)", "Bash(make test -s *)"));
    assert!(covers("Bash(make -j * test)", "Bash(make -j 4 test)"));
    for rule in ["perl -x * x.pl", "perl -F * x.pl", "ruby -x * x.rb", "ruby -F * x.rb"] {
        families(&[(rule, &[], &[&call(rule, "evil")])]);
    }
    families(&[("perl -I * x.pl", &["perl -I lib x.pl"], &[]), ("ruby -I * x.rb", &["ruby -I lib x.rb"], &[])]);
}
