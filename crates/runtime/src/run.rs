//! A rack of processes for the length of one job.

use rackloom_control::source::Source;
use rackloom_jobs::report::EventRecord;
use rackloom_plan::Plan;
use rackloom_plan::faults::FaultScript;

use crate::machine::directory::{Claim, RunDirectory};
use crate::machine::program::Program;
use crate::outcome::failure::Failure;
use crate::outcome::progress::RunProgress;
use crate::request::options::{LogOptions, RunOptions};
use crate::request::work::RackRequest;
use crate::supervisor::{Alarms, Logs, Milestone, Supervisor, runtime};
pub use crate::supervisor::{Conclusion, LOG_VARIABLE, sweep_names};

/// Receiver of the events of a running rack. The supervisor's thread calls it and waits for each call.
/// Members and frames do not wait.
pub trait RackObserver {
    /// All processes have been started. The program may start threads from now on.
    fn started(&mut self, plan: &Plan) {
        let _ = plan;
    }

    /// Every link has been up at least once.
    ///
    /// # Errors
    /// Ends the run with this failure.
    fn links_up(&mut self, rack: &RackUp<'_>) -> Result<(), Failure> {
        let _ = rack;
        Ok(())
    }

    /// The job has made progress.
    fn progress(&mut self, progress: RunProgress) {
        let _ = progress;
    }

    /// An event was reported to the supervisor while the rack runs, such as the begin of a fault.
    fn event(&mut self, record: &EventRecord) {
        let _ = record;
    }

    /// A problem was found that does not end the run.
    fn warning(&mut self, warning: &str) {
        let _ = warning;
    }
}

/// Rack whose links have all been up.
#[derive(Debug)]
pub struct RackUp<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Process of each member, in the plan's order; 0 for members on other hosts.
    pub pids: Vec<u32>,
    /// Number of links with an end on this host.
    pub links: usize,
    /// Time since the start, in nanoseconds.
    pub elapsed_ns: u64,
    /// Origin of the rack's clock, on the host's monotonic clock, in nanoseconds.
    pub origin_monotonic_ns: u64,
}

/// Checked rack that has not been started.
pub struct Run {
    source: Source,
    plan: Plan,
    faults: Option<FaultScript>,
    logs: LogOptions,
}

impl Run {
    /// Reads and checks everything, and makes the directories of results. Starts nothing.
    ///
    /// # Errors
    /// The options or a file are wrong, or this machine cannot hold the rack.
    pub fn prepare(options: &RunOptions) -> Result<Self, Failure> {
        let request = RackRequest::read(&options.file, &options.overrides)?
            .with_command(options.command.clone())
            .for_processes(&options.processes)?
            .with_workload(options.workload.clone());
        let work = request.ready_work(&options.processes)?;
        let source = request.with_snapshots(&options.checkpoints, &work.plan)?.into_source();
        Ok(Self { source, plan: work.plan, faults: work.faults, logs: options.logs.clone() })
    }

    /// Returns the plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs the rack until its job has ended. The calling process must have one thread: it may enter a network namespace.
    ///
    /// # Errors
    /// A process, a wire or a namespace could not be made, or the observer ended the run.
    pub fn execute(self, program: &Program, observer: &mut dyn RackObserver) -> Result<Conclusion, Failure> {
        let Self { source, plan, faults, logs } = self;
        let logs = Logs::new(logs.directory.as_deref(), logs.level.as_deref())?;
        // This must precede the wires: making them may take the process into a namespace in which it is
        // another user.
        let claim = claim(&plan)?;
        let mut supervisor = Supervisor::prepare(source, plan, faults, logs, program.clone())?;
        if let Some(claim) = claim {
            supervisor.share_in_claimed(claim);
        }
        let runtime = runtime()?;
        {
            let _within = runtime.enter();
            supervisor.fill_seats()?;
        }
        runtime.block_on(async {
            let mut alarms = Alarms::set()?;
            observer.started(&supervisor.plan);
            loop {
                match supervisor.next_milestone(&mut alarms).await {
                    Milestone::LinksUp => observer.links_up(&rack_up(&supervisor))?,
                    Milestone::Progress(progress) => observer.progress(progress),
                    Milestone::Happened(record) => observer.event(&record),
                    Milestone::Warning(warning) => observer.warning(&warning),
                    Milestone::StatusKnown | Milestone::Left(_) => {}
                    Milestone::Over => return Ok::<_, Failure>(()),
                }
            }
        })?;
        supervisor.conclude()
    }
}

/// Makes a directory for this run, if nodes of one server share memory over it.
fn claim(plan: &Plan) -> Result<Option<Claim>, Failure> {
    if !plan.has_local_paths() {
        return Ok(None);
    }
    RunDirectory::open()?.claim(&format!("run-{}", std::process::id())).map(Some)
}

fn rack_up(supervisor: &Supervisor) -> RackUp<'_> {
    RackUp {
        plan: &supervisor.plan,
        pids: supervisor.rack.seats.iter().map(|seat| seat.pid).collect(),
        links: supervisor.here.links(&supervisor.plan),
        elapsed_ns: supervisor.clock.now().0,
        origin_monotonic_ns: supervisor.clock.origin_ns(),
    }
}
