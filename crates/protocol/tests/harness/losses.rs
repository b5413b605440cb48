//! Losses: reproducible filters and random choices.

use rackloom_protocol::wire::frame::FrameKind;

use super::Filter;

/// Returns a reproducible filter that drops frames with probability `permille` / 1000.
pub fn lossy(permille: u64, seed: u64) -> Filter {
    let mut state = seed;
    Box::new(move |_, _, _, _| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % 1000 >= permille
    })
}

/// Returns a reproducible filter that drops frames of the transport, with probability `permille` / 1000, and
/// no frame of a link.
pub fn lossy_data_and_acks(permille: u64, seed: u64) -> Filter {
    let mut any = lossy(permille, seed);
    Box::new(move |now, edge, forward, bytes| match FrameKind::peek(bytes) {
        Some(FrameKind::Data | FrameKind::Ack) => any(now, edge, forward, bytes),
        _ => true,
    })
}

/// Returns a random choice that is true once in eight times.
pub fn one_in_eight(seed: u64) -> impl FnMut() -> bool {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 61 == 0
    }
}
