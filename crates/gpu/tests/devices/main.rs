//! One suite for every device: the fake one by many seeds, and a real one if the machine has one.
//!
//! `same` holds for all. `real` needs a GPU and reports that it was skipped without one. `faults` needs a fake device: it has
//! answers before completion and devices that fail.

mod faults;
mod in_place;
mod processes;
mod real;
mod rig;
mod same;
mod speed;
