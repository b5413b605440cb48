//! Runs through the command: one process per node, as for any user.
//!
//! The command is started again with the rack file of a row, held to the two processors of the raw loop
//! unless it may use all, and its JSON report is read. Runs have watchdogs of their own, so no wait is
//! endless.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use rackloom_calibrate::processors::hold_to;
use serde_json::Value;

use crate::bench::Bench;
use crate::measure_error::MeasureError;
use crate::runs::raw_loop::RawLoop;
use rackloom_runtime::outcome::exit::Exit;

/// Reason why rows that start racks are not measured.
const NO_PROGRAM: &str =
    "there is no program `rackloom` beside this one; hint: build it, or name it in RACKLOOM";

/// Returns the command: the one that `RACKLOOM` names, or the one beside this tool.
fn command() -> Option<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("rackloom"));
    std::env::var_os("RACKLOOM").map(PathBuf::from).or_else(beside).filter(|program| program.exists())
}

/// Processors on which the processes may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// The two processors of the raw loop.
    Pair,
    /// All that this process may use.
    All,
}

/// Runs `rackloom` with these arguments. Returns its standard output.
pub(crate) fn rackloom(bench: &Bench, on: On, arguments: &[String]) -> Result<String, MeasureError> {
    started(bench, on, arguments, |_| {})
}

/// Runs `rackloom` as [`rackloom()`] does, and calls `begun` with the process id once it has started.
pub(crate) fn started(
    bench: &Bench,
    on: On,
    arguments: &[String],
    begun: impl FnOnce(u32) + Send,
) -> Result<String, MeasureError> {
    let program = command().ok_or_else(|| MeasureError::NotHere(NO_PROGRAM.to_owned()))?;
    let output = output(bench, on, &program, arguments, begun)?;
    match output.status.code() {
        Some(0) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => Err(failed(arguments, &output)),
    }
}

fn failed(arguments: &[String], output: &Output) -> MeasureError {
    MeasureError::Failed(format!("rackloom {}: {}", arguments.join(" "), reason(&output.stderr)))
}

fn output(
    bench: &Bench,
    on: On,
    program: &Path,
    arguments: &[String],
    begun: impl FnOnce(u32) + Send,
) -> Result<Output, MeasureError> {
    let processors = match on {
        On::Pair => {
            let pair = bench.pair()?;
            vec![pair.initiator, pair.target]
        }
        On::All => rackloom_calibrate::processors::allowed()?,
    };
    let interruption = bench.interruption();
    let start = || -> io::Result<Output> {
        hold_to(&processors)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C reaches only this process, which then interrupts the command once.
        let child = command.process_group(0).spawn()?;
        begun(child.id());
        interruption.wait_for(child)
    };
    // The restriction to processors applies to this thread and is inherited by its children.
    let output = thread::scope(|scope| scope.spawn(start).join());
    Ok(output.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
}

/// Returns the line of a command's error output that has the reason.
fn reason(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let is_telling = |line: &&str| line.starts_with("error: ") || line.starts_with("  ");
    let line =
        text.lines().find(|line| line.starts_with("error: ")).or_else(|| text.lines().rfind(is_telling));
    line.or_else(|| text.lines().last())
        .unwrap_or("no reason given")
        .trim_start_matches("error: ")
        .trim()
        .to_owned()
}

/// Writes a rack file to the row's directory. Returns its path.
pub(crate) fn rack_file(bench: &Bench, name: &str, text: &str) -> Result<String, MeasureError> {
    let path = bench.directory().join(format!("{name}.yaml"));
    std::fs::write(&path, text)?;
    Ok(path.display().to_string())
}

/// Returns the nanoseconds per message or run that a job reports for `what`.
pub(crate) fn job_ns(bench: &Bench, on: On, what: &str, arguments: &[String]) -> Result<f64, MeasureError> {
    let printed = rackloom(bench, on, arguments)?;
    let report: Value = serde_json::from_str(&printed)
        .map_err(|error| MeasureError::Failed(format!("a report cannot be read: {error}")))?;
    let rows = report["sweep"].as_array().map_or(&[][..], Vec::as_slice);
    let row = rows.iter().find(|row| row["what"] == what);
    let time_us = row.and_then(|row| row["time_us"].as_f64()).filter(|time_us| *time_us > 0.0);
    time_us
        .map(|time_us| time_us * 1000.0)
        .ok_or_else(|| MeasureError::Failed(format!("the report has no {what}")))
}

/// Runs one take of a raw loop, with this tool's hidden subcommand.
pub(crate) fn raw_loop(bench: &Bench, what: RawLoop, count: u64) -> Result<f64, MeasureError> {
    let arguments = words(&format!("loop {} --count {count}", what.word()));
    let output = output(bench, On::Pair, Path::new("/proc/self/exe"), &arguments, |_| {})?;
    let printed = match output.status.code() {
        Some(0) => String::from_utf8_lossy(&output.stdout).into_owned(),
        // A row needs no figure for a feature that the machine does not have.
        Some(code) if code == i32::from(Exit::CouldNotStart.code()) => {
            return Err(MeasureError::NotHere(reason(&output.stderr)));
        }
        _ => return Err(failed(&arguments, &output)),
    };
    printed.trim().parse().map_err(|_| MeasureError::Failed(format!("the raw loop printed {printed:?}")))
}

/// Splits a command line at spaces.
pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_line_of_the_output_is_found() {
        let text = b"member role\nn0 gpu\nerror: cables need x\nhint: use y\n";
        assert_eq!(reason(text), "cables need x");
        assert_eq!(reason(b"table\n  n0: broke off\nverdict: fail\n"), "n0: broke off");
        assert_eq!(reason(b""), "no reason given");
    }
}
