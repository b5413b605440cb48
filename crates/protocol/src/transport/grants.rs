//! Grants: a receiver decides how many packets may be in flight towards it.
//!
//! A node has a pool of packets that may be on their way to it, over all of its links and classes together. A sender says in each packet
//! how many more wait behind it. Each packet that arrives returns to the pool, and the pool is given to the streams with waiting packets,
//! one packet at a time in round-robin order. A grant is cumulative: the number of the first packet that the sender may not send. A stream
//! without a grant may have one packet in flight, so that it can announce what waits, and so that a lost grant stops no stream.
//!
//! So the queue in front of a node holds at most the pool and one packet of each stream without a grant. Receivers that pull are those of
//! NDP (Handley et al. 2017), Homa (Montazeri et al. 2018), ExpressPass (Cho et al. 2017) and EQDS (Olteanu et al. 2022). Those pace
//! their grants by a clock; here the arrival of a packet is the clock, as in a window.
//!
//! A share that no packet uses returns to the pool when the peer is lost, or when nothing of the stream has arrived for an interval. It was
//! lost with its packets, or its sender has given up what it had announced.
//!
//! This file contains no time-outs of packets: lost packets and lost grants are repaired by the retransmission of the streams.

use alloc::collections::{BTreeMap, VecDeque};

use super::distance;
use crate::config::TransportConfig;
use crate::ids::{Class, NodeId};
use crate::time::Instant;

/// Stream that arrives at this node.
pub type Source = (NodeId, Class);

/// State of a stream after a packet of it has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Number of the first packet that the receiver expects.
    pub expected: u32,
    /// Packets after a gap that have arrived.
    pub held: u32,
    /// Number of the first packet that the sender does not have yet.
    pub end: u32,
}

/// Share of one stream in the pool.
#[derive(Clone, Copy, Debug)]
struct Share {
    expected: u32,
    held: u32,
    /// Number of the first packet that the sender does not have yet, as far as it has announced.
    end: u32,
    /// Number of the first packet that the sender may not send.
    granted: u32,
    /// Packets that are granted and have not arrived.
    charged: u32,
    is_in_line: bool,
    /// True if the last grant has not left yet.
    is_due: bool,
    /// True if a packet has arrived or a grant was given since the last check.
    has_moved: bool,
}

impl Share {
    /// Returns true if the stream has packets without a grant that its window admits.
    const fn wants(&self, window: u32) -> bool {
        is_after(self.end, self.granted) && is_after(self.expected.wrapping_add(window), self.granted)
    }

    /// Returns the granted packets that have not arrived.
    const fn outstanding(&self) -> u32 {
        distance(self.expected, self.granted).saturating_sub(self.held)
    }
}

/// Pool of one node, and the shares of all streams that arrive there.
#[derive(Debug)]
pub struct Grants {
    pool: u32,
    window: u32,
    check_interval_ns: u64,
    in_use: u32,
    /// Streams with a share, or with packets that wait for one.
    shares: BTreeMap<Source, Share>,
    /// Streams that want a grant, in round-robin order.
    line: VecDeque<Source>,
    /// Streams with a new grant.
    due: VecDeque<Source>,
    deadline: Option<Instant>,
}

impl Grants {
    /// Returns a pool of `pool` packets, all of them free. A stream has grants for at most `window` packets. Shares of which nothing arrives
    /// for `check_interval_ns` return.
    #[must_use]
    pub const fn new(pool: u32, window: u32, check_interval_ns: u64) -> Self {
        Self {
            pool,
            window,
            check_interval_ns,
            in_use: 0,
            shares: BTreeMap::new(),
            line: VecDeque::new(),
            due: VecDeque::new(),
            deadline: None,
        }
    }

    /// Returns the pool of a member with these settings, or `None` if receivers grant no packets.
    #[must_use]
    pub fn of(config: &TransportConfig) -> Option<Self> {
        let pool = config.grant_pool()?;
        Some(Self::new(pool, config.window_packets, config.timeout_max_ns))
    }

    /// Number of packets that are granted and have not arrived.
    #[must_use]
    pub const fn in_use(&self) -> u32 {
        self.in_use
    }

    /// Records that a packet has arrived. Gives what has returned to the pool to the streams that wait.
    pub fn note_arrival(&mut self, now: Instant, source: Source, arrived: Arrived) {
        let Arrived { expected, held, end } = arrived;
        if !is_after(end, expected) && !self.shares.contains_key(&source) {
            return;
        }
        let window = self.window;
        let fresh = || Share {
            expected,
            held,
            end: expected,
            granted: expected,
            charged: 0,
            is_in_line: false,
            is_due: false,
            has_moved: true,
        };
        let share = self.shares.entry(source).or_insert_with(fresh);
        (share.expected, share.held, share.has_moved) = (expected, held, true);
        share.end = later(later(share.end, end), expected);
        share.granted = later(share.granted, expected);
        self.in_use -= share.charged;
        share.charged = share.outstanding();
        self.in_use += share.charged;
        let is_over = share.charged == 0 && !is_after(share.end, share.granted);
        if is_over {
            self.remove(source);
        } else if !share.is_in_line && share.wants(window) {
            share.is_in_line = true;
            self.line.push_back(source);
        }
        self.distribute();
        if self.deadline.is_none() && !self.shares.is_empty() {
            self.deadline = Some(now + self.check_interval_ns);
        }
    }

    /// Returns a stream whose grant must leave, once for each grant. Streams whose grant has left are skipped.
    pub fn next_due(&mut self) -> Option<Source> {
        loop {
            let source = self.due.pop_front()?;
            if self.shares.get(&source).is_some_and(|share| share.is_due) {
                return Some(source);
            }
        }
    }

    /// Returns true if a grant to this node has not left.
    #[must_use]
    pub fn is_due(&self, node: NodeId) -> bool {
        self.shares_of(node).any(|(_, share)| share.is_due)
    }

    /// Returns true if packets of this stream are granted that have not arrived. Each acknowledgement of the stream then repeats the grant.
    #[must_use]
    pub fn is_in_use_by(&self, source: Source) -> bool {
        self.shares.get(&source).is_some_and(|share| share.charged > 0)
    }

    /// Returns the grant of this stream for an acknowledgement that leaves now: the number of the first packet that the sender may not send.
    /// Returns `None` if no packet is granted that has not arrived.
    pub fn announce(&mut self, source: Source) -> Option<u32> {
        let share = self.shares.get_mut(&source)?;
        share.is_due = false;
        (share.charged > 0).then_some(share.granted)
    }

    /// Returns the shares of a lost node to the pool.
    pub fn forget(&mut self, node: NodeId) {
        for class in Class::ALL {
            self.remove((node, class));
        }
        self.distribute();
    }

    /// Returns the time at which `handle_timeout` is due.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Handles the passage of time: returns shares of streams of which nothing has arrived since the last check.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        let is_idle = |(source, share): (&Source, &Share)| (!share.has_moved).then_some(*source);
        let idle: VecDeque<_> = self.shares.iter().filter_map(is_idle).collect();
        idle.into_iter().for_each(|source| self.remove(source));
        self.shares.values_mut().for_each(|share| share.has_moved = false);
        self.distribute();
        self.deadline = (!self.shares.is_empty()).then(|| now + self.check_interval_ns);
    }

    fn shares_of(&self, node: NodeId) -> impl Iterator<Item = (&Source, &Share)> {
        self.shares.range((node, Class::ALL[0])..=(node, Class::ALL[Class::COUNT - 1]))
    }

    fn remove(&mut self, source: Source) {
        let Some(share) = self.shares.remove(&source) else { return };
        self.in_use -= share.charged;
        if share.is_in_line {
            self.line.retain(|other| *other != source);
        }
    }

    /// Gives the free part of the pool to the streams that wait, one packet each in turn.
    fn distribute(&mut self) {
        while self.in_use < self.pool
            && let Some(source) = self.line.pop_front()
        {
            let Some(share) = self.shares.get_mut(&source) else { continue };
            share.is_in_line = false;
            if !share.wants(self.window) {
                continue;
            }
            share.granted = share.granted.wrapping_add(1);
            share.charged += 1;
            share.has_moved = true;
            self.in_use += 1;
            if !core::mem::replace(&mut share.is_due, true) {
                self.due.push_back(source);
            }
            if share.wants(self.window) {
                share.is_in_line = true;
                self.line.push_back(source);
            }
        }
        self.check();
    }

    /// Asserts that the pool is the sum of its parts, and that it is not exceeded. Builds with debug assertions only.
    fn check(&self) {
        if cfg!(debug_assertions) {
            let charged: u32 = self.shares.values().map(|share| share.charged).sum();
            assert_eq!(charged, self.in_use, "shares of the pool");
            assert!(self.in_use <= self.pool, "{} packets are granted of {}", self.in_use, self.pool);
            let in_line = self.shares.values().filter(|share| share.is_in_line).count();
            assert_eq!(in_line, self.line.len(), "streams in line");
        }
    }
}

/// Returns true if the packet number `a` is after `b`.
const fn is_after(a: u32, b: u32) -> bool {
    let ahead = distance(b, a);
    ahead > 0 && ahead < 1 << 31
}

const fn later(a: u32, b: u32) -> u32 {
    if is_after(a, b) { a } else { b }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const CLASS: Class = Class::Bulk;
    const INTERVAL_NS: u64 = 1_000;

    const fn source(node: u16) -> Source {
        (NodeId(node), CLASS)
    }

    fn at(ns: u64) -> Instant {
        Instant(ns)
    }

    /// Records that the packets before `expected` have arrived, and that `waiting` exist behind them.
    fn arrive(grants: &mut Grants, node: u16, expected: u32, waiting: u32) {
        let end = expected.wrapping_add(waiting);
        grants.note_arrival(at(0), source(node), Arrived { expected, held: 0, end });
    }

    /// Returns the nodes with new grants, and the grants.
    fn announced(grants: &mut Grants) -> Vec<(u16, u32)> {
        let mut found = Vec::new();
        while let Some(source) = grants.next_due() {
            found.push((source.0.0, grants.announce(source).expect("a grant")));
        }
        found
    }

    #[test]
    fn a_lone_stream_gets_the_pool_but_no_more_than_waits_and_its_window_admits() {
        for (pool, window, waiting, expected) in [(8, 100, 50, 8), (8, 100, 3, 3), (8, 5, 50, 5)] {
            let mut grants = Grants::new(pool, window, INTERVAL_NS);
            arrive(&mut grants, 1, 1, waiting);
            assert_eq!(announced(&mut grants), [(1, 1 + expected)]);
            assert_eq!(grants.in_use(), expected);
        }
    }

    #[test]
    fn a_stream_that_announces_nothing_needs_no_share() {
        let mut grants = Grants::new(8, 100, INTERVAL_NS);
        arrive(&mut grants, 1, 1, 0);
        assert_eq!((grants.in_use(), grants.deadline()), (0, None));
    }

    #[test]
    fn a_packet_that_arrives_goes_to_the_next_stream_in_turn() {
        let mut grants = Grants::new(4, 100, INTERVAL_NS);
        arrive(&mut grants, 1, 1, 50);
        arrive(&mut grants, 2, 1, 50);
        arrive(&mut grants, 3, 1, 50);
        assert_eq!(announced(&mut grants), [(1, 5)]);
        let mut shares = [0; 4];
        // The packets of the first stream arrive. Their shares go to the streams in turn, and the first one is first in line.
        for expected in 2..=5 {
            arrive(&mut grants, 1, expected, 50);
            for (node, _) in announced(&mut grants) {
                shares[usize::from(node)] += 1;
            }
        }
        assert_eq!((shares, grants.in_use()), ([0, 2, 1, 1], 4));
    }

    #[test]
    fn packets_after_a_gap_return_to_the_pool() {
        let mut grants = Grants::new(4, 100, INTERVAL_NS);
        arrive(&mut grants, 1, 1, 4);
        assert_eq!(grants.in_use(), 4);
        // Packet 1 is lost, and 2 and 3 arrive.
        grants.note_arrival(at(0), source(1), Arrived { expected: 1, held: 2, end: 5 });
        assert_eq!(grants.in_use(), 2);
        grants.note_arrival(at(0), source(1), Arrived { expected: 4, held: 0, end: 5 });
        assert_eq!(grants.in_use(), 1);
        grants.note_arrival(at(0), source(1), Arrived { expected: 5, held: 0, end: 5 });
        assert_eq!((grants.in_use(), grants.shares.len()), (0, 0));
    }

    #[test]
    fn a_grant_is_repeated_until_its_packets_have_arrived() {
        let mut grants = Grants::new(2, 100, INTERVAL_NS);
        arrive(&mut grants, 1, 1, 2);
        assert!(grants.is_due(NodeId(1)) && grants.is_in_use_by(source(1)));
        assert_eq!(announced(&mut grants), [(1, 3)]);
        assert!(!grants.is_due(NodeId(1)));
        assert_eq!(grants.announce(source(1)), Some(3));
        arrive(&mut grants, 1, 3, 0);
        assert_eq!((grants.announce(source(1)), grants.is_in_use_by(source(1))), (None, false));
    }

    #[test]
    fn a_lost_node_returns_its_share_to_those_that_wait() {
        let mut grants = Grants::new(3, 100, INTERVAL_NS);
        arrive(&mut grants, 1, 1, 9);
        arrive(&mut grants, 2, 1, 9);
        assert_eq!(announced(&mut grants), [(1, 4)]);
        grants.forget(NodeId(1));
        assert_eq!(announced(&mut grants), [(2, 4)]);
        grants.forget(NodeId(2));
        assert_eq!(grants.in_use(), 0);
    }

    #[test]
    fn a_share_of_which_nothing_arrives_returns_after_an_interval() {
        let mut grants = Grants::new(3, 100, INTERVAL_NS);
        arrive(&mut grants, 1, 1, 9);
        arrive(&mut grants, 2, 1, 9);
        announced(&mut grants);
        grants.handle_timeout(at(INTERVAL_NS - 1));
        assert_eq!(announced(&mut grants), []);
        // The first check finds that both have moved since the beginning.
        grants.handle_timeout(at(INTERVAL_NS));
        arrive(&mut grants, 2, 2, 9);
        grants.handle_timeout(at(2 * INTERVAL_NS));
        assert_eq!(announced(&mut grants), [(2, 5)]);
        grants.handle_timeout(at(3 * INTERVAL_NS));
        grants.handle_timeout(at(4 * INTERVAL_NS));
        assert_eq!((grants.in_use(), grants.deadline()), (0, None));
    }

    #[test]
    fn numbers_of_packets_may_wrap() {
        let mut grants = Grants::new(6, 100, INTERVAL_NS);
        arrive(&mut grants, 1, u32::MAX - 1, 9);
        assert_eq!(announced(&mut grants), [(1, 4)]);
        arrive(&mut grants, 1, 2, 5);
        assert_eq!((announced(&mut grants), grants.in_use()), (Vec::from([(1, 7)]), 5));
    }

    /// Stream of a model: which packets have left and arrived, and how far the sender has a grant.
    #[derive(Clone, Debug, Default)]
    struct Model {
        total: u32,
        sent: u32,
        granted: u32,
        arrived: Vec<bool>,
    }

    impl Model {
        fn expected(&self) -> u32 {
            self.arrived.iter().position(|has| !has).unwrap_or(self.arrived.len()) as u32
        }

        fn in_flight(&self) -> u32 {
            (0..self.sent).filter(|packet| !self.arrived[*packet as usize]).count() as u32
        }
    }

    proptest! {
        /// Packets arrive in any order, and grants arrive or not. At all times no more packets are on their way than the pool and one
        /// for each stream. At the end all packets have arrived, and the pool is free.
        #[test]
        fn packets_on_their_way_are_bounded_and_the_pool_returns(
            totals in prop::collection::vec(0_u32..40, 1..6),
            pool in 1_u32..20,
            choices in prop::collection::vec(any::<(u8, u8, bool)>(), 0..400),
        ) {
            let mut grants = Grants::new(pool, 100, INTERVAL_NS);
            let mut models: Vec<_> = totals
                .iter()
                .map(|total| Model { total: *total, arrived: [false].repeat(*total as usize), ..Model::default() })
                .collect();
            let mut choices = choices.into_iter();
            loop {
                for model in &mut models {
                    let is_idle = model.expected() == model.sent;
                    let end = model.granted.max(if is_idle { model.sent + 1 } else { 0 });
                    model.sent = model.sent.max(end.min(model.total));
                }
                let on_their_way: u32 = models.iter().map(Model::in_flight).sum();
                prop_assert!(on_their_way <= pool + models.len() as u32, "{} of {}", on_their_way, pool);
                if on_their_way == 0 {
                    break;
                }
                let (which, packet, has_loss) = choices.next().unwrap_or((0, 0, false));
                let flying: Vec<_> = (0..models.len()).filter(|index| models[*index].in_flight() > 0).collect();
                let index = flying[usize::from(which) % flying.len()];
                let model = &mut models[index];
                let missing: Vec<_> = (0..model.sent).filter(|one| !model.arrived[*one as usize]).collect();
                model.arrived[missing[usize::from(packet) % missing.len()] as usize] = true;
                let expected = model.expected();
                let held = model.arrived.iter().skip(expected as usize).filter(|has| **has).count() as u32;
                grants.note_arrival(at(0), source(index as u16), Arrived { expected, held, end: model.total });
                while let Some(due) = grants.next_due() {
                    let grant = grants.announce(due);
                    if let (Some(grant), false) = (grant, has_loss) {
                        let model = &mut models[usize::from(due.0.0)];
                        model.granted = model.granted.max(grant);
                    }
                }
                // Each acknowledgement of this stream repeats its grant.
                if let Some(grant) = grants.announce(source(index as u16)) {
                    models[index].granted = models[index].granted.max(grant);
                }
            }
            prop_assert!(models.iter().all(|model| model.expected() == model.total));
            prop_assert_eq!((grants.in_use(), grants.shares.len()), (0, 0));
        }
    }
}
