//! Names for members' network namespaces, as `ip netns` shows them.
//!
//! A namespace that has a name is a file in `/run/netns` on which it is mounted, and it lives as long as that. So a name keeps a
//! dead member's interfaces alive, and with them its neighbours' carriers: whoever gives a name takes it away as soon as the
//! process has ended. For that reason names are given only where somebody asked for them, and need root, whose mounts they are.
//!
//! A supervisor that is killed leaves its names behind. What it has named stands in a file that it holds locked while it lives
//! (`/run/rackloom-netns`), so whoever sweeps tells the dead from the living: a process that has been set to watch for the
//! supervisor's end ([`sweep_names_after`]), and the next supervisor that begins, should that process have been killed as well.

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

/// Where `ip netns` looks.
const NAMES: &str = "/run/netns";
/// Who has named what.
const RECORDS: &str = "/run/rackloom-netns";

/// Why a namespace cannot have a name.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NameError {
    /// Names are mounts of the system.
    #[error("names that `ip netns` shows need root\nhint: run as root, or leave --netns-names out")]
    NeedsRoot,
    /// Somebody has that name.
    #[error(
        "there is a network namespace named {name} already\n\
         hint: another rack of this name, or `ip netns del {name}` if nobody uses it"
    )]
    Taken {
        /// Which one.
        name: String,
    },
    /// Anything else.
    #[error("cannot name the network namespace {name}: {cause}")]
    System {
        /// Which one.
        name: String,
        /// What the kernel said.
        cause: io::Error,
    },
}

/// Names that live as long as this value.
///
/// `Send` and `Sync`: what changes it takes `&mut self`.
#[derive(Debug)]
pub struct Names {
    rack: String,
    /// Names by member.
    given: BTreeMap<String, String>,
    record: File,
    record_path: PathBuf,
}

impl Names {
    /// Be ready to name the members of a rack; sweep what dead supervisors have left.
    ///
    /// # Errors
    /// [`NameError`], with what to do about it.
    pub fn begin(rack: &str) -> Result<Self, NameError> {
        if !geteuid().is_root() {
            return Err(NameError::NeedsRoot);
        }
        let begin = || {
            fs::create_dir_all(NAMES)?;
            DirBuilder::new().mode(0o700).recursive(true).create(RECORDS)?;
            // Nobody begins while somebody sweeps.
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

    /// Name the namespace that a member's process is in: the rack's name, `-`, and the member's.
    ///
    /// # Errors
    /// [`NameError`], with what to do about it.
    pub fn give(&mut self, member: &str, process: u32) -> Result<(), NameError> {
        self.take(member);
        let name = format!("{}-{member}", self.rack);
        let path = Path::new(NAMES).join(&name);
        let failed = |cause: io::Error| match cause.kind() {
            io::ErrorKind::AlreadyExists => NameError::Taken { name: name.clone() },
            _ => NameError::System { name: name.clone(), cause },
        };
        // What is written first is swept at most once too often.
        self.record.write_all(format!("{name}\n").as_bytes()).map_err(failed)?;
        let file = File::options().write(true).create_new(true).open(&path).map_err(|cause| {
            // It is somebody else's, so it must not be swept with ours.
            let _ = self.rewrite();
            failed(cause)
        })?;
        self.given.insert(member.to_owned(), name.clone());
        file.set_permissions(Permissions::from_mode(0o444)).map_err(failed)?;
        mount(Path::new(&format!("/proc/{process}/ns/net")), &path).map_err(failed)
    }

    /// Take a member's name away, if it has one: its process has ended.
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

/// Take away what the supervisor `process` has named, now that it is dead, and what others that are dead have left. What is being
/// done to the record of one that has just died is waited for, and no longer than `patience`.
///
/// # Errors
/// What the kernel says of the records.
pub fn sweep_names_after(process: u32, patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    let record_path = Path::new(RECORDS).join(process.to_string());
    loop {
        let records = match File::open(RECORDS) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            records => records?,
        };
        // Nobody begins while somebody sweeps.
        flock(&records, FlockOperation::LockExclusive)?;
        sweep(Path::new(RECORDS));
        // The kernel closes a dead process's files one after another, so its lock may outlive the word of its death.
        if !record_path.exists() || Instant::now() >= deadline {
            return Ok(());
        }
        drop(records);
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// How soon to look again at the record of a process that is about to be gone.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Take away what supervisors that live no more have named.
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
    // What is not there any more need not go.
    let _ = unmount(&path);
    let _ = fs::remove_file(path);
}

/// Let a namespace be found at a path.
fn mount(namespace: &Path, path: &Path) -> io::Result<()> {
    let [namespace, path] = [c_string(namespace)?, c_string(path)?];
    let (none, no_data) = (c"none".as_ptr(), std::ptr::null());
    // SAFETY: needed because the rest of the crate does without the mounts of `rustix`. All pointers are zero-terminated texts
    // that live through the call, and a bind mount takes no data.
    let result = unsafe { libc::mount(namespace.as_ptr(), path.as_ptr(), none, libc::MS_BIND, no_data) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn unmount(path: &Path) -> io::Result<()> {
    let path = c_string(path)?;
    // SAFETY: needed as above. The path is a zero-terminated text that lives through the call. Detaching never waits.
    let result = unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn c_string(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}
