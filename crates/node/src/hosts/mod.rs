//! Links between machines: sockets on an interface of the machine itself, which a rack shares with other programs.
//!
//! Members live in network namespaces of their own and have no access to the machine's interfaces. The supervisor therefore opens the sockets where
//! it was started, before it enters a namespace of its own, and members inherit them. A socket belongs to the namespace in which it was opened,
//! wherever its owner moves. Only the supervisor needs the right to open packet sockets, and only once.
//!
//! One interface carries many links. The kernel gives each socket the frames of its own link (`filter`). The interface is set to receive frames for
//! the members' addresses in addition to its own.
//!
//! Changes of the interface (its carrier, its MTU) are reported in that namespace too. Each link has a netlink socket of its own, opened with the
//! others, so a member detects a cut at once and not by missing heartbeats.
//!
//! Hosts that share no segment reach each other by datagrams, whose addresses the rack file names (`routed`).
//!
//! This module changes no interface and does not interpret frames.

pub(crate) mod filter;
mod routed;
mod socket;

pub use routed::{RoutedMessages, open_routed_link};
pub use socket::{HostLink, HostLinkError, MessageSocket, open_link};
