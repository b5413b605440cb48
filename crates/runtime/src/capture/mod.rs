//! `--capture`: what passes over each link, in files.
//!
//! Each process writes what its own ends see into parts of its own, so nobody waits for anybody, and what a killed process
//! has written stays. When the rack is over, whoever started it joins the parts of each link into one file.
//!
//! `place` (names of files, before and after) · `writer` (the thread that writes, so that the path of a frame does not)
//! · `simulated` (the simulator's frames). What is in a file is the business of `crates/capture`.

mod place;
#[path = "../../../cli/src/simulated_links.rs"]
mod simulated;
mod writer;

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

pub(crate) use self::place::Place;
pub(crate) use self::simulated::SimulatedLinks;
pub(crate) use self::writer::{CaptureWriter, FrameSink, Patience};

use crate::arguments::{OUTPUT, size};
use crate::failure::Failure;

/// Largest capture of one link unless the command line says otherwise.
const BYTES_MAX_DEFAULT: u64 = 64 << 20;

/// Options of captures.
#[derive(Args, Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct CaptureOptions {
    /// Write the frames of each link to a pcapng file in this directory
    #[arg(long = "capture", help_heading = OUTPUT, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Largest capture of one link; 64MiB if absent
    #[arg(long = "capture-bytes", help_heading = OUTPUT, value_name = "SIZE", value_parser = bytes_max, requires = "directory")]
    pub(crate) bytes_max: Option<u64>,
}

impl CaptureOptions {
    /// Seats and supervisors do not live where the command was typed.
    pub(crate) fn absolute(&self) -> Result<Self, Failure> {
        let directory = self.directory.as_deref().map(std::path::absolute).transpose();
        let directory = directory.map_err(|error| Failure::bad_input(error.to_string()))?;
        Ok(Self { directory, bytes_max: self.bytes_max })
    }

    /// Make the directory, before anything starts.
    pub(crate) fn make_directory(&self) -> Result<(), Failure> {
        let Some(directory) = &self.directory else { return Ok(()) };
        std::fs::create_dir_all(directory).map_err(|error| {
            Failure::bad_input(format!("cannot make the directory of captures: {error}"))
                .at_path(directory)
                .hint("name a folder that you may write to")
        })
    }

    /// Where the captures of one run go; nowhere if none are wanted. `run` tells runs apart.
    pub(crate) fn place(&self, run: u64) -> Option<Place> {
        let directory = self.directory.clone()?;
        Some(Place { directory, run, bytes_max: self.bytes_max.unwrap_or(BYTES_MAX_DEFAULT) })
    }
}

fn bytes_max(text: &str) -> Result<u64, String> {
    let least = rackloom_capture::recorder::BYTES_MIN;
    let bytes_max = size(text)?;
    if bytes_max < least {
        Err(format!("a capture needs {}KiB at least", least >> 10))
    } else {
        Ok(bytes_max)
    }
}
