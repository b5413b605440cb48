//! Text of comma-separated values (RFC 4180) as a table.

/// Rows below a heading. All rows have as many cells as the heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) titles: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Reads a table.
///
/// # Errors
/// The text is empty, a quote has no end, or a row has another number of cells than the heading.
pub(crate) fn read(text: &str) -> Result<Table, String> {
    let mut rows = rows(text)?.into_iter();
    let titles = rows.next().ok_or("the file is empty")?;
    let rows: Vec<_> = rows.collect();
    match rows.iter().position(|row| row.len() != titles.len()) {
        Some(at) => {
            Err(format!("record {} has {} cells in place of {}", at + 2, rows[at].len(), titles.len()))
        }
        None => Ok(Table { titles, rows }),
    }
}

fn rows(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut rows = Vec::new();
    let (mut row, mut cell) = (Vec::new(), String::new());
    let mut is_quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                cell.push('"');
                characters.next();
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            '\r' if !is_quoted => {}
            other => cell.push(other),
        }
    }
    if is_quoted {
        return Err("a quote has no end".to_owned());
    }
    if !cell.is_empty() || !row.is_empty() {
        row.push(cell);
        rows.push(row);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_cells_keep_their_commas_and_quotes() {
        let table = read("a,b\n1,\"x, \"\"y\"\"\nz\"\n2,\n").unwrap();
        assert_eq!(table.titles, ["a", "b"]);
        assert_eq!(table.rows, [["1", "x, \"y\"\nz"], ["2", ""]]);
    }

    #[test]
    fn damaged_texts_are_refused() {
        for (text, part) in [("", "empty"), ("a,b\n1\n", "record 2 has 1 cells"), ("a\n\"1\n", "no end")] {
            assert!(read(text).unwrap_err().contains(part), "{text:?}");
        }
    }
}
