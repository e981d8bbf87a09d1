//! The types of fields: their values, and their form on a command line.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use chrono_tz::Tz;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor, value::Error};
use serde::forward_to_deserialize_any;

use super::super::WatchedFolder;
use super::super::values::span_text;
use super::super::{
    DefinitionId, Deliver, Expect, FollowedEnd, Follows, JobClient, Need, OnMissed, OnOverlap, PayloadSchema, Remember,
    Signature, Thinking, Urgency,
};
use super::FieldValue;
use crate::policy::{AskTerms, JobNetwork, ToolPattern, UpdateMode};

/// The form of a value on a command line.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Count,
    /// A number.
    Amount,
    /// A span of time.
    Span,
    /// Any text.
    Text,
    /// A list of texts.
    Texts,
    /// One of a list of words.
    Word(fn() -> &'static [&'static str]),
}

/// The type of a field.
pub(crate) trait FieldType {
    const SHAPE: Shape;
    /// Returns the value; `None` if it is not set.
    fn show(&self) -> Option<FieldValue>;
}

impl<T: FieldType> FieldType for Option<T> {
    const SHAPE: Shape = T::SHAPE;
    fn show(&self) -> Option<FieldValue> {
        self.as_ref().and_then(T::show)
    }
}

macro_rules! field_types {
    ($($type:ty, $shape:expr, $show:expr;)*) => {$(
        impl FieldType for $type {
            const SHAPE: Shape = $shape;
            fn show(&self) -> Option<FieldValue> {
                let show: fn(&Self) -> FieldValue = $show;
                Some(show(self))
            }
        }
    )*};
}

field_types! {
    bool, Shape::Flag, |flag| FieldValue::Flag(*flag);
    u32, Shape::Count, |n| FieldValue::Count(*n);
    f64, Shape::Amount, |amount| FieldValue::Amount(*amount);
    Duration, Shape::Span, |span| FieldValue::Span(*span);
    String, Shape::Text, |text| FieldValue::Text(text.clone());
    WatchedFolder, Shape::Text, |folder| FieldValue::Text(folder.to_string());
    PayloadSchema, Shape::Text, |schema| FieldValue::Json(schema.json().to_string());
    Expect, Shape::Text, |expect| FieldValue::Text(expect.to_string());
    Tz, Shape::Text, |zone| FieldValue::Text(zone.name().to_owned());
    DefinitionId, Shape::Text, |id| FieldValue::Text(id.to_string());
    DateTime<FixedOffset>, Shape::Text, |at| FieldValue::Text(at.to_rfc3339());
    Vec<String>, Shape::Texts, |texts| FieldValue::Texts(texts.clone());
    Vec<DefinitionId>, Shape::Texts, |ids| FieldValue::Texts(ids.iter().map(ToString::to_string).collect());
    Vec<Need>, Shape::Texts, |needs| FieldValue::Texts(needs.iter().map(|need| need.as_str().to_owned()).collect());
    Vec<ToolPattern>, Shape::Texts, |patterns| FieldValue::Texts(patterns.iter().map(ToString::to_string).collect());
    AskTerms, Shape::Text, |terms| {
        let AskTerms { deadline, default, channel } = terms;
        let FieldValue::Text(default) = word(default) else { return FieldValue::Map(Vec::new()) };
        let parts = [("deadline", Some(span_text(*deadline))), ("default", Some(default)), ("channel", channel.clone())];
        FieldValue::Map(parts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    };
    Follows, Shape::Text, |follows| match (follows.outcome, word(&follows.outcome)) {
        (FollowedEnd::Completed, _) => FieldValue::Text(follows.job.to_string()),
        (_, FieldValue::Text(outcome)) => FieldValue::Map(vec![("job", follows.job.to_string()), ("outcome", outcome)]),
        _ => FieldValue::Map(Vec::new()),
    };
    Thinking, Shape::Count, |thinking| match thinking {
        Thinking::Adaptive => FieldValue::Flag(true),
        Thinking::Disabled => FieldValue::Flag(false),
        Thinking::Budget(tokens) => FieldValue::Count(*tokens),
    };
    Signature, Shape::Word(words::<Self>), word;
    JobClient, Shape::Word(words::<Self>), word;
    Deliver, Shape::Word(words::<Self>), word;
    Urgency, Shape::Word(words::<Self>), word;
    UpdateMode, Shape::Word(words::<Self>), word;
    JobNetwork, Shape::Word(words::<Self>), word;
    OnMissed, Shape::Word(words::<Self>), word;
    OnOverlap, Shape::Word(words::<Self>), word;
    Remember, Shape::Word(words::<Self>), word;
}

fn word<T: serde::Serialize>(value: &T) -> FieldValue {
    let word = serde_json::to_value(value).ok();
    FieldValue::Text(word.as_ref().and_then(|word| word.as_str()).unwrap_or_default().to_owned())
}

/// Returns the words of an enum, as its derived `Deserialize` names them.
pub(crate) fn words<T: for<'de> Deserialize<'de>>() -> &'static [&'static str] {
    struct Names<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for Names<'_> {
        type Error = Error;
        fn deserialize_enum<V: Visitor<'de>>(
            self,
            _name: &'static str,
            variants: &'static [&'static str],
            _visitor: V,
        ) -> Result<V::Value, Error> {
            *self.0 = variants;
            Err(Error::custom("only the names are wanted"))
        }
        fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
            Err(Error::custom("it is no enum"))
        }
        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
        }
    }

    let mut names: &'static [&'static str] = &[];
    let _only_the_names = T::deserialize(Names(&mut names));
    names
}
