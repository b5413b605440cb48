//! Search location of a rack's key file, the same for all processes of the rack.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Search location of a rack's key file. It is created where the rack is started, and every process of the rack resolves the same path with it.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct KeyLocation {
    /// Folder of the rack file. Relative paths in the file start there.
    pub folder: PathBuf,
    /// Value of `RACKLOOM_KEY_FILE` as an absolute path. It applies if the rack file names no key file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<PathBuf>,
}

impl KeyLocation {
    /// Name of the environment variable that names a key file.
    pub const VARIABLE: &'static str = "RACKLOOM_KEY_FILE";

    /// Returns the search location for a rack file at `file`, with the environment variable of this process.
    #[must_use]
    pub fn beside(file: &Path) -> Self {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = absolute(file.parent().unwrap_or(Path::new("")).join(".").as_path());
        let named = std::env::var_os(Self::VARIABLE).filter(|named| !named.is_empty());
        Self { folder, environment: named.map(|named| absolute(Path::new(&named))) }
    }

    /// Returns the path of the key file, if the rack has a key. `named`: path in the rack file.
    #[must_use]
    pub fn resolve(&self, named: Option<&Path>) -> Option<PathBuf> {
        named.map(|named| self.folder.join(named)).or_else(|| self.environment.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_names_the_key_before_the_environment_does() {
        let environment = Some(PathBuf::from("/other/key"));
        let location = KeyLocation { folder: PathBuf::from("/racks"), environment };
        let resolved = |named: Option<&str>| location.resolve(named.map(Path::new));
        assert_eq!(resolved(Some("key")), Some(PathBuf::from("/racks/key")));
        assert_eq!(resolved(Some("/etc/key")), Some(PathBuf::from("/etc/key")));
        assert_eq!(resolved(None), Some(PathBuf::from("/other/key")));
        assert_eq!(KeyLocation::default().resolve(None), None);
    }
}
