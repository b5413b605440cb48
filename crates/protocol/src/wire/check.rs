//! Checks of a frame (wire-format section 3): per hop over the bytes that a hop changes, end to end over the others.

use crc_fast::{CrcAlgorithm, Digest, crc32_iscsi};

use super::layout::{
    END_TO_END_CHECK, FABRIC, FLAG_HOP_CHECK_OF_ALL, FLAG_NO_HOP_CHECK, FLAGS, HOP_CHECK, LENGTH, LINK,
    OPERATIONS, put_u32, u16_at,
};

/// Returns the CRC-32C (Castagnoli) of `bytes`. The check value over "123456789" is `0xE3069283`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32_iscsi(bytes)
}

fn crc32c_of_two(first: &[u8], second: &[u8]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(first);
    digest.update(second);
    digest.finalize() as u32
}

/// Returns the per-hop check of a frame. If `whole`, it covers the body too (frames that are not routed).
#[must_use]
pub fn hop_check(frame: &[u8], whole: bool) -> u32 {
    if whole {
        let end = FABRIC + usize::from(u16_at(frame, LENGTH));
        crc32c_of_two(&frame[LINK..HOP_CHECK], &frame[FABRIC..end])
    } else {
        crc32c(&frame[LINK..HOP_CHECK])
    }
}

/// Returns the end-to-end check of a routed frame, over everything after the link header except the check itself.
#[must_use]
pub fn end_to_end_check(frame: &[u8]) -> u32 {
    let end = FABRIC + usize::from(u16_at(frame, LENGTH));
    crc32c_of_two(&frame[FABRIC..END_TO_END_CHECK], &frame[OPERATIONS..end])
}

/// Returns true if the hop check of a routed frame is present and covers the body.
#[must_use]
pub fn is_sealed_as_a_whole(frame: &[u8]) -> bool {
    frame[FLAGS] & (FLAG_NO_HOP_CHECK | FLAG_HOP_CHECK_OF_ALL) == FLAG_HOP_CHECK_OF_ALL
}

// W-9
/// Computes and stores the end-to-end check of a complete frame.
pub fn seal_end_to_end(frame: &mut [u8]) {
    let check = end_to_end_check(frame);
    put_u32(frame, END_TO_END_CHECK, check);
}

/// Computes and stores the hop check of a complete routed frame, if it is present and covers the body.
pub fn seal_hop(frame: &mut [u8]) {
    let check = if is_sealed_as_a_whole(frame) { hop_check(frame, true) } else { 0 };
    put_u32(frame, HOP_CHECK, check);
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_published_check_value_of_crc_32c() {
        assert_eq!(super::crc32c(b"123456789"), 0xE306_9283);
    }
}
