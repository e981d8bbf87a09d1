//! The service's own log: one JSON line an event in `state/log/`, a file a day.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{App, runs};
use crate::definition::DefinitionId;
use crate::refusal::Refusal;

/// How often a followed log is looked at.
const LOOK: Duration = Duration::from_millis(300);

/// Of a job's latest runs so many are looked for.
const RUNS: u32 = 1000;

/// One line of the log.
#[derive(Clone, Debug, Deserialize)]
pub struct LogLine {
    /// When it was written.
    #[serde(rename = "timestamp")]
    pub at: DateTime<Utc>,
    /// `ERROR`, `WARN`, `INFO`, `DEBUG` or `TRACE`.
    pub level: String,
    /// The sentence.
    #[serde(default)]
    pub message: String,
    /// The values beside it.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// Which lines are asked for.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    /// Only those that name this job, one of its runs, or this run.
    pub about: Option<String>,
    /// Only those of so much time up to now.
    pub since: Option<Duration>,
    /// At most so many, the newest.
    pub count: usize,
}

/// The log as it is asked for, oldest line first; then, if it is followed, each line as it is written.
pub struct Log {
    /// What there is.
    pub lines: Vec<LogLine>,
    tail: Tail,
    words: Words,
}

impl Log {
    /// The next line that is written. Waits until there is one.
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
    /// When there is no data folder, or its journal cannot be read.
    pub fn log(&self, filter: &LogFilter) -> Result<Log, Refusal> {
        self.require_person()?;
        self.require_home()?;
        let (words, known) = Words::of(filter.about.as_deref(), self)?;
        let from = filter.since.map(|since| self.ago(since));
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
        // Something else may be named in the log, such as a channel.
        if lines.is_empty() {
            known?;
        }
        Ok(Log { lines: lines.into(), tail, words })
    }
}

/// What a line has to name; `None`: nothing in particular.
struct Words(Option<(String, HashSet<String>)>);

impl Words {
    /// Also whether there is such a job or run.
    fn of(about: Option<&str>, app: &App) -> Result<(Self, Result<(), Refusal>), Refusal> {
        let Some(about) = about else { return Ok((Self(None), Ok(()))) };
        let journal = runs::open(app)?;
        let id = DefinitionId::new(about);
        let (id, known) = match runs::id_of(&id, &journal, app) {
            Ok(id) => (id, Ok(())),
            // Of a run, or of what only the log knows, there is no id.
            Err(none) => (id, runs::named(about, &journal).map(drop).map_err(|_| none)),
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

/// The files of a log, read line by line, one day after the other.
struct Tail {
    folder: PathBuf,
    /// The file that is read, and how far.
    open: Option<(PathBuf, BufReader<File>)>,
}

impl Tail {
    fn of(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), open: None }
    }

    /// The next whole line that can be read; `None`: there is none yet.
    fn line(&mut self) -> Option<LogLine> {
        loop {
            if let Some((_, file)) = &mut self.open {
                let start = file.stream_position().ok()?;
                let mut text = String::new();
                match file.read_line(&mut text) {
                    Ok(1..) if text.ends_with('\n') => match serde_json::from_str(&text) {
                        Ok(line) => return Some(line),
                        // Cut off by a crash, or no line of ours.
                        Err(_) => continue,
                    },
                    // Not written to its end yet.
                    Ok(_) => drop(file.seek(SeekFrom::Start(start))),
                    Err(_) => {}
                }
            }
            // A file of a later day means that this one is complete.
            let read = self.open.as_ref().map(|(path, _)| path.clone());
            let next = files(&self.folder).into_iter().find(|path| read.as_ref().is_none_or(|read| path > read))?;
            self.open = Some((next.clone(), BufReader::new(File::open(next).ok()?)));
        }
    }
}

/// The log's files by day.
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
