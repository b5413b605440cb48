//! Loads and gets of the others' readable regions, checked by the reader against the owner's pattern.
//!
//! The lane that a read goes into is first filled with a pattern of its own, so that missing bytes and bytes written
//! beside it are both detected.

use std::collections::HashMap;

use rackloom_protocol::LocalRange;

use super::super::findings::Expected;
use super::super::lanes::Lane;
use super::super::layout::{LANES, READABLE};
use super::{Phase, Poll, Sweeper};
use crate::ranks::request::{Body, Outcome, Request, Tag};

/// Reads of the others' readable regions.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    sweeper: Sweeper,
    /// Outstanding reads: their lane, and their offset at the owner.
    in_flight: HashMap<(u16, u32), (Lane, u64)>,
}

impl Phase for Reads {
    fn name(&self) -> &'static str {
        "reads"
    }

    fn submit(&mut self, poll: &mut Poll<'_>) -> bool {
        let view = poll.view;
        let reads = |peer| view.layout.reads(view.layout.distance(view.rank, peer));
        while poll.issuer.has_space() {
            let Some((peer, item)) = self.sweeper.current(&view.peers, |peer| reads(peer).len()) else {
                return true;
            };
            let case = reads(peer)[item as usize];
            let Some(lane) = poll.lanes.acquire(case.bytes, case.misalignment * 5 % 8) else { break };
            let guarded = lane.guarded();
            poll.fill(guarded, view.lane_pattern(), guarded.offset);
            let offset = view.read_offset(peer, item as u16, case.bytes, case.misalignment);
            let target = view.address(peer, READABLE, offset);
            let into = LocalRange { region: LANES, offset: lane.offset(), length: case.bytes };
            let body = if case.is_get { Body::Get { target, into } } else { Body::Load { target, into } };
            poll.issuer.submit(Request::new(Tag::Phase { peer, item }, body));
            self.in_flight.insert((peer, item), (lane, offset));
            self.sweeper.take();
        }
        false
    }

    fn succeeded(&mut self, poll: &mut Poll<'_>, outcome: &Outcome, peer: u16, item: u32) {
        let Some((lane, offset)) = self.in_flight.remove(&(peer, item)) else { return };
        let view = poll.view;
        let case = view.layout.reads(view.layout.distance(view.rank, peer))[item as usize];
        let location = || {
            format!(
                "{} of {} bytes from {} offset {offset}",
                outcome.kind.name(),
                case.bytes,
                view.name(peer)
            )
        };
        let expected = Expected::Exactly(view.readable_pattern(peer), offset);
        let read = LocalRange { region: LANES, offset: lane.offset(), length: case.bytes };
        poll.findings.check(poll.memory, read, expected, location);
        for guard in [lane.guard_before(), lane.guard_behind()] {
            let expected = Expected::Exactly(view.lane_pattern(), guard.offset);
            poll.findings.check(poll.memory, guard, expected, || format!("beside {}", location()));
        }
        poll.lanes.release(lane);
    }
}
