//! `curl` and `wget`: of their many options only a known few are harmless, every other one must stand in the rule, and
//! the address of a rule is the only one that it grants.

mod table;

use table::{CURL, FLAGS, Harmless, VALUED, WGET};

use super::options::{Effect, Found};
use super::wildcard::{STAR, Wildcard};

/// A call, or the words of a rule, taken apart.
pub(super) struct Fetch {
    /// The options that a rule must spell.
    pub guarded: Vec<Found>,
    /// Addresses, and whatever else is no option.
    pub operands: Vec<String>,
    /// The words without harmless options.
    pub plain: Vec<String>,
    /// In a rule: a word that is a star alone, which stands for any address.
    pub any_address: bool,
}

/// Reads the arguments of `curl` or `wget`.
pub(super) fn read(program: &str, arguments: &[String]) -> Fetch {
    let table = if program.ends_with("wget") { &WGET } else { &CURL };
    let star = STAR.to_string();
    let mut out = Fetch {
        guarded: Vec::new(),
        operands: Vec::new(),
        plain: Vec::new(),
        // At the end of a rule it stands for any words.
        any_address: arguments.last() == Some(&star),
    };
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        at += 1;
        let from = at - 1;
        if word == "--" {
            out.operands.extend_from_slice(&arguments[at..]);
            out.plain.extend_from_slice(&arguments[from..]);
            break;
        }
        let harmless = match word.strip_prefix('-') {
            Some("") | None => {
                if *word == star {
                    // In a rule it stands for any address.
                    out.any_address = true;
                } else {
                    out.operands.push(word.clone());
                }
                false
            }
            Some(rest) => match rest.strip_prefix('-') {
                Some(long) => table.long(long, arguments, &mut at, &mut out.guarded),
                None => table.short(rest, arguments, &mut at, &mut out.guarded),
            },
        };
        at = at.min(arguments.len());
        if !harmless {
            out.plain.extend_from_slice(&arguments[from..at]);
        }
    }
    out
}

impl Harmless {
    /// Reads a long option. `true`: it is harmless, and `at` stands behind its value.
    fn long(&self, text: &str, arguments: &[String], at: &mut usize, guarded: &mut Vec<Found>) -> bool {
        let text = text.split(STAR).next().unwrap_or_default();
        let (name, attached) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        if self.long.contains(&name) && attached.is_none() {
            return true;
        }
        let value = attached.or_else(|| arguments.get(*at).map(String::as_str));
        if (self.long_values.contains(&name) && Self::value_is_harmless(name, value)) || self.is_nowhere(name, value) {
            *at += usize::from(attached.is_none());
            return true;
        }
        guarded.push(self.found(name, format!("--{name}")));
        *at += usize::from(attached.is_none() && VALUED.contains(&name));
        false
    }

    /// Reads a cluster of short options.
    fn short(&self, cluster: &str, arguments: &[String], at: &mut usize, guarded: &mut Vec<Found>) -> bool {
        if self.names == WGET.names && cluster == "nv" {
            return true;
        }
        let cluster = cluster.split(STAR).next().unwrap_or_default();
        let before = guarded.len();
        for (index, letter) in cluster.char_indices() {
            if self.flags.contains(letter) {
                continue;
            }
            let rest = &cluster[index + letter.len_utf8()..];
            let attached = Some(rest).filter(|rest| !rest.is_empty());
            let value = attached.or_else(|| arguments.get(*at).map(String::as_str));
            let mut text = [0; 4];
            let text: &str = letter.encode_utf8(&mut text);
            let name = self.names.iter().find(|(short, _)| *short == text).map_or(text, |(_, name)| name);
            let valued = self.values.contains(letter) && Self::value_is_harmless(name, value);
            if valued || self.is_nowhere(name, value) {
                *at += usize::from(attached.is_none());
                break;
            }
            guarded.push(self.found(name, format!("-{letter}")));
            if !FLAGS.contains(&name) {
                *at += usize::from(attached.is_none() && VALUED.contains(&name));
                break;
            }
        }
        guarded.len() == before
    }

    fn found(&self, name: &str, shown: String) -> Found {
        let effect = if self.writing.contains(&name) { Effect::Writes } else { Effect::Steers };
        Found { id: name.to_owned(), shown, effect }
    }

    /// Whether a value is one: `@file` reads a file, and `%output{file}` writes one.
    fn value_is_harmless(name: &str, value: Option<&str>) -> bool {
        let Some(value) = value else { return false };
        let body = ["d", "data", "write-out", "w", "json"].contains(&name) || name.starts_with("data-");
        // Anything else becomes a part of the request's head, where a line break begins another request.
        if !body && value.contains(char::is_control) {
            return false;
        }
        match name {
            "X" | "request" | "method" => value.bytes().all(|byte| byte.is_ascii_alphabetic()),
            // Where many sites share a machine, it says which one is asked.
            "H" | "header" if value.trim_start_matches([':', ' ']).to_ascii_lowercase().starts_with("host") => false,
            "H" | "header" if value.trim_start().to_ascii_lowercase().starts_with(":authority") => false,
            "write-out" => !value.contains("%output") && !value.starts_with('@'),
            "d" | "data" | "data-ascii" | "data-binary" | "json" | "H" | "header" => !value.starts_with('@'),
            // `name@file`
            "data-urlencode" => !value.split('=').next().unwrap_or_default().contains('@'),
            _ => true,
        }
    }

    /// Output that goes to the terminal, or nowhere.
    fn is_nowhere(&self, name: &str, value: Option<&str>) -> bool {
        ["output", "output-document", "dump-header"].contains(&name) && matches!(value, Some("-" | "/dev/null"))
    }
}

/// Why a call reaches further than the rule's address; `None` where it does not.
pub(super) fn elsewhere(rule: &Fetch, call: &Fetch) -> Option<String> {
    let granted: Vec<Wildcard> = rule.operands.iter().map(|operand| Wildcard::name(operand)).collect();
    for address in &call.operands {
        // A rule that spells another scheme means it.
        let spelled = |operand: &String| {
            operand.split(STAR).next().unwrap_or_default().contains("://") && Wildcard::name(operand).matches(address)
        };
        if !is_web(address) && !rule.operands.iter().any(spelled) {
            return Some(format!("`{address}` is no address on the web (http, https)"));
        }
        if !rule.any_address && is_glob(address) {
            return Some(format!(
                "`{address}` stands for several addresses; braces and brackets that are meant are written `%7B`, `%5B`"
            ));
        }
        if !rule.any_address && climbs(address) {
            return Some(format!("`{address}` leads out of its folder by dots"));
        }
        let host = |operand: &String| same_host(operand, address);
        if !rule.any_address && !rule.operands.iter().any(host) {
            return Some(format!("`{address}` is on another host than the rule names"));
        }
        if !rule.any_address && !granted.iter().any(|granted| granted.matches(address)) {
            return Some(format!("`{address}` is not the address that the rule names"));
        }
    }
    None
}

/// Whether a rule's addresses are all within those of another rule.
pub(super) fn covers(outer: &Fetch, inner: &Fetch) -> bool {
    if outer.any_address {
        return true;
    }
    let granted: Vec<Wildcard> = outer.operands.iter().map(|operand| Wildcard::name(operand)).collect();
    !inner.any_address
        && inner.operands.iter().all(|operand| {
            let operand = Wildcard::name(operand);
            granted.iter().any(|granted| granted.covers(&operand))
        })
}

/// Whether an address is on a host that a rule's address names: its star stands for no `/`.
fn same_host(rule: &str, address: &str) -> bool {
    let host = |text: &str| {
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        rest.split(['/', '?', '#', '\\']).next().unwrap_or_default().to_ascii_lowercase()
    };
    let (rule, address) = (host(rule), host(address));
    // A star at its end stands for what follows the host, too: `https://a.b*`.
    let address = if rule.contains('@') { address } else { address.replace('@', "/") };
    Wildcard::name(&rule).matches(&address) && !address.contains('/')
}

/// Whether curl makes several addresses of it. A host may be an IPv6 address in brackets.
fn is_glob(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let literal = host.strip_prefix('[').and_then(|host| host.split_once(']'));
    let host = match literal {
        Some((inner, port)) if inner.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':') => port,
        _ => host,
    };
    [host, path].iter().any(|text| text.contains(['{', '}', '[', ']']))
}

/// Whether an address has dots that lead out of a folder, spelled or escaped.
fn climbs(address: &str) -> bool {
    let plain = address.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/");
    let path = plain.split(['?', '#']).next().unwrap_or_default();
    path.split(['/', '\\']).any(|part| part == "..")
}

/// What the program takes for an address on the web: without a scheme it guesses one by the host's name.
fn is_web(address: &str) -> bool {
    const GUESSED: &[&str] = &["ftp", "dict", "ldap", "imap", "smtp", "pop3", "file"];
    let lower = address.to_ascii_lowercase();
    if lower.starts_with("http://") || lower.starts_with("https://") {
        return true;
    }
    let host = lower.split(['/', '?', '#']).next().unwrap_or_default();
    let port = host.split_once(':').map_or("80", |(_, port)| port);
    !lower.contains("://")
        && !host.is_empty()
        && host.chars().all(|c| c.is_ascii_alphanumeric() || ".-:".contains(c))
        && !host.starts_with('-')
        && !port.is_empty()
        && port.bytes().all(|b| b.is_ascii_digit())
        && !GUESSED.iter().any(|name| host.split('.').next() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(call: &str) -> Fetch {
        let words: Vec<String> = call.split(' ').map(|word| word.replace('*', "\u{1}")).collect();
        read(&words[0], &words[1..])
    }

    #[track_caller]
    fn check(call: &str, guarded: &[&str], plain: &str) {
        let found = fetch(call);
        let ids: Vec<&str> = found.guarded.iter().map(|option| option.id.as_str()).collect();
        assert_eq!((ids.as_slice(), found.plain.join(" ").as_str()), (guarded, plain), "{call}");
    }

    #[test]
    fn harmless_options_are_told_from_others() {
        check("curl -sSf https://a/x", &[], "https://a/x");
        check("curl -sX POST -H A:b -d {} --json {} -m 5 https://a/x", &[], "https://a/x");
        check("curl -XPOST https://a/x -o /dev/null -w %{http_code}", &[], "https://a/x");
        check("curl -so- https://a/x", &[], "https://a/x");
        check("curl -sL https://a", &["location"], "-sL https://a");
        check("curl -so f https://a", &["output"], "-so f https://a");
        check("curl --outp f https://a", &["outp"], "--outp f https://a");
        check("curl -d @f https://a", &["d"], "-d @f https://a");
        check("curl --data-urlencode n@f https://a", &["data-urlencode"], "--data-urlencode n@f https://a");
        check("curl -K f", &["config"], "-K f");
        check("curl -H Host:c https://a", &["H"], "-H Host:c https://a");
        check("curl --header hOST:c https://a", &["header"], "--header hOST:c https://a");
        check("curl -XGE/T https://a", &["X"], "-XGE/T https://a");
        check("curl -A a\nb https://a", &["A"], "-A a\nb https://a");
        check("curl -w %output{f}x https://a", &["write-out"], "-w %output{f}x https://a");
        check(
            "curl --next -: --unix-socket s --proxy=p -T f",
            &["next", "next", "unix-socket", "proxy", "upload-file"],
            "--next -: --unix-socket s --proxy=p -T f",
        );
        check("wget -q -O - https://a", &[], "https://a");
        check("wget -qO- https://a", &[], "https://a");
        check("wget -nv --tries=3 https://a", &[], "https://a");
        check("wget -i f -e x -r -m", &["input-file", "execute", "recursive", "mirror"], "-i f -e x -r -m");
    }

    #[test]
    fn a_rule_grants_its_own_address() {
        let far = |rule: &str, call: &str| elsewhere(&fetch(rule), &fetch(call)).is_some();
        assert!(!far("curl https://a.b/*", "curl https://a.b/c"));
        assert!(far("curl https://a.b/*", "curl https://a.b/c https://evil/"));
        assert!(far("curl https://a.b/*", "curl https://a.b/c evil"));
        for address in ["https://a.b/v/../x", "https://a.b/v/%2E%2e/x", "https://a.b/v/..", "https://a.b/v/..%2fx"] {
            assert!(far("curl https://a.b/v/*", &format!("curl {address}")), "{address}");
        }
        for address in ["https://a.b/v/{.}./x", "https://a.b/v/.{.}/x", "https://a.b/v/[1-3]", "https://{a,c}.b/v/x"] {
            assert!(far("curl https://a.b/v/*", &format!("curl {address}")), "{address}");
        }
        assert!(!far("curl http://[::1]:8080/*", "curl http://[::1]:8080/x"));
        assert!(!far("curl https://a.b/v/*", "curl https://a.b/v/a..b?q=../x"));
        assert!(far("curl https://*.b.c/*", "curl https://127.0.0.1/x.b.c/y"));
        assert!(far("curl https://a.b*", "curl https://a.b@evil/"));
        assert!(!far("curl https://*.b.c/*", "curl https://a.b.c/y"));
        assert!(!far("curl https://*", "curl https://a.b.c/y"));
        assert!(!far("curl *", "curl https://a https://b c.d:80/x"));
        for address in ["file:///etc/passwd", "FILE:/x", "ftp.a.b", "dict://a", "a:b", "-", "{file,http}://a"] {
            assert!(far("curl *", &format!("curl {address}")), "{address}");
        }
        assert!(!far("curl file:///w/*", "curl file:///w/x") && far("curl file:///w/*", "curl file:///etc/passwd"));
        assert!(covers(&fetch("curl *"), &fetch("curl https://a/*")));
        assert!(covers(&fetch("curl https://a/*"), &fetch("curl https://a/b*")));
        assert!(!covers(&fetch("curl https://a/*"), &fetch("curl https://a/* https://b/*")));
        assert!(!covers(&fetch("curl https://a/*"), &fetch("curl *")));
    }
}
