//! Order: a rank that sees the flag must see the data.
//!
//! A writer sends data and then sets the case's flag, by the signal of the put, or by a store after a fence. The owner
//! observes the flags in two ways: by a wait-until per writer, and by reading the word itself in every poll, which may
//! see the flag before the wait completes. As soon as it sees a flag, it checks the data.

use std::collections::HashMap;

use rackloom_protocol::{Completion, Condition, LocalRange, NodeId, RemoteAddress, Signal, SignalKind};

use super::super::case::CaseKind;
use super::super::findings::{Expected, read_word};
use super::super::lanes::Lane;
use super::super::layout::{CONTROL, DATA};
use super::super::run_view::RunView;
use super::write::transfer;
use super::{Phase, Poll, Sweeper};
use crate::ranks::request::{Body, Outcome, Request, Tag};

/// First item number of the waits.
const WAIT: u32 = 1 << 24;
/// First item number of the flags after a fence, and of the fences.
const FLAG: u32 = 1 << 25;

/// Item number of the flush after all other operations.
const FLUSH: u32 = u32::MAX;

/// Flags of one writer, as the owner observes them.
#[derive(Debug)]
struct Watch {
    writer: u16,
    /// Cases with flags, in the order in which the writer raises them.
    cases: Vec<u16>,
    /// Index of the first case whose flag has not been seen.
    next: usize,
    /// Numbers of waits that were begun and that have completed.
    waits_begun: usize,
    waits_ended: usize,
}

/// Transfers followed by a flag.
#[derive(Debug, Default)]
pub(crate) struct Ordered {
    sweeper: Sweeper,
    lanes: HashMap<(u16, u32), Lane>,
    has_flushed: bool,
    watches: Option<Vec<Watch>>,
}

fn flagged(view: &RunView, writer: u16, owner: u16) -> Vec<u16> {
    let cases = view.layout.cases(view.layout.distance(writer, owner));
    cases
        .iter()
        .enumerate()
        .filter(|(_, case)| case.kind.has_flag())
        .map(|(number, _)| number as u16)
        .collect()
}

/// Returns the condition to wait with. All three hold for the value and not before.
fn condition(case: u16, value: u64) -> (Condition, u64) {
    match case % 3 {
        0 => (Condition::Equal, value),
        1 => (Condition::NotEqual, 0),
        _ => (Condition::AtLeast, value),
    }
}

impl Ordered {
    fn submit_case(&mut self, poll: &mut Poll<'_>, peer: u16, case: u16) -> bool {
        let view = poll.view;
        let item = u32::from(case);
        let Some((mut body, lane)) = transfer(poll, peer, item) else { return false };
        self.lanes.extend(lane.map(|lane| ((peer, item), lane)));
        let distance = view.layout.distance(view.rank, peer);
        let kind = view.layout.cases(distance)[usize::from(case)].kind;
        let flag = view.address(peer, CONTROL, view.layout.flag_offset(distance, case));
        let value = view.flag_value(view.rank, peer, case);
        if let (CaseKind::PutWithSignal, Body::Put { signal, .. }) = (kind, &mut body) {
            *signal = Some(signal_of(flag, case, value));
        }
        poll.issuer.submit(Request::new(Tag::Phase { peer, item }, body));
        if kind != CaseKind::PutWithSignal {
            let tag = Tag::Phase { peer, item: FLAG + item };
            let target = case.is_multiple_of(2).then_some(NodeId(peer));
            poll.issuer.submit(Request::new(tag, Body::Fence { target }));
            let data = value.to_le_bytes().to_vec();
            let store = Body::Store { target: flag, data, completion: Completion::Visible };
            poll.issuer.submit(Request::new(tag, store));
        }
        true
    }

    /// Submits a flush. Order does not need it. It reports the results of the posted stores before the fences.
    fn submit_flush(&mut self, poll: &mut Poll<'_>) {
        if !self.has_flushed && !poll.view.peers.is_empty() {
            self.has_flushed = true;
            let tag = Tag::Phase { peer: poll.view.rank, item: FLUSH };
            poll.issuer.submit(Request::new(tag, Body::Flush { target: None }));
        }
    }

    fn watches(&mut self, view: &RunView) -> &mut Vec<Watch> {
        self.watches.get_or_insert_with(|| {
            let watch = |writer: &u16| Watch {
                writer: *writer,
                cases: flagged(view, *writer, view.rank),
                next: 0,
                waits_begun: 0,
                waits_ended: 0,
            };
            view.peers.iter().map(watch).collect()
        })
    }
}

fn signal_of(flag: RemoteAddress, case: u16, value: u64) -> Signal {
    let RemoteAddress { region, offset, key, .. } = flag;
    // The flag is 0 before, so adding the value is setting it, if it is done once.
    let kind = if case.is_multiple_of(2) { SignalKind::Set } else { SignalKind::Add };
    Signal { region, offset, key, kind, value }
}

impl Phase for Ordered {
    fn name(&self) -> &'static str {
        "order"
    }

    fn submit(&mut self, poll: &mut Poll<'_>) -> bool {
        let view = poll.view;
        let cases = |peer| view.layout.cases(view.layout.distance(view.rank, peer));
        while poll.issuer.has_space() {
            let Some((peer, item)) = self.sweeper.current(&view.peers, |peer| cases(peer).len()) else {
                self.submit_flush(poll);
                return true;
            };
            if cases(peer)[item as usize].kind.has_flag() && !self.submit_case(poll, peer, item as u16) {
                break;
            }
            self.sweeper.take();
        }
        false
    }

    fn succeeded(&mut self, poll: &mut Poll<'_>, outcome: &Outcome, peer: u16, item: u32) {
        if let Some(lane) = self.lanes.remove(&(peer, item)) {
            poll.lanes.release(lane);
        }
        if (WAIT..FLAG).contains(&item) {
            let case = (item - WAIT) as u16;
            let view = poll.view;
            let watches = self.watches(view);
            let Some(watch) = watches.iter_mut().find(|watch| watch.writer == peer) else { return };
            watch.waits_ended += 1;
            let expected = view.flag_value(peer, view.rank, case);
            if outcome.result != Ok(expected) {
                let name = view.name(peer);
                poll.findings
                    .fail(format!("a wait on {name}'s flag {expected:#x} ended with {:x?}", outcome.result));
            }
        }
    }

    fn look(&mut self, poll: &mut Poll<'_>) -> bool {
        let view = poll.view;
        let mut is_over = true;
        for watch in self.watches(view) {
            while let Some(case) = watch.cases.get(watch.next).copied() {
                let offset = flag_offset(view, watch.writer, case);
                let flag = read_word(poll.memory, CONTROL, offset, 8);
                if flag == 0 {
                    break;
                }
                watch.next += 1;
                check_data(poll, watch.writer, case, flag);
            }
            // One wait per writer at a time. Waits on flags that are already set must complete at once.
            let next = watch.waits_begun;
            if next == watch.waits_ended && next < watch.cases.len() {
                watch.waits_begun += 1;
                submit_wait(poll, watch.writer, watch.cases[next]);
            }
            is_over &= watch.next == watch.cases.len() && watch.waits_ended == watch.cases.len();
        }
        is_over
    }

    fn waits_for(&self, view: &RunView) -> Option<String> {
        let watches = self.watches.as_ref()?;
        let late: Vec<_> = watches
            .iter()
            .filter(|watch| watch.next < watch.cases.len())
            .map(|watch| format!("{} ({} of {})", view.name(watch.writer), watch.next, watch.cases.len()))
            .collect();
        (!late.is_empty()).then(|| format!("flags of {}", late.join(", ")))
    }
}

fn flag_offset(view: &RunView, writer: u16, case: u16) -> u64 {
    view.layout.flag_offset(view.layout.distance(writer, view.rank), case)
}

fn submit_wait(poll: &mut Poll<'_>, writer: u16, case: u16) {
    let view = poll.view;
    let (condition, value) = condition(case, view.flag_value(writer, view.rank, case));
    let wait = Body::WaitUntil {
        region: CONTROL,
        offset: flag_offset(view, writer, case),
        condition,
        value,
        depends_on: Some(NodeId(writer)),
    };
    poll.issuer.submit_urgent(Request::new(Tag::Phase { peer: writer, item: WAIT + u32::from(case) }, wait));
}

/// Checks that all data of a flag that is set has arrived.
fn check_data(poll: &mut Poll<'_>, writer: u16, number: u16, flag: u64) {
    let view = poll.view;
    let distance = view.layout.distance(writer, view.rank);
    let case = view.layout.cases(distance)[usize::from(number)];
    let expected = view.flag_value(writer, view.rank, number);
    let location = || format!("at the sight of its flag: {}", view.describe(writer, &case));
    let flag_offset = view.layout.flag_offset(distance, number);
    poll.findings.check_word(CONTROL, flag_offset, flag, expected, location);
    let offset = view.layout.slot_offset(distance, number);
    let range = LocalRange { region: DATA, offset, length: case.bytes };
    let pattern = view.slot_pattern(writer, view.rank, number);
    let is_fenced = case.kind.is_fenced();
    let expected = if is_fenced { Expected::Fenced(pattern, 0) } else { Expected::Exactly(pattern, 0) };
    poll.findings.check(poll.memory, range, expected, location);
}
