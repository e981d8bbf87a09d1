//! Tables of what rules let through and what they stop. Attacks stay here once they were thought of.

mod held;
mod hostile;
mod properties;

use serde_json::{Value, json};

use super::*;

fn patterns(texts: &[&str]) -> Vec<ToolPattern> {
    texts.iter().map(|text| ToolPattern::parse(text).unwrap()).collect()
}

fn places() -> Places {
    Places { root: "/home/u/.ollim-bot".into(), work: "/home/u/.ollim-bot/work".into(), user_home: "/home/u".into() }
}

fn policy(allow: Option<&[&str]>, deny: Option<&[&str]>) -> Policy {
    let config = BgForkConfig::new(UpdateMode::OnPing, true, allow.map(patterns), deny.map(patterns)).unwrap();
    Policy::background("routine x", &config, &default_main_tools(), &places())
}

fn allowing(allow: &[&str]) -> Policy {
    policy(Some(allow), None)
}

fn denying(deny: &[&str]) -> Policy {
    policy(None, Some(deny))
}

fn call(tool: &str, input: Value) -> ToolCall {
    ToolCall { tool: tool.into(), input, cwd: "/home/u/.ollim-bot/work".into(), agent_type: None }
}

fn bash(policy: &Policy, line: &str) -> Decision {
    policy.decide(&call("Bash", json!({ "command": line })))
}

#[track_caller]
fn check(policy: &Policy, line: &str, expected: Verdict) {
    let decision = bash(policy, line);
    assert_eq!(decision.verdict, expected, "{line}\n  {}\n  {:?}", decision.reason, decision.commands);
    assert!(!decision.reason.is_empty());
}

#[track_caller]
fn allows(policy: &Policy, lines: &[&str]) {
    lines.iter().for_each(|line| check(policy, line, Verdict::Allow));
}

#[track_caller]
fn denies(policy: &Policy, lines: &[&str]) {
    lines.iter().for_each(|line| check(policy, line, Verdict::Deny));
}

#[test]
fn an_allowlist_lets_its_own_commands_through_in_every_ordinary_form() {
    let policy =
        allowing(&["Bash(ollim-bot gmail *)", "Bash(ollim-bot tasks *)", "Bash(jq *)", "Bash(echo *)", "Bash(cat *)"]);
    allows(
        &policy,
        &[
            "ollim-bot help",
            "ollim-bot gmail",
            "ollim-bot gmail unread",
            "ollim-bot   gmail\tunread",
            "ollim-bot gmail read '17 a'",
            "ollim-bot \"gmail\" unread",
            "ollim-bot gmail unread && ollim-bot tasks list",
            "ollim-bot gmail unread || true",
            "ollim-bot gmail unread; ollim-bot tasks list;",
            "ollim-bot gmail unread\nollim-bot tasks list\n",
            "ollim-bot gmail unread | jq '.[] | .subject'",
            "ollim-bot gmail unread |& jq .",
            "ollim-bot gmail unread 2>&1 | jq .",
            "ollim-bot gmail unread 2>/dev/null",
            "ollim-bot gmail unread >/dev/null 2>&1",
            "ollim-bot gmail unread &> /dev/null",
            "ollim-bot --json gmail unread | jq -r '.[0].id'",
            "ollim-bot --color never gmail unread",
            "(ollim-bot gmail unread; ollim-bot tasks list)",
            "( ( ollim-bot gmail unread ) )",
            "{ ollim-bot gmail unread; }",
            "! ollim-bot gmail unread",
            "time ollim-bot gmail unread",
            "timeout 10 ollim-bot gmail unread",
            "timeout -k 5 10s ollim-bot gmail unread",
            "nice -n 5 ollim-bot gmail unread",
            "nohup ollim-bot gmail unread &",
            "env TZ=UTC ollim-bot gmail unread",
            "TZ=UTC LC_ALL=C ollim-bot gmail unread",
            "command ollim-bot gmail unread",
            "exec ollim-bot gmail unread",
            "bash -c 'ollim-bot gmail unread'",
            "bash -lc \"ollim-bot gmail unread && ollim-bot tasks list\"",
            "sh -c 'ollim-bot gmail unread | jq .'",
            "eval 'ollim-bot gmail unread'",
            "set -euo pipefail; ollim-bot gmail unread",
            "if ollim-bot gmail unread; then ollim-bot tasks list; else ollim-bot help; fi",
            "while ollim-bot gmail next; do ollim-bot tasks list; done",
            "until ollim-bot gmail next; do :; done",
            "for f in a b 'c d'; do ollim-bot gmail read \"$f\"; done",
            "for f in *.eml; do ollim-bot gmail import $f; done",
            "case $x in a|b) ollim-bot gmail unread;; *) ollim-bot tasks list;; esac",
            "x=$(ollim-bot gmail unread); ollim-bot tasks add \"$x\"",
            "ollim-bot tasks add \"$(ollim-bot gmail unread)\"",
            "ollim-bot tasks add `ollim-bot gmail unread`",
            "ollim-bot gmail unread | while read -r line; do ollim-bot tasks add \"$line\"; done",
            "ollim-bot gmail unread | xargs ollim-bot tasks add",
            "ollim-bot gmail ids | xargs -n 1 -I{} ollim-bot gmail read {}",
            "ollim-bot tasks add <<< 'buy milk'",
            "ollim-bot tasks add <<EOF\nmilk; rm -rf /\n\"bread\" 'x'\nEOF",
            "ollim-bot tasks add <<'EOF'\n$(touch evil) `x`\nEOF",
            "ollim-bot tasks add <<-EOF\n\tmilk\n\tEOF\nollim-bot gmail unread",
            "ollim-bot tasks add \"$(cat <<'EOF'\nfirst\nsecond (with parens)\nEOF\n)\"",
            "diff() { true; }; ollim-bot gmail unread",
            "[ -n \"$x\" ] && ollim-bot gmail unread",
            "[[ $x == a* ]] && ollim-bot gmail unread",
            "[[ -z $x || $x != b ]] || ollim-bot gmail unread",
            "[ \"$n\" -gt 5 ] && ollim-bot gmail unread",
            "ollim-bot gmail unread # touch evil",
            "# a comment\nollim-bot gmail unread",
            "ollim-bot gmail search \\\n  --from anna \\\n  --since yesterday",
            "ollim-bot gmail search 'from:anna && rm -rf /'",
            "ollim-bot gmail search \"a;b|c>d\"",
            "ollim-bot gmail search a\\;b",
            "ollim-bot gmail search $'tab\\there'",
            "ollim-bot gmail search ~/x",
            "ollim-bot gmail search {a,b}",
            "ollim-bot gmail search x@{1}",
            "ollim-bot gmail page $((2 + 3))",
            "ollim-bot gmail search ${x:-default}",
            "ollim-bot gmail search \"${name%.*}\"",
            "ollim-bot gmail search \"${#x}\" $? $# $$",
            "jq -n '1 + 1'",
            "echo \"a  b\" | ollim-bot tasks add -",
            "ollim-bot gmail a & ollim-bot gmail b & wait",
            "trap 'ollim-bot tasks list' EXIT; ollim-bot gmail unread",
            "f() { ollim-bot gmail unread; }",
        ],
    );
}

#[test]
fn an_allowlist_lets_nothing_else_through() {
    let policy =
        allowing(&["Bash(ollim-bot gmail *)", "Bash(ollim-bot tasks *)", "Bash(ls *)", "mcp__discord__ping_user"]);
    denies(
        &policy,
        &[
            "",
            "   ",
            "# only a comment",
            "true",
            ":",
            "exit 0",
            "cat notes.txt",
            "touch evil",
            "ollim-bot",
            "ollim-bot cal today",
            "ollim-bot helpx",
            "ollim-bot help me",
            "ollim-bot --help",
            "ollim-bot gmailx",
            "ollim-bot 'gmail x'",
            "ollim-bot \"gmail unread\"",
            "'ollim-bot gmail'",
            "ollim-botgmail",
            "lsof",
            "./ls",
            "/tmp/evil/ls",
            "../ls",
            "~/ls",
            "/bin/ls",
            "./ollim-bot gmail unread",
            "/usr/bin/ollim-bot gmail unread",
            "ollim-bot-gmail unread",
            "ollim-bot gmail x && touch evil",
            "ollim-bot gmail x || touch evil",
            "ollim-bot gmail x; touch evil",
            "ollim-bot gmail x & touch evil",
            "ollim-bot gmail x | touch evil",
            "ollim-bot gmail x |& touch evil",
            "ollim-bot gmail x\ntouch evil",
            "ollim-bot gmail x;\n\ttouch evil",
            "ollim-bot gmail $(cat secret)",
            "ollim-bot gmail \"$(cat secret)\"",
            "ollim-bot gmail `cat secret`",
            "ollim-bot gmail \"`cat secret`\"",
            "ollim-bot gmail ${x:-$(cat secret)}",
            "ollim-bot gmail \"${x:-$(cat secret)}\"",
            "ollim-bot gmail \"${x:-'$(cat secret)'}\"",
            "ollim-bot gmail ${x:-`cat secret`}",
            "ollim-bot gmail ${x/a/$(cat secret)}",
            "ollim-bot gmail ${x#$(cat secret)}",
            "ollim-bot gmail ${x:=$(cat secret)}",
            "ollim-bot gmail ${x@P}",
            "x='$(cat secret)'; ollim-bot gmail ${x@P}",
            "ollim-bot gmail ${!x}",
            "ollim-bot gmail ${a[$(cat secret)]}",
            "x='a[$(cat secret)]'; ollim-bot gmail ${a[x]}",
            "ollim-bot gmail ${x:$(cat secret)}",
            "ollim-bot gmail ${x:y}",
            "ollim-bot gmail $((a[$(cat secret)]))",
            "x='a[$(cat secret)]'; ollim-bot gmail $((x))",
            "ollim-bot gmail $[a[$(cat secret)]]",
            "ollim-bot gmail $((1 + $(cat secret)))",
            "((a[$(cat secret)])); ollim-bot gmail x",
            "for ((i=0; i<$(cat secret); i++)); do ollim-bot gmail x; done",
            "( ( cat secret ) )",
            "((cat secret); ollim-bot gmail x)",
            "ollim-bot gmail $( ( cat secret ) )",
            "ollim-bot gmail $((cat secret) )",
            "ollim-bot gmail <(cat secret)",
            "ollim-bot gmail >(tee evil)",
            "ollim-bot gmail < <(cat secret)",
            "ollim-bot gmail <<< $(cat secret)",
            "ollim-bot gmail <<< \"`cat secret`\"",
            "ollim-bot gmail <<EOF\n$(cat secret)\nEOF",
            "ollim-bot gmail <<EOF\n`cat secret`\nEOF",
            "ollim-bot gmail <<-EOF\n\t${x:-$(cat secret)}\n\tEOF",
            "ollim-bot gmail <<EOF\nx\nEOF\ntouch evil",
            "ollim-bot gmail <<'EOF'\nx\nEOF\ntouch evil",
            "ollim-bot gmail <<EOF; touch evil\nx\nEOF",
            "ollim-bot gmail <<EOF\nx \\\nEOF\ntouch evil\nEOF",
            "ollim-bot gmail <<A <<B\nA\nB\ntouch evil",
            "ollim-bot gmail <<'E OF'\nx\nE OF\ntouch evil",
            "ollim-bot gmail <<\"\"\n\ntouch evil",
            "ollim-bot gmail x > f",
            "ollim-bot gmail x >> f",
            "ollim-bot gmail x >| f",
            "ollim-bot gmail x >& f",
            "ollim-bot gmail x &> f",
            "ollim-bot gmail x &>> f",
            "ollim-bot gmail x 2> f",
            "ollim-bot gmail x <> f",
            "ollim-bot gmail x > $f",
            "ollim-bot gmail x >&$f",
            "ollim-bot gmail x > /dev/tcp/127.0.0.1/80",
            "ollim-bot gmail x < /etc/passwd",
            "ollim-bot gmail x 3< /etc/passwd",
            "> f",
            "{ ollim-bot gmail x; } > f",
            "(ollim-bot gmail x) > f",
            "for i in a; do ollim-bot gmail $i; done > f",
            "if ollim-bot gmail x; then ls; fi > f",
            "exec > f; ollim-bot gmail x",
            "exec 3<>f; ollim-bot gmail x",
            "$x ollim-bot gmail",
            "$(echo touch) evil",
            "x=touch; $x evil",
            "x=ls; $x",
            "t*ch evil",
            "/???/c?t secret",
            "/bin/l? x",
            "[t]ouch evil",
            "{touch,evil}",
            "{ls,x}",
            "to\\uch evil",
            "\"to\"uch evil",
            "$'touch' evil",
            "$'\\x74ouch' evil",
            "$'\\164ouch' evil",
            "\\touch evil",
            "''touch evil",
            "to\\\nuch evil",
            "ls $\\\n(touch evil)",
            "ls \"$\\\n(touch evil)\"",
            "ls $'a' $'\\'' ; touch 'evil'",
            "ls \\$(touch evil)",
            "ls \\`touch evil`",
            "ls '$(a)' $(touch evil)",
            "ls \"'$(touch evil)'\"",
            "ls '\\' $(touch evil) '\\'",
            "ls \"\\\"\" $(touch evil)",
            "ls {a,$(touch evil)}",
            "ls {,$}[a['$(touch evil)']]",
            "ls {a,$}{b,'$(touch evil)'}",
            "ls # comment\ntouch evil",
            "ls x#y; touch evil",
            "ls $(true # )\ntouch evil)",
            "ls $(case x in x) touch evil;; esac)",
            "ls \"$(ls $(touch evil))\"",
            "ls ${x:-${y:-$(touch evil)}}",
            "eval touch evil",
            "eval 'touch evil'",
            "eval \"$x\"",
            "eval ls $x",
            "eval 'ls' ';' 'touch evil'",
            ". ./file",
            "source file",
            ". /dev/stdin <<< 'touch evil'",
            "bash script.sh",
            "bash < script",
            "bash",
            "bash -s",
            "bash -i",
            "ls | bash",
            "ls | sh",
            "echo 'touch evil' | bash",
            "bash <<< 'touch evil'",
            "bash <<EOF\ntouch evil\nEOF",
            "sh <<'EOF'\ntouch evil\nEOF",
            "bash <(echo touch evil)",
            "bash /dev/stdin <<< 'touch evil'",
            "bash -c 'touch evil'",
            "bash -c \"touch evil\"",
            "bash -c 'ls; touch evil'",
            "bash -c 'ls $(touch evil)'",
            "bash -c \"$x\"",
            "bash -c '\"$@\"' x touch evil",
            "bash -c '$0' touch",
            "bash -ec 'touch evil'",
            "bash -c -- 'touch evil'",
            "bash --rcfile evil -c ls",
            "bash --init-file evil -ic ls",
            "bash -O extglob -c 'ls'",
            "bash -o posix -c ls",
            "/bin/bash -c 'ls'",
            "./bash -c 'ls'",
            "zsh -c 'ls'",
            "fish -c 'ls'",
            "sh -c '((ls))'",
            "sh -c 'ls; touch evil'",
            "dash -c \"ls $'\\n' touch evil\"",
            "busybox sh -c 'touch evil'",
            "busybox touch evil",
            "busybox ls",
            "python3 -c 'import os; os.system(\"touch evil\")'",
            "python3",
            "python3 -",
            "python3 <<< 'x'",
            "perl -e 'system(\"touch evil\")'",
            "node -e 'x'",
            "ruby -e 'x'",
            "awk 'BEGIN{system(\"touch evil\")}'",
            "timeout 5 touch evil",
            "timeout 5 bash -c 'touch evil'",
            "timeout $x ls",
            "timeout --foreground -k 3 5 touch evil",
            "./timeout 5 ls",
            "nice touch evil",
            "nice -n 5 touch evil",
            "nohup touch evil",
            "stdbuf -oL touch evil",
            "setsid touch evil",
            "time touch evil",
            "time -p touch evil",
            "ls | time touch evil",
            "/usr/bin/time -o evil ls",
            "env touch evil",
            "env -S 'touch evil'",
            "env -S'touch evil'",
            "env --split-string='touch evil'",
            "env -vS 'touch evil'",
            "env -i ls",
            "env - ls",
            "env -u OLLIM_RUN_TOKEN ls",
            "env --unset=PATH ls",
            "env PATH=. ls",
            "env LD_PRELOAD=./x.so ls",
            "env 'BASH_FUNC_ls%%=() { touch evil; }' bash -c ls",
            "env A=1 touch evil",
            "env $x ls",
            "env A=$x ls",
            "export 'A'=$x; ls",
            "BASH_ALIASES[ls]=touch; ls",
            "BASH_ALIASES+=([ls]=touch); ls",
            "BASH_CMDS+=([ls]=/bin/touch); ls",
            "x=$(< /etc/passwd); ls",
            "ls $(< /etc/passwd)",
            "env",
            "printenv",
            "command touch evil",
            "command -p touch evil",
            "command -v touch",
            "builtin eval 'touch evil'",
            "builtin . ./x",
            "exec touch evil",
            "exec -a ls touch evil",
            "exec -c ls",
            "sudo ls",
            "sudo touch evil",
            "doas ls",
            "ls | xargs touch",
            "xargs touch evil",
            "xargs -I{} touch {}",
            "ls | xargs -I{} sh -c '{}'",
            "ls | xargs -I ls ls x",
            "ls | xargs sh -c",
            "ls | xargs -a secret ls",
            "find . -exec touch evil \\;",
            "find . -exec ls {} \\;",
            "find . -exec touch {} +",
            "find . -name x -execdir touch evil ';'",
            "find . -ok touch evil \\;",
            "find . -fprint evil",
            "find . -delete",
            "parallel touch ::: evil",
            "watch touch evil",
            "f() { touch evil; }; f",
            "ls() { touch evil; }; ls",
            "function ls { touch evil; }; ls",
            "ls() { ollim-bot gmail x; }; ls",
            "f() ( touch evil ); f",
            "f() { ls; }; f",
            "f() { ls; } > evil; f",
            "alias ls='touch evil'; ls",
            "shopt -s expand_aliases; alias ls=touch\nls evil",
            "hash -p /bin/touch ls; ls evil",
            "enable -f ./x.so ls; ls",
            "PATH=. ls",
            "PATH=.:$PATH; ls",
            "export PATH=.; ls",
            "declare -x PATH=.; ls",
            "readonly PATH=.; ls",
            "unset PATH; ls",
            "read PATH; ls",
            "for PATH in .; do ls; done",
            "printf -v PATH .; ls",
            "mapfile PATH; ls",
            ": ${PATH:=.}; ls",
            "LD_PRELOAD=./x.so ls",
            "LD_LIBRARY_PATH=. ls",
            "BASH_ENV=./x ls",
            "BASH_ENV=./x bash -c ls",
            "ENV=./x sh -c ls",
            "IFS=x ls",
            "IFS=/; ls",
            "OLLIM_HOME=/tmp ollim-bot gmail x",
            "OLLIM_RUN_TOKEN= ollim-bot gmail x",
            "unset OLLIM_RUN_TOKEN; ollim-bot gmail x",
            "GIT_PAGER=x ls",
            "PAGER='touch evil' ls",
            "PROMPT_COMMAND='touch evil'; ls",
            "PS4='$(touch evil)'; set -x; ls",
            "HOME=/tmp/evil ls",
            "http_proxy=evil ls",
            "ollim-bot --home /tmp gmail x",
            "ollim-bot --home=/tmp gmail x",
            "ollim-bot --json --home /tmp gmail x",
            "ollim-bot help --home /tmp",
            "ollim-bot $x gmail",
            "ollim-bot $(echo gmail)",
            "ollim-bot -- gmail x",
            "coproc touch evil",
            "coproc X { touch evil; }",
            "[[ $(touch evil) ]]",
            "[[ -v 'a[$(touch evil)]' ]] && ls",
            "[[ 'a[$(touch evil)]' -eq 0 ]] && ls",
            "x='a[$(touch evil)]'; [[ $x -eq 0 ]] && ls",
            "[ -v 'a[$(touch evil)]' ] && ls",
            "test -v 'a[$(touch evil)]' && ls",
            "x='-v a[$(touch${IFS}evil)]'; [ $x ] && ls",
            "o=-v; [ \"$o\" 'a[$(touch evil)]' ] && ls",
            "[ -f $(secret) ] && ls",
            "[[ -f $(secret) ]] && ls",
            "let 'a[$(touch evil)]=1'; ls",
            "declare 'a[$(touch evil)]=1'; ls",
            "declare -i x='a[$(touch evil)]'; ls",
            "a[$(touch evil)]=1; ls",
            "a['$(touch evil)']=1; ls",
            "unset 'a[$(touch evil)]'; ls",
            "read 'a[$(touch evil)]' <<< x; ls",
            "printf -v 'a[$(touch evil)]' x; ls",
            "a=($(touch evil)); ls",
            "a=([$(touch evil)]=x); ls",
            "x=$(touch evil); ls",
            "x=`touch evil` ls",
            "trap 'touch evil' EXIT; ls",
            "trap \"$x\" EXIT; ls",
            "trap -- 'touch evil' EXIT; ls",
            "case $(touch evil) in *) ls;; esac",
            "case x in $(touch evil)) ls;; esac",
            "case x in x) touch evil;; esac",
            "case x in (x) touch evil;; esac",
            "select x in a; do touch evil; done",
            "while touch evil; do ls; done",
            "for x in $(touch evil); do ls; done",
            "for x in a; { touch evil; }",
            "if touch evil; then ls; fi",
            "if ls; then ls; elif touch evil; then ls; fi",
            "if ls; then ls; else touch evil; fi",
            "! touch evil",
            "ls & touch evil",
            "ls;touch evil",
            "ls&&touch evil",
            "ls\r\ntouch evil",
            "ls \u{0}touch evil",
            "ls 'unterminated",
            "ls \"unterminated",
            "ls $(unterminated",
            "ls `unterminated",
            "ls (",
            "ls )",
            "ls &&",
            "| ls",
            "fi",
            "{ ls",
            "ls {fd}>evil",
            "{fd}>evil ls",
            "99999999999>evil ls",
            "ls ~/.ollim-bot/state",
            "ls ..",
            "ls ../state",
            "ls /home/u/.ollim-bot/.env",
            "ls --file=../config.yaml",
            "curl http://x",
            "wait",
            "kill 1",
            "cd / && ls",
            "pushd / ; ls",
        ],
    );
}

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
fn an_empty_allowlist_leaves_help_alone() {
    let policy = allowing(&[]);
    allows(&policy, &["ollim-bot help", "ollim-bot --json help", "ollim-bot help | ollim-bot help"]);
    denies(&policy, &["ollim-bot", "ollim-bot help x", "ls", "true", "ollim-bot gmail", "echo $(ollim-bot help)"]);
    assert_eq!(policy.visible_tools(), ["Bash"]);
    assert!(policy.visible_mcp(&["ping_user", "report_updates"]).is_empty());
}

#[test]
fn options_that_run_programs_never_match_a_grant() {
    let policy = allowing(&[
        "Bash(find *)",
        "Bash(git *)",
        "Bash(tar *)",
        "Bash(sed *)",
        "Bash(awk *)",
        "Bash(sort *)",
        "Bash(rg *)",
        "Bash(python3 *)",
        "Bash(bash *)",
        "Bash(perl *)",
        "Bash(node *)",
        "Bash(rsync *)",
        "Bash(wc *)",
        "Bash(env *)",
        "Bash(xargs *)",
        "Bash(timeout *)",
        "Bash(make *)",
        "Bash(vim *)",
        "Bash(zip *)",
    ]);
    allows(
        &policy,
        &[
            "find . -name x",
            "find \"notes/$d\" -name x",
            "find notes/*/ -name x",
            "find . -exec wc -l {} +",
            "find . -name '*.md' | xargs wc -l",
            "git log --oneline",
            "git -C sub status",
            "git commit -am 'x'",
            "git -c color.ui=false log",
            "git config user.name u",
            "git config --get remote.origin.url",
            "git checkout -- \"$f\"",
            "tar xzf a.tgz",
            "tar -cf a.tar --exclude=x notes",
            "sed -i 's/a/b/' f",
            "awk -F: '{print $2}' f",
            "sort -u f",
            "rg -n foo .",
            "python3 report.py --c",
            "python3 -m pytest -q",
            "bash run.sh a b",
            "perl script.pl",
            "node server.js",
            "env",
            "env LANG=C wc f",
            "make test",
            "zip -r a.zip notes",
        ],
    );
    denies(
        &policy,
        &[
            "find . -exec touch evil \\;",
            "find . \"$x\" touch evil \\;",
            "find $x",
            "find notes/$d -name x",
            "sort notes/$f",
            "env A=$x wc",
            "xargs -I{} sort {}",
            "git -c core.pager='touch evil' log",
            "git -c alias.x='!touch evil' x",
            "git --exec-path=. log",
            "git --config-env=core.pager=X log",
            "git config alias.x '!touch evil'",
            "git config core.fsmonitor ./evil",
            "git rebase -x 'touch evil' HEAD~1",
            "git rebase --exe 'touch evil' HEAD~1",
            "git bisect run touch evil",
            "git submodule foreach 'touch evil'",
            "git clone ext::'sh -c touch evil' x",
            "git clone --upload-pack='touch evil' x y",
            "git clone -u 'touch evil' x y",
            "git grep -Otouch x",
            "git grep --open-files-in-pager=touch x",
            "git difftool -x touch",
            "git diff --ext-diff",
            "git filter-branch --tree-filter 'touch evil'",
            "git $x",
            "tar xf a --to-command='touch evil'",
            "tar cf a b --checkpoint-action=exec=touch",
            "tar cf a b --checkpoint-a=exec=touch",
            "tar xf a --use-compress-program=./evil",
            "tar xf a -I ./evil",
            "tar xIf ./evil a",
            "tar -xIf ./evil a",
            "tar xf a \"$x\"",
            "sed '1e touch evil' f",
            "sed 's/x/touch evil/e' f",
            "sed -n 'w evil' f",
            "sed \"$x\" f",
            "sed -f script f",
            "awk 'BEGIN{system(\"touch evil\")}'",
            "awk '{print > \"evil\"}' f",
            "awk -f prog f",
            "awk \"$x\"",
            "sort --compress-program=./evil f",
            "sort --co=./evil f",
            "sort $x",
            "rg --pre ./evil x",
            "rg --pre=./evil x",
            "git log --output=evil",
            "git diff --outp evil",
            "sort -o evil f",
            "sort -oevil f",
            "sort --output=evil f",
            "python3 -c 'x'",
            "python3 -Bc 'x'",
            "python3",
            "python3 -",
            "python3 < f",
            "python3 $x",
            "bash -c 'touch evil'",
            "bash",
            "bash -s",
            "bash $x",
            "bash <(wc)",
            "perl -e 'x'",
            "perl -ne 'x' f",
            "perl -Mx=y script.pl",
            "node -e x",
            "node -p x",
            "node --eval x",
            "node -r ./evil server.js",
            "node",
            "rsync -e ./evil a b",
            "rsync -ave ./evil a b",
            "rsync --rsh=./evil a b",
            "env touch evil",
            "xargs touch evil",
            "timeout 5 touch evil",
            "make --eval='x: ; touch evil'",
            "vim -c ':!touch evil'",
            "vim '+!touch evil' f",
            "zip a b -TT 'touch evil'",
            "wc $(touch evil)",
        ],
    );
}

#[test]
fn a_bare_bash_runs_every_command_and_writes_where_edit_lets_it() {
    let only = allowing(&["Bash"]);
    allows(
        &only,
        &["ls", "python3 -c x", "$x", ". ./f", "cat < notes.txt", "ls 2>/dev/null", "find . -exec touch {} \\;"],
    );
    denies(&only, &["ls > f", "ls > $f", "PATH=. ls", "cat ../state/x", "ls &> ../config.yaml"]);
    let with_edit = allowing(&["Bash(*)", "Edit"]);
    allows(&with_edit, &["ls > f", "ls > $f", "cd x && ls > f", "echo x | tee -a f"]);
    denies(&with_edit, &["ls > ../config.yaml", "ls > .git/config", "ls > ~/.claude/settings.json"]);
    let notes = allowing(&["Bash(ls *)", "Edit(notes/**)", "Read(in/**)", "Bash(cd *)", "Bash(wc *)"]);
    allows(
        &notes,
        &[
            "ls > notes/f",
            "ls >> notes/a/b",
            "ls > ./notes/f",
            "ls > notes/../notes/f",
            "wc < in/f",
            "wc < notes/f",
            "ls 2> notes/f",
        ],
    );
    denies(
        &notes,
        &[
            "ls > f",
            "ls > in/f",
            "ls > notes/../f",
            "ls > notes/../../config.yaml",
            "ls > $f",
            "ls > notes/$f",
            "cd x && ls > notes/f",
            "ls > notes/*",
            "ls > ~/notes/f",
            "ls > '~/notes/f'",
            "wc < f",
            "wc < $f",
            "wc < in/../f",
            "ls > notes/.git/config",
            "ls > /dev/tcp/h/1",
            "ls > notes",
        ],
    );
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

#[test]
fn file_tools_follow_path_rules() {
    let policy = allowing(&["Edit(notes/**)", "Read(in/**)", "Grep(in/**)", "Glob", "Write(drafts/*.md)"]);
    let decide = |tool: &str, input: Value| policy.decide(&call(tool, input)).verdict;
    let home = "/home/u/.ollim-bot/work";
    for (tool, input) in [
        ("Read", json!({"file_path": format!("{home}/in/a")})),
        ("Read", json!({"file_path": "in/a"})),
        ("Read", json!({"file_path": "notes/a"})),
        ("Edit", json!({"file_path": "notes/a/b"})),
        ("Write", json!({"file_path": format!("{home}/notes/new")})),
        ("MultiEdit", json!({"file_path": "notes/a"})),
        ("NotebookEdit", json!({"notebook_path": "notes/a.ipynb"})),
        ("Edit", json!({"file_path": "drafts/x.md"})),
        ("Grep", json!({"pattern": "x", "path": "in"})),
        ("Grep", json!({"pattern": "x", "path": "in/sub"})),
        ("Glob", json!({"pattern": "**/*.md"})),
    ] {
        assert_eq!(decide(tool, input.clone()), Verdict::Allow, "{tool} {input}");
    }
    for (tool, input) in [
        ("Read", json!({"file_path": "/etc/passwd"})),
        ("Read", json!({"file_path": "in/../secret"})),
        ("Read", json!({"file_path": "in/../../state/user.token"})),
        ("Read", json!({"file_path": ""})),
        ("Read", json!({"file_path": 5})),
        ("Read", json!({})),
        ("Read", json!(null)),
        ("Read", json!([])),
        ("Read", json!({"file_path": "in/a\u{0}b"})),
        ("Edit", json!({"file_path": "in/a"})),
        ("Edit", json!({"file_path": "notes"})),
        ("Edit", json!({"file_path": "notesx/a"})),
        ("Edit", json!({"file_path": "notes/.git/hooks/x"})),
        ("Edit", json!({"file_path": "notes/.claude/settings.json"})),
        ("Edit", json!({"file_path": "drafts/sub/x.md"})),
        ("Write", json!({"file_path": "~/.ollim-bot/routines/x.md"})),
        ("Write", json!({"file_path": "/home/u/.ollim-bot/config.yaml"})),
        ("Grep", json!({"pattern": "x"})),
        ("Grep", json!({"pattern": "x", "path": "."})),
        ("Grep", json!({"pattern": "x", "path": "in/.."})),
        ("Grep", json!({"pattern": "x", "path": ["in"]})),
        ("Glob", json!({"pattern": "../**"})),
        ("Glob", json!({"pattern": "*", "path": "/home/u/.ollim-bot/state"})),
        ("Glob", json!({})),
        ("LS", json!({"path": "in"})),
        ("Bash", json!({"command": "ls"})),
        ("Bash", json!({"command": ["ls"]})),
        ("Bash", json!({})),
        ("WebFetch", json!({"url": "https://docs.rs"})),
    ] {
        assert_eq!(decide(tool, input.clone()), Verdict::Deny, "{tool} {input}");
    }
    assert_eq!(policy.visible_tools(), ["Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Write"]);
}

#[test]
fn whole_tools_reach_everywhere_but_protected_places() {
    let policy = allowing(&["Read", "Edit"]);
    let decide = |tool: &str, path: &str| policy.decide(&call(tool, json!({ "file_path": path }))).verdict;
    assert_eq!(decide("Read", "/etc/hostname"), Verdict::Allow);
    assert_eq!(decide("Edit", "/srv/x"), Verdict::Allow);
    for path in [
        "/home/u/.ollim-bot/.env",
        "../state/user.token",
        "/proc/self/environ",
        "/proc/1/environ",
        "~/.claude/x",
        "/dev/fd/0",
    ] {
        assert_eq!(decide("Read", path), Verdict::Deny, "{path}");
    }
}

#[test]
fn symlinks_need_both_ends_granted() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let work = root.join("work");
    std::fs::create_dir_all(work.join("notes")).unwrap();
    std::fs::create_dir_all(work.join("other")).unwrap();
    std::fs::create_dir_all(root.join("state")).unwrap();
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(root.join(target), work.join(name)).unwrap();
    link("work/other", "notes/out");
    link("work/notes", "in");
    link("state/token", "notes/token");
    let places = Places { root: root.clone(), work: work.clone(), user_home: "/home/u".into() };
    let config = |allow: &[&str]| BgForkConfig::new(UpdateMode::OnPing, true, Some(patterns(allow)), None).unwrap();
    let policy = Policy::background("routine x", &config(&["Edit(notes/**)", "Bash(ls *)"]), &[], &places);
    let decide = |tool: &str, input: Value| {
        policy.decide(&ToolCall { tool: tool.into(), input, cwd: work.clone(), agent_type: None })
    };
    assert_eq!(decide("Edit", json!({"file_path": "notes/a"})).verdict, Verdict::Allow);
    for path in ["notes/out/x", "in/a", "other/x"] {
        let decision = decide("Edit", json!({ "file_path": path }));
        assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::AllowedTools), "{path}");
    }
    let decision = decide("Read", json!({"file_path": "notes/token"}));
    assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::System));
    assert_eq!(decide("Bash", json!({"command": "ls > notes/out/x"})).verdict, Verdict::Deny);
    assert_eq!(decide("Bash", json!({"command": "ls > notes/token"})).verdict, Verdict::Deny);
    assert_eq!(decide("Bash", json!({"command": "ls notes/token"})).verdict, Verdict::Deny);
}

#[test]
fn names_of_mcp_tools_are_exact_or_by_server() {
    let policy = allowing(&["mcp__discord__ping_user", "mcp__calendar", "mcp__notes__get_*"]);
    let decide = |tool: &str| policy.decide(&call(tool, json!({}))).verdict;
    for tool in ["mcp__discord__ping_user", "mcp__calendar__list", "mcp__notes__get_one"] {
        assert_eq!(decide(tool), Verdict::Allow, "{tool}");
    }
    for tool in [
        "mcp__discord__ping_user2",
        "mcp__discord__ping_users",
        "mcp__discord_x__ping_user",
        "mcp__Discord__ping_user",
        "mcp__discord__discord_embed",
        "xmcp__discord__ping_user",
        "mcp__calendarx__list",
        "mcp__calendar",
        "mcp__notes__set",
        "ping_user",
        "",
    ] {
        assert_eq!(decide(tool), Verdict::Deny, "{tool}");
    }
    assert_eq!(policy.visible_mcp(&["ping_user", "discord_embed"]), ["ping_user"]);
}

#[test]
fn fetches_skills_and_agents_are_matched_by_their_text() {
    let policy = allowing(&["WebFetch(domain:docs.rs)", "Skill(deploy *)", "Skill(notes)", "Agent(Explore)"]);
    let decide = |tool: &str, input: Value| policy.decide(&call(tool, input)).verdict;
    assert_eq!(decide("WebFetch", json!({"url": "https://docs.rs/x"})), Verdict::Allow);
    assert_eq!(decide("WebFetch", json!({"url": "https://docs.rs.evil.com/x"})), Verdict::Deny);
    assert_eq!(decide("WebFetch", json!({"url": "https://docs.rs@evil.com/x"})), Verdict::Deny);
    assert_eq!(decide("Skill", json!({"skill": "deploy", "args": "staging"})), Verdict::Allow);
    assert_eq!(decide("Skill", json!({"skill": "notes"})), Verdict::Allow);
    assert_eq!(decide("Skill", json!({"skill": "notes", "args": "x"})), Verdict::Deny);
    assert_eq!(decide("Skill", json!({"skill": "deployx"})), Verdict::Deny);
    assert_eq!(decide("Agent", json!({"subagent_type": "Explore"})), Verdict::Allow);
    assert_eq!(decide("Task", json!({"subagent_type": "Explore"})), Verdict::Allow);
    assert_eq!(decide("Task", json!({"subagent_type": "Plan"})), Verdict::Deny);
    assert_eq!(decide("Task", json!({})), Verdict::Deny);
    // A denial of a host denies what could be it.
    let policy = denying(&["WebFetch(domain:evil.com)"]);
    let decide = |url: &str| policy.decide(&call("WebFetch", json!({ "url": url }))).verdict;
    assert_eq!(decide("https://EVIL.com/"), Verdict::Deny);
    assert_eq!(decide("https://docs.rs\\@evil.com/"), Verdict::Deny);
    assert_eq!(decide("https://docs.rs/"), Verdict::Allow);
}

#[test]
fn what_recurses_is_blocked_for_every_fork_whatever_its_file_says() {
    let everything = allowing(&["*"]);
    let main = Policy::main_session(&default_main_tools(), &places());
    for tool in [
        "Task",
        "Agent",
        "EnterPlanMode",
        "ExitPlanMode",
        "AskUserQuestion",
        "KillShell",
        "TaskStop",
        "CronCreate",
        "CronDelete",
        "CronList",
        "ScheduleWakeup",
        "Workflow",
        "EnterWorktree",
        "ExitWorktree",
        "SendMessage",
    ] {
        let decision = everything.decide(&call(tool, json!({"subagent_type": "Explore"})));
        assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::System), "{tool}");
    }
    assert_eq!(main.decide(&call("Task", json!({"subagent_type": "Explore"}))).verdict, Verdict::Allow);
    // A subagent may not start another one, not even where the job may.
    let named = allowing(&["Agent(Explore)"]);
    let inner = ToolCall { agent_type: Some("Explore".into()), ..call("Task", json!({"subagent_type": "Explore"})) };
    assert_eq!(named.decide(&inner).layer, Layer::System);
    assert_eq!(main.decide(&inner).layer, Layer::System);
    // A bare name names no agent.
    assert_eq!(allowing(&["Agent"]).decide(&call("Task", json!({"subagent_type": "Explore"}))).layer, Layer::System);
}

#[test]
fn the_surface_shows_exactly_what_is_granted() {
    let policy = allowing(&["Bash(ollim-bot gmail *)", "mcp__discord__ping_user"]);
    assert_eq!(policy.visible_tools(), ["Bash"]);
    assert_eq!(policy.visible_mcp(&["ping_user", "report_updates", "discord_embed"]), ["ping_user"]);
    let policy = denying(&["Bash(ollim-bot cal *)", "WebFetch", "WebSearch"]);
    let visible = policy.visible_tools();
    for tool in ["WebFetch", "WebSearch", "Agent", "CronCreate", "TaskStop"] {
        assert!(!visible.iter().any(|name| name == tool), "{tool}");
    }
    for tool in ["Bash", "Read", "Edit", "Write", "Glob", "Grep", "Skill"] {
        assert!(visible.iter().any(|name| name == tool), "{tool}");
    }
    let rules = policy.deny_rules();
    for rule in
        ["Bash(ollim-bot cal *)", "WebFetch", "WebSearch", "Task", "Agent", "CronCreate", "KillShell", "TaskStop"]
    {
        assert!(rules.iter().any(|text| text == rule), "{rule}: {rules:?}");
    }
    assert!(denying(&["Write(notes/**)"]).deny_rules().contains(&"Edit(notes/**)".to_owned()));
    assert!(!allowing(&["Agent(Explore)"]).deny_rules().contains(&"Task".to_owned()));
    assert!(allowing(&["Agent(Explore)"]).visible_tools().contains(&"Agent".to_owned()));
    assert_eq!(denying(&["Bash"]).visible_tools().iter().filter(|name| *name == "Bash").count(), 0);
    assert!(!allowing(&["*"]).visible_tools().iter().any(|name| name == "Glob" || name == "Agent" || name == "LS"));
    let everything = policy.visible_mcp(&["ping_user", "follow_up_chain"]);
    assert_eq!(everything, ["ping_user", "follow_up_chain"]);
}

#[test]
fn pinging_and_reporting_are_taken_away_in_every_case() {
    let tools = ["ping_user", "discord_embed", "report_updates", "follow_up_chain"];
    for lists in [(Some(&["mcp__discord__*"][..]), None), (None, Some(&["WebFetch"][..])), (None, None)] {
        let config =
            BgForkConfig::new(UpdateMode::Blocked, false, lists.0.map(patterns), lists.1.map(patterns)).unwrap();
        let policy = Policy::background("routine x", &config, &default_main_tools(), &places());
        assert_eq!(policy.visible_mcp(&tools), ["follow_up_chain"]);
        let decision = policy.decide(&call("mcp__discord__ping_user", json!({})));
        assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::DisallowedTools));
        assert!(decision.reason.contains("allow_ping: false"), "{}", decision.reason);
        let decision = policy.decide(&call("mcp__discord__report_updates", json!({})));
        assert!(decision.reason.contains("update_main_session: blocked"), "{}", decision.reason);
    }
}

#[test]
fn every_decision_has_its_evidence() {
    let policy = denying(&["Bash(ollim-bot cal *)"]);
    let decision = bash(&policy, "ollim-bot cal today");
    assert_eq!(
        decision.reason,
        "Bash \"ollim-bot cal today\": denied by disallowed_tools \"Bash(ollim-bot cal *)\" of routine x"
    );
    assert_eq!(decision.rule.as_deref(), Some("Bash(ollim-bot cal *)"));
    assert_eq!(decision.layer, Layer::DisallowedTools);
    assert_eq!(bash(&policy, "ls | wc -l && bash -c 'date'").commands, ["ls", "wc -l", "bash -c date", "date"]);
    let policy = allowing(&["Bash(ollim-bot gmail *)"]);
    let decision = bash(&policy, "ollim-bot gmail x && touch evil");
    assert_eq!(decision.layer, Layer::AllowedTools);
    assert_eq!(
        decision.reason,
        "Bash \"ollim-bot gmail x && touch evil\": `touch evil`: not granted; routine x grants: \
         Bash(ollim-bot gmail *), Bash(ollim-bot help). Run granted commands on their own, spelled plainly"
    );
    let decision = bash(&policy, "ollim-bot gmail x");
    assert_eq!(decision.rule.as_deref(), Some("Bash(ollim-bot gmail *)"));
    assert!(decision.reason.contains("granted by \"Bash(ollim-bot gmail *)\" (allowed_tools of routine x)"));
    let entries = policy.entries();
    let origin =
        |pattern: &str| entries.iter().find(|entry| entry.pattern == pattern).map(|entry| entry.origin.as_str());
    assert_eq!(origin("Bash(ollim-bot gmail *)"), Some("allowed_tools of routine x"));
    assert_eq!(origin("Bash(ollim-bot help)"), Some("added automatically"));
    assert_eq!(origin("CronCreate"), Some("blocked for every fork"));
}

#[test]
fn our_own_commands_are_decided_by_their_words() {
    let policy = denying(&["Bash(ollim-bot cal *)"]);
    let decide = |words: &[&str]| {
        policy.decide_command(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).verdict
    };
    assert_eq!(decide(&["ollim-bot", "gmail", "unread; rm -rf /"]), Verdict::Allow);
    assert_eq!(decide(&["ollim-bot", "cal", "today"]), Verdict::Deny);
    assert_eq!(decide(&["/usr/bin/ollim-bot", "--json", "cal"]), Verdict::Deny);
    assert_eq!(decide(&["ollim-bot", "--home", "/x", "next"]), Verdict::Deny);
    let policy = allowing(&["Bash(ollim-bot gmail *)"]);
    let decide = |words: &[&str]| {
        policy.decide_command(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).verdict
    };
    assert_eq!(decide(&["ollim-bot", "gmail", "unread"]), Verdict::Allow);
    assert_eq!(decide(&["ollim-bot", "help"]), Verdict::Allow);
    assert_eq!(decide(&["ollim-bot", "gmail unread"]), Verdict::Deny);
    assert_eq!(decide(&["ollim-bot", "cal"]), Verdict::Deny);
    assert_eq!(decide(&["ollim-bot"]), Verdict::Deny);
    assert_eq!(decide(&[]), Verdict::Deny);
}

#[test]
fn the_main_session_asks_about_what_it_was_not_granted() {
    let policy = Policy::main_session(&patterns(&["Bash(ollim-bot *)", "Read"]), &places());
    allows(&policy, &["ollim-bot next", "ls -la", "cat f | head"]);
    let decision = bash(&policy, "touch f");
    assert_eq!((decision.verdict, decision.layer), (Verdict::Deny, Layer::PermissionMode));
    assert_eq!(policy.decide(&call("WebFetch", json!({"url": "https://x.y"}))).layer, Layer::PermissionMode);
    assert_eq!(policy.decide(&call("WebFetch", json!({"url": "https://x.y"}))).verdict, Verdict::Allow);
    assert_eq!(policy.decide(&call("Edit", json!({"file_path": "x"}))).verdict, Verdict::Deny);
    let whole = Policy::main_session(&default_main_tools(), &places());
    allows(&whole, &["for ((i=0;i<3;i++)); do echo $i; done", "PATH=. ls"]);
}

#[test]
fn named_agents_narrow_and_never_widen() {
    let explore = AgentRules {
        name: "Explore".into(),
        tools: Some(patterns(&["Glob", "Grep", "Read", "Bash"])),
        disallowed: patterns(&["Write", "Edit", "NotebookEdit"]),
        read_only: true,
        permission_mode: PermissionMode::Default,
    };
    let job = policy(None, Some(&["Bash(git *)"])).as_agent(&explore);
    allows(&job, &["ls", "cat f | head", "grep -r x ."]);
    for line in
        ["mkdir x", "touch x", "rm x", "cp a b", "mv a b", "git add x", "git commit -m x", "npm install", "git status"]
    {
        check(&job, line, Verdict::Deny);
    }
    assert_eq!(job.decide(&call("Edit", json!({"file_path": "x"}))).verdict, Verdict::Deny);
    assert_eq!(job.decide(&call("Read", json!({"file_path": "x"}))).verdict, Verdict::Allow);
    assert_eq!(job.decide(&call("WebSearch", json!({"query": "x"}))).verdict, Verdict::Deny);
    assert_eq!(job.visible_tools(), ["Bash", "Glob", "Grep", "Read"]);
    // As a subagent: its own lists, then the job's.
    let job = allowing(&["Bash(ls *)", "Agent(Explore)", "Edit"]).with_subagents(&[explore]);
    let as_explore = |tool: &str, input: Value| {
        job.decide(&ToolCall { agent_type: Some("Explore".into()), ..call(tool, input) }).verdict
    };
    assert_eq!(as_explore("Bash", json!({"command": "ls"})), Verdict::Allow);
    assert_eq!(as_explore("Bash", json!({"command": "cat f"})), Verdict::Deny);
    assert_eq!(as_explore("Edit", json!({"file_path": "x"})), Verdict::Deny);
    assert_eq!(job.decide(&call("Edit", json!({"file_path": "x"}))).verdict, Verdict::Allow);
}

#[test]
fn read_only_is_told_for_every_tool() {
    let policy = denying(&[]);
    let read_only = |tool: &str, input: Value| policy.decide(&call(tool, input)).read_only;
    assert!(read_only("Read", json!({"file_path": "x"})));
    assert!(read_only("Grep", json!({"pattern": "x"})));
    assert!(read_only("WebSearch", json!({"query": "x"})));
    assert!(read_only("Bash", json!({"command": "ls | head"})));
    assert!(!read_only("Bash", json!({"command": "ollim-bot next"})));
    assert!(!read_only("Edit", json!({"file_path": "x"})));
    assert!(!read_only("mcp__discord__ping_user", json!({})));
}
