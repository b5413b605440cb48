//! Kernels of somebody else's: compiled, loaded and launched by name.
//!
//! What a kernel touches is its author's business; a bad access fails the whole device for this process.

use std::ffi::c_void;

use cudarc::driver::sys::CUmodule;

use super::Cuda;
use crate::device::StreamId;
use crate::error::GpuError;
use crate::kernels::Source;

/// A source that was loaded on one device, as long as that is used.
///
/// `Send`, not `Sync`.
#[derive(Debug)]
pub struct Program {
    module: CUmodule,
}

// SAFETY: needed because a program moves with its device. It is a name of the driver's, which any thread may use.
unsafe impl Send for Program {}

/// An argument of a kernel, by value.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// 4 bytes.
    Word(u32),
    /// 8 bytes: a number or an address.
    Wide(u64),
    /// A structure of 8-byte words.
    Words(&'a [u64]),
}

impl Cuda {
    /// Compile and load kernels. A source that uses other nodes' memory begins with [`crate::kernels::DEVICE_HEADER`].
    ///
    /// # Errors
    /// [`GpuError::NotCompiled`] with the compiler's log, [`GpuError::NoCompiler`].
    pub fn load(&mut self, source: Source) -> Result<Program, GpuError> {
        self.context.enter()?;
        Ok(Program { module: self.modules.load_one(source, self.capability)? })
    }

    /// Launch a kernel with so many blocks of so many threads.
    ///
    /// # Safety
    /// The arguments are those that the kernel declares, and it touches nothing that it may not.
    ///
    /// # Errors
    /// There is no kernel of this name, or the driver refuses.
    pub unsafe fn launch_kernel(
        &mut self,
        stream: StreamId,
        (program, name): (&Program, &str),
        grid: (u32, u32),
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
        self.launch(stream, kernel, grid, &mut parameters)
    }
}
