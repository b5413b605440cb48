//! Connects the queue of jobs with processes, seats and files. It lives in the supervisor of a standing rack.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rackloom_control::request::{Answer, Nothing};
use rackloom_control::submitted::{
    JOB_VARIABLE, JobList, JobNumber, MEMORY_VARIABLE, NODES_VARIABLE, RACK_VARIABLE, RANK_VARIABLE,
    RANKS_VARIABLE, SEAT_VARIABLE, SEATS_VARIABLE, Submission,
};
use rackloom_plan::Plan;
use rackloom_protocol::MemberRole;
use rustix::process::Signal;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::process::{RankEnded, RankProcess, RankProgram};
use super::queue::{Action, JobQueue, Node, ProcessEnd, Refused, SeatView};
use crate::supervisor::Supervisor;

/// Time between two polls of jobs that have not ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Number of polls between two requests for the usage of nodes.
const POLLS_PER_USAGE: u32 = 20;

/// Jobs of a standing rack, and their processes.
pub(in crate::standing) struct JobRunner {
    queue: JobQueue,
    rack: String,
    /// Directory of the output of jobs that state none.
    output: PathBuf,
    /// Processes by job and rank.
    processes: BTreeMap<(u64, usize), RankProcess>,
    ends: UnboundedSender<RankEnded>,
    ended: UnboundedReceiver<RankEnded>,
    polls: Interval,
    polls_since_usage: u32,
    is_closed: bool,
}

impl JobRunner {
    /// Returns a runner without jobs. `spare`: members that jobs cannot use yet. Call it within a runtime.
    pub(in crate::standing) fn new(
        plan: &Plan,
        is_here: impl Fn(usize) -> bool,
        spare: &[usize],
        logs: &Path,
    ) -> Self {
        let members = plan.members.iter().enumerate();
        let members = members.filter(|(member, plan)| plan.role == MemberRole::Endpoint && is_here(*member));
        let node = |(member, plan): (usize, &rackloom_plan::MemberPlan)| Node {
            name: plan.name.clone(),
            member,
            tenant: plan.tenant.0,
            memory_bytes: plan.memory_bytes,
            is_spare: spare.contains(&member),
            job: None,
        };
        let (ends, ended) = unbounded_channel();
        let mut polls = interval(POLL_INTERVAL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            queue: JobQueue::new(members.map(node).collect(), &plan.graph()),
            rack: plan.name.clone(),
            output: logs.to_owned(),
            processes: BTreeMap::new(),
            ends,
            ended,
            polls,
            polls_since_usage: 0,
            is_closed: false,
        }
    }

    /// Returns true if a job waits, runs or ends.
    pub(in crate::standing) fn is_active(&self) -> bool {
        self.queue.is_active()
    }

    /// Returns true once no job is left and no job can be submitted any more.
    pub(in crate::standing) fn has_closed(&self) -> bool {
        self.is_closed && !self.is_active()
    }

    /// Waits until jobs can advance: a process has ended, or it is time for a poll. Cancel safe. [`JobRunner::advance`] follows.
    pub(in crate::standing) async fn wait(&mut self) -> Option<RankEnded> {
        tokio::select! {
            biased;
            ended = self.ended.recv() => ended,
            _ = self.polls.tick() => None,
        }
    }

    /// Advances all jobs.
    pub(in crate::standing) fn advance(&mut self, ended: Option<RankEnded>, supervisor: &mut Supervisor) {
        let now_ns = supervisor.clock.now().0;
        if let Some(RankEnded { job, rank, end }) = ended {
            self.processes.remove(&(job, rank));
            let actions = self.queue.process_ended(job, rank, end, now_ns);
            self.perform(actions, supervisor);
        }
        self.polls_since_usage += 1;
        if self.polls_since_usage >= POLLS_PER_USAGE {
            self.polls_since_usage = 0;
            supervisor.request_status(false);
        }
        self.poll(supervisor);
    }

    fn poll(&mut self, supervisor: &mut Supervisor) {
        let actions = self.queue.poll(supervisor.clock.now().0, &seats(supervisor));
        self.perform(actions, supervisor);
    }

    /// Handles the submission of a job.
    pub(in crate::standing) fn submit(
        &mut self,
        submission: Submission,
        supervisor: &mut Supervisor,
    ) -> Answer {
        if self.is_closed || !supervisor.rack.is_running() {
            return Answer::refuse("the rack is not up", Some("submit the job to a rack that is up"));
        }
        match self.queue.submit(submission, supervisor.clock.now().0, &seats(supervisor)) {
            Ok(job) => {
                self.poll(supervisor);
                Answer::Submitted(JobNumber { job })
            }
            Err(refused) => refuse(refused),
        }
    }

    /// Handles the cancellation of a job.
    pub(in crate::standing) fn cancel(&mut self, job: u64, supervisor: &mut Supervisor) -> Answer {
        match self.queue.cancel(job, "cancelled by the user", supervisor.clock.now().0) {
            Ok(actions) => {
                self.perform(actions, supervisor);
                Answer::Cancelled(JobNumber { job })
            }
            Err(refused) => refuse(refused),
        }
    }

    /// Handles the addition of a spare node.
    pub(in crate::standing) fn add_node(&mut self, name: &str, supervisor: &mut Supervisor) -> Answer {
        match self.queue.add_node(name) {
            Ok(()) => {
                self.poll(supervisor);
                Answer::NodeAdded(Nothing {})
            }
            Err(refused) => refuse(refused),
        }
    }

    /// Cancels all jobs, because the rack goes down.
    pub(in crate::standing) fn close(&mut self, supervisor: &mut Supervisor) {
        self.is_closed = true;
        let actions = self.queue.cancel_all("the rack went down", supervisor.clock.now().0);
        self.perform(actions, supervisor);
    }

    /// Returns jobs, accounts and nodes.
    pub(in crate::standing) fn list(&self, supervisor: &Supervisor) -> JobList {
        self.queue.list(supervisor.clock.now().0, &seats(supervisor))
    }

    /// Returns the list for the status of the rack, once a job has been submitted.
    pub(in crate::standing) fn list_if_used(&self, supervisor: &Supervisor) -> Option<JobList> {
        self.queue.is_in_use().then(|| self.list(supervisor))
    }

    /// Checks that this process may take the seat of a member: a process of a job takes the seat that the job gave it, and no other
    /// process takes the seat of a job.
    ///
    /// # Errors
    /// The refusal.
    pub(in crate::standing) fn check_taker(&self, member: usize, seat: &str, pid: u32) -> Result<(), Answer> {
        let holder = self.queue.job_on(member);
        let own = self.processes.iter().find(|(_, process)| process.contains(pid));
        let Some(((job, rank), _)) = own else {
            return match holder {
                None => Ok(()),
                Some(job) => Err(Answer::refuse(
                    format!("seat {seat} belongs to job {job}"),
                    Some("take a free seat; `rackloom job list` shows them"),
                )),
            };
        };
        let granted = self.queue.nodes_of(*job).get(*rank).map(|node| (node.member, node.name.clone()));
        match granted {
            Some((granted, _)) if granted == member => Ok(()),
            Some((_, name)) => Err(Answer::refuse(
                format!("this process of job {job} has seat {name}, and not {seat}"),
                Some("its seat is in the variable RACKLOOM_SEAT"),
            )),
            None => Err(Answer::refuse(format!("job {job} has ended"), None)),
        }
    }

    fn perform(&mut self, actions: Vec<Action>, supervisor: &mut Supervisor) {
        for action in actions {
            match action {
                Action::Start(job) => self.start(job, supervisor),
                Action::Terminate(job) => self.signal(job, Signal::TERM),
                Action::Kill(job) => self.signal(job, Signal::KILL),
                Action::Evict(member) => supervisor.evict(member),
                Action::Vacate(member) => supervisor.vacate(member),
                // The directory is there only if the job stated no other.
                Action::Forget(job) => drop(fs::remove_dir_all(self.directory_of(job))),
            }
        }
    }

    fn signal(&self, job: u64, signal: Signal) {
        let processes = self.processes.range((job, 0)..=(job, usize::MAX));
        processes.for_each(|(_, process)| process.signal(signal));
    }

    fn directory_of(&self, job: u64) -> PathBuf {
        self.output.join(format!("job-{job}"))
    }

    /// Starts the processes of a job. If one cannot be started, the job ends.
    fn start(&mut self, job: u64, supervisor: &mut Supervisor) {
        let Some(submission) = self.queue.job(job).map(|job| job.submission.clone()) else { return };
        let nodes: Vec<_> = self.queue.nodes_of(job).into_iter().cloned().collect();
        let directory = submission.output.clone().unwrap_or_else(|| self.directory_of(job));
        let made = DirBuilder::new().mode(0o700).recursive(true).create(&directory);
        let made =
            made.map_err(|error| format!("cannot write its output to {}: {error}", directory.display()));
        for (rank, node) in nodes.iter().enumerate() {
            let memory_bytes = submission.memory_bytes.unwrap_or(node.memory_bytes);
            supervisor.limit_memory(node.member, memory_bytes);
            let started = if self.queue.is_running(job) {
                let log = directory.join(format!("{}.log", node.name));
                made.clone().and_then(|()| {
                    let start = self.start_rank(job, rank, &submission, &nodes, memory_bytes, &log);
                    let process =
                        start.map_err(|error| format!("cannot start {}: {error}", submission.program))?;
                    self.queue.started(job, rank, process.pid(), log);
                    self.processes.insert((job, rank), process);
                    Ok(())
                })
            } else {
                Err("not started".to_owned())
            };
            if let Err(how) = started {
                let end = ProcessEnd { how, exit_code: None, signal: None };
                let actions = self.queue.process_ended(job, rank, end, supervisor.clock.now().0);
                self.perform(actions, supervisor);
            }
        }
    }

    fn start_rank(
        &self,
        job: u64,
        rank: usize,
        submission: &Submission,
        nodes: &[Node],
        memory_bytes: u64,
        log: &Path,
    ) -> io::Result<RankProcess> {
        let joined = |text: fn(&Node) -> String| nodes.iter().map(text).collect::<Vec<_>>().join(",");
        let variables = [
            (RACK_VARIABLE, self.rack.clone()),
            (SEAT_VARIABLE, nodes[rank].name.clone()),
            (JOB_VARIABLE, job.to_string()),
            (RANK_VARIABLE, rank.to_string()),
            (RANKS_VARIABLE, nodes.len().to_string()),
            (SEATS_VARIABLE, joined(|node| node.name.clone())),
            (NODES_VARIABLE, joined(|node| node.member.to_string())),
            (MEMORY_VARIABLE, memory_bytes.to_string()),
        ];
        // The variables of the job come last: a user cannot replace them.
        let own = variables.iter().map(|(name, value)| (OsStr::new(*name), OsStr::new(value.as_str())));
        let given = submission.environment.iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
        let program = RankProgram {
            job,
            rank,
            program: &submission.program,
            arguments: &submission.arguments,
            directory: &submission.directory,
            environment: given.chain(own).collect(),
        };
        RankProcess::start(&program, File::create(log)?, self.ends.clone())
    }
}

fn refuse(Refused { what, hint }: Refused) -> Answer {
    Answer::refuse(what, Some(hint))
}

/// Returns the seats of all members as jobs see them.
fn seats(supervisor: &Supervisor) -> Vec<SeatView> {
    let view = |seat: &crate::supervisor::rack::Seat| SeatView {
        is_taken: seat.is_alive() || seat.is_elsewhere(),
        bytes: seat.usage.bytes(),
        memory_high_bytes: seat.usage.memory_high_bytes,
    };
    supervisor.rack.seats.iter().map(view).collect()
}
