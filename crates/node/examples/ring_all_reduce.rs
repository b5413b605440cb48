//! An all-reduce by hand: n nodes in a ring, each vector cut into n chunks, 2(n-1) steps.
//!
//! In the first n-1 steps each node passes a chunk of partial sums to its neighbour, which adds its own. Afterwards every chunk is complete on one
//! node, and n-1 more steps pass the complete chunks round. A step is one put with a signal into a landing slot of its own, so no node writes where
//! another still reads.
//!
//! Run it: `cargo run -p rackloom --example ring_all_reduce`

use std::thread;

use rackloom::fabric::{
    Condition, Error, Fabric, Node, NodeId, Plan, Region, RegionOptions, RemoteAddress, Signal,
};

/// One node's part. Its region contains the vector, then a landing slot for each step, then a word for each step.
struct Rank<'a> {
    node: &'a Node,
    region: Region,
    ranks: usize,
    chunk: usize,
}

impl<'a> Rank<'a> {
    /// Creates a rank with space for `ranks` chunks of `chunk` numbers.
    fn new(node: &'a Node, ranks: usize, chunk: usize) -> Result<Self, Error> {
        let steps = 2 * (ranks - 1);
        // Words have 8 bytes and lie at the end, so the chunk must be an even number of 4-byte numbers.
        let bytes = (ranks + steps) * chunk * size_of::<f32>() + steps * 8;
        let region = node.allocate(RegionOptions::new(1, 0x5eed), bytes as u64)?;
        Ok(Self { node, region, ranks, chunk })
    }

    fn chunk_bytes(&self) -> u64 {
        (self.chunk * size_of::<f32>()) as u64
    }

    fn landing(&self, step: usize) -> u64 {
        (self.ranks + step) as u64 * self.chunk_bytes()
    }

    fn word(&self, step: usize) -> u64 {
        self.landing(2 * (self.ranks - 1)) + step as u64 * 8
    }

    /// Passes one chunk of the vector to the right neighbour, and returns the chunk that the left neighbour passes.
    fn step(&self, step: usize, passed: usize) -> Result<Vec<f32>, Error> {
        let rank = self.node.id().index();
        let right = NodeId(((rank + 1) % self.ranks) as u16);
        let left = NodeId(((rank + self.ranks - 1) % self.ranks) as u16);
        let target = RemoteAddress { node: right, ..self.region.address(self.landing(step)) };
        let word = self.word(step);
        let signal = Signal::set(RemoteAddress { offset: word, ..target }, 1);
        let from = passed as u64 * self.chunk_bytes();
        let source = self.region.slice(from..from + self.chunk_bytes());
        self.node.put_with_signal(&source, target, signal).wait()?;
        self.node.wait_until(&self.region, word, Condition::Equal, 1, left).wait()?;
        let mut landed = vec![0.0; self.chunk];
        self.region.read(self.landing(step), &mut landed)?;
        Ok(landed)
    }

    /// Replaces the vector by the sum of all ranks' vectors.
    fn all_reduce(&self, vector: &mut [f32]) -> Result<(), Error> {
        let (rank, ranks) = (self.node.id().index(), self.ranks);
        self.region.write(0, vector)?;
        for step in 0..2 * (ranks - 1) {
            let passed = (rank + 2 * ranks - step) % ranks;
            let taken = (passed + ranks - 1) % ranks;
            let landed = self.step(step, passed)?;
            let own = &mut vector[taken * self.chunk..(taken + 1) * self.chunk];
            if step < ranks - 1 {
                own.iter_mut().zip(&landed).for_each(|(sum, part)| *sum += part);
            } else {
                own.copy_from_slice(&landed);
            }
            self.region.write(taken as u64 * self.chunk_bytes(), own)?;
        }
        Ok(())
    }
}

/// Returns every rank's result. Rank r contributes r+1 times the position.
fn run(ranks: usize, chunk: usize) -> Result<Vec<Vec<f32>>, Box<dyn std::error::Error>> {
    let plan = Plan::parse(&format!("name: ring\nshape: {{ring: {{nodes: {ranks}}}}}\n"), "example")?;
    let fabric = Fabric::local(&plan)?;
    let ranks: Vec<_> =
        fabric.nodes().iter().map(|node| Rank::new(node, ranks, chunk)).collect::<Result<_, _>>()?;
    let sum = |rank: &Rank<'_>| {
        let factor = (rank.node.id().index() + 1) as f32;
        let mut vector: Vec<f32> = (0..rank.ranks * chunk).map(|place| factor * place as f32).collect();
        rank.all_reduce(&mut vector).map(|()| vector)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = ranks.iter().map(|rank| scope.spawn(move || sum(rank))).collect();
        threads.into_iter().map(|thread| Ok(thread.join().map_err(|_| "a rank fell over")??)).collect()
    })
}

/// Sums on as many ranks as the argument says, or 4, and compares each rank's result with the sum of all contributions.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (ranks, chunk) = (std::env::args().nth(1).map_or(Ok(4), |ranks| ranks.parse())?, 1024);
    let factor: usize = (1..=ranks).sum();
    for (rank, vector) in run(ranks, chunk)?.iter().enumerate() {
        let wrong = vector.iter().enumerate().find(|(place, sum)| **sum != (factor * place) as f32);
        if let Some((place, sum)) = wrong {
            return Err(format!("rank {rank} has {sum} at {place}, not {}", factor * place).into());
        }
    }
    println!("{ranks} ranks, {} numbers each; every rank has the sum of all", ranks * chunk);
    Ok(())
}
