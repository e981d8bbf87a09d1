//! Schedules a chain's next check, for the run of the present one or for a person.
//!
//! For a person, a waiting check gets the new time. Otherwise another check follows the last one that ran, with the
//! same restrictions, just as its agent would have made it. After a chain's last check, the person may add one more.

use std::path::Path;
use std::time::Duration;

use tokio::runtime::Handle;

use super::{App, Caller, SavedDefinition, add, change, jobs, runs};
use crate::clock::whole_second;
use crate::definition::{self, Definition, DefinitionId, Kind, parse};
use crate::journal::{RunFilter, RunRecord};
use crate::refusal::Refusal;
use crate::run::chain::FollowUp;

/// Schedules the next check of the calling run's own chain, and returns the message to its agent.
pub(super) fn follow_up(delay: Duration, app: &App) -> Result<String, Refusal> {
    match &app.caller {
        Caller::Run(run) => Handle::current().block_on(run.acts.follow_up(delay)),
        Caller::Person => {
            Err(Refusal::user("outside a chain reminder's run `follow-up-chain` needs to know which chain")
                .hint("name it: `ollim-bot follow-up-chain --for ID --in 20`")
                .hint("`ollim-bot reminder add --in 20m --max-chain 3 -m 'Check the oven'` begins one"))
        }
    }
}

/// Schedules the next check of the chain that contains this reminder, or began with it.
pub(super) fn schedule_next_check(name: &str, delay: Duration, app: &App) -> Result<SavedDefinition, Refusal> {
    app.require_home()?;
    if delay.is_zero() {
        return Err(Refusal::user("the next check must lie in the future").hint("say `--in 20`, or `--in 1h30m`"));
    }
    let loaded = app.load()?;
    let journal = runs::open(app)?;
    let defaults = app.defaults()?;
    let fired = |record: &RunRecord| {
        let text = record.definition.as_deref().filter(|_| record.kind == Kind::Reminder)?;
        let file = Path::new("reminders").join(format!("{}.md", record.id));
        parse(Kind::Reminder, &file, text.as_bytes(), &defaults).definition
    };
    let id = DefinitionId::new(name);
    let known = match jobs::find(name, Some(Kind::Reminder), &loaded) {
        Ok(known) => Some(Definition::clone(&known)),
        Err(_) => journal.runs(&RunFilter { id: Some(id.clone()), ..RunFilter::default() })?.iter().find_map(fired),
    };
    let root = match &known {
        None => id.clone(),
        Some(known) => parent(known).cloned().ok_or_else(|| {
            Refusal::user(format!("{} has no `max_chain`, so it is part of no chain", known.title()))
                .hint("`ollim-bot reminder add --in 20m --max-chain 3 -m 'Check the oven'` begins one")
        })?,
    };
    let claimed = journal.claimed_reminders()?;
    let has_begun = |definition: &Definition| {
        let at = definition.trigger.run_at();
        claimed.get(&definition.id).is_some_and(|times| at.is_some_and(|at| times.contains(&at.to_utc())))
    };
    let mut waiting = loaded.definitions.values().filter(|definition| parent(definition) == Some(&root));
    if let Some(link) = waiting.find(|definition| !has_begun(definition)) {
        return change::snooze(link.id.as_str(), delay, app);
    }
    let ran = journal.runs(&RunFilter::default())?;
    // Most texts name another chain, or none. They need not be parsed.
    let names = |record: &&RunRecord| {
        record.id == root || record.definition.as_deref().is_some_and(|text| text.contains(root.as_str()))
    };
    let last = ran.iter().filter(names).filter_map(fired).find(|definition| parent(definition) == Some(&root));
    let last = last.ok_or_else(|| {
        Refusal::user(format!("there is no chain `{name}`, and none has run"))
            .hint("`ollim-bot reminder list` shows those that wait, `ollim-bot runs` those that ran")
    })?;
    let follow_up = FollowUp::prolonged(&last)
        .ok_or_else(|| Refusal::user(format!("reminder `{}` is not part of a chain", last.id)))?;
    let zone = last.own_zone.map_or_else(|| app.zone(), Ok)?;
    let at = whole_second(add::later(app.now(), delay, zone)?);
    let written = definition::create_link(&app.home, &follow_up.at(at.fixed_offset()), &defaults)?;
    Ok(SavedDefinition { chain: Some((follow_up.place(), follow_up.parent.clone())), ..add::recorded(written, app) })
}

/// Returns the first reminder of its chain.
fn parent(definition: &Definition) -> Option<&DefinitionId> {
    definition.chain().map(|chain| &chain.parent)
}
