//! The page of `pagetide mrc`: miss ratio by cache size, beside those of reference algorithms.

use crate::lines::{ChartAxis, ChartChoice, ChartFigure, ChartLine, ChartPanel, LineShape};
use crate::page::{HtmlPage, PageBlock, PageSection};
use crate::run::PageSource;
use maud::html;
use pagetide_lab::format::size;
use pagetide_lab::mrc::{CurvePoint, MissRatioCurve, RatioTable, ReferencePolicy, LEGEND};
use pagetide_scenario::record::Unit;

/// The axis is logarithmic from this ratio of largest to smallest size on.
const LOG_FROM: f64 = 8.0;

pub fn page(curve: &MissRatioCurve, points: &[CurvePoint], source: &PageSource) -> HtmlPage {
    let requests = points.first().map_or(0, |point| point.requests);
    let lead = html! {
        dl.facts {
            dt { "trace" } dd { (curve.trace()) }
            dt { "requests" } dd { (requests) }
            dt { "asked" } dd { "share of the references to pages that wait for a read, by size of the page cache" }
            @if let [first, .., last] = points {
                dt { "sizes" } dd { (points.len()) " from " (size(first.size)) " to " (size(last.size)) }
            }
        }
    };
    let mut blocks: Vec<PageBlock> = curve.tables(points).iter().map(table).collect();
    blocks.push(html! { p.note { (LEGEND) "." } }.into());
    HtmlPage {
        title: format!("Miss ratio of {}", name_of(curve.trace())),
        kind: "pagetide mrc",
        lead,
        sections: vec![
            PageSection::new("curve", "Curve", vec![lines(points).into()]),
            PageSection::new("sizes", "Sizes", blocks),
        ],
        foot: html! {
            p {
                "pagetide " (pagetide_lab::VERSION) ", seed " (curve.plan.scenario.seed)
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
    let of_variants: Vec<&[CurvePoint]> =
        points.chunk_by(|one, next| one.variant == next.variant).collect();
    let sizes = of_variants.first().copied().unwrap_or_default();
    let x: Vec<f64> = sizes.iter().map(|point| point.size as f64).collect();
    let mut curves: Vec<(&str, Vec<f64>)> = Vec::new();
    for points in &of_variants {
        curves.push((&points[0].variant, points.iter().map(|point| point.miss_ratio).collect()));
    }
    for (at, policy) in ReferencePolicy::ALL.into_iter().enumerate() {
        curves.push((policy.name(), sizes.iter().map(|point| point.ratios[at].pages).collect()));
    }
    let line = |(at, (name, ratios)): (usize, (&str, Vec<f64>))| {
        let percent = ratios.into_iter().map(|ratio| Some(ratio * 100.0)).collect();
        ChartLine::new(at, name, LineShape::LineAndPoints, percent)
    };
    let lines = curves.into_iter().enumerate().map(line).collect();
    let is_wide = x.len() > 1 && x[x.len() - 1] >= LOG_FROM * x[0];
    let axis = ChartAxis::new("size of the cache", Unit::Bytes);
    let panel = ChartPanel { name: String::new(), x, lines, marks: Vec::new() };
    ChartFigure {
        id: "curve-ratio".to_owned(),
        title: "References that miss".to_owned(),
        about: "Share of the references to pages that miss a cache of pages.".to_owned(),
        x: if is_wide { axis.log() } else { axis },
        y: ChartAxis::new("misses", Unit::Percent),
        over: None,
        choices: vec![ChartChoice { name: "misses".to_owned(), clip: None, panels: vec![panel] }],
    }
}

fn table(table: &RatioTable) -> PageBlock {
    html! {
        h3 { (table.title) }
        div.scroll tabindex="0" role="region" aria-label=(table.title) {
            table {
                thead {
                    tr {
                        th.number scope="col" { "size" }
                        @for name in &table.names { th.number scope="col" { (name) } }
                    }
                }
                tbody {
                    @for (size, cells) in &table.lines {
                        tr {
                            th scope="row" { (size) }
                            @for cell in cells { td.number { (cell) } }
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
    use pagetide_lab::mrc::ReferenceRatios;

    #[test]
    fn a_point_is_a_place_in_the_curve_of_its_variant() {
        let point = |variant: &str, pages: u64, misses: u64| CurvePoint {
            variant: variant.to_owned(),
            size: pages * 4096,
            pages,
            requests: 1000,
            references: 1000,
            misses,
            miss_ratio: misses as f64 / 1000.0,
            ratios: vec![ReferenceRatios { pages: 0.5, objects: None, bytes: None }; 4],
        };
        let points = [
            point("linux", 256, 900),
            point("linux", 4096, 125),
            point("b", 256, 800),
            point("b", 4096, 100),
        ];
        let curve = lines(&points);
        let panel = &curve.choices[0].panels[0];
        assert_eq!((panel.lines.len(), panel.x.len(), curve.x.log), (6, 2, true));
        assert_eq!((panel.lines[0].y[1], panel.lines[1].y[1]), (Some(12.5), Some(10.0)));
        assert_eq!(panel.lines[5].y, [Some(50.0); 2]);
        assert!(lines(&[]).choices[0].panels[0].x.is_empty());
        assert_eq!(name_of("/a/b.ptt"), "b.ptt");
    }
}
