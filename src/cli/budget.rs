//! `budget`: how many messages background jobs may still send, and setting it.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use super::context::Context;
use super::error::CliError;
use super::output::{Output, STRONG, paint};
use super::{init, runs, service, times};
use crate::bot::budget::{self, PingBudget, SharedBudget};
use crate::daemon::call::{self, CallError};
use crate::daemon::lock::Lock;
use crate::daemon::wire::{Reply, Request};
use crate::journal::{Journal, JournalReader};

/// Shows what is left; sets it first where `set` says so: by the service where it runs, else in the journal.
///
/// # Errors
/// When there is no data folder, or the journal cannot be read or written.
pub fn budget(set: Option<u32>, context: &Context, output: &mut Output) -> Result<(), CliError> {
    context.require_home()?;
    if let Some(left) = set {
        match call::as_person(&context.home, &Request::SetBudget { left }) {
            Ok(Reply::Done(_)) => {}
            Ok(Reply::Refused(why)) => return Err(CliError::user(why)),
            Ok(_) => return Err(service::odd()),
            Err(CallError::NotRunning) => keep(left, context)?,
            Err(error) => return Err(error.into()),
        }
    }
    let now = context.now();
    let kept = of(&runs::open(context)?, now)?;
    if context.json {
        output.json(&as_json(kept, context.zone_of_records()));
        return Ok(());
    }
    let left = format!("{} of {} pings left", kept.left(), budget::CAPACITY);
    let refill = kept.next().map_or_else(String::new, |at| {
        format!("; one more at {} ({})", times::local(at, now, context.zone_of_records()), times::relative(at, now))
    });
    output.line(format!("{}{refill}", paint(STRONG, &left)));
    Ok(())
}

/// Without the service: in the journal itself, which nobody else may have open for writing meanwhile.
fn keep(left: u32, context: &Context) -> Result<(), CliError> {
    init::folders(&context.home)?;
    let _lock =
        Lock::take(&context.home).map_err(|error| CliError::environment(error.to_string()).hint("try again"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::environment(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let journal = Journal::open(&context.home.journal(), context.clock.clone())?;
        let set = SharedBudget::new(journal.clone()).set(left, context.now()).await;
        journal.close().await;
        Ok(set.map(drop)?)
    })
}

/// The budget that the journal keeps, as it is at `now`.
pub(super) fn of(journal: &JournalReader, now: DateTime<Utc>) -> Result<PingBudget, CliError> {
    let kept = journal.setting(budget::SETTING)?.and_then(|text| serde_json::from_str::<PingBudget>(&text).ok());
    Ok(kept.map_or_else(|| PingBudget::full(now), |kept| kept.at(now)))
}

/// With the keys that others build on.
pub(super) fn as_json(kept: PingBudget, zone: Tz) -> Value {
    json!({
        "left": kept.left(),
        "capacity": budget::CAPACITY,
        "next": kept.next().map(|at| times::rfc3339(at, zone)),
    })
}
