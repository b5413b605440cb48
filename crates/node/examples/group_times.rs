//! Times of an all-reduce of a group, one process per rank.
//!
//! | row | array |
//! |---|---|
//! | `array` | `Group::all_reduce` of an array of the program |
//! | `slice` | `Group::on_slices` of a region of the node |
//! | `persistent` | `Group::persistent` of the same region |
//!
//! All ranks meet in a barrier before each take. A take is a number of calls, one after another, and its time is that of one call at rank 0. The output
//! has median, least and most of all takes. Each result is compared with the sum of all contributions at its end.
//!
//! | option | meaning |
//! |---|---|
//! | `--nodes N` | ranks, each a process; 2 unless changed |
//! | `--bytes B` | bytes of the array of f32; 1 MiB unless changed |
//! | `--calls C`, `--takes T` | calls of a take, and takes; 200 and 9 unless changed |
//! | `--device cuda:0` | region and group are in the memory of this device; `cuda:rank` is the device with the number of the rank |
//! | `--path frames` | accesses are frames also within the server |
//!
//! Run it: `cargo build --release --workspace --examples`, then `target/release/examples/group_times --bytes 1048576`

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rackloom::fabric::{
    Collective, DeviceChoice, ElementType, Error, Group, GroupOptions, Node, NodeCounters, NodeId,
    PersistentCollective, ReduceOperation, Region, RegionOptions,
};
use rackloom_plan::MemoryDevice;

use launch::{Arguments, Event, Rack, Result, exit_code, wait_for_launcher};

mod launch;

const KNOWN: [&str; 6] = ["--nodes", "--bytes", "--calls", "--takes", "--device", "--path"];
const ROWS: [&str; 3] = ["array", "slice", "persistent"];
const BYTES_MAX: usize = 1 << 30;

struct Job {
    nodes: usize,
    elements: usize,
    calls: usize,
    takes: usize,
    device: Option<String>,
    uses_frames: bool,
}

impl Job {
    fn read(arguments: &Arguments) -> Result<Self> {
        let uses_frames = match arguments.text("--path") {
            None | Some("memory") => false,
            Some("frames") => true,
            Some(_) => return Err("--path is memory or frames".into()),
        };
        Ok(Self {
            nodes: arguments.number_in("--nodes", 2..=16, 2)?,
            elements: arguments.number_in("--bytes", 4..=BYTES_MAX, 1 << 20)? / size_of::<f32>(),
            calls: arguments.number_in("--calls", 1..=1_000_000, 200)?,
            takes: arguments.number_in("--takes", 1..=1000, 9)?,
            device: arguments.text("--device").map(str::to_owned),
            uses_frames,
        })
    }

    /// Returns the device of a rank.
    fn device(&self, rank: usize) -> Result<Option<DeviceChoice>> {
        let Some(name) = &self.device else { return Ok(None) };
        let name = if name == "cuda:rank" { format!("cuda:{rank}") } else { name.clone() };
        let device = MemoryDevice::named(&name).ok_or("--device is cuda:NUMBER, cuda:rank or fake:NUMBER")?;
        Ok(Some(device.into()))
    }
}

// ---- a rank -----------------------------------------------------------------------------------------------------------

struct Rank {
    group: Group,
    region: Region,
    persistent: PersistentCollective,
    array: Vec<f32>,
}

impl Rank {
    fn new(node: &Node, job: &Job) -> Result<Self> {
        let members: Vec<_> = (0..job.nodes as u16).map(NodeId).collect();
        let bytes = (job.elements * size_of::<f32>()) as u64;
        let device = job.device(node.id().index())?;
        let options = RegionOptions::new(1, 0x5eed);
        let region = match device {
            Some(device) => node.allocate_on_device(options, device, bytes)?,
            None => node.allocate(options, bytes)?,
        };
        let mut options = GroupOptions::default().staging(bytes.max(1 << 20));
        options.device = device;
        let group = Group::join(node, options, &members)?;
        let slice = region.slice(..);
        let (sum, element) = (ReduceOperation::Sum, ElementType::F32);
        let persistent = group.persistent(Collective::AllReduce, sum, element, &slice, &slice)?;
        Ok(Self { group, region, persistent, array: vec![0.0; job.elements] })
    }

    /// Fills array or region with the contribution of this rank.
    fn fill(&mut self, row: &str) -> std::result::Result<(), Error> {
        let rank = self.group.rank();
        let numbers = self.array.iter_mut().enumerate();
        numbers.for_each(|(place, number)| *number = contribution(rank, place));
        if row == ROWS[0] { Ok(()) } else { self.region.write(0, &self.array) }
    }

    /// Returns the number of wrong elements after one call.
    fn wrong(&mut self, row: &str) -> std::result::Result<usize, Error> {
        if row != ROWS[0] {
            self.region.read(0, &mut self.array)?;
        }
        let ranks = self.group.members().len();
        let sum = |place| (0..ranks).map(|rank| contribution(rank, place)).sum::<f32>();
        Ok(self.array.iter().enumerate().filter(|(place, number)| **number != sum(*place)).count())
    }

    fn call(&mut self, row: &str) -> std::result::Result<(), Error> {
        let (sum, element) = (ReduceOperation::Sum, ElementType::F32);
        if row == ROWS[0] {
            return self.group.all_reduce(&mut self.array, sum).wait();
        }
        if row == ROWS[1] {
            let slice = self.region.slice(..);
            return self.group.on_slices(Collective::AllReduce, sum, element, &slice, &slice).wait();
        }
        self.persistent.request().wait()
    }

    /// Performs calls of zeros, which stay zeros. Returns the time of one.
    fn take(&mut self, row: &str, calls: usize) -> std::result::Result<Duration, Error> {
        self.array.fill(0.0);
        self.region.write(0, &self.array)?;
        self.group.barrier().wait()?;
        let begun = Instant::now();
        for _ in 0..calls {
            self.call(row)?;
        }
        Ok(begun.elapsed() / calls as u32)
    }
}

/// Returns a number whose sums over all ranks are exact.
fn contribution(rank: usize, place: usize) -> f32 {
    (place % 1000 * (rank + 1)) as f32
}

fn run_rank(node: &Node, job: &Job) -> Result<()> {
    let mut rank = Rank::new(node, job)?;
    for row in ROWS {
        rank.fill(row)?;
        rank.call(row)?;
        let wrong = rank.wrong(row)?;
        rank.take(row, job.calls.min(20))?;
        let mut takes =
            (0..job.takes).map(|_| rank.take(row, job.calls)).collect::<std::result::Result<Vec<_>, _>>()?;
        takes.sort();
        let [median, least, most] = [takes[job.takes / 2], takes[0], takes[job.takes - 1]];
        println!("{row} {wrong} {} {} {}", median.as_nanos(), least.as_nanos(), most.as_nanos());
    }
    let NodeCounters { direct_operations, data_frames_sent, .. } = node.counters();
    println!("paths {direct_operations} {data_frames_sent}");
    wait_for_launcher();
    Ok(())
}

// ---- the launcher -----------------------------------------------------------------------------------------------------

/// Starts rack and ranks, and prints the table. Returns true if every rank has every sum.
fn supervise(job: &Job) -> Result<bool> {
    let rack =
        Rack::up_with("group-times", job.nodes, if job.uses_frames { "force_wire: true\n" } else { "" })?;
    let mut processes = rack.start(&[])?;
    let (mut waiting, mut wrong) = (job.nodes, 0);
    println!("{:<12} {:>12} {:>12} {:>12}", "all-reduce", "median (us)", "least (us)", "most (us)");
    while let Some(event) = processes.next()? {
        let (index, line) = match event {
            Event::Line { index, line } => (index, line),
            Event::Ended { index, status } if !status.success() => {
                return Err(format!("rank {index} has ended with {status}").into());
            }
            Event::Ended { .. } => continue,
        };
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            [row, wrong_here, median, least, most] => {
                wrong += wrong_here.parse::<usize>()?;
                let times = [median, least, most].map(str::parse::<f64>);
                if let ([Ok(median), Ok(least), Ok(most)], 0) = (times, index) {
                    let [median, least, most] = [median, least, most].map(|ns| ns / 1000.0);
                    println!("{row:<12} {median:>12.1} {least:>12.1} {most:>12.1}");
                }
            }
            ["paths", direct, frames] => {
                if index == 0 {
                    println!(
                        "rank 0: {direct} operations through memory of the server; {frames} data frames"
                    );
                }
                waiting -= 1;
                if waiting == 0 {
                    processes.release();
                }
            }
            _ => return Err(format!("rank {index} has printed {line}").into()),
        }
    }
    println!("{wrong} wrong elements on all ranks");
    Ok(wrong == 0)
}

fn run() -> Result<bool> {
    let arguments = Arguments::read(&KNOWN)?;
    let job = Job::read(&arguments)?;
    match arguments.take_seat(job.nodes)? {
        Some(node) => run_rank(&node, &job).map(|()| true),
        None => supervise(&job),
    }
}

fn main() -> ExitCode {
    exit_code(run())
}
