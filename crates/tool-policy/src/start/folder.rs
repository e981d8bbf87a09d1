//! The working folder of a program. A rule applies in `work/`, and in folders that `Read` and `Edit` rules open.

use std::path::{Path, PathBuf};

use super::StartWords;
use crate::fetch;
use crate::path::{Protected, Resolved, ResolvedRoots, resolve};
use crate::programs::{self, Class, Effect, Options, base_name, git};
use crate::request::Access;
use crate::rule_set::{RuleSet, grants_path};

/// The folders in which a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolderScope {
    /// In `work/` itself.
    InWork,
    /// In `work/` and folders below it.
    BelowWork,
    /// Also in `$TMPDIR`, and in folders that `Read` or `Edit` rules open.
    InOpenFolders,
    /// Everywhere.
    Anywhere,
}

/// Maximum number of arguments that are followed to their targets, and of their bytes. For a program that changes its operands, the
/// maximum is higher, and exceeding it is a refusal.
const MAX_FOLLOWED: usize = 64;
const MAX_BYTES: usize = 8 * 1024;
const MAX_CHANGED: usize = 1024;
const MAX_CHANGED_BYTES: usize = 64 * 1024;

/// Maximum number of bytes of a path, and of a name in one. The kernel refuses longer ones.
const MAX_PATH: usize = 4096;
const MAX_NAME: usize = 255;

/// Returns whether a rule's program may work in a folder.
pub(super) fn fits(folder: &Path, holds: FolderScope, lists: &RuleSet, roots: &ResolvedRoots) -> bool {
    let Some(resolved) = resolve(&folder.to_string_lossy(), Path::new("/"), Path::new("/"), roots.read_link) else {
        return false;
    };
    let all = |fits: &dyn Fn(&PathBuf) -> bool| resolved.readings.iter().all(fits);
    let below_work = |path: &PathBuf| roots.work.iter().any(|work| path.starts_with(work));
    match holds {
        FolderScope::InWork => all(&|path| roots.work.contains(path)),
        FolderScope::BelowWork => all(&below_work),
        FolderScope::Anywhere => true,
        FolderScope::InOpenFolders => {
            all(&|path| roots.is_temporary(path) || below_work(path))
                || lists.grants_for("Read").any(|rule| grants_path(rule, &resolved, Access::Search, roots))
        }
    }
}

/// Returns whether the way to a folder stays in `work/` and the folders above it, step by step. Elsewhere a job can turn a link, or move a
/// folder in front of a `..`, between the verdict and the program's own look.
pub(super) fn is_led_within_work(folder: &Path, roots: &ResolvedRoots) -> bool {
    folder.ancestors().all(|step| {
        let resolved = resolve(&step.to_string_lossy(), Path::new("/"), Path::new("/"), roots.read_link);
        let is_on_way = |path: &PathBuf| roots.work.iter().any(|work| path.starts_with(work) || work.starts_with(path));
        resolved.is_some_and(|resolved| resolved.everywhere().all(is_on_way))
    })
}

/// Returns the index from which words of a start may name what it changes, or `None` if it changes no named file.
fn changed_from(start: &StartWords<'_>) -> Option<usize> {
    let program = programs::by_base_name(start.program);
    let writes = || start.guarded.iter().any(|option| option.effect == Effect::Writes);
    let others = (program.writes_operands || writes()).then_some(0);
    let from = match program.is_git() {
        true => git::changed_from(start.words.get(1..).unwrap_or_default()).or(others),
        false => others.or((program.class == Class::Changes).then_some(0)),
    };
    from.map(|at| at + 1)
}

/// Returns the indices of words that are exclusion patterns, unless a word before their option could take that for its
/// value.
fn patterns(options: &Options, words: &[String]) -> Vec<usize> {
    let mut found = Vec::new();
    if options.patterns.is_empty() || words.iter().any(|word| word == "--") {
        return found;
    }
    let bundle = words.get(1).filter(|word| options.bundled && !word.starts_with('-'));
    let taken = bundle.map_or(0, |word| 1 + word.chars().filter(|letter| options.values.contains(*letter)).count());
    let mut listed = false;
    for (at, pair) in words.windows(2).enumerate().map(|(at, pair)| (at + 1, pair)) {
        let (before, word) = (&pair[0], pair[1].as_str());
        if word.starts_with('-') || word == "@" {
            listed = options.patterns.contains(&word) && at > taken && !before.starts_with('-');
        } else if listed {
            found.push(at);
            // `tar` takes a single pattern per option.
            listed = !options.bundled;
        }
    }
    found
}

/// Returns a protected place in which a program would work, or that an argument names, with that argument.
pub(super) fn protected<'a>(start: &StartWords<'a>, roots: &ResolvedRoots) -> Option<(&'a str, Protected)> {
    let (words, folder, name) = (start.words, start.folder.as_path(), base_name(start.program));
    let place = |path: &Resolved| path.everywhere().find_map(|path| roots.protected(path));
    if let Some(found) = resolve(&folder.to_string_lossy(), Path::new("/"), Path::new("/"), roots.read_link)
        .and_then(|path| place(&path))
    {
        return Some(("", found));
    }
    // Check all words, even beyond the followed ones, and values attached to options.
    let from = changed_from(start);
    let changes = from.is_some();
    let options = &programs::named(name).options;
    let patterns = patterns(options, words);
    let is_pattern = |word: &str| word.split_once('=').is_some_and(|(name, _)| options.patterns.contains(&name));
    let changed = |at: usize, word: &str| {
        from.is_some_and(|from| at >= from) && !is_pattern(word) && patterns.binary_search(&at).is_err()
    };
    let fetches = fetch::options(name).is_some();
    let globbed = start.guarded.iter().any(|option| option.id.starts_with("remote-name"));
    let mut named = words.iter().enumerate().filter(|(at, word)| changed(*at, word) && names_tooling(word, globbed));
    if let Some((_, word)) = named.next() {
        return Some((word, Protected::Tooling));
    }
    // The folder of `git -C` is the working folder already.
    let leads = |at: usize| programs::named(name).is_git() && words[at] == "-C";
    let arguments = words.iter().enumerate().skip(1).filter(|(at, _)| !leads(at - 1));
    // Words of `curl` can be texts, too.
    let names_files = changes && !fetches;
    let is_link =
        |word: &str| word.len() <= MAX_NAME && !word.contains('/') && (roots.read_link)(&folder.join(word)).is_ok();
    let is_followed = |word: &str| {
        if names_files { is_place(word) || is_link(word) } else { is_path(word) || changes && is_link(word) }
    };
    let (most, most_bytes) = if changes { (MAX_CHANGED, MAX_CHANGED_BYTES) } else { (MAX_FOLLOWED, MAX_BYTES) };
    let mut bytes = 0;
    let named = arguments.flat_map(|(at, word)| operands(word, names_files).map(move |path| (at, word, path)));
    for (count, (at, word, path)) in named.filter(|(_, _, path)| is_followed(path)).enumerate() {
        bytes += path.len();
        if count >= most || bytes > most_bytes {
            return changes.then_some((word, Protected::TooMany));
        }
        // Only shells expand a `~`.
        let path =
            if path.starts_with('~') { folder.join(path).to_string_lossy().into_owned() } else { path.to_owned() };
        let Some(resolved) = resolve(&path, folder, Path::new("/"), roots.read_link) else { continue };
        match place(&resolved) {
            Some(found @ (Protected::DataFolder | Protected::Client)) => return Some((word, found)),
            // A whole word may also be a file with that name.
            Some(Protected::Tooling) if changed(at, word) || is_pattern(word) && path.len() == word.len() => {
                return Some((word, Protected::Tooling));
            }
            Some(Protected::Process) if changes && !is_descriptor(&path, &resolved) => {
                return Some((word, Protected::Process));
            }
            _ => {}
        }
    }
    None
}

/// Returns the paths that a word may name: the word, the value of `name=value`, and the text behind a short option (`-tfolder`).
/// `names_files`: the program's operands are all files, so include the text behind several letters (`-avtfolder`), and names with a `=`.
fn operands(word: &str, names_files: bool) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    let whole = (names_files || value.is_none()).then_some(word);
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
    let most = if names_files { letters.bytes().take_while(u8::is_ascii_alphanumeric).count() } else { 1 };
    let behind = (1..=most).filter_map(move |at| letters.get(at..)).filter(|rest| (1..=MAX_PATH).contains(&rest.len()));
    whole.into_iter().chain(value).chain(behind)
}

/// Returns whether a path is an open file of the program's own (`/dev/fd/63`), and nothing below it.
fn is_descriptor(path: &str, resolved: &Resolved) -> bool {
    let real = resolved.readings.last().and_then(|real| real.to_str()).unwrap_or_default();
    let mut parts = real.split('/').skip(3);
    let plain = !path.split('/').any(|part| part == "..");
    plain && parts.next() == Some("fd") && parts.next().is_some() && parts.next().is_none()
}

/// Returns whether a part of a word is the name of a folder with tooling: `.git`, `-t.git/hooks`, `of=.claude/x`, `s|^|.git/hooks/|`. Of
/// an address only the last part counts, as the name of the saved file. `globbed`: it may be an address whose name `curl` puts together.
fn names_tooling(word: &str, globbed: bool) -> bool {
    let is_name = |part: &str| {
        [".git", ".claude"].iter().any(|name| match part.strip_suffix(name) {
            // `w` and `W` of `sed` need no blank behind them.
            Some(before) => {
                let command = before.trim_start_matches(|c: char| c.is_ascii_digit());
                before.is_empty() || before.starts_with('-') || ["w", "W"].contains(&command)
            }
            None => false,
        })
    };
    let path = word.split(['#', '?']).next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    if globbed && path.contains('/') && last.starts_with(['.', '{', '[']) && last.contains(['{', '[']) {
        return true;
    }
    let is_address = ["http://", "https://", "ftp://"].iter().any(|scheme| word.starts_with(scheme));
    if is_address {
        return is_name(&unescaped(last));
    }
    let is_separator = |c: char| !c.is_alphanumeric() && !['.', '-', '_', '\\'].contains(&c);
    word.split(is_separator).any(is_name)
}

/// Decodes the last part of an address as a file's name: `%67` is `g`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('%');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        match code.filter(u8::is_ascii).zip(part.get(2..)) {
            Some((byte, rest)) => plain.extend([char::from(byte).to_string().as_str(), rest]),
            None => plain.extend(["%", part]),
        }
    }
    plain
}

/// Returns whether a word can name a file outside of the folder itself.
fn is_place(word: &str) -> bool {
    word.len() <= 4096 && (word.contains('/') || word.starts_with('.'))
}

/// Returns whether a word looks like a path, and not like a text.
fn is_path(word: &str) -> bool {
    is_place(word) && !word.contains(char::is_whitespace) && !word.contains("://") && !word.starts_with('~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_not_changed() {
        for (call, expected) in [
            ("tar -czf b.tgz --exclude .git .", [4].as_slice()),
            ("tar czf b.tgz --exclude .git --exclude .claude .", &[4, 6]),
            ("zip -qr b.zip . -x .git/a .git/b -i x", &[5, 6]),
            ("zip -qr b.zip . -x .git/a @ .git/b", &[5]),
            // Here `--exclude` is a file, a folder, or the value of the option before it.
            ("tar xCf . --exclude .git/hooks/x", &[]),
            ("tar xf --exclude .git/hooks/x", &[]),
            ("tar -xf --exclude .git/hooks/x", &[]),
            ("tar -xf a.tar -- --exclude .git/hooks/x", &[]),
            ("tar -xf a.tar -C --exclude .git/hooks", &[]),
            ("zip -b -x .git/x.zip a", &[]),
            ("cp --exclude .git x", &[]),
        ] {
            let words: Vec<String> = call.split(' ').map(ToOwned::to_owned).collect();
            assert_eq!(patterns(&programs::named(&words[0]).options, &words), expected, "{call}");
        }
    }

    #[test]
    fn a_folder_with_tooling_is_found_in_a_word() {
        for word in [
            ".git",
            ".git/config",
            "./a/.git/x",
            "-t.git/hooks",
            "--target=.claude/x",
            "of=.git/x",
            "..//.git//x",
            "x://../.git/x",
            "https://x.example/.git",
            "https://x.example/a/.g%69t",
            "https://x.example/.git#a/b",
            "https://x.example/.claude?a=/b",
            "x.example/.git#",
            "s|^|.git/hooks/|",
            "w .git/hooks/x",
            "1w.git/x",
            "1e echo x > .git/x",
            "a b/.git",
        ] {
            assert!(names_tooling(word, false), "{word}");
        }
        for word in [
            "repo.git",
            "a/repo.git/x",
            ".gitignore",
            ".github/x",
            "git",
            "https://x.example/.git/config",
            "https://x.example/a.git",
            "https://x.example/a?b=.git",
            "s/\\.git$//",
            "s|repo.git|x|",
        ] {
            assert!(!names_tooling(word, false), "{word}");
        }
        for (word, expected) in
            [("h/.gi{t}", true), ("http://h/[.]git", true), ("h/{a,b}/x", false), ("h/x[1-3].gz", false)]
        {
            assert_eq!(names_tooling(word, true), expected, "{word}");
        }
    }
}
