//! Names for members' network namespaces, as `ip netns` shows them.
//!
//! A named namespace is mounted on a file in `/run/netns`, and exists as long as that mount. A name therefore keeps the interfaces of an ended member
//! alive, and with them its neighbours' carriers. The process that gives a name must remove it as soon as the member's process has ended. For that
//! reason names are given only on request. They need root, because they are mounts of the system.
//!
//! A supervisor that is killed leaves its names behind. It records them in a file that it holds locked while it runs (`/run/rackloom-netns`). Two
//! processes use the lock to distinguish the records of ended supervisors and remove their names: a process that was set to watch for the
//! supervisor's end ([`sweep_names_after`]), and the next supervisor that starts, in case that process was killed as well.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use thiserror::Error;

/// Folder in which `ip netns` finds names.
const NAMES: &str = "/run/netns";
/// Folder of the records: one file per supervisor, with the names that it gave.
const RECORDS: &str = "/run/rackloom-netns";

/// Error of naming a namespace.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NameError {
    /// The process is not root. Names are mounts of the system.
    #[error("names that `ip netns` shows need root\nhint: run as root, or leave --netns-names out")]
    NeedsRoot,
    /// The name is in use.
    #[error(
        "there is a network namespace named {name} already\n\
         hint: another rack of this name, or `ip netns del {name}` if it is unused"
    )]
    Taken {
        /// The name.
        name: String,
    },
    /// Some other error of the system.
    #[error("cannot name the network namespace {name}: {cause}")]
    System {
        /// The name.
        name: String,
        /// The kernel's error.
        cause: io::Error,
    },
}

/// Names that exist as long as this value.
///
/// `Send` and `Sync`: its changes take `&mut self`.
#[derive(Debug)]
pub struct Names {
    rack: String,
    /// Names by member.
    given: BTreeMap<String, String>,
    record: File,
    record_path: PathBuf,
}

impl Names {
    /// Prepares names for the members of a rack, and removes the names that ended supervisors left behind.
    ///
    /// # Errors
    /// [`NameError`], with a hint.
    pub fn begin(rack: &str) -> Result<Self, NameError> {
        if !geteuid().is_root() {
            return Err(NameError::NeedsRoot);
        }
        let begin = || {
            fs::create_dir_all(NAMES)?;
            DirBuilder::new().mode(0o700).recursive(true).create(RECORDS)?;
            // The lock excludes a concurrent sweep.
            let records = File::open(RECORDS)?;
            flock(&records, FlockOperation::LockExclusive)?;
            sweep(Path::new(RECORDS));
            let record_path = Path::new(RECORDS).join(std::process::id().to_string());
            let record = File::create(&record_path)?;
            flock(&record, FlockOperation::NonBlockingLockExclusive)?;
            Ok(Self { rack: rack.to_owned(), given: BTreeMap::new(), record, record_path })
        };
        begin().map_err(|cause| NameError::System { name: format!("{rack}-*"), cause })
    }

    /// Names the network namespace of a member's process: the rack's name, `-`, and the member's name.
    ///
    /// # Errors
    /// [`NameError`], with a hint.
    pub fn give(&mut self, member: &str, process: u32) -> Result<(), NameError> {
        self.take(member);
        let name = format!("{}-{member}", self.rack);
        let path = Path::new(NAMES).join(&name);
        let failed = |cause: io::Error| match cause.kind() {
            io::ErrorKind::AlreadyExists => NameError::Taken { name: name.clone() },
            _ => NameError::System { name: name.clone(), cause },
        };
        // The record is written before the name exists. At worst a later sweep finds a name that does not exist.
        self.record.write_all(format!("{name}\n").as_bytes()).map_err(failed)?;
        let file = File::options().write(true).create_new(true).open(&path).map_err(|cause| {
            // The name belongs to another process, so it must not be swept with the names of this one.
            let _ = self.rewrite();
            failed(cause)
        })?;
        self.given.insert(member.to_owned(), name.clone());
        file.set_permissions(Permissions::from_mode(0o444)).map_err(failed)?;
        mount(Path::new(&format!("/proc/{process}/ns/net")), &path).map_err(failed)
    }

    /// Removes a member's name, if it has one. Call this when the member's process has ended.
    pub fn take(&mut self, member: &str) {
        if let Some(name) = self.given.remove(member) {
            remove(&name);
            let _ = self.rewrite();
        }
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let names: String = self.given.values().map(|name| format!("{name}\n")).collect();
        self.record.set_len(0)?;
        io::Seek::rewind(&mut self.record)?;
        self.record.write_all(names.as_bytes())
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.given.values().for_each(|name| remove(name));
        let _ = fs::remove_file(&self.record_path);
    }
}

/// Removes the names that the ended supervisor `process` gave, and those of other ended supervisors. Waits until the kernel has released the record
/// of `process`, at most `timeout`.
///
/// # Errors
/// The kernel's error for the records.
pub fn sweep_names_after(process: u32, timeout: Duration) -> io::Result<()> {
    let deadline = Instant::now() + timeout;
    let record_path = Path::new(RECORDS).join(process.to_string());
    loop {
        let records = match File::open(RECORDS) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            records => records?,
        };
        // The lock excludes a concurrent start and a concurrent sweep.
        flock(&records, FlockOperation::LockExclusive)?;
        sweep(Path::new(RECORDS));
        // The kernel closes the files of an ended process one after another, so its lock may outlast the notification of its end.
        if !record_path.exists() || Instant::now() >= deadline {
            return Ok(());
        }
        drop(records);
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Interval at which the record of an ending process is checked again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Removes the names given by supervisors that have ended.
fn sweep(records: &Path) {
    for entry in fs::read_dir(records).into_iter().flatten().flatten() {
        let Ok(record) = File::open(entry.path()) else { continue };
        if flock(&record, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let names = fs::read_to_string(entry.path()).unwrap_or_default();
        names.lines().filter(|name| !name.contains('/')).for_each(remove);
        let _ = fs::remove_file(entry.path());
    }
}

fn remove(name: &str) {
    let path = Path::new(NAMES).join(name);
    // An error means that the mount or the file is already gone.
    let _ = unmount(&path);
    let _ = fs::remove_file(path);
}

/// Mounts a namespace at a path.
fn mount(namespace: &Path, path: &Path) -> io::Result<()> {
    let [namespace, path] = [c_string(namespace)?, c_string(path)?];
    let (none, no_data) = (c"none".as_ptr(), std::ptr::null());
    // SAFETY: needed because the rest of the crate does not use the mounts of `rustix`. All pointers are zero-terminated texts that exist through the
    // call, and a bind mount takes no data.
    let result = unsafe { libc::mount(namespace.as_ptr(), path.as_ptr(), none, libc::MS_BIND, no_data) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn unmount(path: &Path) -> io::Result<()> {
    let path = c_string(path)?;
    // SAFETY: needed for the reason given for `mount`. The path is a zero-terminated text that exists through the call. Detaching never waits.
    let result = unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn c_string(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}
