//! Operands that a rule must spell: those that a program takes for commands, for code, or for a place elsewhere.

use crate::choice;
use crate::fetch;
use crate::harmless::TARGET;
use crate::options::GivenOption;
use crate::programs::{self, BehindAt, CommandOperands, Effect, Names, Program};
use crate::wildcard::{BREAK, STAR, StarInWord};

/// Identifies operands that lead elsewhere.
pub(super) const ADDRESS: &str = "address";

/// Returns whether a rule leaves open from where to where its program copies: it names no other machine, and one operand at most.
pub(super) fn leaves_place_open(program: &str, arguments: &[String]) -> bool {
    let entry = programs::by_base_name(program);
    let is_value = |at: usize| at.checked_sub(1).is_some_and(|before| entry.options.takes_next(&arguments[before]));
    let is_operand =
        |(at, word): &(usize, &String)| !word.starts_with(['-', STAR]) && !word.is_empty() && !is_value(*at);
    let operands = || arguments.iter().enumerate().filter(is_operand);
    entry.commands == CommandOperands::Remote && operands().count() < 2 && !operands().any(|(_, word)| is_remote(word))
}

/// Returns operands that a program takes for commands. A rule must spell them.
pub(super) fn commands_among(program: &Program, arguments: &[String]) -> Vec<GivenOption> {
    let builds = program.commands == CommandOperands::Contexts
        && arguments.iter().any(|word| ["build", "import"].contains(&word.as_str()));
    let is_command = |word: &str| match program.commands {
        // Those are found by their position.
        CommandOperands::None
        | CommandOperands::Code
        | CommandOperands::OneHost
        | CommandOperands::Names
        | CommandOperands::Sources => false,
        // The words behind a program that starts others there are judged apart.
        CommandOperands::Hosts => program.starts.is_none() && is_local_command(word),
        CommandOperands::Opened => is_opened(word.trim()),
        CommandOperands::Listed => word.starts_with('@'),
        CommandOperands::Fetched => is_fetched(word),
        CommandOperands::Connections => is_connection(word),
        CommandOperands::Located => is_located(word),
        CommandOperands::Charts => word.contains("://") && !names_repository(arguments),
        CommandOperands::Remote => is_remote(word),
        CommandOperands::Contexts => builds && is_fetched(word),
        CommandOperands::Tests => word.starts_with(['@', '/']) || word.split(['/', '=']).any(|part| part == ".."),
        CommandOperands::Paths => word.contains('/') && !word.starts_with('-'),
        CommandOperands::Packages => {
            !word.starts_with('-')
                && (word.contains('/') || word.ends_with('-') || (word.ends_with('+') && !word.ends_with("++")))
        }
        CommandOperands::Repositories => is_repository_elsewhere(word),
        CommandOperands::Alternatives => word == "+",
        CommandOperands::Added => word.starts_with('+') || is_opened_elsewhere(word),
        CommandOperands::Specifiers => is_from_elsewhere(behind_at(program, arguments), word),
        CommandOperands::Separated => word.ends_with(';') || word.contains('#'),
    };
    let found = |word: &String| match program.commands {
        // A star within an operand that a rule names is judged by its text.
        CommandOperands::Fetched
        | CommandOperands::Code
        | CommandOperands::Specifiers
        | CommandOperands::Connections
        | CommandOperands::Located
        | CommandOperands::Charts
        | CommandOperands::Remote
        | CommandOperands::Packages
        | CommandOperands::Contexts
        | CommandOperands::Paths
        | CommandOperands::Repositories => GivenOption { id: ADDRESS.into(), ..GivenOption::word(word, Effect::Leads) },
        CommandOperands::Added => GivenOption::word(word, Effect::Leads),
        CommandOperands::Sources => GivenOption { id: TARGET.into(), ..GivenOption::word(word, Effect::Leads) },
        _ => GivenOption::word(word, Effect::Commands),
    };
    match program.commands {
        CommandOperands::Sources => sources(arguments).map(found).collect(),
        CommandOperands::Code => first_operand(arguments).into_iter().map(found).collect(),
        CommandOperands::Specifiers => {
            let named = packages_named(program, arguments).filter(|word| is_command(word));
            named.map(found).collect()
        }
        CommandOperands::Repositories => {
            let is_one = |(at, word): &(usize, &String)| is_command(word) || names_host(arguments, *at);
            let places = arguments.iter().enumerate().filter(is_one).map(|(_, word)| found(word));
            places.chain(files_sent(arguments)).collect()
        }
        _ => arguments.iter().filter(|word| is_command(word)).map(found).collect(),
    }
}

/// Returns the packages of a call of which none may come from elsewhere: the first operand, or each one of a subcommand that takes their
/// names. A folder is no package there.
fn packages_named<'a>(program: &'a Program, arguments: &'a [String]) -> impl Iterator<Item = &'a String> {
    let takes_names =
        choice::operands(program, arguments).take(2).any(|verb| programs::contains(program.by_name, verb));
    let is_name = move |word: &&String| takes_names && !word.starts_with(['-', '.', '/']);
    let first = first_operand(arguments).filter(|_| !takes_names);
    arguments.iter().filter(is_name).chain(first)
}

/// Returns whether a call of `helm` says from where it takes charts later. An address is what it is about.
fn names_repository(arguments: &[String]) -> bool {
    arguments.iter().any(|word| ["repo", "registry"].contains(&word.as_str()))
}

/// Returns whether a client of a host may take a part of a word for a command of this machine: `ftp` what is behind `|`, `lftp` a line that
/// begins with `!`.
fn is_local_command(word: &str) -> bool {
    word.contains(|letter: char| letter.is_control() || "|!;`<>".contains(letter))
}

/// Returns whether `open` of Perl takes a word for a command.
fn is_opened(word: &str) -> bool {
    word.trim_start_matches('+').starts_with(['|', '<', '>']) || word.ends_with('|')
}

/// Returns the files of code of which `go run` makes a program: those next to each other.
pub(super) fn sources(arguments: &[String]) -> impl Iterator<Item = &String> {
    let is_source = |word: &&String| word.ends_with(".go") && !word.starts_with('-');
    let runs = arguments.iter().skip_while(|word| *word != "run");
    runs.skip_while(move |word| !is_source(word)).take_while(is_source)
}

/// Returns the first operand, unless a star stands in its place.
fn first_operand(arguments: &[String]) -> Option<&String> {
    let at = arguments.iter().position(|word| !word.starts_with('-') || word == "--")?;
    let at = at + usize::from(arguments[at] == "--");
    arguments.get(at).filter(|word| !word.starts_with(STAR))
}

/// Returns what stands behind the `@` of a package among these arguments.
pub(super) fn behind_at(program: &Program, arguments: &[String]) -> BehindAt {
    // Elsewhere the word may be the value of an option: `uv add --group tool`.
    let first = arguments.iter().find(|word| !program.names.contains(&word.as_str()));
    let is_first = |names: Names| first.is_some_and(|word| programs::contains(names, word));
    let found = program.behind_at.iter().find(|(names, _)| names.is_empty() || is_first(names));
    found.map_or(BehindAt::Tag, |(_, kind)| *kind)
}

/// Returns whether a package comes from an address, from a repository or a folder, or under another name: `x@npm:y`, `x@a/b`, `a/b`.
pub(super) fn is_from_elsewhere(behind_at: BehindAt, word: &str) -> bool {
    let (scope, name) = match word.strip_prefix('@').and_then(|scoped| scoped.split_once('/')) {
        Some((scope, name)) => (scope, name),
        None => ("", word),
    };
    let marked = |source: &str| source.starts_with(|first: char| "^~!=<>".contains(first) || first.is_ascii_digit());
    let source = name.split_once('@').map(|(_, source)| source.trim()).filter(|source| !source.is_empty());
    let is_folder = source.is_some_and(|source| match behind_at {
        // For npm a version that begins with a dot is a folder.
        BehindAt::Tag => source.starts_with('.'),
        BehindAt::Place => true,
        BehindAt::Version | BehindAt::MaybeFile => source != "latest" && !is_version(source),
        BehindAt::Constraint => !marked(source) && source != "latest",
    });
    scope.contains(':') || name.contains([':', '/']) || is_folder
}

/// Returns whether a text is a version of Python's packages, in its normal form: `1.2`, `1.2rc1.post1.dev1+local.2`.
fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_local =
        |local: &str| local.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric()));
    // Takes the mark with its number from the end, if it is there.
    let before = |text: &'_ str, mark: &str| match text.rsplit_once(mark) {
        Some((before, number)) if is_number(number) => before.len(),
        _ => text.len(),
    };
    let (mut public, local) = text.split_once('+').map_or((text, None), |(public, local)| (public, Some(local)));
    for mark in [".dev", ".post"] {
        public = &public[..before(public, mark)];
    }
    // Of a version there is one kind that comes before it.
    let ends = ["a", "b", "rc"].map(|mark| before(public, mark));
    public = &public[..ends.into_iter().min().unwrap_or_default()];
    public.split('.').all(is_number) && local.is_none_or(is_local)
}

/// Returns the indices of a rule's words that name a package of which the program runs code: the first operand behind a subcommand that does
/// so, and the values of options.
pub(super) fn packages(program: &Program, rule: &[String]) -> Vec<usize> {
    let Some((_, arguments)) = rule.split_first().filter(|_| program.commands == CommandOperands::Specifiers) else {
        return Vec::new();
    };
    let begins = |verbs: Names| match verbs.is_empty() {
        true => Some(0),
        false => arguments.iter().position(|word| programs::contains(verbs, word)).map(|at| at + 1),
    };
    let from = program.starts.and_then(begins);
    let mut found = from.map_or_else(Vec::new, |from| choice::first_operands(program, arguments, from));
    let is_attached = |word: &str, option: &str| {
        let value = word.strip_prefix(option);
        value.is_some_and(|value| value.starts_with('=') || !option.starts_with("--"))
    };
    let is_value = |at: usize| {
        let is_next = at > 0 && programs::contains(program.package_options, &arguments[at - 1]);
        is_next || program.package_options.split_whitespace().any(|option| is_attached(&arguments[at], option))
    };
    found.extend((0..arguments.len()).filter(|at| is_value(*at) || arguments[*at].starts_with("npm:")));
    found.into_iter().map(|at| at + 1).collect()
}

/// Returns whether a star in the name of a package makes it one from elsewhere: `acme-x/evil`, `acme-x@.evil`. `own`: the words of the rule.
pub(super) fn leaves_package(program: &Program, own: &[String], star: &StarInWord<'_>) -> bool {
    if may_be_file(program, own, star) {
        return true;
    }
    // Of a package that is installed besides, no version is one (`uvx --with x@1.2`).
    let is_besides = [star.previous, star.before].iter().any(|word| word.starts_with("--with") || *word == "-w");
    let kind = match behind_at(program, own) {
        BehindAt::Version | BehindAt::MaybeFile if is_besides => BehindAt::Place,
        kind => kind,
    };

    let name = star.before.rsplit([':', '=']).next().unwrap_or_default();
    let text = star.stands_for.split(BREAK).next().unwrap_or_default();
    !is_from_elsewhere(kind, name) && is_from_elsewhere(kind, &format!("{name}{text}{}", star.behind))
}

/// Returns whether the program runs a file of the name in which a rule has a star, if there is one. With `--spec` it looks for none.
fn may_be_file(program: &Program, own: &[String], star: &StarInWord<'_>) -> bool {
    let is_subcommand = |names: Names| own.iter().any(|word| programs::contains(names, word));
    let runs_files = program.behind_at.iter().any(|(names, kind)| *kind == BehindAt::MaybeFile && is_subcommand(names));
    // Behind the name it is the program's own.
    let has_source = own.iter().take(star.at).any(|word| word == "--spec" || word.starts_with("--spec="));
    let is_option = |word: &str| program.package_options.split_whitespace().any(|option| word.starts_with(option));
    runs_files && !has_source && !is_option(star.previous) && !is_option(star.before)
}

/// Returns whether an editor opens a word, or the value in it, on another machine: `scp://h/x`, `/ssh:h:x`.
fn is_opened_elsewhere(word: &str) -> bool {
    let is_method = |text: &str| text.split('/').next().is_some_and(|part| part.contains(':'));
    word.contains("://") || word.strip_prefix('/').is_some_and(is_method)
}

/// Returns whether a word is an address, or an option for files with one: `-fhttps://h/x`, `-Rf=https://h/x`, `--filename=a,https://h/x`.
/// An item of such a list may stand in quotes. A folder of kustomize may be on another machine, too: `git::…`, `git@h:x`,
/// `github.com/a/b`.
pub(super) fn is_fetched(word: &str) -> bool {
    /// Number of letters in a cluster of which each may have an address for its value. A word with more of them counts as one.
    const MOST: usize = 64;
    const HOSTS: [&str; 4] = ["github.com", "gitlab.com", "bitbucket.org", "dev.azure.com"];
    let is_host =
        |text: &str| HOSTS.iter().any(|host| text.strip_prefix(host).is_some_and(|rest| rest.starts_with([':', '/'])));
    let is_account = |text: &str| {
        let place = text.split('/').next().unwrap_or_default();
        place.split_once('@').is_some_and(|(_, host)| host.contains(':'))
    };
    let is_scheme = |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    let begins = |item: &str| {
        let item = item.to_ascii_lowercase();
        let text = item.trim_start_matches(|letter: char| "\"=".contains(letter) || letter.is_whitespace());
        text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme))
            || text.starts_with("git::")
            || is_host(text)
            || is_account(text)
    };
    match word.strip_prefix('-') {
        Some(option) if option.starts_with('-') => {
            let value = option.strip_prefix("-filename=").or_else(|| option.strip_prefix("-kustomize="));
            value.is_some_and(|value| value.split(',').any(begins))
        }
        Some(cluster) => {
            let mut values = cluster.match_indices(['f', 'k']).map(|(at, letter)| &cluster[at + letter.len()..]);
            let is_one = values.by_ref().take(MOST).any(|value| value.split(',').any(begins));
            is_one || values.next().is_some()
        }
        None => word.split(',').any(begins),
    }
}

/// Returns the words by which `kubectl` prints by a template in a file of this machine, whose text it shows: `-o go-template-file=FILE`, and
/// `--template=FILE` beside it.
pub(super) fn templates_in_files(program: &Program, arguments: &[String]) -> Vec<GivenOption> {
    const KINDS: [&str; 4] = ["template-file", "templatefile", "jsonpath-file", "columns-file"];
    let is_one = |word: &&String| KINDS.iter().any(|kind| word.contains(kind));
    if program.commands != CommandOperands::Fetched || !arguments.iter().any(|word| is_one(&word)) {
        return Vec::new();
    }
    let names_file = |word: &&String| is_one(word) || word.starts_with("--template");
    arguments.iter().filter(names_file).map(|word| GivenOption::word(word, Effect::Leads)).collect()
}

/// Returns whether `openssl` takes a word, or the value in it, for an address, or for the name of a library that it loads
/// (`org.openssl.engine:ID:KEY`). Values of some options begin like that, too (`pass:x`, `rsa:2048`), and a number behind a host is a port.
fn is_located(word: &str) -> bool {
    const KNOWN: Names = "digest dsa ec ec_paramgen_curve ec_param_enc env fd file hexkey key param pass rsa rsa_keygen_bits rsa_keygen_pubexp \
        rsa_mgf1_md rsa_oaep_md rsa_padding_mode rsa_pss_saltlen";
    let value = word.split_once('=').filter(|(name, _)| name.starts_with('-')).map_or(word, |(_, value)| value);
    let is_scheme = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_+-.".contains(letter))
    };
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let leads =
        |(scheme, rest): (&str, &str)| is_scheme(scheme) && !programs::contains(KNOWN, scheme) && !is_port(rest);
    word.contains("://") || value.split_once(':').is_some_and(leads)
}

/// Returns the word by which a build takes its folder from the standard input, if the rule ends in a star and names more than the build
/// (`docker build -t acme/*`).
pub(super) fn context_on_input<'a>(program: &Program, rule: &[String], call: &'a [String]) -> Option<&'a String> {
    let is_input = |word: &&String| *word == "-";
    let ends_in_star = rule.last().is_some_and(|last| last.contains(STAR));
    let names_no_more = matches!(rule, [.., verb, star] if verb == "build" && star.trim_matches(STAR).is_empty());
    let builds = program.commands == CommandOperands::Contexts && rule.iter().any(|word| word == "build");
    let spelled = rule.iter().filter(is_input).count();
    call.iter().filter(is_input).nth(spelled).filter(|_| builds && ends_in_star && !names_no_more)
}

/// Returns whether a word is a place on another machine, as `rsync` and `scp` read it: a colon in front of any slash.
fn is_remote(word: &str) -> bool {
    let is_address =
        word.split_once("://").is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphanumeric()));
    let host = word.split('/').next().unwrap_or_default();
    is_address || (!word.starts_with('-') && host.contains(':'))
}

/// Returns whether a word, or the value in it, leads `gh` to another host, or out of a path of its API.
fn is_repository_elsewhere(word: &str) -> bool {
    let value = word.split_once('=').filter(|(name, _)| name.starts_with('-')).map_or(word, |(_, value)| value);
    let mut parts = value.split('/');
    let names_host = parts.next().is_some_and(|host| host.contains('.') && !host.starts_with('.'));
    value.contains("://") || value.starts_with("git@") || (names_host && parts.count() >= 2) || fetch::climbs(value)
}

/// Returns whether a word is a repository of another host: `-RHOST/a/b`, or `HOST/a/b` behind that option.
fn names_host(arguments: &[String], at: usize) -> bool {
    let word = &arguments[at];
    let is_named = at.checked_sub(1).is_some_and(|before| ["-R", "--repo"].contains(&arguments[before].as_str()));
    let attached = word.strip_prefix("--repo=").or_else(|| word.strip_prefix("-R")).filter(|value| !value.is_empty());
    attached.or(is_named.then_some(word)).is_some_and(|repository| repository.matches('/').count() > 1)
}

/// Returns the fields of a request of `gh` whose value is a file: `-F body=@FILE`. `-f` sends the text itself.
fn files_sent(arguments: &[String]) -> impl Iterator<Item = GivenOption> {
    let ends_in_field = |word: &String| match word.strip_prefix("--") {
        Some(long) => long == "field",
        None => word.starts_with('-') && word.ends_with('F'),
    };
    let attached = |word: &String| {
        let is_letters = word.starts_with('-') && !word.starts_with("--") && word.contains('F');
        word.starts_with("--field=") || is_letters
    };
    let is_value = move |at: usize| at.checked_sub(1).is_some_and(|before| ends_in_field(&arguments[before]));
    let is_file = move |(at, word): &(usize, &String)| word.contains("=@") && (is_value(*at) || attached(word));
    let given = |word: &String| GivenOption { id: "file of field".into(), ..GivenOption::word(word, Effect::Leads) };
    arguments.iter().enumerate().filter(is_file).map(move |(_, word)| given(word))
}

/// Returns whether a word is a connection string of PostgreSQL that says where it leads.
pub(super) fn is_connection(word: &str) -> bool {
    /// Keywords of such a string that say so, or as whom.
    const PLACES: Names = "dbname host hostaddr port service servicefile user";
    // The next keyword may follow a closing quotation mark.
    let ends = |letter: char| letter.is_whitespace() || letter == '\'';
    let mut keys = word.split('=').map(|part| part.trim_end().rsplit(ends).next().unwrap_or_default());
    let is_string = word.split_once('=').is_some_and(|(first, _)| first.split_whitespace().count() == 1);
    ["postgresql://", "postgres://"].iter().any(|scheme| word.starts_with(scheme))
        || (is_string && keys.any(|key| programs::contains(PLACES, key)))
}
