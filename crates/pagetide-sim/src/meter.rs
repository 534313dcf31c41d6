//! Converts operations into CPU time, and optionally counts them per task and daemon.
//!
//! Invariant: counting does not change the run. The CPU time of a thread is the cost of its counts,
//! plus its own computation and the system calls on files and pipes that have a fixed time.

use crate::cost::{counts, CostModel};
use pagetide_core::stats::work::Work;
use pagetide_core::units::{Cpu, Nanos, PAGE_SIZE};
use pagetide_scenario::model::costs::Price;

/// Number of operations by [`Price`]; for [`Price::PageCopy`] the number of bytes.
pub(crate) type OperationCounts = [u64; Price::COUNT];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChargedThread {
    Task(usize),
    Kswapd,
    Flusher,
    Other,
}

#[derive(Debug)]
pub(crate) struct CostMeter {
    model: CostModel,
    /// Costs by kind of work, if each fits 32 bits ([`CostMeter::sum`]).
    of_kinds: Option<[u64; Work::FIELDS]>,
    /// Every allocated page is cleared, even without __GFP_ZERO (Linux `init_on_alloc`).
    init_on_alloc: bool,
    cpu: usize,
    tallies: Option<Box<Tallies>>,
}

#[derive(Debug)]
struct Tallies {
    /// Operations on each CPU not yet charged to a thread: of the current time slice and of
    /// interrupts before it.
    pending: Vec<OperationCounts>,
    tasks: Vec<OperationCounts>,
    kswapd: OperationCounts,
    flusher: OperationCounts,
}

impl CostMeter {
    /// A meter that does not count.
    pub(crate) fn new(model: CostModel) -> CostMeter {
        let of_kinds = model.of_kinds();
        CostMeter { model, of_kinds, init_on_alloc: false, cpu: 0, tallies: None }
    }

    pub(crate) fn with_init_on_alloc(mut self, on: bool) -> CostMeter {
        self.init_on_alloc = on;
        self
    }

    /// Starts to count, for this number of tasks and CPUs.
    pub(crate) fn count(&mut self, tasks: usize, cpus: usize) {
        let none = [0; Price::COUNT];
        let pending = vec![none; cpus];
        let tallies = Tallies { pending, tasks: vec![none; tasks], kswapd: none, flusher: none };
        self.tallies = Some(Box::new(tallies));
    }

    /// Sets the CPU of the next operations. They are charged to the next thread there.
    pub(crate) fn at(&mut self, cpu: Cpu) {
        self.cpu = cpu.idx();
    }

    pub(crate) fn work(&mut self, mut work: Work) -> Nanos {
        if self.init_on_alloc {
            work.pages_allocated_zeroed = work.pages_allocated;
        }
        if let Some(tallies) = &mut self.tallies {
            let (counts, bytes) = counts(&work);
            for (price, count) in counts {
                tallies.pending[self.cpu][price as usize] += u64::from(count);
            }
            tallies.pending[self.cpu][Price::PageCopy as usize] += u64::from(bytes);
        }
        self.sum(&work)
    }

    /// Same result as [`CostModel::cost`], but vectorized, because it runs for every step. If costs
    /// fit 32 bits and counts 22 bits, the sum cannot overflow; otherwise it uses
    /// [`CostModel::cost`].
    #[inline]
    fn sum(&self, work: &Work) -> Nanos {
        let Some(prices) = &self.of_kinds else { return self.model.cost(work) };
        let (all, sum) = weigh(&work.counts(), prices);
        if all >= 1 << 22 {
            return self.model.cost(work);
        }
        match work.bytes_copied {
            0 => sum,
            bytes => sum + u64::from(bytes) * self.model[Price::PageCopy] / PAGE_SIZE,
        }
    }

    /// CPU time of `count` operations that the core does not count.
    pub(crate) fn charge(&mut self, price: Price, count: u64) -> Nanos {
        if let Some(tallies) = &mut self.tallies {
            tallies.pending[self.cpu][price as usize] += count;
        }
        self.model[price] * count
    }

    /// CPU time of an access, excluding a fault.
    #[inline]
    pub(crate) fn access(&mut self) -> Nanos {
        if let Some(tallies) = &mut self.tallies {
            tallies.pending[self.cpu][Price::Hit as usize] += 1;
            tallies.pending[self.cpu][Price::UserAccess as usize] += 1;
        }
        self.model.access_ns()
    }

    /// Time from a wake-up until the woken thread runs on an idle CPU.
    pub(crate) fn wake_up(&self) -> Nanos {
        self.model[Price::Wakeup] + self.model[Price::IdleExit]
    }

    /// Charges the pending operations of the CPU to a thread that has run.
    pub(crate) fn ran(&mut self, who: ChargedThread) {
        let Some(tallies) = &mut self.tallies else { return };
        let Tallies { pending, tasks, kswapd, flusher } = &mut **tallies;
        let counts = match who {
            ChargedThread::Task(task) => tasks.get_mut(task),
            ChargedThread::Kswapd => Some(kswapd),
            ChargedThread::Flusher => Some(flusher),
            ChargedThread::Other => None,
        };
        let done = std::mem::replace(&mut pending[self.cpu], [0; Price::COUNT]);
        for (count, new) in counts.into_iter().flatten().zip(done) {
            *count += new;
        }
    }

    /// Operations so far of a task, of all kswapds and of the flusher. Includes the current time
    /// slice of the task, which must run on the current CPU.
    pub(crate) fn of_task(&self, task: usize) -> Option<[OperationCounts; 3]> {
        let tallies = self.tallies.as_ref()?;
        let mut counts = *tallies.tasks.get(task)?;
        for (count, new) in counts.iter_mut().zip(&tallies.pending[self.cpu]) {
            *count += new;
        }
        Some([counts, tallies.kswapd, tallies.flusher])
    }
}

/// Bitwise OR of the counts, and their total cost.
#[inline]
fn weigh(counts: &[u32], prices: &[u64]) -> (u32, Nanos) {
    // The compiler vectorizes the loop only if it does not know the length.
    let each = std::hint::black_box(counts).iter().zip(prices);
    each.fold((0, 0), |(all, sum): (u32, u64), (&count, &price)| {
        // SIMD units multiply several pairs of 32 bits at once.
        let price = price & u64::from(u32::MAX);
        (all | count, sum.wrapping_add(u64::from(count).wrapping_mul(price)))
    })
}

/// Converts counts to numbers of operations; copies are in units of 4 KiB.
pub(crate) fn operations(counts: &OperationCounts) -> [f64; Price::COUNT] {
    let mut operations = counts.map(|count| count as f64);
    operations[Price::PageCopy as usize] /= PAGE_SIZE as f64;
    operations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_costs_what_was_charged() {
        let model = CostModel::for_cpus(2);
        let mut meter = CostMeter::new(model.clone());
        meter.count(2, 2);
        let work = Work { faults: 3, bytes_copied: 8192, tlb_flushes: 2, ..Work::default() };
        let mut charged = meter.work(work) + meter.charge(Price::Syscall, 2) + meter.access();
        let [own, kswapd, _] = meter.of_task(1).unwrap();
        assert_eq!(
            (own[Price::Fault as usize], kswapd),
            (3, [0; Price::COUNT]),
            "the current time slice"
        );
        meter.ran(ChargedThread::Task(1));
        meter.work(work);
        meter.ran(ChargedThread::Other);
        charged += meter.work(work);
        meter.ran(ChargedThread::Kswapd);
        let [own, kswapd, _] = meter.of_task(1).unwrap().map(|counts| operations(&counts));
        let price = |at: usize| model[Price::ALL[at]] as f64;
        let cost: f64 = (0..Price::COUNT).map(|at| (own[at] + kswapd[at]) * price(at)).sum();
        assert_eq!(cost, charged as f64);
        assert_eq!(meter.of_task(0).unwrap()[0], [0; Price::COUNT]);
        // Each allocated page is cleared once, with or without __GFP_ZERO; later clears are extra.
        let mut clears = CostMeter::new(model.clone()).with_init_on_alloc(true);
        let pages = Work {
            pages_allocated: 8,
            pages_allocated_zeroed: 5,
            pages_zeroed: 1,
            ..Work::default()
        };
        assert_eq!(clears.work(pages), 8 * model[Price::PageAlloc] + 9 * model[Price::PageZero]);
        assert_eq!(meter.work(pages), 8 * model[Price::PageAlloc] + 6 * model[Price::PageZero]);
        meter.ran(ChargedThread::Other);
        // An interrupt of another CPU is not charged to the thread that runs here.
        meter.at(Cpu(1));
        meter.charge(Price::IoCompletion, 7);
        meter.at(Cpu(0));
        meter.ran(ChargedThread::Task(0));
        assert_eq!(meter.of_task(0).unwrap()[0], [0; Price::COUNT]);
        meter.at(Cpu(1));
        meter.ran(ChargedThread::Task(0));
        assert_eq!(meter.of_task(0).unwrap()[0][Price::IoCompletion as usize], 7);
        assert_eq!(CostMeter::new(model).of_task(0), None);
    }

    #[test]
    fn the_sum_side_by_side_is_the_model_s_cost() {
        let model = CostModel::for_cpus(2);
        let meter = CostMeter::new(model.clone());
        let mut seed = 1u64;
        let mut draw = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((u128::from(seed) * u128::from(below)) >> 64) as u32
        };
        for below in [2, 100, 1 << 22, 1 << 26] {
            let work = Work {
                faults: draw(below),
                pages_scanned: draw(below),
                tlb_flushes: draw(below),
                bytes_copied: draw(below),
                writebacks: draw(below),
                ..Work::default()
            };
            assert_eq!(meter.sum(&work), model.cost(&work), "{work:?}");
        }
        // A cost that does not fit 32 bits.
        let mut costs = pagetide_scenario::model::costs::MachineCosts::default();
        costs.set(Price::Fault, 1 << 33);
        let slow =
            CostModel::of_machine(&costs, 1, pagetide_core::units::page_size::PageSize::Kib4);
        let work = Work { faults: 3, ..Work::default() };
        assert_eq!(CostMeter::new(slow).sum(&work), 3 << 33);
    }
}
