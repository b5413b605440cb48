//! Media of frames, end-to-end checks, and payload modes.

use crate::setting::word::words;

words! {
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

words! {
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

words! {
    /// Treatment of the payload of long transfers, in virtual time. Times and events are equal in all modes.
    pub enum PayloadMode {
        /// All bytes are moved.
        #[default]
        Full = "full",
        /// No bytes are moved, so data cannot be checked.
        Elided = "elided",
    }
}

words! {
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
