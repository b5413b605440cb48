//! How long heartbeats alone take to find what is gone: at the most, at the least, and whether a run in virtual time kept to it.

use rackloom_plan::faults::{Fault, FaultScript};
use rackloom_plan::headers::wire_bytes;
use rackloom_plan::{Clock, Plan};

use super::history::{changes_to, edges_of};
use crate::report::assemble::Report;

/// A heartbeat is the smallest frame there is, to which all shorter ones are filled up.
const HEARTBEAT_FRAME_BYTES: usize = 0;
/// The clock of simulated racks in reports.
const VIRTUAL: &str = "virtual";
/// Why a link is told to be down where only heartbeats tell.
pub(super) const BY_HEARTBEATS: &str = rackloom_protocol::LinkCause::HeartbeatDead.name();

/// The clock of a report.
pub(super) fn clock_of(report: &Report) -> Clock {
    if report.clock == VIRTUAL { Clock::Virtual } else { Clock::Wall }
}

/// What a frame of so many bytes takes on the wire of this link.
fn on_wire_ns(plan: &Plan, edge: u16, frame_bytes: usize) -> u64 {
    let bits = 8 * wire_bytes(frame_bytes) as u128;
    let on_wire = |rate: u64| (bits * 1_000_000_000).div_ceil(u128::from(rate)) as u64;
    plan.links[usize::from(edge)].profile.rate_bits_per_s.map_or(0, on_wire)
}

/// The longest that a heartbeat waits for a frame before it.
fn longest_wait_ns(plan: &Plan, edge: u16) -> u64 {
    on_wire_ns(plan, edge, usize::from(plan.frame_bytes_max))
}

/// The shortest way of a heartbeat: nothing is before it.
fn shortest_way_ns(plan: &Plan, edge: u16) -> u64 {
    plan.links[usize::from(edge)].profile.latency_ns() + on_wire_ns(plan, edge, HEARTBEAT_FRAME_BYTES)
}

/// The longest one: behind the longest frame.
fn longest_way_ns(plan: &Plan, edge: u16) -> u64 {
    shortest_way_ns(plan, edge) + longest_wait_ns(plan, edge)
}

/// The longest that heartbeats take to find what these links have lost.
pub(super) fn most_ns(plan: &Plan, clock: Clock, edges: &[u16]) -> Option<u64> {
    let ways_ns = edges.iter().map(|edge| longest_way_ns(plan, *edge));
    Some(plan.timers_on(clock).detection_ns() + ways_ns.max()?)
}

/// The least: the last heartbeat left just before the fault, and those that follow it are missed. It arrives if its sender is killed, which
/// takes its way; on a cable that is cut it may have arrived already, because what is under way there is gone. Either may have left later
/// than it should, and its successor not, by the longest frame.
pub(super) fn least_ns(plan: &Plan, clock: Clock, fault: &Fault, edges: &[u16]) -> Option<u64> {
    let timers = plan.timers_on(clock);
    let missed = timers.heartbeat_miss_max.saturating_sub(1) as u64;
    let silence_ns = timers.heartbeat_interval_ns.saturating_mul(missed);
    let arrives = matches!(fault, Fault::Kill(_));
    let least_ns = |edge: &u16| {
        let way_ns = if arrives { shortest_way_ns(plan, *edge) } else { 0 };
        (silence_ns + way_ns).saturating_sub(longest_wait_ns(plan, *edge))
    };
    edges.iter().map(least_ns).min()
}

/// In virtual time a fault that only heartbeats can find is found neither sooner nor later than they must; judged where it is all that
/// happens, and where links lose nothing by themselves.
pub(super) fn of_heartbeats(script: &FaultScript, plan: &Plan, report: &Report) -> Option<String> {
    let ([event], [fault]) = (&script.events[..], &report.faults[..]) else { return None };
    let is_plain = event.fault.takes_away() && event.timing.every_ns.is_none();
    if clock_of(report) != Clock::Virtual || !is_plain {
        return None;
    }
    let (least_ns, most_ns) = (fault.detection_least_ns?, fault.detection_bound_ns?);
    let (begun_ns, took_ns) = (fault.at_ns?, fault.detected_after_ns?);
    let edges = edges_of(&event.fault, plan);
    if edges.iter().any(|edge| plan.links[usize::from(*edge)].profile.has_faults()) {
        return None;
    }
    let first = changes_to(plan, &report.events, &edges, "down").find(|record| record.at_ns >= begun_ns)?;
    let is_by_heartbeats = first.fields.get("cause").is_some_and(|cause| cause == BY_HEARTBEATS);
    let holds = least_ns < took_ns && took_ns <= most_ns;
    (is_by_heartbeats && !holds).then(|| {
        let what = format!("event 1 ({})", fault.what);
        format!("{what} was detected after {took_ns} ns; heartbeats alone take more than {least_ns} and at most {most_ns} ns")
    })
}
