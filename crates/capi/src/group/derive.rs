//! Groups that are made from another group.

use std::sync::Arc;

use rackloom::fabric::Group;

use super::membership::GroupHandle;
use crate::codes::{ErrorCode, Failure};
use crate::guard::with_pointers;
use crate::handles;
use crate::pointers::Out;

/// Color of a member that joins no part.
pub const RACKLOOM_NO_COLOR: u32 = u32::MAX;

/// Writes the handle of a part, or 0 if this member joins none.
///
/// # Safety
/// The place is valid for writes.
unsafe fn put_part(place: Out<GroupHandle>, part: Option<Group>) -> Result<(), Failure> {
    let handle = part.map_or(Ok(0), |part| handles::add(Arc::new(part)))?;
    // SAFETY: needed because the place is memory of C. The caller promises that it is valid.
    unsafe { place.set(handle) };
    Ok(())
}

/// Makes a group of the members that give the same color, in ascending `order` and then by rank in `group`. `part` gets its handle, or 0 if `color` is
/// `RACKLOOM_NO_COLOR`. The part has the options of `group`; its region has a number that is free at each member, and a random key. All members call it, in
/// the same order as collectives, and it waits for the others.
///
/// Errors: those of `rackloom_collective_wait` and of `rackloom_region_allocate`.
/// Threads: any. Collectives of a group run in the order in which they begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_split(
    group: GroupHandle,
    color: u32,
    order: u32,
    part: *mut GroupHandle,
) -> ErrorCode {
    with_pointers!({
        let part = Out::new(part)?;
        let color = (color != RACKLOOM_NO_COLOR).then_some(color);
        put_part(part, handles::get::<Arc<Group>>(group)?.split(color, order)?)
    })
}

/// Makes a group of the members of `group` in the same order, whose collectives are independent of those of `group`. All members call it, as
/// `rackloom_group_split`.
///
/// Errors: those of `rackloom_group_split`.
/// Threads: any. Collectives of a group run in the order in which they begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_duplicate(
    group: GroupHandle,
    duplicate: *mut GroupHandle,
) -> ErrorCode {
    with_pointers!({
        let duplicate = Out::new(duplicate)?;
        put_part(duplicate, Some(handles::get::<Arc<Group>>(group)?.duplicate()?))
    })
}

/// Makes one group for each server of the rack, of the members in that server. All members call it, as `rackloom_group_split`.
///
/// Errors: those of `rackloom_group_split`.
/// Threads: any. Collectives of a group run in the order in which they begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_split_by_server(
    group: GroupHandle,
    part: *mut GroupHandle,
) -> ErrorCode {
    with_pointers!({
        let part = Out::new(part)?;
        put_part(part, Some(handles::get::<Arc<Group>>(group)?.split_by_server()?))
    })
}

/// Makes a group of the members that have a link in `plane`. `part` gets 0 at the others. All members call it, as `rackloom_group_split`.
///
/// Errors: those of `rackloom_group_split`; BAD_ARGUMENT for a plane above 255.
/// Threads: any. Collectives of a group run in the order in which they begin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_on_plane(
    group: GroupHandle,
    plane: u32,
    part: *mut GroupHandle,
) -> ErrorCode {
    with_pointers!({
        let part = Out::new(part)?;
        let group = handles::get::<Arc<Group>>(group)?;
        let plane = u8::try_from(plane).map_err(|_| Failure::argument("a plane has a number up to 255"))?;
        put_part(part, group.on_plane(plane)?)
    })
}
