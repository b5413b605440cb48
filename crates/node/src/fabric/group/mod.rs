//! Nodes that do something together: wait for each other, and exchange arrays.
//!
//! A collective is a schedule of `rackloom-collectives`, carried out by puts with signals into a region that every member has
//! under the same name. The caller's arrays are copied into that region and out of it; what does not fit goes in pieces.
//! A member's first collective begins with a roll call and a barrier. Later, who waits asks the one that it waits for now and then
//! whether it is in the same call, and at once if a member has died; and whoever gives up tells all others. So a member that never
//! joins, gives up, dies or calls something else ends the collective with an error on everybody who needs it, and breaks the group for
//! all who can be reached.
//!
//! Not here: which algorithms there are (`rackloom-collectives`). A member that lives, has joined, and has not called the
//! collective yet is late; it is waited for as long as that takes.

mod combined;
mod data;
mod doubt;
mod ground;
mod inquiry;
mod reminder;
mod request;
mod roll_call;
mod running;
mod schedules;
mod watch;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rackloom_collectives::execute::Blocks;
use rackloom_collectives::{Algorithm, Collective, ElementType, ReduceOperation};
use rackloom_protocol::{Access, Key, NodeId, RegionId};

use self::data::{Data, Input, Output};
use self::ground::Ground;
use self::inquiry::{Broken, hash};
use self::request::Call;
pub use self::request::GroupRequest;
use self::running::Place;
use self::schedules::Schedules;
use super::element::{Element, Number, bytes_of, bytes_of_mut};
use super::error::Error;
use super::node::Node;
use super::region::{RegionOptions, Slice};
use crate::memory::DeviceChoice;

/// Bytes of one collective at a time, unless chosen.
const STAGING_BYTES: u64 = 4 << 20;
/// How long members may be late to join, unless chosen.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the members of a group agree on beforehand.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupOptions {
    /// Name of the group's region, which no member has yet.
    pub region: RegionId,
    /// Its key.
    pub key: Key,
    /// Bytes that a collective may give, and that it may get together with its working space, in one piece. The region is
    /// three times as large; pages that are never used take no memory. 4 MiB unless changed.
    pub staging_bytes: u64,
    /// Used for the collectives that it can do; for the others, and if `None`, the one with the least estimated time is
    /// taken. It decides the order of reduction, and with it the last bits of floating-point sums.
    pub algorithm: Option<Algorithm>,
    /// How long this member's first collective waits for others that have not joined. Members may choose differently. Ten
    /// seconds unless changed.
    pub patience: Duration,
    /// Where the group's region lies, if not in the memory of the host: on this device reductions are kernels, and slices of regions
    /// on it are copied by the device. Members may choose differently.
    pub device: Option<DeviceChoice>,
}

impl GroupOptions {
    /// A group whose region has this name and this key.
    #[must_use]
    pub const fn new(region: u32, key: u64) -> Self {
        Self {
            region: RegionId(region),
            key: Key(key),
            staging_bytes: STAGING_BYTES,
            algorithm: None,
            patience: PATIENCE,
            device: None,
        }
    }

    /// The same with this much staging.
    #[must_use]
    pub const fn staging(mut self, bytes: u64) -> Self {
        self.staging_bytes = bytes;
        self
    }

    /// The same with this algorithm.
    #[must_use]
    pub const fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = Some(algorithm);
        self
    }

    /// The same with this much patience for members that are late to join.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The same with its region on this device.
    #[must_use]
    pub const fn device(mut self, device: DeviceChoice) -> Self {
        self.device = Some(device);
        self
    }

    /// What members must not see differently, as a number. The region and its key show by themselves.
    fn terms(&self, members: &[NodeId]) -> u32 {
        let algorithm = self.algorithm.map_or_else(String::new, |algorithm| algorithm.to_string());
        let members = members.iter().flat_map(|member| member.0.to_le_bytes());
        let options = self.staging_bytes.to_le_bytes().into_iter().chain(algorithm.into_bytes());
        hash(0x811c_9dc5, members.chain(options))
    }
}

/// This node's membership in a group. All members make theirs with the same options and the same list of members, and call
/// the same collectives with the same sizes in the same order.
///
/// `Send` and `Sync`, but a group does one collective at a time: a second one that is begun before the first has ended is
/// refused. A group in which a collective has failed is broken for good, on every member.
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
    /// The node stays as long as its groups.
    _node: Node,
}

/// What calls share.
#[derive(Debug)]
struct Inner {
    place: Place,
    state: Mutex<State>,
    patience_ns: u64,
    /// All deaths that have been looked through.
    deaths_seen: AtomicU64,
}

/// What changes from call to call.
#[derive(Debug)]
struct State {
    schedules: Schedules,
    blocks: Blocks,
    /// Calls so far.
    calls: u32,
    /// All others have joined.
    is_complete: bool,
    /// Runs with data so far.
    runs: u32,
    barriers: u32,
    /// There was no run, or the last one does not prove that all have left the one before it.
    must_meet: bool,
    is_busy: bool,
    broken: Option<Broken>,
    /// Ends when somebody breaks the group.
    departure: Option<rackloom_protocol::OperationId>,
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while the lock was held would be a bug here; what the others get is an error at worst.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Group {
    /// Join a group. Members may join at different times: the first collective waits for those that are late, as long as
    /// [`GroupOptions::patience`] says, and until all have called it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if this node is not among the members, one is named twice, or the staging is too large;
    /// [`Error::NoSuchNode`] for a member that the plan does not have; else as [`Node::allocate`].
    pub fn join(node: &Node, options: GroupOptions, members: &[NodeId]) -> Result<Self, Error> {
        let rank = members.iter().position(|member| *member == node.id());
        let rank = rank.ok_or(Error::Invalid("this node is not a member of the group"))?;
        let mut sorted = members.to_vec();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::Invalid("a node is named twice in the group"));
        }
        node.with_core(|core| core.check_gpu_nodes(members))?;
        let ground = Ground::new(options.staging_bytes);
        let ground = ground.ok_or(Error::Invalid("the staging is too large; hint: GroupOptions::staging"))?;
        let access = Access { read: false, write: true, atomic: true };
        let region = RegionOptions { region: options.region, key: options.key, access };
        let region = match options.device {
            Some(device) => node.allocate_on_device(region, device, ground.total_bytes())?,
            None => node.allocate(region, ground.total_bytes())?,
        };
        let (schedules, deaths, seen) = node.with_core(|core| {
            let graph = &core.member()?.member().config().graph;
            let schedules = Schedules::new(members.len(), options.algorithm, graph, ground);
            let deaths = &core.table.deaths;
            let counts = members.iter().map(|member| deaths.of(*member)).collect();
            Ok::<_, Error>((schedules, counts, deaths.total()))
        })?;
        let state = State {
            schedules,
            blocks: Blocks::new(MOVED.operation, MOVED.element),
            calls: 0,
            is_complete: false,
            runs: 0,
            barriers: 0,
            must_meet: true,
            is_busy: false,
            broken: None,
            departure: None,
        };
        let terms = options.terms(members);
        let place = Place { members: members.to_vec(), rank, region, ground, terms, deaths };
        let patience_ns = u64::try_from(options.patience.as_nanos()).unwrap_or(u64::MAX);
        let inner = Inner { place, state: Mutex::new(state), patience_ns, deaths_seen: AtomicU64::new(seen) };
        Ok(Self { inner: Arc::new(inner), _node: node.clone() })
    }

    /// The members, in order.
    #[must_use]
    pub fn members(&self) -> &[NodeId] {
        &self.inner.place.members
    }

    /// This node's place among the members.
    #[must_use]
    pub fn place(&self) -> usize {
        self.inner.place.rank
    }

    fn root(&self, root: NodeId) -> Result<usize, Error> {
        let place = self.members().iter().position(|member| *member == root);
        place.ok_or(Error::Invalid("the root is not a member of the group"))
    }

    fn request<'a>(&self, call: Result<Call<'a>, Error>) -> GroupRequest<'a> {
        GroupRequest::new(&self.inner, call)
    }

    // ---- collectives -----------------------------------------------------------------------------------------------

    /// Ends when every member has called it as often as this one.
    ///
    /// # Errors
    /// As for [`GroupRequest::wait`].
    pub fn barrier(&self) -> GroupRequest<'static> {
        self.request(Ok(Call::new(Collective::Barrier, MOVED, Data::none())))
    }

    /// `values` becomes the reduction of everybody's `values`, element by element. All are of one length.
    ///
    /// # Errors
    /// As for [`GroupRequest::wait`].
    pub fn all_reduce<'a, T: Number>(
        &self,
        values: &'a mut [T],
        operation: ReduceOperation,
    ) -> GroupRequest<'a> {
        let data = Data { input_rows: 1, output_rows: 1, ..Data::within(values) };
        self.request(data.check().map(|data| Call::new(Collective::AllReduce, reduced::<T>(operation), data)))
    }

    /// At the root, `values` becomes the reduction of everybody's; elsewhere it stays as it is.
    ///
    /// # Errors
    /// As for [`GroupRequest::wait`]; [`Error::Invalid`] if the root is not a member.
    pub fn reduce<'a, T: Number>(
        &self,
        values: &'a mut [T],
        operation: ReduceOperation,
        root: NodeId,
    ) -> GroupRequest<'a> {
        self.request(self.root(root).and_then(|root| {
            let output_rows = usize::from(root == self.place());
            let data = Data { input_rows: 1, output_rows, ..Data::within(values) };
            Ok(Call::new(Collective::Reduce { root }, reduced::<T>(operation), data.check()?))
        }))
    }

    /// `values` becomes that of the root. All are of one length.
    ///
    /// # Errors
    /// As for [`GroupRequest::wait`]; [`Error::Invalid`] if the root is not a member.
    pub fn broadcast<'a, T: Element>(&self, values: &'a mut [T], root: NodeId) -> GroupRequest<'a> {
        self.request(self.root(root).and_then(|root| {
            let input_rows = usize::from(root == self.place());
            let data = Data { input_rows, output_rows: 1, ..Data::within(values) };
            Ok(Call::new(Collective::Broadcast { root }, MOVED, data.check()?))
        }))
    }

    /// `output` becomes everybody's `input`, one after another in order of place. Inputs are of one length, which is that
    /// of `output` divided by the number of members.
    ///
    /// # Errors
    /// As for [`GroupRequest::wait`].
    pub fn all_gather<'a, T: Element>(&self, input: &'a [T], output: &'a mut [T]) -> GroupRequest<'a> {
        let rows = (1, self.members().len());
        self.parts(Collective::AllGather, MOVED, Data::between(input, output, rows, size_of_val(input)))
    }

    /// `output` becomes this member's part of the reduction of everybody's `input`. An input has one part per member, in
    /// order of place, each as long as `output`.
    ///
    /// # Errors
    /// As for [`GroupRequest::wait`].
    pub fn reduce_scatter<'a, T: Number>(
        &self,
        input: &'a [T],
        output: &'a mut [T],
        operation: ReduceOperation,
    ) -> GroupRequest<'a> {
        let (rows, row_bytes) = ((self.members().len(), 1), size_of_val(output));
        let data = Data::between(input, output, rows, row_bytes);
        self.parts(Collective::ReduceScatter, reduced::<T>(operation), data)
    }

    /// Part *p* of `output` becomes this member's part of the input of member *p*. Input and output have one part per
    /// member, in order of place, all of one length.
    ///
    /// # Errors
    /// As for [`GroupRequest::wait`].
    pub fn all_to_all<'a, T: Element>(&self, input: &'a [T], output: &'a mut [T]) -> GroupRequest<'a> {
        let members = self.members().len();
        let row_bytes = input.len() / members * size_of::<T>();
        self.parts(Collective::AllToAll, MOVED, Data::between(input, output, (members, members), row_bytes))
    }

    /// At the root, `output` becomes everybody's `input`, one after another; elsewhere it may be empty.
    ///
    /// # Errors
    /// As for [`GroupRequest::wait`]; [`Error::Invalid`] if the root is not a member.
    pub fn gather<'a, T: Element>(
        &self,
        input: &'a [T],
        output: &'a mut [T],
        root: NodeId,
    ) -> GroupRequest<'a> {
        self.request(self.root(root).and_then(|root| {
            let output_rows = if root == self.place() { self.members().len() } else { 0 };
            let data = Data::between(input, output, (1, output_rows), size_of_val(input));
            Ok(self.call(Collective::Gather { root }, MOVED, data.check()?))
        }))
    }

    /// `output` becomes this member's part of the root's `input`, which has one part per member, each as long as `output`;
    /// elsewhere `input` may be empty.
    ///
    /// # Errors
    /// As for [`GroupRequest::wait`]; [`Error::Invalid`] if the root is not a member.
    pub fn scatter<'a, T: Element>(
        &self,
        input: &'a [T],
        output: &'a mut [T],
        root: NodeId,
    ) -> GroupRequest<'a> {
        self.request(self.root(root).and_then(|root| {
            let input_rows = if root == self.place() { self.members().len() } else { 0 };
            let row_bytes = size_of_val(output);
            let data = Data::between(input, output, (input_rows, 1), row_bytes);
            Ok(self.call(Collective::Scatter { root }, MOVED, data.check()?))
        }))
    }

    /// Any collective on slices of this node's regions, which is what a queue can wait for: see [`GroupRequest::submit`].
    /// A root is named by its place among the members. `input` and `output` are as long as the other methods ask for, an
    /// all-reduce, a reduce or a broadcast may have one slice for both, and what a member neither gives nor gets may be empty.
    /// Neither may be touched until the end.
    ///
    /// # Errors
    /// As for [`GroupRequest::wait`]; [`Error::Invalid`] if a slice belongs to another node.
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
            return self.request(Err(Error::Invalid("the root is not a member of the group")));
        }
        let is_ours = |slice: &Slice| Arc::ptr_eq(slice.region.engine(), self.inner.place.region.engine());
        if !is_ours(input) || !is_ours(output) {
            return self.request(Err(Error::Invalid("the region belongs to another node")));
        }
        // One element of each part tells how many rows a member gives and gets.
        let (gives, gets) = (
            collective.input_elements(self.place(), members, members),
            collective.output_elements(self.place(), members, members),
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
            return self.request(Err(Error::Invalid("a part is no whole number of elements")));
        }
        let (input, output) = (Input::Slice(input.clone()), Output::Slice(output.clone()));
        let data = Data { input, output, input_rows, output_rows, row_bytes };
        let arithmetic = Arithmetic { operation, element };
        let whole_rows = if whole { 1 } else { members };
        self.request(data.check().map(|data| Call::new(collective, arithmetic, data).with_rows(whole_rows)))
    }

    /// A collective in which every member has a part.
    fn parts<'a>(&self, collective: Collective, arithmetic: Arithmetic, data: Data<'a>) -> GroupRequest<'a> {
        self.request(data.check().map(|data| self.call(collective, arithmetic, data)))
    }

    fn call<'a>(&self, collective: Collective, arithmetic: Arithmetic, data: Data<'a>) -> Call<'a> {
        Call::new(collective, arithmetic, data).with_rows(self.members().len())
    }
}

/// What is to be done with values.
#[derive(Clone, Copy, Debug)]
struct Arithmetic {
    operation: ReduceOperation,
    element: ElementType,
}

/// Bytes that are moved and not reduced.
const MOVED: Arithmetic = Arithmetic { operation: ReduceOperation::Sum, element: ElementType::U8 };

const fn reduced<T: Number>(operation: ReduceOperation) -> Arithmetic {
    Arithmetic { operation, element: T::TYPE }
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
        (input_rows, output_rows): (usize, usize),
        row_bytes: usize,
    ) -> Self {
        let (input, output) = (Input::Bytes(bytes_of(input)), Output::Bytes(bytes_of_mut(output)));
        Self { input, output, input_rows, output_rows, row_bytes }
    }
}
