//! `export ics`: upcoming occurrences, as a third-party calendar reader parses them.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::bot::TestBot;

/// Reads a calendar with Python's icalendar. Prints each event's uid, time, summary and description, in order of time.
const READER: &str = r#"
import icalendar, json, sys
calendar = icalendar.Calendar.from_ical(sys.stdin.buffer.read())
assert not calendar.errors, calendar.errors
assert str(calendar["VERSION"]) == "2.0" and calendar["PRODID"]
events = []
for event in calendar.walk("VEVENT"):
    assert not event.errors, event.errors
    start, stamp = event.decoded("DTSTART"), event.decoded("DTSTAMP")
    assert start.utcoffset().total_seconds() == 0 and stamp.utcoffset().total_seconds() == 0
    events.append([str(event["UID"]), start.isoformat(), str(event["SUMMARY"]), str(event["DESCRIPTION"])])
print(json.dumps(sorted(events, key=lambda event: event[1])))
"#;

fn read(calendar: &str) -> Vec<[String; 4]> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cron-reference/bin/python");
    let mut reader = Command::new(python)
        .args(["-c", READER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("./scripts/test installs it");
    reader.stdin.take().unwrap().write_all(calendar.as_bytes()).unwrap();
    let output = reader.wait_with_output().unwrap();
    assert!(output.status.success(), "{calendar}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn another_reader_takes_every_occurrence_as_it_is() {
    let bot = TestBot::new();
    let long = "Ärger, 🍵; and \\ ".repeat(20);
    bot.write(
        "routines/tea.md",
        &format!("---\ndescription: \"{}\"\ncron: '30 8 * * *'\ntimezone: Asia/Tokyo\nclient: notify\n---\nFirst line,\nsecond; line.\n", long.replace('\\', "\\\\")),
    );
    bot.write("routines/jittery.md", "---\nevery: 7h\njitter: 30m\nclient: notify\n---\nx\n");
    bot.write("routines/off.md", "---\ncron: '@hourly'\nenabled: false\n---\nNo.\n");
    bot.write("reminders/past.md", "---\nrun_at: 2020-01-01T00:00:00Z\n---\nToo late.\n");
    bot.write(
        "reminders/a,b.md",
        &crate::support::bot::reminder(crate::support::bot::now() + chrono::TimeDelta::days(2), "", "x"),
    );
    let text = bot.ok(["export", "ics", "--days", "7"]);
    assert!(
        text.ends_with("END:VCALENDAR\r\n") && text.split("\r\n").all(|line| line.len() <= 75 && !line.contains('\n'))
    );
    let events = read(&text);
    let coming = bot.json(["next", "-n", "100", "--until", "in 7 days"]);
    let expected: Vec<&Value> = coming.as_array().unwrap().iter().filter(|one| one["id"] != "past").collect();
    assert_eq!(events.len(), expected.len(), "{events:#?} {coming:#}");
    for (event, expected) in events.iter().zip(expected) {
        let [uid, start, summary, description] = event;
        let at: chrono::DateTime<chrono::Utc> = expected["at"].as_str().unwrap().parse().unwrap();
        assert_eq!(start.parse::<chrono::DateTime<chrono::Utc>>().unwrap().timestamp(), at.timestamp());
        assert!(
            uid.starts_with(&format!("{}-{}", expected["id"].as_str().unwrap(), at.format("%Y%m%dT%H%M%SZ"))),
            "{uid}"
        );
        if expected["id"] == "tea" {
            assert_eq!(
                (summary.as_str(), description.as_str()),
                (long.trim(), "routine tea\n\nFirst line,\nsecond; line.")
            );
        }
    }
    let uids: std::collections::BTreeSet<&String> = events.iter().map(|[uid, ..]| uid).collect();
    assert_eq!(uids.len(), events.len(), "each has its own");
    let again = read(&bot.ok(["export", "ics", "--days", "7"]));
    assert_eq!(again, events, "and keeps it");
    let day = read(bot.json(["export", "ics", "--days", "1"])["ics"].as_str().unwrap());
    assert_eq!(day, events[..day.len()]);
    assert!((1..10).contains(&day.len()), "{day:?}");
    std::fs::remove_dir_all(bot.path("routines")).unwrap();
    std::fs::remove_dir_all(bot.path("reminders")).unwrap();
    assert_eq!(json!(read(&bot.ok(["export", "ics"]))), json!([]));
}
