//! Selection of metrics: `run --metrics PATTERN`.
//!
//! Invariant: a pattern that matches no metric is an error; before anything runs, if no run of the
//! scenario can have such a metric.

use crate::pattern::matching;
use crate::report::Report;
use pagetide_scenario::load::{may_have_metric, metric_key};
use pagetide_scenario::metric::catalogue::{self, MetricEntry};
use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::metric::{KeyNames, MetricKey, Owner, Scope, ScopeKind};
use pagetide_scenario::model::{Scenario, Setup};
use pagetide_scenario::names::near::{matches, nearest_few};
use std::collections::BTreeSet;

/// Most names to suggest.
const SUGGESTED: usize = 3;

/// The error names the first pattern that no run of `scenario` can match, with similar names.
/// `takes_parts`: a pattern without `*` may be a part of a key.
pub fn check(scenario: &Scenario, patterns: &[String], takes_parts: bool) -> Result<(), Mistake> {
    let setups = || scenario.variants.iter().map(|variant| &variant.setup);
    let is_unknown = |pattern: &&String| {
        let may_have = |setup: &Setup| match takes_parts || pattern.contains('*') {
            true => may_have_metric(pattern, setup),
            false => metric_key(pattern, setup).is_ok(),
        };
        !setups().any(may_have)
    };
    match patterns.iter().find(is_unknown) {
        Some(pattern) => Err(unknown(pattern, likely(&catalogue::all(), setups()))),
        None => Ok(()),
    }
}

/// Keys to suggest before a run: of the machine, of tasks and of groups.
fn likely<'a>(all: &[MetricEntry], setups: impl Iterator<Item = &'a Setup>) -> BTreeSet<String> {
    let mut keys: BTreeSet<String> = all.iter().map(|entry| entry.name.to_string()).collect();
    let of = |kind: ScopeKind| all.iter().filter(move |entry| entry.of.contains(&kind));
    for setup in setups {
        let names = KeyNames::of(setup);
        let tasks = setup.tasks.iter().map(|task| Scope::Task(Owner::new(&task.name).family()));
        let groups = setup.groups.iter().map(|it| Scope::Group(Owner::new(&it.name).family()));
        for scope in tasks.chain(groups).collect::<BTreeSet<Scope>>() {
            let key = |name| MetricKey { scope: scope.clone(), name };
            let names = of(scope.kind()).map(|entry| names.text(&key(entry.name.clone())));
            keys.extend(names);
        }
    }
    keys
}

fn unknown(pattern: &str, keys: BTreeSet<String>) -> Mistake {
    let bare = pattern.replace('*', "");
    let mut near = nearest_few(&bare, keys.iter().map(String::as_str), SUGGESTED);
    let about = about(&bare);
    near.extend(keys.iter().map(String::as_str).filter(|key| about.contains(*key)));
    near.truncate(SUGGESTED);
    let hint = match near.as_slice() {
        [] => "`pagetide metrics` lists them; `*` matches any characters".to_owned(),
        near => format!("did you mean `{}`?", near.join("` or `")),
    };
    let shown: String = pattern.chars().filter(|c| !c.is_control()).take(80).collect();
    Mistake::new(format!("no run has a metric `{shown}`"), hint)
}

/// Metrics of the machine whose description ends with a part of the name, of four letters or more:
/// `pswpin` and `pswpout` for `pgswap`.
fn about(name: &str) -> BTreeSet<String> {
    let all = catalogue::all();
    let parts = (4..name.len()).rev().flat_map(|length| {
        (0..=name.len() - length).filter_map(move |at| name.get(at..at + length))
    });
    let with_word = |part: &str| -> BTreeSet<String> {
        let has = |entry: &&MetricEntry| {
            entry.of.contains(&ScopeKind::Machine)
                && entry.about.trim_end_matches('.').rsplit(' ').next() == Some(part)
        };
        all.iter().filter(has).map(|entry| entry.name.to_string()).collect()
    };
    parts.map(with_word).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The keys that match the patterns, in order, each once. A pattern is a key, a part of keys, or
/// has `*`; with a colon, it is matched with the full forms of the keys.
/// A pattern that matches no key is a mistake, which has similar keys.
pub fn keys(report: &Report, patterns: &[String]) -> (Vec<MetricKey>, Vec<Mistake>) {
    let all: Vec<(&String, &MetricKey)> = report.keys.iter().collect();
    let mut chosen: Vec<MetricKey> = Vec::new();
    let mut mistakes: Vec<Mistake> = Vec::new();
    let mut seen: BTreeSet<&MetricKey> = BTreeSet::new();
    for pattern in patterns {
        let mut found = matching(&all, |(text, _)| text.as_str(), pattern, &[]);
        if found.is_empty() && pattern.contains(':') {
            let is_full =
                |key: &MetricKey| key.scope != Scope::Unread && matches(pattern, &key.to_string());
            found = all.iter().filter(|(_, key)| is_full(key)).collect();
        }
        if found.is_empty() {
            mistakes.push(unknown(pattern, report.keys.keys().cloned().collect()));
        }
        let found = found.into_iter().map(|(_, key)| *key);
        chosen.extend(found.filter(|key| seen.insert(key)).cloned());
    }
    (chosen, mistakes)
}

/// The report with only these metrics, for formats that print all.
pub fn narrowed(report: &Report, keys: &[MetricKey]) -> Report {
    let keys: BTreeSet<&MetricKey> = keys.iter().collect();
    let mut narrowed = report.clone();
    for column in &mut narrowed.columns {
        column.series.retain(|key, _| keys.contains(key));
    }
    narrowed.keys.retain(|_, key| keys.contains(key));
    narrowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{report, scenario};

    fn wanted(report: &Report, patterns: &[&str]) -> (Vec<String>, Vec<Mistake>) {
        let patterns: Vec<String> = patterns.iter().map(|it| (*it).to_owned()).collect();
        let (keys, mistakes) = keys(report, &patterns);
        (keys.iter().map(|key| report.text(key)).collect(), mistakes)
    }

    #[test]
    fn a_key_a_part_of_keys_and_a_pattern() {
        let report = report(&[
            ("a", &[("pgscan_direct", 0.0), ("web.pgscan", 1.0), ("pswpin", 2.0)]),
            ("b", &[("pgscan_kswapd", 3.0), ("web.walltime", 4.0)]),
        ]);
        let found = |patterns: &[&str]| wanted(&report, patterns).0;
        assert_eq!(found(&["pswpin"]), ["pswpin"]);
        assert_eq!(found(&["pgscan"]), ["pgscan_direct", "pgscan_kswapd", "web.pgscan"]);
        assert_eq!(found(&["web.*", "pgscan*"]).len(), 4);
        assert_eq!(found(&["pswpin", "*"]).first().map(String::as_str), Some("pswpin"));
        let (keys, mistakes) = wanted(&report, &["pswpin", "pswpni"]);
        assert_eq!(keys, ["pswpin"], "the others are shown");
        assert_eq!(mistakes[0].message, "no run has a metric `pswpni`");
        assert!(mistakes[0].hint.contains("`pswpin`"), "{}", mistakes[0].hint);
        assert_eq!(found(&["machine:pgscan*"]), ["pgscan_direct", "pgscan_kswapd"]);
        let narrow = narrowed(&report, &[report.keys["pswpin"].clone()]);
        let left: Vec<&MetricKey> = narrow.columns[0].series.keys().collect();
        assert_eq!((left.len(), narrow.columns[1].series.len()), (1, 0));
    }

    #[test]
    fn impossible_patterns_are_refused_before_the_run() {
        let scenario = scenario(&["a"]);
        let check = |pattern: &str| check(&scenario, &[pattern.to_owned()], true);
        for pattern in
            ["pgfault", "pgscan*", "*", "machine:pgfault", "slabinfo.dentry.num_objs", "refault"]
        {
            assert!(check(pattern).is_ok(), "{pattern}");
        }
        for pattern in ["pgscam", "web.walltime", "", "\u{1b}[1m", "pgfault "] {
            assert!(check(pattern).is_err(), "{pattern}");
        }
        assert!(check("pgfualt").unwrap_err().hint.contains("pgfault"));
        assert!(check("walltme").unwrap_err().hint.contains("walltime"));
        let hint = check("pgswap").unwrap_err().hint;
        assert_eq!(hint, "did you mean `pgscan` or `pswpin` or `pswpout`?");
    }
}
