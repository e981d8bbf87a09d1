//! Sets up ntfy on a phone, and tests it with one message.

use super::Guide;
use crate::app::App;
use crate::channel::ntfy::Ntfy;
use crate::channel::terminal::plain;
use crate::cli::output::{BAD, FAINT, GOOD, Output, STRONG, paint};
use crate::config::ChannelKind;
use crate::refusal::Refusal;

/// The test message.
const GREETING: &str = "ollim-bot can reach you here.";

/// How to test it later.
const LATER: &str = "Once the service runs: `ollim-bot channels test phone`";

impl Guide<'_> {
    /// Sends one message after the person has subscribed, and asks whether it arrived.
    pub(super) fn try_phone(&self, app: &App, output: &mut Output) -> Result<(), Refusal> {
        let config = app.config()?;
        let ntfy = config.channels.iter().find_map(|channel| match &channel.kind {
            ChannelKind::Ntfy(ntfy) => Some(ntfy),
            _ => None,
        });
        let Some(ntfy) = ntfy else { return Ok(()) };
        let topic = paint(STRONG, &plain(&format!("{}/{}", ntfy.server, ntfy.topic)));
        output.line(format!("Messages go to the channel `phone`: subscribe to {topic} in the app."));
        let question = "Press Enter when you have, and one message is sent; `n` leaves it for later:";
        if !self.ask(question, output)?.is_empty() {
            output.line(paint(FAINT, LATER));
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Refusal::environment(format!("cannot start: {error}")))?;
        let token = app.env.text("NTFY_TOKEN").map(str::to_owned);
        match runtime.block_on(Ntfy::say(ntfy, token, GREETING)) {
            Err(error) => {
                output.line(format!("{} {}", paint(BAD, "it was not sent:"), plain(&error.why)));
                output.line(paint(FAINT, LATER));
            }
            Ok(()) if self.yes("It was sent. Did it come?", true, output)? => {
                output.line(paint(GOOD, "Messages reach your phone."));
            }
            Ok(()) => {
                output.line(format!("See that the app follows {topic} on that server, and may show notifications."));
                output.line(paint(FAINT, LATER));
            }
        }
        Ok(())
    }
}
