//! Rows of whole commands: the wall time from start to exit, and the largest memory of all processes.
//!
//! Reading the file, building the plan, starting and ending processes, checking every byte and printing the
//! report all count. Memory is the proportional set size of the command and its descendants, sampled every
//! [`SAMPLE_INTERVAL`], so a shorter peak is not seen.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rackloom_calibrate::Goal;

use crate::bench::Bench;
use crate::measure_error::MeasureError;
use crate::row::{Row, Sides, Unit};
use crate::runs::program::{On, rack_file, started, words};
use crate::takes::CommandTake;

const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);
const MIB: f64 = 1_048_576.0;
/// Number of runs of each collective; fewer with `--quick`.
const REPETITIONS: u64 = 10;

/// Command whose time and memory are rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whole {
    SimulateRing,
    SimulateStar,
    RunRing,
    RunMany,
}

/// Parts of a command line: the command, the shape of its rack, and its job.
struct CommandParts {
    command: &'static str,
    shape: &'static str,
    job: &'static str,
}

impl Whole {
    /// Returns the parts of the command line. Repetitions are added to collectives.
    const fn parts(self) -> CommandParts {
        let (command, shape, job) = match self {
            Self::SimulateRing => ("sim", "ring: {nodes: 8}", "--job litmus"),
            Self::SimulateStar => {
                ("sim", "star: {nodes: 64}", "--collective all-reduce --algorithm ring --bytes 64KiB")
            }
            Self::RunRing => ("run", "ring: {nodes: 4}", "--job litmus"),
            Self::RunMany => {
                ("run", "ring: {nodes: 16}", "--collective all-reduce --algorithm ring --bytes 1MiB")
            }
        };
        CommandParts { command, shape, job }
    }

    fn take(self, bench: &Bench) -> Result<CommandTake, MeasureError> {
        let CommandParts { command, shape, job } = self.parts();
        let file = rack_file(
            bench,
            &format!("whole-{}", self as usize),
            &format!("name: whole\nshape: {{{shape}}}\n"),
        )?;
        let mut line = format!("{command} {file} {job}");
        if job.contains("--collective") {
            line += &format!(" --warm-up 0 --repetitions {}", bench.count(REPETITIONS).max(1));
        }
        let (process, is_over, most) = (AtomicU32::new(0), AtomicBool::new(false), AtomicU64::new(0));
        let begun = Instant::now();
        let ended = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    most.fetch_max(held_by_all(process.load(Ordering::Relaxed)), Ordering::Relaxed);
                    thread::sleep(SAMPLE_INTERVAL);
                }
            });
            let ended = started(bench, On::All, &words(&line), |id| process.store(id, Ordering::Relaxed));
            let took = begun.elapsed();
            is_over.store(true, Ordering::Relaxed);
            ended.map(|_| took)
        });
        let memory_bytes = most.into_inner() as f64;
        if memory_bytes == 0.0 {
            return Err(MeasureError::NotHere("the memory of a process cannot be looked at here".to_owned()));
        }
        Ok(CommandTake { wall_ns: ended?.as_nanos() as f64, memory_bytes })
    }
}

pub(crate) fn rows() -> Vec<Row> {
    let time = |name, ours, most_s: (f64, f64), begin| Row {
        name,
        ours,
        raw: "",
        unit: Unit::Nanoseconds,
        goal: Goal::at_most(most_s.0 * 1e9, most_s.1 * 1e9),
        expected: None,
        begin,
    };
    let memory = |name, ours, most_mib: (f64, f64), begin| Row {
        name,
        ours,
        raw: "",
        unit: Unit::Bytes,
        goal: Goal::at_most(most_mib.0 * MIB, most_mib.1 * MIB),
        expected: None,
        begin,
    };
    vec![
        time("command-sim-8", "`sim` of a ring of 8 with the litmus, start to exit", (1.0, 0.5), |bench| {
            ours_only(bench, Whole::SimulateRing, |taken| taken.wall_ns)
        }),
        memory("command-sim-8-memory", "the most memory of that command", (400.0, 200.0), |bench| {
            ours_only(bench, Whole::SimulateRing, |taken| taken.memory_bytes)
        }),
        time(
            "command-sim-64",
            "`sim` of a star of 64 with 10 ring all-reduces of 64 KiB, start to exit",
            (4.0, 2.0),
            |bench| ours_only(bench, Whole::SimulateStar, |taken| taken.wall_ns),
        ),
        memory("command-sim-64-memory", "the most memory of that command", (400.0, 200.0), |bench| {
            ours_only(bench, Whole::SimulateStar, |taken| taken.memory_bytes)
        }),
        time("command-run-4", "`run` of a ring of 4 with the litmus, start to exit", (1.0, 0.5), |bench| {
            ours_only(bench, Whole::RunRing, |taken| taken.wall_ns)
        }),
        memory(
            "command-run-4-memory",
            "the most memory of all processes of that command",
            (400.0, 200.0),
            |bench| ours_only(bench, Whole::RunRing, |taken| taken.memory_bytes),
        ),
        time(
            "command-run-16",
            "`run` of a ring of 16 with 10 ring all-reduces of 1 MiB, start to exit",
            (4.0, 2.0),
            |bench| ours_only(bench, Whole::RunMany, |taken| taken.wall_ns),
        ),
        memory(
            "command-run-16-memory",
            "the most memory of all processes of that command",
            (1000.0, 500.0),
            |bench| ours_only(bench, Whole::RunMany, |taken| taken.memory_bytes),
        ),
    ]
}

fn ours_only(
    bench: &Bench,
    whole: Whole,
    figure: fn(&CommandTake) -> f64,
) -> Result<Sides<'_>, MeasureError> {
    let mut number = 0;
    let ours = move || {
        number += 1;
        let taken = bench.commands[whole as usize].take(number - 1, || whole.take(bench))?;
        Ok(figure(&taken))
    };
    Ok(Sides { raw: None, ours: Box::new(ours), line_ns: None })
}

/// Returns the proportional set size of a process and its descendants, in bytes. Ended processes count as
/// zero.
fn held_by_all(process: u32) -> u64 {
    if process == 0 {
        return 0;
    }
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let of_children: u64 = children
        .flat_map(|line| line.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>())
        .map(held_by_all)
        .sum();
    let held = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let kib = held.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = kib.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024 + of_children
}
