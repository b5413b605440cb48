//! Balance of random placement: balls thrown into bins.
//!
//! Flows that a hash deals out to planes are balls thrown into bins (the multinomial distribution; Johnson and Kotz, "Urn models and
//! their application", 1977). All planes wait for the fullest one.

/// Returns the expected ratio of the fullest of `bins` to their mean, when each of `balls` falls into a random bin.
///
/// The sum over m of P(fullest > m), by the binomial share of one bin after the other.
#[must_use]
pub fn fullest_over_mean(balls: usize, bins: usize) -> f64 {
    let fullest: f64 = (0..balls).map(|most| 1.0 - none_above(balls, bins, most)).sum();
    fullest * bins as f64 / balls as f64
}

/// Returns the probability that no bin gets more than `most`.
fn none_above(balls: usize, bins: usize, most: usize) -> f64 {
    // The last bin gets all remaining balls.
    let mut holds: Vec<f64> = (0..=balls).map(|left| if left <= most { 1.0 } else { 0.0 }).collect();
    for bins_left in 2..=bins {
        let share = 1.0 / bins_left as f64;
        let with_one_more = |left: usize| -> f64 {
            let mut probability = (1.0 - share).powi(left as i32);
            let mut sum = 0.0;
            for taken in 0..=left.min(most) {
                sum += probability * holds[left - taken];
                probability *= (left - taken) as f64 / (taken + 1) as f64 * share / (1.0 - share);
            }
            sum
        };
        holds = (0..=balls).map(with_one_more).collect();
    }
    holds[balls]
}

/// Returns the throughput of one stream over several paths, relative to one path: all of them if each packet takes a free path,
/// one if all packets take the same.
#[must_use]
pub const fn paths_in_use(is_per_packet: bool, paths: u64) -> u64 {
    if is_per_packet { paths } else { 1 }
}

/// Returns the minimum of that if each packet's path is chosen at random and so many packets may wait: servers with
/// `waiting` customers who choose the next one at random are busy for K/(K + P - 1) of the time if service takes as
/// long as it happens to (Gordon and Newell 1967), and for more if it always takes the same.
#[must_use]
pub fn random_paths_in_use_min(paths: u64, waiting: u64) -> f64 {
    (paths * waiting) as f64 / (waiting + paths - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_balls_in_two_bins_meet_half_of_the_time() {
        // 2 half of the time, 1 otherwise; the mean of a bin is 1.
        assert!((fullest_over_mean(2, 2) - 1.5).abs() < 1e-12);
        assert_eq!(fullest_over_mean(7, 1), 1.0);
    }

    #[test]
    fn every_outcome_of_four_balls_in_three_bins_counted() {
        let mut sum = 0;
        for outcome in 0..81 {
            let mut bins = [0; 3];
            (0..4).fold(outcome, |rest, _| {
                bins[rest % 3] += 1;
                rest / 3
            });
            sum += bins.iter().max().expect("three bins");
        }
        let mean = f64::from(sum) / 81.0;
        assert!((fullest_over_mean(4, 3) - mean * 3.0 / 4.0).abs() < 1e-12);
    }

    #[test]
    fn more_balls_fall_more_evenly() {
        assert!(fullest_over_mean(32, 4) > 1.3 && fullest_over_mean(256, 4) < 1.15);
    }
}
