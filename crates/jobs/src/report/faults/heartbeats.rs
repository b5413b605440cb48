//! How long heartbeats alone take to find what is gone: at the most, at the least, and whether a run in virtual time kept to it.

use rackloom_plan::Plan;
use rackloom_plan::faults::FaultScript;

use super::history::{changes_to, edges_of};
use crate::report::assemble::Report;

/// What a heartbeat takes on the wire behind another frame: its own 84 bytes, and the gap and checksum of the other.
const HEARTBEAT_WIRE_BYTES: u64 = 84 + 24;

/// The clock of simulated racks in reports, and why a link is told to be down there where only heartbeats tell.
const VIRTUAL: &str = "virtual";

pub(super) const BY_HEARTBEATS: &str = rackloom_protocol::LinkCause::HeartbeatDead.name();

/// The longest way of a heartbeat: behind the longest frame.
pub(super) fn way_ns(plan: &Plan, edge: u16) -> u64 {
    let profile = &plan.links[usize::from(edge)].profile;
    let bits = 8 * (u64::from(plan.frame_bytes_max) + HEARTBEAT_WIRE_BYTES);
    let on_wire = |rate: u64| (u128::from(bits) * 1_000_000_000).div_ceil(u128::from(rate)) as u64;
    profile.latency_ns() + profile.rate_bits_per_s.map_or(0, on_wire)
}

/// The last heartbeat may have come just before the fault, or be on its way: what follows it is missed.
pub(super) const fn least_silence_ns(plan: &Plan) -> u64 {
    let timers = &plan.timers;
    timers.heartbeat_interval_ns.saturating_mul(timers.heartbeat_miss_max.saturating_sub(1) as u64)
}

/// In virtual time a fault that only heartbeats can find is found neither sooner nor later than they must; judged where it is all that
/// happens.
pub(super) fn of_heartbeats(script: &FaultScript, plan: &Plan, report: &Report) -> Option<String> {
    let ([event], [fault]) = (&script.events[..], &report.faults[..]) else { return None };
    let is_plain = event.fault.takes_away() && event.timing.every_ns.is_none();
    if report.clock != VIRTUAL || !is_plain {
        return None;
    }
    let (least_ns, most_ns) = (fault.detection_least_ns?, fault.detection_bound_ns?);
    let (begun_ns, took_ns) = (fault.at_ns?, fault.detected_after_ns?);
    let edges = edges_of(&event.fault, plan);
    let first = changes_to(plan, &report.events, &edges, "down").find(|record| record.at_ns >= begun_ns)?;
    let is_by_heartbeats = first.fields.get("cause").is_some_and(|cause| cause == BY_HEARTBEATS);
    let holds = least_ns < took_ns && took_ns <= most_ns;
    (is_by_heartbeats && !holds).then(|| {
        let what = format!("event 1 ({})", fault.what);
        format!("{what} was detected after {took_ns} ns; heartbeats alone take more than {least_ns} and at most {most_ns} ns")
    })
}
