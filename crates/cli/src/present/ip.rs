//! IP over the fabric: the interface of each seat, and its frames.

use rackloom_control::request::RackStatus;

use super::table::{Column, Table};
use super::units;

/// Formats the reason why no seat has an interface, in a rack that would have them.
pub(crate) fn missing(status: &RackStatus) -> Option<String> {
    let reason = status.ip.as_ref()?.unavailable.as_ref()?;
    Some(format!("no seat has an interface rack0: {reason}"))
}

/// Formats the frames of each seat with an interface.
pub(super) fn interfaces(status: &RackStatus) -> Option<String> {
    let mut table = Table::new(&[
        Column::Left("IP of"),
        Column::Left("address"),
        Column::Right("sent"),
        Column::Right("bytes sent"),
        Column::Right("received"),
        Column::Right("bytes received"),
        Column::Right("dropped"),
    ]);
    let known = status.members.iter().enumerate();
    let known: Vec<_> = known.filter_map(|(node, member)| Some((node, member, member.ip?))).collect();
    for (node, member, ip) in &known {
        table.row([
            member.name.clone(),
            rackloom::ip::address_of(*node as u16).to_string(),
            units::count(ip.frames_sent),
            units::bytes(ip.bytes_sent),
            units::count(ip.frames_received),
            units::bytes(ip.bytes_received),
            units::count(ip.queue_full + ip.unreached + ip.refused),
        ]);
    }
    if known.is_empty() { missing(status) } else { Some(table.render()) }
}
