//! The table of programs: the class of each, the options that a rule must spell, and the helpers that it needs.
//!
//! One entry contains everything that the engine knows of a program, and each file has one family of programs. The code that judges
//! reads the table and names no program. Nothing is known of a program outside of the table, so a rule that names
//! it grants everything that a program can do.

mod archives;
mod build;
mod curl;
mod databases;
mod files;
mod filters;
pub(crate) mod git;
mod interpreters;
mod others;
mod remotes;
mod services;
mod switches;
pub(crate) mod synonyms;
mod wrappers;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::expression::Expression;
pub(crate) use curl::{FLAGS, FetchOptions, VALUED};

const TABLE: &[&[Program]] = &[
    filters::TABLE,
    wrappers::TABLE,
    files::TABLE,
    archives::TABLE,
    git::TABLE,
    curl::TABLE,
    interpreters::TABLE,
    build::TABLE,
    services::TABLE,
    remotes::TABLE,
    databases::TABLE,
    others::TABLE,
];

static BY_NAME: LazyLock<HashMap<&str, &Program>> = LazyLock::new(|| {
    let programs = TABLE.iter().copied().flatten();
    programs.flat_map(|program| program.names.iter().map(move |name| (*name, program))).collect()
});

/// A long list of names, separated by blanks.
pub(crate) type Names = &'static str;

/// Subcommands of package managers that do the same with each package.
const PACKAGES: Names = "add binstall download fetch get i inject install pin purge reinstall remove rm uninject uninstall unpin up update upgrade \
    wheel";

/// Returns whether a name is one of `names`.
pub(crate) fn contains(names: Names, name: &str) -> bool {
    names.split_whitespace().any(|other| other == name)
}

/// The purpose of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Transforms its input. May run without a rule, without any power.
    Filter,
    /// Starts the program in its arguments. That is judged itself, so the wrapper may run without a rule, too.
    Wrapper,
    /// Reads files or the state of the system.
    Reads,
    /// Changes files.
    Changes,
    /// Connects to hosts in its arguments.
    Fetches,
    /// Can run any other program or code. A grant of it is a grant of everything.
    Runs,
    /// Has unknown effects. Judged like [`Class::Runs`].
    Unknown,
}

/// What a command reaches that another program starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// What the sandbox of the other program leaves to it.
    Sandbox,
    /// This machine, since no sandbox holds it (`sudo`).
    Machine,
    /// Another machine, or a container (`ssh`, `docker exec`).
    Elsewhere,
}

/// An entry of the table: a program, or several with the same properties.
pub(crate) struct Program {
    pub names: &'static [&'static str],
    /// Whether its names may end in a version: `python3.11`.
    pub versioned: bool,
    pub class: Class,
    /// Whether it changes the files in its operands, though its class is not [`Class::Changes`]. A filter with this property counts as
    /// that class if a rule names it.
    pub writes_operands: bool,
    /// Whether no sandbox of this machine holds what it starts.
    pub starts_elsewhere: bool,
    /// Whether the command behind it is a program of its own, which nobody starts by its name (`k3s kubectl`).
    pub embeds: bool,
    /// Whether its script can start programs and write files.
    pub script_acts: bool,
    /// Whether it works over a socket with a path on this machine.
    pub local_sockets: bool,
    /// Whether its first operand determines its effect, so that rules name it.
    pub subcommands: bool,
    /// First operands behind which the second one determines its effect, too (`gh pr list`), and `FIRST-SECOND`, behind which the third one
    /// does.
    pub groups: Names,
    /// Subcommands that do the same with each operand behind them, so that further ones must be like a rule's (`apt install acme-*`), and
    /// `FIRST-SECOND` (`git remote prune`).
    pub alike: Names,
    /// The same with assignments behind the names (`kubectl label pod web-1 tier=a env-`): each kind must be like the rule's own. A rule without
    /// an assignment leaves them open.
    pub assigning: Names,
    /// Subcommands of which a further operand may be anything. Every other one counts as one of [`Program::alike`], or of
    /// [`Program::commanded`] if there are none: it may be abbreviated, or new. Of git those are its own.
    pub unlike: Names,
    /// Subcommands of which a further operand is a command, so that a star within a word, or behind an option, stands for none (`tmux
    /// new-session -s bot-*`). `*`: those of every call.
    pub commanded: Names,
    /// Subcommands, each with its options whose value is the next word.
    pub valued_by: &'static [(Names, Names)],
    /// Subcommands, each with its options that have no value. Those of other subcommands may have one.
    pub bare_by: &'static [(Names, Names)],
    /// Options that have no value, wherever they stand.
    pub bare: Names,
    /// Subcommands, and `FIRST-SECOND`, each with its options in place of [`Options::anywhere`].
    pub anywhere_by: &'static [(Names, Anywhere)],
    /// Whether those without a value may stand in front of the subcommand, too (`apt -y install`).
    pub leading: bool,
    /// Subcommands, with the letters and long options behind them by which a command has an input and a terminal (`docker exec -it`).
    pub terminal: Option<(Names, &'static str, Names)>,
    /// Whether the first operand in its rule is a script of a shell.
    pub shell: bool,
    /// Whether it runs the script in its first operand, or else its standard input.
    pub interpreter: bool,
    /// Whether a script loads code from the working folder, wherever the script itself is.
    pub loads_from_folder: bool,
    /// Whether its code may have any mark in the place of a quotation mark or a slash (`qx:CMD:`, `s,a,b,`).
    pub quotes_by_any_mark: bool,
    /// Whether operands such as `CC=gcc` set variables, which can be code.
    pub variables: bool,
    /// Programs that it executes itself: by name, or all in a folder (starting with `/`).
    pub helpers: &'static [&'static str],
    /// The syntax of its arguments.
    pub syntax: Syntax,
    /// The options that a rule must spell, for [`Syntax::Options`].
    pub options: Options,
    /// The harmless options of a program that runs the code in a folder. All others may lead to other code.
    pub harmless: Option<&'static HarmlessOptions>,
    /// Options with which it only looks. A rule that spells one grants no more than reading.
    pub looks: Names,
    /// Whether a star stands for none of its options but the [`Program::harmless`] ones, if the rule spells anything besides it.
    pub closed: bool,
    /// The operand from which on it joins its words to a line for a shell, and takes no word for code before: 1 for `ssh HOST LINE`.
    pub joins_from: Option<usize>,
    /// Options whose value is a host.
    pub host_options: Names,
    /// The subcommands whose first operand is a host. Empty: that of every call.
    pub host_of: Option<Names>,
    /// Options whose value is a text, which leads nowhere (`-m MESSAGE`).
    pub texts: Names,
    /// Options whose value is a package.
    pub package_options: Names,
    /// What stands behind the `@` of a package, beside one of these words, or always (``). The first one counts. None: a tag, as for npm.
    pub behind_at: &'static [(Names, BehindAt)],
    /// Subcommands for packages that the package manager has by their names. An address or a repository must be spelled (`npm view https://…`).
    pub by_name: Names,
    /// Options whose value is a list of places. A star in it stands for no further one.
    pub lists: Names,
    /// What an operand is that it takes for a command.
    pub commands: CommandOperands,
    /// Options whose value is a file that tells it what to do.
    pub instructed_by: Names,
    /// The options with which it puts the contents of the files in its operands elsewhere (`cp`, `tar -x`). Empty: always. In another
    /// folder the same names have other contents.
    pub brings: Option<Names>,
    /// The subcommands that run a command in their arguments, possibly on another machine. Empty: every call does. That command is
    /// judged as well.
    pub starts: Option<Names>,
    /// Switches in front of that command by which it fails where it would ask for a password.
    pub unasked: Names,
    /// Whether its first operand, or that of such a subcommand, is its own, and the command stands behind it (`flock FILE ls`).
    pub own_operand: bool,
    /// An option that holds it back only beside the second one.
    pub held_by_both: Option<(&'static str, &'static str)>,
    /// Subcommands, each with the words by which it does more (`npm audit fix`, `tmux kill-session -a`). A rule must spell them. `:` is every
    /// operand with a colon (`openssl s_client HOST:PORT`).
    pub doing_more: &'static [(&'static str, Names)],
    /// The options of the subcommands that make a container.
    pub container: Option<&'static ContainerOptions>,
}

/// The options with which a container is made. Most of them open something of the machine to it.
pub(crate) struct ContainerOptions {
    /// The subcommands that make one. The image, or what stands for it, is the first operand behind them.
    pub subcommands: Names,
    /// Words that may stand in front of these subcommands.
    pub groups: Names,
    /// Options in front of a subcommand whose value is the next word.
    pub valued: Names,
    /// Options in front of a subcommand that have no value. Any other one may have one or not.
    pub switches: Names,
    /// Letters behind a subcommand that have no value.
    pub flags: &'static str,
    /// Letters behind a subcommand with a value. Any other letter may have one or not.
    pub values: &'static str,
    /// Long options behind a subcommand that have no value.
    pub own_switches: Names,
    /// Long options behind a subcommand with a value. Any other one may have one or not.
    pub own_valued: Names,
    /// Those that open nothing, with their dashes.
    pub harmless: Names,
}

/// Operands that a program takes for commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandOperands {
    None,
    /// A file's name with a `|`, `<` or `>` at one of its ends: `open` of Perl runs it.
    Opened,
    /// For `gcc`: a file that contains further options, `@FILE`.
    Listed,
    /// For `go run`: files of code next to each other, of which the program is made.
    Sources,
    /// For `ftp` and the like: a host, which may be taken for a place on it (`HOST:PATH`).
    Hosts,
    /// For `ping`: a host, and each further operand is one, too, or a server that is asked about it.
    OneHost,
    /// For `dig`: names that it asks about, `@SERVER`, and words that say what it asks.
    Names,
    /// For `kubectl`: an address that it reads instead of asking its server.
    Fetched,
    /// For `openssl` and `nix`: an address or a library in the place of a file, as an option's value, too.
    Located,
    /// For `helm`: an address in the place of a chart or of values, as an option's value, too.
    Charts,
    /// For PostgreSQL: a connection string that says where it leads, and as whom.
    Connections,
    /// For `journalctl`: a `+`, behind which it shows further messages, whatever was chosen before.
    Alternatives,
    /// For `rsync` and `scp`: another machine, `HOST:PATH`.
    Remote,
    /// For `docker build` and `docker import`: an address in the place of a folder or file.
    Contexts,
    /// For `pytest`: a file that contains further options, `@FILE`, or tests outside of the working folder.
    Tests,
    /// For `systemctl` and `brew`: a file in the place of a name.
    Paths,
    /// For `apt`: a file, another release, or `NAME-`, which it removes.
    Packages,
    /// For `gh`: an address, or a repository of another host.
    Repositories,
    /// For editors: `+COMMAND`, and an address in the place of a file.
    Added,
    /// For `rename`: the first one is code.
    Code,
    /// For `npx` and package managers: the first one is a package, which may come from an address, or be another one under its name (`x@npm:y`).
    Specifiers,
    /// For `tmux`: a word with a `;` at its end, which another command follows, and a format. `#(COMMAND)` runs a command, and `#{…}`
    /// can form one.
    Separated,
}

/// What may stand behind the `@` of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BehindAt {
    /// A version or a tag, unless it leads elsewhere: `x@1.2`, `x@next`, and not `x@a/b`.
    Tag,
    /// A place, whatever it is: `x@1.2` is a folder.
    Place,
    /// A version, or else a place: `x@1.2`, `x@latest`.
    Version,
    /// The same, but a file of that name in the working folder would be run instead, whatever the name is.
    MaybeFile,
    /// A version with a mark in front of it, too: `x@^1.2`.
    Constraint,
}

/// The syntax of a program's arguments.
#[derive(Clone, Copy)]
pub(crate) enum Syntax {
    /// The syntax of `getopt_long`.
    Options,
    /// The syntax of `git`: options before a subcommand, see [`git`].
    Git,
    /// The syntax of `curl`: a rule must spell all options but a few, and operands are addresses, see [`crate::fetch`].
    Fetch(&'static FetchOptions),
}

/// The effect of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Writes a file.
    Writes,
    /// Executes a program that is not judged.
    Executes,
    /// Changes what is read or requested.
    Steers,
    /// Changes where the program finds the code that it runs.
    Leads,
    /// Gives the program's script, in place of one that the rule spells or in addition to it.
    Scripts,
    /// Changes what a script does that the rule spells.
    Alters,
    /// Goes past a step that fails, or does not wait for it.
    Reorders,
    /// Brings further packages, or others under the name of a package that the rule names, or leads to another project or namespace.
    Adds,
    /// Is a command itself, among the operands.
    Commands,
    /// Overwrites or deletes what the program keeps without it. A rule must spell it if it names more than a subcommand.
    Destroys,
}

/// An option that a rule must spell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GuardedOption {
    /// The letters of its short forms.
    pub short: &'static str,
    /// The long name, which identifies all spellings.
    pub name: &'static str,
    pub effect: Effect,
}

/// The options of a program.
pub(crate) struct Options {
    /// Options that a rule must spell.
    pub guarded: &'static [GuardedOption],
    /// Letters with a value. In a cluster the rest is that value.
    pub values: &'static str,
    /// Letters of which the rest of the word is the value, and never the next word.
    pub attached: &'static str,
    /// Letters whose value is the script of an interpreter.
    pub script_files: &'static str,
    /// Options whose value, the next word, names the code that is run. What stands behind it is that code's own (`python3 -m pytest`, `java -jar x`).
    pub naming_code: Names,
    /// Guarded options that give an interpreter code in place of a script.
    pub code: Names,
    /// Whether a script may follow that code (`lua -e CODE SCRIPT`).
    pub code_first: bool,
    /// Long options of an interpreter whose value may be the next word, or of another program whose value is the next word.
    pub valued: Names,
    /// Harmless long options that are also prefixes of a guarded one.
    pub harmless: &'static [&'static str],
    /// The words of its expression, whose long options have one dash (`find -delete`).
    pub expression: Option<&'static Expression>,
    /// Whether its long options have one dash or two (`gcc -wrapper`). A value may be attached.
    pub one_dash: bool,
    /// Whether the names of long options are read loosely: `_` is `-`, and `loose-` in front means nothing.
    pub loose_names: bool,
    /// Whether the first word may be a cluster without a dash (`tar xIf`).
    pub bundled: bool,
    /// Long options with one dash that are followed by a program to start.
    pub starting: Names,
    /// Options followed by patterns of files to exclude.
    pub patterns: &'static [&'static str],
    /// Options that mean the same in every position.
    pub anywhere: Anywhere,
    /// The operands that are its script, if a rule may spell one ([`Effect::Scripts`]).
    pub scripts: ScriptOperands,
}

/// The operands that give a program its script.
#[derive(Clone, Copy)]
pub(crate) enum ScriptOperands {
    /// The first one.
    First,
    /// None: only options give it (`psql app -c 'select 1'`).
    None,
    /// Each one behind the first, which is a database. Behind these options is a value, and no operand.
    BehindFirst(Names),
}

/// Options that mean the same in every position, and for which a star stands. A call may have them in front of the words that a rule
/// names.
#[derive(Clone, Copy)]
pub(crate) struct Anywhere {
    /// Letters without a value.
    pub flags: &'static str,
    /// Letters whose value is the rest of the word, or the next word.
    pub values: &'static str,
    /// Long options without a value.
    pub switches: Names,
    /// Long options with a value in their own word.
    pub valued: Names,
    /// Long options whose value is in their own word, or the next word.
    pub pairs: Names,
    /// Letters and long options without a value that only change what is printed. A rule without a star grants them, too.
    pub printing: (&'static str, Names),
}

impl Anywhere {
    const NONE: Self = Self { flags: "", values: "", switches: "", valued: "", pairs: "", printing: ("", "") };

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        [self.flags, self.values, self.switches, self.pairs].iter().all(|names| names.is_empty())
    }

    /// Returns those that only change what is printed.
    pub fn printing_only(&self) -> Self {
        let (flags, switches) = self.printing;
        Self { flags, switches, ..Self::NONE }
    }
}

/// The options that lead to no other code, of a program that runs the code in a folder. None of the long ones has a value in a
/// separate word.
pub(crate) struct HarmlessOptions {
    /// Letters without a value. They may form a cluster if `clusters` is set.
    pub flags: &'static str,
    /// Letters whose value is the rest of the word, or the next word.
    pub values: &'static str,
    /// Letters that have a value behind some subcommands, and none behind others.
    pub perhaps_valued: &'static str,
    pub clusters: bool,
    pub long: Names,
    /// How further ones of a program begin whose long options have one dash.
    pub begin: Names,
    /// The same for those that have neither a `=` nor a comma in them.
    pub begin_plain: Names,
    /// How options begin that are not harmless, although the list before says so.
    pub never: Names,
    /// Further ones of some subcommands: their names (`ps`, `volume-ls`), letters without a value, and long options.
    pub within: &'static [(Names, &'static str, Names)],
    /// The number of operands of a call that a rule need not spell, for some subcommands, or for all (``).
    pub operands: &'static [(Names, usize)],
    /// Whether each operand is a target, a goal or a command: a rule that spells one must spell each, and one that spells none leaves them open.
    pub targets: bool,
    /// Options that give the first operand.
    pub gives_operand: Names,
    /// Where its options end.
    pub end: OptionsEnd,
    /// Those among the long ones that have no value, if they and the letters mean the same in every position.
    pub switches: Names,
    /// Further long options and letters without a value, harmless or not.
    pub bare: Names,
    /// Options among them that run a later step although an earlier one failed, was left out, or has not ended.
    pub reordering: Names,
    /// Options among them that bring further packages, or others under the same name, or lead to another project or namespace. A rule that names
    /// something must spell them.
    pub adding: Names,
    /// Subcommands behind which they do not, since they only show something, of a program of which they do so behind every other one. `None`:
    /// they do so behind those of [`Program::alike`] alone.
    pub adding_but_to: Option<Names>,
    /// Subcommands of which the words behind `--` are options of a compiler, and those among them by which it runs or writes something.
    pub behind: Option<(Names, Names)>,
    /// Targets that do not need the options in `reordering` to be spelled: no step of theirs must wait for another one.
    pub unordered: Names,
}

/// Where the options of a program end, so that the words behind belong to something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionsEnd {
    /// Nowhere. Words behind `--` count as well, since that may be the value of the option before it.
    Nowhere,
    /// At `--`.
    Dashes,
    /// Behind so many operands.
    Operand(usize),
    /// Behind the operand that follows one of these subcommands (`go run ./cmd`), and else nowhere.
    Passed(Names),
}

impl Options {
    pub const NONE: Self = Self {
        guarded: &[],
        values: "",
        attached: "",
        script_files: "",
        naming_code: "",
        code: "",
        code_first: false,
        valued: "",
        harmless: &[],
        expression: None,
        one_dash: false,
        loose_names: false,
        bundled: false,
        starting: "",
        patterns: &[],
        anywhere: Anywhere::NONE,
        scripts: ScriptOperands::First,
    };

    /// Nothing is known of them but that long ones have one dash.
    const ONE_DASH: Self = Self { one_dash: true, ..Self::NONE };

    const fn new(guarded: &'static [GuardedOption], values: &'static str) -> Self {
        Self { guarded, values, ..Self::NONE }
    }

    /// Returns whether long options have one dash.
    pub fn one_dash(&self) -> bool {
        self.expression.is_some() || self.one_dash
    }

    /// Returns the name of a long option as the program reads it.
    pub fn long_name<'a>(&self, given: &'a str) -> Cow<'a, str> {
        if !self.loose_names {
            return given.into();
        }
        let name = given.replace('_', "-");
        name.strip_prefix("loose-").map(ToOwned::to_owned).unwrap_or(name).into()
    }

    /// Returns whether a word is letters of which the last one has the next word for its value.
    pub fn takes_next(&self, word: &str) -> bool {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        letters.is_some_and(|letters| {
            let valued = letters.char_indices().find(|(_, letter)| self.has_value(*letter));
            valued.is_some_and(|(at, letter)| at + 1 == letters.len() && self.values.contains(letter))
        })
    }

    /// Returns whether the rest of a word behind a letter is the letter's value.
    pub fn has_value(&self, letter: char) -> bool {
        self.values.contains(letter) || self.attached.contains(letter)
    }

    /// Returns whether a word is an option with one dash that writes, steers or starts a program (`find -delete`).
    pub fn acts(&self, word: &str) -> bool {
        let mut names = self.guarded.iter().map(|option| option.name).chain(self.starting.split_whitespace());
        word.strip_prefix('-').is_some_and(|word| names.any(|name| word == name))
    }
}

impl HarmlessOptions {
    /// A star stands for operands only.
    pub const ONLY_OPERANDS: Self = Self { end: OptionsEnd::Nowhere, ..Self::NONE };

    /// Returns those that mean the same in every position.
    pub fn anywhere(&self) -> Anywhere {
        let Self { flags, values, switches, long, .. } = *self;
        Anywhere { flags, values, switches, valued: long, ..Anywhere::NONE }
    }

    const NONE: Self = Self {
        flags: "",
        values: "",
        perhaps_valued: "",
        clusters: false,
        long: "",
        begin: "",
        begin_plain: "",
        never: "",
        within: &[],
        operands: &[],
        targets: false,
        gives_operand: "",
        end: OptionsEnd::Dashes,
        switches: "",
        bare: "",
        reordering: "",
        adding: "",
        adding_but_to: None,
        behind: None,
        unordered: "",
    };
}

impl GuardedOption {
    /// Returns the spelling of the option. `one_dash`: with one dash, as for `find`.
    pub fn shown(&self, one_dash: bool) -> String {
        let dashes = if self.name.len() > 1 && !one_dash { "--" } else { "-" };
        format!("{dashes}{}", self.name)
    }
}

/// A program of which a star stands for the `harmless` options only, if the rule names anything besides it.
const fn closed(class: Class, names: &'static [&'static str], harmless: &'static HarmlessOptions) -> Program {
    Program { closed: true, harmless: Some(harmless), ..Program::new(class, names) }
}

/// A program that does what a file says, if one of these options names it.
const fn instructed(by: Names, program: Program) -> Program {
    Program { instructed_by: by, ..program }
}

const fn writes(short: &'static str, name: &'static str) -> GuardedOption {
    GuardedOption { short, name, effect: Effect::Writes }
}

const fn executes(short: &'static str, name: &'static str) -> GuardedOption {
    GuardedOption { short, name, effect: Effect::Executes }
}

const fn steers(short: &'static str, name: &'static str) -> GuardedOption {
    GuardedOption { short, name, effect: Effect::Steers }
}

const fn scripts(short: &'static str, name: &'static str) -> GuardedOption {
    GuardedOption { short, name, effect: Effect::Scripts }
}

const fn alters(short: &'static str, name: &'static str) -> GuardedOption {
    GuardedOption { short, name, effect: Effect::Alters }
}

const fn destroys(short: &'static str, name: &'static str) -> GuardedOption {
    GuardedOption { short, name, effect: Effect::Destroys }
}

impl Program {
    const UNKNOWN: Self = Self {
        names: &[],
        versioned: false,
        class: Class::Unknown,
        writes_operands: false,
        starts_elsewhere: false,
        embeds: false,
        script_acts: false,
        local_sockets: false,
        subcommands: false,
        groups: "",
        alike: "",
        unlike: "",
        assigning: "",
        commanded: "",
        valued_by: &[],
        bare_by: &[],
        bare: "",
        anywhere_by: &[],
        leading: false,
        terminal: None,
        shell: false,
        interpreter: false,
        loads_from_folder: false,
        quotes_by_any_mark: false,
        variables: false,
        helpers: &[],
        syntax: Syntax::Options,
        options: Options::NONE,
        harmless: None,
        looks: "",
        closed: false,
        joins_from: None,
        host_options: "",
        host_of: None,
        texts: "",
        package_options: "",
        by_name: "",
        behind_at: &[],
        lists: "",
        commands: CommandOperands::None,
        instructed_by: "",
        brings: None,
        starts: None,
        unasked: "",
        own_operand: false,
        held_by_both: None,
        doing_more: &[],
        container: None,
    };

    const fn new(class: Class, names: &'static [&'static str]) -> Self {
        Self { names, class, ..Self::UNKNOWN }
    }

    const fn with(class: Class, names: &'static [&'static str], options: Options) -> Self {
        Self { options, ..Self::new(class, names) }
    }

    pub fn is_git(&self) -> bool {
        matches!(self.syntax, Syntax::Git)
    }

    /// Returns what a command behind it reaches.
    pub fn reach(&self) -> Reach {
        let is_elsewhere = self.container.is_some() || self.commands == CommandOperands::Fetched;
        match self.starts_elsewhere {
            true if !self.own_operand => Reach::Machine,
            false if !is_elsewhere => Reach::Sandbox,
            _ => Reach::Elsewhere,
        }
    }

    /// Returns whether it starts the command among its own words.
    pub fn starts_more(&self) -> bool {
        self.class == Class::Wrapper || self.starts.is_some() || !self.options.starting.is_empty()
    }

    /// Returns whether an operand means the same in every position: a target of `make`, a file of `rsync`.
    pub fn takes_operands_anywhere(&self) -> bool {
        self.variables || self.writes_operands
    }

    /// Returns whether it may run in the shell's own domain without a rule.
    pub fn is_free(&self) -> bool {
        matches!(self.class, Class::Filter | Class::Wrapper)
    }

    /// Returns whether it is known to run any other program.
    pub fn runs_anything(&self) -> bool {
        matches!(self.class, Class::Runs | Class::Wrapper)
    }

    /// Returns the class for a rule that names the program, which then has the power of that class.
    pub fn named_class(&self) -> Class {
        match self.class {
            Class::Filter if self.writes_operands => Class::Changes,
            Class::Filter => Class::Reads,
            Class::Wrapper | Class::Unknown => Class::Runs,
            class => class,
        }
    }
}

/// Returns the last part of a program's path.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Returns the entry of a name.
pub(crate) fn named(name: &str) -> &'static Program {
    let version = |c: char| c.is_ascii_digit() || ['.', '-'].contains(&c);
    let family = || BY_NAME.get(name.trim_end_matches(version)).filter(|program| program.versioned);
    BY_NAME.get(name).or_else(family).copied().unwrap_or(&Program::UNKNOWN)
}

/// Returns the name under which the tables have a program: its base name, or that without a version.
pub(crate) fn table_name(program: &str) -> &str {
    let name = base_name(program);
    let own = |known: &&&str| name.starts_with(**known);
    match BY_NAME.contains_key(name) {
        true => name,
        false => named(name).names.iter().filter(own).max_by_key(|known| known.len()).copied().unwrap_or(name),
    }
}

/// Returns whether the table has a program, by its base name.
pub(crate) fn is_known(program: &str) -> bool {
    !by_base_name(program).names.is_empty()
}

/// Returns the entry of a program by its base name, in any folder. Used where doubt means refusal.
pub(crate) fn by_base_name(program: &str) -> &'static Program {
    named(base_name(program))
}

/// Returns the entry of a program in a rule or a start: by its name, or by a path in the system's folders. Any other
/// path can lead to any program.
pub(crate) fn known(program: &str) -> &'static Program {
    known_as(program).map_or(&Program::UNKNOWN, named)
}

/// Returns the name of a program in the table, or `None` for a path outside of the system's folders.
pub(crate) fn known_as(program: &str) -> Option<&str> {
    const FOLDERS: &[&str] = &["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"];
    match program.rsplit_once('/') {
        None => Some(program),
        Some((folder, name)) => FOLDERS.contains(&folder).then_some(name),
    }
}

/// Returns whether a program is known to run any other one, even with a version in its name (`perl5.36`).
pub(crate) fn runs_anything(name: &str) -> bool {
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    [name, family].iter().any(|name| named(name).runs_anything())
}

/// Returns the names of the programs that may run in the shell's own domain without a rule: filters and wrappers.
pub fn free_programs() -> impl Iterator<Item = &'static str> {
    let free = TABLE.iter().copied().flatten().filter(|program| program.is_free());
    free.flat_map(|program| program.names.iter().copied())
}

/// Returns the names of all programs of a class.
#[cfg(test)]
pub(crate) fn names_of(class: Class) -> impl Iterator<Item = &'static str> {
    let programs = TABLE.iter().copied().flatten().filter(move |program| program.class == class);
    programs.flat_map(|program| program.names.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_in_the_table_once() {
        let mut names: Vec<&str> = TABLE.iter().copied().flatten().flat_map(|program| program.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(BY_NAME.len(), count);
    }

    #[test]
    fn a_path_elsewhere_can_be_any_program() {
        assert_eq!(known("/usr/bin/ls").class, Class::Reads);
        for program in ["./ls", "work/bin/ls", "/tmp/ls", "mytool", ""] {
            assert_eq!(known(program).named_class(), Class::Runs, "{program}");
        }
        let class = |name| named(name).named_class();
        assert_eq!((class("tee"), class("cat"), class("env")), (Class::Changes, Class::Reads, Class::Runs));
        assert!(runs_anything("python3.11") && runs_anything("perl5.36") && runs_anything("env"));
        assert!(!runs_anything("ls") && !runs_anything("mytool"));
    }
}
