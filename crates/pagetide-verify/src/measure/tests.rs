//! A fictional machine that performs the scenario like the simulator, with other costs. The costs
//! are measured, fitted, and written into a scenario.

use super::*;
use pagetide_lab::testing::record;
use pagetide_linux::host::scenario::{write, HostImportOptions};
use pagetide_linux::host::snapshot::HostSnapshot;
use pagetide_linux::host::zoneinfo;
use pagetide_linux::live::scenario::HostAbilities;
use pagetide_linux::reference::ReferenceOrigin;
use pagetide_scenario::metric::MetricKey;
use pagetide_scenario::record::{Metric, Unit};
use pagetide_sim::{count_work, PhaseWork};
use pagetide_testing::setup;

/// A machine of two CPUs and 2 GiB.
fn host() -> HostSnapshot {
    let zone = "Node 0, zone DMA32\n  pages free 400000\n  min 1000\n  low 2000\n  high 3000\n  present 524288\n  \
                managed 500000\n  cpu: 0\n  count: 5\n  cpu: 1\n  count: 5\n";
    HostSnapshot {
        release: Some("6.1.0-41-amd64".to_owned()),
        zones: zoneinfo::parse(zone).0,
        ..HostSnapshot::default()
    }
}

/// The costs of the machine: each lower than in the table, by different factors.
fn secret(price: Price) -> u64 {
    let factor = [0.5, 0.9, 0.7, 0.6][price as usize % 4];
    (CostModel::for_cpus(2)[price] as f64 * factor) as u64
}

/// The measurement of `runs` runs. In phase `odd` the kernel counts three times the scans; a phase
/// without reclaim is disturbed instead.
fn measured(able: HostAbilities, runs: u64, odd: Option<&str>) -> LiveMeasurement {
    let imported = setup(&write(&host(), HostImportOptions::default()).unwrap().text);
    let setup = able.setup(&imported, Some("6.1.0-41-amd64"));
    let mut theirs = setup.clone();
    for price in Price::ALL {
        theirs.machine.costs.set(price, secret(price));
    }
    let work = count_work(&theirs, SEED, &AtomicBool::new(false)).unwrap();
    let variant = Variant { name: "default".into(), sets: Vec::new(), setup: theirs.clone() };
    let plain = run(NAME, &variant, SEED, &RunOptions::default()).unwrap();
    let names = KeyNames::of(&setup);
    let records: Vec<RunRecord> = (0..runs)
        .map(|number| {
            let mut record = plain.clone();
            record.seed = number + 1;
            let mut put = |scope: Scope, name: &str, value: f64, unit| {
                let key = names.text(&MetricKey { scope, name: name.to_owned().into() });
                record.metrics.insert(key, Metric::new(value, unit));
            };
            for (at, of) in work.iter().enumerate() {
                let prices = Price::ALL.iter().map(|price| secret(*price) as f64 / 1e9);
                let seconds: f64 = of.own.iter().zip(prices).map(|(n, price)| n * price).sum();
                // One run is disturbed, and each differs by one per cent.
                let noise = (at as u64 * 7 + number * 13) % 5;
                let is_odd = odd == Some(format!("{}.{}", of.task, of.phase).as_str());
                let factor = match number {
                    0 => 1.8,
                    _ if is_odd && of.task == "files" => 1.0 + number as f64,
                    _ => 0.99 + noise as f64 / 200.0,
                };
                let scope = Scope::Phase { task: Owner::new(&of.task), phase: of.phase.clone() };
                put(scope.clone(), declared::CPU.name, seconds * factor, Unit::Seconds);
                let task = setup.tasks.iter().find(|task| task.name == of.task).unwrap();
                let Some(group) = task.group else { continue };
                let group = Owner::new(&setup.groups[group].name);
                let scope = scope.with_group(group);
                for (name, parts) in &COUNTED[1..] {
                    let part = |part: &&str| {
                        let part = (*part).to_owned().into();
                        value(&plain, &names.text(&MetricKey { scope: scope.clone(), name: part }))
                    };
                    let sum: f64 = parts.iter().filter_map(part).sum();
                    let is_odd = is_odd && *name == "pgscan";
                    put(scope.clone(), name, if is_odd { sum * 3.0 } else { sum }, Unit::Count);
                }
            }
            record
        })
        .collect();
    let origin = ReferenceOrigin::default();
    let reference = KernelReference::new(NAME, "default", origin, &names, &records);
    LiveMeasurement { setup, reference, left_out: vec!["a reason: it is made up".to_owned()] }
}

const ALL: HostAbilities = HostAbilities { kib: 512, groups: true, reclaim: true, files: true };

fn found(measured: &LiveMeasurement) -> MeasuredMachine {
    prices_of(measured, &Arc::new(AtomicBool::new(false))).unwrap()
}

#[test]
fn a_machine_s_prices_are_found_and_stated() {
    let found = found(&measured(ALL, 5, None));
    assert!(found.fitted.median_error() < 0.03, "{:?}", found.fitted.rows);
    for price in [Price::Hit, Price::PageCopy, Price::Syscall, Price::PageScan, Price::FsRequest] {
        let priced = found.prices.iter().find(|it| it.price == price).unwrap();
        let off = priced.ns as f64 / secret(price) as f64;
        assert!((0.7..1.4).contains(&off), "{}: {priced:?}, not {}", price.name(), secret(price));
        assert!(
            priced.low <= priced.ns && priced.ns < priced.high,
            "a run was disturbed: {priced:?}"
        );
    }
    for price in [Price::CompactScan, Price::ObjectScan, Price::CacheCreate] {
        assert!(found.prices.iter().all(|it| it.price != price), "{}", price.name());
    }
    assert!(found.counted.len() > 10 && found.counted.iter().all(|it| it.ratio == 1.0));
    let said = found.sentences().join("\n");
    for text in ["costs measured on this machine", "medians of 5 runs", "none is off", "a reason"] {
        assert!(said.contains(text), "{text:?} is not in {said}");
    }
    let stated = found.stated();
    let written =
        write(&host(), HostImportOptions { costs: Some(&stated), ..HostImportOptions::default() })
            .unwrap();
    let costs = setup(&written.text).machine.costs;
    let wanted: Vec<(Price, u64)> = found.prices.iter().map(|it| (it.price, it.ns)).collect();
    assert_eq!(costs.iter().collect::<Vec<_>>(), wanted);
    assert!(written.text.contains("# Not measured") && written.text.contains("compact_scan"));
}

#[test]
fn a_phase_with_other_kernel_counts_is_left_out() {
    let found = found(&measured(ALL, 3, Some("boxed.stream")));
    assert!(!found.fitted.rows.iter().any(|(what, _)| what == "boxed.stream"));
    let said = found.sentences().join("\n");
    assert!(
        said.contains("phases left out because the kernel counted boxed.stream pgscan 3.00 times"),
        "{said}"
    );
    assert!(found.fitted.median_error() < 0.03);
}

#[test]
fn a_disturbed_phase_gives_no_equation() {
    let found = found(&measured(ALL, 4, Some("files.cached64")));
    let unsteady: Vec<String> = found.unsteady.iter().map(Scope::short).collect();
    assert_eq!(unsteady, ["files.cached64"]);
    assert!(!found.fitted.rows.iter().any(|(what, _)| what == "files.cached64"));
    assert!(found.sentences().join("\n").contains("not steady: files.cached64"));
    assert!(found.fitted.median_error() < 0.03);
}

#[test]
fn without_groups_and_files_fewer_prices_are_stated() {
    let able = HostAbilities { groups: false, files: false, reclaim: false, ..ALL };
    let found = found(&measured(able, 3, None));
    let has = |price| found.prices.iter().any(|it| it.price == price);
    assert!(has(Price::Fault) && has(Price::PageZero) && !has(Price::PageScan) && !has(Price::Bio));
    let counted: Vec<_> = found.counted.iter().map(|it| (it.name, it.phase.short())).collect();
    let wanted = ["new", "refill", "refill-some"].map(|of| ("pgfault", format!("memory.{of}")));
    assert_eq!(counted, wanted, "the task's own faults");
}

#[test]
fn the_times_of_a_copy_are_its_own() {
    let names = KeyNames::of(&crate::testing::setup(&["web.0.fill"]));
    let record = |(seed, seconds)| record("v", seed, &[("web.0.fill.cpu", seconds)]);
    let records = [(1, 1.0), (2, 2.0), (3, 4.0)].map(record);
    let reference = KernelReference::new(NAME, "v", ReferenceOrigin::default(), &names, &records);
    let none = [0.0; Price::COUNT];
    let (task, phase) = ("web.0".to_owned(), "fill".to_owned());
    let own = [1.0; Price::COUNT];
    let work =
        PhaseWork { task, phase, uses_files_or_pipes: false, own, kswapd: none, flusher: none };
    let phase = Scope::Phase { task: Owner::new("web.0"), phase: "fill".to_owned() };
    assert_eq!(spread(&reference, &names, &rows(&reference, &names, &[work])), [(phase, 0.5)]);
}
