//! Raw loops as a hidden command: one take, one number.
//!
//! Both sides of a loop are processes, and only a process without other threads may fork or enter a user namespace. So
//! the tool starts this for every take.

use clap::ValueEnum;
use rackloom_calibrate::exchange::Exchange;
use rackloom_calibrate::ring::{Flow, Ring};
use rackloom_calibrate::scatter::Scatter;
use rackloom_calibrate::udp::SuperFrames;
use rackloom_calibrate::{Pair, cache_line, kernel};

use crate::measure_error::MeasureError;
use crate::runs::cable;
use crate::runs::load::{self, FRAME_BYTES};
use crate::runs::raw_loop::{LoopArguments, RawLoop};
use rackloom_runtime::outcome::exit::Exit;
use rackloom_runtime::outcome::failure::Failure;

/// Maximum number of stores in flight, in the raw loop and in the own run.
pub(crate) const WINDOW: u64 = 256;
const PAGE: usize = 4096;
/// Bytes of the array of an all-reduce.
const EXCHANGE_BYTES: usize = 1 << 20;

impl RawLoop {
    /// Returns the word that selects the loop on the command line.
    pub(crate) fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn take(self, count: u64) -> Result<f64, MeasureError> {
        let alone =
            || MeasureError::NotHere("it takes two processors, and this process may use one".to_owned());
        let pair = Pair::choose()?.ok_or_else(alone)?;
        Ok(match self {
            Self::Ring64Acknowledged => {
                Ring::<64>::new(Flow::acknowledged(WINDOW))?.records_per_s(pair, count)?
            }
            Self::Scatter => Scatter::new()?.stores_per_s(pair, count)?,
            Self::Ring4096 => Ring::<PAGE>::new(Flow::acknowledged(WINDOW))?.records_per_s(pair, count)?,
            Self::RingRoundTrip => {
                let ring = || Ring::<64>::new(Flow::deep(1));
                ring()?.round_trip_ns(&mut ring()?, pair, count)?
            }
            Self::Exchange => Exchange::new(EXCHANGE_BYTES)?.all_reduce_ns(pair, count)?,
            Self::CacheLine => cache_line::round_trip_ns(pair, count)?,
            Self::Wake => {
                kernel::wake_round_trip_ns(pair.initiator, u32::try_from(count).unwrap_or(u32::MAX))?
            }
            Self::Packet64 => cable::measure(pair, Some(64), count)?,
            Self::Packet1500 => cable::measure(pair, Some(1500), count)?,
            Self::Packet4096 => cable::measure(pair, Some(PAGE), count)?,
            Self::Packet9000 => cable::measure(pair, Some(9000), count)?,
            Self::PacketRoundTrip => cable::measure(pair, None, count)?,
            Self::SuperFrames1500 => super_frames(pair, 1500, count)?,
            Self::SuperFrames4240 => super_frames(pair, FRAME_BYTES, count)?,
            Self::PackedOnPacket => load::packed_on_packet(pair, count)?,
            Self::PackedOnUdp => load::packed_on_udp(pair, count)?,
            Self::StoresOnPacket => load::stores_on_packet(pair, count)?,
            Self::PutsOnUdp => load::puts_on_udp(pair, count)?,
        })
    }
}

fn super_frames(pair: Pair, segment_bytes: usize, count: u64) -> Result<f64, MeasureError> {
    let frames = SuperFrames::new(segment_bytes)?;
    Ok(pair.run_processes(|| frames.segments_per_s(count), || frames.take(count))?)
}

/// Runs one take and prints its figure.
pub(crate) fn take(arguments: LoopArguments) -> Result<Exit, Failure> {
    let value = arguments.what.take(arguments.count).map_err(|error| match error {
        MeasureError::NotHere(reason) => Failure::new(Exit::CouldNotStart, reason),
        MeasureError::Failed(reason) => Failure::new(Exit::Fail, reason),
        MeasureError::Interrupted => Failure::new(Exit::Interrupted, "interrupted"),
    })?;
    crate::output::print::print_line(&value.to_string())?;
    Ok(Exit::Pass)
}
