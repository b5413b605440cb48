//! Several threads of one program issue stores: through one node, or with a node for each of them.
//!
//! | arrangement | threads | nodes that issue |
//! |---|---|---|
//! | `driver` | one, with the node's driver | one |
//! | `queues` | several, each with a queue of its own | one |
//! | `beside` | several; one has the driver, the others have queues | one |
//! | `nodes` | several, each with the driver of its own node | as many |
//!
//! Every thread stores 64 bytes to its own target node, in frames, 256 at a time, until each store is acknowledged. The output is the median of
//! several takes, which alternate between the arrangements: stores per second of all threads together.
//!
//! Run it: `cargo run --release -p rackloom --example workers -- [THREADS] [STORES] [TAKES]`

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use rackloom::fabric::{Driver, Error, Fabric, Node, Plan, Queue, RegionOptions, RemoteAddress};

const WINDOW: u64 = 256;
const DATA: [u8; 64] = [0x5a; 64];

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrangement {
    Driver,
    Queues,
    Beside,
    Nodes,
}

const ARRANGEMENTS: [Arrangement; 4] =
    [Arrangement::Driver, Arrangement::Queues, Arrangement::Beside, Arrangement::Nodes];

impl Arrangement {
    const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Queues => "queues",
            Self::Beside => "beside",
            Self::Nodes => "nodes",
        }
    }

    const fn threads(self, most: usize) -> usize {
        if matches!(self, Self::Driver) { 1 } else { most }
    }
}

/// Returns the address of a store. Stores advance through the target's region.
fn address(target: RemoteAddress, number: u64) -> RemoteAddress {
    RemoteAddress { offset: number % 1024 * 64, ..target }
}

/// Stores through the driver of a node, until all stores are acknowledged.
fn with_driver(driver: &mut Driver, target: RemoteAddress, stores: u64) -> Result<(), Error> {
    let (mut begun, mut ended, mut completions) = (0, 0, Vec::new());
    while ended < stores {
        while begun < stores && begun - ended < WINDOW {
            match driver.store(address(target, begun), &DATA, begun) {
                Ok(_) => begun += 1,
                Err(Error::Busy { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        driver.poll(&mut completions);
        for completion in completions.drain(..) {
            completion.result?;
            ended += 1;
        }
    }
    Ok(())
}

/// Stores with a queue of this thread, until all stores are acknowledged.
fn with_queue(node: &Node, target: RemoteAddress, stores: u64) -> Result<(), Error> {
    let queue = Queue::with_capacity(WINDOW as usize);
    let (mut begun, mut ended) = (0, 0);
    while ended < stores {
        while begun < stores && begun - ended < WINDOW {
            match node.store(address(target, begun), &DATA).submit(&queue, begun) {
                Ok(_) => begun += 1,
                Err(Error::Busy { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        while let Some(completion) = node.poll(&queue) {
            completion.result?;
            ended += 1;
        }
    }
    Ok(())
}

/// Returns stores per second of all threads of an arrangement. `nodes`: those that issue, then their targets.
fn measure(
    arrangement: Arrangement,
    nodes: &[Node],
    targets: &[RemoteAddress],
    stores: u64,
) -> Result<f64, Failure> {
    let threads = arrangement.threads(targets.len());
    let start = Barrier::new(threads + 1);
    let elapsed = thread::scope(|scope| {
        let work = |index: usize| {
            let target = targets[index];
            let (node, drives) = match arrangement {
                Arrangement::Driver | Arrangement::Beside => (&nodes[0], index == 0),
                Arrangement::Queues => (&nodes[0], false),
                Arrangement::Nodes => (&nodes[index], true),
            };
            let driver = if drives { Some(node.drive()) } else { None };
            start.wait();
            match driver {
                Some(driver) => with_driver(&mut driver?, target, stores),
                None => with_queue(node, target, stores),
            }
        };
        let workers: Vec<_> = (0..threads).map(|index| scope.spawn(move || work(index))).collect();
        start.wait();
        let begun = Instant::now();
        for worker in workers {
            worker.join().map_err(|_| "a worker has panicked")??;
        }
        Ok::<_, Failure>(begun.elapsed())
    })?;
    Ok(stores as f64 * threads as f64 / elapsed.as_secs_f64())
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse::<u64>());
    let (threads, stores, takes) =
        (next(2)?.clamp(1, 16) as usize, next(20_000)?.max(1), next(5)?.max(1) as usize);
    let text = format!("name: workers\nshape: {{star: {{nodes: {}}}}}\nforce_wire: true\n", 2 * threads);
    let fabric = Fabric::local(&Plan::parse(&text, "example")?)?;
    let (issuing, targets) = fabric.nodes().split_at(threads);
    let regions = targets.iter().map(|node| node.allocate(RegionOptions::new(1, 0x5eed), 64 << 10));
    let regions = regions.collect::<Result<Vec<_>, _>>()?;
    let addresses: Vec<_> = regions.iter().map(|region| region.address(0)).collect();
    let mut figures = vec![Vec::with_capacity(takes); ARRANGEMENTS.len()];
    for _ in 0..takes {
        for (arrangement, figures) in ARRANGEMENTS.into_iter().zip(&mut figures) {
            figures.push(measure(arrangement, issuing, &addresses, stores)?);
        }
    }
    println!("{:<12} {:>7} {:>16} {:>16} {:>16}", "arrangement", "threads", "stores/s", "least", "most");
    for (arrangement, mut figures) in ARRANGEMENTS.into_iter().zip(figures) {
        figures.sort_by(f64::total_cmp);
        let [median, least, most] = [figures[takes / 2], figures[0], figures[takes - 1]];
        println!(
            "{:<12} {:>7} {median:>16.0} {least:>16.0} {most:>16.0}",
            arrangement.name(),
            arrangement.threads(threads)
        );
    }
    for (region, node) in regions.iter().zip(targets) {
        // The last stores have arrived: their bytes are there.
        assert_eq!(region.get::<u8>(0)?, DATA[0], "{}", node.id());
    }
    Ok(())
}
