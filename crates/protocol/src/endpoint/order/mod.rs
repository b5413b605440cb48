//! Order scopes of a rack, as an endpoint keeps them.
//!
//! A receiver that executes packets in sequence keeps every promise within a class. Two scopes need more or allow
//! more. *Pair* orders both classes: a command waits until the operations of the other class are visible. *Region*
//! orders only puts that touch the same 256 bytes. Such puts go one after the other, and all others are written in
//! order of arrival. *Path* and *none* write every put on arrival. A signal always waits for the parts of its put
//! (W-35), and under *path* later packets on the same path wait behind it (W-46).
//!
//! [`order_oracle`] checks independently that the promised order holds.

pub(super) mod order_oracle;
pub(super) mod overlaps;

use crate::config::OrderScope;
use crate::endpoint::Endpoint;
use crate::endpoint::peer::Peer;
use crate::endpoint::stream::Stream;
use crate::event::Event;
use crate::ids::{Class, PortId};
use crate::planted::{PlantedBug, is_planted};
use crate::wire::frame::FabricHeader;
use crate::wire::packed::{Operation, Operations};

/// Relation of a command to earlier commands of the other class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) enum Across {
    /// The earlier commands are visible, or their order does not matter.
    Follows,
    /// The command must wait for them.
    Waits,
    /// The command should wait but does not; its number.
    Overtakes { number: u32 },
}

impl Endpoint {
    /// Returns the relation of a command of this class to the other class. It matters only under *pair*.
    #[inline]
    pub(in crate::endpoint) fn across_classes(&self, peer: &Peer, class: Class) -> Across {
        if self.config().paths.order == OrderScope::Pair {
            self.under_pair(peer, class)
        } else {
            Across::Follows
        }
    }

    #[cold]
    fn under_pair(&self, peer: &Peer, class: Class) -> Across {
        let other = if class == Class::Bulk { Class::Request } else { Class::Bulk };
        let Stream { sender, outstanding, .. } = peer.streams.of(other);
        let is_settled = sender.visible() == sender.next_operation()
            && !peer.has_more_bulk(other)
            && !outstanding.has_reply_before(sender.next_operation());
        if is_settled {
            Across::Follows
        } else if self.config().paths.keeps_order {
            Across::Waits
        } else {
            Across::Overtakes { number: peer.streams.of(class).sender.next_operation() }
        }
    }

    /// Reports a violation if a command has begun that should have waited.
    #[inline]
    pub(in crate::endpoint) fn note_across(&mut self, across: Across, class: Class) {
        if let Across::Overtakes { number } = across {
            let (source, scope) = (self.config().node, OrderScope::Pair);
            self.forwarder.push_event(Event::OrderBroken { source, class, scope, number });
        }
    }

    /// Returns true if a held packet may be executed early. `slot` is its slot in the window, `port` its port of arrival.
    pub(in crate::endpoint) fn takes_early(
        &self,
        peer: &Peer,
        slot: usize,
        port: PortId,
        header: &FabricHeader,
        operations: &[u8],
    ) -> bool {
        if is_planted(PlantedBug::SignalOvertakesData) {
            return true;
        }
        let paths = self.config().paths;
        if !paths.takes_early() {
            return false;
        }
        if !paths.keeps_order {
            return true;
        }
        // W-46
        // Earlier packets on this path, which usually are signals that wait for data, must not be overtaken.
        let overtakes = || {
            paths.order == OrderScope::Path && peer.streams.of(header.class).receiver.holds_before(slot, port)
        };
        header.class == Class::Bulk && is_complete_put(peer, header, operations) && !overtakes()
    }
}

// W-35
/// Returns true if a packet has only data of puts, and signals whose data is all visible.
fn is_complete_put(peer: &Peer, header: &FabricHeader, operations: &[u8]) -> bool {
    let mut number = header.first_operation;
    for operation in Operations::new(operations) {
        match operation {
            Ok(Operation::Select { .. }) => continue,
            Ok(Operation::Put { .. }) => {}
            Ok(Operation::Signal { counted, .. }) => {
                let first = number.wrapping_sub(counted);
                if !peer.streams.of(header.class).has_served(first, header.first_operation) {
                    return false;
                }
            }
            _ => return false,
        }
        number = number.wrapping_add(1);
    }
    number != header.first_operation
}
