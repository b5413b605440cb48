//! YAML text as a tree of values with positions.
//!
//! A tree is used in place of one `struct` per table, because a derived reader stops at the first error, and a reader of a rack
//! file reports all mistakes at once. `serde-saphyr` parses the YAML. The tree keeps scalars as written,
//! so that `0.01`, `off` and `007` reach the readers of values as text, without a guess of their type.
//!
//! A repeated key is recorded and hides nothing: repeated tables are merged, and of repeated values and lists
//! the first is used.
//!
//! The tree is independent of racks.

mod raw;
pub(crate) mod settings;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Location, Spanned};

use crate::mistake::{Complaint, Position, quoted};
use raw::Raw;

/// Largest size of a rack file, in bytes. A larger file is refused without parsing.
pub(crate) const FILE_BYTES_MAX: usize = 16 << 20;

/// Value with its position.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) position: Position,
    pub(crate) content: Content,
}

/// Content of a value.
#[derive(Debug)]
pub(crate) enum Content {
    /// Empty, `null` or `~`.
    Empty,
    /// A scalar, as written.
    Text(String),
    /// `[a, b]`.
    List(Vec<Value>),
    /// `{key: value}`.
    Table(Vec<Entry>),
}

/// Key and value of a table.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_position: Position,
    pub(crate) value: Value,
    /// True if the entry is in a repeated table, and not in the first one of that key.
    pub(crate) is_of_repetition: bool,
}

/// Tree of a whole file.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) value: Value,
    /// Repeated keys, with the position of the repetition.
    pub(crate) repetitions: Vec<(Position, Complaint)>,
}

impl Content {
    /// Returns the kind for messages: "expected a table, found a list".
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "nothing",
            Self::Text(_) => "a single value",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Parses one YAML document. A syntax error hides all other mistakes.
pub(crate) fn parse(text: &str) -> Result<Document, (Option<Position>, Complaint)> {
    if text.len() > FILE_BYTES_MAX {
        let message = format!("the file has {} bytes, more than {FILE_BYTES_MAX}", text.len());
        let hint = "describe a regular rack by a `shape` instead of lists, or leave out comments";
        return Err((None, Complaint::about(message).hint(hint)));
    }
    let mut keeper = Keeper { text, repetitions: BTreeMap::new() };
    let value = match raw(text, DuplicateKeyPolicy::Error) {
        Ok(raw) => keeper.keep(raw),
        Err(serde_saphyr::Error::DuplicateMappingKey { key, location }) => {
            let value = keeper.keep(raw(text, DuplicateKeyPolicy::LastWins).map_err(with_position)?);
            // If keys are numbers, the parser yields the last one only. It has named the first repetition here.
            keeper.repeated(position_of(location), key.as_deref().unwrap_or("?"));
            value
        }
        Err(error) => return Err(with_position(error)),
    };
    let mut document = Document { value, repetitions: keeper.repetitions.into_values().collect() };
    settings::apply(text, &mut document)?;
    Ok(document)
}

fn raw(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Spanned<Raw>, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        duplicate_keys: duplicate_keys,
    };
    serde_saphyr::from_str_with_options(text, options)
}

fn with_position(error: serde_saphyr::Error) -> (Option<Position>, Complaint) {
    let position = error.location().filter(|location| location.line() > 0).map(position_of);
    (position, user_complaint(&error))
}

/// Converts an error of the parser, whose messages address programmers, for a user of the file.
fn user_complaint(error: &serde_saphyr::Error) -> Complaint {
    match error {
        serde_saphyr::Error::MultipleDocuments { .. } => {
            Complaint::about("the file holds more than one document").hint("one file describes one rack")
        }
        other => {
            let message = other.to_string();
            // The position is shown separately, with the line and a caret.
            let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(before, _)| before);
            Complaint::about(message).hint(hint_for(message))
        }
    }
}

/// Returns a hint for a message of the parser.
fn hint_for(message: &str) -> &'static str {
    let message = message.to_ascii_lowercase();
    let contains = |word: &str| message.contains(word);
    if contains("recursive") || contains("alias") || contains("anchor") {
        "an alias stands for something that was named before it; write the value itself"
    } else if contains("bracket") || contains("brace") || contains("flow") {
        "look for a bracket or brace that is opened and not closed, or closed and not opened"
    } else if contains("mapping values") || contains("not allowed") {
        "one key stands on a line; put text with `: ` in it into quotes"
    } else if contains("quot") {
        "look for a quotation mark that is not closed"
    } else if contains("tab") || contains("indent") {
        "indent with blanks, as deep as the other keys of the same table"
    } else {
        "the text is no YAML from here on; docs/topology-file.md shows how a rack file looks"
    }
}

/// Converts the values of the parser into the tree.
struct Keeper<'text> {
    text: &'text str,
    repetitions: BTreeMap<(u32, u32), (Position, Complaint)>,
}

/// Entries of all tables of a repeated key, each with the number of its table.
type Lines = Vec<(u32, Spanned<String>, Spanned<Raw>)>;

impl Keeper<'_> {
    fn keep(&mut self, raw: Spanned<Raw>) -> Value {
        let position = position_of(raw.referenced);
        let content = match raw.value {
            Raw::Empty => Content::Empty,
            Raw::Scalar(scalar) => {
                Content::Text(as_written(raw.defined, self.text).map_or(scalar, str::to_owned))
            }
            Raw::List(items) => Content::List(items.into_iter().map(|item| self.keep(item)).collect()),
            Raw::Table(entries) => {
                Content::Table(self.table(entries.into_iter().map(|(key, value)| (0, key, value)).collect()))
            }
        };
        Value { position, content }
    }

    /// Returns the entries of a table, with repeated keys merged.
    fn table(&mut self, lines: Lines) -> Vec<Entry> {
        let mut index_of = BTreeMap::new();
        let mut kept: Vec<(u32, Spanned<String>, Vec<Spanned<Raw>>)> = Vec::new();
        for (table, key, value) in lines {
            match index_of.entry(key.value.clone()) {
                Slot::Vacant(slot) => {
                    slot.insert(kept.len());
                    kept.push((table, key, vec![value]));
                }
                Slot::Occupied(slot) => {
                    let (first_table, _, values) = &mut kept[*slot.get()];
                    values.push(value);
                    // A repeated table has been reported as a whole.
                    if *first_table == table {
                        self.repeated(position_of(key.defined), &key.value);
                    }
                }
            }
        }
        kept.into_iter().map(|(table, key, values)| self.entry(table, key, values)).collect()
    }

    fn entry(&mut self, table: u32, key: Spanned<String>, values: Vec<Spanned<Raw>>) -> Entry {
        let mut values = values.into_iter();
        let first = values.next().unwrap_or_else(|| unreachable!("every key came with a value"));
        let value = match first {
            Spanned { value: Raw::Table(entries), referenced, .. } => {
                let more =
                    values.map(|value| if let Raw::Table(more) = value.value { more } else { Vec::new() });
                let tables = (0..).zip(std::iter::once(entries).chain(more));
                let lines = tables.flat_map(|(number, entries)| {
                    entries.into_iter().map(move |(key, value)| (number, key, value))
                });
                Value {
                    position: position_of(referenced),
                    content: Content::Table(self.table(lines.collect())),
                }
            }
            single => self.keep(single),
        };
        let key_position = position_of(key.referenced);
        Entry { key_position, key: key.value, value, is_of_repetition: table > 0 }
    }

    fn repeated(&mut self, position: Position, key: &str) {
        // An alias visits the same lines again.
        self.repetitions.entry((position.line, position.column)).or_insert_with(|| {
            let complaint = Complaint::about(format!("the key {} stands here twice", quoted(key)));
            (position, complaint.hint("keep one of them, or write what both say in one place"))
        });
    }
}

/// Returns the characters of a plain scalar in the file, or `None` if it is quoted, so that the unquoted text is used.
fn as_written(location: Location, text: &str) -> Option<&str> {
    let start = usize::try_from(location.span().byte_offset()?).ok()?;
    let length = usize::try_from(location.span().byte_len()?).ok()?;
    let written = text.get(start..start.checked_add(length)?)?.trim();
    let plain =
        written.chars().all(|character| character.is_ascii_alphanumeric() || "+-._".contains(character));
    (plain && !written.is_empty()).then_some(written)
}

fn position_of(location: Location) -> Position {
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Position {
        line: narrow(location.line()),
        column: narrow(location.column()),
        length: narrow(location.span().len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(value: &Value) -> String {
        let position = format!("{}:{}+{}", value.position.line, value.position.column, value.position.length);
        match &value.content {
            Content::Empty => format!("empty@{position}"),
            Content::Text(text) => format!("{text}@{position}"),
            Content::List(items) => {
                format!("[{}]@{position}", items.iter().map(show).collect::<Vec<_>>().join(" "))
            }
            Content::Table(entries) => {
                let entries: Vec<_> = entries
                    .iter()
                    .map(|entry| {
                        let position = entry.key_position;
                        format!(
                            "{}@{}:{}+{}={}",
                            entry.key,
                            position.line,
                            position.column,
                            position.length,
                            show(&entry.value)
                        )
                    })
                    .collect();
                format!("{{{}}}@{position}", entries.join(" "))
            }
        }
    }

    #[test]
    fn scalars_stay_as_written() {
        let text =
            "a: off\nb: 0x88B5\nc: 1e-4\nd: 007\ne: \"1.50\"\nf: 100Gbit/s\ng: true\nh: ~\ni: 'a b'\n5: -1\n";
        let shown = show(&parse(text).unwrap().value);
        for scalar in [
            "a@1:1+1=off@1:4+3",
            "=0x88B5@",
            "=1e-4@",
            "=007@",
            "=1.50@",
            "=100Gbit/s@",
            "=true@",
            "h@8:1+1=empty",
            "=a b@",
            "5@10:1+1=-1@",
        ] {
            assert!(shown.contains(scalar), "{scalar} in {shown}");
        }
    }

    #[test]
    fn positions_count_characters_and_are_right_after_comments_lists_and_aliases() {
        let text = "# c\nlist:\n  - 5 # five\n  - {x: y}\né: z\nanchor: &a 7\nalias: *a\n";
        let shown = show(&parse(text).unwrap().value);
        for part in
            ["5@3:5+1", "{x@4:6+1=y@4:9+1}@4:5+1", "é@5:1+1=z@5:4+1", "=7@6:12+1", "alias@7:1+5=7@7:8+2"]
        {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[test]
    fn text_that_is_no_single_document_is_refused_with_its_position() {
        for (text, line, part) in [
            ("a: [1", 1, "bracket"),
            ("a: b: c", 1, "not allowed"),
            ("---\na: 1\n---\nb: 1", 4, "more than one document"),
            ("&a [*a]", 1, "recursive"),
        ] {
            let (position, complaint) = parse(text).unwrap_err();
            assert_eq!(position.map(|position| position.line), Some(line), "{text}");
            assert!(complaint.message.contains(part), "{}", complaint.message);
        }
    }

    #[test]
    fn a_repeated_key_is_recorded_and_its_tables_are_merged() {
        let text =
            "a: 1\nt: {x: 1, y: [5]}\na: 2\nt: {x: 7, z: 3, z: 4}\n1: {}\n1: {}\nl: &l {p: 0, p: 1}\nm: *l\n";
        let document = parse(text).unwrap();
        let positions: Vec<_> =
            document.repetitions.iter().map(|(position, _)| (position.line, position.column)).collect();
        assert_eq!(positions, [(3, 1), (4, 1), (4, 17), (7, 14)]);
        assert!(document.repetitions[0].1.message.contains("`a` stands here twice"));
        let shown = show(&document.value);
        for part in ["a@1:1+1=1@", "{x@2:5+1=1@", "z@4:11+1=3@"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[test]
    fn repeated_number_keys_are_recorded_too() {
        let document = parse("5: a\n5: b\n").unwrap();
        assert_eq!(document.repetitions.len(), 1);
        assert_eq!(document.repetitions[0].0.line, 2);
    }
}
