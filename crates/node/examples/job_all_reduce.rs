//! Work of one rank of a job on a standing rack: an all-reduce with the other ranks.
//!
//! Each rank contributes its rank plus one, and each prints the sum. The rack starts this program once per node.
//!
//! Run it:
//! `cargo build -p rackloom --example job_all_reduce`, then
//! `rackloom up topologies/star-4.yaml --vacant n0,n1,n2,n3`, then
//! `rackloom job submit --count 3 --wait -- target/debug/examples/job_all_reduce`, then `rackloom down`

use std::error::Error;
use std::time::Duration;

use rackloom::fabric::{Group, GroupOptions, JobSeat, ReduceOperation};

/// Timeout for the links to come up, and for leaving.
const TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let seat = JobSeat::from_environment()?.ok_or("start this program with `rackloom job submit`")?;
    let node = seat.join(TIMEOUT)?;
    let group = Group::join(&node, GroupOptions::new(9, 0x5eed).join_timeout(TIMEOUT), seat.nodes())?;
    let mut values = [seat.rank() as i64 + 1; 1000];
    group.all_reduce(&mut values, ReduceOperation::Sum).wait()?;
    println!("{} of {} ranks: the sum is {}", seat.seat(), seat.nodes().len(), values[0]);
    // No rank leaves while others still need it.
    group.barrier().wait()?;
    drop(group);
    node.leave_in_order(TIMEOUT)?;
    Ok(())
}
