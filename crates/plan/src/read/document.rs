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
mod settings;
mod tree;
mod yaml;

use std::collections::BTreeMap;

use serde_saphyr::options::DuplicateKeyPolicy;

use crate::read::mistake::{Complaint, Position};
pub(crate) use tree::{Content, Document, Entry, Value};
use yaml::{TreeBuilder, position_of, raw, with_position};

/// Largest size of a rack file, in bytes. A larger file is refused without parsing.
pub(crate) const FILE_BYTES_MAX: usize = 16 << 20;

/// Parses one YAML document. A syntax error hides all other mistakes.
pub(crate) fn parse(text: &str) -> Result<Document, (Option<Position>, Complaint)> {
    if text.len() > FILE_BYTES_MAX {
        let message = format!("the file has {} bytes, more than {FILE_BYTES_MAX}", text.len());
        let hint = "describe a regular rack by a `shape` instead of lists, or leave out comments";
        return Err((None, Complaint::about(message).hint(hint)));
    }
    let mut builder = TreeBuilder { text, repetitions: BTreeMap::new() };
    let value = match raw(text, DuplicateKeyPolicy::Error) {
        Ok(raw) => builder.keep(raw),
        Err(serde_saphyr::Error::DuplicateMappingKey { key, location }) => {
            let value = builder.keep(raw(text, DuplicateKeyPolicy::LastWins).map_err(with_position)?);
            // If keys are numbers, the parser yields the last one only. It has named the first repetition here.
            builder.repeated(position_of(location), key.as_deref().unwrap_or("?"));
            value
        }
        Err(error) => return Err(with_position(error)),
    };
    let mut document = Document { value, repetitions: builder.repetitions.into_values().collect() };
    settings::apply(text, &mut document)?;
    Ok(document)
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
            let (message, _) = complaint.finish();
            assert!(message.contains(part), "{message}");
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
        assert!(document.repetitions[0].1.clone().finish().0.contains("`a` is listed here twice"));
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
