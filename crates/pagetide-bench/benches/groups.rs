//! Cost of groups: reclaim over few and many groups, charging, creation, touches.
//!
//! Groups form chains of ten, each with a task, and together they need twice the memory of the
//! machine. Only the number of groups changes from line to line. Tasks take turns of 64 faults, as
//! many as one charge of a CPU's stock covers, so that a line does not measure the stock.
//!
//! Invariant: a line counts all pages freed by reclaim, for any task.

use criterion::measurement::WallTime;
use criterion::{criterion_group, BatchSize, Criterion};
use pagetide_bench::clock::{cpu_time, CpuTime};
use pagetide_bench::driver::{one_zone, Driver};
use pagetide_core::config::Config;
use pagetide_core::process::page_table::{Advice, VmaId};
use pagetide_core::process::Machine;
use pagetide_core::process::MmId;
use pagetide_core::stats::vmstat::Event;
use pagetide_core::stats::work::Work;
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::MemcgId;
use pagetide_sim::cost::CostModel;
use std::hint::black_box;
use std::time::Duration;

const DEPTH: usize = 10;
const TURN: u64 = 64;
const COUNTS: [usize; 4] = [1, 10, 100, 1000];

#[derive(Clone, Copy, PartialEq)]
enum PageKind {
    File,
    Anonymous,
}

#[derive(Clone, Copy, PartialEq)]
enum BenchReclaimer {
    Kswapd,
    Direct,
}

/// A full machine with tasks that need more memory.
struct Crowd {
    driver: Driver,
    tasks: Vec<(MmId, VmaId)>,
    pages: u64,
    turn: usize,
    /// Page of each mapping that the next turn starts with.
    from: u64,
    at: u64,
    kind: PageKind,
    by: BenchReclaimer,
    /// Time in which pages were reclaimed.
    spent: Duration,
}

/// A chain of groups below the root.
fn chain(machine: &mut Machine, depth: usize) -> Vec<MemcgId> {
    let mut parent = Machine::ROOT;
    let mut groups = Vec::new();
    for _ in 0..depth {
        parent = machine.create_memcg("g".into(), parent).expect("there are few groups");
        groups.push(parent);
    }
    groups
}

impl Crowd {
    fn new(memory: u64, groups: usize, kind: PageKind, by: BenchReclaimer) -> Crowd {
        let total = 2 * (memory / 4096);
        let config = Config { page_cluster: 0, ..Config::default() };
        let mut driver = Driver::new(one_zone(memory), config);
        if kind == PageKind::Anonymous {
            driver.executor.manager.swapon(SwapOptions::new(2 * total as u32));
        }
        let pages = total / groups as u64;
        let mut tasks = Vec::new();
        while tasks.len() < groups {
            // One group means the root, as in a machine without groups.
            let members = match groups {
                1 => vec![Machine::ROOT],
                _ => chain(&mut driver.executor.manager, DEPTH),
            };
            for memcg in members {
                driver.mm = driver.executor.manager.create_mm(memcg).unwrap();
                let map = match kind {
                    PageKind::File => driver.map_sparse_file(pages, Advice::Random),
                    PageKind::Anonymous => driver.map_anon(pages),
                };
                tasks.push((driver.mm, map));
            }
        }
        driver.executor.daemons_paused = true;
        let (turn, from, at, spent) = (0, 0, 0, Duration::ZERO);
        let mut crowd = Crowd { driver, tasks, pages, turn, from, at, kind, by, spent };
        crowd.reclaim(2 * total);
        crowd
    }

    /// The next access of the current task.
    fn access(&mut self) {
        let (mm, map) = self.tasks[self.turn];
        self.driver.mm = mm;
        self.driver.access(map, self.at, self.kind == PageKind::Anonymous);
        self.at += 1;
        if self.at == self.pages.min(self.from + TURN) {
            self.turn += 1;
            if self.turn == self.tasks.len() {
                self.turn = 0;
                self.from = if self.at == self.pages { 0 } else { self.at };
            }
            self.at = self.from;
        }
    }

    fn reclaimed(&self) -> u64 {
        let count = |event| self.driver.executor.manager.mem.vmstat.get(event);
        count(Event::PgstealKswapd) + count(Event::PgstealDirect)
    }

    /// Runs until this many pages have been reclaimed. Returns the exact number.
    fn reclaim(&mut self, pages: u64) -> u64 {
        let before = self.reclaimed();
        let mut begin = cpu_time();
        while self.reclaimed() - before < pages {
            for _ in 0..TURN {
                self.access();
                if self.by == BenchReclaimer::Kswapd && self.driver.kswapd_is_awake() {
                    begin = cpu_time();
                    self.driver.balance();
                    self.spent += cpu_time() - begin;
                }
            }
        }
        if self.by == BenchReclaimer::Direct {
            self.spent += cpu_time() - begin;
        }
        self.reclaimed() - before
    }
}

/// Time per reclaimed page: kswapd's own, or the time of faults that reclaim directly.
fn reclaim(criterion: &mut Criterion<CpuTime>) {
    for (mebibytes, by, kind, name) in [
        (1024, BenchReclaimer::Kswapd, PageKind::File, "1_GiB/kswapd/file"),
        (1024, BenchReclaimer::Kswapd, PageKind::Anonymous, "1_GiB/kswapd/anonymous"),
        (1024, BenchReclaimer::Direct, PageKind::File, "1_GiB/direct/file"),
        (1024, BenchReclaimer::Direct, PageKind::Anonymous, "1_GiB/direct/anonymous"),
        (8192, BenchReclaimer::Kswapd, PageKind::File, "8_GiB/kswapd/file"),
    ] {
        let mut group = criterion.benchmark_group(format!("reclaimed_page/{name}"));
        for groups in COUNTS {
            // Built on first use: a filtered run does not wait for the others.
            let mut crowd = None;
            group.bench_function(format!("{groups}"), |bencher| {
                let crowd =
                    crowd.get_or_insert_with(|| Crowd::new(mebibytes << 20, groups, kind, by));
                bencher.iter_custom(|pages| {
                    crowd.spent = Duration::ZERO;
                    let reclaimed = crowd.reclaim(pages.max(10_000));
                    crowd.spent.mul_f64(pages as f64 / reclaimed as f64)
                });
            });
        }
        group.finish();
    }
}

/// First touch of 4096 pages and unmapping, by depth of the group that is charged.
fn charge(criterion: &mut Criterion<CpuTime>) {
    let mut group = criterion.benchmark_group("first_touch_4096_pages_by_depth");
    for depth in [0, 1, DEPTH] {
        let mut driver = Driver::new(one_zone(1 << 30), Config::default());
        if let Some(&memcg) = chain(&mut driver.executor.manager, depth).last() {
            driver.mm = driver.executor.manager.create_mm(memcg).unwrap();
        }
        group.bench_function(format!("{depth}"), |bencher| {
            bencher.iter(|| driver.touch_once(4096));
        });
    }
    group.finish();
}

/// A group that is created and removed among a thousand others.
fn create(criterion: &mut Criterion<CpuTime>) {
    let mut group = criterion.benchmark_group("create_and_remove_by_depth");
    for depth in [1, DEPTH] {
        let mut driver = Driver::new(one_zone(64 << 20), Config::default());
        let mut parent = Machine::ROOT;
        for _ in 0..100 {
            let chain = chain(&mut driver.executor.manager, DEPTH);
            parent = if depth == 1 { Machine::ROOT } else { chain[depth - 2] };
        }
        group.bench_function(format!("{depth}"), |bencher| {
            bencher.iter_batched(
                || "g".into(),
                |name| {
                    let memcg =
                        driver.executor.manager.create_memcg(name, parent).expect("there is room");
                    driver.executor.manager.remove_memcg(memcg).expect("it has no task").discard();
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// Touches of resident pages, as in the bench `machine`, by a task of a group.
fn touch(criterion: &mut Criterion<CpuTime>) {
    let mut group = criterion.benchmark_group("resident_touch_by_depth");
    for depth in [0, DEPTH] {
        let mut driver = Driver::new(one_zone(2 << 30), Config::default());
        if let Some(&memcg) = chain(&mut driver.executor.manager, depth).last() {
            driver.mm = driver.executor.manager.create_mm(memcg).unwrap();
        }
        let pages = 2_048;
        let heap = driver.map_anon(pages);
        for page in 0..pages {
            driver.access(heap, page, true);
        }
        let mut at = 0u64;
        group.bench_function(format!("{depth}"), |bencher| {
            bencher.iter(|| {
                at = at.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                black_box(driver.executor.manager.touch(heap, (at >> 33) % pages, true))
            });
        });
    }
    group.finish();
}

/// The simulated cost of the same reclaim: counts of work, and the cost model's time.
fn simulated() {
    println!("kswapd in virtual time, per reclaimed page");
    for (mebibytes, kind, name) in [
        (1024, PageKind::File, "1 GiB, file"),
        (1024, PageKind::Anonymous, "1 GiB, anonymous"),
        (8192, PageKind::File, "8 GiB, file"),
    ] {
        for groups in COUNTS {
            let mut crowd = Crowd::new(mebibytes << 20, groups, kind, BenchReclaimer::Kswapd);
            crowd.driver.daemon_work = Work::default();
            let pages = crowd.reclaim(200_000) as f64;
            let work = crowd.driver.daemon_work;
            println!(
                "{name}, {groups:4} groups: {:5.0} ns, {:.3} pages scanned, {:.3} lruvecs visited",
                CostModel::SERVER.cost(&work) as f64 / pages,
                f64::from(work.pages_scanned) / pages,
                f64::from(work.lruvecs_visited) / pages,
            );
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .with_measurement(CpuTime)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = reclaim, charge, create, touch
}

fn main() {
    // `--simulated`: only the counts, without a clock.
    if std::env::args().any(|argument| argument == "--simulated") {
        simulated();
        return;
    }
    benches();
    Criterion::<WallTime>::default().configure_from_args().final_summary();
}
