//! Bridges: Ethernet switches of the kernel, in the namespace of whoever makes them.
//!
//! A bridge joins interfaces that are plugged into it and learns from what passes where each address is; what it has not
//! learned goes everywhere. It is made as it comes: no spanning tree, no frame back out of the port that it came in at. It goes with
//! the namespace, and a port of it with the namespace of the process at the other end of the cable.
//!
//! Nothing here knows what a frame means.

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
    /// Its name, at most 15 bytes.
    pub name: String,
    /// Largest payload of a frame, without the 14 bytes of the Ethernet header.
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

/// Make these bridges and switch them on. Needs the rights that [`super::enter_supervisor_namespaces`] gives.
///
/// # Errors
/// [`NamespaceError::NoBridge`] where the kernel has none.
pub fn make_bridges(bridges: &[Bridge]) -> Result<(), NamespaceError> {
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

/// Lay these cables. The bridges' ports are switched on here, the other ends by the processes that use them.
///
/// # Errors
/// [`NamespaceError`], naming the cable.
pub fn plug_into_bridges(cables: &[BridgeCable]) -> Result<(), NamespaceError> {
    let asker = socket(AddressFamily::UNIX, SocketType::DGRAM, None);
    let asker = asker.map_err(forbidden("a socket to ask about interfaces"))?;
    with_netlink(async |handle| {
        for cable in cables {
            let index = name_to_index(&asker, &cable.bridge.name).map_err(io::Error::from);
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
    let far = LinkMessageBuilder::<LinkUnspec>::new()
        .name(end.interface.as_str())
        .address(end.address.to_vec())
        .mtu(bridge.mtu)
        .setns_by_pid(end.process)
        .build();
    let message = LinkVeth::new(port, &end.interface)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(far)))
        .mtu(bridge.mtu)
        .controller(bridge_index)
        .up()
        .build();
    handle.link().add(message).execute().await.map_err(cause_of)
}
