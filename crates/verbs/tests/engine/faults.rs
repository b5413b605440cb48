//! Faults that are set on queue pairs.

use std::sync::Arc;

use rackloom::fabric::{QueuePairEffect, QueuePairFault};
use rackloom_verbs::engine::{Kind, Loopback, Request, State, Target, Transport};

use crate::around::{Around, Faults};
use crate::support::{ALL_ACCESS, Device, End, Memory, SEND, signalled, statuses};

const NO_ANSWER: u32 = 12;
const FLUSHED: u32 = 5;

/// Bytes from which writes read, and as many into which they write.
const HALF: usize = 16_384;

/// Device with two connected queue pairs, the first and the second one of its process.
struct Bench {
    device: Device,
    ends: [End; 2],
    memory: Memory,
    faults: Faults,
}

impl Bench {
    fn new() -> Self {
        let transport = Around::new(|loopback: &mut Loopback, request: Request, target: &mut dyn Target| {
            loopback.carry(request, target)
        });
        let faults = Arc::clone(&transport.faults);
        let mut device = Device::with(Box::new(transport));
        let (a, b) = device.connected();
        let memory = device.memory(2 * HALF, 1, ALL_ACCESS);
        Self { device, ends: [a, b], memory, faults }
    }

    fn set(&mut self, faults: &[QueuePairFault]) {
        *self.faults.lock().expect("no panic") = Some(faults.to_vec());
        self.device.engine.poll(0);
    }

    /// Posts a write of this many bytes.
    fn write(&mut self, end: usize, id: u64, length: usize) {
        let kind = Kind::Write { remote: self.memory.remote(HALF), immediate: None };
        self.device.send(&self.ends[end], signalled(id, &[self.memory.part(0, length)], kind));
    }

    fn statuses(&self, end: usize) -> Vec<(u64, u32)> {
        statuses(&self.ends[end].sends)
    }
}

fn fault(number: Option<u32>, effect: QueuePairEffect) -> QueuePairFault {
    QueuePairFault { beginning: (0, 1), number, effect }
}

#[test]
fn a_queue_pair_fails_after_its_packets_and_works_again_after_a_reset() {
    let mut bench = Bench::new();
    bench.set(&[fault(Some(1), QueuePairEffect::Fail { packets: 5 })]);
    // A packet of these queue pairs has 4096 bytes.
    for end in [1, 0] {
        for (id, length) in [(1, 8), (2, 12_288), (3, 8), (4, 8), (5, 8)] {
            bench.write(end, id, length);
        }
    }
    assert_eq!(bench.statuses(0), [(1, 0), (2, 0), (3, 0), (4, NO_ANSWER), (5, FLUSHED)]);
    assert_eq!(bench.statuses(1), [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)]);
    let (number, peer) = (bench.ends[0].number, bench.ends[1].number);
    let attributes = bench.device.attributes(peer);
    bench.device.step(number, &attributes, State::Reset, 0);
    bench.device.bring(number, &attributes, State::Rts);
    for id in 6..9 {
        bench.write(0, id, HALF);
    }
    assert_eq!(bench.statuses(0), [(6, 0), (7, 0), (8, 0)], "it fails once");
}

#[test]
fn delayed_requests_start_after_their_time_and_others_at_once() {
    let mut bench = Bench::new();
    bench.set(&[fault(Some(2), QueuePairEffect::Delay { by_ns: 1000 })]);
    bench.write(1, 1, 8);
    bench.write(1, 2, 8);
    bench.write(0, 3, 8);
    assert_eq!((bench.statuses(0), bench.statuses(1)), (vec![(3, 0)], vec![]));
    assert_eq!(bench.device.engine.next_deadline_ns(), Some(1000));
    bench.device.engine.expire(999);
    assert_eq!(bench.statuses(1), []);
    bench.device.engine.expire(1000);
    assert_eq!(bench.statuses(1), [(1, 0), (2, 0)]);
    assert_eq!(bench.device.engine.next_deadline_ns(), None);
    bench.set(&[]);
    bench.write(1, 4, 8);
    assert_eq!(bench.statuses(1), [(4, 0)]);
}

#[test]
fn lost_completions_are_those_of_work_that_is_done_and_keep_their_places() {
    let mut bench = Bench::new();
    bench.set(&[fault(None, QueuePairEffect::DropCompletions { rate: 1.0 })]);
    for id in 0..8 {
        bench.write(0, id, 8);
    }
    assert_eq!(bench.memory.bytes()[HALF..HALF + 8], bench.memory.bytes()[..8], "the data have arrived");
    let memory = bench.device.memory(8, 1, ALL_ACCESS);
    bench.device.receive(&bench.ends[0], 9, &[memory.part(0, 8)]);
    bench.device.send(&bench.ends[1], signalled(1, &[bench.memory.part(8, 8)], SEND));
    assert_eq!(
        (statuses(&bench.ends[0].receives), memory.bytes()),
        (vec![], bench.memory.bytes()[8..16].to_vec())
    );
    assert_eq!((bench.statuses(0), bench.statuses(1)), (vec![], vec![]));
    // The send queue is full until a later completion is polled.
    let send = signalled(20, &[], SEND);
    assert_eq!(bench.device.engine.post_send(bench.ends[0].number, send, 0), Err(rustix::io::Errno::NOMEM));
}

/// Queue pairs that are made after the fault has begun have it, too.
#[test]
fn the_number_counts_queue_pairs_in_the_order_in_which_they_are_made() {
    let mut bench = Bench::new();
    bench.set(&[fault(Some(3), QueuePairEffect::Fail { packets: 0 })]);
    let (third, _fourth) = bench.device.connected();
    let kind = Kind::Write { remote: bench.memory.remote(0), immediate: None };
    bench.device.send(&third, signalled(1, &[bench.memory.part(0, 8)], kind));
    assert_eq!(statuses(&third.sends), [(1, NO_ANSWER)]);
    bench.write(0, 2, 8);
    assert_eq!(bench.statuses(0), [(2, 0)]);
}
