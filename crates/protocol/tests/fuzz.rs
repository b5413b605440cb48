//! Fuzz test of corrupted frames for every part of the core that reads frames: parser, link, endpoint,
//! switch.
//!
//! Each case is a small rack with work, whose links an attacker controls. The attacker replays, cuts,
//! extends, splices and flips frames in flight and those in `tests/corpus`. There are two kinds of cases.
//! *Corrupted*: the checks were not recomputed, so the work must end correctly, with exact memory contents.
//! *Forged*: both checks were recomputed, so such a frame cannot be distinguished from a real one. The core
//! must only not panic.
//!
//! The seed is printed before the first case. `RACKLOOM_FUZZ_SEED` repeats it, `RACKLOOM_FUZZ_SECONDS` sets
//! the duration (default 3), `RACKLOOM_FUZZ_SHOW` prints each injected frame. A frame that once broke
//! something belongs into the corpus. `RACKLOOM_FUZZ_WRITE=1` writes frames of healthy links there, one of
//! each kind.

mod harness;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant as WallInstant, SystemTime, UNIX_EPOCH};

use harness::*;
use rackloom_protocol::wire::address::mac;
use rackloom_protocol::wire::frame::Frame;
use rackloom_protocol::wire::packed::Operations;
use rackloom_protocol::wire::{dump, hop_check, layout, seal_end_to_end};
use rackloom_protocol::*;

/// Returns the folder with frames of another rack and run, as hexadecimal text.
fn corpus_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// Returns the frames of the corpus as they were recorded.
fn recorded() -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(corpus_folder()).expect("the corpus is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.sort();
    let frames: Vec<_> = files
        .iter()
        .map(|file| {
            let text = std::fs::read_to_string(file).expect("it can be read");
            let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
            let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
            let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
            bytes.unwrap_or_else(|| panic!("{} is not hexadecimal", file.display()))
        })
        .collect();
    assert!(frames.len() >= 8, "the corpus has lost its frames");
    frames
}

/// Returns the corpus, as of another rack. It was recorded in a rack with the incarnations of this test, so
/// the tail of a recorded frame after the head of a live one would be valid. Its end-to-end check must be
/// invalid here.
fn corpus() -> Vec<Vec<u8>> {
    recorded().into_iter().map(of_another_rack).collect()
}

fn of_another_rack(mut bytes: Vec<u8>) -> Vec<u8> {
    let is_routed = bytes.get(layout::VERSION_KIND).is_some_and(|byte| byte & 15 <= 2);
    let check = if is_routed { layout::END_TO_END_CHECK } else { layout::HOP_CHECK };
    if let Some(byte) = bytes.get_mut(check) {
        *byte ^= 1;
    }
    bytes
}

/// Random numbers: small, fast and equal on every machine (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }

    fn one_in(&mut self, limit: usize) -> bool {
        self.below(limit) == 0
    }

    fn pick<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        &list[self.below(list.len())]
    }
}

/// Values at which arithmetic on lengths, numbers and limits overflows.
const EDGES: [u32; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

/// Corrupts a frame by one to four changes.
fn corrupt(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(8) {
            0 => bytes.truncate(at),
            1 => bytes.extend(std::iter::repeat_n(random.below(256) as u8, random.below(300))),
            2 => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[random.below(other.len())..]);
            }
            3 => {
                let edge = random.pick(&EDGES).to_le_bytes();
                let width = *random.pick(&[1, 2, 4]);
                bytes.iter_mut().skip(at).zip(&edge[..width]).for_each(|(byte, edge)| *byte = *edge);
            }
            4 => {
                let range = at..(at + random.below(16)).min(bytes.len());
                bytes.drain(range);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
    // No wire carries longer frames.
    bytes.truncate(9216);
}

/// Computes both checks again, if the frame has space for them.
fn forge(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().max(layout::OPERATIONS), 0);
    let length = bytes.len() - layout::FABRIC;
    layout::put_u16(bytes, layout::LENGTH, length as u16);
    let is_routed = bytes[layout::VERSION_KIND] & 15 <= 2;
    if is_routed {
        seal_end_to_end(bytes);
    }
    let check = hop_check(bytes, !is_routed);
    layout::put_u32(bytes, layout::HOP_CHECK, check);
}

/// Frames that passed each link and direction, and further expected results.
#[derive(Default)]
struct Hand {
    seen: Vec<(u16, bool, Vec<u8>)>,
}

/// Pauses that a burst of the work reaches.
const PAUSE: PauseConfig = PauseConfig {
    xoff_bytes: 8 << 10,
    xon_bytes: 4 << 10,
    headroom_bytes: 32 << 10,
    quanta: 2_000,
    quantum_ps: 5_120,
    response_delay_ns: 100,
    watchdog_ns: 100_000,
};

/// Returns settings that turn on parts of the link layer, drawn at random. `forged`: also those with which a forged
/// frame may stop a link for good.
fn layers(random: &mut Random, forged: bool) -> Options {
    let mode = if random.one_in(2) { RetransmissionMode::Selective } else { RetransmissionMode::GoBackN };
    let mut options = options(mode);
    options.retry = random.one_in(2).then_some(RETRY);
    if random.one_in(3) {
        options.channels = ChannelConfig::by_class();
    }
    if random.one_in(3) {
        options.pause = Some(PAUSE);
        options.credits.limit = CreditConfig::UNLIMITED;
        let shared = SharedBufferConfig { bytes: 32 << 10, alpha_thousandths: 500, private_bytes: 1 << 10 };
        options.forwarding.shared_buffer = random.one_in(2).then_some(shared);
    }
    options.forwarding.mark_above_bytes = random.one_in(3).then_some(4 << 10);
    if random.one_in(3) {
        options.forwarding.queues = TransitQueues::ByInput;
    }
    if forged {
        options.resync = !random.one_in(3);
        if options.pause.is_none() && random.one_in(2) {
            // Space for two of the largest frames on each channel.
            options.credits.limit = 72 * options.channels.count() as u32;
        }
        if random.one_in(4) {
            options.forwarding.drain = RequestDrain::Answered;
        }
    }
    options
}

/// Returns a rack of two nodes behind a switch with a link between them, with its oracles.
fn rack(hand: &Rc<RefCell<Hand>>, options: &Options) -> Fabric {
    let mut graph = star(2, 1);
    let direct = Edge { a: NodeId(0), a_port: PortId(1), b: NodeId(1), b_port: PortId(1), plane: Plane(1) };
    graph.edges.push(direct);
    let mut fabric = Fabric::up(graph, options);
    let hand = Rc::clone(hand);
    let graph = fabric.graph.clone();
    fabric.filter = Box::new(move |now, edge, forward, bytes| {
        if std::env::var_os("RACKLOOM_FUZZ_SHOW").is_some() {
            eprintln!("{:>9} {}", now.0, line(&graph, edge, forward, bytes));
        }
        let mut hand = hand.borrow_mut();
        if hand.seen.len() < 4096 {
            hand.seen.push((edge, forward, bytes.clone()));
        }
        true
    });
    fabric
}

/// Delivers a frame to the member at that end of a link.
fn inject(fabric: &mut Fabric, edge: u16, forward: bool, bytes: Vec<u8>) {
    let ends = fabric.graph.edges[usize::from(edge)];
    let (member, port) = if forward { (ends.b, ends.b_port) } else { (ends.a, ends.a_port) };
    fabric.deliver(member.index(), port, bytes);
}

/// Starts an operation of each kind, and applies its writes to the shadow. Returns the numbers of all
/// operations that must end.
fn work(fabric: &mut Fabric, random: &mut Random, round: u64, shadow: &mut [u8]) -> Vec<u64> {
    let names: Vec<u64> = (round * 10 + 1..round * 10 + 6).collect();
    let offset = random.below(REGION_BYTES - 70_000) & !7;
    let value = random.below(255) as u8 + 1;
    let (small, large) = (1 + random.below(256), 1 + random.below(60_000));
    fabric.submit(0, store(names[0], at(1, offset as u64), &vec![value; small]));
    shadow[offset..offset + small].fill(value);
    // The source is in the sender's own memory, which no other node writes.
    fabric.memory(0)[..large].fill(value ^ 0xff);
    fabric.submit(0, put(names[1], at(1, offset as u64 + 4096), local(0, large as u64)));
    shadow[offset + 4096..offset + 4096 + large].fill(value ^ 0xff);
    fabric.submit(0, load(names[2], at(1, 0), local(REGION_BYTES as u64 - 256, 64)));
    fabric.submit(0, fetch_add(names[3], at(1, REGION_BYTES as u64 - 8), 1));
    fabric.submit(0, get(names[4], at(1, 64), local(REGION_BYTES as u64 - 8192, 4000)));
    let count = u64::from_le_bytes(shadow[REGION_BYTES - 8..].try_into().expect("a word")) + 1;
    shadow[REGION_BYTES - 8..].copy_from_slice(&count.to_le_bytes());
    names
}

/// Runs one case. `forged`: with valid checks, so that the case only must not panic.
fn case(seed: u64, corpus: &[Vec<u8>], forged: bool) {
    let mut random = Random(seed);
    let hand = Rc::new(RefCell::new(Hand::default()));
    let mut fabric = rack(&hand, &layers(&mut random, forged));
    let mut shadow = vec![0; REGION_BYTES];
    for round in 0..3 {
        let names = work(&mut fabric, &mut random, round, &mut shadow);
        for _ in 0..40 {
            fabric.step();
            hostile_step(&mut fabric, &hand, &mut random, corpus, forged);
        }
        if forged {
            fabric.run_for(2_000_000);
            return;
        }
        for name in names {
            if std::env::var_os("RACKLOOM_FUZZ_SHOW").is_some() {
                eprintln!("{:>9} waiting for operation {name}", fabric.now.0);
            }
            let ended = fabric.finish(name);
            assert!(ended.is_ok(), "operation {name} ended with {ended:?}");
        }
        assert!(fabric.memory(1) == shadow, "a byte is wrong");
        fabric.events.clear();
    }
}

/// Injects one frame at one end of one link: a replay, or a corrupted frame.
fn hostile_step(
    fabric: &mut Fabric,
    hand: &Rc<RefCell<Hand>>,
    random: &mut Random,
    corpus: &[Vec<u8>],
    forged: bool,
) {
    let stored = random.one_in(8) || hand.borrow().seen.is_empty();
    let (edge, forward, mut bytes) = if stored {
        (random.below(3) as u16, random.one_in(2), random.pick(corpus).clone())
    } else {
        random.pick(&hand.borrow().seen).clone()
    };
    let is_replay = !forged && !stored && random.one_in(6);
    if !is_replay {
        let before = bytes.clone();
        let other = random.pick(corpus);
        corrupt(random, &mut bytes, other);
        if forged {
            forge(&mut bytes);
        } else if bytes == before {
            return;
        }
    }
    if std::env::var_os("RACKLOOM_FUZZ_SHOW").is_some() {
        let what = if is_replay { "replay" } else { "corrupted" };
        let ends = fabric.graph.edges[usize::from(edge)];
        let to = if forward { ends.b } else { ends.a };
        eprintln!("{:>9} {what} to {to}: {}", fabric.now.0, line(&fabric.graph, edge, forward, &bytes));
    }
    inject(fabric, edge, forward, bytes);
}

/// Formats a frame as its receiver reads it.
fn line(graph: &Graph, edge: u16, forward: bool, bytes: &[u8]) -> String {
    let ends = graph.edges[usize::from(edge)];
    let (from, to) = if forward { (ends.a, ends.b) } else { (ends.b, ends.a) };
    match Frame::parse(bytes, 0x88b5, mac(to, ends.plane), mac(from, ends.plane), 7) {
        Ok(frame) => dump::line(&frame),
        Err(reason) => format!("{} bytes: {}", bytes.len(), reason.name()),
    }
}

/// Passes arbitrary bytes to all readers of frames.
fn read(bytes: &[u8]) {
    let (ours, theirs) = (mac(NodeId(1), Plane(0)), mac(NodeId(0), Plane(0)));
    if let Ok(frame) = Frame::parse(bytes, 0x88b5, ours, theirs, 7) {
        assert!(!dump::line(&frame).is_empty());
    }
    for operation in Operations::new(bytes) {
        let _ = operation;
    }
}

fn seconds() -> Duration {
    let text = std::env::var("RACKLOOM_FUZZ_SECONDS").ok();
    Duration::from_secs(text.and_then(|text| text.parse().ok()).unwrap_or(3))
}

fn seed() -> u64 {
    let given = std::env::var("RACKLOOM_FUZZ_SEED").ok().and_then(|text| text.parse().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let seed = given.unwrap_or(now | 1);
    // Written past the test harness, which hides the output of passing and of killed tests.
    let _ = writeln!(std::io::stderr(), "fuzz: RACKLOOM_FUZZ_SEED={seed}");
    seed
}

#[test]
fn corrupted_frames_change_nothing_and_forged_frames_cause_no_panic() {
    let (corpus, seed, deadline) = (corpus(), seed(), WallInstant::now() + seconds());
    let mut cases = 0_u64;
    while cases < 4 || WallInstant::now() < deadline {
        let number = seed.wrapping_add(cases);
        let (case_seed, forged) = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, number % 2 == 1);
        let result = std::panic::catch_unwind(|| case(case_seed, &corpus, forged));
        if let Err(reason) = result {
            eprintln!(
                "case {cases} (forged: {forged}); hint: repeat it first by RACKLOOM_FUZZ_SEED={number}"
            );
            std::panic::resume_unwind(reason);
        }
        let mut random = Random(case_seed);
        for _ in 0..200 {
            let mut bytes = random.pick(&corpus).clone();
            let other = random.pick(&corpus);
            corrupt(&mut random, &mut bytes, other);
            read(&bytes);
        }
        cases += 1;
    }
    let _ = writeln!(std::io::stderr(), "fuzz: {cases} cases");
}

/// Frames of another run with an equal plan, complete and with every single bit flipped.
#[test]
fn no_frame_of_the_corpus_is_accepted() {
    let hand = Rc::new(RefCell::new(Hand::default()));
    let mut fabric = rack(&hand, &options(RetransmissionMode::Selective));
    let before = fabric.memory(1).to_vec();
    for frame in recorded() {
        for bit in 0..frame.len().min(200) * 8 {
            let mut bytes = frame.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            read(&bytes);
            for (edge, forward) in [(0, true), (0, false), (1, true), (1, false), (2, true)] {
                inject(&mut fabric, edge, forward, bytes.clone());
            }
        }
    }
    assert!(fabric.memory(1) == before, "a byte changed");
    fabric.command(0, store(1, at(1, 0), &[7; 8])).expect("it is taken");
    assert_eq!(fabric.finish(1), Ok(0), "and the rack works on");
}

/// Records frames of healthy links, one of each kind and first operation, and writes them on request.
#[test]
fn the_corpus_has_a_frame_of_every_kind() {
    let hand = Rc::new(RefCell::new(Hand::default()));
    let mut fabric = rack(&hand, &options(RetransmissionMode::Selective));
    let mut shadow = vec![0; REGION_BYTES];
    for name in work(&mut fabric, &mut Random(5), 0, &mut shadow) {
        fabric.finish(name).expect("no fault is injected");
    }
    fabric.run_for(500_000);
    let kind = |bytes: &[u8]| {
        let kind = bytes[layout::VERSION_KIND] & 15;
        let first = bytes.get(layout::OPERATIONS).filter(|_| kind <= 2).copied().unwrap_or(0);
        // The operation after a select is more specific.
        let second = bytes.get(layout::OPERATIONS + 16).filter(|_| first == 1).copied();
        (kind, second.unwrap_or(first))
    };
    let kept: BTreeMap<_, _> =
        hand.borrow().seen.iter().map(|(_, _, bytes)| (kind(bytes), bytes.clone())).collect();
    if std::env::var_os("RACKLOOM_FUZZ_WRITE").is_some() {
        for ((kind, operation), bytes) in &kept {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let lines: Vec<String> = digits.chunks(32).map(|line| line.join("")).collect();
            let path = corpus_folder().join(format!("kind-{kind}-operation-{operation}.hex"));
            std::fs::write(path, lines.join("\n") + "\n").expect("the corpus can be written");
        }
    }
    let known: Vec<_> = recorded().iter().map(|bytes| bytes[layout::VERSION_KIND] & 15).collect();
    for (kind, _) in kept.keys() {
        assert!(known.contains(kind), "no frame of kind {kind} in the corpus");
    }
}
