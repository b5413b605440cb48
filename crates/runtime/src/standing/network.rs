//! IP over the fabric of a standing rack: its state, and the names of seats.

use std::fmt::Write;

use rackloom::ip::address_of;
use rackloom_control::request::RackStatus;

use super::state::GPU_NODE;

/// Checks that seats of the rack have network interfaces.
///
/// # Errors
/// The reason why they have none.
pub(super) fn network_of(status: &RackStatus) -> Result<(), String> {
    match &status.ip {
        None => Err("the rack has no IP: it needs `--seats programs`, and `ip: true` in its file".to_owned()),
        Some(ip) => ip.unavailable.clone().map_or(Ok(()), Err),
    }
}

/// Returns the number of a GPU node whose seat has a network interface.
///
/// # Errors
/// The reason why it has none.
pub(super) fn node_with_network(status: &RackStatus, name: &str) -> Result<u16, String> {
    network_of(status)?;
    // GPU nodes come first in the plan.
    let position = status.members.iter().position(|member| member.name == name && member.role == GPU_NODE);
    position.map(|node| node as u16).ok_or_else(|| format!("{name} is no GPU node"))
}

/// Returns the lines of `/etc/hosts` for these seats.
pub(super) fn hosts(nodes: &[&str]) -> String {
    let mut lines = "127.0.0.1 localhost\n".to_owned();
    for (node, name) in nodes.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = writeln!(lines, "{} {name}", address_of(node as u16));
    }
    lines
}
