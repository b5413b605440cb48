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

mod arithmetic;
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

use rackloom_collectives::{Collective, ElementType, ReduceOperation};
use rackloom_protocol::{Access, NodeId};

use self::arithmetic::{Arithmetic, MOVED, reduced};
use self::data::{Data, Input, Output};
use self::layout::Layout;
use self::membership::{Membership, RegionName};
pub use self::options::GroupOptions;
use self::request::Call;
pub use self::request::GroupRequest;
use self::schedules::Schedules;
use self::shared::{Common, Inner, Lane, LaneState, Turns};
use super::error::{Error, Invalid};
use super::node::Node;
use crate::fabric::memory::element::{Element, Number, bytes_of, bytes_of_mut};
use crate::fabric::memory::region::{Region, RegionOptions, Slice};

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
        let mut sorted = members.to_vec();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::Invalid(Invalid::MemberTwice));
        }
        let epoch = node.with_core(|core| {
            core.check_gpu_nodes(members)?;
            Ok::<_, Error>(core.member()?.member().config().epoch)
        })?;
        let name = options.region_name(epoch, members);
        let lanes = lanes_of(&options)?;
        let region = allocate(node, &options, &lanes, name)?;
        let deaths =
            node.with_core(|core| members.iter().map(|member| core.table.deaths.of(*member)).collect());
        let membership = Membership {
            members: members.to_vec(),
            regions: vec![name; members.len()],
            rank,
            region,
            terms: options.terms(members),
            deaths,
        };
        Self::new(node, options, lanes, membership)
    }

    /// Joins the group of all GPU nodes of the rack, in the order of the plan. [`Group::join`] describes the rest.
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
            let graph = &core.member()?.member().config().graph;
            let members = &membership.members;
            let servers = node.engine().servers_with_shared_memory(members);
            Ok::<_, Error>(Schedules::new(servers, members.len(), options.algorithm, graph, lanes[0]))
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

    /// Returns this node's rank in the group.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.inner.membership.rank
    }

    fn root(&self, root: NodeId) -> Result<usize, Error> {
        let rank = self.members().iter().position(|member| *member == root);
        rank.ok_or(Error::Invalid(Invalid::RootNotMember))
    }

    fn request<'a>(&self, call: Result<Call<'a>, Error>) -> GroupRequest<'a> {
        GroupRequest::new(&self.inner, call)
    }

    // ---- collectives -----------------------------------------------------------------------------------------------

    /// Completes when every member has called it as often as this one.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn barrier(&self) -> GroupRequest<'static> {
        self.request(Ok(Call::new(Collective::Barrier, MOVED, Data::none())))
    }

    /// Replaces `values` by the element-wise reduction of all members' `values`. All have one length.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn all_reduce<'a, T: Number>(
        &self,
        values: &'a mut [T],
        operation: ReduceOperation,
    ) -> GroupRequest<'a> {
        let data = Data { input_rows: 1, output_rows: 1, ..Data::within(values) };
        self.request(data.check().map(|data| Call::new(Collective::AllReduce, reduced::<T>(operation), data)))
    }

    /// Replaces `values` at the root by the element-wise reduction of all members' `values`. Other members' `values` stay unchanged.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if the root is not a member.
    pub fn reduce<'a, T: Number>(
        &self,
        values: &'a mut [T],
        operation: ReduceOperation,
        root: NodeId,
    ) -> GroupRequest<'a> {
        self.request(self.root(root).and_then(|root| {
            let output_rows = usize::from(root == self.rank());
            let data = Data { input_rows: 1, output_rows, ..Data::within(values) };
            Ok(Call::new(Collective::Reduce { root }, reduced::<T>(operation), data.check()?))
        }))
    }

    /// Replaces `values` by those of the root. All have one length.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if the root is not a member.
    pub fn broadcast<'a, T: Element>(&self, values: &'a mut [T], root: NodeId) -> GroupRequest<'a> {
        self.request(self.root(root).and_then(|root| {
            let input_rows = usize::from(root == self.rank());
            let data = Data { input_rows, output_rows: 1, ..Data::within(values) };
            Ok(Call::new(Collective::Broadcast { root }, MOVED, data.check()?))
        }))
    }

    /// Fills `output` with the inputs of all members in rank order. Each input has the length of `output` divided by the number of members.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn all_gather<'a, T: Element>(&self, input: &'a [T], output: &'a mut [T]) -> GroupRequest<'a> {
        let data = Data::between(input, output, 1, self.members().len(), size_of_val(input));
        self.parts(Collective::AllGather, MOVED, data)
    }

    /// Fills `output` with this member's part of the element-wise reduction of all inputs. An input has one part per member, in rank order,
    /// each as long as `output`.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn reduce_scatter<'a, T: Number>(
        &self,
        input: &'a [T],
        output: &'a mut [T],
        operation: ReduceOperation,
    ) -> GroupRequest<'a> {
        let (members, row_bytes) = (self.members().len(), size_of_val(output));
        let data = Data::between(input, output, members, 1, row_bytes);
        self.parts(Collective::ReduceScatter, reduced::<T>(operation), data)
    }

    /// Fills part *p* of `output` with this member's part of the input of member *p*. Input and output have one part per member, in
    /// rank order. All parts have one length.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`].
    pub fn all_to_all<'a, T: Element>(&self, input: &'a [T], output: &'a mut [T]) -> GroupRequest<'a> {
        let members = self.members().len();
        let row_bytes = input.len() / members * size_of::<T>();
        self.parts(Collective::AllToAll, MOVED, Data::between(input, output, members, members, row_bytes))
    }

    /// Fills `output` at the root with the inputs of all members in rank order. At other members `output` may be empty.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if the root is not a member.
    pub fn gather<'a, T: Element>(
        &self,
        input: &'a [T],
        output: &'a mut [T],
        root: NodeId,
    ) -> GroupRequest<'a> {
        self.request(self.root(root).and_then(|root| {
            let output_rows = if root == self.rank() { self.members().len() } else { 0 };
            let data = Data::between(input, output, 1, output_rows, size_of_val(input));
            Ok(self.call(Collective::Gather { root }, MOVED, data.check()?))
        }))
    }

    /// Fills `output` with this member's part of the root's `input`, which has one part per member, each as long as `output`. At other
    /// members `input` may be empty.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if the root is not a member.
    pub fn scatter<'a, T: Element>(
        &self,
        input: &'a [T],
        output: &'a mut [T],
        root: NodeId,
    ) -> GroupRequest<'a> {
        self.request(self.root(root).and_then(|root| {
            let input_rows = if root == self.rank() { self.members().len() } else { 0 };
            let row_bytes = size_of_val(output);
            let data = Data::between(input, output, input_rows, 1, row_bytes);
            Ok(self.call(Collective::Scatter { root }, MOVED, data.check()?))
        }))
    }

    /// Runs any collective on slices of this node's regions. Such a call can be submitted to a queue: see [`GroupRequest::submit`].
    ///
    /// The root is named by its rank. `input` and `output` have the lengths of the other methods. An all-reduce, a reduce or a broadcast may
    /// have one slice for both. A slice that the member does not use may be empty. The bytes must not be accessed until the call has ended.
    ///
    /// # Errors
    /// Those of [`GroupRequest::wait`]; [`Error::Invalid`] if a slice belongs to another node.
    pub fn on_slices(
        &self,
        collective: Collective,
        operation: ReduceOperation,
        element: ElementType,
        input: &Slice,
        output: &Slice,
    ) -> GroupRequest<'static> {
        let members = self.members().len();
        if collective.root().is_some_and(|root| root >= members) {
            return self.request(Err(Error::Invalid(Invalid::RootNotMember)));
        }
        let is_ours =
            |slice: &Slice| Arc::ptr_eq(slice.region.engine(), self.inner.membership.region.engine());
        if !is_ours(input) || !is_ours(output) {
            return self.request(Err(Error::Invalid(Invalid::OtherNode)));
        }
        // A schedule with one element per part has the number of rows that a member gives and gets.
        let (gives, gets) = (
            collective.input_elements(self.rank(), members, members),
            collective.output_elements(self.rank(), members, members),
        );
        let whole = matches!(
            collective,
            Collective::AllReduce | Collective::Reduce { .. } | Collective::Broadcast { .. }
        );
        let rows = |elements: usize| if whole { elements / members } else { elements };
        let (input_rows, output_rows) = (rows(gives), rows(gets));
        let row = |slice: &Slice, rows: usize| (slice.range.length as usize).checked_div(rows);
        let row_bytes = row(input, input_rows).or_else(|| row(output, output_rows)).unwrap_or(0);
        if !row_bytes.is_multiple_of(element.bytes()) {
            return self.request(Err(Error::Invalid(Invalid::PartialElement)));
        }
        let (input, output) = (Input::Slice(input.clone()), Output::Slice(output.clone()));
        let data = Data { input, output, input_rows, output_rows, row_bytes };
        let arithmetic = Arithmetic { operation, element };
        let whole_rows = if whole { 1 } else { members };
        self.request(data.check().map(|data| Call::new(collective, arithmetic, data).with_rows(whole_rows)))
    }

    /// Returns a request for a collective in which every member has a part.
    fn parts<'a>(&self, collective: Collective, arithmetic: Arithmetic, data: Data<'a>) -> GroupRequest<'a> {
        self.request(data.check().map(|data| self.call(collective, arithmetic, data)))
    }

    fn call<'a>(&self, collective: Collective, arithmetic: Arithmetic, data: Data<'a>) -> Call<'a> {
        Call::new(collective, arithmetic, data).with_rows(self.members().len())
    }
}

/// Returns the rank of a node in a list of members.
fn rank_of(node: NodeId, members: &[NodeId]) -> Result<usize, Error> {
    members.iter().position(|member| *member == node).ok_or(Error::Invalid(Invalid::NotMember))
}

/// Returns the layouts of the lanes of a group's region.
fn lanes_of(options: &GroupOptions) -> Result<Vec<Layout>, Error> {
    if !(1..=GroupOptions::LANES_MAX).contains(&options.lanes) {
        return Err(Error::Invalid(Invalid::LaneCount));
    }
    Layout::of_lanes(options.staging_bytes, options.lanes).ok_or(Error::Invalid(Invalid::StagingTooLarge))
}

/// Allocates a group's region, which has these lanes.
fn allocate(
    node: &Node,
    options: &GroupOptions,
    lanes: &[Layout],
    name: RegionName,
) -> Result<Region, Error> {
    let total_bytes = lanes.last().map_or(0, |last| last.end());
    let access = Access { read: false, write: true, atomic: true };
    let region = RegionOptions { region: name.region, key: name.key, access };
    match options.device {
        Some(device) => node.allocate_on_device(region, device, total_bytes),
        None => node.allocate(region, total_bytes),
    }
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
        };
        Self { layout, state: Mutex::new(state) }
    }
}

impl<'a> Data<'a> {
    fn within<T: Element>(values: &'a mut [T]) -> Self {
        let row_bytes = size_of_val(values);
        let (input, output) = (Input::InPlace, Output::Bytes(bytes_of_mut(values)));
        Self { input, output, input_rows: 0, output_rows: 0, row_bytes }
    }

    fn between<T: Element>(
        input: &'a [T],
        output: &'a mut [T],
        input_rows: usize,
        output_rows: usize,
        row_bytes: usize,
    ) -> Self {
        let (input, output) = (Input::Bytes(bytes_of(input)), Output::Bytes(bytes_of_mut(output)));
        Self { input, output, input_rows, output_rows, row_bytes }
    }
}
