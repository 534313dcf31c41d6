//! The answer as JSON.
//!
//! `{"scenario", "version", "machine", "load", "knobs", "criterion", "wanted", "share", "verdict",
//! "points":[{"set", "shared", "fresh", "lower_bound", "confirmed", "failing", "prices", "worse"}],
//! "before", "before_measured", "looked_at", "values", "runs", "unfinished", "result"}`. `verdict`
//! is `threshold`, `everything`, `nothing` or `not-monotone`.

use super::answer::{wanted_word, AnswerKind, AnswerPoint, FindAnswer, MetricCost};
use super::question::Find;
use super::search::{SearchPlace, SeedCount};
use super::text;
use crate::stats::{MeanChange, Statistics};
use serde_json::{json, Value};

/// Renders the answer, indented. `command`: the command line.
pub fn render(find: &Find, answer: &FindAnswer, command: &str) -> String {
    let question = find.question();
    let knob = &question.knob;
    let looked_at: Vec<Value> = answer
        .looked_at
        .iter()
        .map(|(at, of)| {
            let measured = measured(find, SearchPlace::At(*at));
            json!({ "set": set(find, *at), "seeds": count(*of), "measured": measured })
        })
        .collect();
    let document = json!({
        "scenario": question.scenario.name,
        "version": crate::VERSION,
        "command": command,
        "machine": answer.machine,
        "load": answer.load,
        "knobs": [{ "path": knob.path, "values": knob.how, "now": answer.now }],
        "criterion": question.criterion.to_string(),
        "wanted": wanted_word(question.wanted),
        "share": question.share,
        "verdict": verdict(answer.kind),
        "points": answer.point.iter().map(|it| point(find, it)).collect::<Vec<Value>>(),
        "before": count(answer.before),
        "before_measured": measured(find, SearchPlace::Before),
        "looked_at": looked_at,
        "values": answer.nr_values,
        "runs": answer.nr_runs,
        "unfinished": answer.nr_unfinished,
        "result": text::result(find, answer),
    });
    let mut text = serde_json::to_string_pretty(&document).expect("a value always serialises");
    text.push('\n');
    text
}

const fn verdict(kind: AnswerKind) -> &'static str {
    match kind {
        AnswerKind::Threshold => "threshold",
        AnswerKind::Everything => "everything",
        AnswerKind::Nothing => "nothing",
        AnswerKind::NotMonotone => "not-monotone",
    }
}

fn point(find: &Find, point: &AnswerPoint) -> Value {
    let costs = |costs: &[MetricCost]| costs.iter().map(cost).collect::<Vec<Value>>();
    let failing =
        point.failing.map(|(at, of)| json!({ "value": find.value(at), "seeds": count(of) }));
    json!({
        "set": set(find, point.place),
        "shared": count(point.shared),
        "fresh": count(point.fresh),
        "lower_bound": point.bound,
        "confirmed": point.is_confirmed,
        "failing": failing,
        "prices": costs(&point.prices),
        "worse": costs(&point.worse),
    })
}

fn cost(cost: &MetricCost) -> Value {
    let side = |summary: &Statistics| json!({ "mean": summary.mean, "stddev": summary.stddev });
    let percent = match cost.change {
        MeanChange::Percent(percent) => Some(percent),
        MeanChange::New | MeanChange::Unknown => None,
    };
    json!({
        "metric": cost.metric,
        "unit": cost.unit,
        "before": side(&cost.before),
        "after": side(&cost.after),
        "change_percent": percent,
        "differs": cost.differs,
        "ended": { "before": cost.ended[0], "after": cost.ended[1] },
    })
}

/// Mean, deviation and unit of each metric of the criterion at a place.
fn measured(find: &Find, place: SearchPlace) -> Value {
    let of = |metric: &&String| {
        let (unit, it) = find.measured(place, metric)?;
        Some(((*metric).clone(), json!({ "mean": it.mean, "stddev": it.stddev, "unit": unit })))
    };
    Value::Object(find.measured_metrics().iter().filter_map(of).collect())
}

fn set(find: &Find, at: usize) -> Value {
    json!({ (find.question().knob.path.as_str()): find.value(at) })
}

fn count(count: SeedCount) -> Value {
    json!({ "held": count.held, "of": count.of })
}
