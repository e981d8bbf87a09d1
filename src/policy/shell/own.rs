//! Calls of our own program: its global flags and aliases do not hide what is called.

use super::word::Word;

/// The program's own name.
const NAME: &str = "ollim-bot";

/// Subcommands of the program itself. Any other name is a command of one's own, whose arguments are not ours to read.
const SUBCOMMANDS: &[&str] = &[
    "agents",
    "budget",
    "cancel-run",
    "chat",
    "check",
    "completions",
    "config",
    "doctor",
    "fire",
    "follow-up-chain",
    "help",
    "inbox",
    "init",
    "next",
    "pause",
    "policy",
    "reminder",
    "resume",
    "routine",
    "run",
    "runs",
    "service",
    "sessions",
    "spawn",
    "status",
];

/// The call with global flags removed and aliases resolved; `None` for other programs.
///
/// `by_base_name` (for a denial): the program counts whatever its path, and `ollim-bot-NAME` is `ollim-bot NAME`.
pub(in crate::policy) fn canonical(words: &[Word], by_base_name: bool) -> Option<Vec<Word>> {
    let program = words.first()?;
    let name = if by_base_name { program.base_name()? } else { program.literal()? };
    let mut out = vec![Word::text(NAME)];
    let mut rest = &words[1..];
    if name != NAME {
        let command = name.strip_prefix("ollim-bot-").filter(|command| by_base_name && !command.is_empty())?;
        out.push(Word::text(command));
        out.extend(rest.iter().cloned());
        return Some(out);
    }
    while let Some(text) = rest.first().and_then(Word::literal) {
        match text {
            "--json" => rest = &rest[1..],
            "--home" | "--color" if rest.get(1).is_some_and(|value| value.literal().is_some()) => rest = &rest[2..],
            // A value that is not known may be several words: it stays, and can stand for anything.
            "--home" | "--color" => rest = &rest[1..],
            "--" if by_base_name => rest = &rest[1..],
            _ if text.starts_with("--home=") || text.starts_with("--color=") => rest = &rest[1..],
            _ => break,
        }
    }
    let Some((subcommand, arguments)) = rest.split_first() else { return Some(out) };
    let resolved = match subcommand.literal() {
        Some("follow_up_chain") => Word::text("follow-up-chain"),
        _ => subcommand.clone(),
    };
    let ours = resolved.literal().is_some_and(|name| SUBCOMMANDS.contains(&name));
    out.push(resolved);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if ours {
            match argument.literal() {
                Some("--json") => continue,
                Some("--color") => {
                    arguments.next();
                    continue;
                }
                Some(text) if text.starts_with("--color=") => continue,
                _ => {}
            }
        }
        out.push(argument.clone());
    }
    Some(out)
}

/// Whether a call of our program names another data folder, which no fork may.
pub(in crate::policy) fn uses_home_flag(words: &[Word]) -> bool {
    let is_ours = words.first().and_then(Word::base_name) == Some(NAME);
    if !is_ours {
        return false;
    }
    let is_home = |text: &str| text == "--home" || text.starts_with("--home=");
    let mut leading = true;
    let mut ours = true;
    for word in &words[1..] {
        let text = word.known_start();
        if leading && !text.is_empty() && !text.starts_with('-') {
            // The value of a global flag may be taken for a subcommand here, which only makes this stricter.
            leading = false;
            ours = SUBCOMMANDS.contains(&text);
        }
        if (leading || ours) && is_home(text) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::shell::word::shown;

    fn call(text: &str, by_base_name: bool) -> Option<String> {
        let words: Vec<Word> = text.split(' ').map(Word::text).collect();
        canonical(&words, by_base_name).map(|words| shown(&words))
    }

    #[test]
    fn flags_and_aliases_do_not_hide_a_call() {
        for (text, granted, denied) in [
            ("ollim-bot cal today", Some("ollim-bot cal today"), Some("ollim-bot cal today")),
            ("ollim-bot --json cal today", Some("ollim-bot cal today"), Some("ollim-bot cal today")),
            ("ollim-bot --color never --json cal", Some("ollim-bot cal"), Some("ollim-bot cal")),
            ("ollim-bot --color=never cal", Some("ollim-bot cal"), Some("ollim-bot cal")),
            ("ollim-bot --home x cal", Some("ollim-bot cal"), Some("ollim-bot cal")),
            ("ollim-bot -- cal", Some("ollim-bot -- cal"), Some("ollim-bot cal")),
            ("ollim-bot next --json", Some("ollim-bot next"), Some("ollim-bot next")),
            ("ollim-bot cal --json", Some("ollim-bot cal --json"), Some("ollim-bot cal --json")),
            (
                "ollim-bot follow_up_chain --in 5",
                Some("ollim-bot follow-up-chain --in 5"),
                Some("ollim-bot follow-up-chain --in 5"),
            ),
            ("/usr/bin/ollim-bot cal", None, Some("ollim-bot cal")),
            ("ollim-bot-cal today", None, Some("ollim-bot cal today")),
            ("bin/ollim-bot-cal today", None, Some("ollim-bot cal today")),
            ("ollim-botx cal", None, None),
            ("ls -l", None, None),
        ] {
            assert_eq!(call(text, false).as_deref(), granted, "{text}");
            assert_eq!(call(text, true).as_deref(), denied, "{text}");
        }
    }

    #[test]
    fn the_home_flag_is_found() {
        let uses = |text: &str| uses_home_flag(&text.split(' ').map(Word::text).collect::<Vec<_>>());
        assert!(uses("ollim-bot --home x cal"));
        assert!(uses("/usr/bin/ollim-bot --json --home=x cal"));
        assert!(uses("ollim-bot next --home x"));
        assert!(!uses("ollim-bot gmail --home x"));
        assert!(!uses("ls --home x"));
    }
}
