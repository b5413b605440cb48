//! Hosts: machines that run parts of one rack.
//!
//! All machines read the same file, so they have equal members, links and epoch. Each machine starts its own members. A link whose
//! ends run on different hosts leaves the machine at an interface that the file names. It is a packet wire even if the wire within the
//! hosts is another one. On the udp wire it leaves at an address instead. Its port follows from the link's number, and it may cross
//! routers. A file without hosts is a rack of one machine.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use rackloom_protocol::NodeId;

/// Describes one machine and the members that it runs.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Name, unique in the rack.
    pub name: String,
    /// Members that the host runs.
    pub members: Vec<NodeId>,
    /// Interface of links to other hosts.
    pub interface: Option<String>,
    /// Interfaces of single links, by edge index. They replace `interface`.
    pub interfaces: BTreeMap<usize, String>,
    /// Address of links to other hosts on the udp wire, and address of the host's supervisor.
    pub address: Option<Ipv4Addr>,
    /// Addresses of single links, by edge index. They replace `address`.
    pub addresses: BTreeMap<usize, Ipv4Addr>,
}

impl HostPlan {
    /// Returns the interface of a link, by edge index, or `None` if the file names none.
    #[must_use]
    pub fn interface_of(&self, edge: usize) -> Option<&str> {
        self.interfaces.get(&edge).or(self.interface.as_ref()).map(String::as_str)
    }

    /// Returns the address of a link, by edge index, or `None` if the file names none.
    #[must_use]
    pub fn address_of(&self, edge: usize) -> Option<Ipv4Addr> {
        self.addresses.get(&edge).copied().or(self.address)
    }
}
