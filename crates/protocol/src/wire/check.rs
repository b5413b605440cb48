//! The two checks (wire-format section 3): per hop over what a hop changes, end to end over what no hop may change.

use crc_fast::{CrcAlgorithm, Digest, crc32_iscsi};

use super::layout::{
    END_TO_END_CHECK, FABRIC, FLAG_HOP_CHECK_OF_ALL, FLAG_NO_HOP_CHECK, FLAGS, HOP_CHECK, LENGTH, LINK,
    OPERATIONS, put_u32, u16_at,
};

/// CRC-32C (Castagnoli) of `bytes`; its check value over "123456789" is `0xE3069283`.
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

/// The per-hop check of a frame. `whole`: the body belongs to the hop too (frames that are not routed).
#[must_use]
pub fn hop_check(frame: &[u8], whole: bool) -> u32 {
    if whole {
        let end = FABRIC + usize::from(u16_at(frame, LENGTH));
        crc32c_of_two(&frame[LINK..HOP_CHECK], &frame[FABRIC..end])
    } else {
        crc32c(&frame[LINK..HOP_CHECK])
    }
}

/// The end-to-end check of a routed frame: everything after the link header except the check itself.
#[must_use]
pub fn end_to_end_check(frame: &[u8]) -> u32 {
    let end = FABRIC + usize::from(u16_at(frame, LENGTH));
    crc32c_of_two(&frame[FABRIC..END_TO_END_CHECK], &frame[OPERATIONS..end])
}

/// Whether the hop check of a routed frame is there and covers its body.
#[must_use]
pub fn is_sealed_as_a_whole(frame: &[u8]) -> bool {
    frame[FLAGS] & (FLAG_NO_HOP_CHECK | FLAG_HOP_CHECK_OF_ALL) == FLAG_HOP_CHECK_OF_ALL
}

// W-9
/// Compute and store the end-to-end check of a complete frame.
pub fn seal_end_to_end(frame: &mut [u8]) {
    let check = end_to_end_check(frame);
    put_u32(frame, END_TO_END_CHECK, check);
}

/// Compute and store the hop check of a complete routed frame whose check covers the body, if it carries one.
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
