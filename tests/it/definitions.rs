//! A folder of files with every kind of mistake: the problems reported for each, and that each stays unchanged.

use std::collections::BTreeMap;
use std::path::Path;

use ollim_bot::definition::{Defaults, load};
use ollim_bot::home::Home;

fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let folders = ["routines", "reminders"].map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    let paths = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect()
}

#[test]
fn every_mistake_is_located_and_every_other_file_loads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/definitions");
    let before = files(&root);
    let defaults = Defaults { zone: chrono_tz::Europe::Vienna, commands: ["help"].into(), agents: Default::default() };
    let loaded = load(&Home::new(&root), &defaults).unwrap();
    let fires: Vec<String> =
        loaded.definitions.values().map(|d| format!("{} from {}: {:?}", d.title(), d.file.display(), d.body)).collect();
    insta::assert_snapshot!(fires.join("\n"), @r#"
    reminder 007 from reminders/crlf-and-bom.md: "First.\n---\nSecond. "
    reminder täglich 🍵 from reminders/täglich 🍵.md: "Tee."
    routine unknown-key from routines/unknown-key.md: "x"
    "#);
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(problems.join("\n\n"), @"
    error: reminder `crlf-problem`: `run_at` is not a time: `tomorrow`
      --> reminders/crlf-problem.md:2:9
    hint: for example `2026-11-22T09:00:00+01:00`, or without the offset for the definition's own zone

    error: reminder `deep-chain`: `chain_depth` 3 is beyond `max_chain` 2
      --> reminders/deep-chain.md:4:1
    hint: raise `max_chain`, or remove `chain_depth`: a chain sets it by itself

    error: reminder `in-the-wrong-folder`: a reminder needs `run_at`
      --> reminders/in-the-wrong-folder.md:1:1
    hint: `cron` is a routine's: move the file to routines/, or write `run_at: …`

    warning: reminder `in-the-wrong-folder`: `cron` has no effect on a reminder
      --> reminders/in-the-wrong-folder.md:2:1
    hint: only a routine has it: remove it, or move the file to routines/

    error: reminder `twice`: the id is also that of `routines/same-id.md`, so none of them fires
      --> reminders/same-id-too.md:3:1
    hint: give each file an `id` of its own, or remove one of them

    error: reminder `skipped-hour`: `run_at` does not exist: the clocks in America/New_York skip `2030-03-10T02:30:00`
      --> reminders/skipped-hour.md:2:9
    hint: write a time with an offset, or one before or after the change

    error: routine `bomb`: the frontmatter is not valid YAML: too many values (do aliases repeat each other?)
      --> routines/bomb.md:3:5
    hint: write the values out instead of repeating them with `*`

    error: routine `both-lists`: `allowed_tools` and `disallowed_tools` cannot both be set
      --> routines/both-lists.md:6:1
    hint: keep one: `allowed_tools` lists the only tools the job has, `disallowed_tools` takes tools away

    error: routine `duplicate-key`: `allow_ping` is set twice
      --> routines/duplicate-key.md:4:1
    hint: keep one of the two

    error: routine `empty-list-value`: `allowed_tools` has no value
      --> routines/empty-list-value.md:4:15
    hint: write `allowed_tools: []` for the empty list, or remove the line

    error: routine `foreground-list`: `allowed_tools` does not hold on a foreground job
      --> routines/foreground-list.md:3:1
    hint: add `background: true`, or remove `allowed_tools`: the job then has the main session's tools

    error: routine `never`: bad `cron` `0 0 30 2 *`: no date ever matches it, so it can never fire
      --> routines/never.md:2:7
    hint: check the day against the month: a 30 February or a 31 April does not exist

    error: routine `no-body`: the body is empty
      --> routines/no-body.md:3:1
    hint: write the prompt below the closing `---`

    error: routine `no-frontmatter`: there is no frontmatter
      --> routines/no-frontmatter.md:1:1
    hint: begin the file with `---`, a line `cron: '30 8 * * *'`, `---`, and then the prompt

    error: routine `no-skill`: skill `mail` cannot be used: there is no such skill
      --> routines/no-skill.md:4:5
    hint: write skills/mail/SKILL.md, or take it out of `skills`

    error: routine `not-utf8`: the file is not UTF-8 text
      --> routines/not-utf8.md:4:4
    hint: save it as UTF-8

    error: routine `twice`: the id is also that of `reminders/same-id-too.md`, so none of them fires
      --> routines/same-id.md:2:1
    hint: give each file an `id` of its own, or remove one of them

    error: routine `six-fields`: bad `cron` `0 30 8 * * *`: a cron expression has 5 fields (minute hour day month weekday), this has 6
      --> routines/six-fields.md:2:7
    hint: write no seconds and no year: `30 8 * * 1-5` is 8:30 on every day from Monday to Friday

    error: routine `typo`: unknown field `alowed_tools`, close to `allowed_tools`, which restricts the job
      --> routines/typo.md:4:1
    hint: did you mean `allowed_tools`?

    error: routine `unclosed`: the frontmatter is not closed
      --> routines/unclosed.md:1:1
    hint: add a line `---` between the settings and the prompt

    warning: routine `unknown-key`: unknown field `discription`
      --> routines/unknown-key.md:3:1
    hint: did you mean `description`?

    error: routine `unknown-zone`: unknown time zone `Europe/Wein`
      --> routines/unknown-zone.md:3:11
    hint: write an IANA name, for example `Europe/Vienna`

    error: routine `unquoted-star`: the frontmatter is not valid YAML: did not find expected alphabetic or numeric character, while scanning an alias
      --> routines/unquoted-star.md:3:8
    hint: quote the value: `cron: '*/15 * * * *'`

    error: routine `wrong-types`: `cron` must be text, found a list
      --> routines/wrong-types.md:2:7
    hint: write `cron: …` on one line

    error: routine `wrong-types`: `enabled` must be `true` or `false`, found `maybe`
      --> routines/wrong-types.md:3:10
    hint: write `enabled: true` or `enabled: false`

    error: routine `wrong-types`: `max_turns` cannot be negative, found -1
      --> routines/wrong-types.md:4:12
    hint: write `max_turns: 1` or more

    error: routine `wrong-types`: `max_cost_usd` must be an amount of dollars above zero, found `free`
      --> routines/wrong-types.md:5:15
    hint: write `max_cost_usd: 0.50`

    error: routine `wrong-types`: `timeout` needs a unit, found `600`
      --> routines/wrong-types.md:6:10
    hint: write `timeout: 600s` or `timeout: 600m`
    ");
    assert_eq!(files(&root), before, "a bad file is left exactly as it is");
}
