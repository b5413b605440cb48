//! Runs through the public API: two nodes of one fabric, one thread each, over the shared-memory wire.
//!
//! The initiator's thread drives its node ([`Driver`]), issues operations and polls. The target's thread
//! waits for a word in its own memory, which drives its node, as a receiver would. Core, rings and frames are
//! those of a rack of processes. Only the job runner, which makes and checks test data, is missing.

use std::time::{Duration, Instant};

use rackloom::fabric::{
    Completion, Condition, Driver, Error, Fabric, Region, RegionOptions, RemoteAddress, Store,
};
use rackloom_calibrate::{Pair, scatter};
use rackloom_plan::Plan;

use crate::measure_error::MeasureError;
use crate::runs::raw::WINDOW;

/// Bytes of the target region over which operations advance.
const REGION_BYTES: u64 = 1 << 20;
/// Longest time for a mapping.
const MAP_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
const KEY: u64 = 0x5eed;
/// Number of stores that the driver gets at a time.
const LIST: usize = 32;
/// Longest wait for a completion: longer than the detection of a death.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Packing of operations to one destination into frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Off,
    Opportunistic,
}

/// Two nodes with their regions, and a word with which the initiator reports its end.
pub(crate) struct NodePair {
    fabric: Fabric,
    source: Region,
    target: Region,
    word: Region,
    runs: u64,
}

/// Two nodes of one server. The initiator has mapped the target's region.
pub(crate) struct MappedNodes {
    driver: Driver,
    source: Region,
    target: Region,
    /// Nodes, kept while the regions are used.
    _fabric: Fabric,
}

impl MappedNodes {
    /// Makes nodes with regions of this many bytes, and waits until the target's region is mapped.
    pub(crate) fn new(bytes: u64) -> Result<Self, MeasureError> {
        let text = "name: pair\nshape: {ring: {nodes: 2}}\nservers: {box: [n0, n1]}\n";
        let plan = Plan::parse(text, "calibrate").map_err(|error| MeasureError::Failed(error.to_string()))?;
        let fabric = Fabric::local(&plan)?;
        let [initiator, target_node] = fabric.nodes() else {
            return Err(MeasureError::Failed("the plan has two nodes".to_owned()));
        };
        let source = initiator.allocate(RegionOptions::new(1, KEY), bytes)?;
        let target = target_node.allocate(RegionOptions::new(2, KEY), bytes)?;
        let begun = Instant::now();
        while initiator.counters().direct_operations == 0 {
            initiator.put(&source.slice(..), target.address(0)).wait()?;
            if begun.elapsed() > MAP_TIMEOUT {
                return Err(MeasureError::Failed("the region of the other node is not mapped".to_owned()));
            }
        }
        let driver = initiator.drive()?;
        Ok(Self { driver, source, target, _fabric: fabric })
    }

    /// Measures puts of the whole region per second. None of them may use a frame.
    pub(crate) fn puts_per_s(&mut self, count: u64) -> Result<f64, MeasureError> {
        let (before, mut completions) = (self.driver.node().counters().direct_operations, Vec::new());
        let begun = Instant::now();
        for number in 0..count {
            self.driver.put(&self.source, 0..self.source.len(), self.target.address(0), number)?;
            self.driver.poll(&mut completions);
            completions.drain(..).try_for_each(|completion| completion.result.map(|_| ()))?;
        }
        let rate = count as f64 / begun.elapsed().as_secs_f64().max(1e-9);
        let direct = self.driver.node().counters().direct_operations - before;
        if direct != count {
            return Err(MeasureError::Failed(format!("{direct} of {count} puts were direct")));
        }
        Ok(rate)
    }
}

/// State of the initiator.
pub(crate) struct Initiator<'c> {
    driver: Driver,
    source: &'c Region,
    target: RemoteAddress,
}

impl NodePair {
    pub(crate) fn new(packing: Packing) -> Result<Self, MeasureError> {
        Self::with_target(packing, REGION_BYTES)
    }

    /// Makes a pair with a large target region for scattered stores. Its pages are mapped.
    pub(crate) fn for_scattered_stores() -> Result<Self, MeasureError> {
        let pair = Self::with_target(Packing::Opportunistic, scatter::MEMORY_BYTES)?;
        for at in (0..scatter::MEMORY_BYTES).step_by(4096) {
            pair.target.write(at, &[1_u64])?;
        }
        Ok(pair)
    }

    fn with_target(packing: Packing, target_bytes: u64) -> Result<Self, MeasureError> {
        let mode = match packing {
            Packing::Off => "\"off\"",
            Packing::Opportunistic => "opportunistic",
        };
        let text = format!("name: pair\nshape: {{ring: {{nodes: 2}}}}\npacking: {{mode: {mode}}}\n");
        let plan =
            Plan::parse(&text, "calibrate").map_err(|error| MeasureError::Failed(error.to_string()))?;
        let fabric = Fabric::local(&plan)?;
        let [initiator, target_node] = fabric.nodes() else {
            return Err(MeasureError::Failed("the plan has two nodes".to_owned()));
        };
        let source = initiator.allocate(RegionOptions::new(1, KEY), REGION_BYTES)?;
        let target = target_node.allocate(RegionOptions::new(2, KEY), target_bytes)?;
        let word = target_node.allocate(RegionOptions::new(3, KEY), 8)?;
        Ok(Self { source, target, word, runs: 0, fabric })
    }

    /// Runs `act` on the initiator while the target serves.
    pub(crate) fn act(
        &mut self,
        pair: Pair,
        act: impl FnOnce(&mut Initiator<'_>) -> Result<f64, Error> + Send,
    ) -> Result<f64, MeasureError> {
        self.runs += 1;
        let runs = self.runs;
        let [initiator, target_node] = self.fabric.nodes() else {
            return Err(MeasureError::Failed("the plan has two nodes".to_owned()));
        };
        let (source, word) = (&self.source, &self.word);
        let target = self.target.address(0);
        let initiator_side = || {
            let result = initiator.drive().and_then(|driver| act(&mut Initiator { driver, source, target }));
            // Also after a failure: the target waits for this word.
            initiator.store(word.address(0), &runs.to_ne_bytes()).wait()?;
            Ok::<f64, MeasureError>(result?)
        };
        let target_side = || {
            target_node.wait_until(word, 0, Condition::AtLeast, runs, initiator.id()).wait()?;
            Ok(())
        };
        Ok(pair.run(initiator_side, target_side)?.0)
    }
}

impl Initiator<'_> {
    /// Measures stores of 64 bytes per second, each acknowledged once it is visible, [`WINDOW`] in flight.
    pub(crate) fn acknowledged_stores_per_s(&mut self, count: u64) -> Result<f64, Error> {
        let (data, target) = ([0x5a; 64], self.target);
        in_flight(&mut self.driver, count, |driver, number, free_slots| {
            let stores = list(number, &data, |number| address(target, number, 64));
            driver.stores(&stores[..LIST.min(free_slots)])
        })
    }

    /// Measures puts of `length` bytes per second, each complete once it is visible, [`WINDOW`] in flight.
    pub(crate) fn puts_per_s(&mut self, length: u64, count: u64) -> Result<f64, Error> {
        let (source, target) = (self.source, self.target);
        in_flight(&mut self.driver, count, |driver, number, _| {
            let at = address(target, number, length);
            driver.put(source, at.offset..at.offset + length, at, number).map(|_| 1)
        })
    }

    /// Measures posted stores of 64 bytes per second to the offsets of the raw loop, until the last one is
    /// visible.
    pub(crate) fn scattered_stores_per_s(&mut self, count: u64) -> Result<f64, Error> {
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

    /// Measures the nanoseconds until a store of 64 bytes is acknowledged as visible, one at a time.
    pub(crate) fn store_round_trip_ns(&mut self, count: u64) -> Result<f64, Error> {
        let (data, target, driver) = ([0x5a; 64], self.target, &mut self.driver);
        let mut completions = Vec::new();
        let begun = Instant::now();
        for number in 0..count {
            driver.store(address(target, number, 64), &data, number)?;
            take(driver, &mut completions)?;
        }
        Ok(begun.elapsed().as_nanos() as f64 / count.max(1) as f64)
    }
}

/// Returns the address of an operation. Operations advance through the target region.
fn address(target: RemoteAddress, number: u64, length: u64) -> RemoteAddress {
    RemoteAddress { offset: number % (REGION_BYTES / length) * length, ..target }
}

/// Returns [`LIST`] stores of the same bytes. `number` is the number of the first one.
fn list(number: u64, data: &[u8], address: impl Fn(u64) -> RemoteAddress) -> [Store<'_>; LIST] {
    std::array::from_fn(|index| {
        let context = number + index as u64;
        Store::new(address(context), data, context)
    })
}

/// Measures operations per second with a full window in flight. `begin` gets the number of the next operation
/// and the free space of the window, and returns the number of operations that it began.
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
            let free_slots = (count - submitted).min(WINDOW - (submitted - completed));
            match begin(driver, submitted, free_slots as usize) {
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

/// Waits for completions. Returns their number; an error if one failed or none came.
fn take(driver: &mut Driver, completions: &mut Vec<Completion>) -> Result<u64, Error> {
    if driver.poll_wait(completions, TIMEOUT) == 0 {
        return Err(Error::TimedOut { peer: None, waited_ms: 10_000, continues: true });
    }
    let mut count = 0;
    for completion in completions.drain(..) {
        completion.result?;
        count += 1;
    }
    Ok(count)
}

/// Accepts the error of a full queue: a poll frees space.
fn unless_busy(error: Error) -> Result<(), Error> {
    if matches!(error, Error::Busy { .. }) { Ok(()) } else { Err(error) }
}

fn per_s(count: u64, begun: Instant) -> f64 {
    count as f64 / begun.elapsed().as_secs_f64().max(1e-9)
}
