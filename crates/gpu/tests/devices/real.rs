//! Tests that need a GPU, in one process.

use std::time::{Duration, Instant};

use rackloom_gpu::cuda::Reuse;
use rackloom_gpu::device::Device;
use rackloom_gpu::{Cuda, Driver, GpuError, probe, usage};

use crate::rig::{gpu, print_line};

#[test]
fn the_probe_reports_every_device_and_pair() {
    let Some((_cuda, _lock)) = gpu("the_probe_reports_every_device_and_pair") else { return };
    let driver = Driver::open().unwrap();
    let machine = probe(&driver).unwrap();
    print_line(&format!("{machine:#?}"));
    assert_eq!(machine.devices.len() as u32, driver.device_count());
    assert_eq!(machine.peers.len(), machine.devices.len() * (machine.devices.len() - 1));
    let missing = machine.missing;
    assert!(missing.is_empty(), "this driver lacks {missing:?}");
}

#[test]
fn errors_have_names() {
    let Some((mut cuda, _lock)) = gpu("errors_have_names") else { return };
    let driver = Driver::open().unwrap();
    let refused = Cuda::open(&driver, 99).unwrap_err();
    assert!(matches!(refused, GpuError::NoSuchDevice { index: 99, .. }), "{refused}");
    let refused = cuda.allocate(1 << 50).unwrap_err();
    assert!(matches!(refused, GpuError::OutOfMemory { .. }), "{refused}");
    let own = cuda.allocate(1 << 20).unwrap();
    let handle = cuda.export_memory(own).unwrap();
    let refused = cuda.open_memory(&handle).unwrap_err();
    assert!(matches!(refused, GpuError::OwnHandle), "{refused}");
    cuda.free(own).unwrap();
    assert!(cuda.free(own).is_err(), "freed twice");
    assert!(cuda.pin(usize::MAX / 2).is_err());
    // None of these errors has harmed the device.
    let again = cuda.allocate(1 << 20).unwrap();
    cuda.free(again).unwrap();
    assert_eq!(cuda.allocated_bytes(), 0);
}

#[test]
fn a_pool_counts_reserved_and_used_bytes() {
    let Some((mut cuda, _lock)) = gpu("a_pool_counts_reserved_and_used_bytes") else { return };
    let stream = cuda.stream().unwrap();
    let pool = cuda.pool().unwrap();
    pool.set_release_threshold(u64::MAX).unwrap();
    let bytes = 8 << 20;
    let (first, second) =
        (pool.allocate(&cuda, stream, bytes).unwrap(), pool.allocate(&cuda, stream, bytes).unwrap());
    cuda.synchronize(stream).unwrap();
    let counted = pool.statistics().unwrap();
    assert_eq!((counted.used_current, counted.used_high), (2 * bytes, 2 * bytes));
    assert!(counted.reserved_current >= counted.used_current);
    pool.free(&cuda, stream, first).unwrap();
    // Freed on this stream before, so this stream can allocate it again at once.
    let third = pool.allocate(&cuda, stream, bytes).unwrap();
    assert_eq!(third, first);
    pool.free(&cuda, stream, second).unwrap();
    pool.free(&cuda, stream, third).unwrap();
    cuda.synchronize(stream).unwrap();
    let counted = pool.statistics().unwrap();
    assert_eq!((counted.used_current, counted.used_high), (0, 2 * bytes));
    assert!(counted.reserved_current >= 2 * bytes, "the threshold keeps it");
    pool.reset_high().unwrap();
    assert_eq!(pool.statistics().unwrap().used_high, 0);
    pool.trim(0).unwrap();
    assert_eq!(pool.statistics().unwrap().reserved_current, 0);
    pool.set_release_threshold(0).unwrap();
    let fourth = pool.allocate(&cuda, stream, bytes).unwrap();
    pool.free(&cuda, stream, fourth).unwrap();
    cuda.synchronize(stream).unwrap();
    assert_eq!(pool.statistics().unwrap().reserved_current, 0, "below the threshold nothing is kept");
}

#[test]
fn reuse_policies_decide_reuse_on_another_stream() {
    let Some((mut cuda, _lock)) = gpu("reuse_policies_decide_reuse_on_another_stream") else {
        return;
    };
    let (first, second) = (cuda.stream().unwrap(), cuda.stream().unwrap());
    let event = cuda.event().unwrap();
    for follow_event_dependencies in [true, false] {
        let pool = cuda.pool().unwrap();
        pool.set_release_threshold(u64::MAX).unwrap();
        pool.set_reuse(Reuse {
            follow_event_dependencies,
            opportunistic: false,
            internal_dependencies: false,
        })
        .unwrap();
        let block = pool.allocate(&cuda, first, 8 << 20).unwrap();
        pool.free(&cuda, first, block).unwrap();
        cuda.record(event, first).unwrap();
        cuda.wait(second, event).unwrap();
        let again = pool.allocate(&cuda, second, 8 << 20).unwrap();
        assert_eq!(again == block, follow_event_dependencies);
        pool.free(&cuda, second, again).unwrap();
        cuda.synchronize(second).unwrap();
    }
}

#[test]
fn the_use_of_a_device_rises_while_kernels_run() {
    let Some((mut cuda, _lock)) = gpu("the_use_of_a_device_rises_while_kernels_run") else { return };
    const SIZE: u32 = 2048;
    const BYTES: u64 = 4 * SIZE as u64 * SIZE as u64;
    let sampler = usage::sample(0).unwrap();
    let stream = cuda.stream().unwrap();
    let [first, second, target] = [(); 3].map(|()| cuda.allocate(BYTES).unwrap());
    sampler.begin();
    let begin = Instant::now();
    // Longer than the longest sample period of a driver.
    while begin.elapsed() < Duration::from_secs(2) {
        cuda.multiply(stream, [first, second], target, [SIZE; 3]).unwrap();
        cuda.synchronize(stream).unwrap();
    }
    let used = match sampler.finish(Duration::from_secs(5)) {
        Err(GpuError::NoManagement { reason }) => {
            print_line(&format!("SKIPPED (1): the use of a device: {reason}"));
            return;
        }
        used => used.unwrap(),
    };
    print_line(&format!("{used:#?}"));
    let digits = |uuid: &str| uuid.get(4..).map(str::to_owned);
    assert_eq!(digits(&used.uuid), digits(&probe::uuid_of(&Driver::open().unwrap(), 0).unwrap()));
    assert!(used.readings >= 10, "{used:?}");
    assert!(used.memory_used_bytes.max >= 3 * BYTES, "{used:?}");
    assert!(used.memory_bytes >= Some(used.memory_used_bytes.max), "{used:?}");
    // Parts of a GPU (MIG) have no utilisation of their own.
    let busy = used.busy_percent;
    assert!(busy.max <= 100 && (busy.max >= 50 || busy.count == 0), "{used:?}");
    for address in [first, second, target] {
        cuda.free(address).unwrap();
    }
}
