//! Turns a timer and the service that it starts into a job: systemd.timer(5), systemd.service(5). Pure.

use std::time::Duration;

use chrono_tz::Tz;

use super::calendar;
use super::words::quoted;
use crate::definition::{OnMissed, When};

/// The job for a timer.
#[derive(Debug, PartialEq)]
pub(super) struct TimerJob {
    pub description: String,
    pub when: When,
    pub zone: Option<Tz>,
    pub command: String,
    pub on_missed: OnMissed,
    pub jitter: Option<Duration>,
    pub wake: bool,
    pub timeout: Option<Duration>,
    /// Differences from systemd, one sentence each.
    pub look: Vec<String>,
}

/// The reason why a unit cannot be imported, and what to do.
pub(super) type RefusalReason = (String, Option<String>);

/// The settings of a unit's file, in order: section, name, value.
pub(super) struct UnitFile(Vec<(String, String, String)>);

/// Settings that need no counterpart in a job.
const HARMLESS: [(&str, &[&str]); 3] = [
    ("Unit", &["Description", "Documentation", "After", "Before", "Wants", "DefaultDependencies"]),
    (
        "Timer",
        &[
            "OnCalendar",
            "OnUnitActiveSec",
            "Unit",
            "Persistent",
            "AccuracySec",
            "RandomizedDelaySec",
            "RemainAfterElapse",
            "WakeSystem",
        ],
    ),
    (
        "Service",
        &[
            "Type",
            "ExecStart",
            "Environment",
            "WorkingDirectory",
            "TimeoutStartSec",
            "StandardOutput",
            "StandardError",
            "SyslogIdentifier",
        ],
    ),
];

/// Settings without which the job would do something else, and what to do about each.
const NEEDED: [(&str, &str); 20] = [
    ("OnUnitInactiveSec", SPANS),
    ("OnClockChange", "keep the timer"),
    ("OnTimezoneChange", "keep the timer"),
    ("EnvironmentFile", "put its variables into `Environment=`"),
    ("PassEnvironment", "put its variables into `Environment=`"),
    ("User", "keep the timer: the bot runs as you"),
    ("Group", "keep the timer: the bot runs as you"),
    ("DynamicUser", "keep the timer: the bot runs as you"),
    ("ExecCondition", SCRIPT),
    ("ExecStartPre", SCRIPT),
    ("ExecStartPost", SCRIPT),
    ("ExecStop", SCRIPT),
    ("ExecStopPost", SCRIPT),
    ("ExecReload", SCRIPT),
    ("SuccessExitStatus", SCRIPT),
    ("StandardInput", SCRIPT),
    ("StandardInputText", SCRIPT),
    ("RootDirectory", "keep the timer"),
    ("Requires", "keep the timer"),
    ("Requisite", "keep the timer"),
];
/// Settings that fire once, at a time after the start of the machine, the manager or the timer.
const FROM_THE_START: [&str; 3] = ["OnBootSec", "OnStartupSec", "OnActiveSec"];
/// Maximum value of `jitter`.
const LONGEST_JITTER: Duration = Duration::from_secs(24 * 60 * 60);
const SPANS: &str = "a routine recurs by the clock: `ollim-bot routine add --every 15m --command '…'` is the nearest";
const SCRIPT: &str = "make one script of it all, and name that in `ExecStart=`";

impl UnitFile {
    /// Parses a unit's file.
    pub(super) fn read(text: &str) -> Self {
        let (mut section, mut settings) = (String::new(), Vec::<(String, String, String)>::new());
        // A comment between the lines of a continued value is not a part of it.
        let comment = |line: &&str| !line.trim_start().starts_with(['#', ';']);
        let joined = text.lines().filter(comment).collect::<Vec<_>>().join("\n").replace("\\\n", " ");
        for line in joined.lines().map(str::trim) {
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name.to_owned();
            } else if let Some((name, value)) = line.split_once('=') {
                let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
                // An empty value resets the previous values.
                if value.is_empty() {
                    settings.retain(|(of, known, _)| (of, known) != (&section, &name));
                } else {
                    settings.push((section.clone(), name, value));
                }
            }
        }
        Self(settings)
    }

    fn all<'a>(&'a self, section: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(of, known, _)| of == section && known == name).map(|(_, _, value)| value.as_str())
    }

    fn last<'a>(&'a self, section: &'a str, name: &'a str) -> Option<&'a str> {
        self.all(section, name).last()
    }

    fn is_on(&self, section: &str, name: &str) -> bool {
        self.last(section, name)
            .is_some_and(|value| ["1", "yes", "true", "on"].contains(&value.to_lowercase().as_str()))
    }

    /// Returns the name of the service in a timer's file.
    pub(super) fn service(&self) -> Option<&str> {
        self.last("Timer", "Unit")
    }

    /// Returns remarks on settings that are not imported.
    fn look(&self) -> impl Iterator<Item = String> {
        let known = |section: &str, name: &str| {
            section == "Install" || HARMLESS.iter().any(|(of, names)| *of == section && names.contains(&name))
        };
        let others = self.0.iter().filter(move |(section, name, _)| !known(section, name) && !name.starts_with("X-"));
        others.map(|(_, name, value)| format!("`{name}={value}` is not taken over"))
    }

    fn refused(&self) -> Option<RefusalReason> {
        self.0.iter().find_map(|(_, name, value)| {
            let hint = match NEEDED.iter().find(|(needed, _)| needed == name) {
                Some((_, hint)) => *hint,
                None if name.starts_with("Condition") || name.starts_with("Assert") => SCRIPT,
                None => return None,
            };
            Some((format!("it has `{name}={value}`"), Some(hint.to_owned())))
        })
    }
}

/// Converts a timer and its service to a job.
///
/// # Errors
/// The reason why that is not possible.
pub(super) fn job(timer: &UnitFile, service: &UnitFile) -> Result<TimerJob, RefusalReason> {
    if let Some(why) = timer.refused().or_else(|| service.refused()) {
        return Err(why);
    }
    let (when, zone) = when(timer)?;
    let kind = service.last("Service", "Type").unwrap_or("simple");
    if !["simple", "exec", "oneshot"].contains(&kind) {
        return Err((format!("its service has `Type={kind}`"), Some("keep the timer".into())));
    }
    // For other types it limits the start rather than the run.
    let limit = service.last("Service", "TimeoutStartSec").filter(|_| kind == "oneshot");
    let timeout = match limit {
        None | Some("infinity" | "0") => None,
        Some(text) => Some(span(text).ok_or_else(|| (format!("`TimeoutStartSec={text}` is no span of time"), None))?),
    };
    let description = [service, timer].into_iter().find_map(|unit| unit.last("Unit", "Description"));
    let mut look: Vec<String> = timer.look().chain(service.look()).collect();
    if let When::Every(span) = when {
        let span = humantime::format_duration(span);
        look.push(format!("it fires every {span} from a fixed moment on, and not {span} after its last start"));
    }
    let delay = timer.last("Timer", "RandomizedDelaySec").filter(|delay| span(delay) != Some(Duration::ZERO));
    let jitter = delay.and_then(span).filter(|delay| delay.subsec_nanos() == 0 && *delay <= LONGEST_JITTER);
    if let (Some(delay), None) = (delay, jitter) {
        look.push(format!("`RandomizedDelaySec={delay}` is not taken over: it fires at the time itself"));
    }
    let wake = timer.is_on("Timer", "WakeSystem");
    // A timer that counts from the start of the machine fires soon after it.
    let is_made_up = match when {
        When::Every(_) => FROM_THE_START.iter().any(|name| timer.last("Timer", name).is_some()),
        _ => timer.is_on("Timer", "Persistent"),
    };
    Ok(TimerJob {
        description: description.unwrap_or_default().to_owned(),
        when,
        zone,
        command: command(service)?,
        on_missed: if is_made_up { OnMissed::Latest } else { OnMissed::Skip },
        jitter,
        wake,
        timeout,
        look,
    })
}

/// Returns when the timer fires, by the calendar or a span after its last start, and the zone that it names.
fn when(timer: &UnitFile) -> Result<(When, Option<Tz>), RefusalReason> {
    let calendars: Vec<&str> = timer.all("Timer", "OnCalendar").collect();
    let spans: Vec<&str> = timer.all("Timer", "OnUnitActiveSec").collect();
    let first = FROM_THE_START.iter().find_map(|name| Some((name, timer.last("Timer", name)?)));
    match (&calendars[..], &spans[..], first) {
        ([calendar], [], None) => match calendar::cron(calendar) {
            Ok((cron, zone)) => Ok((When::Cron(cron), zone)),
            Err(why) => Err((format!("`OnCalendar={calendar}`: {why}"), None)),
        },
        ([], [text], _) => match span(text).filter(|span| span.as_secs() >= 60 && span.subsec_nanos() == 0) {
            Some(span) => Ok((When::Every(span), None)),
            None => Err((format!("`OnUnitActiveSec={text}` is no span of a minute or more"), None)),
        },
        ([_, _, ..], ..) => Err(("it has more than one `OnCalendar=`".into(), Some("make a timer of each".into()))),
        (_, [span, ..], _) => Err((format!("it has `OnUnitActiveSec={span}` beside another time"), Some(SPANS.into()))),
        (_, [], Some((name, span))) => Err((format!("it has `{name}={span}`"), Some(SPANS.into()))),
        ([], [], None) => Err(("it has no `OnCalendar=`".into(), None)),
    }
}

/// Parses `90`, `5min`, `1h 30min`.
fn span(text: &str) -> Option<Duration> {
    text.parse().map(Duration::from_secs).ok().or_else(|| humantime::parse_duration(text).ok())
}

/// Returns a line for bash that runs the lines of a service one after the other, in its folder and with its variables.
fn command(service: &UnitFile) -> Result<String, RefusalReason> {
    let folder = match service.last("Service", "WorkingDirectory") {
        None | Some("~") => "~".to_owned(),
        Some(folder) if folder.starts_with('/') && !folder.contains('%') => quoted(folder),
        Some(folder) => return Err((format!("`WorkingDirectory={folder}` is no plain path"), None)),
    };
    let mut set = String::new();
    for value in service.all("Service", "Environment") {
        for word in words(value)? {
            let (name, value) =
                word.split_once('=').ok_or_else(|| (format!("`Environment={word}` sets nothing"), None))?;
            if !is_variable(name) {
                return Err((format!("`Environment={word}` sets nothing that a shell can set"), None));
            }
            set.push_str(&format!("{name}={} ", quoted(value)));
        }
    }
    let mut lines = Vec::new();
    for line in service.all("Service", "ExecStart") {
        if line.starts_with(['@', '-', ':', '+', '!', '|']) {
            let hint = "write it without the sign, or keep the timer";
            return Err((format!("`ExecStart={line}` begins with a sign of systemd's"), Some(hint.into())));
        }
        let words: Vec<String> = words(line)?.iter().map(|word| quoted(word)).collect();
        if words.iter().any(|word| word == "';'" || word == "\\;") {
            return Err((format!("`ExecStart={line}` holds more than one command"), Some(SCRIPT.into())));
        }
        lines.push(format!("{set}{}", words.join(" ")));
    }
    if lines.is_empty() {
        return Err(("its service has no `ExecStart=`".into(), None));
    }
    Ok(format!("cd {folder} && {}", lines.join(" && ")))
}

fn is_variable(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Splits a value into unquoted words. Refuses specifiers and variables, which systemd would replace.
fn words(text: &str) -> Result<Vec<String>, RefusalReason> {
    let (mut words, mut word, mut open): (Vec<String>, Option<String>, Option<char>) = (Vec::new(), None, None);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (open, letter) {
            (None, ' ' | '\t') => words.extend(word.take()),
            (None, '\'' | '"') if word.is_none() => (open, word) = (Some(letter), Some(String::new())),
            (None, '\'' | '"') => {
                return Err((format!("it has a quotation within a word in `{text}`"), Some(SCRIPT.into())));
            }
            (Some(quote), letter) if quote == letter => open = None,
            (_, '%' | '$') if letters.next_if_eq(&letter).is_some() => word.get_or_insert_default().push(letter),
            (_, '%' | '$') => {
                let why = format!("it has `{letter}` in `{text}`, which systemd replaces");
                return Err((why, Some("write what it stands for".into())));
            }
            (_, '\\') => match letters.next() {
                Some(plain @ ('\\' | '\'' | '"' | ' ')) => word.get_or_insert_default().push(plain),
                _ => {
                    return Err((
                        format!("it has a backslash in `{text}` that is not understood"),
                        Some(SCRIPT.into()),
                    ));
                }
            },
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    if open.is_some() {
        return Err((format!("a quotation is not closed in `{text}`"), None));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(timer: &str, service: &str) -> Result<TimerJob, RefusalReason> {
        job(&UnitFile::read(&format!("[Timer]\n{timer}")), &UnitFile::read(&format!("[Service]\n{service}")))
    }

    #[test]
    fn a_timer_and_its_service_are_a_job() {
        let timer = "[Unit]\nDescription=Daily clean\n\n[Timer]\n# each day\nOnCalendar=\nOnCalendar=*-*-* 6,18:00\nPersistent=true\n\
                     RandomizedDelaySec=12h\nAccuracySec=1min\n\n[Install]\nWantedBy=timers.target\n";
        let service = "[Unit]\nDescription=Clean\nAfter=network-online.target\n[Service]\nType=oneshot\nEnvironment=\"A=1 2\" B=3\n\
                       WorkingDirectory=/srv/x\nExecStart=/usr/bin/clean --all \\\n  'a b' 100%%\nExecStart=/bin/sh -c 'echo $$HOME'\n\
                       TimeoutStartSec=5min\nNice=19\n";
        let job = job(&UnitFile::read(timer), &UnitFile::read(service)).unwrap();
        assert_eq!(
            job,
            TimerJob {
                description: "Clean".into(),
                when: When::Cron("0 6,18 * * *".into()),
                zone: None,
                command:
                    "cd /srv/x && A='1 2' B=3 /usr/bin/clean --all 'a b' 100% && A='1 2' B=3 /bin/sh -c 'echo $HOME'"
                        .into(),
                on_missed: OnMissed::Latest,
                jitter: Some(Duration::from_secs(12 * 3600)),
                wake: false,
                timeout: Some(Duration::from_secs(300)),
                look: vec!["`Nice=19` is not taken over".into()],
            }
        );
        let plain = of("OnCalendar=daily", "ExecStart=/usr/bin/true").unwrap();
        assert_eq!((plain.command.as_str(), plain.on_missed), ("cd ~ && /usr/bin/true", OnMissed::Skip));
        let late = of("OnCalendar=daily\nRandomizedDelaySec=2d\nWakeSystem=yes", "ExecStart=/usr/bin/true").unwrap();
        assert_eq!((late.jitter, late.wake), (None, true));
        assert!(late.look[0].starts_with("`RandomizedDelaySec=2d` is not taken over"), "{:?}", late.look);
        assert_eq!(late.look.len(), 1, "{:?}", late.look);
    }

    #[test]
    fn a_span_after_the_last_start_is_a_span() {
        let every = |minutes: u64| When::Every(Duration::from_secs(minutes * 60));
        for (timer, when, on_missed) in [
            ("OnBootSec=15min\nOnUnitActiveSec=1d", every(24 * 60), OnMissed::Latest),
            ("OnActiveSec=0\nOnUnitActiveSec=1h 30min", every(90), OnMissed::Latest),
            ("OnUnitActiveSec=600", every(10), OnMissed::Skip),
        ] {
            let job = of(timer, "ExecStart=/usr/bin/true").unwrap();
            assert_eq!((job.when, job.on_missed), (when, on_missed), "{timer}");
            assert!(job.look.iter().any(|said| said.contains("from a fixed moment on")), "{:?}", job.look);
        }
    }

    #[test]
    fn what_cannot_be_kept_is_refused_with_its_reason() {
        const DAILY: &str = "OnCalendar=daily";
        const TRUE: &str = "ExecStart=/usr/bin/true";
        for (timer, service, why) in [
            ("OnBootSec=15min", TRUE, "`OnBootSec=15min`"),
            ("OnUnitInactiveSec=1d", TRUE, "`OnUnitInactiveSec=1d`"),
            ("OnUnitActiveSec=30s", TRUE, "no span of a minute or more"),
            ("OnCalendar=daily\nOnUnitActiveSec=1h", TRUE, "`OnUnitActiveSec=1h`"),
            ("OnCalendar=daily\nOnBootSec=1h", TRUE, "`OnBootSec=1h`"),
            ("OnCalendar=daily\nOnCalendar=12:00", TRUE, "more than one `OnCalendar=`"),
            ("OnCalendar=Mon *-*-01", TRUE, "`OnCalendar=Mon *-*-01`: it names days"),
            ("", TRUE, "no `OnCalendar=`"),
            (DAILY, "", "no `ExecStart=`"),
            (DAILY, "Type=forking\nExecStart=/usr/bin/true", "`Type=forking`"),
            (DAILY, "User=root\nExecStart=/usr/bin/true", "`User=root`"),
            (DAILY, "EnvironmentFile=/x\nExecStart=/usr/bin/true", "`EnvironmentFile=/x`"),
            (DAILY, "ExecStartPre=/x\nExecStart=/usr/bin/true", "`ExecStartPre=/x`"),
            (DAILY, "ExecStart=-/usr/bin/true", "a sign of systemd's"),
            (DAILY, "ExecStart=/usr/bin/echo %h", "`%` in"),
            (DAILY, "ExecStart=/usr/bin/echo $HOME", "`$` in"),
            (DAILY, "ExecStart=/usr/bin/echo \\x20", "a backslash in"),
            (DAILY, "ExecStart=/usr/bin/echo 'x", "not closed"),
            (DAILY, "ExecStart=/bin/a ; /bin/b", "more than one command"),
            (DAILY, "WorkingDirectory=%h/x\nExecStart=/usr/bin/true", "no plain path"),
            (DAILY, "Type=oneshot\nTimeoutStartSec=soon\nExecStart=/usr/bin/true", "no span of time"),
            (DAILY, "ExecStart=/usr/bin/rsync --rsh=\"ssh -p 22\" /a /b", "a quotation within a word"),
            (DAILY, "# old \\\nUser=root\nExecStart=/usr/bin/true", "`User=root`"),
            (DAILY, "Environment=a;b=1\nExecStart=/usr/bin/true", "nothing that a shell can set"),
            (DAILY, "Environment=\"A B=1\"\nExecStart=/usr/bin/true", "nothing that a shell can set"),
        ] {
            let (found, _) = of(timer, service).unwrap_err();
            assert!(found.contains(why), "{timer} {service}: {found}");
        }
        let (found, _) = job(
            &UnitFile::read("[Unit]\nConditionACPower=true\n[Timer]\nOnCalendar=daily"),
            &UnitFile::read("[Service]\nExecStart=/usr/bin/true"),
        )
        .unwrap_err();
        assert_eq!(found, "it has `ConditionACPower=true`");
    }
}
