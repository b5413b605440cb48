//! Processes that have the device, by seat.

use rackloom::fabric::NodeId;

/// Bits of the number of a queue pair below the number of its process.
const NUMBER_BITS: u32 = 20;
/// Largest number of processes of a seat.
pub const PROCESSES_MAX: usize = 1 << (24 - NUMBER_BITS);
/// First number of a queue pair within its process. Lower ones of the first process are reserved by the specification.
const FIRST: u32 = 0x10;

/// Members of the fabric that are processes, by the number of their seat and by their number within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    processes: Vec<Vec<NodeId>>,
}

/// Place of a process: its seat, and its number within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) seat: u32,
    pub(super) process: u32,
}

impl Directory {
    /// Returns the directory of seats with these processes.
    ///
    /// # Panics
    /// If a seat has more than [`PROCESSES_MAX`] processes.
    #[must_use]
    pub fn new(processes: Vec<Vec<NodeId>>) -> Self {
        assert!(
            processes.iter().all(|seat| seat.len() <= PROCESSES_MAX),
            "the numbers of queue pairs suffice"
        );
        Self { processes }
    }

    pub(super) fn seats(&self) -> u32 {
        u32::try_from(self.processes.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn place_of(&self, process: NodeId) -> Option<Place> {
        self.processes.iter().zip(0..).find_map(|(seat, number)| {
            let index = seat.iter().position(|member| *member == process)?;
            Some(Place { seat: number, process: u32::try_from(index).ok()? })
        })
    }

    /// Returns the processes of a seat.
    pub(super) fn processes(&self, seat: u32) -> &[NodeId] {
        let seat = usize::try_from(seat).ok().and_then(|seat| self.processes.get(seat));
        seat.map_or(&[], Vec::as_slice)
    }

    /// Returns the process with a queue pair of this number.
    pub(super) fn process(&self, seat: u32, queue_pair: u32) -> Option<NodeId> {
        let seat = self.processes.get(usize::try_from(seat).ok()?)?;
        seat.get(usize::try_from(queue_pair >> NUMBER_BITS).ok()?).copied()
    }
}

impl Place {
    /// Returns the numbers of the queue pairs of the process.
    pub(super) const fn queue_pairs(self) -> std::ops::RangeInclusive<u32> {
        let first = self.process << NUMBER_BITS;
        first + FIRST..=first + (1 << NUMBER_BITS) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_queue_pair_names_its_process() {
        let directory = Directory::new(vec![vec![NodeId(4), NodeId(5)], vec![NodeId(6), NodeId(7)]]);
        for (process, seat, number) in [(4, 0, 0), (5, 0, 1), (6, 1, 0), (7, 1, 1)] {
            let place = directory.place_of(NodeId(process)).expect("it is listed");
            assert_eq!(place, Place { seat, process: number });
            for queue_pair in [*place.queue_pairs().start(), *place.queue_pairs().end()] {
                assert_eq!(directory.process(seat, queue_pair), Some(NodeId(process)));
                assert!(queue_pair <= 0xff_ffff);
            }
        }
        assert_eq!(directory.place_of(NodeId(0)), None);
        assert_eq!(directory.process(0, 2 << NUMBER_BITS), None);
        assert_eq!(directory.process(9, 0x10), None);
    }
}
