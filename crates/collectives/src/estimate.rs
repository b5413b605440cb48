//! Estimated duration of an algorithm: latency plus bandwidth, with the links of the topology.
//!
//! Closed forms, with alpha the latency of one step and S the bytes of the whole array (Hockney 1994; Thakur,
//! Rabenseifner and Gropp 2005). They are sums of a few moves that all ranks make at once; [`Moves`] has the cost of a move
//! on each topology. On a ring a message over *h* hops pays alpha *h* times and shares its links
//! with the others of the same move.
//!
//! The reduction of the busiest rank is added. It is equal for most algorithms; in a one-shot every rank reduces all
//! inputs, and in a direct reduce the root reduces all. If the processor that copies frames reduces as well,
//! reducing is a large part: of two ranks that exchange 1 MiB in memory, a third more time for the one-shot.

use crate::algorithm::{Algorithm, Request, SEGMENTS_MAX};
use crate::collective::Collective;
use crate::fabric::{Fabric, TopologyKind};

use core::num::NonZeroUsize;

/// Returns the nanoseconds that an algorithm is expected to take; the request must suit it.
pub(crate) fn time_ns(request: &Request<'_>, bytes: f64, fabric: &Fabric, algorithm: Algorithm) -> f64 {
    if request.ranks < 2 {
        return 0.0;
    }
    let moves = Moves { fabric, ranks: request.ranks };
    let ranks = request.ranks as f64;
    let hops = ranks - 1.0;
    // An all-reduce is a reduce-scatter and an all-gather, which cost the same.
    let phases = if request.collective == Collective::AllReduce { 2.0 } else { 1.0 };
    match algorithm {
        Algorithm::Ring => phases * hops * moves.shift_ns(1, bytes / ranks),
        Algorithm::BidirectionalRing => phases * hops * moves.both_neighbours_ns(bytes / (2.0 * ranks)),
        Algorithm::OneShot => moves.all_pairs_ns(bytes),
        Algorithm::TwoShot => 2.0 * moves.all_pairs_ns(bytes / ranks),
        Algorithm::HalvingDoubling => moves.halving_doubling_ns(bytes),
        Algorithm::Direct => match request.collective {
            Collective::Reduce { .. } => moves.root_ns(bytes),
            Collective::Gather { .. } | Collective::Scatter { .. } => moves.root_ns(bytes / ranks),
            _ => moves.all_pairs_ns(bytes / ranks),
        },
        Algorithm::Pairwise => {
            (1..request.ranks).map(|distance| moves.shift_ns(distance, bytes / ranks)).sum()
        }
        Algorithm::Binomial => moves.powers_of_two().map(|distance| moves.alone_ns(distance, bytes)).sum(),
        Algorithm::RingPipeline { segments } => {
            let segments = segments.get() as f64;
            (ranks - 2.0 + segments) * moves.shift_ns(1, bytes / segments)
        }
        Algorithm::Dissemination => moves.powers_of_two().map(|distance| moves.shift_ns(distance, 0.0)).sum(),
        Algorithm::TwoLevel => two_level_ns(request, fabric),
    }
}

/// Returns the bytes of operands that the busiest rank reduces.
pub(crate) fn reduced_bytes(request: &Request<'_>, bytes: f64, algorithm: Algorithm) -> f64 {
    if !request.collective.reduces() || request.ranks < 2 {
        return 0.0;
    }
    let ranks = request.ranks as f64;
    let others = ranks - 1.0;
    match algorithm {
        Algorithm::OneShot => others * bytes,
        Algorithm::Direct if matches!(request.collective, Collective::Reduce { .. }) => others * bytes,
        Algorithm::Binomial => f64::from(request.ranks.next_power_of_two().ilog2()) * bytes,
        Algorithm::HalvingDoubling => {
            let core = 1_usize << request.ranks.ilog2();
            let fold = if core == request.ranks { 0.0 } else { bytes };
            (core - 1) as f64 / core as f64 * bytes + fold
        }
        _ => others / ranks * bytes,
    }
}

/// Returns the number of segments that makes a pipelined broadcast fastest, `sqrt((N - 2) S beta / alpha)`.
pub(crate) fn best_segments(request: &Request<'_>, bytes: f64, fabric: &Fabric) -> NonZeroUsize {
    let moves = Moves { fabric, ranks: request.ranks };
    let transfer_ns = bytes * moves.beta_alone();
    let best = (request.ranks.saturating_sub(2) as f64 * transfer_ns / fabric.alpha_ns).sqrt();
    let most = request.elements.clamp(1, SEGMENTS_MAX);
    // Without latency, or without anything to send, the quotient is infinite or no number; `as` saturates.
    let segments = (best.round() as usize).clamp(1, most);
    NonZeroUsize::new(segments).unwrap_or(NonZeroUsize::MIN)
}

/// Returns the time of a two-level barrier. Leaders are assumed at equal distances.
fn two_level_ns(request: &Request<'_>, fabric: &Fabric) -> f64 {
    let mut servers = request.servers.to_vec();
    servers.sort_unstable();
    servers.dedup();
    let leaders = if servers.is_empty() { request.ranks } else { servers.len() };
    let moves = Moves { fabric, ranks: request.ranks };
    let spacing = request.ranks / leaders;
    let mut time_ns = if leaders < request.ranks { 2.0 * fabric.local_alpha_ns } else { 0.0 };
    let mut distance = 1;
    while distance < leaders {
        time_ns += moves.shift_ns(distance * spacing, 0.0);
        distance *= 2;
    }
    time_ns
}

/// Moves that ranks make at once, and their costs.
struct Moves<'a> {
    fabric: &'a Fabric,
    ranks: usize,
}

impl Moves<'_> {
    /// Cost if every rank sends `bytes` to the rank at this distance (or to its partner there).
    fn shift_ns(&self, distance: usize, bytes: f64) -> f64 {
        let hops = self.hops(distance);
        hops * (self.fabric.alpha_ns + bytes * self.beta_alone())
    }

    /// Cost if every rank sends `bytes` to the next rank and as much to the previous one.
    fn both_neighbours_ns(&self, bytes: f64) -> f64 {
        // Two ranks have the same peer, and usually the same link, on both sides.
        let shares = self.ranks == 2 || self.at_switch();
        self.fabric.alpha_ns + bytes * self.beta_alone() * if shares { 2.0 } else { 1.0 }
    }

    /// Cost if every rank sends `bytes` to every other.
    fn all_pairs_ns(&self, bytes: f64) -> f64 {
        let (alpha_ns, peers) = (self.fabric.alpha_ns, self.ranks - 1);
        let load = match self.fabric.kind {
            TopologyKind::Mesh => 1.0,
            TopologyKind::Star | TopologyKind::Custom => peers as f64,
            // Hops of all messages of one rank, over its two outgoing links; antipodal traffic uses both directions.
            TopologyKind::Ring if self.ranks == 2 => 1.0,
            TopologyKind::Ring => (self.ranks * self.ranks / 4) as f64 / 2.0,
        };
        self.hops(self.ranks / 2) * alpha_ns + load * bytes * self.beta_alone()
    }

    /// Cost if one rank sends `bytes` to each other rank, or receives them.
    fn root_ns(&self, bytes: f64) -> f64 {
        let peers = self.ranks - 1;
        let load = match self.fabric.kind {
            TopologyKind::Mesh => 1,
            TopologyKind::Star | TopologyKind::Custom => peers,
            TopologyKind::Ring => peers.div_ceil(2),
        };
        self.hops(self.ranks / 2) * self.fabric.alpha_ns + load as f64 * bytes * self.beta_alone()
    }

    /// Cost of messages over this distance that share no link with each other.
    fn alone_ns(&self, distance: usize, bytes: f64) -> f64 {
        self.hops(distance) * self.fabric.alpha_ns + bytes * self.beta_alone()
    }

    fn halving_doubling_ns(&self, bytes: f64) -> f64 {
        let core = 1_usize << self.ranks.ilog2();
        let halvings: f64 =
            (0..core.ilog2()).map(|bit| self.shift_ns(1 << bit, bytes / f64::from(2 << bit))).sum();
        let fold = if core == self.ranks { 0.0 } else { self.shift_ns(core, bytes) };
        2.0 * (halvings + fold)
    }

    /// Returns 1, 2, 4, ... below the number of ranks.
    fn powers_of_two(&self) -> impl Iterator<Item = usize> {
        (0..self.ranks.next_power_of_two().ilog2()).map(|bit| 1 << bit)
    }

    /// Returns the nanoseconds per byte of a message that shares its path with no other.
    fn beta_alone(&self) -> f64 {
        match self.fabric.kind {
            TopologyKind::Star => self.fabric.link_ns_per_byte / f64::from(self.fabric.planes.max(1)),
            _ => self.fabric.link_ns_per_byte,
        }
    }

    fn at_switch(&self) -> bool {
        matches!(self.fabric.kind, TopologyKind::Star | TopologyKind::Custom)
    }

    fn hops(&self, distance: usize) -> f64 {
        match self.fabric.kind {
            TopologyKind::Ring => distance.min(self.ranks.saturating_sub(distance)).max(1) as f64,
            _ => 1.0,
        }
    }
}
