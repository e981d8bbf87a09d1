//! The facts about the embedding application that the engine needs: its command, its tools, and its folders.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use crate::ToolPattern;
use crate::programs::base_name;
use crate::rule::Rule;

/// Returns the target of a symbolic link, as [`std::fs::read_link`] does. An error of the kind
/// [`io::ErrorKind::InvalidInput`] means that the path exists but is no link. Any other error means that it does not exist.
pub type ReadLink = fn(&Path) -> io::Result<PathBuf>;

/// The application that embeds the engine. Its jobs may call it by a command of its own (`bot remind --in 2h`), and
/// its MCP server offers tools of its own.
///
/// [`Application::new`] has none of these. A constant is made from it by struct update:
///
/// ```
/// use tool_policy::Application;
///
/// static BOT: Application = Application {
///     command: "bot",
///     subcommands: &["help", "remind"],
///     ..Application::new(|path| std::fs::read_link(path))
/// };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Application {
    /// Reads links. The engine does no other I/O.
    pub read_link: ReadLink,
    /// Name of the application's command; empty if it has none.
    pub command: &'static str,
    /// The command's own subcommands. `COMMAND NAME` with any other name runs the extension `COMMAND-NAME`.
    pub subcommands: &'static [&'static str],
    /// Other spellings of subcommands: (spelling, subcommand).
    pub aliases: &'static [(&'static str, &'static str)],
    /// Global options without a value, such as `--json`. They do not count when a rule is matched.
    pub flags: &'static [&'static str],
    /// Global options with a value, such as `--color`.
    pub valued_flags: &'static [&'static str],
    /// The option among `valued_flags` that is refused inside a job; empty for none.
    pub refused_flag: &'static str,
    /// The folder below [`PathRoots::root`](crate::PathRoots::root) in which the extension NAME may write `NAME/`.
    pub extension_folder: &'static str,
    /// The `Bash` specifier that every allowlist grants in addition to its entries; empty for none.
    pub always_allowed: &'static str,
    /// The `Bash` specifier of the call that starts an agent, which subagents may not make; empty for none.
    pub spawn_command: &'static str,
    /// An example of a narrow rule, for hints.
    pub example: &'static str,
    /// Name of the application's MCP server.
    pub server: &'static str,
    /// Another name of that server that rules may use; empty for none.
    pub server_alias: &'static str,
    /// Full names of the server's tools (`mcp__SERVER__TOOL`).
    pub tools: &'static [&'static str],
    /// Tools that the server once had. Rules may still name them; they grant and deny nothing.
    pub retired_tools: &'static [&'static str],
    /// Other names of one action: tools, and the `Bash` specifier of the command that does the same. A denial of one of the tools
    /// denies all names of its action.
    pub same_actions: &'static [(&'static [&'static str], &'static str)],
    /// Those of `tools` that start agents or make jobs. Neither spawned agents nor subagents may call them.
    pub spawning_tools: &'static [&'static str],
    /// Prefixes of environment variables that no line of a job may set.
    pub reserved_variables: &'static [&'static str],
    /// Why the data folder is protected, as the end of a sentence.
    pub data_folder: &'static str,
    /// The path below the data folder of a run's folder for temporary files; `*` stands for one part.
    pub temporary: &'static str,
    /// Why the main session was not granted a call, as the end of a sentence.
    pub main_session: &'static str,
}

impl Application {
    /// Creates an application with neither a command nor tools.
    #[must_use]
    pub const fn new(read_link: ReadLink) -> Self {
        Self {
            read_link,
            command: "",
            subcommands: &[],
            aliases: &[],
            flags: &[],
            valued_flags: &[],
            refused_flag: "",
            extension_folder: "",
            always_allowed: "",
            spawn_command: "",
            example: "Bash(git log *)",
            server: "",
            server_alias: "",
            tools: &[],
            retired_tools: &[],
            same_actions: &[],
            spawning_tools: &[],
            reserved_variables: &[],
            data_folder: "it is in the application's data folder",
            temporary: "",
            main_session: "no rule grants it, and nobody can be asked",
        }
    }

    /// Returns the pattern that every allowlist grants in addition to its entries.
    #[must_use]
    pub fn always_allowed(&self) -> Option<ToolPattern> {
        (!self.always_allowed.is_empty()).then(|| ToolPattern::new("Bash", Some(self.always_allowed)))
    }

    /// Returns the other names of the actions whose tools a rule applies to.
    pub(crate) fn other_names(&self, rule: &Rule) -> Vec<ToolPattern> {
        let is_named = |(tools, _): &&(&[&str], &str)| tools.iter().any(|tool| rule.is_for(tool));
        let names = self.same_actions.iter().filter(is_named).flat_map(|(tools, command)| {
            let others = tools.iter().filter(|tool| !rule.is_for(tool)).map(|tool| ToolPattern::new(tool, None));
            others.chain([ToolPattern::new("Bash", Some(command))])
        });
        names.collect()
    }

    /// Returns whether a program is the command, called by its name alone.
    pub(crate) fn is_plain_command(&self, program: &str) -> bool {
        !self.command.is_empty() && program == self.command
    }

    /// Returns whether a program is the command, in any folder.
    pub(crate) fn is_command(&self, program: &str) -> bool {
        self.is_plain_command(base_name(program))
    }

    /// Returns whether a program is the command or one of its extensions, in any folder.
    pub(crate) fn is_family(&self, program: &str) -> bool {
        !self.command.is_empty() && base_name(program).starts_with(self.command)
    }

    /// Returns the call of the command with global options removed and aliases resolved, or `None` for other programs.
    ///
    /// `by_base_name` is for denials: the program counts under any path, and `COMMAND-NAME` means `COMMAND NAME`.
    pub(crate) fn canonical(&self, words: &[String], by_base_name: bool) -> Option<Vec<String>> {
        let (program, mut rest) = words.split_first().filter(|_| !self.command.is_empty())?;
        let name = if by_base_name { base_name(program) } else { program };
        let mut out = vec![self.command.to_owned()];
        if name != self.command {
            let extension = name.strip_prefix(self.command)?.strip_prefix('-');
            out.push(extension.filter(|extension| by_base_name && !extension.is_empty())?.to_owned());
            out.extend_from_slice(rest);
            return Some(out);
        }
        while let Some(text) = rest.first() {
            match text.as_str() {
                text if self.flags.contains(&text) || self.has_value(text) => rest = &rest[1..],
                text if self.valued_flags.contains(&text) => rest = rest.get(2..).unwrap_or_default(),
                "--" if by_base_name => rest = &rest[1..],
                _ => break,
            }
        }
        let Some((subcommand, arguments)) = rest.split_first() else { return Some(out) };
        let resolved = self.aliases.iter().find(|(alias, _)| alias == subcommand);
        let resolved = resolved.map_or(subcommand.as_str(), |(_, subcommand)| *subcommand);
        let ours = self.subcommands.contains(&resolved);
        out.push(resolved.to_owned());
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let name = argument.split('=').next().unwrap_or_default();
            match argument.as_str() {
                text if !ours || name == self.refused_flag => out.push(text.to_owned()),
                text if self.flags.contains(&text) || self.has_value(text) => {}
                text if self.valued_flags.contains(&text) => {
                    arguments.next();
                }
                text => out.push(text.to_owned()),
            }
        }
        Some(out)
    }

    /// Returns whether a word is a global option together with its value: `--color=never`.
    fn has_value(&self, word: &str) -> bool {
        word.split_once('=').is_some_and(|(name, _)| self.valued_flags.contains(&name))
    }

    /// Returns the extension that a canonical call runs (`gmail` of `bot gmail unread`).
    pub(crate) fn extension<'a>(&self, canonical: &'a [String]) -> Option<&'a str> {
        let name = canonical.get(1)?.as_str();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        (!self.subcommands.contains(&name) && !name.starts_with('-') && !name.is_empty() && name.chars().all(plain))
            .then_some(name)
    }

    /// Returns whether a call of the command has the option that is refused inside a job.
    pub(crate) fn has_refused_flag(&self, words: &[String]) -> bool {
        let Some((program, arguments)) = words.split_first() else { return false };
        if !self.is_command(program) || self.refused_flag.is_empty() {
            return false;
        }
        let is_refused = |text: &str| text.split('=').next() == Some(self.refused_flag);
        let mut leading = true;
        let mut ours = true;
        for text in arguments {
            if leading && !text.is_empty() && !text.starts_with('-') {
                // This may mistake the value of a global option for a subcommand, which only makes the check stricter.
                leading = false;
                ours = self.subcommands.contains(&text.as_str());
            }
            if (leading || ours) && is_refused(text) {
                return true;
            }
        }
        false
    }

    /// Returns the application's tool nearest to a mistyped name, if any is near.
    pub(crate) fn nearest_tool(&self, name: &str) -> Option<&'static str> {
        // Comparing takes time proportional to the product of both lengths.
        let name = Some(name).filter(|name| name.len() < 100)?.to_ascii_lowercase();
        let near = self.tools.iter().map(|tool| (strsim::damerau_levenshtein(&name, tool), *tool));
        near.filter(|(distance, _)| *distance <= 3).min().map(|(_, tool)| tool)
    }

    /// Returns the client's name of a tool, which has the real server name in the place of the alias.
    #[must_use]
    pub fn client_name<'a>(&self, tool: &'a str) -> Cow<'a, str> {
        let rest = tool.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(self.server_alias));
        match rest.filter(|rest| !self.server_alias.is_empty() && (rest.is_empty() || rest.starts_with("__"))) {
            Some(rest) => Cow::Owned(format!("mcp__{}{rest}", self.server)),
            None => Cow::Borrowed(tool),
        }
    }

    /// Returns whether a wildcard of the tool's name begins inside of the alias: `mcp__bo*` for `bot`. The client knows the server by its real
    /// name, so such a pattern would miss the server's tools.
    pub(crate) fn cuts_alias(&self, tool: &str) -> bool {
        let server = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once('*')).map(|(beginning, _)| beginning);
        let alias = format!("{}__", self.server_alias);
        !self.server_alias.is_empty()
            && server.is_some_and(|server| !server.is_empty() && server != alias && alias.starts_with(server))
    }

    /// Returns whether a tool belongs to the application's own server.
    pub(crate) fn is_on_server(&self, tool: &str) -> bool {
        let rest = tool.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(self.server));
        !self.server.is_empty() && rest.is_some_and(|rest| rest.starts_with("__"))
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::BOT;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(ToOwned::to_owned).collect()
    }

    #[test]
    fn flags_and_aliases_do_not_hide_a_call() {
        for (text, granted, denied) in [
            ("bot cal today", Some("bot cal today"), Some("bot cal today")),
            ("bot --json cal today", Some("bot cal today"), Some("bot cal today")),
            ("bot --color never --json cal", Some("bot cal"), Some("bot cal")),
            ("bot --color=never cal", Some("bot cal"), Some("bot cal")),
            ("bot --home x cal", Some("bot cal"), Some("bot cal")),
            ("bot --color", Some("bot"), Some("bot")),
            ("bot -- cal", Some("bot -- cal"), Some("bot cal")),
            ("bot next --json", Some("bot next"), Some("bot next")),
            ("bot cal --json", Some("bot cal --json"), Some("bot cal --json")),
            ("bot follow_up --in 5", Some("bot follow-up --in 5"), Some("bot follow-up --in 5")),
            ("/usr/bin/bot cal", None, Some("bot cal")),
            ("bot-cal today", None, Some("bot cal today")),
            ("bin/bot-cal today", None, Some("bot cal today")),
            ("botx cal", None, None),
            ("ls -l", None, None),
        ] {
            let call = |by_base_name| BOT.canonical(&words(text), by_base_name).map(|words| words.join(" "));
            assert_eq!(call(false).as_deref(), granted, "{text}");
            assert_eq!(call(true).as_deref(), denied, "{text}");
        }
    }

    #[test]
    fn the_refused_flag_is_found() {
        let uses = |text: &str| BOT.has_refused_flag(&words(text));
        assert!(uses("bot --home x cal"));
        assert!(uses("/usr/bin/bot --json --home=x cal"));
        assert!(uses("bot next --home x"));
        assert!(!uses("bot gmail --home x"));
        assert!(!uses("ls --home x"));
    }

    #[test]
    fn extensions_have_plain_names() {
        assert_eq!(BOT.extension(&words("bot gmail unread")), Some("gmail"));
        for text in ["bot next", "bot", "bot ../x", "bot -x", "bot a/b"] {
            assert_eq!(BOT.extension(&words(text)), None, "{text}");
        }
    }
}
