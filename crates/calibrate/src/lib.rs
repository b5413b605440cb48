//! What this machine can do: raw loops that do as little as possible, and the judgement of a figure beside them.
//!
//! A speed in absolute numbers says more about the machine and its other guests than about the program. So each figure
//! of ours stands beside a raw loop that moves the same bytes with nothing around them, taken in the same minute, in
//! turns ([`Turns`]); what counts is the ratio of the medians ([`Comparison`]). A raw loop that was disturbed
//! makes ours look good, so a raw loop that varies or is slower than [`expected`] is no measure, and no verdict is given.
//!
//! Nothing here knows what is compared with the loops, and nothing here prints.

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
mod patience;
pub mod processors;
pub mod ring;
pub mod scatter;
pub mod series;
mod sides;
pub mod udp;

pub use alternate::Turns;
pub use compare::{Comparison, Doubt, Goal, Ratio, Raw, Sense, TAKES_MIN, Verdict};
pub use distance::Distance;
pub use expected::Expected;
pub use machine::Machine;
pub use processors::Pair;
pub use series::Series;
