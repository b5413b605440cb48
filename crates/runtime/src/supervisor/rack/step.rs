//! Steps that the supervisor must take, and reasons for the end of a run.

use rackloom_jobs::report::EventRecord;

/// Step that the supervisor must take now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All links have been up.
    LinksUp,
    /// Request the pending conditions of the live seats.
    RequestWaiting,
    /// Request the status of the live seats.
    RequestStatus,
    /// Every live GPU node has mapped its peers. The names in the run directory are not needed any more.
    AllMapped,
    /// Every live seat has sent its status, or the time is over.
    StatusKnown,
    /// The log of this member cannot be written.
    LogFailed(usize),
    /// A problem was found that does not end the run.
    Warn(String),
    /// A seat has reported an event.
    Happened(EventRecord),
    /// The job has made progress.
    Progress,
    /// A fault of the script begins or ends.
    Fault(EventRecord),
    /// Send all other members the trigger of this event, which this member has seen. The values are member
    /// and event.
    SetOff(usize, usize),
    /// Resume this member after this time, in nanoseconds.
    ResumeAfter(usize, u64),
    /// Start a successor of this member after this time, in nanoseconds.
    StartSuccessorAfter(usize, u64),
    /// Make this member leave. The rack stays.
    RequestLeave(usize),
    /// Close the socket of this member.
    CloseSocket(usize),
    /// A process of a standing rack has ended: tell the seats that start to wait for it no longer.
    SeatFreed,
    /// A member has left in order.
    Left(usize),
    /// The job is over: end all faults, and request the state of the live seats at rest.
    Heal,
    /// All live seats have reported their state at rest: judge it.
    JudgeRest,
    /// Request the reports of the live seats.
    RequestReports,
    /// Close the sockets of all members.
    CloseSockets,
    /// Kill these members: their time is over.
    Kill(Vec<usize>),
    /// No process is left.
    Over,
}

/// Reason for the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Every live GPU node has finished.
    Complete,
    /// A seat could not start.
    CouldNotStart(String),
    /// A seat ended before all links were up.
    LostEarly(String),
    /// No node made progress.
    Stalled,
    /// A client ended a standing rack.
    TakenDown,
    /// Ctrl-C, SIGTERM or SIGHUP.
    Interrupted,
}
