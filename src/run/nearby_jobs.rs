//! The other background jobs that a prompt mentions, so that a run can leave a task to a later one.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::prompt::NearbyJob;
use crate::definition::Definition;
use crate::policy::on_one_line;
use crate::schedule::Schedule;

/// All jobs that are due within this time are mentioned.
const SOON: TimeDelta = TimeDelta::hours(3);
/// Minimum number of mentioned upcoming jobs, unless fewer are due within `AT_MOST`.
const AT_LEAST: usize = 3;
/// Jobs that are due later than this are never mentioned.
const AT_MOST: TimeDelta = TimeDelta::hours(12);
/// Maximum length of a description, in characters.
const LONGEST_DESCRIPTION: usize = 200;
/// Number of upcoming occurrences to look at, including those of foreground jobs.
const MAX_UPCOMING: usize = 64;

/// Returns the background jobs around `now`, except `own`, in order of time.
pub async fn around(own: &Definition, now: DateTime<Utc>, schedule: &Schedule) -> Vec<NearbyJob> {
    let snapshot = schedule.snapshot(MAX_UPCOMING).await;
    select(own, now, &snapshot.recent, &snapshot.next)
}

type Timed = (DateTime<Utc>, Arc<Definition>);

fn select(own: &Definition, now: DateTime<Utc>, recent: &[Timed], next: &[Timed]) -> Vec<NearbyJob> {
    let other = |(_, definition): &&Timed| {
        definition.id != own.id && !same_chain(own, definition) && definition.background().is_some()
    };
    let coming = next.iter().filter(other).enumerate();
    let coming = coming.take_while(|(count, (at, _))| *at - now <= if *count < AT_LEAST { AT_MOST } else { SOON });
    recent
        .iter()
        .filter(other)
        .chain(coming.map(|(_, timed)| timed))
        .map(|(at, definition)| NearbyJob {
            at: *at,
            title: definition.title(),
            // The description of a job that another job made is left out, so that it cannot influence other jobs.
            description: match definition.created_by {
                Some(_) => String::new(),
                None => on_one_line(&definition.description, LONGEST_DESCRIPTION),
            },
        })
        .collect()
}

/// Returns whether both definitions are checks of one chain. The prompt describes the run's own chain separately.
fn same_chain(one: &Definition, other: &Definition) -> bool {
    one.chain().is_some_and(|chain| other.chain().is_some_and(|other| other.parent == chain.parent))
}

#[cfg(test)]
mod tests {
    use super::super::prompt::tests::reminder;
    use super::*;
    use crate::definition::{Background, DefinitionId, Mode};

    fn job(name: &str, mode: Mode) -> Arc<Definition> {
        Arc::new(Definition { id: DefinitionId::new(name), ..reminder(mode, None) })
    }

    #[test]
    fn those_soon_at_least_three_and_never_beyond_twelve_hours() {
        let now = DateTime::UNIX_EPOCH;
        let background = || Mode::Background(Background::default());
        let check = |hours: &[(i64, &str)], expect: &[&str]| {
            let next: Vec<Timed> =
                hours.iter().map(|(hours, name)| (now + TimeDelta::hours(*hours), job(name, background()))).collect();
            let found: Vec<String> =
                select(&job("own", background()), now, &[], &next).into_iter().map(|one| one.title).collect();
            assert_eq!(found, expect.iter().map(|name| format!("reminder {name}")).collect::<Vec<_>>(), "{hours:?}");
        };
        check(&[(1, "a"), (1, "own"), (2, "b"), (3, "c"), (3, "d"), (4, "e")], &["a", "b", "c", "d"]);
        check(&[(1, "a"), (5, "b"), (12, "c"), (12, "d")], &["a", "b", "c"]);
        check(&[(1, "a"), (13, "b")], &["a"]);
    }

    #[test]
    fn recent_ones_come_first_and_foreground_ones_do_not_count() {
        let now = DateTime::UNIX_EPOCH;
        let background = || Mode::Background(Background::default());
        let recent = [(now - TimeDelta::minutes(5), job("a", background())), (now, job("b", Mode::Foreground))];
        let next = [(now, job("c", Mode::Foreground)), (now, job("d", background()))];
        let found: Vec<String> =
            select(&job("own", background()), now, &recent, &next).into_iter().map(|one| one.title).collect();
        assert_eq!(found, ["reminder a", "reminder d"]);
    }

    #[test]
    fn links_of_its_own_chain_are_not_among_them() {
        let now = DateTime::UNIX_EPOCH;
        let link = |name: &str, chain| {
            let mode = Mode::Background(Background::default());
            Arc::new(Definition { id: DefinitionId::new(name), ..reminder(mode, chain) })
        };
        let recent = [(now, link("first", Some((0, 2)))), (now, link("other", None))];
        let names =
            |own: &Definition| select(own, now, &recent, &[]).into_iter().map(|one| one.title).collect::<Vec<_>>();
        assert_eq!(names(&link("own", Some((1, 2)))), ["reminder other"]);
        assert_eq!(names(&link("own", None)), ["reminder first", "reminder other"]);
    }
}
