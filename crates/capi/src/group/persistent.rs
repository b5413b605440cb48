//! Collectives that are made once and run many times.

use std::sync::Arc;

use rackloom::fabric::{Group, PersistentCollective, Queue};

use super::collective::CollectiveHandle;
use super::membership::GroupHandle;
use super::record::CollectiveRecord;
use super::slices::SliceArguments;
use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles::{self, Exclusive};
use crate::in_progress::InProgress;
use crate::pointers::{Out, versioned};
use crate::queue::QueueHandle;

/// Handle of a collective that runs many times.
pub type PersistentHandle = u64;

/// Makes a collective on slices of regions that runs many times: the arguments are checked, and the schedules made, once. It sends nothing, so members may
/// make such collectives in any order. It keeps node, group and regions.
///
/// Errors: BAD_ARGUMENT for unknown constants, and for a collective on arrays; INVALID if the slices do not fit the group or belong to another node; those of
/// handles for the regions of the slices.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_persistent_create(
    group: GroupHandle,
    collective: *const CollectiveRecord,
    persistent: *mut PersistentHandle,
) -> ErrorCode {
    with_pointers!({
        let persistent = Out::new(persistent)?;
        let group = handles::get::<Arc<Group>>(group)?;
        let record = versioned(collective)?;
        if !record.has_slices() {
            return Err(Failure::argument("a persistent collective has slices of regions, not arrays"));
        }
        let SliceArguments { collective, operation, element, input, output } =
            SliceArguments::read(&group, &record)?;
        let made = group.persistent(collective, operation, element, &input, &output)?;
        persistent.set(handles::add(Arc::new(made))?);
        Ok(())
    })
}

fn get(persistent: PersistentHandle) -> Result<Arc<PersistentCollective>, Failure> {
    handles::get::<Arc<PersistentCollective>>(persistent)
}

/// Runs a persistent collective once, and waits until this member's part is done, as `rackloom_collective_wait`.
///
/// Errors: those of `rackloom_collective_wait`.
/// Threads: any. Collectives of a group run in the order in which they begin.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_persistent_wait(persistent: PersistentHandle) -> ErrorCode {
    guard::call(|| Ok(get(persistent)?.request().wait()?))
}

/// Begins one run of a persistent collective and returns at once, as `rackloom_collective_start`. Wait for the run, and free it, before the next one starts on
/// the same slices: runs in several lanes may overlap.
///
/// Errors: those of `rackloom_collective_wait` that are known at once.
/// Threads: any. Collectives of a group run in the order in which they begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_persistent_start(
    persistent: PersistentHandle,
    started: *mut CollectiveHandle,
) -> ErrorCode {
    with_pointers!({
        let started = Out::new(started)?;
        let run = InProgress::begin(get(persistent)?.request())?;
        started.set(handles::add(Exclusive::new(run))?);
        Ok(())
    })
}

/// Begins one run of a persistent collective and returns at once. Its completion, with `context`, arrives in `queue`, as with `rackloom_collective_submit`.
///
/// Errors: those of `rackloom_collective_wait` that are known at once.
/// Threads: any. Collectives of a group run in the order in which they begin.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_persistent_submit(
    persistent: PersistentHandle,
    queue: QueueHandle,
    context: u64,
) -> ErrorCode {
    guard::call(|| {
        let (persistent, queue) = (get(persistent)?, handles::get::<Arc<Queue>>(queue)?);
        persistent.request().submit(&queue, context)?;
        Ok(())
    })
}

/// Frees a persistent collective. Runs that have begun continue.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_persistent_free(persistent: PersistentHandle) -> ErrorCode {
    guard::call(|| handles::free::<Arc<PersistentCollective>>(persistent))
}
