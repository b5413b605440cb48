//! Bounds of long commands: the options `--time-limit`, estimated durations as text, and the refusal of work that would take longer.

use std::time::Duration;

use crate::failure::Failure;

/// Units of a time limit, with their seconds. The first unit that fits is shown.
const UNITS: [(&str, f64); 5] = [("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86_400.0)];
/// Longest time limit, in seconds: a thousand years.
const SECONDS_MAX: f64 = 3.2e10;

/// Reads a time limit: a number and `ms`, `s`, `min`, `h` or `d`.
///
/// # Errors
/// Message and hint about a text that is no time.
pub(crate) fn read(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.find(|character: char| !(character.is_ascii_digit() || character == '.'));
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let seconds = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, seconds)| *seconds);
    let number = number.parse::<f64>().ok();
    let product = number.zip(seconds).map(|(number, seconds)| number * seconds);
    match product.filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds)) {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err("no time; hint: write a number and ms, s, min, h or d, such as 30min".to_owned()),
    }
}

/// Formats a duration with the largest unit of which it has a whole number, or two at least: `1 s`, `90 s`, `3 h`.
pub(crate) fn shown(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let is_whole = |count: f64| count >= 1.0 && (count - count.round()).abs() < 1e-9;
    let fits = |unit: f64| seconds >= 2.0 * unit || is_whole(seconds / unit);
    let fitting = UNITS.iter().rev().find(|(_, unit)| fits(*unit));
    let (name, unit) = fitting.copied().unwrap_or(UNITS[0]);
    format!("{:.0} {name}", seconds / unit)
}

/// Returns the end of a line of progress: the time that is left, if it is known.
pub(crate) fn shown_left(left: Option<Duration>) -> String {
    left.map_or_else(String::new, |left| format!(" · {}", time_left_text(left)))
}

/// Formats the time that is left, in whole seconds at least: `about 90 s left`.
pub(crate) fn time_left_text(left: Duration) -> String {
    match left.as_secs_f64().ceil().max(1.0) {
        seconds if seconds < 120.0 => format!("about {seconds:.0} s left"),
        seconds => format!("about {} left", shown(Duration::from_secs_f64(seconds))),
    }
}

/// Returns the time that is left if each piece of work takes as long as those that are done, in parallel as so far; `None` before the first is
/// done.
pub(crate) fn time_left(elapsed: Duration, done: u64, total: u64) -> Option<Duration> {
    let per_piece_s = elapsed.as_secs_f64() / (done > 0).then_some(done)? as f64;
    Some(Duration::from_secs_f64(per_piece_s * total.saturating_sub(done) as f64))
}

/// Refuses work that takes longer than the limit. `what` names the work, such as `the grid of 60 points`.
///
/// # Errors
/// The estimate exceeds the limit.
pub(crate) fn must_suffice(
    what: &str,
    estimate: Duration,
    limit: Duration,
    instead: &str,
) -> Result<(), Failure> {
    if estimate <= limit {
        return Ok(());
    }
    let (estimate, limit) = (shown(estimate), shown(limit));
    let message = format!("{what} would take about {estimate}, longer than the time limit of {limit}");
    Err(Failure::bad_input(message).hint(format!("raise the limit with --time-limit, or {instead}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_with_a_unit() {
        for (text, seconds) in [("90s", 90.0), ("1.5 h", 5400.0), ("2d", 172_800.0), ("250ms", 0.25)] {
            assert_eq!(read(text).unwrap().as_secs_f64(), seconds, "{text}");
        }
        for bad in ["", "5", "h", "-1h", "1.2.3s", "1 week", "99999999999999d"] {
            assert!(read(bad).unwrap_err().contains("hint: "), "{bad}");
        }
    }

    #[test]
    fn durations_are_short() {
        for (seconds, text) in [
            (0.04, "40 ms"),
            (1.0, "1 s"),
            (1.5, "1500 ms"),
            (60.0, "1 min"),
            (3600.0, "1 h"),
            (90.0, "90 s"),
            (200.0, "3 min"),
            (1e5, "28 h"),
            (1e6, "12 d"),
        ] {
            assert_eq!(shown(Duration::from_secs_f64(seconds)), text);
        }
    }

    #[test]
    fn the_time_left_is_shown_in_whole_seconds_at_least() {
        for (seconds, text) in [(0.0, "1 s"), (0.3, "1 s"), (1.2, "2 s"), (119.0, "119 s"), (200.0, "3 min")]
        {
            assert_eq!(shown_left(Some(Duration::from_secs_f64(seconds))), format!(" · about {text} left"));
        }
        assert_eq!(shown_left(None), "");
    }

    #[test]
    fn the_time_left_follows_from_the_pieces_that_are_done() {
        assert_eq!(time_left(Duration::from_secs(10), 5, 20), Some(Duration::from_secs(30)));
        assert_eq!(time_left(Duration::from_secs(10), 0, 20), None);
        assert_eq!(time_left(Duration::from_secs(10), 20, 20), Some(Duration::ZERO));
    }

    #[test]
    fn work_that_takes_longer_is_refused_with_the_estimate() {
        let refused =
            must_suffice("the grid", Duration::from_secs(7200), Duration::from_secs(600), "leave out values");
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("would take about 2 h") && text.contains("limit of 10 min"), "{text}");
        assert!(must_suffice("the grid", Duration::from_secs(5), Duration::from_secs(600), "").is_ok());
    }
}
