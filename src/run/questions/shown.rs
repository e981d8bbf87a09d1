//! A call as it is shown to the person: complete, on one line, and so that no part can pass for something else.
//!
//! A character that is not plainly visible is escaped as the shell (for programs) or JSON (for tools) does it: control characters, line
//! ends, marks for the direction of writing, invisible letters, and backticks, which would end a quotation in a message.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use agent_sandbox::Start;
use serde_json::Value;

/// Formats a program start: the real words, the variables that its line sets, its folder unless that is `work`, and the whole line if it
/// contains more. The line has not been judged; its parts before the program have already run.
pub(in crate::run) fn program(start: &Start, line: &str, work: &Path) -> String {
    let variables = start.env.iter().map(|(name, value)| format!("{}={}", word(name), word(value)));
    let words: Vec<String> = variables.chain(start.argv.iter().map(|argument| word(argument))).collect();
    let mut text = words.join(" ");
    let unquoted = |text: &str| text.trim().replace(['\'', '"', '\\'], "");
    if unquoted(line) != unquoted(&text) && !line.is_empty() {
        text.push_str(&format!("\nin the line {}", word(line)));
    }
    if start.cwd != work {
        text.push_str(&format!("\nin {}", word(&start.cwd.to_string_lossy())));
    }
    if let Some(agent) = &start.caller {
        text.push_str(&format!("\nfor the agent {}", word(agent)));
    }
    text
}

/// Formats a tool call with its input. Adds the real path of a path that symlinks lead elsewhere, and the folder unless it is `work`.
pub(in crate::run) fn tool(name: &str, input: &Value, agent: Option<&str>, (folder, work): (&Path, &Path)) -> String {
    let mut text = format!("{} {}", word(name), json(input));
    for key in ["file_path", "notebook_path", "path"] {
        let Some(path) = input.get(key).and_then(Value::as_str) else { continue };
        let path = folder.join(path);
        let real = real(&path);
        if real != path {
            text.push_str(&format!("\nwhich is {}", word(&real.to_string_lossy())));
        }
    }
    if folder != work {
        text.push_str(&format!("\nin {}", word(&folder.to_string_lossy())));
    }
    if let Some(agent) = agent {
        text.push_str(&format!("\nfor the agent {}", word(agent)));
    }
    text
}

/// Maximum number of symlinks that are followed.
const MAX_LINKS: usize = 40;

/// Resolves the symlinks of a path, as far as it exists. Also follows a symlink whose target does not exist yet.
fn real(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    let mut missing: Vec<OsString> = Vec::new();
    for _ in 0..MAX_LINKS {
        if let Ok(real) = std::fs::canonicalize(&path) {
            return missing.iter().rev().fold(real, |path, name| path.join(name));
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { break };
        path = match std::fs::read_link(&path) {
            Ok(target) => parent.join(target),
            Err(_) => {
                missing.push(name.to_owned());
                parent.to_owned()
            }
        };
    }
    missing.iter().rev().fold(path, |path, name| path.join(name))
}

/// Formats a text of a file, such as a rule, with code points in place of characters that are not plainly visible.
pub(super) fn text(text: &str) -> String {
    let shown = |c: char| if is_shown(c) { c.to_string() } else { c.escape_unicode().to_string() };
    text.chars().map(shown).collect()
}

/// Formats one word as a shell reads it.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./+:=,@%".contains(c) || (!c.is_ascii() && is_shown(c));
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    if text.chars().all(|c| is_shown(c) && c != '\'') {
        return format!("'{text}'");
    }
    let mut out = String::from("$'");
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\\' | '\'' => out.extend(['\\', c]),
            c if is_shown(c) => out.push(c),
            c => match u32::from(c) {
                code @ ..0x80 => out.push_str(&format!("\\x{code:02x}")),
                code @ ..0x1_0000 => out.push_str(&format!("\\u{code:04x}")),
                code => out.push_str(&format!("\\U{code:08x}")),
            },
        }
    }
    out.push('\'');
    out
}

fn json(value: &Value) -> String {
    let mut out = String::new();
    for c in value.to_string().chars() {
        if is_shown(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

/// Returns whether a character always looks like what it is.
fn is_shown(c: char) -> bool {
    /// Letters that look like quotes, scripts that are written from right to left, and invisible letters.
    const NOT: [(char, char); 11] = [
        ('\u{02b0}', '\u{02ff}'),
        ('\u{0374}', '\u{037a}'),
        ('\u{a78b}', '\u{a78c}'),
        ('\u{0590}', '\u{08ff}'),
        ('\u{115f}', '\u{1160}'),
        ('\u{17b4}', '\u{17b5}'),
        ('\u{3164}', '\u{3164}'),
        ('\u{fb1d}', '\u{fdff}'),
        ('\u{fe70}', '\u{feff}'),
        ('\u{ffa0}', '\u{ffa0}'),
        ('\u{10800}', '\u{1efff}'),
    ];
    match c {
        '`' => false,
        ' '..='~' => true,
        c => c.is_alphanumeric() && !NOT.iter().any(|(first, last)| (*first..=*last).contains(&c)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(argv: &[&str], env: &[(&str, &str)], cwd: &str, expected: &str) {
        check_in("", argv, env, cwd, expected);
    }

    #[track_caller]
    fn check_in(line: &str, argv: &[&str], env: &[(&str, &str)], cwd: &str, expected: &str) {
        let env: BTreeMap<String, String> =
            env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        let start = Start { argv, cwd: cwd.into(), env, by_shell: true, caller: None, script: String::new() };
        assert_eq!(program(&start, line, Path::new("/w")), expected);
    }

    #[test]
    fn a_program_is_shown_with_the_rest_of_its_line() {
        let push = ["git", "push"];
        check_in("git push", &push, &[], "/w", "git push");
        check_in(
            "git  commit -m \"a b\"",
            &["git", "commit", "-m", "a b"],
            &[],
            "/w",
            "git commit -m 'a b'\nin the line 'git  commit -m \"a b\"'",
        );
        check_in("git commit -m \"a b\"", &["git", "commit", "-m", "a b"], &[], "/w", "git commit -m 'a b'");
        check_in(
            "git push; rm -r x # \u{1b}[2K",
            &push,
            &[],
            "/w",
            "git push\nin the line $'git push; rm -r x # \\x1b[2K'",
        );
        check_in(
            "a | git push\n`b`",
            &push,
            &[],
            "/w/x",
            "git push\nin the line $'a | git push\\n\\x60b\\x60'\nin /w/x",
        );
    }

    #[test]
    fn what_is_shown_is_what_runs() {
        check(&["git", "push", "origin"], &[], "/w", "git push origin");
        check(&["git", "commit", "-m", "a b"], &[("CI", "1")], "/w/x", "CI=1 git commit -m 'a b'\nin /w/x");
        check(&["x", ""], &[], "/w", "x ''");
        check(&["x", "it's"], &[], "/w", "x $'it\\'s'");
        check(&["x", "$(rm)", "a\\b"], &[], "/w", "x '$(rm)' 'a\\b'");
        // A line end cannot begin a new line, and a backtick cannot end a quotation.
        check(&["x", "a\nAllowed.", "`b`"], &[], "/w", "x $'a\\nAllowed.' $'\\x60b\\x60'");
        check(&["x", "\r\u{1b}[2K\u{8}"], &[], "/w", "x $'\\x0d\\x1b[2K\\x08'");
        // Characters that are written from right to left, invisible, or combining.
        check(&["x", "a\u{202e}b", "\u{200b}", "\u{feff}"], &[], "/w", "x $'a\\u202eb' $'\\u200b' $'\\ufeff'");
        check(&["x", "\u{5d0}1", "e\u{301}", "\u{3164}"], &[], "/w", "x $'\\u05d01' $'e\\u0301' $'\\u3164'");
        check(&["x", "Grüße", "\u{1f600}"], &[], "/w", "x Grüße $'\\U0001f600'");
        check(&["x"], &[], "/w/a\nb", "x\nin $'/w/a\\nb'");
    }

    #[test]
    fn a_rule_is_shown_on_one_line() {
        assert_eq!(text("Bash(git push *)"), "Bash(git push *)");
        assert_eq!(text("Bash(x `\n\u{202e}ü *)"), "Bash(x \\u{60}\\u{a}\\u{202e}ü *)");
    }

    #[test]
    fn an_input_is_shown_as_json() {
        let input = json!({ "content": "a\n`b`\u{202e}", "file_path": "nowhere" });
        let shown = tool("Write", &input, Some("clerk"), (Path::new("/w"), Path::new("/w")));
        assert_eq!(
            shown,
            "Write {\"content\":\"a\\n\\u0060b\\u0060\\u202e\",\"file_path\":\"nowhere\"}\nfor the agent clerk"
        );
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::write(folder.join("real"), "").unwrap();
        std::os::unix::fs::symlink(folder.join("real"), folder.join("link")).unwrap();
        let shown = |name: &str| tool("Read", &json!({ "file_path": name }), None, (&folder, &folder));
        assert_eq!(shown("real"), "Read {\"file_path\":\"real\"}");
        // A file that does not exist yet, behind a symlink to a folder; and one behind a symlink whose target does not exist yet.
        std::fs::create_dir(folder.join("live")).unwrap();
        std::os::unix::fs::symlink("live", folder.join("drafts")).unwrap();
        std::os::unix::fs::symlink("live/later", folder.join("soon")).unwrap();
        for (name, leads_to) in [("link", "real"), ("drafts/new.html", "live/new.html"), ("soon", "live/later")] {
            let which = format!("\nwhich is {}", folder.join(leads_to).display());
            assert!(shown(name).ends_with(&which), "{}", shown(name));
        }
        assert_eq!(shown("live/new.html"), "Read {\"file_path\":\"live/new.html\"}");
        let elsewhere = tool("Grep", &json!({}), None, (&folder, Path::new("/w")));
        assert!(elsewhere.ends_with(&format!("\nin {}", folder.display())), "{elsewhere}");
    }
}
