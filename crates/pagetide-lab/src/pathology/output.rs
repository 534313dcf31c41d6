//! The result of a hunt: a text in two parts, or JSON.

use super::hunt::{Finding, Hunt, HuntReport, ScenarioDraw, ShrunkFind, SEEDS_OF_DRAW};
use crate::json::{pretty, Number};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The result of a hunt.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FuzzOutput<'a> {
    /// Name of the scenario.
    scenario: &'a str,
    /// Version of Pagetide.
    version: &'a str,
    /// The command line.
    command: &'a str,
    /// The objective with its metric and threshold.
    objective: String,
    /// The settings with which it must not show: KEY=VALUE.
    against: Vec<String>,
    /// Seed of the draws.
    seed: u64,
    /// Draws tried, up to the find.
    tried: usize,
    /// Draws that the scenario refuses.
    refused: usize,
    /// The find, if any.
    found: Option<FoundOutput<'a>>,
    /// The result in one line.
    result: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct FoundOutput<'a> {
    /// Number of the draw.
    draw: u64,
    /// Seed of its first run; the others have the next ones.
    seed: u64,
    drawn: ShownOutput<'a>,
    smallest: ShownOutput<'a>,
    /// Smaller scenarios that were tried.
    shrink_tried: usize,
    /// Whether no smaller one shows the objective; else shrinking was ended before.
    is_smallest: bool,
    /// The command that repeats the draw and its shrinking.
    repeat: &'a str,
    /// The smallest scenario.
    text: &'a str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ShownOutput<'a> {
    /// Knobs and their values. The others are as in the file.
    knobs: BTreeMap<&'a str, &'a str>,
    /// Tasks that are left out.
    without: &'a [String],
    /// Value of the objective with the first seed; per cent or seconds.
    value: Number,
    /// The same with the settings of `against`.
    against_value: Option<Number>,
    /// How many of the three seeds show it.
    seeds_shown: u64,
    /// Why a run failed, if one did; then there are no values.
    failure: Option<String>,
}

/// Texts that come with a hunt's report.
#[derive(Clone, Copy, Debug)]
pub struct HuntTexts<'a> {
    /// The command line.
    pub command: &'a str,
    /// The command that repeats the find.
    pub repeat: &'a str,
    /// The smallest scenario.
    pub smallest: &'a str,
}

pub fn json(
    hunt: &Hunt,
    report: &HuntReport,
    shrunk: Option<&ShrunkFind>,
    texts: HuntTexts<'_>,
) -> String {
    let found = report.found.as_ref().zip(shrunk).map(|((draw, finding), shrunk)| FoundOutput {
        draw: draw.number,
        seed: draw.seed,
        drawn: shown(hunt, draw, finding),
        smallest: shown(hunt, &shrunk.draw, &shrunk.finding),
        shrink_tried: shrunk.tried,
        is_smallest: shrunk.is_smallest,
        repeat: texts.repeat,
        text: texts.smallest,
    });
    pretty(&FuzzOutput {
        scenario: &hunt.scenario.name,
        version: crate::VERSION,
        command: texts.command,
        objective: hunt.objective.to_string(),
        against: settings(hunt),
        seed: hunt.seed,
        tried: report.tried,
        refused: report.refused,
        found,
        result: result(hunt, report, shrunk),
    })
}

fn shown<'a>(hunt: &'a Hunt, draw: &'a ScenarioDraw, finding: &Finding) -> ShownOutput<'a> {
    ShownOutput {
        knobs: hunt.turned(draw).collect(),
        without: &draw.without,
        value: Number(finding.value),
        against_value: finding.against.map(Number),
        seeds_shown: finding.seeds,
        failure: finding.failure.as_ref().map(ToString::to_string),
    }
}

fn settings(hunt: &Hunt) -> Vec<String> {
    hunt.against.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

fn told(hunt: &Hunt, finding: &Finding) -> String {
    if let Some(failure) = &finding.failure {
        return format!("a run fails: {failure}");
    }
    let other = finding.against.map(|value| {
        format!(" ({} with {})", hunt.objective.shown(value), settings(hunt).join(" "))
    });
    let (value, other) = (hunt.objective.shown(finding.value), other.unwrap_or_default());
    format!("{value}{other}, in {} of {SEEDS_OF_DRAW} seeds", finding.seeds)
}

/// One line, for scripts.
pub fn result(hunt: &Hunt, report: &HuntReport, shrunk: Option<&ShrunkFind>) -> String {
    let name = hunt.objective.kind.name();
    let refused = match report.refused {
        0 => String::new(),
        refused => format!(", {refused} of them refused"),
    };
    let Some((draw, drawn)) = &report.found else {
        return format!("Result: {name} not found in {} draws{refused}", report.tried);
    };
    let finding = shrunk.map_or(drawn, |shrunk| &shrunk.finding);
    format!(
        "Result: {} in draw {} ({} tried{refused}): {}",
        if finding.failure.is_some() { "a failed run" } else { name },
        draw.number,
        report.tried,
        told(hunt, finding)
    )
}

/// The find before it is shrunk, if there is one.
pub fn drawn(hunt: &Hunt, report: &HuntReport, repeat: &str) -> String {
    let mut out = format!("scenario   {}: {}\n", hunt.scenario.name, hunt.scenario.title);
    out += &format!("version    pagetide {}\nobjective  {}\n", crate::VERSION, hunt.objective);
    if !hunt.against.is_empty() {
        out += &format!("           and not with {}\n", settings(hunt).join(" "));
    }
    out += &format!("draws      {} knobs, seed {}\n", hunt.knobs.len(), hunt.seed);
    if let Some((draw, finding)) = &report.found {
        let found = told(hunt, finding);
        out += &format!("drawn      draw {}, seed {}: {found}\n", draw.number, draw.seed);
        out += &values(hunt, draw);
        out += &format!("repeat     {repeat}\n");
    }
    out + "\n"
}

/// The smallest scenario, and the result.
pub fn smallest(hunt: &Hunt, report: &HuntReport, shrunk: Option<&ShrunkFind>) -> String {
    let mut out = String::new();
    if let Some(ShrunkFind { draw, finding, tried, is_smallest }) = shrunk {
        out += &format!("smallest   {}\n{}", told(hunt, finding), values(hunt, draw));
        let end =
            if *is_smallest { "no smaller one shows it" } else { "ended before the smallest" };
        out += &format!("shrinking  {tried} scenarios tried, {end}\n\n");
    }
    out + &format!("{}\n", result(hunt, report, shrunk))
}

fn values(hunt: &Hunt, draw: &ScenarioDraw) -> String {
    let turned = hunt.turned(draw).map(|(path, value)| format!("           {path} = {value}\n"));
    let mut out: String = turned.collect();
    if !draw.without.is_empty() {
        out += &format!("           without the tasks {}\n", draw.without.join(", "));
    }
    out
}
