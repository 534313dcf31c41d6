//! Selection of metrics: `run --metrics PATTERN`.
//!
//! Invariant: a pattern that matches no metric is an error; before anything runs, if it has a word
//! that is in no metric name and in no name of the scenario.

use crate::pattern::matching;
use crate::report::Report;
use pagetide_scenario::criterion::Mistake;
use pagetide_scenario::metric::catalogue::{self, MetricEntry};
use pagetide_scenario::metric::declared::file_prefix;
use pagetide_scenario::metric::{Owner, ScopeKind};
use pagetide_scenario::model::{Scenario, Setup};
use pagetide_scenario::near::nearest_few;
use std::collections::BTreeSet;

/// Most names to suggest.
const SUGGESTED: usize = 3;

/// The error names the first pattern that no run of `scenario` can match, with similar names.
pub fn check(scenario: &Scenario, patterns: &[String]) -> Result<(), Mistake> {
    if patterns.is_empty() {
        return Ok(());
    }
    let all = catalogue::all();
    let mut words: BTreeSet<String> = all.iter().map(|entry| entry.name.to_string()).collect();
    words.extend(ScopeKind::ALL.map(|kind| kind.word().to_owned()));
    let setups = || scenario.variants.iter().map(|variant| &variant.setup);
    words.extend(setups().flat_map(names));
    for pattern in patterns {
        let is_word = |part: &str| {
            part.bytes().all(|b| b.is_ascii_digit()) || words.iter().any(|word| word.contains(part))
        };
        // Caches and zones are known only after the run.
        let fits = file_prefix(pattern).is_some()
            || pattern.split(['*', '.', ':']).filter(|part| !part.is_empty()).all(is_word);
        if pattern.is_empty() || !fits {
            return Err(unknown(pattern, likely(&all, setups())));
        }
    }
    Ok(())
}

/// All names of the setup that are in keys.
fn names(setup: &Setup) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for task in &setup.tasks {
        names.insert(Owner::new(&task.name).family().name);
        names.extend(task.phases.iter().map(|phase| phase.name.clone()));
    }
    names.extend(setup.groups.iter().map(|group| Owner::new(&group.name).family().name));
    names.extend(setup.machine.disks.iter().map(|disk| disk.name.clone()));
    names
}

/// Keys to suggest before a run: of the machine, of tasks and of groups.
fn likely<'a>(all: &[MetricEntry], setups: impl Iterator<Item = &'a Setup>) -> BTreeSet<String> {
    let mut keys: BTreeSet<String> = all.iter().map(|entry| entry.name.to_string()).collect();
    let of = |kind: ScopeKind| all.iter().filter(move |entry| entry.of.contains(&kind));
    for setup in setups {
        let family = |name: &str| Owner::new(name).family().name;
        let tasks: BTreeSet<String> = setup.tasks.iter().map(|task| family(&task.name)).collect();
        let groups: BTreeSet<String> =
            setup.groups.iter().map(|group| family(&group.name)).collect();
        for (kind, owners) in [(ScopeKind::Task, tasks), (ScopeKind::Group, groups)] {
            for owner in &owners {
                keys.extend(of(kind).map(|entry| format!("{owner}.{}", entry.name)));
            }
        }
    }
    keys
}

fn unknown(pattern: &str, keys: BTreeSet<String>) -> Mistake {
    let bare = pattern.replace('*', "");
    let near = nearest_few(&bare, keys.iter().map(String::as_str), SUGGESTED);
    let hint = match near.as_slice() {
        [] => "`pagetide metrics` lists them; `*` matches any characters".to_owned(),
        near => format!("did you mean `{}`?", near.join("` or `")),
    };
    let shown: String = pattern.chars().filter(|c| !c.is_control()).take(80).collect();
    Mistake::new(format!("no run has a metric `{shown}`"), hint)
}

/// The keys that match the patterns, in order, each once. A pattern is a key, a part of keys, or
/// has `*`.
/// Fails if a pattern matches no key; the error has similar keys.
pub fn keys(report: &Report, patterns: &[String]) -> Result<Vec<String>, Mistake> {
    let all: BTreeSet<String> =
        report.columns.iter().flat_map(|column| column.series.keys().cloned()).collect();
    let list: Vec<&String> = all.iter().collect();
    let mut chosen: Vec<String> = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for pattern in patterns {
        let found = matching(&list, |key| key.as_str(), pattern, &[]);
        if found.is_empty() {
            return Err(unknown(pattern, all.clone()));
        }
        chosen.extend(found.into_iter().filter(|key| seen.insert(key)).map(|key| (*key).clone()));
    }
    Ok(chosen)
}

/// The report with only these metrics, for formats that print all.
pub fn narrowed(report: &Report, keys: &[String]) -> Report {
    let keys: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
    let mut narrowed = report.clone();
    for column in &mut narrowed.columns {
        column.series.retain(|key, _| keys.contains(key.as_str()));
    }
    narrowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{report, scenario};

    fn wanted(report: &Report, patterns: &[&str]) -> Result<Vec<String>, Mistake> {
        let patterns: Vec<String> = patterns.iter().map(|it| (*it).to_owned()).collect();
        keys(report, &patterns)
    }

    #[test]
    fn a_key_a_part_of_keys_and_a_pattern() {
        let report = report(&[
            ("a", &[("pgscan_direct", 0.0), ("web.pgscan", 1.0), ("pswpin", 2.0)]),
            ("b", &[("pgscan_kswapd", 3.0), ("web.walltime", 4.0)]),
        ]);
        let found = |patterns: &[&str]| wanted(&report, patterns).unwrap();
        assert_eq!(found(&["pswpin"]), ["pswpin"]);
        assert_eq!(found(&["pgscan"]), ["pgscan_direct", "pgscan_kswapd", "web.pgscan"]);
        assert_eq!(found(&["web.*", "pgscan*"]).len(), 4);
        assert_eq!(found(&["pswpin", "*"]).first().map(String::as_str), Some("pswpin"));
        let mistake = wanted(&report, &["pswpin", "pswpni"]).unwrap_err();
        assert_eq!(mistake.message, "no run has a metric `pswpni`");
        assert!(mistake.hint.contains("`pswpin`"), "{}", mistake.hint);
        let narrow = narrowed(&report, &found(&["pswpin"]));
        let left: Vec<&String> = narrow.columns[0].series.keys().collect();
        assert_eq!((left.len(), narrow.columns[1].series.len()), (1, 0));
    }

    #[test]
    fn impossible_patterns_are_refused_before_the_run() {
        let scenario = scenario(&["a"]);
        let check = |pattern: &str| check(&scenario, &[pattern.to_owned()]);
        for pattern in
            ["walltime", "pgscan*", "*", "machine:pgfault", "slabinfo.dentry.num_objs", "refault"]
        {
            assert!(check(pattern).is_ok(), "{pattern}");
        }
        for pattern in ["pgscam", "web.walltime", "", "\u{1b}[1m", "walltime "] {
            assert!(check(pattern).is_err(), "{pattern}");
        }
        assert!(check("walltme").unwrap_err().hint.contains("walltime"));
    }
}
