//! Built without GPUs: there are no regions in the memory of a device, and whoever wants one is told why.

use std::io;

use rackloom_protocol::{Combine, Following, MemoryDone, MemoryFault, MemoryRequest, MemoryToken, RegionId};

use super::DeviceChoice;

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
}
