//! Message and hint about a value, without a position.
//!
//! The types permit no complaint without a hint.

use crate::setting::printable::printable;

/// Message and hint about a value, without a position. [`Complaint::finish`] formats it, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// Path of the key that the message is about, if the message does not name it.
    path: Option<String>,
    message: String,
    hint: String,
    excess: Excess,
}

/// Limit that a number exceeds, beside the message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Excess {
    None,
    /// The number does not fit its type. The caller that has the range adds it.
    Type,
    /// The number is outside of this range.
    Range(Box<[String; 2]>),
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

    /// Names the key whose value the message is about.
    pub(crate) fn at(self, path: &str) -> Self {
        debug_assert_eq!(self.path, None, "a complaint has one path");
        Self { path: Some(path.to_owned()), ..self }
    }

    /// Marks the complaint as one about a number that is too large for its type.
    pub(crate) fn beyond_type(self) -> Self {
        Self { excess: Excess::Type, ..self }
    }

    /// Returns true if the number is too large for its type.
    pub(crate) fn is_beyond_type(&self) -> bool {
        self.excess == Excess::Type
    }

    /// States the range that a number has left which is too large for its type. The hint then names the range.
    pub(crate) fn outside(self, least: String, most: String) -> Self {
        Self { excess: Excess::Range(Box::new([least, most])), ..self }
    }

    /// Returns message and hint as a user reads them.
    pub(crate) fn finish(self) -> (String, String) {
        let Self { path, message, hint, excess } = self;
        let message = path.map_or_else(|| message.clone(), |path| format!("`{path}`: {message}"));
        match excess {
            Excess::None | Excess::Type => (message, hint),
            Excess::Range(ends) => {
                let [least, most] = *ends;
                (format!("{message}, outside {least} to {most}"), format!("write {least} to {most}"))
            }
        }
    }

    /// Replaces the hint and keeps the message.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }
}

impl Unhinted {
    pub(crate) fn hint(self, hint: impl Into<String>) -> Complaint {
        Complaint { path: None, message: self.message, hint: hint.into(), excess: Excess::None }
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
