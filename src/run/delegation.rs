//! Delegation limits: a definition or agent that a run makes has no more rights than the run itself.
//!
//! Pure. A job that a run wants to make is limited here, or refused with a sentence. A job may change only the jobs that
//! it made itself, and only while they have no more rights than it has. What any run makes of a job by a change is judged
//! as if the run made it.

use std::time::Duration;

use super::gate;
use super::runner::RunSettings;
use crate::definition::fields::{FIELDS, Limit};
use crate::definition::{Chain, Definition, DefinitionId, Deliver, Draft, JobClient, Trigger, Urgency};
use crate::policy::{
    BOT, BgForkConfig, DelegablePatterns, PathRoots, Policy, ToolCall, ToolLists, ToolPattern, Verdict, attenuate,
    own_tool,
};
use crate::refusal::Refusal;

/// Maximum number of existing files that runs have made, all runs together, those in `reminders/failed/` included.
pub const MADE_AT_MOST: usize = 100;

/// Maximum number of these that one job has made.
pub const MADE_BY_ONE_AT_MOST: usize = 60;

/// Maximum number of these that watch a folder. Each takes one of a user's inotify instances, often 128.
pub const WATCHED_AT_MOST: usize = 16;

/// Maximum size of the text that a run writes into a job's file, in bytes. With [`MADE_AT_MOST`] it bounds what runs keep in the data folder.
const TEXT_AT_MOST: usize = 16 * 1024;

/// Maximum number of patterns in one list of a job made by a run. They are compiled whenever its file is read.
pub const PATTERNS_AT_MOST: usize = 64;

/// The fields that say when a job fires, or only name it. They give a job no rights.
const TIMES: [&str; 7] = ["cron", "description", "enabled", "every", "jitter", "run_at", "timezone"];

/// The kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunKind {
    /// A turn of the main session.
    Main,
    /// A background job.
    Fork,
    /// An agent that a run or the person spawned.
    Spawned,
    /// A command that another job made. An agent's limits do not apply to commands, so it must not make jobs without them.
    MadeCommand,
    /// The gate of a job that another job made. Nor do they apply to gates.
    MadeGate,
}

impl RunKind {
    /// Returns the reason why the run may not make, change or spawn anything; `None` if it may.
    fn makes_nothing(self) -> Option<&'static str> {
        match self {
            Self::Main | Self::Fork => None,
            Self::Spawned => Some("was spawned by another agent"),
            Self::MadeCommand => Some("is a command that another job made"),
            Self::MadeGate => Some("runs a gate that another job made"),
        }
    }
}

/// The rights of a run, as far as it can delegate them.
#[derive(Clone, Debug)]
pub struct DelegationLimit {
    title: String,
    /// The id recorded as the maker of its jobs: its own or, in a chain, that of the first reminder.
    creator: DefinitionId,
    place: RunKind,
    restrictions: BgForkConfig,
    main_tools: Vec<ToolPattern>,
    policy: Policy,
    isolated: bool,
    agent: Option<String>,
    /// The timeout in its file; `None` if the file has none.
    timeout: Option<Duration>,
    usual_timeout: Duration,
    /// The fields of its file. All have their defaults for a turn of the main session.
    own: Draft,
    skills: Vec<String>,
    /// Remaining follow-ups of a reminder; `None` for a recurring definition or a turn of the main session.
    links_left: Option<u32>,
}

impl DelegationLimit {
    /// Creates the limit of a definition's run under this policy.
    #[must_use]
    pub fn of(definition: &Definition, policy: &Policy, settings: &RunSettings) -> Self {
        let background = definition.background();
        let place = match background {
            None => RunKind::Main,
            Some(_) if policy.is_spawned() => RunKind::Spawned,
            Some(_) if definition.command.is_some() && definition.is_made_by_run() => RunKind::MadeCommand,
            Some(_) => RunKind::Fork,
        };
        let creator = match &definition.trigger {
            Trigger::Reminder { chain: Some(Chain { parent, .. }), .. } => parent.clone(),
            _ => definition.id.clone(),
        };
        // A turn of the main session limits only the tools of the jobs that it makes, not their other fields.
        let own = background.is_some();
        Self {
            title: definition.title(),
            creator,
            place,
            restrictions: background.map(|background| background.restrictions.clone()).unwrap_or_default(),
            main_tools: settings.main_tools.clone(),
            policy: policy.clone(),
            // A command knows no conversation, so nor does what it makes.
            isolated: background.is_some_and(|background| background.isolated) || definition.command.is_some(),
            agent: background.and_then(|background| background.agent.clone()),
            timeout: definition.timeout.filter(|_| own),
            usual_timeout: settings.timeout,
            own: if own { Draft::from(definition) } else { Draft::empty(definition.kind(), String::new()) },
            skills: definition.skills.clone(),
            links_left: match &definition.trigger {
                Trigger::Reminder { chain, .. } if own => {
                    Some(chain.as_ref().map_or(0, |chain| chain.max.saturating_sub(chain.depth)))
                }
                _ => None,
            },
        }
    }

    /// Returns the limit of the job's gate or command, which runs before or without an agent.
    #[must_use]
    pub fn of_line(&self, definition: &Definition) -> Self {
        let is_gate = self.place == RunKind::Fork && definition.is_made_by_run();
        Self { place: if is_gate { RunKind::MadeGate } else { self.place }, ..self.clone() }
    }

    /// Returns the run's title for sentences, such as `routine email-triage`.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the run's restrictions, which also apply to an agent that it spawns.
    #[must_use]
    pub fn restrictions(&self) -> &BgForkConfig {
        &self.restrictions
    }

    /// Returns the agent that it runs as.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// Limits a new job to this run's rights.
    ///
    /// # Errors
    /// A sentence for the agent that names the excessive right.
    pub fn narrow(&self, draft: &mut Draft) -> Result<(), Refusal> {
        if let Some(why) = self.place.makes_nothing() {
            return Err(Refusal::denied(format!("{} {why}, and makes no jobs", self.title)));
        }
        if self.place != RunKind::Main {
            draft.created_by = Some(self.creator.clone());
        }
        draft.approve |= self.own.approve;
        if !draft.background {
            return match self.place {
                RunKind::Main => Ok(()),
                _ => Err(Refusal::denied(
                    "a job can make background jobs only: the main session has more than it; add `--background`",
                )),
            };
        }
        // The service itself calls this address, whatever network access the job has.
        if self.place != RunKind::Main && draft.heartbeat_url.is_some() && draft.heartbeat_url != self.own.heartbeat_url
        {
            return Err(Refusal::denied("only the person chooses whom the service calls; leave `--heartbeat-url` out"));
        }
        self.keep_channel(draft)?;
        self.narrow_questions(draft)?;
        self.narrow_tools(draft)?;
        self.limit_draft(draft)?;
        if draft.client == Some(JobClient::Exec) {
            self.narrow_command(draft)?;
            return self.narrow_limits(draft);
        }
        draft.isolated |= self.isolated;
        if let Some(own) = &self.agent
            && draft.agent.get_or_insert_with(|| own.clone()) != own
        {
            return Err(Refusal::denied(format!(
                "{} runs as agent `{own}`, and so does what it makes; leave `--agent` out",
                self.title
            )));
        }
        self.narrow_limits(draft)?;
        match draft.skills.iter().find(|name| !self.has_skill(name)) {
            Some(name) => Err(Refusal::denied(format!("{} has no skill `{name}` itself; leave it out", self.title))),
            None => Ok(()),
        }
    }

    /// Sets the channel of a new job's messages and questions to this run's. Others may be less safe than the one that the person chose.
    ///
    /// # Errors
    /// A sentence if the new job has another channel.
    pub fn keep_channel(&self, draft: &mut Draft) -> Result<(), Refusal> {
        if self.place == RunKind::Main {
            return Ok(());
        }
        if draft.channel.is_some() && draft.channel != self.own.channel {
            return Err(Refusal::denied("only the person chooses where messages go; leave `--channel` out"));
        }
        draft.channel.clone_from(&self.own.channel);
        if let Some(ask) = &mut draft.ask {
            ask.channel = self.own.ask.as_ref().and_then(|own| own.channel.clone());
        }
        Ok(())
    }

    /// Limits a new job to this run's urgency, hosts and wake, and adds this run's requirements and digest. A command has no digest.
    ///
    /// # Errors
    /// A sentence if the new job would be critical, wake the machine, or use other hosts, and this run's job does not.
    pub fn limit_draft(&self, draft: &mut Draft) -> Result<(), Refusal> {
        if self.place == RunKind::Main {
            return Ok(());
        }
        if draft.urgency == Urgency::Critical && self.own.urgency < Urgency::Critical {
            return Err(self.beyond("--urgency", "critical", self.own.urgency.as_str()));
        }
        if draft.wake && !self.own.wake {
            return Err(Refusal::denied("only the person has the machine woken; leave `--wake` out"));
        }
        if draft.hosts.is_empty() {
            draft.hosts.clone_from(&self.own.hosts);
        } else if !self.own.hosts.is_empty() && !draft.hosts.iter().all(|host| self.own.hosts.contains(host)) {
            return Err(self.beyond("--hosts", &draft.hosts.join(", "), &self.own.hosts.join(", ")));
        }
        for need in &self.own.requires {
            if !draft.requires.contains(need) {
                draft.requires.push(*need);
            }
        }
        draft.urgency = draft.urgency.min(self.own.urgency);
        if self.own.deliver == Deliver::Digest && draft.allow_ping && draft.client != Some(JobClient::Exec) {
            draft.deliver = Deliver::Digest;
        }
        Ok(())
    }

    /// Limits a new command. An agent's file cannot limit it, so a run with an agent makes none. Only the person may have output sent
    /// each time. If this run may send no message, none of the output is sent.
    fn narrow_command(&self, draft: &mut Draft) -> Result<(), Refusal> {
        if let Some(own) = &self.agent {
            return Err(Refusal::denied(format!(
                "{} runs as agent `{own}`, and a command runs as none; make a job without `--command`",
                self.title
            )));
        }
        if self.place != RunKind::Main && matches!(draft.deliver, Deliver::Always | Deliver::Digest) {
            return Err(Refusal::denied("only the person has output sent each time; leave `--deliver` out"));
        }
        if !self.may_send() {
            draft.deliver = Deliver::Never;
        }
        Ok(())
    }

    /// Returns whether the run may send messages to the person.
    fn may_send(&self) -> bool {
        let sends = [own_tool!("ping_user"), own_tool!("discord_embed")];
        self.place == RunKind::Main || self.restrictions.allow_ping && sends.iter().any(|tool| self.policy.names(tool))
    }

    /// Refuses new questions of a run that may send no messages, since a question is a message with words of the job.
    fn narrow_questions(&self, draft: &Draft) -> Result<(), Refusal> {
        let asks = |tools: &Option<Vec<_>>| tools.as_ref().is_some_and(|tools| !tools.is_empty());
        let new = [
            ("--approve", draft.approve && !self.own.approve),
            ("--ask-tools", asks(&draft.ask_tools) && !asks(&self.restrictions.ask_tools)),
        ];
        match new.into_iter().find(|(_, is_new)| *is_new) {
            Some((flag, _)) if !self.may_send() => Err(Refusal::denied(format!(
                "`{flag}` has the person asked, and {} may send no messages; leave it out",
                self.title
            ))),
            _ => Ok(()),
        }
    }

    /// Takes the words of a new job out of the messages about it, if this run may send none. The service still tells of its failures, by
    /// its id.
    ///
    /// # Errors
    /// A sentence if the run chooses the id.
    pub fn silence(&self, draft: &mut Draft) -> Result<(), Refusal> {
        self.hush(draft);
        if draft.id.is_some() { self.may_choose_id() } else { Ok(()) }
    }

    /// Lets a job send no messages, if this run may send none.
    fn hush(&self, draft: &mut Draft) {
        if self.has_words() {
            return;
        }
        draft.allow_ping = false;
        if draft.deliver == Deliver::Digest {
            draft.deliver = Deliver::default();
        }
    }

    /// Checks that the run may give a job another id.
    ///
    /// # Errors
    /// A sentence if the run may send no messages.
    pub fn may_choose_id(&self) -> Result<(), Refusal> {
        if self.has_words() {
            return Ok(());
        }
        Err(Refusal::denied(format!(
            "`--id` is in the messages about a job, and {} may send no messages; leave it out",
            self.title
        )))
    }

    /// Returns whether words of the run may reach the person. The service sends what a failed command printed.
    fn has_words(&self) -> bool {
        let is_told =
            self.own.client == Some(JobClient::Exec) && self.own.allow_ping && self.own.deliver != Deliver::Never;
        self.may_send() || is_told
    }

    /// Returns the folders of the run's sandbox; `None` for a turn of the main session, which has no sandbox.
    fn sandbox(&self) -> Option<&PathRoots> {
        (self.place != RunKind::Main).then(|| self.policy.path_roots())
    }

    fn narrow_tools(&self, draft: &mut Draft) -> Result<(), Refusal> {
        let own = [self.restrictions.allowed_tools(), self.restrictions.disallowed_tools()];
        let own = own.into_iter().chain([self.restrictions.ask_tools.as_deref()]);
        for (list, own) in [&draft.allowed_tools, &draft.disallowed_tools, &draft.ask_tools].into_iter().zip(own) {
            if let Some(list) = list.as_deref().filter(|list| Some(*list) != own) {
                self.require_few("a job that a job makes", list)?;
            }
        }
        let asked = draft.restrictions().map_err(|error| Refusal::denied(error.to_string()))?;
        let limited = attenuate(&self.title, &self.restrictions, &asked, &self.main_tools, self.sandbox());
        draft.restrict(&limited.map_err(|error| Refusal::denied(error.to_string()))?);
        Ok(())
    }

    /// See [`require_few`]. The main session's lists are the person's.
    fn require_few(&self, whose: &str, list: &[ToolPattern]) -> Result<(), Refusal> {
        if self.place == RunKind::Main { Ok(()) } else { require_few(whose, list) }
    }

    fn narrow_limits(&self, draft: &mut Draft) -> Result<(), Refusal> {
        if self.place == RunKind::Main {
            return Ok(());
        }
        if let Some(left) = self.links_left.filter(|left| draft.max_chain > *left) {
            return Err(self.beyond("--max-chain", &draft.max_chain.to_string(), &format!("{left} left")));
        }
        draft.timeout = self.timeout_of(draft.timeout)?;
        let most = self.own.gate_timeout.unwrap_or(gate::USUAL_TIMEOUT).max(gate::USUAL_TIMEOUT);
        if let Some(asked) = draft.gate_timeout.filter(|asked| *asked > most) {
            let words = |span: Duration| humantime::format_duration(span).to_string();
            return Err(self.beyond("--gate-timeout", &words(asked), &words(most)));
        }
        self.limit_fields(draft)
    }

    /// Limits each field with [`Limit::AtMost`] to the run's own value, which is also the default.
    ///
    /// # Errors
    /// A sentence if a value exceeds the run's own.
    pub fn limit_fields(&self, draft: &mut Draft) -> Result<(), Refusal> {
        let client = draft.client;
        let heeded = FIELDS.iter().filter(|field| field.is_heeded_by(client));
        for field in heeded.filter(|field| matches!(field.limit, Limit::AtMost)) {
            let Some(own) = (field.show)(&self.own) else { continue };
            match (field.show)(draft) {
                Some(asked) if asked > own => {
                    let flag = field.flags.first().map_or(field.name, |flag| flag.long);
                    return Err(self.beyond(&format!("--{flag}"), &asked.to_string(), &own.to_string()));
                }
                Some(_) => {}
                None => draft.set(field, &own).map_err(|fault| Refusal::denied(fault.message))?,
            }
        }
        Ok(())
    }

    /// Returns the timeout of a new job.
    ///
    /// # Errors
    /// A sentence if the requested timeout exceeds the run's own.
    pub fn timeout_of(&self, asked: Option<Duration>) -> Result<Option<Duration>, Refusal> {
        let most = self.timeout.unwrap_or(self.usual_timeout);
        match asked {
            Some(asked) if asked > most && self.place != RunKind::Main => {
                let words = |span: Duration| humantime::format_duration(span).to_string();
                Err(self.beyond("--timeout", &words(asked), &words(most)))
            }
            Some(asked) => Ok(Some(asked)),
            None => Ok(self.timeout.map(|own| own.min(self.usual_timeout))),
        }
    }

    fn beyond(&self, flag: &str, asked: &str, own: &str) -> Refusal {
        Refusal::denied(format!(
            "`{flag} {asked}` is more than {} has itself ({own}); leave it out, or ask for less",
            self.title
        ))
    }

    fn has_skill(&self, name: &str) -> bool {
        let call = ToolCall {
            tool: "Skill".into(),
            input: serde_json::json!({ "skill": name }),
            cwd: "/".into(),
            agent_type: None,
        };
        self.skills.iter().any(|own| own == name) || self.policy.decide(&call).verdict == Verdict::Allow
    }

    /// Returns whether the run's jobs are noted as made by `maker`.
    #[must_use]
    pub fn is_maker(&self, maker: &DefinitionId) -> bool {
        self.creator == *maker
    }

    /// Returns whether its jobs count as made by runs. Those of the main session do not, since it acts for the person.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.place != RunKind::Main
    }

    /// Checks the size of the text that the run writes into a job's file.
    ///
    /// # Errors
    /// A sentence if it is too long.
    pub fn require_short(&self, text: &str) -> Result<(), Refusal> {
        if !self.is_counted() || text.len() <= TEXT_AT_MOST {
            return Ok(());
        }
        let why = format!(
            "the file of a job that a job makes has at most {} KiB, and this one would have {} KiB",
            TEXT_AT_MOST / 1024,
            text.len().div_ceil(1024)
        );
        Err(Refusal::denied(why).hint("write what is long into a file in `work/`, and name that in the text"))
    }

    /// Checks that the run may change, move or remove an existing job.
    ///
    /// # Errors
    /// A sentence if the run did not make the job, or the job has more rights.
    pub fn may_change(&self, definition: &Definition) -> Result<(), Refusal> {
        let title = definition.title();
        if self.place == RunKind::Main {
            return Ok(());
        }
        if let Some(why) = self.place.makes_nothing() {
            return Err(Refusal::denied(format!("{} {why}, and changes no jobs", self.title)));
        }
        if definition.created_by.as_ref() != Some(&self.creator) {
            return Err(Refusal::denied(format!("{title} was not made by {}, so it may not change it", self.title)));
        }
        self.could_make(definition, "by now, so it may not change it")
    }

    /// Checks that the run may change a job that it [may change](Self::may_change) into this: it could make it so itself. Any run may
    /// change the times alone of a job that has more rights, since these stay the person's choice.
    ///
    /// # Errors
    /// A sentence if the job then has more rights than the run, or if the person is no longer asked before its runs.
    pub fn may_become(&self, found: &Definition, changed: &Definition) -> Result<(), Refusal> {
        if found.approve && !changed.approve {
            return Err(Refusal::denied("only the person takes `approve` from a job; leave `--no-approve` out"));
        }
        let (before, after) = (Draft::from(found), Draft::from(changed));
        let mut others = FIELDS.iter().filter(|field| !TIMES.contains(&field.name));
        if before.body == after.body && others.all(|field| (field.show)(&before) == (field.show)(&after)) {
            return Ok(());
        }
        self.could_make(changed, "then, so it may not change it so")
    }

    /// Checks that the run could make this job: [`Self::narrow`] leaves it as it is.
    fn could_make(&self, definition: &Definition, then: &str) -> Result<(), Refusal> {
        let draft = Draft::from(definition);
        let mut narrowed = draft.clone();
        self.hush(&mut narrowed);
        let why = match self.narrow(&mut narrowed) {
            Ok(()) if narrowed == draft => return Ok(()),
            Ok(()) => String::new(),
            Err(why) => format!(": {why}"),
        };
        Err(Refusal::denied(format!("{} has more than {} {then}{why}", definition.title(), self.title)))
    }

    /// Checks that the run may spawn an agent with these tools.
    ///
    /// # Errors
    /// A sentence with the first pattern that exceeds the run's rights.
    pub fn may_spawn(&self, tools: Option<&ToolLists>) -> Result<(), Refusal> {
        if let Some(why) = self.place.makes_nothing() {
            return Err(Refusal::denied(format!("{} {why}, and spawns none", self.title)));
        }
        let Some(asked) = tools.and_then(|tools| tools.allow.as_deref()) else { return Ok(()) };
        // These tools may be granted too. The caller's lists also apply to the child, so the child has to ask about them as well.
        let mut granted = self.restrictions.effective_allowed_tools().unwrap_or_else(|| self.main_tools.clone());
        granted.extend(self.restrictions.asked_tools().iter().cloned());
        // Partial denials need no check here: they also apply to the child, call by call.
        BOT.demand(&DelegablePatterns { owner: &self.title, patterns: &granted, sandbox: self.sandbox() }, &[], asked)
            .map_err(|error| Refusal::denied(error.to_string()))?;
        may_all(&self.policy, asked, &self.title)
    }
}

/// Refuses a long list of tools, since the time to compare two lists grows with the product of their lengths.
fn require_few(whose: &str, list: &[ToolPattern]) -> Result<(), Refusal> {
    let refused = |what: String| {
        Err(Refusal::denied(format!("a list of tools of {whose} has at most {what}; write fewer and shorter ones")))
    };
    if list.len() > PATTERNS_AT_MOST {
        return refused(format!("{PATTERNS_AT_MOST} patterns, and this one has {}", list.len()));
    }
    let length: usize = list.iter().map(|pattern| pattern.to_string().len()).sum();
    if length > TEXT_AT_MOST {
        return refused(format!("{} KiB, and this one has {}", TEXT_AT_MOST / 1024, length.div_ceil(1024)));
    }
    Ok(())
}

/// Refuses long lists of tools for an agent, whoever starts it: its limits are worked out while others wait.
///
/// # Errors
/// A sentence with the limit.
pub(super) fn require_few_for_agent(tools: &ToolLists) -> Result<(), Refusal> {
    let mut lists = [&tools.allow, &tools.deny].into_iter().flatten();
    lists.try_for_each(|list| require_few("a spawned agent", list))
}

/// Checks that a policy covers all requested patterns.
///
/// # Errors
/// A sentence with the first pattern that it does not cover.
pub(super) fn may_all(policy: &Policy, asked: &[ToolPattern], whose: &str) -> Result<(), Refusal> {
    match asked.iter().find(|pattern| !policy.covers(pattern)) {
        Some(pattern) => {
            Err(Refusal::denied(format!("`{pattern}` is more than {whose} may do itself; leave it out, or narrow it")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
pub(super) mod tests;
