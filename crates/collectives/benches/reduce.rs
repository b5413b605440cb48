//! Speed of the reduction of two arrays, per element type: bytes of one side per second, hot in cache and far beyond it.
//!
//! The kernels are plain loops over fixed chunks that the compiler vectorises; a type that is much slower
//! than the others here is no longer vectorised.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rackloom_collectives::array::ElementType;
use rackloom_collectives::reduce::{ReduceOperation, reduce};

const HOT_BYTES: usize = 16 << 10;
const COLD_BYTES: usize = 16 << 20;

fn kernels(criterion: &mut Criterion) {
    for (name, bytes) in [("hot", HOT_BYTES), ("cold", COLD_BYTES)] {
        let mut group = criterion.benchmark_group(format!("reduce-{name}"));
        group.throughput(Throughput::Bytes(bytes as u64));
        for element in ElementType::ALL {
            for operation in [ReduceOperation::Sum, ReduceOperation::Max] {
                let (mut accumulator, operand) = (vec![0; bytes], vec![0; bytes]);
                group.bench_function(format!("{element}-{operation}"), |bencher| {
                    bencher.iter(|| {
                        reduce(operation, element, black_box(&mut accumulator), black_box(&operand))
                    });
                });
            }
        }
        group.finish();
    }
}

criterion_group!(benches, kernels);
criterion_main!(benches);
