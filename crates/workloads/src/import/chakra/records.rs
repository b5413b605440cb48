//! Records of a file: a length as a varint, and a message of that length.

use crate::error::{Place, WorkloadError};

/// Longest record in bytes that is read, so that a message cannot fill the memory.
const RECORD_BYTES_MAX: u64 = 1 << 24;

/// Records of a file, in order, with their numbers from 0.
#[derive(Debug)]
pub(super) struct Records<'f> {
    rest: &'f [u8],
    next: u64,
}

impl<'f> Records<'f> {
    /// Returns the records of a file.
    pub(super) const fn new(bytes: &'f [u8]) -> Self {
        Self { rest: bytes, next: 0 }
    }

    /// Reads one record.
    fn read(&mut self, record: u64) -> Result<&'f [u8], WorkloadError> {
        let refused =
            |reason: String, hint: &str| Err(WorkloadError::at(Place::Record { record }, reason, hint));
        let Some((length, rest)) = varint(self.rest) else {
            return refused("the length of the record is cut off or too long".to_owned(), CUT);
        };
        if length > RECORD_BYTES_MAX {
            let hint = "a node is far smaller; the file is no trace, or is damaged";
            return refused(
                format!("the record has {length} bytes, and at most {RECORD_BYTES_MAX} are read"),
                hint,
            );
        }
        let Some((record, rest)) = rest.split_at_checked(length as usize) else {
            return refused(format!("the record has {length} bytes, and {} are left", rest.len()), CUT);
        };
        self.rest = rest;
        Ok(record)
    }
}

const CUT: &str = "the file is cut off or damaged; copy it again";

impl<'f> Iterator for Records<'f> {
    type Item = Result<(u64, &'f [u8]), WorkloadError>;

    /// Returns the next record with its number. Nothing follows a mistake.
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = self.next;
        self.next += 1;
        let read = self.read(record);
        if read.is_err() {
            self.rest = &[];
        }
        Some(read.map(|bytes| (record, bytes)))
    }
}

/// Returns a varint of up to 64 bits, and the bytes behind it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7F);
        value |= bits.checked_shl(7 * index as u32).filter(|shifted| shifted >> (7 * index) == bits)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_several_bytes_are_read() {
        assert_eq!(varint(&[0x05, 9]), Some((5, &[9][..])));
        assert_eq!(varint(&[0xAC, 0x02]), Some((300, &[][..])));
        let largest = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];
        assert_eq!(varint(&largest), Some((u64::MAX, &[][..])));
        let beyond = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02];
        assert_eq!((varint(&beyond), varint(&[0x80]), varint(&[])), (None, None, None));
    }

    #[test]
    fn records_follow_each_other_up_to_a_mistake() {
        let records: Vec<_> = Records::new(&[1, 7, 0, 2, 8, 9, 3, 1]).collect();
        assert_eq!(records[..3], [Ok((0, &[7][..])), Ok((1, &[][..])), Ok((2, &[8, 9][..]))]);
        assert_eq!(records.len(), 4);
        let error = records[3].clone().unwrap_err().to_string();
        assert!(error.starts_with("record 3: the record has 3 bytes, and 1 are left"), "{error}");
    }

    #[test]
    fn a_length_of_a_terabyte_is_refused_before_memory_is_taken() {
        let mut records = Records::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x20]);
        let error = records.next().unwrap().unwrap_err().to_string();
        assert!(error.starts_with("record 0: the record has 1099511627776 bytes"), "{error}");
        assert!(records.next().is_none());
    }
}
