//! Results of a sweep, from the results of its points: `results.csv`, `summary.txt` and `plot.svg`.

use super::folder::Folder;
use super::grid::Point;
use super::rows::{self, Row};
use super::workers::Died;
use super::{csv, page, plot, summary};
use crate::arguments::{Output, PageOutput};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reporting::{print_text, write_page};

/// Maximum number of lines of the summary that are printed.
const LINES_MAX: usize = 60;

/// Writes the results and prints the summary. Returns `Pass` if every run passed.
pub(super) fn results(
    folder: &Folder,
    points: &[Point],
    died: &Died,
    output: &PageOutput,
) -> Result<Exit, Failure> {
    let rows: Vec<Row> =
        points.iter().flat_map(|point| rows::of_point(point, folder.result(point).as_ref(), died)).collect();
    let keys: Vec<String> = points.first().map(keys).unwrap_or_default();
    let summary = summary::text(&keys, points.len() as u64, &rows);
    folder.write("results.csv", &csv::text(&keys, &rows))?;
    folder.write("summary.txt", &format!("{summary}\n"))?;
    folder.write("plot.svg", &plot::figure(&rows).svg())?;
    write_page(output, || page::page(&keys, points.len() as u64, &rows))?;
    print(&shortened(&summary))?;
    let path = folder.path().display();
    print(&format!("\nresults.csv, summary.txt and plot.svg are in {path}"))?;
    Ok(if rows.iter().all(Row::is_pass) { Exit::Pass } else { Exit::Fail })
}

fn keys(point: &Point) -> Vec<String> {
    point.coordinates.iter().map(|coordinate| coordinate.key.clone()).collect()
}

fn shortened(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    let more = lines.len().saturating_sub(LINES_MAX);
    let shown = lines[..lines.len() - more].join("\n");
    if more == 0 { shown } else { format!("{shown}\n... and {more} lines more in summary.txt") }
}

/// Prints a text on standard output.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    print_text(&Output { json: None }, text)
}
