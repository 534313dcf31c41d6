//! Tests of the loader, by subject: models of valid scenarios, and effects of the command line.
//!
//! Mistakes that need nothing but their text are in `tests/diagnostics`.

mod bases;
mod blame;
mod blocks;
mod build;
mod caches;
mod defaults;
mod expectations;
mod groups;
mod knobs;
mod machine;
mod mistakes;
mod names_and_pipes;
mod objects;
mod parts;
mod plugins;
mod report;
mod resident;
mod survival;
mod tasks;
mod variants;

use super::*;
use crate::op::Advice;
use crate::workload::*;

/// A scenario without mistakes.
const SOUND: &str = "\
[machine]
memory = \"1GiB\"
[[file]]
name = \"data\"
size = \"64MiB\"
[[task]]
name = \"main\"
workload = \"touch\"
size = \"16MiB\"
";
fn load_text(text: &str, overrides: &Overrides) -> Result<Scenario, Diagnostics> {
    load_str("dir/case.toml", text, Path::new("no-such-directory"), overrides)
}

fn sound(text: &str) -> Scenario {
    load_text(text, &Overrides::default()).unwrap_or_else(|errors| panic!("{errors}"))
}
