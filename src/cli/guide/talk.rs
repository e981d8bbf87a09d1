//! Sets up a Discord or Telegram bot: its token, its owner, and a test message. Nothing is stored before that message is sent.

use std::io::{self, Read as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::Guide;
use crate::app::ChatService;
use crate::channel::discord::Discord;
use crate::channel::telegram::{Pairing, Telegram};
use crate::channel::terminal::plain;
use crate::channel::{Channel, Outgoing, SentParts};
use crate::cli::output::{BAD, GOOD, HINT, Output, STRONG, paint};
use crate::config::{DiscordChannel, TelegramChannel};
use crate::definition::Urgency;
use crate::refusal::Refusal;

/// The test message.
const GREETING: &str = "ollim-bot can write to you here. It answers as soon as its service runs.";

/// Returns the name of a service's token in `.env`.
pub(super) fn variable(kind: &str) -> &'static str {
    if kind == "discord" { "DISCORD_TOKEN" } else { "TELEGRAM_TOKEN" }
}

impl Guide<'_> {
    /// Returns the service that the person chose, with the bot's token, after a test message was sent there.
    pub(super) fn talk(
        &self,
        api: Option<String>,
        output: &mut Output,
    ) -> Result<Option<(ChatService, String)>, Refusal> {
        let kind = loop {
            match &*self.ask("Talk with the bot? `discord`, `telegram`, or Enter for neither:", output)?.to_lowercase()
            {
                "" | "n" | "no" => return Ok(None),
                "discord" | "d" => break "discord",
                "telegram" | "t" => break "telegram",
                other => output.line(format!("`{}` is neither.", plain(other))),
            }
        };
        for line in steps(kind) {
            output.line(line);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Refusal::environment(format!("cannot start: {error}")))?;
        loop {
            let token = self.hidden("The bot's token (it is not shown; Enter leaves it out):", output)?;
            if token.is_empty() {
                return Ok(None);
            }
            let talk = ChatService { kind, owner: None, api: api.clone() };
            let greeted = match kind {
                "discord" => runtime.block_on(self.by_discord(talk, &token)),
                _ => runtime.block_on(self.by_telegram(talk, &token, output))?,
            };
            match greeted {
                Ok(talk) => {
                    output.line(paint(GOOD, "A message was sent to you there."));
                    return Ok(Some((talk, token)));
                }
                Err(why) => output.line(format!("{} {}", paint(BAD, "it does not work:"), plain(&why))),
            }
        }
    }

    /// Finds the bot's owner and sends them the test message. The outer error means that the code could not be created or shown.
    async fn by_telegram(
        &self,
        talk: ChatService,
        token: &str,
        output: &mut Output,
    ) -> Result<Result<ChatService, String>, Refusal> {
        let code = self.app.new_code()?;
        let pairing = match Pairing::begin(talk.api.as_deref(), token).await {
            Ok(pairing) => pairing,
            Err(why) => return Ok(Err(why)),
        };
        let name = pairing.name();
        let link = paint(STRONG, &format!("https://t.me/{name}?start={code}"));
        output.line(format!("Open {link} and press Start, or send `/start {code}` to @{name}."));
        output.line("Whoever sends this code is the bot's owner. Waiting …");
        output.print_now(self.color)?;
        let owner = match pairing.owner(&code).await {
            Ok(owner) => owner,
            Err(why) => return Ok(Err(why)),
        };
        let settings = TelegramChannel { owner: Some(owner), api: talk.api.clone() };
        let sent =
            Telegram::new(&settings, Some(token.to_owned())).send(&self.greeting(), &mut SentParts::default()).await;
        Ok(sent.map(|_| ChatService { owner: Some(owner), ..talk }).map_err(|error| error.why))
    }

    async fn by_discord(&self, talk: ChatService, token: &str) -> Result<ChatService, String> {
        let settings = DiscordChannel { owner: None, api: talk.api.clone() };
        let sent =
            Discord::new(settings, Some(token.to_owned())).send(&self.greeting(), &mut SentParts::default()).await;
        sent.map(|_| talk).map_err(|error| error.why)
    }

    fn greeting(&self) -> Outgoing {
        Outgoing {
            number: 0,
            at: self.app.now(),
            job: None,
            run: None,
            title: None,
            text: GREETING.to_owned(),
            urgency: Urgency::Normal,
            buttons: Vec::new(),
            asks: false,
            answers: None,
            reply_to: None,
            rich: None,
        }
    }

    /// Reads a line without echo. Returns it trimmed.
    fn hidden(&self, question: &str, output: &mut Output) -> Result<String, Refusal> {
        let cannot = |error: io::Error| Refusal::environment(format!("cannot read from the terminal: {error}"));
        let hidden = EchoDisabled::begin().map_err(cannot)?;
        output.stderr.push_str(&format!("{} ", paint(HINT, question)));
        output.print_now(self.color)?;
        let line = read_line();
        drop(hidden);
        output.stderr.push('\n');
        output.print_now(self.color)?;
        line.map_err(cannot)?
            .ok_or_else(|| Refusal::user("the questions were not answered to the end; nothing was made"))
    }
}

/// Returns the steps for the person at the service.
fn steps(kind: &str) -> &'static [&'static str] {
    match kind {
        "discord" => &[
            "1. https://discord.com/developers/applications: `New Application`, and give it a name.",
            "2. `Installation`: tick `User Install` alone, and choose the `Discord Provided Link`.",
            "3. Open that link, and choose `Add to My Apps`.",
            "4. `Bot`: `Reset Token`, and copy it.",
        ],
        _ => &["Write `/newbot` to https://t.me/BotFather, and give the bot a name. It answers with a token."],
    }
}

/// Disables echo and line editing of the terminal until it is dropped.
struct EchoDisabled(Termios);

impl EchoDisabled {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut now = before.clone();
        // Ctrl-C arrives as a character, so that the terminal is restored before the exit.
        now.local_modes &= !(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(io::stdin(), OptionalActions::Drain, &now)?;
        Ok(Self(before))
    }
}

impl Drop for EchoDisabled {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _gone = tcsetattr(io::stdin(), OptionalActions::Drain, &self.0);
    }
}

/// Reads a line. Returns `None` on Ctrl-C, Ctrl-D or the end of the input.
fn read_line() -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut letter = [0];
    loop {
        if io::stdin().lock().read(&mut letter)? == 0 {
            return Ok(None);
        }
        match letter[0] {
            b'\n' | b'\r' => return Ok(Some(String::from_utf8_lossy(&line).trim().to_owned())),
            0x03 | 0x04 => return Ok(None),
            0x08 | 0x7f => drop(line.pop()),
            letter => line.push(letter),
        }
    }
}
