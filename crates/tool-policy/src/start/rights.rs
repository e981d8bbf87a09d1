//! What a program may do once it was granted: it follows from the program and from the text of the rule, never from what
//! a line says.

use crate::Application;
use crate::fetch;
use crate::options::GivenOption;
use crate::programs::{self, Class, Effect, git};

/// Where a program that may start runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Nowhere: it was denied.
    Nowhere,
    /// In the shell's own domain, without any power: a filter or a wrapper that no rule names.
    Here,
    /// Outside of the shell, in a domain of its own with these rights.
    Outside(Rights),
}

/// What a program may do outside of the shell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rights {
    /// Which files it may write.
    pub writes: Writes,
    /// Whether it may use the network.
    pub network: bool,
    /// Whether it may use sockets with a path on this machine.
    pub local_sockets: bool,
    /// Which programs it may execute.
    pub executes: Executes,
}

/// Which files a program may write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Writes {
    /// None.
    Nothing,
    /// Those in `work/`, and what `Edit` rules grant.
    Work,
    /// Those in the folder of this extension of the application's command.
    Extension(String),
}

/// Which programs a program may execute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Executes {
    /// Itself, and these: programs by name, or folders.
    Itself(&'static [&'static str]),
    /// Every one.
    Anything,
}

impl Rights {
    /// What a program may do that only reads.
    pub(super) fn reading(program: &str) -> Self {
        let executes = Executes::Itself(programs::known(program).helpers);
        Self { writes: Writes::Nothing, network: false, local_sockets: false, executes }
    }

    /// What a program may do where everything is granted.
    pub(crate) fn wide() -> Self {
        Self { writes: Writes::Work, network: true, local_sockets: false, executes: Executes::Anything }
    }

    /// What a call of the application's command may do: it speaks with the application, and an extension keeps its files.
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

    /// What a rule grants a program. `arguments`: those of the rule; `spelled`: the options among them that a `*` does
    /// not stand for.
    pub(crate) fn of(program: &str, arguments: &[String], spelled: &[GivenOption]) -> Self {
        let known = programs::known(program);
        let mut rights = Self::reading(program);
        match known.named_class() {
            Class::Filter | Class::Reads => {}
            Class::Changes if known.is_git() => {
                let needs = git::needs(git::subcommand(arguments));
                rights.network = needs.network;
                if needs.class == Class::Changes {
                    rights.writes = Writes::Work;
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
                Effect::Executes => rights.executes = Executes::Anything,
                Effect::Leads | Effect::Scripts | Effect::Steers => {}
            }
        }
        rights
    }

    /// What both grant.
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

    /// Whether another one grants no more.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.clone().and(other.clone()) == *other
    }

    /// Whether it leaves everything as it is.
    pub(super) fn only_reads(&self) -> bool {
        self.writes == Writes::Nothing && !self.network
    }
}

impl Location {
    /// The narrower of two.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Outside(one), Self::Outside(other)) => Self::Outside(one.and(other)),
            (Self::Nowhere, _) | (_, Self::Nowhere) => Self::Nowhere,
            (Self::Here, _) | (_, Self::Here) => Self::Here,
        }
    }
}
