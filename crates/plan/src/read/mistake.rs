//! Mistakes in a rack file, each with a position, a message and a hint.
//!
//! [`PlanError`] holds all mistakes of a file. It prints them like a compiler: the line,
//! a caret, the hint.
//!
//! This file finds no mistakes. It formats them.

use core::fmt;

use crate::read::setting_lines;
pub(crate) use crate::setting::complaint::{Complaint, quoted};
pub(crate) use crate::setting::nearest::nearest;
use crate::setting::printable::printable;

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
        formatter.write_str(HEADING)?;
        self.without_heading().fmt(formatter)
    }
}

impl PlanError {
    /// Returns the text without the word `error` before the first mistake, for a program that writes such a heading itself.
    #[must_use]
    pub const fn without_heading(&self) -> WithoutHeading<'_> {
        WithoutHeading(self)
    }
}

/// Heading of a mistake.
const HEADING: &str = "error: ";

/// Text of all mistakes without the heading of the first.
#[derive(Clone, Copy, Debug)]
pub struct WithoutHeading<'e>(&'e PlanError);

impl fmt::Display for WithoutHeading<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlanError { origin, mistakes } = self.0;
        for (index, mistake) in mistakes.iter().enumerate() {
            let (gap, heading) = if index == 0 { ("", "") } else { ("\n\n", HEADING) };
            write!(formatter, "{gap}{heading}{}", mistake.message)?;
            let gutter = mistake.gutter();
            write!(formatter, "\n{gutter}--> {}", printable(origin))?;
            if mistake.line > 0 {
                write!(formatter, ":{}:{}", mistake.line, mistake.column)?;
            }
            if let Some(snippet) = &mistake.snippet {
                write!(formatter, "\n{snippet}")?;
            }
            write!(formatter, "\n{gutter} = hint: {}", mistake.hint)?;
        }
        match mistakes.len() {
            0 | 1 => Ok(()),
            count => write!(formatter, "\n\n{HEADING}{} has {count} mistakes", printable(origin)),
        }
    }
}

impl Mistake {
    /// Returns blanks as wide as the line number, so that the parts of one mistake are aligned.
    fn gutter(&self) -> String {
        " ".repeat(if self.line == 0 { 1 } else { self.line.to_string().len() })
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
        let (message, hint) = complaint.finish();
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
    let columns = line.chars().count().saturating_sub(before);
    let carets = "^".repeat((position.length as usize).clamp(1, columns.max(1)));
    let padding = " ".repeat(before.min(line.chars().count()));
    let shown = printable(line);
    format!("{blank} |\n{number} | {shown}\n{blank} | {padding}{carets}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_heading_alone_can_be_left_out() {
        let source = Source::new("file", "");
        let mistake = |text: &str| source.mistake(None, Complaint::about(text).hint("h"));
        let error = source.error(vec![mistake("one"), mistake("two")]);
        assert_eq!(error.to_string(), format!("error: {}", error.without_heading()));
        assert_eq!(error.to_string().matches("error: ").count(), 3, "{error}");
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
