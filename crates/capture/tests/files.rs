//! Whole files: recorded frames are read back, parts become one file, and no bytes make the reader panic.

use std::io::Cursor;

use proptest::prelude::*;
use rackloom_capture::{Direction, Heading, ReadError, Reader, Recorder, comment, describe, join};
use rackloom_plan::Plan;
use rackloom_plan::impair::Verdict;
use rackloom_protocol::{DropReason, Instant};

const BYTES_MAX: u64 = 1 << 20;
const FIRST: u32 = 0;
const SECOND: u32 = 1;

fn heading() -> Heading {
    let plan = Plan::parse("name: r\nshape: {ring: {nodes: 3}}\n", "test").expect("a plan");
    Heading::of(&plan, 0).expect("a ring has links")
}

fn frame(number: u8) -> Vec<u8> {
    vec![number; 60 + usize::from(number)]
}

fn new_recorder() -> Recorder {
    Recorder::new(&heading(), BYTES_MAX)
}

fn written(mut recorder: Recorder) -> Vec<u8> {
    recorder.take(Vec::new())
}

/// Values of a record: time, interface, direction, its first byte, comments.
type Seen = (u64, u32, Direction, u8, Vec<String>);

fn seen(file: &[u8]) -> Result<Vec<Seen>, ReadError> {
    let mut reader = Reader::new(file);
    let mut found = Vec::new();
    while let Some(record) = reader.next_record()? {
        let first_byte = record.frame.first().copied().unwrap_or_default();
        found.push((record.timestamp_ns, record.interface, record.direction, first_byte, record.comments));
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
fn recorded_frames_are_read_back() {
    let mut recorder = new_recorder();
    recorder.sent(Instant(5_000_000_007), FIRST, &frame(1), &Verdict::default());
    recorder.sent(
        Instant(5_000_000_008),
        FIRST,
        &frame(2),
        &Verdict { duplicate: true, ..Verdict::default() },
    );
    recorder.not_used(
        Instant(5_000_000_009),
        FIRST,
        &frame(3),
        comment::refused("n0-p0", DropReason::NoRoute),
    );
    let file = written(recorder);
    let mut reader = Reader::new(&file[..]);
    let section = reader.next_record().expect("a whole file").expect("a frame").section;
    let names: Vec<_> = section.interfaces.iter().map(|end| end.name.as_str()).collect();
    assert_eq!(names, ["n0-p0", "n1-p1"]);
    assert_eq!(section.comments, ["rack: r", "members: n0 n1 n2"]);
    let expected = [
        (5_000_000_007, FIRST, Direction::Outbound, 1, vec![]),
        (5_000_000_008, FIRST, Direction::Outbound, 2, vec!["injected: duplicated".to_owned()]),
        (5_000_000_009, FIRST, Direction::Inbound, 3, vec!["dropped by n0-p0: no-route".to_owned()]),
    ];
    assert_eq!(seen(&file).expect("a whole file"), expected);
}

#[test]
fn an_unused_frame_appears_once_with_a_comment() {
    let (mut first, mut second) = (new_recorder(), new_recorder());
    first.sent(Instant(10), FIRST, &frame(1), &Verdict::default());
    second.sent(Instant(15), SECOND, &frame(1), &Verdict::default());
    first.sent(Instant(20), FIRST, &frame(2), &Verdict { corrupt_bit: Some(9), ..Verdict::default() });
    // A frame with equal bytes: the second one was dropped.
    first.sent(Instant(30), FIRST, &frame(1), &Verdict::default());
    second.not_used(Instant(25), SECOND, &frame(2), comment::refused("n1-p1", DropReason::HopCheck));
    second.not_used(Instant(40), SECOND, &frame(1), comment::refused("n1-p1", DropReason::Duplicate));
    second.not_used(Instant(50), SECOND, &frame(9), comment::refused("n1-p1", DropReason::WrongAddress));
    let (frames, result) = joined(&[written(first), written(second)], BYTES_MAX);
    let corrupted = ["injected: corrupted, bit 1 of byte 1".to_owned()];
    let expected = [
        (10, FIRST, Direction::Outbound, 1, vec![]),
        (15, SECOND, Direction::Outbound, 1, vec![]),
        (
            20,
            FIRST,
            Direction::Outbound,
            2,
            [&corrupted[..], &refused_by("n1-p1", DropReason::HopCheck)].concat(),
        ),
        (30, FIRST, Direction::Outbound, 1, refused_by("n1-p1", DropReason::Duplicate)),
        (50, SECOND, Direction::Inbound, 9, refused_by("n1-p1", DropReason::WrongAddress)),
    ];
    assert_eq!(frames, expected);
    assert_eq!((result.frames, result.full, result.torn), (5, false, false));
}

#[test]
fn a_torn_part_costs_its_last_frame_and_no_other() {
    let (mut first, mut second) = (new_recorder(), new_recorder());
    first.sent(Instant(1), FIRST, &frame(1), &Verdict::default());
    first.sent(Instant(3), FIRST, &frame(3), &Verdict::default());
    second.sent(Instant(2), SECOND, &frame(2), &Verdict::default());
    second.sent(Instant(4), SECOND, &frame(4), &Verdict::default());
    let mut first = written(first);
    first.truncate(first.len() - 5);
    let (frames, result) = joined(&[first, written(second), Vec::new()], BYTES_MAX);
    assert_eq!(frames.iter().map(|seen| seen.3).collect::<Vec<_>>(), [1, 2, 4]);
    assert!(result.torn);
}

#[test]
fn a_file_stops_at_its_limit_and_its_last_frame_has_a_comment() {
    let mut recorder = Recorder::new(&heading(), 64 << 10);
    let mut recorded = 0;
    for number in 0..2_000 {
        recorder.sent(Instant(number), FIRST, &frame(40), &Verdict::default());
        recorded += u64::from(!recorder.is_full());
    }
    let file = written(recorder);
    assert!((64 << 10..(64 << 10) + 400).contains(&file.len()), "{}", file.len());
    let frames = seen(&file).expect("a whole file");
    assert_eq!(frames.len() as u64, recorded + 1);
    let (last, others) = frames.split_last().expect("frames");
    assert_eq!(last.4, [comment::full(64 << 10)]);
    assert!(others.iter().all(|frame| frame.4.is_empty()));
    let (all, result) = joined(&[file.clone(), file], 64 << 10);
    assert!(result.full && all.len() < 500, "{}", all.len());
    assert_eq!(all.last().expect("frames").4, [comment::full(64 << 10)]);
}

#[test]
fn frames_that_were_missed_are_counted_on_the_next() {
    let mut recorder = new_recorder();
    (0..3).for_each(|_| recorder.miss());
    recorder.sent(Instant(1), FIRST, &frame(1), &Verdict::default());
    recorder.sent(Instant(2), FIRST, &frame(2), &Verdict::default());
    let frames = seen(&written(recorder)).expect("a whole file");
    assert_eq!((&frames[0].4[..], &frames[1].4[..]), (&[comment::missed(3)][..], &[][..]));
}

fn sample() -> Vec<u8> {
    let mut recorder = new_recorder();
    for number in 0..6 {
        let verdict = Verdict { drop: number == 2, reorder_by: number, ..Verdict::default() };
        recorder.sent(Instant(u64::from(number)), FIRST, &frame(number), &verdict);
    }
    written(recorder)
}

proptest! {
    /// After any change of a file, reading and describing it ends, with an offset if there is an error.
    #[test]
    fn a_damaged_file_is_an_error_or_another_file(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = sample();
        for (index, byte) in changes {
            let index = index.index(file.len());
            file[index] = byte;
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
