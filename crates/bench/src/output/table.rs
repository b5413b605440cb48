//! Tables that line up, without lines around them.

/// Alignment and title of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// Names.
    Left(&'static str),
    /// Numbers.
    Right(&'static str),
}

/// Rows below a heading.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[Column]) -> Self {
        let title = |column: &Column| match column {
            Column::Left(title) | Column::Right(title) => (*title).to_owned(),
        };
        Self { columns: columns.to_vec(), rows: vec![columns.iter().map(title).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns the lines of the table, without blanks at their ends.
    pub(crate) fn render(&self) -> String {
        let width = |index: usize| {
            let lengths = self.rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.chars().count());
            lengths.max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.columns.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells =
                row.iter().zip(&widths).zip(&self.columns).map(|((cell, width), column)| match column {
                    Column::Left(_) => format!("{cell:<width$}"),
                    Column::Right(_) => format!("{cell:>width$}"),
                });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_and_names_begin_at_one_column() {
        let mut table = Table::new(&[Column::Left("row"), Column::Right("ratio")]);
        table.row(["a".into(), "0.5".into()]);
        table.row(["longer".into(), "10.25".into()]);
        assert_eq!(table.render(), "row     ratio\na         0.5\nlonger  10.25");
    }
}
