//! Generates the text of the unit.

use std::path::Path;

use crate::refusal::Refusal;

/// The version to assume if it is unknown.
pub(super) const NEWEST: u32 = u32::MAX;
/// The version that introduced `Type=notify-reload`.
const NOTIFY_RELOAD: u32 = 253;

/// The input for a unit.
pub(super) struct UnitFacts<'a> {
    /// Our own program.
    pub(super) program: &'a Path,
    /// The data folder.
    pub(super) home: &'a Path,
    /// The service's environment, including `PATH`.
    pub(super) variables: &'a [(String, String)],
    /// The user that the machine's manager runs it as; `None` for the person's own manager.
    pub(super) user: Option<String>,
    /// The version of systemd.
    pub(super) version: u32,
    /// Whether a job wakes the machine (`wake`).
    pub(super) wakes: bool,
}

/// Hardening for both managers. It needs no mount namespace, which a person's own manager may not be able to create.
///
/// Left out on purpose: `RestrictSUIDSGID` (it removes `openat2`, by which the sandbox opens what it grants; tried with systemd 252: no
/// client could be started), `MemoryDenyWriteExecute` (the agent client has a JIT compiler), `RestrictNamespaces` and `SystemCallFilter`
/// (programs of jobs may need what they remove), `ProtectControlGroups` (each run has its own control group).
const HARDENING: &str = "NoNewPrivileges=yes
RestrictRealtime=yes
LockPersonality=yes
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
UMask=0077
";

/// Further hardening for the machine's manager. Mounts over /proc are left out: some containers refuse them, and
/// without capabilities nobody can write there anyway.
const SYSTEM_HARDENING: &str = "ProtectSystem=full
ProtectKernelModules=yes
ProtectHostname=yes
PrivateTmp=yes
PrivateDevices=yes
";

/// No privileges, for a service in which no job wakes the machine.
const UNPRIVILEGED: &str = "ProtectClock=yes
CapabilityBoundingSet=
";

/// The capability that the kernel requires for setting a wake-up alarm. `ProtectClock` would remove it.
const WAKING: &str = "# A job wakes the machine.
CapabilityBoundingSet=CAP_WAKE_ALARM
AmbientCapabilities=CAP_WAKE_ALARM
";

/// Returns the text of the unit.
pub(super) fn unit(facts: &UnitFacts) -> Result<String, Refusal> {
    let UnitFacts { program, home, variables, user, version, wakes } = facts;
    let path = |path: &Path| path.to_str().map(quoted).ok_or_else(|| not_text(path));
    let (program, home_word) = (path(program)?, path(home)?);
    let exec = |word: &str| word.replace('$', "$$");
    let kind = if *version >= NOTIFY_RELOAD {
        "Type=notify-reload\n"
    } else {
        // This type waits for READY=1, too, and a reload sends the same signal.
        "Type=notify\nExecReload=/bin/kill -HUP $MAINPID\n"
    };
    let mut environment = String::new();
    for (name, value) in *variables {
        if value.contains(['\n', '\r']) {
            return Err(Refusal::user(format!("the variable {name} has more than one line, which a unit cannot hold"))
                .hint("unset it, or put the setting into config.yaml"));
        }
        environment += &format!("Environment={}\n", quoted(&format!("{name}={value}")));
    }
    let (order, user, hardening, wanted) = match user {
        Some(user) => (
            "Wants=network-online.target\nAfter=network-online.target time-sync.target\n",
            format!("User={user}\n"),
            [SYSTEM_HARDENING, if *wakes { WAKING } else { UNPRIVILEGED }].concat(),
            "multi-user.target",
        ),
        None => ("", String::new(), String::new(), "default.target"),
    };
    Ok(format!(
        "{HEAD}{}
[Unit]
Description=ollim-bot on {}
{order}# It is tried again for as long as it takes.
StartLimitIntervalSec=0

[Service]
{kind}ExecStart={} --home {} run
{environment}{user}Restart=on-failure
RestartSec=10
TimeoutStartSec=180
WatchdogSec=60
# The service itself ends its jobs, after their grace; what is left then is killed.
KillMode=mixed
# Each run has a control group of its own; a job that takes too much memory does not end the service.
Delegate=yes
OOMPolicy=continue
{HARDENING}{hardening}
[Install]
WantedBy={wanted}
",
        home.display(),
        home.display().to_string().replace('%', "%%"),
        exec(&program),
        exec(&home_word),
    ))
}

/// The first line of a unit, which the path of the data folder follows.
const HEAD: &str =
    "# Written by `ollim-bot service install`, which writes it anew: for changes, `systemctl edit`.\n# Data folder: ";

/// Whether [`unit`] wrote this unit for this data folder.
pub(super) fn is_ours(text: &str, home: &Path) -> bool {
    text.strip_prefix(HEAD).and_then(|rest| rest.lines().next()) == home.to_str()
}

/// Returns the `PATH` that a unit of ours sets.
pub(super) fn path_in(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix("Environment=\"PATH=")?.strip_suffix('"'))?;
    Some(line.replace("%%", "%").replace("\\\"", "\"").replace("\\\\", "\\"))
}

/// Quotes a word for a unit: `%` begins a specifier there, and a backslash escapes.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

fn not_text(path: &Path) -> Refusal {
    Refusal::user(format!("{} is not UTF-8, which a unit cannot hold", path.display())).hint("give it another name")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(home: &str, user: Option<&str>, version: u32) -> String {
        let variables = [("PATH".to_owned(), "/usr/bin:/opt/50%/\"x\"".to_owned())];
        let program = Path::new("/opt/ollim bot/ollim-bot");
        let user = user.map(str::to_owned);
        let wakes = home == "/wakes";
        unit(&UnitFacts { program, home: Path::new(home), variables: &variables, user, version, wakes }).unwrap()
    }

    #[test]
    fn what_a_unit_gives_a_meaning_to_is_escaped() {
        let text = made("/srv/a $b%c", None, 253);
        let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap();
        assert_eq!(line("ExecStart="), r#"ExecStart="/opt/ollim bot/ollim-bot" --home "/srv/a $$b%%c" run"#);
        assert_eq!(line("Environment="), r#"Environment="PATH=/usr/bin:/opt/50%%/\"x\"""#);
        assert_eq!(path_in(&text).unwrap(), "/usr/bin:/opt/50%/\"x\"");
        assert!(is_ours(&text, Path::new("/srv/a $b%c")) && !is_ours(&text, Path::new("/srv/a")));
        let lines = [("TZ".to_owned(), "a\nExecStartPre=/bin/x".to_owned())];
        let (program, home) = (Path::new("/x"), Path::new("/h"));
        let facts = UnitFacts { program, home, variables: &lines, user: None, version: 1, wakes: false };
        assert!(unit(&facts).unwrap_err().to_string().contains("more than one line"));
    }

    /// The package's unit is the same, except for facts of the machine that it is installed on.
    #[test]
    fn the_unit_of_the_package_says_the_same() {
        let own = unit(&UnitFacts {
            program: Path::new("/usr/bin/ollim-bot"),
            home: Path::new("/h"),
            variables: &[],
            user: None,
            version: 252,
            wakes: false,
        });
        let settings = |text: &str| {
            let differs = ["#", "ExecStart=", "Description="];
            let lines = text.lines().filter(|line| !differs.iter().any(|start| line.starts_with(start)));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let package = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/ollim-bot.service");
        assert_eq!(settings(&std::fs::read_to_string(package).unwrap()), settings(&own.unwrap()));
    }

    #[test]
    fn an_older_systemd_gets_the_type_that_it_knows() {
        assert!(made("/h", None, 253).contains("\nType=notify-reload\n"));
        let older = made("/h", None, 252);
        assert!(
            older.contains("\nType=notify\nExecReload=/bin/kill -HUP $MAINPID\n") && !older.contains("notify-reload")
        );
    }

    #[test]
    fn the_machines_has_the_privilege_to_wake_where_a_job_does() {
        let capability = "CapabilityBoundingSet=CAP_WAKE_ALARM\nAmbientCapabilities=CAP_WAKE_ALARM\n";
        let (waking, other, own) =
            (made("/wakes", Some("ada"), 255), made("/h", Some("ada"), 255), made("/wakes", None, 255));
        assert!(waking.contains(capability) && !waking.contains("ProtectClock"), "{waking}");
        assert!(other.contains("ProtectClock=yes\nCapabilityBoundingSet=\n") && !other.contains("Ambient"), "{other}");
        // Not every manager of a person can pass the capability on, and one that cannot does not start the unit.
        assert!(!own.contains("CAP_WAKE_ALARM"), "{own}");
    }

    #[test]
    fn only_the_machines_has_a_user_and_mounts() {
        let (own, system) = (made("/h", None, 255), made("/h", Some("ada"), 255));
        assert!(!own.contains("User=") && !own.contains("Protect") && own.contains("WantedBy=default.target"));
        assert!(system.contains("\nUser=ada\n") && system.contains("WantedBy=multi-user.target"));
        for text in [own, system] {
            assert!(
                text.contains("NoNewPrivileges=yes")
                    && text.contains("Delegate=yes")
                    && text.contains("KillMode=mixed")
            );
            // These would break the agent client, the sandbox of jobs, or their control groups.
            for word in [
                "RestrictSUIDSGID",
                "MemoryDenyWriteExecute",
                "RestrictNamespaces",
                "SystemCallFilter",
                "ProtectControlGroups",
            ] {
                assert!(!text.contains(word), "{word}");
            }
        }
    }
}
