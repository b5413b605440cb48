//! The wires of the node, as far as models need them.

#[path = "../../../node/src/wires/doorbell_word.rs"]
mod doorbell_word;
mod futex;
#[path = "../../../node/src/wires/ring.rs"]
mod ring;
mod ring_memory;
pub(crate) mod ring_model;
