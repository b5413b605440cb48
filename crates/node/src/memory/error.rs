//! Why memory was not given, or not taken back: values with the numbers that a person needs to mend it.

use std::io;

use rackloom_protocol::{RegionId, Tenant};

/// A tenant's limit would be exceeded.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("quota of {tenant} exceeded: {asked} bytes asked, {used} of {limit} used")]
pub struct QuotaExceeded {
    /// Whose.
    pub tenant: Tenant,
    /// Bytes asked for; of a pool, rounded as they would have been taken.
    pub asked: u64,
    /// Bytes that it has.
    pub used: u64,
    /// Bytes that it may have.
    pub limit: u64,
}

/// Why a region was not added. The memory is as it was before.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AllocateError {
    /// There is one of this name.
    #[error("{0} exists already")]
    Exists(RegionId),
    /// The member has no more.
    #[error(
        "{region}: no room in the node's memory: {asked} bytes asked, {used} of {limit} used; hint: give the node more \
         memory or the job less to do"
    )]
    NodeFull {
        /// Which region.
        region: RegionId,
        /// Bytes asked for.
        asked: u64,
        /// Bytes of the regions that are there.
        used: u64,
        /// Bytes that the member has.
        limit: u64,
    },
    /// The tenant has no more.
    #[error("{region}: {exceeded}; hint: raise the tenant's `memory_max`")]
    Quota {
        /// Which region.
        region: RegionId,
        /// Whose limit, and by how much.
        exceeded: QuotaExceeded,
    },
    /// The system gave no memory, or not as it was demanded.
    #[error("{region}: {cause}")]
    System {
        /// Which region.
        region: RegionId,
        /// What was refused, and why.
        cause: io::Error,
    },
}

/// Why a region was not freed.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FreeRefused {
    /// There is no such region.
    #[error("{0} does not exist")]
    NoSuchRegion(RegionId),
    /// Importers free first, then the exporter withdraws, then the owner frees.
    #[error("{0} is exported; hint: withdraw the export first")]
    Exported(RegionId),
    /// It lies on a device that has failed.
    #[error("the device of {0} has failed and gives nothing back; hint: the end of the process frees it")]
    DeviceFailed(RegionId),
}

impl From<AllocateError> for io::Error {
    /// For callers that only pass it on.
    fn from(error: AllocateError) -> Self {
        let kind = match &error {
            AllocateError::Exists(_) => io::ErrorKind::AlreadyExists,
            AllocateError::NodeFull { .. } | AllocateError::Quota { .. } => io::ErrorKind::QuotaExceeded,
            AllocateError::System { cause, .. } => cause.kind(),
        };
        Self::new(kind, error)
    }
}
