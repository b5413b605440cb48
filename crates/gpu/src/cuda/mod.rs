//! Real devices.
//!
//! A drop gives back everything that the value has made, after the device has finished with it. The driver reports errors of
//! operations at a later call: the first call that fails shows where the error was seen, not where it occurred.

mod context;
mod ipc;
mod modules;
mod operations;
mod pool;
mod pools;
mod program;
mod shared;
mod sharing;

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{CUevent, CUfunction, CUmemcpyAttributes, CUmemcpySrcAccessOrder, CUstream};

pub use self::ipc::{EventHandle, MemoryHandle};
pub use self::pool::{PointerHandle, Pool, Reuse};
pub use self::program::{Argument, Program};
pub use crate::device::PoolStatistics;

use self::context::Context;
use self::modules::Modules;
use self::shared::SharedPools;
use crate::device::{EventId, Move, StreamId};
use crate::driver::Driver;
use crate::error::GpuError;
use crate::probe;

/// Flag of events that only order. They are faster.
const WITHOUT_TIMING: u32 = 2;
/// Flag of streams that do not wait for the default stream.
const NON_BLOCKING: u32 = 1;
/// Threads of a block, a multiple of the warp.
const BLOCK: u32 = 256;

/// CUDA device.
///
/// `Send`, not `Sync`: one thread uses it at a time, and it may move to another.
#[derive(Debug)]
pub struct Cuda {
    context: Arc<Context>,
    modules: Modules,
    capability: (i32, i32),
    multiprocessors: u32,
    streams: Vec<CUstream>,
    events: Vec<CUevent>,
    /// Length of each allocation that was not freed, by its first address.
    allocations: BTreeMap<u64, u64>,
    shared: SharedPools,
    /// First addresses of pinned pages that have another owner.
    foreign: Vec<u64>,
    batch: Batch,
}

/// Arguments of a call for several copies. The vectors are reused.
#[derive(Debug, Default)]
struct Batch {
    targets: Vec<u64>,
    sources: Vec<u64>,
    bytes: Vec<usize>,
}

// SAFETY: needed because a member moves between threads. Streams and events belong to the context, which any thread may use
// once it is current; every method makes it so first.
unsafe impl Send for Cuda {}

impl Cuda {
    /// Opens device `index` and compiles our kernels.
    ///
    /// # Errors
    /// [`GpuError::NoSuchDevice`], [`GpuError::NoCompiler`], and errors of the driver.
    pub fn open(driver: &Arc<Driver>, index: u32) -> Result<Self, GpuError> {
        use cudarc::driver::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as MULTIPROCESSORS;
        let device = driver.device(index)?;
        let capability = probe::compute_capability(driver, device)?;
        let multiprocessors = probe::attribute_of(driver, device, MULTIPROCESSORS)?.max(1) as u32;
        let context = Context::retain(driver, index)?;
        let modules = Modules::load(&context, capability)?;
        Ok(Self {
            context,
            modules,
            capability,
            multiprocessors,
            streams: Vec::new(),
            events: Vec::new(),
            allocations: BTreeMap::new(),
            shared: SharedPools::default(),
            foreign: Vec::new(),
            batch: Batch::default(),
        })
    }

    /// Returns the number of bytes that were allocated here and not freed.
    #[must_use]
    pub fn allocated_bytes(&self) -> u64 {
        self.allocations.values().sum()
    }

    /// Returns the number of free bytes of the device.
    pub fn free_bytes(&self) -> Result<u64, GpuError> {
        self.context.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: needed because the driver is C. Two numbers are written.
        unsafe { self.context.driver.functions().cuMemGetInfo_v2(&raw mut free, &raw mut total)? };
        Ok(free as u64)
    }

    /// Enables access to the memory of another device. Repeated calls succeed.
    pub fn enable_peer(&self, peer: &Self) -> Result<(), GpuError> {
        self.context.enter()?;
        // SAFETY: needed because the driver is C. The peer's context is valid as long as `peer`; the only flag is 0.
        match unsafe { self.context.driver.functions().cuCtxEnablePeerAccess(peer.context.raw, 0) } {
            Err(GpuError::Call { code: 704, .. }) => Ok(()),
            result => result,
        }
    }

    /// Makes an event that also measures time.
    pub fn timer(&mut self) -> Result<EventId, GpuError> {
        self.make_event(0)
    }

    /// Returns the time between two events of [`Self::timer`] that are done, in milliseconds.
    pub fn elapsed_ms(&self, from: EventId, to: EventId) -> Result<f32, GpuError> {
        self.context.enter()?;
        let mut elapsed = 0.0;
        let (from, to) = (self.raw_event(from)?, self.raw_event(to)?);
        // SAFETY: needed because the driver is C. Both events are valid, and one number is written.
        unsafe { self.context.driver.functions().cuEventElapsedTime(&raw mut elapsed, from, to)? };
        Ok(elapsed)
    }

    fn stream_of(&mut self, priority: i32) -> Result<StreamId, GpuError> {
        self.context.enter()?;
        let (mut stream, functions) = (ptr::null_mut(), self.context.driver.functions());
        // SAFETY: needed because the driver is C. One pointer is written.
        unsafe { functions.cuStreamCreateWithPriority(&raw mut stream, NON_BLOCKING, priority)? };
        self.streams.push(stream);
        Ok(StreamId(self.streams.len() as u32 - 1))
    }

    fn make_event(&mut self, flags: u32) -> Result<EventId, GpuError> {
        self.context.enter()?;
        let mut event = ptr::null_mut();
        // SAFETY: needed because the driver is C. One pointer is written.
        unsafe { self.context.driver.functions().cuEventCreate(&raw mut event, flags)? };
        Ok(self.keep_event(event))
    }

    fn keep_event(&mut self, event: CUevent) -> EventId {
        self.events.push(event);
        EventId(self.events.len() as u32 - 1)
    }

    fn raw_stream(&self, stream: StreamId) -> Result<CUstream, GpuError> {
        self.streams
            .get(stream.0 as usize)
            .copied()
            .ok_or_else(|| unknown("stream", stream.0, self.streams.len()))
    }

    fn raw_event(&self, event: EventId) -> Result<CUevent, GpuError> {
        self.events.get(event.0 as usize).copied().ok_or_else(|| unknown("event", event.0, self.events.len()))
    }

    /// Returns the number of blocks for `threads`, at most as many as keep every multiprocessor busy.
    fn blocks(&self, threads: u64) -> u32 {
        let wanted = threads.div_ceil(u64::from(BLOCK)).max(1);
        wanted.min(u64::from(self.multiprocessors) * 8) as u32
    }

    /// Copies several ranges by one call, which drivers have from CUDA 12.8 on.
    fn copy_batch(&mut self, stream: StreamId, moves: &[Move]) -> Result<(), GpuError> {
        let stream = self.raw_stream(stream)?;
        let Batch { targets, sources, bytes } = &mut self.batch;
        targets.clear();
        sources.clear();
        bytes.clear();
        for one in moves {
            targets.push(one.target);
            sources.push(one.source);
            bytes.push(one.bytes as usize);
        }
        // SAFETY: needed because the driver's structure is C. It is plain numbers, of which all zeros is a value.
        let mut attributes: CUmemcpyAttributes = unsafe { std::mem::zeroed() };
        attributes.srcAccessOrder = CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
        let (mut first, mut failed) = (0, 0);
        // SAFETY: needed because the driver is C. Three arrays of equal length and one set of attributes, which holds from the first copy
        // on, are read before this returns. The caller guarantees that the ranges are its own.
        unsafe {
            self.context.driver.functions().cuMemcpyBatchAsync(
                targets.as_mut_ptr(),
                sources.as_mut_ptr(),
                bytes.as_mut_ptr(),
                moves.len(),
                &raw mut attributes,
                &raw mut first,
                1,
                &raw mut failed,
                stream,
            )
        }
    }

    fn launch(
        &self,
        stream: StreamId,
        kernel: CUfunction,
        blocks: u32,
        threads: u32,
        parameters: &mut [*mut c_void],
    ) -> Result<(), GpuError> {
        self.launch_on(stream, kernel, [blocks, 1], threads, parameters)
    }

    fn launch_on(
        &self,
        stream: StreamId,
        kernel: CUfunction,
        [blocks, rows]: [u32; 2],
        threads: u32,
        parameters: &mut [*mut c_void],
    ) -> Result<(), GpuError> {
        let stream = self.raw_stream(stream)?;
        let functions = self.context.driver.functions();
        // SAFETY: needed because the driver is C. The caller's parameters are as many and as large as the kernel's, and are
        // copied before this returns. The caller guarantees the ranges that the kernel touches, as `Device` requires.
        unsafe {
            functions.cuLaunchKernel(
                kernel,
                blocks,
                rows,
                1,
                threads,
                1,
                1,
                0,
                stream,
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        }
    }
}

fn unknown(what: &'static str, number: u32, count: usize) -> GpuError {
    GpuError::System { what, cause: format!("number {number} of {count} does not exist") }
}

impl Drop for Cuda {
    /// Gives everything back. Errors are dropped: the end of the process cleans up a device that has failed.
    fn drop(&mut self) {
        if self.context.enter().is_err() {
            return;
        }
        let functions = self.context.driver.functions();
        for stream in self.streams.drain(..) {
            // SAFETY: needed because the driver is C. The stream was made here and is destroyed once.
            drop(unsafe {
                functions.cuStreamSynchronize(stream).and_then(|()| functions.cuStreamDestroy_v2(stream))
            });
        }
        for start in self.foreign.drain(..) {
            let base = ptr::with_exposed_provenance_mut::<c_void>(start as usize);
            // SAFETY: as above, for pages that were pinned here once and are still mapped.
            drop(unsafe { functions.cuMemHostUnregister(base) });
        }
        self.shared.drop_all();
        for event in self.events.drain(..) {
            // SAFETY: as above, for events.
            drop(unsafe { functions.cuEventDestroy_v2(event) });
        }
        for address in std::mem::take(&mut self.allocations).into_keys() {
            // SAFETY: as above, for memory that was never freed.
            drop(unsafe { functions.cuMemFree_v2(address) });
        }
    }
}
