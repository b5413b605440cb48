//! Bridges: Ethernet switches of the kernel, in the namespace of the process that creates them.
//!
//! A bridge joins the interfaces that are plugged into it. It learns the port of each address from the frames that pass, and floods frames to unknown
//! addresses. It runs no spanning tree, and no frame leaves through the port at which it arrived. It is removed with its namespace,
//! and each of its ports with the namespace of the process at the other end of the cable.
//!
//! This module does not interpret frames.

use std::io;

use rtnetlink::packet_route::link::{BridgeStpState, InfoData, InfoVeth};
use rtnetlink::{Handle, LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

use super::cables::{CableEnd, cause_of, with_netlink};
use super::{NamespaceError, forbidden};

/// A bridge in this process's network namespace.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// Name of the bridge, at most 15 bytes.
    pub name: String,
    /// Largest payload of a frame in bytes, without the 14 bytes of the Ethernet header.
    pub mtu: u32,
}

/// A cable from a bridge of this process's namespace to an interface elsewhere.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeCable {
    /// The bridge.
    pub bridge: Bridge,
    /// Name of the bridge's port, at most 15 bytes.
    pub port: String,
    /// The other end.
    pub end: CableEnd,
}

/// Creates these bridges and switches them on. Needs the rights that [`super::enter_supervisor_namespaces`] provides.
///
/// # Errors
/// [`NamespaceError::NoBridge`] if the kernel has no bridges.
pub fn create_bridges(bridges: &[Bridge]) -> Result<(), NamespaceError> {
    with_netlink(async |handle| {
        for bridge in bridges {
            let message =
                LinkBridge::new(&bridge.name).stp_state(BridgeStpState::Disabled).mtu(bridge.mtu).build();
            let made = handle.link().add(message).execute().await.map_err(cause_of);
            made.map_err(|cause| NamespaceError::NoBridge { bridge: bridge.name.clone(), cause })?;
        }
        Ok(())
    })
}

/// Creates these cables and switches on the bridges' ports. The processes that use the other ends switch those on.
///
/// # Errors
/// [`NamespaceError`], which names the cable.
pub fn connect_to_bridges(cables: &[BridgeCable]) -> Result<(), NamespaceError> {
    let query_socket = socket(AddressFamily::UNIX, SocketType::DGRAM, None);
    let query_socket = query_socket.map_err(forbidden("a socket for queries about interfaces"))?;
    with_netlink(async |handle| {
        for cable in cables {
            let index = name_to_index(&query_socket, &cable.bridge.name).map_err(io::Error::from);
            let laid = match index {
                Ok(index) => lay(handle, cable, index).await,
                Err(cause) => Err(cause),
            };
            laid.map_err(|cause| {
                let CableEnd { process, interface, .. } = &cable.end;
                let cable = format!("{} of {} to {interface} of {process}", cable.port, cable.bridge.name);
                NamespaceError::Cable { cable, cause }
            })?;
        }
        Ok(())
    })
}

async fn lay(handle: &Handle, cable: &BridgeCable, bridge_index: u32) -> io::Result<()> {
    let BridgeCable { bridge, port, end } = cable;
    let remote = LinkMessageBuilder::<LinkUnspec>::new()
        .name(end.interface.as_str())
        .address(end.address.to_vec())
        .mtu(bridge.mtu)
        .setns_by_pid(end.process)
        .build();
    let message = LinkVeth::new(port, &end.interface)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(remote)))
        .mtu(bridge.mtu)
        .controller(bridge_index)
        .up()
        .build();
    handle.link().add(message).execute().await.map_err(cause_of)
}
