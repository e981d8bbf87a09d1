//! Jobs that other jobs have made: those whose makers have less by now, and those whose makers are gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::App;
use crate::definition::{Definition, DefinitionId, Kind, Problem, Severity};
use crate::policy::attenuate;

/// Warns of jobs whose runs get less than their files say, since their makers have less, and of routines whose makers are gone.
pub(super) fn problems(definitions: &BTreeMap<DefinitionId, Arc<Definition>>, app: &App) -> Vec<Problem> {
    let Ok(config) = app.config() else { return Vec::new() };
    let places = app.places();
    let beyond = |own: &Definition, maker: &Definition| {
        let (title, own, makers) = (maker.title(), own.background()?, maker.background()?);
        match attenuate(&title, &makers.restrictions, &own.restrictions, &config.main_tools, Some(&places)) {
            Ok(limited) if limited == own.restrictions => None,
            Ok(_) => Some(format!("its file grants more than that of {title}, which made it")),
            Err(error) => Some(error.to_string()),
        }
    };
    let problem = |definition: &Arc<Definition>| {
        let maker = definition.created_by.as_ref()?;
        let (message, hint) = match definitions.get(maker) {
            Some(maker) => (
                beyond(definition, maker)?,
                "its runs get only what both files grant; change one of them, or remove its line `created_by`",
            ),
            // A reminder's own file is gone once it has fired, and what it has made is often one, too.
            None if definition.kind() == Kind::Reminder => return None,
            None => (
                format!("`{maker}`, which made it, is gone, and it keeps its rights"),
                "remove the file; or, if you want it, remove its line `created_by`",
            ),
        };
        Some(Problem::of_field(definition, "created_by", Severity::Warning, message, hint))
    };
    definitions.values().filter_map(problem).collect()
}
