//! Options of a group.

use std::mem::offset_of;
use std::num::NonZeroUsize;
use std::time::Duration;

use rackloom::fabric::{Algorithm, GroupOptions};

use crate::codes::Failure;
use crate::operation::unknown;
use crate::pointers::{Sized32, truth};
use crate::region::device;

/// Algorithm with the shortest estimated time.
pub const RACKLOOM_ALGORITHM_AUTOMATIC: u32 = 0;
/// Each rank sends to the next one only.
pub const RACKLOOM_ALGORITHM_RING: u32 = 1;
/// Two rings in opposite directions.
pub const RACKLOOM_ALGORITHM_BIDIRECTIONAL_RING: u32 = 2;
/// Every rank sends its whole input to every other rank.
pub const RACKLOOM_ALGORITHM_ONE_SHOT: u32 = 3;
/// Direct reduce-scatter, then direct all-gather.
pub const RACKLOOM_ALGORITHM_TWO_SHOT: u32 = 4;
/// Recursive halving, then recursive doubling.
pub const RACKLOOM_ALGORITHM_HALVING_DOUBLING: u32 = 5;
/// All pairs concurrently.
pub const RACKLOOM_ALGORITHM_DIRECT: u32 = 6;
/// One partner after the other.
pub const RACKLOOM_ALGORITHM_PAIRWISE: u32 = 7;
/// Binomial tree.
pub const RACKLOOM_ALGORITHM_BINOMIAL: u32 = 8;
/// Along the ring, in pipelined segments.
pub const RACKLOOM_ALGORITHM_RING_PIPELINE: u32 = 9;
/// Barrier: signals at distances that double.
pub const RACKLOOM_ALGORITHM_DISSEMINATION: u32 = 10;
/// Barrier: first the ranks of one server, then one leader per server.
pub const RACKLOOM_ALGORITHM_TWO_LEVEL: u32 = 11;
/// Inside each server, then between servers.
pub const RACKLOOM_ALGORITHM_HIERARCHICAL: u32 = 12;

/// Options of a group, equal on all members unless stated otherwise. Fields that are 0 have their defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GroupSettings {
    /// sizeof(rackloom_group_options).
    pub size: u32,
    /// Number of the region of the group with words. The one with arrays has the number in which bit 29 is different. No member has regions of these
    /// numbers yet. If 0, numbers and key follow from the rack and the list of members: any node of the tenant can then compute the key.
    pub region: u32,
    /// Key of the regions of the group, if `region` is not 0.
    pub key: u64,
    /// Length of one piece of a collective in bytes; 4 MiB if 0. The region with arrays is three times as long.
    pub staging_bytes: u64,
    /// One of `RACKLOOM_ALGORITHM_...`, for the collectives that it supports.
    pub algorithm: u32,
    /// Number of segments of `RACKLOOM_ALGORITHM_RING_PIPELINE`.
    pub segments: u32,
    /// Time that the first collective of this member waits for members that have not joined; ten seconds if 0. Members may differ.
    pub join_timeout_ns: u64,
    /// Device of the region with arrays, one of `RACKLOOM_DEVICE_...`. Members may differ.
    pub device: u32,
    /// 0.
    pub reserved: u32,
    /// Number of the GPU, or seed of the fake device.
    pub device_number: u64,
    /// Number of collectives that can run at the same time, at most 64; 1 if 0. Further ones wait for the end of earlier ones. Each has its own staging.
    pub lanes: u64,
    /// 1 if the algorithm of a collective is chosen again when its calls become slower or faster by 30 %, for example after the loss of a link. Not together with
    /// `algorithm`. `rackloom_group_rechoices` returns the trials. The order of reduction changes with the algorithm, and with it the last bits of
    /// floating-point sums.
    pub adaptive: u32,
    /// 0.
    pub reserved_end: u32,
}

// SAFETY: needed to copy it by its bytes. It has the layout of C and begins with its size. It consists of numbers, so every bit pattern is a value.
unsafe impl Sized32 for GroupSettings {
    const SIZE_MIN: usize = offset_of!(Self, lanes);
}

impl GroupSettings {
    pub(super) fn read(&self) -> Result<GroupOptions, Failure> {
        let named = GroupOptions::new(self.region, self.key);
        let mut options = if self.region == 0 { GroupOptions::default() } else { named };
        options.algorithm = chosen(self.algorithm, self.segments)?;
        options.device = device(self.device, self.device_number)?;
        if self.staging_bytes > 0 {
            options.staging_bytes = self.staging_bytes;
        }
        if self.join_timeout_ns > 0 {
            options.join_timeout = Duration::from_nanos(self.join_timeout_ns);
        }
        if self.lanes > 0 {
            // A number that no index can have is out of bounds as well.
            options.lanes = usize::try_from(self.lanes).unwrap_or(usize::MAX);
        }
        options.adapts = truth("adaptive", self.adaptive)?;
        Ok(options)
    }
}

/// Returns the algorithm of a number, or `None` if the library chooses.
fn chosen(number: u32, segments: u32) -> Result<Option<Algorithm>, Failure> {
    Ok(Some(match number {
        RACKLOOM_ALGORITHM_AUTOMATIC => return Ok(None),
        RACKLOOM_ALGORITHM_RING => Algorithm::Ring,
        RACKLOOM_ALGORITHM_BIDIRECTIONAL_RING => Algorithm::BidirectionalRing,
        RACKLOOM_ALGORITHM_ONE_SHOT => Algorithm::OneShot,
        RACKLOOM_ALGORITHM_TWO_SHOT => Algorithm::TwoShot,
        RACKLOOM_ALGORITHM_HALVING_DOUBLING => Algorithm::HalvingDoubling,
        RACKLOOM_ALGORITHM_DIRECT => Algorithm::Direct,
        RACKLOOM_ALGORITHM_PAIRWISE => Algorithm::Pairwise,
        RACKLOOM_ALGORITHM_BINOMIAL => Algorithm::Binomial,
        RACKLOOM_ALGORITHM_RING_PIPELINE => {
            let segments = NonZeroUsize::new(segments as usize);
            Algorithm::RingPipeline { segments: segments.ok_or_else(|| Failure::argument("no segments"))? }
        }
        RACKLOOM_ALGORITHM_DISSEMINATION => Algorithm::Dissemination,
        RACKLOOM_ALGORITHM_TWO_LEVEL => Algorithm::TwoLevel,
        RACKLOOM_ALGORITHM_HIERARCHICAL => Algorithm::Hierarchical,
        other => return Err(unknown("algorithm", other)),
    }))
}

/// Returns the number of an algorithm, and that of its segments or 0.
pub(super) fn numbers_of(algorithm: Algorithm) -> [u32; 2] {
    let number = match algorithm {
        Algorithm::Ring => RACKLOOM_ALGORITHM_RING,
        Algorithm::BidirectionalRing => RACKLOOM_ALGORITHM_BIDIRECTIONAL_RING,
        Algorithm::OneShot => RACKLOOM_ALGORITHM_ONE_SHOT,
        Algorithm::TwoShot => RACKLOOM_ALGORITHM_TWO_SHOT,
        Algorithm::HalvingDoubling => RACKLOOM_ALGORITHM_HALVING_DOUBLING,
        Algorithm::Direct => RACKLOOM_ALGORITHM_DIRECT,
        Algorithm::Pairwise => RACKLOOM_ALGORITHM_PAIRWISE,
        Algorithm::Binomial => RACKLOOM_ALGORITHM_BINOMIAL,
        Algorithm::RingPipeline { segments } => {
            return [RACKLOOM_ALGORITHM_RING_PIPELINE, u32::try_from(segments.get()).unwrap_or(u32::MAX)];
        }
        Algorithm::Dissemination => RACKLOOM_ALGORITHM_DISSEMINATION,
        Algorithm::TwoLevel => RACKLOOM_ALGORITHM_TWO_LEVEL,
        Algorithm::Hierarchical => RACKLOOM_ALGORITHM_HIERARCHICAL,
        // The compiler requires this arm. A test compares the others with the variants of the algorithm.
        _ => RACKLOOM_ALGORITHM_AUTOMATIC,
    };
    [number, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_is_restored_from_its_numbers() {
        let mut known = 0;
        for algorithm in RACKLOOM_ALGORITHM_RING..=RACKLOOM_ALGORITHM_HIERARCHICAL {
            let read = chosen(algorithm, 5).expect("a number").expect("an algorithm");
            let segments = if algorithm == RACKLOOM_ALGORITHM_RING_PIPELINE { 5 } else { 0 };
            assert_eq!(numbers_of(read), [algorithm, segments]);
            known += 1;
        }
        assert_eq!(known, 12);
        assert!(chosen(known + 1, 5).is_err(), "a number without an algorithm");
    }
}
