//! The heading above the table: enough to repeat the run, in a few lines.

use crate::format::{shown, size};
use crate::report::Report;
use pagetide_core::config::PolicyChoice;
use pagetide_core::control::GroupControlWrite;
use pagetide_scenario::model::costs::{MachineCosts, Price};
use pagetide_scenario::model::{DiskSetup, MachineSetup, PageSize, Setup, Variant};
use pagetide_scenario::names::NameSet;
use pagetide_scenario::record::Unit;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The heading of `report`, lines of at most `width` characters where words allow.
pub fn render(report: &Report, width: usize) -> String {
    let mut heading = Heading { text: String::new(), width };
    for (label, items) in entries(report) {
        heading.entry(label, &items);
    }
    heading.text
}

/// The heading as labels with their items; each item is on its own line.
pub fn entries(report: &Report) -> Vec<(&'static str, Vec<String>)> {
    let scenario = &report.plan.scenario;
    let mut name = scenario.name.clone();
    if !scenario.title.is_empty() && scenario.title != scenario.name {
        write!(name, ": {}", scenario.title).expect("writing to a string");
    }
    let mut entries = vec![
        ("scenario", vec![name]),
        ("version", vec![format!("pagetide {}", report.version)]),
        ("seeds", vec![seeds(report)]),
    ];
    if let Some(first) = scenario.variants.first() {
        entries.push(("machine", vec![machine(&first.setup.machine)]));
        let kernel = first.setup.policies.kernel();
        let kernel = kernel
            .filter(|_| scenario.variants.iter().all(|it| it.setup.policies.kernel() == kernel));
        entries.extend(kernel.map(|kernel| ("kernel", vec![kernel.name().to_owned()])));
    }
    let stated = scenario.variants.first().and_then(|first| costs(&first.setup.machine.costs));
    entries.extend(stated.map(|stated| ("costs", vec![stated])));
    if !report.plan.overrides.is_empty() {
        let set: Vec<String> =
            report.plan.overrides.iter().map(|(key, value)| format!("{key}={value}")).collect();
        entries.push(("set", vec![set.join(", ")]));
    }
    if scenario.variants.len() > 1 {
        entries.push(("variants", variant_settings(report)));
    }
    if let Some(reference) = &scenario.reference {
        entries.push(("published", vec![reference.source.clone()]));
    }
    entries
}

struct Heading {
    text: String,
    width: usize,
}

impl Heading {
    fn entry(&mut self, label: &str, items: &[String]) {
        const LABEL: usize = 11;
        let mut label = label;
        for item in items {
            let indent = if items.len() > 1 { "  " } else { "" };
            for (i, line) in wrap(item, self.width - LABEL - indent.len()).iter().enumerate() {
                let indent = if i > 0 { indent } else { "" };
                writeln!(self.text, "{label:<LABEL$}{indent}{line}").expect("writing to a string");
                label = "";
            }
        }
    }
}

/// Lines of at most `width` characters, broken at blanks.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("never empty");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Most seeds that are listed if they are not consecutive.
const SEEDS_NAMED: usize = 12;

fn seeds(report: &Report) -> String {
    let seeds = report.plan.seeds();
    let (first, last) = (seeds.start(), seeds.end());
    let samples = report.columns.iter().flat_map(|column| column.series.values());
    let seen: BTreeSet<u64> =
        samples.flat_map(|series| &series.samples).map(|sample| sample.seed).collect();
    let mut text = match report.plan.scenario.repeats {
        // Users of the library may choose any seeds.
        repeats if seen.iter().any(|seed| !seeds.contains(seed)) => {
            let mut some: Vec<String> = seen.iter().take(SEEDS_NAMED).map(u64::to_string).collect();
            if seen.len() > SEEDS_NAMED {
                some.push("...".to_owned());
            }
            format!("{} ({repeats} repeats)", some.join(", "))
        }
        1 => format!("{first} (1 run a variant)"),
        repeats => format!("{first} to {last} ({repeats} repeats)"),
    };
    let repeats = report.plan.scenario.repeats as usize;
    for column in report.columns.iter().filter(|column| column.finished < repeats) {
        write!(text, ", {}: {} finished", column.name, column.finished)
            .expect("writing to a string");
    }
    text
}

/// `2 CPUs, 2 GiB, sda (rotating), 4 GiB swap on sda`.
pub fn machine(machine: &MachineSetup) -> String {
    let mut parts = vec![match machine.cpus {
        1 => "1 CPU".to_owned(),
        n => format!("{n} CPUs"),
    }];
    if machine.page_size != PageSize::default() {
        parts.push(format!("pages of {}", size(machine.page_size.bytes())));
    }
    let memory: Vec<u64> = machine
        .nodes
        .iter()
        .map(|node| match node.zones.as_slice() {
            [] => node.memory,
            zones => zones.iter().map(|zone| machine.page_size.bytes_of(zone.managed)).sum(),
        })
        .collect();
    parts.push(match memory.as_slice() {
        [one] => size(*one),
        [first, rest @ ..] if rest.iter().all(|m| m == first) => {
            format!("{} nodes of {}", memory.len(), size(*first))
        }
        nodes => {
            let sizes: Vec<String> = nodes.iter().map(|m| size(*m)).collect();
            format!("nodes of {}", sizes.join(" + "))
        }
    });
    for disk in &machine.disks {
        parts.push(format!("{} ({})", disk.name, self::disk(disk)));
    }
    for (swap, priority) in machine.swap.iter().zip(machine.swap_priorities()) {
        let disk = machine.disks.get(swap.disk).filter(|_| swap.zram.is_none());
        let on = match (&swap.zram, disk) {
            (Some(zram), _) => format!(" in zram ({})", zram.algorithm.name()),
            (None, Some(disk)) => format!(" on {}", disk.name),
            (None, None) => String::new(),
        };
        parts.push(match machine.swap.len() {
            1 => format!("{} swap{on}", size(swap.size)),
            _ => format!("{} swap{on} (priority {priority})", size(swap.size)),
        });
    }
    if let Some(zswap) = &machine.zswap {
        let (name, percent) = (zswap.compressor.name(), zswap.max_pool_percent);
        parts.push(format!("zswap ({name}, {percent} % of memory)"));
    }
    if machine.swap.is_empty() {
        parts.push("no swap".to_owned());
    }
    parts.join(", ")
}

/// `ssd; reads p50 90.00 us, p99 800.0 us, p99.9 4.000 ms`: the model, and latencies that differ
/// from the model's.
fn disk(disk: &DiskSetup) -> String {
    let time = |ns: u64| shown(Unit::Seconds, ns as f64 / 1e9);
    let stated = [
        ("reads", disk.read_latency_ns, &disk.read_shape),
        ("writes", disk.write_latency_ns, &disk.write_shape),
    ];
    let stated = stated.into_iter().filter_map(|(what, mean, shape)| {
        let mean = mean?;
        let Some(shape) = shape else { return Some(format!("{what} {}", time(mean))) };
        let shape = shape.with_mean(mean);
        let at = |(name, ppm)| format!("{name} {}", time(shape.quantile(ppm)));
        let marks = [("p50", 500_000), ("p99", 990_000), ("p99.9", 999_000)].map(at);
        Some(format!("{what} {}", marks.join(", ")))
    });
    std::iter::once(disk.model.name().to_owned()).chain(stated).collect::<Vec<_>>().join("; ")
}

/// The stated costs, if any: by name, or their number.
pub fn costs(costs: &MachineCosts) -> Option<String> {
    /// More are only counted.
    const NAMED: usize = 4;
    let stated: Vec<String> =
        costs.iter().map(|(price, ns)| format!("{} {ns} ns", price.name())).collect();
    match stated.len() {
        0 => None,
        1..=NAMED => Some(format!("{}; all others from the sourced table", stated.join(", "))),
        n => {
            Some(format!("{n} of {} costs stated, the others from the sourced table", Price::COUNT))
        }
    }
}

/// One line per variant: the settings that are not common to all variants.
fn variant_settings(report: &Report) -> Vec<String> {
    let variants = &report.plan.scenario.variants;
    let settings: Vec<Vec<String>> = variants.iter().map(|v| settings(&v.setup)).collect();
    let shared = |setting: &String| settings.iter().all(|all| all.contains(setting));
    let first = &variants[0].setup;
    variants
        .iter()
        .zip(&settings)
        .map(|(variant, own)| {
            let mut own: Vec<String> = own.iter().filter(|s| !shared(s)).cloned().collect();
            let setup = &variant.setup;
            let same_costs =
                MachineSetup { costs: first.machine.costs.clone(), ..setup.machine.clone() };
            if same_costs != first.machine {
                own.push(format!("machine: {}", machine(&setup.machine)));
            }
            if setup.tasks != first.tasks || setup.files != first.files {
                own.extend(load(variant, &variants[0].name));
            }
            let what = if own.is_empty() { "as described".to_owned() } else { own.join(", ") };
            format!("{}: {what}", variant.name)
        })
        .collect()
}

/// Settings of a variant whose tasks or files differ from those of the variant `first`.
fn load(variant: &Variant, first: &str) -> Vec<String> {
    let is_load = |key: &str| ["task.", "file.", "watcher."].iter().any(|it| key.starts_with(it));
    let said = variant.sets.iter().filter(|(key, _)| is_load(key));
    // As for `--set`: without quotes.
    let plain = |value: &str| {
        let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        inner.filter(|inner| !inner.contains('"')).unwrap_or(value).to_owned()
    };
    let said: Vec<String> = said.map(|(key, value)| format!("{key}={}", plain(value))).collect();
    // The tasks may differ because of the machine, or because `first` sets something.
    if said.is_empty() {
        vec![format!("other tasks or files than {first}")]
    } else {
        said
    }
}

fn settings(setup: &Setup) -> Vec<String> {
    let sysctls = setup.sysctls.iter();
    let mut all: Vec<String> = sysctls.map(|write| format!("{}={write}", write.name())).collect();
    let kernel = setup.policies.kernel();
    all.extend(kernel.map(|kernel| format!("policy.kernel={kernel}")));
    let is_of_kernel =
        |choice: &PolicyChoice| kernel.is_some_and(|kernel| kernel.choices().contains(choice));
    let policies = setup.policies.iter().filter(|choice| !is_of_kernel(choice));
    all.extend(policies.map(|choice| format!("policy.{}={choice}", choice.policy().name())));
    all.extend(setup.plugins.iter().map(|(kind, name)| format!("policy.{kind}={name}")));
    let costs = setup.machine.costs.iter();
    all.extend(costs.map(|(price, ns)| format!("machine.costs.{}={ns}ns", price.name())));
    for group in &setup.groups {
        let controls = group.controls.iter();
        let name = |write: &GroupControlWrite| write.control.name();
        all.extend(controls.map(|write| format!("{}/{}={write}", group.name, name(write))));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::report_of;
    use pagetide_core::config::{ControlValue, PolicySet, Sysctl};
    use pagetide_core::control::ControlWrite;
    use pagetide_scenario::model::{File, Reference, Swap};
    use pagetide_scenario::names::DiskModel;

    #[test]
    fn everything_needed_to_repeat_the_run() {
        let mut report = report_of(&[("default", vec![&[], &[]]), ("case1", vec![&[]])]);
        let scenario = &mut report.plan.scenario;
        scenario.reference =
            Some(Reference { source: "a mail of 2011".to_owned(), values: Default::default() });
        for variant in &mut scenario.variants {
            variant.setup.sysctls =
                vec![ControlWrite::Sysctl(Sysctl::Swappiness, ControlValue::Number(60))];
            let machine = &mut variant.setup.machine;
            machine.disks.push(DiskSetup::new("sda", DiskModel::Rotating));
            let area =
                Swap { disk: 0, size: 4 << 30, full_after_pages: None, priority: None, zram: None };
            machine.swap = vec![area];
        }
        scenario.variants[1]
            .setup
            .sysctls
            .push(ControlWrite::Sysctl(Sysctl::WmarkLowKbytes, ControlValue::Number(16384)));
        report.plan.overrides = vec![("machine.memory".to_owned(), "2G".to_owned())];
        let version = crate::VERSION;
        assert_eq!(
            render(&report, 100),
            format!(
                "scenario   fake: A world that is not there\n\
                 version    pagetide {version}\n\
                 seeds      1 to 2 (2 repeats), case1: 1 finished\n\
                 machine    2 CPUs, 2 GiB, sda (rotating), 4 GiB swap on sda\n\
                 set        machine.memory=2G\n\
                 variants   default: as described\n           \
                            case1: vm.wmark_low_kbytes=16384\n\
                 published  a mail of 2011\n"
            )
        );
    }

    #[test]
    fn a_kernel_is_named_once() {
        let mut report = report_of(&[("default", vec![&[]]), ("old", vec![&[]])]);
        assert!(!render(&report, 100).contains("kernel"), "Linux 6.1 needs no line");
        let variants = &mut report.plan.scenario.variants;
        variants[1].setup.policies.follow(PolicySet::Linux33);
        assert!(render(&report, 100).contains("  old: policy.kernel=linux-3.3\n"));
        report.plan.scenario.variants[0].setup.policies.follow(PolicySet::Linux33);
        let text = render(&report, 100);
        assert!(text.contains("\nkernel     linux-3.3\n"), "{text}");
        assert!(text.contains("  old: as described\n"), "{text}");
    }

    #[test]
    fn latencies_that_are_not_the_models_are_stated() {
        let disk = |latency: &str| {
            let text = format!(
                "[machine]\nmemory = \"64MiB\"\n[[machine.disk]]\nname = \"d\"\nmodel = \"ssd\"\n\
                 {latency}\n[[task]]\nname = \"t\"\nworkload = \"sleep\"\nduration = \"1s\"\n"
            );
            let machine = super::machine(&pagetide_testing::setup(&text).machine);
            let disk = machine.strip_prefix("1 CPU, 64 MiB, d (").unwrap();
            disk.strip_suffix("), no swap").unwrap().to_owned()
        };
        assert_eq!(disk(""), "ssd");
        assert_eq!(disk("write_latency = \"2ms\""), "ssd; writes 2.000 ms");
        let spread = "read_latency = { p50 = \"90us\", p99 = \"800us\", p999 = \"4ms\" }";
        assert_eq!(disk(spread), "ssd; reads p50 90.00 us, p99 800.0 us, p99.9 4.000 ms");
    }

    #[test]
    fn several_swap_areas_say_their_priorities() {
        let mut machine = report_of(&[("default", vec![&[]])]).plan.scenario.variants.remove(0);
        let area =
            Swap { disk: 9, size: 1 << 30, full_after_pages: None, priority: Some(5), zram: None };
        machine.setup.machine.swap = vec![area.clone(), Swap { priority: None, ..area }];
        let text = super::machine(&machine.setup.machine);
        assert!(text.ends_with("1 GiB swap (priority 5), 1 GiB swap (priority -2)"), "{text}");
    }

    #[test]
    fn a_variant_with_another_load_names_it() {
        let mut report =
            report_of(&[("default", vec![&[]]), ("small", vec![&[]]), ("new", vec![&[]])]);
        let variants = &mut report.plan.scenario.variants;
        let said = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        variants[1].sets = vec![said("machine.memory", "1GiB"), said("task.x.size", "\"50MiB\"")];
        for variant in &mut variants[1..] {
            variant.setup.files.push(File {
                name: "x".to_owned(),
                disk: 0,
                size: 1 << 20,
                sparse: false,
                metadata: false,
            });
        }
        let text = render(&report, 100);
        assert!(text.contains("  small: task.x.size=50MiB\n"), "{text}");
        assert!(text.contains("  new: other tasks or files than default\n"), "{text}");
    }

    #[test]
    fn stated_costs_are_printed() {
        let mut report = report_of(&[("default", vec![&[]]), ("dear", vec![&[]])]);
        assert!(!render(&report, 100).contains("costs"), "the table needs no line");
        for variant in &mut report.plan.scenario.variants {
            variant.setup.machine.costs.set(Price::Pte, 40);
        }
        report.plan.scenario.variants[1].setup.machine.costs.set(Price::Fault, 9000);
        let text = render(&report, 100);
        assert!(
            text.contains("costs      pte 40 ns; all others from the sourced table\n"),
            "{text}"
        );
        assert!(text.contains("dear: machine.costs.fault=9000ns\n"), "{text}");
        for price in Price::ALL {
            report.plan.scenario.variants[0].setup.machine.costs.set(price, 1);
        }
        let all = format!("costs      {0} of {0} costs stated", Price::COUNT);
        assert!(render(&report, 100).contains(&all));
    }

    #[test]
    fn long_lines_wrap_under_their_label() {
        let mut report = report_of(&[("a", vec![&[]])]);
        report.plan.scenario.title = "word ".repeat(30).trim().to_owned();
        let text = render(&report, 60);
        assert!(text.lines().all(|line| line.len() <= 60), "{text}");
        assert!(text.lines().nth(1).unwrap().starts_with("           word"));
    }
}
