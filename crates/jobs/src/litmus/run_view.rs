//! View of one rank on a litmus run: the ranks, the addresses, and the expected data.
//!
//! Everything is derived from settings, ranks and the number of the round, so that writer and owner agree without
//! messages.

use rackloom_protocol::{Access, Key, NodeId, RegionConfig, RegionId, RemoteAddress, Width};

use super::case::Case;
use super::layout::{CONTROL, ContendedWord, DATA, LANES, Layout, MAIL, READABLE};
use super::settings::LitmusSettings;
use crate::ranks::Rank;
use crate::ranks::barrier::Grounds;
use crate::ranks::pattern::{Pattern, fold, mix};

/// Purpose of a pattern. Each purpose has its own pattern per seed.
#[derive(Clone, Copy)]
enum Purpose {
    Slot = 1,
    Guard,
    Readable,
    Lane,
    Key,
    Flag,
    Token,
    Initial,
    Offset,
}

/// Maximum number of contenders in a compare-swap loop: each success makes all others retry.
const COMPARE_SWAP_CONTENDERS_MAX: u16 = 8;

/// View of one rank on the run.
#[derive(Clone, Debug)]
pub(crate) struct RunView {
    pub(crate) rank: u16,
    pub(crate) ranks: Vec<Rank>,
    /// Other ranks of this rank's tenant. The list begins after this rank, so that not all ranks start with the same
    /// peer.
    pub(crate) peers: Vec<u16>,
    pub(crate) layout: Layout,
    pub(crate) settings: LitmusSettings,
    /// Current round, from 0.
    pub(crate) round: u32,
}

impl RunView {
    pub(crate) fn new(rank: u16, ranks: Vec<Rank>, layout: Layout, settings: LitmusSettings) -> Self {
        let others = Self::others(rank, ranks.len());
        let tenant = ranks[usize::from(rank)].tenant;
        let peers = others.filter(|other| ranks[usize::from(*other)].tenant == tenant).collect();
        Self { rank, ranks, peers, layout, settings, round: 0 }
    }

    fn others(rank: u16, count: usize) -> impl Iterator<Item = u16> {
        (1..count).map(move |step| ((usize::from(rank) + step) % count) as u16)
    }

    /// Returns the ranks of other tenants.
    pub(crate) fn other_tenants(&self) -> Vec<u16> {
        Self::others(self.rank, self.ranks.len()).filter(|other| !self.peers.contains(other)).collect()
    }

    /// Returns all ranks of this rank's tenant, itself included, in ascending order.
    pub(crate) fn group(&self) -> Vec<u16> {
        let mut group: Vec<_> = self.peers.iter().copied().chain([self.rank]).collect();
        group.sort_unstable();
        group
    }

    pub(crate) fn name(&self, rank: u16) -> &str {
        self.ranks.get(usize::from(rank)).map_or("?", |rank| rank.name.as_str())
    }

    pub(crate) fn regions(&self) -> Vec<RegionConfig> {
        let access = |region| match region {
            LANES | MAIL => Access::default(),
            READABLE => Access::READ,
            _ => Access::ALL,
        };
        [CONTROL, DATA, LANES, READABLE, MAIL]
            .into_iter()
            .map(|region| RegionConfig {
                region,
                length: self.layout.region_bytes(region),
                key: self.key(self.rank, region),
                access: access(region),
                tenant: self.ranks[usize::from(self.rank)].tenant,
            })
            .collect()
    }

    pub(crate) fn key(&self, owner: u16, region: RegionId) -> Key {
        Key(fold(self.settings.key_seed, &[Purpose::Key as u64, owner.into(), region.0.into()]))
    }

    pub(crate) fn address(&self, owner: u16, region: RegionId, offset: u64) -> RemoteAddress {
        RemoteAddress { node: NodeId(owner), region, offset, key: self.key(owner, region) }
    }

    fn pattern(&self, purpose: Purpose, parts: [u64; 3]) -> Pattern {
        let [a, b, c] = parts;
        Pattern::new(self.settings.seed, &[purpose as u64, self.round.into(), a, b, c])
    }

    /// Returns the data that a writer writes to a slot of an owner in this round.
    pub(crate) fn slot_pattern(&self, writer: u16, owner: u16, case: u16) -> Pattern {
        self.pattern(Purpose::Slot, [writer.into(), owner.into(), case.into()])
    }

    /// Returns the pattern between slots, indexed by the offset in the region.
    pub(crate) fn guard_pattern(&self, region: RegionId) -> Pattern {
        self.pattern(Purpose::Guard, [self.rank.into(), region.0.into(), 0])
    }

    /// Returns the pattern of an owner's readable region, indexed by the offset in the region. It is equal in all
    /// rounds, so that a reader may be in another round than the owner.
    pub(crate) fn readable_pattern(&self, owner: u16) -> Pattern {
        Pattern::new(self.settings.seed, &[Purpose::Readable as u64, owner.into()])
    }

    /// Returns the pattern of a lane before a read fills it, indexed by the offset in the region.
    pub(crate) fn lane_pattern(&self) -> Pattern {
        self.pattern(Purpose::Lane, [self.rank.into(), 0, 0])
    }

    /// Returns the offset in the readable region at which a read case begins.
    pub(crate) fn read_offset(&self, owner: u16, case: u16, bytes: u64, misalignment: u64) -> u64 {
        let space = self.layout.region_bytes(READABLE) - bytes;
        let parts = [Purpose::Offset as u64, self.round.into(), self.rank.into(), owner.into(), case.into()];
        let anywhere = fold(self.settings.seed, &parts) % (space - 64).max(1);
        anywhere / 64 * 64 + misalignment
    }

    /// Returns the offset in a writer's readable region at which the data of a message to an owner begins.
    pub(crate) fn read_offset_of(&self, owner: u16, writer: u16, number: u16, bytes: u64) -> u64 {
        let space = self.layout.region_bytes(READABLE) - bytes;
        let parts = [Purpose::Offset as u64, self.round.into(), owner.into(), writer.into(), number.into()];
        fold(self.settings.seed, &parts) % space.max(1)
    }

    /// Returns the value of a case's flag. It is never 0, which is the flag's initial value.
    pub(crate) fn flag_value(&self, writer: u16, owner: u16, case: u16) -> u64 {
        let parts = [self.round.into(), writer.into(), owner.into(), case.into()];
        fold(self.settings.seed ^ Purpose::Flag as u64, &parts) | 1
    }

    /// Returns the value of a contended word before the round. Initial values of 4-byte sums are so high that the sums
    /// wrap.
    pub(crate) fn contended_initial(&self, owner: u16, word: ContendedWord) -> u64 {
        let parts = [Purpose::Initial as u64, self.round.into(), owner.into(), word as u64];
        let value = fold(self.settings.seed, &parts);
        match word {
            ContendedWord::FetchAddFour | ContendedWord::CompareSwapFour => u64::from(u32::MAX) - value % 16,
            _ => width(word).truncate(value),
        }
    }

    /// Returns the `number`th value that a rank swaps into an owner's word.
    pub(crate) fn token(&self, contender: u16, owner: u16, word: ContendedWord, number: u32) -> u64 {
        let parts = [self.round.into(), contender.into(), owner.into(), word as u64, number.into()];
        width(word).truncate(fold(self.settings.seed ^ Purpose::Token as u64, &parts))
    }

    /// Returns the number of atomics that each contender issues on a word. For compare-swap: the number that succeed.
    pub(crate) fn atomics_per_word(&self) -> u32 {
        let share = 96 / self.peers.len().max(1) as u32;
        self.settings.atomics_per_word.min(share.max(2))
    }

    /// Returns whether a rank modifies an owner's word.
    pub(crate) fn contends(&self, contender: u16, owner: u16, word: ContendedWord) -> bool {
        let distance = self.layout.distance(contender, owner);
        let is_loop = matches!(word, ContendedWord::CompareSwapFour | ContendedWord::CompareSwapEight);
        distance > 0 && (!is_loop || distance <= COMPARE_SWAP_CONTENDERS_MAX)
    }

    /// Returns the value that a ledger adds for a value that an atomic returned. Values are mixed, so that different
    /// sets of values have different sums.
    pub(crate) const fn ledger_entry(value: u64) -> u64 {
        mix(value)
    }

    /// Describes a case and its writer, for findings.
    pub(crate) fn describe(&self, writer: u16, case: &Case) -> String {
        format!(
            "{} of {} bytes by {}, misaligned by {}, round {}",
            case.kind.name(),
            case.bytes,
            self.name(writer),
            case.misalignment,
            self.round
        )
    }
}

impl Grounds for RunView {
    fn rank(&self) -> u16 {
        self.rank
    }
    fn barrier_word(&self, owner: u16, step: u16) -> RemoteAddress {
        self.address(owner, CONTROL, self.layout.barrier_offset(step))
    }
}

/// Returns the operand width of a contended word.
pub(crate) const fn width(word: ContendedWord) -> Width {
    if word.is_four() { Width::Four } else { Width::Eight }
}
