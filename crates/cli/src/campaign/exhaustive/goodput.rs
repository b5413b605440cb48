//! Expected goodput of a rack whose parts fail and are repaired, and the parts that matter most.
//!
//! A part fails with the rate *l* and is repaired in the mean time *R*. In the long run it is down for the share q = l R / (1 + l R) of the time: the
//! steady state of an alternating renewal process, MTTR / (MTBF + MTTR) (Barlow and Proschan, *Statistical Theory of Reliability and Life
//! Testing*, 1975). Parts are independent, so the states of the rack have the probabilities
//!
//! | state | probability |
//! |---|---|
//! | nothing is down | P0 = product of all 1 - q |
//! | exactly part i is down | P0 r(i), with r = q / (1 - q) = l R |
//! | exactly parts i and j are down | P0 r(i) r(j) |
//!
//! The expected goodput is the sum of probability times goodput over the states that were run. The others, with more parts down or with pairs
//! that were not run, have an unknown goodput from 0 to 1, which gives a lower and an upper bound. A part matters by the goodput that is lost in
//! states in which it is down; a loss with two parts down is shared by both.

/// Goodput of a state of the rack, as a share of that without failures.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    /// Parts that are down: one or two.
    pub(super) parts: Vec<usize>,
    /// Goodput, from 0 to 1.
    pub(super) goodput: f64,
}

/// Expected goodput of a rack, as a share of that without failures.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expected {
    /// Bound if the rack has no goodput in unknown states.
    pub(super) least: f64,
    /// Bound if unknown states have the whole goodput.
    pub(super) most: f64,
    /// Share of the time in states that were run.
    pub(super) covered: f64,
    /// Share of the time in which nothing is down.
    pub(super) healthy: f64,
    /// Expected loss of goodput by each part.
    pub(super) loss_by_part: Vec<f64>,
}

/// Returns the expected goodput. `ratios` are l R of each part; 0 for parts that do not fail.
pub(super) fn expected(ratios: &[f64], states: &[State]) -> Expected {
    // 1 - q = 1 / (1 + l R).
    let healthy: f64 = ratios.iter().map(|ratio| 1.0 / (1.0 + ratio)).product();
    let mut expected = Expected {
        least: healthy,
        most: 0.0,
        covered: healthy,
        healthy,
        loss_by_part: vec![0.0; ratios.len()],
    };
    for State { parts, goodput } in states {
        let ratio = |part: &usize| ratios.get(*part).copied().unwrap_or(0.0);
        let probability = healthy * parts.iter().map(ratio).product::<f64>();
        expected.covered += probability;
        expected.least += probability * goodput;
        for part in parts {
            if let Some(loss) = expected.loss_by_part.get_mut(*part) {
                *loss += probability * (1.0 - goodput) / parts.len() as f64;
            }
        }
    }
    expected.covered = expected.covered.min(1.0);
    expected.most = expected.least + 1.0 - expected.covered;
    expected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_parts_are_as_by_hand() {
        // Each part is down for 0.1 / 1.1 = 1/11 of the time. Alone it halves the goodput, and together nothing is left.
        let states = [
            State { parts: vec![0], goodput: 0.5 },
            State { parts: vec![1], goodput: 0.5 },
            State { parts: vec![0, 1], goodput: 0.0 },
        ];
        let found = expected(&[0.1, 0.1], &states);
        // (10/11)^2 + 2 (10/11)(1/11) 0.5 = 110/121.
        assert!((found.least - 110.0 / 121.0).abs() < 1e-12, "{found:?}");
        assert!((found.covered - 1.0).abs() < 1e-12 && (found.most - found.least).abs() < 1e-12, "{found:?}");
        // Half of 20/121 and half of 1/121, shared by two.
        for loss in &found.loss_by_part {
            assert!((loss - 5.5 / 121.0).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn states_that_were_not_run_widen_the_bounds() {
        let states = [State { parts: vec![0], goodput: 1.0 }, State { parts: vec![1], goodput: 1.0 }];
        let found = expected(&[0.1, 0.1], &states);
        assert!((found.least - 120.0 / 121.0).abs() < 1e-12 && (found.most - 1.0).abs() < 1e-12, "{found:?}");
    }
}
