//! State of one seat, and of its successor.

use rackloom_jobs::Portion;
use rackloom_jobs::report::{EventRecord, MemberReport};
use rackloom_jobs::rest::Rest;

use rackloom_control::notice::SeatStatus;
use rackloom_control::report::PortReport;

/// State of a member's successor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Successor {
    /// No successor is expected, or its links are up.
    #[default]
    None,
    /// A successor starts after this time. The record then ends the death.
    Expected { after_ns: u64, ends: Box<EventRecord> },
    /// A successor holds the seat. The run waits until its links are up, at most this time.
    Starting { left_ns: u64 },
}

/// Occupancy of a seat on this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Occupancy {
    /// A process holds the seat, or is about to.
    #[default]
    Held,
    /// A process holds the seat and leaves. It ends once it has reported.
    Leaving,
    /// The process that held the seat has ended.
    Ended,
    /// No process has taken the seat yet.
    Vacant,
    /// A different host runs the member.
    Elsewhere,
}

/// Stage of a member that its process announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The process runs with its plan and its wires.
    Ready,
    /// All links that can be up have been up.
    LinksUp,
    /// The memory of the member's server is mapped.
    Mapped,
    /// The job of the member has ended.
    Finished,
}

/// Set of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stages(u8);

impl Stages {
    /// Returns true if the set contains the stage.
    pub(super) const fn has(self, stage: Stage) -> bool {
        self.0 & 1 << stage as u8 != 0
    }

    /// Adds a stage to the set.
    pub(super) const fn reach(&mut self, stage: Stage) {
        self.0 |= 1 << stage as u8;
    }
}

/// Usage of a seat by the processes that have held it since it was vacant, as far as they have reported it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Bytes of earlier processes.
    earlier_bytes: u64,
    /// Bytes of the process that holds the seat, or held it last.
    latest_bytes: u64,
    /// Most bytes that one of them had registered at one time.
    pub(crate) memory_high_bytes: u64,
}

impl Usage {
    /// Returns the bytes of all processes.
    pub(crate) fn bytes(&self) -> u64 {
        self.earlier_bytes.saturating_add(self.latest_bytes)
    }

    /// Adds a report of the process that holds the seat.
    pub(super) fn report(&mut self, status: &SeatStatus) {
        self.latest_bytes = self.latest_bytes.max(status.moved_bytes());
        let high = status.memory.as_ref().map_or(0, |memory| memory.used_bytes.high);
        self.memory_high_bytes = self.memory_high_bytes.max(high);
    }

    /// Returns the usage at the begin of another process.
    pub(super) fn of_next_process(self) -> Self {
        Self { earlier_bytes: self.bytes(), latest_bytes: 0, ..self }
    }
}

/// Counters of the ports of a seat, summed over the processes that have held it before the latest one.
#[derive(Debug, Default)]
pub(super) struct EarlierCounters {
    ports: Vec<PortReport>,
    /// True if one of the processes ended without a report.
    are_partial: bool,
}

impl EarlierCounters {
    /// Adds the counters of a process that has ended.
    fn add(&mut self, report: Option<&MemberReport>) {
        match report {
            Some(report) => PortReport::add_all(&mut self.ports, &report.ports),
            None => self.are_partial = true,
        }
    }
}

/// One member as the supervisor sees it.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    pub(crate) name: String,
    /// True for a GPU node.
    pub(crate) is_endpoint: bool,
    /// GPU node of a process seat.
    pub(crate) process_of: Option<usize>,
    pub(crate) occupancy: Occupancy,
    pub(crate) pid: u32,
    /// Time at which the seat was taken, on the rack's clock.
    pub(crate) taken_at_ns: u64,
    /// Description of the end of a process that had not reported.
    pub(crate) death: Option<String>,
    /// Ends of earlier processes, oldest first.
    pub(crate) earlier_deaths: Vec<String>,
    /// Error of writing its log.
    pub(crate) log_error: Option<String>,
    /// Pending conditions that the seat reported to the watchdog.
    pub(crate) waiting: Option<Vec<String>>,
    /// Latest status.
    pub(crate) status: Option<SeatStatus>,
    pub(crate) usage: Usage,
    /// Final report of the latest process.
    pub(crate) report: Option<MemberReport>,
    pub(super) earlier: EarlierCounters,
    /// Latest state at rest.
    pub(crate) rest: Option<Rest>,
    /// True if the supervisor killed the process because it sent no report at the end.
    pub(crate) is_hung: bool,
    /// True if the seat has announced that the fault script kills it.
    pub(crate) dies_by_script: bool,
    pub(super) successor: Successor,
    /// Stages that the member has reached.
    pub(super) stages: Stages,
    /// GPU nodes that the member has lost.
    pub(super) lost: Vec<usize>,
    pub(super) progress: u64,
    pub(super) portion: Option<Portion>,
}

impl Seat {
    /// Returns the seat of this member as another process finds it.
    pub(super) fn taken(mut self) -> Self {
        let earlier = self.take_counters();
        let Self { name, is_endpoint, process_of, mut earlier_deaths, death, usage, .. } = self;
        earlier_deaths.extend(death);
        let usage = usage.of_next_process();
        Self { name, is_endpoint, process_of, earlier_deaths, usage, earlier, ..Self::default() }
    }

    /// Returns the seat of this member without a process. It keeps the earlier deaths and the counters of the ports.
    pub(super) fn vacated(mut self) -> Self {
        let earlier = self.take_counters();
        let Self { name, is_endpoint, process_of, earlier_deaths, .. } = self;
        Self {
            name,
            is_endpoint,
            process_of,
            earlier_deaths,
            earlier,
            occupancy: Occupancy::Vacant,
            ..Self::default()
        }
    }

    /// Returns the counters of all processes that have held the seat.
    fn take_counters(&mut self) -> EarlierCounters {
        let mut earlier = std::mem::take(&mut self.earlier);
        if !self.is_vacant() {
            earlier.add(self.report.as_ref());
        }
        earlier
    }

    /// Returns the counters of the ports, of all processes that have held the seat.
    pub(crate) fn take_ports(&mut self) -> Vec<PortReport> {
        let EarlierCounters { mut ports, are_partial } = self.take_counters();
        ports.iter_mut().for_each(|port| port.is_partial |= are_partial);
        ports
    }

    /// Returns true if a process holds the seat.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.occupancy, Occupancy::Held | Occupancy::Leaving)
    }

    /// Returns true if no process has taken the seat on this host.
    pub(crate) fn is_vacant(&self) -> bool {
        matches!(self.occupancy, Occupancy::Vacant | Occupancy::Elsewhere)
    }

    /// Returns true if another host runs the member.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.occupancy == Occupancy::Elsewhere
    }

    /// Returns true if the process that held the seat has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.occupancy == Occupancy::Ended
    }

    /// Returns true if the member has reached the stage.
    pub(super) fn has(&self, stage: Stage) -> bool {
        self.stages.has(stage)
    }

    /// Returns true if the run waits for the successor.
    pub(super) fn is_awaited(&self) -> bool {
        match self.successor {
            Successor::None => false,
            Successor::Expected { .. } => true,
            Successor::Starting { .. } => !self.has(Stage::LinksUp),
        }
    }

    /// Returns true if every link that can be up has been up.
    pub(crate) fn is_up(&self) -> bool {
        self.has(Stage::LinksUp)
    }
}
