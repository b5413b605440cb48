//! Directory of a sweep: the rack file, the manifest, and the result of each point.
//!
//! | file | content |
//! |---|---|
//! | `rack.yaml` | copy of the rack file, so that later changes of the file do not mix results |
//! | `inputs/` | copies of the other files that runs read ([`Inputs`]) |
//! | `manifest.jsonl` | one [`Point`] per line |
//! | `points/000123.json` | [`PointResult`] of a point, complete: it is written under another name and renamed |
//! | `logs/000123.txt` | standard error of a run that has not ended well |

use std::fs;
use std::io::{self, BufRead as _, Read as _};
use std::path::{Path, PathBuf};

use rackloom_control::report::Report;
use serde::{Deserialize, Serialize};

use super::grid::Point;
use super::inputs::Inputs;
use crate::bounded::{self, REPORT_BYTES_MAX, TooLarge, Unread};
use crate::failure::Failure;

/// Maximum length of a manifest, in bytes: more than a kilobyte for each point of the largest grid.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// Names of the files.
const RACK: &str = "rack.yaml";
const MANIFEST: &str = "manifest.jsonl";
/// Remedy for a manifest that this program has not written.
const REMOVE: &str = "remove the directory and run the sweep again";

/// Directory of a sweep.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

/// Result of one point.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PointResult {
    /// The point, so that the result of another sweep is not taken for this one's.
    pub(super) point: Point,
    /// Exit code of the run.
    pub(super) exit: u8,
    /// Message of a run that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<String>,
    /// Duration of the run, in milliseconds of the host's clock.
    pub(super) took_ms: u64,
    /// Report of a run that was not refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) report: Option<Report>,
}

impl Folder {
    /// Returns the directory at this path, which need not exist.
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file of this name in the directory.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the path of the rack file.
    pub(super) fn rack(&self) -> PathBuf {
        self.file(RACK)
    }

    fn manifest(&self) -> PathBuf {
        self.file(MANIFEST)
    }

    fn result_path(&self, index: u64) -> PathBuf {
        self.file("points").join(format!("{index:06}.json"))
    }

    /// Returns the path of the log of a point.
    pub(super) fn log(&self, index: u64) -> PathBuf {
        self.file("logs").join(format!("{index:06}.txt"))
    }

    /// Makes the directory for this sweep, or checks that it holds this sweep already.
    ///
    /// # Errors
    /// It holds another sweep, or cannot be written, or the manifest is too large.
    pub(super) fn prepare(
        &self,
        rack: &str,
        inputs: &Inputs,
        points: impl Iterator<Item = Point>,
    ) -> Result<(), Failure> {
        let failed = |error| cannot_write(&self.path, error);
        for inner in ["points", "logs"] {
            fs::create_dir_all(self.file(inner)).map_err(failed)?;
        }
        let manifest = manifest_text(points).map_err(failed)?;
        if let Some(lengths) = TooLarge::of(manifest.len() as u64, MANIFEST_BYTES_MAX) {
            let what = format!("the grid is too large: {}", lengths.text("a manifest"));
            return Err(Failure::bad_input(what).hint("leave out values, or make several sweeps"));
        }
        if !self.manifest().exists() {
            write_whole(&self.rack(), rack.as_bytes()).map_err(failed)?;
            for (name, bytes) in inputs.copies() {
                let copy = self.file(name);
                copy.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
                write_whole(&copy, bytes).map_err(failed)?;
            }
            return write_whole(&self.manifest(), manifest.as_bytes()).map_err(failed);
        }
        let changed = inputs.copies().find(|(name, bytes)| !self.holds(name, bytes)).map(|(name, _)| name);
        let differs = match (self.holds(RACK, rack.as_bytes()), self.holds(MANIFEST, manifest.as_bytes())) {
            (true, true) if changed.is_none() => return Ok(()),
            (false, _) => "a sweep of another rack file".to_owned(),
            (true, false) => "another sweep: its manifest has other points or options".to_owned(),
            (true, true) => format!(
                "a sweep with another file for {}",
                changed.and_then(|name| inputs.option_of(name)).unwrap_or_default()
            ),
        };
        let hint = "name another directory, or remove this one";
        Err(Failure::bad_input(format!("the directory holds {differs}")).at_path(&self.path).hint(hint))
    }

    /// Returns true if a file of the directory has this content.
    fn holds(&self, name: &str, bytes: &[u8]) -> bool {
        bounded::read(&self.file(name), bytes.len() as u64).is_ok_and(|found| found == bytes)
    }

    /// Reads the points of the manifest.
    ///
    /// # Errors
    /// There is no manifest, or it is too large, or a line is no point.
    pub(super) fn points(&self) -> Result<Vec<Point>, Failure> {
        let bytes = bounded::read(&self.manifest(), MANIFEST_BYTES_MAX).map_err(|unread| match unread {
            Unread::System(error) => self.no_manifest(&error),
            Unread::TooLarge(lengths) => {
                let what = format!("cannot read the manifest of the sweep: {}", lengths.text("a manifest"));
                Failure::bad_input(what).at_path(&self.manifest()).hint(REMOVE)
            }
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            self.no_manifest(&io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
        })?;
        text.lines().enumerate().map(|(number, line)| self.point_of(number, line)).collect()
    }

    /// Reads one point of the manifest.
    ///
    /// # Errors
    /// There is no manifest, or no such point, or its line is no point.
    pub(super) fn point(&self, index: u64) -> Result<Point, Failure> {
        let file = fs::File::open(self.manifest()).map_err(|error| self.no_manifest(&error))?;
        let number = usize::try_from(index).unwrap_or(usize::MAX);
        match io::BufReader::new(file.take(MANIFEST_BYTES_MAX)).lines().nth(number) {
            Some(line) => self.point_of(number, &line.map_err(|error| self.no_manifest(&error))?),
            None => Err(Failure::bad_input(format!("the sweep has no point {index}"))
                .at_path(&self.manifest())
                .hint("points are counted from 0, and each has a line there")),
        }
    }

    fn no_manifest(&self, error: &io::Error) -> Failure {
        Failure::bad_input(format!("cannot read the manifest of the sweep: {error}"))
            .at_path(&self.manifest())
            .hint("name the directory that a `rackloom sweep FILE --out DIR` has made")
    }

    fn point_of(&self, number: usize, line: &str) -> Result<Point, Failure> {
        let wrong = |what: String| {
            Failure::bad_input(format!("a line of the manifest is no point: {what}"))
                .at(format!("{}:{}", self.manifest().display(), number + 1))
                .hint(REMOVE)
        };
        let point = serde_json::from_str::<Point>(line).map_err(|error| wrong(error.to_string()))?;
        match point.index == number as u64 {
            true => Ok(point),
            false => Err(wrong(format!("it has the number {} in place of {number}", point.index))),
        }
    }

    /// Returns the result of a point, or `None` if there is no complete one.
    pub(super) fn result(&self, point: &Point) -> Option<PointResult> {
        let bytes = bounded::read(&self.result_path(point.index), REPORT_BYTES_MAX).ok()?;
        serde_json::from_slice::<PointResult>(&bytes).ok().filter(|result| result.point == *point)
    }

    /// Writes the result of a point.
    ///
    /// # Errors
    /// The result is larger than those that are read, or the directory cannot be written.
    pub(super) fn write_result(&self, result: &PointResult) -> Result<(), Failure> {
        let path = self.result_path(result.point.index);
        let bytes = serde_json::to_vec(result).map_err(|error| cannot_write(&path, error))?;
        if let Some(lengths) = TooLarge::of(bytes.len() as u64, REPORT_BYTES_MAX) {
            return Err(Failure::bad_input(lengths.text("a result")).at_path(&path));
        }
        write_whole(&path, &bytes).map_err(|error| cannot_write(&path, error))
    }

    /// Writes a file of the results.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.file(name);
        write_whole(&path, text.as_bytes()).map_err(|error| cannot_write(&path, error))?;
        Ok(path)
    }
}

fn manifest_text(points: impl Iterator<Item = Point>) -> io::Result<String> {
    let mut text = String::new();
    for point in points {
        text += &serde_json::to_string(&point)?;
        text.push('\n');
    }
    Ok(text)
}

/// Writes a file under another name and renames it, so that a file of this name is always complete.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let hidden = path.with_file_name(format!(".{name}.{}", std::process::id()));
    fs::write(&hidden, bytes)?;
    fs::rename(hidden, path)
}

fn cannot_write(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::could_not_start("cannot write the sweep", error)
        .at_path(path)
        .hint("name a directory that you may write to, on a file system with free space")
}
