//! The command `pagetide`, with the built-in policies alone.

use pagetide::policy::Plugins;
use std::process::ExitCode;

fn main() -> ExitCode {
    pagetide::main_with(Plugins::new())
}
