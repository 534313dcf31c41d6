//! A comparison as a table: one row per counter, Linux and Pagetide side by side.
//!
//! ```text
//!                        Linux    Pagetide   ratio        verdict
//! ---------------------------------------------------------------
//! wset.acc1
//!   pgmajfault      6714 ±  34    6725 ± 7   1.002   within noise
//!   pgscan_total   21200 ± 283   22705 ± 7   1.071          close
//! ```
//!
//! Invariant: no line shows NaN or infinity, whatever the records hold.

use crate::compare::{
    Agreement, ComparedSides, Comparison, CounterComparison, PhaseComparison, VariantComparison,
};
use crate::expected;
use crate::judge::{is_shown_unjudged, least_judged, CounterGrade};
use crate::summary::{times, ComparisonSummary, BEYOND};
use pagetide_lab::format::{size, Scale};
use pagetide_lab::heading::wrap;
use pagetide_lab::layout::{self, TextCell, TextLine};
use pagetide_lab::stats;
use pagetide_lab::table::{state, to_scale};
use pagetide_scenario::metric::declared::is_state;
use pagetide_scenario::metric::Scope;
use pagetide_scenario::model::MachineSetup;
use pagetide_scenario::record::Unit;
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// Sentences wrap here.
const TEXT_WIDTH: usize = 100;

/// Renders heading, one table per variant, the summary and notes.
///
/// With `all`, every counter is a row. Without, the rows of a phase are the judged counters that
/// reach `LEAST_JUDGED` on one side, and a few others that are not zero.
pub fn render(comparison: &Comparison, sides: &ComparedSides, all: bool) -> String {
    let mut out = Text::default();
    entries(comparison, sides).iter().for_each(|(label, text)| out.entry(label, text));
    if !sides.not_comparable.is_empty() {
        out.line("not comparable:");
        sides.not_comparable.iter().for_each(|text| out.item("  - ", text));
    }
    for variant in &comparison.variants {
        out.line("");
        if comparison.variants.len() > 1 {
            out.entry("variant", &variant.name);
            out.line("");
        }
        let lines = lines(variant, all);
        if lines.is_empty() {
            out.line(NO_COUNTER);
        } else {
            let names = ["Linux", "Pagetide", "ratio", "verdict"];
            // Never split: the verdict must stand beside its counter.
            out.text += &layout::render(&names, &lines, usize::MAX);
        }
    }
    out.line("");
    out.item("", LEGEND);
    out.line("");
    let summary = comparison.summary();
    out.line(&summary.to_string());
    for variant in &comparison.variants {
        let name = if comparison.variants.len() > 1 { variant.name.as_str() } else { "" };
        expected::sentences(name, &variant.expected).iter().for_each(|(label, text)| {
            out.item(&format!("{label:<10}"), text);
        });
    }
    remarks(comparison, sides, &summary).iter().for_each(|text| out.item("note: ", text));
    out.text
}

/// Description of the comparison: pairs of label and text.
pub fn entries(comparison: &Comparison, sides: &ComparedSides) -> Vec<(&'static str, String)> {
    let mut machines: Vec<String> = Vec::new();
    for variant in &comparison.variants {
        let machine = machine(&variant.machine);
        if !machines.contains(&machine) {
            machines.push(machine);
        }
    }
    let mut entries = vec![
        ("scenario", comparison.scenario.clone()),
        ("version", format!("pagetide {}", pagetide_lab::VERSION)),
        ("kernel", sides.kernel.clone()),
        ("policies", sides.policies.clone()),
        ("run by", sides.how.clone()),
        ("machine", machines.join("; ")),
        ("costs", sides.costs.clone()),
    ];
    if !comparison.variants.is_empty() {
        entries.push(("runs", runs(&comparison.variants)));
    }
    entries
}

/// Printed instead of a table without rows.
pub const NO_COUNTER: &str = "No counter to show: no judged counter reached 1000.";

/// Explains columns and verdicts.
pub const LEGEND: &str =
    "mean \u{b1} sample standard deviation over the runs; ratio: Pagetide / Linux; within noise: \
    the difference is within Linux's scatter (t-test, p >= 0.1; Pagetide's deviation is capped \
    at that of Linux); close: within 5 % for counters that vary by less than 1 % on Linux, \
    within 15 % for others, within 10 % for times; -: not judged, because the counter varies too \
    much on Linux or is too small there (below 1000; times: below 10 ms; events that depend on \
    time: below 50; kernel objects: below 64 kB)";

#[derive(Default)]
struct Text {
    text: String,
}

impl Text {
    fn line(&mut self, line: &str) {
        self.text += line.trim_end();
        self.text.push('\n');
    }

    /// A label with its text wrapped beside it; nothing without text.
    fn entry(&mut self, label: &str, text: &str) {
        if !text.trim().is_empty() {
            self.item(&format!("{label:<11}"), text);
        }
    }

    /// Text wrapped behind `first`.
    fn item(&mut self, first: &str, text: &str) {
        let indent = first.chars().count();
        for (i, line) in wrap(text, TEXT_WIDTH.saturating_sub(indent)).iter().enumerate() {
            let front = if i == 0 { first } else { "" };
            self.line(&format!("{front:<indent$}{line}"));
        }
    }
}

/// `1 CPU, 256 MiB, 4 GiB swap`. Without disks: those are QEMU's.
fn machine(machine: &MachineSetup) -> String {
    let memory = machine.nodes.iter().fold(0u64, |sum, node| {
        let zones = node.zones.iter().map(|zone| machine.page_size.bytes_of(zone.managed));
        let zones = zones.fold(0, u64::saturating_add);
        sum.saturating_add(if node.zones.is_empty() { node.memory } else { zones })
    });
    let mut text = format!("{} CPU{}", machine.cpus, if machine.cpus == 1 { "" } else { "s" });
    add(&mut text, format_args!(", {}", size(memory)));
    if machine.nodes.len() > 1 {
        add(&mut text, format_args!(" on {} nodes", machine.nodes.len()));
    }
    match machine.swap.iter().map(|area| area.size).sum() {
        0 => text += ", no swap",
        swap => add(&mut text, format_args!(", {} swap", size(swap))),
    }
    text
}

fn add(text: &mut String, more: impl Display) {
    write!(text, "{more}").expect("writing to a string");
}

/// `Linux 3, Pagetide 3`, per variant if they differ.
fn runs(variants: &[VariantComparison]) -> String {
    let of =
        |v: &VariantComparison| format!("Linux {}, Pagetide {}", v.linux_runs, v.pagetide_runs);
    let all: Vec<String> = variants.iter().map(of).collect();
    if all.windows(2).all(|pair| pair[0] == pair[1]) {
        return all[0].clone();
    }
    let named =
        variants.iter().zip(&all).map(|(variant, runs)| format!("{}: {runs}", variant.name));
    named.collect::<Vec<_>>().join("; ")
}

fn lines(variant: &VariantComparison, all: bool) -> Vec<TextLine> {
    let mut lines = Vec::new();
    let parts = variant.phases.iter().map(|phase| (heading(phase), &phase.counters));
    for (name, counters) in parts.chain([("whole run".to_owned(), &variant.others)]) {
        let mut rows: Vec<TextLine> =
            counters.iter().filter(|counter| all || shown(counter)).map(row).collect();
        if !rows.is_empty() {
            let cells = vec![TextCell::default(); rows[0].cells.len()];
            lines.push(TextLine { label: name, cells, ..TextLine::default() });
            lines.append(&mut rows);
        }
    }
    lines
}

/// `TASK.PHASE`, or `TASK.PHASE, group GROUP`.
pub fn heading(phase: &PhaseComparison) -> String {
    match &phase.scope {
        Scope::PhaseGroup { task, phase, group } => format!("{task}.{phase}, group {group}"),
        scope => scope.short(),
    }
}

/// Whether a counter is a row of the table without `--all`.
pub fn shown(counter: &CounterComparison) -> bool {
    if counter.only_linux() || counter.only_pagetide() {
        return false;
    }
    let most = counter.linux.mean.max(counter.pagetide.mean);
    match counter.judgement {
        CounterGrade::Timed | CounterGrade::Shown => {
            // Counters without a phase have their whole key as name.
            counter.name != counter.key && is_shown_unjudged(&counter.name) && most > 0.0
        }
        CounterGrade::Repeats | CounterGrade::Varies => most >= least_judged(counter.unit),
    }
}

pub fn row(counter: &CounterComparison) -> TextLine {
    let sides = [&counter.linux, &counter.pagetide];
    let scale = Scale::new(counter.unit, &to_scale(&counter.name, sides.into_iter()));
    let plain = |value: String| TextCell { value, ..TextCell::default() };
    let verdict = match counter.verdict {
        Agreement::WithinNoise => "within noise",
        Agreement::Close => "close",
        Agreement::Off => "off",
        Agreement::NotJudged => "-",
    };
    let [linux, pagetide] = sides.map(|side| match is_state(&counter.name) {
        true if side.mean.is_finite() => plain(state(side, &scale)),
        _ => mean(side, &scale),
    });
    let ratio = counter.ratio.map_or("-".to_owned(), |ratio| times(ratio, 3));
    TextLine {
        label: format!("  {}", counter.name),
        unit: scale.symbol.to_owned(),
        cells: vec![linux, pagetide, plain(ratio), plain(verdict.to_owned())],
    }
}

fn mean(side: &stats::Statistics, scale: &Scale) -> TextCell {
    let (value, mut spread) = scale.print(side.mean, side.stddev);
    if side.n < 2 || !side.mean.is_finite() {
        spread.clear();
    }
    TextCell { value, spread, change: String::new() }
}

/// Notes under the table: counters far off, keys of one side only, notes of the runs.
pub fn remarks(
    comparison: &Comparison,
    sides: &ComparedSides,
    summary: &ComparisonSummary,
) -> Vec<String> {
    let mut remarks = Vec::new();
    let apart = comparison.variants.iter().filter(|variant| !variant.is_alike);
    let apart: Vec<&str> = apart.map(|variant| variant.name.as_str()).collect();
    if !apart.is_empty() {
        remarks.push(format!(
            "not in the summary: {}, because the kernel behaves otherwise (see `not comparable`)",
            apart.join(", ")
        ));
    }
    let beyond: Vec<String> = [&summary.repeats, &summary.varies, &summary.timed]
        .iter()
        .flat_map(|score| &score.beyond)
        .map(|(key, ratio)| format!("{key} {}x", times(*ratio, 2)))
        .collect();
    if !beyond.is_empty() {
        remarks.push(format!("off by more than {BEYOND}x: {}", beyond.join(", ")));
    }
    let surplus: Vec<String> = (summary.surplus.iter())
        .map(|(key, linux, pagetide)| format!("{key} {pagetide:.0} (Linux {linux:.0})"))
        .collect();
    if !surplus.is_empty() {
        remarks.push(format!("high in Pagetide but not in Linux: {}", surplus.join(", ")));
    }
    remarks
        .extend(only_on_one_side("on Linux", comparison, CounterComparison::only_linux, |_| true));
    // A record of the kernel has no events that did not happen in a phase.
    let is_some =
        |counter: &CounterComparison| counter.unit != Unit::Count || counter.pagetide.mean != 0.0;
    remarks.extend(only_on_one_side(
        "in Pagetide",
        comparison,
        CounterComparison::only_pagetide,
        is_some,
    ));
    for variant in &comparison.variants {
        let of = match comparison.variants.len() {
            1 => String::new(),
            _ => format!("{}, ", variant.name),
        };
        remarks.extend(variant.notes.iter().map(|note| format!("{of}{note}")));
    }
    remarks.extend(sides.notes.iter().cloned());
    remarks
}

/// Results of one side only (`place`: `on Linux` or `in Pagetide`): whole phases, groups in shared phases,
/// judged counters by name, and the number of others. `is_told` selects the counters to report.
fn only_on_one_side(
    place: &str,
    comparison: &Comparison,
    is: fn(&CounterComparison) -> bool,
    is_told: fn(&CounterComparison) -> bool,
) -> Option<String> {
    let mut phases: BTreeMap<&str, usize> = BTreeMap::new();
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    let mut judged: BTreeMap<&str, usize> = BTreeMap::new();
    let mut others = 0;
    for variant in &comparison.variants {
        for phase in &variant.phases {
            if phase.counters.iter().all(is) {
                match phase.group() {
                    None => *phases.entry(&phase.key).or_default() += 1,
                    Some(group) => *groups.entry(group.to_string()).or_default() += 1,
                }
                continue;
            }
            for counter in phase.counters.iter().filter(|counter| is(counter) && is_told(counter)) {
                match counter.judgement {
                    CounterGrade::Timed | CounterGrade::Shown => others += 1,
                    _ => *judged.entry(&counter.name).or_default() += 1,
                }
            }
        }
        others += variant.others.iter().filter(|counter| is(counter) && is_told(counter)).count();
    }
    let several = |what: &str, unit: &str, n: usize| match n {
        1 => what.to_owned(),
        _ => format!("{what} ({n} {unit})"),
    };
    let phase = |(phase, n): (&&str, &usize)| several(&format!("phase {phase}"), "variants", *n);
    let mut parts: Vec<String> = phases.iter().map(phase).collect();
    let group = |(group, n): (&String, &usize)| several(&format!("group {group}"), "phases", *n);
    parts.extend(groups.iter().map(group));
    parts.extend(judged.iter().map(|(name, n)| several(name, "phases", *n)));
    match others {
        0 => {}
        1 => parts.push("1 metric that is not judged".to_owned()),
        _ => parts.push(format!("{others} metrics that are not judged")),
    }
    (!parts.is_empty()).then(|| format!("only {place}: {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{compared, setup};
    use pagetide_lab::testing::record;
    use pagetide_scenario::metric::declared::NO_LIMIT;
    use pagetide_scenario::model::Group;

    fn sides() -> ComparedSides {
        ComparedSides {
            kernel: "Linux 6.1.0-44-amd64".to_owned(),
            how: "QEMU, TCG, 1 CPU".to_owned(),
            policies: "linux-6.1".to_owned(),
            costs: String::new(),
            prices: BTreeMap::new(),
            not_comparable: vec!["time: the guest's clock stands still while it waits".to_owned()],
            notes: vec!["no tracepoints".to_owned()],
        }
    }

    fn rows(text: &str) -> Vec<&str> {
        let names = text.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        names.filter(|name| !["", "-"].contains(name)).collect()
    }

    #[test]
    fn the_whole_page() {
        let run = |seed, [wall, faults, kswapd, direct, swap, hot]: [f64; 6], odd| {
            let metrics = [
                ("wset.acc1.walltime", wall),
                ("wset.acc1.pgmajfault", faults),
                ("wset.acc1.pgscan_kswapd", kswapd),
                ("wset.acc1.pgscan_direct", direct),
                ("wset.acc1.pswpout", swap),
                ("wset.acc1.anon_hot_resident", hot),
                ("wset.acc1.pgfault", 12_000.0),
                ("pgfault", 99_000.0),
                (odd, 5000.0),
            ];
            record("default", seed, &metrics)
        };
        let linux = [
            run(1, [1.5, 6690.0, 21_000.0, 0.0, 4000.0, 7371.0], "wset.acc1.nr_active_file"),
            run(2, [2.5, 6738.0, 21_400.0, 0.0, 4300.0, 7371.0], "wset.acc1.nr_active_file"),
            run(3, [2.0, 6714.0, 21_200.0, 0.0, 4150.0, 7371.0], "wset.acc1.nr_active_file"),
        ];
        let ours = [
            run(1, [0.5, 6720.0, 20_000.0, 2700.0, 0.0, 7500.0], "wset.acc1.user"),
            run(2, [0.5, 6730.0, 20_000.0, 2710.0, 0.0, 7502.0], "wset.acc1.user"),
            run(3, [0.5, 6725.0, 20_000.0, 2705.0, 0.0, 7501.0], "wset.acc1.user"),
        ];
        let setup = setup(&["wset.acc1"]);
        let found = VariantComparison::new("default", &setup, false, &linux, &ours);
        let text = render(&Comparison::new("mix", vec![found]), &sides(), false);
        let (version, mut legend) = (pagetide_lab::VERSION, Text::default());
        legend.item("", LEGEND);
        let legend = legend.text;
        assert_eq!(
            text,
            format!(
                "scenario   mix
version    pagetide {version}
kernel     Linux 6.1.0-44-amd64
policies   linux-6.1
run by     QEMU, TCG, 1 CPU
machine    2 CPUs, 2 GiB, no swap
runs       Linux 3, Pagetide 3
not comparable:
  - time: the guest's clock stands still while it waits

                                Linux    Pagetide   ratio        verdict
------------------------------------------------------------------------
wset.acc1
  walltime          s   2.000 ± 0.500   0.500 ± 0   0.250              -
  pgmajfault             6714 ±    24    6725 ± 5   1.002   within noise
  pswpout                4150 ±   150       0 ± 0   0.000            off
  pgscan_total          21200 ±   200   22705 ± 5   1.071          close
  pgscan_kswapd         21200 ±   200   20000 ± 0   0.943              -
  pgscan_direct             0 ±     0    2705 ± 5       -              -
  anon_hot_resident      7371 ±     0    7501 ± 1   1.018          close

{legend}
2 stable counters: median error 1.0 %, worst ratio 1.02x (wset.acc1.anon_hot_resident) · \
2 variable counters: median error >1000000 %, worst ratio 0.00x (wset.acc1.pswpout)
note: off by more than 1.5x: wset.acc1.pswpout 0.00x
note: only on Linux: nr_active_file
note: only in Pagetide: 1 metric that is not judged
note: no tracepoints
"
            )
        );
    }

    #[test]
    fn rows_are_the_judged_counters_and_a_few_others() {
        let found = compared(&[
            ("t.p.pgmajfault", 999.0, 1000.0),
            ("t.p.pswpin", 999.0, 999.0),
            ("t.p.pgscan_direct", 0.0, 1.0),
            ("t.p.pgsteal_direct", 0.0, 0.0),
            ("t.p.pgfault", 1e6, 1e6),
            ("walltime", 1.0, 1.0),
        ]);
        let of = |all| {
            render(&Comparison::new("x", vec![found.clone()]), &ComparedSides::default(), all)
        };
        assert_eq!(rows(&of(false)), ["pgmajfault", "pgscan_direct"]);
        assert_eq!(rows(&of(true)).len(), 6);
        assert!(!of(true).split("\nmean ").next().unwrap().contains('\u{b1}'), "one run spreads");
        assert!(of(true).contains("\nwhole run\n  walltime"), "{}", of(true));
    }

    #[test]
    fn nothing_prints_as_a_float_would() {
        let wild = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 5e3, 1e300];
        for (linux, ours) in wild.iter().flat_map(|a| wild.map(|b| (*a, b))) {
            let found = compared(&[("t.p.pgmajfault", linux, ours), ("t.p.walltime", ours, linux)]);
            for all in [false, true] {
                let comparison = Comparison::new("x", vec![found.clone()]);
                let text = render(&comparison, &sides(), all);
                assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            }
        }
        let empty = VariantComparison::new("v", &setup(&["t.p"]), false, &[], &[]);
        let text = render(&Comparison::new("x", vec![empty]), &sides(), true);
        assert!(text.contains("No counter to show"));
        render(&Comparison::new("x", vec![]), &sides(), true);
    }

    #[test]
    fn what_only_one_side_has_is_said_briefly() {
        let setup = setup(&["t.p", "w.q"]);
        let linux: [(&str, f64); 5] = [
            ("t.p.pgmajfault", 1.0),
            ("t.p.pswpin", 1.0),
            ("t.p.nr_x", 1.0),
            ("w.q.pgmajfault", 1.0),
            ("w.q.pswpin", 1.0),
        ];
        let of = |name: &str| {
            let (linux, ours) = (record(name, 1, &linux), record(name, 1, &linux[..1]));
            VariantComparison::new(name, &setup, false, &[linux], &[ours])
        };
        let note = |variants| {
            let text = render(&Comparison::new("x", variants), &ComparedSides::default(), false);
            text.lines().find_map(|line| line.strip_prefix("note: ")).unwrap().to_owned()
        };
        assert_eq!(
            note(vec![of("a")]),
            "only on Linux: phase w.q, pswpin, 1 metric that is not judged"
        );
        assert_eq!(
            note(vec![of("a"), of("b")]),
            "only on Linux: phase w.q (2 variants), pswpin (2 phases), 2 metrics that are \
             not judged"
        );
    }

    #[test]
    fn events_that_did_not_happen_are_not_listed() {
        let setup = setup(&["t.p"]);
        let linux = record("v", 1, &[("t.p.pgmajfault", 1.0)]);
        let ours = record("v", 1, &[("t.p.pgmajfault", 1.0), ("t.p.pswpin", 0.0), ("t.p.x", 0.0)]);
        let of = VariantComparison::new("v", &setup, false, &[linux], &[ours]);
        let text = render(&Comparison::new("x", vec![of]), &ComparedSides::default(), false);
        assert!(!text.contains("note: "), "{text}");
    }

    #[test]
    fn a_verdict_stands_beside_its_counter_however_long_that_is() {
        let name = format!("t.p.{}", "long_".repeat(30));
        let found = compared(&[(name.as_str(), 1e6, 1e6)]);
        let text = render(&Comparison::new("x", vec![found]), &ComparedSides::default(), true);
        assert_eq!(text.lines().filter(|line| line.starts_with("---")).count(), 1, "{text}");
    }

    #[test]
    fn a_limit_is_no_number_of_pages() {
        let mut setup = setup(&["t.p"]);
        let (name, controls) = ("g".to_owned(), vec![]);
        setup.groups.push(Group { name, parent: None, controls, at_start: true, has_memory: true });
        let mut run = record("v", 1, &[("t.p.g.memory.max", NO_LIMIT as f64)]);
        run.metrics.values_mut().for_each(|metric| metric.unit = Unit::Bytes);
        let of = VariantComparison::new("v", &setup, false, &[run.clone()], &[run]);
        let text = render(&Comparison::new("x", vec![of]), &ComparedSides::default(), false);
        assert!(text.contains("\n  memory.max     max        max   1.000         -\n"), "{text}");
    }

    #[test]
    fn a_group_has_rows_under_its_phase() {
        let mut setup = setup(&["t.p"]);
        let (name, controls) = ("g".to_owned(), vec![]);
        setup.groups.push(Group { name, parent: None, controls, at_start: true, has_memory: true });
        let values: [(&str, f64); 5] = [
            ("t.p.pgmajfault", 2000.0),
            ("t.p.g.pgmajfault", 1500.0),
            ("t.p.g.memory.events.max", 3.0),
            ("t.p.g.memory.events.oom", 0.0),
            ("t.p.g.pgfault", 9999.0),
        ];
        let of = |ours: &[(&str, f64)]| {
            let found = VariantComparison::new(
                "v",
                &setup,
                false,
                &[record("v", 1, &values)],
                &[record("v", 1, ours)],
            );
            render(&Comparison::new("x", vec![found]), &ComparedSides::default(), false)
        };
        let text = of(&values);
        assert!(text.contains("\nt.p, group g\n  pgmajfault "), "{text}");
        assert_eq!(rows(&text), ["pgmajfault", "pgmajfault", "memory.events.max"]);
        assert!(of(&values[..1]).contains("note: only on Linux: group g\n"));
    }

    #[test]
    fn each_variant_has_a_table_and_its_number_of_runs() {
        let one = |name: &str, runs: usize, ours| {
            let linux = vec![record(name, 1, &[("t.p.pgmajfault", 2000.0)]); runs];
            let ours = [record(name, 1, &[("t.p.pgmajfault", ours)])];
            VariantComparison::new(name, &setup(&["t.p"]), false, &linux, &ours)
        };
        let comparison = Comparison::new("x", vec![one("low", 2, 2000.0), one("high", 1, 8000.0)]);
        let text = render(&comparison, &ComparedSides::default(), false);
        assert_eq!(rows(&text), ["pgmajfault", "pgmajfault"]);
        assert!(text.contains("low: Linux 2, Pagetide 1; high: Linux 1, Pagetide 1"), "{text}");
        assert!(text.contains("\nvariant    high\n"), "{text}");
        assert!(
            text.contains("note: off by more than 1.5x: high t.p.pgmajfault 4.00x\n"),
            "{text}"
        );
    }
}
