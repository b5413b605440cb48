//! Files of other tools as workloads, or as hardware.
//!
//! [`read`] takes the files of one format and returns a workload that satisfies [`check`](crate::check()), or the members and
//! links of a rack. It also returns notes on parts that were left out. Files are bytes with a name; this module opens none.
//!
//! `docs/workloads.md` has a section for each format.

mod chakra;
mod connections;
mod format;
mod goal;
mod hardware;
mod imported;
mod nccl_log;
mod nccl_topology;
mod notes;
mod order;
mod topo;

pub use format::Format;
pub use hardware::{Hardware, LINKS_MAX, Link, MEMBERS_MAX, PARALLEL_MAX, Speed};
pub use imported::{Content, File, Imported, Options};

use crate::error::{WorkloadError, WorkloadErrors};
use crate::text;

/// Reads files of one format. Without `format`, it follows from the content of the first file that is no JSON.
///
/// # Errors
///
/// Returns the mistakes of the first file that has any, with lines or records. Several files of a format that has one file, and a
/// content of no known format, are mistakes.
pub fn read(
    files: &[File<'_>],
    format: Option<Format>,
    options: &Options,
) -> Result<Imported, WorkloadErrors> {
    let Some(first) = files.first() else {
        return Err(WorkloadError::whole("no file is named", "name at least one file").of("import"));
    };
    options.machine.check().map_err(|name| {
        WorkloadError::whole(format!("{name} is not above 0"), "state a rate or size").of("machine")
    })?;
    let format = format.or_else(|| detected(files)).ok_or_else(|| {
        let reason = "the format of the file is not known by its content";
        WorkloadError::whole(reason, format!("name the format: {}", Format::names())).of(first.name)
    })?;
    match format {
        Format::Chakra => chakra::read(files, options),
        Format::NcclLog => nccl_log::read(files),
        Format::NcclTopology => nccl_topology::read(files),
        Format::Rackloom | Format::Goal | Format::Connections | Format::Topo => {
            read_one(files, format, options)
        }
    }
}

/// Returns the format of the first file that is no JSON.
fn detected(files: &[File<'_>]) -> Option<Format> {
    let first = files.iter().find(|file| !file.is_json())?;
    Format::of_content(first.bytes)
}

/// Reads a format of a single file.
fn read_one(files: &[File<'_>], format: Format, options: &Options) -> Result<Imported, WorkloadErrors> {
    let [file] = files else {
        let second = files.get(1).map_or("import", |file| file.name);
        let reason = format!("a workload of the format {} is one file", format.name());
        return Err(WorkloadError::whole(reason, "import one file at a time").of(second));
    };
    match format {
        Format::Goal => goal::read(file, options),
        Format::Connections => connections::read(file),
        Format::Topo => topo::read(file),
        _ => {
            let workload = text::read_checked(file.text()?, file.name)?;
            Ok(Imported { content: Content::Workload(workload), notes: Vec::new() })
        }
    }
}

#[cfg(test)]
mod tests;
