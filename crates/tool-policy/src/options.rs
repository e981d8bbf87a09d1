//! Options that write, execute or steer a program elsewhere: a `*` in a rule does not stand for them, the rule must
//! spell them.
//!
//! Words are read as `getopt_long` would at its most generous: clusters (`-uo`), attached values (`-ofile`),
//! abbreviated long names (`--outp`). Where that could be read in two ways, an option counts as given.

use crate::programs::Class;
use crate::programs::base_name;
use crate::start::{is_name, is_word};
use crate::wildcard::STAR;
use crate::{fetch, git, programs};

/// What an option lets a program do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It writes a file.
    Writes,
    /// It executes a program that is not judged.
    Executes,
    /// It changes what is read, or asked for.
    Steers,
    /// It changes where the program finds the code that it runs.
    Leads,
}

/// An option that a rule must spell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guarded {
    short: &'static str,
    name: &'static str,
    effect: Effect,
}

impl Guarded {
    /// One name for all its spellings.
    pub(super) fn id(&self) -> &'static str {
        self.name
    }

    /// How it is written. `one_dash`: as `find` does.
    pub(super) fn shown(&self, one_dash: bool) -> String {
        let dashes = if self.name.len() > 1 && !one_dash { "--" } else { "-" };
        format!("{dashes}{}", self.name)
    }
}

/// Such an option, found among words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// One name for all its spellings.
    pub id: String,
    /// As a rule would spell it.
    pub shown: String,
    /// What it lets the program do.
    pub effect: Effect,
}

pub(super) const fn writes(short: &'static str, name: &'static str) -> Guarded {
    Guarded { short, name, effect: Effect::Writes }
}

pub(super) const fn executes(short: &'static str, name: &'static str) -> Guarded {
    Guarded { short, name, effect: Effect::Executes }
}

const fn steers(short: &'static str, name: &'static str) -> Guarded {
    Guarded { short, name, effect: Effect::Steers }
}

/// How a program's options are read.
pub(super) struct Options {
    pub guarded: &'static [Guarded],
    /// Short options with a value: in a cluster, what follows is that value.
    pub values: &'static str,
    /// Long options that are harmless, though they begin a guarded one.
    pub harmless: &'static [&'static str],
    /// Its long options have one dash (`find -delete`).
    pub one_dash: bool,
    /// Its first word may be a cluster without a dash (`tar xIf`).
    pub bundled: bool,
}

pub(super) const NONE: Options = Options { guarded: &[], values: "", harmless: &[], one_dash: false, bundled: false };

const fn options(guarded: &'static [Guarded], values: &'static str) -> Options {
    Options { guarded, values, ..NONE }
}

const SORT: Options =
    options(&[writes("o", "output"), executes("", "compress-program"), writes("T", "temporary-directory")], "kSt");
const SED: Options = options(&[writes("i", "in-place")], "efl");
const AWK: Options = options(
    &[
        writes("i", "include"),
        executes("l", "load"),
        writes("o", "pretty-print"),
        writes("d", "dump-variables"),
        writes("p", "profile"),
    ],
    "FvfeE",
);
const FIND: Options = Options {
    guarded: &[
        writes("", "delete"),
        writes("", "fprint"),
        writes("", "fprint0"),
        writes("", "fprintf"),
        writes("", "fls"),
        steers("", "files0-from"),
    ],
    one_dash: true,
    ..NONE
};
const TAR: Options = Options {
    guarded: &[
        executes("", "to-command"),
        executes("", "checkpoint-action"),
        executes("I", "use-compress-program"),
        executes("", "rsh-command"),
        executes("F", "info-script"),
        executes("", "new-volume-script"),
        executes("", "rmt-command"),
    ],
    values: "fCbTXKNgHVL",
    harmless: &[],
    one_dash: false,
    bundled: true,
};
const RG: Options =
    options(&[executes("", "pre"), executes("", "hostname-bin"), executes("z", "search-zip")], "efgmABCtTrdMjE");
const FD: Options = options(&[executes("x", "exec"), executes("X", "exec-batch")], "detEcSoj");
const PAGER: Options = options(&[executes("", "pager")], "");
const MAN: Options =
    options(&[executes("P", "pager"), executes("H", "html"), executes("", "preprocessor")], "CRLmMSserEp");
const LESS: Options = options(
    &[
        writes("o", "log-file"),
        writes("O", "LOG-FILE"),
        steers("k", "lesskey-file"),
        steers("", "lesskey-content"),
        steers("", "lesskey-src"),
    ],
    "bhjpPtTxyz",
);
const TREE: Options = options(&[writes("o", "output")], "LPIHT");
const FILE: Options =
    options(&[writes("C", "compile"), executes("z", "uncompress"), executes("Z", "uncompress-noreport")], "efFmP");
const SHUF: Options = options(&[writes("o", "output")], "ein");
const YQ: Options = options(&[writes("i", "inplace"), writes("s", "split-exp")], "oIpP");
const ZIP: Options =
    options(&[writes("m", "move"), executes("T", "test"), executes("", "unzip-command"), executes("", "TT")], "bnt");
const PYTHON: Options = options(&[executes("c", "c"), executes("m", "m"), executes("i", "i")], "cmWX");
const PERL: Options =
    options(&[executes("eE", "e"), executes("mM", "M"), executes("x", "x"), executes("d", "d")], "eEFIlmMVx");
const RUBY: Options = options(&[executes("e", "e"), executes("r", "require"), executes("x", "x")], "eErFIKTWx");
const NODE: Options = options(
    &[
        executes("e", "eval"),
        executes("p", "print"),
        executes("r", "require"),
        executes("", "import"),
        executes("", "loader"),
        executes("", "experimental-loader"),
        executes("i", "interactive"),
    ],
    "epr",
);
const PHP: Options =
    options(&[executes("r", "run"), executes("R", "process-code"), executes("d", "define")], "rRBEdfFSt");
const MAKE: Options = Options { values: "CEfIjloOW", ..NONE };
const NPM: Options = Options { values: "Cw", ..NONE };
const CARGO: Options = Options { values: "CFjpZ", ..NONE };
const INSTALL: Options = options(&[executes("", "strip-program")], "gmoStT");
const SPLIT: Options = options(&[executes("", "filter")], "abClnt");

/// The options of a program that runs what a folder holds. They are counted the other way round: all but these may lead to other
/// code.
struct Tool {
    /// Letters that stand alone; together in a cluster if `clusters`.
    flags: &'static str,
    /// Letters whose value is the rest of the word, or the next one.
    values: &'static str,
    clusters: bool,
    long: &'static [&'static str],
    /// What stands behind the first operand belongs to the program that it names.
    until_operand: bool,
}

/// None of them has a value, which would be taken for the operand.
const NPX_TOOL: Tool = Tool {
    flags: "dhqsvy",
    values: "",
    clusters: false,
    long: &[
        "help",
        "ignore-scripts",
        "no-audit",
        "no-fund",
        "offline",
        "prefer-offline",
        "quiet",
        "silent",
        "version",
        "yes",
    ],
    until_operand: true,
};

const MAKE_TOOL: Tool = Tool {
    flags: "BdhiknpqrRsStvw0123456789",
    values: "jl",
    clusters: true,
    long: &[
        "always-make",
        "debug",
        "dry-run",
        "help",
        "ignore-errors",
        "jobs",
        "just-print",
        "keep-going",
        "load-average",
        "no-builtin-rules",
        "no-print-directory",
        "output-sync",
        "print-data-base",
        "print-directory",
        "question",
        "quiet",
        "recon",
        "silent",
        "touch",
        "trace",
        "version",
        "warn-undefined-variables",
    ],
    until_operand: false,
};

/// It takes every number of dashes for two, and clusters for names.
const NPM_TOOL: Tool = Tool {
    flags: "dhqsvwy",
    values: "",
    clusters: false,
    long: &[
        "color",
        "dry-run",
        "foreground-scripts",
        "help",
        "if-present",
        "ignore-scripts",
        "include-workspace-root",
        "json",
        "loglevel",
        "no-audit",
        "no-color",
        "no-fund",
        "offline",
        "prefer-offline",
        "quiet",
        "silent",
        "verbose",
        "version",
        "workspace",
        "workspaces",
        "yes",
    ],
    until_operand: false,
};

const CARGO_TOOL: Tool = Tool {
    flags: "hqrvV",
    values: "Fjp",
    clusters: true,
    long: &[
        "all",
        "all-features",
        "all-targets",
        "bench",
        "benches",
        "bin",
        "bins",
        "check",
        "color",
        "doc",
        "example",
        "examples",
        "exclude",
        "features",
        "frozen",
        "help",
        "jobs",
        "keep-going",
        "lib",
        "list",
        "locked",
        "message-format",
        "no-default-features",
        "no-deps",
        "no-fail-fast",
        "no-run",
        "offline",
        "package",
        "profile",
        "quiet",
        "release",
        "test",
        "tests",
        "verbose",
        "version",
        "workspace",
    ],
    until_operand: false,
};

fn tool(name: &str) -> Option<&'static Tool> {
    match name {
        "make" | "gmake" => Some(&MAKE_TOOL),
        "npx" => Some(&NPX_TOOL),
        "npm" | "pnpm" | "yarn" => Some(&NPM_TOOL),
        "cargo" => Some(&CARGO_TOOL),
        _ => None,
    }
}

/// The options among a tool's arguments that may lead to other code.
fn leading(tool: &Tool, arguments: &[String]) -> Vec<Found> {
    let found = |shown: String| Found { id: shown.clone(), shown, effect: Effect::Leads };
    let mut out = Vec::new();
    for word in arguments.iter().take_while(|word| *word != "--") {
        let text = word.split(STAR).next().unwrap_or_default();
        let Some(option) = text.strip_prefix('-') else {
            // A star may stand for options.
            if tool.until_operand && !word.starts_with(STAR) {
                break;
            }
            continue;
        };
        if let Some(long) = option.strip_prefix('-') {
            let name = long.split_once('=').map_or(long, |(name, _)| name);
            if !tool.long.contains(&name) {
                out.push(found(format!("--{name}")));
            }
            continue;
        }
        if !tool.clusters && option.chars().count() > 1 {
            out.push(found(text.to_owned()));
            continue;
        }
        for letter in option.chars() {
            if tool.values.contains(letter) {
                break;
            }
            if !tool.flags.contains(letter) {
                out.push(found(format!("-{letter}")));
                break;
            }
        }
    }
    out
}

/// How the options of a program are read.
pub(super) fn of(name: &str) -> &'static Options {
    match name {
        "sort" => &SORT,
        "sed" => &SED,
        "awk" | "gawk" | "mawk" | "nawk" => &AWK,
        "find" => &FIND,
        "tar" => &TAR,
        "rg" => &RG,
        "fd" | "fdfind" => &FD,
        "ag" | "ack" => &PAGER,
        "man" => &MAN,
        "less" | "more" => &LESS,
        "tree" => &TREE,
        "file" => &FILE,
        "shuf" => &SHUF,
        "yq" => &YQ,
        "zip" => &ZIP,
        "install" => &INSTALL,
        "split" => &SPLIT,
        "make" | "gmake" => &MAKE,
        "npm" | "npx" | "pnpm" | "yarn" => &NPM,
        "cargo" => &CARGO,
        "perl" => &PERL,
        "ruby" => &RUBY,
        "node" | "bun" | "deno" => &NODE,
        "php" => &PHP,
        name if is_python(name) => &PYTHON,
        _ => &NONE,
    }
}

fn is_python(name: &str) -> bool {
    let version = |c: char| c.is_ascii_digit() || c == '.';
    name.trim_end_matches(version) == "python" || name.trim_end_matches(version) == "pypy"
}

/// Whether a program runs the script that its first operand names.
fn is_interpreter(name: &str) -> bool {
    is_python(name) || ["bash", "dash", "node", "perl", "php", "ruby", "sh"].contains(&name)
}

/// Whether the words of a rule name what a program runs (`make test *`, `python3 report.py *`): in another folder they name
/// something else. A script with a path from `/` is the same one everywhere.
pub(super) fn names_code(program: &str, arguments: &[String]) -> bool {
    if programs::named_class(program) != Class::Runs {
        return false;
    }
    let name = base_name(program);
    let options = of(name);
    let is_flag = |word: &&String| {
        let cluster = word.strip_prefix('-').unwrap_or_default();
        !cluster.is_empty() && cluster.chars().all(|c| c.is_ascii_alphabetic() && !options.values.contains(c))
    };
    let script = arguments.iter().find(|word| !is_flag(word));
    if is_interpreter(name) && script.is_some_and(|word| word.starts_with('/')) {
        return false;
    }
    let has_value = |word: &String| {
        let ends = |option: &Found| word.ends_with(option.shown.trim_start_matches('-'));
        let word_alone = std::slice::from_ref(word);
        let led = tool(name).map(|tool| leading(tool, word_alone)).unwrap_or_default();
        word.contains('=') || !scan(options, word_alone).iter().chain(&led).all(ends)
    };
    arguments.iter().any(|word| match word.starts_with('-') {
        true => has_value(word),
        false => !word.starts_with(STAR) && !word.is_empty(),
    })
}

/// Variables of `make` among its operands: one that is more than a word is code, and one that names a program may name any. Each
/// must be spelled by its name.
fn variables(name: &str, arguments: &[String]) -> Vec<Found> {
    const RESERVED: &[&str] = &["GNUMAKEFLAGS", "MAKE", "MAKEFILES", "MAKEFLAGS", "MAKEOVERRIDES", "SHELL"];
    let more = |word: &String| {
        let (name, value) = word.split_once('=').filter(|_| !word.starts_with('-'))?;
        let name = name.trim_end_matches([':', '+', '?']);
        let value = value.split(STAR).next().unwrap_or_default();
        let runs = matches!(programs::listed(value), Some(Class::Runs | Class::Wrapper));
        let plain = is_word(value) && !value.contains('/') && !runs;
        let shown = format!("{name}=*");
        let harmless = plain && is_name(name) && !RESERVED.contains(&name);
        (!harmless || word.contains(STAR)).then(|| Found { id: shown.clone(), shown, effect: Effect::Leads })
    };
    if ["make", "gmake"].contains(&name) { arguments.iter().filter_map(more).collect() } else { Vec::new() }
}

/// An interpreter that is given no script takes its code from standard input: a rule must spell that as `-`.
fn code_on_input(name: &str, arguments: &[String]) -> Option<Found> {
    let interprets = is_interpreter(name) && programs::listed(name) != Some(Class::Wrapper);
    let asks = |word: &String| ["--version", "-V", "-v", "--help", "-h"].contains(&word.as_str());
    let script = |word: &String| word != "-" && !word.starts_with('-');
    (interprets && !arguments.iter().any(|word| script(word) || asks(word) || word == "--")).then(|| Found {
        id: "-".into(),
        shown: "-".into(),
        effect: Effect::Executes,
    })
}

/// The options among a program's arguments that a rule must spell. In a rule's words stars are [`STAR`].
pub(super) fn guarded(program: &str, arguments: &[String]) -> Vec<Found> {
    // Wherever it lies: another program of this name loses little.
    match base_name(program) {
        "git" => git::guarded(arguments),
        "curl" | "wget" => fetch::read(program, arguments).guarded,
        name => {
            let mut found = scan(of(name), arguments);
            found.extend(code_on_input(name, arguments));
            found.extend(variables(name, arguments));
            found.extend(tool(name).map(|tool| leading(tool, arguments)).unwrap_or_default());
            found
        }
    }
}

/// Reads arguments by the options of one program.
pub(super) fn scan(options: &Options, arguments: &[String]) -> Vec<Found> {
    let mut out = Vec::new();
    if options.guarded.is_empty() {
        return out;
    }
    let found = |guarded: &Guarded| Found {
        id: guarded.name.into(),
        shown: guarded.shown(options.one_dash),
        effect: guarded.effect,
    };
    for (at, word) in arguments.iter().enumerate() {
        let text = word.split(STAR).next().unwrap_or_default();
        if options.one_dash {
            out.extend(
                options.guarded.iter().filter(|guarded| text.strip_prefix('-') == Some(guarded.name)).map(found),
            );
            continue;
        }
        if word == "--" {
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            let given = long.split_once('=').map_or(long, |(given, _)| given);
            if !given.is_empty() && !options.harmless.contains(&given) {
                out.extend(options.guarded.iter().filter(|guarded| guarded.name.starts_with(given)).map(found));
            }
            continue;
        }
        let cluster = match text.strip_prefix('-') {
            Some(cluster) => cluster,
            None if options.bundled && at == 0 => text,
            None => continue,
        };
        for letter in cluster.chars() {
            out.extend(
                options
                    .guarded
                    .iter()
                    .filter(|guarded| guarded.short.contains(letter))
                    .map(|guarded| Found { shown: format!("-{letter}"), ..found(guarded) }),
            );
            // In a bundle values come in words of their own.
            let bundle = options.bundled && at == 0 && !text.starts_with('-');
            if options.values.contains(letter) && !bundle {
                break;
            }
        }
    }
    out
}

/// The first option of a call that the rule does not spell as often.
pub(super) fn unspelled(mut spelled: Vec<Found>, given: Vec<Found>) -> Option<Found> {
    given.into_iter().find(|option| match spelled.iter().position(|other| other.id == option.id) {
        Some(at) => {
            spelled.swap_remove(at);
            false
        }
        None => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(call: &str, expected: &[&str]) {
        let words: Vec<String> = call.split(' ').map(ToOwned::to_owned).collect();
        let found = guarded(&words[0], &words[1..]);
        let ids: Vec<&str> = found.iter().map(|option| option.id.as_str()).collect();
        assert_eq!(ids, expected, "{call}");
    }

    #[test]
    fn options_are_found_in_every_spelling() {
        for call in [
            "sort -o x f",
            "sort -ox f",
            "sort -uo x f",
            "sort --output x",
            "sort --output=x",
            "sort --o x f",
            "sort f -ro x",
        ] {
            check(call, &["output"]);
        }
        check("sort -u -k 2 --reverse -- -o", &[]);
        check("sort -to f", &[]);
        check("sort --compress-p=x", &["compress-program"]);
        check("sed -i s/a/b/ f", &["in-place"]);
        check("sed -ni p f", &["in-place"]);
        check("sed -i.bak p f", &["in-place"]);
        check("sed --in-pl p f", &["in-place"]);
        check("sed -n -e i f", &[]);
        check("sed -ei f", &[]);
        check("find . -name -delete", &["delete"]);
        check("find . -execdir x ;", &[]);
        check("python3 -c x", &["c"]);
        check("python3.11 -u -", &["-"]);
        check("python3", &["-"]);
        check("python3 --version", &[]);
        check("python3 report.py -c x", &["c"]);
        check("perl -ne print f", &["e"]);
        check("node --eval=x y", &["eval"]);
        check("find . -fprint x -fls y", &["fprint", "fls"]);
        check("find . -name *.md -type f", &[]);
        check("tar xIf x a", &["use-compress-program"]);
        check("tar -xIx a", &["use-compress-program"]);
        check("tar -fI a", &[]);
        check("tar cf a --checkpoint-a=exec=x b", &["checkpoint-action"]);
        check("tar xzf a.tgz --exclude=x", &[]);
        check("rg --pre x y", &["pre"]);
        check("rg --pre-glob x y", &[]);
        check("rg -nz x", &["search-zip"]);
        check("awk -i inplace 1 f", &["include"]);
        check("awk -F: {print} f", &[]);
        check("cat -o f", &[]);
        check("/opt/x/sort -o f", &["output"]);
        check("install -s --strip-program=x a b", &["strip-program"]);
        check("make test CC=sh", &["CC=*"]);
        check("make test cc=/x/y", &["cc=*"]);
        check("make test V=1 TESTS=unit env=staging", &[]);
    }

    #[test]
    fn what_is_not_known_to_be_harmless_may_lead_to_other_code() {
        for call in [
            "make test -s -j4 -kn --silent --jobs=4",
            "make -j 4 test -- -C",
            "npm test -s --if-present -- --prefix x",
            "npm run build --workspace=x -w y --silent",
            "cargo test -p x --release -qv -j4 -- --config x",
            "cargo clippy --all-targets --features=a -pC",
        ] {
            check(call, &[]);
        }
        check("npx eslint --format unix src", &[]);
        check("npx --yes --package=x eslint", &["--package"]);
        check("npx --loglevel silent -p x eslint", &["--loglevel"]);
        check("make test -sC x", &["-C"]);
        check("make test --directory=x", &["--directory"]);
        check("make test --dir x", &["--dir"]);
        check("make test --eval=x", &["--eval"]);
        for option in ["-prefix", "--prefix", "-sq", "--script_shell", "--node_options", "--package"] {
            check(&format!("npm test {option} x"), &[option]);
        }
        check("npm test ---prefix x", &["---prefix"]);
        check("cargo test -qC x", &["-C"]);
        check("cargo test --target-dir x", &["--target-dir"]);
        check("cargo test --config=x", &["--config"]);
    }

    #[test]
    fn a_rule_spells_an_option_once_for_each_time() {
        let read = |call: &str| guarded("sort", &call.split(' ').map(ToOwned::to_owned).collect::<Vec<_>>());
        assert_eq!(unspelled(read("-o \u{1}"), read("-o x f")), None);
        assert_eq!(unspelled(read("-o \u{1}"), read("--out x f")), None);
        assert_eq!(unspelled(read("-u \u{1}"), read("-uo x f")).map(|option| option.shown).as_deref(), Some("-o"));
        assert!(unspelled(read("-o \u{1}"), read("-o x -o y")).is_some());
        assert_eq!(unspelled(read("--output=\u{1}"), read("-ox")), None);
    }
}
