//! Whether the check sees what it is there for: a folder in which all is well, and then one thing after the other is not.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use ollim_bot::failpoints::Step;
use rusqlite::Connection;

use crate::world::World;
use crate::{Binary, Tally, check};

fn wrong(world: &World) -> String {
    check::everything(world, &mut Tally::default()).join("\n")
}

/// The folder with the journal changed by `sql`, which must change something, seen as `words`; then as it was.
#[track_caller]
fn journal(world: &World, sql: &str, words: &str) {
    let path = world.setting.home.join("state/journal.db");
    let before = fs::read(&path).unwrap();
    let connection = Connection::open(&path).unwrap();
    // One file, whose bytes can be put back.
    connection.execute_batch("PRAGMA journal_mode = delete; PRAGMA foreign_keys = off;").unwrap();
    assert!(connection.execute(sql, []).unwrap() > 0, "nothing was changed: {sql}");
    drop(connection);
    let seen = wrong(world);
    fs::write(&path, before).unwrap();
    assert!(seen.contains(words), "{sql}: not seen as `{words}`, but: {seen}");
    assert_eq!(wrong(world), "", "all is well again");
}

/// The same with a file of the data folder that has another text, `None`: is not there.
#[track_caller]
fn file(world: &World, path: &Path, text: Option<&str>, words: &str) {
    let before = fs::read(path).ok();
    match text {
        Some(text) => fs::write(path, text).unwrap(),
        None => fs::remove_file(path).unwrap(),
    }
    let seen = wrong(world);
    match before {
        Some(before) => fs::write(path, before).unwrap(),
        None => fs::remove_file(path).unwrap(),
    }
    assert!(seen.contains(words), "{}: not seen as `{words}`, but: {seen}", path.display());
}

#[test]
fn the_check_sees_each_thing_that_is_not_as_it_must_be() {
    let binary = Binary::take();
    let mut world = World::new(&binary.path, 0, 7);
    let steps =
        [Step::WordRecorded, Step::Staged, Step::BeforeMark, Step::MessageRecorded, Step::LinkMade, Step::FailedCopied];
    world.until_rest(&steps, &Mutex::new(Tally::default())).unwrap();
    assert_eq!(wrong(&world), "");

    // One in the background, whose run has a folder of its own.
    let one_completed = "(SELECT min(o.number) FROM occurrence o JOIN definition_text t ON t.number = o.text
         WHERE o.kind = 'reminder' AND o.outcome = 'completed' AND t.text LIKE '%background: true%')";
    journal(&world, &format!("UPDATE occurrence SET outcome = NULL WHERE number = {one_completed}"), "its outcome is");
    journal(&world, &format!("DELETE FROM occurrence WHERE number = {one_completed}"), "has a folder, and no claim");
    journal(
        &world,
        "DELETE FROM occurrence WHERE number IN (SELECT number FROM occurrence WHERE id = 'latest' ORDER BY at LIMIT 1 OFFSET 1)",
        "not each minute once",
    );
    journal(
        &world,
        "DELETE FROM occurrence WHERE number = (SELECT max(number) FROM occurrence WHERE id = 'follower')",
        "these were followed",
    );
    journal(&world, "UPDATE run SET effect = NULL WHERE effect = 'Bash'", "an effect without its mark");
    // Messages of a channel of their own are checked where they arrive.
    journal(
        &world,
        "UPDATE message SET delivered = NULL WHERE number = (SELECT min(number) FROM message WHERE channel IS NULL)",
        "delivered: false",
    );
    journal(&world, "DELETE FROM message WHERE text LIKE 'reminder % failed: %'", "told of a failure once");
    journal(&world, "INSERT INTO message (at, text, delivered) SELECT at, text, delivered FROM message", "was shown");
    journal(&world, "DELETE FROM message WHERE text LIKE 'answer x%'", "was said once and has 0 answers");
    let got = world.phone().join("got");
    file(&world, &got, Some("started\n"), "reached the phone [");
    let given = fs::read_to_string(&got).unwrap();
    let twice: Vec<&str> = given.lines().flat_map(|line| [line, line]).collect();
    let twice = twice.join("\n").replace("started\nstarted\n", "started\n");
    file(&world, &got, Some(&twice), "reached the phone [");
    // An attempt after one that had had an effect.
    journal(
        &world,
        "UPDATE run SET attempt = 2 WHERE number IN (SELECT number FROM run WHERE effect = 'Bash' AND attempt = 1 LIMIT 1)",
        "its attempts are counted",
    );
    journal(
        &world,
        "INSERT INTO run (run, occurrence, attempt, state)
         SELECT 'ffffffff', occurrence, attempt + 1, state FROM run WHERE effect = 'Bash' LIMIT 1",
        "it ran again after an effect",
    );

    let runs = world.setting.home.join("state/runs");
    let with = |name: &str| {
        let folders = check::names(&runs).into_iter().map(|run| runs.join(run).join(check::KEPT).join(name));
        folders.into_iter().find(|path| path.exists()).unwrap()
    };
    file(&world, &with("starts"), Some("started\nstarted\n"), "started its client more than once");
    file(&world, &with("effects"), Some("effect\neffect\n"), "its effect happened more than once");
    let lines = world.kept().join("lines");
    let ran = fs::read_to_string(&lines).unwrap();
    file(&world, &lines, Some(&format!("{ran}{}", ran.lines().next().unwrap())), "its effect happened more than once");
    file(&world, &lines, Some(""), "it was completed without its effect");
    let gates = world.kept().join("gates");
    let ran = fs::read_to_string(&gates).unwrap();
    let (first, rest) = ran.split_once('\n').unwrap();
    file(&world, &gates, Some(&format!("{first}\n{ran}")), "decided more than once");
    // Another count than the first time's.
    file(&world, &gates, Some(&format!("{first}1\n{rest}")), "counted 11 after 0 that had ended well");
    file(&world, &gates, Some(""), "woke the agent: None");
    journal(
        &world,
        "DELETE FROM occurrence WHERE number IN (SELECT number FROM occurrence WHERE id = 'pulse' ORDER BY at LIMIT 1 OFFSET 1)",
        "routine pulse: not each minute once",
    );
    let of_paid = "SELECT r.run FROM run r JOIN occurrence o ON o.number = r.occurrence WHERE o.id = 'paid' AND r.error LIKE 'budget%'";
    let skipped: String = world.journal().unwrap().query_row(of_paid, [], |row| row.get(0)).unwrap();
    let folder = runs.join(skipped).join(check::KEPT);
    fs::create_dir_all(&folder).unwrap();
    file(&world, &folder.join("starts"), Some(&"started\n".repeat(6)), "pays for 5 runs, and ");
    journal(&world, "UPDATE run SET cost_usd = NULL, reserved_usd = NULL WHERE cost_usd > 0", "were skipped after");
    let reminders = world.setting.home.join("reminders");
    file(&world, &reminders.join(".ollim-abc123.tmp"), Some("half"), "reminders/ holds");
    let kept = check::names(&reminders.join("failed"));
    let (kept, text) = (reminders.join("failed").join(&kept[0]), reminders.join("failed/copy.md"));
    file(&world, &text, Some(&fs::read_to_string(&kept).unwrap()), "kept twice");
    file(&world, &kept, None, "is not kept in failed/");
    file(&world, &world.setting.home.join("routines/all.md"), None, "routines/ holds");
    assert_eq!(wrong(&world), "");
}
