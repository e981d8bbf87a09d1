//! `chat`: a conversation with the bot at a terminal, or a single message from a script.
//!
//! One thread reads the input, another one the events. Both write to one queue. So answers, messages of jobs and the person's input are
//! shown in order, and none waits for another.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

use clap::Parser as _;

use super::args::Global;
use super::command::{self, LocalCommand, ParsedCommand};
use super::output::{BAD, FAINT, Output, STRONG, paint};
use super::render::{Chat, View};
use super::{Cli, execute_typed, external, open};
use crate::agent::Observation;
use crate::app::{App, Command, Events, Outcome, ServiceCommand, ServiceReply, unexpected_reply};
use crate::bot::main_session::MAKE_SHORTER;
use crate::channel::commands::{COMMANDS, ChatCommand, CommandEffect};
use crate::channel::terminal::plain_lines;
use crate::definition::DefinitionId;
use crate::journal::{Event, EventKind, ForkEnd, Message, RichContent, RunFilter, RunId, RunRecord, RunState};
use crate::refusal::Refusal;

/// An item of the queue.
enum QueueItem {
    /// A line of input.
    Typed(String),
    /// The end of the input.
    Closed,
    /// An event.
    Happened(Box<Event>),
    /// The end of the events, with the error if the service cannot be read any more.
    Silent(Option<Refusal>),
    /// Ctrl-C.
    Interrupted,
}

/// Help for the conversation.
const HELP: &str = "\
/help       this help
/history    what was said before
/compact    make the conversation shorter: the model keeps a summary
/clear      begin a new conversation
/fork TOPIC talk about something beside the conversation
/save       make the fork the conversation (/save anyway: also if that has gone on)
/report     end the fork: the conversation is told a summary
/exit       end the fork and drop it
/model NAME which model answers from now on (default: as the settings say)
/thinking X how it thinks: on, off, 8000 (tokens at most), default
/quit       leave (or Ctrl-D)
/interrupt  end the answer that is going
/COMMAND    any command of ollim-bot: /next, /status, /runs show RUN, /fire ID; and /jobs, /why, /snooze ID 20m, /retry ID
Ctrl-C ends the answer that is going; a second one leaves.";

/// Sends `text` and shows the answer. Without a text, talks until the person leaves.
///
/// # Errors
/// Fails if the service is not running, or if there is no agent to talk with.
pub(super) fn chat(
    text: Option<&str>,
    history: usize,
    app: &App,
    view: &View,
    global: &Global,
    output: &mut Output,
) -> Result<(), Refusal> {
    let said = match text {
        Some("-") => Some(read_all()?),
        None if !io::stdin().is_terminal() => Some(read_all()?),
        text => text.map(str::to_owned),
    };
    match said {
        Some(text) => match command_in(&text) {
            Some("/quit") => Ok(()),
            Some("/compact") => say_once(MAKE_SHORTER, app, view, global, output),
            Some(command) => match topic_in(&command[1..]) {
                Some(topic) => fork_once(topic, app, view, global, output),
                None => {
                    // No thread fills this queue.
                    Conversation::new(channel().1, app, view, global, output).typed(command);
                    Ok(())
                }
            },
            None => say_once(&text, app, view, global, output),
        },
        None => Conversation::begin(app.open_chat()?, history, app, view, global, output)?.talk(),
    }
}

/// Returns the line of a text that is a command, known or not: `/` alone, or `/` and a word. Any other text, such as a path, is for the
/// model.
fn command_in(text: &str) -> Option<&str> {
    let line = text.trim();
    let words = line.strip_prefix('/').filter(|words| !words.contains('\n'))?;
    let name = words.split(char::is_whitespace).next().unwrap_or_default();
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) || name == "?";
    (words.is_empty() || !name.is_empty() && is_word).then_some(line)
}

/// Returns the topic of the command `fork`, which may be empty.
fn topic_in(words: &str) -> Option<&str> {
    words.strip_prefix("fork").filter(|topic| topic.is_empty() || topic.starts_with(' '))
}

fn read_all() -> Result<String, Refusal> {
    io::read_to_string(io::stdin())
        .map_err(|error| Refusal::environment(format!("standard input cannot be read: {error}")))
}

/// Returns the run of the turn that is running.
fn running_turn(app: &App) -> Option<RunId> {
    let Ok(Outcome::Status(status)) = app.execute(Command::Status) else { return None };
    let running = |run: &RunRecord| run.id.is_turn() && run.outcome == RunState::Running;
    status.running.into_iter().find(running).map(|run| run.run)
}

/// Returns the message that a turn sent besides its answer, if the event is one.
fn aside_of(event: &Event, app: &App) -> Result<Option<Message>, Refusal> {
    match (&event.kind, &event.run) {
        (EventKind::Message { message, .. }, Some(run)) => app.side_message(run, *message),
        _ => Ok(None),
    }
}

/// Shows that message. A question goes to stderr, since scripts must not read it.
fn show_aside(aside: &Message, event: &Event, view: &View, output: &mut Output) {
    let mut shown = Output { width: output.width, plain_tables: output.plain_tables, ..Output::default() };
    shown.line("");
    super::render::inbox_message(event, view, &mut shown);
    let place = if aside.question().is_some() { &mut output.stderr } else { &mut output.stdout };
    place.push_str(&shown.stdout);
}

/// Sends one message and shows the answer.
fn say_once(text: &str, app: &App, view: &View, global: &Global, output: &mut Output) -> Result<(), Refusal> {
    let events = app.open_chat()?;
    show_answer(&app.say(text)?, events, app, view, global, output)
}

/// Opens a fork, and shows the answer to its topic.
fn fork_once(topic: &str, app: &App, view: &View, global: &Global, output: &mut Output) -> Result<(), Refusal> {
    let events = app.open_chat()?;
    let turn = app.open_fork(topic)?;
    output.note(paint(FAINT, "a fork is open; what you say next belongs to it, until /save, /report or /exit"));
    turn.map_or(Ok(()), |turn| show_answer(&turn, events, app, view, global, output))
}

/// Shows the answer of a turn. The exit code is 1 if the turn failed or gave no answer.
fn show_answer(
    turn: &DefinitionId,
    events: Events,
    app: &App,
    view: &View,
    global: &Global,
    output: &mut Output,
) -> Result<(), Refusal> {
    let (mut answer, mut is_answered) = (None, false);
    let mut shown = Chat::new(view, io::stdout().is_terminal());
    for event in events {
        let event = event?;
        if event.id.as_ref() != Some(turn) {
            continue;
        }
        if let EventKind::Message { message, .. } = &event.kind {
            answer = Some(*message);
        }
        let aside = aside_of(&event, app)?;
        is_answered |= aside.as_ref().is_some_and(|aside| aside.question().is_none());
        if let EventKind::Observed(Observation::Said { text }) = &event.kind {
            is_answered |= !text.trim().is_empty();
        }
        match aside.filter(|_| !view.json) {
            Some(aside) => show_aside(&aside, &event, view, output),
            None => shown.write(&event, output),
        }
        if !output.print_now(global.color)? {
            return Ok(());
        }
        if let EventKind::RunEnded { outcome, retry_at: None, .. } = &event.kind {
            output.exit = u8::from(*outcome != RunState::Completed || !is_answered);
            // Wait, since an answer that the service does not know as read is also sent by another channel.
            return answer.map_or(Ok(()), |answer| app.wait_until_delivered(answer));
        }
    }
    Err(ended(app))
}

fn ended(app: &App) -> Refusal {
    Refusal::environment("the service has ended")
        .hint(app.starter().hint("start it"))
        .hint("what you said last is answered then, and `ollim-bot inbox` shows the answer")
}

/// A conversation at a terminal.
struct Conversation<'a> {
    next: Receiver<QueueItem>,
    app: &'a App,
    view: &'a View,
    shown: Chat<'a>,
    global: &'a Global,
    output: &'a mut Output,
    /// Turns that have not ended.
    open: BTreeSet<DefinitionId>,
    /// Runs of turns. The first one is answering; the others follow.
    answering: Vec<RunId>,
    /// The open question of the conversation: its turn, its number and its buttons.
    asked: Option<(DefinitionId, i64, RichContent)>,
    /// Whether the person was told that there is no answer to interrupt yet.
    warned: bool,
    /// Whether the last line of the terminal is the sign of the input.
    has_sign: bool,
}

impl<'a> Conversation<'a> {
    fn begin(
        events: Events,
        history: usize,
        app: &'a App,
        view: &'a View,
        global: &'a Global,
        output: &'a mut Output,
    ) -> Result<Self, Refusal> {
        let (send, next) = channel();
        let (typed, happened) = (send.clone(), send.clone());
        std::thread::spawn(move || type_lines(&typed));
        std::thread::spawn(move || forward_events(events, &happened));
        on_interrupt(send)?;
        let mut conversation = Self::new(next, app, view, global, output);
        conversation.history(history)?;
        conversation.output.line(paint(FAINT, "/help lists what can be typed, Ctrl-D leaves."));
        Ok(conversation)
    }

    fn new(
        next: Receiver<QueueItem>,
        app: &'a App,
        view: &'a View,
        global: &'a Global,
        output: &'a mut Output,
    ) -> Self {
        let shown = Chat::new(view, true);
        let (open, answering) = (BTreeSet::new(), Vec::new());
        Self { next, app, view, shown, global, output, open, answering, asked: None, warned: false, has_sign: false }
    }

    fn talk(mut self) -> Result<(), Refusal> {
        self.prompt()?;
        while let Ok(next) = self.next.recv() {
            match next {
                QueueItem::Closed => break,
                QueueItem::Interrupted => match self.answering.first() {
                    Some(_) => self.interrupt_first()?,
                    None if !self.open.is_empty() && !std::mem::replace(&mut self.warned, true) => {
                        self.output.line(paint(FAINT, "the answer has not begun; a second Ctrl-C leaves"));
                    }
                    None => break,
                },
                QueueItem::Silent(why) => return Err(why.unwrap_or_else(|| ended(self.app))),
                QueueItem::Happened(event) => {
                    self.happened(&event);
                    self.leave_sign();
                }
                QueueItem::Typed(line) => {
                    self.has_sign = false;
                    match line.trim() {
                        "" => {}
                        "/quit" => break,
                        line => self.typed(line),
                    }
                }
            }
            self.prompt()?;
        }
        self.output.line("");
        self.output.print_now(self.global.color).map(drop)
    }

    /// Begins a new line for what is shown behind the sign of the input.
    fn leave_sign(&mut self) {
        let Output { stdout, stderr, .. } = &mut *self.output;
        if self.has_sign && !(stdout.is_empty() && stderr.is_empty()) {
            self.has_sign = false;
            if !stdout.starts_with('\n') {
                stdout.insert(0, '\n');
            }
        }
    }

    /// Interrupts the running answer, which may be one to a message of another channel. If cancelling fails, the run stays and can be
    /// interrupted again.
    fn interrupt_first(&mut self) -> Result<(), Refusal> {
        let none = || Refusal::user("no answer is going");
        let run = self.answering.first().cloned().or_else(|| running_turn(self.app)).ok_or_else(none)?;
        match self.app.execute(Command::Service(ServiceCommand::CancelRun { run: run.clone() })) {
            Ok(_) => {
                self.answering.retain(|answering| *answering != run);
                self.output.line(paint(FAINT, "interrupted"));
            }
            Err(refusal) => self.output.fail(&refusal),
        }
        Ok(())
    }

    /// Writes the output and, unless an answer is pending, the prompt sign.
    fn prompt(&mut self) -> Result<(), Refusal> {
        self.output.exit = 0;
        self.output.print_now(self.global.color)?;
        if self.open.is_empty() && self.answering.is_empty() && !self.has_sign {
            print_sign().map_err(|error| Refusal::environment(format!("cannot write: {error}")))?;
            self.has_sign = true;
        }
        Ok(())
    }

    fn typed(&mut self, line: &str) {
        let done = match command_in(line).and_then(|line| line.strip_prefix('/')) {
            None => self.answer(line).unwrap_or_else(|| self.say(line)),
            Some("compact") => self.say(MAKE_SHORTER),
            Some("" | "help" | "?") => {
                self.output.line(HELP);
                Ok(())
            }
            Some("history") => self.history(20),
            Some("interrupt") => self.interrupt_first(),
            Some("save") => self.end_fork(ForkEnd::Save, false),
            Some("save anyway") => self.end_fork(ForkEnd::Save, true),
            Some("report") => self.end_fork(ForkEnd::Report, false),
            Some("exit") => self.end_fork(ForkEnd::Exit, false),
            Some(words) if words == "model" || words.starts_with("model ") => self.choose(Some(&words[5..]), None),
            Some(words) if words == "thinking" || words.starts_with("thinking ") => {
                self.choose(None, Some(&words[8..]))
            }
            Some("clear") => self
                .app
                .execute(Command::Service(ServiceCommand::BeginAnew))
                .map(|_| self.output.line(paint(FAINT, "a new conversation"))),
            Some(words) => match topic_in(words) {
                Some(topic) => self.app.open_fork(topic).map(|turn| self.open.extend(turn)),
                None => self.command(words),
            },
        };
        if let Err(refusal) = done {
            self.output.fail(&refusal);
        }
    }

    /// Answers the open question of the conversation, if the text is one of its answers.
    fn answer(&mut self, text: &str) -> Option<Result<(), Refusal>> {
        let (_, question, rich) = self.asked.as_ref()?;
        let action = &rich.buttons[rich.named_button(text)?].action;
        let answer = match action.rsplit(':').next()? {
            "once" => "allow",
            answer => answer,
        };
        let words = ["questions", "answer", &question.to_string(), answer].map(str::to_owned);
        self.asked = None;
        Some(self.line(&words.each_ref().map(String::as_str)))
    }

    fn say(&mut self, text: &str) -> Result<(), Refusal> {
        let turn = self.app.say(text)?;
        if !self.open.is_empty() {
            self.output.line(paint(FAINT, "(it is answered next)"));
        }
        self.open.insert(turn);
        Ok(())
    }

    fn choose(&mut self, model: Option<&str>, thinking: Option<&str>) -> Result<(), Refusal> {
        let word = |word: Option<&str>| word.map(|word| word.trim().to_owned()).filter(|word| !word.is_empty());
        let command = ServiceCommand::Choose { model: word(model), thinking: word(thinking) };
        match self.app.execute(Command::Service(command))? {
            Outcome::Service(ServiceReply::Chosen(choice)) => self.output.line(choice.words()),
            _ => return Err(unexpected_reply()),
        }
        Ok(())
    }

    fn end_fork(&mut self, how: ForkEnd, anyway: bool) -> Result<(), Refusal> {
        match self.app.execute(Command::Service(ServiceCommand::EndFork { fork: None, how, anyway }))? {
            Outcome::Service(ServiceReply::ForkEnded(text)) => self.output.line(paint(FAINT, &text)),
            Outcome::Service(ServiceReply::ForkKept(question)) => {
                self.output.line(question);
                self.output.line(paint(FAINT, "`/save anyway` saves it all the same, `/report` hands over a summary"));
            }
            _ => return Err(unexpected_reply()),
        }
        Ok(())
    }

    /// Executes a channel command or a command line.
    fn command(&mut self, words: &str) -> Result<(), Refusal> {
        let mut words = words.split_whitespace();
        let name = words.next().unwrap_or_default();
        let arguments: Vec<&str> = words.collect();
        match COMMANDS.iter().find(|known| known.name == name) {
            Some(known @ ChatCommand { does: CommandEffect::Lines(lines), .. }) => {
                if let Some(needed) = known.lacks(arguments.first().copied()) {
                    return Err(Refusal::user(format!("`/{name}` needs a {}", needed.name)).hint(needed.about));
                }
                lines.iter().try_for_each(|line| self.line(&[*line, &arguments].concat()))
            }
            Some(ChatCommand { does: CommandEffect::Why, .. }) if arguments.is_empty() => {
                let filter = RunFilter { failed: true, limit: Some(1), ..RunFilter::default() };
                match self.app.execute(Command::Runs(filter))? {
                    Outcome::Runs { runs, .. } if !runs.is_empty() => self.line(&["why", runs[0].run.as_str()]),
                    _ => {
                        self.output.line("No run has failed.");
                        Ok(())
                    }
                }
            }
            _ => self.line(&[&[name][..], &arguments].concat()),
        }
    }

    /// Executes a command line.
    fn line(&mut self, words: &[&str]) -> Result<(), Refusal> {
        let elsewhere = || Refusal::user("this cannot be done here").hint("leave with /quit, and type it there");
        // The conversation reads standard input.
        if words.contains(&"-") {
            return Err(elsewhere());
        }
        let Cli { global, command } = match Cli::try_parse_from(std::iter::once(&"ollim-bot").chain(words)) {
            Ok(cli) => cli,
            Err(error) => {
                self.output.line(error.render().to_string().trim_end());
                return Ok(());
            }
        };
        let view = View::of(self.app, global.json || self.view.json);
        let opens = open::is_wanted(command.as_ref(), view.json, &self.app.env);
        let typed = command::typed(command, Some(Path::new(".")))?;
        if let ParsedCommand::Own(own) = &typed {
            if let LocalCommand::External(words) = own {
                let unknown = |refusal: Refusal| refusal.hint("`/help` lists the commands");
                external::find(external::split(words)?.0, self.app).map_err(unknown)?;
            }
            if own.takes_terminal() {
                return Err(elsewhere());
            }
        }
        execute_typed(typed, opens, &global, self.app, &view, self.output)
    }

    fn history(&mut self, count: usize) -> Result<(), Refusal> {
        for exchange in self.app.exchanges(count)? {
            let place = if exchange.in_fork { paint(FAINT, "(in a fork) ") } else { String::new() };
            self.output.line(format!("{} {place}{}", paint(STRONG, "›"), plain_lines(&exchange.said)));
            match (&exchange.answer, &exchange.error) {
                (Some(answer), _) => self.output.line(plain_lines(answer.trim())),
                (None, Some(error)) => self.output.line(paint(BAD, &plain_lines(error))),
                (None, None) => self.output.line(paint(FAINT, "(no answer yet)")),
            }
            self.output.line("");
        }
        Ok(())
    }

    fn happened(&mut self, event: &Event) {
        let ours = event.id.as_ref().filter(|id| id.is_turn());
        let Some(turn) = ours else {
            // Messages of jobs and of the service.
            if matches!(event.kind, EventKind::Message { .. }) {
                self.output.line("");
                super::render::inbox_message(event, self.view, self.output);
            }
            return;
        };
        match &event.kind {
            EventKind::RunStarted { .. } => {
                self.answering.extend(event.run.clone());
                self.warned = false;
            }
            EventKind::RunEnded { retry_at: None, .. } => {
                self.answering.retain(|answering| event.run.as_ref() != Some(answering));
                self.open.remove(turn);
                self.asked.take_if(|(asked, ..)| asked == turn);
            }
            _ => {}
        }
        match aside_of(event, self.app) {
            Ok(Some(aside)) if !self.view.json => {
                show_aside(&aside, event, self.view, self.output);
                if let (Some(question), Some(rich)) = (aside.question(), aside.rich) {
                    let answers = (1..).zip(&rich.buttons).map(|(place, button)| format!("{place} {}", button.label));
                    let answers = answers.collect::<Vec<_>>().join(", ");
                    self.output
                        .note(paint(FAINT, &format!("  here: {answers}; or /questions answer {question} allow")));
                    self.asked = Some((turn.clone(), question, rich));
                }
            }
            Ok(_) => self.shown.write(event, self.output),
            Err(refusal) => self.output.fail(&refusal),
        }
    }
}

fn print_sign() -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    write!(out, "{} ", paint(STRONG, "›"))?;
    out.flush()
}

fn type_lines(next: &Sender<QueueItem>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if next.send(QueueItem::Typed(line)).is_err() {
            return;
        }
    }
    // The conversation may be over.
    let _over = next.send(QueueItem::Closed);
}

fn forward_events(events: Events, next: &Sender<QueueItem>) {
    for event in events {
        let heard = match event {
            Ok(event) => next.send(QueueItem::Happened(Box::new(event))),
            Err(refusal) => {
                let _over = next.send(QueueItem::Silent(Some(refusal)));
                return;
            }
        };
        if heard.is_err() {
            return;
        }
    }
    let _over = next.send(QueueItem::Silent(None));
}

/// Sends Ctrl-C to the queue, so that it does not end the process.
fn on_interrupt(next: Sender<QueueItem>) -> Result<(), Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Refusal::environment(format!("signals cannot be read: {error}")))?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() && next.send(QueueItem::Interrupted).is_ok() {}
        });
    });
    Ok(())
}
