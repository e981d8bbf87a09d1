//! Renders why a job did what it did: sentences first, then the evidence. It uses lines, not a table, since a phone has about 34 columns.

use serde_json::{Value, json};

use super::View;
use crate::app::{Evidence, Sentence, Why, times};
use crate::channel::terminal::{plain, wrapped};
use crate::cli::output::{FAINT, Output, STRONG, paint};

/// Renders the explanation.
pub(super) fn why(why: &Why, view: &View, output: &mut Output) {
    if view.json {
        output.json(&as_json(why, view));
        return;
    }
    let width = output.width.unwrap_or(usize::MAX);
    for (place, said) in std::iter::once(&why.said).chain(&why.next).enumerate() {
        for line in wrapped(&plain(&said.sentence), width) {
            output.line(if place == 0 { paint(STRONG, &line) } else { line });
        }
    }
    output.line("");
    for Evidence { from, what, .. } in &why.evidence {
        let text = format!("{}: {}", from.name(), plain(what));
        for (place, line) in wrapped(&text, width.saturating_sub(2)).iter().enumerate() {
            output.line(paint(FAINT, &if place == 0 { line.clone() } else { format!("  {line}") }));
        }
    }
}

/// Returns the explanation as JSON with stable keys.
fn as_json(why: &Why, view: &View) -> Value {
    let said = |said: &Sentence| json!({ "situation": said.situation, "sentence": said.sentence });
    let at = |at: chrono::DateTime<chrono::Utc>| times::rfc3339(at, view.zone);
    let evidence =
        why.evidence.iter().map(|one| json!({ "from": one.from.name(), "at": one.at.map(at), "what": one.what }));
    json!({
        "id": why.id,
        "situation": why.said.situation,
        "sentence": why.said.sentence,
        "next": why.next.as_ref().map(said),
        "next_at": why.next_at.map(at),
        "evidence": evidence.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::app::Source;
    use crate::definition::DefinitionId;

    #[test]
    fn a_phone_gets_whole_words_in_lines_that_fit() {
        let said = |sentence: &str| Sentence { situation: "late".into(), sentence: sentence.into() };
        let seen = |from, what: &str| Evidence { from, at: None, what: what.into() };
        let answer = Why {
            id: DefinitionId::new("mail"),
            said: said(
                "mail was due at 08:00 and began 1h 12m late, at 09:12: the service was not running until 09:12; it did its work.",
            ),
            next: Some(said("Next: tomorrow at 08:00 (in 22h 42m).")),
            next_at: None,
            evidence: vec![
                seen(Source::Journal, "due 08:00, recorded 09:12"),
                seen(Source::File, "routines/mail.md: `0 8 * * *`, Europe/Berlin, and changed since it fired at 08:00"),
            ],
        };
        let now = DateTime::UNIX_EPOCH;
        let view = View { json: false, now, zone: chrono_tz::Tz::UTC, home: "/".into() };
        let mut output = Output { plain_tables: true, width: Some(60), ..Output::default() };
        why(&answer, &view, &mut output);
        let text = anstream::adapter::strip_str(&output.stdout).to_string();
        insta::assert_snapshot!(text, @"
        mail was due at 08:00 and began 1h 12m late, at 09:12: the
        service was not running until 09:12; it did its work.
        Next: tomorrow at 08:00 (in 22h 42m).

        journal: due 08:00, recorded 09:12
        file: routines/mail.md: `0 8 * * *`, Europe/Berlin, and
          changed since it fired at 08:00
        ");
        assert!(text.lines().all(|line| line.chars().count() <= 60));
    }
}
