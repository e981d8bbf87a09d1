//! Reports problems of files: each time in the log, once to the person.
//!
//! The journal keeps the problems that the person was notified of, so a restart does not repeat them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};

use crate::definition::Problem;
use crate::journal::{EventKind, Journal, JournalError, NewMessage};
use crate::schedule::ProblemsOfFile;

/// The setting in the journal that keeps what the person was notified of.
const SETTING: &str = "told_problems";

/// Maximum number of files that get a message each. More files at once share one message.
const ONE_BY_ONE: usize = 3;

/// Maximum number of problems logged at once. The log counts the rest.
const LOGGED: usize = 100;

/// Files whose errors the person was notified of, and the wording.
type Notified = BTreeMap<PathBuf, String>;

/// Reports problems. Clones share one state.
#[derive(Clone)]
pub struct Problems {
    /// The data folder, which contains the files.
    root: PathBuf,
    journal: Journal,
    notified: Arc<Mutex<Notified>>,
}

impl Problems {
    /// # Errors
    /// If the journal cannot be read.
    pub async fn load(root: &Path, journal: Journal) -> Result<Self, JournalError> {
        let stored = journal.setting(SETTING).await?;
        let notified = stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Ok(Self { root: root.to_owned(), journal, notified: Arc::new(Mutex::new(notified)) })
    }

    /// Reports all problems of all files. Files without a problem are cleared.
    pub async fn all(&self, problems: Vec<Problem>) {
        let mut files: BTreeMap<PathBuf, Vec<Problem>> = BTreeMap::new();
        for problem in problems {
            files.entry(problem.file.clone()).or_default().push(problem);
        }
        let mut notified = self.notified.lock().await;
        notified.retain(|file, _| files.contains_key(file));
        self.tell(&mut notified, files).await;
    }

    /// Reports problems as they are found, until the future is dropped.
    pub async fn follow(self, mut found: mpsc::UnboundedReceiver<ProblemsOfFile>) {
        while let Some((file, problems)) = found.recv().await {
            self.of_file(&file, problems).await;
        }
    }

    /// Reports all problems of one file. An empty list means that the file was fixed or deleted.
    pub async fn of_file(&self, file: &Path, problems: Vec<Problem>) {
        let mut notified = self.notified.lock().await;
        self.tell(&mut notified, BTreeMap::from([(file.to_owned(), problems)])).await;
    }

    fn record(&self, file: &Path, text: String) {
        self.journal.record_apart(None, EventKind::Problem { file: file.display().to_string(), text });
    }

    async fn tell(&self, notified: &mut Notified, files: BTreeMap<PathBuf, Vec<Problem>>) {
        let mut fresh = Vec::new();
        let all: usize = files.values().map(Vec::len).sum();
        if all > LOGGED {
            tracing::warn!("{all} things are wrong with files or odd about them; the first {LOGGED} are:");
        }
        files.values().flatten().take(LOGGED).for_each(log);
        for (file, problems) in files {
            let words = words(&problems);
            if words.is_empty() {
                if notified.remove(&file).is_some() {
                    self.record(&file, String::new());
                    // Only for files that had an error, so this lookup is rare.
                    let is_gone = !self.root.join(&file).exists();
                    tracing::info!("{} {}", file.display(), if is_gone { "is gone" } else { "was put right" });
                }
            } else if notified.get(&file) != Some(&words) {
                self.record(&file, words.clone());
                fresh.push((file, words));
            }
        }
        let texts: Vec<String> = if fresh.len() <= ONE_BY_ONE {
            fresh
                .iter()
                .map(|(_, words)| format!("A file has an error, and does not fire until it is put right.\n{words}"))
                .collect()
        } else {
            let names: Vec<String> = fresh.iter().take(10).map(|(file, _)| file.display().to_string()).collect();
            let more = if fresh.len() > names.len() { ", …" } else { "" };
            let list = names.join(", ");
            vec![format!(
                "{} files have errors, and do not fire until they are put right: {list}{more}. `ollim-bot check` says what is wrong.",
                fresh.len()
            )]
        };
        for text in texts {
            if let Err(error) = self.journal.message(NewMessage::of_service(text)).await {
                tracing::warn!(%error, "the person could not be notified of problems in files");
                return;
            }
        }
        notified.extend(fresh);
        let kept = serde_json::to_string(notified).ok();
        if let Err(error) = self.journal.set_setting(SETTING, kept).await {
            tracing::warn!(%error, "the record of reported problems could not be kept; they will be reported again");
        }
    }
}

/// Formats the errors of one file for the person. Empty if there are only warnings.
fn words(problems: &[Problem]) -> String {
    problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn log(problem: &Problem) {
    let place = format!("{}:{}:{}", problem.file.display(), problem.line, problem.column);
    if problem.is_error() {
        tracing::warn!("{place}: {}; it does not fire until that is put right", problem.message);
    } else {
        tracing::info!("{place}: {}", problem.message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::definition::Severity;

    fn problem(file: &str, severity: Severity, message: &str) -> Problem {
        Problem::of_file(Path::new(file), severity, message, None)
    }

    async fn said(journal: &Journal) -> Vec<String> {
        journal.unrouted(100).await.unwrap().into_iter().map(|message| message.text).collect()
    }

    #[tokio::test]
    async fn an_error_is_reported_once_across_starts_and_again_when_it_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&folder.path().join("journal.db"), Clock::system()).unwrap();
        let problems = Problems::load(folder.path(), journal.clone()).await.unwrap();
        let broken = || vec![problem("a.md", Severity::Error, "one"), problem("b.md", Severity::Warning, "small")];
        problems.all(broken()).await;
        problems.of_file(Path::new("a.md"), vec![problem("a.md", Severity::Error, "one")]).await;
        assert_eq!(said(&journal).await.len(), 1);
        let problems = Problems::load(folder.path(), journal.clone()).await.unwrap();
        problems.all(broken()).await;
        assert_eq!(said(&journal).await.len(), 1);
        problems.of_file(Path::new("a.md"), vec![problem("a.md", Severity::Error, "two")]).await;
        assert!(said(&journal).await[1].ends_with("error: two\n  --> a.md:1:1"));
        problems.of_file(Path::new("a.md"), Vec::new()).await;
        problems.of_file(Path::new("a.md"), vec![problem("a.md", Severity::Error, "two")]).await;
        assert_eq!(said(&journal).await.len(), 3, "it was right in between");
    }

    #[tokio::test]
    async fn many_at_once_are_one_message() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&folder.path().join("journal.db"), Clock::system()).unwrap();
        let problems = Problems::load(folder.path(), journal.clone()).await.unwrap();
        problems.all((10..40).map(|n| problem(&format!("{n}.md"), Severity::Error, "one")).collect()).await;
        let said = said(&journal).await;
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("30 files have errors") && said[0].contains("10.md, 11.md"), "{}", said[0]);
    }
}
