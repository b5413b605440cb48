//! Two levels: exchange inside each server first, so that less crosses between servers.
//!
//! Let *W* be the number of ranks of the smallest server. Local rank *w* of every server, for *w* < *W*, belongs to *lane* *w*.
//! Only the ranks of one lane exchange data between servers, so all links of a server carry traffic at once, and each
//! element crosses between two servers once instead of once per rank. Servers may have different numbers of ranks in any
//! order. The ranks beyond the lanes take part inside their server only.
//!
//! - *All-reduce*: lane *w* reduces piece *w* of the array inside each server, then in two shots over the servers, and then
//!   gives the result to the ranks of its server.
//! - *Reduce-scatter*: part *d* is reduced inside each server by the rank whose local index is that of *d* modulo *W*. That
//!   rank sends the result to *d*. Inside its own server *d* reduces by itself.
//! - *All-gather*: a rank sends its part to the ranks of its server and to one rank of each other server, which passes it on.
//! - *Broadcast*: the root gives piece *w* to lane *w* of its server. The lanes pass the pieces to the other servers, by a
//!   binomial tree if there are more than [`DIRECT_SERVERS_MAX`]. The ranks of each server then exchange their pieces.
//!
//! Order of reduction: inside each server in the order of ranks, then over the servers in the order of their numbers,
//! `(x[0] op x[1]) op (x[2] op x[3])` for servers of ranks 0, 1 and 2, 3. Each of the two folds rounds once. All ranks of
//! an all-reduce end with the same bits, because each element is finished at one rank only.

use std::ops::Range;

use super::direct::{self, others, wait_for_all};
use super::servers::{Servers, others_after};
use crate::builder::{Builder, Sent, input, output};
use crate::collective::Collective;
use crate::partition::{part, part_of};
use crate::schedule::Span;

/// Largest number of servers among which the root of a broadcast sends directly.
pub(crate) const DIRECT_SERVERS_MAX: usize = 4;

/// Lays out an all-reduce, a reduce-scatter, an all-gather or a broadcast. `servers` is the list of the request.
pub(super) fn lay_out(builder: &mut Builder, servers: &[usize]) {
    let servers = Servers::new(servers, builder.ranks);
    match builder.collective {
        Collective::ReduceScatter => reduce_scatter(builder, &servers),
        Collective::AllGather => all_gather(builder, &servers),
        Collective::Broadcast { root } => broadcast(builder, &servers, root),
        _ => all_reduce(builder, &servers),
    }
}

/// Data at a rank, valid after a transfer has arrived.
#[derive(Clone, Copy)]
struct Landed {
    arrival: Sent,
    span: Span,
}

impl Landed {
    const fn own(span: Span) -> Self {
        Self { arrival: None, span }
    }
}

/// Sends a span to a new slot of another rank's scratch.
fn send_to_slot(builder: &mut Builder, from: usize, to: usize, source: Span) -> Landed {
    let span = builder.slot(to, source.length);
    Landed { arrival: builder.send(from, to, source, span), span }
}

/// Waits for all operands in a rank's current step and folds them.
fn fold(builder: &mut Builder, rank: usize, operands: &[Landed], target: Span) {
    for operand in operands {
        builder.wait(rank, operand.arrival);
    }
    let spans: Vec<_> = operands.iter().map(|operand| operand.span).collect();
    builder.fold(rank, &spans, target);
}

/// Makes a rank's current step fold operands into a new slot, from where the result may be sent. A single operand stays in
/// place.
fn fold_to_slot(builder: &mut Builder, rank: usize, operands: &[Landed]) -> Span {
    if let [only] = operands {
        builder.wait(rank, only.arrival);
        return only.span;
    }
    let target = builder.slot(rank, operands[0].span.length);
    fold(builder, rank, operands, target);
    target
}

/// Returns a part of a span. `range` counts from the start of the span.
fn within(span: Span, range: &Range<usize>) -> Span {
    Span::new(span.buffer, span.start + range.start..span.start + range.end)
}

fn all_reduce(builder: &mut Builder, servers: &Servers) {
    let lanes = servers.lanes();
    // By server and lane: the contributions of the server, in the order of ranks.
    let mut given = vec![vec![Vec::new(); lanes]; servers.count()];
    for (server, group) in servers.iter().enumerate() {
        for (local, &rank) in group.iter().enumerate() {
            builder.step(rank, 0);
            for lane in (1..=lanes).map(|distance| (local + distance) % lanes) {
                let source = input(part(builder.elements, lanes, lane));
                let landed = if lane == local {
                    Landed::own(source)
                } else {
                    send_to_slot(builder, rank, group[lane], source)
                };
                given[server][lane].push(landed);
            }
        }
    }
    let mut last: Vec<Vec<Sent>> = vec![Vec::new(); builder.ranks];
    for lane in 0..lanes {
        let peers: Vec<_> = servers.iter().map(|group| group[lane]).collect();
        let contributions: Vec<_> = given.iter_mut().map(|lanes| std::mem::take(&mut lanes[lane])).collect();
        let piece = part(builder.elements, lanes, lane);
        let arrivals = two_shot(builder, &peers, &contributions, &piece);
        for (group, arrivals) in servers.iter().zip(arrivals) {
            let (rank, result) = (group[lane], output(piece.clone()));
            builder.step(rank, 3);
            arrivals.into_iter().for_each(|arrival| builder.wait(rank, arrival));
            for to in others_after(group, rank) {
                last[to].push(builder.send(rank, to, result, result));
            }
        }
    }
    wait_for_all(builder, &last, 4);
}

/// Folds the contributions of each peer's server, then reduces the results over the peers. Each peer ends with the piece in
/// its output when the returned transfers to it have arrived.
fn two_shot(
    builder: &mut Builder,
    peers: &[usize],
    contributions: &[Vec<Landed>],
    piece: &Range<usize>,
) -> Vec<Vec<Sent>> {
    if let ([rank], [contributions]) = (peers, contributions) {
        builder.step(*rank, 1);
        fold(builder, *rank, contributions, output(piece.clone()));
        return vec![Vec::new()];
    }
    let share = |index: usize| part(piece.len(), peers.len(), index);
    let mut partials: Vec<Vec<Option<Landed>>> = vec![vec![None; peers.len()]; peers.len()];
    for (from, (&rank, contributions)) in peers.iter().zip(contributions).enumerate() {
        builder.step(rank, 1);
        let partial = fold_to_slot(builder, rank, contributions);
        partials[from][from] = Some(Landed::own(within(partial, &share(from))));
        for to in others(from, peers.len()) {
            let landed = send_to_slot(builder, rank, peers[to], within(partial, &share(to)));
            partials[to][from] = Some(landed);
        }
    }
    let mut arrivals = vec![Vec::new(); peers.len()];
    for (from, (&rank, partials)) in peers.iter().zip(partials).enumerate() {
        let operands: Vec<_> = partials.into_iter().flatten().collect();
        let reduced = output(part_of(piece, peers.len(), from));
        builder.step(rank, 2);
        fold(builder, rank, &operands, reduced);
        for to in others(from, peers.len()) {
            arrivals[to].push(builder.send(rank, peers[to], reduced, reduced));
        }
    }
    arrivals
}

fn reduce_scatter(builder: &mut Builder, servers: &Servers) {
    let ranks = builder.ranks;
    if servers.count() == 1 {
        return direct::lay_out(builder);
    }
    // By server and destination: the contributions of the server, in the order of ranks.
    let mut given = vec![vec![Vec::new(); ranks]; servers.count()];
    for (server, group) in servers.iter().enumerate() {
        for &rank in group {
            builder.step(rank, 0);
            for to in (1..=ranks).map(|distance| (rank + distance) % ranks) {
                let source = input(builder.part(to));
                let at = collector(servers, server, to);
                let landed =
                    if at == rank { Landed::own(source) } else { send_to_slot(builder, rank, at, source) };
                given[server][to].push(landed);
            }
        }
    }
    let mut partials: Vec<Vec<Landed>> = vec![Vec::with_capacity(servers.count()); ranks];
    for (group, given) in servers.iter().zip(&given) {
        // Each server begins with the ranks after its own, so that not all send to one rank first.
        for to in (1..=ranks).map(|distance| (group[0] + distance) % ranks) {
            let at = collector(servers, servers.server_of(group[0]), to);
            builder.step(at, 1);
            let partial = fold_to_slot(builder, at, &given[to]);
            let landed = if at == to { Landed::own(partial) } else { send_to_slot(builder, at, to, partial) };
            partials[to].push(landed);
        }
    }
    for (rank, operands) in partials.iter().enumerate() {
        builder.step(rank, 2);
        fold(builder, rank, operands, output(0..operands[0].span.length));
    }
}

/// Returns the rank of a server that handles the part of rank `of`: that rank itself in its own server.
fn collector(servers: &Servers, server: usize, of: usize) -> usize {
    if servers.server_of(of) == server {
        of
    } else {
        servers.members(server)[servers.local_of(of) % servers.lanes()]
    }
}

fn all_gather(builder: &mut Builder, servers: &Servers) {
    let ranks = builder.ranks;
    let parts: Vec<_> = (0..ranks).map(|rank| builder.part(rank)).collect();
    let mut last: Vec<Vec<Sent>> = vec![Vec::new(); ranks];
    // By receiver: transfers from other servers, with the part that they carry.
    let mut passed: Vec<Vec<(Sent, Span)>> = vec![Vec::new(); ranks];
    for (rank, part) in parts.iter().enumerate() {
        let (source, target) = (input(0..part.len()), output(part.clone()));
        let home = servers.server_of(rank);
        builder.step(rank, 0);
        for server in others(home, servers.count()) {
            let to = collector(servers, server, rank);
            passed[to].push((builder.send(rank, to, source, target), target));
        }
        for to in others_after(servers.members(home), rank) {
            last[to].push(builder.send(rank, to, source, target));
        }
    }
    for (rank, part) in parts.iter().enumerate() {
        builder.step(rank, 1);
        builder.copy(rank, input(0..part.len()), output(part.clone()));
        for (arrival, span) in std::mem::take(&mut passed[rank]) {
            builder.step(rank, 1);
            builder.wait(rank, arrival);
            for to in others_after(servers.members(servers.server_of(rank)), rank) {
                last[to].push(builder.send(rank, to, span, span));
            }
        }
    }
    wait_for_all(builder, &last, 2);
}

fn broadcast(builder: &mut Builder, servers: &Servers, root: usize) {
    let lanes = servers.lanes();
    let home = servers.server_of(root);
    let mut last: Vec<Vec<Sent>> = vec![Vec::new(); builder.ranks];
    builder.step(root, 0);
    let scattered: Vec<_> = (0..lanes)
        .map(|lane| {
            let (to, piece) = (servers.members(home)[lane], part(builder.elements, lanes, lane));
            if to == root {
                return Landed::own(input(piece));
            }
            let span = output(piece.clone());
            Landed { arrival: builder.send(root, to, input(piece), span), span }
        })
        .collect();
    // The first step of a lane waits for its own piece only, so that lanes do not wait for each other.
    for (lane, at_home) in scattered.into_iter().enumerate() {
        let peers: Vec<_> = (0..servers.count()).map(|index| (home + index) % servers.count()).collect();
        let ranks: Vec<_> = peers.iter().map(|&server| servers.members(server)[lane]).collect();
        let children = |index: usize| children(index, ranks.len());
        let mut held = vec![at_home; ranks.len()];
        for (index, &rank) in ranks.iter().enumerate() {
            let Landed { arrival, span } = held[index];
            builder.step(rank, 1 + depth(index, ranks.len()));
            builder.wait(rank, arrival);
            let target = output(part(builder.elements, lanes, lane));
            for child in children(index) {
                held[child] =
                    Landed { arrival: builder.send(rank, ranks[child], span, target), span: target };
            }
            for to in others_after(servers.members(peers[index]), rank).filter(|&to| to != root) {
                last[to].push(builder.send(rank, to, span, target));
            }
        }
    }
    let deepest = (0..servers.count()).map(|index| depth(index, servers.count())).max().unwrap_or(0);
    wait_for_all(builder, &last, 2 + deepest);
    let all = 0..builder.elements;
    builder.copy(root, input(all.clone()), output(all));
}

/// Returns the servers to which a server passes a piece of a broadcast, the most distant first. Servers count from that of the
/// root, and a child's number is larger than its parent's.
fn children(index: usize, servers: usize) -> Vec<usize> {
    if servers <= DIRECT_SERVERS_MAX {
        return if index == 0 { (1..servers).collect() } else { Vec::new() };
    }
    let below = if index == 0 { servers.next_power_of_two().ilog2() } else { index.trailing_zeros() };
    (0..below).rev().map(|bit| index + (1 << bit)).filter(|&child| child < servers).collect()
}

/// Returns the number of messages between servers from the root's server to this one.
const fn depth(index: usize, servers: usize) -> usize {
    if servers <= DIRECT_SERVERS_MAX {
        return if index == 0 { 0 } else { 1 };
    }
    index.count_ones() as usize
}
