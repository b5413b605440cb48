//! Frames and the lists of operations in them, as a neighbour sends them.

use rackloom_fuzz::{MemoryLimit, Target, files};
use rackloom_protocol::wire::acks::plain_acks;
use rackloom_protocol::wire::control::{
    HEARTBEAT_BYTES, HELLO_BYTES, Heartbeat, Hello, LinkReport, consumed_beside, numbering, pause_quanta,
};
use rackloom_protocol::wire::frame::{FabricHeader, Frame, HopCheck};
use rackloom_protocol::wire::packed::{Operations, count_operations};
use rackloom_protocol::wire::writes::Writes;
use rackloom_protocol::wire::{dump, hop_check, layout, seal_end_to_end, seal_hop};

use crate::repository;

/// Longest frame of any wire.
const FRAME_BYTES_MAX: usize = 9216;
/// Reading frames allocates for link reports and for the text of a dump.
const MEMORY: MemoryLimit = MemoryLimit { base_bytes: 4096, per_input_byte: 32 };

/// Returns frames of every kind, as a healthy rack sent them.
fn frames() -> Vec<Vec<u8>> {
    let files = files(&repository("crates/protocol/tests/corpus"), ".hex");
    let frames: Vec<_> = files.iter().map(|file| bytes_of_hex(file)).collect();
    assert!(frames.len() >= 8, "the corpus has lost its frames");
    frames
}

fn bytes_of_hex(text: &[u8]) -> Vec<u8> {
    let digits: Vec<_> = text.iter().filter_map(|digit| char::from(*digit).to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// Computes length and checks anew, as far as there is space for them.
fn forged(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().max(layout::OPERATIONS), 0);
    let length = bytes.len() - layout::FABRIC;
    layout::put_u16(&mut bytes, layout::LENGTH, length as u16);
    let is_routed = bytes[layout::VERSION_KIND] & 15 <= 2;
    if is_routed {
        seal_end_to_end(&mut bytes);
    }
    let covers_all = !is_routed || bytes[layout::FLAGS] & layout::FLAG_HOP_CHECK_OF_ALL != 0;
    let check = hop_check(&bytes, covers_all);
    layout::put_u32(&mut bytes, layout::HOP_CHECK, check);
    bytes
}

/// Parses a frame with the addresses and the epoch that it has itself.
fn parsed(bytes: &[u8]) -> Result<Frame<'_>, String> {
    let header = bytes.first_chunk::<{ layout::FABRIC }>().ok_or("short")?;
    let [destination, source] = addresses(header);
    let frame = Frame::parse(bytes, 0x88b5, destination, source, layout::u16_at(header, layout::EPOCH));
    frame.map_err(|reason| reason.name().to_owned())
}

fn addresses(header: &[u8; layout::FABRIC]) -> [[u8; 6]; 2] {
    [layout::DESTINATION_MAC, layout::SOURCE_MAC].map(|at| std::array::from_fn(|byte| header[at + byte]))
}

/// Writes the headers of a frame anew and compares them with those that were read.
fn headers_survive(frame: &Frame<'_>) {
    let bytes = frame.bytes();
    let [destination, source] = addresses(bytes.first_chunk().expect("a frame has a header"));
    let mut written = bytes.to_vec();
    written[..layout::FABRIC].fill(0);
    let fabric = if frame.link.kind.is_routed() { frame.fabric().ok() } else { None };
    if let Some(fabric) = fabric {
        written[layout::FABRIC..layout::OPERATIONS].fill(0);
        fabric.write(&mut written);
        assert_eq!(FabricHeader::of(&written), Ok(fabric));
        // The field is left zero for the sealer.
        let check = layout::u32_at(bytes, layout::END_TO_END_CHECK);
        layout::put_u32(&mut written, layout::END_TO_END_CHECK, check);
    }
    frame.link.write(&mut written, 0x88b5, source, destination);
    if frame.link.kind.is_routed() && frame.link.hop_check == HopCheck::Frame {
        seal_hop(&mut written);
    }
    let again = parsed(&written).unwrap_or_else(|reason| panic!("a written header is refused: {reason}"));
    assert_eq!(again.link, frame.link);
}

/// Runs all readers of bodies, and writes anew what they accept. Returns which accepted.
fn bodies_survive(body: &[u8]) -> String {
    let mut accepted = String::new();
    if let Some(hello) = Hello::read(body) {
        let mut written = [0; HELLO_BYTES];
        hello.write(&mut written);
        assert_eq!(Hello::read(&written), Some(hello));
        accepted += " hello";
    }
    if let Some(heartbeat) = Heartbeat::read(body) {
        let mut written = [0; HEARTBEAT_BYTES];
        heartbeat.write(&mut written);
        assert_eq!(Heartbeat::read(&written), Some(heartbeat));
        assert_eq!(written, body[..HEARTBEAT_BYTES]);
        accepted += " heartbeat";
    }
    if let Some(report) = LinkReport::read(body) {
        let mut written = vec![0; report.encoded_bytes()];
        assert_eq!(report.write(&mut written), written.len());
        assert_eq!(LinkReport::read(&written), Some(report));
        accepted += " report";
    }
    if let Some(reports) = LinkReport::read_all(body) {
        assert_eq!(reports.iter().map(LinkReport::encoded_bytes).sum::<usize>(), body.len());
        accepted += " reports";
    }
    assert_eq!(numbering(body).is_some(), body.len() >= 4);
    assert_eq!(pause_quanta(body).is_some(), body.len() >= 2);
    assert!(consumed_beside(body).count() <= body.len() / 4);
    accepted
}

/// Reads a list of operations, and writes anew what it contains. Returns the kinds of the operations.
fn operations_survive(list: &[u8]) -> String {
    let mut kinds = String::new();
    let mut reader = Operations::new(list);
    let mut begin = 0;
    let (mut numbered, mut all) = (0, 0);
    while let Some(operation) = reader.next() {
        let Ok(operation) = operation else {
            assert!(reader.next().is_none(), "nothing is read behind an error");
            assert!(count_operations(list).is_err(), "census and reader disagree");
            return kinds + "malformed";
        };
        let end = reader.position();
        let mut written = Vec::new();
        operation.encode(&mut written);
        assert_eq!(written.len(), operation.encoded_bytes());
        assert_eq!(written.len(), end - begin, "an operation changes its length");
        let mut again = Operations::new(&written);
        assert_eq!(again.next(), Some(Ok(operation)));
        assert!(again.next().is_none());
        numbered += usize::from(operation.is_numbered());
        all += 1;
        if kinds.len() < 12 {
            kinds.push(char::from(b'a' + list[begin] % 26));
        }
        begin = end;
    }
    let counted = count_operations(list).expect("the reader accepted the list");
    assert_eq!((counted.numbered, counted.all), (numbered, all));
    kinds
}

/// Runs the readers of frequent lists, whose results lie within the list.
fn fast_readers_stay_inside(list: &[u8]) {
    if plain_acks(list).is_some() {
        assert!(count_operations(list).is_ok());
    }
    if let Some(mut writes) = Writes::of(list) {
        while let Some(write) = writes.take() {
            assert!(write.at + write.length <= list.len());
        }
        if writes.is_over() {
            assert!(count_operations(list).is_ok());
        }
    }
}

#[test]
fn frames_are_read_and_written_alike() {
    let target = Target {
        name: "frames",
        seeds: frames(),
        tokens: &[],
        input_bytes_max: FRAME_BYTES_MAX,
        memory: MEMORY,
    };
    target.run(|bytes| {
        let raw = parsed(bytes).map_or_else(|reason| reason, |_| "raw".to_owned());
        let forged = forged(bytes);
        let frame = match parsed(&forged) {
            Ok(frame) => frame,
            Err(reason) => return format!("{raw}, {reason}"),
        };
        headers_survive(&frame);
        assert!(!dump::line(&frame).is_empty());
        let inner = if frame.link.kind.is_routed() {
            operations_survive(frame.operations())
        } else {
            bodies_survive(frame.body())
        };
        format!("{raw}, {} {inner}", frame.link.kind.name())
    });
}

#[test]
fn operations_are_read_and_written_alike() {
    let routed = frames().into_iter().filter(|frame| frame[layout::VERSION_KIND] & 15 <= 2);
    let target = Target {
        name: "operations",
        seeds: routed.map(|frame| frame[layout::OPERATIONS..].to_vec()).collect(),
        tokens: &[],
        input_bytes_max: FRAME_BYTES_MAX,
        memory: MEMORY,
    };
    target.run(|list| {
        fast_readers_stay_inside(list);
        operations_survive(list)
    });
}
