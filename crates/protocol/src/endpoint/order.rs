//! Order scopes of a rack: how an endpoint keeps them, and the oracle that checks them.
//!
//! A receiver that executes packets in sequence keeps every promise within a class. Two scopes need more or allow
//! more. *Pair* orders both classes: a command waits until the operations of the other class are visible. *Region*
//! orders only puts that touch the same 256 bytes. Such puts go one after the other, and all others are written in
//! order of arrival. *Path* and *none* write every put on arrival. A signal always waits for the parts of its put
//! (W-35), and under *path* later packets on the same path wait behind it (W-46).
//!
//! The [`Witness`] is independent of the implementation. It checks each packet when it is executed: under *region* by
//! the lines that puts write, under *path* by the ports of arrival, else by packet numbers.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::Endpoint;
use super::peer::Peer;
use crate::config::OrderScope;
use crate::event::Event;
use crate::ids::{Class, PortId, RegionId};
use crate::link::credits::is_ahead;
use crate::operation::bulk::Bulk;
use crate::planted::{PlantedBug, is_planted};
use crate::wire::frame::FabricHeader;
use crate::wire::packed::{Operation, Operations};

/// Unit of order under [`OrderScope::Region`], in bytes.
const LINE_BYTES: u64 = 256;
/// Lines that a witness remembers per peer. A line that maps to the slot of another replaces it.
const LINES_WATCHED: usize = 4096;

/// Lines of 256 bytes that a put, or a part of one, touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lines {
    region: RegionId,
    first: u64,
    last: u64,
}

impl Lines {
    const fn of(region: RegionId, offset: u64, bytes: u64) -> Self {
        let last = offset.saturating_add(bytes.saturating_sub(1)) / LINE_BYTES;
        Self { region, first: offset / LINE_BYTES, last }
    }

    fn meet(&self, other: &Self) -> bool {
        self.region == other.region && self.first <= other.last && other.first <= self.last
    }
}

/// Relation of a command to earlier commands of the other class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Across {
    /// The earlier commands are visible, or their order does not matter.
    Follows,
    /// The command must wait for them.
    Waits,
    /// The command should wait but does not; its number.
    Overtakes { number: u32 },
}

// ---- order at the sender ---------------------------------------------------------------------------------------

/// Puts in flight to one node, of which overlapping ones must not be in flight together.
#[derive(Debug, Default)]
pub(super) struct Overlaps {
    /// Number of the last operation of each put, and its lines.
    under_way: VecDeque<(u32, Lines)>,
    /// True if the next put touches the lines of one in flight.
    pub(super) blocks: bool,
}

impl Overlaps {
    pub(super) fn clear(&mut self) {
        self.under_way.clear();
        self.blocks = false;
    }
}

impl Endpoint {
    /// Returns the relation of a command of this class to the other class. It matters only under *pair*.
    #[inline]
    pub(super) fn across_classes(&self, peer: &Peer, class: Class) -> Across {
        if self.config().paths.order == OrderScope::Pair {
            self.under_pair(peer, class)
        } else {
            Across::Follows
        }
    }

    #[cold]
    fn under_pair(&self, peer: &Peer, class: Class) -> Across {
        let other = if class == Class::Bulk { Class::Request } else { Class::Bulk };
        let sender = &peer.senders[other.index()];
        let is_settled = sender.visible() == sender.next_operation()
            && !peer.has_more_bulk(other)
            && !peer.outstanding[other.index()].has_reply_before(sender.next_operation());
        if is_settled {
            Across::Follows
        } else if self.config().paths.keeps_order {
            Across::Waits
        } else {
            Across::Overtakes { number: peer.senders[class.index()].next_operation() }
        }
    }

    /// Reports a violation if a command has begun that should have waited.
    #[inline]
    pub(super) fn note_across(&mut self, across: Across, class: Class) {
        if let Across::Overtakes { number } = across {
            let (source, scope) = (self.config().node, OrderScope::Pair);
            self.forwarder.push_event(Event::OrderBroken { source, class, scope, number });
        }
    }

    /// Under *region*: records that all of a put is in packets.
    pub(super) fn note_cut(&mut self, peer: &mut Peer, bulk: Bulk) {
        if !self.orders_regions() {
            return;
        }
        if let Bulk::Put { target, source, .. } = bulk
            && source.length > 0
        {
            let last = peer.senders[Class::Bulk.index()].next_operation().wrapping_sub(1);
            let lines = Lines::of(target.region, target.offset, source.length);
            peer.overlaps.under_way.push_back((last, lines));
        }
        self.judge_overlap(peer);
    }

    /// Under *region*: decides again if the next put must wait, after packets were cut, queued or became visible.
    #[inline]
    pub(super) fn judge_overlap(&self, peer: &mut Peer) {
        if self.orders_regions() {
            judge_front(peer);
        }
    }

    #[inline]
    fn orders_regions(&self) -> bool {
        let paths = self.config().paths;
        paths.order == OrderScope::Region && paths.keeps_order
    }

    /// Returns true if a held packet may be executed early. `place` is its slot, `port` its port of arrival.
    pub(super) fn takes_early(
        &self,
        peer: &Peer,
        (place, port): (usize, PortId),
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
        // W-46: earlier packets on this path, which usually are signals that wait for data, must not be overtaken.
        let overtakes = || {
            paths.order == OrderScope::Path && peer.receivers[header.class.index()].holds_before(place, port)
        };
        header.class == Class::Bulk && is_complete_put(peer, header, operations) && !overtakes()
    }
}

fn judge_front(peer: &mut Peer) {
    let visible = peer.senders[Class::Bulk.index()].visible();
    let overlaps = &mut peer.overlaps;
    while overlaps.under_way.front().is_some_and(|(last, _)| is_ahead(visible, *last)) {
        overlaps.under_way.pop_front();
    }
    overlaps.blocks = match peer.bulk[Class::Bulk.index()].front() {
        Some(Bulk::Put { target, source, first: None, .. }) if source.length > 0 => {
            let lines = Lines::of(target.region, target.offset, source.length);
            overlaps.under_way.iter().any(|(_, other)| other.meet(&lines))
        }
        _ => false,
    };
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
                if !peer.has_served(header.class, first, header.first_operation) {
                    return false;
                }
            }
            _ => return false,
        }
        number = number.wrapping_add(1);
    }
    number != header.first_operation
}

// ---- order oracle ----------------------------------------------------------------------------------------------

/// Checks that packets of one node are executed in the promised order.
#[derive(Debug)]
pub(super) struct Witness {
    scope: OrderScope,
    /// Next packet number to execute, by class.
    next: [u32; Class::COUNT],
    /// Under *path*: the last packet by port and class.
    ways: Vec<(PortId, Class, u32)>,
    /// Under *region*: the last writer, by slot of the line.
    lines: Vec<Option<Written>>,
}

/// Last writer of a line: the packet, and the start of its put.
#[derive(Clone, Copy, Debug)]
struct Written {
    region: RegionId,
    line: u64,
    psn: u32,
    start: u64,
}

impl Witness {
    pub(super) const fn new(scope: OrderScope) -> Self {
        Self { scope, next: [0; Class::COUNT], ways: Vec::new(), lines: Vec::new() }
    }

    /// Checks a packet that is executed. Returns the violated scope, if any.
    #[inline]
    pub(super) fn see(
        &mut self,
        header: &FabricHeader,
        port: PortId,
        operations: &[u8],
    ) -> Option<OrderScope> {
        let holds = match self.scope {
            OrderScope::Pair | OrderScope::Class => self.is_next(header.class, header.psn),
            OrderScope::Region => self.follows_in_its_lines(header, operations),
            OrderScope::Path => self.follows_on_its_way(header, port),
            OrderScope::None => true,
        };
        (!holds).then_some(self.scope)
    }

    /// Checks a packet by its number only, where packets are executed in sequence.
    #[inline]
    pub(super) fn see_number(&mut self, class: Class, psn: u32) -> Option<OrderScope> {
        let counts = matches!(self.scope, OrderScope::Pair | OrderScope::Class);
        (counts && !self.is_next(class, psn)).then_some(self.scope)
    }

    #[inline]
    fn is_next(&mut self, class: Class, psn: u32) -> bool {
        let next = &mut self.next[class.index()];
        let is_next = psn == *next;
        *next = psn.wrapping_add(1);
        is_next
    }

    /// A retransmitted packet is later than packets sent in the meantime, and is not late itself.
    fn follows_on_its_way(&mut self, header: &FabricHeader, port: PortId) -> bool {
        if header.again {
            return true;
        }
        let known = self.ways.iter_mut().find(|(way, class, _)| (*way, *class) == (port, header.class));
        let Some((_, _, last)) = known else {
            self.ways.push((port, header.class, header.psn));
            return true;
        };
        let follows = is_ahead(header.psn, *last);
        *last = header.psn;
        follows
    }

    fn follows_in_its_lines(&mut self, header: &FabricHeader, operations: &[u8]) -> bool {
        let mut selected = RegionId(u32::MAX);
        let mut follows = true;
        for operation in Operations::new(operations) {
            match operation {
                Ok(Operation::Select { region, .. }) => selected = region,
                Ok(Operation::Put { offset, start, data, .. }) => {
                    let lines = Lines::of(selected, offset, data.len() as u64);
                    for line in lines.first..=lines.last {
                        follows &= self.write(Written { region: selected, line, psn: header.psn, start });
                    }
                }
                _ => {}
            }
        }
        follows
    }

    /// Records the writer of a line. Parts of one put may come in any order.
    fn write(&mut self, new: Written) -> bool {
        self.lines.resize(LINES_WATCHED, None);
        let stirred =
            (new.line ^ u64::from(new.region.0).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = &mut self.lines[(stirred >> 52) as usize];
        let old = slot.replace(new);
        let old = old.filter(|old| (old.region, old.line) == (new.region, new.line));
        old.is_none_or(|old| old.start == new.start || is_ahead(new.psn, old.psn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(offset: u64, bytes: u64) -> Lines {
        Lines::of(RegionId(1), offset, bytes)
    }

    #[test]
    fn lines_meet_where_they_share_256_bytes() {
        assert!(lines(0, 256).meet(&lines(255, 1)));
        assert!(!lines(0, 256).meet(&lines(256, 1)));
        assert!(lines(100, 300).meet(&lines(511, 1)));
        assert!(!lines(0, 256).meet(&Lines::of(RegionId(2), 0, 256)));
    }

    #[test]
    fn a_line_is_written_in_order_but_parts_of_one_put_in_any() {
        let mut witness = Witness::new(OrderScope::Region);
        let mut write = |psn, start| witness.write(Written { region: RegionId(1), line: 9, psn, start });
        assert!(write(5, 0));
        assert!(write(4, 0), "another part of the same put");
        assert!(!write(3, 64), "an earlier put after a later one");
        assert!(write(6, 64));
    }
}
