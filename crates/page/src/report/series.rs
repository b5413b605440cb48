//! Charts over time: use of the busiest links, drops, repeated frames, waits for credits, queues and latencies.

use std::collections::BTreeMap;

use rackloom_control::report::{LinkSeries, NodeSeries, Report, Series as Recorded};
use rackloom_drawing::chart::{Across, Axis, Chart, Series};

use super::load::rate_of;
use crate::model::{Block, Figure};
use crate::text;

/// Lines of a chart at most, and points of a line.
const LINES_MAX: usize = 6;
const POINTS_MAX: usize = 240;

/// Line of a chart: a value per interval, `None` where there is none.
struct Line {
    name: String,
    values: Vec<Option<f64>>,
}

/// Returns the charts over time. Empty if the run recorded no series.
pub(super) fn series(report: &Report) -> Vec<Block> {
    let Some(recorded) = report.series.as_ref().filter(|series| series.intervals > 0) else {
        return Vec::new();
    };
    let stated = format!(
        "{} intervals of {}. A point stands for one interval, or for the greatest value of several.",
        recorded.intervals,
        text::time(recorded.interval_ns as f64)
    );
    let mut blocks = vec![Block::Text(stated)];
    let charts = [use_of_links(report, recorded), drops(recorded), repeated(recorded), credits(recorded)];
    blocks.extend(charts.into_iter().flatten());
    blocks.extend([queues(recorded), operations(recorded), latencies(recorded)].into_iter().flatten());
    blocks
}

fn chart(recorded: &Recorded, title: &str, note: String, y: &str, lines: Vec<Line>) -> Option<Block> {
    let series: Vec<Series> = lines
        .into_iter()
        .map(|line| Series { name: line.name, line: points(recorded, &line.values), points: Vec::new() })
        .filter(|series| !series.line.is_empty())
        .collect();
    (!series.is_empty()).then(|| {
        Block::figure(Figure::Chart(Chart {
            title: title.to_owned(),
            note,
            x: Across::Values(Axis::linear("time (ns)")),
            y: Axis::from_zero(y),
            series,
            meanings: Vec::new(),
        }))
    })
}

/// Returns points in the middle of intervals. Of too many, each point is the greatest value of neighbours.
fn points(recorded: &Recorded, values: &[Option<f64>]) -> Vec<(f64, f64)> {
    let group = values.len().div_ceil(POINTS_MAX).max(1);
    let point = |(index, values): (usize, &[Option<f64>])| {
        let greatest = values.iter().flatten().copied().reduce(f64::max)?;
        let middle = (index * group) as f64 + values.len() as f64 / 2.0;
        Some((recorded.from_ns as f64 + middle * recorded.interval_ns as f64, greatest))
    };
    values.chunks(group).enumerate().filter_map(point).collect()
}

fn sum(values: &[u64]) -> u64 {
    values.iter().fold(0, |sum, value| sum.saturating_add(*value))
}

/// Returns the links with the greatest sums, and the number of those that have any.
fn busiest(links: &[LinkSeries], of: impl Fn(&LinkSeries) -> u64) -> (Vec<&LinkSeries>, usize) {
    let mut sums: Vec<(u64, &LinkSeries)> = links.iter().map(|link| (of(link), link)).collect();
    sums.retain(|(sum, _)| *sum > 0);
    sums.sort_by_key(|(sum, _)| std::cmp::Reverse(*sum));
    let count = sums.len();
    (sums.into_iter().take(LINES_MAX).map(|(_, link)| link).collect(), count)
}

fn of_all(shown: usize, all: usize, what: &str) -> String {
    if all > shown { format!("The {shown} {what} of {all}.") } else { String::new() }
}

/// Draws the use of the busiest links: shares of the rate, or rates if a link has no rate.
fn use_of_links(report: &Report, recorded: &Recorded) -> Option<Block> {
    let load = |link: &LinkSeries| {
        (0..link.bytes.len()).fold(0u64, |sum, index| sum.saturating_add(link.load_bytes(index)))
    };
    let (links, all) = busiest(&recorded.links, load);
    let by_name: BTreeMap<&str, usize> =
        report.links.iter().enumerate().map(|(index, link)| (link.name.as_str(), index)).collect();
    let rate = |link: &LinkSeries| rate_of(report, *by_name.get(link.name.as_str())?);
    let rates: Option<Vec<u64>> = links.iter().map(|link| rate(link)).collect();
    let seconds = recorded.interval_ns as f64 / 1e9;
    let lines = links.iter().enumerate().map(|(number, link)| {
        let possible = rates.as_ref().map(|rates| rates[number] as f64 / 8.0 * seconds);
        let values = (0..link.bytes.len()).map(|index| {
            let bytes = link.load_bytes(index) as f64;
            let value = possible.map_or(bytes / seconds, |possible| bytes / possible * 100.0);
            Some(value).filter(|value| value.is_finite())
        });
        Line { name: link.name.clone(), values: values.collect() }
    });
    let y = if rates.is_some() { "share of the rate (%)" } else { "rate with preambles and gaps (B/s)" };
    let lines: Vec<Line> = lines.collect();
    let note = of_all(lines.len(), all, "busiest directions");
    chart(recorded, "Use of the busiest links", note, y, lines)
}

/// Draws dropped frames of all links by reason.
fn drops(recorded: &Recorded) -> Option<Block> {
    let mut by_reason: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (reason, counts) in recorded.links.iter().flat_map(|link| &link.dropped) {
        add(by_reason.entry(reason).or_default(), counts);
    }
    let mut reasons: Vec<(&str, Vec<u64>)> =
        by_reason.into_iter().filter(|(_, counts)| sum(counts) > 0).collect();
    reasons.sort_by_key(|(_, counts)| std::cmp::Reverse(sum(counts)));
    let all = reasons.len();
    reasons.truncate(LINES_MAX);
    let note = of_all(reasons.len(), all, "most frequent reasons");
    let lines = reasons.iter().map(|(reason, counts)| line(reason, counts)).collect();
    chart(recorded, "Dropped frames by reason", note, "frames per interval", lines)
}

/// Draws frames that were sent again, by links and by ends.
fn repeated(recorded: &Recorded) -> Option<Block> {
    let total = |of: fn(&LinkSeries) -> &Vec<u64>| {
        let mut total = Vec::new();
        recorded.links.iter().for_each(|link| add(&mut total, of(link)));
        total
    };
    let kinds = [
        ("replayed by link-level retry", total(|link| &link.replayed)),
        ("retransmitted by the sending end", total(|link| &link.retransmitted)),
    ];
    let lines = kinds.iter().filter(|(_, counts)| sum(counts) > 0).map(|(name, counts)| line(name, counts));
    chart(recorded, "Repeated frames of all links", String::new(), "frames per interval", lines.collect())
}

fn credits(recorded: &Recorded) -> Option<Block> {
    let (links, all) = busiest(&recorded.links, |link| sum(&link.credit_waits));
    let lines: Vec<Line> = links.iter().map(|link| line(&link.name, &link.credit_waits)).collect();
    let note = of_all(lines.len(), all, "directions with the most waits");
    chart(recorded, "Waits for credits", note, "waits per interval", lines)
}

fn queues(recorded: &Recorded) -> Option<Block> {
    let (links, all) = busiest(&recorded.links, |link| link.queued.iter().copied().max().unwrap_or(0));
    let lines: Vec<Line> = links.iter().map(|link| line(&link.name, &link.queued)).collect();
    let note = of_all(lines.len(), all, "directions with the longest queues");
    chart(recorded, "Frames in queues", note, "frames at the end of the interval", lines)
}

fn operations(recorded: &Recorded) -> Option<Block> {
    let mut total = Vec::new();
    recorded.nodes.iter().for_each(|node| add(&mut total, &node.operations));
    let lines = vec![line("operations of all nodes", &total)];
    let lines = if sum(&total) > 0 { lines } else { Vec::new() };
    chart(recorded, "Operations that ended", String::new(), "operations per interval", lines)
}

/// Draws latencies of all nodes: the median of the nodes' medians, and the greatest 99th percentile.
fn latencies(recorded: &Recorded) -> Option<Block> {
    let intervals = recorded.nodes.iter().map(|node| node.operations.len()).max().unwrap_or(0);
    // Nodes without operations in an interval, or with errors alone, have no latency there.
    let at = |index: usize, of: fn(&NodeSeries) -> &Vec<u64>| -> Vec<f64> {
        let ended =
            recorded.nodes.iter().filter(|node| node.latency_p99_ns.get(index).is_some_and(|ns| *ns > 0));
        let mut values: Vec<f64> =
            ended.filter_map(|node| of(node).get(index).map(|value| *value as f64)).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let median = |values: &[f64]| values.get(values.len() / 2).copied();
    let medians = (0..intervals).map(|index| median(&at(index, |node| &node.latency_p50_ns)));
    let greatest = (0..intervals).map(|index| at(index, |node| &node.latency_p99_ns).last().copied());
    let lines = vec![
        Line { name: "p50: median of the nodes".to_owned(), values: medians.collect() },
        Line { name: "p99: greatest of the nodes".to_owned(), values: greatest.collect() },
    ];
    let note =
        "Operations that ended in the interval without an error. Intervals without them have no point."
            .to_owned();
    chart(recorded, "Latency of operations", note, "latency (ns)", lines)
}

fn line(name: &str, counts: &[u64]) -> Line {
    Line { name: name.to_owned(), values: counts.iter().map(|count| Some(*count as f64)).collect() }
}

fn add(total: &mut Vec<u64>, counts: &[u64]) {
    if total.len() < counts.len() {
        total.resize(counts.len(), 0);
    }
    total.iter_mut().zip(counts).for_each(|(total, count)| *total = total.saturating_add(*count));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(intervals: u32) -> Recorded {
        Recorded { from_ns: 1000, interval_ns: 10, intervals, ..Recorded::default() }
    }

    #[test]
    fn a_point_is_in_the_middle_of_its_interval_and_the_greatest_of_neighbours_is_kept() {
        let values: Vec<_> = [3.0, 1.0].map(Some).to_vec();
        assert_eq!(points(&recorded(2), &values), [(1005.0, 3.0), (1015.0, 1.0)]);
        let mut many = vec![Some(1.0); POINTS_MAX * 2];
        many[7] = Some(9.0);
        let points = points(&recorded(480), &many);
        assert_eq!((points.len(), points[3]), (POINTS_MAX, (1000.0 + 70.0, 9.0)));
    }

    #[test]
    fn intervals_without_operations_have_no_latency() {
        let node = |operations: [u64; 3], latency: [u64; 3]| NodeSeries {
            operations: operations.to_vec(),
            latency_p50_ns: latency.to_vec(),
            latency_p99_ns: latency.iter().map(|latency| latency * 2).collect(),
            ..NodeSeries::default()
        };
        let mut recorded = recorded(3);
        // The second node has an operation in the last interval that ended with an error.
        recorded.nodes = vec![node([1, 0, 1], [100, 0, 300]), node([1, 0, 1], [200, 0, 0])];
        let Some(Block::Figure(figure)) = latencies(&recorded) else { panic!("no chart") };
        let Figure::Chart(chart) = *figure else { panic!("no chart") };
        assert_eq!(chart.series[0].line, [(1005.0, 200.0), (1025.0, 300.0)]);
        assert_eq!(chart.series[1].line, [(1005.0, 400.0), (1025.0, 600.0)]);
    }
}
