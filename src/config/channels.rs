//! The setting `channels`: how messages reach the person, and when.

use std::net::IpAddr;
use std::path::PathBuf;

use chrono::{DateTime, Days, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::section::Section;
use super::values::fault;
use crate::definition::frontmatter::Node;
use crate::definition::quoted;
use crate::definition::values::{Fault, Value, is_channel_name};

/// The channel that always exists: the terminal of `ollim-bot run`.
pub const CONSOLE: &str = "console";

/// The channel of a person who talks with the bot at a terminal.
pub const TERMINAL: &str = "terminal";

/// A channel of the person.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelSettings {
    /// Its name.
    pub name: String,
    /// Its service and settings.
    pub kind: ChannelKind,
    /// Its own quiet hours; `None` for those of all channels.
    pub quiet_hours: Option<Quiet>,
}

/// The kind of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// A program that receives each message.
    Command(CommandChannel),
    /// A topic of an ntfy server.
    Ntfy(NtfyChannel),
    /// A conversation with a Discord application.
    Discord(DiscordChannel),
    /// A private chat with a Telegram bot.
    Telegram(TelegramChannel),
    /// Mail to one address.
    Mail(MailChannel),
}

/// Mail to one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailChannel {
    /// The recipient.
    pub to: String,
    /// The sender.
    pub from: String,
    /// The server's name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is protected.
    pub encryption: Encryption,
    /// The account name; `None` to send without a login.
    pub user: Option<String>,
    /// A file with the authorities accepted for the server's certificate; `None` for the public ones.
    pub certificate: Option<PathBuf>,
}

/// The encryption of the connection to a mail server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// No encryption: the server is on this machine.
    None,
    /// Encryption before any mail is sent. If the server does not offer it, nothing is sent.
    StartTls,
    /// Encryption from the first byte.
    Tls,
}

/// A conversation with a Discord application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscordChannel {
    /// The id of the user who may talk to the bot; `None` for the application's owner.
    pub owner: Option<String>,
    /// The address of a compatible server; `None` for Discord's.
    pub api: Option<String>,
}

/// A private chat with a Telegram bot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TelegramChannel {
    /// The number of the user who may talk to the bot; `None` for nobody yet, and nothing is sent.
    pub owner: Option<i64>,
    /// The address of one's own Bot API server; `None` for Telegram's.
    pub api: Option<String>,
}

/// A topic of an ntfy server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NtfyChannel {
    /// The server's address.
    pub server: String,
    /// The topic. Everyone who knows it can read its messages.
    pub topic: String,
    /// A second topic on the server, to which buttons publish; `None` for no buttons.
    pub answers: Option<String>,
    /// Whether the text of a job's questions is sent to the server.
    pub show_text: bool,
}

/// A program that receives each message as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandChannel {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether one process receives all messages, instead of one process each.
    pub keep: bool,
    /// Folders that it may write to, besides its own.
    pub writes: Vec<PathBuf>,
    /// The service's name for the person. Nobody else may talk to the bot; `None` for nobody at all.
    pub owner: Option<String>,
    /// Whether the process is told what became of a message that it has delivered.
    pub outcomes: bool,
}

/// The quiet hours of a single channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quiet {
    /// No quiet hours.
    Never,
    /// These quiet hours.
    Hours(QuietHours),
}

/// Hours of each day, in the person's zone, in which messages wait unless they are critical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QuietHours {
    /// The time of day at which they begin.
    pub from: NaiveTime,
    /// The time of day at which they end.
    pub to: NaiveTime,
}

impl QuietHours {
    /// Returns the end, if it is quiet now. An end that the clocks skip is an hour later.
    #[must_use]
    pub fn end(&self, now: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
        let time = now.with_timezone(&zone).time();
        let quiet = match self.from <= self.to {
            true => self.from <= time && time < self.to,
            false => self.from <= time || time < self.to,
        };
        if quiet { self.next_end(now, zone) } else { None }
    }

    /// Returns the next end, whether or not it is quiet now.
    #[must_use]
    pub fn next_end(&self, now: DateTime<Utc>, zone: Tz) -> Option<DateTime<Utc>> {
        let local = now.with_timezone(&zone).naive_local();
        let time = local.time();
        let date = if time < self.to { local.date() } else { local.date().checked_add_days(Days::new(1))? };
        let end = date.and_time(self.to);
        let later = || zone.from_local_datetime(&(end + TimeDelta::hours(1))).earliest();
        let end = zone.from_local_datetime(&end).earliest().or_else(later)?.with_timezone(&Utc);
        (end > now).then_some(end)
    }
}

impl std::fmt::Display for QuietHours {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} to {}", self.from.format("%H:%M"), self.to.format("%H:%M"))
    }
}

/// Reads `channels: { phone: { kind: command, command: [my-bridge] } }`.
pub(super) fn channels(value: &Value) -> Result<Vec<ChannelSettings>, Fault> {
    let hint = "write `channels: { phone: { kind: command, command: [my-bridge] } }`";
    let Node::Map(entries) = value.node else {
        return Err(fault("`channels` must name channels".into(), hint));
    };
    let mut channels: Vec<ChannelSettings> = Vec::new();
    for (item, entry) in entries.iter().enumerate() {
        let read = name(&entry.key).and_then(|name| {
            if channels.iter().any(|channel| channel.name == name) {
                return Err(fault(format!("`channels.{name}` is set twice"), "keep one of the two"));
            }
            channel(name, &entry.value)
        });
        channels.push(read.map_err(|fault| Fault { item: Some(item), ..fault })?);
    }
    Ok(channels)
}

fn name(text: &str) -> Result<String, Fault> {
    if !is_channel_name(text) {
        let message = format!("{} cannot be the name of a channel", quoted(text));
        return Err(fault(message, "use at most 32 letters, digits, `-` and `_`"));
    }
    Ok(text.to_owned())
}

fn channel(name: String, node: &Node) -> Result<ChannelSettings, Fault> {
    if [CONSOLE, TERMINAL].contains(&&*name) {
        return Err(fault(format!("the channel `{name}` is always there"), "remove it, or choose another name"));
    }
    let hint = "write `{ kind: command, command: [my-bridge] }`";
    let Node::Map(entries) = node else {
        return Err(fault(format!("`channels.{name}` must say what it is"), hint));
    };
    let mut fields = Section { name: format!("channels.{name}"), entries, hint };
    let kind = match fields.text("kind")? {
        Some("command") if fields.get("owner").is_some() && !fields.flag("keep")? => {
            let message = format!(
                "`channels.{name}.owner` needs `keep: true`: a program that is started for each message hears nothing"
            );
            return Err(fault(message, "add `keep: true`, or remove `owner`"));
        }
        Some("command") if fields.flag("outcomes")? && !fields.flag("keep")? => {
            let message = format!("`channels.{name}.outcomes` needs `keep: true`: a program of one message is over");
            return Err(fault(message, "add `keep: true`, or remove `outcomes`"));
        }
        Some("command") => ChannelKind::Command(CommandChannel {
            command: fields.command()?,
            keep: fields.flag("keep")?,
            writes: fields.folders("writes")?,
            owner: fields.owner()?,
            outcomes: fields.flag("outcomes")?,
        }),
        Some("ntfy") => ChannelKind::Ntfy(fields.ntfy()?),
        Some("discord") => ChannelKind::Discord(fields.discord()?),
        Some("telegram") => ChannelKind::Telegram(fields.telegram()?),
        Some("mail") => ChannelKind::Mail(fields.mail()?),
        Some(other) => {
            let message = format!("there is no channel of the kind {}", quoted(other));
            return Err(fault(message, "the kinds are: command, discord, mail, ntfy, telegram"));
        }
        None => return Err(fault(format!("`channels.{name}` has no `kind`"), hint)),
    };
    let known: &[&str] = match kind {
        ChannelKind::Command(_) => &["kind", "quiet_hours", "command", "keep", "writes", "owner", "outcomes"],
        ChannelKind::Ntfy(_) => &["kind", "quiet_hours", "url", "answers", "show_text"],
        ChannelKind::Discord(_) | ChannelKind::Telegram(_) => &["kind", "quiet_hours", "owner", "api"],
        ChannelKind::Mail(_) => &["kind", "quiet_hours", "to", "from", "smtp", "user", "certificate"],
    };
    let quiet_hours = fields.get("quiet_hours").map(|node| quiet(&format!("channels.{name}.quiet_hours"), node));
    fields.only(known)?;
    let quiet_hours = quiet_hours.transpose()?;
    Ok(ChannelSettings { kind, quiet_hours, name })
}

impl Section<'_> {
    /// Reads a channel with `url: https://ntfy.sh/my-topic`.
    fn ntfy(&mut self) -> Result<NtfyChannel, Fault> {
        let wrong = || {
            let message = format!("`{}.url` must be a server's address and a topic", self.name);
            fault(message, "write `url: https://ntfy.sh/a-topic-that-nobody-guesses`")
        };
        let url = match self.get("url") {
            Some(Node::Text(url)) => url.trim_end_matches('/'),
            _ => return Err(wrong()),
        };
        let (server, topic) = url.rsplit_once('/').ok_or_else(wrong)?;
        if !is_topic(topic) || !is_address(server) {
            return Err(wrong());
        }
        let answers = self.text("answers")?.map(str::to_owned);
        if answers.as_ref().is_some_and(|answers| !is_topic(answers) || answers == topic) {
            let message = format!("`{}.answers` must be another topic of the same server", self.name);
            return Err(fault(message, "write `answers: a-second-topic-that-nobody-guesses`"));
        }
        let show_text = self.flag("show_text")?;
        Ok(NtfyChannel { server: server.to_owned(), topic: topic.to_owned(), answers, show_text })
    }

    /// Reads the service's name for the person.
    fn owner(&self) -> Result<Option<String>, Fault> {
        match self.get("owner") {
            None => Ok(None),
            Some(Node::Text(text)) if !text.is_empty() => Ok(Some(text.to_string())),
            Some(Node::Int(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(self.wrong("owner", "what the service calls you: a name or a number")),
        }
    }

    /// Reads `owner: 80351110224678912`, `api: https://chat.example`.
    fn discord(&mut self) -> Result<DiscordChannel, Fault> {
        let owner = self.owner()?;
        if owner.as_ref().is_some_and(|id| !id.parse::<u64>().is_ok_and(|id| id > 0)) {
            let message = format!("`{}.owner` must be the id of a user", self.name);
            return Err(fault(
                message,
                "write the number that Discord copies for `Copy User ID`, like `80351110224678912`",
            ));
        }
        let api = self.api()?;
        Ok(DiscordChannel { owner, api })
    }

    /// Reads `owner: 12345678`, `api: https://bots.example`.
    fn telegram(&mut self) -> Result<TelegramChannel, Fault> {
        let owner = self.owner()?.map(|owner| {
            owner.parse().ok().filter(|id| *id > 0).ok_or_else(|| {
                let message = format!("`{}.owner` must be your number", self.name);
                fault(message, "write `/start` to the bot without an `owner`: it answers with your number")
            })
        });
        Ok(TelegramChannel { owner: owner.transpose()?, api: self.api()? })
    }

    /// Reads `to: me@example.org`, `from: bot@example.org`, `smtp: smtps://mail.example.org`.
    fn mail(&mut self) -> Result<MailChannel, Fault> {
        let hint = "write `{ kind: mail, to: me@example.org, from: bot@example.org, smtp: smtps://mail.example.org, user: bot }`";
        let name = self.name.clone();
        let address = |key: &str| match self.text(key)? {
            Some(text) if is_mail_address(text) => Ok(text.to_owned()),
            _ => Err(fault(format!("`{name}.{key}` must be a mail address"), hint)),
        };
        let (to, from) = (address("to")?, address("from")?);
        let wrong = || {
            fault(
                format!("`{name}.smtp` must be the address of a mail server"),
                "write `smtps://mail.example.org`, or `smtp://mail.example.org:587` for STARTTLS",
            )
        };
        let smtp = self.text("smtp")?.ok_or_else(wrong)?.trim_end_matches('/');
        let (is_tls, rest) = match (smtp.strip_prefix("smtps://"), smtp.strip_prefix("smtp://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(wrong()),
        };
        let usual = if is_tls { 465 } else { 587 };
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| wrong())?),
            _ => (rest, usual),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let plain = |c: char| c.is_alphanumeric() || "-._:".contains(c);
        if host.is_empty() || !host.chars().all(plain) || port == 0 {
            return Err(wrong());
        }
        let certificate = match self.text("certificate")?.map(PathBuf::from) {
            Some(path) if !path.is_absolute() => return Err(self.wrong("certificate", "a file that begins with `/`")),
            certificate => certificate,
        };
        let user = self.text("user")?.filter(|user| !user.is_empty()).map(str::to_owned);
        let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback());
        let encryption = match is_tls {
            true => Encryption::Tls,
            // A connection within this machine needs no encryption.
            false if is_here && certificate.is_none() => Encryption::None,
            false => Encryption::StartTls,
        };
        Ok(MailChannel { to, from, host: host.to_owned(), port, encryption, user, certificate })
    }

    /// Reads the address of another server.
    fn api(&mut self) -> Result<Option<String>, Fault> {
        let api = self.text("api")?.map(|api| api.trim_end_matches('/').to_owned());
        if api.as_ref().is_some_and(|api| !is_address(api)) {
            let message = format!("`{}.api` must be a server's address", self.name);
            return Err(fault(message, "write it like `https://chat.example`, or leave it out for the service itself"));
        }
        Ok(api)
    }
}

/// Whether a text has the form of a single mail address: `me@example.org`.
fn is_mail_address(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.contains(|c: char| c.is_whitespace() || c.is_control() || "@<>,;:\"()[]\\".contains(c))
    };
    text.split_once('@').is_some_and(|(user, domain)| is_part(user) && is_part(domain))
}

/// Whether a text is a valid topic of an ntfy server.
fn is_topic(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    (1..=64).contains(&text.len()) && text.chars().all(plain)
}

/// Whether a text is the address of a server: `https://ntfy.sh`.
pub(super) fn is_address(text: &str) -> bool {
    let host = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    host.is_some_and(|host| {
        host.starts_with(|c: char| c.is_alphanumeric() || c == '[')
            && !host.contains(|c: char| c.is_whitespace() || c.is_control() || "?#@".contains(c))
    })
}

/// Reads `quiet_hours: { from: "22:00", to: "07:30" }`.
pub(super) fn quiet_hours(value: &Value) -> Result<QuietHours, Fault> {
    match quiet("quiet_hours", value.node)? {
        Quiet::Hours(hours) => Ok(hours),
        Quiet::Never => Err(fault("`quiet_hours` is none as long as it is not set".into(), "remove the line")),
    }
}

fn quiet(name: &str, node: &Node) -> Result<Quiet, Fault> {
    let hint = format!("write `{name}: {{ from: \"22:00\", to: \"07:30\" }}`");
    let wrong = || fault(format!("`{name}` must have a time `from` and a time `to`"), &hint);
    let entries = match node {
        Node::Text(word) if word == "none" => return Ok(Quiet::Never),
        Node::Map(entries) if entries.len() == 2 => entries,
        _ => return Err(wrong()),
    };
    let time = |key: &str| {
        let node = entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)?;
        match node {
            Node::Text(text) => NaiveTime::parse_from_str(text, "%H:%M").ok(),
            _ => None,
        }
    };
    let (Some(from), Some(to)) = (time("from"), time("to")) else { return Err(wrong()) };
    if from == to {
        return Err(fault(format!("`{name}` would be always, or never"), "choose two different times"));
    }
    Ok(Quiet::Hours(QuietHours { from, to }))
}

/// Returns the value as it would be written.
pub(super) fn channels_shown(channels: &[ChannelSettings]) -> Json {
    let shown = |channel: &ChannelSettings| {
        let mut fields = Map::new();
        match &channel.kind {
            ChannelKind::Ntfy(ntfy) => {
                fields.insert("kind".into(), json!("ntfy"));
                fields.insert("url".into(), json!(format!("{}/{}", ntfy.server, ntfy.topic)));
                fields.extend(ntfy.answers.as_ref().map(|answers| ("answers".to_owned(), json!(answers))));
                fields.extend(ntfy.show_text.then(|| ("show_text".to_owned(), json!(true))));
            }
            ChannelKind::Discord(discord) => {
                fields.insert("kind".into(), json!("discord"));
                let set = [("owner", &discord.owner), ("api", &discord.api)];
                fields
                    .extend(set.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?)))));
            }
            ChannelKind::Telegram(telegram) => {
                fields.insert("kind".into(), json!("telegram"));
                fields.extend(telegram.owner.map(|owner| ("owner".to_owned(), json!(owner))));
                fields.extend(telegram.api.as_ref().map(|api| ("api".to_owned(), json!(api))));
            }
            ChannelKind::Mail(mail) => {
                let scheme = if mail.encryption == Encryption::Tls { "smtps" } else { "smtp" };
                let host = if mail.host.contains(':') { format!("[{}]", mail.host) } else { mail.host.clone() };
                let set = [
                    ("kind", json!("mail")),
                    ("to", json!(mail.to)),
                    ("from", json!(mail.from)),
                    ("smtp", json!(format!("{scheme}://{host}:{}", mail.port))),
                    ("user", json!(mail.user)),
                    ("certificate", json!(mail.certificate)),
                ];
                fields.extend(
                    set.into_iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.to_owned(), value)),
                );
            }
            ChannelKind::Command(command) => {
                fields.insert("kind".into(), json!("command"));
                fields.insert("command".into(), json!(command.command));
                if command.keep {
                    fields.insert("keep".into(), json!(true));
                }
                if let Some(owner) = &command.owner {
                    fields.insert("owner".into(), json!(owner));
                }
                if command.outcomes {
                    fields.insert("outcomes".into(), json!(true));
                }
                if !command.writes.is_empty() {
                    fields.insert("writes".into(), json!(command.writes));
                }
            }
        }
        match &channel.quiet_hours {
            Some(Quiet::Never) => drop(fields.insert("quiet_hours".into(), json!("none"))),
            Some(Quiet::Hours(hours)) => drop(fields.insert("quiet_hours".into(), quiet_hours_shown(hours))),
            None => {}
        }
        (channel.name.clone(), Json::Object(fields))
    };
    Json::Object(channels.iter().map(shown).collect())
}

pub(super) fn quiet_hours_shown(hours: &QuietHours) -> Json {
    json!({ "from": hours.from.format("%H:%M").to_string(), "to": hours.to.format("%H:%M").to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_hours_end_at_their_local_time() {
        let hours = |from: &str, to: &str| QuietHours {
            from: NaiveTime::parse_from_str(from, "%H:%M").unwrap(),
            to: NaiveTime::parse_from_str(to, "%H:%M").unwrap(),
        };
        let berlin = chrono_tz::Europe::Berlin;
        for (from, to, now, end) in [
            ("22:00", "07:30", "2026-11-23T20:59:59Z", None),
            ("22:00", "07:30", "2026-11-23T21:00:00Z", Some("2026-11-24T06:30:00Z")),
            ("22:00", "07:30", "2026-11-24T06:29:59Z", Some("2026-11-24T06:30:00Z")),
            ("22:00", "07:30", "2026-11-24T06:30:00Z", None),
            ("13:00", "15:00", "2026-11-24T12:30:00Z", Some("2026-11-24T14:00:00Z")),
            ("13:00", "15:00", "2026-11-24T14:30:00Z", None),
            // The night in which the clocks skip from 2:00 to 3:00.
            ("22:00", "02:30", "2026-03-28T23:00:00Z", Some("2026-03-29T01:30:00Z")),
            // The night in which 2:00 to 3:00 comes twice. The quiet hours end the first time.
            ("22:00", "02:30", "2026-10-25T00:10:00Z", Some("2026-10-25T00:30:00Z")),
            ("22:00", "02:30", "2026-10-25T01:10:00Z", None),
        ] {
            let now = now.parse().unwrap();
            let end = end.map(|end| end.parse().unwrap());
            assert_eq!(hours(from, to).end(now, berlin), end, "{from} to {to} at {now}");
        }
    }
}
