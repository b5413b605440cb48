//! Short keys of settings of the command line (`--set planes=2`), and the full keys that they stand for (`shape.star.planes`).
//!
//! A short key is the end of the full one, from any dot on. Of tables from which a file takes one, such as the shapes, only those that
//! the file names count. A key that leads to nothing stays as it is, and the reader of the file reports it.

use crate::read::document::{self, Content, Value};
use crate::schema::{Choose, Kind, RACK, Table};

/// Returns a setting `KEY=VALUE` with its key in full, for the rack file with this text.
///
/// # Errors
/// Message and hint, joined by `; hint: `, about a key that is the end of several keys.
pub fn full_setting(text: &str, setting: &str) -> Result<String, String> {
    let Some((key, value)) = setting.split_once('=') else { return Ok(setting.to_owned()) };
    let key = key.trim();
    if key.is_empty() || is_full(key, value) {
        return Ok(setting.to_owned());
    }
    let document = document::parse(text).ok().map(|document| document.value);
    let mut meant = Vec::new();
    ends(&RACK, document.as_ref(), "", &format!(".{key}"), &mut meant);
    match meant.as_slice() {
        [] => Ok(setting.to_owned()),
        [one] => Ok(format!("{one}={value}")),
        several => Err(format!(
            "`{key}` is the end of {} keys; hint: write one of {}",
            several.len(),
            several.join(", ")
        )),
    }
}

/// Returns true if a key begins at the top of the file. A table there cannot have a single value, so its name may be a short key.
fn is_full(key: &str, value: &str) -> bool {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let is_table_value = value.trim_start().starts_with(['{', '[']);
    RACK.find(first).is_some_and(|found| rest.is_some() || is_table_value || has_single_value(&found.kind))
}

const fn has_single_value(kind: &Kind) -> bool {
    !matches!(kind, Kind::Table(_) | Kind::TableBy(..) | Kind::Servers(_) | Kind::List(_))
}

/// Adds the paths below a table that end with `end` and have a single value. `value` is the table in the file, if it is there.
fn ends(table: &'static Table, value: Option<&Value>, path: &str, end: &str, found: &mut Vec<String>) {
    let is_any_named = table.names().any(|name| names(value, name));
    for key in table.keys {
        if table.choose == Choose::One && is_any_named && !names(value, key.name) {
            continue;
        }
        let own = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
        if has_single_value(&key.kind) && own.ends_with(end) {
            found.push(own.clone());
        }
        if let Some(inner) = key.kind.table() {
            ends(inner, entry(value, key.name), &own, end, found);
        }
    }
}

/// Returns true if a table of the file has this key, or if the file has this name in place of the table (`job: collective`).
fn names(value: Option<&Value>, key: &str) -> bool {
    entry(value, key).is_some()
        || matches!(value.map(|value| &value.content), Some(Content::Text(text)) if text == key)
}

fn entry<'doc>(value: Option<&'doc Value>, key: &str) -> Option<&'doc Value> {
    let Content::Table(entries) = &value?.content else { return None };
    entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAR: &str = "name: r\nshape: {star: {nodes: 4}}\njob: collective\n";

    fn full(setting: &str) -> String {
        full_setting(STAR, setting).unwrap()
    }

    #[test]
    fn the_end_of_a_key_is_enough() {
        for (short, meant) in [
            ("planes=2", "shape.star.planes=2"),
            ("nodes=8", "shape.star.nodes=8"),
            ("star.planes=2", "shape.star.planes=2"),
            ("heartbeat_interval=5ms", "timers.heartbeat_interval=5ms"),
            ("algorithm=ring", "job.collective.algorithm=ring"),
        ] {
            assert_eq!(full(short), meant);
        }
    }

    #[test]
    fn only_the_shape_of_the_file_counts() {
        let ring = "name: r\nshape: {ring: {nodes: 4}}\n";
        assert_eq!(full_setting(ring, "nodes=8").unwrap(), "shape.ring.nodes=8");
    }

    #[test]
    fn a_full_key_stays_as_it_is() {
        for setting in [
            "link.loss=1%",
            "seed=7",
            "job=litmus",
            "links.n0--n1.loss=1%",
            "nodes={n0: {tenant: 1}}",
            "shape={ring: {nodes: 3}}",
        ] {
            assert_eq!(full(setting), setting);
        }
    }

    #[test]
    fn a_key_that_leads_to_nothing_is_left_to_the_reader() {
        for setting in ["lnik.loss=1%", "los=1%", "no value", "=1", "oss=1%"] {
            assert_eq!(full(setting), setting);
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_chooses_no_shape() {
        let complaint = full_setting("a: [", "planes=2").unwrap_err();
        assert!(complaint.contains("shape.star.planes"), "{complaint}");
    }

    #[test]
    fn a_key_that_is_the_end_of_several_lists_them() {
        let complaint = full_setting(STAR, "rate=10Gbit/s").unwrap_err();
        assert!(
            complaint.starts_with("`rate` is the end of ") && complaint.contains("; hint: "),
            "{complaint}"
        );
        assert!(complaint.contains("link.rate") && complaint.contains("local.rate"), "{complaint}");
    }
}
