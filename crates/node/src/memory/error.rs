//! Errors of allocating and freeing memory, with the numbers that help to fix them.

use std::io;

use rackloom_protocol::{RegionId, Tenant};

/// Error: an allocation would exceed a tenant's limit.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("quota of {tenant} exceeded: {requested} bytes requested, {used} of {limit} used")]
pub struct QuotaExceeded {
    /// Tenant whose limit it is.
    pub tenant: Tenant,
    /// Requested bytes. For a pool, rounded up to granules.
    pub requested: u64,
    /// Bytes that the tenant uses.
    pub used: u64,
    /// Limit of the tenant, in bytes.
    pub limit: u64,
}

/// Error of adding a region. The memory is unchanged.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AllocateError {
    /// A region of this number exists already.
    #[error("{0} exists already")]
    Exists(RegionId),
    /// The member's memory limit would be exceeded.
    #[error(
        "{region}: no space in the node's memory: {requested} bytes requested, {used} of {limit} used; hint: give the node more \
         memory or the job less to do"
    )]
    NodeFull {
        /// Number of the region.
        region: RegionId,
        /// Requested bytes.
        requested: u64,
        /// Bytes of the existing regions.
        used: u64,
        /// Limit of the member, in bytes.
        limit: u64,
    },
    /// The tenant's limit would be exceeded.
    #[error("{region}: {exceeded}; hint: raise the tenant's `memory_max`")]
    Quota {
        /// Number of the region.
        region: RegionId,
        /// The limit, and the amounts.
        exceeded: QuotaExceeded,
    },
    /// The system has no memory, or cannot meet a requirement.
    #[error("{region}: {cause}")]
    System {
        /// Number of the region.
        region: RegionId,
        /// Error of the system, with what was refused.
        cause: io::Error,
    },
}

/// Error of freeing a region.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FreeRefused {
    /// There is no such region.
    #[error("{0} does not exist")]
    NoSuchRegion(RegionId),
    /// The region is exported. Importers free first, then the exporter withdraws the export, then the owner frees.
    #[error("{0} is exported; hint: withdraw the export first")]
    Exported(RegionId),
    /// The region lies on a device that has failed.
    #[error("the device of {0} has failed and gives nothing back; hint: the end of the process frees it")]
    DeviceFailed(RegionId),
}

impl From<AllocateError> for io::Error {
    /// Converts the error for callers that only pass it on.
    fn from(error: AllocateError) -> Self {
        let kind = match &error {
            AllocateError::Exists(_) => io::ErrorKind::AlreadyExists,
            AllocateError::NodeFull { .. } | AllocateError::Quota { .. } => io::ErrorKind::QuotaExceeded,
            AllocateError::System { cause, .. } => cause.kind(),
        };
        Self::new(kind, error)
    }
}
