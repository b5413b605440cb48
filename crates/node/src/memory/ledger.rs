//! What a member's memory takes now and took at most, and what it may take.
//!
//! *Reserved* is what the system was asked for, in whole pages; *used* is what callers asked for. Limits hold for what is
//! used, because that is what a rack file counts. The same numbers describe a pool on top of the memory.
//!
//! Nothing here allocates; who does asks [`Ledger::check`] first.

use rackloom_protocol::{RegionId, Tenant};

use super::error::{AllocateError, QuotaExceeded};

/// An amount in bytes, now and at most since the last reset.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Now.
    pub current: u64,
    /// At most.
    pub high: u64,
}

impl Usage {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.current += bytes;
        self.high = self.high.max(self.current);
    }

    pub(crate) fn remove(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.current);
        self.current -= bytes;
    }

    pub(crate) fn reset_high(&mut self) {
        self.high = self.current;
    }
}

/// Numbers of a memory or of a pool.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Bytes taken from the system.
    pub reserved: Usage,
    /// Bytes that callers hold: of a memory as asked for, of a pool in whole granules.
    pub used: Usage,
    /// Regions or blocks that are alive.
    pub blocks: usize,
    /// Regions or blocks handed out so far.
    pub allocations: u64,
    /// Regions or blocks taken back so far.
    pub frees: u64,
}

impl Statistics {
    pub(crate) fn hand_out(&mut self, used: u64) {
        self.used.add(used);
        self.blocks += 1;
        self.allocations += 1;
    }

    pub(crate) fn take_back(&mut self, used: u64) {
        self.used.remove(used);
        self.blocks -= 1;
        self.frees += 1;
    }
}

/// What one tenant may have at this member.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantLimit {
    /// Whose regions these are.
    pub tenant: Tenant,
    /// Bytes of all of them together.
    pub bytes_max: u64,
}

/// What a member's memory may take. Nothing is limited by default.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryLimits {
    /// Bytes of all regions of the member together.
    pub node_bytes_max: Option<u64>,
    /// What its tenant may have of that.
    pub tenant: Option<TenantLimit>,
}

impl MemoryLimits {
    /// The same with at most so many bytes in all regions of the member together.
    #[must_use]
    pub const fn node(self, bytes_max: u64) -> Self {
        Self { node_bytes_max: Some(bytes_max), ..self }
    }

    /// The same with a limit for its tenant, or without one.
    #[must_use]
    pub const fn tenant(self, tenant: Option<TenantLimit>) -> Self {
        Self { tenant, ..self }
    }
}

/// The count of one member's regions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ledger {
    pub(super) limits: MemoryLimits,
    pub(super) statistics: Statistics,
}

impl Ledger {
    /// Whether another region may have this many bytes.
    pub(super) fn check(&self, region: RegionId, asked: u64) -> Result<(), AllocateError> {
        let used = self.statistics.used.current;
        let is_beyond = |limit: u64| used.checked_add(asked).is_none_or(|sum| sum > limit);
        if let Some(limit) = self.limits.node_bytes_max.filter(|limit| is_beyond(*limit)) {
            return Err(AllocateError::NodeFull { region, asked, used, limit });
        }
        if let Some(TenantLimit { tenant, bytes_max }) =
            self.limits.tenant.filter(|limit| is_beyond(limit.bytes_max))
        {
            let exceeded = QuotaExceeded { tenant, asked, used, limit: bytes_max };
            return Err(AllocateError::Quota { region, exceeded });
        }
        Ok(())
    }

    pub(super) fn add(&mut self, reserved: u64, used: u64) {
        self.statistics.reserved.add(reserved);
        self.statistics.hand_out(used);
    }

    pub(super) fn remove(&mut self, reserved: u64, used: u64) {
        self.statistics.reserved.remove(reserved);
        self.statistics.take_back(used);
    }
}
