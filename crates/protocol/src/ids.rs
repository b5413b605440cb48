//! Names of things: small numbers that cannot be mixed up.

use core::fmt;

macro_rules! id {
    ($(#[$meta:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// The number as an index.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A member of the fabric: a GPU node or a switch. Nodes come first, switches after them; the number
    /// is the member's place in the plan.
    NodeId(u16), "m");
id!(
    /// One port of one member, counted from zero in the order in which the plan lists the member's links.
    PortId(u16), "port");
id!(
    /// One virtual channel of a link.
    Channel(u8), "channel ");
id!(
    /// One plane of a multi-plane rack.
    Plane(u8), "plane");
id!(
    /// A region of a node's memory.
    RegionId(u32), "region");
id!(
    /// A partition of the rack. It comes from the plan's seat, never from a message.
    Tenant(u16), "tenant");

/// One life of one member. In virtual time it comes from the plan, in wall time from boot time and randomness;
/// a larger number is a later life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// The 32 bits that routed frames carry (folded, so that both halves count).
    #[must_use]
    pub const fn tag(self) -> u32 {
        (self.0 ^ (self.0 >> 32)) as u32
    }
}

/// The secret that a remote caller must present for a region. User-chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

/// Message class. Each (source, destination, class) has a packet sequence of its own.
///
/// Requests and replies never share a class, so a reply never waits behind a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// Store, load, atomic, signal.
    Request = 0,
    /// Replies to loads and atomics, refusals.
    Reply = 1,
    /// Put segments with their signal, get requests.
    Bulk = 2,
    /// Data of gets.
    BulkReply = 3,
}

impl Class {
    /// How many classes there are.
    pub const COUNT: usize = 4;
    /// All classes, in order of their number.
    pub const ALL: [Self; Self::COUNT] = [Self::Request, Self::Reply, Self::Bulk, Self::BulkReply];

    /// The class with this number, if there is one.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Request),
            1 => Some(Self::Reply),
            2 => Some(Self::Bulk),
            3 => Some(Self::BulkReply),
            _ => None,
        }
    }

    /// The class as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    // W-81
    /// The class in which replies to requests of this class travel.
    #[must_use]
    pub const fn reply(self) -> Self {
        match self {
            Self::Request | Self::Reply => Self::Reply,
            Self::Bulk | Self::BulkReply => Self::BulkReply,
        }
    }

    /// Lower-case name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Reply => "reply",
            Self::Bulk => "bulk",
            Self::BulkReply => "bulk-reply",
        }
    }
}
