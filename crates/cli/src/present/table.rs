//! Tables that line up, without lines around them: they survive a copy into a mail.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table as Grid, presets};

/// How a column is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// Names and words.
    Left(&'static str),
    /// Numbers.
    Right(&'static str),
}

/// Rows under a heading.
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
        for (place, column) in grid.column_iter_mut().enumerate() {
            column.set_padding((if place == 0 { 0 } else { 2 }, 0));
        }
        Self { grid, alignments }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().zip(&self.alignments);
        self.grid.add_row(cells.map(|(text, alignment)| Cell::new(text).set_alignment(*alignment)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.grid.is_empty()
    }

    /// The lines of the table, without blanks at their ends.
    pub(crate) fn render(&self) -> String {
        self.grid.trim_fmt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_and_words_begin_at_one_column() {
        let mut table = Table::new(&[Column::Left("link"), Column::Right("frames")]);
        table.row(["n0->n1".into(), "7".into()]);
        table.row(["n10->n11".into(), "123".into()]);
        insta::assert_snapshot!(table.render(), @r"
        link      frames
        n0->n1         7
        n10->n11     123
        ");
    }
}
