//! Golden frames of `docs/wire-format.md`, and a check that code and tests cite every numbered sentence.

mod harness;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use harness::*;
use proptest::prelude::*;
use rackloom_protocol::wire::address::mac;
use rackloom_protocol::wire::control::{IncarnationMark, LinkReport};
use rackloom_protocol::wire::frame::{Frame, FrameKind};
use rackloom_protocol::wire::packed::{Operation, Operations};
use rackloom_protocol::wire::{dump, layout};
use rackloom_protocol::*;

fn parse(bytes: &[u8], from: u16, to: u16) -> Result<Frame<'_>, DropReason> {
    Frame::parse(bytes, 0x88b5, mac(NodeId(to), Plane(0)), mac(NodeId(from), Plane(0)), 7)
}

/// Returns every frame of a short exchange, as (from the first node, bytes).
fn exchanged_frames() -> Vec<(bool, Vec<u8>)> {
    let log = Rc::new(RefCell::new(Vec::new()));
    let sink = log.clone();
    let mut fabric = Fabric::new(ring(2), &options(RetransmissionMode::Selective));
    let mut dropped = false;
    fabric.filter = Box::new(move |_, _, forward, bytes| {
        sink.borrow_mut().push((forward, bytes.clone()));
        // One data frame is lost, so that the exchange has a bitmap and a retransmission.
        let lose = forward && !dropped && bytes[layout::VERSION_KIND] & 15 == 1 && bytes.len() > 4000;
        dropped |= lose;
        !lose
    });
    fabric.run_until("bring-up", Fabric::all_nodes_reach_each_other);
    fabric.command(0, store(1, at(1, 64), &[0xab; 16])).unwrap();
    fabric.command(0, load(2, at(1, 64), local(0, 16))).unwrap();
    fabric.command(0, atomic(3, at(1, 8), AtomicKind::CompareSwap, Width::Four, 7, 0)).unwrap();
    fabric.command(0, store(4, RemoteAddress { key: Key(1), ..at(1, 0) }, &[1])).unwrap();
    let signal = Signal { region: REGION, offset: 800, key: KEY, kind: SignalKind::Add, value: 2 };
    let source = local(4096, 20_000);
    let put = Command::Put { operation: OperationId(5), target: at(1, 4096), source, signal: Some(signal) };
    fabric.command(0, put).unwrap();
    fabric.command(0, get(6, at(1, 0), local(50_000, 300))).unwrap();
    for id in 1..=6 {
        let _ = fabric.finish(id);
    }
    fabric.run_for(150_000);
    log.take()
}

#[test]
fn the_frames_of_an_exchange_are_unchanged() {
    let lines: Vec<String> = exchanged_frames()
        .iter()
        .map(|(forward, bytes)| {
            let (from, to, arrow) = if *forward { (0, 1, "->") } else { (1, 0, "<-") };
            let frame = parse(bytes, from, to).expect("our own frames parse");
            format!("{arrow} {:5} {}", bytes.len(), dump::line(&frame))
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// Returns the first frame of each kind, in hexadecimal: the corpus of the mutations, and the golden bytes.
#[test]
fn the_golden_frames_are_unchanged() {
    let mut first = BTreeMap::new();
    for (forward, bytes) in
        exchanged_frames().into_iter().filter(|(forward, bytes)| *forward && bytes.len() < 400)
    {
        assert!(forward);
        first.entry(bytes[layout::VERSION_KIND] & 15).or_insert(bytes);
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let text: Vec<String> = first.iter().map(|(kind, bytes)| format!("{kind} {}", hex(bytes))).collect();
    insta::assert_snapshot!(text.join("\n"));
}

fn corpus() -> Vec<Vec<u8>> {
    include_str!("snapshots/wire_format__the_golden_frames_are_unchanged.snap")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(kind, hex)| kind.parse::<u8>().is_ok() && hex.len().is_multiple_of(2))
        .map(|(_, hex)| {
            (0..hex.len() / 2)
                .map(|index| u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap_or_default())
                .collect()
        })
        .collect()
}

#[test]
fn the_corpus_has_every_kind_of_frame_of_a_healthy_link() {
    let kinds: Vec<u8> = corpus().iter().map(|bytes| bytes[layout::VERSION_KIND] & 15).collect();
    assert_eq!(kinds, [1, 2, 3, 4, 5]);
    for bytes in corpus() {
        parse(&bytes, 0, 1).expect("the corpus parses");
    }
}

/// Computes the digest of reports (origin, incarnation, number) as the page defines it.
fn digest_of(reports: impl IntoIterator<Item = (u64, u64, u64)>) -> u32 {
    reports.into_iter().fold(0, |digest, (origin, incarnation, number)| {
        let h = incarnation ^ origin << 48 ^ number << 16;
        let h = (h ^ h >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let h = (h ^ h >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        digest ^ (h ^ h >> 31) as u32
    })
}

#[test]
fn a_frame_has_one_report_or_several() {
    // Member 3 with a link that carries no data, then member 258 without links.
    let of_three = [3, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 5, 0, 0, 0];
    let of_two_hundred_fifty_eight = [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0];
    let body = [&of_three[..], &of_two_hundred_fifty_eight].concat();
    let report = |origin: u16, incarnation: u64, number: u32, edges: Vec<(u16, Option<IncarnationMark>)>| {
        let (origin, incarnation) = (NodeId(origin), Incarnation(incarnation));
        LinkReport { origin, incarnation, number, edges, is_departure: false }
    };
    let (one, other) = (report(3, 9, 7, vec![(5, None)]), report(258, 1 << 56, 1, vec![]));
    assert_eq!(LinkReport::read_all(&body), Some(vec![one.clone(), other]));
    assert_eq!(LinkReport::read_all(&of_three), Some(vec![one]));
    for length in [0, 1, 15, 19, 21, 35] {
        assert_eq!(LinkReport::read_all(&body[..length]), None, "{length} bytes");
    }
}

// W-80
#[test]
fn a_heartbeat_has_the_digest_that_the_page_defines() {
    let (mut newest, mut digests) = (BTreeMap::new(), Vec::new());
    for (forward, bytes) in exchanged_frames() {
        let frame = parse(&bytes, u16::from(!forward), u16::from(forward)).expect("our own frames parse");
        let body = frame.body();
        if frame.link.kind == FrameKind::Report {
            for report in LinkReport::read_all(body).expect("reports") {
                let known = newest.entry(u64::from(report.origin.0)).or_insert((0, 0));
                *known = (*known).max((report.incarnation.0, u64::from(report.number)));
            }
        }
        if frame.link.kind == FrameKind::Heartbeat {
            digests.push(layout::u32_at(body, 12));
        }
    }
    assert_eq!(newest.len(), 2, "both have reported");
    let expected =
        digest_of(newest.iter().map(|(origin, (incarnation, number))| (*origin, *incarnation, *number)));
    assert_eq!(digests.last(), Some(&expected), "{newest:?}");
    assert_eq!(digest_of([]), 0);
}

// W-81
#[test]
fn each_operation_has_the_class_that_the_page_defines() {
    let mut seen = std::collections::BTreeSet::new();
    for (forward, bytes) in exchanged_frames() {
        let frame = parse(&bytes, u16::from(!forward), u16::from(forward)).expect("our own frames parse");
        if frame.link.kind != FrameKind::Data {
            continue;
        }
        let class = bytes[layout::CLASS];
        let mut at = 0;
        let list = frame.operations();
        while at < list.len() {
            let kind = list[at];
            let expected: &[u8] = match kind {
                1 => &[0, 2],
                2..=4 => &[0],
                5..=7 => &[2],
                16 | 17 => &[1],
                18 => &[3],
                19 => &[list[at + 8] + 1],
                _ => &[],
            };
            assert!(expected.contains(&class), "operation {kind} in class {class}");
            seen.insert(kind);
            at += layout::OPERATION_HEADER + usize::from(layout::u16_at(list, at + 2));
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19]);
}

// W-82
#[test]
fn an_acknowledgement_frame_has_no_number_and_no_padding_of_its_bitmap() {
    let (mut frames, mut bitmaps) = (0, 0);
    for (forward, bytes) in exchanged_frames() {
        let frame = parse(&bytes, u16::from(!forward), u16::from(forward)).expect("our own frames parse");
        if frame.link.kind != FrameKind::Ack {
            continue;
        }
        frames += 1;
        let header = frame.fabric().expect("a fabric header");
        assert_eq!((header.class, header.psn, header.first_operation), (Class::Reply, 0, 0));
        assert_eq!((bytes[layout::TRAFFIC], bytes[layout::ACK_CLASS]), (0, 0xff));
        let list: Vec<_> = Operations::new(frame.operations()).map(|one| one.expect("whole")).collect();
        assert_eq!(list.len(), usize::from(header.operation_count));
        for operation in list {
            let Operation::Ack { bitmap, .. } = operation else { panic!("{operation:?}") };
            bitmaps += usize::from(!bitmap.is_empty());
            assert_ne!(bitmap.last(), Some(&0), "no more bytes than the highest set bit needs");
        }
    }
    assert!(frames > 0 && bitmaps > 0, "{frames} frames, {bitmaps} bitmaps");
}

// W-3
#[test]
fn padding_is_ignored() {
    for bytes in corpus() {
        let mut padded = bytes.clone();
        padded.extend_from_slice(&[0xff; 40]);
        assert_eq!(parse(&padded, 0, 1).expect("padding does no harm").bytes(), &bytes[..]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_flipped_bit_at_any_position_is_detected(which in 0usize..5, bit in 0usize..3000) {
        let frames = corpus();
        let mut bytes = frames[which].clone();
        let bit = bit % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(frame) = parse(&bytes, 0, 1) {
            prop_assert!(frame.link.kind.is_routed(), "a frame to a neighbour is covered whole");
            prop_assert!(!frame.end_to_end_check_holds(), "byte {} is covered by no check", bit / 8);
        }
    }

    #[test]
    fn truncation_and_splicing_never_panic(
        which in 0usize..5,
        other in 0usize..5,
        cut in 0usize..400,
        tail in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let frames = corpus();
        let mut bytes = frames[which][..cut.min(frames[which].len())].to_vec();
        bytes.extend_from_slice(&frames[other][bytes.len().min(frames[other].len())..]);
        bytes.extend_from_slice(&tail);
        if let Ok(frame) = parse(&bytes, 0, 1) {
            prop_assert!(!dump::line(&frame).is_empty());
        }
        for operation in Operations::new(&bytes) {
            let _ = operation;
        }
    }
}

fn text_of(folder: &Path) -> String {
    let mut text = String::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("the crate's own folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text.push_str(&std::fs::read_to_string(path).expect("the crate's own file"));
            }
        }
    }
    text
}

#[test]
fn every_numbered_sentence_is_cited_by_code_and_by_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let specification = std::fs::read_to_string(root.join("../../docs/wire-format.md")).expect("the law");
    let (mut code, mut tests) = (text_of(&root.join("src")), text_of(&root.join("tests")));
    // Messages between supervisors belong to the runtime. Its tests are beside its code.
    let messages = text_of(&root.join("../runtime/src/supervisor/hosts"));
    // Authentication is a wrapper of devices, below the core. Its tests are beside its code.
    for beside in [messages, text_of(&root.join("../node/src/seal"))] {
        code.push_str(&beside);
        tests.push_str(&beside);
    }
    let number = |start: &str| start.split_once("**").and_then(|(number, _)| number.parse::<u32>().ok());
    let numbers: Vec<_> =
        specification.split("* **W-").skip(1).map(|start| number(start).expect(start)).collect();
    assert!(numbers.len() >= 23, "{numbers:?}");
    let distinct: std::collections::BTreeSet<_> = numbers.iter().collect();
    assert_eq!(distinct.len(), numbers.len(), "a number has one sentence: {numbers:?}");
    for number in numbers {
        let cited = |text: &str| {
            text.lines().any(|line| {
                line.trim_start().starts_with("//")
                    && line
                        .split(|c: char| !(c.is_alphanumeric() || c == '-'))
                        .any(|word| word == format!("W-{number}"))
            })
        };
        assert!(cited(&code), "W-{number} is not cited in src");
        assert!(cited(&tests), "W-{number} is not cited by a test");
    }
}
