//! Operations of [`Device`] on a real device. Each is one or two calls of the driver.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::{BLOCK, Cuda, MemoryHandle, WITHOUT_TIMING};
use crate::device::{
    Address, Device, Element, EventId, HANDLE_BYTES, Move, PoolStatistics, Reduction, Shared, StreamId,
};
use crate::error::GpuError;
use crate::pinned::Pinned;

/// Flags of pinned memory for all contexts, with one address for both sides.
const PORTABLE_AND_MAPPED: u32 = 1 | 2;
/// Rows and columns of a product that a block computes, as in `matmul.cu`.
const TILE: u32 = 64;
/// Highest priority. The driver takes the closest one that the device has; the smallest number is the highest.
const FIRST: i32 = -100;
const LAST: i32 = 0;
/// Bytes of a range that a warp moves, as in `move.cu`.
const PIECE_BYTES: u64 = 1 << 10;

impl Device for Cuda {
    fn allocate(&mut self, bytes: u64) -> Result<Address, GpuError> {
        self.context.enter()?;
        let functions = self.context.driver.functions();
        let mut address = 0;
        // SAFETY: needed because the driver is C. One address is written.
        unsafe { functions.cuMemAlloc_v2(&raw mut address, bytes.max(1) as usize)? };
        self.allocations.insert(address, bytes);
        self.clear(Address(address), bytes)?;
        Ok(Address(address))
    }

    fn allocate_from_pool(&mut self, bytes: u64) -> Result<Address, GpuError> {
        self.context.enter()?;
        self.take_from_pool(bytes)
    }

    fn pool_statistics(&mut self) -> Result<Option<PoolStatistics>, GpuError> {
        self.shared.statistics()
    }

    fn free(&mut self, address: Address) -> Result<(), GpuError> {
        self.context.enter()?;
        if self.shared.holds(address) {
            return self.give_to_pool(address);
        }
        if self.allocations.remove(&address.0).is_none() {
            return Err(GpuError::OutOfRange { offset: address.0, bytes: 0, length: 0 });
        }
        // SAFETY: needed because the driver is C. It was allocated here and not freed before, and the driver waits for what
        // still uses it.
        unsafe { self.context.driver.functions().cuMemFree_v2(address.0) }
    }

    fn share(&mut self, address: Address) -> Result<Shared, GpuError> {
        if self.shared.holds(address) {
            self.context.enter()?;
            return self.shared.share(address);
        }
        Ok(Shared { handle: self.export_memory(address)?.0, file: None })
    }

    fn open(
        &mut self,
        handle: &[u8; HANDLE_BYTES],
        file: Option<BorrowedFd<'_>>,
    ) -> Result<Address, GpuError> {
        if let Some(file) = file {
            return self.open_from_pool(handle, file);
        }
        self.open_memory(&MemoryHandle(*handle))
    }

    fn close(&mut self, address: Address) -> Result<(), GpuError> {
        self.context.enter()?;
        if self.close_of_pool(address)? { Ok(()) } else { self.close_memory(address) }
    }

    fn pin(&mut self, bytes: usize) -> Result<Pinned, GpuError> {
        self.context.enter()?;
        let mut base = ptr::null_mut();
        // SAFETY: needed because the driver is C. One pointer is written.
        unsafe { self.context.driver.functions().cuMemHostAlloc(&raw mut base, bytes, PORTABLE_AND_MAPPED)? };
        let base =
            NonNull::new(base.cast::<u8>()).ok_or(GpuError::OutOfMemory { function: "cuMemHostAlloc" })?;
        // SAFETY: needed because the memory is the driver's and no Rust value. All of it was allocated just now.
        unsafe { ptr::write_bytes(base.as_ptr(), 0, bytes) };
        let context = Arc::clone(&self.context);
        let give_back = move |base: NonNull<u8>| {
            // SAFETY: needed to give it back. It came from `cuMemHostAlloc` of this context, and is given back once.
            let result = context
                .enter()
                .and_then(|()| unsafe { context.driver.functions().cuMemFreeHost(base.as_ptr().cast()) });
            // A device that has failed cannot be cleaned up; the end of the process does it.
            drop(result);
        };
        // SAFETY: the memory is valid until `give_back`, which keeps the context.
        Ok(unsafe { Pinned::new(base, bytes, give_back) })
    }

    unsafe fn pin_pages(&mut self, start: u64, bytes: usize) -> Result<(), GpuError> {
        self.context.enter()?;
        let base = ptr::with_exposed_provenance_mut::<c_void>(start as usize);
        let functions = self.context.driver.functions();
        // SAFETY: needed because the driver is C. By this function's contract the range is mapped until `self` is dropped, which
        // gives it back first.
        unsafe { functions.cuMemHostRegister_v2(base, bytes, PORTABLE_AND_MAPPED)? };
        self.foreign.push(start);
        let mut address = 0;
        // SAFETY: needed because the driver is C. The range was registered just now, and one address is written.
        unsafe { functions.cuMemHostGetDevicePointer_v2(&raw mut address, base, 0)? };
        if address == start {
            Ok(())
        } else {
            Err(GpuError::NotSupported { function: "pages at their own address" })
        }
    }

    fn unpin_pages(&mut self, start: u64) -> Result<(), GpuError> {
        self.context.enter()?;
        let unknown = GpuError::OutOfRange { offset: start, bytes: 0, length: 0 };
        let index = self.foreign.iter().position(|known| *known == start).ok_or(unknown)?;
        let base = ptr::with_exposed_provenance_mut::<c_void>(start as usize);
        // SAFETY: needed because the driver is C. The pages were pinned here, are still mapped, and are let go of once.
        unsafe { self.context.driver.functions().cuMemHostUnregister(base)? };
        self.foreign.swap_remove(index);
        Ok(())
    }

    fn stream(&mut self) -> Result<StreamId, GpuError> {
        self.stream_of(FIRST)
    }

    fn low_priority_stream(&mut self) -> Result<StreamId, GpuError> {
        self.stream_of(LAST)
    }

    fn event(&mut self) -> Result<EventId, GpuError> {
        self.make_event(WITHOUT_TIMING)
    }

    fn copy(
        &mut self,
        stream: StreamId,
        target: Address,
        source: Address,
        bytes: u64,
    ) -> Result<(), GpuError> {
        self.context.enter()?;
        let stream = self.raw_stream(stream)?;
        // SAFETY: needed because the driver is C. With unified addresses it finds the location of either side. The caller guarantees
        // both ranges.
        unsafe { self.context.driver.functions().cuMemcpyAsync(target.0, source.0, bytes as usize, stream) }
    }

    fn copy_ranges(&mut self, stream: StreamId, moves: &[Move]) -> Result<(), GpuError> {
        if let [only] = moves {
            return self.copy(stream, Address(only.target), Address(only.source), only.bytes);
        }
        self.context.enter()?;
        match self.copy_batch(stream, moves) {
            Err(GpuError::SymbolMissing { .. } | GpuError::NotSupported { .. }) => {}
            result => return result,
        }
        for one in moves {
            self.copy(stream, Address(one.target), Address(one.source), one.bytes)?;
        }
        Ok(())
    }

    fn write_word(
        &mut self,
        stream: StreamId,
        target: Address,
        width: u32,
        value: u64,
    ) -> Result<(), GpuError> {
        self.context.enter()?;
        let (stream, functions) = (self.raw_stream(stream)?, self.context.driver.functions());
        if self.shared.may_hold(target) {
            // Streams cannot write words of a pool. A copy of one aligned word by an engine also comes after everything before it. The
            // driver has read the source when it returns, because the source is not pinned.
            let source = (&raw const value).expose_provenance() as u64;
            // SAFETY: needed because the driver is C. `width` bytes of `value` are read before this returns (the first, on a
            // little-endian host). The caller guarantees the word.
            return unsafe { functions.cuMemcpyAsync(target.0, source, width as usize, stream) };
        }
        // SAFETY: needed because the driver is C. The caller guarantees the word; flag 0 is a barrier before it.
        unsafe {
            match width {
                4 => functions.cuStreamWriteValue32_v2(stream, target.0, value as u32, 0),
                _ => functions.cuStreamWriteValue64_v2(stream, target.0, value, 0),
            }
        }
    }

    fn wait_word(&mut self, stream: StreamId, address: Address, value: u64) -> Result<(), GpuError> {
        self.context.enter()?;
        if self.shared.may_hold(address) {
            // Streams cannot wait for words of a pool.
            return Err(GpuError::NotSupported { function: "wait_word" });
        }
        let stream = self.raw_stream(stream)?;
        // SAFETY: needed because the driver is C. The caller guarantees the word; flag 0 waits for a value that is at least as large.
        unsafe { self.context.driver.functions().cuStreamWaitValue64_v2(stream, address.0, value, 0) }
    }

    fn move_ranges(
        &mut self,
        stream: StreamId,
        records: Address,
        count: u32,
        bytes_max: u64,
    ) -> Result<(), GpuError> {
        self.context.enter()?;
        let (mut records, mut count) = (records.0, count);
        let mut warps_per_range = bytes_max.div_ceil(PIECE_BYTES).clamp(1, 32) as u32;
        let blocks = self.blocks(u64::from(count) * u64::from(warps_per_range) * 32);
        let mut parameters =
            [(&raw mut records).cast(), (&raw mut count).cast(), (&raw mut warps_per_range).cast()];
        self.launch(stream, self.modules.move_ranges, blocks, BLOCK, &mut parameters)
    }

    fn atomics(&mut self, stream: StreamId, records: Address, count: u32) -> Result<(), GpuError> {
        self.context.enter()?;
        let (mut records, mut count) = (records.0, count);
        let mut parameters = [(&raw mut records).cast(), (&raw mut count).cast()];
        self.launch(stream, self.modules.atomics, 1, 1, &mut parameters)
    }

    fn reduce(
        &mut self,
        stream: StreamId,
        (reduction, element): (Reduction, Element),
        target: Address,
        source: Address,
        count: u64,
    ) -> Result<(), GpuError> {
        self.context.enter()?;
        let kernel = self.modules.reduction(reduction, element)?;
        let (mut target, mut source, mut count) = (target.0, source.0, count);
        let blocks = self.blocks(count.div_ceil(16 / element.bytes()));
        let mut parameters = [(&raw mut target).cast(), (&raw mut source).cast(), (&raw mut count).cast()];
        self.launch(stream, kernel, blocks, BLOCK, &mut parameters)
    }

    fn multiply(
        &mut self,
        stream: StreamId,
        [left, right]: [Address; 2],
        target: Address,
        [rows, inner, columns]: [u32; 3],
    ) -> Result<(), GpuError> {
        self.context.enter()?;
        let (mut left, mut right, mut target) = (left.0, right.0, target.0);
        let (mut rows, mut inner, mut columns) = (rows, inner, columns);
        let grid = [columns.div_ceil(TILE).max(1), rows.div_ceil(TILE).max(1)];
        let mut parameters = [
            (&raw mut left).cast(),
            (&raw mut right).cast(),
            (&raw mut target).cast(),
            (&raw mut rows).cast(),
            (&raw mut inner).cast(),
            (&raw mut columns).cast(),
        ];
        self.launch_on(stream, self.modules.multiply, grid, BLOCK, &mut parameters)
    }

    fn record(&mut self, event: EventId, stream: StreamId) -> Result<(), GpuError> {
        self.context.enter()?;
        let (event, stream) = (self.raw_event(event)?, self.raw_stream(stream)?);
        // SAFETY: needed because the driver is C. Both are valid as long as `self`.
        unsafe { self.context.driver.functions().cuEventRecord(event, stream) }
    }

    fn wait(&mut self, stream: StreamId, event: EventId) -> Result<(), GpuError> {
        self.context.enter()?;
        let (event, stream) = (self.raw_event(event)?, self.raw_stream(stream)?);
        // SAFETY: as above; the only flag is 0.
        unsafe { self.context.driver.functions().cuStreamWaitEvent(stream, event, 0) }
    }

    fn is_done(&mut self, event: EventId) -> Result<bool, GpuError> {
        self.context.enter()?;
        let event = self.raw_event(event)?;
        // SAFETY: as above.
        match unsafe { self.context.driver.functions().cuEventQuery(event) } {
            Ok(()) => Ok(true),
            Err(GpuError::NotReady) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn synchronize(&mut self, stream: StreamId) -> Result<(), GpuError> {
        self.context.enter()?;
        let stream = self.raw_stream(stream)?;
        // SAFETY: as above.
        unsafe { self.context.driver.functions().cuStreamSynchronize(stream) }
    }
}
