//! Bridges of a plan, and links that share their interfaces.

use crate::model::members::hub::SwitchKind;
use crate::model::plan::Plan;

impl Plan {
    /// Returns true if bridges join the nodes, one per plane.
    #[must_use]
    pub fn has_bridges(&self) -> bool {
        self.switch == SwitchKind::Bridge
    }

    /// Returns the number of links that share the receive buffer of one interface.
    #[must_use]
    pub fn links_per_interface(&self) -> u32 {
        match self.switch {
            SwitchKind::Member => 1,
            // A rack has far fewer members than this type can count. A rack whose members could not be read has none.
            SwitchKind::Bridge => (self.endpoint_count().max(2) - 1) as u32,
        }
    }
}
