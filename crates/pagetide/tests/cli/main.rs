//! Tests of the built command: output, exit codes, mistakes.

mod browser;
mod commands;
mod common;
mod document;
mod documents;
mod edges;
mod ended;
mod events;
mod explain;
mod find;
mod full_disk;
mod import_host;
mod links;
mod mrc;
mod openmetrics;
mod pages;
mod reports;
mod run;
mod seeds;
mod several;
mod sweep;
