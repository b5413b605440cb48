//! Memory that a collective needs, region by region, and the choice of the algorithms that fit into the available
//! memory.
//!
//! | region | others may | holds |
//! |---|---|---|
//! | control | all | barrier, notices, the agreement on alpha, beta and gamma |
//! | signals | write | one word per arrival, set to the number of the run |
//! | input | nothing | input of the rank |
//! | output | write | result of the rank |
//! | scratch | write | working space of the algorithm |
//! | probe | write | data of the transfers for beta and the reductions for gamma; only if the algorithm is chosen |
//!
//! Each region has the largest length that any of the possible sizes and algorithms needs.

use std::fmt;
use std::num::NonZeroUsize;

use rackloom_collectives::algorithm::{self, SEGMENTS_MAX};
use rackloom_collectives::{Algorithm, Reason, Refused, Request, Schedule, build};
use rackloom_protocol::{Access, RegionConfig, RegionId};

use super::settings::CollectiveSettings;
use crate::ranks::{CONTROL_BYTES, JobGroup};

/// Region of the signals: one word per arrival.
pub(crate) const SIGNALS: RegionId = RegionId(2);
/// Region of the rank's input.
pub(crate) const INPUT: RegionId = RegionId(3);
/// Region of the rank's result.
pub(crate) const OUTPUT: RegionId = RegionId(4);
/// Region of the algorithm's working space.
pub(crate) const SCRATCH: RegionId = RegionId(5);
/// Region that the transfers that measure beta write to.
pub(crate) const PROBE: RegionId = RegionId(6);
/// Length of a transfer that measures beta, in bytes.
pub(crate) const PROBE_BYTES: u64 = 256 << 10;

const WRITE: Access = Access { read: false, write: true, atomic: false };

/// Memory that one rank needs, in bytes by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryNeed {
    /// Length of the rank's input.
    pub input_bytes: u64,
    /// Length of the rank's result.
    pub output_bytes: u64,
    /// Length of the algorithm's working space.
    pub scratch_bytes: u64,
    /// Length of signal words, barrier and probe.
    pub overhead_bytes: u64,
}

impl MemoryNeed {
    /// Returns the sum of all parts.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.input_bytes + self.output_bytes + self.scratch_bytes + self.overhead_bytes
    }

    pub(super) fn max(self, other: Self) -> Self {
        Self {
            input_bytes: self.input_bytes.max(other.input_bytes),
            output_bytes: self.output_bytes.max(other.output_bytes),
            scratch_bytes: self.scratch_bytes.max(other.scratch_bytes),
            overhead_bytes: self.overhead_bytes.max(other.overhead_bytes),
        }
    }

    const fn signal_bytes(&self, with_probe: bool) -> u64 {
        self.overhead_bytes - CONTROL_BYTES - if with_probe { PROBE_BYTES } else { 0 }
    }

    /// Returns the regions of a rank.
    pub(crate) fn regions(&self, job_group: &JobGroup, with_probe: bool) -> Vec<RegionConfig> {
        let mut regions = vec![
            job_group.region(SIGNALS, self.signal_bytes(with_probe), WRITE),
            job_group.region(INPUT, self.input_bytes, Access::default()),
            job_group.region(OUTPUT, self.output_bytes, WRITE),
            job_group.region(SCRATCH, self.scratch_bytes, WRITE),
        ];
        if with_probe {
            regions.push(job_group.region(PROBE, PROBE_BYTES, WRITE));
        }
        regions
    }
}

/// Reason for which a collective job cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectiveError {
    /// The request itself is invalid.
    Refused(Refused),
    /// The job does not fit into memory.
    TooLarge {
        /// The collective and its largest size.
        what: String,
        /// Algorithm. If none was named: the one that needs least.
        algorithm: Algorithm,
        /// The rank or the unit in a switch that needs most.
        place: String,
        /// Memory that this rank needs.
        need: MemoryNeed,
        /// Memory of the smallest endpoint, in bytes.
        memory_bytes: u64,
    },
    /// The remaining ranks of a group cannot repeat this collective after a loss.
    CannotShrink {
        /// Name of the collective.
        collective: &'static str,
        /// Number of ranks.
        ranks: usize,
    },
    /// Several algorithms are named, but a group that goes on after a loss measures only one.
    ShrinksByOne,
    /// The algorithm is named, so it cannot be chosen again.
    AdaptsNamed,
    /// The switches of the rack cannot reduce.
    NoUnits,
    /// The ranks belong to several tenants, which cannot work together.
    SeveralTenants,
    /// An array of the user does not have the length that the collective needs.
    InputLength {
        /// Rank of the array.
        rank: usize,
        /// Length of the array in bytes.
        found: u64,
        /// Length that the collective needs, in bytes.
        expected: u64,
        /// Name of the collective.
        collective: &'static str,
    },
}

impl CollectiveError {
    /// Returns message and hint.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Refused(refused) => refused.reason(),
            Self::TooLarge { what, algorithm, place, need, memory_bytes } => {
                let MemoryNeed { input_bytes, output_bytes, scratch_bytes, overhead_bytes } = need;
                let needed = need.total_bytes();
                Reason::new(
                    format!(
                        "{what} by {algorithm} needs {needed} bytes of memory at {place} (input {input_bytes}, output \
                         {output_bytes}, working space {scratch_bytes}, overhead {overhead_bytes}), there are {memory_bytes}"
                    ),
                    "raise `defaults.memory` in the rack file or make the array smaller",
                )
            }
            Self::CannotShrink { collective, ranks } => Reason::new(
                format!("{collective} of {ranks} ranks cannot go on with those who are left"),
                format!(
                    "leave `on_loss` out, or do an all-reduce or a barrier of at most {} ranks",
                    crate::survivors::RANKS_MAX
                ),
            ),
            Self::ShrinksByOne => Reason::new(
                "several algorithms cannot be measured where the collective goes on after a loss",
                "name one algorithm, or leave `on_loss` out",
            ),
            Self::AdaptsNamed => Reason::new(
                "the algorithm is named, so it cannot be chosen again",
                "leave `adapt` out, or write `algorithm: auto`",
            ),
            Self::NoUnits => Reason::new(
                "in-switch needs switches, and each node must be linked to each of them",
                "take a star, link each node to each switch, or name another algorithm",
            ),
            Self::SeveralTenants => {
                Reason::new("the ranks belong to several tenants", "a collective needs all nodes in one")
            }
            Self::InputLength { rank, found, expected, collective } => Reason::new(
                format!("rank {rank} gives {found} bytes, {collective} takes {expected}"),
                "all arrays have the same shape",
            ),
        }
    }
}

impl From<Refused> for CollectiveError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl fmt::Display for CollectiveError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason().fmt(formatter)
    }
}

impl core::error::Error for CollectiveError {}

/// Algorithms that may be run, and the memory for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    /// Named algorithms in the order of the settings, otherwise in the order of [`Algorithm::all`]. Never empty.
    pub(crate) algorithms: Vec<Algorithm>,
    /// Memory that each rank needs, and behind the ranks each unit in a switch.
    pub(crate) needs: Vec<MemoryNeed>,
}

/// Returns the memory that each rank needs for a collective job: for every named algorithm, or, if none is named, for
/// as many algorithms as fit, so that one of them can be chosen.
///
/// # Errors
/// A named algorithm does not fit, or, if none is named, no algorithm fits, with the numbers. Or the request is
/// refused.
pub fn memory_needed(
    settings: &CollectiveSettings,
    ranks: usize,
) -> Result<Vec<MemoryNeed>, CollectiveError> {
    plan(settings, ranks, &mut drop).map(|plan| plan.needs)
}

/// Plans the memory. `built` gets the schedule of each algorithm and size.
pub(crate) fn plan(
    settings: &CollectiveSettings,
    ranks: usize,
    built: &mut dyn FnMut(Schedule),
) -> Result<MemoryPlan, CollectiveError> {
    if settings.algorithms.len() > 1 {
        plan_for_all(settings, ranks, built)
    } else {
        plan_for_some(settings, ranks, built)
    }
}

/// Plans for all named algorithms. Each must fit, because each is measured.
fn plan_for_all(
    settings: &CollectiveSettings,
    ranks: usize,
    built: &mut dyn FnMut(Schedule),
) -> Result<MemoryPlan, CollectiveError> {
    let mut needs = vec![MemoryNeed::default(); ranks + settings.switches()];
    for &algorithm in &settings.algorithms {
        let own = needs_of(settings, ranks, algorithm, built)?;
        needs = needs.iter().zip(own).map(|(all, own)| all.max(own)).collect();
        let most = needs.iter().enumerate().rev().max_by_key(|(_, need)| need.total_bytes());
        if let Some((rank, need)) = most.filter(|(_, need)| need.total_bytes() > settings.memory_bytes) {
            return Err(too_large(settings, ranks, algorithm, rank, *need));
        }
    }
    Ok(MemoryPlan { algorithms: settings.algorithms.clone(), needs })
}

fn too_large(
    settings: &CollectiveSettings,
    ranks: usize,
    algorithm: Algorithm,
    rank: usize,
    need: MemoryNeed,
) -> CollectiveError {
    let largest = settings.sizes.iter().max().copied().unwrap_or(0);
    let what = format!("{} of {} bytes", settings.collective, largest * settings.element.bytes());
    let place = match rank.checked_sub(ranks) {
        Some(unit) => format!("switch {unit}"),
        None => format!("rank {rank}"),
    };
    CollectiveError::TooLarge { what, algorithm, place, need, memory_bytes: settings.memory_bytes }
}

/// Plans for at least one algorithm. Those that do not fit are left out.
fn plan_for_some(
    settings: &CollectiveSettings,
    ranks: usize,
    built: &mut dyn FnMut(Schedule),
) -> Result<MemoryPlan, CollectiveError> {
    let mut fitting: Option<MemoryPlan> = None;
    let mut least: Option<(Algorithm, usize, MemoryNeed)> = None;
    for algorithm in candidates(settings) {
        let needs = needs_of(settings, ranks, algorithm, built)?;
        let union = match &fitting {
            Some(plan) => plan.needs.iter().zip(&needs).map(|(left, right)| left.max(*right)).collect(),
            None => needs.clone(),
        };
        let fits = union.iter().all(|need| need.total_bytes() <= settings.memory_bytes);
        if fits {
            let mut algorithms = fitting.map(|plan| plan.algorithms).unwrap_or_default();
            algorithms.push(algorithm);
            fitting = Some(MemoryPlan { algorithms, needs: union });
        }
        let most = needs.into_iter().enumerate().rev().max_by_key(|(_, need)| need.total_bytes());
        if let Some((rank, need)) = most
            && least.is_none_or(|(.., known)| need.total_bytes() < known.total_bytes())
        {
            least = Some((algorithm, rank, need));
        }
    }
    let refused = || match least {
        Some((algorithm, rank, need)) => too_large(settings, ranks, algorithm, rank, need),
        None => CollectiveError::Refused(Refused::Ranks(ranks)),
    };
    fitting.ok_or_else(refused)
}

/// Returns the algorithms that may be run: the named ones, or all that may be chosen for the collective.
fn candidates(settings: &CollectiveSettings) -> Vec<Algorithm> {
    // The best number of segments is known only later. The largest number needs most signals.
    let segments = NonZeroUsize::new(SEGMENTS_MAX).unwrap_or(NonZeroUsize::MIN);
    if settings.algorithms.is_empty() {
        algorithm::candidates(settings.collective, segments, &settings.servers).collect()
    } else {
        settings.algorithms.clone()
    }
}

fn needs_of(
    settings: &CollectiveSettings,
    ranks: usize,
    algorithm: Algorithm,
    built: &mut dyn FnMut(Schedule),
) -> Result<Vec<MemoryNeed>, CollectiveError> {
    let mut needs = vec![MemoryNeed::default(); ranks + settings.switches()];
    for &elements in &settings.sizes {
        let request = request(settings, ranks, elements);
        let schedule = build(&request, algorithm)?;
        for (rank, need) in needs.iter_mut().enumerate() {
            *need = need.max(need_of(settings, &schedule, rank));
        }
        built(schedule);
    }
    Ok(needs)
}

fn need_of(settings: &CollectiveSettings, schedule: &Schedule, rank: usize) -> MemoryNeed {
    let program = schedule.program(rank);
    let bytes = |elements: usize| (elements as u64).saturating_mul(settings.element.bytes() as u64);
    let probe_bytes = if is_chosen(settings, schedule.ranks()) { PROBE_BYTES } else { 0 };
    MemoryNeed {
        input_bytes: bytes(program.input),
        output_bytes: bytes(program.output),
        scratch_bytes: bytes(program.scratch),
        overhead_bytes: u64::from(program.arrivals) * 8 + CONTROL_BYTES + probe_bytes,
    }
}

/// Returns whether the fabric must be measured, so that an algorithm can be chosen.
pub(crate) const fn is_chosen(settings: &CollectiveSettings, ranks: usize) -> bool {
    settings.algorithms.is_empty() && ranks > 1
}

pub(crate) fn request(settings: &CollectiveSettings, ranks: usize, elements: usize) -> Request<'_> {
    Request { collective: settings.collective, ranks, elements, servers: &settings.servers, parts: &[] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(memory_bytes: u64) -> CollectiveSettings {
        CollectiveSettings { sizes: vec![1000, 100_000], memory_bytes, ..CollectiveSettings::default() }
    }

    #[test]
    fn a_named_algorithm_takes_what_its_largest_schedule_takes() {
        let settings = CollectiveSettings { algorithms: vec![Algorithm::Ring], ..settings(1 << 30) };
        let needs = memory_needed(&settings, 4).unwrap();
        assert_eq!(needs.len(), 4);
        assert_eq!((needs[2].input_bytes, needs[2].output_bytes), (400_000, 400_000));
        let schedule = build(&request(&settings, 4, 100_000), Algorithm::Ring).unwrap();
        let scratch_bytes = schedule.programs[2].scratch as u64 * 4;
        assert!(scratch_bytes > 0 && needs[2].scratch_bytes == scratch_bytes, "{:?}", needs[2]);
    }

    #[test]
    fn several_named_algorithms_must_all_fit() {
        use Algorithm::{OneShot, Ring};
        let named = |memory_bytes, algorithms: &[Algorithm]| CollectiveSettings {
            algorithms: algorithms.to_vec(),
            ..settings(memory_bytes)
        };
        let both = plan(&named(1 << 30, &[OneShot, Ring]), 8, &mut drop).unwrap();
        assert_eq!(both.algorithms, [OneShot, Ring]);
        for algorithm in [OneShot, Ring] {
            let alone = memory_needed(&named(1 << 30, &[algorithm]), 8).unwrap();
            assert!(both.needs.iter().zip(alone).all(|(both, own)| both.max(own) == *both));
        }
        assert!(plan(&named(2 << 20, &[Ring]), 8, &mut drop).is_ok());
        let error = plan(&named(2 << 20, &[Ring, OneShot]), 8, &mut drop).unwrap_err().to_string();
        assert!(error.contains("by one-shot needs"), "{error}");
    }

    #[test]
    fn an_algorithm_that_does_not_fit_is_no_choice() {
        let algorithms = |memory_bytes| plan(&settings(memory_bytes), 8, &mut drop).unwrap().algorithms;
        assert!(algorithms(1 << 30).contains(&Algorithm::OneShot));
        let few = algorithms(2 << 20);
        assert!(!few.contains(&Algorithm::OneShot) && few.contains(&Algorithm::Ring), "{few:?}");
    }

    #[test]
    fn what_does_not_fit_at_all_is_refused_with_the_numbers() {
        let error = memory_needed(&settings(500_000), 4).unwrap_err().to_string();
        for part in ["all-reduce of 400000 bytes", "input 400000", "there are 500000", "hint:"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
