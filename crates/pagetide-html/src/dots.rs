//! Samples as dots on one scale, one line per variant. They show whether means differ because all
//! values do, or because of one seed.
//!
//! Invariant: every sample is a dot, or is hidden under dots at the same place. The table below
//! lists the values of the first [`MOST_LISTED`] seeds.

use maud::{html, Markup};
use pagetide_lab::format::Scale;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Number of places along the line.
const WIDTH: f64 = 1000.0;
/// Heights of the dots at one place.
const STACK: [u32; 3] = [10, 5, 15];
/// Seeds whose values are listed.
pub const MOST_LISTED: usize = 64;

/// Narrowest axis, as a share of its values: small differences stay close together.
const LEAST_SPAN: f64 = 0.05;

/// Dots of one metric.
#[derive(Clone, Debug)]
pub struct DotFigure {
    /// Its anchor.
    pub id: String,
    /// The metric.
    pub title: Markup,
    /// Description of the metric; may be empty.
    pub about: String,
    pub scale: Scale,
    pub lines: Vec<DotLine>,
}

/// Dots of one variant.
#[derive(Clone, Debug)]
pub struct DotLine {
    /// The variant.
    pub name: String,
    /// Printed mean and spread.
    pub text: String,
    /// Mean and standard deviation of the measurements, if any.
    pub mean: Option<(f64, f64)>,
    /// In the order of the seeds.
    pub dots: Vec<Dot>,
}

/// A sample.
#[derive(Clone, Debug)]
pub struct Dot {
    pub seed: u64,
    pub value: f64,
    /// The printed value.
    pub text: String,
    /// Incomplete work, drawn hollow.
    pub is_ended: bool,
}

impl DotFigure {
    pub fn markup(&self) -> Markup {
        let (least, most) = self.range();
        let ends = [least, most].map(|value| self.scale.print(value, 0.0).0);
        let place = |value: f64| match most > least {
            true => ((value - least) / (most - least)).clamp(0.0, 1.0) * WIDTH,
            false => WIDTH / 2.0,
        };
        html! {
            figure.dots id=(self.id) {
                figcaption {
                    h3 { (self.title) @if !self.scale.symbol.is_empty() { span.unit { ", " (self.scale.symbol) } } }
                    @if !self.about.is_empty() { p { (self.about) } }
                }
                @for (number, line) in self.lines.iter().enumerate() {
                    div.strip {
                        span.name { (line.name) }
                        (strip(number, line, &place))
                        span.value { (line.text) }
                    }
                }
                @if ends[0] != ends[1] {
                    div.strip.ends aria-hidden="true" {
                        span {}
                        span { span { (ends[0]) } span { (ends[1]) } }
                        // As wide as the widest text above, so that the ends align with the lines.
                        span.value { (self.widest()) }
                    }
                }
                (self.list())
            }
        }
    }

    /// Ends of the axis: least and most, but at least [`LEAST_SPAN`] apart. If the printed ends
    /// would be equal, the axis starts at 0.
    fn range(&self) -> (f64, f64) {
        let dots = self.lines.iter().flat_map(|line| &line.dots).map(|dot| dot.value);
        let values: Vec<f64> = dots.filter(|value| value.is_finite()).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if values.is_empty() {
            return (0.0, 0.0);
        }
        let missing = (least.abs().max(most.abs()) * LEAST_SPAN - (most - least)).max(0.0);
        let (low, high) = (least - missing / 2.0, most + missing / 2.0);
        let print = |value: f64| self.scale.print(value, 0.0).0;
        match least >= 0.0 && print(low) == print(high) {
            true => (0.0, high),
            false => (low, high),
        }
    }

    fn widest(&self) -> &str {
        let texts = self.lines.iter().map(|line| line.text.as_str());
        texts.max_by_key(|text| text.chars().count()).unwrap_or_default()
    }

    fn list(&self) -> Markup {
        let mut seeds: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        for (number, line) in self.lines.iter().enumerate() {
            for dot in &line.dots {
                let cells = seeds.entry(dot.seed).or_insert_with(|| vec!["-"; self.lines.len()]);
                cells[number] = &dot.text;
            }
        }
        html! {
            details {
                summary { "Values by seed" }
                div.scroll tabindex="0" role="region" aria-label="Values by seed" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "seed" }
                                @for line in &self.lines { th scope="col" { (line.name) } }
                            }
                        }
                        tbody {
                            @for (seed, cells) in seeds.iter().take(MOST_LISTED) {
                                tr {
                                    th scope="row" { (seed) }
                                    @for cell in cells { td.number { (cell) } }
                                }
                            }
                        }
                    }
                }
                @if seeds.len() > MOST_LISTED {
                    p { "Only the first " (MOST_LISTED) " of " (seeds.len()) " seeds; "
                        code { "--format csv" } " has all." }
                }
            }
        }
    }
}

/// The line of a variant, stretched to the page. Dots stay round because strokes are not scaled.
fn strip(number: usize, line: &DotLine, place: &dyn Fn(f64) -> f64) -> Markup {
    let mut stacks: BTreeMap<u32, usize> = BTreeMap::new();
    let [mut measured, mut ended] = [String::new(), String::new()];
    for dot in line.dots.iter().filter(|dot| dot.value.is_finite()) {
        // Fewer places than pixels, so that thousands of seeds become a few hundred dots.
        let x = (place(dot.value) / 4.0).round() as u32 * 4;
        let height = stacks.entry(x).or_default();
        let Some(y) = STACK.get(*height) else { continue };
        *height += 1;
        let path = if dot.is_ended { &mut ended } else { &mut measured };
        write!(path, "M{x} {y}h0").expect("writing to a string");
    }
    let spread = line.mean.filter(|(mean, spread)| mean.is_finite() && spread.is_finite());
    let spread = spread.map(|(mean, spread)| {
        let [from, to, at] = [mean - spread, mean + spread, mean].map(|it| place(it).round());
        (format!("M{from} 10H{to}"), format!("M{at} 2V18"))
    });
    html! {
        svg.{ "c" (number % super::look::NR_COLOURS) } viewBox="0 0 1000 20" preserveAspectRatio="none"
            role="img" aria-label={ (line.name) ": " (line.text) ", " (line.dots.len()) " seeds" } {
            @if let Some((range, mean)) = &spread {
                path.range d=(range) {}
                path.mean d=(mean) {}
            }
            @if !measured.is_empty() { path.dot d=(measured) {} }
            @if !ended.is_empty() { path.ended d=(ended) {} path.hole d=(ended) {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_scenario::record::Unit;

    fn dots(values: &[f64]) -> String {
        let dot = |(seed, &value): (usize, &f64)| Dot {
            seed: seed as u64,
            value,
            text: value.to_string(),
            is_ended: value < 0.0,
        };
        let line = DotLine {
            name: "<v>".to_owned(),
            text: "1 \u{b1} 2".to_owned(),
            mean: Some((2.0, 1.0)),
            dots: values.iter().enumerate().map(dot).collect(),
        };
        let (id, about) = ("d".to_owned(), String::new());
        let scale =
            Scale::new(Unit::Count, &values.iter().map(|it| (*it, 0.0)).collect::<Vec<_>>());
        let dots = DotFigure { id, title: html! { "x" }, about, scale, lines: vec![line] };
        dots.markup().into_string()
    }

    #[test]
    fn dots_lie_between_least_and_most() {
        let text = dots(&[0.0, 4.0, 4.0, 2.0]);
        assert!(text.contains("d=\"M0 10h0M1000 10h0M1000 5h0M500 10h0\""), "{text}");
        assert!(text.contains("d=\"M250 10H750\""), "{text}");
        assert!(text.contains("&lt;v&gt;"), "{text}");
        assert!(dots(&[-1.0]).contains("class=\"ended\""));
    }

    #[test]
    fn the_axis_says_where_it_ends_and_hardly_any_spread_does_not_fill_it() {
        let ends = |from: &str, to: &str| format!("<span>{from}</span><span>{to}</span>");
        assert!(dots(&[0.0, 4.0]).contains(&ends("0", "4")));
        // A thousandth apart, on an axis of a twentieth.
        let text = dots(&[1000.0, 1001.0]);
        assert!(text.contains("M492 10h0M508 10h0"), "{text}");
        assert!(text.contains(&ends("975", "1026")), "{text}");
        // A twentieth of a small count cannot be printed.
        assert!(dots(&[7.0]).contains(&ends("0", "7")), "{}", dots(&[7.0]));
        assert!(!dots(&[0.0]).contains("strip ends"), "no width at all");
    }

    #[test]
    fn odd_values_and_many_of_them_are_drawn_too() {
        assert!(!dots(&[f64::NAN, f64::INFINITY]).contains("NaN 10"));
        assert!(dots(&[]).contains("svg"));
        assert!(dots(&[0.0]).contains("M500 10h0"));
        let many: Vec<f64> = (0..10_000).map(f64::from).collect();
        let text = dots(&many);
        assert!(text.len() < 30_000, "{}", text.len());
        assert!(text.contains("Only the first 64 of 10000 seeds"));
    }
}
