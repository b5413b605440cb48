//! The arrays that the ranks get: one file per rank, written block by block and renamed once it is whole.
//!
//! A node that writes a large result goes on serving its neighbours, so nobody takes it for dead: each call of
//! [`ArrayWriter::advance`] writes one block.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rackloom_jobs::Output;
use rackloom_protocol::Memory;

use super::input::file_name;
use super::npy::Header;

/// How much is written between two turns of a node.
const BLOCK_BYTES: u64 = 256 << 10;

/// A result on its way to its file.
#[derive(Debug)]
pub(crate) struct ArrayWriter {
    path: PathBuf,
    beside: PathBuf,
    file: File,
    output: Output,
    done_bytes: u64,
    block: Vec<u8>,
}

impl ArrayWriter {
    /// Begin to write what a rank has got; `None` if it got nothing, as all but the root of a gather do. `shape`: of the
    /// input, which the result keeps if it has as many elements.
    pub(crate) fn begin(
        directory: &Path,
        rank: usize,
        output: Output,
        shape: Option<&[u64]>,
    ) -> io::Result<Option<Self>> {
        let is_empty_by_intent = shape.is_some_and(|shape| shape.contains(&0));
        if output.elements == 0 && !is_empty_by_intent {
            return Ok(None);
        }
        let path = directory.join(file_name(rank));
        let beside = directory.join(format!(".{}.{}", file_name(rank), std::process::id()));
        let kept = shape.filter(|shape| shape.iter().product::<u64>() == output.elements);
        let shape = kept.map_or_else(|| vec![output.elements], <[u64]>::to_vec);
        let mut file = File::create(&beside)?;
        file.write_all(&Header { element: output.element, shape }.to_bytes())?;
        Ok(Some(Self { path, beside, file, output, done_bytes: 0, block: Vec::new() }))
    }

    /// Write some more. Returns whether the file is whole and in its place.
    pub(crate) fn advance(&mut self, memory: &mut dyn Memory) -> io::Result<bool> {
        let left = self.output.bytes() - self.done_bytes;
        if left == 0 {
            std::fs::rename(&self.beside, &self.path)?;
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
        // Fails if it has its name already.
        let _ = std::fs::remove_file(&self.beside);
    }
}
