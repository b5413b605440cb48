//! Arguments of the hidden command that runs one raw loop.

use clap::{Args, ValueEnum};

/// Raw loop, and the meaning of its figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RawLoop {
    /// Records of 64 B, shown, stored and given back one by one, a window of them in flight; per second
    Ring64Acknowledged,
    /// Stores of 64 B, packed into records, to addresses all over 64 MiB; per second
    Scatter,
    /// Records of 4096 B, shown, stored and given back one by one; per second
    Ring4096,
    /// A record of 64 B there and one back; nanoseconds
    RingRoundTrip,
    /// Copy, flag, add, copy, flag; nanoseconds
    Exchange,
    /// A cache line there and back; nanoseconds
    CacheLine,
    /// A sleeper woken and back, on one processor; nanoseconds
    Wake,
    /// Frames of 64 B over a cable; per second
    Packet64,
    /// Frames of 1500 B; per second
    Packet1500,
    /// Frames of 4096 B; per second
    Packet4096,
    /// Frames of 9000 B; per second
    Packet9000,
    /// A frame of 64 B there and one back; nanoseconds
    PacketRoundTrip,
    /// Datagrams of 1500 B in pieces that the kernel cuts; per second
    SuperFrames1500,
    /// Datagrams of 4240 B in pieces that the kernel cuts; per second
    SuperFrames4240,
    /// Ours, for comparison: packed stores of 64 B on the packet wire; per second
    PackedOnPacket,
    /// Ours: packed stores of 64 B on the udp wire
    PackedOnUdp,
    /// Ours: acknowledged stores of 64 B, a frame each, on the packet wire; per second
    StoresOnPacket,
    /// Ours: puts that fill a frame of the usual size each, on the udp wire; per second
    PutsOnUdp,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LoopArguments {
    /// The loop
    #[arg(value_enum)]
    pub(crate) what: RawLoop,
    /// Number of records, frames or polls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: u64,
}
