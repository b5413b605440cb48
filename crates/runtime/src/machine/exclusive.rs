//! Files in directories that other users may write, too: created exclusively, so that no link that was left there is followed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Creates a file that must not exist. What an earlier process left under this name is removed first; a link is removed and not followed.
///
/// # Errors
/// The error of the system; [`io::ErrorKind::AlreadyExists`] if another process creates the file at the same moment.
pub fn create(path: &Path) -> io::Result<File> {
    match File::create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            File::create_new(path)
        }
        created => created,
    }
}

/// Writes a file under an unpredictable name and renames it when it is whole. A link under the final name is replaced and not
/// followed.
///
/// # Errors
/// The error of the system.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".rackloom-")
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_that_waits_under_the_name_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (victim, name) = (place.path().join("victim"), place.path().join("pids"));
        for link in [&name, &place.path().join("pids.new")] {
            fs::write(&victim, "precious").unwrap();
            symlink(&victim, link).unwrap();
        }
        replace(&name, b"new").unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"new");
        assert!(!fs::symlink_metadata(&name).unwrap().is_symlink());
        symlink(&victim, place.path().join("part")).unwrap();
        create(&place.path().join("part")).unwrap().write_all(b"part").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
    }

    #[test]
    fn what_an_earlier_process_left_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("part");
        fs::write(&path, "a long earlier text").unwrap();
        create(&path).unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
