//! Writes of patterns into the rank's own memory.

use rackloom_protocol::{JobMemory, LocalRange};

use super::findings::Findings;
use crate::ranks::pattern::Pattern;

/// Bytes written per access to memory.
const CHUNK_BYTES: u64 = 16 << 10;

/// Writes a range of the rank's own memory in chunks.
pub(crate) fn write(
    memory: &mut dyn JobMemory,
    findings: &mut Findings,
    range: LocalRange,
    fill: impl Fn(u64, &mut [u8]),
) {
    let LocalRange { region, offset, length: bytes } = range;
    let mut chunk = vec![0; CHUNK_BYTES.min(bytes) as usize];
    let mut done = 0;
    while done < bytes {
        let length = CHUNK_BYTES.min(bytes - done) as usize;
        fill(done, &mut chunk[..length]);
        if let Err(fault) = memory.write(region, offset + done, &chunk[..length]) {
            findings
                .fail(format!("own memory of {region} at {} cannot be written: {fault:?}", offset + done));
            return;
        }
        done += length as u64;
    }
}

/// Writes a pattern, from `index` on, into a range of the rank's own memory. A failure is a finding.
pub(crate) fn fill(
    memory: &mut dyn JobMemory,
    findings: &mut Findings,
    range: LocalRange,
    pattern: Pattern,
    index: u64,
) {
    write(memory, findings, range, |done, out| pattern.fill(index + done, out));
}
