//! Stores, posted and acknowledged, and puts into slots that the owners check after the barrier.
//!
//! Posted stores complete without an event, so the phase ends with a flush to every peer and one to all. Data that a
//! flush reports as visible must be there when the owner checks.

use std::collections::HashMap;

use rackloom_protocol::{Completion, LocalRange, NodeId};

use super::super::case::CaseKind;
use super::super::lanes::Lane;
use super::super::layout::{DATA, LANES};
use super::{Phase, Poll, Sweeper};
use crate::ranks::request::{Body, Outcome, Request, Tag};

/// Item number of a flush.
const FLUSH: u32 = u32::MAX;

/// Writes without order.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    sweeper: Sweeper,
    lanes: HashMap<(u16, u32), Lane>,
    flushes: usize,
}

/// Returns the body of a transfer into a slot: a store carries its bytes, a put reads them from a lane. `None` if no
/// lane is free.
pub(super) fn transfer(poll: &mut Poll<'_>, peer: u16, item: u32) -> Option<(Body, Option<Lane>)> {
    let view = poll.view;
    let distance = view.layout.distance(view.rank, peer);
    let case = view.layout.cases(distance)[item as usize];
    let target = view.address(peer, DATA, view.layout.slot_offset(distance, item as u16));
    let pattern = view.slot_pattern(view.rank, peer, item as u16);
    let completion = match case.kind {
        CaseKind::StorePosted => Some(Completion::Accepted),
        CaseKind::StoreAcknowledged => Some(Completion::Visible),
        // The fence must order stores whose completion was not waited for.
        CaseKind::FencedStore => Some(Completion::Accepted),
        CaseKind::Put | CaseKind::PutWithSignal | CaseKind::FencedPut => None,
    };
    if let Some(completion) = completion {
        return Some((Body::Store { target, data: pattern.bytes(0, case.bytes), completion }, None));
    }
    // Source and target are misaligned differently.
    let lane = poll.lanes.acquire(case.bytes, case.misalignment * 3 % 8)?;
    let source = LocalRange { region: LANES, offset: lane.offset(), length: case.bytes };
    poll.fill(source, pattern, 0);
    Some((Body::Put { target, source, signal: None }, Some(lane)))
}

impl Writes {
    fn submit_flushes(&mut self, poll: &mut Poll<'_>) -> bool {
        let peers = &poll.view.peers;
        while poll.issuer.has_space() && self.flushes <= peers.len() && !peers.is_empty() {
            let target = peers.get(self.flushes).map(|peer| NodeId(*peer));
            let tag = Tag::Phase { peer: target.map_or(poll.view.rank, |node| node.0), item: FLUSH };
            poll.issuer.submit(Request::new(tag, Body::Flush { target }));
            self.flushes += 1;
        }
        self.flushes > peers.len() || peers.is_empty()
    }
}

impl Phase for Writes {
    fn name(&self) -> &'static str {
        "writes"
    }

    fn submit(&mut self, poll: &mut Poll<'_>) -> bool {
        let view = poll.view;
        let cases = |peer| view.layout.cases(view.layout.distance(view.rank, peer));
        while poll.issuer.has_space() {
            let Some((peer, item)) = self.sweeper.current(&view.peers, |peer| cases(peer).len()) else {
                return self.submit_flushes(poll);
            };
            if !cases(peer)[item as usize].kind.has_flag() {
                let Some((body, lane)) = transfer(poll, peer, item) else { break };
                self.lanes.extend(lane.map(|lane| ((peer, item), lane)));
                poll.issuer.submit(Request::new(Tag::Phase { peer, item }, body));
            }
            self.sweeper.take();
        }
        false
    }

    fn succeeded(&mut self, poll: &mut Poll<'_>, _outcome: &Outcome, peer: u16, item: u32) {
        if let Some(lane) = self.lanes.remove(&(peer, item)) {
            poll.lanes.release(lane);
        }
    }
}
