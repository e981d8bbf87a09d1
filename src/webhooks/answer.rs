//! The answer to a request: the order of the checks, and each refusal.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Bytes};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use serde_json::{Value as Json, json};

use super::delivery::{delivery, payload};
use super::listener::Webhooks;
use super::refusals::{Refused, kept};
use super::signature::{self, Proof};
use crate::config::secrets;
use crate::connections::KnownCaller;
use crate::definition::{Definition, DefinitionId, Hook, PayloadFault, Signature};
use crate::schedule::{Accepted, DeliverError};

/// Maximum size of an accepted body, in bytes.
const LARGEST: usize = 64 * 1024;

/// Maximum amount read of a larger body, in bytes. Reading on lets its sender read the answer.
const MAX_DRAINED: usize = 1024 * 1024;

/// Maximum time to receive a body.
const TIMEOUT: Duration = Duration::from_secs(10);

/// `Retry-After` while everything is paused.
const PAUSED_FOR: Duration = Duration::from_secs(300);

const NO_SECRET: &str = "this webhook has no secret yet";

const NO_SECRETS: &str = "the secrets cannot be read now";

/// The same for the person.
const NO_ENV_FILE: &str = "`.env` cannot be used, so no delivery can be checked; `ollim-bot doctor` says why";

const OTHER_TIME: &str = "it is signed, but at a time more than 5 minutes from now";

/// A refusal of a request.
struct Denial {
    status: StatusCode,
    why: &'static str,
    /// A reason for the person that may say more than the sender may know.
    recorded: Option<&'static str>,
    faults: Vec<PayloadFault>,
    retry_after: Option<Duration>,
}

impl Denial {
    fn of(status: StatusCode, why: &'static str) -> Self {
        Self { status, why, recorded: None, faults: Vec::new(), retry_after: None }
    }

    fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    fn response(self) -> Response<Full<Bytes>> {
        let mut body = json!({ "error": self.why });
        if !self.faults.is_empty() {
            body["details"] = json!(self.faults);
        }
        let mut response = answer(self.status, &body);
        if let Some(wait) = self.retry_after {
            // Round up, so that a sender that retries at that moment is not refused again.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, seconds.max(1).into());
        }
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}

fn answer(status: StatusCode, body: &Json) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(format!("{body}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The answer to an authenticated sender.
enum Acceptance {
    Accepted(Accepted),
    /// The answer to a ping, such as GitHub's.
    Here(Json),
}

/// The known facts of a delivery, refused or not.
#[derive(Default)]
struct DeliveryFacts {
    /// The target webhook, if it exists.
    of: Option<DefinitionId>,
    /// The delivered text, once the signature is verified.
    payload: Option<String>,
}

impl Webhooks {
    /// Answers one request.
    pub(super) async fn answer<B>(&self, request: Request<B>) -> Result<Response<Full<Bytes>>, Infallible>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let mut seen = DeliveryFacts::default();
        Ok(match self.take(request, &mut seen).await {
            Ok(Acceptance::Accepted(Accepted { run, is_repeated })) => {
                answer(StatusCode::ACCEPTED, &json!({ "run": run, "again": is_repeated }))
            }
            Ok(Acceptance::Here(said)) => answer(StatusCode::OK, &said),
            Err(no) => {
                let why = no.faults.first().map(|fault| format!("{}: {fault}", no.why));
                let why = why.unwrap_or_else(|| no.recorded.unwrap_or(no.why).to_owned());
                let refused = Refused { status: no.status.as_u16(), why, payload: seen.payload };
                self.refusals.add(seen.of.as_ref(), refused);
                no.response()
            }
        })
    }

    /// Checks a request in order and accepts it. Sets the fields of `seen` as they become known.
    async fn take<B>(&self, request: Request<B>, seen: &mut DeliveryFacts) -> Result<Acceptance, Denial>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (head, body) = request.into_parts();
        let Some(name) = head.uri.path().strip_prefix("/hook/").filter(|name| !name.is_empty() && !name.contains('/'))
        else {
            return Err(Denial::of(StatusCode::NOT_FOUND, "nothing is here"));
        };
        if head.method != Method::POST {
            return Err(Denial::of(StatusCode::METHOD_NOT_ALLOWED, "deliveries are posted"));
        }
        if self.is_of_run(&head.headers, head.uri.query().unwrap_or_default()) {
            return Err(Denial::of(StatusCode::FORBIDDEN, "a job delivers nothing"));
        }
        let hooks = self.definitions.hooks().await;
        seen.of = hooks.iter().find(|hook| hook.id.as_str() == name).map(|hook| hook.id.clone());
        let body = read(body).await?;
        let (definition, hook) = self.sent_to(name, hooks, &head.headers, &body).await?;
        if let Some(sender) = head.extensions.get::<KnownCaller>() {
            sender.note();
        }
        seen.payload = kept(&body);
        if let Err(wait) = self.rates.take(&definition.id, hook.per_minute) {
            return Err(Denial::of(StatusCode::TOO_MANY_REQUESTS, "too many deliveries").retry_after(wait));
        }
        let payload = payload(&head.headers, &body).map_err(|fault| invalid(vec![fault]))?;
        if hook.signature == Signature::Slack && payload["type"] == "url_verification" {
            return Ok(Acceptance::Here(json!({ "challenge": payload["challenge"].as_str().unwrap_or_default() })));
        }
        if hook.signature == Signature::Github
            && head.headers.get("x-github-event").is_some_and(|event| event == "ping")
        {
            return Ok(Acceptance::Here(json!({ "pong": true })));
        }
        let faults = hook.fields.as_ref().map(|schema| schema.faults(&payload)).unwrap_or_default();
        if !faults.is_empty() {
            return Err(invalid(faults));
        }
        let delivery = delivery(hook.signature, &head.headers, &payload, &body, self.clock.now());
        // The file may just have been paused.
        self.definitions.reread_one(&definition.id, definition.file.clone()).await;
        let accepted = self.schedule.deliver(definition.id.clone(), delivery).await;
        accepted.map(Acceptance::Accepted).map_err(|error| {
            let unavailable = |why| Denial::of(StatusCode::SERVICE_UNAVAILABLE, why);
            match error {
                DeliverError::NotFound(_) => Denial::of(StatusCode::NOT_FOUND, "there is no such webhook"),
                DeliverError::Paused => unavailable("it is paused").retry_after(PAUSED_FOR),
                DeliverError::Full => unavailable("too many deliveries wait already").retry_after(PAUSED_FOR),
                DeliverError::Journal(_) => unavailable("it could not be recorded").retry_after(PAUSED_FOR),
                DeliverError::Stopping => unavailable("the service is ending").retry_after(Duration::from_secs(30)),
            }
        })
    }

    /// Finds the webhook with this name, if the sender signed with its secret. A sender with another webhook's secret learns if
    /// it does not exist or has no secret. Any other sender gets the same answer, after the same work, whether it exists or not.
    async fn sent_to(
        &self,
        name: &str,
        hooks: Vec<Arc<Definition>>,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<(Arc<Definition>, Hook), Denial> {
        let (home, env) = (self.home.clone(), self.env.clone());
        // Read each time, so that an edit of `.env` takes effect at once, like one of a webhook's file.
        let read = tokio::task::spawn_blocking(move || secrets::read(&home, &env)).await;
        let read = match read {
            Ok(Ok(secrets)) => Ok(secrets),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        self.report_secrets(read.as_ref().err()).await;
        let Ok(secrets) = read else {
            // The sender may have signed, so it should send again.
            let no = Denial::of(StatusCode::SERVICE_UNAVAILABLE, NO_SECRETS).retry_after(PAUSED_FOR);
            return Err(Denial { recorded: Some(NO_ENV_FILE), ..no });
        };
        let now = self.clock.now();
        let (mut known, mut found) = (false, None);
        for definition in hooks {
            let Some(hook) = definition.hook().cloned() else { continue };
            let secret = secrets.get(&hook.secret_env).filter(|secret| secrets::may_be_shared(secret));
            let signed = secret.map(|secret| signature::proof(hook.signature, secret, headers, body, now));
            known |= signed == Some(Proof::Signed);
            if definition.id.as_str() == name {
                found = Some((definition, hook, signed));
            }
        }
        let unknown = Denial::of(StatusCode::UNAUTHORIZED, "there is no such webhook, or the signature is not right");
        match found {
            Some((definition, hook, Some(Proof::Signed))) => Ok((definition, hook)),
            Some((_, _, Some(Proof::OtherTime))) => Err(Denial { recorded: Some(OTHER_TIME), ..unknown }),
            Some((_, _, None)) if known => {
                let no = Denial::of(StatusCode::SERVICE_UNAVAILABLE, NO_SECRET);
                Err(no.retry_after(PAUSED_FOR))
            }
            Some((_, _, None)) => Err(Denial { recorded: Some(NO_SECRET), ..unknown }),
            None if known => Err(Denial::of(StatusCode::NOT_FOUND, "there is no such webhook")),
            Some((_, _, Some(Proof::Nothing))) | None => Err(unknown),
        }
    }

    /// Returns whether the request presents the token of a live run.
    fn is_of_run(&self, headers: &HeaderMap, query: &str) -> bool {
        let texts = headers.values().filter_map(|value| value.to_str().ok()).chain([query]);
        let mut words = texts.flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()));
        words.any(|word| self.tokens.find(word).is_some())
    }
}

fn invalid(faults: Vec<PayloadFault>) -> Denial {
    Denial { faults, ..Denial::of(StatusCode::UNPROCESSABLE_ENTITY, "this is not what the webhook takes") }
}

/// Reads the whole body.
async fn read<B: Body<Data = Bytes> + Unpin>(mut body: B) -> Result<Vec<u8>, Denial> {
    let too_slow = |_| Denial::of(StatusCode::REQUEST_TIMEOUT, "the body took too long");
    let read = async {
        let (mut bytes, mut length) = (Vec::new(), 0);
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return Err(Denial::of(StatusCode::BAD_REQUEST, "the body came to no end")) };
            let Some(data) = frame.data_ref() else { continue };
            length += data.len();
            if length <= LARGEST {
                bytes.extend_from_slice(data);
            } else if length > MAX_DRAINED {
                break;
            }
        }
        if length > LARGEST {
            return Err(Denial::of(StatusCode::PAYLOAD_TOO_LARGE, "a delivery has at most 64 KiB"));
        }
        Ok(bytes)
    };
    tokio::time::timeout(TIMEOUT, read).await.map_err(too_slow)?
}
