//! Events of connection management, as a program gets them.

use super::message::Side;

/// Kind of an event. Values are those of `enum rdma_cm_event_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// The address is resolved.
    AddressResolved = 0,
    /// The address leads nowhere.
    AddressError = 1,
    /// The route is resolved.
    RouteResolved = 2,
    /// A peer requests a connection.
    ConnectRequest = 4,
    /// The peer has accepted. The program makes its queue pair ready and establishes the connection.
    ConnectResponse = 5,
    /// The queue pair could not be made ready.
    ConnectError = 6,
    /// The peer is not reached, or gives no answer.
    Unreachable = 7,
    /// The request is rejected.
    Rejected = 8,
    /// The connection is established.
    Established = 9,
    /// The connection has ended.
    Disconnected = 10,
}

/// Identifier that a request has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// Number of the identifier.
    pub number: u64,
    /// Node that sent the request.
    pub node: u32,
    /// Port of the sender.
    pub port: u16,
    /// Port of the listener.
    pub own_port: u16,
}

/// Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Number of the identifier that the event is for: of the listener, for a request.
    pub id: u64,
    /// Kind.
    pub kind: Kind,
    /// 0, a negative error number, or the reason of a rejection.
    pub status: i32,
    /// Peer, for events about a connection.
    pub side: Side,
    /// Retries without an answer, of a request.
    pub retry_count: u8,
    /// New identifier, for a request.
    pub child: Option<Child>,
    /// Private data of the peer.
    pub data: Vec<u8>,
}

impl Event {
    /// Returns an event without data.
    pub(super) fn new(id: u64, kind: Kind, status: i32) -> Self {
        Self { id, kind, status, side: Side::default(), retry_count: 0, child: None, data: Vec::new() }
    }
}
