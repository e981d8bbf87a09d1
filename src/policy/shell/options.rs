//! Options by which an ordinary program runs another one, or code: `tar --to-command`, `git -c alias.x=!cmd`,
//! `awk 'BEGIN { system("…") }'`. A command that uses one hides what it does.

use super::sed;
use super::word::Word;

/// A program's options that run something.
struct Runs {
    program: &'static str,
    /// Letters in a cluster of short options.
    short: &'static str,
    /// Long options without the dashes. Abbreviations count.
    long: &'static [&'static str],
    /// Whole words.
    words: &'static [&'static str],
}

const fn runs(program: &'static str, short: &'static str, long: &'static [&'static str]) -> Runs {
    Runs { program, short, long, words: &[] }
}

const TABLE: &[Runs] = &[
    runs(
        "tar",
        "IF",
        &[
            "to-command",
            "checkpoint-action",
            "use-compress-program",
            "rsh-command",
            "info-script",
            "new-volume-script",
            "rmt-command",
        ],
    ),
    runs("bsdtar", "", &["use-compress-program", "to-command"]),
    runs("cpio", "", &["rsh-command"]),
    runs("rsync", "e", &["rsh", "rsync-path", "early-input"]),
    runs("sort", "", &["compress-program"]),
    runs("split", "", &["filter"]),
    runs("rg", "", &["pre", "hostname-bin"]),
    runs("fd", "xX", &["exec", "exec-batch"]),
    runs("fdfind", "xX", &["exec", "exec-batch"]),
    runs("ag", "", &["pager"]),
    runs("ack", "", &["pager"]),
    runs("bat", "", &["pager"]),
    runs("man", "PHX", &["pager", "html", "preprocessor"]),
    runs("zip", "T", &["unzip-command", "test"]),
    runs("ssh", "oFS", &[]),
    runs("scp", "oFSD", &[]),
    runs("sftp", "oFSDb", &[]),
    runs("wget", "e", &["use-askpass", "execute", "config"]),
    runs("make", "E", &["eval"]),
    runs("vi", "csSewW", &["cmd", "startuptime"]),
    runs("vim", "csSewW", &["cmd", "startuptime"]),
    runs("nvim", "csSewWl", &["cmd", "headless"]),
    runs("view", "csSewW", &["cmd"]),
    runs("emacs", "lfe", &["eval", "execute", "load", "funcall", "batch", "script"]),
    runs("nc", "ec", &["exec", "sh-exec"]),
    runs("ncat", "ec", &["exec", "sh-exec", "lua-exec"]),
    runs("tcpdump", "z", &[]),
    runs("nmap", "", &["script"]),
    runs("hg", "", &["config"]),
    runs("svn", "", &["config-option", "diff-cmd", "diff3-cmd", "editor-cmd"]),
    runs("dpkg", "", &["pre-invoke", "post-invoke"]),
    runs("apt", "oc", &["option", "config-file"]),
    runs("apt-get", "oc", &["option", "config-file"]),
    runs("mysql", "e", &["execute", "pager"]),
    runs("less", "", &["lesskey-content", "lesskey-src"]),
];

/// Why what this command does cannot be seen; `None` where it can.
pub(super) fn hidden(program: &str, words: &[Word]) -> Option<String> {
    match program {
        "git" => return git(words),
        "sed" | "gsed" => return sed::sed(&words[1..]),
        "awk" | "gawk" | "mawk" | "nawk" => return sed::awk(&words[1..]),
        "make" | "gmake" => {
            if let Some(why) = make(words) {
                return Some(why);
            }
        }
        "socat" => {
            let starts = |word: &Word| {
                let text = word.shown().to_ascii_uppercase();
                word.is_unknown() || ["EXEC:", "SYSTEM:", "SHELL:"].iter().any(|kind| text.starts_with(kind))
            };
            return words[1..].iter().any(starts).then(|| "an address of it runs a program".into());
        }
        "sqlite3" | "psql" => {
            let plain = |word: &Word| {
                word.literal().is_some_and(|text| !text.trim_start().starts_with('.') && !text.contains("\\!"))
            };
            let operands = words[1..].iter().filter(|word| !word.may_be_option()).count();
            if operands < 2 || !words[1..].iter().all(plain) {
                return Some("it can run shell commands from its input".into());
            }
            return None;
        }
        _ => {}
    }
    let entry = TABLE.iter().find(|entry| entry.program == program)?;
    for (index, word) in words[1..].iter().enumerate() {
        if word.literal() == Some("--") {
            return None;
        }
        if word.is_unknown() && word.may_be_option() {
            return Some(format!("`{}` could be an option that runs a program; write `--` before it", word.shown()));
        }
        let text = word.known_start();
        // `tar xIf` needs no dash.
        let bundled = program == "tar" && index == 0 && !text.starts_with('-');
        let cluster = if bundled { Some(text) } else { text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) };
        let found = cluster.is_some_and(|letters| letters.contains(|letter| entry.short.contains(letter)))
            || entry.long.iter().any(|name| is_abbreviation(text, name))
            || entry.words.contains(&text)
            || (text.starts_with('+') && matches!(program, "vi" | "vim" | "nvim" | "view" | "emacs"));
        if found {
            return Some(format!("its option `{}` can run another program", word.shown()));
        }
    }
    None
}

/// The files that an option of this command writes: `git log --output=f`, `sort -o f`. They count as redirections.
pub(super) fn written(program: &str, words: &[Word]) -> Vec<Word> {
    let (short, long) = match program {
        "git" => (None, "output"),
        "sort" => (Some("-o"), "output"),
        _ => return Vec::new(),
    };
    let mut out = Vec::new();
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.known_start();
        if text == "--" {
            break;
        }
        let attached = if is_abbreviation(text, long) && text.len() > 4 {
            text.split_once('=').map(|(_, value)| value)
        } else if let Some(value) = short.and_then(|short| text.strip_prefix(short)) {
            Some(value).filter(|value| !value.is_empty())
        } else {
            continue;
        };
        match attached {
            Some(value) if !word.is_unknown() => out.push(Word::text(value)),
            Some(_) => out.push(Word::anything(&word.shown())),
            None => out.extend(words.get(at + 1).cloned()),
        }
    }
    out
}

/// Whether `text` is `--name`, an abbreviation of it, or either with a value.
pub(super) fn is_abbreviation(text: &str, name: &str) -> bool {
    let Some(long) = text.strip_prefix("--") else { return false };
    let given = long.split_once('=').map_or(long, |(given, _)| given);
    !given.is_empty() && name.starts_with(given)
}

/// `make` with a makefile that is no file of a known name: it comes on standard input, or from a substitution.
fn make(words: &[Word]) -> Option<String> {
    let mut is_file = false;
    for word in &words[1..] {
        let text = word.known_start();
        let is_option = text.starts_with('-') && text.len() > 1;
        let given = if std::mem::take(&mut is_file) {
            Some(text)
        } else if let Some(long) = text.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let names_file = !name.is_empty() && ["file", "makefile"].iter().any(|long| long.starts_with(name));
            is_file = names_file && value.is_none();
            value.filter(|_| names_file)
        } else if is_option && let Some((_, value)) = text.split_once('f') {
            is_file = value.is_empty() && !word.is_unknown();
            Some(value).filter(|value| !value.is_empty() || word.is_unknown())
        } else {
            None
        };
        let elsewhere = |path: &str| {
            path == "-"
                || path.starts_with("/dev/")
                || path.starts_with("/proc/")
                || path.ends_with("/stdin")
                || path.contains("/fd/")
        };
        if given.is_some_and(|path| word.is_unknown() || elsewhere(path)) || (word.is_unknown() && word.may_be_option())
        {
            return Some("its makefile comes on standard input, or is known only when it runs".into());
        }
    }
    None
}

/// A call of `git` without the options in front of its subcommand, for denials. A value that may become several
/// words stays and can stand for anything.
pub(in crate::policy) fn git_without_globals(words: &[Word]) -> Option<Vec<Word>> {
    const WITH_VALUE: &[&str] =
        &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source", "--super-prefix"];
    if words.first().and_then(Word::base_name) != Some("git") {
        return None;
    }
    let mut out = vec![Word::text("git")];
    let mut rest = &words[1..];
    while let Some((option, after)) = rest.split_first()
        && option.known_start().starts_with('-')
    {
        rest = after;
        out.extend(Some(option).filter(|option| option.splits()).cloned());
        if option.literal().is_some_and(|text| WITH_VALUE.contains(&text))
            && let Some((value, after)) = rest.split_first()
        {
            out.extend(Some(value).filter(|value| value.splits()).cloned());
            rest = after;
        }
    }
    out.extend(rest.iter().cloned());
    Some(out)
}

/// Settings that only change how `git` prints.
fn harmless_setting(setting: &str) -> bool {
    let name = setting.split_once('=').map_or(setting, |(name, _)| name).to_ascii_lowercase();
    ["color.", "user.name", "user.email", "core.quotepath", "advice.", "log.date", "column."]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// `git`: settings given with the call, and subcommands or options that run programs.
fn git(words: &[Word]) -> Option<String> {
    let runs = |word: &Word| Some(format!("`git` can run another program by `{}`", word.shown()));
    let mut at = 1;
    let subcommand = loop {
        let word = words.get(at)?;
        let Some(text) = word.literal() else { return runs(word) };
        match text {
            "-C" => at += 2,
            "-c" => {
                let setting = words.get(at + 1)?;
                if !setting.literal().is_some_and(harmless_setting) {
                    return runs(setting);
                }
                at += 2;
            }
            "--no-pager"
            | "-P"
            | "--version"
            | "--help"
            | "--no-replace-objects"
            | "--literal-pathspecs"
            | "--no-optional-locks" => at += 1,
            _ if text.starts_with('-') => return runs(word),
            _ => break text,
        }
    };
    let arguments = &words[at + 1..];
    if matches!(
        subcommand,
        "filter-branch" | "instaweb" | "daemon" | "send-email" | "web--browse" | "credential" | "shell"
    ) {
        return runs(&words[at]);
    }
    if subcommand == "config" {
        let reads = arguments.iter().any(|word| {
            word.literal()
                .is_some_and(|text| text.starts_with("--get") || matches!(text, "--list" | "-l" | "get" | "list"))
        });
        let sets_harmless = arguments.iter().all(|word| !word.is_unknown())
            && arguments
                .iter()
                .filter_map(Word::literal)
                .find(|text| !text.starts_with('-') && *text != "set")
                .is_some_and(harmless_setting);
        return if reads || sets_harmless { None } else { runs(&words[at]) };
    }
    let long: &[&str] = &[
        "exec",
        "extcmd",
        "upload-pack",
        "receive-pack",
        "open-files-in-pager",
        "ext-diff",
        "textconv",
        "tool",
        "gpg-sign",
        "config",
        "template",
        "strategy",
    ];
    let (short, actions): (&str, &[&str]) = match subcommand {
        "rebase" => ("x", &[]),
        "grep" => ("O", &[]),
        "difftool" => ("x", &[]),
        "clone" => ("uc", &[]),
        "bisect" => ("", &["run"]),
        "submodule" => ("", &["foreach"]),
        "archive" => ("", &[]),
        _ => ("", &[]),
    };
    let mut is_message = false;
    for word in arguments {
        let text = word.known_start();
        if text == "--" {
            break;
        }
        // The text of a message is no option, whatever it holds, as long as it stays one word.
        if std::mem::take(&mut is_message) && !word.splits() {
            continue;
        }
        if matches!(subcommand, "commit" | "tag" | "merge") {
            let letters = text.strip_prefix('-').and_then(|rest| rest.strip_suffix('m'));
            is_message = !word.is_unknown()
                && (text == "--message" || letters.is_some_and(|letters| letters.chars().all(|c| "aqsvn".contains(c))));
            if text.starts_with("--message=") && !word.splits() {
                continue;
            }
        }
        if word.is_unknown() && word.may_be_option() {
            return Some(format!("`{}` could be an option that runs a program; write `--` before it", word.shown()));
        }
        let cluster = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let found = cluster.is_some_and(|letters| letters.contains(|letter| short.contains(letter)))
            || (text.len() > 4 && long.iter().any(|name| is_abbreviation(text, name)))
            || actions.contains(&text)
            || text.starts_with("ext::");
        if found {
            return runs(word);
        }
    }
    None
}
