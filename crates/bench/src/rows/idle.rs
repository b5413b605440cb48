//! Rows of an idle rack: time until it is up, processor time and memory.
//!
//! The command brings up a ring or a star of 64 nodes, reads its figures from `/proc`, and takes it down.

use std::time::{Duration, Instant};

use rackloom_calibrate::Goal;
use serde_json::Value;

use crate::bench::Bench;
use crate::measure_error::MeasureError;
use crate::row::{Row, Sides, Unit};
use crate::runs::program::{On, rack_file, rackloom, words};
use crate::takes::IdleTake;

const NODES: u32 = 64;
/// Time over which an idle rack is observed; `--quick` shortens it.
const WATCH_MS: u64 = 2000;
/// Time for the rack to come to rest before. Nodes that have just found each other flood their links, and
/// links rest only after a quiet time. Two seconds after it was up, a ring of 64 sends heartbeats at its
/// final rate.
const REST_MS: u64 = 3000;

pub(crate) fn rows() -> Vec<Row> {
    let row = |name, ours, unit, goal, begin| Row { name, ours, raw: "", unit, goal, expected: None, begin };
    vec![
        row(
            "bring-up",
            "a ring of 64 processes, from the command to all links up",
            Unit::Nanoseconds,
            Goal::at_most(1e9, 0.5e9),
            |bench| ours_only(bench, Shape::Ring, |taken| taken.bring_up_ns),
        ),
        row(
            "bring-up-packet",
            "a ring of 64 processes with a network namespace each, from the command to all links up",
            Unit::Nanoseconds,
            Goal::at_most(1.5e9, 0.75e9),
            |bench| Ok(Sides { raw: None, ours: Box::new(|| bring_up_on_packet(bench)), line_ns: None }),
        ),
        row(
            "idle-processor",
            "64 idle nodes in a ring, share of one processor",
            Unit::Percent,
            Goal::at_most(1.0, 1.0),
            |bench| ours_only(bench, Shape::Ring, |taken| taken.processor_percent),
        ),
        row(
            "idle-star",
            "64 idle nodes and the switch between them, share of one processor",
            Unit::Percent,
            Goal::at_most(1.0, 1.0),
            |bench| ours_only(bench, Shape::Star, |taken| taken.processor_percent),
        ),
        row(
            "idle-memory",
            "64 idle nodes in a ring, memory of each beside regions and rings",
            Unit::Bytes,
            Goal::at_most((1 << 20) as f64, (1 << 20) as f64),
            |bench| ours_only(bench, Shape::Ring, |taken| taken.memory_bytes),
        ),
    ]
}

/// Topology of an idle rack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Ring,
    Star,
}

impl Shape {
    const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Star => "star",
        }
    }

    /// Returns the number of processes of the rack.
    const fn members(self) -> usize {
        match self {
            Self::Ring => NODES as usize,
            Self::Star => NODES as usize + 1,
        }
    }
}

fn ours_only(bench: &Bench, shape: Shape, figure: fn(&IdleTake) -> f64) -> Result<Sides<'_>, MeasureError> {
    let mut number = 0;
    let ours = move || {
        number += 1;
        let racks = &bench.idle_racks[shape as usize];
        Ok(figure(&racks.take(number - 1, || watch(bench, shape))?))
    };
    Ok(Sides { raw: None, ours: Box::new(ours), line_ns: None })
}

fn bring_up_on_packet(bench: &Bench) -> Result<f64, MeasureError> {
    Ok(Rack::up(bench, Shape::Ring, "packet")?.took.as_nanos() as f64)
}

fn watch(bench: &Bench, shape: Shape) -> Result<IdleTake, MeasureError> {
    let rack = Rack::up(bench, shape, "shared-memory")?;
    Ok(IdleTake {
        bring_up_ns: rack.took.as_nanos() as f64,
        processor_percent: rack.processor_percent()?,
        memory_bytes: rack.memory_bytes()?,
    })
}

/// Rack that is up until the drop.
struct Rack<'b> {
    bench: &'b Bench,
    shape: Shape,
    name: String,
    took: Duration,
}

impl<'b> Rack<'b> {
    fn up(bench: &'b Bench, shape: Shape, wire: &str) -> Result<Self, MeasureError> {
        let kind = shape.name();
        let text = format!("name: idle\nshape: {{{kind}: {{nodes: {NODES}}}}}\nring_bytes: 64KiB\n");
        let file = rack_file(bench, &format!("idle-{kind}"), &text)?;
        let name = format!("calibrate-{}", std::process::id());
        let begun = Instant::now();
        // A rack whose start is reported late may be up. The drop takes it down.
        let mut rack = Self { bench, shape, name, took: Duration::ZERO };
        rackloom(bench, On::All, &words(&format!("up {file} --name {} --wire {wire}", rack.name)))?;
        rack.took = begun.elapsed();
        Ok(rack)
    }

    /// Returns the processes of the members.
    fn processes(&self) -> Result<Vec<u64>, MeasureError> {
        let printed = rackloom(self.bench, On::All, &words(&format!("status {} --json", self.name)))?;
        let status: Value = serde_json::from_str(&printed)
            .map_err(|error| MeasureError::Failed(format!("a status cannot be read: {error}")))?;
        let members = status["racks"][0]["members"].as_array().map_or(&[][..], Vec::as_slice);
        let processes: Vec<_> = members.iter().filter_map(|member| member["pid"].as_u64()).collect();
        let is_complete = processes.len() == self.shape.members();
        is_complete
            .then_some(processes)
            .ok_or_else(|| MeasureError::Failed("members of the idle rack are missing".to_owned()))
    }

    /// Measures the processor time of all members over a while, as a share of one processor.
    fn processor_percent(&self) -> Result<f64, MeasureError> {
        let processes = self.processes()?;
        std::thread::sleep(Duration::from_millis(self.bench.count(REST_MS)));
        let used_ns = || processes.iter().map(|process| processor_ns(*process)).sum::<Result<u64, _>>();
        let (before_ns, begun) = (used_ns()?, Instant::now());
        std::thread::sleep(Duration::from_millis(self.bench.count(WATCH_MS)));
        let used_ns = used_ns()?.saturating_sub(before_ns);
        Ok(used_ns as f64 / begun.elapsed().as_nanos() as f64 * 100.0)
    }

    /// Measures the memory of a node: its proportional share, without memory that has a descriptor (regions,
    /// rings).
    fn memory_bytes(&self) -> Result<f64, MeasureError> {
        let processes = self.processes()?;
        let total = processes.iter().map(|process| memory_bytes(*process)).sum::<Result<u64, _>>()?;
        Ok(total as f64 / processes.len() as f64)
    }
}

impl Drop for Rack<'_> {
    fn drop(&mut self) {
        // An error means that the rack is not up or cannot be reached. Nothing can be done about it in a
        // drop.
        let _ = rackloom(self.bench, On::All, &words(&format!("down {}", self.name)));
    }
}

/// Returns the processor time of all live threads of a process.
fn processor_ns(process: u64) -> Result<u64, MeasureError> {
    let mut total_ns = 0;
    for task in std::fs::read_dir(format!("/proc/{process}/task"))? {
        match std::fs::read_to_string(task?.path().join("schedstat")) {
            Ok(text) => total_ns += first_number(&text),
            // The time of a thread that has just ended is missing, as that of threads that ended earlier.
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(total_ns)
}

/// Returns true if a file of `/proc` could not be read because its thread has ended, before or after the file
/// was opened.
fn is_gone(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

fn memory_bytes(process: u64) -> Result<u64, MeasureError> {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0, first_number)
    };
    Ok((kib("Pss:").saturating_sub(kib("Pss_Shmem:"))) * 1024)
}

fn first_number(text: &str) -> u64 {
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_memory_of_this_process_are_read() {
        let process = u64::from(std::process::id());
        assert!(processor_ns(process).unwrap() > 0);
        assert!(memory_bytes(process).unwrap() > 100_000);
    }

    #[test]
    fn threads_that_start_and_end_do_not_disturb_a_reading() {
        let process = u64::from(std::process::id());
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    std::thread::spawn(|| ()).join().unwrap();
                }
            });
            let readings: Vec<_> = (0..2_000).map(|_| processor_ns(process)).collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(readings.into_iter().all(|reading| reading.is_ok()));
        });
    }
}
