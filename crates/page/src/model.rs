//! Content of a page. It is data: no part of it holds markup.

use rackloom_drawing::chart::{Bars, Chart, Lanes, Panels};
use rackloom_drawing::graph::Graph;

/// Page of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Title, for the heading and the browser's tab.
    pub title: String,
    /// Line below the title. May be empty.
    pub subtitle: String,
    /// Verdict, if there is one.
    pub verdict: Option<Cell>,
    /// Sections, in the order of the table of contents.
    pub sections: Vec<Section>,
}

/// Part of a page with a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Content. A section without content is left out.
    pub blocks: Vec<Block>,
}

/// Part of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Paragraph.
    Text(String),
    /// List of lines.
    List(Vec<String>),
    /// Command line, with a button that copies it.
    Command(String),
    /// Text of a file, with a button that copies it.
    Listing(String),
    /// Names and values.
    Values(Vec<Value>),
    /// Table that a reader can sort and filter.
    Table(Table),
    /// Picture.
    Figure(Box<Figure>),
}

/// Picture of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// Points and lines over an axis.
    Chart(Chart),
    /// Charts below each other.
    Panels(Panels),
    /// Values as bars.
    Bars(Bars),
    /// Marks over time.
    TimeLine(Lanes),
    /// Members and links of a rack.
    Rack(Graph),
}

/// Name with its value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Value {
    /// Name.
    pub name: String,
    /// Value.
    pub value: Cell,
}

/// Table with a bounded number of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Name of the table, such as "Links".
    pub title: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: Vec<Row>,
    /// Text below the table, such as the number of rows that are left out. May be empty.
    pub note: String,
}

/// Column of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub title: String,
    /// True for numbers, which are aligned at the right.
    pub is_number: bool,
}

/// Row of a table: one cell per column.
pub type Row = Vec<Cell>;

/// Cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Text.
    pub text: String,
    /// Number by which rows are sorted, if the text is one.
    pub key: Option<f64>,
    /// Tone, shown by a sign and a colour.
    pub tone: Tone,
}

/// Tone of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// No statement.
    #[default]
    Plain,
    /// Right.
    Good,
    /// Unusual.
    Warning,
    /// Wrong.
    Bad,
}

impl Block {
    /// Returns a picture.
    #[must_use]
    pub fn figure(figure: Figure) -> Self {
        Self::Figure(Box::new(figure))
    }

    /// Returns true if there is nothing to show.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) | Self::Command(text) | Self::Listing(text) => text.is_empty(),
            Self::List(lines) => lines.is_empty(),
            Self::Values(values) => values.is_empty(),
            Self::Table(table) => table.rows.is_empty(),
            Self::Figure(_) => false,
        }
    }
}

impl Section {
    /// Returns a section with its heading.
    #[must_use]
    pub fn new(title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { title: title.into(), blocks }
    }
}

impl Value {
    /// Returns a name with its value.
    #[must_use]
    pub fn new(name: impl Into<String>, value: impl Into<Cell>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

impl Column {
    /// Returns a column of texts.
    #[must_use]
    pub fn text(title: impl Into<String>) -> Self {
        Self { title: title.into(), is_number: false }
    }

    /// Returns a column of numbers.
    #[must_use]
    pub fn number(title: impl Into<String>) -> Self {
        Self { title: title.into(), is_number: true }
    }
}

impl Table {
    /// Returns an empty table.
    #[must_use]
    pub fn new(title: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { title: title.into(), columns, ..Self::default() }
    }

    /// Keeps the first rows, and states their order and the number of all.
    #[must_use]
    pub fn bounded(mut self, rows_max: usize, order: &str) -> Self {
        let all = self.rows.len();
        if all > rows_max {
            self.rows.truncate(rows_max);
            let note = format!("{rows_max} of {all} rows: {order}. The JSON report has all of them.");
            self.note = if self.note.is_empty() { note } else { format!("{note} {}", self.note) };
        }
        self
    }

    /// Leaves out columns in which each row has no value: an empty text, or a dash.
    #[must_use]
    pub fn without_empty_columns(mut self) -> Self {
        let is_kept: Vec<bool> = (0..self.columns.len())
            .map(|column| self.rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.is_absent())))
            .collect();
        let mut at = 0;
        self.columns.retain(|_| {
            at += 1;
            is_kept[at - 1]
        });
        for row in &mut self.rows {
            let mut at = 0;
            row.retain(|_| {
                at += 1;
                is_kept.get(at - 1).copied().unwrap_or(false)
            });
        }
        self
    }
}

impl Cell {
    /// Returns a text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns a number with its text.
    #[must_use]
    pub fn number(text: impl Into<String>, key: f64) -> Self {
        Self { text: text.into(), key: Some(key), tone: Tone::Plain }
    }

    /// Returns the cell of a value that is not there.
    #[must_use]
    pub fn absent() -> Self {
        Self::text("-")
    }

    /// Returns the cell with a tone.
    #[must_use]
    pub fn with_tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    fn is_absent(&self) -> bool {
        self.text.is_empty() || self.text == "-"
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: usize) -> Table {
        let columns = vec![Column::text("name"), Column::number("count"), Column::text("never")];
        let row = |number: usize| {
            vec![number.to_string().into(), Cell::number(number.to_string(), number as f64), Cell::absent()]
        };
        Table { rows: (0..rows).map(row).collect(), ..Table::new("t", columns) }
    }

    #[test]
    fn rows_beyond_the_bound_are_counted() {
        let bounded = table(10).bounded(4, "the first");
        assert_eq!((bounded.rows.len(), bounded.rows[3][0].text.as_str()), (4, "3"));
        assert_eq!(bounded.note, "4 of 10 rows: the first. The JSON report has all of them.");
        assert_eq!(table(4).bounded(4, "the first").note, "");
    }

    #[test]
    fn a_column_without_values_is_left_out() {
        let table = table(3).without_empty_columns();
        assert_eq!(table.columns.len(), 2);
        assert!(table.rows.iter().all(|row| row.len() == 2 && row[1].key.is_some()));
    }
}
