//! The thread that writes captures to disk, so that the path of a frame never waits for one.
//!
//! A pen appends to memory; ten times a second, or when much has come together, the capture writer takes what is there away and
//! writes it out. What a process that is killed had not written is thus a tenth of a second at most. If the disk cannot
//! follow, a rack of processes continues and the capture counts the missing frames; the simulator, which has a virtual clock, waits.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rackloom_capture::{Heading, Recorder};

use super::Place;

/// Longest time that frames stay in memory.
const INTERVAL: Duration = Duration::from_millis(100);
/// Number of waiting bytes of one link at which the thread writes at once.
const URGENT_BYTES: usize = 256 << 10;
/// Maximum number of waiting bytes of one link.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// Behaviour when the disk cannot follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Leave frames out.
    None,
    /// Wait until there is room.
    Endless,
}

/// One file and what waits for it.
struct Sheet {
    file: File,
    path: PathBuf,
    recorder: Mutex<Recorder>,
    /// Tells those who wait that there is room again.
    room: Condvar,
}

#[derive(Default)]
struct Calls {
    ended: bool,
    urgent: bool,
}

struct Desk {
    sheets: Vec<Arc<Sheet>>,
    calls: Mutex<Calls>,
    bell: Condvar,
}

/// Appends frames to one file.
#[derive(Clone)]
pub struct FrameSink {
    sheet: Arc<Sheet>,
    desk: Arc<Desk>,
    patience: Patience,
}

/// Handle of the writing thread. When it is dropped, all frames have been written.
pub struct CaptureWriter {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

impl CaptureWriter {
    /// Opens one file for each of these links, named after this process, and returns a sink for each, in order.
    ///
    /// # Errors
    /// A file cannot be made, or the thread cannot be started.
    pub fn begin(
        place: &Place,
        process: u64,
        links: &[Heading],
        patience: Patience,
    ) -> io::Result<(Self, Vec<FrameSink>)> {
        let open = |heading: &Heading| {
            let path = place.part(heading, process);
            let named =
                |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            let file = crate::machine::exclusive::create(&path).map_err(named)?;
            let recorder = Mutex::new(Recorder::new(heading, place.bytes_max));
            Ok(Arc::new(Sheet { file, path, recorder, room: Condvar::new() }))
        };
        let sheets = links.iter().map(open).collect::<io::Result<Vec<_>>>()?;
        let desk = Arc::new(Desk { sheets, calls: Mutex::default(), bell: Condvar::new() });
        let sink =
            |sheet: &Arc<Sheet>| FrameSink { sheet: Arc::clone(sheet), desk: Arc::clone(&desk), patience };
        let sinks = desk.sheets.iter().map(sink).collect();
        let theirs = Arc::clone(&desk);
        let thread =
            std::thread::Builder::new().name("capture".to_owned()).spawn(move || theirs.write_out())?;
        Ok((Self { desk, thread: Some(thread) }, sinks))
    }
}

impl Drop for CaptureWriter {
    fn drop(&mut self) {
        lock(&self.desk.calls).ended = true;
        self.desk.bell.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl FrameSink {
    /// Appends a frame. Without room it waits or leaves the frame out, see [`Patience`].
    pub fn write(&self, what: impl FnOnce(&mut Recorder)) {
        let mut recorder = lock(&self.sheet.recorder);
        if recorder.waiting_bytes() > WAITING_BYTES_MAX {
            if self.patience == Patience::None {
                return recorder.miss();
            }
            while recorder.waiting_bytes() > WAITING_BYTES_MAX {
                self.desk.call();
                let waited = self.sheet.room.wait_timeout(recorder, INTERVAL);
                recorder = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        let before = recorder.waiting_bytes();
        what(&mut recorder);
        if before < URGENT_BYTES && recorder.waiting_bytes() >= URGENT_BYTES {
            drop(recorder);
            self.desk.call();
        }
    }
}

impl Desk {
    fn call(&self) {
        lock(&self.calls).urgent = true;
        self.bell.notify_one();
    }

    /// The loop of the capture writer. A sheet that cannot be written any more is given up, and the others go on.
    fn write_out(&self) {
        let mut given_up = vec![false; self.sheets.len()];
        let mut empty = Vec::new();
        loop {
            let calls = lock(&self.calls);
            let waits = |calls: &mut Calls| !calls.ended && !calls.urgent;
            let waited = self.bell.wait_timeout_while(calls, INTERVAL, waits);
            let mut calls = waited.unwrap_or_else(PoisonError::into_inner).0;
            calls.urgent = false;
            let is_last = calls.ended;
            drop(calls);
            for (sheet, given_up) in self.sheets.iter().zip(&mut given_up) {
                let full = lock(&sheet.recorder).take(std::mem::take(&mut empty));
                sheet.room.notify_all();
                if !*given_up && let Err(error) = (&sheet.file).write_all(&full) {
                    tracing::error!("the capture {} ends here: {error}", sheet.path.display());
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

    fn place(name: &str) -> (Place, Vec<Heading>, Plan) {
        let directory =
            std::env::temp_dir().join(format!("rackloom-capture-writer-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a scratch folder");
        let plan = Plan::parse("name: r\nshape: {ring: {nodes: 3}}\n", "test").expect("a plan");
        let links = (0..2).filter_map(|edge| Heading::of(&plan, edge)).collect();
        (Place { directory, run: 7, bytes_max: 1 << 24 }, links, plan)
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
        let (place, links, plan) = place("whole");
        let (writer, sinks) = CaptureWriter::begin(&place, 1, &links, Patience::Endless).expect("files");
        for number in 0..20_000 {
            let frame = [number as u8; 900];
            sinks[0].write(|to| to.sent(Instant(number), 0, &frame, &Verdict::default()));
        }
        sinks[1].write(|to| to.sent(Instant(1), 0, &[1; 60], &Verdict::default()));
        drop(writer);
        let part = place.part(&links[0], 1);
        assert_eq!(std::fs::metadata(&part).expect("a part").len() >> 20, 16, "it ends at its limit");
        let notes = place.join(&plan).expect("parts can be joined");
        assert_eq!(notes, ["the capture n0-p0--n1-p1.pcapng is full; --capture-bytes allows more"]);
        assert!(!part.exists());
        assert_eq!(frames_in(&place.directory.join(file(&links[1]))), 1);
        std::fs::remove_dir_all(&place.directory).expect("the folder can go");
    }

    fn file(heading: &Heading) -> String {
        format!("{}.pcapng", heading.link)
    }

    #[test]
    fn frames_reach_the_disk_while_the_writer_runs() {
        let (place, links, _) = place("soon");
        let (_writer, sinks) = CaptureWriter::begin(&place, 1, &links, Patience::None).expect("files");
        sinks[0].write(|to| to.sent(Instant(1), 0, &[1; 60], &Verdict::default()));
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        let part = place.part(&links[0], 1);
        while std::fs::metadata(&part).expect("a part").len() == 0 {
            assert!(std::time::Instant::now() < deadline, "nothing was written");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(frames_in(&part), 1);
        std::fs::remove_dir_all(&place.directory).expect("the folder can go");
    }
}
