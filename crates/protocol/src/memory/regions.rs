//! Regions of this member and their access checks, which the receiver makes before any byte moves.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Access, RegionConfig};
use crate::error::OperationError;
use crate::ids::{Key, NodeId, RegionId, Tenant};

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

/// Member that accesses a region, as the plan and the frame say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Number of the member.
    pub node: NodeId,
    /// Tenant of the member.
    pub tenant: Tenant,
}

#[derive(Clone, Copy, Debug)]
struct Region {
    config: RegionConfig,
    revoked: bool,
}

/// Largest number of revoked regions that are remembered. Accesses to older ones are refused as to unknown regions.
const REVOKED_MAX: usize = 1024;

/// Table of a member's regions. A lookup takes logarithmic time, for members with thousands of regions.
#[derive(Debug, Default)]
pub struct Regions {
    /// Sorted by number.
    table: Vec<Region>,
    /// Revoked regions, oldest first. A region that was registered again meanwhile may still be listed.
    revoked: VecDeque<RegionId>,
    /// Access rights of single members, in place of those of the region. Sorted by region and member.
    rights: Vec<(RegionId, NodeId, Access)>,
}

impl Regions {
    /// Registers a region. Returns false if a registered one has that number.
    pub fn register(&mut self, config: RegionConfig) -> bool {
        let region = Region { config, revoked: false };
        match self.position(config.region) {
            Ok(index) if self.table[index].revoked => self.table[index] = region,
            Ok(_) => return false,
            Err(index) => self.table.insert(index, region),
        }
        true
    }

    /// Removes a region: every later check of it fails.
    pub fn revoke(&mut self, region: RegionId) {
        let Ok(index) = self.position(region) else { return };
        if !core::mem::replace(&mut self.table[index].revoked, true) {
            self.rights.retain(|(known, _, _)| *known != region);
            self.revoked.push_back(region);
            self.forget_oldest();
        }
    }

    /// Sets the access rights of one member to a region, in place of those of the region, until the region is revoked. `None` removes them.
    pub fn set_access(&mut self, region: RegionId, node: NodeId, access: Option<Access>) {
        let place = self.rights.binary_search_by_key(&(region, node), |(region, node, _)| (*region, *node));
        match (place, access) {
            (Ok(index), Some(access)) => self.rights[index].2 = access,
            (Ok(index), None) => drop(self.rights.remove(index)),
            (Err(index), Some(access)) => self.rights.insert(index, (region, node, access)),
            (Err(_), None) => {}
        }
    }

    /// Returns the access rights of a member to a region whose own rights are `otherwise`.
    #[inline]
    fn access(&self, region: RegionId, node: NodeId, otherwise: Access) -> Access {
        if self.rights.is_empty() {
            return otherwise;
        }
        let place = self.rights.binary_search_by_key(&(region, node), |(region, node, _)| (*region, *node));
        place.map_or(otherwise, |index| self.rights[index].2)
    }

    /// Returns the access rights of a member to a region, or `None` if there is no such region.
    #[must_use]
    pub fn access_of(&self, region: RegionId, node: NodeId) -> Option<Access> {
        let found = self.get(region).filter(|found| !found.revoked)?;
        Some(self.access(region, node, found.config.access))
    }

    fn forget_oldest(&mut self) {
        if self.revoked.len() <= REVOKED_MAX {
            return;
        }
        let Some(Ok(index)) = self.revoked.pop_front().map(|oldest| self.position(oldest)) else { return };
        let is_listed_again = self.revoked.contains(&self.table[index].config.region);
        if self.table[index].revoked && !is_listed_again {
            self.table.remove(index);
        }
    }

    fn position(&self, region: RegionId) -> Result<usize, usize> {
        self.table.binary_search_by_key(&region, |known| known.config.region)
    }

    fn get(&self, region: RegionId) -> Option<&Region> {
        self.position(region).ok().map(|index| &self.table[index])
    }

    /// Returns true if the member's own caller may use this range.
    #[must_use]
    pub fn holds(&self, region: RegionId, offset: u64, length: u64) -> bool {
        self.get(region).is_some_and(|region| {
            !region.revoked && Granted { length: region.config.length }.holds(offset, length)
        })
    }

    /// Checks an access of a caller who presents `key`.
    pub fn check(
        &self,
        region: RegionId,
        key: Key,
        caller: Caller,
        need: Need,
        offset: u64,
        length: u64,
    ) -> Result<(), OperationError> {
        let granted = self.grant(region, key, caller, need)?;
        if granted.holds(offset, length) { Ok(()) } else { Err(OperationError::OutOfBounds) }
    }

    /// Checks an access without its range. Returns the part of the region that the caller may access.
    #[inline]
    pub fn grant(
        &self,
        region: RegionId,
        key: Key,
        caller: Caller,
        need: Need,
    ) -> Result<Granted, OperationError> {
        let found = self.get(region).ok_or(OperationError::NoSuchRegion)?;
        if found.config.tenant != caller.tenant {
            return Err(OperationError::WrongTenant);
        }
        if found.config.key != key {
            return Err(OperationError::BadKey);
        }
        if found.revoked {
            return Err(OperationError::Revoked);
        }
        let access = self.access(region, caller.node, found.config.access);
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
    const REGION: RegionConfig = RegionConfig {
        region: RegionId(3),
        length: 100,
        key: Key(7),
        access: Access { read: true, write: true, atomic: false },
        tenant: Tenant(1),
    };

    const fn caller(tenant: u16) -> Caller {
        Caller { node: NodeId(5), tenant: Tenant(tenant) }
    }

    fn check(need: Need, key: u64, tenant: u16, offset: u64, length: u64) -> Result<(), OperationError> {
        let mut regions = Regions::default();
        regions.register(REGION);
        regions.check(RegionId(3), Key(key), caller(tenant), need, offset, length)
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
    fn the_memory_of_revoked_regions_is_bounded() {
        let mut regions = Regions::default();
        let count = 4 * REVOKED_MAX as u32;
        for number in 0..count {
            assert!(regions.register(RegionConfig { region: RegionId(number), ..REGION }));
            regions.revoke(RegionId(number));
            // A number that is used again and again is one entry.
            assert!(regions.register(RegionConfig { region: RegionId(u32::MAX), ..REGION }));
            regions.revoke(RegionId(u32::MAX));
        }
        assert!(regions.table.len() <= REVOKED_MAX + 1 && regions.revoked.len() <= REVOKED_MAX);
        let check = |number| regions.check(RegionId(number), Key(7), caller(1), Need::Read, 0, 1);
        assert_eq!(check(u32::MAX), Err(OperationError::Revoked));
        assert_eq!(check(count - 1), Err(OperationError::Revoked));
        assert_eq!(check(0), Err(OperationError::NoSuchRegion));
    }

    #[test]
    fn a_revoked_region_stays_refused_until_it_is_registered_anew() {
        let mut regions = Regions::default();
        assert!(regions.register(REGION));
        assert!(!regions.register(REGION));
        regions.revoke(RegionId(3));
        let refused = regions.check(RegionId(3), Key(7), caller(1), Need::Read, 0, 1);
        assert_eq!(refused, Err(OperationError::Revoked));
        assert!(!regions.holds(RegionId(3), 0, 1));
        assert!(regions.register(RegionConfig { key: Key(9), ..REGION }));
        assert_eq!(regions.check(RegionId(3), Key(9), caller(1), Need::Read, 0, 1), Ok(()));
    }

    #[test]
    fn rights_of_one_member_replace_those_of_the_region_until_it_is_revoked() {
        let mut regions = Regions::default();
        assert!(regions.register(REGION));
        let check = |regions: &Regions, node, need| {
            regions.check(RegionId(3), Key(7), Caller { node: NodeId(node), tenant: Tenant(1) }, need, 0, 8)
        };
        let denied = Err(OperationError::PermissionDenied);
        for (node, access) in [(5, Access::READ), (2, Access::ALL), (9, Access::NONE)] {
            regions.set_access(RegionId(3), NodeId(node), Some(access));
        }
        assert_eq!([Need::Read, Need::Write].map(|need| check(&regions, 5, need)), [Ok(()), denied]);
        assert_eq!([Need::Atomic, Need::Write].map(|need| check(&regions, 2, need)), [Ok(()), Ok(())]);
        assert_eq!(check(&regions, 9, Need::Read), denied);
        assert_eq!([Need::Write, Need::Atomic].map(|need| check(&regions, 6, need)), [Ok(()), denied]);
        regions.set_access(RegionId(3), NodeId(5), None);
        assert_eq!(check(&regions, 5, Need::Write), Ok(()));
        regions.revoke(RegionId(3));
        assert!(regions.register(REGION));
        assert_eq!(check(&regions, 9, Need::Read), Ok(()), "a region registered anew has its own rights");
    }
}
