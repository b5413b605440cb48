//! Failures on standard error.

pub(crate) use rackloom_runtime::outcome::failure::Failure;

use crate::reporting::say_aside;

/// Prints a failure on standard error.
pub(crate) fn print(failure: &Failure) {
    say_aside(&failure.with_heading());
}
