//! What must be so when a folder has come to rest, whatever was killed before.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::Tally;
use crate::jobs::{FOLLOWER, Job, Kind, PAYS_FOR, ROUTINES, WATCHER, WEBHOOK};
use crate::world::World;

/// Where the client writes in a run's folder what is to stay.
pub const KEPT: &str = "claude/projects";

/// An occurrence that was cut off so often is given up (docs/lifecycle.md).
const CUT_OFF_AT_MOST: usize = 10;

#[derive(Debug)]
pub struct Occurrence {
    pub id: String,
    pub kind: String,
    pub at: i64,
    pub outcome: Option<String>,
    /// The file's text as it fired.
    pub text: String,
    /// Its attempts, in order.
    pub runs: Vec<Run>,
}

#[derive(Debug)]
pub struct Run {
    pub run: String,
    pub attempt: i64,
    pub state: String,
    pub effect: Option<String>,
    /// How often its client was started.
    pub starts: usize,
    /// How many effects its client had.
    pub effects: usize,
}

pub struct Message {
    pub number: i64,
    pub text: String,
    /// Where alone it goes.
    pub channel: Option<String>,
    pub delivered: bool,
}

impl Occurrence {
    pub fn name(&self) -> String {
        format!("{} {} at {}", self.kind, self.id, self.at)
    }

    fn is(&self, outcome: &str) -> bool {
        self.outcome.as_deref() == Some(outcome)
    }

    fn is_link(&self) -> bool {
        self.text.contains("\nchain_depth: 1\n")
    }

    pub fn is_completed(&self) -> bool {
        self.is("completed")
    }

    pub fn has(&self, job: &Job) -> bool {
        self.text.contains(&job.body())
    }

    fn kind_of_work(&self) -> Kind {
        let words = |kind: &Kind| self.text.contains(&format!("kind={} ", kind.word()));
        let kind = Kind::ALL.into_iter().find(words).unwrap_or(Kind::Foreground);
        if kind == Kind::Quiet && !self.text.contains("background: true") { Kind::Foreground } else { kind }
    }
}

/// All that is wrong.
pub fn everything(world: &World, tally: &mut Tally) -> Vec<String> {
    let mut wrong = Vec::new();
    let journal = world.journal().unwrap();
    let occurrences = occurrences(world, &journal);
    let messages = messages(&journal);
    integrity(&journal, &mut wrong);
    outcomes(&occurrences, &mut wrong);
    starts(std::slice::from_ref(&world.setting.home), &occurrences, &mut wrong);
    reminders(&world.jobs, &occurrences, &messages, &mut wrong);
    routines(world, &occurrences, &mut wrong);
    gates(world, &occurrences, &mut wrong);
    costs(world, &journal, &mut wrong);
    followers(&journal, &occurrences, &mut wrong);
    bursts(&journal, &mut wrong);
    deliveries(world, &journal, &occurrences, &mut wrong);
    files(world, &occurrences, &mut wrong);
    words(world, &occurrences, &messages, &mut wrong);
    shown(world, &messages, &mut wrong);
    wrong.extend(world.chats.check(&world.jobs, &occurrences, &messages, world.lives));
    for occurrence in &occurrences {
        *tally.outcomes.entry(occurrence.outcome.clone().unwrap_or_default()).or_default() += 1;
        tally.again += usize::from(occurrence.runs.len() > 1);
    }
    wrong
}

fn integrity(journal: &Connection, wrong: &mut Vec<String>) {
    let found: String = journal.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    if found != "ok" {
        wrong.push(format!("the journal's file: {found}"));
    }
}

/// Exactly one outcome each; another attempt only after one that was over without an effect.
pub fn outcomes(occurrences: &[Occurrence], wrong: &mut Vec<String>) {
    for occurrence in occurrences {
        let Some((last, earlier)) = occurrence.runs.split_last() else {
            wrong.push(format!("{}: it has no attempt", occurrence.name()));
            continue;
        };
        let mut check = |holds: bool, what: &str| {
            if !holds {
                wrong.push(format!("{}: {what}: {occurrence:#?}", occurrence.name()));
            }
        };
        check(occurrence.outcome.as_ref() == Some(&last.state), "its outcome is its last attempt's end");
        let known = ["completed", "failed", "skipped"].contains(&last.state.as_str());
        check(known, "nobody cancels anything here, and nothing is slow");
        check((1..).zip(&occurrence.runs).all(|(n, run)| run.attempt == n), "its attempts are counted");
        for run in earlier {
            check(run.state == "interrupted" || run.state == "failed", "an attempt before the last one was over");
            check(run.effect.is_none() && run.effects == 0, "it ran again after an effect");
        }
        // What fails here by itself says so; all else only fails when it was cut off after an effect.
        let fails = matches!(occurrence.kind_of_work(), Kind::Fail | Kind::Flaky);
        let gives_up = earlier.iter().filter(|run| run.state == "interrupted").count() + 1 >= CUT_OFF_AT_MOST;
        let may_fail = fails || last.effect.is_some() || gives_up;
        check(!occurrence.is("failed") || may_fail, "it failed though it had had no effect");
        check(!(fails && occurrence.is("completed")), "it cannot have been completed");
    }
}

/// Every client was started for a claimed attempt, at most once, and had its effect after the mark, at most once.
pub fn starts(homes: &[PathBuf], occurrences: &[Occurrence], wrong: &mut Vec<String>) {
    let known: BTreeMap<&str, &Occurrence> =
        occurrences.iter().flat_map(|o| o.runs.iter().map(move |run| (run.run.as_str(), o))).collect();
    for name in homes.iter().flat_map(|home| names(&home.join("state/runs"))) {
        // The main session's client has one for all its turns.
        if name != "main" && !known.contains_key(name.as_str()) {
            wrong.push(format!("run {name} has a folder, and no claim"));
        }
    }
    for occurrence in occurrences {
        let mut check = |holds: bool, what: &str| {
            if !holds {
                wrong.push(format!("{}: {what}: {occurrence:#?}", occurrence.name()));
            }
        };
        for run in &occurrence.runs {
            check(run.starts <= 1, "one attempt started its client more than once");
            check(run.effects == 0 || run.effect.is_some(), "an effect without its mark");
            let has_client = !matches!(occurrence.kind_of_work(), Kind::OnTelegram | Kind::OnDiscord);
            let starts = usize::from(has_client);
            check(run.state != "completed" || run.starts == starts, "it was completed without a start");
            check(run.state != "skipped" || run.starts == 0, "it was skipped and started");
        }
        let effects: usize = occurrence.runs.iter().map(|run| run.effects).sum();
        check(effects <= 1, "its effect happened more than once");
        let has_one = matches!(occurrence.kind_of_work(), Kind::Effect | Kind::Slow | Kind::Line);
        check(effects == 1 || !has_one || !occurrence.is("completed"), "it was completed without its effect");
    }
}

/// Each reminder that was given fired once, made its link once, and told the person once.
pub fn reminders(jobs: &[Job], occurrences: &[Occurrence], messages: &[Message], wrong: &mut Vec<String>) {
    let said = |text: &str| messages.iter().filter(|message| message.text.contains(text)).count();
    for job in jobs {
        let (links, own): (Vec<_>, Vec<_>) =
            occurrences.iter().filter(|occurrence| occurrence.has(job)).partition(|occurrence| occurrence.is_link());
        let mut check = |holds: bool, what: &str| {
            if !holds {
                wrong.push(format!("{job:?}: {what}: {own:#?}, {links:#?}"));
            }
        };
        check(own.len() == usize::from(job.there), "one occurrence if its file was there, else none");
        let Some(occurrence) = own.first() else { continue };
        check(!occurrence.is("skipped"), "a reminder runs late");
        let completed = occurrence.is("completed");
        let once_when_completed = |count: usize| if completed { count == 1 } else { count <= 1 };
        if job.kind == Kind::Chain {
            check(once_when_completed(links.len()), "its link is made once");
        }
        if job.kind == Kind::Ping {
            check(once_when_completed(said(&format!("ping {}\n", job.token))), "its message was recorded once");
        }
        if job.kind == Kind::Foreground {
            check(said(&format!("answer {}\n", job.token)) == usize::from(completed), "its answer was recorded once");
        }
        let told = |end: &str| {
            let start = format!("reminder {} failed: ", occurrence.id);
            messages.iter().filter(|message| message.text.starts_with(&start) && message.text.contains(end)).count()
        };
        check(told("Its file is kept") == usize::from(!completed), "the person is told of a failure once");
        let failed_first = occurrence.runs.iter().rev().skip(1).any(|run| run.state == "failed");
        check(
            told("It is tried again") == usize::from(failed_first),
            "the person is told of a first failed attempt once",
        );
        let worked = said(&format!("reminder {} worked at attempt ", occurrence.id));
        check(worked == usize::from(failed_first && completed), "the person is told once that a later attempt worked");
    }
}

/// Each thing that was said has one turn, one answer and no other, and the phone got that.
fn words(world: &World, occurrences: &[Occurrence], messages: &[Message], wrong: &mut Vec<String>) {
    let got = fs::read_to_string(world.phone().join("got")).unwrap_or_default();
    for token in &world.words {
        let turns: Vec<_> = occurrences.iter().filter(|o| o.id == format!("chat-phone-{token}")).collect();
        let answers: Vec<_> = messages.iter().filter(|one| one.text == format!("answer {token}\n")).collect();
        let completed = turns.iter().filter(|turn| turn.is("completed")).count();
        if turns.len() != 1 || answers.len() != completed {
            wrong.push(format!("`{token}` was said once and has {} answers: {turns:#?}", answers.len()));
        }
        for answer in answers {
            let number = format!("\"number\":{},", answer.number);
            let lives = got.split("started\n").map(|life| life.lines().filter(|line| line.contains(&number)).count());
            let shown: Vec<usize> = lives.collect();
            if !answer.delivered || shown.iter().sum::<usize>() == 0 || shown.iter().any(|times| *times > 1) {
                wrong.push(format!("the answer to `{token}` reached the phone {shown:?} times in its lives"));
            }
        }
    }
}

/// From the first recorded minute of each routine on, each minute has its one record.
fn routines(world: &World, occurrences: &[Occurrence], wrong: &mut Vec<String>) {
    for (id, ..) in ROUTINES {
        let mut minutes: Vec<i64> =
            occurrences.iter().filter(|o| o.kind == "routine" && o.id == id).map(|o| o.at).collect();
        minutes.sort_unstable();
        if minutes.iter().any(|at| at % 60_000 != 0) || minutes.windows(2).any(|two| two[1] - two[0] != 60_000) {
            wrong.push(format!("routine {id}: not each minute once: {minutes:?}"));
        }
        // It has rested for less than a minute.
        let last = minutes.last().copied().unwrap_or_default();
        if world.now().timestamp_millis() - last > 120_000 {
            wrong.push(format!("routine {id}: {last} is its last record"));
        }
    }
}

/// A gate decides once for each attempt, before its client is started, and is given what the last one kept that ended well.
fn gates(world: &World, occurrences: &[Occurrence], wrong: &mut Vec<String>) {
    let runs: BTreeMap<&str, &Run> = occurrences
        .iter()
        .filter(|occurrence| occurrence.id == "gated")
        .flat_map(|occurrence| occurrence.runs.iter().map(|run| (run.run.as_str(), run)))
        .collect();
    let text = fs::read_to_string(world.kept().join("gates")).unwrap_or_default();
    let (mut said, mut ended_well) = (BTreeMap::new(), 0);
    for line in text.lines() {
        let (folder, count) = line.rsplit_once(' ').unwrap();
        let (run, count): (_, usize) = (run_of(folder), count.parse().unwrap());
        if count != ended_well + 1 {
            wrong.push(format!("the gate of {run} counted {count} after {ended_well} that had ended well: {text}"));
        }
        if said.insert(run, count % 2 == 1).is_some() {
            wrong.push(format!("the gate of {run} decided more than once: {text}"));
        }
        let state = runs.get(run).map_or("unknown", |run| run.state.as_str());
        ended_well += usize::from(matches!(state, "completed" | "skipped"));
    }
    for (id, run) in runs {
        let wakes = said.get(id).copied();
        let agrees = match run.state.as_str() {
            // It may have been missed.
            "skipped" => wakes != Some(true),
            "completed" => wakes == Some(true),
            _ => run.starts == 0 || wakes == Some(true),
        };
        if !agrees {
            wrong.push(format!("the gate of {id} woke the agent: {wakes:?}, and yet: {run:?}"));
        }
    }
}

/// The run by whose folder a line was kept.
fn run_of(folder: &str) -> &str {
    folder.split("/runs/").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or(folder)
}

/// No more clients are started on a day than it pays for, and none is skipped before.
fn costs(world: &World, journal: &Connection, wrong: &mut Vec<String>) {
    let runs_folder = world.setting.home.join("state/runs");
    let sql = "SELECT r.run, r.launched / 86400000, r.cost_usd IS NOT NULL OR r.reserved_usd IS NOT NULL,
                 coalesce(r.error, '') LIKE 'budget%'
               FROM run r JOIN occurrence o ON o.number = r.occurrence WHERE o.id = 'paid' AND r.launched IS NOT NULL";
    let mut query = journal.prepare(sql).unwrap();
    let read = |row: &rusqlite::Row<'_>| -> rusqlite::Result<(String, i64, bool, bool)> {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    };
    // Started, paid for, skipped.
    let mut days: BTreeMap<i64, (usize, usize, usize)> = BTreeMap::new();
    for (run, day, is_paid, is_skipped) in query.query_map([], read).unwrap().map(Result::unwrap) {
        let (started, paid, skipped) = days.entry(day).or_default();
        *started += recorded(&runs_folder.join(run).join(KEPT)).0;
        *paid += usize::from(is_paid);
        *skipped += usize::from(is_skipped);
    }
    for (day, (started, paid, skipped)) in days {
        if started > PAYS_FOR || paid > PAYS_FOR {
            wrong.push(format!("day {day} pays for {PAYS_FOR} runs, and {started} were started, {paid} counted"));
        }
        if skipped > 0 && paid < PAYS_FOR {
            wrong.push(format!("day {day} pays for {PAYS_FOR} runs, and {skipped} were skipped after {paid}"));
        }
    }
}

/// Each completed run of `latest` is followed by one occurrence.
fn followers(journal: &Connection, occurrences: &[Occurrence], wrong: &mut Vec<String>) {
    let mut query = journal.prepare("SELECT occasion ->> 'run' FROM occurrence WHERE id = ?1 ORDER BY number").unwrap();
    let mut followed: Vec<String> =
        query.query_map([FOLLOWER], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let completed = occurrences.iter().filter(|occurrence| occurrence.id == "latest" && occurrence.is("completed"));
    let mut ended: Vec<String> = completed.filter_map(|occurrence| Some(occurrence.runs.last()?.run.clone())).collect();
    followed.sort();
    ended.sort();
    if followed != ended {
        wrong.push(format!("of the runs {ended:?} of `latest` these were followed: {followed:?}"));
    }
}

/// Each file that was put into the watched folder, once and in one go, is in one burst at most.
fn bursts(journal: &Connection, wrong: &mut Vec<String>) {
    let sql = "SELECT file.value, count(*) FROM occurrence, json_each(occasion, '$.files') AS file
               WHERE occurrence.id = ?1 GROUP BY file.value HAVING count(*) > 1";
    let mut query = journal.prepare(sql).unwrap();
    let twice: Vec<(String, i64)> =
        query.query_map([WATCHER], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    if !twice.is_empty() {
        wrong.push(format!("these changes have set off more than one occurrence: {twice:?}"));
    }
}

/// Each delivery, however often it was made, is one occurrence, which was completed.
fn deliveries(world: &World, journal: &Connection, occurrences: &[Occurrence], wrong: &mut Vec<String>) {
    let mut query = journal.prepare("SELECT delivery FROM occurrence WHERE id = ?1 ORDER BY delivery").unwrap();
    let found: Vec<String> = query.query_map([WEBHOOK], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut delivered: Vec<String> = world.delivered.iter().map(|key| format!("id {key}")).collect();
    delivered.sort();
    if found != delivered {
        wrong.push(format!("{delivered:?} were delivered, and these are recorded: {found:?}"));
    }
    let open = occurrences.iter().filter(|occurrence| occurrence.id == WEBHOOK && !occurrence.is("completed"));
    wrong.extend(open.map(|occurrence| format!("{}: {:?}", occurrence.name(), occurrence.outcome)));
}

fn expect(what: &str, names: &[String], expected: &[&str]) -> Option<String> {
    (names != expected).then(|| format!("{what} holds {names:?}"))
}

/// What is left is what is to be left: the routines, and in `failed/` each reminder that was not completed, once.
fn files(world: &World, occurrences: &[Occurrence], wrong: &mut Vec<String>) {
    let home = &world.setting.home;
    let failed_folder = home.join("reminders/failed");
    let ids = ROUTINES.iter().map(|(id, ..)| *id).chain([FOLLOWER, WATCHER]);
    let mut routines: Vec<String> = ids.map(|id| format!("{id}.md")).collect();
    routines.sort();
    let routines: Vec<&str> = routines.iter().map(String::as_str).collect();
    wrong.extend(expect("routines/", &names(&home.join("routines")), &routines));
    let folder: &[&str] = if failed_folder.exists() { &["failed"] } else { &[] };
    wrong.extend(expect("reminders/", &names(&home.join("reminders")), folder));
    // Of the service's own only what it goes on from: no socket, no token, no log of the journal.
    let mut state = world.left_in_state.clone();
    state.retain(|name| name != "main");
    wrong.extend(expect(
        "state/",
        &state,
        &[
            "channels",
            "gates",
            "journal.db",
            "lock",
            "log",
            "program-farm",
            "program-farm-judged",
            "program-farm.stamp",
            "runs",
        ],
    ));

    let mut kept: Vec<(PathBuf, String)> = names(&failed_folder)
        .into_iter()
        .map(|name| (failed_folder.join(&name), fs::read_to_string(failed_folder.join(&name)).unwrap()))
        .collect();
    for occurrence in occurrences.iter().filter(|o| o.kind == "reminder" && !o.is("completed")) {
        let body = occurrence.text.lines().last().unwrap();
        let of_it = |(_, text): &(PathBuf, String)| {
            text.contains(body) && text.contains("\nchain_depth: 1\n") == occurrence.is_link()
        };
        match kept.iter().position(of_it) {
            Some(place) => drop(kept.swap_remove(place)),
            None => wrong.push(format!("{} is not kept in failed/", occurrence.name())),
        }
    }
    wrong.extend(
        kept.iter().map(|(path, _)| format!("{} is kept, and did not fail (or is kept twice)", path.display())),
    );
}

/// Every message was shown; in one life at most once.
fn shown(world: &World, messages: &[Message], wrong: &mut Vec<String>) {
    let said: Vec<String> =
        (1..=world.lives).map(|life| fs::read_to_string(world.output_file(life)).unwrap_or_default()).collect();
    for message in messages.iter().filter(|message| message.channel.is_none()) {
        let line = message.text.lines().next().unwrap().trim();
        // Others may say the same: a routine's failures.
        let same = messages.iter().filter(|other| other.text.lines().next().unwrap().trim() == line).count();
        // A question that ended before it could be sent: one line says how.
        let number = line.split_once("(question ").and_then(|(_, rest)| rest.split(')').next());
        let is_over = number.map(|number| format!("Question {number} of "));
        let is_it = |words: &str| words == line || is_over.as_ref().is_some_and(|over| words.starts_with(over));
        let shown: Vec<usize> = said
            .iter()
            .map(|text| {
                text.lines().filter(|shown| shown.split_once("  ").is_some_and(|(_, words)| is_it(words))).count()
            })
            .collect();
        if !message.delivered || shown.iter().sum::<usize>() < same || shown.iter().any(|times| *times > same) {
            wrong.push(format!("`{line}` was shown {shown:?} times in the lives; delivered: {}", message.delivered));
        }
    }
}

fn occurrences(world: &World, journal: &Connection) -> Vec<Occurrence> {
    let runs_folder = world.setting.home.join("state/runs");
    let lines = fs::read_to_string(world.kept().join("lines")).unwrap_or_default();
    let mut query = journal
        .prepare(
            "SELECT o.number, o.id, o.kind, o.at, o.outcome, t.text FROM occurrence o
             LEFT JOIN definition_text t ON t.number = o.text ORDER BY o.number",
        )
        .unwrap();
    let mut runs =
        journal.prepare("SELECT run, attempt, state, effect FROM run WHERE occurrence = ?1 ORDER BY attempt").unwrap();
    let rows = query.query_map([], |row| {
        let number: i64 = row.get(0)?;
        let runs = runs.query_map([number], |row| {
            let run: String = row.get(0)?;
            let (mut starts, mut effects) = recorded(&runs_folder.join(&run).join(KEPT));
            let own = lines.lines().filter(|folder| run_of(folder) == run).count();
            (starts, effects) = (starts + own, effects + own);
            Ok(Run { attempt: row.get(1)?, state: row.get(2)?, effect: row.get(3)?, starts, effects, run })
        });
        let text = row.get::<_, Option<String>>(5)?.unwrap_or_default();
        let mut runs: Vec<Run> = runs?.collect::<Result<_, _>>()?;
        attribute(&runs_folder.join("main").join(KEPT), &text, &mut runs);
        Ok(Occurrence { id: row.get(1)?, kind: row.get(2)?, at: row.get(3)?, outcome: row.get(4)?, text, runs })
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

/// How many starts and effects clients have recorded in a folder.
pub fn recorded(folder: &Path) -> (usize, usize) {
    let lines = |name: &str| fs::read_to_string(folder.join(name)).map_or(0, |text| text.lines().count());
    (lines("starts"), lines("effects"))
}

/// What clients of the main session have recorded of a job belongs to its attempts, the last one first; what is too much, to the last.
pub fn attribute(main: &Path, text: &str, runs: &mut [Run]) {
    let word =
        text.split("token=").nth(1).and_then(|rest| rest.split(|c: char| c != '-' && !c.is_alphanumeric()).next());
    let Some(folder) = word.map(|word| main.join(word)).filter(|folder| folder.is_dir()) else { return };
    let (mut starts, mut effects) = recorded(&folder);
    for run in runs.iter_mut().rev().filter(|run| run.state != "skipped") {
        (run.starts, starts) = (starts.min(1), starts.saturating_sub(1));
        if run.effect.is_some() {
            (run.effects, effects) = (effects.min(1), effects.saturating_sub(1));
        }
    }
    if let Some(last) = runs.last_mut() {
        (last.starts, last.effects) = (last.starts + starts, last.effects + effects);
    }
}

fn messages(journal: &Connection) -> Vec<Message> {
    let mut query =
        journal.prepare("SELECT number, text, channel, delivered IS NOT NULL FROM message ORDER BY number").unwrap();
    let rows = query.query_map([], |row| {
        let text: String = row.get(1)?;
        // So that a search for a whole last word is one.
        Ok(Message { number: row.get(0)?, text: text + "\n", channel: row.get(2)?, delivered: row.get(3)? })
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

/// The names in a folder, sorted; empty if it is not there.
pub fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
