//! Report of the blocks that were allocated and never freed.

use std::fmt;

use rackloom_protocol::{RegionId, Tenant};

/// An allocation that has not been freed.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leak {
    /// Region of the block.
    pub region: RegionId,
    /// Offset of the first byte within the region.
    pub offset: u64,
    /// Requested size, in bytes.
    pub bytes: u64,
    /// Tenant that allocated the block.
    pub tenant: Tenant,
    /// Tag that the tenant gave.
    pub tag: String,
}

/// All blocks that have not been freed, in address order.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeakReport {
    /// One entry per allocation.
    pub leaks: Vec<Leak>,
}

impl LeakReport {
    /// Returns whether every block was freed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.leaks.is_empty()
    }

    /// Returns the requested bytes that have not been freed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.leaks.iter().map(|leak| leak.bytes).sum()
    }
}

impl fmt::Display for LeakReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_clean() {
            return write!(formatter, "nothing leaked");
        }
        write!(formatter, "{} allocations with {} bytes leaked", self.leaks.len(), self.bytes())?;
        for Leak { region, offset, bytes, tenant, tag } in &self.leaks {
            write!(formatter, "\n  {region} + {offset:#x}: {bytes} bytes of {tenant}, {tag}")?;
        }
        Ok(())
    }
}
