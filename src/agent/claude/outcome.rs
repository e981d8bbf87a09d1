//! Classification of a run's end: its class of failure, and a sentence that tells the person what to do.
//!
//! Pure: a function of the observations.

use std::path::Path;
use std::time::Duration;

use super::login::{LOG_IN, Login};
use super::process::Exit;
use super::protocol::TurnResult;
use super::session::{ClientState, TurnEnd};
use crate::agent::client::{AttemptEnd, ClientOptions, Failure, FailureClass, Request, SessionMode};
use crate::agent::tools::SERVER;
use crate::definition::money;
use agent_sandbox::{CANNOT_START, NO_DOMAIN};

/// The reason why a turn is over.
#[derive(Debug)]
pub(super) enum Termination {
    /// The turn ended by itself, or the client did.
    Ended(TurnEnd),
    /// The run was cancelled.
    Cancelled,
    /// The run's time limit, given here, is over.
    TimedOut(Duration),
    /// Our own code panicked.
    Panicked,
}

/// Classifies the end of a run. A run that left work unfinished is never completed.
pub(super) fn name(
    termination: Termination,
    exit: &Exit,
    command: &Path,
    request: &Request,
    client: &ClientState,
) -> AttemptEnd {
    let end = match termination {
        Termination::Cancelled => AttemptEnd::Cancelled,
        Termination::TimedOut(limit) => {
            let limit = humantime::format_duration(limit);
            unreached(client, &format!("{limit} were over (`timeout`)")).unwrap_or_else(|| timed_out_after(&limit))
        }
        Termination::Panicked => panicked(),
        Termination::Ended(TurnEnd::Silent(limit)) => {
            let limit = humantime::format_duration(limit);
            unreached(client, &format!("it was silent for {limit} (`inactivity_timeout`)")).unwrap_or_else(|| {
                AttemptEnd::TimedOut(format!("the agent client was silent for {limit} (`inactivity_timeout`)"))
            })
        }
        Termination::Ended(TurnEnd::Result(result)) => of_result(&result, resumes(&request.session), &request.options),
        Termination::Ended(TurnEnd::Exited) => of_exit(exit, command, resumes(&request.session)),
        Termination::Ended(end) => AttemptEnd::Failed(of_fault(end, exit)),
    };
    let end = match &client.unjudged {
        Some(tool) => AttemptEnd::Failed(unjudged(tool)),
        None => end,
    };
    let Some(lost) = lost(client) else { return end };
    match end {
        AttemptEnd::Completed => AttemptEnd::Failed(Failure::new(
            FailureClass::ErrorResult,
            format!("the agent client ended its turn before its work was done: {lost}"),
        )),
        AttemptEnd::TimedOut(limit) => AttemptEnd::TimedOut(format!("{limit}; {lost}")),
        AttemptEnd::Failed(failure) => {
            AttemptEnd::Failed(Failure::new(failure.class, format!("{}; {lost}", failure.message)))
        }
        other => other,
    }
}

/// Returns the end of a turn that was cut off while the client retried an unanswering API, which is then the cause.
fn unreached(client: &ClientState, until: &str) -> Option<AttemptEnd> {
    let fault = client.api.fault.as_ref()?;
    let tries = match client.api.retries {
        1 => "once more".to_owned(),
        tries => format!("{tries} times more"),
    };
    let message = format!("{fault}; the agent client tried {tries}, until {until}");
    Some(AttemptEnd::Failed(Failure::new(FailureClass::Overloaded, message)))
}

/// Describes unfinished work: tasks that were cut off, and calls that came too late for a verdict.
fn lost(client: &ClientState) -> Option<String> {
    let cut_off = client.tasks.any().then(|| format!("{} was still going and was cut off", client.tasks.names()));
    let calls = (client.asked_too_late > 0)
        .then(|| format!("it made {} more calls when the turn was over, which were denied", client.asked_too_late));
    let lost: Vec<String> = cut_off.into_iter().chain(calls).collect();
    (!lost.is_empty()).then(|| lost.join("; "))
}

fn unjudged(tool: &str) -> Failure {
    let message = format!(
        "the agent client ran its tool `{tool}`, which ollim-bot had not allowed, so the run was ended. Report this, with \
         `claude --version`"
    );
    Failure::new(FailureClass::SurfaceMismatch, message)
}

fn of_fault(end: TurnEnd, exit: &Exit) -> Failure {
    let (class, message) = match end {
        TurnEnd::NotInitialized => {
            let said = stderr_tail(exit);
            (FailureClass::InitializeTimeout, format!("the agent client did not answer after its start{said}"))
        }
        TurnEnd::Refused(error) => (FailureClass::ErrorResult, format!("the agent client refused to begin: {error}")),
        TurnEnd::Unauthorized => (FailureClass::NotLoggedIn, "the API refuses the login (401)".into()),
        TurnEnd::Surface(tools) => {
            let tools = tools.join("`, `");
            let message = format!(
                "the agent client shows tools that this job does not have: `{tools}`; nothing was run. Report this, with `claude --version`"
            );
            (FailureClass::SurfaceMismatch, message)
        }
        TurnEnd::Unjudged(tool) => return unjudged(&tool),
        TurnEnd::TooLong => {
            let message = "the conversation became too long, and the agent client may not make it shorter: it would read files \
                           again without asking, and `ask_tools` of this job names files. Let the job read less in a run, or move the \
                           rules for files out of `ask_tools`";
            (FailureClass::ErrorResult, message.to_owned())
        }
        TurnEnd::WithoutServer { name, version } if name != SERVER => {
            let message = format!(
                "the agent client (version {version}) shows none of the tools of the MCP server `{name}`; nothing was run. \
                 `ollim-bot mcp tools {name}` lists them"
            );
            (FailureClass::SurfaceMismatch, message)
        }
        TurnEnd::WithoutTool { name, version } => {
            let message = format!(
                "the agent client (version {version}) does not show the tool `{name}`, which the job's rules name; nothing was run. Another \
                 name of the server in `mcp_servers` may help: the client hides tools of some names"
            );
            (FailureClass::SurfaceMismatch, message)
        }
        TurnEnd::WithoutServer { version, .. } => {
            let version = if version.is_empty() { "unknown" } else { &version };
            let message = format!(
                "the agent client (version {version}) shows none of our tools, so the job could reach nobody; nothing was \
                 run. Update it: `claude update`"
            );
            (FailureClass::SurfaceMismatch, message)
        }
        TurnEnd::Malformed(fault) => (
            FailureClass::Garbage,
            format!("the agent client wrote over 100 lines that are no messages (last: {fault})"),
        ),
        TurnEnd::Unreadable(error) => {
            (FailureClass::Garbage, format!("the agent client's output cannot be read: {error}"))
        }
        TurnEnd::Result(_) | TurnEnd::Exited | TurnEnd::Silent(_) => {
            (FailureClass::Internal, "an end without a name".into())
        }
    };
    Failure::new(class, message)
}

fn of_exit(exit: &Exit, command: &Path, resumed: bool) -> AttemptEnd {
    let said = exit.stderr.trim();
    let ours = said.lines().rev().find_map(|line| line.strip_prefix("ollim-bot: "));
    let code = exit.code.and_then(|code| u8::try_from(code).ok());
    let (class, message) = match (code, ours) {
        (Some(CANNOT_START), Some(why)) => (FailureClass::SpawnFailed, cannot_start(command, why)),
        (Some(NO_DOMAIN), Some(why)) => (FailureClass::Internal, format!("the agent client was not started: {why}")),
        _ if resumed && said.contains(NO_SESSION) => return session_missing(),
        _ => {
            let how = exit.code.map_or_else(|| "was killed".to_string(), |code| format!("ended with code {code}"));
            (FailureClass::ExitedEarly, format!("the agent client {how} before its turn was over{}", stderr_tail(exit)))
        }
    };
    AttemptEnd::Failed(Failure::new(class, message))
}

/// Returns the failure of a run whose processes exceeded a limit. `what` is a sentence that names the limit.
pub(super) fn exceeded(what: &str) -> Failure {
    let raise = if what.contains("`limits.") { "; raise it in config.yaml if the job needs more" } else { "" };
    let message = format!("the run was ended, since {what}{raise}");
    Failure::new(FailureClass::LimitExceeded, message)
}

/// The client's message when the session to resume does not exist.
const NO_SESSION: &str = "No conversation found";

fn session_missing() -> AttemptEnd {
    let message =
        "the session to go on with does not exist any more; the next turn of the main session begins a new one";
    AttemptEnd::Failed(Failure::new(FailureClass::MainSessionMissing, message))
}

fn resumes(session: &SessionMode) -> bool {
    matches!(session, SessionMode::ForkOfMain { .. } | SessionMode::Main(Some(_)) | SessionMode::Beside(Some(_)))
}

fn stderr_tail(exit: &Exit) -> String {
    let said = exit.stderr.trim();
    if said.is_empty() { "; it said nothing".into() } else { format!("; it said:\n{said}") }
}

/// Classifies a `result` message. `resumed` says that the client was to resume a session.
fn of_result(result: &TurnResult, resumed: bool, options: &ClientOptions) -> AttemptEnd {
    if !result.is_error {
        return AttemptEnd::Completed;
    }
    let mut said: Vec<String> =
        result.errors.iter().map(|e| e.as_str().map_or_else(|| e.to_string(), Into::into)).collect();
    said.extend(result.result.clone().filter(|text| !text.is_empty()));
    let said = said.join("; ");
    // Later the words are those of the model, or of what it has called.
    if resumed && said.contains(NO_SESSION) && result.num_turns.is_none_or(|turns| turns == 0) {
        return session_missing();
    }
    let login = ["Invalid API key", "/login", "Not logged in", "OAuth token"].iter().any(|words| said.contains(words));
    let network = ["Connection error", "Unable to connect", "ECONN", "ENOTFOUND", "fetch failed", "timed out"]
        .iter()
        .any(|words| said.contains(words));
    AttemptEnd::Failed(match (result.api_error_status, result.subtype.as_str()) {
        (Some(401), _) => Failure::new(FailureClass::NotLoggedIn, "the API refuses the login (401)"),
        (Some(status @ (408 | 429 | 500..)), _) => {
            Failure::new(FailureClass::Overloaded, format!("the API did not answer as it should ({status}): {said}"))
        }
        (_, "error_max_turns") => {
            let turns = result.num_turns.map_or_else(String::new, |turns| format!(" ({turns})"));
            Failure::new(
                FailureClass::ErrorResult,
                format!("the turns were used up{turns} before the work was done (`max_turns`)"),
            )
        }
        (_, "error_max_budget_usd") => {
            let cost = result.total_cost_usd.map(|cost| format!("; it took {}", money(cost))).unwrap_or_default();
            let limit = options.max_budget_usd.map(|limit| format!(" of {}", money(limit))).unwrap_or_default();
            let from = options.max_budget_from;
            let from = if from.is_empty() { String::new() } else { format!("\nhint: the limit is {from}") };
            let message = format!(
                "the money for a run was used up before the work was done: the limit{limit} was reached{cost}{from}"
            );
            Failure::new(FailureClass::ErrorResult, message)
        }
        (None, _) if login => Failure::new(FailureClass::NotLoggedIn, said),
        (None, _) if network => Failure::new(FailureClass::Overloaded, format!("the API cannot be reached: {said}")),
        (_, subtype) if said.is_empty() => Failure::new(
            FailureClass::ErrorResult,
            format!("the agent client ended its turn with an error ({subtype})"),
        ),
        _ => Failure::new(FailureClass::ErrorResult, format!("the agent client ended its turn with an error: {said}")),
    })
}

pub(super) fn timed_out(limit: Duration) -> AttemptEnd {
    timed_out_after(&humantime::format_duration(limit))
}

fn timed_out_after(limit: &humantime::FormattedDuration) -> AttemptEnd {
    AttemptEnd::TimedOut(format!("it took longer than {limit} (`timeout`)"))
}

pub(super) fn panicked() -> AttemptEnd {
    AttemptEnd::Failed(Failure::new(
        FailureClass::Internal,
        "ollim-bot panicked in this run: a fault of its own, please report it",
    ))
}

pub(super) fn cannot_start(command: &Path, why: &str) -> String {
    format!(
        "the agent client {} cannot be run: {why}\nhint: npm install -g @anthropic-ai/claude-code",
        command.display()
    )
}

/// Formats the failure. `login` is the refused login; `None` means that there was none.
pub(super) fn not_logged_in(why: &str, login: Option<&Login>) -> String {
    let from = login.map(|login| format!("; the login is from {}", login.source)).unwrap_or_default();
    let remedy = login.map_or_else(|| LOG_IN.to_owned(), Login::remedy);
    format!("the agent client is not logged in: {why}{from}\nhint: {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expect: Option<(FailureClass, &str)>) {
        let result: TurnResult = serde_json::from_str(json).unwrap();
        let options = ClientOptions {
            max_budget_usd: Some(0.005),
            max_budget_from: "a tenth of the day",
            ..ClientOptions::default()
        };
        match (of_result(&result, true, &options), expect) {
            (AttemptEnd::Completed, None) => {}
            (AttemptEnd::Failed(failure), Some((class, words))) => {
                assert_eq!(failure.class, class, "{failure:?}");
                assert!(failure.message.contains(words), "{failure:?}");
            }
            (end, _) => panic!("{end:?}"),
        }
    }

    #[test]
    fn a_result_is_judged_by_is_error() {
        use FailureClass::{ErrorResult, NotLoggedIn, Overloaded};
        check(r#"{"subtype":"success","is_error":false,"result":"Invalid API key"}"#, None);
        check(
            r#"{"subtype":"success","is_error":true,"api_error_status":401,"result":"x"}"#,
            Some((NotLoggedIn, "401")),
        );
        check(
            r#"{"subtype":"success","is_error":true,"api_error_status":529,"result":"Overloaded"}"#,
            Some((Overloaded, "529")),
        );
        check(
            r#"{"subtype":"success","is_error":true,"api_error_status":429,"result":"slow"}"#,
            Some((Overloaded, "slow")),
        );
        check(
            r#"{"subtype":"success","is_error":true,"result":"API Error: Connection error."}"#,
            Some((Overloaded, "reached")),
        );
        check(
            r#"{"subtype":"success","is_error":true,"result":"Not logged in · Please run /login"}"#,
            Some((NotLoggedIn, "/login")),
        );
        check(r#"{"subtype":"error_max_turns","is_error":true,"num_turns":3}"#, Some((ErrorResult, "(3)")));
        check(
            r#"{"subtype":"error_max_budget_usd","is_error":true,"total_cost_usd":0.0061}"#,
            Some((
                ErrorResult,
                "the limit of $0.005 was reached; it took $0.0061\nhint: the limit is a tenth of the day",
            )),
        );
        check(r#"{"subtype":"error_during_execution","is_error":true,"errors":["boom"]}"#, Some((ErrorResult, "boom")));
        check(
            r#"{"subtype":"success","is_error":true,"api_error_status":400,"result":"bad"}"#,
            Some((ErrorResult, "bad")),
        );
        // After a turn they are somebody else's words.
        check(
            r#"{"is_error":true,"num_turns":2,"errors":["No conversation found with session ID: 0f"]}"#,
            Some((ErrorResult, "No conversation found")),
        );
        let gone = r#"{"is_error":true,"num_turns":0,"errors":["No conversation found with session ID: 0f"]}"#;
        check(gone, Some((FailureClass::MainSessionMissing, "a new one")));
        let gone = r#"{"is_error":true,"errors":["No conversation found with session ID: 0f"]}"#;
        check(gone, Some((FailureClass::MainSessionMissing, "a new one")));
        check(r#"{"is_error":true}"#, Some((ErrorResult, "error")));
    }

    #[test]
    fn an_exit_is_named_by_its_code_and_words() {
        use FailureClass::{ExitedEarly, Internal, MainSessionMissing, SpawnFailed};
        let check = |code: Option<i32>, stderr: &str, expect: FailureClass, words: &str| {
            let exit = Exit { code, stderr: stderr.into() };
            let AttemptEnd::Failed(failure) = of_exit(&exit, Path::new("/bin/claude"), true) else {
                panic!("{exit:?}")
            };
            assert_eq!(failure.class, expect, "{failure:?}");
            assert!(failure.message.contains(words), "{failure:?}");
        };
        check(Some(127), "x\nollim-bot: cannot start /bin/claude: no\n", SpawnFailed, "npm install -g");
        // This 127 is the client's own, without our runner's message.
        check(Some(127), "sh: node: not found", ExitedEarly, "node: not found");
        check(
            Some(126),
            "ollim-bot: this kernel does not hold the whole sandbox",
            Internal,
            "not hold the whole sandbox",
        );
        check(Some(1), "No conversation found with session ID: 1", MainSessionMissing, "begins a new one");
        check(Some(1), "", ExitedEarly, "it said nothing");
        check(None, "", ExitedEarly, "was killed");
    }
}
