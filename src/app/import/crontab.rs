//! Parses the lines of a crontab as crond does: crontab(5) of vixie cron. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono_tz::Tz;

use super::words::{is_within_quotes, quoted};
use crate::definition::{Deliver, cron};

/// A line by which crond starts something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CronJob {
    /// Its line number, from 1.
    pub line: usize,
    /// Its text, unchanged.
    pub text: String,
    /// The comment above it, else the command, unchanged.
    pub comment: String,
    /// Five fields, or a nickname.
    pub cron: String,
    /// The zone of its times, if the crontab names one.
    pub zone: Option<Tz>,
    /// A line for bash that does what crond does with the command.
    pub command: String,
    /// What is delivered, corresponding to what crond mails.
    pub deliver: Deliver,
    /// The maximum delay by crond.
    pub jitter: Option<Duration>,
    /// Differences from crond, one sentence each.
    pub look: Vec<String>,
}

/// A line that cannot be imported: its number, the reason, and what to do.
pub(super) type RefusedLine = (usize, String, Option<String>);

/// Parses a crontab. `of_user`: its lines name the user they run as, and only those of this user are read.
pub(super) fn read(text: &str, of_user: Option<&str>) -> (Vec<CronJob>, Vec<RefusedLine>) {
    let (mut settings, mut comment) = (BTreeMap::new(), Vec::new());
    let (mut jobs, mut refused) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start_matches([' ', '\t']);
        let comment_of = line.strip_prefix('#').map(str::trim);
        // Not the names of the columns, as Debian writes them above the first line, nor a line that is switched off.
        let comment_of = comment_of.filter(|said| !said.starts_with("m h ") && job(said, of_user, &settings).is_err());
        if let Some(said) = comment_of.filter(|said| !said.is_empty()) {
            comment.push(said.to_owned());
            continue;
        }
        if line.starts_with('#') || line.trim().is_empty() {
            comment.clear();
            continue;
        }
        if let Some((name, value)) = setting(line) {
            settings.insert(name, value);
            comment.clear();
            continue;
        }
        match job(line, of_user, &settings) {
            Ok(job) => {
                let said = Some(comment.join(" ").trim().to_owned()).filter(|said| !said.is_empty());
                jobs.push(CronJob { line: number, comment: said.unwrap_or(job.comment), ..job });
            }
            Err((why, hint)) => refused.push((number, why, hint)),
        }
        comment.clear();
    }
    (jobs, refused)
}

/// Parses `NAME = value`, with or without quotes around either.
fn setting(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    let bare = |text: &str| {
        let text = text.trim();
        let within = |quote| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        within('"').or(within('\'')).unwrap_or(text).to_owned()
    };
    let name = bare(name);
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| (name, bare(value)))
}

type Why = (String, Option<String>);

fn job(line: &str, of_user: Option<&str>, settings: &BTreeMap<String, String>) -> Result<CronJob, Why> {
    let no = |why: &str, hint: &str| Err((why.to_owned(), Some(hint.to_owned())));
    let (times, rest) = after_words(line, if line.starts_with('@') { 1 } else { 5 });
    if times.eq_ignore_ascii_case("@reboot") {
        return no("`@reboot` is no time: the bot starts nothing because the machine did", "keep it in the crontab");
    }
    cron::check_cron(&times).map_err(|error| (format!("`{times}`: {error}"), Some(error.hint().to_owned())))?;
    let rest = match of_user {
        None => rest,
        Some(own) => {
            let (user, rest) = after_words(rest, 1);
            if user != own {
                return no(&format!("it runs as `{user}`, and the bot as `{own}`"), "keep it where it is");
            }
            rest
        }
    };
    if rest.trim().is_empty() {
        return no("there is no command", "correct the line");
    }
    let mut look = Vec::new();
    let command = command(rest, settings)?;
    let zone = zone(settings)?;
    let jitter = match settings.get("RANDOM_DELAY").map(|minutes| (minutes, minutes.parse::<u32>())) {
        None | Some((_, Ok(0))) => None,
        Some((_, Ok(minutes @ 1..=1440))) => Some(Duration::from_secs(u64::from(minutes) * 60)),
        Some((text, _)) => {
            look.push(format!("`RANDOM_DELAY={text}` is not taken over: it fires at the time itself"));
            None
        }
    };
    let deliver = match settings.get("MAILTO").map(String::as_str) {
        None => Deliver::Always,
        Some("") => Deliver::Never,
        Some(to) => {
            look.push(format!("what it prints goes to its channel, and not to {to} (`MAILTO`)"));
            Deliver::Always
        }
    };
    if leaves_something(rest) {
        look.push("what its command leaves running is ended with it; keep it in the foreground".to_owned());
    }
    let (text, comment) = (line.to_owned(), rest.trim().to_owned());
    Ok(CronJob { line: 0, text, comment, cron: times, zone, command, deliver, jitter, look })
}

/// Returns whether a command may leave processes that run on after its end.
fn leaves_something(command: &str) -> bool {
    let words = |c: char| !c.is_ascii_alphanumeric() && !"-_./".contains(c);
    let detaches = command.split(words).any(|word| ["nohup", "setsid", "disown"].contains(&word));
    let is_background = |at: usize| {
        let (before, after) = (command[..at].chars().next_back(), command[at + 1..].chars().next());
        // `&&`, `>&2` and `&>file` are other operators, and a letter follows the `&` of an address.
        !before.is_some_and(|c| "&<>|\\".contains(c)) && after.is_none_or(|c| c.is_whitespace() || ";)'\"".contains(c))
    };
    detaches || command.match_indices('&').any(|(at, _)| is_background(at))
}

/// Splits off the first words of a line.
fn after_words(line: &str, count: usize) -> (String, &str) {
    let (mut words, mut rest) = (Vec::new(), line);
    for _ in 0..count {
        rest = rest.trim_start_matches([' ', '\t']);
        let end = rest.find([' ', '\t']).unwrap_or(rest.len());
        words.push(&rest[..end]);
        rest = &rest[end..];
    }
    (words.join(" ").trim_end().to_owned(), rest.trim_start_matches([' ', '\t']))
}

fn zone(settings: &BTreeMap<String, String>) -> Result<Option<Tz>, Why> {
    let Some(name) = settings.get("CRON_TZ") else { return Ok(None) };
    match name.parse() {
        Ok(zone) => Ok(Some(zone)),
        Err(_) => {
            let hint = "write an IANA zone such as Europe/Berlin";
            Err((format!("`CRON_TZ={name}` is no time zone that is known"), Some(hint.into())))
        }
    }
}

/// Settings that crond does not export, or that the sandbox sets.
const NOT_EXPORTED: [&str; 6] = ["MAILTO", "MAILFROM", "CRON_TZ", "RANDOM_DELAY", "SHELL", "HOME"];

/// Returns a line for bash that runs the line in crond's shell, with its folder, settings and input.
fn command(line: &str, settings: &BTreeMap<String, String>) -> Result<String, Why> {
    let (line, input) = split_input(line)?;
    let shell = settings.get("SHELL").map_or("/bin/sh", String::as_str);
    let shell = match shell.rsplit('/').next() {
        Some(name @ ("sh" | "bash")) => name,
        _ => {
            let hint = "write its line for sh, or make a script of it";
            return Err((
                format!("its shell is {shell}, and a job's shell starts sh and bash only"),
                Some(hint.into()),
            ));
        }
    };
    if settings.contains_key("LOGNAME") || settings.contains_key("USER") {
        return Err(("`USER` and `LOGNAME` cannot be set".into(), Some("take them out of the crontab".into())));
    }
    let set: String = settings
        .iter()
        .filter(|(name, _)| !NOT_EXPORTED.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}={} ", quoted(value)))
        .collect();
    let home = settings.get("HOME").map_or("~".to_owned(), |home| quoted(home));
    let home_set = settings.get("HOME").map(|home| format!("HOME={} ", quoted(home))).unwrap_or_default();
    let input = input.map(|input| format!("printf %s {} | ", quoted(&input))).unwrap_or_default();
    Ok(format!("cd {home} && {input}{home_set}{set}{shell} -c {}", quoted(&line)))
}

/// Splits a line at the first `%` without a backslash before it. Returns the command, and the rest as crond passes it to the input.
fn split_input(text: &str) -> Result<(String, Option<String>), Why> {
    let between_quotes = |mark: &str| {
        let why = format!("it has `{mark}` between quotes, of which daemons make different things");
        Err((why, Some("put the line into a script".to_owned())))
    };
    let mut line = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if text[at + 1..].starts_with('%') => {
                if is_within_quotes(&text[..at]) {
                    return between_quotes("\\%");
                }
                line.push('%');
                letters.next();
            }
            '\\' => {
                line.push('\\');
                line.extend(letters.next().map(|(_, next)| next));
            }
            '%' if is_within_quotes(&text[..at]) => return between_quotes("%"),
            '%' => return Ok((line, Some(input(&text[at + 1..])))),
            letter => line.push(letter),
        }
    }
    Ok((line, None))
}

/// Turns each `%` into a newline, and adds one at the end.
fn input(text: &str) -> String {
    let mut input = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next_if_eq(&'%').is_some() => input.push('%'),
            '%' => input.push('\n'),
            letter => input.push(letter),
        }
    }
    if !input.is_empty() && !input.ends_with('\n') {
        input.push('\n');
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a crontab's jobs as `LINE: CRON | COMMAND | DELIVER`, and refused lines as `LINE: WHY`.
    fn lines(text: &str) -> Vec<String> {
        let (jobs, refused) = read(text, None);
        let job = |job: CronJob| {
            let zone = job.zone.map(|zone| format!(" {zone}")).unwrap_or_default();
            (job.line, format!("{}: {}{zone} | {} | {:?}", job.line, job.cron, job.command, job.deliver))
        };
        let refused = refused.into_iter().map(|(line, why, _)| (line, format!("{line}: {why}")));
        let mut all: Vec<(usize, String)> = jobs.into_iter().map(job).chain(refused).collect();
        all.sort();
        all.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn a_line_is_what_crond_makes_of_it() {
        for (line, expected) in [
            (
                "0 5 * * 1 tar -zcf /var/backups/home.tgz /home/",
                "0 5 * * 1 | cd ~ && sh -c 'tar -zcf /var/backups/home.tgz /home/'",
            ),
            ("  */5\t*  * * *   date", "*/5 * * * * | cd ~ && sh -c date"),
            ("@daily\t/usr/bin/certbot -q renew", "@daily | cd ~ && sh -c '/usr/bin/certbot -q renew'"),
            ("@Weekly x", "@Weekly | cd ~ && sh -c x"),
            ("30 8 * jan-mar mon,FRI echo it's", "30 8 * jan-mar mon,FRI | cd ~ && sh -c 'echo it'\\''s'"),
            ("0 0 * * * date +\\%F > x", "0 0 * * * | cd ~ && sh -c 'date +%F > x'"),
            ("0 0 * * * cat%one%two", "0 0 * * * | cd ~ && printf %s 'one\ntwo\n' | sh -c cat"),
            ("0 0 * * * cat%one%", "0 0 * * * | cd ~ && printf %s 'one\n' | sh -c cat"),
            ("0 0 * * * cat%a\\%b\\c", "0 0 * * * | cd ~ && printf %s 'a%b\\c\n' | sh -c cat"),
            ("0 0 * * * cat%", "0 0 * * * | cd ~ && printf %s '' | sh -c cat"),
            ("0 0 * * * echo \\\\ # no comment", "0 0 * * * | cd ~ && sh -c 'echo \\\\ # no comment'"),
            ("0 0 * * * X=1 env | grep X=", "0 0 * * * | cd ~ && sh -c 'X=1 env | grep X='"),
        ] {
            assert_eq!(lines(line), [format!("1: {expected} | Always")], "{line}");
        }
    }

    #[test]
    fn settings_count_for_the_lines_below_them() {
        let text = "# Nightly\n0 1 * * * a\nMAILTO=\"\"\nPATH = /usr/bin:/bin\nCRON_TZ=America/New_York\n0 2 * * * b\nMAILTO=me@example.org\n\
                    SHELL=/bin/bash\nHOME='/srv/my files'\n0 3 * * * c\nSHELL=/bin/zsh\n0 4 * * * d\nCRON_TZ=Mars\nSHELL=/bin/sh\n0 5 * * * e\n";
        assert_eq!(
            lines(text),
            [
                "2: 0 1 * * * | cd ~ && sh -c a | Always",
                "6: 0 2 * * * America/New_York | cd ~ && PATH=/usr/bin:/bin sh -c b | Never",
                "10: 0 3 * * * America/New_York | cd '/srv/my files' && HOME='/srv/my files' PATH=/usr/bin:/bin bash -c c | Always",
                "12: its shell is /bin/zsh, and a job's shell starts sh and bash only",
                "15: `CRON_TZ=Mars` is no time zone that is known",
            ]
        );
        let (jobs, _) = read(text, None);
        assert_eq!(jobs[0].comment, "Nightly");
        let (of_debian, _) = read("# Edit this file.\n# m h  dom mon dow   command\n0 1 * * * a\n", None);
        assert_eq!(of_debian[0].comment, "a");
        let (below_another, _) = read("#0 6 * * * old\n0 1 * * * new\n", None);
        assert_eq!(below_another[0].comment, "new");
        assert_eq!(jobs[2].look, ["what it prints goes to its channel, and not to me@example.org (`MAILTO`)"]);
    }

    #[test]
    fn what_cannot_be_kept_is_refused_with_its_reason() {
        for (line, why) in [
            ("@reboot x", "`@reboot` is no time"),
            ("@every_minute x", "`@every_minute`: "),
            ("0 0 30 2 * x", "no date ever matches it"),
            ("0~30 0 * * * x", "`0~30 0 * * *`: "),
            ("61 0 * * * x", "`61 0 * * *`: "),
            ("0 0 * * *", "there is no command"),
            ("0 0 * *", "`0 0 * *`: "),
            ("-0 0 * * * x", "`-0 0 * * *`: "),
            ("0 0 * * * date '+\\%F'", "`\\%` between quotes"),
            ("0 0 * * * date \"+\\%F\"", "`\\%` between quotes"),
            ("0 0 * * * echo \"100% of it\"", "`%` between quotes"),
            ("LOGNAME=x\n0 0 * * * y", "cannot be set"),
        ] {
            let found = lines(line);
            assert!(found.len() == 1 && found[0].contains(why), "{line}: {found:?}");
        }
    }

    #[test]
    fn what_may_run_on_after_its_command_is_seen() {
        for line in
            ["sleep 9 &", "(a; b) & wait", "sh -c 'a &'", "nohup a", "/bin/true; setsid a", "a & disown", "a &;"]
        {
            assert!(leaves_something(line), "{line}");
        }
        for line in
            ["a && b", "a > f 2>&1", "a &> f", "a >& f", "curl 'http://h/?a=1&b=2'", "echo a\\& b", "a |& b", "a"]
        {
            assert!(!leaves_something(line), "{line}");
        }
    }

    #[test]
    fn of_the_systems_crontab_ones_own_lines_are_read() {
        let text = "17 * * * *\troot\tcd / && run-parts --report /etc/cron.hourly\n0 6 * * 1 me  weekly report\n";
        let (jobs, refused) = read(text, Some("me"));
        assert_eq!(jobs.iter().map(|job| job.command.as_str()).collect::<Vec<_>>(), ["cd ~ && sh -c 'weekly report'"]);
        assert_eq!(refused[0].1, "it runs as `root`, and the bot as `me`");
    }
}
