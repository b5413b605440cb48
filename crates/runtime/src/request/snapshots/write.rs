//! Writer of a rank's snapshots.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use rackloom_jobs::collective::snapshot::{Head, SnapshotSink};
use xxhash_rust::xxh3::Xxh3;

use super::file::{Header, Identity, MAGIC, name, parse};

/// Destination of a rank's snapshots.
pub(super) struct FileSink {
    directory: PathBuf,
    identity: Identity,
    /// Number of the snapshot before. It stays until every rank has the next one.
    before: u64,
    open: Option<Open>,
}

/// Snapshot that is being written.
struct Open {
    number: u64,
    temporary: PathBuf,
    file: BufWriter<File>,
    sum: Xxh3,
}

impl FileSink {
    pub(super) fn new(directory: PathBuf, identity: Identity, before: u64) -> Self {
        Self { directory, identity, before, open: None }
    }

    fn try_begin(&self, head: &Head) -> io::Result<Open> {
        let number = head.progress.runs;
        let hidden = format!(".{}.{}", name(self.identity.rank, number), std::process::id());
        let temporary = self.directory.join(hidden);
        let header = serde_json::to_vec(&Header { identity: self.identity.clone(), head: head.clone() })?;
        let file = BufWriter::new(crate::machine::exclusive::create(&temporary)?);
        let mut open = Open { number, temporary, file, sum: Xxh3::new() };
        open.put(MAGIC)?;
        open.put(&(header.len() as u32).to_le_bytes())?;
        open.put(&header)?;
        Ok(open)
    }

    /// Completes the file, writes it to the disk, and then gives it its name.
    fn try_seal(&mut self) -> io::Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let sum = open.sum.digest().to_le_bytes();
        open.file.write_all(&sum)?;
        open.file.flush()?;
        open.file.get_ref().sync_all()?;
        std::fs::rename(&open.temporary, self.directory.join(name(self.identity.rank, open.number)))?;
        File::open(&self.directory)?.sync_all()?;
        self.forget_older()?;
        self.before = open.number;
        Ok(())
    }

    /// Removes snapshots before the previous one. The previous one stays: other ranks may not have the new
    /// one yet.
    fn forget_older(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            let found = entry.file_name().to_str().and_then(parse);
            if found.is_some_and(|(rank, number)| rank == self.identity.rank && number < self.before) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn explain(&self, error: &io::Error) -> String {
        format!("cannot save a snapshot in {}: {error}", self.directory.display())
    }
}

impl Open {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.file.write_all(bytes)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // Fails if the file has its final name already.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

impl SnapshotSink for FileSink {
    fn begin(&mut self, head: &Head) -> Result<(), String> {
        self.open = Some(self.try_begin(head).map_err(|error| self.explain(&error))?);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let written = self.open.as_mut().map_or(Ok(()), |open| open.put(bytes));
        written.map_err(|error| self.explain(&error))
    }

    fn seal(&mut self) -> Result<(), String> {
        self.try_seal().map_err(|error| self.explain(&error))
    }
}
