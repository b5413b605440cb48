//! Shared library `libibverbs.so.1`: the code of `rackloom-verbs`, linked by the rules of `build.rs`.
//!
//! There is no code here. Code with thread-local storage in this crate would be compiled for a program, where a shared library needs another form.
#![no_main]

extern crate rackloom_verbs as _;
