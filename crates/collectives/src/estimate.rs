//! Estimated duration of an algorithm: latency plus bandwidth, with the links of the topology.
//!
//! Closed forms, with alpha the latency of one step and S the bytes of the whole array (Hockney 1994; Thakur,
//! Rabenseifner and Gropp 2005). They are sums of a few moves that all ranks make at once; [`Moves`] has the cost of a move
//! on each topology. On a ring a message over *h* hops pays alpha *h* times and shares its links
//! with the others of the same move. On a torus, a hypercube, a rack of leaves and spines, and a star whose planes are not used equally, the links
//! that messages share are counted (`paths.rs`): a move takes alpha times the hops of its longest path, and beta times the bytes on its busiest link. A ring of ranks passes
//! all links of the ring in turn, so its steps take the mean of their hops.
//!
//! Parts are taken as equal, except where ranks move one part at a time: a ring and a pairwise exchange take as long as if all
//! parts were as large as the largest.
//!
//! A list of servers matters to the algorithms of two levels only. The estimates of all others assume that every message
//! crosses the fabric, so they are too long where ranks of one server exchange much.
//!
//! The reduction of the busiest rank is added. It is equal for most algorithms; in a one-shot every rank reduces all
//! inputs, and in a direct reduce the root reduces all. If the processor that copies frames reduces as well,
//! reducing is a large part: of two ranks that exchange 1 MiB in memory, a third more time for the one-shot.

use crate::algorithm::{Algorithm, DIRECT_SERVERS_MAX, Request, SEGMENTS_MAX, Servers};
use crate::collective::Collective;
use crate::fabric::{Fabric, Spreading, TopologyKind, TransferLimit};
use crate::paths::{Paths, Usage};

use core::num::NonZeroUsize;

/// Returns the nanoseconds that an algorithm is expected to take; the request must suit it.
pub(crate) fn time_ns(request: &Request<'_>, bytes: f64, fabric: &Fabric, algorithm: Algorithm) -> f64 {
    if request.ranks < 2 {
        return 0.0;
    }
    let moves = Moves::of(fabric, request.ranks);
    let ranks = request.ranks as f64;
    let hops = ranks - 1.0;
    let is_scan = matches!(request.collective, Collective::Scan | Collective::ExclusiveScan);
    // An all-reduce is a reduce-scatter and an all-gather, which cost the same.
    let phases = if request.collective == Collective::AllReduce { 2.0 } else { 1.0 };
    match algorithm {
        Algorithm::Ring if is_scan => hops * moves.ring_ns(bytes),
        // The middle link of a ring, and the links of the first and the last rank of a star, carry as much as if all pairs
        // exchanged arrays in both directions.
        Algorithm::Direct if is_scan => moves.all_pairs_ns(bytes),
        Algorithm::Ring => phases * hops * moves.ring_ns(longest_part(request, bytes)),
        Algorithm::BidirectionalRing => {
            phases * hops * moves.both_neighbours_ns(longest_part(request, bytes) / 2.0)
        }
        Algorithm::OneShot => moves.all_pairs_ns(bytes),
        Algorithm::TwoShot => 2.0 * moves.all_pairs_ns(bytes / ranks),
        Algorithm::HalvingDoubling => moves.halving_doubling_ns(bytes),
        Algorithm::Direct => match request.collective {
            Collective::Reduce { .. } => moves.root_ns(bytes, true),
            Collective::Gather { .. } => moves.root_ns(bytes / ranks, true),
            Collective::Scatter { .. } => moves.root_ns(bytes / ranks, false),
            _ => moves.all_pairs_ns(bytes / ranks),
        },
        Algorithm::Pairwise => {
            let longest = longest_part(request, bytes);
            (1..request.ranks).map(|distance| moves.shift_ns(distance, longest)).sum()
        }
        Algorithm::Binomial => moves.powers_of_two().map(|distance| moves.alone_ns(distance, bytes)).sum(),
        Algorithm::RingPipeline { segments } => {
            let segments = segments.get() as f64;
            (ranks - 2.0 + segments) * moves.ring_ns(bytes / segments)
        }
        Algorithm::Dissemination => moves.powers_of_two().map(|distance| moves.shift_ns(distance, 0.0)).sum(),
        Algorithm::TwoLevel => two_level_ns(request, fabric),
        Algorithm::Hierarchical => hierarchical_ns(request, bytes, fabric),
        // To the unit, and from it; segments follow each other.
        Algorithm::InSwitch { switches } => {
            fabric.begin_ns + 2.0 * fabric.alpha_ns + bytes * fabric.link_ns_per_byte / switches.get() as f64
        }
    }
}

/// Returns the bytes of the largest part, or of the largest block of an all-to-all.
fn longest_part(request: &Request<'_>, bytes: f64) -> f64 {
    let mean = bytes / request.ranks as f64;
    let Some(&longest) = request.parts.iter().max().filter(|longest| **longest > 0) else { return mean };
    mean * longest as f64 * request.parts.len() as f64 / request.elements as f64
}

/// Returns the bytes of operands that the busiest rank reduces.
pub(crate) fn reduced_bytes(request: &Request<'_>, bytes: f64, algorithm: Algorithm) -> f64 {
    if !request.collective.reduces() || request.ranks < 2 {
        return 0.0;
    }
    let ranks = request.ranks as f64;
    let others = ranks - 1.0;
    match algorithm {
        // A chain reduces at one rank after the other, so all reductions count.
        _ if request.collective == Collective::Scan => others * bytes,
        _ if request.collective == Collective::ExclusiveScan => (others - 1.0) * bytes,
        Algorithm::OneShot => others * bytes,
        Algorithm::Direct if matches!(request.collective, Collective::Reduce { .. }) => others * bytes,
        Algorithm::Binomial => f64::from(request.ranks.next_power_of_two().ilog2()) * bytes,
        Algorithm::HalvingDoubling => {
            let core = 1_usize << request.ranks.ilog2();
            let fold = if core == request.ranks { 0.0 } else { bytes };
            (core - 1) as f64 / core as f64 * bytes + fold
        }
        Algorithm::Hierarchical => Levels::of(request).reduced_bytes(request, bytes),
        Algorithm::InSwitch { .. } => 0.0,
        _ => others / ranks * bytes,
    }
}

/// Returns the bytes that the busiest rank reads and writes in its own memory to reduce and to copy, as far as no transfer hides it.
///
/// A reduction of one operand into another reads two and writes one. A fold of several reads each once and writes the result once.
pub(crate) fn moved_bytes(request: &Request<'_>, bytes: f64, algorithm: Algorithm) -> f64 {
    if request.ranks < 2 {
        return 0.0;
    }
    let part = bytes / request.ranks as f64;
    if !request.collective.reduces() {
        // The own part is copied last; elsewhere it is copied while others arrive.
        let copies_last =
            matches!(algorithm, Algorithm::Ring | Algorithm::BidirectionalRing | Algorithm::Pairwise);
        return if copies_last { 2.0 * part } else { 0.0 };
    }
    let reduced = reduced_bytes(request, bytes, algorithm);
    let is_part = request.collective == Collective::ReduceScatter;
    let folded = match algorithm {
        Algorithm::OneShot => bytes,
        Algorithm::Direct => {
            if is_part {
                part
            } else {
                bytes
            }
        }
        Algorithm::TwoShot => part,
        Algorithm::Hierarchical => Levels::of(request).folded_bytes(request, bytes),
        _ => return 3.0 * reduced,
    };
    reduced + 2.0 * folded
}

/// Returns the number of segments that makes a pipelined broadcast fastest, `sqrt((N - 2) S beta / alpha)`.
pub(crate) fn best_segments(request: &Request<'_>, bytes: f64, fabric: &Fabric) -> NonZeroUsize {
    let moves = Moves::of(fabric, request.ranks);
    let transfer_ns = bytes * moves.beta_alone();
    let best = (request.ranks.saturating_sub(2) as f64 * transfer_ns / fabric.alpha_ns).sqrt();
    let most = request.elements.clamp(1, SEGMENTS_MAX);
    // Without latency, or without anything to send, the quotient is infinite or no number; `as` saturates.
    let segments = (best.round() as usize).clamp(1, most);
    NonZeroUsize::new(segments).unwrap_or(NonZeroUsize::MIN)
}

/// Returns the time of a two-level barrier. Leaders are assumed at equal distances.
fn two_level_ns(request: &Request<'_>, fabric: &Fabric) -> f64 {
    let leaders = Servers::new(request.servers, request.ranks).count();
    let moves = Moves::of(fabric, request.ranks);
    let spacing = request.ranks / leaders;
    let mut time_ns = if leaders < request.ranks { 2.0 * fabric.local_alpha_ns } else { 0.0 };
    let mut distance = 1;
    while distance < leaders {
        time_ns += moves.shift_ns(distance * spacing, 0.0);
        distance *= 2;
    }
    time_ns
}

/// Returns the time of a hierarchical collective. Servers are assumed at equal distances, and moves to follow each other.
///
/// Each phase inside a server of *L* ranks moves (L - 1) S bytes there: in a reduction the ranks of the lanes together keep
/// S of the L S bytes, and otherwise S of the L S bytes that ranks need come from outside or are at a rank already.
fn hierarchical_ns(request: &Request<'_>, bytes: f64, fabric: &Fabric) -> f64 {
    let levels = Levels::of(request);
    let moves = Moves::of(fabric, request.ranks);
    let inside_bytes = (levels.largest - 1.0) * bytes;
    let inside_ns = if levels.largest > 1.0 {
        fabric.local_alpha_ns + inside_bytes * fabric.local_ns_per_byte
    } else {
        0.0
    };
    let across_ns = |bytes: f64| moves.lanes_ns(&levels, bytes);
    let piece = bytes / levels.lanes;
    match request.collective {
        Collective::AllReduce => 2.0 * (inside_ns + across_ns(piece / levels.servers)),
        Collective::Broadcast { .. } => {
            // The scatter to the lanes of the root's server is part of its bytes, but one more message.
            let scatter_ns = if levels.lanes > 1.0 { fabric.local_alpha_ns } else { 0.0 };
            scatter_ns + moves.between_servers_ns(&levels, piece) + inside_ns
        }
        _ => across_ns(levels.shared() * bytes / request.ranks as f64) + inside_ns,
    }
}

/// Servers of a request, as the estimate of a hierarchical collective uses them.
struct Levels {
    servers: f64,
    /// Ranks of the smallest server.
    lanes: f64,
    /// Ranks of the largest server.
    largest: f64,
}

impl Levels {
    fn of(request: &Request<'_>) -> Self {
        let servers = Servers::new(request.servers, request.ranks);
        Self {
            servers: servers.count() as f64,
            lanes: servers.lanes() as f64,
            largest: servers.largest() as f64,
        }
    }

    /// Returns the number of ranks of another server for which one rank works.
    fn shared(&self) -> f64 {
        (self.largest / self.lanes).ceil()
    }

    /// Returns the bytes of the results of folds at the busiest rank.
    fn folded_bytes(&self, request: &Request<'_>, bytes: f64) -> f64 {
        if request.collective == Collective::AllReduce {
            let piece = bytes / self.lanes;
            return piece + piece / self.servers;
        }
        let part = bytes / request.ranks as f64;
        part * (1.0 + (self.servers - 1.0) * self.shared()) + part
    }

    /// Returns the bytes of operands that the busiest rank reduces.
    fn reduced_bytes(&self, request: &Request<'_>, bytes: f64) -> f64 {
        let (inside, across) = (self.largest - 1.0, self.servers - 1.0);
        if request.collective == Collective::AllReduce {
            let piece = bytes / self.lanes;
            return inside * piece + across * piece / self.servers;
        }
        let part = bytes / request.ranks as f64;
        inside * part * (1.0 + across * self.shared()) + across * part
    }
}

/// Moves that ranks make at once, and their costs.
struct Moves<'a> {
    fabric: &'a Fabric,
    ranks: usize,
    /// Paths of a topology whose links are counted.
    paths: Option<Paths>,
}

impl<'a> Moves<'a> {
    fn of(fabric: &'a Fabric, ranks: usize) -> Self {
        Self { fabric, ranks, paths: Paths::of(fabric, ranks) }
    }

    /// Returns the time of a move in which a rank sends one message, and which the links carry in `links_ns`.
    fn one_each_ns(&self, links_ns: f64) -> f64 {
        self.started_ns(1, links_ns, links_ns)
    }

    /// Returns the time of a move in which a rank sends this many messages. Links carry all at once in `links_ns`, and one after the other in
    /// `in_turn_ns`.
    fn started_ns(&self, messages: usize, in_turn_ns: f64, links_ns: f64) -> f64 {
        let begin_ns = self.fabric.begin_ns;
        let free_ns = begin_ns + links_ns;
        let Some(TransferLimit { in_flight, end_ns }) = self.fabric.transfer_limit else { return free_ns };
        let in_turn_ns = messages as f64 * (begin_ns + end_ns) + in_turn_ns;
        free_ns.max(in_turn_ns / in_flight.get() as f64)
    }

    /// Cost of a message that shares its path with no other.
    fn single_ns(&self, bytes: f64) -> f64 {
        self.fabric.alpha_ns + bytes * self.beta_alone()
    }

    /// Cost of messages of `bytes` that use these links.
    fn counted_ns(&self, usage: Usage, bytes: f64) -> f64 {
        usage.longest * self.fabric.alpha_ns + usage.busiest * bytes * self.fabric.link_ns_per_byte
    }

    /// Mean cost of a step in which every rank sends `bytes` to the next, when it has got those of the previous one.
    fn ring_ns(&self, bytes: f64) -> f64 {
        let Some(paths) = &self.paths else { return self.shift_ns(1, bytes) };
        let usage = paths.usage((0..self.ranks).map(|rank| (rank, (rank + 1) % self.ranks)));
        self.one_each_ns(self.counted_ns(Usage { longest: usage.mean, ..usage }, bytes))
    }

    /// Cost if every rank sends `bytes` to the rank at this distance (or to its partner there).
    fn shift_ns(&self, distance: usize, bytes: f64) -> f64 {
        self.one_each_ns(self.shift_on_links_ns(distance, bytes))
    }

    /// Time in which links carry the messages of a shift.
    fn shift_on_links_ns(&self, distance: usize, bytes: f64) -> f64 {
        if let Some(paths) = &self.paths {
            let shifted = (0..self.ranks).map(|rank| (rank, (rank + distance) % self.ranks));
            return self.counted_ns(paths.usage(shifted), bytes);
        }
        self.hops(distance) * self.single_ns(bytes)
    }

    /// Cost if every rank sends `bytes` to the next rank and as much to the previous one.
    fn both_neighbours_ns(&self, bytes: f64) -> f64 {
        if let Some(paths) = &self.paths {
            let neighbours = |rank: usize| [1, self.ranks - 1].map(|step| (rank, (rank + step) % self.ranks));
            let usage = paths.usage((0..self.ranks).flat_map(neighbours));
            let links_ns = self.counted_ns(Usage { longest: usage.mean, ..usage }, bytes);
            return self.started_ns(2, 2.0 * self.single_ns(bytes), links_ns);
        }
        // Two ranks have the same peer, and usually the same link, on both sides.
        let shares = self.ranks == 2 || self.at_switch();
        let links_ns = self.fabric.alpha_ns + bytes * self.beta_alone() * if shares { 2.0 } else { 1.0 };
        self.started_ns(2, 2.0 * self.single_ns(bytes), links_ns)
    }

    /// Cost if every rank sends `bytes` to every other.
    fn all_pairs_ns(&self, bytes: f64) -> f64 {
        let (alpha_ns, peers) = (self.fabric.alpha_ns, self.ranks - 1);
        // Each rank sends to the one after it first, so all are at the same distance if few may be in flight.
        let in_turn_ns = match self.fabric.transfer_limit {
            Some(_) => (1..self.ranks).map(|distance| self.shift_on_links_ns(distance, bytes)).sum(),
            None => 0.0,
        };
        if let Some(paths) = &self.paths {
            return self.started_ns(peers, in_turn_ns, self.counted_ns(paths.all_pairs(), bytes));
        }
        let load = match self.fabric.kind {
            TopologyKind::Mesh => 1.0,
            // Hops of all messages of one rank, over its two outgoing links; antipodal traffic uses both directions.
            TopologyKind::Ring if self.ranks == 2 => 1.0,
            TopologyKind::Ring => (self.ranks * self.ranks / 4) as f64 / 2.0,
            _ => peers as f64,
        };
        let links_ns = self.hops(self.ranks / 2) * alpha_ns + load * bytes * self.beta_alone();
        self.started_ns(peers, in_turn_ns, links_ns)
    }

    /// Cost if one rank sends `bytes` to each other rank, or receives them.
    fn root_ns(&self, bytes: f64, receives: bool) -> f64 {
        let peers = self.ranks - 1;
        let messages = if receives { 1 } else { peers };
        let in_turn_ns = messages as f64 * self.single_ns(bytes);
        if let Some(paths) = &self.paths {
            return self.started_ns(messages, in_turn_ns, self.counted_ns(paths.with_root(receives), bytes));
        }
        let load = match self.fabric.kind {
            TopologyKind::Mesh => 1,
            TopologyKind::Ring => peers.div_ceil(2),
            _ => peers,
        };
        let links_ns =
            self.hops(self.ranks / 2) * self.fabric.alpha_ns + load as f64 * bytes * self.beta_alone();
        self.started_ns(messages, in_turn_ns, links_ns)
    }

    /// Cost of the messages of a binomial tree over this distance. On a ring they share no link with each other.
    fn alone_ns(&self, distance: usize, bytes: f64) -> f64 {
        if let Some(paths) = &self.paths {
            let senders = (0..self.ranks.saturating_sub(distance)).step_by(2 * distance);
            let usage = paths.usage(senders.map(|rank| (rank, rank + distance)));
            return self.one_each_ns(self.counted_ns(usage, bytes));
        }
        self.one_each_ns(self.hops(distance) * self.fabric.alpha_ns + bytes * self.beta_alone())
    }

    /// Cost if every rank of every lane sends `bytes` to each other rank of its lane.
    fn lanes_ns(&self, levels: &Levels, bytes: f64) -> f64 {
        let peers = levels.servers - 1.0;
        if peers == 0.0 {
            return 0.0;
        }
        let in_turn_ns = peers * self.single_ns(bytes);
        if let Some(paths) = &self.paths {
            let spacing = self.ranks / levels.servers as usize;
            let in_lane = (0..self.ranks).filter(|rank| ((rank % spacing) as f64) < levels.lanes);
            let others = |rank| {
                (spacing..self.ranks).step_by(spacing).map(move |step| (rank, (rank + step) % self.ranks))
            };
            let links_ns = self.counted_ns(paths.usage(in_lane.flat_map(others)), bytes);
            return self.started_ns(levels.servers as usize - 1, in_turn_ns, links_ns);
        }
        let load = match self.fabric.kind {
            TopologyKind::Mesh => 1.0,
            TopologyKind::Ring if self.ranks == 2 => 1.0,
            // As for all pairs, with N/M hops between neighbouring servers, and one sender in each of them and in each lane.
            TopologyKind::Ring => levels.lanes * (levels.servers * levels.servers / 4.0).floor() / 2.0,
            _ => peers,
        };
        let links_ns = self.hops(self.ranks / 2) * self.fabric.alpha_ns + load * bytes * self.beta_alone();
        self.started_ns(levels.servers as usize - 1, in_turn_ns, links_ns)
    }

    /// Cost if each lane passes `bytes` from one server to all others.
    fn between_servers_ns(&self, levels: &Levels, bytes: f64) -> f64 {
        let servers = levels.servers as usize;
        if servers == 1 {
            return 0.0;
        }
        let in_turn_ns = (levels.servers - 1.0) * self.single_ns(bytes);
        if let Some(paths) = &self.paths
            && servers <= DIRECT_SERVERS_MAX
        {
            let spacing = self.ranks / servers;
            let others = |lane| (1..servers).map(move |server| (lane, lane + server * spacing));
            let links_ns = self.counted_ns(paths.usage((0..levels.lanes as usize).flat_map(others)), bytes);
            return self.started_ns(servers - 1, in_turn_ns, links_ns);
        }
        if servers <= DIRECT_SERVERS_MAX {
            let load = match self.fabric.kind {
                TopologyKind::Mesh => 1.0,
                TopologyKind::Ring => levels.lanes * (levels.servers / 2.0).floor(),
                _ => levels.servers - 1.0,
            };
            let links_ns =
                self.hops(self.ranks / 2) * self.fabric.alpha_ns + load * bytes * self.beta_alone();
            return self.started_ns(servers - 1, in_turn_ns, links_ns);
        }
        // On a ring the lanes of a server share the links to the next one.
        let sharing = if self.fabric.kind == TopologyKind::Ring { levels.lanes } else { 1.0 };
        let levels_of_tree = servers.next_power_of_two().ilog2();
        let spacing = self.ranks / servers;
        (0..levels_of_tree).map(|bit| self.alone_ns(spacing << bit, sharing * bytes)).sum()
    }

    fn halving_doubling_ns(&self, bytes: f64) -> f64 {
        let core = 1_usize << self.ranks.ilog2();
        let halvings: f64 =
            (0..core.ilog2()).map(|bit| self.exchange_ns(core, 1 << bit, bytes / f64::from(2 << bit))).sum();
        let fold = if core == self.ranks { 0.0 } else { self.fold_ns(core, bytes) };
        2.0 * (halvings + fold)
    }

    /// Cost if each of the first ranks exchanges `bytes` with the rank whose number differs in this bit.
    fn exchange_ns(&self, ranks: usize, bit: usize, bytes: f64) -> f64 {
        let Some(paths) = &self.paths else { return self.shift_ns(bit, bytes) };
        let usage = paths.usage((0..ranks).map(|rank| (rank, rank ^ bit)));
        self.one_each_ns(self.counted_ns(usage, bytes))
    }

    /// Cost if each rank behind the first ones sends `bytes` to one of them.
    fn fold_ns(&self, first: usize, bytes: f64) -> f64 {
        let Some(paths) = &self.paths else { return self.shift_ns(first, bytes) };
        let usage = paths.usage((first..self.ranks).map(|rank| (rank, rank - first)));
        self.one_each_ns(self.counted_ns(usage, bytes))
    }

    /// Returns 1, 2, 4, ... below the number of ranks.
    fn powers_of_two(&self) -> impl Iterator<Item = usize> {
        (0..self.ranks.next_power_of_two().ilog2()).map(|bit| 1 << bit)
    }

    /// Returns the nanoseconds per byte of a message that shares its path with no other.
    fn beta_alone(&self) -> f64 {
        match self.fabric.kind {
            TopologyKind::Star | TopologyKind::LeafSpine { .. }
                if self.fabric.spread.planes == Spreading::ByPacket =>
            {
                self.fabric.link_ns_per_byte / f64::from(self.fabric.planes.max(1))
            }
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
