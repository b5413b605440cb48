//! Shared receive queue: receives that many queue pairs take from.

use std::collections::VecDeque;
use std::sync::Arc;

use super::events::{AsyncEvent, Element, Events};
use super::work::Receive;
use crate::layout::attributes::SrqAttr;
use crate::layout::constants::EVENT_SRQ_LIMIT_REACHED;

pub(super) struct Shared {
    pub(super) domain: u32,
    pub(super) attributes: SrqAttr,
    pub(super) receives: VecDeque<Receive>,
    pub(super) owner: usize,
    pub(super) events: Arc<Events<AsyncEvent>>,
    /// Number of queue pairs.
    pub(super) users: u32,
}

impl Shared {
    /// Takes the oldest receive. Reports once that fewer than the limit are left.
    pub(super) fn take(&mut self) -> Option<Receive> {
        let receive = self.receives.pop_front()?;
        if self.receives.len() < self.attributes.srq_limit as usize {
            self.attributes.srq_limit = 0;
            let element = Element::Shared(self.owner);
            self.events.push(AsyncEvent { kind: EVENT_SRQ_LIMIT_REACHED, element });
        }
        Some(receive)
    }
}
