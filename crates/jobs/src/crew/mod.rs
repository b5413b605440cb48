//! What the ranks of every job do alike: issue what they want of their endpoint, meet, derive bytes that both sides know, and
//! break off together when one of them dies.
//!
//! [`ensemble`] is a whole job but for what is played; `collective` and `pairs` play on it. The litmus has a life of its
//! own, because it looks at its memory also when it breaks off.

pub(crate) mod barrier;
pub(crate) mod ensemble;
pub(crate) mod issuer;
pub(crate) mod pattern;
pub(crate) mod request;

use rackloom_protocol::{Access, Key, LocalRange, NodeId, RegionConfig, RegionId, RemoteAddress, Tenant};

use self::barrier::{BARRIER_WORDS, Grounds};
use self::pattern::fold;
use crate::job::Job;

/// An endpoint as a job knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Its name in the plan.
    pub name: String,
    /// Its partition. Ranks of other partitions must not get at its memory.
    pub tenant: Tenant,
}

/// Words by which ranks meet and tell each other things. A play's own words begin at [`Crew::own_word`].
pub(crate) const CONTROL: RegionId = RegionId(1);
/// Word of [`CONTROL`] in which somebody says that he broke off.
const ABORT_WORD: u64 = 0;
const FIRST_BARRIER_WORD: u64 = 1;
/// Words of [`CONTROL`] that a play may use as it likes.
const OWN_WORDS: u64 = 8;
/// Bytes of [`CONTROL`].
pub(crate) const CONTROL_BYTES: u64 = 8 * (FIRST_BARRIER_WORD + BARRIER_WORDS + OWN_WORDS);
/// Told apart from the purposes of other numbers that follow from the seed.
const KEY_PURPOSE: u64 = 0x6b65_7973;

/// One rank among the others.
pub(crate) struct Crew {
    pub(crate) rank: u16,
    pub(crate) ranks: Vec<Rank>,
    key_seed: u64,
}

impl Crew {
    /// `key_seed`: what the keys of all regions of the job follow from.
    pub(crate) const fn new(rank: u16, ranks: Vec<Rank>, key_seed: u64) -> Self {
        Self { rank, ranks, key_seed }
    }

    pub(crate) fn name(&self, rank: u16) -> &str {
        self.ranks.get(usize::from(rank)).map_or("?", |rank| rank.name.as_str())
    }

    /// All ranks but this one.
    pub(crate) fn others(&self) -> impl Iterator<Item = u16> + use<> {
        let own = self.rank;
        (0..self.ranks.len() as u16).filter(move |rank| *rank != own)
    }

    /// A place in an owner's memory, with the key that opens it.
    pub(crate) fn address(&self, owner: u16, region: RegionId, offset: u64) -> RemoteAddress {
        RemoteAddress { node: NodeId(owner), region, offset, key: self.key(owner, region) }
    }

    /// A region of this rank, of at least one word.
    pub(crate) fn region(&self, region: RegionId, length: u64, access: Access) -> RegionConfig {
        let tenant = self.ranks.get(usize::from(self.rank)).map_or(Tenant(0), |rank| rank.tenant);
        let key = self.key(self.rank, region);
        RegionConfig { region, length: length.max(8), key, access, tenant }
    }

    /// Offset in [`CONTROL`] of a word that belongs to the play.
    pub(crate) const fn own_word(number: u64) -> u64 {
        debug_assert!(number < OWN_WORDS);
        8 * (FIRST_BARRIER_WORD + BARRIER_WORDS + number)
    }

    fn key(&self, owner: u16, region: RegionId) -> Key {
        Key(fold(self.key_seed, &[KEY_PURPOSE, owner.into(), region.0.into()]))
    }
}

impl Grounds for Crew {
    fn rank(&self) -> u16 {
        self.rank
    }
    fn barrier_word(&self, owner: u16, step: u16) -> RemoteAddress {
        self.address(owner, CONTROL, 8 * (FIRST_BARRIER_WORD + u64::from(step)))
    }
}

/// A source of no bytes, for puts that are only a signal.
pub(crate) const NOTHING: LocalRange = LocalRange { region: CONTROL, offset: 0, length: 0 };

/// The regions in which a job keeps what it moves, without the words by which ranks meet and tell each other things.
pub fn data_regions(job: &dyn Job) -> impl Iterator<Item = RegionId> + use<> {
    job.regions().into_iter().map(|region| region.region).filter(|region| *region != CONTROL)
}

/// Notices that a rank repeats because the memory they were for has failed.
pub(crate) const NOTICES_REPEATED_MAX: u32 = 1_000;

/// Why a rank breaks off.
pub(crate) enum Why {
    /// Somebody was lost, or has broken off.
    Loss(String),
    /// Something is wrong that no loss explains.
    Fault(String),
    /// The target's memory has refused what is right: its key was revoked, or it failed.
    Refusal(String),
}
