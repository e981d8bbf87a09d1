//! The words of a starting program, parsed once for all rules.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use crate::Application;
use crate::apart::{harmless_apart, without_printing};
use crate::code_on_input;
use crate::denial::DeniedCall;
use crate::fetch::{self, Fetch};
use crate::options::{self, GivenOption};
use crate::programs::{self, base_name, git};
use crate::spellings;
use crate::wildcard::{joined, loose};

/// Maximum number of words and of bytes of a start.
const MAX_WORDS: usize = 10_000;
const MAX_BYTES: usize = 256 * 1024;

/// Maximum number of `-C` options of git that are followed.
const MAX_FOLDERS: usize = 16;

/// The words of a start, in every form that rules match.
pub(crate) struct StartWords<'a> {
    pub words: &'a [String],
    /// The program's name or path, as called.
    pub program: &'a str,
    /// The working folder, including `git -C`.
    pub folder: PathBuf,
    /// Forms for grants: as they are, and without harmless options.
    pub granting: Vec<String>,
    /// The words without harmless options, joined, and those options, if their position means nothing.
    pub apart: Option<(String, Vec<String>)>,
    /// The words without options that only change what is printed, if there are any.
    pub quiet: Option<Vec<String>>,
    /// Forms for denials.
    pub denying: Vec<String>,
    /// The words as denials read them, apart from options.
    denied: OnceCell<DeniedCall>,
    /// The readings of the words by which the program does the same.
    readings: Vec<Vec<String>>,
    /// The options that a rule must spell.
    pub guarded: Vec<GivenOption>,
    /// The addresses of `curl` and `wget`.
    pub fetch: Option<Fetch>,
    /// A call of our own program, without flags and aliases.
    pub own: Option<Vec<String>>,
    /// Whether the next word determines the program's effect.
    pub has_subcommands: bool,
}

impl<'a> StartWords<'a> {
    /// Parses words, of which there must be at least one.
    pub fn new(words: &'a [String], cwd: &Path, application: &Application) -> Self {
        let mut start = Self::as_spelled(words, cwd, application);
        for other in spellings::others(words) {
            start.denying.extend(StartWords::as_spelled(&other, cwd, application).denying);
        }
        start
    }

    /// The same without the forms of its other spellings.
    pub fn as_spelled(words: &'a [String], cwd: &Path, application: &Application) -> Self {
        let program = words.first().map_or("", String::as_str);
        let arguments = words.get(1..).unwrap_or_default();
        let own = application.canonical(words, false);
        let raw = joined(words);
        let mut granting = vec![own.as_ref().map_or_else(|| raw.clone(), |words| joined(words))];
        let bare = git::without_harmless(words).map(|(words, _)| words);
        granting.extend(bare.as_deref().map(joined));
        let own_arguments = bare.as_deref().unwrap_or(words).get(1..).unwrap_or_default();
        let quiet = without_printing(program, own_arguments);
        granting.extend(quiet.as_deref().map(joined));
        granting.extend(without_dot(program, arguments));
        let fetch = fetch::options(program).map(|options| fetch::read(options, arguments));
        let mut guarded = match &fetch {
            Some(call) => call.guarded.clone(),
            None => options::guarded(program, arguments),
        };
        guarded.extend(code_on_input::among_open_files(programs::by_base_name(program), cwd));
        let mut denying = vec![loose(&raw)];
        denying.extend(git::without_globals(words).map(|words| loose(&joined(&words))));
        let readings = [application.canonical(words, true), git::aliased(words)];
        let readings: Vec<Vec<String>> = readings.into_iter().flatten().collect();
        denying.extend(readings.iter().map(|words| loose(&joined(words))));
        let apart = match &fetch {
            Some(call) => Some(([&[program.to_owned()], call.plain.as_slice()].concat(), call.harmless.clone())),
            None => harmless_apart(program, own_arguments),
        };
        let apart = apart.map(|(words, options)| (joined(&words), options));
        denying.extend(quiet.as_deref().map(|words| loose(&joined(words))));
        denying.extend(apart.as_ref().map(|(text, _)| loose(text)));
        if program.contains('/') {
            let rest = raw.get(program.len()..).unwrap_or_default();
            denying.push(loose(&format!("{}{rest}", base_name(program))));
        }
        let mut folder = cwd.to_owned();
        if programs::by_base_name(program).is_git() {
            let folders = git::folders(arguments);
            // Beyond the maximum the folder counts as out of reach.
            folder = if folders.len() > MAX_FOLDERS { PathBuf::from("/") } else { folder };
            folder.extend(folders.into_iter().take(MAX_FOLDERS));
        }
        Self {
            words,
            program,
            folder,
            granting,
            apart,
            quiet,
            denying,
            denied: OnceCell::new(),
            readings,
            guarded,
            fetch,
            own,
            has_subcommands: programs::by_base_name(program).subcommands || application.is_command(program),
        }
    }

    /// Returns the words as denials read them, apart from options.
    pub fn denied(&self) -> &DeniedCall {
        self.denied.get_or_init(|| DeniedCall::read(self.readings()))
    }

    /// Returns the words in each reading by which the program does the same.
    pub fn readings(&self) -> impl Iterator<Item = &[String]> {
        std::iter::once(self.words).chain(self.readings.iter().map(Vec::as_slice))
    }
}

/// Returns the call of an interpreter with its script's name in place of `./NAME`, which is the same file.
fn without_dot(program: &str, arguments: &[String]) -> Option<String> {
    let (script, rest) = arguments.split_first()?;
    let name =
        script.strip_prefix("./").filter(|name| name.starts_with(|first: char| first.is_ascii_alphanumeric()))?;
    let words = || [&[program.to_owned(), name.to_owned()], rest].concat();
    programs::by_base_name(program).interpreter.then(|| joined(&words()))
}

/// Returns why words cannot be judged as a start, or `None` if they can.
pub(super) fn unreadable(words: &[String]) -> Option<&'static str> {
    let bytes: usize = words.iter().map(String::len).sum();
    if words.first().is_none_or(String::is_empty) {
        Some("it has no program")
    } else if words.len() > MAX_WORDS || bytes > MAX_BYTES {
        Some("its arguments are too long to judge; pass them in a file, or in several calls")
    } else if words.iter().any(|word| word.contains(['\0', '\u{1}'])) {
        Some("an argument holds a control character")
    } else {
        None
    }
}
