//! What stands in one place of a table.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// The record does not say.
    Null,
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    /// Microseconds since 1970, in UTC.
    Time(i64),
}

impl Cell {
    pub(super) fn json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Text(text) => text.as_str().into(),
            Self::Int(number) => (*number).into(),
            Self::Float(number) => (*number).into(),
            Self::Bool(truth) => (*truth).into(),
            Self::Time(micros) => {
                let time = jiff::Timestamp::from_microsecond(*micros);
                time.map_or(Value::Null, |time| time.to_string().into())
            }
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<bool> for Cell {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Self::Int(number.into())
    }
}

impl From<u64> for Cell {
    /// Addresses beyond the largest signed number keep their bits.
    fn from(number: u64) -> Self {
        Self::Int(number.cast_signed())
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Self {
        (number as u64).into()
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
