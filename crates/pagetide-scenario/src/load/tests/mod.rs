//! Tests of the loader, by subject. Each test starts from a scenario without mistakes, so every
//! reported mistake is in the lines that the test adds.

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
mod names;
mod names_and_pipes;
mod objects;
mod parts;
mod plugins;
mod report;
mod service;
mod survival;
mod tasks;
mod variants;

use super::*;
use crate::diagnostic::Diagnostic;
use crate::op::Advice;
use crate::workload::*;

/// A scenario without mistakes; tests append to it, so its lines keep their numbers.
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
/// The line after [`SOUND`].
const NEXT: usize = 10;

fn load_text(text: &str, overrides: &Overrides) -> Result<Scenario, Diagnostics> {
    load_str("dir/case.toml", text, Path::new("no-such-directory"), overrides)
}

fn sound(text: &str) -> Scenario {
    load_text(text, &Overrides::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

fn mistakes(text: &str) -> Vec<Diagnostic> {
    let errors = load_text(text, &Overrides::default()).expect_err("there is a mistake");
    errors.iter().cloned().collect()
}

/// (line, column, text, message, hint) of each mistake.
fn told(text: &str) -> Vec<(usize, usize, String, String, String)> {
    let tell = |d: Diagnostic| (d.line, d.column, d.text, d.message, d.hint.unwrap_or_default());
    mistakes(text).into_iter().map(tell).collect()
}

/// Checks the only mistake of `SOUND` plus `more`. Lines count from the first line of `more`.
#[track_caller]
fn expect(more: &str, line: isize, column: usize, text: &str, message: &str, hint: &str) {
    let found = told(&format!("{SOUND}{more}"));
    let [(got_line, got_column, got_text, got_message, got_hint)] = found.as_slice() else {
        panic!("expected one mistake, found {found:#?}");
    };
    assert_eq!(
        (
            *got_line as isize + 1 - NEXT as isize,
            *got_column,
            got_text.as_str(),
            got_message.as_str()
        ),
        (line, column, text, message)
    );
    assert_eq!(got_hint, hint);
}

/// Like [`expect`], for a whole file.
#[track_caller]
fn expect_in(file: &str, line: usize, column: usize, text: &str, message: &str, hint: &str) {
    let found = told(file);
    let (text, message, hint) = (text.to_owned(), message.to_owned(), hint.to_owned());
    assert_eq!(found, [(line, column, text, message, hint)]);
}
