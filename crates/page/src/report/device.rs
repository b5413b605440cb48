//! Use of the GPUs: a row for each part.

use rackloom_control::report::Report;

use crate::model::{Block, Cell, Column, Table};
use crate::text;

/// Returns the table of the parts, if the run had any.
pub(super) fn device(report: &Report) -> Vec<Block> {
    if report.device_use.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(
        "Parts of the GPUs",
        vec![
            Column::text("part"),
            Column::number("mean share"),
            Column::number("greatest share"),
            Column::text("busiest node"),
            Column::number("most at once"),
            Column::number("slots"),
        ],
    );
    for part in &report.device_use {
        let count = |count: Option<u64>| count.map_or_else(Cell::absent, text::count_cell);
        table.rows.push(vec![
            part.part.as_str().into(),
            text::share_cell(part.share_mean),
            text::share_cell(part.share_max),
            part.busiest.as_str().into(),
            count(part.most),
            count(part.slots),
        ]);
    }
    let meaning = "A share is the part of the whole run in which the slots of a part were occupied, or a part was busy.";
    vec![Block::Text(meaning.to_owned()), Block::Table(table.without_empty_columns())]
}
