//! Tokens of notification buttons: a token stands for one button of one message.
//!
//! Anyone can publish to a topic, so only the token proves that the person pressed the button. It is derived from a secret in the journal,
//! so it needs no storage and stays valid after a restart. The journal records whether it was used.

use chrono::{DateTime, Utc};
use ring::hmac;

use crate::hexadecimal::hex;
use crate::journal::{Journal, JournalError};

/// Key of the secret in the journal's settings.
const SETTING: &str = "ntfy_secret";

/// The secret of a data folder, from which its tokens are derived.
#[derive(Clone)]
pub struct Secret(hmac::Key);

/// Reason why no secret is available.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The system provides no random numbers.
    #[error("no random numbers for the buttons of notifications: {0}")]
    Random(getrandom::Error),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Secret {
    /// Returns the journal's secret. Creates it if there is none.
    ///
    /// # Errors
    /// [`SecretError`].
    pub async fn of(journal: &Journal) -> Result<Self, SecretError> {
        if let Some(secret) = journal.setting(SETTING).await?.as_deref().and_then(unhex) {
            return Ok(Self::new(&secret));
        }
        let secret = fresh()?;
        journal.set_setting(SETTING, Some(hex(&secret))).await?;
        Ok(Self::new(&secret))
    }

    /// Makes a secret that no journal keeps. Buttons made with it work only as long as it is in use.
    ///
    /// # Errors
    /// [`SecretError::Random`].
    pub fn random() -> Result<Self, SecretError> {
        Ok(Self::new(&fresh()?))
    }

    pub(super) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Returns the tokens of one channel. Tokens of other channels are invalid there.
    pub(super) fn of_channel(&self, name: &str) -> Tokens {
        let key = hmac::sign(&self.0, format!("buttons of {name}").as_bytes());
        Tokens(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()))
    }
}

fn fresh() -> Result<[u8; 32], SecretError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(SecretError::Random)?;
    Ok(secret)
}

/// Creates and verifies tokens.
pub(super) struct Tokens(hmac::Key);

/// A button, as its token describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pressed {
    /// Id of the button, such as `17:0`.
    pub button: String,
    /// Time at which the button's message was recorded. It tells apart messages with the same number.
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

    /// Returns the button of a token. Returns `None` if the text is not exactly a token of ours.
    pub(super) fn read(&self, text: &str) -> Option<Pressed> {
        let (what, tag) = text.rsplit_once(':')?;
        // The comparison takes constant time.
        hmac::verify(&self.0, what.as_bytes(), &unhex(tag)?).ok()?;
        let (kind, rest) = what.split_once(':')?;
        let (at, button) = rest.split_once(':')?;
        let at = DateTime::from_timestamp_millis(at.parse().ok()?)?;
        Some(Pressed { button: button.to_owned(), at, answers: kind == "answer" })
    }
}

/// Decodes lower case hexadecimal digits.
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
        // Each byte of the token counts.
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
