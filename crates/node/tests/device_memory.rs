//! Tests of regions on a device: combinations match those of the host, and frames stay until the device has read them.
//!
//! The device is a fake one. Its delays and the order of its operations depend on a seed, so that a frame that moves too early, or an answer before
//! the bytes have arrived, shows as wrong bytes.

#![cfg(feature = "gpu")]

use std::collections::VecDeque;

use rackloom::memory::{DeviceChoice, MemoryOptions};
use rackloom::wires::shared_memory::{RING_BYTES_MIN, pair};
use rackloom::wires::{Device, Doorbell};
use rackloom::{HostMemory, Ports};
use rackloom_collectives::{ElementType, ReduceOperation, reduce::reduce};
use rackloom_protocol::{
    Arithmetic, Combine, FrameRange, Instant, JobMemory, LeaseId, Memory, MemoryAccess, MemoryDone,
    MemoryRequest, MemoryToken, Number, PinnedFrames, PortId, RegionId, Wires,
};

const REGION: RegionId = RegionId(1);
const OTHER: RegionId = RegionId(2);
const BYTES: usize = 4 << 20;

fn on_device(seed: u64, regions: &[RegionId]) -> HostMemory {
    let mut memory = HostMemory::default();
    let options = MemoryOptions::default().device(Some(DeviceChoice::Fake(seed)));
    for region in regions {
        memory.allocate_with(*region, BYTES as u64, options).unwrap();
    }
    memory
}

/// Returns pseudo-random bits, which include floating-point values that are not numbers.
fn bits(mut seed: u64, bytes: usize) -> Vec<u8> {
    let next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u32
    };
    std::iter::repeat_with(next).flat_map(u32::to_le_bytes).take(bytes).collect()
}

#[test]
fn a_device_combines_like_the_host_to_the_bit() {
    let elements = [
        (ElementType::F32, Number::F32),
        (ElementType::F64, Number::F64),
        (ElementType::F16, Number::F16),
        (ElementType::Bf16, Number::Bf16),
        (ElementType::I32, Number::I32),
        (ElementType::I64, Number::I64),
    ];
    let operations = [
        (ReduceOperation::Sum, Arithmetic::Sum),
        (ReduceOperation::Min, Arithmetic::Min),
        (ReduceOperation::Max, Arithmetic::Max),
        (ReduceOperation::Product, Arithmetic::Product),
    ];
    let mut memory = on_device(5, &[REGION, OTHER]);
    for (seed, (element, number)) in (0..).zip(elements) {
        for (operation, arithmetic) in operations {
            let (mut ours, mut theirs) = (bits(seed, 40_000), bits(seed + 100, 40_000));
            // Zeros of both signs combined with each other, and all values that are not numbers.
            let specials = [f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, 1.0];
            for (at, (left, right)) in
                specials.into_iter().flat_map(|left| specials.map(|right| (left, right))).enumerate()
            {
                let range = at * 8..at * 8 + 8;
                let word = |value: f64| match element {
                    ElementType::F64 => value.to_bits(),
                    ElementType::F32 => u64::from((value as f32).to_bits()) * 0x1_0000_0001,
                    _ => u64::from((value as f32).to_bits() >> 16) * 0x1_0001_0001_0001,
                };
                ours[range.clone()].copy_from_slice(&word(left).to_le_bytes());
                theirs[range].copy_from_slice(&word(right).to_le_bytes());
            }
            memory.write(REGION, 64, &ours).unwrap();
            memory.write(OTHER, 128, &theirs).unwrap();
            let how = Some((arithmetic, number));
            let combine = Combine { target: (REGION, 64), source: (OTHER, 128), length: 40_000, how };
            assert_eq!(memory.combine(&combine), Ok(true));
            let mut found = vec![0; 40_000];
            memory.read(REGION, 64, &mut found).unwrap();
            reduce(operation, element, &mut ours, &theirs).unwrap();
            let differs = found.iter().zip(&ours).position(|(found, wanted)| found != wanted);
            assert_eq!(differs, None, "{operation} of {element}: the first byte that is wrong");
        }
    }
    let copy = Combine { target: (REGION, 0), source: (OTHER, 128), length: 4096, how: None };
    assert_eq!(memory.combine(&copy), Ok(true));
    let (mut found, mut wanted) = (vec![0; 4096], vec![0; 4096]);
    memory.read(REGION, 0, &mut found).unwrap();
    memory.read(OTHER, 128, &mut wanted).unwrap();
    assert_eq!(found, wanted);
}

#[test]
fn ranges_outside_of_the_device_or_the_region_are_not_combined() {
    let mut memory = on_device(1, &[REGION]);
    memory.allocate(OTHER, BYTES as u64).unwrap();
    let how = Some((Arithmetic::Sum, Number::F32));
    let combine = |target, length| Combine { target, source: (REGION, 0), length, how };
    assert_eq!(memory.combine(&combine((OTHER, 0), 64)), Ok(false));
    assert_eq!(memory.combine(&combine((REGION, 66), 64)), Ok(false), "a crooked address is the host's work");
    assert!(memory.combine(&combine((REGION, BYTES as u64 - 32), 64)).is_err());
}

/// Length of an odd header before the payload of a frame, in bytes, as in a frame of the fabric.
const HEADER_BYTES: usize = 42;
const PAYLOAD_BYTES: usize = 8192;

#[test]
fn frames_stay_in_place_until_the_device_has_read_them() {
    for seed in 0..20 {
        let bell = Doorbell::create().unwrap();
        let (mut sender, receiver) = pair(RING_BYTES_MIN, &bell, &bell).unwrap();
        let mut ports = Ports::new(vec![Box::new(receiver)], 9000).unwrap();
        let mut memory = on_device(seed, &[REGION]);
        assert!(memory.take_frames_in_place(&mut ports).is_empty(), "every port keeps its frames");
        let wanted = bits(seed, BYTES);
        let mut payloads = wanted.chunks(PAYLOAD_BYTES).enumerate().peekable();
        let mut out: VecDeque<LeaseId> = VecDeque::new();
        let (mut sent, mut landed) = (0, 0);
        while landed < BYTES / PAYLOAD_BYTES {
            // All free space is used. Space that was released too early would be overwritten here.
            while payloads.peek().is_some()
                && let Some(slot) = sender.slot()
            {
                let (_, payload) = payloads.next().unwrap();
                slot[..HEADER_BYTES].fill(0xee);
                slot[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(payload);
                sender.commit(HEADER_BYTES + payload.len(), false);
            }
            sender.flush(Instant::ZERO);
            while let Some(lease) = ports.receive(PortId(0)) {
                let ranges = [FrameRange {
                    frame_offset: HEADER_BYTES as u32,
                    length: PAYLOAD_BYTES as u32,
                    region_offset: (sent * PAYLOAD_BYTES) as u64,
                }];
                let access = MemoryAccess::Write { lease, ranges: &ranges };
                let request = MemoryRequest { token: MemoryToken(sent as u32), region: REGION, access };
                ports.pin(lease);
                let frame = ports.leased(lease);
                assert_eq!(memory.execute(&request, frame), None, "a device answers later");
                out.push_back(lease);
                sent += 1;
            }
            ports.flush(Instant::ZERO);
            while let Some((token, done)) = memory.poll_done() {
                assert_eq!((token, done), (MemoryToken(landed as u32), MemoryDone::Written));
                ports.release(out.pop_front().unwrap());
                landed += 1;
            }
            ports.flush(Instant::ZERO);
        }
        let mut found = vec![0; BYTES];
        memory.read(REGION, 0, &mut found).unwrap();
        let differs = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted);
        assert_eq!(differs, None, "seed {seed}: the first byte that is wrong");
    }
}
