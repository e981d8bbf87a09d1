//! The engine under lines made from the corpora: pieces of attacks and of ordinary lines, cut, joined, quoted and nested. It
//! never panics, always says why, and its answers fit together. Every line is judged on a thread with the stack of
//! the service's own.
//!
//! It runs with the tests and needs nothing but a stable compiler: `OLLIM_FUZZ_LINES=1000000` makes a long run of it,
//! `OLLIM_FUZZ_SEED` another one. Guided by coverage it is not; what guides it are the pieces, each of which somebody thought
//! would get through.

use std::collections::BTreeSet;

use ollim_bot::policy::{
    AgentRules, BgForkConfig, Decision, PermissionMode, Places, Policy, ToolCall, ToolPattern, UpdateMode, Verdict,
    default_main_tools,
};
use serde_json::json;

use crate::policy_corpus::lines_of_the_corpora;
use crate::support::random::Random;

/// The default of tokio's threads, on which the service judges calls.
const STACK: usize = 2 * 1024 * 1024;

const RULES: &[&str] = &[
    "Bash(ls *)",
    "Bash(cat *)",
    "Bash(echo *)",
    "Bash(ollim-bot gmail *)",
    "Bash(git log *)",
    "Bash(find *)",
    "Bash(xargs *)",
    "Bash(bash *)",
    "Bash(* x)",
    "Bash",
    "Edit(notes/**)",
    "Read(notes/**)",
];

const JOINTS: &[&str] = &[
    "; ", " && ", " | ", "\n", " ", " $(", ") ", "`", " \"", "\"", " '", "'", " (", " {", "; }", " <<E\n", "\nE\n",
    " > ", "$((", "))", "((", " & ",
];

/// Makes the lines.
struct Lines(Random);

impl Lines {
    /// A part of a line, cut at any character.
    fn part<'a>(&mut self, of: &'a str) -> &'a str {
        let places: Vec<usize> = of.char_indices().map(|(at, _)| at).chain([of.len()]).collect();
        let (a, b) = (places[self.0.below(places.len())], places[self.0.below(places.len())]);
        &of[a.min(b)..a.max(b)]
    }

    fn line(&mut self, seeds: &[&str]) -> String {
        let mut line = self.0.one(seeds).to_owned();
        for _ in 0..self.0.below(4) {
            let other = self.0.one(seeds);
            let joint = self.0.one(JOINTS);
            line = match self.0.below(8) {
                0 => format!("{line}{joint}{other}"),
                1 => format!("{}{joint}{}", self.part(&line.clone()), self.part(other)),
                2 => format!("{}{other}{}", self.part(&line.clone()), self.part(&line.clone())),
                3 => format!("bash -c '{}'", line.replace('\'', "'\\''")),
                4 => format!("echo \"$({line})\""),
                5 => format!("if {line}; then {other}; fi"),
                6 => format!("timeout 5 {line}"),
                _ => line.replacen(' ', joint, 1),
            };
        }
        line
    }

    fn rules(&mut self, most: usize) -> Vec<ToolPattern> {
        let chosen: BTreeSet<&str> = (0..self.0.below(most + 1)).map(|_| self.0.one(RULES)).collect();
        chosen.into_iter().map(|text| ToolPattern::parse(text).unwrap()).collect()
    }
}

/// A job with these grants as an agent with these denials.
fn policy(allow: &[ToolPattern], deny: &[ToolPattern]) -> Policy {
    let config = BgForkConfig::new(UpdateMode::OnPing, true, Some(allow.to_vec()), None).unwrap();
    let places = Places {
        root: "/home/u/.ollim-bot".into(),
        work: "/home/u/.ollim-bot/work".into(),
        user_home: "/home/u".into(),
    };
    let agent = AgentRules {
        name: "a".into(),
        tools: None,
        disallowed: deny.to_vec(),
        read_only: false,
        permission_mode: PermissionMode::Default,
    };
    Policy::background("routine x", &config, &default_main_tools(), &places).as_agent(&agent)
}

fn decide(policy: &Policy, line: &str) -> Decision {
    policy.decide(&ToolCall {
        tool: "Bash".into(),
        input: json!({ "command": line }),
        cwd: "/home/u/.ollim-bot/work".into(),
        agent_type: None,
    })
}

/// What has to hold of one line under random rules; whether it was allowed.
fn judge(random: &mut Lines, line: &str) -> bool {
    let (allow, deny, more) = (random.rules(5), random.rules(3), random.rules(2));
    let said = decide(&policy(&allow, &deny), line);
    let allowed = said.verdict == Verdict::Allow;
    assert!(!said.reason.is_empty(), "{line:?}");
    let with = |list: &[ToolPattern]| [list, &more].concat();
    let denied_more = decide(&policy(&allow, &with(&deny)), line);
    assert!(allowed || denied_more.verdict == Verdict::Deny, "a denial allowed {line:?}: {more:?}");
    let granted_more = decide(&policy(&with(&allow), &deny), line);
    assert!(!allowed || granted_more.verdict == Verdict::Allow, "a grant denied {line:?}: {}", granted_more.reason);
    let again = decide(&policy(&allow, &deny), line);
    assert_eq!(again, said, "{line:?}");
    if allowed {
        // Nothing that it would run is denied when it stands alone, spelled as it was read.
        for words in
            said.commands.iter().filter(|words| words.chars().all(|c| c.is_ascii_alphanumeric() || " -./".contains(c)))
        {
            let alone = decide(&policy(&allow, &deny), words);
            let steers = alone.reason.contains("no command in it that a rule grants");
            assert!(alone.verdict == Verdict::Allow || steers, "{words:?} of {line:?}: {}", alone.reason);
        }
    }
    allowed
}

#[test]
fn lines_made_from_the_corpora_are_judged_consistently() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let count = number("OLLIM_FUZZ_LINES").unwrap_or(4000);
    let seed = number("OLLIM_FUZZ_SEED").unwrap_or(0x5DEE_CE66_D012_3457) | 1;
    let work = move || {
        let lines = lines_of_the_corpora();
        let seeds: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut random = Lines(Random(seed));
        let mut allowed = 0;
        for _ in 0..count {
            let line = random.line(&seeds);
            allowed += u64::from(judge(&mut random, &line));
        }
        allowed
    };
    let allowed = std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join().unwrap();
    assert!(allowed > count / 100, "only {allowed} of {count} were let through: this shows little");
}
