//! A parameter server without a server program: workers push gradients with atomics and pull parameters with a load.
//!
//! Node 0 owns the parameters and computes nothing; its background thread serves the other nodes. Parameters are integers in units of 2^-20, because
//! an atomic adds integers. No push is lost in any order of the pushes. The previous values are not needed, so pushes are posted, and one
//! flush waits for both. The task is to fit a straight line to points that are distributed over the workers.
//!
//! Run it: `cargo run -p rackloom --example parameter_server`

use std::thread;

use rackloom::fabric::{Error, Fabric, Node, Plan, RegionOptions, RemoteAddress};

/// The number 1 in the units of the parameters.
const ONE: f64 = (1 << 20) as f64;
const RATE: f64 = 0.05;
const KEY: u64 = 0x5eed;

/// Returns a worker's points on the line y = 3x - 2.
fn points(worker: usize) -> Vec<(f64, f64)> {
    (0..16)
        .map(|index| ((index as f64 + worker as f64 / 4.0) / 8.0 - 1.0, 0.0))
        .map(|(x, _)| (x, 3.0 * x - 2.0))
        .collect()
}

/// Pulls the parameters, computes the gradient on the worker's own points, and pushes it, for `rounds` rounds.
fn work(node: &Node, slope: RemoteAddress, rounds: usize) -> Result<(), Error> {
    let local = node.allocate(RegionOptions::new(1, KEY), 16)?;
    let intercept = RemoteAddress { offset: slope.offset + 8, ..slope };
    let points = points(node.id().index());
    for _ in 0..rounds {
        node.load(slope, &local.slice(..)).wait()?;
        let mut units = [0_i64; 2];
        local.read(0, &mut units)?;
        let [a, b] = units.map(|units| units as f64 / ONE);
        let (mut of_a, mut of_b) = (0.0, 0.0);
        for (x, y) in &points {
            let error = a * x + b - y;
            of_a += error * x / points.len() as f64;
            of_b += error / points.len() as f64;
        }
        // Adding a negative number wraps as an unsigned one. The owner of the word reads the result as signed.
        let step = |gradient: f64| (-RATE * gradient * ONE).round() as i64 as u64;
        node.fetch_add::<u64>(slope, step(of_a)).posted().wait()?;
        node.fetch_add::<u64>(intercept, step(of_b)).posted().wait()?;
        node.flush(Some(slope.node)).wait()?;
    }
    Ok(())
}

/// Returns slope and intercept that the workers have found.
fn train(workers: usize, rounds: usize) -> Result<[f64; 2], Box<dyn std::error::Error>> {
    let text = format!("name: server\nshape: {{star: {{nodes: {}}}}}\n", workers + 1);
    let fabric = Fabric::local(&Plan::parse(&text, "example")?)?;
    let [server, workers @ ..] = fabric.nodes() else { return Err("the plan has nodes".into()) };
    let parameters = server.allocate(RegionOptions::new(1, KEY), 16)?;
    let address = parameters.address(0);
    thread::scope(|scope| {
        let threads: Vec<_> =
            workers.iter().map(|node| scope.spawn(move || work(node, address, rounds))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().map_err(|_| "a worker fell over")?.map_err(Box::<dyn std::error::Error>::from)
        })
    })?;
    let mut units = [0_i64; 2];
    parameters.read(0, &mut units)?;
    Ok(units.map(|units| units as f64 / ONE))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [slope, intercept] = train(3, 200)?;
    println!("3 workers, 200 rounds each: y = {slope:.4} x + {intercept:.4} (the points lie on y = 3 x - 2)");
    Ok(())
}
