//! Figures about the machine, as context of the rows. No verdict depends on them.

use rackloom_calibrate::{Expected, Series, kernel};

use crate::bench::Bench;
use crate::measure_error::MeasureError;
use crate::output::report::{Fact, Side};
use crate::row::Unit;
use crate::runs::program::raw_loop;
use crate::runs::raw_loop::RawLoop;

/// Measures all facts that this machine provides.
pub(super) fn take(bench: &Bench, rounds: u32) -> Vec<Fact> {
    let system_call = || Ok(kernel::system_call_ns(bench.count(500_000)));
    let wake = || raw_loop(bench, RawLoop::Wake, bench.count(20_000));
    let cache_line = || raw_loop(bench, RawLoop::CacheLine, bench.count(200_000));
    [
        fact("system-call", "system call", Expected::SYSTEM_CALL_NS, rounds, system_call),
        fact("wake", "futex wake there and back, one processor", Expected::FUTEX_ROUND_TRIP_NS, rounds, wake),
        fact(
            "cache-line",
            "cache line there and back, two processors",
            Expected::CACHE_LINE_ROUND_TRIP_NS,
            rounds,
            cache_line,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Measures one fact; `None` if that is not possible here. Rows with this need report the reason.
fn fact(
    name: &'static str,
    what: &'static str,
    expected: Expected,
    rounds: u32,
    mut take: impl FnMut() -> Result<f64, MeasureError>,
) -> Option<Fact> {
    let takes: Result<Vec<f64>, MeasureError> = (0..rounds).map(|_| take()).collect();
    let series = Series::new(takes.ok()?);
    Some(Fact { name, side: Side::new(what, Unit::Nanoseconds, &series, Some(expected.value())) })
}
