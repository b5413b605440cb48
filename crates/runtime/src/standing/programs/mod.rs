//! Programs on seats (`rackloom exec`): a program of any kind becomes the holder of a vacant seat.
//!
//! Reading order: `choice` (which seat, by name or by rank) · `launch` (take a seat for this process) · `agent` (the process that runs the
//! node beside the program) · `libraries` (those that the program loads) · `several` (one process per seat).
//!
//! `docs/decisions/programs-on-seats.md` gives the reasons.

mod agent;
mod choice;
mod device_files;
mod launch;
mod libraries;
mod several;

pub use self::agent::agent;
pub use self::choice::{RANK_VARIABLES, chosen_seats, seat_of_rank};
pub use self::launch::{SeatOptions, TakenSeat, environment, take_for_this_process};
pub use self::libraries::{loads_no_library, paths_of};
pub use self::several::{SeatEnd, SeatOutput, run_on_seats};
