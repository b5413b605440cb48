//! Two nodes throw a ball: a put of 64 bytes with a signal that says "it is all there", and back.
//!
//! Each player has one region: the ball's bytes, then the word that the other one adds to. Waiting for the word is all
//! the synchronisation there is.
//!
//! Run it: `cargo run -p rackloom --example ping_pong`

use std::thread;

use rackloom::fabric::{
    Condition, Error, Fabric, Node, Plan, Region, RegionOptions, RemoteAddress, Signal, SignalKind,
};

const ROUNDS: u64 = 1000;
const BALL_BYTES: u64 = 64;

/// Throw what lies in `mine` to `peer`, and count the throw there.
fn throw(node: &Node, mine: &Region, peer: RemoteAddress) -> Result<(), Error> {
    let signal =
        Signal { region: peer.region, offset: BALL_BYTES, key: peer.key, kind: SignalKind::Add, value: 1 };
    node.put_with_signal(&mine.slice(0..BALL_BYTES), peer, signal).wait()
}

/// Wait for the `count`-th throw of the other one; the ball's number.
fn catch(node: &Node, mine: &Region, count: u64, from: RemoteAddress) -> Result<u64, Error> {
    node.wait_until(mine, BALL_BYTES, Condition::AtLeast, count, from.node).wait()?;
    mine.get(0)
}

/// Play; the number on the ball in the end, which every throw raises by one.
fn play(rounds: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let plan = Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?;
    let fabric = Fabric::local(&plan)?;
    let [first, second] = fabric.nodes() else { return Err("the plan has two nodes".into()) };
    let options = RegionOptions::new(1, 0x5eed);
    let (here, there) = (first.allocate(options, BALL_BYTES + 8)?, second.allocate(options, BALL_BYTES + 8)?);
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
        Ok(ball)
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let begin = std::time::Instant::now();
    let ball = play(ROUNDS)?;
    let elapsed = begin.elapsed() / ROUNDS as u32;
    println!("{ROUNDS} rounds, the ball shows {ball}; {elapsed:?} for one round, start of the rack included");
    Ok(())
}

#[test]
fn every_throw_is_caught_once() {
    assert_eq!(play(50).expect("the game goes on"), 100);
}
