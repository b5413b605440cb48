//! What is wrong with a rack file, said so that the next edit fixes it.
//!
//! A mistake has a place (line, column), a message and a hint; none can be made without one. [`PlanError`] carries every mistake that was
//! found, not the first one, and prints them the way a good compiler does: the line, a caret, the hint.
//!
//! This file finds no mistakes; it shows them.

use core::fmt;

use crate::document::settings;

/// A range of characters in the file. Lines and columns count from one; line 0 is "nowhere in the file".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) length: u32,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What is wrong, in lower case.
    pub message: String,
    /// Line in the file, from one; 0 if the mistake has no place there.
    pub line: u32,
    /// Column in characters, from one; 0 if the mistake has no place in the file.
    pub column: u32,
    /// What to write instead, or to look at.
    pub hint: String,
    /// The line of the file with a caret below, ready to print.
    pub snippet: Option<String>,
}

/// Every mistake of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The file, or what stood in for one.
    pub origin: String,
    /// What is wrong, in the order of the file. Never empty.
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
    /// Blanks as wide as the line number, so that the parts of one mistake line up.
    fn gutter(&self) -> String {
        " ".repeat(if self.line == 0 { 1 } else { self.line.to_string().len() })
    }
}

/// A complaint about a value, before it has a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) message: String,
    pub(crate) hint: String,
    /// Whether it is about a number that its type cannot hold, so that whoever knows the range should name it.
    pub(crate) is_beyond_type: bool,
}

/// The beginning of a complaint. It cannot be told to anybody before it has a hint, so that no mistake is shown without.
#[must_use]
pub(crate) struct Unhinted {
    message: String,
}

impl Complaint {
    pub(crate) fn about(message: impl Into<String>) -> Unhinted {
        Unhinted { message: message.into() }
    }

    /// Another message with the same hint.
    pub(crate) fn reworded(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// The same about a number that its type cannot hold.
    pub(crate) fn beyond_type(self) -> Self {
        Self { is_beyond_type: true, ..self }
    }

    /// The same message with another hint.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }
}

impl Unhinted {
    pub(crate) fn hint(self, hint: impl Into<String>) -> Complaint {
        Complaint { message: self.message, hint: hint.into(), is_beyond_type: false }
    }
}

/// The text that mistakes point into.
pub(crate) struct Source<'text> {
    origin: &'text str,
    lines: Vec<&'text str>,
}

impl<'text> Source<'text> {
    pub(crate) fn new(origin: &'text str, text: &'text str) -> Self {
        Self { origin, lines: text.lines().collect() }
    }

    /// Give a complaint its place.
    pub(crate) fn mistake(&self, place: Option<Place>, complaint: Complaint) -> Mistake {
        let place = place.unwrap_or_default();
        let Complaint { message, hint, .. } = complaint;
        let line = (place.line as usize).checked_sub(1).and_then(|index| self.lines.get(index));
        if let Some(setting) = line.and_then(|line| settings::shown(line)) {
            // It stands in no file.
            let snippet = Some(snippet_of(&setting, " ", place));
            return Mistake { message, line: 0, column: 0, hint, snippet };
        }
        let snippet = self.snippet(place);
        Mistake { message, line: place.line, column: place.column, hint, snippet }
    }

    /// All mistakes as one error: in the order of the file, each once.
    pub(crate) fn error(&self, mut mistakes: Vec<Mistake>) -> PlanError {
        mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
        mistakes.dedup();
        PlanError { origin: self.origin.to_owned(), mistakes }
    }

    fn snippet(&self, place: Place) -> Option<String> {
        let line = self.lines.get((place.line as usize).checked_sub(1)?)?;
        Some(snippet_of(line, &place.line.to_string(), place))
    }
}

/// A line with its number and carets below the place.
fn snippet_of(line: &str, number: &str, place: Place) -> String {
    let blank = " ".repeat(number.len());
    let before = place.column.saturating_sub(1) as usize;
    let room = line.chars().count().saturating_sub(before);
    let carets = "^".repeat((place.length as usize).clamp(1, room.max(1)));
    let padding = " ".repeat(before.min(line.chars().count()));
    let shown = printable(line);
    format!("{blank} |\n{number} | {shown}\n{blank} | {padding}{carets}")
}

/// Text of the user for a message: quoted, and harmless to a terminal.
pub(crate) fn quoted(text: &str) -> String {
    const LENGTH_MAX: usize = 60;
    let mut shown: String = text.chars().take(LENGTH_MAX).collect();
    if text.chars().nth(LENGTH_MAX).is_some() {
        shown.push('…');
    }
    format!("`{}`", printable(&shown))
}

/// One column per character, no control characters.
fn printable(line: &str) -> String {
    line.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// The candidate that `word` was probably meant to be. Names that differ in their numbers only are no typing errors.
pub(crate) fn nearest<'name>(
    word: &str,
    candidates: impl IntoIterator<Item = &'name str>,
) -> Option<&'name str> {
    let letters =
        |text: &str| text.chars().filter(|character| !character.is_ascii_digit()).collect::<String>();
    // A guess is a kindness, not a duty: hostile files must not make it expensive.
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

/// How many characters must change, come, go, or swap with their neighbour (optimal string alignment).
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
    fn typing_errors_are_guessed_and_other_numbers_are_not() {
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
            source.mistake(Some(Place { line: 1, column: 6, length: 9 }), Complaint::about("m").hint("h"));
        assert_eq!(mistake.snippet.as_deref(), Some("  |\n1 | a: é b\n  |      ^"));
        let beyond =
            source.mistake(Some(Place { line: 7, column: 1, length: 1 }), Complaint::about("m").hint("h"));
        assert_eq!(beyond.snippet, None);
    }
}
