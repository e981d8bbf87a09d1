//! The rights of a granted program. They follow from the program and from the text of the rule, never from the text of
//! a line.

use crate::Application;
use crate::fetch;
use crate::options::{self, GivenOption};
use crate::programs::{self, Class, Effect, git};
use crate::wildcard::STAR;

/// The place where a program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Nowhere, since it was denied.
    Nowhere,
    /// In the shell's own domain, without any power: a filter or a wrapper that no rule names.
    Here,
    /// Outside of the shell, in a domain of its own with these rights.
    Outside(Rights),
}

/// The rights of a program outside of the shell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rights {
    /// The files that it may write.
    pub writes: Writes,
    /// Whether it may use the network.
    pub network: bool,
    /// Whether it may use sockets with a path on this machine.
    pub local_sockets: bool,
    /// The programs that it may execute.
    pub executes: Executes,
}

/// The files that a program may write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Writes {
    /// No files.
    Nothing,
    /// Files in `work/`, and files that `Edit` rules grant.
    Work,
    /// Files in the folder of this extension of the application's command.
    Extension(String),
}

/// The programs that a program may execute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Executes {
    /// Itself and these: programs by name, or folders.
    Itself(&'static [&'static str]),
    /// Every program.
    Anything,
}

impl Rights {
    /// Returns the rights of a program that only reads.
    pub(super) fn reading(program: &str) -> Self {
        let executes = Executes::Itself(programs::known(program).helpers);
        Self { writes: Writes::Nothing, network: false, local_sockets: false, executes }
    }

    /// Returns the rights of a program if everything is granted.
    pub(crate) fn wide() -> Self {
        Self { writes: Writes::Work, network: true, local_sockets: false, executes: Executes::Anything }
    }

    /// Returns the rights of a call of the application's command. It connects to the application, and an extension writes its own files.
    pub(super) fn own(canonical: &[String], application: &Application) -> Self {
        match application.extension(canonical) {
            Some(name) => Self {
                writes: Writes::Extension(name.into()),
                network: true,
                local_sockets: true,
                executes: Executes::Anything,
            },
            None => {
                Self { writes: Writes::Nothing, network: true, local_sockets: true, executes: Executes::Itself(&[]) }
            }
        }
    }

    /// Returns the rights that a rule grants a program. `arguments`: the rule's; `spelled`: the options among them for which a `*`
    /// does not stand.
    pub(crate) fn of(program: &str, arguments: &[String], spelled: &[GivenOption]) -> Self {
        let known = programs::known(program);
        let mut rights = Self::reading(program);
        match known.named_class() {
            Class::Filter | Class::Reads => {}
            // A call that a rule spells as a whole does what the person meant.
            class
                if options::spells(known.looks, &known.options, arguments)
                    && (class == Class::Changes || arguments.iter().any(|word| word.contains(STAR))) => {}
            Class::Changes if known.is_git() => {
                let subcommand = git::subcommand(arguments);
                let needs = git::needs(subcommand);
                if !options::spells(git::looks(subcommand), git::options(subcommand), arguments) {
                    rights.network = needs.network;
                    if needs.class == Class::Changes {
                        rights.writes = Writes::Work;
                    }
                }
            }
            Class::Changes => rights.writes = Writes::Work,
            Class::Fetches => {
                rights.network = true;
                if fetch::options(program).is_some_and(|options| options.saves_and_follows) {
                    rights.writes = Writes::Work;
                }
            }
            Class::Wrapper | Class::Runs | Class::Unknown => {
                return Self { local_sockets: known.local_sockets, ..Self::wide() };
            }
        }
        for option in spelled {
            match option.effect {
                Effect::Writes => rights.writes = Writes::Work,
                Effect::Executes | Effect::Commands => rights.executes = Executes::Anything,
                Effect::Leads
                | Effect::Scripts
                | Effect::Alters
                | Effect::Reorders
                | Effect::Adds
                | Effect::Steers
                | Effect::Destroys => {}
            }
        }
        rights
    }

    /// Returns the intersection of two sets of rights.
    pub(super) fn and(self, other: Self) -> Self {
        let writes = match (self.writes, other.writes) {
            (Writes::Nothing, _) | (_, Writes::Nothing) => Writes::Nothing,
            (own @ Writes::Extension(_), _) | (_, own @ Writes::Extension(_)) => own,
            (Writes::Work, Writes::Work) => Writes::Work,
        };
        let executes = match (self.executes, other.executes) {
            (Executes::Anything, other) | (other, Executes::Anything) => other,
            (Executes::Itself(one), Executes::Itself(other)) => {
                Executes::Itself(if one.len() <= other.len() { one } else { other })
            }
        };
        Self {
            writes,
            network: self.network && other.network,
            local_sockets: self.local_sockets && other.local_sockets,
            executes,
        }
    }

    /// Returns whether `other` grants no more.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.clone().and(other.clone()) == *other
    }

    /// Returns whether the rights change nothing.
    pub(crate) fn only_reads(&self) -> bool {
        self.writes == Writes::Nothing && !self.network
    }
}

impl Location {
    /// Returns the narrower of two locations.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Outside(one), Self::Outside(other)) => Self::Outside(one.and(other)),
            (Self::Nowhere, _) | (_, Self::Nowhere) => Self::Nowhere,
            (Self::Here, _) | (_, Self::Here) => Self::Here,
        }
    }
}
