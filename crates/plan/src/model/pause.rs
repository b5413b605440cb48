//! Pauses (PFC-like) of a rack file.

const XOFF_BYTES: u32 = 64 << 10;

/// Pauses of a rack file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PausePlan {
    /// Number of bytes in a channel above which the receiver pauses the sender.
    pub xoff_bytes: u32,
    /// Number of bytes at which the sender may resume. `None` is half of `xoff_bytes`.
    pub xon_bytes: Option<u32>,
    /// Buffer above xoff, in bytes. `None` is the number of bytes that can be in flight.
    pub headroom_bytes: Option<u32>,
    /// True if less headroom is accepted, to demonstrate the loss.
    pub allows_short_headroom: bool,
    /// Duration of a pause, in quanta of 512 bit times.
    pub quanta: u16,
    /// Time from the arrival of a pause until its sender stops, in nanoseconds.
    pub response_delay_ns: u64,
    /// Longest pause of data, in nanoseconds. 0 is unlimited.
    pub watchdog_ns: u64,
}

impl Default for PausePlan {
    fn default() -> Self {
        Self {
            xoff_bytes: XOFF_BYTES,
            xon_bytes: None,
            headroom_bytes: None,
            allows_short_headroom: false,
            quanta: u16::MAX,
            response_delay_ns: 0,
            watchdog_ns: 200_000_000,
        }
    }
}

impl PausePlan {
    /// Returns the number of bytes at which a paused sender may resume.
    #[must_use]
    pub fn xon_bytes(&self) -> u32 {
        self.xon_bytes.unwrap_or(self.xoff_bytes / 2)
    }
}
