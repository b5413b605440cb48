//! Files as a whole: what is recorded is what is read, parts become one file, and no bytes make the reader panic.

use std::io::Cursor;

use proptest::prelude::*;
use rackloom_capture::{Direction, Heading, ReadError, Reader, Recorder, comment, describe, join};
use rackloom_plan::Plan;
use rackloom_plan::impair::Verdict;
use rackloom_protocol::{DropReason, Instant};

const BYTES_MAX: u64 = 1 << 20;
const NEAR: u32 = 0;
const FAR: u32 = 1;

fn heading() -> Heading {
    let plan = Plan::parse("name: r\nshape: {ring: {nodes: 3}}\n", "test").expect("a plan");
    Heading::of(&plan, 0).expect("a ring has links")
}

fn frame(number: u8) -> Vec<u8> {
    vec![number; 60 + usize::from(number)]
}

fn recorder() -> Recorder {
    Recorder::new(&heading(), BYTES_MAX)
}

fn written(mut recorder: Recorder) -> Vec<u8> {
    recorder.take(Vec::new())
}

/// Everything of a record: when, where, which way, its first byte and comments.
type Seen = (u64, u32, Direction, u8, Vec<String>);

fn seen(file: &[u8]) -> Result<Vec<Seen>, ReadError> {
    let mut reader = Reader::new(file);
    let mut found = Vec::new();
    while let Some(record) = reader.next_record()? {
        let first = record.frame.first().copied().unwrap_or_default();
        found.push((record.timestamp_ns, record.interface, record.direction, first, record.comments));
    }
    Ok(found)
}

fn joined(parts: &[Vec<u8>], bytes_max: u64) -> (Vec<Seen>, rackloom_capture::Joined) {
    let mut parts: Vec<_> = parts.iter().map(Cursor::new).collect();
    let mut out = Vec::new();
    let joined = join(&heading(), &mut parts, &mut out, bytes_max).expect("parts can be joined");
    (seen(&out).expect("what was joined can be read"), joined)
}

fn refused_by(end: &str, reason: DropReason) -> Vec<String> {
    vec![comment::refused(end, reason)]
}

#[test]
fn what_is_recorded_is_what_is_read() {
    let mut pen = recorder();
    pen.sent(Instant(5_000_000_007), NEAR, &frame(1), &Verdict::default());
    pen.sent(Instant(5_000_000_008), NEAR, &frame(2), &Verdict { duplicate: true, ..Verdict::default() });
    pen.not_used(Instant(5_000_000_009), NEAR, &frame(3), comment::refused("n0-p0", DropReason::NoRoute));
    let file = written(pen);
    let mut reader = Reader::new(&file[..]);
    let section = reader.next_record().expect("a whole file").expect("a frame").section;
    let names: Vec<_> = section.interfaces.iter().map(|end| end.name.as_str()).collect();
    assert_eq!(names, ["n0-p0", "n1-p1"]);
    assert_eq!(section.comments, ["rack: r", "members: n0 n1 n2"]);
    let expected = [
        (5_000_000_007, NEAR, Direction::Outbound, 1, vec![]),
        (5_000_000_008, NEAR, Direction::Outbound, 2, vec!["injected: duplicated".to_owned()]),
        (5_000_000_009, NEAR, Direction::Inbound, 3, vec!["dropped by n0-p0: no-route".to_owned()]),
    ];
    assert_eq!(seen(&file).expect("a whole file"), expected);
}

#[test]
fn a_frame_that_was_not_used_appears_once_and_says_so() {
    let (mut near, mut far) = (recorder(), recorder());
    near.sent(Instant(10), NEAR, &frame(1), &Verdict::default());
    far.sent(Instant(15), FAR, &frame(1), &Verdict::default());
    near.sent(Instant(20), NEAR, &frame(2), &Verdict { corrupt_bit: Some(9), ..Verdict::default() });
    // The same bytes again: it is the second that was dropped.
    near.sent(Instant(30), NEAR, &frame(1), &Verdict::default());
    far.not_used(Instant(25), FAR, &frame(2), comment::refused("n1-p1", DropReason::HopCheck));
    far.not_used(Instant(40), FAR, &frame(1), comment::refused("n1-p1", DropReason::Duplicate));
    far.not_used(Instant(50), FAR, &frame(9), comment::refused("n1-p1", DropReason::WrongAddress));
    let (frames, told) = joined(&[written(near), written(far)], BYTES_MAX);
    let corrupted = ["injected: corrupted, bit 1 of byte 1".to_owned()];
    let expected = [
        (10, NEAR, Direction::Outbound, 1, vec![]),
        (15, FAR, Direction::Outbound, 1, vec![]),
        (
            20,
            NEAR,
            Direction::Outbound,
            2,
            [&corrupted[..], &refused_by("n1-p1", DropReason::HopCheck)].concat(),
        ),
        (30, NEAR, Direction::Outbound, 1, refused_by("n1-p1", DropReason::Duplicate)),
        (50, FAR, Direction::Inbound, 9, refused_by("n1-p1", DropReason::WrongAddress)),
    ];
    assert_eq!(frames, expected);
    assert_eq!((told.frames, told.full, told.torn), (5, false, false));
}

#[test]
fn a_torn_part_costs_its_last_frame_and_no_other() {
    let (mut near, mut far) = (recorder(), recorder());
    near.sent(Instant(1), NEAR, &frame(1), &Verdict::default());
    near.sent(Instant(3), NEAR, &frame(3), &Verdict::default());
    far.sent(Instant(2), FAR, &frame(2), &Verdict::default());
    far.sent(Instant(4), FAR, &frame(4), &Verdict::default());
    let mut near = written(near);
    near.truncate(near.len() - 5);
    let (frames, told) = joined(&[near, written(far), Vec::new()], BYTES_MAX);
    assert_eq!(frames.iter().map(|seen| seen.3).collect::<Vec<_>>(), [1, 2, 4]);
    assert!(told.torn);
}

#[test]
fn a_file_stops_at_its_limit_and_its_last_frame_says_so() {
    let mut pen = Recorder::new(&heading(), 64 << 10);
    let mut recorded = 0;
    for number in 0..2_000 {
        pen.sent(Instant(number), NEAR, &frame(40), &Verdict::default());
        recorded += u64::from(!pen.is_full());
    }
    let file = written(pen);
    assert!((64 << 10..(64 << 10) + 400).contains(&file.len()), "{}", file.len());
    let frames = seen(&file).expect("a whole file");
    assert_eq!(frames.len() as u64, recorded + 1);
    let (last, others) = frames.split_last().expect("frames");
    assert_eq!(last.4, [comment::full(64 << 10)]);
    assert!(others.iter().all(|frame| frame.4.is_empty()));
    let (all, told) = joined(&[file.clone(), file], 64 << 10);
    assert!(told.full && all.len() < 500, "{}", all.len());
    assert_eq!(all.last().expect("frames").4, [comment::full(64 << 10)]);
}

#[test]
fn frames_that_were_missed_are_counted_on_the_next() {
    let mut pen = recorder();
    (0..3).for_each(|_| pen.miss());
    pen.sent(Instant(1), NEAR, &frame(1), &Verdict::default());
    pen.sent(Instant(2), NEAR, &frame(2), &Verdict::default());
    let frames = seen(&written(pen)).expect("a whole file");
    assert_eq!((&frames[0].4[..], &frames[1].4[..]), (&[comment::missed(3)][..], &[][..]));
}

fn sample() -> Vec<u8> {
    let mut pen = recorder();
    for number in 0..6 {
        let verdict = Verdict { drop: number == 2, reorder_by: number, ..Verdict::default() };
        pen.sent(Instant(u64::from(number)), NEAR, &frame(number), &verdict);
    }
    written(pen)
}

proptest! {
    /// Whatever is done to a file, reading and describing it ends, and says where.
    #[test]
    fn a_spoilt_file_is_an_error_or_another_file(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = sample();
        for (place, byte) in changes {
            let place = place.index(file.len());
            file[place] = byte;
        }
        file.truncate(cut.index(file.len()) + 1);
        let mut reader = Reader::new(&file[..]);
        loop {
            match reader.next_record() {
                Ok(Some(record)) => drop(describe(record.frame)),
                Ok(None) => break,
                Err(error) => {
                    prop_assert!(error.offset().is_none_or(|offset| offset < file.len() as u64));
                    prop_assert!(!error.to_string().is_empty() && !error.hint().is_empty());
                    break;
                }
            }
        }
    }

    #[test]
    fn any_bytes_can_be_described(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let described = describe(&bytes);
        prop_assert_eq!(described.frame_bytes, bytes.len());
        prop_assert!(described.link.is_some() || described.problem.is_some());
    }
}
