//! A data folder with commented settings and samples. Nothing that is there is ever overwritten.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::App;
use super::refusals::cannot;
use crate::config::{Config, commented};
use crate::definition::frontmatter::yaml_text;
use crate::definition::quoted;
use crate::definition::samples::{FAR_OFF, samples};
use crate::home::Home;
use crate::refusal::Refusal;

/// How long after the folder was made the sample reminder fires: soon enough to be seen, late enough to be read.
const SOON: TimeDelta = TimeDelta::seconds(15);

/// `state/` is the program's own, and `.env` is secret.
const IGNORED: &str = "# Not for git: the program's own state, and secrets.\n/state/\n/.env\n";

/// What a data folder is made with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitOptions {
    /// Also where there is something; what is there stays as it is.
    pub force: bool,
    /// Without samples.
    pub bare: bool,
    /// The zone that is written into the settings; `None`: none is.
    pub timezone: Option<String>,
    /// The topic of an ntfy server that messages go to: `https://ntfy.sh/my-topic`; `None`: they go to the terminal.
    pub ntfy: Option<String>,
    /// A service by which the person talks with the bot; `None`: there is none.
    pub talk: Option<Talk>,
}

/// A service by which the person talks with the bot. Its token is a secret, and stands elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Talk {
    /// Which one: `discord` or `telegram`, the kind of the channel and its name.
    pub kind: &'static str,
    /// The number of the person, where the service does not say whose the bot is.
    pub owner: Option<i64>,
    /// The address of a server of one's own; `None`: the service's.
    pub api: Option<String>,
}

/// What `config.yaml` says of the channels; `None`: nothing. `answers`: a topic to which buttons of notifications publish.
fn channels(options: &InitOptions, answers: &str) -> Option<String> {
    let phone = |topic: &String| {
        let url = yaml_text(&with_scheme(topic));
        ("phone", format!("phone: {{ kind: ntfy, url: {url}, answers: {answers} }}"))
    };
    let talk = |Talk { kind, owner, api }: &Talk| {
        let owner = owner.map(|owner| format!(", owner: {owner}")).unwrap_or_default();
        let api = api.as_ref().map(|api| format!(", api: {}", yaml_text(api))).unwrap_or_default();
        (*kind, format!("{kind}: {{ kind: {kind}{owner}{api} }}"))
    };
    let all: Vec<_> = options.ntfy.iter().map(phone).chain(options.talk.iter().map(talk)).collect();
    let (default, _) = all.last()?;
    let lines: String = all.iter().map(|(_, line)| format!("  {line}\n")).collect();
    Some(format!("channels:\n{lines}default_channel: {default}\n"))
}

/// `ntfy.sh/mine` as `https://ntfy.sh/mine`: so people write an address.
fn with_scheme(topic: &str) -> String {
    let names_a_host = topic.split_once('/').is_some_and(|(host, _)| host.contains('.'));
    if names_a_host { format!("https://{topic}") } else { topic.to_owned() }
}

/// Whether messages can be sent to such a topic.
///
/// # Errors
/// What an address of a topic looks like.
pub(super) fn check_topic(topic: &str) -> Result<(), Refusal> {
    let options = InitOptions { ntfy: Some(topic.to_owned()), ..InitOptions::default() };
    let settings = channels(&options, "another").unwrap_or_default();
    match Config::parse(&settings, &BTreeMap::new()) {
        Ok(_) => Ok(()),
        Err(_) => Err(Refusal::user(format!("{} is no topic of an ntfy server", quoted(topic)))
            .hint("write it like `https://ntfy.sh/a-topic-that-nobody-guesses`")),
    }
}

/// A topic of ntfy.sh that nobody guesses.
///
/// # Errors
/// When the system gives no random numbers.
pub(super) fn new_topic() -> Result<String, Refusal> {
    Ok(format!("https://ntfy.sh/ollim-{}", new_word()?))
}

/// Sixteen letters and digits that nobody guesses.
///
/// # Errors
/// When the system gives no random numbers.
pub(super) fn new_word() -> Result<String, Refusal> {
    let number = getrandom::u64().map_err(|error| Refusal::environment(format!("no random numbers: {error}")))?;
    Ok(format!("{number:016x}"))
}

/// Makes the data folder and names the files that it made.
pub(super) fn init(options: &InitOptions, app: &App) -> Result<Vec<PathBuf>, Refusal> {
    may_init(options, app)?;
    let zone = match zone(options)? {
        Some(zone) => zone,
        None => app.zone()?,
    };
    make(&app.home, options, app.now(), zone)
}

/// Whether it can be made so.
pub(super) fn may_init(options: &InitOptions, app: &App) -> Result<(), Refusal> {
    let root = app.home.root();
    let taken = fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some());
    if taken && !options.force {
        return Err(Refusal::user(format!("{} is there already and has something in it", root.display()))
            .hint("`ollim-bot init --force` adds what is missing; what is there stays as it is"));
    }
    options.ntfy.as_deref().map(check_topic).transpose()?;
    if (options.ntfy.is_some() || options.talk.is_some()) && app.home.config_file().exists() {
        return Err(Refusal::user(format!("{} is there, and stays as it is", app.home.config_file().display()))
            .hint("set `channels:` in it, and leave out `--ntfy`"));
    }
    if zone(options)?.is_some() && app.home.config_file().exists() {
        return Err(Refusal::user(format!("{} is there, and stays as it is", app.home.config_file().display()))
            .hint("set `timezone:` in it, and leave out `--timezone`"));
    }
    Ok(())
}

fn zone(options: &InitOptions) -> Result<Option<Tz>, Refusal> {
    let Some(name) = &options.timezone else { return Ok(None) };
    let zone = name.parse().map_err(|_| {
        Refusal::user(format!("there is no time zone {}", quoted(name))).hint("write it like `Europe/Berlin`, or `UTC`")
    })?;
    Ok(Some(zone))
}

/// Makes whatever is missing, samples too, and names the files it made, relative to the folder.
///
/// # Errors
/// When the disk says no.
pub fn make_home(home: &Home, now: DateTime<Utc>, zone: Tz) -> Result<Vec<PathBuf>, Refusal> {
    make(home, &InitOptions::default(), now, zone)
}

fn make(home: &Home, options: &InitOptions, now: DateTime<Utc>, zone: Tz) -> Result<Vec<PathBuf>, Refusal> {
    make_folders(home)?;
    let mut settings = commented();
    if let Some(name) = &options.timezone {
        settings += &format!("\ntimezone: {name}\n");
    }
    if let Some(channels) = channels(options, &format!("ollim-{}", new_word()?)) {
        settings += &format!("\n{channels}");
    }
    let mut files = vec![(home.config_file(), settings), (home.root().join(".gitignore"), IGNORED.to_owned())];
    for (path, text) in samples().iter().filter(|_| !options.bare) {
        files.push((home.root().join(path), soon(text, now, zone)));
    }
    let mut made = Vec::new();
    for (path, text) in files {
        // Settings may hold what others are not to read: a topic is a password.
        let mode = if path == home.config_file() { 0o600 } else { 0o644 };
        if write_new(&path, &text, mode).map_err(|error| cannot("write", &path, &error))? {
            made.push(home.relative(&path).to_owned());
        }
    }
    Ok(made)
}

/// Makes the folders that the service needs, private to the person.
///
/// # Errors
/// When the disk says no.
pub fn make_folders(home: &Home) -> Result<(), Refusal> {
    for path in folders(home) {
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(|error| cannot("make", &path, &error))?;
    }
    Ok(())
}

/// The folders that the service needs.
pub(super) fn folders(home: &Home) -> [PathBuf; 9] {
    [
        home.root().to_owned(),
        home.routines(),
        home.reminders(),
        home.webhooks(),
        home.bin(),
        home.work(),
        home.tools(),
        home.state(),
        home.runs(),
    ]
}

/// Whether it was written: a file that is there stays.
fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<bool> {
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error),
    };
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(true)
}

/// The sample reminder's far-off time becomes one that comes at once.
fn soon(text: &str, now: DateTime<Utc>, zone: Tz) -> String {
    let at = (now + SOON).with_timezone(&zone).to_rfc3339_opts(chrono::SecondsFormat::Secs, false);
    let line = |line: &str| {
        if line.starts_with("run_at:") && line.contains(FAR_OFF) {
            format!("run_at: \"{at}\"")
        } else {
            line.to_owned()
        }
    };
    let mut lines = text.split('\n').map(line).collect::<Vec<_>>().join("\n");
    if !lines.ends_with('\n') {
        lines.push('\n');
    }
    lines
}
