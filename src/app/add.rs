//! Creates a definition: a file like one that a person would write.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::permissions::require_no_circle;
use super::{App, Caller, FieldChange, Job, Outcome, SavedDefinition, When, check, jobs, recurrence, taken_ids, when};
use crate::clock::whole_second;
use crate::definition::fields::FIELDS;
use crate::definition::{self, DefinitionError, DefinitionId, Draft, FieldValue, JobClient, Kind, WrittenFile};
use crate::refusal::Refusal;
use crate::schedule::cron::Times;

/// Writes a draft to a new file.
pub(super) fn add(mut draft: Draft, when: Option<&When>, app: &App) -> Result<SavedDefinition, Refusal> {
    app.require_home()?;
    if draft.command.is_none() {
        require_task(&draft.body)?;
    }
    if draft.kind == Kind::Reminder && draft.run_at.is_none() {
        let zone = draft.timezone.map_or_else(|| app.zone(), Ok)?;
        let when = when.ok_or_else(|| {
            Refusal::user("a reminder needs a time")
                .hint("say when: `--in 20m`, `--at 'tomorrow 9am'`, or `--delay MINUTES`")
        })?;
        draft.run_at = Some(whole_second(time(when, app.now(), zone)?).fixed_offset());
    }
    if draft.kind == Kind::Routine
        && draft.cron.is_none()
        && draft.every.is_none()
        && draft.after.is_none()
        && draft.watch.is_none()
    {
        return Err(Refusal::user("a routine needs its times")
            .hint("say when: `--cron 'weekdays at 8:30'`, `--cron '30 8 * * 1-5'`, `--every 2h`, or `--after ID`"));
    }
    complete_after(&mut draft, app)?;
    let plain = matches!(app.caller, Caller::Person) && is_plain(&draft);
    if plain {
        draft.client = Some(JobClient::Notify);
    }
    let _one_at_a_time = app.narrow(&mut draft)?;
    if taken_ids::are_partly_unknown(app)? {
        draft.id = Some(definition::unique_id(&draft)?);
    }
    let written = create(&draft, app)?;
    let recorded = recorded(written, app);
    Ok(SavedDefinition { is_new: true, plain_by_default: plain, times: next_times(&recorded.job), ..recorded })
}

/// Writes a draft under an id by which it does not follow itself.
fn create(draft: &Draft, app: &App) -> Result<WrittenFile, Refusal> {
    let (is_taken, defaults) = (taken_ids::is_taken(app), app.defaults()?);
    let Some(follows) = &draft.after else { return Ok(definition::create(&app.home, draft, is_taken, &defaults)?) };
    let loaded = app.load()?;
    if let Some(id) = &draft.id {
        require_no_circle(&loaded, id, Some(follows))?;
    }
    let is_taken = |id: &DefinitionId| is_taken(id) || loaded.closes_circle(id, &follows.job);
    Ok(definition::create(&app.home, draft, is_taken, &defaults)?)
}

/// Whether a reminder only delivers its text: it sets no field that needs an agent, and is not part of a chain.
fn is_plain(draft: &Draft) -> bool {
    let mut for_agents = FIELDS.iter().filter(|field| field.is_for_agents());
    draft.kind == Kind::Reminder
        && draft.client.is_none()
        && draft.max_chain == 0
        && for_agents.all(|field| field.not_default(draft).is_none())
}

/// Returns a text for an editor, with the known content of the new definition.
pub(super) fn template(mut draft: Draft, when: Option<&When>, app: &App) -> Result<Outcome, Refusal> {
    app.require_home()?;
    if draft.kind == Kind::Reminder {
        let zone = draft.timezone.map_or_else(|| app.zone(), Ok)?;
        let tomorrow = When::At("tomorrow".to_owned());
        let at = time(when.unwrap_or(&tomorrow), app.now(), zone)?;
        draft.run_at = Some(whole_second(at).fixed_offset());
    }
    let file = Path::new(&format!("{}s", draft.kind)).join("new.md");
    Ok(Outcome::File { file, text: draft.template() })
}

/// Writes the text that a person made from a template.
pub(super) fn add_text(kind: Kind, text: &str, template: &str, app: &App) -> Result<Outcome, Refusal> {
    match definition::create_from(&app.home, kind, text, template, taken_ids::is_taken(app), &app.defaults()?) {
        Ok(written) => {
            let recorded = recorded(written, app);
            Ok(Outcome::Scheduled(SavedDefinition { is_new: true, times: next_times(&recorded.job), ..recorded }))
        }
        Err(DefinitionError::Invalid { problems }) => Ok(Outcome::Invalid(problems)),
        Err(error) => Err(error.into()),
    }
}

/// Returns the requested time, which must be in the future.
pub(super) fn time(when: &When, now: DateTime<Utc>, zone: Tz) -> Result<DateTime<Tz>, Refusal> {
    match when {
        When::In(span) => later(now, *span, zone),
        When::At(text) => when::future(text, now, zone),
    }
}

/// Returns the time `span` from now.
pub(super) fn later(now: DateTime<Utc>, span: Duration, zone: Tz) -> Result<DateTime<Tz>, Refusal> {
    let too_far = || Refusal::user("that is too far away").hint("give a date with `--at`");
    let span = TimeDelta::from_std(span).map_err(|_| too_far())?;
    Ok(now.checked_add_signed(span).ok_or_else(too_far)?.with_timezone(&zone))
}

/// Returns a routine's next three times, so that the person can check that they are the intended ones.
pub(super) fn next_times(job: &Job) -> Vec<DateTime<Utc>> {
    let Some(times) = Times::of(&job.definition) else { return Vec::new() };
    std::iter::successors(job.next, |at| times.next(job.definition.zone, *at)).take(3).collect()
}

/// Replaces the beginning of an id in `after` by the whole of it, if there is one such job.
pub(super) fn complete_after(draft: &mut Draft, app: &App) -> Result<(), Refusal> {
    let Some(follows) = &mut draft.after else { return Ok(()) };
    let loaded = app.load()?;
    if !loaded.definitions.contains_key(&follows.job)
        && let Some(job) = jobs::begins_with(follows.job.as_str(), loaded.definitions.keys())
    {
        follows.job = job.clone();
    }
    Ok(())
}

/// Returns the value that a flag gives a field. For `cron` that is the expression of a phrase. `complete` may change a value that names a
/// job.
pub(super) fn value_of(
    change: &FieldChange,
    complete: impl Fn(&mut Draft) -> Result<(), Refusal>,
) -> Result<FieldValue, Refusal> {
    match &change.value {
        FieldValue::Text(text) if change.field.name == "cron" && !text.is_empty() => {
            recurrence::cron(text).map(FieldValue::Text)
        }
        // A file has this field as a mapping.
        FieldValue::Text(text) if ["ask", "after"].contains(&change.field.name) && !text.is_empty() => {
            let mut draft = Draft::empty(Kind::Reminder, String::new());
            set(&mut draft, change, &change.value)?;
            complete(&mut draft)?;
            Ok((change.field.show)(&draft).unwrap_or_else(|| change.value.clone()))
        }
        value => Ok(value.clone()),
    }
}

/// Refuses an empty prompt.
pub(super) fn require_task(body: &str) -> Result<(), Refusal> {
    if body.trim().is_empty() {
        return Err(Refusal::user("the message is empty").hint("say what is to be done: `-m 'Check the oven'`"));
    }
    Ok(())
}

/// Refuses fields that exclude each other.
pub(super) fn reject_conflicts(fields: &[FieldChange]) -> Result<(), Refusal> {
    let called = |name: &str| fields.iter().find(|change| change.field.name == name).map(|change| &change.called);
    match (called("allowed_tools"), called("disallowed_tools")) {
        (Some(allowed), Some(blocked)) => {
            Err(Refusal::user(format!("`{allowed}` and `{blocked}` cannot be used together"))
                .hint("`--allowed-tools` lists the only tools the job has, `--blocked-tools` takes tools away"))
        }
        _ => Ok(()),
    }
}

impl FieldChange {
    /// Creates the draft of a definition with these fields. Values are parsed by the rules of the files.
    ///
    /// # Errors
    /// If a value is invalid for its field, or fields exclude each other.
    pub fn draft(kind: Kind, message: String, fields: &[Self]) -> Result<Draft, Refusal> {
        reject_conflicts(fields)?;
        let mut draft = Draft::empty(kind, message);
        let is = |change: &Self, name: &str| change.field.name == name;
        let runs_command = |change: &Self| {
            is(change, "command") || is(change, "client") && change.value == FieldValue::Text("exec".to_owned())
        };
        let background = fields.iter().any(|change| is(change, "background") || runs_command(change));
        if let Some(change) = fields.iter().find(|change| change.field.background_only && !background) {
            return Err(Refusal::user(format!("`{}` needs `--background`", change.called))
                .hint("a foreground job is a turn of the main session and has all that it has"));
        }
        for change in fields {
            set(&mut draft, change, &value_of(change, |_| Ok(()))?)?;
        }
        draft.complete();
        Ok(draft)
    }
}

fn set(draft: &mut Draft, change: &FieldChange, value: &FieldValue) -> Result<(), Refusal> {
    draft.set(change.field, value).map_err(|fault| {
        let refusal = Refusal::user(fault.message);
        fault.hint.into_iter().fold(refusal, Refusal::hint)
    })
}

/// Returns the written definition, and when it fires next.
pub(super) fn recorded(written: WrittenFile, app: &App) -> SavedDefinition {
    let WrittenFile { definition, mut warnings, .. } = written;
    let definition = Arc::new(definition);
    warnings.extend(check::of_new(&definition, app));
    let warnings = warnings.into_iter().map(|problem| problem.at_field(&app.home)).collect();
    SavedDefinition {
        job: Job::of(definition, app),
        warnings,
        chain: None,
        is_new: false,
        times: Vec::new(),
        plain_by_default: false,
    }
}
