//! Addresses of memory that a device can access.

/// Address for the device: its own memory, a peer's that it may use, or pinned memory of the host.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl Address {
    /// Returns the address that is `bytes` higher.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}
