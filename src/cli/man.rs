//! Manual pages, for packages: `ollim-bot man DIR` writes one for each command.

use std::path::{Path, PathBuf};

use super::examples;
use super::output::Output;
use crate::refusal::Refusal;

/// Writes all pages into a folder, or the first one to stdout.
///
/// # Errors
/// Fails if the pages cannot be written.
pub(super) fn man(folder: Option<&Path>, output: &mut Output) -> Result<(), Refusal> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(examples::command()).render(&mut page);
        rendered.map_err(|error| Refusal::environment(format!("cannot write the page: {error}")))?;
        output.stdout.push_str(&String::from_utf8_lossy(&page));
        return Ok(());
    };
    let cannot = |error: std::io::Error| Refusal::environment(format!("cannot write to {}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(cannot)?;
    clap_mangen::generate_to(examples::command(), folder).map_err(cannot)?;
    let mut pages: Vec<PathBuf> =
        std::fs::read_dir(folder).map_err(cannot)?.flatten().map(|entry| entry.path()).collect();
    pages.sort();
    pages.iter().for_each(|page| output.line(page.display().to_string()));
    Ok(())
}
