//! Thread that writes captures to disk, so that no frame waits for the disk.
//!
//! A [`FrameSink`] appends to memory. Ten times a second, or earlier when [`URGENT_BYTES`] wait, the thread
//! takes the waiting bytes and writes them. A killed process therefore loses at most the frames of a tenth of
//! a second. If the disk cannot follow, a rack of processes leaves frames out and counts them in the capture.
//! The simulator has a virtual clock and waits.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rackloom_capture::{Heading, Recorder};

use super::CaptureFiles;

/// Longest time that frames stay in memory.
const INTERVAL: Duration = Duration::from_millis(100);
/// Number of waiting bytes of one link at which the thread writes at once.
const URGENT_BYTES: usize = 256 << 10;
/// Maximum number of waiting bytes of one link.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// Behaviour when a link has the maximum number of waiting bytes, 16 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// Leave frames out and count them.
    Drop,
    /// Wait until there is space.
    Wait,
}

/// One file and the bytes that wait for it.
struct OutputFile {
    file: File,
    path: PathBuf,
    recorder: Mutex<Recorder>,
    /// Notified when there is space again.
    space_freed: Condvar,
}

#[derive(Default)]
struct Flags {
    ended: bool,
    urgent: bool,
}

struct Shared {
    outputs: Vec<Arc<OutputFile>>,
    flags: Mutex<Flags>,
    wake: Condvar,
}

/// Appends frames to one file.
#[derive(Clone)]
pub struct FrameSink {
    output: Arc<OutputFile>,
    shared: Arc<Shared>,
    when_full: WhenFull,
}

/// Handle of the writing thread. When it is dropped, all frames have been written.
pub struct CaptureWriter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl CaptureWriter {
    /// Opens one file for each of these links, named after this process, and returns a sink for each, in order.
    ///
    /// # Errors
    /// A file cannot be made, or the thread cannot be started.
    pub fn begin(
        files: &CaptureFiles,
        process: u64,
        links: &[Heading],
        when_full: WhenFull,
    ) -> io::Result<(Self, Vec<FrameSink>)> {
        let open = |heading: &Heading| {
            let path = files.part(heading, process);
            let named =
                |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            let file = crate::machine::exclusive::create(&path).map_err(named)?;
            let recorder = Mutex::new(Recorder::new(heading, files.bytes_max));
            Ok(Arc::new(OutputFile { file, path, recorder, space_freed: Condvar::new() }))
        };
        let outputs = links.iter().map(open).collect::<io::Result<Vec<_>>>()?;
        let shared = Arc::new(Shared { outputs, flags: Mutex::default(), wake: Condvar::new() });
        let sink = |output: &Arc<OutputFile>| FrameSink {
            output: Arc::clone(output),
            shared: Arc::clone(&shared),
            when_full,
        };
        let sinks = shared.outputs.iter().map(sink).collect();
        let of_thread = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("capture".to_owned()).spawn(move || of_thread.write_out())?;
        Ok((Self { shared, thread: Some(thread) }, sinks))
    }
}

impl Drop for CaptureWriter {
    fn drop(&mut self) {
        lock(&self.shared.flags).ended = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl FrameSink {
    /// Appends a frame. Without space it waits or leaves the frame out, see [`WhenFull`].
    pub fn write(&self, what: impl FnOnce(&mut Recorder)) {
        let mut recorder = lock(&self.output.recorder);
        if recorder.waiting_bytes() > WAITING_BYTES_MAX {
            if self.when_full == WhenFull::Drop {
                return recorder.miss();
            }
            while recorder.waiting_bytes() > WAITING_BYTES_MAX {
                self.shared.wake_thread();
                let waited = self.output.space_freed.wait_timeout(recorder, INTERVAL);
                recorder = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        let before = recorder.waiting_bytes();
        what(&mut recorder);
        if before < URGENT_BYTES && recorder.waiting_bytes() >= URGENT_BYTES {
            drop(recorder);
            self.shared.wake_thread();
        }
    }
}

impl Shared {
    fn wake_thread(&self) {
        lock(&self.flags).urgent = true;
        self.wake.notify_one();
    }

    /// Runs the thread of the capture writer. After a write error the thread gives this file up and continues
    /// with the others.
    fn write_out(&self) {
        let mut given_up = vec![false; self.outputs.len()];
        let mut empty = Vec::new();
        loop {
            let flags = lock(&self.flags);
            let waits = |flags: &mut Flags| !flags.ended && !flags.urgent;
            let waited = self.wake.wait_timeout_while(flags, INTERVAL, waits);
            let mut flags = waited.unwrap_or_else(PoisonError::into_inner).0;
            flags.urgent = false;
            let is_last = flags.ended;
            drop(flags);
            for (output, given_up) in self.outputs.iter().zip(&mut given_up) {
                let full = lock(&output.recorder).take(std::mem::take(&mut empty));
                output.space_freed.notify_all();
                if !*given_up && let Err(error) = (&output.file).write_all(&full) {
                    tracing::error!("the capture {} ends here: {error}", output.path.display());
                    *given_up = true;
                }
                empty = full;
            }
            if is_last {
                return;
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rackloom_plan::Plan;
    use rackloom_plan::impair::Verdict;
    use rackloom_protocol::Instant;

    use super::*;

    fn files_of(name: &str) -> (CaptureFiles, Vec<Heading>, Plan) {
        let directory =
            std::env::temp_dir().join(format!("rackloom-capture-writer-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a scratch folder");
        let plan = Plan::parse("name: r\nshape: {ring: {nodes: 3}}\n", "test").expect("a plan");
        let links = (0..2).filter_map(|edge| Heading::of(&plan, edge)).collect();
        (CaptureFiles { directory, run: 7, bytes_max: 1 << 24 }, links, plan)
    }

    fn frames_in(path: &Path) -> usize {
        let file = std::fs::read(path).expect("the file is there");
        let mut reader = rackloom_capture::Reader::new(&file[..]);
        let mut count = 0;
        while reader.next_record().expect("a whole file").is_some() {
            count += 1;
        }
        count
    }

    #[test]
    fn all_frames_are_on_disk_when_the_writer_is_dropped_and_parts_become_files() {
        let (files, links, plan) = files_of("whole");
        let (writer, sinks) = CaptureWriter::begin(&files, 1, &links, WhenFull::Wait).expect("files");
        for number in 0..20_000 {
            let frame = [number as u8; 900];
            sinks[0].write(|to| to.sent(Instant(number), 0, &frame, &Verdict::default()));
        }
        sinks[1].write(|to| to.sent(Instant(1), 0, &[1; 60], &Verdict::default()));
        drop(writer);
        let part = files.part(&links[0], 1);
        assert_eq!(std::fs::metadata(&part).expect("a part").len() >> 20, 16, "it ends at its limit");
        let notes = files.join(&plan).expect("parts can be joined");
        assert_eq!(notes, ["the capture n0-p0--n1-p1.pcapng is full; --capture-bytes allows more"]);
        assert!(!part.exists());
        assert_eq!(frames_in(&files.directory.join(file_name(&links[1]))), 1);
        std::fs::remove_dir_all(&files.directory).expect("the folder can be removed");
    }

    fn file_name(heading: &Heading) -> String {
        format!("{}.pcapng", heading.link)
    }

    #[test]
    fn frames_reach_the_disk_while_the_writer_runs() {
        let (files, links, _) = files_of("soon");
        let (_writer, sinks) = CaptureWriter::begin(&files, 1, &links, WhenFull::Drop).expect("files");
        sinks[0].write(|to| to.sent(Instant(1), 0, &[1; 60], &Verdict::default()));
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        let part = files.part(&links[0], 1);
        while std::fs::metadata(&part).expect("a part").len() == 0 {
            assert!(std::time::Instant::now() < deadline, "nothing was written");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(frames_in(&part), 1);
        std::fs::remove_dir_all(&files.directory).expect("the folder can be removed");
    }
}
