//! Edits: the file at the moment of firing counts, and no edit loses a reminder.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::super::Loaded;
use super::support::*;
use crate::agent::FailureClass;
use crate::definition::{Definition, DefinitionId, OnOverlap};
use crate::journal::RunState;

fn slow(world: &World) {
    world.script(|_| vec![Act::Take(Duration::from_secs(600))]);
}

fn edit(world: &World, process: &Process, definition: &Definition) {
    world.write(std::slice::from_ref(definition));
    process.schedule.upsert(loaded(definition));
}

fn delete(world: &World, process: &Process, definition: &Definition) {
    world.files.files.lock().unwrap().remove(&definition.file);
    process.schedule.remove(definition.id.clone());
}

#[tokio::test(start_paused = true)]
async fn the_definition_that_counts_is_that_of_the_moment() {
    let world = World::new();
    let process = world.begin(&[reminder("tea"), routine("mail")]);
    minutes(30).await;
    edit(&world, &process, &Definition { body: "green tea".to_owned(), ..reminder("tea") });
    edit(&world, &process, &with_cron(routine("mail"), "45 * * * *", OnOverlap::Skip));
    minutes(31).await;
    assert_eq!(world.started(), ["mail 01T12:45:00", "tea 01T13:00:00"]);
    assert_eq!(world.starts()[1].body, "green tea");
    let record = world.reader().runs(&crate::journal::RunFilter::default()).unwrap();
    assert!(record[0].definition.as_ref().unwrap().contains("green tea"));
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_or_disabled_one_does_not_fire() {
    let world = World::new();
    let process = world.begin(&[reminder("tea"), reminder("milk"), routine("mail")]);
    minutes(30).await;
    delete(&world, &process, &reminder("tea"));
    edit(&world, &process, &Definition { enabled: false, ..reminder("milk") });
    edit(&world, &process, &Definition { enabled: false, ..routine("mail") });
    minutes(300).await;
    assert_eq!(world.started(), [""; 0]);
    // Enabled again: there is no backlog, and a reminder whose time has passed is reported.
    edit(&world, &process, &routine("mail"));
    edit(&world, &process, &reminder("milk"));
    minutes(5).await;
    assert_eq!(world.started(), [""; 0]);
    assert_eq!(world.files_failed().len(), 1);
    assert!(world.notifications()[0].starts_with("reminder milk was disabled when it fell due"));
    minutes(60).await;
    assert_eq!(world.started(), ["mail 01T18:00:00"]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_time_given_while_it_runs_is_a_new_occurrence() {
    let world = World::new();
    slow(&world);
    let process = world.begin(&[reminder("tea")]);
    minutes(65).await;
    let later = at_time(reminder("tea"), march("01T15:00:00"));
    edit(&world, &process, &later);
    minutes(10).await;
    assert_eq!(world.remaining_files(), ["reminders/tea.md"], "the edit is not lost");
    minutes(120).await;
    assert_eq!(world.started(), ["tea 01T13:00:00", "tea 01T15:00:00"]);
    assert_eq!(world.remaining_files(), [""; 0]);
    process.stop(Duration::ZERO).await;
}

/// The file is written, but the edit is not reported yet when the run ends.
#[tokio::test(start_paused = true)]
async fn an_edit_that_was_not_heard_of_yet_is_not_lost_either() {
    let world = World::new();
    slow(&world);
    let process = world.begin(&[reminder("tea")]);
    minutes(65).await;
    let later = at_time(reminder("tea"), march("01T15:00:00"));
    world.write(std::slice::from_ref(&later));
    minutes(10).await;
    assert_eq!(world.remaining_files(), ["reminders/tea.md"]);
    process.schedule.upsert(loaded(&later));
    minutes(120).await;
    assert_eq!(world.started(), ["tea 01T13:00:00", "tea 01T15:00:00"]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn other_words_given_while_it_runs_are_kept() {
    let world = World::new();
    slow(&world);
    let process = world.begin(&[reminder("tea")]);
    minutes(65).await;
    edit(&world, &process, &Definition { body: "green tea".to_owned(), ..reminder("tea") });
    minutes(60).await;
    assert_eq!(world.starts().len(), 1);
    let [(file, reason)] = &world.files_failed()[..] else { panic!("it is gone") };
    assert_eq!(file, "reminders/tea.md");
    assert!(reason.contains("completed before this edit"), "{reason}");
    let messages = world.notifications();
    assert!(messages.len() == 1 && messages[0].contains("with the text from before"), "{messages:?}");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_slot_follows_its_file() {
    let mut world = World::new();
    world.slots = 1;
    world.script(|job| match job.occurrence.id.as_str() {
        "first" => vec![Act::Take(Duration::from_secs(600))],
        _ => vec![],
    });
    let first = at_time(reminder("first"), march("01T12:59:59"));
    let names = ["deleted", "disabled", "moved", "broken", "broken-deleted", "broken-another"];
    let waiting: Vec<Definition> = names.iter().map(|id| reminder(id)).collect();
    let process = world.begin(&[vec![first], waiting.clone()].concat());
    minutes(65).await;
    assert_eq!(world.starts().len(), 1);
    delete(&world, &process, &waiting[0]);
    edit(&world, &process, &Definition { enabled: false, ..waiting[1].clone() });
    edit(&world, &process, &at_time(waiting[2].clone(), march("01T14:00:00")));
    // The file is not valid at the moment, but exists.
    for broken in &waiting[3..] {
        process.schedule.remove(broken.id.clone());
    }
    minutes(7).await;
    delete(&world, &process, &waiting[4]);
    process.schedule.recheck(waiting[4].file.clone());
    let another = Definition { id: DefinitionId::new("another"), ..waiting[5].clone() };
    edit(&world, &process, &at_time(another, march("01T15:00:00")));
    process.schedule.recheck(waiting[5].file.clone());
    minutes(3).await;
    let mut attempts = world.attempts();
    attempts.sort();
    assert_eq!(
        attempts,
        [
            "broken 01T13:00 claimed",
            "broken-another 01T13:00 skipped: its file now says something else",
            "broken-deleted 01T13:00 skipped: its file was deleted before it could run",
            "deleted 01T13:00 skipped: its file was deleted before it could run",
            "disabled 01T13:00 skipped: disabled: it was disabled before it could run",
            "first 01T12:59 completed",
            "moved 01T13:00 skipped: its time was changed",
        ]
    );
    let mended = Definition { body: "mended".to_owned(), ..waiting[3].clone() };
    edit(&world, &process, &mended);
    minutes(60).await;
    assert_eq!(world.started()[1..], ["broken 01T13:15:00", "moved 01T14:00:00"]);
    assert_eq!(world.starts()[1].body, "mended");
    assert_eq!(
        world.remaining_files(),
        ["reminders/broken-another.md"],
        "another reminder's by now, whose time is to come"
    );
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_missing_folder_ends_if_that_comes_back_without_its_file() {
    let mut world = World::new();
    world.slots = 1;
    world.script(|job| match job.occurrence.id.as_str() {
        "first" => vec![Act::Take(Duration::from_secs(600))],
        _ => vec![],
    });
    let process = world.begin(&[at_time(reminder("first"), march("01T12:59:59")), reminder("tea")]);
    minutes(65).await;
    // The file's content cannot be seen at the moment.
    process.schedule.remove(reminder("tea").id);
    minutes(7).await;
    assert_eq!(world.attempts(), ["first 01T12:59 completed", "tea 01T13:00 claimed"]);
    delete(&world, &process, &reminder("tea"));
    process.schedule.recheck("reminders".into());
    minutes(3).await;
    let skipped = "tea 01T13:00 skipped: its file was deleted before it could run";
    assert_eq!(world.attempts(), ["first 01T12:59 completed", skipped]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_another_reminders_when_a_run_ends_stays() {
    let ends = [vec![], vec![fails(FailureClass::NeedsClaude)]];
    for end in ends {
        let world = World::new();
        let script = end.clone();
        world.script(move |_| [vec![Act::Take(Duration::from_secs(600))], script.clone()].concat());
        let process = world.begin(&[reminder("tea")]);
        minutes(65).await;
        let milk = Definition { id: DefinitionId::new("milk"), ..at_time(reminder("tea"), march("01T15:00:00")) };
        process.schedule.remove(reminder("tea").id);
        edit(&world, &process, &milk);
        minutes(30).await;
        assert_eq!(world.remaining_files(), ["reminders/tea.md"], "{end:?}");
        minutes(90).await;
        assert_eq!(world.started(), ["tea 01T13:00:00", "milk 01T15:00:00"]);
        process.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_renamed_just_as_it_is_cleaned_up_is_not_left_over() {
    for end in [vec![], vec![fails(FailureClass::NeedsClaude)]] {
        let world = World::new();
        let script = end.clone();
        world.script(move |_| [vec![Act::Take(Duration::from_secs(60))], script.clone()].concat());
        let tea = reminder("tea");
        let process = world.begin(std::slice::from_ref(&tea));
        minutes(60).await;
        seconds(30).await;
        // The rename is not reported yet when the run ends.
        let renamed = Definition { file: "reminders/renamed/tea.md".into(), ..tea.clone() };
        let mut files = std::mem::take(&mut *world.files.files.lock().unwrap());
        files.remove(&tea.file);
        files.insert(renamed.file.clone(), text(&tea));
        *world.files.files.lock().unwrap() = files;
        minutes(2).await;
        assert_eq!(world.remaining_files(), ["reminders/renamed/tea.md"]);
        process.schedule.upsert(Loaded { definition: Arc::new(renamed), text: text(&tea).into() });
        minutes(1).await;
        assert_eq!(world.remaining_files(), [""; 0], "{end:?}");
        assert_eq!(world.files_failed().len(), end.len(), "{end:?}");
        assert_eq!(world.starts().len(), 1);
        process.stop(Duration::ZERO).await;
    }
}

/// The edit is not reported when the occurrence fires. The content of the file counts, with all its consequences.
#[tokio::test(start_paused = true)]
async fn an_edit_just_before_it_fires_counts() {
    let world = World::new();
    let names = ["deleted", "disabled", "moved", "broken", "another", "edited"];
    let tea: Vec<Definition> = names.iter().map(|id| reminder(id)).collect();
    let mail: Vec<Definition> = ["mail", "mail-gone"].iter().map(|id| routine(id)).collect();
    let process = world.begin(&[tea.clone(), mail.clone()].concat());
    minutes(59).await;
    world.write(&[
        Definition { enabled: false, ..tea[1].clone() },
        at_time(tea[2].clone(), march("01T14:00:00")),
        at_time(
            Definition { id: DefinitionId::new("other"), file: tea[4].file.clone(), ..reminder("other") },
            march("01T15:00:00"),
        ),
        Definition { body: "green tea".to_owned(), ..tea[5].clone() },
        Definition { body: "by hand".to_owned(), ..mail[0].clone() },
    ]);
    {
        let mut files = world.files.files.lock().unwrap();
        files.remove(&tea[0].file);
        files.remove(&mail[1].file);
        files.insert(tea[3].file.clone(), "half of it".to_owned());
    }
    minutes(2).await;
    let mut attempts = world.attempts();
    attempts.sort();
    assert_eq!(
        attempts,
        [
            "another 01T13:00 skipped: its file now says something else",
            "broken 01T13:00 claimed",
            "deleted 01T13:00 skipped: its file was deleted before it could run",
            "disabled 01T13:00 skipped: disabled: it was disabled before it could run",
            "edited 01T13:00 completed",
            "mail 01T13:00 completed",
            "mail-gone 01T13:00 skipped: its file was deleted before it could run",
            "moved 01T13:00 skipped: its time was changed",
        ]
    );
    let mut bodies: Vec<String> = world.starts().into_iter().map(|start| start.body).collect();
    bodies.sort();
    assert_eq!(bodies, ["by hand", "green tea"]);
    edit(&world, &process, &tea[3]);
    minutes(60).await;
    let started = world.started();
    assert!(started[2] == "broken 01T13:01:00" && started.contains(&"moved 01T14:00:00".to_owned()), "{started:?}");
    assert_eq!(world.remaining_files(), ["reminders/another.md", "routines/mail.md"]);
    process.stop(Duration::ZERO).await;
}

/// Removes the file a minute before its time. The removal is not reported when the time comes.
async fn gone_just_before_it_fires(world: &World, one: &Definition) -> Process {
    let process = world.begin(std::slice::from_ref(one));
    minutes(59).await;
    world.files.files.lock().unwrap().remove(&one.file);
    seconds(60).await;
    process
}

/// During a rename, a file has neither name.
#[tokio::test(start_paused = true)]
async fn one_that_is_renamed_just_before_it_fires_runs_once() {
    let world = World::new();
    let tea = reminder("tea");
    let process = gone_just_before_it_fires(&world, &tea).await;
    let renamed = Definition { file: "reminders/renamed/tea.md".into(), ..tea.clone() };
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(world.started(), [""; 0]);
    edit(&world, &process, &renamed);
    minutes(10).await;
    assert_eq!(world.attempts(), ["tea 01T13:00 completed"]);
    assert_eq!(world.remaining_files(), [""; 0]);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_file_that_never_stops_changing_keeps_nothing_from_running() {
    let world = World::new();
    world.files.restless.store(true, Ordering::SeqCst);
    let process = world.begin(&[reminder("tea"), routine("mail")]);
    minutes(61).await;
    let mut bodies: Vec<String> = world.starts().into_iter().map(|start| start.body).collect();
    bodies.sort();
    assert_eq!(bodies, ["mail!", "tea!"], "as they were read again");
    let recent = process.schedule.snapshot(0).await.recent;
    assert_eq!(recent.len(), 2, "what was not launched is not among what was: {recent:?}");
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_is_ended_while_its_file_is_looked_at_does_not_run() {
    let world = World::new();
    let tea = reminder("tea");
    let process = gone_just_before_it_fires(&world, &tea).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let run = process.schedule.snapshot(0).await.active[0].run.clone();
    assert_eq!(process.schedule.cancel_run(run).await, Ok(RunState::Cancelled));
    assert_eq!(world.attempts(), ["tea 01T13:00 cancelled: a person ended it"]);
    assert_eq!(world.starts().len(), 0);
    process.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_paused_while_its_file_is_looked_at_waits() {
    let world = World::new();
    let tea = reminder("tea");
    let process = gone_just_before_it_fires(&world, &tea).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    process.schedule.pause().await.unwrap();
    world.write(std::slice::from_ref(&tea));
    minutes(10).await;
    assert_eq!(world.started(), [""; 0]);
    process.schedule.resume().await.unwrap();
    minutes(1).await;
    assert_eq!(world.started(), ["tea 01T13:10:00"]);
    process.stop(Duration::ZERO).await;
}

/// An editor or a sync tool removes the file and puts it back.
#[tokio::test(start_paused = true)]
async fn a_replaced_file_keeps_its_place_and_a_restored_one_has_no_backlog() {
    let world = World::new();
    let mail = || routine("mail");
    let process = world.begin(&[mail()]);
    minutes(59).await;
    seconds(59).await;
    delete(&world, &process, &mail());
    seconds(2).await;
    edit(&world, &process, &mail());
    seconds(1).await;
    assert_eq!(world.started(), ["mail 01T13:00:01"], "it fell due while the file was being replaced");
    delete(&world, &process, &mail());
    minutes(180).await;
    edit(&world, &process, &mail());
    minutes(30).await;
    assert_eq!(world.starts().len(), 1, "back after three hours: {:?}", world.started());
    process.stop(Duration::ZERO).await;
}

/// A reminder's file is away at its very time. It counts as being replaced for ten seconds, and after that as deleted. If it comes back
/// later, the person is told that it has not run.
#[tokio::test(start_paused = true)]
async fn a_reminder_whose_file_is_away_at_its_time_runs_or_is_told() {
    for (away, started, told) in [(5, vec!["tea 01T13:00:05"], 0), (20, vec![], 1)] {
        let world = World::new();
        let process = world.begin(&[reminder("tea")]);
        minutes(59).await;
        seconds(59).await;
        // The watch has not seen it yet.
        world.files.files.lock().unwrap().remove(&reminder("tea").file);
        seconds(away + 1).await;
        edit(&world, &process, &reminder("tea"));
        minutes(1).await;
        assert_eq!(world.started(), started);
        let messages = world.notifications();
        assert_eq!(messages.len(), told, "{messages:?}");
        assert!(messages.iter().all(|text| text.contains("its file was deleted before it could run")), "{messages:?}");
        assert_eq!((world.files_failed().len(), world.remaining_files().len()), (told, 0));
        process.stop(Duration::ZERO).await;
    }
}

/// A routine of the same id has a record at the reminder's time.
#[tokio::test(start_paused = true)]
async fn a_reminder_that_takes_a_routines_id_and_time_is_told() {
    let world = World::new();
    let process = world.begin(&[routine("tea")]);
    minutes(61).await;
    assert_eq!(world.started(), ["tea 01T13:00:00"]);
    delete(&world, &process, &routine("tea"));
    edit(&world, &process, &reminder("tea"));
    minutes(1).await;
    let messages = world.notifications();
    assert!(messages.len() == 1 && messages[0].contains("a routine of the same id"), "{messages:?}");
    assert_eq!((world.files_failed().len(), world.remaining_files().len()), (1, 0));
    process.stop(Duration::ZERO).await;
}

/// A completed reminder whose file comes back (`git checkout`) is only cleaned up.
#[tokio::test(start_paused = true)]
async fn a_done_reminder_that_comes_back_is_cleaned_up() {
    let world = World::new();
    let process = world.begin(&[reminder("tea")]);
    minutes(61).await;
    process.schedule.remove(reminder("tea").id);
    edit(&world, &process, &reminder("tea"));
    minutes(1).await;
    assert_eq!((world.starts().len(), world.remaining_files().len()), (1, 0));
    process.stop(Duration::ZERO).await;
}

/// A file that is put back before its removal was seen looks like one that has stayed. It is treated like one that is put back later.
#[tokio::test(start_paused = true)]
async fn a_done_reminder_that_is_put_back_at_once_is_cleaned_up_again() {
    for (end, failed) in [(None, 0), (Some(fails(FailureClass::ErrorResult)), 1)] {
        let world = World::new();
        world.script(move |_| end.clone().into_iter().collect());
        world.files.comes_back.store(true, Ordering::SeqCst);
        let process = world.begin(&[reminder("tea")]);
        minutes(61).await;
        assert_eq!((world.starts().len(), world.remaining_files()), (1, Vec::new()));
        assert_eq!(world.files_failed().len(), failed);
        let told = world.notifications().into_iter().filter(|text| text.contains("its time has had its run already"));
        assert_eq!(told.count(), failed);
        process.stop(Duration::ZERO).await;
    }
}

/// An edit that the watch has seen before the cleanup found it.
#[tokio::test(start_paused = true)]
async fn a_reminder_that_is_edited_during_its_cleanup_is_kept() {
    let world = World::new();
    world.files.edited_meanwhile.store(true, Ordering::SeqCst);
    let process = world.begin(&[reminder("tea")]);
    minutes(61).await;
    assert_eq!((world.starts().len(), world.remaining_files()), (1, Vec::new()));
    assert_eq!((world.files_failed().len(), world.notifications().len()), (1, 1));
    process.stop(Duration::ZERO).await;
}

/// A full re-read: definitions missing from it are gone, unchanged ones stay as they were.
#[tokio::test(start_paused = true)]
async fn the_safety_net_changes_nothing_that_has_not_changed() {
    let world = World::new();
    slow(&world);
    let process = world.begin(&[reminder("tea"), routine("mail"), routine("gone")]);
    minutes(61).await;
    process.schedule.replace(vec![loaded(&reminder("tea")), loaded(&routine("mail"))]);
    minutes(120).await;
    let mut started = world.started();
    started.sort();
    assert_eq!(
        started,
        ["gone 01T13:00:00", "mail 01T13:00:00", "mail 01T14:00:00", "mail 01T15:00:00", "tea 01T13:00:00"]
    );
    process.stop(Duration::from_secs(700)).await;
}
