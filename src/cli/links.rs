//! The links of chains: made by the same code as a reminder that a person types.

use std::path::Path;

use chrono::{DateTime, Timelike as _, Utc};
use clap::Parser as _;

use super::add;
use super::args::{Cli, Command, Reminder};
use super::context::InForce;
use super::error::CliError;
use crate::daemon::links::WriteReminders;
use crate::definition::{self, DefinitionError, FieldValue};
use crate::run::follow_up::Added;

/// Makes links in the service's surroundings.
pub struct Links(pub InForce);

impl WriteReminders for Links {
    fn add(&self, arguments: &[String]) -> Result<Added, String> {
        let words = std::iter::once("ollim-bot").chain(arguments.iter().map(String::as_str));
        let typed = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
        let Some(Command::Reminder(Reminder::Add(args))) = typed.command else {
            return Err("only `reminder add` makes a link".into());
        };
        let written = add::make_reminder(*args, &self.0.context()).map_err(|error| said(&error))?;
        Ok(Added { id: written.definition.id, file: written.definition.file })
    }

    fn move_to(&self, file: &Path, at: DateTime<Utc>) -> Result<bool, String> {
        let at = at.with_nanosecond(0).unwrap_or(at);
        let context = self.0.context();
        let zone = context.zone().map_err(|error| said(&error))?;
        let value = Some(FieldValue::Text(at.with_timezone(&zone).to_rfc3339()));
        let defaults = context.defaults().map_err(|error| said(&error))?;
        match definition::set_field(&context.home, file, "run_at", value, &defaults) {
            Ok(_) => Ok(true),
            Err(DefinitionError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// An error with its ways out, in one sentence for an agent.
fn said(error: &CliError) -> String {
    std::iter::once(error.to_string()).chain(error.hints().iter().cloned()).collect::<Vec<_>>().join("; ")
}
