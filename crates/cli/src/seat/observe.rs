//! What a seat notices about itself: events for the report, whether all links have been up, how far the job is.

use rackloom::Ports;
use rackloom_jobs::report::{EventLog, JobResult, MemberReport, MemberState, PortReport};
use rackloom_plan::Plan;
use rackloom_protocol::{Event, Instant, LinkState, Member, MemberConfig, NodeId, PortId};

use crate::faults::InjectedFaults;

/// The memory of one seat about its own life.
#[derive(Debug)]
pub(super) struct Observer {
    node: NodeId,
    names: Vec<String>,
    edges: Vec<u16>,
    events: EventLog,
    /// Ports that have never been up.
    dark: Vec<bool>,
}

impl Observer {
    pub(super) fn new(plan: &Plan, node: NodeId, config: &MemberConfig) -> Self {
        Self {
            node,
            names: plan.members.iter().map(|member| member.name.clone()).collect(),
            edges: config.ports.iter().map(|port| port.edge).collect(),
            events: EventLog::default(),
            dark: vec![true; config.ports.len()],
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.names[self.node.index()]
    }

    /// Remember an event. Returns whether it brought up the last link that had never been up.
    pub(super) fn see(&mut self, now: Instant, event: &Event) -> bool {
        if !matches!(event, Event::Completed { .. } | Event::FrameDropped { .. }) {
            tracing::debug!(at_ns = now.0, ?event);
        }
        self.events.push_event(now, self.node, event, &self.names);
        let Event::LinkChanged { port, to: LinkState::Up, .. } = *event else { return false };
        let was_dark = self.dark.get_mut(port.index()).is_some_and(std::mem::take);
        was_dark && !self.dark.contains(&true)
    }

    /// Everything, as the report of this member.
    pub(super) fn report(
        &self,
        now: Instant,
        member: &dyn Member,
        ports: &Ports,
        job: Option<JobResult>,
        finished: bool,
    ) -> MemberReport {
        let mut events = self.events.clone();
        let numbers = (0..member.port_count()).map(|port| PortId(port as u16));
        numbers
            .filter_map(|port| injected(ports, port).record(now, self.name(), port))
            .for_each(|line| events.push(line));
        MemberReport {
            name: self.name().to_owned(),
            pid: Some(std::process::id()),
            state: if finished { MemberState::Finished } else { MemberState::Running },
            job,
            ports: PortReport::of_member(member, self.edges.iter().copied()),
            events,
        }
    }
}

fn injected(ports: &Ports, port: PortId) -> InjectedFaults {
    let counters = ports.counters(port);
    InjectedFaults {
        dropped: counters.injected_drops,
        corrupted: counters.injected_corruptions,
        duplicated: counters.injected_duplicates,
        reordered: counters.injected_reorders,
    }
}
