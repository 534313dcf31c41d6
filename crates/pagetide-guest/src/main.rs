//! The first process of a guest.
fn main() {}
