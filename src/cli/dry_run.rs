//! `fire --dry-run`: the prompt, the policy and the client's command that a run would have, and nothing done.

use serde_json::json;

use super::context::Context;
use super::error::CliError;
use super::output::{FAINT, Output, STRONG, paint};
use super::{jobs, policy};
use crate::channel::terminal::plain_lines;
use crate::daemon::settings;
use crate::definition::{self, Background, Mode};
use crate::run::prompt::{Budget, ForkFacts, Prompt};
use crate::run::runner;
use crate::run::system_prompt::{Makes, SystemPrompt};

/// Shows them, as if the run began now in a fresh session with nothing else around.
///
/// # Errors
/// When there is no such job, or something in the settings is wrong.
pub fn dry_run(id: &str, context: &Context, output: &mut Output) -> Result<(), CliError> {
    let loaded = context.load()?;
    let definition = jobs::find(id, None, &loaded)?;
    let config = context.config()?;
    let setup = policy::setup(&definition, context)?;
    let args = policy::client_args(&definition, &setup);
    let settings = settings::of_runs(&config);
    let system_prompt = SystemPrompt {
        bot: settings.bot_name,
        person: settings.person.clone(),
        persona: definition::load_persona(&context.home).ok().flatten(),
        makes: Makes::of(&setup.policy),
        agent: setup.agent_prompt,
    };
    let system_prompt = match &definition.mode {
        Mode::Foreground => system_prompt.of_conversation(),
        Mode::Background(_) => system_prompt.of_job(),
    };
    let verdicts = setup.policy;
    let tools = runner::our_tools(&definition, &verdicts);
    let restrictions = setup.restrictions.held_against(&verdicts, &tools);
    let skills = definition::load_skills(&context.home, &definition.skills)?;
    let fork = match &definition.mode {
        Mode::Foreground => None,
        Mode::Background(Background { .. }) => Some(ForkFacts {
            tools: &tools,
            restrictions: &restrictions,
            spawned_by: None,
            knows_main_session: false,
            busy: false,
            budget: Budget { left: crate::bot::budget::CAPACITY, capacity: crate::bot::budget::CAPACITY, next: None },
            neighbours: &[],
        }),
    };
    let prompt = Prompt {
        definition: &definition,
        now: context.now(),
        person: &settings.person,
        late: None,
        cut_off: false,
        updates: &[],
        updates_left_out: 0,
        follow_up: runner::follow_up_by(&definition, &verdicts),
        skills: &skills,
        fork,
    }
    .render();
    let command: Vec<String> = std::iter::once(config.claude_command.clone()).chain(args).collect();
    if context.json {
        output.json(&json!({
            "id": definition.id,
            "kind": definition.kind(),
            "system_prompt": system_prompt,
            "prompt": prompt,
            "policy": verdicts.entries(),
            "mcp_tools": tools,
            "command": command,
        }));
        return Ok(());
    }
    output.line(paint(STRONG, "System prompt"));
    output.line(plain_lines(&system_prompt));
    output.line("");
    output.line(paint(STRONG, "Prompt"));
    output.line(plain_lines(&prompt));
    output.line("");
    output.line(paint(STRONG, "Policy"));
    policy::table(&verdicts, output);
    output.line("");
    output.line(paint(STRONG, "Client"));
    output.line(plain_lines(&command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")));
    output.note(paint(FAINT, "nothing was run"));
    Ok(())
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_command_can_be_pasted() {
        assert_eq!(quoted("--tools"), "--tools");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("Bash(ollim-bot cal *)"), "'Bash(ollim-bot cal *)'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
