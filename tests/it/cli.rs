//! The command line as a person sees it: exit code, stdout and stderr of the real binary.

use crate::support::bot::{CommandOutput, TestBot};

/// Returns one command's exit code and output, with the test's own folder replaced by `[PERSON]`.
pub fn shown(bot: &TestBot, ran: &CommandOutput) -> String {
    let person = bot.person().canonicalize().unwrap();
    let mut text = format!("exit: {}\n", ran.code);
    for (name, part) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
        if !part.is_empty() {
            text.push_str(&format!("-- {name}\n{}", part.replace(person.to_str().unwrap(), "[PERSON]")));
        }
    }
    text
}

#[track_caller]
fn typed(bot: &TestBot, args: &[&str]) -> String {
    shown(bot, &bot.run(args))
}

#[test]
fn a_time_of_day_for_a_span_is_told_its_flag() {
    let bot = TestBot::new();
    for (words, flag) in [
        (&["routine", "add", "Tea.", "--every", "daily at 9"][..], "`daily at 9` and the like go with `--cron`"),
        (&["reminder", "add", "Tea.", "--in", "tomorrow"], "`tomorrow 9am` and the like go with `--at`"),
        (&["reminder", "snooze", "tea", "tomorrow"], "and the like go with `reminder edit ID --at`"),
    ] {
        let refused = bot.run(words);
        assert!(refused.code == 1 && refused.stderr.contains(flag), "{refused:?}");
    }
}

#[test]
fn what_cannot_be_read_is_an_error_with_a_way_out() {
    let bot = TestBot::new();
    insta::assert_snapshot!(typed(&bot, &["statsu"]), @"
    exit: 1
    -- stderr
    error: there is no command `statsu`
    hint: did you mean `status`?
    hint: `ollim-bot help` lists all; one of your own is a program `ollim-bot-NAME` in [PERSON]/bot/bin
    ");
    for (flag, value, expected) in [
        ("--set", "x", "whole number from 0 to 5"),
        ("--set", "6", "whole number from 0 to 5"),
        ("--tokens", "x", "whole number from 1"),
    ] {
        let refused = bot.run(["budget", flag, value]);
        assert!(refused.code == 1 && refused.stderr.ends_with(&format!("write a {expected}\n")), "{refused:?}");
    }
    insta::assert_snapshot!(typed(&bot, &["reminder", "add", "-m", "x"]), @"
    exit: 1
    -- stderr
    error: a reminder needs a time
    hint: say when: `--in 20m`, `--at 'tomorrow 9am'`, or `--delay MINUTES`
    ");
    insta::assert_snapshot!(typed(&bot, &["reminder", "add", "-m", "x", "--in", "soon"]), @"
    exit: 1
    -- stderr
    error: invalid value 'soon' for '--in <SPAN>': not a span of time; write it like `20m`, `90s` or `1h30m`; `tomorrow 9am` and the like go with `--at`
    ");
    insta::assert_snapshot!(typed(&bot, &["reminder", "add", "-m", "x", "--in", "1h", "--delay", "5"]), @"
    exit: 1
    -- stderr
    error: the argument '--in <SPAN>' cannot be used with '--delay <MINUTES>'
    hint: usage: ollim-bot reminder add --message <TEXT> --in <SPAN> [TEXT]
    ");
    insta::assert_snapshot!(typed(&bot, &["runs", "--wrong"]), @"
    exit: 1
    -- stderr
    error: unexpected argument '--wrong' found
    hint: to pass '--wrong' as a value, use '-- --wrong'
    hint: usage: ollim-bot runs [OPTIONS] [ID]
    ");
    insta::assert_snapshot!(typed(&bot, &["routine", "lst"]), @"
    exit: 1
    -- stderr
    error: unrecognized subcommand 'lst'
    hint: a similar subcommand exists: 'list'
    hint: usage: ollim-bot routine [OPTIONS] <COMMAND>
    ");
    assert!(bot.run(["help", "remindr"]).stderr.contains("hint: did you mean `reminder`?\n"));
    insta::assert_snapshot!(typed(&bot, &["help", "reminder", "ad"]), @"
    exit: 1
    -- stderr
    error: there is no command `reminder ad`
    hint: did you mean `add`?
    hint: `ollim-bot help` lists all
    ");
    insta::assert_snapshot!(typed(&bot, &["--home", "", "next"]), @"
    exit: 1
    -- stderr
    error: a value is required for '--home <DIR>' but none was supplied
    ");
}

#[test]
fn the_flags_of_a_command_come_before_those_of_every_command() {
    let bot = TestBot::new();
    insta::assert_snapshot!(bot.ok(["help", "reminder", "edit"]), @"
    Edit a reminder's file in $VISUAL or $EDITOR, or set what is named; it is checked before it is
    written

    Usage: ollim-bot reminder edit [OPTIONS] <ID>

    Arguments:
      <ID>  Its id, or its file

    Options:
      -m, --message <TEXT>              What the agent is to do: the prompt
          --in <SPAN>                   A reminder's time from now: `20m`, `1h30m`, `90` (minutes)
          --at <WHEN>                   A reminder's time: `2026-11-22T09:00+01:00`, `tomorrow 9am`
          --id <NAME>                   Its id; of a new job its file's name too, which is otherwise
                                        made from the text
      -d, --description <TEXT>          One line for lists
          --cron <WHEN>                 When it recurs: `30 8 * * 1-5`, `@daily`, `weekdays at 8:30`,
                                        `monthly on the 1st at 9`
          --every <SPAN>                The time from one occurrence to the next: `2h`, `90m`
          --after <ID>                  Fires after this job: its id, or 'job: ID, outcome: failed'
          --watch <PATH>                Fires when something below this folder has changed
          --jitter <SPAN>               Spreads its times: delays each one by less than this
          --wake                        Wakes the machine from sleep, if the service has the privilege
          --no-wake                     It waits until the machine is awake
          --hosts <NAME>...             The hosts that may run it, by name or label, if several hosts
                                        share the journal
          --timezone <ZONE>             IANA zone of its times, e.g. Europe/Berlin
          --disabled                    It is listed and never fires
          --enabled                     It fires again
          --client <WHO>                Who runs it: `notify` delivers it as written, `exec` runs
                                        `command`, `claude` is an agent
          --command <COMMAND>           Runs this command line instead of an agent (`--client exec`)
          --deliver <WHEN>              How its messages reach you: `digest`; for a command also
                                        failure, always, never
          --background                  Runs it in a fork of its own instead of the main session
          --foreground                  A turn of the main session
          --isolated                    Starts a fresh session without the main session's history
          --no-isolated                 With the main session's history
          --model <MODEL>               Model alias or full name
          --thinking <TOKENS>           At most so many tokens of thinking
          --no-thinking                 No thinking
          --adaptive-thinking           As much thinking as the model decides
          --allowed-tools <PATTERN>...  Only these tools exist for it; '' for none
          --blocked-tools <PATTERN>...  The main session's tools, except these [alias:
                                        --disallowed-tools]
          --ask-tools <PATTERN>...      Calls that wait for your answer; '' for none
          --ask <TERMS>                 How you are asked: 'deadline: 10m, default: deny'
          --approve                     The bot asks you before each run begins
          --no-approve                  It begins unasked
          --agent <NAME>                The named agent that runs it
          --update-main-session <MODE>  How the job reports to the main session: always, on_ping,
                                        freely, blocked
          --no-ping                     It may not reach you directly
          --ping                        It may reach you directly
          --no-network                  Its programs have no network
          --network                     Its programs have the internet
          --skills <NAME>...            Skills whose text becomes part of the prompt: folders in skills/
          --gate <COMMAND>              Runs first, without a model: exit 0 wakes the agent, 1 skips
                                        this time
          --gate-timeout <SPAN>         Maximum time of the gate: `30s`, `2m`
          --remember <WHAT>             What the job knows of its earlier runs: `last`, `thread`, or
                                        `none`
          --context-from <ID>...        Jobs whose last answers it is given
          --expect <WHAT>               What each run must deliver: `message`, `report`, or `file PATH`
          --timeout <SPAN>              Maximum time of a run by the wall clock, without its gate:
                                        `10m`, `1h30m`
          --max-turns <N>               Maximum number of the model's turns
          --max-cost-usd <USD>          Maximum cost of a run in US dollars
          --max-cost-day-usd <USD>      At most so many US dollars a day, all its runs together
          --requires <WHAT>...          What the machine must have before the job starts: `online`,
                                        `power`
          --requires-for <SPAN>         How long the job waits for `requires` before it is skipped
          --on-missed <WHAT>            What happens to times that were missed: latest, all, skip
          --on-overlap <WHAT>           What happens if the previous run is still running: skip, queue,
                                        cancel
          --retry <N>                   Number of further attempts after a temporary failure
          --alert-after <N>             After how many failures in a row the bot notifies you: `1` is
                                        the first
          --channel <NAME>              The channel of its messages: a name of `channels` in config.yaml
          --urgency <LEVEL>             How urgent its messages are: low, normal, critical
          --heartbeat-url <URL>         The URL of a monitor, such as healthchecks.io, that gets the
                                        results of its runs
          --max-chain <N>               Maximum number of follow-ups that the agent may schedule
      -h, --help                        Print help

    Global options:
          --home <DIR>    The data folder [default: $OLLIM_HOME, else ~/.ollim-bot]
          --json          Print one JSON document instead of text
          --color <WHEN>  When to colour: auto, always, never [default: auto]

    Examples:
      ollim-bot reminder edit check-the-oven
      ollim-bot reminder edit check-the-oven --at 'friday 18:30'

    An empty value takes the field out of the file.
    ");
}

#[test]
fn help_is_the_same_for_everybody() {
    let bot = TestBot::new();
    let help = bot.ok(["help"]);
    assert!(help.lines().count() <= 80);
    assert!(!help.contains('\u{1b}'), "plain text");
    bot.external_command("gmail", "#!/bin/sh\n");
    let with_own = bot.ok(["help"]);
    assert_eq!(with_own.strip_prefix(&help), Some("Your own commands (ollim-bot NAME): gmail\n"));
    assert!(bot.ok(["help", "reminder", "add"]).contains("--max-chain"));
    assert!(bot.ok(["--version"]).starts_with("ollim-bot "));
}

#[test]
fn a_command_of_ones_own_is_run_as_it_is() {
    let bot = TestBot::new();
    bot.external_command("say", "#!/bin/sh\necho \"$#: $*\"; echo \"$OLLIM_HOME\" >&2; exit 7\n");
    insta::assert_snapshot!(typed(&bot, &["say", "--json", "a b", "--home", "x"]), @"
    exit: 7
    -- stdout
    4: --json a b --home x
    -- stderr
    [PERSON]/bot
    ");
    insta::assert_snapshot!(typed(&bot, &["--json", "say"]), @"
    exit: 1
    -- stderr
    error: `--json` before one of your own commands is not handed on to it
    hint: put it after the command's name
    ");
    bot.external_command("broken", "#!/no/such/interpreter\n");
    insta::assert_snapshot!(typed(&bot, &["broken"]), @"
    exit: 2
    -- stderr
    error: cannot run [PERSON]/bot/bin/ollim-bot-broken: No such file or directory (os error 2)
    hint: the interpreter in its first line is not there
    ");
}

#[test]
fn colour_is_for_those_who_ask_for_it() {
    let bot = TestBot::new();
    assert!(!bot.run(["statsu"]).stderr.contains('\u{1b}'));
    assert!(bot.run(["--color", "always", "statsu"]).stderr.contains('\u{1b}'));
    assert!(bot.run(["statsu", "--color", "always"]).stderr.contains("did you mean"));
}

#[test]
fn a_group_alone_lists_its_commands() {
    let bot = TestBot::new();
    for group in ["routine", "reminder", "policy", "agents", "sessions", "service"] {
        let listed = bot.run([group]);
        assert_eq!(listed.code, 0, "{listed:?}");
        assert!(listed.stdout.contains("Commands:") && listed.stdout.contains("Examples:"), "{listed:?}");
    }
}

#[test]
fn words_of_other_tools_are_understood() {
    let bot = TestBot::new();
    for (words, meant) in [
        (&["rm", "x"][..], "reminder cancel` or `routine cancel"),
        (&["delete", "x"], "reminder cancel` or `routine cancel"),
        (&["cancel", "x"], "reminder cancel` or `routine cancel"),
        (&["ls"], "next`, `routine list` or `reminder list"),
        (&["list"], "next`, `routine list` or `reminder list"),
        (&["jobs"], "next`, `routine list` or `reminder list"),
        (&["add", "x"], "reminder add` or `routine add"),
        (&["show", "x"], "routine show`, `reminder show` or `runs show"),
        (&["enable", "x"], "routine enable` or `resume"),
        (&["disable", "x"], "routine disable` or `pause"),
        (&["stop"], "pause` or `service stop"),
        (&["start"], "run` or `service start"),
        (&["reminder", "delete", "x"], "cancel"),
        (&["routine", "ls"], "list"),
    ] {
        let refused = bot.run(words);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.stderr.contains(&format!("did you mean `{meant}`?")), "{words:?}: {refused:?}");
        // The suggested command exists.
        for command in meant.split("` or `").flat_map(|some| some.split("`, `")).filter(|_| words.len() < 3) {
            let known = bot.run(command.split(' ').chain(["--help"]));
            assert!(known.code == 0 || words[0] == "routine", "{command}: {known:?}");
        }
    }
    for command in ["inbox", "runs", "logs", "next"] {
        for count in ["0", "x", "1.5"] {
            let refused = bot.run([command, "-n", count]);
            assert!(refused.code == 1 && refused.stderr.contains("write a whole number from 1"), "{refused:#?}");
        }
    }
}

#[test]
fn a_text_comes_as_an_argument_or_by_standard_input() {
    let bot = TestBot::new();
    bot.ok(["reminder", "add", "Check the oven", "--in", "90"]);
    let mut command = bot.command(["reminder", "add", "-", "--in", "2h"]);
    let mut child = command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"Two lines\nof text.\n").unwrap();
    assert!(child.wait().unwrap().success());
    let list = bot.json(["reminder", "list"]);
    let mut texts: Vec<&str> =
        list.as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap().trim()).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["Check the oven", "Two lines\nof text."]);
    // A unique prefix of an id is enough.
    let id = list[0]["id"].as_str().unwrap();
    bot.ok(["reminder", "snooze", &id[..6], "30"]);
    bot.ok(["reminder", "cancel", &id[..6]]);
    assert_eq!(bot.json(["reminder", "list"]).as_array().unwrap().len(), 1);
    assert!(bot.run(["reminder", "add", "--in", "1h"]).stderr.contains("no text was given"));
}

/// The disk to which the output goes is full.
#[test]
fn an_answer_that_cannot_be_written_is_said() {
    let bot = TestBot::new();
    for args in [&["export", "ics"][..], &["reminder", "add", "-m", "x", "--in", "1h"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = bot.command(args).stdin(std::process::Stdio::null()).stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{ran:?}");
        for said in ["error: cannot write the answer: ", "the command itself was carried out"] {
            assert!(stderr.contains(said), "{ran:?}");
        }
    }
    assert_eq!(bot.names("reminders").len(), 1);
}
