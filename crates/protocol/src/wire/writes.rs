//! Fast reader of the usual list of operations: one select, then only stores and parts of puts.
//!
//! It reads only the most frequent form, each header once and without intermediate values. [`super::packed`] reads
//! all other lists, valid or not.

use super::layout::{OPERATION_HEADER, u16_at, u32_at, u64_at};
use super::packed::{PUT, PUT_BYTES, SELECT, SELECT_BYTES, STORE};
use crate::ids::{Key, RegionId};

/// One write: a range of the list, and its destination in the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// First byte in the region.
    pub offset: u64,
    /// First byte of the whole range of the operation: of the store, or of the whole put.
    pub start: u64,
    /// Length of the whole range, in bytes.
    pub total: u64,
    /// Offset of the bytes in the list.
    pub at: usize,
    /// Number of bytes.
    pub length: usize,
}

/// Writes of a list to the address that its select names.
#[derive(Clone, Copy, Debug)]
pub struct Writes<'a> {
    /// Region of all writes.
    pub region: RegionId,
    /// Key for that region.
    pub key: Key,
    list: &'a [u8],
    at: usize,
}

impl<'a> Writes<'a> {
    /// Returns the writes of a list that begins with a select, or `None` if it begins otherwise.
    #[must_use]
    #[inline]
    pub fn of(list: &'a [u8]) -> Option<Self> {
        let select = list.first_chunk::<SELECT_BYTES>()?;
        let is_select = select[0] == SELECT && u16_at(select, 2) == 4;
        is_select.then(|| {
            let (region, key) = (RegionId(u32_at(select, OPERATION_HEADER)), Key(u64_at(select, 4)));
            Self { region, key, list, at: SELECT_BYTES }
        })
    }

    /// Returns true if the whole list was read.
    #[must_use]
    #[inline]
    pub const fn is_over(&self) -> bool {
        self.at == self.list.len()
    }

    /// Returns the next write, or `None` at the end, before any other operation, or before a malformed one.
    #[inline]
    pub fn take(&mut self) -> Option<Write> {
        let rest = self.list.get(self.at..)?;
        let header = rest.first_chunk::<OPERATION_HEADER>()?;
        let (kind, bytes, offset) = (header[0], usize::from(u16_at(header, 2)), u64_at(header, 4));
        let end = self.at + OPERATION_HEADER + bytes;
        if end > self.list.len() {
            return None;
        }
        let write = if kind == STORE {
            let (at, total) = (self.at + OPERATION_HEADER, bytes as u64);
            Write { offset, start: offset, total, at, length: bytes }
        } else if kind == PUT {
            let range = rest.first_chunk::<PUT_BYTES>()?;
            let (start, total) =
                (u64_at(range, OPERATION_HEADER), u64_at(range, OPERATION_HEADER + size_of::<u64>()));
            let length = bytes.checked_sub(PUT_BYTES - OPERATION_HEADER)?;
            Write { offset, start, total, at: self.at + PUT_BYTES, length }
        } else {
            return None;
        };
        self.at = end;
        Some(write)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::super::packed::{Operation, Operations};
    use super::*;

    /// Returns the result of the general reader for a list of one select and only writes.
    fn by_the_other(list: &[u8]) -> Option<((RegionId, Key), Vec<Write>)> {
        let mut reader = Operations::new(list);
        let Some(Ok(Operation::Select { region, key })) = reader.next() else { return None };
        let mut writes = Vec::new();
        while let Some(operation) = reader.next() {
            let (offset, start, total, data) = match operation.ok()? {
                Operation::Store { offset, data } => (offset, offset, data.len() as u64, data),
                Operation::Put { offset, start, total, data } => (offset, start, total, data),
                _ => return None,
            };
            let (at, length) = (reader.position() - data.len(), data.len());
            writes.push(Write { offset, start, total, at, length });
        }
        Some(((region, key), writes))
    }

    fn by_this(list: &[u8]) -> Option<((RegionId, Key), Vec<Write>)> {
        let mut rest = Writes::of(list)?;
        let mut writes = Vec::new();
        while !rest.is_over() {
            writes.push(rest.take()?);
        }
        Some(((rest.region, rest.key), writes))
    }

    fn operation() -> impl Strategy<Value = Vec<u8>> {
        let select = (any::<u32>(), any::<u64>()).prop_map(|(region, key)| {
            encoded(&Operation::Select { region: RegionId(region), key: Key(key) })
        });
        let data = || prop::collection::vec(any::<u8>(), 0..100);
        let store = (any::<u64>(), data())
            .prop_map(|(offset, data)| encoded(&Operation::Store { offset, data: &data }));
        let put = (any::<[u64; 3]>(), data()).prop_map(|([offset, start, total], data)| {
            encoded(&Operation::Put { offset, start, total, data: &data })
        });
        let get = any::<u64>().prop_map(|offset| encoded(&Operation::Get { offset, length: 9 }));
        prop_oneof![1 => select, 8 => store, 4 => put, 1 => get]
    }

    fn encoded(operation: &Operation<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        operation.encode(&mut bytes);
        bytes
    }

    proptest! {
        /// Both readers agree on whole and damaged lists, whenever this one accepts the list.
        #[test]
        fn both_readers_agree(
            rest in prop::collection::vec(operation(), 0..8),
            cut in 0_usize..40,
            flip in any::<(bool, prop::sample::Index, u8)>(),
        ) {
            let mut list = encoded(&Operation::Select { region: RegionId(3), key: Key(4) });
            rest.iter().for_each(|operation| list.extend_from_slice(operation));
            if cut < 20 {
                list.truncate(list.len() - cut.min(list.len()));
            }
            let (flips, at, bits) = flip;
            if flips && !list.is_empty() {
                let at = at.index(list.len());
                list[at] ^= bits;
            }
            prop_assert_eq!(by_this(&list), by_the_other(&list));
        }
    }
}
