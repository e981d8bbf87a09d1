//! Compares the addresses of a call with those of a rule.
//!
//! An address is compared only if `curl`, `wget` and a server read it alike: its host is a plain name with a port, and
//! the rest consists of characters that nothing expands and that end no host. Every other address must be in the rule
//! verbatim.

use crate::hosts;
use crate::request::clipped;
use crate::wildcard::{STAR, StarInWord, Wildcard};

/// The parts of an address.
struct AddressParts<'a> {
    scheme: Option<&'a str>,
    /// The host with its port and user (`ann@host:80`).
    authority: &'a str,
    /// The path and everything behind it.
    rest: &'a str,
}

impl<'a> AddressParts<'a> {
    /// Parses an address of a call, or of a rule, which may have a star in each part.
    fn of(text: &'a str) -> Self {
        let in_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c) || c == STAR;
        let (scheme, after) = match text.split_once("://") {
            Some((scheme, after)) if !scheme.is_empty() && scheme.chars().all(in_scheme) => (Some(scheme), after),
            _ => (None, text),
        };
        let (authority, rest) = after.split_at(after.find(['/', '?', '#']).unwrap_or(after.len()));
        Self { scheme, authority, rest }
    }

    /// Returns whether the address has a scheme other than those of the web.
    fn is_elsewhere(&self) -> bool {
        self.scheme.is_some_and(|scheme| !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()))
    }
}

/// The addresses of a rule.
pub(super) struct AddressRules<'a> {
    any: bool,
    spelled: Vec<(&'a str, Wildcard)>,
}

impl<'a> AddressRules<'a> {
    /// `any`: the rule names no address, and grants every one on the web.
    pub(super) fn new(any: bool, addresses: &'a [String]) -> Self {
        Self { any, spelled: addresses.iter().map(|address| (address.as_str(), Wildcard::name(address))).collect() }
    }

    /// Returns the reason why an address is not granted, or `None` if it is.
    pub(super) fn refuses(&self, address: &str) -> Option<String> {
        if self.spelled.iter().any(|(spelled, _)| *spelled == address) {
            return None;
        }
        let (parts, shown) = (AddressParts::of(address), clipped(address));
        // A rule that spells another scheme means it.
        let mut schemes = self.spelled.iter().map(|(spelled, _)| AddressParts::of(spelled).scheme);
        let is_spelled = parts.is_elsewhere() && schemes.any(|scheme| scheme == parts.scheme);
        if !is_spelled && !is_web(address) {
            return Some(format!("`{shown}` is no address on the web (http, https)"));
        }
        if self.any {
            return None;
        }
        if let Some(c) = parts.rest.chars().find(|c| !is_plain(*c)) {
            return Some(format!(
                "`{}` cannot stand in `{shown}`; it is written `{}`",
                clipped(&c.to_string()),
                escaped(c)
            ));
        }
        if climbs(parts.rest.split(['?', '#']).next().unwrap_or_default()) {
            return Some(format!("`{shown}` leads out of its folder by dots"));
        }
        let before_path = parts.rest.split('/').next().unwrap_or_default();
        let host = |(spelled, _): &(&str, _)| is_host_of(spelled, &parts);
        if before_path.contains('@') || !self.spelled.iter().any(host) {
            return Some(format!("`{shown}` is on another host than the rule names"));
        }
        let named = |(spelled, wildcard): &(&str, Wildcard)| {
            is_host_of(spelled, &parts) && wildcard.matches(address) && keeps_path(wildcard, address)
        };
        (!self.spelled.iter().any(named)).then(|| format!("`{shown}` is not the address that the rule names"))
    }

    /// Returns whether the rule also grants what an address of another rule grants.
    pub(super) fn covers(&self, inner: &str) -> bool {
        if !inner.contains(STAR) {
            return self.refuses(inner).is_none();
        }
        let parts = AddressParts::of(inner);
        let covers = |(spelled, wildcard): &(&str, Wildcard)| {
            let outer = AddressParts::of(spelled);
            let scheme = outer.scheme == parts.scheme || !parts.is_elsewhere();
            scheme
                && Host::of(&outer).covers(&Host::of(&parts))
                && wildcard.covers(&Wildcard::name(inner))
                && (*spelled == inner || keeps_path(wildcard, inner))
        };
        if self.any { !parts.is_elsewhere() } else { self.spelled.iter().any(covers) }
    }
}

/// The host in a rule's address.
struct Host<'a> {
    /// The user, if given.
    who: Option<&'a str>,
    /// The name in lower case, with the port if given.
    name: String,
    /// Whether the address ends in a star right behind the host (`https://a.b*`). The star stands for a port and for everything behind
    /// the host, but not for more of its name.
    open: bool,
}

impl<'a> Host<'a> {
    fn of(rule: &AddressParts<'a>) -> Self {
        let (who, name) = match rule.authority.rsplit_once('@') {
            Some((who, name)) => (Some(who), name),
            None => (None, rule.authority),
        };
        let ends = |head: &&str| head.ends_with(|c: char| c.is_ascii_alphanumeric() || c == ']');
        let head = name.strip_suffix(STAR).filter(|_| rule.rest.is_empty()).filter(ends);
        Self { who, name: head.unwrap_or(name).to_ascii_lowercase(), open: head.is_some() }
    }

    /// Returns whether an address is on this host.
    fn has(&self, address: &AddressParts<'_>) -> bool {
        let Host { who, name, .. } = Host::of(address);
        who == self.who && is_host(&name) && self.names(&name).any(|(named, name)| is_named(&named, name))
    }

    /// Returns whether this stands for every host for which `other` stands.
    fn covers(&self, other: &Self) -> bool {
        let covers = |(named, name): (Wildcard, &str)| {
            named.covers(&Wildcard::name(name)) && (self.name == name || is_named(&named, name))
        };
        other.who == self.who && self.names(&other.name).any(covers)
    }

    /// Returns the comparable forms: the name, and the name without its port.
    fn names<'b>(&self, asked: &'b str) -> impl Iterator<Item = (Wildcard, &'b str)> {
        let digits = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let bare = asked.rsplit_once(':').filter(|(_, port)| self.open && digits(port)).map(|(bare, _)| bare);
        let named = Wildcard::name(&self.name);
        std::iter::once(asked).chain(bare).map(move |name| (named.clone(), name))
    }
}

/// Returns whether a name is one for which a rule's name stands.
fn is_named(named: &Wildcard, name: &str) -> bool {
    named.matches(name) && named.matches_within_words(name, hosts::stays_in_host)
}

/// Returns whether an address is on the host of a rule's address.
fn is_host_of(spelled: &str, address: &AddressParts<'_>) -> bool {
    let rule = AddressParts::of(spelled);
    let same = rule.authority == address.authority && (!rule.authority.is_empty() || address.is_elsewhere());
    same || Host::of(&rule).has(address)
}

/// Returns whether every program reads a text as a host: a name, or an IPv6 address in brackets, with an optional port.
fn is_host(text: &str) -> bool {
    let port = match text.strip_prefix('[') {
        Some(literal) => literal.split_once(']').and_then(|(inner, port)| {
            let plain = |byte: u8| byte.is_ascii_hexdigit() || b":.".contains(&byte);
            (!inner.is_empty() && inner.bytes().all(plain)).then_some(port)
        }),
        None => {
            let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            (!name.is_empty() && name.bytes().all(plain)).then_some(port)
        }
    };
    port.is_some_and(|port| {
        port.is_empty()
            || (port.len() > 1 && port.starts_with(':') && port[1..].bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Returns whether a character behind the host means the same to every program: unreserved and reserved ones of RFC 3986, without
/// brackets, which `curl` expands, and letters of other scripts.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "-._~:/?#@!$&'()*+,;=%".contains(c)
}

/// Percent-encodes a character that must not be in an address.
fn escaped(c: char) -> String {
    c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Returns whether a path has dots that lead out of a folder, plain or escaped, with parameters (`..;x`) or without. `%25` is a `%` for
/// programs that unescape twice.
pub(crate) fn climbs(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let mut plain = String::with_capacity(path.len());
    let mut rest = path.as_str();
    while let Some((before, after)) = rest.split_once('%') {
        plain.push_str(before);
        let code = after.trim_start_matches("25");
        let known = [("2e", '.'), ("2f", '/'), ("5c", '/'), ("3b", ';')];
        match known.iter().find_map(|(code_of, c)| Some((code.strip_prefix(code_of)?, c))) {
            Some((after, c)) => {
                plain.push(*c);
                rest = after;
            }
            None => {
                plain.push('%');
                rest = code;
            }
        }
    }
    plain.push_str(rest);
    // A part may also end where the path does: `-v /srv/..:/data`, `x/..?ref=main`.
    plain.split(['/', '\\']).any(|part| part.split([';', ':', ',', '?', '#', '&', '=']).next() == Some(".."))
}

/// Returns whether each star of an address leaves the text behind it in the path.
fn keeps_path(rule: &Wildcard, address: &str) -> bool {
    rule.matches_within_words(address, |star| !cuts_path(star))
}

/// Returns whether a star in an address makes a query or a fragment of the text that the rule has behind it (`https://h/repos/*/labels` and
/// `repos/x#/labels`), plain or escaped. At the end of its word it may begin one.
pub(crate) fn cuts_path(star: &StarInWord<'_>) -> bool {
    let text = star.stands_for.to_ascii_lowercase();
    // `%25` is a `%` for programs that unescape twice.
    let mut parts = text.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    let text = parts.fold(first, |text, part| format!("{text}%{}", part.trim_start_matches("25")));
    let ends = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
    !star.behind.is_empty()
        && match star.before.contains('?') {
            true => ends(&["#"]),
            false => ends(&["?", "#", ";", "%3f", "%23", "%3b"]),
        }
}

/// Returns whether programs read a text as an address on the web. Without a scheme they guess one by the host's name.
fn is_web(address: &str) -> bool {
    const GUESSED: &[&str] = &["ftp", "dict", "ldap", "imap", "smtp", "pop3", "file"];
    let parts = AddressParts::of(address);
    if parts.scheme.is_some() {
        return !parts.is_elsewhere();
    }
    let name = parts.authority.split('.').next().unwrap_or_default().to_ascii_lowercase();
    is_host(parts.authority) && !address.starts_with('-') && !GUESSED.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn refused(rule: &str, address: &str) -> Option<String> {
        let rule = [rule.replace('*', "\u{1}")];
        AddressRules::new(false, &rule).refuses(address)
    }

    #[track_caller]
    fn check(rule: &str, granted: &[&str], others: &[&str]) {
        for address in granted {
            assert_eq!(refused(rule, address), None, "{rule}: {address}");
        }
        for address in others {
            assert!(refused(rule, address).is_some(), "{rule}: {address}");
        }
    }

    #[test]
    fn a_rule_grants_its_own_host() {
        check(
            "https://a.b*",
            &[
                "https://a.b",
                "https://a.b/x",
                "https://a.b?q=x",
                "https://a.b:8443/x",
                "https://a.b/@x",
                "https://a.b#x",
            ],
            &[
                "https://a.b@evil/",
                "https://@a.b/",
                "https://a.b\\@evil/",
                "https://a.b\\/x",
                "https://a.b:@evil/",
                "https://a.b:80@evil/",
                "https://a.b;@evil/",
                "https://a.b?@evil/",
                "https://a.b#@evil/",
                "https://a.b%40evil/",
                "https://a.b.evil/",
                "https://a.bc/",
                "https://a.b:x/",
                "https://a.b:/",
                "https://a.b\u{ff0f}evil/",
                "https://a.b /",
                "https://a.b\t/",
                "https://{a.b,evil}/",
            ],
        );
        check("http://a.b:81*", &["http://a.b:81/x", "http://a.b:81"], &["http://a.b:810/x", "http://a.b:81:2/"]);
        check("http://localhost:*", &["http://localhost:1", "http://localhost:80/x"], &["http://localhost:80@evil/"]);
        check("http://10.0.0.*", &["http://10.0.0.7/x"], &["http://10.0.0.7@evil/", "http://10.0.0.7\\@evil/"]);
        check("https://*.b.c/*", &["https://a.b.c/y"], &["https://127.0.0.1/x.b.c/y", "https://evil\u{ff0f}x.b.c/y"]);
        check("https://*", &["https://a.b.c/y", "https://a.b"], &["https:///evil", "https://a@b/"]);
        check("http*://a.b/*", &["http://a.b/x", "https://a.b/x"], &["https://evil/?://a.b/x"]);
        check("http://[::1]:8080/*", &["http://[::1]:8080/x"], &["http://[::2]:8080/x", "http://[::1%25lo]:8080/x"]);
        check(
            "https://u:p@a.b/*",
            &["https://u:p@a.b/x"],
            &["https://u:q@a.b/x", "https://a.b/x", "https://@a.b/x", "https://u:p@a.b@c/"],
        );
        check("https://u@*.b.c/*", &["https://u@a.b.c/x"], &["https://u@evil/.b.c/x", "https://x@u@a.b.c/"]);
        check("a.b/*", &["a.b/x", "a.b/x?u=https://c/"], &["a.b.evil/x", "https://a.b/x"]);
        check("file:///w/*", &["file:///w/x"], &["file:///etc/passwd", "file:///w/../etc", "file://w/x", "ftp:///w/x"]);
    }

    #[test]
    fn what_follows_the_host_is_read_in_one_way() {
        check(
            "https://a.b/v/*",
            &[
                "https://a.b/v/a..b?q=../x",
                "https://a.b/v/p%2Fq",
                "https://a.b/v/ü/100%25",
                "https://a.b/v/~a(b)'c!$&*+,;=:@",
            ],
            &[
                "https://a.b/v/../x",
                "https://a.b/v/..",
                "https://a.b/v/%2E%2e/x",
                "https://a.b/v/..%2fx",
                "https://a.b/v/..%5cx",
                "https://a.b/v/%252e%252e/x",
                "https://a.b/v/%25252e./x",
                "https://a.b/v/..;/x",
                "https://a.b/v/..%3b/x",
                "https://a.b/v\\..\\x",
                "https://a.b/v/..\\x",
                "https://a.b/v/{.}./x",
                "https://a.b/v/[1-3]",
                "https://a.b/v/a b",
                "https://a.b/v/a\r\nb",
                "https://a.b/v/\u{fffd}",
                "https://a.b/w",
            ],
        );
        // Text that the rule spells itself is granted.
        check("https://a.b/{x}/../[1-3]", &["https://a.b/{x}/../[1-3]"], &["https://a.b/{y}/../[1-3]"]);
        assert_eq!(
            refused("https://a.b/*", "https://a.b/a\\b").as_deref(),
            Some("`\\` cannot stand in `https://a.b/a\\b`; it is written `%5C`")
        );
    }

    #[test]
    fn without_an_address_each_one_on_the_web_is_granted() {
        let any = AddressRules::new(true, &[]);
        for address in ["https://a", "HTTP://b c", "d.de:80/x", "https://{a,b}/[1-3]"] {
            assert_eq!(any.refuses(address), None, "{address}");
        }
        for address in
            ["file:///etc/passwd", "FILE:/x", "ftp.a.b", "FTP.a", "dict://a", "a:b", "-", "{file,http}://a", ""]
        {
            assert!(any.refuses(address).is_some(), "{address}");
        }
    }

    #[test]
    fn covering_is_sound() {
        for (outer, inner, covers) in [
            ("https://a/*", "https://a/b*", true),
            ("https://a/*", "https://a/b", true),
            ("https://a/v/*", "https://a/v/../b", false),
            ("https://a/v/*", "https://a/v/{b}", false),
            ("https://a.b*", "https://a.b/*", true),
            ("https://a.b*", "https://a.b*", true),
            ("https://a.b*", "https://a.b.evil/*", false),
            ("https://a.b*", "https://a.bc*", false),
            ("https://*", "https://*.b.c/*", true),
            ("https://*.b.c/*", "https://x.b.c/*", true),
            ("*://a/*", "file://a/*", false),
        ] {
            let of = |text: &str| [text.replace('*', "\u{1}")];
            assert_eq!(AddressRules::new(false, &of(outer)).covers(&of(inner)[0]), covers, "{outer} covers {inner}");
        }
        let any = AddressRules::new(true, &[]);
        assert!(any.covers("https://a/\u{1}") && any.covers("https://a") && any.covers("a.b/\u{1}"));
        assert!(!any.covers("file:///\u{1}") && !any.covers("file:///x"));
    }

    const PIECES: &[&str] = &[
        "https://", "http://", "a.b", "evil", "@", "\\", "/", "?", "#", ":", "80", ";", "%40", "%5c", "%2e", "..", ".",
        "{", "}", ",", "[", "]", " ", "\t", "\u{ff0f}", "x", "&", "=", "-", "file://", "*",
    ];

    /// Returns whether an address is on a host under the strictest reading: `https://`, its name, and a `/`.
    fn is_plainly_on(host: &str, address: &str) -> bool {
        let after = address.strip_prefix("https://").and_then(|rest| rest.strip_prefix(host));
        after.is_some_and(|after| {
            let port = after.strip_prefix(':').map(|port| port.trim_start_matches(|c: char| c.is_ascii_digit()));
            let after = port.unwrap_or(after);
            let authority = after.split('/').next().unwrap_or_default();
            (after.is_empty() || after.starts_with(['/', '?', '#'])) && !authority.contains(['@', '\\'])
        })
    }

    proptest! {
        #[test]
        fn no_spelling_of_an_address_reaches_another_host(
            glued in any::<bool>(), tail in proptest::collection::vec(select(PIECES), 0..8), front in any::<bool>(),
        ) {
            let address = format!("{}{}", if front { "https://a.b" } else { "" }, tail.concat());
            let rule = if glued { "https://a.b*" } else { "https://a.b/*" };
            if refused(rule, &address).is_none() {
                prop_assert!(is_plainly_on("a.b", &address), "{}", address);
                prop_assert!(!address.contains(['\\', '{', '}', '[', ']', ' ', '\t']), "{}", address);
            }
        }
    }
}
