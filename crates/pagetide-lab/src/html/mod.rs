//! Pages: a result as one HTML file that needs nothing else, to be mailed, kept with a ticket, or printed.
//!
//! How a page is put together:
//!
//! * A [`Page`](page::Page) has a title, a lead and [`Section`](page::Section)s. A section has a heading, an anchor,
//!   and blocks: markup of `maud`'s `html!`, which escapes whatever is put into it, or [`Lines`](lines::Lines).
//! * [`lines::Lines`] are charts with axes (over time, distributions, curves): plain data, which
//!   `assets/report.js` draws with uPlot. Charts of one page that are `over` the same axis share cursor and zoom.
//! * [`dots`], [`bars`] and [`heat`] become markup at once (SVG and tables), and need no script.
//! * [`run`] and its sisters, a file for each kind of page, turn a result into a page. `page.render()` is the file.
//!
//! To add a kind of page: write a file beside `run.rs` with `pub fn page(result) -> Page`; take sentences and tables
//! from where the text output has them, so that the two cannot say different things; and add a test to
//! `crates/pagetide/tests/cli/pages.rs`, which opens pages in a browser.
//!
//! Invariant: a page is a function of the result. The same result gives the same bytes; a page asks no network for
//! anything (its own policy forbids it); and without a script it still has its text and its tables.

pub mod bars;
pub mod dots;
pub mod find;
pub mod heat;
pub mod inspect;
pub mod lines;
pub mod mrc;
pub mod page;
pub mod run;
pub mod sweep;
pub mod verify;

mod data;
mod knob_axis;
mod look;
