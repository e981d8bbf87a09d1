//! Mail: each message is one mail to one address, sent through an SMTP server. The channel receives nothing.
//!
//! A mail has the same `Message-ID` each time it is sent, so that mail clients recognise a repetition. A job's text appears in the body
//! and, on one line, in the subject. It cannot become a header.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use tokio::time::timeout;

use super::terminal::{plain, plain_lines};
use super::{Channel, Outgoing, SendError, SentParts};
use crate::config::{Encryption, MailChannel};
use crate::definition::Urgency;

/// Maximum time for one mail.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum length of a subject, in characters.
const LONGEST_SUBJECT: usize = 120;

/// Maximum length of a server's error in a message, in characters.
const LONGEST_WHY: usize = 300;

/// The reason why a channel with a `user` and without a password delivers nothing.
pub(super) const NO_PASSWORD: &str =
    "`SMTP_PASSWORD` is not set: put the password of the mail server's `user` into .env";

/// The mail channel.
pub struct Mail {
    settings: MailChannel,
    password: Option<String>,
}

impl Mail {
    /// Creates the channel. It connects with the first message. `password` belongs to the settings' `user`.
    #[must_use]
    pub fn new(settings: MailChannel, password: Option<String>) -> Self {
        Self { settings, password }
    }

    fn server(&self) -> Result<AsyncSmtpTransport<Tokio1Executor>, SendError> {
        let MailChannel { host, port, encryption, certificate, user, .. } = &self.settings;
        let mut server = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
            .port(*port)
            .timeout(Some(TIMEOUT))
            .tls(match encryption {
                Encryption::None => Tls::None,
                Encryption::StartTls => Tls::Required(parameters(host, certificate.as_deref())?),
                Encryption::Tls => Tls::Wrapper(parameters(host, certificate.as_deref())?),
            });
        if let Some(user) = user {
            let password = self.password.clone().ok_or_else(|| permanent(NO_PASSWORD.into()))?;
            server = server.credentials(Credentials::new(user.clone(), password));
        }
        Ok(server.build())
    }

    /// Connects to the server, logs in and disconnects.
    pub(super) async fn probe(&self) -> Result<String, SendError> {
        if !self.server()?.test_connection().await.map_err(|error| refused(&error))? {
            return Err(SendError::temporary("the mail server ended the connection"));
        }
        let MailChannel { host, port, user, .. } = &self.settings;
        let login = user.as_ref().map(|user| format!(" and `{user}`")).unwrap_or_default();
        Ok(format!("{host}:{port} takes the connection{login}"))
    }

    /// Builds the mail and its `Message-ID`.
    fn mail(&self, message: &Outgoing) -> Result<(lettre::Message, String), String> {
        let address = |text: &str| text.parse::<Address>().map_err(|error| format!("`{text}` is no address: {error}"));
        let (from, to) = (address(&self.settings.from)?, address(&self.settings.to)?);
        let domain = from.domain().to_owned();
        // A new journal restarts the numbers at 1, so the id includes the time.
        let id = format!("<{}.{}.ollim-bot@{domain}>", message.number, message.at.timestamp_millis());
        let mut mail = lettre::Message::builder()
            .from(Mailbox::new(Some("ollim-bot".into()), from))
            .to(Mailbox::new(None, to))
            .subject(subject(message))
            .date(SystemTime::from(message.at))
            .message_id(Some(id.clone()));
        if let Some(job) = &message.job {
            // No such mail exists. Mails that refer to it are shown as one conversation.
            mail = mail.references(format!("<{}.job.ollim-bot@{domain}>", word(job.as_str())));
        }
        let mut mail =
            mail.singlepart(SinglePart::plain(plain_lines(message.text.trim()))).map_err(|why| why.to_string())?;
        let mut set = |name, value: &str| {
            mail.headers_mut().insert_raw(HeaderValue::new(HeaderName::new_from_ascii_str(name), value.to_owned()));
        };
        // Prevents out-of-office replies.
        set("Auto-Submitted", "auto-generated");
        if message.urgency == Urgency::Critical {
            set("Importance", "high");
        }
        Ok((mail, id))
    }
}

#[async_trait]
impl Channel for Mail {
    async fn send(&self, message: &Outgoing, _sent: &mut SentParts) -> Result<Option<String>, SendError> {
        let (mail, id) = self.mail(message).map_err(permanent)?;
        let late = |_| SendError::temporary(format!("the mail server took longer than {} s", TIMEOUT.as_secs()));
        match timeout(TIMEOUT, self.server()?.send(mail)).await.map_err(late)? {
            Ok(_) => Ok(Some(id)),
            Err(error) => Err(refused(&error)),
        }
    }
}

fn refused(error: &lettre::transport::smtp::Error) -> SendError {
    let why: String = plain(&with_causes(error)).chars().take(LONGEST_WHY).collect();
    SendError { why: format!("the mail server: {why}"), retryable: !error.is_permanent() }
}

fn permanent(why: String) -> SendError {
    SendError { why, retryable: false }
}

/// Builds the TLS parameters. `certificate` is a file of the person's own authorities, which replace the public ones.
fn parameters(host: &str, certificate: Option<&std::path::Path>) -> Result<TlsParameters, SendError> {
    let mut parameters = TlsParameters::builder(host.to_owned());
    if let Some(path) = certificate {
        let cannot =
            |why: String| SendError::temporary(format!("the certificate {} cannot be used: {why}", path.display()));
        let pem = std::fs::read(path).map_err(|error| cannot(error.to_string()))?;
        let own = Certificate::from_pem(&pem).map_err(|error| cannot(error.to_string()))?;
        parameters = parameters.certificate_store(CertificateStore::None).add_root_certificate(own);
    }
    parameters.build().map_err(|error| SendError::temporary(error.to_string()))
}

/// Formats an error with all its causes. An error's own text includes its cause, but not always the cause's cause.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(&format!(": {said}"));
        }
        cause = error.source();
    }
    text
}

/// Returns a one-line subject: the title, or the job and the first line of the text.
fn subject(message: &Outgoing) -> String {
    let first = message.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let subject = match (&message.title, &message.job) {
        (Some(title), _) => title.trim().to_owned(),
        (None, Some(job)) => format!("{job}: {first}"),
        (None, None) => first.to_owned(),
    };
    let subject = plain(&subject);
    match subject.char_indices().nth(LONGEST_SUBJECT) {
        Some((end, _)) => format!("{}…", &subject[..end]),
        None => subject,
    }
}

/// Replaces each character that may not appear in an id.
fn word(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use proptest::prelude::*;

    use super::*;
    use crate::definition::DefinitionId;

    fn message(title: Option<&str>, text: &str) -> Outgoing {
        Outgoing {
            job: Some(DefinitionId::new("tea")),
            title: title.map(str::to_owned),
            urgency: Urgency::Critical,
            ..Outgoing::plain(17, DateTime::from_timestamp_millis(1_790_000_000_123).unwrap(), text)
        }
    }

    fn shown(message: &Outgoing) -> String {
        let settings = MailChannel {
            to: "me@example.org".into(),
            from: "bot@example.org".into(),
            host: "mail.example.org".into(),
            port: 465,
            encryption: Encryption::Tls,
            user: None,
            certificate: None,
        };
        String::from_utf8(Mail::new(settings, None).mail(message).unwrap().0.formatted()).unwrap()
    }

    #[test]
    fn a_message_is_a_mail() {
        insta::assert_snapshot!(shown(&message(None, "Tea is ready.\n.\nFrom me")), @r"
        From: ollim-bot <bot@example.org>
        To: me@example.org
        Subject: tea: Tea is ready.
        Date: Mon, 21 Sep 2026 14:13:20 +0000
        Message-ID: <17.1790000000123.ollim-bot@example.org>
        References: <tea.job.ollim-bot@example.org>
        MIME-Version: 1.0
        Auto-Submitted: auto-generated
        Importance: high
        Content-Type: text/plain; charset=utf-8
        Content-Transfer-Encoding: 7bit

        Tea is ready.
        .
        From me
        ");
    }

    proptest! {
        /// Job text never adds a header.
        #[test]
        fn no_text_becomes_a_header(title in "(?s).{0,200}", text in "(?s).{0,200}") {
            let mail = shown(&message(Some(&format!("{title}\r\nBcc: evil@example.org")), &text));
            let head = mail.split("\r\n\r\n").next().unwrap();
            let names: Vec<&str> = head
                .split("\r\n")
                .filter(|line| !line.starts_with([' ', '\t']))
                .map(|line| line.split(':').next().unwrap())
                .collect();
            let expect = [
                "From", "To", "Subject", "Date", "Message-ID", "References", "Content-Type",
                "Content-Transfer-Encoding", "Auto-Submitted", "Importance", "MIME-Version",
            ];
            let mut sorted = names.clone();
            sorted.sort_unstable();
            let mut known = expect.to_vec();
            known.sort_unstable();
            prop_assert_eq!(sorted, known, "{}", mail);
            prop_assert!(!head.replace("\r\n", "").contains(['\r', '\n', '\0']));
        }
    }
}
