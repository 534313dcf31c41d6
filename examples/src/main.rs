//! The command `pagetide` with two policies more.

use std::process::ExitCode;

fn main() -> ExitCode {
    pagetide::main_with(pagetide_examples::plugins())
}
