//! Frames of one link of a standing rack, while they are recorded.
//!
//! The processes at the two ends write files of their own ([`crate::capture`]), ten times a second. This module reads them as they
//! grow and writes one pcapng file in order of time. A frame that was not used stays a frame of the receiving end: only the join at
//! the end of the rack moves its comment to the frame that was sent.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rackloom::Clock;
use rackloom_capture::growing::{Block, GrowingFile};
use rackloom_control::request::{CaptureStatus, RackStatus};

use crate::capture::{CaptureFiles, Part};
use crate::machine::directory::RunDirectory;
use crate::machine::interruption::Interruption;
use crate::outcome::failure::Failure;

/// Time between two reads of the files.
const INTERVAL: Duration = Duration::from_millis(50);
/// Time between two checks that the rack is up.
const RACK_INTERVAL: Duration = Duration::from_millis(500);
/// Age at which frames are written, in nanoseconds. Frames of both ends are in their files by then, unless the machine is busy.
const DELAY_NS: u64 = 300_000_000;
/// Blocks before the first frame: the section, and an interface for each end.
const HEADING_BLOCKS: usize = 3;

/// Link whose frames are followed.
#[derive(Debug)]
pub struct LiveCapture {
    rack: String,
    files: CaptureFiles,
    /// Both ends, as in the names of files.
    link: String,
    clock: Clock,
    open: Vec<OpenPart>,
    /// Frames that wait for their turn, by time and by order of arrival.
    waiting: BTreeMap<(u64, u64), Vec<u8>>,
    arrived: u64,
    is_headed: bool,
}

/// Frames that were written, and the reason for their end.
#[derive(Clone, Copy, Debug)]
pub struct Captured {
    /// Number of frames.
    pub frames: u64,
    /// True if the rack does not answer any more; false after an interruption.
    pub is_rack_over: bool,
}

/// File of one process that is read.
#[derive(Debug)]
struct OpenPart {
    path: PathBuf,
    file: File,
    content: GrowingFile,
    heading: Vec<Vec<u8>>,
}

/// Returns the links that a rack records, as `n0-p0--n1-p1`, in the order of their names.
///
/// # Errors
/// The rack records no frames, or its files cannot be listed.
pub fn captured_links(status: &RackStatus) -> Result<Vec<String>, Failure> {
    let (files, _) = files_of(status)?;
    let mut links: Vec<_> = parts_of(&files)?.into_iter().map(|part| part.link).collect();
    links.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    links.dedup();
    Ok(links)
}

/// Follows one link: `n0--n1`, `n0--n1#1` for the second of two parallel links, or `n0-p0--n1-p1`.
///
/// # Errors
/// The rack records no frames, or has no such link.
pub fn follow(status: &RackStatus, link: &str) -> Result<LiveCapture, Failure> {
    let links = captured_links(status)?;
    let (files, run) = files_of(status)?;
    let link = chosen(&links, link).ok_or_else(|| {
        let names: Vec<_> = links.iter().map(|name| members_of(name)).collect();
        Failure::bad_input(format!("rack {} has no link {link}", status.name))
            .hint(format!("its links are {}", names.join(", ")))
    })?;
    Ok(LiveCapture {
        rack: status.name.clone(),
        files,
        link,
        clock: Clock::with_origin(run),
        open: Vec::new(),
        waiting: BTreeMap::new(),
        arrived: 0,
        is_headed: false,
    })
}

fn files_of(status: &RackStatus) -> Result<(CaptureFiles, u64), Failure> {
    let Some(CaptureStatus { directory, run }) = &status.captures else {
        let what = format!("rack {} records no frames", status.name);
        return Err(Failure::bad_input(what).hint("start it with `rackloom up FILE --capture DIR`"));
    };
    Ok((CaptureFiles::of_run(directory, *run), *run))
}

fn parts_of(files: &CaptureFiles) -> Result<Vec<Part>, Failure> {
    files.parts().map_err(|error| {
        Failure::could_not_start("cannot list the captures", error).at_path(files.directory())
    })
}

/// Returns the name of a link without ports: `n0--n1`.
fn members_of(link: &str) -> String {
    let member = |end: &str| end.rsplit_once("-p").map_or(end, |(member, _)| member).to_owned();
    link.split_once("--").map_or_else(|| link.to_owned(), |(a, b)| format!("{}--{}", member(a), member(b)))
}

/// Returns the link that a user means, if there is one.
fn chosen(links: &[String], link: &str) -> Option<String> {
    let (members, number) = link.split_once('#').unwrap_or((link, "0"));
    let number: usize = number.parse().ok()?;
    let turned = members.split_once("--").map(|(a, b)| format!("{b}--{a}"));
    let is_between = |one: &&String| {
        let ends = members_of(one);
        ends == members || turned.as_ref() == Some(&ends)
    };
    let exact = links.iter().find(|one| *one == link);
    exact.or_else(|| links.iter().filter(is_between).nth(number)).cloned()
}

impl LiveCapture {
    /// Writes the frames until the rack ends, an interruption, or an error of `out`.
    ///
    /// # Errors
    /// A file cannot be read, or `out` cannot be written.
    pub fn write_to(&mut self, out: &mut dyn Write, interruption: &Interruption) -> io::Result<Captured> {
        let mut next_check = Instant::now() + RACK_INTERVAL;
        let mut frames = 0;
        let mut is_rack_over = false;
        loop {
            let is_interrupted = interruption.is_requested();
            if !is_interrupted && Instant::now() >= next_check {
                is_rack_over = !self.is_rack_up();
                next_check = Instant::now() + RACK_INTERVAL;
            }
            let is_last = is_interrupted || is_rack_over;
            self.read()?;
            let until_ns = if is_last { u64::MAX } else { self.clock.now().0.saturating_sub(DELAY_NS) };
            frames += self.write_until(until_ns, out)?;
            if is_last {
                return Ok(Captured { frames, is_rack_over });
            }
            thread::sleep(INTERVAL);
        }
    }

    /// Returns true if the rack accepts connections, as long as it is not known otherwise.
    fn is_rack_up(&self) -> bool {
        RunDirectory::open().and_then(|run| run.connect(&self.rack)).map_or(true, |stream| stream.is_some())
    }

    /// Reads what has been added to the files, and opens those of new processes.
    fn read(&mut self) -> io::Result<()> {
        // The directory is gone when its owner removes it; the open files can be read still.
        for Part { link, path } in self.files.parts().unwrap_or_default() {
            if link == self.link && self.open.iter().all(|open| open.path != path) {
                // The rack has ended and joined its files if it is gone.
                let Ok(file) = File::open(&path) else { continue };
                self.open.push(OpenPart { path, file, content: GrowingFile::default(), heading: Vec::new() });
            }
        }
        let mut bytes = Vec::new();
        for part in &mut self.open {
            bytes.clear();
            part.file.read_to_end(&mut bytes)?;
            part.content.append(&bytes);
            for block in part.content.take_blocks() {
                match block {
                    Block::Heading(bytes) => part.heading.push(bytes),
                    Block::Frame { timestamp_ns, bytes } => {
                        self.waiting.insert((timestamp_ns, self.arrived), bytes);
                        self.arrived += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes the heading once a file has it, and the frames up to this time. Returns their number.
    fn write_until(&mut self, until_ns: u64, out: &mut dyn Write) -> io::Result<u64> {
        if !self.is_headed {
            let is_whole = |part: &&OpenPart| part.heading.len() == HEADING_BLOCKS;
            let Some(part) = self.open.iter().find(is_whole) else { return Ok(0) };
            out.write_all(&part.heading.concat())?;
            self.is_headed = true;
        }
        let later = self.waiting.split_off(&(until_ns, u64::MAX));
        let due = std::mem::replace(&mut self.waiting, later);
        due.values().try_for_each(|block| out.write_all(block))?;
        out.flush()?;
        Ok(due.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_named_by_its_members_or_by_its_ports() {
        let links = ["a-p0--b-p1", "a-p2--b-p3", "b-p0--sw-1-p0"].map(str::to_owned);
        for (name, expected) in [
            ("a--b", Some(0)),
            ("b--a", Some(0)),
            ("a--b#1", Some(1)),
            ("a--b#2", None),
            ("a-p2--b-p3", Some(1)),
            ("sw-1--b", Some(2)),
            ("a--c", None),
            ("a", None),
        ] {
            assert_eq!(chosen(&links, name), expected.map(|index: usize| links[index].clone()), "{name}");
        }
    }
}
