//! The page of `pagetide mrc`: miss ratio by cache size, beside that of exact LRU lists.

use super::lines::{ChartAxis, ChartChoice, ChartFigure, ChartLine, ChartPanel, LineShape};
use super::page::{HtmlPage, PageBlock, PageSection};
use super::run::PageSource;
use crate::format::size;
use crate::mrc::{CurvePoint, MissRatioCurve, LEGEND};
use maud::html;
use pagetide_scenario::record::Unit;

/// The axis is logarithmic from this ratio of largest to smallest size on.
const LOG_FROM: f64 = 8.0;

pub fn page(curve: &MissRatioCurve, points: &[CurvePoint], source: &PageSource) -> HtmlPage {
    let requests = points.first().map_or(0, |point| point.requests);
    let lead = html! {
        dl.facts {
            dt { "trace" } dd { (curve.trace()) }
            dt { "requests" } dd { (requests) }
            dt { "asked" } dd { "share of requests that wait for a read, by size of the page cache" }
            @if let [first, .., last] = points {
                dt { "sizes" } dd { (points.len()) " from " (size(first.size)) " to " (size(last.size)) }
            }
        }
    };
    let about = html! { p.note { (LEGEND) "." } };
    HtmlPage {
        title: format!("Miss ratio of {}", name_of(curve.trace())),
        kind: "pagetide mrc",
        lead,
        sections: vec![
            PageSection::new("curve", "Curve", vec![lines(points).into()]),
            PageSection::new("sizes", "Sizes", vec![table(points), about.into()]),
        ],
        foot: html! {
            p {
                "pagetide " (crate::VERSION) ", seed " (curve.plan.scenario.seed)
                ". Figures depend only on trace, sizes and seed."
            }
            @if !source.command.is_empty() { p { "Command: " code { (source.command) } } }
        },
    }
}

/// The last part of a path.
fn name_of(trace: &str) -> &str {
    trace.rsplit('/').next().unwrap_or(trace)
}

fn lines(points: &[CurvePoint]) -> ChartFigure {
    let x: Vec<f64> = points.iter().map(|point| point.size as f64).collect();
    let of =
        |ratio: fn(&CurvePoint) -> f64| points.iter().map(|it| Some(ratio(it) * 100.0)).collect();
    let shape = LineShape::LineAndPoints;
    let lines = vec![
        ChartLine::new(0, "page cache of the simulator", shape, of(|point| point.miss_ratio)),
        ChartLine::new(1, "exact LRU list", shape, of(|point| point.lru_miss_ratio)),
    ];
    let is_wide = x.len() > 1 && x[x.len() - 1] >= LOG_FROM * x[0];
    let axis = ChartAxis::new("size of the cache", Unit::Bytes);
    let panel = ChartPanel { name: String::new(), x, lines, marks: Vec::new() };
    ChartFigure {
        id: "curve-ratio".to_owned(),
        title: "Requests that miss".to_owned(),
        about: "Share of the requests that waited for a read.".to_owned(),
        x: if is_wide { axis.log() } else { axis },
        y: ChartAxis::new("misses", Unit::Percent),
        over: None,
        choices: vec![ChartChoice { name: "misses".to_owned(), clip: None, panels: vec![panel] }],
    }
}

fn table(points: &[CurvePoint]) -> PageBlock {
    let head =
        ["size", "pages", "requests", "misses", "miss ratio", "LRU misses", "LRU miss ratio"];
    html! {
        div.scroll tabindex="0" role="region" aria-label="Misses by size" {
            table {
                thead { tr { @for name in head { th.number scope="col" { (name) } } } }
                tbody {
                    @for point in points {
                        tr {
                            th scope="row" { (size(point.size)) }
                            td.number { (point.pages) }
                            td.number { (point.requests) }
                            td.number { (point.misses) }
                            td.number { (format!("{:.4}", point.miss_ratio)) }
                            td.number { (point.lru_misses) }
                            td.number { (format!("{:.4}", point.lru_miss_ratio)) }
                        }
                    }
                }
            }
        }
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_line_of_the_table_and_a_place_in_the_curve() {
        let point = |pages: u64, misses: u64| CurvePoint {
            size: pages * 4096,
            pages,
            requests: 1000,
            misses,
            miss_ratio: misses as f64 / 1000.0,
            lru_misses: misses + 1,
            lru_miss_ratio: (misses + 1) as f64 / 1000.0,
        };
        let points = [point(256, 900), point(4096, 125)];
        let curve = lines(&points);
        let y = &curve.choices[0].panels[0].lines[0].y;
        assert_eq!((y[1], curve.x.log), (Some(12.5), true));
        let PageBlock::Markup(table) = table(&points) else { panic!("a table") };
        for wanted in ["1 MiB", ">900<", ">0.9000<", ">901<", ">0.1260<"] {
            assert!(table.0.contains(wanted), "{wanted}");
        }
        assert!(lines(&[]).choices[0].panels[0].x.is_empty());
        assert_eq!(name_of("/a/b.ptt"), "b.ptt");
    }
}
