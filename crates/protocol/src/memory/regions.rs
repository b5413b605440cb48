//! Regions of this member and their access checks, which the receiver makes before any byte moves.

use alloc::vec::Vec;

use super::RegionConfig;
use crate::error::OperationError;
use crate::ids::{Key, RegionId, Tenant};

/// Kinds of remote access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Load, get.
    Read,
    /// Store, put, signal.
    Write,
    /// Fetch-add, compare-swap, swap.
    Atomic,
}

#[derive(Clone, Copy, Debug)]
struct Region {
    config: RegionConfig,
    revoked: bool,
}

/// Table of a member's regions.
#[derive(Debug, Default)]
pub struct Regions {
    table: Vec<Region>,
}

impl Regions {
    /// Registers a region. Returns false if a registered one has that number.
    pub fn register(&mut self, config: RegionConfig) -> bool {
        if self.get(config.region).is_some_and(|region| !region.revoked) {
            return false;
        }
        self.table.retain(|region| region.config.region != config.region);
        self.table.push(Region { config, revoked: false });
        true
    }

    /// Removes a region: every later check of it fails.
    pub fn revoke(&mut self, region: RegionId) {
        if let Some(region) = self.table.iter_mut().find(|known| known.config.region == region) {
            region.revoked = true;
        }
    }

    fn get(&self, region: RegionId) -> Option<&Region> {
        self.table.iter().find(|known| known.config.region == region)
    }

    /// Returns true if the member's own caller may use this range.
    #[must_use]
    pub fn holds(&self, region: RegionId, offset: u64, length: u64) -> bool {
        self.get(region).is_some_and(|region| {
            !region.revoked && Granted { length: region.config.length }.holds(offset, length)
        })
    }

    /// Checks an access of a caller of `tenant` who presents `key`.
    pub fn check(
        &self,
        region: RegionId,
        key: Key,
        tenant: Tenant,
        need: Need,
        offset: u64,
        length: u64,
    ) -> Result<(), OperationError> {
        let granted = self.grant(region, key, tenant, need)?;
        if granted.holds(offset, length) { Ok(()) } else { Err(OperationError::OutOfBounds) }
    }

    /// Checks an access without its range. Returns the part of the region that the caller may access.
    #[inline]
    pub fn grant(
        &self,
        region: RegionId,
        key: Key,
        tenant: Tenant,
        need: Need,
    ) -> Result<Granted, OperationError> {
        let found = self.get(region).ok_or(OperationError::NoSuchRegion)?;
        if found.config.tenant != tenant {
            return Err(OperationError::WrongTenant);
        }
        if found.config.key != key {
            return Err(OperationError::BadKey);
        }
        if found.revoked {
            return Err(OperationError::Revoked);
        }
        let access = found.config.access;
        let allowed = match need {
            Need::Read => access.read,
            Need::Write => access.write,
            Need::Atomic => access.atomic,
        };
        if !allowed {
            return Err(OperationError::PermissionDenied);
        }
        Ok(Granted { length: found.config.length })
    }
}

/// Region that a caller may access completely.
#[derive(Clone, Copy, Debug)]
pub struct Granted {
    length: u64,
}

impl Granted {
    /// Returns true if a range is within the region.
    #[must_use]
    #[inline]
    pub const fn holds(self, offset: u64, length: u64) -> bool {
        match offset.checked_add(length) {
            Some(end) => end <= self.length,
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Access;

    const REGION: RegionConfig = RegionConfig {
        region: RegionId(3),
        length: 100,
        key: Key(7),
        access: Access { read: true, write: true, atomic: false },
        tenant: Tenant(1),
    };

    fn check(need: Need, key: u64, tenant: u16, offset: u64, length: u64) -> Result<(), OperationError> {
        let mut regions = Regions::default();
        regions.register(REGION);
        regions.check(RegionId(3), Key(key), Tenant(tenant), need, offset, length)
    }

    #[test]
    fn every_refusal_has_its_error() {
        assert_eq!(check(Need::Write, 7, 1, 0, 100), Ok(()));
        assert_eq!(check(Need::Write, 7, 1, 1, 100), Err(OperationError::OutOfBounds));
        assert_eq!(check(Need::Write, 7, 1, u64::MAX, 2), Err(OperationError::OutOfBounds));
        assert_eq!(check(Need::Write, 8, 1, 0, 1), Err(OperationError::BadKey));
        assert_eq!(check(Need::Write, 7, 2, 0, 1), Err(OperationError::WrongTenant));
        assert_eq!(check(Need::Atomic, 7, 1, 0, 8), Err(OperationError::PermissionDenied));
    }

    #[test]
    fn a_revoked_region_stays_refused_until_it_is_registered_anew() {
        let mut regions = Regions::default();
        assert!(regions.register(REGION));
        assert!(!regions.register(REGION));
        regions.revoke(RegionId(3));
        let refused = regions.check(RegionId(3), Key(7), Tenant(1), Need::Read, 0, 1);
        assert_eq!(refused, Err(OperationError::Revoked));
        assert!(!regions.holds(RegionId(3), 0, 1));
        assert!(regions.register(RegionConfig { key: Key(9), ..REGION }));
        assert_eq!(regions.check(RegionId(3), Key(9), Tenant(1), Need::Read, 0, 1), Ok(()));
    }
}
