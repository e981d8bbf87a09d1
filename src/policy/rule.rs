//! A tool pattern compiled for matching, with where it came from.

use std::fmt;

use super::ToolPattern;
use super::path::PathRule;
use super::shell::{self, Word};
use super::web::HostRule;
use super::wildcard::{Symbol, Wildcard};

/// Where a rule stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// `allowed_tools` of this owner.
    Allowed(String),
    /// The entry that every allowlist gets.
    Automatic,
    /// `disallowed_tools` of this owner.
    Disallowed(String),
    /// `main_tools` of the configuration.
    MainTools,
    /// `allow_ping: false`.
    NoPing,
    /// `update_main_session: blocked`.
    NoUpdates,
    /// The system-wide blocks.
    Blocked,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allowed(owner) => write!(f, "allowed_tools of {owner}"),
            Self::Automatic => f.write_str("added automatically"),
            Self::Disallowed(owner) => write!(f, "disallowed_tools of {owner}"),
            Self::MainTools => f.write_str("main_tools"),
            Self::NoPing => f.write_str("allow_ping: false"),
            Self::NoUpdates => f.write_str("update_main_session: blocked"),
            Self::Blocked => f.write_str("blocked for every fork"),
        }
    }
}

/// What a pattern matches of its tool's calls.
#[derive(Clone, Debug)]
pub(super) enum Matcher {
    /// Every call.
    All,
    /// Bash: simple commands.
    Command(CommandRule),
    /// Paths.
    Path(PathRule),
    /// Hosts.
    Host(HostRule),
    /// A text of the call: an agent's type, a skill with its arguments.
    Text(Wildcard),
    /// A specifier that this tool does not have: it grants nothing and denies everything.
    Unsupported,
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub pattern: ToolPattern,
    pub origin: Origin,
    pub matcher: Matcher,
    /// Wildcard over tool names (`*`, `mcp__server__*`); `None` for one tool.
    name: Option<Wildcard>,
}

impl Rule {
    pub(super) fn new(pattern: &ToolPattern, origin: Origin) -> Self {
        let tool = pattern.canonical_tool();
        let name = if tool == "*" {
            Some(Wildcard::name("*"))
        } else if let Some(rest) = tool.strip_prefix("mcp__") {
            let whole_server = !rest.contains("__");
            Some(Wildcard::name(&if whole_server { format!("{tool}__*") } else { tool.to_owned() }))
        } else {
            None
        };
        Self { matcher: matcher(pattern), pattern: pattern.clone(), origin, name }
    }

    /// Whether it speaks of this tool (by its present name).
    pub(super) fn is_for(&self, tool: &str) -> bool {
        match &self.name {
            Some(name) => name.matches_always(&tool.chars().map(Symbol::Char).collect::<Vec<_>>()),
            None => self.pattern.canonical_tool() == tool,
        }
    }

    /// Whether it names every tool there is.
    pub(super) fn is_for_everything(&self) -> bool {
        self.name.as_ref().is_some_and(Wildcard::matches_everything)
    }

    /// The rule as the subject of a denial's sentence.
    pub(super) fn cited(&self) -> String {
        match &self.origin {
            Origin::Disallowed(owner) => format!("disallowed_tools \"{}\" of {owner}", self.pattern),
            origin => format!("{origin} (\"{}\")", self.pattern),
        }
    }

    pub(super) fn is_all(&self) -> bool {
        matches!(self.matcher, Matcher::All)
    }

    pub(super) fn name(&self) -> Option<&Wildcard> {
        self.name.as_ref()
    }
}

fn matcher(pattern: &ToolPattern) -> Matcher {
    let Some(specifier) = pattern.specifier().filter(|_| !pattern.is_whole_tool()) else { return Matcher::All };
    match pattern.canonical_tool() {
        "Bash" => Matcher::Command(CommandRule::new(specifier)),
        "Read" | "Edit" | "NotebookEdit" | "NotebookRead" | "Glob" | "Grep" | "LS" => {
            Matcher::Path(PathRule::new(specifier))
        }
        "WebFetch" => match specifier.strip_prefix("domain:") {
            Some(host) => Matcher::Host(HostRule::new(host)),
            None => Matcher::Unsupported,
        },
        "Agent" | "Skill" => Matcher::Text(Wildcard::command(specifier)),
        _ => Matcher::Unsupported,
    }
}

/// A Bash pattern.
#[derive(Clone, Debug)]
pub(super) struct CommandRule {
    /// As written, our own program's global flags removed.
    pub granting: Wildcard,
    /// The same read generously: the program by base name, `ollim-bot-NAME` as `ollim-bot NAME`.
    denying: Vec<Wildcard>,
    /// The words in front of the first wildcard.
    fixed: Vec<String>,
}

impl CommandRule {
    fn new(specifier: &str) -> Self {
        let written = Wildcard::command(specifier);
        let fixed = written.fixed_words();
        let words: Vec<Word> = fixed.iter().map(Word::text).collect();
        let rewritten = |by_base_name: bool| {
            let canonical = shell::own_command(&words, by_base_name).filter(|_| !shell::uses_home_flag(&words))?;
            let texts: Vec<&str> = canonical.iter().filter_map(Word::literal).collect();
            Some(written.with_prefix(words.len(), &texts))
        };
        let mut denying = vec![written.clone()];
        denying.extend(rewritten(true));
        if let Some(base) = words.first().filter(|word| word.known_start().contains('/')).and_then(Word::base_name) {
            denying.push(written.with_prefix(1, &[base]));
        }
        Self { granting: rewritten(false).unwrap_or(written), denying, fixed }
    }

    /// Whether it grants the command, whatever the unknown parts of it hold.
    pub(super) fn grants(&self, words: &[Word]) -> bool {
        let Some(program) = words.first() else { return false };
        // A quoted `~` is a file of that name, not the home folder.
        if program.is_unknown() || program.known_start().starts_with('~') {
            return false;
        }
        // A path runs that file, whatever its last part is called: the pattern must spell it.
        let shown = program.shown();
        if shown.contains('/') && self.fixed.first() != Some(&shown) {
            return false;
        }
        let own = shell::own_command(words, false);
        self.granting.matches_always(&shell::symbols(own.as_deref().unwrap_or(words)))
    }

    /// Whether words that another program is given hold a call that it denies: the denied program, followed by what
    /// the pattern names.
    pub(super) fn denies_inside(&self, words: &[Word]) -> bool {
        // Bounds the time for a line that is made to take long; what is cut off can stand for anything.
        const LOOKED_AT: usize = 16;
        let Some(program) = self.fixed.first().map(|program| program.rsplit('/').next().unwrap_or(program)) else {
            return false;
        };
        let starts = |word: &Word| {
            word.base_name().is_some_and(|name| {
                name == program || (program.starts_with("ollim-bot") && name.starts_with("ollim-bot"))
            })
        };
        words.iter().enumerate().filter(|(_, word)| starts(word)).any(|(at, _)| {
            let mut call: Vec<Word> = words[at..].iter().take(LOOKED_AT).cloned().collect();
            if words.len() - at > LOOKED_AT {
                call.push(Word::anything("…"));
            }
            self.denies(&call)
        })
    }

    /// Whether it could deny the command.
    pub(super) fn denies(&self, words: &[Word]) -> bool {
        let mut readings = vec![words.to_vec()];
        readings.extend(shell::own_command(words, true));
        readings.extend(shell::git_without_globals(words));
        if let Some(base) = words.first().and_then(Word::base_name) {
            let mut by_base = words.to_vec();
            by_base[0] = Word::text(base);
            readings.push(by_base);
        }
        readings.iter().any(|words| {
            let symbols = shell::symbols_loose(words);
            self.denying.iter().any(|wildcard| wildcard.matches_possibly(&symbols))
        })
    }
}
