//! Accounting of a member's memory: current usage, maximum usage, and limits.
//!
//! *Reserved* is the memory requested from the system, in whole pages. *Used* is the memory requested by callers. Limits apply to *used*, because a
//! rack file counts that. A pool on top of the memory has the same numbers.
//!
//! This file does not allocate. Callers that allocate call [`Ledger::check`] first.

use rackloom_protocol::{RegionId, Tenant};

use super::error::{AllocateError, QuotaExceeded};

/// An amount in bytes: current value, and maximum since the last reset.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Current value, in bytes.
    pub current: u64,
    /// Maximum since the last reset, in bytes.
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

/// Statistics of a memory or of a pool.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Bytes taken from the system.
    pub reserved: Usage,
    /// Bytes that callers hold: of a memory as requested, of a pool in whole granules.
    pub used: Usage,
    /// Number of existing regions or blocks.
    pub blocks: usize,
    /// Number of regions or blocks allocated so far.
    pub allocations: u64,
    /// Number of regions or blocks freed so far.
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

/// Limit of one tenant at this member.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantLimit {
    /// Tenant that owns the regions.
    pub tenant: Tenant,
    /// Limit of all its regions together, in bytes.
    pub bytes_max: u64,
}

/// Limits of a member's memory. Nothing is limited by default.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryLimits {
    /// Limit of all regions of the member together, in bytes.
    pub node_bytes_max: Option<u64>,
    /// Limit of the member's tenant.
    pub tenant: Option<TenantLimit>,
}

impl MemoryLimits {
    /// Sets the limit of all regions of the member together, in bytes.
    #[must_use]
    pub const fn node(self, bytes_max: u64) -> Self {
        Self { node_bytes_max: Some(bytes_max), ..self }
    }

    /// Sets or removes the limit of the member's tenant.
    #[must_use]
    pub const fn tenant(self, tenant: Option<TenantLimit>) -> Self {
        Self { tenant, ..self }
    }
}

/// Accounts of one member's regions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ledger {
    pub(super) limits: MemoryLimits,
    pub(super) statistics: Statistics,
}

impl Ledger {
    /// Returns an error if another region of `requested` bytes would exceed a limit.
    pub(super) fn check(&self, region: RegionId, requested: u64) -> Result<(), AllocateError> {
        let used = self.statistics.used.current;
        let is_beyond = |limit: u64| used.checked_add(requested).is_none_or(|sum| sum > limit);
        if let Some(limit) = self.limits.node_bytes_max.filter(|limit| is_beyond(*limit)) {
            return Err(AllocateError::NodeFull { region, requested, used, limit });
        }
        if let Some(TenantLimit { tenant, bytes_max }) =
            self.limits.tenant.filter(|limit| is_beyond(limit.bytes_max))
        {
            let exceeded = QuotaExceeded { tenant, requested, used, limit: bytes_max };
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
