//! Text form of a whole state machine, so that a test can snapshot it and a reader can check it.
//!
//! One row per state, one column per stimulus, `.` where nothing changes. It contains no rule of any machine.

use alloc::format;
use alloc::string::String;
use core::fmt::Debug;

/// Column widths: of the states, of the stimuli.
pub(super) type Widths = (usize, usize);

/// Returns the table of a machine whose transition function is `next`.
pub(super) fn matrix<S: Copy + PartialEq, T: Copy + Debug>(
    (states, name): (&[S], fn(S) -> &'static str),
    stimuli: &[T],
    next: fn(S, T) -> S,
    (state_width, stimulus_width): Widths,
) -> String {
    let mut text = format!("{:<state_width$}", "");
    for stimulus in stimuli {
        text.push_str(&format!("{:<stimulus_width$}", format!("{stimulus:?}")));
    }
    for state in states {
        text = format!("{}\n{:<state_width$}", text.trim_end(), name(*state));
        for stimulus in stimuli {
            let after = next(*state, *stimulus);
            text.push_str(&format!("{:<stimulus_width$}", if after == *state { "." } else { name(after) }));
        }
    }
    format!("{}\n", text.trim_end())
}
