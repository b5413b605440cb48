//! Identifiers: small numbers of distinct types.

use core::fmt;

macro_rules! id {
    ($(#[$meta:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// Returns the number as an index.
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
    /// Member of the fabric: a GPU node or a switch. Nodes come first, switches after them; the number is the
    /// member's index in the plan.
    NodeId(u16), "m");
id!(
    /// Port of a member, counted from zero in the order in which the plan lists the member's links.
    PortId(u16), "port");
id!(
    /// Virtual channel of a link.
    Channel(u8), "channel ");
id!(
    /// Plane of a multi-plane rack.
    Plane(u8), "plane");
id!(
    /// Region of a node's memory.
    RegionId(u32), "region");
id!(
    /// Tenant: a partition of the rack. It comes from the plan's seat, never from a message.
    Tenant(u16), "tenant");

/// Incarnation of a member. In virtual time it comes from the plan, in wall time from boot time and randomness; a
/// larger number is a later incarnation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// Returns the 32 bits that routed frames carry, folded so that all bits count.
    #[must_use]
    pub const fn tag(self) -> u32 {
        (self.0 ^ (self.0 >> 32)) as u32
    }
}

/// Secret that a remote caller must present for a region, chosen by the user.
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
    /// Number of classes.
    pub const COUNT: usize = 4;
    /// All classes, in order of their number.
    pub const ALL: [Self; Self::COUNT] = [Self::Request, Self::Reply, Self::Bulk, Self::BulkReply];

    /// Returns the class with this number, if there is one.
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

    /// Returns the class as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    // W-81
    /// Returns the class of the replies to requests of this class.
    #[must_use]
    pub const fn reply(self) -> Self {
        match self {
            Self::Request | Self::Reply => Self::Reply,
            Self::Bulk | Self::BulkReply => Self::BulkReply,
        }
    }

    /// Returns the lower-case name for reports.
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
