//! Sets up a Discord or Telegram bot: its token, its owner, and a test message. Nothing is stored before that message is sent.
//!
//! Flags answer the questions for a script. The token comes from a file, since every program of the machine can read arguments.

use std::io::{self, Read as _};
use std::path::PathBuf;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::Guide;
use crate::app::ChatService;
use crate::channel::discord::Discord;
use crate::channel::telegram::{Pairing, Telegram};
use crate::channel::terminal::plain;
use crate::channel::{Channel, Outgoing, SentParts};
use crate::cli::args::{InitArgs, TalkBy};
use crate::cli::output::{BAD, GOOD, HINT, Output, STRONG, paint};
use crate::config::{DiscordChannel, TelegramChannel};
use crate::refusal::Refusal;

/// The test message.
const GREETING: &str = "ollim-bot can write to you here. It answers as soon as its service runs.";

/// Returns the name of a service's token in `.env`.
pub(super) fn variable(kind: &str) -> &'static str {
    if kind == "discord" { "DISCORD_TOKEN" } else { "TELEGRAM_TOKEN" }
}

/// The answers that flags give.
pub(super) struct TalkFlags {
    pub(super) kind: Option<&'static str>,
    token_file: Option<PathBuf>,
    owner: Option<i64>,
    api: Option<String>,
}

impl TalkFlags {
    pub(super) fn of(args: &InitArgs) -> Self {
        let kind = args.talk.map(|by| match by {
            TalkBy::Discord => "discord",
            TalkBy::Telegram => "telegram",
        });
        Self { kind, token_file: args.token_file.clone(), owner: args.owner, api: args.api.clone() }
    }

    /// Returns the service of this kind with the owner and the server of the flags.
    pub(super) fn service(&self, kind: &'static str) -> ChatService {
        ChatService { kind, owner: self.owner, api: self.api.clone() }
    }

    /// Reads the token from its file, if there is one.
    fn token(&self) -> Result<Option<String>, Refusal> {
        let Some(file) = &self.token_file else { return Ok(None) };
        let read =
            if file.as_os_str() == "-" { io::read_to_string(io::stdin()) } else { std::fs::read_to_string(file) };
        let name = plain(&file.display().to_string());
        let text = read.map_err(|error| Refusal::user(format!("cannot read the token from {name}: {error}")))?;
        match text.trim() {
            token if token.is_empty() || token.contains(char::is_whitespace) => {
                Err(Refusal::user(format!("{name} does not hold a token"))
                    .hint("write the token alone into it, in one line"))
            }
            token => Ok(Some(token.to_owned())),
        }
    }
}

impl Guide<'_> {
    /// Returns the service that the person or a flag chose, with the bot's token, after a test message was sent there.
    pub(super) fn talk(
        &self,
        flags: &TalkFlags,
        output: &mut Output,
    ) -> Result<Option<(ChatService, String)>, Refusal> {
        let Some(kind) = flags.kind.map_or_else(|| self.service(output), |kind| Ok(Some(kind)))? else {
            return Ok(None);
        };
        let talk = flags.service(kind);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Refusal::environment(format!("cannot start: {error}")))?;
        if let Some(token) = flags.token()? {
            self.may_greet(&talk)?;
            let greeted = runtime.block_on(self.greeted(talk, &token, output))?;
            return greeted.map(|talk| Some((talk, token))).map_err(|why| not_greeted(kind, &why));
        }
        if !self.asks {
            return Err(Refusal::user(format!("`--talk {kind}` needs the bot's token"))
                .hint("`--token-file FILE`: a file that only you can read, with the token alone in it"));
        }
        for line in steps(kind) {
            output.line(line);
        }
        loop {
            let token = self.hidden("The bot's token (it is not shown; Enter leaves it out):", output)?;
            if token.is_empty() {
                return Ok(None);
            }
            match runtime.block_on(self.greeted(talk.clone(), &token, output))? {
                Ok(talk) => return Ok(Some((talk, token))),
                Err(why) => output.line(format!("{} {}", paint(BAD, "it does not work:"), plain(&why))),
            }
        }
    }

    /// Asks for the service. Returns `None` for neither.
    fn service(&self, output: &mut Output) -> Result<Option<&'static str>, Refusal> {
        loop {
            match &*self.ask("Talk with the bot? `discord`, `telegram`, or Enter for neither:", output)?.to_lowercase()
            {
                "" | "n" | "no" => return Ok(None),
                "discord" | "d" => return Ok(Some("discord")),
                "telegram" | "t" => return Ok(Some("telegram")),
                other => output.line(format!("`{}` is neither.", plain(other))),
            }
        }
    }

    /// Checks that the owner is known, or a person is there who can send the code.
    fn may_greet(&self, talk: &ChatService) -> Result<(), Refusal> {
        if self.asks || talk.kind != "telegram" || talk.owner.is_some() {
            return Ok(());
        }
        Err(Refusal::user("Telegram does not say who owns a bot")
            .hint("`--owner ID`, with your user number; send /start to the bot before, or it may not write to you")
            .hint("or `ollim-bot init` on a terminal, which finds the number by a code that you send"))
    }

    /// Sends the test message. The outer error means that the code could not be created or shown.
    async fn greeted(
        &self,
        talk: ChatService,
        token: &str,
        output: &mut Output,
    ) -> Result<Result<ChatService, String>, Refusal> {
        let greeted = match talk.kind {
            "discord" => self.by_discord(talk, token).await,
            _ => self.by_telegram(talk, token, output).await?,
        };
        if greeted.is_ok() && !self.view.json {
            output.line(paint(GOOD, "A message was sent to you there."));
        }
        Ok(greeted)
    }

    /// Finds the bot's owner, if no flag names them, and sends them the test message.
    async fn by_telegram(
        &self,
        talk: ChatService,
        token: &str,
        output: &mut Output,
    ) -> Result<Result<ChatService, String>, Refusal> {
        if let Some(owner) = talk.owner {
            return Ok(self.to_telegram(talk, owner, token).await);
        }
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
        Ok(self.to_telegram(talk, owner, token).await)
    }

    async fn to_telegram(&self, talk: ChatService, owner: i64, token: &str) -> Result<ChatService, String> {
        let settings = TelegramChannel { owner: Some(owner), api: talk.api.clone() };
        let sent =
            Telegram::new(&settings, Some(token.to_owned())).send(&self.greeting(), &mut SentParts::default()).await;
        sent.map(|_| ChatService { owner: Some(owner), ..talk }).map_err(|error| error.why)
    }

    async fn by_discord(&self, talk: ChatService, token: &str) -> Result<ChatService, String> {
        let settings = DiscordChannel { owner: talk.owner.map(|owner| owner.to_string()), api: talk.api.clone() };
        let sent =
            Discord::new(settings, Some(token.to_owned())).send(&self.greeting(), &mut SentParts::default()).await;
        sent.map(|_| talk).map_err(|error| error.why)
    }

    fn greeting(&self) -> Outgoing {
        Outgoing::plain(0, self.app.now(), GREETING)
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

fn not_greeted(kind: &str, why: &str) -> Refusal {
    Refusal::user(format!("no message could be sent to you by {kind}: {why}; nothing was made"))
        .hint("see that the token is the bot's, and that it may write to you: docs/channels.md")
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
