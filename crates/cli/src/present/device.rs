//! Use of the GPUs, a row per part.

use rackloom_jobs::report::DevicePart;

use super::percent::percent;
use super::table::{Column, Table};

/// Formats the use of the GPUs; empty if no part is limited and nothing was computed.
pub(super) fn device_use(parts: &[DevicePart]) -> String {
    if parts.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        Column::Left("use of the GPUs"),
        Column::Right("mean share of the time"),
        Column::Right("greatest"),
        Column::Left("busiest node"),
        Column::Right("most at once"),
    ]);
    for part in parts {
        let most = part.most.zip(part.slots).map(|(most, slots)| format!("{most} of {slots}"));
        table.row([
            part.part.clone(),
            percent(part.share_mean),
            percent(part.share_max),
            part.busiest.clone(),
            most.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_shares_and_those_with_slots_the_most_at_once() {
        let units = DevicePart {
            part: "load/store units".to_owned(),
            share_mean: 0.25,
            share_max: 0.5,
            busiest: "n3".to_owned(),
            most: Some(7),
            slots: Some(8),
        };
        let memory = DevicePart { part: "own memory".to_owned(), most: None, slots: None, ..units.clone() };
        let text = device_use(&[units, memory]);
        let rows: Vec<_> = text.lines().collect();
        assert!(
            rows[1].contains("25.0 %") && rows[1].contains("50.0 %") && rows[1].ends_with("7 of 8"),
            "{text}"
        );
        assert!(rows[2].starts_with("own memory") && rows[2].ends_with(" -"), "{text}");
        assert_eq!(device_use(&[]), "");
    }
}
