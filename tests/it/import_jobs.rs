//! `import crontab`, `import systemd`: lines and timers become routines that run a command. The import names all others.

use serde_json::{Value, json};

use crate::support::bot::TestBot;
use crate::support::client;

/// `file: why`, one a line.
fn said(files: &Value) -> String {
    let line = |one: &Value| format!("{}: {}\n", one["file"].as_str().unwrap(), one["why"].as_str().unwrap());
    files.as_array().unwrap().iter().map(line).collect()
}

fn import(bot: &TestBot, args: &[&str]) -> Value {
    let ran = bot.run([&["--json", "import"], args].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

const CRONTAB: &str = "# m h dom mon dow command\n\
    PATH=/usr/local/bin:/usr/bin:/bin\n\
    \n\
    # Pack the notes\n\
    15 3 * * * echo packed%with this\n\
    @reboot ~/bin/start\n\
    */10 9-17 * * mon-fri test -e x && date +\\%H\n\
    */10 9-17 * * mon-fri test -e x && date +\\%H\n\
    0 12 * * * date '+\\%F'\n\
    MAILTO=\"\"\n\
    0 4 * * 0 ~/bin/weekly\n\
    RANDOM_DELAY=30\n\
    0 5 * * 0 sort tab > all.txt\n";

#[test]
fn lines_of_a_crontab_become_routines() {
    let bot = TestBot::new();
    bot.write("../tab", CRONTAB);
    let tab = bot.person().join("tab").display().to_string();
    let tried = import(&bot, &["crontab", &tab, "--dry-run"]);
    assert_eq!(bot.names("routines"), Vec::<String>::new());
    let done = import(&bot, &["crontab", &tab]);
    for key in ["taken", "left", "look"] {
        assert_eq!(tried[key], done[key], "what was said is what is done");
    }
    let names = ["pack-the-notes", "test-e-x-date-h", "bin-weekly", "sort-tab-all-txt"]
        .map(|name| format!("routines/{name}.md"));
    assert_eq!(done["taken"], json!(names));
    let left = said(&done["left"]).replace(&tab, "tab");
    for why in [
        "tab:6: `@reboot` is no time",
        "tab:8: there is a routine with this time and this command already",
        "tab:9: it has `\\%` between quotes",
    ] {
        assert!(left.contains(why), "{left}");
    }
    let look = said(&done["look"]).replace(&tab, "tab");
    assert!(look.contains("tab:13: it names tab and all.txt in your home"), "{look}");
    assert!(
        look.contains("tab:11: it names your home") && look.contains("tab:11: its output is sent to nobody"),
        "{look}"
    );
    assert_eq!(look.matches("it is disabled, since it still runs where it was").count(), 4, "{look}");
    let again = import(&bot, &["crontab", &tab]);
    assert_eq!(again["taken"], json!([]), "{again:#}");

    let job = bot.json(["routine", "show", "pack-the-notes"]);
    assert_eq!(
        (&job["cron"], &job["enabled"], &job["deliver"]),
        (&json!("15 3 * * *"), &json!(false), &json!("always"))
    );
    assert_eq!(bot.json(["routine", "show", "bin-weekly"])["deliver"], "never");
    assert_eq!(bot.json(["routine", "show", "sort-tab-all-txt"])["jitter"], "30m");
    assert_eq!(bot.json(["check"])["problems"].as_array().unwrap().len(), 0);
    // The routine has the same effect as under crond.
    let service = bot.start();
    let run = service.fire("pack-the-notes");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    let messages = bot.json(["inbox"]).to_string();
    assert!(messages.contains("packed"), "{messages}");
    service.stop();
}

/// Each line runs in the sandbox as in crond's shell: same folder, input and variables.
#[test]
fn a_line_does_what_crond_makes_of_it() {
    let bot = TestBot::new();
    let lines = [
        ("0 0 1 1 * cat%one%two\\%", "one\ntwo%"),
        ("A=b c\n0 0 2 1 * echo \"$A\"", "b c"),
        ("0 0 3 1 * echo ${0##*/}", "sh"),
        ("SHELL=/bin/bash\n0 0 4 1 * [[ a == a ]] && echo yes", "yes"),
        ("0 0 5 1 * [ \"$PWD\" = \"$HOME\" ] && echo at home", "at home"),
        ("0 0 6 1 * echo $(expr 40 + 2)\\%", "42%"),
    ];
    for (n, (text, _)) in lines.iter().enumerate() {
        let file = format!("tab{n}");
        bot.write(
            &format!("../{file}"),
            &format!("# line {n}\n#\n{}\n", text.replacen("0 0", &format!("# job {n}\n0 0"), 1)),
        );
        let done = import(&bot, &["crontab", bot.person().join(&file).to_str().unwrap()]);
        assert_eq!(done["taken"], json!([format!("routines/job-{n}.md")]), "{done:#}");
    }
    let service = bot.start();
    for (n, (text, expected)) in lines.iter().enumerate() {
        let run = service.fire(&format!("job-{n}"));
        let shown = bot.json(["runs", "show", run["run"].as_str().unwrap()]);
        let printed = shown["events"].as_array().unwrap().iter().find(|event| event["event"] == "printed");
        let printed = printed.map(|event| event["text"].as_str().unwrap().trim_end());
        assert_eq!(printed, Some(*expected), "{text}\n{shown:#}");
    }
    service.stop();
}

#[test]
fn what_crontab_prints_is_read_where_no_file_is_named() {
    let bot = TestBot::new();
    let programs = bot.person().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let bot = bot.env("PATH", &format!("{}:/usr/bin:/bin", programs.display()));
    client::executable(&programs.join("crontab"), "#!/bin/sh\n[ \"$1\" = -l ] && echo '0 1 * * * true'\n");
    assert_eq!(import(&bot, &["crontab"])["taken"], json!(["routines/true.md"]));
    client::executable(&programs.join("crontab"), "#!/bin/sh\necho no crontab for you >&2; exit 1\n");
    let failed = bot.run(["import", "crontab"]);
    assert!(failed.code == 1 && failed.stderr.contains("`crontab -l` failed: no crontab for you"), "{failed:?}");
    // The system's crontab gives only the lines of this user.
    bot.write("../system", "17 * * * * root run-parts /etc/cron.hourly\n0 6 * * 1 me true weekly\n");
    let bot = bot.env("USER", "me");
    let done = import(&bot, &["crontab", bot.person().join("system").to_str().unwrap(), "--user"]);
    assert_eq!(done["taken"], json!(["routines/true-weekly.md"]), "{done:#}");
    assert!(said(&done["left"]).contains(":1: it runs as `root`, and the bot as `me`"), "{done:#}");
}

#[test]
fn timers_become_routines() {
    let bot = TestBot::new();
    let unit = |name: &str, text: &str| bot.write(&format!("../.config/systemd/user/{name}"), text);
    unit(
        "backup.timer",
        "[Unit]\nDescription=Back up\n[Timer]\nOnCalendar=Mon..Fri 03:15\nPersistent=true\nRandomizedDelaySec=10m\n",
    );
    unit("backup.service", "[Service]\nType=oneshot\nExecStart=/usr/bin/echo 'backed up'\nTimeoutStartSec=5min\n");
    unit("span.timer", "[Timer]\nOnBootSec=5min\n");
    unit(
        "hourly.timer",
        "[Unit]\nDescription=Each hour\n[Timer]\nOnBootSec=5min\nOnUnitActiveSec=1h\nWakeSystem=true\n",
    );
    unit("hourly.service", "[Service]\nExecStart=/usr/bin/echo hourly\n");
    unit("span.service", "[Service]\nExecStart=/usr/bin/true\n");
    unit("alone.timer", "[Timer]\nOnCalendar=daily\n");
    unit("changed.timer", "[Timer]\nOnCalendar=daily\nUnit=backup.service\n");
    unit("changed.timer.d/more.conf", "[Timer]\nOnCalendar=weekly\n");
    unit("notes.txt", "no unit");
    let tried = import(&bot, &["systemd", "--dry-run"]);
    assert_eq!(bot.names("routines"), Vec::<String>::new());
    let done = import(&bot, &["systemd"]);
    assert_eq!((&tried["taken"], &tried["left"], &tried["look"]), (&done["taken"], &done["left"], &done["look"]));
    assert_eq!(done["taken"], json!(["routines/back-up.md", "routines/each-hour.md"]), "{done:#}");
    let left = said(&done["left"]);
    for why in ["span.timer: it has `OnBootSec=5min`", "alone.timer: ", "changed.timer.d changes it"] {
        assert!(left.contains(why), "{left}");
    }
    let every = bot.read("routines/each-hour.md").unwrap();
    assert!(every.contains("\nevery: 1h\n") && every.contains("\nwake: true\n"), "{every}");
    assert!(said(&done["look"]).contains("hourly.timer: it fires every 1h from a fixed moment on"), "{done:#}");
    let job = bot.json(["routine", "show", "back-up"]);
    assert_eq!(job["jitter"], "10m", "{job:#}");
    assert_eq!((&job["cron"], &job["on_missed"]), (&json!("15 3 * * 1-5"), &json!("latest")), "{job:#}");
    assert_eq!((&job["enabled"], &job["timeout"]), (&json!(false), &json!("5m")), "{job:#}");
    let file = bot.person().join(".config/systemd/user/backup.timer");
    for file in [&file, &file.with_file_name("hourly.timer")] {
        let again = import(&bot, &["systemd", file.to_str().unwrap()]);
        assert_eq!(again["taken"], json!([]), "{again:#}");
    }
    let service = bot.start();
    let run = service.fire("back-up");
    assert_eq!(run["outcome"], "completed", "{run:#}");
    service.stop();
    let wrong = bot.run(["import", "systemd", "/nowhere/x.timer"]);
    assert!(wrong.code == 1 && wrong.stderr.contains("is neither a folder nor the file of a timer"), "{wrong:?}");
}

/// Equal remarks appear once, and each line has a remark of its own.
#[test]
fn what_is_to_be_looked_at_is_said_once() {
    let bot = TestBot::new();
    let tab = bot.person().join("tab");
    std::fs::write(
        &tab,
        "MAILTO=me@example.org\n0 1 * * * echo one > /var/log/backup.log\n0 2 * * * [ -f /tmp/x ] && echo two\n0 3 * * * echo three\n",
    )
    .unwrap();
    let tab = tab.display().to_string();
    let shown = bot.ok(["import", "crontab", &tab, "--dry-run"]);
    let looks: Vec<&str> = shown.lines().filter(|line| line.starts_with("look at")).collect();
    assert_eq!(looks.len(), 4, "{shown}");
    let all =
        format!("look at  {tab}:2, {tab}:3, {tab}:4: what it prints goes to its channel, and not to me@example.org");
    assert_eq!(looks.iter().filter(|line| line.contains("MAILTO")).count(), 1, "{shown}");
    assert!(shown.contains(&all), "{shown}");
    let outside = "which a job's programs neither read nor write; it is disabled, since it still runs where it was";
    assert!(
        shown.contains(&format!("{tab}:2: it names /var/log/backup.log, outside of `work/`, {outside}")),
        "{shown}"
    );
    assert!(shown.contains(&format!("{tab}:3: it names /tmp/x, outside of `work/`, {outside}")), "{shown}");
    assert!(shown.contains("`allowed_tools: [Bash, 'Edit(//var/log/**)']`"), "{shown}");
    let found = import(&bot, &["crontab", &tab, "--dry-run"]);
    assert_eq!(found["look"].as_array().unwrap().len(), 8, "{found:#}");
}
