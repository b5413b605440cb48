//! Kernels on one device: loads modules and finds functions.

use std::ffi::CString;
use std::sync::Arc;

use cudarc::driver::sys::{CUfunction, CUmodule};

use super::context::Context;
use crate::device::{Element, Reduction};
use crate::error::GpuError;
use crate::kernels::{SOURCES, Source, ptx};

/// Loaded modules. They are unloaded on drop.
#[derive(Debug)]
pub(super) struct Modules {
    context: Arc<Context>,
    loaded: Vec<CUmodule>,
    pub(super) move_ranges: CUfunction,
    pub(super) atomics: CUfunction,
    pub(super) multiply: CUfunction,
    /// Kernels by reduction, then by element.
    reductions: Vec<CUfunction>,
}

impl Modules {
    pub(super) fn load(context: &Arc<Context>, capability: (i32, i32)) -> Result<Self, GpuError> {
        let null = std::ptr::null_mut();
        let mut modules = Self {
            context: Arc::clone(context),
            loaded: Vec::new(),
            move_ranges: null,
            atomics: null,
            multiply: null,
            reductions: Vec::new(),
        };
        let [moving, atomics, reducing, multiplying] = SOURCES;
        let module = modules.load_one(moving, capability)?;
        modules.move_ranges = modules.function(module, "move_ranges")?;
        let module = modules.load_one(atomics, capability)?;
        modules.atomics = modules.function(module, "atomics")?;
        let module = modules.load_one(multiplying, capability)?;
        modules.multiply = modules.function(module, "matmul")?;
        let module = modules.load_one(reducing, capability)?;
        for (reduction, element) in
            Reduction::ALL.into_iter().flat_map(|reduction| Element::ALL.map(|element| (reduction, element)))
        {
            let name = format!("reduce_{}_{}", reduction.name(), element.name());
            let found = modules.function(module, &name)?;
            modules.reductions.push(found);
        }
        Ok(modules)
    }

    /// Returns the kernel of a reduction.
    pub(super) fn reduction(&self, reduction: Reduction, element: Element) -> Result<CUfunction, GpuError> {
        let index = reduction as usize * Element::ALL.len() + element as usize;
        self.reductions.get(index).copied().ok_or(GpuError::NotSupported { function: "reduce" })
    }

    /// Loads more kernels. They are unloaded with the others.
    pub(super) fn load_one(&mut self, source: Source, capability: (i32, i32)) -> Result<CUmodule, GpuError> {
        let text = ptx(source, capability)?;
        let mut module = std::ptr::null_mut();
        // SAFETY: needed because the driver is C. The text ends with a zero and is read before this returns.
        unsafe { self.context.driver.functions().cuModuleLoadData(&raw mut module, text.as_ptr().cast())? };
        self.loaded.push(module);
        Ok(module)
    }

    pub(super) fn function(&self, module: CUmodule, name: &str) -> Result<CUfunction, GpuError> {
        let text = CString::new(name).unwrap_or_default();
        let mut function = std::ptr::null_mut();
        // SAFETY: needed because the driver is C. The module is loaded, the name ends with a zero, one pointer is written.
        unsafe {
            self.context.driver.functions().cuModuleGetFunction(&raw mut function, module, text.as_ptr())?;
        }
        Ok(function)
    }
}

impl Drop for Modules {
    fn drop(&mut self) {
        if self.context.enter().is_err() {
            return;
        }
        for module in self.loaded.drain(..) {
            // SAFETY: needed because the driver is C. It was loaded here, and nothing launches its kernels any more.
            drop(unsafe { self.context.driver.functions().cuModuleUnload(module) });
        }
    }
}
