//! One table of the file, read key by key; what goes wrong is noted, and reading goes on.
//!
//! A value that cannot be read is complained about once, and a stand-in takes its place, marked as broken so that no
//! later check judges it. Nothing here knows what the keys mean.

use crate::document::{self, Content, Entry, Value};
use crate::mistake::{Complaint, Mistake, Place, PlanError, Source, nearest, quoted};
use crate::places::Places;
use crate::quantity::shown;
use crate::schema::{Choose, Kind, RACK, Table};

/// What others call our keys.
const SYNONYMS: [(&str, &str); 6] = [
    ("mtu", "frame_bytes_max"),
    ("bandwidth", "rate"),
    ("latency", "delay"),
    ("dtype", "type"),
    ("size", "bytes"),
    ("operation", "op"),
];

/// The reader: where mistakes and places are collected.
pub(crate) struct Reader<'text> {
    source: Source<'text>,
    /// What kind of file this is, for messages.
    file: FileKind,
    pub(crate) mistakes: Vec<Mistake>,
    pub(crate) places: Places,
}

/// What a file as a whole is called, and how one begins.
#[derive(Clone, Copy)]
pub(crate) struct FileKind {
    pub(crate) name: &'static str,
    pub(crate) example: &'static str,
}

/// Rack files.
pub(super) const RACK_FILE: FileKind =
    FileKind { name: "a rack file", example: "`name: ring-4` and `shape: {ring: {nodes: 4}}`" };

/// An open table. A missing one has no entries.
#[derive(Clone)]
pub(crate) struct Fields<'doc> {
    path: String,
    table: &'static Table,
    entries: &'doc [Entry],
}

impl<'text> Reader<'text> {
    /// A file of this kind: who reads it on, and its tree. Keys that stand twice have been complained about.
    pub(crate) fn begin(
        text: &'text str,
        origin: &'text str,
        file: FileKind,
    ) -> Result<(Self, Value), PlanError> {
        let source = Source::new(origin, text);
        let document = match document::parse(text) {
            Ok(document) => document,
            Err((place, complaint)) => {
                let mistake = source.mistake(place, complaint);
                return Err(source.error(vec![mistake]));
            }
        };
        let mut reader = Self { source, file, mistakes: Vec::new(), places: Places::default() };
        document.repetitions.into_iter().for_each(|(place, complaint)| reader.complain(place, complaint));
        Ok((reader, document.value))
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
                let what = if path.is_empty() { self.file.name.to_owned() } else { format!("`{path}`") };
                let message = format!("{what} is a table of keys and values, found {}", content.kind());
                let hint = match path.is_empty() {
                    true => format!("write lines like {}", self.file.example),
                    false => "write it in braces, `{key: value}`, or as indented lines".to_owned(),
                };
                self.complain(value.place, Complaint::about(message).hint(hint));
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
                    Complaint::about(message).hint("write it in brackets: [first, second]"),
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
                self.complain(entry.key_place, Complaint::about(message).hint(meant(table, &entry.key)));
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
        match self.scalar(value, &path).and_then(|text| {
            parse(text).map_err(|complaint| prefixed(&path, with_range(fields.table, key, complaint)))
        }) {
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
        // Which of two tables of one key counts is another question than which key of a table.
        let mut named = fields.named(|entry| !entry.is_of_repetition);
        match (named.next(), named.next()) {
            (first, None) => first,
            (_, Some(_)) => {
                let hint = format!("name one of {}", fields.table.listed());
                self.complain(value.place, Complaint::about(several).hint(hint));
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
        self.value(fields, key, otherwise, |text| word_of(text, words))
    }

    /// The text of a single value.
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
    /// The value under `key`, if it is there.
    pub(crate) fn find(&self, key: &'static str) -> Option<&'doc Value> {
        debug_assert!(self.table.find(key).is_some(), "{key} is not declared in {}", self.table.name);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Whether the value under `key` is a table: the long form of what can also be said in one value.
    pub(crate) fn is_table(&self, key: &'static str) -> bool {
        self.find(key).is_some_and(|value| matches!(value.content, Content::Table(_)))
    }

    /// The keys of the declaration that stand here in such entries.
    pub(crate) fn named(&self, is_meant: impl Fn(&Entry) -> bool) -> impl Iterator<Item = &'static str> {
        let stands = move |name: &str| self.entries.iter().any(|entry| entry.key == name && is_meant(entry));
        self.table.names().filter(move |name| stands(name))
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

/// The meaning of one of a few words.
pub(crate) fn word_of<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, Complaint> {
    words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning).ok_or_else(|| {
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let hint = match nearest(text, all.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("write one of {}", all.join(", ")),
        };
        Complaint::about(format!("{} is not a choice", quoted(text))).hint(hint)
    })
}

/// What was probably meant by a key that the table does not have.
fn meant(table: &Table, key: &str) -> String {
    let synonym = SYNONYMS.iter().find(|(word, _)| word.eq_ignore_ascii_case(key)).map(|(_, ours)| *ours);
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

/// A number, if it lies in the range that its key declares.
pub(crate) fn in_range(table: &Table, key: &str, number: u64) -> Result<u64, Complaint> {
    let (least, most, unit) = table.range_of(key);
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    let (least, most) = (shown(least, unit), shown(most, unit));
    let message = format!("{} is outside {least} to {most}", shown(number, unit));
    Err(Complaint::about(message).hint(format!("write {least} to {most}")))
}

/// A complaint about a number that its type cannot hold, with the range that its key declares.
pub(crate) fn with_range(table: &Table, key: &str, complaint: Complaint) -> Complaint {
    let Some((least, most, unit)) = table.range_if_any(key).filter(|_| complaint.is_beyond_type) else {
        return complaint;
    };
    let (least, most) = (shown(least, unit), shown(most, unit));
    let message = format!("{}, outside {least} to {most}", complaint.message);
    complaint.reworded(message).with_hint(format!("write {least} to {most}"))
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
    let message = format!("`{path}`: {}", complaint.message);
    complaint.reworded(message)
}
