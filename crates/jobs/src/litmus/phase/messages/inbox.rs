//! Owner's side of the message exchange: the posted receives, and the message that each must have matched.

use rackloom_protocol::{LocalRange, NodeId, OperationError};

use super::super::super::findings::Expected;
use super::super::super::layout::{GUARD_BYTES, MAIL, MAIL_SLOTS};
use super::super::super::run_view::RunView;
use super::super::Poll;
use super::script::{ANY_BYTES, Kind, Script, source_offset, tag};
use crate::ranks::request::{Body, Matched, Outcome, Request, Tag};

/// First item number of the receives that name no source.
const ANY: u32 = 1 << 24;
/// Item number of the receive that is cancelled.
const NEVER: u32 = 1 << 25;

/// A posted receive, with the index of its message in the script and its slot.
#[derive(Clone, Copy, Debug)]
struct Posted {
    index: usize,
    slot: u64,
    capacity: u64,
}

/// Owner's side of the message exchange.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    unmatched: Unmatched,
    /// Index of the peer whose messages are being received, counted from the last.
    step: usize,
    script: Option<Script>,
    has_begun: bool,
    /// Number of receives of the script that have been posted.
    next: usize,
    posted: Vec<Posted>,
    /// Sources that have not matched a receive without a source yet.
    any_missing: Vec<u16>,
    any_open: usize,
}

/// State of the receive that no message matches. It is posted first and cancelled last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Unmatched {
    /// No receive has been posted yet.
    #[default]
    Unposted,
    /// The receives without a source are posted, this one among them.
    Posted,
    /// Its cancellation has been requested.
    Cancelling,
    /// It has ended.
    Ended,
}

/// Describes a message, for findings.
fn location(view: &RunView, source: u16, what: &str) -> String {
    format!("message {what} from {}, round {}", view.name(source), view.round)
}

impl Inbox {
    /// Posts the receives that can be posted. Returns whether all messages have arrived.
    pub(super) fn advance(&mut self, poll: &mut Poll<'_>) -> bool {
        if poll.view.peers.is_empty() {
            return true;
        }
        if self.unmatched == Unmatched::Unposted {
            self.open(poll);
        }
        while let Some(source) = self.source(poll.view) {
            self.post(poll, source);
            if !self.has_all() {
                return false;
            }
            (self.script, self.has_begun, self.next) = (None, false, 0);
            self.step += 1;
        }
        if self.any_open == 0 && self.unmatched == Unmatched::Posted {
            self.unmatched = Unmatched::Cancelling;
            poll.issuer.cancel(Tag::Phase { peer: poll.view.rank, item: NEVER });
        }
        self.unmatched == Unmatched::Ended
    }

    /// Returns the rank that now sends to this one: in the nth step, the rank whose nth peer this one is.
    fn source(&self, view: &RunView) -> Option<u16> {
        let index = view.peers.len().checked_sub(self.step + 1)?;
        view.peers.get(index).copied()
    }

    fn has_all(&self) -> bool {
        let wanted = self.script.as_ref().map_or(0, |script| script.wanted.len());
        self.has_begun && self.next == wanted && self.posted.is_empty()
    }

    /// Posts the receives that name no source, one for each peer, and one for a message that is never sent.
    fn open(&mut self, poll: &mut Poll<'_>) {
        let view = poll.view;
        self.unmatched = Unmatched::Posted;
        self.any_missing.clone_from(&view.peers);
        self.any_open = view.peers.len();
        for number in 0..view.peers.len() {
            let item = ANY + number as u32;
            let slot = view.layout.mail_any_offset(number as u64);
            let any = Want { source: None, tag: tag(view, Kind::Any, 0), ignore: 0 };
            post(poll, view.rank, item, any, mail(slot, ANY_BYTES));
        }
        let slot = view.layout.mail_any_offset(view.peers.len() as u64);
        let never = Want { source: view.peers.first().copied(), tag: tag(view, Kind::Never, 0), ignore: 0 };
        post(poll, view.rank, NEVER, never, mail(slot, ANY_BYTES));
    }

    fn post(&mut self, poll: &mut Poll<'_>, source: u16) {
        let view = poll.view;
        let is_nearest = self.step == 0;
        if self.script.is_none() {
            let script = Script::new(view, is_nearest);
            let go = Want { source: Some(source), tag: script.messages[script.go].tag, ignore: 0 };
            post(poll, source, script.go as u32, go, mail(view.layout.mail_offset(0), 0));
            self.script = Some(script);
        }
        let Some(script) = self.script.as_ref().filter(|_| self.has_begun) else { return };
        while let Some(wanted) = script.wanted.get(self.next) {
            let is_free = |slot: &u64| self.posted.iter().all(|posted| posted.slot != *slot);
            let free = (0..MAIL_SLOTS).map(|slot| view.layout.mail_offset(slot)).find(is_free);
            let Some(slot) = free else { return };
            let message = script.messages[wanted.index];
            // Some receives have spare capacity.
            let capacity = message.bytes + 8 * (wanted.index as u64 % 3);
            self.posted.push(Posted { index: wanted.index, slot, capacity });
            self.next += 1;
            let want = Want { source: Some(source), tag: message.tag, ignore: wanted.ignore };
            post(poll, source, wanted.index as u32, want, mail(slot, capacity));
        }
    }

    /// Records that a receive succeeded.
    pub(super) fn received(&mut self, poll: &mut Poll<'_>, outcome: &Outcome, source: u16, item: u32) {
        match item {
            NEVER => self.unmatched = Unmatched::Ended,
            ANY..NEVER => self.received_any(poll, outcome, item - ANY),
            _ => self.received_wanted(poll, outcome, source, item as usize),
        }
    }

    fn received_any(&mut self, poll: &mut Poll<'_>, outcome: &Outcome, number: u32) {
        let view = poll.view;
        self.any_open -= 1;
        let source = outcome.message.map_or(view.rank, |message| message.source.0);
        let Some(index) = self.any_missing.iter().position(|missing| *missing == source) else {
            poll.findings
                .fail(format!("{}: not once from each peer", location(view, source, "without source")));
            return;
        };
        self.any_missing.swap_remove(index);
        let slot = view.layout.mail_any_offset(number.into());
        let bytes = ANY_BYTES.min(view.layout.message_bytes_max());
        let expected = tag(view, Kind::Any, 0);
        check(poll, outcome, source, 0, expected, bytes, mail(slot, ANY_BYTES));
    }

    fn received_wanted(&mut self, poll: &mut Poll<'_>, outcome: &Outcome, source: u16, index: usize) {
        let Some(script) = &self.script else { return };
        let message = script.messages[index];
        if index == script.go {
            self.has_begun = true;
            let slot = mail(poll.view.layout.mail_offset(0), 0);
            check(poll, outcome, source, index, message.tag, 0, slot);
        } else if let Some(at) = self.posted.iter().position(|posted| posted.index == index) {
            let Posted { slot, capacity, .. } = self.posted.swap_remove(at);
            check(poll, outcome, source, index, message.tag, message.bytes, mail(slot, capacity));
        }
    }

    pub(super) fn waits_for(&self, view: &RunView) -> Option<String> {
        let script = self.script.as_ref()?;
        let source = view.name(self.source(view)?);
        let done = self.next - self.posted.len();
        Some(format!("messages of {source} ({done} of {})", script.wanted.len()))
    }
}

/// Source and tag that a receive matches.
struct Want {
    source: Option<u16>,
    tag: u64,
    ignore: u64,
}

/// Returns a range of the memory for messages.
const fn mail(offset: u64, length: u64) -> LocalRange {
    LocalRange { region: MAIL, offset, length }
}

/// Posts a receive into a slot. The slot is filled with a pattern first, so that missing bytes are detected.
fn post(poll: &mut Poll<'_>, peer: u16, item: u32, want: Want, slot: LocalRange) {
    let guarded = mail(slot.offset - GUARD_BYTES, slot.length + 2 * GUARD_BYTES);
    poll.fill(guarded, poll.view.lane_pattern(), guarded.offset);
    let Want { source, tag, ignore } = want;
    let body = Body::Receive { source: source.map(NodeId), tag, ignore, into: slot };
    let request_tag = Tag::Phase { peer, item };
    poll.issuer.submit_urgent(match item {
        NEVER => Request::forbidden(request_tag, body, OperationError::Cancelled),
        _ => Request::new(request_tag, body),
    });
}

/// Checks that the received message is the expected one, complete, and that no byte beside it has changed.
fn check(
    poll: &mut Poll<'_>,
    outcome: &Outcome,
    source: u16,
    index: usize,
    tag: u64,
    bytes: u64,
    slot: LocalRange,
) {
    let view = poll.view;
    let words = || location(view, source, &format!("{index} of {bytes} bytes"));
    let right = Some(Matched { source: NodeId(source), tag });
    if outcome.message != right || outcome.result != Ok(bytes) {
        let (met, ended) = (outcome.message, outcome.result);
        poll.findings.fail(format!("{} with tag {tag:#x}: met {met:x?}, ended with {ended:?}", words()));
    }
    let offset = source_offset(view, source, view.rank, index, bytes);
    let expected = Expected::Exactly(view.readable_pattern(source), offset);
    poll.findings.check(poll.memory, LocalRange { length: bytes, ..slot }, expected, words);
    let before = mail(slot.offset - GUARD_BYTES, GUARD_BYTES);
    let behind = mail(slot.offset + bytes, slot.length + GUARD_BYTES - bytes);
    for guard in [before, behind] {
        let expected = Expected::Exactly(view.lane_pattern(), guard.offset);
        poll.findings.check(poll.memory, guard, expected, || format!("beside {}", words()));
    }
}
