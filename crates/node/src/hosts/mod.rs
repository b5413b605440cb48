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
//! Nothing here changes an interface, and nothing here knows what a frame means.

pub(crate) mod filter;
mod socket;

pub use socket::{HostLink, HostLinkError, WordSocket, open_link};
