//! Tests of the built command: output, exit codes, mistakes.

mod browser;
mod commands;
mod document;
mod documents;
mod edges;
mod ended;
mod events;
mod explain;
mod find;
mod fuzz;
mod import_host;
mod links;
mod mrc;
mod openmetrics;
mod outputs;
mod pages;
mod reports;
mod run;
mod seeds;
mod several;
mod sweep;
