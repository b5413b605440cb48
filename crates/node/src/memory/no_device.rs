//! Substitute for builds without GPUs: no region can be in the memory of a device, and requests for one return an error with the reason.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rackloom_protocol::{
    Atomic, Combine, Following, MemoryDone, MemoryFault, MemoryRequest, MemoryToken, RegionId,
};

use super::{DeviceChoice, DeviceKind, PoolUsage, TiersInUse};

/// Length of a handle in bytes, as with GPUs.
pub(crate) const HANDLE_BYTES: usize = 64;

/// Same type as with GPUs. It is never created.
#[allow(dead_code, reason = "the same surface as with GPUs")]
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) kind: DeviceKind,
    pub(crate) handle: [u8; HANDLE_BYTES],
    pub(crate) file: Option<OwnedFd>,
}

/// Uninhabited: there are no regions on devices.
#[derive(Debug)]
pub(crate) enum DeviceRegions {}

/// Defines the methods that exist with GPUs, on the uninhabited type.
macro_rules! never {
    (
        looking: $(fn $look:ident($($seen:ty),*) $(-> $result:ty)?;)*
        acting: $(fn $act:ident($($taken:ty),*) $(-> $done:ty)?;)*
    ) => {
        impl DeviceRegions {
            $(pub(crate) fn $look(&self, $(_: $seen),*) $(-> $result)? { match *self {} })*
            $(
                #[allow(clippy::needless_pass_by_ref_mut, reason = "the same surface as with GPUs")]
                pub(crate) fn $act(&mut self, $(_: $taken),*) $(-> $done)? { match *self {} }
            )*
        }
    };
}

never! {
    looking:
    fn address(RegionId) -> Option<u64>;
    fn length(RegionId) -> Option<u64>;
    fn regions() -> Vec<RegionId>;
    fn is_busy() -> bool;
    fn is_exported(RegionId) -> bool;
    fn tiers() -> TiersInUse;
    acting:
    fn allocate(RegionId, u64) -> io::Result<()>;
    fn allocate_apart(RegionId, u64, bool) -> io::Result<()>;
    fn pool() -> Option<PoolUsage>;
    fn free(RegionId) -> Option<Result<u64, MemoryFault>>;
    fn finish() -> Result<(), MemoryFault>;
    fn execute(&MemoryRequest<'_>, &[u8]) -> Option<MemoryFault>;
    fn poll_done() -> Option<(MemoryToken, MemoryDone<'_>)>;
    fn read(RegionId, u64, &mut [u8]) -> Result<(), MemoryFault>;
    fn read_ahead(RegionId, u64, &mut [u8], Following) -> Result<(), MemoryFault>;
    fn write(RegionId, u64, &[u8]) -> Result<(), MemoryFault>;
    fn combine(&Combine) -> Result<bool, MemoryFault>;
    fn set_exported(RegionId, bool);
    fn offer(RegionId) -> io::Result<Offer>;
    fn open_there(DeviceKind, &[u8; HANDLE_BYTES], Option<BorrowedFd<'_>>) -> io::Result<u64>;
    fn close_there(u64);
    fn write_there(u64, &[u8]) -> Result<(), MemoryFault>;
    fn read_there(u64, &mut [u8]) -> Result<(), MemoryFault>;
    fn change_there(u64, &Atomic) -> Result<u64, MemoryFault>;
    fn copy_there(u64, RegionId, u64, usize) -> Result<(), MemoryFault>;
    fn copy_here(RegionId, u64, u64, usize) -> Result<(), MemoryFault>;
}

impl DeviceRegions {
    pub(crate) fn open(_choice: DeviceChoice) -> io::Result<Self> {
        let what = "this program was built without GPUs; hint: build it with the feature `gpu`, or leave `device` out";
        Err(io::Error::new(io::ErrorKind::Unsupported, what))
    }

    #[allow(unsafe_code, reason = "the same surface as with GPUs")]
    pub(crate) unsafe fn take_frames_in_place(&mut self, _start: usize, _bytes: usize) -> io::Result<()> {
        match *self {}
    }

    #[allow(unsafe_code, reason = "the same surface as with GPUs")]
    pub(crate) unsafe fn borrow(&mut self, _region: RegionId, _address: u64, _length: u64) {
        match *self {}
    }
}

/// Uninhabited: there is no device to map pages.
#[derive(Debug)]
pub(crate) enum Mapper {}

impl Mapper {
    pub(crate) fn open(choice: DeviceChoice) -> io::Result<Self> {
        DeviceRegions::open(choice).map(|regions| match regions {})
    }

    #[allow(unsafe_code, reason = "the same surface as with GPUs")]
    pub(crate) unsafe fn map(&mut self, _start: usize, _bytes: usize) -> io::Result<u64> {
        match *self {}
    }

    #[allow(clippy::needless_pass_by_ref_mut, reason = "the same surface as with GPUs")]
    pub(crate) fn unmap(&mut self, _start: usize) -> io::Result<()> {
        match *self {}
    }
}
