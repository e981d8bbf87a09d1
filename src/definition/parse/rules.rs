//! Rules across fields: errors for restrictions that would not take effect, and warnings for everything else a person should look at.

use super::super::hook::placeholders;
use super::Reading;
use crate::definition::frontmatter::Node;
use crate::definition::problem::quoted;
use crate::definition::{
    Definition, Deliver, Draft, Expect, Hook, JobClient, Recurrence, Remember, Severity, Trigger, Urgency,
};
use crate::policy::{BOT, BgForkConfig, OWN_SERVER, ToolPattern, UpdateMode, own_tool};

impl Reading<'_> {
    /// Reports background-only fields of a foreground job. It is a turn of the main session, so its restrictions would have no effect.
    pub(super) fn restrictions_in_the_foreground(&mut self) {
        let mut errors = Vec::new();
        let mut warnings = Vec::new();
        for known in self.known.iter().filter(|known| known.field.background_only) {
            match (known.field.name, known.node) {
                (
                    name @ ("allowed_tools" | "disallowed_tools" | "ask_tools" | "agent" | "network" | "gate"
                    | "expect"),
                    _,
                ) => errors.push(name),
                ("isolated", Node::Bool(false)) | ("thinking" | "allow_ping", Node::Bool(true)) | (_, Node::Null) => {}
                (name, _) => warnings.push(name),
            }
        }
        for name in errors {
            let message = format!("`{name}` does not hold on a foreground job");
            let then = match name {
                "gate" => "the agent is then always woken",
                "expect" => "nothing is then expected of a run",
                _ => "the job then has the main session's tools",
            };
            let hint = format!("add `background: true`, or remove `{name}`: {then}");
            self.at_field(Severity::Error, name, message, &hint);
        }
        for name in warnings {
            let message = format!("`{name}` has no effect on a foreground job");
            self.at_field(Severity::Warning, name, message, "add `background: true`, or remove it");
        }
    }

    /// Reports fields that the job's client does not use: a restriction among them would have no effect.
    pub(super) fn fields_of_other_clients(&mut self, client: Option<JobClient>) {
        let fields = self.known.iter().filter(|known| !known.field.is_heeded_by(client));
        let set = fields.filter(|known| !matches!(known.node, Node::Null | Node::Bool(false)));
        for field in set.map(|known| known.field).collect::<Vec<_>>() {
            let name = field.name;
            let (message, other) = match client {
                _ if field.command_only => (format!("`{name}` is for a command, and this job runs none"), "exec"),
                Some(JobClient::Exec) => (format!("`{name}` is for an agent, and `client: exec` has none"), "claude"),
                _ => (format!("`{name}` is for an agent, and `client: notify` has none"), "claude"),
            };
            let hint = format!("remove `{name}`, or write `client: {other}`");
            self.at_field(Severity::Error, name, message, &hint);
        }
    }

    /// Warns of a limit on waiting when the job waits for nothing.
    pub(super) fn waiting_for_nothing(&mut self, definition: &Definition) {
        if definition.requires_for.is_some() && definition.requires.is_empty() {
            let message = "`requires_for` has no effect without `requires`";
            self.at_field(
                Severity::Warning,
                "requires_for",
                message.into(),
                "write what it waits for: `requires: [online]`",
            );
        }
    }

    /// Warns of fields about times on a routine without times.
    pub(super) fn without_times(&mut self, recurs: &Recurrence, wake: bool) {
        let Some(when) = recurs.waits_for() else { return };
        for (name, is_set) in [("jitter", recurs.jitter.is_some()), ("wake", wake)] {
            if is_set {
                let message = format!("`{name}` has no effect on a routine that fires {when}");
                self.at_field(Severity::Warning, name, message, "remove it");
            }
        }
    }

    /// Reports `remember: thread` without `isolated`: the job's own session is no copy of the main session.
    pub(super) fn thread_beside_the_main_session(&mut self, remember: Remember, isolated: bool) {
        if remember == Remember::Thread && !isolated {
            let message =
                "`remember: thread` needs `isolated: true`: a session of its own is no copy of the main session";
            self.at_field(Severity::Error, "remember", message.into(), "write `isolated: true`, or `remember: last`");
        }
    }

    /// Reports what `client: exec` lacks, and fields that contradict it.
    pub(super) fn command(&mut self, draft: &Draft) {
        if draft.command.is_none() && !self.is_faulty("command") {
            let hint = "write what it runs: `command: 'tar -cf notes.tar notes'`";
            self.at_field(Severity::Error, "command", "`client: exec` needs `command`".into(), hint);
        }
        if self.entry("background").is_some_and(|known| matches!(known.node, Node::Bool(false))) {
            let message = "a command runs in the background, whatever `background` says";
            self.at_field(Severity::Error, "background", message.into(), "remove `background`");
        }
        if let Some(Expect::Message | Expect::Report) = draft.expect {
            let message = "a command can be expected to make a file only: it sends and reports nothing itself";
            self.at_field(Severity::Error, "expect", message.into(), "write `expect: file PATH`, or remove it");
        }
        if draft.deliver == Deliver::Always && !draft.allow_ping {
            let message = "`deliver: always` sends you what it prints, and `allow_ping: false` keeps it from that";
            self.at_field(Severity::Error, "deliver", message.into(), "keep one of the two");
        }
    }

    /// Reports fields that contradict `deliver`.
    pub(super) fn delivery(&mut self, draft: &Draft) {
        let is_command = draft.client == Some(JobClient::Exec);
        let (message, hint) = match draft.deliver {
            Deliver::Always | Deliver::Never if !is_command => (
                "of a job that runs no command, `deliver` can be `digest` only",
                "remove `deliver`, or write `client: exec`",
            ),
            Deliver::Digest if draft.urgency == Urgency::Critical => {
                ("what is critical waits for no digest", "keep one of `deliver: digest` and `urgency: critical`")
            }
            Deliver::Digest if !draft.allow_ping => (
                "`deliver: digest` sends you what it says, and `allow_ping: false` keeps it from that",
                "keep one of the two",
            ),
            _ => return,
        };
        self.at_field(Severity::Error, "deliver", message.into(), hint);
    }

    /// Warns of fields that only another kind of definition has.
    pub(super) fn misplaced_fields(&mut self) {
        let misplaced = self.known.iter().map(|known| known.field).filter(|field| !field.on.has(self.kind));
        for field in misplaced.collect::<Vec<_>>() {
            let name = field.name;
            let message = format!("`{name}` has no effect on a {}", self.kind);
            let owners: Vec<String> = field.on.kinds().map(|kind| kind.to_string()).collect();
            let folders: Vec<String> = owners.iter().map(|owner| format!("{owner}s/")).collect();
            let (owners, folders) = (owners.join(" or a "), folders.join(" or "));
            let hint = format!("only a {owners} has it: remove it, or move the file to {folders}");
            self.at_field(Severity::Warning, name, message, &hint);
        }
    }

    /// Warns of a `{{field}}` in the text that no delivery has.
    pub(super) fn unfilled(&mut self, hook: &Hook) {
        let Some(schema) = &hook.fields else { return };
        let unknown = placeholders(&self.document.body).find(|name| !schema.may_have(name)).map(str::to_owned);
        if let Some(name) = unknown {
            let message = format!("{} in the text names no field of `fields`", quoted(&format!("{{{{{name}}}}}")));
            let hint = format!("add `{name}` to the `properties` of `fields`, or correct the name");
            self.at_field(Severity::Warning, "fields", message, &hint);
        }
    }

    /// Warns of a `{{field}}` in the command of a webhook, which is run as it is written.
    fn fields_of_command(&mut self, definition: &Definition) {
        let command = definition.command.as_deref().filter(|_| definition.hook().is_some());
        let name = command.and_then(|command| placeholders(command).next());
        if let Some(name) = name {
            let message = format!(
                "{} is not filled in: a command gets nothing of what was delivered",
                quoted(&format!("{{{{{name}}}}}"))
            );
            let hint = "remove it, or have an agent do the job: its text is filled in";
            self.at_field(Severity::Warning, "command", message, hint);
        }
    }

    /// Warns of a webhook with the main session's tools, since the sender chooses a part of the prompt.
    fn open_to_senders(&mut self, definition: &Definition, restrictions: &BgForkConfig) {
        let needs_none = definition.is_without_agent() || definition.hook().is_none();
        let has_agent = definition.background().is_some_and(|background| background.agent.is_some());
        if !needs_none && restrictions.allowed_tools().is_none() && !has_agent {
            let message = "this webhook has the main session's tools, and others choose what it is given";
            let hint = "list what it needs: `allowed_tools: [mcp__bot__ping_user]`";
            self.at_field(Severity::Warning, "allowed_tools", message.into(), hint);
        }
    }

    /// Adds all other warnings.
    pub(super) fn warn_of(&mut self, definition: &Definition) {
        let Some(background) = definition.background() else { return };
        let restrictions = &background.restrictions;
        self.open_to_senders(definition, restrictions);
        self.fields_of_command(definition);
        if let Some(list) = restrictions.allowed_tools() {
            self.warn_of_allowlist(definition, restrictions, list);
        }
        if definition.gate_timeout.is_some() && definition.gate.is_none() {
            let hint = "write the command: `gate: 'test -s inbox.txt'`";
            self.at_field(
                Severity::Warning,
                "gate_timeout",
                "`gate_timeout` has no effect without `gate`".into(),
                hint,
            );
        }
        self.undeliverable(definition, restrictions);
        let asked = restrictions.asked_tools();
        if restrictions.ask.is_some() && asked.is_empty() && !definition.approve {
            let hint = "write what is to be asked: `ask_tools: [Bash(git push *)]`";
            self.at_field(Severity::Warning, "ask", "`ask` has no effect without `ask_tools`".into(), hint);
        }
        let own = restrictions.effective_allowed_tools();
        for (item, pattern) in asked.iter().enumerate() {
            if let Some(grant) = own.iter().flatten().find(|grant| BOT.covers(grant, pattern)) {
                let message = format!("`{pattern}` is never asked about: `{grant}` of `allowed_tools` grants it");
                self.at_item("ask_tools", item, message, Some("take one of the two out".into()));
            }
        }
        self.said_of("ask_tools", asked, |pattern| BOT.ask_warnings(pattern, own.as_deref()));
        self.unknown_commands(definition.enabled, "ask_tools", asked);
        if let Some(list) = restrictions.disallowed_tools() {
            self.said_of("disallowed_tools", list, |pattern| BOT.denylist_warnings(pattern, list));
            self.unknown_commands(definition.enabled, "disallowed_tools", list);
        }
    }

    fn warn_of_allowlist(&mut self, definition: &Definition, restrictions: &BgForkConfig, list: &[ToolPattern]) {
        let chained = match &definition.trigger {
            Trigger::Reminder { chain: Some(chain), .. } => chain.depth < chain.max,
            _ => false,
        };
        let reports = list.iter().any(|pattern| covers(pattern, own_tool!("report_updates")));
        let runs_command = definition.command.is_some();
        if restrictions.update_main_session == UpdateMode::Always && !reports && !runs_command {
            let message = "`update_main_session: always` needs `mcp__bot__report_updates`, which the list lacks";
            let hint = "add `mcp__bot__report_updates` to `allowed_tools`";
            self.at_field(Severity::Warning, "allowed_tools", message.into(), hint);
        }
        let follows = |pattern: &ToolPattern| {
            covers(pattern, own_tool!("follow_up_chain"))
                || is_command(pattern, &["follow-up-chain", "follow_up_chain"])
                || BOT.covers(pattern, &ToolPattern::new("Bash", Some("ollim-bot follow-up-chain *")))
        };
        if chained && !list.iter().any(follows) {
            let tool = if runs_command { "Bash(ollim-bot follow-up-chain *)" } else { "mcp__bot__follow_up_chain" };
            let message = format!("`max_chain` needs `{tool}`, which the list lacks");
            let hint = format!("add `{tool}` to `allowed_tools`");
            self.at_field(Severity::Warning, "allowed_tools", message, &hint);
        }
        self.said_of("allowed_tools", list, |pattern| BOT.warnings(pattern));
        for (item, said) in BOT.pair_warnings(list) {
            self.warn_item("allowed_tools", item, said);
        }
        self.unknown_commands(definition.enabled, "allowed_tools", list);
    }

    /// Warns of an expected delivery that the run's tools cannot make.
    fn undeliverable(&mut self, definition: &Definition, restrictions: &BgForkConfig) {
        let list = restrictions.allowed_tools();
        let has = |tools: &[&str]| {
            list.is_none_or(|list| list.iter().any(|pattern| tools.iter().any(|tool| covers(pattern, tool))))
        };
        // A command has no tools; what it cannot expect is an error of its own.
        let expect = definition
            .expect
            .as_ref()
            .filter(|expect| definition.command.is_none() || matches!(expect, Expect::File(_)));
        let missing = match expect {
            Some(Expect::Message) if !restrictions.allow_ping => Some("`allow_ping`, which is `false`"),
            Some(Expect::Message) if !has(&[own_tool!("ping_user"), own_tool!("discord_embed")]) => {
                Some("`mcp__bot__ping_user`, which the list lacks")
            }
            Some(Expect::Report) if restrictions.update_main_session == UpdateMode::Blocked => {
                Some("`update_main_session`, which is `blocked`")
            }
            Some(Expect::Report) if !has(&[own_tool!("report_updates")]) => {
                Some("`mcp__bot__report_updates`, which the list lacks")
            }
            Some(Expect::File(_))
                if list.is_some_and(|list| {
                    !list.iter().chain(restrictions.asked_tools()).any(|pattern| BOT.may_write_files(pattern))
                }) =>
            {
                Some("a tool that writes files, which the list lacks")
            }
            _ => None,
        };
        if let Some(missing) = missing {
            let message = format!("what is expected needs {missing}: every run will fail");
            self.at_field(Severity::Warning, "expect", message, "grant it, or expect something else");
        }
    }

    /// Adds the policy's warnings about each pattern: broader than it looks, or no boundary.
    fn said_of(&mut self, field: &'static str, list: &[ToolPattern], warnings: impl Fn(&ToolPattern) -> Vec<String>) {
        for (item, pattern) in list.iter().enumerate() {
            for said in warnings(pattern) {
                self.warn_item(field, item, said);
            }
        }
    }

    /// Adds a warning at an item. The text after the first `; ` is the hint.
    fn warn_item(&mut self, field: &'static str, item: usize, said: String) {
        match said.split_once("; ") {
            Some((what, hint)) => self.at_item(field, item, what.into(), Some(hint.into())),
            None => self.at_item(field, item, said, None),
        }
    }

    /// Warns of `Bash(ollim-bot NAME …)` without such a command, unless the definition is disabled: it may wait for one.
    fn unknown_commands(&mut self, enabled: bool, field: &'static str, list: &[ToolPattern]) {
        if !enabled {
            return;
        }
        for (item, pattern) in list.iter().enumerate() {
            let Some(name) = command_of(pattern) else { continue };
            if self.defaults.commands.contains(name) || self.defaults.commands.contains(&name.replace('_', "-")) {
                continue;
            }
            let message = format!("there is no command `ollim-bot {}` here", quoted(name).trim_matches('`'));
            let near = self
                .defaults
                .commands
                .iter()
                .filter(|_| name.len() < 60)
                .map(|known| (strsim::damerau_levenshtein(known, name), known));
            let near = near.filter(|(distance, _)| *distance <= 2 && *distance < name.len()).min();
            let hint = match near {
                Some((_, known)) => format!("did you mean `ollim-bot {known}`?"),
                None => format!("install `ollim-bot-{name}` in the data folder's bin/, or correct the rule"),
            };
            self.at_item(field, item, message, Some(hint));
        }
    }
}

/// Whether a pattern covers one of our MCP tools.
fn covers(pattern: &ToolPattern, tool: &str) -> bool {
    let name = pattern.tool();
    let whole = matches!(pattern.specifier(), None | Some("*"));
    let server =
        name == "*" || name == OWN_SERVER || name.strip_suffix('*').is_some_and(|start| tool.starts_with(start));
    whole && (name == tool || server)
}

/// Returns the command that a rule `Bash(ollim-bot NAME …)` names without wildcards.
fn command_of(pattern: &ToolPattern) -> Option<&str> {
    if pattern.tool() != "Bash" {
        return None;
    }
    let mut words = pattern.specifier()?.split_ascii_whitespace();
    let name = words.next().filter(|word| *word == "ollim-bot").and(words.next())?;
    let name = name.strip_suffix(":*").unwrap_or(name);
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    (plain && !name.starts_with('-') && !name.is_empty()).then_some(name)
}

fn is_command(pattern: &ToolPattern, names: &[&str]) -> bool {
    command_of(pattern).is_some_and(|name| names.contains(&name))
        || matches!(pattern.specifier(), None | Some("*")) && pattern.tool() == "Bash"
}
