//! `help`: every command with an example each. This is what an agent reads, so it is plain and short.

use super::examples;
use super::output::Output;
use super::render::{self, View};
use crate::app::{App, Command, Outcome};
use crate::refusal::Refusal;

const HELP: &str = "\
ollim-bot: runs jobs written as markdown files, on time, with only the tools each file allows

Usage: ollim-bot [--home DIR] [--json] [--color auto|always|never] COMMAND

Jobs
  routine add       ollim-bot routine add --cron '30 8 * * 1-5' -m 'Sort the mail' --background
  routine list      ollim-bot routine list
  routine show      ollim-bot routine show morning-mail        (cancel: removes it)
  routine edit      ollim-bot routine edit morning-mail        (in $EDITOR, then checked)
  routine disable   ollim-bot routine disable morning-mail     (enable: the reverse)
  edit              ollim-bot edit morning-mail                (any job's file, also a broken one)
  reminder add      ollim-bot reminder add --in 20m -m 'Check the oven'
  reminder list     ollim-bot reminder list
  reminder show     ollim-bot reminder show check-the-oven     (cancel: removes it; edit)
  reminder snooze   ollim-bot reminder snooze check-the-oven 20m   (20 minutes from now)
  reminder retry    ollim-bot reminder retry check-the-oven    (one that failed)
  reminder restore  ollim-bot reminder restore 5a91c0de --in 1h   (one that has fired, by its run)
  webhook list      ollim-bot webhook list                     (webhook show deploy)
  follow-up-chain   ollim-bot follow-up-chain --for oven --in 30   (in its own run: without --for)
  check             ollim-bot check                            (exit 1 if a file is wrong)

A job's tools (with --background)
  only these        --allowed-tools 'Read' 'Bash(git log *)'   ('' for none)
  all but these     --blocked-tools 'WebFetch' 'Bash(git *)'   (--ask-tools 'Bash(git *)': asks you)
  policy explain    ollim-bot policy explain morning-mail --command 'git push'
  policy show       ollim-bot policy show morning-mail         (policy refusals)
  agents list       ollim-bot agents list
  agents show       ollim-bot agents show Explore              (--agent Explore: a job runs as it)
  spawn             ollim-bot spawn -m 'Read the logs' --agent Explore --deny 'Bash(git *)'
  sessions list     ollim-bot sessions list
  sessions show     ollim-bot sessions show spawn-1f0c9a2b     (sessions reset, sessions patch)

What happens
  next              ollim-bot next -n 20
  simulate          ollim-bot simulate --all --until 'tomorrow 8:00'
  why               ollim-bot why morning-mail 'yesterday 8:00'   (without a time: now)
  status            ollim-bot status
  export ics        ollim-bot export ics --days 90             (a calendar, on standard output)
  runs              ollim-bot runs morning-mail --failed
  runs show         ollim-bot runs show 5a91c0de               (--transcript: all of it)
  runs follow       ollim-bot runs follow morning-mail         (without an id: all)
  logs              ollim-bot logs morning-mail --since 2h     (-f: and what comes)
  costs             ollim-bot costs --by day --since 30d
  chat              ollim-bot chat                             (talk with the bot)
  questions answer  ollim-bot questions answer 3 allow         (questions: what jobs ask you)
  channels test     ollim-bot channels test phone              (channels: how each is doing)
  mcp tools         ollim-bot mcp tools calendar               (mcp list, mcp call)
  login             ollim-bot login                            (login CODE: the second step)
  budget            ollim-bot budget                           (--day 8: today may cost 8 USD)
  inbox             ollim-bot inbox -n 5                       (--follow: and what comes)
  fire              ollim-bot fire morning-mail --wait         (--dry-run: only its gate runs)
  cancel-run        ollim-bot cancel-run 5a91c0de

The service
  init              ollim-bot init
  run               ollim-bot run                              (--until-idle, --for 10m)
  pause             ollim-bot pause                            (ID...: only these; resume ends it)
  web               ollim-bot web                              (a link to the page)
  backup            ollim-bot backup bot.tar                   (restore bot.tar: an empty folder)
  journal copy      ollim-bot journal copy --to postgres://bot@db/bot
  import ollim-bot  ollim-bot import ollim-bot ~/old --dry-run   (import crontab, import systemd)
  service install   ollim-bot service install                  (by systemd; --print: show it)
  service status    ollim-bot service status                   (uninstall, restart, logs -f)
  doctor            ollim-bot doctor                           (--fix repairs what is safe)
  config            ollim-bot config
  completions       ollim-bot completions bash
  help              ollim-bot help reminder add                (all flags of a command)

Times: 20m, 'tomorrow 9am', 'friday 18:30', '2026-12-31 09:00', 'friday' (9:00); of routines:
'weekdays at 8:30', 'monthly on the 1st at 9'. --json: as JSON. Exit: 0 done, 1 yours to fix, 2 ours
";

/// `help`, or `help COMMAND…`.
///
/// # Errors
/// When there is no such command.
pub(super) fn help(topic: &[String], app: &App, view: &View, output: &mut Output) -> Result<(), Refusal> {
    if topic.is_empty() {
        let Outcome::ExternalCommands(external) = app.execute(Command::ExternalCommands)? else { return Ok(()) };
        if view.json {
            output.json(&serde_json::json!({ "help": HELP, "commands": external }));
            return Ok(());
        }
        output.stdout.push_str(HELP);
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

/// What stands where nothing was typed: a few commands and, where there is a data folder, how things are.
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
    fn seventy_lines_at_most_and_not_too_wide() {
        assert!(HELP.lines().count() <= 70, "{}", HELP.lines().count());
        for line in HELP.lines() {
            assert!(line.len() <= 100 && line.is_ascii(), "{line}");
        }
    }

    /// Every visible command is named with an example of it, and every example is a command line that can be read.
    #[test]
    fn every_command_has_an_example_that_parses() {
        fn leaves(command: &clap::Command, path: &str, found: &mut Vec<String>) {
            let mut under = command.get_subcommands().peekable();
            // `runs` is a command with and without what stands under it.
            if under.peek().is_none() || command.get_name() == "runs" {
                found.push(path.to_owned());
            }
            for sub in under.filter(|sub| !sub.is_hide_set()) {
                leaves(sub, format!("{path} {}", sub.get_name()).trim(), found);
            }
        }
        let mut commands = Vec::new();
        leaves(&examples::command(), "", &mut commands);
        let listed: Vec<&str> = HELP
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split("  ").next())
            .chain([
                "routine cancel",
                "reminder cancel",
                "reminder edit",
                "webhook show",
                "routine enable",
                "service uninstall",
                "service restart",
                "service logs",
                "sessions reset",
                "sessions patch",
            ])
            .chain(["import crontab", "import systemd", "mcp list", "mcp call", "policy refusals", "restore", "resume"])
            .collect();
        for command in &commands {
            assert!(listed.contains(&command.as_str()), "`{command}` is not in the help");
        }
        for line in HELP.lines().filter_map(|line| line.split_once(" ollim-bot ")) {
            let example = line.1.split("  ").next().unwrap();
            let words = examples::words(example);
            examples::command().try_get_matches_from(std::iter::once("ollim-bot".to_owned()).chain(words)).unwrap();
        }
    }
}
