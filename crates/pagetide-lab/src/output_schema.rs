//! JSON Schemas of the output of `--format json`.
//!
//! Invariant: the output of a command is valid by its schema, and has no key that is not in it
//! (`tests/cli/schema.rs` of pagetide).

use crate::mrc::ReferencePolicy;
use pagetide_scenario::metric::ScopeKind;
use serde_json::{json, Value};

/// A command whose output has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// `pagetide run`.
    Run,
    /// `pagetide mrc`.
    Mrc,
    /// `pagetide metrics`.
    Metrics,
    /// `pagetide explain`.
    Explain,
}

pub fn schema(output: OutputKind) -> Value {
    let (title, mut schema) = match output {
        OutputKind::Run => ("pagetide run --format json", run()),
        OutputKind::Mrc => ("pagetide mrc --format json", mrc()),
        OutputKind::Metrics => ("pagetide metrics --format json", metrics()),
        OutputKind::Explain => ("pagetide explain --format json", explain()),
    };
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = title.into();
    schema
}

/// An object with exactly these keys; those in `optional` may be missing.
fn object(properties: Value, optional: &[&str]) -> Value {
    let keys = properties.as_object().map(|keys| keys.keys().cloned().collect::<Vec<String>>());
    let required: Vec<String> = keys
        .unwrap_or_default()
        .into_iter()
        .filter(|key| !optional.contains(&key.as_str()))
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn units() -> Value {
    json!([
        "count",
        "pages",
        "bytes",
        "kilobytes",
        "seconds",
        "bytes-per-second",
        "per-second",
        "percent",
        "ratio"
    ])
}

fn run() -> Value {
    let number = |about: &str| json!({ "type": ["number", "null"], "description": about });
    let metric = object(
        json!({
            "mean": number("Mean of the samples of complete work; null without any."),
            "stddev": number("Sample standard deviation of these samples; 0 for a single one."),
            "unit": { "enum": units() },
            "samples": {
                "type": "array",
                "items": { "type": ["number", "null"] },
                "description": "In seed order; a failed run has none.",
            },
            "ended": {
                "type": "array",
                "items": {
                    "enum": [
                        null,
                        "oom-killed",
                        "refused",
                        "io-error",
                        "cut",
                        "stopped",
                        "incomplete-run",
                    ],
                },
                "description": "One entry per sample: why its work ended early, or null. Missing if all work is \
                                complete.",
            },
        }),
        &["ended"],
    );
    let variant = object(
        json!({
            "name": { "type": "string" },
            "costs_ns": {
                "type": "object",
                "additionalProperties": { "type": "integer" },
                "description": "Costs of operations that the scenario states. Missing if it states none; \
                                the run then used the sourced table.",
            },
            "metrics": { "type": "object", "additionalProperties": metric },
        }),
        &["costs_ns"],
    );
    object(
        json!({
            "scenario": { "type": "string" },
            "version": { "type": "string" },
            "seed": { "type": "integer", "description": "Seed of the first run of each variant." },
            "repeats": { "type": "integer" },
            "variants": { "type": "array", "items": variant },
            "notes": { "type": "array", "items": { "type": "string" } },
            "verdict": { "type": "array", "items": verdict() },
            "expectations": { "type": "array", "items": expectation() },
        }),
        &["expectations"],
    )
}

/// An expectation of the scenario.
fn expectation() -> Value {
    let variant = object(
        json!({
            "variant": { "type": "string" },
            "runs": { "type": "integer" },
            "failed": {
                "type": "array",
                "items": { "type": "integer" },
                "description": "Seeds of the runs that do not meet it.",
            },
        }),
        &[],
    );
    object(
        json!({
            "text": { "type": "string" },
            "that": { "type": "string" },
            "holds": { "type": "boolean", "description": "Whether it holds in every run of its variants." },
            "variants": { "type": "array", "items": variant },
        }),
        &[],
    )
}

/// The verdict on a variant.
fn verdict() -> Value {
    let texts = || json!({ "type": "array", "items": { "type": "string" } });
    let difference = object(
        json!({
            "metric": { "type": "string" },
            "unit": { "enum": units() },
            "before": { "type": "number", "description": "Mean of the first variant." },
            "after": { "type": "number", "description": "Mean of this one." },
            "change_percent": {
                "type": ["number", "null"],
                "description": "Change of the means; null if the first is zero.",
            },
            "interval": {
                "type": ["array", "null"],
                "items": { "type": "number" },
                "description": "95 % confidence interval of the difference of the means; null for a single run.",
            },
            "p": {
                "type": ["number", "null"],
                "description": "Welch's t-test with Holm's correction for all comparisons; null for a single run.",
            },
        }),
        &[],
    );
    let differences =
        |about: &str| json!({ "type": "array", "items": difference, "description": about });
    object(
        json!({
            "variant": { "type": "string" },
            "ended": texts(),
            "gains": differences("Metrics that are better, the most important first."),
            "costs": differences("Metrics that are worse; growing machine work last."),
            "less_work": differences("Machine work that shrank."),
            "comparisons": { "type": "integer", "description": "Number of comparisons that p is corrected for." },
            "sentence": { "type": "string" },
        }),
        &[],
    )
}

fn mrc() -> Value {
    let whole = || json!({ "type": "integer" });
    let ratio = || json!({ "type": "number" });
    let mut point = json!({
        "variant": { "type": "string" },
        "size": whole(),
        "pages": whole(),
        "requests": whole(),
        "references": whole(),
        "misses": whole(),
        "miss_ratio": ratio(),
    });
    for key in ReferencePolicy::ALL.map(ReferencePolicy::key) {
        let null_or = || json!({ "type": ["number", "null"] });
        point[format!("{key}_miss_ratio")] = ratio();
        point[format!("{key}_object_miss_ratio")] = null_or();
        point[format!("{key}_byte_miss_ratio")] = null_or();
    }
    let point = object(point, &[]);
    object(
        json!({
            "trace": { "type": "string" },
            "version": { "type": "string" },
            "seed": whole(),
            "points": { "type": "array", "items": point },
        }),
        &[],
    )
}

fn metrics() -> Value {
    let kinds = ScopeKind::ALL.map(ScopeKind::word);
    let metric = object(
        json!({
            "name": { "type": "string" },
            "unit": { "enum": units() },
            "of": { "type": "array", "items": { "enum": kinds } },
            "source": { "type": "string" },
            "about": { "type": "string" },
        }),
        &[],
    );
    json!({ "type": "array", "items": metric })
}

fn explain() -> Value {
    let text = || json!({ "type": "string" });
    let named = || {
        let one = object(json!({ "name": text(), "about": text() }), &[]);
        json!({ "type": "array", "items": one })
    };
    let topic = object(
        json!({
            "name": text(),
            "kind": {
                "enum": [
                    "metric", "sysctl", "group-file", "cache-file", "policy", "key", "workload",
                    "linux-function",
                    "not-modelled",
                ],
            },
            "about": text(),
            "unit": text(),
            "better": text(),
            "of": { "type": "array", "items": text() },
            "takes": text(),
            "default": text(),
            "since": text(),
            "linux": text(),
            "functions": named(),
            "instead": text(),
            "set": text(),
            "choices": named(),
            "document": text(),
        }),
        &[
            "unit",
            "better",
            "of",
            "takes",
            "default",
            "since",
            "linux",
            "functions",
            "instead",
            "set",
            "choices",
        ],
    );
    json!({ "type": "array", "items": topic })
}
