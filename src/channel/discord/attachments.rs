//! Files attached to a message.

use std::time::Duration;

use super::incoming::Attachment;
use crate::channel::ReceivedFile;

/// Maximum size of a file, in bytes.
const LARGEST: u64 = 25 * 1024 * 1024;

/// Timeout of one download.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Downloads the files one after another.
pub(super) async fn fetch(attachments: Vec<Attachment>) -> Vec<ReceivedFile> {
    let mut files = Vec::new();
    for attachment in attachments {
        let name = attachment.filename.clone();
        let fetched = tokio::task::spawn_blocking(move || content(&attachment)).await;
        files.push(ReceivedFile { name, content: fetched.unwrap_or_else(|error| Err(error.to_string())) });
    }
    files
}

fn content(attachment: &Attachment) -> Result<Vec<u8>, String> {
    let too_large = || format!("it is larger than {} MB", LARGEST / 1024 / 1024);
    if attachment.size > LARGEST {
        return Err(too_large());
    }
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).build().into();
    let mut answer = agent.get(&attachment.url).call().map_err(|error| format!("it cannot be fetched: {error}"))?;
    match answer.body_mut().with_config().limit(LARGEST).read_to_vec() {
        Ok(bytes) => Ok(bytes),
        Err(ureq::Error::BodyExceedsLimit(_)) => Err(too_large()),
        Err(error) => Err(format!("it cannot be fetched: {error}")),
    }
}
