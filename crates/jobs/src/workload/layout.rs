//! Memory of a rank that performs a workload.
//!
//! All messages and transfers of collectives are taken from one region and land in one region, both as long as the longest of them:
//! a workload moves more bytes than any memory holds, and its content has no meaning. Every rank has the same bytes there, so
//! the last writer leaves what the first one left. Words count what has arrived: one per channel, and one per transfer of a lane.

use rackloom_protocol::{Access, LocalRange, RegionConfig, RegionId};

use crate::ranks::{CONTROL_BYTES, JobGroup};

/// Region that messages and transfers are taken from.
pub(super) const SOURCE: RegionId = RegionId(2);
/// Region that messages and transfers arrive in.
pub(super) const INBOX: RegionId = RegionId(3);
/// Region that counts messages: a word per channel.
pub(super) const COUNTS: RegionId = RegionId(4);
/// Region that counts transfers of collectives: a word per arrival of a lane.
pub(super) const SIGNALS: RegionId = RegionId(5);

const WRITE: Access = Access { read: false, write: true, atomic: false };

/// Memory that one rank needs, in bytes by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryNeed {
    /// Length of the longest message or transfer that the rank sends.
    pub source_bytes: u64,
    /// Length of the longest message or transfer that the rank receives.
    pub inbox_bytes: u64,
    /// Length of the words that count messages.
    pub count_bytes: u64,
    /// Length of the words that count transfers of collectives.
    pub signal_bytes: u64,
}

impl MemoryNeed {
    /// Returns the sum of all parts and of the words for barriers.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.source_bytes
            .saturating_add(self.inbox_bytes)
            .saturating_add(self.count_bytes)
            .saturating_add(self.signal_bytes)
            .saturating_add(CONTROL_BYTES)
    }

    /// Returns the regions of the rank.
    pub(super) fn regions(&self, job_group: &JobGroup) -> Vec<RegionConfig> {
        vec![
            job_group.region(SOURCE, self.source_bytes, Access::READ),
            job_group.region(INBOX, self.inbox_bytes, WRITE),
            job_group.region(COUNTS, self.count_bytes, WRITE),
            job_group.region(SIGNALS, self.signal_bytes, WRITE),
        ]
    }
}

/// Returns the first bytes of the source.
pub(super) const fn source(length: u64) -> LocalRange {
    LocalRange { region: SOURCE, offset: 0, length }
}
