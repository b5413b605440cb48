//! Resolved and checked description of a rack and of its job.
//!
//! Every default is filled in, every shape is expanded to members and links, and every link has its profile and credits.
//! The simulator and the running nodes receive the identical plan. For this reason they run the identical rack.
//!
//! A plan opens no file descriptor and starts no process. [`Plan::read`] and [`Plan::parse`] make it. A command line changes it
//! with [`Plan::change`] and related methods, and [`Plan::check`] checks the result again.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use rackloom_protocol::{
    CreditConfig, CreditUpdates, Edge, Graph, Incarnation, LinkTimers, MemberConfig, MemberRole, NodeId,
    PackingConfig, PathConfig, PauseConfig, PortConfig, RetryConfig, Tenant, TransportConfig,
};

use crate::canonical;
use crate::channels::ChannelPlan;
use crate::check::{self, Fit};
use crate::defaults::CreditChoice;
use crate::expect::Expectations;
use crate::headers::HeaderProfile;
use crate::hosts::HostPlan;
use crate::hub::SwitchKind;
use crate::job::JobPlan;
use crate::local::LocalPlan;
use crate::loss::{Burst, LossByKind};
use crate::mistake::{Complaint, PlanError, Source};
use crate::objection::Objection;
use crate::of_link::{OwnChannels, OwnCredits};
use crate::pause::PausePlan;
use crate::positions::Positions;
use crate::read;
use crate::retry::{Clock, RetryPlan};
use crate::text::{Unreadable, text_of};
use crate::timers::{Reach, Stated};
use crate::timing::{ForwardingPlan, Medium, SideLatency};
use crate::words::words;

/// Describes a rack and the job that it runs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the rack.
    pub name: String,
    /// Seed of all random numbers. Not part of the configuration hash: a report states both.
    pub seed: u64,
    /// Identity of the rack on the wire, derived from name and configuration hash. Never zero.
    pub epoch: u16,
    /// Hash of the name and of all fields below. It does not depend on comments or spelling.
    pub config_hash: u64,
    /// Members, indexed by [`NodeId`]: endpoints first, then switches.
    pub members: Vec<MemberPlan>,
    /// Machines that run the rack together. Empty if one machine runs all of it.
    pub hosts: Vec<HostPlan>,
    /// Links, indexed by edge.
    pub links: Vec<LinkPlan>,
    /// Authentication of members. Not part of the configuration hash, because the path of the key differs between hosts.
    pub security: SecurityPlan,
    /// Kind of device that joins the nodes of a star.
    pub switch: SwitchKind,
    /// Medium of the frames between real processes. Change it with [`Plan::set_wire`].
    pub wire: WireKind,
    /// True if GPU nodes of one server use frames only and do not map each other's memory.
    pub force_wire: bool,
    /// Paths between the memories of nodes of one server, in virtual time.
    pub local: LocalPlan,
    /// When frames carry the end-to-end check.
    pub checks: Checks,
    /// Timers that detect dead links between real processes. See [`Plan::timers_on`].
    pub timers: LinkTimers,
    /// Retransmission, windows and acknowledgements between real processes. See [`Plan::transport_on`].
    pub transport: TransportConfig,
    /// How small operations share a frame.
    pub packing: PackingConfig,
    /// Selection among several paths to a node.
    pub paths: PathConfig,
    /// Forwarding of frames by a member, in virtual time.
    pub forwarding: ForwardingPlan,
    /// Virtual channels of every link.
    pub channels: ChannelPlan,
    /// Largest frame in bytes, Ethernet header included.
    pub frame_bytes_max: u16,
    /// Largest number of outstanding loads per peer.
    pub outstanding_loads_max: u32,
    /// EtherType of every frame.
    pub ether_type: u16,
    /// UDP port of messages between supervisors, on the udp wire between hosts. Links use the ports above it.
    pub udp_port: u16,
    /// Size of the shared-memory ring of one link direction, in bytes. A power of two.
    pub ring_bytes: u32,
    /// Operations larger than this number of bytes take the bulk path.
    pub rdma_threshold_bytes: u32,
    /// Treatment of the payload of long transfers, in virtual time.
    pub payload: PayloadMode,
    /// Job of the rack.
    pub job: JobPlan,
    /// Expectations that the report compares the run with.
    pub expect: Expectations,
    /// Quotas of the tenants that the file names, in ascending order of tenant numbers.
    pub tenants: Vec<TenantPlan>,
    /// A run without progress for this time ends, in nanoseconds.
    pub watchdog_ns: u64,
    /// Timing keys that the file states. Not part of the configuration hash: real processes take the values above.
    pub(crate) stated: Stated,
    /// Times of the links, from which unstated timers follow in virtual time.
    pub(crate) reach: Reach,
    /// Credit settings of the file. Unstated ones follow from the wire.
    pub(crate) credit_choice: CreditChoice,
}

/// Describes one GPU node or switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberPlan {
    /// Name, unique in the rack.
    pub name: String,
    /// Kind of member: GPU node or switch.
    pub role: MemberRole,
    /// Tenant of the member.
    pub tenant: Tenant,
    /// Server that contains the member. Members of one server may share memory. By default each member has a server of its own.
    pub server: String,
    /// Memory of the node in bytes. 0 for a switch.
    pub memory_bytes: u64,
    /// Placement of the memory.
    pub memory: MemoryOptions,
}

/// Placement of a node's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryOptions {
    /// True if the memory is in huge pages.
    pub huge_pages: bool,
    /// True if the memory is never swapped out.
    pub locked: bool,
    /// NUMA node of the machine that holds the memory. `None` is any.
    pub numa_node: Option<u16>,
    /// Device that holds the memory. `None` is memory of the host.
    pub device: Option<MemoryDevice>,
    /// Method by which other processes open memory of a device.
    pub share: ShareBy,
    /// Device whose kernels use memory of the host in place. `None` if no device does.
    pub mapped: Option<MemoryDevice>,
}

/// Method by which other processes of the server open memory of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShareBy {
    /// Each region has a handle of its own.
    #[default]
    Handle,
    /// All regions are in one pool, which has one descriptor, and each region has a pointer into it.
    Pool,
}

impl ShareBy {
    pub(crate) const NAMES: &'static [&'static str] = &["handle", "pool"];

    /// Returns the name in rack files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handle => "handle",
            Self::Pool => "pool",
        }
    }
}

/// Device that holds a node's memory in place of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryDevice {
    /// GPU with this number.
    Cuda(u16),
    /// Fake device. The seed determines how late and in which order its copies end.
    Fake(u32),
}

impl MemoryDevice {
    /// Returns the device that `cuda:0` or `fake:7` names in rack files and command lines, or `None` if the text names none.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("cuda", index) => index.parse().ok().map(Self::Cuda),
            ("fake", seed) => seed.parse().ok().map(Self::Fake),
            _ => None,
        }
    }
}

impl fmt::Display for MemoryDevice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(index) => write!(formatter, "cuda:{index}"),
            Self::Fake(seed) => write!(formatter, "fake:{seed}"),
        }
    }
}

/// Authentication of the members of a rack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityPlan {
    /// Path of the file with the secret. `None` is a rack without authentication. The path is as written in the file until the
    /// program that starts the rack resolves it.
    pub key_file: Option<PathBuf>,
}

/// Quota of one tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantPlan {
    /// Number of the tenant.
    pub tenant: Tenant,
    /// Largest sum of the memory of all its nodes, in bytes.
    pub memory_bytes_max: u64,
}

/// Describes one link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkPlan {
    /// `n0--n1`: the names of both ends, `edge.a` first.
    pub name: String,
    /// Ends, ports and plane.
    pub edge: Edge,
    /// Properties of the link.
    pub profile: LinkProfile,
    /// Credits of each direction.
    pub credits: CreditConfig,
    /// Rules by which credits return.
    pub updates: CreditUpdates,
}

/// Properties of a link, equal in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkProfile {
    /// Rate in bits per second. `None` is as fast as the wire permits.
    pub rate_bits_per_s: Option<u64>,
    /// Propagation delay in nanoseconds, used if `length_mm` is `None`. See [`LinkProfile::DELAY_DEFAULT_NS`] and
    /// [`LinkProfile::latency_ns`].
    pub delay_ns: u64,
    /// Length of the cable in millimetres. Replaces `delay_ns`.
    pub length_mm: Option<u64>,
    /// Material of the cable.
    pub medium: Medium,
    /// Latency of the devices at both ends.
    pub sides: SideLatency,
    /// Headers that count against the rate, in virtual time.
    pub headers: HeaderProfile,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Parameters of burst losses, in addition to `loss`.
    pub burst: Option<Burst>,
    /// Probability of loss for frames of single kinds. Replaces `loss` for these kinds.
    pub loss_by_kind: LossByKind,
    /// Probability that a bit on the wire is wrong. A frame with a wrong bit is lost.
    pub bit_error_rate: f64,
    /// Probability that a bit of a frame is flipped.
    pub corrupt: f64,
    /// Probability that a frame is delivered twice.
    pub duplicate: f64,
    /// Probability that a frame is overtaken by later ones.
    pub reorder: f64,
    /// Seed of this link's faults. Replaces the plan's seed.
    pub seed: Option<u64>,
    /// Numbers of data frames that are lost.
    pub drop_frames: DropFrames,
    /// Credits of each direction. Replaces the credits of the rack.
    pub credits: OwnCredits,
    /// Use of the rack's channels by this link.
    pub channels: OwnChannels,
    /// Link-level retry. `None` is off.
    pub retry: Option<RetryPlan>,
    /// Pauses in place of credits. `None` is off.
    pub pause: Option<PausePlan>,
}

/// Numbers of data frames to lose, counted from one, per direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropFrames {
    /// From `edge.a` to `edge.b`.
    pub forward: Vec<u64>,
    /// From `edge.b` to `edge.a`.
    pub backward: Vec<u64>,
}

/// Medium that carries frames between real processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WireKind {
    /// A ring in shared memory per link direction.
    #[default]
    SharedMemory,
    /// AF_PACKET on a pair of Ethernet devices.
    Packet,
    /// UDP datagrams with the frames as payload.
    Udp,
}

words! {
    /// Treatment of the payload of long transfers, in virtual time. Times and events are equal in all modes.
    pub enum PayloadMode {
        /// All bytes are moved.
        #[default]
        Full = "full",
        /// A fingerprint of each block is moved in place of its bytes, and checks compare fingerprints.
        Shadow = "shadow",
        /// No bytes are moved, so data cannot be checked.
        Elided = "elided",
    }
}

/// Condition under which frames carry the end-to-end check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// Frames carry it if they can be corrupted: on a wire of the kernel, or on a link with corruption.
    #[default]
    Auto,
    /// Frames always carry it.
    Always,
    /// Frames never carry it. A plan with corruption is refused.
    Never,
}

impl WireKind {
    /// All wires, the default first.
    pub const ALL: [Self; 3] = [Self::SharedMemory, Self::Packet, Self::Udp];

    /// Returns the name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SharedMemory => "shared-memory",
            Self::Packet => "packet",
            Self::Udp => "udp",
        }
    }
}

impl LinkProfile {
    /// Delay of a link for which the file states none, in nanoseconds. It is small compared with any software path. A real wire
    /// need not add it if the profile sets nothing else.
    pub const DELAY_DEFAULT_NS: u64 = 500;

    /// Returns true if frames can be lost, corrupted, duplicated or reordered.
    #[must_use]
    pub fn has_faults(&self) -> bool {
        let rates = [self.loss, self.bit_error_rate, self.corrupt, self.duplicate, self.reorder];
        rates.iter().any(|rate| *rate > 0.0)
            || self.drop_frames != DropFrames::default()
            || self.burst.is_some()
            || self.loss_by_kind.loses()
    }
}

impl Default for LinkProfile {
    fn default() -> Self {
        Self {
            rate_bits_per_s: None,
            delay_ns: Self::DELAY_DEFAULT_NS,
            length_mm: None,
            medium: Medium::default(),
            sides: SideLatency::default(),
            headers: HeaderProfile::default(),
            loss: 0.0,
            burst: None,
            loss_by_kind: LossByKind::default(),
            bit_error_rate: 0.0,
            corrupt: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            seed: None,
            drop_frames: DropFrames::default(),
            credits: OwnCredits::default(),
            channels: OwnChannels::default(),
            retry: None,
            pause: None,
        }
    }
}

impl Plan {
    /// Reads a rack file.
    ///
    /// # Errors
    /// Returns every mistake of the file, with line, column and hint. If the file cannot be read, returns one mistake without
    /// a position.
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let origin = path.display().to_string();
        let text = text_of(path).map_err(|Unreadable { message, hint }| {
            let source = Source::new(&origin, "");
            source.error(vec![source.mistake(None, Complaint::about(message).hint(hint))])
        })?;
        Self::parse(&text, &origin)
    }

    /// Reads a rack from text. `origin` is the name of the file in messages.
    ///
    /// # Errors
    /// Returns every mistake of the text, with line, column and hint.
    pub fn parse(text: &str, origin: &str) -> Result<Self, PlanError> {
        Self::parse_judged(text, origin, |_| Vec::new())
    }

    /// Reads a rack from text and calls `judge` for objections to its job. `judge` runs only if job and shape could be read.
    /// Its objections are added to the mistakes of the file.
    ///
    /// # Errors
    /// Returns every mistake of the text and every objection, with line, column and hint.
    pub fn parse_judged(
        text: &str,
        origin: &str,
        judge: impl Fn(&Self) -> Vec<Objection>,
    ) -> Result<Self, PlanError> {
        read::rack(text, origin, Fit::Judged, &judge)
    }

    /// Reads a rack from text for a caller that replaces the job and then calls [`Plan::check`]. Does not check that the job
    /// of the file fits into memory.
    ///
    /// # Errors
    /// Returns every other mistake of the text, with line, column and hint.
    pub fn parse_for_another_job(text: &str, origin: &str) -> Result<Self, PlanError> {
        read::rack(text, origin, Fit::Open, &|_| Vec::new())
    }

    /// Checks the plan again after a command line has changed it.
    ///
    /// # Errors
    /// Returns every value that is out of range or contradicts another one. Positions are absent, because no file is given.
    pub fn check(&self) -> Result<(), PlanError> {
        let source = Source::new(&self.name, "");
        let mistakes =
            check::mistakes(self, &[self.job], &Positions::default(), &source, Fit::Judged, &|_| Vec::new());
        if mistakes.is_empty() { Ok(()) } else { Err(source.error(mistakes)) }
    }

    /// Number of bytes that authentication adds to each frame: a counter and a tag.
    pub const SEAL_BYTES: u16 = 16;

    /// Returns true if frames and messages between hosts carry tags.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        self.security.key_file.is_some()
    }

    /// Returns the largest frame on the wire in bytes, Ethernet header and seal included.
    #[must_use]
    pub const fn wire_bytes_max(&self) -> u16 {
        if self.is_sealed() { self.frame_bytes_max + Self::SEAL_BYTES } else { self.frame_bytes_max }
    }

    /// Returns members and links as a graph of the protocol core.
    #[must_use]
    pub fn graph(&self) -> Graph {
        Graph {
            members: self.members.iter().map(|member| member.role).collect(),
            edges: self.links.iter().map(|link| link.edge).collect(),
        }
    }

    /// Returns the configuration of a member that runs as a real process.
    ///
    /// # Panics
    /// If the plan has no such member.
    #[must_use]
    pub fn member_config(&self, node: NodeId, incarnation: Incarnation) -> MemberConfig {
        self.member_config_on(Clock::Wall, node, incarnation)
    }

    /// Returns the configuration of a member. It depends on the clock in timers that the file leaves open.
    ///
    /// # Panics
    /// If the plan has no such member.
    #[must_use]
    pub fn member_config_on(&self, clock: Clock, node: NodeId, incarnation: Incarnation) -> MemberConfig {
        let graph = self.graph();
        let ports = graph.ports(node).into_iter().map(|(edge, neighbour, plane)| PortConfig {
            edge,
            neighbour,
            plane,
            credits: self.links[usize::from(edge)].credits,
            channel_limits: self.channels.limits_of(&self.links[usize::from(edge)].profile).to_vec(),
            is_undivided: !self.links[usize::from(edge)].profile.channels.are_divided,
            is_dateline: self.channels.is_dateline(edge),
            updates: self.links[usize::from(edge)].updates,
            retry: self.retry_config(usize::from(edge), clock),
            pause: self.pause_config(usize::from(edge), clock),
        });
        MemberConfig {
            node,
            incarnation,
            epoch: self.epoch,
            tenants: self.members.iter().map(|member| member.tenant).collect(),
            ether_type: self.ether_type,
            ports: ports.collect(),
            graph: graph.into(),
            timers: self.timers_on(clock),
            transport: self.transport_on(clock),
            paths: self.paths,
            packing: self.packing,
            forwarding: self.forwarding.rules,
            channels: self.channels.config.clone(),
            end_to_end_check: self.end_to_end_check(),
            outstanding_loads_max: self.outstanding_loads_max,
            frame_bytes_max: self.frame_bytes_max,
        }
    }

    fn retry_config(&self, edge: usize, clock: Clock) -> Option<RetryConfig> {
        let profile = &self.links[edge].profile;
        profile.retry.map(|retry| retry.config(profile, self.frame_bytes_max, clock))
    }

    fn pause_config(&self, edge: usize, clock: Clock) -> Option<PauseConfig> {
        let profile = &self.links[edge].profile;
        let room_bytes = self.channel_room_bytes(profile);
        profile.pause.map(|pause| pause.config(profile, self.frame_bytes_max, room_bytes, clock))
    }

    /// Returns the bytes that frames of one channel may fill on a link with pauses. A quarter of a ring stays free for
    /// control frames.
    #[must_use]
    pub fn channel_room_bytes(&self, link: &LinkProfile) -> u64 {
        u64::from(self.ring_bytes) / 4 * 3 / self.channels.count_of(link) as u64
    }

    /// Returns true if frames carry the end-to-end check.
    #[must_use]
    pub fn end_to_end_check(&self) -> bool {
        match self.checks {
            Checks::Always => true,
            Checks::Never => false,
            Checks::Auto => {
                let is_exposed = |link: &LinkPlan| {
                    self.wire_of(&link.edge) != WireKind::SharedMemory || link.profile.corrupt > 0.0
                };
                self.wire != WireKind::SharedMemory || self.links.iter().any(is_exposed)
            }
        }
    }

    /// Returns the number of GPU nodes (ranks).
    #[must_use]
    pub fn endpoint_count(&self) -> usize {
        self.members.iter().filter(|member| member.role == MemberRole::Endpoint).count()
    }

    /// Returns the member with this name, or `None`.
    #[must_use]
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        let index = self.members.iter().position(|member| member.name == name)?;
        u16::try_from(index).ok().map(NodeId)
    }

    /// Returns the servers with their members, in the order of their first members.
    #[must_use]
    pub fn servers(&self) -> Vec<(&str, Vec<NodeId>)> {
        let mut servers: Vec<(&str, Vec<NodeId>)> = Vec::new();
        let mut index_of: BTreeMap<&str, usize> = BTreeMap::new();
        for (number, member) in (0..).zip(&self.members) {
            let index = *index_of.entry(&member.server).or_insert_with(|| {
                servers.push((&member.server, Vec::new()));
                servers.len() - 1
            });
            servers[index].1.push(NodeId(number));
        }
        servers
    }

    /// Returns true if two members are in one server and may share memory.
    ///
    /// # Panics
    /// If the plan has no such member.
    #[must_use]
    pub fn same_server(&self, left: NodeId, right: NodeId) -> bool {
        self.members[left.index()].server == self.members[right.index()].server
    }

    /// Returns the ranks in a server, in ascending order.
    #[must_use]
    pub fn ranks_of_server(&self, server: &str) -> Vec<NodeId> {
        // Endpoints come first, so the rank and the node number are equal.
        let ranks = (0..).zip(&self.members).take(self.endpoint_count());
        ranks.filter(|(_, member)| member.server == server).map(|(number, _)| NodeId(number)).collect()
    }

    /// Returns for each rank the index of its server in [`Plan::servers`].
    #[must_use]
    pub fn server_of_each_rank(&self) -> Vec<usize> {
        let servers = self.servers();
        let index_of: BTreeMap<&str, usize> =
            servers.iter().enumerate().map(|(index, (server, _))| (*server, index)).collect();
        let ranks = self.members.iter().take(self.endpoint_count());
        ranks.map(|rank| index_of[rank.server.as_str()]).collect()
    }

    /// Returns the least memory that the job needs at every node, in bytes. See [`JobPlan::memory_bytes_min`].
    #[must_use]
    pub fn memory_needed_by_job(&self) -> u64 {
        self.job.memory_bytes_min(self.endpoint_count())
    }

    /// Applies a change of a command line, and updates credits, configuration hash and epoch. Call [`Plan::check`] afterwards.
    pub fn change(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        self.settle();
    }

    /// Changes the profile of every link, and updates the values that follow from it.
    pub fn override_links(&mut self, change: impl Fn(&mut LinkProfile)) {
        self.change(|plan| plan.links.iter_mut().for_each(|link| change(&mut link.profile)));
    }

    /// Changes the wire, and updates the values that follow from it. These include credits that the file does not state.
    pub fn set_wire(&mut self, wire: WireKind) {
        self.change(|plan| plan.wire = wire);
    }

    /// Computes credits, configuration hash and epoch from the other fields.
    pub(crate) fn settle(&mut self) {
        let wires: Vec<_> = self.links.iter().map(|link| self.wire_of(&link.edge)).collect();
        let shares = self.links_per_interface();
        for (link, wire) in self.links.iter_mut().zip(wires) {
            link.credits = self.credit_choice.resolve(wire, self.ring_bytes);
            link.credits.limit = link.profile.credits.limit.unwrap_or(link.credits.limit / shares);
            let least = self.channels.least_share(&link.profile, link.credits.limit);
            let choice = self.credit_choice.of_link(link.profile.credits);
            link.updates = choice.updates(CreditConfig { limit: least, ..link.credits });
        }
        self.reach = Reach::of(self);
        self.config_hash = canonical::hash(self);
        self.epoch = canonical::epoch(&self.name, self.config_hash);
    }
}
