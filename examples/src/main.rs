//! The command `pagetide` with two additional policies.

use std::process::ExitCode;

fn main() -> ExitCode {
    pagetide::main_with(pagetide_examples::plugins())
}
