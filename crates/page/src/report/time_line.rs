//! Time line of a run: phases, injected faults, detections, changes of paths, and retransmissions, each in a lane.

use std::collections::BTreeMap;

use rackloom_control::report::{EventRecord, PhaseSpan, Report, Series};
use rackloom_drawing::chart::{Axis, Lane, Lanes, Mark};

use super::events::{is_notable, omitted};
use crate::model::{Block, Figure};
use crate::text;

/// Marks of a lane at most.
const MARKS_MAX: usize = 150;
/// Kind of the event that a fault of the script begins or ends.
const FAULT: &str = "fault";

/// Returns the time line. Empty if nothing happened.
pub(super) fn time_line(report: &Report) -> Vec<Block> {
    let mut lanes = vec![
        Lane {
            name: "phases of the job".to_owned(),
            marks: report.phases.iter().map(|phase| mark_of(report, phase)).collect(),
        },
        Lane { name: "faults injected".to_owned(), marks: faults(report) },
    ];
    let mut kinds: BTreeMap<&str, Vec<Mark>> = BTreeMap::new();
    for event in report.events.iter().filter(|event| is_notable(event) && event.kind != FAULT) {
        let text = format!("{}: {}: {}", text::time(event.at_ns as f64), event.member, event.text);
        kinds.entry(&event.kind).or_default().push(Mark { at: event.at_ns as f64, text, ..Mark::default() });
    }
    lanes.extend(kinds.into_iter().map(|(kind, marks)| Lane { name: kind.to_owned(), marks }));
    if let Some(series) = &report.series {
        lanes.push(Lane { name: "retransmissions".to_owned(), marks: retransmissions(series) });
    }
    lanes.retain(|lane| !lane.marks.is_empty());
    if lanes.is_empty() {
        return Vec::new();
    }
    let end =
        report.events.iter().map(|event| event.at_ns).chain([report.elapsed_ns]).max().unwrap_or(1) as f64;
    let mut left_out = 0;
    for lane in &mut lanes {
        left_out += bound(&mut lane.marks, end);
    }
    let mut notes = vec!["First states of links and paths are left out.".to_owned()];
    if left_out > 0 {
        notes.push(format!(
            "A mark of a full lane stands for several events. The texts of {} events are left out here.",
            text::count(left_out)
        ));
    }
    notes.extend(omitted(report));
    let lanes = Lanes {
        title: "Events over time".to_owned(),
        note: notes.join(" "),
        time: Axis::linear("time (ns)"),
        range: (0.0, end),
        lanes,
    };
    vec![Block::figure(Figure::TimeLine(lanes))]
}

/// Returns the mark of a phase, with the balance of its load if that is known.
fn mark_of(report: &Report, phase: &PhaseSpan) -> Mark {
    // The first phase of the balance is the whole run.
    let load = report.balance.iter().skip(1).find(|load| load.name == phase.name);
    let load = load.map(|load| format!(", imbalance {}", text::decimal(load.imbalance)));
    let (at, until) = (phase.began_ns as f64, phase.ended_ns as f64);
    let load = load.unwrap_or_default();
    let text = format!("{}: {} to {}{load}", phase.name, text::time(at), text::time(until));
    Mark { at, until: Some(until), text, name: phase.name.clone() }
}

/// Returns a mark for each time that an event of the script began, from the first member's begin to the last member's end.
fn faults(report: &Report) -> Vec<Mark> {
    let mut marks: BTreeMap<(String, String), Mark> = BTreeMap::new();
    let field = |event: &EventRecord, name: &str| event.fields.get(name).cloned().unwrap_or_default();
    for event in report.events.iter().filter(|event| event.kind == FAULT) {
        let key = (field(event, "event"), field(event, "time"));
        let at = event.at_ns as f64;
        let text = || format!("{}: {}", text::time(at), event.text);
        match (marks.get_mut(&key), field(event, "begins") == "false") {
            (None, _) => drop(marks.insert(key, Mark { at, text: text(), ..Mark::default() })),
            (Some(mark), true) => mark.until = Some(at),
            (Some(mark), false) => mark.at = mark.at.min(at),
        }
    }
    let finish = |mut mark: Mark| {
        if let Some(until) = mark.until {
            mark.text = format!("{}, until {}", mark.text, text::time(until));
        }
        mark
    };
    marks.into_values().map(finish).collect()
}

/// Returns a mark for each interval with retransmitted packets.
fn retransmissions(series: &Series) -> Vec<Mark> {
    let mut totals: Vec<(u64, &str, u64)> = Vec::new();
    for link in &series.links {
        for (index, count) in link.retransmitted.iter().enumerate() {
            if totals.len() <= index {
                totals.resize(index + 1, (0, "", 0));
            }
            let (sum, busiest, most) = &mut totals[index];
            *sum = sum.saturating_add(*count);
            if *count > *most {
                (*busiest, *most) = (&link.name, *count);
            }
        }
    }
    let mark = |(index, (sum, busiest, most)): (usize, &(u64, &str, u64))| {
        let at = series.from_ns as f64 + index as f64 * series.interval_ns as f64;
        (*sum > 0).then(|| Mark {
            at,
            until: Some(at + series.interval_ns as f64),
            text: format!("{}: {sum} packets retransmitted, {most} of them over {busiest}", text::time(at)),
            name: String::new(),
        })
    };
    totals.iter().enumerate().filter_map(mark).collect()
}

/// Merges marks of a full lane: those of equal parts of the time become one. Returns the number of texts that are left out.
fn bound(marks: &mut Vec<Mark>, end: f64) -> u64 {
    if marks.len() <= MARKS_MAX {
        return 0;
    }
    let mut parts: BTreeMap<usize, (Mark, u64)> = BTreeMap::new();
    for mark in marks.drain(..) {
        let part = ((mark.at / end.max(1.0)) * MARKS_MAX as f64) as usize;
        match parts.get_mut(&part.min(MARKS_MAX - 1)) {
            None => drop(parts.insert(part.min(MARKS_MAX - 1), (mark, 0))),
            Some((first, more)) => {
                *more += 1;
                first.until = [first.until, mark.until].into_iter().flatten().reduce(f64::max);
            }
        }
    }
    let left_out = parts.values().map(|(_, more)| more).sum();
    marks.extend(parts.into_values().map(|(mut mark, more)| {
        if more > 0 {
            mark.text = format!("{}, and {} more events", mark.text, text::count(more));
            // The name would be that of one of them only.
            mark.name = String::new();
        }
        mark
    }));
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_lane_keeps_its_extent_and_counts_what_it_leaves_out() {
        let mark =
            |at: f64| Mark { at, text: format!("at {at}"), name: "a name".to_owned(), ..Mark::default() };
        let mut marks: Vec<Mark> = (0..10_000).map(|at| mark(f64::from(at))).collect();
        let left_out = bound(&mut marks, 10_000.0);
        assert_eq!((marks.len() as u64 + left_out, marks.len()), (10_000, MARKS_MAX));
        assert!(marks[0].text.starts_with("at 0, and ") && marks[MARKS_MAX - 1].at > 9_900.0);
        assert_eq!(marks[0].name, "", "a mark of several events has no name of one");
        let mut few = vec![mark(1.0)];
        assert_eq!((bound(&mut few, 10.0), few[0].text.as_str()), (0, "at 1"));
    }

    #[test]
    fn retransmissions_are_summed_over_links() {
        let link = |name: &str, retransmitted: &[u64]| rackloom_control::report::LinkSeries {
            name: name.to_owned(),
            retransmitted: retransmitted.to_vec(),
            ..Default::default()
        };
        let series = Series {
            interval_ns: 10,
            intervals: 3,
            links: vec![link("a->b", &[0, 2, 0]), link("b->a", &[0, 5])],
            ..Series::default()
        };
        let marks = retransmissions(&series);
        assert_eq!(marks.len(), 1);
        assert_eq!((marks[0].at, marks[0].until), (10.0, Some(20.0)));
        assert_eq!(marks[0].text, "10 ns: 7 packets retransmitted, 5 of them over b->a");
    }
}
