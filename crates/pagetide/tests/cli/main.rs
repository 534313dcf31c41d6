//! The built command as a user meets it: output, exit codes, mistakes.

mod commands;
mod common;
mod events;
mod find;
mod import_host;
mod run;
mod sweep;
