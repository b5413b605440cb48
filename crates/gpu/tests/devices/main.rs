//! One suite over every device: the fake one by many seeds, and a real one where there is one.
//!
//! `same` holds for all; `real` needs a GPU and says so where there is none. What only a fake can show, an answer before
//! completion or a device that fails, is in `faults`.

mod faults;
mod in_place;
mod processes;
mod real;
mod rig;
mod same;
mod speed;
