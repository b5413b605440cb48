//! Supervisor of a standing rack, in the background. `rackloom up` starts it, `rackloom down` ends it.
//!
//! Its launcher sends the options over a socket and receives the outcome of the start. If the launcher ends
//! before that, the rack ends too. Afterwards only the control socket, a signal or the machine ends it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rackloom_control::order::Joined;
use rackloom_control::request::{Answer, Injection, Join, Nothing, RackStatus, Request};
use rackloom_control::source::Source;
use rackloom_control::submitted::JobNumber;
use rackloom_jobs::report::EventRecord;
use rackloom_plan::Plan;
use rackloom_protocol::{MemberRole, NodeId};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

use super::clients::{self, ClientRequest, Reply, SocketEnds};
use super::history::History;
use super::jobs::JobRunner;
use super::metrics;
use super::state;
use crate::channel::seat::{Channel, Received};
use crate::machine::directory::{Claim, RunDirectory};
use crate::machine::program::Program;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;
use crate::request::work::RackRequest;
use crate::run::RackObserver;
use crate::supervisor::{Alarms, Conclusion, Logs, Milestone, Supervisor, runtime};

/// Options from the launcher.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct KeepOptions {
    pub(super) source: Source,
    /// Members whose seats stay vacant, by number in the plan.
    pub(super) vacant: Vec<u16>,
    /// Those of them that jobs cannot use before they are added.
    pub(super) spare: Vec<u16>,
    /// Directory of the logs; the rack's run directory if absent.
    pub(super) log_dir: Option<PathBuf>,
    pub(super) log_level: Option<String>,
    /// Address of the metrics.
    pub(super) metrics: Option<SocketAddr>,
}

/// Outcome of the start, for the launcher.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    /// All required links are up.
    Up {},
    /// The rack did not come up.
    Failed { exit: Exit, what: String },
}

/// Runs the supervisor of a standing rack. The socket to its launcher is standard input.
///
/// # Errors
/// The rack did not come up, or has no report. The launcher receives the failure too, if it waits.
pub fn keep(program: &Program, observer: &mut dyn RackObserver) -> Result<Exit, Failure> {
    let mut launcher = Channel::of_stdin("`rackloom up FILE`")?;
    let keep = match launcher.wait_for_message::<KeepOptions>() {
        Ok(Received::Message(keep)) => keep,
        Ok(_) => return Ok(Exit::Interrupted),
        Err(error) => return Err(Failure::could_not_start("cannot read from the launcher", error)),
    };
    match keep_up(keep, &mut launcher, program, observer) {
        Ok(exit) => Ok(exit),
        Err(failure) => {
            // Without effect if the rack was up: the launcher has ended then.
            let _ = launcher.send(&Outcome::Failed { exit: failure.exit, what: failure.to_string() });
            Err(failure)
        }
    }
}

fn keep_up(
    keep: KeepOptions,
    launcher: &mut Channel,
    program: &Program,
    observer: &mut dyn RackObserver,
) -> Result<Exit, Failure> {
    let work = RackRequest::from(keep.source.clone()).work()?;
    let (plan, faults) = (work.plan, work.faults);
    let claim = RunDirectory::open()?.claim(&plan.name)?;
    let log_dir = keep.log_dir.unwrap_or_else(|| claim.path().join("logs"));
    let logs = Logs::new(Some(&log_dir), keep.log_level.as_deref())?;
    redirect_errors(&logs, &log_dir)?;
    let listener = claim.listen();
    let [vacant, spare] =
        [keep.vacant, keep.spare].map(|members| members.into_iter().map(usize::from).collect::<Vec<_>>());
    let mut supervisor = Supervisor::prepare(keep.source, plan, faults, logs, program.clone())?;
    supervisor.stay(&vacant);
    supervisor.share_in(claim.path());
    let runtime = runtime()?;
    let metrics = keep.metrics.map(|address| {
        metrics::listen(address).map_err(|error| {
            let what = format!("cannot serve metrics at {address}: {error}");
            Failure::bad_input(what)
                .at("--metrics")
                .hint("name a free port of an address of this machine; port 0 is any")
        })
    });
    let metrics = metrics.transpose()?;
    let (listener, metrics, jobs) = {
        let _within = runtime.enter();
        let metrics = metrics.map(tokio::net::TcpListener::from_std).transpose();
        let metrics = metrics.map_err(|error| Failure::could_not_start("cannot serve metrics", error))?;
        supervisor.fill_seats()?;
        let is_here = |member: usize| !supervisor.rack.seats[member].is_elsewhere();
        let jobs = JobRunner::new(&supervisor.plan, is_here, &spare, &log_dir);
        let listener = listener.and_then(|listener| {
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        });
        let listener =
            listener.map_err(|error| Failure::could_not_start("cannot open the control socket", error))?;
        (listener, metrics, jobs)
    };
    let background = BackgroundSupervisor::new(supervisor, jobs, claim);
    runtime.block_on(background.run(listener, metrics, launcher, observer))
}

/// Removes what a brief status leaves out.
fn without_paths(mut status: RackStatus) -> RackStatus {
    status.members.iter_mut().for_each(|member| member.paths = None);
    status
}

/// Redirects standard error to the log: no process reads it from now on.
fn redirect_errors(logs: &Logs, log_dir: &Path) -> Result<(), Failure> {
    let Some(file) = logs.of_member("supervisor")? else { return Ok(()) };
    rustix::stdio::dup2_stderr(file).map_err(|error| {
        Failure::could_not_start("cannot write the supervisor's log", error).at_path(log_dir)
    })
}

struct BackgroundSupervisor {
    supervisor: Supervisor,
    jobs: JobRunner,
    claim: Claim,
    was_up: bool,
    history: History,
    /// Address at which metrics are served.
    metrics: Option<SocketAddr>,
    /// Clients that wait for a status, and true for those that want no paths.
    awaiting_status: Vec<(bool, oneshot::Sender<Reply>)>,
    /// Clients that wait until a member has left.
    awaiting_departure: Vec<(usize, oneshot::Sender<Reply>)>,
    /// Clients that wait for the end of the rack.
    awaiting_end: Vec<oneshot::Sender<Reply>>,
}

impl BackgroundSupervisor {
    fn new(supervisor: Supervisor, jobs: JobRunner, claim: Claim) -> Self {
        let (awaiting_status, awaiting_departure, awaiting_end) = Default::default();
        let history = History::default();
        Self {
            supervisor,
            jobs,
            claim,
            was_up: false,
            history,
            metrics: None,
            awaiting_status,
            awaiting_departure,
            awaiting_end,
        }
    }

    async fn run(
        mut self,
        listener: UnixListener,
        metrics: Option<tokio::net::TcpListener>,
        launcher: &mut Channel,
        observer: &mut dyn RackObserver,
    ) -> Result<Exit, Failure> {
        let SocketEnds { channels, mut requests, open } = SocketEnds::new();
        let events = channels.events.clone();
        if let Some(listener) = metrics {
            self.metrics = listener.local_addr().ok();
            tokio::spawn(metrics::serve(listener, channels.requests.clone(), channels.closed()));
        }
        let clients = tokio::spawn(clients::serve_clients(listener, channels));
        let mut alarms = Alarms::set()?;
        let launcher_end = launcher_gone(launcher)?;
        tokio::pin!(launcher_end);
        loop {
            tokio::select! {
                biased;
                milestone = self.supervisor.next_milestone(&mut alarms) => match milestone {
                    Milestone::Over => break,
                    Milestone::Warning(warning) => observer.warning(&warning),
                    milestone => self.handle_milestone(milestone, &events, launcher),
                },
                Some(request) = requests.recv() => self.answer(request),
                ended = self.jobs.wait(), if self.jobs.is_active() => {
                    self.jobs.advance(ended, &mut self.supervisor);
                    if self.jobs.has_closed() {
                        self.supervisor.take_down();
                    }
                }
                () = &mut launcher_end, if !self.was_up => {
                    self.supervisor.interrupt();
                    // A second call of `interrupt` would kill the members.
                    self.was_up = true;
                }
            }
        }
        let concluded = self.conclude(requests, observer);
        drop(open);
        let _ = clients.await;
        concluded
    }

    fn handle_milestone(
        &mut self,
        milestone: Milestone,
        events: &tokio::sync::broadcast::Sender<EventRecord>,
        launcher: &mut Channel,
    ) {
        match milestone {
            Milestone::LinksUp => {
                self.was_up = true;
                // The launcher may have just ended. `status` shows this as well.
                let _ = launcher.send(&Outcome::Up {});
            }
            Milestone::StatusKnown => {
                for (is_brief, client) in self.awaiting_status.drain(..) {
                    let submitted = self.jobs.list_if_used(&self.supervisor);
                    let metrics = self.metrics.map(|address| address.to_string());
                    let status = RackStatus { submitted, metrics, ..state::of_rack(&self.supervisor) };
                    let status = if is_brief { without_paths(status) } else { status };
                    let _ = client.send(Reply::Answer(Answer::Status(Box::new(status))));
                }
            }
            Milestone::Happened(record) => {
                self.history.push(record.clone());
                // Fails without subscribers.
                drop(events.send(record));
            }
            Milestone::Left(member) => {
                for (_, client) in self.awaiting_departure.extract_if(.., |(leaving, _)| *leaving == member) {
                    let _ = client.send(Reply::Answer(Answer::Left(Nothing {})));
                }
            }
            Milestone::Progress(_) | Milestone::Warning(_) | Milestone::Over => {}
        }
    }

    fn answer(&mut self, ClientRequest { request, pid, reply }: ClientRequest) {
        match request {
            Request::Status(options) => {
                self.awaiting_status.push((options.brief, reply));
                // One round of answers serves all clients that wait.
                self.supervisor.request_status(self.awaiting_status.iter().all(|(is_brief, _)| *is_brief));
            }
            Request::Down(_) => {
                self.awaiting_end.push(reply);
                self.jobs.close(&mut self.supervisor);
                // Otherwise the last job takes the rack down.
                if self.jobs.has_closed() {
                    self.supervisor.take_down();
                }
            }
            // The client's task serves these requests.
            Request::Subscribe(_) | Request::Job(_) => {}
            Request::Inject(inject) => {
                let answer = match self.supervisor.inject(&inject.script, inject.inline) {
                    Ok(events) => Answer::Injected(Injection { events }),
                    Err(reason) if inject.inline => refused_options(&reason),
                    Err(reason) => {
                        Answer::refuse(reason, Some("docs/fault-scripts.md describes fault scripts"))
                    }
                };
                let _ = reply.send(Reply::Answer(answer));
            }
            Request::Events(_) => {
                let _ = reply.send(Reply::Answer(Answer::Events(self.history.list())));
            }
            Request::EndFaults(_) => {
                self.supervisor.end_faults();
                let _ = reply.send(Reply::Answer(Answer::FaultsEnded(Nothing {})));
            }
            Request::Leave(leave) => match self.taken_seat(&leave.seat) {
                Ok(member) => {
                    self.awaiting_departure.push((member, reply));
                    self.supervisor.take_out(member);
                }
                Err(refusal) => drop(reply.send(Reply::Answer(refusal))),
            },
            Request::SubmitJob(submission) => {
                let _ = reply.send(Reply::Answer(self.jobs.submit(*submission, &mut self.supervisor)));
            }
            Request::ListJobs(_) => {
                let list = self.jobs.list(&self.supervisor);
                let _ = reply.send(Reply::Answer(Answer::Jobs(Box::new(list))));
            }
            Request::CancelJob(JobNumber { job }) => {
                let _ = reply.send(Reply::Answer(self.jobs.cancel(job, &mut self.supervisor)));
            }
            Request::AddNode(Join { seat }) => {
                let _ = reply.send(Reply::Answer(self.jobs.add_node(&seat, &mut self.supervisor)));
            }
            Request::Join(join) => {
                let answer = self.grant_seat(&join.seat, pid).unwrap_or_else(Reply::Answer);
                let _ = reply.send(answer);
            }
            Request::JoinProcess(join) => {
                let answer = self.grant_process_seat(&join.seat, pid).unwrap_or_else(Reply::Answer);
                let _ = reply.send(answer);
            }
        }
    }

    /// Returns the member with this name, if a process holds its seat and can leave.
    fn taken_seat(&self, seat: &str) -> Result<usize, Answer> {
        let hint = Some("`rackloom status` shows which seats are held");
        let rack = &self.supervisor.rack;
        let node = self.supervisor.plan.node_named(seat);
        let node = node.ok_or_else(|| Answer::refuse(format!("the rack has no seat named {seat}"), hint))?;
        if !rack.seats[node.index()].is_alive() {
            return Err(Answer::refuse(format!("no process on this host holds seat {seat}"), hint));
        }
        if !rack.is_running() {
            return Err(Answer::refuse("the rack is not up", Some("try again once it is")));
        }
        Ok(node.index())
    }

    /// Grants the first seat of the first process of a GPU node whose seats are all vacant. The process requests the others by their names.
    fn grant_process_seat(&mut self, seat: &str, pid: u32) -> Result<Reply, Answer> {
        let Supervisor { plan, rack, .. } = &self.supervisor;
        let node =
            plan.node_named(seat).filter(|node| plan.members[node.index()].role == MemberRole::Endpoint);
        let node = node.ok_or_else(|| {
            let hint = "`rackloom status` shows the GPU nodes";
            Answer::refuse(format!("the rack has no GPU node named {seat}"), Some(hint))
        })?;
        let processes = plan.process_ports_of(node);
        let is_vacant = |ports: &&Vec<NodeId>| ports.iter().all(|port| !rack.seats[port.index()].is_alive());
        let count = processes.len();
        if let Some(port) = processes.iter().find(is_vacant).and_then(|ports| ports.first()) {
            let name = plan.members[port.index()].name.clone();
            return self.grant_seat(&name, pid);
        }
        Err(match count {
            0 => Answer::refuse(
                format!("seat {seat} has no process seats"),
                Some(
                    "start the rack with `rackloom up FILE --seats programs`, and --processes that is not 0",
                ),
            ),
            count => {
                let hint = format!(
                    "start the rack with --processes {}",
                    (2 * count).min(usize::from(Plan::PROCESSES_MAX))
                );
                let has = if count == 1 {
                    "1 process seat, and it is taken".to_owned()
                } else {
                    format!("{count} process seats, and all are taken")
                };
                Answer::refuse(
                    format!("seat {seat} has {has}"),
                    Some(if count < usize::from(Plan::PROCESSES_MAX) {
                        &hint
                    } else {
                        "end one of the processes"
                    }),
                )
            }
        })
    }

    fn grant_seat(&mut self, seat: &str, pid: u32) -> Result<Reply, Answer> {
        let vacant = Some("`rackloom status` shows which seats are vacant or lost");
        let node = self.supervisor.plan.node_named(seat);
        let node =
            node.ok_or_else(|| Answer::refuse(format!("the rack has no seat named {seat}"), vacant))?;
        if self.supervisor.rack.seats[node.index()].is_alive() {
            return Err(Answer::refuse(format!("a process holds seat {seat}"), vacant));
        }
        if self.supervisor.rack.seats[node.index()].is_elsewhere() {
            return Err(Answer::refuse(format!("another host runs {seat}"), Some("join it on that host")));
        }
        if !self.supervisor.rack.is_running() {
            return Err(Answer::refuse("the rack is not up", Some("try again once it is")));
        }
        let holder = self.supervisor.rack.seats[node.index()].process_of.unwrap_or(node.index());
        if holder != node.index() && !self.supervisor.rack.seats[holder].is_alive() {
            let name = &self.supervisor.rack.seats[holder].name;
            let hint = format!("run the program with `rackloom exec --seat {name}`");
            return Err(Answer::refuse(
                format!("no process holds seat {name}, behind which {seat} is"),
                Some(&hint),
            ));
        }
        self.jobs.check_taker(holder, seat, pid)?;
        let service = self
            .supervisor
            .grant_seat(node.index(), pid)
            .map_err(|reason| Answer::refuse(format!("cannot grant seat {seat}: {reason}"), None))?;
        let start = service.start.clone();
        let joined = Joined { descriptors: start.grant.descriptors(), start };
        Ok(Reply::Seat(Answer::Joined(Box::new(joined)), Box::new(service)))
    }

    /// Ends the rack after its last member. Releases the name first, then answers all clients, because a
    /// client may use the name again after the answer.
    fn conclude(
        self,
        mut requests: mpsc::Receiver<ClientRequest>,
        observer: &mut dyn RackObserver,
    ) -> Result<Exit, Failure> {
        let Self {
            supervisor,
            jobs,
            claim,
            was_up,
            awaiting_status,
            awaiting_departure,
            mut awaiting_end,
            ..
        } = self;
        // What is left of jobs is killed, if the rack was not taken down in order.
        drop(jobs);
        let name = supervisor.plan.name.clone();
        let concluded = supervisor.conclude();
        if let Ok(Conclusion { capture_failure: Some(failure), .. }) = &concluded {
            observer.warning(&failure.with_heading());
        }
        drop(claim);
        requests.close();
        let mut late: Vec<_> = awaiting_status.into_iter().map(|(_, client)| client).collect();
        late.extend(awaiting_departure.into_iter().map(|(_, client)| client));
        while let Ok(ClientRequest { request, reply, .. }) = requests.try_recv() {
            if matches!(request, Request::Down(_)) { awaiting_end.push(reply) } else { late.push(reply) }
        }
        for client in late {
            let _ = client.send(Reply::Answer(Answer::refuse(format!("rack {name} is going down"), None)));
        }
        for client in awaiting_end {
            let answer = match &concluded {
                Ok(conclusion) => Answer::Down(Box::new(conclusion.report.clone())),
                Err(failure) => Answer::refuse(failure.to_string(), None),
            };
            let _ = client.send(Reply::Answer(answer));
        }
        let Conclusion { report, exit, .. } = concluded?;
        if was_up {
            return Ok(exit);
        }
        let what =
            if exit == Exit::Stalled { "the links did not come up" } else { "the rack did not come up" };
        let lines: Vec<_> = report.failures.iter().map(|failure| format!("\n  {failure}")).collect();
        Err(Failure::new(exit, format!("{what}{}", lines.concat())))
    }
}

/// Resolves when the launcher's end of the socket is closed.
fn launcher_gone(launcher: &Channel) -> Result<impl Future<Output = ()> + use<>, Failure> {
    let failed = |error| Failure::could_not_start("cannot watch the launcher", error);
    let mut stream = launcher.duplicate().and_then(UnixStream::from_std).map_err(failed)?;
    Ok(async move {
        let mut byte = [0];
        while stream.read(&mut byte).await.is_ok_and(|count| count > 0) {}
    })
}

/// Returns the answer for options whose faults cannot be injected. A single mistake brings its own hint.
fn refused_options(reason: &str) -> Answer {
    match reason.split_once("; hint: ") {
        Some((what, hint)) if !hint.contains('\n') => Answer::refuse(what, Some(hint)),
        _ => Answer::refuse(reason, Some("`rackloom inject --help` lists faults and their options")),
    }
}
