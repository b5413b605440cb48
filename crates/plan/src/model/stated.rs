//! Timing keys that a rack file states, and link times from which the other timers follow.

/// Set of timing keys that the rack file states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stated {
    pub(crate) heartbeat_interval: bool,
    pub(crate) heartbeat_rest: bool,
    pub(crate) hold_down: bool,
    pub(crate) hello_interval: bool,
    pub(crate) timeout_initial: bool,
    pub(crate) timeout_min: bool,
    pub(crate) timeout_max: bool,
    pub(crate) ack_delay: bool,
}

/// Link times of a plan from which default timers follow, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) frame_ns: u64,
    pub(crate) hop_ns: u64,
    pub(crate) round_trip_ns: u64,
}
