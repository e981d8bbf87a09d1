//! The flags of `add` and `edit` that set a definition's fields. They are made from the table of fields.

use std::ffi::OsStr;
use std::fmt;
use std::marker::PhantomData;
use std::num::ParseFloatError;

use clap::builder::{BoolValueParser, PossibleValue, StringValueParser, TypedValueParser, ValueParser};
use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::values::{list, span};
use crate::app::FieldChange;
use crate::definition::fields::{FIELDS, Field, Flag, Shape};
use crate::definition::{FieldValue, Kind};

/// The field changes that flags set, in the order of the table. `C` selects the fields that have flags.
#[derive(Clone)]
pub struct FieldFlags<C>(pub Vec<FieldChange>, PhantomData<C>);

/// A command that sets fields.
pub trait FieldCommand {
    /// Kinds of definition whose fields have flags.
    const KINDS: &'static [Kind];
    /// Whether the command creates a file. It then also has the hidden flags.
    const MAKES: bool;
}

/// `routine add`.
#[derive(Clone, Copy, Debug)]
pub struct NewRoutine;
/// `reminder add`.
#[derive(Clone, Copy, Debug)]
pub struct NewReminder;
/// `edit`, of any kind. The definition determines the kind.
#[derive(Clone, Copy, Debug)]
pub struct Edit;

impl FieldCommand for NewRoutine {
    const KINDS: &'static [Kind] = &[Kind::Routine];
    const MAKES: bool = true;
}

impl FieldCommand for NewReminder {
    const KINDS: &'static [Kind] = &[Kind::Reminder];
    const MAKES: bool = true;
}

impl FieldCommand for Edit {
    const KINDS: &'static [Kind] = &Kind::WITH_FILES;
    const MAKES: bool = false;
}

impl<C: FieldCommand> FieldFlags<C> {
    /// Returns the flags of this command, with their fields.
    fn flags() -> impl Iterator<Item = (&'static Field, &'static Flag)> {
        let fields = FIELDS.iter().filter(|field| C::KINDS.iter().any(|kind| field.on.has(*kind)));
        let flags = fields.flat_map(|field| field.flags.iter().map(move |flag| (field, flag)));
        flags.filter(|(_, flag)| if C::MAKES { !flag.only_edits } else { !flag.hidden })
    }
}

impl<C: FieldCommand> Args for FieldFlags<C> {
    fn augment_args(command: Command) -> Command {
        Self::flags().fold(command, |command, (field, flag)| command.arg(arg(field, flag, C::MAKES)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<C: FieldCommand> FromArgMatches for FieldFlags<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = Self::flags().filter_map(|(field, flag)| {
            let value = match flag.sets {
                Some(sets) => matches.get_flag(flag.long).then(sets),
                None => argument(field.shape, flag, matches),
            };
            value.map(|value| FieldChange { field, value, called: format!("--{}", flag.long) })
        });
        Ok(Self(given.collect(), PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<C> fmt::Debug for FieldFlags<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|change| (&change.called, &change.value))).finish()
    }
}

fn arg(field: &'static Field, flag: &'static Flag, makes: bool) -> Arg {
    let is_other = |other: &&Flag| other.long != flag.long && (!makes || !other.only_edits);
    let others = field.flags.iter().filter(is_other).map(|other| other.long);
    let arg = Arg::new(flag.long)
        .long(flag.long)
        .short(flag.short)
        .visible_alias(flag.alias)
        .help(help(field, flag))
        .hide(flag.hidden)
        .conflicts_with_all(others);
    if flag.sets.is_some() {
        return arg.action(ArgAction::SetTrue);
    }
    let is_number = matches!(field.shape, Shape::Count | Shape::Amount);
    let arg = arg.value_name(flag.argument).allow_negative_numbers(is_number);
    match field.shape {
        Shape::Flag => arg.value_parser(parser(BoolValueParser::new().map(FieldValue::Flag), makes)),
        Shape::Count => arg.value_parser(parser(value_parser!(u32).map(FieldValue::Count), makes)),
        Shape::Amount => {
            let read = |text: &str| text.parse().map(FieldValue::Amount);
            arg.value_parser(parser(read as fn(&str) -> Result<FieldValue, ParseFloatError>, makes))
        }
        Shape::Span => {
            let read = if field.name == "every" { cadence } else { |text: &str| span(text).map(FieldValue::Span) };
            arg.value_parser(parser(read as fn(&str) -> Result<FieldValue, String>, makes))
        }
        Shape::Text => arg.value_parser(parser(StringValueParser::new().map(FieldValue::Text), makes)),
        Shape::Texts => arg.num_args(1..).action(ArgAction::Append),
        Shape::Word(words) => {
            arg.value_parser(parser(move |text: &str| word(text, words()).map(FieldValue::Text), makes))
        }
    }
}

/// Parses the span of `--every`. Its error names the flag for times of day, which are easily given here.
fn cadence(text: &str) -> Result<FieldValue, String> {
    span(text).map(FieldValue::Span).map_err(|error| format!("{error}; `daily at 9` and the like go with `--cron`"))
}

/// Returns the parser of a value. For `edit` it also accepts an empty text, which removes the field.
fn parser(read: impl TypedValueParser<Value = FieldValue>, makes: bool) -> ValueParser {
    if makes { ValueParser::new(read) } else { ValueParser::new(OrEmpty(read)) }
}

/// A parser that also accepts an empty text.
#[derive(Clone)]
struct OrEmpty<P>(P);

impl<P: TypedValueParser<Value = FieldValue>> TypedValueParser for OrEmpty<P> {
    type Value = FieldValue;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<FieldValue, Error> {
        match value.is_empty() {
            true => Ok(FieldValue::Text(String::new())),
            false => self.0.parse_ref(command, arg, value),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// Returns the help of a flag. If its values are fixed words, the help lists them all.
fn help(field: &Field, flag: &Flag) -> String {
    let help = flag.help.unwrap_or(field.help).trim();
    match field.shape {
        Shape::Word(words) if flag.sets.is_none() && words().iter().any(|word| !help.contains(word)) => {
            format!("{help}: {}", words().join(", "))
        }
        _ => help.to_owned(),
    }
}

/// Returns the argument of a flag as a value of its field.
fn argument(shape: Shape, Flag { long: flag, .. }: &Flag, matches: &ArgMatches) -> Option<FieldValue> {
    match shape {
        Shape::Flag | Shape::Count | Shape::Amount | Shape::Span | Shape::Text | Shape::Word(_) => {
            matches.get_one::<FieldValue>(flag).cloned()
        }
        Shape::Texts => Some(FieldValue::Texts(list(matches.get_many::<String>(flag)?.cloned().collect()))),
    }
}

/// Parses one of these words. `-` and `_` are equivalent.
fn word(text: &str, words: &[&str]) -> Result<String, String> {
    let word = text.replace('-', "_");
    if words.contains(&word.as_str()) { Ok(word) } else { Err(format!("one of: {}", words.join(", "))) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_help_of_a_flag_names_every_word_that_it_takes() {
        let mut checked = 0;
        let mut root = crate::cli::Cli::command();
        for (group, name) in [("routine", "add"), ("reminder", "add"), ("routine", "edit"), ("reminder", "edit")] {
            let command = root.find_subcommand_mut(group).and_then(|group| group.find_subcommand_mut(name)).unwrap();
            for argument in command.get_arguments() {
                let is_it = |flag: &&Flag| flag.long == argument.get_id().as_str() && flag.sets.is_none();
                let Some(field) = FIELDS.iter().find(|field| field.flags.iter().any(|flag| is_it(&flag))) else {
                    continue;
                };
                let Shape::Word(words) = field.shape else { continue };
                let help = argument.get_help().unwrap().to_string();
                assert!(words().iter().all(|word| help.contains(word)), "--{}: {help}", argument.get_id());
                checked += 1;
            }
        }
        assert!(checked > 20, "{checked}");
    }
}
