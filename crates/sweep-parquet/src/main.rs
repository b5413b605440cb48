//! Results of `rackloom` as Parquet files, with the columns and rows of the CSV files.
//!
//! `rackloom-sweep-parquet DIR` writes `results.parquet` beside the `results.csv` of a sweep. `rackloom-sweep-parquet FILE.csv` writes
//! `FILE.parquet` beside the time series of a run, or beside any CSV file of this project.
//!
//! It is a program of its own, in no default build, so that the command does not depend on a library of this size. [`csv`] reads the text, and
//! [`columns`] gives each column its type and writes the file.

mod columns;
mod csv;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// Exit code for an argument that is missing or names no results that can be read.
const BAD_INPUT: u8 = 2;
/// Exit code for a file that cannot be written.
const COULD_NOT_WRITE: u8 = 3;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [argument] = arguments.as_slice() else {
        let hint =
            "rackloom-sweep-parquet DIR|FILE.csv, with the directory of a sweep or the file of `--series`";
        return failed(BAD_INPUT, "one argument is needed", hint);
    };
    let argument = Path::new(argument);
    let source = if argument.is_dir() { argument.join("results.csv") } else { argument.to_owned() };
    let target = source.with_extension("parquet");
    if source == target {
        return failed(BAD_INPUT, &format!("{} would be replaced", source.display()), "name a CSV file");
    }
    let table = match std::fs::read_to_string(&source)
        .map_err(|error| error.to_string())
        .and_then(|text| csv::read(&text))
    {
        Ok(table) => table,
        Err(error) => {
            let hint = "`rackloom sweep --out DIR` and `rackloom sim --series FILE.csv` make CSV files";
            return failed(BAD_INPUT, &format!("{}: {error}", source.display()), hint);
        }
    };
    match columns::write(&table, &target) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let hint = "name a directory that you may write to";
            failed(COULD_NOT_WRITE, &format!("{}: {error}", target.display()), hint)
        }
    }
}

fn failed(code: u8, message: &str, hint: &str) -> ExitCode {
    // Standard error may be closed, and there is no other output for a message.
    let _ = io::stderr().write_all(format!("error: {message}\n  hint:  {hint}\n").as_bytes());
    ExitCode::from(code)
}
