//! Control sockets: JSON, one message per line. The messages are in `crates/control`.

pub(crate) mod bounded_lines;
#[cfg(test)]
mod fuzz;
pub(crate) mod seat;
