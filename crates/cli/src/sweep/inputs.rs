//! Files that the runs of a sweep read beside the rack file: workload, trace and fault script.
//!
//! Runs read copies in the directory of the sweep, so that later changes of the files do not mix results, and other machines need no other
//! directory. The options of a point name the copies by their paths in that directory.

use std::path::{Path, PathBuf};

use rackloom_plan::{TextFile, Unreadable};

use crate::arguments::{SimArguments, SweepArguments};
use crate::failure::Failure;
use crate::{trace, workload};

/// Files of a sweep.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    inputs: Vec<Input>,
}

#[derive(Debug)]
struct Input {
    option: &'static str,
    /// File of the user.
    source: PathBuf,
    /// Path of the copy in the directory of the sweep. It ends with the name of the file, of which workloads have their names.
    copy: String,
    bytes: Vec<u8>,
}

impl Inputs {
    /// Reads the files of these options.
    ///
    /// # Errors
    /// A file cannot be read, or is too large.
    pub(super) fn read(arguments: &SweepArguments) -> Result<Self, Failure> {
        let mut inputs = Self::default();
        for (index, file) in arguments.workload.iter().enumerate() {
            inputs.add("--workload", &format!("workload-{index}"), file, workload::bytes(file)?);
        }
        if let Some(file) = &arguments.trace {
            inputs.add("--trace", "trace", file, trace::text(file)?.into_bytes());
        }
        if let Some(file) = &arguments.faults.faults {
            let text = rackloom_plan::text_of(file, TextFile::FaultScript).map_err(
                |Unreadable { message, hint }| Failure::bad_input(message).at_path(file).hint(hint),
            )?;
            inputs.add("--faults", "faults", file, text.into_bytes());
        }
        Ok(inputs)
    }

    fn add(&mut self, option: &'static str, folder: &str, source: &Path, bytes: Vec<u8>) {
        let name = source.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let copy = format!("inputs/{folder}/{name}");
        self.inputs.push(Input { option, source: source.to_owned(), copy, bytes });
    }

    /// Returns the options of a point that name the copies.
    pub(super) fn options(&self) -> impl Iterator<Item = String> {
        self.inputs.iter().map(|input| format!("{}={}", input.option, input.copy))
    }

    /// Returns the path of each copy in the directory, and its content.
    pub(super) fn copies(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.inputs.iter().map(|input| (input.copy.as_str(), input.bytes.as_slice()))
    }

    /// Returns the option that names a copy.
    pub(super) fn option_of(&self, copy: &str) -> Option<&'static str> {
        self.inputs.iter().find(|input| input.copy == copy).map(|input| input.option)
    }

    /// Returns the file of which this path is the copy.
    pub(super) fn source_of(&self, copy: &Path) -> PathBuf {
        let input = self.inputs.iter().find(|input| Path::new(&input.copy) == copy);
        input.map_or_else(|| copy.to_owned(), |input| input.source.clone())
    }
}

/// Returns the arguments of a point with other paths of its files.
pub(super) fn located(mut arguments: SimArguments, path: impl Fn(&Path) -> PathBuf) -> SimArguments {
    let SimArguments { workload, trace, faults, .. } = &mut arguments;
    for file in workload.files.iter_mut().chain(trace).chain(&mut faults.faults) {
        *file = path(file);
    }
    arguments
}
