//! Several requests of a queue pair in flight between two nodes.

use rackloom_verbs::engine::{Kind, State};
use rackloom_verbs::layout::attributes::QpAttr;
use rackloom_verbs::layout::constants::*;

use crate::rack::{ALL, Rack, successes};
use crate::support::{SEND, drain, signalled};

/// Racks that keep the order of puts, that copy, that repeat lost frames, and that write the data of puts as they arrive.
const RACKS: [&str; 4] = [
    "",
    "force_wire: true\n",
    "force_wire: true\nlink: {loss: 2%}\n",
    "force_wire: true\npaths: {order: none}\nlink: {reorder: 10%}\n",
];

#[test]
fn the_last_bytes_of_a_write_appear_after_all_earlier_writes() {
    for more in RACKS {
        for lengths in [[70_000; 8], [8, 70_000, 8, 4096, 5000, 1, 4160, 70_000]] {
            let mut rack = Rack::two(more);
            let (a, _b) = rack.connected(0, 1);
            let source = rack.devices[0].memory(70_000, 1, ALL);
            let target = rack.devices[1].memory(8 * 70_000, 0, ALL);
            for (id, length) in (0..).zip(lengths) {
                let write = Kind::Write { remote: target.remote(id * 70_000), immediate: None };
                rack.send(0, &a, signalled(id as u64, &[source.part(0, length)], write));
            }
            let (before, new) = (target.bytes(), source.bytes());
            let mut found = Vec::new();
            rack.until("the writes end", |_| {
                let written = |bytes: &[u8], id: usize, length: usize| {
                    let (now, old) = (&bytes[id * 70_000..][..length], &before[id * 70_000..][..length]);
                    (now == &new[..length], now[length - 1] != old[length - 1])
                };
                // Other threads write meanwhile, so the bytes of the earlier writes are read after the last byte.
                let bytes = target.bytes();
                let last = (0..8).rev().find(|id| written(&bytes, *id, lengths[*id]).1);
                let bytes = target.bytes();
                for id in 0..last.unwrap_or(0) {
                    assert!(
                        written(&bytes, id, lengths[id]).0,
                        "{more}{lengths:?}: write {id} before {last:?}"
                    );
                }
                found.extend(drain(&a.sends));
                (found.len() == 8).then_some(())
            });
            assert_eq!(successes(&found), [0, 1, 2, 3, 4, 5, 6, 7]);
        }
    }
}

#[test]
fn short_and_long_messages_are_received_in_order_and_once_by_a_receiver_that_is_late() {
    for more in RACKS {
        let mut rack = Rack::two(more);
        let (a, b) = rack.connected(0, 1);
        let source = rack.devices[0].memory(70_000, 1, ALL);
        let targets = [(); 8].map(|()| rack.devices[1].memory(70_000, 0, ALL));
        let lengths = [70_000, 16, 4000, 4064, 4065, 9000, 0, 30_000];
        for (id, length) in (0..).zip(lengths) {
            let parts = [source.part(id, length.min(70_000 - id))];
            rack.send(0, &a, signalled(id as u64, &parts, Kind::Send { immediate: Some(id as u32) }));
        }
        // Two receives, and others one after another: the window is refused in the middle.
        let mut received = Vec::new();
        for (id, target) in targets.iter().enumerate() {
            rack.devices[1].receive(&b, id as u64, &[target.part(0, 70_000)]);
            if id > 0 {
                received.extend(rack.completions(&b.receives, 1));
            }
            (0..20).for_each(|_| rack.poll());
        }
        let missing = 8 - received.len();
        received.extend(rack.completions(&b.receives, missing));
        assert_eq!(successes(&received), [0, 1, 2, 3, 4, 5, 6, 7]);
        for (id, completion) in received.iter().enumerate() {
            let length = lengths[id].min(70_000 - id);
            assert_eq!((completion.imm_data as usize, completion.byte_len as usize), (id, length), "{more}");
            assert_eq!(targets[id].bytes()[..length], source.bytes()[id..id + length], "{more}{id}");
        }
        assert_eq!(successes(&rack.completions(&a.sends, 8)), [0, 1, 2, 3, 4, 5, 6, 7]);
        (0..100).for_each(|_| rack.poll());
        assert!(drain(&b.receives).is_empty(), "each message is received once");
    }
}

#[test]
fn writes_with_immediate_data_complete_receives_after_their_data_and_in_order() {
    for more in RACKS {
        let mut rack = Rack::two(more);
        let (a, b) = rack.connected(0, 1);
        let source = rack.devices[0].memory(9000, 1, ALL);
        let target = rack.devices[1].memory(8 * 9000, 0, ALL);
        (0..3).for_each(|id| rack.devices[1].receive(&b, id, &[]));
        for id in 0..8 {
            // Plain writes precede the first immediate data.
            let immediate = (id > 1).then_some(id as u32);
            let write = Kind::Write { remote: target.remote(id * 9000), immediate };
            rack.send(0, &a, signalled(id as u64, &[source.part(0, 9000)], write));
        }
        let mut expected = 2;
        while expected < 8 {
            for completion in rack.completions(&b.receives, 1) {
                assert_eq!(
                    (completion.opcode, completion.imm_data),
                    (WC_RECV_RDMA_WITH_IMM, expected),
                    "{more}"
                );
                let bytes = target.bytes();
                for id in 0..=expected as usize {
                    assert_eq!(bytes[id * 9000..][..9000], source.bytes()[..9000], "{more}{id}");
                }
                rack.devices[1].receive(&b, expected.into(), &[]);
                expected += 1;
            }
        }
        assert_eq!(successes(&rack.completions(&a.sends, 8)), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}

#[test]
fn a_refused_write_in_a_window_flushes_the_ones_behind_it() {
    for more in RACKS {
        let mut rack = Rack::two(more);
        let (a, b) = rack.connected(0, 1);
        let source = rack.devices[0].memory(9000, 1, ALL);
        let target = rack.devices[1].memory(9000, 0, ALL);
        for id in 0..6 {
            let mut remote = target.remote(0);
            if id == 3 {
                remote.address += 1;
            }
            rack.send(0, &a, signalled(id, &[source.part(0, 9000)], Kind::Write { remote, immediate: None }));
        }
        let found = rack.completions(&a.sends, 6);
        let found: Vec<_> = found.iter().map(|completion| (completion.wr_id, completion.status)).collect();
        assert_eq!(found, [(0, 0), (1, 0), (2, 0), (3, 10), (4, 5), (5, 5)], "{more}");
        rack.until("the responder is in error", |rack| {
            (rack.devices[1].state(&b) == State::Err).then_some(())
        });
    }
}

#[test]
fn connections_with_other_numbers_of_the_first_message_exchange_none() {
    let mut rack = Rack::two("");
    let (a, b) = rack.connected(0, 1);
    let ends = [(0, 1, &a, &b), (1, 0, &b, &a)];
    for (own, to, end, peer) in ends {
        let reset = QpAttr::default();
        rack.devices[own].step(end.number, &reset, State::Reset, 0);
        let attributes = QpAttr { sq_psn: 500 * own as u32, ..rack.attributes(own, to, peer) };
        let attributes = QpAttr { timeout: 1, retry_cnt: 1, ..attributes };
        rack.devices[own].bring(end.number, &attributes, State::Rts);
    }
    rack.devices[0].receive(&a, 1, &[]);
    rack.devices[1].receive(&b, 1, &[]);
    rack.send(0, &a, signalled(1, &[], SEND));
    assert_eq!(successes(&rack.completions(&b.receives, 1)), [1]);
    rack.send(1, &b, signalled(2, &[], SEND));
    let found = rack.completions(&b.sends, 1);
    assert_eq!(found[0].status, 12, "the receiver expects another number");
    assert!(drain(&a.receives).is_empty());
}

#[test]
fn reads_in_flight_bring_their_bytes_and_end_in_order() {
    for more in RACKS {
        let mut rack = Rack::two(more);
        let ends = rack.connected(0, 1);
        let (a, _b) = &ends;
        let source = rack.devices[1].memory(40_000, 3, ALL);
        let into = rack.devices[0].memory(40_000, 0, ALL);
        for id in 0..8 {
            let kind = Kind::Read { remote: source.remote(id * 5000) };
            rack.send(0, a, signalled(id as u64, &[into.part(id * 5000, 5000)], kind));
        }
        assert_eq!(successes(&rack.completions(&a.sends, 8)), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(into.bytes(), source.bytes(), "{more}");
        let kind = Kind::FetchAdd { remote: source.remote(0), add: 1 };
        for id in 0..8 {
            rack.send(0, a, signalled(id, &[into.part(8 * id as usize, 8)], kind));
        }
        successes(&rack.completions(&a.sends, 8));
        let bytes = into.bytes();
        let value = |id: usize| u64::from_ne_bytes(bytes[8 * id..][..8].try_into().expect("eight"));
        assert!((1..8).all(|id| value(id) == value(id - 1).wrapping_add(1)), "{more}");
    }
}
