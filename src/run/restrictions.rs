//! The tools that an agent's prompt names: those that remain after all lists that apply to its job.
//!
//! Pure, and only for the prompt: the policy decides calls.

use crate::policy::{AgentRules, BOT, BgForkConfig, OWN_SERVER, Policy, ToolPattern, Verdict, help_pattern};

/// The restrictions of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restrictions {
    /// All tools that it has; `None` means the main session's tools.
    pub only: Option<Vec<ToolPattern>>,
    /// Denials within `only`, or within the main session's tools.
    pub never: Vec<ToolPattern>,
    /// The tools about which the person is asked first.
    pub asked: Vec<ToolPattern>,
    /// Whether its shell runs only programs that read.
    pub read_only: bool,
}

impl Restrictions {
    /// Returns the restrictions of a job's file.
    #[must_use]
    pub fn of(config: &BgForkConfig) -> Self {
        let never = config.disallowed_tools().unwrap_or_default().to_vec();
        Self { only: config.effective_allowed_tools(), never, asked: config.asked_tools().to_vec(), read_only: false }
    }

    /// Narrows the restrictions by a pair of lists. `main_tools` are the main session's tools.
    pub fn narrow(&mut self, allow: Option<&[ToolPattern]>, deny: &[ToolPattern], main_tools: &[ToolPattern]) {
        if let Some(allow) = allow {
            self.asked = BOT.intersection(&self.asked, allow);
            self.only = Some(BOT.intersection(self.only.as_deref().unwrap_or(main_tools), allow));
        }
        self.never.extend(deny.iter().filter(|denial| !self.never.contains(denial)).cloned().collect::<Vec<_>>());
    }

    /// Narrows the restrictions to the tools of a named agent.
    pub fn narrow_to_agent(&mut self, agent: &AgentRules, main_tools: &[ToolPattern]) {
        self.narrow(agent.tools.as_deref(), &agent.disallowed, main_tools);
        self.read_only |= agent.read_only;
    }

    /// Removes tools that the policy always denies, and denials of tools that are not granted. `ours` are the run's tools of our
    /// server, by bare name.
    #[must_use]
    pub fn held_against(mut self, policy: &Policy, ours: &[String]) -> Self {
        self.asked = BOT.difference(&self.asked, &self.never);
        let Some(only) = &mut self.only else { return self };
        *only = BOT.difference(only, &self.never);
        let visible = policy.visible_tools();
        only.retain(|pattern| match pattern.tool().strip_prefix(OWN_SERVER) {
            Some("" | "__*") => !ours.is_empty(),
            Some(name) => ours.iter().any(|tool| name.strip_prefix("__") == Some(tool)),
            None => {
                pattern.tool() == "*"
                    || visible.iter().any(|tool| tool == pattern.canonical_tool())
                    || is_of_server(pattern.tool(), policy)
            }
        });
        let help = help_pattern();
        let helped = policy.decide_command(&["ollim-bot", "help"].map(str::to_owned), None).verdict == Verdict::Allow;
        if helped && !only.iter().any(|pattern| BOT.covers(pattern, &help)) {
            only.push(help);
        }
        // A denial of `Read` affects every file tool; another denial affects its own tool only.
        let speaks_of = |denial: &ToolPattern, pattern: &ToolPattern| {
            let (denied, granted) = (denial.canonical_tool(), pattern.canonical_tool());
            denied == granted || denied == "Read" || [denied, granted].iter().any(|tool| tool.contains(['*', '_']))
        };
        let asked = &self.asked;
        self.never.retain(|denial| {
            only.iter().chain(asked).any(|pattern| speaks_of(denial, pattern) && BOT.overlaps(pattern, denial))
        });
        self
    }

    /// Returns the sentences for the prompt; empty if nothing is restricted.
    #[must_use]
    pub fn sentences(&self) -> String {
        let listed = |intro: &str, patterns: &[ToolPattern]| {
            let lines: Vec<String> = patterns.iter().map(|pattern| format!("\n- {pattern}")).collect();
            format!("{intro}{}", lines.concat())
        };
        let mut text = Vec::new();
        match self.only.as_deref() {
            Some([]) => text.push("You have no tools.".to_owned()),
            Some(only) => text.push(listed(
                "You may use only these tools; every other call is refused, so do not look for ways around:",
                only,
            )),
            None => {}
        }
        match (&self.only, self.never.as_slice()) {
            (_, []) => {}
            (Some(_), never) => text.push(listed("Of these you may not use:", never)),
            (None, never) => text
                .push(listed("You may not use these; such calls are refused, so do not look for ways around:", never)),
        }
        if !self.asked.is_empty() {
            text.push(listed(
                "For these a person is asked first, so a call may take minutes to be answered:",
                &self.asked,
            ));
        }
        if self.read_only && self.only.as_ref().is_none_or(|only| only.iter().any(|one| one.tool() == "Bash")) {
            text.push("You only read: of shell commands only those run that change nothing.".to_owned());
        }
        text.join("\n")
    }
}

/// Returns whether a pattern names tools of an MCP server of the person's that the policy does not deny.
fn is_of_server(tool: &str, policy: &Policy) -> bool {
    let Some(of_server) = tool.strip_prefix("mcp__") else { return false };
    of_server
        .split_once("__")
        .filter(|(_, name)| !name.contains('*'))
        .is_none_or(|(server, name)| !policy.visible_of_server(server, &[name]).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{self, PathRoots, ToolLists, default_main_tools};

    fn list(texts: &[&str]) -> Vec<ToolPattern> {
        texts.iter().map(|text| ToolPattern::parse(text).unwrap()).collect()
    }

    /// Checks a spawned agent's sentences, given its caller's lists and then its own.
    #[track_caller]
    fn check(allowed: Option<&[&str]>, denied: Option<&[&str]>, allow: Option<&[&str]>, deny: &[&str], expected: &str) {
        let config = BgForkConfig::new(Default::default(), false, allowed.map(list), denied.map(list)).unwrap();
        let places = PathRoots { root: "/d".into(), work: "/d/work".into(), user_home: "/home/u".into() };
        let tools = ToolLists { allow: allow.map(list), deny: Some(list(deny)) };
        let main_tools = default_main_tools();
        let policy = policy::background("routine x", &config, &main_tools, &places).spawned("session y", &tools);
        let ours = policy.visible_mcp(&["ping_user", "report_updates"]);
        let mut restrictions = Restrictions::of(&config);
        restrictions.narrow(tools.allow.as_deref(), tools.deny.as_deref().unwrap_or_default(), &main_tools);
        let said = restrictions.held_against(&policy, &ours).sentences();
        assert_eq!(said.replace('\n', " "), expected);
    }

    #[test]
    fn a_child_is_told_what_is_left() {
        const ONLY: &str = "You may use only these tools; every other call is refused, so do not look for ways around:";
        const NOT: &str = "You may not use these; such calls are refused, so do not look for ways around:";
        check(None, None, None, &[], "");
        check(None, None, None, &["Bash(git push *)"], &format!("{NOT} - Bash(git push *)"));
        check(None, Some(&["WebFetch"]), None, &["Bash"], &format!("{NOT} - WebFetch - Bash"));
        check(
            Some(&["Read", "mcp__calendar__list", "mcp__calendar__add", "mcp__mail", "mcp__tasks__*"]),
            None,
            None,
            &["mcp__calendar__add", "mcp__mail__send"],
            &format!(
                "{ONLY} - Read - mcp__calendar__list - mcp__mail - mcp__tasks__* - Bash(ollim-bot help) \
                 Of these you may not use: - mcp__mail__send"
            ),
        );
        // The caller has no list, so the agent's own list stands alone.
        check(
            None,
            None,
            Some(&["Read", "Bash(ls *)"]),
            &[],
            &format!("{ONLY} - Bash(ls *) - Read - Bash(ollim-bot help)"),
        );
        check(
            Some(&["Read", "Bash(git *)", "Agent(Explore)", "mcp__discord__ping_user", "mcp__discord__report_updates"]),
            None,
            None,
            &["Bash(git push *)", "Read"],
            &format!(
                "{ONLY} - Bash(git *) - mcp__discord__report_updates - Bash(ollim-bot help) Of these you may not use: - Bash(git push *)"
            ),
        );
        check(Some(&["Read"]), None, Some(&["WebSearch"]), &["Bash"], "You have no tools.");
    }

    #[test]
    fn denials_of_what_is_not_granted_are_left_out() {
        let config = BgForkConfig::new(Default::default(), false, None, None).unwrap();
        let places = PathRoots { root: "/d".into(), work: "/d/work".into(), user_home: "/home/u".into() };
        let policy = policy::background("routine x", &config, &default_main_tools(), &places);
        for (only, never, left) in [
            (&["Read", "Bash"][..], &["Write", "Edit", "Bash(git push *)"][..], &["Bash(git push *)"][..]),
            (
                &["Edit(notes/**)", "Grep"],
                &["Read(notes/a/**)", "Edit(notes/b)", "WebFetch"],
                &["Read(notes/a/**)", "Edit(notes/b)"],
            ),
            (&["mcp__discord"], &["mcp__discord__ping_user"], &["mcp__discord__ping_user"]),
        ] {
            let restrictions = Restrictions { only: Some(list(only)), never: list(never), ..Restrictions::default() };
            assert_eq!(restrictions.held_against(&policy, &["ping_user".into()]).never, list(left), "{only:?}");
        }
    }

    #[test]
    fn a_read_only_agent_is_told_so() {
        let mut restrictions = Restrictions { only: Some(list(&["Bash", "Edit", "Read"])), ..Restrictions::default() };
        let agent = AgentRules {
            name: "Plan".into(),
            tools: Some(list(&["Read", "Bash"])),
            disallowed: list(&["Edit"]),
            read_only: true,
            permission_mode: crate::policy::PermissionMode::Default,
        };
        restrictions.narrow_to_agent(&agent, &[]);
        assert!(restrictions.sentences().ends_with("only those run that change nothing."));
        assert_eq!(restrictions.only, Some(list(&["Bash", "Read"])));
    }
}
