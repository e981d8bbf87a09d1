//! The check that a run has delivered what its job's file expects.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::tools::DeliveryState;
use crate::agent::{AttemptEnd, AttemptReport, Failure, FailureClass};
use crate::definition::Expect;

/// The expected delivery, and the state before the agent began.
#[derive(Debug)]
pub(super) struct Expected {
    expect: Expect,
    work: PathBuf,
    before: Option<Facts>,
    /// Whether the job's own words may reach the person.
    may_ping: bool,
}

/// The facts that tell two states of a file apart: device, inode, size, and the times of the last two kinds of change.
type Facts = (u64, u64, u64, (i64, i64), (i64, i64));

impl Expected {
    /// Records the state before the agent begins.
    pub(super) fn new(expect: Expect, work: PathBuf, may_ping: bool) -> Self {
        let before = match &expect {
            Expect::File(path) => facts(&work, path),
            Expect::Message | Expect::Report => None,
        };
        Self { expect, work, before, may_ping }
    }

    /// Returns the file's name for the person; a general phrase if the job may not reach them with words of its own.
    fn named(&self, path: &Path) -> String {
        if self.may_ping { format!("work/{}", path.display()) } else { "the file that it names".to_owned() }
    }

    /// Turns a completed report into a failed one if the expected delivery is missing.
    pub(super) fn hold(&self, report: &mut AttemptReport, delivery: &DeliveryState) {
        if report.end != AttemptEnd::Completed {
            return;
        }
        let why = match &self.expect {
            Expect::Message if !delivery.sent && report.messages.is_empty() => {
                "it sent no message (`expect: message`)".to_owned()
            }
            Expect::Report if delivery.reports == 0 => "it made no report (`expect: report`)".to_owned(),
            Expect::File(path) => match facts(&self.work, path) {
                None => format!("{} is not there, or it is empty (`expect`)", self.named(path)),
                after if after == self.before => format!("{} is as it was before (`expect`)", self.named(path)),
                Some(_) => return,
            },
            Expect::Message | Expect::Report => return,
        };
        let why = format!("nothing was delivered: {why}");
        report.end = AttemptEnd::Failed(Failure::new(FailureClass::NotDelivered, why));
    }
}

/// Returns the facts of a file that is not empty; `None` if there is none, or it is outside of `work/`.
fn facts(work: &Path, path: &Path) -> Option<Facts> {
    let file = work.join(path).canonicalize().ok()?;
    let facts = fs::metadata(&file).ok()?;
    let within = file.starts_with(work.canonicalize().ok()?);
    (within && facts.is_file() && facts.len() > 0).then(|| {
        let (modified, changed) = ((facts.mtime(), facts.mtime_nsec()), (facts.ctime(), facts.ctime_nsec()));
        (facts.dev(), facts.ino(), facts.len(), modified, changed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(expected: &Expected, delivery: &DeliveryState) -> Option<String> {
        let mut report = AttemptReport::bare(AttemptEnd::Completed);
        expected.hold(&mut report, delivery);
        match report.end {
            AttemptEnd::Failed(failure) => Some(failure.message),
            _ => None,
        }
    }

    #[test]
    fn a_file_counts_when_the_run_has_written_it() {
        let root = tempfile::tempdir().unwrap();
        let work = root.path().join("work");
        fs::create_dir(&work).unwrap();
        let expected = || Expected::new(Expect::File("today.md".into()), work.clone(), true);
        let nothing = DeliveryState::default();
        let says = |expected: &Expected, words: &str| end(expected, &nothing).unwrap().contains(words);
        let before = expected();
        assert!(says(&before, "work/today.md is not there"));
        fs::write(work.join("today.md"), "").unwrap();
        assert!(says(&before, "or it is empty"));
        fs::write(work.join("today.md"), "x").unwrap();
        assert_eq!(end(&before, &nothing), None);
        let before = expected();
        assert!(says(&before, "is as it was before"));
        // Another file with the same content, as editors write it, counts.
        fs::write(work.join("new"), "x").unwrap();
        fs::rename(work.join("new"), work.join("today.md")).unwrap();
        assert_eq!(end(&before, &nothing), None);
        // A file outside of work/ does not count.
        fs::write(root.path().join("outside"), "x").unwrap();
        fs::remove_file(work.join("today.md")).unwrap();
        std::os::unix::fs::symlink("../outside", work.join("today.md")).unwrap();
        assert!(says(&before, "is not there"));
    }

    #[test]
    fn a_run_that_failed_keeps_its_own_end() {
        let expected = Expected::new(Expect::Message, "/".into(), true);
        let mut report = AttemptReport::bare(AttemptEnd::Cancelled);
        expected.hold(&mut report, &DeliveryState::default());
        assert_eq!(report.end, AttemptEnd::Cancelled);
        assert!(end(&expected, &DeliveryState::default()).unwrap().starts_with("nothing was delivered: "));
        assert_eq!(end(&expected, &DeliveryState { sent: true, ..DeliveryState::default() }), None);
    }
}
