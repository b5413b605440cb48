//! Figures of a real device, beside the raw figures of the device in the same minute. Nothing is judged here: `docs/measuring.md` has
//! the results.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rackloom_gpu::Cuda;
use rackloom_gpu::cuda::MemoryHandle;
use rackloom_gpu::device::{Address, Device, Element, Reduction, StreamId};
use rackloom_gpu::landing::{Landed, Landing};

use crate::processes::Other;
use crate::rig::{Random, gpu, print_line};

const BYTES: usize = 64 << 20;

/// Returns the median of `takes` samples.
fn median(takes: usize, mut take: impl FnMut() -> f64) -> f64 {
    let mut found: Vec<f64> = (0..takes).map(|_| take()).collect();
    found.sort_by(f64::total_cmp);
    found[takes / 2]
}

/// Returns 10^9 bytes per second of work on a stream, by the device's clock.
fn device_rate(cuda: &mut Cuda, bytes: u64, mut work: impl FnMut(&mut Cuda, StreamId)) -> f64 {
    let stream = cuda.stream().unwrap();
    let (from, to) = (cuda.timer().unwrap(), cuda.timer().unwrap());
    median(11, || {
        cuda.record(from, stream).unwrap();
        for _ in 0..8 {
            work(cuda, stream);
        }
        cuda.record(to, stream).unwrap();
        cuda.synchronize(stream).unwrap();
        8.0 * bytes as f64 / f64::from(cuda.elapsed_ms(from, to).unwrap()) / 1e6
    })
}

#[test]
fn raw_rates_of_the_device() {
    let Some((mut cuda, _lock)) = gpu("raw_rates_of_the_device") else { return };
    let pinned = cuda.pin(BYTES).unwrap();
    let bytes = BYTES as u64;
    let (first, second) = (cuda.allocate(4 * bytes).unwrap(), cuda.allocate(4 * bytes).unwrap());
    let host = pinned.address(0);
    let into = device_rate(&mut cuda, bytes, |cuda, stream| cuda.copy(stream, first, host, bytes).unwrap());
    let out = device_rate(&mut cuda, bytes, |cuda, stream| cuda.copy(stream, host, first, bytes).unwrap());
    let own = device_rate(&mut cuda, 4 * bytes, |cuda, stream| {
        cuda.copy(stream, second, first, 4 * bytes).unwrap()
    });
    print_line(&format!(
        "pinned copy of 64 MiB: in {into:.1} GB/s, out {out:.1} GB/s; device to device of 256 MiB {own:.0} GB/s"
    ));
    for element in [Element::F32, Element::Bf16, Element::I64] {
        let count = 4 * bytes / element.bytes();
        let rate = device_rate(&mut cuda, 4 * bytes, |cuda, stream| {
            cuda.reduce(stream, (Reduction::Sum, element), first, second, count).unwrap();
        });
        print_line(&format!(
            "reduction {element:?}: {rate:.0} GB/s of source (moves three bytes per byte; a copy moves two)"
        ));
    }
}

#[test]
fn landed_writes_per_second() {
    let Some((mut cuda, lock)) = gpu("landed_writes_per_second") else { return };
    let stream = cuda.stream().unwrap();
    let pinned = cuda.pin(BYTES).unwrap();
    let memory = cuda.allocate(BYTES as u64).unwrap();
    let raw = median(11, || {
        let begun = Instant::now();
        cuda.copy(stream, memory, pinned.address(0), BYTES as u64).unwrap();
        cuda.synchronize(stream).unwrap();
        BYTES as f64 / begun.elapsed().as_secs_f64() / 1e9
    });
    cuda.free(memory).unwrap();
    drop(pinned);
    let mut landing: Landing<Cuda> = Landing::new(Box::new(cuda)).unwrap();
    let base = landing.device().allocate(BYTES as u64).unwrap();
    for size in [64, 256, 1024, 4096, 8192] {
        let (in_order, scattered) =
            (land(&mut landing, base, size, true), land(&mut landing, base, size, false));
        print_line(&format!(
            "writes of {size} B, a ticket per 16: {:.2} GB/s and {:.2} M/s in order, {:.2} GB/s and {:.2} M/s at random places; \
             pinned copy {raw:.1} GB/s",
            in_order * size as f64 / 1e9,
            in_order / 1e6,
            scattered * size as f64 / 1e9,
            scattered / 1e6
        ));
    }
    print_line(&format!("{:?}", landing.counts()));
    drop(landing);
    drop(lock);
}

/// Returns writes per second until all of them are visible.
fn land(landing: &mut Landing<Cuda>, base: Address, size: usize, in_order: bool) -> f64 {
    let count = (BYTES / size).min(200_000);
    let source = Random(1).bytes(size);
    let mut random = Random(7);
    median(5, || {
        let begun = Instant::now();
        let mut open = 0;
        for at in 0..count {
            let index = if in_order { at } else { random.below((BYTES / size) as u64) as usize };
            landing.write(base.plus((index * size) as u64), &source).unwrap();
            if at % 16 == 15 || at == count - 1 {
                landing.ticket(0);
                open += 1;
            }
            if at % 64 == 63 {
                while let Some((_, landed)) = landing.poll() {
                    assert_eq!(landed, Landed::Written);
                    open -= 1;
                }
            }
        }
        while open > 0 {
            while landing.poll().is_some() {
                open -= 1;
            }
        }
        count as f64 / begun.elapsed().as_secs_f64()
    })
}

#[test]
fn latency_of_one_access() {
    let Some((mut cuda, _lock)) = gpu("latency_of_one_access") else { return };
    let (stream, event) = (cuda.stream().unwrap(), cuda.event().unwrap());
    let pinned = cuda.pin(4096).unwrap();
    let memory = cuda.allocate(4096).unwrap();
    let raw = time(|| {
        cuda.copy(stream, memory, pinned.address(0), 64).unwrap();
        cuda.record(event, stream).unwrap();
        while !cuda.is_done(event).unwrap() {}
    });
    drop(pinned);
    let mut landing: Landing<Cuda> = Landing::new(Box::new(cuda)).unwrap();
    let base = landing.device().allocate(4096).unwrap();
    let write = time(|| {
        landing.write(base, &[1; 64]).unwrap();
        landing.ticket(0);
        while landing.poll().is_none() {}
    });
    let read = time(|| {
        landing.read(0, base, 64).unwrap();
        while landing.poll().is_none() {}
    });
    let change = rackloom_gpu::landing::WordChange {
        kind: rackloom_gpu::device::AtomicKind::Add,
        width: 8,
        operand: 1,
        compare: 0,
    };
    let atomic = time(|| {
        landing.atomic(0, base, change).unwrap();
        while landing.poll().is_none() {}
    });
    let mut out = [0; 4096];
    let now = time(|| landing.read_now(base, &mut out).unwrap());
    print_line(&format!(
        "one access alone: raw copy of 64 B and event {raw:?}; write {write:?}, read {read:?}, atomic {atomic:?}, 4 KiB at once {now:?}"
    ));
}

/// Times one copy until the host sees that it is done, by each method of detection, alone and beside a process that polls a word
/// every 10 us, as a waiting owner of memory does.
#[test]
fn latency_of_one_small_copy() {
    let Some((mut cuda, _lock)) = gpu("latency_of_one_small_copy") else { return };
    for beside in [false, true] {
        let other = beside.then(|| Other::start("looker"));
        let own = cuda.allocate(2 << 20).unwrap();
        let target = match other.as_ref().map(|other| &other.socket) {
            None => own,
            Some(mut socket) => {
                let mut handle = [0; 64];
                socket.read_exact(&mut handle).unwrap();
                cuda.open_memory(&MemoryHandle(handle)).unwrap()
            }
        };
        small_copies(&mut cuda, target, beside);
    }
}

fn small_copies(cuda: &mut Cuda, target: Address, beside: bool) {
    let (stream, event) = (cuda.stream().unwrap(), cuda.event().unwrap());
    let mut pinned = cuda.pin(1 << 20).unwrap();
    let source = cuda.allocate(1 << 20).unwrap();
    for (from, name) in [(source, "device"), (pinned.address(8192), "pinned")] {
        for bytes in [8_u64, 512, 4096, 65_536, 524_288] {
            let both = time(|| {
                cuda.copy(stream, target, from, bytes).unwrap();
                cuda.record(event, stream).unwrap();
                cuda.synchronize(stream).unwrap();
            });
            let waited = time(|| {
                cuda.copy(stream, target, from, bytes).unwrap();
                cuda.synchronize(stream).unwrap();
            });
            let queried = time(|| {
                cuda.copy(stream, target, from, bytes).unwrap();
                cuda.record(event, stream).unwrap();
                while !cuda.is_done(event).unwrap() {}
            });
            let record: Vec<u8> =
                [target.0, from.0, bytes].iter().flat_map(|word| word.to_ne_bytes()).collect();
            pinned.write(4096, &record).unwrap();
            let mut round = pinned.word(0).load(Ordering::Acquire);
            let mut tell = |cuda: &mut Cuda| {
                round += 1;
                cuda.write_word(stream, pinned.address(0), 8, round).unwrap();
                while pinned.word(0).load(Ordering::Acquire) != round {
                    std::hint::spin_loop();
                }
            };
            let word_alone = time(|| tell(cuda));
            let polled = time(|| {
                cuda.copy(stream, target, from, bytes).unwrap();
                tell(cuda);
            });
            let kernel = time(|| {
                cuda.move_ranges(stream, pinned.address(4096), 1, bytes).unwrap();
                cuda.synchronize(stream).unwrap();
            });
            let kernel_polled = time(|| {
                cuda.move_ranges(stream, pinned.address(4096), 1, bytes).unwrap();
                tell(cuda);
            });
            print_line(&format!(
                "{bytes} B from {name}, beside another {beside}: event and wait {both:?}, wait {waited:?}, event queried {queried:?}, \
                 word {polled:?} (alone {word_alone:?}); kernel and wait {kernel:?}, kernel and word {kernel_polled:?}"
            ));
        }
    }
}

/// Other process of the test above: polls a word until the socket is closed.
pub(crate) fn look(cuda: &mut Cuda, socket: &mut UnixStream) {
    let stream = cuda.stream().unwrap();
    let pinned = cuda.pin(4096).unwrap();
    let word = cuda.allocate(2 << 20).unwrap();
    socket.write_all(&cuda.export_memory(word).unwrap().0).unwrap();
    socket.set_nonblocking(true).unwrap();
    while !matches!(socket.read(&mut [0]), Ok(0)) {
        cuda.copy(stream, pinned.address(0), word, 8).unwrap();
        cuda.synchronize(stream).unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(10) {}
    }
}

/// Returns the median of many runs.
fn time(mut once: impl FnMut()) -> Duration {
    let mut times: Vec<_> = (0..2000)
        .map(|_| {
            let begun = Instant::now();
            once();
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[1000]
}
