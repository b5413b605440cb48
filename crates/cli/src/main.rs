//! The `rackloom` command.
fn main() {}
