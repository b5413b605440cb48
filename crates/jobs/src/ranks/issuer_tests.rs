//! Tests of the issuer against a scripted endpoint.

use rackloom_protocol::{Command, Completion, Key, RegionId, RemoteAddress};

use super::*;

/// Accepts `free` commands, then is busy.
#[derive(Default)]
struct Script {
    free: usize,
    unreachable: bool,
    carried: Carried,
    taken: Vec<String>,
}

impl Seat for Script {
    fn command(&mut self, _now: Instant, command: Command<'_>) -> Result<Carried, CommandRefused> {
        if self.unreachable {
            return Err(CommandRefused::Unreachable(NodeId(1)));
        }
        if self.free == 0 {
            return Err(CommandRefused::Busy);
        }
        self.free -= 1;
        self.taken.push(match command {
            Command::Store { operation, data, .. } => format!("store {} as {}", data[0], operation.0),
            Command::Flush { operation, .. } => format!("flush as {}", operation.0),
            Command::WaitUntil { operation, .. } => format!("wait as {}", operation.0),
            Command::Cancel { operation } => format!("cancel {}", operation.0),
            other => format!("{other:?}"),
        });
        Ok(self.carried)
    }
    fn is_reachable(&self, _node: NodeId) -> bool {
        true
    }
}

fn store(number: u8, completion: Completion) -> Request {
    let target = RemoteAddress { node: NodeId(1), region: RegionId(2), offset: 0, key: Key(0) };
    Request::new(
        Tag::Phase { peer: 1, item: number.into() },
        Body::Store { target, data: vec![number], completion },
    )
}

fn wait() -> Request {
    let body = Body::WaitUntil {
        region: RegionId(1),
        offset: 0,
        condition: rackloom_protocol::Condition::NotEqual,
        value: 0,
        depends_on: None,
    };
    Request::new(Tag::AbortWait, body)
}

fn flush() -> Request {
    Request::new(Tag::Phase { peer: 1, item: 99 }, Body::Flush { target: Some(NodeId(1)) })
}

#[test]
fn a_busy_endpoint_gets_the_same_request_again_in_order() {
    let mut issuer = Issuer::new(32, 1_000);
    (0..3).for_each(|number| issuer.submit(store(number, Completion::Visible)));
    let mut script = Script { free: 1, ..Script::default() };
    issuer.pump(Instant(0), &mut script);
    assert!(issuer.is_blocked());
    script.free = 5;
    issuer.pump(Instant(10), &mut script);
    assert!(!issuer.is_blocked());
    assert_eq!(script.taken, ["store 0 as 1", "store 1 as 2", "store 2 as 3"]);
    issuer.completed(Instant(30), OperationId(2), Ok(0));
    // The second store was first tried at 0. Time spent while refused counts as latency.
    let stores = issuer.measurements.get(OperationKind::StoreAcknowledged).unwrap();
    assert_eq!((stores.count, stores.latency.max_ns()), (1, 30));
}

#[test]
fn outstanding_work_is_bounded_and_waits_do_not_count() {
    let mut issuer = Issuer::new(2, 1_000);
    (0..3).for_each(|number| issuer.submit(store(number, Completion::Visible)));
    issuer.submit_urgent(wait());
    let mut script = Script { free: 100, ..Script::default() };
    issuer.pump(Instant(0), &mut script);
    assert_eq!(script.taken.len(), 3);
    issuer.completed(Instant(1), OperationId(2), Ok(0));
    issuer.pump(Instant(1), &mut script);
    assert_eq!(script.taken.len(), 4);
}

#[test]
fn posted_stores_are_in_flight_until_their_flush_ends() {
    let mut issuer = Issuer::new(32, 1_000);
    issuer.submit(store(0, Completion::Accepted));
    issuer.submit(flush());
    issuer.pump(Instant(100), &mut Script { free: 9, ..Script::default() });
    assert_eq!(issuer.measurements.get(OperationKind::StorePosted).unwrap().busy_ns, 0);
    issuer.completed(Instant(600), OperationId(2), Ok(0));
    let posted = issuer.measurements.get(OperationKind::StorePosted).unwrap();
    assert_eq!((posted.count, posted.bytes, posted.busy_ns), (1, 1, 500));
    assert!(issuer.is_idle());
}

#[test]
fn an_unreachable_target_is_tried_until_it_is_lost_or_the_timeout_ends() {
    for is_lost in [false, true] {
        let mut issuer = Issuer::new(32, 1_000);
        issuer.submit(store(0, Completion::Visible));
        let mut script = Script { unreachable: true, ..Script::default() };
        issuer.pump(Instant(0), &mut script);
        assert_eq!(issuer.pop_outcome(), None);
        if is_lost {
            issuer.lose(NodeId(1));
        }
        issuer.pump(Instant(if is_lost { 1 } else { 1_000 }), &mut script);
        assert!(issuer.pop_outcome().unwrap().result.unwrap_err().is_loss());
        assert_eq!(
            issuer.measurements.get(OperationKind::StoreAcknowledged).unwrap().errors["unreachable"],
            1
        );
    }
}

#[test]
fn breaking_off_forgets_the_queue_and_cancels_waits() {
    let mut issuer = Issuer::new(1, 1_000);
    issuer.submit_urgent(wait());
    (0..2).for_each(|number| issuer.submit(store(number, Completion::Visible)));
    let mut script = Script { free: 9, ..Script::default() };
    issuer.pump(Instant(0), &mut script);
    issuer.break_off();
    issuer.pump(Instant(0), &mut script);
    assert_eq!(script.taken, ["wait as 1", "store 0 as 2", "cancel 1"]);
    issuer.completed(Instant(1), OperationId(1), Err(OperationError::Cancelled));
    issuer.completed(Instant(1), OperationId(2), Err(OperationError::OutcomeUnknown));
    while issuer.pop_outcome().is_some() {}
    assert!(issuer.is_empty());
    assert_eq!(issuer.measurements.get(OperationKind::WaitUntil).unwrap().count, 0);
}

#[test]
fn a_forbidden_access_succeeds_only_by_the_right_refusal() {
    let refusals =
        [(Err(OperationError::BadKey), true), (Err(OperationError::OutOfBounds), false), (Ok(0), false)];
    for (result, is_right) in refusals {
        let mut issuer = Issuer::new(1, 1_000);
        let Request { tag, body, .. } = store(0, Completion::Visible);
        issuer.submit(Request::forbidden(tag, body, OperationError::BadKey));
        issuer.pump(Instant(0), &mut Script { free: 1, ..Script::default() });
        issuer.completed(Instant(1), OperationId(1), result);
        assert_eq!(issuer.pop_outcome().unwrap().result.is_ok(), is_right);
        let measured = issuer.measurements.get(OperationKind::ForbiddenAccess).unwrap();
        assert_eq!(measured.error_count(), u64::from(!is_right));
    }
}

/// All operations of one poll iteration have the same `now`, so only the engine's own times tell direct operations apart.
#[test]
fn direct_operations_take_what_the_engine_measured_and_stand_apart() {
    let mut issuer = Issuer::new(8, 1_000);
    let mut seat = Script { free: 3, carried: Carried::Direct { took_ns: Some(700) }, ..Script::default() };
    let now = Instant(5_000);
    issuer.submit(store(1, Completion::Accepted));
    issuer.submit(store(2, Completion::Visible));
    issuer.pump(now, &mut seat);
    issuer.completed(now, OperationId(2), Ok(0));
    let measured = &issuer.measurements;
    for kind in [OperationKind::StorePosted, OperationKind::StoreAcknowledged] {
        assert!(measured.get(kind).is_none(), "{kind:?} went in no frame");
        let direct = measured.get_direct(kind).unwrap();
        assert_eq!((direct.count, direct.latency.max_ns(), direct.busy_ns, direct.bytes), (1, 700, 700, 1));
        assert!(direct.goodput_bytes_per_s() > 0);
    }
    seat.carried = Carried::Endpoint;
    issuer.submit(store(3, Completion::Visible));
    issuer.pump(now, &mut seat);
    issuer.completed(Instant(9_000), OperationId(3), Ok(0));
    let framed = issuer.measurements.get(OperationKind::StoreAcknowledged).unwrap();
    assert_eq!((framed.count, framed.latency.max_ns()), (1, 4_000));
    (seat.carried, seat.free) = (Carried::Direct { took_ns: None }, 1);
    issuer.submit(store(4, Completion::Visible));
    issuer.pump(Instant(10_000), &mut seat);
    issuer.completed(Instant(10_900), OperationId(4), Ok(0));
    let direct = issuer.measurements.get_direct(OperationKind::StoreAcknowledged).unwrap();
    assert_eq!((direct.count, direct.latency.max_ns(), direct.busy_ns), (2, 900, 1_600), "by its event");
}
