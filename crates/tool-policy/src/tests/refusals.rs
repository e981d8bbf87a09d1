//! The sentences of refusals.

use super::*;

#[test]
fn a_refusal_says_what_would_be_needed_and_what_to_do_instead() {
    // The advice in the sentences is correct.
    grants(&allowing(&["Bash(python3 -c 'print 2*3')"]), &["python3 -c print␣2*3"]);
    grants(&allowing(&["Bash(git -c *)"]), &["git -c core.pager=x log"]);
    grants(&allowing(&["Bash(git --git-dir=* *)"]), &["git --git-dir=x log"]);
    let policy = allowing(&["Bash(git log *)", "Bash(sort *)", "Bash(rg *)"]);
    for (line, parts) in [
        (
            "git push origin",
            &["`git` is not granted", "`Bash(git push *)` would be needed", "grants: Bash(git log *)"][..],
        ),
        // Not `make *`, which would grant every program.
        ("make -j4", &["`make` is not granted", "`Bash(make -j4)`"]),
        ("npm run test:unit", &["the rule `Bash(npm run test:unit)` would be needed"]),
        ("ssh -o BatchMode=yes host uptime", &["the rule `Bash(ssh -o BatchMode=yes host uptime)` would be needed"]),
        ("python3 -c print␣2*3", &["the rule `Bash(python3 -c 'print 2*3')` would be needed"]),
        ("/usr/bin/rg x", &["by its path; call it `rg`"]),
        ("/bin/cat x", &["call it `cat`"]),
        ("rg --pre x y", &["`--pre` of `rg`", "`Bash(rg --pre *)`", "leave it out"]),
        ("git log --output=x", &["`--output` of `git`", "`Bash(git log --output=* *)`"]),
        ("git -C . push", &["`Bash(git push *)` would be needed"]),
        ("git -c core.pager=x log", &["`Bash(git -c *)` would be needed"]),
        ("git --git-dir=x log", &["`Bash(git --git-dir=* *)` would be needed"]),
        ("curl -s https://api.x.y/v1?q", &["`Bash(curl https://api.x.y/*)` would be needed"]),
        ("curl -H Host:a https://api.x.y/", &["`Bash(curl -H Host:* https://api.x.y/*)` would be needed"]),
    ] {
        let decision = start(&policy, line).decision;
        assert_eq!(decision.verdict, Verdict::Deny, "{line}");
        for part in parts {
            assert!(decision.reason.contains(part), "{line}: {}", decision.reason);
        }
    }
}

/// A star in a host stands for no dot, and the sentence says which rule does.
#[test]
fn a_refusal_of_a_host_says_which_rule_grants_it() {
    for (rule, line) in [("ssh web-*", "ssh web-1.local"), ("ssh web-* uptime", "ssh web-1.local uptime")] {
        let decision = start(&allowing(&[&format!("Bash({rule})")]), line).decision;
        assert!(decision.reason.contains(&format!("the rule `Bash({line})` would be needed")), "{}", decision.reason);
        grants(&allowing(&[&format!("Bash({line})")]), &[line]);
    }
}

#[test]
fn a_refusal_is_short_and_plain_whatever_the_agent_wrote() {
    let long = "x\u{1b}[31m\r\n\u{202e}".repeat(8_000);
    let policy =
        allowing(&["Bash(git log *)", "Bash(curl https://a.b/*)", "Bash(make test *)", "Bash(rg *)", "Bash(ls *)"]);
    let of = |words: &[&str], cwd: &str, env: &[(&str, &str)]| {
        let argv: Vec<String> = words.iter().map(|word| word.replace("LONG", &long)).collect();
        let env = env.iter().map(|(name, value)| (name.replace("LONG", &long), (*value).to_owned())).collect();
        let cwd = cwd.replace("LONG", &long);
        let start = ProgramStart { argv: &argv, cwd: std::path::Path::new(&cwd), env: &env, agent_type: None };
        policy.decide_program(&start).decision
    };
    for (words, cwd, env) in [
        (&["LONG"][..], WORK, &[][..]),
        (&["/bin/LONG"], WORK, &[]),
        (&["/LONG/rg"], WORK, &[]),
        (&["git", "LONG"], WORK, &[]),
        (&["git", "-LONG", "log"], WORK, &[]),
        (&["git", "log", "--output=LONG"], WORK, &[]),
        (&["curl", "https://a.b/", "--LONG"], WORK, &[]),
        (&["curl", "https://a.b/", "-HLONG:x"], WORK, &[]),
        (&["curl", "https://a.b/LONG"], WORK, &[]),
        (&["curl", "LONG"], WORK, &[]),
        (&["make", "test", "LONG=x"], WORK, &[]),
        (&["ls"], "/LONG", &[]),
        (&["ls"], "/home/u/.bot/state/LONG", &[]),
        (&["ls"], WORK, &[("LONG", "x")]),
        (&["ls"], WORK, &[("FOO_LONG", "x")]),
        (&["ls"], WORK, &[("LD_LONG", "x")]),
        (&["ls", "../state/x\u{1b}[31m"], WORK, &[]),
    ] {
        let Decision { verdict, reason, .. } = of(words, cwd, env);
        assert_eq!(verdict, Verdict::Deny, "{words:?}: {}", reason.chars().take(300).collect::<String>());
        assert!(reason.chars().count() < 8_000, "{words:?}");
        assert!(!reason.contains(char::is_control) && !reason.contains('\u{202e}'), "{words:?}");
    }
}

#[test]
fn a_refused_request_names_the_option_that_is_more_than_its_rule() {
    let policy = allowing(&["Bash(curl https://api.example.com/*)", "Bash(wget -q *)"]);
    for (line, part) in [
        ("curl -u a:b https://api.example.com/x", "the option `-u` of `curl` has to be spelled"),
        ("curl -u a:b https://api.example.com/x", "as in `Bash(curl -u * https://api.example.com/*)`"),
        ("curl https://api.example.com/x --cookie a=b", "the option `--cookie` of `curl` has to be spelled"),
        ("wget -q -O f https://a.b", "as in `Bash(wget -q -O *)`"),
        ("curl https://other.example.com/x", "the rule `Bash(curl https://other.example.com/*)` would be needed"),
    ] {
        let reason = start(&policy, line).decision.reason;
        assert!(reason.contains(part), "{line}: {reason}");
    }
}
