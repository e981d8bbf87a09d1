//! Parameters of statements, and values of columns.

use std::borrow::Cow;

use tokio_postgres::types::Type;

use super::super::RunId;
use super::JournalError;
use crate::definition::DefinitionId;

/// A parameter of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::journal) enum Value<'a> {
    /// NULL.
    Null,
    /// A count, a time in milliseconds, or a Boolean (0 or 1).
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
            // A whole amount prints the same in both databases.
            Self::Real(value) => value.fmt(f),
            // PostgreSQL stores the text in this form.
            Self::Text(text) => f.write_str(&text.replace('\0', "\u{fffd}")),
        }
    }
}

impl ToValue for Value<'_> {
    fn value(&self) -> Value<'_> {
        self.clone()
    }
}

/// A value that can be a parameter.
pub(in crate::journal) trait ToValue {
    /// Converts to a parameter.
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

/// All parameters of a statement: the output of `params!`, or an array of one type.
pub(in crate::journal) trait Params {
    /// Returns the parameters, in order.
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

impl Params for () {
    fn values(&self) -> Vec<Value<'_>> {
        Vec::new()
    }
}

/// A row of a result.
#[derive(Debug)]
pub(in crate::journal) enum Row<'a> {
    /// From SQLite.
    Sqlite(&'a rusqlite::Row<'a>),
    /// From PostgreSQL.
    Postgres(&'a tokio_postgres::Row),
}

impl Row<'_> {
    /// Returns a column's value, by name or index.
    pub(in crate::journal) fn get<T: Field>(&self, column: impl Column) -> Result<T, JournalError> {
        T::read(self, &column)
    }

    /// Returns the value at this index, of any type.
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
                _ => self.text(&place)?.map_or(Value::Null, |text| Value::Text(Cow::Owned(text.to_owned()))),
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

    /// Returns a column's text; `None` if it is NULL.
    pub(in crate::journal) fn text(&self, column: &impl Column) -> Result<Option<&str>, JournalError> {
        match self {
            Self::Sqlite(row) => Ok(row.get_ref(*column)?.as_str_or_null().map_err(rusqlite::Error::from)?),
            Self::Postgres(row) => Ok(row.try_get(*column)?),
        }
    }
}

/// The key of a column: its name, or its index from 0.
pub(in crate::journal) trait Column:
    rusqlite::RowIndex + tokio_postgres::row::RowIndex + std::fmt::Display + Copy
{
    /// Returns its index in a row.
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

/// A type that a column can be read as.
pub(in crate::journal) trait Field: Sized {
    /// Reads the value from a row.
    fn read(row: &Row<'_>, column: &impl Column) -> Result<Self, JournalError>;
}

impl<T: Field> Field for Option<T> {
    fn read(row: &Row<'_>, column: &impl Column) -> Result<Self, JournalError> {
        let empty = match row {
            Row::Sqlite(row) => matches!(row.get_ref(*column)?, rusqlite::types::ValueRef::Null),
            Row::Postgres(row) => row.try_get::<_, IsNull>(*column)?.0,
        };
        if empty { Ok(None) } else { T::read(row, column).map(Some) }
    }
}

/// Whether a column is NULL, for a column of any type.
struct IsNull(bool);

impl<'a> tokio_postgres::types::FromSql<'a> for IsNull {
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

fn not_null<T>(value: Option<T>, column: &impl Column) -> Result<T, JournalError> {
    value.ok_or_else(|| JournalError::Unreadable(format!("nothing in the column {column}")))
}

macro_rules! integer_fields {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn read(row: &Row<'_>, column: &impl Column) -> Result<Self, JournalError> {
                let value = not_null(row.integer(column)?, column)?;
                Self::try_from(value).map_err(|_| JournalError::Unreadable(format!("{value} in the column {column}")))
            }
        }
    )*};
}
integer_fields!(i64, i32, u32, u16, u64);

impl Field for bool {
    fn read(row: &Row<'_>, column: &impl Column) -> Result<Self, JournalError> {
        Ok(not_null(row.integer(column)?, column)? != 0)
    }
}

impl Field for f64 {
    fn read(row: &Row<'_>, column: &impl Column) -> Result<Self, JournalError> {
        not_null(row.real(column)?, column)
    }
}

impl Field for String {
    fn read(row: &Row<'_>, column: &impl Column) -> Result<Self, JournalError> {
        Ok(not_null(row.text(column)?, column)?.to_owned())
    }
}
