//! Tensor-parallel layers hide communication behind computation: each node multiplies its part of two matrices, and the partial products are summed
//! over all nodes. The product is cut into bands of rows, and one band is summed while the next band is multiplied.
//!
//! Products run on a stream of their own, with an event after each band. As soon as a band's event is done, its all-reduce begins. The node performs
//! it on its own streams meanwhile. The example measures four times: products alone, all-reduces alone, one after the other, and overlapped. *Hidden*
//! is the time that overlapping saved, as a fraction of the most that it could save.
//!
//! Run it: `cargo run --release -p rackloom --example overlap -- cuda:0 4096 8`. Without arguments it uses a fake device, which has no realistic
//! speed, so that only the result is meaningful there.

use std::time::{Duration, Instant};

use rackloom::fabric::{
    Collective, DeviceChoice, ElementType, Error, Fabric, Group, GroupOptions, Node, NodeId, Plan, Queue,
    ReduceOperation, Region, RegionOptions,
};
use rackloom::gpu::GpuError;
use rackloom::gpu::device::{Address, Device, EventId, StreamId};
use rackloom_plan::MemoryDevice;

const TIMEOUT: Duration = Duration::from_secs(120);
const ROUNDS: usize = 5;

/// Size of the computation, and its device.
#[derive(Clone, Copy, Debug)]
struct Work {
    device: DeviceChoice,
    /// Number of rows and columns of the product. Each node has `size / nodes` of the inner index.
    size: u32,
    bands: u32,
    nodes: u32,
}

/// Times of one round on one node, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    products: f64,
    sums: f64,
    sequential: f64,
    overlapped: f64,
}

impl Times {
    /// Returns the hidden fraction of the shorter of the two activities.
    fn hidden(&self) -> f64 {
        (self.sequential - self.overlapped) / self.products.min(self.sums)
    }
}

#[derive(Debug)]
enum WorkerError {
    Fabric(Error),
    Gpu(GpuError),
    NoEnd,
}

impl std::fmt::Display for WorkerError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fabric(error) => error.fmt(formatter),
            Self::Gpu(error) => error.fmt(formatter),
            Self::NoEnd => write!(formatter, "an all-reduce has not ended in {} s", TIMEOUT.as_secs()),
        }
    }
}

impl std::error::Error for WorkerError {}

impl From<Error> for WorkerError {
    fn from(error: Error) -> Self {
        Self::Fabric(error)
    }
}

impl From<GpuError> for WorkerError {
    fn from(error: GpuError) -> Self {
        Self::Gpu(error)
    }
}

/// One node with its matrices.
struct Worker<'a> {
    node: &'a Node,
    group: Group,
    queue: std::sync::Arc<Queue>,
    work: Work,
    left: Region,
    right: Region,
    product: Region,
    stream: StreamId,
    events: Vec<EventId>,
}

/// Returns a small integer, so that every order of addition gives the same sum.
fn element(seed: u32, row: u32, column: u32) -> f32 {
    ((row * 7 + column * 3 + seed * 5) % 5) as f32 - 2.0
}

fn matrix(seed: u32, rows: std::ops::Range<u32>, columns: std::ops::Range<u32>) -> Vec<f32> {
    rows.flat_map(|row| columns.clone().map(move |column| element(seed, row, column))).collect()
}

impl<'a> Worker<'a> {
    fn new(node: &'a Node, place: u32, members: &[NodeId], work: Work) -> Result<Self, WorkerError> {
        let Work { device, size, bands, nodes } = work;
        let (inner, key) = (size / nodes, 0x5eed);
        let band_bytes = u64::from(size / bands) * u64::from(size) * 4;
        let region = |name, rows: u32, columns: u32| {
            let bytes = u64::from(rows) * u64::from(columns) * 4;
            node.allocate_on_device(RegionOptions::new(name, key), device, bytes)
        };
        let (left, right) = (region(1, size, inner)?, region(2, inner, size)?);
        let mine = place * inner..(place + 1) * inner;
        left.write(0, &matrix(1, 0..size, mine.clone()))?;
        right.write(0, &matrix(2, mine, 0..size))?;
        let options = GroupOptions::new(9, key).staging(band_bytes * 2).device(device);
        let group = Group::join(node, options, members)?;
        let (stream, events) = on(node, |device| {
            let events = (0..bands).map(|_| device.event()).collect::<Result<Vec<_>, _>>()?;
            // The sums take precedence over the products.
            Ok((device.low_priority_stream()?, events))
        })?;
        let (product, queue) = (region(3, size, size)?, Queue::with_capacity(1));
        Ok(Self { node, group, queue, work, left, right, product, stream, events })
    }

    fn address(region: &Region, offset: u64) -> Address {
        Address(region.device_address().unwrap_or(0) + offset)
    }

    /// Enqueues the products of all bands on the stream, with an event after each.
    fn multiply(&self) -> Result<(), WorkerError> {
        let Work { size, bands, nodes, .. } = self.work;
        let (rows, inner) = (size / bands, size / nodes);
        let right = Self::address(&self.right, 0);
        for (band, event) in (0..u64::from(bands)).zip(&self.events) {
            let left = Self::address(&self.left, band * u64::from(rows) * u64::from(inner) * 4);
            let target = Self::address(&self.product, band * u64::from(rows) * u64::from(size) * 4);
            on(self.node, |device| {
                device.multiply(self.stream, [left, right], target, [rows, inner, size])?;
                device.record(*event, self.stream)
            })?;
        }
        Ok(())
    }

    fn wait_for_band(&self, band: u32) -> Result<(), WorkerError> {
        while !on(self.node, |device| device.is_done(self.events[band as usize]))? {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Sums a band over all nodes.
    fn sum(&self, band: u32) -> Result<(), WorkerError> {
        let bytes = self.product.len() / u64::from(self.work.bands);
        let slice = self.product.slice(u64::from(band) * bytes..u64::from(band + 1) * bytes);
        let (all_reduce, sum) = (Collective::AllReduce, ReduceOperation::Sum);
        let request = self.group.on_slices(all_reduce, sum, ElementType::F32, &slice, &slice);
        request.submit(&self.queue, u64::from(band))?;
        let ended = self.node.poll_wait(&self.queue, TIMEOUT).ok_or(WorkerError::NoEnd)?;
        ended.result?;
        Ok(())
    }

    /// Returns the time that all nodes take for `act`, in seconds.
    fn timed(&self, act: impl FnOnce() -> Result<(), WorkerError>) -> Result<f64, WorkerError> {
        self.group.barrier().wait()?;
        let begun = Instant::now();
        act()?;
        self.group.barrier().wait()?;
        Ok(begun.elapsed().as_secs_f64())
    }

    fn products(&self) -> Result<(), WorkerError> {
        self.multiply()?;
        (0..self.work.bands).try_for_each(|band| self.wait_for_band(band))
    }

    fn sums(&self) -> Result<(), WorkerError> {
        (0..self.work.bands).try_for_each(|band| self.sum(band))
    }

    fn overlapped(&self) -> Result<(), WorkerError> {
        self.multiply()?;
        (0..self.work.bands).try_for_each(|band| {
            self.wait_for_band(band)?;
            self.sum(band)
        })
    }

    fn round(&self) -> Result<Times, WorkerError> {
        let products = self.timed(|| self.products())?;
        let sums = self.timed(|| self.sums())?;
        let sequential = self.timed(|| self.products().and_then(|()| self.sums()))?;
        let overlapped = self.timed(|| self.overlapped())?;
        Ok(Times { products, sums, sequential, overlapped })
    }

    /// Returns the number of wrong elements of the product. It checks all rows of a small product, and some rows of a large one.
    fn wrong(&self) -> Result<usize, WorkerError> {
        let size = self.work.size;
        let rows = (0..size).step_by((size as usize / 16).max(1));
        let mut wrong = 0;
        for row in rows {
            let mut found = vec![0_f32; size as usize];
            self.product.read(u64::from(row) * u64::from(size) * 4, &mut found)?;
            let expected =
                |column| (0..size).map(|at| element(1, row, at) * element(2, at, column)).sum::<f32>();
            wrong += (0..size).zip(&found).filter(|(column, found)| **found != expected(*column)).count();
        }
        Ok(wrong)
    }
}

/// Calls `act` with the node's device.
fn on<T>(node: &Node, act: impl FnOnce(&mut dyn Device) -> Result<T, GpuError>) -> Result<T, WorkerError> {
    Ok(node.with_device(act).ok_or(Error::Closed)??)
}

/// Returns the times of the first node's median round, and the number of wrong elements on all nodes.
fn run(work: Work) -> Result<(Times, usize), WorkerError> {
    let text = format!("name: overlap\nshape: {{full-mesh: {{nodes: {}}}}}\n", work.nodes);
    let plan = Plan::parse(&text, "overlap").map_err(|_| Error::Closed)?;
    let fabric = Fabric::local(&plan)?;
    let members: Vec<NodeId> = fabric.nodes().iter().map(Node::id).collect();
    let results: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..)
            .zip(fabric.nodes())
            .map(|(place, node)| {
                let members = &members;
                scope.spawn(move || {
                    let worker = Worker::new(node, place, members, work)?;
                    let mut rounds = Vec::new();
                    for _ in 0..ROUNDS {
                        rounds.push(worker.round()?);
                    }
                    rounds.sort_by(|one, other| one.overlapped.total_cmp(&other.overlapped));
                    let wrong = worker.wrong()?;
                    worker.group.barrier().wait()?;
                    Ok((rounds[ROUNDS / 2], wrong))
                })
            })
            .collect();
        running.into_iter().map(|worker| worker.join().unwrap_or(Err(WorkerError::NoEnd))).collect()
    });
    let results: Vec<(Times, usize)> = results.into_iter().collect::<Result<_, WorkerError>>()?;
    Ok((results[0].0, results.iter().map(|(_, wrong)| wrong).sum()))
}

fn device(name: &str) -> Option<DeviceChoice> {
    MemoryDevice::named(name).map(DeviceChoice::from)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, otherwise| {
        arguments.get(place).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let device = arguments.first().and_then(|name| device(name)).unwrap_or(DeviceChoice::Fake(7));
    let work = Work { device, size: number(1, 64), bands: number(2, 4), nodes: number(3, 2) };
    let (times, wrong) = run(work)?;
    let ms = |seconds: f64| format!("{:8.2} ms", seconds * 1e3);
    println!("{} by {}, {} bands, {} nodes on {device:?}", work.size, work.size, work.bands, work.nodes);
    println!("products alone       {}", ms(times.products));
    println!("all-reduces alone    {}", ms(times.sums));
    println!("one after the other  {}", ms(times.sequential));
    println!("overlapped           {}", ms(times.overlapped));
    println!("hidden               {:7.0} %", times.hidden() * 100.0);
    println!("elements wrong       {wrong:8}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_the_products_is_the_product_of_the_whole() {
        for (seed, nodes) in [(1, 2), (2, 4)] {
            let work = Work { device: DeviceChoice::Fake(seed), size: 32, bands: 4, nodes };
            let (times, wrong) = run(work).unwrap();
            assert_eq!(wrong, 0);
            assert!(times.sequential > 0.0 && times.overlapped > 0.0);
        }
    }

    #[test]
    fn saved_time_is_reported_as_a_share_of_the_possible_saving() {
        let times = Times { products: 4.0, sums: 2.0, sequential: 6.0, overlapped: 4.5 };
        assert!((times.hidden() - 0.75).abs() < 1e-9);
        assert_eq!(device("cuda:3"), Some(DeviceChoice::Cuda(3)));
        assert_eq!(device("tpu:3"), None);
    }
}
