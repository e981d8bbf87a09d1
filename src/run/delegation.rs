//! What a run may hand on: whatever it makes has no more than the run itself.
//!
//! Pure. A job's file that a run asks for is narrowed here, or refused with a sentence; what was made before may be
//! changed only by the job that made it, and only while it has no more than that job.

use std::time::Duration;

use super::gate;
use super::runner::RunSettings;
use crate::definition::fields::{FIELDS, Limit};
use crate::definition::{Chain, Definition, DefinitionId, Deliver, Draft, JobClient, Trigger, Urgency};
use crate::policy::{
    BOT, BgForkConfig, Granted, PathRoots, Policy, ToolCall, ToolLists, ToolPattern, Verdict, attenuate,
};
use crate::refusal::Refusal;

/// Files made by runs that may stand at one time, all together.
pub const MADE_AT_MOST: usize = 100;

/// Patterns in one list of a job that a run makes: they are compiled whenever its file is read.
pub const PATTERNS_AT_MOST: usize = 64;

/// Whose run it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A turn of the main session.
    Main,
    /// A background job.
    Fork,
    /// An agent that a run or the person spawned.
    Spawned,
    /// A command that another job made. Limits of agents do not hold on a command, so it hands nothing on that could lack them.
    MadeCommand,
}

impl Place {
    /// Why it makes, changes and spawns nothing; `None`: it may.
    fn makes_nothing(self) -> Option<&'static str> {
        match self {
            Self::Main | Self::Fork => None,
            Self::Spawned => Some("was spawned by another agent"),
            Self::MadeCommand => Some("is a command that another job made"),
        }
    }
}

/// What a run has, as far as it can be handed on.
#[derive(Clone, Debug)]
pub struct DelegationLimit {
    title: String,
    /// Under which what it makes is known: its own id, in a chain that of the first link.
    creator: DefinitionId,
    place: Place,
    restrictions: BgForkConfig,
    main_tools: Vec<ToolPattern>,
    policy: Policy,
    isolated: bool,
    agent: Option<String>,
    /// How long a run of its own may take, and whether its file says so.
    timeout: Option<Duration>,
    usual_timeout: Duration,
    /// The fields of its file; all at their default for a turn of the main session.
    own: Draft,
    skills: Vec<String>,
    /// The follow-ups that a reminder has left; `None`: it recurs, or is a turn of the main session.
    links_left: Option<u32>,
}

impl DelegationLimit {
    /// The limit of a definition's run under this policy.
    #[must_use]
    pub fn of(definition: &Definition, policy: &Policy, settings: &RunSettings) -> Self {
        let background = definition.background();
        let place = match background {
            None => Place::Main,
            Some(_) if policy.is_spawned() => Place::Spawned,
            Some(_) if definition.command.is_some() && definition.is_made_by_run() => Place::MadeCommand,
            Some(_) => Place::Fork,
        };
        let creator = match &definition.trigger {
            Trigger::Reminder { chain: Some(Chain { parent, .. }), .. } => parent.clone(),
            _ => definition.id.clone(),
        };
        // A turn of the main session is no measure for the jobs that it makes: only what it may do is.
        let own = background.is_some();
        Self {
            title: definition.title(),
            creator,
            place,
            restrictions: background.map(|background| background.restrictions.clone()).unwrap_or_default(),
            main_tools: settings.main_tools.clone(),
            policy: policy.clone(),
            isolated: background.is_some_and(|background| background.isolated),
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

    /// Who it is, for sentences: `routine email-triage`.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Its own restrictions: what a spawned agent of it has at most.
    #[must_use]
    pub fn restrictions(&self) -> &BgForkConfig {
        &self.restrictions
    }

    /// The agent that it runs as.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// Narrows a job that is to be made to what this run has.
    ///
    /// # Errors
    /// A sentence for the agent: what is more than it has.
    pub fn narrow(&self, draft: &mut Draft) -> Result<(), Refusal> {
        if let Some(why) = self.place.makes_nothing() {
            return Err(Refusal::denied(format!("{} {why}, and makes no jobs", self.title)));
        }
        if self.place != Place::Main {
            draft.created_by = Some(self.creator.clone());
        }
        draft.approve |= self.own.approve;
        if !draft.background {
            return match self.place {
                Place::Main => Ok(()),
                _ => Err(Refusal::denied(
                    "a job can make background jobs only: the main session has more than it; add `--background`",
                )),
            };
        }
        // The service calls it, whatever network the job has.
        if self.place != Place::Main && draft.heartbeat_url.is_some() && draft.heartbeat_url != self.own.heartbeat_url {
            return Err(Refusal::denied("only the person chooses whom the service calls; leave `--heartbeat-url` out"));
        }
        if self.place != Place::Main {
            // Not every channel is as safe as the person's own choice.
            if draft.channel.is_some() && draft.channel != self.own.channel {
                return Err(Refusal::denied("only the person chooses where messages go; leave `--channel` out"));
            }
            draft.channel.clone_from(&self.own.channel);
            if let Some(ask) = &mut draft.ask {
                ask.channel = self.own.ask.as_ref().and_then(|own| own.channel.clone());
            }
        }
        self.narrow_tools(draft)?;
        self.soften(draft)?;
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

    /// What it makes is no more urgent than itself, waits for the digest where it does, and requires what it requires. A command's output
    /// is not sent at all.
    ///
    /// # Errors
    /// A sentence where it is to be critical or to wake the machine, and the job is not or does not.
    pub fn soften(&self, draft: &mut Draft) -> Result<(), Refusal> {
        if self.place == Place::Main {
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

    /// What holds of a command besides: no agent's file narrows it, and only the person has its output sent each time. What may send
    /// no message itself has none of its output sent.
    fn narrow_command(&self, draft: &mut Draft) -> Result<(), Refusal> {
        if let Some(own) = &self.agent {
            return Err(Refusal::denied(format!(
                "{} runs as agent `{own}`, and a command runs as none; make a job without `--command`",
                self.title
            )));
        }
        if self.place != Place::Main && matches!(draft.deliver, Deliver::Always | Deliver::Digest) {
            return Err(Refusal::denied("only the person has output sent each time; leave `--deliver` out"));
        }
        let sends = ["mcp__discord__ping_user", "mcp__discord__discord_embed"];
        if self.place != Place::Main && !sends.iter().any(|tool| self.policy.names(tool)) {
            draft.deliver = Deliver::Never;
        }
        Ok(())
    }

    /// The folders of its sandbox; `None`: a turn of the main session runs in none.
    fn sandbox(&self) -> Option<&PathRoots> {
        (self.place != Place::Main).then(|| self.policy.path_roots())
    }

    fn narrow_tools(&self, draft: &mut Draft) -> Result<(), Refusal> {
        let own = [self.restrictions.allowed_tools(), self.restrictions.disallowed_tools()];
        let own = own.into_iter().chain([self.restrictions.ask_tools.as_deref()]);
        for (list, own) in [&draft.allowed_tools, &draft.disallowed_tools, &draft.ask_tools].into_iter().zip(own) {
            let count = list.as_ref().map_or(0, Vec::len);
            if self.place != Place::Main && count > PATTERNS_AT_MOST && list.as_deref() != own {
                return Err(Refusal::denied(format!(
                    "a list of tools of a job that a job makes has at most {PATTERNS_AT_MOST} patterns, and this one has \
                     {count}; write fewer and wider ones"
                )));
            }
        }
        let asked = draft.restrictions().map_err(|error| Refusal::denied(error.to_string()))?;
        let limited = attenuate(&self.title, &self.restrictions, &asked, &self.main_tools, self.sandbox());
        draft.restrict(&limited.map_err(|error| Refusal::denied(error.to_string()))?);
        Ok(())
    }

    fn narrow_limits(&self, draft: &mut Draft) -> Result<(), Refusal> {
        if self.place == Place::Main {
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

    /// Holds each field whose limit is [`Limit::AtMost`] to the run's own value, which is also its default.
    ///
    /// # Errors
    /// A sentence where more is asked for than it has.
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

    /// The timeout of what it makes.
    ///
    /// # Errors
    /// A sentence where more is asked for than it has.
    pub fn timeout_of(&self, asked: Option<Duration>) -> Result<Option<Duration>, Refusal> {
        let most = self.timeout.unwrap_or(self.usual_timeout);
        match asked {
            Some(asked) if asked > most && self.place != Place::Main => {
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

    /// Whether what it makes counts among what runs make: a turn of the main session does what the person says.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.place != Place::Main
    }

    /// Whether it may change, move or remove a job that is there.
    ///
    /// # Errors
    /// A sentence: it is not its own, or it has more.
    pub fn may_change(&self, definition: &Definition) -> Result<(), Refusal> {
        let title = definition.title();
        if self.place == Place::Main {
            return Ok(());
        }
        if let Some(why) = self.place.makes_nothing() {
            return Err(Refusal::denied(format!("{} {why}, and changes no jobs", self.title)));
        }
        if definition.created_by.as_ref() != Some(&self.creator) {
            return Err(Refusal::denied(format!("{title} was not made by {}, so it may not change it", self.title)));
        }
        let draft = Draft::from(definition);
        let mut narrowed = draft.clone();
        match self.narrow(&mut narrowed) {
            Ok(()) if narrowed == draft => Ok(()),
            Ok(()) => {
                Err(Refusal::denied(format!("{title} has more than {} by now, so it may not change it", self.title)))
            }
            Err(why) => Err(Refusal::denied(format!(
                "{title} has more than {} by now, so it may not change it: {why}",
                self.title
            ))),
        }
    }

    /// Whether it may spawn an agent with these tools.
    ///
    /// # Errors
    /// A sentence with the first pattern that it has not itself.
    pub fn may_spawn(&self, tools: Option<&ToolLists>) -> Result<(), Refusal> {
        if let Some(why) = self.place.makes_nothing() {
            return Err(Refusal::denied(format!("{} {why}, and spawns none", self.title)));
        }
        let Some(asked) = tools.and_then(|tools| tools.allow.as_deref()) else { return Ok(()) };
        // What it has to ask about, the child has to ask about, too: its caller's lists hold beside its own.
        let mut granted = self.restrictions.effective_allowed_tools().unwrap_or_else(|| self.main_tools.clone());
        granted.extend(self.restrictions.asked_tools().iter().cloned());
        // Denials of a part need no look: they are held beside the child's own lists, call by call.
        BOT.demand(&Granted { owner: &self.title, patterns: &granted, sandbox: self.sandbox() }, &[], asked)
            .map_err(|error| Refusal::denied(error.to_string()))?;
        may_all(&self.policy, asked, &self.title)
    }
}

/// Whether a policy covers all that is asked for.
///
/// # Errors
/// A sentence with the first pattern that is more.
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
