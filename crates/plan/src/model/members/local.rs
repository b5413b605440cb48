//! Local path: access to the memory of other nodes of the same server without frames.
//!
//! [`crate::Plan::memory_peers`] decides for both engines whose memory a node uses directly. Processes map that memory. In virtual time the
//! operations of a server share one path: each occupies it for its bytes divided by the rate, one operation after the other, and
//! then waits for the latency.
//!
//! The jobs crate decides which operations take the path. This file moves no bytes and reads no clock.

use std::collections::BTreeMap;

use crate::model::bounds::{MILLISECOND_NS, RATE_MAX};
use crate::model::times::transfer::transfer_ns;
use crate::setting::section::section;
use crate::setting::table::Kind;

section! {
    /// Latency and rate of the local path of one server. `docs/decisions/direct-or-wire.md` has the measurement of the defaults.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LocalPath: LOCAL = "local" {
        /// Time from the end of an operation's transfer until its bytes are visible and the operation ends.
        latency_ns: u64 {
            key = "latency";
            form = Kind::Time(0, MILLISECOND_NS);
            default = 150;
            ours = true;
        }
        /// Bits per second that all operations of the server share, one after the other.
        rate_bits_per_s: Option<u64> {
            key = "rate";
            form = Kind::Rate(1_000_000, RATE_MAX);
            default = Some(320_000_000_000);
            ours = true;
        }
    }
}

impl LocalPath {
    /// Returns the time that `bytes` occupy the path, in nanoseconds.
    #[must_use]
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        transfer_ns(bytes, self.rate_bits_per_s)
    }
}

/// Local paths of a rack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalPlan {
    /// Path of every server that has none of its own.
    pub of_rack: LocalPath,
    /// Paths of single servers, by name.
    pub of_servers: BTreeMap<String, LocalPath>,
}

impl LocalPlan {
    /// Returns the path of the server with this name.
    #[must_use]
    pub fn of(&self, server: &str) -> LocalPath {
        self.of_servers.get(server).copied().unwrap_or(self.of_rack)
    }
}
