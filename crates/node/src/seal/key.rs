//! The secret of a rack, and the keys and tags derived from it: keyed BLAKE2b, cut to eight bytes.
//!
//! The contents of the key file are hashed to the rack key. Every use has a key of its own, derived from the rack key and from bytes that distinguish
//! that use from all others.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use blake2::digest::consts::{U8, U32};
use blake2::digest::{FixedOutput, KeyInit, Update};
use blake2::{Blake2b, Blake2bMac, Digest};
use thiserror::Error;

/// Length of a tag, in bytes.
pub(super) const TAG_BYTES: usize = 8;
/// Minimum size of a key file, in bytes.
const SECRET_BYTES_MIN: usize = 32;
/// Maximum size of a key file, in bytes. A longer file is presumably not a key file.
const SECRET_BYTES_MAX: u64 = 64 << 10;
/// Permissions that a key file must not grant.
const OTHERS: u32 = 0o077;

/// Error of reading a key file.
///
/// `Send` and `Sync`: plain data.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read.
    #[error(
        "cannot read the key file {}: {cause}\nhint: `head -c 32 /dev/urandom > {}` makes one; copy it to every host", path.display(), path.display()
    )]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// Other users can read or write the file.
    #[error("other users have access to the key file {} (mode {mode:04o})\nhint: chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// Path of the file.
        path: PathBuf,
        /// Permissions of the file.
        mode: u32,
    },
    /// The file is too short to be a secret.
    #[error(
        "the key file {} has {length} bytes, and a key has at least {SECRET_BYTES_MIN}\nhint: `head -c 32 /dev/urandom > {}` makes one",
        path.display(), path.display()
    )]
    Short {
        /// Path of the file.
        path: PathBuf,
        /// Length of the file, in bytes.
        length: usize,
    },
    /// The file is too long to be a key.
    #[error("the key file {} has more than {SECRET_BYTES_MAX} bytes\nhint: is it another file?", path.display())]
    Long {
        /// Path of the file.
        path: PathBuf,
    },
}

/// The key of a rack. `Debug` does not show its bytes.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone)]
pub struct RackKey([u8; 32]);

impl std::fmt::Debug for RackKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RackKey").finish_non_exhaustive()
    }
}

// W-90
impl RackKey {
    /// Reads a key file.
    ///
    /// # Errors
    /// [`KeyError`], with a hint.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let unreadable = |cause| KeyError::Unreadable { path: path.to_owned(), cause };
        let file = File::open(path).map_err(unreadable)?;
        let mode = file.metadata().map_err(unreadable)?.mode() & 0o7777;
        if mode & OTHERS != 0 {
            return Err(KeyError::Exposed { path: path.to_owned(), mode });
        }
        let mut secret = Vec::new();
        file.take(SECRET_BYTES_MAX + 1).read_to_end(&mut secret).map_err(unreadable)?;
        match secret.len() {
            length if length < SECRET_BYTES_MIN => Err(KeyError::Short { path: path.to_owned(), length }),
            length if length as u64 > SECRET_BYTES_MAX => Err(KeyError::Long { path: path.to_owned() }),
            _ => Ok(Self::of_secret(&secret)),
        }
    }

    /// Derives the rack key from a secret.
    #[must_use]
    pub fn of_secret(secret: &[u8]) -> Self {
        let mut hash = Blake2b::<U32>::new_with_prefix(b"rackloom 2 rack");
        Digest::update(&mut hash, secret);
        Self(hash.finalize().into())
    }

    /// Returns the tagger for the messages of one host's supervisor. `host`: index in the list of hosts.
    #[must_use]
    pub fn messages_of(&self, host: u16) -> Tagger {
        self.derive(&[b"rackloom 2 message", &host.to_le_bytes()])
    }

    /// Returns the number from which the keys of a job's regions are derived. All hosts of the rack derive the same number.
    #[must_use]
    pub fn region_seed(&self) -> u64 {
        u64::from_le_bytes(self.derive(&[b"rackloom 2 regions"]).tag(&[]))
    }

    /// Derives the tagger of one use, which `parts` distinguish from all others.
    pub(super) fn derive(&self, parts: &[&[u8]]) -> Tagger {
        let mut hash = keyed::<Blake2bMac<U32>>(&self.0);
        parts.iter().for_each(|part| hash.update(part));
        let key: [u8; 32] = hash.finalize_fixed().into();
        Tagger(keyed(&key))
    }
}

/// Computes and checks the tags of one use.
///
/// `Send` and `Sync`: plain data.
#[derive(Clone)]
pub struct Tagger(Blake2bMac<U8>);

impl std::fmt::Debug for Tagger {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tagger").finish_non_exhaustive()
    }
}

impl Tagger {
    /// Returns the tag of these bytes, one part after the other.
    #[must_use]
    pub fn tag(&self, parts: &[&[u8]]) -> [u8; TAG_BYTES] {
        let mut hash = self.0.clone();
        parts.iter().for_each(|part| hash.update(part));
        hash.finalize_fixed().into()
    }

    /// Returns whether `tag` is the tag of these bytes.
    #[must_use]
    pub fn fits(&self, parts: &[&[u8]], tag: [u8; TAG_BYTES]) -> bool {
        // Both are one machine word, so the time of the comparison does not depend on which bits differ.
        u64::from_le_bytes(self.tag(parts)) == u64::from_le_bytes(tag)
    }
}

fn keyed<M: KeyInit>(key: &[u8; 32]) -> M {
    <M as KeyInit>::new_from_slice(key)
        .unwrap_or_else(|_| unreachable!("BLAKE2b takes keys of 1 to 64 bytes"))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    // W-90
    #[test]
    fn tags_are_those_that_other_implementations_compute() {
        // Computed with Python's `hashlib.blake2b`, as in scripts/example_peer/seal.py.
        let key = RackKey::of_secret(&[7; 32]);
        let tagger = key.messages_of(1);
        assert_eq!(tagger.tag(&[b"abc", b"def"]), tagger.tag(&[b"abcdef"]));
        assert_eq!(tagger.tag(&[b"abcdef"]), TAG_OF_PYTHON);
        assert_ne!(tagger.tag(&[b"abcdef"]), key.messages_of(2).tag(&[b"abcdef"]));
        assert_ne!(tagger.tag(&[b"abcdef"]), RackKey::of_secret(&[8; 32]).messages_of(1).tag(&[b"abcdef"]));
    }

    /// Tag computed by Python's standard library.
    const TAG_OF_PYTHON: [u8; 8] = [0x6b, 0x34, 0x51, 0x90, 0xee, 0x1c, 0x39, 0xdc];

    #[test]
    fn a_key_file_is_long_enough_and_readable_by_its_user_only() {
        let folder = std::env::temp_dir().join(format!("rackloom-key-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("key");
        assert!(matches!(RackKey::read(&path), Err(KeyError::Unreadable { .. })));
        for (length, mode, is_good) in [
            (32, 0o600, true),
            (32, 0o400, true),
            (31, 0o600, false),
            (32, 0o640, false),
            (70_000, 0o600, false),
        ] {
            let _ = std::fs::remove_file(&path);
            std::fs::write(&path, vec![1; length]).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let read = RackKey::read(&path);
            assert_eq!(read.is_ok(), is_good, "{length} bytes, mode {mode:o}");
            if let Err(error) = read {
                assert!(error.to_string().contains("hint: "), "{error}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
