//! Supervisor of a standing rack, in the background. `rackloom up` starts it, `rackloom down` ends it.
//!
//! Its launcher sends the options over a socket and receives there whether the rack came up. If the launcher ends before that, the rack
//! ends too. Afterwards only the control socket, a signal or the machine ends it.

use std::path::{Path, PathBuf};

use rackloom_control::order::Joined;
use rackloom_control::request::{Answer, Injection, Nothing, Request};
use rackloom_control::source::Source;
use rackloom_jobs::report::EventRecord;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

use super::door::{self, Asked, Counter, Reply};
use super::state;
use crate::channel::seat::{Channel, Heard};
use crate::machine::directory::{Claim, RunDirectory};
use crate::machine::program::Program;
use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;
use crate::request::work::RackRequest;
use crate::run::RackObserver;
use crate::supervisor::{Alarms, Conclusion, Logs, Milestone, Supervisor, runtime};

/// Options from the launcher.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Keep {
    pub(super) source: Source,
    /// Members whose seats stay vacant, by number in the plan.
    pub(super) vacant: Vec<u16>,
    /// Directory of the logs; in the run directory of the rack if absent.
    pub(super) log_dir: Option<PathBuf>,
    pub(super) log_level: Option<String>,
}

/// Outcome, for the launcher.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    /// All links are up that can be.
    Up {},
    /// There is no rack.
    Failed { exit: Exit, what: String },
}

/// Runs the supervisor of a standing rack. The socket to its launcher is standard input.
///
/// # Errors
/// The rack did not come up, or has no report. The launcher receives the failure too, if it waits.
pub fn keep(program: &Program, observer: &mut dyn RackObserver) -> Result<Exit, Failure> {
    let mut launcher = Channel::of_stdin("`rackloom up FILE`")?;
    let keep = match launcher.hear_first::<Keep>() {
        Ok(Heard::Message(keep)) => keep,
        Ok(_) => return Ok(Exit::Interrupted),
        Err(error) => return Err(Failure::could_not_start("cannot read from the launcher", error)),
    };
    match keep_up(keep, &mut launcher, program, observer) {
        Ok(exit) => Ok(exit),
        Err(failure) => {
            // If the rack was up, the launcher has ended, and clients have their answers.
            let _ = launcher.say(&Outcome::Failed { exit: failure.exit, what: failure.to_string() });
            Err(failure)
        }
    }
}

fn keep_up(
    keep: Keep,
    launcher: &mut Channel,
    program: &Program,
    observer: &mut dyn RackObserver,
) -> Result<Exit, Failure> {
    let work = RackRequest::from(keep.source.clone()).work()?;
    let (plan, faults) = (work.plan, work.faults);
    let claim = RunDirectory::open()?.claim(&plan.name)?;
    let log_dir = keep.log_dir.unwrap_or_else(|| claim.path().join("logs"));
    let logs = Logs::new(Some(&log_dir), keep.log_level.as_deref())?;
    complain_into(&logs, &log_dir)?;
    let listener = claim.listen();
    let vacant: Vec<_> = keep.vacant.into_iter().map(usize::from).collect();
    let mut supervisor = Supervisor::prepare(keep.source, plan, faults, logs, program.clone())?;
    supervisor.stay(&vacant);
    supervisor.share_in(claim.path());
    let runtime = runtime()?;
    let listener = {
        let _within = runtime.enter();
        supervisor.fill_seats()?;
        let listener = listener.and_then(|listener| {
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        });
        listener.map_err(|error| Failure::could_not_start("cannot open the control socket", error))?
    };
    runtime.block_on(Keeper::new(supervisor, claim).live(listener, launcher, observer))
}

/// Redirects standard error to the log: no process reads it from here on.
fn complain_into(logs: &Logs, log_dir: &Path) -> Result<(), Failure> {
    let Some(file) = logs.of_member("supervisor")? else { return Ok(()) };
    rustix::stdio::dup2_stderr(file).map_err(|error| {
        Failure::could_not_start("cannot write the supervisor's log", error).at_path(log_dir)
    })
}

struct Keeper {
    supervisor: Supervisor,
    claim: Claim,
    was_up: bool,
    /// Clients that wait for a status.
    status_askers: Vec<oneshot::Sender<Reply>>,
    /// Clients that wait until a member has left.
    leave_askers: Vec<(usize, oneshot::Sender<Reply>)>,
    /// Clients that wait for the end of the rack.
    down_askers: Vec<oneshot::Sender<Reply>>,
}

impl Keeper {
    fn new(supervisor: Supervisor, claim: Claim) -> Self {
        let (status_askers, leave_askers, down_askers) = Default::default();
        Self { supervisor, claim, was_up: false, status_askers, leave_askers, down_askers }
    }

    async fn live(
        mut self,
        listener: UnixListener,
        launcher: &mut Channel,
        observer: &mut dyn RackObserver,
    ) -> Result<Exit, Failure> {
        let (counter, mut asked, open) = Counter::new();
        let events = counter.events.clone();
        let door = tokio::spawn(door::keep_open(listener, counter));
        let mut alarms = Alarms::set()?;
        let gone = launcher_gone(launcher)?;
        tokio::pin!(gone);
        loop {
            tokio::select! {
                biased;
                milestone = self.supervisor.next_milestone(&mut alarms) => match milestone {
                    Milestone::Over => break,
                    Milestone::Warning(warning) => observer.warning(&warning),
                    reached => self.act_on(reached, &events, launcher),
                },
                Some(question) = asked.recv() => self.answer(question),
                () = &mut gone, if !self.was_up => {
                    self.supervisor.interrupt();
                    // Once is enough: a second interrupt would kill.
                    self.was_up = true;
                }
            }
        }
        let concluded = self.conclude(asked, observer);
        drop(open);
        let _ = door.await;
        concluded
    }

    fn act_on(
        &mut self,
        milestone: Milestone,
        events: &tokio::sync::broadcast::Sender<EventRecord>,
        launcher: &mut Channel,
    ) {
        match milestone {
            Milestone::LinksUp => {
                self.was_up = true;
                // A launcher that has just ended loses nothing: `status` shows the same.
                let _ = launcher.say(&Outcome::Up {});
            }
            Milestone::StatusKnown => {
                for asker in self.status_askers.drain(..) {
                    let status = state::of_rack(&self.supervisor);
                    let _ = asker.send(Reply::Answer(Answer::Status(Box::new(status))));
                }
            }
            // Fails without subscribers.
            Milestone::Happened(record) => drop(events.send(record)),
            Milestone::Left(member) => {
                for (_, asker) in self.leave_askers.extract_if(.., |(whose, _)| *whose == member) {
                    let _ = asker.send(Reply::Answer(Answer::Left(Nothing {})));
                }
            }
            Milestone::Further(_) | Milestone::Warning(_) | Milestone::Over => {}
        }
    }

    fn answer(&mut self, Asked { request, pid, reply }: Asked) {
        match request {
            Request::Status(_) => {
                self.status_askers.push(reply);
                self.supervisor.ask_status();
            }
            Request::Down(_) => {
                self.down_askers.push(reply);
                self.supervisor.take_down();
            }
            // Served by the client's own task.
            Request::Subscribe(_) | Request::Job(_) => {}
            Request::Inject(inject) => {
                let hint = "docs/fault-scripts.md says what a script may hold";
                let answer = match self.supervisor.inject(&inject.script, inject.inline) {
                    Ok(events) => Answer::Injected(Injection { events }),
                    Err(why) => Answer::refuse(why, Some(hint)),
                };
                let _ = reply.send(Reply::Answer(answer));
            }
            Request::Leave(whose) => match self.taken_seat(&whose.seat) {
                Ok(member) => {
                    self.leave_askers.push((member, reply));
                    self.supervisor.take_out(member);
                }
                Err(refusal) => drop(reply.send(Reply::Answer(refusal))),
            },
            Request::Join(join) => {
                let answer = self.give_seat(&join.seat, pid).unwrap_or_else(Reply::Answer);
                let _ = reply.send(answer);
            }
        }
    }

    /// Returns the member with this name, if a process holds its seat and can leave.
    fn taken_seat(&self, seat: &str) -> Result<usize, Answer> {
        let shows = Some("`rackloom status` shows who sits where");
        let rack = &self.supervisor.rack;
        let node = self.supervisor.plan.node_named(seat);
        let node = node.ok_or_else(|| Answer::refuse(format!("the rack has no seat named {seat}"), shows))?;
        if !rack.seats[node.index()].is_alive() {
            return Err(Answer::refuse(format!("nobody sits in {seat} here"), shows));
        }
        if !rack.is_running() {
            return Err(Answer::refuse("the rack is not up", Some("try again once it is")));
        }
        Ok(node.index())
    }

    fn give_seat(&mut self, seat: &str, pid: u32) -> Result<Reply, Answer> {
        let vacant = Some("`rackloom status` shows which seats are vacant or lost");
        let node = self.supervisor.plan.node_named(seat);
        let node =
            node.ok_or_else(|| Answer::refuse(format!("the rack has no seat named {seat}"), vacant))?;
        if self.supervisor.rack.seats[node.index()].is_alive() {
            return Err(Answer::refuse(format!("somebody sits in {seat}"), vacant));
        }
        if self.supervisor.rack.seats[node.index()].is_elsewhere {
            return Err(Answer::refuse(format!("another host runs {seat}"), Some("ask there")));
        }
        if !self.supervisor.rack.is_running() {
            return Err(Answer::refuse("the rack is not up", Some("try again once it is")));
        }
        let attendance = self
            .supervisor
            .give_seat(node.index(), pid)
            .map_err(|why| Answer::refuse(format!("cannot give {seat} away: {why}"), None))?;
        let start = attendance.start.clone();
        let joined = Joined { descriptors: start.grant.descriptors(), start };
        Ok(Reply::Seat(Answer::Joined(Box::new(joined)), Box::new(attendance)))
    }

    /// Ends the rack after its last member: releases the name, then answers all clients. In this order, because clients may use the name again.
    fn conclude(
        self,
        mut asked: mpsc::Receiver<Asked>,
        observer: &mut dyn RackObserver,
    ) -> Result<Exit, Failure> {
        let Self { supervisor, claim, was_up, status_askers, leave_askers, mut down_askers } = self;
        let name = supervisor.plan.name.clone();
        let concluded = supervisor.conclude();
        if let Ok(Conclusion { capture_failure: Some(failure), .. }) = &concluded {
            observer.warning(&failure.with_heading());
        }
        drop(claim);
        asked.close();
        let mut late = status_askers;
        late.extend(leave_askers.into_iter().map(|(_, asker)| asker));
        while let Ok(Asked { request, reply, .. }) = asked.try_recv() {
            if matches!(request, Request::Down(_)) { down_askers.push(reply) } else { late.push(reply) }
        }
        for asker in late {
            let _ = asker.send(Reply::Answer(Answer::refuse(format!("rack {name} is going"), None)));
        }
        for asker in down_askers {
            let answer = match &concluded {
                Ok(conclusion) => Answer::Down(Box::new(conclusion.report.clone())),
                Err(failure) => Answer::refuse(failure.to_string(), None),
            };
            let _ = asker.send(Reply::Answer(answer));
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
