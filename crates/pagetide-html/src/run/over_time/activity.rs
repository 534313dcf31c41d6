//! Charts of kernel activity and its effects: reclaim, pressure, faults.

use super::memory::largest_groups;
use super::{before, choice, drop_zeros, figure, has_nonzero, largest, row, Variant};
use crate::lines::{ChartAxis, ChartChoice, ChartFigure, ChartLine};
use pagetide_scenario::record::timeline::GroupRow;
use pagetide_scenario::record::Unit;

/// Reclaim rates of kswapd and of tasks.
pub fn reclaim(all: &[Variant]) -> Option<ChartFigure> {
    let of = |name: &str, counts: [fn(&GroupRow) -> u64; 2]| {
        choice(name, all, |variant| {
            let line = |(number, who): (usize, &str)| {
                let count = counts[number];
                before(number, who, variant.rate(|sample| row(sample, 0).map(count)))
            };
            ["kswapd", "tasks (direct)"].into_iter().enumerate().map(line).collect()
        })
    };
    figure(
        "time-reclaim",
        "Reclaim by kswapd and tasks",
        "Pages that kswapd and tasks reclaim (pgsteal) and scan (pgscan).",
        ChartAxis::new("pages a second", Unit::Count),
        vec![
            of("reclaimed", [|row| row.counts.pgsteal_kswapd, |row| row.counts.pgsteal_direct]),
            of("scanned", [|row| row.counts.pgscan_kswapd, |row| row.counts.pgscan_direct]),
        ],
    )
}

/// Memory PSI.
pub fn pressure(all: &[Variant]) -> Option<ChartFigure> {
    let lines = |variant: &Variant, group: usize| {
        let share = |ns: fn(&GroupRow) -> u64| {
            let rate = variant.rate(|sample| row(sample, group).map(ns));
            rate.into_iter().map(|rate| rate.map(|ns| ns / 1e7)).collect::<Vec<_>>()
        };
        vec![
            before(0, "some", share(|row| row.some_ns)),
            before(1, "full", share(|row| row.full_ns)),
        ]
    };
    let mut groups: Vec<String> = Vec::new();
    for variant in all {
        for group in largest_groups(variant) {
            let name = &variant.timeline().groups[group];
            if !groups.contains(name) {
                groups.push(name.clone());
            }
        }
    }
    let of_group = |name: &String| {
        choice(format!("group {}", name.trim_start_matches('/')), all, |variant| {
            let group = variant.timeline().groups.iter().position(|it| it == name);
            group.map(|group| lines(variant, group)).unwrap_or_default()
        })
    };
    let machine = choice("the machine", all, |variant| lines(variant, 0));
    let choices: Vec<ChartChoice> = std::iter::once(machine)
        .chain(groups.iter().map(of_group))
        .filter(|choice| choice.panels.iter().flat_map(|panel| &panel.lines).any(has_nonzero))
        .collect();
    figure(
        "time-pressure",
        "Pressure (PSI)",
        "Share of time in which at least one task (some), or all non-idle tasks (full), waited for memory.",
        ChartAxis::new("of the time", Unit::Percent),
        choices,
    )
}

/// Major faults by task, and pages swapped in and out.
pub fn faults(all: &[Variant]) -> Option<ChartFigure> {
    const OF_MACHINE: [&str; 5] =
        ["pgmajfault", "pswpin", "pswpout", "workingset_refault_file", "workingset_refault_anon"];
    let machine = choice("the machine", all, |variant| {
        let rates = OF_MACHINE.iter().enumerate();
        rates
            .filter_map(|(number, name)| Some(before(number, name, variant.vmstat_rate(name)?)))
            .collect()
    });
    let tasks = choice("major faults by task", all, |variant| {
        let tasks = &variant.timeline().tasks;
        let count = |task: usize| {
            let rows = variant.samples().iter().filter_map(|sample| sample.tasks.get(task));
            rows.map(|row| row.pgmajfault).sum()
        };
        let line = |(number, task): (usize, usize)| {
            let of = |sample: &pagetide_scenario::record::timeline::TimelineSample| {
                sample.tasks.get(task).map(|row| row.pgmajfault)
            };
            before(number, &tasks[task], variant.rate(of))
        };
        largest(0..tasks.len(), count).into_iter().enumerate().map(line).collect::<Vec<ChartLine>>()
    });
    let mut choices = vec![machine, tasks];
    drop_zeros(&mut choices);
    figure(
        "time-faults",
        "Faults and swap",
        "Major faults, pages read from and written to swap, and refaults of evicted pages.",
        ChartAxis::new("a second", Unit::Count),
        choices,
    )
}
