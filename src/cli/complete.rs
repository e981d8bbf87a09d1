//! Shell completion. The shell calls this program at each Tab, so it offers the current jobs, runs, agents and own commands.
//!
//! The static scripts of clap know none of these. The one for bash also offers nothing after the first word of a program with global flags
//! (clap#6421).

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use clap::builder::StyledStr;
use clap::{Arg, ValueHint};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate, SubcommandCandidates};
use clap_complete::env::Shells;

use super::examples;
use crate::app::{App, Command, Outcome};
use crate::channel::terminal::plain;
use crate::config::CONSOLE;
use crate::definition::Kind;
use crate::definition::fields::{FIELDS, Shape};
use crate::journal::{Question, RunFilter};
use crate::refusal::Refusal;

/// Environment variable in which the script names the shell.
pub(super) const ASKED_BY: &str = "OLLIM_COMPLETE";

/// Maximum number of runs offered.
const RUNS: u32 = 50;

/// The kind of names that a value can be.
#[derive(Clone, Copy, Debug)]
enum Names {
    Jobs,
    Of(Kind),
    Failed,
    Runs,
    JobsAndRuns,
    Going,
    Channels,
    Agents,
    Sessions,
    Skills,
    Zones,
    Servers,
    Questions,
    Hosts,
}

/// Prefix of a command's path, an argument's id, and its kind of names. The first match counts.
const PLACES: &[(&str, &str, Names)] = &[
    ("reminder retry", "ids", Names::Failed),
    ("reminder restore", "runs", Names::Runs),
    ("reminder edit", "job", Names::Of(Kind::Reminder)),
    ("routine edit", "job", Names::Of(Kind::Routine)),
    ("reminder", "id", Names::Of(Kind::Reminder)),
    ("reminder", "ids", Names::Of(Kind::Reminder)),
    ("routine", "id", Names::Of(Kind::Routine)),
    ("routine", "ids", Names::Of(Kind::Routine)),
    ("webhook", "ids", Names::Of(Kind::Webhook)),
    ("pause", "ids", Names::Jobs),
    ("resume", "ids", Names::Jobs),
    ("edit", "id", Names::Jobs),
    ("fire", "ids", Names::Jobs),
    ("sessions reset", "id", Names::Jobs),
    ("runs", "id", Names::Jobs),
    ("runs show", "run", Names::Runs),
    ("runs follow", "target", Names::JobsAndRuns),
    ("logs", "about", Names::JobsAndRuns),
    ("why", "id", Names::JobsAndRuns),
    ("simulate", "ids", Names::Jobs),
    ("channels test", "name", Names::Channels),
    ("", "channel", Names::Channels),
    ("", "after", Names::Jobs),
    ("mcp", "server", Names::Servers),
    ("questions answer", "number", Names::Questions),
    ("", "hosts", Names::Hosts),
    ("", "context-from", Names::Jobs),
    ("cancel-run", "runs", Names::Going),
    ("next", "ids", Names::Jobs),
    ("check", "files", Names::Jobs),
    ("follow-up-chain", "chain", Names::Of(Kind::Reminder)),
    ("policy", "definition", Names::Jobs),
    ("agents show", "name", Names::Agents),
    ("sessions", "session", Names::Sessions),
    ("", "agent", Names::Agents),
    ("", "skills", Names::Skills),
    ("", "timezone", Names::Zones),
];

/// An argument whose value is a folder, of a table that knows nothing of completion.
const FOLDER: &str = "watch";

/// Returns the script that sets up completion in a shell.
///
/// # Errors
/// Fails if the shell is not supported.
pub(super) fn script(shell: clap_complete::Shell) -> Result<String, Refusal> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string());
    let completer = completer.ok_or_else(|| Refusal::user(format!("there is no completion for {shell}")))?;
    completer
        .write_registration(ASKED_BY, "ollim-bot", "ollim-bot", "ollim-bot", &mut script)
        .map_err(|error| Refusal::environment(format!("cannot write the script: {error}")))?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Returns the completions for a shell. `argv` is `ollim-bot -- WORD…`, as the script calls it. On an error the result is empty, since a
/// message would disturb the line being typed.
pub(super) fn answer(shell: &OsStr, argv: &[OsString], folder: &Path, app: &App) -> String {
    let shells = Shells::builtins();
    let Some(completer) = shell.to_str().and_then(|shell| shells.completer(shell)) else { return String::new() };
    let words: Vec<OsString> = argv.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
    let whole = examples::command();
    let topics = topics(&whole);
    let mut command = offering(whole, "", &Arc::new(app.clone())).mut_subcommand("help", |help| {
        clap::Command::new("help").about(help.get_about().cloned().unwrap_or_default()).subcommands(topics)
    });
    let known = app.clone();
    command = command.add(SubcommandCandidates::new(move || {
        known.external_commands().into_iter().map(CompletionCandidate::new).collect()
    }));
    command.build();
    let mut answer = Vec::new();
    if words.is_empty() || completer.write_complete(&mut command, words, Some(folder), &mut answer).is_err() {
        return String::new();
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Returns the visible commands without their arguments, as `help` names them.
fn topics(command: &clap::Command) -> Vec<clap::Command> {
    let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let topic = |sub: &clap::Command| {
        let about = sub.get_about().cloned().unwrap_or_default();
        clap::Command::new(sub.get_name().to_owned())
            .about(about)
            .subcommands(topics(sub))
            .disable_help_subcommand(true)
    };
    visible.map(topic).collect()
}

/// Returns the data folder from `--home`.
pub(super) fn home_in(argv: &[OsString]) -> Option<&Path> {
    let named = argv.windows(2).find(|pair| pair[0] == "--home").map(|pair| Path::new(&pair[1]));
    named.or_else(|| argv.iter().find_map(|word| word.to_str()?.strip_prefix("--home=").map(Path::new)))
}

/// Adds completions to the command's arguments.
fn offering(command: clap::Command, path: &str, app: &Arc<App>) -> clap::Command {
    let command = command.mut_args(|arg| match names(path, &arg) {
        _ if arg.get_id() == FOLDER => arg.value_hint(ValueHint::DirPath),
        Some(offered) => {
            let app = Arc::clone(app);
            arg.add(ArgValueCandidates::new(move || offered(&app)))
        }
        None => arg,
    });
    command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        offering(sub, path.trim(), app)
    })
}

type Offer = Box<dyn Fn(&App) -> Vec<CompletionCandidate> + Send + Sync>;

fn names(path: &str, arg: &Arg) -> Option<Offer> {
    let below = |start: &str| {
        start.is_empty() || path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    if let Some((.., names)) = PLACES.iter().find(|(start, id, _)| below(start) && arg.get_id() == *id) {
        return Some(Box::new(|app| candidates(*names, app).unwrap_or_default()));
    }
    // A field with fixed words as values.
    let long = arg.get_long()?;
    let field = FIELDS.iter().find(|field| field.flags.iter().any(|flag| flag.long == long))?;
    match field.shape {
        Shape::Word(words) if arg.get_action().takes_values() => {
            Some(Box::new(move |_| words().iter().map(CompletionCandidate::new).collect()))
        }
        _ => None,
    }
}

fn sessions(app: &App) -> Option<Vec<CompletionCandidate>> {
    let Ok(Outcome::Sessions(sessions)) = app.execute(Command::Sessions) else { return None };
    let children = sessions.children.into_iter().map(|child| CompletionCandidate::new(child.record.id.to_string()));
    Some(children.chain([CompletionCandidate::new("main")]).collect())
}

/// Returns the current names, or `None` if they cannot be read.
fn candidates(names: Names, app: &App) -> Option<Vec<CompletionCandidate>> {
    let candidate = |name: String, help: &str| {
        let help = (!help.is_empty()).then(|| StyledStr::from(plain(help)));
        CompletionCandidate::new(name).help(help)
    };
    let of = |kind| match app.execute(Command::List(kind)) {
        Ok(Outcome::Jobs(list)) => Some(list),
        _ => None,
    };
    let jobs = |kind| -> Option<Vec<CompletionCandidate>> {
        let jobs = of(kind)?.jobs.into_iter();
        Some(jobs.map(|job| candidate(job.definition.id.to_string(), &job.definition.description)).collect())
    };
    let runs = |keep: fn(&crate::journal::RunRecord) -> bool| -> Option<Vec<CompletionCandidate>> {
        let filter = RunFilter { limit: Some(RUNS), ..RunFilter::default() };
        let Ok(Outcome::Runs { runs, .. }) = app.execute(Command::Runs(filter)) else { return None };
        let runs = runs.into_iter().filter(keep);
        Some(runs.map(|run| candidate(run.run.to_string(), &format!("{} {}", run.id, run.outcome))).collect())
    };
    match names {
        Names::Of(kind) => jobs(kind),
        Names::Jobs => Some(Kind::WITH_FILES.into_iter().filter_map(jobs).flatten().collect()),
        Names::JobsAndRuns => {
            let both = [Names::Jobs, Names::Runs].into_iter();
            Some(both.filter_map(|names| candidates(names, app)).flatten().collect())
        }
        Names::Channels => {
            let config = app.config().ok()?;
            let named = config.channels.iter().map(|channel| channel.name.clone());
            Some(named.chain([CONSOLE.to_owned()]).map(|name| candidate(name, "")).collect())
        }
        Names::Failed => {
            let failed = of(Kind::Reminder)?.failed.into_iter();
            Some(failed.map(|failed| candidate(failed.id.to_string(), &failed.reason.unwrap_or_default())).collect())
        }
        Names::Runs => runs(|_| true),
        Names::Going => runs(|run| !run.outcome.is_over()),
        Names::Agents => match app.execute(Command::Agents) {
            Ok(Outcome::Agents(agents)) => {
                Some(agents.usable().map(|agent| candidate(agent.name.clone(), &agent.description)).collect())
            }
            _ => None,
        },
        Names::Sessions => sessions(app),
        Names::Skills => {
            let folders = std::fs::read_dir(app.home.skills()).ok()?.flatten();
            let named = folders.filter(|entry| entry.path().join("SKILL.md").is_file());
            Some(named.map(|entry| CompletionCandidate::new(entry.file_name())).collect())
        }
        Names::Servers => {
            let config = app.config().ok()?;
            Some(config.mcp_servers.iter().map(|server| CompletionCandidate::new(&server.name)).collect())
        }
        Names::Questions => questions(app),
        Names::Hosts => hosts(app),
        Names::Zones => Some(chrono_tz::TZ_VARIANTS.iter().map(|zone| CompletionCandidate::new(zone.name())).collect()),
    }
}

fn questions(app: &App) -> Option<Vec<CompletionCandidate>> {
    let Ok(Outcome::Questions(questions)) = app.execute(Command::Questions) else { return None };
    let open = questions.into_iter().filter(|question| question.answer.is_none());
    let help = |question: &Question| StyledStr::from(plain(&question.call));
    Some(open.map(|one| CompletionCandidate::new(one.number.to_string()).help(Some(help(&one)))).collect())
}

fn hosts(app: &App) -> Option<Vec<CompletionCandidate>> {
    let Ok(Outcome::Status(status)) = app.execute(Command::Status) else { return None };
    Some(status.hosts.into_iter().map(|host| CompletionCandidate::new(host.name)).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Arguments whose values only the person knows: texts, numbers, times, rules and addresses.
    const FREE: &str = "alert-after allow allowed-tools api arguments ask ask-tools at blocked-tools code command count cron day days \
        delay deny description every expect for from gate gate-timeout heartbeat-url history in input jitter max-chain \
        max-cost-day-usd max-cost-usd max-turns message model month ntfy owner remove requires requires-for retry sentence \
        set since span text thinking time timeout to tokens tool until";

    /// Collects the arguments below a command for which nothing is offered.
    fn without_an_offer(command: &clap::Command, path: &str, found: &mut BTreeSet<String>) {
        for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values() && !arg.is_hide_set()) {
            if arg.get_possible_values().is_empty()
                && arg.get_value_hint() == ValueHint::Unknown
                && names(path, arg).is_none()
                && arg.get_id() != FOLDER
            {
                found.insert(arg.get_long().unwrap_or(arg.get_id().as_str()).to_owned());
            }
        }
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
            without_an_offer(sub, format!("{path} {}", sub.get_name()).trim(), found);
        }
    }

    #[test]
    fn all_is_offered_that_the_program_knows() {
        let (mut found, mut command) = (BTreeSet::new(), examples::command());
        command.build();
        without_an_offer(&command, "", &mut found);
        assert_eq!(found, FREE.split_whitespace().map(str::to_owned).collect());
    }
}
