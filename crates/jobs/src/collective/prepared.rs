//! Parts of a collective job that are equal for all ranks: the memory plan, each schedule, its index, and the digests of its results.
//!
//! The ranks of one process compute them once. In virtual time one process has all ranks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use rackloom_collectives::{Algorithm, Schedule, build};

use super::expected::{Index, Origin};
use super::locked;
use super::memory_plan::{self, CollectiveError, MemoryPlan};
use super::settings::CollectiveSettings;

/// Handle of what the ranks of one job in one process share. All must have the same settings.
///
/// `Send` and `Sync`: contents behind locks.
#[derive(Clone, Debug, Default)]
pub struct Common {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    memory_plan: OnceLock<Result<Arc<MemoryPlan>, CollectiveError>>,
    /// Schedules that a rank uses now.
    schedules: Mutex<HashMap<(Algorithm, usize), Weak<Prepared>>>,
}

/// A schedule, and what the checks of its results need.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) schedule: Schedule,
    index: OnceLock<Index>,
    /// Digests of the expected elements of each origin that a rank has checked.
    digests: Mutex<HashMap<Origin, u64>>,
}

impl Common {
    /// Returns the memory plan of the job.
    pub(crate) fn memory_plan(
        &self,
        settings: &CollectiveSettings,
        ranks: usize,
    ) -> Result<Arc<MemoryPlan>, CollectiveError> {
        self.inner.memory_plan.get_or_init(|| memory_plan::plan(settings, ranks).map(Arc::new)).clone()
    }

    /// Returns the schedule of the job for an array of this many elements.
    pub(crate) fn schedule(
        &self,
        settings: &CollectiveSettings,
        ranks: usize,
        algorithm: Algorithm,
        elements: usize,
    ) -> Result<Arc<Prepared>, String> {
        let mut schedules = locked(&self.inner.schedules);
        let known = schedules.get(&(algorithm, elements)).and_then(Weak::upgrade);
        if let Some(prepared) = known {
            return Ok(prepared);
        }
        let request = memory_plan::request(settings, ranks, elements);
        let schedule = build(&request, algorithm).map_err(|refused| refused.to_string())?;
        let prepared = Arc::new(Prepared::new(schedule));
        schedules.retain(|_, schedule| schedule.strong_count() > 0);
        schedules.insert((algorithm, elements), Arc::downgrade(&prepared));
        Ok(prepared)
    }
}

impl Prepared {
    pub(crate) fn new(schedule: Schedule) -> Self {
        Self { schedule, index: OnceLock::new(), digests: Mutex::default() }
    }

    /// Returns the index of the schedule, which is computed at the first call.
    pub(crate) fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(&self.schedule))
    }

    /// Returns the digest of the expected elements of an origin, if a rank has checked them.
    pub(crate) fn digest(&self, origin: &Origin) -> Option<u64> {
        locked(&self.digests).get(origin).copied()
    }

    /// Records the digest of the expected elements of an origin.
    pub(crate) fn record_digest(&self, origin: Origin, digest: u64) {
        locked(&self.digests).insert(origin, digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_shared_while_a_rank_uses_it() {
        let (common, settings) = (Common::default(), CollectiveSettings::default());
        let schedule = |elements| common.schedule(&settings, 4, Algorithm::Ring, elements).unwrap();
        let (first, second, other) = (schedule(64), schedule(64), schedule(32));
        assert!(Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&first, &other));
        drop((first, second));
        assert_eq!(schedule(64).schedule.elements, 64);
        assert!(locked(&common.inner.schedules).len() <= 2, "schedules without a user are dropped");
    }
}
