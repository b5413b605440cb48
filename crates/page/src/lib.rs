//! Results as HTML pages: one file each, with style, script and pictures in it. A page loads nothing from a network.
//!
//! - [`Page`]: content of a page, as sections of text, values, tables and figures. [`Page::html`] writes it.
//! - [`report_page`]: the page of a run, from its report.
//! - [`rack`]: the picture of a rack from its topology, with the use and the faults of a run.
//! - [`text`]: numbers as text.
//!
//! No part of a page holds markup. Names and texts of a report are escaped when the page is written, and pictures are data until then. So
//! no name can become an element or a script. The number of rows, marks and lines is bounded, and the page states what it leaves out.
//!
//! This crate reads no file and no clock.
#![forbid(unsafe_code)]

mod html;
mod model;
mod policy;
pub mod rack;
mod report;
pub mod text;

pub use model::{Block, Cell, Column, Figure, Page, Row, Section, Table, Tone, Value};
pub use report::report_page;
