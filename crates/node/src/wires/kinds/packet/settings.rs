//! Settings of the packet wire.

use rackloom_plan::Reception;
use rackloom_protocol::CreditConfig;

/// Settings of a port, from its link.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// EtherType of every frame.
    pub ether_type: u16,
    /// Length of the longest frame, in bytes. Longer frames are not received.
    pub frame_bytes_max: u16,
    /// Credits of the neighbour: what it may have in flight.
    pub credits: CreditConfig,
    /// Reception of frames.
    pub reception: Reception,
}
