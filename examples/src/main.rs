//! The command `pagetide` with the policies of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    pagetide::main_with(pagetide_examples::plugins())
}
