//! `git`: the options before its subcommand, the classes of its subcommands, and the options that a rule must
//! spell.

use std::collections::HashMap;

use super::{
    Anywhere, Class, Effect, GuardedOption, HarmlessOptions, Names, Options, OptionsEnd, Program, Syntax, base_name,
    contains, destroys, executes, steers, switches, writes,
};
use crate::harmless;
use crate::options::{GivenOption, scan};
use crate::wildcard::STAR;

const NAME: &str = "git";

pub(super) const TABLE: &[Program] = &[Program {
    subcommands: true,
    groups: "bisect bundle commit-graph config lfs maintenance multi-pack-index notes reflog remote rerere sparse-checkout stash submodule \
        worktree",
    alike: "checkout cherry-pick deinit merge pull push rebase reflog-delete reflog-drop reflog-expire remote-prune remote-update remove \
        revert send-pack submodule-sync submodule-update",
    valued_by: &[
        ("push send-pack", "-o --exec --push-option --receive-pack --repo"),
        ("branch tag", "-u --contains --format --merged --no-contains --no-merged --points-at --sort"),
        ("branch", "--set-upstream-to"),
        ("tag", "-F -m --file --message"),
        ("merge", "-m --message"),
        ("cherry-pick revert", "-m --mainline"),
    ],
    bare_by: switches::GIT,
    host_of: Some("clone fetch ls-remote pull push"),
    syntax: Syntax::Git,
    texts: "-m --author --date --format --grep --message --pretty --since --trailer --until",
    helpers: &[
        "/usr/lib/git-core",
        "/usr/libexec/git-core",
        "/usr/local/libexec/git-core",
        "/usr/share/git-core",
        "git",
        "sh",
        "basename",
        "cat",
        "cut",
        "dirname",
        "expr",
        "grep",
        "head",
        "ls",
        "mkdir",
        "mktemp",
        "mv",
        "rm",
        "sed",
        "sort",
        "tail",
        "tr",
        // An editor that leaves a message unchanged.
        "true",
        "uname",
        "wc",
    ],
    ..Program::new(Class::Changes, &[NAME])
}];

/// Options before the subcommand whose value is a separate word.
const WITH_VALUE: &[&str] =
    &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source", "--super-prefix"];

/// Options before the subcommand that only change its output, or how it reads paths.
const HARMLESS: &[&str] = &[
    "--no-pager",
    "-P",
    "--literal-pathspecs",
    "--glob-pathspecs",
    "--noglob-pathspecs",
    "--icase-pathspecs",
    "--no-optional-locks",
    "--no-replace-objects",
    "--no-lazy-fetch",
    "--no-advice",
];

/// Harmless settings for `-c`, in lower case. They only change the output, or the commit's identity, which `git commit --author`
/// can change as well. A `.` at the end means the whole section.
const HARMLESS_SETTINGS: &[&str] =
    &["advice.", "color.", "core.abbrev", "core.quotepath", "log.date", "log.decorate", "user.email", "user.name"];

/// Settings for `-c` that are harmless with exactly this value: no program pages, edits or signs.
const HARMLESS_VALUES: &[&str] = &[
    "commit.gpgsign=false",
    "core.editor=:",
    "core.editor=true",
    "core.hookspath=/dev/null",
    "core.pager=",
    "core.pager=cat",
    "sequence.editor=:",
    "sequence.editor=true",
    "tag.gpgsign=false",
];

/// A subcommand, or several with the same properties.
struct Subcommand {
    names: &'static [&'static str],
    needs: SubcommandNeeds,
    /// Whether a rule must name it, since it runs code from its arguments or settings, or changes what later calls run.
    named: bool,
    /// Whether its operands are not changed: they are texts, repositories, or files that it reads.
    reads_operands: bool,
    /// See [`Program::looks`].
    looks: Names,
    options: Options,
    /// Options for which a star stands, if a rule names more than the subcommand. `None`: all but the guarded ones.
    harmless: Option<&'static HarmlessOptions>,
    operands: Operands,
}

/// The operands of a subcommand that a rule must spell.
#[derive(Clone, Copy)]
enum Operands {
    Any,
    /// A refspec with a destination: it changes, or with `--prune` deletes, branches of this repository.
    Fetched,
    /// A refspec that forces or deletes a branch.
    Pushed,
    /// Behind these words, an address in the place of a remote's name.
    Remotes(Names),
}

/// Long options and letters of the subcommands that fetch, with a value in the next word.
// `git pull` takes no next word for the value of `-j`.
const FETCHING_VALUES: Names = "-o -s -X --deepen --depth --filter --negotiation-tip --server-option --shallow-exclude \
    --shallow-since --strategy --strategy-option";

/// Returns whether words name a file that tells git what to do: a patch, settings, a message.
pub(crate) fn is_instructed(arguments: &[String]) -> bool {
    let own = from_subcommand(arguments);
    let Some((subcommand, rest)) = own.split_first() else { return false };
    let spells = |names: Names| crate::options::spells(names, &Options::NONE, rest);
    match subcommand.as_str() {
        "apply" | "am" => rest.iter().any(|word| !word.starts_with(['-', STAR])),
        "config" => spells("-f --file"),
        "commit" | "merge" | "notes" | "tag" => spells("-F -t --file --template"),
        _ => false,
    }
}

/// The needs of a subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubcommandNeeds {
    pub class: Class,
    pub network: bool,
    /// Whether it could be an alias for any call, or runs other programs.
    pub any: bool,
}

const READS: SubcommandNeeds = SubcommandNeeds { class: Class::Reads, network: false, any: false };
const CHANGES: SubcommandNeeds = SubcommandNeeds { class: Class::Changes, network: false, any: false };
const ANYTHING: SubcommandNeeds = SubcommandNeeds { class: Class::Changes, network: true, any: true };

/// The options of most subcommands.
const COMMON: Options = Options {
    guarded: &[
        writes("", "output"),
        executes("", "ext-diff"),
        executes("", "textconv"),
        executes("", "upload-pack"),
        executes("", "receive-pack"),
        executes("", "exec"),
        executes("", "extcmd"),
        destroys("", "abort"),
        destroys("", "quit"),
        destroys("", "skip"),
        // `ours` leaves nothing of the other side.
        destroys("", "strategy"),
    ],
    harmless: &["text"],
    ..Options::NONE
};

/// `-q`, and what most subcommands that change something have besides.
const QUIET: Anywhere = Anywhere { flags: "qv", switches: "quiet verbose", printing: ("q", "quiet"), ..Anywhere::NONE };

/// Another option overwrites, deletes, cuts the history off, or connects to a remote that no rule names (`--multiple`, `--recurse-submodules`).
const HARMLESS_FETCHING: HarmlessOptions = HarmlessOptions {
    flags: "46akpqtvnr",
    values: "jo",
    clusters: true,
    long: "append atomic auto-gc auto-maintenance autostash commit dry-run edit ff ff-only ipv4 ipv6 jobs keep log no-auto-gc \
        no-auto-maintenance no-autostash no-commit no-edit no-ff no-log no-progress no-prune no-rebase no-recurse-submodules \
        no-show-forced-updates no-stat no-tags no-verify-signatures no-write-commit-graph no-write-fetch-head porcelain progress prune \
        quiet rebase show-forced-updates squash stat summary tags verbose verify-signatures \
        write-commit-graph",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Another option is one of `git rev-list`, and may add the commits of other branches (`--all`).
const HARMLESS_PICKING: HarmlessOptions = HarmlessOptions {
    flags: "enrsx",
    values: "mX",
    clusters: true,
    long: "allow-empty allow-empty-message cleanup commit continue edit ff gpg-sign keep-redundant-commits mainline no-commit no-edit no-ff \
        no-gpg-sign no-rerere-autoupdate no-signoff reference rerere-autoupdate signoff strategy-option",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Another option pushes more than the branch that a rule names, overwrites, or tells the server to do something (`-o merge_request.create`).
const HARMLESS_PUSHING: HarmlessOptions = HarmlessOptions {
    flags: "46nquv",
    clusters: true,
    long: "atomic dry-run ipv4 ipv6 no-force-if-includes no-force-with-lease no-progress no-recurse-submodules no-signed no-thin porcelain \
        progress quiet set-upstream thin verbose verify",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// Another option takes settings, files or objects from somewhere else.
const HARMLESS_CLONING: HarmlessOptions = HarmlessOptions {
    flags: "46nqv",
    values: "bjo",
    clusters: true,
    long: "bare branch depth ipv4 ipv6 jobs no-checkout no-hardlinks no-recurse-submodules no-reject-shallow no-remote-submodules \
        no-single-branch no-tags origin progress quiet reject-shallow shallow-exclude shallow-since single-branch sparse verbose",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const HARMLESS_OF_REMOTE: HarmlessOptions = HarmlessOptions {
    flags: "anpqv",
    clusters: true,
    long: "add all auto dry-run no-tags prune push quiet verbose",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const HARMLESS_OF_SUBMODULE: HarmlessOptions = HarmlessOptions {
    flags: "qN",
    values: "j",
    clusters: true,
    long: "cached depth files for-status init jobs no-fetch no-recommend-shallow no-single-branch progress quiet recommend-shallow \
        recursive single-branch summary-limit",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

const HARMLESS_LISTING: HarmlessOptions = HarmlessOptions {
    flags: "bhqt",
    clusters: true,
    long: "branches exit-code get-url heads quiet refs sort symref tags",
    end: OptionsEnd::Nowhere,
    ..HarmlessOptions::NONE
};

/// The options of subcommands that fetch. Refspecs can also come from standard input, or follow from options.
const FETCHING: Options = Options {
    guarded: &[
        executes("", "upload-pack"),
        executes("", "exec"),
        steers("", "refmap"),
        steers("", "stdin"),
        steers("P", "prune-tags"),
        steers("", "update-head-ok"),
    ],
    values: "joX",
    harmless: &["prune"],
    anywhere: Anywhere { switches: "ff-only no-edit no-rebase no-tags prune quiet rebase verbose", ..QUIET },
    ..Options::NONE
};

/// The options of subcommands that push, with those that delete or force.
const PUSHING: Options = Options {
    guarded: &[
        executes("", "receive-pack"),
        executes("", "exec"),
        steers("f", "force"),
        steers("", "force-with-lease"),
        steers("d", "delete"),
        steers("", "mirror"),
        steers("", "prune"),
        steers("", "stdin"),
    ],
    values: "o",
    anywhere: Anywhere { flags: "quv", switches: "quiet set-upstream verbose", ..QUIET },
    ..Options::NONE
};

/// The configuration is where the option says. Whoever writes there decides what later calls run, as by `git config`.
const SEPARATE_FOLDER: GuardedOption = executes("", "separate-git-dir");

const UNKNOWN: Subcommand = Subcommand {
    names: &[],
    needs: ANYTHING,
    named: false,
    reads_operands: false,
    looks: "",
    options: COMMON,
    harmless: None,
    operands: Operands::Any,
};

const fn subcommands(needs: SubcommandNeeds, names: &'static [&'static str]) -> Subcommand {
    Subcommand { names, needs, ..UNKNOWN }
}

/// The same subcommand with options that mean the same in every position.
const fn anywhere(anywhere: Anywhere, subcommand: Subcommand) -> Subcommand {
    Subcommand { options: Options { anywhere, ..subcommand.options }, ..subcommand }
}

/// A subcommand of which a rule with more words must spell the options that overwrite or delete.
const fn forcing(name: &'static &'static str, guarded: &'static [GuardedOption], values: &'static str) -> Subcommand {
    let options = Options { guarded, values, ..COMMON };
    Subcommand { options, ..subcommands(CHANGES, std::slice::from_ref(name)) }
}

const SUBCOMMANDS: &[Subcommand] = &[
    subcommands(READS, &["annotate", "blame", "cat-file", "check-attr", "check-ignore", "check-mailmap"]),
    subcommands(READS, &["check-ref-format", "cherry", "count-objects", "describe", "diff", "diff-files"]),
    subcommands(READS, &["diff-index", "diff-tree", "for-each-ref", "log", "ls-files", "ls-tree", "merge-base"]),
    subcommands(READS, &["name-rev", "range-diff", "rev-list", "rev-parse", "shortlog", "show", "show-branch"]),
    subcommands(READS, &["show-ref", "status", "var", "verify-pack", "version", "whatchanged", "--version"]),
    subcommands(READS, &["--help", "--exec-path"]),
    Subcommand {
        options: Options {
            guarded: &[executes("O", "open-files-in-pager"), executes("", "textconv")],
            harmless: &["text"],
            values: "efmABC",
            ..Options::NONE
        },
        ..subcommands(READS, &["grep"])
    },
    subcommands(CHANGES, &["am", "apply", "bisect", "bundle"]),
    anywhere(
        Anywhere { flags: "sx", switches: "no-edit signoff", ..Anywhere::NONE },
        Subcommand { harmless: Some(&HARMLESS_PICKING), ..subcommands(CHANGES, &["cherry-pick", "revert"]) },
    ),
    anywhere(
        Anywhere { flags: "aqsv", switches: "all quiet signoff verbose", ..QUIET },
        Subcommand {
            reads_operands: true,
            ..forcing(&"commit", &[destroys("", "amend"), destroys("n", "no-verify")], "mFcCtu")
        },
    ),
    anywhere(
        QUIET,
        forcing(
            &"checkout",
            &[
                destroys("f", "force"),
                destroys("B", "B"),
                destroys("", "orphan"),
                destroys("", "no-overlay"),
                destroys("", "pathspec-from-file"),
            ],
            "b",
        ),
    ),
    subcommands(CHANGES, &["commit-graph", "commit-tree", "fast-import"]),
    Subcommand { options: Options::new(&[writes("", "export-marks")], ""), ..subcommands(CHANGES, &["fast-export"]) },
    Subcommand { looks: "--stdout", ..subcommands(CHANGES, &["format-patch"]) },
    Subcommand { looks: "-p --stdout", ..subcommands(CHANGES, &["merge-file"]) },
    Subcommand { looks: "--short", ..forcing(&"symbolic-ref", &[destroys("d", "delete")], "m") },
    subcommands(CHANGES, &["fsck", "hash-object", "merge-tree"]),
    forcing(&"gc", &[destroys("", "prune"), destroys("", "force")], ""),
    subcommands(CHANGES, &["mktree", "pack-refs", "prune", "repack"]),
    forcing(&"read-tree", &[destroys("u", "u"), destroys("", "reset")], ""),
    forcing(&"mv", &[destroys("f", "force")], ""),
    forcing(&"replace", &[destroys("d", "delete"), destroys("f", "force"), destroys("e", "edit")], ""),
    subcommands(CHANGES, &["rerere", "restore", "sparse-checkout"]),
    // It also takes files that git ignores. `list` and `show` take the options of `log` and `diff`.
    forcing(
        &"stash",
        &[writes("", "output"), executes("", "ext-diff"), executes("", "textconv"), destroys("a", "all")],
        "m",
    ),
    anywhere(QUIET, forcing(&"reset", &[destroys("", "hard"), destroys("", "keep"), destroys("", "merge")], "")),
    anywhere(QUIET, forcing(&"rm", &[destroys("f", "force")], "")),
    subcommands(CHANGES, &["stripspace"]),
    forcing(&"update-ref", &[destroys("d", "d"), destroys("", "stdin")], "m"),
    Subcommand {
        looks: "--parse --only-input --only-trailers --unfold",
        options: Options::new(&[writes("", "in-place")], ""),
        ..subcommands(CHANGES, &["interpret-trailers"])
    },
    anywhere(
        QUIET,
        forcing(
            &"switch",
            &[
                destroys("f", "force"),
                destroys("C", "force-create"),
                destroys("", "discard-changes"),
                destroys("", "orphan"),
            ],
            "c",
        ),
    ),
    forcing(
        &"update-index",
        &[destroys("", "force-remove"), destroys("", "remove"), destroys("", "cacheinfo"), destroys("", "index-info")],
        "",
    ),
    anywhere(
        Anywhere { flags: "q", values: "b", switches: "quiet", ..Anywhere::NONE },
        forcing(&"worktree", &[destroys("f", "force"), destroys("B", "B")], "b"),
    ),
    subcommands(CHANGES, &["write-tree"]),
    Subcommand {
        looks: "-a -l -v --all --list --show-current --verbose",
        ..forcing(
            &"branch",
            &[
                destroys("f", "force"),
                destroys("d", "delete"),
                destroys("D", "D"),
                destroys("m", "move"),
                destroys("M", "M"),
                destroys("c", "copy"),
                destroys("C", "C"),
                destroys("", "edit-description"),
            ],
            "u",
        )
    },
    Subcommand {
        looks: "-n --dry-run",
        ..forcing(&"clean", &[destroys("d", "d"), destroys("xX", "x"), destroys("f", "force")], "e")
    },
    anywhere(
        Anywhere { switches: "ff no-edit no-ff no-stat quiet stat verbose", ..QUIET },
        Subcommand {
            reads_operands: true,
            ..forcing(&"merge", &[destroys("s", "strategy"), destroys("", "abort"), destroys("", "quit")], "FmsSX")
        },
    ),
    // It also takes files that git ignores.
    anywhere(QUIET, Subcommand { reads_operands: true, ..forcing(&"add", &[destroys("f", "force")], "") }),
    Subcommand { reads_operands: true, ..forcing(&"notes", &[destroys("f", "force")], "mFcC") },
    anywhere(
        Anywhere {
            flags: "a",
            values: "m",
            switches: "annotate",
            valued: "message",
            pairs: "message",
            ..Anywhere::NONE
        },
        Subcommand {
            looks: "-l -n --list",
            reads_operands: true,
            ..forcing(&"tag", &[destroys("f", "force"), destroys("d", "delete")], "mFnu")
        },
    ),
    Subcommand {
        looks: "-v --verbose",
        reads_operands: true,
        // A mirror's branches take the place of this repository's.
        options: Options { guarded: &[steers("", "mirror")], ..Options::NONE },
        harmless: Some(&HARMLESS_OF_REMOTE),
        operands: Operands::Remotes("prune set-head show update"),
        ..subcommands(SubcommandNeeds { network: true, ..CHANGES }, &["remote"])
    },
    subcommands(READS, &["reflog"]),
    Subcommand {
        options: Options { guarded: &[destroys("a", "all"), destroys("f", "force")], ..COMMON },
        ..subcommands(ANYTHING, &["lfs"])
    },
    Subcommand { named: true, reads_operands: true, ..subcommands(CHANGES, &["config"]) },
    Subcommand { named: true, ..subcommands(CHANGES, &["maintenance"]) },
    Subcommand {
        options: Options::new(
            &[
                executes("x", "exec"),
                destroys("", "abort"),
                destroys("", "quit"),
                destroys("", "skip"),
                destroys("", "update-refs"),
                destroys("s", "strategy"),
            ],
            "sXC",
        ),
        ..subcommands(CHANGES, &["rebase"])
    },
    Subcommand {
        options: Options::new(&[executes("", "template"), SEPARATE_FOLDER], ""),
        ..subcommands(CHANGES, &["init"])
    },
    Subcommand {
        options: Options::new(&[writes("o", "output"), executes("", "exec"), executes("", "remote")], ""),
        ..subcommands(CHANGES, &["archive"])
    },
    Subcommand {
        options: Options::new(&[writes("", "prefix"), destroys("f", "force")], ""),
        ..subcommands(CHANGES, &["checkout-index"])
    },
    Subcommand {
        reads_operands: true,
        options: FETCHING,
        harmless: Some(&HARMLESS_FETCHING),
        operands: Operands::Fetched,
        ..subcommands(SubcommandNeeds { network: true, ..CHANGES }, &["fetch", "fetch-pack", "pull"])
    },
    Subcommand {
        reads_operands: true,
        options: PUSHING,
        harmless: Some(&HARMLESS_PUSHING),
        operands: Operands::Pushed,
        ..subcommands(SubcommandNeeds { network: true, ..CHANGES }, &["push", "send-pack"])
    },
    Subcommand {
        options: Options { values: "bj", ..COMMON },
        harmless: Some(&HARMLESS_OF_SUBMODULE),
        ..subcommands(SubcommandNeeds { network: true, ..CHANGES }, &["submodule"])
    },
    Subcommand {
        harmless: Some(&HARMLESS_LISTING),
        ..subcommands(SubcommandNeeds { class: Class::Fetches, network: true, any: false }, &["ls-remote"])
    },
    anywhere(
        Anywhere { flags: "q", switches: "no-tags quiet single-branch", pairs: "branch depth", ..QUIET },
        Subcommand {
            options: Options::new(
                &[
                    executes("u", "upload-pack"),
                    executes("c", "config"),
                    executes("", "template"),
                    SEPARATE_FOLDER,
                    steers("", "bundle-uri"),
                ],
                "ojb",
            ),
            harmless: Some(&HARMLESS_CLONING),
            ..subcommands(SubcommandNeeds { network: true, ..CHANGES }, &["clone"])
        },
    ),
    Subcommand {
        named: true,
        ..subcommands(
            ANYTHING,
            &[
                "credential",
                "daemon",
                "difftool",
                "filter-branch",
                "for-each-repo",
                "hook",
                "instaweb",
                "mergetool",
                "send-email",
                "shell",
                "svn",
                "web--browse",
            ],
        )
    },
];

impl Subcommand {
    /// Returns whether a rule must name it, since a `*` does not stand for it.
    fn must_be_named(&self) -> bool {
        self.named || self.needs.any
    }
}

/// Returns the entry of a subcommand. An unknown name can be an alias for any call. `None`: the rule leaves it open.
fn entry(subcommand: Option<&str>) -> &'static Subcommand {
    let named = |name| SUBCOMMANDS.iter().find(|entry| entry.names.contains(&name));
    subcommand.and_then(named).unwrap_or(&UNKNOWN)
}

/// Returns the needs of a subcommand. `None`: the rule leaves it open.
pub(crate) fn needs(subcommand: Option<&str>) -> SubcommandNeeds {
    entry(subcommand).needs
}

/// Returns the index of the words that name changed files: behind the subcommand. `None` if the call changes no named file.
pub(crate) fn changed_from(arguments: &[String]) -> Option<usize> {
    let entry = entry(subcommand(arguments));
    (entry.needs.class == Class::Changes && !entry.reads_operands).then(|| globals(arguments).0 + 1)
}

/// Returns the options with which a subcommand only looks.
pub(crate) fn looks(subcommand: Option<&str>) -> Names {
    entry(subcommand).looks
}

/// Returns the options of a subcommand.
pub(crate) fn options(subcommand: Option<&str>) -> &'static Options {
    &entry(subcommand).options
}

/// Subcommands, each with options that are also the beginning of another one.
const WHOLE: &[(Names, Names)] = &[
    ("am format-patch", "--keep --numbered --signature"),
    ("branch tag", "--with"),
    ("cat-file", "--batch"),
    ("cherry-pick merge pull rebase revert", "--allow-empty --ff --strategy --verify"),
    ("clone", "--reference"),
    ("commit", "--allow-empty"),
    ("config", "--bool --get --unset"),
    (
        "diff diff-files diff-index diff-tree format-patch log range-diff rev-list shortlog show stash whatchanged",
        "--abbrev --all --author --branches --cherry --color --color-moved --date --decorate --decorate-refs --dirstat --exclude \
         --find-copies --follow --grep --merge --no-color --no-color-moved --no-text --objects --output --patch --reflog --relative --remotes \
         --since --stat --tags --text --walk-reflogs --word-diff",
    ),
    ("difftool", "--tool"),
    ("fetch pull", "--recurse-submodules"),
    ("grep", "--no-text --text"),
    ("ls-files", "--exclude"),
    ("repack", "--cruft --filter --window"),
    ("show-ref", "--head"),
    ("update-index", "--fsmonitor"),
];

/// Returns whether the tables know a long option of a subcommand by this very name.
pub(crate) fn has_switch(subcommand: &str, option: &str) -> bool {
    let Subcommand { options, harmless, .. } = entry(Some(subcommand));
    let name = option.trim_start_matches('-');
    let of_subcommand = switches::GIT.iter().chain(WHOLE).filter(|(names, _)| contains(names, subcommand));
    options.guarded.iter().any(|guarded| guarded.name == name)
        || [options.anywhere.switches, options.anywhere.valued, options.anywhere.pairs, options.valued]
            .into_iter()
            .chain(harmless.map(|known| known.long))
            .any(|names| contains(names, name))
        || of_subcommand.into_iter().any(|(_, names)| contains(names, option))
}

/// Returns whether a subcommand is one of git's own.
pub(crate) fn is_own(subcommand: &str) -> bool {
    let entry = entry(Some(subcommand));
    !entry.needs.any || entry.named
}

/// Returns the subcommand of a call or of a rule's fixed words.
pub(crate) fn subcommand(arguments: &[String]) -> Option<&str> {
    let at = globals(arguments).0;
    let word = arguments.get(at)?.as_str();
    (!word.contains(STAR)).then_some(word)
}

/// Returns a call's words from its subcommand on.
pub(crate) fn from_subcommand(arguments: &[String]) -> &[String] {
    &arguments[globals(arguments).0..]
}

/// Returns the index of the subcommand, and the options before it that are not harmless.
fn globals(arguments: &[String]) -> (usize, Vec<&str>) {
    let mut at = 0;
    let mut others = Vec::new();
    while let Some(word) = arguments.get(at).map(String::as_str).filter(|word| word.starts_with('-')) {
        if ["--version", "--help"].contains(&word) {
            break;
        }
        let sets_harmless = || word == "-c" && arguments.get(at + 1).is_some_and(|setting| is_harmless(setting));
        if word != "-C" && !HARMLESS.contains(&word) && !sets_harmless() {
            others.push(word);
        }
        at += if WITH_VALUE.contains(&word) { 2 } else { 1 };
    }
    (at.min(arguments.len()), others)
}

/// Returns whether the word behind an option before the subcommand is its value.
pub(crate) fn takes_next_in_front(option: &str) -> bool {
    WITH_VALUE.contains(&option)
}

/// Returns whether the word behind an option of a subcommand is its value. `None` if that is not known.
pub(crate) fn takes_next(subcommand: &str, option: &str) -> Option<bool> {
    let Subcommand { options, harmless, .. } = entry(Some(subcommand));
    let known = &options.anywhere;
    let values = harmless.map_or("", |known| known.values);
    if option.starts_with("--") {
        // An option may be abbreviated.
        let begins = |names: Names, dashes: &str| {
            names.split_whitespace().any(|name| name.starts_with(option.strip_prefix(dashes).unwrap_or(option)))
        };
        let mut switches = switches::GIT.iter().filter(|(names, _)| contains(names, subcommand));
        return match begins(options.valued, "--") || begins(known.pairs, "--") {
            true => Some(true),
            false => {
                let is_switch = begins(known.switches, "--") || switches.any(|(_, names)| begins(names, ""));
                is_switch.then_some(false)
            }
        };
    }
    let letter = &option[1..];
    let is_valued = [options.values, known.values, values].iter().any(|letters| letters.contains(letter));
    if is_valued { Some(true) } else { known.flags.contains(letter).then_some(false) }
}

/// Returns the first option before the subcommand that a rule must spell, with any value.
pub(crate) fn guarded_global(arguments: &[String]) -> Option<String> {
    let option = *globals(arguments).1.first()?;
    Some(option.split_once('=').map_or_else(|| option.to_owned(), |(name, _)| format!("{name}=*")))
}

/// Returns whether a setting for `-c`, `NAME=VALUE` or a name, is harmless. A setting with a star is not.
fn is_harmless(setting: &str) -> bool {
    let (name, value) = setting.split_once('=').map_or((setting, None), |(name, value)| (name, Some(value)));
    let name = name.to_ascii_lowercase();
    let within = |known: &&str| known.ends_with('.') && name.starts_with(*known);
    let is_known = |value| HARMLESS_VALUES.contains(&format!("{name}={value}").as_str());
    !setting.contains(STAR)
        && (HARMLESS_SETTINGS.iter().any(|known| *known == name || within(known)) || value.is_some_and(is_known))
}

/// Splits the program of a subcommand: `git-push`, in any folder, is `git push`.
pub(crate) fn split(program: &str) -> Option<[String; 2]> {
    let name = base_name(program).strip_prefix("git-").filter(|name| !name.is_empty())?;
    Some([NAME.to_owned(), name.to_owned()])
}

/// Returns a call without the options before its subcommand, by its base name, with `git-push` as `git push`. Used for denials.
/// `None` for other programs.
pub(crate) fn without_globals(words: &[String]) -> Option<Vec<String>> {
    let (program, arguments) = words.split_first()?;
    if base_name(program) != NAME {
        let mut out = split(program)?.to_vec();
        out.extend_from_slice(arguments);
        return Some(out);
    }
    let mut out = vec![NAME.to_owned()];
    out.extend_from_slice(&arguments[globals(arguments).0..]);
    Some(out)
}

/// Returns a call without harmless options before its subcommand, and the folders of `-C`. Used for grants.
pub(crate) fn without_harmless(words: &[String]) -> Option<(Vec<String>, Vec<&str>)> {
    let (program, arguments) = words.split_first().filter(|(program, _)| base_name(program) == NAME)?;
    let (end, others) = globals(arguments);
    if end == 0 || !others.is_empty() {
        return None;
    }
    let mut folders = Vec::new();
    let mut before = arguments[..end].iter();
    while let Some(word) = before.next() {
        if word == "-C" {
            folders.push(before.next()?.as_str());
        }
    }
    let mut out = vec![program.clone()];
    out.extend_from_slice(&arguments[end..]);
    Some((out, folders))
}

/// Returns the folders of `-C` before the subcommand.
pub(crate) fn folders(arguments: &[String]) -> Vec<&str> {
    let before = &arguments[..globals(arguments).0];
    before.windows(2).filter(|pair| pair[0] == "-C").map(|pair| pair[1].as_str()).collect()
}

/// Returns the options of a call, or of a rule's words, that a rule must spell.
pub(crate) fn guarded(arguments: &[String]) -> Vec<GivenOption> {
    let (at, others) = globals(arguments);
    let executes = |id: &str| GivenOption::word(id, Effect::Executes);
    let mut out: Vec<GivenOption> =
        others.into_iter().map(|option| option.split([STAR, '=']).next().unwrap_or_default()).map(executes).collect();
    let Some((subcommand, rest)) = arguments.get(at..).and_then(<[String]>::split_first) else { return out };
    match subcommand.as_str() {
        "config" if config_reads(rest) => {}
        "config" => out.push(GivenOption { effect: Effect::Writes, ..executes("config") }),
        // Any other name can be an alias, which runs what the repository's settings say.
        name if !name.contains(STAR) && entry(Some(name)).must_be_named() => out.push(executes(name)),
        name => {
            out.extend(leads_on(name, rest).map(|word| executes(&format!("{name} {word}"))));
            out.extend(deletes(name, rest));
        }
    }
    out.extend(scan(options(Some(subcommand)), rest));
    let known = entry(Some(subcommand)).harmless;
    out.extend(
        known.map(|known| harmless::others_of(known, options(Some(subcommand)).guarded, rest)).unwrap_or_default(),
    );
    let named = operands(entry(Some(subcommand)).operands, rest).into_iter();
    out.extend(named.map(|word| GivenOption { id: "operand".into(), ..GivenOption::word(word, Effect::Steers) }));
    out.extend(
        rest.iter().filter(|word| word.starts_with("ext::") || word.starts_with("fd::")).map(|_| executes("ext::")),
    );
    out
}

/// Returns the word behind which a call has another program, or another call of git. For these subcommands that is every word but a
/// few, since the words behind it are not parsed.
fn leads_on<'a>(subcommand: &str, arguments: &'a [String]) -> Option<&'a str> {
    const FINAL: &[(&str, Names)] = &[
        ("bisect", "bad good log new next old replay reset skip start terms"),
        // `absorbgitdirs` makes the settings in a folder those of this repository.
        ("submodule", "add deinit init set-branch set-url status summary sync update"),
    ];
    let (_, words) = FINAL.iter().find(|(name, _)| *name == subcommand)?;
    let word = arguments.iter().find(|word| !word.starts_with('-'))?;
    (!word.contains(STAR) && !contains(words, word)).then_some(word)
}

/// Returns the word of a subcommand that only reads by which it deletes.
fn deletes(subcommand: &str, arguments: &[String]) -> Option<GivenOption> {
    const DELETING: &[(&str, Names)] = &[("reflog", "delete drop expire")];
    let (_, words) = DELETING.iter().find(|(name, _)| *name == subcommand)?;
    let word = arguments.iter().find(|word| contains(words, word))?;
    Some(GivenOption::word(format!("{subcommand} {word}"), Effect::Writes))
}

/// Returns the operands of a subcommand that a rule must spell.
fn operands(kind: Operands, arguments: &[String]) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = arguments.iter().map(String::as_str);
    let mut takes_values = matches!(kind, Operands::Fetched);
    while let Some(word) = rest.next() {
        takes_values &= word != "--";
        if takes_values && contains(FETCHING_VALUES, word) {
            rest.next();
        } else if !word.starts_with('-') {
            words.push(word);
        }
    }
    match kind {
        Operands::Any => words.clear(),
        // The first one is the repository.
        Operands::Fetched => {
            words = words.split_off(words.len().min(1));
            words.retain(|word| word.split_once(':').is_some_and(|(_, destination)| !destination.is_empty()));
        }
        Operands::Pushed => words.retain(|word| word.starts_with('+') || (word.starts_with(':') && *word != ":")),
        Operands::Remotes(verbs) => {
            let is_asked = words.first().is_some_and(|verb| contains(verbs, verb));
            words.retain(|word| is_asked && (word.contains([':', '/']) || word.starts_with('.')));
        }
    }
    words
}

/// Returns whether `git config` only reads. The reading option must be before the first word that is no option, since behind a name the
/// same words are values.
fn config_reads(arguments: &[String]) -> bool {
    const READING: &[&str] = &["--list", "-l", "--get", "--get-all", "--get-regexp", "--get-urlmatch"];
    const FLAGS: &[&str] = &[
        "--global",
        "--system",
        "--local",
        "--worktree",
        "--includes",
        "--no-includes",
        "--name-only",
        "--null",
        "-z",
        "--show-origin",
        "--show-scope",
        "--bool",
        "--int",
        "--path",
    ];
    if matches!(arguments.first().map(String::as_str), Some("list" | "get")) {
        return true;
    }
    let mut words = arguments.iter().map(String::as_str).skip_while(|word| FLAGS.contains(word));
    match (words.next(), words.next()) {
        // A name alone asks for its value.
        (Some(name), None) if name.contains('.') && !name.starts_with('-') => !name.contains(STAR),
        (word, _) => word.is_some_and(|word| READING.contains(&word)),
    }
}

/// Expands an alias that the call itself defines: `git -c alias.x=push x main` is `git push main`. Used for denials.
pub(crate) fn aliased(words: &[String]) -> Option<Vec<String>> {
    if words.first().is_none_or(|program| base_name(program) != NAME) {
        return None;
    }
    // Each word is visited once. Of two definitions of a name the later one wins, as in git.
    let mut made: HashMap<&str, &str> = HashMap::new();
    let (at, value) = words.iter().enumerate().find_map(|(at, word)| {
        if let Some(value) = made.get(word.as_str()) {
            return Some((at, *value));
        }
        let (name, value) = word.strip_prefix("-c").unwrap_or(word).strip_prefix("alias.")?.split_once('=')?;
        made.insert(name, value.trim_start_matches('!'));
        None
    })?;
    let value = value.split_whitespace().map(ToOwned::to_owned);
    let git = if value.clone().next().is_some_and(|first| first == "git") { None } else { Some("git".to_owned()) };
    Some(git.into_iter().chain(value).chain(words[at + 1..].iter().cloned()).collect())
}

#[cfg(test)]
mod tests;
