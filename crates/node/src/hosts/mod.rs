//! Links between machines: sockets on an interface of the machine itself, which a rack shares with everybody there.
//!
//! Members live in network namespaces of their own and see no interface of the machine. So the supervisor opens the sockets
//! where it was started, before it leaves for a namespace of its own, and members inherit them; a socket belongs to the
//! namespace in which it was opened, wherever its owner goes. The right to open packet sockets is needed once, by the
//! supervisor, and by nobody else.
//!
//! One interface carries many links. The kernel gives each socket the frames of its own link (`filter`), and the
//! interface is asked to take in frames for the members' addresses beside its own.
//!
//! What becomes of the interface (its carrier, its MTU) is heard there too: each link has a netlink socket of its own, opened
//! beside the others, so a member feels a cut at once and not by missing heartbeats.
//!
//! Hosts that share no segment reach each other by datagrams, whose addresses the rack file names (`routed`).
//!
//! Nothing here changes an interface, and nothing here knows what a frame means.

pub(crate) mod filter;
mod routed;
mod socket;

pub use routed::{RoutedWords, open_routed_link};
pub use socket::{HostLink, HostLinkError, WordSocket, open_link};
