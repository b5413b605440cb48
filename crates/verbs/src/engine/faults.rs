//! Faults that a script or an injection sets on a queue pair.

use rackloom::fabric::{QueuePairEffect, QueuePairFault};

/// Active faults of a queue pair.
pub(super) struct PairFaults {
    active: Vec<Active>,
    /// Position of the queue pair among those that the process has made, from 1.
    order: u32,
    /// Random number of the process.
    seed: u64,
}

#[derive(Clone, Copy)]
struct Active {
    fault: QueuePairFault,
    /// Packets that were sent since the fault began.
    packets: u64,
    /// Completions that were due since then.
    completions: u64,
    /// The queue pair has failed.
    has_failed: bool,
}

impl PairFaults {
    /// Returns a state without faults.
    pub(super) const fn new(order: u32, seed: u64) -> Self {
        Self { active: Vec::new(), order, seed }
    }

    /// Sets the faults of the process that are active from now on. Those that were active before keep their counts.
    pub(super) fn set(&mut self, faults: &[QueuePairFault]) {
        let before = std::mem::take(&mut self.active);
        let own = faults.iter().filter(|fault| fault.number.is_none_or(|number| number == self.order));
        self.active.extend(own.map(|fault| {
            let known = before.iter().find(|known| known.fault == *fault).copied();
            known.unwrap_or(Active { fault: *fault, packets: 0, completions: 0, has_failed: false })
        }));
    }

    /// Returns true if a request with this number of packets is to fail.
    pub(super) fn fails(&self, packets: u64) -> bool {
        self.active.iter().any(|active| match active.fault.effect {
            QueuePairEffect::Fail { packets: most } => {
                !active.has_failed && active.packets.saturating_add(packets) > most
            }
            _ => false,
        })
    }

    /// Notes that the queue pair has failed, which happens once for each beginning of a fault.
    pub(super) fn note_failure(&mut self) {
        self.active.iter_mut().for_each(|active| active.has_failed = true);
    }

    /// Counts the packets of a request that is sent.
    pub(super) fn count_packets(&mut self, packets: u64) {
        self.active.iter_mut().for_each(|active| active.packets = active.packets.saturating_add(packets));
    }

    /// Returns the time by which a request that is posted now starts later.
    pub(super) fn delay_ns(&self) -> u64 {
        let delays = self.active.iter().map(|active| match active.fault.effect {
            QueuePairEffect::Delay { by_ns } => by_ns,
            _ => 0,
        });
        delays.max().unwrap_or(0)
    }

    /// Returns true if the completion that is due now is lost.
    pub(super) fn loses_completion(&mut self) -> bool {
        let seed = self.seed ^ u64::from(self.order).rotate_left(32);
        let mut is_lost = false;
        for active in &mut self.active {
            if let QueuePairEffect::DropCompletions { rate } = active.fault.effect {
                active.completions += 1;
                is_lost |= share(seed.wrapping_add(active.completions)) < rate;
            }
        }
        is_lost
    }
}

/// Returns a number from 0 to below 1 that looks random (splitmix64: Steele, Lea, Flood, OOPSLA 2014).
fn share(number: u64) -> f64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(number: Option<u32>, effect: QueuePairEffect) -> QueuePairFault {
        QueuePairFault { beginning: (0, 1), number, effect }
    }

    #[test]
    fn a_queue_pair_fails_once_after_its_packets() {
        let (mut pair, mut other) = (PairFaults::new(2, 1), PairFaults::new(3, 1));
        let failing = fault(Some(2), QueuePairEffect::Fail { packets: 10 });
        let late = fault(None, QueuePairEffect::Delay { by_ns: 5 });
        [&mut pair, &mut other].into_iter().for_each(|pair| pair.set(&[failing]));
        assert!(!pair.fails(10) && pair.fails(11) && !other.fails(11));
        pair.count_packets(10);
        // A further fault does not begin this one again.
        [&mut pair, &mut other].into_iter().for_each(|pair| pair.set(&[failing, late]));
        assert!(pair.fails(1));
        pair.note_failure();
        assert!(!pair.fails(1));
        assert_eq!((pair.delay_ns(), other.delay_ns()), (5, 5));
        pair.set(&[QueuePairFault { beginning: (0, 2), ..failing }]);
        pair.count_packets(10);
        assert!(pair.fails(1), "the event has begun again");
        pair.set(&[]);
        assert!(!pair.fails(1) && pair.delay_ns() == 0);
    }

    #[test]
    fn the_stated_share_of_completions_is_lost() {
        let (mut pair, mut other) = (PairFaults::new(1, 7), PairFaults::new(2, 7));
        let some = fault(Some(1), QueuePairEffect::DropCompletions { rate: 0.25 });
        [&mut pair, &mut other].into_iter().for_each(|pair| pair.set(&[some]));
        let lost = (0..10_000).filter(|_| pair.loses_completion()).count();
        // Five standard deviations of a binomial: sqrt(10000 * 0.25 * 0.75) = 43.
        assert!(lost.abs_diff(2_500) < 217, "{lost}");
        assert!((0..100).all(|_| !other.loses_completion()));
        pair.set(&[fault(None, QueuePairEffect::DropCompletions { rate: 1.0 })]);
        assert!((0..100).all(|_| pair.loses_completion()));
    }
}
