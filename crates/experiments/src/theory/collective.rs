//! How long collectives take: `alpha` is what a step costs beside its bytes, `b` what one link carries.
//!
//! The textbook's clock stops when the last byte has arrived. A rank of ours is done when it also knows that its own bytes
//! are visible, one acknowledgement's way later: `finish`, once per collective, whatever the number of steps.

/// A step's cost and the links' speed.
#[derive(Clone, Copy, Debug)]
pub struct Fabric {
    /// Nanoseconds per step, whatever its size.
    pub alpha_ns: f64,
    /// Nanoseconds from the last byte's arrival until its sender knows.
    pub finish_ns: f64,
    /// Payload bytes per nanosecond of one link.
    pub link_bytes_per_ns: f64,
    /// Ranks.
    pub ranks: f64,
}

impl Fabric {
    /// All-reduce around a ring: `2 (N - 1) (alpha + S / (N b)) + finish`.
    #[must_use]
    pub fn ring_all_reduce_ns(&self, bytes: f64) -> f64 {
        let step_ns = self.alpha_ns + bytes / (self.ranks * self.link_bytes_per_ns);
        2.0 * (self.ranks - 1.0) * step_ns + self.finish_ns
    }

    /// All-reduce around a ring, one half of the array each way: `2 (N - 1) (alpha + S / (2 N b)) + finish`.
    #[must_use]
    pub fn two_rings_all_reduce_ns(&self, bytes: f64) -> f64 {
        self.ring_all_reduce_ns(bytes / 2.0)
    }

    /// All-reduce by halving and doubling through one link per node: `2 log2(N) alpha + 2 (N - 1) / N S / B + finish`.
    #[must_use]
    pub fn star_halving_doubling_ns(&self, bytes: f64) -> f64 {
        let share = 2.0 * (self.ranks - 1.0) / self.ranks;
        2.0 * self.ranks.log2() * self.alpha_ns + share * bytes / self.link_bytes_per_ns + self.finish_ns
    }

    /// All-reduce in two shots where each pair has a link: `2 (alpha + S / (N b)) + finish`.
    #[must_use]
    pub fn mesh_two_shot_ns(&self, bytes: f64) -> f64 {
        2.0 * (self.alpha_ns + bytes / (self.ranks * self.link_bytes_per_ns)) + self.finish_ns
    }

    /// All-reduce in one shot where each pair has a link: `alpha + S / b + finish`.
    #[must_use]
    pub fn mesh_one_shot_ns(&self, bytes: f64) -> f64 {
        self.alpha_ns + bytes / self.link_bytes_per_ns + self.finish_ns
    }

    /// All-reduce in two shots through one link per node: `2 alpha + 2 (N - 1) / N S / B + finish`.
    #[must_use]
    pub fn star_two_shot_ns(&self, bytes: f64) -> f64 {
        let share = 2.0 * (self.ranks - 1.0) / self.ranks;
        2.0 * self.alpha_ns + share * bytes / self.link_bytes_per_ns + self.finish_ns
    }

    /// Where one shot and two shots take the same time: `S = alpha b / (1 - 2 / N)`.
    #[must_use]
    pub fn one_shot_crossover_bytes(&self) -> f64 {
        self.alpha_ns * self.link_bytes_per_ns / (1.0 - 2.0 / self.ranks)
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
    fn a_ring_and_a_star_of_one_link_per_node_carry_large_arrays_equally_fast() {
        let bytes = 1e9;
        let ratio = FABRIC.ring_all_reduce_ns(bytes) / FABRIC.star_two_shot_ns(bytes);
        assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
    }
}
