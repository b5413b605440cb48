//! Creation of files in directories that other users may write to. Files are created exclusively, so a link
//! with the same name is not followed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Creates a file. Removes an existing file of this name first. A link is removed and not followed.
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

/// Writes a file under an unpredictable name, then renames it to `path`. A link at `path` is replaced and not
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
    fn a_link_with_the_name_of_the_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, name) = (folder.path().join("victim"), folder.path().join("pids"));
        for link in [&name, &folder.path().join("pids.new")] {
            fs::write(&victim, "precious").unwrap();
            symlink(&victim, link).unwrap();
        }
        replace(&name, b"new").unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"new");
        assert!(!fs::symlink_metadata(&name).unwrap().is_symlink());
        symlink(&victim, folder.path().join("part")).unwrap();
        create(&folder.path().join("part")).unwrap().write_all(b"part").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
    }

    #[test]
    fn a_file_of_an_earlier_process_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
        fs::write(&path, "a long earlier text").unwrap();
        create(&path).unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
