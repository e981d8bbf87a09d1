//! Commands that the person gives by a channel. They work as at a terminal, and return their output as one text.

use std::path::Path;

use clap::Parser as _;

use super::command::{self, LocalCommand, ParsedCommand};
use super::output::Output;
use super::{Cli, execute};
use crate::app::App;

/// Width of a line on a phone, in characters.
const WIDTH: usize = 34;

/// Executes a command line for the person. Returns its output.
///
/// # Errors
/// Returns the error text that the command line would show.
pub fn execute_words(app: &App, words: &[String]) -> Result<String, String> {
    let parse = || {
        Cli::try_parse_from(std::iter::once("ollim-bot").chain(words.iter().map(String::as_str)))
            .map_err(|error| first_line(&error.render().to_string()))
    };
    let cli = parse()?;
    let here = "this can be done at a terminal only".to_owned();
    if cli.global.home.is_some() || cli.global.json {
        return Err(here);
    }
    // Commands that wait, ask or follow need a terminal.
    match command::typed(cli.command, None) {
        Ok(
            ParsedCommand::App(_)
            | ParsedCommand::Each(_)
            | ParsedCommand::Own(
                LocalCommand::Fire { wait: false, .. } | LocalCommand::SetBudget(_) | LocalCommand::SetCap { .. },
            ),
        ) => {}
        Ok(ParsedCommand::Own(_)) => return Err(here),
        Err(refusal) => return Err(refusal.to_string()),
    }
    let mut output = Output { plain_tables: true, width: Some(WIDTH), is_for_channel: true, ..Output::default() };
    if let Err(refusal) = execute(parse()?, Path::new("."), app, &mut output) {
        output.fail(&refusal);
    }
    let text = [output.stdout.trim_end(), output.stderr.trim_end()].into_iter().filter(|part| !part.is_empty());
    let text = anstream::adapter::strip_str(&text.collect::<Vec<_>>().join("\n")).to_string();
    if output.exit == 0 { Ok(text) } else { Err(text) }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
