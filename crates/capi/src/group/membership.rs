//! Membership in groups.

use std::sync::Arc;

use rackloom::fabric::{Group, GroupOptions, Node};

use super::options::GroupSettings;
use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles;
use crate::node::NodeHandle;
use crate::pointers::{self, Out, array, array_mut, versioned};

/// Handle of a membership in a group.
pub type GroupHandle = u64;

/// Joins a group with the options of the program, and writes its handle.
///
/// # Safety
/// `options` is null or valid as its field `size` says, and `group` is null or valid for writes.
unsafe fn join(
    node: NodeHandle,
    options: *const GroupSettings,
    group: *mut GroupHandle,
    make: impl FnOnce(&Node, GroupOptions) -> Result<Group, Failure>,
) -> Result<(), Failure> {
    let group = Out::new(group)?;
    let node = handles::get::<Node>(node)?;
    // SAFETY: needed because the options are memory of C. The caller promises that they are valid.
    let options = unsafe { versioned(options) }?.read()?;
    let handle = handles::add(Arc::new(make(&node, options)?))?;
    // SAFETY: needed because the place is memory of C. The caller promises that it is valid.
    unsafe { group.set(handle) };
    Ok(())
}

/// Joins the group of all GPU nodes of the rack, in the order of the rack file. `rackloom_group_join` describes the rest.
///
/// Errors: those of `rackloom_group_join`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_of_rack(
    node: NodeHandle,
    options: *const GroupSettings,
    group: *mut GroupHandle,
) -> ErrorCode {
    with_pointers!({ join(node, options, group, |node, options| Ok(Group::of_rack(node, options)?)) })
}

/// Joins a group of the `count` nodes in `members`, this node among them. All members join with equal options and an equal list, and call equal collectives
/// in the same order. The first collective waits until all have joined.
///
/// Errors: INVALID if this node is not a member, a member is named twice, the staging is too large, or an adaptive group names an algorithm;
/// NO_SUCH_NODE; those of `rackloom_region_allocate`.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_join(
    node: NodeHandle,
    options: *const GroupSettings,
    members: *const u32,
    count: u64,
    group: *mut GroupHandle,
) -> ErrorCode {
    with_pointers!({
        join(node, options, group, |node, options| {
            let members = array(members, count)?.iter().map(|member| pointers::node(*member));
            let members: Vec<_> = members.collect::<Result<_, _>>()?;
            Ok(Group::join(node, options, &members)?)
        })
    })
}

/// Leaves a group and frees its handle. Members that still need this node get an error: meet in a barrier before.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_group_free(group: GroupHandle) -> ErrorCode {
    guard::call(|| handles::free::<Arc<Group>>(group))
}

/// Writes the number of members, and the rank of this node. Each pointer may be null.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_size(
    group: GroupHandle,
    size: *mut u32,
    rank: *mut u32,
) -> ErrorCode {
    with_pointers!({
        let group = handles::get::<Arc<Group>>(group)?;
        let (size, rank) = (Out::optional(size)?, Out::optional(rank)?);
        if let Some(size) = size {
            size.set(group.members().len() as u32);
        }
        if let Some(rank) = rank {
            rank.set(group.rank() as u32);
        }
        Ok(())
    })
}

/// Writes the numbers of the members' nodes, in rank order, to an array of `capacity` numbers.
///
/// Errors: BUFFER_TOO_SMALL: `rackloom_group_size` has the number of members.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_group_members(
    group: GroupHandle,
    members: *mut u32,
    capacity: u64,
) -> ErrorCode {
    with_pointers!({
        let group = handles::get::<Arc<Group>>(group)?;
        let places = array_mut(members, capacity)?;
        let known = group.members();
        let Some(places) = places.get_mut(..known.len()) else {
            let text = format!("the group has {} members", known.len());
            return Err(Failure::new(ErrorCode::BufferTooSmall, text));
        };
        places.iter_mut().zip(known).for_each(|(place, member)| *place = member.0.into());
        Ok(())
    })
}
