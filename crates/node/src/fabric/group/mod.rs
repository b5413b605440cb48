//! Groups of nodes that run collectives together: barriers and exchanges of arrays.
//!
//! A collective is a schedule of `rackloom-collectives`. It runs as puts with signals into a region that every member has under the same number.
//! The caller's arrays are copied into that region and out of it, in pieces if necessary.
//!
//! A member's first collective begins with a join check and a barrier. Later, a member that waits queries the awaited member at intervals, and
//! at once after a death, to check that it is in the same call. A member that gives up notifies all others. So a member that never
//! joins, gives up, dies or calls a different collective ends the collective with an error on all members that need it, and breaks the group for
//! all members that can be reached.
//!
//! The algorithms are not here (`rackloom-collectives`). A member that is alive, has joined, and has not called the collective yet is
//! late. The others wait for it without a limit.

mod adaptations;
mod adapting;
mod arithmetic;
mod collectives;
mod data;
mod derive;
mod join_check;
mod layout;
mod membership;
mod options;
mod peer_check;
mod query;
mod request;
mod running;
mod schedules;
mod shared;
mod wake_timer;
mod watch;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use rackloom_protocol::{Access, NodeId};

use self::adaptations::Adaptations;
pub use self::adaptations::Rechoice;
pub use self::collectives::{PersistentCollective, Reducer, Reduction};
use self::layout::Layout;
use self::membership::{GroupMemory, Membership, RegionName};
pub use self::options::GroupOptions;
pub use self::request::GroupRequest;
use self::schedules::Schedules;
use self::shared::{Common, Inner, Lane, LaneState, Turns};
use super::error::{Error, Invalid};
use super::node::Node;
use crate::fabric::memory::region::RegionOptions;

/// Membership of this node in a group. All members join with equal options and an equal list of members, and call equal collectives with equal
/// sizes in the same order.
///
/// `Send` and `Sync`. Several collectives may be in flight: [`GroupOptions::lanes`] of them run at the same time, and further ones wait for
/// their turn. All members begin them in the same order. A group in which a collective has failed stays broken, on every member.
///
/// A collective of an array of the caller advances only while it is waited for or awaited. So a thread waits for its collectives in the
/// order in which they began. A collective of slices that was started or submitted ([`GroupRequest::start`]) advances in the background.
///
/// ```
/// # use rackloom::fabric::{Fabric, Group, GroupOptions, Node, ReduceOperation};
/// # let plan = rackloom::fabric::Plan::parse("name: two\nshape: {ring: {nodes: 2}}\n", "example")?;
/// # let fabric = Fabric::local(&plan)?;
/// let members: Vec<_> = fabric.nodes().iter().map(Node::id).collect();
/// std::thread::scope(|scope| {
///     for node in fabric.nodes() {
///         let members = &members;
///         scope.spawn(move || {
///             let group = Group::join(node, GroupOptions::new(7, 0x5eed), members).unwrap();
///             let mut numbers = [1.5_f32, f32::from(node.id().0)];
///             group.all_reduce(&mut numbers, ReduceOperation::Sum).wait().unwrap();
///             assert_eq!(numbers, [3.0, 1.0]);
///         });
///     }
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Group {
    inner: Arc<Inner>,
    /// Keeps the node while it has groups.
    node: Node,
}

impl Group {
    /// Joins a group. Members may join at different times. The first collective waits until all have joined, at most
    /// [`GroupOptions::join_timeout`], and then until all have called it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if this node is not a member, a member is named twice, or the options are out of bounds;
    /// [`Error::NoSuchNode`] for a member that the plan does not have; those of [`Node::allocate`].
    pub fn join(node: &Node, options: GroupOptions, members: &[NodeId]) -> Result<Self, Error> {
        let rank = rank_of(node.id(), members)?;
        if options.adapts && options.algorithm.is_some() {
            return Err(Error::Invalid(Invalid::AdaptsNamed));
        }
        let mut sorted = members.to_vec();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::Invalid(Invalid::MemberTwice));
        }
        let epoch = node.with_core(|core| {
            core.check_endpoints(members)?;
            Ok::<_, Error>(core.member()?.member().config().epoch)
        })?;
        let name = options.region_name(epoch, members);
        let lanes = lanes_of(&options)?;
        let memory = allocate(node, &options, &lanes, name)?;
        let deaths =
            node.with_core(|core| members.iter().map(|member| core.table.deaths.of(*member)).collect());
        let membership = Membership {
            members: members.to_vec(),
            regions: vec![name; members.len()],
            rank,
            memory,
            terms: options.terms(members),
            deaths,
        };
        Self::new(node, options, lanes, membership)
    }

    /// Joins the group of all GPU nodes of the rack, in the order of the plan. Processes of GPU nodes ([`Node::join_process`]) are no members, and
    /// [`Group::join`] makes a group of them. It describes the rest.
    ///
    /// # Errors
    /// Those of [`Group::join`].
    pub fn of_rack(node: &Node, options: GroupOptions) -> Result<Self, Error> {
        let members = node.with_core(|core| {
            let count = core.member()?.member().config().graph.endpoint_count();
            Ok::<_, Error>((0..count).map(|index| NodeId(index as u16)).collect::<Vec<_>>())
        })?;
        Self::join(node, options, &members)
    }

    fn new(
        node: &Node,
        options: GroupOptions,
        lanes: Vec<Layout>,
        membership: Membership,
    ) -> Result<Self, Error> {
        let schedules = node.with_core(|core| {
            let config = core.member()?.member().config();
            let members = &membership.members;
            let servers = node.engine().servers_with_shared_memory(members);
            Ok::<_, Error>(Schedules::new(servers, members.len(), options.algorithm, config, lanes[0]))
        })?;
        let inner = Inner {
            options,
            membership,
            lanes: lanes.into_iter().map(Lane::new).collect(),
            schedules: Mutex::new(schedules),
            common: Mutex::new(Common::default()),
            deaths_seen: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner), node: node.clone() })
    }

    /// Returns the members, in rank order.
    #[must_use]
    pub fn members(&self) -> &[NodeId] {
        &self.inner.membership.members
    }

    /// Returns the last trials of algorithms of a group that re-chooses ([`GroupOptions::adaptive`]), at most 64, in the order of their ends.
    #[must_use]
    pub fn rechoices(&self) -> Vec<Rechoice> {
        self.inner.common().rechoices.iter().cloned().collect()
    }

    /// Returns this node's rank in the group.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.inner.membership.rank
    }
}

/// Returns the rank of a node in a list of members.
fn rank_of(node: NodeId, members: &[NodeId]) -> Result<usize, Error> {
    members.iter().position(|member| *member == node).ok_or(Error::Invalid(Invalid::NotMember))
}

/// Returns the layouts of the lanes of a group's regions.
fn lanes_of(options: &GroupOptions) -> Result<Vec<Layout>, Error> {
    if !(1..=GroupOptions::LANES_MAX).contains(&options.lanes) {
        return Err(Error::Invalid(Invalid::LaneCount));
    }
    Layout::of_lanes(options.staging_bytes, options.lanes).ok_or(Error::Invalid(Invalid::StagingTooLarge))
}

/// Allocates a group's regions, which have these lanes. The one with words is the last: who finds it finds the other one as well.
fn allocate(
    node: &Node,
    options: &GroupOptions,
    lanes: &[Layout],
    name: RegionName,
) -> Result<GroupMemory, Error> {
    let access = Access { read: false, write: true, atomic: true };
    let region = |name: RegionName| RegionOptions { region: name.region, key: name.key, access };
    let (arrays, bytes) = (region(name.of_arrays()), lanes.last().map_or(0, |last| last.arrays_end()));
    let arrays = match options.device {
        Some(device) => node.allocate_on_device(arrays, device, bytes)?,
        None => node.allocate(arrays, bytes)?,
    };
    let words = node.allocate(region(name), lanes.last().map_or(0, |last| last.words_end()))?;
    Ok(GroupMemory { words, arrays })
}

impl Lane {
    fn new(layout: Layout) -> Self {
        let state = LaneState {
            blocks: None,
            calls: 0,
            runs: 0,
            barriers: 0,
            must_meet: true,
            turns: Turns::default(),
            adaptations: Adaptations::default(),
        };
        Self { layout, state: Mutex::new(state) }
    }
}
