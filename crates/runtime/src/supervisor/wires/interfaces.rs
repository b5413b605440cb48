//! Interfaces of the packet wire: their names in the namespace of a member, and the ends of cables.

use rackloom::namespaces::CableEnd;
use rackloom_plan::Plan;
use rackloom_protocol::wire::address::mac;
use rackloom_protocol::{NodeId, Plane, PortId};

/// Ethernet header, which does not count towards an interface's MTU.
const ETHERNET_HEADER_BYTES: u32 = 14;

/// Returns the name of a port's first interface in its member's namespace.
pub(crate) fn first_interface(port: PortId) -> String {
    format!("port{}", port.0)
}

/// Returns the name of a port's interface after a takeover.
pub(crate) fn later_interface(port: PortId, takeover: u32) -> String {
    format!("port{}x{takeover}", port.0)
}

/// Returns the end of a cable at a member, in the namespace of its process.
pub(crate) fn cable_end(process: u32, interface: String, node: NodeId, plane: Plane) -> CableEnd {
    CableEnd { process, interface, address: mac(node, plane) }
}

/// Returns the MTU of the interfaces of a rack, in bytes.
pub(crate) fn mtu(plan: &Plan) -> u32 {
    u32::from(plan.wire_bytes_max()) - ETHERNET_HEADER_BYTES
}
