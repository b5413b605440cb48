//! Quick check of this machine: three figures that bound every rack of processes, in less than a second.
//!
//! A frame on shared memory moves a cache line between two processors; a member that sleeps is woken; data is copied. A busy or slow host shows in
//! these figures before it shows in a rack. They are no measurement of rackloom: `crates/bench` is.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::arguments::Output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::present::table::{Column, Table};
use crate::present::units;
use crate::reporting::{print_data, print_text};

/// Number of round trips of a cache line, and of a wake-up.
const TRIPS: [u32; 2] = [100_000, 5_000];
/// Time after which a loop ends with the trips that it has made.
const TIME_LIMIT: Duration = Duration::from_millis(400);
const COPY_BYTES: usize = 16 << 20;

/// Takes the figures and prints them.
pub(super) fn run(json: bool) -> Result<Exit, Failure> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let cache_line_ns = (processors > 1).then(|| round_trip_ns(TRIPS[0], false));
    let (wake_ns, copy_per_s) = (round_trip_ns(TRIPS[1], true), copy_bytes_per_s());
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Option<f64> = load.split_whitespace().next().and_then(|load| load.parse().ok());
    let text = if json {
        let facts = json!({
            "processors": processors, "load": load, "cache_line_ns": cache_line_ns, "wake_ns": wake_ns,
            "copy_bytes_per_s": copy_per_s,
        });
        format!("{facts:#}")
    } else {
        let mut table = Table::new(&[Column::Left("figure"), Column::Right("here")]);
        let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
        row("processors", processors.to_string());
        row("load of the last minute", load.map_or_else(|| "-".to_owned(), |load| load.to_string()));
        row("cache line there and back", cache_line_ns.map_or_else(|| "-".to_owned(), units::time));
        row("sleeper woken and back", units::time(wake_ns));
        row("copy of 16 MiB, per second", units::bytes(copy_per_s));
        let busy = load.is_some_and(|load| load > processors as f64);
        let note = if busy { "\nthe host is busy: latencies of racks vary" } else { "" };
        format!("{}{note}", table.render())
    };
    match json {
        true => print_data(&text)?,
        false => print_text(&Output { json: None }, &text)?,
    }
    Ok(Exit::Pass)
}

/// Returns the time in which a word goes to another thread and back. Both threads sleep for it, or both spin.
fn round_trip_ns(trips_max: u32, sleeps: bool) -> u64 {
    let word = AtomicU32::new(0);
    let wait_for = |wanted: u32| {
        while word.load(Ordering::Acquire) < wanted {
            if sleeps { thread::park() } else { std::hint::spin_loop() }
        }
    };
    let wake = |thread: &thread::Thread| {
        if sleeps {
            thread.unpark();
        }
    };
    let here = thread::current();
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            // Odd values are requests and even ones answers. The largest one ends the loop.
            for answer in (2..).step_by(2) {
                wait_for(answer - 1);
                if word.fetch_max(answer, Ordering::AcqRel) == u32::MAX {
                    return;
                }
                wake(&here);
            }
        });
        let begun = Instant::now();
        let mut trips = 0;
        while trips < trips_max && begun.elapsed() < TIME_LIMIT {
            word.store(2 * trips + 1, Ordering::Release);
            wake(other.thread());
            wait_for(2 * trips + 2);
            trips += 1;
        }
        let took = begun.elapsed();
        word.store(u32::MAX, Ordering::Release);
        wake(other.thread());
        u64::try_from(took.as_nanos()).unwrap_or(u64::MAX) / u64::from(trips.max(1))
    })
}

fn copy_bytes_per_s() -> u64 {
    let (source, mut target) = (vec![1_u8; COPY_BYTES], vec![0_u8; COPY_BYTES]);
    let take = |target: &mut Vec<u8>| {
        let begun = Instant::now();
        target.copy_from_slice(std::hint::black_box(&source));
        std::hint::black_box(&target[COPY_BYTES / 2]);
        begun.elapsed()
    };
    // The first copy touches the pages.
    let fastest = (0..4).map(|_| take(&mut target)).skip(1).min().unwrap_or(TIME_LIMIT);
    (COPY_BYTES as f64 / fastest.as_secs_f64().max(1e-9)) as u64
}
