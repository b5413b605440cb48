//! Captures of a seat: the frames that it sends, their faults, and received frames that it does not use.

use rackloom::seat::wires::WatchPort;
use rackloom::wires::impaired::Watch;
use rackloom::{ArrivalWatch, Clock};
use rackloom_capture::{Heading, comment};
use rackloom_control::order::Start;
use rackloom_plan::Plan;
use rackloom_protocol::{Instant, MemberConfig};

use crate::capture;
use crate::capture::{CaptureWriter, FrameSink, WhenFull};

/// One end of a link, and the sink for its frames.
#[derive(Clone)]
struct End {
    sink: FrameSink,
    clock: Clock,
    interface: u32,
    name: String,
}

/// Capture sinks of a seat, by port.
pub(super) struct Captured {
    ends: Vec<End>,
    /// Dropped last: the drop writes all frames to the disk.
    _writer: CaptureWriter,
}

impl Captured {
    /// Opens one file per port, if frames are captured. The incarnation of the seat distinguishes its files
    /// from those of earlier processes.
    pub(super) fn begin(plan: &Plan, config: &MemberConfig, start: &Start) -> Result<Option<Self>, String> {
        let Some(files) = capture::files_of(&start.source.capture, start.origin_monotonic_ns) else {
            return Ok(None);
        };
        let edges = config.ports.iter().map(|port| port.edge);
        let links: Vec<_> = edges.clone().filter_map(|edge| Heading::of(plan, edge)).collect();
        let (writer, sinks) = CaptureWriter::begin(&files, start.incarnation, &links, WhenFull::Drop)
            .map_err(|error| {
                format!("cannot write a capture: {error}; hint: see that the folder is still there")
            })?;
        let clock = Clock::with_origin(start.origin_monotonic_ns);
        let ends = sinks.into_iter().zip(links).zip(edges).map(|((sink, link), edge)| {
            let interface = u32::from(plan.links[usize::from(edge)].edge.a != config.node);
            End { sink, clock, interface, name: link.ends[interface as usize].clone() }
        });
        Ok(Some(Self { ends: ends.collect(), _writer: writer }))
    }

    /// Returns a watch of sent frames. It keeps the capture writer.
    pub(super) fn port_watch(self) -> WatchPort {
        Box::new(move |port| self.watch(port))
    }

    fn watch(&self, port: usize) -> Watch {
        let end = self.ends[port].clone();
        Box::new(move |frame, verdict| {
            end.sink.write(|to| to.sent(end.clock.now(), end.interface, frame, verdict));
        })
    }

    /// Returns a watch of received frames that are not used.
    pub(super) fn drop_watch(&self) -> ArrivalWatch {
        let ends = self.ends.clone();
        Box::new(move |port, frame, reason| {
            let (Some(end), Some(reason)) = (ends.get(port.index()), reason) else { return };
            let now: Instant = end.clock.now();
            end.sink.write(|to| to.not_used(now, end.interface, frame, comment::refused(&end.name, reason)));
        })
    }
}
