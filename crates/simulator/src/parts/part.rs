//! Members of one part of a rack, and their steps in a window of time.

use rackloom_protocol::Instant;
use rackloom_protocol::forwarding::waits::Wait;

use crate::frames::Parcel;
use crate::rack::Simulation;
use crate::results::PartResults;
use crate::watchdog::{Marks, StallCause, Waiting};

/// State of a part before a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Time of its next event.
    pub(super) next_at: Instant,
    /// Living endpoints whose job is not over.
    pub(super) awaited: usize,
    pub(super) marks: Marks,
    pub(super) cause: Option<StallCause>,
}

/// State of a part after its members with unfinished jobs have run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// True if none of its jobs is unfinished.
    ends: bool,
    /// Moment after the last poll of one of its members.
    after: Instant,
}

/// Members of one part.
pub(super) struct Part {
    own: usize,
    pub(super) simulation: Simulation,
    /// Frames from other parts that are not in the queue yet, by part.
    inbox: Vec<Parcel>,
    /// Time of the next event, if it is known.
    next_at: Option<Instant>,
    /// True if members ran since frames were last taken from here.
    has_run: bool,
    /// Reason for which the run cannot continue.
    cause: Option<StallCause>,
    every: u64,
    next_look: u64,
    /// Number of events at the last call of `take_handled`.
    handled_before: u64,
}

/// Results of one part.
pub(super) struct PartEnd {
    pub(super) results: PartResults,
    pub(super) waiting: Vec<Waiting>,
    pub(super) waits: Vec<Wait>,
}

impl Standing {
    pub(super) fn join(self, other: Self) -> Self {
        Self {
            next_at: self.next_at.min(other.next_at),
            awaited: self.awaited + other.awaited,
            marks: self.marks.later(other.marks),
            cause: self.cause.or(other.cause),
        }
    }
}

impl Ending {
    /// Returns true if the end of the window depends on the other parts. With an unfinished job the window has its full length.
    pub(super) const fn ends(self) -> bool {
        self.ends
    }

    /// Returns the state of two parts together.
    pub(super) fn join(self, other: Self) -> Self {
        Self { ends: self.ends && other.ends, after: self.after.max(other.after) }
    }

    /// Returns the end of a window of all parts, no later than `until`.
    pub(super) fn end_of(endings: impl IntoIterator<Item = Self>, until: Instant) -> Instant {
        endings
            .into_iter()
            .reduce(Self::join)
            .filter(|joined| joined.ends)
            .map_or(until, |joined| joined.after)
    }
}

impl Part {
    /// Creates part `own` of `parts`. A look is due after each `every` events.
    pub(super) fn new(own: usize, simulation: Simulation, parts: usize, every: u64) -> Self {
        Self {
            own,
            simulation,
            inbox: (0..parts).map(|_| Parcel::default()).collect(),
            next_at: None,
            has_run: false,
            cause: None,
            every,
            next_look: every,
            handled_before: 0,
        }
    }

    /// Returns the time of its next event, arrivals in the inbox included.
    pub(super) fn next_at(&mut self) -> Instant {
        let arrival = || self.inbox.iter().map(Parcel::first_arrival).min().unwrap_or(Instant::NEVER);
        *self.next_at.get_or_insert_with(|| self.simulation.next_at().min(arrival()))
    }

    pub(super) fn standing(&mut self) -> Standing {
        Standing {
            next_at: self.next_at(),
            awaited: self.simulation.awaited(),
            marks: self.simulation.marks(),
            cause: self.cause,
        }
    }

    /// Returns true if members ran since the last call.
    pub(super) fn may_have_sent(&mut self) -> bool {
        std::mem::take(&mut self.has_run)
    }

    /// Takes the frames for another part, if there are any.
    pub(super) fn take_parcel(&mut self, to: usize) -> Option<Parcel> {
        let parcel = &mut self.simulation.parcels()[to];
        (!parcel.is_empty()).then(|| std::mem::take(parcel))
    }

    /// Takes frames from another part, and leaves an empty parcel. With `later` they are put into the queue at the begin of the window.
    pub(super) fn accept(&mut self, from: usize, parcel: &mut Parcel, later: bool) {
        self.next_at = None;
        if later {
            debug_assert!(self.inbox[from].is_empty(), "each window takes the inbox");
            std::mem::swap(parcel, &mut self.inbox[from]);
        } else {
            self.simulation.receive(parcel);
        }
    }

    /// Begins a window: members with unfinished jobs run.
    pub(super) fn begin(&mut self, until: Instant) -> Ending {
        (self.next_at, self.has_run) = (None, true);
        for parcel in self.inbox.iter_mut().filter(|parcel| !parcel.is_empty()) {
            self.simulation.receive(parcel);
        }
        self.simulation.begin_window(until);
        self.cause = self.simulation.run_awaited(until).err().map(|stalled| stalled.cause);
        self.ending()
    }

    /// Returns how far its jobs are.
    pub(super) fn ending(&self) -> Ending {
        let ends = self.cause.is_none() && self.simulation.awaited() == 0;
        Ending { ends, after: self.simulation.after_latest() }
    }

    /// Ends a window: all members run up to `end`.
    pub(super) fn finish(&mut self, end: Instant) {
        if self.cause.is_none() {
            self.cause = self.simulation.run_concerned(end).err().map(|stalled| stalled.cause);
        }
        self.simulation.end_window();
    }

    /// Returns the number of events handled since the last call.
    pub(super) fn take_handled(&mut self) -> u64 {
        let handled = self.simulation.events_handled();
        handled - std::mem::replace(&mut self.handled_before, handled)
    }

    pub(super) fn look_if_due(&mut self, look: &impl Fn(usize, &Simulation)) {
        let handled = self.simulation.events_handled();
        if handled >= self.next_look {
            self.next_look = handled.saturating_add(self.every);
            self.simulation.settle();
            look(self.own, &self.simulation);
        }
    }

    /// Ends the part. With `has_stalled`, its results contain for what its members wait.
    pub(super) fn into_end(mut self, has_stalled: bool, look: &impl Fn(usize, &Simulation)) -> PartEnd {
        self.simulation.settle();
        look(self.own, &self.simulation);
        let (waiting, waits) = if has_stalled {
            (self.simulation.waiting(), self.simulation.waits())
        } else {
            (Vec::new(), Vec::new())
        };
        PartEnd { results: self.simulation.take_part(), waiting, waits }
    }
}
