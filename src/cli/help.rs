//! `help`: all commands, with an example of each. Agents read it, so it is plain and short.

use super::examples;
use super::output::Output;
use super::render::{self, View};
use crate::app::{App, Command, Outcome};
use crate::refusal::Refusal;

const HELP: &str = "\
ollim-bot: runs jobs written as markdown files, on time, with only the tools
each file allows

Usage: ollim-bot [--home DIR] [--json] [--color auto|always|never] COMMAND

Jobs
  ollim-bot routine add --cron '30 8 * * 1-5' -m 'Sort the mail' --background
  ollim-bot routine list
  ollim-bot routine show morning-mail        (cancel: removes it)
  ollim-bot routine edit morning-mail        (in $EDITOR, then checked)
  ollim-bot routine disable morning-mail     (enable: the reverse)
  ollim-bot edit morning-mail                (any job's file, also a broken one)
  ollim-bot reminder add --in 20m -m 'Check the oven'
  ollim-bot reminder list
  ollim-bot reminder show check-the-oven     (cancel: removes it; edit)
  ollim-bot reminder snooze check-the-oven 20m  (20 minutes from now)
  ollim-bot reminder retry check-the-oven    (one that failed)
  ollim-bot reminder restore 5a91c0de --in 1h  (one that has fired, by its run)
  ollim-bot webhook list                     (webhook show deploy)
  ollim-bot follow-up-chain --for oven --in 30  (in its own run: without --for)
  ollim-bot check                            (exit 1 if a file is wrong)

A job's tools (with --background)
  --allowed-tools 'Read' 'Bash(git log *)'   (only these; '' for none)
  --blocked-tools 'WebFetch' 'Bash(git *)'   (all but these)
  --ask-tools 'Bash(git *)'                  (these ask you first)
  ollim-bot policy explain morning-mail --command 'git push'
  ollim-bot policy show morning-mail         (policy refusals)
  ollim-bot agents list
  ollim-bot agents show Explore              (--agent Explore: a job runs as it)
  ollim-bot spawn -m 'Read the logs' --agent Explore --deny 'Bash(git *)'
  ollim-bot sessions list
  ollim-bot sessions show spawn-1f0c9a2b     (sessions resume, reset, patch)

What happens
  ollim-bot next -n 20
  ollim-bot simulate --all --until 'tomorrow 8:00'
  ollim-bot why morning-mail 'yesterday 8:00'  (without a time: now)
  ollim-bot status
  ollim-bot export ics --days 90             (a calendar, on standard output)
  ollim-bot runs morning-mail --failed
  ollim-bot runs show 5a91c0de               (--transcript: all of it)
  ollim-bot runs follow morning-mail         (without an id: all)
  ollim-bot logs morning-mail --since 2h     (-f: and what comes)
  ollim-bot costs --by day --since 30d
  ollim-bot chat                             (talk with the bot)
  ollim-bot questions answer 3 allow         (questions: what jobs ask you)
  ollim-bot channels test phone              (channels: how each is doing)
  ollim-bot mcp tools calendar               (mcp list, mcp call)
  ollim-bot login                            (login CODE: the second step)
  ollim-bot budget                           (--day 8: today may cost 8 USD)
  ollim-bot inbox -n 5                       (--follow: and what comes)
  ollim-bot fire morning-mail --wait         (--dry-run: only its gate runs)
  ollim-bot cancel-run 5a91c0de

The service
  ollim-bot init
  ollim-bot run                              (--until-idle, --for 10m)
  ollim-bot pause                            (ID...: only these; resume ends it)
  ollim-bot web                              (a link to the page)
  ollim-bot backup bot.tar                   (restore bot.tar: an empty folder)
  ollim-bot journal copy --to postgres://bot@db/bot
  ollim-bot import ollim-bot ~/old --dry-run  (import crontab, import systemd)
  ollim-bot service install                  (by systemd; --print: show it)
  ollim-bot service status                   (start, stop, restart, logs -f)
  ollim-bot doctor                           (--fix repairs what is safe)
  ollim-bot config
  ollim-bot completions bash
  ollim-bot help reminder add                (all flags of a command)

Times: 20m, 'tomorrow 9am', 'friday 18:30', '2026-12-31 09:00', 'friday' (9:00);
of routines: 'weekdays at 8:30', 'monthly on the 1st at 9'. --json: as JSON.
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
        command = match command.find_subcommand_mut(word) {
            Some(found) => found,
            None => {
                return Err(Refusal::user(format!("there is no command `{}`", topic.join(" ")))
                    .hint("`ollim-bot help` lists all"));
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
        assert!(HELP.lines().count() <= 75, "{}", HELP.lines().count());
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
        let examples = HELP.lines().filter_map(|line| line.strip_prefix("  ollim-bot ")).map(words).collect::<Vec<_>>();
        // The paths with which examples begin.
        let named = examples.iter().flat_map(|words| (1..=words.len().min(2)).map(|count| words[..count].join(" ")));
        let listed: Vec<String> = named
            .chain(
                [
                    "routine cancel",
                    "reminder cancel",
                    "reminder edit",
                    "webhook show",
                    "routine enable",
                    "service uninstall",
                    "service start",
                    "service stop",
                    "service restart",
                    "service logs",
                    "sessions resume",
                    "sessions reset",
                    "sessions patch",
                ]
                .map(String::from),
            )
            .chain(
                ["import crontab", "import systemd", "mcp list", "mcp call", "policy refusals", "restore", "resume"]
                    .map(String::from),
            )
            .collect();
        for command in &commands {
            assert!(listed.contains(command), "`{command}` is not in the help");
        }
        for words in examples {
            examples::command().try_get_matches_from(std::iter::once("ollim-bot".to_owned()).chain(words)).unwrap();
        }
    }
}
