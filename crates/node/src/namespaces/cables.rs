//! Cables: pairs of virtual Ethernet interfaces. Each end is created in the namespace of the process that uses it.
//!
//! One netlink message per cable names both ends, their namespaces, addresses and MTU. An end therefore never appears elsewhere under another name,
//! and a rack of hundreds of links is up in a fraction of a second. The supervisor keeps no state of a cable: the kernel removes the cable with the
//! namespace of either end.

use std::io;

use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkMessage};
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec, LinkVeth};

use super::{NamespaceError, forbidden};

/// One end of a cable.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CableEnd {
    /// Process whose network namespace gets this end.
    pub process: u32,
    /// Name of the interface there, at most 15 bytes.
    pub interface: String,
    /// MAC address of the end.
    pub address: [u8; 6],
}

/// One link of the rack.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cable {
    /// Both ends.
    pub ends: [CableEnd; 2],
    /// Largest payload of a frame in bytes, without the 14 bytes of the Ethernet header.
    pub mtu: u32,
}

/// Creates these cables. Needs the rights that [`super::enter_supervisor_namespaces`] provides.
///
/// # Errors
/// [`NamespaceError::Cable`] with the first cable that could not be created, or [`NamespaceError::Forbidden`].
pub fn create_cables(cables: &[Cable]) -> Result<(), NamespaceError> {
    with_netlink(async |handle| {
        for cable in cables {
            lay(handle, cable).await?;
        }
        Ok(())
    })
}

/// Runs `work` with a netlink connection for the interfaces of this process's namespace.
pub(crate) fn with_netlink(
    work: impl AsyncFnOnce(&Handle) -> Result<(), NamespaceError>,
) -> Result<(), NamespaceError> {
    let netlink = forbidden("a netlink socket");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(&netlink)?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection().map_err(&netlink)?;
        let connection = tokio::spawn(connection);
        let done = work(&handle).await;
        connection.abort();
        done
    })
}

/// Returns the kernel's error.
pub(crate) fn cause_of(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other.to_string()),
    }
}

async fn lay(handle: &Handle, cable: &Cable) -> Result<(), NamespaceError> {
    handle.link().add(message(cable)).execute().await.map_err(|error| {
        let cause = cause_of(error);
        match cause.kind() {
            io::ErrorKind::PermissionDenied => {
                NamespaceError::Forbidden { step: "the right to lay cables", cause }
            }
            io::ErrorKind::Unsupported => {
                NamespaceError::Forbidden { step: "virtual Ethernet pairs (veth)", cause }
            }
            _ => {
                let [a, b] = &cable.ends;
                let cable = format!("{} of {} to {} of {}", a.interface, a.process, b.interface, b.process);
                NamespaceError::Cable { cable, cause }
            }
        }
    })
}

fn message(cable: &Cable) -> LinkMessage {
    let [local, remote] = &cable.ends;
    let peer = LinkMessageBuilder::<LinkUnspec>::new()
        .name(remote.interface.as_str())
        .address(remote.address.to_vec())
        .mtu(cable.mtu)
        .setns_by_pid(remote.process)
        .build();
    LinkVeth::new(&local.interface, &remote.interface)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
        .address(local.address.to_vec())
        .mtu(cable.mtu)
        .setns_by_pid(local.process)
        .build()
}

/// Removes an interface of this namespace, and with it the other end of its cable.
#[cfg(test)]
pub(crate) fn remove(interface: &str) -> io::Result<()> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::DGRAM, None)?;
    let index = rustix::net::netdevice::name_to_index(&socket, interface)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection()?;
        let connection = tokio::spawn(connection);
        let removed = handle.link().del(index).execute().await;
        connection.abort();
        removed.map_err(|error| io::Error::other(error.to_string()))
    })
}
