//! Snapshots of a collective job in a directory: seats write them, the supervisor chooses a set, seats restore it.
//!
//! There is one file per rank and number, such as `rank3.12.snapshot`: its identity, the progress of the
//! rank, the bytes of its buffers, and a checksum (`docs/decisions/checkpoints.md`). A file gets its name
//! when it is complete and on the disk. Two files of each rank are kept, because a rack that dies while it
//! saves has the newest one of some ranks only. A set is restored only if all ranks have it.

mod choose;
mod file;
mod read;
mod write;

use std::path::Path;

use rackloom_control::source::SnapshotOrders;
use rackloom_jobs::collective::snapshot::Checkpoints;
use rackloom_plan::{JobKind, Plan};
use rackloom_protocol::NodeId;

use self::file::Identity;
use self::read::FileSaved;
use self::write::FileSink;
use super::options::CheckpointOptions;
use crate::outcome::failure::Failure;

/// Chooses the set of snapshots to restore and makes the directory for new ones. Checks every file of the
/// set: no process starts with a snapshot that is damaged or belongs to another run.
///
/// # Errors
/// The job has no snapshots, no set can be restored, or the directory cannot be made.
pub fn prepare(options: &CheckpointOptions, plan: &Plan) -> Result<SnapshotOrders, Failure> {
    let CheckpointOptions { checkpoint, every, restore } = options;
    if checkpoint.is_none() && restore.is_none() {
        return Ok(SnapshotOrders::default());
    }
    if !matches!(plan.job.kind, JobKind::Collective(_)) {
        let what = format!("job {} has no checkpoints", plan.job.kind.name());
        return Err(
            Failure::bad_input(what).hint("use --job collective, or leave --checkpoint and --restore out")
        );
    }
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|error| Failure::bad_input(error.to_string()).at_path(path))
    };
    let restore = restore.as_deref().map(absolute).transpose()?;
    let restore = restore
        .map(|directory| choose::newest(&directory, plan).map(|chosen| (directory, chosen)))
        .transpose()?;
    let save = checkpoint.as_deref().map(absolute).transpose()?;
    if let Some(directory) = &save {
        std::fs::create_dir_all(directory).map_err(|error| {
            Failure::bad_input(format!("cannot make the directory of snapshots: {error}"))
                .at_path(directory)
                .hint("name an existing directory, or one whose parent can be written")
        })?;
    }
    Ok(SnapshotOrders { save: save.map(|directory| (directory, every.unwrap_or(1))), restore })
}

/// Opens the snapshots of one rank.
pub(crate) fn of_rank(orders: &SnapshotOrders, plan: &Plan, rank: NodeId) -> Result<Checkpoints, String> {
    let chosen = orders.restore.as_ref().map(|(_, chosen)| *chosen);
    let resume = match &orders.restore {
        Some((directory, chosen)) => {
            let saved =
                FileSaved::open(directory, &Identity::of(plan, rank.index(), chosen.epoch), chosen.number)?;
            Some(Box::new(saved) as _)
        }
        None => None,
    };
    let identity = Identity::of(plan, rank.index(), chosen.map_or(1, |chosen| chosen.epoch + 1));
    let save = orders.save.as_ref().map(|(directory, every)| {
        let before = chosen.map_or(0, |chosen| chosen.number);
        (*every, Box::new(FileSink::new(directory.clone(), identity, before)) as _)
    });
    Ok(Checkpoints { save, resume })
}
