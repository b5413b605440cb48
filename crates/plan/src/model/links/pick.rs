//! Selection of single data frames by kinds of operations, or by a range of packet numbers.
//!
//! Faults use it to affect an operation rather than a share of all traffic. A pick reads a frame as it leaves and does not change
//! it. Frames without operations are never picked.

use rackloom_protocol::wire::FrameKind;
use rackloom_protocol::wire::layout::{OPERATIONS, PSN, u32_at};
use rackloom_protocol::wire::packed::{Operation, Operations};

/// Names of operations in frames, in the order of their bits.
pub(crate) const OPERATION_NAMES: &[&str] = &[
    "store",
    "load",
    "atomic",
    "signal",
    "put",
    "get",
    "message",
    "offer",
    "pull",
    "load-reply",
    "atomic-reply",
    "get-data",
    "received",
    "refusal",
];

/// Selection of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pick {
    /// One bit for each kind of operation. A frame must carry one of them. Zero permits all kinds.
    operations: u16,
    /// First and last packet number.
    sequence: Option<(u32, u32)>,
}

impl Pick {
    /// Returns a selection of frames that carry an operation of one of these kinds (indices in [`OPERATION_NAMES`]) and whose packet
    /// number is in this range.
    pub(crate) fn new(operations: impl IntoIterator<Item = usize>, sequence: Option<(u32, u32)>) -> Self {
        Self { operations: operations.into_iter().fold(0, |bits, index| bits | 1 << index), sequence }
    }

    /// Returns a selection of frames that carry one of these operations, and whose packet number is not below the first and not above
    /// the last number of `sequence`. Without names any operation matches, and without two numbers any packet number.
    pub(crate) fn named(operations: &[&str], sequence: &[u32]) -> Self {
        let index = |name: &&str| OPERATION_NAMES.iter().position(|known| known == name);
        let sequence = if let [first, last] = *sequence { Some((first, last)) } else { None };
        Self::new(operations.iter().filter_map(index), sequence)
    }

    /// Returns true if the selection has a condition.
    pub(crate) fn is_any(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the names of the operations, in order.
    pub(crate) fn operations(&self) -> impl Iterator<Item = &'static str> {
        let bits = self.operations;
        OPERATION_NAMES
            .iter()
            .enumerate()
            .filter(move |(index, _)| bits & 1 << index != 0)
            .map(|(_, name)| *name)
    }

    /// Returns the first and last packet number, or `None` if all numbers match.
    pub(crate) const fn sequence(&self) -> Option<(u32, u32)> {
        self.sequence
    }

    /// Returns true if the frame matches.
    #[must_use]
    pub fn meets(&self, frame: &[u8]) -> bool {
        if FrameKind::peek(frame) != Some(FrameKind::Data) || frame.len() < OPERATIONS {
            return false;
        }
        let number = u32_at(frame, PSN);
        let is_in_range = self.sequence.is_none_or(|(first, last)| (first..=last).contains(&number));
        is_in_range && (self.operations == 0 || self.operations & carried(&frame[OPERATIONS..]) != 0)
    }
}

/// Returns one bit for each kind of operation in a frame.
fn carried(operations: &[u8]) -> u16 {
    Operations::new(operations)
        .map_while(Result::ok)
        .filter_map(|one| index(&one))
        .fold(0, |bits, index| bits | 1 << index)
}

const fn index(operation: &Operation<'_>) -> Option<u16> {
    Some(match operation {
        Operation::Store { .. } => 0,
        Operation::Load { .. } => 1,
        Operation::Atomic { .. } => 2,
        Operation::Signal { .. } => 3,
        Operation::Put { .. } => 4,
        Operation::Get { .. } => 5,
        Operation::Message { .. } => 6,
        Operation::Offer { .. } => 7,
        Operation::Pull { .. } => 8,
        Operation::LoadReply { .. } => 9,
        Operation::AtomicReply { .. } => 10,
        Operation::GetData { .. } => 11,
        Operation::Received { .. } => 12,
        Operation::Refusal { .. } => 13,
        Operation::Select { .. }
        | Operation::Ack { .. }
        | Operation::Grant { .. }
        | Operation::Void { .. } => {
            return None;
        }
    })
}

#[cfg(test)]
mod tests {
    use rackloom_protocol::wire::layout::{VERSION_KIND, put_u32};
    use rackloom_protocol::{Key, RegionId};

    use super::*;

    /// Returns a data frame with these operations, with the fields that a pick reads.
    fn frame(number: u32, operations: &[Operation<'_>]) -> Vec<u8> {
        let mut frame = vec![0; OPERATIONS];
        frame[VERSION_KIND] = FrameKind::Data as u8;
        put_u32(&mut frame, PSN, number);
        operations.iter().for_each(|operation| operation.encode(&mut frame));
        frame
    }

    fn named(names: &[&str]) -> Pick {
        let index = |name: &&str| OPERATION_NAMES.iter().position(|known| known == name).expect("a name");
        Pick::new(names.iter().map(index), None)
    }

    #[test]
    fn a_frame_is_picked_by_any_of_its_operations_behind_a_selection() {
        let select = Operation::Select { region: RegionId(1), key: Key(2) };
        let both = frame(
            7,
            &[
                select,
                Operation::Store { offset: 0, data: &[1; 9] },
                Operation::Load { offset: 0, length: 8 },
            ],
        );
        assert!(named(&["store"]).meets(&both) && named(&["load"]).meets(&both));
        assert!(named(&["put", "load"]).meets(&both));
        assert!(!named(&["put", "signal", "atomic"]).meets(&both));
        let mut other = both;
        other[VERSION_KIND] = FrameKind::Ack as u8;
        assert!(!named(&["store"]).meets(&other), "no data");
    }

    #[test]
    fn a_range_of_packet_numbers_holds_its_ends() {
        let pick = Pick::new([], Some((3, 5)));
        let picked: Vec<_> = (1..8).filter(|number| pick.meets(&frame(*number, &[]))).collect();
        assert_eq!(picked, [3, 4, 5]);
        assert!(!pick.meets(&[]));
    }

    #[test]
    fn each_name_has_a_bit_of_its_own() {
        let pick = Pick::new(0..OPERATION_NAMES.len(), None);
        assert!(pick.operations().eq(OPERATION_NAMES.iter().copied()));
        assert!(pick.is_any() && !Pick::default().is_any());
    }
}
