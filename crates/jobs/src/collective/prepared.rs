//! Parts of a collective job that are equal for all ranks: the memory plan, the choice of algorithms, each schedule, its index, and the
//! digests of its results.
//!
//! The ranks of one process compute them once. In virtual time one process has all ranks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use rackloom_collectives::choose::{Choice, Fabric, choose};
use rackloom_collectives::fingerprint::{Line, Sums, Values};
use rackloom_collectives::{Algorithm, Schedule, TransferId, build};

use super::common::Common;
use super::expected::{Index, Origin};
use super::locked;
use super::memory_plan::{self, CollectiveError, MemoryPlan};
use super::settings::CollectiveSettings;

/// Content of a [`Common`].
#[derive(Debug, Default)]
struct Shared {
    memory_plan: OnceLock<Result<Arc<MemoryPlan>, CollectiveError>>,
    /// Schedule that the memory plan has built, until the first rank uses it.
    planned: Mutex<Option<Arc<Prepared>>>,
    /// Schedules that a rank uses now.
    schedules: Mutex<HashMap<(Algorithm, usize), Weak<Prepared>>>,
    /// Amounts of schedules, in use or not.
    amounts: Mutex<HashMap<(Algorithm, usize), Amount>>,
    /// Choices of the closed forms on the fabric that was measured, by the number of elements.
    choices: Mutex<HashMap<usize, (Fabric, Choice)>>,
    /// Handles of the groups that repeat the collective after a loss, by their members.
    groups: Mutex<HashMap<Vec<u16>, Common>>,
}

/// Numbers of transfers of a schedule, and of the elements that they move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    pub(crate) transfers: usize,
    pub(crate) elements: usize,
}

/// A schedule, and what the checks of its results need.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) schedule: Schedule,
    index: OnceLock<Index>,
    /// Digests of the expected elements of each origin that a rank has checked.
    digests: Mutex<HashMap<Origin, u64>>,
    /// Fingerprints of transfers in flight, by transfer. Created by the first one.
    flights: OnceLock<Box<[Flight]>>,
    /// Sums of the fingerprints of the inputs of one run.
    sums: Mutex<Option<(u64, Arc<Sums>)>>,
}

/// Fingerprints of one transfer in flight, with the run that they belong to. Threads compute ranks at the same time, so each transfer has a
/// lock of its own: two threads rarely need the same one. A barrier separates runs, so a transfer is in flight in one run at most.
type Flight = Mutex<Option<(u64, Values)>>;

impl Common {
    fn shared(&self) -> Arc<Shared> {
        self.content()
    }

    /// Returns the memory plan of the job. If there is one schedule only, it is kept for the first rank that uses it.
    pub(crate) fn memory_plan(
        &self,
        settings: &CollectiveSettings,
        ranks: usize,
    ) -> Result<Arc<MemoryPlan>, CollectiveError> {
        let shared = self.shared();
        let has_one = settings.algorithms.len() == 1 && settings.sizes.len() == 1;
        let mut built = |schedule: Schedule| {
            if has_one {
                let key = (schedule.algorithm, schedule.elements);
                let prepared = Arc::new(Prepared::new(schedule));
                locked(&shared.schedules).insert(key, Arc::downgrade(&prepared));
                *locked(&shared.planned) = Some(prepared);
            }
        };
        let plan = || memory_plan::plan(settings, ranks, &mut built).map(Arc::new);
        shared.memory_plan.get_or_init(plan).clone()
    }

    /// Returns the handle of a group of these ranks.
    pub(crate) fn of_group(&self, members: &[u16]) -> Self {
        locked(&self.shared().groups).entry(members.to_vec()).or_default().clone()
    }

    /// Returns the schedule of the job for an array of this many elements.
    pub(crate) fn schedule(
        &self,
        settings: &CollectiveSettings,
        ranks: usize,
        algorithm: Algorithm,
        elements: usize,
    ) -> Result<Arc<Prepared>, String> {
        let shared = self.shared();
        let mut schedules = locked(&shared.schedules);
        let known = schedules.get(&(algorithm, elements)).and_then(Weak::upgrade);
        if let Some(prepared) = known {
            locked(&shared.planned).take();
            return Ok(prepared);
        }
        let request = memory_plan::request(settings, ranks, elements);
        let schedule = build(&request, algorithm).map_err(|refused| refused.to_string())?;
        let prepared = Arc::new(Prepared::new(schedule));
        schedules.retain(|_, schedule| schedule.strong_count() > 0);
        schedules.insert((algorithm, elements), Arc::downgrade(&prepared));
        Ok(prepared)
    }

    /// Returns the amount of the schedule of the job for an array of this many elements.
    pub(crate) fn amount(
        &self,
        settings: &CollectiveSettings,
        ranks: usize,
        algorithm: Algorithm,
        elements: usize,
    ) -> Result<Amount, String> {
        let shared = self.shared();
        let known = locked(&shared.amounts).get(&(algorithm, elements)).copied();
        if let Some(amount) = known {
            return Ok(amount);
        }
        let prepared = self.schedule(settings, ranks, algorithm, elements)?;
        let transfers = &prepared.schedule.transfers;
        let moved = transfers.iter().map(|transfer| transfer.source.length).sum();
        let amount = Amount { transfers: transfers.len(), elements: moved };
        locked(&shared.amounts).insert((algorithm, elements), amount);
        Ok(amount)
    }

    /// Returns the choice of the closed forms for an array of this many elements.
    pub(crate) fn choice(
        &self,
        settings: &CollectiveSettings,
        ranks: usize,
        elements: usize,
        fabric: &Fabric,
    ) -> Result<Choice, String> {
        let shared = self.shared();
        let mut choices = locked(&shared.choices);
        if let Some((of_fabric, choice)) = choices.get(&elements)
            && of_fabric == fabric
        {
            return Ok(choice.clone());
        }
        let request = memory_plan::request(settings, ranks, elements);
        let choice =
            choose(&request, settings.element.bytes(), fabric).map_err(|refused| refused.to_string())?;
        choices.insert(elements, (*fabric, choice.clone()));
        Ok(choice)
    }
}

impl Prepared {
    pub(crate) fn new(schedule: Schedule) -> Self {
        let (digests, flights, sums) = Default::default();
        Self { schedule, index: OnceLock::new(), digests, flights, sums }
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

    fn flight(&self, id: TransferId) -> &Flight {
        let flights = || self.schedule.transfers.iter().map(|_| Flight::default()).collect();
        &self.flights.get_or_init(flights)[id.index()]
    }

    /// Records the fingerprints of a transfer that is sent.
    pub(crate) fn send(&self, id: TransferId, run: u64, values: Values) {
        *locked(self.flight(id)) = Some((run, values));
    }

    /// Takes the fingerprints of a transfer that has arrived. `None` if it was not sent.
    pub(crate) fn receive(&self, id: TransferId, run: u64) -> Option<Values> {
        let taken = locked(self.flight(id)).take_if(|(of_run, _)| *of_run == run);
        taken.map(|(_, values)| values)
    }

    /// Returns the sums of the fingerprints of the inputs in a run. `line` returns those of a rank.
    pub(crate) fn sums(&self, run: u64, line: impl Fn(usize) -> Line) -> Arc<Sums> {
        let mut known = locked(&self.sums);
        if let Some((of_run, sums)) = &*known
            && *of_run == run
        {
            return Arc::clone(sums);
        }
        let mut sums = vec![Line::default()];
        for rank in 0..self.schedule.ranks() {
            sums.push(sums[rank].plus(line(rank)));
        }
        let sums: Arc<Sums> = sums.into();
        *known = Some((run, Arc::clone(&sums)));
        sums
    }
}

#[cfg(test)]
mod tests {
    use rackloom_collectives::choose::{Spread, TopologyKind};

    use super::*;

    #[test]
    fn a_schedule_is_shared_while_a_rank_uses_it() {
        let (common, settings) = (Common::default(), CollectiveSettings::default());
        let schedule = |elements| common.schedule(&settings, 4, Algorithm::Ring, elements).unwrap();
        let (first, second, other) = (schedule(64), schedule(64), schedule(32));
        assert!(Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&first, &other));
        drop((first, second));
        assert_eq!(schedule(64).schedule.elements, 64);
        assert!(locked(&common.shared().schedules).len() <= 2, "schedules without a user are dropped");
    }

    #[test]
    fn the_only_schedule_is_built_once_and_released_by_its_last_user() {
        let settings = CollectiveSettings {
            algorithms: vec![Algorithm::Ring],
            sizes: vec![64],
            ..CollectiveSettings::default()
        };
        let common = Common::default();
        common.memory_plan(&settings, 4).unwrap();
        let planned = locked(&common.shared().planned).as_ref().map(Arc::as_ptr).unwrap();
        let used = common.schedule(&settings, 4, Algorithm::Ring, 64).unwrap();
        assert_eq!((Arc::as_ptr(&used), Arc::strong_count(&used)), (planned, 1));
        let several = CollectiveSettings { sizes: vec![64, 32], ..settings };
        let common = Common::default();
        common.memory_plan(&several, 4).unwrap();
        assert!(locked(&common.shared().planned).is_none(), "schedules of several sizes are not kept");
    }

    #[test]
    fn an_amount_is_known_without_a_schedule_in_use() {
        let (common, settings) = (Common::default(), CollectiveSettings::default());
        for _ in 0..2 {
            let amount = common.amount(&settings, 4, Algorithm::Ring, 64).unwrap();
            // Each rank sends 2 (N - 1) parts of a quarter.
            assert_eq!((amount.transfers, amount.elements), (4 * 6, 4 * 6 * 16));
            let shared = common.shared();
            assert!(locked(&shared.schedules).values().all(|schedule| schedule.upgrade().is_none()));
        }
    }

    #[test]
    fn a_choice_belongs_to_its_fabric() {
        let (common, settings) = (Common::default(), CollectiveSettings::default());
        let fabric = |alpha_ns, link_ns_per_byte| Fabric {
            kind: TopologyKind::Ring,
            planes: 1,
            spread: Spread::EQUAL,
            alpha_ns,
            link_ns_per_byte,
            local_alpha_ns: 0.0,
            local_ns_per_byte: 0.0,
            reduce_ns_per_byte: 0.0,
            memory_ns_per_byte: 0.0,
            begin_ns: 0.0,
            transfer_limit: None,
        };
        let choice = |fabric| common.choice(&settings, 8, 1 << 20, &fabric).unwrap();
        let (late, slow) = (choice(fabric(1e9, 0.001)), choice(fabric(1.0, 10.0)));
        assert_ne!(late.algorithm, slow.algorithm);
        assert_eq!((choice(fabric(1e9, 0.001)), choice(fabric(1.0, 10.0))), (late, slow));
    }
}
