//! Calls of our own program: its global flags and aliases do not hide what is called.

/// The program's own name.
pub(super) const NAME: &str = "ollim-bot";

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

/// The last part of a program's path.
pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The call with global flags removed and aliases resolved; `None` for other programs.
///
/// `by_base_name` (for a denial): the program counts whatever its path, and `ollim-bot-NAME` is `ollim-bot NAME`.
pub(super) fn canonical(words: &[String], by_base_name: bool) -> Option<Vec<String>> {
    let (program, mut rest) = words.split_first()?;
    let name = if by_base_name { base_name(program) } else { program };
    let mut out = vec![NAME.to_owned()];
    if name != NAME {
        let command = name.strip_prefix("ollim-bot-").filter(|command| by_base_name && !command.is_empty())?;
        out.push(command.to_owned());
        out.extend_from_slice(rest);
        return Some(out);
    }
    while let Some(text) = rest.first() {
        match text.as_str() {
            "--json" => rest = &rest[1..],
            "--home" | "--color" => rest = rest.get(2..).unwrap_or_default(),
            "--" if by_base_name => rest = &rest[1..],
            _ if text.starts_with("--home=") || text.starts_with("--color=") => rest = &rest[1..],
            _ => break,
        }
    }
    let Some((subcommand, arguments)) = rest.split_first() else { return Some(out) };
    let resolved = if subcommand == "follow_up_chain" { "follow-up-chain" } else { subcommand };
    let ours = SUBCOMMANDS.contains(&resolved);
    out.push(resolved.to_owned());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" if ours => {}
            "--color" if ours => {
                arguments.next();
            }
            text if ours && text.starts_with("--color=") => {}
            _ => out.push(argument.clone()),
        }
    }
    Some(out)
}

/// The command of one's own that a canonical call runs (`gmail` of `ollim-bot gmail unread`).
pub(super) fn command(canonical: &[String]) -> Option<&str> {
    let name = canonical.get(1)?.as_str();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (!SUBCOMMANDS.contains(&name) && !name.starts_with('-') && !name.is_empty() && name.chars().all(plain))
        .then_some(name)
}

/// Whether a call of our program names another data folder, which no fork may.
pub(super) fn uses_home_flag(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    if base_name(program) != NAME {
        return false;
    }
    let is_home = |text: &str| text == "--home" || text.starts_with("--home=");
    let mut leading = true;
    let mut ours = true;
    for text in arguments {
        if leading && !text.is_empty() && !text.starts_with('-') {
            // The value of a global flag may be taken for a subcommand here, which only makes this stricter.
            leading = false;
            ours = SUBCOMMANDS.contains(&text.as_str());
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

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(ToOwned::to_owned).collect()
    }

    #[test]
    fn flags_and_aliases_do_not_hide_a_call() {
        for (text, granted, denied) in [
            ("ollim-bot cal today", Some("ollim-bot cal today"), Some("ollim-bot cal today")),
            ("ollim-bot --json cal today", Some("ollim-bot cal today"), Some("ollim-bot cal today")),
            ("ollim-bot --color never --json cal", Some("ollim-bot cal"), Some("ollim-bot cal")),
            ("ollim-bot --color=never cal", Some("ollim-bot cal"), Some("ollim-bot cal")),
            ("ollim-bot --home x cal", Some("ollim-bot cal"), Some("ollim-bot cal")),
            ("ollim-bot --color", Some("ollim-bot"), Some("ollim-bot")),
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
            let call = |by_base_name| canonical(&words(text), by_base_name).map(|words| words.join(" "));
            assert_eq!(call(false).as_deref(), granted, "{text}");
            assert_eq!(call(true).as_deref(), denied, "{text}");
        }
    }

    #[test]
    fn the_home_flag_is_found() {
        let uses = |text: &str| uses_home_flag(&words(text));
        assert!(uses("ollim-bot --home x cal"));
        assert!(uses("/usr/bin/ollim-bot --json --home=x cal"));
        assert!(uses("ollim-bot next --home x"));
        assert!(!uses("ollim-bot gmail --home x"));
        assert!(!uses("ls --home x"));
    }

    #[test]
    fn commands_of_ones_own_have_plain_names() {
        assert_eq!(command(&words("ollim-bot gmail unread")), Some("gmail"));
        for text in ["ollim-bot next", "ollim-bot", "ollim-bot ../x", "ollim-bot -x", "ollim-bot a/b"] {
            assert_eq!(command(&words(text)), None, "{text}");
        }
    }
}
