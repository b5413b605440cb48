//! What was allocated and never freed, as a list that a person can read.

use std::fmt;

use rackloom_protocol::{RegionId, Tenant};

/// An allocation that is still alive.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leak {
    /// Where.
    pub region: RegionId,
    /// First byte.
    pub offset: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Who asked.
    pub tenant: Tenant,
    /// What it said it was for.
    pub tag: String,
}

/// All of them, in the order of addresses.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeakReport {
    /// One entry per allocation.
    pub leaks: Vec<Leak>,
}

impl LeakReport {
    /// Whether everything was freed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.leaks.is_empty()
    }

    /// Bytes asked for and not freed.
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
