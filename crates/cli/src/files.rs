//! Files that a command reads and writes. A file that is written has one name and one use: two results in one file would destroy each
//! other, and a result in a file that is read would destroy it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Files of a command, each with its option or its purpose.
#[derive(Default)]
pub(crate) struct Files {
    read: Vec<Named>,
    written: Vec<Named>,
}

struct Named {
    name: &'static str,
    path: PathBuf,
    identity: Identity,
}

/// Identity of a file: equal for two paths of one file.
#[derive(PartialEq, Eq)]
enum Identity {
    /// Device and number of a file that exists, through links.
    Existing(u64, u64),
    /// Path of a file that does not exist yet, in a folder without links.
    Absent(PathBuf),
}

impl Files {
    /// Adds files that are read. `name` says for what: `the rack file`.
    pub(crate) fn reads<'a>(
        mut self,
        name: &'static str,
        paths: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Self {
        self.read.extend(named(name, paths));
        self
    }

    /// Adds files that are written. `name` is their option: `--json`.
    pub(crate) fn writes<'a>(
        mut self,
        name: &'static str,
        paths: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Self {
        self.written.extend(named(name, paths));
        self
    }

    /// Checks, before anything is written, that no file would be written that is read or written for something else.
    pub(crate) fn must_differ(&self) -> Result<(), Failure> {
        for (index, output) in self.written.iter().enumerate() {
            let is_same = |other: &&Named| other.identity == output.identity;
            if let Some(input) = self.read.iter().find(is_same) {
                let what = format!("{} would overwrite {}", output.name, input.name);
                let hint = format!("name another file with {}", output.name);
                return Err(Failure::bad_input(what).at_path(&output.path).hint(hint));
            }
            if let Some(other) = self.written[..index].iter().find(is_same) {
                let what = format!("{} and {} name one file", other.name, output.name);
                return Err(Failure::bad_input(what)
                    .at_path(&output.path)
                    .hint("name a file for each of them"));
            }
        }
        Ok(())
    }
}

/// Returns the files among these paths. Standard streams, devices and folders are left out: they hold nothing that a write destroys.
fn named<'a>(
    name: &'static str,
    paths: impl IntoIterator<Item = &'a PathBuf>,
) -> impl Iterator<Item = Named> {
    let files = paths.into_iter().filter(|path| path.as_os_str() != "-");
    files.filter_map(move |path| Some(Named { name, path: path.clone(), identity: identity(path)? }))
}

fn identity(path: &Path) -> Option<Identity> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Some(Identity::Existing(found.dev(), found.ino())),
        Ok(_) => None,
        Err(_) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
            Some(Identity::Absent(folder.join(path.file_name()?)))
        }
    }
}
