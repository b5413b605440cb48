//! The virtual cable between the namespace of a program and that of the agent of its seat.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rtnetlink::packet_route::link::{InfoData, InfoVeth};
use rtnetlink::packet_route::route::RouteScope;
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};
use rustix::net::{AddressFamily, SocketType, netdevice::name_to_index, socket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::socket::FrameSocket;
use super::{INTERFACE, MTU, PREFIX_BITS, address_of, hardware_address_of};
use crate::namespaces::{
    NamespaceError, enter_new_network_namespace, forbidden, switch_on_all, with_netlink,
};

/// Name of the agent's end.
const AGENT_END: &str = "rack0-agent";
/// Hardware address of the agent's end. No frame has it as its destination.
const AGENT_ADDRESS: [u8; 6] = [0x02, 0x52, 0x4b, 0x01, 0, 0];

/// Addresses of groups, and the number of bits that they share.
const GROUPS: (Ipv4Addr, u8) = (Ipv4Addr::new(224, 0, 0, 0), 4);
/// Time for the agent's end, which has been created, to appear.
const APPEAR_TIMEOUT: Duration = Duration::from_secs(1);

/// Interface of a seat. It exists until both parts are dropped and no process is left in the namespace.
///
/// `Send` and `Sync`.
#[derive(Debug)]
pub struct Interface {
    /// Socket on the agent's end.
    pub frames: FrameSocket,
    /// Network namespace of the program.
    pub namespace: OwnedFd,
}

/// Creates the interface of a node, with its address, in a new network namespace. Moves this process into another new network namespace, which has
/// the agent's end. Fails in a process with more than one thread.
///
/// # Errors
/// [`NamespaceError`]: the system forbids network namespaces, virtual cables or packet sockets.
pub fn create(node: u16) -> Result<Interface, NamespaceError> {
    let enter_new = || enter_new_network_namespace().map_err(forbidden("a network namespace"));
    let current = || File::open("/proc/self/ns/net").map_err(forbidden("to name a network namespace"));
    enter_new()?;
    let agent = current()?;
    enter_new()?;
    let namespace = current()?;
    let made = with_netlink(async |handle| {
        lay(handle, node, &agent).await.map_err(|error| NamespaceError::Cable {
            cable: format!("{INTERFACE} to the agent of its seat"),
            cause: crate::namespaces::cause_of(error),
        })
    });
    let back = move_into_link_name_space(agent.as_fd(), Some(LinkNameSpaceType::Network));
    made?;
    back.map_err(forbidden("to return to a network namespace"))?;
    switch_on_all(&[AGENT_END.to_owned()], APPEAR_TIMEOUT).map_err(forbidden("to switch an interface on"))?;
    let frames = FrameSocket::open(AGENT_END).map_err(forbidden("a packet socket"))?;
    Ok(Interface { frames, namespace: namespace.into() })
}

async fn lay(handle: &Handle, node: u16, agent: &File) -> Result<(), rtnetlink::Error> {
    let far = LinkMessageBuilder::<LinkUnspec>::new()
        .name(AGENT_END)
        .address(AGENT_ADDRESS.to_vec())
        .mtu(MTU)
        .setns_by_fd(agent.as_raw_fd())
        .build();
    let near = LinkVeth::new(INTERFACE, AGENT_END)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(far)))
        .address(hardware_address_of(node).to_vec())
        .mtu(MTU)
        .build();
    handle.link().add(near).execute().await?;
    let index = index_of(INTERFACE)?;
    handle.address().add(index, address_of(node).into(), PREFIX_BITS).execute().await?;
    for index in [index, index_of("lo")?] {
        let up = LinkMessageBuilder::<LinkUnspec>::new().index(index).up().build();
        handle.link().set(up).execute().await?;
    }
    // Programs that join a group name no interface.
    let (groups, bits) = GROUPS;
    let route =
        RouteMessageBuilder::<Ipv4Addr>::new().destination_prefix(groups, bits).output_interface(index);
    handle.route().add(route.scope(RouteScope::Link).build()).execute().await
}

fn index_of(interface: &str) -> Result<u32, rtnetlink::Error> {
    let index = || -> io::Result<u32> {
        let socket = socket(AddressFamily::UNIX, SocketType::DGRAM, None)?;
        Ok(name_to_index(socket, interface)?)
    };
    index().map_err(|error| rtnetlink::Error::InvalidNla(format!("interface {interface}: {error}")))
}
