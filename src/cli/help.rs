//! `help`: all commands, with an example of each. Agents read it, so it is plain and short.

use super::examples;
use super::external::nearest;
use super::output::Output;
use super::render::{self, View};
use crate::app::{App, Command, Outcome};
use crate::refusal::Refusal;

const HELP: &str = "\
ollim-bot: runs jobs written as markdown files, with only the tools each allows

Usage: ollim-bot [--home DIR] [--json] [--color auto|always|never] COMMAND

Jobs (a routine recurs, a reminder fires once, a webhook when it is called)
  ollim-bot routine add --cron '30 8 * * 1-5' -m 'Sort the mail' --background
  ollim-bot routine list                   (show, edit, enable, disable, cancel)
  ollim-bot reminder add --in 20m -m 'Check the oven'
  ollim-bot reminder list                    (show, edit, cancel)
  ollim-bot reminder snooze check-the-oven 20m  (20 minutes from now)
  ollim-bot reminder retry check-the-oven    (restore RUN: one that has fired)
  ollim-bot webhook list                     (show)
  ollim-bot edit morning-mail                (any job's file, also a broken one)
  ollim-bot follow-up-chain --for oven --in 30  (in its own run: without --for)
  ollim-bot check                            (exit 1 if a file is wrong)

A job's tools (with --background)
  --allowed-tools 'Read' 'Bash(git log *)'   (only these; '' for none)
  --blocked-tools 'WebFetch' 'Bash(git *)'   (all but these)
  --ask-tools 'Bash(git *)'                  (these ask you first)
  ollim-bot policy explain morning-mail --command 'git push'
  ollim-bot policy show morning-mail         (refusals: what was denied)
  ollim-bot agents list                      (show; --agent: a job runs as it)
  ollim-bot spawn -m 'Read the logs' --agent Explore --deny 'Bash(git *)'
  ollim-bot sessions list                    (show, resume, reset, patch)

What happens
  ollim-bot status
  ollim-bot next -n 20
  ollim-bot simulate --all --until 'tomorrow 8:00'
  ollim-bot why morning-mail 'yesterday 8:00'  (without a time: now)
  ollim-bot runs morning-mail --failed
  ollim-bot runs show 5a91c0de               (--transcript: all of it)
  ollim-bot runs follow morning-mail         (without an id: all)
  ollim-bot logs morning-mail --since 2h     (-f: and what comes)
  ollim-bot costs --by day --since 30d       (budget: what may still be spent)
  ollim-bot fire morning-mail --wait         (cancel-run RUN: ends a run)

You and the bot
  ollim-bot chat                             (web: a link to the page)
  ollim-bot inbox -n 5                       (--follow: and what comes)
  ollim-bot questions answer 3 allow         (questions: what jobs ask you)
  ollim-bot channels test phone              (channels: how each is doing)
  ollim-bot mcp tools calendar               (list, call)

The service
  ollim-bot init                             (login: logs the agent in)
  ollim-bot run                              (--until-idle, --for 10m)
  ollim-bot service install      (status, start, stop, restart, logs, uninstall)
  ollim-bot doctor --fix                     (config: the settings in force)
  ollim-bot pause                            (ID...: only these; resume ends it)
  ollim-bot backup bot.tar                   (restore bot.tar: an empty folder)
  ollim-bot journal copy --to postgres://bot@db/bot
  ollim-bot import crontab --dry-run         (systemd, ollim-bot; export ics)
  ollim-bot push jobs/                       (completions bash)
  ollim-bot help reminder add                (all flags of a command)

Times: 20m, tonight, 'tomorrow 9am', 'friday 18:30', '2030-12-31 09:00'; of
routines: 'weekdays at 8:30', 'monthly on the 1st at 9'. --json: as JSON.
Exit: 0 done, 1 yours to fix, 2 ours
";

/// Executes `help` or `help COMMAND…`.
///
/// # Errors
/// Fails if there is no such command.
pub(super) fn help(topic: &[String], app: &App, view: &View, output: &mut Output) -> Result<(), Refusal> {
    if topic.is_empty() {
        let Outcome::ExternalCommands(external) = app.execute(Command::ExternalCommands)? else { return Ok(()) };
        if view.json {
            output.json(&serde_json::json!({ "help": HELP, "commands": external }));
            return Ok(());
        }
        output.line(HELP.trim_end());
        if !external.is_empty() {
            output.line(format!("Your own commands (ollim-bot NAME): {}", external.join(", ")));
        }
        return Ok(());
    }
    let mut root = examples::command();
    root.build();
    let mut command = &mut root;
    for word in topic {
        let known: Vec<String> = command.get_subcommands().map(|known| known.get_name().to_owned()).collect();
        command = match command.find_subcommand_mut(word) {
            Some(found) => found,
            None => {
                let refusal = Refusal::user(format!("there is no command `{}`", topic.join(" ")));
                let refusal = match nearest(word, known) {
                    Some(meant) => refusal.hint(format!("did you mean `{meant}`?")),
                    None => refusal,
                };
                return Err(refusal.hint("`ollim-bot help` lists all"));
            }
        };
    }
    output.stdout.push_str(&command.render_help().ansi().to_string());
    Ok(())
}

/// Shows the help for an empty command line: a few commands, and an overview if there is a data folder.
pub(super) fn short(app: &App, view: &View, output: &mut Output) -> Result<(), Refusal> {
    output.line("ollim-bot runs jobs written as markdown files, on time, with only the tools each file allows.");
    output.line("");
    output.line("  ollim-bot run                                     start the service here");
    output.line("  ollim-bot reminder add --in 20m -m 'Check the oven'");
    output.line("  ollim-bot next                                    what is coming");
    output.line("  ollim-bot help                                    every command, with examples");
    render::render(app.execute(Command::Overview)?, view, output);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fits_a_usual_terminal() {
        assert!(HELP.lines().count() <= 60, "{}", HELP.lines().count());
        for line in HELP.lines() {
            assert!(line.len() <= 80 && line.is_ascii(), "{line}");
        }
    }

    /// Every visible command has an example, and every example parses.
    #[test]
    fn every_command_has_an_example_that_parses() {
        fn leaves(command: &clap::Command, path: &str, found: &mut Vec<String>) {
            let mut under = command.get_subcommands().peekable();
            // `runs` is both a command and a group.
            if under.peek().is_none() || command.get_name() == "runs" {
                found.push(path.to_owned());
            }
            for sub in under.filter(|sub| !sub.is_hide_set()) {
                leaves(sub, format!("{path} {}", sub.get_name()).trim(), found);
            }
        }
        let mut commands = Vec::new();
        leaves(&examples::command(), "", &mut commands);
        let words = |line: &str| examples::words(line.split("  ").next().unwrap());
        // An example, and the note in brackets behind it.
        let lines = HELP.lines().filter_map(|line| line.strip_prefix("  ollim-bot "));
        let lines: Vec<(Vec<String>, &str)> =
            lines.map(|line| (words(line), line.split_once("  (").map_or("", |(_, note)| note))).collect();
        for command in &commands {
            let path: Vec<&str> = command.split(' ').collect();
            let is_named = |(example, note): &(Vec<String>, &str)| {
                let mut named = note.split(|c: char| " ,;:()".contains(c));
                // A note names further commands of the example's group, or whole commands.
                let group = if path.len() == 1 { "" } else { path[0] };
                example.starts_with(&path.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
                    || (group.is_empty() || example[0] == group) && named.any(|word| word == path[path.len() - 1])
                    || note.contains(command)
            };
            assert!(lines.iter().any(is_named), "`{command}` is not in the help");
        }
        for (words, _) in lines {
            examples::command().try_get_matches_from(std::iter::once("ollim-bot".to_owned()).chain(words)).unwrap();
        }
    }
}
