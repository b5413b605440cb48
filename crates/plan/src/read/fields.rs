//! Reads one table of a file key by key, and collects mistakes.
//!
//! A value that cannot be read is reported once and replaced by a default, which is marked as broken so that no
//! later check uses it. This file is independent of the meaning of keys.

use crate::read::document::{self, Content, Entry, Value};
use crate::read::mistake::{Complaint, Mistake, PlanError, Position, Source, nearest, quoted};
use crate::read::positions::Positions;
use crate::schema::{Choose, Key, Kind, RACK, Table};
use crate::setting::named_value::{NamedValue, read_named, value_named};
use crate::setting::quantity::shown;
use crate::setting::section::{self, Section};
use crate::setting::table::NumberRange;
use crate::setting::value::Value as KeyValue;

/// Common names for keys of rack files.
const SYNONYMS: [(&str, &str); 6] = [
    ("mtu", "frame_bytes_max"),
    ("bandwidth", "rate"),
    ("latency", "delay"),
    ("dtype", "type"),
    ("size", "bytes"),
    ("operation", "op"),
];

/// Text that was read, with what was found in it.
pub(crate) struct Findings<'text> {
    pub(crate) source: Source<'text>,
    pub(crate) mistakes: Vec<Mistake>,
    pub(crate) positions: Positions,
}

/// Reader that collects mistakes and positions.
pub(crate) struct Reader<'text> {
    source: Source<'text>,
    /// Kind of file, for messages.
    file: FileKind,
    pub(crate) mistakes: Vec<Mistake>,
    pub(crate) positions: Positions,
}

/// Kind of file: its name in messages, and how one begins.
#[derive(Clone, Copy)]
pub(crate) struct FileKind {
    pub(crate) name: &'static str,
    pub(crate) example: &'static str,
}

/// Rack files.
pub(crate) const RACK_FILE: FileKind =
    FileKind { name: "a rack file", example: "`name: ring-4` and `shape: {ring: {nodes: 4}}`" };

/// Open table. A missing table has no entries.
#[derive(Clone)]
pub(crate) struct Fields<'doc> {
    path: String,
    table: &'static Table,
    entries: &'doc [Entry],
}

impl<'text> Reader<'text> {
    /// Returns the reader of a file of this kind, with its tree. Repeated keys are reported.
    pub(crate) fn begin(
        text: &'text str,
        origin: &'text str,
        file: FileKind,
    ) -> Result<(Self, Value), PlanError> {
        let source = Source::new(origin, text);
        let document = match document::parse(text) {
            Ok(document) => document,
            Err((position, complaint)) => {
                let mistake = source.mistake(position, complaint);
                return Err(source.error(vec![mistake]));
            }
        };
        let mut reader = Self { source, file, mistakes: Vec::new(), positions: Positions::default() };
        document
            .repetitions
            .into_iter()
            .for_each(|(position, complaint)| reader.complain(position, complaint));
        Ok((reader, document.value))
    }

    pub(crate) fn finish(self) -> Findings<'text> {
        let Self { source, mistakes, positions, .. } = self;
        Findings { source, mistakes, positions }
    }

    /// Records a mistake.
    pub(crate) fn complain(&mut self, position: Position, complaint: Complaint) {
        self.mistakes.push(self.source.mistake(Some(position), complaint));
    }

    /// Returns the entries of a table with any keys.
    pub(crate) fn entries<'doc>(&mut self, value: Option<&'doc Value>, path: &str) -> &'doc [Entry] {
        match value.map(|value| (value, &value.content)) {
            None | Some((_, Content::Empty)) => &[],
            Some((_, Content::Table(entries))) => entries,
            Some((value, content)) => {
                let what = if path.is_empty() { self.file.name.to_owned() } else { format!("`{path}`") };
                let message = format!("{what} is a table of keys and values, found {}", content.kind());
                let hint = match path.is_empty() {
                    true => format!("write lines like {}", self.file.example),
                    false => "write it in braces, `{key: value}`, or as indented lines".to_owned(),
                };
                self.complain(value.position, Complaint::about(message).hint(hint));
                &[]
            }
        }
    }

    /// Returns the items of a list.
    pub(crate) fn items<'doc>(&mut self, value: Option<&'doc Value>, path: &str) -> &'doc [Value] {
        match value.map(|value| (value, &value.content)) {
            None | Some((_, Content::Empty)) => &[],
            Some((_, Content::List(items))) => items,
            Some((value, content)) => {
                let message = format!("`{path}` is a list, found {}", content.kind());
                self.complain(
                    value.position,
                    Complaint::about(message).hint("write it in brackets: [first, second]"),
                );
                &[]
            }
        }
    }

    /// Opens a table and refuses undeclared keys.
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
                self.complain(entry.key_position, Complaint::about(message).hint(meant(table, &entry.key)));
            }
        }
        Fields { path, table, entries }
    }

    /// Opens the table under `key`.
    pub(crate) fn open_under<'doc>(
        &mut self,
        fields: &Fields<'doc>,
        key: &'static str,
        table: &'static Table,
    ) -> Fields<'doc> {
        self.open(fields.find(key), fields.path_of(key), table)
    }

    /// Reads the value under `key`, or returns its default.
    pub(crate) fn value<T>(
        &mut self,
        fields: &Fields<'_>,
        key: &'static str,
        otherwise: T,
        parse: impl Fn(&str) -> Result<T, Complaint>,
    ) -> T {
        let Some(value) = fields.find(key) else { return otherwise };
        let path = fields.path_of(key);
        self.positions.note(path.clone(), value.position);
        match self.scalar(value, &path).and_then(|text| {
            parse(text).map_err(|complaint| with_range(fields.table, key, complaint).at(&path))
        }) {
            Ok(read) => read,
            Err(complaint) => {
                self.positions.note_broken(path);
                self.complain(value.position, complaint);
                otherwise
            }
        }
    }

    /// Returns the only key of a table that is a choice. Reports several keys. The caller reports a missing key.
    pub(crate) fn chosen(
        &mut self,
        value: &Value,
        fields: &Fields<'_>,
        several: &str,
    ) -> Option<&'static str> {
        debug_assert_eq!(fields.table.choose, Choose::One, "{} is no choice", fields.table.name);
        // A repeated table is another mistake than several keys in one table.
        let mut named = fields.named(|entry| !entry.is_of_repetition);
        match (named.next(), named.next()) {
            (first, None) => first,
            (_, Some(_)) => {
                let hint = format!("name one of {}", fields.table.listed());
                self.complain(value.position, Complaint::about(several).hint(hint));
                None
            }
        }
    }

    /// Reads one of several names.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        fields: &Fields<'_>,
        key: &'static str,
        otherwise: T,
        names: &[(&str, T)],
    ) -> T {
        debug_assert!(
            fields.table.find(key).is_some_and(|key| declares(&key.kind, names)),
            "names of `{key}`"
        );
        self.value(fields, key, otherwise, |text| value_named(text, names))
    }

    /// Reads one of the names of a type.
    pub(crate) fn named<T: NamedValue>(&mut self, fields: &Fields<'_>, key: &'static str, otherwise: T) -> T {
        self.value(fields, key, otherwise, read_named)
    }

    /// Reads the keys of a section over `base`. Composite values keep those of `base`.
    pub(crate) fn section<T: Section>(&mut self, fields: &Fields<'_>, mut base: T) -> T {
        base.read_over(&mut Opened { reader: self, fields });
        base
    }

    /// Reads the value of the key with this name, or returns `otherwise`. A number outside of the range of the key is a mistake.
    pub(crate) fn declared<T: KeyValue>(
        &mut self,
        fields: &Fields<'_>,
        key: &'static str,
        otherwise: T,
    ) -> T {
        let declaration = fields.table.find(key);
        let declaration =
            declaration.unwrap_or_else(|| unreachable!("{key} is not declared in {}", fields.table.name));
        self.key(fields, declaration, otherwise)
    }

    /// Reads the value of a declared key, or returns `otherwise`. A number outside of the range of the key is a mistake.
    pub(crate) fn key<T: KeyValue>(&mut self, fields: &Fields<'_>, key: &'static Key, otherwise: T) -> T {
        let Some(value) = fields.find(key.name) else { return otherwise };
        let path = fields.path_of(key.name);
        self.positions.note(path.clone(), value.position);
        let read = self.scalar(value, &path).and_then(|text| {
            let read: T = T::read(text, &key.kind)
                .map_err(|complaint| with_range(fields.table, key.name, complaint).at(&path))?;
            let beyond = read.number().and_then(|number| key.beyond_range(&path, number));
            beyond.map_or(Ok(read), Err)
        });
        read.unwrap_or_else(|complaint| {
            self.positions.note_broken(path);
            self.complain(value.position, complaint);
            otherwise
        })
    }

    /// Returns the text of a single value.
    pub(crate) fn scalar<'doc>(&self, value: &'doc Value, path: &str) -> Result<&'doc str, Complaint> {
        match &value.content {
            Content::Text(text) => Ok(text),
            content => {
                let complaint =
                    Complaint::about(format!("`{path}` is a single value, found {}", content.kind()));
                Err(complaint.hint("write one word, name or number"))
            }
        }
    }
}

impl<'doc> Fields<'doc> {
    /// Returns the value under `key`, if present.
    pub(crate) fn find(&self, key: &'static str) -> Option<&'doc Value> {
        debug_assert!(self.table.find(key).is_some(), "{key} is not declared in {}", self.table.name);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Returns true if the value under `key` is a table: the long form of a single value.
    pub(crate) fn is_table(&self, key: &'static str) -> bool {
        self.find(key).is_some_and(|value| matches!(value.content, Content::Table(_)))
    }

    /// Returns the declared keys of those entries for which `is_meant` holds.
    pub(crate) fn named(&self, is_meant: impl Fn(&Entry) -> bool) -> impl Iterator<Item = &'static str> {
        let stands = move |name: &str| self.entries.iter().any(|entry| entry.key == name && is_meant(entry));
        self.table.names().filter(move |name| stands(name))
    }

    /// Returns the declaration of the table.
    pub(crate) const fn table(&self) -> &'static Table {
        self.table
    }

    /// Returns the path of a key, for example `timers.hold_down`.
    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// Open table as the source of a section.
struct Opened<'r, 'text, 'doc> {
    reader: &'r mut Reader<'text>,
    fields: &'r Fields<'doc>,
}

impl section::Source for Opened<'_, '_, '_> {
    fn value<T: KeyValue>(&mut self, key: &'static Key, otherwise: T) -> T {
        self.reader.key(self.fields, key, otherwise)
    }
}

/// Returns a hint for an undeclared key.
fn meant(table: &Table, key: &str) -> String {
    let synonym = SYNONYMS.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, ours)| *ours);
    if let Some(ours) = synonym.filter(|ours| table.find(ours).is_some()) {
        return format!("write `{ours}`");
    }
    if let Some(meant) = nearest(key, table.names()) {
        return format!("did you mean `{meant}`?");
    }
    if let Some(ours) = synonym.filter(|ours| RACK.find(ours).is_some()) {
        return format!("write `{ours}`, at the top of the file");
    }
    format!("keys here are {}", table.listed())
}

/// Adds the declared range of the key to a complaint about a number that is too large for its type.
pub(crate) fn with_range(table: &Table, key: &str, complaint: Complaint) -> Complaint {
    let Some(NumberRange { least, most, unit }) =
        table.range_if_any(key).filter(|_| complaint.is_beyond_type())
    else {
        return complaint;
    };
    complaint.outside(shown(least, unit), shown(most, unit))
}

/// Returns true if a key is declared with exactly these names.
fn declares<T>(kind: &Kind, names: &[(&str, T)]) -> bool {
    match kind {
        Kind::Flag => names.iter().map(|(name, _)| *name).eq(["true", "false"]),
        Kind::Choice(declared) => names.iter().map(|(name, _)| name).eq(declared.iter()),
        Kind::Either(forms) => forms.iter().any(|form| declares(form, names)),
        _ => false,
    }
}
