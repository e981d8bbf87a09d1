//! Headers of a request. Harmless ones describe what is requested, and by whom. Headers that frame or route a message are not harmless:
//! a second length begins another request behind the first.

use crate::programs::{Names, contains};

const NAMES: Names = "apikey authorization cache-control content-disposition content-encoding content-language \
    content-md5 content-type cookie date depth dnt from origin pragma prefer priority range referer tags title \
    user-agent x-correlation-id x-request-id x-requested-with x-title x-trace-id";
const BEGIN: &[&str] = &["accept", "if-"];
/// Ends of services' headers (`Private-Token`, `Idempotency-Key`, `Notion-Version`).
const END: &[&str] = &["-key", "-token", "-version"];

/// Parts of names of headers by which proxies choose the server and the path.
const ROUTING: Names =
    "accel backend envoy forward forwarded host original path proxy rewrite route server upstream uri url";

/// Words in names of headers by which servers choose another method.
const METHOD: &[&str] = &["action", "method", "override", "verb"];

/// Splits a header into name and value, as `curl` and `wget` do.
pub(super) fn parts(header: &str) -> (&str, &str) {
    header.split_once(':').or_else(|| header.split_once(';')).unwrap_or((header, ""))
}

/// Returns whether a text is a header's name.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Returns whether a header neither frames nor routes a request.
pub(super) fn is_harmless(header: &str) -> bool {
    let (name, value) = parts(header);
    let name = name.to_ascii_lowercase();
    // Without a value, `curl` omits its own header.
    if name == "expect" {
        return value.trim().is_empty();
    }
    let begins = BEGIN.iter().any(|begin| name.starts_with(begin));
    let listed = contains(NAMES, &name) || begins || END.iter().any(|end| name.ends_with(end));
    let routes = name.split('-').any(|part| contains(ROUTING, part)) || METHOD.iter().any(|word| name.contains(word));
    is_name(&name) && listed && !routes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_frames_or_routes_a_message_is_told_from_the_rest() {
        for list in [NAMES, ROUTING] {
            assert!(list.split_whitespace().is_sorted(), "{list:?}");
        }
        for header in [
            "Accept: text/plain",
            "accept-language:de",
            "Authorization: Bearer a.b-c",
            "Content-Type: application/json; charset=utf-8",
            "X-Api-Key: 1",
            "X-Requested-With;",
            "X-GitHub-Api-Version: 2022-11-28",
            "If-None-Match: \"a\"",
            "Cookie: a=b; c=d",
            "Private-Token: x",
            "Idempotency-Key: x",
            "anthropic-version: 2023-06-01",
            "Title: done",
            "Expect:",
            "User-Agent:",
        ] {
            assert!(is_harmless(header), "{header}");
        }
        for header in [
            "Host: c",
            "hOST:c",
            "Host:",
            ":authority: c",
            "Content-Length: 0",
            "content-length:",
            "Content-Length : 0",
            " Content-Length: 0",
            "Content-Length;",
            "Content_Length: 0",
            "Transfer-Encoding: chunked",
            "TE: trailers",
            "Trailer: x",
            "Connection: close",
            "Keep-Alive: 1",
            "Proxy-Connection: close",
            "Proxy-Authorization: x",
            "Upgrade: h2c",
            "HTTP2-Settings: x",
            "Expect: 100-continue",
            "Forwarded: host=c",
            "Via: c",
            "Destination: /x",
            "X-Forwarded-Host: c",
            "X-Original-URL: /admin",
            "X-Rewrite-Url: /admin",
            "X-Host: c",
            "X-HTTP-Method-Override: DELETE",
            "X-HTTP-Method: DELETE",
            "X-Method-Override: DELETE",
            "X-HTTPMethodOverride: DELETE",
            "X-HttpMethod: DELETE",
            "X-Verb: DELETE",
            "X-Action: delete",
            "X-Envoy-Original-Path: /admin",
            "Accept; Host: c",
            "X-A\u{e9}: x",
            "Accept ",
            "@notes/headers",
            "",
            ":",
            "https://a.b/",
        ] {
            assert!(!is_harmless(header), "{header}");
        }
    }
}
