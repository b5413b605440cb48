//! Device in the middle of a star: a switch of the rack, or a bridge of the kernel.
//!
//! A bridge of the kernel is an ordinary Ethernet switch and no member of the rack. It sends no heartbeats, takes no credits and
//! forwards by address. To the rack it is a segment on which each node has one interface and a link to each other node
//! (`docs/decisions/bridge-as-hub.md`). So a star with a bridge is expanded to links between its nodes, and the receive buffer of
//! an interface is divided among the links that share it.
//!
//! This file does not create bridges.

use crate::setting::named_value::named_values;

named_values! {
    /// Kind of device that joins the nodes of a star.
    pub enum SwitchKind {
        /// Member of the rack, with links and credits: a process of Rackloom, or its model in virtual time.
        #[default]
        Member = "member",
        /// Bridge of the kernel, which is no member.
        Bridge = "bridge",
    }
}
