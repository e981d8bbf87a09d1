//! The jobs that made a job: its maker, that job's maker, and so on.

use std::sync::Arc;

use super::{Definition, DefinitionId};

/// Returns the id of the next maker of a job to look up, given the nearer makers; `None` if there is none.
#[must_use]
pub fn next_maker<'a>(job: &'a Definition, nearer: &'a [Arc<Definition>]) -> Option<&'a DefinitionId> {
    let next = nearer.last().map_or(job, |last| last).created_by.as_ref()?;
    // A person can write files that name each other.
    let is_new = job.id != *next && nearer.iter().all(|known| known.id != *next);
    is_new.then_some(next)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::definition::{Defaults, Kind, parse};

    #[test]
    fn makers_are_followed_until_one_is_gone_or_known() {
        let defaults = Defaults { zone: chrono_tz::UTC, commands: Default::default(), agents: Default::default() };
        let made = [("a", "b"), ("b", "c"), ("c", "gone"), ("d", "d"), ("e", "f"), ("f", "e")];
        let definitions: BTreeMap<DefinitionId, Arc<Definition>> = made
            .iter()
            .map(|(id, maker)| {
                let text = format!("---\nid: {id}\ncron: '@daily'\nbackground: true\ncreated_by: {maker}\n---\nx\n");
                let file = format!("routines/{id}.md");
                let parsed = parse(Kind::Routine, Path::new(&file), text.as_bytes(), &defaults);
                let definition = parsed.definition.unwrap();
                (definition.id.clone(), Arc::new(definition))
            })
            .collect();
        let of = |id: &str| -> Vec<String> {
            let (job, mut makers) = (&definitions[&DefinitionId::new(id)], Vec::new());
            while let Some(maker) = next_maker(job, &makers).and_then(|id| definitions.get(id)) {
                makers.push(Arc::clone(maker));
            }
            makers.iter().map(|maker| maker.id.to_string()).collect()
        };
        assert_eq!(of("a"), ["b", "c"]);
        assert_eq!(of("c"), [""; 0]);
        assert_eq!(of("d"), [""; 0]);
        assert_eq!(of("e"), ["f"]);
    }
}
