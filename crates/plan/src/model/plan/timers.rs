//! Default timers, resolved for each clock.
//!
//! The timers of a [`Plan`] suit real processes: scheduling on a shared host determines the delay of heartbeats and acknowledgements,
//! and the transport measures round trips itself, above its lower bound. In virtual time there is no such delay, so timers that
//! the file does not state follow from the links of the plan. A key that the file states has its value on both clocks.
//!
//! With *frame* the time of a largest frame on the slowest link, *hop* the largest sum of a link's latency, a frame and the latency of
//! forwarding, and *path* a bound of the hops between two members, virtual time has (all factors are ours):
//!
//! | timer | value |
//! |---|---|
//! | `ack_delay` | round trip: 2 x *path* x *hop*, within 1 us and 200 us |
//! | `timeout_min` | round trip + `ack_delay` + one window of frames + *queue* |
//! | `timeout_initial` | round trip + `ack_delay` + one window of frames of every node, at most 20 ms, at least `timeout_min` |
//! | `timeout_max` | 32 x `timeout_min`, at least 2 x `timeout_initial` |
//! | `heartbeat_interval` | 50 us, at least 8 x *hop* and 400 ns for each link of the rack |
//! | `heartbeat_rest` | 1 |
//! | `hello_interval` | 20 us, at least 4 x *hop* |
//!
//! The pool of grants (`grant_packets`) follows alike: round trip / *frame*, for each link of a node.
//!
//! *queue* is the time of the queue that congestion control permits, so that no packet in it counts as lost: with `dctcp` the bytes of
//! `mark_above` and a frame of every node, with `grants` the pool and a frame of every node, else nothing.

use std::collections::VecDeque;

use rackloom_protocol::{CongestionControl, LinkTimers, TransportConfig};

use crate::model::links::headers::wire_bytes;
use crate::model::links::link::LinkPlan;
use crate::model::plan::Plan;
use crate::model::times::clock::Clock;
use crate::model::times::stated::{Reach, Stated, TimingKey};
use crate::model::times::timers::hold_down_ns;
use crate::model::transport::TRANSPORT_DEFAULT;

const ACK_DELAY_NS: std::ops::RangeInclusive<u64> = 1_000..=200_000;
const HEARTBEAT_NS_MIN: u64 = 50_000;
/// With a fixed interval, heartbeats of a rack of a thousand links would be most of the work of a simulation.
const HEARTBEAT_NS_PER_LINK: u64 = 400;
const HELLO_NS_MIN: u64 = 20_000;
/// Least timeout between real processes if all links have link-level retry. The transport waits until they have had time to replay.
const REPEATING_LINKS_TIMEOUT_MIN_NS: u64 = 40_000_000;

impl Reach {
    /// Computes the times with one search over the links.
    pub(crate) fn of(plan: &Plan) -> Self {
        let frame_ns = |link: &LinkPlan| {
            let bits = 8 * wire_bytes(plan.settings.frame_bytes_max.into()) as u128;
            let ns = |rate: u64| (bits * 1_000_000_000).div_ceil(u128::from(rate.max(1))) as u64;
            link.profile.rate_bits_per_s.map_or(0, ns)
        };
        let hop_ns = |link: &LinkPlan| {
            frame_ns(link)
                .saturating_add(link.profile.latency_ns())
                .saturating_add(plan.forwarding.latency_ns)
        };
        let hop_ns = plan.links.iter().map(hop_ns).max().unwrap_or(0);
        let round_trip_ns = hop_ns.saturating_mul(2 * path_hops_max(plan));
        Self { frame_ns: plan.links.iter().map(frame_ns).max().unwrap_or(0), hop_ns, round_trip_ns }
    }
}

/// Returns an upper bound of the hops between two members: twice the distance of the farthest member from the first.
fn path_hops_max(plan: &Plan) -> u64 {
    let mut neighbours = vec![Vec::new(); plan.members.len()];
    for link in &plan.links {
        let (a, b) = (link.edge.a.index(), link.edge.b.index());
        neighbours[a].push(b);
        neighbours[b].push(a);
    }
    let mut distance = vec![None; plan.members.len()];
    let mut queue = VecDeque::from_iter((!distance.is_empty()).then_some((0, 0_u64)));
    let mut farthest = 0;
    while let Some((member, hops)) = queue.pop_front() {
        if distance[member].is_none() {
            distance[member] = Some(hops);
            farthest = farthest.max(hops);
            queue.extend(neighbours[member].iter().map(|next| (*next, hops + 1)));
        }
    }
    (2 * farthest).max(1)
}

impl Plan {
    /// Returns the link timers on a clock, with defaults resolved.
    #[must_use]
    pub fn timers_on(&self, clock: Clock) -> LinkTimers {
        let (stated, reach, mut timers) = (self.stated, self.reach, self.timers);
        if clock == Clock::Wall {
            return timers;
        }
        if !stated.has(TimingKey::HeartbeatInterval) {
            let of_links_ns = HEARTBEAT_NS_PER_LINK.saturating_mul(self.links.len() as u64);
            let interval_ns = HEARTBEAT_NS_MIN.max(of_links_ns).max(reach.hop_ns.saturating_mul(8));
            // No timer is longer than on real processes.
            timers.heartbeat_interval_ns = interval_ns.min(timers.heartbeat_interval_ns);
            if !stated.has(TimingKey::HeartbeatRest) {
                timers.heartbeat_rest = 1;
            }
            if !stated.has(TimingKey::HoldDown) {
                timers.hold_down_ns = hold_down_ns(timers.heartbeat_interval_ns, timers.heartbeat_miss_max);
            }
        }
        if !stated.has(TimingKey::HelloInterval) {
            let interval_ns = HELLO_NS_MIN.max(reach.hop_ns.saturating_mul(4));
            timers.hello_interval_ns = interval_ns.min(timers.hello_interval_ns);
        }
        timers
    }

    /// Returns the transport settings on a clock, with defaults resolved. `ack_delay` < `timeout_min` <= `timeout_initial` <=
    /// `timeout_max` holds if it holds for the stated values.
    #[must_use]
    pub fn transport_on(&self, clock: Clock) -> TransportConfig {
        let (stated, reach, given) = (self.stated, self.reach, self.transport);
        let mut open = given;
        match clock {
            Clock::Wall if self.fabric_links().all(|link| link.profile.llr.is_some()) => {
                open.timeout_min_ns = given.timeout_min_ns.max(REPEATING_LINKS_TIMEOUT_MIN_NS);
                open.timeout_initial_ns = given.timeout_initial_ns.max(REPEATING_LINKS_TIMEOUT_MIN_NS);
            }
            Clock::Wall => {}
            Clock::Virtual => {
                open.grant_packets = given.grant_packets.or_else(|| self.grant_packets());
                let window_ns = reach.frame_ns.saturating_mul(given.window_packets.into());
                open.ack_delay_ns = reach.round_trip_ns.clamp(*ACK_DELAY_NS.start(), *ACK_DELAY_NS.end());
                let ack_delay_ns =
                    if stated.has(TimingKey::AckDelay) { given.ack_delay_ns } else { open.ack_delay_ns };
                let answered_ns = reach.round_trip_ns.saturating_add(ack_delay_ns);
                let queued_ns = window_ns.saturating_mul(self.endpoint_count() as u64);
                open.timeout_min_ns = answered_ns
                    .saturating_add(window_ns)
                    .saturating_add(self.permitted_queue_ns(&open))
                    .saturating_add(1);
                open.timeout_initial_ns =
                    answered_ns.saturating_add(queued_ns).min(TRANSPORT_DEFAULT.timeout_initial_ns);
                let min_ns = if stated.has(TimingKey::TimeoutMin) {
                    given.timeout_min_ns
                } else {
                    open.timeout_min_ns
                };
                open.timeout_initial_ns = open.timeout_initial_ns.max(min_ns);
                open.timeout_max_ns =
                    min_ns.saturating_mul(32).max(open.timeout_initial_ns.saturating_mul(2));
            }
        }
        fit(TransportConfig { grant_packets: open.grant_packets, ..given }, open, stated)
    }

    /// Returns the time of the longest queue that congestion control permits, on the slowest link.
    fn permitted_queue_ns(&self, transport: &TransportConfig) -> u64 {
        let packets = match transport.congestion {
            CongestionControl::Off => return 0,
            CongestionControl::Dctcp => {
                let bytes = u64::from(self.forwarding.mark_above_bytes.unwrap_or(0));
                bytes.div_ceil(u64::from(self.settings.frame_bytes_max))
            }
            CongestionControl::Grants => transport.grant_pool().unwrap_or(0).into(),
        };
        self.reach.frame_ns.saturating_mul(packets.saturating_add(self.endpoint_count() as u64))
    }

    /// Returns the default size of the pool of grants in virtual time: for each link of the node with most links, the largest frames that a
    /// round trip holds. `None` if no link has a rate.
    fn grant_packets(&self) -> Option<u32> {
        let per_link =
            self.reach.round_trip_ns.div_ceil((self.reach.frame_ns > 0).then_some(self.reach.frame_ns)?);
        let mut links = vec![0_u64; self.members.len()];
        for edge in self.links.iter().map(|link| link.edge) {
            links[edge.a.index()] += 1;
            links[edge.b.index()] += 1;
        }
        let most = links.into_iter().take(self.endpoint_count()).max().unwrap_or(1);
        u32::try_from(per_link.saturating_mul(most).max(1)).ok()
    }
}

/// Returns stated values unchanged, and defaults adjusted such that the order holds.
fn fit(given: TransportConfig, open: TransportConfig, stated: Stated) -> TransportConfig {
    let mut times = [
        (stated.has(TimingKey::AckDelay), given.ack_delay_ns, open.ack_delay_ns),
        (stated.has(TimingKey::TimeoutMin), given.timeout_min_ns, open.timeout_min_ns),
        (stated.has(TimingKey::TimeoutInitial), given.timeout_initial_ns, open.timeout_initial_ns),
        (stated.has(TimingKey::TimeoutMax), given.timeout_max_ns, open.timeout_max_ns),
    ]
    .map(|(is_stated, given_ns, open_ns)| (is_stated, if is_stated { given_ns } else { open_ns }));
    for index in 1..times.len() {
        // An acknowledgement is sent before the least timeout has passed.
        let gap_ns = u64::from(index == 1);
        if !times[index].0 {
            times[index].1 = times[index].1.max(times[index - 1].1.saturating_add(gap_ns));
        }
    }
    for index in (1..times.len()).rev() {
        let gap_ns = u64::from(index == 1);
        if !times[index - 1].0 {
            times[index - 1].1 = times[index - 1].1.min(times[index].1.saturating_sub(gap_ns));
        }
    }
    let [(_, ack_delay_ns), (_, timeout_min_ns), (_, timeout_initial_ns), (_, timeout_max_ns)] = times;
    TransportConfig { ack_delay_ns, timeout_min_ns, timeout_initial_ns, timeout_max_ns, ..given }
}
