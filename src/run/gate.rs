//! A job's gate: a command that decides, without a model, whether the agent is woken.
//!
//! The gate runs in the job's own shell, so that each program is judged as in a run and has the rights that the job's rules grant.
//! It asks nobody: a call that the person would be asked about is refused. It may run again for the same occurrence, so the run is
//! not marked as having side effects. The module [`state`] keeps the content of `$OLLIM_STATE`.

mod job;
pub mod state;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_sandbox::{Answer, Judge, Start, Stream};
use async_trait::async_trait;

pub(super) use self::job::GateOutcome;
use super::sandbox::Judged;
use super::shell_line::{ShellLine, how_it_ended, quoted};
use crate::policy::{Decision, Verdict, on_one_line};

/// The reason of a skip by a gate that exited with 1 and printed nothing.
pub const SILENT: &str = "exit 1";

/// Timeout of a gate whose file names none.
pub const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The environment variable that names the folder of the gate's state.
pub const STATE_VARIABLE: &str = "OLLIM_STATE";

/// Maximum length of the output that the agent is given, in bytes.
pub const MAX_SHOWN: usize = 16 * 1024;

/// Maximum size of the files that a gate writes, in total and each, in bytes.
const DISK: u64 = 256 << 20;

/// Maximum number of bytes kept of each output stream.
const MAX_KEPT: usize = 1 << 20;

/// Maximum length of an output line in the record, in characters.
const LONGEST_LINE: usize = 200;

/// Maximum number of refused programs that are recorded.
const MAX_REFUSED: usize = 20;

/// The verdict of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateVerdict {
    /// Exit code 0: the agent is woken and given this output.
    Wake(String),
    /// Exit code 1: there is nothing to do, for this reason.
    Skip(String),
    /// Any other end: the cause, as a sentence without its full stop.
    Failed(String),
}

impl GateVerdict {
    /// Returns the output that the agent is given, if it is woken.
    #[must_use]
    pub fn wakes_with(&self) -> Option<&str> {
        match self {
            Self::Wake(said) => Some(said),
            Self::Skip(_) | Self::Failed(_) => None,
        }
    }

    /// Stores the gate's state with `keep`. The gate has failed if its state cannot be kept.
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

/// A function that decides about a program.
pub type Decide = Arc<dyn Fn(&Start) -> Judged + Send + Sync>;

/// A gate that is ready to run.
pub struct Gate {
    /// The line, in the job's shell.
    pub line: ShellLine,
    /// Time after which it is ended.
    pub timeout: Duration,
    /// The judge of the programs that it starts.
    pub decide: Decide,
}

/// The end of a gate.
#[derive(Clone, Debug)]
pub struct GateEnd {
    /// The verdict.
    pub verdict: GateVerdict,
    /// The programs that were refused.
    pub refused: Vec<Decision>,
}

/// Returns the folder for `$OLLIM_STATE` in a run's folder.
#[must_use]
pub fn state_in(run_dir: &Path) -> PathBuf {
    run_dir.join("tmp").join("state")
}

impl Gate {
    /// Returns the folder for `$OLLIM_STATE`. It must exist before the gate runs.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        state_in(&self.line.run_dir)
    }

    /// Runs the gate to its end; `None` if `cancel` completes first. It begins when `ready` completes. None of its processes remains.
    ///
    /// # Errors
    /// An error if `ready` fails, or if its shell cannot be started or does not end.
    pub async fn run(
        self,
        ready: impl Future<Output = io::Result<()>>,
        cancel: impl Future<Output = ()>,
    ) -> io::Result<Option<GateEnd>> {
        let state = self.state().display().to_string();
        let Self { mut line, timeout, decide } = self;
        line.clean.insert(STATE_VARIABLE.to_owned(), state);
        line.limits.disk = line.limits.disk.min(DISK);
        let seen = Arc::new(RunNotes::default());
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
            kept.extend_from_slice(&bytes[..bytes.len().min(MAX_KEPT - kept.len())]);
        };
        let judge = |env| Arc::new(GateJudge { decide, env, seen: judges }) as Arc<dyn Judge>;
        let status = line.send().await?.run(judge, ready, until, &mut keep).await?;
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

/// Returns the verdict for the end of a gate's shell.
fn verdict(code: Option<i32>, stdout: &[u8], stderr: &[u8]) -> GateVerdict {
    let first = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        on_one_line(line, LONGEST_LINE)
    };
    match code {
        Some(0) => GateVerdict::Wake(beginning(stdout)),
        // Most programs also exit with 1 on an error, and report it on standard error.
        Some(1) if first(stdout).is_empty() && !first(stderr).is_empty() => GateVerdict::Failed(format!(
            "the gate ended with exit code 1 and said on standard error: {}; one that skips says why on standard output",
            quoted(&first(stderr))
        )),
        Some(1) => GateVerdict::Skip(Some(first(stdout)).filter(|line| !line.is_empty()).unwrap_or(SILENT.into())),
        code => {
            let said: Vec<String> = [stderr, stdout].map(first).into_iter().filter(|said| !said.is_empty()).collect();
            let said = if said.is_empty() { String::new() } else { format!(": {}", quoted(&said.join(" / "))) };
            GateVerdict::Failed(format!("the gate ended {}{said}", how_it_ended(code)))
        }
    }
}

/// Returns the beginning of the output, as text.
fn beginning(bytes: &[u8]) -> String {
    let kept = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_SHOWN)]).trim_end().to_owned();
    if bytes.len() > MAX_SHOWN {
        return format!("{}\n(what it printed beyond 16 KiB is left out)", kept.trim_end_matches('\u{fffd}'));
    }
    kept
}

/// A judge that treats a gate's programs as those of a run, but asks nobody.
struct GateJudge {
    decide: Decide,
    env: BTreeMap<String, String>,
    seen: Arc<RunNotes>,
}

/// Events noted while a gate runs.
#[derive(Default)]
struct RunNotes {
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
                if refused.len() < MAX_REFUSED {
                    refused.push(decision);
                }
                answer
            }
            Answer::Outside { program, env, domain, takes_umask, own_folder } => {
                let env = self.env.clone().into_iter().chain(env).collect();
                Answer::Outside { program, env, domain, takes_umask, own_folder }
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
                    "with exit code 1 and said on standard error: \"cat: x: Permission denied\"; one that skips says why on \
                     standard output",
                ),
            ),
            (Some(2), "", "grep: no such file\nmore", failed("with exit code 2: \"grep: no such file\"")),
            (Some(2), "it is \"broken\"\nmore", "", failed("with exit code 2: \"it is 'broken'\"")),
            (Some(2), "x", "grep: no such file\nmore", failed("with exit code 2: \"grep: no such file / x\"")),
            (Some(127), "", "", failed("with exit code 127")),
            (Some(137), "", "", failed("by signal 9")),
            (Some(153), "", "", failed("by signal 25, since a file became larger than its limit")),
            (None, "", "", failed("by a signal")),
        ] {
            assert_eq!(verdict(code, stdout.as_bytes(), stderr.as_bytes()), expected, "{code:?}");
        }
    }

    #[test]
    fn what_is_printed_is_cut_at_a_letter() {
        let long = "é".repeat(MAX_SHOWN);
        let text = beginning(&long.as_bytes()[1..]);
        assert!(text.ends_with("é\n(what it printed beyond 16 KiB is left out)"), "{}", &text[text.len() - 80..]);
        assert!(text.len() <= MAX_SHOWN + 64);
        assert_eq!(beginning(b"a\xff\n\n"), "a\u{fffd}");
    }
}
