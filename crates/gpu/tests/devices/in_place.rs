//! Bytes that the device reads in place, and rows that are read ahead, on every device.

use rackloom_gpu::device::{Address, Device};
use rackloom_gpu::landing::{Landed, Landing};
use rackloom_gpu::rows::{ROW_BYTES_MIN, Rows};

use crate::rig::{Random, on_every_device};

const LENGTH: usize = 1 << 20;
/// Length of a page of the host.
const PAGE_BYTES: usize = 4096;

/// Allocates pages of the host that stay mapped until the process ends, as the frames of a wire do.
fn pages(device: &mut dyn Device, bytes: usize) -> &'static mut [u8] {
    let mapping = Box::leak(vec![0_u8; bytes + PAGE_BYTES].into_boxed_slice());
    let start = mapping.as_ptr().expose_provenance().next_multiple_of(PAGE_BYTES) - mapping.as_ptr().addr();
    let pages = &mut mapping[start..start + bytes];
    // SAFETY: leaked, so mapped until the process ends.
    unsafe { device.pin_pages(pages.as_ptr().addr() as u64, bytes).unwrap() };
    pages
}

#[test]
fn bytes_land_from_any_address() {
    on_every_device("bytes_land_from_any_address", |device, seed| {
        let mut device = device();
        let frames = pages(&mut *device, LENGTH);
        let mut random = Random(seed);
        frames.copy_from_slice(&random.bytes(LENGTH));
        let start = frames.as_ptr().addr() as u64;
        let mut landing = Landing::new(device).unwrap();
        let base = landing.device().allocate(LENGTH as u64).unwrap();
        let mut model = vec![0; LENGTH];
        for ticket in 0..200 {
            for _ in 0..1 + random.below(6) {
                // Every alignment of either side against the other, the first and the last bytes included.
                let length =
                    [1, 8, 16, 100, 127, 128, 129, 200, 1000, 1024, 1500, 8192][random.below(12) as usize];
                let length = length + random.below(20) as usize;
                let last = LENGTH - length;
                let offset = |random: &mut Random| match random.below(8) {
                    0 => 0,
                    1 => last,
                    _ => random.below(last as u64) as usize,
                };
                let (from, to) = (offset(&mut random), offset(&mut random));
                let source = Address(start + from as u64);
                landing.write_in_place(base.plus(to as u64), source, length as u64).unwrap();
                model[to..to + length].copy_from_slice(&frames[from..from + length]);
            }
            landing.ticket(ticket);
        }
        let mut answered = 0;
        while answered < 200 {
            while let Some((ticket, landed)) = landing.poll() {
                assert_eq!((ticket, landed), (answered, Landed::Written));
                answered += 1;
            }
        }
        let mut found = vec![0; LENGTH];
        landing.read_now(base, &mut found).unwrap();
        let differs = found.iter().zip(&model).position(|(found, wanted)| found != wanted);
        assert_eq!(differs, None, "seed {seed}: the first byte that is wrong");
        assert!(landing.counts().in_place >= 200);
    });
}

/// Transfer that is taken piece by piece.
struct Transfer {
    name: u32,
    at: usize,
    end: usize,
}

#[test]
fn interleaved_rows_return_the_bytes_of_memory() {
    on_every_device("interleaved_rows_return_the_bytes_of_memory", |device, seed| {
        let mut landing = Landing::new(device()).unwrap();
        let mut rows = Rows::new(landing.device()).unwrap();
        let base = landing.device().allocate(LENGTH as u64).unwrap();
        let mut random = Random(seed);
        let model = random.bytes(LENGTH);
        let mut transfers: Vec<Transfer> = Vec::new();
        let (mut names, mut in_rows) = (0, 0);
        for _ in 0..6 {
            // Written just before and not waited for: the rows come behind it.
            landing.write(base, &model).unwrap();
            landing.start().unwrap();
            // More transfers than slots, some of them left half-way.
            for _ in 0..12 {
                let length = 1 + random.below(LENGTH as u64 / 2) as usize;
                let at = random.below((LENGTH - length) as u64) as usize;
                names += 1;
                transfers.push(Transfer { name: names, at, end: at + length });
            }
            while transfers.len() > 4 {
                let which = random.below(transfers.len() as u64) as usize;
                let Transfer { name, at, end } = transfers[which];
                let length = (end - at).min(4096 + random.below(4096) as usize);
                let mut found = vec![0; length];
                let (source, rest) = (base.plus(at as u64), (end - at - length) as u64);
                let behind = landing.stream();
                if rows.take(landing.device(), behind, (name, rest), source, &mut found).unwrap() {
                    assert!(found == model[at..at + length], "seed {seed}: transfer {name} at {at}");
                    in_rows += 1;
                } else {
                    landing.read_now(source, &mut found).unwrap();
                    assert!(found == model[at..at + length]);
                }
                transfers[which].at += length;
                if transfers[which].at == end {
                    transfers.swap_remove(which);
                }
            }
        }
        assert!(in_rows > 100, "{in_rows} of the pieces were read ahead");
        assert!(rows.counts().copies < in_rows, "one copy serves several pieces: {:?}", rows.counts());
    });
}

#[test]
fn an_abandoned_row_serves_no_later_transfer() {
    on_every_device("an_abandoned_row_serves_no_later_transfer", |device, _| {
        let mut landing = Landing::new(device()).unwrap();
        let mut rows = Rows::new(landing.device()).unwrap();
        let base = landing.device().allocate(LENGTH as u64).unwrap();
        let behind = landing.stream();
        let rest = LENGTH as u64 - 4096;
        let mut found = [9; 4096];
        assert!(rows.take(landing.device(), behind, (1, rest), base, &mut found).unwrap());
        assert_eq!(found, [0; 4096]);
        // The caller has given up the row and writes other bytes from its position on.
        landing.write(base.plus(4096), &vec![7; LENGTH - 4096]).unwrap();
        landing.start().unwrap();
        let at = base.plus(4096);
        assert!(rows.take(landing.device(), behind, (2, rest - 4096), at, &mut found).unwrap());
        assert_eq!(found, [7; 4096]);
        // A transfer that is too short or has no name is not served.
        for (name, rest) in [(3, ROW_BYTES_MIN - 4097), (0, rest)] {
            assert!(!rows.take(landing.device(), behind, (name, rest), base, &mut found).unwrap());
        }
    });
}
