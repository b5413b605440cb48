//! Fast reader of usual acknowledgement frames: a few streams, no gap and no bitmap.
//!
//! Like [`super::writes`] for data, it reads only the most frequent form, each byte once. [`super::packed`] reads all
//! other lists, valid or not.

use super::frame::StreamAck;
use super::layout::{OPERATION_HEADER, u16_at, u32_at};
use super::packed::ACK;
use crate::ids::Class;

/// Returns the acknowledgements of a list, or `None` if it contains anything else or more than there are classes.
#[must_use]
#[inline]
pub fn plain_acks(list: &[u8]) -> Option<[Option<StreamAck>; Class::COUNT]> {
    let mut acks = [None; Class::COUNT];
    if list.len() > OPERATION_HEADER * Class::COUNT || !list.len().is_multiple_of(OPERATION_HEADER) {
        return None;
    }
    for (slot, one) in acks.iter_mut().zip(list.chunks_exact(OPERATION_HEADER)) {
        let header = one.first_chunk::<OPERATION_HEADER>()?;
        let (kind, flags, bitmap_bytes) = (header[0], header[1], u16_at(header, 2));
        if kind != ACK || bitmap_bytes != 0 {
            return None;
        }
        let (psn, operation) = (u32_at(header, 4), u32_at(header, 8));
        // Flags that report a gap or a mark name no class here.
        *slot = Some(StreamAck { class: Class::from_number(flags)?, psn, operation });
    }
    Some(acks)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::super::packed::{Operation, Operations};
    use super::*;

    fn ack() -> impl Strategy<Value = (u8, u32, u32, bool, bool, Vec<u8>)> {
        let bitmap = prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec(any::<u8>(), 1..4)];
        (0_u8..4, any::<u32>(), any::<u32>(), prop::bool::weighted(0.1), prop::bool::weighted(0.1), bitmap)
    }

    proptest! {
        /// It accepts exactly the lists of acknowledgements without gaps, and agrees with the general reader on them.
        #[test]
        fn both_readers_agree(acks in prop::collection::vec(ack(), 0..6), cut in 0_usize..40, damage in any::<(bool, u8, u8)>()) {
            let mut list = Vec::new();
            for (class, psn, operation, hole, marked, bitmap) in &acks {
                let class = Class::from_number(*class).unwrap();
                Operation::Ack { class, psn: *psn, operation: *operation, hole: *hole, marked: *marked, bitmap }.encode(&mut list);
            }
            list.truncate(list.len().saturating_sub(cut.saturating_sub(30)));
            if let (true, at, bit) = damage && !list.is_empty() {
                let at = usize::from(at) % list.len();
                list[at] ^= 1 << (bit % 8);
            }
            let others: Option<Vec<StreamAck>> = Operations::new(&list)
                .map(|operation| match operation {
                    Ok(Operation::Ack { class, psn, operation, hole: false, marked: false, bitmap: [] }) => {
                        Some(StreamAck { class, psn, operation })
                    }
                    _ => None,
                })
                .collect();
            let expected = others.filter(|acks| acks.len() <= Class::COUNT);
            let found = plain_acks(&list).map(|acks| acks.into_iter().flatten().collect::<Vec<_>>());
            prop_assert_eq!(found, expected);
        }
    }
}
