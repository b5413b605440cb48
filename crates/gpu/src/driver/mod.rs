//! NVIDIA driver, opened at run time. A missing, too old or inaccessible driver is a typed error.
//!
//! The library is opened once per [`Driver::open`] and stays open as long as it is referenced. Opening it starts nothing on
//! any device. Nothing is linked, so a program with this code runs on a machine without CUDA.

mod code;
mod functions;

use std::error::Error;
use std::fs::File;
use std::sync::Arc;

use cudarc::driver::sys::CUdevice;

use self::functions::Functions;
use crate::error::GpuError;

type Library = libloading::Library;

/// File names of the driver's library.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];
/// Oldest supported driver version. It has stream-ordered pools and the other functions of the table.
pub(crate) const CUDA_NEEDED: i32 = 12_000;

/// Opened NVIDIA driver.
///
/// `Send` and `Sync`.
#[derive(Debug)]
pub struct Driver {
    functions: Functions,
    version: i32,
    count: u32,
    /// Dropped last, because the functions are in it.
    _library: Option<Library>,
}

impl Driver {
    /// Opens the driver and counts its devices.
    ///
    /// # Errors
    /// [`GpuError::NoDriver`], [`GpuError::DriverTooOld`], [`GpuError::NoPermission`], [`GpuError::NoDevice`],
    /// [`GpuError::SymbolMissing`].
    pub fn open() -> Result<Arc<Self>, GpuError> {
        Self::open_named(&NAMES)
    }

    /// Opens a library of another name, for tests.
    pub(crate) fn open_named(names: &[&str]) -> Result<Arc<Self>, GpuError> {
        let library = load(names).map_err(|reason| GpuError::NoDriver { reason })?;
        // SAFETY: needed to call the driver at all. The library is the driver by its name, and `_library` keeps it open
        // for as long as the table exists.
        let functions = unsafe { Functions::find(&library) };
        Self::start(functions, Some(library)).map_err(because_closed)
    }

    fn start(functions: Functions, library: Option<Library>) -> Result<Arc<Self>, GpuError> {
        let (mut version, mut count) = (0, 0);
        // SAFETY: needed because the driver is C. This may be called before initialisation, and writes one number.
        unsafe { functions.cuDriverGetVersion(&raw mut version)? };
        if version < CUDA_NEEDED {
            return Err(GpuError::DriverTooOld { found: version, needed: CUDA_NEEDED });
        }
        // SAFETY: needed because the driver is C. The only flag is 0; any number of calls is allowed.
        unsafe { functions.cuInit(0)? };
        // SAFETY: needed because the driver is C. It is initialised, and writes one number.
        unsafe { functions.cuDeviceGetCount(&raw mut count)? };
        let count = u32::try_from(count).unwrap_or(0);
        if count == 0 {
            return Err(GpuError::NoDevice);
        }
        Ok(Arc::new(Self { functions, version, count, _library: library }))
    }

    pub(crate) const fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Returns its version in the driver's encoding: 12080 is 12.8.
    #[must_use]
    pub const fn version(&self) -> i32 {
        self.version
    }

    /// Returns the number of devices.
    #[must_use]
    pub const fn device_count(&self) -> u32 {
        self.count
    }

    /// Returns the names of the functions in our table that this driver lacks.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        self.functions.missing()
    }

    /// Returns the driver's handle of a device.
    pub(crate) fn device(&self, index: u32) -> Result<CUdevice, GpuError> {
        if index >= self.count {
            return Err(GpuError::NoSuchDevice { index, count: self.count });
        }
        let mut device = 0;
        // SAFETY: needed because the driver is C. The index exists, and one number is written.
        unsafe { self.functions.cuDeviceGet(&raw mut device, index as i32)? };
        Ok(device)
    }
}

/// Opens the first library of these names. Returns the loader's messages if none opens.
pub(crate) fn load(names: &[&str]) -> Result<Library, String> {
    let mut reasons = Vec::new();
    for name in names {
        // SAFETY: needed to open a library by name. Its initialisers are the vendor's and run for every program that
        // uses it.
        match unsafe { Library::new(*name) } {
            Ok(library) => return Ok(library),
            Err(error) => {
                // The loader's message names the file.
                let cause = error.source().map(ToString::to_string);
                reasons.push(cause.unwrap_or_else(|| format!("{name}: {error}")));
            }
        }
    }
    Err(reasons.join("; "))
}

/// Distinguishes closed device files from absent devices. In both cases the driver reports no device.
fn because_closed(error: GpuError) -> GpuError {
    let is_doubtful = matches!(error, GpuError::NoDevice | GpuError::Call { function: "cuInit", .. });
    let closed = ["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"].into_iter().find_map(|path| {
        let refused = File::options().read(true).write(true).open(path).err()?;
        (refused.kind() == std::io::ErrorKind::PermissionDenied).then(|| format!("{path}: {refused}"))
    });
    match closed {
        Some(what) if is_doubtful => GpuError::NoPermission { what },
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_driver_is_an_error_and_no_panic() {
        let error = Driver::open_named(&["librackloom-does-not-exist.so"]).unwrap_err();
        let GpuError::NoDriver { reason } = &error else { panic!("{error}") };
        assert!(reason.contains("librackloom-does-not-exist.so"), "{reason}");
    }

    #[test]
    fn a_library_that_is_not_the_driver_is_a_missing_symbol() {
        let error = Driver::open_named(&["libc.so.6"]).unwrap_err();
        assert!(matches!(error, GpuError::SymbolMissing { symbol: "cuDriverGetVersion", .. }), "{error}");
        assert!(error.to_string().contains("hint: "));
    }

    unsafe extern "C" fn version_11_4(version: *mut i32) -> i32 {
        // SAFETY: the caller passes a pointer to one number.
        unsafe { *version = 11_040 };
        0
    }

    unsafe extern "C" fn version_12_8(version: *mut i32) -> i32 {
        // SAFETY: as above.
        unsafe { *version = 12_080 };
        0
    }

    unsafe extern "C" fn starts(_flags: u32) -> i32 {
        0
    }

    unsafe extern "C" fn may_not(_flags: u32) -> i32 {
        304
    }

    unsafe extern "C" fn sees_no_device(_flags: u32) -> i32 {
        100
    }

    unsafe extern "C" fn two(count: *mut i32) -> i32 {
        // SAFETY: as above.
        unsafe { *count = 2 };
        0
    }

    unsafe extern "C" fn none(count: *mut i32) -> i32 {
        // SAFETY: as above.
        unsafe { *count = 0 };
        0
    }

    /// Returns a driver with the few functions that a start needs.
    fn driver() -> Functions {
        Functions {
            cuDriverGetVersion: Some(version_12_8),
            cuInit: Some(starts),
            cuDeviceGetCount: Some(two),
            ..Functions::default()
        }
    }

    #[test]
    fn every_unusable_driver_has_an_error_with_a_hint() {
        let started = Driver::start(driver(), None).unwrap();
        assert_eq!((started.version(), started.device_count()), (12_080, 2));
        let missing = started.device(2).unwrap_err();
        assert_eq!(missing, GpuError::NoSuchDevice { index: 2, count: 2 });
        // The device exists, but the function that returns its handle is missing.
        let missing_device = started.device(1).unwrap_err();
        let old = Functions { cuDriverGetVersion: Some(version_11_4), ..driver() };
        let old = Driver::start(old, None).unwrap_err();
        assert_eq!(old, GpuError::DriverTooOld { found: 11_040, needed: CUDA_NEEDED });
        assert!(old.to_string().contains("CUDA 11.4, 12.0 is needed"), "{old}");
        let closed = Driver::start(Functions { cuInit: Some(may_not), ..driver() }, None).unwrap_err();
        assert!(matches!(closed, GpuError::NoPermission { .. }), "{closed}");
        let bare = Driver::start(Functions { cuInit: Some(sees_no_device), ..driver() }, None).unwrap_err();
        let empty = Driver::start(Functions { cuDeviceGetCount: Some(none), ..driver() }, None).unwrap_err();
        assert_eq!((&bare, &empty), (&GpuError::NoDevice, &GpuError::NoDevice));
        for error in [missing, missing_device, old, closed, bare, empty] {
            assert!(error.to_string().contains("hint: "), "{error}");
        }
    }
}
