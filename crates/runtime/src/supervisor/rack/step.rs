//! What the supervisor is told to do, and why a run ended.

use rackloom_jobs::report::EventRecord;

/// What the supervisor must do now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All links were up: say so.
    LinksUp,
    /// Ask the living seats what they wait for.
    AskWaiting,
    /// Ask the living seats how they are.
    AskStatus,
    /// Every living GPU node knows its ways: nobody needs the names in the run directory any more.
    AllMapped,
    /// Every living seat has said how it is, or time was up.
    StatusKnown,
    /// The log of this member cannot be written.
    LogFailed(usize),
    /// Something is wrong that does not end the run.
    Warn(String),
    /// A seat told of an event.
    Happened(EventRecord),
    /// Somebody got further.
    Further,
    /// A fault of the script begins or ends.
    Fault(EventRecord),
    /// Let everybody but this member know that this event of the script was set off.
    SetOff(usize, usize),
    /// Set this member going again after so many nanoseconds.
    ResumeAfter(usize, u64),
    /// Seat somebody in this member's place after so many nanoseconds.
    FollowAfter(usize, u64),
    /// Ask this one to leave: it alone is to go.
    AskLeave(usize),
    /// Let this one go.
    LetGo(usize),
    /// A member has left in order.
    Left(usize),
    /// The job is over, and everything is to be healed: ask the living seats how they are then.
    Heal,
    /// All of them have said so: see whether that is as it must be.
    JudgeRest,
    /// Ask the living seats for their reports.
    AskReports,
    /// Let everybody go.
    Release,
    /// Time is up for these: end them.
    Kill(Vec<usize>),
    /// Nobody is left.
    Over,
}

/// Why the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Every living GPU node has finished.
    Complete,
    /// A seat could not begin.
    CouldNotStart(String),
    /// A seat ended before all links were up.
    LostEarly(String),
    /// Nobody got further.
    Stalled,
    /// The user asked a rack that stays to go.
    TakenDown,
    /// Ctrl-C, SIGTERM or SIGHUP.
    Interrupted,
}
