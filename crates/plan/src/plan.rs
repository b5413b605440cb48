//! The plan: what the user asked for, resolved and checked.
//!
//! Every default is filled in, every shape is expanded to members and links, every link has its profile and credits.
//! The simulator and the running nodes are given the identical plan, which is why they run the identical rack.
//!
//! A plan opens nothing and starts nothing. It is made by [`Plan::read`] or [`Plan::parse`]; what a command line changes
//! afterwards goes through [`Plan::change`] and its kin, and [`Plan::check`] judges the result again.

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
use crate::places::Places;
use crate::read;
use crate::retry::{Clock, RetryPlan};
use crate::text::{Unreadable, text_of};
use crate::timers::{Reach, Stated};
use crate::timing::{ForwardingPlan, Medium, SideLatency};
use crate::words::words;

/// A rack and what it shall do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the rack.
    pub name: String,
    /// Seed of everything random. Not part of the configuration hash: a report names both.
    pub seed: u64,
    /// Identity of the rack on the wire, from name and configuration hash; never zero.
    pub epoch: u16,
    /// Hash of everything below and of the name, not of comments or spelling.
    pub config_hash: u64,
    /// Members by [`NodeId`]: endpoints first, then switches.
    pub members: Vec<MemberPlan>,
    /// Machines that run the rack together; none if one runs all of it.
    pub hosts: Vec<HostPlan>,
    /// Links by edge index.
    pub links: Vec<LinkPlan>,
    /// Who may take part. Not part of the configuration hash: the path is one host's.
    pub security: SecurityPlan,
    /// What joins the nodes of a star.
    pub switch: SwitchKind,
    /// What carries the frames between real processes. Change it with [`Plan::set_wire`].
    pub wire: WireKind,
    /// Whether GPU nodes of one server talk in frames only, and do not map each other's memory.
    pub force_wire: bool,
    /// The paths between memories of nodes of one server; in virtual time.
    pub local: LocalPlan,
    /// When the end-to-end check is on.
    pub checks: Checks,
    /// Liveness of links, between real processes; see [`Plan::timers_on`].
    pub timers: LinkTimers,
    /// Retransmission, windows, acknowledgements, between real processes; see [`Plan::transport_on`].
    pub transport: TransportConfig,
    /// How small operations share a frame.
    pub packing: PackingConfig,
    /// Which way packets take where several lead to a node.
    pub paths: PathConfig,
    /// What it takes a member to pass a frame on; in virtual time.
    pub forwarding: ForwardingPlan,
    /// Virtual channels of every link.
    pub channels: ChannelPlan,
    /// Largest frame, Ethernet header included.
    pub frame_bytes_max: u16,
    /// Outstanding loads per peer.
    pub outstanding_loads_max: u32,
    /// EtherType of every frame.
    pub ether_type: u16,
    /// On the udp wire between hosts: port of the supervisors' words. Those of links are above it.
    pub udp_port: u16,
    /// Size of the shared-memory ring of one link direction; a power of two.
    pub ring_bytes: u32,
    /// Operations larger than this take the bulk path.
    pub rdma_threshold_bytes: u32,
    /// What becomes of the bytes that long transfers carry, in virtual time.
    pub payload: PayloadMode,
    /// What the rack shall do.
    pub job: JobPlan,
    /// What the report holds the run against.
    pub expect: Expectations,
    /// Quotas of the tenants that the file names, by number.
    pub tenants: Vec<TenantPlan>,
    /// A run without progress for this long ends.
    pub watchdog_ns: u64,
    /// The timing keys that the file states. Not part of the configuration hash: real processes take the values above.
    pub(crate) stated: Stated,
    /// Times of the links, from which open timers follow in virtual time.
    pub(crate) reach: Reach,
    /// What the file says about credits; the rest follows from the wire.
    pub(crate) credit_choice: CreditChoice,
}

/// One seat or switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberPlan {
    /// Name, unique in the rack.
    pub name: String,
    /// GPU node or switch.
    pub role: MemberRole,
    /// Partition of the seat.
    pub tenant: Tenant,
    /// The server that the member sits in. Members of one server may share memory; by default nobody does.
    pub server: String,
    /// Memory of the node in bytes; 0 for a switch.
    pub memory_bytes: u64,
    /// How the memory is held.
    pub memory: MemoryOptions,
}

/// How a node's memory is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryOptions {
    /// In huge pages.
    pub huge_pages: bool,
    /// Kept from being swapped out.
    pub locked: bool,
    /// On this NUMA node of the machine; `None` is anywhere.
    pub numa_node: Option<u16>,
    /// On this device; `None` is memory of the host.
    pub device: Option<MemoryDevice>,
    /// How memory of a device is handed to other processes.
    pub share: ShareBy,
    /// The device whose kernels use memory of the host in place, if one is to.
    pub mapped: Option<MemoryDevice>,
}

/// How memory of a device is handed to other processes of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShareBy {
    /// Each region by a handle of its own.
    #[default]
    Handle,
    /// All regions out of one pool, by its descriptor and a pointer for each.
    Pool,
}

impl ShareBy {
    pub(crate) const NAMES: &'static [&'static str] = &["handle", "pool"];

    /// As rack files name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handle => "handle",
            Self::Pool => "pool",
        }
    }
}

/// What holds a node's memory in place of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryDevice {
    /// The GPU of this number.
    Cuda(u16),
    /// A fake one, which is late and in odd order as this seed says.
    Fake(u32),
}

impl MemoryDevice {
    /// What rack files and command lines call `cuda:0` or `fake:7`, if it is a device.
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

/// Who may take part in a rack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityPlan {
    /// Where the secret is; `None` is a rack without authentication. As the file says it, until whoever starts the rack resolves it.
    pub key_file: Option<PathBuf>,
}

/// What a tenant may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantPlan {
    /// Which one.
    pub tenant: Tenant,
    /// Memory of all its nodes together, in bytes.
    pub memory_bytes_max: u64,
}

/// One link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkPlan {
    /// `n0--n1`: the names of both ends, `edge.a` first.
    pub name: String,
    /// Ends, ports and plane.
    pub edge: Edge,
    /// What the link does to frames.
    pub profile: LinkProfile,
    /// Credits of each direction.
    pub credits: CreditConfig,
    /// How they come back.
    pub updates: CreditUpdates,
}

/// What a link does to frames, the same in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkProfile {
    /// Bits per second; `None` is as fast as the wire can.
    pub rate_bits_per_s: Option<u64>,
    /// Time on the cable, unless that has a length. See [`LinkProfile::DELAY_DEFAULT_NS`] and [`LinkProfile::latency_ns`].
    pub delay_ns: u64,
    /// Length of the cable; takes the place of the delay.
    pub length_mm: Option<u64>,
    /// What the cable is made of.
    pub medium: Medium,
    /// What the devices at both ends add.
    pub sides: SideLatency,
    /// Whose headers the rate is divided by; in virtual time.
    pub headers: HeaderProfile,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// When it loses several frames in a row, beside that.
    pub burst: Option<Burst>,
    /// Loss of frames of single kinds, in place of `loss`.
    pub loss_by_kind: LossByKind,
    /// Probability that a bit on the wire is wrong, and its frame lost.
    pub bit_error_rate: f64,
    /// Probability that a bit of a frame is flipped.
    pub corrupt: f64,
    /// Probability that a frame is delivered twice.
    pub duplicate: f64,
    /// Probability that a frame is overtaken by later ones.
    pub reorder: f64,
    /// Seed of this link's faults, in place of the plan's.
    pub seed: Option<u64>,
    /// Data frames to lose exactly, by number.
    pub drop_frames: DropFrames,
    /// Credits of each direction, in place of those that all links have.
    pub credits: OwnCredits,
    /// What it makes of the rack's channels.
    pub channels: OwnChannels,
    /// Link-level retry; `None` is off.
    pub retry: Option<RetryPlan>,
    /// Pauses in place of credits; `None` is off.
    pub pause: Option<PausePlan>,
}

/// Data frames to lose, counted from one, per direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropFrames {
    /// From `edge.a` to `edge.b`.
    pub forward: Vec<u64>,
    /// From `edge.b` to `edge.a`.
    pub backward: Vec<u64>,
}

/// What carries frames between real processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WireKind {
    /// A ring in shared memory per link direction.
    #[default]
    SharedMemory,
    /// AF_PACKET on a pair of Ethernet devices.
    Packet,
    /// The same frames in UDP datagrams.
    Udp,
}

words! {
    /// What becomes of the bytes that long transfers carry, in virtual time. When they come, and what is told of them, is the same.
    pub enum PayloadMode {
        /// They are moved.
        #[default]
        Full = "full",
        /// A fingerprint of each block is moved in their place, and checks compare fingerprints.
        Shadow = "shadow",
        /// Nothing is moved, and nothing can be checked.
        Elided = "elided",
    }
}

/// When frames carry the end-to-end check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// When something can corrupt a frame: a wire of the kernel's, or a link that is told to.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never; a plan with corruption is refused.
    Never,
}

impl WireKind {
    /// All wires, the default first.
    pub const ALL: [Self; 3] = [Self::SharedMemory, Self::Packet, Self::Udp];

    /// Name in files and reports.
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
    /// Delay of a link whose file says nothing. Small next to any software path, so that a real wire need not add it
    /// where a profile asks for nothing else.
    pub const DELAY_DEFAULT_NS: u64 = 500;

    /// Whether frames can be lost, corrupted, duplicated or reordered.
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
    /// Read a rack file.
    ///
    /// # Errors
    /// Every mistake of the file, with line, column and hint; or one without a place if the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let origin = path.display().to_string();
        let text = text_of(path).map_err(|Unreadable { message, hint }| {
            let source = Source::new(&origin, "");
            source.error(vec![source.mistake(None, Complaint::about(message).hint(hint))])
        })?;
        Self::parse(&text, &origin)
    }

    /// Read a rack from text; `origin` stands for the file in messages.
    ///
    /// # Errors
    /// Every mistake of the text, with line, column and hint.
    pub fn parse(text: &str, origin: &str) -> Result<Self, PlanError> {
        Self::parse_judged(text, origin, |_| Vec::new())
    }

    /// The same, with a judge who knows what the job takes. It is asked only if job and shape are whole, and what it says
    /// is one of the file's mistakes.
    ///
    /// # Errors
    /// Every mistake of the text and every objection, with line, column and hint.
    pub fn parse_judged(
        text: &str,
        origin: &str,
        judge: impl Fn(&Self) -> Vec<Objection>,
    ) -> Result<Self, PlanError> {
        read::rack(text, origin, Fit::Judged, &judge)
    }

    /// The same for somebody who changes the job afterwards and then asks [`Plan::check`]: whether the file's own job fits
    /// into memory is left open.
    ///
    /// # Errors
    /// Every other mistake of the text, with line, column and hint.
    pub fn parse_for_another_job(text: &str, origin: &str) -> Result<Self, PlanError> {
        read::rack(text, origin, Fit::Open, &|_| Vec::new())
    }

    /// Judge the plan again, after a command line has changed it.
    ///
    /// # Errors
    /// Every value that is out of range or contradicts another; without places, because no file is at hand.
    pub fn check(&self) -> Result<(), PlanError> {
        let source = Source::new(&self.name, "");
        let mistakes =
            check::mistakes(self, &[self.job], &Places::default(), &source, Fit::Judged, &|_| Vec::new());
        if mistakes.is_empty() { Ok(()) } else { Err(source.error(mistakes)) }
    }

    /// Bytes that authentication adds to each frame: a counter and a tag.
    pub const SEAL_BYTES: u16 = 16;

    /// Whether frames and messages between hosts carry tags.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        self.security.key_file.is_some()
    }

    /// Largest frame as the wires carry it, Ethernet header and seal included.
    #[must_use]
    pub const fn wire_bytes_max(&self) -> u16 {
        if self.is_sealed() { self.frame_bytes_max + Self::SEAL_BYTES } else { self.frame_bytes_max }
    }

    /// Members and links as the protocol core wants them.
    #[must_use]
    pub fn graph(&self) -> Graph {
        Graph {
            members: self.members.iter().map(|member| member.role).collect(),
            edges: self.links.iter().map(|link| link.edge).collect(),
        }
    }

    /// What a member that runs as a real process is told at birth.
    ///
    /// # Panics
    /// If the plan has no such member.
    #[must_use]
    pub fn member_config(&self, node: NodeId, incarnation: Incarnation) -> MemberConfig {
        self.member_config_on(Clock::Wall, node, incarnation)
    }

    /// What a member is told at birth. The clocks differ in timers that the file leaves open.
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

    /// What frames of one channel of a link that pauses may fill: a quarter of a ring stays free for control frames.
    #[must_use]
    pub fn channel_room_bytes(&self, link: &LinkProfile) -> u64 {
        u64::from(self.ring_bytes) / 4 * 3 / self.channels.count_of(link) as u64
    }

    /// Whether frames carry the end-to-end check.
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

    /// Number of GPU nodes (ranks).
    #[must_use]
    pub fn endpoint_count(&self) -> usize {
        self.members.iter().filter(|member| member.role == MemberRole::Endpoint).count()
    }

    /// The member with this name.
    #[must_use]
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        let index = self.members.iter().position(|member| member.name == name)?;
        u16::try_from(index).ok().map(NodeId)
    }

    /// The servers, in the order of their first members, each with its members.
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

    /// Whether two members sit in one server and may share memory.
    ///
    /// # Panics
    /// If the plan has no such member.
    #[must_use]
    pub fn same_server(&self, left: NodeId, right: NodeId) -> bool {
        self.members[left.index()].server == self.members[right.index()].server
    }

    /// The ranks that sit in a server, in ascending order.
    #[must_use]
    pub fn ranks_of_server(&self, server: &str) -> Vec<NodeId> {
        // Endpoints come first, so a rank's number is its node's.
        let ranks = (0..).zip(&self.members).take(self.endpoint_count());
        ranks.filter(|(_, member)| member.server == server).map(|(number, _)| NodeId(number)).collect()
    }

    /// For each rank, the place of its server among [`Plan::servers`].
    #[must_use]
    pub fn server_of_each_rank(&self) -> Vec<usize> {
        let servers = self.servers();
        let index_of: BTreeMap<&str, usize> =
            servers.iter().enumerate().map(|(index, (server, _))| (*server, index)).collect();
        let ranks = self.members.iter().take(self.endpoint_count());
        ranks.map(|rank| index_of[rank.server.as_str()]).collect()
    }

    /// Memory that the job takes at every node at least, in bytes; see [`JobPlan::memory_bytes_min`].
    #[must_use]
    pub fn memory_needed_by_job(&self) -> u64 {
        self.job.memory_bytes_min(self.endpoint_count())
    }

    /// Change anything, as a command line does. Credits, configuration hash and epoch follow; [`Plan::check`] judges.
    pub fn change(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        self.settle();
    }

    /// Change the profile of every link, and what follows from it.
    pub fn override_links(&mut self, change: impl Fn(&mut LinkProfile)) {
        self.change(|plan| plan.links.iter_mut().for_each(|link| change(&mut link.profile)));
    }

    /// Change the wire, and what follows from it: credits too, where the file does not fix them.
    pub fn set_wire(&mut self, wire: WireKind) {
        self.change(|plan| plan.wire = wire);
    }

    /// Compute again what follows from the rest: credits, configuration hash, epoch.
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
