//! Our own runs through the public API: two nodes of one fabric, one thread each, over the shared-memory wire.
//!
//! The near thread takes its node into its hands ([`Driver`]), issues operations and polls; the far thread waits for a word in
//! its own memory, which drives its node, as a receiver would. Core, rings and frames are those of a rack of processes; what is
//! left out is the job runner, which makes and checks test data.

use std::time::{Duration, Instant};

use rackloom::fabric::{
    Completion, Condition, Driver, Error, Fabric, Region, RegionOptions, RemoteAddress, Store,
};
use rackloom_calibrate::{Pair, scatter};
use rackloom_plan::Plan;

use super::obstacle::Obstacle;
use super::raw::WINDOW;

/// Bytes that operations walk through.
const REGION_BYTES: u64 = 1 << 20;
const KEY: u64 = 0x5eed;
/// Stores that are given to the driver at a time.
const LIST: usize = 32;
/// Longest wait for a completion: longer than a death takes to be noticed.
const PATIENCE: Duration = Duration::from_secs(10);

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
    driver: Driver,
    source: &'c Region,
    target: RemoteAddress,
}

impl Couple {
    pub(super) fn new(packing: Packing) -> Result<Self, Obstacle> {
        Self::with_target(packing, REGION_BYTES)
    }

    /// With a target that stores scatter over; its pages are there.
    pub(super) fn for_scattered_stores() -> Result<Self, Obstacle> {
        let couple = Self::with_target(Packing::Opportunistic, scatter::MEMORY_BYTES)?;
        for at in (0..scatter::MEMORY_BYTES).step_by(4096) {
            couple.target.write(at, &[1_u64])?;
        }
        Ok(couple)
    }

    fn with_target(packing: Packing, target_bytes: u64) -> Result<Self, Obstacle> {
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
        let target = far.allocate(RegionOptions::new(2, KEY), target_bytes)?;
        let word = far.allocate(RegionOptions::new(3, KEY), 8)?;
        Ok(Self { source, target, word, turns: 0, fabric })
    }

    /// Let the near side act while the far side serves.
    pub(super) fn act(
        &mut self,
        pair: Pair,
        act: impl FnOnce(&mut Near<'_>) -> Result<f64, Error> + Send,
    ) -> Result<f64, Obstacle> {
        self.turns += 1;
        let turns = self.turns;
        let [near, far] = self.fabric.nodes() else { return Err(Obstacle::Failed("no couple".to_owned())) };
        let (source, word) = (&self.source, &self.word);
        let target = self.target.address(0);
        let near_side = || {
            let result = near.drive().and_then(|driver| act(&mut Near { driver, source, target }));
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
    pub(super) fn acknowledged_stores_per_s(&mut self, count: u64) -> Result<f64, Error> {
        let (data, target) = ([0x5a; 64], self.target);
        in_flight(&mut self.driver, count, |driver, number, room| {
            let stores = list(number, &data, |number| place(target, number, 64));
            driver.stores(&stores[..LIST.min(room)])
        })
    }

    /// Puts of `length` bytes per second, each complete once it is visible, [`WINDOW`] under way.
    pub(super) fn puts_per_s(&mut self, length: u64, count: u64) -> Result<f64, Error> {
        let (source, target) = (self.source, self.target);
        in_flight(&mut self.driver, count, |driver, number, _| {
            let at = place(target, number, length);
            driver.put(source, at.offset..at.offset + length, at, number).map(|_| 1)
        })
    }

    /// Posted stores of 64 bytes per second, each to its place of the raw loop's, until the last one is visible.
    pub(super) fn scattered_stores_per_s(&mut self, count: u64) -> Result<f64, Error> {
        let (data, target, driver) = ([0x5a; 64], self.target, &mut self.driver);
        let mut none = Vec::new();
        let begun = Instant::now();
        let mut number = 0;
        while number < count {
            let stores =
                list(number, &data, |number| RemoteAddress { offset: scatter::offset(number), ..target });
            match driver.stores_posted(&stores[..LIST.min((count - number) as usize)]) {
                Ok(taken) => number += taken as u64,
                Err(error) => {
                    unless_busy(error)?;
                    driver.poll(&mut none);
                }
            }
        }
        let flush = driver.node().flush(Some(target.node));
        driver.wait(flush)?;
        Ok(per_s(count, begun))
    }

    /// Nanoseconds until a store of 64 bytes is acknowledged as visible, one at a time.
    pub(super) fn store_round_trip_ns(&mut self, count: u64) -> Result<f64, Error> {
        let (data, target, driver) = ([0x5a; 64], self.target, &mut self.driver);
        let mut completions = Vec::new();
        let begun = Instant::now();
        for number in 0..count {
            driver.store(place(target, number, 64), &data, number)?;
            take(driver, &mut completions)?;
        }
        Ok(begun.elapsed().as_nanos() as f64 / count.max(1) as f64)
    }
}

/// Operations walk through the target, one behind the other.
fn place(target: RemoteAddress, number: u64, length: u64) -> RemoteAddress {
    RemoteAddress { offset: number % (REGION_BYTES / length) * length, ..target }
}

/// Stores of the same bytes, the first of which has this number.
fn list(number: u64, data: &[u8], place: impl Fn(u64) -> RemoteAddress) -> [Store<'_>; LIST] {
    std::array::from_fn(|index| {
        let context = number + index as u64;
        Store::new(place(context), data, context)
    })
}

/// Operations per second, as many of them under way as a window has. `begin` is told the number of the next one and how many there is room for,
/// and tells how many it began.
fn in_flight(
    driver: &mut Driver,
    count: u64,
    mut begin: impl FnMut(&mut Driver, u64, usize) -> Result<usize, Error>,
) -> Result<f64, Error> {
    let mut completions = Vec::new();
    let (mut submitted, mut completed) = (0, 0);
    let begun = Instant::now();
    while completed < count {
        while submitted < count && submitted - completed < WINDOW {
            let room = (count - submitted).min(WINDOW - (submitted - completed));
            match begin(driver, submitted, room as usize) {
                Ok(begun) => submitted += begun as u64,
                Err(error) => {
                    unless_busy(error)?;
                    break;
                }
            }
        }
        completed += take(driver, &mut completions)?;
    }
    Ok(per_s(count, begun))
}

/// Some operations have ended, and well; how many.
fn take(driver: &mut Driver, completions: &mut Vec<Completion>) -> Result<u64, Error> {
    if driver.poll_wait(completions, PATIENCE) == 0 {
        return Err(Error::Invalid("no operation ended in ten seconds"));
    }
    let mut count = 0;
    for completion in completions.drain(..) {
        completion.result?;
        count += 1;
    }
    Ok(count)
}

/// A full queue is no failure: it is polled, and then there is room.
fn unless_busy(error: Error) -> Result<(), Error> {
    if matches!(error, Error::Busy { .. }) { Ok(()) } else { Err(error) }
}

fn per_s(count: u64, begun: Instant) -> f64 {
    count as f64 / begun.elapsed().as_secs_f64().max(1e-9)
}
