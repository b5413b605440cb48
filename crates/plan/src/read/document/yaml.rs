//! Parses YAML text into the tree of a document.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Location, Spanned};

use super::raw::Raw;
use super::tree::{Content, Entry, Value};
use crate::read::mistake::{Complaint, Position, quoted};

pub(super) fn raw(
    text: &str,
    duplicate_keys: DuplicateKeyPolicy,
) -> Result<Spanned<Raw>, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        duplicate_keys: duplicate_keys,
    };
    serde_saphyr::from_str_with_options(text, options)
}

pub(super) fn with_position(error: serde_saphyr::Error) -> (Option<Position>, Complaint) {
    let position = error.location().filter(|location| location.line() > 0).map(position_of);
    (position, user_complaint(&error))
}

/// Converts an error of the parser, whose messages address programmers, for a user of the file.
pub(super) fn user_complaint(error: &serde_saphyr::Error) -> Complaint {
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
pub(super) struct TreeBuilder<'text> {
    pub(super) text: &'text str,
    pub(super) repetitions: BTreeMap<(u32, u32), (Position, Complaint)>,
}

/// Entries of all tables of a repeated key, each with the number of its table.
type Lines = Vec<(u32, Spanned<String>, Spanned<Raw>)>;

impl TreeBuilder<'_> {
    pub(super) fn keep(&mut self, raw: Spanned<Raw>) -> Value {
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

    pub(super) fn repeated(&mut self, position: Position, key: &str) {
        // An alias visits the same lines again.
        self.repetitions.entry((position.line, position.column)).or_insert_with(|| {
            let complaint = Complaint::about(format!("the key {} is listed here twice", quoted(key)));
            (position, complaint.hint("keep one of them, or write the contents of both in one place"))
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

pub(super) fn position_of(location: Location) -> Position {
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Position {
        line: narrow(location.line()),
        column: narrow(location.column()),
        length: narrow(location.span().len()),
    }
}
