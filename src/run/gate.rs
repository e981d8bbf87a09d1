//! A job's gate: a command that decides, without a model, whether the agent is woken.
//!
//! It runs in the job's own shell, so each program that it starts is judged as in a run and has what the job's rules give it. It
//! asks nobody: what the person would be asked about is refused. It may run again for the same occurrence, so what it does is
//! not marked as an effect of the run. What it keeps in `$OLLIM_STATE` is the [`state`]'s.

mod job;
pub mod state;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_sandbox::{Answer, Judge, Start, Stream};
use async_trait::async_trait;

pub(super) use self::job::Gated;
use super::sandbox::Judged;
use super::shell_line::{ShellLine, how_it_ended};
use crate::policy::{Decision, Verdict, on_one_line};

/// What a gate has said that ended with 1 and printed nothing.
pub const SILENT: &str = "exit 1";

/// How long a gate may take where its file does not say.
pub const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The variable that names the folder in which a gate keeps things.
pub const STATE_VARIABLE: &str = "OLLIM_STATE";

/// Bytes of what it prints that the agent is given.
pub const MOST_SHOWN: usize = 16 * 1024;

/// Bytes of files that it writes, in all and each.
const DISK: u64 = 256 << 20;

/// Bytes of each of its streams that are looked at.
const MOST_KEPT: usize = 1 << 20;

/// Characters of a line of what it prints, where it stands in the record.
const LONGEST_LINE: usize = 200;

/// Refused programs that are kept.
const MOST_REFUSED: usize = 20;

/// What a gate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateVerdict {
    /// Exit 0: the agent is woken, and is given this.
    Wake(String),
    /// Exit 1: there is nothing to do, and why.
    Skip(String),
    /// Anything else: what went wrong, as a sentence without its full stop.
    Failed(String),
}

impl GateVerdict {
    /// The verdict where a gate's state is kept by `keep`: one that wrote what cannot be kept has failed.
    #[must_use]
    pub fn keeping(self, keep: impl FnOnce() -> io::Result<()>) -> Self {
        match self {
            Self::Failed(_) => self,
            Self::Wake(_) | Self::Skip(_) => keep().map_or_else(
                |error| Self::Failed(format!("what the gate wrote to $OLLIM_STATE cannot be kept: {error}")),
                |()| self,
            ),
        }
    }
}

/// Decides about a program.
pub type Decide = Arc<dyn Fn(&Start) -> Judged + Send + Sync>;

/// A gate that is about to run.
pub struct Gate {
    /// The line, in the job's shell.
    pub line: ShellLine,
    /// It is ended after this.
    pub timeout: Duration,
    /// The judge of the programs that it starts.
    pub decide: Decide,
}

/// How a gate ended.
#[derive(Clone, Debug)]
pub struct GateEnd {
    /// What it says.
    pub verdict: GateVerdict,
    /// The programs that were refused.
    pub refused: Vec<Decision>,
}

/// The folder that `$OLLIM_STATE` names, in that of a run.
#[must_use]
pub fn state_in(run_dir: &Path) -> PathBuf {
    run_dir.join("tmp").join("state")
}

impl Gate {
    /// The folder that `$OLLIM_STATE` names. Made before the gate runs.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        state_in(&self.line.run_dir)
    }

    /// Runs it to its end; `None`: `cancel` was there first. Nothing of it is left afterwards.
    ///
    /// # Errors
    /// When its shell cannot be started, or does not end.
    pub async fn run(self, cancel: impl Future<Output = ()>) -> io::Result<Option<GateEnd>> {
        let state = self.state().display().to_string();
        let Self { mut line, timeout, decide } = self;
        line.clean.insert(STATE_VARIABLE.to_owned(), state);
        line.limits.disk = line.limits.disk.min(DISK);
        let seen = Arc::new(Seen::default());
        let (judges, mut cancelled) = (Arc::clone(&seen), false);
        let until = async {
            tokio::select! {
                () = tokio::time::sleep(timeout) => {}
                () = cancel => cancelled = true,
            }
        };
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut keep = |stream, bytes: &[u8]| {
            let kept = if stream == Stream::Stdout { &mut stdout } else { &mut stderr };
            kept.extend_from_slice(&bytes[..bytes.len().min(MOST_KEPT - kept.len())]);
        };
        let status = line.run(|env| Arc::new(GateJudge { decide, env, seen: judges }), until, &mut keep).await?;
        if cancelled {
            return Ok(None);
        }
        let refused = std::mem::take(&mut *seen.refused.lock().unwrap_or_else(PoisonError::into_inner));
        let exceeded = seen.exceeded.lock().unwrap_or_else(PoisonError::into_inner).take();
        let verdict = match (status, refused.first(), exceeded) {
            (_, Some(refused), _) => GateVerdict::Failed(format!(
                "the gate was refused a program: `{}`: {}",
                on_one_line(refused.commands.first().map_or("", String::as_str), LONGEST_LINE),
                on_one_line(&refused.reason, LONGEST_LINE)
            )),
            (_, None, Some(what)) => GateVerdict::Failed(format!("the gate was ended, since {what}")),
            (None, None, None) => {
                let limit = humantime::format_duration(timeout);
                GateVerdict::Failed(format!("the gate took longer than {limit} (`gate_timeout`) and was ended"))
            }
            (Some(status), None, None) => verdict(status.code(), &stdout, &stderr),
        };
        Ok(Some(GateEnd { verdict, refused }))
    }
}

/// What the end of a gate's shell says.
fn verdict(code: Option<i32>, stdout: &[u8], stderr: &[u8]) -> GateVerdict {
    let first = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        on_one_line(line, LONGEST_LINE)
    };
    match code {
        Some(0) => GateVerdict::Wake(beginning(stdout)),
        // Most programs end with 1 where something is wrong, too, and say so there.
        Some(1) if first(stdout).is_empty() && !first(stderr).is_empty() => GateVerdict::Failed(format!(
            "the gate ended with exit code 1 and said on standard error: {}; one that skips says why on standard output",
            first(stderr)
        )),
        Some(1) => GateVerdict::Skip(Some(first(stdout)).filter(|line| !line.is_empty()).unwrap_or(SILENT.into())),
        code => {
            let said: Vec<String> = [stderr, stdout].map(first).into_iter().filter(|said| !said.is_empty()).collect();
            let colon = if said.is_empty() { "" } else { ": " };
            GateVerdict::Failed(format!("the gate ended {}{colon}{}", how_it_ended(code), said.join(" / ")))
        }
    }
}

/// The beginning of what it printed, as text.
fn beginning(bytes: &[u8]) -> String {
    let kept = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_SHOWN)]).trim_end().to_owned();
    if bytes.len() > MOST_SHOWN {
        return format!("{}\n(what it printed beyond 16 KiB is left out)", kept.trim_end_matches('\u{fffd}'));
    }
    kept
}

/// Judges the programs of a gate as those of a run, and asks nobody.
struct GateJudge {
    decide: Decide,
    env: BTreeMap<String, String>,
    seen: Arc<Seen>,
}

/// What was seen of a gate while it ran.
#[derive(Default)]
struct Seen {
    refused: Mutex<Vec<Decision>>,
    exceeded: Mutex<Option<String>>,
}

#[async_trait]
impl Judge for GateJudge {
    async fn judge(&self, start: Start) -> Answer {
        let decide = self.decide.clone();
        let judged = tokio::task::spawn_blocking(move || decide(&start)).await;
        let Ok(Judged { mut decision, mut answer }) = judged else {
            return Answer::Deny { code: 126, message: "denied, since the decision failed".into() };
        };
        if decision.verdict == Verdict::Ask {
            decision.verdict = Verdict::Deny;
            decision.reason = format!("denied: a gate asks nobody ({})", decision.reason);
            answer = Answer::Deny { code: 126, message: decision.reason.clone() };
        }
        match answer {
            Answer::Deny { ref message, .. } => {
                if decision.verdict != Verdict::Deny {
                    decision.verdict = Verdict::Deny;
                    decision.reason.clone_from(message);
                }
                let mut refused = self.seen.refused.lock().unwrap_or_else(PoisonError::into_inner);
                if refused.len() < MOST_REFUSED {
                    refused.push(decision);
                }
                answer
            }
            Answer::Outside { program, env, domain, takes_umask } => {
                let env = self.env.clone().into_iter().chain(env).collect();
                Answer::Outside { program, env, domain, takes_umask }
            }
            Answer::Here { .. } => answer,
        }
    }

    fn exceeded(&self, what: String) {
        *self.seen.exceeded.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exit_0_wakes_and_only_exit_1_skips() {
        let failed = |text: &str| GateVerdict::Failed(format!("the gate ended {text}"));
        for (code, stdout, stderr, expected) in [
            (Some(0), "two\nlines\n", "", GateVerdict::Wake("two\nlines".into())),
            (Some(0), "", "noise", GateVerdict::Wake(String::new())),
            (Some(1), "\n  no mail \nmore", "", GateVerdict::Skip("no mail".into())),
            (Some(1), "", " \n", GateVerdict::Skip("exit 1".into())),
            (Some(1), "no mail", "noise", GateVerdict::Skip("no mail".into())),
            (
                Some(1),
                "",
                "cat: x: Permission denied",
                failed(
                    "with exit code 1 and said on standard error: cat: x: Permission denied; one that skips says why on \
                     standard output",
                ),
            ),
            (Some(2), "", "grep: no such file\nmore", failed("with exit code 2: grep: no such file")),
            (Some(2), "it is broken\nmore", "", failed("with exit code 2: it is broken")),
            (Some(2), "x", "grep: no such file\nmore", failed("with exit code 2: grep: no such file / x")),
            (Some(127), "", "", failed("with exit code 127")),
            (Some(137), "", "", failed("by signal 9")),
            (None, "", "", failed("by a signal")),
        ] {
            assert_eq!(verdict(code, stdout.as_bytes(), stderr.as_bytes()), expected, "{code:?}");
        }
    }

    #[test]
    fn what_is_printed_is_cut_at_a_letter() {
        let long = "é".repeat(MOST_SHOWN);
        let text = beginning(&long.as_bytes()[1..]);
        assert!(text.ends_with("é\n(what it printed beyond 16 KiB is left out)"), "{}", &text[text.len() - 80..]);
        assert!(text.len() <= MOST_SHOWN + 64);
        assert_eq!(beginning(b"a\xff\n\n"), "a\u{fffd}");
    }
}
