//! Commands, buttons and other input of the person whose effect the end of the service cuts off.
//!
//! Such input is not done a second time, since it may have had its effect. The next process notifies the person of it instead.

use crate::journal::{BegunInput, Journal, JournalError, NewMessage};
use crate::refusal::Refusal;

/// Awaits the effect of an input, and keeps a record of it meanwhile. Returns `None` without an effect if the input was handled
/// before.
///
/// # Errors
/// Those of the effect, and an error if the record cannot be made. There is no effect then.
pub(super) async fn recorded<T>(
    journal: &Journal,
    input: BegunInput,
    effect: impl Future<Output = Result<T, Refusal>>,
) -> Result<Option<T>, Refusal> {
    let (channel, id) = (input.channel.clone(), input.id.clone());
    if !journal.begin_input(input).await? {
        return Ok(None);
    }
    fail_point!(InputBegun);
    let done = effect.await;
    if let Err(error) = journal.end_input(&channel, &id).await {
        tracing::warn!(%error, "that an input had its effect cannot be recorded; the next start says that it was cut off");
    }
    done.map(Some)
}

/// Notifies the person of the input that the previous process had begun.
///
/// # Errors
/// An error if the commit fails.
pub(super) async fn notify(journal: &Journal) -> Result<(), JournalError> {
    let message = |channel: &str, what: &str| NewMessage {
        channel: Some(channel.to_owned()),
        ..NewMessage::of_service(format!(
            "The service ended while it handled {what}, so that may not be done. Look, and do it again if it is not."
        ))
    };
    journal.end_cut_off_inputs(message).await
}
