//! Tests that hold on every device.

use std::os::fd::AsFd;

use rackloom_gpu::GpuError;
use rackloom_gpu::device::{Address, AtomicKind, Device, Element, Reduction};
use rackloom_gpu::fake::{Fake, FakePlan};
use rackloom_gpu::landing::{Landed, Landing, WordChange};

use crate::rig::{Random, on_every_device};

const LENGTH: usize = 200_000;

#[derive(Debug)]
enum Expected {
    Written,
    Bytes(Vec<u8>),
    Value(u64),
}

/// Applies random requests to a landing and to a vector of bytes. Each answer must equal the contents of the vector at the time of the request.
pub(crate) fn land_at_random(
    landing: &mut Landing<dyn Device>,
    base: Address,
    seed: u64,
    steps: u32,
) -> Vec<u8> {
    let mut random = Random(seed);
    let mut model = vec![0; LENGTH];
    let mut expected: Vec<Expected> = Vec::new();
    let mut answered = 0;
    for _ in 0..steps {
        let ticket = expected.len() as u32;
        match random.below(10) {
            0..=5 => {
                for _ in 0..1 + random.below(4) {
                    let length = [1, 4, 8, 31, 64, 300, 4096, 40_000][random.below(8) as usize];
                    let at = random.below((LENGTH - length) as u64) as usize;
                    let bytes = random.bytes(length);
                    landing.write(base.plus(at as u64), &bytes).unwrap();
                    model[at..at + length].copy_from_slice(&bytes);
                }
                landing.ticket(ticket);
                expected.push(Expected::Written);
            }
            6 | 7 => {
                let length = 1 + random.below(256) as usize;
                let at = random.below((LENGTH - length) as u64) as usize;
                landing.read(ticket, base.plus(at as u64), length).unwrap();
                expected.push(Expected::Bytes(model[at..at + length].to_vec()));
            }
            _ => {
                let (change, at) = any_change(&mut random);
                landing.atomic(ticket, base.plus(at as u64), change).unwrap();
                expected.push(Expected::Value(changed(&mut model, at, change)));
            }
        }
        if random.below(3) == 0 {
            answered += take_answers(landing, &expected, answered);
        }
    }
    let mut polls_left = 10_000_000_u64;
    while answered < expected.len() {
        answered += take_answers(landing, &expected, answered);
        polls_left -= 1;
        assert!(polls_left > 0, "ticket {answered} is never answered");
    }
    assert!(!landing.is_busy());
    model
}

const KINDS: [AtomicKind; 10] = [
    AtomicKind::Add,
    AtomicKind::CompareSwap,
    AtomicKind::Swap,
    AtomicKind::And,
    AtomicKind::Or,
    AtomicKind::Xor,
    AtomicKind::Min,
    AtomicKind::Max,
    AtomicKind::MinSigned,
    AtomicKind::MaxSigned,
];

fn any_change(random: &mut Random) -> (WordChange, usize) {
    let width = [4, 8][random.below(2) as usize];
    let at = random.below((LENGTH / 8) as u64) as usize * 8;
    let kind = KINDS[random.below(KINDS.len() as u64) as usize];
    let compare = random.below(2);
    // The highest bit of both widths is set in half of the operands.
    let operand = random.below(1 << 31) << 33 | random.below(1 << 31) << 1 | 1;
    (WordChange { kind, width, operand, compare }, at)
}

/// Changes the model and returns the old value.
fn changed(model: &mut [u8], at: usize, change: WordChange) -> u64 {
    let word = &mut model[at..at + change.width as usize];
    let mut wide = [0; 8];
    wide[..word.len()].copy_from_slice(word);
    let old = u64::from_le_bytes(wide);
    let compare = if change.width == 4 { change.compare & 0xffff_ffff } else { change.compare };
    let operand = if change.width == 4 { change.operand & 0xffff_ffff } else { change.operand };
    let signed = |value: u64| if change.width == 4 { i64::from(value as i32) } else { value as i64 };
    let new = match change.kind {
        AtomicKind::Add => old.wrapping_add(operand),
        AtomicKind::CompareSwap if old != compare => old,
        AtomicKind::CompareSwap | AtomicKind::Swap => operand,
        AtomicKind::And => old & operand,
        AtomicKind::Or => old | operand,
        AtomicKind::Xor => old ^ operand,
        AtomicKind::Min => old.min(operand),
        AtomicKind::Max => old.max(operand),
        AtomicKind::MinSigned => signed(old).min(signed(operand)) as u64,
        AtomicKind::MaxSigned => signed(old).max(signed(operand)) as u64,
    };
    word.copy_from_slice(&new.to_le_bytes()[..word.len()]);
    old
}

fn take_answers(landing: &mut Landing<dyn Device>, expected: &[Expected], from: usize) -> usize {
    let mut taken = 0;
    while let Some((ticket, landed)) = landing.poll() {
        assert_eq!(ticket as usize, from + taken, "answers come in the order of requests");
        match (&expected[ticket as usize], landed) {
            (Expected::Written, Landed::Written) => {}
            (Expected::Bytes(bytes), Landed::Bytes(found)) => {
                assert!(bytes == found, "ticket {ticket} read other bytes")
            }
            (Expected::Value(value), Landed::Value(found)) => assert_eq!(*value, found, "ticket {ticket}"),
            (expected, landed) => panic!("ticket {ticket}: {landed:?} where {expected:?} was requested"),
        }
        taken += 1;
    }
    taken
}

#[test]
fn a_landing_equals_a_vector_of_bytes() {
    on_every_device("a_landing_equals_a_vector_of_bytes", |device, seed| {
        for ring_bytes in [64 << 10, 8 << 20] {
            let mut landing = Landing::with_ring(device(), ring_bytes).unwrap();
            let base = landing.device().allocate(LENGTH as u64).unwrap();
            let model = land_at_random(&mut landing, base, seed, 300);
            let mut found = vec![0; LENGTH];
            landing.read_now(base, &mut found).unwrap();
            assert!(found == model, "seed {seed}: memory differs at the end");
            landing.device().free(base).unwrap();
        }
    });
}

/// Allocations may touch, but a copy must stay within one of them.
#[test]
fn adjacent_ranges_in_two_allocations_are_two_copies() {
    on_every_device("adjacent_ranges_in_two_allocations_are_two_copies", |device, _| {
        let mut landing = Landing::new(device()).unwrap();
        if landing
            .device()
            .allocate_from_pool(256)
            .and_then(|address| landing.device().free(address))
            .is_err()
        {
            return;
        }
        let mut bases: Vec<_> =
            (0..8).map(|_| landing.device().allocate_from_pool(65_536).unwrap()).collect();
        bases.sort_unstable_by_key(|base| base.0);
        for base in &bases {
            landing.note_start(*base);
        }
        for (base, byte) in bases.iter().zip(1..) {
            landing.write(*base, &[byte; 65_536]).unwrap();
        }
        landing.finish().unwrap();
        for (base, byte) in bases.iter().zip(1..) {
            let mut found = vec![0; 65_536];
            landing.read_now(*base, &mut found).unwrap();
            assert!(found.iter().all(|found| *found == byte));
        }
        for base in bases {
            landing.forget_start(base);
            landing.device().free(base).unwrap();
        }
    });
}

#[test]
fn small_writes_share_a_launch_and_neighbours_become_one_copy() {
    on_every_device("small_writes_share_a_launch_and_neighbours_become_one_copy", |device, _| {
        let mut landing = Landing::new(device()).unwrap();
        let base = landing.device().allocate(1 << 20).unwrap();
        for at in 0..100 {
            landing.write(base.plus(at * 1024), &[1; 64]).unwrap();
        }
        landing.finish().unwrap();
        let counts = landing.counts();
        assert_eq!((counts.ranges, counts.launches, counts.copies), (100, 1, 0));
        for at in 0..16 {
            landing.write(base.plus(at * 4096), &[2; 4096]).unwrap();
        }
        landing.finish().unwrap();
        let counts = landing.counts();
        assert_eq!((counts.ranges, counts.launches, counts.copies), (116, 1, 1));
        // Few ranges are not worth a kernel.
        // Ranges that overlap keep their order, so they cannot share a launch.
        landing.write(base, &[3; 64]).unwrap();
        landing.write(base.plus(32), &[4; 64]).unwrap();
        landing.finish().unwrap();
        let counts = landing.counts();
        assert_eq!((counts.launches, counts.copies), (1, 3));
        let mut found = [0; 128];
        landing.read_now(base, &mut found).unwrap();
        assert_eq!((&found[..32], &found[32..96], &found[96..]), (&[3; 32][..], &[4; 64][..], &[2; 32][..]));
    });
}

#[test]
fn a_stream_waits_for_an_event_of_another() {
    on_every_device("a_stream_waits_for_an_event_of_another", |device, seed| {
        let mut device = device();
        let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
        let event = device.event().unwrap();
        let bytes = 100_000;
        let mut pinned = device.pin(2 * bytes).unwrap();
        let source = Random(seed).bytes(bytes);
        pinned.write(0, &source).unwrap();
        let middle = device.allocate(bytes as u64).unwrap();
        device.copy(first, middle, pinned.address(0), bytes as u64).unwrap();
        device.record(event, first).unwrap();
        device.wait(second, event).unwrap();
        device.copy(second, pinned.address(bytes), middle, bytes as u64).unwrap();
        device.synchronize(second).unwrap();
        assert!(device.is_done(event).unwrap());
        let mut found = vec![0; bytes];
        pinned.read(bytes, &mut found).unwrap();
        assert!(found == source);
    });
}

/// Returns numbers for which every order of rounding has the same result, so that only the arithmetic is compared.
fn elements(element: Element, random: &mut Random, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..count {
        let whole = random.below(200) as i64 - 100;
        let special = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0];
        let special = special.get(random.below(60) as usize).copied();
        match element {
            Element::F32 => bytes.extend((special.unwrap_or(whole as f64 / 4.0) as f32).to_le_bytes()),
            Element::F64 => bytes.extend(special.unwrap_or(whole as f64 / 4.0).to_le_bytes()),
            // Any bits.
            Element::F16 | Element::Bf16 => bytes.extend((random.below(1 << 16) as u16).to_le_bytes()),
            Element::I32 => bytes.extend((random.below(1 << 31) as i32 - (1 << 30)).to_le_bytes()),
            Element::I64 => bytes.extend((whole << 40 | 12_345).to_le_bytes()),
        }
    }
    bytes
}

/// Returns the reduction of two arrays by a device.
fn reduced(device: &mut dyn Device, work: (Reduction, Element), ours: &[u8], theirs: &[u8]) -> Vec<u8> {
    let stream = device.stream().unwrap();
    let bytes = ours.len() as u64;
    let mut pinned = device.pin(2 * ours.len()).unwrap();
    pinned.write(0, ours).unwrap();
    pinned.write(ours.len(), theirs).unwrap();
    let (target, source) = (device.allocate(bytes).unwrap(), device.allocate(bytes).unwrap());
    device.copy(stream, target, pinned.address(0), bytes).unwrap();
    device.copy(stream, source, pinned.address(ours.len()), bytes).unwrap();
    device.reduce(stream, work, target, source, bytes / work.1.bytes()).unwrap();
    device.copy(stream, pinned.address(0), target, bytes).unwrap();
    device.synchronize(stream).unwrap();
    let mut found = vec![0; ours.len()];
    pinned.read(0, &mut found).unwrap();
    device.free(target).unwrap();
    device.free(source).unwrap();
    found
}

#[test]
fn every_reduction_of_every_type_is_the_same_on_every_device() {
    on_every_device("every_reduction_of_every_type_is_the_same_on_every_device", |device, seed| {
        let mut device = device();
        let mut fake = Fake::new(FakePlan::new(seed));
        let mut random = Random(seed);
        for element in Element::ALL {
            for reduction in Reduction::ALL {
                // The count is no multiple of the elements of one thread.
                let (ours, theirs) =
                    (elements(element, &mut random, 10_007), elements(element, &mut random, 10_007));
                let found = reduced(&mut *device, (reduction, element), &ours, &theirs);
                let expected = reduced(&mut fake, (reduction, element), &ours, &theirs);
                let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
                assert_eq!(differs, None, "{reduction:?} of {element:?}, by the byte");
            }
        }
    });
}

#[test]
fn reductions_have_the_expected_values() {
    // The suite above compares with the fake device. This test has sums that a reader can check.
    on_every_device("reductions_have_the_expected_values", |device, _| {
        let bytes = |values: [f32; 3]| values.map(f32::to_le_bytes).concat();
        let (ours, theirs) = (bytes([1.5, -2.0, 1e30]), bytes([2.25, -3.0, 1e30]));
        let found = reduced(&mut *device(), (Reduction::Sum, Element::F32), &ours, &theirs);
        assert_eq!(found, bytes([3.75, -5.0, 2e30]));
        let found = reduced(&mut *device(), (Reduction::Product, Element::F32), &ours, &theirs);
        assert_eq!(found, bytes([3.375, 6.0, f32::INFINITY]));
    });
}

#[test]
fn a_product_is_the_same_on_every_device() {
    on_every_device("a_product_is_the_same_on_every_device", |make, seed| {
        let mut device = make();
        let mut random = Random(seed);
        // Whole tiles, less than one, and a remainder.
        let sizes = [[64, 16, 64], [1, 1, 1], [5, 7, 3], [70, 33, 130]];
        for [rows, inner, columns] in sizes {
            let mut matrix = |count: u32| -> Vec<f32> {
                (0..count).map(|_| random.below(2000) as f32 / 1000.0 - 1.0).collect()
            };
            let (left, right) = (matrix(rows * inner), matrix(inner * columns));
            let stream = device.stream().unwrap();
            let on_device = |device: &mut dyn Device, values: &[f32]| {
                let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                let address = device.allocate(bytes.len() as u64).unwrap();
                let mut pinned = device.pin(bytes.len()).unwrap();
                pinned.write(0, &bytes).unwrap();
                device.copy(stream, address, pinned.address(0), bytes.len() as u64).unwrap();
                device.synchronize(stream).unwrap();
                address
            };
            let operands = [on_device(&mut *device, &left), on_device(&mut *device, &right)];
            let bytes = u64::from(rows * columns) * 4;
            let target = device.allocate(bytes).unwrap();
            device.multiply(stream, operands, target, [rows, inner, columns]).unwrap();
            let pinned = device.pin(bytes as usize).unwrap();
            device.copy(stream, pinned.address(0), target, bytes).unwrap();
            device.synchronize(stream).unwrap();
            let mut found = vec![0; bytes as usize];
            pinned.read(0, &mut found).unwrap();
            for (index, found) in found.chunks_exact(4).enumerate() {
                let (row, column) = (index as u32 / columns, index as u32 % columns);
                let at =
                    |at: u32| (left[(row * inner + at) as usize], right[(at * columns + column) as usize]);
                let wanted = (0..inner).map(at).fold(0.0_f32, |sum, (left, right)| left.mul_add(right, sum));
                assert_eq!(found, wanted.to_le_bytes(), "{rows} {inner} {columns}: {row}, {column}");
            }
        }
    });
}

/// Each fake device counts as a process. `processes` has this test for a real device, with two processes.
#[test]
fn one_fake_device_uses_memory_of_another() {
    for seed in 0..20 {
        let fake = |seed| Landing::new(Box::new(Fake::new(FakePlan::new(seed)))).unwrap();
        let (mut owner, mut importer) = (fake(seed), fake(seed + 100));
        let device = owner.device();
        let memory =
            if seed % 2 == 0 { device.allocate(100_000) } else { device.allocate_from_pool(100_000) };
        let memory = memory.unwrap();
        owner.write(memory.plus(8), &[7; 64]).unwrap();
        owner.finish().unwrap();
        let shared = owner.device().share(memory).unwrap();
        let file = shared.file.as_ref().map(AsFd::as_fd);
        assert_eq!(owner.device().open(&shared.handle, file), Err(GpuError::OwnHandle));
        let there = importer.device().open(&shared.handle, file).unwrap();
        let mut found = [0; 64];
        importer.read_now(there.plus(8), &mut found).unwrap();
        assert_eq!(found, [7; 64], "what was there before it was shared");
        importer.write(there.plus(64), &[9; 1000]).unwrap();
        importer.set_now(there, 41).unwrap();
        let add = WordChange { kind: AtomicKind::Add, width: 8, operand: 1, compare: 0 };
        assert_eq!(importer.atomic_now(there, add), Ok(41));
        assert_eq!(owner.atomic_now(memory, add), Ok(42), "one word for both");
        let mut found = [0; 1000];
        owner.read_now(memory.plus(64), &mut found).unwrap();
        assert_eq!(found, [9; 1000]);
        importer.device().close(there).unwrap();
        assert!(importer.device().close(there).is_err(), "once");
        owner.device().free(memory).unwrap();
    }
}

#[test]
fn a_pool_of_a_device_hands_out_zeros_and_counts() {
    on_every_device("a_pool_of_a_device_hands_out_zeros_and_counts", |device, seed| {
        let mut landing = Landing::new(device()).unwrap();
        assert_eq!(landing.device().pool_statistics().unwrap(), None, "none before it is needed");
        let bytes = 3 << 20;
        let first = landing.device().allocate_from_pool(bytes).unwrap();
        let second = landing.device().allocate_from_pool(bytes).unwrap();
        landing.write(first, &Random(seed).bytes(4096)).unwrap();
        landing.finish().unwrap();
        // A word by itself, a signal, and an atomic behind them.
        landing.write(first.plus(8), &7_u64.to_ne_bytes()).unwrap();
        landing.set_now(first, 41).unwrap();
        let add = WordChange { kind: AtomicKind::Add, width: 8, operand: 1, compare: 0 };
        assert_eq!((landing.atomic_now(first, add), landing.atomic_now(first.plus(8), add)), (Ok(41), Ok(7)));
        let counted = landing.device().pool_statistics().unwrap().unwrap();
        assert!(counted.used_current >= 2 * bytes && counted.reserved_current >= counted.used_current);
        landing.device().free(first).unwrap();
        let again = landing.device().allocate_from_pool(bytes).unwrap();
        let mut found = [1; 4096];
        landing.read_now(again, &mut found).unwrap();
        assert_eq!(found, [0; 4096], "bytes of the previous owner");
        for memory in [again, second] {
            landing.device().free(memory).unwrap();
        }
        assert!(landing.device().free(second).is_err(), "freed twice");
        let counted = landing.device().pool_statistics().unwrap().unwrap();
        assert_eq!(counted.used_current, 0);
        assert!(counted.used_high >= 2 * bytes);
        let refused = landing.device().allocate_from_pool(1 << 50).unwrap_err();
        assert!(matches!(refused, GpuError::OutOfMemory { .. }), "{refused}");
    });
}

/// A producer and a consumer on two streams order themselves by two words, while the processor waits for neither.
#[test]
fn streams_wait_for_words_of_each_other() {
    const ROUNDS: u64 = 20;
    const BYTES: u64 = 4096;
    on_every_device("streams_wait_for_words_of_each_other", |make, _| {
        let mut device = make();
        let (words, shared) = (device.allocate(256).unwrap(), device.allocate(BYTES).unwrap());
        let source = device.allocate(ROUNDS * BYTES).unwrap();
        let target = device.allocate(ROUNDS * BYTES).unwrap();
        let mut landing = Landing::new(device).unwrap();
        let data: Vec<u8> = (0..ROUNDS * BYTES).map(|at| (at / BYTES + at % 7) as u8).collect();
        landing.write(source, &data).unwrap();
        landing.finish().unwrap();
        let device = landing.device();
        let (producer, consumer) = (device.stream().unwrap(), device.stream().unwrap());
        let (ready, finished) = (words, words.plus(8));
        for round in 0..ROUNDS {
            device.wait_word(producer, finished, round).unwrap();
            device.copy(producer, shared, source.plus(round * BYTES), BYTES).unwrap();
            device.write_word(producer, ready, 8, round + 1).unwrap();
            device.wait_word(consumer, ready, round + 1).unwrap();
            device.copy(consumer, target.plus(round * BYTES), shared, BYTES).unwrap();
            device.write_word(consumer, finished, 8, round + 1).unwrap();
        }
        device.synchronize(producer).unwrap();
        device.synchronize(consumer).unwrap();
        let mut found = vec![0; data.len()];
        landing.read_now(target, &mut found).unwrap();
        assert!(found == data, "a round was read before it was ready, or overwritten before it was read");
    });
}
