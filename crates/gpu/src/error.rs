//! What can go wrong with a GPU, as values: what, where, and what to do about it.
//!
//! Nothing in this crate panics because a driver, a device or a symbol is not there.

use std::io;

/// Why a GPU did not do what was asked.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The driver's library cannot be opened.
    #[error("no NVIDIA driver: {reason}; hint: {}", self.hint())]
    NoDriver {
        /// What the loader says.
        reason: String,
    },
    /// The driver is of another time.
    #[error("the NVIDIA driver speaks CUDA {}, {} is needed; hint: {}", version(*.found), version(*.needed), self.hint())]
    DriverTooOld {
        /// Its version, as the driver counts: 12080 is 12.8.
        found: i32,
        /// What we need, counted so.
        needed: i32,
    },
    /// A device file or a call is closed to us.
    #[error("no permission: {what}; hint: {}", self.hint())]
    NoPermission {
        /// Which.
        what: String,
    },
    /// The driver is there, a GPU is not.
    #[error("the driver sees no GPU; hint: {}", self.hint())]
    NoDevice,
    /// There are fewer.
    #[error("cuda:{index} does not exist: this machine has {count}; hint: {}", self.hint())]
    NoSuchDevice {
        /// Asked for.
        index: u32,
        /// How many there are.
        count: u32,
    },
    /// A library lacks a function.
    #[error("{library} has no {symbol}; hint: {}", self.hint())]
    SymbolMissing {
        /// The function.
        symbol: &'static str,
        /// Where it should be.
        library: &'static str,
    },
    /// A handle was opened in the process that made it.
    #[error("this handle was made by this very process; hint: {}", self.hint())]
    OwnHandle,
    /// No memory.
    #[error("out of memory in {function}; hint: {}", self.hint())]
    OutOfMemory {
        /// Which call.
        function: &'static str,
    },
    /// Something that a pool of another process does not do.
    #[error("{what} is not for a pool of another process; hint: {}", self.hint())]
    Imported {
        /// What.
        what: &'static str,
    },
    /// The device or the driver cannot do this.
    #[error("{function} is not supported here; hint: {}", self.hint())]
    NotSupported {
        /// Which call.
        function: &'static str,
    },
    /// Not yet: only to be seen where somebody asks before the end.
    #[error("not finished yet; hint: {}", self.hint())]
    NotReady,
    /// The device is lost for this process: everything on it fails from now on.
    #[error("the device failed: {function} says {code} ({name}); hint: {}", self.hint())]
    DeviceFailed {
        /// Where it was seen.
        function: &'static str,
        /// The driver's number.
        code: i32,
        /// The driver's word.
        name: &'static str,
    },
    /// A range lies outside of its memory.
    #[error("{bytes} bytes at {offset} do not lie within {length}; hint: {}", self.hint())]
    OutOfRange {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
        /// Bytes that there are.
        length: u64,
    },
    /// NVRTC is not there.
    #[error("no run-time compiler: {reason}; hint: {}", self.hint())]
    NoCompiler {
        /// What the loader says.
        reason: String,
    },
    /// A kernel does not compile.
    #[error("{name} does not compile:\n{log}\nhint: {}", self.hint())]
    NotCompiled {
        /// Which source.
        name: String,
        /// What the compiler says.
        log: String,
    },
    /// Staging had no room for too long.
    #[error("staging is full and the device has finished nothing for {waited_ms} ms; hint: {}", self.hint())]
    Stuck {
        /// How long it was waited.
        waited_ms: u64,
    },
    /// The fake device was told to fail.
    #[error("the fake device failed as its seed demands; hint: {}", self.hint())]
    Planned,
    /// The system refused.
    #[error("{what}: {cause}; hint: {}", self.hint())]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        cause: String,
    },
    /// Any other answer of the driver.
    #[error("{function} says {code} ({name}); hint: {}", self.hint())]
    Call {
        /// Which call.
        function: &'static str,
        /// The driver's number.
        code: i32,
        /// The driver's word, if it is a known one.
        name: &'static str,
    },
}

impl GpuError {
    /// A refusal of the system.
    #[must_use]
    pub fn system(what: &'static str, cause: &io::Error) -> Self {
        Self::System { what, cause: cause.to_string() }
    }

    /// What to do about it.
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

/// 12080 as 12.8.
fn version(counted: i32) -> String {
    format!("{}.{}", counted / 1000, counted % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_and_what_to_do() {
        let text = GpuError::DriverTooOld { found: 10020, needed: 12000 }.to_string();
        assert_eq!(text, "the NVIDIA driver speaks CUDA 10.2, 12.0 is needed; hint: install a newer driver");
        let text = GpuError::NoSuchDevice { index: 7, count: 2 }.to_string();
        assert!(text.starts_with("cuda:7 does not exist: this machine has 2; hint: "), "{text}");
        let text =
            GpuError::Call { function: "cuModuleLoadData", code: 200, name: "invalid image" }.to_string();
        assert!(text.contains("RACKLOOM_PTX"), "what is to be made anew: {text}");
    }
}
