//! Reader of a rank's snapshot. The complete file is checked before the first byte is used.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use rackloom_jobs::collective::snapshot::{Head, Saved};
use xxhash_rust::xxh3::Xxh3;

use super::file::{CHECKSUM_BYTES, HEADER_BYTES_MAX, Header, Identity, MAGIC, name};

/// Number of bytes that one call reads.
const BLOCK_BYTES: usize = 256 << 10;

/// Snapshot whose bytes were all checked when it was opened.
pub(super) struct FileSaved {
    header: Header,
    file: BufReader<File>,
}

/// Reads the header of a snapshot, and checks length and checksum of the file.
pub(super) fn inspect(path: &Path) -> Result<Header, String> {
    let mut file = BufReader::new(File::open(path).map_err(|error| format!("it cannot be opened: {error}"))?);
    read_checked(&mut file)
}

/// Reads a snapshot and checks length and checksum. Afterwards the file is positioned behind its header.
fn read_checked(file: &mut BufReader<File>) -> Result<Header, String> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ends within its header".to_owned(),
        _ => format!("it cannot be read: {error}"),
    };
    let found_bytes = file.get_ref().metadata().map_err(unreadable)?.len();
    let mut sum = Xxh3::new();
    let mut take = |file: &mut BufReader<File>, out: &mut [u8]| {
        file.read_exact(out).map_err(unreadable)?;
        sum.update(out);
        Ok::<_, String>(())
    };
    let (mut magic, mut length) = ([0; 8], [0; 4]);
    take(file, &mut magic)?;
    if magic != *MAGIC {
        return Err("it is no snapshot, or one of another version".to_owned());
    }
    take(file, &mut length)?;
    let header_bytes = u32::from_le_bytes(length);
    if header_bytes > HEADER_BYTES_MAX {
        return Err(format!("its header cannot have {header_bytes} bytes"));
    }
    let mut text = vec![0; header_bytes as usize];
    take(file, &mut text)?;
    let header: Header =
        serde_json::from_slice(&text).map_err(|error| format!("its header cannot be parsed: {error}"))?;
    let begin = (MAGIC.len() + length.len()) as u64 + u64::from(header_bytes);
    let body_bytes = header.head.regions.iter().try_fold(0_u64, |sum, (_, bytes)| sum.checked_add(*bytes));
    let expected_bytes = body_bytes.and_then(|bytes| bytes.checked_add(begin + CHECKSUM_BYTES));
    if expected_bytes != Some(found_bytes) {
        let expected =
            expected_bytes.map_or_else(|| "more than a file can have".to_owned(), |bytes| bytes.to_string());
        return Err(format!("it has {found_bytes} bytes and should have {expected}"));
    }
    let mut left = found_bytes - begin - CHECKSUM_BYTES;
    let mut block = vec![0; BLOCK_BYTES];
    while left > 0 {
        let part = &mut block[..left.min(BLOCK_BYTES as u64) as usize];
        take(file, part)?;
        left -= part.len() as u64;
    }
    let mut checksum = [0; CHECKSUM_BYTES as usize];
    file.read_exact(&mut checksum).map_err(unreadable)?;
    if checksum != sum.digest().to_le_bytes() {
        return Err("its checksum is wrong: bytes of it have changed".to_owned());
    }
    file.seek(SeekFrom::Start(begin)).map_err(unreadable)?;
    Ok(header)
}

impl FileSaved {
    /// Opens the snapshot that this rank restores.
    pub(super) fn open(directory: &Path, identity: &Identity, number: u64) -> Result<Self, String> {
        let path = directory.join(name(identity.rank, number));
        let about = |reason: String| format!("{}: {reason}", path.display());
        let file = File::open(&path).map_err(|error| about(format!("it cannot be opened: {error}")))?;
        let mut file = BufReader::new(file);
        let header = read_checked(&mut file).map_err(about)?;
        let is_other = header.identity != *identity || header.head.progress.runs != number;
        if is_other {
            return Err(about("it has changed since it was chosen".to_owned()));
        }
        Ok(Self { header, file })
    }
}

impl Saved for FileSaved {
    fn head(&self) -> &Head {
        &self.header.head
    }

    fn read(&mut self, out: &mut [u8]) -> Result<(), String> {
        self.file.read_exact(out).map_err(|error| format!("the snapshot cannot be read: {error}"))
    }
}
