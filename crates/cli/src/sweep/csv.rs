//! Rows as comma-separated values (RFC 4180), in the order of the points.

use super::rows::Row;

/// Column, and the function that makes its cell.
type Column = (&'static str, fn(&Row) -> String);

/// Columns behind those of the axes.
const COLUMNS: [Column; 20] = [
    ("verdict", |row| row.verdict.clone()),
    ("exit", |row| whole(row.exit)),
    ("run_seed", |row| whole(row.seed)),
    ("what", |row| row.what.clone()),
    ("pair", |row| row.pair.clone()),
    ("run_algorithm", |row| row.algorithm.clone()),
    ("size_bytes", |row| whole(row.size_bytes)),
    ("time_ns", |row| number(row.time_ns)),
    ("time_min_ns", |row| number(row.time_min_ns)),
    ("time_p50_ns", |row| number(row.time_p50_ns)),
    ("time_p99_ns", |row| number(row.time_p99_ns)),
    ("algbw_GBps", |row| number(row.algorithm_gbps)),
    ("busbw_GBps", |row| number(row.bus_gbps)),
    ("of_link", |row| number(row.of_link)),
    ("wrong", |row| whole(row.wrong)),
    ("elapsed_ns", |row| whole(row.elapsed_ns)),
    ("retransmitted", |row| whole(row.retransmitted)),
    ("dropped", |row| whole(row.dropped)),
    ("bytes_on_wire", |row| whole(row.bytes_on_wire)),
    ("reason", |row| row.reason.clone()),
];

/// Returns the text of a file with these rows. `keys` are the names of the axes.
pub(super) fn text(keys: &[String], rows: &[Row]) -> String {
    let mut text = String::new();
    let axes = keys.iter().map(String::as_str);
    let titles = std::iter::once("point").chain(axes).chain(COLUMNS.iter().map(|(title, _)| *title));
    line(&mut text, titles.map(str::to_owned));
    for row in rows {
        let axes = row.coordinates.iter().map(|coordinate| coordinate.value.clone());
        let cells = COLUMNS.iter().map(|(_, cell)| cell(row));
        line(&mut text, std::iter::once(row.index.to_string()).chain(axes).chain(cells));
    }
    text
}

fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.map(|cell| quoted(&cell)).collect();
    *text += &cells.join(",");
    text.push('\n');
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

fn whole<T: ToString>(number: Option<T>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// Formats a number with six decimal places at most.
fn number(number: Option<f64>) -> String {
    const DECIMALS: f64 = 1e6;
    number.map(|number| ((number * DECIMALS).round() / DECIMALS).to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::grid::Coordinate;

    #[test]
    fn cells_with_commas_and_quotes_are_quoted() {
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"no\""), "\"say \"\"no\"\"\"");
        assert_eq!(quoted("plain"), "plain");
    }

    #[test]
    fn a_row_has_its_axes_first() {
        let coordinate = Coordinate { key: "link.loss".to_owned(), value: "1e-6".to_owned() };
        let row = Row {
            index: 3,
            coordinates: vec![coordinate],
            verdict: "pass".to_owned(),
            time_ns: Some(11_750.55),
            ..Row::default()
        };
        let text = text(&["link.loss".to_owned()], &[row]);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("point,link.loss,verdict,exit,"), "{}", lines[0]);
        assert!(lines[1].starts_with("3,1e-6,pass,,,,,,,11750.55,"), "{}", lines[1]);
        assert_eq!(lines[0].split(',').count(), lines[1].split(',').count());
    }
}
