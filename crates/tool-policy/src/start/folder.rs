//! The folder that a program works in: a rule speaks of `work/`, and of what `Read` and `Edit` rules open.

use std::path::{Path, PathBuf};

use crate::path::{Protected, Resolved, ResolvedRoots, resolve};
use crate::programs;
use crate::request::Access;
use crate::rule_set::{RuleSet, grants_path};

/// Where a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolderScope {
    /// In `work/` itself.
    InWork,
    /// In `work/` and folders below it.
    BelowWork,
    /// There, in `$TMPDIR`, and in folders that `Read` rules open.
    InOpenFolders,
}

/// How many arguments are followed to where they lead, and how many bytes of them.
const MAX_FOLLOWED: usize = 64;
const MAX_BYTES: usize = 8 * 1024;

/// Whether a rule's program may work in a folder.
pub(super) fn fits(folder: &Path, holds: FolderScope, lists: &RuleSet, roots: &ResolvedRoots) -> bool {
    let Some(resolved) = resolve(&folder.to_string_lossy(), Path::new("/"), Path::new("/"), roots.read_link) else {
        return false;
    };
    let all = |fits: &dyn Fn(&PathBuf) -> bool| resolved.readings.iter().all(fits);
    let below_work = |path: &PathBuf| roots.work.iter().any(|work| path.starts_with(work));
    match holds {
        FolderScope::InWork => all(&|path| roots.work.contains(path)),
        FolderScope::BelowWork => all(&below_work),
        FolderScope::InOpenFolders => {
            all(&|path| roots.is_temporary(path) || below_work(path))
                || lists.grants_for("Read").any(|rule| grants_path(rule, &resolved, Access::Search, roots))
        }
    }
}

/// A protected place that a program would work in, or that an argument names, with that argument.
pub(super) fn protected<'a>(
    words: &'a [String],
    folder: &Path,
    name: &str,
    roots: &ResolvedRoots,
) -> Option<(&'a str, Protected)> {
    let place = |path: &Resolved| path.everywhere().find_map(|path| roots.protected(path));
    if let Some(found) = resolve(&folder.to_string_lossy(), Path::new("/"), Path::new("/"), roots.read_link)
        .and_then(|path| place(&path))
    {
        return Some(("", found));
    }
    // Also behind more words than are followed, and where it is written together with an option.
    if programs::named(name).writes_operands
        && let Some(word) = words.iter().skip(1).find(|word| names_tooling(word))
    {
        return Some((word, Protected::Tooling));
    }
    // Where `git -C` leads is the folder already.
    let leads = |at: usize| programs::named(name).is_git() && words[at] == "-C";
    let arguments = words.iter().enumerate().skip(1).filter(|(at, _)| !leads(at - 1)).map(|(_, word)| word);
    let mut bytes = 0;
    let paths = arguments.filter(|word| is_path(word)).take(MAX_FOLLOWED).take_while(|word| {
        bytes += word.len();
        bytes <= MAX_BYTES
    });
    paths.map(|word| (word.as_str(), word.split_once('=').map_or(word.as_str(), |(_, value)| value))).find_map(
        |(word, path)| {
            let found = place(&resolve(path, folder, Path::new("/"), roots.read_link)?)?;
            let always = matches!(found, Protected::DataFolder | Protected::Client);
            (always || (found == Protected::Tooling && programs::named(name).writes_operands)).then_some((word, found))
        },
    )
}

/// Whether a part of a word is the name of a folder with tooling: `.git`, `-t.git/hooks`, `of=.claude/x`.
fn names_tooling(word: &str) -> bool {
    let is_name = |part: &str| {
        [".git", ".claude"].iter().any(|name| match part.strip_suffix(name) {
            Some(before) => before.is_empty() || before.starts_with('-'),
            None => false,
        })
    };
    let is_address = ["http://", "https://", "ftp://"].iter().any(|scheme| word.starts_with(scheme));
    !is_address && word.split(['/', '=', ',', ':']).any(is_name)
}

/// Whether a word looks like a path, and not like a text.
fn is_path(word: &str) -> bool {
    word.len() <= 4096
        && (word.contains('/') || word == ".." || word.starts_with('.'))
        && !word.contains(char::is_whitespace)
        && !word.contains("://")
        && !word.starts_with('~')
}

#[cfg(test)]
mod tests {
    use super::*;

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
            "a b/.git",
        ] {
            assert!(names_tooling(word), "{word}");
        }
        for word in ["repo.git", "a/repo.git/x", ".gitignore", ".github/x", "git", "https://x.example/a.git/.git"] {
            assert!(!names_tooling(word), "{word}");
        }
    }
}
