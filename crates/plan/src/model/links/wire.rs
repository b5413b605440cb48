//! Media of frames, end-to-end checks, and payload modes.

use crate::setting::named_value::named_values;

named_values! {
    /// Medium that carries frames between real processes.
    pub enum WireKind {
        /// Rings in shared memory that carry whole Ethernet frames.
        #[default]
        SharedMemory = "shared-memory",
        /// Raw Ethernet frames over virtual interfaces in network namespaces that the run creates.
        Packet = "packet",
        /// Ethernet frames in UDP datagrams over the loopback interface; no root, no namespaces.
        Udp = "udp",
    }
}

/// Memory in which frames of one direction of a link wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameBuffer {
    /// A ring between the two processes, of the size that the key `ring_bytes` states.
    Ring,
    /// A ring that the kernel shares with the process, of the size that follows from the link's credits.
    KernelRing,
    /// The receive buffer of a socket. The kernel allocates its memory as frames arrive.
    Socket,
}

/// Name under which a link finds the other host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEnd {
    /// An interface of the host, on a segment that both hosts share.
    Interface,
    /// An address of the host; routers may be between the hosts.
    Address,
}

/// Properties of a wire on which other parts of a rack depend. A new wire states them here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireProperties {
    /// Bytes of one credit, unless the rack file states them.
    pub unit_bytes: u16,
    /// Bytes that a frame occupies in the buffer in addition to its own, unless the rack file states them.
    pub overhead_bytes: u16,
    /// Memory in which frames wait.
    pub buffer: FrameBuffer,
    /// Wire of links between hosts in a rack of this wire.
    pub between_hosts: WireKind,
    /// End of those links.
    pub host_end: HostEnd,
}

impl WireKind {
    /// Returns the properties of this wire.
    #[must_use]
    pub const fn properties(self) -> WireProperties {
        // The kernel accounts about 1 KiB per frame in addition to its bytes.
        let packet = WireProperties {
            unit_bytes: 256,
            overhead_bytes: 1024,
            buffer: FrameBuffer::KernelRing,
            between_hosts: Self::Packet,
            host_end: HostEnd::Interface,
        };
        match self {
            Self::SharedMemory => {
                WireProperties { unit_bytes: 128, overhead_bytes: 16, buffer: FrameBuffer::Ring, ..packet }
            }
            Self::Packet => packet,
            Self::Udp => WireProperties {
                buffer: FrameBuffer::Socket,
                between_hosts: Self::Udp,
                host_end: HostEnd::Address,
                ..packet
            },
        }
    }

    /// Returns true if frames wait in a ring of `ring_bytes`.
    #[must_use]
    pub fn has_rings(self) -> bool {
        self.properties().buffer == FrameBuffer::Ring
    }

    /// Returns true if hosts find each other by address, and false if by interface.
    #[must_use]
    pub fn has_host_addresses(self) -> bool {
        self.properties().host_end == HostEnd::Address
    }
}

named_values! {
    /// Reception of frames on the packet wire. Frames are equal in all modes.
    pub enum Reception {
        /// The ring, or what the system has instead.
        #[default]
        Auto = "auto",
        /// Through a ring that the kernel fills in shared memory.
        Ring = "ring",
        /// In batches, with a system call for each.
        Batches = "batches",
        /// One by one, with a system call for each, in both directions.
        Portable = "portable",
    }
}

named_values! {
    /// Treatment of the payload of long transfers, in virtual time. Times and events are equal in all modes.
    pub enum PayloadMode {
        /// All bytes are moved.
        #[default]
        Full = "full",
        /// No bytes are moved. Collectives are checked by fingerprints.
        Elided = "elided",
    }
}

named_values! {
    /// Condition under which frames carry the end-to-end check.
    pub enum Checks {
        /// Frames carry it if they can be corrupted: on a wire of the kernel, or on a link with corruption.
        #[default]
        Auto = "auto",
        /// Frames always carry it.
        Always = "always",
        /// Frames never carry it. A plan with corruption is refused.
        Never = "never",
    }
}
