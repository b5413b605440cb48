//! Direct accesses to a peer's mapped memory, without a frame, by the library's importer on a region of this
//! process.
//!
//! Owner and importer are two seats of one server. This process holds both, and maps the owner's pages a
//! second time as another process would.

use std::time::{Duration, Instant};

use rackloom::HostMemory;
use rackloom::sharing::{AccessError, Exporter, ImportedRegion, Importer, Seat, Seats};
use rackloom_protocol::{Access, Key, LocalRange, NodeId, RegionConfig, RegionId, Tenant};

use crate::bench::Bench;
use crate::measure_error::MeasureError;

const OWNER: NodeId = NodeId(0);
const PEER: NodeId = NodeId(1);
const REGION: RegionId = RegionId(1);
const OWN: RegionId = RegionId(2);
const TENANT: Tenant = Tenant(1);
const KEY: Key = Key(0x5eed);
const TIMEOUT: Duration = Duration::from_secs(10);

/// Buffer with the alignment of the raw loop's buffer. Copies that cross cache lines would cost more than any
/// check.
#[repr(align(4096))]
struct Aligned<const LENGTH: usize>([u8; LENGTH]);

/// Mapped region of a peer, and own memory of equal size.
pub(crate) struct Mapped {
    peer: ImportedRegion,
    own: HostMemory,
    bytes: u64,
    /// Owner of the region, kept while the region is used.
    _owner: (Exporter, HostMemory),
}

impl Mapped {
    /// Makes and maps regions of this many bytes.
    pub(crate) fn new(bench: &Bench, bytes: u64) -> Result<Self, MeasureError> {
        let broken =
            |error: &dyn std::fmt::Display| MeasureError::Failed(format!("cannot map a region: {error}"));
        let process = Some(std::process::id());
        let seat = |node| Seat { node, tenant: TENANT, server: "here".to_owned(), process };
        let seats: Seats = [OWNER, PEER].map(seat).into_iter().collect();
        let mut theirs = HostMemory::default();
        theirs.allocate(REGION, bytes)?;
        let mut own = HostMemory::default();
        own.allocate(OWN, bytes)?;
        let mut exporter = Exporter::listen(OWNER, bench.directory(), seats.clone(), None)
            .map_err(|error| broken(&error))?;
        let config =
            RegionConfig { region: REGION, length: bytes, key: KEY, access: Access::ALL, tenant: TENANT };
        exporter.export(&mut theirs, config).map_err(|error| broken(&error))?;
        let importer = Importer::new(PEER, bench.directory(), seats);
        let pending = importer.import(OWNER, REGION, KEY).map_err(|error| broken(&error))?;
        let begun = Instant::now();
        let serve = || {
            let now = rackloom_protocol::Instant(begun.elapsed().as_nanos() as u64);
            exporter.serve(now, &mut |_| {});
        };
        let peer = pending.wait(TIMEOUT, serve).map_err(|error| broken(&error))?;
        Ok(Self { peer, own, bytes, _owner: (exporter, theirs) })
    }

    /// Measures stores of `LENGTH` bytes per second.
    pub(crate) fn stores_per_s<const LENGTH: usize>(&self, count: u64) -> Result<f64, MeasureError> {
        let data = Aligned([0x5a; LENGTH]);
        self.repeat(LENGTH as u64, count, |offset| self.peer.store(offset, &data.0))
    }

    /// Measures stores of `LENGTH` bytes per second that are announced together.
    pub(crate) fn stores_inside_per_s<const LENGTH: usize>(&self, count: u64) -> Result<f64, MeasureError> {
        let data = Aligned([0x5a; LENGTH]);
        let inside = self.peer.enter().map_err(|error| MeasureError::Failed(error.to_string()))?;
        self.repeat(LENGTH as u64, count, |offset| inside.store(offset, &data.0))
    }

    /// Measures loads of `LENGTH` bytes per second.
    pub(crate) fn loads_per_s<const LENGTH: usize>(&self, count: u64) -> Result<f64, MeasureError> {
        let mut data = Aligned([0; LENGTH]);
        let result = self.repeat(LENGTH as u64, count, |offset| self.peer.load(offset, &mut data.0));
        std::hint::black_box(&data.0);
        result
    }

    /// Measures copies of `length` bytes per second from own memory.
    pub(crate) fn copies_per_s(&self, length: u64, count: u64) -> Result<f64, MeasureError> {
        self.repeat(length, count, |offset| {
            self.peer.copy_from(offset, &self.own, LocalRange { region: OWN, offset, length })
        })
    }

    fn repeat(
        &self,
        length: u64,
        count: u64,
        mut access: impl FnMut(u64) -> Result<(), AccessError>,
    ) -> Result<f64, MeasureError> {
        let begun = Instant::now();
        let mut offset = 0;
        for _ in 0..count {
            access(offset).map_err(|error| MeasureError::Failed(format!("direct access: {error}")))?;
            offset = if offset + 2 * length <= self.bytes { offset + length } else { 0 };
        }
        Ok(count as f64 / begun.elapsed().as_secs_f64().max(1e-9))
    }
}
