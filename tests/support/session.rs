//! Session of a user: a run directory of its own, with the racks that the test starts there.

use std::path::PathBuf;

use super::{Ended, rackloom, scratch};

/// Session of a user. All its racks are taken down on drop.
pub(crate) struct Session {
    pub(crate) path: PathBuf,
}

impl Session {
    pub(crate) fn begin() -> Self {
        Self::begin_at(scratch("session"))
    }

    pub(crate) fn begin_at(path: PathBuf) -> Self {
        std::fs::create_dir(&path).expect("the folder can be written");
        Self { path }
    }

    /// Runs a command in this session.
    pub(crate) fn rackloom(&self, arguments: &[&str]) -> Ended {
        rackloom(arguments).in_run_directory(&self.path).finish()
    }

    /// Runs a command that must pass. Returns its standard output.
    pub(crate) fn passes(&self, arguments: &[&str]) -> String {
        let ended = self.rackloom(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}\n{}\n{}", ended.stdout, ended.stderr);
        ended.stdout
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = rackloom(&["down", "--all"]).in_run_directory(&self.path).finish();
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
