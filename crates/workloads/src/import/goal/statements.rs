//! Statements of GOAL text: words up to the end of a line, a semicolon or a brace. Comments are left out.

use crate::error::WorkloadError;

/// Word, or a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'t> {
    /// Characters.
    pub(super) text: &'t str,
    /// Line, from 1.
    pub(super) line: usize,
    /// Column in bytes, from 1.
    pub(super) column: usize,
}

/// End of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// End of a line or of the file, or a semicolon.
    Line,
    /// Opening brace.
    Open,
    /// Closing brace.
    Close,
}

/// Words with their end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement<'t> {
    /// Words, possibly none.
    pub(super) words: Vec<Word<'t>>,
    /// End of the words.
    pub(super) end: End,
    /// Line of the end.
    pub(super) line: usize,
}

/// Statements of a text, in order.
#[derive(Debug)]
pub(super) struct Statements<'t> {
    text: &'t str,
    /// Position in bytes.
    at: usize,
    line: usize,
    /// Position of the begin of the line.
    line_start: usize,
}

impl<'t> Statements<'t> {
    /// Returns the statements of a text.
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1, line_start: 0 }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Skips blanks and comments within a line. A comment of several lines counts its lines.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
            self.at += blanks;
            let rest = self.rest();
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
                self.pass(end);
            } else if blanks == 0 {
                return;
            }
        }
    }

    /// Passes bytes that may have ends of lines.
    fn pass(&mut self, length: usize) {
        let passed = &self.rest()[..length];
        self.line += passed.matches('\n').count();
        if let Some(last) = passed.rfind('\n') {
            self.line_start = self.at + last + 1;
        }
        self.at += length;
    }

    fn word(&mut self) -> Word<'t> {
        let rest = self.rest();
        let is_end = |one: char| one.is_whitespace() || ":;{}/".contains(one);
        let length = match rest.find(is_end) {
            // A colon, or a slash that begins no comment, is a word.
            Some(0) => rest.chars().next().map_or(0, char::len_utf8),
            Some(length) => length,
            None => rest.len(),
        };
        let column = self.at - self.line_start + 1;
        self.at += length;
        Word { text: &rest[..length], line: self.line, column }
    }
}

impl<'t> Iterator for Statements<'t> {
    type Item = Statement<'t>;

    fn next(&mut self) -> Option<Statement<'t>> {
        let mut words = Vec::new();
        loop {
            self.skip();
            let line = self.line;
            let end = match self.rest().bytes().next() {
                None if words.is_empty() => return None,
                None => return Some(Statement { words, end: End::Line, line }),
                Some(b'\n' | b';') => End::Line,
                Some(b'{') => End::Open,
                Some(b'}') => End::Close,
                Some(_) => {
                    words.push(self.word());
                    continue;
                }
            };
            self.pass(1);
            return Some(Statement { words, end, line });
        }
    }
}

impl Word<'_> {
    /// Returns a mistake at this word.
    pub(super) fn mistake(self, reason: impl Into<String>, hint: &str) -> WorkloadError {
        WorkloadError::line(self.line, self.column, reason, hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_lines_semicolons_and_braces() {
        let text = "rank 0 { l1: send 1b;\n// x\nl2 : calc 5 /* a\nb */ cpu 1\n}";
        let statements: Vec<_> = Statements::new(text)
            .map(|one| {
                (one.words.iter().map(|word| word.text).collect::<Vec<_>>().join("|"), one.end, one.line)
            })
            .collect();
        let expected = [
            ("rank|0", End::Open, 1),
            ("l1|:|send|1b", End::Line, 1),
            ("", End::Line, 1),
            ("", End::Line, 2),
            ("l2|:|calc|5|cpu|1", End::Line, 4),
            ("", End::Close, 5),
        ];
        assert_eq!(statements, expected.map(|(words, end, line)| (words.to_owned(), end, line)));
    }

    #[test]
    fn words_have_lines_and_columns_behind_comments() {
        let text = "a /*\n\n*/ b\n é/c";
        let words: Vec<_> = Statements::new(text).flat_map(|one| one.words).collect();
        let places: Vec<_> = words.iter().map(|word| (word.text, word.line, word.column)).collect();
        assert_eq!(places, [("a", 1, 1), ("b", 3, 4), ("é", 4, 2), ("/", 4, 4), ("c", 4, 5)]);
    }
}
