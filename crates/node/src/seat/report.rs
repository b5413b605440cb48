//! Counters of a member's ports, as the records of reports.

use rackloom_control::report::injected::InjectedFaults;
use rackloom_control::report::{DEVICE_DROPS, PortReport};
use rackloom_control::status_words::PortFigures;
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
        let drops = DEVICE_DROPS.into_iter().zip(device_drops(&counters)).filter(|(_, count)| *count > 0);
        report.dropped.extend(drops.map(|(reason, count)| (reason.to_owned(), count)));
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

/// Returns the figures of every port for a status page, in port order. `ports`: each port's link in the plan, and true if it carries no data.
pub fn port_figures<'a>(
    member: &'a dyn Inspect,
    devices: &'a Ports,
    ports: impl Iterator<Item = (u16, bool)> + 'a,
) -> impl Iterator<Item = PortFigures<'a>> {
    ports.take(member.port_count()).enumerate().map(|(port, (edge, is_down))| {
        let port = PortId(port as u16);
        let counters = devices.counters(port);
        PortFigures {
            edge,
            is_down,
            counters: member.port_counters(port),
            injected_drops: counters.injected_drops,
            device_drops: device_drops(&counters),
        }
    })
}

/// Returns the number of received frames that the wire or its device dropped, by the reasons of [`DEVICE_DROPS`].
const fn device_drops(counters: &DeviceCounters) -> [u64; DEVICE_DROPS.len()] {
    [
        counters.kernel_drops,
        counters.receive_errors,
        counters.tagged,
        counters.foreign,
        counters.bad_tags,
        counters.replays,
    ]
}
