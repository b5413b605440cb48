//! Order of micro-batches in a stage of a pipeline.
//!
//! Both orders leave a share of (p - 1) / (m + p - 1) of the time idle, with p equal stages and m micro-batches. Sources: Huang et
//! al., "GPipe", NeurIPS 2019, section 2.3; Narayanan et al., SC 2021, section 2.2. They differ in memory: one-forward-one-backward
//! keeps the activations of at most p micro-batches, the other those of all.

/// Order of the micro-batches in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// Each stage begins with the forward passes that fill the stages behind it, and then alternates (1F1B).
    OneForwardOneBackward,
    /// All forward passes, then all backward passes (GPipe).
    AllForwardFirst,
}

/// Pass of one micro-batch through a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Towards the last stage.
    Forward,
    /// Towards the first stage. True for the last micro-batch, after which gradients are complete.
    Backward {
        /// True if gradients are complete behind this pass.
        is_last: bool,
    },
}

impl Schedule {
    /// All schedules.
    pub const ALL: [Self; 2] = [Self::OneForwardOneBackward, Self::AllForwardFirst];

    /// Returns the name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneForwardOneBackward => "1f1b",
            Self::AllForwardFirst => "gpipe",
        }
    }

    /// Returns the schedule with this name, or `None`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|schedule| schedule.name() == name)
    }

    /// Returns the passes of a stage, from 0, of `stages`.
    pub(super) fn passes(self, stage: u32, stages: u32, micro_batches: u32) -> impl Iterator<Item = Pass> {
        let behind = match self {
            Self::OneForwardOneBackward => (stages - 1 - stage).min(micro_batches),
            Self::AllForwardFirst => micro_batches,
        };
        // Forward passes run ahead of backward passes by `behind`, and by one more while both alternate.
        (0..micro_batches + behind).flat_map(move |step| {
            let forward = (step < micro_batches).then_some(Pass::Forward);
            let backward =
                (step >= behind).then(|| Pass::Backward { is_last: step + 1 == micro_batches + behind });
            [forward, backward].into_iter().flatten()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `F` for each forward pass, `B` for each backward pass and `L` for the last.
    fn letters(schedule: Schedule, stage: u32, stages: u32, micro_batches: u32) -> String {
        let letter = |pass| match pass {
            Pass::Forward => 'F',
            Pass::Backward { is_last: false } => 'B',
            Pass::Backward { is_last: true } => 'L',
        };
        schedule.passes(stage, stages, micro_batches).map(letter).collect()
    }

    #[test]
    fn stages_alternate_behind_the_passes_that_fill_the_pipeline() {
        let of = |stage| letters(Schedule::OneForwardOneBackward, stage, 4, 5);
        assert_eq!([0, 1, 2, 3].map(of), ["FFFFBFBBBL", "FFFBFBFBBL", "FFBFBFBFBL", "FBFBFBFBFL"]);
        assert_eq!(letters(Schedule::OneForwardOneBackward, 0, 4, 2), "FFBL");
        assert_eq!(letters(Schedule::AllForwardFirst, 2, 4, 3), "FFFBBL");
    }

    #[test]
    fn names_lead_back_to_schedules() {
        assert_eq!(Schedule::ALL.map(|one| Schedule::from_name(one.name())), Schedule::ALL.map(Some));
        assert_eq!(Schedule::from_name("x"), None);
    }
}
