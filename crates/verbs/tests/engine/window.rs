//! Several requests of a queue pair at the transport.

use std::sync::{Arc, Mutex};

use rackloom_verbs::engine::{
    Carried, Kind, Loopback, Operation, Outcome, Request, Service, State, Target, Ticket,
};
use rackloom_verbs::layout::attributes::QpAttr;

use crate::around::Around;
use crate::support::{ALL_ACCESS, Device, End, Memory, SEND, signalled, statuses};

const NOT_READY: Outcome = Outcome::NotReady { wait_ns: 10_000 };
const FLUSHED: u32 = 5;

/// Requests that have been carried: ticket, and number of the message if it is one.
type Carriage = Arc<Mutex<Vec<(Ticket, Option<u32>)>>>;

/// Device with a queue pair, and its requests.
struct Bench {
    device: Device,
    end: End,
    memory: Memory,
    carried: Carriage,
}

impl Bench {
    fn new(change: impl Fn(QpAttr) -> QpAttr) -> Self {
        let carried = Carriage::default();
        let kept = Arc::clone(&carried);
        let later = Around::new(move |_: &mut Loopback, request: Request, _: &mut dyn Target| {
            let is_message = matches!(
                request.operation,
                Operation::Send { .. } | Operation::Write { immediate: Some(_), .. }
            );
            let message = is_message.then_some(request.message);
            kept.lock().expect("no panic").push((request.ticket, message));
            Carried::Pending
        });
        let mut device = Device::with(Box::new(later));
        let (end, peer) = (device.end(Service::Rc, None), device.end(Service::Rc, None));
        let attributes = change(device.attributes(peer.number));
        device.bring(end.number, &attributes, State::Rts);
        let memory = device.memory(64, 0, ALL_ACCESS);
        Self { device, end, memory, carried }
    }

    fn post(&mut self, id: u64, kind: Kind) {
        self.device.send(&self.end, signalled(id, &[self.memory.part(0, 8)], kind));
    }

    fn post_fenced(&mut self, id: u64, kind: Kind) {
        let mut send = signalled(id, &[self.memory.part(0, 8)], kind);
        send.is_fenced = true;
        self.device.send(&self.end, send);
    }

    fn write(&self) -> Kind {
        Kind::Write { remote: self.memory.remote(8), immediate: None }
    }

    fn write_immediate(&self) -> Kind {
        Kind::Write { remote: self.memory.remote(8), immediate: Some(1) }
    }

    fn read(&self) -> Kind {
        Kind::Read { remote: self.memory.remote(8) }
    }

    fn add(&self) -> Kind {
        Kind::FetchAdd { remote: self.memory.remote(8), add: 1 }
    }

    /// Returns the number of requests that have been carried.
    fn count(&self) -> usize {
        self.carried.lock().expect("no panic").len()
    }

    fn messages(&self) -> Vec<Option<u32>> {
        self.carried.lock().expect("no panic").iter().map(|(_, message)| *message).collect()
    }

    fn finish(&mut self, index: usize, outcome: Outcome) {
        let (ticket, _) = self.carried.lock().expect("no panic")[index];
        self.device.engine.finish(ticket, outcome, 0);
    }

    fn statuses(&self) -> Vec<(u64, u32)> {
        statuses(&self.end.sends)
    }
}

#[test]
fn writes_in_flight_complete_in_the_order_of_their_posting() {
    let mut bench = Bench::new(|attributes| attributes);
    (1..=4).for_each(|id| bench.post(id, bench.write()));
    assert_eq!(bench.count(), 4);
    bench.finish(1, Outcome::Done);
    bench.finish(3, Outcome::Done);
    assert_eq!(bench.statuses(), []);
    bench.finish(0, Outcome::Done);
    assert_eq!(bench.statuses(), [(1, 0), (2, 0)]);
    bench.finish(2, Outcome::Done);
    assert_eq!(bench.statuses(), [(3, 0), (4, 0)]);
}

#[test]
fn a_send_of_another_kind_waits_until_everything_before_it_has_ended() {
    let kinds: [fn(&Bench) -> Kind; 5] =
        [|_| SEND, Bench::write, Bench::write_immediate, Bench::read, Bench::add];
    for (first, before) in kinds.iter().enumerate() {
        for (second, after) in kinds.iter().enumerate() {
            let mut bench = Bench::new(|attributes| QpAttr { max_rd_atomic: 4, ..attributes });
            bench.post(1, before(&bench));
            if first == 2 {
                bench.finish(0, Outcome::Done);
            }
            bench.post(2, before(&bench));
            bench.post(3, after(&bench));
            // Immediate data may be behind plain writes, and nothing is behind immediate data.
            let together = first == second && first != 2 || (first, second) == (1, 2);
            assert_eq!(bench.count(), if together { 3 } else { 2 }, "{first}, {second}");
            if first != 2 {
                bench.finish(0, Outcome::Done);
            }
            assert_eq!(bench.count(), if together { 3 } else { 2 }, "{first}, {second}");
            bench.finish(1, Outcome::Done);
            assert_eq!(bench.count(), 3, "{first}, {second}");
        }
    }
}

#[test]
fn a_receiver_that_is_not_ready_gets_the_rest_of_the_window_again() {
    let mut bench = Bench::new(|attributes| QpAttr { sq_psn: 0xff_fffe, ..attributes });
    (1..=4).for_each(|id| bench.post(id, SEND));
    let numbers = [0xff_fffe, 0xff_ffff, 0, 1].map(Some);
    assert_eq!(bench.messages(), numbers);
    bench.finish(0, Outcome::Done);
    bench.finish(1, NOT_READY);
    assert_eq!(bench.statuses(), [(1, 0)]);
    bench.finish(2, NOT_READY);
    bench.finish(3, Outcome::Lost);
    assert_eq!((bench.count(), bench.statuses()), (4, vec![]), "outcomes behind the refused one are void");
    bench.device.engine.expire(10_000);
    assert_eq!(bench.messages()[4..], [Some(0xff_ffff)], "the refused one is repeated alone");
    bench.finish(4, Outcome::Done);
    assert_eq!(bench.messages()[5..], [Some(0), Some(1)]);
    bench.finish(5, Outcome::Done);
    bench.finish(6, Outcome::Done);
    assert_eq!(bench.statuses(), [(2, 0), (3, 0), (4, 0)]);
}

#[test]
fn retries_are_counted_for_each_send() {
    let mut bench = Bench::new(|attributes| attributes);
    (1..=3).for_each(|id| bench.post(id, SEND));
    bench.finish(0, NOT_READY);
    bench.device.engine.expire(10_000);
    bench.finish(3, Outcome::Done);
    // The second send has a retry of its own.
    bench.finish(4, NOT_READY);
    bench.device.engine.expire(10_000);
    bench.finish(6, NOT_READY);
    assert_eq!(bench.statuses(), [(1, 0), (2, 13), (3, FLUSHED)]);
}

#[test]
fn an_error_in_a_window_is_that_of_its_send_and_flushes_the_ones_behind_it() {
    let mut bench = Bench::new(|attributes| attributes);
    (1..=4).for_each(|id| bench.post(id, bench.write()));
    bench.finish(2, Outcome::Done);
    bench.finish(1, Outcome::AccessDenied);
    assert_eq!(bench.statuses(), [], "the first one may still succeed");
    bench.finish(0, Outcome::Done);
    assert_eq!(bench.statuses(), [(1, 0), (2, 10), (3, FLUSHED), (4, FLUSHED)]);
    bench.finish(3, Outcome::Done);
    assert_eq!((bench.statuses(), bench.device.state(&bench.end)), (vec![], State::Err));
}

#[test]
fn a_send_that_fails_locally_fails_after_those_before_it() {
    let mut bench = Bench::new(|attributes| attributes);
    let gone = bench.device.memory(8, 0, ALL_ACCESS);
    bench.device.engine.deregister(gone.key).expect("a region");
    bench.post(1, bench.write());
    bench.device.send(&bench.end, signalled(2, &[gone.part(0, 8)], bench.write()));
    bench.post(3, bench.write());
    assert_eq!((bench.count(), bench.statuses()), (1, vec![]));
    bench.finish(0, Outcome::Done);
    assert_eq!(bench.statuses(), [(1, 0), (2, 4), (3, FLUSHED)]);
}

#[test]
fn reads_and_atomic_operations_in_flight_are_limited_by_the_queue_pair() {
    for kind in [Bench::read, Bench::add] {
        let mut bench = Bench::new(|attributes| QpAttr { max_rd_atomic: 3, ..attributes });
        (1..=5).for_each(|id| bench.post(id, kind(&bench)));
        assert_eq!(bench.count(), 3);
        bench.finish(1, Outcome::Done);
        assert_eq!(bench.count(), 3, "the oldest one has not ended");
        bench.finish(0, Outcome::Done);
        assert_eq!(bench.count(), 5);
    }
}

#[test]
fn a_fenced_read_waits_for_earlier_reads() {
    let mut bench = Bench::new(|attributes| QpAttr { max_rd_atomic: 8, ..attributes });
    bench.post(1, bench.read());
    bench.post(2, bench.read());
    bench.post_fenced(3, bench.read());
    bench.post(4, bench.read());
    assert_eq!(bench.count(), 2);
    bench.finish(0, Outcome::Done);
    assert_eq!(bench.count(), 2);
    bench.finish(1, Outcome::Done);
    assert_eq!(bench.count(), 4);
}

#[test]
fn each_answer_gives_the_next_request_its_whole_time() {
    let mut bench = Bench::new(|attributes| QpAttr { timeout: 14, retry_cnt: 7, ..attributes });
    (1..=2).for_each(|id| bench.post(id, bench.write()));
    let first_ns = bench.device.engine.next_deadline_ns().expect("an answer is due");
    let (ticket, _) = bench.carried.lock().expect("no panic")[0];
    bench.device.engine.finish(ticket, Outcome::Done, 1_000);
    assert_eq!(bench.device.engine.next_deadline_ns(), Some(first_ns + 1_000));
    bench.device.engine.expire(first_ns + 1_000);
    assert_eq!(bench.statuses(), [(1, 0), (2, 12)]);
}

#[test]
fn a_drained_queue_has_nothing_in_flight() {
    let mut bench = Bench::new(|attributes| attributes);
    (1..=2).for_each(|id| bench.post(id, bench.write()));
    bench.device.step(bench.end.number, &QpAttr::default(), State::Sqd, 0);
    let is_draining =
        |bench: &Bench| bench.device.engine.query_queue_pair(bench.end.number).expect("one").sq_draining == 1;
    bench.post(3, bench.write());
    assert_eq!(bench.count(), 2, "nothing begins");
    bench.finish(1, Outcome::Done);
    assert!(is_draining(&bench));
    bench.finish(0, Outcome::Done);
    assert!(!is_draining(&bench));
}
