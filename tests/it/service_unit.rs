//! `ollim-bot service …`, with a `systemctl` that records its calls. The real systemd judges the unit's text.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::cli::shown;
use crate::support::bot::TestBot;
use crate::support::client;

/// Reports a unit's state from a file, as a manager does, and records its calls.
const SYSTEMCTL: &str = r#"#!/bin/sh
me=$(dirname "$0")
echo "$*" >> "$me/told"
for word; do case "$word" in
  --version) echo "systemd $(cat "$me/version") (test)"; exit ;;
  Version) [ ! -e "$me/no-bus" ] || { echo 'Failed to connect to bus: No medium found' >&2; exit 1; }; exit ;;
  enable) touch "$me/enabled" ;;
  disable) rm -f "$me/enabled" "$me/active" ;;
  stop) rm -f "$me/active" ;;
  start|restart) [ ! -e "$me/broken" ] || { echo 'Job for it failed.' >&2; exit 1; }; touch "$me/active" ;;
  show)
    [ -e "$me/enabled" ] && echo UnitFileState=enabled || echo UnitFileState=
    [ -e "$me/active" ] && printf 'ActiveState=active\nMainPID=4711\n' ||
      printf "ActiveState=$(cat "$me/state" 2>/dev/null || echo inactive)\nMainPID=0\n"
    printf 'NRestarts=2\nStatusText=nothing is going\n' ;;
esac; done
"#;

/// Returns a bot with that `systemctl`, and a `journalctl` that prints its arguments.
fn bot(version: u32) -> TestBot {
    let bot = TestBot::new();
    let bin = bot.person().join("sys");
    fs::create_dir(&bin).unwrap();
    client::executable(&bin.join("systemctl"), SYSTEMCTL);
    client::executable(&bin.join("journalctl"), "#!/bin/sh\necho journalctl \"$*\"\n");
    fs::write(bin.join("version"), version.to_string()).unwrap();
    let path = format!("{}:relative:/usr/bin:/bin:/no/such/folder:/usr/bin", bin.display());
    bot.env("PATH", &path).env("USER", "nobody-in-particular")
}

fn notifications(bot: &TestBot) -> Vec<String> {
    let file = bot.person().join("sys/told");
    let told = fs::read_to_string(&file).unwrap_or_default();
    fs::write(&file, "").unwrap();
    // Queries change nothing.
    told.lines().filter(|line| !line.contains(" show ") && !line.contains("--version")).map(str::to_owned).collect()
}

fn unit(bot: &TestBot) -> (String, std::path::PathBuf) {
    let folder = bot.person().join(".config/systemd/user");
    let entry = fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
    (entry.file_name().into_string().unwrap(), entry.path())
}

#[test]
fn it_is_installed_looked_at_restarted_and_removed() {
    let bot = bot(255);
    let made = bot.run(["service", "install"]);
    assert_eq!(made.code, 0, "{made:#?}");
    let (name, file) = unit(&bot);
    assert!(name.starts_with("ollim-bot-") && name.ends_with("-bot.service"), "{name}");
    assert_eq!(
        notifications(&bot),
        [
            "--user --no-pager daemon-reload".to_owned(),
            format!("--user --no-pager enable {name}"),
            format!("--user --no-pager start {name}")
        ]
    );
    let words = shown(&bot, &made).replace(&name, "UNIT");
    insta::assert_snapshot!(words, @"
    exit: 0
    -- stdout
    installed [PERSON]/.config/systemd/user/UNIT
    unit      UNIT
    state     active (pid 4711)
    says      nothing is going
    restarts  2 after failures
    starts    when you log in
    -- stderr
    note: without lingering your services start when you log in and end when you log out; to have this one from boot on: `loginctl enable-linger`
    how it is: `ollim-bot service status`; what it logs: `ollim-bot service logs -f`
    ");
    let text = fs::read_to_string(&file).unwrap();
    let sys = bot.person().join("sys").canonicalize().unwrap();
    // Each existing folder once, and no relative one.
    assert!(text.contains(&format!("\nEnvironment=\"PATH={}:/usr/bin:/bin\"\n", sys.display())), "{text}");
    assert!(
        text.contains("\nEnvironment=\"TZ=UTC\"\n") && text.contains("\nEnvironment=\"OLLIM_AGENT_CLIENT=notify\"\n")
    );

    let monitored =
        bot.command(["service", "install"]).env("OLLIM_HEARTBEAT_URL", "https://hc.example/SECRET").output().unwrap();
    assert_eq!(monitored.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&monitored.stderr).contains("write `heartbeat_url` into config.yaml"));
    assert!(!fs::read_to_string(&file).unwrap().contains("SECRET"));

    assert!(bot.ok(["service", "install"]).starts_with("installed already "));
    assert_eq!(notifications(&bot).len(), 2, "nothing new to read");
    let status = bot.json(["service", "status"]);
    assert_eq!((&status["status"]["active"], &status["status"]["pid"]), (&"active".into(), &4711.into()));
    assert!(bot.ok(["service", "restart"]).starts_with("started "));
    assert_eq!(notifications(&bot), [format!("--user --no-pager restart {name}")]);
    for (act, said) in [("stop", "stopped "), ("start", "started ")] {
        assert!(bot.ok(["service", act]).starts_with(said), "{act}");
        assert_eq!(notifications(&bot), [format!("--user --no-pager {act} {name}")]);
        // systemd keeps the last words of a process that is gone.
        let status = bot.run(["service", "status"]).stdout;
        assert_eq!(status.contains("says      nothing is going"), act == "start", "{status}");
    }
    let logs = bot.ok(["service", "logs", "-f", "--since", "-1h"]);
    let expect = format!("journalctl --user-unit {name} --lines 100 --since=-1h --follow --output short-iso\n");
    assert_eq!(logs, expect);
    bot.ok(["service", "uninstall"]);
    assert!(!file.exists());
    assert_eq!(
        notifications(&bot),
        [format!("--user --no-pager disable --now {name}"), "--user --no-pager daemon-reload".into()]
    );
    assert_eq!(bot.run(["service", "status"]).code, 1);
}

#[test]
fn what_stands_in_the_way_is_said() {
    let bot = bot(255);
    let name = bot.person().display().to_string().replace('/', "-");
    insta::assert_snapshot!(shown(&bot, &bot.run(["service", "restart"])).replace(&name, "-X"), @"
    exit: 1
    -- stderr
    error: the service is not installed: there is no [PERSON]/.config/systemd/user/ollim-bot-X-bot.service
    hint: install it: `ollim-bot service install`
    ");
    // A service that was started by hand would keep the unit's from starting.
    let service = bot.start();
    let refused = bot.run(["service", "install"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains(&format!("already running (pid {}), and not by this unit", service.pid())),
        "{refused:#?}"
    );
    service.stop();
    assert!(notifications(&bot).is_empty());
    fs::write(bot.person().join("sys/broken"), "").unwrap();
    let failed = bot.run(["service", "install"]);
    assert_eq!(failed.code, 2);
    assert!(
        failed.stderr.contains("Job for it failed.") && failed.stderr.contains("ollim-bot service logs"),
        "{failed:#?}"
    );
    // Another person's unit of that name stays.
    fs::write(unit(&bot).1, "[Unit]\n").unwrap();
    let refused = bot.run(["service", "install"]);
    assert!(refused.code == 1 && refused.stderr.contains("is not the unit of this data folder"), "{refused:#?}");
    fs::write(bot.person().join("sys/no-bus"), "").unwrap();
    let refused = bot.run(["service", "status"]);
    // Only where systemd runs is the person's own manager of any use.
    let why = match std::path::Path::new("/run/systemd/system").is_dir() {
        true => ["No medium found", "enable-linger"],
        false => ["no systemd runs on this machine", "service install --print"],
    };
    assert!(refused.code == 2 && why.iter().all(|words| refused.stderr.contains(words)), "{refused:#?}");
    bot.write("config.yaml", "timezon: UTC\n");
    assert_eq!(bot.run(["service", "install"]).code, 1);
}

#[test]
fn what_is_not_running_is_started_by_its_unit() {
    let bot = bot(255);
    let by_hand = "warning: the service is not running, so nothing fires\nhint: start it: `ollim-bot run`\n";
    assert_eq!(bot.run(["status"]).stderr, by_hand);
    assert!(!bot.person().join("sys/told").exists(), "systemd is not asked of a unit that is not there");
    bot.ok(["service", "install"]);
    bot.ok(["service", "stop"]);
    for (state, hint) in [
        ("inactive", "start it: `ollim-bot service start`"),
        ("activating", "systemd is about to start it; how it goes: `ollim-bot service status`"),
    ] {
        fs::write(bot.person().join("sys/state"), state).unwrap();
        let commands: [&[&str]; 3] =
            [&["status"], &["pause"], &["reminder", "add", "--in", "1h", "-m", "Tea.", "--id", state]];
        for command in commands {
            let said = bot.run(command).stderr;
            assert!(said.ends_with(&format!("hint: {hint}\n")), "{command:?}: {said}");
        }
        let doctor = bot.run(["doctor"]).stdout;
        assert!(doctor.contains(&format!("-> {hint}\n")), "{doctor}");
    }
    // Where no manager answers, the file of a unit starts nothing.
    fs::remove_file(bot.person().join("sys/systemctl")).unwrap();
    let bot = bot.env("PATH", "/no/such/folder");
    assert_eq!(bot.run(["status"]).stderr, by_hand);
}

#[test]
fn without_systemd_the_unit_can_be_printed() {
    let bot = TestBot::new().env("PATH", "/no/such/folder");
    let refused = bot.run(["service", "install"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("there is no systemd here") && refused.stderr.contains("--print"), "{refused:#?}");
    let text = bot.ok(["service", "install", "--print"]);
    assert!(text.contains("\nType=notify-reload\n") && text.contains("\nRestart=on-failure\n"), "{text}");
    assert!(!bot.person().join(".config").exists());
}

#[test]
fn a_client_or_a_login_that_the_service_would_lack_is_said() {
    let notes = |bot: &TestBot| -> Vec<String> {
        let notes = bot.json(["service", "install", "--print"])["notes"].clone();
        notes.as_array().unwrap().iter().map(|note| note.as_str().unwrap().to_owned()).collect()
    };
    let bot = TestBot::new().env("OLLIM_AGENT_CLIENT", "auto").env("OLLIM_CLAUDE", "no-such-client");
    let said = notes(&bot);
    assert!(said[0].contains("`no-such-client` is in no folder") && said[1].contains("not logged in"), "{said:?}");
    // A variable of this shell is not set for the service.
    let bot = bot.env("ANTHROPIC_API_KEY", "sk-test-not-a-key");
    let said = notes(&bot);
    assert!(said[1].contains("known here only, by ANTHROPIC_API_KEY"), "{said:?}");
    assert!(!bot.ok(["service", "install", "--print"]).contains("sk-test"), "no secret in a unit");
    bot.secrets("ANTHROPIC_API_KEY=sk-test\n");
    assert_eq!(notes(&bot).len(), 1);
}

#[test]
fn doctor_knows_the_unit() {
    let bot = bot(255);
    let program = bot.person().join("sys/agent");
    client::executable(&program, "#!/bin/sh\necho 2.1.250\n");
    let bot = bot.env("OLLIM_CLAUDE", "agent");
    bot.ok(["service", "install"]);
    let unit_of = |bot: &TestBot| -> String {
        let found: Value = serde_json::from_str(&bot.run(["doctor", "--json"]).stdout).unwrap();
        let units = found["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == "unit");
        units.map(|finding| finding["detail"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join("; ")
    };
    assert!(unit_of(&bot).ends_with("ends when you log out, and starts when you log in"), "{}", unit_of(&bot));
    // The unit was installed where the client is not found.
    let (_, file) = unit(&bot);
    let text = fs::read_to_string(&file).unwrap();
    let sys = bot.person().join("sys").canonicalize().unwrap();
    fs::write(&file, text.replace(&format!("{}:", sys.display()), "")).unwrap();
    assert!(unit_of(&bot).contains("`agent` is found here, and not in the PATH of "), "{}", unit_of(&bot));
}

/// systemd itself finds no fault in the unit for its version.
#[test]
fn the_real_systemd_reads_the_unit() {
    let version = Command::new("systemctl").arg("--version").output();
    let Some(version) = version.ok().filter(|output| output.status.success()) else {
        // There is no systemd to ask. The unit's own tests check its lines.
        return;
    };
    let version = String::from_utf8(version.stdout).unwrap();
    let bot = TestBot::new();
    for system in [false, true] {
        let mut words = vec!["--json", "service", "install", "--print"];
        words.extend(system.then_some("--system"));
        let printed: Value = serde_json::from_str(&bot.ok(words)).unwrap();
        let file = bot.person().join(Path::new(printed["file"].as_str().unwrap()).file_name().unwrap());
        fs::write(&file, printed["text"].as_str().unwrap()).unwrap();
        let judged = Command::new("systemd-analyze")
            .args(if system { &["--man=no", "verify"][..] } else { &["--user", "--man=no", "verify"] })
            .arg(&file)
            .env("XDG_RUNTIME_DIR", bot.person())
            .output()
            .unwrap();
        // systemd also reports other units of the machine.
        let name = file.file_name().unwrap().to_str().unwrap();
        let said = String::from_utf8(judged.stderr).unwrap();
        let of_ours: Vec<&str> = said.lines().filter(|line| line.contains(name)).collect();
        assert!(of_ours.is_empty(), "{version}: {of_ours:#?}");
    }
}
