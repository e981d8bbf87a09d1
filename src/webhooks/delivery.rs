//! The payload of an authenticated request: an object, and the key of the delivery.

use chrono::{DateTime, TimeDelta, Utc};
use hyper::HeaderMap;
use serde_json::Value as Json;

use crate::definition::{PayloadFault, Signature};
use crate::hexadecimal::sha256;
use crate::schedule::Delivery;

/// Maximum length of a delivery's id that is kept verbatim.
const LONGEST_ID: usize = 100;

/// Time for which equal content without an id counts as the same delivery, since senders retry.
const SAME_CONTENT: TimeDelta = TimeDelta::hours(1);

/// Parses a body as a JSON object or a form. A JSON object is accepted under any content type, since `curl -d` declares everything a form.
pub(super) fn payload(headers: &HeaderMap, body: &[u8]) -> Result<Json, PayloadFault> {
    let fault = |message: String| PayloadFault { path: String::new(), message };
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_form = kind.trim_start().to_ascii_lowercase().starts_with("application/x-www-form-urlencoded");
    match serde_json::from_slice(body) {
        Ok(object @ Json::Object(_)) => Ok(object),
        _ if is_form => {
            let fields = form_urlencoded::parse(body);
            Ok(Json::Object(fields.map(|(name, value)| (name.into_owned(), Json::from(value.into_owned()))).collect()))
        }
        Ok(_) => Err(fault("it must be a JSON object".to_owned())),
        Err(error) => Err(fault(format!("it is not JSON: line {}, column {}", error.line(), error.column()))),
    }
}

/// Builds the delivery of a payload. Its key is the sender's id, or else its content.
pub(super) fn delivery(
    signature: Signature,
    headers: &HeaderMap,
    payload: &Json,
    body: &[u8],
    now: DateTime<Utc>,
) -> Delivery {
    let header = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    let field = |name: &str| Some(payload.get(name)?.as_str()?.to_owned());
    // Of Stripe and Slack the id is signed. With another one beside it, a repetition would be a new delivery.
    let ids = match signature {
        Signature::Bearer => [header("idempotency-key"), None],
        Signature::Github => [header("idempotency-key"), header("x-github-delivery")],
        Signature::Stripe => [field("id"), None],
        Signature::Slack => [field("event_id"), None],
    };
    let id = ids.into_iter().flatten().find(|id| !id.trim().is_empty());
    let (key, since) = match id {
        Some(id) if id.len() <= LONGEST_ID && !id.contains(char::is_control) => {
            (format!("id {id}"), DateTime::UNIX_EPOCH)
        }
        Some(id) => (format!("id sha256 {}", sha256(id.as_bytes())), DateTime::UNIX_EPOCH),
        None => (format!("content sha256 {}", sha256(body)), now - SAME_CONTENT),
    };
    Delivery { key, payload: payload.to_string(), since }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_body_is_an_object_or_says_what_it_is() {
        let form = [("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
        for (all, body, expected) in [
            (&[][..], r#"{"a": [1]}"#, Ok(r#"{"a":[1]}"#)),
            (&form, "a=1+2&b=%7Bx%7D&b=y", Ok(r#"{"a":"1 2","b":"y"}"#)),
            (&form, "", Ok("{}")),
            // As sent by `curl -d`.
            (&form, r#"{"door": "front"}"#, Ok(r#"{"door":"front"}"#)),
            (&form, "{door}=1&[1]=2", Ok(r#"{"[1]":"2","{door}":"1"}"#)),
            (&form, "[1]", Ok(r#"{"[1]":""}"#)),
            (&[], "[1]", Err("it must be a JSON object")),
            (&[], "{\n\"a\": }", Err("it is not JSON: line 2, column 6")),
            (&[], "", Err("it is not JSON: line 1, column 0")),
        ] {
            let found = payload(&headers(all), body.as_bytes());
            let found = found.map(|json| json.to_string()).map_err(|fault| fault.message);
            assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{body}");
        }
        assert!(payload(&headers(&[]), &[b'{', 0xff, b'}']).is_err());
        assert!(payload(&headers(&[]), "[".repeat(10_000).as_bytes()).is_err(), "it is too deep");
    }

    #[test]
    fn a_delivery_is_known_by_its_id_or_its_content() {
        use Signature::{Bearer, Github, Slack, Stripe};
        let content = "content sha256 44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        for (signature, all, body, expected) in [
            (Bearer, &[][..], "{}", content),
            (Bearer, &[("x-github-delivery", "7")], "{}", content),
            (Bearer, &[("idempotency-key", " ")], "{}", content),
            (Bearer, &[("idempotency-key", "k1")], "{}", "id k1"),
            (Github, &[("x-github-delivery", "72d3")], "{}", "id 72d3"),
            (Github, &[("x-github-delivery", "72d3"), ("idempotency-key", "k1")], "{}", "id k1"),
            (Stripe, &[], r#"{"id":"evt_1"}"#, "id evt_1"),
            (Github, &[("x-github-delivery", "72d3"), ("idempotency-key", "")], "{}", "id 72d3"),
            (Stripe, &[], "{}", content),
            (Stripe, &[("idempotency-key", "k1")], "{}", content),
            (Stripe, &[("idempotency-key", "k1")], r#"{"id":"evt_1"}"#, "id evt_1"),
            (Slack, &[("idempotency-key", "k1")], r#"{"event_id":"Ev1"}"#, "id Ev1"),
            (Slack, &[], r#"{"event_id":"Ev1"}"#, "id Ev1"),
        ] {
            let payload = serde_json::from_str(body).unwrap();
            let now = DateTime::from_timestamp(7200, 0).unwrap();
            let found = delivery(signature, &headers(all), &payload, body.as_bytes(), now);
            assert_eq!(found.key, expected, "{signature:?} {all:?}");
            assert_eq!(found.since.timestamp(), if found.key == content { 3600 } else { 0 });
        }
        let long = delivery(
            Bearer,
            &headers(&[("idempotency-key", &"x".repeat(101))]),
            &Json::Null,
            b"",
            DateTime::UNIX_EPOCH,
        );
        assert!(long.key.starts_with("id sha256 "));
    }
}
