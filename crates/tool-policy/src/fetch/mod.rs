//! `curl` and `wget`: only a few known options are harmless. The rule must spell every other one, and a rule's
//! address is the only one that it grants.

mod address;
mod header;

use address::AddressRules;
pub(crate) use address::{climbs, cuts_path};

use crate::options::GivenOption;
use crate::programs::{self, Effect, FLAGS, FetchOptions, Names, Syntax, VALUED, contains};
use crate::request::clipped;
use crate::wildcard::{BREAK, STAR, joined};

/// A parsed call, or the parsed words of a rule.
pub(super) struct Fetch {
    /// The options that a rule must spell.
    pub guarded: Vec<GivenOption>,
    /// Addresses and other words that are no options.
    pub operands: Vec<String>,
    /// The words without harmless options.
    pub plain: Vec<String>,
    /// The harmless options by their long names, a value behind its option.
    pub harmless: Vec<String>,
    /// Whether a rule names no address and ends in a star that stands for any.
    pub any_address: bool,
    /// Whether the call follows redirections to any host.
    pub is_redirected: bool,
    /// Words in the head of a request that contain a control character. A line break there begins another header, or
    /// another request.
    broken: Vec<String>,
    /// The options that set the method of the request, with their values.
    methods: Vec<String>,
}

/// Returns the options of a program that fetches, in any folder, or `None` for other programs.
pub(super) fn options(program: &str) -> Option<&'static FetchOptions> {
    match programs::by_base_name(program).syntax {
        Syntax::Fetch(options) => Some(options),
        Syntax::Options | Syntax::Git => None,
    }
}

/// Parses the arguments of a program with these options.
pub(super) fn read(table: &FetchOptions, arguments: &[String]) -> Fetch {
    let mut out = Fetch {
        guarded: Vec::new(),
        operands: Vec::new(),
        plain: Vec::new(),
        harmless: Vec::new(),
        any_address: false,
        is_redirected: table.saves_and_follows,
        broken: Vec::new(),
        methods: Vec::new(),
    };
    let mut at = 0;
    let mut options = true;
    while let Some(word) = arguments.get(at) {
        at += 1;
        let (from, known, guarded) = (at - 1, out.harmless.len(), out.guarded.len());
        // The rest of the word without harmless options.
        let left = match word.strip_prefix('-').filter(|rest| options && !rest.is_empty()) {
            None => {
                out.operands.push(word.clone());
                Some(word.clone())
            }
            Some("-") => {
                options = false;
                Some(word.clone())
            }
            Some(rest) => match rest.strip_prefix('-') {
                Some(long) => table.long(long, arguments, &mut at, &mut out).then(|| word.clone()),
                None => table.short(rest, arguments, &mut at, &mut out),
            },
        };
        at = at.min(arguments.len());
        out.is_redirected &= left.is_some() || !word.starts_with("--max-redirect");
        let whole = &arguments[from..at];
        let last_harmless = out.harmless[known..].last().and_then(|option| option.split(BREAK).next());
        let last_guarded = out.guarded[guarded..].last().map(|option| option.id.as_str());
        let is_body = last_harmless.into_iter().chain(last_guarded).any(|name| table.is_body(name));
        out.broken.extend(whole.iter().filter(|word| !is_body && word.contains(is_break)).cloned());
        if whole.iter().any(|word| word.contains(STAR)) {
            // In a rule a star may stand for more than harmless text.
            out.harmless.truncate(known);
            out.plain.extend_from_slice(whole);
        } else if let Some(left) = left {
            out.plain.push(left);
            out.plain.extend_from_slice(&whole[1..]);
        }
    }
    // At the end of a rule a star stands for any words.
    let star = |word: &String| !word.is_empty() && word.chars().all(|c| c == STAR);
    out.any_address = arguments.last().is_some_and(star) || out.operands.iter().any(star);
    out.operands.retain(|operand| !star(operand));
    out.any_address &= out.operands.is_empty();
    out.methods = out.harmless.iter().filter_map(|option| table.method(option)).collect();
    out
}

/// Parses the words of a rule. A star in its program's name stands for any words too.
pub(super) fn read_rule(table: &FetchOptions, words: &[String]) -> Fetch {
    let mut out = read(table, words.get(1..).unwrap_or_default());
    out.any_address |= out.operands.is_empty() && words.first().is_some_and(|word| word.contains(STAR));
    out
}

impl FetchOptions {
    /// Parses a long option and moves `at` behind its value. Returns `true` if the option is not harmless.
    fn long(&self, text: &str, arguments: &[String], at: &mut usize, out: &mut Fetch) -> bool {
        let text = text.split(STAR).next().unwrap_or_default();
        let (name, attached) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        if contains(self.long, name) && attached.is_none() {
            out.harmless.push(format!("--{name}"));
            return false;
        }
        let value = attached.or_else(|| arguments.get(*at).map(String::as_str));
        if (contains(self.long_values, name) && Self::value_is_harmless(name, value)) || self.is_nowhere(name, value) {
            out.harmless.push(with_value(&format!("--{name}"), value));
            *at += usize::from(attached.is_none());
            return false;
        }
        out.guarded.push(self.found(name, shown(&format!("--{name}"), name, value)));
        out.guarded.extend(file_in(name, value));
        *at += usize::from(attached.is_none() && contains(VALUED, name));
        true
    }

    /// Parses a cluster of short options and moves `at` behind its value. Returns the cluster without its harmless options, if others
    /// remain.
    fn short(&self, cluster: &str, arguments: &[String], at: &mut usize, out: &mut Fetch) -> Option<String> {
        if self.words.contains(&cluster) {
            out.harmless.push(format!("--{}", self.long_name(cluster)));
            return None;
        }
        let cluster = cluster.split(STAR).next().unwrap_or_default();
        let mut left = "-".to_owned();
        for (index, letter) in cluster.char_indices() {
            let option = format!("-{letter}");
            let name = self.long_name(&option);
            if self.flags.contains(letter) {
                out.harmless.push(format!("--{name}"));
                continue;
            }
            let rest = &cluster[index + letter.len_utf8()..];
            let attached = Some(rest).filter(|rest| !rest.is_empty());
            let value = attached.or_else(|| arguments.get(*at).map(String::as_str));
            let valued = self.values.contains(letter) && Self::value_is_harmless(name, value);
            if valued || self.is_nowhere(name, value) {
                out.harmless.push(with_value(&format!("--{name}"), value));
                *at += usize::from(attached.is_none());
                break;
            }
            out.guarded.push(self.found(name, shown(&option, name, value)));
            out.guarded.extend(file_in(name, value));
            if !contains(FLAGS, name) {
                *at += usize::from(attached.is_none() && contains(VALUED, name));
                left.push_str(&cluster[index..]);
                break;
            }
            left.push(letter);
        }
        (left.len() > 1).then_some(left)
    }

    /// Returns the long name of an option, without its dashes. An option that has none keeps its letter.
    fn long_name<'a>(&self, option: &'a str) -> &'a str {
        let name = option.trim_start_matches('-');
        self.names.iter().find(|(short, _)| *short == name).map_or(name, |(_, name)| name)
    }

    /// Returns an option under its long name, with its value, if it sets the method of the request.
    fn method(&self, option: &str) -> Option<String> {
        const METHODS: Names = "get head method request spider";
        let (option, value) = option.split_once(BREAK).unwrap_or((option, ""));
        let name = self.long_name(option);
        contains(METHODS, name).then(|| format!("--{name} {value}").trim_end().to_owned())
    }

    fn found(&self, name: &str, shown: String) -> GivenOption {
        let effect = if contains(self.writing, name) { Effect::Writes } else { Effect::Steers };
        GivenOption { id: name.to_owned(), shown, effect }
    }

    /// Returns whether a value is harmless: `@file` reads a file, and `%output{file}` writes one.
    fn value_is_harmless(name: &str, value: Option<&str>) -> bool {
        let Some(value) = value else { return false };
        match name {
            "request" | "method" => value.bytes().all(|byte| byte.is_ascii_alphabetic()),
            "header" => header::is_harmless(value),
            "max-redirect" => value == "0",
            "write-out" => !value.contains("%output") && !value.starts_with('@'),
            "data" | "data-ascii" | "data-binary" | "json" => !value.starts_with('@'),
            // `name@file`
            "data-urlencode" => !value.split('=').next().unwrap_or_default().contains('@'),
            _ => true,
        }
    }

    /// Returns whether an option gives the body of a request, or the format of the output.
    fn is_body(&self, option: &str) -> bool {
        let name = self.long_name(option);
        const BODIES: Names = "body-data data form form-string json post-data write-out";
        contains(BODIES, name) || name.starts_with("data-")
    }

    /// Returns whether an option sends output to the terminal, or nowhere.
    fn is_nowhere(&self, name: &str, value: Option<&str>) -> bool {
        ["output", "output-document", "dump-header"].contains(&name) && matches!(value, Some("-" | "/dev/null"))
    }
}

/// Formats an option with its value, in one form however it was attached.
fn with_value(option: &str, value: Option<&str>) -> String {
    joined(&[option, value.unwrap_or_default()])
}

/// Formats an option as a rule would spell it: a header by its name.
fn shown(option: &str, name: &str, value: Option<&str>) -> String {
    let header = value.filter(|_| name == "header").map(|value| header::parts(value).0);
    match header.filter(|name| header::is_name(name)) {
        Some(header) => format!("{option} {header}:*"),
        None => option.to_owned(),
    }
}

/// Returns the value of an option, if it names a file whose contents are sent, which such a value need not do.
fn file_in(name: &str, value: Option<&str>) -> Option<GivenOption> {
    let value = value?;
    let names_file = match name {
        "form" => ["=@", "=<"].iter().any(|sign| value.contains(sign)),
        "cookie" => !value.contains('=') && !value.starts_with(STAR),
        _ => false,
    };
    names_file.then(|| GivenOption { id: format!("file of {name}"), shown: value.to_owned(), effect: Effect::Steers })
}

/// Returns whether a character can end a line of a request. A rule's star does not count.
fn is_break(c: char) -> bool {
    c.is_control() && c != STAR
}

/// Returns the reason why a call reaches beyond the rule's addresses, or `None` if it does not.
pub(super) fn elsewhere(rule: &Fetch, call: &Fetch) -> Option<String> {
    if let Some(word) = call.broken.iter().find(|word| !rule.broken.contains(word)) {
        return Some(format!("a control character in `{}` can begin another request; leave it out", clipped(word)));
    }
    if let Some(method) = another_method(rule, call) {
        return Some(format!("the rule names its method, and `{}` is another one; leave it out", clipped(method)));
    }
    let granted = AddressRules::new(rule.any_address, &rule.operands);
    if let Some(why) = call.operands.iter().find_map(|address| granted.refuses(address)) {
        return Some(why);
    }
    let spelled = rule.any_address || rule.guarded.iter().any(|option| option.id == "max-redirect");
    (call.is_redirected && !spelled)
        .then(|| "`wget` goes where a server redirects it; add `--max-redirect=0`".to_owned())
}

/// Returns an option of a call that sets another method than the rule does. A rule that sets none grants every method.
fn another_method<'a>(rule: &Fetch, call: &'a Fetch) -> Option<&'a String> {
    call.methods.iter().find(|method| !rule.methods.is_empty() && !rule.methods.contains(method))
}

/// Returns whether a rule's addresses are all within those of another rule, and its methods.
pub(super) fn covers(outer: &Fetch, inner: &Fetch) -> bool {
    let granted = AddressRules::new(outer.any_address, &outer.operands);
    (outer.any_address || !inner.any_address)
        && inner.operands.iter().all(|operand| granted.covers(operand))
        && inner.broken.iter().all(|word| outer.broken.contains(word))
        && another_method(outer, inner).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(call: &str) -> Fetch {
        let words: Vec<String> = call.split(' ').map(|word| word.replace('*', "\u{1}")).collect();
        read(options(&words[0]).unwrap(), &words[1..])
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
        check("curl -sX POST -H Accept:b -d {} --json {} -m 5 https://a/x", &[], "https://a/x");
        check("curl -XPOST https://a/x -o /dev/null -w %{http_code}", &[], "https://a/x");
        check("curl -so- https://a/x", &[], "https://a/x");
        check("curl -sL https://a", &["location"], "-L https://a");
        check("curl -so f https://a", &["output"], "-o f https://a");
        check("curl -sLSof https://a", &["location", "output"], "-Lof https://a");
        check("curl --outp f https://a", &["outp"], "--outp f https://a");
        check("curl -d @f https://a", &["data"], "-d @f https://a");
        check("curl --data-urlencode n@f https://a", &["data-urlencode"], "--data-urlencode n@f https://a");
        check("curl -K f", &["config"], "-K f");
        check("curl -H Host:c https://a", &["header"], "-H Host:c https://a");
        check("curl -sHContent-Length:0 https://a", &["header"], "-HContent-Length:0 https://a");
        check("curl --header hOST:c https://a", &["header"], "--header hOST:c https://a");
        check("curl -XGE/T https://a", &["request"], "-XGE/T https://a");
        check("curl -w %output{f}x https://a", &["write-out"], "-w %output{f}x https://a");
        check(
            "curl --next -: --unix-socket s --proxy=p -T f",
            &["next", "next", "unix-socket", "proxy", "upload-file"],
            "--next -: --unix-socket s --proxy=p -T f",
        );
        check("wget -q -O - https://a", &[], "https://a");
        check("wget -qO- https://a", &[], "https://a");
        check("wget -nv --tries=3 https://a", &[], "https://a");
        check("wget --header Accept:b --max-redirect=0 https://a", &[], "https://a");
        check("wget --header=Content-Length:0 https://a", &["header"], "--header=Content-Length:0 https://a");
        check("wget --max-redirect=0 --max-redirect=9 https://a", &["max-redirect"], "--max-redirect=9 https://a");
        check("wget -i f -e x -r -m", &["input-file", "execute", "recursive", "mirror"], "-i f -e x -r -m");
    }

    #[test]
    fn a_rule_grants_its_own_address() {
        let far = |rule: &str, call: &str| elsewhere(&fetch(rule), &fetch(call)).is_some();
        for (rule, call, expected) in [
            ("curl https://a.b/*", "curl https://a.b/c", false),
            ("curl https://a.b/*", "curl https://a.b/c https://evil/", true),
            ("curl https://a.b/*", "curl -- https://a.b/c https://evil/", true),
            ("curl https://a.b/*", "curl https://a.b/c evil", true),
            ("curl *", "curl https://a https://b c.d:80/x", false),
            ("curl -- *", "curl https://a", false),
            ("curl -s *", "curl -s https://a https://b", false),
            // A star grants any address only if the rule names none.
            ("curl https://a.b/v *", "curl https://a.b/v https://evil/", true),
            ("curl * https://a.b/v", "curl https://evil/ https://a.b/v", true),
            ("curl https://a.b/v -o f *", "curl https://a.b/v -o f https://evil/", true),
            ("curl -- https://a.b/v *", "curl -- https://a.b/v https://evil/", true),
            ("curl https://a.b/v *", "curl https://a.b/v -s", false),
            // wget follows redirections unless told otherwise.
            ("wget https://a.b/*", "wget https://a.b/c", true),
            ("wget https://a.b/*", "wget --max-redirect=0 https://a.b/c", false),
            ("wget https://a.b/*", "wget --max-redirect 0 https://a.b/c", false),
            ("wget https://a.b/*", "wget -U --max-redirect=0 https://a.b/c", true),
            ("wget https://a.b/*", "wget https://a.b/c -- --max-redirect=0", true),
            ("wget --max-redirect=3 https://a.b/*", "wget --max-redirect=3 https://a.b/c", false),
            ("wget *", "wget https://a.b/c", false),
        ] {
            assert_eq!(far(rule, call), expected, "{rule}: {call}");
        }
        // Whatever a star stands for, a control character ends a line of the request's head.
        for rule in [
            "curl -H T:* https://a/*",
            "curl -A* https://a/*",
            "curl -e * https://a/*",
            "curl -X* https://a/*",
            "curl *",
        ] {
            for broken in
                ["-H T:a\r\nb", "-HT:a\nb", "-A a\rb", "-e a\nb", "-X\nb", "-Ha\tb:c", "-b a\nb", "https://a/\n"]
            {
                let call = format!("curl -d a\nb {broken} https://a/x");
                assert!(far(rule, &call), "{rule}: {call:?}");
                assert!(!covers(&fetch(rule), &fetch(&call)), "{rule}: {call:?}");
            }
        }
        let bodies = ["-d a\nb", "-sd a\nb", "--json={\n}", "-w a\nb", "-F a=b\nc", "--data-raw a\r\nb", "-LSd a\nb"];
        for body in bodies {
            assert!(!far("curl *", &format!("curl {body} https://a/x")), "{body:?}");
        }
        assert!(!far("wget *", "wget --post-data=a\nb https://a/x"));
        assert!(far("wget *", "wget --header=a:b\nc https://a/x"));
        assert!(!far("curl -A a\nb https://a/*", "curl -A a\nb https://a/x"));
        assert!(covers(&fetch("curl *"), &fetch("curl https://a/*")));
        assert!(!covers(&fetch("curl https://a/*"), &fetch("curl https://a/* https://b/*")));
        assert!(!covers(&fetch("curl https://a/*"), &fetch("curl *")));
        assert!(covers(&fetch("curl https://a/* *"), &fetch("curl https://a/b *")));
    }
}
