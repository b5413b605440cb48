//! YAML text as a tree in which every value knows its place.
//!
//! Why a tree and not one `struct` per table: a derived reader stops at the first thing it does not like, and a rack
//! file deserves to hear about all its mistakes at once. `serde-saphyr` does the YAML; the tree keeps what was written,
//! so that `0.01`, `off` and `007` reach the readers of values as text, never as a guess about their type.
//!
//! The tree knows nothing about racks.

use core::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use crate::mistake::{Complaint, Place, quoted};

/// A rack file larger than this is refused unread, in bytes.
pub(crate) const FILE_BYTES_MAX: usize = 16 << 20;

/// A value and its place.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) place: Place,
    pub(crate) content: Content,
}

/// What stands there.
#[derive(Debug)]
pub(crate) enum Content {
    /// Nothing, `null` or `~`.
    Empty,
    /// A scalar, as written.
    Text(String),
    /// `[a, b]`.
    List(Vec<Value>),
    /// `{key: value}`.
    Table(Vec<Entry>),
}

/// One line of a table.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) value: Value,
}

impl Content {
    /// For messages: "expected a table, found a list".
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "nothing",
            Self::Text(_) => "a single value",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Read one YAML document. A syntax error is the one mistake that hides all others.
pub(crate) fn parse(text: &str) -> Result<Value, (Option<Place>, Complaint)> {
    if text.len() > FILE_BYTES_MAX {
        let message = format!("the file has {} bytes, more than {FILE_BYTES_MAX}", text.len());
        let hint = "describe a regular rack by a `shape` instead of lists, or leave out comments";
        return Err((None, Complaint::about(message).hint(hint)));
    }
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    let raw: Spanned<Raw> = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = error.location().filter(|location| location.line() > 0).map(place_of);
        (place, in_our_words(&error))
    })?;
    Ok(keep(raw, text))
}

/// The reader's messages speak to programmers where a user of the file can do something else.
fn in_our_words(error: &serde_saphyr::Error) -> Complaint {
    match error {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
            Complaint::about(format!("the key {} stands here twice", quoted(key)))
                .hint("keep one of them, or write what both say in one place")
        }
        serde_saphyr::Error::MultipleDocuments { .. } => {
            Complaint::about("the file holds more than one document").hint("one file describes one rack")
        }
        other => {
            let message = other.to_string();
            // The place is shown apart, with the line and a caret.
            let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(before, _)| before);
            Complaint::about(message).hint(hint_for(message))
        }
    }
}

/// What to look at, from what the reader says; it knows the text and not what was meant.
fn hint_for(message: &str) -> &'static str {
    let message = message.to_ascii_lowercase();
    let says = |word: &str| message.contains(word);
    if says("recursive") || says("alias") || says("anchor") {
        "an alias stands for something that was named before it; write the value itself"
    } else if says("bracket") || says("brace") || says("flow") {
        "look for a bracket or brace that is opened and not closed, or closed and not opened"
    } else if says("mapping values") || says("not allowed") {
        "one key stands on a line; put text with `: ` in it into quotes"
    } else if says("quot") {
        "look for a quotation mark that is not closed"
    } else if says("tab") || says("indent") {
        "indent with blanks, as deep as the other keys of the same table"
    } else {
        "the text is no YAML from here on; docs/topology-file.md shows how a rack file looks"
    }
}

/// What the YAML reader hands over, before places are attached.
enum Raw {
    Empty,
    Scalar(String),
    List(Vec<Spanned<Raw>>),
    Table(Vec<(Spanned<String>, Spanned<Raw>)>),
}

fn keep(raw: Spanned<Raw>, text: &str) -> Value {
    let place = place_of(raw.referenced);
    let content = match raw.value {
        Raw::Empty => Content::Empty,
        Raw::Scalar(scalar) => Content::Text(as_written(raw.defined, text).map_or(scalar, str::to_owned)),
        Raw::List(items) => Content::List(items.into_iter().map(|item| keep(item, text)).collect()),
        Raw::Table(entries) => Content::Table(
            entries
                .into_iter()
                .map(|(key, value)| Entry {
                    key_place: place_of(key.referenced),
                    key: key.value,
                    value: keep(value, text),
                })
                .collect(),
        ),
    };
    Value { place, content }
}

/// The characters of a plain scalar in the file; `None` if it is quoted, so that the unquoted text counts.
fn as_written(location: Location, text: &str) -> Option<&str> {
    let start = usize::try_from(location.span().byte_offset()?).ok()?;
    let length = usize::try_from(location.span().byte_len()?).ok()?;
    let written = text.get(start..start.checked_add(length)?)?.trim();
    let plain =
        written.chars().all(|character| character.is_ascii_alphanumeric() || "+-._".contains(character));
    (plain && !written.is_empty()).then_some(written)
}

fn place_of(location: Location) -> Place {
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Place {
        line: narrow(location.line()),
        column: narrow(location.column()),
        length: narrow(location.span().len()),
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Empty)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Table(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(value: &Value) -> String {
        let place = format!("{}:{}+{}", value.place.line, value.place.column, value.place.length);
        match &value.content {
            Content::Empty => format!("empty@{place}"),
            Content::Text(text) => format!("{text}@{place}"),
            Content::List(items) => {
                format!("[{}]@{place}", items.iter().map(show).collect::<Vec<_>>().join(" "))
            }
            Content::Table(entries) => {
                let entries: Vec<_> = entries
                    .iter()
                    .map(|entry| {
                        let place = entry.key_place;
                        format!(
                            "{}@{}:{}+{}={}",
                            entry.key,
                            place.line,
                            place.column,
                            place.length,
                            show(&entry.value)
                        )
                    })
                    .collect();
                format!("{{{}}}@{place}", entries.join(" "))
            }
        }
    }

    #[test]
    fn scalars_stay_as_written() {
        let text =
            "a: off\nb: 0x88B5\nc: 1e-4\nd: 007\ne: \"1.50\"\nf: 100Gbit/s\ng: true\nh: ~\ni: 'a b'\n5: -1\n";
        let shown = show(&parse(text).unwrap());
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
    fn places_count_characters_and_survive_comments_lists_and_aliases() {
        let text = "# c\nlist:\n  - 5 # five\n  - {x: y}\né: z\nanchor: &a 7\nalias: *a\n";
        let shown = show(&parse(text).unwrap());
        for part in
            ["5@3:5+1", "{x@4:6+1=y@4:9+1}@4:5+1", "é@5:1+1=z@5:4+1", "=7@6:12+1", "alias@7:1+5=7@7:8+2"]
        {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[test]
    fn what_is_no_single_document_is_refused_with_its_place() {
        for (text, line, part) in [
            ("a: 1\na: 2", 2, "`a` stands here twice"),
            ("a: [1", 1, "bracket"),
            ("a: b: c", 1, "not allowed"),
            ("---\na: 1\n---\nb: 1", 4, "more than one document"),
            ("&a [*a]", 1, "recursive"),
        ] {
            let (place, complaint) = parse(text).unwrap_err();
            assert_eq!(place.map(|place| place.line), Some(line), "{text}");
            assert!(complaint.message.contains(part), "{}", complaint.message);
        }
    }
}
