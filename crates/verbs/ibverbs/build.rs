//! Makes the linker produce a shared library with versioned names from a program target.
//!
//! A `cdylib` cannot have versions of its own: the compiler passes a list of exported names that has none. A program target passes no list.
//! Each name is required by `-u`, because a linker takes from a library only what is missing.

use std::path::Path;

fn main() {
    let map =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("libibverbs.map");
    println!("cargo:rerun-if-changed={}", map.display());
    let text = std::fs::read_to_string(&map).expect("the list of names");
    let mut arguments = vec!["-shared".to_owned(), "-Wl,-soname,libibverbs.so.1".to_owned()];
    arguments.push(format!("-Wl,--version-script={}", map.display()));
    // A name that is missing is an error of the build.
    arguments.push("-Wl,-z,defs".to_owned());
    // One name stands on a line, with a semicolon.
    let names = text.lines().filter_map(|line| line.trim().strip_suffix(';'));
    let is_name =
        |name: &&str| name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    arguments.extend(names.filter(is_name).map(|name| format!("-Wl,-u,{name}")));
    for argument in arguments {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
