//! Measurements that several rows share. Times are in nanoseconds unless the name says seconds; memory is in bytes.

/// Measurement of a rack at rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleTake {
    pub(super) bring_up_ns: f64,
    pub(super) processor_percent: f64,
    pub(super) memory_bytes: f64,
}

/// Measurement of a simulated permutation.
#[derive(Clone, Copy, Debug)]
pub(super) struct PermutationTake {
    pub(super) seconds: f64,
    pub(super) data_frames: f64,
    pub(super) events_handled: f64,
}

/// Number of commands that are measured.
pub(super) const COMMANDS: usize = 4;

/// Measurement of one run of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandTake {
    pub(super) wall_ns: f64,
    pub(super) memory_bytes: f64,
}
