//! Faults on any wire; comes with the plan's judge.
