//! Own frames of a node: streams, runs, cutting into packets, and the choice of their paths.

pub(super) mod cutting;
pub(super) mod path_choice;
pub(super) mod run;
pub(super) mod spreading;
pub(super) mod transmit;
