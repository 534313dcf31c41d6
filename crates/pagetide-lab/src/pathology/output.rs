//! The result of a hunt: a table to read, or JSON.

use super::hunt::{Finding, Hunt, HuntFind, HuntReport};
use crate::json::{pretty, Number};
use schemars::JsonSchema;
use serde::Serialize;

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
    tried: u64,
    /// Draws that the scenario refuses.
    refused: u64,
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
    /// Seed of its run.
    seed: u64,
    /// Value of the objective in the draw; per cent or seconds.
    value: Number,
    /// The same in the smallest scenario.
    smallest_value: Number,
    /// The same there, with the settings of `against`.
    against_value: Option<Number>,
    /// Why the run failed, if it did; then there are no values.
    failure: Option<String>,
    knobs: Vec<TurnedOutput<'a>>,
    /// Tasks that the smallest scenario lacks.
    without: &'a [String],
    /// The command that repeats the draw and its shrinking.
    repeat: &'a str,
    /// The smallest scenario.
    smallest: &'a str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct TurnedOutput<'a> {
    /// Path of the knob.
    path: &'a str,
    /// Value in the draw.
    drawn: Option<&'a str>,
    /// Value in the smallest scenario; absent: the file has it.
    smallest: Option<&'a str>,
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

pub fn json(hunt: &Hunt, report: &HuntReport, texts: HuntTexts<'_>) -> String {
    let found = report.found.as_ref().map(|HuntFind { drawn, smallest }| FoundOutput {
        draw: drawn.0.number,
        seed: drawn.0.seed,
        value: Number(drawn.1.value),
        smallest_value: Number(smallest.1.value),
        against_value: smallest.1.against.map(Number),
        failure: smallest.1.failure.as_ref().map(ToString::to_string),
        knobs: (0..hunt.knobs.len())
            .map(|knob| TurnedOutput {
                path: &hunt.knobs[knob].path,
                drawn: hunt.value(&drawn.0, knob),
                smallest: hunt.value(&smallest.0, knob),
            })
            .collect(),
        without: &smallest.0.without,
        repeat: texts.repeat,
        smallest: texts.smallest,
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
        result: result(hunt, report),
    })
}

fn settings(hunt: &Hunt) -> Vec<String> {
    hunt.against.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

fn told(hunt: &Hunt, finding: &Finding) -> String {
    if let Some(failure) = &finding.failure {
        return format!("the run fails: {failure}");
    }
    let other = finding.against.map(|value| {
        format!(" ({} with {})", hunt.objective.shown(value), settings(hunt).join(" "))
    });
    format!("{}{}", hunt.objective.shown(finding.value), other.unwrap_or_default())
}

/// One line, for scripts.
pub fn result(hunt: &Hunt, report: &HuntReport) -> String {
    let name = hunt.objective.kind.name();
    let refused = match report.refused {
        0 => String::new(),
        refused => format!(", {refused} of them refused"),
    };
    match &report.found {
        None => format!("Result: {name} not found in {} draws{refused}", report.tried),
        Some(HuntFind { smallest: (draw, finding), .. }) => format!(
            "Result: {} in draw {} ({} tried{refused}): {}",
            if finding.failure.is_some() { "a failed run" } else { name },
            draw.number,
            report.tried,
            told(hunt, finding)
        ),
    }
}

pub fn table(hunt: &Hunt, report: &HuntReport, repeat: &str) -> String {
    let mut out = format!("scenario   {}: {}\n", hunt.scenario.name, hunt.scenario.title);
    out += &format!("version    pagetide {}\nobjective  {}\n", crate::VERSION, hunt.objective);
    if !hunt.against.is_empty() {
        out += &format!("           and not with {}\n", settings(hunt).join(" "));
    }
    out += &format!("draws      {} knobs, seed {}\n", hunt.knobs.len(), hunt.seed);
    if let Some(HuntFind { drawn, smallest }) = &report.found {
        out += &format!(
            "drawn      {}\nsmallest   {}\n\n",
            told(hunt, &drawn.1),
            told(hunt, &smallest.1)
        );
        let value = |draw, knob| hunt.value(draw, knob).unwrap_or("-").to_owned();
        let mut rows = vec![["knob".to_owned(), "drawn".to_owned(), "smallest".to_owned()]];
        rows.extend((0..hunt.knobs.len()).map(|knob| {
            [hunt.knobs[knob].path.clone(), value(&drawn.0, knob), value(&smallest.0, knob)]
        }));
        let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2)];
        for [knob, drawn, smallest] in &rows {
            let [a, b, c] = widths;
            out += &format!("{knob:<a$}  {drawn:>b$}  {smallest:>c$}\n");
        }
        out += "-: the value of the file\n";
        if !smallest.0.without.is_empty() {
            out += &format!("without the tasks {}\n", smallest.0.without.join(", "));
        }
        out += &format!("\nrepeat     {repeat}\n");
    }
    out + &format!("\n{}\n", result(hunt, report))
}
