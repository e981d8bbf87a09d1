//! What a button of a notification carries: a token for this button of this message.
//!
//! Nobody knows who publishes to a topic, so the token alone says that a press is the person's. It is derived from a secret of
//! the journal's, so nothing is kept for it, and it counts after a restart. The journal says whether it was used.

use chrono::{DateTime, Utc};
use ring::hmac;

use crate::hexadecimal::hex;
use crate::journal::{Journal, JournalError};

/// Where the journal keeps the secret.
const SETTING: &str = "ntfy_secret";

/// The secret of a data folder from which its tokens are derived.
#[derive(Clone)]
pub struct Secret(hmac::Key);

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The system gives no random numbers.
    #[error("no random numbers for the buttons of notifications: {0}")]
    Random(getrandom::Error),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Secret {
    /// The one that the journal keeps; made where there is none yet.
    ///
    /// # Errors
    /// [`SecretError`].
    pub async fn of(journal: &Journal) -> Result<Self, SecretError> {
        if let Some(secret) = journal.setting(SETTING).await?.as_deref().and_then(unhex) {
            return Ok(Self::new(&secret));
        }
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(SecretError::Random)?;
        journal.set_setting(SETTING, Some(hex(&secret))).await?;
        Ok(Self::new(&secret))
    }

    pub(super) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The tokens of one channel. Those of another do not count in it.
    pub(super) fn of_channel(&self, name: &str) -> Tokens {
        let key = hmac::sign(&self.0, format!("buttons of {name}").as_bytes());
        Tokens(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()))
    }
}

/// Makes tokens and knows them again.
pub(super) struct Tokens(hmac::Key);

/// A button, as its token tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pressed {
    /// The button's id: `17:0`.
    pub button: String,
    /// When its message was recorded: another message of the same number is another one.
    pub at: DateTime<Utc>,
    /// Whether it answers a question.
    pub answers: bool,
}

impl Tokens {
    pub(super) fn token(&self, pressed: &Pressed) -> String {
        let kind = if pressed.answers { "answer" } else { "button" };
        let what = format!("{kind}:{}:{}", pressed.at.timestamp_millis(), pressed.button);
        let tag = hmac::sign(&self.0, what.as_bytes());
        format!("{what}:{}", hex(tag.as_ref()))
    }

    /// The button of a token; `None`: this text is no token of ours, to the letter.
    pub(super) fn read(&self, text: &str) -> Option<Pressed> {
        let (what, tag) = text.rsplit_once(':')?;
        // This compares in constant time.
        hmac::verify(&self.0, what.as_bytes(), &unhex(tag)?).ok()?;
        let (kind, rest) = what.split_once(':')?;
        let (at, button) = rest.split_once(':')?;
        let at = DateTime::from_timestamp_millis(at.parse().ok()?)?;
        Some(Pressed { button: button.to_owned(), at, answers: kind == "answer" })
    }
}

/// What lower case digits stand for.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    rest.is_empty().then_some(())?;
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_counts_to_the_letter_and_in_its_channel_alone() {
        let tokens = Secret::new(&[7; 32]).of_channel("phone");
        let at = DateTime::from_timestamp_millis(1_790_000_000_123).unwrap();
        let pressed = Pressed { button: "17:0".into(), at, answers: true };
        let token = tokens.token(&pressed);
        assert_eq!(tokens.read(&token), Some(pressed.clone()));
        assert_eq!(Secret::new(&[7; 32]).of_channel("phone").read(&token), Some(pressed.clone()), "after a restart");
        for (other, text) in [
            ("another button", token.replace("17:0", "17:1")),
            ("another message", token.replace("17:0", "18:0")),
            ("another time", token.replace("1790000000123", "1790000000124")),
            ("another kind", token.replace("answer", "button")),
            ("a blank", format!("{token} ")),
            ("a line end", format!("{token}\n")),
            ("upper case", token.to_uppercase()),
            ("cut", token[..token.len() - 2].to_owned()),
            ("longer", format!("{token}00")),
            ("no tag", "answer:1790000000123:17:0:".to_owned()),
            ("nothing", String::new()),
        ] {
            assert_ne!(text, token, "{other}");
            assert_eq!(tokens.read(&text), None, "{other}");
        }
        assert_eq!(Secret::new(&[7; 32]).of_channel("other").read(&token), None);
        assert_eq!(Secret::new(&[8; 32]).of_channel("phone").read(&token), None);
        // Every letter of it counts.
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] ^= 1;
            assert_eq!(tokens.read(&String::from_utf8(changed).unwrap()), None, "letter {at}");
        }
    }

    #[test]
    fn digits_stand_for_bytes() {
        assert_eq!(unhex("00ff1a"), Some(vec![0, 255, 26]));
        assert_eq!((unhex("0"), unhex("0g"), unhex("FF"), unhex("é")), (None, None, None, None));
    }
}
