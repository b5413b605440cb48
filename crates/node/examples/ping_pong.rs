//! Two nodes play ping-pong: a put of 64 bytes with a signal that marks its completion, and back.
//!
//! Each player has one region: the ball's bytes, then the word that the other player adds to. Waiting for the word is the only synchronisation.
//!
//! Run it: `cargo run -p rackloom --example ping_pong`

use std::thread;
use std::time::{Duration, Instant};

use rackloom::fabric::{Condition, Error, Fabric, Node, Plan, Region, RegionOptions, RemoteAddress, Signal};

const ROUNDS: u64 = 1000;
const BALL_BYTES: u64 = 64;

/// Puts the ball in `mine` to `peer`, and counts the throw there.
fn throw(node: &Node, mine: &Region, peer: RemoteAddress) -> Result<(), Error> {
    let word = RemoteAddress { offset: BALL_BYTES, ..peer };
    node.put_with_signal(&mine.slice(0..BALL_BYTES), peer, Signal::add(word, 1)).wait()
}

/// Waits for the `count`-th throw of the other player. Returns the ball's number.
fn catch(node: &Node, mine: &Region, count: u64, from: RemoteAddress) -> Result<u64, Error> {
    node.wait_until(mine, BALL_BYTES, Condition::AtLeast, count, from.node).wait()?;
    mine.get(0)
}

/// Plays. Returns the final number on the ball, which every throw increments, and the duration once the rack was up.
fn play(rounds: u64) -> Result<(u64, Duration), Box<dyn std::error::Error>> {
    let plan = Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?;
    let fabric = Fabric::local(&plan)?;
    let [first, second] = fabric.nodes() else { return Err("the plan has two nodes".into()) };
    let options = RegionOptions::new(1, 0x5eed);
    let (here, there) = (first.allocate(options, BALL_BYTES + 8)?, second.allocate(options, BALL_BYTES + 8)?);
    let begun = Instant::now();
    thread::scope(|scope| {
        let (home, away) = (here.address(0), there.address(0));
        let returning = scope.spawn(move || {
            for round in 1..=rounds {
                let ball = catch(second, &there, round, home)?;
                there.write(0, &[ball + 1])?;
                throw(second, &there, home)?;
            }
            Ok::<(), Error>(())
        });
        let mut ball = 0;
        for round in 1..=rounds {
            here.write(0, &[ball + 1])?;
            throw(first, &here, away)?;
            ball = catch(first, &here, round, away)?;
        }
        returning.join().map_err(|_| "the other player fell over")??;
        Ok((ball, begun.elapsed()))
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (ball, elapsed) = play(ROUNDS)?;
    println!("{ROUNDS} rounds, the ball shows {ball}; {:?} for one there and back", elapsed / ROUNDS as u32);
    Ok(())
}
