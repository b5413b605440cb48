//! Throughput of a switch with one queue per input: head-of-line blocking.
//!
//! Inputs are always full, frames of one length go to outputs at random, and an input sends one frame per slot. Then the first frames
//! of all queues are customers of a closed system: each output serves one of those that are destined to it per slot,
//! and a served input has a frame for a random output again (Karol, Hluchyj and Morgan, "Input versus output queueing
//! on a space-division packet switch", 1987). The choice of an output among its inputs makes no difference.

use std::collections::BTreeMap;

/// Returns the throughput per port in the limit of many ports: 2 - sqrt(2).
#[must_use]
pub fn many_ports() -> f64 {
    2.0 - 2.0_f64.sqrt()
}

/// Returns the throughput per port of a switch with this number of ports.
///
/// States are the numbers of queues per output, sorted; states that differ only in the names of the outputs are one.
/// Exact but for the end of the iteration; the number of states grows fast, so a dozen ports are enough.
#[must_use]
pub fn throughput(ports: usize) -> f64 {
    const ROUNDS: usize = 10_000;
    const CHANGE: f64 = 1e-13;
    let mut chances = after_throws(vec![0; ports], ports);
    let mut served = mean_served(&chances, ports);
    for _ in 0..ROUNDS {
        let mut next = BTreeMap::new();
        for (queues, chance) in chances {
            let (left, free) = serve(&queues);
            for (state, share) in after_throws(left, free) {
                *next.entry(state).or_insert(0.0) += chance * share;
            }
        }
        chances = next;
        let before = std::mem::replace(&mut served, mean_served(&chances, ports));
        if (served - before).abs() < CHANGE {
            break;
        }
    }
    served
}

/// Lets every output with a queue serve one frame. Returns the remaining queues, and how many were served.
fn serve(queues: &[usize]) -> (Vec<usize>, usize) {
    let served = queues.iter().filter(|count| **count > 0).count();
    (queues.iter().map(|count| count.saturating_sub(1)).collect(), served)
}

fn mean_served(chances: &BTreeMap<Vec<usize>, f64>, ports: usize) -> f64 {
    let sum: f64 = chances.iter().map(|(queues, chance)| chance * serve(queues).1 as f64).sum();
    sum / ports as f64
}

/// Returns the distribution of states after `thrown` more queues choose an output at random.
fn after_throws(queues: Vec<usize>, thrown: usize) -> BTreeMap<Vec<usize>, f64> {
    let mut states = BTreeMap::from([(sorted(queues), 1.0)]);
    for _ in 0..thrown {
        let mut next = BTreeMap::new();
        for (state, chance) in states {
            for output in 0..state.len() {
                let mut one_more = state.clone();
                one_more[output] += 1;
                *next.entry(sorted(one_more)).or_insert(0.0) += chance / state.len() as f64;
            }
        }
        states = next;
    }
    states
}

fn sorted(mut queues: Vec<usize>) -> Vec<usize> {
    queues.sort_unstable();
    queues
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table I of the paper.
    #[test]
    fn small_switches_match_the_paper() {
        for (ports, kept) in
            [(1, 1.0), (2, 0.75), (3, 0.6825), (4, 0.6553), (5, 0.6399), (6, 0.6302), (8, 0.6184)]
        {
            assert!((throughput(ports) - kept).abs() < 6e-5, "{ports}: {}", throughput(ports));
        }
        assert!((many_ports() - 0.5858).abs() < 1e-4);
    }
}
