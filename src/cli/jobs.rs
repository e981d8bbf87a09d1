//! Definitions as the command line finds and shows them.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::context::Context;
use super::error::CliError;
use super::held::paused;
use super::next::Firsts;
use super::output::{BAD, Cell, FAINT, HINT, Output, STRONG, paint};
use super::times;
use crate::channel::terminal::{plain, plain_lines};
use crate::definition::fields::FIELDS;
use crate::definition::{self, Background, Chain, Definition, DefinitionId, Draft, Kind, Loaded, Problem, Trigger};

/// The definition that `name` means: its id, its file, or the beginning of its id where that is unambiguous.
///
/// # Errors
/// When there is none, or its file has an error.
pub fn find(name: &str, kind: Option<Kind>, loaded: &Loaded) -> Result<Arc<Definition>, CliError> {
    let wanted = |definition: &&Arc<Definition>| kind.is_none_or(|kind| definition.kind() == kind);
    if let Some(exact) = loaded.definitions.get(&DefinitionId::new(name)).filter(wanted) {
        return Ok(Arc::clone(exact));
    }
    let named: Vec<&Arc<Definition>> = loaded
        .definitions
        .values()
        .filter(wanted)
        .filter(|definition| {
            definition.file.as_os_str() == name || (name.len() >= 4 && definition.id.as_str().starts_with(name))
        })
        .collect();
    match named[..] {
        [one] => Ok(Arc::clone(one)),
        [] => Err(not_found(name, kind, loaded)),
        _ => {
            let ids: Vec<&str> = named.iter().take(5).map(|definition| definition.id.as_str()).collect();
            Err(CliError::user(format!("`{name}` is the beginning of more than one id"))
                .hint(format!("write the whole of it: {}", ids.join(", "))))
        }
    }
}

/// The definition of just this id: what changes something takes no beginnings of names.
///
/// # Errors
/// When there is none, or its file has an error.
pub fn named(id: &str, kind: Kind, loaded: &Loaded) -> Result<Arc<Definition>, CliError> {
    match loaded.definitions.get(&DefinitionId::new(id)) {
        Some(definition) if definition.kind() == kind => Ok(Arc::clone(definition)),
        _ => Err(not_found(id, Some(kind), loaded)),
    }
}

fn not_found(name: &str, kind: Option<Kind>, loaded: &Loaded) -> CliError {
    let what = kind.map_or_else(|| "job".to_owned(), |kind| kind.to_string());
    let broken = |problem: &&Problem| {
        problem.is_error()
            && (problem.id.as_ref().is_some_and(|id| id.as_str() == name) || problem.file.as_os_str() == name)
    };
    if let Some(problem) = loaded.problems.iter().find(broken) {
        return CliError::user(format!("{what} `{name}` has an error in its file: {}", problem.message))
            .hint(format!("`ollim-bot check {}` says where", problem.file.display()));
    }
    if let Some(other) = loaded.definitions.get(&DefinitionId::new(name)) {
        return CliError::user(format!("`{name}` is a {}, not a {what}", other.kind()))
            .hint(format!("use `ollim-bot {} …`", other.kind()));
    }
    let of_kind = loaded.definitions.values().filter(|definition| kind.is_none_or(|kind| definition.kind() == kind));
    let error = CliError::user(format!("there is no {what} `{name}`"));
    match nearest(name, of_kind.map(|definition| &definition.id)) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint(match kind {
            Some(kind) => format!("`ollim-bot {kind} list` shows them"),
            None => "`ollim-bot next`, `ollim-bot routine list` and `ollim-bot reminder list` show them".to_owned(),
        }),
    }
}

/// The id that was most likely meant by `name`, where one is near enough.
pub(super) fn nearest<'a>(name: &str, ids: impl IntoIterator<Item = &'a DefinitionId>) -> Option<&'a DefinitionId> {
    ids.into_iter()
        .map(|id| (strsim::damerau_levenshtein(name, id.as_str()), id))
        .filter(|(distance, _)| *distance <= 2)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, id)| id)
}

/// When it falls due next; `None`: never again, or it is disabled.
#[must_use]
pub fn next(definition: &Definition, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    Firsts::after(now).of(definition)
}

/// A definition with the keys that others build on.
#[must_use]
pub fn as_json(definition: &Definition, next: Option<DateTime<Utc>>) -> Value {
    let draft = Draft::from(definition);
    let fields = FIELDS.iter().filter(|field| field.on.has(definition.kind()) && !field.note);
    let mut value: Map<String, Value> =
        fields.map(|field| (field.name.to_owned(), (field.show)(&draft).map_or(Value::Null, |v| v.json()))).collect();
    for (key, shown) in [
        ("kind", json!(definition.kind())),
        ("file", json!(definition.file)),
        ("timezone", json!(definition.zone.name())),
        ("next", json!(next.map(|at| times::rfc3339(at, definition.zone)))),
        ("message", json!(definition.body)),
    ] {
        value.insert(key.to_owned(), shown);
    }
    Value::Object(value)
}

/// `routine list`, `reminder list`: by the next time, those that never come last; then what is wrong with the rest.
///
/// # Errors
/// When the definitions cannot be read.
pub fn list(kind: Kind, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let loaded = context.load_kind(kind)?;
    let now = context.now();
    // Only routines are ever paused.
    let paused = if kind == Kind::Routine { paused(&loaded, context) } else { BTreeSet::new() };
    let mut firsts = Firsts::after(now);
    let mut of = |definition| (firsts.of(definition).filter(|_| !paused.contains(&definition.id)), definition);
    let mut found: Vec<(Option<DateTime<Utc>>, &Definition)> = loaded.definitions.values().map(|one| of(one)).collect();
    found.sort_by_key(|(at, definition)| (at.is_none(), *at, &definition.id));
    if context.json {
        output.json(&found.iter().map(|(at, definition)| as_json(definition, *at)).collect::<Vec<_>>());
        return Ok(());
    }
    if found.is_empty() {
        output.note(format!("no {kind}s"));
    }
    let row = |(at, definition): &(_, &Definition)| row(definition, *at, paused.contains(&definition.id), now);
    output.table(&found.iter().map(row).collect::<Vec<_>>());
    if kind == Kind::Routine && !paused.is_empty() {
        output.note(format!("{}: `ollim-bot resume ID` ends a pause after failures", paint(HINT, "hint")));
    }
    if kind == Kind::Reminder {
        for failed in definition::failed_reminders(&context.home, &context.defaults()?)? {
            let Some(reminder) = &failed.parsed.definition else { continue };
            let why = failed.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            output.note(plain(&format!("failed: {}{why}", reminder.id)));
            output.note(format!("{}: `ollim-bot reminder retry {}`", paint(HINT, "hint"), plain(reminder.id.as_str())));
        }
    }
    let errors: Vec<&Problem> = loaded.problems.iter().filter(|problem| problem.is_error()).collect();
    if !errors.is_empty() {
        let count = errors.iter().map(|problem| &problem.file).collect::<std::collections::BTreeSet<_>>().len();
        let files = if count == 1 { "1 file has".to_owned() } else { format!("{count} files have") };
        output.note(format!("{}: {files} an error and will not fire", paint(BAD, "error")));
        for problem in errors {
            output.note(plain(&format!("  {}:{}: {}", problem.file.display(), problem.line, problem.message)));
        }
        output.note("hint: `ollim-bot check` says what to do");
    }
    Ok(())
}

/// A line of a list.
fn row(definition: &Definition, at: Option<DateTime<Utc>>, paused: bool, now: DateTime<Utc>) -> Vec<Cell> {
    let when = match (at, definition.enabled) {
        (Some(at), _) => times::local(at, now, definition.zone),
        (None, false) => "disabled".to_owned(),
        (None, true) if paused => "paused".to_owned(),
        (None, true) => "never".to_owned(),
    };
    let cron = match &definition.trigger {
        Trigger::Routine { cron, .. } => Some(cron),
        _ => None,
    };
    let relative = at.map(|at| times::relative(at, now)).unwrap_or_default();
    let before = [Cell::new(definition.id.as_str(), STRONG), when.into(), Cell::new(relative, FAINT)];
    let behind = [Cell::new(place(definition), FAINT), summary(definition).into()];
    before.into_iter().chain(cron.map(Cell::from)).chain(behind).collect()
}

/// Where it runs, where that is not the main session; its place in its chain; its model.
fn place(definition: &Definition) -> String {
    let mut words = Vec::new();
    if let Some(background) = definition.background() {
        words.push(if background.isolated { "isolated" } else { "background" }.to_owned());
    }
    if let Trigger::Reminder { chain: Some(Chain { max, depth, .. }), .. } = &definition.trigger {
        words.push(format!("check {} of {}", depth + 1, max + 1));
    }
    words.extend(definition.background().and_then(|background| background.model.clone()));
    words.join(", ")
}

/// Its description, else the beginning of its body.
#[must_use]
pub fn summary(definition: &Definition) -> String {
    const LONGEST: usize = 60;
    let text = if definition.description.is_empty() {
        definition.body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim()
    } else {
        &definition.description
    };
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(LONGEST - 1).collect();
    short.push('…');
    short
}

/// `routine show`, `reminder show`.
///
/// # Errors
/// When there is no such definition.
pub fn show(kind: Kind, id: &str, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let loaded = context.load()?;
    let definition = find(id, Some(kind), &loaded)?;
    let now = context.now();
    let paused = paused(&loaded, context).contains(&definition.id);
    let next = next(&definition, now).filter(|_| !paused);
    if context.json {
        output.json(&as_json(&definition, next));
        return Ok(());
    }
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            output.table(&[vec![Cell::new(format!("{name:<19}"), FAINT), value.into()]]);
        }
    };
    let when = |at: DateTime<Utc>| format!("{} ({})", times::local(at, now, definition.zone), times::relative(at, now));
    fact("id", definition.id.to_string());
    fact("file", definition.file.display().to_string());
    fact("description", definition.description.clone());
    match &definition.trigger {
        Trigger::Routine { cron, .. } => {
            fact("cron", format!("{cron} in {}", definition.zone));
            let never = if paused && definition.enabled {
                format!("paused after failures, until `ollim-bot resume {}` or an edit", definition.id)
            } else {
                "never: it is disabled".to_owned()
            };
            fact("next", next.map_or(never, when));
        }
        Trigger::Session { run_at } => fact("run_at", when(run_at.with_timezone(&Utc))),
        Trigger::Reminder { run_at, chain } => {
            fact("run_at", when(run_at.with_timezone(&Utc)));
            if !definition.enabled {
                fact("enabled", "no: it will not fire".into());
            }
            if let Some(Chain { max, depth, parent }) = chain {
                fact("chain", format!("check {} of {}, begun by {parent}", depth + 1, max + 1));
            }
        }
    }
    fact(
        "runs",
        match definition.background() {
            None => "as a turn of the main session".to_owned(),
            Some(Background { isolated: true, .. }) => "in the background, in a fresh session".to_owned(),
            Some(_) => "in the background, in a fork of the main session".to_owned(),
        },
    );
    let draft = Draft::from(&*definition);
    for field in FIELDS.iter().filter(|field| !SHOWN_APART.contains(&field.name)) {
        let always = field.name == "update_main_session" && draft.background;
        let value = if always { (field.show)(&draft) } else { field.not_default(&draft) };
        fact(field.name, value.map(|value| value.to_string()).unwrap_or_default());
    }
    output.line("");
    output.line(plain_lines(definition.body.trim_end()));
    Ok(())
}

/// The fields that `show` puts into words of its own.
const SHOWN_APART: [&str; 11] = [
    "id",
    "description",
    "cron",
    "run_at",
    "timezone",
    "enabled",
    "background",
    "isolated",
    "max_chain",
    "chain_depth",
    "chain_parent",
];
