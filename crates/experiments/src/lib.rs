//! Experiments: a question about a fabric, racks in virtual time that answer it, and the closed form that the answer must
//! meet.
//!
//! Each experiment builds plans, runs them in the simulator, measures (counters, virtual times) and holds what it
//! measured against a formula of `theory`, within a stated tolerance. The two sides never meet before the
//! verdict: a run is not told what is expected of it, and a formula is given its inputs by name and sees no run. That
//! this is so is tested for every experiment: change one input of the run by a fifth behind the formula's back, and the verdict must flip.
//!
//! Rooms: [`experiment`] (what one is, how it is run and judged) · [`knob`] (what `--vary` may change) · `parallel` (many
//! runs, all cores, one order) · `stage`, `traffic` and `workload` (a rack, what its nodes do, and who sends how much to whom) · [`theory`] (the closed forms) ·
//! `captured` (a run's capture, read back) · `suite` (the experiments) · [`chart`] (a figure as SVG text) · `answer` (what the numbers come to, in a line).
//!
//! It prints nothing and opens no file.
#![forbid(unsafe_code)]

mod answer;
mod captured;
pub mod chart;
pub mod experiment;
pub mod knob;
mod parallel;
mod stage;
mod suite;
pub mod theory;
mod traffic;
mod workload;

pub use experiment::{Experiment, Findings, Request, Row, Verdict};
pub use suite::{all, find};
