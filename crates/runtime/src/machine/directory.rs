//! Run directory: one private directory per user, with one directory per running rack.
//!
//! The supervisor of a rack holds a lock on `RUN/NAME/lock`. The kernel releases the lock when the supervisor
//! ends, so the lock, and no process number in a file, says that a rack runs. Racks are claimed, swept and
//! released under `RUN/.lock`: no process locks a directory that another process is about to remove. The next
//! start removes the directories of killed supervisors. [`rackloom::seat::run_directory`] has the location of
//! the directory and of its sockets.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rackloom::seat::run_directory::{check_private, connect, run_directory, socket_in};
use rustix::fs::{FlockOperation, flock};

use crate::outcome::exit::Exit;
use crate::outcome::failure::Failure;

const LOCK: &str = "lock";
const NAME_BYTES_MAX: usize = 64;
/// Longest wait for the lock of the run directory.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_INTERVAL: Duration = Duration::from_millis(2);

/// Private directory of all running racks of a user.
#[derive(Clone, Debug)]
pub(crate) struct RunDirectory {
    path: PathBuf,
}

/// Directory of one rack. It is removed on drop.
#[derive(Debug)]
pub(crate) struct Claim {
    run: RunDirectory,
    path: PathBuf,
    _lock: File,
}

impl RunDirectory {
    /// Opens the user's run directory. Makes it if it does not exist, and refuses it if it is not private.
    ///
    /// # Errors
    /// The directory cannot be made, or other users can enter it.
    pub(crate) fn open() -> Result<Self, Failure> {
        let run = Self { path: run_directory() };
        run.make_private().map_err(|error| {
            Failure::could_not_start("cannot use the run directory", error)
                .at_path(&run.path)
                .hint("it must be a directory of yours that no other user can enter (mode 0700)")
        })?;
        Ok(run)
    }

    fn make_private(&self) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        check_private(&self.path)
    }

    /// Makes this rack's directory, and removes the directories of killed supervisors.
    ///
    /// # Errors
    /// A rack of this name runs, or the directory cannot be made.
    pub(crate) fn claim(&self, name: &str) -> Result<Claim, Failure> {
        check_name(name)?;
        let path = self.path.join(name);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Failure::new(Exit::CouldNotStart, format!("a rack named {name} is up already")).hint(
                    "give this one another name with --name, or take that one down with `rackloom down`",
                )
            }
            _ => Failure::could_not_start("cannot claim the rack's directory", error).at_path(&path),
        };
        let lock = self.claim_at(&path).map_err(failed)?;
        Ok(Claim { run: self.clone(), path, _lock: lock })
    }

    fn claim_at(&self, path: &Path) -> io::Result<File> {
        let _alone = self.lock_all()?;
        for entry in fs::read_dir(&self.path)?.flatten() {
            if entry.file_type()?.is_dir() && is_dead(&entry.path())? {
                fs::remove_dir_all(entry.path())?;
            }
        }
        DirBuilder::new().mode(0o700).create(path)?;
        let lock = open_lock(&path.join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(lock)
    }

    /// Locks the run directory against claims, sweeps and releases of other processes.
    fn lock_all(&self) -> io::Result<File> {
        let lock = open_lock(&self.path.join(".lock"))?;
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(lock),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                    std::thread::sleep(LOCK_INTERVAL)
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Connects to every running rack. Returns connections in the order of the racks' names.
    pub(crate) fn running(&self) -> Result<Vec<(String, UnixStream)>, Failure> {
        let list = || -> io::Result<Vec<_>> {
            let mut found = Vec::new();
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                let Ok(name) = entry.file_name().into_string() else { continue };
                if let Ok(stream) = connect(&entry.path()) {
                    found.push((name, stream));
                }
            }
            found.sort_by(|(a, _), (b, _)| a.cmp(b));
            Ok(found)
        };
        list().map_err(|error| Failure::could_not_start("cannot list the racks", error).at_path(&self.path))
    }

    /// Returns the state of a name.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub(crate) fn name_state(&self, name: &str) -> io::Result<NameState> {
        let _alone = self.lock_all()?;
        let path = self.path.join(name);
        if !path.try_exists()? {
            return Ok(NameState::Free);
        }
        Ok(if is_dead(&path)? { NameState::Left } else { NameState::Taken })
    }

    /// Connects to one rack. Returns `None` if no rack of this name runs.
    pub(crate) fn connect(&self, name: &str) -> Result<Option<UnixStream>, Failure> {
        check_name(name)?;
        match connect(&self.path.join(name)) {
            Ok(stream) => Ok(Some(stream)),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
            {
                Ok(None)
            }
            Err(error) => Err(Failure::could_not_start(format!("cannot reach rack {name}"), error)),
        }
    }
}

/// State of the name of a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameState {
    /// A supervisor has it.
    Taken,
    /// Its supervisor has ended without a release.
    Left,
    /// There is no directory of this name: a rack that had it was taken down in order.
    Free,
}

impl Claim {
    /// Returns the path of the rack's directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the rack's control socket with mode 0600. The private directory protects it until its mode is
    /// set.
    pub(crate) fn listen(&self) -> io::Result<UnixListener> {
        let directory = File::open(&self.path)?;
        let path = socket_in(&directory);
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Without the lock another process might just have claimed the directory. The next start removes it.
        if let Ok(_alone) = self.run.lock_all() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}

/// Returns true if no supervisor holds the lock of a rack's directory.
fn is_dead(path: &Path) -> io::Result<bool> {
    let lock = open_lock(&path.join(LOCK))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Checks that the name of a rack can also be the name of a directory.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins_well && name.len() <= NAME_BYTES_MAX && name.bytes().all(plain) {
        return Ok(());
    }
    Err(Failure::bad_input(format!("{name:?} cannot be the name of a rack that stays")).hint(format!(
        "letters, digits, '.', '_' and '-', at most {NAME_BYTES_MAX}; --name gives another one"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_directory(name: &str) -> RunDirectory {
        let path = std::env::temp_dir().join(format!("rackloom-test-{}-{name}", std::process::id()));
        let run = RunDirectory { path };
        run.make_private().unwrap();
        run
    }

    #[test]
    fn a_rack_is_claimed_once_and_again_after_its_release() {
        let run = run_directory("claim");
        assert_eq!(run.name_state("ring").unwrap(), NameState::Free);
        let claim = run.claim("ring").unwrap();
        assert_eq!(run.name_state("ring").unwrap(), NameState::Taken);
        assert_eq!(run.claim("ring").unwrap_err().exit, Exit::CouldNotStart);
        let other = run.claim("star").unwrap();
        assert!(claim.path().exists(), "a claim does not remove the directory of a running rack");
        drop(claim);
        assert!(!run.path.join("ring").exists());
        assert_eq!(run.name_state("ring").unwrap(), NameState::Free);
        drop(run.claim("ring").unwrap());
        drop(other);
        fs::remove_dir_all(&run.path).unwrap();
    }

    #[test]
    fn the_next_start_removes_the_directory_of_a_dead_rack() {
        let run = run_directory("sweep");
        let left = run.path.join("dead");
        fs::create_dir(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        fs::write(left.join("control"), "").unwrap();
        assert_eq!(run.name_state("dead").unwrap(), NameState::Left);
        let claim = run.claim("next").unwrap();
        assert!(!left.exists() && claim.path().exists());
        drop(claim);
        fs::remove_dir_all(&run.path).unwrap();
    }

    #[test]
    fn a_directory_that_others_can_enter_is_refused() {
        let run = run_directory("open");
        fs::set_permissions(&run.path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(run.make_private().is_err());
        fs::remove_dir_all(&run.path).unwrap();
        std::os::unix::fs::symlink("/tmp", &run.path).unwrap();
        assert!(run.make_private().is_err(), "a link is not followed");
        fs::remove_file(&run.path).unwrap();
    }

    #[test]
    fn names_that_would_leave_the_directory_are_refused() {
        for good in ["ring-8", "a", "A.b_c"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "../x", "a/b", ".lock", "-v", "a b", "ä", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
