//! Counters of a member's ports, as the records of reports.

use rackloom_control::report::PortReport;
use rackloom_control::report::injected::InjectedFaults;
use rackloom_protocol::{Inspect, PortId};

use crate::wires::{DeviceCounters, Ports};

/// Returns the counters of every port, in port order: those of the core and those of the port's device. `edges`: the port's link in the plan, by port.
pub fn port_reports(
    member: &(impl Inspect + ?Sized),
    devices: &Ports,
    edges: impl IntoIterator<Item = u16>,
) -> Vec<PortReport> {
    let mut reports = PortReport::of_member(member, edges);
    for (port, report) in reports.iter_mut().enumerate() {
        let counters = devices.counters(PortId(port as u16));
        report.injected = injected_faults(&counters).by_name();
        report.dropped.extend(device_drops(&counters));
    }
    reports
}

/// Returns the number of frames that injected faults of a port changed.
#[must_use]
pub const fn injected_faults(counters: &DeviceCounters) -> InjectedFaults {
    InjectedFaults {
        dropped: counters.injected_drops,
        corrupted: counters.injected_corruptions,
        duplicated: counters.injected_duplicates,
        reordered: counters.injected_reorders,
    }
}

/// Returns the number of received frames that the wire or its device dropped, by reason.
fn device_drops(counters: &DeviceCounters) -> impl Iterator<Item = (String, u64)> + use<> {
    let reasons = [
        ("receive-buffer-full", counters.kernel_drops),
        ("too-long", counters.receive_errors),
        ("vlan-tag", counters.tagged),
        ("filtered", counters.foreign),
        ("bad-tag", counters.bad_tags),
        ("replayed", counters.replays),
    ];
    reasons.into_iter().filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.to_owned(), count))
}
