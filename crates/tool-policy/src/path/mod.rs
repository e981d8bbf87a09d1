//! Path rules: gitignore style, against paths with `..` and symlinks resolved.
//!
//! `//abs` is absolute, `~/x` is in the home folder, anything else is relative to `work/`. `*` matches one segment, `**`
//! many. A pattern without a slash matches at any depth. A grant needs both the path as written *and* its resolved form
//! to match; a denial needs either.

mod glob;
mod resolve;
mod roots;

pub(super) use resolve::{Resolved, resolve};
pub use roots::PathRoots;
pub(super) use roots::{Protected, ResolvedRoots};

use std::path::{Path, PathBuf};

use glob::Segment;

/// The base folder of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Work,
    Home,
    Root,
}

/// A compiled path pattern.
#[derive(Clone, Debug)]
pub(super) struct PathRule {
    base: Base,
    segments: Vec<Segment>,
    /// Whether the pattern has no slash, so that it matches at any depth.
    floating: bool,
    /// Whether the last segment is plain text (or was followed by `/`). It then names a folder with its contents, too.
    names_folder: bool,
    /// Whether it ends in `/`. It then grants what is in a folder, and no file of that name.
    is_folder: bool,
}

impl PathRule {
    /// Compiles the specifier of a path tool.
    pub(super) fn new(text: &str) -> Self {
        let (base, rest) = if let Some(rest) = text.strip_prefix("//") {
            (Base::Root, rest)
        } else if let Some(rest) = text.strip_prefix("~/") {
            (Base::Home, rest)
        } else if text == "~" {
            (Base::Home, "")
        } else {
            (Base::Work, text.strip_prefix("./").unwrap_or(text))
        };
        let is_folder = rest.ends_with('/');
        let trimmed = rest.trim_matches('/');
        let floating = base == Base::Work && !rest.trim_end_matches('/').contains('/') && !trimmed.is_empty();
        let segments: Vec<Segment> =
            trimmed.split('/').filter(|part| !part.is_empty() && *part != ".").map(Segment::new).collect();
        let names_folder = is_folder || segments.last().is_none_or(Segment::is_plain);
        let floating = floating && segments != [Segment::Deep];
        Self { base, segments, floating, names_folder, is_folder }
    }

    /// Returns whether a grant covers the path. `below`: and everything under it (for searches in a folder).
    pub(super) fn grants(&self, path: &Path, roots: &ResolvedRoots, below: bool) -> bool {
        self.relatives(path, roots).iter().any(|parts| {
            let starts = self.starts(parts.len());
            starts.into_iter().any(|from| {
                let tail = &parts[from..];
                let is_entry = self.is_folder && !below;
                let last = tail.len().saturating_sub(usize::from(is_entry));
                let inside = self.names_folder && (1..=last).any(|end| glob::matches(&self.segments, &tail[..end]));
                let inside = inside || (self.names_folder && self.segments.is_empty());
                let deep = matches!(self.segments.last(), Some(Segment::Deep));
                let exact = !is_entry && glob::matches(&self.segments, tail);
                let folder_itself = deep && glob::matches(&self.segments[..self.segments.len() - 1], tail);
                if below { inside || (deep && exact) || folder_itself } else { inside || exact }
            })
        })
    }

    /// Returns whether a denial covers the path or a folder above it. `below`: or anything under it.
    pub(super) fn denies(&self, path: &Path, roots: &ResolvedRoots, below: bool) -> bool {
        if self.floating {
            let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
            // At any depth anywhere, since denials are read generously. A search could meet a match.
            return below || parts.iter().any(|part| glob::matches(&self.segments, &[*part]));
        }
        self.relatives(path, roots).iter().any(|parts| {
            self.segments.is_empty()
                || (1..=parts.len()).any(|end| glob::matches(&self.segments, &parts[..end]))
                || (below && glob::could_match_below(&self.segments, parts))
        }) || (below && self.bases(roots).iter().any(|base| base.starts_with(path)))
    }

    /// Returns whether this matches everything that `other` matches. `false` if that cannot be told.
    pub(super) fn covers(&self, other: &Self) -> bool {
        if self.base == other.base && self.segments == other.segments && self.floating == other.floating {
            return (self.names_folder || !other.names_folder) && (!self.is_folder || other.is_folder);
        }
        if self.base != other.base || other.floating {
            return self.base == other.base && self.segments == [Segment::Deep];
        }
        if self.floating {
            return false;
        }
        let (prefix, open) = match self.segments.split_last() {
            Some((Segment::Deep, prefix)) => (prefix, true),
            _ => (self.segments.as_slice(), self.names_folder),
        };
        let plain = prefix.iter().all(Segment::is_plain);
        plain && open && other.segments.len() > prefix.len() && other.segments.starts_with(prefix)
    }

    /// Returns whether the pattern is relative to `work/`.
    pub(super) fn is_in_work(&self) -> bool {
        self.base == Base::Work
    }

    /// Returns whether the tree at the pattern's beginning contains a protected place, so that no sandbox opens it.
    pub(super) fn is_closed(&self, roots: &ResolvedRoots) -> bool {
        let literal = self.segments.iter().map_while(Segment::plain);
        let below: PathBuf = literal.collect();
        self.bases(roots).iter().any(|base| roots.holds_protected(&base.join(&below)))
    }

    /// Returns whether some path could match both. `true` if that cannot be told.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        if self.base != other.base || self.floating || other.floating {
            return true;
        }
        self.segments.iter().zip(&other.segments).take_while(|(a, b)| **a != Segment::Deep && **b != Segment::Deep).all(
            |(a, b)| match (a.plain(), b.plain()) {
                (Some(a), Some(b)) => a == b,
                _ => true,
            },
        )
    }

    fn starts(&self, length: usize) -> Vec<usize> {
        if self.floating { (0..length.max(1)).collect() } else { vec![0] }
    }

    fn bases(&self, roots: &ResolvedRoots) -> Vec<PathBuf> {
        match self.base {
            Base::Work => roots.work.clone(),
            Base::Home => roots.user_home.clone(),
            Base::Root => vec![PathBuf::from("/")],
        }
    }

    /// Returns the path's segments below the pattern's base, for each spelling of that base.
    fn relatives<'a>(&self, path: &'a Path, roots: &ResolvedRoots) -> Vec<Vec<&'a str>> {
        self.bases(roots)
            .iter()
            .filter_map(|base| path.strip_prefix(base).ok())
            .filter_map(|rest| rest.iter().map(|part| part.to_str()).collect::<Option<Vec<_>>>())
            .collect()
    }
}

#[cfg(test)]
mod tests;
