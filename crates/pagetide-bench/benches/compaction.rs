//! Compaction in the worst case, and blocks of order 9 from a fresh zone.
//!
//! `worst_case`: 16 GiB with every second page free, compacted from end to end like a write to
//! `vm.compact_memory`, with copies as calls (there are no bytes). The result is a throughput of
//! pages scanned by both scanners; cloning the setup is not timed. Also prints how many blocks of
//! order 9 are available afterwards, out of those that the free pages could form.
//!
//! `order_9_pair`: allocates and frees a block.
//!
//! Time is CPU time of the thread.

use criterion::{criterion_group, criterion_main, BatchSize, Throughput};
use pagetide_bench::clock::CpuTime;
use pagetide_core::config::Config;
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::frames::page_alloc::Memory;
use pagetide_core::interface::effect::{Effect, Step};
use pagetide_core::process::page_table::{Advice, Backing};
use pagetide_core::process::Machine;
use pagetide_core::process::MmId;
use pagetide_core::process::ProcessCall;
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::{Cpu, NodeId};
use std::hint::black_box;

type Criterion = criterion::Criterion<CpuTime>;

const CPU: Cpu = Cpu(0);
const NODE: NodeId = NodeId(0);

/// A machine of `gib` GiB with frames alternately in use and free.
fn fragmented(gib: u64) -> (Machine, MmId) {
    let node = NodeSpec::x86_64(gib << 30, 0, 0);
    let mut machine = Machine::new(&[node], 1, Config::default()).expect("the machine is valid");
    let mm = machine.create_mm(Machine::ROOT).unwrap();
    let pages = machine.mem.nr_free_pages() * 97 / 100;
    let vma = machine.mmap(mm, Backing::Anon, pages, Advice::Normal, false).unwrap();
    for page in 0..pages {
        let mut call = ProcessCall::fault(mm, NODE, vma, page, true);
        loop {
            let (step, effects) = machine.step(&mut call, CPU, 0);
            effects.discard();
            machine.take_work();
            if matches!(step, Step::Done(_)) {
                break;
            }
        }
    }
    for page in (0..pages).step_by(2) {
        machine.discard(vma, page, 1, CPU).unwrap().discard();
        machine.take_work();
    }
    machine.mem.drain_all();
    machine.take_work();
    (machine, mm)
}

/// Writes 1 to `vm.compact_memory`. Returns the pages scanned.
fn compact(machine: &mut Machine, mm: MmId) -> u64 {
    let mut call = ProcessCall::compact_memory(mm, NODE);
    let mut effects = Vec::new();
    loop {
        let (step, more) = machine.step(&mut call, CPU, 0);
        more.drain_into(&mut effects);
        machine.take_work();
        for effect in effects.drain(..) {
            if let Effect::CopyPage { from, .. } = effect {
                machine.copy_done(from, true, CPU).discard();
            }
        }
        if matches!(step, Step::Done(_)) {
            break;
        }
    }
    machine.take_work();
    let vmstat = &machine.mem.vmstat;
    vmstat.get(Event::CompactMigrateScanned) + vmstat.get(Event::CompactFreeScanned)
}

fn worst_case(c: &mut Criterion) {
    let mut group = c.benchmark_group("compaction");
    let (machine, mm) = fragmented(16);
    let mut once = machine.clone();
    let scanned = compact(&mut once, mm);
    once.mem.drain_all();
    let blocks = |machine: &Machine| -> u64 {
        machine.mem.nodes[0]
            .zones
            .iter()
            .map(|zone| zone.buddyinfo()[9] + 2 * zone.buddyinfo()[10])
            .sum()
    };
    let possible: u64 = once.mem.nodes[0].zones.iter().map(|zone| zone.free_pages() / 512).sum();
    eprintln!(
        "worst_case: {} blocks of order 9 before, {} of {possible} after; {scanned} pages scanned, {} moved",
        blocks(&machine),
        blocks(&once),
        once.mem.vmstat.get(Event::PgmigrateSuccess)
    );
    drop(once);
    group.sample_size(10);
    group.throughput(Throughput::Elements(scanned));
    group.bench_function("worst_case", |b| {
        b.iter_batched(
            || machine.clone(),
            |mut machine| {
                black_box(compact(&mut machine, mm));
                machine
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn order_9_pair(c: &mut Criterion) {
    let mut memory =
        Memory::new(&[NodeSpec::x86_64(16 << 30, 0, 0)], 1).expect("the machine is valid");
    let mut group = c.benchmark_group("compaction");
    group.bench_function("order_9_pair", |b| {
        b.iter(|| {
            let block = memory.alloc_fast(CPU, NODE, 9, Gfp::TRANSHUGE);
            let block = black_box(block).expect("all of memory is free");
            memory.free_page(CPU, block, 9);
            memory.work.take();
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = criterion::Criterion::default().with_measurement(CpuTime);
    targets = worst_case, order_9_pair
}
criterion_main!(benches);
