//! A table with two examples for each command. They end its `--help` and its manual page.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _};

use super::args::Cli;

/// Path of each command, its examples, and further help.
pub(super) const EXAMPLES: &[(&str, [&str; 2], &str)] = &[
    (
        "",
        ["ollim-bot reminder add 'Check the oven' --in 20m", "ollim-bot next"],
        "`ollim-bot help` shows every command with an example.",
    ),
    ("run", ["ollim-bot run --until-idle", "ollim-bot run --json | jq -r .event"], ""),
    (
        "init",
        ["ollim-bot init", "ollim-bot init --yes --talk discord --token-file ~/discord-token --service"],
        "What is there stays as it is.",
    ),
    ("check", ["ollim-bot check", "ollim-bot check routines/morning-mail.md"], "Exit code 1 if a file is wrong."),
    (
        "doctor",
        ["ollim-bot doctor --fix", "ollim-bot doctor --json | jq '.findings[] | select(.health == \"wrong\")'"],
        "Exit code 1 if something is wrong.",
    ),
    (
        "backup",
        ["ollim-bot backup /media/usb/bot-2027-01-31.tar", "ollim-bot backup --secrets /root/bot.tar"],
        "The file is readable by you alone. It is a tar archive: `tar tvf FILE` lists it.",
    ),
    (
        "restore",
        ["ollim-bot restore /media/usb/bot-2027-01-31.tar", "ollim-bot --home /tmp/look restore bot.tar"],
        "Nothing that is there is overwritten. End the service on the old machine first: two bots with the same jobs would each fire every one.",
    ),
    (
        "service",
        ["ollim-bot service install", "ollim-bot service logs -f"],
        "The unit is your own manager's (systemctl --user). It starts when you log in and ends when you log out, unless you linger: `loginctl enable-linger`. With --system it is the machine's, runs as the owner of the data folder, and starts at boot.",
    ),
    (
        "completions",
        [
            "source <(ollim-bot completions bash)     in ~/.bashrc",
            "ollim-bot completions fish > ~/.config/fish/completions/ollim-bot.fish",
        ],
        "The shell asks ollim-bot at each Tab: jobs, runs and agents are offered as they are now.",
    ),
    ("service install", ["ollim-bot service install", "ollim-bot service install --print"], ""),
    ("service uninstall", ["ollim-bot service uninstall", "ollim-bot service uninstall --system"], ""),
    ("service status", ["ollim-bot service status", "ollim-bot service status --json"], ""),
    ("service start", ["ollim-bot service start", "ollim-bot service start --system"], ""),
    ("service stop", ["ollim-bot service stop", "ollim-bot service stop --system"], ""),
    ("service restart", ["ollim-bot service restart", "ollim-bot service restart --system"], ""),
    ("service logs", ["ollim-bot service logs", "ollim-bot service logs -f"], ""),
    ("export", ["ollim-bot export ics > jobs.ics", "ollim-bot export ics --days 90 > jobs.ics"], ""),
    (
        "export ics",
        ["ollim-bot export ics > jobs.ics", "ollim-bot export ics --days 90 > jobs.ics"],
        "Times are in UTC; an occurrence keeps its identity, so that importing again makes no second event.",
    ),
    (
        "push",
        ["ollim-bot push jobs/ --dry-run", "ollim-bot push --remove tea"],
        "A line of standard input: {\"path\": \"routines/tea.md\", \"text\": \"…\"}.",
    ),
    ("import", ["ollim-bot import ollim-bot ~/old --dry-run", "ollim-bot import crontab --dry-run"], ""),
    (
        "import crontab",
        ["ollim-bot import crontab --dry-run", "ollim-bot import crontab /etc/crontab --user"],
        "Exit code 1 if nothing was taken over. Take a line out of the crontab before you enable its routine: both would run it.",
    ),
    (
        "import systemd",
        ["ollim-bot import systemd --dry-run", "ollim-bot import systemd ~/.config/systemd/user/backup.timer"],
        "Exit code 1 if nothing was taken over. Disable a timer before you enable its routine: both would run it.",
    ),
    (
        "import ollim-bot",
        ["ollim-bot import ollim-bot ~/old --dry-run", "ollim-bot import ollim-bot ~/old"],
        "Exit code 1 if nothing was taken over. End the other bot first: both would fire the same jobs.",
    ),
    ("status", ["ollim-bot status", "ollim-bot status --json | jq .running"], ""),
    (
        "why",
        ["ollim-bot why morning-mail", "ollim-bot why morning-mail 'yesterday 8:00'"],
        "A day alone is all of it. ID may be that of a run.",
    ),
    (
        "simulate",
        [
            "ollim-bot simulate morning-mail --until 'tomorrow 18:00'",
            "ollim-bot simulate --all --from 'tomorrow 8:00' --until 'tomorrow 18:00'",
        ],
        "Each run is taken to last and to cost as much as the median of past ones.",
    ),
    ("next", ["ollim-bot next", "ollim-bot next morning-mail -n 5"], ""),
    (
        "routine add",
        [
            "ollim-bot routine add 'Sort the mail' --cron 'weekdays at 8:30' --background",
            "ollim-bot routine add 'Tidy notes/' --every 6h --background --allowed-tools 'Edit(notes/**)'",
        ],
        "Times: 'daily at 9', 'monday and friday 18:00', 'monthly on the 1st at 9', '30 8 * * 1-5', @weekly. The file is named after the text, and its name without .md is the id in every command; --id chooses it.",
    ),
    ("routine list", ["ollim-bot routine list", "ollim-bot routine list --json | jq '.[].id'"], ""),
    ("routine show", ["ollim-bot routine show morning-mail", "ollim-bot routine show morning-mail --json"], ""),
    (
        "routine edit",
        ["ollim-bot routine edit morning-mail", "ollim-bot routine edit morning-mail --cron '0 9 * * *' --model ''"],
        "An empty value takes the field out of the file.",
    ),
    ("routine enable", ["ollim-bot routine enable morning-mail", "ollim-bot routine enable morning-mail --json"], ""),
    (
        "routine disable",
        ["ollim-bot routine disable morning-mail", "ollim-bot routine disable morning-mail --json"],
        "",
    ),
    ("routine cancel", ["ollim-bot routine cancel morning-mail", "ollim-bot routine cancel morning-mail --json"], ""),
    (
        "reminder add",
        [
            "ollim-bot reminder add 'Check the oven' --in 20m",
            "ollim-bot reminder add 'Call the dentist' --at 'tomorrow 9am'",
        ],
        "Times: 18:30, tonight (20:00), midnight, tomorrow, 'friday noon', 'end of month', 'Dec 31', 31.12.2026. A day alone is 9:00. The file is named after the text, and its name without .md is the id in every command; --id chooses it.",
    ),
    ("reminder list", ["ollim-bot reminder list", "ollim-bot reminder list --json | jq '.[].id'"], ""),
    ("reminder show", ["ollim-bot reminder show check-the-oven", "ollim-bot reminder show check --json"], ""),
    (
        "reminder edit",
        ["ollim-bot reminder edit check-the-oven", "ollim-bot reminder edit check-the-oven --at 'friday 18:30'"],
        "An empty value takes the field out of the file.",
    ),
    ("reminder cancel", ["ollim-bot reminder cancel check-the-oven", "ollim-bot reminder cancel oven tea"], ""),
    (
        "reminder snooze",
        ["ollim-bot reminder snooze check-the-oven 20m", "ollim-bot reminder snooze check 90"],
        "A bare number is minutes. A reminder that has fired comes back.",
    ),
    (
        "reminder restore",
        ["ollim-bot reminder restore 5a91c0de --in 1h", "ollim-bot reminder restore 5a91c0de --at 'tomorrow 9am'"],
        "",
    ),
    ("reminder retry", ["ollim-bot reminder retry check-the-oven", "ollim-bot reminder retry check"], ""),
    (
        "edit",
        ["ollim-bot edit morning-mail", "ollim-bot edit reminders/oven.md"],
        "`routine edit` and `reminder edit` set single fields by flags.",
    ),
    ("fire", ["ollim-bot fire morning-mail --wait", "ollim-bot fire morning-mail --dry-run"], ""),
    ("runs", ["ollim-bot runs", "ollim-bot runs morning-mail --failed"], ""),
    ("runs show", ["ollim-bot runs show 5a91c0de", "ollim-bot runs show 5a91 --transcript"], ""),
    (
        "runs follow",
        ["ollim-bot runs follow morning-mail", "ollim-bot runs follow --json"],
        "Exit code 1 if the run does not do its work.",
    ),
    ("cancel-run", ["ollim-bot cancel-run 5a91c0de", "ollim-bot cancel-run 5a91c0de --json"], ""),
    ("pause", ["ollim-bot pause", "ollim-bot pause morning-mail plants"], ""),
    ("resume", ["ollim-bot resume", "ollim-bot resume morning-mail plants"], ""),
    ("follow-up-chain", ["ollim-bot follow-up-chain --in 30", "ollim-bot follow-up-chain --for oven --in 1h30m"], ""),
    (
        "policy",
        ["ollim-bot policy show morning-mail", "ollim-bot policy explain morning-mail --command 'git push'"],
        "",
    ),
    (
        "policy explain",
        [
            "ollim-bot policy explain morning-mail --command 'git push'",
            "ollim-bot policy explain morning-mail --tool Read --input '{\"file_path\": \"notes/a.md\"}'",
        ],
        "",
    ),
    ("policy refusals", ["ollim-bot policy refusals", "ollim-bot policy refusals --since 7d"], ""),
    ("policy show", ["ollim-bot policy show morning-mail", "ollim-bot policy show routines/morning-mail.md"], ""),
    ("agents", ["ollim-bot agents list", "ollim-bot agents show Explore"], ""),
    ("agents list", ["ollim-bot agents list", "ollim-bot agents list --json"], ""),
    ("agents show", ["ollim-bot agents show Explore", "ollim-bot agents show Plan --json"], ""),
    (
        "spawn",
        [
            "ollim-bot spawn -m 'Read the logs' --agent Explore",
            "ollim-bot spawn -m 'Sum up notes/' --allow 'Read(notes/**)'",
        ],
        "",
    ),
    ("sessions", ["ollim-bot sessions list", "ollim-bot sessions show main"], ""),
    ("sessions list", ["ollim-bot sessions list", "ollim-bot sessions list --json"], ""),
    ("sessions show", ["ollim-bot sessions show main", "ollim-bot sessions show spawn-1f0c9a2b"], ""),
    (
        "sessions patch",
        [
            "ollim-bot sessions patch spawn-1f0c9a2b --deny WebFetch",
            "ollim-bot sessions patch spawn-1f0c9a2b --allow Read Grep",
        ],
        "",
    ),
    ("sessions reset", ["ollim-bot sessions reset morning-mail", "ollim-bot sessions reset morning-mail --json"], ""),
    ("sessions resume", ["ollim-bot sessions resume 8f14e45f", "ollim-bot sessions resume 8f14e45f --json"], ""),
    ("inbox", ["ollim-bot inbox -n 5", "ollim-bot inbox --follow"], ""),
    ("logs", ["ollim-bot logs morning-mail --since 2h", "ollim-bot logs --follow"], ""),
    ("costs", ["ollim-bot costs --since 30d", "ollim-bot costs --by day"], ""),
    ("chat", ["ollim-bot chat", "ollim-bot chat 'What is on today?'"], ""),
    ("channels", ["ollim-bot channels", "ollim-bot channels test phone"], ""),
    ("channels test", ["ollim-bot channels test phone", "ollim-bot channels test console"], ""),
    (
        "journal",
        [
            "ollim-bot journal copy --use --to file",
            "ollim-bot journal copy --use --to 'postgres://bot@db.example.org/bot'",
        ],
        "",
    ),
    (
        "journal copy",
        [
            "ollim-bot journal copy --use --to 'postgres://bot@db.example.org/bot'",
            "ollim-bot journal copy --use --to file",
        ],
        "",
    ),
    ("mcp", ["ollim-bot mcp", "ollim-bot mcp tools calendar"], ""),
    ("mcp list", ["ollim-bot mcp list", "ollim-bot mcp list --json"], ""),
    ("mcp tools", ["ollim-bot mcp tools calendar", "ollim-bot mcp tools --json"], ""),
    (
        "mcp call",
        [
            "ollim-bot mcp call calendar list_events",
            "ollim-bot mcp call files read_file '{\"path\": \"notes/today.md\"}'",
        ],
        "",
    ),
    ("questions", ["ollim-bot questions", "ollim-bot questions --json"], ""),
    (
        "questions answer",
        ["ollim-bot questions answer 3 allow", "ollim-bot questions answer 3 deny 'Wait until the build is green'"],
        "",
    ),
    ("web", ["ollim-bot web", "ollim-bot web --end-sessions"], ""),
    ("login", ["ollim-bot login", "ollim-bot login 'a-code#its-end'"], ""),
    ("budget", ["ollim-bot budget", "ollim-bot budget --day 8"], ""),
    ("config", ["ollim-bot config", "ollim-bot config --json"], ""),
    ("routine", ["ollim-bot routine list", "ollim-bot routine show morning-mail"], ""),
    ("reminder", ["ollim-bot reminder list", "ollim-bot reminder add 'Check the oven' --in 20m"], ""),
    ("webhook", ["ollim-bot webhook list", "ollim-bot webhook show deploy"], ""),
    ("webhook list", ["ollim-bot webhook list", "ollim-bot webhook list --json"], ""),
    ("webhook show", ["ollim-bot webhook show deploy", "ollim-bot webhook show deploy --json"], ""),
    ("help", ["ollim-bot help", "ollim-bot help reminder add"], ""),
];

/// Names that other tools use for our commands, and subcommands that need their group.
const SUGGESTIONS: &[(&str, &str)] = &[
    ("rm", CANCEL),
    ("remove", CANCEL),
    ("delete", CANCEL),
    ("del", CANCEL),
    ("cancel", CANCEL),
    ("new", ADD),
    ("create", ADD),
    ("add", ADD),
    ("ls", LIST),
    ("list", LIST),
    ("jobs", LIST),
    ("routines", "routine list"),
    ("reminders", "reminder list"),
    ("show", "routine show`, `reminder show` or `runs show"),
    ("enable", "routine enable` or `resume"),
    ("disable", "routine disable` or `pause"),
    ("retry", "reminder retry"),
    ("snooze", "reminder snooze"),
    ("log", "logs"),
    ("start", "run` or `service start"),
    ("stop", "pause` or `service stop"),
    ("restart", "service restart"),
    ("daemon", "run"),
    ("ps", "status"),
    ("history", "runs"),
    ("kill", "cancel-run"),
    ("trigger", "fire"),
    ("messages", "inbox"),
    ("settings", "config"),
    ("version", "--version"),
];

const CANCEL: &str = "reminder cancel` or `routine cancel";
const ADD: &str = "reminder add` or `routine add";
const LIST: &str = "next`, `routine list` or `reminder list";

/// Names that other tools use for subcommands, such as `routine rm`.
const SUGGESTIONS_IN_GROUP: &[(&str, &str)] = &[
    ("rm", "cancel"),
    ("remove", "cancel"),
    ("delete", "cancel"),
    ("del", "cancel"),
    ("new", "add"),
    ("create", "add"),
    ("ls", "list"),
    ("start", "enable"),
    ("resume", "enable"),
    ("pause", "disable"),
    ("stop", "disable"),
];

/// Commands of no group that people look for in one, such as `routine logs`.
const NOT_IN_GROUP: &[&str] = &["fire", "logs", "runs", "why"];

/// Returns the commands that a word of another tool, or a subcommand without its group, stands for.
#[must_use]
pub fn suggestion(word: &str) -> Option<&'static str> {
    of_table(SUGGESTIONS, word)
}

/// Returns the subcommand that a word of another tool stands for.
#[must_use]
pub fn suggestion_in_group(word: &str) -> Option<&'static str> {
    of_table(SUGGESTIONS_IN_GROUP, word)
}

/// Returns whether a word is a command of no group, which stands alone.
#[must_use]
pub fn stands_alone(word: &str) -> bool {
    NOT_IN_GROUP.contains(&word)
}

/// Whether the group at the start of a usage line has this subcommand.
#[must_use]
pub fn group_has(usage: &str, command: &str) -> bool {
    let group = usage.split_whitespace().next().unwrap_or_default();
    Cli::command().find_subcommand(group).is_some_and(|group| group.find_subcommand(command).is_some())
}

/// Returns a hint for a flag that the command does not have. `usage` begins with the command.
#[must_use]
pub fn suggestion_for_flag(usage: &str, flag: &str) -> Option<String> {
    let of = |command: &str, flags: &[&str]| {
        usage.starts_with(command) && (flags.is_empty() || flags.contains(&flag.split('=').next().unwrap_or(flag)))
    };
    if of("edit ", &[]) {
        Some(format!("a field is set with the kind: `ollim-bot routine edit ID {flag} …`, or `reminder edit`"))
    } else if of("routine add", &["--at", "--in"]) {
        Some("a routine has `--cron 'daily at 9'` or `--every 2h`; what fires once is a `reminder add`".to_owned())
    } else if of("reminder add", &["--cron", "--every", "--after", "--watch"]) {
        Some("a reminder fires once; what fires again and again is a `routine add`".to_owned())
    } else {
        None
    }
}

fn of_table(table: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    table.iter().find(|(other, _)| *other == word).map(|(_, ours)| *ours)
}

/// Returns the whole command line, with examples.
#[must_use]
pub fn command() -> clap::Command {
    with_examples(Cli::command(), "")
}

/// Parses the arguments. The first one is the program's name.
///
/// # Errors
/// Returns clap's error, or its `--help` or `--version`.
pub fn parse(words: impl IntoIterator<Item: Into<OsString> + Clone>) -> Result<Cli, clap::Error> {
    let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    if let Some(long) = words.iter().find_map(|word| overlong_option(word.to_str()?)) {
        return Err(command().error(ErrorKind::UnknownArgument, format!("there is no option `{long}…`")));
    }
    let matches = command().try_get_matches_from(words)?;
    Cli::from_arg_matches(&matches)
}

/// Returns the start of an option whose name is longer than any of ours. clap would search for a similar one, which takes time
/// proportional to its length.
fn overlong_option(word: &str) -> Option<&str> {
    const LONGEST: usize = 100;
    let name = word.split('=').next().filter(|name| name.starts_with("--"))?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    (is_name && name.len() > LONGEST).then(|| &name[..LONGEST])
}

fn with_examples(command: clap::Command, path: &str) -> clap::Command {
    let example = EXAMPLES.iter().find(|(of, _, _)| *of == path);
    let command = match example {
        Some((_, [first, second], more)) => {
            let more = if more.is_empty() { String::new() } else { format!("\n\n{more}") };
            command.after_help(format!("Examples:\n  {first}\n  {second}{more}"))
        }
        None => command,
    };
    command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        with_examples(sub, path.trim())
    })
}

/// Splits a line into words, with single quotes.
#[cfg(test)]
pub(super) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let path = format!("{path} {}", sub.get_name()).trim().to_owned();
            paths(sub, &path, found);
            found.push(path);
        }
    }

    #[test]
    fn a_flag_of_another_command_is_answered_by_what_is_meant() {
        for (usage, flag, suggestion) in [
            ("routine add [OPTIONS]", "--at", Some("`--cron 'daily at 9'`")),
            ("reminder add [OPTIONS]", "--every", Some("a reminder fires once")),
            ("reminder add [OPTIONS]", "--cron=daily", Some("`routine add`")),
            ("edit <ID>", "--model", Some("routine edit ID --model")),
            ("reminder add [OPTIONS]", "--gat", None),
        ] {
            let said = suggestion_for_flag(usage, flag);
            assert_eq!(
                said.as_ref().map(|said| suggestion.is_some_and(|suggestion| said.contains(suggestion))),
                suggestion.map(|_| true),
                "{said:?}"
            );
        }
        assert!(group_has("routine <COMMAND>", "enable") && !group_has("webhook <COMMAND>", "enable"));
    }

    #[test]
    fn every_command_has_its_examples_and_nothing_else_has() {
        let mut commands = vec![String::new()];
        paths(&Cli::command(), "", &mut commands);
        let mut listed: Vec<String> = EXAMPLES.iter().map(|(path, _, _)| (*path).to_owned()).collect();
        commands.sort();
        listed.sort();
        assert_eq!(listed, commands);
    }

    #[test]
    fn every_example_is_a_command_line_that_can_be_read() {
        for line in EXAMPLES.iter().flat_map(|(_, lines, _)| lines) {
            // The rest of the line is for the shell.
            let Some(typed) = line.strip_prefix("ollim-bot ") else { continue };
            let typed = typed.split(" | ").next().unwrap().split(" > ").next().unwrap();
            let parsed = parse(std::iter::once("ollim-bot".to_owned()).chain(words(typed)));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }
}
