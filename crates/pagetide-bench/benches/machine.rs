//! The hot paths of the whole machine: a touch of a resident page, and a fault with reclaim.

use criterion::{criterion_group, criterion_main, Criterion};
use pagetide_bench::clock::CpuTime;
use pagetide_bench::driver::{one_zone, Driver};
use pagetide_core::config::Config;
use pagetide_core::process::page_table::Advice;
use pagetide_core::swap::SwapOptions;
use std::hint::black_box;

/// Touches of resident pages, in an order that defeats prefetchers.
fn touch(criterion: &mut Criterion<CpuTime>) {
    let mut group = criterion.benchmark_group("resident_touch");
    for (name, pages) in [("fits_the_cache", 2_048u64), ("1_GiB", 262_144)] {
        let mut driver = Driver::new(one_zone(2 << 30), Config::default());
        let heap = driver.map_anon(pages);
        for page in 0..pages {
            driver.access(heap, page, true);
        }
        let mut at = 0u64;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                at = at.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                black_box(driver.executor.manager.touch(heap, (at >> 33) % pages, true))
            });
        });
    }
    group.finish();
}

/// Faults in a full machine: every allocated page is reclaimed from another one.
fn fault_with_reclaim(criterion: &mut Criterion<CpuTime>) {
    let mut group = criterion.benchmark_group("fault_with_reclaim");
    let memory = 256 << 20;
    let pages = 2 * (memory / 4096);
    for (name, advice) in [("mapped_file_random", Advice::Random), ("mapped_file", Advice::Normal)]
    {
        let mut driver = Driver::new(one_zone(memory), Config::default());
        let map = driver.map_sparse_file(pages, advice);
        for page in 0..pages {
            driver.access(map, page, false);
        }
        let mut at = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                // The next unmapped page, so that every iteration faults.
                while !driver.access(map, at, false) {
                    at = (at + 1) % pages;
                }
                at = (at + 1) % pages;
            });
        });
    }
    let mut driver = Driver::new(one_zone(memory), Config { page_cluster: 0, ..Config::default() });
    driver.executor.manager.swapon(SwapOptions::new(pages as u32));
    let heap = driver.map_anon(pages);
    for page in 0..pages {
        driver.access(heap, page, true);
    }
    let mut at = 0;
    group.bench_function("anonymous_with_swap", |bencher| {
        bencher.iter(|| {
            while !driver.access(heap, at, true) {
                at = (at + 1) % pages;
            }
            at = (at + 1) % pages;
        });
    });
    group.finish();
}

/// The same faults on machines from 1 GiB to 64 GiB that use only 256 MiB of their memory: the
/// remaining effect of the size is the cost of the tables.
fn flat(criterion: &mut Criterion<CpuTime>) {
    let mut group = criterion.benchmark_group("first_touch_by_machine_size");
    for gib in [1u64, 8, 64] {
        let mut driver = Driver::new(one_zone(gib << 30), Config::default());
        group.bench_function(format!("{gib}_GiB"), |bencher| {
            bencher.iter(|| driver.touch_once(4096));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CpuTime).sample_size(20);
    targets = touch, fault_with_reclaim, flat
}
criterion_main!(benches);
