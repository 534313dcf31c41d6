//! HTML pages: a result as one self-contained file, to mail, attach to a ticket, or print.
//!
//! Parts of a page:
//!
//! * A [`HtmlPage`](page::HtmlPage) has a title, a lead and [`PageSection`](page::PageSection)s. A
//!   section has a heading, an anchor, and blocks: markup of `maud`'s `html!`, which escapes its
//!   input, or [`ChartFigure`](lines::ChartFigure).
//! * [`lines::ChartFigure`] are charts with axes (over time, distributions, curves): plain data,
//!   which `assets/report.js` draws with uPlot. Charts that are `over` the same axis share cursor
//!   and zoom.
//! * [`dots`] and [`heat`] become markup directly (SVG and tables), and need no script.
//! * [`run`], [`sweep`] and so on, one file per kind of page, turn a result into a page.
//!   `page.render()` is the file.
//!
//! To add a kind of page: write a file beside `run.rs` with `pub fn page(result) -> HtmlPage`; take
//! sentences and tables from the text output, so that the two agree; and add a test to
//! `crates/pagetide/tests/cli/pages.rs`, which opens pages in a browser.
//!
//! Invariant: a page is a function of the result: the same result gives the same bytes. A page
//! needs no network (its own policy forbids it). Without a script it still has its text and tables.

pub mod dots;
pub mod find;
pub mod heat;
pub mod lines;
pub mod mrc;
pub mod page;
pub mod run;
pub mod sweep;
pub mod verify;

mod data;
mod knob_axis;
mod look;
