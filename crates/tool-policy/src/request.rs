//! Requests: the client's tool names and inputs in a form that rules can match.

use std::path::Path;

use serde_json::Value;

use crate::path::{Resolved, resolve};
use crate::{ReadLink, ToolCall, client_tools};

/// The default agent of an `Agent` call without a type.
pub(super) const USUAL_AGENT: &str = "general-purpose";

/// The use of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Reads one file or folder.
    Read,
    /// Writes one file.
    Write,
    /// May read everything under a folder.
    Search,
}

/// A call in the engine's terms.
#[derive(Clone, Debug)]
pub(super) enum Request<'a> {
    /// A shell line.
    Bash,
    /// A tool that works on a path.
    Path {
        /// The use of the path.
        access: Access,
        /// The path.
        path: Resolved,
    },
    /// A URL.
    Fetch(&'a str),
    /// A text of the input, for a tool that is matched by it.
    Text(String),
    /// Any other tool, matched only by name.
    Named,
    /// An input that the tool does not accept.
    Unreadable(&'static str),
}

/// Parses a call. `tool` is its current name.
#[expect(clippy::too_many_lines, reason = "a table: a row a tool")]
pub(super) fn request<'a>(call: &'a ToolCall, tool: &str, user_home: &Path, read_link: ReadLink) -> Request<'a> {
    let text = |key: &str| call.input.get(key).and_then(Value::as_str);
    let path = |access: Access, value: Option<&str>| {
        let Some(value) = value else { return Request::Unreadable("its input names no path") };
        if is_trimmed(value) {
            return Request::Unreadable("its path begins or ends with a blank");
        }
        match resolve(value, &call.cwd, user_home, read_link) {
            Some(path) => Request::Path { access, path },
            None => Request::Unreadable("its path cannot be resolved"),
        }
    };
    match tool {
        "Bash" | "Monitor" | "PowerShell" => match text("command") {
            Some(command) if command.trim().is_empty() => Request::Unreadable("its input has no command"),
            Some(command) if command.contains('\0') => Request::Unreadable("its command holds a nul byte"),
            Some(_) if tool == "Bash" => Request::Bash,
            Some(_) => Request::Named,
            None => Request::Unreadable("its input has no command"),
        },
        "Read" => {
            let mut request = path(Access::Read, text("file_path"));
            if let (Request::Path { path, .. }, Some(other)) = (&mut request, text("file_path").and_then(screenshot)) {
                match resolve(&other, &call.cwd, user_home, read_link) {
                    Some(other) => path.join(other),
                    None => return Request::Unreadable("its path cannot be resolved"),
                }
            }
            request
        }
        "Edit" | "Write" => path(Access::Write, text("file_path")),
        "NotebookEdit" => path(Access::Write, text("notebook_path")),
        "NotebookRead" => path(Access::Read, text("notebook_path")),
        "LS" => path(Access::Search, text("path")),
        "Grep" => match optional(call, "path") {
            Ok(folder) => path(Access::Search, Some(folder.unwrap_or("."))),
            Err(why) => Request::Unreadable(why),
        },
        "Glob" => match (optional(call, "path"), text("pattern")) {
            (Ok(folder), Some(pattern)) => {
                if is_trimmed(pattern) || folder.is_some_and(is_trimmed) {
                    return Request::Unreadable("its path begins or ends with a blank");
                }
                let Some(root) = glob_root(folder.unwrap_or("."), pattern) else {
                    return Request::Unreadable("its pattern has `..` behind a wildcard");
                };
                path(Access::Search, Some(&root))
            }
            (Err(why), _) => Request::Unreadable(why),
            (_, None) => Request::Unreadable("its input has no pattern"),
        },
        "WebFetch" => text("url").map_or(Request::Unreadable("its input has no url"), Request::Fetch),
        "Agent" => Request::Text(text("subagent_type").unwrap_or(USUAL_AGENT).to_owned()),
        "Skill" => match text("skill").or_else(|| text("command")).or_else(|| text("name")) {
            Some(skill) => Request::Text(match text("args") {
                Some(args) if !args.is_empty() => format!("{skill} {args}"),
                _ => skill.to_owned(),
            }),
            None => Request::Unreadable("its input names no skill"),
        },
        _ => Request::Named,
    }
}

/// Returns a text that may be absent. Any other type is an error.
fn optional<'a>(call: &'a ToolCall, key: &str) -> Result<Option<&'a str>, &'static str> {
    match call.input.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err("its path is not a text"),
    }
}

/// Returns the other spelling of a screenshot's name (`… 9.00 AM.png`). macOS writes a narrow blank, and if a file is missing, older
/// clients read the one with the other blank. They replace the first occurrence of the name's end in the path.
fn screenshot(path: &str) -> Option<String> {
    const NARROW: char = '\u{202f}';
    let end = path.len().checked_sub("AM.png".len())?;
    let (before, name) = (path.get(..end)?, path.get(end..)?);
    let is_time = ["AM.png", "PM.png"].iter().any(|time| name.eq_ignore_ascii_case(time));
    let (blank, other) = if before.ends_with(NARROW) { (NARROW, ' ') } else { (' ', NARROW) };
    before.strip_suffix(blank).filter(|_| is_time)?;
    Some(path.replacen(&format!("{blank}{name}"), &format!("{other}{name}"), 1))
}

/// Returns whether the client trims the ends of a text before it uses it, as JavaScript's `trim` does.
fn is_trimmed(text: &str) -> bool {
    let blank = |c: char| {
        matches!(
            c,
            '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
                ..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{feff}'
        )
    };
    text.starts_with(blank) || text.ends_with(blank)
}

/// Returns the folder that a glob searches: its plain beginning, below `folder` unless it is absolute.
fn glob_root(folder: &str, pattern: &str) -> Option<String> {
    let wild = pattern.find(['*', '?', '[', '{', '(', '!', '@', '+']).unwrap_or(pattern.len());
    let (plain, rest) = match pattern[..wild].rfind('/') {
        Some(slash) => pattern.split_at(slash + 1),
        None => ("", pattern),
    };
    if rest.contains("..") {
        return None;
    }
    Some(if plain.starts_with(['/', '~']) { plain.to_owned() } else { format!("{folder}/{plain}") })
}

/// Returns the tool's current name.
pub(super) fn tool_name(call: &ToolCall) -> &str {
    client_tools::canonical(&call.tool)
}

/// Describes a call in a sentence: `Bash "ls -l"`.
pub(super) fn shown(call: &ToolCall) -> String {
    let keys = ["command", "file_path", "notebook_path", "path", "url", "subagent_type", "skill", "pattern", "query"];
    match keys.iter().find_map(|key| call.input.get(*key).and_then(Value::as_str)) {
        Some(text) => format!("{} \"{}\"", call.tool, clipped(text)),
        None => call.tool.clone(),
    }
}

/// Shortens a text of an agent's for a sentence.
pub(super) fn clipped(text: &str) -> String {
    on_one_line(text, 200)
}

/// Returns the beginning of an agent's text on one line, at most `most` characters, with every character visible: it cannot forge a line
/// of a log or control a terminal.
#[must_use]
pub fn on_one_line(text: &str, most: usize) -> String {
    let unseen = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let mut out = String::new();
    let mut chars = text.chars();
    for c in chars.by_ref().take(most) {
        match unseen(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_a_sentence_is_short_and_plain() {
        assert_eq!(clipped("a\u{1b}[31m\r\nb\t\u{202e}\u{200b}é"), "a\\u{1b}[31m\\r\\nb\\t\\u{202e}\\u{200b}é");
        assert_eq!(clipped(&"é".repeat(200)), "é".repeat(200));
        assert_eq!(clipped(&"é".repeat(201)), format!("{}…", "é".repeat(200)));
    }

    #[test]
    fn a_screenshot_has_two_names() {
        assert_eq!(screenshot("a/x 9.00 AM.png").as_deref(), Some("a/x 9.00\u{202f}AM.png"));
        assert_eq!(screenshot("a/x\u{202f}PM.png").as_deref(), Some("a/x PM.png"));
        assert_eq!(screenshot("a/d AM.png/y AM.png").as_deref(), Some("a/d\u{202f}AM.png/y AM.png"));
        for path in ["a/xAM.png", "a/x AM.jpg", "AM.png", "é.png", "a/x AM.png/b"] {
            assert_eq!(screenshot(path), None, "{path}");
        }
    }

    #[test]
    fn a_glob_searches_from_its_plain_beginning() {
        assert_eq!(glob_root(".", "**/*.md").as_deref(), Some("./"));
        assert_eq!(glob_root(".", "notes/*.md").as_deref(), Some("./notes/"));
        assert_eq!(glob_root("sub", "../x/*").as_deref(), Some("sub/../x/"));
        assert_eq!(glob_root("sub", "/etc/*").as_deref(), Some("/etc/"));
        assert_eq!(glob_root(".", "a/file").as_deref(), Some("./a/"));
        assert_eq!(glob_root(".", "{a,../b}/*"), None);
        assert_eq!(glob_root(".", "*/../../x"), None);
    }
}
