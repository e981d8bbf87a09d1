//! Ways around that an outside corpus showed, and those that the mending of them could have opened.

use super::*;

#[test]
fn arithmetic_takes_names_that_the_line_sets_to_numbers() {
    let policy = allowing(&["Bash(echo *)", "Bash(cat *)", "Bash(printf *)"]);
    allows(
        &policy,
        &[
            "a=3; b=4; echo $((a * b + 2))",
            "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done",
            "n=\"2\"; echo $((n)) \"$((n-1))\"",
            "n=1; n=$((n+1)); cat <<EOF\n$((n))\nEOF",
        ],
    );
    denies(
        &policy,
        &[
            "echo $((n))",
            "n='a[$(secret)]'; echo $((n))",
            "n=1; n='a[$(secret)]'; echo $((n))",
            "n=1; n+='a[$(secret)]'; echo $((n))",
            "n=1; n=$((1))x; echo $((n))",
            "n=m; m=1; echo $((n))",
            "n=1; read n; echo $((n))",
            "n=1; read -ra n; echo $((n))",
            "n=1; read -ran; echo $((n))",
            "n=1; read -rp x n; echo $((n))",
            "n=1; printf -v n '%s' 'a[$(secret)]'; echo $((n))",
            "n=1; printf -vn '%s' 'a[$(secret)]'; echo $((n))",
            "n=1; for n in 'a[$(secret)]'; do echo $((n)); done",
            "n=1; export n='a[$(secret)]'; echo $((n))",
            "n=1; mapfile n < notes/x; echo $((n))",
            "n=1; : ${n:=x}; echo $((n))",
            "n=1; unset n; echo $((n))",
            "n='a[$(secret)]' bash -c 'n=1; echo $((n))'",
            "n=1; env n='a[$(secret)]' bash -c 'echo $((n))'",
            // What the shell sets by itself.
            "_=3; : 'a[$(secret)]'; echo $((_))",
            "REPLY=3; read <<< 'a[$(secret)]'; echo $((REPLY))",
            "OLDPWD=3; echo $((OLDPWD))",
            "i='-v a[$(secret)]'; [ $i ] && echo x",
            "i=1; read i; [ $i -lt 3 ] && echo x",
            "i=1; [ $i$j -lt 3 ] && echo x",
            "[ $i -lt 3 ] && echo x",
            "[() { echo; }; i=1; [ $i -lt 3 ]",
            "n=1; echo $((n[0]))",
            "n=1; echo $((2n))",
            "n=1; echo $((16#n))",
            "n=1; echo $(($n))",
            "n=1; echo $(($((n)) + `secret`))",
        ],
    );
}

#[test]
fn arithmetic_commands_set_names_to_numbers() {
    let policy = allowing(&["Bash(echo *)", "Bash(ls *)", "Edit(notes/**)"]);
    allows(
        &policy,
        &[
            "(( n = 3 + 4 )); echo \"$n\"",
            "((n=3)) && echo $((n))",
            "n=1; ((n++)); ((n += 2)); ((--n)); echo $n",
            "for ((i = 0; i < 3; i++)); do echo \"n$i\"; done",
            "for((i=0;i<3;i++)); do echo $i; done",
            "for ((;;))\ndo echo x; break; done",
            "for ((i = 0, j = 9; i < j; i++, j--)) ; do echo $i $j; done",
            "n=4; if ((n > 3)); then echo more; fi",
            "i=0; while ((i < 3)); do echo $i; ((i++)); done",
            "n=4; ((n > 3)) && echo more || echo less",
            "n=4; ! ((n > 3)) || ls",
            "( ((n = 1)); echo $n )",
            "n=$( ((m = 1)); echo $m ); ls \"$n\"",
            "((n = (1 + 2) * 3)) > notes/x; echo $n",
            "echo one\n((n = 1))\necho $n",
        ],
    );
    denies(
        &policy,
        &[
            "((secret))",
            "((secret)); ls",
            "( (secret) )",
            "((secret) )",
            "((secret); (ls))",
            "((ls) | (secret))",
            "((ls)&&(secret))",
            "((ls)\n(secret))",
            "((n)) && ls",
            "((n++, m)) && ls",
            "n='a[$(secret)]'; ((n)) && ls",
            "n='a[$(secret)]'; ((n++)) && ls",
            "((n = 'a[$(secret)]')) && ls",
            "((n[$(secret)] = 1)) && ls",
            "((a[0] = 1)); ls",
            "(($(secret))) && ls",
            "((`secret`)) && ls",
            "(($x)) && ls",
            "((\"1\")) && ls",
            "((n = 1))secret",
            "((n = 1)) secret",
            "((n = 1))>evil; ls",
            "((n = 1)) > evil; ls",
            "((PATH = 1)); ls",
            "((OLLIM_RUN_TOKEN = 5)); ls",
            "((OLLIM_RUN_TOKEN++)); ls",
            "((IFS = 1)); ls",
            "ls $((OLLIM_RUN_TOKEN=5))",
            "((RANDOM)); ls",
            "((n = 1); secret)",
            "((n = 1)\n); secret",
            "for ((i = secret; i < 3; i++)); do ls; done",
            "for ((i = 0; i < 3; i++)); do secret; done",
            "for ((i = 0; i < 3; i++)) do secret; done",
            "for ((i = 0; i < 3; i++)) { secret; }",
            "for ((i = 0; i < 3)); do ls; done",
            "for (()); do ls; done",
            "for ((i = 0; $(secret); i++)); do ls; done",
            "for ((i = 0; i < 3; PATH = 1)); do ls; done",
            "for i in a ((1)); do ls; done",
            "case x in ((1)) ls;; esac",
            "case x in a) ((1));; esac; secret",
            "f() ((1)); ls; secret",
            "x=((1)); ls",
            "ls ((1))",
            "time ((1)); secret",
            "echo then ((1)); secret",
        ],
    );
}

#[test]
fn ifs_is_set_for_read_alone() {
    let policy = allowing(&["Bash(echo *)", "Bash(ls *)"]);
    allows(
        &policy,
        &["while IFS=, read -r a b; do echo \"$b\"; done <<< x,y", "echo x | while IFS= read -r l; do echo $l; done"],
    );
    denies(
        &policy,
        &[
            "IFS=, ; read -r a; echo $a",
            "IFS=x echo a",
            "IFS=x; echo a",
            "IFS=x PATH=y read -r a; echo $a",
            "read() { ls; }; IFS=x read; echo a",
            "IFS=x command read a; echo $a",
            "IFS=$(secret) read -r a; echo $a",
            "read -r IFS; echo a",
            "read -raIFS; echo a",
        ],
    );
    denies(&policy_for_all_but("secret"), &["read() { ls; }; IFS=x read", "IFS=x; ls"]);
}

fn policy_for_all_but(program: &str) -> Policy {
    denying(&[&format!("Bash({program} *)")])
}

#[test]
fn a_relative_path_after_a_move_is_unknown() {
    let policy = allowing(&[
        "Bash(cat notes/*)",
        "Bash(cat today)",
        "Bash(ls *)",
        "Bash(tool --file=notes/*)",
        "Bash(cd *)",
        "Bash(pushd *)",
    ]);
    allows(&policy, &["cat notes/a", "cd notes && ls", "cd notes && ls a/b", "cat today"]);
    denies(
        &policy,
        &[
            "cd ~/diary && cat notes/a",
            "pushd ~/diary && cat notes/a",
            "cd ~/diary; ls $(cat notes/a)",
            "(cd ~/diary; cat notes/a)",
            "while true; do cat notes/a; cd x; done",
            "cd ~/diary && cat today",
            "cd ~/diary && tool --file=notes/a",
            "env -C /x cat notes/a",
            "cd x && timeout 5 cat notes/a",
        ],
    );
}

#[test]
fn a_denied_call_is_found_in_what_another_program_is_given() {
    let policy = denying(&["Bash(ollim-bot cal *)", "Bash(git push *)"]);
    denies(
        &policy,
        &[
            "choom -n 0 -- ollim-bot cal today",
            "setpriv --no-new-privs /usr/bin/ollim-bot --json cal",
            "unknown --do='ollim-bot cal today'",
            "unknown ollim-bot \"$x\"",
            "unknown a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 3 4 5 6 7 8 9 ollim-bot cal",
            "unknown ollim-bot --color never --color never --color never --color never --color never --color never \
             --color never --color never --color never cal",
            "python3 -m timeit 'import os; os.system(\"ollim-bot cal today\")'",
            "./echo ollim-bot cal",
            "jobs -x ollim-bot cal today",
            "echo 'x:;secret' | make -f -",
            "make -sf- x",
            "make --file=- x",
            "make --makef - x",
            "make -f /dev/fd/0",
            "make -f <(echo x)",
            "make -f ../../../proc/self/fd/0",
            "PS4='$(ollim-bot cal today)'; set -o xtrace; :",
            "export PS4='$(ollim-bot cal today)'; bash -xc :",
            "read -r PS4; set -x; :",
            "git -C . push",
            "git --no-pager push origin",
            "git -C $x log",
            "git --git-dir x --work-tree=y push",
            "unknown git -C . push",
        ],
    );
    allows(
        &policy,
        &[
            "echo ollim-bot cal today",
            "ollim-bot tasks add 'look at ollim-bot cal today'",
            "git commit -m 'ollim-bot cal today'",
            "git -C . status",
            "git -C \"$x\" log",
            "unknown ollim-bot gmail",
            "make -f other.mk test",
            "make -C folder -j4",
        ],
    );
}

#[test]
fn a_long_line_of_candidates_is_judged_all_the_same() {
    let policy = denying(&["Bash(ollim-bot cal *)"]);
    let many = "ollim-bot ".repeat(6000);
    allows(&policy, &[&format!("unknown {many}")]);
    denies(&policy, &[&format!("unknown {many} cal")]);
}

#[test]
fn the_text_of_a_commit_may_be_known_only_later() {
    let policy = allowing(&["Bash(git commit *)", "Bash(cat *)"]);
    allows(
        &policy,
        &[
            "git commit -q -m \"$(cat <<'EOF'\nIt's done (all).\nEOF\n)\"",
            "git commit -am \"$(cat x)\"",
            "git commit --message=\"$(cat x)\"",
        ],
    );
    denies(
        &policy,
        &[
            "git commit -m $(cat x)",
            "git commit \"$(cat x)\"",
            "git commit -m x \"$(cat x)\"",
            "git commit -Fm \"$(cat x)\"",
            "git commit -m \"$(secret)\"",
            "git commit -m -m \"$(cat x)\" \"$(cat x)\"",
        ],
    );
}

#[test]
fn asking_about_files_needs_no_grant() {
    let policy = allowing(&["Bash(echo *)"]);
    allows(
        &policy,
        &["[ -f notes/x ] && echo yes", "if [[ -f a && ! -d b ]]; then echo yes; fi", "echo a & wait; echo b"],
    );
    denies(
        &policy,
        &[
            "[ -f $(secret) ] && echo yes",
            "[[ -f $(secret) ]] && echo yes",
            "[[ -v x ]] && echo",
            "wait -p PATH; echo a",
        ],
    );
    denies(&denying(&["Bash(test *)"]), &["[[ -f x ]]", "test -f x"]);
}

#[test]
fn the_persons_own_client_is_out_of_reach() {
    let policy = allowing(&["Bash(cat *)", "Bash(grep *)", "Read(//**)", "Edit(//**)"]);
    denies(
        &policy,
        &[
            "cat ~/.claude/settings.json",
            "cat /home/u/.claude/projects/p/x.jsonl",
            "cat /home/u/.claude.json",
            "cat < ~/.claude.json",
            "grep -r token ~/.claude",
            "grep --file=/home/u/.claude/x y",
        ],
    );
    allows(&policy, &["cat repo/.git/HEAD", "cat ~/.claudette", "cat notes/.claude.md"]);
    for path in ["/home/u/.claude/settings.json", "~/.claude.json"] {
        assert_eq!(policy.decide(&call("Read", json!({ "file_path": path }))).verdict, Verdict::Deny, "{path}");
    }
}
