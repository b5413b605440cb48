//! Observations of a seat about itself: events for the report, links that are up, reached nodes, progress of
//! the job.

use rackloom::Ports;
use rackloom::seat::Grant;
use rackloom::seat::report::{injected_faults, port_reports};
use rackloom_jobs::report::{
    EventLog, EventRecord, HostShortage, JobResult, MemberReport, MemberState, PortReport,
};
use rackloom_plan::Plan;
use rackloom_protocol::{
    Event, Incarnation, Inspect, Instant, LinkState, MemberConfig, MemberRole, NodeId, PortId,
};

/// Observations of one seat.
#[derive(Debug)]
pub(super) struct Observer {
    node: NodeId,
    incarnation: Incarnation,
    names: Vec<String>,
    edges: Vec<u16>,
    events: EventLog,
    /// True for each port that has never been up and must be up before the rack counts as up.
    never_up: Vec<bool>,
    /// True for each GPU node that has not been reached and must be reached before the rack counts as up.
    unreached: Vec<bool>,
    /// True for each port that carries data now.
    carries_data: Vec<bool>,
    /// Ports of links to other hosts, each with the line for the report while no frame has been received
    /// there.
    to_other_hosts: Vec<(usize, String)>,
}

/// Consequences of an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// The last required link came up, or the last required node was reached.
    pub(super) links_up: bool,
    /// Line about the event, if the event is reported.
    pub(super) record: Option<EventRecord>,
}

impl Observer {
    /// Returns an observer without events. `vacant`: members whose links are not required.
    pub(super) fn new(plan: &Plan, node: NodeId, config: &MemberConfig, vacant: &[u16]) -> Self {
        Self {
            node,
            incarnation: config.incarnation,
            names: plan.members.iter().map(|member| member.name.clone()).collect(),
            edges: config.ports.iter().map(|port| port.edge).collect(),
            events: EventLog::default(),
            never_up: config.ports.iter().map(|port| !vacant.contains(&port.neighbour.0)).collect(),
            unreached: nodes_to_reach(config, vacant),
            carries_data: vec![false; config.ports.len()],
            to_other_hosts: Vec::new(),
        }
    }

    /// Requires nothing of these members any more: neither that their links come up, nor that nodes behind them are reached.
    /// `neighbours`: by port. `node`: configuration of a GPU node; a switch must reach no node.
    pub(super) fn await_none_of(
        &mut self,
        members: &[u16],
        neighbours: &[NodeId],
        node: Option<&MemberConfig>,
    ) {
        for (never_up, neighbour) in self.never_up.iter_mut().zip(neighbours) {
            *never_up &= !members.contains(&neighbour.0);
        }
        if let Some(config) = node {
            let required = nodes_to_reach(config, members);
            self.unreached.iter_mut().zip(required).for_each(|(unreached, required)| *unreached &= required);
        }
    }

    /// Records the ports that lead to other hosts, each with its interface or the address there.
    pub(super) fn has_link_to_other_host(&mut self, plan: &Plan, config: &MemberConfig, grant: &Grant) {
        let line = |(port, path): (usize, String)| {
            let neighbour = config.ports.get(port)?.neighbour;
            let host = plan.host_of(neighbour)?;
            let name = &plan.members[neighbour.index()].name;
            Some((port, format!("host {}'s {name} has sent no frame {path}", host.name)))
        };
        self.to_other_hosts = grant.outlets().into_iter().filter_map(line).collect();
    }

    /// Returns a line for each neighbour on another host from which no frame has been received.
    pub(super) fn silent_neighbours(&self) -> impl Iterator<Item = &str> {
        let never_up = |port: usize| self.never_up.get(port).is_some_and(|never_up| *never_up);
        self.to_other_hosts.iter().filter(move |(port, _)| never_up(*port)).map(|(_, line)| line.as_str())
    }

    pub(super) fn name(&self) -> &str {
        &self.names[self.node.index()]
    }

    pub(super) const fn node(&self) -> NodeId {
        self.node
    }

    pub(super) const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Returns the links of the seat in the plan, by port.
    pub(super) fn edges(&self) -> &[u16] {
        &self.edges
    }

    /// Returns whether the rack counts as up only once this member has reached `node`, and it has not reached it yet.
    pub(super) fn is_awaited(&self, node: NodeId) -> bool {
        self.unreached.get(node.index()).is_some_and(|is_unreached| *is_unreached)
    }

    /// Replaces member numbers such as `m3` in a line of the core by the plan's names.
    pub(super) fn with_names(&self, line: &str) -> String {
        let named = |word: &str| {
            let number = word.strip_prefix('m')?.parse::<usize>().ok()?;
            self.names.get(number).cloned()
        };
        let words = line.split(' ').map(|word| named(word).unwrap_or_else(|| word.to_owned()));
        words.collect::<Vec<_>>().join(" ")
    }

    /// Returns true if every required link has been up and every required node has been reached.
    pub(super) fn is_up(&self) -> bool {
        !self.never_up.contains(&true) && !self.unreached.contains(&true)
    }

    /// Returns the links of the seat in the plan, by port, each with true if it carries no data now.
    pub(super) fn links(&self) -> impl Iterator<Item = (u16, bool)> {
        self.edges.iter().zip(&self.carries_data).map(|(edge, carries_data)| (*edge, !carries_data))
    }

    /// Returns the links that carry no data now, by index in the plan.
    pub(super) fn links_down(&self) -> Vec<u16> {
        let ports = self.carries_data.iter().zip(&self.edges);
        ports.filter(|(carries_data, _)| !**carries_data).map(|(_, edge)| *edge).collect()
    }

    /// Returns the number of links that carry data now.
    pub(super) fn links_up(&self) -> usize {
        self.carries_data.iter().filter(|carries_data| **carries_data).count()
    }

    /// Records an event.
    pub(super) fn see(&mut self, now: Instant, event: &Event) -> Seen {
        let links_up = self.update_links(event);
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

    /// Updates the state of links and nodes. Returns true if the event was the last one that the start of
    /// this seat had to wait for.
    fn update_links(&mut self, event: &Event) -> bool {
        let is_first = |awaited: Option<&mut bool>| awaited.is_some_and(std::mem::take);
        let is_new = match *event {
            Event::LinkChanged { port, to, .. } => {
                if let Some(carries_data) = self.carries_data.get_mut(port.index()) {
                    *carries_data = to.carries_data();
                }
                to == LinkState::Up && is_first(self.never_up.get_mut(port.index()))
            }
            Event::NodeReached { node } => is_first(self.unreached.get_mut(node.index())),
            _ => false,
        };
        is_new && self.is_up()
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
            series: None,
        }
    }
}

/// Returns, by member, true for each GPU node that a GPU node must reach: those with a path over no vacant
/// seat.
fn nodes_to_reach(config: &MemberConfig, vacant: &[u16]) -> Vec<bool> {
    let (graph, own) = (&config.graph, config.node);
    if graph.members.get(own.index()) != Some(&MemberRole::Endpoint) {
        return vec![false; graph.members.len()];
    }
    let mut reachable = graph.reachable(own, |_, neighbour| !vacant.contains(&neighbour.0));
    reachable[own.index()] = false;
    reachable
        .iter_mut()
        .zip(&graph.members)
        .for_each(|(reachable, role)| *reachable &= *role == MemberRole::Endpoint);
    reachable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_that_starts_waits_for_no_member_that_has_ended() {
        let plan = Plan::parse("name: ring\nshape: {ring: {nodes: 4}}\n", "ring.yaml").expect("a plan");
        let config = plan.member_config(NodeId(0), Incarnation(1));
        let neighbours: Vec<_> = config.ports.iter().map(|port| port.neighbour).collect();
        let mut observer = Observer::new(&plan, NodeId(0), &config, &[]);
        assert!(!observer.is_up() && observer.is_awaited(NodeId(2)));
        // Without both neighbours, the third node cannot be reached either.
        observer.await_none_of(&[1], &neighbours, Some(&config));
        assert!(observer.is_awaited(NodeId(2)) && !observer.is_awaited(NodeId(1)) && !observer.is_up());
        observer.await_none_of(&[1, 3], &neighbours, Some(&config));
        assert!(!observer.is_awaited(NodeId(2)) && observer.is_up());
    }
}
