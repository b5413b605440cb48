//! Built without GPUs: there are no regions in the memory of a device, and whoever wants one is told why.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rackloom_protocol::{
    Atomic, Combine, Following, MemoryDone, MemoryFault, MemoryRequest, MemoryToken, RegionId,
};

use super::{DeviceChoice, DeviceKind, TiersInUse};

/// As with GPUs: bytes of a handle.
pub(crate) const HANDLE_BYTES: usize = 64;

/// As with GPUs; never made.
#[allow(dead_code, reason = "the same surface as with GPUs")]
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) kind: DeviceKind,
    pub(crate) handle: [u8; HANDLE_BYTES],
    pub(crate) file: Option<OwnedFd>,
}

/// Nothing of this kind exists.
#[derive(Debug)]
pub(crate) enum DeviceRegions {}

#[allow(clippy::unused_self, reason = "the same surface as with GPUs")]
impl DeviceRegions {
    pub(crate) fn open(_choice: DeviceChoice) -> io::Result<Self> {
        let what = "this program was built without GPUs; hint: build it with the feature `gpu`, or leave `device` out";
        Err(io::Error::new(io::ErrorKind::Unsupported, what))
    }

    #[allow(unsafe_code, reason = "the same surface as with GPUs")]
    pub(crate) unsafe fn take_frames_in_place(&mut self, _start: usize, _bytes: usize) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn allocate(&mut self, _region: RegionId, _length: u64) -> io::Result<()> {
        match *self {}
    }

    #[allow(unsafe_code, reason = "the same surface as with GPUs")]
    pub(crate) unsafe fn borrow(&mut self, _region: RegionId, _address: u64, _length: u64) {
        match *self {}
    }

    pub(crate) fn address(&self, _region: RegionId) -> Option<u64> {
        match *self {}
    }

    pub(crate) fn finish(&mut self) -> Result<(), MemoryFault> {
        match *self {}
    }

    pub(crate) fn free(&mut self, _region: RegionId) -> Option<u64> {
        match *self {}
    }

    pub(crate) fn length(&self, _region: RegionId) -> Option<u64> {
        match *self {}
    }

    pub(crate) fn regions(&self) -> Vec<RegionId> {
        match *self {}
    }

    pub(crate) fn execute(&mut self, _request: &MemoryRequest<'_>, _frame: &[u8]) -> Option<MemoryFault> {
        match *self {}
    }

    pub(crate) fn poll_done(&mut self) -> Option<(MemoryToken, MemoryDone<'_>)> {
        match *self {}
    }

    pub(crate) fn is_busy(&self) -> bool {
        match *self {}
    }

    pub(crate) fn read(
        &mut self,
        _region: RegionId,
        _offset: u64,
        _out: &mut [u8],
    ) -> Result<(), MemoryFault> {
        match *self {}
    }

    pub(crate) fn combine(&mut self, _combine: &Combine) -> Result<bool, MemoryFault> {
        match *self {}
    }

    pub(crate) fn read_in_row(
        &mut self,
        _region: RegionId,
        _offset: u64,
        _out: &mut [u8],
        _following: Following,
    ) -> Result<(), MemoryFault> {
        match *self {}
    }

    pub(crate) fn write(
        &mut self,
        _region: RegionId,
        _offset: u64,
        _bytes: &[u8],
    ) -> Result<(), MemoryFault> {
        match *self {}
    }

    pub(crate) fn allocate_apart(&mut self, _region: RegionId, _length: u64) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn is_exported(&self, _region: RegionId) -> bool {
        match *self {}
    }

    pub(crate) fn set_exported(&mut self, _region: RegionId, _is_exported: bool) {
        match *self {}
    }

    pub(crate) fn offer(&mut self, _region: RegionId) -> io::Result<Offer> {
        match *self {}
    }

    pub(crate) fn open_there(
        &mut self,
        _kind: DeviceKind,
        _handle: &[u8; HANDLE_BYTES],
        _file: Option<BorrowedFd<'_>>,
    ) -> io::Result<u64> {
        match *self {}
    }

    pub(crate) fn close_there(&mut self, _address: u64) {
        match *self {}
    }

    pub(crate) fn write_there(&mut self, _address: u64, _bytes: &[u8]) -> Result<(), MemoryFault> {
        match *self {}
    }

    pub(crate) fn read_there(&mut self, _address: u64, _out: &mut [u8]) -> Result<(), MemoryFault> {
        match *self {}
    }

    pub(crate) fn change_there(&mut self, _address: u64, _atomic: &Atomic) -> Result<u64, MemoryFault> {
        match *self {}
    }

    pub(crate) fn copy_there(
        &mut self,
        _address: u64,
        _own: (RegionId, u64),
        _length: usize,
    ) -> Result<(), MemoryFault> {
        match *self {}
    }

    pub(crate) fn copy_here(
        &mut self,
        _own: (RegionId, u64),
        _address: u64,
        _length: usize,
    ) -> Result<(), MemoryFault> {
        match *self {}
    }

    pub(crate) fn tiers(&self) -> TiersInUse {
        match *self {}
    }
}
