//! Tests of two ends of a link in memory, with a recorder between them.

use std::time::Instant as WallInstant;

use proptest::prelude::*;
use rackloom_protocol::{Instant, NodeId, Plane};

use super::*;

const STEP_NS: u64 = 1_000_000;

/// Creates one end. A larger `run` is a later opening.
fn end(key: u8, here: u16, run: u64) -> LinkSeal {
    let ends = LinkEnds {
        edge: 3,
        mine: NodeId(here),
        theirs: NodeId(1 - here),
        plane: Plane(0),
        ether_type: 0x88b5,
        epoch: 7,
    };
    LinkSeal::new(RackKey::of_secret(&[key; 32]), ends, EndNonce::new(1000 + run, [here as u8; 8]))
}

fn pair(key: u8, run: u64) -> [LinkSeal; 2] {
    [end(key, 0, run), end(key, 1, run)]
}

/// Returns the greetings that an end sends now.
fn greetings(end: &mut LinkSeal, now: Instant) -> Vec<Vec<u8>> {
    let mut out = [0; GREETING_BYTES];
    let mut sent = Vec::new();
    while end.answer(&mut out).is_some() {
        sent.push(out.to_vec());
    }
    if end.greeting(now, &mut out).is_some() {
        sent.push(out.to_vec());
    }
    sent
}

/// Exchanges greetings for `steps` steps. `is_lost` decides which greetings do not arrive. Returns all sent greetings, by sender.
fn exchange_greetings(
    ends: &mut [LinkSeal; 2],
    steps: u64,
    mut is_lost: impl FnMut() -> bool,
) -> [Vec<Vec<u8>>; 2] {
    let mut sent = [Vec::new(), Vec::new()];
    for step in 0..steps {
        for from in [0, 1] {
            for greeting in greetings(&mut ends[from], Instant(step * STEP_NS)) {
                if !is_lost() {
                    assert_eq!(ends[1 - from].open(&greeting), None);
                }
                sent[from].push(greeting);
            }
        }
    }
    sent
}

fn agreed(key: u8, run: u64) -> [LinkSeal; 2] {
    let mut ends = pair(key, run);
    exchange_greetings(&mut ends, 4, || false);
    assert!(ends.iter().all(LinkSeal::is_agreed));
    ends
}

/// Seals a frame that resembles one of version 1.
fn sealed(end: &mut LinkSeal, body: &[u8]) -> Vec<u8> {
    let mut out = [&[0x11; 46], body, &[0; TRAILER_BYTES]].concat();
    let length = end.close(&mut out, 46 + body.len()).expect("both have agreed");
    assert_eq!(length, out.len());
    out
}

// W-91, W-92
#[test]
fn what_one_end_seals_the_other_opens() {
    let [mut a, mut b] = agreed(1, 0);
    for body in [&b""[..], b"x", &[7; 4096]] {
        let frame = sealed(&mut a, body);
        assert_eq!(b.open(&frame), Some(46 + body.len()));
        let frame = sealed(&mut b, body);
        assert_eq!(a.open(&frame), Some(46 + body.len()));
    }
    assert_eq!((a.refused(), b.refused()), ((0, 0), (0, 0)));
    assert_eq!(a.next_due(), Instant::NEVER, "nothing is left to be said");
}

// W-91
#[test]
fn nothing_is_sent_before_both_nonces_are_known() {
    let mut alone = end(1, 0, 0);
    assert_eq!(alone.close(&mut [0; 100], 50), None);
    assert!(!alone.is_agreed() && alone.next_due() == Instant::ZERO);
}

// W-92
#[test]
fn a_frame_with_any_flipped_bit_is_refused() {
    let [mut a, mut b] = agreed(1, 0);
    let frame = sealed(&mut a, b"some bytes");
    for bit in 0..frame.len() * 8 {
        let mut torn = frame.clone();
        torn[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(b.open(&torn), None, "{bit}");
    }
    for length in 0..frame.len() {
        assert_eq!(b.open(&frame[..length]), None, "{length}");
    }
    assert_eq!(b.open(&[&frame[..], &[0]].concat()), None);
    assert_eq!(b.refused().0, (frame.len() * 9 + 1) as u64, "each is counted");
    assert_eq!(b.open(&frame), Some(56), "and changes nothing");
}

// W-91
#[test]
fn a_greeting_with_any_flipped_bit_is_refused() {
    let [mut a, mut b] = pair(1, 0);
    let greeting = greetings(&mut a, Instant::ZERO).remove(0);
    for bit in 0..greeting.len() * 8 {
        let mut torn = greeting.clone();
        torn[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(b.open(&torn), None);
    }
    assert_eq!(b.refused().0, (greeting.len() * 8) as u64);
    assert!(b.candidate.is_none() && b.pending_answers.is_empty());
}

// W-93
#[test]
fn a_frame_is_taken_once_and_networks_may_reorder() {
    let [mut a, mut b] = agreed(1, 0);
    let mut frames: Vec<_> = (0..64).map(|body| sealed(&mut a, &[body])).collect();
    frames.reverse();
    assert!(frames.iter().all(|frame| b.open(frame).is_some()));
    assert!(frames.iter().all(|frame| b.open(frame).is_none()));
    assert_eq!(b.refused(), (0, 64));
    let late = sealed(&mut a, b"late");
    for body in 0..64 {
        let frame = sealed(&mut a, &[body]);
        assert!(b.open(&frame).is_some());
    }
    assert!(b.open(&late).is_none(), "what is that late is refused as a repetition");
}

// W-91, W-92
#[test]
fn another_key_another_link_and_the_other_direction_are_refused() {
    let [mut a, _] = pair(1, 0);
    let [_, mut b] = pair(2, 0);
    for step in 0..10 {
        for greeting in greetings(&mut a, Instant(step * 2 * STEP_NS)) {
            assert_eq!(b.open(&greeting), None);
        }
    }
    assert!(!b.is_agreed() && b.refused() == (10, 0));

    let [mut a, mut b] = agreed(1, 0);
    let frame = sealed(&mut a, b"reflected");
    assert_eq!(a.open(&frame), None, "no end takes what it has sent");
    b.ends.edge = 4;
    b.agree(a.mine);
    assert_eq!(b.open(&frame), None, "nor does an end of a parallel link");
}

// W-91
#[test]
fn frames_and_greetings_of_an_earlier_run_are_refused() {
    let mut earlier = pair(1, 0);
    let [early_greetings, _] = exchange_greetings(&mut earlier, 4, || false);
    let mut old: Vec<_> = (0..10).map(|body| sealed(&mut earlier[0], &[body])).collect();
    old.extend(early_greetings);

    let mut ends = pair(1, 1);
    let replay = |end: &mut LinkSeal| {
        for frame in &old {
            assert_eq!(end.open(frame), None);
        }
    };
    replay(&mut ends[1]);
    assert!(!ends[1].is_agreed(), "no earlier run could know this end's nonce");
    exchange_greetings(&mut ends, 4, || false);
    assert!(ends.iter().all(LinkSeal::is_agreed), "nor does it keep the ends apart");
    let before = ends[1].refused();
    replay(&mut ends[1]);
    let after = ends[1].refused();
    assert_eq!(after.0 + after.1 - before.0 - before.1, old.len() as u64, "each is counted");
    let frame = sealed(&mut ends[0], b"now");
    assert!(ends[1].open(&frame).is_some());
}

// W-91
#[test]
fn a_flood_of_greetings_of_earlier_runs_does_not_keep_the_ends_apart() {
    let old: Vec<_> =
        (0..20).map(|run| pair(1, run).map(|mut end| greetings(&mut end, Instant::ZERO).remove(0))).collect();
    let mut ends = pair(1, 99);
    for step in 0..10 {
        for (here, there) in [(0, 1), (1, 0)] {
            let sent = greetings(&mut ends[here], Instant(step * STEP_NS));
            sent.iter().for_each(|greeting| assert_eq!(ends[there].open(greeting), None));
            old.iter().for_each(|greetings| assert_eq!(ends[there].open(&greetings[here]), None));
        }
    }
    assert!(ends.iter().all(LinkSeal::is_agreed));
}

// W-91
#[test]
fn an_end_that_is_opened_again_is_found_and_its_past_is_refused() {
    let mut ends = pair(1, 0);
    let [mut past, _] = exchange_greetings(&mut ends, 4, || false);
    past.push(sealed(&mut ends[0], b"before"));
    let [_, b] = ends;
    let mut ends = [end(1, 0, 1), b];
    exchange_greetings(&mut ends, 6, || false);
    let frame = sealed(&mut ends[0], b"after");
    assert!(ends[1].open(&frame).is_some());
    for frame in &past {
        assert_eq!(ends[1].open(frame), None);
    }
    let frame = sealed(&mut ends[0], b"still");
    assert!(ends[1].open(&frame).is_some(), "a repeated greeting does not bring the past back");
}

// W-91
#[test]
fn a_greeting_that_is_never_confirmed_ends_nothing() {
    let mut ends = agreed(1, 0);
    let mut later = end(1, 0, 9);
    let greeting = greetings(&mut later, Instant::ZERO).remove(0);
    assert_eq!(ends[1].open(&greeting), None);
    let frame = sealed(&mut ends[0], b"the session holds");
    assert!(ends[1].open(&frame).is_some());
    exchange_greetings(&mut ends, 2 * CANDIDATE_NS / STEP_NS, || false);
    assert_eq!(ends[1].next_due(), Instant::NEVER, "it is forgotten");
}

proptest! {
    #[test]
    fn ends_agree_under_every_loss(losses in prop::collection::vec(any::<bool>(), 40)) {
        let mut ends = pair(1, 0);
        let mut losses = losses.into_iter();
        exchange_greetings(&mut ends, 200, || losses.next().unwrap_or(false));
        let [mut a, mut b] = ends;
        let frame = sealed(&mut a, b"there");
        prop_assert!(b.open(&frame).is_some());
        let frame = sealed(&mut b, b"and back");
        prop_assert!(a.open(&frame).is_some());
    }

    #[test]
    fn no_bytes_are_taken_that_were_not_sealed(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let [_, mut b] = agreed(1, 0);
        prop_assert_eq!(b.open(&bytes), None);
    }
}

/// Measures the figures of `docs/decisions/authentication.md`: `cargo test --release -p rackloom seal_costs -- --ignored --nocapture`.
#[test]
#[ignore = "it measures"]
fn seal_costs() {
    for payload in [64, 4096] {
        let [mut a, mut b] = agreed(1, 0);
        // Headers of a put, its payload, and space for the trailer.
        let mut out = vec![0x11; 46 + 84 + payload + TRAILER_BYTES];
        let length = out.len() - TRAILER_BYTES;
        let (mut close_ns, mut open_ns) = (u128::MAX, u128::MAX);
        for _ in 0..2000 {
            let begun = WallInstant::now();
            a.close(&mut out, length).expect("both have agreed");
            let closed = WallInstant::now();
            b.open(&out).expect("it is new");
            close_ns = close_ns.min((closed - begun).as_nanos());
            open_ns = open_ns.min(closed.elapsed().as_nanos());
        }
        println!("payload {payload}: seal {close_ns} ns, open {open_ns} ns");
    }
}
