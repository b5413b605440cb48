//! Deadlines of the links of a switch, and the earliest of them.
//!
//! Links are large and a switch has many, so reading all their deadlines after every frame would cost more than the
//! frame. A link's deadline changes only when the switch touches it. So deadlines are cached, and the earliest is
//! searched again only after the link that gave it has changed.

use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

use crate::ids::PortId;
use crate::time::Instant;

/// Deadline of each port.
#[derive(Debug)]
pub(super) struct Deadlines {
    at: Vec<Instant>,
    /// Earliest deadline; `None` if it must be searched.
    soonest: Cell<Option<Instant>>,
}

impl Deadlines {
    /// Returns a table in which all links are due, so that each is read first.
    pub(super) fn new(ports: usize) -> Self {
        Self { at: vec![Instant::ZERO; ports], soonest: Cell::new(None) }
    }

    pub(super) fn set(&mut self, port: PortId, at: Instant) {
        let Some(deadline) = self.at.get_mut(port.index()) else { return };
        let before = core::mem::replace(deadline, at);
        let soonest = self.soonest.get_mut();
        match *soonest {
            Some(known) if at <= known => *soonest = Some(at),
            Some(known) if before == known => *soonest = None,
            _ => {}
        }
    }

    /// Returns the earliest deadline, or `Instant::NEVER` without ports.
    pub(super) fn soonest(&self) -> Instant {
        if let Some(known) = self.soonest.get() {
            return known;
        }
        let soonest = self.at.iter().copied().min().unwrap_or(Instant::NEVER);
        self.soonest.set(Some(soonest));
        soonest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_deadline_is_right_after_every_change() {
        let mut deadlines = Deadlines::new(5);
        let mut plain = [Instant::ZERO; 5];
        let mut state = 1_u64;
        for step in 0..5_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (port, at) = ((state >> 40) as usize % 5, Instant(state >> 33 & 15));
            deadlines.set(PortId(port as u16), at);
            plain[port] = at;
            if step % 3 != 0 {
                assert_eq!(Some(deadlines.soonest()), plain.iter().copied().min());
            }
        }
        assert_eq!(Deadlines::new(0).soonest(), Instant::NEVER);
    }
}
