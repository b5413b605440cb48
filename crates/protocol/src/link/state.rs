//! The states of a link and what moves it between them.

/// State of one link as this end sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinkState {
    /// Never been up: Hello is being said.
    #[default]
    Init,
    /// Carries data.
    Up,
    /// A heartbeat is late; still carries data, new flows avoid it.
    Suspect,
    /// Dead; held down for a while.
    Down,
    /// Hears heartbeats again; must prove itself before it carries data.
    Probing,
    /// Switched off by the user.
    AdminDown,
}

impl LinkState {
    /// All states, in table order.
    pub const ALL: [Self; 6] =
        [Self::Init, Self::Up, Self::Suspect, Self::Down, Self::Probing, Self::AdminDown];

    /// Whether the link carries data.
    #[must_use]
    pub const fn carries_data(self) -> bool {
        matches!(self, Self::Up | Self::Suspect)
    }

    /// Lower-case name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Up => "up",
            Self::Suspect => "suspect",
            Self::Down => "down",
            Self::Probing => "probing",
            Self::AdminDown => "admin-down",
        }
    }
}
