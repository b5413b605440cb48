//! Errors of GPU operations. Each states what failed, where, and gives a hint.
//!
//! A missing driver, device or symbol is an error, never a panic.

use std::{fmt, io};

/// Failure of a GPU operation.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GpuError {
    /// The driver's library cannot be opened.
    NoDriver {
        /// The loader's error message.
        reason: String,
    },
    /// The driver is too old.
    DriverTooOld {
        /// Version of the driver, in the driver's encoding: 12080 is 12.8.
        found: i32,
        /// Lowest version that works, in the same encoding.
        needed: i32,
    },
    /// Access to a device file or a call is denied.
    NoPermission {
        /// The device file or the call.
        what: String,
    },
    /// The driver is present and finds no GPU.
    NoDevice,
    /// The device index is too large.
    NoSuchDevice {
        /// Requested index.
        index: u32,
        /// Number of devices.
        count: u32,
    },
    /// A library lacks a function.
    SymbolMissing {
        /// The function.
        symbol: &'static str,
        /// The library that lacks it.
        library: &'static str,
    },
    /// A handle was opened in the process that made it.
    OwnHandle,
    /// An allocation failed.
    OutOfMemory {
        /// The call that failed.
        function: &'static str,
    },
    /// Something that a pool of another process does not do.
    Imported {
        /// The refused operation.
        what: &'static str,
    },
    /// The device or the driver cannot do this.
    NotSupported {
        /// The call that failed.
        function: &'static str,
    },
    /// The operation has not finished yet.
    NotReady,
    /// The device is lost for this process: everything on it fails from now on.
    DeviceFailed {
        /// The call that reported the failure.
        function: &'static str,
        /// The driver's error code.
        code: i32,
        /// The driver's name for the code.
        name: &'static str,
    },
    /// A range lies outside of its memory.
    OutOfRange {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes of the range.
        bytes: u64,
        /// Length of the memory, in bytes.
        length: u64,
    },
    /// The NVRTC library cannot be opened.
    NoCompiler {
        /// The loader's error message.
        reason: String,
    },
    /// The driver's management library cannot be used, or does not know the device.
    NoManagement {
        /// Error message of the loader or the library.
        reason: String,
    },
    /// A kernel does not compile.
    NotCompiled {
        /// Name of the source.
        name: String,
        /// The compiler's log.
        log: String,
    },
    /// Staging memory stayed full for too long.
    Stuck {
        /// Duration of the wait, in milliseconds.
        waited_ms: u64,
    },
    /// The fake device failed as its plan requires.
    Planned,
    /// The operating system refused a call.
    System {
        /// The attempted operation.
        what: &'static str,
        /// The system's error message.
        cause: String,
    },
    /// Any other answer of the driver.
    Call {
        /// The call that failed.
        function: &'static str,
        /// The driver's error code.
        code: i32,
        /// The driver's name for the code, if it is known.
        name: &'static str,
    },
}

impl fmt::Display for GpuError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The log of a compiler ends its line.
        let separator = if matches!(self, Self::NotCompiled { .. }) { "\n" } else { "; " };
        write!(formatter, "{}{separator}hint: {}", self.what(), self.hint())
    }
}

impl std::error::Error for GpuError {}

impl GpuError {
    /// Returns what failed, without the hint.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::NoDriver { reason } => format!("no NVIDIA driver: {reason}"),
            Self::DriverTooOld { found, needed } => {
                format!("the NVIDIA driver supports CUDA {}, {} is needed", version(*found), version(*needed))
            }
            Self::NoPermission { what } => format!("no permission: {what}"),
            Self::NoDevice => "the driver found no GPU".to_owned(),
            Self::NoSuchDevice { index, count } => {
                format!("cuda:{index} does not exist: this machine has {count}")
            }
            Self::SymbolMissing { symbol, library } => format!("{library} has no {symbol}"),
            Self::OwnHandle => "this handle was made by this very process".to_owned(),
            Self::OutOfMemory { function } => format!("out of memory in {function}"),
            Self::Imported { what } => format!("{what} is not for a pool of another process"),
            Self::NotSupported { function } => format!("{function} is not supported here"),
            Self::NotReady => "not finished yet".to_owned(),
            Self::DeviceFailed { function, code, name } => {
                format!("the device failed: {function} says {code} ({name})")
            }
            Self::OutOfRange { offset, bytes, length } => {
                format!("{bytes} bytes at {offset} do not lie within {length}")
            }
            Self::NoCompiler { reason } => format!("no run-time compiler: {reason}"),
            Self::NoManagement { reason } => format!("no NVIDIA management library: {reason}"),
            Self::NotCompiled { name, log } => format!("{name} does not compile:\n{log}"),
            Self::Stuck { waited_ms } => {
                format!("staging is full and the device has finished nothing for {waited_ms} ms")
            }
            Self::Planned => "the fake device failed as its seed demands".to_owned(),
            Self::System { what, cause } => format!("{what}: {cause}"),
            Self::Call { function, code, name } => format!("{function} says {code} ({name})"),
        }
    }

    /// Returns the error of a call that the operating system refused.
    #[must_use]
    pub fn system(what: &'static str, cause: &io::Error) -> Self {
        Self::System { what, cause: cause.to_string() }
    }

    /// Returns advice on how to correct the error.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NoDriver { .. } => "install the NVIDIA driver, or use host memory: leave `device` out",
            Self::DriverTooOld { .. } => "install a newer driver",
            Self::NoPermission { .. } => "the user needs read and write access to /dev/nvidia*",
            Self::NoDevice => "see `nvidia-smi`; CUDA_VISIBLE_DEVICES hides devices",
            Self::NoSuchDevice { .. } => "`rackloom gpu info` lists the devices; they count from 0",
            Self::SymbolMissing { .. } => "the library is too old for this function: install a newer one",
            Self::OwnHandle => "use the address itself; handles are for other processes",
            Self::OutOfMemory { .. } => {
                "allocate less, or free what is not needed; `nvidia-smi` lists the processes that use memory"
            }
            Self::Imported { .. } => "let the process that made the pool do it",
            Self::NotSupported { .. } => "`rackloom gpu info` lists what each device can do",
            Self::NotReady => "try again later",
            Self::DeviceFailed { .. } => "start the process anew; compute-sanitizer finds the invalid access",
            Self::OutOfRange { .. } => "keep ranges within what was allocated",
            Self::NoCompiler { .. } => "install NVRTC, or name its library in RACKLOOM_NVRTC",
            Self::NoManagement { .. } => {
                "install libnvidia-ml.so.1 of the driver; without it the use of the GPU is not reported"
            }
            Self::NotCompiled { .. } => "correct the source at the line that the compiler names",
            Self::Stuck { .. } => "something else keeps the device busy, or it has failed: see `nvidia-smi`",
            Self::Planned => "another seed fails elsewhere, or not at all",
            Self::System { .. } => "see what the system says",
            // Invalid image, no binary for the device, invalid PTX, unsupported PTX.
            Self::Call { code: 200 | 209 | 218 | 222, .. } => {
                "these kernels are not for this device: make what RACKLOOM_PTX names anew, or empty the cache of kernels"
            }
            Self::Call { .. } => "the driver's documentation lists its codes",
        }
    }
}

/// Returns an encoded version as text: 12080 as "12.8".
fn version(counted: i32) -> String {
    format!("{}.{}", counted / 1000, counted % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_a_cause_and_a_hint() {
        let text = GpuError::DriverTooOld { found: 10020, needed: 12000 }.to_string();
        assert_eq!(
            text,
            "the NVIDIA driver supports CUDA 10.2, 12.0 is needed; hint: install a newer driver"
        );
        let text = GpuError::NoSuchDevice { index: 7, count: 2 }.to_string();
        assert!(text.starts_with("cuda:7 does not exist: this machine has 2; hint: "), "{text}");
        let text =
            GpuError::Call { function: "cuModuleLoadData", code: 200, name: "invalid image" }.to_string();
        assert!(text.contains("RACKLOOM_PTX"), "what is to be made anew: {text}");
    }
}
