//! Benchmark: cost of reading a frame's headers and checks, its list of operations, and the checksum over its bytes.
//!
//! These are parts of the cost that `endpoints` measures; no state machine is involved.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rackloom_protocol::ids::{Channel, Class};
use rackloom_protocol::wire::check::crc32c;
use rackloom_protocol::wire::demand::Demand;
use rackloom_protocol::wire::frame::{FabricHeader, Frame, FrameKind, HopCheck, LinkHeader};
use rackloom_protocol::wire::layout::{FABRIC, HOP_LIMIT_START, OPERATIONS};
use rackloom_protocol::wire::packed::{Operation, Operations};
use rackloom_protocol::{Key, NodeId, RegionId, Tenant};

const ETHER_TYPE: u16 = 0x88b5;
const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const DESTINATION: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// The operations of a frame with this many stores of 64 bytes.
fn stores(count: u64) -> Vec<u8> {
    let mut operations = Vec::new();
    Operation::Select { region: RegionId(1), key: Key(7) }.encode(&mut operations);
    for index in 0..count {
        Operation::Store { offset: index * 64, data: &[7; 64] }.encode(&mut operations);
    }
    operations
}

fn data_frame(operations: &[u8], operation_count: u8) -> Vec<u8> {
    let mut frame = vec![0; OPERATIONS];
    frame.extend_from_slice(operations);
    let fabric = FabricHeader {
        destination: NodeId(1),
        source: NodeId(0),
        class: Class::Request,
        operation_count,
        tenant: Tenant(0),
        entropy: 1,
        ack_now: false,
        again: false,
        demand: Demand::NONE,
        ack: None,
        source_incarnation: 1,
        destination_incarnation: 2,
        psn: 3,
        first_operation: 4,
    };
    fabric.write(&mut frame);
    let link = LinkHeader {
        kind: FrameKind::Data,
        epoch: 1,
        length: (frame.len() - FABRIC) as u16,
        hop_limit: HOP_LIMIT_START,
        channel: Channel(0),
        session: 1,
        sequence: 1,
        link_ack: 0,
        consumed: 1,
        freed: 0,
        has_end_to_end_check: false,
        hop_check: HopCheck::Header,
        is_unprotected: false,
        is_marked: false,
    };
    link.write(&mut frame, ETHER_TYPE, SOURCE, DESTINATION);
    frame
}

fn headers(criterion: &mut Criterion) {
    let frame = data_frame(&stores(1), 1);
    let parse = |bytes| Frame::parse(bytes, ETHER_TYPE, DESTINATION, SOURCE, 1).expect("a good frame");
    let mut group = criterion.benchmark_group("headers");
    group.bench_function("link", |bencher| bencher.iter(|| parse(black_box(&frame)).link));
    group.bench_function("link-and-fabric", |bencher| {
        bencher.iter(|| parse(black_box(&frame)).fabric().expect("a routed frame"));
    });
    group.finish();
}

fn operations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("operations");
    for count in [1, 16] {
        let list = stores(count);
        group.throughput(Throughput::Elements(count));
        group.bench_function(BenchmarkId::new("read", count), |bencher| {
            bencher.iter(|| Operations::new(black_box(&list)).map(black_box).count());
        });
        group.bench_function(BenchmarkId::new("write", count), |bencher| {
            bencher.iter(|| stores(black_box(count)))
        });
    }
    group.finish();
}

fn checksums(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("crc32c");
    for bytes in [28, 64, 4096] {
        let data = vec![7; bytes];
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::from_parameter(bytes), |bencher| {
            bencher.iter(|| crc32c(black_box(&data)));
        });
    }
    group.finish();
}

criterion_group!(benches, headers, operations, checksums);
criterion_main!(benches);
