//! Charts with axes, as plain data: over time, distributions, curves. `assets/report.js` draws them with uPlot.
//!
//! A [`Lines`] is one figure: a title, one or several [`Choice`]s of which one is shown (zones of a machine, kinds of
//! memory), and in each a [`Panel`] for each variant, side by side on the same axes. A panel has [`Line`]s.
//!
//! Invariant: a line has as many values as its panel has places along x, and those ascend.

use super::look::{self, Dash};
use maud::{html, Markup};
use pagetide_scenario::record::Unit;
use serde::Serialize;

/// What a figure of this many panels or lines would be is no picture any more.
pub const MOST_LINES: usize = 8;

/// A figure.
#[derive(Clone, Debug)]
pub struct Lines {
    /// Its anchor ([`super::page::anchor`] makes one of a name).
    pub id: String,
    pub title: String,
    /// What is drawn, in a sentence or two.
    pub about: String,
    /// Along the bottom.
    pub x: Axis,
    /// Up the side: one scale for all panels of a choice.
    pub y: Axis,
    /// Figures of a page with the same word here have one x axis: cursor and zoom are of all of them.
    pub over: Option<&'static str>,
    /// What can be chosen; the first is shown first. Of one there is no choice.
    pub choices: Vec<Choice>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// What it is, without its unit.
    pub label: String,
    /// The unit of a value times `factor`.
    pub unit: Unit,
    /// Values are multiplied by this: whole numbers of pages and nanoseconds take less room than their products.
    pub factor: f64,
    /// Logarithmic. Values that are not positive are not drawn.
    pub log: bool,
    /// Words instead of numbers: the first is at 1, the second at 2, and so on.
    pub names: Vec<String>,
}

impl Axis {
    /// A linear axis of values in `unit`.
    pub fn new(label: impl Into<String>, unit: Unit) -> Axis {
        Axis { label: label.into(), unit, factor: 1.0, log: false, names: Vec::new() }
    }

    /// Of words, in their order.
    pub fn of_names(label: impl Into<String>, names: Vec<String>) -> Axis {
        Axis { names, ..Axis::new(label, Unit::Count) }
    }

    /// With values that are multiplied by `factor`.
    pub fn times(self, factor: f64) -> Axis {
        Axis { factor, ..self }
    }

    /// The same, logarithmic.
    pub fn log(self) -> Axis {
        Axis { log: true, ..self }
    }
}

/// One of several sets of panels.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Its name in the list of choices.
    pub name: String,
    /// Values above this are cut off until the reader asks for the whole scale: a machine's empty memory dwarfs
    /// the marks that reclaim goes by.
    pub clip: Option<f64>,
    /// Side by side.
    pub panels: Vec<Panel>,
}

/// One chart.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Its title: a variant, mostly. May be empty if there is one.
    pub name: String,
    /// Places along x.
    pub x: Vec<f64>,
    /// What is drawn over them.
    pub lines: Vec<Line>,
    /// Upright lines.
    pub marks: Vec<Mark>,
}

/// An upright line at a place along x.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// What is there.
    pub text: String,
}

#[derive(Clone, Debug)]
pub struct Line {
    pub name: String,
    /// A value for each place; `None`: a gap.
    pub y: Vec<Option<f64>>,
    /// Least and most at each place, drawn as a ground behind the line.
    pub spread: Option<[Vec<Option<f64>>; 2]>,
    /// Number of its colour.
    pub colour: usize,
    pub dash: Dash,
    /// How its values are joined.
    pub shape: Shape,
}

/// How the values of a line are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// By straight lines: levels.
    Line,
    /// A value is of the stretch that ends at its place: rates, counts since the place before.
    Before,
    /// A value is of the stretch that begins at its place: distributions.
    After,
    /// Not at all: a marker each, of a form that goes with the colour.
    Points,
    /// By straight lines, with markers.
    LineAndPoints,
}

impl Line {
    /// Line number `number` of its panel, by which it looks different from the others.
    pub fn new(number: usize, name: impl Into<String>, shape: Shape, y: Vec<Option<f64>>) -> Line {
        let (colour, dash) = look::of(number);
        Line { name: name.into(), y, spread: None, colour, dash, shape }
    }

    pub fn between(self, least: Vec<Option<f64>>, most: Vec<Option<f64>>) -> Line {
        Line { spread: Some([least, most]), ..self }
    }
}

impl Lines {
    /// Where the script puts its charts.
    pub(super) fn place(&self) -> Markup {
        html! {
            figure.lines id=(self.id) {
                figcaption {
                    h3 { (self.title) }
                    p { (self.about) }
                }
                div.charts data-figure=(self.id) {
                    noscript { p { "The charts of this page need its script." } }
                }
            }
        }
    }
}
