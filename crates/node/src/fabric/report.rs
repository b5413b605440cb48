//! The report of a node in a taken seat to its rack, in the terms of the rack's report (`docs/cli.md`).
//!
//! The crate of the jobs defines these terms. This crate does not depend on it, so they are spelled here once more. A test of the whole system
//! compares the two.

use std::collections::BTreeMap;

use rackloom_protocol::link::counters::PortCounters;
use rackloom_protocol::{DropReason, Member, PortId};
use serde_json::{Value, json};

use crate::fabric::memory::bytes::Account;
use crate::wires::{DeviceCounters, Ports};

/// Returns the counters of every port, in port order. `edges` are the edge numbers of their links in the plan.
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

/// Returns received frames that the wire or its device dropped, by reason.
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

/// Returns the effects of injected faults on sent frames, by kind.
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

/// Returns the size of the node's regions. The program owns this memory: the rack file states the seat's limit, which is not enforced for a
/// program.
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
