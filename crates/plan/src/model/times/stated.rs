//! Timing keys that a rack file states, and link times from which the other timers follow.

/// Timing key that a rack file may state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimingKey {
    HeartbeatInterval,
    HeartbeatRest,
    HoldDown,
    HelloInterval,
    TimeoutInitial,
    TimeoutMin,
    TimeoutMax,
    AckDelay,
}

impl TimingKey {
    /// All keys, in the order of their declaration.
    pub(crate) const ALL: [Self; 8] = [
        Self::HeartbeatInterval,
        Self::HeartbeatRest,
        Self::HoldDown,
        Self::HelloInterval,
        Self::TimeoutInitial,
        Self::TimeoutMin,
        Self::TimeoutMax,
        Self::AckDelay,
    ];

    /// Returns the table of the rack file and the name in it.
    pub(crate) const fn path(self) -> (&'static str, &'static str) {
        match self {
            Self::HeartbeatInterval => ("timers", "heartbeat_interval"),
            Self::HeartbeatRest => ("timers", "heartbeat_rest"),
            Self::HoldDown => ("timers", "hold_down"),
            Self::HelloInterval => ("timers", "hello_interval"),
            Self::TimeoutInitial => ("transport", "timeout_initial"),
            Self::TimeoutMin => ("transport", "timeout_min"),
            Self::TimeoutMax => ("transport", "timeout_max"),
            Self::AckDelay => ("transport", "ack_delay"),
        }
    }
}

/// Set of timing keys that the rack file states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stated(u8);

impl Stated {
    /// Returns true if the file states the key.
    pub(crate) const fn has(self, key: TimingKey) -> bool {
        self.0 & 1 << key as u8 != 0
    }
}

impl FromIterator<TimingKey> for Stated {
    fn from_iter<I: IntoIterator<Item = TimingKey>>(keys: I) -> Self {
        Self(keys.into_iter().fold(0, |all, key| all | 1 << key as u8))
    }
}

/// Link times of a plan from which default timers follow, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) frame_ns: u64,
    pub(crate) hop_ns: u64,
    pub(crate) round_trip_ns: u64,
}
