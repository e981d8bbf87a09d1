//! Converts an agent's Markdown to the HTML of Telegram: code blocks, code, bold and links. Other text, and text with unbalanced marks,
//! stays literal, so that the HTML is always well-formed.

/// Escapes the special characters of HTML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Converts the text of a message.
pub(super) fn html(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, block, after)) = between(rest, "```", "```") {
        out.push_str(&spans(before));
        let code = match block.split_once('\n') {
            Some((language, code)) if !language.contains(char::is_whitespace) => code,
            _ => block,
        };
        out.push_str(&format!("<pre>{}</pre>", escaped(code.trim_end())));
        rest = after.strip_prefix('\n').unwrap_or(after);
    }
    out.push_str(&spans(rest));
    out
}

fn spans(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, code, after)) = between(rest, "`", "`") {
        out.push_str(&links(before));
        out.push_str(&format!("<code>{}</code>", escaped(code)));
        rest = after;
    }
    out.push_str(&links(rest));
    out
}

fn links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let (Some(open), Some(close)) = (rest[..middle].rfind('['), rest[middle..].find(')')) else { break };
        let (label, url) = (&rest[open + 1..middle], &rest[middle + 2..middle + close]);
        let is_web = ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme));
        if is_web && !url.contains(['"', ' ', '\n']) && !label.is_empty() {
            out.push_str(&bold(&rest[..open]));
            out.push_str(&format!("<a href=\"{}\">{}</a>", escaped(url), escaped(label)));
        } else {
            out.push_str(&bold(&rest[..=middle + close]));
        }
        rest = &rest[middle + close + 1..];
    }
    out.push_str(&bold(rest));
    out
}

fn bold(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, strong, after)) = between(rest, "**", "**") {
        out.push_str(&escaped(before));
        out.push_str(&format!("<b>{}</b>", escaped(strong)));
        rest = after;
    }
    out.push_str(&escaped(rest));
    out
}

/// Returns the text before, between and after the first pair of marks, if the text between is not blank.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (before, rest) = text.split_once(open)?;
    let (inner, after) = rest.split_once(close)?;
    (!inner.trim().is_empty()).then_some((before, inner, after))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn markdown_becomes_html() {
        for (text, expect) in [
            ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
            ("**Tea** is `ready <now>`", "<b>Tea</b> is <code>ready &lt;now&gt;</code>"),
            ("```rust\nfn a() {}\n```\nend", "<pre>fn a() {}</pre>end"),
            ("[page](https://a.b/?x=1&y=2)", "<a href=\"https://a.b/?x=1&amp;y=2\">page</a>"),
            ("[evil](javascript:alert(1))", "[evil](javascript:alert(1))"),
            ("[evil](https://a\" onclick=\"x)", "[evil](https://a\" onclick=\"x)"),
            ("2 ** 3 and `open", "2 ** 3 and `open"),
            ("<b>not mine</b>", "&lt;b&gt;not mine&lt;/b&gt;"),
        ] {
            assert_eq!(html(text), expect, "{text}");
        }
    }

    proptest! {
        /// Every tag is one of ours and is closed.
        #[test]
        fn the_html_is_whole(text in "[a*`\\[\\]()<>&\"\n ht/:p]{0,60}") {
            let made = html(&text);
            for tag in ["pre", "code", "b", "a"] {
                let opened = made.matches(&format!("<{tag}>")).count() + made.matches(&format!("<{tag} ")).count();
                prop_assert_eq!(opened, made.matches(&format!("</{tag}>")).count());
            }
            let tags = made.matches('<').count();
            let ours = ["<pre>", "</pre>", "<code>", "</code>", "<b>", "</b>", "<a href=\"", "</a>"];
            prop_assert_eq!(tags, ours.iter().map(|tag| made.matches(tag).count()).sum::<usize>());
        }
    }
}
