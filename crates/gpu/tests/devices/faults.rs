//! Tests that need a faulty device.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rackloom_gpu::GpuError;
use rackloom_gpu::device::{Address, Device, Element, EventId, Move, Reduction, StreamId};
use rackloom_gpu::fake::{Fake, FakePlan};
use rackloom_gpu::landing::{Landed, Landing};
use rackloom_gpu::pinned::Pinned;

use crate::same::land_at_random;

#[test]
fn a_write_ticket_is_answered_only_when_the_bytes_are_visible() {
    for seed in 0..50 {
        let mut landing = Landing::new(Box::new(Fake::new(FakePlan::new(seed)))).unwrap();
        let base = landing.device().allocate(1 << 16).unwrap();
        let mut was_late = false;
        for ticket in 0..64_u32 {
            landing.write(base.plus(u64::from(ticket) * 512), &ticket.to_le_bytes().repeat(64)).unwrap();
            landing.ticket(ticket);
            landing.start().unwrap();
            was_late |= seen(&landing, base, ticket) != ticket.to_le_bytes().repeat(64);
        }
        let mut answered = Vec::new();
        while landing.is_busy() {
            while let Some((ticket, landed)) = landing.poll() {
                assert_eq!(landed, Landed::Written);
                answered.push(ticket);
            }
            for ticket in &answered {
                assert_eq!(seen(&landing, base, *ticket), ticket.to_le_bytes().repeat(64), "seed {seed}");
            }
        }
        assert_eq!(answered, (0..64).collect::<Vec<_>>());
        assert!(was_late, "a fake device that is never late shows nothing");
    }
}

fn seen(landing: &Landing<Fake>, base: Address, ticket: u32) -> Vec<u8> {
    let mut found = vec![0; 256];
    landing.device_ref().peek(base.plus(u64::from(ticket) * 512), &mut found).unwrap();
    found
}

/// Device that reports completion too early.
#[derive(Debug)]
struct EarlyCompletion(Fake);

#[rustfmt::skip]
impl Device for EarlyCompletion {
    fn allocate(&mut self, bytes: u64) -> Result<Address, GpuError> { self.0.allocate(bytes) }
    fn free(&mut self, address: Address) -> Result<(), GpuError> { self.0.free(address) }
    fn pin(&mut self, bytes: usize) -> Result<Pinned, GpuError> { self.0.pin(bytes) }
    unsafe fn pin_pages(&mut self, start: u64, bytes: usize) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees the range.
        unsafe { self.0.pin_pages(start, bytes) }
    }
    fn unpin_pages(&mut self, start: u64) -> Result<(), GpuError> {
        self.0.unpin_pages(start)
    }

    fn stream(&mut self) -> Result<StreamId, GpuError> { self.0.stream() }
    fn event(&mut self) -> Result<EventId, GpuError> { self.0.event() }
    fn copy(&mut self, stream: StreamId, to: Address, from: Address, bytes: u64) -> Result<(), GpuError> { self.0.copy(stream, to, from, bytes) }
    fn copy_ranges(&mut self, stream: StreamId, moves: &[Move]) -> Result<(), GpuError> { self.0.copy_ranges(stream, moves) }
    fn write_word(&mut self, stream: StreamId, to: Address, width: u32, value: u64) -> Result<(), GpuError> { self.0.write_word(stream, to, width, value) }
    fn move_ranges(&mut self, stream: StreamId, at: Address, count: u32, most: u64) -> Result<(), GpuError> { self.0.move_ranges(stream, at, count, most) }
    fn atomics(&mut self, stream: StreamId, at: Address, count: u32) -> Result<(), GpuError> { self.0.atomics(stream, at, count) }
    fn reduce(&mut self, stream: StreamId, work: (Reduction, Element), to: Address, from: Address, count: u64) -> Result<(), GpuError> { self.0.reduce(stream, work, to, from, count) }
    fn multiply(&mut self, stream: StreamId, from: [Address; 2], to: Address, sizes: [u32; 3]) -> Result<(), GpuError> { self.0.multiply(stream, from, to, sizes) }
    fn record(&mut self, event: EventId, stream: StreamId) -> Result<(), GpuError> { self.0.record(event, stream) }
    fn wait(&mut self, stream: StreamId, event: EventId) -> Result<(), GpuError> { self.0.wait(stream, event) }
    fn is_done(&mut self, event: EventId) -> Result<bool, GpuError> { self.0.is_done(event).map(|_| true) }
    fn synchronize(&mut self, stream: StreamId) -> Result<(), GpuError> { self.0.synchronize(stream) }
}

#[test]
fn the_suite_finds_a_device_that_reports_completion_too_early() {
    let found = (0..20).filter(|seed| {
        let mut landing: Box<Landing<dyn Device>> =
            landing_of(EarlyCompletion(Fake::new(FakePlan::new(*seed))));
        let base = landing.device().allocate(200_000).unwrap();
        let run = || land_at_random(&mut landing, base, *seed, 300);
        catch_unwind(AssertUnwindSafe(run)).is_err()
    });
    assert_eq!(found.count(), 20, "every seed shows it");
}

fn landing_of(device: impl Device + 'static) -> Box<Landing<dyn Device>> {
    let device: Box<dyn Device> = Box::new(device);
    Box::new(Landing::with_ring(device, 64 << 10).unwrap())
}

#[test]
fn a_device_that_fails_answers_every_ticket_with_its_failure() {
    for fails_after in 0..40 {
        let plan = FakePlan { fails_after: Some(fails_after), ..FakePlan::new(fails_after) };
        let mut landing = Landing::new(Box::new(Fake::new(plan))).unwrap();
        let Ok(base) = landing.device().allocate(1 << 16) else { continue };
        let mut requested = 0;
        for ticket in 0..64_u32 {
            if landing.write(base.plus(u64::from(ticket) * 512), &[7; 256]).is_err() {
                break;
            }
            landing.ticket(ticket);
            requested += 1;
            if landing.start().is_err() {
                break;
            }
        }
        let (mut written, mut failed) = (0, 0);
        for _ in 0..10_000 {
            match landing.poll() {
                Some((ticket, Landed::Written)) => {
                    written += 1;
                    let mut found = [0; 256];
                    landing.device_ref().peek(base.plus(u64::from(ticket) * 512), &mut found).unwrap();
                    assert_eq!(found, [7; 256], "a ticket that was answered well is well");
                }
                Some((_, Landed::Failed(error))) => {
                    assert_eq!(*error, GpuError::Planned);
                    failed += 1;
                }
                Some((_, other)) => panic!("{other:?}"),
                None => {}
            }
        }
        assert_eq!(written + failed, requested, "every ticket is answered");
        assert!(failed > 0 && !landing.is_busy());
    }
}
