//! Operations that succeed, on memory of the host, in frames and by copies of the system.

use rackloom_verbs::engine::{Data, Kind, Receive, Send};
use rackloom_verbs::layout::constants::*;

use crate::rack::{ALL, Rack, datagram, successes};
use crate::support::{SEND, drain, signalled};

/// Lengths around the borders of messages, frames and the last bytes of a write.
const LENGTHS: [usize; 12] = [0, 1, 7, 8, 100, 4095, 4096, 4097, 4160, 9000, 65536, 1 << 20];

fn pattern(length: usize, first: u8) -> Vec<u8> {
    (0..length).map(|index| first.wrapping_add(index as u8)).collect()
}

#[test]
fn messages_of_all_lengths_arrive_in_order() {
    let mut rack = Rack::two("");
    let (a, b) = rack.connected(0, 1);
    for (id, length) in (0..).zip(LENGTHS) {
        let source = rack.devices[0].memory(length.max(8), id as u8, ALL);
        let target = rack.devices[1].memory(length.max(8), 0xee, ALL);
        let middle = length / 3;
        let parts = [target.part(0, middle), target.part(middle, length - middle)];
        rack.devices[1].receive(&b, id, &parts);
        let parts = [source.part(0, length / 2), source.part(length / 2, length - length / 2)];
        let kind = Kind::Send { immediate: Some(77) };
        rack.send(0, &a, signalled(id, &parts, kind));
        let received = rack.completions(&b.receives, 1);
        assert_eq!(successes(&received), [id]);
        let completion = &received[0];
        assert_eq!((completion.byte_len, completion.imm_data), (length as u32, 77), "{length}");
        assert_eq!(target.bytes()[..length], pattern(length, id as u8), "{length}");
        assert_eq!(successes(&rack.completions(&a.sends, 1)), [id]);
    }
}

#[test]
fn writes_and_reads_of_all_lengths_move_the_bytes() {
    for more in ["", "force_wire: true\n", "link: {loss: 1%}\n"] {
        let mut rack = Rack::two(more);
        let (a, _b) = rack.connected(0, 1);
        for (id, length) in (0..).zip(LENGTHS) {
            let source = rack.devices[0].memory(length.max(8), id as u8, ALL);
            let target = rack.devices[1].memory(length + 64, 0, ALL);
            let back = rack.devices[0].memory(length.max(8), 0xaa, ALL);
            let write = Kind::Write { remote: target.remote(5), immediate: None };
            let half = length / 2;
            let parts = [source.part(0, half), source.part(half, length - half)];
            rack.send(0, &a, signalled(id, &parts, write));
            let read = Kind::Read { remote: target.remote(5) };
            let parts = [back.part(0, half / 2), back.part(half / 2, length - half / 2)];
            rack.send(0, &a, signalled(100 + id, &parts, read));
            assert_eq!(successes(&rack.completions(&a.sends, 2)), [id, 100 + id], "{more}{length}");
            let found = target.bytes();
            assert_eq!(found[5..5 + length], pattern(length, id as u8), "{more}{length}");
            assert_eq!(back.bytes()[..length], pattern(length, id as u8), "{more}{length}");
            assert_eq!(found[..5], pattern(5, 0), "{more}{length}: before the write");
            assert_eq!(found[5 + length], (5 + length) as u8, "{more}{length}: behind the write");
        }
    }
}

#[test]
fn a_write_with_immediate_data_completes_a_receive_when_its_data_are_there() {
    let mut rack = Rack::two("");
    let (a, b) = rack.connected(0, 1);
    for (id, length) in (0..).zip([0, 8, 5000, 1 << 18]) {
        let source = rack.devices[0].memory(length.max(8), id as u8, ALL);
        let target = rack.devices[1].memory(length.max(8), 0xee, ALL);
        let kind = Kind::Write { remote: target.remote(0), immediate: Some(0xfeed) };
        rack.send(0, &a, signalled(id, &[source.part(0, length)], kind));
        // The receive is late: the sender waits and repeats.
        for _ in 0..20 {
            rack.poll();
        }
        assert!(drain(&b.receives).is_empty());
        rack.devices[1].receive(&b, id, &[]);
        let received = rack.completions(&b.receives, 1);
        assert_eq!(successes(&received), [id]);
        let completion = &received[0];
        assert_eq!((completion.opcode, completion.byte_len), (WC_RECV_RDMA_WITH_IMM, length as u32));
        assert_eq!(completion.imm_data, 0xfeed);
        assert_eq!(target.bytes()[..length], pattern(length, id as u8));
        assert_eq!(successes(&rack.completions(&a.sends, 1)), [id]);
    }
}

#[test]
fn atomic_operations_of_two_nodes_lose_no_update() {
    let text = "name: three\nshape: {star: {nodes: 3, planes: 1}}\n";
    let mut rack = Rack::of(text, &[&[0], &[1], &[2]]);
    let pairs = [rack.connected(0, 2), rack.connected(1, 2)];
    let counter = rack.devices[2].memory(64, 0, ALL);
    let begun = u64::from_ne_bytes(counter.bytes()[8..16].try_into().expect("eight"));
    let old = [rack.devices[0].memory(8, 0, ALL), rack.devices[1].memory(8, 0, ALL)];
    let mut seen = Vec::new();
    for round in 0..50 {
        for device in [0, 1] {
            let kind = Kind::FetchAdd { remote: counter.remote(8), add: 3 };
            rack.send(device, &pairs[device].0, signalled(round, &[old[device].part(0, 8)], kind));
        }
        for device in [0, 1] {
            successes(&rack.completions(&pairs[device].0.sends, 1));
            let bytes = old[device].bytes();
            seen.push(u64::from_ne_bytes(bytes[..8].try_into().expect("eight")).wrapping_sub(begun));
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..100).map(|index| 3 * index).collect::<Vec<_>>());
    let swap = |expected| Kind::CompareSwap { remote: counter.remote(8), expected, new: 5 };
    let value = begun.wrapping_add(300);
    for (expected, found) in [(1, value), (value, value), (value, 5)] {
        rack.send(0, &pairs[0].0, signalled(9, &[old[0].part(0, 8)], swap(expected)));
        successes(&rack.completions(&pairs[0].0.sends, 1));
        assert_eq!(old[0].bytes(), found.to_ne_bytes());
    }
}

#[test]
fn datagrams_and_inline_data_arrive() {
    let mut rack = Rack::two("");
    let (a, b) = (rack.devices[0].datagram_end(), rack.devices[1].datagram_end());
    let route = rack.route(1);
    let target = rack.devices[1].memory(8192, 0, ALL);
    for (id, length) in (0..).zip([0, 1, 40, 4096]) {
        let source = rack.devices[0].memory(length.max(8), id as u8, ALL);
        rack.devices[1].receive(&b, id, &[target.part(0, 4136)]);
        rack.send(0, &a, signalled(id, &[source.part(0, length)], datagram(route, b.number, Some(4))));
        let received = rack.completions(&b.receives, 1);
        assert_eq!(successes(&received), [id]);
        assert_eq!((received[0].byte_len, received[0].src_qp), (40 + length as u32, a.number));
        assert_eq!(target.bytes()[40..40 + length], pattern(length, id as u8));
        successes(&rack.completions(&a.sends, 1));
    }
    let (a, b) = rack.connected(0, 1);
    let inline = |id, kind| Send {
        id,
        is_signalled: true,
        is_solicited: false,
        is_fenced: false,
        data: Data::Inline(pattern(33, 9).into()),
        kind,
        ready_ns: 0,
    };
    rack.devices[1]
        .engine
        .post_receive(b.number, Receive { id: 1, parts: vec![target.part(64, 64)] }, 0)
        .expect("posted");
    rack.send(0, &a, inline(1, SEND));
    rack.send(0, &a, inline(2, Kind::Write { remote: target.remote(256), immediate: None }));
    assert_eq!(successes(&rack.completions(&a.sends, 2)), [1, 2]);
    for offset in [64, 256] {
        assert_eq!(target.bytes()[offset..offset + 33], pattern(33, 9));
    }
}

/// Programs that number their datagrams, such as those of UCX, take a late one for lost.
#[test]
fn datagrams_of_all_lengths_arrive_in_order() {
    let mut rack = Rack::two("force_wire: true\n");
    let (a, b) = (rack.devices[0].datagram_end(), rack.devices[1].datagram_end());
    let route = rack.route(1);
    let target = rack.devices[1].memory(8 * 4136, 0, ALL);
    for round in 0..50_u64 {
        let lengths = [4096, 8, 4033, 4032, 1, 4096, 4096, 0];
        let sources = lengths.map(|length| rack.devices[0].memory(4096.max(length), length as u8, ALL));
        for id in 0..lengths.len() {
            rack.devices[1].receive(&b, 8 * round + id as u64, &[target.part(id * 4136, 4136)]);
        }
        for (id, (length, source)) in lengths.iter().zip(&sources).enumerate() {
            let send = signalled(id as u64, &[source.part(0, *length)], datagram(route, b.number, None));
            rack.send(0, &a, send);
        }
        let received = rack.completions(&b.receives, lengths.len());
        assert_eq!(successes(&received), (8 * round..8 * round + 8).collect::<Vec<_>>());
        let found: Vec<_> = received.iter().map(|completion| completion.byte_len as usize - 40).collect();
        assert_eq!(found, lengths, "round {round}");
        for (id, length) in lengths.iter().enumerate() {
            assert_eq!(target.bytes()[id * 4136 + 40..][..*length], pattern(*length, *length as u8));
        }
        successes(&rack.completions(&a.sends, lengths.len()));
    }
}

/// Processes of one seat have one address. The number of a queue pair says which of them has it.
#[test]
fn processes_of_one_seat_are_distinguished() {
    let text = "name: four\nshape: {full-mesh: {nodes: 4}}\n";
    let mut rack = Rack::of(text, &[&[0, 1], &[2, 3]]);
    assert_eq!(rack.devices[0].engine.addresses(1), rack.devices[1].engine.addresses(1));
    for (a, b) in [(0, 1), (0, 2), (1, 3), (2, 3), (1, 2)] {
        let (from, to) = rack.connected(a, b);
        let source = rack.devices[a].memory(64, (16 * a + b) as u8, ALL);
        let target = rack.devices[b].memory(64, 0xee, ALL);
        rack.devices[b].receive(&to, 1, &[target.part(0, 64)]);
        rack.send(a, &from, signalled(1, &[source.part(0, 64)], SEND));
        assert_eq!(successes(&rack.completions(&to.receives, 1)), [1]);
        assert_eq!(target.bytes(), source.bytes());
    }
}
