//! Times of stores and puts between two processes of a rack for programs, to compare with those of RDMA programs on the same rack.
//!
//! | row | operation |
//! |---|---|
//! | `store` | 2 bytes, one after another, each until its acknowledgement: microseconds |
//! | `puts` | 64 KiB, 128 in flight, from one region into one region: MiB per second |
//!
//! The first process serves until its standard input ends, the second one measures and prints median, least and most of its takes:
//!
//!     rackloom up topologies/star-4.yaml --seats programs
//!     rackloom exec --seat n0 -- target/release/examples/process_times &
//!     rackloom exec --seat n1 -- target/release/examples/process_times 0       # the number of the node of the first one
//!
//! `ib_write_lat` prints half of the time of two writes, of which each answers the other, and `ib_write_bw -t 128` the same rate.

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rackloom::fabric::{self, Key, Node, NodeId, Queue, RegionId, RegionOptions, RemoteAddress};

const KEY: u64 = 0x5eed;
const BYTES: u64 = 64 << 10;
const IN_FLIGHT: u64 = 128;
const STORES: u32 = 2000;
const PUTS: u64 = 2000;
const TAKES: usize = 5;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the time of a store in microseconds.
fn store_time(node: &Node, target: RemoteAddress) -> Result<f64, fabric::Error> {
    let begun = Instant::now();
    for number in 0..STORES {
        node.store(target, &(number as u16).to_le_bytes()).wait()?;
    }
    Ok(begun.elapsed().as_secs_f64() * 1e6 / f64::from(STORES))
}

/// Returns the rate of puts in MiB per second.
fn put_rate(node: &Node, source: &fabric::Region, target: RemoteAddress) -> Result<f64, fabric::Error> {
    let queue = Queue::with_capacity(IN_FLIGHT as usize);
    let (mut begun, mut ended) = (0, 0);
    let start = Instant::now();
    while ended < PUTS {
        while begun < PUTS && begun - ended < IN_FLIGHT {
            match node.put(&source.slice(..), target).submit(&queue, begun) {
                Ok(_) => begun += 1,
                Err(fabric::Error::Busy { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        while let Some(completion) = node.poll(&queue) {
            completion.result?;
            ended += 1;
        }
        std::thread::yield_now();
    }
    Ok((PUTS * BYTES) as f64 / f64::from(1 << 20) / start.elapsed().as_secs_f64())
}

fn print(row: &str, unit: &str, mut figures: Vec<f64>) {
    figures.sort_by(f64::total_cmp);
    println!("{row:<6} {:>10.1} {unit}, {:.1} to {:.1}", figures[TAKES / 2], figures[0], figures[TAKES - 1]);
}

fn run() -> Result<(), Box<dyn Error>> {
    let variable = |name: &str| {
        std::env::var(name).map_err(|_| format!("no {name}; hint: start it with `rackloom exec`"))
    };
    let node = Node::join_process(&variable("RACKLOOM_RACK")?, &variable("RACKLOOM_SEAT")?)?;
    let region = node.allocate(RegionOptions::new(1, KEY), BYTES)?;
    let Some(first) = std::env::args().nth(1) else {
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
        return Ok(());
    };
    let first: usize = first.parse().map_err(|_| "the argument is the number of a node")?;
    let seats = node.process_seats();
    let peer: NodeId = *seats.get(first).and_then(|seats| seats.first()).ok_or("it has no process seats")?;
    node.wait_until_reached(&[peer], TIMEOUT)?;
    let target = RemoteAddress { node: peer, region: RegionId(1), offset: 0, key: Key(KEY) };
    let (mut times, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..TAKES {
        times.push(store_time(&node, target)?);
        rates.push(put_rate(&node, &region, target)?);
    }
    print("store", "us", times);
    print("puts", "MiB/s", rates);
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
