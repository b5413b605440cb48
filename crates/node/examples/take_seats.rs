//! Two seats of a standing rack, taken by this process.
//!
//! The processes of `rackloom` hold the other seats. Frames between the two seats of this process pass through them as through any neighbour. The
//! first seat puts a line into the second one's memory with a signal, and both sum numbers by an all-reduce.
//!
//! Run it:
//! `rackloom up topologies/ring-4.yaml --vacant n1,n3`, then
//! `cargo run -p rackloom --example take_seats -- ring-4 n1 n3`, then `rackloom down ring-4`

use std::error::Error;
use std::thread;
use std::time::Duration;

use rackloom::fabric::{Condition, Group, GroupOptions, Node, ReduceOperation, RegionOptions, Signal};

/// Timeout for the links to come up.
const TIMEOUT: Duration = Duration::from_secs(20);
const LINE: &[u8; 24] = b"from a process of my own";

/// Takes both seats and lets them communicate. Returns the text that the second one has read, and the sums of both.
pub(crate) fn run(rack: &str, seats: [&str; 2]) -> Result<(String, Vec<f64>), Box<dyn Error>> {
    let [first, second] = [Node::join(rack, seats[0])?, Node::join(rack, seats[1])?];
    first.wait_until_reached(&[second.id()], TIMEOUT)?;
    second.wait_until_reached(&[first.id()], TIMEOUT)?;

    let theirs = second.allocate(RegionOptions::new(1, 0x5eed), 4096)?;
    let mine = first.allocate(RegionOptions::new(1, 0x5eed), 4096)?;
    mine.write(0, LINE)?;
    let signal = Signal::set(theirs.address(1024), 1);
    let put = first.put_with_signal(&mine.slice(..LINE.len() as u64), theirs.address(0), signal);
    thread::scope(|scope| {
        let put = scope.spawn(|| put.wait());
        second.wait_until(&theirs, 1024, Condition::Equal, 1, first.id()).wait()?;
        put.join().map_err(|_| "the putting thread fell over")??;
        Ok::<(), Box<dyn Error>>(())
    })?;
    let mut read = [0; LINE.len()];
    theirs.read(0, &mut read)?;
    Ok((String::from_utf8(read.to_vec())?, add_up(&first, &second)?))
}

/// Performs an all-reduce of both.
fn add_up(first: &Node, second: &Node) -> Result<Vec<f64>, Box<dyn Error>> {
    let members = [first.id(), second.id()];
    thread::scope(|scope| {
        let part = |node: &Node, factor: f64| {
            let group = Group::join(node, GroupOptions::new(9, 0x5eed), &members)?;
            let mut numbers: Vec<f64> = (0..10_000).map(|place| factor * f64::from(place)).collect();
            group.all_reduce(&mut numbers, ReduceOperation::Sum).wait()?;
            Ok::<_, rackloom::fabric::Error>(numbers)
        };
        let other = scope.spawn(move || part(second, 2.0));
        let numbers = part(first, 1.0)?;
        let same = other.join().map_err(|_| "a seat fell over")??;
        if numbers == same { Ok(numbers) } else { Err("the two disagree".into()) }
    })
}

#[allow(dead_code, reason = "a test of the whole system uses this file as a module")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rack, first, second] = arguments.as_slice() else {
        return Err("three arguments: the rack, and the names of two vacant seats".into());
    };
    let (line, numbers) = run(rack, [first, second])?;
    println!("{second} has read {line:?}; number 10 of the sum is {}", numbers[10]);
    Ok(())
}
