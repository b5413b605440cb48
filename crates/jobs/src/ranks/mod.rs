//! Common parts of all jobs: issuing operations, barriers, reproducible data, and breaking off together after a loss.
//!
//! [`ensemble`] is a complete job except for the program that it plays. `collective` and `pairs` are such programs. The
//! litmus has its own control flow, because it also checks its memory when it breaks off.

pub(crate) mod barrier;
pub(crate) mod ensemble;
pub(crate) mod issuer;
pub(crate) mod observer;
pub(crate) mod pattern;
pub(crate) mod request;
pub(crate) mod start;

use std::sync::Arc;

use rackloom_protocol::{Access, Key, LocalRange, NodeId, RegionConfig, RegionId, RemoteAddress, Tenant};

use self::barrier::{BARRIER_WORDS, Grounds};
use self::pattern::fold;
use crate::job::Job;

/// An endpoint that takes part in a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Name of the endpoint in the plan.
    pub name: String,
    /// Tenant of the endpoint. Ranks of other tenants must not access its memory.
    pub tenant: Tenant,
}

/// Region with the words for barriers and notices. A play's own words begin at [`JobGroup::own_word`].
pub(crate) const CONTROL: RegionId = RegionId(1);
/// Word of [`CONTROL`] that receives the notice of a rank that broke off.
const ABORT_WORD: u64 = 0;
const FIRST_BARRIER_WORD: u64 = 1;
/// Number of words of [`CONTROL`] that are reserved for the play.
const OWN_WORDS: u64 = 8;
/// Length of [`CONTROL`] in bytes.
pub(crate) const CONTROL_BYTES: u64 = 8 * (FIRST_BARRIER_WORD + BARRIER_WORDS + OWN_WORDS);
/// Separates the keys from other numbers that are derived from the same seed.
const KEY_PURPOSE: u64 = 0x6b65_7973;

/// One rank, with the list of all ranks.
pub(crate) struct JobGroup {
    pub(crate) rank: u16,
    pub(crate) ranks: Arc<[Rank]>,
    key_seed: u64,
}

impl JobGroup {
    /// Returns the view of `rank`. All keys of the job's regions are derived from `key_seed`.
    pub(crate) const fn new(rank: u16, ranks: Arc<[Rank]>, key_seed: u64) -> Self {
        Self { rank, ranks, key_seed }
    }

    pub(crate) fn name(&self, rank: u16) -> &str {
        self.ranks.get(usize::from(rank)).map_or("?", |rank| rank.name.as_str())
    }

    /// Returns all ranks but this one.
    pub(crate) fn others(&self) -> impl Iterator<Item = u16> + use<> {
        let own = self.rank;
        (0..self.ranks.len() as u16).filter(move |rank| *rank != own)
    }

    /// Returns an address in an owner's memory, with the region's key.
    pub(crate) fn address(&self, owner: u16, region: RegionId, offset: u64) -> RemoteAddress {
        RemoteAddress { node: NodeId(owner), region, offset, key: self.key(owner, region) }
    }

    /// Returns the configuration of a region of this rank, of at least one word.
    pub(crate) fn region(&self, region: RegionId, length: u64, access: Access) -> RegionConfig {
        let tenant = self.ranks.get(usize::from(self.rank)).map_or(Tenant(0), |rank| rank.tenant);
        let key = self.key(self.rank, region);
        RegionConfig { region, length: length.max(8), key, access, tenant }
    }

    /// Returns the offset in [`CONTROL`] of a word that belongs to the play.
    pub(crate) const fn own_word(number: u64) -> u64 {
        debug_assert!(number < OWN_WORDS);
        8 * (FIRST_BARRIER_WORD + BARRIER_WORDS + number)
    }

    fn key(&self, owner: u16, region: RegionId) -> Key {
        Key(fold(self.key_seed, &[KEY_PURPOSE, owner.into(), region.0.into()]))
    }
}

impl Grounds for JobGroup {
    fn rank(&self) -> u16 {
        self.rank
    }
    fn barrier_word(&self, owner: u16, step: u16) -> RemoteAddress {
        self.address(owner, CONTROL, 8 * (FIRST_BARRIER_WORD + u64::from(step)))
    }
}

/// Empty source, for puts that are only a signal.
pub(crate) const NOTHING: LocalRange = LocalRange { region: CONTROL, offset: 0, length: 0 };

/// Returns the regions that hold a job's data, without the control region.
pub fn data_regions(job: &dyn Job) -> impl Iterator<Item = RegionId> + use<> {
    job.regions().into_iter().map(|region| region.region).filter(|region| *region != CONTROL)
}

/// Maximum number of notices that a rank repeats because the target's memory has failed.
pub(crate) const NOTICES_REPEATED_MAX: u32 = 1_000;

/// Reason for which a rank breaks off.
pub(crate) enum BreakOff {
    /// A rank was lost, or has broken off.
    Loss(String),
    /// Something failed that no loss explains.
    Fault(String),
    /// The target's memory has refused a correct access: its key was revoked, or the memory failed.
    Refusal(String),
}
