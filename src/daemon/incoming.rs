//! Handles the person's input from channels: a message starts a turn, a button has its action, a command is executed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::{broadcast, mpsc};
use tokio::time::{Instant, sleep_until};

use super::control::Handler as _;
use super::cut_off_input;
use super::handlers::Handlers;
use super::received;
use crate::agent::Observation;
use crate::app::{App, Command, Outcome, ServiceCommand, ServiceReply, times, unexpected_reply};
use crate::bot::live::{TurnUpdate, UpdateKind};
use crate::bot::main_session::MAKE_SHORTER;
use crate::channel::commands::{ANYWAY, COMMANDS, ChatCommand, CommandEffect, as_typed};
use crate::channel::terminal::visible;
use crate::channel::{
    ButtonRemoval, ButtonRemovals, Channel, Deaf, INTERRUPT, IncomingEvent, IncomingHandler, IncomingMessage, Outgoing,
    Progress, Response, interrupts,
};
use crate::definition::{DefinitionId, Period};
use crate::journal::{
    Answer, BegunInput, Button, ForkEnd, Journal, JournalError, Message, NewMessage, Question, QuestionEnd, RunFilter,
    RunId, RunState,
};
use crate::refusal::Refusal;
use crate::run::converse::is_message_id;
use crate::run::forks::{self, EndForkResult, fork_action};
use crate::run::prompt::data::is_line_end;
use crate::schedule::{ActiveView, StageView};

/// Executes a command line of the person's and returns its output. `Err` holds the reason of a failure. Runs on blocking threads.
pub type ExecuteWords = fn(&App, &[String]) -> Result<String, String>;

/// Time for which an agent's buttons stay valid.
const VALID: TimeDelta = TimeDelta::days(7);

/// Maximum number of questions and maximum age at which they count as ended by this start of the service.
const MAX_LEFT: i64 = 100;
const RECENTLY_ENDED: TimeDelta = TimeDelta::minutes(1);

/// Maximum length of a quote above an answer, in characters.
const QUOTED: usize = 500;

/// The quote of a message that is not recorded any more.
const NOT_RECORDED: &str = "(a message that is no longer recorded)";

/// Minimum time between two looks at the record of a turn.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The same time once the turn's end is expected.
const MIN_PAUSE: Duration = Duration::from_millis(20);

/// Maximum number of remembered senders to channels without an owner.
const MAX_STRANGERS: usize = 1000;

/// Receives the person's input from all channels.
pub(super) struct ServiceInbound {
    pub handlers: Handlers,
    pub channels: BTreeMap<String, Arc<dyn Channel>>,
    pub execute: ExecuteWords,
    /// Who was answered since the start by channels without an owner, by channel and name. The answer helps to find out the owner, so
    /// each start gives it again.
    pub told: Mutex<BTreeSet<(String, String)>>,
    pub removals: ButtonRemovals,
}

#[async_trait]
impl IncomingHandler for ServiceInbound {
    async fn receive(&self, channel: &str, heard: IncomingEvent) -> Response {
        let response = match heard {
            IncomingEvent::Message(said) => self.handle_message(channel, said).await,
            IncomingEvent::Pressed { button } => self.pressed(channel, &button, None, None).await,
            IncomingEvent::PressedOnce { button, at } => self.pressed(channel, &button, Some(at), None).await,
            IncomingEvent::Command { command, argument, id } => {
                // The notice of a cut off command must not show a login's code.
                let shown = argument.as_ref().filter(|_| command != "login").map(|argument| format!(" {argument}"));
                let what = format!("`/{command}{}`", shown.unwrap_or_default());
                let asked = self.asked(channel, &command, argument.as_deref());
                self.once(channel, id.as_deref(), what, asked).await
            }
        };
        let response = response.unwrap_or_else(|refusal| Response::Refused(with_hints(&refusal)));
        match self.channels.get(channel).is_some_and(|channel| channel.takes_commands()) {
            true => response.map(|text| as_typed(&text)),
            false => response,
        }
    }

    async fn record_stranger(&self, channel: &str, by: &str, has_owner: bool) -> bool {
        tracing::warn!(channel, "somebody who is not the owner has written to the bot; nothing was done");
        let recorded = self.handlers.journal.record_stranger(channel, by).await;
        let recorded = recorded.inspect_err(|error| tracing::warn!(%error, "a stranger could not be recorded"));
        if has_owner {
            return recorded.unwrap_or(false);
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.len() < MAX_STRANGERS && told.insert((channel.to_owned(), by.to_owned()))
    }

    async fn not_taken(&self, channel: &str) {
        if let Err(error) = self.handlers.journal.record_not_taken(channel).await {
            tracing::warn!(%error, channel, "an input that was not taken could not be counted");
        }
    }

    async fn deaf(&self, channel: &str, deaf: Deaf) {
        let next = self.app().config().ok();
        let next = next.and_then(|config| config.channel_names().find(|next| *next != channel).map(str::to_owned));
        let by = if deaf.delivers { Some(channel.to_owned()) } else { next };
        let Deaf { why, .. } = deaf;
        let text = format!("The channel `{channel}` hears nothing of what you say there: {why}. It is tried again.");
        self.set_deaf(channel, Some(why), NewMessage { channel: by, ..NewMessage::of_service(text) }).await;
    }

    async fn hears(&self, channel: &str) {
        let text = format!("The channel `{channel}` hears you again.");
        let told = NewMessage { channel: Some(channel.to_owned()), ..NewMessage::of_service(text) };
        self.set_deaf(channel, None, told).await;
    }

    fn follow(&self, turn: DefinitionId) -> mpsc::UnboundedReceiver<Progress> {
        let (send, receive) = mpsc::unbounded_channel();
        tokio::spawn(follow(turn, self.handlers.journal.clone(), self.handlers.live.listen(), send));
        receive
    }

    async fn set_cursor(&self, channel: &str, last: String) {
        if let Err(error) = self.handlers.journal.set_channel_cursor(channel, &last).await {
            tracing::warn!(%error, "what was heard last could not be kept");
        }
    }

    async fn cursor(&self, channel: &str) -> Option<String> {
        let last = self.handlers.journal.channel_cursor(channel).await;
        last.inspect_err(|error| tracing::warn!(%error, "what was heard last is not known")).ok().flatten()
    }

    async fn set_status(&self, channel: &str, turn: &DefinitionId, message: String) {
        if let Err(error) = self.handlers.journal.set_turn_status(channel, turn, message).await {
            tracing::warn!(%error, %turn, "the message that shows a turn could not be recorded");
        }
    }

    async fn status(&self, channel: &str, turn: &DefinitionId) -> Option<String> {
        let shown = self.handlers.journal.leftover_statuses(channel, true).await;
        let shown = shown.inspect_err(|error| tracing::warn!(%error, "what shows a turn is not known"));
        shown.unwrap_or_default().into_iter().find(|status| status.turn == *turn).map(|status| status.message)
    }

    async fn sent_message(&self, channel: &str, message: &str) -> Option<Outgoing> {
        let sent = self.handlers.journal.message_sent_as(channel, message).await;
        let sent = sent.inspect_err(|error| tracing::warn!(%error, "what was sent is not known")).ok()??;
        Some(Outgoing::on(&**self.channels.get(channel)?, &sent))
    }

    async fn store(&self, channel: &str, name: &str, what: String) -> bool {
        let kept = self.handlers.journal.store_unprocessed(channel, name, what).await;
        kept.inspect_err(|error| tracing::warn!(%error, "what came in could not be kept")).is_ok()
    }

    async fn stored(&self, channel: &str) -> Vec<(String, String)> {
        let kept = self.handlers.journal.unprocessed(channel).await;
        kept.inspect_err(|error| tracing::warn!(%error, "what came in before is not known")).unwrap_or_default()
    }

    async fn discard(&self, channel: &str, name: &str) {
        if let Err(error) = self.handlers.journal.mark_processed(channel, name).await {
            tracing::warn!(%error, "that something was heard could not be recorded; it is heard again after the next start");
        }
    }
}

impl ServiceInbound {
    async fn set_deaf(&self, channel: &str, why: Option<String>, told: NewMessage) {
        if let Err(error) = self.handlers.journal.set_deaf(channel, why, told).await {
            tracing::error!(%error, channel, "whether a channel hears cannot be recorded");
        }
    }

    async fn handle_message(&self, channel: &str, said: IncomingMessage) -> Result<Response, Refusal> {
        // The journal records a turn by its message's id, and anything else as handled.
        let id = said.id.as_deref().filter(|id| is_message_id(id));
        if let Some(id) = id
            && self.handlers.journal.is_handled(channel, id).await?
        {
            return Ok(Response::Repeated);
        }
        if self.handlers.sign_ins.awaits(&said.text).await {
            let login = async { self.login(Some(&said.text)).await.map(Response::Text) };
            return self.once(channel, id, "the code of your login".into(), login).await;
        }
        let answered = match &said.reply_to {
            Some(external) => self.handlers.journal.message_sent_as(channel, external).await?,
            None => None,
        };
        if let Some(response) = self.pressed_by_reply(channel, answered.as_ref(), &said).await? {
            return Ok(response);
        }
        if let Some(denied) = self.deny(channel, answered.as_ref(), &said).await? {
            return Ok(denied);
        }
        // Check first: a fork is opened only for a message that can be answered.
        self.handlers.require_agent()?;
        // A forwarded message has a quote and no text.
        if said.text.trim().is_empty() && said.files.is_empty() && said.quoted.is_none() {
            return Err(Refusal::user("the message is empty"));
        }
        let fork = self.handlers.forks.of_message(answered.as_ref(), channel).await?;
        let mut text = String::new();
        // The conversation of a job already contains the job's message.
        let in_context = fork.is_some() && answered.as_ref().is_some_and(|message| message.run.is_some());
        let pruned = said.reply_to.is_some().then(|| NOT_RECORDED.to_owned());
        let quoted = answered.map(|message| message.text).or(said.quoted).or(pruned);
        if let Some(quoted) = quoted.filter(|_| !in_context) {
            text = format!("{}\n\n", quote(&quoted));
        }
        text.push_str(said.text.trim());
        let work = self.handlers.forks.spawner.home.work();
        let files = said.files;
        text.push_str(&blocking(move || received::save(&work, &files)).await?);
        let turn = self.handlers.say_in(fork.as_ref(), text, Some(channel.to_owned()), said.id.clone()).await?;
        Ok(Response::Turn(turn))
    }

    /// Awaits the effect of input that is no turn, and records both. If an input with this id was recorded before, it has no effect.
    async fn once(
        &self,
        channel: &str,
        id: Option<&str>,
        what: String,
        effect: impl Future<Output = Result<Response, Refusal>> + Send,
    ) -> Result<Response, Refusal> {
        let handled = id.filter(|id| is_message_id(id)).map(str::to_owned);
        let token = || agent_sandbox::token::random().map_err(|error| Refusal::environment(error.to_string()));
        let id = handled.clone().map_or_else(token, Ok)?;
        let input = BegunInput { channel: channel.to_owned(), id, handled, what };
        let done = cut_off_input::recorded(&self.handlers.journal, input, effect).await?;
        Ok(done.unwrap_or(Response::Repeated))
    }

    /// Presses the button that a reply names by its number or label. Returns `None` for every other reply.
    async fn pressed_by_reply(
        &self,
        channel: &str,
        answered: Option<&Message>,
        said: &IncomingMessage,
    ) -> Result<Option<Response>, Refusal> {
        let Some(message) = answered.filter(|_| said.files.is_empty()) else { return Ok(None) };
        let place = message.rich.as_ref().and_then(|rich| rich.named_button(&said.text));
        let Some(place) = place else { return Ok(None) };
        let button = format!("{}:{place}", message.number);
        let response = self.pressed(channel, &button, None, said.id.as_deref()).await?;
        // The channel removes the buttons of a message only after a press.
        if let Response::Done(outcome) = &response {
            self.remove_buttons_where(|name| name == channel, message, outcome).await;
        }
        Ok(Some(response))
    }

    /// Treats a reply to an open question as a denial with a reason for the agent. Returns `None` for every other reply.
    async fn deny(
        &self,
        channel: &str,
        answered: Option<&Message>,
        said: &IncomingMessage,
    ) -> Result<Option<Response>, Refusal> {
        let asks = answered.and_then(|message| Some((message, message.question()?)));
        let (Some((message, number)), false) = (asks, said.text.trim().is_empty()) else { return Ok(None) };
        let question = self.handlers.journal.question(number).await?;
        if question.is_none_or(|question| question.answer.is_some()) {
            return Ok(None);
        }
        let (app, sentence, on) = (self.app(), Some(said.text.trim().to_owned()), channel.to_owned());
        let denied = async {
            let told = blocking(move || app.answer_question(number, Answer::Deny, sentence, &on)).await??;
            // `show_answers` updates the other channels. On this channel no button was pressed, so its buttons are removed here.
            self.remove_buttons_where(|name| name == channel, message, &told).await;
            Ok(Response::Text(told))
        };
        let what = format!("your reply to question {number}");
        self.once(channel, said.id.as_deref(), what, denied).await.map(Some)
    }

    /// Handles button `17:0`, the first button of message 17. `once` is the message's recorded time; such a button works only once.
    /// `reply` is the id of the message by which the person pressed it.
    async fn pressed(
        &self,
        channel: &str,
        button: &str,
        once: Option<DateTime<Utc>>,
        reply: Option<&str>,
    ) -> Result<Response, Refusal> {
        if button.starts_with(INTERRUPT) {
            return self.interrupt(Some(button)).await;
        }
        let journal = &self.handlers.journal;
        let gone = || Refusal::user("this button is of no use any more");
        let (number, place) = button.split_once(':').ok_or_else(gone)?;
        let number: i64 = number.parse().map_err(|_| gone())?;
        let place: usize = place.parse().map_err(|_| gone())?;
        let Some(message) = journal.sent_message(number).await? else { return Ok(Response::Gone(gone().to_string())) };
        let button = message.rich.as_ref().and_then(|rich| rich.buttons.get(place)).ok_or_else(gone)?;
        if once.is_some_and(|at| message.at != at) {
            return Err(gone());
        }
        if button.action.starts_with("agent:") && self.handlers.clock.now() - message.at > VALID {
            return Ok(Response::Done("This choice has expired. Ask again to come back to it.".into()));
        }
        let input = BegunInput {
            channel: channel.to_owned(),
            id: format!("{number}b{place}"),
            handled: reply.filter(|id| is_message_id(id)).map(str::to_owned),
            what: format!("the button `{}`", button.label),
        };
        let pressed = self.press(channel, &message, (button.clone(), place), once.is_some());
        Ok(cut_off_input::recorded(journal, input, pressed).await?.unwrap_or(Response::Repeated))
    }

    async fn press(
        &self,
        channel: &str,
        message: &Message,
        (Button { label, action }, place): (Button, usize),
        once: bool,
    ) -> Result<Response, Refusal> {
        let (journal, number) = (&self.handlers.journal, message.number);
        let is_agents = action.starts_with("agent:");
        let counts_once = once || is_agents;
        // All buttons of an agent's message are one choice.
        let place = if is_agents { 0 } else { place };
        if counts_once && !journal.press(number, place, channel).await? {
            return Err(Refusal::user("this was pressed already"));
        }
        let response = self.act(channel, message, &action, &label).await;
        if counts_once && response.is_err() {
            journal.unpress(number, place).await?;
        }
        response
    }

    /// Executes the action of a message's button.
    async fn act(&self, channel: &str, message: &Message, action: &str, label: &str) -> Result<Response, Refusal> {
        let gone = || Refusal::user("this button is of no use any more");
        let response = match action.split_once(':').unwrap_or((action, "")) {
            ("agent", prompt) => return self.chosen(channel, prompt, message, label).await,
            ("done", _) => Response::Done("Done.".into()),
            ("snooze", span) => {
                let id = message.id.as_ref().ok_or_else(gone)?.to_string();
                let span = humantime::parse_duration(span).map_err(|_| gone())?;
                Response::Done(format!("Comes again {}.", self.schedule_reminder(Command::Snooze { id, span }).await?))
            }
            ("retry", _) => {
                let id = message.id.as_ref().ok_or_else(gone)?.to_string();
                Response::Done(format!("Tried again {}.", self.schedule_reminder(Command::Retry { id }).await?))
            }
            ("why", at) => {
                let (at, job) = at.split_once(' ').map_or((at, None), |(at, job)| (at, Some(job)));
                let run = job.or(message.run.as_ref().map(RunId::as_str));
                let of = run.or(message.id.as_ref().map(DefinitionId::as_str)).ok_or_else(gone)?;
                let words: Vec<&str> = ["why", of, at].into_iter().filter(|word| !word.is_empty()).collect();
                return Ok(Response::Text(self.words(&words).await?));
            }
            ("answer", answer) => {
                let (question, answer) = answer.split_once(':').ok_or_else(gone)?;
                let question: i64 = question.parse().map_err(|_| gone())?;
                let answer: Answer = serde_json::from_value(answer.into()).map_err(|_| gone())?;
                let (app, on) = (self.app(), channel.to_owned());
                // `show_answers` updates the other channels.
                let answered = blocking(move || app.answer_question(question, answer, None, &on)).await?;
                if answered.is_err()
                    && let Some(end) = self.handlers.journal.question(question).await?.and_then(|asked| asked.end())
                {
                    self.remove_buttons_where(|name| name == channel, message, &end).await;
                }
                return answered.map(Response::Done);
            }
            ("raise", raise) => Response::Done(self.raise_cap(raise).await?),
            ("login", _) => return self.login(None).await.map(Response::Text),
            ("fork", _) => {
                let (action, fork) = fork_action(action).ok_or_else(gone)?;
                self.end_fork(Some(&fork), action.how, action.anyway, channel).await?
            }
            _ => return Err(gone()),
        };
        if let Response::Done(outcome) = &response {
            self.remove_buttons(channel, message, outcome).await;
        }
        Ok(response)
    }

    /// Raises a cap for the rest of its period (`day:2026-11-23:7.50`, `tokens_day:2026-11-23:3000000`), unless that is over.
    async fn raise_cap(&self, raise: &str) -> Result<String, Refusal> {
        let parts: Vec<&str> = raise.split(':').collect();
        let [name, label, amount] = parts[..] else { return Err(Refusal::user("this button is of no use any more")) };
        let (period, flag, unit) = match name {
            "tokens_day" => (Period::Day, "tokens", "N"),
            "day" => (Period::Day, "day", "USD"),
            _ => (Period::Month, "month", "USD"),
        };
        let span = period.name();
        let zone = self.app().config()?.timezone;
        if period.label(self.handlers.clock.now(), zone) != label {
            return Err(Refusal::user(format!("that {span} is over, so its budget is not raised")));
        }
        let Outcome::Budget(budgets) = self.execute(Command::Budget).await? else { return Err(unexpected_reply()) };
        let now = budgets.caps.iter().find(|cap| cap.name == name).map(|cap| cap.cap);
        if now.is_some_and(|now| amount.parse().is_ok_and(|amount: f64| now >= amount)) {
            return Ok(format!("It is raised already. `ollim-bot budget --{flag} {unit}` raises it further."));
        }
        self.words(&["budget", &format!("--{flag}"), amount]).await?;
        let shown = if flag == "tokens" { format!("{amount} tokens") } else { format!("${amount}") };
        Ok(format!("Raised to {shown} until the {span} ends."))
    }

    /// Handles an agent's button: its prompt starts a turn in the conversation of the message.
    async fn chosen(&self, channel: &str, prompt: &str, message: &Message, label: &str) -> Result<Response, Refusal> {
        let fork = self.handlers.forks.of_message(Some(message), channel).await?;
        if fork.is_none() && !self.handlers.forks.is_of_main_session(message).await? {
            return Err(Refusal::user(
                "this choice is of no use any more: the conversation that it comes from is over",
            ));
        }
        let said = match &fork {
            Some(_) => format!("[button] {prompt}"),
            None => format!("{}\n\n[button] {prompt}", quote(&message.text)),
        };
        let turn = self.handlers.say_in(fork.as_ref(), said, Some(channel.to_owned()), None).await?;
        self.remove_buttons_where(|_| true, message, &format!("You chose: {label}")).await;
        Ok(Response::Turn(turn))
    }

    async fn end_fork(
        &self,
        fork: Option<&DefinitionId>,
        how: ForkEnd,
        anyway: bool,
        channel: &str,
    ) -> Result<Response, Refusal> {
        let fork = self.handlers.forks.named(fork, channel).await?;
        self.handlers.spawner.mid_turn.stop_accepting();
        match self.handlers.forks.end(&fork, how, anyway).await? {
            EndForkResult::Reported(text) => Ok(Response::Done(text)),
            EndForkResult::Confirm(question) => {
                let asked = forks::confirmation(&fork.id, Some(channel.to_owned()), question);
                self.handlers.journal.message(asked).await?;
                Ok(Response::Text("The fork is not saved yet: there is a question about it.".into()))
            }
        }
    }

    async fn asked(&self, channel: &str, command: &str, argument: Option<&str>) -> Result<Response, Refusal> {
        let argument = argument.map(str::trim).filter(|argument| !argument.is_empty());
        let unknown = || Refusal::user(format!("there is no command `/{command}`")).hint("`/help` lists them");
        let known = COMMANDS.iter().find(|known| known.name == command).ok_or_else(unknown)?;
        if let Some(needed) = known.lacks(argument) {
            return Err(Refusal::user(format!("`/{command}` needs a {}", needed.name)).hint(needed.about));
        }
        match known.does {
            CommandEffect::Lines(lines) => {
                let mut texts = Vec::new();
                for line in lines {
                    let words: Vec<&str> =
                        line.iter().copied().chain(argument.into_iter().flat_map(str::split_whitespace)).collect();
                    texts.push(self.words_on(Some(channel), &words).await?);
                }
                Ok(Response::Text(texts.join("\n\n")))
            }
            CommandEffect::Why => self.why(argument).await.map(Response::Text),
            CommandEffect::Model => self.choose(argument, None).await,
            CommandEffect::Thinking => self.choose(None, argument).await,
            CommandEffect::Clear => {
                self.handlers.service(ServiceCommand::BeginAnew).await?;
                Ok(Response::Text("A new conversation begins. `ollim-bot chat --history 20` shows the old one.".into()))
            }
            CommandEffect::Compact => {
                let turn = self.handlers.say_in(None, MAKE_SHORTER.into(), Some(channel.to_owned()), None).await?;
                Ok(Response::Turn(turn))
            }
            CommandEffect::Interrupt => match self.interrupt(None).await? {
                Response::Done(text) => Ok(Response::Text(text)),
                other => Ok(other),
            },
            CommandEffect::Fork => {
                let (_, turn) = self.handlers.open_fork(argument.map(str::to_owned), channel).await?;
                let opened = || Response::Text("The fork is open. What you say next stays in it.".into());
                Ok(turn.map_or_else(opened, Response::Turn))
            }
            CommandEffect::EndFork(how) => {
                match self.end_fork(None, how, argument == Some(ANYWAY.name), channel).await? {
                    Response::Done(text) => Ok(Response::Text(text)),
                    other => Ok(other),
                }
            }
            CommandEffect::Help => {
                let line = |command: &ChatCommand| format!("{:<18} {}", command.usage(), command.about);
                Ok(Response::Text(COMMANDS.iter().map(line).collect::<Vec<_>>().join("\n")))
            }
        }
    }

    async fn choose(&self, model: Option<&str>, thinking: Option<&str>) -> Result<Response, Refusal> {
        let [model, thinking] = [model, thinking].map(|word| word.map(str::to_owned));
        match self.handlers.service(ServiceCommand::Choose { model, thinking }).await? {
            ServiceReply::Chosen(choice) => Ok(Response::Text(choice.words())),
            _ => Err(unexpected_reply()),
        }
    }

    /// Explains the last run of a job, or the last failed run of all jobs.
    async fn why(&self, job: Option<&str>) -> Result<String, Refusal> {
        if let Some(job) = job {
            let words: Vec<&str> = std::iter::once("why").chain(job.split_whitespace()).collect();
            return self.words(&words).await;
        }
        let filter = RunFilter { failed: true, limit: Some(1), ..RunFilter::default() };
        let Outcome::Runs { runs, .. } = self.execute(Command::Runs(filter)).await? else { return Ok(String::new()) };
        match runs.first() {
            Some(run) => self.words(&["why", run.run.as_str()]).await,
            None => Ok("No run has failed.".into()),
        }
    }

    /// Interrupts all answers that are running, or only the turn of the button `only`. If none is, the reply says so.
    async fn interrupt(&self, only: Option<&str>) -> Result<Response, Refusal> {
        let going = self.handlers.schedule.snapshot(0).await.active;
        let is_meant = |id: &DefinitionId| id.is_turn() && only.is_none_or(|button| interrupts(button, id));
        let is_going = |active: &ActiveView| is_meant(&active.id) && matches!(active.stage, StageView::Running(_));
        let turns: Vec<_> = going.into_iter().filter(is_going).collect();
        if turns.is_empty() {
            return Ok(Response::Done("No answer is going.".into()));
        }
        let (mut is_interrupted, mut refused) = (false, None);
        for turn in turns {
            match self.handlers.service(ServiceCommand::CancelRun { run: turn.run }).await {
                Ok(ServiceReply::RunEnded { state, .. }) => is_interrupted |= state == RunState::Cancelled,
                Ok(_) => return Err(unexpected_reply()),
                // One message may be answered together with another, which is interrupted.
                Err(refusal) => refused = Some(refusal),
            }
        }
        match refused.filter(|_| !is_interrupted) {
            Some(refusal) => Err(refusal),
            None if is_interrupted => Ok(Response::Text("The answer was interrupted.".into())),
            None => Ok(Response::Done("The answer had ended already.".into())),
        }
    }

    /// Removes the buttons of answered questions on all channels. Never returns.
    pub(super) async fn show_answers(&self, mut ended: broadcast::Receiver<Question>) {
        for question in self.ended_by_start().await.unwrap_or_default() {
            self.show_answer(&question).await;
        }
        loop {
            match ended.recv().await {
                Ok(question) => self.show_answer(&question).await,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
            }
        }
    }

    async fn show_answer(&self, question: &Question) {
        let (Some(number), Some(end)) = (question.message, question.end()) else { return };
        if let Ok(Some(message)) = self.handlers.journal.sent_message(number).await {
            self.remove_buttons(question.channel.as_deref().unwrap_or_default(), &message, &end).await;
        }
    }

    /// Returns the questions that this start of the service has ended.
    async fn ended_by_start(&self) -> Result<Vec<Question>, JournalError> {
        let (journal, now) = (&self.handlers.journal, self.handlers.clock.now());
        let mut questions = journal.questions_after(journal.ended_up_to().await? - MAX_LEFT).await?;
        questions.retain(|question| {
            let is_recent = question.answered.is_some_and(|at| now - at < RECENTLY_ENDED);
            question.answer == Some(QuestionEnd::Restarted) && is_recent
        });
        Ok(questions)
    }

    /// Removes the buttons from messages of ended forks. Never returns.
    pub(super) async fn show_ended_forks(&self, mut ended: broadcast::Receiver<(DefinitionId, ForkEnd)>) {
        loop {
            let (fork, how) = match ended.recv().await {
                Ok(ended) => ended,
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
            };
            for message in self.handlers.journal.messages_of_fork(&fork).await.unwrap_or_default() {
                self.remove_buttons("", &message, forks::end_message(how)).await;
            }
        }
    }

    /// Removes the buttons from a message on all channels except `but`, which does it by itself.
    async fn remove_buttons(&self, but: &str, message: &Message, outcome: &str) {
        self.remove_buttons_where(|name| name != but, message, outcome).await;
    }

    async fn remove_buttons_where(&self, is_there: impl Fn(&str) -> bool, message: &Message, outcome: &str) {
        let delivered = self.handlers.journal.delivered_by(message.number).await.unwrap_or_default();
        for (name, external) in delivered.iter().filter(|(name, _)| is_there(name)) {
            let Some(channel) = self.channels.get(name) else { continue };
            let removal = ButtonRemoval {
                name: name.clone(),
                channel: Arc::clone(channel),
                external: external.clone(),
                message: Outgoing::on(&**channel, message),
                outcome: outcome.to_owned(),
            };
            self.removals.remove(removal).await;
        }
    }

    /// Returns a login link, or the result of entering a code.
    async fn login(&self, code: Option<&str>) -> Result<String, Refusal> {
        let words: Vec<&str> = std::iter::once("login").chain(code.map(str::trim)).collect();
        self.words(&words).await
    }

    /// Schedules a reminder and returns its time: `at 16:23 (in 10m)`.
    async fn schedule_reminder(&self, command: Command) -> Result<String, Refusal> {
        let app = self.app();
        let (now, zone) = (app.now(), app.zone()?);
        let Outcome::Scheduled(recorded) = self.execute(command).await? else { return Err(unexpected_reply()) };
        let at = recorded.job.next.unwrap_or(now).max(now);
        Ok(match at > now {
            true => format!("at {}", times::local_and_relative(at, now, zone)),
            false => "now".to_owned(),
        })
    }

    /// Executes a command line and returns its output.
    async fn words(&self, words: &[&str]) -> Result<String, Refusal> {
        self.words_on(None, words).await
    }

    /// Executes a command line that the person typed on a channel, if one is given.
    async fn words_on(&self, channel: Option<&str>, words: &[&str]) -> Result<String, Refusal> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let handlers = Handlers { asked_on: channel.map(str::to_owned), ..self.handlers.clone() };
        let (app, execute) = (self.handlers.app.get().with_service(Arc::new(handlers)), self.execute);
        blocking(move || execute(&app, &words)).await?.map_err(Refusal::user)
    }

    async fn execute(&self, command: Command) -> Result<Outcome, Refusal> {
        let app = self.app();
        blocking(move || app.execute(command)).await?
    }

    fn app(&self) -> App {
        self.handlers.app.get().with_service(Arc::new(self.handlers.clone()))
    }
}

/// Runs work that may block on a blocking thread.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Refusal::environment(error.to_string()))
}

/// Forwards the progress of a turn until its end.
async fn follow(
    turn: DefinitionId,
    journal: Journal,
    mut live: broadcast::Receiver<TurnUpdate>,
    send: mpsc::UnboundedSender<Progress>,
) {
    let mut shown = ShownTurn::default();
    // Only the record shows the end, and a turn that was over before this subscription. It is read after an event, so that a turn that
    // waits for the person costs nothing.
    let mut events = journal.newest_event();
    let (mut is_due, mut next, mut pause) = (true, Instant::now(), MAX_PAUSE);
    loop {
        let seen = tokio::select! {
            seen = live.recv() => match seen {
                Ok(seen) if seen.turn == turn => seen.what,
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return,
            },
            changed = events.changed(), if !is_due => match changed {
                Ok(()) => {
                    is_due = true;
                    continue;
                }
                Err(_) => return,
            },
            () = sleep_until(next), if is_due => {
                match journal.session(&turn).await {
                    Ok(Some(session)) if session.ended => {
                        let completed = session.state == Some(RunState::Completed);
                        let _left = send.send(Progress::Ended { completed });
                        return;
                    }
                    Ok(None) => return,
                    Ok(Some(_)) => is_due = false,
                    Err(_) => {}
                }
                next = Instant::now() + pause;
                pause = MAX_PAUSE.min(pause * 2);
                continue;
            }
        };
        if matches!(seen, UpdateKind::Ended { .. }) {
            // The end is recorded in a moment, unless the service ends.
            (next, pause) = (Instant::now() + MIN_PAUSE, MIN_PAUSE);
        }
        let Some(progress) = shown.progress(seen) else { continue };
        if send.send(progress).is_err() {
            return;
        }
    }
}

/// What was seen of a turn so far.
#[derive(Default)]
struct ShownTurn {
    /// The labels of calls, by their ids.
    calls: BTreeMap<String, String>,
    last_call: String,
    /// Whether the current text was streamed in pieces.
    letters: bool,
}

impl ShownTurn {
    /// Returns the progress that an update makes. `None` if it makes none.
    fn progress(&mut self, seen: UpdateKind) -> Option<Progress> {
        Some(match seen {
            UpdateKind::Letters(text) => {
                self.letters = true;
                Progress::Text(text)
            }
            UpdateKind::Did(Observation::Said { .. }) if std::mem::take(&mut self.letters) => return None,
            UpdateKind::Did(Observation::Said { text }) => Progress::Text(text),
            UpdateKind::Did(Observation::ToolCall { call, tool, input }) => {
                let label = label(&tool, &input);
                self.calls.insert(call, label.clone());
                self.last_call.clone_from(&label);
                Progress::Call { label }
            }
            UpdateKind::Did(Observation::ToolDecided { call, allowed: false, reason, .. }) => {
                Progress::Refused { label: self.calls.remove(&call).unwrap_or_default(), reason }
            }
            UpdateKind::ProgramRefused(reason) => Progress::Refused { label: self.last_call.clone(), reason },
            UpdateKind::WaitsForPerson(waits) => Progress::WaitsForPerson(waits),
            UpdateKind::Did(_) => return None,
            UpdateKind::Ended { completed } => Progress::AttemptEnded { completed },
        })
    }
}

/// Returns a tool and its main argument: `Read notes/a.md`.
fn label(tool: &str, input: &serde_json::Value) -> String {
    const LONGEST: usize = 60;
    const MAIN: &[&str] = &["file_path", "path", "command", "pattern", "url", "query", "description", "prompt", "text"];
    let tool = tool.rsplit("__").next().unwrap_or(tool);
    let argument = MAIN.iter().find_map(|name| input.get(name)?.as_str()).unwrap_or_default();
    let argument = argument.lines().next().unwrap_or_default();
    let argument = match argument.starts_with('/') {
        true => {
            let path = Path::new(argument).components().rev().take(2).collect::<Vec<_>>();
            path.into_iter().rev().collect::<std::path::PathBuf>().to_string_lossy().into_owned()
        }
        false => argument.to_owned(),
    };
    let label = format!("{tool} {argument}");
    match label.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &label[..end]),
        None => label.trim_end().to_owned(),
    }
}

/// Formats a message's text as a quote above the answer. A job may have written it, so no character ends a line but our own.
fn quote(text: &str) -> String {
    let text = text.trim().replace("\r\n", "\n");
    let cut = text.char_indices().nth(QUOTED).map_or(text.clone(), |(end, _)| format!("{}…", &text[..end]));
    let quoted = |line: &str| format!("> {}", visible(line)).trim_end().to_owned();
    cut.split(is_line_end).map(quoted).collect::<Vec<_>>().join("\n")
}

fn with_hints(refusal: &Refusal) -> String {
    std::iter::once(refusal.to_string()).chain(refusal.hints.iter().cloned()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bot::live::LiveTurns;
    use crate::clock::Clock;
    use crate::journal::{Finish, testing};

    #[test]
    fn a_call_is_named_in_a_few_words() {
        for (tool, input, expect) in [
            ("Read", json!({ "file_path": "/home/me/notes/a.md" }), "Read notes/a.md"),
            ("Read", json!({ "file_path": "/a.md" }), "Read /a.md"),
            ("Bash", json!({ "command": "git log\nrm -r x" }), "Bash git log"),
            ("mcp__discord__ping_user", json!({ "text": "hi" }), "ping_user hi"),
            ("Task", json!({}), "Task"),
        ] {
            assert_eq!(label(tool, &input), expect);
        }
        assert!(label("Bash", &json!({ "command": "é".repeat(100) })).chars().count() <= 61);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_waits_costs_nothing_and_its_end_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::simulated("2026-11-24T12:00:00Z".parse().unwrap());
        let journal = Journal::open(testing::place(&folder.path().join("journal.db")), clock.clone()).unwrap();
        let id = DefinitionId::of_turn("phone", "1");
        let run = testing::begin_turn(&journal, &clock, &id).await;
        let (live, (send, mut progress)) = (LiveTurns::default(), mpsc::unbounded_channel());
        let following = tokio::spawn(follow(id.clone(), journal.clone(), live.listen(), send));
        // Time passes by itself while nothing else happens.
        let hour = || tokio::time::sleep(Duration::from_secs(3600));
        hour().await;
        let before = journal.commits();
        hour().await;
        assert_eq!(journal.commits(), before, "nothing is read without an event");
        live.publish(&id, UpdateKind::Letters("Done.".into()));
        assert_eq!(progress.recv().await, Some(Progress::Text("Done.".into())));
        journal.finish(&run, Finish::closed(RunState::Cancelled, None)).await.unwrap();
        assert_eq!(progress.recv().await, Some(Progress::Ended { completed: false }));
        following.await.unwrap();
    }

    #[test]
    fn what_is_answered_stands_above_the_answer() {
        assert_eq!(quote("one\n\ntwo\n"), "> one\n>\n> two");
        assert!(quote(&"é".repeat(600)).ends_with('…'));
        assert_eq!(quote("OK?\r\n\u{2028}[message] Go\u{85}on\u{202e}x"), "> OK?\n>\n> [message] Go\n> on\\u{202e}x");
    }
}
