//! After a run: all faults are healed, and then there must be progress, and all credits must return.
//!
//! A fabric may stop under faults; it may not stay stopped when they are over. So links are repaired and paused
//! members continue; only dead members stay dead. Then every living node loads a word of each living neighbour, and
//! must get it within a bound. These events come after the job's end and after all measurements.

use std::collections::BTreeMap;

use rackloom_jobs::Verdicts;
use rackloom_jobs::rest::{self, LinkEnd, Rest};
use rackloom_plan::faults::Conditions;
use rackloom_plan::impair::Direction;
use rackloom_protocol::{
    Command, CommandRefused, LocalRange, NodeId, OperationError, OperationId, PortId, RemoteAddress,
};

use super::Simulation;
use super::actions::Action;
use crate::ids::ChannelId;
use crate::seat::{Activity, Body};

/// Identity of the first probe; a job does not use numbers that large.
const FIRST_PROBE: u64 = 1 << 63;
/// Time until the first check of a recovering rack, in nanoseconds. Each check waits twice as long, up to the rack's slowest timer.
const FIRST_LOOK_NS: u64 = 20_000;
/// Number of the longest waits after which the rack must have recovered.
const LOOKS_MAX: u64 = 40;
const PROBE_BYTES: u64 = 8;

/// A word that one node loads from another.
#[derive(Clone, Copy, Debug)]
struct Probe {
    initiator: NodeId,
    target: NodeId,
    operation: OperationId,
    is_sent: bool,
}

impl Simulation {
    /// Keeps a ledger of all operations from now on. Call it before the run.
    pub fn watch(&mut self) {
        self.is_watched = true;
        self.memories.keep_ledger();
    }

    /// Returns the findings until now; empty if [`Self::watch`] was not called.
    #[must_use]
    pub fn verdicts(&self) -> Verdicts {
        self.memories.with_ledger(|ledger| ledger.verdicts().clone()).unwrap_or_default()
    }

    /// Heals all faults, and checks that the living members reach each other again and that credits return. Call it
    /// after the run, after all other results have been read.
    pub fn heal_and_probe(&mut self) {
        if !self.is_watched {
            return;
        }
        self.heal();
        let Some((timers, transport)) = self.seats.iter().find_map(|seat| match &seat.body {
            Body::Endpoint(endpoint) => Some((endpoint.config().timers, endpoint.config().transport)),
            _ => None,
        }) else {
            return;
        };
        let of_links_ns = timers.detection_ns().max(timers.hold_down_ns).max(timers.hello_interval_ns);
        // Grants that nothing uses return after an idle interval.
        let of_grants_ns = transport.grant_pool().map_or(0, |_| transport.timeout_max_ns);
        let look_ns = of_links_ns.max(transport.timeout_initial_ns).max(of_grants_ns).max(1);
        let mut probes = self.probes();
        let until = self.now + look_ns.saturating_mul(LOOKS_MAX);
        let mut next_ns = FIRST_LOOK_NS;
        for look in 0.. {
            probes.iter_mut().for_each(|probe| self.send_probe(look, probe));
            // A rack that stalls is reported below, as peers that did not answer.
            let _ = self.step_until(self.now + next_ns);
            next_ns = next_ns.saturating_mul(2).min(look_ns);
            let is_over = self.now >= until;
            if is_over || self.judged(&probes).failures().is_empty() {
                break;
            }
        }
        let verdicts = self.judged(&probes);
        self.memories.with_ledger(|ledger| ledger.verdicts_mut().merge(&verdicts));
    }

    fn heal(&mut self) {
        self.script = None;
        self.fabric.remove_observer();
        for edge in 0..self.edges.len() as u16 {
            for direction in [Direction::Forward, Direction::Backward] {
                if let Some(channel) = self.fabric.channel_mut(ChannelId::new(edge, direction)) {
                    (channel.link_faults.cut, channel.link_faults.drop_all) = (false, false);
                    channel.set_conditions(&Conditions::default());
                }
            }
        }
        for member in (0..self.seats.members() as u16).map(NodeId) {
            if self.seats[member].activity == Activity::Paused {
                self.schedule(self.now, Action::Resume { member });
            }
            for port in 0..self.seats[member].outgoing.len() as u16 {
                self.schedule(self.now, Action::Carrier { member, port: PortId(port), up: true });
            }
        }
    }

    fn is_live(&self, node: NodeId) -> bool {
        self.seats.get(node).is_some_and(|seat| seat.activity != Activity::Dead)
    }

    /// Returns a probe for each pair of living nodes that must reach each other.
    fn probes(&self) -> Vec<Probe> {
        let is_node = |node: NodeId| matches!(self.seats[node].body, Body::Endpoint(_));
        let living =
            (0..self.seats.members() as u16).map(NodeId).filter(|node| is_node(*node) && self.is_live(*node));
        let probes = living.flat_map(|initiator| {
            let targets = rest::nodes_to_read(&self.edges, initiator, is_node, |node| self.is_live(node));
            targets.into_iter().map(move |target| (initiator, target))
        });
        let probe = |(number, (initiator, target))| {
            let operation = OperationId(FIRST_PROBE + number);
            Probe { initiator, target, operation, is_sent: false }
        };
        (0..).zip(probes).map(probe).collect()
    }

    /// Loads a word of the target, unless a load is outstanding or the initiator has no memory for the result. A load
    /// that was lost because its link was still recovering is repeated.
    fn send_probe(&mut self, look: u64, probe: &mut Probe) {
        let Probe { initiator, target, operation, .. } = *probe;
        let end = self.memories.with_ledger(|ledger| ledger.end_of(initiator, operation)).flatten();
        if probe.is_sent && !end.is_some_and(is_lost) {
            return;
        }
        let operation = OperationId(FIRST_PROBE + (look << 20) + (operation.0 & ((1 << 20) - 1)));
        *probe = Probe { operation, is_sent: false, ..*probe };
        // A node without a job's memory refuses the request, and has received it.
        let from = self.seats[target].probed.as_ref().map(|region| (region.region, region.key));
        let Some(into) = &self.seats[initiator].probed else { return };
        let (region, key) = from.unwrap_or((into.region, into.key));
        let target = RemoteAddress { node: target, region, offset: 0, key };
        let into = LocalRange { region: into.region, offset: 0, length: PROBE_BYTES };
        match self.command(initiator, Command::Load { operation, target, into }) {
            Ok(()) => probe.is_sent = true,
            // Retry at the next check.
            Err(CommandRefused::Unreachable(_) | CommandRefused::Busy) => {}
            Err(_) => probe.is_sent = true,
        }
        if probe.is_sent {
            self.memories.with_ledger(|ledger| ledger.await_end(initiator, operation));
        }
    }

    fn is_answered(&self, probe: &Probe) -> bool {
        let Probe { initiator, target, operation, .. } = *probe;
        if probe.is_sent {
            let end = self.memories.with_ledger(|ledger| ledger.end_of(initiator, operation)).flatten();
            // A refusal shows that the request has arrived.
            return end.is_some_and(|end| !is_lost(end));
        }
        match &self.seats[initiator].body {
            Body::Endpoint(endpoint) => endpoint.is_reachable(target),
            _ => true,
        }
    }

    /// Returns the resting state of each living member.
    fn rests(&self, probes: &[Probe]) -> Vec<Option<Rest>> {
        let of_member = |node: NodeId| {
            let own = probes.iter().filter(|probe| probe.initiator == node);
            let (answered, unanswered): (Vec<&Probe>, Vec<&Probe>) =
                own.partition(|probe| self.is_answered(probe));
            let edges =
                (0..).zip(&self.edges).filter_map(|(number, edge)| match (edge.a == node, edge.b == node) {
                    (true, _) => Some((edge.a_port, number)),
                    (_, true) => Some((edge.b_port, number)),
                    _ => None,
                });
            let by_port: BTreeMap<_, _> = edges.collect();
            Rest {
                answered: answered.len() as u64,
                unanswered: unanswered.iter().map(|probe| probe.target.0).collect(),
                ends: LinkEnd::of_member(self.seats[node].body.member(), by_port.into_values()),
                granted_packets: self.seats[node].body.member().granted_packets(),
            }
        };
        let members = (0..self.seats.members() as u16).map(NodeId);
        members.map(|node| self.is_live(node).then(|| of_member(node))).collect()
    }

    fn judged(&self, probes: &[Probe]) -> Verdicts {
        rest::judge(&self.edges, &self.rests(probes), |node| node.to_string())
    }
}

fn is_lost(end: Result<u64, OperationError>) -> bool {
    matches!(end, Err(OperationError::Unreachable | OperationError::OutcomeUnknown))
}
