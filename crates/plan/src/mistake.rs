//! What is wrong with a rack file, said so that the next edit fixes it.
//!
//! A mistake has a place (line, column), a message, and mostly a hint. [`PlanError`] carries every mistake that was
//! found, not the first one, and prints them the way a good compiler does: the line, a caret, the hint.
//!
//! This file finds no mistakes; it shows them.

use core::fmt;

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
    /// What to write instead.
    pub hint: Option<String>,
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
            if index > 0 {
                writeln!(formatter)?;
            }
            writeln!(formatter, "error: {}", mistake.message)?;
            let gutter = mistake.gutter();
            if mistake.line > 0 {
                writeln!(formatter, "{gutter}--> {}:{}:{}", self.origin, mistake.line, mistake.column)?;
            } else {
                writeln!(formatter, "{gutter}--> {}", self.origin)?;
            }
            if let Some(snippet) = &mistake.snippet {
                writeln!(formatter, "{snippet}")?;
            }
            if let Some(hint) = &mistake.hint {
                writeln!(formatter, "{gutter} = hint: {hint}")?;
            }
        }
        match self.mistakes.len() {
            0 | 1 => Ok(()),
            count => writeln!(formatter, "\nerror: {} has {count} mistakes", self.origin),
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
    pub(crate) hint: Option<String>,
}

impl Complaint {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
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
        let snippet = self.snippet(place);
        let Complaint { message, hint } = complaint;
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
        let number = place.line.to_string();
        let blank = " ".repeat(number.len());
        let before = place.column.saturating_sub(1) as usize;
        let room = line.chars().count().saturating_sub(before);
        let carets = "^".repeat((place.length as usize).clamp(1, room.max(1)));
        let padding = " ".repeat(before.min(line.chars().count()));
        let shown = printable(line);
        Some(format!("{blank} |\n{number} | {shown}\n{blank} | {padding}{carets}"))
    }
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

/// The candidate that `word` was probably meant to be.
pub(crate) fn nearest<'name>(word: &str, candidates: impl IntoIterator<Item = &'name str>) -> Option<&'name str> {
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (edits(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many characters must change, come or go (Levenshtein distance, one row at a time).
fn edits(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, character) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, other) in right.iter().enumerate() {
            let change = diagonal + usize::from(character != *other);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}
