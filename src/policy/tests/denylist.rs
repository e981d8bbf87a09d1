//! What a denylist stops, in every spelling, and what it leaves alone.

use super::*;

#[test]
fn a_denylist_stops_a_command_in_every_spelling() {
    let policy = denying(&["Bash(ollim-bot cal *)", "WebFetch", "WebSearch"]);
    denies(
        &policy,
        &[
            "ollim-bot cal",
            "ollim-bot cal today",
            "ollim-bot  cal\ttoday",
            "bash -c 'ollim-bot cal today'",
            "/usr/local/bin/ollim-bot cal today",
            "./ollim-bot cal today",
            "~/bin/ollim-bot cal today",
            "ollim-bot \"cal\" today",
            "ollim-bot 'cal' today",
            "ollim-bot ca\\l today",
            "ollim-bot c'a'l today",
            "ollim-bot $'cal' today",
            "\"ollim-bot\" cal today",
            "ollim-bot 'cal today'",
            "echo $(ollim-bot cal today)",
            "echo `ollim-bot cal today`",
            "echo \"$(ollim-bot cal today)\"",
            "cat <(ollim-bot cal today)",
            "cat <<EOF\n$(ollim-bot cal today)\nEOF",
            "ls && ollim-bot cal today",
            "ls; ollim-bot cal today",
            "ls | ollim-bot cal today",
            "ls & ollim-bot cal today",
            "ls\nollim-bot cal today",
            "(ollim-bot cal today)",
            "( ( ollim-bot cal today ) )",
            "{ ollim-bot cal today; }",
            "if true; then ollim-bot cal today; fi",
            "for x in a; do ollim-bot cal $x; done",
            "case x in x) ollim-bot cal;; esac",
            "f() { ollim-bot cal today; }; f",
            "f() { ollim-bot \"$@\"; }; f cal today",
            "f() { \"$@\"; }; f ollim-bot cal today",
            "ollim-bot --json cal today",
            "ollim-bot --home x cal",
            "ollim-bot --home=x cal",
            "ollim-bot --color never cal today",
            "ollim-bot --color=never --json cal today",
            "ollim-bot --color $x cal today",
            "ollim-bot -- cal today",
            "ollim-bot-cal today",
            "~/.ollim-bot/bin/ollim-bot-cal today",
            "bash ~/.ollim-bot/bin/ollim-bot-cal today",
            "python3 ../bin/ollim-bot-cal today",
            "timeout 5 ollim-bot cal today",
            "time ollim-bot cal today",
            "nice ollim-bot cal today",
            "nohup ollim-bot cal today",
            "env ollim-bot cal today",
            "env A=1 ollim-bot cal today",
            "env -S 'ollim-bot cal today'",
            "A=1 ollim-bot cal today",
            "command ollim-bot cal today",
            "exec ollim-bot cal today",
            "sudo ollim-bot cal today",
            "sudo -u u ollim-bot cal today",
            "xargs ollim-bot cal < /dev/null",
            "echo cal today | xargs ollim-bot",
            "echo cal | xargs -I{} ollim-bot {} today",
            "find . -exec ollim-bot cal today \\;",
            "find . -maxdepth 0 -execdir ollim-bot cal {} +",
            "sh -c 'ollim-bot cal today'",
            "eval ollim-bot cal today",
            "eval 'ollim-bot cal' today",
            "trap 'ollim-bot cal today' EXIT",
            "coproc ollim-bot cal today",
            "watch ollim-bot cal today",
            "watch 'ollim-bot cal today'",
            "flock f ollim-bot cal today",
            "flock f -c 'ollim-bot cal today'",
            "strace ollim-bot cal today",
            "parallel ollim-bot cal ::: today",
            "busybox env ollim-bot cal today",
            "/lib64/ld-linux-x86-64.so.2 /usr/bin/ollim-bot cal today",
            // What cannot be told before running.
            "x=cal; ollim-bot $x today",
            "ollim-bot $x today",
            "ollim-bot $x",
            "ollim-bot \"$x\" today",
            "ollim-bot $(echo cal) today",
            "ollim-bot c?l today",
            "ollim-bot {cal,x}",
            "ollim-bot c$x today",
            "ollim-bot${IFS}cal today",
            "$x today",
            "x=ollim-bot; $x cal today",
            "ollim-bo? cal today",
            "/usr/bin/ollim* cal today",
            "eval \"$x\"",
            "bash -c \"$x\"",
            "bash",
            "bash script",
            "echo x | bash",
            "bash <<< 'ollim-bot cal'",
            "python3 -c 'x'",
            "perl -e 'x'",
            "node -e x",
            ". ./file",
            "source ./file",
            "alias o='ollim-bot cal'; o",
            "o() { :; }; o",
            "hash -p /usr/bin/ollim-bot o; o cal",
            "awk 'BEGIN{system(\"ollim-bot cal\")}'",
            "git -c alias.x='!ollim-bot cal' x",
            "tar cf /dev/null x --checkpoint-action=exec='ollim-bot cal'",
            "sed '1e ollim-bot cal' f",
            "PATH=. ls",
            "OLLIM_RUN_TOKEN=x ls",
            "env -i ls",
            "echo x > ~/.ollim-bot/routines/evil.md",
            "cp x ~/.ollim-bot/routines/evil.md",
            "echo x > .git/hooks/pre-commit",
            "echo x > sub/.claude/settings.json",
            "cat ~/.ollim-bot/.env",
            "cat ../state/user.token",
            "cat $HOME/.ollim-bot/.env",
            "cat \"${HOME}/.ollim-bot/.env\"",
            "echo x > \"$HOME/.ollim-bot/config.yaml\"",
            "ls 'unterminated",
            "",
        ]
        .iter()
        .filter(|line| **line != "bash script")
        .copied()
        .collect::<Vec<_>>(),
    );
    allows(
        &policy,
        &[
            "ollim-bot gmail unread",
            "ollim-bot gmail $x",
            "ollim-bot calendar today",
            "ollim-bot help",
            "ollim-bot follow_up_chain --in 5",
            "ls -la",
            "cat notes.txt | grep -v x | sort | uniq -c",
            "echo 'ollim-bot cal today'",
            "echo ollim-bot cal today",
            "git commit -m 'ollim-bot cal today'",
            "git status && git log --oneline -5",
            "git diff HEAD~1 -- src",
            "cd notes && ls",
            "mkdir -p a/b && touch a/b/c",
            "echo x > notes.txt",
            "echo x >> \"$f\"",
            "for f in *.md; do wc -l \"$f\"; done",
            "find . -name '*.md' -exec wc -l {} +",
            "sed -i 's/a/b/g' notes.txt",
            "awk '{print $1}' f",
            "tar czf out.tgz notes",
            "python3 report.py",
            "bash script.sh",
            "x=5; echo $x",
            "FOO=bar make",
            "npm test",
            "curl -s https://example.com | jq .",
            "date +%F",
            "cat <<EOF > notes.txt\nhello $USER\nEOF",
        ],
    );
}

#[test]
fn a_denylist_without_bash_patterns_leaves_bash_alone() {
    let policy = denying(&["WebFetch"]);
    allows(&policy, &["python3 -c 'print(1)'", "x=ls; $x", ". ./file", "bash <<< 'ls'", "make && ./run", "echo $PATH"]);
    denies(&policy, &["PATH=. ls", "echo x > ../config.yaml", "ollim-bot --home x next", "cat ../.env"]);
}

#[test]
fn other_denials_see_through_paths_and_base_names() {
    let policy = denying(&["Bash(git push *)", "Bash(/usr/bin/rm *)", "Bash(* --force)", "Bash(npm publish)"]);
    denies(
        &policy,
        &[
            "git push",
            "git push origin main",
            "/usr/bin/git push",
            "git $x",
            "git \"$@\"",
            "rm x",
            "/bin/rm x",
            "/usr/bin/rm -rf x",
            "anything --force",
            "npm publish",
            "npm $x",
        ],
    );
    allows(&policy, &["git pull", "git status", "npm test", "npm publish-dry", "rmdir x", "anything --forced"]);
}

#[test]
fn read_denials_reach_redirections() {
    let policy = denying(&["Read(secrets/**)", "Edit(out/**)"]);
    denies(
        &policy,
        &["cat < secrets/x", "echo x > secrets/x", "echo x > out/f", "echo x > out/../secrets/y", "echo x > $f"],
    );
    allows(&policy, &["cat < notes", "cat < out/f", "echo x > notes"]);
}
