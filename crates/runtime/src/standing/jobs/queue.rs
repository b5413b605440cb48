//! Queue of submitted jobs as a pure state machine. It starts no process and reads no clock.
//!
//! Inputs are submissions, cancellations, ends of processes and polls; outputs are [`Action`]s. Jobs of one tenant start in the order of
//! their submission. Tenants have no node in common, so each has a queue of its own. A job holds its nodes from its start until all its
//! processes have ended and no process holds one of its seats.
//!
//! | state | event | next state |
//! |---|---|---|
//! | queued | its nodes are free, and it is the first of its tenant | running |
//! | queued | cancel | cancelled |
//! | running | every process ended with code 0 | ending, outcome passed |
//! | running | a process ended otherwise, or the time is over | ending, outcome failed; the others get SIGTERM |
//! | running | cancel | ending, outcome cancelled; all get SIGTERM |
//! | ending | [`GRACE_NS`] have passed | ending; SIGKILL |
//! | ending | no process and no taken seat is left | the outcome |

mod connected;

use std::collections::BTreeMap;

use rackloom_control::submitted::{
    JobList, JobNode, JobState, JobStatus, RankStatus, Submission, TIME_MAX_NS, TenantAccount,
};
use rackloom_protocol::Graph;

use self::connected::Connections;
use crate::units;

/// Maximum number of jobs that wait.
pub(super) const QUEUED_MAX: usize = 64;
/// Number of ended jobs that are kept.
pub(super) const ENDED_MAX: usize = 64;
/// Time between SIGTERM and SIGKILL.
pub(super) const GRACE_NS: u64 = 5_000_000_000;

const TERMINATE: i32 = rustix::process::Signal::TERM.as_raw();
const KILL: i32 = rustix::process::Signal::KILL.as_raw();

/// GPU node of this host.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: String,
    /// Number in the plan.
    pub(super) member: usize,
    pub(super) tenant: u16,
    pub(super) memory_bytes: u64,
    /// True until the node is added.
    pub(super) is_spare: bool,
    /// Job that holds the node.
    pub(super) job: Option<u64>,
}

/// Seat of a node at a poll.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeatView {
    /// True if a process holds the seat.
    pub(super) is_taken: bool,
    /// Bytes moved by the processes that have held the seat since it was vacant.
    pub(super) bytes: u64,
    /// Most bytes that one of them had registered at one time.
    pub(super) memory_high_bytes: u64,
}

/// End of a process.
#[derive(Clone, Debug)]
pub(super) struct ProcessEnd {
    /// Description, such as `exited with code 3`.
    pub(super) how: String,
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
}

/// Effect on processes, seats and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Start the processes of this job.
    Start(u64),
    /// Send SIGTERM to the processes of this job.
    Terminate(u64),
    /// Send SIGKILL to the processes of this job.
    Kill(u64),
    /// Close the control socket of the process that holds the seat of this member.
    Evict(usize),
    /// Make the seat of this member vacant.
    Vacate(usize),
    /// Remove the output of this job, which is not listed any more.
    Forget(u64),
}

/// Reason why a request is refused, and a remedy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) what: String,
    pub(super) hint: &'static str,
}

impl Refused {
    fn new(what: impl Into<String>, hint: &'static str) -> Self {
        Self { what: what.into(), hint }
    }
}

#[derive(Debug)]
pub(super) struct Job {
    pub(super) status: JobStatus,
    pub(super) submission: Submission,
    /// Nodes by rank, as indices of [`JobQueue::nodes`]; empty before the start.
    nodes: Vec<usize>,
    /// Final state, once it is known.
    outcome: Option<JobState>,
    /// Time of SIGKILL.
    kill_at_ns: Option<u64>,
    /// Cause of a failure, if it is an exit code. An exit can follow from the death of another process whose end is noticed later.
    exit: Option<String>,
}

impl Job {
    fn has_live_process(&self) -> bool {
        self.status.ranks.iter().any(|rank| rank.end.is_none())
    }
}

/// All jobs of a rack.
#[derive(Debug)]
pub(super) struct JobQueue {
    nodes: Vec<Node>,
    connections: Connections,
    jobs: BTreeMap<u64, Job>,
    last: u64,
    accounts: BTreeMap<u16, TenantAccount>,
}

impl JobQueue {
    /// Returns an empty queue. `graph`: all members of the rack, those of other hosts included.
    pub(super) fn new(nodes: Vec<Node>, graph: &Graph) -> Self {
        Self {
            nodes,
            connections: Connections::new(graph),
            jobs: BTreeMap::new(),
            last: 0,
            accounts: BTreeMap::new(),
        }
    }

    /// Returns true if a job has been submitted.
    pub(super) const fn is_in_use(&self) -> bool {
        self.last > 0
    }

    /// Returns true if a job waits, runs or ends.
    pub(super) fn is_active(&self) -> bool {
        self.jobs.values().any(|job| !job.status.state.has_ended())
    }

    /// Returns true if processes of a job may run.
    pub(super) fn is_running(&self, job: u64) -> bool {
        self.jobs.get(&job).is_some_and(|job| job.status.state == JobState::Running)
    }

    pub(super) fn job(&self, job: u64) -> Option<&Job> {
        self.jobs.get(&job)
    }

    /// Returns the nodes of a job that has started, by rank.
    pub(super) fn nodes_of(&self, job: u64) -> Vec<&Node> {
        let nodes = self.jobs.get(&job).map_or(&[][..], |job| &job.nodes);
        nodes.iter().map(|node| &self.nodes[*node]).collect()
    }

    /// Returns the job that holds this member.
    pub(super) fn job_on(&self, member: usize) -> Option<u64> {
        self.nodes.iter().find(|node| node.member == member)?.job
    }

    /// Adds a job to the queue, if it can run on this rack. Returns its number.
    pub(super) fn submit(
        &mut self,
        submission: Submission,
        now_ns: u64,
        seats: &[SeatView],
    ) -> Result<u64, Refused> {
        let tenant = self.tenant_of(&submission)?;
        let count = self.check_nodes(&submission, tenant)?;
        self.check_paths(&submission, seats)?;
        check_directories(&submission)?;
        let waiting = self.jobs.values().filter(|job| job.status.state == JobState::Queued).count();
        if waiting >= QUEUED_MAX {
            let what = format!("the queue is full: {QUEUED_MAX} jobs wait");
            return Err(Refused::new(what, "cancel some of them, or submit again when one has started"));
        }
        self.last += 1;
        let job = self.last;
        let named = |name: &String| RankStatus { node: name.clone(), ..RankStatus::default() };
        let status = JobStatus {
            job,
            tenant,
            command: [std::slice::from_ref(&submission.program), &submission.arguments[..]].concat(),
            count,
            ranks: submission.nodes.iter().map(named).collect(),
            memory_bytes: submission.memory_bytes,
            time_max_ns: submission.time_max_ns.unwrap_or(TIME_MAX_NS),
            submitted_ns: now_ns,
            ..JobStatus::default()
        };
        let (nodes, outcome, kill_at_ns, exit) = Default::default();
        self.jobs.insert(job, Job { status, submission, nodes, outcome, kill_at_ns, exit });
        Ok(job)
    }

    fn tenant_of(&self, submission: &Submission) -> Result<u16, Refused> {
        let mut tenant = submission.tenant;
        for name in &submission.nodes {
            let Some(node) = self.nodes.iter().find(|node| node.name == *name) else {
                let what = format!("the rack has no GPU node named {name} on this host");
                return Err(Refused::new(what, "`rackloom job list` shows the nodes"));
            };
            if *tenant.get_or_insert(node.tenant) != node.tenant {
                let wanted = tenant.unwrap_or_default();
                let what = format!("node {name} is of tenant {}, not of tenant {wanted}", node.tenant);
                return Err(Refused::new(what, "the rack file gives each node its tenant; a job has one"));
            }
        }
        Ok(tenant.unwrap_or_default())
    }

    /// Checks that the nodes exist and have the memory. Returns their number.
    fn check_nodes(&self, submission: &Submission, tenant: u16) -> Result<usize, Refused> {
        let Submission { nodes, count, memory_bytes, .. } = submission;
        if nodes.is_empty() == count.is_none() {
            return Err(Refused::new("a job has names of nodes or a count", "use --nodes or --count"));
        }
        let own = || self.nodes.iter().filter(|node| node.tenant == tenant);
        let wanted = memory_bytes.unwrap_or(0);
        if let Some(count) = *count {
            let (all, large) = (own().count(), own().filter(|node| node.memory_bytes >= wanted).count());
            return match count {
                0 => Err(Refused::new("a job has at least one node", "use --count 1 or more")),
                count if count <= large => Ok(count),
                count if count <= all => {
                    let what = format!(
                        "{count} nodes with {} of memory are more than the {large} of tenant {tenant} on this host",
                        units::bytes(wanted)
                    );
                    Err(Refused::new(what, "give the job less memory, or the nodes of the rack file more"))
                }
                count => {
                    let what =
                        format!("{count} nodes are more than the {all} of tenant {tenant} on this host");
                    Err(Refused::new(what, "`rackloom job list` shows the nodes"))
                }
            };
        }
        for (index, name) in nodes.iter().enumerate() {
            if nodes[..index].contains(name) {
                return Err(Refused::new(
                    format!("node {name} is named twice"),
                    "a node has one process of a job",
                ));
            }
            let node = own().find(|node| node.name == *name);
            if let Some(node) = node.filter(|node| node.memory_bytes < wanted) {
                let [wanted, has] = [wanted, node.memory_bytes].map(units::bytes);
                let what =
                    format!("a quota of {wanted} is more than the {has} of memory that node {name} has");
                return Err(Refused::new(
                    what,
                    "give the job less memory, or the nodes of the rack file more",
                ));
            }
        }
        Ok(nodes.len())
    }

    /// Checks that named nodes reach each other. A node that is free now could forward later, but the job would wait for a process that
    /// may never come.
    fn check_paths(&self, submission: &Submission, seats: &[SeatView]) -> Result<(), Refused> {
        let named = |name: &String| self.nodes.iter().find(|node| node.name == *name);
        let members: Vec<_> = submission.nodes.iter().filter_map(named).map(|node| node.member).collect();
        match self.connections.find_apart(&members, |member| self.forwards(member, seats)) {
            None => Ok(()),
            Some([from, to]) => {
                let [from, to] = [from, to].map(|position| &submission.nodes[position]);
                let what = format!("{from} does not reach {to}: nodes between them have no process");
                Err(Refused::new(what, "name nodes that are connected, or those between them as well"))
            }
        }
    }

    /// Adds a spare node, for the next jobs.
    pub(super) fn add_node(&mut self, name: &str) -> Result<(), Refused> {
        let hint = "`rackloom job list` shows the nodes";
        let node = self.nodes.iter_mut().find(|node| node.name == name);
        let node = node.ok_or_else(|| {
            Refused::new(format!("the rack has no GPU node named {name} on this host"), hint)
        })?;
        if !node.is_spare {
            return Err(Refused::new(format!("node {name} is no spare node"), hint));
        }
        node.is_spare = false;
        Ok(())
    }

    /// Cancels a job.
    pub(super) fn cancel(&mut self, job: u64, reason: &str, now_ns: u64) -> Result<Vec<Action>, Refused> {
        let hint = "`rackloom job list` shows the jobs";
        let found =
            self.jobs.get_mut(&job).ok_or_else(|| Refused::new(format!("there is no job {job}"), hint))?;
        match found.status.state {
            JobState::Queued => {
                (found.status.state, found.status.ended_ns) = (JobState::Cancelled, Some(now_ns));
                found.status.reason = Some(reason.to_owned());
                Ok(Vec::new())
            }
            JobState::Running => Ok(self.end(job, JobState::Cancelled, Some(reason.to_owned()), now_ns)),
            JobState::Ending => Ok(Vec::new()),
            ended => Err(Refused::new(format!("job {job} has ended already: {}", ended.name()), hint)),
        }
    }

    /// Cancels all jobs.
    pub(super) fn cancel_all(&mut self, reason: &str, now_ns: u64) -> Vec<Action> {
        let jobs: Vec<_> = self.jobs.keys().copied().collect();
        jobs.into_iter().filter_map(|job| self.cancel(job, reason, now_ns).ok()).flatten().collect()
    }

    /// Ends a running job: its outcome is known.
    fn end(&mut self, job: u64, outcome: JobState, reason: Option<String>, now_ns: u64) -> Vec<Action> {
        let Some(found) = self.jobs.get_mut(&job) else { return Vec::new() };
        debug_assert!(found.status.state == JobState::Running && outcome.has_ended());
        (found.status.state, found.status.reason) = (JobState::Ending, reason);
        found.outcome = Some(outcome);
        found.kill_at_ns = Some(now_ns.saturating_add(GRACE_NS));
        if found.has_live_process() { vec![Action::Terminate(job)] } else { Vec::new() }
    }

    /// Records the process of a rank.
    pub(super) fn started(&mut self, job: u64, rank: usize, pid: u32, log: std::path::PathBuf) {
        if let Some(rank) = self.jobs.get_mut(&job).and_then(|job| job.status.ranks.get_mut(rank)) {
            (rank.pid, rank.log) = (Some(pid), Some(log));
        }
    }

    /// Handles the end of a process, or its failure to start.
    pub(super) fn process_ended(
        &mut self,
        job: u64,
        rank: usize,
        end: ProcessEnd,
        now_ns: u64,
    ) -> Vec<Action> {
        let Some(found) = self.jobs.get_mut(&job) else { return Vec::new() };
        let Some(status) = found.status.ranks.get_mut(rank) else { return Vec::new() };
        let ProcessEnd { how, exit_code, signal } = end;
        let line = format!("{}: {how}", status.node);
        (status.end, status.exit_code, status.signal) = (Some(how), exit_code, signal);
        if found.status.state != JobState::Running {
            let is_kill_due = found.kill_at_ns.is_some_and(|at_ns| now_ns >= at_ns);
            let is_cause = signal.is_some_and(|signal| match signal {
                TERMINATE => false,
                KILL => !is_kill_due,
                _ => true,
            });
            if let Some(exit) = found.exit.take_if(|_| is_cause) {
                found.status.reason = Some(format!("{line}; {exit}"));
            }
            return Vec::new();
        }
        if exit_code != Some(0) {
            found.exit = exit_code.map(|_| line.clone());
            return self.end(job, JobState::Failed, Some(line), now_ns);
        }
        if found.has_live_process() { Vec::new() } else { self.end(job, JobState::Passed, None, now_ns) }
    }

    /// Advances all jobs. `seats`: the seat of each member, by number in the plan.
    pub(super) fn poll(&mut self, now_ns: u64, seats: &[SeatView]) -> Vec<Action> {
        self.read_usage(seats);
        let mut actions = Vec::new();
        let live: Vec<_> =
            self.jobs.values().filter(|job| !job.nodes.is_empty()).map(|job| job.status.job).collect();
        for job in live {
            actions.extend(self.poll_job(job, now_ns, seats));
        }
        actions.extend(self.start_jobs(now_ns, seats));
        actions.extend(self.forget());
        actions
    }

    /// Copies the usage of the nodes to the jobs, and updates the high marks of the tenants.
    fn read_usage(&mut self, seats: &[SeatView]) {
        let mut in_use = BTreeMap::<u16, u64>::new();
        for job in self.jobs.values_mut().filter(|job| !job.nodes.is_empty()) {
            for (node, rank) in job.nodes.iter().zip(&mut job.status.ranks) {
                let seat = seats.get(self.nodes[*node].member).copied().unwrap_or_default();
                rank.bytes = rank.bytes.max(seat.bytes);
                rank.memory_high_bytes = rank.memory_high_bytes.max(seat.memory_high_bytes);
                let sum = in_use.entry(job.status.tenant).or_default();
                *sum = sum.saturating_add(rank.memory_high_bytes);
            }
        }
        for (tenant, bytes) in in_use {
            let account = self.account(tenant);
            account.memory_high_bytes = account.memory_high_bytes.max(bytes);
        }
    }

    fn account(&mut self, tenant: u16) -> &mut TenantAccount {
        self.accounts.entry(tenant).or_insert(TenantAccount { tenant, ..TenantAccount::default() })
    }

    fn poll_job(&mut self, job: u64, now_ns: u64, seats: &[SeatView]) -> Vec<Action> {
        let Some(found) = self.jobs.get(&job) else { return Vec::new() };
        let JobStatus { state, started_ns, time_max_ns, .. } = found.status;
        match state {
            JobState::Running if now_ns.saturating_sub(started_ns.unwrap_or(now_ns)) >= time_max_ns => {
                let reason = format!("the job exceeded its time of {}", units::time(time_max_ns));
                self.end(job, JobState::Failed, Some(reason), now_ns)
            }
            JobState::Ending if found.has_live_process() => {
                let is_due = found.kill_at_ns.is_some_and(|at_ns| now_ns >= at_ns);
                if is_due { vec![Action::Kill(job)] } else { Vec::new() }
            }
            JobState::Ending => {
                let members = found.nodes.iter().map(|node| self.nodes[*node].member);
                let taken = |member: &usize| seats.get(*member).is_some_and(|seat| seat.is_taken);
                let held: Vec<_> = members.filter(taken).collect();
                if held.is_empty() {
                    self.free_nodes(job, now_ns)
                } else {
                    held.into_iter().map(Action::Evict).collect()
                }
            }
            _ => Vec::new(),
        }
    }

    /// Ends a job whose processes and seats have ended.
    fn free_nodes(&mut self, job: u64, now_ns: u64) -> Vec<Action> {
        let Some(found) = self.jobs.get_mut(&job) else { return Vec::new() };
        let nodes = std::mem::take(&mut found.nodes);
        let status = &mut found.status;
        status.state = found.outcome.unwrap_or(JobState::Failed);
        status.ended_ns = Some(now_ns);
        let bytes: u64 = status.ranks.iter().map(|rank| rank.bytes).fold(0, u64::saturating_add);
        let time_ns = now_ns.saturating_sub(status.started_ns.unwrap_or(now_ns));
        let account = self.account(self.jobs[&job].status.tenant);
        account.bytes = account.bytes.saturating_add(bytes);
        account.node_time_ns =
            account.node_time_ns.saturating_add(time_ns.saturating_mul(nodes.len() as u64));
        let vacate = |node: usize| {
            let node = &mut self.nodes[node];
            debug_assert_eq!(node.job, Some(job), "a node has one job");
            node.job = None;
            Action::Vacate(node.member)
        };
        nodes.into_iter().map(vacate).collect()
    }

    /// Starts the first jobs of each tenant for which there are nodes.
    fn start_jobs(&mut self, now_ns: u64, seats: &[SeatView]) -> Vec<Action> {
        let mut actions = Vec::new();
        // The first job of each tenant that cannot start.
        let mut first = BTreeMap::<u16, u64>::new();
        let queued = self.jobs.values().filter(|job| job.status.state == JobState::Queued);
        let queued: Vec<_> = queued.map(|job| (job.status.job, job.status.tenant)).collect();
        for (job, tenant) in queued {
            let chosen = match first.get(&tenant) {
                Some(first) => Err(format!("waits for job {first}, which was submitted before")),
                None => self.choose(&self.jobs[&job], seats),
            };
            let Some(found) = self.jobs.get_mut(&job) else { continue };
            match chosen {
                Ok(nodes) => {
                    let rank = |node: &usize| RankStatus {
                        node: self.nodes[*node].name.clone(),
                        ..RankStatus::default()
                    };
                    found.status.ranks = nodes.iter().map(rank).collect();
                    (found.status.state, found.status.reason) = (JobState::Running, None);
                    found.status.started_ns = Some(now_ns);
                    nodes.iter().for_each(|node| self.nodes[*node].job = Some(job));
                    found.nodes = nodes;
                    self.account(tenant).jobs += 1;
                    actions.push(Action::Start(job));
                }
                Err(reason) => {
                    found.status.reason = Some(reason);
                    first.entry(tenant).or_insert(job);
                }
            }
        }
        actions
    }

    /// Returns the nodes for a job, by index, or what it waits for.
    fn choose(&self, job: &Job, seats: &[SeatView]) -> Result<Vec<usize>, String> {
        let Submission { nodes: names, memory_bytes, .. } = &job.submission;
        if names.is_empty() {
            let fits = |node: &Node| {
                node.tenant == job.status.tenant && node.memory_bytes >= memory_bytes.unwrap_or(0)
            };
            let free = self
                .nodes
                .iter()
                .enumerate()
                .filter(|(_, node)| fits(node) && self.state_of(node, seats) == "free");
            let free: Vec<_> = free.map(|(index, _)| index).collect();
            let count = job.status.count;
            if free.len() < count {
                return Err(format!("waits for {count} nodes, and {} are free", free.len()));
            }
            let members: Vec<_> = free.iter().map(|node| self.nodes[*node].member).collect();
            let chosen = self.connections.choose(&members, count, |member| self.forwards(member, seats));
            let chosen = chosen.ok_or_else(|| {
                format!(
                    "waits for {count} nodes that reach each other: {} are free, and nodes between them forward nothing",
                    free.len()
                )
            })?;
            return Ok(chosen.into_iter().map(|position| free[position]).collect());
        }
        let index = |name: &String| self.nodes.iter().position(|node| node.name == *name);
        let nodes: Vec<_> = names.iter().filter_map(index).collect();
        let busy =
            nodes.iter().map(|node| &self.nodes[*node]).filter(|node| self.state_of(node, seats) != "free");
        let busy: Vec<_> = busy
            .map(|node| match node.job {
                Some(job) => format!("{} (job {job})", node.name),
                None => format!("{} ({})", node.name, self.state_of(node, seats)),
            })
            .collect();
        if !busy.is_empty() {
            return Err(format!("waits for {}", busy.join(", ")));
        }
        let members: Vec<_> = nodes.iter().map(|node| self.nodes[*node].member).collect();
        let apart = self.connections.find_apart(&members, |member| self.forwards(member, seats));
        match apart {
            None => Ok(nodes),
            Some([from, to]) => Err(format!(
                "waits until {} reaches {}",
                self.nodes[nodes[from]].name, self.nodes[nodes[to]].name
            )),
        }
    }

    /// Returns true if the member forwards frames for a job on other nodes, and is in no job that could end before.
    fn forwards(&self, member: usize, seats: &[SeatView]) -> bool {
        self.nodes
            .iter()
            .find(|node| node.member == member)
            .is_none_or(|node| self.state_of(node, seats) == "held")
    }

    fn state_of(&self, node: &Node, seats: &[SeatView]) -> &'static str {
        match node {
            Node { job: Some(_), .. } => "job",
            Node { is_spare: true, .. } => "spare",
            node if seats.get(node.member).is_none_or(|seat| seat.is_taken) => "held",
            _ => "free",
        }
    }

    /// Removes the jobs beyond the limit that ended first.
    fn forget(&mut self) -> Vec<Action> {
        let ended = self.jobs.values().filter(|job| job.status.state.has_ended());
        let mut ended: Vec<_> = ended.map(|job| (job.status.ended_ns, job.status.job)).collect();
        ended.sort_unstable();
        let mut ended: Vec<_> = ended.into_iter().map(|(_, job)| job).collect();
        ended.truncate(ended.len().saturating_sub(ENDED_MAX));
        for job in &ended {
            self.jobs.remove(job);
        }
        ended.into_iter().map(Action::Forget).collect()
    }

    /// Returns jobs, accounts and nodes.
    pub(super) fn list(&self, now_ns: u64, seats: &[SeatView]) -> JobList {
        let node = |node: &Node| JobNode {
            name: node.name.clone(),
            tenant: node.tenant,
            state: self.state_of(node, seats).to_owned(),
            job: node.job,
        };
        JobList {
            jobs: self.jobs.values().map(|job| job.status.clone()).collect(),
            tenants: self.accounts.values().map(|account| self.with_running(*account, now_ns)).collect(),
            nodes: self.nodes.iter().map(node).collect(),
        }
    }

    /// Returns the account with the usage of jobs that have not ended.
    fn with_running(&self, mut account: TenantAccount, now_ns: u64) -> TenantAccount {
        let own = |job: &&Job| job.status.tenant == account.tenant && !job.nodes.is_empty();
        for job in self.jobs.values().filter(own) {
            let time_ns = now_ns.saturating_sub(job.status.started_ns.unwrap_or(now_ns));
            account.node_time_ns =
                account.node_time_ns.saturating_add(time_ns.saturating_mul(job.nodes.len() as u64));
            let bytes = job.status.ranks.iter().map(|rank| rank.bytes);
            account.bytes = bytes.fold(account.bytes, u64::saturating_add);
        }
        account
    }
}

/// Checks that the paths of a submission do not depend on the directory of the supervisor.
fn check_directories(submission: &Submission) -> Result<(), Refused> {
    let paths = [Some(&submission.directory), submission.output.as_ref()];
    match paths.into_iter().flatten().find(|path| !path.is_absolute()) {
        Some(path) => Err(Refused::new(format!("{} is not absolute", path.display()), "give the whole path")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
