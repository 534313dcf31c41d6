//! Charts of what programs notice: latency of requests, and time lost waiting for memory or
//! throttled for dirty pages.

use super::{before, choice, drop_zeros, figure, largest, Variant};
use crate::lines::{ChartAxis, ChartFigure, ChartLine};
use pagetide_scenario::record::timeline::{ServiceRow, TaskRow, TimelineSample};
use pagetide_scenario::record::Unit;

/// Latency of services.
pub fn services(all: &[Variant]) -> Option<ChartFigure> {
    let of = |name: &str, value: fn(&ServiceRow) -> u64| {
        choice(name, all, |variant| {
            let services = variant.timeline().services.iter().enumerate();
            let line = |(number, name): (usize, &String)| {
                let latency = |sample: &TimelineSample| {
                    let row = sample.services.get(number).filter(|row| row.requests > 0)?;
                    Some(value(row) as f64)
                };
                before(number, name, variant.each(latency))
            };
            services.take(crate::lines::MOST_LINES).map(line).collect()
        })
    };
    figure(
        "time-services",
        "Latency of services",
        "Longest and mean latency of the requests that ended in each sample.",
        ChartAxis::new("latency", Unit::Seconds).times(1e-9).log(),
        vec![
            of("the longest", |row| row.latency_max_ns),
            of("the mean", ServiceRow::latency_mean_ns),
        ],
    )
}

/// Time that tasks have waited for memory, or were throttled for dirty pages, so far.
pub fn stalls(all: &[Variant]) -> Option<ChartFigure> {
    const REASONS: [&str; TaskRow::STALLS.len()] = [
        "evicted pages (stall_refault)",
        "file pages read again (stall_reread)",
        "reclaiming (stall_reclaim)",
        "throttled in reclaim (stall_throttled)",
        "throttled above memory.high (stall_high)",
        "throttled by the machine's dirty limits (stall_dirty)",
        "throttled by its group's dirty limits (stall_dirty_group)",
    ];
    let of = |name: &str, value: &dyn Fn(&TaskRow) -> u64| {
        choice(name, all, |variant| {
            let tasks = &variant.timeline().tasks;
            let waited = |task: usize| {
                let rows = variant.samples().iter().filter_map(|sample| sample.tasks.get(task));
                rows.map(|row| row.stalled_ns.iter().sum::<u64>()).sum()
            };
            let line = |(number, task): (usize, usize)| {
                let ns = |sample: &TimelineSample| sample.tasks.get(task).map_or(0, value);
                before(number, &tasks[task], variant.so_far(ns))
            };
            let line = largest(0..tasks.len(), waited).into_iter().enumerate().map(line);
            line.collect::<Vec<ChartLine>>()
        })
    };
    let mut choices = vec![of("all waits for memory", &TaskRow::waited_ns)];
    choices.extend(
        REASONS
            .iter()
            .enumerate()
            .map(|(reason, name)| of(name, &move |row| row.stalled_ns[reason])),
    );
    drop_zeros(&mut choices);
    figure(
        "time-stalls",
        "Time lost to memory and to dirty limits",
        "Time that each task has waited so far, sum over its threads. A wait counts when it ends.",
        ChartAxis::new("waited so far", Unit::Seconds).times(1e-9),
        choices,
    )
}
