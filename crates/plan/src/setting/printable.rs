//! Text from files and from other programs, as a terminal may show it.
//!
//! Such text can hold characters that control a terminal, or that change the order in which a line is read. They are replaced here. Nothing is
//! quoted or cut off.

use std::borrow::Cow;

/// Sign in place of a character that must not reach a terminal.
const REPLACEMENT: char = '\u{fffd}';

/// Returns a text as one line for a terminal: blanks in place of tabs and of ends of lines, and a sign in place of other characters that control a
/// terminal or the direction of text. Each character takes one column.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, |_| false)
}

/// Returns a text of several lines for a terminal, as [`printable`] does, and keeps the ends of its lines.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |character| character == '\n')
}

fn replaced(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_refused = |character: char| controls(character) && !is_kept(character);
    if !text.contains(is_refused) {
        return Cow::Borrowed(text);
    }
    let shown = |character: char| match character {
        '\t' | '\n' | '\r' if is_refused(character) => ' ',
        _ if is_refused(character) => REPLACEMENT,
        _ => character,
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Returns true for characters that control a terminal, end a line, or change the direction of text.
fn controls(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_of_control_or_direction_remains() {
        let hostile = "a\u{1b}[31mb\u{202e}c\u{9b}d\u{2066}e\u{200f}f\u{7f}";
        assert_eq!(printable(hostile), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d\u{fffd}e\u{fffd}f\u{fffd}");
        assert_eq!(printable("é\tb\nc"), "é b c");
        assert_eq!(printable_lines("é\tb\nc\r\u{202d}"), "é b\nc \u{fffd}");
    }

    #[test]
    fn other_text_is_not_changed() {
        for text in ["", "n0->n1 · 5 µs", "שלום", "👩\u{200d}🚀"] {
            assert!(matches!(printable(text), Cow::Borrowed(shown) if shown == text));
        }
    }
}
