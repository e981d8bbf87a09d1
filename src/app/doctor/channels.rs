//! Checks whether messages reach the person. Asks the service behind each channel, without sending a message.

use super::Finding;
use crate::app::{App, ChannelState, channels, times};
use crate::channel::SendError;
use crate::channel::probe::probe;
use crate::config::{CONSOLE, ChannelSettings};

/// Returns one finding for each channel.
pub(super) fn channels(app: &App) -> Vec<Finding> {
    // Errors of the settings or the journal are reported elsewhere.
    let (Ok(config), Ok(states)) = (app.config(), channels::channels(app)) else { return Vec::new() };
    let answers = match ask(&config.channels, app) {
        Ok(answers) => answers,
        Err(why) => return vec![Finding::look("channel", format!("none can be asked: {why}")).step("mend that first")],
    };
    let of = |state: &ChannelState| {
        let answer = config.channels.iter().zip(&answers).find(|(channel, _)| channel.name == state.name);
        finding(state, answer.map(|(_, answer)| answer), app)
    };
    // Nobody waits for messages at a terminal if there is another channel.
    states.iter().filter(|state| state.kind != CONSOLE || config.channels.is_empty()).map(of).collect()
}

fn ask(settings: &[ChannelSettings], app: &App) -> Result<Vec<Result<String, SendError>>, String> {
    let means = channels::probe_context(app).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let answers = runtime.block_on(probe(settings, &means));
    // A request that timed out may still be waiting on its own thread.
    runtime.shutdown_background();
    Ok(answers)
}

/// Returns the finding on one channel. `answer` is that of the service behind it; `None` for the console, which has none.
fn finding(state: &ChannelState, answer: Option<&Result<String, SendError>>, app: &App) -> Finding {
    let ChannelState { name, failing, delivered, .. } = state;
    let test = format!("`ollim-bot channels test {name}`");
    match (answer, failing, delivered) {
        (Some(Err(SendError { why, .. })), ..) => Finding::wrong("channel", format!("`{name}` cannot deliver: {why}"))
            .step(format!("mend that, then try it: {test}")),
        (_, Some(failing), _) => Finding::wrong("channel", format!("`{name}` {}: {}", failing.state(), failing.error))
            .step(format!("mend that, then try it: {test}")),
        (Some(Ok(answer)), None, Some(at)) => {
            let last = times::relative(*at, app.now());
            Finding::ok("channel", format!("`{name}`: {answer}; it delivered a message {last}"))
        }
        (Some(Ok(answer)), None, None) => {
            Finding::look("channel", format!("`{name}`: {answer}; it has delivered nothing yet"))
                .step(format!("send yourself a message: {test}"))
        }
        (None, None, _) => Finding::ok("channel", name.as_str()),
    }
}
