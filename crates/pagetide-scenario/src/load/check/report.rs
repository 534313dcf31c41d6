//! Checks `[report]` and `[reference]`: the metrics of the keys and the variants must exist. In
//! rows, `*` stands for any characters.

use crate::load::raw;
use crate::load::span::{clip, list_names, ProblemSink, Spanned, SpannedProblem};
use crate::metric::catalogue::{self, MetricEntry};
use crate::metric::criterion::Criterion;
use crate::metric::declared::{
    asks_for_pathology, file_prefix, requested_by, slabinfo_names, ON_REQUEST, WALLTIME,
};
use crate::metric::{KeyNames, MetricKey, Owner, Scope, ScopeKind};
use crate::model::kernel_objects::reported_caches;
use crate::model::{PageSize, Reference, Setup, Task};
use crate::names::near::matches;
use std::collections::{BTreeMap, BTreeSet};

/// The group metrics that are recorded on request only and that a row or an expectation names.
pub(super) fn requested_group_metrics(raw: &raw::ScenarioTable) -> Vec<&'static str> {
    let asked: BTreeSet<&str> =
        named_metrics(raw).flat_map(|key| requested_by(&key).collect::<Vec<_>>()).collect();
    ON_REQUEST.iter().map(|metric| metric.name).filter(|name| asked.contains(name)).collect()
}

/// The metrics of rows and expectations, as written.
fn named_metrics(raw: &raw::ScenarioTable) -> impl Iterator<Item = String> + '_ {
    let rows = raw.report.iter().flat_map(|report| report.rows.iter().flatten());
    let rows = rows.map(|row| row.value.clone());
    // An invalid criterion is reported elsewhere; the page size does not affect its metrics.
    let expected = raw.expect.iter().flatten().filter_map(|expect| expect.that.as_ref());
    let criteria =
        expected.filter_map(|that| Criterion::parse(&that.value, PageSize::default()).ok());
    let metrics = criteria.flat_map(|criterion| criterion.metrics().cloned().collect::<Vec<_>>());
    rows.chain(metrics)
}

/// Whether a row or an expectation names a metric of pathologies.
pub(super) fn measures_pathologies(raw: &raw::ScenarioTable) -> bool {
    named_metrics(raw).any(|key| asks_for_pathology(&key))
}

/// The valid keys of a report.
pub(super) struct ReportKeys {
    pub(super) names: KeyNames,
    pub(super) metrics: Vec<MetricEntry>,
    /// Tasks and groups, and the common names of copies.
    owners: BTreeSet<String>,
    /// Some task, phase or group could not be read, so an unknown name is not reported.
    is_incomplete: bool,
}

/// Whether some task, phase or group could not be read. `tasks`: those that could.
fn has_unread_names(raw: &raw::ScenarioTable, tasks: &[Task]) -> bool {
    let is_unread = |task: &raw::RawTask| {
        let Some(name) = &task.table.name else { return true };
        let phases = task.table.phase.iter().flatten();
        let is_it = |it: &&Task| Owner::new(&it.name).name == name.value.0;
        let read = tasks.iter().find(is_it).map_or(0, |task| task.phases.len());
        task.table.bad.contains(&"copies") || read < phases.count().max(1)
    };
    let has_name =
        |group: &raw::RawGroup| group.table.name.is_some() && !group.table.bad.contains(&"copies");
    ["task", "group"].iter().any(|key| raw.bad.contains(key))
        || raw.task.iter().flatten().any(is_unread)
        || !raw.group.iter().flatten().all(has_name)
}

impl ReportKeys {
    pub(super) fn of(setup: &Setup) -> ReportKeys {
        let tasks = setup.tasks.iter().map(|task| task.name.as_str());
        let groups = setup.groups.iter().map(|group| group.name.as_str());
        let owners = tasks.chain(groups);
        let common = |name: &str| Owner::new(name).family().name;
        let owners = owners.flat_map(|name| [common(name), name.to_owned()]).collect();
        let names = KeyNames::of(setup);
        ReportKeys { names, metrics: catalogue::all(), owners, is_incomplete: false }
    }

    /// The keys of a setup that was read from `raw`, perhaps with mistakes.
    pub(super) fn of_read(raw: &raw::ScenarioTable, setup: &Setup) -> ReportKeys {
        let is_incomplete = has_unread_names(raw, &setup.tasks);
        ReportKeys { is_incomplete, ..ReportKeys::of(setup) }
    }

    /// Whether a record of the setup may have a key that matches a pattern with `*`. There may be
    /// thousands of tasks and groups, with metrics per phase and group. So this tests the rest of
    /// the pattern after each owner, which is the same for most owners, instead of every key.
    /// `only`: keys of this kind of scope.
    pub(super) fn may_match(&self, pattern: &str, only: Option<ScopeKind>, setup: &Setup) -> bool {
        if file_prefix(pattern).is_some() {
            // The caches and zones are known only at run time.
            return true;
        }
        let whole = PatternRest::of(pattern);
        let mut behind = BTreeSet::from([(ScopeKind::Machine, whole.clone())]);
        for kind in [ScopeKind::Idle, ScopeKind::Done, ScopeKind::Shrunk] {
            behind.insert((kind, whole.owner(pattern, kind.word())));
        }
        let owners = |name: &str| {
            let owner = Owner::new(name);
            BTreeSet::from([owner.family().to_string(), owner.to_string()])
        };
        for task in &setup.tasks {
            for owner in owners(&task.name) {
                let rest = whole.owner(pattern, &owner);
                for phase in &task.phases {
                    behind.insert((ScopeKind::Phase, rest.owner(pattern, &phase.name)));
                }
                behind.insert((ScopeKind::Task, rest));
            }
        }
        let phases = behind.iter().filter(|(kind, _)| *kind == ScopeKind::Phase);
        let phases: Vec<PatternRest> = phases.map(|(_, rest)| rest.clone()).collect();
        let groups: BTreeSet<String> =
            setup.groups.iter().flat_map(|group| owners(&group.name)).collect();
        for group in &groups {
            behind.insert((ScopeKind::Group, whole.owner(pattern, group)));
            for phase in &phases {
                behind.insert((ScopeKind::PhaseGroup, phase.owner(pattern, group)));
            }
        }
        behind.retain(|(kind, _)| only.is_none_or(|only| only == *kind));
        let caches = match setup.has_objects() {
            true => reported_caches(setup.machine.kmem_accounting),
            false => Vec::new(),
        };
        let of_caches: Vec<String> =
            caches.iter().flat_map(|cache| slabinfo_names(cache.name)).collect();
        let has_caches = |kind: ScopeKind| {
            matches!(
                kind,
                ScopeKind::Machine | ScopeKind::Phase | ScopeKind::Idle | ScopeKind::Shrunk
            )
        };
        behind.iter().any(|(kind, rest)| {
            let mut of_caches = of_caches.iter().filter(|_| has_caches(*kind));
            of_caches.any(|name| rest.after(pattern, name).is_done(pattern))
        }) || behind.iter().any(|(kind, rest)| {
            let entries = self.metrics.iter().filter(|entry| entry.of.contains(kind));
            entries.map(|entry| rest.after(pattern, &entry.name)).any(|rest| rest.is_done(pattern))
        }) || (pattern.contains(':') && self.may_match_full_form(pattern, setup))
    }

    /// The same for keys in full form, which exist because a task and a group have the same name.
    fn may_match_full_form(&self, pattern: &str, setup: &Setup) -> bool {
        let tasks: BTreeSet<&str> = setup.tasks.iter().map(|task| task.name.as_str()).collect();
        let both = setup.groups.iter().filter(|group| {
            let family = Owner::new(&group.name).family().name;
            tasks.contains(group.name.as_str())
                || tasks.iter().any(|task| Owner::new(task).family().name == family)
        });
        both.flat_map(|group| [Owner::new(&group.name), Owner::new(&group.name).family()]).any(
            |group| {
                let of_groups = self.metrics.iter().filter(|it| it.of.contains(&ScopeKind::Group));
                of_groups.into_iter().any(|entry| {
                    let key =
                        MetricKey { scope: Scope::Group(group.clone()), name: entry.name.clone() };
                    matches(pattern, &self.names.text(&key))
                })
            },
        )
    }
}

/// Rests of a pattern after a prefix of a text, as positions in the pattern; empty: no match.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PatternRest(BTreeSet<usize>);

impl PatternRest {
    fn of(pattern: &str) -> PatternRest {
        let mut rest = PatternRest(BTreeSet::new());
        rest.add(pattern.as_bytes(), 0);
        rest
    }

    /// Adds a position, and the positions after it that its `*` reaches if they match nothing.
    fn add(&mut self, pattern: &[u8], at: usize) {
        let stars = pattern[at..].iter().take_while(|byte| **byte == b'*').count();
        self.0.extend(at..=at + stars);
    }

    fn after(&self, pattern: &str, text: &str) -> PatternRest {
        let pattern = pattern.as_bytes();
        text.bytes().fold(self.clone(), |rest, byte| {
            let mut next = PatternRest(BTreeSet::new());
            for at in rest.0 {
                match pattern.get(at) {
                    Some(b'*') => next.add(pattern, at),
                    Some(wanted) if *wanted == byte => next.add(pattern, at + 1),
                    _ => {}
                }
            }
            next
        })
    }

    /// The rest after an owner and its dot.
    fn owner(&self, pattern: &str, owner: &str) -> PatternRest {
        self.after(pattern, owner).after(pattern, ".")
    }

    fn is_done(&self, pattern: &str) -> bool {
        self.0.contains(&pattern.len())
    }
}

/// The task whose lifetime the machine's counters cover.
pub(super) fn measure(
    raw: &raw::ScenarioTable,
    tasks: &[Task],
    sink: &mut ProblemSink,
) -> Option<usize> {
    let measure = raw.report.as_ref()?.measure.as_ref()?;
    let found = tasks.iter().position(|task| task.name == measure.value);
    if found.is_none() && !has_unread_names(raw, tasks) {
        let names = tasks.iter().map(|task| task.name.as_str());
        let hint = match sink.suggest(&measure.value, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known: {}", list_names(names)),
        };
        sink.hinted(measure.span, format!("there is no task `{}`", clip(&measure.value)), hint);
    }
    found
}

pub(super) fn rows(raw: &raw::ScenarioTable, setup: &Setup, sink: &mut ProblemSink) -> Vec<String> {
    let rows = raw.report.as_ref().and_then(|report| report.rows.as_deref()).unwrap_or_default();
    if rows.is_empty() {
        return Vec::new();
    }
    let known = ReportKeys::of_read(raw, setup);
    let mut seen: BTreeMap<&str, &Spanned<String>> = BTreeMap::new();
    for row in rows {
        check_row(row, &known, setup, sink);
        if let Some(first) = seen.insert(&row.value, row) {
            sink.push(SpannedProblem {
                span: row.span,
                message: format!("the row `{}` is written twice", clip(&row.value)),
                hint: Some("keep one of them".into()),
                also: Some((first.span, "first here".into())),
            });
        }
    }
    rows.iter().map(|row| as_recorded(&row.value, &known.names)).collect()
}

pub(super) fn reference(
    raw: &raw::ScenarioTable,
    setup: &Setup,
    variants: &[&str],
    sink: &mut ProblemSink,
) -> Option<Reference> {
    let reference = raw.reference.as_ref()?;
    if reference.source.is_none() && !reference.bad_source {
        let hint = "add source = \"where the figures were published\"";
        sink.hinted(reference.at, "the reference has no `source`", hint);
    }
    let known = ReportKeys::of_read(raw, setup);
    let mut values = BTreeMap::new();
    for (variant, figures) in &reference.variants {
        if !variants.contains(&variant.value.as_str()) {
            let hint = match sink.suggest(&variant.value, variants.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known: {}", list_names(variants.iter().copied())),
            };
            let message = format!("there is no variant `{}`", clip(&variant.value));
            sink.hinted(variant.span, message, hint);
        }
        let mut of_variant = BTreeMap::new();
        for figure in figures {
            check_key(&figure.key, &known, sink);
            of_variant.insert(as_recorded(&figure.key.value, &known.names), figure.value);
        }
        values.insert(variant.value.clone(), of_variant);
    }
    let source = reference.source.as_ref().map_or(String::new(), |source| source.value.clone());
    Some(Reference { source, values })
}

/// The form of a key in records; `key` may be in full form.
pub(super) fn as_recorded(key: &str, names: &KeyNames) -> String {
    match names.read(key) {
        Some(read) if key.contains(':') => names.text(&read),
        _ => key.to_owned(),
    }
}

/// A row is the key of an existing metric, or a pattern with `*` that matches at least one.
pub(super) fn check_row(
    row: &Spanned<String>,
    known: &ReportKeys,
    setup: &Setup,
    sink: &mut ProblemSink,
) {
    let text = &row.value;
    if text.contains('*') {
        if !known.is_incomplete && !known.may_match(text, None, setup) {
            let hint = "`pagetide metrics` lists the metrics; keys are NAME, TASK.NAME, GROUP.NAME";
            sink.hinted(row.span, format!("no metric matches `{}`", clip(text)), hint);
        }
        return;
    }
    let Some(key) = check_key(row, known, sink) else { return };
    let kind = key.scope.kind();
    if catalogue::find(&known.metrics, kind, &key.name).is_some() {
        return;
    }
    // A task and a group may have one name.
    let owner = key.scope.short();
    let task = known.names.read(&format!("{owner}.{}", WALLTIME.name));
    let is_task = task.is_some_and(|task| task.scope.kind() == ScopeKind::Task);
    let fits = |of: &ScopeKind| *of == kind || is_task && *of == ScopeKind::Task;
    let of_kind = known.metrics.iter().filter(|entry| entry.of.iter().any(fits));
    let hint = match sink.suggest(&key.name, of_kind.map(|entry| &*entry.name)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`pagetide metrics` lists them".to_owned(),
    };
    let message = match owner.as_str() {
        "" => format!("the machine has no metric `{}`", clip(&key.name)),
        owner => format!("`{}` has no metric `{}`", clip(owner), clip(&key.name)),
    };
    sink.hinted(row.span, message, hint);
}

/// Parses a key: `NAME` for the machine, `TASK.NAME`, `TASK.PHASE.NAME`, `GROUP.NAME`,
/// `TASK.PHASE.GROUP.NAME`, or the full form. Its owners must exist; the name may be a kernel's.
fn check_key(
    key: &Spanned<String>,
    known: &ReportKeys,
    sink: &mut ProblemSink,
) -> Option<MetricKey> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let parts: Vec<&str> = key.value.split(['.', ':']).collect();
    let is_sound = parts.iter().all(|part| !part.is_empty() && part.chars().all(is_plain));
    let read = known.names.read(&key.value).filter(|_| is_sound);
    if let Some(read) = read {
        // A machine metric with a dot must be declared; otherwise an owner is misspelled.
        return Some(read);
    }
    if known.is_incomplete && is_sound && parts.len() > 1 {
        return None;
    }
    let owner = match key.value.contains(':') {
        true => parts.get(1).copied().unwrap_or_default(),
        false => parts[0],
    };
    if !is_sound || parts.len() == 1 || known.owners.contains(owner) {
        let owners = [parts[..1].join("."), parts[..parts.len().min(2)].join(".")];
        let names = || known.metrics.iter().map(|entry| &*entry.name);
        let keys = owners.iter().flat_map(|of| names().map(move |name| format!("{of}.{name}")));
        let keys: Vec<String> = keys.filter(|key| known.names.read(key).is_some()).collect();
        let hint = match sink.suggest(&key.value, keys.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "keys are NAME, TASK.NAME, TASK.PHASE.NAME, GROUP.NAME or \
                     TASK.PHASE.GROUP.NAME; `pagetide metrics` lists the names"
                .to_owned(),
        };
        sink.hinted(key.span, format!("`{}` is not a metric", clip(&key.value)), hint);
        return None;
    }
    let of_machine = known.metrics.iter().filter(|entry| entry.of.contains(&ScopeKind::Machine));
    let of_machine = of_machine.map(|entry| &*entry.name).filter(|name| name.contains('.'));
    let near = sink.suggest(&key.value, of_machine);
    let owners = || known.owners.iter().map(String::as_str);
    let hint = match near.or_else(|| sink.suggest(owner, owners())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}", list_names(owners())),
    };
    let message = format!("no task or group is called `{}`", clip(owner));
    sink.hinted(key.span, message, hint);
    None
}
