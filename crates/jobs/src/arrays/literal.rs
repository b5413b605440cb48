//! Parser for the Python literals of a `.npy` header: a dictionary of texts, truth values, numbers, and tuples or lists
//! of these.
//!
//! It does not support escapes in texts, negative numbers, or nesting beyond a few levels. Unsupported input is an
//! error with its position.

/// Value of a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Literal {
    Text(String),
    Truth(bool),
    Number(u64),
    /// A tuple or a list.
    Sequence(Vec<Literal>),
}

/// Maximum depth of nesting. A structured type is a list of tuples of tuples.
const DEPTH_MAX: u32 = 8;

/// Parses `{'key': value, ...}`, followed by nothing but white space.
pub(crate) fn dictionary(text: &str) -> Result<Vec<(String, Literal)>, String> {
    let mut reader = Reader { rest: text, length: text.len() };
    reader.expect('{')?;
    let mut entries = Vec::new();
    while !reader.accept('}') {
        let Literal::Text(key) = reader.value(0)? else { return Err(reader.wrong("a key in quotes")) };
        reader.expect(':')?;
        entries.push((key, reader.value(0)?));
        if !reader.accept(',') {
            reader.expect('}')?;
            break;
        }
    }
    if reader.rest.trim().is_empty() { Ok(entries) } else { Err(reader.wrong("the end")) }
}

struct Reader<'a> {
    rest: &'a str,
    length: usize,
}

impl Reader<'_> {
    fn wrong(&self, wanted: &str) -> String {
        format!("expected {wanted} at byte {}", self.length - self.rest.len())
    }

    fn accept(&mut self, character: char) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(character);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, character: char) -> Result<(), String> {
        if self.accept(character) { Ok(()) } else { Err(self.wrong(&format!("'{character}'"))) }
    }

    fn value(&mut self, depth: u32) -> Result<Literal, String> {
        if depth > DEPTH_MAX {
            return Err(self.wrong("fewer brackets"));
        }
        for quote in ['\'', '"'] {
            if self.accept(quote) {
                return self.text(quote);
            }
        }
        for (open, close) in [('(', ')'), ('[', ']')] {
            if self.accept(open) {
                return self.sequence(close, depth);
            }
        }
        for (word, truth) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(Literal::Truth(truth));
            }
        }
        self.number()
    }

    fn text(&mut self, quote: char) -> Result<Literal, String> {
        let Some((text, rest)) = self.rest.split_once(quote) else {
            return Err(self.wrong("a closing quote"));
        };
        if text.contains('\\') {
            return Err(self.wrong("a text without escapes"));
        }
        self.rest = rest;
        Ok(Literal::Text(text.to_owned()))
    }

    fn sequence(&mut self, close: char, depth: u32) -> Result<Literal, String> {
        let mut values = Vec::new();
        while !self.accept(close) {
            values.push(self.value(depth + 1)?);
            if !self.accept(',') {
                self.expect(close)?;
                break;
            }
        }
        Ok(Literal::Sequence(values))
    }

    fn number(&mut self) -> Result<Literal, String> {
        let end = self.rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        let number = digits.parse().map_err(|_| self.wrong("a value"))?;
        // Python 2 marked long integers.
        self.rest = rest.strip_prefix('L').unwrap_or(rest);
        Ok(Literal::Number(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_quotes_brackets_and_commas_come_as_they_like() {
        let entries = dictionary(" {\"a\":(1 , 20L,),'b': [('x', 'y'), ()] ,'c':True} \n").unwrap();
        let text = |text: &str| Literal::Text(text.to_owned());
        let pair = Literal::Sequence(vec![text("x"), text("y")]);
        assert_eq!(
            entries,
            [
                ("a".to_owned(), Literal::Sequence(vec![Literal::Number(1), Literal::Number(20)])),
                ("b".to_owned(), Literal::Sequence(vec![pair, Literal::Sequence(Vec::new())])),
                ("c".to_owned(), Literal::Truth(true)),
            ]
        );
        assert_eq!(dictionary("{}"), Ok(Vec::new()));
    }

    #[test]
    fn what_is_not_understood_is_an_error_with_its_place() {
        for (text, part) in [
            ("", "'{' at byte 0"),
            ("{1: 2}", "a key in quotes"),
            ("{'a' 2}", "':' at byte 5"),
            ("{'a': -2}", "a value at byte 6"),
            ("{'a': (1 2)}", "')' at byte 9"),
            ("{'a': 'b", "a closing quote"),
            ("{'a': '\\n'}", "without escapes"),
            ("{'a': 1} x", "the end at byte 8"),
            ("{'a': 99999999999999999999}", "a value"),
            ("{'a': ((((((((((1))))))))))}", "fewer brackets"),
        ] {
            let error = dictionary(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in ".{0,60}", pieces in "[{}()'\":,0-9TrueL\\[\\] ]{0,60}") {
            let _ = dictionary(&text);
            let _ = dictionary(&format!("{{{pieces}"));
        }
    }
}
