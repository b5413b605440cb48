//! Parts of one line. Their columns are counted when a mistake is reported.

use crate::error::WorkloadError;

/// Part of a line between blanks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    /// Characters of the part.
    pub(crate) text: &'t str,
    /// Position in bytes. [`Tokens::column`] has the column.
    start: usize,
}

/// Parts of one line that are not yet read.
#[derive(Clone, Debug)]
pub(crate) struct Tokens<'t> {
    /// Number of the line, from 1.
    line: usize,
    content: &'t str,
    /// Position in bytes.
    at: usize,
}

impl<'t> Tokens<'t> {
    /// Returns the parts of a line. A comment begins with `#` at the begin of the line or behind a blank.
    pub(crate) fn new(line: usize, text: &'t str) -> Self {
        let is_comment = |at: &usize| text[..*at].chars().next_back().is_none_or(char::is_whitespace);
        let comment = text.match_indices('#').map(|(at, _)| at).find(is_comment);
        let content = text[..comment.unwrap_or(text.len())].trim_end();
        Self { line, content, at: 0 }
    }

    /// Returns the next part.
    pub(crate) fn next(&mut self) -> Option<Token<'t>> {
        let rest = &self.content[self.at..];
        let start = self.at + rest.len() - rest.trim_start().len();
        let rest = &self.content[start..];
        let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.at = start + length;
        (length > 0).then_some(Token { text: &rest[..length], start })
    }

    /// Returns the next part if it is `word`.
    pub(crate) fn take(&mut self, word: &str) -> Option<Token<'t>> {
        let before = self.at;
        let token = self.next().filter(|token| token.text == word);
        if token.is_none() {
            self.at = before;
        }
        token
    }

    /// Returns the next part, or the mistake that it is missing.
    pub(crate) fn expect(&mut self, what: &str, hint: &str) -> Result<Token<'t>, WorkloadError> {
        self.next().ok_or_else(|| {
            let column = self.column(self.content.len());
            WorkloadError::line(self.line, column, format!("the line ends before its {what}"), hint)
        })
    }

    /// Returns the remaining characters without blanks around them.
    pub(crate) fn rest(&mut self) -> Token<'t> {
        let rest = &self.content[self.at..];
        let start = self.at + rest.len() - rest.trim_start().len();
        self.at = self.content.len();
        Token { text: &self.content[start..], start }
    }

    /// Returns a mistake at a part of this line.
    pub(crate) fn mistake(&self, token: Token<'_>, reason: impl Into<String>, hint: &str) -> WorkloadError {
        WorkloadError::line(self.line, self.column(token.start), reason, hint)
    }

    /// Returns the column in characters, from 1, of a position in bytes.
    fn column(&self, start: usize) -> usize {
        self.content.get(..start).map_or(1, |before| before.chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Place;

    #[test]
    fn parts_have_columns_in_characters_and_comments_are_left_out() {
        let mut tokens = Tokens::new(1, "  é a#b  c # rest");
        let parts: Vec<_> = core::iter::from_fn(|| tokens.next()).map(|one| one.text).collect();
        assert_eq!(parts, ["é", "a#b", "c"]);
        let mut tokens = Tokens::new(1, "  é a#b  c # rest");
        let columns = [3, 5, 10].map(|column| {
            let token = tokens.next().expect("a part");
            (tokens.mistake(token, "", "").place, Place::Line { line: 1, column })
        });
        columns.iter().for_each(|(found, expected)| assert_eq!(found, expected));
    }

    #[test]
    fn a_line_without_parts_is_empty() {
        for text in ["", "   ", "# a", "  # a"] {
            assert_eq!(Tokens::new(1, text).next(), None, "{text}");
        }
    }

    #[test]
    fn a_word_is_taken_only_where_it_stands() {
        let mut tokens = Tokens::new(1, "tag 7");
        assert_eq!(tokens.take("after"), None);
        assert_eq!(tokens.take("tag").map(|one| one.text), Some("tag"));
        assert_eq!(tokens.rest(), Token { text: "7", start: 4 });
    }
}
