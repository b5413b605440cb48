//! Kernels of the caller: compiled, loaded and launched by name.
//!
//! The author of a kernel is responsible for its accesses. A bad access fails the whole device for this process.

use std::ffi::c_void;

use cudarc::driver::sys::CUmodule;

use super::Cuda;
use crate::device::StreamId;
use crate::error::GpuError;
use crate::kernels::Source;

/// Kernels that were loaded on one device. They are unloaded with the device.
///
/// `Send`, not `Sync`.
#[derive(Debug)]
pub struct Program {
    module: CUmodule,
}

// SAFETY: needed because a program moves with its device. It is a handle of the driver, which any thread may use.
unsafe impl Send for Program {}

/// Argument of a kernel, by value.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// Number of 4 bytes.
    Word(u32),
    /// Number or address of 8 bytes.
    Wide(u64),
    /// Structure of 8-byte words.
    Words(&'a [u64]),
}

impl Cuda {
    /// Compiles and loads kernels. A source that uses other nodes' memory begins with [`crate::kernels::DEVICE_HEADER`].
    ///
    /// # Errors
    /// [`GpuError::NotCompiled`] with the compiler's log, [`GpuError::NoCompiler`].
    pub fn load(&mut self, source: Source) -> Result<Program, GpuError> {
        self.context.enter()?;
        Ok(Program { module: self.modules.load_one(source, self.capability)? })
    }

    /// Launches the kernel `name` of a program, as `blocks` blocks of `threads` threads each.
    ///
    /// # Safety
    /// The arguments are those that the kernel declares, and the kernel keeps within its memory.
    ///
    /// # Errors
    /// The program has no kernel of this name, or the driver refuses.
    pub unsafe fn launch_kernel(
        &mut self,
        stream: StreamId,
        program: &Program,
        name: &str,
        blocks: u32,
        threads: u32,
        arguments: &[Argument<'_>],
    ) -> Result<(), GpuError> {
        self.context.enter()?;
        let kernel = self.modules.function(program.module, name)?;
        let mut values = arguments.to_vec();
        let mut parameters: Vec<*mut c_void> = values
            .iter_mut()
            .map(|value| match value {
                Argument::Word(word) => std::ptr::from_mut(word).cast(),
                Argument::Wide(wide) => std::ptr::from_mut(wide).cast(),
                Argument::Words(words) => words.as_ptr().cast_mut().cast(),
            })
            .collect();
        self.launch(stream, kernel, blocks, threads, &mut parameters)
    }
}
