//! Order oracle: checks that packets are executed in the promised order, independently of the code that keeps it.
//!
//! It checks each packet when it is executed: under *region* by the lines that puts write, under *path* by the ports of
//! arrival, else by packet numbers.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::config::OrderScope;
use crate::endpoint::order::overlaps::Lines;
use crate::ids::{Class, PortId, RegionId};
use crate::link::credits::is_ahead;
use crate::wire::frame::FabricHeader;
use crate::wire::packed::{Operation, Operations};

/// Lines that the oracle stores per peer. A line that maps to the slot of another replaces it.
const LINES_WATCHED: usize = 4096;

/// Checks that packets of one node are executed in the promised order.
#[derive(Debug)]
pub(in crate::endpoint) struct OrderOracle {
    scope: OrderScope,
    /// Next packet number to execute, by class.
    next: [u32; Class::COUNT],
    /// Under *path* and *region*.
    seen: Option<Box<Seen>>,
}

/// Packets seen on a path, and writers seen of a line.
#[derive(Debug, Default)]
struct Seen {
    /// Under *path*: the last packet by port and class.
    paths: Vec<(PortId, Class, u32)>,
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

impl OrderOracle {
    pub(in crate::endpoint) const fn new(scope: OrderScope) -> Self {
        Self { scope, next: [0; Class::COUNT], seen: None }
    }

    /// Checks a packet that is executed. Returns the violated scope, if any.
    #[inline]
    pub(in crate::endpoint) fn see(
        &mut self,
        header: &FabricHeader,
        port: PortId,
        operations: &[u8],
    ) -> Option<OrderScope> {
        let holds = match self.scope {
            OrderScope::Pair | OrderScope::Class => self.is_next(header.class, header.psn),
            OrderScope::Region => self.follows_in_its_lines(header, operations),
            OrderScope::Path => self.follows_on_its_path(header, port),
            OrderScope::None => true,
        };
        (!holds).then_some(self.scope)
    }

    /// Checks a packet by its number only, where packets are executed in sequence.
    #[inline]
    pub(in crate::endpoint) fn see_number(&mut self, class: Class, psn: u32) -> Option<OrderScope> {
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
    fn follows_on_its_path(&mut self, header: &FabricHeader, port: PortId) -> bool {
        if header.again {
            return true;
        }
        let paths = &mut self.seen.get_or_insert_default().paths;
        let known = paths.iter_mut().find(|(path, class, _)| (*path, *class) == (port, header.class));
        let Some((_, _, last)) = known else {
            paths.push((port, header.class, header.psn));
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
        let lines = &mut self.seen.get_or_insert_default().lines;
        lines.resize(LINES_WATCHED, None);
        let mixed = (new.line ^ u64::from(new.region.0).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = &mut lines[(mixed >> 52) as usize];
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
        assert!(lines(0, 256).touches(&lines(255, 1)));
        assert!(!lines(0, 256).touches(&lines(256, 1)));
        assert!(lines(100, 300).touches(&lines(511, 1)));
        assert!(!lines(0, 256).touches(&Lines::of(RegionId(2), 0, 256)));
    }

    #[test]
    fn a_line_is_written_in_order_but_parts_of_one_put_in_any() {
        let mut order_oracle = OrderOracle::new(OrderScope::Region);
        let mut write = |psn, start| order_oracle.write(Written { region: RegionId(1), line: 9, psn, start });
        assert!(write(5, 0));
        assert!(write(4, 0), "another part of the same put");
        assert!(!write(3, 64), "an earlier put after a later one");
        assert!(write(6, 64));
    }
}
