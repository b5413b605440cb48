//! Results of a traffic pattern: completion time, amount, and fairness among nodes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Traffic of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficPart {
    /// Name of the pattern.
    pub pattern: String,
    /// Messages that this rank sent and knew to be visible.
    pub messages: u64,
    /// Bytes of those messages.
    pub bytes: u64,
    /// Time of the first message in nanoseconds, on the run's clock; absent if the rank sends none.
    pub began_ns: Option<u64>,
    /// Time of the last completion in nanoseconds.
    pub ended_ns: Option<u64>,
}

/// Traffic of the whole rack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrafficReport {
    /// Name of the pattern.
    pub pattern: String,
    /// Messages of all ranks.
    pub messages: u64,
    /// Bytes of those messages.
    pub bytes: u64,
    /// Time from the first rank's begin to the last rank's end, in nanoseconds.
    pub completion_ns: u64,
    /// Goodput: all bytes over the completion time, in 10^9 bytes per second.
    #[serde(rename = "goodput_GBps")]
    pub goodput_gbps: f64,
    /// Fairness of the senders' own bandwidths: (sum x)^2 / (n sum x^2). It is 1 if all are equal, and 1/n if one has
    /// everything (Jain, Chiu and Hawe 1984).
    pub fairness: f64,
}

impl TrafficReport {
    /// Joins the parts of all ranks; `None` if no rank had traffic. All ranks of a run use one clock.
    #[must_use]
    pub fn of<'a>(parts: impl Iterator<Item = &'a TrafficPart> + Clone) -> Option<Self> {
        let pattern = parts.clone().next()?.pattern.clone();
        let (messages, bytes) = parts
            .clone()
            .fold((0, 0), |(messages, bytes), part| (messages + part.messages, bytes + part.bytes));
        let spans = parts.filter_map(|part| Some((part.began_ns?, part.ended_ns?, part.bytes)));
        let began_ns = spans.clone().map(|(began_ns, ..)| began_ns).min().unwrap_or(0);
        let ended_ns = spans.clone().map(|(_, ended_ns, _)| ended_ns).max().unwrap_or(0);
        let completion_ns = ended_ns.saturating_sub(began_ns);
        let rates = spans.map(|(began_ns, ended_ns, bytes)| {
            bytes as f64 / ended_ns.saturating_sub(began_ns).max(1) as f64
        });
        let (count, sum, squares) = rates.fold((0.0, 0.0, 0.0), |(count, sum, squares), rate| {
            (count + 1.0, sum + rate, squares + rate * rate)
        });
        Some(Self {
            pattern,
            messages,
            bytes,
            completion_ns,
            goodput_gbps: bytes as f64 / completion_ns.max(1) as f64,
            fairness: if squares > 0.0 { sum * sum / (count * squares) } else { 1.0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(bytes: u64, began_ns: u64, ended_ns: u64) -> TrafficPart {
        let pattern = "incast".to_owned();
        TrafficPart { pattern, messages: 1, bytes, began_ns: Some(began_ns), ended_ns: Some(ended_ns) }
    }

    #[test]
    fn alike_is_fair_and_one_of_four_with_everything_is_a_quarter() {
        let fairness = |parts: &[TrafficPart]| TrafficReport::of(parts.iter()).unwrap().fairness;
        assert_eq!(fairness(&[part(100, 0, 50), part(100, 10, 60)]), 1.0);
        assert_eq!(fairness(&[part(100, 0, 50), part(0, 0, 50), part(0, 0, 50), part(0, 0, 50)]), 0.25);
    }

    #[test]
    fn time_runs_from_the_first_to_the_last_and_receivers_alone_have_none() {
        let receiver = TrafficPart { pattern: "incast".to_owned(), ..TrafficPart::default() };
        let parts = [part(600, 100, 300), part(400, 50, 250), receiver];
        let report = TrafficReport::of(parts.iter()).unwrap();
        assert_eq!((report.completion_ns, report.bytes, report.goodput_gbps), (250, 1000, 4.0));
        assert_eq!(TrafficReport::of([].iter()), None);
    }
}
