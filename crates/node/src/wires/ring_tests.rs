//! Tests of the ring. They are not in its file, because `crates/models` compiles that file too.

use std::collections::VecDeque;
use std::os::fd::AsFd;

use proptest::prelude::*;

use super::DeviceLease;
use super::leases::Leases;
use super::ring::*;
use super::ring_memory::{HEAD_AT, TAIL_AT, file_bytes};
use crate::mapping::sealed_memfd;
use crate::sync::Ordering;

const BODY_BYTES: u32 = 4096;

fn ring() -> (Producer, Consumer) {
    let file = sealed_memfd("ring", file_bytes(BODY_BYTES)).unwrap();
    (Producer::open(file.as_fd()).unwrap(), Consumer::open(file.as_fd()).unwrap())
}

#[derive(Clone, Debug)]
enum Step {
    Send { length: usize },
    Publish,
    Receive,
    Release { which: usize },
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_usize..1500).prop_map(|length| Step::Send { length }),
        2 => Just(Step::Publish),
        4 => Just(Step::Receive),
        3 => any::<usize>().prop_map(|which| Step::Release { which }),
        2 => Just(Step::Flush),
    ]
}

proptest! {
    /// The ring with its leases is a queue of frames: no frame is lost, duplicated, moved or corrupted, whichever leases are held.
    #[test]
    fn a_ring_with_leases_is_a_queue(steps in prop::collection::vec(step(), 1..400)) {
        let (mut producer, mut consumer) = ring();
        let mut leases = Leases::default();
        let mut committed = VecDeque::new();
        let mut published = VecDeque::new();
        let mut held: Vec<(DeviceLease, Vec<u8>)> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Send { length } => {
                    let frame: Vec<u8> = (0..length).map(|at| (number * 13 + at) as u8).collect();
                    if let Some(slot) = producer.slot(length).unwrap() {
                        slot.copy_from_slice(&frame);
                        producer.commit(length);
                        committed.push_back(frame);
                    }
                }
                Step::Publish => {
                    prop_assert_eq!(producer.publish(), !committed.is_empty());
                    published.append(&mut committed);
                }
                Step::Receive => {
                    let record = consumer.next().unwrap();
                    prop_assert_eq!(record.is_some(), !published.is_empty());
                    if let (Some(record), Some(frame)) = (record, published.pop_front()) {
                        prop_assert_eq!(consumer.bytes(record), &frame[..]);
                        held.push((leases.take(record), frame));
                    }
                }
                Step::Release { which } => {
                    if !held.is_empty() {
                        let (lease, _) = held.swap_remove(which % held.len());
                        leases.release(&mut consumer, lease);
                    }
                }
                Step::Flush => {
                    leases.evacuate(&mut consumer);
                    consumer.publish();
                    let heap_is_full = held.iter().map(|(_, frame)| frame.len()).sum::<usize>() >= 4 * BODY_BYTES as usize;
                    prop_assert!(heap_is_full || consumer.held_bytes() <= u64::from(BODY_BYTES) / 2);
                }
            }
            for (lease, frame) in &held {
                prop_assert_eq!(leases.bytes(&consumer, *lease), &frame[..]);
            }
        }
    }

    /// A neighbour that writes arbitrary values into the shared file breaks the ring, but not the process.
    #[test]
    fn invalid_shared_pages_are_detected(
        tail in any::<u64>(),
        head in any::<u64>(),
        length in any::<u32>(),
        batch in any::<u32>(),
        small in any::<bool>(),
    ) {
        let (mut producer, mut consumer) = ring();
        producer.slot(100).unwrap().unwrap();
        producer.commit(100);
        producer.publish();
        let (tail, head) = if small { (tail % 8192, head % 8192) } else { (tail, head) };
        let batch = if small { batch % 8192 } else { batch };
        consumer.shared.length_word(0).store(length, Ordering::Relaxed);
        consumer.shared.batch_word(0).store(batch, Ordering::Relaxed);
        consumer.shared.index(TAIL_AT).store(tail, Ordering::Relaxed);
        consumer.shared.index(HEAD_AT).store(head, Ordering::Relaxed);
        while let Ok(Some(record)) = consumer.next() {
            prop_assert!(consumer.bytes(record).len() <= BODY_BYTES as usize);
        }
        while let Ok(Some(slot)) = producer.slot(1000) {
            slot.fill(1);
            producer.commit(1000);
        }
    }
}

#[test]
fn a_batch_is_seen_whole_or_not_at_all() {
    let (mut producer, mut consumer) = ring();
    for lap in 0..100_u8 {
        for length in [0, 1, 700, 63] {
            // The bytes that the previous lap left here are not a valid header.
            producer.slot(length).unwrap().unwrap().fill(lap | 1);
            producer.commit(length);
            assert!(!consumer.ready().unwrap(), "a record that was not shown was seen");
        }
        producer.publish();
        let lengths = std::iter::from_fn(|| consumer.next().unwrap()).map(|record| record.length);
        assert_eq!(lengths.collect::<Vec<_>>(), [0, 1, 700, 63]);
        consumer.advance(consumer.read);
        consumer.publish();
    }
}

/// A process that opens one side anew finds the frames that the other side has published, even without the starts of its batches.
#[test]
fn either_side_can_be_opened_again() {
    let file = sealed_memfd("ring", file_bytes(BODY_BYTES)).unwrap();
    let mut producer = Producer::open(file.as_fd()).unwrap();
    let send = |producer: &mut Producer, byte: u8| {
        producer.slot(40).unwrap().unwrap().fill(byte);
        producer.commit(40);
        producer.publish();
    };
    send(&mut producer, 1);
    let mut producer = Producer::open(file.as_fd()).unwrap();
    send(&mut producer, 2);
    let mut consumer = Consumer::open(file.as_fd()).unwrap();
    send(&mut producer, 3);
    for byte in 1..=3 {
        let record = consumer.next().unwrap().unwrap();
        assert_eq!(consumer.bytes(record), [byte; 40]);
    }
    assert_eq!(consumer.next(), Ok(None));
}

#[test]
fn a_full_ring_requests_a_notification_of_free_space() {
    let (mut producer, mut consumer) = ring();
    while producer.slot(500).unwrap().is_some() {
        producer.commit(500);
        producer.publish();
    }
    let first = consumer.next().unwrap().unwrap();
    consumer.advance(first.end());
    assert!(consumer.publish(), "the producer waits");
    let second = consumer.next().unwrap().unwrap();
    assert!(producer.slot(500).unwrap().is_some());
    consumer.advance(second.end());
    assert!(!consumer.publish(), "the producer no longer waits");
}

#[test]
fn a_file_of_an_impossible_length_is_refused() {
    for length in [0, 4096, 4097, 4096 + 5000, 4096 + 2048] {
        let file = sealed_memfd("ring", length).unwrap();
        assert!(Consumer::open(file.as_fd()).is_err(), "{length}");
    }
}
