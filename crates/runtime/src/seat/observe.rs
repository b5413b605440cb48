//! Observations of a seat about itself: events for the report, links that are up and nodes that are reached, progress of the job.

use rackloom::Ports;
use rackloom::seat::Grant;
use rackloom::seat::report::{injected_faults, port_reports};
use rackloom_jobs::report::{
    EventLog, EventRecord, HostShortage, JobResult, MemberReport, MemberState, PortReport,
};
use rackloom_plan::Plan;
use rackloom_protocol::{Event, Inspect, Instant, LinkState, MemberConfig, MemberRole, NodeId, PortId};

/// Observations of one seat.
#[derive(Debug)]
pub(super) struct Observer {
    node: NodeId,
    names: Vec<String>,
    edges: Vec<u16>,
    events: EventLog,
    /// Ports that have never been up, and must be before the rack counts as up.
    dark: Vec<bool>,
    /// GPU nodes that this one has not reached yet, and must have before the rack counts as up.
    unmet: Vec<bool>,
    /// Ports that carry data now.
    lit: Vec<bool>,
    /// Ports whose links lead to another host, with what to say as long as nobody was heard there.
    abroad: Vec<(usize, String)>,
}

/// Consequences of an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// It brought up the last link that had to come up, or was the way to the last node that had to be reached.
    pub(super) links_up: bool,
    /// A line about it, if it deserves one.
    pub(super) record: Option<EventRecord>,
}

impl Observer {
    /// `vacant`: members whose links nobody waits for.
    pub(super) fn new(plan: &Plan, node: NodeId, config: &MemberConfig, vacant: &[u16]) -> Self {
        Self {
            node,
            names: plan.members.iter().map(|member| member.name.clone()).collect(),
            edges: config.ports.iter().map(|port| port.edge).collect(),
            events: EventLog::default(),
            dark: config.ports.iter().map(|port| !vacant.contains(&port.neighbour.0)).collect(),
            unmet: to_be_met(config, vacant),
            lit: vec![false; config.ports.len()],
            abroad: Vec::new(),
        }
    }

    /// The ports that lead to other hosts, each with its interface or the address there.
    pub(super) fn leads_abroad(&mut self, plan: &Plan, config: &MemberConfig, grant: &Grant) {
        let line = |(port, way): (usize, String)| {
            let neighbour = config.ports.get(port)?.neighbour;
            let host = plan.host_of(neighbour)?;
            let name = &plan.members[neighbour.index()].name;
            Some((port, format!("host {}'s {name} has not been heard {way}", host.name)))
        };
        let ways: Vec<_> = match grant {
            Grant::SharedMemory { .. } => Vec::new(),
            Grant::Packet { outlets, .. } => {
                outlets.iter().map(|outlet| (outlet.port, format!("on {}", outlet.interface))).collect()
            }
            Grant::Udp { outlets, .. } => {
                outlets.iter().map(|outlet| (outlet.port, format!("from {}", outlet.to))).collect()
            }
        };
        self.abroad = ways.into_iter().filter_map(line).collect();
    }

    /// Returns a line per silent neighbour on another host.
    pub(super) fn unheard(&self) -> impl Iterator<Item = &str> {
        let dark = |port: usize| self.dark.get(port).is_some_and(|dark| *dark);
        self.abroad.iter().filter(move |(port, _)| dark(*port)).map(|(_, line)| line.as_str())
    }

    pub(super) fn name(&self) -> &str {
        &self.names[self.node.index()]
    }

    pub(super) const fn node(&self) -> NodeId {
        self.node
    }

    /// Links of the plan by port.
    pub(super) fn edges(&self) -> &[u16] {
        &self.edges
    }

    /// Returns whether the rack counts as up only once this member has reached `node`, and it has not reached it yet.
    pub(super) fn is_awaited(&self, node: NodeId) -> bool {
        self.unmet.get(node.index()).is_some_and(|unmet| *unmet)
    }

    /// A line of the core with the plan's names for its member numbers.
    pub(super) fn with_names(&self, line: &str) -> String {
        let named = |word: &str| {
            let number = word.strip_prefix('m')?.parse::<usize>().ok()?;
            self.names.get(number).cloned()
        };
        let words = line.split(' ').map(|word| named(word).unwrap_or_else(|| word.to_owned()));
        words.collect::<Vec<_>>().join(" ")
    }

    /// Whether no link has to come up that has never been up, and nobody has to be reached who has never been.
    pub(super) fn is_lit(&self) -> bool {
        !self.dark.contains(&true) && !self.unmet.contains(&true)
    }

    /// Returns the links that carry no data now, by index in the plan.
    pub(super) fn links_down(&self) -> Vec<u16> {
        let ports = self.lit.iter().zip(&self.edges);
        ports.filter(|(lit, _)| !**lit).map(|(_, edge)| *edge).collect()
    }

    /// Links that carry data now.
    pub(super) fn links_up(&self) -> usize {
        self.lit.iter().filter(|lit| **lit).count()
    }

    /// Remember an event.
    pub(super) fn see(&mut self, now: Instant, event: &Event) -> Seen {
        let links_up = self.see_way(event);
        let record = EventRecord::of(now, self.node, event, &self.names);
        if let Some(record) = &record {
            match event {
                Event::PathChanged { .. } => tracing::debug!(at_ns = now.0, "{}", record.text),
                _ => tracing::info!(at_ns = now.0, "{}", record.text),
            }
            self.events.push(record.clone());
        }
        Seen { links_up, record }
    }

    /// Returns whether the event was the last one that this seat had to wait for.
    fn see_way(&mut self, event: &Event) -> bool {
        let is_first = |awaited: Option<&mut bool>| awaited.is_some_and(std::mem::take);
        let is_new = match *event {
            Event::LinkChanged { port, to, .. } => {
                if let Some(lit) = self.lit.get_mut(port.index()) {
                    *lit = to.carries_data();
                }
                to == LinkState::Up && is_first(self.dark.get_mut(port.index()))
            }
            Event::NodeReached { node } => is_first(self.unmet.get_mut(node.index())),
            _ => false,
        };
        is_new && self.is_lit()
    }

    /// Returns the counters of all ports, in port order.
    pub(super) fn ports(&self, member: &dyn Inspect, ports: &Ports) -> Vec<PortReport> {
        port_reports(member, ports, self.edges.iter().copied())
    }

    /// Returns the report of this member.
    pub(super) fn report(
        &self,
        now: Instant,
        member: &dyn Inspect,
        ports: &Ports,
        job: Option<JobResult>,
        finished: bool,
    ) -> MemberReport {
        let mut events = self.events.clone();
        let numbers = (0..member.port_count()).map(|port| PortId(port as u16));
        numbers
            .filter_map(|port| injected_faults(&ports.counters(port)).record(now, self.name(), port))
            .for_each(|line| events.push(line));
        MemberReport {
            name: self.name().to_owned(),
            pid: Some(std::process::id()),
            state: if finished { MemberState::Finished } else { MemberState::Running },
            job,
            ports: self.ports(member, ports),
            events,
            waiting: Vec::new(),
            timer_late_max_ns: 0,
            shortage: HostShortage::default(),
        }
    }
}

/// By member: the GPU nodes to which a GPU node has a way that leads over no vacant seat.
fn to_be_met(config: &MemberConfig, vacant: &[u16]) -> Vec<bool> {
    let (graph, own) = (&config.graph, config.node);
    if graph.members.get(own.index()) != Some(&MemberRole::Endpoint) {
        return vec![false; graph.members.len()];
    }
    let mut met = graph.reachable(own, |_, neighbour| !vacant.contains(&neighbour.0));
    met[own.index()] = false;
    met.iter_mut().zip(&graph.members).for_each(|(met, role)| *met &= *role == MemberRole::Endpoint);
    met
}
