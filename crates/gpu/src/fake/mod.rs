//! Device of plain memory that gives the guarantees of a real device and no more.
//!
//! Operations are carried out some time after they were enqueued. The seed decides the order of streams, the order of the ranges of one
//! launch, and the split of a copy in two parts. Sources are read when an operation is carried out and not before. So
//! memory that is reused too early shows as wrong bytes, and an answer before completion shows as old
//! ones. The plan can make the device fail for good after some operations, as a real one does after a bad access.
//!
//! Shared memory is an anonymous file, which another fake device maps. Atomics of the host change its words.
//!
//! The device has no speed and no kernels: its operations are implemented again in Rust.

mod arithmetic;
mod block;
mod pool;
mod store;

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use self::store::Store;
use crate::device::{
    Address, Atomic, Device, Element, EventId, HANDLE_BYTES, Move, PoolStatistics, Reduction, Shared,
    StreamId,
};
use crate::error::GpuError;
use crate::pinned::Pinned;

/// Behaviour of a fake device.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FakePlan {
    /// Seed of every delay and every order.
    pub seed: u64,
    /// Most operations that are carried out for each query of an event.
    pub completions_per_query_max: u32,
    /// Number of operations after which the device fails, or `None` if it never does.
    pub fails_after: Option<u64>,
}

impl FakePlan {
    /// Makes the plan of a device that is late and in odd order, and never fails.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, completions_per_query_max: 3, fails_after: None }
    }
}

/// Fake device.
///
/// `Send`, not `Sync`.
#[derive(Debug)]
pub struct Fake {
    store: Store,
    random: Random,
    completions_per_query_max: u32,
    fails_after: Option<u64>,
    streams: Vec<VecDeque<Operation>>,
    /// For each event, the number of its records and the last record that was reached.
    events: Vec<(u64, u64)>,
    carried_out: u64,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Copy { target: u64, source: u64, bytes: u64 },
    Word { target: u64, width: u32, value: u64 },
    Moves { records: u64, count: u32 },
    Atomics { records: u64, count: u32 },
    Reduce { work: (Reduction, Element), target: u64, source: u64, count: u64 },
    Multiply { operands: [u64; 2], target: u64, sizes: [u32; 3] },
    Record { event: EventId, mark: u64 },
    Wait { event: EventId, mark: u64 },
    WaitWord { address: u64, value: u64 },
}

impl Fake {
    /// Makes a device without memory, streams and events.
    #[must_use]
    pub fn new(plan: FakePlan) -> Self {
        Self {
            store: Store::new(),
            random: Random(plan.seed),
            completions_per_query_max: plan.completions_per_query_max.max(1),
            fails_after: plan.fails_after,
            streams: Vec::new(),
            events: Vec::new(),
            carried_out: 0,
        }
    }

    /// Reads memory without waiting for any stream, for tests.
    pub fn peek(&self, address: Address, out: &mut [u8]) -> Result<(), GpuError> {
        self.store.read(address.0, out)
    }

    /// Returns the number of operations that were carried out.
    #[must_use]
    pub const fn carried_out(&self) -> u64 {
        self.carried_out
    }

    fn put(&mut self, stream: StreamId, operation: Operation) -> Result<(), GpuError> {
        self.check_health()?;
        self.stream_of(stream)?.push_back(operation);
        Ok(())
    }

    fn stream_of(&mut self, stream: StreamId) -> Result<&mut VecDeque<Operation>, GpuError> {
        let unknown = GpuError::System { what: "stream", cause: format!("{stream:?} does not exist") };
        self.streams.get_mut(stream.0 as usize).ok_or(unknown)
    }

    fn event_of(&mut self, event: EventId) -> Result<&mut (u64, u64), GpuError> {
        let unknown = GpuError::System { what: "event", cause: format!("{event:?} does not exist") };
        self.events.get_mut(event.0 as usize).ok_or(unknown)
    }

    fn check_health(&self) -> Result<(), GpuError> {
        match self.fails_after {
            Some(limit) if self.carried_out >= limit => Err(GpuError::Planned),
            _ => Ok(()),
        }
    }

    /// Carries out one operation of any stream that has one and need not wait. Returns false if there is none.
    fn step(&mut self) -> Result<bool, GpuError> {
        let ready: Vec<usize> = (0..self.streams.len()).filter(|stream| self.may_go_on(*stream)).collect();
        if ready.is_empty() {
            return Ok(false);
        }
        let stream = ready[self.random.below(ready.len() as u64) as usize];
        self.step_on(stream)
    }

    fn may_go_on(&self, stream: usize) -> bool {
        match self.streams[stream].front() {
            Some(Operation::Wait { event, mark }) => self.events[event.0 as usize].1 >= *mark,
            Some(Operation::WaitWord { address, value }) => {
                // A word that cannot be read is an error of the step.
                self.store.word(*address).map_or(true, |word| word.wrapping_sub(*value).cast_signed() >= 0)
            }
            first => first.is_some(),
        }
    }

    /// Returns true if a stream waits for a word, which others may write.
    fn waits_for_word(&self) -> bool {
        self.streams.iter().any(|stream| matches!(stream.front(), Some(Operation::WaitWord { .. })))
    }

    fn step_on(&mut self, stream: usize) -> Result<bool, GpuError> {
        self.check_health()?;
        let Some(operation) = self.streams[stream].pop_front() else { return Ok(false) };
        self.carried_out += 1;
        match operation {
            Operation::Copy { bytes: 0, .. } => {}
            Operation::Copy { target, source, bytes } => {
                // The last part first, and perhaps the rest at another step. An aligned word is always copied whole.
                let is_word = bytes <= 8 && (target | source).is_multiple_of(bytes);
                let first = if is_word { 0 } else { self.random.below(bytes) };
                self.store.copy(target + first, source + first, bytes - first)?;
                if first > 0 {
                    self.streams[stream].push_front(Operation::Copy { target, source, bytes: first });
                }
            }
            Operation::Word { target, width, value } => {
                self.store.write(target, &value.to_le_bytes()[..width as usize])?;
            }
            Operation::Moves { records, count } => self.moves(records, count)?,
            Operation::Atomics { records, count } => self.atomics_now(records, count)?,
            Operation::Reduce { work, target, source, count } => {
                arithmetic::reduce(&mut self.store, work, target, source, count)?;
            }
            Operation::Multiply { operands, target, sizes } => {
                arithmetic::multiply(&mut self.store, operands, target, sizes)?;
            }
            Operation::Record { event, mark } => self.event_of(event)?.1 = mark,
            Operation::Wait { .. } => {}
            Operation::WaitWord { address, .. } => drop(self.store.word(address)?),
        }
        Ok(true)
    }

    fn moves(&mut self, records: u64, count: u32) -> Result<(), GpuError> {
        let mut order: Vec<u64> = (0..u64::from(count)).collect();
        for index in (1..order.len()).rev() {
            order.swap(index, self.random.below(index as u64 + 1) as usize);
        }
        for index in order {
            let at = records + index * size_of::<Move>() as u64;
            let field = |offset| self.store.word(at + offset);
            let (target, source, bytes) = (field(0)?, field(8)?, field(16)?);
            self.store.copy(target, source, bytes)?;
        }
        Ok(())
    }

    fn atomics_now(&mut self, records: u64, count: u32) -> Result<(), GpuError> {
        for index in 0..u64::from(count) {
            let at = records + index * size_of::<Atomic>() as u64;
            let field = |offset| self.store.word(at + offset);
            let (target, result, operand, compare) = (field(0)?, field(8)?, field(16)?, field(24)?);
            // One word holds two numbers of 4 bytes.
            let (kind, width) = (field(32)? as u32, (field(32)? >> 32) as u32);
            let old = self
                .store
                .change(target, width, |old| arithmetic::atomic(kind, width, old, operand, compare))?;
            self.store.write(result, &old.to_le_bytes())?;
        }
        Ok(())
    }

    fn bound(&self, address: u64, bytes: u64) -> Result<(), GpuError> {
        self.store.check(address, bytes)
    }
}

impl Device for Fake {
    fn allocate(&mut self, bytes: u64) -> Result<Address, GpuError> {
        self.check_health()?;
        self.store.allocate(bytes).map(Address)
    }

    fn allocate_from_pool(&mut self, bytes: u64) -> Result<Address, GpuError> {
        self.check_health()?;
        self.store.allocate_from_pool(bytes).map(Address)
    }

    fn pool_statistics(&mut self) -> Result<Option<PoolStatistics>, GpuError> {
        Ok(self.store.pool_statistics())
    }

    fn free(&mut self, address: Address) -> Result<(), GpuError> {
        while self.step()? {}
        self.store.free(address.0)
    }

    fn share(&mut self, address: Address) -> Result<Shared, GpuError> {
        self.check_health()?;
        self.store.share(address.0)
    }

    fn open(
        &mut self,
        handle: &[u8; HANDLE_BYTES],
        file: Option<BorrowedFd<'_>>,
    ) -> Result<Address, GpuError> {
        self.check_health()?;
        self.store.open(handle, file).map(Address)
    }

    fn close(&mut self, address: Address) -> Result<(), GpuError> {
        while self.step()? {}
        self.store.close(address.0)
    }

    fn pin(&mut self, bytes: usize) -> Result<Pinned, GpuError> {
        self.store.pin(bytes)
    }

    unsafe fn pin_pages(&mut self, start: u64, bytes: usize) -> Result<(), GpuError> {
        self.check_health()?;
        self.store.pin_pages(start, bytes);
        Ok(())
    }

    fn unpin_pages(&mut self, start: u64) -> Result<(), GpuError> {
        while self.step()? {}
        self.store.unpin_pages(start)
    }

    fn stream(&mut self) -> Result<StreamId, GpuError> {
        self.streams.push(VecDeque::new());
        Ok(StreamId(self.streams.len() as u32 - 1))
    }

    fn event(&mut self) -> Result<EventId, GpuError> {
        self.events.push((0, 0));
        Ok(EventId(self.events.len() as u32 - 1))
    }

    fn copy(
        &mut self,
        stream: StreamId,
        target: Address,
        source: Address,
        bytes: u64,
    ) -> Result<(), GpuError> {
        self.bound(target.0, bytes)?;
        self.bound(source.0, bytes)?;
        self.put(stream, Operation::Copy { target: target.0, source: source.0, bytes })
    }

    fn copy_ranges(&mut self, stream: StreamId, moves: &[Move]) -> Result<(), GpuError> {
        let mut moves = moves.to_vec();
        for index in (1..moves.len()).rev() {
            moves.swap(index, self.random.below(index as u64 + 1) as usize);
        }
        let mut each = moves.iter();
        each.try_for_each(|one| self.copy(stream, Address(one.target), Address(one.source), one.bytes))
    }

    fn write_word(
        &mut self,
        stream: StreamId,
        target: Address,
        width: u32,
        value: u64,
    ) -> Result<(), GpuError> {
        if !matches!(width, 4 | 8) || !target.0.is_multiple_of(u64::from(width)) {
            return Err(GpuError::NotSupported { function: "write_word" });
        }
        self.bound(target.0, width.into())?;
        self.put(stream, Operation::Word { target: target.0, width, value })
    }

    fn wait_word(&mut self, stream: StreamId, address: Address, value: u64) -> Result<(), GpuError> {
        if !address.0.is_multiple_of(8) {
            return Err(GpuError::NotSupported { function: "wait_word" });
        }
        self.bound(address.0, 8)?;
        self.put(stream, Operation::WaitWord { address: address.0, value })
    }

    fn move_ranges(
        &mut self,
        stream: StreamId,
        records: Address,
        count: u32,
        _bytes_max: u64,
    ) -> Result<(), GpuError> {
        self.put(stream, Operation::Moves { records: records.0, count })
    }

    fn atomics(&mut self, stream: StreamId, records: Address, count: u32) -> Result<(), GpuError> {
        self.put(stream, Operation::Atomics { records: records.0, count })
    }

    fn reduce(
        &mut self,
        stream: StreamId,
        work: (Reduction, Element),
        target: Address,
        source: Address,
        count: u64,
    ) -> Result<(), GpuError> {
        self.put(stream, Operation::Reduce { work, target: target.0, source: source.0, count })
    }

    fn multiply(
        &mut self,
        stream: StreamId,
        operands: [Address; 2],
        target: Address,
        sizes: [u32; 3],
    ) -> Result<(), GpuError> {
        let [rows, inner, columns] = sizes.map(u64::from);
        self.bound(operands[0].0, rows * inner * 4)?;
        self.bound(operands[1].0, inner * columns * 4)?;
        self.bound(target.0, rows * columns * 4)?;
        let operands = operands.map(|operand| operand.0);
        self.put(stream, Operation::Multiply { operands, target: target.0, sizes })
    }

    fn record(&mut self, event: EventId, stream: StreamId) -> Result<(), GpuError> {
        let recorded = self.event_of(event)?;
        recorded.0 += 1;
        let mark = recorded.0;
        self.put(stream, Operation::Record { event, mark })
    }

    fn wait(&mut self, stream: StreamId, event: EventId) -> Result<(), GpuError> {
        let mark = self.event_of(event)?.0;
        self.put(stream, Operation::Wait { event, mark })
    }

    fn is_done(&mut self, event: EventId) -> Result<bool, GpuError> {
        self.check_health()?;
        for _ in 0..self.random.below(u64::from(self.completions_per_query_max) + 1) {
            self.step()?;
        }
        let (recorded, reached) = *self.event_of(event)?;
        Ok(recorded == reached)
    }

    fn synchronize(&mut self, stream: StreamId) -> Result<(), GpuError> {
        self.check_health()?;
        while !self.stream_of(stream)?.is_empty() {
            if self.step()? {
                continue;
            }
            if self.waits_for_word() {
                // Another device writes it, as the processor sees it.
                std::thread::yield_now();
            } else {
                let cause = format!("{stream:?} waits for an event that nothing will reach");
                return Err(GpuError::System { what: "the fake device", cause });
            }
        }
        Ok(())
    }
}

/// Small generator (splitmix64) of numbers from a seed.
#[derive(Clone, Copy, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number less than `end`, which is not 0.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
