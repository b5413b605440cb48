//! Mistakes in a rack file, each with a position, a message and a hint.
//!
//! The types permit no mistake without a hint. [`PlanError`] holds all mistakes of a file. It prints them like a compiler: the line,
//! a caret, the hint.
//!
//! This file finds no mistakes. It formats them.

use core::fmt;

use crate::read::setting_lines;

/// Range of characters in the file. Lines and columns count from one. Line 0 means that the position is not in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) length: u32,
}

/// One mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Description of the mistake, in lower case.
    pub message: String,
    /// Line in the file, from one. 0 if the mistake has no position in the file.
    pub line: u32,
    /// Column in characters, from one. 0 if the mistake has no position in the file.
    pub column: u32,
    /// Correct value, or advice.
    pub hint: String,
    /// Line of the file with a caret below, formatted for output.
    pub snippet: Option<String>,
}

/// All mistakes of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// Name of the file or of the text.
    pub origin: String,
    /// Mistakes in the order of the file. Never empty.
    pub mistakes: Vec<Mistake>,
}

impl core::error::Error for PlanError {}

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n\n" };
            write!(formatter, "{gap}error: {}", mistake.message)?;
            let gutter = mistake.gutter();
            write!(formatter, "\n{gutter}--> {}", self.origin)?;
            if mistake.line > 0 {
                write!(formatter, ":{}:{}", mistake.line, mistake.column)?;
            }
            if let Some(snippet) = &mistake.snippet {
                write!(formatter, "\n{snippet}")?;
            }
            write!(formatter, "\n{gutter} = hint: {}", mistake.hint)?;
        }
        match self.mistakes.len() {
            0 | 1 => Ok(()),
            count => write!(formatter, "\n\nerror: {} has {count} mistakes", self.origin),
        }
    }
}

impl Mistake {
    /// Returns blanks as wide as the line number, so that the parts of one mistake are aligned.
    fn gutter(&self) -> String {
        " ".repeat(if self.line == 0 { 1 } else { self.line.to_string().len() })
    }
}

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

/// Text that mistakes point into.
pub(crate) struct Source<'text> {
    origin: &'text str,
    lines: Vec<&'text str>,
}

impl<'text> Source<'text> {
    pub(crate) fn new(origin: &'text str, text: &'text str) -> Self {
        Self { origin, lines: text.lines().collect() }
    }

    /// Adds a position to a complaint.
    pub(crate) fn mistake(&self, position: Option<Position>, complaint: Complaint) -> Mistake {
        let position = position.unwrap_or_default();
        let Complaint { message, hint, .. } = complaint;
        let line = (position.line as usize).checked_sub(1).and_then(|index| self.lines.get(index));
        if let Some(setting) = line.and_then(|line| setting_lines::shown(line)) {
            // The setting is on the command line and in no file.
            let snippet = Some(snippet_of(&setting, " ", position));
            return Mistake { message, line: 0, column: 0, hint, snippet };
        }
        let snippet = self.snippet(position);
        Mistake { message, line: position.line, column: position.column, hint, snippet }
    }

    /// Returns all mistakes as one error, in the order of the file, without duplicates.
    pub(crate) fn error(&self, mut mistakes: Vec<Mistake>) -> PlanError {
        mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
        mistakes.dedup();
        PlanError { origin: self.origin.to_owned(), mistakes }
    }

    fn snippet(&self, position: Position) -> Option<String> {
        let line = self.lines.get((position.line as usize).checked_sub(1)?)?;
        Some(snippet_of(line, &position.line.to_string(), position))
    }
}

/// Returns a line with its number and carets below the position.
fn snippet_of(line: &str, number: &str, position: Position) -> String {
    let blank = " ".repeat(number.len());
    let before = position.column.saturating_sub(1) as usize;
    let room = line.chars().count().saturating_sub(before);
    let carets = "^".repeat((position.length as usize).clamp(1, room.max(1)));
    let padding = " ".repeat(before.min(line.chars().count()));
    let shown = printable(line);
    format!("{blank} |\n{number} | {shown}\n{blank} | {padding}{carets}")
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
fn printable(line: &str) -> String {
    line.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// Returns the candidate that is most similar to `word`, if it is similar enough. Names that differ in their numbers only are not
/// considered.
pub(crate) fn nearest<'name>(
    word: &str,
    candidates: impl IntoIterator<Item = &'name str>,
) -> Option<&'name str> {
    let letters =
        |text: &str| text.chars().filter(|character| !character.is_ascii_digit()).collect::<String>();
    // Limits the cost of the search for hostile files.
    const WORD_CHARACTERS_MAX: usize = 64;
    const CANDIDATES_MAX: usize = 1_000;
    let length = word.chars().count();
    if length > WORD_CHARACTERS_MAX {
        return None;
    }
    let allowed = (length / 3).max(1);
    candidates
        .into_iter()
        .take(CANDIDATES_MAX)
        .filter(|candidate| letters(word) != letters(candidate))
        .map(|candidate| (edits(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the number of characters that must be changed, added, removed or swapped with a neighbour (optimal string alignment).
fn edits(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for line in 1..=left.len() {
        let mut row = vec![line];
        for column in 1..=right.len() {
            let same = left[line - 1] == right[column - 1];
            let mut least = rows[line - 1][column - 1] + usize::from(!same);
            least = least.min(rows[line - 1][column] + 1).min(row[column - 1] + 1);
            let swapped = line > 1
                && column > 1
                && left[line - 1] == right[column - 2]
                && left[line - 2] == right[column - 1];
            if swapped {
                least = least.min(rows[line - 2][column - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_proposed_and_other_numbers_are_not() {
        let keys = ["rate", "delay", "loss", "corrupt"];
        for (typed, meant) in [("los", "loss"), ("dealy", "delay"), ("corupt", "corrupt"), ("rat", "rate")] {
            assert_eq!(nearest(typed, keys), Some(meant));
        }
        assert_eq!(nearest("bandwidth", keys), None);
        assert_eq!(nearest("n9", ["n0", "n1"]), None);
        assert_eq!(nearest("m1", ["n0", "n1"]), Some("n1"));
    }

    #[test]
    fn carets_stay_below_the_value() {
        let source = Source::new("file", "a: é\tb\n");
        let mistake =
            source.mistake(Some(Position { line: 1, column: 6, length: 9 }), Complaint::about("m").hint("h"));
        assert_eq!(mistake.snippet.as_deref(), Some("  |\n1 | a: é b\n  |      ^"));
        let beyond =
            source.mistake(Some(Position { line: 7, column: 1, length: 1 }), Complaint::about("m").hint("h"));
        assert_eq!(beyond.snippet, None);
    }
}
