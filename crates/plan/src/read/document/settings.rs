//! Replaces values of a document by the settings of the command line (`--set link.loss=1%`) in its text.

use serde_saphyr::options::DuplicateKeyPolicy;

use super::tree::{Content, Document, Entry, Value};
use super::yaml::{TreeBuilder, raw, user_complaint};
use crate::read::mistake::{Complaint, Position};
use crate::read::setting_lines::MARK;

/// Replaces values of the document by the settings of the text.
pub(super) fn apply(text: &str, document: &mut Document) -> Result<(), (Option<Position>, Complaint)> {
    for (number, line) in (1..).zip(text.lines()) {
        let Some(setting) = line.strip_prefix(MARK) else { continue };
        let at = |column: usize, length: usize| Position {
            line: number,
            column: (MARK.len() + column + 1) as u32,
            length: length.max(1) as u32,
        };
        let Some((path, value)) = setting.split_once('=').filter(|(path, _)| !path.trim().is_empty()) else {
            let complaint = Complaint::about("a setting has a key and a value");
            return Err((
                Some(at(0, setting.chars().count())),
                complaint.hint("write KEY=VALUE, such as `--set link.loss=1%`"),
            ));
        };
        let position = at(path.chars().count() + 1, value.chars().count());
        let mut value = read(value, position)?;
        put_at(&mut value, position);
        let keys: Vec<_> = path.split('.').map(str::trim).collect();
        put(&mut document.value, &keys, value, at(0, path.chars().count()));
    }
    Ok(())
}

fn read(text: &str, position: Position) -> Result<Value, (Option<Position>, Complaint)> {
    let read =
        raw(text, DuplicateKeyPolicy::Error).map_err(|error| (Some(position), user_complaint(&error)))?;
    Ok(TreeBuilder { text, repetitions: std::collections::BTreeMap::new() }.keep(read))
}

/// Sets all positions in this value to the line of the setting.
fn put_at(value: &mut Value, position: Position) {
    value.position = position;
    match &mut value.content {
        Content::Empty | Content::Text(_) => {}
        Content::List(items) => items.iter_mut().for_each(|item| put_at(item, position)),
        Content::Table(entries) => entries.iter_mut().for_each(|entry| {
            entry.key_position = position;
            put_at(&mut entry.value, position);
        }),
    }
}

/// Sets the value at the path `keys` below `table`. Missing tables are added.
fn put(table: &mut Value, keys: &[&str], value: Value, key_position: Position) {
    let Some((key, rest)) = keys.split_first() else {
        *table = value;
        return;
    };
    if !matches!(table.content, Content::Table(_)) {
        *table = Value { position: key_position, content: Content::Table(Vec::new()) };
    }
    let Content::Table(entries) = &mut table.content else { return };
    let found = entries.iter().position(|entry| entry.key == *key).unwrap_or_else(|| {
        let value = Value { position: key_position, content: Content::Empty };
        entries.push(Entry { key: (*key).to_owned(), key_position, value, is_of_repetition: false });
        entries.len() - 1
    });
    put(&mut entries[found].value, rest, value, key_position);
}
