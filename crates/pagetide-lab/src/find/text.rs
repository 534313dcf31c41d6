//! The answer as text. One line starts with `Result: `, for scripts.

use super::answer::{
    load, wanted_word, AnswerKind, AnswerPoint, FindAnswer, MetricCost, CONFIDENCE,
};
use super::question::Find;
use super::search::{SearchPlace, SeedCount};
use crate::dagger;
use crate::format::{counted, Scale};
use crate::heading::{self, wrap};
use crate::report::Report;
use crate::stats::MeanChange;
use crate::table;
use pagetide_scenario::record::Unit;
use std::fmt::Write;

const WIDTH: usize = 100;
const LABEL: usize = 11;

/// Renders the question, the evidence, the costs and the result.
pub fn render(find: &Find, answer: &FindAnswer) -> String {
    let mut out = heading(find);
    out.push('\n');
    out += &evidence(find, answer.point.as_ref());
    if let Some(point) = &answer.point {
        out += &costs(find, point);
    }
    let remarks = remarks(find, answer);
    if !remarks.is_empty() {
        push(&mut out, "");
    }
    for line in remarks {
        for line in wrap(&line, WIDTH) {
            push(&mut out, &line);
        }
    }
    push(&mut out, "");
    push(&mut out, &result(find, answer));
    out
}

fn push(out: &mut String, line: &str) {
    writeln!(out, "{line}").expect("writing to a string");
}

fn heading(find: &Find) -> String {
    let mut out = String::new();
    for (label, text) in entries(find) {
        let mut label = label;
        for line in wrap(&text, WIDTH - LABEL) {
            push(&mut out, &format!("{label:<LABEL$}{line}"));
            label = "";
        }
    }
    out
}

/// The question: pairs of label and text.
pub fn entries(find: &Find) -> Vec<(&'static str, String)> {
    let question = find.question();
    let scenario = &question.scenario;
    let asked = format!(
        "the {} {} ({}) with {} in {} of the seeds",
        wanted_word(question.wanted),
        question.knob.path,
        question.knob.how,
        question.criterion,
        percent(question.share)
    );
    let name = match scenario.title == scenario.name || scenario.title.is_empty() {
        true => scenario.name.clone(),
        false => format!("{}: {}", scenario.name, scenario.title),
    };
    let (shared, fresh) = (find.search().shared(), find.search().fresh());
    let last = find.search().last_seed().max(*fresh.end());
    let each = match last == *fresh.end() {
        true => String::new(),
        false => format!(" ({} per value tried)", find.search().task().seeds),
    };
    let seeds = format!(
        "{} for every value; fresh {} to confirm{each}",
        from_to(*shared.start(), *shared.end()),
        from_to(*fresh.start(), last),
    );
    vec![
        ("scenario", name),
        ("version", format!("pagetide {}", crate::VERSION)),
        ("machine", heading::machine(&scenario.variants[0].setup.machine)),
        ("load", load(&scenario.variants[0].setup)),
        ("asked", asked),
        ("seeds", seeds),
    ]
}

/// `1 to 5`, or the only one.
fn from_to(first: u64, last: u64) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first} to {last}")
    }
}

/// The question and the evidence of a stopped search.
pub fn tried(find: &Find) -> String {
    match find.nr_runs() {
        0 => String::new(),
        _ => format!("{}\n{}", heading(find), evidence(find, None)),
    }
}

/// One line per value tried: the seeds in which the criterion holds, and the mean of each metric
/// of the criterion. `point` is marked.
fn evidence(find: &Find, point: Option<&AnswerPoint>) -> String {
    let before = Some(find.count(SearchPlace::Before)).filter(|count| count.of > 0);
    let before = before.map(|of| (SearchPlace::Before, of));
    let tried = find.search().tried().into_iter().map(|(at, of)| (SearchPlace::At(at), of));
    let places: Vec<(SearchPlace, SeedCount)> = before.into_iter().chain(tried).collect();
    let metrics = find.measured_metrics();
    let measured: Vec<Vec<String>> =
        metrics.iter().map(|metric| column(find, metric, &places)).collect();
    let mut lines: Vec<Vec<String>> = vec![vec!["value".into(), "seeds in which it holds".into()]];
    lines.extend(places.iter().map(|(place, of)| vec![value(find, *place), count(*of)]));
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        let wide = |column: usize| lines.iter().map(|it| it[column].chars().count()).max();
        let width = wide(0).unwrap_or(0);
        let mut text = format!("{:>width$}  {}", line[0], line[1]);
        if !measured.is_empty() {
            let width = width + 2 + wide(1).unwrap_or(0);
            text = format!("{text:<width$}");
        }
        for column in &measured {
            let width = column.iter().map(|it| it.chars().count()).max().unwrap_or(0);
            text += &format!("   {:>width$}", column[at]);
        }
        let is_answer = |point: &AnswerPoint| places[at - 1].0 == SearchPlace::At(point.place);
        let mark = if at > 0 && point.is_some_and(is_answer) { "  <--" } else { "" };
        push(&mut out, &format!("{}{mark}", text.trim_end()));
    }
    out
}

/// `before`, or the value of the knob.
fn value(find: &Find, place: SearchPlace) -> String {
    match place {
        SearchPlace::Before => "before".to_owned(),
        SearchPlace::At(at) => find.value(at).to_owned(),
    }
}

/// The heading and the means of a metric at these places; `-` without a measurement.
fn column(find: &Find, metric: &str, places: &[(SearchPlace, SeedCount)]) -> Vec<String> {
    let found: Vec<_> = places.iter().map(|(place, _)| find.measured(*place, metric)).collect();
    let means: Vec<(f64, f64)> = found.iter().flatten().map(|(_, it)| (it.mean, 0.0)).collect();
    let unit = found.iter().flatten().next().map_or(Unit::Count, |(unit, _)| *unit);
    let scale = Scale::new(unit, &means);
    let cells = found.iter().map(|it| match it {
        // A count has the decimals that it needs, whatever the others have.
        Some((Unit::Count | Unit::Pages, it)) => {
            Scale::new(unit, &[(it.mean, 0.0)]).print(it.mean, 0.0).0
        }
        Some((_, it)) => scale.print(it.mean, 0.0).0,
        None => "-".to_owned(),
    });
    std::iter::once(format!("{metric} {}", scale.symbol).trim_end().to_owned())
        .chain(cells)
        .collect()
}

/// The unchanged scenario beside a point, with the costs as rows.
pub fn costs_report(find: &Find, point: &AnswerPoint) -> Option<Report> {
    let mut report = find.side_by_side(point.place)?;
    let keys = point.prices.iter().chain(&point.worse).map(|cost| cost.metric.clone());
    report.plan.scenario.rows = keys.collect();
    report.plan.scenario.reference = None;
    report.notes.clear();
    Some(report)
}

/// Printed if nothing got worse.
pub const NO_COSTS: &str = "No reported metric got significantly worse.";

fn costs(find: &Find, point: &AnswerPoint) -> String {
    let Some(report) = costs_report(find, point) else { return String::new() };
    let mut out = String::from("\n");
    if report.plan.scenario.rows.is_empty() {
        push(&mut out, NO_COSTS);
    } else {
        let price = if point.prices.is_empty() { "" } else { "--price metrics, and " };
        push(&mut out, &format!("Costs ({price}rows that got significantly worse):"));
        out += &table::body(&report);
    }
    out
}

pub fn remarks(find: &Find, answer: &FindAnswer) -> Vec<String> {
    let mut lines = Vec::new();
    let question = find.question();
    if answer.kind == AnswerKind::NotMonotone {
        lines.push(format!(
            "The criterion is not monotone: along {} it holds, fails and holds again (see the list above). \
             So there is no threshold. A narrower range may have one.",
            question.knob.path
        ));
    }
    if let Some(point) = &answer.point {
        if let Some((at, of)) = point.failing {
            let (value, count) = (find.value(at), count(of));
            lines.push(format!("The next value, {value}, does not meet it: {count}."));
        }
        // Runs that are incomplete as the unchanged ones are may meet the criterion.
        for ((metric, why), number) in find.incomplete_at(SearchPlace::At(point.place)) {
            let value = find.value(point.place);
            lines.push(format!(
                "With {value}, {metric} is incomplete ({why}) in {number} of {} runs, as in the \
                 unchanged scenario with the same seed.",
                point.shared.of + point.fresh.of
            ));
        }
        if !point.is_confirmed {
            lines.push(format!(
                "Fresh seeds do not confirm it: {}. Do not deploy it. Take a value further from the \
                 threshold, or more --seeds.",
                count(point.fresh)
            ));
        }
    }
    if find.search().is_met(answer.before) {
        lines.push(format!(
            "The unchanged scenario already meets the criterion: {}.",
            count(answer.before)
        ));
    }
    if answer.nr_unfinished > 0 {
        lines.push(format!(
            "{} of {} runs do not meet the criterion because a task was killed, the run was cut, or a \
             metric is missing.",
            answer.nr_unfinished, answer.nr_runs
        ));
    }
    for (message, number) in &answer.failures {
        let message = message.lines().next().unwrap_or_default();
        lines.push(format!("{number} runs failed and do not meet the criterion: {message}"));
    }
    lines
}

/// The `Result: ` line.
pub fn result(find: &Find, answer: &FindAnswer) -> String {
    let question = find.question();
    let criterion = &question.criterion;
    let share = percent(question.share);
    let effort = format!("{} values, {} runs", answer.nr_values, answer.nr_runs);
    let knob = &question.knob;
    let (first, last) = (&knob.values[0].text, &knob.values[knob.values.len() - 1].text);
    match &answer.point {
        None => {
            let most = || answer.looked_at.iter().max_by_key(|(_, count)| count.held);
            let best = answer.best.or_else(|| most().copied());
            // No value is nearest if none ever meets the criterion.
            let nearest = best.map_or(String::new(), |(at, of)| match of.held {
                0 => format!("; it holds in no seed of any value{}", spans(find)),
                _ => format!("; the nearest is {}: {}", find.setting(at), count(of)),
            });
            let path = &knob.path;
            format!(
                "Result: no value of {path} from {first} to {last} was found that meets {criterion} in {share} of \
                 the seeds{nearest}; {effort}"
            )
        }
        Some(point) => {
            let mut text = format!("Result: {}", find.setting(point.place));
            if let Some(now) = &answer.now {
                write!(text, " (now {now})").expect("writing to a string");
            }
            write!(
                text,
                ": {criterion} in {} (at least {:.0} % of all seeds, {:.0} % confidence",
                fresh(point.fresh),
                (point.bound * 100.0).floor(),
                CONFIDENCE * 100.0
            )
            .expect("writing to a string");
            if let Some((at, of)) = point.failing {
                let value = find.value(at);
                write!(text, "; {} of {} at {value}", of.held, of.of).expect("writing to a string");
            }
            text.push(')');
            if !point.is_confirmed {
                text.push_str(", NOT CONFIRMED");
            }
            match answer.kind {
                AnswerKind::Everything => text += "; every value tried meets it",
                AnswerKind::NotMonotone => text += "; NOT MONOTONE, others beyond it fail",
                _ => {}
            }
            for cost in &point.prices {
                write!(text, "; {}", cost_words(cost)).expect("writing to a string");
            }
            format!("{text}{}; {effort}", incomplete(find, point))
        }
    }
}

/// `; BUT in 6 of 6 runs with it work is incomplete (killed by the OOM killer)`, also of tasks that
/// are in no criterion.
fn incomplete(find: &Find, point: &AnswerPoint) -> String {
    let (ended, all) = find.incomplete_runs(SearchPlace::At(point.place));
    let parts = ended.into_iter().map(|(ended, runs)| {
        let why = dagger::reason(ended);
        format!("; BUT in {runs} of {all} runs with it work is incomplete ({why})")
    });
    parts.collect()
}

/// `, with web.latency_p99 from 16.10 to 60.20 ms`: the means of the metrics at the values tried.
fn spans(find: &Find) -> String {
    let tried = find.search().tried();
    let of = |metric: &&String| {
        let places = tried.iter().map(|(at, _)| SearchPlace::At(*at));
        let found: Vec<_> = places.filter_map(|place| find.measured(place, metric)).collect();
        let (unit, _) = *found.first()?;
        let means = || found.iter().map(|(_, it)| it.mean);
        let (low, high) = (means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max));
        let scale = Scale::new(unit, &[(low, 0.0), (high, 0.0)]);
        let [low, high] = [low, high].map(|mean| scale.print(mean, 0.0).0);
        Some(format!("{metric} from {low} to {high} {}", scale.symbol).trim_end().to_owned())
    };
    let spans: Vec<String> = find.measured_metrics().iter().filter_map(of).collect();
    if spans.is_empty() {
        String::new()
    } else {
        format!(", with {}", spans.join(" and "))
    }
}

/// A share with its decimals.
pub fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}

fn count(count: SeedCount) -> String {
    format!("{} of {}", count.held, counted(count.of as usize, "seed"))
}

fn fresh(count: SeedCount) -> String {
    format!("{} of {}", count.held, counted(count.of as usize, "fresh seed"))
}

/// Comment lines about the origin of a file. `command`: the command line.
pub fn provenance(find: &Find, answer: &FindAnswer, command: Option<String>) -> Vec<String> {
    let found = format!(
        "found by pagetide {} in a simulation; test it before you deploy it widely",
        crate::VERSION
    );
    let machine = format!("machine: {}", answer.machine);
    let about = [result(find, answer), machine, format!("load: {}", answer.load)];
    [found].into_iter().chain(command).chain(about).collect()
}

/// `reader.walltime +7.3 %`.
fn cost_words(cost: &MetricCost) -> String {
    let metric = &cost.metric;
    // One seed has no spread.
    let noise = match cost.differs {
        true => "",
        false if cost.before.n < 2 || cost.after.n < 2 => " (one seed: significance unknown)",
        false => " (not significant)",
    };
    if let [Some(ended), _] | [None, Some(ended)] = cost.ended {
        return format!("{metric} not compared ({} in some runs)", ended.word());
    }
    match cost.change {
        MeanChange::Percent(percent) => format!("{metric} {percent:+.1} %{noise}"),
        MeanChange::New => {
            let scale = Scale::new(cost.unit, &[(cost.after.mean, 0.0)]);
            let (value, _) = scale.print(cost.after.mean, 0.0);
            let unit =
                if scale.symbol.is_empty() { String::new() } else { format!(" {}", scale.symbol) };
            format!("{metric} 0 to {value}{unit}{noise}")
        }
        MeanChange::Unknown => format!("{metric} unknown"),
    }
}
