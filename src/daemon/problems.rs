//! Reports problems of files: each time in the log, once to the person.
//!
//! The journal keeps the problems that the person was notified of, so that neither a restart nor another host with the same file repeats
//! them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio::sync::mpsc;

use crate::definition::{DefinitionId, Problem, kind_of, pushed_id};
use crate::journal::{EventKind, Journal, NewMessage, Subject};
use crate::schedule::ProblemsOfFile;

/// The setting in the journal that keeps what the person was notified of.
const SETTING: &str = "told_problems";

/// Maximum number of files that get a message each. More files at once share one message.
const ONE_BY_ONE: usize = 3;

/// Maximum number of problems logged at once. The log counts the rest.
const LOGGED: usize = 100;

/// Files whose errors the person was notified of, and the wording.
type Notified = BTreeMap<PathBuf, String>;

/// The part of a report that is new.
struct News {
    /// Files with an error that the person was not notified of, and the wording.
    fresh: Vec<(PathBuf, String)>,
    /// Files whose errors are gone.
    gone: Vec<PathBuf>,
}

/// Reports problems.
#[derive(Clone)]
pub struct Problems {
    /// The data folder, which contains the files.
    root: PathBuf,
    journal: Journal,
    setting: String,
}

impl Problems {
    /// `host`: the name of this host if its files are its own. Otherwise the hosts that share the journal notify the person once of a file.
    #[must_use]
    pub fn new(root: &Path, journal: Journal, host: Option<String>) -> Self {
        let setting = host.map_or_else(|| SETTING.to_owned(), |host| format!("{SETTING} of {host}"));
        Self { root: root.to_owned(), journal, setting }
    }

    /// Reports all problems of all files. Files without a problem are cleared.
    pub async fn all(&self, problems: Vec<Problem>) {
        let mut files: BTreeMap<PathBuf, Vec<Problem>> = BTreeMap::new();
        for problem in problems {
            files.entry(problem.file.clone()).or_default().push(problem);
        }
        self.notify_person(files, true).await;
    }

    /// Reports problems as they are found, until the future is dropped.
    pub async fn follow(self, mut found: mpsc::UnboundedReceiver<ProblemsOfFile>) {
        while let Some((file, problems)) = found.recv().await {
            self.of_file(&file, problems).await;
        }
    }

    /// Reports all problems of one file. An empty list means that the file was fixed or deleted.
    pub async fn of_file(&self, file: &Path, problems: Vec<Problem>) {
        self.notify_person(BTreeMap::from([(file.to_owned(), problems)]), false).await;
    }

    fn record(&self, file: &Path, text: String) {
        self.journal.record_apart(None, EventKind::Problem { file: file.display().to_string(), text });
    }

    async fn notify_person(&self, files: BTreeMap<PathBuf, Vec<Problem>>, are_all: bool) {
        let all: usize = files.values().map(Vec::len).sum();
        if all > LOGGED {
            tracing::warn!("{all} things are wrong with files or odd about them; the first {LOGGED} are:");
        }
        files.values().flatten().take(LOGGED).for_each(log);
        let makers =
            files.iter().filter_map(|(file, problems)| Some((file.clone(), problems.first()?.made_by.clone()?)));
        let makers: Makers = makers.collect();
        let files: Notified = files.into_iter().map(|(file, problems)| (file, words(&problems))).collect();
        let root = self.root.clone();
        let change = move |kept: Option<&str>| {
            let before: Notified = kept.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            let (after, news) = with(before.clone(), &files, are_all, |path| root.join(path).exists());
            let kept = serde_json::to_string(&after).ok().filter(|_| after != before)?;
            Some((kept, messages(&news.fresh, &makers), news))
        };
        match self.journal.change_setting_and_tell(self.setting.clone(), change).await {
            Ok(None) => {}
            Ok(Some(News { fresh, gone })) => {
                for file in gone {
                    let is_gone = pushed_id(&file).is_none() && !self.root.join(&file).exists();
                    tracing::info!("{} {}", file.display(), if is_gone { "is gone" } else { "was put right" });
                    self.record(&file, String::new());
                }
                fresh.into_iter().for_each(|(file, words)| self.record(&file, words));
            }
            Err(error) => tracing::warn!(%error, "the person could not be notified of problems in files"),
        }
    }
}

/// Returns what the person is notified of after a report, and what is new in it. The wording of a file without an error is empty.
/// A folder that is missing for a while takes no errors of its files with it: they are not reported again when it is back.
fn with(mut notified: Notified, files: &Notified, are_all: bool, exists: impl Fn(&Path) -> bool) -> (Notified, News) {
    let mut news = News { fresh: Vec::new(), gone: Vec::new() };
    let is_away = |file: &Path| folder_of(file).is_some_and(|folder| !exists(folder));
    if are_all {
        // A definition of the database is read when it is nearly due.
        notified.retain(|file, _| files.contains_key(file) || pushed_id(file).is_some() || is_away(file));
    }
    for (file, words) in files {
        if words.is_empty() && is_away(file) {
            continue;
        }
        if words.is_empty() {
            news.gone.extend(notified.remove(file).map(|_| file.clone()));
            if is_folder(file) {
                // The folder is back. Files that did not come back with it are gone.
                let lost = |known: &&PathBuf| folder_of(known).is_some_and(|folder| folder == file) && !exists(known);
                news.gone.extend(notified.keys().filter(lost).cloned().collect::<Vec<_>>());
                notified.retain(|known, _| !news.gone.contains(known));
            }
        } else if notified.get(file) != Some(words) {
            notified.insert(file.clone(), words.clone());
            news.fresh.push((file.clone(), words.clone()));
        }
    }
    (notified, news)
}

/// The maker of each file that a job has made.
type Makers = BTreeMap<PathBuf, DefinitionId>;

/// Returns the messages about files. Those about files that one job has made count for that job.
fn messages(fresh: &[(PathBuf, String)], makers: &Makers) -> Vec<NewMessage> {
    let mut by_maker: BTreeMap<Option<&DefinitionId>, Vec<&(PathBuf, String)>> = BTreeMap::new();
    fresh.iter().for_each(|news| by_maker.entry(makers.get(&news.0)).or_default().push(news));
    by_maker.into_iter().flat_map(|(maker, fresh)| messages_about(maker, &fresh)).collect()
}

fn messages_about(maker: Option<&DefinitionId>, fresh: &[&(PathBuf, String)]) -> Vec<NewMessage> {
    let about = || Subject::jobs_of(maker.cloned());
    let one = |(file, words): &&(PathBuf, String)| {
        let what = match pushed_id(file) {
            Some(_) => "A job of the database has an error, and does not fire until a text without it is pushed.",
            None if is_folder(file) => "A folder of jobs cannot be read, and they do not fire until that is put right.",
            None => "A file has an error, and does not fire until it is put right.",
        };
        NewMessage::about(about(), format!("{what}\n{words}"))
    };
    if fresh.len() <= ONE_BY_ONE {
        return fresh.iter().map(one).collect();
    }
    let names: Vec<String> = fresh.iter().take(10).map(|(file, _)| file.display().to_string()).collect();
    let more = if fresh.len() > names.len() { ", …" } else { "" };
    let list = names.join(", ");
    let text = format!(
        "{} files have errors, and do not fire until they are put right: {list}{more}. `ollim-bot check` says what is wrong.",
        fresh.len()
    );
    vec![NewMessage::about(about(), text)]
}

/// Returns the folder of definitions that contains the file.
fn folder_of(file: &Path) -> Option<&Path> {
    kind_of(file)?;
    file.ancestors().find(|folder| is_folder(folder)).filter(|folder| *folder != file)
}

/// Whether the problems are those of a folder of definitions.
fn is_folder(file: &Path) -> bool {
    kind_of(file).is_some() && file.components().count() == 1
}

/// Formats the errors of one file for the person. Empty if there are only warnings.
fn words(problems: &[Problem]) -> String {
    problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn log(problem: &Problem) {
    let place = problem.place();
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

    #[test]
    fn a_folder_that_was_away_repeats_no_errors_of_its_files() {
        let of = |files: &[(&str, &str)]| -> Notified {
            files.iter().map(|(file, words)| (PathBuf::from(file), (*words).to_owned())).collect()
        };
        let paths = |files: &[&str]| files.iter().map(PathBuf::from).collect::<Vec<_>>();
        let (a, b, config) = ("routines/a.md", "routines/b.md", "config.yaml");
        let before = of(&[(a, "one"), (b, "two"), (config, "three")]);
        for are_all in [false, true] {
            // The folder is moved away, and the settings are deleted.
            let away = of(&[(a, ""), ("routines", "missing"), (config, "")]);
            let (kept, news) = with(before.clone(), &away, are_all, |_| false);
            assert_eq!(kept, of(&[(a, "one"), (b, "two"), ("routines", "missing")]));
            assert_eq!(news.gone, paths(&[config]));
            // It comes back without b.
            let back = of(&[(a, "one"), ("routines", "")]);
            let (kept, news) = with(kept, &back, are_all, |path| path != Path::new(b));
            assert_eq!(kept, of(&[(a, "one")]));
            assert!(news.fresh.is_empty());
            assert!(news.gone.contains(&PathBuf::from("routines")));
        }
    }

    #[tokio::test]
    async fn an_error_is_reported_once_across_starts_and_again_when_it_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&folder.path().join("journal.db"), Clock::system()).unwrap();
        let problems = Problems::new(folder.path(), journal.clone(), None);
        let broken = || vec![problem("a.md", Severity::Error, "one"), problem("b.md", Severity::Warning, "small")];
        problems.all(broken()).await;
        problems.of_file(Path::new("a.md"), vec![problem("a.md", Severity::Error, "one")]).await;
        assert_eq!(said(&journal).await.len(), 1);
        let problems = Problems::new(folder.path(), journal.clone(), None);
        problems.all(broken()).await;
        assert_eq!(said(&journal).await.len(), 1);
        problems.of_file(Path::new("a.md"), vec![problem("a.md", Severity::Error, "two")]).await;
        assert!(said(&journal).await[1].ends_with("error: two\n  --> a.md:1:1"));
        problems.of_file(Path::new("a.md"), Vec::new()).await;
        problems.of_file(Path::new("a.md"), vec![problem("a.md", Severity::Error, "two")]).await;
        assert_eq!(said(&journal).await.len(), 3, "it was right in between");
        // Another host with the same file, and one with its own files.
        let other = Problems::new(folder.path(), journal.clone(), None);
        other.of_file(Path::new("a.md"), vec![problem("a.md", Severity::Error, "two")]).await;
        assert_eq!(said(&journal).await.len(), 3);
        other.of_file(Path::new("a.md"), vec![problem("a.md", Severity::Error, "three")]).await;
        problems.of_file(Path::new("a.md"), vec![problem("a.md", Severity::Error, "three")]).await;
        assert_eq!(said(&journal).await.len(), 4);
        let own = Problems::new(folder.path(), journal.clone(), Some("laptop".to_owned()));
        own.all(broken()).await;
        assert_eq!(said(&journal).await.len(), 5);
    }

    /// A job that makes jobs could make one invalid as often as it likes.
    #[tokio::test]
    async fn messages_about_files_that_one_job_has_made_are_few() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&folder.path().join("journal.db"), Clock::system()).unwrap();
        let problems = Problems::new(folder.path(), journal.clone(), None);
        let made = |file: String| Problem {
            made_by: Some(DefinitionId::new("mail")),
            ..problem(&file, Severity::Error, "one")
        };
        for n in 0..9 {
            let file = format!("{n}.md");
            problems.of_file(Path::new(&file), vec![made(file.clone())]).await;
        }
        assert_eq!(said(&journal).await.len(), 5);
        // Together with files of the person's: these are told of by themselves.
        let all = (10..40).map(|n| made(format!("{n}.md"))).chain([problem("own.md", Severity::Error, "one")]);
        problems.all(all.collect()).await;
        let said = said(&journal).await;
        assert!(said.len() == 6 && said[5].contains("--> own.md:1:1"), "{said:?}");
    }

    #[tokio::test]
    async fn many_at_once_are_one_message() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&folder.path().join("journal.db"), Clock::system()).unwrap();
        let problems = Problems::new(folder.path(), journal.clone(), None);
        problems.all((10..40).map(|n| problem(&format!("{n}.md"), Severity::Error, "one")).collect()).await;
        let said = said(&journal).await;
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("30 files have errors") && said[0].contains("10.md, 11.md"), "{}", said[0]);
    }
}
