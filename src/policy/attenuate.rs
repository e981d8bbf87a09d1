//! Narrowing: whether a pattern allows no more than another, and what a job's child may have.
//!
//! Sound, not complete: where it cannot be told that the child gets no more, it is refused.

use super::rule::{Matcher, Origin, Rule};
use super::{BgForkConfig, BothLists, JobNetwork, ToolPattern, UpdateMode};

/// A child asked for more than its parent has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Widening {
    /// A pattern that no pattern of the parent covers.
    #[error("`{pattern}` is more than {parent} may do itself; leave it out, or narrow it to one of: {granted}")]
    NotCovered {
        /// The pattern asked for.
        pattern: String,
        /// Who asked.
        parent: String,
        /// What the parent has.
        granted: String,
    },
    /// A pattern that reaches into what the parent is denied.
    #[error("`{pattern}` reaches into `{denied}`, which {parent} is denied; narrow it")]
    Denied {
        /// The pattern asked for.
        pattern: String,
        /// The parent's denial.
        denied: String,
        /// Who asked.
        parent: String,
    },
    /// A denylist for a child whose parent has an allowlist, of which one entry is only partly denied.
    #[error("`{denied}` takes away a part of `{pattern}` only; list the tools of the new job with `--allowed-tools`")]
    Partly {
        /// The parent's grant.
        pattern: String,
        /// The denial asked for.
        denied: String,
    },
    /// Both lists.
    #[error(transparent)]
    BothLists(#[from] BothLists),
}

/// Whether everything that `child` allows, `parent` allows too. `false` where that cannot be told.
#[must_use]
pub fn covers(parent: &ToolPattern, child: &ToolPattern) -> bool {
    let (parent, child) = (Rule::new(parent, Origin::MainTools), Rule::new(child, Origin::MainTools));
    if parent.is_for_everything() {
        return true;
    }
    if let (Some(outer), Some(inner)) = (parent.name(), child.name()) {
        return outer.covers(inner) && (parent.is_all() || parent.pattern == child.pattern);
    }
    let (outer, inner) = (parent.pattern.canonical_tool(), child.pattern.canonical_tool());
    // Edit rules grant reading, and every tool that writes.
    let related = outer == inner || (outer == "Edit" && matches!(inner, "Read" | "NotebookEdit" | "NotebookRead"));
    if !related || parent.name().is_some() || child.name().is_some() {
        return false;
    }
    match (&parent.matcher, &child.matcher) {
        (Matcher::All, _) => true,
        (Matcher::Command(outer), Matcher::Command(inner)) => outer.covers(inner),
        (Matcher::Path(outer), Matcher::Path(inner)) => outer.covers(inner),
        (Matcher::Host(outer), Matcher::Host(inner)) => outer.covers(inner),
        (Matcher::Text(outer), Matcher::Text(inner)) => {
            inner.iter().all(|inner| outer.iter().any(|outer| outer.covers(inner)))
        }
        _ => parent.pattern == child.pattern,
    }
}

/// Whether some call could match both; `true` where that cannot be told.
#[must_use]
pub fn overlaps(grant: &ToolPattern, denial: &ToolPattern) -> bool {
    let (grant, denial) = (Rule::new(grant, Origin::MainTools), Rule::new(denial, Origin::MainTools));
    if grant.is_for_everything() || denial.is_for_everything() {
        return true;
    }
    if let (Some(a), Some(b)) = (grant.name(), denial.name()) {
        return a.overlaps(b);
    }
    if grant.name().is_some() || denial.name().is_some() {
        return false;
    }
    let (granted, denied) = (grant.pattern.canonical_tool(), denial.pattern.canonical_tool());
    let paths = ["Read", "Edit", "NotebookEdit", "NotebookRead", "Glob", "Grep", "LS"];
    let related = granted == denied || (paths.contains(&granted) && paths.contains(&denied));
    if !related {
        return false;
    }
    match (&grant.matcher, &denial.matcher) {
        (Matcher::Command(grant), Matcher::Command(denial)) => grant.reaches(denial),
        (Matcher::Path(a), Matcher::Path(b)) => a.overlaps(b),
        (Matcher::Host(a), Matcher::Host(b)) => a.overlaps(b),
        (Matcher::Text(a), Matcher::Text(b)) => a.iter().any(|a| b.iter().any(|b| a.overlaps(b))),
        _ => true,
    }
}

/// What a child gets that a fork creates: what it asks for, capped by what the fork has.
///
/// An allowlist must be covered, pattern by pattern, by the parent's; the parent's denials are appended; reporting and
/// pinging may only be taken away. `parent_name` names the parent in errors.
///
/// # Errors
/// [`Widening`] with the pattern that is too much.
pub fn attenuate(
    parent_name: &str,
    parent: &BgForkConfig,
    asked: &BgForkConfig,
    main_tools: &[ToolPattern],
) -> Result<BgForkConfig, Widening> {
    let update = match parent.update_main_session {
        UpdateMode::Blocked => UpdateMode::Blocked,
        _ => asked.update_main_session,
    };
    let allow_ping = parent.allow_ping && asked.allow_ping;
    let denied = parent.disallowed_tools().unwrap_or_default();
    let effective = parent.effective_allowed_tools();
    let granted = effective.as_deref().unwrap_or(main_tools);
    let (allow, deny) = match (asked.allowed_tools(), asked.disallowed_tools()) {
        (Some(patterns), _) => {
            demand(parent_name, granted, denied, patterns)?;
            (Some(patterns.to_vec()), None)
        }
        (None, more) => match parent.allowed_tools() {
            Some(patterns) => (Some(without(patterns, more.unwrap_or_default())?), None),
            None => {
                let mut all = denied.to_vec();
                for pattern in more.unwrap_or_default() {
                    if !all.contains(pattern) {
                        all.push(pattern.clone());
                    }
                }
                let none = parent.disallowed_tools().is_none() && more.is_none();
                (None, (!none).then_some(all))
            }
        },
    };
    let network = match parent.network {
        JobNetwork::None => JobNetwork::None,
        JobNetwork::Internet => asked.network,
    };
    Ok(BgForkConfig::new(update, allow_ping, allow, deny)?.with_network(network))
}

/// Whether each of `patterns` is covered by what `parent_name` is granted, and reaches into nothing that it is denied.
///
/// # Errors
/// [`Widening`] with the first pattern that is too much.
pub fn demand(
    parent_name: &str,
    granted: &[ToolPattern],
    denied: &[ToolPattern],
    patterns: &[ToolPattern],
) -> Result<(), Widening> {
    patterns.iter().try_for_each(|pattern| check(parent_name, granted, denied, pattern))
}

fn check(parent: &str, granted: &[ToolPattern], denied: &[ToolPattern], pattern: &ToolPattern) -> Result<(), Widening> {
    // Every job has the automatic entry anyway.
    if *pattern == ToolPattern::ollim_bot_help() {
        return Ok(());
    }
    if !granted.iter().any(|grant| covers(grant, pattern)) {
        let shown: Vec<String> = granted.iter().map(ToString::to_string).collect();
        return Err(Widening::NotCovered {
            pattern: pattern.to_string(),
            parent: parent.into(),
            granted: shown.join(", "),
        });
    }
    match denied.iter().find(|denial| overlaps(pattern, denial)) {
        Some(denial) => {
            Err(Widening::Denied { pattern: pattern.to_string(), denied: denial.to_string(), parent: parent.into() })
        }
        None => Ok(()),
    }
}

/// The parent's grants without what is denied, where each is denied whole or not at all.
fn without(granted: &[ToolPattern], denied: &[ToolPattern]) -> Result<Vec<ToolPattern>, Widening> {
    let mut kept = Vec::new();
    for pattern in granted {
        if denied.iter().any(|denial| covers(denial, pattern)) {
            continue;
        }
        if let Some(denial) = denied.iter().find(|denial| overlaps(pattern, denial)) {
            return Err(Widening::Partly { pattern: pattern.to_string(), denied: denial.to_string() });
        }
        kept.push(pattern.clone());
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> ToolPattern {
        ToolPattern::parse(text).unwrap()
    }

    #[test]
    fn covering_is_sound_for_every_kind() {
        for (parent, child, expected) in [
            ("Bash", "Bash(ls *)", true),
            ("Bash(*)", "Bash", true),
            ("Bash(ls *)", "Bash", false),
            ("Bash(ollim-bot *)", "Bash(ollim-bot gmail *)", true),
            ("Bash(ollim-bot gmail *)", "Bash(ollim-bot *)", false),
            ("Bash(ollim-bot gmail *)", "Bash(ollim-bot gmail unread)", true),
            ("Bash(ollim-bot gmail:*)", "Bash(ollim-bot gmail *)", true),
            ("Edit(notes/**)", "Read(notes/a)", true),
            ("Read(notes/**)", "Edit(notes/a)", false),
            ("Edit", "Write(x)", true),
            ("Write", "Edit", true),
            ("Edit", "NotebookEdit", true),
            ("NotebookEdit", "Edit", false),
            ("WebFetch", "WebFetch(domain:docs.rs)", true),
            ("WebFetch(domain:*.rs)", "WebFetch(domain:docs.rs)", true),
            ("WebFetch(domain:docs.rs)", "WebFetch", false),
            ("mcp__discord", "mcp__discord__ping_user", true),
            ("mcp__discord__*", "mcp__discord", true),
            ("mcp__discord__ping_user", "mcp__discord", false),
            ("mcp__discord", "mcp__discordx", false),
            ("Agent(Explore)", "Task(Explore)", true),
            ("Agent(Explore)", "Agent", false),
            ("Agent(Explore, Plan)", "Agent(Plan)", true),
            ("Agent(Explore,Plan)", "Agent(Plan, Explore)", true),
            ("Agent(Plan)", "Agent(Explore, Plan)", false),
            ("Skill(deploy *)", "Skill(deploy staging)", true),
            ("*", "Bash", true),
            ("*", "mcp__x", true),
            ("Read", "Grep", false),
            ("WebSearch", "WebSearch", true),
        ] {
            assert_eq!(covers(&pattern(parent), &pattern(child)), expected, "{parent} covers {child}");
        }
    }

    #[test]
    fn a_child_gets_no_rule_that_reaches_what_its_parent_is_denied() {
        let push = pattern("Bash(git push *)");
        for text in [
            "Bash(git *)",
            "Bash(git push)",
            "Bash(git push origin *)",
            "Bash(/usr/local/bin/git *)",
            "Bash(/usr/bin/git push *)",
            "Bash(git -C . push *)",
            "Bash(git --no-pager *)",
            "Bash(git -c alias.x=push x)",
            "Bash(git my-alias *)",
            "Bash(git-push *)",
            "Bash(/usr/lib/git-core/git-push)",
            "Bash(git \"push x\")",
            "Bash(* push *)",
            "Bash(g*)",
            "Bash(env *)",
            "Bash(bash *)",
            "Bash(sh -c *)",
            "Bash(make *)",
            "Bash(make)",
            "Bash(xargs *)",
            "Bash(npm test)",
            "Bash(python3 x.py)",
            "Bash(mytool *)",
            "Bash(./git log)",
            "Bash(/opt/bin/ls *)",
            "Bash(tar --to-command=x *)",
        ] {
            assert!(overlaps(&pattern(text), &push), "{text}");
        }
        for text in [
            "Bash(git log *)",
            "Bash(/usr/bin/git log *)",
            "Bash(git commit *)",
            "Bash(git fetch)",
            "Bash(ls *)",
            "Bash(find . -name *)",
            "Bash(cat *)",
            "Bash(cp *)",
            "Bash(curl https://a.b/*)",
            "Bash(ollim-bot gmail *)",
            "Read",
        ] {
            assert!(!overlaps(&pattern(text), &push), "{text}");
        }
        for (grant, denial, expected) in [
            ("Bash(ollim-bot-cal *)", "Bash(ollim-bot cal *)", true),
            ("Bash(ollim-bot cal *)", "Bash(ollim-bot-cal *)", true),
            ("Bash(/x/bin/ollim-bot --json cal *)", "Bash(ollim-bot cal *)", true),
            ("Bash(ollim-bot follow_up_chain *)", "Bash(ollim-bot follow-up-chain *)", true),
            ("Bash(ollim-bot gmail *)", "Bash(ollim-bot cal *)", false),
            ("Bash(ollim-bot gmail read *)", "Bash(ollim-bot gmail send *)", false),
            ("Bash(ollim-bot gmail --x *)", "Bash(ollim-bot gmail send *)", true),
            ("Bash(npm test)", "Bash(npm publish)", false),
            ("Bash(ls)", "Bash(* --force)", false),
            ("Bash(ls *)", "Bash(* --force)", true),
        ] {
            assert_eq!(overlaps(&pattern(grant), &pattern(denial)), expected, "{grant} under {denial}");
        }
    }

    #[test]
    fn a_child_spells_no_option_and_names_no_address_that_its_parent_does_not() {
        for (parent, child, expected) in [
            ("Bash(find *)", "Bash(find . -name *)", true),
            ("Bash(find *)", "Bash(find . -delete)", false),
            ("Bash(find * -delete)", "Bash(find . -delete)", true),
            ("Bash(sed *)", "Bash(sed -i *)", false),
            ("Bash(sort *)", "Bash(sort -u *)", true),
            ("Bash(git *)", "Bash(git push *)", true),
            ("Bash(git *)", "Bash(git -c a.b=c *)", false),
            ("Bash(git *)", "Bash(git config *)", false),
            ("Bash(curl *)", "Bash(curl https://a.b/*)", true),
            ("Bash(curl *)", "Bash(curl -o f *)", false),
            ("Bash(curl https://a.b/*)", "Bash(curl https://a.b/c*)", true),
            ("Bash(curl https://a.b/*)", "Bash(curl https://a.b/* https://evil/*)", false),
            ("Bash(curl https://a.b/*)", "Bash(curl https://a.b/* *)", true),
            ("Bash(curl https://a.b/*)", "Bash(curl https://a.b/../c)", false),
            ("Bash(curl https://*.a.b/*)", "Bash(curl https://c/x.a.b/*)", false),
            ("Bash(curl *)", "Bash(curl file:///x)", false),
            ("Bash(curl *)", "Bash(curl -H * https://a.b/*)", false),
            ("Bash(wget https://a.b/*)", "Bash(wget --max-redirect=3 https://a.b/*)", false),
            ("Bash(python3 *)", "Bash(python3 report.py)", true),
            ("Bash(tool *)", "Bash(tool x)", true),
        ] {
            assert_eq!(covers(&pattern(parent), &pattern(child)), expected, "{parent} covers {child}");
        }
    }

    fn config(allow: Option<&[&str]>, deny: Option<&[&str]>) -> BgForkConfig {
        let list = |texts: &[&str]| texts.iter().map(|text| pattern(text)).collect::<Vec<_>>();
        BgForkConfig::new(UpdateMode::OnPing, true, allow.map(list), deny.map(list)).unwrap()
    }

    #[track_caller]
    fn check(parent: &BgForkConfig, asked: &BgForkConfig, expected: Result<&BgForkConfig, &str>) {
        let main = [pattern("Bash"), pattern("Read"), pattern("mcp__discord")];
        match (attenuate("routine x", parent, asked, &main), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(&found, expected),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn a_child_gets_no_more_than_its_parent() {
        let gmail = config(Some(&["Bash(ollim-bot gmail *)", "Read"]), None);
        let no_cal = config(None, Some(&["Bash(ollim-bot cal *)"]));
        let free = config(None, None);
        let none = config(Some(&[]), None);
        // Nothing asked: the parent's restrictions.
        check(&gmail, &free, Ok(&gmail));
        check(&no_cal, &free, Ok(&no_cal));
        check(&free, &free, Ok(&free));
        check(&none, &free, Ok(&none));
        // An allowlist within the parent's.
        let narrower = config(Some(&["Bash(ollim-bot gmail unread)"]), None);
        check(&gmail, &narrower, Ok(&narrower));
        check(&gmail, &none, Ok(&none));
        check(
            &gmail,
            &config(Some(&["Bash(ollim-bot help)"]), None),
            Ok(&config(Some(&["Bash(ollim-bot help)"]), None)),
        );
        check(
            &gmail,
            &config(Some(&["Bash(ollim-bot cal *)"]), None),
            Err("`Bash(ollim-bot cal *)` is more than routine x"),
        );
        check(&none, &narrower, Err("more than routine x"));
        check(&free, &config(Some(&["WebFetch"]), None), Err("more than routine x"));
        // Denials add up.
        check(&no_cal, &config(None, Some(&["Read"])), Ok(&config(None, Some(&["Bash(ollim-bot cal *)", "Read"]))));
        check(&no_cal, &narrower, Ok(&narrower));
        check(&no_cal, &config(Some(&["Bash(ollim-bot *)"]), None), Err("reaches into `Bash(ollim-bot cal *)`"));
        check(&no_cal, &config(Some(&["Bash"]), None), Err("reaches into"));
        // A denial against an allowlist takes whole entries away.
        check(&gmail, &config(None, Some(&["Read"])), Ok(&config(Some(&["Bash(ollim-bot gmail *)"]), None)));
        check(&gmail, &config(None, Some(&["Bash(ollim-bot gmail send *)"])), Err("a part of"));
    }

    #[test]
    fn pinging_and_reporting_can_only_be_taken_away() {
        let with = |update, ping| BgForkConfig::new(update, ping, None, None).unwrap();
        let quiet = with(UpdateMode::Blocked, false);
        let loud = with(UpdateMode::Always, true);
        check(&quiet, &loud, Ok(&quiet));
        check(&loud, &quiet, Ok(&quiet));
        check(&loud, &loud, Ok(&loud));
    }
}
