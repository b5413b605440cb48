//! Paths of packets, and the promised order.

use rackloom_collectives::choose::{Spread, Spreading};
use rackloom_protocol::{OrderScope, PathConfig, PathPolicy};

use crate::setting::named_value::{NamedValue, named_values};
use crate::setting::section::section;
use crate::setting::table::Kind;

named_values! {
    /// Choice of a path by a switch, or by a node that relays.
    pub enum RelayPaths {
        /// The path of the packet's flow.
        #[default]
        Flow = "flow",
        /// A path chosen anew for each packet, by the policy.
        Policy = "policy",
    }
}

section! {
    /// Paths of packets, and the promised order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PathPlan: PATHS = "paths" {
        /// Choice among several equally short paths of a packet: planes, spines, both directions of a ring, relays of a mesh. `address`
        /// hashes source and destination, `flow` the class as well, and `destination` deals the numbers of destinations to the paths
        /// one after the other, so that all packets of a sequence take one path; `round-robin` takes the paths one after the other,
        /// `spray` takes a random one, `least-queue` the one with the shortest queue. The last three need a selective transport.
        policy: PathPolicy {
            form = Kind::Choice(PathPolicy::NAMES);
            default = PathPolicy::Flow;
        }
        /// Promised order, which every run checks: of all operations between two nodes (`pair`), of those in one class (`class`), of puts
        /// that touch the same 256 bytes (`region`), of operations on the same path that are not retransmitted (`path`), or none. Under the
        /// last three the data of puts is written as it arrives. Stores, atomics and signals keep the order of their class, and a signal
        /// never overtakes the data of its put.
        order: OrderScope {
            form = Kind::Choice(OrderScope::NAMES);
            default = OrderScope::Class;
        }
        /// True if members keep the promised order. `false` demonstrates the violation: packets are executed as they arrive.
        keep_order: bool {
            form = Kind::Flag;
            default = true;
        }
        /// Path of a packet behind a switch, or a node that relays: that of its flow (`flow`), or one chosen anew for each packet by
        /// `policy` (`policy`), which must be one of the last three.
        relays: RelayPaths {
            form = Kind::Choice(RelayPaths::NAMES);
            default = RelayPaths::Flow;
        }
    }
}

impl PathPlan {
    /// Returns the settings of the protocol core.
    #[must_use]
    pub fn config(&self) -> PathConfig {
        let Self { policy, order, keep_order, relays } = *self;
        PathConfig { policy, order, keeps_order: keep_order, relays_choose: relays == RelayPaths::Policy }
    }
}

/// Returns the use of planes and spines under these settings, as estimates of collectives distinguish it. Data of a collective has one class,
/// so its flows are pairs.
#[must_use]
pub const fn spread(paths: &PathConfig) -> Spread {
    let of_flow = match paths.policy {
        PathPolicy::Destination => Spreading::ByReceiver,
        _ => Spreading::ByPair,
    };
    let per_packet = paths.policy.is_per_packet();
    Spread {
        planes: if per_packet { Spreading::ByPacket } else { of_flow },
        spines: if per_packet && paths.relays_choose { Spreading::ByPacket } else { of_flow },
    }
}
