//! Message and hint about a value, without a position.
//!
//! The types permit no complaint without a hint.

/// Message and hint about a value, without a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) message: String,
    pub(crate) hint: String,
    /// True if the number is too large for its type. A caller that has the range replaces the hint by the range.
    pub(crate) is_beyond_type: bool,
}

/// Message of a complaint without a hint. Only [`Unhinted::hint`] makes a complaint of it, so every mistake has a hint.
#[must_use]
pub(crate) struct Unhinted {
    message: String,
}

impl Complaint {
    pub(crate) fn about(message: impl Into<String>) -> Unhinted {
        Unhinted { message: message.into() }
    }

    /// Replaces the message and keeps the hint.
    pub(crate) fn reworded(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Marks the complaint as one about a number that is too large for its type.
    pub(crate) fn beyond_type(self) -> Self {
        Self { is_beyond_type: true, ..self }
    }

    /// Replaces the hint and keeps the message.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }
}

impl Unhinted {
    pub(crate) fn hint(self, hint: impl Into<String>) -> Complaint {
        Complaint { message: self.message, hint: hint.into(), is_beyond_type: false }
    }
}

/// Returns text of the user for a message: quoted, and without characters that control a terminal.
pub(crate) fn quoted(text: &str) -> String {
    const LENGTH_MAX: usize = 60;
    let mut shown: String = text.chars().take(LENGTH_MAX).collect();
    if text.chars().nth(LENGTH_MAX).is_some() {
        shown.push('…');
    }
    format!("`{}`", printable(&shown))
}

/// Replaces control characters, so that each character takes one column.
pub(crate) fn printable(line: &str) -> String {
    line.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}
