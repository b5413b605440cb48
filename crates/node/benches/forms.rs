//! Benchmark of the three forms of one operation: a store of 64 bytes as a blocking call, as a submitted request, and as a future.
//!
//! Two nodes of a local rack; a thread serves the remote one. Compare the three results with one another: no form may cost a multiple of another, on
//! any machine. The benchmark itself judges nothing.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use criterion::{Criterion, criterion_group, criterion_main};
use rackloom::fabric::{Fabric, Node, Plan, Queue, RegionOptions, RemoteAddress};

const PLAN: &str = "name: two\nshape: {ring: {nodes: 2}}\ntimers: {heartbeat_interval: 1s}\n";
const DATA: [u8; 64] = [5; 64];

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread, which sleeps while the future is pending.
fn block_on<F: Future>(future: F, waker: &Waker) -> F::Output {
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn submit_and_poll(node: &Node, target: RemoteAddress, queue: &Arc<Queue>) {
    node.store(target, &DATA).submit(queue, 0).expect("one at a time finds space");
    loop {
        if let Some(completion) = node.poll(queue) {
            completion.result.expect("the store is visible");
            return;
        }
    }
}

fn forms(criterion: &mut Criterion) {
    let fabric = Fabric::local(&Plan::parse(PLAN, "bench").expect("a plan")).expect("a rack");
    let [near, far] = fabric.nodes() else { unreachable!("the plan has two nodes") };
    let region = far.allocate(RegionOptions::new(1, 7), 64).expect("a region");
    let (target, queue) = (region.address(0), Queue::with_capacity(1));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut group = criterion.benchmark_group("forms");
    group.bench_function("wait", |bencher| {
        bencher.iter(|| near.store(target, &DATA).wait().expect("the store is visible"));
    });
    group.bench_function("submit", |bencher| bencher.iter(|| submit_and_poll(near, target, &queue)));
    group.bench_function("await", |bencher| {
        bencher.iter(|| block_on(near.store(target, &DATA), &waker).expect("the store is visible"));
    });
    group.finish();
}

criterion_group!(benches, forms);
criterion_main!(benches);
