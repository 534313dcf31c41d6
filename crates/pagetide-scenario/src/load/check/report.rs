//! `[report]` and `[reference]`: the scenario must have the metrics of the keys, and the variants
//! must exist.

use crate::load::raw;
use crate::load::span::{clip, list_names, At, Problem, Sink};
use crate::metric::Names;
use crate::model::{Reference, Setup, Task};
use std::collections::{BTreeMap, BTreeSet};

/// The first parts that a metric's key can have here: tasks, their common names, groups.
fn owners(setup: &Setup) -> BTreeSet<&str> {
    let tasks = setup.tasks.iter().map(|task| task.name.as_str());
    let groups = setup.groups.iter().map(|group| group.name.as_str());
    let common = tasks.clone().chain(groups.clone());
    let common = common.filter_map(|name| name.split_once('.').map(|(name, _)| name));
    // The machine's own highest levels are called `peak.NAME`.
    tasks.chain(common).chain(groups).chain(["peak"]).collect()
}

/// The task over whose life the machine's counters are counted.
pub(super) fn measure(raw: &raw::Scenario, tasks: &[Task], sink: &mut Sink) -> Option<usize> {
    let measure = raw.report.as_ref()?.measure.as_ref()?;
    let found = tasks.iter().position(|task| task.name == measure.value);
    if found.is_none() && !tasks.is_empty() {
        let names = tasks.iter().map(|task| task.name.as_str());
        let hint = match sink.suggest(&measure.value, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there is {}", list_names(names)),
        };
        sink.hinted(measure.span, format!("there is no task `{}`", clip(&measure.value)), hint);
    }
    found
}

/// The rows of the table.
pub(super) fn rows(raw: &raw::Scenario, setup: &Setup, sink: &mut Sink) -> Vec<String> {
    let rows = raw.report.as_ref().and_then(|report| report.rows.as_deref()).unwrap_or_default();
    let (owners, names) = (owners(setup), Names::of(setup));
    let mut seen: BTreeMap<&str, &At<String>> = BTreeMap::new();
    for row in rows {
        check_key(row, &owners, &names, sink);
        if let Some(first) = seen.insert(&row.value, row) {
            sink.push(Problem {
                span: row.span,
                message: format!("the row `{}` is there twice", clip(&row.value)),
                hint: Some("keep one of them".into()),
                also: Some((first.span, "first here".into())),
            });
        }
    }
    rows.iter().map(|row| as_recorded(&row.value, &names)).collect()
}

/// The published figures.
pub(super) fn reference(
    raw: &raw::Scenario,
    setup: &Setup,
    variants: &[&str],
    sink: &mut Sink,
) -> Option<Reference> {
    let reference = raw.reference.as_ref()?;
    if reference.source.is_none() && !reference.bad_source {
        let hint = "add source = \"where the figures were published\"";
        sink.hinted(reference.at, "the reference has no `source`", hint);
    }
    let (owners, names) = (owners(setup), Names::of(setup));
    let mut values = BTreeMap::new();
    for (variant, figures) in &reference.variants {
        if !variants.contains(&variant.value.as_str()) {
            let hint = match sink.suggest(&variant.value, variants.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there is {}", list_names(variants.iter().copied())),
            };
            let message = format!("there is no variant `{}`", clip(&variant.value));
            sink.hinted(variant.span, message, hint);
        }
        let mut of_variant = BTreeMap::new();
        for figure in figures {
            check_key(&figure.key, &owners, &names, sink);
            of_variant.insert(as_recorded(&figure.key.value, &names), figure.value);
        }
        values.insert(variant.value.clone(), of_variant);
    }
    let source = reference.source.as_ref().map_or(String::new(), |source| source.value.clone());
    Some(Reference { source, values })
}

/// The text that records have for a key that may be written in full.
fn as_recorded(key: &str, names: &Names) -> String {
    match names.read(key) {
        Some(read) if key.contains(':') => names.text(&read),
        _ => key.to_owned(),
    }
}

/// A key is `NAME` for the machine, `TASK.NAME`, `TASK.PHASE.NAME`, `GROUP.NAME` or
/// `TASK.PHASE.GROUP.NAME`, or written in full. Of a name nobody declared, the owner must be there.
fn check_key(key: &At<String>, owners: &BTreeSet<&str>, names: &Names, sink: &mut Sink) {
    if key.value.contains(':') && names.read(&key.value).is_some() {
        return;
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let parts: Vec<&str> = key.value.split('.').collect();
    let is_sound = parts.iter().all(|part| !part.is_empty() && part.chars().all(is_plain));
    if !is_sound || parts.len() > 6 {
        let hint = "keys are NAME, TASK.NAME, TASK.PHASE.NAME, GROUP.NAME or TASK.PHASE.GROUP.NAME";
        sink.hinted(key.span, format!("`{}` is no metric", clip(&key.value)), hint);
        return;
    }
    let owner = parts[0];
    if parts.len() == 1 || owners.contains(owner) {
        return;
    }
    let hint = match sink.suggest(owner, owners.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there is {}", list_names(owners.iter().copied())),
    };
    let message = format!("no task or group is called `{}`", clip(owner));
    sink.hinted(key.span, message, hint);
}
