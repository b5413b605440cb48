//! Pictures as SVG text, without other crates. Equal input gives equal text, so pictures can be committed and compared.
//!
//! The crate knows neither experiments nor racks. It opens no file.
#![forbid(unsafe_code)]

pub mod chart;
