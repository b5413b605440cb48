//! Media of frames, end-to-end checks, and payload modes.

use crate::model::words::words;

/// Medium that carries frames between real processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WireKind {
    /// A ring in shared memory per link direction.
    #[default]
    SharedMemory,
    /// AF_PACKET on a pair of Ethernet devices.
    Packet,
    /// UDP datagrams with the frames as payload.
    Udp,
}

words! {
    /// Treatment of the payload of long transfers, in virtual time. Times and events are equal in all modes.
    pub enum PayloadMode {
        /// All bytes are moved.
        #[default]
        Full = "full",
        /// A fingerprint of each block is moved in place of its bytes, and checks compare fingerprints.
        Shadow = "shadow",
        /// No bytes are moved, so data cannot be checked.
        Elided = "elided",
    }
}

/// Condition under which frames carry the end-to-end check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// Frames carry it if they can be corrupted: on a wire of the kernel, or on a link with corruption.
    #[default]
    Auto,
    /// Frames always carry it.
    Always,
    /// Frames never carry it. A plan with corruption is refused.
    Never,
}

impl WireKind {
    /// All wires, the default first.
    pub const ALL: [Self; 3] = [Self::SharedMemory, Self::Packet, Self::Udp];

    /// Returns the name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SharedMemory => "shared-memory",
            Self::Packet => "packet",
            Self::Udp => "udp",
        }
    }
}
