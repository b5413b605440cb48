//! Tagged messages: every rank sends to every other rank, and receives by source and tag and by wildcards.
//!
//! A rank sends to one peer after the other. At the same time it receives from the rank that sends to it, so that ranks
//! never wait for each other in a circle. The data is a part of the sender's readable region. The owner first waits for
//! the message "go", which follows the early messages, so these have arrived before their receives. It posts a few
//! receives at a time. For each it checks the matched message, its length, its bytes, and the bytes beside it.

mod inbox;
mod script;

use rackloom_protocol::{LocalRange, NodeId};

use self::inbox::Inbox;
use self::script::{Message, Script, source_offset};
use super::super::layout::READABLE;
use super::super::run_view::RunView;
use super::{Phase, Poll};
use crate::measure::OperationKind;
use crate::ranks::request::{Body, Outcome, Request, Tag};

/// Tagged messages.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// Current target by its index among the peers, and the remaining messages to it.
    peer: usize,
    outgoing: Option<Script>,
    next: usize,
    inbox: Inbox,
}

impl Messages {
    fn send(poll: &mut Poll<'_>, peer: u16, index: usize, message: &Message) {
        let &Message { tag, bytes, .. } = message;
        let offset = source_offset(poll.view, poll.view.rank, peer, index, bytes);
        let source = LocalRange { region: READABLE, offset, length: bytes };
        let body = Body::Send { target: NodeId(peer), tag, source };
        poll.issuer.submit(Request::new(Tag::Phase { peer, item: index as u32 }, body));
    }
}

impl Phase for Messages {
    fn name(&self) -> &'static str {
        "messages"
    }

    fn submit(&mut self, poll: &mut Poll<'_>) -> bool {
        while let Some(peer) = poll.view.peers.get(self.peer).copied() {
            let is_nearest = self.peer == 0;
            let script = self.outgoing.get_or_insert_with(|| Script::new(poll.view, is_nearest));
            while let Some(message) = script.messages.get(self.next) {
                if !poll.issuer.has_space() {
                    return false;
                }
                Self::send(poll, peer, self.next, message);
                self.next += 1;
            }
            (self.outgoing, self.next) = (None, 0);
            self.peer += 1;
        }
        true
    }

    fn succeeded(&mut self, poll: &mut Poll<'_>, outcome: &Outcome, peer: u16, item: u32) {
        if outcome.kind == OperationKind::Receive {
            self.inbox.received(poll, outcome, peer, item);
        }
    }

    fn look(&mut self, poll: &mut Poll<'_>) -> bool {
        self.inbox.advance(poll)
    }

    fn waits_for(&self, view: &RunView) -> Option<String> {
        self.inbox.waits_for(view)
    }
}
