//! Creates a data folder with commented settings and samples. Never overwrites an existing file.

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
use crate::definition::samples::{FAR_OFF, samples};
use crate::definition::{Kind, is_missing, quoted};
use crate::home::Home;
use crate::refusal::Refusal;

/// Delay from the creation of the folder until the sample reminder fires: short enough to see it, long enough to read about it.
const SOON: TimeDelta = TimeDelta::seconds(15);

/// The `.gitignore` of a data folder: `state/` is private to the program, and `.env` is secret.
const IGNORED: &str = "# Not for git: the program's own state, and secrets.\n/state/\n/.env\n";

/// Options for creating a data folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitOptions {
    /// Whether to continue if the folder is not empty. Existing files stay as they are.
    pub force: bool,
    /// Whether to leave out the samples.
    pub bare: bool,
    /// The time zone to write to the settings; `None` for none.
    pub timezone: Option<String>,
    /// The ntfy topic for messages: `https://ntfy.sh/my-topic`; `None` for messages in the terminal.
    pub ntfy: Option<String>,
    /// The service by which the person talks with the bot, if any.
    pub talk: Option<ChatService>,
}

/// A service by which the person talks with the bot. Its token is a secret, and is stored elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatService {
    /// The kind of the channel, which is also its name: `discord` or `telegram`.
    pub kind: &'static str,
    /// The person's user number, if the service does not say who owns the bot.
    pub owner: Option<i64>,
    /// The address of the person's own server; `None` for the service's.
    pub api: Option<String>,
}

/// Returns the channels for `config.yaml`; `None` for none. `answers`: the topic to which buttons of notifications publish.
fn channels(options: &InitOptions, answers: &str) -> Option<String> {
    let phone = |topic: &String| {
        let url = yaml_text(&with_scheme(topic));
        ("phone", format!("phone: {{ kind: ntfy, url: {url}, answers: {answers} }}"))
    };
    let talk = |ChatService { kind, owner, api }: &ChatService| {
        let owner = owner.map(|owner| format!(", owner: {owner}")).unwrap_or_default();
        let api = api.as_ref().map(|api| format!(", api: {}", yaml_text(api))).unwrap_or_default();
        (*kind, format!("{kind}: {{ kind: {kind}{owner}{api} }}"))
    };
    let all: Vec<_> = options.ntfy.iter().map(phone).chain(options.talk.iter().map(talk)).collect();
    let (default, _) = all.last()?;
    let lines: String = all.iter().map(|(_, line)| format!("  {line}\n")).collect();
    Some(format!("channels:\n{lines}default_channel: {default}\n"))
}

/// Turns `ntfy.sh/mine` into `https://ntfy.sh/mine`, since people write addresses without a scheme.
fn with_scheme(topic: &str) -> String {
    let names_a_host = topic.split_once('/').is_some_and(|(host, _)| host.contains('.'));
    if names_a_host { format!("https://{topic}") } else { topic.to_owned() }
}

/// Checks that messages can be sent to a topic.
///
/// # Errors
/// If the address is not that of a topic. The hint shows an example.
pub(super) fn check_topic(topic: &str) -> Result<(), Refusal> {
    let options = InitOptions { ntfy: Some(topic.to_owned()), ..InitOptions::default() };
    let settings = channels(&options, "another").unwrap_or_default();
    match Config::parse(&settings, &BTreeMap::new()) {
        Ok(_) => Ok(()),
        Err(_) => Err(Refusal::user(format!("{} is no topic of an ntfy server", quoted(topic)))
            .hint("write it like `https://ntfy.sh/a-topic-that-nobody-guesses`")),
    }
}

/// Returns a random topic of ntfy.sh.
///
/// # Errors
/// If the system has no random numbers.
pub(super) fn new_topic() -> Result<String, Refusal> {
    Ok(format!("https://ntfy.sh/ollim-{}", new_word()?))
}

/// Returns sixteen random hexadecimal digits.
///
/// # Errors
/// If the system has no random numbers.
pub(super) fn new_word() -> Result<String, Refusal> {
    let number = getrandom::u64().map_err(|error| Refusal::environment(format!("no random numbers: {error}")))?;
    Ok(format!("{number:016x}"))
}

/// Creates the data folder and returns the files that it created.
pub(super) fn init(options: &InitOptions, app: &App) -> Result<Vec<PathBuf>, Refusal> {
    may_init(options, app)?;
    let zone = match zone(options)? {
        Some(zone) => zone,
        None => app.zone()?,
    };
    make(&app.home, options, app.now(), zone)
}

/// Checks that the data folder can be created with these options.
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
            .hint("set `channels:` in it, and leave out `--ntfy` and `--talk`"));
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

/// Creates the missing files, samples included, and returns their paths relative to the folder.
///
/// # Errors
/// If a file or folder cannot be written.
pub fn make_home(home: &Home, now: DateTime<Utc>, zone: Tz) -> Result<Vec<PathBuf>, Refusal> {
    make(home, &InitOptions::default(), now, zone)
}

fn make(home: &Home, options: &InitOptions, now: DateTime<Utc>, zone: Tz) -> Result<Vec<PathBuf>, Refusal> {
    // A sample reminder comes once: in a folder that is in use it would fire again.
    let is_new = !home.state().exists();
    remake_folders(home)?;
    let mut settings = commented();
    if let Some(name) = &options.timezone {
        settings += &format!("\ntimezone: {name}\n");
    }
    if let Some(channels) = channels(options, &format!("ollim-{}", new_word()?)) {
        settings += &format!("\n{channels}");
    }
    let mut files = vec![(home.config_file(), settings), (home.root().join(".gitignore"), IGNORED.to_owned())];
    let comes_again = |path: &str| !Path::new(path).starts_with("reminders");
    for (path, text) in samples().iter().filter(|(path, _)| !options.bare && (is_new || comes_again(path))) {
        files.push((home.root().join(path), soon(text, now, zone)));
    }
    let mut made = Vec::new();
    for (path, text) in files {
        // Settings can be confidential: a topic is as good as a password.
        let mode = if path == home.config_file() { 0o600 } else { 0o644 };
        if write_new(&path, &text, mode).map_err(|error| cannot("write", &path, &error))? {
            made.push(home.relative(&path).to_owned());
        }
    }
    Ok(made)
}

/// Creates the folders that the service needs, accessible to the person alone. A folder of definitions that has gone missing
/// stays away: an empty one in its place would hide that its jobs are gone.
///
/// # Errors
/// If a folder cannot be created.
pub fn make_folders(home: &Home) -> Result<(), Refusal> {
    let missing = missing_definitions(home);
    folders(home).iter().filter(|path| !missing.contains(path)).try_for_each(|path| make_folder(path))
}

/// Like [`make_folders`], including folders of definitions that have gone missing.
pub(super) fn remake_folders(home: &Home) -> Result<(), Refusal> {
    folders(home).iter().try_for_each(|path| make_folder(path))
}

fn make_folder(path: &Path) -> Result<(), Refusal> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| cannot("make", path, &error))
}

/// Returns the folders of definitions that have gone missing.
pub(super) fn missing_definitions(home: &Home) -> Vec<PathBuf> {
    let folders = [(Kind::Routine, home.routines()), (Kind::Reminder, home.reminders())];
    folders.into_iter().filter(|(kind, _)| is_missing(home, *kind)).map(|(_, path)| path).collect()
}

/// Returns the folders that the service needs, `state/runs/` last: where it is, the others have been made.
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

/// Writes a new file and returns whether it did. An existing file stays as it is.
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

/// Replaces the far-off time of the sample reminder by a near one.
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
