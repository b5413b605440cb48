//! Pictures as SVG text, without other crates. Equal input gives equal text, so pictures can be committed and compared.
//!
//! - [`chart`]: series of points and lines over an axis of values or of categories, bars, and time lines.
//! - [`graph`]: members of a rack and the links between them, also as text for Graphviz and Mermaid.
//! - [`text`]: texts that are safe in markup, for pages around the pictures.
//!
//! Both have light and dark colours, chosen by the reader's browser. Colour is never alone: series differ in marks and dashes too, and
//! states of links in dashes and widths. Texts are escaped, and no text covers another: widths are estimated generously, and labels that do
//! not fit are wrapped, shortened or left out.
//!
//! The crate knows neither experiments nor racks. It opens no file.
#![forbid(unsafe_code)]

pub mod chart;
pub mod graph;
mod number;
mod palette;
mod svg;
pub mod text;
