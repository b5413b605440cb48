//! Aligned tables without lines, which can be pasted into a mail.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table as Grid, presets};

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

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().zip(&self.alignments);
        self.grid.add_row(cells.map(|(text, alignment)| Cell::new(text).set_alignment(*alignment)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.grid.is_empty()
    }

    /// Returns the lines of the table, without trailing blanks.
    pub(crate) fn render(&self) -> String {
        self.grid.trim_fmt()
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
}
