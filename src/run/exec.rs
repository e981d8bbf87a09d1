//! A job's command (`client: exec`): a line in the job's shell, without an agent.
//!
//! It runs in the same sandbox as a gate ([`super::shell_line`]), but the run's host judges its programs. So they are recorded, and
//! the person is asked about them, as in an agent's run. The run is marked as having side effects before the shell starts, since
//! nobody can tell what a line has done when it is cut off.

mod output;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_sandbox::{Answer, Judge, Start, Stream};
use async_trait::async_trait;
use tokio::sync::Notify;

use self::output::Output;
use super::expected::Expected;
use super::host::Host;
use super::runner::{RunSettings, Runner};
use super::sandbox::JobSandbox;
use super::shell_line::{Beginning, FileLine, SentLine, how_it_ended, quoted};
use crate::agent::{AttemptEnd, AttemptReport, Failure, FailureClass, Observation, RunHost as _, UsedClient};
use crate::definition::{Definition, Deliver};
use crate::journal::{Denial, RunId};
use crate::policy::{Policy, on_one_line};
use crate::refusal::Refusal;
use crate::schedule::Job;

/// The client's name in the record.
pub const EXEC: &str = "exec";

/// Delay before output is recorded. Output that follows within this time is recorded with it.
const FLUSH_DELAY: Duration = Duration::from_millis(250);

/// Maximum number of records while the command runs. The remaining output is recorded at its end.
const MAX_PIECES: usize = 400;

/// Maximum size of one recorded piece, in bytes.
const PIECE: usize = 16 * 1024;

/// Maximum length of an output line in an error, in characters.
const LONGEST_LINE: usize = 200;

/// Maximum length of the output in a message to the person, in characters.
const MAX_SENT: usize = 4000;

/// Events noted while a command runs.
#[derive(Default)]
struct RunNotes {
    /// The first program that was refused.
    refused: Mutex<Option<RefusedProgram>>,
    /// The resource limit that the command exceeded, as a sentence.
    exceeded: Mutex<Option<String>>,
}

/// A program that was refused.
struct RefusedProgram {
    words: String,
    why: String,
    /// Whether the person refused it.
    by_person: bool,
}

/// The end of a command line.
enum CommandEnd {
    /// The shell exited with this code.
    Code(Option<i32>),
    /// The time limit was reached.
    TimedOut(Duration),
    /// The run was cancelled.
    Cancelled,
}

/// A job's command in its sandbox. Its shell prepares itself, and does not begin.
#[derive(Debug)]
pub(super) struct PreparedCommand {
    /// The definition, with what limits it.
    definition: Arc<Definition>,
    /// The settings with which it is prepared.
    pub(super) settings: RunSettings,
    policy: Policy,
    sandbox: JobSandbox,
    /// The line, or the denial of its tools.
    line: Result<SentLine, Denial>,
}

impl PreparedCommand {
    /// Ends the command, which has not begun. None of its processes remains.
    pub(super) async fn discard(self) {
        if let Ok(line) = self.line {
            line.discard().await;
        }
    }
}

impl Runner {
    /// Prepares the command of a definition for the attempt `run`.
    ///
    /// # Errors
    /// An error if our own part failed.
    pub(super) async fn prepare_command(
        &self,
        definition: &Arc<Definition>,
        run: &RunId,
    ) -> Result<PreparedCommand, Refusal> {
        let definition = self.spawner.limited(definition).await?;
        let settings = self.settings();
        let runner = self.line_runner().await?;
        let run_dir = self.run_dir(run)?;
        let setup = self.setup(&definition, None).await?;
        let sandbox = self.sandbox(&setup, &run_dir, &settings)?;
        let policy = setup.policy;
        let text = definition.command.as_deref().ok_or_else(|| Refusal::environment("the job has no command"))?;
        let line = FileLine { text, is_one_stream: true, policy: &policy, sandbox: Some(&sandbox) };
        let line = match self.shell_line(&line, run, runner, &settings)? {
            Ok(line) => Ok(line.send().await.map_err(not_run)?),
            Err(denial) => Err(denial),
        };
        Ok(PreparedCommand { definition, settings, policy, sandbox, line })
    }

    /// Runs a job's command to its end.
    ///
    /// # Errors
    /// An error if our own part failed. A failed command is a report.
    pub(super) async fn exec(&self, job: &Job, prepared: PreparedCommand) -> Result<AttemptReport, Refusal> {
        if job.cancel.is_cancelled() {
            prepared.discard().await;
            return Ok(AttemptReport::bare(AttemptEnd::Cancelled));
        }
        let PreparedCommand { definition, settings, policy, sandbox, line } = prepared;
        let job = &Job { definition, ..job.clone() };
        let host = Arc::new(self.host(job, policy, Some(sandbox), &settings, EXEC));
        let expected = job
            .definition
            .expect
            .clone()
            .map(|expect| Expected::new(expect, self.home.work(), may_ping(&job.definition)));
        let mut report = match line {
            Ok(line) => self.run_line(line, job, &host, &settings).await?,
            Err(denial) => {
                let why = denial.reason.clone();
                host.record(denial).await;
                failed(format!("the job's tools do not cover its command: {why}"))
            }
        };
        host.questions.close().await;
        if let Some(expected) = expected {
            expected.hold(&mut report, &*host.delivery.lock().await);
        }
        report.client = Some(UsedClient { name: EXEC, version: None, is_agent: false });
        Ok(report)
    }

    async fn run_line(
        &self,
        mut line: SentLine,
        job: &Job,
        host: &Arc<Host>,
        settings: &RunSettings,
    ) -> Result<AttemptReport, Refusal> {
        let Beginning { own, ready } = self.beginning(job, host, Some("command"), &mut line.of_programs)?;
        let (seen, output, printed) =
            (Arc::new(RunNotes::default()), Mutex::new(Output::keeping(kept(&job.definition))), Notify::new());
        let timeout = job.definition.timeout.unwrap_or(settings.timeout);
        let mut stopped = None;
        let until = async {
            stopped = tokio::select! {
                () = tokio::time::sleep(timeout) => Some(CommandEnd::TimedOut(timeout)),
                () = job.cancel.cancelled() => Some(CommandEnd::Cancelled),
                () = record_as_it_comes(host, &output, &printed) => None,
            };
        };
        let mut heard = |_: Stream, bytes: &[u8]| {
            lock(&output).push(bytes);
            printed.notify_one();
        };
        let judges = Arc::clone(&seen);
        let judge = |env| Arc::new(CommandJudge { host: Arc::clone(host), env, seen: judges }) as Arc<dyn Judge>;
        let ended = line.run(judge, ready, until, &mut heard).await;
        // All processes of the command have ended, so its token is revoked.
        drop(own);
        let ended = ended.map_err(not_run)?;
        let mut output = output.into_inner().unwrap_or_else(PoisonError::into_inner);
        let report = report_of(
            ended.map_or_else(|| stopped.unwrap_or(CommandEnd::Cancelled), |s| CommandEnd::Code(s.code())),
            &seen,
            &output,
            job,
        );
        record(host, &output.take_rest());
        Ok(report)
    }
}

/// Records output while it is printed, up to [`MAX_PIECES`] times. Never returns.
async fn record_as_it_comes(host: &Host, output: &Mutex<Output>, printed: &Notify) {
    for _ in 0..MAX_PIECES {
        printed.notified().await;
        tokio::time::sleep(FLUSH_DELAY).await;
        let lines = lock(output).take_lines();
        record(host, &lines);
    }
    std::future::pending().await
}

/// Records output in pieces.
fn record(host: &Host, mut text: &str) {
    while !text.trim().is_empty() {
        let mut end = text.len().min(PIECE);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, rest) = text.split_at(end);
        host.observe(Observation::Printed { text: piece.to_owned() });
        text = rest;
    }
}

/// Builds the report of a command that has ended.
fn report_of(end: CommandEnd, seen: &RunNotes, output: &Output, job: &Job) -> AttemptReport {
    let definition = &*job.definition;
    let refused = seen.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
    let exceeded = seen.exceeded.lock().unwrap_or_else(PoisonError::into_inner).take();
    let said =
        Some(output.last_lines(LONGEST_LINE)).filter(|said| !said.is_empty() && deliver(definition) != Deliver::Never);
    match (end, refused, exceeded) {
        (CommandEnd::Cancelled, ..) => AttemptReport::bare(AttemptEnd::Cancelled),
        (_, _, Some(what)) => AttemptReport::bare(AttemptEnd::Failed(Failure::new(
            FailureClass::LimitExceeded,
            format!("the command was ended, since {what}"),
        ))),
        (CommandEnd::TimedOut(limit), ..) => AttemptReport::bare(AttemptEnd::TimedOut(format!(
            "the command took longer than {} (`timeout`) and was ended",
            humantime::format_duration(limit)
        ))),
        // This holds whatever exit code the line returns after a refusal.
        (_, Some(refused), _) => refused_by(&refused, deliver(definition) == Deliver::Never),
        (CommandEnd::Code(Some(0)), ..) => {
            let mut report = AttemptReport::bare(AttemptEnd::Completed);
            report.messages.extend(sent(output, job));
            report
        }
        (CommandEnd::Code(code), ..) => {
            let said = said.map(|said| format!(": {}", quoted(&said))).unwrap_or_default();
            failed(format!("the command ended {}{said}", how_it_ended(code)))
        }
    }
}

/// Returns the report of a command that was refused a program. `is_hidden`: the program's name stays in the run's record.
fn refused_by(RefusedProgram { words, why, by_person }: &RefusedProgram, is_hidden: bool) -> AttemptReport {
    let words = on_one_line(words, LONGEST_LINE);
    match (by_person, is_hidden) {
        (true, true) => AttemptReport::bare(AttemptEnd::Refused(
            "you were asked about a program of its command and said no".to_owned(),
        )),
        (true, false) => AttemptReport::bare(AttemptEnd::Refused(format!("you were asked and said no to `{words}`"))),
        (false, true) => {
            failed("the command was refused a program; `deliver: never` keeps its name to the run's record".to_owned())
        }
        (false, false) => {
            failed(format!("the command was refused a program: `{words}`: {}", on_one_line(why, LONGEST_LINE)))
        }
    }
}

/// Returns the output to send to the person after a completed command, if any.
fn sent(output: &Output, job: &Job) -> Option<String> {
    let text = output.text();
    if !matches!(deliver(&job.definition), Deliver::Always | Deliver::Digest) || text.trim().is_empty() {
        return None;
    }
    let text = match text.char_indices().nth(MAX_SENT) {
        Some((end, _)) => {
            format!(
                "{}\n… `ollim-bot runs show {} --transcript` shows all that is kept.",
                text[..end].trim_end(),
                job.run
            )
        }
        None => text,
    };
    // What a command prints may be anybody's words, and does not pass for one of the service's own.
    let text = format!("[bg] {text}");
    Some(match &job.late {
        Some(late) => format!("{late}\n\n{text}"),
        None => text,
    })
}

/// Returns how many bytes of output are kept: few if another job made this job, since the output costs the maker nothing.
fn kept(definition: &Definition) -> usize {
    if definition.created_by.is_some() { 4 * 1024 } else { 64 * 1024 }
}

/// Returns whether a job's own words may reach the person.
pub(super) fn may_ping(definition: &Definition) -> bool {
    definition.background().is_some_and(|background| background.restrictions.allow_ping)
}

/// Returns which output the person is sent: none if the job may not reach them, and none of a job that another one has made, unless the
/// person has said so in its file. A job could send as many messages as it likes by commands that fail.
fn deliver(definition: &Definition) -> Deliver {
    match definition.deliver {
        _ if !may_ping(definition) => Deliver::Never,
        Deliver::Failure if definition.created_by.is_some() => Deliver::Never,
        deliver => deliver,
    }
}

fn not_run(error: io::Error) -> Refusal {
    Refusal::environment(format!("the command cannot be run: {error}"))
}

fn failed(why: String) -> AttemptReport {
    AttemptReport::bare(AttemptEnd::Failed(Failure::new(FailureClass::CommandFailed, why)))
}

fn lock(output: &Mutex<Output>) -> std::sync::MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A judge that asks the run's host about programs, and keeps the first that was refused.
struct CommandJudge {
    host: Arc<Host>,
    /// The environment of programs outside of the shell.
    env: BTreeMap<String, String>,
    seen: Arc<RunNotes>,
}

#[async_trait]
impl Judge for CommandJudge {
    async fn judge(&self, start: Start) -> Answer {
        let words = start.argv.join(" ");
        let (host, runtime) = (Arc::clone(&self.host), tokio::runtime::Handle::current());
        // Judging runs on a blocking thread: a line may pass arguments of any length.
        let judged = tokio::task::spawn_blocking(move || runtime.block_on(host.judge(start))).await;
        match judged {
            Ok(Answer::Outside { program, env, domain, takes_umask, own_folder }) => {
                let env = self.env.clone().into_iter().chain(env).collect();
                Answer::Outside { program, env, domain, takes_umask, own_folder }
            }
            Ok(answer @ Answer::Here { .. }) => answer,
            refused => {
                let failed = |_| Answer::Deny { code: 126, message: "denied, since the decision failed".into() };
                let answer = refused.unwrap_or_else(failed);
                if let Answer::Deny { message, .. } = &answer {
                    let mut first = self.seen.refused.lock().unwrap_or_else(PoisonError::into_inner);
                    let by_person = self.host.questions.is_refused();
                    first.get_or_insert_with(|| RefusedProgram { words, why: message.clone(), by_person });
                }
                answer
            }
        }
    }

    fn exceeded(&self, what: String) {
        *self.seen.exceeded.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }
}
