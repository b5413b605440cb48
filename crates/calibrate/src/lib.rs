//! Raw loops that show the speed of this machine, and the judgement of a figure beside them.
//!
//! An absolute speed depends more on the machine and its other guests than on the program. So each figure
//! of ours is compared with a raw loop that moves the same bytes and does nothing else, in alternation
//! ([`Alternations`]). The result is the ratio of the medians ([`Comparison`]). A raw loop that was disturbed
//! makes ours look good, so a raw loop that varies or is slower than [`expected`] is no measure, and no verdict is given.
//!
//! This crate does not depend on the code that is compared, and it prints nothing.

pub mod alternate;
pub mod cache_line;
pub mod compare;
pub mod copy;
pub mod distance;
pub mod exchange;
pub mod expected;
pub mod kernel;
pub mod machine;
pub mod packet;
mod pages;
pub mod processors;
pub mod ring;
pub mod scatter;
mod sense;
pub mod series;
mod sides;
pub mod udp;
mod wait;

pub use alternate::Alternations;
pub use compare::{Comparison, Doubt, Goal, Ratio, Raw, TAKES_MIN, Verdict};
pub use distance::Distance;
pub use expected::Expected;
pub use machine::Machine;
pub use processors::Pair;
pub use sense::Sense;
pub use series::Series;
