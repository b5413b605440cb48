//! Memory shared by two processes: seen, contended, taken back, and given up by death.

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
