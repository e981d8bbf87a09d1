//! The host of a running client: it answers the client's hook, serves our tools and keeps the record.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use agent_sandbox::{Answer, Start};
use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{Mutex, watch};
use tracing::{debug, error, info};

use super::delegation::DelegationLimit;
use super::events::RunEvents;
use super::follow_up::NextCheck;
use super::prompt;
use super::questions::{self, RunQuestions};
use super::sandbox::{JobSandbox, Judged};
use super::spawn::{SpawnRequest, Spawner};
use super::tokens::RunActions;
use super::tools::{self, DeliveryState};
use crate::agent::{ExternalAnswer, FurtherMessage, JsonObject, Observation, RunHost, SessionId, ToolAnswer};
use crate::bot::{Bot, live::UpdateKind};
use crate::clock::Clock;
use crate::definition::{Definition, DefinitionId, Expect};
use crate::journal::{Denial, EventKind, Journal, JournalError, PROGRAM_REFUSED, ProcessIdentity, RunId};
use crate::mcp::servers::RunServers;
use crate::policy::{BOT, Decision, Layer, Policy, ToolCall, ToolLists, UpdateMode, Verdict, on_one_line, own_tool};
use crate::refusal::Refusal;
use crate::schedule::LiveDefinitions;

/// The prefix of our own tools in the client's names. These tools record their side effects themselves.
const OUR_TOOLS: &str = own_tool!("");

/// Maximum length of each text of a refused call that is recorded, in characters.
const MAX_SHOWN: usize = 2000;

/// Maximum length of a recorded tool name, in characters. The model may call tools by any name.
pub(super) const LONGEST_NAME: usize = 100;

/// Maximum number of one run's refused calls and programs that are recorded and logged one by one.
const MAX_DENIALS: u32 = 200;

/// Maximum number of allowed lines that wait for their shell.
const MAX_LINES: usize = 256;

/// The host of one run.
pub struct Host {
    pub(super) run: RunId,
    /// The name of the run's client.
    pub(super) client: &'static str,
    pub(super) definition: Arc<Definition>,
    /// Whether it is a turn of a fork in which the person talks.
    pub(super) is_beside: bool,
    pub(super) policy: Policy,
    /// The sandbox of its processes; `None` for the main session, whose processes have the service's own access.
    pub(super) sandbox: Option<JobSandbox>,
    /// Allowed shell lines that were not started yet, each with the subagent that asked for it.
    pub(super) allowed_lines: std::sync::Mutex<Vec<(String, Option<String>)>>,
    /// The run's questions to the person.
    pub(super) questions: RunQuestions,
    /// Calls of our own command that the person allowed and that have not arrived yet: the words and the subagent.
    pub(super) asked_commands: std::sync::Mutex<Vec<(Vec<String>, Option<String>)>>,
    /// Number of refused calls and programs.
    pub(super) denials: AtomicU32,
    /// The narrower policy that a session was given, which replaces `policy`.
    pub(super) narrowed: OnceLock<Policy>,
    /// The rights that the run may delegate.
    pub(super) limit: DelegationLimit,
    pub(super) spawner: Arc<Spawner>,
    /// The recorder of the run's events.
    pub(super) events: RunEvents,
    /// The bare names of our tools that the run has.
    pub(super) tools: Vec<String>,
    /// The further MCP servers that the run has. Set before its client starts.
    pub(super) servers: OnceLock<RunServers>,
    pub(super) journal: Journal,
    pub(super) clock: Clock,
    pub(super) bot: Bot,
    pub(super) bot_name: String,
    pub(super) next_check: NextCheck,
    /// The delay of a chain's next check that the `notify` client schedules.
    pub(super) notify_delay: Duration,
    pub(super) definitions: LiveDefinitions,
    pub(super) delivery: Mutex<DeliveryState>,
    /// Messages from the `notify` client. They are committed with the outcome, so that none is lost or sent twice.
    pub(super) delivered: Mutex<Vec<String>>,
}

impl Host {
    /// Returns the present policy.
    pub(super) fn policy(&self) -> &Policy {
        self.narrowed.get().unwrap_or(&self.policy)
    }

    /// Narrows the policy that the run began with. The settings and the agents' files may grant more by now. A session's policy can be
    /// set only once.
    pub(super) fn narrow(&self, tools: &ToolLists) {
        if self.narrowed.set(self.policy.clone().spawned(&self.definition.title(), tools)).is_err() {
            error!(run = %self.run, "a session was given a second policy; the first one holds");
        }
    }

    /// Returns the sentence that keeps the agent from ending without a report. `sent` says whether the run has sent a message.
    fn missing_report(&self, sent: bool) -> Option<&'static str> {
        let background = self.definition.background()?;
        if !self.tools.iter().any(|tool| tool == tools::REPORT_UPDATES) {
            return None;
        }
        match background.restrictions.update_main_session {
            UpdateMode::Always => Some("Before you finish, call report_updates once and say what you did and found."),
            UpdateMode::OnPing if sent => {
                Some("You sent a message: before you finish, call report_updates once and say what you sent and why.")
            }
            _ => None,
        }
    }

    /// Returns whether a rule grants a program that may change files.
    fn may_change_by_bash(&self) -> bool {
        let background = self.definition.background();
        let Some(restrictions) = background.map(|background| &background.restrictions) else { return true };
        match restrictions.effective_allowed_tools() {
            // A program that the person allows is marked separately, when it starts.
            Some(granted) => granted.iter().any(|pattern| BOT.may_change_files(pattern)),
            None => true,
        }
    }

    /// Decides a call, with the person's answer where a rule asks. After an answer the call is decided and shown again: a symlink may lead
    /// elsewhere by then, and the approval was for what was shown.
    async fn decide_asking(&self, call: &ToolCall) -> Decision {
        let mut asked: Vec<(String, String)> = Vec::new();
        loop {
            let mut decision = self.policy().decide(call);
            if decision.verdict != Verdict::Ask {
                return decision;
            }
            let rule = decision.rule.clone().unwrap_or_default();
            let agent = call.agent_type.as_deref();
            let shown = questions::tool(&call.tool, &call.input, agent, (&call.cwd, &self.spawner.home.work()));
            if let Some((_, before)) = asked.iter().find(|(asked, _)| *asked == rule) {
                if *before == shown {
                    decision.verdict = Verdict::Allow;
                } else {
                    decision.verdict = Verdict::Deny;
                    decision.reason = "denied: what it names leads elsewhere since the person was asked".into();
                }
                return decision;
            }
            if let Err(why) = self.ask_person(&rule, &call.tool, shown.clone()).await {
                decision.verdict = Verdict::Deny;
                decision.reason = why;
                return decision;
            }
            asked.push((rule, shown));
        }
    }

    /// Asks the person about a call, and waits. Channels that show the turn show that it waits.
    async fn ask_person(&self, rule: &str, tool: &str, call: String) -> Result<(), String> {
        let publish = |waits| self.bot.live.publish(&self.definition.id, UpdateKind::WaitsForPerson(waits));
        publish(true);
        let answer = self.questions.ask(rule, tool, call).await;
        publish(*self.questions.waiting_for_person().borrow() > 0);
        answer
    }

    /// Records a call of our own command that the person allowed. Its process will ask again, over the control socket.
    fn record_approval(&self, start: &Start) {
        let name = start.argv.first().and_then(|program| program.rsplit('/').next());
        if name != Some(BOT.command) {
            return;
        }
        let mut asked = self.asked_commands.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() >= MAX_LINES {
            asked.remove(0);
        }
        asked.push((start.argv.get(1..).unwrap_or_default().to_vec(), start.caller.clone()));
    }

    /// Returns whether the person allowed this call of our own command. Uses up that approval.
    fn use_approval(&self, words: &[String], agent: Option<&str>) -> bool {
        let mut asked = self.asked_commands.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |(known, caller): &(Vec<String>, Option<String>)| {
            Some(known.as_slice()) == words.get(1..) && caller.as_deref() == agent
        };
        asked.iter().position(same).map(|at| asked.remove(at)).is_some()
    }

    /// Starts an agent for this run.
    ///
    /// # Errors
    /// A sentence for the agent. No agent was started then.
    pub(super) async fn spawn_agent(&self, request: SpawnRequest) -> Result<DefinitionId, Refusal> {
        // A request that is refused anyway has no side effect, so it is checked before the mark.
        self.limit.may_spawn(request.tools.as_ref())?;
        let marked = self.mark(tools::SPAWN_AGENT).await;
        marked
            .map_err(|error| Refusal::user(format!("no agent was started, since it could not be recorded: {error}")))?;
        let spawned = self.spawner.spawn(request, Some((&self.run, &self.limit))).await?;
        self.events.add(EventKind::Note { text: format!("started the agent {spawned}") });
        Ok(spawned)
    }

    /// Marks that this run is about to have a side effect. The mark must be committed before the effect is allowed.
    pub(super) async fn mark(&self, what: &str) -> Result<(), JournalError> {
        fail_point!(BeforeMark);
        self.journal.mark_effect(&self.run, what).await?;
        fail_point!(Marked);
        Ok(())
    }

    /// Logs and records a denial. The number and the length of the entries are limited, so that a job cannot fill log or record.
    pub(super) async fn record(&self, denial: Denial) {
        self.record_with(denial, None).await;
    }

    /// Does the same, and adds `note` to the run's events.
    pub(super) async fn record_with(&self, mut denial: Denial, note: Option<&str>) {
        denial.tool = on_one_line(&denial.tool, LONGEST_NAME);
        denial.reason = on_one_line(&denial.reason, MAX_SHOWN);
        truncate_texts(&mut denial.input);
        let (tool, reason) = (&denial.tool, &denial.reason);
        let before = self.denials.fetch_add(1, Ordering::Relaxed);
        if before > MAX_DENIALS {
            debug!(run = %self.run, %tool, %reason, "refused");
            return;
        }
        info!(run = %self.run, %tool, %reason, "refused");
        if let Some(note) = note.filter(|_| before < MAX_DENIALS) {
            self.events.add(EventKind::Note { text: format!("{note}: {reason}") });
        }
        if before == MAX_DENIALS {
            denial.reason =
                format!("{MAX_DENIALS} were refused already; this one and what follows is not recorded one by one");
            denial.input = Value::Null;
        }
        if let Err(error) = self.journal.deny(&self.run, denial).await {
            error!(run = %self.run, %error, "a refused call could not be recorded");
        }
    }
}

/// Shortens every text in a tool's input to its beginning.
pub(super) fn truncate_texts(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(MAX_SHOWN) {
                text.truncate(end);
                text.push('…');
            }
        }
        Value::Array(items) => items.iter_mut().for_each(truncate_texts),
        Value::Object(fields) => fields.values_mut().for_each(truncate_texts),
        _ => {}
    }
}

/// Returns the line in a script of the client's. The script is `… && eval 'LINE' …`, with a quote written as `'"'"'`, or
/// `… && eval WORD …` if the line is one word without special characters. `None` for any other script, since a part of the line would be
/// shown as the whole.
fn line_of(script: &str) -> Option<String> {
    const QUOTE: &str = r#"'"'"'"#;
    let (_, rest) = script.split_once("&& eval ")?;
    let Some(mut rest) = rest.strip_prefix('\'') else {
        let word = rest.split(' ').next()?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@+,-".contains(c);
        return (!word.is_empty() && word.chars().all(is_plain)).then(|| word.to_owned());
    };
    let mut line = String::new();
    loop {
        let (part, after) = rest.split_once('\'')?;
        line.push_str(part);
        match format!("'{after}").strip_prefix(QUOTE) {
            Some(_) => {
                line.push('\'');
                rest = &after[QUOTE.len() - 1..];
            }
            None => return (after.is_empty() || after.starts_with(' ')).then_some(line),
        }
    }
}

#[async_trait]
impl RunActions for Host {
    fn decide_command(&self, words: &[String], agent: Option<&str>) -> Decision {
        let mut decision = self.policy().decide_command(words, agent);
        let rule = decision.rule.clone().unwrap_or_default();
        if decision.verdict == Verdict::Ask && (self.questions.is_granted(&rule) || self.use_approval(words, agent)) {
            decision.verdict = Verdict::Allow;
        }
        decision
    }

    async fn follow_up(&self, delay: Duration) -> Result<String, Refusal> {
        self.schedule_check(delay).await.map_err(Refusal::user)
    }

    async fn mark_effect(&self, what: &str) -> Result<(), Refusal> {
        let marked = self.mark(what).await;
        marked.map_err(|error| Refusal::user(format!("nothing was done, since it could not be recorded: {error}")))
    }

    async fn spawn(&self, request: SpawnRequest) -> Result<DefinitionId, Refusal> {
        self.spawn_agent(request).await
    }

    async fn record_denial(&self, denial: Denial) {
        self.record(denial).await;
    }
}

#[async_trait]
impl RunHost for Host {
    async fn decide(&self, call: ToolCall) -> Decision {
        let mut decision = self.decide_asking(&call).await;
        // The programs of a line are not known yet, and one of them may change something.
        let reads = decision.read_only && !(call.tool == "Bash" && self.may_change_by_bash());
        let effect = decision.verdict == Verdict::Allow && !reads && !call.tool.starts_with(OUR_TOOLS);
        if effect && let Err(error) = self.mark(&call.tool).await {
            decision.verdict = Verdict::Deny;
            decision.layer = Layer::System;
            decision.rule = None;
            decision.reason = format!(
                "{} was not run, since that could not be recorded ({error}). Try again in a minute.",
                call.tool
            );
        }
        if decision.verdict == Verdict::Deny {
            let layer = decision.layer.to_string();
            let (rule, reason) = (decision.rule.clone(), decision.reason.clone());
            self.record(Denial { tool: call.tool, input: call.input, layer, rule, reason }).await;
        } else {
            debug!(run = %self.run, tool = %call.tool, "call allowed");
            if let ("Bash", Some(line)) = (call.tool.as_str(), call.input.get("command").and_then(Value::as_str)) {
                let mut lines = self.allowed_lines.lock().unwrap_or_else(PoisonError::into_inner);
                // This bounds the memory for a client that asks for lines and never runs them.
                if lines.len() >= MAX_LINES {
                    lines.remove(0);
                }
                lines.push((line.to_owned(), call.agent_type.clone()));
            }
        }
        decision
    }

    async fn judge(&self, start: Start) -> Answer {
        let Some(sandbox) = &self.sandbox else {
            return Answer::Deny { code: 126, message: "denied: this session has no sandbox".into() };
        };
        let Judged { mut decision, mut answer } = sandbox.judge(self.policy(), &start);
        let mut asked = Vec::new();
        // The person is not asked about a program that cannot start. After an answer it is judged again, since much can change meanwhile.
        while decision.verdict == Verdict::Ask && !matches!(answer, Answer::Deny { .. }) {
            let rule = decision.rule.clone().unwrap_or_default();
            if asked.contains(&rule) {
                break;
            }
            // Without a client the script is the line itself.
            let line = line_of(&start.script).unwrap_or_else(|| start.script.to_string());
            let call = questions::program(&start, &line, &sandbox.work());
            if let Err(why) = self.ask_person(&rule, "Bash", call).await {
                decision.verdict = Verdict::Deny;
                decision.reason = why.clone();
                answer = Answer::Deny { code: 126, message: on_one_line(&why, MAX_SHOWN) };
                break;
            }
            asked.push(rule);
            Judged { decision, answer } = sandbox.judge(self.policy(), &start);
        }
        if !asked.is_empty() && !matches!(answer, Answer::Deny { .. }) {
            self.record_approval(&start);
        }
        if decision.verdict == Verdict::Deny {
            let input = serde_json::json!({ "command": decision.commands.first() });
            let (layer, reason) = (decision.layer.to_string(), decision.reason);
            self.bot.live.publish(&self.definition.id, UpdateKind::ProgramRefused(reason.clone()));
            let denial = Denial { tool: "Bash".into(), input, layer, rule: decision.rule, reason };
            self.record_with(denial, Some(PROGRAM_REFUSED)).await;
            return answer;
        }
        debug!(run = %self.run, program = ?start.argv, "program allowed");
        if matches!(answer, Answer::Outside { .. })
            && !decision.read_only
            && let Err(error) = self.mark("Bash").await
        {
            let message = format!("not run, since that could not be recorded ({error}). Try again in a minute.");
            return Answer::Deny { code: 126, message };
        }
        answer
    }

    async fn call_external(&self, server: &str, tool: &str, arguments: JsonObject) -> ExternalAnswer {
        match self.servers.get() {
            Some(servers) => servers.call(server, tool, arguments).await,
            None => ExternalAnswer::refused(format!("`{tool}` of `{server}` is not among this job's tools.")),
        }
    }

    async fn caller(&self, script: String) -> Result<Option<String>, String> {
        let line = line_of(&script).ok_or("denied: the client's shell was started in a way that is not known")?;
        let mut lines = self.allowed_lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut callers: Vec<Option<String>> =
            lines.iter().filter(|(allowed, _)| *allowed == line).map(|(_, caller)| caller.clone()).collect();
        callers.sort();
        callers.dedup();
        match callers.as_slice() {
            [] => Err("denied: this line was not allowed to any agent of this run".into()),
            [caller] => {
                let at = lines.iter().position(|(allowed, _)| *allowed == line);
                at.map(|at| lines.remove(at));
                Ok(caller.clone())
            }
            _ => Err("denied: two agents asked for the same line at the same moment; ask for it again".into()),
        }
    }

    fn waiting_for_person(&self) -> watch::Receiver<u32> {
        self.questions.waiting_for_person()
    }

    fn may_continue(&self) -> bool {
        if matches!(self.definition.expect, Some(Expect::Message | Expect::Report)) {
            return true;
        }
        let sends = [tools::PING_USER, tools::DISCORD_EMBED];
        self.missing_report(self.tools.iter().any(|tool| sends.contains(&tool.as_str()))).is_some()
    }

    async fn stop(&self, is_repeated: bool) -> Option<String> {
        let delivery = self.delivery.lock().await;
        if is_repeated {
            return None;
        }
        match &self.definition.expect {
            Some(Expect::Message) if !delivery.sent => {
                return Some(
                    "Before you finish, send the message that this run is there for: without it the run has failed."
                        .into(),
                );
            }
            Some(Expect::Report) if delivery.reports == 0 => {
                return Some("Before you finish, call report_updates once: without it the run has failed.".into());
            }
            _ if delivery.reports > 0 => return None,
            _ => {}
        }
        self.missing_report(delivery.sent).map(Into::into)
    }

    async fn call_tool(&self, name: &str, arguments: Value) -> ToolAnswer {
        tools::call(self, name, arguments).await
    }

    async fn started(&self, pid: u32, session: Option<SessionId>) {
        let id = session.clone().map(|session| session.0);
        let started = self.journal.started(&self.run, ProcessIdentity::of(pid), id, Some(self.client));
        if let Err(error) = started.await {
            error!(run = %self.run, %error, "the start of the client could not be recorded");
        }
        // The main session's id is kept from now on, however the turn ends.
        if let (Some(session), None, false) = (session, self.definition.background(), self.is_beside)
            && let Err(error) = self.bot.main.save(session, None).await
        {
            error!(run = %self.run, %error, "the main session's id could not be kept");
        }
    }

    fn observe(&self, seen: Observation) {
        if let Observation::ApiRetry { fault } = &seen {
            self.journal.api_retry(&self.run, fault.clone());
        }
        self.bot.live.publish(&self.definition.id, UpdateKind::Did(seen.clone()));
        self.events.observe(seen);
    }

    fn text_delta(&self, text: &str) {
        self.bot.live.publish(&self.definition.id, UpdateKind::Letters(text.to_owned()));
    }

    async fn further_message(&self) -> FurtherMessage {
        let is_main = self.definition.background().is_none() && !self.is_beside;
        if !(is_main && self.definition.id.is_turn()) {
            return std::future::pending().await;
        }
        let said = self.bot.mid_turn.next().await;
        self.events
            .add(EventKind::Note { text: format!("the client was given what was said meanwhile ({})", said.id) });
        FurtherMessage { id: said.id.to_string(), prompt: prompt::of_further_message(&said, self.clock.now()) }
    }

    fn mark_received(&self, id: &str) {
        self.events.add(EventKind::Note { text: format!("the model was given what was said meanwhile ({id})") });
        self.bot.mid_turn.mark_received(DefinitionId::new(id));
    }

    async fn client_denied(&self, tool: String, input: Value, reason: String) {
        self.record(Denial { tool, input, layer: "client".into(), rule: None, reason }).await;
    }

    async fn deliver(&self, mut text: String) -> Result<(), String> {
        if self.next_check.is_open() {
            let next = self.schedule_check(self.notify_delay).await?;
            text.push_str("\n\n");
            text.push_str(&next);
        }
        // The words of a job that another job made count as a message of an agent's does.
        if self.definition.created_by.is_some() {
            text.insert_str(0, "[bg] ");
            if self.spend_message(tools::PING_USER, &self.message(text.clone()), false).await?.is_err() {
                return Ok(());
            }
        }
        self.delivered.lock().await.push(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MAX_SHOWN, line_of, truncate_texts};
    use crate::run::dry_run::client_script;

    #[test]
    fn what_is_kept_of_an_input_is_short() {
        let (long, cut) = ("é".repeat(MAX_SHOWN + 1), format!("{}…", "é".repeat(MAX_SHOWN)));
        let mut input = json!({ "a": long, "b": [long, "x", 1], "c": { "d": long } });
        truncate_texts(&mut input);
        assert_eq!(input, json!({ "a": cut, "b": [cut, "x", 1], "c": { "d": cut } }));
    }

    #[test]
    fn the_line_of_an_own_command_is_found_whole() {
        for line in [
            "ls",
            "git --version 'plain'; echo x",
            "'",
            "''",
            "a'b'\"c\" \\' && eval 'x'",
            "echo 'a\nb'",
            "a' < /dev/null",
        ] {
            assert_eq!(line_of(&client_script(line)).as_deref(), Some(line));
        }
    }

    #[test]
    fn the_line_of_a_script_is_found() {
        for (script, line) in [
            ("source S || true && eval 'echo a | cat' < /dev/null && pwd -P >| F", Some("echo a | cat")),
            (r#"x && eval 'echo '"'"'it'"'"'s' < /dev/null"#, Some("echo 'it's")),
            (r#"x && eval ''"'"'q'"'"'' && pwd"#, Some("'q'")),
            ("x && eval 'a\nb' y", Some("a\nb")),
            ("x && eval ls && pwd -P >| /tmp/f", Some("ls")),
            ("x && eval ./run.sh '<' /dev/null && pwd", Some("./run.sh")),
            ("x && eval 'open", None),
            (r"x && eval 'echo '\''it'\''s' && pwd", None),
            ("x && eval  && pwd", None),
            ("x && eval ls;id && pwd", None),
            ("env", None),
        ] {
            assert_eq!(line_of(script).as_deref(), line, "{script}");
        }
    }
}
