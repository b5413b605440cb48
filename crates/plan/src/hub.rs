//! The middle of a star: a member of the rack, or a bridge that is none.
//!
//! A bridge of the kernel (an ordinary Ethernet switch) knows nothing of the rack: it has no links of its own to keep alive, takes
//! no credits and forwards by address. To the rack it is a segment, on which each node has one interface and a link to each
//! other node (`docs/decisions/bridge-as-hub.md`). So a star with a bridge is expanded to links between its nodes, and what
//! an interface can take in is divided among the links that share it.
//!
//! Nothing here makes a bridge.

use crate::plan::Plan;
use crate::words::words;

words! {
    /// What joins the nodes of a star.
    pub enum SwitchKind {
        /// A member of the rack, with links and credits: a process of ours, or its model in virtual time.
        #[default]
        Member = "member",
        /// A bridge of the kernel, which is no member.
        Bridge = "bridge",
    }
}

impl Plan {
    /// Whether bridges join the nodes, one per plane.
    #[must_use]
    pub fn has_bridges(&self) -> bool {
        self.switch == SwitchKind::Bridge
    }

    /// How many links share what one interface can take in.
    #[must_use]
    pub fn links_per_interface(&self) -> u32 {
        match self.switch {
            SwitchKind::Member => 1,
            // A rack has far fewer members than a count of this type; one that could not be read has none.
            SwitchKind::Bridge => (self.members.len().max(2) - 1) as u32,
        }
    }
}
