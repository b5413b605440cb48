//! What a node in a taken seat reports to its rack, in the rack's own words.
//!
//! The terms are those of the rack's report (`docs/cli.md`), which are written down in the room of the jobs; this room does not
//! see that one, so they are spelled here once more, and a test of the whole system holds the two together.

use std::collections::BTreeMap;

use rackloom_protocol::link::counters::PortCounters;
use rackloom_protocol::{DropReason, Member, PortId};
use serde_json::{Value, json};

use crate::fabric::memory::bytes::Account;
use crate::wires::{DeviceCounters, Ports};

/// What has passed through every port, in port order; `edges` are the links of the plan that they lead to.
pub(super) fn ports(member: &impl Member, devices: &Ports, edges: &[u16]) -> Value {
    let ports = edges.iter().take(member.port_count()).enumerate();
    ports
        .map(|(port, edge)| {
            let port = PortId(port as u16);
            let mut said = of_port(*edge, member.port_counters(port));
            let injected = injected(&devices.counters(port));
            if !injected.is_empty() {
                said["injected"] = json!(injected);
            }
            for (reason, count) in below_the_core(&devices.counters(port)) {
                said["dropped"][reason] = json!(count);
            }
            said
        })
        .collect()
}

/// Received frames that the wire or its device dropped, by reason.
fn below_the_core(counters: &DeviceCounters) -> impl Iterator<Item = (&'static str, u64)> {
    let reasons = [
        ("no-room", counters.kernel_drops),
        ("too-long", counters.receive_errors),
        ("vlan-tag", counters.tagged),
        ("turned-away", counters.strangers),
        ("bad-tag", counters.bad_tags),
        ("replayed", counters.replays),
    ];
    reasons.into_iter().filter(|(_, count)| *count > 0)
}

/// What injected faults did to frames that were sent, by what it was.
fn injected(counters: &DeviceCounters) -> BTreeMap<&'static str, u64> {
    let counts = [
        ("dropped", counters.injected_drops),
        ("corrupted", counters.injected_corruptions),
        ("duplicated", counters.injected_duplicates),
        ("reordered", counters.injected_reorders),
    ];
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

fn of_port(edge: u16, counters: &PortCounters) -> Value {
    let reasons = DropReason::ALL.into_iter();
    let dropped: BTreeMap<_, _> = reasons
        .map(|reason| (reason.name(), counters.dropped_for(reason)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let mut said = json!({
        "edge": edge,
        "frames_sent": counters.frames_sent, "bytes_sent": counters.bytes_sent,
        "data_frames_sent": counters.data_frames_sent, "data_bytes_sent": counters.data_bytes_sent,
        "retransmitted": counters.retransmitted, "forwarded": counters.forwarded,
        "frames_received": counters.frames_received, "bytes_received": counters.bytes_received,
        "missing": counters.missing, "credit_stalls": counters.credit_stalls,
        "credit_updates": counters.credit_updates,
        "dropped": dropped,
    });
    let retry: BTreeMap<_, _> = counters.retry.named().into_iter().filter(|(_, count)| *count > 0).collect();
    if !retry.is_empty() {
        said["retry"] = json!(retry);
    }
    if counters.credit_violations > 0 {
        said["credit_violations"] = json!(counters.credit_violations);
    }
    let pause: BTreeMap<_, _> = counters.pause.named().into_iter().filter(|(_, count)| *count > 0).collect();
    if !pause.is_empty() {
        said["pause"] = json!(pause);
    }
    let marks: BTreeMap<_, _> = counters.marks.named().into_iter().filter(|(_, count)| *count > 0).collect();
    if !marks.is_empty() {
        said["marks"] = json!(marks);
    }
    said
}

/// The memory of the node's regions. It is the program's own: the rack file says what the seat may use, and nobody holds a program
/// to it.
pub(super) fn memory(account: Account, limit_bytes: u64) -> Value {
    let level = json!({ "current": account.bytes, "high": account.bytes_high });
    json!({
        "limit_bytes": limit_bytes, "reserved_bytes": level, "used_bytes": level,
        "allocations": account.added, "frees": account.removed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reasons_that_occurred_are_named() {
        let mut counters = PortCounters { frames_sent: 3, missing: 2, ..PortCounters::default() };
        counters.dropped[DropReason::ALL[1] as usize] = 7;
        counters.credit_violations = 5;
        let said = of_port(4, &counters);
        assert_eq!(
            (&said["edge"], &said["frames_sent"], &said["missing"]),
            (&json!(4), &json!(3), &json!(2))
        );
        assert_eq!(said["credit_violations"], json!(5));
        assert_eq!(said["dropped"], json!({ DropReason::ALL[1].name(): 7 }));
    }
}
