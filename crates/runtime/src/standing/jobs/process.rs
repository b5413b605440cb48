//! One process of a submitted job: its start, its output, its signals and its end.
//!
//! The process leads a process group, which gets the signals. When the process ends, what is left of its group is killed, so that a
//! shell script leaves no process behind. A process that leaves the group is not found; its seat is closed all the same.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgid, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::output::BoundedLog;
use super::queue::ProcessEnd;
use crate::machine::child::die_with_parent;

/// Longest time for the rest of the output after the end of the process. A process outside of the group may hold the pipe open.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// End of the process of one rank of a job.
#[derive(Debug)]
pub(in crate::standing) struct RankEnded {
    pub(super) job: u64,
    pub(super) rank: usize,
    pub(super) end: ProcessEnd,
}

/// Program of one rank.
pub(super) struct RankProgram<'a> {
    pub(super) job: u64,
    pub(super) rank: usize,
    pub(super) program: &'a str,
    pub(super) arguments: &'a [String],
    pub(super) directory: &'a Path,
    pub(super) environment: BTreeMap<&'a OsStr, &'a OsStr>,
}

/// Process group of one rank. It is killed on drop.
#[derive(Debug)]
pub(super) struct RankProcess {
    group: Pid,
    /// True once the process has been waited for: its number may belong to another process then.
    has_ended: Arc<AtomicBool>,
}

impl RankProcess {
    /// Starts the process. Its output goes to `log`, and its end to `ends`. Call it within a runtime.
    pub(super) fn start(
        program: &RankProgram<'_>,
        log: File,
        ends: UnboundedSender<RankEnded>,
    ) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let child = spawn(program, writer)?;
        let group = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let group = group.ok_or_else(|| io::Error::other("the process ended at once"))?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let (job, rank, flag) = (program.job, program.rank, Arc::clone(&has_ended));
        tokio::spawn(async move {
            let end = watch(child, group, &flag, output, log).await;
            // Fails only if the rack has ended.
            let _ = ends.send(RankEnded { job, rank, end });
        });
        Ok(Self { group, has_ended })
    }

    pub(super) fn pid(&self) -> u32 {
        self.group.as_raw_nonzero().get().unsigned_abs()
    }

    /// Returns true if this process belongs to the group.
    pub(super) fn contains(&self, pid: u32) -> bool {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        pid.and_then(|pid| getpgid(Some(pid)).ok()) == Some(self.group)
    }

    /// Sends a signal to the group, if its process has not ended.
    pub(super) fn signal(&self, signal: Signal) {
        if !self.has_ended.load(Ordering::Relaxed) {
            // Fails only if the group has just ended.
            let _ = kill_process_group(self.group, signal);
        }
    }
}

impl Drop for RankProcess {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

fn spawn(program: &RankProgram<'_>, output: io::PipeWriter) -> io::Result<Child> {
    let mut command = Command::new(program.program);
    command.args(program.arguments).current_dir(program.directory).envs(&program.environment);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(0);
    die_with_parent(command.as_std_mut());
    command.spawn()
}

/// Copies the output until the process has ended, and kills what is left of its group.
async fn watch(
    mut child: Child,
    group: Pid,
    has_ended: &AtomicBool,
    output: pipe::Receiver,
    log: File,
) -> ProcessEnd {
    let (stop, stopped) = oneshot::channel();
    let mut copying = tokio::spawn(copy_output(output, log, stopped));
    let status = child.wait().await;
    has_ended.store(true, Ordering::Relaxed);
    // The number of the group is in use as long as one of its processes lives.
    let _ = kill_process_group(group, Signal::KILL);
    if timeout(OUTPUT_TIMEOUT, &mut copying).await.is_err() {
        drop(stop);
        let _ = copying.await;
    }
    match status {
        Ok(status) => end_of(status),
        Err(error) => {
            ProcessEnd { how: format!("cannot be waited for: {error}"), exit_code: None, signal: None }
        }
    }
}

fn end_of(status: ExitStatus) -> ProcessEnd {
    let (exit_code, signal) = (status.code(), status.signal());
    let how = match (signal, exit_code) {
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, code) => format!("exited with code {}", code.unwrap_or_default()),
    };
    ProcessEnd { how, exit_code, signal }
}

/// Copies the output to the log until its end, or until `stopped` is closed.
async fn copy_output(mut output: pipe::Receiver, log: File, mut stopped: oneshot::Receiver<()>) {
    let mut log = Some(BoundedLog::new(log));
    let mut chunk = vec![0; 16 << 10];
    loop {
        let count = tokio::select! {
            biased;
            read = output.read(&mut chunk) => read.unwrap_or(0),
            _ = &mut stopped => 0,
        };
        if count == 0 {
            break;
        }
        // Without space for the log, the output is still read: a full pipe would stop the process.
        log = log.take_if(|log| log.add(&chunk[..count]).is_ok());
    }
    // If the file system is full, the log lacks its end.
    let _ = log.map(BoundedLog::finish);
}
