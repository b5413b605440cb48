//! Capture files (pcapng and classic pcap), and the description of the frames in them.

use std::io::Read;

use rackloom_capture::growing::{Block, GrowingFile};
use rackloom_capture::{Heading, Reader, Recorder, comment, describe};
use rackloom_fuzz::{MemoryLimit, Target};
use rackloom_plan::Plan;
use rackloom_plan::impair::Verdict;
use rackloom_protocol::{DropReason, Instant};

/// A source that returns a few bytes at a time, as a pipe may.
struct Slow<'b>(&'b [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = buffer.len().min(3);
        self.0.read(&mut buffer[..length])
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let plan = Plan::parse("name: r\nshape: {ring: {nodes: 3}}\n", "rack").expect("the rack is whole");
    let mut recorder = Recorder::new(&Heading::of(&plan, 0).expect("a ring has links"), 1 << 20);
    for number in 0..6_u8 {
        let verdict = Verdict { drop: number == 2, reorder_by: number, ..Verdict::default() };
        recorder.sent(Instant(u64::from(number)), 0, &vec![number; 60 + usize::from(number)], &verdict);
    }
    recorder.not_used(Instant(9), 0, &[7; 60], comment::refused("n0-p0", DropReason::NoRoute));
    let ours = recorder.take(Vec::new());
    let mut swapped = ours.clone();
    // A section of the other byte order with no content.
    swapped.extend([
        0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0, 0, 0, 28,
    ]);
    let classics = [0xa1b2_c3d4_u32, 0xa1b2_3c4d].into_iter().flat_map(|magic| {
        [
            classic(&[magic], u32::to_le_bytes, u16::to_le_bytes),
            classic(&[magic], u32::to_be_bytes, u16::to_be_bytes),
        ]
    });
    [ours, swapped].into_iter().chain(classics).collect()
}

/// Returns a classic pcap file with two packets, in one byte order.
fn classic(magic: &[u32], number: fn(u32) -> [u8; 4], half: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let numbers = |numbers: &[u32]| numbers.iter().flat_map(|one| number(*one)).collect::<Vec<_>>();
    let version = [half(2), half(4)].concat();
    let packet = |seconds: u32| [numbers(&[seconds, 7, 60, 1514]), vec![seconds as u8; 60]].concat();
    [numbers(magic), version, numbers(&[0, 0, 1 << 18, 1]), packet(1), packet(2)].concat()
}

/// Reads a file to its end or to the first error. Returns a line per record, and the error.
fn read(input: impl Read, file_bytes: usize) -> (Vec<String>, String) {
    let mut reader = Reader::new(input);
    let mut lines = Vec::new();
    let mut frame_bytes = 0;
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                frame_bytes += record.frame.len();
                assert!(frame_bytes <= file_bytes, "frames are longer than their file");
                assert_eq!(describe(record.frame).frame_bytes, record.frame.len());
                let (name, comments) = (record.interface_name(), &record.comments);
                lines.push(format!("{} {name} {comments:?} {:?}", record.timestamp_ns, record.frame));
            }
            Ok(None) => return (lines, "whole".to_owned()),
            Err(error) => {
                let offset = error.offset();
                assert!(offset.is_none_or(|offset| offset < file_bytes as u64), "{error} at {offset:?}");
                assert!(!error.to_string().is_empty() && !error.hint().is_empty());
                return (lines, error.to_string());
            }
        }
    }
}

/// Checks that a file that grows has the blocks that the whole file has.
fn blocks_are_alike_in_any_pieces(file: &[u8]) {
    let mut whole = GrowingFile::default();
    whole.append(file);
    let blocks = whole.take_blocks();
    let bytes = |block: &Block| match block {
        Block::Heading(bytes) | Block::Frame { bytes, .. } => bytes.len(),
    };
    assert!(blocks.iter().map(bytes).sum::<usize>() <= file.len(), "blocks are longer than their file");
    let mut growing = GrowingFile::default();
    let mut found = Vec::new();
    for piece in file.chunks(37) {
        growing.append(piece);
        found.extend(growing.take_blocks());
    }
    assert_eq!(found, blocks);
}

#[test]
fn captures_are_read_alike_in_any_pieces() {
    let target = Target {
        name: "captures",
        seeds: seeds(),
        tokens: &[],
        input_bytes_max: 16 << 10,
        // The lines above hold several characters per byte, for two readings.
        memory: MemoryLimit { base_bytes: 64 << 10, per_input_byte: 256 },
    };
    target.run(|file| {
        blocks_are_alike_in_any_pieces(file);
        let (lines, end) = read(file, file.len());
        assert_eq!(read(Slow(file), file.len()), (lines.clone(), end.clone()));
        format!("{end} {}", "x".repeat(lines.len().min(8)))
    });
}
