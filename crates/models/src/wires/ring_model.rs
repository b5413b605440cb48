//! Models of the ring with doorbells: frames arrive whole and in order, and no wake-up is lost.

use std::sync::Arc;

use loom::thread;

use super::futex::Doorbell;
use super::ring::{Consumer, Producer};
use super::ring_memory::Shared;
use crate::{check, check_exactly};

/// Bytes before the payload of a record.
const HEADER_BYTES: u64 = 8;
/// Length of the frames. A record with one of them takes 24 bytes.
const FRAME_BYTES: usize = 16;
/// Bytes that have passed through the ring before. The second record then crosses the end of the body.
const BEGIN: u64 = 24;

/// The producer with its own view of where it writes.
struct Sender {
    producer: Producer,
    shared: Shared,
    at: u64,
}

/// The consumer with its own view of where it reads.
struct Receiver {
    consumer: Consumer,
    shared: Shared,
    at: u64,
}

fn pair() -> (Sender, Receiver) {
    let shared = Shared::empty(BEGIN);
    let producer = Producer::of(shared.clone()).expect("the ring is empty");
    let consumer = Consumer::of(shared.clone()).expect("the ring is empty");
    let receiver = Receiver { consumer, shared: shared.clone(), at: BEGIN };
    (Sender { producer, shared, at: BEGIN }, receiver)
}

impl Sender {
    /// Commits a frame that contains this number twice, if there is space.
    fn commit(&mut self, number: u64) -> bool {
        if self.producer.slot(FRAME_BYTES).expect("the ring is whole").is_none() {
            return false;
        }
        for unit in [0, 8] {
            self.shared.write(self.at + HEADER_BYTES + unit, number);
        }
        self.producer.commit(FRAME_BYTES);
        self.at += HEADER_BYTES + FRAME_BYTES as u64;
        true
    }
}

impl Receiver {
    /// Reads a frame, if there is one, and checks that it has this number. Returns its space at once.
    fn receive(&mut self, number: u64) -> bool {
        let Some(record) = self.consumer.next().expect("the ring is whole") else { return false };
        for unit in [0, 8] {
            assert_eq!(self.shared.read(self.at + HEADER_BYTES + unit), number, "a frame is not whole");
        }
        self.at += HEADER_BYTES + FRAME_BYTES as u64;
        assert_eq!(record.end(), self.at, "a record is not where it was written");
        self.consumer.advance(record.end());
        true
    }
}

/// Frames arrive whole, once and in order, through a ring that is full in between and whose end they cross.
///
/// # Panics
/// If they do not in some order of the threads.
pub fn frames_arrive_in_order(preemptions: usize) {
    const FRAMES: u64 = 4;
    check(preemptions, || {
        let (mut sender, mut receiver) = pair();
        let sending = thread::spawn(move || {
            for number in 0..FRAMES {
                while !sender.commit(number) {
                    sender.producer.publish();
                    thread::yield_now();
                }
                // Two frames in the first batch.
                if number != 0 {
                    sender.producer.publish();
                }
            }
        });
        for number in 0..FRAMES {
            while !receiver.receive(number) {
                thread::yield_now();
            }
            receiver.consumer.publish();
        }
        sending.join().expect("the sender does not panic");
        assert!(!receiver.consumer.ready().expect("the ring is whole"));
    });
}

/// A node that parks until frames arrive receives them all.
///
/// # Panics
/// If it sleeps forever in some order of the threads.
pub fn no_wake_up_for_frames_is_lost(preemptions: usize) {
    const FRAMES: u64 = 2;
    // With four, `loom` reports an order that the memory model forbids (docs/decisions/models.md).
    check_exactly(preemptions.min(3), || {
        let (mut sender, mut receiver) = pair();
        let bell = Arc::new(Doorbell::new());
        let rung = Arc::clone(&bell);
        let sending = thread::spawn(move || {
            for number in 0..FRAMES {
                assert!(sender.commit(number), "there is space for two");
                sender.producer.publish();
                rung.ring();
            }
        });
        for number in 0..FRAMES {
            while !receiver.receive(number) {
                bell.park(|| receiver.consumer.ready().expect("the ring is whole"));
            }
        }
        sending.join().expect("the sender does not panic");
    });
}

/// A node that parks because the ring is full continues when there is space.
///
/// # Panics
/// If it sleeps forever in some order of the threads.
pub fn no_wake_up_for_space_is_lost(preemptions: usize) {
    check(preemptions, || {
        let (mut sender, mut receiver) = pair();
        let bell = Arc::new(Doorbell::new());
        let rung = Arc::clone(&bell);
        assert!(sender.commit(0) && sender.commit(1));
        sender.producer.publish();
        let receiving = thread::spawn(move || {
            for number in 0..2 {
                assert!(receiver.receive(number), "both are published");
                if receiver.consumer.publish() {
                    rung.ring();
                }
            }
        });
        while !sender.commit(2) {
            bell.park(|| sender.producer.slot(FRAME_BYTES).expect("the ring is whole").is_some());
        }
        receiving.join().expect("the receiver does not panic");
    });
}
