//! The service's own log: one JSON line per event in `state/log/`, one file per day.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{App, Since, runs};
use crate::definition::DefinitionId;
use crate::refusal::Refusal;

/// Interval at which a followed log is polled.
const LOOK: Duration = Duration::from_millis(300);

/// Maximum number of a job's latest runs that are searched for.
const RUNS: u32 = 1000;

/// One line of the log.
#[derive(Clone, Debug, Deserialize)]
pub struct LogLine {
    /// When it was written.
    #[serde(rename = "timestamp")]
    pub at: DateTime<Utc>,
    /// `ERROR`, `WARN`, `INFO`, `DEBUG` or `TRACE`.
    pub level: String,
    /// The message.
    #[serde(default)]
    pub message: String,
    /// The values recorded with the message.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// The lines to select.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    /// Only lines that name this job, one of its runs, or this run.
    pub about: Option<String>,
    /// How far to look back.
    pub since: Option<Since>,
    /// Maximum number of lines; the newest are returned.
    pub count: usize,
}

/// The selected lines, oldest first. A followed log then yields each line as it is written.
pub struct Log {
    /// The existing lines.
    pub lines: Vec<LogLine>,
    tail: Tail,
    words: WordFilter,
}

impl Log {
    /// Returns the next line that is written. Blocks until there is one.
    pub fn next_line(&mut self) -> LogLine {
        loop {
            match self.tail.line() {
                Some(line) if self.words.are_in(&line) => return line,
                Some(_) => {}
                None => std::thread::sleep(LOOK),
            }
        }
    }
}

impl App {
    /// Reads the service's log.
    ///
    /// # Errors
    /// If there is no data folder, or its journal cannot be read.
    pub fn log(&self, filter: &LogFilter) -> Result<Log, Refusal> {
        self.require_person()?;
        self.require_home()?;
        let (words, known) = WordFilter::of(filter.about.as_deref(), self)?;
        let from = self.moment_of(filter.since.as_ref())?;
        let mut tail = Tail::of(&self.home.log());
        let mut lines = std::collections::VecDeque::new();
        while let Some(line) = tail.line() {
            if words.are_in(&line) && from.is_none_or(|from| line.at >= from) {
                lines.push_back(line);
                if lines.len() > filter.count {
                    lines.pop_front();
                }
            }
        }
        // The word may name something else that appears in the log, such as a channel.
        if lines.is_empty() {
            known?;
        }
        Ok(Log { lines: lines.into(), tail, words })
    }
}

/// The words of which a line must contain one; `None` selects every line.
struct WordFilter(Option<(String, HashSet<String>)>);

impl WordFilter {
    /// Returns the words, and beside them an error if there is no such job or run.
    fn of(about: Option<&str>, app: &App) -> Result<(Self, Result<(), Refusal>), Refusal> {
        let Some(about) = about else { return Ok((Self(None), Ok(()))) };
        let journal = runs::open(app)?;
        let id = DefinitionId::new(about);
        let (id, known) = match runs::id_of(&id, &journal, app) {
            Ok(id) => (id, Ok(())),
            // Runs, and names that only the log knows, have no definition id.
            Err(none) => match runs::named(about, &journal) {
                Ok(found) => (DefinitionId::new(found.run.to_string()), Ok(())),
                Err(_) => (id, Err(none)),
            },
        };
        let runs = journal.latest(&id, RUNS)?.into_iter().map(|run| run.to_string());
        Ok((Self(Some((id.to_string(), runs.chain([id.to_string()]).collect()))), known))
    }

    fn are_in(&self, line: &LogLine) -> bool {
        let Some((about, words)) = &self.0 else { return true };
        let named =
            |text: &str| text.split(|c: char| !(c.is_alphanumeric() || "-_.".contains(c))).any(|word| word == about);
        named(&line.message)
            || line.fields.values().filter_map(Value::as_str).any(|value| words.contains(value) || named(value))
    }
}

/// Reads the files of a log line by line, one day after the other.
struct Tail {
    folder: PathBuf,
    /// The current file.
    open: Option<(PathBuf, BufReader<File>)>,
}

impl Tail {
    fn of(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), open: None }
    }

    /// Returns the next complete line; `None` if there is none yet.
    fn line(&mut self) -> Option<LogLine> {
        loop {
            if let Some((_, file)) = &mut self.open {
                let start = file.stream_position().ok()?;
                let mut text = String::new();
                match file.read_line(&mut text) {
                    Ok(1..) if text.ends_with('\n') => match serde_json::from_str(&text) {
                        Ok(line) => return Some(line),
                        // A line cut off by a crash, or not of our format.
                        Err(_) => continue,
                    },
                    // The line is not complete yet.
                    Ok(_) => drop(file.seek(SeekFrom::Start(start))),
                    Err(_) => {}
                }
            }
            // A file of a later day means that the current one is complete.
            let read = self.open.as_ref().map(|(path, _)| path.clone());
            let next = files(&self.folder).into_iter().find(|path| read.as_ref().is_none_or(|read| path > read))?;
            self.open = Some((next.clone(), BufReader::new(File::open(next).ok()?)));
        }
    }
}

/// Returns the log's files, sorted by day.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn lines_are_read_over_days_and_as_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let add = |day: &str, text: &str| {
            let path = folder.path().join(format!("service.{day}.jsonl"));
            let mut file = File::options().append(true).create(true).open(path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        let line = |message: &str| {
            format!(
                "{{\"timestamp\":\"2026-11-23T09:00:00+01:00\",\"level\":\"INFO\",\"message\":\"{message}\",\"run\":\"a1\"}}\n"
            )
        };
        let mut tail = Tail::of(folder.path());
        assert!(tail.line().is_none());
        add("2026-11-22", &line("one"));
        add("2026-11-22", "cut o\n");
        add("2026-11-23", &line("two"));
        assert_eq!(tail.line().unwrap().message, "one");
        assert_eq!(tail.line().unwrap().message, "two");
        let (first, second) = (line("three"), line("four"));
        add("2026-11-23", &first[..10]);
        assert!(tail.line().is_none(), "half of it");
        add("2026-11-23", &first[10..]);
        assert_eq!(tail.line().unwrap().fields["run"], "a1");
        add("2026-11-24", &second);
        assert_eq!(tail.line().unwrap().message, "four");
        assert!(tail.line().is_none());
    }
}
