//! Bounds for the time in which heartbeats alone detect a loss, and a check that a run in virtual time kept to them.

use rackloom_plan::faults::{Fault, FaultScript};
use rackloom_plan::headers::wire_bytes;
use rackloom_plan::{Clock, Plan};

use super::history::{changes_to, edges_of};
use crate::report::assemble::Report;

/// Frame length for which the wire length is that of a heartbeat. A heartbeat is padded to the smallest frame, as all
/// shorter frames are.
const HEARTBEAT_FRAME_BYTES: usize = 0;
/// Name of the clock of simulated racks in reports.
const VIRTUAL: &str = "virtual";
/// Cause of a link that is reported down because of missing heartbeats.
pub(super) const BY_HEARTBEATS: &str = rackloom_protocol::LinkCause::HeartbeatDead.name();

/// Returns the clock of a report.
pub(super) fn clock_of(report: &Report) -> Clock {
    if report.clock == VIRTUAL { Clock::Virtual } else { Clock::Wall }
}

/// Returns the time in nanoseconds that a frame of `frame_bytes` occupies this link.
fn on_wire_ns(plan: &Plan, edge: u16, frame_bytes: usize) -> u64 {
    let bits = 8 * wire_bytes(frame_bytes) as u128;
    let on_wire = |rate: u64| (bits * 1_000_000_000).div_ceil(u128::from(rate)) as u64;
    plan.links[usize::from(edge)].profile.rate_bits_per_s.map_or(0, on_wire)
}

/// Returns the longest time in nanoseconds that a heartbeat waits for a frame before it.
fn longest_wait_ns(plan: &Plan, edge: u16) -> u64 {
    on_wire_ns(plan, edge, usize::from(plan.settings.frame_bytes_max))
}

/// Returns the shortest travel time of a heartbeat in nanoseconds, with no frame before it.
fn shortest_path_ns(plan: &Plan, edge: u16) -> u64 {
    plan.links[usize::from(edge)].profile.latency_ns() + on_wire_ns(plan, edge, HEARTBEAT_FRAME_BYTES)
}

/// Returns the longest travel time of a heartbeat in nanoseconds, after the longest frame.
fn longest_path_ns(plan: &Plan, edge: u16) -> u64 {
    shortest_path_ns(plan, edge) + longest_wait_ns(plan, edge)
}

/// Returns the longest time in nanoseconds in which heartbeats detect a loss on these links.
pub(super) fn most_ns(plan: &Plan, clock: Clock, edges: &[u16]) -> Option<u64> {
    let paths_ns = edges.iter().map(|edge| longest_path_ns(plan, *edge));
    Some(plan.timers_on(clock).detection_ns() + paths_ns.max()?)
}

/// Returns the shortest time in nanoseconds. The last heartbeat left just before the fault, and those that follow it
/// are missed. If its sender is killed, the heartbeat arrives after its travel time. On a cable that is cut it may have
/// arrived already, because frames in flight there are lost. In both cases the heartbeat may have left later than it
/// should, by the time of the longest frame, and its successor on time.
pub(super) fn least_ns(plan: &Plan, clock: Clock, fault: &Fault, edges: &[u16]) -> Option<u64> {
    let timers = plan.timers_on(clock);
    let missed = timers.heartbeat_miss_max.saturating_sub(1) as u64;
    let silence_ns = timers.heartbeat_interval_ns.saturating_mul(missed);
    let arrives = matches!(fault, Fault::Kill(_));
    let least_ns = |edge: &u16| {
        let path_ns = if arrives { shortest_path_ns(plan, *edge) } else { 0 };
        (silence_ns + path_ns).saturating_sub(longest_wait_ns(plan, *edge))
    };
    edges.iter().map(least_ns).min()
}

/// Checks that, in virtual time, a fault that only heartbeats can detect was detected within both bounds. Judged only
/// if it is the script's only fault, and if links lose no frames by themselves.
pub(super) fn of_heartbeats(script: &FaultScript, plan: &Plan, report: &Report) -> Option<String> {
    let ([event], [fault]) = (&script.events[..], &report.faults[..]) else { return None };
    let is_plain = event.fault.blocks_traffic() && event.timing.every_ns.is_none();
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
