//! Our own runs through the public API: two nodes of one fabric, one thread each, over the shared-memory wire.
//!
//! The near thread issues operations and drives its node by waiting for them; the far thread waits for a word in its own
//! memory, which drives its node, as a receiver would. Core, rings and frames are those of a rack of processes; what is
//! left out is the job runner, which makes and checks test data.

use std::sync::Arc;
use std::time::Instant;

use rackloom::fabric::{Condition, Error, Fabric, Node, Queue, Region, RegionOptions, RemoteAddress};
use rackloom_calibrate::Pair;
use rackloom_plan::Plan;

use super::raw::WINDOW;
use super::row::Obstacle;

const REGION_BYTES: u64 = 1 << 20;
const KEY: u64 = 0x5eed;

/// Whether operations to one destination share frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Off,
    Opportunistic,
}

/// Two nodes, their regions, and a word by which the near one says that it is done.
pub(super) struct Couple {
    fabric: Fabric,
    source: Region,
    target: Region,
    word: Region,
    turns: u64,
}

/// What the near side needs.
pub(super) struct Near<'c> {
    node: &'c Node,
    source: &'c Region,
    target: RemoteAddress,
}

impl Couple {
    pub(super) fn new(packing: Packing) -> Result<Self, Obstacle> {
        let mode = match packing {
            Packing::Off => "\"off\"",
            Packing::Opportunistic => "opportunistic",
        };
        let text = format!("name: couple\nshape: {{ring: {{nodes: 2}}}}\npacking: {{mode: {mode}}}\n");
        let plan = Plan::parse(&text, "calibrate").map_err(|error| Obstacle::Failed(error.to_string()))?;
        let fabric = Fabric::local(&plan)?;
        let [near, far] = fabric.nodes() else {
            return Err(Obstacle::Failed("the plan has two nodes".to_owned()));
        };
        let source = near.allocate(RegionOptions::new(1, KEY), REGION_BYTES)?;
        let target = far.allocate(RegionOptions::new(2, KEY), REGION_BYTES)?;
        let word = far.allocate(RegionOptions::new(3, KEY), 8)?;
        Ok(Self { source, target, word, turns: 0, fabric })
    }

    /// Let the near side act while the far side serves.
    pub(super) fn act(
        &mut self,
        pair: Pair,
        act: impl FnOnce(&Near<'_>) -> Result<f64, Error> + Send,
    ) -> Result<f64, Obstacle> {
        self.turns += 1;
        let turns = self.turns;
        let [near, far] = self.fabric.nodes() else { return Err(Obstacle::Failed("no couple".to_owned())) };
        let (source, word) = (&self.source, &self.word);
        let target = self.target.address(0);
        let near_side = || {
            let result = act(&Near { node: near, source, target });
            // Whatever became of it: the far side waits for this word.
            near.store(word.address(0), &turns.to_ne_bytes()).wait()?;
            Ok::<f64, Obstacle>(result?)
        };
        let far_side = || {
            far.wait_until(word, 0, Condition::AtLeast, turns, near.id()).wait()?;
            Ok(())
        };
        Ok(pair.run(near_side, far_side)?.0)
    }
}

impl Near<'_> {
    /// Stores of 64 bytes per second, each acknowledged once it is visible, [`WINDOW`] under way.
    pub(super) fn acknowledged_stores_per_s(&self, count: u64) -> Result<f64, Error> {
        let data = [0x5a; 64];
        self.in_flight(count, |number, queue| {
            self.node.store(self.place(number, 64), &data).submit(queue, number).map(drop)
        })
    }

    /// Puts of `length` bytes per second, each complete once it is visible, [`WINDOW`] under way.
    pub(super) fn puts_per_s(&self, length: u64, count: u64) -> Result<f64, Error> {
        self.in_flight(count, |number, queue| {
            let target = self.place(number, length);
            let source = self.source.slice(target.offset..target.offset + length);
            self.node.put(&source, target).submit(queue, number).map(drop)
        })
    }

    /// Posted stores of 64 bytes per second, until the last one is visible.
    pub(super) fn posted_stores_per_s(&self, count: u64) -> Result<f64, Error> {
        let data = [0x5a; 64];
        let begun = Instant::now();
        for number in 0..count {
            self.node.store_posted(self.place(number, 64), &data).wait()?;
        }
        self.node.flush(Some(self.target.node)).wait()?;
        Ok(per_s(count, begun))
    }

    /// Nanoseconds until a store of 64 bytes is acknowledged as visible, one at a time.
    pub(super) fn store_round_trip_ns(&self, count: u64) -> Result<f64, Error> {
        let data = [0x5a; 64];
        let begun = Instant::now();
        for number in 0..count {
            self.node.store(self.place(number, 64), &data).wait()?;
        }
        Ok(begun.elapsed().as_nanos() as f64 / count.max(1) as f64)
    }

    /// Operations walk through the target, one behind the other.
    fn place(&self, number: u64, length: u64) -> RemoteAddress {
        RemoteAddress { offset: number % (REGION_BYTES / length) * length, ..self.target }
    }

    fn in_flight(
        &self,
        count: u64,
        mut submit: impl FnMut(u64, &Arc<Queue>) -> Result<(), Error>,
    ) -> Result<f64, Error> {
        let queue = Queue::with_capacity(WINDOW as usize);
        let (mut submitted, mut completed) = (0, 0);
        let begun = Instant::now();
        while completed < count {
            while submitted < count && submitted - completed < WINDOW {
                match submit(submitted, &queue) {
                    Ok(()) => submitted += 1,
                    Err(Error::Busy { .. }) => break,
                    Err(error) => return Err(error),
                }
            }
            while let Some(completion) = self.node.poll(&queue) {
                completion.result?;
                completed += 1;
                if queue.is_empty() {
                    break;
                }
            }
        }
        Ok(per_s(count, begun))
    }
}

fn per_s(count: u64, begun: Instant) -> f64 {
    count as f64 / begun.elapsed().as_secs_f64().max(1e-9)
}
