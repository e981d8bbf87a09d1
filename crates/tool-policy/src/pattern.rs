//! Tool patterns, in the agent client's own format: `Tool` or `Tool(specifier)`.
//!
//! A pattern keeps the text that a person wrote; the module `rule` compiles its matcher. Text that looks like a restriction or
//! a grant but is none (a mistyped tool, a chain of commands in one Bash pattern) is an error.

use std::fmt;
use std::sync::Arc;

use crate::{Application, client_tools};

/// One pattern as a person wrote it: a tool's name and, in parentheses, a specifier.
///
/// `Bash(git log *)` has the tool `Bash` and the specifier `git log *`; `Read` has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolPattern {
    tool: Arc<str>,
    specifier: Option<Arc<str>>,
}

/// Reasons why a text is not a tool pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The text is empty or blank.
    #[error("empty tool pattern")]
    Empty,
    /// A character that nobody sees, or that changes the direction of the text. The text has it as an escape.
    #[error("`{0}` has a character that cannot be seen; write the pattern without it")]
    Unseen(String),
    /// `Tool()`: the parentheses are empty.
    #[error("nothing between the parentheses of tool pattern `{0}`; write the bare tool name to mean every call")]
    EmptySpecifier(String),
    /// An opening parenthesis without its end, an end without a start, or text after the end.
    #[error("unbalanced parentheses in tool pattern `{0}`")]
    Unbalanced(String),
    /// A character that no tool name has.
    #[error("`{0}` is not a tool name")]
    Name(String),
    /// A name that neither the agent client nor an MCP server has.
    #[error("unknown tool `{name}`{}", .nearest.map_or_else(String::new, |known| format!("; did you mean `{known}`?")))]
    UnknownTool {
        /// The name as written.
        name: String,
        /// The nearest known name.
        nearest: Option<&'static str>,
    },
    /// A wildcard in the name of a built-in tool.
    #[error("`{0}`: wildcards in a tool's name work for MCP tools only (`mcp__server__*`); name the tool")]
    Wildcard(String),
    /// A wildcard that begins inside of the alias of the application's own server.
    #[error(
        "`{pattern}`: the wildcard is inside of the server's name; write `mcp__{alias}__*` for the tools of `{alias}`"
    )]
    CutAlias {
        /// The pattern's tool.
        pattern: String,
        /// The alias.
        alias: &'static str,
    },
    /// `mcp__` without a server.
    #[error("`{0}` names no MCP server; write `mcp__server` or `mcp__server__tool`")]
    NoServer(String),
    /// More than one command, or a redirection, in one Bash pattern.
    #[error("`{operator}` in `{pattern}`: a Bash pattern matches one simple command; write one pattern for each")]
    Operator {
        /// The whole pattern.
        pattern: String,
        /// The operator in the pattern.
        operator: &'static str,
    },
    /// A gitignore negation.
    #[error("`{0}` starts with `!`: a path pattern cannot take paths back; name them in the other list")]
    Negated(String),
    /// A path pattern that leaves its base.
    #[error("`..` in `{0}`: write the path from its base (`//absolute`, `~/home`, or relative to `work/`)")]
    ParentInPath(String),
    /// A `WebFetch` specifier other than `domain:host`.
    #[error("`{0}`: WebFetch takes `domain:host` or `domain:*.host`")]
    Domain(String),
}

impl ToolPattern {
    /// # Errors
    /// [`PatternError`] if the text is empty, is not balanced, names no known tool, or can never match what it seems to.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.contains(is_unseen) {
            let shown = |c: char| if is_unseen(c) { c.escape_unicode().to_string() } else { c.to_string() };
            return Err(PatternError::Unseen(text.chars().map(shown).collect()));
        }
        let (tool, specifier) = match text.split_once('(') {
            None if text.contains(')') => return Err(PatternError::Unbalanced(text.into())),
            None => (text, None),
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(specifier) if balanced(specifier) => (tool.trim_end(), Some(specifier.trim())),
                _ => return Err(PatternError::Unbalanced(text.into())),
            },
        };
        check_name(tool)?;
        if specifier == Some("") {
            return Err(PatternError::EmptySpecifier(text.into()));
        }
        if let Some(specifier) = specifier {
            check_specifier(tool, specifier, text)?;
        }
        Ok(Self { tool: tool.into(), specifier: specifier.map(Into::into) })
    }

    /// Returns the pattern under the client's names: for a tool of the application's own server, the real server name replaces an alias.
    ///
    /// # Errors
    /// [`PatternError::CutAlias`] if the pattern matches the alias with a wildcard, and would miss the real name.
    pub fn for_client(self, application: &Application) -> Result<Self, PatternError> {
        if application.cuts_alias(&self.tool) {
            return Err(PatternError::CutAlias { pattern: self.tool.to_string(), alias: application.server_alias });
        }
        Ok(Self { tool: application.client_name(&self.tool).into(), ..self })
    }

    /// Parses like [`parse`](Self::parse), for the lists of jobs: a tool on the server of `application` must be one of its tools.
    ///
    /// # Errors
    /// As `parse` and [`for_client`](Self::for_client), and [`PatternError::UnknownTool`] for `mcp__SERVER__…` that names no tool of the application's.
    pub fn parse_for_job(text: &str, application: &Application) -> Result<Self, PatternError> {
        let pattern = Self::parse(text)?.for_client(application)?;
        let name = pattern.tool();
        let is_one = || application.tools.iter().chain(application.retired_tools).any(|tool| *tool == name);
        if application.is_on_server(name) && !name.contains('*') && !is_one() {
            let nearest = application.nearest_tool(name);
            return Err(PatternError::UnknownTool { nearest, name: name.to_owned() });
        }
        Ok(pattern)
    }

    /// Creates a pattern of the program's own without checks. For a person's text use [`parse`](Self::parse).
    #[must_use]
    pub fn new(tool: &str, specifier: Option<&str>) -> Self {
        Self { tool: tool.into(), specifier: specifier.map(Into::into) }
    }

    /// The tool's name as written.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The text in the parentheses, or `None` without parentheses.
    #[must_use]
    pub fn specifier(&self) -> Option<&str> {
        self.specifier.as_deref()
    }

    /// Returns the alternatives in the parentheses. A specifier for agents may name several (`Agent(Explore, Plan)`).
    #[must_use]
    pub fn alternatives(&self) -> Vec<&str> {
        match self.specifier() {
            None => Vec::new(),
            Some(specifier) if client_tools::canonical(&self.tool) == "Agent" => {
                specifier.split(',').map(str::trim).collect()
            }
            Some(specifier) => vec![specifier],
        }
    }

    /// Returns the tool's current name: `Task(x)` is `Agent(x)`, and `Write` is `Edit`, since the client ignores path rules
    /// on `Write`, and `Edit` rules cover every tool that writes files.
    #[must_use]
    pub fn canonical_tool(&self) -> &str {
        match client_tools::canonical(&self.tool) {
            "Write" => "Edit",
            name => name,
        }
    }

    /// Returns whether the pattern matches every call of its tool: a bare name, or `Tool(*)`.
    #[must_use]
    pub fn is_whole_tool(&self) -> bool {
        matches!(self.specifier(), None | Some("*" | ":*"))
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.specifier {
            Some(specifier) => write!(f, "{}({specifier})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

/// Returns whether the parentheses in a specifier are balanced. Escaped and quoted ones count as text.
fn balanced(specifier: &str) -> bool {
    let mut depth = 0_i32;
    for (c, plain) in unquoted(specifier) {
        match c {
            '(' if plain => depth += 1,
            ')' if plain => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

/// Returns the characters of a specifier, each with whether it is neither quoted nor escaped. A quote without its end
/// is an ordinary character (`Bash(echo it's *)`).
fn unquoted(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                out.push((c, false));
                out.extend(rest.next().map(|c| (c, false)));
            }
            '\'' | '"' if rest.as_str().contains(c) => {
                out.push((c, false));
                for inner in rest.by_ref() {
                    out.push((inner, false));
                    if inner == c {
                        break;
                    }
                }
            }
            _ => out.push((c, true)),
        }
    }
    out.into_iter()
}

fn check_name(tool: &str) -> Result<(), PatternError> {
    let known_char = |c: char| c.is_ascii_alphanumeric() || "_-*.".contains(c);
    if tool.is_empty() || !tool.chars().all(known_char) {
        return Err(PatternError::Name(tool.into()));
    }
    if let Some(rest) = tool.strip_prefix("mcp__") {
        let server = rest.split("__").next().unwrap_or_default();
        return if server.is_empty() { Err(PatternError::NoServer(tool.into())) } else { Ok(()) };
    }
    if tool == "*" || client_tools::is_known(tool) {
        return Ok(());
    }
    if tool.contains('*') {
        return Err(PatternError::Wildcard(tool.into()));
    }
    Err(PatternError::UnknownTool { name: tool.into(), nearest: client_tools::nearest(tool) })
}

/// Returns whether a reader of a rule cannot see the character. Words of some languages need U+200C and U+200D.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

fn check_specifier(tool: &str, specifier: &str, text: &str) -> Result<(), PatternError> {
    match client_tools::canonical(tool) {
        "Bash" => check_command(specifier, text),
        "Read" | "Edit" | "Write" | "NotebookEdit" | "Glob" | "Grep" => {
            if specifier.starts_with('!') {
                return Err(PatternError::Negated(text.into()));
            }
            if specifier.split('/').any(|segment| segment == "..") {
                return Err(PatternError::ParentInPath(text.into()));
            }
            Ok(())
        }
        "Agent" if specifier.split(',').any(|name| name.trim().is_empty()) => {
            Err(PatternError::EmptySpecifier(text.into()))
        }
        "WebFetch" if specifier != "*" => {
            let host = specifier.strip_prefix("domain:").unwrap_or_default();
            let host = host.strip_prefix("*.").unwrap_or(host);
            let plain = |c: char| c.is_ascii_alphanumeric() || "-.:_".contains(c);
            if host.is_empty() || !host.chars().all(plain) {
                return Err(PatternError::Domain(text.into()));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Checks that a Bash pattern is one simple command, which nothing in it may chain, substitute or redirect.
fn check_command(specifier: &str, text: &str) -> Result<(), PatternError> {
    let chars: Vec<(char, bool)> = unquoted(specifier).collect();
    for (at, (c, plain)) in chars.iter().enumerate() {
        if !plain {
            continue;
        }
        let next = chars.get(at + 1).map(|(c, _)| *c);
        let operator = match (c, next) {
            ('&', Some('&')) => "&&",
            ('|', Some('|')) => "||",
            ('&', _) => "&",
            ('|', _) => "|",
            (';', _) => ";",
            ('\n', _) => "a line break",
            ('>', _) => ">",
            ('<', _) => "<",
            ('`', _) => "`",
            ('$', Some('(')) => "$(",
            _ => continue,
        };
        return Err(PatternError::Operator { pattern: text.into(), operator });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_says_what_it_looks_like() {
        for unseen in ["\u{200b}", "\u{feff}", "\u{ad}", "\u{202e}", "\u{e0041}", "\u{fe0f}"] {
            for text in
                [format!("Bash(git push{unseen} *)"), format!("Re{unseen}ad"), format!("Edit(notes{unseen}/**)")]
            {
                let error = ToolPattern::parse(&text).unwrap_err();
                assert_eq!(error, PatternError::Unseen(text.replace(unseen, &unseen.escape_unicode().to_string())));
            }
        }
        assert!(ToolPattern::parse("Read(\u{645}\u{6cc}\u{200c}\u{62e}/**)").is_ok(), "a Persian word needs U+200C");
    }

    #[test]
    fn text_is_kept_as_written() {
        for text in [
            "Read",
            "Bash(bot gmail *)",
            "Bash(git log:*)",
            "Edit(notes/**)",
            "WebFetch(domain:docs.rs)",
            "WebFetch(domain:*.rust-lang.org)",
            "mcp__chat__ping_user",
            "mcp__chat__*",
            "mcp__chat",
            "Agent(Explore)",
            "Task(Explore)",
            "Skill(deploy *)",
            "Write(**)",
            "LS",
            "KillShell",
            "*",
            "Bash(grep \"a|b\" *)",
            "Bash(find . -exec ls {} \\;)",
            "Bash(echo (x) *)",
            "Bash(echo it's *)",
        ] {
            let pattern = ToolPattern::parse(text).unwrap();
            assert_eq!(pattern.to_string(), text);
            assert_eq!(ToolPattern::parse(&pattern.to_string()), Ok(pattern));
        }
    }

    #[test]
    fn what_is_not_a_pattern_says_why() {
        let error = |text: &str| ToolPattern::parse(text).unwrap_err().to_string();
        assert_eq!(error("  "), "empty tool pattern");
        assert_eq!(
            error("Bash()"),
            "nothing between the parentheses of tool pattern `Bash()`; write the bare tool name to mean every call"
        );
        assert_eq!(error("Bash(ls"), "unbalanced parentheses in tool pattern `Bash(ls`");
        assert_eq!(error("Bash(ls))"), "unbalanced parentheses in tool pattern `Bash(ls))`");
        assert_eq!(error("Bash)"), "unbalanced parentheses in tool pattern `Bash)`");
        assert_eq!(error("Bash(ls) x"), "unbalanced parentheses in tool pattern `Bash(ls) x`");
        assert_eq!(error("(ls)"), "`` is not a tool name");
        assert_eq!(error("Ba sh"), "`Ba sh` is not a tool name");
        assert_eq!(error("bash"), "unknown tool `bash`; did you mean `Bash`?");
        assert_eq!(error("Zanzibar"), "unknown tool `Zanzibar`");
        assert_eq!(error("mcp__"), "`mcp__` names no MCP server; write `mcp__server` or `mcp__server__tool`");
        for (text, operator) in [
            ("Bash(ls && rm x)", "&&"),
            ("Bash(ls || rm x)", "||"),
            ("Bash(ls ; rm x)", ";"),
            ("Bash(ls | rm x)", "|"),
            ("Bash(ls & rm x)", "&"),
            ("Bash(ls > x)", ">"),
            ("Bash(ls\nrm x)", "a line break"),
            ("Bash(echo $(ls))", "$("),
        ] {
            assert!(error(text).starts_with(&format!("`{operator}` in")), "{text}: {}", error(text));
        }
        assert!(error("Web*").contains("wildcards"));
        assert!(error("Edit(!notes/x)").contains("starts with `!`"));
        assert!(error("Edit(../x)").starts_with("`..` in"));
        assert!(error("WebFetch(docs.rs)").contains("domain:host"));
        assert!(error("WebFetch(domain:docs.rs/x)").contains("domain:host"));
    }
}
