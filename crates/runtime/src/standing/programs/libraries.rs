//! Libraries of the rack that a program on a seat loads in place of those of the system, and one that is loaded before all others.
//!
//! The loader searches the folders of `LD_LIBRARY_PATH` first. The library is `libibverbs.so.1`, by which RDMA programs find the device
//! `rackloom0`. A build of this workspace has it as the file `ibverbs` beside the command, an installation as `../lib/rackloom/libibverbs.so.1`. The same
//! file is `librdmacm.so.1`: the loader maps a file once, also under two names, so both libraries of a process have one device.
//!
//! The library that is preloaded shows the files of the device ([`super::device_files`]). Its file is `device_files` in a build.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rackloom::seat::run_directory::run_directory;

/// Environment variable: folders that the loader searches first.
pub(super) const PATH_VARIABLE: &str = "LD_LIBRARY_PATH";
/// Environment variable: libraries that are loaded before all others.
pub(super) const PRELOAD_VARIABLE: &str = "LD_PRELOAD";
/// Names by which programs load the library. NCCL tries the one without a version first.
const NAMES: [&str; 4] = ["libibverbs.so.1", "librdmacm.so.1", "libibverbs.so", "librdmacm.so"];
/// Name of the library that is preloaded.
const PRELOADED: &str = "librackloom-device-files.so";
/// Folder of a rack's directory.
const FOLDER: &str = "libraries";

/// Libraries of a rack, as values of environment variables.
pub(super) struct Libraries {
    /// Folders that the loader searches first: that of the rack's libraries, and those of this process.
    pub(super) search_path: OsString,
    /// Libraries that are loaded first: those of this process, and that of the rack, if there is one.
    pub(super) preloaded: Option<OsString>,
}

/// Returns the libraries for programs on seats of this rack. `None` if the command was built or installed without libraries.
///
/// # Errors
/// The folder cannot be made.
pub(super) fn of_rack(rack: &str) -> io::Result<Option<Libraries>> {
    let Some(folder) = folder(&std::env::current_exe()?, &run_directory().join(rack))? else {
        return Ok(None);
    };
    let preloaded = folder.join(PRELOADED);
    let preloaded =
        preloaded.exists().then(|| with_others(PRELOAD_VARIABLE, preloaded, false)).transpose()?;
    Ok(Some(Libraries { search_path: with_others(PATH_VARIABLE, folder, true)?, preloaded }))
}

/// Returns a list of paths: this one and those of the environment variable.
fn with_others(variable: &str, path: PathBuf, is_first: bool) -> io::Result<OsString> {
    let others = std::env::var_os(variable).unwrap_or_default();
    let others = std::env::split_paths(&others).filter(|other| *other != path && other != Path::new(""));
    let mut all: Vec<_> = others.collect();
    all.insert(if is_first { 0 } else { all.len() }, path);
    std::env::join_paths(all).map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))
}

/// Returns the folder with the library that belongs to a command. `directory`: that of the rack.
fn folder(command: &Path, directory: &Path) -> io::Result<Option<PathBuf>> {
    let Some(beside) = command.parent() else { return Ok(None) };
    let built = beside.join("ibverbs");
    if built.exists() {
        let folder = directory.join(FOLDER);
        NAMES.iter().try_for_each(|name| link(&built, &folder, name))?;
        let built = beside.join("device_files");
        if built.exists() {
            link(&built, &folder, PRELOADED)?;
        }
        return Ok(Some(folder));
    }
    let installed = beside.join("../lib/rackloom");
    if installed.join(NAMES[0]).exists() { Ok(Some(installed.canonicalize()?)) } else { Ok(None) }
}

/// Makes a folder in which the library has a name that programs load. Other processes may do the same.
fn link(library: &Path, folder: &Path, name: &str) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let path = folder.join(name);
    if fs::read_link(&path).is_ok_and(|target| target == library) {
        return Ok(());
    }
    let new = folder.join(format!(".{name}.{}", std::process::id()));
    symlink(library, &new)?;
    fs::rename(&new, &path)
}

/// Returns the reason why a program cannot load the rack's libraries, or `None`. It holds its seat all the same.
#[must_use]
pub fn loads_no_library(program: &OsStr) -> Option<&'static str> {
    let path = paths_of(program).into_iter().find(|path| path.is_file())?;
    let file = File::open(&path).ok()?;
    let metadata = file.metadata().ok()?;
    let mode = metadata.permissions().mode();
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let changes_user = mode & 0o4000 != 0 && metadata.uid() != user;
    let changes_group = mode & 0o2010 == 0o2010 && metadata.gid() != group;
    if changes_user || changes_group {
        return Some("it runs with the rights of its owner, and such programs ignore LD_LIBRARY_PATH");
    }
    (is_static(&file) == Some(true)).then_some("it is static, and loads no libraries")
}

/// Returns the paths at which a program is searched: in the folders of `PATH`, unless its name has a `/`.
pub fn paths_of(program: &OsStr) -> Vec<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return vec![program.into()];
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(program)).collect()
}

/// Returns true if an ELF file of 64 bits has no loader. `None` for other files.
fn is_static(file: &File) -> Option<bool> {
    const HEADER_BYTES: usize = 64;
    const ENTRY_BYTES: u64 = 56;
    const ENTRIES_MAX: u16 = 1024;
    const LOADER: u32 = 3;
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0).ok()?;
    let is_elf_of_64_bits = header.starts_with(b"\x7fELF\x02\x01");
    if !is_elf_of_64_bits {
        return None;
    }
    let start = u64::from_le_bytes(header[32..40].try_into().ok()?);
    let size = u16::from_le_bytes(header[54..56].try_into().ok()?);
    let count = u16::from_le_bytes(header[56..58].try_into().ok()?).min(ENTRIES_MAX);
    if u64::from(size) != ENTRY_BYTES {
        return None;
    }
    for entry in 0..u64::from(count) {
        let mut kind = [0; 4];
        file.read_exact_at(&mut kind, start.checked_add(entry * ENTRY_BYTES)?).ok()?;
        if u32::from_le_bytes(kind) == LOADER {
            return Some(false);
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("rackloom-libraries-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_build_and_an_installation_have_the_library() {
        let root = Folder::new("found");
        let [bin, rack] = ["bin", "rack"].map(|name| root.0.join(name));
        for path in [&bin, &rack] {
            fs::create_dir(path).unwrap();
        }
        let command = bin.join("rackloom");
        assert_eq!(folder(&command, &rack).unwrap(), None);
        let installed = root.0.join("lib/rackloom");
        fs::create_dir_all(&installed).unwrap();
        fs::write(installed.join(NAMES[0]), "").unwrap();
        assert_eq!(folder(&command, &rack).unwrap(), Some(installed.canonicalize().unwrap()));
        fs::write(bin.join("ibverbs"), "").unwrap();
        for _ in 0..2 {
            assert_eq!(folder(&command, &rack).unwrap(), Some(rack.join(FOLDER)));
            for name in NAMES {
                assert_eq!(fs::read_link(rack.join(FOLDER).join(name)).unwrap(), bin.join("ibverbs"));
            }
        }
        // A rack may outlive the build that another command belongs to.
        let other = root.0.join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("ibverbs"), "").unwrap();
        assert_eq!(folder(&other.join("rackloom"), &rack).unwrap(), Some(rack.join(FOLDER)));
        assert_eq!(fs::read_link(rack.join(FOLDER).join(NAMES[0])).unwrap(), other.join("ibverbs"));
        assert!(folder(&command, &root.0.join("no-rack")).is_err());
    }

    #[test]
    fn programs_that_load_no_library_are_recognised() {
        let root = Folder::new("static");
        let header = |entries: &[u32]| {
            let mut bytes = vec![0; 64];
            bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
            bytes[32] = 64;
            bytes[54] = 56;
            bytes[56] = entries.len() as u8;
            for kind in entries {
                bytes.extend(kind.to_le_bytes());
                bytes.resize(bytes.len() + 52, 0);
            }
            bytes
        };
        let reason = |name: &str, bytes: &[u8], mode: u32| {
            let path = root.0.join(name);
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            loads_no_library(path.as_os_str())
        };
        assert!(reason("static", &header(&[1, 2]), 0o755).is_some());
        assert_eq!(reason("dynamic", &header(&[6, 3, 1]), 0o755), None);
        assert_eq!(reason("script", b"#!/bin/sh\n", 0o755), None);
        assert_eq!(reason("truncated", &header(&[1, 2])[..100], 0o755), None);
        assert_eq!(reason("own", &header(&[3]), 0o4755), None, "it belongs to this user");
        assert_eq!(loads_no_library(OsStr::new("sh")), None);
        assert_eq!(loads_no_library(OsStr::new("there-is-no-such-program")), None);
    }
}
