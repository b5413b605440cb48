//! Our kernels: their sources, compiled at run time by NVRTC, and the cache of the PTX.
//!
//! The compiler is a library of the CUDA toolkit and found at run time like the driver. PTX works with every driver that is not
//! older than the compiler. It is cached in the user's cache directory under a hash of the source, the compiler's version and
//! the target, so that a second start costs nothing. A cache that cannot be read or written is no error. A directory named in
//! `RACKLOOM_PTX` with PTX from elsewhere goes before the compiler.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::driver::load;
use crate::error::GpuError;

/// Environment variable with the file name of the compiler's library.
pub const COMPILER_VARIABLE: &str = "RACKLOOM_NVRTC";
/// Environment variable with a directory of precompiled PTX.
pub const PTX_VARIABLE: &str = "RACKLOOM_PTX";
/// Header for kernels that use other nodes' memory: see `docs/gpu.md`.
pub const DEVICE_HEADER: &str = include_str!("../kernels/rackloom.cuh");
/// Kernels that use the header, for tests and measurements. They are loaded on demand.
pub const INITIATED: Source = Source {
    name: "initiated",
    text: concat!(include_str!("../kernels/rackloom.cuh"), include_str!("../kernels/initiated.cu")),
};
/// Embedded sources.
pub const SOURCES: [Source; 4] = [
    Source { name: "move", text: include_str!("../kernels/move.cu") },
    Source { name: "atomics", text: include_str!("../kernels/atomics.cu") },
    Source { name: "reduce", text: include_str!("../kernels/reduce.cu") },
    Source { name: "matmul", text: include_str!("../kernels/matmul.cu") },
];

const NAMES: [&str; 5] = [
    "libnvrtc.so",
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "/usr/local/cuda/lib64/libnvrtc.so",
    "/usr/local/cuda/lib64/libnvrtc.so.13",
];

/// Source of some kernels.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// File name without its extension.
    pub name: &'static str,
    /// Text in CUDA C++.
    pub text: &'static str,
}

/// Returns the PTX of one source for a device of this compute capability: precompiled, from the cache, or compiled now.
///
/// # Errors
/// [`GpuError::NoCompiler`], [`GpuError::NotCompiled`].
pub fn ptx(source: Source, capability: (i32, i32)) -> Result<CString, GpuError> {
    if let Some(carried) = std::env::var_os(PTX_VARIABLE)
        && let Some(found) = read(&Path::new(&carried).join(format!("{}.ptx", source.name)))
    {
        return Ok(found);
    }
    let compiler = Compiler::open()?;
    let path = cache_path(&compiler, source, capability);
    if let Some(found) = path.as_deref().and_then(read) {
        return Ok(found);
    }
    let made = compiler.compile(source, capability)?;
    if let Some(path) = path {
        keep(&path, &made);
    }
    Ok(made)
}

/// Run-time compiler.
#[derive(Debug)]
pub struct Compiler {
    library: libloading::Library,
    version: (i32, i32),
}

type Program = *mut c_void;

impl Compiler {
    /// Finds the compiler: by `RACKLOOM_NVRTC`, else by the loader's search path, else in the usual directory of the toolkit.
    ///
    /// # Errors
    /// [`GpuError::NoCompiler`], [`GpuError::SymbolMissing`].
    pub fn open() -> Result<Self, GpuError> {
        let named = std::env::var(COMPILER_VARIABLE).ok();
        let names: Vec<&str> = named.as_deref().map_or_else(|| NAMES.to_vec(), |named| vec![named]);
        let library = load(&names).map_err(|reason| GpuError::NoCompiler { reason })?;
        let mut compiler = Self { library, version: (0, 0) };
        let (mut major, mut minor) = (0, 0);
        type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
        compiler.call::<Version>("nvrtcVersion", |version| {
            // SAFETY: needed because the compiler is C. It writes two numbers.
            unsafe { version(&raw mut major, &raw mut minor) }
        })?;
        compiler.version = (major, minor);
        Ok(compiler)
    }

    /// Returns the version, major and minor.
    #[must_use]
    pub const fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Compiles a source to PTX.
    ///
    /// # Errors
    /// [`GpuError::NotCompiled`] with the compiler's log.
    pub fn compile(&self, source: Source, capability: (i32, i32)) -> Result<CString, GpuError> {
        type Create = unsafe extern "C" fn(
            *mut Program,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> c_int;
        type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
        type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
        let text = c_string(source.text)?;
        let name = c_string(&format!("{}.cu", source.name))?;
        let target = c_string(&format!("--gpu-architecture=compute_{}{}", capability.0, capability.1))?;
        let mut program: Program = std::ptr::null_mut();
        // SAFETY: needed because the compiler is C. Both texts end with a zero and outlive the program; no headers.
        self.call::<Create>("nvrtcCreateProgram", |create| unsafe {
            create(&raw mut program, text.as_ptr(), name.as_ptr(), 0, std::ptr::null(), std::ptr::null())
        })?;
        let options = [target.as_ptr(), c"--std=c++17".as_ptr()];
        // SAFETY: as above; the program was made, and the options outlive the call.
        let compiled = self.call::<Compile>("nvrtcCompileProgram", |compile| unsafe {
            compile(program, options.len() as c_int, options.as_ptr())
        });
        let result = match compiled {
            Ok(()) => self.text(program, "nvrtcGetPTXSize", "nvrtcGetPTX"),
            Err(refused) => Err(self.explained(source, program, refused)),
        };
        // SAFETY: as above; nothing uses the program any more.
        self.call::<Destroy>("nvrtcDestroyProgram", |destroy| unsafe { destroy(&raw mut program) })?;
        result
    }

    fn explained(&self, source: Source, program: Program, refused: GpuError) -> GpuError {
        let log = self.text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
        let log = log.map_or_else(|_| refused.to_string(), |log| log.to_string_lossy().trim_end().to_owned());
        GpuError::NotCompiled { name: format!("{}.cu", source.name), log }
    }

    /// Returns a text of a program: reads its size first, then its bytes.
    fn text(&self, program: Program, size: &'static str, fill: &'static str) -> Result<CString, GpuError> {
        type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
        type Fill = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
        let mut bytes = 0;
        // SAFETY: needed because the compiler is C. The program exists, and one number is written.
        self.call::<Size>(size, |size| unsafe { size(program, &raw mut bytes) })?;
        let mut text = vec![0_u8; bytes + 1];
        // SAFETY: as above; there is space for as many bytes as it returned, and one more that stays zero.
        self.call::<Fill>(fill, |fill| unsafe { fill(program, text.as_mut_ptr().cast()) })?;
        Ok(CStr::from_bytes_until_nul(&text).map(CStr::to_owned).unwrap_or_default())
    }

    fn call<F: Copy>(&self, name: &'static str, call: impl FnOnce(F) -> c_int) -> Result<(), GpuError> {
        // SAFETY: needed to call a function that is known by name only. Each caller names the type that the compiler's
        // headers declare for it, and calls it before the library is closed.
        let function = unsafe { self.library.get::<F>(name.as_bytes()) };
        let function = function.map_err(|_| GpuError::SymbolMissing { symbol: name, library: "libnvrtc" })?;
        match call(*function) {
            0 => Ok(()),
            code => Err(GpuError::Call { function: name, code, name: "see the compiler's documentation" }),
        }
    }
}

fn c_string(text: &str) -> Result<CString, GpuError> {
    CString::new(text)
        .map_err(|_| GpuError::NotCompiled { name: "source".to_owned(), log: "a zero byte".to_owned() })
}

/// Returns the directory for data that this user's programs can make again.
pub(crate) fn cache_home() -> Option<PathBuf> {
    let home = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
}

fn cache_path(compiler: &Compiler, source: Source, capability: (i32, i32)) -> Option<PathBuf> {
    let home = cache_home()?;
    let mut hasher = DefaultHasher::new();
    (source.text, compiler.version, capability).hash(&mut hasher);
    Some(home.join("rackloom/kernels").join(format!("{}-{:016x}.ptx", source.name, hasher.finish())))
}

fn read(path: &Path) -> Option<CString> {
    CString::new(fs::read(path).ok()?).ok().filter(|text| !text.is_empty())
}

/// Writes a file to the cache. The rename is atomic, so that a reader never sees half of it.
fn keep(path: &Path, made: &CStr) {
    let Some(directory) = path.parent() else { return };
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let kept = fs::create_dir_all(directory).and_then(|()| fs::write(&beside, made.to_bytes()));
    if kept.and_then(|()| fs::rename(&beside, path)).is_err() {
        // The cache is a convenience; the next start compiles again.
        let _ = fs::remove_file(&beside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiler() -> Option<Compiler> {
        Compiler::open().inspect_err(|error| crate::skipped("kernels", &error.to_string())).ok()
    }

    #[test]
    fn every_kernel_compiles_for_the_oldest_and_the_newest_device_that_we_know() {
        let Some(compiler) = compiler() else { return };
        for source in SOURCES.into_iter().chain([INITIATED]) {
            for capability in [(7, 0), (9, 0)] {
                if capability == (7, 0) && compiler.version() >= (13, 0) {
                    continue; // That compiler no longer supports it.
                }
                let ptx = compiler.compile(source, capability).unwrap();
                assert!(ptx.to_string_lossy().contains(".visible .entry"), "{}", source.name);
            }
        }
    }

    #[test]
    fn a_compile_error_names_file_and_line() {
        let Some(compiler) = compiler() else { return };
        let bad = Source { name: "bad", text: "extern \"C\" __global__ void f() {\n  nonsense;\n}\n" };
        let error = compiler.compile(bad, (9, 0)).unwrap_err().to_string();
        assert!(
            error.contains("bad.cu(2)") && error.contains("nonsense") && error.contains("hint: "),
            "{error}"
        );
    }
}
