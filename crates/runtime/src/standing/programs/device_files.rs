//! Files of the RDMA device of a seat, for programs that look for it outside the verbs library.
//!
//! UCX opens `/dev/infiniband/uverbs0` and reads `/sys/class/infiniband/rackloom0`. No kernel has them here, so they are in a folder of the rack, equal for
//! all seats, and a preloaded library (`crates/verbs/device-files`) leads their paths there. The device file is `/dev/null`, because programs check that
//! it is a character device with the right to read and write, and do nothing else with it.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Environment variable: folder that holds the files in place of `/`. The preloaded library reads it.
pub(super) const FOLDER_VARIABLE: &str = "RACKLOOM_DEVICE_FILES";
/// Folder of a rack's directory.
const FOLDER: &str = "device-files";

/// Files of the device and their text.
const FILES: [(&str, &str); 7] = [
    ("sys/class/infiniband/rackloom0/node_type", "1: CA"),
    ("sys/class/infiniband/rackloom0/fw_ver", env!("CARGO_PKG_VERSION")),
    ("sys/class/infiniband/rackloom0/node_desc", "rackloom0"),
    ("sys/class/infiniband_verbs/abi_version", "6"),
    ("sys/class/infiniband_verbs/uverbs0/ibdev", "rackloom0"),
    ("sys/class/infiniband_verbs/uverbs0/abi_version", "1"),
    ("sys/class/infiniband_verbs/uverbs0/dev", "231:192"),
];
/// Folder of the ports.
const PORTS: &str = "sys/class/infiniband/rackloom0/ports";
/// Files of a port and their text.
const PORT_FILES: [(&str, &str); 10] = [
    ("link_layer", "Ethernet"),
    ("state", "4: ACTIVE"),
    ("phys_state", "5: LinkUp"),
    ("rate", "100 Gb/sec (4X EDR)"),
    ("lid", "0x0"),
    ("pkeys/0", "0xffff"),
    ("gid_attrs/types/0", "RoCE v2"),
    ("gid_attrs/types/1", "RoCE v2"),
    ("gid_attrs/ndevs/0", "rack0"),
    ("gid_attrs/ndevs/1", "rack0"),
];
/// Device files.
const DEVICES: [&str; 2] = ["dev/infiniband/uverbs0", "dev/infiniband/rdma_cm"];

/// Writes the files of a device with so many ports into the directory of a rack, unless they are there, and returns their folder.
///
/// # Errors
/// A file cannot be written.
pub(super) fn write(rack: &Path, ports: usize) -> io::Result<PathBuf> {
    let folder = rack.join(FOLDER);
    if folder.exists() {
        return Ok(folder);
    }
    // Another process may write them at the same time, and programs read them at once, so they appear together.
    let new = tempfile::Builder::new().prefix(&format!(".{FOLDER}")).tempdir_in(rack)?;
    for (path, text) in FILES {
        fs::write(in_folder(new.path(), path)?, format!("{text}\n"))?;
    }
    for port in 1..=ports {
        for (path, text) in PORT_FILES {
            fs::write(in_folder(new.path(), &format!("{PORTS}/{port}/{path}"))?, format!("{text}\n"))?;
        }
    }
    for path in DEVICES {
        symlink("/dev/null", in_folder(new.path(), path)?)?;
    }
    match fs::rename(new.path(), &folder) {
        Err(error) if !matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => {
            Err(error)
        }
        _ => Ok(folder),
    }
}

/// Returns the path of a file, whose folder exists then.
fn in_folder(root: &Path, path: &str) -> io::Result<PathBuf> {
    let path = root.join(path);
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_appear_once_and_together() {
        let rack = tempfile::tempdir().unwrap();
        let folders: Vec<_> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4).map(|_| scope.spawn(|| write(rack.path(), 2).unwrap())).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        for folder in folders {
            assert_eq!(folder, rack.path().join(FOLDER));
        }
        let ports = rack.path().join(FOLDER).join(PORTS);
        for port in ["1", "2"] {
            assert_eq!(fs::read_to_string(ports.join(port).join("state")).unwrap(), "4: ACTIVE\n");
        }
        assert_eq!(fs::read_dir(ports).unwrap().count(), 2);
        let device = rack.path().join(FOLDER).join(DEVICES[0]);
        assert_eq!(fs::read_link(device).unwrap(), Path::new("/dev/null"));
        assert_eq!(fs::read_dir(rack.path()).unwrap().count(), 1, "nothing else is left");
    }
}
