//! Events that order streams of the devices of two nodes, and the use of a peer's region by kernels.
//!
//! An event is a word of 8 bytes in a region on a device. A stream *records* a number in it, and a stream *waits* until the number is reached. Both are
//! operations of the stream, so no processor waits: a producer records that its data is ready, and a consumer of another process, which has opened
//! the region, records that it has finished. On a GPU these are operations on memory of the driver; on a fake device, a word in shared memory.
//!
//! Kernels and streams access memory without an announcement of each access. So an event of a peer's region is one announcement that lasts as long
//! as the value: a pool does not hand the memory out again meanwhile ([`crate::pool::ReusePolicies`]).

use rackloom_gpu::device::{Address, StreamId};
use rackloom_protocol::OperationError;

use super::error::{Error, Invalid};
use crate::fabric::local::peer_region::PeerRegion;
use crate::fabric::memory::region::{OUTSIDE, Region};
use crate::memory::{SharedDevice, locked};
use crate::sharing::Inside;

/// Event that streams of the devices of two nodes record and wait for, in a word of a region on a device. The number only grows: each record is
/// larger than the one before.
///
/// Do not wait for the stream within [`crate::fabric::Node::with_device`]: the node answers no peer meanwhile, so peers take it for lost. Record an
/// event of the device and query it. A GPU frees memory only when all its streams are idle, so free none while a stream waits.
///
/// If the other node is lost, nothing records the number that a stream waits for. Record it on another stream then, to end the wait.
///
/// `Send` and `Sync`. Any thread may call any method.
#[derive(Debug)]
pub struct StreamEvent<'r> {
    device: &'r SharedDevice,
    address: u64,
    peer: Option<(&'r PeerRegion, u64)>,
    _inside: Option<Inside<'r>>,
}

/// Use of a peer's region on a device by kernels and streams of this node.
///
/// The value announces the use to the owner as one access. Drop it after the streams that use the memory were synchronised: the owner's pool may then
/// hand the memory out again, and the device may close it.
///
/// `Send` and `Sync`: plain data, and an announcement.
#[derive(Debug)]
pub struct KernelAccess<'r> {
    address: u64,
    _inside: Inside<'r>,
}

impl Region {
    /// Returns the event in the word at `offset`, a multiple of 8, of this region on a device.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the region is on the host, or the word is not within it.
    pub fn stream_event(&self, offset: u64) -> Result<StreamEvent<'_>, Error> {
        let memory = self.inner.bytes.device().ok_or(Error::Invalid(Invalid::NotOnDevice))?;
        self.inner.bytes.check(offset, 8).map_err(|_| OUTSIDE)?;
        let start = memory.address().filter(|_| offset.is_multiple_of(8)).ok_or(OUTSIDE)?;
        Ok(StreamEvent { device: memory.memory.shared(), address: start + offset, peer: None, _inside: None })
    }
}

impl PeerRegion {
    /// Returns the event in the word at `offset`, a multiple of 8, of this region on a device.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the region is on the host. [`Error::Refused`] with the reason: out of bounds, misaligned, no permission to read, revoked.
    /// [`Error::PeerLost`] if the owner has ended.
    pub fn stream_event(&self, offset: u64) -> Result<StreamEvent<'_>, Error> {
        let imported = self.imported();
        let (device, start) = imported.on_device().ok_or(Error::Invalid(Invalid::NotOnDevice))?;
        imported.allows_word(offset, false).map_err(|error| self.error(error))?;
        let inside = imported.enter().map_err(|error| self.error(error))?;
        let peer = Some((self, offset));
        Ok(StreamEvent { device, address: start + offset, peer, _inside: Some(inside) })
    }

    /// Announces that kernels or streams of this node use the region, until the value is dropped. They must observe the access rights and the length,
    /// which nothing checks.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the region is on the host. [`Error::Refused`] if it is revoked. [`Error::PeerLost`] if the owner has ended.
    pub fn kernel_access(&self) -> Result<KernelAccess<'_>, Error> {
        let (_, address) = self.imported().on_device().ok_or(Error::Invalid(Invalid::NotOnDevice))?;
        let inside = self.imported().enter().map_err(|error| self.error(error))?;
        Ok(KernelAccess { address, _inside: inside })
    }
}

impl KernelAccess<'_> {
    /// Returns the address of the region's first byte on this node's device, for kernels and operations on streams.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }
}

impl StreamEvent<'_> {
    /// Enqueues a record of `value` on a stream of this node's device: everything before it on the stream is visible before the number is.
    ///
    /// # Errors
    /// [`Error::Refused`] without permission to write; [`Error::Failed`] if the device refuses.
    pub fn record(&self, stream: StreamId, value: u64) -> Result<(), Error> {
        if let Some((region, offset)) = self.peer {
            region.imported().allows_word(offset, true).map_err(|error| region.error(error))?;
        }
        locked(self.device).device().write_word(stream, Address(self.address), 8, value).map_err(failed)
    }

    /// Makes later operations on a stream of this node's device wait until the number is at least `value`.
    ///
    /// # Errors
    /// [`Error::Failed`] if the device refuses: a GPU does not wait for memory of its driver's pools.
    pub fn wait(&self, stream: StreamId, value: u64) -> Result<(), Error> {
        locked(self.device).device().wait_word(stream, Address(self.address), value).map_err(failed)
    }
}

fn failed(error: rackloom_gpu::GpuError) -> Error {
    tracing::debug!("event of a stream: {error}");
    Error::Failed(OperationError::MemoryFailed)
}
