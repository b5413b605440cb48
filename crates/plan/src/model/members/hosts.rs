//! Hosts: machines that run parts of one rack.
//!
//! All machines read the same file, so they have equal members, links and epoch. Each machine starts its own members. A link whose
//! ends run on different hosts leaves the machine at an interface that the file names. It is a packet wire even if the wire within the
//! hosts is another one. On the udp wire it leaves at an address instead. Its port follows from the link's number, and it may cross
//! routers. A file without hosts is a rack of one machine.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use rackloom_protocol::NodeId;

use crate::setting::name::Named;
use crate::setting::section::section;
use crate::setting::table::{Kind, REQUIRED};

section! {
    /// Describes one machine and the members that it runs.
    ///
    /// `Send` and `Sync`: plain data.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HostPlan: HOST = "hosts" {
        /// Members that run on this host. Every member, switches too, runs on one host.
        nodes: Vec<NodeId> {
            form = Kind::Names;
            default = Vec::new();
            shown = REQUIRED;
        }
        /// The interface of this host at which its links to other hosts leave. It may carry several links.
        interface: Option<String> {
            form = Kind::Name(Named::Interface);
            default = None;
            shown = "";
        }
        /// The interface of single links instead: `{n1--n2: eth2}`. Each of these links has its other end on another host.
        interfaces: BTreeMap<usize, String> {
            form = Kind::ByLink(&Kind::Name(Named::Interface));
            default = BTreeMap::new();
            shown = "as `interface`";
        }
        /// On the udp wire: the IPv4 address of this host at which its links to other hosts leave, and at which it is found.
        address: Option<Ipv4Addr> {
            form = Kind::Address;
            default = None;
            shown = "";
        }
        /// On the udp wire: the address of single links instead: `{n1--n2: 10.2.0.1}`.
        addresses: BTreeMap<usize, Ipv4Addr> {
            form = Kind::ByLink(&Kind::Address);
            default = BTreeMap::new();
            shown = "as `address`";
        }
    }
    with {
        /// Name, unique in the rack.
        name: String = String::new();
    }
}

impl HostPlan {
    /// Returns a host of this name without members.
    pub(crate) fn named(name: String) -> Self {
        Self { name, ..Self::default() }
    }

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
