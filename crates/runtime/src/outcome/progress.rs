//! Progress of a run: number of finished nodes, and the pieces that all nodes have completed.
//!
//! The sum over nodes grows with every piece of any node. The slowest node alone would stand still for most of a run in which nodes have unequal work.

use rackloom_jobs::Portion;

/// Progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunProgress {
    /// Number of GPU nodes that have finished.
    pub finished: usize,
    /// Number of nodes whose pieces are counted: 0 if the job has no pieces.
    pub counted: u64,
    /// Thousandths of pieces that the counted nodes have completed, and all of them.
    pub thousandths: [u64; 2],
    /// Virtual time of the run in nanoseconds. `None` for a run in real time.
    pub virtual_ns: Option<u64>,
}

/// Progress of one GPU node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeProgress {
    /// The node works. `None` if its job has no pieces.
    Working(Option<Portion>),
    /// The node has finished all of its pieces.
    Finished(Option<Portion>),
    /// The node is dead, and its pieces do not count.
    Lost,
}

impl RunProgress {
    /// Returns the progress of a run from that of each node.
    pub fn of(nodes: impl Iterator<Item = NodeProgress>) -> Self {
        let mut progress = Self::default();
        for node in nodes {
            progress.finished += usize::from(matches!(node, NodeProgress::Finished(_)));
            let (portion, is_whole) = match node {
                NodeProgress::Working(portion) => (portion, false),
                NodeProgress::Finished(portion) => (portion, true),
                NodeProgress::Lost => (None, false),
            };
            let Some([done, total]) = portion.map(Portion::thousandths) else { continue };
            progress.counted += 1;
            progress.add([if is_whole { total } else { done }, total]);
        }
        progress
    }

    /// Returns the progress of nodes that were looked at in several parts. The virtual time is the latest.
    pub fn joined(parts: impl Iterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.finished += part.finished;
            all.counted += part.counted;
            all.add(part.thousandths);
            all.virtual_ns = all.virtual_ns.max(part.virtual_ns);
        }
        all
    }

    fn add(&mut self, [done, total]: [u64; 2]) {
        self.thousandths =
            [self.thousandths[0].saturating_add(done), self.thousandths[1].saturating_add(total)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_of_any_node_counts_and_parts_add_up() {
        let portion = |done: u64| Some(Portion::new(done, 10));
        let nodes = [
            NodeProgress::Working(portion(0)),
            NodeProgress::Working(portion(3)),
            // The last notice of a node may come before its last piece.
            NodeProgress::Finished(portion(9)),
            NodeProgress::Lost,
        ];
        let all = RunProgress::of(nodes.into_iter());
        let expected =
            RunProgress { finished: 1, counted: 3, thousandths: [13_000, 30_000], virtual_ns: None };
        assert_eq!(all, expected);
        let [first, second] = [&nodes[..1], &nodes[1..]].map(|part| RunProgress::of(part.iter().copied()));
        let second = RunProgress { virtual_ns: Some(7), ..second };
        assert_eq!(
            RunProgress::joined([first, second].into_iter()),
            RunProgress { virtual_ns: Some(7), ..all }
        );
        let without = RunProgress::of([NodeProgress::Working(None)].into_iter());
        assert_eq!(without, RunProgress::default());
    }
}
