//! After a run: everything is healed, and then there must be progress, and all credits must come home.
//!
//! A fabric may stop under faults; it may not stay stopped when they are over. So links are made whole and who stood still goes on; only
//! the dead stay dead. Then every living node reads a word of each living neighbour, and has it within a bound. What this adds
//! to a rack's history comes after the job's end and after whatever was measured.

use rackloom_jobs::{Oracle, Verdicts};
use rackloom_plan::faults::Conditions;
use rackloom_plan::impair::Direction;
use rackloom_protocol::ids::Channel;
use rackloom_protocol::link::credits::Books;
use rackloom_protocol::{
    Command, CommandRefused, Edge, LocalRange, NodeId, OperationError, OperationId, PortId, RemoteAddress,
};

use super::Simulation;
use super::actions::Action;
use crate::link::ChannelId;
use crate::seat::{Body, Life};

/// Names of the probes: far from those of any job.
const FIRST_PROBE: u64 = 1 << 63;
/// The first look at a rack that is coming back comes so soon; each one takes twice as long, up to the rack's slowest timer.
const FIRST_LOOK_NS: u64 = 20_000;
/// So many of the longest looks, and it must be back.
const LOOKS_MAX: u64 = 40;
const PROBE_BYTES: u64 = 8;

/// A word that one node reads of another.
#[derive(Clone, Copy, Debug)]
struct Probe {
    asker: NodeId,
    target: NodeId,
    operation: OperationId,
    is_asked: bool,
}

impl Simulation {
    /// Watch over what must never happen, from now on. To be called before the run.
    pub fn watch(&mut self) {
        self.is_watched = true;
        self.memories.keep_ledger();
    }

    /// What has been seen until now; nothing, if nobody watches.
    #[must_use]
    pub fn verdicts(&self) -> Verdicts {
        self.memories.with_ledger(|ledger| ledger.verdicts().clone()).unwrap_or_default()
    }

    /// Heal everything, and see whether the living come together again and whether credits come home. To be called after the run, by
    /// somebody who has asked for everything else already.
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
        let look_ns = of_links_ns.max(transport.timeout_initial_ns).max(1);
        let mut probes = self.probes();
        let until = self.now + look_ns.saturating_mul(LOOKS_MAX);
        let mut next_ns = FIRST_LOOK_NS;
        for look in 0.. {
            probes.iter_mut().for_each(|probe| self.ask(look, probe));
            // What stands still for ever is told below, as what did not answer.
            let _ = self.step_until(self.now + next_ns);
            next_ns = next_ns.saturating_mul(2).min(look_ns);
            let is_over = self.now >= until;
            if is_over || probes.iter().all(|probe| self.is_answered(probe)) && self.unbalanced().is_empty() {
                break;
            }
        }
        self.judge(&probes);
    }

    fn heal(&mut self) {
        self.script = None;
        self.fabric.dismiss_witness();
        for edge in 0..self.edges.len() as u16 {
            for direction in [Direction::Forward, Direction::Backward] {
                if let Some(channel) = self.fabric.channel_mut(ChannelId::new(edge, direction)) {
                    (channel.tampering.cut, channel.tampering.drop_all) = (false, false);
                    channel.set_conditions(&Conditions::default());
                }
            }
        }
        for number in 0..self.seats.len() {
            let member = NodeId(number as u16);
            if self.seats[number].life == Life::Paused {
                self.schedule(self.now, Action::Resume { member });
            }
            for port in 0..self.seats[number].outgoing.len() as u16 {
                self.schedule(self.now, Action::Carrier { member, port: PortId(port), up: true });
            }
        }
    }

    fn lives(&self, node: NodeId) -> bool {
        self.seats.get(node.index()).is_some_and(|seat| seat.life != Life::Dead)
    }

    /// Every living node with each living one to which a link leads, or two by way of a living switch.
    fn probes(&self) -> Vec<Probe> {
        let is_node = |node: NodeId| matches!(self.seats[node.index()].body, Body::Endpoint(_));
        let neighbours = |node: NodeId| {
            let ends =
                self.edges.iter().filter_map(move |edge: &Edge| match (edge.a == node, edge.b == node) {
                    (true, _) => Some(edge.b),
                    (_, true) => Some(edge.a),
                    _ => None,
                });
            ends.filter(|end| self.lives(*end)).collect::<Vec<_>>()
        };
        let living =
            (0..self.seats.len() as u16).map(NodeId).filter(|node| is_node(*node) && self.lives(*node));
        let mut probes = Vec::new();
        for asker in living {
            let (mut near, hubs): (Vec<_>, Vec<_>) =
                neighbours(asker).into_iter().partition(|end| is_node(*end));
            for hub in hubs {
                // The next one behind the hub: together these are a circle.
                let mut behind: Vec<_> = neighbours(hub).into_iter().filter(|end| is_node(*end)).collect();
                behind.sort_unstable();
                let next = behind.iter().find(|end| **end > asker).or(behind.first());
                near.extend(next.filter(|next| **next != asker));
            }
            near.sort_unstable();
            near.dedup();
            probes.extend(near.into_iter().map(|target| (asker, target)));
        }
        let probe = |(number, (asker, target))| {
            let operation = OperationId(FIRST_PROBE + number);
            Probe { asker, target, operation, is_asked: false }
        };
        (0..).zip(probes).map(probe).collect()
    }

    /// Read a word of the target, unless that is under way or the asker has no memory to read it into. What was lost because its link was still
    /// coming back is asked again.
    fn ask(&mut self, look: u64, probe: &mut Probe) {
        let Probe { asker, target, operation, .. } = *probe;
        let end = self.memories.with_ledger(|ledger| ledger.end_of(asker, operation)).flatten();
        if probe.is_asked && !end.is_some_and(is_lost) {
            return;
        }
        let operation = OperationId(FIRST_PROBE + (look << 20) + (operation.0 & ((1 << 20) - 1)));
        *probe = Probe { operation, is_asked: false, ..*probe };
        // Who has no job's memory says that there is none, and has heard the question.
        let from = self.seats[target.index()].probed.as_ref().map(|region| (region.region, region.key));
        let Some(into) = &self.seats[asker.index()].probed else { return };
        let (region, key) = from.unwrap_or((into.region, into.key));
        let target = RemoteAddress { node: target, region, offset: 0, key };
        let into = LocalRange { region: into.region, offset: 0, length: PROBE_BYTES };
        match self.command(asker, Command::Load { operation, target, into }) {
            Ok(()) => probe.is_asked = true,
            // Not yet.
            Err(CommandRefused::Unreachable(_) | CommandRefused::Busy) => {}
            Err(_) => probe.is_asked = true,
        }
        if probe.is_asked {
            self.memories.with_ledger(|ledger| ledger.await_end(asker, operation));
        }
    }

    fn is_answered(&self, probe: &Probe) -> bool {
        let Probe { asker, target, operation, .. } = *probe;
        if probe.is_asked {
            let end = self.memories.with_ledger(|ledger| ledger.end_of(asker, operation)).flatten();
            // Whoever says no has heard the question.
            return end.is_some_and(|end| !is_lost(end));
        }
        match &self.seats[asker.index()].body {
            Body::Endpoint(endpoint) => endpoint.is_reachable(target),
            _ => true,
        }
    }

    /// Directions of links between the living whose credits are not all free, in words.
    fn unbalanced(&self) -> Vec<String> {
        let mut found = Vec::new();
        for edge in &self.edges {
            for (from, to) in [
                ((edge.a, edge.a_port), (edge.b, edge.b_port)),
                ((edge.b, edge.b_port), (edge.a, edge.a_port)),
            ] {
                let link = |(node, port): (NodeId, PortId)| self.seats[node.index()].body.member().link(port);
                let (Some(sender), Some(receiver)) = (link(from), link(to)) else { continue };
                let is_up = sender.state().carries_data() && receiver.state().carries_data();
                if !is_up || !self.lives(from.0) || !self.lives(to.0) {
                    continue;
                }
                for channel in (0..sender.accounts.count() as u8).map(Channel) {
                    let (sender, receiver) =
                        (sender.accounts.credits(channel), receiver.accounts.credits(channel));
                    let books = Books::of(sender, receiver, 0);
                    let is_home = |books: &Books| books.held == 0 && (books.leaked == 0 || !sender.resyncs());
                    if !books.as_ref().is_some_and(is_home) {
                        found.push(format!("{} to {} on {channel}: {books:?}", from.0, to.0));
                    }
                }
            }
        }
        found
    }

    fn judge(&mut self, probes: &[Probe]) {
        let stuck: Vec<_> = probes.iter().filter(|probe| !self.is_answered(probe)).copied().collect();
        let unbalanced = self.unbalanced();
        let (answered, links) = ((probes.len() - stuck.len()) as u64, 2 * self.edges.len());
        self.memories.with_ledger(|ledger| {
            let verdicts = ledger.verdicts_mut();
            verdicts.hold_times(Oracle::Progress, answered);
            for Probe { asker, target, .. } in stuck {
                let what = || format!("{asker} cannot read a word of {target} although everything is healed");
                verdicts.find(Oracle::Progress, what);
            }
            verdicts.hold_times(Oracle::Credits, links.saturating_sub(unbalanced.len()) as u64);
            for line in unbalanced {
                verdicts.find(Oracle::Credits, || format!("credits have not come home at rest: {line}"));
            }
        });
    }
}

fn is_lost(end: Result<u64, OperationError>) -> bool {
    matches!(end, Err(OperationError::Unreachable | OperationError::OutcomeUnknown))
}
