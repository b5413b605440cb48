//! Access to one part of a rack: windows of time, frames for other parts, results.

use rackloom_protocol::forwarding::waits::Wait;
use rackloom_protocol::{Instant, NodeId};

use super::Simulation;
use crate::fabric::{Elsewhere, Fabric};
use crate::frames::Parcel;
use crate::results::{MemberResults, PartResults, RunResults};
use crate::seat::{Activity, Body, Seat};
use crate::watchdog::{Marks, StallCause, Waiting};

impl Simulation {
    /// Sets which members are of other parts. Call it before the run.
    pub(crate) fn set_elsewhere(&mut self, elsewhere: Elsewhere) {
        self.fabric.set_elsewhere(elsewhere);
    }

    /// Returns the time of the next event, or `Instant::NEVER` if there is none.
    pub(crate) fn next_at(&self) -> Instant {
        self.fabric.queue.next_at().unwrap_or(Instant::NEVER)
    }

    /// Returns the end of the window that begins with the next event of the rack, at `at`.
    ///
    /// # Errors
    /// If nothing is scheduled, or there was no progress for too long.
    pub(crate) fn window_end(&self, at: Instant) -> Result<Instant, StallCause> {
        if at == Instant::NEVER {
            return Err(StallCause::NothingScheduled);
        }
        self.watchdog.check_progress(at)?;
        Ok(self.ahead_until(at, self.watchdog.deadline()).max(at + 1))
    }

    /// Returns the number of living endpoints whose job is not over.
    pub(crate) const fn awaited(&self) -> usize {
        self.awaited
    }

    /// Returns the number of events handled until now.
    pub(crate) const fn events_handled(&self) -> u64 {
        self.statistics.events_handled
    }

    /// Returns the times of the last progress of these members.
    pub(crate) const fn marks(&self) -> Marks {
        self.watchdog.marks()
    }

    /// Notes progress of members of other parts.
    pub(crate) const fn adopt(&mut self, marks: Marks) {
        self.watchdog.adopt(marks);
    }

    /// Returns the frames that have left for members of other parts, by part.
    pub(crate) fn parcels(&mut self) -> &mut [Parcel] {
        self.fabric.parcels()
    }

    /// Schedules the arrival of frames from another part.
    pub(crate) fn receive(&mut self, parcel: &mut Parcel) {
        self.fabric.receive(parcel);
    }

    /// Makes the copies between memories that have not been made yet, so that all bytes can be read.
    pub(crate) fn settle(&mut self) {
        self.memories.settle_all();
    }

    /// Returns what the living members wait for.
    pub(crate) fn waiting(&self) -> Vec<Waiting> {
        let alive = self.seats.iter().filter(|seat| seat.activity != Activity::Dead);
        let waiting = alive.map(|seat| Waiting {
            node: seat.node,
            name: self.name(seat.node).map_or_else(|| seat.node.to_string(), str::to_owned),
            job: seat.job.as_ref().filter(|_| seat.is_awaited()).map(|job| job.waiting_for()),
            endpoint: match &seat.body {
                Body::Endpoint(endpoint) => {
                    let local = seat.local.iter().flat_map(|local| local.waiting_for());
                    let device = seat.device.iter().filter_map(|device| device.waiting_for());
                    endpoint.waiting_for().into_iter().chain(local).chain(device).collect()
                }
                _ => Vec::new(),
            },
        });
        waiting.filter(|member| member.job.is_some() || !member.endpoint.is_empty()).collect()
    }

    /// Returns the waits of the living members for buffers.
    pub(crate) fn waits(&self) -> Vec<Wait> {
        let alive = self.seats.iter().filter(|seat| seat.activity != Activity::Dead);
        alive.flat_map(|seat| seat.body.member().waits()).collect()
    }

    /// Returns the name of a member, or `None` if it has none.
    pub(super) fn name(&self, node: NodeId) -> Option<&str> {
        self.names.get(node.index()).map(String::as_str)
    }

    /// Takes the results out of the rack, with the jobs. The rack can still be healed and probed.
    pub fn take_results(&mut self) -> RunResults {
        RunResults::join(vec![self.take_part()])
    }

    pub(crate) fn take_part(&mut self) -> PartResults {
        let (now, sums, statistics) = (self.now, self.trace_sums(), self.statistics());
        self.awaited = 0;
        PartResults {
            now,
            sums,
            statistics,
            events_omitted: self.recording.omitted(),
            events: self.recording.take(),
            members: self
                .seats
                .iter_mut()
                .map(|seat| (seat.node, results(now, seat, &self.fabric)))
                .collect(),
            links: self.fabric.statistics().copied().collect(),
            fault_transitions: self.fault_transitions().to_vec(),
        }
    }
}

fn results(now: Instant, seat: &mut Seat, fabric: &Fabric) -> MemberResults {
    let series = seat.recorded_series(now, fabric);
    let member = seat.body.member();
    let ports = (0..member.port_count() as u16).map(rackloom_protocol::PortId);
    MemberResults {
        state: seat.state(),
        ports: ports.map(|port| member.port_counters(port).clone()).collect(),
        paths: seat.paths,
        device: seat.device.as_mut().map(|device| device.in_use(now)),
        path_notes: seat.local.iter().flat_map(|local| local.notes()).collect(),
        series,
        job: seat.job.take(),
    }
}
