//! Commands that a person can give by a channel, such as `/status` or `/fire morning-mail`. One table serves all channels.

use crate::journal::ForkEnd;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatCommand {
    /// Name, in lower case letters.
    pub name: &'static str,
    /// Description, in at most 100 characters.
    pub about: &'static str,
    /// Argument that the command accepts.
    pub argument: Option<Argument>,
    /// Effect of the command.
    pub does: CommandEffect,
}

impl ChatCommand {
    /// Returns the required argument if it is missing.
    #[must_use]
    pub fn lacks(&self, argument: Option<&str>) -> Option<Argument> {
        self.argument.filter(|needed| needed.required && argument.is_none())
    }

    /// Returns the usage line, such as `/why [JOB]`.
    #[must_use]
    pub fn usage(&self) -> String {
        match self.argument {
            Some(Argument { name, required: true, .. }) => format!("/{} {}", self.name, name.to_uppercase()),
            Some(Argument { name, .. }) => format!("/{} [{}]", self.name, name.to_uppercase()),
            None => format!("/{}", self.name),
        }
    }
}

/// An argument of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Name, in lower case letters.
    pub name: &'static str,
    /// Description, in at most 100 characters.
    pub about: &'static str,
    /// Whether the command needs it.
    pub required: bool,
}

/// The effect of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEffect {
    /// Executes these command lines of `ollim-bot` in order, each with the words of the argument appended.
    Lines(&'static [&'static [&'static str]]),
    /// Shows the last run of a job or, without an argument, the last failed run.
    Why,
    /// Sets or shows the model of the conversation.
    Model,
    /// Sets or shows the thinking mode of the model.
    Thinking,
    /// Begins a new conversation.
    Clear,
    /// Compacts the conversation.
    Compact,
    /// Interrupts the running answer.
    Interrupt,
    /// Opens a fork of the conversation, optionally with a topic.
    Fork,
    /// Ends the fork that the person last wrote in.
    EndFork(ForkEnd),
    /// Lists the commands.
    Help,
}

impl CommandEffect {
    /// Returns the words behind `ollim-bot` that do the same; `None` if no single command line does.
    fn words(self, name: &str) -> Option<String> {
        match self {
            Self::Lines([line]) => Some(line.join(" ")),
            Self::Why => Some(name.to_owned()),
            _ => None,
        }
    }
}

const JOB: Argument = Argument { name: "job", about: "The id of a routine or reminder", required: true };
const ANY_JOB: Argument = Argument { required: false, ..JOB };

/// The word by which `/save` asks no more.
pub const ANYWAY: Argument =
    Argument { name: "anyway", about: "`anyway`, though the conversation has gone on meanwhile", required: false };

/// All commands.
pub const COMMANDS: &[ChatCommand] = &[
    command("status", "How the service is doing", None, CommandEffect::Lines(&[&["status"]])),
    command("web", "A link to the page", None, CommandEffect::Lines(&[&["web"]])),
    command("next", "What comes next", Some(ANY_JOB), CommandEffect::Lines(&[&["next"]])),
    command(
        "jobs",
        "All routines and reminders",
        None,
        CommandEffect::Lines(&[&["routine", "list"], &["reminder", "list"]]),
    ),
    command("runs", "What ran", Some(ANY_JOB), CommandEffect::Lines(&[&["runs"]])),
    command(
        "run",
        "One run",
        Some(Argument { name: "run", about: "The run's id, as `runs` shows it", required: true }),
        CommandEffect::Lines(&[&["runs", "show"]]),
    ),
    command(
        "why",
        "Why a job did what it did the last time, or at a time; alone: why the last failed one failed",
        Some(ANY_JOB),
        CommandEffect::Why,
    ),
    command("fire", "Run a job now", Some(JOB), CommandEffect::Lines(&[&["fire"]])),
    command(
        "snooze",
        "Let a reminder come later",
        Some(Argument { name: "reminder", about: "Its id and the time from now: check-the-oven 20m", required: true }),
        CommandEffect::Lines(&[&["reminder", "snooze"]]),
    ),
    command(
        "retry",
        "Bring back a reminder that failed",
        Some(Argument { name: "reminder", about: "Its id", required: true }),
        CommandEffect::Lines(&[&["reminder", "retry"]]),
    ),
    command(
        "pause",
        "Start nothing more: no job at all, or not this one",
        Some(ANY_JOB),
        CommandEffect::Lines(&[&["pause"]]),
    ),
    command("resume", "Start jobs again", Some(ANY_JOB), CommandEffect::Lines(&[&["resume"]])),
    command("inbox", "What the bot has said", None, CommandEffect::Lines(&[&["inbox"]])),
    command("costs", "What runs have cost", None, CommandEffect::Lines(&[&["costs"]])),
    command(
        "budget",
        "How many messages background jobs may still send, and what was spent",
        Some(Argument { name: "change", about: "To raise a cap until its period ends: --day 5", required: false }),
        CommandEffect::Lines(&[&["budget"]]),
    ),
    command(
        "questions",
        "What jobs ask you, and what they asked",
        Some(Argument { name: "answer", about: "To answer one: answer 3 allow", required: false }),
        CommandEffect::Lines(&[&["questions"]]),
    ),
    command(
        "login",
        "Log the agent in",
        Some(Argument { name: "code", about: "The code that the link has shown you", required: false }),
        CommandEffect::Lines(&[&["login"]]),
    ),
    command("interrupt", "End the answer that is going", None, CommandEffect::Interrupt),
    command(
        "model",
        "Which model answers from now on",
        Some(Argument { name: "model", about: "Its name: haiku, sonnet, opus, default", required: false }),
        CommandEffect::Model,
    ),
    command(
        "thinking",
        "How the model thinks from now on",
        Some(Argument {
            name: "thinking",
            about: "on, off, at most so many tokens (8000), or default",
            required: false,
        }),
        CommandEffect::Thinking,
    ),
    command("compact", "Make the conversation shorter: the model keeps a summary", None, CommandEffect::Compact),
    command("clear", "Begin a new conversation", None, CommandEffect::Clear),
    command(
        "fork",
        "Talk about something beside the conversation",
        Some(Argument { name: "topic", about: "What it is about", required: false }),
        CommandEffect::Fork,
    ),
    command("save", "Make the fork the conversation", Some(ANYWAY), CommandEffect::EndFork(ForkEnd::Save)),
    command(
        "report",
        "End the fork: the conversation is told a summary",
        None,
        CommandEffect::EndFork(ForkEnd::Report),
    ),
    command("exit", "End the fork and drop it", None, CommandEffect::EndFork(ForkEnd::Exit)),
    command("help", "These commands", None, CommandEffect::Help),
];

/// Rewrites a text for people who type commands on a channel: `ollim-bot resume` becomes `/resume`, and `ollim-bot runs show ID` becomes
/// `/run ID`.
#[must_use]
pub fn as_typed(text: &str) -> String {
    let mut known: Vec<(String, &ChatCommand)> =
        COMMANDS.iter().filter_map(|known| Some((known.does.words(known.name)?, known))).collect();
    // `runs` is the beginning of `runs show`.
    known.sort_by_key(|(words, _)| std::cmp::Reverse(words.len()));
    known.into_iter().fold(text.to_owned(), |text, (words, ChatCommand { name, argument, .. })| {
        let alone = text.replace(&format!("`ollim-bot {words}`"), &format!("`/{name}`"));
        match argument {
            Some(_) => alone.replace(&format!("`ollim-bot {words} "), &format!("`/{name} ")),
            None => alone,
        }
    })
}

/// Returns whether the output of a command is shown as a block of code, which keeps its columns. A link is not: nobody could tap it there.
pub(super) fn is_block(text: &str) -> bool {
    let is_link = |line: &str| line.starts_with("https://") || line.starts_with("http://");
    text.trim_end().contains('\n') && !text.lines().any(is_link)
}

const fn command(
    name: &'static str,
    about: &'static str,
    argument: Option<Argument>,
    does: CommandEffect,
) -> ChatCommand {
    ChatCommand { name, about, argument, does }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_named_as_the_person_types_them() {
        let text =
            "nothing starts until `ollim-bot resume`; `ollim-bot fire ID` runs a job, `ollim-bot webhooks` lists";
        let expect = "nothing starts until `/resume`; `/fire ID` runs a job, `ollim-bot webhooks` lists";
        assert_eq!(as_typed(text), expect);
        for (text, expect) in [
            ("`ollim-bot runs show 1a2b` shows it", "`/run 1a2b` shows it"),
            ("`ollim-bot runs`", "`/runs`"),
            ("`ollim-bot reminder retry tea` fires it", "`/retry tea` fires it"),
            ("`ollim-bot questions answer 3 allow|deny`", "`/questions answer 3 allow|deny`"),
            // A slash command of Discord takes no more than its arguments.
            (
                "`ollim-bot status --json` and `ollim-bot statusquo`",
                "`ollim-bot status --json` and `ollim-bot statusquo`",
            ),
        ] {
            assert_eq!(as_typed(text), expect);
        }
    }

    #[test]
    fn a_link_can_be_tapped() {
        for (text, is_it) in [
            ("one line\n", false),
            ("NEXT   JOB\n08:00  tea\n", true),
            ("Open this link:\n\nhttps://example.org/login?x=1\n\nGive the code.\n", false),
            ("http://127.0.0.1:8080/in/1\nthe page listens\n", false),
            ("see https://example.org\nthere\n", true),
        ] {
            assert_eq!(is_block(text), is_it, "{text}");
        }
    }

    #[test]
    fn the_documentation_names_every_command() {
        let page = include_str!("../../docs/chat.md");
        for command in COMMANDS {
            let names = [format!("`/{}`", command.name), format!("`/{} ", command.name)];
            assert!(names.iter().any(|name| page.contains(name)), "docs/chat.md does not name /{}", command.name);
        }
    }
}
