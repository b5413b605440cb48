//! Experiments: questions about a fabric, racks in virtual time that answer them, and closed forms that the answers must
//! match.
//!
//! Each experiment builds plans, runs them in the simulator, measures (counters, virtual times) and compares the
//! measurements with a formula of `theory`, within a stated tolerance. The two sides are independent until the
//! verdict: a run does not get the expected value, and a formula gets its inputs by name and no run. That
//! is tested for every experiment: if one input of the run is changed by a fifth and the formula's is not, the verdict must flip.
//!
//! Modules: [`experiment`] (definition, run and verdict) · [`knob`] (inputs for `--vary`) · [`parallel`] (many
//! runs, all cores, one order) · `stage`, `traffic` and `workload` (a rack, the traffic of its nodes, and traffic
//! matrices) · [`theory`] (the closed forms) · `captured` (a run's capture, read back) · `suite` (the experiments) ·
//! [`chart`] (the figure of an experiment) with `axes` · `answer` (summary of the numbers, in a line).
//!
//! The crate prints nothing and opens no file.
#![forbid(unsafe_code)]

mod answer;
mod axes;
mod captured;
pub mod chart;
pub mod experiment;
pub mod knob;
pub mod parallel;
mod stage;
mod suite;
pub mod theory;
mod traffic;
mod workload;

pub use experiment::{Experiment, Findings, Request, Row, Spread, Verdict};
pub use suite::{all, find};
