//! Tells a silent neighbour from one that had no processor.
//!
//! A member judges its neighbours by their heartbeats. On a busy host a live neighbour may be silent for longer than the timers allow,
//! because no processor was free for it. Its engine therefore looks at the host once a heartbeat is overdue: it reads how long the
//! neighbour's process has waited on a run queue, and how much processor time the host of this virtual machine took away (steal). That
//! time is passed to the protocol, which does not count it as silence. Evidence moves a death to a later time and never causes one.
//!
//! A neighbour on another host, or one whose `/proc` entry is hidden, gives no evidence; then only the watcher's own lateness counts.
//! Nothing is read as long as all heartbeats are on time. One silence is excused for [`EXCUSE_NS_MAX`] at most.

mod judge;
mod steal;
mod threads;

pub use threads::own_waited_ns;

use rackloom_protocol::{Instant, Member, PortId};

use judge::Suspicion;

/// Longest part of one silence that is excused: a neighbour that gets no processor for longer counts as dead.
pub const EXCUSE_NS_MAX: u64 = 60_000_000_000;
/// Shortest time between two samples of one neighbour, unless its link is about to go down.
const SAMPLE_INTERVAL_NS: u64 = 20_000_000;

/// What a member has seen of its host, for its report.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// Longest part of one neighbour's silence during which it had no processor.
    pub excused_max_ns: u64,
    /// Deaths that were put off because of such a part.
    pub deaths_put_off: u64,
}

/// Watches the processes at the other ends of a member's links.
#[derive(Debug, Default)]
pub(crate) struct Availability {
    neighbours: Vec<Neighbour>,
    shortage: Shortage,
}

#[derive(Debug, Default)]
struct Neighbour {
    process: Option<u32>,
    watch: Option<Watch>,
}

#[derive(Debug)]
struct Watch {
    /// The last heartbeat before the silence.
    since: Instant,
    sampled_at: Instant,
    suspicion: Suspicion,
    stolen_before_ns: u64,
}

impl Availability {
    /// Sets which process of this host is at the other end of a port. `None`: it is on another host, or unknown.
    pub(crate) fn set_process(&mut self, port: PortId, process: Option<u32>) {
        if self.neighbours.len() <= port.index() {
            self.neighbours.resize_with(port.index() + 1, Neighbour::default);
        }
        self.neighbours[port.index()] = Neighbour { process, watch: None };
    }

    /// What was seen so far.
    #[must_use]
    pub(crate) const fn shortage(&self) -> Shortage {
        self.shortage
    }

    /// Looks at the neighbours whose heartbeats are overdue and passes to the member what excuses them. To be called before the
    /// member's timeout is handled.
    pub(crate) fn excuse(&mut self, now: Instant, member: &mut dyn Member) {
        for (index, neighbour) in self.neighbours.iter_mut().enumerate() {
            let port = PortId(index as u16);
            let Some(process) = neighbour.process else { continue };
            let Some(overdue) = member.link(port).and_then(|link| link.overdue(now)) else {
                neighbour.watch = None;
                continue;
            };
            let is_decisive = now >= overdue.dead_at;
            let Some(excused_ns) = neighbour.look(now, process, overdue.since, is_decisive) else { continue };
            let excused_ns = excused_ns.min(EXCUSE_NS_MAX);
            member.excuse_silence(now, port, excused_ns);
            self.shortage.excused_max_ns = self.shortage.excused_max_ns.max(excused_ns);
            let dead_at = member.link(port).and_then(|link| link.overdue(now)).map(|overdue| overdue.dead_at);
            if is_decisive && dead_at.is_some_and(|dead_at| now < dead_at) {
                self.shortage.deaths_put_off += 1;
            }
        }
    }
}

impl Neighbour {
    /// How much of the silence since then is excused. `None`: nothing new is known.
    fn look(&mut self, now: Instant, process: u32, since: Instant, is_decisive: bool) -> Option<u64> {
        if self.watch.as_ref().is_some_and(|watch| watch.since != since) {
            self.watch = None;
        }
        let Some(watch) = &mut self.watch else {
            let suspicion = Suspicion::begin(now, &threads::sample(process)?);
            let stolen_before_ns = steal::stolen_max_ns();
            self.watch = Some(Watch { since, sampled_at: now, suspicion, stolen_before_ns });
            return None;
        };
        if !is_decisive && now.since(watch.sampled_at) < SAMPLE_INTERVAL_NS {
            return None;
        }
        watch.sampled_at = now;
        let waited_ns = watch.suspicion.observe(now, &threads::sample(process)?);
        let stolen_ns = steal::stolen_max_ns().saturating_sub(watch.stolen_before_ns);
        // What the hypervisor took from a processor, it took from whatever ran there: it excuses a live process only.
        let stolen_ns = if waited_ns > 0 { stolen_ns } else { 0 };
        Some(waited_ns.saturating_add(stolen_ns))
    }
}
