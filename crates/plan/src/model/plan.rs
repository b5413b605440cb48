//! Resolved and checked description of a rack and of its job.
//!
//! Every default is filled in, every shape is expanded to members and links, and every link has its profile and credits.
//! The simulator and the running nodes receive the identical plan. For this reason they run the identical rack.
//!
//! A plan opens no file descriptor and starts no process. [`Plan::read`] and [`Plan::parse`] make it. A command line changes it
//! with [`Plan::change`] and related methods, and [`Plan::check`] checks the result again.

pub(crate) mod distances;
mod hosts;
mod hub;
mod levels;
mod local;
pub(crate) mod processes;
mod repetitions;
mod settle;
mod timers;

use std::collections::BTreeMap;

use std::sync::Arc;

use rackloom_protocol::route::graph::SharedGraph;
use rackloom_protocol::{
    Graph, Incarnation, LinkTimers, MemberConfig, MemberRole, NodeId, PackingConfig, PauseConfig, PortConfig,
    RetryConfig, Tenant, TransportConfig,
};

use crate::model::jobs::expect::Expectations;
use crate::model::jobs::job::JobPlan;
use crate::model::links::channels::ChannelPlan;
use crate::model::links::credits::CreditChoice;
use crate::model::links::link::{LinkPlan, LinkProfile};
use crate::model::links::wire::{Checks, WireKind};
use crate::model::members::device::DeviceModel;
use crate::model::members::hosts::HostPlan;
use crate::model::members::hub::SwitchKind;
use crate::model::members::local::LocalPlan;
use crate::model::members::member::{MemberPlan, SecurityPlan, TenantPlan};
use crate::model::members::paths::PathPlan;
use crate::model::rack_settings::RackSettings;
use crate::model::times::clock::Clock;
use crate::model::times::stated::{Reach, Stated};
use crate::model::times::timing::ForwardingPlan;

/// Describes a rack and the job that it runs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the rack.
    pub name: String,
    /// Identity of the rack on the wire, derived from name and configuration hash. Never zero.
    pub epoch: u16,
    /// Hash of the name and of all fields below. It does not depend on comments or spelling.
    pub config_hash: u64,
    /// Values at the top level of the file. Seed and payload are not part of the configuration hash: reports state them.
    pub settings: RackSettings,
    /// Members, indexed by [`NodeId`]: GPU nodes first, then switches, then processes of GPU nodes ([`Plan::add_processes`]).
    pub members: Vec<MemberPlan>,
    /// Machines that run the rack together. Empty if one machine runs all of it.
    pub hosts: Vec<HostPlan>,
    /// Links, indexed by edge.
    pub links: Vec<LinkPlan>,
    /// Authentication of members. Not part of the configuration hash, because the path of the key differs between hosts.
    pub security: SecurityPlan,
    /// Kind of device that joins the nodes of a star.
    pub switch: SwitchKind,
    /// Paths between the memories of nodes of one server, in virtual time.
    pub local: LocalPlan,
    /// Model of the GPU of every node, in virtual time.
    pub device: DeviceModel,
    /// Timers that detect dead links between real processes. See [`Plan::timers_on`].
    pub timers: LinkTimers,
    /// Retransmission, windows and acknowledgements between real processes. See [`Plan::transport_on`].
    pub transport: TransportConfig,
    /// Packing of small operations into frames.
    pub packing: PackingConfig,
    /// Selection among several paths to a node.
    pub paths: PathPlan,
    /// Forwarding of frames by a member, in virtual time.
    pub forwarding: ForwardingPlan,
    /// Virtual channels of every link.
    pub channels: ChannelPlan,
    /// Job of the rack.
    pub job: JobPlan,
    /// Hash of the workload that the rack performs instead of the job; `None` without one. See [`Plan::set_workload`].
    pub(crate) workload: Option<u64>,
    /// Expectations that the report compares the run with.
    pub expect: Expectations,
    /// Quotas of the tenants that the file names, in ascending order of tenant numbers.
    pub tenants: Vec<TenantPlan>,
    /// Timing keys that the file states. Not part of the configuration hash: real processes take the values above.
    pub(crate) stated: Stated,
    /// True if the file states how often a collective is repeated. Not part of the configuration hash.
    pub(crate) states_repetitions: bool,
    /// Times of the links, from which unstated timers follow in virtual time.
    pub(crate) reach: Reach,
    /// Credit settings of the file. Unstated ones follow from the wire.
    pub(crate) credit_choice: CreditChoice,
}

impl Plan {
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
        if self.is_sealed() {
            self.settings.frame_bytes_max + Self::SEAL_BYTES
        } else {
            self.settings.frame_bytes_max
        }
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
        let tenants = self.members.iter().map(|member| member.tenant).collect();
        self.member_config_within(clock, node, incarnation, &self.graph().into(), &tenants)
    }

    /// Returns the configuration of a member, which shares graph and tenants of all members with others. For callers that need the
    /// configurations of many members.
    ///
    /// # Panics
    /// If the plan has no such member.
    #[must_use]
    pub fn member_config_within(
        &self,
        clock: Clock,
        node: NodeId,
        incarnation: Incarnation,
        graph: &SharedGraph,
        tenants: &Arc<[Tenant]>,
    ) -> MemberConfig {
        let ports = graph.links(node).iter().map(|&(edge, neighbour)| PortConfig {
            edge,
            neighbour,
            plane: self.links[usize::from(edge)].edge.plane,
            dimension: self.links[usize::from(edge)].dimension,
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
            tenants: Arc::clone(tenants),
            ether_type: self.settings.ether_type,
            ports: ports.collect(),
            graph: graph.clone(),
            timers: self.timers_on(clock),
            transport: self.transport_on(clock),
            paths: self.paths.config(),
            packing: self.packing,
            forwarding: self.forwarding.config(),
            channels: self.channels.config.clone(),
            end_to_end_check: self.end_to_end_check(),
            outstanding_loads_max: self.settings.outstanding_loads_max,
            frame_bytes_max: self.settings.frame_bytes_max,
        }
    }

    fn retry_config(&self, edge: usize, clock: Clock) -> Option<RetryConfig> {
        let profile = &self.links[edge].profile;
        profile.llr.map(|retry| retry.config(profile, self.settings.frame_bytes_max, clock))
    }

    fn pause_config(&self, edge: usize, clock: Clock) -> Option<PauseConfig> {
        let profile = &self.links[edge].profile;
        let capacity_bytes = self.channel_capacity_bytes(profile);
        profile.pfc.map(|pause| pause.config(profile, self.settings.frame_bytes_max, capacity_bytes, clock))
    }

    /// Returns the bytes that frames of one channel may fill on a link with pauses. A quarter of a ring stays free for
    /// control frames.
    #[must_use]
    pub fn channel_capacity_bytes(&self, link: &LinkProfile) -> u64 {
        u64::from(self.settings.ring_bytes) / 4 * 3 / self.channels.count_of(link) as u64
    }

    /// Returns true if frames carry the end-to-end check.
    #[must_use]
    pub fn end_to_end_check(&self) -> bool {
        match self.settings.checks {
            Checks::Always => true,
            Checks::Never => false,
            Checks::Auto => {
                let is_exposed = |link: &LinkPlan| {
                    self.wire_of(&link.edge) != WireKind::SharedMemory || link.profile.corrupt > 0.0
                };
                self.settings.wire != WireKind::SharedMemory || self.links.iter().any(is_exposed)
            }
        }
    }

    /// Returns the number of GPU nodes (ranks). Their processes do not count.
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
}
