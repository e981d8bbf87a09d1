//! All diagnostics as a person sees them, and files without any.

use super::*;
use crate::definition::{Chain, FollowedEnd, Follows, Mode, OnMissed, OnOverlap, Thinking, Trigger};
use crate::policy::UpdateMode;
use proptest::prelude::*;

fn defaults() -> Defaults {
    Defaults {
        zone: chrono_tz::Europe::Vienna,
        commands: ["gmail", "tasks", "cal", "help", "follow-up-chain"].into(),
        agents: Default::default(),
    }
}

fn read(file: &str, text: &str) -> Parsed {
    let file = Path::new(file);
    parse(crate::definition::problem::kind_of(file).unwrap(), file, text.as_bytes(), &defaults())
}

fn shown(parsed: &Parsed) -> String {
    let mut blocks: Vec<String> = parsed.problems.iter().map(ToString::to_string).collect();
    if parsed.definition.is_some() {
        blocks.push("(it fires)".into());
    }
    blocks.join("\n")
}

/// Returns the problems of a routine with these settings.
fn routine(settings: &str) -> String {
    shown(&read("routines/mail.md", &format!("---\ncron: 0 9 * * *\n{settings}---\nLook at the mail.\n")))
}

/// Returns the problems of a reminder with these settings.
fn reminder(settings: &str) -> String {
    shown(&read("reminders/tea.md", &format!("---\nrun_at: 2030-01-01T09:00:00Z\n{settings}---\nTea.\n")))
}

fn valid(file: &str, text: &str) -> Definition {
    let parsed = read(file, text);
    assert_eq!(parsed.problems, [], "{}", shown(&parsed));
    parsed.definition.unwrap()
}

#[test]
fn a_routine_with_every_field() {
    let text = "---\nid: 007\ndescription: Morning mail\ncron: 30 8 * * 1-5\ntimezone: America/New_York\nenabled: false\n\
                background: true\nisolated: true\nmodel: haiku\nthinking: 4000\nallowed_tools:\n  - Bash(ollim-bot gmail *)\n  \
                - mcp__discord__report_updates\nupdate_main_session: always\nallow_ping: false\ntimeout: 1h30m\nmax_turns: 20\n\
                max_cost_usd: 0.5\non_missed: skip\non_overlap: queue\nretry: 3\n---\nLook at the mail.\n";
    let d = valid("routines/mail.md", text);
    assert_eq!((d.id.as_str(), d.description.as_str(), d.enabled), ("007", "Morning mail", false));
    assert_eq!((d.zone, d.own_zone), (chrono_tz::America::New_York, Some(chrono_tz::America::New_York)));
    assert_eq!(d.trigger, Trigger::Routine { recurs: "30 8 * * 1-5".into(), on_overlap: OnOverlap::Queue });
    let background = d.background().unwrap();
    assert_eq!((background.isolated, background.model.as_deref()), (true, Some("haiku")));
    assert_eq!(background.thinking, Thinking::Budget(4000));
    assert_eq!(background.restrictions.update_main_session, UpdateMode::Always);
    assert!(!background.restrictions.allow_ping);
    let tools: Vec<String> = background.restrictions.allowed_tools().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(tools, ["Bash(ollim-bot gmail *)", "mcp__discord__report_updates"]);
    assert_eq!((d.timeout, d.max_turns), (Some(std::time::Duration::from_secs(5400)), Some(20)));
    assert_eq!((d.max_cost_usd, d.on_missed, d.retry), (Some(0.5), OnMissed::Skip, Some(3)));
    assert_eq!(d.body, "Look at the mail.");
}

#[test]
fn everything_has_a_default() {
    let d = valid("routines/mail.md", "---\ncron: '@daily'\n---\nx");
    assert_eq!((d.id.as_str(), d.description.as_str(), d.enabled), ("mail", "", true));
    assert_eq!((d.zone, d.own_zone, d.on_missed), (chrono_tz::Europe::Vienna, None, OnMissed::Latest));
    assert_eq!((d.mode.clone(), d.timeout, d.retry), (Mode::Foreground, None, None));
    let d = valid("reminders/tea.md", "---\nrun_at: 2030-01-01 09:00\nbackground: true\n---\nx");
    assert_eq!(
        (d.on_missed, d.trigger.run_at().unwrap().to_rfc3339()),
        (OnMissed::All, "2030-01-01T08:00:00+00:00".into())
    );
    assert_eq!(d.mode, Mode::Background(crate::definition::Background::default()));
}

#[test]
fn files_of_the_original_load_unchanged() {
    let text = "---\nid: 1f0c9a2b\nrun-at: '2030-01-01T14:00:00-08:00'\ndescription: Check on the oven\nbackground: true\n\
                max-chain: 3\nchain-depth: 1\nchain-parent: '12345678'\nupdate-main-session: blocked\nallow-ping: true\n\
                allowed-tools:\n- Bash(ollim-bot tasks *)\n- mcp__discord__follow_up_chain\n---\n\nIs it done?\n";
    let d = valid("reminders/check-on-the-oven.md", text);
    let Trigger::Reminder { run_at, chain } = d.trigger else { panic!() };
    assert_eq!(run_at.to_rfc3339(), "2030-01-01T14:00:00-08:00");
    assert_eq!(chain, Some(Chain { max: 3, depth: 1, parent: DefinitionId::new("12345678") }));
    assert_eq!(d.body, "Is it done?");
}

#[test]
fn an_id_stays_as_it_is_written() {
    for (written, id) in [
        ("12345678", "12345678"),
        ("1234e567", "1234e567"),
        ("007", "007"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("true", "true"),
        ("'quoted'", "quoted"),
        ("2026-11-22", "2026-11-22"),
        ("1.50", "1.50"),
        ("~", "mail"),
        ("täglich 🍵", "täglich 🍵"),
    ] {
        let d = valid("routines/mail.md", &format!("---\nid: {written}\ncron: '@daily'\n---\nx"));
        assert_eq!(d.id.as_str(), id, "{written}");
    }
}

#[test]
fn a_chain_needs_the_tool_or_the_command() {
    for (tools, lacks) in [
        ("Bash(ollim-bot *)", false),
        ("Bash(ollim-bot follow-up-chain *)", false),
        ("Bash(ollim-bot next)", true),
        ("mcp__bot__follow_up_chain", false),
        ("Read", true),
    ] {
        let fields = format!("background: true\nmax_chain: 2\nallowed_tools: ['{tools}']\n");
        let parsed = read("reminders/tea.md", &format!("---\nrun_at: 2030-01-01T09:00:00Z\n{fields}---\nx"));
        let said = shown(&parsed);
        assert_eq!(said.contains("which the list lacks"), lacks, "{tools}: {said}");
    }
}

#[test]
fn a_chain_starts_with_its_own_id() {
    let d = valid("reminders/tea.md", "---\nrun_at: 2030-01-01T09:00:00Z\nmax_chain: 2\n---\nx");
    let Trigger::Reminder { chain, .. } = d.trigger else { panic!() };
    assert_eq!(chain, Some(Chain { max: 2, depth: 0, parent: DefinitionId::new("tea") }));
}

#[test]
fn an_empty_list_is_a_list() {
    let d = valid("routines/mail.md", "---\ncron: '@daily'\nbackground: true\nallowed_tools: []\n---\nx");
    assert_eq!(d.background().unwrap().restrictions.allowed_tools(), Some(&[][..]));
}

#[test]
fn line_ends_marks_and_blanks_change_nothing() {
    let plain = "---\ncron: 30 8 * * *\ndescription: Zähne 🪥\n---\nFirst.\n\n---\n\nSecond.\n";
    let expected = valid("routines/mail.md", plain);
    assert_eq!(expected.body, "First.\n\n---\n\nSecond.");
    for text in [
        plain.replace('\n', "\r\n"),
        format!("\u{feff}{plain}"),
        format!("\u{feff}{}", plain.replace('\n', "\r\n")),
        format!("\n  \n{plain}"),
        plain.replace("---\nFirst", "---  \t\n\n\nFirst"),
        plain.trim_end().to_owned(),
        plain.replace("cron", "  cron").replace("description", "  description"),
        plain.replace("cron", "# a comment\n\ncron"),
    ] {
        assert_eq!(valid("routines/mail.md", &text), expected, "{text:?}");
    }
}

#[test]
fn a_description_is_one_line() {
    let d = valid("routines/mail.md", "---\ncron: '@daily'\ndescription: \"a\\n b\\e[2J  c\"\n---\nx");
    assert_eq!(d.description, "a b [2J c");
}

#[test]
fn problems_are_where_the_file_has_them() {
    let text = "\u{feff}\r\n---\r\n\r\n# note\r\ncron: 0 9 * * *\r\nmax_turns: many\r\n---\r\nx\r\n";
    let parsed = read("routines/mail.md", text);
    insta::assert_snapshot!(shown(&parsed), @"
    error: routine `mail`: `max_turns` must be a whole number, found `many`
      --> routines/mail.md:6:12
    hint: write `max_turns: 1` or more
    ");
}

#[test]
fn files_that_are_no_definition() {
    let file = "routines/mail.md";
    let latin = parse(Kind::Routine, Path::new(file), b"---\ncron: '@daily'\n---\nCaf\xe9\n", &defaults());
    let large = parse(Kind::Routine, Path::new(file), &vec![b'x'; LARGEST_FILE + 1], &defaults());
    let bomb: String = (1..9).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".into(), |text, n| {
        format!("{text}a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(", "))
    });
    let blocks = [
        shown(&read(file, "")),
        shown(&read(file, "Just a prompt.\n")),
        shown(&read("reminders/tea.md", "Tea.\n")),
        shown(&read(file, "\n---\ncron: 0 9 * * *\n\nLook at the mail.\n")),
        shown(&read(file, "---\n- cron\n---\nx")),
        shown(&read(file, "---\njust words\n---\nx")),
        shown(&read(file, "---\n# nothing\n---\nx")),
        shown(&read(file, "---\n---\n")),
        shown(&read(file, "---\ncron: */5 * * * *\n---\nx")),
        shown(&read(file, "---\nid: x\ncron: @daily\n---\nx")),
        shown(&read(file, "---\ncron: 0 9 * * *\ndescription: a: b\n---\nx")),
        shown(&read(file, "---\ncron: 0 9 * * *\nallowed_tools:\n\t- Read\n---\nx")),
        shown(&read(file, "---\ncron: 0 9 * * *\nallowed_tools:\n  - *\n---\nx")),
        shown(&read(file, "---\ncron: 0 9 * * *\nallowed_tools: [''Read'', Grep]\n---\nx")),
        shown(&read(file, "---\ncron: '0 9 * * *\n---\nx")),
        shown(&read(file, &format!("---\ncron: 0 9 * * *\n{bomb}---\nx"))),
        shown(&latin),
        shown(&large),
    ];
    insta::assert_snapshot!(blocks.join("\n\n"), @"
    error: routine `mail`: there is no frontmatter
      --> routines/mail.md:1:1
    hint: begin the file with `---`, a line `cron: '30 8 * * *'`, `---`, and then the prompt

    error: routine `mail`: there is no frontmatter
      --> routines/mail.md:1:1
    hint: begin the file with `---`, a line `cron: '30 8 * * *'`, `---`, and then the prompt

    error: reminder `tea`: there is no frontmatter
      --> reminders/tea.md:1:1
    hint: begin the file with `---`, a line `run_at: 2026-11-22T09:00:00+01:00`, `---`, and then the prompt

    error: routine `mail`: the frontmatter is not closed
      --> routines/mail.md:2:1
    hint: add a line `---` between the settings and the prompt

    error: routine `mail`: the frontmatter is not valid YAML: expected `key: value` lines, found a list
      --> routines/mail.md:2:1
    hint: each setting is a line `key: value`

    error: routine `mail`: the frontmatter is not valid YAML: expected `key: value` lines, found text
      --> routines/mail.md:2:1
    hint: each setting is a line `key: value`

    error: routine `mail`: a routine needs `cron`, `every`, `after` or `watch`
      --> routines/mail.md:1:1
    hint: write for example `cron: '30 8 * * *'` (minute hour day month weekday)

    error: routine `mail`: a routine needs `cron`, `every`, `after` or `watch`
      --> routines/mail.md:1:1
    hint: write for example `cron: '30 8 * * *'` (minute hour day month weekday)
    error: routine `mail`: the body is empty
      --> routines/mail.md:2:1
    hint: write the prompt below the closing `---`

    error: routine `mail`: the frontmatter is not valid YAML: did not find expected alphabetic or numeric character, while scanning an alias
      --> routines/mail.md:2:8
    hint: quote the value: `cron: '*/5 * * * *'`

    error: routine `mail`: the frontmatter is not valid YAML: found character that cannot start any token, while scanning for the next token
      --> routines/mail.md:3:7
    hint: quote the value: `cron: '@daily'`

    error: routine `mail`: the frontmatter is not valid YAML: mapping values are not allowed in this context
      --> routines/mail.md:3:15
    hint: quote the value: `description: 'a: b'`

    error: routine `mail`: the frontmatter is not valid YAML: found character that cannot start any token, while scanning for the next token
      --> routines/mail.md:4:1
    hint: indent with spaces: YAML has no tabs there

    error: routine `mail`: the frontmatter is not valid YAML: did not find expected alphabetic or numeric character, while scanning an alias
      --> routines/mail.md:4:6
    hint: quote the value: `- '*'`

    error: routine `mail`: the frontmatter is not valid YAML: did not find expected ',' or ']', while parsing a flow sequence
      --> routines/mail.md:3:19
    hint: close the bracket, and quote each value in it by itself: `['Bash(git log *)', Read]`; a text that begins with one is quoted as a whole

    error: routine `mail`: the frontmatter is not valid YAML: found unexpected end of stream, while scanning a quoted scalar
      --> routines/mail.md:3:1
    hint: close the quote: a `'` within single quotes is written `''`

    error: routine `mail`: the frontmatter is not valid YAML: too many values (do aliases repeat each other?)
      --> routines/mail.md:3:5
    hint: write the values out instead of repeating them with `*`

    error: routine `mail`: the file is not UTF-8 text
      --> routines/mail.md:4:4
    hint: save it as UTF-8

    error: routine `mail`: the file is over 1 MiB
      --> routines/mail.md:1:1
    hint: keep long material in a file that the prompt names
    ");
}

#[test]
fn triggers() {
    let blocks = [
        shown(&read("routines/mail.md", "---\nenabled: true\n---\nx")),
        shown(&read("routines/mail.md", "---\nrun_at: 2030-01-01T09:00:00Z\n---\nx")),
        shown(&read("reminders/tea.md", "---\ncron: 0 9 * * *\n---\nx")),
        shown(&read("reminders/tea.md", "---\nrun_at:\n---\nx")),
        shown(&read("routines/mail.md", "---\ncron: 0 0 30 2 *\n---\nx")),
        shown(&read("routines/mail.md", "---\ncron: 0 30 8 * * *\n---\nx")),
        shown(&read("routines/mail.md", "---\ncron: 30 25 * * *\n---\nx")),
        shown(&read("routines/mail.md", "---\ncron: [30, 8]\n---\nx")),
        shown(&read("reminders/tea.md", "---\nrun_at: tomorrow\n---\nx")),
        shown(&read("reminders/tea.md", "---\nrun_at: 2030-03-31T02:30:00\n---\nx")),
        shown(&read("reminders/tea.md", "---\nrun_at: 2030-10-27T02:30:00\n---\nx")),
        routine("timezone: Europe/Wein\n"),
        routine("on_overlap: wait\n"),
        reminder("on_overlap: queue\n"),
        routine("max_chain: 3\n"),
    ];
    insta::assert_snapshot!(blocks.join("\n\n"), @"
    error: routine `mail`: a routine needs `cron`, `every`, `after` or `watch`
      --> routines/mail.md:1:1
    hint: write for example `cron: '30 8 * * *'` (minute hour day month weekday)

    error: routine `mail`: a routine needs `cron`, `every`, `after` or `watch`
      --> routines/mail.md:1:1
    hint: `run_at` is a reminder's: move the file to reminders/, or write `cron: '30 8 * * *'`
    warning: routine `mail`: `run_at` has no effect on a routine
      --> routines/mail.md:2:1
    hint: only a reminder has it: remove it, or move the file to reminders/

    error: reminder `tea`: a reminder needs `run_at`
      --> reminders/tea.md:1:1
    hint: `cron` is a routine's: move the file to routines/, or write `run_at: …`
    warning: reminder `tea`: `cron` has no effect on a reminder
      --> reminders/tea.md:2:1
    hint: only a routine has it: remove it, or move the file to routines/

    error: reminder `tea`: a reminder needs `run_at`
      --> reminders/tea.md:2:1
    hint: write for example `run_at: 2026-11-22T09:00:00+01:00`

    error: routine `mail`: bad `cron` `0 0 30 2 *`: no date ever matches it, so it can never fire
      --> routines/mail.md:2:7
    hint: check the day against the month: a 30 February or a 31 April does not exist

    error: routine `mail`: bad `cron` `0 30 8 * * *`: a cron expression has 5 fields (minute hour day month weekday), this has 6
      --> routines/mail.md:2:7
    hint: write no seconds and no year: `30 8 * * 1-5` is 8:30 on every day from Monday to Friday

    error: routine `mail`: bad `cron` `30 25 * * *`: the hour field `25` is not valid (0-23)
      --> routines/mail.md:2:7
    hint: for example `30 8 * * *` (every day at 8:30) or `*/15 9-17 * * 1-5` (every quarter of an hour at work)

    error: routine `mail`: `cron` must be text, found a list
      --> routines/mail.md:2:7
    hint: write `cron: …` on one line

    error: reminder `tea`: `run_at` is not a time: `tomorrow`
      --> reminders/tea.md:2:9
    hint: for example `2026-11-22T09:00:00+01:00`, or without the offset for the definition's own zone

    error: reminder `tea`: `run_at` does not exist: the clocks in Europe/Vienna skip `2030-03-31T02:30:00`
      --> reminders/tea.md:2:9
    hint: write a time with an offset, or one before or after the change

    error: reminder `tea`: `run_at` happens twice: the clocks in Europe/Vienna go back over `2030-10-27T02:30:00`
      --> reminders/tea.md:2:9
    hint: write `2030-10-27T02:30:00+02:00` or `2030-10-27T02:30:00+01:00`

    error: routine `mail`: unknown time zone `Europe/Wein`
      --> routines/mail.md:3:11
    hint: write an IANA name, for example `Europe/Vienna`

    error: routine `mail`: `on_overlap` must be one of `skip`, `queue`, `cancel`, found `wait`
      --> routines/mail.md:3:13
    hint: write one of `skip`, `queue`, `cancel`

    warning: reminder `tea`: `on_overlap` has no effect on a reminder
      --> reminders/tea.md:3:1
    hint: only a routine has it: remove it, or move the file to routines/
    (it fires)

    warning: routine `mail`: `max_chain` has no effect on a routine
      --> routines/mail.md:3:1
    hint: only a reminder has it: remove it, or move the file to reminders/
    (it fires)
    ");
}

#[test]
fn tool_lists() {
    let blocks = [
        reminder("background: true\nallowed_tools: [Read]\ndisallowed_tools: [Write]\n"),
        reminder("disallowed-tools: []\nbackground: true\nallowed-tools: []\n"),
        routine("allowed_tools:\n  - Read\n"),
        routine("background: false\ndisallowed_tools: []\n"),
        routine("background: true\nallowed_tools:\n"),
        routine("background: true\nallowed_tools: Read\n"),
        routine("background: true\nallowed_tools:\n  - Read\n  - ''\n"),
        routine("background: true\nallowed_tools:\n  - Read\n  - Bash(ls\n"),
        routine("background: true\nallowed_tools:\n  - Read:\n"),
        routine("background: true\nagent:\n"),
        routine("agent: Explore\n"),
        routine("skills: mail\n"),
        routine("skills: [mail, ../mail]\n"),
        routine("skills: [mail, mail]\n"),
        routine("background: maybe\nallowed_tools: [Read]\n"),
    ];
    insta::assert_snapshot!(blocks.join("\n\n"), @"
    error: reminder `tea`: `allowed_tools` and `disallowed_tools` cannot both be set
      --> reminders/tea.md:5:1
    hint: keep one: `allowed_tools` lists the only tools the job has, `disallowed_tools` takes tools away

    error: reminder `tea`: `allowed_tools` and `disallowed_tools` cannot both be set
      --> reminders/tea.md:5:1
    hint: keep one: `allowed_tools` lists the only tools the job has, `disallowed_tools` takes tools away

    error: routine `mail`: `allowed_tools` does not hold on a foreground job
      --> routines/mail.md:3:1
    hint: add `background: true`, or remove `allowed_tools`: the job then has the main session's tools

    error: routine `mail`: `disallowed_tools` does not hold on a foreground job
      --> routines/mail.md:4:1
    hint: add `background: true`, or remove `disallowed_tools`: the job then has the main session's tools

    error: routine `mail`: `allowed_tools` has no value
      --> routines/mail.md:4:15
    hint: write `allowed_tools: []` for the empty list, or remove the line

    error: routine `mail`: `allowed_tools` must be a list, found `Read`
      --> routines/mail.md:4:16
    hint: write `allowed_tools:` and below it one `- …` a line

    error: routine `mail`: `allowed_tools`: empty tool pattern
      --> routines/mail.md:6:5
    hint: remove the item: an empty list is written `[]`

    error: routine `mail`: `allowed_tools`: unbalanced parentheses in tool pattern `Bash(ls`
      --> routines/mail.md:6:5
    hint: write `Tool` or `Tool(what)`, in quotes where it holds `: ` or ` #`

    error: routine `mail`: each item of `allowed_tools` must be text, found a mapping
      --> routines/mail.md:5:5
    hint: quote it: `- '…'`

    error: routine `mail`: `agent` has no value
      --> routines/mail.md:4:7
    hint: give it a value, or remove the line

    error: routine `mail`: `agent` does not hold on a foreground job
      --> routines/mail.md:3:1
    hint: add `background: true`, or remove `agent`: the job then has the main session's tools

    error: routine `mail`: `skills` must be a list, found `mail`
      --> routines/mail.md:3:9
    hint: write `skills:` and below it one `- …` a line

    error: routine `mail`: `skills`: `../mail` is no name of a skill
      --> routines/mail.md:3:16
    hint: write the name of a folder in skills/: letters, digits, `-` and `_`

    error: routine `mail`: `skills`: `mail` is named twice
      --> routines/mail.md:3:16
    hint: keep one of the two

    error: routine `mail`: `background` must be `true` or `false`, found `maybe`
      --> routines/mail.md:3:13
    hint: write `background: true` or `background: false`
    ");
}

#[test]
fn unknown_keys() {
    let blocks = [
        routine("alowed_tools: [Read]\n"),
        routine("blocked_tools: [Read]\n"),
        routine("allowedTools: [Read]\n"),
        routine("enable: false\n"),
        routine("discription: x\n"),
        routine("priority: 3\n"),
        routine("priority: 3\npriority: 4\n"),
        routine("\"\\e[2J\": 3\n"),
        routine("background: true\n<<: {allowed_tools: [Read]}\n"),
        routine("description: a\ndescription: b\n"),
        routine("allow_ping: true\nallow-ping: false\nbackground: true\n"),
    ];
    insta::assert_snapshot!(blocks.join("\n\n"), @r#"
    error: routine `mail`: unknown field `alowed_tools`, close to `allowed_tools`, which restricts the job
      --> routines/mail.md:3:1
    hint: did you mean `allowed_tools`?

    error: routine `mail`: unknown field `blocked_tools`, close to `disallowed_tools`, which restricts the job
      --> routines/mail.md:3:1
    hint: did you mean `disallowed_tools`?

    error: routine `mail`: unknown field `allowedTools`, close to `allowed_tools`, which restricts the job
      --> routines/mail.md:3:1
    hint: did you mean `allowed_tools`?

    error: routine `mail`: unknown field `enable`, close to `enabled`, which restricts the job
      --> routines/mail.md:3:1
    hint: did you mean `enabled`?

    warning: routine `mail`: unknown field `discription`
      --> routines/mail.md:3:1
    hint: did you mean `description`?
    (it fires)

    warning: routine `mail`: unknown field `priority`
      --> routines/mail.md:3:1
    hint: it has no effect: remove it, or write it as a comment (`# …`)
    (it fires)

    warning: routine `mail`: unknown field `priority`
      --> routines/mail.md:3:1
    hint: it has no effect: remove it, or write it as a comment (`# …`)
    error: routine `mail`: `priority` is set twice
      --> routines/mail.md:4:1
    hint: keep one of the two

    warning: routine `mail`: unknown field `\u{1b}[2J`
      --> routines/mail.md:3:1
    hint: it has no effect: remove it, or write it as a comment (`# …`)
    (it fires)

    error: routine `mail`: merge keys are not supported
      --> routines/mail.md:4:1
    hint: write the settings out: a restriction that comes by a merge could be missed

    error: routine `mail`: `description` is set twice
      --> routines/mail.md:4:1
    hint: keep one of the two

    error: routine `mail`: `allow_ping` is set twice
      --> routines/mail.md:4:1
    hint: keep one of the two
    "#);
}

#[test]
fn values_that_do_not_fit() {
    let blocks = [
        routine("id: ''\n"),
        routine("id: ../../etc/passwd\n"),
        routine("id: --json\n"),
        routine("id: [a]\n"),
        reminder("chain_depth: 1\n"),
        reminder("max_chain: 2\nchain_depth: 3\n"),
        reminder("max_chain: -1\n"),
        reminder("max_chain: 4294967296\n"),
        routine("timeout: 600\n"),
        routine("max_turns: 0\n"),
        routine("max_cost_usd: -1\n"),
        routine("retry: often\n"),
        routine("on_missed: lates\n"),
        routine("enabled:\n"),
        routine("background: true\nupdate_main_session: never\n"),
        routine("background: true\nallow_ping:\n"),
        routine("background: true\nmodel: --help\n"),
        shown(&read("routines/mail.md", "---\ncron: 0 9 * * *\n---\n  \n\n")),
        shown(&read("routines/-x.md", "---\ncron: 0 9 * * *\n---\nx")),
    ];
    insta::assert_snapshot!(blocks.join("\n\n"), @"
    error: routine `mail`: the id `` is empty
      --> routines/mail.md:3:1
    hint: set `id` to letters and digits, for example `id: check-the-oven`

    error: routine `mail`: the id `../../etc/passwd` begins with `-` or `.`
      --> routines/mail.md:3:1
    hint: set `id` to letters and digits, for example `id: check-the-oven`

    error: routine `mail`: the id `--json` begins with `-` or `.`
      --> routines/mail.md:3:1
    hint: set `id` to letters and digits, for example `id: check-the-oven`

    error: routine `mail`: `id` must be text, found a list
      --> routines/mail.md:3:5
    hint: write `id: …` on one line

    error: reminder `tea`: `chain_depth` 1 is beyond `max_chain` 0
      --> reminders/tea.md:3:1
    hint: raise `max_chain`, or remove `chain_depth`: a chain sets it by itself

    error: reminder `tea`: `chain_depth` 3 is beyond `max_chain` 2
      --> reminders/tea.md:4:1
    hint: raise `max_chain`, or remove `chain_depth`: a chain sets it by itself

    error: reminder `tea`: `max_chain` cannot be negative, found -1
      --> reminders/tea.md:3:12
    hint: write `max_chain: 0` or more

    error: reminder `tea`: `max_chain` is too large: 4294967296
      --> reminders/tea.md:3:12
    hint: write `max_chain: 1000000` or less

    error: routine `mail`: `timeout` needs a unit, found `600`
      --> routines/mail.md:3:10
    hint: write `timeout: 600s` or `timeout: 600m`

    error: routine `mail`: `max_turns` must be at least 1, found 0
      --> routines/mail.md:3:12
    hint: write `max_turns: 1` or more

    error: routine `mail`: `max_cost_usd` cannot be negative, found -1
      --> routines/mail.md:3:15
    hint: write `max_cost_usd: 0.50`

    error: routine `mail`: `retry` must be a whole number, found `often`
      --> routines/mail.md:3:8
    hint: write `retry: 0` or more

    error: routine `mail`: `on_missed` must be one of `latest`, `all`, `skip`, found `lates`
      --> routines/mail.md:3:12
    hint: did you mean `latest`?

    error: routine `mail`: `enabled` has no value
      --> routines/mail.md:3:9
    hint: give it a value, or remove the line

    error: routine `mail`: `update_main_session` must be one of `always`, `on_ping`, `freely`, `blocked`, found `never`
      --> routines/mail.md:4:22
    hint: write one of `always`, `on_ping`, `freely`, `blocked`

    error: routine `mail`: `allow_ping` has no value
      --> routines/mail.md:4:12
    hint: give it a value, or remove the line

    error: routine `mail`: `model` must be the name of a model, found `--help`
      --> routines/mail.md:4:8
    hint: for example `haiku`, `sonnet` or `claude-sonnet-4-5`

    error: routine `mail`: the body is empty
      --> routines/mail.md:3:1
    hint: write the prompt below the closing `---`

    error: routine `-x`: the id `-x` begins with `-` or `.`
      --> routines/-x.md:1:1
    hint: set `id` to letters and digits, for example `id: check-the-oven`
    ");
}

#[test]
fn warnings_do_not_stop_it() {
    let blocks = [
        routine("model: haiku\nthinking: false\nisolated: true\nallow_ping: false\nupdate_main_session: always\n"),
        routine("thinking: true\nisolated: false\nallow_ping: true\n"),
        routine("background: true\nupdate_main_session: always\nallowed_tools: [Read]\n"),
        routine("background: true\nupdate_main_session: always\nallowed_tools: ['mcp__discord__*']\n"),
        routine("background: true\nupdate_main_session: always\nallowed_tools: [mcp__discord]\n"),
        reminder("background: true\nmax_chain: 1\nallowed_tools: [Read]\n"),
        reminder("background: true\nmax_chain: 1\nchain_depth: 1\nallowed_tools: [Read]\n"),
        reminder("background: true\nmax_chain: 1\nallowed_tools: ['Bash(ollim-bot follow-up-chain *)']\n"),
        routine("background: true\nallowed_tools: ['Bash(ollim-bot gmial *)']\n"),
        routine("background: true\nenabled: false\nallowed_tools: ['Bash(ollim-bot gmial *)']\n"),
        routine("background: true\nallowed_tools:\n  - Read\n  - Bash\n  - Bash(python *)\n"),
        routine("background: true\ndisallowed_tools: [Bash(git push *)]\n"),
        routine(
            "background: true\ndisallowed_tools: ['Bash(ollim-bot banking:*)', 'Bash(ollim-bot *)', 'Bash(ollim-bot --json cal)']\n",
        ),
    ];
    insta::assert_snapshot!(blocks.join("\n\n"), @"
    warning: routine `mail`: `model` has no effect on a foreground job
      --> routines/mail.md:3:1
    hint: add `background: true`, or remove it
    warning: routine `mail`: `thinking` has no effect on a foreground job
      --> routines/mail.md:4:1
    hint: add `background: true`, or remove it
    warning: routine `mail`: `isolated` has no effect on a foreground job
      --> routines/mail.md:5:1
    hint: add `background: true`, or remove it
    warning: routine `mail`: `allow_ping` has no effect on a foreground job
      --> routines/mail.md:6:1
    hint: add `background: true`, or remove it
    warning: routine `mail`: `update_main_session` has no effect on a foreground job
      --> routines/mail.md:7:1
    hint: add `background: true`, or remove it
    (it fires)

    (it fires)

    warning: routine `mail`: `update_main_session: always` needs `mcp__bot__report_updates`, which the list lacks
      --> routines/mail.md:5:1
    hint: add `mcp__bot__report_updates` to `allowed_tools`
    (it fires)

    (it fires)

    (it fires)

    warning: reminder `tea`: `max_chain` needs `mcp__bot__follow_up_chain`, which the list lacks
      --> reminders/tea.md:5:1
    hint: add `mcp__bot__follow_up_chain` to `allowed_tools`
    (it fires)

    (it fires)

    (it fires)

    warning: routine `mail`: there is no command `ollim-bot gmial` here
      --> routines/mail.md:4:17
    hint: did you mean `ollim-bot gmail`?
    (it fires)

    (it fires)

    warning: routine `mail`: `Bash` grants everything: any command line
      --> routines/mail.md:6:5
    hint: name the commands, as in `Bash(ollim-bot gmail *)`
    warning: routine `mail`: `Bash(python *)` can run any program: `python` runs what its arguments say
      --> routines/mail.md:7:5
    hint: name what it may run, as in `Bash(python FILE)`
    (it fires)

    warning: routine `mail`: `Bash(git push *)` is a guard rail, not a boundary: a copy of the program, or another one, can do the same
      --> routines/mail.md:4:20
    hint: list what is allowed in `allowed_tools` instead
    (it fires)

    warning: routine `mail`: there is no command `ollim-bot banking` here
      --> routines/mail.md:4:20
    hint: install `ollim-bot-banking` in the data folder's bin/, or correct the rule
    (it fires)
    ");
}

#[test]
fn all_problems_come_at_once() {
    let text = "---\ncron: 99 * * * *\nbackground: true\nallowed_tools: [Read]\nmax_turns: -1\ntimezone: Nowhere\n\
                disallowed_tools: ['']\ntimeout: soon\nagent: --help\npriorty: 1\n---\n\n";
    let parsed = read("routines/mail.md", text);
    assert!(parsed.definition.is_none());
    insta::assert_snapshot!(parsed.problems.iter().map(|p| format!("{}:{} {:?} {}", p.line, p.column, p.field, p.message)).collect::<Vec<_>>().join("\n"), @r#"
    2:7 Some("cron") bad `cron` `99 * * * *`: the minute field `99` is not valid (0-59)
    5:12 Some("max_turns") `max_turns` cannot be negative, found -1
    6:11 Some("timezone") unknown time zone `Nowhere`
    7:1 Some("disallowed_tools") `allowed_tools` and `disallowed_tools` cannot both be set
    7:20 Some("disallowed_tools") `disallowed_tools`: empty tool pattern
    8:10 Some("timeout") `timeout` must be a span of time, found `soon`
    9:8 Some("agent") `agent` must be the name of an agent, found `--help`
    10:1 Some("priorty") unknown field `priorty`
    11:1 None the body is empty
    "#);
}

#[test]
fn what_a_routine_watches() {
    let watches = |path: &str| {
        let parsed = read("routines/mail.md", &format!("---\nwatch: {path}\n---\nGo.\n"));
        parsed.definition.map(|found| (found.watches().unwrap().to_string(), Draft::from(&found).render(None)))
    };
    for (path, shown) in
        [("inbox", "inbox"), ("./a/./b/", "a/b"), (".", "."), ("/srv/in/", "/srv/in"), ("'a b'", "a b"), ("...", "...")]
    {
        let (found, text) = watches(path).unwrap();
        assert_eq!(found, shown, "{path}");
        assert!(text.contains(&format!("watch: {shown}\n")) || path.contains(['\'', '.']), "{text}");
    }
    for path in ["..", "a/../b", "/srv/../etc", "''", "[a]", "\"a\\nb\""] {
        assert_eq!(watches(path), None, "{path}");
    }
}

#[test]
fn what_a_routine_follows() {
    let follows = |line: &str| {
        let parsed = read("routines/mail.md", &format!("---\n{line}\n---\nGo.\n"));
        let shown = parsed.definition.map(|found| (found.follows().cloned(), Draft::from(&found).render(None)));
        let problems: Vec<_> = parsed.problems.into_iter().map(|problem| problem.message).collect();
        (shown, problems)
    };
    for (line, job, outcome, written) in [
        ("after: tea", "tea", FollowedEnd::Completed, "after: tea\n"),
        ("after: { job: tea }", "tea", FollowedEnd::Completed, "after: tea\n"),
        ("after: { job: tea, outcome: failed }", "tea", FollowedEnd::Failed, "after: { job: tea, outcome: failed }\n"),
        ("after: { outcome: any, job: a b }", "a b", FollowedEnd::Any, "after: { job: a b, outcome: any }\n"),
        ("after: 'job: tea, outcome: failed'", "tea", FollowedEnd::Failed, "after: { job: tea, outcome: failed }\n"),
        (
            "after: '{ job: tea, outcome: failed }'",
            "tea",
            FollowedEnd::Failed,
            "after: { job: tea, outcome: failed }\n",
        ),
        ("after: '{outcome: any, job: \"a b\"}'", "a b", FollowedEnd::Any, "after: { job: a b, outcome: any }\n"),
        ("after: 'outcome=any, job=tea'", "tea", FollowedEnd::Any, "after: { job: tea, outcome: any }\n"),
        ("after: '12'", "12", FollowedEnd::Completed, "after: '12'\n"),
        ("after: job", "job", FollowedEnd::Completed, "after: job\n"),
    ] {
        let (found, problems) = follows(line);
        let (found, text) = found.unwrap();
        assert_eq!(found, Some(Follows { job: DefinitionId::new(job), outcome }), "{line}");
        assert!(text.contains(written), "{line}: {text}");
        assert_eq!(problems, [""; 0], "{line}");
    }
    for (line, problem) in [
        ("after:", "`after` has no value"),
        ("after: [tea]", "`after` must be the id of a job, found a list"),
        ("after: { outcome: failed }", "`after` names no job"),
        ("after: '{ outcome: failed }'", "`after` names no job"),
        ("after: '{ jobs: tea }'", "`after` has no `jobs`"),
        ("after: '{ tea }'", "`after` must be a mapping, found `{ tea }`"),
        ("after: '{ job: tea'", "`after` must be the id of a job, found `{ job: tea`"),
        (
            "after: { job: tea, outcome: skipped }",
            "`after.outcome` must be one of `completed`, `failed`, `any`, found `skipped`",
        ),
        ("after: { job: tea, when: now }", "`after` has no `when`"),
        ("cron: '@daily'\nafter: tea", "`cron` and `after` cannot both be set"),
        ("every: 2h\nafter: tea", "`every` and `after` cannot both be set"),
    ] {
        let (found, problems) = follows(line);
        assert_eq!((found, problems), (None, vec![problem.to_owned()]), "{line}");
    }
    let (found, problems) = follows("after: tea\njitter: 5m");
    assert!(found.is_some());
    assert_eq!(problems, ["`jitter` has no effect on a routine that fires when `tea` has completed"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(Kind::Routine, Path::new("routines/x.md"), &bytes, &defaults());
    }

    /// Random lines that look like settings never cause a panic or a definition beside an error. Every problem lies
    /// within the file.
    #[test]
    fn no_settings_panic(
        lines in proptest::collection::vec(
            "(cron|run_at|id|allowed_tools|disallowed-tools|background|x|- Read|  - '|\\t|&a|\\*a|<<|\\? |\\[|\\{|---)(: )?(true|\\[\\]|0 9 \\* \\* \\*|'|\"|!t|~|-1|é🍵|\\|)?",
            0..8,
        ),
        kind in prop_oneof![Just(Kind::Routine), Just(Kind::Reminder)],
        eol in prop_oneof![Just("\n"), Just("\r\n")],
    ) {
        let text = format!("---{eol}{}{eol}---{eol}body{eol}", lines.join(eol));
        let parsed = parse(kind, Path::new("routines/x.md"), text.as_bytes(), &defaults());
        prop_assert_eq!(parsed.definition.is_none(), parsed.problems.iter().any(Problem::is_error));
        for problem in &parsed.problems {
            let line = text.lines().nth(problem.line as usize - 1);
            prop_assert!(line.is_some_and(|line| problem.column as usize <= line.chars().count() + 1), "{} in {:?}", problem, text);
        }
    }
}
