//! Errors of GPU operations. Each states what failed, where, and gives a hint.
//!
//! A missing driver, device or symbol is an error, never a panic.

use std::io;

/// Failure of a GPU operation.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The driver's library cannot be opened.
    #[error("no NVIDIA driver: {reason}; hint: {}", self.hint())]
    NoDriver {
        /// The loader's error message.
        reason: String,
    },
    /// The driver is too old.
    #[error("the NVIDIA driver speaks CUDA {}, {} is needed; hint: {}", version(*.found), version(*.needed), self.hint())]
    DriverTooOld {
        /// Version of the driver, in the driver's encoding: 12080 is 12.8.
        found: i32,
        /// Lowest version that works, in the same encoding.
        needed: i32,
    },
    /// Access to a device file or a call is denied.
    #[error("no permission: {what}; hint: {}", self.hint())]
    NoPermission {
        /// The device file or the call.
        what: String,
    },
    /// The driver is present and finds no GPU.
    #[error("the driver sees no GPU; hint: {}", self.hint())]
    NoDevice,
    /// The device index is too large.
    #[error("cuda:{index} does not exist: this machine has {count}; hint: {}", self.hint())]
    NoSuchDevice {
        /// Requested index.
        index: u32,
        /// Number of devices.
        count: u32,
    },
    /// A library lacks a function.
    #[error("{library} has no {symbol}; hint: {}", self.hint())]
    SymbolMissing {
        /// The function.
        symbol: &'static str,
        /// The library that lacks it.
        library: &'static str,
    },
    /// A handle was opened in the process that made it.
    #[error("this handle was made by this very process; hint: {}", self.hint())]
    OwnHandle,
    /// An allocation failed.
    #[error("out of memory in {function}; hint: {}", self.hint())]
    OutOfMemory {
        /// The call that failed.
        function: &'static str,
    },
    /// Something that a pool of another process does not do.
    #[error("{what} is not for a pool of another process; hint: {}", self.hint())]
    Imported {
        /// The refused operation.
        what: &'static str,
    },
    /// The device or the driver cannot do this.
    #[error("{function} is not supported here; hint: {}", self.hint())]
    NotSupported {
        /// The call that failed.
        function: &'static str,
    },
    /// The operation has not finished yet.
    #[error("not finished yet; hint: {}", self.hint())]
    NotReady,
    /// The device is lost for this process: everything on it fails from now on.
    #[error("the device failed: {function} says {code} ({name}); hint: {}", self.hint())]
    DeviceFailed {
        /// The call that reported the failure.
        function: &'static str,
        /// The driver's error code.
        code: i32,
        /// The driver's name for the code.
        name: &'static str,
    },
    /// A range lies outside of its memory.
    #[error("{bytes} bytes at {offset} do not lie within {length}; hint: {}", self.hint())]
    OutOfRange {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes of the range.
        bytes: u64,
        /// Length of the memory, in bytes.
        length: u64,
    },
    /// The NVRTC library cannot be opened.
    #[error("no run-time compiler: {reason}; hint: {}", self.hint())]
    NoCompiler {
        /// The loader's error message.
        reason: String,
    },
    /// A kernel does not compile.
    #[error("{name} does not compile:\n{log}\nhint: {}", self.hint())]
    NotCompiled {
        /// Name of the source.
        name: String,
        /// The compiler's log.
        log: String,
    },
    /// Staging memory stayed full for too long.
    #[error("staging is full and the device has finished nothing for {waited_ms} ms; hint: {}", self.hint())]
    Stuck {
        /// Duration of the wait, in milliseconds.
        waited_ms: u64,
    },
    /// The fake device failed as its plan requires.
    #[error("the fake device failed as its seed demands; hint: {}", self.hint())]
    Planned,
    /// The operating system refused a call.
    #[error("{what}: {cause}; hint: {}", self.hint())]
    System {
        /// The attempted operation.
        what: &'static str,
        /// The system's error message.
        cause: String,
    },
    /// Any other answer of the driver.
    #[error("{function} says {code} ({name}); hint: {}", self.hint())]
    Call {
        /// The call that failed.
        function: &'static str,
        /// The driver's error code.
        code: i32,
        /// The driver's name for the code, if it is known.
        name: &'static str,
    },
}

impl GpuError {
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
            Self::SymbolMissing { .. } => {
                "the library is older than what is asked of it: install a newer one"
            }
            Self::OwnHandle => "use the address itself; handles are for other processes",
            Self::OutOfMemory { .. } => {
                "ask for less, or free what is not needed; `nvidia-smi` shows who has it"
            }
            Self::Imported { .. } => "let the process that made the pool do it",
            Self::NotSupported { .. } => "`rackloom gpu info` lists what each device can do",
            Self::NotReady => "ask again later",
            Self::DeviceFailed { .. } => {
                "start the process anew; compute-sanitizer finds the access that is to blame"
            }
            Self::OutOfRange { .. } => "keep ranges within what was allocated",
            Self::NoCompiler { .. } => "install NVRTC, or name its library in RACKLOOM_NVRTC",
            Self::NotCompiled { .. } => "mend the source at the line that the compiler names",
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
        assert_eq!(text, "the NVIDIA driver speaks CUDA 10.2, 12.0 is needed; hint: install a newer driver");
        let text = GpuError::NoSuchDevice { index: 7, count: 2 }.to_string();
        assert!(text.starts_with("cuda:7 does not exist: this machine has 2; hint: "), "{text}");
        let text =
            GpuError::Call { function: "cuModuleLoadData", code: 200, name: "invalid image" }.to_string();
        assert!(text.contains("RACKLOOM_PTX"), "what is to be made anew: {text}");
    }
}
