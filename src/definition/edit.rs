//! Changes a single field of a file's text, and keeps every other letter.
//!
//! Edits the lines, then verifies the result: read again, the new text must have the same other fields and the same
//! body. If that fails (a frontmatter written as `{…}`, two keys on a line), the caller gets `None` and nothing is
//! changed.

use std::collections::HashMap;

use super::fields::{self, FieldValue};
use super::frontmatter::{self, Block, Entry, Node, YamlPath, yaml_text};
use crate::policy::{BOT, ToolPattern};

/// Returns `text` with `field` (in snake_case) set to `value`, or without the field for `None`. Returns `None` if the
/// change would touch anything else.
pub(super) fn set(text: &str, field: &str, value: Option<&FieldValue>) -> Option<String> {
    let before = frontmatter::split(text).ok()?;
    let entries = before.block.entries().ok()?;
    let keys: Vec<(usize, usize)> = (0..entries.len())
        .map(|n| before.block.locate(&YamlPath::Key(vec![n])))
        .map(|(line, column)| Some((usize::try_from(line).ok()? - 1, usize::try_from(column).ok()? - 1)))
        .collect::<Option<_>>()?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let close = usize::try_from(frontmatter::closing_line(text)).ok()? - 1;
    // Lines can be cut only if each holds one key and all keys have the same indentation, as people write it.
    let plain = keys.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 == pair[1].1);
    if !plain || keys.last().is_some_and(|last| last.0 >= close) || close >= lines.len() {
        return None;
    }
    let eol = if lines.get(close.checked_sub(1)?)?.ends_with("\r\n") { "\r\n" } else { "\n" };
    let target = entries.iter().position(|entry| is(&entry.key, field));
    let value = value.map(|value| as_spelled(value, &entries));
    let value = value.as_ref();
    let changed = match target {
        Some(n) => {
            let (start, column) = keys[n];
            let end = content_end(&lines, start, keys.get(n + 1).map_or(close, |next| next.0));
            let by_item = |value: &FieldValue| match (value, &entries[n].value) {
                (FieldValue::Texts(texts), Node::List(list)) => item_lines(&before.block, n, list.len(), &lines[..end])
                    .filter(|items| items.first().is_some_and(|first| *first > start))
                    .and_then(|items| with_items(&lines[..end], start, &items, list, texts, eol)),
                _ => None,
            };
            let new = match value {
                Some(value) => by_item(value).or_else(|| replaced(lines[start], column, value, eol))?,
                None => String::new(),
            };
            format!("{}{new}{}", lines[..start].concat(), lines[end..].concat())
        }
        None => {
            let Some(value) = value else { return Some(text.to_owned()) };
            let indent = " ".repeat(keys.first().map_or(0, |key| key.1));
            let (inline, below) = value.written(&indent, eol);
            let line = format!("{indent}{field}: {inline}");
            format!("{}{}{eol}{below}{}", lines[..close].concat(), line.trim_end(), lines[close..].concat())
        }
    };
    proves(&before.body, &entries, &changed, field, value).then_some(changed)
}

/// Returns the value with each tool pattern spelled as a list of the file spells it: `mcp__bot__x` and `mcp__discord__x`
/// are the same tool.
fn as_spelled(value: &FieldValue, entries: &[Entry]) -> FieldValue {
    let FieldValue::Texts(texts) = value else { return value.clone() };
    let lists = entries.iter().filter_map(|entry| match &entry.value {
        Node::List(list) => Some(list),
        _ => None,
    });
    let known: HashMap<ToolPattern, &String> = lists
        .flatten()
        .filter_map(|node| match node {
            Node::Text(text) => Some((ToolPattern::parse_for_job(text, &BOT).ok()?, text)),
            _ => None,
        })
        .collect();
    let spelled = |text: &String| {
        let pattern = ToolPattern::parse_for_job(text, &BOT).ok()?;
        known.get(&pattern).map(|text| (*text).clone())
    };
    FieldValue::Texts(texts.iter().map(|text| spelled(text).unwrap_or_else(|| text.clone())).collect())
}

fn is(key: &str, field: &str) -> bool {
    fields::named(key).is_some_and(|known| known.name == field)
}

/// Returns the end of an entry's own lines. Blank lines and comments before the next key belong to that key.
fn content_end(lines: &[&str], start: usize, next: usize) -> usize {
    let empty = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let trailing = lines[start + 1..next].iter().rev().take_while(|line| empty(line)).count();
    next - trailing
}

/// Returns the line of each item of the list at entry `n`, if each begins a line of its own.
fn item_lines(block: &Block, n: usize, count: usize, lines: &[&str]) -> Option<Vec<usize>> {
    let line = |item| Some(usize::try_from(block.locate(&YamlPath::Value(vec![n, item])).0).ok()? - 1);
    let found: Vec<usize> = (0..count).map(line).collect::<Option<_>>()?;
    let each_on_its_own = found.windows(2).all(|pair| pair[0] < pair[1])
        && found.iter().all(|line| lines.get(*line).is_some_and(|line| line.trim_start().starts_with("- ")));
    each_on_its_own.then_some(found)
}

/// Returns the lines of a list (from `start` to the end of `lines`) without the items that `texts` lacks and with those
/// that it adds at its end. The other lines, comments too, stay. `None` if that does not make `texts`.
fn with_items(
    lines: &[&str],
    start: usize,
    items: &[usize],
    list: &[Node],
    texts: &[String],
    eol: &str,
) -> Option<String> {
    let mut rest = texts.iter().peekable();
    let kept: Vec<bool> =
        list.iter().map(|node| rest.next_if(|text| *node == Node::Text((*text).clone())).is_some()).collect();
    let last = kept.iter().rposition(|kept| *kept)?;
    let mut new = lines[start..items[0]].concat();
    for (n, line) in items.iter().enumerate() {
        let next = items.get(n + 1).copied().unwrap_or(lines.len());
        let end = content_end(lines, *line, next);
        if kept[n] {
            new.push_str(&lines[*line..end].concat());
        }
        if n == last {
            let indent = &lines[*line][..lines[*line].find('-')?];
            rest.by_ref().for_each(|text| new.push_str(&format!("{indent}- {}{eol}", yaml_text(text))));
        }
        new.push_str(&lines[end..next].concat());
    }
    Some(new)
}

/// Returns the entry with another value. Keeps the key as spelled, and the comment after the value. `first` is its first line.
fn replaced(first: &str, column: usize, value: &FieldValue, eol: &str) -> Option<String> {
    let indent: String = first.chars().take(column).collect();
    let colon = first.find(':')?;
    let rest = first[colon + 1..].trim_end();
    let comment = comment_of(rest).unwrap_or_default();
    let (inline, below) = value.written(&indent, eol);
    let mut line = format!("{}: {inline}", &first[..colon]);
    if comment.is_empty() {
        line.truncate(line.trim_end().len());
    } else {
        line = format!("{}{comment}", line.trim_end());
    }
    Some(format!("{line}{eol}{below}"))
}

/// Returns the comment after a value on one line, with the blanks before it.
fn comment_of(rest: &str) -> Option<&str> {
    let value = rest.trim_start();
    let skip = rest.len() - value.len();
    let from = match value.chars().next()? {
        '#' => return Some(rest),
        '\'' | '"' => skip + quoted_end(value)?,
        '[' | '{' => skip + collection_end(value)?,
        _ => skip,
    };
    let at = rest[from..].find(" #")? + from;
    let start = rest[..at].trim_end().len();
    Some(&rest[start..])
}

/// Returns the end of the list or map at the start of `value`, past its closing bracket.
fn collection_end(value: &str) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(c) = value[at..].chars().next() {
        let begins_item = value[..at].trim_end().ends_with(['[', '{', ',', ':']);
        match c {
            '\'' | '"' if begins_item => {
                at += quoted_end(&value[at..])?;
                continue;
            }
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += c.len_utf8();
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Returns the end of the quoted text at the start of `value`, past its closing quote.
fn quoted_end(value: &str) -> Option<usize> {
    let mut letters = value.char_indices().peekable();
    let (_, quote) = letters.next()?;
    while let Some((at, c)) = letters.next() {
        if c == '\\' && quote == '"' {
            letters.next();
        } else if c == quote && (quote == '"' || letters.next_if(|(_, next)| *next == quote).is_none()) {
            return Some(at + 1);
        }
    }
    None
}

/// Whether the new text sets the field as asked, and keeps the body and all other fields.
fn proves(body: &str, entries: &[Entry], changed: &str, field: &str, value: Option<&FieldValue>) -> bool {
    let Ok(after) = frontmatter::split(changed) else { return false };
    let Ok(found) = after.block.entries() else { return false };
    let others = |entry: &&Entry| !is(&entry.key, field);
    let set: Vec<&Node> = found.iter().filter(|entry| is(&entry.key, field)).map(|entry| &entry.value).collect();
    let wanted = value.map(FieldValue::node);
    after.body == body
        && entries.iter().filter(others).eq(found.iter().filter(others))
        && set == wanted.iter().collect::<Vec<_>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = "---\n# A person's file.\nid: 007\ncron: '30 8 * * *'   # every morning\n\n# who may do what\n\
                        background: true\nallowed-tools:   # two of them\n  # mail\n  - Bash(ollim-bot gmail *)\n\n  \
                        - Read  # and this\n\n# switch\nenabled: true # for now\n---\n\n  Body --- with # marks\n---\nend\n\n";

    fn flag(value: bool) -> Option<FieldValue> {
        Some(FieldValue::Flag(value))
    }

    /// Returns the lines that differ.
    fn check(text: &str, field: &str, value: Option<FieldValue>) -> String {
        let Some(new) = set(text, field, value.as_ref()) else { return "(cannot)".into() };
        let old: Vec<&str> = text.split_inclusive('\n').collect();
        let new: Vec<&str> = new.split_inclusive('\n').collect();
        let front = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        let back = old[front..].iter().rev().zip(new[front..].iter().rev()).take_while(|(a, b)| a == b).count();
        let gone = old[front..old.len() - back].iter().map(|line| format!("- {line:?}\n"));
        let come = new[front..new.len() - back].iter().map(|line| format!("+ {line:?}\n"));
        gone.chain(come).collect()
    }

    #[test]
    fn a_hash_within_a_quoted_item_begins_no_comment() {
        for (rest, comment) in [
            (r#" [a, 'b # c', "d] # e"] # note"#, Some(" # note")),
            (" ['a # b: {c}' *)]", None),
            (r#" ["Bash(echo 'a # b: {c}' *)", x]"#, None),
            (" { deadline: 5m, channel: 'a # b' }  # note", Some("  # note")),
            (" [it's, b] # note", Some(" # note")),
            (" [a, [b, 'c # d']] # note", Some(" # note")),
            (" [a # no end", None),
        ] {
            assert_eq!(comment_of(rest), comment, "{rest}");
        }
    }

    #[test]
    fn a_field_is_changed_in_its_place() {
        let text = |text: &str| Some(FieldValue::Text(text.into()));
        let list = |items: &[&str]| Some(FieldValue::Texts(items.iter().map(|item| (*item).to_owned()).collect()));
        let shown = [
            check(FILE, "enabled", flag(false)),
            check(FILE, "cron", text("*/5 * * * *")),
            check(FILE, "allowed_tools", list(&["Read"])),
            check(FILE, "allowed_tools", list(&[])),
            check(FILE, "allowed_tools", None),
            check(FILE, "enabled", None),
            check(FILE, "retry", Some(FieldValue::Count(3))),
            check(FILE, "description", text("a: b\nc")),
            check(FILE, "retry", None),
            check(&FILE.replace('\n', "\r\n"), "enabled", flag(false)),
            check(&FILE.replace('\n', "\r\n"), "skills", list(&["a", "b"])),
            check(&format!("\u{feff}\n\n{FILE}"), "enabled", flag(false)),
            check("---\n  cron: '@daily'\n---\nx", "enabled", flag(false)),
            check("---\n# nothing\n---\nx", "enabled", flag(false)),
            check("---\ncron: \"a # 'b\" # note\n---\nx", "cron", text("c")),
            check("---\ncron: 'it''s # b' # it's \"this\"\n---\nx", "cron", text("c")),
            check("---\ncron: \"a \\\" # b\" # say \"c\"\n---\nx", "cron", text("c")),
            check("---\ndescription: >\n  folded\n  # not a comment\ncron: '@daily'\n---\nx", "description", text("c")),
            check("---\ncron: one\n  two # note\n---\nx", "cron", text("c")),
        ];
        insta::assert_snapshot!(shown.join("\n"), @r#"
        - "enabled: true # for now\n"
        + "enabled: false # for now\n"

        - "cron: '30 8 * * *'   # every morning\n"
        + "cron: '*/5 * * * *'   # every morning\n"

        - "  - Bash(ollim-bot gmail *)\n"

        - "allowed-tools:   # two of them\n"
        - "  # mail\n"
        - "  - Bash(ollim-bot gmail *)\n"
        - "\n"
        - "  - Read  # and this\n"
        + "allowed-tools: []   # two of them\n"

        - "allowed-tools:   # two of them\n"
        - "  # mail\n"
        - "  - Bash(ollim-bot gmail *)\n"
        - "\n"
        - "  - Read  # and this\n"

        - "enabled: true # for now\n"

        + "retry: 3\n"

        + "description: \"a: b\\nc\"\n"


        - "enabled: true # for now\r\n"
        + "enabled: false # for now\r\n"

        + "skills:\r\n"
        + "  - a\r\n"
        + "  - b\r\n"

        - "enabled: true # for now\n"
        + "enabled: false # for now\n"

        + "  enabled: false\n"

        + "enabled: false\n"

        - "cron: \"a # 'b\" # note\n"
        + "cron: c # note\n"

        - "cron: 'it''s # b' # it's \"this\"\n"
        + "cron: c # it's \"this\"\n"

        - "cron: \"a \\\" # b\" # say \"c\"\n"
        + "cron: c # say \"c\"\n"

        - "description: >\n"
        - "  folded\n"
        + "description: c\n"

        - "cron: one\n"
        - "  two # note\n"
        + "cron: c\n"
        "#);
    }

    #[test]
    fn a_list_keeps_the_items_that_stay_as_they_are_spelled() {
        let file = "---\nask_tools:\n  # for the mail\n  - 'mcp__bot__ping_user' # loud\n  # the rest\n  - Read\nallowed_tools: [Grep]\n---\nx";
        let list = |items: &[&str]| Some(FieldValue::Texts(items.iter().map(|item| (*item).to_owned()).collect()));
        let ping = "mcp__discord__ping_user";
        let shown = [
            check(file, "ask_tools", list(&["Read"])),
            check(file, "ask_tools", list(&[ping])),
            check(file, "ask_tools", list(&[ping, "Read", "Bash(ls *)"])),
            check(file, "ask_tools", list(&["Read", ping])),
            check(file, "allowed_tools", list(&["Grep", ping])),
        ];
        // YAML places an item that repeats another where the other is, so the list is written anew.
        let repeats = "---\nask_tools:\n  - &one Read\nallowed_tools:\n  - *one\n  - Grep\n---\nx";
        let anew = "- \"  - *one\\n\"\n- \"  - Grep\\n\"\n+ \"  - Read\\n\"\n";
        assert_eq!(check(repeats, "allowed_tools", list(&["Read"])), anew);
        insta::assert_snapshot!(shown.join("\n"), @r#"
        - "  - 'mcp__bot__ping_user' # loud\n"

        - "  - Read\n"

        + "  - Bash(ls *)\n"

        - "  - 'mcp__bot__ping_user' # loud\n"
        - "  # the rest\n"
        - "  - Read\n"
        + "  # the rest\n"
        + "  - Read\n"
        + "  - mcp__bot__ping_user\n"

        - "allowed_tools: [Grep]\n"
        + "allowed_tools:\n"
        + "  - Grep\n"
        + "  - mcp__bot__ping_user\n"
        "#);
    }

    #[test]
    fn what_cannot_be_changed_is_left_alone() {
        for text in [
            "---\n{cron: '@daily', enabled: true}\n---\nx",
            "---\n? enabled\n: true\n---\nx",
            "---\nenabled: &a true\nbackground: *a\n---\nx",
            "no frontmatter",
            "---\nenabled: true\n",
            "---\n: : :\n---\n",
        ] {
            assert_eq!(check(text, "enabled", flag(false)), "(cannot)", "{text:?}");
        }
    }

    proptest! {
        /// For any file, the change is either refused or exact.
        #[test]
        fn nothing_else_changes(
            lines in proptest::collection::vec("(enabled|cron|x|'id'|  - a|- b|#|  )(: |:| )?(true|'a'|\"b # c\"|[|>{*&]|\\[a\\]| # note)?( # more)?", 0..6),
            eol in prop_oneof![Just("\n"), Just("\r\n")],
            value in prop_oneof![Just(None), any::<bool>().prop_map(|f| Some(FieldValue::Flag(f))), any::<String>().prop_map(|t| Some(FieldValue::Text(t)))],
        ) {
            let text = format!("---{eol}{}{eol}---{eol}body{eol}", lines.join(eol));
            if let Some(new) = set(&text, "enabled", value.as_ref()) {
                let old = frontmatter::split(&text).unwrap();
                prop_assert!(proves(&old.body, &old.block.entries().unwrap(), &new, "enabled", value.as_ref()));
                let end = format!("---{eol}body{eol}");
                prop_assert!(new.ends_with(&end));
            }
        }
    }
}
