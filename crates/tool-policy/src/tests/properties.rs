//! Properties over random starts of programs, random rules and random calls.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const PROGRAMS: &[&str] = &[
    "ls",
    "cat",
    "git",
    "git-push",
    "/usr/bin/git",
    "/usr/lib/git-core/git-push",
    "bot",
    "bot-cal",
    "./bot",
    "find",
    "sort",
    "curl",
    "env",
    "bash",
    "make",
    "touch",
    "./run.sh",
    "mytool",
    "npm",
    "xargs",
];

const WORDS: &[&str] = &[
    "log",
    "push",
    "gmail",
    "cal",
    "x",
    "evil",
    "--json",
    "--color",
    "never",
    "--home",
    "--",
    "-C",
    ".",
    "-c",
    "a.b=c",
    "--no-pager",
    "-o",
    "-uo",
    "--output=f",
    "-delete",
    "-exec",
    ";",
    "https://a.b/c",
    "-sL",
    "-s",
    "-S",
    "-K",
    "-n",
    "a b",
    "",
    "follow_up",
    "follow-up",
    "test",
    "publish",
    "../x",
    "é",
    "--force",
];

const PATTERNS: &[&str] = &[
    "Bash",
    "Bash(ls *)",
    "Bash(cat *)",
    "Bash(git *)",
    "Bash(git log *)",
    "Bash(bot *)",
    "Bash(bot gmail *)",
    "Bash(find *)",
    "Bash(* x)",
    "Bash(ls*)",
    "Bash(bash *)",
    "Bash(touch evil)",
    "Bash(xargs *)",
    "Bash(git push *)",
    "Bash(git --no-pager *)",
    "Bash(git -C . push *)",
    "Bash(/usr/bin/git *)",
    "Bash(git -c *)",
    "Bash(git-push *)",
    "Bash(git log)",
    "Bash(bot cal *)",
    "Bash(bot-cal *)",
    "Bash(bot follow-up *)",
    "Bash(bot --json cal x)",
    "Bash(* push *)",
    "Bash(* --force)",
    "Bash(env *)",
    "Bash(make)",
    "Bash(npm test)",
    "Bash(npm publish *)",
    "Bash(sort *)",
    "Bash(sort -o *)",
    "Bash(curl *)",
    "Bash(curl https://a.b/*)",
    "Bash(curl -s *)",
    "Bash(curl -s -S https://a.b/*)",
    "Bash(curl * https://a.b/*)",
    "Bash(find . -delete)",
    "Bash(./run.sh)",
    "Bash(git \"log x\" *)",
    "Read",
    "Edit",
    "Edit(notes/**)",
    "Read(in/**)",
    "Glob",
    "WebFetch(domain:docs.rs)",
    "mcp__chat",
    "mcp__chat__ping_user",
    "Agent(Explore)",
    "Skill(a *)",
    "*",
];

/// Programs with their subcommands, and words behind them, of which calls have several spellings.
const SPELLED_HEADS: &[&str] =
    &["docker exec", "docker run", "git commit", "kubectl exec", "ssh", "sudo apt", "sudo docker exec", "apt", "cargo"];

const SPELLED_WORDS: &[&str] = &[
    "web-1",
    "sh",
    "uptime -p",
    "-t",
    "-it",
    "-i",
    "-m",
    "--message=x",
    "-mx",
    "--",
    "ls",
    "-y",
    "install",
    "acme-x",
    "-a",
    "cp",
    "notes.md",
];

/// Returns a call, and the same with one of its words in another spelling, left out, or joined with the next one.
fn respelled(call: &[String]) -> Vec<Vec<String>> {
    const OTHERS: &[(&str, &[&str])] = &[
        ("-i", &["--interactive", "--stdin", "-it"]),
        ("-it", &["-ti", "-i -t", "-t -i", "-t", "-i"]),
        ("-m x", &["--message=x", "-mx"]),
        ("-mx", &["--message=x", "-m x"]),
        ("-t", &["--tty", "-it"]),
        ("--message=x", &["-m x", "-mx", "--message x"]),
        ("apt", &["apt -y"]),
        ("exec", &["exec -t", "exec -i", "exec -it"]),
        ("run", &["run -t", "run -i"]),
    ];
    let with = |at: usize, count: usize, words: Vec<String>| [&call[..at], &words, &call[at + count..]].concat();
    let mut found = vec![call.to_vec()];
    for (at, word) in call.iter().enumerate() {
        found.push(with(at, 1, Vec::new()));
        for (_, others) in OTHERS.iter().filter(|(own, _)| own == word) {
            found.extend(others.iter().map(|other| with(at, 1, other.split(' ').map(ToOwned::to_owned).collect())));
        }
        if let Some(next) = call.get(at + 1) {
            found.push(with(at, 2, vec![format!("{word} {next}")]));
            found.push(with(at, 2, vec![next.clone(), word.clone()]));
        }
    }
    found
}

fn argvs() -> impl Strategy<Value = Vec<String>> {
    let word = prop_oneof![8 => select(WORDS).prop_map(ToOwned::to_owned), 1 => any::<String>()];
    prop_oneof![
        8 => (select(PROGRAMS), vec(word, 0..6))
            .prop_map(|(program, words)| std::iter::once(program.to_owned()).chain(words).collect()),
        1 => vec(any::<String>(), 0..4),
    ]
}

/// Generates a start with its folder and a variable.
fn starts() -> impl Strategy<Value = (Vec<String>, &'static str, Option<(&'static str, &'static str)>)> {
    let folder = select(&[WORK, WORK, "/home/u/.bot/work/notes", "/", "/home/u/.bot/state"][..]);
    let variable = select(&[("CI", "1"), ("GIT_PAGER", "x"), ("PATH", "."), ("LC_ALL", "C"), ("FOO", "x")][..]);
    (argvs(), folder, proptest::option::weighted(0.3, variable))
}

fn run(policy: &Policy, (argv, cwd, env): &(Vec<String>, &str, Option<(&str, &str)>)) -> ProgramDecision {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    policy.decide_program(&ProgramStart { argv, cwd: std::path::Path::new(cwd), env: &env, agent_type: None })
}

/// Returns whether a location gives no more than another.
fn is_within(inner: &Location, outer: &Location) -> bool {
    match (inner, outer) {
        (Location::Nowhere, _) | (Location::Here, Location::Here | Location::Outside(_)) => true,
        (Location::Outside(inner), Location::Outside(outer)) => outer.covers(inner),
        _ => false,
    }
}

fn rules(most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    vec(select(PATTERNS), 0..most)
}

fn calls() -> impl Strategy<Value = ToolCall> {
    prop_oneof![
        1 => any::<String>().prop_map(|line| call("Bash", json!({ "command": line }))),
        1 => (select(&["Read", "Edit", "Write", "Grep", "Glob", "WebFetch", "Skill", "Task", "mcp__chat__ping_user", "CronCreate"][..]),
              select(&["notes/a", "in/b", "../x", "/etc/x", "~/y", "https://docs.rs/", "a b", "Explore", ""][..]))
            .prop_map(|(tool, text)| call(tool, json!({
                "file_path": text, "path": text, "pattern": text, "url": text, "skill": text, "subagent_type": text,
            }))),
    ]
}

fn with(allow: &[&str], deny: &[&str]) -> Policy {
    // Both lists at once, since an agent's denials apply above a job's grants.
    let agent = AgentRules {
        name: "a".into(),
        tools: None,
        disallowed: patterns(deny),
        read_only: false,
        permission_mode: PermissionMode::Default,
    };
    allowing(allow).as_agent(&agent)
}

proptest! {

    #[test]
    fn adding_a_denial_never_allows_more(call in calls(), allow in rules(5), deny in rules(4), more in select(PATTERNS)) {
        let before = with(&allow, &deny).decide(&call);
        let mut longer = deny.clone();
        longer.push(more);
        let after = with(&allow, &longer).decide(&call);
        prop_assert!(!(before.verdict == Verdict::Deny && after.verdict == Verdict::Allow), "{call:?} {allow:?} {deny:?} {more}");
        prop_assert!(!before.reason.is_empty() && !after.reason.is_empty());
    }

    #[test]
    fn adding_a_grant_never_denies(call in calls(), allow in rules(5), deny in rules(4), more in select(PATTERNS)) {
        let before = with(&allow, &deny).decide(&call);
        let mut longer = allow.clone();
        longer.push(more);
        let after = with(&longer, &deny).decide(&call);
        prop_assert!(!(before.verdict == Verdict::Allow && after.verdict == Verdict::Deny), "{call:?} {allow:?} {deny:?} {more}: {}", after.reason);
    }

    #[test]
    fn a_start_is_always_decided_and_narrowing_only_narrows(
        start in starts(), allow in rules(5), deny in rules(4), more in select(PATTERNS),
    ) {
        let before = run(&with(&allow, &deny), &start);
        prop_assert!(!before.decision.reason.is_empty() && !before.decision.reason.contains(char::is_control));
        prop_assert_eq!(before.location == Location::Nowhere, before.decision.verdict == Verdict::Deny);
        // With an additional denial.
        let denials = [deny.as_slice(), &[more]].concat();
        let denied = run(&with(&allow, &denials), &start);
        prop_assert!(is_within(&denied.location, &before.location), "{start:?} {allow:?} {denials:?}");
        // With an additional grant.
        let longer = [allow.as_slice(), &[more]].concat();
        let granted = run(&with(&longer, &deny), &start);
        prop_assert!(before.decision.verdict == Verdict::Deny || granted.decision.verdict == Verdict::Allow,
            "{start:?} {longer:?} {deny:?}: {}", granted.decision.reason);
        // As an agent, which may only have less.
        let agent = AgentRules {
            name: "a".into(), tools: Some(patterns(&["Bash", more])), disallowed: Vec::new(), read_only: true,
            permission_mode: PermissionMode::Default,
        };
        let reader = run(&with(&allow, &deny).as_agent(&agent), &start);
        prop_assert!(is_within(&reader.location, &before.location), "{start:?} {allow:?} {deny:?}");
        if let Location::Outside(rights) = reader.location {
            prop_assert!(start.0[0] == "bot" || (rights.writes == Writes::Nothing && !rights.network));
        }
    }

    #[test]
    fn what_one_rule_covers_it_grants(start in starts(), parent in select(PATTERNS), child in select(PATTERNS)) {
        let (outer, inner) = (ToolPattern::parse(parent).unwrap(), ToolPattern::parse(child).unwrap());
        if BOT.covers(&outer, &inner) {
            let (above, below) = (run(&allowing(&[parent]), &start), run(&allowing(&[child]), &start));
            prop_assert!(is_within(&below.location, &above.location), "{start:?}: {parent} {:?}, {child} {:?}", above.location, below.location);
        }
    }

    /// The same for calls that have several spellings, and rules that match some of them.
    #[test]
    fn what_one_rule_covers_it_grants_in_every_spelling(
        head in select(SPELLED_HEADS), words in vec(select(SPELLED_WORDS), 1..5), stars in vec(0_usize..6, 0..3),
        calls in vec((select(SPELLED_HEADS), vec(select(SPELLED_WORDS), 0..5)), 4),
    ) {
        let child = [vec![head], words.clone()].concat();
        let mut parent = child.clone();
        for at in stars {
            parent[1 + at % words.len()] = "*";
        }
        let rule = |words: &[&str]| {
            let quote = |word: &&str| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() };
            format!("Bash({head} {})", words[1..].iter().map(quote).collect::<Vec<_>>().join(" "))
        };
        let (parent, child_rule) = (rule(&parent), rule(&child));
        let (outer, inner) = (ToolPattern::parse(&parent), ToolPattern::parse(&child_rule));
        if let (Ok(outer), Ok(inner)) = (outer, inner) && BOT.covers(&outer, &inner) {
            let others = calls.into_iter().map(|(head, words)| [vec![head], words].concat());
            let split = |words: &[&str]| words.iter().flat_map(|word| word.split(' ')).map(ToOwned::to_owned).collect::<Vec<String>>();
            for argv in respelled(&split(&child)).into_iter().chain(others.map(|words| split(&words))) {
                let start = (argv, WORK, None);
                let (above, below) = (run(&allowing(&[&parent]), &start), run(&allowing(&[&child_rule]), &start));
                prop_assert!(is_within(&below.location, &above.location), "{start:?}: {parent} {:?}, {child_rule} {:?}", above.location, below.location);
            }
        }
    }

    #[test]
    fn what_a_denial_lets_a_child_have_it_does_not_deny(start in starts(), denial in select(PATTERNS), grant in select(PATTERNS)) {
        let (denied, granted) = (ToolPattern::parse(denial).unwrap(), ToolPattern::parse(grant).unwrap());
        if !BOT.overlaps(&granted, &denied) {
            let child = run(&allowing(&[grant]), &start);
            let automatic = child.decision.rule.as_deref() == Some("Bash(bot help)");
            if matches!(child.location, Location::Outside(_)) && !automatic {
                let parent = run(&with(&["Bash"], &[denial]), &(start.0.clone(), start.1, None));
                prop_assert_ne!(parent.decision.layer, Layer::DisallowedTools, "{:?}: {} {}", start, denial, grant);
            }
        }
    }

    #[test]
    fn a_child_may_do_nothing_that_its_parent_may_not(
        call in calls(), start in starts(), parent in rules(5), parent_denies in any::<bool>(), child in rules(4), child_denies in any::<bool>(),
    ) {
        let config = |texts: &[&str], denies: bool| {
            let list = patterns(texts);
            if denies { ToolLists { allow: None, deny: Some(list) } } else { ToolLists { allow: Some(list), deny: None } }
        };
        let main = main_tools();
        let parent = config(&parent, parent_denies);
        let Ok(child) = BOT.attenuate(
            &Parent { name: "routine x", tools: &parent, ask: &[], main_tools: &main, sandbox: None },
            &config(&child, child_denies),
        ) else { return Ok(()) };
        let of = |lists: &ToolLists| background(lists.allow.as_deref(), lists.deny.as_deref().unwrap_or_default(), &roots());
        let (above, below) = (of(&parent).decide(&call), of(&child).decide(&call));
        prop_assert!(
            !(above.verdict == Verdict::Deny && below.verdict == Verdict::Allow)
                // Each program in a line is judged itself, and the child's lists restrict an agent that the child names.
                || ["Bash", "Task"].contains(&call.tool.as_str()),
            "{call:?}\n{parent:?}\n{child:?}\n{}", above.reason
        );
        let (above, below) = (run(&of(&parent), &start), run(&of(&child), &start));
        prop_assert!(
            is_within(&below.location, &above.location) || below.location == Location::Here || below.decision.rule.as_deref() == Some("Bash(bot help)"),
            "{start:?}\n{parent:?}\n{child:?}\n{}\n{:?}", above.decision.reason, below.location
        );
    }

    #[test]
    fn a_child_does_and_asks_no_more_than_its_parent(
        call in calls(), start in starts(), parent in rules(4), parent_denies in any::<bool>(), parent_asks in rules(4),
        child in rules(3), child_denies in any::<bool>(), child_asks in proptest::option::of(rules(3)), silent in any::<bool>(),
    ) {
        let config = |texts: &[&str], denies: bool| {
            let list = patterns(texts);
            if denies { ToolLists { allow: None, deny: Some(list) } } else { ToolLists { allow: Some(list), deny: None } }
        };
        let (main, asks) = (main_tools(), patterns(&parent_asks));
        let lists = config(&parent, parent_denies);
        let parent = Parent { name: "routine x", tools: &lists, ask: &asks, main_tools: &main, sandbox: None };
        let Ok(child) = BOT.attenuate(&parent, &config(&child, child_denies)) else { return Ok(()) };
        let child_asks = child_asks.map(|texts| patterns(&texts));
        let Ok(child_asks) = BOT.attenuate_asks(&parent, &child, child_asks.as_deref(), silent) else { return Ok(()) };
        let of = |lists: &ToolLists, ask: &[ToolPattern]| {
            let disallowed = lists.deny.as_deref().unwrap_or_default();
            let rules = JobRules { owner: "routine x", allowed: lists.allow.as_deref(), disallowed, ask, main_tools: &main };
            Policy::background(&rules, &roots(), &BOT)
        };
        // Verdicts ordered by power. If no answer is a yes, asking equals allowing.
        let power = |verdict| match verdict { Verdict::Deny => 0, Verdict::Ask if !silent => 1, Verdict::Ask | Verdict::Allow => 2 };
        let of_parent = |verdict| match verdict { Verdict::Deny => 0, Verdict::Ask => 1, Verdict::Allow => 2 };
        let (above, below) = (of(&lists, &asks).decide(&call), of(&child, &child_asks).decide(&call));
        prop_assert!(
            power(below.verdict) <= of_parent(above.verdict) || ["Bash", "Task"].contains(&call.tool.as_str()),
            "{call:?}\n{lists:?} {asks:?}\n{child:?} {child_asks:?}\n{}\n{}", above.reason, below.reason
        );
        let (above, below) = (run(&of(&lists, &asks), &start), run(&of(&child, &child_asks), &start));
        // About everything: what the parent's own grants, or a filter's, keep small here, it may ask for with another program.
        let asks_about_all = parent_asks.iter().any(|rule| ["*", "Bash"].contains(rule));
        let is_asked = asks_about_all && below.decision.verdict == Verdict::Ask && !silent;
        prop_assert!(
            power(below.decision.verdict) <= of_parent(above.decision.verdict) && is_within(&below.location, &above.location)
                || below.location == Location::Here || is_asked
                || below.decision.rule.as_deref() == Some("Bash(bot help)"),
            "{start:?}\n{lists:?} {asks:?}\n{child:?} {child_asks:?}\n{}\n{}", above.decision.reason, below.decision.reason
        );
    }

    #[test]
    fn to_ask_takes_no_denial_and_no_grant_of_the_file_away(
        start in starts(), allow in rules(4), ask in rules(4), deny in rules(3),
    ) {
        let (allow, ask, deny) = (patterns(&allow), patterns(&ask), patterns(&deny));
        let of = |ask: &[ToolPattern]| {
            let rules = JobRules { owner: "routine x", allowed: Some(&allow), disallowed: &deny, ask, main_tools: &[] };
            run(&Policy::background(&rules, &roots(), &BOT), &start)
        };
        let (without, with) = (of(&[]), of(&ask));
        match (without.decision.layer, without.decision.verdict) {
            (Layer::System | Layer::DisallowedTools, _) => prop_assert_eq!(&with.decision, &without.decision),
            (_, Verdict::Allow) if without.decision.rule.is_some() => prop_assert_eq!(with, without),
            _ => {}
        }
    }

    #[test]
    fn printing_and_parsing_a_pattern_is_stable(text in "[A-Za-z_*]{1,12}(\\([ -~]{0,20}\\))?") {
        if let Ok(pattern) = ToolPattern::parse(&text) {
            let printed = pattern.to_string();
            prop_assert_eq!(ToolPattern::parse(&printed).map(|again| again.to_string()), Ok(printed));
        }
    }
}
