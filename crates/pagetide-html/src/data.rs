//! The data of the charts as JSON within a page, for `assets/report.js`.
//!
//! `{"arrays": [...], "figures": [...]}`: figures refer to arrays by number, so that a time axis of
//! ten charts is written once. An array of equal values is that value.
//!
//! Invariant: no text in it can end a script, and each array is written once.

use crate::lines::{ChartAxis, ChartFigure, ChartLine, ChartMark, ChartPanel, LineShape};
use crate::look::LineDash;
use pagetide_lab::json::Number;
use serde::Serialize;
use std::collections::BTreeMap;

/// Digits kept of fractional numbers: more than a chart shows.
const DIGITS: usize = 5;

/// The JSON of these figures, safe inside a `<script>`.
pub(super) fn json(figures: &[&ChartFigure]) -> String {
    let mut arrays = Arrays::default();
    let figures: Vec<Figure> = figures.iter().map(|lines| figure(lines, &mut arrays)).collect();
    let document = Document { arrays: arrays.list, figures };
    inside_script(&serde_json::to_string(&document).expect("strings and numbers always serialise"))
}

/// Escapes characters that could end a script. JSON has them only within strings.
fn inside_script(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text += &format!("\\u{:04x}", u32::from(c))
            }
            other => text.push(other),
        }
    }
    text
}

#[derive(Serialize)]
struct Document<'a> {
    arrays: Vec<Array>,
    figures: Vec<Figure<'a>>,
}

#[derive(Serialize)]
struct Figure<'a> {
    id: &'a str,
    title: &'a str,
    x: &'a ChartAxis,
    y: &'a ChartAxis,
    over: Option<&'static str>,
    choices: Vec<OneChoice<'a>>,
}

#[derive(Serialize)]
struct OneChoice<'a> {
    name: &'a str,
    clip: Option<Number>,
    panels: Vec<OnePanel<'a>>,
}

#[derive(Serialize)]
struct OnePanel<'a> {
    name: &'a str,
    /// Number of places along x.
    length: usize,
    x: usize,
    lines: Vec<OneLine<'a>>,
    marks: &'a [ChartMark],
}

#[derive(Serialize)]
struct OneLine<'a> {
    name: &'a str,
    y: usize,
    least: Option<usize>,
    most: Option<usize>,
    colour: usize,
    dash: LineDash,
    shape: LineShape,
}

fn figure<'a>(lines: &'a ChartFigure, arrays: &mut Arrays) -> Figure<'a> {
    let choices = lines.choices.iter().map(|choice| OneChoice {
        name: &choice.name,
        clip: choice.clip.map(Number),
        panels: choice.panels.iter().map(|it| panel(it, arrays)).collect(),
    });
    let choices = choices.collect();
    let ChartFigure { id, title, x, y, over, .. } = lines;
    Figure { id, title, x, y, over: *over, choices }
}

fn panel<'a>(panel: &'a ChartPanel, arrays: &mut Arrays) -> OnePanel<'a> {
    let x: Vec<Option<f64>> = panel.x.iter().copied().map(Some).collect();
    let lines = panel.lines.iter().map(|line| {
        let ChartLine { name, y, spread, colour, dash, shape } = line;
        let y = arrays.add(y);
        let [least, most] = match spread {
            Some([least, most]) => [Some(arrays.add(least)), Some(arrays.add(most))],
            None => [None, None],
        };
        OneLine { name, y, least, most, colour: *colour, dash: *dash, shape: *shape }
    });
    let lines = lines.collect();
    OnePanel { name: &panel.name, length: x.len(), x: arrays.add(&x), lines, marks: &panel.marks }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Array {
    /// All values are equal to this one.
    Same(Option<Number>),
    Each(Vec<Option<Number>>),
}

#[derive(Default)]
struct Arrays {
    list: Vec<Array>,
    /// Index in `list`, by the bits of the values.
    places: BTreeMap<Vec<Option<u64>>, usize>,
}

impl Arrays {
    fn add(&mut self, values: &[Option<f64>]) -> usize {
        let values: Vec<Option<f64>> =
            values.iter().map(|value| value.filter(|it| it.is_finite()).map(rounded)).collect();
        let is_same = values.windows(2).all(|pair| pair[0] == pair[1]) && !values.is_empty();
        let kept = if is_same { &values[..1] } else { &values[..] };
        // A constant array needs no length: the panel has it.
        let bits: Vec<Option<u64>> = kept.iter().map(|value| value.map(f64::to_bits)).collect();
        let list = &mut self.list;
        *self.places.entry(bits).or_insert_with(|| {
            let numbers = kept.iter().map(|value| value.map(Number));
            list.push(match is_same {
                true => Array::Same(kept[0].map(Number)),
                false => Array::Each(numbers.collect()),
            });
            list.len() - 1
        })
    }
}

fn rounded(value: f64) -> f64 {
    if value.fract() == 0.0 {
        return value;
    }
    format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::ChartChoice;
    use pagetide_scenario::record::Unit;
    use serde_json::{json, Value};

    fn lines(name: &str, x: &[f64], ys: &[&[Option<f64>]]) -> ChartFigure {
        let ys = ys.iter().enumerate();
        let lines =
            ys.map(|(at, y)| ChartLine::new(at, name, LineShape::Line, y.to_vec())).collect();
        let panel = ChartPanel { name: name.to_owned(), x: x.to_vec(), lines, marks: vec![] };
        ChartFigure {
            id: "id".to_owned(),
            title: name.to_owned(),
            about: name.to_owned(),
            x: ChartAxis::new("time", Unit::Seconds),
            y: ChartAxis::new(name, Unit::Pages),
            over: None,
            choices: vec![ChartChoice { name: name.to_owned(), clip: None, panels: vec![panel] }],
        }
    }

    #[test]
    fn arrays_are_written_once() {
        let figure =
            lines("a", &[1.0, 2.0], &[&[Some(3.0); 2], &[Some(1.0), Some(2.0)], &[None; 2]]);
        let value: Value = serde_json::from_str(&json(&[&figure, &figure])).unwrap();
        assert_eq!(value["arrays"], json!([3, [1, 2], null]));
        let panel = &value["figures"][1]["choices"][0]["panels"][0];
        assert_eq!((&panel["length"], &panel["x"]), (&json!(2), &json!(1)));
        let places: Vec<&Value> = (0..3).map(|at| &panel["lines"][at]["y"]).collect();
        assert_eq!(places, [&json!(0), &json!(1), &json!(2)]);
    }

    #[test]
    fn nan_is_a_gap_and_digits_are_few() {
        let figure = lines("a", &[], &[&[Some(f64::NAN), Some(1.0 / 3.0), Some(1e300)]]);
        let value: Value = serde_json::from_str(&json(&[&figure])).unwrap();
        assert_eq!(value["arrays"][0], json!([null, 0.33333, 1e300]));
    }

    #[test]
    fn any_name_is_restored_and_ends_no_script() {
        let names =
            ["</script>", "<!--", "]]>", "\u{2028}\u{2029}", "\"\\\u{0}", "&amp;", "\u{1F600}"];
        for name in names {
            let text = json(&[&lines(name, &[1.0], &[&[Some(1.0)]])]);
            assert!(!text.contains(['<', '>', '&', '\u{2028}', '\u{2029}', '\u{0}']), "{text}");
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["figures"][0]["title"], name);
        }
    }
}
