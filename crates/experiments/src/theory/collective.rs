//! Durations of collectives: `alpha` is the cost of a step without its bytes, `b` the bandwidth of one link.
//!
//! The textbook's time ends when the last byte has arrived. A rank of ours completes when it also has the
//! acknowledgement that its own bytes are visible, one acknowledgement's delay later: `finish`, once per collective,
//! for any number of steps.

/// Cost of a step, and speed of the links.
#[derive(Clone, Copy, Debug)]
pub struct Fabric {
    /// Nanoseconds per step, for any size.
    pub alpha_ns: f64,
    /// Nanoseconds from the last byte's arrival until its sender has the acknowledgement.
    pub finish_ns: f64,
    /// Payload bytes per nanosecond of one link.
    pub link_bytes_per_ns: f64,
    /// Number of ranks.
    pub ranks: f64,
}

impl Fabric {
    /// Returns the duration of an all-reduce around a ring, in nanoseconds: `2 (N - 1) (alpha + S / (N b)) + finish`.
    #[must_use]
    pub fn ring_all_reduce_ns(&self, bytes: f64) -> f64 {
        let step_ns = self.alpha_ns + bytes / (self.ranks * self.link_bytes_per_ns);
        2.0 * (self.ranks - 1.0) * step_ns + self.finish_ns
    }

    /// Returns the duration of an all-reduce around a ring, one half of the array in each direction: `2 (N - 1)
    /// (alpha + S / (2 N b)) + finish`.
    #[must_use]
    pub fn two_rings_all_reduce_ns(&self, bytes: f64) -> f64 {
        self.ring_all_reduce_ns(bytes / 2.0)
    }

    /// Returns the duration of an all-reduce by halving and doubling through one link per node: `2 log2(N) alpha + 2
    /// (N - 1) / N S / B + finish`.
    #[must_use]
    pub fn star_halving_doubling_ns(&self, bytes: f64) -> f64 {
        let share = 2.0 * (self.ranks - 1.0) / self.ranks;
        2.0 * self.ranks.log2() * self.alpha_ns + share * bytes / self.link_bytes_per_ns + self.finish_ns
    }

    /// Returns the duration of an all-reduce in two shots if each pair has a link: `2 (alpha + S / (N b)) + finish`.
    #[must_use]
    pub fn mesh_two_shot_ns(&self, bytes: f64) -> f64 {
        2.0 * (self.alpha_ns + bytes / (self.ranks * self.link_bytes_per_ns)) + self.finish_ns
    }

    /// Returns the duration of an all-reduce in one shot if each pair has a link: `alpha + S / b + finish`.
    #[must_use]
    pub fn mesh_one_shot_ns(&self, bytes: f64) -> f64 {
        self.alpha_ns + bytes / self.link_bytes_per_ns + self.finish_ns
    }

    /// Returns the duration of an all-reduce in two shots through one link per node: `2 alpha + 2 (N - 1) / N S / B + finish`.
    #[must_use]
    pub fn star_two_shot_ns(&self, bytes: f64) -> f64 {
        let share = 2.0 * (self.ranks - 1.0) / self.ranks;
        2.0 * self.alpha_ns + share * bytes / self.link_bytes_per_ns + self.finish_ns
    }

    /// Returns the duration of an all-reduce by a switch that reduces segments of at most `slot_bytes`, from the last rank's begin: `alpha + (S + min(S, slot)) / b`.
    /// The acknowledgements of a rank's own bytes arrive before the result does.
    #[must_use]
    pub fn in_switch_all_reduce_ns(&self, bytes: f64, slot_bytes: f64) -> f64 {
        self.alpha_ns + (bytes + bytes.min(slot_bytes)) / self.link_bytes_per_ns
    }

    /// Returns the size for which one shot and two shots take equal time: `S = alpha b / (1 - 2 / N)`.
    #[must_use]
    pub fn one_shot_crossover_bytes(&self) -> f64 {
        self.alpha_ns * self.link_bytes_per_ns / (1.0 - 2.0 / self.ranks)
    }
}

/// Two leaf switches with half of the ranks each, joined by trunks; all links are equal.
#[derive(Clone, Copy, Debug)]
pub struct Leaves {
    /// Nanoseconds of one link without bytes.
    pub delay_ns: f64,
    /// Payload bytes per nanosecond of one link.
    pub link_bytes_per_ns: f64,
    /// Number of ranks.
    pub ranks: f64,
}

impl Leaves {
    /// Number of links between nodes of two leaves.
    const ACROSS: f64 = 3.0;

    /// Returns the duration of an all-reduce in two shots over one trunk, in nanoseconds. In each shot `(N / 2)^2` parts of `S / N` cross
    /// the trunk in each direction: `2 (3 d + N S / (4 b)) + 3 d`.
    #[must_use]
    pub fn two_shot_one_trunk_ns(&self, bytes: f64) -> f64 {
        let shot_ns = Self::ACROSS * self.delay_ns + self.ranks * bytes / (4.0 * self.link_bytes_per_ns);
        2.0 * shot_ns + Self::ACROSS * self.delay_ns
    }

    /// Returns the duration of an all-reduce around a ring of which two hops cross, in nanoseconds: `2 (N - 1) (2 d + S / (N b)) + 2 d`, and
    /// `4 d` for the four hops of the longest chain that cross.
    #[must_use]
    pub fn ring_ns(&self, bytes: f64) -> f64 {
        let step_ns = 2.0 * self.delay_ns + bytes / (self.ranks * self.link_bytes_per_ns);
        2.0 * (self.ranks - 1.0) * step_ns + 2.0 * self.delay_ns + 4.0 * self.delay_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FABRIC: Fabric =
        Fabric { alpha_ns: 1_000.0, finish_ns: 500.0, link_bytes_per_ns: 50.0, ranks: 8.0 };

    #[test]
    fn both_ways_take_equally_long_at_the_crossover() {
        let crossover = FABRIC.one_shot_crossover_bytes();
        let (one, two) = (FABRIC.mesh_one_shot_ns(crossover), FABRIC.mesh_two_shot_ns(crossover));
        assert!((one - two).abs() < 1e-6 * one, "{one} {two}");
        assert!(FABRIC.mesh_one_shot_ns(crossover / 2.0) < FABRIC.mesh_two_shot_ns(crossover / 2.0));
    }

    #[test]
    fn a_switch_that_reduces_gains_little_less_than_twice_the_bandwidth_of_a_ring() {
        let bytes = 1e9;
        let ratio = FABRIC.ring_all_reduce_ns(bytes) / FABRIC.in_switch_all_reduce_ns(bytes, 16_384.0);
        assert!((ratio - 1.75).abs() < 1e-2, "2 (N - 1) / N of 8 ranks: {ratio}");
        assert_eq!(FABRIC.in_switch_all_reduce_ns(0.0, 16_384.0), FABRIC.alpha_ns);
    }

    #[test]
    fn a_ring_and_a_star_of_one_link_per_node_carry_large_arrays_equally_fast() {
        let bytes = 1e9;
        let ratio = FABRIC.ring_all_reduce_ns(bytes) / FABRIC.star_two_shot_ns(bytes);
        assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
    }
}
