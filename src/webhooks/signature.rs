//! Verifies that a request is signed with a secret, as GitHub, Stripe and Slack sign, or presents it. All comparisons take constant
//! time.

use chrono::{DateTime, TimeDelta, Utc};
use hyper::HeaderMap;
use ring::hmac::{self, HMAC_SHA256, Key};

use crate::definition::Signature;
use crate::hexadecimal;

/// Maximum difference of a signed time from now.
const TOLERANCE: TimeDelta = TimeDelta::minutes(5);

/// Maximum number of signatures checked in one header.
const MAX_SIGNATURES: usize = 8;

/// What a request proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Its sender has the secret.
    Signed,
    /// Somebody with the secret signed it, at a time that is too far from now. It may be a repetition by somebody else.
    OtherTime,
    /// Nothing.
    Nothing,
}

/// Checks whether a request proves that its sender has the secret.
#[must_use]
pub fn proof(signature: Signature, secret: &str, headers: &HeaderMap, body: &[u8], now: DateTime<Utc>) -> Proof {
    let key = Key::new(HMAC_SHA256, secret.as_bytes());
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let matches = |parts: &[&[u8]], presented: &str| {
        hex(presented).is_some_and(|presented| hmac::verify(&key, &parts.concat(), &presented).is_ok())
    };
    // Whether it is signed, and its signed time.
    let signed = || match signature {
        Signature::Bearer => {
            let presented = header("authorization")?.strip_prefix("Bearer ")?;
            // Compare the MACs, so that timing reveals neither the secret nor its length.
            let presented = hmac::sign(&key, presented.as_bytes());
            Some((hmac::verify(&key, secret.as_bytes(), presented.as_ref()).is_ok(), None))
        }
        Signature::Github => Some((matches(&[body], header("x-hub-signature-256")?.strip_prefix("sha256=")?), None)),
        Signature::Stripe => {
            let fields = || header("stripe-signature").into_iter().flat_map(|text| text.split(','));
            let of =
                |name| fields().filter_map(move |field| field.trim().split_once('=').filter(|(key, _)| *key == name));
            let (_, time) = of("t").next()?;
            let presented = of("v1").take(MAX_SIGNATURES).map(|(_, presented)| presented);
            let is_one =
                presented.map(|one| matches(&[time.as_bytes(), b".", body], one)).fold(false, |any, one| any | one);
            Some((is_one, Some(time)))
        }
        Signature::Slack => {
            let time = header("x-slack-request-timestamp")?;
            let presented = header("x-slack-signature")?.strip_prefix("v0=")?;
            Some((matches(&[b"v0:", time.as_bytes(), b":", body], presented), Some(time)))
        }
    };
    match signed() {
        Some((true, time)) if time.is_none_or(|time| is_recent(time, now).unwrap_or(false)) => Proof::Signed,
        Some((true, _)) => Proof::OtherTime,
        Some((false, _)) | None => Proof::Nothing,
    }
}

/// Returns whether a time in seconds since 1970 is within the tolerance.
fn is_recent(time: &str, now: DateTime<Utc>) -> Option<bool> {
    let time = DateTime::from_timestamp(time.parse().ok()?, 0)?;
    Some((now - time).abs() <= TOLERANCE)
}

/// Decodes a signature. Returns `None` if the text is not one.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let digits: Vec<u8> = text.bytes().take(129).map(|byte| digit(&byte)).collect::<Option<_>>()?;
    (digits.len() == 64).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Signs the concatenated parts. Returns the hexadecimal signature, for senders.
#[must_use]
pub fn sign(secret: &str, parts: &[&[u8]]) -> String {
    let tag = hmac::sign(&Key::new(HMAC_SHA256, secret.as_bytes()), &parts.concat());
    hexadecimal::hex(tag.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLACK: &str = "8f742231b10e8888abcd99yyyzzz85a5";
    const SLACK_BODY: &str = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const SLACK_TIME: i64 = 1_531_420_618;
    const SLACK_TAG: &str = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";

    const GITHUB: &str = "It's a Secret to Everybody";
    const GITHUB_TAG: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn check(signature: Signature, secret: &str, headers: &[(&'static str, &str)], body: &str, at: i64) -> bool {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let now = DateTime::from_timestamp(at, 0).unwrap();
        proof(signature, secret, &headers, body.as_bytes(), now) == Proof::Signed
    }

    #[test]
    fn github_signs_as_it_documents() {
        let tag = |tag: &str| check(Signature::Github, GITHUB, &[("x-hub-signature-256", tag)], "Hello, World!", 0);
        assert!(tag(GITHUB_TAG));
        assert!(tag(&GITHUB_TAG.to_uppercase().replace("SHA", "sha")));
        for wrong in
            ["", "sha256=", "757107", &GITHUB_TAG.replace('7', "8"), &GITHUB_TAG[..70], &format!("{GITHUB_TAG}00")]
        {
            assert!(!tag(wrong), "{wrong}");
        }
        assert!(!tag(&GITHUB_TAG.replace("sha256", "sha1")));
        let other = |secret, body| check(Signature::Github, secret, &[("x-hub-signature-256", GITHUB_TAG)], body, 0);
        assert!(!other("another secret of somebody", "Hello, World!"));
        assert!(!other(GITHUB, "Hello, World?"));
        assert!(!check(Signature::Github, GITHUB, &[], "Hello, World!", 0));
    }

    #[test]
    fn slack_signs_as_it_documents() {
        let time = SLACK_TIME.to_string();
        let signed = |tag: &str, body: &str, at| {
            let headers = [("x-slack-signature", tag), ("x-slack-request-timestamp", &*time)];
            check(Signature::Slack, SLACK, &headers, body, at)
        };
        assert!(signed(SLACK_TAG, SLACK_BODY, SLACK_TIME));
        assert!(signed(SLACK_TAG, SLACK_BODY, SLACK_TIME + 300));
        assert!(signed(SLACK_TAG, SLACK_BODY, SLACK_TIME - 300));
        assert!(!signed(SLACK_TAG, SLACK_BODY, SLACK_TIME + 301), "it is too old");
        assert!(!signed(SLACK_TAG, SLACK_BODY, SLACK_TIME - 301), "it is of another day");
        assert!(!signed(SLACK_TAG, "token=x", SLACK_TIME));
        assert!(!check(Signature::Slack, SLACK, &[("x-slack-signature", SLACK_TAG)], SLACK_BODY, SLACK_TIME));
    }

    /// The test event of Stripe's own libraries, signed with `webhook_secret`.
    #[test]
    fn stripe_signs_as_its_libraries_expect() {
        let event = r#"{
  "id": "evt_123",
  "object": "event",
  "account": "acct_123",
  "api_version": "2017-05-25",
  "created": 1533204620,
  "data": {
    "object": {
      "id": "ii_123",
      "object": "invoiceitem",
      "amount": 1000,
      "currency": "usd",
      "customer": "cus_123",
      "date": 1533204620,
      "description": "Test Invoice Item",
      "discountable": false,
      "invoice": "in_123",
      "livemode": false,
      "metadata": {},
      "period": {
        "start": 1533204620,
        "end": 1533204620
      },
      "proration": false,
      "quantity": 3
    }
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": {
    "id": "req_123",
    "idempotency_key": "idempotency-key-123"
  },
  "type": "invoiceitem.created"
}
"#;
        let header = "t=1533204620,v1=82216eca827bcb7b34b8055eb2d2d9e6bc13b9ac39ded14a61e69f70c565f53a,\
                      v0=63f3a72374a733066c4be69ed7f8e5ac85c22c9f0a6a612ab9a025a9e4ee7eef";
        let signed = |secret, header: &str, body: &str| {
            check(Signature::Stripe, secret, &[("stripe-signature", header)], body, 1_533_204_620 + 100)
        };
        assert!(signed("webhook_secret", header, event));
        assert!(!signed("webhook_secret_", header, event));
        assert!(!signed("webhook_secret", header, event.trim_end()));
        assert!(!signed("webhook_secret", &header.replace("v1=8", "v1=9"), event));
    }

    /// The documented scheme: HMAC of `{t}.{body}`.
    #[test]
    fn stripe_signs_the_time_too() {
        let secret = "whsec_test_secret_of_sixteen";
        let tag = sign(secret, &[b"1492774577", b".", b"{}"]);
        let signed =
            |header: &str, body, at| check(Signature::Stripe, secret, &[("stripe-signature", header)], body, at);
        let header = format!("t=1492774577,v1={tag},v0={}", "0".repeat(64));
        assert!(signed(&header, "{}", 1_492_774_577 + 300));
        assert!(signed(&format!("t=1492774577,v1={},v1={tag}", "0".repeat(64)), "{}", 1_492_774_577), "of two secrets");
        assert!(!signed(&header, "{}", 1_492_774_577 + 301));
        assert!(!signed(&header, "{ }", 1_492_774_577));
        assert!(!signed(&header.replace("t=1492774577", "t=1492774578"), "{}", 1_492_774_577));
        assert!(!signed(&header.replace("v1=", "v0="), "{}", 1_492_774_577), "an old scheme is none");
        assert!(!signed(&format!("v1={tag}"), "{}", 1_492_774_577));
        assert!(!signed("t=x,v1=", "{}", 0));
    }

    #[test]
    fn a_bearer_presents_the_secret_itself() {
        let presents = |value: &str| check(Signature::Bearer, "sixteen-letters-", &[("authorization", value)], "", 0);
        assert!(presents("Bearer sixteen-letters-"));
        for wrong in [
            "Bearer sixteen-letters",
            "Bearer ",
            "Basic sixteen-letters-",
            "sixteen-letters-",
            "Bearer sixteen-letters-x",
        ] {
            assert!(!presents(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_signature_is_made_as_it_is_checked() {
        assert_eq!(format!("sha256={}", sign(GITHUB, &[b"Hello, World!"])), GITHUB_TAG);
    }
}
