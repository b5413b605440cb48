//! Results of ranks as files: one file per rank, written block by block and renamed when it is complete.
//!
//! Each call of [`ArrayWriter::advance`] writes one block, so a node with a large result continues to serve
//! its neighbours.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rackloom_jobs::Output;
use rackloom_jobs::arrays::{file_name, header_bytes};
use rackloom_protocol::JobMemory;

use super::destination::temporary_name;
use crate::machine::exclusive;

/// Number of bytes that one call writes.
const BLOCK_BYTES: u64 = 256 << 10;

/// Writer of one result.
#[derive(Debug)]
pub struct ArrayWriter {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
    output: Output,
    done_bytes: u64,
    block: Vec<u8>,
}

impl ArrayWriter {
    /// Makes the file of a rank's result. A result whose number of elements does not fit the shape is written flat.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn begin(directory: &Path, rank: usize, output: Output, shape: &[u64]) -> io::Result<Self> {
        let path = directory.join(file_name(rank));
        let temporary = temporary_name(directory, rank);
        let flat = [output.elements];
        let fits = shape.iter().product::<u64>() == output.elements;
        let mut file = exclusive::create(&temporary)?;
        file.write_all(&header_bytes(output.element, if fits { shape } else { &flat }))?;
        Ok(Self { path, temporary, file, output, done_bytes: 0, block: Vec::new() })
    }

    /// Writes one block. Returns true if the file is complete and has its final name.
    ///
    /// # Errors
    /// The result cannot be read from memory, or the file cannot be written.
    pub fn advance(&mut self, memory: &mut dyn JobMemory) -> io::Result<bool> {
        let left = self.output.bytes() - self.done_bytes;
        if left == 0 {
            std::fs::rename(&self.temporary, &self.path)?;
            return Ok(true);
        }
        self.block.resize(left.min(BLOCK_BYTES) as usize, 0);
        memory
            .read(self.output.region, self.done_bytes, &mut self.block)
            .map_err(|fault| io::Error::other(format!("the result cannot be read: {fault:?}")))?;
        self.file.write_all(&self.block)?;
        self.done_bytes += self.block.len() as u64;
        Ok(false)
    }
}

impl Drop for ArrayWriter {
    fn drop(&mut self) {
        // Fails if the file has its final name already.
        let _ = std::fs::remove_file(&self.temporary);
    }
}
