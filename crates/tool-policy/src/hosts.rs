//! Stars within words that may name a place: a host, a repository, an image. They stand for a part of its name, and for nothing that
//! leads elsewhere.

use crate::choice;
use crate::fetch;
use crate::programs::{self, Class, CommandOperands, Program};
use crate::wildcard::{BREAK, STAR, StarInWord, plain};

/// What a star within a word may stand for. It may be several words if each is one that the rule's word stands for: `rm a.tmp b.tmp`.
#[derive(Clone, Copy)]
enum Text {
    Any,
    /// Any text without these marks.
    WordsWithout(&'static str),
    /// One item of a list, and no word behind it.
    Item,
    /// Letters, digits and `_-.`, and these marks.
    Name(&'static str),
    /// [`plain`] text without these marks, and without a list.
    PlainWithout(&'static str),
    /// The same without an `@` and, up to a `:` or a `/`, without a dot.
    OneLabel,
    /// The same, with digits and dots only in front of those marks.
    Numbers,
    /// Letters, digits and `_-`.
    Label,
    /// The same, with a port behind it.
    LabelWithPort,
}

/// Marks of an address behind its host. A `,` would be the end of it.
const OF_ADDRESS: &str = "/:=%+~@";

impl Text {
    fn allows(self, star: &StarInWord<'_>) -> bool {
        let is_letter = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
        if matches!(self, Self::LabelWithPort) {
            let (host, port) = star.stands_for.split_once(':').unwrap_or((star.stands_for, ""));
            return host.chars().all(is_of_label) && port.bytes().all(|byte| byte.is_ascii_digit());
        }
        // A place is no further one.
        if matches!(self, Self::OneLabel | Self::Numbers) {
            let host = star.stands_for.split([':', '/']).next().unwrap_or_default();
            let keeps = if matches!(self, Self::Numbers) { is_numeric(host) } else { !host.contains('.') };
            return keeps && Self::PlainWithout("@").allows(star);
        }
        let may_hold = |letter: char| match self {
            Self::OneLabel | Self::Numbers | Self::LabelWithPort => false,
            Self::Label => is_of_label(letter),
            Self::Any => true,
            Self::WordsWithout(marks) => !marks.contains(letter),
            Self::Item => !":;,".contains(letter) && letter != BREAK,
            Self::Name(marks) => is_letter(letter) || marks.contains(letter),
            Self::PlainWithout(marks) => plain(letter) && letter != ',' && !marks.contains(letter),
        };
        if matches!(self, Self::Any | Self::Item) || !star.stands_for.contains(BREAK) {
            return star.stands_for.chars().all(may_hold);
        }
        let all = format!("{}{}{}", star.before, star.stands_for, star.behind);
        let own = |word: &str| word.strip_prefix(star.before)?.strip_suffix(star.behind).map(str::to_owned);
        all.split(BREAK).all(|word| own(word).is_some_and(|text| text.chars().all(may_hold)))
    }
}

/// Returns whether a letter is a part of a name between dots.
fn is_of_label(letter: char) -> bool {
    (letter.is_alphanumeric() && !is_dot(letter)) || "_-".contains(letter)
}

/// Returns whether a letter ends a part of a host's name. For those who look names up, some other marks are dots, and some numbers have one
/// in them: `。`, `⒈`.
fn is_dot(letter: char) -> bool {
    letter == '.' || (!letter.is_ascii() && !letter.is_alphabetic())
}

/// Returns whether a star within a word of a rule stands for a part of what the word names, if that may be a place. `only_reads`: whether
/// the rule's program does no more, on this machine.
pub(super) fn stays_within(program: &Program, star: &StarInWord<'_>, only_reads: impl FnOnce() -> bool) -> bool {
    let text = || match only_reads() {
        true => Text::Any,
        false => of_option(program, star).unwrap_or_else(|| of_operand(program, star)),
    };
    // `gh api … -F body=@FILE`
    let gives_file = program.commands == CommandOperands::Repositories
        && star.before.ends_with('=')
        && star.stands_for.starts_with('@')
        && !is_text(program, star.previous);
    let is_other = program.commands == CommandOperands::Specifiers && is_renamed(star);
    if gives_file || is_other || star.stands_for.contains("://") || leaves_path(star) {
        return false;
    }
    in_host(program, star).unwrap_or_else(text).allows(star)
}

/// Returns the same for a program whose addresses are judged apart ([`crate::fetch`]): for its options and their values.
pub(super) fn stays_within_option(program: &Program, star: &StarInWord<'_>) -> bool {
    let is_option = star.previous.starts_with('-') || star.before.starts_with('-');
    let text = star.stands_for;
    // `note=@FILE`
    let gives_file = (star.before.ends_with('=') && text.starts_with(['@', '<']))
        || ["=@", "=<"].iter().any(|file| text.contains(file))
        || (star.before.contains('@') && text.contains(','));
    let leaves = star.before.split_once("://").is_some_and(|(_, rest)| match rest.contains('/') {
        true => fetch::climbs(text),
        false => star.behind.is_empty() && !rest.is_empty() && !text.is_empty() && !text.starts_with(['/', ':']),
    });
    !is_option
        || (!gives_file && !leaves && !leaves_path(star) && in_host(program, star).is_none_or(|text| text.allows(star)))
}

/// Returns whether a star in the path of an address takes what the rule has behind it out of that path.
fn leaves_path(star: &StarInWord<'_>) -> bool {
    star.before.contains("://") && fetch::cuts_path(star)
}

/// Returns whether a package comes from elsewhere, under the name that the rule says: `acme-x@npm:evil`, or from a file (`acme-x.tgz`).
fn is_renamed(star: &StarInWord<'_>) -> bool {
    const FILES: [&str; 9] = [".bz2", ".py", ".tar", ".tbz", ".tgz", ".tlz", ".txz", ".whl", ".zip"];
    let StarInWord { before, stands_for, behind, .. } = *star;
    if before.contains("://") {
        return false;
    }
    let name = before.rsplit(':').next().unwrap_or_default();
    let is_package = name.starts_with('@') || !name.contains('/');
    let word = format!("{name}{stands_for}{behind}");
    // The ending of a file may begin in front of the star, or go on behind it.
    let names_file = |text: &str| FILES.iter().any(|ending| text.to_ascii_lowercase().contains(ending));
    let is_file = || names_file(&word) && !names_file(name) && !names_file(behind);
    let source = word.get(1..).and_then(|rest| rest.split_once('@')).map(|(_, source)| source.to_owned());
    source.is_some_and(|source| source.contains([':', '/']) || source.starts_with('.')) || (is_package && is_file())
}

/// Returns what a star in the name of a host may stand for. `None`: it is in none that can be told by its word.
fn in_host(program: &Program, star: &StarInWord<'_>) -> Option<Text> {
    let StarInWord { previous, before, behind, .. } = *star;
    // A letter may stand in a cluster: `-sx PROXY`. Behind another letter with a value it is a part of that value.
    let known = program.harmless.map_or("", |known| known.perhaps_valued);
    let has_value = |letter: char| program.options.has_value(letter) || known.contains(letter);
    // What is behind a letter in its word.
    let behind_letter = |word: &str, letter: &str| {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default();
        let at = letters.find(letter).filter(|at| !letters[..*at].contains(has_value))?;
        Some(letters[at + letter.len()..].to_owned())
    };
    let value_of = |option: &str| match option.strip_prefix("--") {
        Some(_) if previous == option => Some(before.to_owned()),
        Some(_) => before.strip_prefix(option).and_then(|rest| rest.strip_prefix('=')).map(ToOwned::to_owned),
        None => {
            let letter = &option[1..];
            let is_next = previous.ends_with(letter) && behind_letter(previous, letter).is_some();
            if is_next { Some(before.to_owned()) } else { behind_letter(before, letter) }
        }
    };
    if let Some(value) = program.host_options.split_whitespace().find_map(value_of) {
        // `--proxy http://*`, `--resolve host:443:10.0.0.*`, `-o 'HostName *'`
        let name = value.rsplit(['/', ':', '@', '=', ',', ' ']).next().unwrap_or_default();
        return Some(match of_name(name, behind) {
            Text::Label if behind.is_empty() => Text::LabelWithPort,
            text => text,
        });
    }
    if program.commands == CommandOperands::Repositories && behind.contains('/') {
        // `-R HOST/owner/repository`
        let value = ["-R", "--repo"].into_iter().find_map(value_of).filter(|value| !value.contains('/'));
        if let Some(value) = value {
            return Some(of_name(&value, behind));
        }
    }
    if program.commands == CommandOperands::Connections {
        let setting = before.rsplit(' ').next().unwrap_or_default();
        let name = ["host=", "hostaddr="].iter().find_map(|key| setting.strip_prefix(key));
        if let Some(name) = name {
            return Some(of_name(name, behind));
        }
    }
    // `https://*.acme.com/x`, `https://*@acme.com/x`
    let (_, host) = before.split_once("://").filter(|(_, host)| !host.contains('/') && !behind.is_empty())?;
    let is_user = behind.split(['/', ':']).next().is_some_and(|name| name.contains('@'));
    Some(match is_user {
        true => Text::Name(if behind.starts_with('@') && !host.contains(':') { ":" } else { "" }),
        false => of_name(host.rsplit('@').next().unwrap_or(host), behind),
    })
}

/// Returns what a star in the name of a host may stand for. Without a dot behind it, one in it would be followed by the domain of anybody
/// (`bot-*` and `bot-1.evil.com`).
fn of_name(before: &str, behind: &str) -> Text {
    if is_any_host(before, behind) {
        return Text::Name("");
    }
    if is_number(before) { Text::Numbers } else { Text::Label }
}

/// Returns whether a star in the name of a host stands for dots: for the whole name, or in front of a dot of the rule.
fn is_any_host(before: &str, behind: &str) -> bool {
    before.is_empty() || behind.split([':', '/', '?', '#']).next().is_some_and(|host| host.contains('.'))
}

fn is_number(before: &str) -> bool {
    before.contains('.') && is_numeric(before)
}

fn is_numeric(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
}

/// Returns whether a star in a host with its port stands for a part of the name that the rule gives it, and not for a domain behind that.
pub(super) fn stays_in_host(star: &StarInWord<'_>) -> bool {
    let name = star.before.rsplit('@').next().unwrap_or_default();
    let is_port = name.contains([':', '[', '/']);
    if is_port || is_any_host(name, star.behind) {
        return true;
    }
    let host = star.stands_for.split([':', '/', BREAK]).next().unwrap_or_default();
    if is_number(name) { is_numeric(host) } else { !host.chars().any(|letter| letter == '@' || is_dot(letter)) }
}

/// Returns the same for the first operand of a program, or that of a subcommand.
pub(super) fn stays_in_operand(program: &Program, star: &StarInWord<'_>) -> bool {
    // `//HOST/share`
    let star = &StarInWord { before: star.before.strip_prefix("//").unwrap_or(star.before), ..*star };
    match program.commands {
        CommandOperands::Sources => stays_in_package(star),
        CommandOperands::Hosts | CommandOperands::OneHost => is_only_host(star) && stays_in_host(star),
        CommandOperands::Names => star.stands_for.split(BREAK).all(|name| {
            let star = StarInWord { stands_for: name, ..*star };
            is_only_host(&star) && stays_in_host(&star)
        }),
        _ => stays_in_host(star),
    }
}

/// Returns whether a star in a package of `go` stays in the host that the rule gives it.
fn stays_in_package(star: &StarInWord<'_>) -> bool {
    let is_file = [star.behind, star.stands_for].iter().any(|end| end.ends_with(".go"));
    // Behind a package is its version, whose dots are not the host's.
    let behind = star.behind.split('@').next().unwrap_or_default();
    if is_file && !star.stands_for.contains(['/', BREAK]) {
        return true;
    }
    // With more of the name behind it, what is in front of a slash would be another host.
    let leaves = !behind.is_empty()
        && !star.before.contains('/')
        && star.stands_for.contains(['/', ':', '@', '\\', '?', '#', BREAK]);
    !leaves && stays_in_host(&StarInWord { behind, ..*star })
}

/// Returns whether a star in a host stands for a part of its name alone: no path, port, user or further address.
fn is_only_host(star: &StarInWord<'_>) -> bool {
    let name = star.before.split_once("://").map_or(star.before, |(_, name)| name);
    name.contains(['/', ':']) || star.stands_for.chars().all(|letter| is_of_label(letter) || letter == '.')
}

/// Returns the first word behind the host of a call that may be a further one, if the rule ends in a star within its host (`ping web-*`).
/// Options may stand there, and numbers that are the value of one.
pub(super) fn further<'a>(program: &Program, rule: &[String], call: &'a [String]) -> Option<&'a String> {
    let last = rule.last().filter(|last| !last.trim_matches(STAR).is_empty())?;
    let ends_within = match program.commands {
        CommandOperands::OneHost => last.contains(STAR),
        // Further ones in front of the rule's own end are like it: `*.acme.com`.
        CommandOperands::Names => last.ends_with(STAR),
        _ => false,
    };
    /// Kinds of keys of `ssh-keyscan`.
    const KEYS: programs::Names = "dsa ecdsa ecdsa-sk ed25519 ed25519-sk rsa";
    let is_value = |word: &&String| {
        programs::contains(KEYS, word) || word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let takes_options = !program.options.values.is_empty();
    let behind = call.get(rule.len()..).filter(|_| ends_within);
    let mut words = behind.unwrap_or_default().iter().peekable();
    if program.commands == CommandOperands::Names {
        return words.find(|word| !is_question(word));
    }
    while let Some(word) = words.next() {
        let is_option = takes_options && word.starts_with('-') && word != "--";
        let lacks_value =
            word.len() == 2 && program.options.takes_next(word) && words.next_if(|next| is_value(next)).is_none();
        if !is_option || lacks_value {
            return Some(word);
        }
    }
    None
}

/// Returns whether a word of `dig` says what it asks, and of whom or about what no more: `MX`, `-t MX`, `+short`, `+time=2`.
fn is_question(word: &str) -> bool {
    const KINDS: programs::Names =
        "a aaaa any axfr caa ch cname dnskey ds https in mx naptr ns nsec ptr rrsig soa srv sshfp svcb tlsa txt";
    let is_number = |value: &str| value.bytes().all(|byte| byte.is_ascii_digit());
    // `+subnet=1.2.3.4/24`
    let is_network = |value: &str| value.chars().all(|letter| letter.is_ascii_hexdigit() || ".:/".contains(letter));
    let lower = word.to_ascii_lowercase();
    let kind = lower.strip_prefix("-t").unwrap_or(&lower);
    match word.strip_prefix('+') {
        Some(flag) => {
            flag.split_once('=').is_none_or(|(name, value)| is_number(value) || (name == "subnet" && is_network(value)))
        }
        None if ["-4", "-6", "-t"].contains(&word) => true,
        None => programs::contains(KINDS, kind) || kind.strip_prefix("type").is_some_and(is_number),
    }
}

/// Returns the indices of a rule's words that may be a host: the first operand, or those of a subcommand.
pub(super) fn operands(program: &Program, rule: &[String]) -> Vec<usize> {
    let Some((_, arguments)) = rule.split_first() else { return Vec::new() };
    among(program, arguments).into_iter().map(|at| at + 1).collect()
}

/// Returns the same for the words behind the program.
pub(super) fn among(program: &Program, arguments: &[String]) -> Vec<usize> {
    // A verb may be the value of an option in front of it.
    let begins = |verbs: programs::Names| match verbs.is_empty() {
        true => vec![0],
        false => (1..=arguments.len()).filter(|at| programs::contains(verbs, &arguments[at - 1])).collect(),
    };
    // Each package is on a host, save for the words behind one that is run. Further hosts and servers may stand behind one that is looked up.
    let has_more = |from: usize| match program.commands {
        CommandOperands::OneHost | CommandOperands::Names => true,
        CommandOperands::Sources => arguments[from - 1] != "run",
        _ => false,
    };
    let behind = |from: usize| match has_more(from) {
        true => choice::operands_at(program, arguments).filter(|at| *at >= from).collect(),
        false => choice::first_operands(program, arguments, from),
    };
    let found = program.host_of.map(begins).unwrap_or_default().into_iter().flat_map(behind);
    // For git a host has a colon behind it. Else the word is a remote or a folder.
    let is_host =
        |at: &usize| !program.is_git() || arguments[*at].rsplit(STAR).next().is_some_and(|behind| behind.contains(':'));
    found.filter(is_host).collect()
}

/// Returns what a star in an option or in its value may stand for. `None`: it is in an operand.
fn of_option(program: &Program, star: &StarInWord<'_>) -> Option<Text> {
    let given = star.before.split_once('=').map_or("", |(option, _)| option);
    if [star.previous, given].iter().any(|option| programs::contains(program.lists, option)) {
        return Some(Text::Item);
    }
    if is_text(program, star.previous) {
        return Some(Text::WordsWithout(""));
    }
    if !star.before.starts_with('-') {
        return None;
    }
    let is_long = star.before.starts_with("--") || program.options.one_dash();
    let (name, value) = match star.before.split_once('=') {
        Some(parts) if is_long => parts,
        None if is_long => (star.before, ""),
        // `-fdeploy/*`
        _ => star.before.split_at(star.before.char_indices().nth(2).map_or(star.before.len(), |(at, _)| at)),
    };
    let is_whole = value.is_empty() && star.behind.is_empty();
    let is_weak = !program.is_git() && matches!(program.class, Class::Changes | Class::Filter | Class::Reads);
    Some(match is_whole || is_weak || is_text(program, name) {
        true => Text::WordsWithout(""),
        false if program.commands == CommandOperands::Repositories && value.ends_with('=') => Text::WordsWithout(""),
        // A list has further places: `--mount=type=bind,src=/srv/*`.
        false => Text::PlainWithout(if star.behind.starts_with(':') { ":" } else { "" }),
    })
}

/// Returns what a star in an operand may stand for.
fn of_operand(program: &Program, star: &StarInWord<'_>) -> Text {
    let StarInWord { before, behind, .. } = *star;
    // `git@*.acme.com:x`, `deploy@web*`. The last `@` counts.
    let host = before.rsplit_once('@').filter(|(user, _)| !user.is_empty()).map(|(_, host)| host);
    if host.is_some_and(|host| !host.contains(['/', ':'])) {
        return match (behind.is_empty(), is_any_host(host.unwrap_or_default(), behind)) {
            (true, true) => Text::PlainWithout("@"),
            (false, true) => Text::Name(""),
            (true, false) if is_number(host.unwrap_or_default()) => Text::Numbers,
            (true, false) => Text::OneLabel,
            (false, false) => of_name(host.unwrap_or_default(), behind),
        };
    }
    // `*@acme.com`
    if behind.starts_with('@') && before.is_empty() {
        return Text::Name("+");
    }
    let is_head = !before.contains(['/', ':', '=']);
    match program.commands {
        // A file of this machine may be in a folder.
        CommandOperands::Remote if is_head && behind.contains(':') => of_name(before, behind),
        CommandOperands::Remote if is_head => Text::Name("/"),
        CommandOperands::Fetched if is_head => Text::Name(""),
        CommandOperands::Fetched if before.contains("://") => Text::Name(OF_ADDRESS),
        // `oc image mirror acme/*`: behind a `=` is where it goes.
        CommandOperands::Fetched if !before.contains('=') => {
            Text::PlainWithout(if behind.starts_with(':') { ":=" } else { "=" })
        }
        // `mongodb://h/*`: what follows a `?` may be a further host.
        CommandOperands::Hosts if before.contains("://") => Text::PlainWithout("@"),
        // `docker pull registry*/acme/x`
        CommandOperands::Contexts if is_head && behind.contains('/') => of_name(before, behind),
        CommandOperands::Contexts if is_head => Text::Name(if behind.is_empty() { ":" } else { "" }),
        // The path is another machine's, and its shell may read it.
        CommandOperands::Remote | CommandOperands::Fetched | CommandOperands::Contexts => {
            Text::PlainWithout(if behind.starts_with(':') { ":" } else { "" })
        }
        // `gh repo clone HOST/owner/repository`
        CommandOperands::Repositories if is_head && behind.contains('/') => of_name(before, behind),
        CommandOperands::Repositories if is_head => Text::Name(""),
        CommandOperands::Repositories if before.ends_with('=') => Text::WordsWithout(""),
        // What follows would be a part of the query.
        CommandOperands::Repositories if !behind.is_empty() => Text::PlainWithout(""),
        CommandOperands::Specifiers => Text::WordsWithout(","),
        CommandOperands::Connections if before.contains('/') => Text::PlainWithout(""),
        CommandOperands::Connections => Text::Name(""),
        _ if program.is_git() && is_head => match behind.split('/').next() {
            Some(first) if first.contains(':') => Text::Name(""),
            _ => Text::WordsWithout(":"),
        },
        // `ssh web-* uptime`
        _ if program.joins_from == Some(1) => Text::PlainWithout("@"),
        _ => Text::WordsWithout(""),
    }
}

/// Returns whether the word behind an option is a text, which leads nowhere.
fn is_text(program: &Program, option: &str) -> bool {
    let last = || option.strip_prefix('-').and_then(|letters| letters.chars().last()).map(|last| format!("-{last}"));
    let cluster = !option.starts_with("--") && last().is_some_and(|last| programs::contains(program.texts, &last));
    cluster || programs::contains(program.texts, option)
}
