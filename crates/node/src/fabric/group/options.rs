//! Options of a group, and the names that the library gives to regions of groups.

use std::time::Duration;

use rackloom_collectives::Algorithm;
use rackloom_protocol::{Key, NodeId, RegionId};

use super::membership::{ARRAYS, RegionName};
use super::query::hash;
use crate::memory::DeviceChoice;

/// Default length of one piece of a collective, in bytes.
const STAGING_BYTES: u64 = 4 << 20;
/// Default time that members may take to join.
const JOIN_TIMEOUT: Duration = Duration::from_secs(10);
/// First region number of groups whose region is named after their members.
const NAMED_AFTER_MEMBERS: u32 = 0x8000_0000;
/// Number of these region numbers.
const NAMES: u32 = ARRAYS;
/// First region number of groups that were made from another group.
pub(super) const DERIVED: u32 = 0xC000_0000;
/// Initial value of all hashes.
const HASH_START: u32 = 0x811c_9dc5;

/// Options of a group, equal on all members unless stated otherwise.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupOptions {
    /// Number and key of the group's region with words. A second region, for arrays, has the same key and the number in which bit 29 is
    /// different. No member has regions of these numbers yet. `None`: both follow from the rack and the list of members. Any node of the
    /// tenant can then compute the key.
    pub region: Option<(RegionId, Key)>,
    /// Length of one piece of a collective in bytes: of its input, and of its output together with working space. The region with arrays
    /// is three times as long for each lane. Pages that are never used take no memory. 4 MiB unless changed.
    pub staging_bytes: u64,
    /// Number of collectives that can run at the same time. Further ones wait for the end of earlier ones. Each has its own staging. 1 unless
    /// changed.
    pub lanes: usize,
    /// Algorithm for the collectives that it supports. For others, and if `None`, the algorithm with the shortest estimated time is used.
    /// It determines the order of reduction, and so the last bits of floating-point sums.
    pub algorithm: Option<Algorithm>,
    /// True if the algorithm of a collective is chosen again when its calls become slower or faster. See [`GroupOptions::adaptive`].
    pub adapts: bool,
    /// Time that this member's first collective waits for members that have not joined. Members may choose different values. Ten seconds
    /// unless changed.
    pub join_timeout: Duration,
    /// Device of the group's arrays. `None` for memory of the host. On a device, reductions are kernels, and the device copies slices of
    /// regions on it. Words of the group are always in memory of the host. Members may choose different devices.
    pub device: Option<DeviceChoice>,
}

/// Default options.
const DEFAULT: GroupOptions = GroupOptions {
    region: None,
    staging_bytes: STAGING_BYTES,
    lanes: 1,
    algorithm: None,
    adapts: false,
    join_timeout: JOIN_TIMEOUT,
    device: None,
};

impl Default for GroupOptions {
    /// Returns options for a group whose region the library names.
    fn default() -> Self {
        DEFAULT
    }
}

impl GroupOptions {
    /// Largest number of lanes.
    pub const LANES_MAX: usize = 64;

    /// Returns options for a group whose region has this number and this key.
    #[must_use]
    pub const fn new(region: u32, key: u64) -> Self {
        Self { region: Some((RegionId(region), Key(key))), ..DEFAULT }
    }

    /// Sets the length of one piece, in bytes.
    #[must_use]
    pub const fn staging(mut self, bytes: u64) -> Self {
        self.staging_bytes = bytes;
        self
    }

    /// Sets the number of collectives that can run at the same time, 1 to [`GroupOptions::LANES_MAX`].
    #[must_use]
    pub const fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes;
        self
    }

    /// Sets the algorithm.
    #[must_use]
    pub const fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = Some(algorithm);
        self
    }

    /// Has the algorithm chosen again when calls become slower or faster by 30 %, for example after the loss of a link. Not together with
    /// [`GroupOptions::algorithm`].
    ///
    /// It applies to collectives with equal parts in which each member needs data of all others, such as an all-reduce, and not to
    /// [`PersistentCollective`](super::PersistentCollective). Calls of one size are counted in each lane. After every eight calls, and after
    /// every three calls of a trial, the call also agrees on a time with all members, which costs a small all-reduce. The rules are those of
    /// [`rackloom_collectives::adapt`]. [`Group::rechoices`](super::Group::rechoices) returns the trials.
    ///
    /// The time of an all-reduce is that of the fastest member, because other members also wait for members that call later. Of other
    /// collectives it is that of the slowest member.
    ///
    /// The order of reduction changes with the algorithm, and with it the last bits of floating-point sums.
    #[must_use]
    pub const fn adaptive(mut self) -> Self {
        self.adapts = true;
        self
    }

    /// Sets the time to wait for members that are late to join.
    #[must_use]
    pub const fn join_timeout(mut self, join_timeout: Duration) -> Self {
        self.join_timeout = join_timeout;
        self
    }

    /// Sets the device of the group's arrays.
    #[must_use]
    pub const fn device(mut self, device: DeviceChoice) -> Self {
        self.device = Some(device);
        self
    }

    /// Returns a hash of the options that must be equal on all members. The regions' numbers and keys need no hash.
    pub(super) fn terms(&self, members: &[NodeId]) -> u32 {
        let algorithm = self.algorithm.map_or_else(String::new, |algorithm| algorithm.to_string());
        let numbers = [self.staging_bytes, self.lanes as u64, u64::from(self.adapts)]
            .into_iter()
            .flat_map(u64::to_le_bytes);
        hash(HASH_START, bytes_of(members).chain(numbers).chain(algorithm.into_bytes()))
    }

    /// Returns number and key of the group's region: as chosen, or by the rack's epoch and the members.
    pub(super) fn region_name(&self, epoch: u16, members: &[NodeId]) -> RegionName {
        if let Some((region, key)) = self.region {
            return RegionName { region, key };
        }
        let hashed = hash(HASH_START, bytes_of(members).chain(epoch.to_le_bytes()));
        let region = RegionId(NAMED_AFTER_MEMBERS + hashed % NAMES);
        RegionName { region, key: Key(u64::from(hashed) << 32 | u64::from(hash(hashed, [1]))) }
    }
}

fn bytes_of(members: &[NodeId]) -> impl Iterator<Item = u8> {
    members.iter().flat_map(|member| member.0.to_le_bytes())
}
