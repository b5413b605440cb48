//! One table of the file, read key by key; what goes wrong is noted, and reading goes on.
//!
//! A value that cannot be read is complained about once, and a stand-in takes its place, marked as broken so that no
//! later check judges it. Nothing here knows what the keys mean.

use crate::document::{Content, Entry, Value};
use crate::mistake::{Complaint, Mistake, Place, Source, nearest, quoted};
use crate::places::Places;
use crate::schema::{Choose, Kind, Table};

/// The reader: where mistakes and places are collected.
pub(crate) struct Reader<'text> {
    source: Source<'text>,
    pub(crate) mistakes: Vec<Mistake>,
    pub(crate) places: Places,
}

/// An open table. A missing one has no entries.
#[derive(Clone)]
pub(crate) struct Fields<'doc> {
    path: String,
    table: &'static Table,
    entries: &'doc [Entry],
}

impl<'text> Reader<'text> {
    pub(crate) fn new(source: Source<'text>) -> Self {
        Self { source, mistakes: Vec::new(), places: Places::default() }
    }

    pub(crate) fn finish(self) -> (Source<'text>, Vec<Mistake>, Places) {
        (self.source, self.mistakes, self.places)
    }

    /// Note a mistake.
    pub(crate) fn complain(&mut self, place: Place, complaint: Complaint) {
        self.mistakes.push(self.source.mistake(Some(place), complaint));
    }

    /// The lines of a table, whatever their keys.
    pub(crate) fn entries<'doc>(&mut self, value: Option<&'doc Value>, path: &str) -> &'doc [Entry] {
        match value.map(|value| (value, &value.content)) {
            None | Some((_, Content::Empty)) => &[],
            Some((_, Content::Table(entries))) => entries,
            Some((value, content)) => {
                let what = if path.is_empty() { "a rack file".to_owned() } else { format!("`{path}`") };
                let message = format!("{what} is a table of keys and values, found {}", content.kind());
                self.complain(value.place, Complaint::new(message));
                &[]
            }
        }
    }

    /// The items of a list.
    pub(crate) fn items<'doc>(&mut self, value: Option<&'doc Value>, path: &str) -> &'doc [Value] {
        match value.map(|value| (value, &value.content)) {
            None | Some((_, Content::Empty)) => &[],
            Some((_, Content::List(items))) => items,
            Some((value, content)) => {
                let message = format!("`{path}` is a list, found {}", content.kind());
                self.complain(
                    value.place,
                    Complaint::new(message).hint("write it in brackets: [first, second]"),
                );
                &[]
            }
        }
    }

    /// Open a table and refuse keys that it does not have.
    pub(crate) fn open<'doc>(
        &mut self,
        value: Option<&'doc Value>,
        path: String,
        table: &'static Table,
    ) -> Fields<'doc> {
        let entries = self.entries(value, &path);
        for entry in entries {
            if table.find(&entry.key).is_none() {
                let message = format!("unknown key {} in {}", quoted(&entry.key), table.name);
                let hint = match nearest(&entry.key, table.names()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("keys here are {}", table.listed()),
                };
                self.complain(entry.key_place, Complaint::new(message).hint(hint));
            }
        }
        Fields { path, table, entries }
    }

    /// Open the table under `key`.
    pub(crate) fn open_under<'doc>(
        &mut self,
        fields: &Fields<'doc>,
        key: &'static str,
        table: &'static Table,
    ) -> Fields<'doc> {
        self.open(fields.find(key), fields.path_of(key), table)
    }

    /// Read the value under `key`, or leave what stands in for it.
    pub(crate) fn value<T>(
        &mut self,
        fields: &Fields<'_>,
        key: &'static str,
        otherwise: T,
        parse: impl Fn(&str) -> Result<T, Complaint>,
    ) -> T {
        let Some(value) = fields.find(key) else { return otherwise };
        let path = fields.path_of(key);
        self.places.note(path.clone(), value.place);
        match self
            .scalar(value, &path)
            .and_then(|text| parse(text).map_err(|complaint| prefixed(&path, complaint)))
        {
            Ok(read) => read,
            Err(complaint) => {
                self.places.note_broken(path);
                self.complain(value.place, complaint);
                otherwise
            }
        }
    }

    /// The one key of a table that is a choice; none has been complained about by the caller, several are here.
    pub(crate) fn chosen(
        &mut self,
        value: &Value,
        fields: &Fields<'_>,
        several: &str,
    ) -> Option<&'static str> {
        debug_assert_eq!(fields.table.choose, Choose::One, "{} is no choice", fields.table.name);
        let mut named =
            fields.table.names().filter(|name| fields.entries.iter().any(|entry| entry.key == *name));
        match (named.next(), named.next()) {
            (first, None) => first,
            (_, Some(_)) => {
                let hint = format!("name one of {}", fields.table.listed());
                self.complain(value.place, Complaint::new(several).hint(hint));
                None
            }
        }
    }

    /// Read `true` or `false`.
    pub(crate) fn flag<T: Copy + From<bool>>(
        &mut self,
        fields: &Fields<'_>,
        key: &'static str,
        otherwise: T,
    ) -> T {
        self.choice(fields, key, otherwise, &[("true", true.into()), ("false", false.into())])
    }

    /// Read one of a few words.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        fields: &Fields<'_>,
        key: &'static str,
        otherwise: T,
        words: &[(&str, T)],
    ) -> T {
        debug_assert!(
            fields.table.find(key).is_some_and(|key| declares(&key.kind, words)),
            "words of `{key}`"
        );
        self.value(fields, key, otherwise, |text| {
            words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning).ok_or_else(|| {
                let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                let hint = match nearest(text, all.iter().copied()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("write one of {}", all.join(", ")),
                };
                Complaint::new(format!("{} is not a choice", quoted(text))).hint(hint)
            })
        })
    }

    /// The text of a single value.
    pub(crate) fn scalar<'doc>(&self, value: &'doc Value, path: &str) -> Result<&'doc str, Complaint> {
        match &value.content {
            Content::Text(text) => Ok(text),
            content => Err(Complaint::new(format!("`{path}` is a single value, found {}", content.kind()))),
        }
    }
}

impl<'doc> Fields<'doc> {
    /// The value under `key`, if it is there.
    pub(crate) fn find(&self, key: &'static str) -> Option<&'doc Value> {
        debug_assert!(self.table.find(key).is_some(), "{key} is not declared in {}", self.table.name);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Whether the value under `key` is a table: the long form of what can also be said in one value.
    pub(crate) fn is_table(&self, key: &'static str) -> bool {
        self.find(key).is_some_and(|value| matches!(value.content, Content::Table(_)))
    }

    /// The declaration of the table.
    pub(crate) const fn table(&self) -> &'static Table {
        self.table
    }

    /// `timers.hold_down`.
    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// Whether a key is declared with exactly these words.
fn declares<T>(kind: &Kind, words: &[(&str, T)]) -> bool {
    match kind {
        Kind::Flag => words.iter().map(|(word, _)| *word).eq(["true", "false"]),
        Kind::Word(declared) => words.iter().map(|(word, _)| word).eq(declared.iter()),
        Kind::Either(forms) => forms.iter().any(|form| declares(form, words)),
        _ => false,
    }
}

/// Say which key the complaint is about.
pub(crate) fn prefixed(path: &str, complaint: Complaint) -> Complaint {
    Complaint { message: format!("`{path}`: {}", complaint.message), ..complaint }
}
