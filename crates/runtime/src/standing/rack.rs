//! Control of a standing rack: status, faults, seats, end.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rackloom_control::request::{
    Answer, EventList, Inject, Injection, Join, Nothing, RackStatus, Request, StatusOptions,
};
use rackloom_control::submitted::{JobList, JobNumber, JobStatus, Submission};
use rackloom_jobs::report::Report;

use super::{client, links};
use crate::machine::directory::{NameState, RunDirectory};
use crate::outcome::failure::Failure;

/// Longest time for a rack to answer a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between the two samples from which rates are computed. A round of counters takes a few milliseconds,
/// so the samples differ, and the command does not wait long.
const RATE_INTERVAL: Duration = Duration::from_millis(200);
/// Longest time for a rack to end: its jobs end, and its members report and leave.
const END_TIMEOUT: Duration = Duration::from_secs(40);
/// Longest time between the end of a supervisor's connections and the release of its name.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two requests for the state of a job.
const JOB_INTERVAL: Duration = Duration::from_millis(50);

/// Interval between two looks at the end of a rack.
const END_INTERVAL: Duration = Duration::from_millis(10);

/// Returns true if a rack that was up, and does not answer now, was taken down in order. Waits for an end that has begun. False for a rack whose
/// supervisor was killed or goes on.
#[must_use]
pub fn was_taken_down(name: &str) -> bool {
    let Ok(run) = RunDirectory::open() else { return false };
    let deadline = Instant::now() + LEAVE_TIMEOUT;
    loop {
        match run.name_state(name) {
            Ok(NameState::Free) => return true,
            // A supervisor closes its connections shortly before it releases its name.
            Ok(NameState::Taken) if Instant::now() < deadline => std::thread::sleep(END_INTERVAL),
            Ok(NameState::Taken | NameState::Left) | Err(_) => return false,
        }
    }
}

/// Connection to the control socket of a standing rack of this user.
#[derive(Debug)]
pub struct StandingRack {
    name: String,
    stream: UnixStream,
}

impl StandingRack {
    pub(super) fn new(name: String, stream: UnixStream) -> Self {
        Self { name, stream }
    }

    pub(super) fn into_stream(self) -> UnixStream {
        self.stream
    }

    /// Connects to the rack of this name.
    ///
    /// # Errors
    /// No rack of this name is up, or it cannot be reached.
    pub fn named(name: &str) -> Result<Self, Failure> {
        match RunDirectory::open()?.connect(name)? {
            Some(stream) => Ok(Self::new(name.to_owned(), stream)),
            None => Err(Failure::bad_input(format!("no rack named {name} is up"))
                .hint("`rackloom status` lists the racks that are up")),
        }
    }

    /// Connects to every rack that is up, in the order of their names.
    ///
    /// # Errors
    /// The run directory cannot be read.
    pub fn all() -> Result<Vec<Self>, Failure> {
        let racks = RunDirectory::open()?.running()?;
        Ok(racks.into_iter().map(|(name, stream)| Self::new(name, stream)).collect())
    }

    /// Returns the name of the rack.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the status of the rack, without rates.
    ///
    /// # Errors
    /// The rack does not answer.
    pub fn status(&self) -> Result<RackStatus, Failure> {
        self.status_with(StatusOptions::default())
    }

    /// Returns the status of the rack without rates and paths, for callers that need it again and again.
    ///
    /// # Errors
    /// The rack does not answer.
    pub fn brief_status(&self) -> Result<RackStatus, Failure> {
        self.status_with(StatusOptions { brief: true })
    }

    fn status_with(&self, options: StatusOptions) -> Result<RackStatus, Failure> {
        match self.request(&Request::Status(options), ANSWER_TIMEOUT)? {
            Answer::Status(status) => Ok(*status),
            _ => Err(client::unexpected_answer(&self.name)),
        }
    }

    /// Injects the faults of a script. Returns the number of its events, once the members have received them.
    /// `inline`: the script was made from options, so errors name no lines of it.
    ///
    /// # Errors
    /// The rack refuses the script, or does not answer.
    pub fn inject(&self, script: String, inline: bool) -> Result<usize, Failure> {
        match self.request(&Request::Inject(Inject { script, inline }), ANSWER_TIMEOUT)? {
            Answer::Injected(Injection { events }) => Ok(events),
            _ => Err(client::unexpected_answer(&self.name)),
        }
    }

    /// Returns the latest events of the rack.
    ///
    /// # Errors
    /// The rack does not answer.
    pub fn events(&self) -> Result<EventList, Failure> {
        match self.request(&Request::Events(Nothing {}), ANSWER_TIMEOUT)? {
            Answer::Events(list) => Ok(list),
            _ => Err(client::unexpected_answer(&self.name)),
        }
    }

    /// Ends all faults that are in effect or still to come. Members that are dead stay dead, and revoked keys stay revoked.
    ///
    /// # Errors
    /// The rack does not answer.
    pub fn end_faults(&self) -> Result<(), Failure> {
        match self.request(&Request::EndFaults(Nothing {}), ANSWER_TIMEOUT)? {
            Answer::FaultsEnded(Nothing {}) => Ok(()),
            _ => Err(client::unexpected_answer(&self.name)),
        }
    }

    /// Makes one member leave in order. The rack stays, and the seat is vacant afterwards.
    ///
    /// # Errors
    /// The rack has no such seat, the seat is vacant, or the rack does not answer.
    pub fn leave(&self, seat: &str) -> Result<(), Failure> {
        match self.request(&Request::Leave(Join { seat: seat.to_owned() }), END_TIMEOUT)? {
            Answer::Left(Nothing {}) => Ok(()),
            _ => Err(client::unexpected_answer(&self.name)),
        }
    }

    /// Submits a job. Returns its number.
    ///
    /// # Errors
    /// The rack cannot run the job, its queue is full, or it does not answer.
    pub fn submit(&self, submission: Submission) -> Result<u64, Failure> {
        match self.request(&Request::SubmitJob(Box::new(submission)), ANSWER_TIMEOUT)? {
            Answer::Submitted(JobNumber { job }) => Ok(job),
            _ => Err(client::unexpected_answer(&self.name)),
        }
    }

    /// Returns the jobs of the rack, the accounts of its tenants and the use of its nodes.
    ///
    /// # Errors
    /// The rack does not answer.
    pub fn jobs(&self) -> Result<JobList, Failure> {
        match self.request(&Request::ListJobs(Nothing {}), ANSWER_TIMEOUT)? {
            Answer::Jobs(list) => Ok(*list),
            _ => Err(client::unexpected_answer(&self.name)),
        }
    }

    /// Waits until a job has ended. Returns its status.
    ///
    /// # Errors
    /// The rack has no such job, or has forgotten it, or does not answer.
    pub fn wait_for_job(&self, job: u64) -> Result<JobStatus, Failure> {
        loop {
            let list = self.jobs()?;
            let found = list.jobs.into_iter().find(|found| found.job == job);
            let found = found.ok_or_else(|| {
                Failure::bad_input(format!("rack {} has no job {job}", self.name))
                    .hint("`rackloom job list` shows the jobs")
            })?;
            if found.state.has_ended() {
                return Ok(found);
            }
            std::thread::sleep(JOB_INTERVAL);
        }
    }

    /// Cancels a job. Its processes have not ended yet on return.
    ///
    /// # Errors
    /// The rack has no such job, the job has ended, or the rack does not answer.
    pub fn cancel_job(&self, job: u64) -> Result<(), Failure> {
        match self.request(&Request::CancelJob(JobNumber { job }), ANSWER_TIMEOUT)? {
            Answer::Cancelled(_) => Ok(()),
            _ => Err(client::unexpected_answer(&self.name)),
        }
    }

    /// Adds a spare node, for the next jobs.
    ///
    /// # Errors
    /// The rack has no such spare node, or does not answer.
    pub fn add_node(&self, node: &str) -> Result<(), Failure> {
        match self.request(&Request::AddNode(Join { seat: node.to_owned() }), ANSWER_TIMEOUT)? {
            Answer::NodeAdded(_) => Ok(()),
            _ => Err(client::unexpected_answer(&self.name)),
        }
    }

    /// Ends the rack. Returns its report once its supervisor has ended.
    ///
    /// # Errors
    /// The rack does not answer, or has no report.
    pub fn down(&self) -> Result<Report, Failure> {
        let supervisor = client::peer(&self.stream);
        let Answer::Down(report) = self.request_down()? else {
            return Err(client::unexpected_answer(&self.name));
        };
        if let Some(supervisor) = supervisor {
            client::wait_for_end(&supervisor, END_TIMEOUT);
        }
        Ok(*report)
    }

    pub(super) fn request_down(&self) -> Result<Answer, Failure> {
        self.request(&Request::Down(Nothing {}), END_TIMEOUT)
    }

    fn request(&self, request: &Request, timeout: Duration) -> Result<Answer, Failure> {
        client::request(&self.stream, &self.name, request, timeout)
    }

    /// Returns a status that is a little later than `earlier`, with the rates in between. If the rack does
    /// not answer again, returns `earlier`, which has no rates: the rack may be ending, or accept one request
    /// only.
    fn with_rates(&self, earlier: RackStatus) -> RackStatus {
        match self.status() {
            Ok(mut later) => {
                links::add_rates(&earlier, &mut later);
                later
            }
            Err(_) => earlier,
        }
    }
}

/// Returns the status of each rack that answers, with rates over about 200 ms, and the first failure of the
/// others.
#[must_use]
pub fn status_with_rates(racks: Vec<StandingRack>) -> (Vec<RackStatus>, Option<Failure>) {
    status_after(racks, StandingRack::status)
}

/// Returns what [`status_with_rates`] does, for a caller that needs it again and again. The earlier of the two samples is a brief one, which
/// sends no request to members that were looked at within the last seconds. So the time between the samples is up to 600 ms longer.
#[must_use]
pub fn watched_status(racks: Vec<StandingRack>) -> (Vec<RackStatus>, Option<Failure>) {
    status_after(racks, StandingRack::brief_status)
}

fn status_after(
    racks: Vec<StandingRack>,
    sample: fn(&StandingRack) -> Result<RackStatus, Failure>,
) -> (Vec<RackStatus>, Option<Failure>) {
    let (mut answered, mut first_failure) = (Vec::new(), None);
    for rack in racks {
        match sample(&rack) {
            Ok(status) => answered.push((rack, status)),
            // A failure of one rack does not hide the others.
            Err(failure) => first_failure = first_failure.or(Some(failure)),
        }
    }
    if !answered.is_empty() {
        std::thread::sleep(RATE_INTERVAL);
    }
    (answered.into_iter().map(|(rack, status)| rack.with_rates(status)).collect(), first_failure)
}
