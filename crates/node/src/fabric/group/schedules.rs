//! Choice of the schedule for a collective of a given size, and of the piece of an array that fits.
//!
//! Every member chooses alone, so the choice depends only on values that are equal on all members: the collective, its size, the group's
//! options and the rack's links. Measured times differ between members, so the numbers below are constants. They only approximate
//! the sizes at which latency, bandwidth or reduction dominates.

use std::sync::Arc;

use rackloom_collectives::choose::{self, Choice, Fabric, Spread, TopologyKind};
use rackloom_collectives::{Algorithm, Collective, Request, Schedule, build};
use rackloom_protocol::MemberConfig;

use super::super::error::{Error, Invalid};
use super::layout::Layout;

/// Time from a put to its signal at a neighbour.
const ALPHA_NS: f64 = 3000.0;
/// Inverse of the rate of a link.
const NS_PER_BYTE: f64 = 0.5;
/// Time from a put to its signal at a member of the same server, through shared memory.
const LOCAL_ALPHA_NS: f64 = 1000.0;
/// Inverse of the rate of a copy through shared memory.
const LOCAL_NS_PER_BYTE: f64 = 0.15;
/// Inverse of the rate at which a member reduces received data into its own.
const REDUCE_NS_PER_BYTE: f64 = 0.1;
/// Number of schedules that are kept for later calls.
const KEPT_MAX: usize = 16;

/// Schedules of one group.
#[derive(Debug)]
pub(super) struct Schedules {
    members: usize,
    algorithm: Option<Algorithm>,
    topology: (TopologyKind, u32),
    spread: Spread,
    /// Server of each member, by rank. Empty if members of a server exchange frames as well.
    servers: Vec<usize>,
    layout: Layout,
    kept: Vec<(Size, Arc<Schedule>)>,
}

/// Parameters of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) collective: Collective,
    pub(super) elements: usize,
    pub(super) element_bytes: usize,
    /// Number of elements of each part; empty when the parts are equal.
    pub(super) parts: Vec<usize>,
    /// The operands are reduced in ascending order of rank.
    pub(super) is_ordered: bool,
    /// Algorithm of a group that re-chooses, in place of the estimated choice.
    pub(super) algorithm: Option<Algorithm>,
}

impl Size {
    /// Returns the size of a barrier.
    pub(super) const fn barrier() -> Self {
        let collective = Collective::Barrier;
        Self {
            collective,
            elements: 0,
            element_bytes: 1,
            parts: Vec::new(),
            is_ordered: false,
            algorithm: None,
        }
    }
}

impl Size {
    /// Returns `true` if the algorithm does the collective without switches, in the order that it needs.
    fn permits(&self, algorithm: Algorithm) -> bool {
        let keeps_order = !self.is_ordered || algorithm.keeps_rank_order(self.collective);
        algorithm.switches() == 0 && algorithm.does(self.collective) && keeps_order
    }
}

/// Schedules that a call takes without a search.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Number of bytes of each row of one piece at most.
    pub(super) piece: usize,
    pub(super) schedules: Vec<(Size, Arc<Schedule>)>,
}

impl Schedules {
    pub(super) fn new(
        servers: Option<Vec<usize>>,
        members: usize,
        algorithm: Option<Algorithm>,
        config: &MemberConfig,
        layout: Layout,
    ) -> Self {
        let graph = &config.graph;
        let switches = graph.members.iter().filter(|role| role.is_switch()).count();
        let links: Vec<_> = graph.edges.iter().map(|edge| (edge.a.index(), edge.b.index())).collect();
        let topology = choose::kind_of(graph.endpoint_count(), switches, &links);
        let servers = servers.unwrap_or_default();
        let spread = rackloom_plan::spread(&config.paths);
        Self { members, algorithm, topology, spread, servers, layout, kept: Vec::new() }
    }

    /// Returns the largest number of columns, at most `row`, whose schedule fits. `size_of` returns the size of that many columns, or `None` beyond
    /// the address space.
    pub(super) fn columns(
        &mut self,
        row: usize,
        size_of: impl Fn(usize) -> Option<Size>,
    ) -> Result<usize, Error> {
        let mut columns = row;
        while columns > 0 {
            let size = size_of(columns).ok_or(Error::Invalid(Invalid::ArrayTooLarge))?;
            if self.layout.takes(&*self.find(&size)?, size.element_bytes) {
                return Ok(columns);
            }
            columns = if columns == 1 { 0 } else { columns.div_ceil(2) };
        }
        Err(Error::Invalid(Invalid::StagingTooSmall))
    }

    /// Returns the schedule for this size.
    pub(super) fn find(&mut self, size: &Size) -> Result<Arc<Schedule>, Error> {
        if let Some((_, schedule)) = self.kept.iter().find(|(known, _)| known == size) {
            return Ok(Arc::clone(schedule));
        }
        let request = self.request(size);
        let refused = |_| Error::Invalid(Invalid::NoSchedule);
        let algorithm = match size.algorithm.or(self.algorithm).filter(|algorithm| size.permits(*algorithm)) {
            Some(algorithm) => algorithm,
            None if size.collective == Collective::Barrier => Algorithm::Dissemination,
            None => {
                let choice = self.choice(size)?;
                let mut fastest_first = choice.estimates.iter().map(|estimate| estimate.algorithm);
                let permitted = fastest_first.find(|algorithm| size.permits(*algorithm));
                permitted.ok_or(Error::Invalid(Invalid::NoSchedule))?
            }
        };
        let schedule = Arc::new(build(&request, algorithm).map_err(refused)?);
        if self.kept.len() >= KEPT_MAX {
            self.kept.remove(0);
        }
        self.kept.push((size.clone(), Arc::clone(&schedule)));
        Ok(schedule)
    }

    /// Returns the algorithms for this size by their estimated times.
    pub(super) fn choice(&self, size: &Size) -> Result<Choice, Error> {
        choose::choose(&self.request(size), size.element_bytes, &self.fabric())
            .map_err(|_| Error::Invalid(Invalid::NoSchedule))
    }

    /// Returns `true` if the algorithm is suitable for this size and its schedule fits.
    pub(super) fn is_possible(&mut self, size: &Size, algorithm: Algorithm) -> bool {
        let size = Size { algorithm: Some(algorithm), ..size.clone() };
        size.permits(algorithm)
            && self.find(&size).is_ok_and(|schedule| self.layout.takes(&schedule, size.element_bytes))
    }

    fn request<'a>(&'a self, size: &'a Size) -> Request<'a> {
        let Size { collective, elements, ref parts, .. } = *size;
        Request { collective, ranks: self.members, elements, servers: &self.servers, parts }
    }

    const fn fabric(&self) -> Fabric {
        Fabric {
            kind: self.topology.0,
            planes: self.topology.1,
            spread: self.spread,
            alpha_ns: ALPHA_NS,
            link_ns_per_byte: NS_PER_BYTE,
            local_alpha_ns: LOCAL_ALPHA_NS,
            local_ns_per_byte: LOCAL_NS_PER_BYTE,
            reduce_ns_per_byte: REDUCE_NS_PER_BYTE,
            memory_ns_per_byte: 0.0,
            begin_ns: 0.0,
            transfer_limit: None,
        }
    }
}
