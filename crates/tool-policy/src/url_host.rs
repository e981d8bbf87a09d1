//! Hosts of URLs, for `WebFetch(domain:…)`.
//!
//! URL parsers differ in edge cases. If one could read another host than this module, there is no host.

/// Returns the host of a plain http(s) URL, in lower case. `None` for other URLs, and for those that parsers could read differently
/// (credentials, a backslash, escapes, control characters, characters outside ASCII).
pub(super) fn host(url: &str) -> Option<String> {
    let lower = url.to_ascii_lowercase();
    let rest = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.' || c == '_';
    if !url.chars().all(|c| !c.is_control() && !c.is_whitespace() && c != '\\')
        || !port.bytes().all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let host = host.strip_suffix('.').unwrap_or(host);
    (!host.is_empty() && host.chars().all(plain)).then(|| host.to_owned())
}

/// A rule for hosts: `h` matches exactly that host, `*.h` its subdomains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostRule {
    host: String,
    subdomains: bool,
}

impl HostRule {
    /// Compiles the text after `domain:`.
    pub(super) fn new(text: &str) -> Self {
        let lower = text.trim_end_matches('.').to_ascii_lowercase();
        match lower.strip_prefix("*.") {
            Some(host) => Self { host: host.into(), subdomains: true },
            None => Self { host: lower, subdomains: false },
        }
    }

    pub(super) fn matches(&self, host: &str) -> bool {
        if self.subdomains {
            host.strip_suffix(&self.host).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        } else {
            host == self.host
        }
    }

    /// Matches for a denial: an address in another notation could be the denied one.
    pub(super) fn matches_possibly(&self, host: &str) -> bool {
        let is_number = |host: &str| {
            host.rsplit('.')
                .next()
                .is_some_and(|last| last.starts_with("0x") || last.bytes().all(|b| b.is_ascii_digit()))
        };
        self.matches(host) || (is_number(&self.host) && is_number(host))
    }

    pub(super) fn covers(&self, other: &Self) -> bool {
        self == other || (self.subdomains && self.matches(&other.host))
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self == other
            || (self.subdomains && self.matches(&other.host))
            || (other.subdomains && other.matches(&self.host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_exact_or_subdomains() {
        let matches = |rule: &str, url: &str| host(url).is_some_and(|host| HostRule::new(rule).matches(&host));
        assert!(matches("docs.rs", "https://docs.rs/serde"));
        assert!(matches("docs.rs", "HTTPS://DOCS.RS:443/x?y#z"));
        assert!(matches("Docs.rs", "http://docs.rs."));
        assert!(matches("*.rs", "https://docs.rs"));
        assert!(matches("*.docs.rs", "https://a.b.docs.rs/"));
        for (rule, url) in [
            ("docs.rs", "https://evil.docs.rs/"),
            ("docs.rs", "https://docs.rs.evil.com/"),
            ("docs.rs", "https://docs.rs@evil.com/"),
            ("docs.rs", "https://evil.com/?docs.rs"),
            ("docs.rs", "https://evil.com\\@docs.rs/"),
            ("docs.rs", "https://docs.rs%2eevil.com/"),
            ("docs.rs", "ftp://docs.rs/"),
            ("docs.rs", "docs.rs"),
            ("docs.rs", "https://docs\u{3002}rs/"),
            ("docs.rs", "https://\tdocs.rs/"),
            ("docs.rs", ""),
            ("*.docs.rs", "https://docs.rs/"),
            ("*.docs.rs", "https://xdocs.rs/"),
        ] {
            assert!(!matches(rule, url), "{rule} on {url}");
        }
    }

    #[test]
    fn a_denied_address_is_denied_in_every_notation() {
        let rule = HostRule::new("127.0.0.1");
        for host in ["127.0.0.1", "2130706433", "0x7f.1", "127.1"] {
            assert!(rule.matches_possibly(host), "{host}");
        }
        assert!(!rule.matches_possibly("docs.rs"));
    }
}
