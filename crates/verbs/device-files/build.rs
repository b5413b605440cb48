//! Makes the linker produce a shared library from a program target, which cargo puts beside the command. A `cdylib` stays in the folder of the compiler
//! in builds of tests.

use std::path::Path;

fn main() {
    let map =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("device_files.map");
    println!("cargo:rerun-if-changed={}", map.display());
    let arguments =
        ["-shared".to_owned(), "-Wl,-z,defs".to_owned(), format!("-Wl,--version-script={}", map.display())];
    for argument in arguments {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
