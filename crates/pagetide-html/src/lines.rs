//! Charts with axes, as plain data: over time, distributions, curves. `assets/report.js` draws them
//! with uPlot.
//!
//! A [`ChartFigure`] is one figure: a title, and [`ChartChoice`]s of which one is shown (zones,
//! kinds of memory). A choice has one [`ChartPanel`] per variant, side by side on the same axes. A
//! panel has [`ChartLine`]s.
//!
//! Invariant: a line has one value per x position of its panel, and the positions ascend.

use crate::look::{self, LineDash};
use maud::{html, Markup};
use pagetide_scenario::record::Unit;
use serde::Serialize;

/// More lines or panels in a figure are unreadable.
pub const MOST_LINES: usize = 8;

#[derive(Clone, Debug)]
pub struct ChartFigure {
    /// Its anchor ([`super::page::anchor`] makes one of a name).
    pub id: String,
    pub title: String,
    /// Caption.
    pub about: String,
    pub x: ChartAxis,
    /// One scale for all panels of a choice.
    pub y: ChartAxis,
    /// Figures with the same word share the x axis, with cursor and zoom.
    pub over: Option<&'static str>,
    /// The first is shown first.
    pub choices: Vec<ChartChoice>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartAxis {
    /// Without the unit.
    pub label: String,
    /// The unit of a value times `factor`.
    pub unit: Unit,
    /// Values are multiplied by this: whole pages and nanoseconds are shorter in JSON.
    pub factor: f64,
    /// Logarithmic: only positive values are drawn.
    pub log: bool,
    /// Words instead of numbers, at 1, 2, and so on.
    pub names: Vec<String>,
}

impl ChartAxis {
    /// A linear axis of values in `unit`.
    pub fn new(label: impl Into<String>, unit: Unit) -> ChartAxis {
        ChartAxis { label: label.into(), unit, factor: 1.0, log: false, names: Vec::new() }
    }

    pub fn of_names(label: impl Into<String>, names: Vec<String>) -> ChartAxis {
        ChartAxis { names, ..ChartAxis::new(label, Unit::Count) }
    }

    pub fn times(self, factor: f64) -> ChartAxis {
        ChartAxis { factor, ..self }
    }

    pub fn log(self) -> ChartAxis {
        ChartAxis { log: true, ..self }
    }
}

/// One of several sets of panels.
#[derive(Clone, Debug)]
pub struct ChartChoice {
    pub name: String,
    /// The scale ends here until the reader selects the whole scale: free memory of an empty
    /// machine would dwarf the watermarks.
    pub clip: Option<f64>,
    pub panels: Vec<ChartPanel>,
}

#[derive(Clone, Debug)]
pub struct ChartPanel {
    /// Title, usually the variant; may be empty if it is the only panel.
    pub name: String,
    /// Positions along x.
    pub x: Vec<f64>,
    pub lines: Vec<ChartLine>,
    pub marks: Vec<ChartMark>,
}

/// A vertical line at a position along x.
#[derive(Clone, Debug, Serialize)]
pub struct ChartMark {
    pub x: f64,
    pub text: String,
}

#[derive(Clone, Debug)]
pub struct ChartLine {
    pub name: String,
    /// One value per position; `None`: a gap.
    pub y: Vec<Option<f64>>,
    /// Lower and upper end of the band behind the line.
    pub spread: Option<[Vec<Option<f64>>; 2]>,
    /// See [`look`].
    pub colour: usize,
    pub dash: LineDash,
    pub shape: LineShape,
}

/// How the values of a line are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineShape {
    /// By straight lines: levels.
    Line,
    /// Steps: a value holds up to its position (rates, counts since the previous position).
    Before,
    /// Steps: a value holds from its position on (distributions).
    After,
    /// Markers only, with a form per colour.
    Points,
    /// By straight lines, with markers.
    LineAndPoints,
}

impl ChartLine {
    /// Line `number` of its panel; the number selects colour and dash.
    pub fn new(
        number: usize,
        name: impl Into<String>,
        shape: LineShape,
        y: Vec<Option<f64>>,
    ) -> ChartLine {
        let (colour, dash) = look::of(number);
        ChartLine { name: name.into(), y, spread: None, colour, dash, shape }
    }

    pub fn between(self, least: Vec<Option<f64>>, most: Vec<Option<f64>>) -> ChartLine {
        ChartLine { spread: Some([least, most]), ..self }
    }
}

impl ChartFigure {
    /// The element that the script fills with charts.
    pub(super) fn place(&self) -> Markup {
        html! {
            figure.lines id=(self.id) {
                figcaption {
                    h3 { (self.title) }
                    p { (self.about) }
                }
                div.charts data-figure=(self.id) {
                    noscript { p { "Charts need JavaScript." } }
                }
            }
        }
    }
}
