//! Messages to the person about late and missed occurrences. Pure.

use chrono::{DateTime, Utc};

use super::missed::{is_late, moment};
use crate::definition::{Definition, DefinitionId, Kind, OnMissed};
use crate::journal::{Delay, DelayCause, NewClaim, Punctuality, Purpose, UnreportedDelays};

/// Maximum number of jobs named in one message.
const NAMED: usize = 10;

/// Returns the delay of one definition: its occurrences claimed late, or skipped because they were due before
/// `eligible_since`. `None` if there are none.
pub(super) fn missed(
    definition: &Definition,
    claims: &[NewClaim],
    eligible_since: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Option<Delay> {
    let skipped = |claim: &NewClaim| matches!(claim.purpose, Purpose::Skip(_) | Purpose::SkipSince(..));
    let missed: Vec<&NewClaim> = claims
        .iter()
        .filter(|claim| match skipped(claim) {
            true => claim.occurrence.at < eligible_since.min(now),
            false => is_late(claim.occurrence.at, now),
        })
        .collect();
    let (first, last) = (missed.first()?, missed.last()?);
    let from = match &first.purpose {
        Purpose::SkipSince(from, _) => *from,
        _ => first.occurrence.at,
    };
    let (count, skips) = (missed.len(), missed.iter().copied().filter(|claim| skipped(claim)).count());
    let more = if from < first.occurrence.at { " or more" } else { "" };
    let time = |at| moment(at, definition.zone, now);
    let job = definition.title();
    let policy = match definition.on_missed {
        OnMissed::Latest => "`on_missed: latest`",
        OnMissed::All => "`on_missed: all`",
        OnMissed::Skip => "`on_missed: skip`",
    };
    let text = match (count, skips) {
        (1, 0) => format!("{job} is late: it was due at {} and runs now", time(from)),
        (1, _) if more.is_empty() => {
            format!("{job} was skipped: it was due at {}, when nothing could run ({policy})", time(from))
        }
        _ => {
            let (from, to) = (time(from), time(last.occurrence.at));
            let what = match count - skips {
                0 => "all are skipped".to_owned(),
                1 if skips > 0 => "one runs now, the others are skipped".to_owned(),
                runs if skips > 0 => format!("{runs} run now, the others are skipped"),
                _ => "all run now, in turn".to_owned(),
            };
            format!("{job} was due {count} times{more} from {from} to {to}, when nothing could run: {what} ({policy})")
        }
    };
    Some(Delay {
        id: definition.id.clone(),
        made_by: definition.maker(),
        channel: definition.channel.clone(),
        occurrences: u32::try_from(count).unwrap_or(u32::MAX),
        folds: (definition.kind() == Kind::Routine).then(|| definition.id.clone()),
        last: last.occurrence.at,
        text: format!("{text}."),
    })
}

/// Joins the texts about all occurrences that were missed together into one message.
pub(super) fn fold(texts: &[String]) -> String {
    if texts.len() < 2 {
        return texts.concat();
    }
    let mut lines = vec![format!("{} jobs did not run at their time:", texts.len())];
    lines.extend(texts.iter().take(NAMED).map(|text| format!("- {text}")));
    let left = texts.len().saturating_sub(NAMED);
    if left > 0 {
        lines.push(format!("- and {left} more: `ollim-bot runs` shows them."));
    }
    lines.join("\n")
}

/// Returns how punctual the first attempt at an occurrence is if it begins at `now`, and `by` held it back. Each routine's delays are
/// counted separately, those of all reminders together.
pub(super) fn punctuality(
    definition: &Definition,
    due: DateTime<Utc>,
    by: Option<DelayCause>,
    now: DateTime<Utc>,
) -> Punctuality {
    // The person knows when the answer came.
    if by == Some(DelayCause::Approval) {
        return Punctuality::Unknown;
    }
    let (id, job, zone) = (definition.id.clone(), definition.title(), definition.zone);
    let (name, all) = match definition.kind() {
        Kind::Routine | Kind::Webhook => (id.clone(), format!("{job} is on time again; it was")),
        Kind::Reminder | Kind::Session => {
            (DefinitionId::new(""), "reminders are on time again; others were".to_owned())
        }
    };
    if is_late(due, now) {
        let due_at = moment(due, zone, now);
        let text = match by.filter(|by| !matches!(by, DelayCause::Slot | DelayCause::SlotOfJobs)) {
            Some(by) => format!("{job} is late: it was due at {due_at}, had to wait, and runs now: {by}."),
            None => format!(
                "{job} is late: it was due at {due_at}, had to wait, and runs now. `ollim-bot status` shows what waits; \
                 `max_concurrent_runs` says how many jobs run at once."
            ),
        };
        let (made_by, channel, folds) = (definition.maker(), definition.channel.clone(), Some(name));
        return Punctuality::Late(Delay { id, made_by, channel, occurrences: 1, folds, last: due, text });
    }
    let words = move |folded: UnreportedDelays| {
        let times = if folded.occurrences == 1 { "once".to_owned() } else { format!("{} times", folded.occurrences) };
        format!("{all} late or skipped {times} more since {}.", moment(folded.since, zone, now))
    };
    Punctuality::OnTime { name, made_by: definition.maker(), words: Box::new(words) }
}
