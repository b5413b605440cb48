//! Aligned tables without lines, which can be pasted into a mail.
//!
//! A table that is wider than the terminal becomes records: a group of `title: value` lines for each row.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Row, Table as Grid, presets};
use rackloom_plan::printable;

use crate::terminal;

/// Column with its alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// Left-aligned, for names.
    Left(&'static str),
    /// Right-aligned, for numbers.
    Right(&'static str),
}

/// Rows below a heading.
pub(crate) struct Table {
    grid: Grid,
    alignments: Vec<CellAlignment>,
}

impl Table {
    pub(crate) fn new(columns: &[Column]) -> Self {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        let alignments: Vec<_> = columns
            .iter()
            .map(|column| match column {
                Column::Left(_) => CellAlignment::Left,
                Column::Right(_) => CellAlignment::Right,
            })
            .collect();
        let titles = columns.iter().zip(&alignments).map(|(column, alignment)| {
            let (Column::Left(title) | Column::Right(title)) = column;
            Cell::new(title).set_alignment(*alignment)
        });
        grid.set_header(titles);
        for (index, column) in grid.column_iter_mut().enumerate() {
            column.set_padding((if index == 0 { 0 } else { 2 }, 0));
        }
        Self { grid, alignments }
    }

    /// Adds a row. A cell is one line, also if its text has several.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().zip(&self.alignments);
        self.grid
            .add_row(cells.map(|(text, alignment)| Cell::new(printable(&text)).set_alignment(*alignment)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.grid.is_empty()
    }

    /// Returns the lines of the table, without trailing blanks, or its records if standard output is a terminal that is narrower.
    pub(crate) fn render(&self) -> String {
        self.render_within(terminal::output_columns().unwrap_or(usize::MAX))
    }

    fn render_within(&self, columns: usize) -> String {
        let lines = self.grid.trim_fmt();
        let fits = lines.lines().all(|line| terminal::width(line) <= columns);
        if fits { lines } else { terminal::wrap(&self.records(), columns) }
    }

    /// Returns a group of lines for each row. Empty cells have no line.
    fn records(&self) -> String {
        let texts = |row: &Row| row.cell_iter().map(Cell::content).collect::<Vec<_>>();
        let titles = self.grid.header().map(texts).unwrap_or_default();
        let record = |row: &Row| {
            let cells = titles.iter().zip(texts(row)).filter(|(_, text)| !text.is_empty());
            let lines =
                cells.map(|(title, text)| if title.is_empty() { text } else { format!("{title}: {text}") });
            lines.collect::<Vec<_>>().join("\n")
        };
        self.grid.row_iter().map(record).collect::<Vec<_>>().join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_right_aligned_and_names_left_aligned() {
        let mut table = Table::new(&[Column::Left("link"), Column::Right("frames")]);
        table.row(["n0->n1".into(), "7".into()]);
        table.row(["n10->n11".into(), "123".into()]);
        insta::assert_snapshot!(table.render(), @r"
        link      frames
        n0->n1         7
        n10->n11     123
        ");
    }

    #[test]
    fn a_table_that_is_wider_than_the_terminal_is_printed_as_records() {
        let mut table = Table::new(&[Column::Left("link"), Column::Right("frames"), Column::Left("")]);
        table.row(["n0->n1".into(), "7".into(), String::new()]);
        table.row(["n10->n11".into(), "123".into(), "slow, because a lane is lost".into()]);
        let width = table.render().lines().map(str::len).max().expect("a line");
        assert_eq!(table.render_within(width), table.render());
        insta::assert_snapshot!(table.render_within(20), @r"
        link: n0->n1
        frames: 7

        link: n10->n11
        frames: 123
        slow, because a lane
          is lost
        ");
        assert_ne!(table.render_within(width - 1), table.render());
    }
}
