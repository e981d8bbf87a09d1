//! What goes into a statement, and what comes out of a row.

use std::borrow::Cow;

use tokio_postgres::types::Type;

use super::super::RunId;
use super::JournalError;
use crate::definition::DefinitionId;

/// A parameter of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::journal) enum Value<'a> {
    /// Nothing.
    Null,
    /// A count, a time in milliseconds, a truth (0 or 1).
    Integer(i64),
    /// A sum of money.
    Real(f64),
    /// Anything else.
    Text(Cow<'a, str>),
}

impl std::fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => f.write_str("\u{1}"),
            Self::Integer(value) => value.fmt(f),
            // A sum that has no cents is the same number in both.
            Self::Real(value) => value.fmt(f),
            // PostgreSQL keeps it so.
            Self::Text(text) => f.write_str(&text.replace('\0', "\u{fffd}")),
        }
    }
}

impl ToValue for Value<'_> {
    fn value(&self) -> Value<'_> {
        self.clone()
    }
}

/// What can be a parameter.
pub(in crate::journal) trait ToValue {
    /// The parameter.
    fn value(&self) -> Value<'_>;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl ToValue for $type {
            fn value(&self) -> Value<'_> {
                Value::Integer(i64::from(*self))
            }
        }
    )*};
}
integers!(i64, i32, u32, u16, bool);

impl ToValue for f64 {
    fn value(&self) -> Value<'_> {
        Value::Real(*self)
    }
}

impl ToValue for str {
    fn value(&self) -> Value<'_> {
        Value::Text(Cow::Borrowed(self))
    }
}

impl ToValue for String {
    fn value(&self) -> Value<'_> {
        Value::Text(Cow::Borrowed(self))
    }
}

impl ToValue for Cow<'_, str> {
    fn value(&self) -> Value<'_> {
        Value::Text(Cow::Borrowed(self))
    }
}

impl ToValue for DefinitionId {
    fn value(&self) -> Value<'_> {
        self.as_str().value()
    }
}

impl ToValue for RunId {
    fn value(&self) -> Value<'_> {
        self.as_str().value()
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn value(&self) -> Value<'_> {
        (*self).value()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, ToValue::value)
    }
}

/// All parameters of a statement: what `params!` makes, or an array of one type.
pub(in crate::journal) trait Params {
    /// The parameters, in order.
    fn values(&self) -> Vec<Value<'_>>;
}

impl Params for &[&dyn ToValue] {
    fn values(&self) -> Vec<Value<'_>> {
        self.iter().map(|value| value.value()).collect()
    }
}

impl<T: ToValue, const N: usize> Params for [T; N] {
    fn values(&self) -> Vec<Value<'_>> {
        self.iter().map(ToValue::value).collect()
    }
}

/// No parameters.
impl Params for () {
    fn values(&self) -> Vec<Value<'_>> {
        Vec::new()
    }
}

/// A row that a statement returned.
#[derive(Debug)]
pub(in crate::journal) enum Row<'a> {
    /// SQLite's.
    Sqlite(&'a rusqlite::Row<'a>),
    /// PostgreSQL's.
    Postgres(&'a tokio_postgres::Row),
}

impl Row<'_> {
    /// A column's value, by its name or its place.
    pub(in crate::journal) fn get<T: Field>(&self, column: impl Column) -> Result<T, JournalError> {
        T::read(self, &column)
    }

    /// The value in this place, whatever it is.
    pub(in crate::journal) fn value(&self, place: usize) -> Result<Value<'static>, JournalError> {
        match self {
            Self::Sqlite(row) => Ok(match row.get_ref(place)? {
                rusqlite::types::ValueRef::Null => Value::Null,
                rusqlite::types::ValueRef::Integer(value) => Value::Integer(value),
                rusqlite::types::ValueRef::Real(value) => Value::Real(value),
                rusqlite::types::ValueRef::Text(text) | rusqlite::types::ValueRef::Blob(text) => {
                    Value::Text(Cow::Owned(String::from_utf8_lossy(text).into_owned()))
                }
            }),
            Self::Postgres(row) => Ok(match row.columns().get(place).map(|column| column.type_().clone()) {
                Some(Type::BOOL | Type::INT4 | Type::INT8) => self.integer(&place)?.map_or(Value::Null, Value::Integer),
                Some(Type::FLOAT8) => self.real(&place)?.map_or(Value::Null, Value::Real),
                _ => self.text(&place)?.map_or(Value::Null, |text| Value::Text(Cow::Owned(text))),
            }),
        }
    }

    fn integer(&self, column: &impl Column) -> Result<Option<i64>, JournalError> {
        match self {
            Self::Sqlite(row) => Ok(row.get(*column)?),
            Self::Postgres(row) => {
                let of = row.columns().get(column.place(row)?).map(|column| column.type_().clone());
                Ok(match of {
                    Some(Type::BOOL) => row.try_get::<_, Option<bool>>(*column)?.map(i64::from),
                    Some(Type::INT4) => row.try_get::<_, Option<i32>>(*column)?.map(i64::from),
                    _ => row.try_get(*column)?,
                })
            }
        }
    }

    fn real(&self, column: &impl Column) -> Result<Option<f64>, JournalError> {
        match self {
            Self::Sqlite(row) => Ok(row.get(*column)?),
            Self::Postgres(row) => Ok(row.try_get(*column)?),
        }
    }

    fn text(&self, column: &impl Column) -> Result<Option<String>, JournalError> {
        match self {
            Self::Sqlite(row) => Ok(row.get(*column)?),
            Self::Postgres(row) => Ok(row.try_get(*column)?),
        }
    }
}

/// What names a column: its name, or its place from 0.
pub(in crate::journal) trait Column:
    rusqlite::RowIndex + tokio_postgres::row::RowIndex + std::fmt::Display + Copy
{
    /// Its place in a row.
    fn place(self, row: &tokio_postgres::Row) -> Result<usize, JournalError>;
}

impl Column for &str {
    fn place(self, row: &tokio_postgres::Row) -> Result<usize, JournalError> {
        let found = row.columns().iter().position(|column| column.name() == self);
        found.ok_or_else(|| JournalError::Unreadable(format!("no column {self}")))
    }
}

impl Column for usize {
    fn place(self, _: &tokio_postgres::Row) -> Result<usize, JournalError> {
        Ok(self)
    }
}

/// What can be read from a column.
pub(in crate::journal) trait Field: Sized {
    /// Its value in a row.
    fn read(row: &Row<'_>, column: &impl Column) -> Result<Self, JournalError>;
}

impl<T: Field> Field for Option<T> {
    fn read(row: &Row<'_>, column: &impl Column) -> Result<Self, JournalError> {
        let empty = match row {
            Row::Sqlite(row) => matches!(row.get_ref(*column)?, rusqlite::types::ValueRef::Null),
            Row::Postgres(row) => row.try_get::<_, Empty>(*column)?.0,
        };
        if empty { Ok(None) } else { T::read(row, column).map(Some) }
    }
}

/// Whether a column is empty, of whatever type it is.
struct Empty(bool);

impl<'a> tokio_postgres::types::FromSql<'a> for Empty {
    fn from_sql(_: &Type, _: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(false))
    }
    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(true))
    }
    fn accepts(_: &Type) -> bool {
        true
    }
}

fn there<T>(value: Option<T>, column: &impl Column) -> Result<T, JournalError> {
    value.ok_or_else(|| JournalError::Unreadable(format!("nothing in the column {column}")))
}

macro_rules! integer_fields {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn read(row: &Row<'_>, column: &impl Column) -> Result<Self, JournalError> {
                let value = there(row.integer(column)?, column)?;
                Self::try_from(value).map_err(|_| JournalError::Unreadable(format!("{value} in the column {column}")))
            }
        }
    )*};
}
integer_fields!(i64, i32, u32, u16, u64);

impl Field for bool {
    fn read(row: &Row<'_>, column: &impl Column) -> Result<Self, JournalError> {
        Ok(there(row.integer(column)?, column)? != 0)
    }
}

impl Field for f64 {
    fn read(row: &Row<'_>, column: &impl Column) -> Result<Self, JournalError> {
        there(row.real(column)?, column)
    }
}

impl Field for String {
    fn read(row: &Row<'_>, column: &impl Column) -> Result<Self, JournalError> {
        there(row.text(column)?, column)
    }
}
