//! Tests of memory shared by two processes: access, contention, revocation, and lost processes.

mod access;
mod death;
mod direct;
mod on_device;
mod parts;
mod refusals;
mod revocation;
mod rig;

#[test]
fn play_a_part() {
    if let Ok(part) = std::env::var(rig::PART) {
        parts::play(&part);
    }
}
