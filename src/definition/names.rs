//! Names of new files. The name of a file is the id of its definition, so a new file needs a name that no other has.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::{DefinitionId, Kind, read};
use crate::home::Home;

/// Maximum length of a slug, in bytes.
const LONGEST: usize = 40;

/// Letters that have a plain spelling.
const PLAIN: &[(&str, &str)] = &[
    ("àáâãåāăą", "a"),
    ("ä", "ae"),
    ("æ", "ae"),
    ("çćč", "c"),
    ("ďđð", "d"),
    ("èéêëēėęě", "e"),
    ("ğ", "g"),
    ("ìíîïīįı", "i"),
    ("ł", "l"),
    ("ñńň", "n"),
    ("òóôõøōő", "o"),
    ("öœ", "oe"),
    ("ř", "r"),
    ("śşš", "s"),
    ("ß", "ss"),
    ("ťţ", "t"),
    ("þ", "th"),
    ("ùúûūůű", "u"),
    ("ü", "ue"),
    ("ýÿ", "y"),
    ("źżž", "z"),
];

/// Returns the words of the first line with any ASCII letter or digit, joined by `-`, in lower case, cut between words
/// if possible. A slug holds nothing else, so it is never a path, hidden or an option. Empty if there is no such line.
pub(super) fn slug(text: &str) -> String {
    let lines = text.lines().map(plain);
    let line = lines.into_iter().find(|line| line.chars().any(|c| c.is_ascii_alphanumeric())).unwrap_or_default();
    let mut slug = String::new();
    for word in line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if slug.is_empty() {
            slug.extend(word.chars().take(LONGEST));
        } else if slug.len() + 1 + word.len() <= LONGEST {
            slug.push('-');
            slug.push_str(word);
        } else {
            break;
        }
    }
    match DefinitionId::is_reserved(&slug) {
        true => format!("a-{slug}"),
        false => slug,
    }
}

/// Returns a line in lower case with plain letters. Apostrophes and combining marks are dropped, so they do not split a word.
fn plain(line: &str) -> String {
    let spelled = |c: char| match PLAIN.iter().find(|(letters, _)| letters.contains(c)) {
        Some((_, plain)) => (*plain).to_owned(),
        None => c.to_string(),
    };
    let letters = line.chars().flat_map(char::to_lowercase);
    letters.filter(|c| !matches!(c, '\'' | '’' | '\u{300}'..='\u{36f}')).map(spelled).collect()
}

/// Whether a name is valid for a new file.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !DefinitionId::is_reserved(name)
        && name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// Returns `stem`, `stem-2`, `stem-3` and so on.
pub(super) fn numbered(stem: &str) -> impl Iterator<Item = String> {
    let stem = stem.to_owned();
    (1u32..).map(move |n| if n == 1 { stem.clone() } else { format!("{stem}-{n}") })
}

/// Returns every id that a file has or names, valid or not. A new definition with such an id would keep the other from
/// firing, or be taken for it. Leaves out the ids of the file `but` (relative path).
pub(super) fn in_use(home: &Home, but: Option<&Path>) -> HashSet<String> {
    let mut files: Vec<PathBuf> = Kind::WITH_FILES.iter().flat_map(|kind| read::list(home, *kind).files).collect();
    let failed = fs::read_dir(home.failed_reminders()).into_iter().flatten().flatten();
    files.extend(failed.map(|entry| home.relative(&entry.path()).to_owned()));
    files.retain(|file| but != Some(file));
    let ids_of = |file: &PathBuf| -> Vec<String> {
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let text = read::text(home, file).ok().flatten().unwrap_or_default();
        stem.into_iter().chain(ids_in(&text).map(|(_, id)| id.to_owned())).collect()
    };
    files.par_iter().flat_map_iter(ids_of).collect()
}

/// Returns the lines of a text that name a definition: itself, its chain or its maker. Deliberately simple: an extra
/// match only makes a name unavailable.
pub(super) fn ids_in(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let key = key.trim().trim_matches(['"', '\'']);
        let value = value.split(" #").next()?.trim().trim_matches(['"', '\'']);
        matches!(key, "id" | "chain_parent" | "chain-parent" | "created_by" | "created-by").then_some((key, value))
    })
}

/// Returns the job that made a definition, as its text says; `None` if no job did. The text may have errors.
#[must_use]
pub fn maker_in(text: &str) -> Option<DefinitionId> {
    let frontmatter = text.trim_start().lines().skip(1).take_while(|line| line.trim_end() != "---");
    // What is indented belongs to another field.
    let mut ids = frontmatter.filter(|line| !line.starts_with([' ', '\t'])).flat_map(ids_in);
    ids.find(|(key, _)| key.starts_with("created")).map(|(_, id)| DefinitionId::new(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_plain_and_short() {
        for (text, expected) in [
            ("Sort the mail", "sort-the-mail"),
            ("\n  - Check the oven!\nNow.", "check-the-oven"),
            ("Don't forget Müller's Straße 5", "dont-forget-muellers-strasse-5"),
            ("../../etc/passwd", "etc-passwd"),
            ("--help", "help"),
            ("Read all that has come in since yesterday evening and sum it up", "read-all-that-has-come-in-since"),
            ("ČŠŽ łódź İstanbul", "csz-lodz-istanbul"),
            ("買い物", ""),
            ("買い物\nBuy milk", "buy-milk"),
        ] {
            assert_eq!(slug(text), expected, "{text}");
        }
        assert_eq!(slug(&"a".repeat(99)), "a".repeat(LONGEST));
    }

    proptest::proptest! {
        #[test]
        fn a_slug_is_empty_or_a_name(text in r"\PC{0,80}") {
            let slug = slug(&text);
            assert!(slug.is_empty() || (is_name(&slug) && slug.len() <= LONGEST && !slug.ends_with('-')), "{slug}");
        }
    }

    #[test]
    fn names_are_plain() {
        for name in ["a", "7", "sort-the-mail", "Mail_2", "1f0c9a2b"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "-a", "_a", ".a", "a/b", "..", "a b", "a.md", "ä", &"a".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn what_names_a_definition_is_found_in_any_spelling() {
        let text = "---\nid: oven # mine\n\"chain-parent\": 'tea'\ncreated_by:mail\ndescription: x\n---\nid: body\n";
        let ids: Vec<&str> = ids_in(text).map(|(_, id)| id).collect();
        assert_eq!(ids, ["oven", "tea", "mail", "body"]);
    }

    #[test]
    fn the_maker_is_found_in_a_text_with_errors_and_nowhere_else() {
        let maker = |text: &str| maker_in(text).map(|id| id.to_string());
        for lines in ["created_by: mail", "cron: [\ncreated-by: 'mail'", "\"created_by\":mail # x\n: {"] {
            assert_eq!(maker(&format!("---\nid: a\n{lines}\n---\nx\n")).as_deref(), Some("mail"), "{lines}");
        }
        for text in ["---\nid: a\n---\ncreated_by: mail\n", "---\ncommand: |\n  created_by: mail\n---\n", "", "x"] {
            assert_eq!(maker(text), None, "{text}");
        }
    }
}
