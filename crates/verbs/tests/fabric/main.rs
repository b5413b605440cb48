//! Devices of several processes on a fabric: every operation between queue pairs of different nodes. All nodes are in this process, which the
//! transport does not know.

#[path = "../engine/support.rs"]
#[allow(dead_code, reason = "the other suite uses the rest")]
mod support;

mod errors;
mod operations;
mod rack;
mod window;
