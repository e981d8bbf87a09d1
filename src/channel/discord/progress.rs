//! Text style of Discord's status messages.

use std::time::Duration;

use super::body::LONGEST;
use crate::channel::progress::Style;

/// Subtext lines. Denied calls are struck through.
pub(super) const STYLE: Style = Style {
    longest: LONGEST,
    first: Duration::from_millis(200),
    // Discord takes five requests in five seconds for the messages of a conversation. The answer needs one of them.
    pause: Duration::from_millis(1200),
    // Discord shows "is typing" for ten seconds.
    typing: Duration::from_secs(8),
    literal,
    call: |label| format!("{SMALL}{label}"),
    refused: |label, reason| format!("{SMALL}~~{label}~~ {reason}"),
    status: |doing| format!("{SMALL}{doing}"),
};

/// Markdown prefix of a subtext line.
const SMALL: &str = "-# ";

/// Whether a message is the status message of a turn.
pub(super) fn is_status(text: &str) -> bool {
    text.lines().last().is_some_and(|line| line.starts_with(SMALL) && line.ends_with(" s"))
}

/// Escapes the characters that Discord would format.
fn literal(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() && "\\*_~`|<>[]()#-".contains(c) {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Progress;
    use crate::channel::progress::Seen;
    use crate::channel::split::length;

    #[test]
    fn calls_are_lines_and_a_text_before_a_call_goes() {
        let mut seen = Seen::new(&STYLE);
        assert_eq!(seen.rendered(Duration::ZERO), "-# Thinking, 0 s");
        let call = |label: &str| Progress::Call { label: label.into() };
        for progress in [
            Progress::Text("Let me look.".into()),
            call("Read notes/a.md"),
            call("Bash git push"),
            Progress::Refused { label: "Bash git push".into(), reason: "no rule *allows* it\nat all".into() },
        ] {
            assert!(seen.take(progress));
        }
        assert_eq!(
            seen.rendered(Duration::from_secs(2)),
            "-# Read notes/a.md\n-# ~~Bash git push~~ no rule \\*allows\\* it at all\n-# Thinking, 2 s"
        );
        assert!(seen.take(Progress::Text("It is ".into())) && seen.take(Progress::Text("green.".into())));
        let text = seen.rendered(Duration::from_secs(14));
        assert!(text.ends_with("\nIt is green.\n-# Writing, 10 s") && is_status(&text), "{text}");
        assert!(!seen.take(Progress::Ended { completed: true }) && !is_status("It is green."));
    }

    #[test]
    fn whatever_comes_it_fits() {
        let mut seen = Seen::new(&STYLE);
        for n in 0..50 {
            seen.take(Progress::Call { label: "*".repeat(n * 10) });
            seen.take(Progress::Refused { label: "*".repeat(n * 10), reason: "`".repeat(1000) });
        }
        seen.take(Progress::Text(format!("```\n{}", "x y ".repeat(2000))));
        let text = seen.rendered(Duration::from_secs(100_000));
        assert!(length(&text) <= LONGEST, "{}", text.len());
        assert_eq!(text.matches("```").count(), 2, "{text}");
    }
}
