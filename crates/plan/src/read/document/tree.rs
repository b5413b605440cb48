//! Tree of a document: values with their positions.

use crate::read::mistake::{Complaint, Position};

/// Value with its position.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) position: Position,
    pub(crate) content: Content,
}

/// Content of a value.
#[derive(Debug)]
pub(crate) enum Content {
    /// Empty, `null` or `~`.
    Empty,
    /// A scalar, as written.
    Text(String),
    /// `[a, b]`.
    List(Vec<Value>),
    /// `{key: value}`.
    Table(Vec<Entry>),
}

/// Key and value of a table.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_position: Position,
    pub(crate) value: Value,
    /// True if the entry is in a repeated table, and not in the first one of that key.
    pub(crate) is_of_repetition: bool,
}

/// Tree of a whole file.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) value: Value,
    /// Repeated keys, with the position of the repetition.
    pub(crate) repetitions: Vec<(Position, Complaint)>,
}

impl Content {
    /// Returns the kind for messages: "expected a table, found a list".
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "nothing",
            Self::Text(_) => "a single value",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}
