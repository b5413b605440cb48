//! Choice of the snapshots to restore: the newest complete set of one run.
//!
//! A rack that died while it saved has the newest number at some ranks only. The number before it is complete
//! then. A damaged file is an error that names the file. Without that file the set before it is chosen.

use std::collections::BTreeMap;
use std::path::Path;

use rackloom_control::source::SnapshotSet;
use rackloom_plan::Plan;

use super::file::{Identity, name, parse};
use super::read::inspect;
use crate::outcome::failure::Failure;

/// Returns the newest set in a directory that this plan can restore.
pub(super) fn newest(directory: &Path, plan: &Plan) -> Result<SnapshotSet, Failure> {
    let ranks = plan.endpoint_count();
    let numbers = numbers_in(directory)?;
    for (number, found) in numbers.iter().rev() {
        if *found >= ranks
            && let Some(epoch) = common_epoch(directory, plan, *number)?
        {
            return Ok(SnapshotSet { number: *number, epoch });
        }
    }
    let what = match numbers.last_key_value() {
        None => "there is no snapshot here".to_owned(),
        Some((number, found)) => format!(
            "no set of snapshots here is complete: {found} of {ranks} ranks have number {number}, the newest"
        ),
    };
    Err(Failure::bad_input(what)
        .at_path(directory)
        .hint("name the directory of `run --checkpoint`; without --restore the job begins anew"))
}

/// Returns the number of ranks that have each snapshot, by number of the snapshot.
fn numbers_in(directory: &Path) -> Result<BTreeMap<u64, usize>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::bad_input(format!("cannot list the directory of snapshots: {error}"))
            .at_path(directory)
            .hint("name the directory of `run --checkpoint`")
    };
    let mut numbers = BTreeMap::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if let Some((_, number)) = entry.file_name().to_str().and_then(parse) {
            *numbers.entry(number).or_default() += 1;
        }
    }
    Ok(numbers)
}

/// Returns the epoch of all ranks' snapshots of this number; `None` if they have several, or one is missing.
fn common_epoch(directory: &Path, plan: &Plan, number: u64) -> Result<Option<u64>, Failure> {
    let mut epochs = Vec::new();
    for rank in 0..plan.endpoint_count() {
        let path = directory.join(name(rank, number));
        if !path.exists() {
            return Ok(None);
        }
        let header = inspect(&path).map_err(|reason| {
            Failure::bad_input(format!("this snapshot cannot be used: {reason}"))
                .at_path(&path)
                .hint("remove it to restore the set before it, if there is one")
        })?;
        if let Some(difference) = Identity::of(plan, rank, 0).difference(&header.identity) {
            return Err(Failure::bad_input(format!("this snapshot is of another run: {difference}"))
                .at_path(&path)
                .hint("use the same rack file, job, wire and seed as when it was written"));
        }
        if header.head.progress.runs != number {
            let what = format!("the header of this snapshot says number {}", header.head.progress.runs);
            return Err(Failure::bad_input(what).at_path(&path).hint("a renamed file cannot be restored"));
        }
        epochs.push(header.identity.epoch);
    }
    epochs.dedup();
    Ok(if let [epoch] = epochs[..] { Some(epoch) } else { None })
}
