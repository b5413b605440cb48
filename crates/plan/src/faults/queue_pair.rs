//! Faults of the queue pairs of programs that use verbs.
//!
//! A queue pair belongs to a process behind a GPU node, so the process applies the fault, and its GPU node reports it. The verbs library
//! (`crates/verbs`) decides what happens to a request.

use super::exchange::{Pass, Stated};
use super::kind::FaultKind;
use crate::schema::EventKeys;

/// Fault of queue pairs of one process, while it is active.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueuePairFault {
    /// Index of the event in the script, and number of its beginning, counted from one.
    pub beginning: (usize, u64),
    /// Queue pair, counted from one in the order in which the process makes them. `None` is each of them.
    pub number: Option<u32>,
    /// Effect on it.
    pub effect: QueuePairEffect,
}

/// Effect of a fault on a queue pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueuePairEffect {
    /// A request fails as if no retry were left, and the queue pair enters the error state. It happens once for each beginning of the event.
    Fail {
        /// Number of packets that the queue pair sends before.
        packets: u64,
    },
    /// Each request starts late.
    Delay {
        /// Delay in nanoseconds.
        by_ns: u64,
    },
    /// Completions are lost.
    DropCompletions {
        /// Probability that a completion is lost.
        rate: f64,
    },
}

impl Default for QueuePairEffect {
    fn default() -> Self {
        Self::Fail { packets: 0 }
    }
}

impl Stated for QueuePairEffect {
    fn exchange(&mut self, keys: &mut EventKeys, pass: Pass) {
        if pass == Pass::FromKeys {
            *self = match keys.what {
                FaultKind::DelayQueuePair => Self::Delay { by_ns: 0 },
                FaultKind::DropCompletions => Self::DropCompletions { rate: 0.0 },
                _ => Self::default(),
            };
        }
        match (keys.what, self) {
            (FaultKind::FailQueuePair, Self::Fail { packets }) => {
                pass.with_default(&mut keys.packets, packets);
            }
            (FaultKind::DelayQueuePair, Self::Delay { by_ns }) => pass.value(&mut keys.by_ns, by_ns),
            (FaultKind::DropCompletions, Self::DropCompletions { rate }) => {
                pass.value(&mut keys.rate, rate);
            }
            _ => {}
        }
    }
}
